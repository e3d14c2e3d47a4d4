//! Tests how version_reader.zig reads the files of a version: in which pieces, and what it asks the
//! disk for before it waits. store_test.zig tests which bytes it returns.

const std = @import("std");
const base = @import("base");
const store_module = @import("store.zig");

const Appender = store_module.Appender;
const block = store_module.block;
const ByteRange = SpiedFiles.ByteRange;
const LinuxFiles = store_module.LinuxFiles;
const SpiedFiles = @import("files/spied_files.zig");
const Store = store_module.Store;
const TreeBuilder = store_module.TreeBuilder;
const VersionReader = store_module.VersionReader;
const testing = std.testing;
const gpa = testing.allocator;

const block_count = 300;

const Fixture = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    spied: SpiedFiles,
    store: Store,
    reader: VersionReader,

    /// Stores these blocks of a disk one behind the other; null leaves one free.
    fn init(fixture: *Fixture, order: []const ?u64) !void {
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        fixture.spied = .init(&fixture.on);
        const files = fixture.spied.files();
        try Store.make(files, .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
        fixture.store = try .open(gpa, files, .{ .cache_nodes = 16 });
        const store = &fixture.store;
        var data: Appender = try .init(gpa, &store.data, 1 << 30);
        defer data.deinit(gpa);
        var nodes: Appender = try .init(gpa, &store.nodes, 1 << 30);
        defer nodes.deinit(gpa);
        var builder: TreeBuilder = .init(&store.cache, &nodes, .zeros, block_count);
        for (order) |place| {
            const bytes = blockOf(place orelse block_count);
            const location = try data.append(&bytes);
            const index = place orelse continue;
            try builder.put(index, .{ .hash = block.hashOf(&bytes), .location = location });
        }
        const root = try builder.finish();
        try data.sync();
        try nodes.sync();
        fixture.reader = .{
            .reading = store.reading(),
            .root = root,
            .root_level = store_module.node.rootLevel(block_count),
            .disk_size = block_count * block.block_size,
        };
        // From here on all nodes are known, and the file is open.
        _ = try store.data.handleOf(1);
        _ = try fixture.reader.entryOf(0);
        _ = try fixture.reader.entryOf(102);
        SpiedFiles.clear();
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(gpa);
        fixture.tmp.cleanup();
    }

    fn expectRead(fixture: *Fixture, offset: u64, size: usize) !void {
        const buffer = try gpa.alloc(u8, size);
        defer gpa.free(buffer);
        try fixture.reader.read(buffer, offset);
        for (buffer, offset..) |byte, at|
            try testing.expectEqual(byteOf(at / block.block_size, at % block.block_size), byte);
    }
};

/// No two blocks are the same, and no two parts of one.
fn blockOf(index: u64) block.Block {
    var bytes: block.Block = undefined;
    for (&bytes, 0..) |*byte, at| byte.* = byteOf(index, at);
    return bytes;
}

fn byteOf(index: u64, at: u64) u8 {
    return @truncate(index + at / 256 * 7 + at % 256 + 1);
}

fn expectRanges(expected: []const ByteRange, found: anytype) !void {
    try testing.expectEqualSlices(ByteRange, expected, found.constSlice());
    SpiedFiles.clear();
}

fn blocks(first: u64, count: u64) ByteRange {
    return .{ .offset = first * block.block_size, .size = count * block.block_size };
}

test "blocks that are not checked are read in pieces of 64 KiB, and later pieces are read ahead" {
    var fixture: Fixture = undefined;
    var order: [40]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = index;
    try fixture.init(&order);
    defer fixture.deinit();
    try fixture.expectRead(0, 40 * block.block_size);
    try testing.expectEqualSlices(ByteRange, &.{blocks(0, 40)}, SpiedFiles.prefetches.constSlice());
    try expectRanges(&.{ blocks(0, 16), blocks(16, 16), blocks(32, 8) }, SpiedFiles.reads);
    // Checked blocks are one piece, which is read at once.
    try fixture.expectRead(700, 39 * block.block_size);
    try testing.expectEqual(0, SpiedFiles.prefetches.constSlice().len);
    try expectRanges(&.{.{ .offset = 700, .size = 39 * block.block_size }}, SpiedFiles.reads);
}

test "parts of a block that is not checked take the whole block, and then only the part" {
    var fixture: Fixture = undefined;
    try fixture.init(&.{ 0, 1, 2, 3 });
    defer fixture.deinit();
    try fixture.expectRead(512, 1024);
    try expectRanges(&.{blocks(0, 1)}, SpiedFiles.reads);
    try fixture.expectRead(512, 1024);
    try expectRanges(&.{.{ .offset = 512, .size = 1024 }}, SpiedFiles.reads);
    // A checked part, a whole block that is not, and the beginning of another.
    try fixture.expectRead(100, 2 * block.block_size);
    try expectRanges(
        &.{ blocks(2, 1), .{ .offset = 100, .size = 4096 - 100 }, blocks(1, 1) },
        SpiedFiles.reads,
    );
}

test "pieces up to 64 KiB apart are read ahead as one, pieces further apart or backwards alone" {
    var order: [10 + 10 + 16 + 10 + 17 + 10]?u64 = @splat(null);
    for (0..10) |index| {
        order[index] = 30 + index;
        order[10 + index] = index;
        order[36 + index] = 10 + index;
        order[63 + index] = 20 + index;
    }
    var fixture: Fixture = undefined;
    try fixture.init(&order);
    defer fixture.deinit();
    try fixture.expectRead(0, 40 * block.block_size);
    try testing.expectEqualSlices(
        ByteRange,
        &.{ blocks(10, 36), blocks(63, 10), blocks(0, 10) },
        SpiedFiles.prefetches.constSlice(),
    );
    try expectRanges(
        &.{ blocks(10, 10), blocks(36, 10), blocks(63, 10), blocks(0, 10) },
        SpiedFiles.reads,
    );
}

test "pieces in memory are not read ahead, and neither is a last one alone" {
    var order: [40]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = 39 - index;
    for ([_]u32{ 0, 1, 2, 3, 4 }) |in_memory| {
        var fixture: Fixture = undefined;
        try fixture.init(&order);
        defer fixture.deinit();
        SpiedFiles.in_memory = in_memory;
        try fixture.expectRead(0, 4 * block.block_size);
        const left = 4 - in_memory;
        try testing.expectEqual(
            if (left > 1) left else 0,
            SpiedFiles.prefetches.constSlice().len,
        );
        try testing.expectEqual(left, SpiedFiles.reads.constSlice().len);
    }
}

test "only the wanted part of a checked block is read ahead" {
    var order: [4]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = 3 - index;
    var fixture: Fixture = undefined;
    try fixture.init(&order);
    defer fixture.deinit();
    try fixture.expectRead(0, 4 * block.block_size);
    SpiedFiles.clear();
    try fixture.expectRead(100, 3 * block.block_size);
    const parts = [_]ByteRange{
        .{ .offset = 3 * block.block_size + 100, .size = block.block_size - 100 },
        blocks(2, 1),
        blocks(1, 1),
        .{ .offset = 0, .size = 100 },
    };
    try testing.expectEqualSlices(ByteRange, &parts, SpiedFiles.prefetches.constSlice());
    try expectRanges(&parts, SpiedFiles.reads);
}

test "at most 24 pieces are asked for at a time" {
    var order: [40]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = 39 - index;
    var fixture: Fixture = undefined;
    try fixture.init(&order);
    defer fixture.deinit();
    try fixture.expectRead(0, 40 * block.block_size);
    try testing.expectEqual(40, SpiedFiles.reads.constSlice().len);
    try testing.expectEqual(40, SpiedFiles.prefetches.constSlice().len);
    // The first batch is read before the second one is asked for.
    SpiedFiles.clear();
    var again = fixture.store.cache;
    again.clear();
    fixture.reader.reading.cache = &again;
    _ = try fixture.reader.entryOf(0);
    SpiedFiles.clear();
    try fixture.expectRead(0, 25 * block.block_size);
    try testing.expectEqual(24, SpiedFiles.prefetches.constSlice().len);
}

test "a read of checked blocks without waiting gives up at the first that is not in memory" {
    var order: [20]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = if (index % 2 == 0) index else null;
    var fixture: Fixture = undefined;
    try fixture.init(&order);
    defer fixture.deinit();
    var buffer: [20 * block.block_size]u8 = undefined;
    try fixture.reader.read(&buffer, 0);
    SpiedFiles.clear();
    SpiedFiles.in_memory = 9;
    try testing.expect(!try fixture.reader.readNow(&buffer, 0));
    SpiedFiles.in_memory = 10;
    @memset(&buffer, 0xee);
    try testing.expect(try fixture.reader.readNow(&buffer, 0));
    for (0..20) |index| {
        const bytes = buffer[index * block.block_size ..][0..block.block_size];
        if (index % 2 == 0)
            try testing.expectEqualSlices(u8, &blockOf(index), bytes)
        else
            try testing.expect(block.isZeros(bytes));
    }
    try testing.expectEqual(0, SpiedFiles.reads.constSlice().len);
    // One byte of a second block, which is zeros.
    SpiedFiles.in_memory = 1;
    @memset(&buffer, 0xee);
    try testing.expect(try fixture.reader.readNow(buffer[0..4097], 0));
    try testing.expectEqual(0, buffer[4096]);
    // Within a block, across the end of a node of level 0, and at the end of the disk.
    SpiedFiles.in_memory = 1;
    try testing.expect(try fixture.reader.readNow(buffer[0..300], 2 * block.block_size + 700));
    try testing.expectEqualSlices(u8, blockOf(2)[700..1000], buffer[0..300]);
    @memset(&buffer, 0xee);
    try testing.expect(try fixture.reader.readNow(buffer[0..8192], 101 * block.block_size + 5));
    try testing.expect(block.isZeros(buffer[0..8192]));
    @memset(&buffer, 0xee);
    try testing.expect(
        try fixture.reader.readNow(buffer[0..4096], (block_count - 1) * block.block_size),
    );
    try testing.expect(block.isZeros(buffer[0..4096]));
    try testing.expectEqual(0xee, buffer[4096]);
}

test "the next block that is not zeros is found from every block, in all levels" {
    var fixture: Fixture = undefined;
    const order = [_]?u64{ 0, 7, 101, 102, 205, 299 };
    try fixture.init(&order);
    defer fixture.deinit();
    for (0..block_count + 1) |from| {
        const expected: ?u64 = for (order) |place| {
            if (place.? >= from) break place.?;
        } else null;
        try testing.expectEqual(expected, try fixture.reader.nextBlock(from, block_count));
    }
    try testing.expectEqual(null, try fixture.reader.nextBlock(206, 299));
    try testing.expectEqual(205, try fixture.reader.nextBlock(103, 206));
    try testing.expectEqual(null, try fixture.reader.nextBlock(103, 205));
    fixture.reader.root = .zeros;
    try testing.expectEqual(null, try fixture.reader.nextBlock(0, block_count));
}

test "only blocks of the given range become checked, in every node that it touches" {
    var order: [block_count]?u64 = undefined;
    for (&order, 0..) |*place, index| place.* = index;
    for ([_][2]u64{
        .{ 0, 1 },       .{ 0, 4096 },       .{ 4095, 2 },              .{ 4096, 4096 },
        .{ 4096, 4097 }, .{ 101 * 4096, 1 }, .{ 101 * 4096, 2 * 4096 }, .{ 50 * 4096, 200 * 4096 },
        .{ 0, 0 },
    }) |range| {
        var fixture: Fixture = undefined;
        try fixture.init(&order);
        defer fixture.deinit();
        SpiedFiles.in_memory = 1000;
        fixture.reader.markChecked(range[0], range[1]);
        for (0..block_count) |index| {
            const is_touched = range[1] > 0 and index * 4096 < range[0] + range[1] and
                (index + 1) * 4096 > range[0];
            var bytes: block.Block = undefined;
            try testing.expectEqual(
                is_touched,
                try fixture.reader.readNow(&bytes, index * block.block_size),
            );
        }
    }
}
