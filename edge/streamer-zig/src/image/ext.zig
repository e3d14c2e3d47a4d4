//! Reads ext2, ext3 and ext4 (Documentation/filesystems/ext4). Every number on the disk is checked
//! before use. What cannot be read correctly is an error, never a guess: a journal that was not
//! replayed, features that change the layout, encrypted files.

const std = @import("std");
const volume_module = @import("volume.zig");
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;
const int = volume_module.int;

pub const block_size_max = 64 << 10;
pub const root_inode = 2;
const journal_inode = 8;

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

    const readable =
        filetype | recover | meta_bg | extents | wide | mmp | flex_bg | ea_inode |
        csum_seed | large_dir | inline_data | encrypt | casefold;
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
            .blocks = int(u32, &super, 4) | if (is_wide)
                @as(u64, int(u32, &super, 336)) << 32
            else
                0,
            .inodes = int(u32, &super, 0),
            .inode_size = if (is_dynamic) int(u16, &super, 88) else 128,
            .inodes_per_group = int(u32, &super, 40),
            .blocks_per_group = int(u32, &super, 32),
            .descriptor_size = if (is_wide) int(u16, &super, 254) else 32,
            .first_data_block = int(u32, &super, 20),
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
        return Inode.parse(buffer[0..inode_size], at);
    }

    fn descriptorAt(ext: *const Ext, group: u32) InodeError!u64 {
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
    fn hasSuperBlock(ext: *const Ext, group: u64) bool {
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
    kind: Kind,
    /// Bytes.
    size: u64,
    flags: u32,
    blocks: [60]u8,
    /// A small file's bytes after the first 60.
    tail: struct { at: u64 = 0, size: u32 = 0 } = .{},

    pub const flag_encrypted = 0x800;
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

const ext_map = @import("ext_map.zig");
const ext_directory = @import("ext_directory.zig");
pub const File = ext_map.File;
pub const Directory = ext_directory.Directory;
pub const findName = ext_directory.find;

test {
    _ = ext_map;
    _ = ext_directory;
}
