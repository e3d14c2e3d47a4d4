//! Tests repairer.zig with two stores and the server of the other edge, over real sockets on
//! loopback addresses. Every wait ends with an event.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const lz4 = @import("codec").lz4;
const store = @import("store");
const sys = @import("../sys.zig");
const PeerServer = @import("../difference/peer_server.zig");
const PeerSource = @import("../difference/peer_source.zig");
const ReadWorkers = @import("../stream/read_workers.zig");
const Repairer = @import("repairer.zig");
const SitePeers = @import("../difference/site_peers.zig");
const freePort = @import("../difference/peer_server_test.zig").freePort;
const linux = std.os.linux;
const testing = std.testing;
const gpa = testing.allocator;
const block_size = store.block.block_size;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const own_id = uuid(1);
const other_id = uuid(2);
const version_id = uuid(3);
const own_ip: base.Ip4 = .init(127, 0, 82, 1);
const other_ip: base.Ip4 = .init(127, 0, 82, 2);
const key = core.uplink.key_text.write(@splat(7));
/// In two leaves.
const block_count = 110;
/// One of them has these in packed units of eight.
const packed_begin = 16;
const packed_end = 40;
/// It ends within its last block.
const disk_size = block_count * block_size - 512;

const Ports = struct { own: u16, other: u16 };

fn siteOf(own: base.Uuid, ports: Ports) core.site.Edges {
    const edges = [_]core.site.Edges.EdgeDescription{
        described(own_id, own_ip, ports.own),
        described(other_id, other_ip, ports.other),
    };
    return .init(&.{ .key = &key, .edges = &edges }, own);
}

fn described(id: base.Uuid, ip: base.Ip4, port: u16) core.site.Edges.EdgeDescription {
    return .{
        .id = id,
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = ip,
        .peerPort = port,
    };
}

/// One edge's store, with the same version as the other's.
const Edge = struct {
    tmp: testing.TmpDir,
    path: [64]u8,
    path_size: usize,
    on: store.LinuxFiles,
    entries: [block_count]store.block.Entry,

    fn init(edge: *Edge, number: u8, packs: bool) !void {
        edge.tmp = testing.tmpDir(.{ .iterate = true });
        const path = try std.mem.print(&edge.path, ".zig-cache/tmp/{s}", .{&edge.tmp.sub_path});
        edge.path_size = path.len;
        edge.on = .fromFd(edge.tmp.dir.handle);
        const files = edge.on.files();
        try store.Store.make(files, .{ .id = uuid(20 + number), .seed = @splat(number) });
        var opened: store.Store = try .open(gpa, files, .{ .cache_nodes = 16 });
        defer opened.close(gpa);
        var change = try opened.lockForChange();
        defer change.end();
        var data: store.Appender = try .init(gpa, &opened.data, 1 << 30);
        defer data.deinit(gpa);
        var nodes: store.Appender = try .init(gpa, &opened.nodes, 1 << 30);
        defer nodes.deinit(gpa);
        var builder: store.TreeBuilder = .init(&opened.cache, &nodes, .zeros, block_count);
        for (&edge.entries, 0..) |*entry, index| {
            const bytes = blockOf(index);
            const is_packed = packs and index >= packed_begin and index < packed_end;
            if (is_packed and index % store.unit.blocks_max == 0) try edge.pack(&data, index);
            if (!is_packed) entry.location = try data.append(&bytes);
            entry.hash = store.block.hashOf(&bytes);
            try builder.put(index, entry.*);
        }
        const root = try builder.finish();
        try data.sync();
        try nodes.sync();
        try change.commit(&.{
            .store = opened.id,
            .organization = .zero,
            .vdisk = uuid(4),
            .version = version_id,
            .parent = .zero,
            .number = 1,
            .incarnation = 0,
            .counter = 1,
            .created_unix_ms = 0,
            .disk_size = disk_size,
            .root = root,
        });
    }

    fn deinit(edge: *Edge) void {
        edge.tmp.cleanup();
    }

    fn pathOf(edge: *const Edge) []const u8 {
        return edge.path[0..edge.path_size];
    }

    fn pack(edge: *Edge, data: *store.Appender, first: usize) !void {
        const blocks_max = store.unit.blocks_max;
        const table = try gpa.create(lz4.Table);
        defer gpa.destroy(table);
        var raw: [blocks_max]store.block.Block = undefined;
        for (&raw, first..) |*bytes, index| bytes.* = blockOf(index);
        var room: store.unit.Stored = undefined;
        const stored = store.unit.pack(.{ .quick = table }, &room, std.mem.asBytes(&raw)).?;
        const at = try data.appendUnit(stored);
        for (edge.entries[first..][0..blocks_max], 0..) |*entry, index| entry.location =
            store.unit.locationOf(at.file, at.sector, stored.len, blocks_max, index);
    }

    fn damage(edge: *Edge, index: u64) !void {
        const files = edge.on.files();
        const handle = try files.open("extents/000001", .write);
        defer files.close(handle);
        try files.write(handle, "damaged", edge.entries[index].location.offset() + 3);
    }

    fn isSound(edge: *Edge, index: u64) !bool {
        const entry = &edge.entries[index];
        var data: store.file_set.FileSet = .init(edge.on.files(), .extents);
        defer data.deinit();
        if (entry.location.is_packed) {
            const unit = try gpa.create(store.UnitRepair);
            defer gpa.destroy(unit);
            try unit.read(&data, entry.location);
            return unit.isSound(entry);
        }
        var bytes: store.block.Block = undefined;
        try testing.expect(try data.read(entry.location, 0, &bytes));
        return std.mem.eql(u8, &bytes, &blockOf(index));
    }
};

fn blockOf(index: usize) store.block.Block {
    var bytes: store.block.Block = @splat(@intCast(index + 1));
    if (index == block_count - 1) @memset(bytes[block_size - 512 ..], 0);
    return bytes;
}

const Fixture = struct {
    own: Edge,
    other: Edge,
    opened: store.Store,
    version: store.OpenVersion,
    peers: SitePeers,
    others: SitePeers,
    /// Of the other edge, and of this one.
    servers: [2]*PeerServer,
    server_threads: [2]std.Thread,
    is_over: std.atomic.Value(bool),
    mended_fd: i32,
    workers: ReadWorkers,
    repairer: *Repairer,

    fn init(fixture: *Fixture) !void {
        try fixture.own.init(1, true);
        try fixture.other.init(2, false);
        const ports: Ports = .{ .own = try freePort(own_ip), .other = try freePort(other_ip) };
        fixture.peers = .{ .io = testing.io };
        fixture.others = .{ .io = testing.io };
        fixture.peers.set(siteOf(own_id, ports));
        fixture.others.set(siteOf(other_id, ports));
        fixture.mended_fd = @intCast(try sys.check(linux.eventfd(0, linux.EFD.CLOEXEC)));
        const path = fixture.own.pathOf();
        fixture.repairer = try .create(gpa, &fixture.peers, path, fixture.mended_fd);
        fixture.servers = .{ try .create(gpa, .{
            .peers = &fixture.others,
            .store_path = fixture.other.pathOf(),
            .address = .{ .ip = other_ip, .port = ports.other },
        }), try .create(gpa, .{
            .peers = &fixture.peers,
            .store_path = path,
            .address = .{ .ip = own_ip, .port = ports.own },
            .repairer = fixture.repairer,
        }) };
        fixture.is_over = .init(false);
        for (fixture.servers, &fixture.server_threads) |server, *thread| {
            // Listens before anybody connects.
            server.turn();
            thread.* = try .spawn(.{}, serveAll, .{ fixture, server });
        }
        fixture.opened = try .open(gpa, fixture.own.on.files(), .{ .cache_nodes = 16 });
        fixture.version = try fixture.opened.openVersion(version_id);
        fixture.workers = try .init(gpa, .{ .threads = 2, .tasks = 8, .cache_nodes = 16 });
        fixture.workers.repairs = fixture.repairer.repairs();
        try fixture.repairer.start();
        try fixture.workers.start();
    }

    fn serveAll(fixture: *Fixture, server: *PeerServer) void {
        while (!fixture.is_over.load(.acquire)) server.turn();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.is_over.store(true, .release);
        for (fixture.server_threads) |thread| thread.join();
        fixture.repairer.destroy();
        sys.close(fixture.mended_fd);
        fixture.workers.deinit(gpa);
        fixture.version.close();
        fixture.opened.close(gpa);
        for (fixture.servers) |server| server.destroy();
        fixture.own.deinit();
        fixture.other.deinit();
    }

    fn read(fixture: *Fixture, offset: u64, size: u32) !*ReadWorkers.Task {
        const task = fixture.workers.take().?;
        task.disk = try .init(&.{ .version = fixture.version });
        task.layer = null;
        task.begin = offset;
        task.result = {};
        task.parts.clear();
        task.parts.appendAssumeCapacity(.{ .offset = offset, .size = size, .is_own = false });
        fixture.workers.order(task);
        return fixture.awaitTask();
    }

    fn awaitTask(fixture: *Fixture) *ReadWorkers.Task {
        while (true) {
            if (fixture.workers.takeEnded()) |task| return task;
            sys.waitReadable(fixture.workers.endedFd(), 10_000);
        }
    }

    fn expectRead(fixture: *Fixture, first: u64, count: u64) !void {
        const offset = first * block_size;
        const size: u32 = @intCast(@min(count * block_size, disk_size - offset));
        const task = try fixture.read(offset, size);
        defer fixture.workers.release(task);
        try task.result;
        for (0..size) |at| {
            const whole = blockOf(@intCast(first + at / block_size));
            try testing.expectEqual(whole[at % block_size], task.buffer[at]);
        }
    }

    fn expectFailure(fixture: *Fixture, first: u64) !void {
        const task = try fixture.read(first * block_size, block_size);
        defer fixture.workers.release(task);
        try testing.expectError(error.Damaged, task.result);
    }
};

test "a read of damaged blocks gets the right bytes, and the disk has them afterwards" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const places = [_]u64{ 0, 5, 6, 103, block_count - 1 };
    for (places) |index| try fixture.own.damage(index);
    try fixture.expectRead(0, 8);
    try fixture.expectRead(100, block_count - 100);
    for (places) |index| try testing.expect(try fixture.own.isSound(index));
    // By themselves from now on.
    fixture.others.set(null);
    try fixture.expectRead(0, block_count);
}

test "a damaged unit is repaired with all blocks that the other edge has, and lacks the others" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_]u64{ 16, 24, 32 }) |index| try fixture.own.damage(index);
    try fixture.expectRead(20, 1);
    for (16..24) |index| try testing.expect(try fixture.own.isSound(index));
    const whole = fixture.repairer.countsNow();
    try testing.expectEqual(8, whole.constSlice()[0].repaired);
    try testing.expectEqual(0, whole.constSlice()[0].failed);
    // One block is lost at both.
    try fixture.other.damage(27);
    try fixture.expectFailure(27);
    try testing.expect(!try fixture.own.isSound(28));
    try fixture.expectRead(28, 1);
    try fixture.expectRead(24, 3);
    try fixture.expectFailure(27);
    for (24..32) |index| try testing.expectEqual(index != 27, try fixture.own.isSound(index));
    // By itself from now on; what is damaged stays so.
    fixture.others.set(null);
    try fixture.expectRead(16, 11);
    try fixture.expectFailure(35);
}

test "a block that no other edge has stays an error, and bytes that differ are never written" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for ([_]u64{ 7, 8 }) |index| try fixture.own.damage(index);
    try fixture.other.damage(7);
    try fixture.expectFailure(7);
    try testing.expect(!try fixture.own.isSound(7));
    try fixture.expectRead(8, 1);
    // The other one has lost the version.
    try fixture.own.damage(9);
    try fixture.other.tmp.dir.deleteTree(testing.io, "versions");
    try fixture.expectFailure(9);
    try testing.expect(!try fixture.own.isSound(9));
}

test "a site without other edges answers with the error at once" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.peers.set(null);
    try fixture.own.damage(3);
    try fixture.expectFailure(3);
    try fixture.expectRead(4, 1);
}

/// As another edge that repairs its own store.
fn askFor(fixture: *Fixture, index: u64, bytes: *store.block.Block) !PeerOutcome {
    const source = try gpa.create(PeerSource);
    defer gpa.destroy(source);
    source.* = .{
        .peers = &fixture.others,
        // The server's thread may wait long for a processor.
        .limits = .{ .greeting_ms = 600_000, .record_ms = 600_000 },
    };
    defer source.deinit();
    const content: @FieldType(PeerRequest, "content") =
        .{ .version = version_id, .what = .block, .index = index };
    return source.get(own_id, .{ .content = content }, bytes);
}

const PeerOutcome = core.difference.FetchPlan.Outcome;
const PeerRequest = @import("wire").peer_transfer.Request;

/// Waits until nothing that was reported is left.
fn awaitReported(fixture: *Fixture) !void {
    var count: u64 = undefined;
    _ = try sys.check(linux.read(fixture.mended_fd, @ptrCast(&count), @sizeOf(u64)));
}

test "damage that another edge meets is repaired, in blocks and in units" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var bytes: store.block.Block = undefined;
    for ([_]u64{ 7, 27 }) |index| {
        try fixture.own.damage(index);
        try testing.expectEqual(.refused, try askFor(&fixture, index, &bytes));
        try awaitReported(&fixture);
        try testing.expect(try fixture.own.isSound(index));
        try testing.expectEqual(.taken, try askFor(&fixture, index, &bytes));
        try testing.expectEqual(blockOf(index), bytes);
    }
    try testing.expect(fixture.repairer.takeMended().?.eql(version_id));
    try testing.expectEqual(null, fixture.repairer.takeMended());
    try testing.expectEqual(9, fixture.repairer.countsNow().constSlice()[0].repaired);
}

test "damage that nobody can repair is tried once, and what is no block is passed over" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.own.damage(7);
    try fixture.other.damage(7);
    fixture.repairer.report(version_id, block_count);
    try awaitReported(&fixture);
    fixture.repairer.report(uuid(77), 0);
    try awaitReported(&fixture);
    var bytes: store.block.Block = undefined;
    for (0..2) |_| {
        try testing.expectEqual(.refused, try askFor(&fixture, 7, &bytes));
        try awaitReported(&fixture);
    }
    try testing.expectEqual(null, fixture.repairer.takeMended());
    const counts = fixture.repairer.countsNow();
    try testing.expectEqual(1, counts.constSlice()[0].failed);
    // A device that waits for it is another matter.
    try fixture.expectFailure(7);
    try testing.expectEqual(2, fixture.repairer.countsNow().constSlice()[0].failed);
}
