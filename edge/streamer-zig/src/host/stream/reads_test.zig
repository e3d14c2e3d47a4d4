//! Tests READs over real sockets, with disks whose reads wait until a test lets them continue.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const read_workers = @import("read_workers.zig");
const sockets = @import("../net/sockets.zig");
const sys = @import("../sys.zig");
const EdgeIo = @import("../edge_io.zig");
const Boots = @import("../edge_io.zig").Agent.Boots;
const BootFiles = @import("../files/boot_files.zig");
const StreamPort = @import("port.zig");
const UdpSocket = @import("../net/udp_socket.zig");
const testing = std.testing;
const LayerWorkers = @import("layer_workers.zig");
const linux = std.os.linux;
const gpa = testing.allocator;

const disk_size = 256 << 10;

/// Every read of a thread passes through it.
const Gate = struct {
    var is_open: std.atomic.Value(u32) = .init(1);
    var arrived: std.atomic.Value(u32) = .init(0);
    var fails: bool = false;

    fn close() void {
        is_open.store(0, .release);
        arrived.store(0, .release);
        fails = false;
    }

    fn open() void {
        is_open.store(1, .release);
        testing.io.futexWake(u32, &is_open.raw, std.math.maxInt(u32));
    }

    fn fill(reader: *read_workers.Reader, task: *read_workers.Task) read_workers.Error!void {
        _ = arrived.fetchAdd(1, .acq_rel);
        testing.io.futexWake(u32, &arrived.raw, std.math.maxInt(u32));
        while (is_open.load(.acquire) == 0) testing.io.futexWaitUncancelable(u32, &is_open.raw, 0);
        if (fails) return error.ReadFailed;
        return reader.fill(task);
    }

    fn awaitArrived(count: u32) void {
        while (true) {
            const now = arrived.load(.acquire);
            if (now >= count) return;
            testing.io.futexWaitUncancelable(u32, &arrived.raw, now);
        }
    }
};

/// An edge's stream with two versions: 1 is in memory, and every byte of 2 has to be waited for.
const StreamFixture = struct {
    tmp: testing.TmpDir,
    io: EdgeIo,
    peers: core.site.PeerTable,
    on: store.LinuxFiles,
    boots: Boots,
    port: StreamPort,
    socket: UdpSocket,
    layer_workers: ?LayerWorkers = null,

    fn timesOf(site: *StreamFixture, device: *const Device) *const core.boot.ReadTimes.Part {
        return &site.boots.table.get(
            site.boots.table.findById(device.boot_id).?,
        ).?.read_times.initramfs;
    }

    const in_memory = versionOf(1);
    const slow = versionOf(2);

    fn init(site: *StreamFixture, options: StreamPort.Options) !void {
        var with = options;
        with.workers.fill = Gate.fill;
        site.tmp = testing.tmpDir(.{});
        site.layer_workers = null;
        site.io = .{
            .versions = try .init(gpa, 4),
            .files = &BootFiles.none,
            .listener = .{
                .context = site,
                .reported = ignoreReport,
                .version_problem = ignoreProblem,
            },
            .stream_socket = &site.socket,
            .stream = site.port.calls(),
        };
        site.peers = try .init(gpa, .{ .epoch = 1, .boots_max = 8 });
        site.boots = .{
            .io = &site.io,
            .table = try .init(gpa, .{ .capacity = 8 }),
            .peers = &site.peers,
            .discovery = .{ .devices = try .init(gpa) },
            .caches = .none(gpa, &site.io),
            .profiles = .none(gpa, &site.io),
        };
        for ([_]base.Uuid{ in_memory, slow }, [_][]const u8{ "memory", "slow" }) |id, name| {
            const bytes = try gpa.alloc(u8, disk_size);
            defer gpa.free(bytes);
            for (bytes, 0..) |*byte, at| byte.* = byteOf(at);
            try site.tmp.dir.writeFile(testing.io, .{ .sub_path = name, .data = bytes });
            var file: store.StoreFile = try .openBelow(site.tmp.dir.handle, name, .disk);
            file.read_now = .init(if (id.eql(slow)) .never else .always);
            try site.io.versions.add(.{ .id = id, .disk = .{ .file = file } });
        }
        const keys: core.stream.Server.Keys =
            .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) };
        const options_of_server: core.stream.Server.Options =
            .{ .keys = keys, .sessions_max = 8, .ciphers = .{ .clear = true } };
        site.port =
            try .init(gpa, try .init(gpa, try .init(gpa, options_of_server), &site.boots), with);
        try site.port.start();
        site.socket = try .init(gpa, try sockets.openUdp(.{
            .address = .{ .ip = .init(127, 0, 0, 1), .port = 0 },
        }), null);
    }

    fn deinit(site: *StreamFixture) void {
        Gate.open();
        if (site.layer_workers) |*workers| workers.deinit(gpa);
        site.port.deinit(gpa);
        site.socket.deinit(gpa);
        site.boots.deinit(gpa);
        site.peers.deinit(gpa);
        site.io.deinit(gpa);
        site.tmp.cleanup();
    }

    /// Keeps the writes of devices at the edge.
    fn keepWrites(site: *StreamFixture) !void {
        site.boots.write_cache = .{ .class = .edge };
        site.on = .fromFd(site.tmp.dir.handle);
        site.layer_workers = try .init(gpa, 4);
        const workers = &site.layer_workers.?;
        try workers.run();
        site.io.layer_workers = workers;
        site.port.layer_workers = workers;
        site.boots.caches = try .init(gpa, &site.io, site.on.files(), 4, site.boots.write_cache);
    }

    /// Runs the packet loop once something has come from devices or from a disk.
    fn turn(site: *StreamFixture) void {
        var polled = [_]linux.pollfd{
            .{ .fd = site.socket.fd, .events = linux.POLL.IN, .revents = 0 },
            .{ .fd = site.port.reads.workers.endedFd(), .events = linux.POLL.IN, .revents = 0 },
            .{ .fd = -1, .events = linux.POLL.IN, .revents = 0 },
        };
        if (site.layer_workers) |*workers| polled[2].fd = workers.endedFd();
        if (!site.port.reads.hasWork()) _ = linux.poll(&polled, polled.len, 30_000);
        site.port.receive(&site.socket, sys.monotonicUs());
        site.port.endLayerWorks(sys.monotonicUs());
        site.port.reads.takeEnded();
        site.port.reads.serve(&site.port, &site.socket);
        site.port.beginLayerWorks();
    }

    fn ignoreReport(_: *anyopaque, _: *const core.boot.Boot) void {}
    fn ignoreProblem(_: *anyopaque, _: @import("../files/version_table.zig").Problem) void {}
};

fn versionOf(number: u8) base.Uuid {
    return .fromBytes(@splat(number));
}

fn byteOf(at: usize) u8 {
    return @truncate(at / 512 + at % 7);
}

const Device = struct {
    site: *StreamFixture,
    socket: UdpSocket,
    edge: base.Endpoint,
    boot_id: base.Uuid,
    session_id: u64 = 0,
    version_tag: u64 = 0,
    /// Packets that were received together, and how many `next` has returned.
    count: usize = 0,
    index: usize = 0,
    bytes: [64 << 10]u8 = undefined,

    fn init(device: *Device, site: *StreamFixture, number: u8, version: base.Uuid) !void {
        device.* = .{
            .site = site,
            .socket = try .init(gpa, try sockets.openUdp(.{
                .address = .{ .ip = .init(127, 0, 0, number), .port = 0 },
            }), null),
            .edge = try endpointOf(&site.socket),
            .boot_id = .fromBytes(@splat(number)),
        };
        const identity: core.boot.Identity = .{ .id = device.boot_id, .mac = .{
            .bytes = .{ 2, 0, 0, 0, 0, number },
        }, .handle = number, .token = @splat(number) };
        _ = try site.boots.table.insert(
            .init(identity, .{ .version_id = version }, sys.monotonicUs(), 0),
            sys.monotonicUs(),
        );
        var hello: wire.Hello = .{
            .client_nonce = @splat(number),
            .kind = .token,
            .boot_id = device.boot_id.bytes,
            .ciphers = .{ .clear = true },
            .client_public = @splat(0),
            .proof = undefined,
            .packet_size_max = wire.packet_size_ethernet,
        };
        hello.proof = core.stream.seal.helloProof(&identity.token, &hello);
        device.send(.{ .body = .{ .hello = hello } });
        site.turn();
        hello.cookie = (try device.receive()).body.cookie.cookie;
        device.send(.{ .body = .{ .hello = hello } });
        // A thread opens the device's layer first.
        const welcome = while (true) {
            site.turn();
            break device.receive() catch |err|
                if (err == error.NothingHeard) continue else return err;
        };
        device.session_id = welcome.session_id;
        device.version_tag = welcome.body.welcome.version_tag;
    }

    fn deinit(device: *Device) void {
        device.socket.deinit(gpa);
    }

    fn send(device: *Device, packet: wire.Packet) void {
        var out: [wire.packet_size_max]u8 = undefined;
        device.socket.send(device.edge, wire.emit(packet, &out));
    }

    fn read(device: *Device, request_id: u32, offset: u64, length: u32) void {
        device.send(.{ .session_id = device.session_id, .request_id = request_id, .body = .{
            .read = .{
                .kind = .demand,
                .fragment_size = wire.fragment_size_ethernet,
                .version_tag = device.version_tag,
                .offset = offset,
                .length = length,
            },
        } });
    }

    /// On loopback, what was sent has arrived.
    fn receive(device: *Device) !wire.Packet {
        if (device.socket.receive() == 0) return error.NothingHeard;
        const bytes = device.socket.datagram(0).bytes;
        @memcpy(device.bytes[0..bytes.len], bytes);
        return wire.parse(device.bytes[0..bytes.len]);
    }

    /// Returns the next packet of those that came together.
    fn next(device: *Device) !wire.Packet {
        if (device.index == device.count) {
            device.count = device.socket.receive();
            device.index = 0;
        }
        if (device.count == 0) return error.NothingHeard;
        defer device.index += 1;
        return wire.parse(device.socket.datagram(device.index).bytes);
    }

    fn expectSilence(device: *Device) !void {
        try testing.expectEqual(0, device.socket.receive());
    }

    /// Expects all bytes of a READ, and nothing else.
    fn expectBytes(device: *Device, request_id: u32, offset: u64, length: u32) !void {
        var missing = length;
        while (missing > 0) {
            const count = device.socket.receive();
            if (count == 0) return error.BytesMissing;
            for (0..count) |index| {
                const packet = try wire.parse(device.socket.datagram(index).bytes);
                try testing.expectEqual(request_id, packet.request_id);
                const begin =
                    offset + @as(u64, packet.body.data.index) * wire.fragment_size_ethernet;
                for (packet.body.data.payload, begin..) |byte, at|
                    try testing.expectEqual(byteOf(at), byte);
                missing -= @intCast(packet.body.data.payload.len);
            }
        }
        try device.expectSilence();
    }
};

fn endpointOf(socket: *const UdpSocket) !base.Endpoint {
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(socket.fd, @ptrCast(&address), &size));
    return sockets.fromSockaddr(&address);
}

test "during the wait for a disk, other devices are welcomed and get what is in memory" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    var slow: Device = undefined;
    try slow.init(&site, 10, StreamFixture.slow);
    defer slow.deinit();
    slow.read(1, 1024, 32 << 10);
    site.turn();
    Gate.awaitArrived(1);
    // A device that says hello and reads.
    var quick: Device = undefined;
    try quick.init(&site, 11, StreamFixture.in_memory);
    defer quick.deinit();
    quick.read(1, 512, 40 << 10);
    site.turn();
    try quick.expectBytes(1, 512, 40 << 10);
    site.port.policy.tick(sys.monotonicUs());
    try slow.expectSilence();
    Gate.open();
    site.turn();
    try slow.expectBytes(1, 1024, 32 << 10);
    try testing.expectEqual(2, site.port.reads_count);
    try testing.expectEqual(1, site.port.reads.figures.cold);
    try testing.expectEqual(0, site.port.reads.queue.count);
    // Each boot's own times are reported.
    const cold = site.timesOf(&slow);
    const warm = site.timesOf(&quick);
    try testing.expectEqual(cold.cold.sum_us, site.port.reads.figures.cold_us);
    try testing.expectEqual(
        [_]u64{ 1, 0, 1 },
        [_]u64{ cold.cold.count(), cold.warm.count(), cold.send.count() },
    );
    try testing.expectEqual(
        [_]u64{ 0, 1, 1 },
        [_]u64{ warm.cold.count(), warm.warm.count(), warm.send.count() },
    );
    // Everything that the other device did lies within the first one's wait.
    try testing.expect(cold.cold.sum_us >= warm.warm.sum_us + warm.send.sum_us);
}

test "a READ that is retransmitted during the wait for its disk is answered once, and is no sign of a bad path" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    var slow: Device = undefined;
    try slow.init(&site, 10, StreamFixture.slow);
    defer slow.deinit();
    for (0..30) |_| slow.read(7, 4096, 8 << 10);
    while (site.port.reads.queue.counters.joined < 29) site.turn();
    const boot = site.boots.table.get(site.boots.table.findById(slow.boot_id).?).?;
    try testing.expectEqual(null, boot.suspicion);
    Gate.open();
    site.turn();
    try slow.expectBytes(7, 4096, 8 << 10);
    // After that it is a new request.
    slow.read(7, 4096, 8 << 10);
    while (site.port.reads_count < 2) site.turn();
    try slow.expectBytes(7, 4096, 8 << 10);
    // A duplicate does not count as a read.
    try testing.expectEqual(1, site.timesOf(&slow).send.count());
}

test "a device that requests everything from a slow disk leaves threads to others, and is told nothing that it did not request" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{
        .queue = .{ .slots = 16, .slots_each = 12, .at_disks_each = 2 },
        .workers = .{ .threads = 3, .tasks = 3 },
    });
    defer site.deinit();
    var greedy: Device = undefined;
    try greedy.init(&site, 10, StreamFixture.slow);
    defer greedy.deinit();
    for (0..20) |number| greedy.read(@intCast(number), number * 4096, 4096);
    while (site.port.reads.queue.counters.full < 8) site.turn();
    Gate.awaitArrived(2);
    var other: Device = undefined;
    try other.init(&site, 11, StreamFixture.slow);
    defer other.deinit();
    other.read(1, 0, 4096);
    site.turn();
    // It is at the disk before ten that came earlier.
    Gate.awaitArrived(3);
    Gate.open();
    while (site.port.reads.queue.count > 0) site.turn();
    try other.expectBytes(1, 0, 4096);
    try testing.expectEqual(13, site.port.reads_count);
}

test "a disk that fails is reported to the device, and bytes for a device that is gone go nowhere" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    var slow: Device = undefined;
    try slow.init(&site, 10, StreamFixture.slow);
    defer slow.deinit();
    Gate.fails = true;
    slow.read(1, 0, 4096);
    site.turn();
    Gate.awaitArrived(1);
    Gate.open();
    site.turn();
    try testing.expectEqual(
        wire.ReadErrorCode.store_error,
        (try slow.receive()).body.read_error.code,
    );
    try testing.expectEqual(1, site.port.policy.store_errors.total);
    Gate.close();
    slow.read(2, 0, 4096);
    site.turn();
    Gate.awaitArrived(1);
    site.port.policy.server.forget(slow.boot_id);
    Gate.open();
    site.turn();
    try slow.expectSilence();
    try testing.expectEqual(1, site.port.reads.figures.gone);
    try testing.expectEqual(0, site.port.reads.queue.count);
}

test "a version may be closed while a thread reads it" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    var slow: Device = undefined;
    try slow.init(&site, 10, StreamFixture.slow);
    defer slow.deinit();
    slow.read(1, 0, 4096);
    site.turn();
    Gate.awaitArrived(1);
    const version = site.io.versions.find(StreamFixture.slow).?;
    version.close();
    for (site.io.versions.versions) |*place| if (place.* != null and &place.*.? == version) {
        place.* = null;
    };
    // Its descriptor now belongs to another file.
    const other = try site.tmp.dir.createFile(testing.io, "other", .{});
    defer other.close(testing.io);
    Gate.open();
    site.turn();
    try slow.expectBytes(1, 0, 4096);
}

test "the end comes with READs that wait, and threads that are at a disk" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    var slow: Device = undefined;
    try slow.init(&site, 10, StreamFixture.slow);
    for (0..64) |number| slow.read(@intCast(number), number * 4096, 4096);
    while (site.port.reads.queue.count < 64) site.turn();
    Gate.awaitArrived(4);
    slow.deinit();
    site.deinit();
}

test "a read of a write layer contains what was written during the wait for its disk" {
    Gate.close();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    try site.keepWrites();
    var device: Device = undefined;
    try device.init(&site, 10, StreamFixture.slow);
    defer device.deinit();
    device.read(1, 0, 8 << 10);
    site.turn();
    Gate.awaitArrived(1);
    const layer = site.port.layerOf(device.boot_id).?;
    const written: [4096]u8 = @splat('w');
    try layer.inner.write(&written, 4096);
    // Nobody takes the layer away from the thread.
    try testing.expectEqual(1, layer.reads);
    site.boots.table.remove(site.boots.table.findById(device.boot_id).?);
    site.boots.caches.tick(sys.monotonicUs(), &site.boots.table);
    try testing.expect(layer.is_over);
    layer.is_over = false;
    Gate.open();
    site.turn();
    try testing.expectEqual(0, layer.reads);
    var bytes: [8 << 10]u8 = undefined;
    var filled: usize = 0;
    while (filled < bytes.len) {
        const count = device.socket.receive();
        if (count == 0) return error.BytesMissing;
        for (0..count) |index| {
            const data = (try wire.parse(device.socket.datagram(index).bytes)).body.data;
            @memcpy(
                bytes[@as(usize, data.index) * wire.fragment_size_ethernet ..][0..data.payload.len],
                data.payload,
            );
            filled += data.payload.len;
        }
    }
    for (bytes[0..4096], 0..) |byte, at| try testing.expectEqual(byteOf(at), byte);
    try testing.expect(std.mem.allEqual(u8, bytes[4096..], 'w'));
}

fn writeBy(device: *Device, request_id: u32, offset: u64, bytes: []const u8) void {
    device.send(.{ .session_id = device.session_id, .request_id = request_id, .body = .{ .write = .{
        .version_tag = device.version_tag,
        .offset = offset,
        .length = @intCast(bytes.len),
        .fragment_size = wire.fragment_size_ethernet,
        .index = 0,
        .payload = bytes,
    } } });
}

test "a write is carried out by a thread, with the rest of its block from the version below" {
    Gate.open();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    try site.keepWrites();
    var device: Device = undefined;
    try device.init(&site, 10, StreamFixture.in_memory);
    defer device.deinit();
    const sector: [512]u8 = @splat('w');
    writeBy(&device, 1, 4096 + 512, &sector);
    const ack = while (true) {
        site.turn();
        break device.receive() catch continue;
    };
    try testing.expectEqual(.done, ack.body.write_ack.code);
    const layer = site.port.layerOf(device.boot_id).?;
    var block: [4096]u8 = undefined;
    try layer.inner.read(&block, 4096);
    for (block, 4096..) |byte, at|
        try testing.expectEqual(if (at / 512 == 9) 'w' else byteOf(at), byte);
}

test "a read of a layer that a thread writes to lets other devices pass, and is answered afterwards" {
    Gate.open();
    var site: StreamFixture = undefined;
    try site.init(.{});
    defer site.deinit();
    try site.keepWrites();
    var writer: Device = undefined;
    try writer.init(&site, 10, StreamFixture.in_memory);
    defer writer.deinit();
    var other: Device = undefined;
    try other.init(&site, 11, StreamFixture.in_memory);
    defer other.deinit();
    const layer = site.port.layerOf(writer.boot_id).?;
    // As `beginWorks` leaves it until the thread has ended.
    layer.writing_count = 1;
    for (1..4) |id| writer.read(@intCast(id), 8192 * id, 4096);
    other.read(1, 0, 4096);
    site.turn();
    try other.expectBytes(1, 0, 4096);
    try writer.expectSilence();
    // The loop does not spin meanwhile.
    try testing.expect(!site.port.reads.hasWork());
    // The same READ again takes no slot.
    writer.read(1, 8192, 4096);
    site.turn();
    try testing.expectEqual(3, site.port.reads.queue.count);
    layer.writing_count = 0;
    site.port.reads.serve(&site.port, &site.socket);
    for (1..4) |id| for (0..3) |_| {
        const packet = try writer.next();
        try testing.expectEqual(@as(u32, @intCast(id)), packet.request_id);
    };
    try writer.expectSilence();
}
