//! An edge in the fake world: the real DHCP, TFTP, stream and boot machines of core, with a host that is a few lines.
//! A crash loses what a process has in memory; boots, leases and the resumption key are on its disk.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const core = @import("core");
const disk = @import("disk.zig");
const Network = @import("network.zig");
const Plant = @import("plant.zig").Plant;
const Trust = @import("trust.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

pub const FakeEdge = @This();

pub const ip: base.Ip4 = .init(10, 0, 0, 1);
pub const http_endpoint: Endpoint = .{ .ip = ip, .port = 6980 };
pub const stream_endpoint: Endpoint = .{ .ip = ip, .port = wire.stream.port_default };
const dhcp_endpoint: Endpoint = .{ .ip = ip, .port = wire.dhcp.server_port };
const tftp_endpoint: Endpoint = .{ .ip = ip, .port = wire.tftp.server_port };

pub const nbp_size = 20_000;
pub const kernel_size = 300_000;
pub const sessions_max = 16;
const files = [_]core.TftpServer.File{.{ .name = "undionly.kpxe", .size = nbp_size, .id = 0 }};

gpa: std.mem.Allocator,
network: *Network,
prng: *base.Prng,
plant: Plant,
trust: *Trust,
dhcp: core.DhcpService,
tftp: core.TftpServer,
stream: core.StreamServer,
boots: core.BootTable,
version: u8 = 0,
store_error_percent: u8 = 0,
restarts: u32 = 0,
resumption_key: [32]u8,
next_expiry_us: u64 = 0,

pub const Options = struct {
    mode: core.DhcpService.Mode,
    plant: Plant,
    trust: *Trust,
};

pub fn init(gpa: std.mem.Allocator, network: *Network, prng: *base.Prng, options: Options) !FakeEdge {
    var dhcp: core.DhcpService = try .init(gpa, .{
        .mode = options.mode,
        .server_ip = ip,
        .http_port = http_endpoint.port,
        .programs = .{ .bios = "undionly.kpxe" },
        .pool = .{ .first = .init(10, 0, 2, 10), .last = .init(10, 0, 2, 250) },
    });
    errdefer dhcp.deinit(gpa);
    var boots: core.BootTable = try .init(gpa, 256);
    errdefer boots.deinit(gpa);
    var edge: FakeEdge = .{
        .gpa = gpa,
        .network = network,
        .prng = prng,
        .plant = options.plant,
        .trust = options.trust,
        .dhcp = dhcp,
        .tftp = undefined,
        .stream = undefined,
        .boots = boots,
        .resumption_key = undefined,
    };
    prng.fill(&edge.resumption_key);
    try edge.startProcess();
    return edge;
}

pub fn deinit(edge: *FakeEdge) void {
    edge.stopProcess();
    edge.dhcp.deinit(edge.gpa);
    edge.boots.deinit(edge.gpa);
}

/// kill -9, and the supervisor starts it again.
pub fn restart(edge: *FakeEdge) !void {
    edge.stopProcess();
    edge.restarts += 1;
    if (edge.plant == .resumption_key_lost) edge.prng.fill(&edge.resumption_key);
    try edge.startProcess();
}

fn startProcess(edge: *FakeEdge) !void {
    edge.tftp = try .init(edge.gpa, &files, .{});
    errdefer edge.tftp.deinit(edge.gpa);
    var keys: core.StreamServer.Keys = .{ .cookie = undefined, .session = undefined, .resumption = edge.resumption_key };
    edge.prng.fill(&keys.cookie);
    edge.prng.fill(&keys.session);
    edge.stream = try .init(edge.gpa, .{ .keys = keys, .sessions_max = sessions_max });
}

fn stopProcess(edge: *FakeEdge) void {
    edge.tftp.deinit(edge.gpa);
    edge.stream.deinit(edge.gpa);
}

pub fn receive(edge: *FakeEdge, datagram: *const Network.Datagram) !void {
    const payload = datagram.payload();
    switch (datagram.to.port) {
        wire.dhcp.server_port => try edge.receiveDhcp(datagram.from, payload),
        wire.tftp.server_port => {
            var reply: core.TftpServer.ReplyBuffer = undefined;
            try edge.actTftp(edge.tftp.receive(edge.network.now_us, datagram.from, payload, &reply));
        },
        wire.stream.port_default => try edge.receiveStream(datagram.from, payload),
        else => {},
    }
}

pub fn deadline(edge: *const FakeEdge) u64 {
    return @min(edge.tftp.nextDeadline() orelse std.math.maxInt(u64), edge.next_expiry_us);
}

pub fn tick(edge: *FakeEdge) !void {
    const now_us = edge.network.now_us;
    while (edge.tftp.tick(now_us)) |step| try edge.actTftp(step);
    if (now_us < edge.next_expiry_us) return;
    edge.next_expiry_us = now_us + std.time.us_per_s;
    edge.stream.expire(now_us);
    edge.boots.tick(now_us);
}

fn receiveDhcp(edge: *FakeEdge, from: Endpoint, payload: []const u8) !void {
    const now_us = edge.network.now_us;
    var reply: core.DhcpService.ReplyBuffer = undefined;
    const step = switch (edge.dhcp.receive(now_us, .{ .source = from, .port = .dhcp }, payload, &reply)) {
        .network_boot => |request| answer: {
            const handle = edge.bootOf(&request);
            const target: core.DhcpService.BootTarget = .{ .boot = .{ .value = handle } };
            break :answer edge.dhcp.answer(now_us, &request, target, &reply);
        },
        else => |step| step,
    };
    switch (step) {
        .ignored, .learned, .noted => {},
        .reply => |answer| {
            if (edge.boots.findByMac(answer.mac)) |ref|
                edge.boots.apply(ref, now_us, .{ .dhcp_answer = .{ .size = @intCast(answer.payload.len) } });
            try edge.network.send(dhcp_endpoint, answer.destination, answer.payload);
        },
        .network_boot => unreachable,
    }
}

/// The handle of the boot that a DHCP request belongs to, which may be a new one.
fn bootOf(edge: *FakeEdge, request: *const core.DhcpService.BootRequest) u64 {
    const now_us = edge.network.now_us;
    const seen: core.boot.DhcpRequest = .{
        .message = if (request.client.message_type == .discover) .discover else .request,
        .client = if (request.client.loader == .ipxe) .ipxe else .rom,
        .xid = request.packet.xid,
        .size = 300,
    };
    var ref = edge.boots.findByMac(request.client.mac);
    if (ref) |known| {
        if (edge.boots.get(known).?.dhcpMeaning(seen) == .new_boot) ref = null;
    }
    const found = ref orelse edge.insertBoot(request.client.mac);
    edge.boots.apply(found, now_us, .{ .dhcp_request = seen });
    return edge.boots.get(found).?.identity.handle;
}

fn insertBoot(edge: *FakeEdge, mac: base.Mac) core.BootTable.Ref {
    var random: [32]u8 = undefined;
    edge.prng.fill(&random);
    // Nobody reports here: every boot counts as reported, so that the table never fills up.
    var iterator = edge.boots.iterate();
    while (iterator.next()) |boot| boot.changed = false;
    return edge.boots.insert(.init(.{
        .id = .fromRandom(random[0..16].*),
        .mac = mac,
        .handle = edge.prng.nextU64() | 1,
        .token = random[16..32].*,
    }, .{
        .version_id = disk.versionId(edge.version),
        .loader_files = .{ .kernel = true },
    }, edge.network.now_us, 0), edge.network.now_us) catch unreachable;
}

fn actTftp(edge: *FakeEdge, step: core.TftpServer.Step) !void {
    for (step.events.constSlice()) |event| edge.tellBoot(event);
    switch (step.send) {
        .nothing => {},
        .packet => |packet| try edge.network.send(tftp_endpoint, packet.to, packet.bytes),
        .blocks => |blocks| {
            var iterator = blocks.iterate();
            while (iterator.next()) |block| {
                var bytes: [Network.datagram_size_max]u8 = undefined;
                bytes[0..block.header.len].* = block.header;
                @memset(bytes[block.header.len..][0..block.size], 0x90);
                try edge.network.send(tftp_endpoint, blocks.to, bytes[0 .. block.header.len + block.size]);
            }
        },
    }
}

fn tellBoot(edge: *FakeEdge, event: core.TftpServer.Event) void {
    const transfer = switch (event) {
        .began => |transfer| transfer,
        .finished => |finished| finished.transfer,
        .size_asked, .failed, .refused => return,
    };
    const handle = transfer.handle orelse return;
    const ref = edge.boots.findByHandle(handle.value) orelse return;
    edge.boots.apply(ref, edge.network.now_us, switch (event) {
        .began => .nbp_begin,
        .finished => .nbp_end,
        else => unreachable,
    });
}

/// The body for a path, or null for 404. The script is written to `buffer`.
pub fn httpBody(edge: *FakeEdge, path: []const u8, buffer: *[core.boot_script.size_max]u8) ?HttpBody {
    const split: core.BootPath = .parse(path);
    const handle = split.handle orelse return null;
    const ref = edge.boots.findByHandle(handle.value) orelse return null;
    const file: core.boot.LoaderFile = if (std.mem.eql(u8, split.name, "boot.ipxe"))
        .script
    else if (std.mem.eql(u8, split.name, "kernel"))
        .kernel
    else
        return null;
    edge.boots.apply(ref, edge.network.now_us, .{ .loader_begin = file });
    edge.boots.apply(ref, edge.network.now_us, .{ .loader_end = file });
    if (file == .kernel) return .{ .script = null, .size = kernel_size };
    const text = core.boot_script.write(.{
        .identity = edge.boots.get(ref).?.identity,
        .http = http_endpoint,
        .stream = stream_endpoint,
        .has_kernel = true,
        .has_initrd = false,
        .command_line = "quiet",
    }, buffer);
    return .{ .script = text, .size = text.len };
}

pub const HttpBody = struct { script: ?[]const u8, size: u64 };

fn receiveStream(edge: *FakeEdge, from: Endpoint, payload: []const u8) !void {
    const now_us = edge.network.now_us;
    edge.trust.arrived(from, payload);
    var reply: core.StreamServer.ReplyBuffer = undefined;
    var step = edge.stream.receive(now_us, from, payload, &reply);
    if (edge.plant == .cookie_not_checked and step == .reply) {
        if (claimWithoutCookie(from, payload)) |claim| step = .{ .admit = claim };
    }
    switch (step) {
        .ignored => {},
        .reply => |packet| try edge.sendStream(from, packet),
        .admit => |claim| {
            const ref = edge.boots.findById(claim.boot_id);
            const admission = edge.stream.admit(now_us, claim, edge.grantOf(ref), &reply);
            switch (admission.outcome) {
                .opened => try edge.noteOpened(ref.?, claim),
                .resumed => edge.boots.apply(ref.?, now_us, .{ .stream_open = .{ .resumed = true, .mtu = 1500 } }),
                .repeated, .token_refused, .version_missing, .busy, .stale => {},
            }
            if (admission.reply) |packet| try edge.sendStream(from, packet);
        },
        .read => |read| try edge.answerRead(read),
        .ready => |ready| {
            if (edge.boots.findById(ready.boot_id)) |ref|
                edge.boots.apply(ref, now_us, .{ .ready = .{ .uptime_us = ready.uptime_us } });
            try edge.sendStream(from, ready.reply);
        },
    }
}

fn claimWithoutCookie(from: Endpoint, payload: []const u8) ?core.StreamServer.Claim {
    const packet = wire.stream.parse(payload) catch return null;
    const hello = switch (packet.body) {
        .hello => |hello| hello,
        else => return null,
    };
    return .{
        .from = from,
        .client_nonce = hello.client_nonce,
        .kind = hello.kind,
        .boot_id = .fromBytes(hello.boot_id),
        .proof = hello.proof,
        .fragment_size_max = hello.fragment_size_max,
    };
}

fn grantOf(edge: *FakeEdge, ref: ?core.BootTable.Ref) core.StreamServer.Grant {
    const boot = edge.boots.get(ref orelse return .unknown) orelse return .unknown;
    const forgets = edge.plant == .version_not_kept and edge.restarts > 0;
    return .{ .boot = .{
        .token = boot.identity.token,
        .token_nonce = boot.token_nonce,
        .version_id = if (forgets) disk.versionId(edge.version) else boot.assignment.version_id,
        .disk_size = disk.disk_size,
    } };
}

fn noteOpened(edge: *FakeEdge, ref: core.BootTable.Ref, claim: core.StreamServer.Claim) !void {
    try edge.trust.opened(claim.boot_id, claim.client_nonce);
    edge.boots.apply(ref, edge.network.now_us, .{ .stream_open = .{ .resumed = false, .mtu = 1500 } });
    if (edge.plant != .token_used_twice) edge.boots.get(ref).?.token_nonce = claim.client_nonce;
}

fn answerRead(edge: *FakeEdge, read: core.StreamServer.ReadRequest) !void {
    const now_us = edge.network.now_us;
    if (edge.boots.findById(read.boot_id)) |ref| edge.boots.apply(ref, now_us, .{ .stream_read = .{
        .size = read.length,
        .attempt = @intFromBool(read.repeated),
        .missing_fragments = if (read.repeated) read.packets_out else 0,
    } });
    if (edge.prng.chance(edge.store_error_percent, 100)) {
        var reply: core.StreamServer.ReplyBuffer = undefined;
        return edge.sendStream(read.to, core.StreamServer.storeError(read, &reply));
    }
    var bytes_out: u64 = 0;
    var fragments = read.fragments();
    while (fragments.next()) |fragment| {
        const is_last = fragment.offset + fragment.length == read.offset + read.length;
        bytes_out += fragment.length;
        if (edge.plant == .last_fragment_forgotten and is_last) continue;
        var bytes: [Network.datagram_size_max]u8 = undefined;
        bytes[0..wire.stream.header_size].* = fragment.header;
        const beside: u64 = if (edge.plant == .wrong_sector) 512 else 0;
        disk.fill(read.version_id, fragment.offset + beside, bytes[wire.stream.header_size..][0..fragment.length]);
        try edge.sendStream(read.to, bytes[0 .. wire.stream.header_size + fragment.length]);
    }
    assert(bytes_out == read.bytes_out);
}

fn sendStream(edge: *FakeEdge, to: Endpoint, packet: []const u8) !void {
    try edge.trust.leaves(to, packet);
    try edge.network.send(stream_endpoint, to, packet);
}
