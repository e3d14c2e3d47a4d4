//! Tests copy_fetcher.zig with the server that edges use (peer_server.zig), over real sockets on
//! loopback addresses: one edge has layers, the other one is their second edge.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const CopyFetcher = @import("copy_fetcher.zig");
const PeerServer = @import("../difference/peer_server.zig");
const SitePeers = @import("../difference/site_peers.zig");
const freePort = @import("../difference/peer_server_test.zig").freePort;
const AreaList = store.AreaList;
const HeldCopy = store.HeldCopy;
const OwnCopy = store.OwnCopy;
const message = core.uplink.message;
const testing = std.testing;
const gpa = testing.allocator;
const block_size = AreaList.block_size;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const owner_id = uuid(1);
const second_id = uuid(2);
const owner_ip: base.Ip4 = .init(127, 0, 82, 1);
const second_ip: base.Ip4 = .init(127, 0, 82, 2);
const key = core.uplink.key_text.write(@splat(7));
const disk_size = 4 * AreaList.area_size;

fn siteOf(own: base.Uuid, port: u16) core.site.Edges {
    const edges = [_]core.site.Edges.EdgeDescription{ .{
        .id = owner_id,
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = owner_ip,
        .peerPort = port,
    }, .{
        .id = second_id,
        .weight = 1,
        .subnets = &.{},
        .draining = false,
        .address = second_ip,
        .peerPort = port,
    } };
    return .init(&.{ .key = &key, .edges = &edges }, own);
}

const Fixture = struct {
    owner_tmp: testing.TmpDir,
    second_tmp: testing.TmpDir,
    owner_path: [64]u8,
    second_path: [64]u8,
    serving: SitePeers,
    asking: SitePeers,
    server: *PeerServer,
    server_thread: std.Thread,
    is_over: std.atomic.Value(bool),
    fetcher: *CopyFetcher,

    fn init(fixture: *Fixture) !void {
        fixture.owner_tmp = testing.tmpDir(.{});
        fixture.second_tmp = testing.tmpDir(.{});
        const owner = try std.mem.print(
            &fixture.owner_path,
            ".zig-cache/tmp/{s}",
            .{&fixture.owner_tmp.sub_path},
        );
        const second = try std.mem.print(
            &fixture.second_path,
            ".zig-cache/tmp/{s}",
            .{&fixture.second_tmp.sub_path},
        );
        const port = try freePort(owner_ip);
        fixture.serving = .{ .io = testing.io };
        fixture.asking = .{ .io = testing.io };
        fixture.serving.set(siteOf(owner_id, port));
        fixture.asking.set(siteOf(second_id, port));
        fixture.server = try .create(gpa, .{
            .peers = &fixture.serving,
            .store_path = owner,
            .address = .{ .ip = owner_ip, .port = port },
        });
        // Listens before anybody connects.
        fixture.server.turn();
        fixture.is_over = .init(false);
        fixture.server_thread = try .spawn(.{}, serveAll, .{fixture});
        fixture.fetcher = try .create(gpa, .{
            .peers = &fixture.asking,
            .store_path = second,
            .reserve_bytes = 0,
        });
        // Its thread may wait long for a processor.
        fixture.fetcher.source.limits = .{ .greeting_ms = 600_000, .record_ms = 600_000 };
    }

    fn serveAll(fixture: *Fixture) void {
        while (!fixture.is_over.load(.acquire)) fixture.server.turn();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.is_over.store(true, .release);
        fixture.server_thread.join();
        fixture.fetcher.destroy();
        fixture.server.destroy();
        fixture.owner_tmp.cleanup();
        fixture.second_tmp.cleanup();
    }

    fn ownerFiles(fixture: *Fixture) store.LinuxFiles {
        return .fromFd(fixture.owner_tmp.dir.handle);
    }

    /// A device's layer has these bytes in the first block of each area; 0: it has none there.
    fn offer(fixture: *Fixture, device: base.Uuid, moment: u64, bytes: []const u8) !void {
        return fixture.offerLayer(device, device, moment, bytes);
    }

    fn offerLayer(
        fixture: *Fixture,
        device: base.Uuid,
        layer_id: base.Uuid,
        moment: u64,
        bytes: []const u8,
    ) !void {
        var on = fixture.ownerFiles();
        var name: store.files.Name = undefined;
        const dir = store.copy_names.ownDir(device, &name);
        var made: OwnCopy = try .begin(gpa, on.files(), dir, &.{
            .layer_id = layer_id,
            .binding = .{
                .class = .edge_persistent,
                .device_id = device,
                .version_id = .fromBytes(@splat(3)),
                .disk_size = disk_size,
            },
            .limit_bytes = 1 << 30,
            .sequence = 0,
        });
        defer made.deinit();
        for (bytes, 0..) |byte, area| {
            if (byte == 0) continue;
            const block: [block_size]u8 = @splat(byte);
            try made.add(.{ .block = area * AreaList.area_blocks, .bytes = &block });
        }
        var list = try made.finish(moment, 0);
        list.deinit(gpa);
    }

    /// Returns the bytes that came.
    fn turn(fixture: *Fixture) u64 {
        const from = @backingInt(SitePeers.Move.from_edge);
        const before = fixture.asking.movedBytes()[from];
        fixture.fetcher.turn();
        return fixture.asking.movedBytes()[from] - before;
    }

    fn withdraw(fixture: *Fixture, device: base.Uuid) !void {
        var on = fixture.ownerFiles();
        var name: store.files.Name = undefined;
        try OwnCopy.remove(on.files(), store.copy_names.ownDir(device, &name));
    }

    fn momentOf(fixture: *Fixture, layer_id: base.Uuid) !u64 {
        var on: store.LinuxFiles = .fromFd(fixture.second_tmp.dir.handle);
        var name: store.files.Name = undefined;
        const dir = store.copy_names.heldDir(owner_id, layer_id, &name);
        return (try HeldCopy.readHeader(on.files(), dir)).moment_unix_ms;
    }

    /// The copy is whole, and has these bytes.
    fn expectHeld(fixture: *Fixture, layer_id: base.Uuid, bytes: []const u8) !void {
        var on: store.LinuxFiles = .fromFd(fixture.second_tmp.dir.handle);
        const files = on.files();
        var dir_name: store.files.Name = undefined;
        const dir = store.copy_names.heldDir(owner_id, layer_id, &dir_name);
        var list = try HeldCopy.readList(gpa, files, dir);
        defer list.deinit(gpa);
        var name: store.files.Name = undefined;
        const areas = try files.open(store.copy_names.join(&name, dir, "areas"), .read);
        defer files.close(areas);
        const buffer = try gpa.create([AreaList.area_size]u8);
        defer gpa.destroy(buffer);
        for (bytes, 0..) |byte, area| {
            const entry = list.find(@intCast(area)) orelse {
                try testing.expectEqual(0, byte);
                continue;
            };
            const found = (try entry.readFrom(files, areas, buffer)).?;
            try testing.expect(entry.isContent(found));
            try testing.expect(std.mem.allEqual(u8, found, byte));
        }
    }
};

test "a second edge fetches what has changed alone, and keeps it while the owner is away" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try testing.expectEqual(0, fixture.turn());
    const device = uuid(10);
    try fixture.offer(device, 1000, "abc");
    // More than one page of offers.
    for (0..70) |number| try fixture.offer(uuid(@intCast(100 + number)), 2000, "x");
    try testing.expect(fixture.turn() >= 73 * block_size);
    try testing.expectEqual(71, fixture.fetcher.held_count.load(.monotonic));
    try testing.expectEqual(1000, fixture.fetcher.oldest_unix_ms.load(.monotonic));
    var said: [message.cache_copies_max]message.CacheCopies = undefined;
    try testing.expectEqualDeep(
        &[_]message.CacheCopies{.{ .edgeId = owner_id, .count = 71, .oldestUnixMs = 1000 }},
        fixture.fetcher.ofEdges(&said),
    );
    try testing.expectEqual(0, fixture.fetcher.behind_count.load(.monotonic));
    try fixture.expectHeld(device, "abc");
    // One area of three: the list, the offers, and one block.
    try fixture.offer(device, 3000, "aXc");
    const moved = fixture.turn();
    try testing.expect(moved >= block_size and moved < 3 * block_size);
    try fixture.expectHeld(device, "aXc");
    try testing.expectEqual(3000, try fixture.momentOf(device));
    // Nothing has changed since.
    try fixture.offer(device, 63_000, "aXc");
    const offers = 71 * wire.CopySummary.size;
    try testing.expectEqual(offers, fixture.turn());
    try testing.expectEqual(63_000, try fixture.momentOf(device));
    fixture.asking.set(null);
    try testing.expectEqual(0, fixture.turn());
    try testing.expectEqual(71, fixture.fetcher.held_count.load(.monotonic));
    try fixture.expectHeld(device, "aXc");
}

test "an area that has rotted at the owner is not taken, and the former copy stays" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const device = uuid(10);
    try fixture.offer(device, 1000, "ab");
    _ = fixture.turn();
    try fixture.offer(device, 2000, "cd");
    var on = fixture.ownerFiles();
    const files = on.files();
    var dir: store.files.Name = undefined;
    var name: store.files.Name = undefined;
    const path = store.copy_names.join(&name, store.copy_names.ownDir(device, &dir), "areas");
    const handle = try files.open(path, .write);
    defer files.close(handle);
    try files.write(handle, "x", AreaList.area_size + 5);
    _ = fixture.turn();
    try testing.expectEqual(1, fixture.fetcher.behind_count.load(.monotonic));
    try testing.expectEqual(1000, try fixture.momentOf(device));
    try fixture.expectHeld(device, "ab");
    // The owner makes all of its copy again, as nothing else would ever write the area.
    try fixture.offer(device, 3000, "cd");
    _ = fixture.turn();
    try testing.expectEqual(0, fixture.fetcher.behind_count.load(.monotonic));
    try fixture.expectHeld(device, "cd");
}

test "copies leave the disk's reserve free, and one that its owner has no more goes after a month" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const device = uuid(10);
    const recent = sys.unixMs();
    try fixture.offer(device, recent, "ab");
    fixture.fetcher.reserve_bytes = std.math.maxInt(u64) / 4;
    _ = fixture.turn();
    try testing.expectEqual(1, fixture.fetcher.behind_count.load(.monotonic));
    try testing.expectError(error.NotFound, fixture.momentOf(device));
    fixture.fetcher.reserve_bytes = 0;
    _ = fixture.turn();
    try testing.expectEqual(recent, try fixture.momentOf(device));
    const old = recent - core.layer_copies.copy_life.kept_ms - 1000;
    try fixture.offer(uuid(11), old, "cd");
    _ = fixture.turn();
    try testing.expectEqual(old, try fixture.momentOf(uuid(11)));
    for ([_]base.Uuid{ device, uuid(11) }) |layer| try fixture.withdraw(layer);
    _ = fixture.turn();
    try testing.expectEqual(recent, try fixture.momentOf(device));
    try testing.expectError(error.NotFound, fixture.momentOf(uuid(11)));
}

test "a layer that was made again, or set back, does not replace the copy of its former state" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const device = uuid(10);
    try fixture.offer(device, 5000, "ab");
    _ = fixture.turn();
    // The owner's disk as it was.
    try fixture.offer(device, 4000, "aa");
    _ = fixture.turn();
    try testing.expectEqual(1, fixture.fetcher.behind_count.load(.monotonic));
    try testing.expectEqual(5000, try fixture.momentOf(device));
    try fixture.expectHeld(device, "ab");
    // The disk was replaced, and the device has written to a new layer.
    const recent = sys.unixMs();
    try fixture.offer(device, recent, "ab");
    _ = fixture.turn();
    try fixture.withdraw(device);
    try fixture.offerLayer(device, uuid(20), recent, "x");
    _ = fixture.turn();
    try testing.expectEqual(0, fixture.fetcher.behind_count.load(.monotonic));
    try fixture.expectHeld(uuid(20), "x");
    try fixture.expectHeld(device, "ab");
}

test "no copy is younger than it is by the clock of the edge that keeps it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const before = sys.unixMs();
    try fixture.offer(uuid(10), std.math.maxInt(u64), "ab");
    _ = fixture.turn();
    const moment = try fixture.momentOf(uuid(10));
    try testing.expect(moment >= before and moment <= sys.unixMs());
    _ = fixture.turn();
    try testing.expectEqual(moment, try fixture.momentOf(uuid(10)));
}

test "a slow edge has its limit in each turn, and what came of a layer that it drops goes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const device = uuid(10);
    try fixture.offer(device, 1000, "ab");
    fixture.fetcher.edge_limit_ms = 0;
    _ = fixture.turn();
    try testing.expectEqual(1, fixture.fetcher.behind_count.load(.monotonic));
    var name: store.files.Name = undefined;
    const dir = store.copy_names.heldDir(owner_id, device, &name);
    try fixture.second_tmp.dir.access(testing.io, dir, .{});
    try fixture.withdraw(device);
    _ = fixture.turn();
    try testing.expectError(
        error.FileNotFound,
        fixture.second_tmp.dir.access(testing.io, dir, .{}),
    );
}

test "a copy that had come whole when the edge was killed is brought over at its start" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const device = uuid(10);
    try fixture.offer(device, 1000, "ab");
    _ = fixture.turn();
    var on: store.LinuxFiles = .fromFd(fixture.second_tmp.dir.handle);
    var names: [3]store.files.Name = undefined;
    const dir = store.copy_names.heldDir(owner_id, device, &names[0]);
    try on.files().rename(
        store.copy_names.join(&names[1], dir, "list"),
        store.copy_names.join(&names[2], dir, "list.whole"),
    );
    // The owner is lost.
    fixture.asking.set(null);
    fixture.fetcher.is_complete = false;
    _ = fixture.turn();
    try testing.expectEqual(1, fixture.fetcher.held_count.load(.monotonic));
    try fixture.expectHeld(device, "ab");
}
