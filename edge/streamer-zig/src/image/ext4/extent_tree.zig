//! Extent trees (kernel.org, filesystems/ext4, "Extent Tree"): up to four runs of blocks are in the
//! inode itself, more in blocks of up to 340 entries below it.

const std = @import("std");
const crc32c = @import("../crc32c.zig");
const fields = @import("fields.zig");
const FileTree = @import("file_tree.zig");
const layout_module = @import("layout.zig");
const put = fields.put;
const Extent = FileTree.Extent;

const block_size = layout_module.block_size;
const magic = 0xf30a;
const header_size = 12;
const entry_size = 12;
/// Entries in the 60 bytes of an inode.
pub const in_inode_max = 4;
const in_block_max = (block_size - header_size) / entry_size;
/// Longer ones would count as allocated and not written.
pub const extent_blocks_max = 32768;

/// How many blocks the tree has below the inode.
pub fn blocksOf(extent_count: usize) usize {
    var total: usize = 0;
    var entries = extent_count;
    while (entries > in_inode_max) {
        entries = std.math.divCeil(usize, entries, in_block_max) catch unreachable;
        total += entries;
    }
    return total;
}

/// Writes one block of the tree to its place.
pub const Sink = @import("sink.zig");

/// Fills the 60 bytes of the inode, and writes the blocks below it.
///
/// @param seed checksum of the inode's number and generation
pub fn write(
    root: *[60]u8,
    extents: []const Extent,
    blocks: []const u64,
    seed: u32,
    sink: Sink,
) Sink.Error!void {
    @memset(root, 0);
    if (extents.len <= in_inode_max) {
        writeHeader(root, extents.len, in_inode_max, 0);
        for (extents, 0..) |*extent, index| writeExtent(root, index, extent);
        return;
    }
    var depth: u16 = 0;
    var entries = extents.len;
    // The blocks of one level, and those of the level below, which have its entries.
    var below: []const u64 = &.{};
    var rest = blocks;
    while (entries > in_inode_max) : (depth += 1) {
        const level_count = std.math.divCeil(usize, entries, in_block_max) catch unreachable;
        const level = rest[0..level_count];
        rest = rest[level_count..];
        for (level, 0..) |place, index| {
            var block: [block_size]u8 = @splat(0);
            const first = index * in_block_max;
            const part = @min(entries - first, in_block_max);
            writeHeader(&block, part, in_block_max, depth);
            for (0..part) |slot| {
                if (depth == 0) {
                    writeExtent(&block, slot, &extents[first + slot]);
                } else writeIndex(&block, slot, .{
                    .logical = logicalOf(extents, depth, first + slot),
                    .place = below[first + slot],
                });
            }
            const tail = header_size + in_block_max * entry_size;
            put(u32, &block, tail, crc32c.update(seed, block[0..tail]));
            try sink.write(&block, place * block_size);
        }
        below = level;
        entries = level_count;
    }
    writeHeader(root, entries, in_inode_max, depth);
    for (below, 0..) |place, slot|
        writeIndex(root, slot, .{ .logical = logicalOf(extents, depth, slot), .place = place });
}

/// The first block of the file below the entry at `position` of a level.
fn logicalOf(extents: []const Extent, depth: u16, position: usize) u32 {
    var first = position;
    for (0..depth) |_| first *= in_block_max;
    return extents[first].logical;
}

fn writeHeader(bytes: []u8, entries: usize, entries_max: u16, depth: u16) void {
    put(u16, bytes, 0, magic);
    put(u16, bytes, 2, @intCast(entries));
    put(u16, bytes, 4, entries_max);
    put(u16, bytes, 6, depth);
}

fn writeExtent(bytes: []u8, slot: usize, extent: *const Extent) void {
    const at = header_size + slot * entry_size;
    put(u32, bytes, at, extent.logical);
    put(u16, bytes, at + 4, @intCast(extent.count));
    put(u16, bytes, at + 6, @intCast(extent.physical >> 32));
    put(u32, bytes, at + 8, @truncate(extent.physical));
}

fn writeIndex(bytes: []u8, slot: usize, index: struct { logical: u32, place: u64 }) void {
    const at = header_size + slot * entry_size;
    put(u32, bytes, at, index.logical);
    put(u32, bytes, at + 4, @truncate(index.place));
    put(u16, bytes, at + 8, @intCast(index.place >> 32));
}

test "the number of blocks below an inode" {
    for ([_][2]usize{
        .{ 0, 0 }, .{ 4, 0 }, .{ 5, 1 }, .{ 340, 1 }, .{ 341, 2 }, .{ 1360, 4 }, .{ 1361, 6 },
    }) |case| try std.testing.expectEqual(case[1], blocksOf(case[0]));
}
