//! Reads XFS 4 and 5 (Linux, Documentation/filesystems/xfs, fs/xfs/libxfs/xfs_format.h): the
//! superblock, inodes, extents in lists and trees, files and symbolic links. Checksums of
//! version 5 are enforced. Every number on the disk is checked before use. A log with changes that
//! are not in place yet, realtime files and unknown features are refused, never guessed.

const std = @import("std");
const assert = std.debug.assert;
const Kind = @import("../ext.zig").Kind;
const log = @import("log.zig");
const volume_module = @import("../volume.zig");
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;

const Crc32c = @import("../crc32c.zig").Crc32c;

pub const Error = ReadError || error{
    Corrupt,
    /// A file of the realtime section.
    Unsupported,
};
pub const OpenError = Error || error{ NotXfs, UnknownFeature, NotUnmounted };

/// Everything on the disk is big endian, but for checksums.
pub fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .big);
}

const version_directory2 = 0x2000;
const version_more = 0x8000;
const features2_file_type = 0x200;
const incompat = struct {
    const file_type = 0x1;
    const sparse_inodes = 0x2;
    const meta_uuid = 0x4;
    const bigtime = 0x8;
    const large_extent_counts = 0x20;
    const exchange_range = 0x40;
    const parent_pointers = 0x80;

    const readable = file_type | sparse_inodes | meta_uuid | bigtime | large_extent_counts |
        exchange_range | parent_pointers;
};

pub const Xfs = struct {
    volume: Volume,
    block_log: u5,
    /// Of a directory's blocks.
    directory_block_log: u5,
    sector_size: u32,
    inode_size: u32,
    inodes_per_block_log: u5,
    group_blocks: u32,
    group_blocks_log: u5,
    groups: u32,
    blocks: u64,
    root_inode: u64,
    /// Where the log begins, and its size in blocks.
    log_block: u64,
    log_blocks: u32,
    has_checksums: bool,
    has_file_types: bool,

    pub fn open(volume: Volume) OpenError!Xfs {
        const super = volume.readArray(512, 0) catch |reason| switch (reason) {
            error.BeyondTheEnd => return error.NotXfs,
            else => return reason,
        };
        if (!std.mem.startsWith(u8, &super, "XFSB")) return error.NotXfs;
        const version = int(u16, &super, 100);
        const is_v5 = version & 0xf == 5;
        if (!is_v5 and version & 0xf != 4) return error.UnknownFeature;
        if (version & version_directory2 == 0 or super[126] != 0) return error.UnknownFeature;
        const features2 = if (version & version_more != 0) int(u32, &super, 200) else 0;
        const features = if (is_v5) int(u32, &super, 216) else 0;
        if (features & ~@as(u32, incompat.readable) != 0) return error.UnknownFeature;
        const xfs: Xfs = .{
            .volume = volume,
            .block_log = try logOf(super[120], 9, 16),
            .directory_block_log = try logOf(@addWithOverflow(super[120], super[192])[0], 9, 16),
            .sector_size = int(u16, &super, 102),
            .inode_size = int(u16, &super, 104),
            .inodes_per_block_log = try logOf(super[123], 0, 16),
            .group_blocks = int(u32, &super, 84),
            .group_blocks_log = try logOf(super[124], 1, 31),
            .groups = int(u32, &super, 88),
            .blocks = int(u64, &super, 8),
            .root_inode = int(u64, &super, 56),
            .log_block = int(u64, &super, 48),
            .log_blocks = int(u32, &super, 96),
            .has_checksums = is_v5,
            .has_file_types = if (is_v5)
                features & incompat.file_type != 0
            else
                features2 & features2_file_type != 0,
        };
        try xfs.check(&super);
        // Without a log inside, the changes may be on another disk.
        if (xfs.log_block == 0) return error.UnknownFeature;
        if (!try log.isClean(&xfs, .{ .first = xfs.log_block, .blocks = xfs.log_blocks }))
            return error.NotUnmounted;
        return xfs;
    }

    fn logOf(value: u8, min: u5, max: u5) error{Corrupt}!u5 {
        return if (value < min or value > max) error.Corrupt else @intCast(value);
    }

    fn check(xfs: *const Xfs, super: *const [512]u8) OpenError!void {
        if (int(u32, super, 4) != @as(u32, 1) << xfs.block_log) return error.Corrupt;
        if (xfs.sector_size < 512 or xfs.sector_size > 32 << 10 or
            !std.math.isPowerOfTwo(xfs.sector_size)) return error.Corrupt;
        if (xfs.inode_size < 256 or xfs.inode_size > inode_size_max or
            !std.math.isPowerOfTwo(xfs.inode_size)) return error.Corrupt;
        if (@as(u64, xfs.inode_size) << xfs.inodes_per_block_log !=
            @as(u64, 1) << xfs.block_log) return error.Corrupt;
        if (xfs.group_blocks == 0 or xfs.groups == 0) return error.Corrupt;
        if (std.math.log2_int_ceil(u32, xfs.group_blocks) != xfs.group_blocks_log)
            return error.Corrupt;
        if (xfs.blocks == 0 or xfs.blocks > 1 << 47 or
            xfs.blocks > @as(u64, xfs.groups) * xfs.group_blocks) return error.Corrupt;
        if (!xfs.has_checksums) return;
        var checksum: Checksum = .init(224);
        var at: u32 = 0;
        while (at < xfs.sector_size) : (at += 512) {
            const part = try xfs.readArray(512, at);
            checksum.update(&part);
        }
        if (!checksum.matches(std.mem.readInt(u32, super[224..228], .little)))
            return error.Corrupt;
    }

    /// Size of the file system in bytes.
    pub fn size(xfs: *const Xfs) u64 {
        return xfs.blocks << xfs.block_log;
    }

    pub fn blockSize(xfs: *const Xfs) u32 {
        return @as(u32, 1) << xfs.block_log;
    }

    pub fn root(xfs: *const Xfs) Error!Inode {
        return xfs.inodeOf(xfs.root_inode);
    }

    /// Returns the byte of a block, whose number consists of a group and a block in it. All `count`
    /// blocks are in the group.
    pub fn byteOf(xfs: *const Xfs, block: u64, count: u64) error{Corrupt}!u64 {
        const group = block >> xfs.group_blocks_log;
        const within = block & ((@as(u64, 1) << xfs.group_blocks_log) - 1);
        if (group >= xfs.groups or count > xfs.group_blocks or
            within > xfs.group_blocks - count) return error.Corrupt;
        const linear = group * xfs.group_blocks + within;
        if (linear > xfs.blocks or count > xfs.blocks - linear) return error.Corrupt;
        return linear << xfs.block_log;
    }

    pub fn inodeOf(xfs: *const Xfs, number: u64) Error!Inode {
        const per_block = xfs.inodes_per_block_log;
        const index = number & ((@as(u64, 1) << per_block) - 1);
        const at = try xfs.byteOf(number >> per_block, 1) + index * xfs.inode_size;
        var raw: [inode_size_max]u8 = undefined;
        const inode = raw[0..xfs.inode_size];
        try xfs.read(inode, at);
        return Inode.parse(xfs, inode, number, at);
    }

    /// Reads bytes at offset `at` of the file system.
    pub fn read(xfs: *const Xfs, buffer: []u8, at: u64) Error!void {
        return xfs.volume.read(buffer, at) catch |reason| switch (reason) {
            // The image is truncated, or a place is wrong.
            error.BeyondTheEnd => error.Corrupt,
            else => reason,
        };
    }

    pub fn readArray(xfs: *const Xfs, comptime count: usize, at: u64) Error![count]u8 {
        var buffer: [count]u8 = undefined;
        try xfs.read(&buffer, at);
        return buffer;
    }
};

/// A CRC-32C in whose input the checksum itself counts as zero.
pub const Checksum = struct {
    crc: Crc32c,
    at: usize = 0,
    field: usize,

    pub fn init(field: usize) Checksum {
        return .{ .crc = .init(), .field = field };
    }

    /// The field is not split between two parts.
    pub fn update(checksum: *Checksum, bytes: []const u8) void {
        defer checksum.at += bytes.len;
        if (checksum.field < checksum.at or checksum.field >= checksum.at + bytes.len)
            return checksum.crc.update(bytes);
        const field = checksum.field - checksum.at;
        checksum.crc.update(bytes[0..field]);
        checksum.crc.update(&.{ 0, 0, 0, 0 });
        checksum.crc.update(bytes[field + 4 ..]);
    }

    pub fn matches(checksum: *const Checksum, stored: u32) bool {
        return checksum.crc.final() == stored;
    }
};

const inode_size_max = 2048;

/// Holds values only.
pub const Inode = struct {
    kind: Kind,
    format: Format,
    /// Bytes.
    size: u64,
    number: u64,
    extent_count: u64,
    is_realtime: bool,
    /// The data fork inside the inode: a byte of the file system, and its size.
    fork_at: u64,
    fork_size: u32,

    const Format = enum { local, extents, tree, other };
    const flag_realtime = 0x1;
    const flag2_large_counts = 0x10;

    /// `at` is the byte of the inode in the file system.
    fn parse(xfs: *const Xfs, raw: []const u8, number: u64, at: u64) Error!Inode {
        if (!std.mem.startsWith(u8, raw, "IN")) return error.Corrupt;
        const version = raw[4];
        if (xfs.has_checksums != (version == 3)) return error.Corrupt;
        const has_large_counts = version == 3 and int(u64, raw, 120) & flag2_large_counts != 0;
        if (xfs.has_checksums) {
            if (int(u64, raw, 152) != number) return error.Corrupt;
            var checksum: Checksum = .init(100);
            checksum.update(raw);
            if (!checksum.matches(std.mem.readInt(u32, raw[100..104], .little)))
                return error.Corrupt;
        }
        const core: usize = if (version == 3) 176 else 100;
        const all = raw.len - core;
        const attributes_at: usize = @as(usize, raw[82]) * 8;
        if (attributes_at > all) return error.Corrupt;
        const fork_size = if (attributes_at == 0) all else attributes_at;
        const inode: Inode = .{
            .kind = switch (int(u16, raw, 2) & 0xf000) {
                0x8000 => .file,
                0x4000 => .directory,
                0xa000 => .symlink,
                else => .other,
            },
            .format = switch (raw[5]) {
                1 => .local,
                2 => .extents,
                3 => .tree,
                else => .other,
            },
            .size = int(u64, raw, 56),
            .number = number,
            .extent_count = if (has_large_counts) int(u64, raw, 24) else int(u32, raw, 76),
            .is_realtime = int(u16, raw, 90) & flag_realtime != 0,
            .fork_at = at + core,
            .fork_size = @intCast(fork_size),
        };
        if (inode.size >= 1 << 63) return error.Corrupt;
        if (inode.format == .local and inode.size > fork_size) return error.Corrupt;
        if (inode.format == .extents and inode.extent_count > fork_size / extent_size)
            return error.Corrupt;
        return inode;
    }
};

const extent_size = 16;
/// Nine levels of the smallest blocks reach every block that can be counted.
const depth_max = 9;

/// Consecutive blocks of a file that are contiguous on the disk, or a hole that reads as zeros.
pub const Run = struct {
    /// Block of the file.
    first: u64,
    count: u64,
    /// Byte of the file system; null for a hole.
    on_disk: ?u64,

    fn has(run: *const Run, block: u64) bool {
        return block >= run.first and block - run.first < run.count;
    }
};

/// Blocks that a file may have; its extents are counted in 54 bits.
const blocks_max = 1 << 54;

/// Blocks of a hole at once; with the largest blocks these are 2^56 bytes.
const hole_max = 1 << 40;

pub fn findRun(xfs: *const Xfs, inode: *const Inode, block: u64) Error!Run {
    if (inode.is_realtime and inode.kind == .file) return error.Unsupported;
    if (block >= blocks_max) return error.Corrupt;
    return switch (inode.format) {
        .extents => findExtent(xfs, .{
            .at = inode.fork_at,
            .count = @intCast(inode.extent_count),
        }, block, blocks_max),
        .tree => findInTree(xfs, inode, block),
        .local, .other => error.Corrupt,
    };
}

/// Records of the same size, from a byte of the file system on.
const Table = struct {
    at: u64,
    count: u32,

    fn get(
        table: *const Table,
        xfs: *const Xfs,
        comptime size: usize,
        index: u32,
    ) Error![size]u8 {
        return xfs.readArray(size, table.at + @as(u64, index) * size);
    }
};

/// First block of the file, count, block of the file system, and whether it was never written.
const Extent = struct {
    first: u64,
    count: u64,
    block: u64,
    is_unwritten: bool,

    fn parse(raw: *const [extent_size]u8) Extent {
        const high = int(u64, raw, 0);
        const low = int(u64, raw, 8);
        return .{
            .is_unwritten = high >> 63 != 0,
            .first = high >> 9 & (blocks_max - 1),
            .block = (high & 0x1ff) << 43 | low >> 21,
            .count = low & 0x1f_ffff,
        };
    }
};

/// `limit`: the first block of the file that is elsewhere in the tree.
fn findExtent(xfs: *const Xfs, table: Table, block: u64, limit: u64) Error!Run {
    var low: u32 = 0;
    var high = table.count;
    var found: ?Extent = null;
    var next = limit;
    // Unordered extents lead to a wrong block, never outside.
    while (low < high) {
        const middle = low + (high - low) / 2;
        const extent: Extent = .parse(&try table.get(xfs, extent_size, middle));
        if (extent.first <= block) {
            found = extent;
            low = middle + 1;
        } else {
            next = extent.first;
            high = middle;
        }
    }
    if (next <= block) return error.Corrupt;
    const hole: Run = .{ .first = block, .count = @min(next - block, hole_max), .on_disk = null };
    const extent = found orelse return hole;
    if (extent.count == 0) return error.Corrupt;
    const at = try xfs.byteOf(extent.block, extent.count);
    if (block - extent.first >= extent.count) return hole;
    return .{
        .first = extent.first,
        .count = extent.count,
        .on_disk = if (extent.is_unwritten) null else at,
    };
}

fn findInTree(xfs: *const Xfs, inode: *const Inode, block: u64) Error!Run {
    if (inode.fork_size < 4) return error.Corrupt;
    const head = try xfs.readArray(4, inode.fork_at);
    var level = int(u16, &head, 0);
    if (level == 0 or level > depth_max) return error.Corrupt;
    const root_capacity: u32 = (inode.fork_size - 4) / 16;
    var limit: u64 = blocks_max;
    var child = try findChild(xfs, .{
        .at = inode.fork_at + 4,
        .count = int(u16, &head, 2),
    }, root_capacity, block, &limit);
    const header_size: u32 = if (xfs.has_checksums) 72 else 24;
    const capacity = (xfs.blockSize() - header_size) / 16;
    while (true) {
        const at = try xfs.byteOf(child, 1);
        const header = try checkTreeBlock(xfs, at, inode.number);
        level -= 1;
        if (int(u16, &header, 4) != level) return error.Corrupt;
        const count = int(u16, &header, 6);
        if (count > capacity) return error.Corrupt;
        const table: Table = .{ .at = at + header_size, .count = count };
        if (level == 0) return findExtent(xfs, table, block, limit);
        child = try findChild(xfs, table, capacity, block, &limit);
    }
}

/// Returns the block below; keys come first, and all pointers behind the place of the last key.
fn findChild(
    xfs: *const Xfs,
    keys: Table,
    capacity: u32,
    block: u64,
    limit: *u64,
) Error!u64 {
    if (keys.count == 0 or keys.count > capacity) return error.Corrupt;
    var low: u32 = 0;
    var high = keys.count;
    while (low < high) {
        const middle = low + (high - low) / 2;
        const first = int(u64, &try keys.get(xfs, 8, middle), 0);
        if (first <= block) {
            low = middle + 1;
        } else {
            limit.* = @min(limit.*, first);
            high = middle;
        }
    }
    // Blocks before the first key are a hole, which the first child knows.
    const index = low -| 1;
    const pointers: Table = .{
        .at = keys.at + @as(u64, capacity) * 8,
        .count = keys.count,
    };
    return int(u64, &try pointers.get(xfs, 8, index), 0);
}

fn checkTreeBlock(xfs: *const Xfs, at: u64, owner: u64) Error![72]u8 {
    const header = try xfs.readArray(72, at);
    if (!xfs.has_checksums)
        return if (std.mem.startsWith(u8, &header, "BMAP")) header else error.Corrupt;
    if (!std.mem.startsWith(u8, &header, "BMA3")) return error.Corrupt;
    if (int(u64, &header, 56) != owner) return error.Corrupt;
    try checkBlocks(xfs, &.{.{ .at = at, .size = xfs.blockSize() }}, 64);
    return header;
}

pub const Part = struct { at: u64, size: u32 };

/// Compares the checksum at byte `field` of what is in these parts, each a multiple of 512 bytes.
pub fn checkBlocks(xfs: *const Xfs, parts: []const Part, field: usize) Error!void {
    var checksum: Checksum = .init(field);
    var stored: u32 = 0;
    var buffer: [4096]u8 = undefined;
    for (parts) |part| {
        var done: u32 = 0;
        while (done < part.size) {
            const piece = buffer[0..@min(buffer.len, part.size - done)];
            try xfs.read(piece, part.at + done);
            if (checksum.at <= field and field < checksum.at + piece.len)
                stored = std.mem.readInt(u32, piece[field - checksum.at ..][0..4], .little);
            checksum.update(piece);
            done += @intCast(piece.len);
        }
    }
    if (!checksum.matches(stored)) return error.Corrupt;
}

/// The content of a file or link. It keeps the last run, so that a sequential read looks each run
/// up once.
pub const File = struct {
    xfs: *const Xfs,
    inode: *const Inode,
    run: Run = .{ .first = 0, .count = 0, .on_disk = null },

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(file: *File, buffer: []u8, offset: u64) Error!void {
        const inode = file.inode;
        if (buffer.len > inode.size or offset > inode.size - buffer.len) return error.BeyondTheEnd;
        if (inode.format == .local) return file.xfs.read(buffer, inode.fork_at + offset);
        if (inode.kind == .symlink) return file.readLink(buffer, offset);
        return file.readBlocks(buffer, offset);
    }

    /// Reads bytes of the data fork, also beyond the size of the file.
    pub fn readBlocks(file: *File, buffer: []u8, offset: u64) Error!void {
        const xfs = file.xfs;
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            const block = at >> xfs.block_log;
            if (!file.run.has(block)) file.run = try findRun(xfs, file.inode, block);
            assert(file.run.has(block));
            const within = at - (file.run.first << xfs.block_log);
            const left = (file.run.count << xfs.block_log) - within;
            const part = buffer[filled..][0..@intCast(@min(buffer.len - filled, left))];
            if (file.run.on_disk) |first| {
                try xfs.read(part, first + within);
            } else @memset(part, 0);
            filled += part.len;
        }
    }

    /// Each extent of a target has a header in version 5.
    fn readLink(file: *File, buffer: []u8, offset: u64) Error!void {
        const xfs = file.xfs;
        if (file.inode.size > link_size_max) return error.Corrupt;
        if (!xfs.has_checksums) return file.readBlocks(buffer, offset);
        var target: [link_size_max]u8 = undefined;
        var known: u32 = 0;
        var block: u64 = 0;
        while (known < file.inode.size) {
            const run = try findRun(xfs, file.inode, block);
            const at = run.on_disk orelse return error.Corrupt;
            if (run.first != block) return error.Corrupt;
            const size = @min(run.count << xfs.block_log, link_block_max);
            const header = try xfs.readArray(link_header_size, at);
            if (!std.mem.startsWith(u8, &header, "XSLM")) return error.Corrupt;
            const count = int(u32, &header, 8);
            if (int(u32, &header, 4) != known or count == 0 or
                count > size - link_header_size or count > target.len - known or
                int(u64, &header, 32) != file.inode.number) return error.Corrupt;
            if (run.count << xfs.block_log > link_block_max) return error.Corrupt;
            try checkBlocks(xfs, &.{.{ .at = at, .size = @intCast(size) }}, 12);
            try xfs.read(target[known..][0..count], at + link_header_size);
            known += count;
            block += run.count;
        }
        if (known != file.inode.size) return error.Corrupt;
        @memcpy(buffer, target[@intCast(offset)..][0..buffer.len]);
    }
};

const link_size_max = 1024;
const link_header_size = 56;
/// A target fits one block of 64 KiB.
const link_block_max = 64 << 10;
