//! The trees of Btrfs: nodes by their logical address, chunks that map those to the device, and the
//! search for a key (Linux, include/uapi/linux/btrfs_tree.h). A node is used only if its checksum,
//! address, level and generation are those that its parent expects. Nothing recurses: the tree of
//! chunks is mapped by the chunks of the superblock alone.

const std = @import("std");
const btrfs_module = @import("btrfs.zig");
const volume_module = @import("../volume.zig");
const Btrfs = btrfs_module.Btrfs;
const Error = btrfs_module.Error;
const item = btrfs_module.item;
const int = volume_module.int;

const header_size = 101;
const pointer_size = 33;
const leaf_item_size = 25;
const key_size = 17;
const level_max = 7;

pub const Tree = struct {
    /// Logical address of its root.
    root: u64,
    level: u8,
    generation: u64,
    /// The inode of its root directory, for a subvolume.
    directory: u64 = 0,
    is_of_chunks: bool = false,
    /// Of a subvolume: its number.
    number: u64 = 0,
};

pub const Key = struct {
    object: u64,
    kind: u8,
    offset: u64,

    fn parse(bytes: []const u8, at: usize) Key {
        return .{
            .object = int(u64, bytes, at),
            .kind = bytes[at + 8],
            .offset = int(u64, bytes, at + 9),
        };
    }

    pub fn order(a: Key, b: Key) std.math.Order {
        const by_object = std.math.order(a.object, b.object);
        if (by_object != .eq) return by_object;
        const by_kind = std.math.order(a.kind, b.kind);
        return if (by_kind != .eq) by_kind else std.math.order(a.offset, b.offset);
    }
};

/// The bytes are valid until some other nodes were read.
pub const Item = struct { key: Key, bytes: []const u8 };

/// A range of logical addresses, and its one or two copies on the device.
pub const Chunk = struct {
    logical: u64,
    size: u64,
    copies: [2]u64,
    copy_count: u8,
    size_on_disk: usize,

    pub const none: Chunk =
        .{ .logical = 0, .size = 0, .copies = .{ 0, 0 }, .copy_count = 0, .size_on_disk = 0 };
    pub const size_min = 48 + stripe_size;
    const stripe_size = 32;
    /// Data, system and metadata; a profile that keeps a second copy on the same device.
    const kinds = 0x7;
    const duplicate = 0x20;

    pub fn parse(logical: u64, bytes: []const u8) Error!Chunk {
        if (bytes.len < size_min) return error.Corrupt;
        const profile = int(u64, bytes, 24) & ~@as(u64, kinds);
        if (profile != 0 and profile != duplicate) return error.Unsupported;
        const stripes = int(u16, bytes, 44);
        if (stripes != if (profile == 0) @as(u16, 1) else 2) return error.Corrupt;
        const size_on_disk = 48 + @as(usize, stripes) * stripe_size;
        if (bytes.len < size_on_disk) return error.Corrupt;
        var chunk: Chunk = .{
            .logical = logical,
            .size = int(u64, bytes, 0),
            .copies = .{ 0, 0 },
            .copy_count = @intCast(stripes),
            .size_on_disk = size_on_disk,
        };
        for (chunk.copies[0..stripes], 0..) |*copy, index| {
            copy.* = int(u64, bytes, 48 + index * stripe_size + 8);
            // Sums with an offset in the chunk cannot overflow.
            if (copy.* >= 1 << 62) return error.Corrupt;
        }
        if (chunk.size == 0 or chunk.size >= 1 << 62 or logical >= 1 << 62) return error.Corrupt;
        return chunk;
    }

    fn has(chunk: *const Chunk, logical: u64, size: u64) bool {
        return logical >= chunk.logical and logical - chunk.logical < chunk.size and
            size <= chunk.size - (logical - chunk.logical);
    }
};

pub fn chunkOf(btrfs: *const Btrfs, logical: u64, size: u64, only_system: bool) Error!Chunk {
    for (btrfs.system_chunks) |*chunk| if (chunk.has(logical, size)) return chunk.*;
    if (only_system) return error.Corrupt;
    if (btrfs.last_chunk.has(logical, size)) return btrfs.last_chunk.*;
    const found = try floor(
        btrfs,
        &btrfs.chunk_tree,
        .{ .object = 256, .kind = item.chunk, .offset = logical },
    ) orelse return error.Corrupt;
    if (found.key.object != 256 or found.key.kind != item.chunk) return error.Corrupt;
    const chunk = try Chunk.parse(found.key.offset, found.bytes);
    if (!chunk.has(logical, size)) return error.Corrupt;
    btrfs.last_chunk.* = chunk;
    return chunk;
}

/// Reads bytes of logical addresses until `isGood` accepts a copy.
pub fn readLogical(
    btrfs: *const Btrfs,
    buffer: []u8,
    logical: u64,
    only_system: bool,
    context: anytype,
    comptime isGood: fn (@TypeOf(context), []const u8) Error!bool,
) Error!void {
    const chunk = try chunkOf(btrfs, logical, buffer.len, only_system);
    for (chunk.copies[0..chunk.copy_count]) |copy| {
        btrfs.volume.read(buffer, copy + (logical - chunk.logical)) catch |reason| switch (reason) {
            // The image is truncated, or a place is wrong.
            error.BeyondTheEnd => continue,
            else => return reason,
        };
        if (try isGood(context, buffer)) return;
    }
    return error.Corrupt;
}

const Expected = struct { btrfs: *const Btrfs, logical: u64, level: u8, generation: u64 };

fn isNode(expected: Expected, bytes: []const u8) Error!bool {
    const btrfs = expected.btrfs;
    return std.mem.eql(u8, bytes[32..48], &btrfs.metadata_id) and isExpected(expected, bytes) and
        btrfs.checksum.matches(bytes[32..], bytes[0..32]);
}

fn isExpected(expected: Expected, bytes: []const u8) bool {
    const btrfs = expected.btrfs;
    const count = int(u32, bytes, 96);
    const entry_size: u32 = if (expected.level == 0) leaf_item_size else pointer_size;
    return int(u64, bytes, 48) == expected.logical and bytes[100] == expected.level and
        int(u64, bytes, 80) == expected.generation and
        count <= (btrfs.node_size - header_size) / entry_size;
}

fn readNode(
    btrfs: *const Btrfs,
    tree: *const Tree,
    logical: u64,
    level: u8,
    generation: u64,
) Error![]const u8 {
    const expected: Expected =
        .{ .btrfs = btrfs, .logical = logical, .level = level, .generation = generation };
    const workspace = btrfs.workspace;
    if (workspace.block(&btrfs.volume, logical)) |slot|
        return if (isExpected(expected, slot.bytes())) slot.bytes() else error.Corrupt;
    if (logical % btrfs.sector_size != 0) return error.Corrupt;
    // The chunk is looked up before the slot is chosen: its tree uses slots as well.
    _ = try chunkOf(btrfs, logical, btrfs.node_size, tree.is_of_chunks);
    const slot = workspace.oldestBlock();
    const buffer = slot.buffer[0..btrfs.node_size];
    try readLogical(btrfs, buffer, logical, tree.is_of_chunks, expected, isNode);
    slot.keep(&btrfs.volume, logical, buffer.len);
    return slot.bytes();
}

const Leaf = struct {
    bytes: []const u8,
    count: u32,
    /// The first item whose key is not below the wanted one; `count` if there is none.
    index: u32,
    /// The first key of the next leaf.
    next: ?Key,

    fn get(leaf: *const Leaf, index: u32) Error!Item {
        const at = header_size + index * leaf_item_size;
        const offset = int(u32, leaf.bytes, at + key_size);
        const size = int(u32, leaf.bytes, at + key_size + 4);
        const room = leaf.bytes.len - header_size;
        if (offset > room or size > room - offset) return error.Corrupt;
        return .{
            .key = .parse(leaf.bytes, at),
            .bytes = leaf.bytes[header_size + offset ..][0..size],
        };
    }
};

/// Returns the number of entries whose keys are below `key`, or not above it.
fn countBelow(
    bytes: []const u8,
    entry_size: usize,
    count: u32,
    key: Key,
    or_equal: bool,
) u32 {
    var low: u32 = 0;
    var high = count;
    while (low < high) {
        const middle = low + (high - low) / 2;
        const order = Key.parse(bytes, header_size + middle * entry_size).order(key);
        if (order == .lt or (or_equal and order == .eq)) low = middle + 1 else high = middle;
    }
    return low;
}

fn search(btrfs: *const Btrfs, tree: *const Tree, key: Key) Error!Leaf {
    if (tree.level > level_max) return error.Corrupt;
    var logical = tree.root;
    var generation = tree.generation;
    var level = tree.level;
    var next: ?Key = null;
    while (true) {
        const bytes = try readNode(btrfs, tree, logical, level, generation);
        const count = int(u32, bytes, 96);
        if (level == 0) return .{
            .bytes = bytes,
            .count = count,
            .index = countBelow(bytes, leaf_item_size, count, key, false),
            .next = next,
        };
        if (count == 0) return error.Corrupt;
        const child = countBelow(bytes, pointer_size, count, key, true) -| 1;
        const at = header_size + @as(usize, child) * pointer_size;
        if (child + 1 < count) next = .parse(bytes, at + pointer_size);
        logical = int(u64, bytes, at + key_size);
        generation = int(u64, bytes, at + key_size + 8);
        level -= 1;
    }
}

/// Returns the first item whose key is not below `key`, or null at the end of the tree.
pub fn ceiling(btrfs: *const Btrfs, tree: *const Tree, key: Key) Error!?Item {
    const leaf = try search(btrfs, tree, key);
    if (leaf.index < leaf.count) return try leaf.get(leaf.index);
    const following = try search(btrfs, tree, leaf.next orelse return null);
    // A leaf that others point to is not empty.
    return if (following.index < following.count) try following.get(following.index) else //
    error.Corrupt;
}

/// Returns the last item whose key is not above `key`, or null.
pub fn floor(btrfs: *const Btrfs, tree: *const Tree, key: Key) Error!?Item {
    const leaf = try search(btrfs, tree, key);
    if (leaf.index < leaf.count) {
        const found = try leaf.get(leaf.index);
        if (found.key.order(key) == .eq) return found;
    }
    return if (leaf.index > 0) try leaf.get(leaf.index - 1) else null;
}
