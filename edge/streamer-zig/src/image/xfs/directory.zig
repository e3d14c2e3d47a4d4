//! Reads directories of XFS (fs/xfs/libxfs/xfs_da_format.h): short ones inside their inode, and
//! blocks of entries. The blocks hold all names whatever index is kept beside them, so that block,
//! leaf, node and tree directories read the same way, from start to end.

const std = @import("std");
const xfs_module = @import("xfs.zig");
const Error = xfs_module.Error;
const File = xfs_module.File;
const Inode = xfs_module.Inode;
const Xfs = xfs_module.Xfs;
const int = xfs_module.int;

const name_size_max = 255;
/// Directories with boot files or modules are far smaller.
const directory_size_max = 16 << 20;
/// The index begins here, behind all entries.
const leaf_offset = 32 << 30;
/// A directory's block of 64 KiB in the smallest blocks.
const parts_max = 128;

pub const Entry = struct { name: []const u8, inode: u64 };

/// Iterates over the entries. `inode` must not move.
pub const Directory = struct {
    file: File,
    /// Offset of the next entry: in the fork, or in the directory.
    at: u64,
    /// End of the entries in the current block.
    part_end: u64 = 0,
    /// Entries left in a short directory, and the size of its inode numbers.
    short_left: u32 = 0,
    short_number_size: u32 = 0,
    name: [name_size_max]u8 = undefined,

    pub fn open(xfs: *const Xfs, inode: *const Inode) Error!Directory {
        if (inode.kind != .directory) return error.Corrupt;
        const file: File = .{ .xfs = xfs, .inode = inode };
        if (inode.format != .local) {
            if (inode.size > directory_size_max or
                inode.size % (@as(u64, 1) << xfs.directory_block_log) != 0) return error.Corrupt;
            return .{ .file = file, .at = 0 };
        }
        if (inode.size < 2) return error.Corrupt;
        const head = try xfs.readArray(2, inode.fork_at);
        const number_size: u32 = if (head[1] > 0) 8 else 4;
        return .{
            .file = file,
            .at = 2 + number_size,
            .short_left = head[0],
            .short_number_size = number_size,
        };
    }

    /// Returns null at the end; the name is valid until the next call.
    pub fn next(directory: *Directory) Error!?Entry {
        const inode = directory.file.inode;
        if (inode.format == .local) return directory.nextShort();
        while (true) {
            if (directory.at == directory.part_end) {
                if (!try directory.openBlock()) return null;
                continue;
            }
            if (try directory.nextInBlock()) |entry| return entry;
        }
    }

    fn nextShort(directory: *Directory) Error!?Entry {
        if (directory.short_left == 0) return null;
        directory.short_left -= 1;
        const file = &directory.file;
        var raw: [3 + name_size_max + 1 + 8]u8 = undefined;
        if (directory.at + 3 > file.inode.size) return error.Corrupt;
        const kept = raw[0..@intCast(@min(raw.len, file.inode.size - directory.at))];
        try file.read(kept, directory.at);
        const length: usize = kept[0];
        const number_at = 3 + length + @intFromBool(file.xfs.has_file_types);
        const size = number_at + directory.short_number_size;
        if (length == 0 or size > kept.len) return error.Corrupt;
        @memcpy(directory.name[0..length], kept[3..][0..length]);
        directory.at += size;
        return .{
            .name = directory.name[0..length],
            .inode = if (directory.short_number_size == 8)
                int(u64, kept, number_at)
            else
                int(u32, kept, number_at),
        };
    }

    /// Goes to the first entry of the next block; false at the end of the directory.
    fn openBlock(directory: *Directory) Error!bool {
        const xfs = directory.file.xfs;
        const inode = directory.file.inode;
        const block_size = @as(u64, 1) << xfs.directory_block_log;
        var first = std.mem.alignForward(u64, directory.part_end, block_size);
        while (first < @min(inode.size, leaf_offset)) : (first += block_size) {
            const run = try xfs_module.findRun(xfs, inode, first >> xfs.block_log);
            // A block whose entries were all removed.
            if (run.on_disk == null) continue;
            var header: [64]u8 = undefined;
            try directory.file.readBlocks(&header, first);
            const magic = header[0..4];
            const is_only = std.mem.eql(u8, magic, if (xfs.has_checksums) "XDB3" else "XD2B");
            if (!is_only and !std.mem.eql(u8, magic, if (xfs.has_checksums) "XDD3" else "XD2D"))
                return error.Corrupt;
            if (xfs.has_checksums) {
                if (int(u64, &header, 40) != inode.number) return error.Corrupt;
                try directory.checkBlock(first);
            }
            directory.at = first + @as(u64, if (xfs.has_checksums) 64 else 16);
            directory.part_end = first + block_size;
            if (is_only) directory.part_end -= try directory.indexSize(first, block_size);
            if (directory.at > directory.part_end) return error.Corrupt;
            return true;
        }
        return false;
    }

    /// The index of a directory of one block is at its end: a count, and eight bytes an entry.
    fn indexSize(directory: *Directory, first: u64, block_size: u64) Error!u64 {
        var tail: [8]u8 = undefined;
        try directory.file.readBlocks(&tail, first + block_size - tail.len);
        const size = @as(u64, int(u32, &tail, 0)) * 8 + tail.len;
        return if (size > block_size) error.Corrupt else size;
    }

    /// A block of the directory may be scattered in several blocks of the file system.
    fn checkBlock(directory: *Directory, first: u64) Error!void {
        const xfs = directory.file.xfs;
        var parts: [parts_max]xfs_module.Part = undefined;
        const count = @as(usize, 1) << xfs.directory_block_log - xfs.block_log;
        if (count > parts.len) return error.Corrupt;
        for (parts[0..count], 0..) |*part, index| {
            const block = (first >> xfs.block_log) + index;
            const run = try xfs_module.findRun(xfs, directory.file.inode, block);
            const at = run.on_disk orelse return error.Corrupt;
            part.* = .{
                .at = at + (block - run.first << xfs.block_log),
                .size = xfs.blockSize(),
            };
        }
        try xfs_module.checkBlocks(xfs, parts[0..count], 4);
    }

    /// Returns null for a place without an entry. Each step advances by eight bytes or more.
    fn nextInBlock(directory: *Directory) Error!?Entry {
        const file = &directory.file;
        const left = directory.part_end - directory.at;
        if (left < 8) return error.Corrupt;
        var head: [9]u8 = @splat(0);
        try file.readBlocks(head[0..@min(head.len, left)], directory.at);
        if (int(u16, &head, 0) == 0xffff) {
            const size = int(u16, &head, 2);
            if (size < 8 or size % 8 != 0 or size > left) return error.Corrupt;
            directory.at += size;
            return null;
        }
        const length: usize = head[8];
        const types = @intFromBool(file.xfs.has_file_types);
        const size = std.mem.alignForward(usize, 9 + length + types + 2, 8);
        if (length == 0 or size > left) return error.Corrupt;
        const name = directory.name[0..length];
        try file.readBlocks(name, directory.at + 9);
        directory.at += size;
        return .{ .name = name, .inode = int(u64, &head, 0) };
    }
};

/// Returns the inode of a name, or null if it is missing.
pub fn findName(xfs: *const Xfs, inode: *const Inode, name: []const u8) Error!?u64 {
    var directory = try Directory.open(xfs, inode);
    while (try directory.next()) |entry| if (std.mem.eql(u8, entry.name, name)) return entry.inode;
    return null;
}
