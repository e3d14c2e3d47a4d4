//! Reads the entries of a directory in block order. A hashed directory reads the same way, since
//! its index hides in entries without an inode.

const std = @import("std");
const ext_module = @import("ext.zig");
const volume_module = @import("volume.zig");
const int = volume_module.int;
const Ext = ext_module.Ext;
const File = ext_module.File;
const Inode = ext_module.Inode;
const Error = ext_module.InodeError;

pub const name_size_max = 255;
/// Directories with boot files or modules are far smaller.
pub const directory_size_max = 16 << 20;
const header_size = 8;

pub const Entry = struct { inode: u32, name: []const u8 };

/// Iterates over a directory. `inode` must not move.
pub const Directory = struct {
    file: File,
    /// Offset of the next entry in the directory.
    at: u64,
    /// End of the current part: of a block, or of a part of a directory inside its inode.
    part_end: u64,
    name: [name_size_max]u8 = undefined,

    pub fn open(ext: *const Ext, inode: *const Inode) Error!Directory {
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
    pub fn next(directory: *Directory) Error!?Entry {
        const inode = directory.file.inode;
        while (directory.at < inode.size) {
            if (directory.at + header_size > directory.part_end) {
                directory.nextPart();
                continue;
            }
            var header: [header_size]u8 = undefined;
            if (directory.at + header_size > inode.size) return null;
            try directory.file.read(&header, directory.at);
            const size = try entrySize(&header, directory.part_end - directory.at);
            const name_at = directory.at + header_size;
            directory.at += size;
            const number = int(u32, &header, 0);
            if (directory.at == directory.part_end) directory.nextPart();
            const name = directory.name[0..header[6]];
            if (number == 0 or name.len == 0) continue;
            if (name.len + header_size > size) return error.Corrupt;
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
    fn entrySize(header: *const [header_size]u8, left: u64) Error!u64 {
        const stored = int(u16, header, 4);
        // How blocks of 64 KiB encode their size.
        const size: u64 = if (stored == 0xffff or stored == 0) 1 << 16 else stored;
        if (size < header_size or size % 4 != 0 or size > left) return error.Corrupt;
        return size;
    }
};

/// Returns the inode of a name, or null if it is missing.
pub fn find(ext: *const Ext, inode: *const Inode, name: []const u8) Error!?u32 {
    var directory = try Directory.open(ext, inode);
    while (try directory.next()) |entry| if (std.mem.eql(u8, entry.name, name)) return entry.inode;
    return null;
}
