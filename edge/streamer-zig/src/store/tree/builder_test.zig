//! Tests trees against a list of their blocks: what is built is what is walked, searched, compared
//! and cached.

const std = @import("std");
const base = @import("base");
const store_module = @import("../store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const LinuxFiles = store_module.LinuxFiles;
const node_module = store_module.node;
const NodeCache = store_module.node_cache.NodeCache;
const SpiedFiles = @import("../files/spied_files.zig");
const TreeBuilder = store_module.TreeBuilder;
const TreeWalker = store_module.tree_walk.TreeWalker;
const testing = std.testing;
const gpa = testing.allocator;

/// Three levels of nodes, the last one begun.
const block_count = 102 * 102 + 150;
/// What the list of blocks has for each: 0 for zeros, otherwise a stamp of its hash and location.
const Disk = [block_count]u16;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    spied: SpiedFiles,
    set: store_module.file_set.FileSet,
    cache: NodeCache,

    fn init(fixture: *Fixture) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.spied = .init(&fixture.on);
        try fixture.on.files().makeDir("nodes");
        fixture.set = .init(fixture.spied.files(), .nodes);
        fixture.cache = try .init(gpa, 16);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.cache.deinit(gpa);
        fixture.set.deinit();
        fixture.tmp.cleanup();
    }

    /// Returns the root, and the number of nodes that were written.
    fn build(fixture: *Fixture, root: block.Entry, from: *const Disk, to: *const Disk) !Built {
        var nodes: Appender = try .init(gpa, &fixture.set, 1 << 30);
        defer nodes.deinit(gpa);
        var builder: TreeBuilder = .init(&fixture.cache, &nodes, root, block_count);
        for (from, to, 0..) |before, after, index| {
            if (before == after and index % 7 != 0) continue;
            try testing.expect((try builder.get(index)).location.eql(entryOf(before).location));
            try builder.put(index, entryOf(after));
            try testing.expectEqual(entryOf(after), try builder.get(index));
        }
        const made = try builder.finish();
        try nodes.sync();
        return .{ .root = made, .written = nodes.written_blocks };
    }

    fn expectWalk(fixture: *Fixture, root: block.Entry, disk: *const Disk) !void {
        var walker: TreeWalker = .init(&fixture.set, root, 2);
        var next: u64 = 0;
        while (walker.next()) |step| {
            if (step.level) |level| {
                try testing.expectEqual(0, step.first % node_module.blocksBelow(level));
                try walker.enter(&step);
                continue;
            }
            for (disk[next..step.first]) |stamp| try testing.expectEqual(0, stamp);
            try testing.expectEqual(entryOf(disk[step.first]), step.entry);
            next = step.first + 1;
        }
        for (disk[next..]) |stamp| try testing.expectEqual(0, stamp);
    }
};

const Built = struct { root: block.Entry, written: u64 };

fn entryOf(stamp: u16) block.Entry {
    if (stamp == 0) return .zeros;
    var hash: block.Hash = @splat(7);
    std.mem.writeInt(u16, hash[30..32], stamp, .big);
    return .{ .hash = hash, .location = .{ .file = 1, .block = stamp } };
}

/// Nodes above blocks that differ and that are not all zeros afterwards.
fn changedNodes(from: *const Disk, to: *const Disk) u64 {
    var count: u64 = 0;
    for (0..3) |level| {
        const below: usize = @intCast(node_module.blocksBelow(@intCast(level)));
        var first: usize = 0;
        while (first < block_count) : (first += below) {
            const end = @min(block_count, first + below);
            if (std.mem.eql(u16, from[first..end], to[first..end])) continue;
            count += @intFromBool(!std.mem.allEqual(u16, to[first..end], 0));
        }
    }
    return count;
}

const Reported = struct {
    differs: [block_count]bool = @splat(false),
    end: u64 = 0,

    fn add(reported: *Reported, range: store_module.compare.Range) void {
        // Ascending, and not touching the one before.
        std.debug.assert(range.first > reported.end or reported.end == 0);
        std.debug.assert(range.count > 0);
        reported.end = range.first + range.count;
        for (reported.differs[@intCast(range.first)..][0..@intCast(range.count)]) |*differs|
            differs.* = true;
    }
};

test "trees of many changes have the blocks that were put, write each changed node once, and differ where they do" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var prng: base.Prng = .init(5);
    const disks = try gpa.alloc(Disk, 6);
    defer gpa.free(disks);
    var roots: [6]block.Entry = @splat(.zeros);
    disks[0] = @splat(0);
    const places = [_]usize{ 0, 1, 101, 102, 203, 204, 102 * 102 - 1, 102 * 102, block_count - 1 };
    for (disks[1..5], disks[0..4], 1..) |*disk, *before, at| {
        disk.* = before.*;
        for (places) |place| disk[place] = @intCast(prng.below(3) * (at * 1000 + place % 997));
        for (0..prng.below(200)) |_| {
            const place: usize = @intCast(prng.below(block_count));
            disk[place] = @intCast(prng.below(2) * (at * 1000 + place % 997 + 1));
        }
        const built = try fixture.build(roots[at - 1], before, disk);
        roots[at] = built.root;
        try testing.expectEqual(changedNodes(before, disk), built.written);
        try fixture.expectWalk(built.root, disk);
    }
    // All zeros again: no root.
    disks[5] = @splat(0);
    const emptied = try fixture.build(roots[4], &disks[4], &disks[5]);
    try testing.expect(emptied.root.isZeros());
    try testing.expectEqual(0, emptied.written);
    for (disks, roots) |*a, a_root| for (disks, roots) |*b, b_root| {
        var reported: Reported = .{};
        var comparison: store_module.compare.Comparison(*Reported) = .{
            .nodes = &fixture.set,
            .context = &reported,
            .report = Reported.add,
        };
        try comparison.run(.{ .root = a_root, .level = 2 }, .{ .root = b_root, .level = 2 });
        for (a, b, reported.differs) |one, other, differs|
            try testing.expectEqual(one != other, differs);
    };
}

/// The clock of a cache: which nodes it keeps.
const Clock = struct {
    slots: [16]struct { node: usize, is_used: bool } = undefined,
    count: usize = 0,
    hand: usize = 0,
    loads: u64 = 0,

    fn get(clock: *Clock, node: usize) void {
        for (clock.slots[0..clock.count]) |*slot| if (slot.node == node) {
            slot.is_used = true;
            return;
        };
        clock.loads += 1;
        const at = if (clock.count < clock.slots.len) blk: {
            clock.count += 1;
            break :blk clock.count - 1;
        } else blk: {
            while (clock.slots[clock.hand].is_used) clock.advance();
            const found = clock.hand;
            clock.hand = (clock.hand + 1) % clock.slots.len;
            break :blk found;
        };
        clock.slots[at] = .{ .node = node, .is_used = true };
    }

    fn advance(clock: *Clock) void {
        clock.slots[clock.hand].is_used = false;
        clock.hand = (clock.hand + 1) % clock.slots.len;
    }
};

test "a cache keeps the nodes that were used lately, and each has its own bytes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var nodes: Appender = try .init(gpa, &fixture.set, 1 << 30);
    defer nodes.deinit(gpa);
    var entries: [70]block.Entry = undefined;
    for (&entries, 1..) |*entry, stamp| {
        var node: node_module.Node = .empty(@intCast(stamp % 2));
        node.set(5, entryOf(@intCast(stamp)));
        node.seal();
        entry.* = .{ .hash = node.hash(), .location = try nodes.append(std.mem.asBytes(&node)) };
    }
    try nodes.sync();
    var prng: base.Prng = .init(9);
    var clock: Clock = .{};
    for (0..4000) |round| {
        // Mostly a few nodes, sometimes any.
        const index: usize = @intCast(prng.below(if (prng.chance(1, 3)) entries.len else 14));
        const level: u8 = @intCast((index + 1) % 2);
        clock.get(index);
        SpiedFiles.in_memory = 2;
        const cached = if (round % 2 == 0)
            try fixture.cache.get(&fixture.set, &entries[index], level)
        else
            (try fixture.cache.getNow(&fixture.set, &entries[index], level)) orelse
                return error.NotInMemory;
        try testing.expectEqual(entryOf(@intCast(index + 1)), cached.node.entry(5));
        try testing.expectEqual(clock.loads, fixture.cache.loads);
        if (round % 1000 == 999) {
            fixture.cache.clear();
            clock.count = 0;
            clock.hand = 0;
        }
    }
    // Another hash or level at a known location comes from a damaged node.
    var wrong = entries[0];
    _ = try fixture.cache.get(&fixture.set, &wrong, 1);
    try testing.expectError(error.Damaged, fixture.cache.get(&fixture.set, &wrong, 0));
    wrong.hash[0] ^= 1;
    try testing.expectError(error.Damaged, fixture.cache.get(&fixture.set, &wrong, 1));
    try testing.expectError(error.Damaged, fixture.cache.getNow(&fixture.set, &wrong, 1));
}

test "nodes of the lowest level are read ahead by 32, unless they are in memory" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var nodes: Appender = try .init(gpa, &fixture.set, 1 << 30);
    defer nodes.deinit(gpa);
    var entries: [70]block.Entry = undefined;
    for (&entries, 1..) |*entry, stamp| {
        var node: node_module.Node = .empty(if (stamp > 60) 1 else 0);
        node.set(5, entryOf(@intCast(stamp)));
        node.seal();
        entry.* = .{ .hash = node.hash(), .location = try nodes.append(std.mem.asBytes(&node)) };
    }
    try nodes.sync();
    SpiedFiles.clear();
    for ([_]usize{ 0, 31, 32, 59 }) |index|
        _ = try fixture.cache.get(&fixture.set, &entries[index], 0);
    _ = try fixture.cache.get(&fixture.set, &entries[65], 1);
    SpiedFiles.in_memory = 1;
    _ = try fixture.cache.get(&fixture.set, &entries[40], 0);
    const size = 32 * block.block_size;
    try testing.expectEqualSlices(SpiedFiles.ByteRange, &.{
        .{ .offset = 0, .size = size },
        .{ .offset = 0, .size = size },
        .{ .offset = size, .size = size },
        .{ .offset = size, .size = size },
    }, SpiedFiles.prefetches.constSlice());
    // Without waiting nothing is read ahead.
    try testing.expectEqual(null, try fixture.cache.getNow(&fixture.set, &entries[10], 0));
    try testing.expectEqual(4, SpiedFiles.prefetches.constSlice().len);
}
