//! Reads Squashfs 4.0 (Linux, Documentation/filesystems/squashfs.rst, fs/squashfs/squashfs_fs.h):
//! inodes, blocks and fragments of files, directories and symbolic links, packed by gzip, xz, zstd,
//! lz4 or lzo. Every place is within the volume before it is read, and no unit gives more bytes
//! than its block size.

const std = @import("std");
const Codec = @import("../codec/codec.zig").Codec;
const Kind = @import("../ext.zig").Kind;
const volume_module = @import("../volume.zig");
const Workspace = @import("../workspace.zig");
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;
const int = volume_module.int;

const super_size = 96;
const metadata_size = 8192;
const name_size_max = 256;
/// Directories with boot files or modules are far smaller.
const directory_size_max = 16 << 20;
const symlink_size_max = 4096;
pub const no_fragment = 0xffff_ffff;

pub const Error = ReadError || error{Corrupt};
pub const OpenError = Error || error{ NotSquashfs, OldVersion, UnknownCodec, OutOfMemory };

/// A place in the inode or the directory table: a packed block, by its byte in the volume, and a
/// byte in it.
const Cursor = struct { block: u64, offset: u16 };

/// Holds values only.
pub const Node = struct {
    kind: Kind,
    /// Bytes. Of a directory: of its listing.
    size: u64,
    /// The block list of a file, the listing of a directory, or the target of a link.
    list: Cursor,
    /// Of a file: where its blocks start.
    start: u64 = 0,
    fragment: u32 = no_fragment,
    fragment_offset: u32 = 0,
};

pub const Squashfs = struct {
    volume: Volume,
    workspace: *Workspace,
    codec: Codec,
    block_size: u32,
    bytes_used: u64,
    fragment_count: u32,
    inode_table: u64,
    directory_table: u64,
    fragment_table: u64,
    root_reference: u64,

    pub fn open(volume: Volume, workspace: *Workspace) OpenError!Squashfs {
        const super = volume.readArray(super_size, 0) catch |reason| switch (reason) {
            error.BeyondTheEnd => return error.NotSquashfs,
            else => return reason,
        };
        if (!std.mem.startsWith(u8, &super, "hsqs")) return error.NotSquashfs;
        if (int(u16, &super, 28) != 4 or int(u16, &super, 30) != 0) return error.OldVersion;
        const codec: Codec = switch (int(u16, &super, 20)) {
            1 => .zlib,
            3 => .lzo,
            4 => .xz,
            5 => .lz4,
            6 => .zstd,
            else => return error.UnknownCodec,
        };
        const block_size = int(u32, &super, 12);
        if (block_size < 4096 or block_size > Workspace.unit_size_max or
            !std.math.isPowerOfTwo(block_size) or
            int(u16, &super, 22) != @ctz(block_size)) return error.Corrupt;
        try workspace.reserveUnits(codec, @max(block_size, metadata_size));
        try workspace.reserveBlocks(metadata_size);
        return .{
            .volume = volume,
            .workspace = workspace,
            .codec = codec,
            .block_size = block_size,
            .bytes_used = int(u64, &super, 40),
            .fragment_count = int(u32, &super, 16),
            .inode_table = int(u64, &super, 64),
            .directory_table = int(u64, &super, 72),
            .fragment_table = int(u64, &super, 80),
            .root_reference = int(u64, &super, 32),
        };
    }

    pub fn size(squashfs: *const Squashfs) u64 {
        return squashfs.bytes_used;
    }

    pub fn root(squashfs: *const Squashfs) Error!Node {
        const node = try squashfs.nodeAt(squashfs.root_reference);
        return if (node.kind == .directory) node else error.Corrupt;
    }

    /// `reference`: the byte of a block in the inode table, and the byte in the block.
    pub fn nodeAt(squashfs: *const Squashfs, reference: u64) Error!Node {
        var cursor: Cursor = .{
            .block = std.math.add(u64, squashfs.inode_table, reference >> 16) catch
                return error.Corrupt,
            .offset = @truncate(reference),
        };
        var head: [16]u8 = undefined;
        try squashfs.readMetadata(&cursor, &head);
        return switch (int(u16, &head, 0)) {
            1 => squashfs.directoryNode(&cursor, .short),
            8 => squashfs.directoryNode(&cursor, .long),
            2 => squashfs.fileNode(&cursor, .short),
            9 => squashfs.fileNode(&cursor, .long),
            3, 10 => squashfs.linkNode(&cursor),
            4...7, 11...14 => .{ .kind = .other, .size = 0, .list = cursor },
            else => error.Corrupt,
        };
    }

    const Form = enum { short, long };

    fn directoryNode(squashfs: *const Squashfs, cursor: *Cursor, form: Form) Error!Node {
        var raw: [24]u8 = @splat(0);
        try squashfs.readMetadata(cursor, raw[0..if (form == .short) 16 else 24]);
        const start, const listed: u64, const offset = switch (form) {
            .short => .{ int(u32, &raw, 0), int(u16, &raw, 8), int(u16, &raw, 10) },
            .long => .{ int(u32, &raw, 8), int(u32, &raw, 4), int(u16, &raw, 18) },
        };
        if (listed > directory_size_max) return error.Corrupt;
        return .{
            .kind = .directory,
            // It counts `.` and `..`, which are not in the listing, as three bytes.
            .size = listed -| 3,
            .list = .{
                .block = std.math.add(u64, squashfs.directory_table, start) catch
                    return error.Corrupt,
                .offset = offset,
            },
        };
    }

    fn fileNode(squashfs: *const Squashfs, cursor: *Cursor, form: Form) Error!Node {
        var raw: [40]u8 = @splat(0);
        try squashfs.readMetadata(cursor, raw[0..if (form == .short) 16 else 40]);
        const node: Node = switch (form) {
            .short => .{
                .kind = .file,
                .size = int(u32, &raw, 12),
                .list = cursor.*,
                .start = int(u32, &raw, 0),
                .fragment = int(u32, &raw, 4),
                .fragment_offset = int(u32, &raw, 8),
            },
            .long => .{
                .kind = .file,
                .size = int(u64, &raw, 8),
                .list = cursor.*,
                .start = int(u64, &raw, 0),
                .fragment = int(u32, &raw, 28),
                .fragment_offset = int(u32, &raw, 32),
            },
        };
        return if (node.size < 1 << 63) node else error.Corrupt;
    }

    fn linkNode(squashfs: *const Squashfs, cursor: *Cursor) Error!Node {
        var raw: [8]u8 = undefined;
        try squashfs.readMetadata(cursor, &raw);
        const length = int(u32, &raw, 4);
        if (length > symlink_size_max) return error.Corrupt;
        return .{ .kind = .symlink, .size = length, .list = cursor.* };
    }

    /// Fills `buffer` from the cursor on, and moves it.
    pub fn readMetadata(squashfs: *const Squashfs, cursor: *Cursor, buffer: []u8) Error!void {
        var filled: usize = 0;
        while (filled < buffer.len) {
            const block = try squashfs.metadataBlock(cursor.block);
            const bytes = block.bytes();
            if (cursor.offset > bytes.len) return error.Corrupt;
            const count = @min(buffer.len - filled, bytes.len - cursor.offset);
            @memcpy(buffer[filled..][0..count], bytes[cursor.offset..][0..count]);
            filled += count;
            cursor.offset += @intCast(count);
            if (cursor.offset < bytes.len) continue;
            // Each block takes three bytes or more: the cursor ends with the volume.
            cursor.* = .{ .block = cursor.block + 2 + block.size_on_disk, .offset = 0 };
        }
    }

    fn metadataBlock(squashfs: *const Squashfs, at: u64) Error!*const Workspace.Slot {
        const workspace = squashfs.workspace;
        if (workspace.block(&squashfs.volume, at)) |slot| return slot;
        const header = int(u16, &try squashfs.readArray(2, at), 0);
        const on_disk = header & 0x7fff;
        if (on_disk == 0 or on_disk > metadata_size) return error.Corrupt;
        const slot = workspace.oldestBlock();
        const into = slot.buffer[0..metadata_size];
        const count = if (header & 0x8000 != 0) plain: {
            try squashfs.read(into[0..on_disk], at + 2);
            break :plain on_disk;
        } else unpacked: {
            const input = workspace.packed_unit[0..on_disk];
            try squashfs.read(input, at + 2);
            break :unpacked workspace.unpacker.unpack(squashfs.codec, input, into) catch
                return error.Corrupt;
        };
        if (count == 0) return error.Corrupt;
        slot.keep(&squashfs.volume, at, count);
        slot.size_on_disk = on_disk;
        return slot;
    }

    /// Returns the unpacked block of data at a place; `said` is its size word of the disk.
    fn dataBlock(squashfs: *const Squashfs, at: u64, said: u32) Error![]const u8 {
        const workspace = squashfs.workspace;
        if (workspace.unitAt(&squashfs.volume, at)) |slot| return slot.bytes();
        const on_disk = said & 0x00ff_ffff;
        if (said >> 25 != 0 or on_disk == 0 or on_disk > squashfs.block_size) return error.Corrupt;
        const slot = &workspace.unit;
        slot.source = null;
        const into = slot.buffer[0..squashfs.block_size];
        const count = if (said & 1 << 24 != 0) plain: {
            try squashfs.read(into[0..on_disk], at);
            break :plain on_disk;
        } else unpacked: {
            const input = workspace.packed_unit[0..on_disk];
            try squashfs.read(input, at);
            break :unpacked workspace.unpacker.unpack(squashfs.codec, input, into) catch
                return error.Corrupt;
        };
        slot.keep(&squashfs.volume, at, count);
        return slot.bytes();
    }

    /// Returns the block that holds the ends of several files.
    fn fragmentBlock(squashfs: *const Squashfs, fragment: u32) Error![]const u8 {
        if (fragment >= squashfs.fragment_count) return error.Corrupt;
        const entry_size = 16;
        const per_block = metadata_size / entry_size;
        const index = std.math.add(u64, squashfs.fragment_table, fragment / per_block * 8) catch
            return error.Corrupt;
        var cursor: Cursor = .{
            .block = int(u64, &try squashfs.readArray(8, index), 0),
            .offset = @intCast(fragment % per_block * entry_size),
        };
        var entry: [entry_size]u8 = undefined;
        try squashfs.readMetadata(&cursor, &entry);
        return squashfs.dataBlock(int(u64, &entry, 0), int(u32, &entry, 8));
    }

    fn read(squashfs: *const Squashfs, buffer: []u8, at: u64) Error!void {
        return squashfs.volume.read(buffer, at) catch |reason| switch (reason) {
            // The image is truncated, or a place is wrong.
            error.BeyondTheEnd => error.Corrupt,
            else => reason,
        };
    }

    fn readArray(squashfs: *const Squashfs, comptime count: usize, at: u64) Error![count]u8 {
        var buffer: [count]u8 = undefined;
        try squashfs.read(&buffer, at);
        return buffer;
    }
};

/// The content of a file or link. It keeps its place in the list of blocks, so that a sequential
/// read goes through the list once.
pub const File = struct {
    squashfs: *const Squashfs,
    node: *const Node,
    /// The next entry of the list, the block that it is about, and where that is on the disk.
    list: Cursor,
    index: u64 = 0,
    at: u64,
    /// The size word of the block at `index`, once it was read.
    word: ?u32 = null,

    pub fn open(squashfs: *const Squashfs, node: *const Node) File {
        return .{ .squashfs = squashfs, .node = node, .list = node.list, .at = node.start };
    }

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(file: *File, buffer: []u8, offset: u64) Error!void {
        const node = file.node;
        if (buffer.len > node.size or offset > node.size - buffer.len) return error.BeyondTheEnd;
        if (node.kind != .file) {
            var cursor = node.list;
            if (cursor.offset + offset > metadata_size) return error.Corrupt;
            cursor.offset += @intCast(offset);
            return file.squashfs.readMetadata(&cursor, buffer);
        }
        const block_size = file.squashfs.block_size;
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            const first = at - at % block_size;
            const within: usize = @intCast(at - first);
            const whole: usize = @intCast(@min(block_size, node.size - first));
            const part = buffer[filled..][0..@min(buffer.len - filled, whole - within)];
            if (try file.block(first / block_size, whole)) |bytes| {
                @memcpy(part, bytes[within..][0..part.len]);
            } else @memset(part, 0);
            filled += part.len;
        }
    }

    /// Returns `size` bytes, or null for a hole.
    fn block(file: *File, index: u64, size: usize) Error!?[]const u8 {
        const node = file.node;
        const squashfs = file.squashfs;
        if (node.fragment != no_fragment and index == node.size / squashfs.block_size) {
            const bytes = try squashfs.fragmentBlock(node.fragment);
            if (node.fragment_offset > bytes.len or
                size > bytes.len - node.fragment_offset) return error.Corrupt;
            return bytes[node.fragment_offset..][0..size];
        }
        const word = try file.seek(index);
        if (word == 0) return null;
        const bytes = try squashfs.dataBlock(file.at, word);
        // A full block, or the end of the file.
        return if (bytes.len == size) bytes else error.Corrupt;
    }

    /// Returns the size word of a block, and moves to it.
    fn seek(file: *File, index: u64) Error!u32 {
        if (index < file.index) file.* = .open(file.squashfs, file.node);
        while (true) {
            const word = file.word orelse word: {
                var raw: [4]u8 = undefined;
                try file.squashfs.readMetadata(&file.list, &raw);
                break :word int(u32, &raw, 0);
            };
            file.word = word;
            if (index == file.index) return word;
            file.at = std.math.add(u64, file.at, word & 0x00ff_ffff) catch return error.Corrupt;
            file.index += 1;
            file.word = null;
        }
    }
};

/// Iterates over the entries of a directory: runs of entries whose inodes share a block.
pub const Directory = struct {
    squashfs: *const Squashfs,
    cursor: Cursor,
    /// Bytes of the listing.
    left: u64,
    /// Entries of the run.
    run: u32 = 0,
    run_block: u32 = 0,
    name: [name_size_max]u8 = undefined,

    pub const Entry = struct { name: []const u8, reference: u64 };

    pub fn open(squashfs: *const Squashfs, node: *const Node) Error!Directory {
        if (node.kind != .directory) return error.Corrupt;
        return .{ .squashfs = squashfs, .cursor = node.list, .left = node.size };
    }

    /// Returns null at the end; the name is valid until the next call.
    pub fn next(directory: *Directory) Error!?Entry {
        if (directory.run == 0) {
            if (directory.left == 0) return null;
            var header: [12]u8 = undefined;
            try directory.take(&header);
            const count = int(u32, &header, 0);
            if (count >= 256) return error.Corrupt;
            directory.run = count + 1;
            directory.run_block = int(u32, &header, 4);
        }
        var head: [8]u8 = undefined;
        try directory.take(&head);
        const size = @as(usize, int(u16, &head, 6)) + 1;
        if (size > name_size_max) return error.Corrupt;
        try directory.take(directory.name[0..size]);
        directory.run -= 1;
        return .{
            .name = directory.name[0..size],
            .reference = @as(u64, directory.run_block) << 16 | int(u16, &head, 0),
        };
    }

    fn take(directory: *Directory, buffer: []u8) Error!void {
        if (buffer.len > directory.left) return error.Corrupt;
        directory.left -= buffer.len;
        try directory.squashfs.readMetadata(&directory.cursor, buffer);
    }
};

/// Returns null if the directory has no such name.
pub fn find(squashfs: *const Squashfs, node: *const Node, name: []const u8) Error!?Node {
    var directory = try Directory.open(squashfs, node);
    while (try directory.next()) |entry|
        if (std.mem.eql(u8, entry.name, name)) return try squashfs.nodeAt(entry.reference);
    return null;
}
