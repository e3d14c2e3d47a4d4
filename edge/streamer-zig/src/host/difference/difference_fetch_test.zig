//! Tests difference_fetch.zig with edges that answer over real sockets: one that is honest, one
//! whose file and list were changed together, and one that does not run.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const DifferenceFetch = @import("difference_fetch.zig");
const DifferenceFiles = @import("difference_files.zig");
const PeerServer = @import("peer_server.zig");
const SitePeers = @import("site_peers.zig");
const free_port = @import("peer_server_test.zig").freePort;
const Pieces = core.difference.Pieces;
const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const asking_id = uuid(1);
const difference_id = uuid(9);
const last_size = 70_000;
const difference_size = 2 * Pieces.piece_size + last_size;

/// An edge that answers, with a store of its own.
const Edge = struct {
    id: base.Uuid,
    path: [96]u8,
    files: DifferenceFiles,
    peers: SitePeers,
    server: *PeerServer,
    thread: std.Thread,
    is_over: std.atomic.Value(bool),

    fn init(edge: *Edge, tmp: *testing.TmpDir, number: u8, port: u16) !void {
        edge.id = uuid(number);
        try tmp.dir.createDirPath(testing.io, &.{'a' + number});
        const names = .{ &tmp.sub_path, 'a' + number };
        const path = try std.mem.print(&edge.path, ".zig-cache/tmp/{s}/{c}", names);
        edge.files = try .open(path);
        edge.peers = .{ .io = testing.io };
        edge.peers.set(siteOf(edge.id, port));
        edge.server = try .create(testing.allocator, .{
            .peers = &edge.peers,
            .store_path = path,
            .address = .{ .ip = ipOf(number), .port = port },
        });
        // Listens before anybody connects.
        edge.server.turn();
        edge.is_over = .init(false);
        edge.thread = try .spawn(.{}, serveAll, .{edge});
    }

    fn serveAll(edge: *Edge) void {
        while (!edge.is_over.load(.acquire)) edge.server.turn();
    }

    fn deinit(edge: *Edge) void {
        edge.is_over.store(true, .release);
        edge.thread.join();
        edge.server.destroy();
        edge.files.close();
    }

    /// Stores the difference, and its list as these bytes need it.
    fn hold(edge: *Edge, bytes: []const u8) ![3 * Pieces.hash_size]u8 {
        const pieces = Pieces.of(bytes.len).?;
        var list: [3 * Pieces.hash_size]u8 = undefined;
        for (0..pieces.count()) |number| {
            const index: u32 = @intCast(number);
            const piece = bytes[pieces.offsetOf(index)..][0..pieces.sizeOf(index)];
            list[number * Pieces.hash_size ..][0..Pieces.hash_size].* = Pieces.digestOf(piece);
        }
        const fd = try edge.files.openToWrite(difference_id);
        defer sys.close(fd);
        try sys.writeAllAt(fd, bytes, 0);
        try edge.files.writeList(difference_id, &list);
        try edge.files.finish(difference_id, fd);
        return list;
    }
};

fn ipOf(number: u8) base.Ip4 {
    return .init(127, 0, 82, number);
}

/// Edge 4 is named and does not run.
fn siteOf(own: base.Uuid, port: u16) core.site.Edges {
    var edges: [4]core.site.Edges.EdgeDescription = undefined;
    for (&edges, 1..) |*edge, number| edge.* = .{
        .id = uuid(@intCast(number)),
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = ipOf(@intCast(number)),
        .peerPort = port,
    };
    const key = core.uplink.key_text.write(@splat(7));
    return .init(&.{ .key = &key, .edges = &edges }, own);
}

const Fixture = struct {
    tmp: testing.TmpDir,
    path: [96]u8,
    path_size: usize,
    peers: SitePeers,
    honest: Edge,
    liar: Edge,
    bytes: []u8,
    list: [3 * Pieces.hash_size]u8,
    fetch: DifferenceFetch,

    fn init(fixture: *Fixture) !void {
        const port = try free_port(ipOf(2));
        fixture.tmp = testing.tmpDir(.{});
        const names = .{&fixture.tmp.sub_path};
        const path = try std.mem.print(&fixture.path, ".zig-cache/tmp/{s}", names);
        fixture.path_size = path.len;
        fixture.peers = .{ .io = testing.io };
        fixture.peers.set(siteOf(asking_id, port));
        try fixture.honest.init(&fixture.tmp, 2, port);
        try fixture.liar.init(&fixture.tmp, 3, port);
        fixture.bytes = try testing.allocator.alloc(u8, difference_size);
        var prng: base.Prng = .init(5);
        prng.fill(fixture.bytes);
        fixture.list = try fixture.honest.hold(fixture.bytes);
        fixture.bytes[Pieces.piece_size + 1] ^= 1;
        _ = try fixture.liar.hold(fixture.bytes);
        fixture.bytes[Pieces.piece_size + 1] ^= 1;
        fixture.fetch = .{
            .thread = .{
                .context = .{
                    .gpa = testing.allocator,
                    .io = testing.io,
                    .client_options = undefined,
                    .rotation = undefined,
                    .wake_fd = -1,
                    .store_path = fixture.path[0..fixture.path_size],
                    .peers = &fixture.peers,
                },
                .job_id = uuid(8),
            },
            .difference_id = difference_id,
            .pieces = Pieces.of(difference_size).?,
            .list_sha256 = Pieces.digestOf(&fixture.list),
            .from_control_plane = false,
        };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.honest.deinit();
        fixture.liar.deinit();
        testing.allocator.free(fixture.bytes);
        fixture.tmp.cleanup();
    }

    fn expectWhole(fixture: *Fixture) !void {
        var files: DifferenceFiles = try .open(fixture.path[0..fixture.path_size]);
        defer files.close();
        const fd = try files.openWhole(difference_id);
        defer sys.close(fd);
        try testing.expectEqual(difference_size, DifferenceFiles.sizeOf(fd));
        const got = try testing.allocator.alloc(u8, difference_size);
        defer testing.allocator.free(got);
        try testing.expectEqual(difference_size, try sys.readAt(fd, got, 0));
        try testing.expect(std.mem.eql(u8, fixture.bytes, got));
    }
};

test "a fetch leaves an edge that lies for the next one, names it, and ends with right bytes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const fetch = &fixture.fetch;
    for ([_]u8{ 4, 3, 2 }) |number| fetch.edges.appendAssumeCapacity(uuid(number));
    try fetch.work();
    try fixture.expectWhole();
    var text: [128]u8 = undefined;
    try testing.expectEqualStrings(
        try std.mem.print(&text, "edge {f} sent a wrong list of pieces", .{uuid(3)}),
        fetch.thread.message.constSlice(),
    );
    try testing.expectEqual(difference_size, fetch.thread.done_bytes.load(.monotonic));
}

test "a wrong piece is asked of the next edge; what an earlier process has got is not asked again" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const fetch = &fixture.fetch;
    for ([_]u8{ 3, 2 }) |number| fetch.edges.appendAssumeCapacity(uuid(number));
    {
        var files: DifferenceFiles = try .open(fixture.path[0..fixture.path_size]);
        defer files.close();
        try files.writeList(difference_id, &fixture.list);
        const fd = try files.openToWrite(difference_id);
        defer sys.close(fd);
        // The first piece is right; the second was cut off by a kill.
        try sys.writeAllAt(fd, fixture.bytes[0 .. Pieces.piece_size + 1000], 0);
        // Both edges have lost the first one.
        for ([_]*Edge{ &fixture.liar, &fixture.honest }) |edge| {
            const other = try edge.files.openToWrite(difference_id);
            defer sys.close(other);
            try sys.writeAllAt(other, "x", 0);
        }
    }
    try fetch.work();
    try fixture.expectWhole();
    var text: [128]u8 = undefined;
    try testing.expectEqualStrings(
        try std.mem.print(&text, "edge {f} sent a wrong piece", .{uuid(3)}),
        fetch.thread.message.constSlice(),
    );
}

test "if all edges lie, nothing is made, and each is named" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const fetch = &fixture.fetch;
    fetch.edges.appendAssumeCapacity(uuid(3));
    try testing.expectError(error.Failed, fetch.work());
    var text: [256]u8 = undefined;
    try testing.expectEqualStrings(
        try std.mem.print(
            &text,
            "edge {f} sent a wrong list of pieces. " ++
                "No edge and no control plane is left to ask for the difference.",
            .{uuid(3)},
        ),
        fetch.thread.message.constSlice(),
    );
}
