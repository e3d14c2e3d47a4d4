//! Where everything of a new ext4 file system lies (kernel.org, filesystems/ext4, "Layout" and
//! "Flexible Block Groups"): the super block and the group descriptors, their copies in some groups
//! (sparse_super), then all bitmaps, all inode tables, and the files one after another. The same
//! sizes give the same layout.

const std = @import("std");
const Allocator = std.mem.Allocator;

pub const block_size = 4096;
pub const blocks_per_group = block_size * 8;
pub const inode_size = 256;
const inodes_per_block = block_size / inode_size;
pub const descriptor_size = 64;
const descriptors_per_block = block_size / descriptor_size;
const inodes_per_group_max = block_size * 8;
/// An inode for each 16 KiB, as mke2fs does it.
const bytes_per_inode = 16 << 10;
/// Inodes before the first file: 1 to 10 are the file system's own.
pub const first_inode = 11;
/// A last group of fewer blocks is left out.
const last_group_min = 1024;
const journal_small = 1024;
const journal_large = 4096;

/// The smallest and the largest file system, in bytes.
pub const size_min = 64 << 20;
pub const size_max = 2 << 40;

/// `TooSmall`: the content needs more space. `TooManyFiles`: it needs more inodes.
pub const Error = error{ OutOfMemory, TooSmall, TooManyFiles };

pub const Run = struct { first: u64, count: u64 };

pub const Layout = @This();

blocks: u64,
groups: u32,
inodes_per_group: u32,
table_blocks: u32,
descriptor_blocks: u32,
/// Of group 0; those of the other groups follow.
first_block_bitmap: u64,
first_inode_bitmap: u64,
/// By group.
inode_tables: []u64,
journal_blocks: u32,
/// A bit for each block, up to the end of the last group.
used: []u8,
/// Everything before is used, or was passed over.
next: u64 = 0,

/// `inodes`: how many the files need, with those of the file system.
pub fn make(arena: Allocator, size: u64, inodes: u64) Error!Layout {
    if (size < size_min) return error.TooSmall;
    var blocks = size / block_size;
    const rest = blocks % blocks_per_group;
    if (rest < last_group_min) blocks -= rest;
    const groups: u32 = @intCast(std.math.divCeil(u64, blocks, blocks_per_group) catch
        unreachable);
    const wanted = @max(size / bytes_per_inode, inodes + inodes / 4 + 1024);
    const per_group = std.mem.alignForward(u64, wanted / groups + 1, inodes_per_block);
    if (inodes > @as(u64, inodes_per_group_max) * groups) return error.TooManyFiles;
    const inodes_per_group: u32 = @intCast(@min(per_group, inodes_per_group_max));
    var layout: Layout = .{
        .blocks = blocks,
        .groups = groups,
        .inodes_per_group = inodes_per_group,
        .table_blocks = inodes_per_group / inodes_per_block,
        .descriptor_blocks = std.math.divCeil(u32, groups, descriptors_per_block) catch
            unreachable,
        .first_block_bitmap = undefined,
        .first_inode_bitmap = undefined,
        .inode_tables = try arena.alloc(u64, groups),
        .journal_blocks = if (size >= 256 << 20) journal_large else journal_small,
        .used = try arena.alloc(u8, @as(usize, groups) * block_size),
    };
    @memset(layout.used, 0);
    for (blocks..@as(u64, groups) * blocks_per_group) |block| layout.markUsed(block);
    for (0..groups) |group| if (hasCopies(@intCast(group)))
        layout.markRun(group * blocks_per_group, 1 + @as(u64, layout.descriptor_blocks));
    layout.first_block_bitmap = try layout.takeWhole(groups);
    layout.first_inode_bitmap = try layout.takeWhole(groups);
    for (layout.inode_tables) |*table| table.* = try layout.takeWhole(layout.table_blocks);
    return layout;
}

/// Whether a group begins with copies of the super block and the descriptors: 0, 1, and the powers
/// of 3, 5 and 7.
pub fn hasCopies(group: u32) bool {
    if (group <= 1) return true;
    for ([_]u32{ 3, 5, 7 }) |base| {
        var power: u64 = base;
        while (power < group) power *= base;
        if (power == group) return true;
    }
    return false;
}

/// Takes blocks from the next free one on, at most `count`, up to what is used already.
pub fn take(layout: *Layout, count: u64) error{TooSmall}!Run {
    while (layout.next < layout.blocks and layout.isUsed(layout.next)) layout.next += 1;
    const first = layout.next;
    const end = @min(layout.blocks, first +| count, nextCopies(first));
    if (end <= first) return error.TooSmall;
    layout.markRun(first, end - first);
    layout.next = end;
    return .{ .first = first, .count = end - first };
}

/// Takes that many blocks in one piece.
pub fn takeWhole(layout: *Layout, count: u64) error{TooSmall}!u64 {
    while (true) {
        while (layout.next < layout.blocks and layout.isUsed(layout.next)) layout.next += 1;
        const first = layout.next;
        if (count > layout.blocks or first > layout.blocks - count) return error.TooSmall;
        const limit = nextCopies(first);
        if (limit - first >= count) {
            layout.markRun(first, count);
            layout.next = first + count;
            return first;
        }
        // The gap stays free.
        layout.next = limit;
    }
}

/// The start of the next group with copies.
fn nextCopies(block: u64) u64 {
    var group = block / blocks_per_group + 1;
    while (!hasCopies(@intCast(group))) group += 1;
    return group * blocks_per_group;
}

fn isUsed(layout: *const Layout, block: u64) bool {
    return layout.used[@intCast(block / 8)] & @as(u8, 1) << @intCast(block % 8) != 0;
}

fn markUsed(layout: *Layout, block: u64) void {
    layout.used[@intCast(block / 8)] |= @as(u8, 1) << @intCast(block % 8);
}

fn markRun(layout: *Layout, first: u64, count: u64) void {
    for (first..first + count) |block| layout.markUsed(block);
}

pub fn bitmapOf(layout: *const Layout, group: u32) *const [block_size]u8 {
    return layout.used[@as(usize, group) * block_size ..][0..block_size];
}

pub fn blocksOf(layout: *const Layout, group: u32) u32 {
    const first = @as(u64, group) * blocks_per_group;
    return @intCast(@min(layout.blocks - first, blocks_per_group));
}

pub fn freeOf(layout: *const Layout, group: u32) u32 {
    var free: u32 = 0;
    for (std.mem.bytesAsSlice(u64, layout.bitmapOf(group))) |word| free += @popCount(~word);
    return free;
}

/// Byte on the disk of an inode.
pub fn placeOfInode(layout: *const Layout, number: u32) u64 {
    const group = (number - 1) / layout.inodes_per_group;
    const index = (number - 1) % layout.inodes_per_group;
    return layout.inode_tables[group] * block_size + @as(u64, index) * inode_size;
}

const testing = std.testing;

test "nothing is given twice, and copies of the super block are passed over" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var layout: Layout = try .make(arena.allocator(), 2 << 30, 1000);
    try testing.expectEqual(16, layout.groups);
    for ([_]u32{ 0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125 }) |group|
        try testing.expect(hasCopies(group));
    for ([_]u32{ 2, 4, 6, 8, 10, 15, 21, 35, 126 }) |group| try testing.expect(!hasCopies(group));
    var end: u64 = layout.next;
    var total: u64 = 0;
    while (layout.take(50_000)) |run| {
        try testing.expect(run.first >= end);
        end = run.first + run.count;
        total += run.count;
        for (run.first..end) |block| {
            const group: u32 = @intCast(block / blocks_per_group);
            if (!hasCopies(group)) continue;
            try testing.expect(block % blocks_per_group > layout.descriptor_blocks);
        }
    } else |_| {}
    try testing.expectEqual(layout.blocks, end);
    for (0..layout.groups) |group| try testing.expectEqual(0, layout.freeOf(@intCast(group)));
    try testing.expectError(error.TooSmall, layout.takeWhole(1));
    try testing.expectError(error.TooSmall, Layout.make(arena.allocator(), size_min - 1, 1));
    try testing.expectError(
        error.TooManyFiles,
        Layout.make(arena.allocator(), size_min, inodes_per_group_max + 1),
    );
}
