//! Reads ext2, ext3 and ext4 (Documentation/filesystems/ext4): inodes, the blocks of files (extent
//! trees of ext4, direct and indirect blocks, small files inside their inode) and directories.
//! Every number on the disk is checked before use. What cannot be read correctly is an error, never
//! a guess: a journal that was not replayed, features that change the layout, encrypted files.

const std = @import("std");
const assert = std.debug.assert;
const volume_module = @import("volume.zig");
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;
const int = volume_module.int;

pub const block_size_max = 64 << 10;
pub const root_inode = 2;
pub const journal_inode = 8;

pub const OpenError = InodeError || error{
    NotExt,
    /// The journal was not replayed, so recent writes would be missing.
    NotUnmounted,
    /// An unknown feature that changes the layout.
    UnknownFeature,
};

pub const InodeError = ReadError || error{
    Corrupt,
    /// An encrypted file or directory.
    Encrypted,
};

pub const Kind = enum { file, directory, symlink, other };

const compat = struct {
    const has_journal = 0x4;
    const orphan_file = 0x1000;
};
const incompat = struct {
    const filetype = 0x2;
    const recover = 0x4;
    const journal_device = 0x8;
    const meta_bg = 0x10;
    const extents = 0x40;
    const wide = 0x80;
    const mmp = 0x100;
    const flex_bg = 0x200;
    const ea_inode = 0x400;
    const csum_seed = 0x2000;
    const large_dir = 0x4000;
    const inline_data = 0x8000;
    const encrypt = 0x10000;
    const casefold = 0x20000;

    const readable = filetype | recover | meta_bg | extents |
        wide | mmp | flex_bg | ea_inode | csum_seed | large_dir | inline_data | encrypt | casefold;
};
const ro_compat = struct {
    const sparse_super = 0x1;
};
const state_unmounted = 0x1;
const state_errors = 0x2;

pub const Ext = struct {
    volume: Volume,
    block_size: u32,
    blocks: u64,
    inodes: u32,
    inode_size: u32,
    inodes_per_group: u32,
    blocks_per_group: u32,
    descriptor_size: u32,
    first_data_block: u32,
    /// Blocks that each copy of the group descriptors may grow by.
    reserved_descriptor_blocks: u32,
    /// The inode of the orphan file, or 0.
    orphan_inode: u32,
    /// From this group of descriptors on, each group of groups has its own; null: all are at the
    /// start.
    first_meta_group: ?u32,
    has_sparse_super: bool,
    /// Without a journal and not unmounted: the last writes may be missing.
    is_unclean: bool,
    has_errors: bool,
    has_journal: bool,
    has_extents: bool,

    pub fn open(volume: Volume) OpenError!Ext {
        const super = volume.readArray(1024, 1024) catch |reason| switch (reason) {
            error.BeyondTheEnd => return error.NotExt,
            else => return reason,
        };
        if (int(u16, &super, 56) != 0xef53) return error.NotExt;
        const shift = int(u32, &super, 24);
        if (shift > 6) return error.Corrupt;
        const features = int(u32, &super, 96);
        if (features & incompat.journal_device != 0) return error.NotExt;
        if (features & ~@as(u32, incompat.readable) != 0) return error.UnknownFeature;
        const is_dynamic = int(u32, &super, 76) > 0;
        const is_wide = features & incompat.wide != 0;
        const state = int(u16, &super, 58);
        const has_journal = int(u32, &super, 92) & compat.has_journal != 0;
        const ext: Ext = .{
            .volume = volume,
            .block_size = @as(u32, 1024) << @intCast(shift),
            .blocks = int(u32, &super, 4) |
                if (is_wide) @as(u64, int(u32, &super, 336)) << 32 else 0,
            .inodes = int(u32, &super, 0),
            .inode_size = if (is_dynamic) int(u16, &super, 88) else 128,
            .inodes_per_group = int(u32, &super, 40),
            .blocks_per_group = int(u32, &super, 32),
            .descriptor_size = if (is_wide) int(u16, &super, 254) else 32,
            .first_data_block = int(u32, &super, 20),
            .reserved_descriptor_blocks = int(u16, &super, 206),
            .orphan_inode = if (int(u32, &super, 92) & compat.orphan_file != 0)
                int(u32, &super, 640)
            else
                0,
            .first_meta_group = if (features & incompat.meta_bg != 0)
                int(u32, &super, 260)
            else
                null,
            .has_sparse_super = int(u32, &super, 100) & ro_compat.sparse_super != 0,
            .is_unclean = !has_journal and state & state_unmounted == 0,
            .has_errors = state & state_errors != 0,
            .has_journal = has_journal,
            .has_extents = features & incompat.extents != 0,
        };
        try ext.check();
        if (features & incompat.recover != 0) try ext.checkJournal();
        return ext;
    }

    fn check(ext: *const Ext) OpenError!void {
        if (ext.blocks == 0 or ext.inodes < root_inode) return error.Corrupt;
        if (ext.blocks_per_group == 0 or ext.inodes_per_group == 0) return error.Corrupt;
        if (ext.first_data_block > 1) return error.Corrupt;
        if (ext.inode_size < 128 or ext.inode_size > ext.block_size) return error.Corrupt;
        if (!std.math.isPowerOfTwo(ext.inode_size)) return error.Corrupt;
        if (ext.descriptor_size < 32 or ext.descriptor_size > 1024) return error.Corrupt;
        if (!std.math.isPowerOfTwo(ext.descriptor_size)) return error.Corrupt;
        _ = std.math.mul(u64, ext.blocks, ext.block_size) catch return error.Corrupt;
    }

    /// The flag that a journal must be replayed is set while the file system is mounted. The
    /// journal is empty when its superblock has no first block (struct journal_superblock_s, big
    /// endian).
    fn checkJournal(ext: *const Ext) OpenError!void {
        if (!ext.has_journal) return error.NotUnmounted;
        const inode = try ext.inodeOf(journal_inode);
        var file: File = .{ .ext = ext, .inode = &inode };
        var head: [32]u8 = undefined;
        try file.read(&head, 0);
        if (std.mem.readInt(u32, head[0..4], .big) != 0xc03b3998) return error.Corrupt;
        if (std.mem.readInt(u32, head[28..32], .big) != 0) return error.NotUnmounted;
    }

    /// Size of the file system in bytes.
    pub fn size(ext: *const Ext) u64 {
        return ext.blocks * ext.block_size;
    }

    pub fn inodeOf(ext: *const Ext, number: u32) InodeError!Inode {
        if (number == 0 or number > ext.inodes) return error.Corrupt;
        const group = (number - 1) / ext.inodes_per_group;
        const index = (number - 1) % ext.inodes_per_group;
        var raw: [64]u8 = @splat(0);
        const kept = raw[0..@min(raw.len, ext.descriptor_size)];
        try ext.read(kept, try ext.descriptorAt(group));
        const table = int(u32, &raw, 8) | @as(u64, int(u32, &raw, 40)) << 32;
        if (table == 0 or table >= ext.blocks) return error.Corrupt;
        const at = table * ext.block_size + @as(u64, index) * ext.inode_size;
        var buffer: [inode_kept_max]u8 = @splat(0);
        const inode_size = @min(ext.inode_size, buffer.len);
        try ext.read(buffer[0..inode_size], at);
        var inode = try Inode.parse(buffer[0..inode_size], at);
        inode.number = number;
        return inode;
    }

    pub fn descriptorAt(ext: *const Ext, group: u32) InodeError!u64 {
        const per_block = ext.block_size / ext.descriptor_size;
        const block_index = group / per_block;
        const within = @as(u64, group % per_block) * ext.descriptor_size;
        const block = block: {
            // After the superblock, which is block 1 if blocks have 1 KiB, whatever the first data
            // block is.
            const behind_super: u64 = if (ext.block_size == 1024) 2 else 1;
            const first_meta = ext.first_meta_group orelse break :block behind_super + block_index;
            if (block_index < first_meta) break :block behind_super + block_index;
            if (block_index == 0) break :block behind_super;
            const first_group = @as(u64, block_index) * per_block;
            const has_super: u64 = @intFromBool(ext.hasSuperBlock(first_group));
            break :block ext.first_data_block + first_group * ext.blocks_per_group + has_super;
        };
        if (block >= ext.blocks) return error.Corrupt;
        return block * ext.block_size + within;
    }

    /// Groups 0, 1 and powers of 3, 5 and 7 hold copies.
    pub fn hasSuperBlock(ext: *const Ext, group: u64) bool {
        if (!ext.has_sparse_super or group <= 1) return true;
        for ([_]u64{ 3, 5, 7 }) |prime| {
            var power = prime;
            while (power < group) power *= prime;
            if (power == group) return true;
        }
        return false;
    }

    /// Reads bytes at offset `at` of the file system.
    pub fn read(ext: *const Ext, buffer: []u8, at: u64) InodeError!void {
        return ext.volume.read(buffer, at) catch |reason| switch (reason) {
            // The image is truncated, or a block number is wrong.
            error.BeyondTheEnd => error.Corrupt,
            else => reason,
        };
    }
};

/// Covers the part of an inode that can hold a small file, also in larger inodes.
const inode_kept_max = 4096;
const attributes_magic = 0xea020000;

/// Holds values only.
pub const Inode = struct {
    number: u32 = 0,
    kind: Kind,
    /// Bytes.
    size: u64,
    flags: u32,
    blocks: [60]u8,
    /// The block of its extended attributes, or 0.
    attributes_block: u64 = 0,
    /// A small file's bytes after the first 60.
    tail: struct { at: u64 = 0, size: u32 = 0 } = .{},

    const flag_encrypted = 0x800;
    pub const flag_extents = 0x80000;
    const flag_inline = 0x10000000;

    /// `at` is the offset of the inode in the file system.
    fn parse(raw: []const u8, at: u64) InodeError!Inode {
        var inode: Inode = .{
            .kind = switch (int(u16, raw, 0) & 0xf000) {
                0x8000 => .file,
                0x4000 => .directory,
                0xa000 => .symlink,
                else => .other,
            },
            .size = int(u32, raw, 4) | @as(u64, int(u32, raw, 108)) << 32,
            .flags = int(u32, raw, 32),
            .blocks = raw[40..100].*,
            .attributes_block = int(u32, raw, 104) | @as(u64, int(u16, raw, 118)) << 32,
        };
        if (inode.size >= 1 << 63) return error.Corrupt;
        if (inode.isInline()) inode.tail = try findTail(raw, at);
        return inode;
    }

    pub fn isInline(inode: *const Inode) bool {
        return inode.flags & flag_inline != 0;
    }

    /// Short targets of symbolic links are stored in place of the block numbers.
    pub fn isFastLink(inode: *const Inode) bool {
        return inode.kind == .symlink and inode.size < 60 and
            inode.flags & (flag_extents | flag_inline) == 0;
    }

    fn findTail(raw: []const u8, at: u64) InodeError!@FieldType(Inode, "tail") {
        if (raw.len < 160) return .{};
        const begin = 128 + @as(usize, int(u16, raw, 128));
        if (begin + 8 > raw.len or begin % 4 != 0) return error.Corrupt;
        if (int(u32, raw, begin) != attributes_magic) return .{};
        const values = begin + 4;
        var entry = values;
        // Each entry takes 16 bytes or more: the loop ends with the inode.
        while (entry + 16 <= raw.len and int(u32, raw, entry) != 0) {
            const name_size: usize = raw[entry];
            const end = entry + 16 + name_size;
            if (end > raw.len) return error.Corrupt;
            if (raw[entry + 1] == 7 and std.mem.eql(u8, raw[entry + 16 .. end], "data")) {
                const value = values + @as(usize, int(u16, raw, entry + 2));
                const size = int(u32, raw, entry + 8);
                if (int(u32, raw, entry + 4) != 0) return error.Corrupt;
                if (value > raw.len or size > raw.len - value) return error.Corrupt;
                return .{ .at = at + value, .size = size };
            }
            entry = std.mem.alignForward(usize, end, 4);
        }
        return .{};
    }
};

/// Four levels reach every block that a 32-bit number can count; deeper trees are not made.
pub const depth_max = 5;
const extent_size = 12;
const extent_magic = 0xf30a;
pub const direct_count = 12;

/// Consecutive blocks of a file that are contiguous on the disk, or a hole that reads as zeros.
const Run = struct {
    /// Block of the file.
    first: u64,
    count: u64,
    /// Block of the file system; null for a hole.
    on_disk: ?u64,
};

/// The content of an inode. It caches the last run, so a sequential read looks each run up once.
pub const File = struct {
    ext: *const Ext,
    inode: *const Inode,
    run: Run = .{ .first = 0, .count = 0, .on_disk = null },

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(file: *File, buffer: []u8, offset: u64) InodeError!void {
        const inode = file.inode;
        if (buffer.len > inode.size or offset > inode.size - buffer.len) return error.BeyondTheEnd;
        if (inode.flags & Inode.flag_encrypted != 0) return error.Encrypted;
        if (inode.isInline()) return file.readInline(buffer, offset);
        if (inode.isFastLink()) {
            @memcpy(buffer, inode.blocks[@intCast(offset)..][0..buffer.len]);
            return;
        }
        const block_size = file.ext.block_size;
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            const block = at / block_size;
            if (block < file.run.first or block - file.run.first >= file.run.count)
                file.run = try findRun(file.ext, inode, block);
            assert(block >= file.run.first and block - file.run.first < file.run.count);
            const within = at - file.run.first * block_size;
            const left = std.math.mul(u64, file.run.count, block_size) catch std.math.maxInt(u64);
            const part = buffer[filled..][0..@intCast(@min(buffer.len - filled, left - within))];
            if (file.run.on_disk) |first| {
                try file.ext.read(part, first * block_size + within);
            } else @memset(part, 0);
            filled += part.len;
        }
    }

    fn readInline(file: *File, buffer: []u8, offset: u64) InodeError!void {
        const inode = file.inode;
        const front = inode.blocks.len;
        if (inode.size > front + @as(u64, inode.tail.size)) return error.Corrupt;
        const begin: usize = @intCast(offset);
        const in_front = if (begin < front) @min(buffer.len, front - begin) else 0;
        if (in_front > 0) @memcpy(buffer[0..in_front], inode.blocks[begin..][0..in_front]);
        const rest = buffer[in_front..];
        if (rest.len > 0) try file.ext.read(rest, inode.tail.at + (begin + in_front - front));
    }
};

fn findRun(ext: *const Ext, inode: *const Inode, block: u64) InodeError!Run {
    if (inode.flags & Inode.flag_extents != 0) return findExtent(ext, inode, block);
    return findIndirect(ext, inode, block);
}

/// Checks that the block is within the file system.
pub fn checked(ext: *const Ext, block: u64, count: u64) InodeError!u64 {
    if (block == 0 or count > ext.blocks or block > ext.blocks - count) return error.Corrupt;
    return block;
}

fn findExtent(ext: *const Ext, inode: *const Inode, block: u64) InodeError!Run {
    if (block > std.math.maxInt(u32)) return error.Corrupt;
    var node_block: ?u64 = null;
    var depth_wanted: ?u16 = null;
    // First block of the file that belongs to another entry of a node above.
    var limit: u64 = 1 << 32;
    for (0..depth_max + 1) |_| {
        var entries = try ExtentNode.open(ext, inode, node_block);
        if (entries.depth > depth_max) return error.Corrupt;
        if (depth_wanted) |wanted| if (entries.depth != wanted) return error.Corrupt;
        const place = try entries.search(@intCast(block));
        if (place.next) |next| limit = @min(limit, next);
        if (limit <= block) return error.Corrupt;
        const entry = place.entry orelse {
            // Blocks before the first entry are a hole.
            return .{ .first = block, .count = limit - block, .on_disk = null };
        };
        if (entries.depth == 0) return ofExtent(ext, &entry, block, limit);
        node_block = try checked(ext, int(u32, &entry, 4) | @as(u64, int(u16, &entry, 8)) << 32, 1);
        depth_wanted = entries.depth - 1;
    }
    return error.Corrupt;
}

fn ofExtent(ext: *const Ext, entry: *const ExtentEntry, block: u64, limit: u64) InodeError!Run {
    const first: u64 = int(u32, entry, 0);
    const stored = int(u16, entry, 4);
    // Above 32768: allocated and never written.
    const is_written = stored <= 1 << 15;
    const count: u64 = if (is_written) stored else stored - (1 << 15);
    const on_disk = int(u32, entry, 8) | @as(u64, int(u16, entry, 6)) << 32;
    if (count == 0) return error.Corrupt;
    _ = try checked(ext, on_disk, count);
    if (block >= first + count) return .{ .first = block, .count = limit - block, .on_disk = null };
    return .{ .first = first, .count = count, .on_disk = if (is_written) on_disk else null };
}

pub const ExtentEntry = [extent_size]u8;

/// The entries of one node: in the inode, or in a block, which is read in parts.
pub const ExtentNode = struct {
    ext: *const Ext,
    inode: *const Inode,
    block: ?u64,
    count: u32,
    depth: u16,

    pub fn open(ext: *const Ext, inode: *const Inode, block: ?u64) InodeError!ExtentNode {
        var entries: ExtentNode = .{
            .ext = ext,
            .inode = inode,
            .block = block,
            .count = 0,
            .depth = 0,
        };
        const header = try entries.get(0);
        if (int(u16, &header, 0) != extent_magic) return error.Corrupt;
        const node_size = if (block == null) inode.blocks.len else ext.block_size;
        entries.count = int(u16, &header, 2);
        entries.depth = int(u16, &header, 6);
        if (entries.count > node_size / extent_size - 1) return error.Corrupt;
        return entries;
    }

    /// ExtentEntry 0 is the header.
    pub fn get(entries: *const ExtentNode, index: u32) InodeError!ExtentEntry {
        const at = @as(u64, index) * extent_size;
        const block = entries.block orelse
            return entries.inode.blocks[@intCast(at)..][0..extent_size].*;
        var entry: ExtentEntry = undefined;
        try entries.ext.read(&entry, block * entries.ext.block_size + at);
        return entry;
    }

    /// Finds the last entry that does not start after `block`, and the start of the next one.
    /// Unordered entries lead to a wrong block, never outside.
    fn search(
        entries: *const ExtentNode,
        block: u32,
    ) InodeError!struct { entry: ?ExtentEntry, next: ?u32 } {
        var low: u32 = 0;
        var high: u32 = entries.count;
        var found: ?ExtentEntry = null;
        var next: ?u32 = null;
        while (low < high) {
            const middle = low + (high - low) / 2;
            const entry = try entries.get(middle + 1);
            const first = int(u32, &entry, 0);
            if (first <= block) {
                found = entry;
                low = middle + 1;
            } else {
                next = first;
                high = middle;
            }
        }
        return .{ .entry = found, .next = next };
    }
};

/// Block numbers examined at once to find contiguous runs.
pub const numbers_max = 256;

fn findIndirect(ext: *const Ext, inode: *const Inode, block: u64) InodeError!Run {
    if (block < direct_count)
        return runOf(ext, inode.blocks[@intCast(block * 4) .. direct_count * 4], block);
    const per: u64 = ext.block_size / 4;
    var rest = block - direct_count;
    var span: u64 = 1;
    for (0..3) |level| {
        span *= per;
        if (rest >= span) {
            rest -= span;
            continue;
        }
        var at: u64 = int(u32, &inode.blocks, (direct_count + level) * 4);
        while (true) {
            // A hole: no blocks below.
            if (at == 0) return .{ .first = block, .count = span - rest, .on_disk = null };
            _ = try checked(ext, at, 1);
            span /= per;
            const index = rest / span;
            rest %= span;
            const begin = at * ext.block_size + index * 4;
            if (span == 1) {
                var numbers: [numbers_max * 4]u8 = undefined;
                const left: usize = @intCast(per - index);
                const kept = numbers[0 .. @as(usize, @min(numbers_max, left)) * 4];
                try ext.read(kept, begin);
                return runOf(ext, kept, block);
            }
            var number: [4]u8 = undefined;
            try ext.read(&number, begin);
            at = int(u32, &number, 0);
        }
    }
    return error.Corrupt;
}

/// Counts the blocks that are contiguous, or all holes.
fn runOf(ext: *const Ext, numbers: []const u8, first: u64) InodeError!Run {
    const on_disk: u64 = int(u32, numbers, 0);
    var count: u64 = 1;
    while (count * 4 < numbers.len) : (count += 1) {
        const number: u64 = int(u32, numbers, @intCast(count * 4));
        if (number != if (on_disk == 0) 0 else on_disk + count) break;
    }
    if (on_disk == 0) return .{ .first = first, .count = count, .on_disk = null };
    return .{ .first = first, .count = count, .on_disk = try checked(ext, on_disk, count) };
}

pub const name_size_max = 255;
/// Directories with boot files or modules are far smaller.
pub const directory_size_max = 16 << 20;
const entry_header_size = 8;

pub const DirectoryEntry = struct { inode: u32, name: []const u8 };

/// Iterates over the entries of a directory in block order. A hashed directory reads the same way,
/// since its index hides in entries without an inode. `inode` must not move.
pub const Directory = struct {
    file: File,
    /// Offset of the next entry in the directory.
    at: u64,
    /// End of the current part: of a block, or of a part of a directory inside its inode.
    part_end: u64,
    name: [name_size_max]u8 = undefined,

    pub fn open(ext: *const Ext, inode: *const Inode) InodeError!Directory {
        if (inode.kind != .directory or inode.size > directory_size_max) return error.Corrupt;
        if (inode.isInline()) return .{
            .file = .{ .ext = ext, .inode = inode },
            // Its first four bytes are the parent's inode.
            .at = 4,
            .part_end = inode.blocks.len,
        };
        if (inode.size % ext.block_size != 0) return error.Corrupt;
        return .{ .file = .{ .ext = ext, .inode = inode }, .at = 0, .part_end = ext.block_size };
    }

    /// Returns null at the end; the name is valid until the next call.
    pub fn next(directory: *Directory) InodeError!?DirectoryEntry {
        const inode = directory.file.inode;
        while (directory.at < inode.size) {
            if (directory.at + entry_header_size > directory.part_end) {
                directory.nextPart();
                continue;
            }
            var header: [entry_header_size]u8 = undefined;
            if (directory.at + entry_header_size > inode.size) return null;
            try directory.file.read(&header, directory.at);
            const size = try entrySize(&header, directory.part_end - directory.at);
            const name_at = directory.at + entry_header_size;
            directory.at += size;
            const number = int(u32, &header, 0);
            if (directory.at == directory.part_end) directory.nextPart();
            const name = directory.name[0..header[6]];
            if (number == 0 or name.len == 0) continue;
            if (name.len + entry_header_size > size) return error.Corrupt;
            try directory.file.read(name, name_at);
            return .{ .inode = number, .name = name };
        }
        return null;
    }

    fn nextPart(directory: *Directory) void {
        const inode = directory.file.inode;
        directory.at = directory.part_end;
        directory.part_end = if (inode.isInline()) inode.size else directory.part_end +
            directory.file.ext.block_size;
    }

    /// Each entry advances by this size, never over the end of its part: the iteration ends.
    fn entrySize(header: *const [entry_header_size]u8, left: u64) InodeError!u64 {
        const stored = int(u16, header, 4);
        // How blocks of 64 KiB encode their size.
        const size: u64 = if (stored == 0xffff or stored == 0) 1 << 16 else stored;
        if (size < entry_header_size or size % 4 != 0 or size > left) return error.Corrupt;
        return size;
    }
};

/// Returns the inode of a name, or null if it is missing.
pub fn findName(ext: *const Ext, inode: *const Inode, name: []const u8) InodeError!?u32 {
    var directory = try Directory.open(ext, inode);
    while (try directory.next()) |entry| if (std.mem.eql(u8, entry.name, name)) return entry.inode;
    return null;
}
