//! What the agent's tests share: a site with its desired state, the addresses of its parts, and a
//! device's stream.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const TestIo = @import("io_test.zig");
const desired_state = core.uplink.desired_state;
const testing = std.testing;
const gpa = testing.allocator;
const Boots = @import("boots.zig").Boots(TestIo);
const Stream = @import("stream.zig").Stream(TestIo);

/// Networks behind routers, where an address proves nothing.
const trusted = [_]base.Ip4Prefix{.{ .ip = .init(10, 0, 0, 0), .size = 8 }};

/// This edge's addresses as devices reach them.
pub const own: core.dhcp.network.Addresses = .{
    .links = &.{.{ .ip = .init(10, 77, 0, 2) }},
    .networks = &.{},
    .http_port = 6980,
    .stream_port = 6910,
};

/// Where each edge of the site takes messages of the others.
pub const peer_port = 6911;
pub const other_edge: base.Endpoint = .{ .ip = .init(10, 77, 0, 3), .port = 6910 };
const site_key_text = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
/// What the text stands for.
pub const site_key = blk: {
    var bytes: [32]u8 = undefined;
    for (&bytes, 1..) |*byte, number| byte.* = number;
    break :blk bytes;
};

pub fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

pub fn macOf(number: u8) base.Mac {
    return .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } };
}

/// An edge with one vDisk of three versions, of which the last lies above the second, and four
/// devices: 1 boots, 2 is disabled, 3 has no described version, 4 writes version 3.
pub const Site = struct {
    pub const Ref = Boots.Ref;

    io: TestIo = .{},
    peers: core.site.PeerTable,
    boots: Boots,
    state: desired_state.DesiredState,
    vdisks: [1]desired_state.Vdisk,
    versions: [3]desired_state.Version,
    devices: [4]desired_state.Device,
    homes: [2]desired_state.WriteOwnerEdge,
    arena: std.heap.ArenaAllocator,
    /// Where the write caches are, once there are any.
    cache_files: ?struct { tmp: testing.TmpDir, on: store.LinuxFiles } = null,

    pub fn create() !*Site {
        const site = try gpa.create(Site);
        site.* = .{
            .peers = try .init(gpa, .{ .epoch = 1, .boots_max = 4 }),
            .boots = undefined,
            .state = undefined,
            .vdisks = undefined,
            .versions = undefined,
            .devices = undefined,
            .homes = .{ .{ .id = uuid(20), .name = "here" }, .{ .id = uuid(23), .name = "north" } },
            .arena = .init(gpa),
        };
        for (&site.versions, 1..) |*version, number| version.* = .{
            .id = uuid(@intCast(number)),
            .number = number,
            .sizeBytes = 1 << 20,
            .diskPath = "d",
            .commandLine = "quiet",
            .layerAboveVersionId = if (number == 3) uuid(2) else null,
        };
        site.vdisks = .{.{ .id = uuid(30), .name = "disk", .versions = &site.versions }};
        for (&site.devices, 1..) |*known, number| known.* = .{
            .id = uuid(@intCast(10 + number)),
            .name = "d",
            .mac = macOf(@intCast(number)),
            .versionId = uuid(switch (number) {
                3 => 9,
                4 => 3,
                else => 1,
            }),
            .enabled = number != 2,
            .writes = number == 4,
        };
        site.state = .{
            .edgeId = uuid(20),
            .organizationId = uuid(21),
            .siteId = uuid(22),
            .siteName = "",
            .incarnation = 1,
            .counter = 1,
            .unknownDevices = .ignore,
            .vdisks = &site.vdisks,
            .devices = &site.devices,
            .homeEdges = &site.homes,
            .powerOns = &.{},
        };
        site.boots = .{
            .io = &site.io,
            .table = try .init(gpa, .{ .capacity = 4 }),
            .peers = &site.peers,
            .discovery = .{ .devices = try .init(gpa) },
            .caches = .none(gpa, &site.io),
            .profiles = try .init(gpa, &site.io, .{ .recordings = 2, .documents = 2 }),
            .trusted = &trusted,
        };
        try site.decide();
        return site;
    }

    /// Version 1 is open.
    pub fn withVersion() !*Site {
        const site: *Site = try .create();
        _ = site.open(1);
        return site;
    }

    /// The desired state counts from now on.
    pub fn decide(site: *Site) !void {
        site.boots.policy = try .init(site.arena.allocator(), &site.state);
    }

    pub fn destroy(site: *Site) void {
        site.boots.deinit(gpa);
        if (site.cache_files) |*files| files.tmp.cleanup();
        site.peers.deinit(gpa);
        site.arena.deinit();
        gpa.destroy(site);
    }

    pub fn open(site: *Site, number: u8) *TestIo.Version {
        site.io.versions.appendAssumeCapacity(.{ .id = uuid(number) });
        return &site.io.versions.buffer[site.io.versions.count - 1];
    }

    pub fn begin(site: *Site, number: u8) !Boots.Ref {
        return (try site.boots.begin(site.io.now_us, macOf(number))).?;
    }

    /// The device has no boot any more.
    pub fn forget(site: *Site, number: u8) void {
        var boots = site.boots.table.iterateOf(macOf(number));
        while (boots.next()) |ref| site.boots.table.remove(ref);
    }

    pub fn boot(site: *Site, ref: Boots.Ref) *core.boot.Boot {
        return site.boots.get(ref).?;
    }

    /// Another edge of the site is alive; returns its index.
    pub fn addEdge(site: *Site) u8 {
        const here: core.site.Edges.EdgeDescription = .{
            .id = uuid(20),
            .weight = 10,
            .subnets = &.{},
            .draining = false,
            .address = .init(10, 77, 0, 2),
            .peerPort = peer_port,
        };
        var there = here;
        there.id = uuid(23);
        there.address = other_edge.ip;
        there.streamPort = other_edge.port;
        const known: core.site.Edges = .init(&.{
            .key = site_key_text,
            .ticketKeys = &.{site_key_text},
            .edges = &.{ here, there },
        }, uuid(20));
        site.peers.setSite(site.io.now_us, known);
        const other = 1 - known.own_index;
        site.peers.peers[other] = .{ .is_known = true, .heard_us = site.io.now_us, .epoch = 1 };
        return other;
    }

    /// Device 1 shows a menu: version 1, which is the default, version 2, and its own disk.
    pub fn addMenu(site: *Site) !void {
        const arena = site.arena.allocator();
        const entries = try arena.dupe(desired_state.MenuEntry, &.{
            .{ .kind = .version, .title = "one", .versionId = uuid(1) },
            .{ .kind = .version, .title = "two", .versionId = uuid(2) },
            .{ .kind = .local_disk, .title = "own" },
        });
        site.state.menus = try arena.dupe(desired_state.Menu, &.{.{
            .id = uuid(70),
            .timeoutMs = 30_000,
            .defaultEntry = 0,
            .entries = entries,
        }});
        site.devices[0].menuId = uuid(70);
        try site.decide();
    }

    /// This edge can keep writes, and does for the devices of the vDisk.
    pub fn addCaches(site: *Site, class: []const u8) !void {
        const tmp = testing.tmpDir(.{});
        site.cache_files = .{ .tmp = tmp, .on = .fromFd(tmp.dir.handle) };
        const files = site.cache_files.?.on.files();
        site.boots.caches = try .init(gpa, &site.io, files, 4, .{ .class = .edge_persistent });
        site.setCache(class, .stop);
        site.vdisks[0].writeCache.?.limitBytes = 1 << 20;
    }

    /// A thread has carried out the orders that came in this turn.
    pub fn endWrite(site: *Site, port: *Stream) !void {
        site.boots.caches.beginWorks();
        const work = site.io.nextWork() orelse return error.NoWork;
        try testing.expectEqual(.write, work.kind);
        port.endWork(work, site.io.now_us);
    }

    /// Ends all works for write layers.
    pub fn sync(site: *Site, port: *Stream) void {
        while (true) {
            site.boots.caches.beginWorks();
            const work = site.io.nextWork() orelse return;
            port.endWork(work, site.io.now_us);
        }
    }

    /// Devices are handed a boot profile of this size for version 1 from now on.
    pub fn publishProfile(site: *Site, size: usize) !void {
        const document = try gpa.alloc(u8, size);
        @memset(document, 'p');
        site.io.profile_event =
            .{ .published = .{ .version_id = uuid(1), .key = 0, .document = document } };
    }

    pub fn setCache(site: *Site, class: []const u8, full: desired_state.WriteCacheFull) void {
        site.vdisks[0].writeCache = .{ .class = class, .full = full, .limitBytes = 4096 };
    }
};

const MessageType = @FieldType(core.boot.Client, "message_type");

pub fn clientOf(number: u8, message: MessageType) core.boot.Client {
    return .{
        .mac = macOf(number),
        .message_type = message,
        .loader = .pxe,
        .arch = .bios,
        .machine_id = null,
        .vendor_class = .init("PXEClient"),
        .user_class = .init("first"),
        .ip = null,
    };
}

pub const device: base.Endpoint = .{ .ip = .init(10, 77, 0, 10), .port = 40000 };

/// A device's stream in clear text, and the port that answers it.
pub const Link = struct {
    site: *Site,
    port: Stream,
    /// By how much packets arrive after the time of the loop's turn.
    ahead_us: u64 = 0,
    out: [wire.packet_size_max]u8 = undefined,

    pub fn init(site: *Site) !Link {
        const server: core.stream.Server = try .init(gpa, .{
            .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            .sessions_max = 4,
            .ciphers = .{ .clear = true },
        });
        return .{ .site = site, .port = try .init(gpa, server, &site.boots) };
    }

    pub fn deinit(link: *Link) void {
        link.port.deinit(gpa);
    }

    pub fn send(link: *Link, from: base.Endpoint, packet: wire.Packet) void {
        const bytes = wire.emit(packet, &link.out);
        const now_us = link.site.io.now_us;
        link.port.receive(
            &.{ .from = from, .bytes = bytes, .at_us = now_us + link.ahead_us },
            now_us,
        );
    }

    /// Returns the newest answer and forgets all.
    pub fn answer(link: *Link) !wire.Packet {
        const sent = &link.site.io.sent;
        try testing.expect(sent.count > 0);
        const last = sent.buffer[sent.count - 1];
        sent.count = 0;
        @memcpy(link.out[0..last.size], last.bytes());
        return wire.parse(link.out[0..last.size]);
    }

    pub fn helloOf(
        boot_id: base.Uuid,
        nonce: u8,
        kind: wire.HelloKind,
        secret: []const u8,
    ) wire.Hello {
        var hello: wire.Hello = .{
            .client_nonce = @splat(nonce),
            .kind = kind,
            .ciphers = .{ .clear = true },
            .packet_size_max = wire.packet_size_ethernet,
            .boot_id = boot_id.bytes,
            .client_public = @splat(9),
            .proof = undefined,
        };
        hello.proof = core.stream.seal.helloProof(secret, &hello);
        return hello;
    }

    /// Sends HELLO with its cookie round trip; returns the answer.
    pub fn sayHello(link: *Link, from: base.Endpoint, hello: wire.Hello) !wire.Packet {
        link.send(from, .{ .body = .{ .hello = hello } });
        var with_cookie = hello;
        with_cookie.cookie = (try link.answer()).body.cookie.cookie;
        link.send(from, .{ .body = .{ .hello = with_cookie } });
        while (link.site.io.nextWork()) |work| link.port.endWork(work, link.site.io.now_us);
        return link.answer();
    }

    pub fn open(link: *Link, boot: *const core.boot.Boot) !wire.Packet {
        const hello = helloOf(boot.identity.id, 5, .token, &boot.identity.token);
        return link.sayHello(device, hello);
    }

    /// Resumes the session of a boot, as after a restart of the device's stream.
    pub fn returnOf(link: *Link, boot: *const core.boot.Boot, nonce: u8) !wire.Packet {
        const secret = link.port.server.resumeSecretOf(boot.identity.id);
        return link.sayHello(device, helloOf(boot.identity.id, nonce, .resumption, &secret));
    }

    pub fn read(link: *Link, welcome: *const wire.Packet, request_id: u32) void {
        link.ask(welcome, request_id, .{ .read = .{
            .version_tag = welcome.body.welcome.version_tag,
            .offset = 0,
            .length = 4096,
            .fragment_size = welcome.body.welcome.fragment_size,
        } });
    }

    /// Sends a packet of the session that `welcome` opened.
    pub fn ask(link: *Link, welcome: *const wire.Packet, request_id: u32, body: wire.Body) void {
        link.send(device, .{
            .session_id = welcome.session_id,
            .request_id = request_id,
            .body = body,
        });
    }

    /// Writes a sector of this byte.
    pub fn write(link: *Link, welcome: *const wire.Packet, request_id: u32, byte: u8) void {
        const payload: [wire.sector_size]u8 = @splat(byte);
        link.ask(welcome, request_id, .{ .write = .{
            .version_tag = welcome.body.welcome.version_tag,
            .offset = @as(u64, byte) * wire.sector_size,
            .length = wire.sector_size,
            .fragment_size = welcome.body.welcome.fragment_size,
            .index = 0,
            .payload = &payload,
        } });
    }

    pub fn control(
        link: *Link,
        welcome: *const wire.Packet,
        request_id: u32,
        operation: @FieldType(wire.Control, "operation"),
    ) void {
        link.ask(welcome, request_id, .{ .control = .{
            .version_tag = welcome.body.welcome.version_tag,
            .operation = operation,
            .length = if (operation == .flush) 0 else 4096,
        } });
    }
};
