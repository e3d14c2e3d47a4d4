//! Which blocks of the disk a write layer owns: a bitmap in memory, and on the disk a file of
//! records of one sector each, written in place. Bits are only set while the layer exists, and a
//! sector is written whole or not at all, so after a crash each record is the old or the new one,
//! and both are true. A record with a wrong checksum is damaged, not torn, and never read as "not
//! owned". That includes a record of zeros, since all records are written when the layer is made.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;
const Handle = Files.Handle;

pub const LayerMap = @This();

pub const block_size = 4096;
pub const record_size = 512;
/// Bits of one record, behind its checksum.
pub const record_blocks = (record_size - checksum_size) * 8;
const checksum_size = 8;
const record_words = @divExact(record_blocks, @bitSizeOf(usize));
/// Number of records in a `Batch`.
pub const batch_records = 256;

const Bits = std.bit_set.Dynamic;

owned: Bits,
/// Records with bits that are not on the disk yet.
dirty: Bits,
dirty_count: u32 = 0,
/// Salts the checksums, so that a record of another layer does not match.
seed: u64,

/// Copies of records for a thread that writes them while others set bits.
pub const Batch = struct {
    count: u32 = 0,
    indices: [batch_records]u32 = undefined,
    records: [batch_records][record_size]u8 = undefined,
};

/// `disk_size` in bytes; the bitmap takes a bit for each 4 KiB.
pub fn init(
    gpa: std.mem.Allocator,
    disk_size: u64,
    layer_id: base.Uuid,
) error{OutOfMemory}!LayerMap {
    const count = blockCount(disk_size);
    var owned: Bits = try .initEmpty(gpa, count);
    errdefer owned.deinit(gpa);
    return .{
        .owned = owned,
        .dirty = try .initEmpty(gpa, recordCount(disk_size)),
        .seed = std.mem.readInt(u64, layer_id.bytes[0..8], .little),
    };
}

pub fn deinit(map: *LayerMap, gpa: std.mem.Allocator) void {
    map.owned.deinit(gpa);
    map.dirty.deinit(gpa);
    map.* = undefined;
}

pub fn blockCount(disk_size: u64) usize {
    return @intCast(std.math.divCeil(u64, disk_size, block_size) catch unreachable);
}

fn recordCount(disk_size: u64) usize {
    return std.math.divCeil(usize, blockCount(disk_size), record_blocks) catch unreachable;
}

fn fileSize(disk_size: u64) u64 {
    return recordCount(disk_size) * record_size;
}

pub fn isOwned(map: *const LayerMap, block: u64) bool {
    return map.owned.isSet(@intCast(block));
}

/// Counts the blocks from `block` on, at most `most`, that are all owned or all not owned.
pub fn runLength(map: *const LayerMap, block: u64, most: u64) u64 {
    assert(most > 0);
    const is_owned = map.isOwned(block);
    var count: u64 = 1;
    while (count < most and map.isOwned(block + count) == is_owned) count += 1;
    return count;
}

/// Returns the first owned block at or after `block`.
pub fn nextOwned(map: *const LayerMap, block: u64) ?u64 {
    var at: usize = @intCast(block);
    const count = map.owned.capacity();
    while (at < count) : (at += 1) {
        // Skips whole words of a sparse map.
        if (at % @bitSizeOf(usize) == 0) while (at < count and
            map.owned.masks[at / @bitSizeOf(usize)] == 0)
        {
            at += @bitSizeOf(usize);
        };
        if (at < count and map.owned.isSet(at)) return at;
    }
    return null;
}

/// Returns whether `count` blocks from `block` on may become owned before records must be written.
pub fn hasRoom(map: *const LayerMap, block: u64, count: u64) bool {
    const records = (block + count - 1) / record_blocks - block / record_blocks + 1;
    return map.dirty_count + records <= batch_records;
}

pub fn own(map: *LayerMap, block: u64, count: u64) void {
    for (block..block + count) |index| {
        if (map.owned.isSet(index)) continue;
        map.owned.set(index);
        const record = index / record_blocks;
        if (map.dirty.isSet(record)) continue;
        map.dirty.set(record);
        map.dirty_count += 1;
    }
}

/// Like `mark`, for a layer that is not on the disk.
pub fn ownInMemory(map: *LayerMap, block: u64, count: u64) void {
    map.owned.setRangeValue(.{ .start = @intCast(block), .end = @intCast(block + count) }, true);
}

/// Owns what another map of the same disk does, and nothing else.
pub fn takeOwned(map: *LayerMap, other: *const LayerMap) void {
    const blocks = map.owned.capacity();
    assert(other.owned.capacity() == blocks);
    const words = std.math.divCeil(usize, blocks, @bitSizeOf(usize)) catch unreachable;
    @memcpy(map.owned.masks[0..words], other.owned.masks[0..words]);
}

/// Moves the dirty records into `batch`; they count as clean from now on.
pub fn takeDirty(map: *LayerMap, batch: *Batch) void {
    assert(map.dirty_count <= batch_records);
    batch.count = 0;
    var iterator = map.dirty.iterator(.{});
    while (iterator.next()) |index| {
        batch.indices[batch.count] = @intCast(index);
        map.writeRecord(index, &batch.records[batch.count]);
        batch.count += 1;
    }
    map.dirty.unsetAll();
    map.dirty_count = 0;
}

/// Writes all records of a new layer.
pub fn writeAll(map: *const LayerMap, files: Files, handle: Handle) Files.Error!void {
    var chunk: [64 * record_size]u8 = undefined;
    const count = map.dirty.capacity();
    var index: usize = 0;
    while (index < count) {
        const part: usize = @min(64, count - index);
        for (0..part) |at| map.writeRecord(index + at, chunk[at * record_size ..][0..record_size]);
        try files.write(handle, chunk[0 .. part * record_size], index * record_size);
        index += part;
    }
}

/// Throws `Damaged` if a record is not one of this layer at this position, or if the file has
/// another size.
pub fn load(map: *LayerMap, files: Files, handle: Handle) (Files.Error || error{Damaged})!void {
    var chunk: [64 * record_size]u8 = undefined;
    const count = map.dirty.capacity();
    if (try files.size(handle) != count * record_size) return error.Damaged;
    var index: usize = 0;
    while (index < count) {
        const part: usize = @min(64, count - index);
        const bytes = chunk[0 .. part * record_size];
        if (!try files.readWhole(handle, bytes, index * record_size)) return error.Damaged;
        for (0..part) |at|
            try map.readRecord(index + at, bytes[at * record_size ..][0..record_size]);
        index += part;
    }
}

/// Returns whether a file holds a valid record of this layer that owns a block.
pub fn ownsAnything(map: *LayerMap, files: Files, handle: Handle) Files.Error!bool {
    for (0..map.dirty.capacity()) |index| {
        var record: [record_size]u8 = undefined;
        if (!try files.readWhole(handle, &record, index * record_size)) return false;
        map.readRecord(index, &record) catch continue;
        if (map.owned.count() > 0) return true;
    }
    return false;
}

/// Returns the record behind `index`, or the first one, that owns a block.
pub fn nextRecord(map: *const LayerMap, index: ?usize) ?usize {
    const from = if (index) |last| last + 1 else 0;
    for (from..map.dirty.capacity()) |next|
        if (!std.mem.allEqual(usize, map.wordsOf(next), 0)) return next;
    return null;
}

/// The words of the bitmap that a record holds.
fn wordsOf(map: *const LayerMap, index: usize) []usize {
    const first = index * record_words;
    const count = std.math.divCeil(usize, map.owned.capacity(), @bitSizeOf(usize)) catch
        unreachable;
    return map.owned.masks[first..@min(first + record_words, count)];
}

pub fn writeRecord(map: *const LayerMap, index: usize, record: *[record_size]u8) void {
    const bits = record[checksum_size..];
    @memset(bits, 0);
    for (map.wordsOf(index), 0..) |word, at|
        std.mem.writeInt(usize, bits[at * @sizeOf(usize) ..][0..@sizeOf(usize)], word, .little);
    std.mem.writeInt(u64, record[0..checksum_size], map.checksumOf(index, bits), .little);
}

/// Adds what a record owns.
pub fn readRecord(
    map: *LayerMap,
    index: usize,
    record: *const [record_size]u8,
) error{Damaged}!void {
    const bits = record[checksum_size..];
    const is_whole =
        std.mem.readInt(u64, record[0..checksum_size], .little) == map.checksumOf(index, bits);
    if (!is_whole and !simulated.has(.map_unchecked)) return error.Damaged;
    const first = index * record_blocks;
    for (bits, 0..) |byte, at| {
        if (byte == 0) continue;
        for (0..8) |bit| {
            if (byte >> @intCast(bit) & 1 == 0) continue;
            const block = first + at * 8 + bit;
            if (block >= map.owned.capacity()) return error.Damaged;
            map.owned.set(block);
        }
    }
}

fn checksumOf(map: *const LayerMap, index: usize, bits: []const u8) u64 {
    var hash: std.hash.XxHash64 = .init(map.seed);
    var place: [8]u8 = undefined;
    // Plus one, so that a file of zeros never matches.
    std.mem.writeInt(u64, &place, index + 1, .little);
    hash.update(&place);
    hash.update(bits);
    return hash.final();
}

const testing = std.testing;

test "a map of 100 GB takes 3.2 MB of bits" {
    const disk_size = 100 << 30;
    try testing.expectEqual(26_214_400, blockCount(disk_size));
    try testing.expect(fileSize(disk_size) < 3_400_000);
}

test "owned blocks are found again, run by run" {
    var map: LayerMap = try .init(testing.allocator, 100_000 * block_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    map.own(70_000, 10);
    map.own(5, 1);
    try testing.expectEqual(5, map.nextOwned(0));
    try testing.expectEqual(70_000, map.nextOwned(6));
    try testing.expectEqual(null, map.nextOwned(70_010));
    try testing.expectEqual(10, map.runLength(70_000, 100));
    try testing.expectEqual(3, map.runLength(70_000, 3));
    try testing.expectEqual(64, map.runLength(6, 64));
    try testing.expectEqual(2, map.dirty_count);
}

test "every flipped bit of a record is found, and so is a record at another position" {
    var map: LayerMap =
        try .init(testing.allocator, 3 * record_blocks * block_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    map.own(17, 3);
    var record: [record_size]u8 = undefined;
    map.writeRecord(0, &record);
    try map.readRecord(0, &record);
    try testing.expectError(error.Damaged, map.readRecord(1, &record));
    for (0..record_size * 8) |bit| {
        var damaged = record;
        damaged[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try testing.expectError(error.Damaged, map.readRecord(0, &damaged));
    }
    try testing.expectError(error.Damaged, map.readRecord(0, &@as([record_size]u8, @splat(0))));
}

test "the next owned block is found from every block before it" {
    const words = 3 * @bitSizeOf(usize);
    for ([_]u64{ 0, 1, 62, 63, 64, 65, 127, 128, words - 1 }) |owned| {
        var map: LayerMap = try .init(testing.allocator, words * block_size, .fromBytes(@splat(9)));
        defer map.deinit(testing.allocator);
        map.own(owned, 1);
        for (0..words) |block|
            try testing.expectEqual(
                if (block <= owned) @as(?u64, owned) else null,
                map.nextOwned(block),
            );
    }
}

const LinuxFiles = @import("../files/linux_files.zig");

test "a block dirties its own record, and records fit in a batch up to its last one" {
    const records = batch_records + 2;
    var map: LayerMap =
        try .init(testing.allocator, records * record_blocks * block_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    try testing.expectEqual(records, recordCount(records * record_blocks * block_size));
    try testing.expectEqual(records + 1, recordCount(records * record_blocks * block_size + 1));
    map.own(record_blocks - 1, 2);
    try testing.expectEqual(2, map.dirty_count);
    map.own(0, 1);
    map.own(record_blocks - 1, 2);
    try testing.expectEqual(2, map.dirty_count);
    for (2..batch_records - 1) |record| map.own(record * record_blocks + 5, 1);
    try testing.expectEqual(batch_records - 1, map.dirty_count);
    try testing.expect(map.hasRoom((batch_records - 1) * record_blocks, record_blocks));
    try testing.expect(!map.hasRoom((batch_records - 1) * record_blocks, record_blocks + 1));
    try testing.expect(!map.hasRoom((batch_records - 1) * record_blocks - 1, 2));
    map.own(batch_records * record_blocks, 1);
    const batch = try testing.allocator.create(Batch);
    defer testing.allocator.destroy(batch);
    map.takeDirty(batch);
    try testing.expectEqual(batch_records, batch.count);
    for (batch.indices[0 .. batch_records - 1], 0..) |index, at|
        try testing.expectEqual(at, index);
    try testing.expectEqual(batch_records, batch.indices[batch_records - 1]);
    try testing.expectEqual(0, map.dirty_count);
    map.takeDirty(batch);
    try testing.expectEqual(0, batch.count);
}

test "a map is loaded as it was written, and one of another size or layer is damaged" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    // More than two chunks of 64 records.
    const disk_size = (130 * record_blocks + 7) * block_size;
    var map: LayerMap = try .init(testing.allocator, disk_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    for ([_]u64{ 0, 63, 64, 128, 130 }) |record| map.own(record * record_blocks + 5, 2);
    map.own(63 * record_blocks - 1, 2);
    const handle = try files.create("map");
    defer files.close(handle);
    try map.writeAll(files, handle);
    try testing.expectEqual(131 * record_size, try files.size(handle));
    var found: LayerMap = try .init(testing.allocator, disk_size, .fromBytes(@splat(9)));
    defer found.deinit(testing.allocator);
    try found.load(files, handle);
    try testing.expect(found.owned.eql(map.owned));
    try testing.expectEqual(0, found.dirty_count);
    var other: LayerMap = try .init(testing.allocator, disk_size, .fromBytes(@splat(8)));
    defer other.deinit(testing.allocator);
    try testing.expectError(error.Damaged, other.load(files, handle));
    try testing.expect(!try other.ownsAnything(files, handle));
    for ([_]u64{ 130, 132 }) |records| {
        try files.setSize(handle, records * record_size);
        try testing.expectError(error.Damaged, found.load(files, handle));
    }
}

test "a record of a block behind the end of the disk is damaged" {
    var large: LayerMap = try .init(testing.allocator, 20 * block_size, .fromBytes(@splat(9)));
    defer large.deinit(testing.allocator);
    var small: LayerMap = try .init(testing.allocator, 9 * block_size + 1, .fromBytes(@splat(9)));
    defer small.deinit(testing.allocator);
    var record: [record_size]u8 = undefined;
    large.own(9, 1);
    large.writeRecord(0, &record);
    try small.readRecord(0, &record);
    try testing.expect(small.isOwned(9));
    large.own(10, 1);
    large.writeRecord(0, &record);
    try testing.expectError(error.Damaged, small.readRecord(0, &record));
}

test "only records that own a block are found, each once" {
    const disk_size = (5 * record_blocks + 70) * block_size;
    var map: LayerMap = try .init(testing.allocator, disk_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    try testing.expectEqual(null, map.nextRecord(null));
    map.own(record_blocks - 1, 1);
    map.own(3 * record_blocks, 1);
    map.own(5 * record_blocks + 69, 1);
    var found: ?usize = null;
    for ([_]?usize{ 0, 3, 5, null }) |expected| {
        found = map.nextRecord(found);
        try testing.expectEqual(expected, found);
    }
    var again: LayerMap = try .init(testing.allocator, disk_size, .fromBytes(@splat(9)));
    defer again.deinit(testing.allocator);
    for ([_]usize{ 0, 3, 5 }) |index| {
        var record: [record_size]u8 = undefined;
        map.writeRecord(index, &record);
        try again.readRecord(index, &record);
    }
    try testing.expect(again.owned.eql(map.owned));
}

test "a map owns something if any of its whole records does" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    var map: LayerMap =
        try .init(testing.allocator, 3 * record_blocks * block_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    const handle = try files.create("map");
    defer files.close(handle);
    try testing.expect(!try map.ownsAnything(files, handle));
    try map.writeAll(files, handle);
    try testing.expect(!try map.ownsAnything(files, handle));
    map.own(2 * record_blocks, 1);
    try map.writeAll(files, handle);
    // The first record is damaged, and the last one is cut off.
    try files.write(handle, "x", 100);
    var again: LayerMap =
        try .init(testing.allocator, 3 * record_blocks * block_size, .fromBytes(@splat(9)));
    defer again.deinit(testing.allocator);
    try testing.expect(try again.ownsAnything(files, handle));
    try files.setSize(handle, 3 * record_size - 1);
    again.owned.unsetAll();
    try testing.expect(!try again.ownsAnything(files, handle));
}

test "in memory exactly the given blocks become owned" {
    var map: LayerMap = try .init(testing.allocator, 10 * block_size, .fromBytes(@splat(9)));
    defer map.deinit(testing.allocator);
    map.ownInMemory(3, 2);
    for (0..10) |block| try testing.expectEqual(block == 3 or block == 4, map.isOwned(block));
    try testing.expectEqual(0, map.dirty_count);
}
