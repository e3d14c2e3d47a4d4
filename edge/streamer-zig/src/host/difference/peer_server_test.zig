//! Tests peer_server.zig with the client that edges use (peer_source.zig) and with strangers, over
//! real sockets on loopback addresses. The server runs in a thread; every wait ends with an event.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const DifferenceFiles = @import("difference_files.zig");
const PeerServer = @import("peer_server.zig");
const PeerSource = @import("peer_source.zig");
const SitePeers = @import("site_peers.zig");
const TransferThread = @import("transfer_thread.zig");
const linux = std.os.linux;
const Pieces = core.difference.Pieces;
const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const serving_id = uuid(1);
const asking_id = uuid(2);
const difference_id = uuid(3);
const serving_ip: base.Ip4 = .init(127, 0, 81, 1);
const asking_ip: base.Ip4 = .init(127, 0, 81, 2);
const stranger_ip: base.Ip4 = .init(127, 0, 81, 3);
const key_a = core.uplink.key_text.write(@splat(7));
const key_b = core.uplink.key_text.write(@splat(8));

fn siteOf(own: base.Uuid, port: u16, key: []const u8) core.site.Edges {
    const edges = [_]core.site.Edges.EdgeDescription{ .{
        .id = serving_id,
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = serving_ip,
        .peerPort = port,
    }, .{
        .id = asking_id,
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = asking_ip,
        .peerPort = port,
    } };
    return .init(&.{ .key = key, .edges = &edges }, own);
}

const Fixture = struct {
    tmp: testing.TmpDir,
    path: [64]u8,
    files: DifferenceFiles,
    serving: SitePeers,
    asking: SitePeers,
    server: *PeerServer,
    server_thread: std.Thread,
    is_over: std.atomic.Value(bool),
    thread: TransferThread,
    source: *PeerSource,
    port: u16,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{});
        const path =
            try std.mem.print(&fixture.path, ".zig-cache/tmp/{s}", .{&fixture.tmp.sub_path});
        fixture.files = try .open(path);
        fixture.port = try freePort(serving_ip);
        fixture.serving = .{ .io = testing.io };
        fixture.asking = .{ .io = testing.io };
        fixture.serving.set(siteOf(serving_id, fixture.port, &key_a));
        fixture.asking.set(siteOf(asking_id, fixture.port, &key_a));
        fixture.server = try .create(testing.allocator, .{
            .peers = &fixture.serving,
            .store_path = path,
            .address = .{ .ip = serving_ip, .port = fixture.port },
        });
        // Listens before anybody connects.
        fixture.server.turn();
        fixture.is_over = .init(false);
        fixture.server_thread = try .spawn(.{}, serveAll, .{fixture});
        fixture.thread = .{ .context = undefined, .job_id = uuid(9) };
        fixture.source = try testing.allocator.create(PeerSource);
        fixture.source.* = .{
            .thread = &fixture.thread,
            .peers = &fixture.asking,
            // Its thread may wait long for a processor.
            .limits = .{ .greeting_ms = 600_000, .record_ms = 600_000 },
        };
    }

    fn serveAll(fixture: *Fixture) void {
        while (!fixture.is_over.load(.acquire)) fixture.server.turn();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.is_over.store(true, .release);
        fixture.server_thread.join();
        fixture.source.deinit();
        testing.allocator.destroy(fixture.source);
        fixture.server.destroy();
        fixture.files.close();
        fixture.tmp.cleanup();
    }

    fn getPiece(fixture: *Fixture, index: u32, buffer: []u8) core.difference.FetchPlan.Outcome {
        const request: wire.Request =
            .{ .piece = .{ .difference = difference_id, .index = index } };
        return fixture.source.get(serving_id, request, buffer);
    }

    /// Ends when the other side has closed it, or has sent `buffer` full.
    fn exchangeRaw(
        fixture: *const Fixture,
        from: base.Ip4,
        bytes: []const u8,
        buffer: []u8,
    ) !usize {
        const fd = try connectFrom(from, .{ .ip = serving_ip, .port = fixture.port });
        defer sys.close(fd);
        _ = linux.sendto(fd, bytes.ptr, bytes.len, linux.MSG.NOSIGNAL, null, 0);
        var size: usize = 0;
        while (size < buffer.len) {
            const rc = linux.read(fd, buffer[size..].ptr, buffer.len - size);
            const count = sys.check(rc) catch return size;
            if (count == 0) return size;
            size += count;
        }
        return size;
    }
};

fn connectFrom(from: base.Ip4, to: base.Endpoint) !i32 {
    const kind = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
    errdefer sys.close(fd);
    const own = PeerSource.addressOf(.{ .ip = from, .port = 0 });
    _ = try sys.check(linux.bind(fd, @ptrCast(&own), @sizeOf(linux.sockaddr.in)));
    const name = PeerSource.addressOf(to);
    _ = try sys.check(linux.connect(fd, @ptrCast(&name), @sizeOf(linux.sockaddr.in)));
    return fd;
}

/// Of the address that a server is to have.
pub fn freePort(ip: base.Ip4) !u16 {
    const kind = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
    defer sys.close(fd);
    var name = PeerSource.addressOf(.{ .ip = ip, .port = 0 });
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.bind(fd, @ptrCast(&name), size));
    _ = try sys.check(linux.getsockname(fd, @ptrCast(&name), &size));
    return std.mem.bigToNative(u16, name.port);
}

fn makeDifference(files: *const DifferenceFiles, bytes: []const u8, list: []u8) !void {
    const fd = try files.openToWrite(difference_id);
    defer sys.close(fd);
    try sys.writeAllAt(fd, bytes, 0);
    const pieces = Pieces.of(bytes.len).?;
    for (0..pieces.count()) |number| {
        const index: u32 = @intCast(number);
        const piece = bytes[pieces.offsetOf(index)..][0..pieces.sizeOf(index)];
        list[number * Pieces.hash_size ..][0..Pieces.hash_size].* = Pieces.digestOf(piece);
    }
    try files.writeList(difference_id, list);
}

test "an edge gets the list and every piece, of a whole file and of one in progress" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var small: [64]u8 = undefined;
    const list_request: wire.Request = .{ .list = difference_id };
    try testing.expectEqual(.unknown, fixture.source.get(serving_id, list_request, &small));
    const bytes = try testing.allocator.alloc(u8, Pieces.piece_size + 100_000);
    defer testing.allocator.free(bytes);
    var prng: base.Prng = .init(5);
    prng.fill(bytes);
    var list: [64]u8 = undefined;
    try makeDifference(&fixture.files, bytes, &list);
    try testing.expectEqual(.taken, fixture.source.get(serving_id, list_request, &small));
    try testing.expectEqualSlices(u8, &list, &small);
    const got = try testing.allocator.alloc(u8, Pieces.piece_size);
    defer testing.allocator.free(got);
    for (0..2) |round| {
        try testing.expectEqual(.taken, fixture.getPiece(0, got));
        try testing.expectEqualSlices(u8, bytes[0..Pieces.piece_size], got);
        try testing.expectEqual(.taken, fixture.getPiece(1, got[0..100_000]));
        try testing.expectEqualSlices(u8, bytes[Pieces.piece_size..], got[0..100_000]);
        if (round == 1) break;
        const fd = try fixture.files.openPart(difference_id);
        defer sys.close(fd);
        try fixture.files.finish(difference_id, fd);
    }
    try testing.expectEqual(.unknown, fixture.getPiece(2, got));
    // Another size than the list says is the edge's fault.
    try testing.expectEqual(.wrong, fixture.getPiece(1, got[0..99_999]));
}

test "a piece that is not there yet is absent, and one that the disk has damaged is not sent" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const bytes = try testing.allocator.alloc(u8, 2 * Pieces.piece_size);
    defer testing.allocator.free(bytes);
    @memset(bytes, 7);
    var list: [64]u8 = undefined;
    try makeDifference(&fixture.files, bytes, &list);
    const got = try testing.allocator.alloc(u8, Pieces.piece_size);
    defer testing.allocator.free(got);
    {
        const fd = try fixture.files.openToWrite(difference_id);
        defer sys.close(fd);
        _ = try sys.check(linux.ftruncate(fd, Pieces.piece_size));
        try testing.expectEqual(.taken, fixture.getPiece(0, got));
        try testing.expectEqual(.absent, fixture.getPiece(1, got));
        try sys.writeAllAt(fd, "x", 5);
        try testing.expectEqual(.absent, fixture.getPiece(0, got));
        try fixture.files.finish(difference_id, fd);
    }
    try testing.expectEqual(.refused, fixture.getPiece(0, got));
}

test "strangers get nothing: not by their address, and not without the key" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var buffer: [256]u8 = undefined;
    const greeting: wire.Greeting =
        .{ .kind = .hello, .from = asking_id, .to = serving_id, .nonce = @splat(3) };
    const right = wire.emitGreeting(
        &greeting,
        &wire.deriveKey(@splat(7)),
        null,
    );
    try testing.expectEqual(0, try fixture.exchangeRaw(stranger_ip, &right, &buffer));
    const wrong = wire.emitGreeting(&greeting, &wire.deriveKey(@splat(8)), null);
    try testing.expectEqual(0, try fixture.exchangeRaw(asking_ip, &wrong, &buffer));
    try testing.expectEqual(
        wire.greeting_size,
        try fixture.exchangeRaw(asking_ip, &right, buffer[0..wire.greeting_size]),
    );
    // It is heard again and followed by what was recorded: no record opens.
    var replay: [wire.greeting_size + wire.head_size + wire.sealed_request_size]u8 = @splat(9);
    replay[0..wire.greeting_size].* = right;
    std.mem.writeInt(
        u16,
        replay[wire.greeting_size..][0..2],
        wire.sealed_request_size,
        .big,
    );
    try testing.expectEqual(
        wire.greeting_size,
        try fixture.exchangeRaw(asking_ip, &replay, &buffer),
    );
}

test "an address has four connections, which end if they say nothing" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const to: base.Endpoint = .{ .ip = serving_ip, .port = fixture.port };
    var kept: [4]i32 = undefined;
    const begun_us = sys.monotonicUs();
    for (&kept) |*fd| fd.* = try connectFrom(asking_ip, to);
    defer for (kept) |fd| sys.close(fd);
    var buffer: [8]u8 = undefined;
    try testing.expectEqual(0, try fixture.exchangeRaw(asking_ip, "", &buffer));
    const refused_us = sys.monotonicUs() - begun_us;
    // They are closed after 5 s.
    for (kept) |fd| try testing.expectEqual(0, linux.read(fd, &buffer, buffer.len));
    const closed_us = sys.monotonicUs() - begun_us;
    try testing.expect(refused_us < closed_us);
    try testing.expect(closed_us >= 4 * std.time.us_per_s);
}

test "a state with another key, or without other edges, ends what an earlier one allowed" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var list: [32]u8 = undefined;
    try makeDifference(&fixture.files, "abc", &list);
    var got: [3]u8 = undefined;
    try testing.expectEqual(.taken, fixture.getPiece(0, &got));
    fixture.asking.set(siteOf(asking_id, fixture.port, &key_b));
    fixture.serving.set(siteOf(serving_id, fixture.port, &key_b));
    // The connection that was kept ends; the next one has the new key.
    var outcome = fixture.getPiece(0, &got);
    while (outcome == .unreachable_source) outcome = fixture.getPiece(0, &got);
    try testing.expectEqual(.taken, outcome);
    try testing.expectEqualStrings("abc", &got);
    fixture.serving.set(null);
    outcome = fixture.getPiece(0, &got);
    while (outcome == .taken) outcome = fixture.getPiece(0, &got);
    try testing.expectEqual(.unreachable_source, outcome);
}
