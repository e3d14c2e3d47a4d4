//! Reads Btrfs on one device (Linux, fs/btrfs, and btrfs.readthedocs.io, "On-disk Format"): the
//! superblock, chunks, the default subvolume and those below it, directories and inodes. Checksums
//! are enforced, and a second copy is used if the first one is damaged. Several devices, other
//! profiles than single and DUP, unknown features and a log that must be replayed are refused.

const std = @import("std");
const Checksum = @import("checksum.zig").Checksum;
const Codec = @import("../codec/codec.zig").Codec;
const Kind = @import("../ext.zig").Kind;
const tree_module = @import("tree.zig");
const volume_module = @import("../volume.zig");
const Workspace = @import("../workspace.zig");
const Chunk = tree_module.Chunk;
const ReadError = volume_module.ReadError;
const Tree = tree_module.Tree;
const Volume = volume_module.Volume;
const int = volume_module.int;

pub const Error = ReadError || error{
    Corrupt,
    /// Data in a profile or a form that is not read.
    Unsupported,
};
pub const OpenError = Error || error{
    NotBtrfs,
    UnknownFeature,
    SeveralDevices,
    /// The last writes are in a log that must be replayed.
    NotUnmounted,
    OutOfMemory,
};

const super_at = 64 << 10;
const super_size = 4096;
const system_chunks_at = 811;
const system_chunks_size_max = 2048;
/// Largest compressed extent, packed and unpacked.
pub const packed_extent_size = 128 << 10;

const incompat = struct {
    const mixed_backref = 1 << 0;
    const default_subvolume = 1 << 1;
    const mixed_groups = 1 << 2;
    const lzo = 1 << 3;
    const zstd = 1 << 4;
    const big_metadata = 1 << 5;
    const extended_iref = 1 << 6;
    const raid56 = 1 << 7;
    const skinny_metadata = 1 << 8;
    const no_holes = 1 << 9;
    const metadata_uuid = 1 << 10;
    const raid1c34 = 1 << 11;
    const simple_quota = 1 << 16;

    const readable = mixed_backref | default_subvolume | mixed_groups | lzo | zstd |
        big_metadata | extended_iref | raid56 | skinny_metadata | no_holes | metadata_uuid |
        raid1c34 | simple_quota;
};

pub const item = struct {
    pub const inode = 1;
    const directory_item = 84;
    const directory_index = 96;
    pub const extent_data = 108;
    pub const extent_checksum = 128;
    pub const root = 132;
    pub const root_reference = 156;
    pub const chunk = 228;
};

/// Where installers put the root of a system that is not in the default subvolume: Fedora, openSUSE
/// and Ubuntu, Debian.
pub const root_subvolumes = [_][]const u8{ "root", "@", "@rootfs" };

const object = struct {
    const root_directory = 6;
    const first_tree = 5;
    const checksum_tree = 7;
    const first_inode = 256;
};

pub const Btrfs = struct {
    volume: Volume,
    workspace: *Workspace,
    checksum: Checksum,
    sector_size: u32,
    node_size: u32,
    total_bytes: u64,
    /// In the header of each node.
    metadata_id: [16]u8,
    system_chunks: []const Chunk,
    last_chunk: *Chunk,
    chunk_tree: Tree,
    root_tree: Tree,
    checksum_tree: Tree,
    /// The subvolume whose root is the root of paths.
    subvolume: Tree,
    /// Its path from the top of the file system, if it is not the default one.
    subvolume_path: ?[]const u8 = null,

    pub fn open(volume: Volume, workspace: *Workspace) OpenError!Btrfs {
        const super = volume.readArray(super_size, super_at) catch |reason| switch (reason) {
            error.BeyondTheEnd => return error.NotBtrfs,
            else => return reason,
        };
        if (!std.mem.eql(u8, super[64..72], "_BHRfS_M")) return error.NotBtrfs;
        const checksum = Checksum.of(int(u16, &super, 196)) orelse return error.UnknownFeature;
        if (!checksum.matches(super[32..], super[0..32])) return error.Corrupt;
        const features = int(u64, &super, 188);
        if (features & ~@as(u64, incompat.readable) != 0) return error.UnknownFeature;
        if (int(u64, &super, 136) != 1) return error.SeveralDevices;
        if (int(u64, &super, 96) != 0) return error.NotUnmounted;
        const sector_size = int(u32, &super, 144);
        const node_size = int(u32, &super, 148);
        for ([_]u32{ sector_size, node_size }) |block| if (block < 4096 or
            block > Workspace.block_size_max or !std.math.isPowerOfTwo(block)) return error.Corrupt;
        const has_metadata_id = features & incompat.metadata_uuid != 0;
        const generation = int(u64, &super, 72);
        try workspace.reserveBlocks(node_size);
        inline for (.{ Codec.zlib, Codec.zstd, Codec.lzo }) |codec|
            try workspace.reserveUnits(codec, packed_extent_size);
        const last_chunk = try workspace.arena.create(Chunk);
        last_chunk.* = .none;
        var btrfs: Btrfs = .{
            .volume = volume,
            .workspace = workspace,
            .checksum = checksum,
            .sector_size = sector_size,
            .node_size = node_size,
            .total_bytes = int(u64, &super, 209),
            .metadata_id = super[if (has_metadata_id) 571 else 32..][0..16].*,
            .system_chunks = try systemChunks(workspace.arena, &super),
            .last_chunk = last_chunk,
            .chunk_tree = .{
                .root = int(u64, &super, 88),
                .level = super[199],
                .generation = int(u64, &super, 164),
                .is_of_chunks = true,
            },
            .root_tree = .{
                .root = int(u64, &super, 80),
                .level = super[198],
                .generation = generation,
            },
            .checksum_tree = undefined,
            .subvolume = undefined,
        };
        btrfs.checksum_tree = try btrfs.treeOf(object.checksum_tree) orelse return error.Corrupt;
        btrfs.subvolume = try btrfs.treeOf(try btrfs.defaultSubvolume()) orelse
            return error.Corrupt;
        return btrfs;
    }

    /// Size of the file system in bytes.
    pub fn size(btrfs: *const Btrfs) u64 {
        return btrfs.total_bytes;
    }

    pub fn root(btrfs: *const Btrfs) Error!Node {
        return btrfs.nodeOf(btrfs.subvolume, btrfs.subvolume.directory);
    }

    /// Returns the number of the subvolume that is mounted if no other one is asked for.
    fn defaultSubvolume(btrfs: *const Btrfs) Error!u64 {
        const entry = try findEntry(
            btrfs,
            &btrfs.root_tree,
            object.root_directory,
            "default",
        ) orelse return object.first_tree;
        return if (entry.kind == item.root) entry.number else error.Corrupt;
    }

    /// Makes a subvolume at the top of the file system the root of paths; false if there is none
    /// of this name, which must live as long as the file system.
    pub fn enter(btrfs: *Btrfs, name: []const u8) Error!bool {
        const top = try btrfs.treeOf(object.first_tree) orelse return error.Corrupt;
        const entry = try findEntry(btrfs, &top, top.directory, name) orelse return false;
        if (entry.kind != item.root) return false;
        btrfs.subvolume = try btrfs.treeOf(entry.number) orelse return false;
        btrfs.subvolume_path = name;
        return true;
    }

    /// Returns the tree of a number, or null.
    fn treeOf(btrfs: *const Btrfs, number: u64) Error!?Tree {
        const found = try tree_module.ceiling(
            btrfs,
            &btrfs.root_tree,
            .{ .object = number, .kind = item.root, .offset = 0 },
        ) orelse return null;
        if (found.key.object != number or found.key.kind != item.root) return null;
        if (found.bytes.len < 239) return error.Corrupt;
        return .{
            .number = number,
            .root = int(u64, found.bytes, 176),
            .level = found.bytes[238],
            .generation = int(u64, found.bytes, 160),
            .directory = int(u64, found.bytes, 168),
        };
    }

    fn nodeOf(btrfs: *const Btrfs, tree: Tree, number: u64) Error!Node {
        const found = try tree_module.ceiling(
            btrfs,
            &tree,
            .{ .object = number, .kind = item.inode, .offset = 0 },
        ) orelse return error.Corrupt;
        if (found.key.object != number or found.key.kind != item.inode or
            found.bytes.len < 160) return error.Corrupt;
        const node: Node = .{
            .tree = tree,
            .number = number,
            .kind = switch (int(u32, found.bytes, 52) & 0xf000) {
                0x8000 => .file,
                0x4000 => .directory,
                0xa000 => .symlink,
                else => .other,
            },
            .size = int(u64, found.bytes, 16),
            .has_checksums = int(u64, found.bytes, 64) & 1 == 0,
        };
        return if (node.size < 1 << 63) node else error.Corrupt;
    }
};

/// The chunks that hold the tree of all chunks, from the superblock.
fn systemChunks(
    arena: std.mem.Allocator,
    super: *const [super_size]u8,
) (Error || std.mem.Allocator.Error)![]const Chunk {
    const all = int(u32, super, 160);
    if (all > system_chunks_size_max) return error.Corrupt;
    var left: []const u8 = super[system_chunks_at..][0..all];
    var chunks: std.ArrayList(Chunk) = .empty;
    while (left.len > 0) {
        if (left.len < 17 + Chunk.size_min or left[8] != item.chunk) return error.Corrupt;
        const chunk = try Chunk.parse(int(u64, left, 9), left[17..]);
        try chunks.append(arena, chunk);
        left = left[17 + chunk.size_on_disk ..];
    }
    return chunks.items;
}

/// A file, directory or link; holds values only.
pub const Node = struct {
    tree: Tree,
    number: u64,
    kind: Kind,
    /// Bytes.
    size: u64,
    has_checksums: bool,
};

/// What a name leads to: an inode of the same tree (`item.inode`), or a subvolume (`item.root`).
const Entry = struct { number: u64, kind: u8 };

/// Fields of a directory item, before its name.
const entry_size = 30;
const name_size_max = 255;

/// The hash of a name: CRC-32C that starts with ~1, without the final inversion.
const NameHash = std.hash.crc.Generic(u32, .{
    .polynomial = 0x1edc6f41,
    .initial = @bitReverse(@as(u32, 0xffff_fffe)),
    .reflect_input = true,
    .reflect_output = true,
    .xor_output = 0,
});

fn findEntry(
    btrfs: *const Btrfs,
    tree: *const Tree,
    directory: u64,
    name: []const u8,
) Error!?Entry {
    const key: tree_module.Key = .{
        .object = directory,
        .kind = item.directory_item,
        .offset = NameHash.hash(name),
    };
    const found = try tree_module.ceiling(btrfs, tree, key) orelse return null;
    if (found.key.order(key) != .eq) return null;
    // Names with the same hash follow each other.
    var left = found.bytes;
    while (left.len > 0) {
        const entry = try parseEntry(left);
        if (std.mem.eql(u8, entry.name, name)) return entry.target;
        left = left[entry.size..];
    }
    return null;
}

fn parseEntry(bytes: []const u8) Error!struct { name: []const u8, target: Entry, size: usize } {
    if (bytes.len < entry_size) return error.Corrupt;
    const name_size: usize = int(u16, bytes, 27);
    const size = entry_size + name_size + int(u16, bytes, 25);
    if (size > bytes.len or name_size == 0 or name_size > name_size_max) return error.Corrupt;
    return .{
        .name = bytes[entry_size..][0..name_size],
        .target = .{ .number = int(u64, bytes, 0), .kind = bytes[8] },
        .size = size,
    };
}

/// Returns null if the directory has no such name.
pub fn find(btrfs: *const Btrfs, node: *const Node, name: []const u8) Error!?Node {
    if (node.kind != .directory) return error.Corrupt;
    const entry = try findEntry(btrfs, &node.tree, node.number, name) orelse return null;
    if (entry.kind == item.inode) return try btrfs.nodeOf(node.tree, entry.number);
    if (entry.kind != item.root) return error.Corrupt;
    // A snapshot keeps the names of subvolumes that it does not contain.
    const reference: tree_module.Key = .{
        .object = node.tree.number,
        .kind = item.root_reference,
        .offset = entry.number,
    };
    const parent = try tree_module.ceiling(btrfs, &btrfs.root_tree, reference) orelse return null;
    if (parent.key.order(reference) != .eq) return null;
    const tree = try btrfs.treeOf(entry.number) orelse return null;
    return try btrfs.nodeOf(tree, tree.directory);
}

/// Iterates over the names of a directory, in the order of their making.
pub const Directory = struct {
    btrfs: *const Btrfs,
    tree: Tree,
    number: u64,
    offset: u64 = 0,
    name: [name_size_max]u8 = undefined,

    pub const Name = struct { name: []const u8 };

    pub fn open(btrfs: *const Btrfs, node: *const Node) Error!Directory {
        if (node.kind != .directory) return error.Corrupt;
        return .{ .btrfs = btrfs, .tree = node.tree, .number = node.number };
    }

    /// Returns null at the end; the name is valid until the next call.
    pub fn next(directory: *Directory) Error!?Name {
        const found = try tree_module.ceiling(directory.btrfs, &directory.tree, .{
            .object = directory.number,
            .kind = item.directory_index,
            .offset = directory.offset,
        }) orelse return null;
        if (found.key.object != directory.number or
            found.key.kind != item.directory_index) return null;
        // Offsets only grow: the iteration ends with the tree.
        if (found.key.offset < directory.offset or
            found.key.offset == std.math.maxInt(u64)) return error.Corrupt;
        directory.offset = found.key.offset + 1;
        const entry = try parseEntry(found.bytes);
        @memcpy(directory.name[0..entry.name.len], entry.name);
        return .{ .name = directory.name[0..entry.name.len] };
    }
};

test "a name has the hash that the kernel stores for it" {
    try std.testing.expectEqual(0x8dbf_c2d2, NameHash.hash("default"));
}
