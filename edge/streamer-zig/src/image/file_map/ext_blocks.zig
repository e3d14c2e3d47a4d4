//! The blocks of ext2, ext3 and ext4 that are a file's: those of its content, and those that list
//! them or hold its attributes; and the tables at the start of each group.

const std = @import("std");
const Place = @import("place.zig");
const ext_module = @import("../ext.zig");
const Ext = ext_module.Ext;
const Inode = ext_module.Inode;
const int = @import("../volume.zig").int;

pub const Error = ext_module.InodeError || Place.Error;

/// A file of a file system.
const Target = struct {
    ext: *const Ext,
    place: *const Place,
    name: u32,

    fn add(target: *const Target, block: u64, count: u64) Error!void {
        _ = try ext_module.checked(target.ext, block, count);
        const size = target.ext.block_size;
        return target.place.add(block * size, count * size, target.name);
    }
};

pub fn addFile(ext: *const Ext, inode: *const Inode, place: *const Place, name: u32) Error!void {
    const target: *const Target = &.{ .ext = ext, .place = place, .name = name };
    if (inode.attributes_block != 0) try target.add(inode.attributes_block, 1);
    if (inode.isInline() or inode.isFastLink() or inode.kind == .other) return;
    if (inode.flags & Inode.flag_extents != 0) return addExtents(inode, target);
    try addNumbers(inode.blocks[0 .. ext_module.direct_count * 4], target);
    for (1..4) |level| {
        const at = (ext_module.direct_count + level - 1) * 4;
        try addIndirect(int(u32, &inode.blocks, at), @intCast(level), target);
    }
}

/// The tree's nodes, of which each has entries below its limit. A cycle ends with the budget of
/// reads or the limits of the map.
fn addExtents(inode: *const Inode, target: *const Target) Error!void {
    const Level = struct { node: ext_module.ExtentNode, next: u32 };
    var levels: [ext_module.depth_max + 1]Level = undefined;
    levels[0] = .{ .node = try .open(target.ext, inode, null), .next = 0 };
    if (levels[0].node.depth > ext_module.depth_max) return error.Corrupt;
    var depth: usize = 1;
    while (depth > 0) {
        const level = &levels[depth - 1];
        if (level.next == level.node.count) {
            depth -= 1;
            continue;
        }
        level.next += 1;
        const entry = try level.node.get(level.next);
        if (level.node.depth == 0) {
            const stored = int(u16, &entry, 4);
            const count: u64 = if (stored <= 1 << 15) stored else stored - (1 << 15);
            const block = int(u32, &entry, 8) | @as(u64, int(u16, &entry, 6)) << 32;
            if (count > 0) try target.add(block, count);
            continue;
        }
        const block = int(u32, &entry, 4) | @as(u64, int(u16, &entry, 8)) << 32;
        try target.add(block, 1);
        const below: ext_module.ExtentNode = try .open(target.ext, inode, block);
        if (below.depth + 1 != level.node.depth) return error.Corrupt;
        levels[depth] = .{ .node = below, .next = 0 };
        depth += 1;
    }
}

/// A block of block numbers, and what it lists: `level` 1 lists the blocks of the file.
fn addIndirect(block: u32, level: u8, target: *const Target) Error!void {
    if (block == 0) return;
    const ext = target.ext;
    try target.add(block, 1);
    var numbers: [ext_module.numbers_max * 4]u8 = undefined;
    var at: u32 = 0;
    while (at < ext.block_size) : (at += numbers.len) {
        const part = numbers[0..@min(numbers.len, ext.block_size - at)];
        try ext.read(part, @as(u64, block) * ext.block_size + at);
        if (level == 1) {
            try addNumbers(part, target);
            continue;
        }
        var index: usize = 0;
        while (index < part.len) : (index += 4)
            try addIndirect(int(u32, part, index), level - 1, target);
    }
}

fn addNumbers(numbers: []const u8, target: *const Target) Error!void {
    var at: usize = 0;
    while (at < numbers.len) : (at += 4) {
        const block = int(u32, numbers, at);
        if (block != 0) try target.add(block, 1);
    }
}

/// Adds what is no file: superblocks, tables, journal.
pub fn addAreas(ext: *const Ext, place: *const Place) Error!void {
    const supers = try place.addArea("superblocks and group descriptors");
    const bitmaps = try place.addArea("block and inode bitmaps");
    const tables = try place.addArea("inode tables");
    const size: u64 = ext.block_size;
    const table_blocks = (@as(u64, ext.inodes_per_group) * ext.inode_size + size - 1) / size;
    const groups = std.math.divCeil(
        u64,
        ext.blocks -| ext.first_data_block,
        ext.blocks_per_group,
    ) catch unreachable;
    const super_blocks = 1 + @as(u64, ext.reserved_descriptor_blocks) +
        (ext.first_meta_group orelse (groups * ext.descriptor_size + size - 1) / size);
    // The boot sector, and the first superblock after it.
    try place.add(0, (ext.first_data_block + super_blocks) * size, supers);
    for (0..@intCast(groups)) |group| {
        const begin = group * ext.blocks_per_group + ext.first_data_block;
        if (group > 0 and ext.hasSuperBlock(group))
            try place.add(begin * size, super_blocks * size, supers);
        var raw: [64]u8 = @splat(0);
        const at = try ext.descriptorAt(std.math.cast(u32, group) orelse return error.Corrupt);
        try ext.read(raw[0..@min(raw.len, ext.descriptor_size)], at);
        for ([_]usize{ 0, 4, 8 }) |field| {
            const block = int(u32, &raw, field) | @as(u64, int(u32, &raw, field + 32)) << 32;
            const count = if (field == 8) table_blocks else 1;
            const checked = ext_module.checked(ext, block, count) catch continue;
            try place.add(checked * size, count * size, if (field == 8) tables else bitmaps);
        }
    }
}

/// Inodes that no directory names.
const hidden_inodes = [_]struct { u32, []const u8 }{
    .{ ext_module.journal_inode, "journal" },
    .{ 7, "blocks reserved for growth" },
    .{ 3, "quotas" },
    .{ 4, "quotas" },
};

pub fn addHiddenFiles(ext: *const Ext, place: *const Place) Error!void {
    for (hidden_inodes) |hidden| try addHidden(ext, place, hidden[0], hidden[1]);
    if (ext.orphan_inode != 0) try addHidden(ext, place, ext.orphan_inode, "orphan file");
}

/// What cannot be read of it is unnamed.
fn addHidden(ext: *const Ext, place: *const Place, number: u32, what: []const u8) Error!void {
    const inode = ext.inodeOf(number) catch |reason| switch (reason) {
        error.Corrupt, error.Encrypted => return,
        else => return reason,
    };
    if (inode.kind != .file) return;
    addFile(ext, &inode, place, try place.addArea(what)) catch |reason| switch (reason) {
        error.Corrupt, error.Encrypted => {},
        else => return reason,
    };
}
