//! The memory that readers of compressed or checksummed file systems share for all parts of a disk:
//! the unit that was unpacked last, and the blocks of metadata that were used last. It is reserved
//! when such a file system is found, and never grows while files are read.

const std = @import("std");
const store = @import("store");
const Codec = @import("codec/codec.zig").Codec;
const Unpacker = @import("codec/codec.zig");
const Volume = @import("volume.zig").Volume;
const Allocator = std.mem.Allocator;

/// Largest unit of a file system: a block of Squashfs.
pub const unit_size_max = 1 << 20;
/// Largest block of metadata: a node of Btrfs.
pub const block_size_max = 64 << 10;
/// Enough for a path from the root to a leaf in two trees.
const blocks_max = 16;

pub const Workspace = @This();

arena: Allocator,
unpacker: Unpacker = .{},
packed_unit: []u8 = &.{},
unit: Slot = .{},
blocks: [blocks_max]Slot = @splat(.{}),
/// Counts uses; the block that was not used for the longest time is replaced.
clock: u64 = 0,

/// Bytes of a place on a disk, unpacked or checked.
pub const Slot = struct {
    source: ?*const store.BlockSource = null,
    at: u64 = 0,
    used_at: u64 = 0,
    /// Bytes of `buffer` that are valid.
    size: u32 = 0,
    /// Bytes on the disk that they were made of.
    size_on_disk: u32 = 0,
    buffer: []u8 = &.{},

    pub fn bytes(slot: *const Slot) []const u8 {
        return slot.buffer[0..slot.size];
    }

    fn has(slot: *const Slot, volume: *const Volume, at: u64) bool {
        return slot.source == volume.source and slot.at == volume.first +% at;
    }

    /// The caller has filled the buffer from byte `at` of the volume.
    pub fn keep(slot: *Slot, volume: *const Volume, at: u64, size: usize) void {
        slot.source = volume.source;
        slot.at = volume.first +% at;
        slot.size = @intCast(size);
    }
};

pub fn init(arena: Allocator) Workspace {
    return .{ .arena = arena };
}

/// For units of data of at most `unit_size` bytes.
pub fn reserveUnits(workspace: *Workspace, codec: Codec, unit_size: u32) Allocator.Error!void {
    std.debug.assert(unit_size <= unit_size_max);
    try workspace.unpacker.reserve(workspace.arena, codec, unit_size);
    if (workspace.packed_unit.len < unit_size)
        workspace.packed_unit = try workspace.arena.alloc(u8, unit_size);
    if (workspace.unit.buffer.len < unit_size)
        workspace.unit = .{ .buffer = try workspace.arena.alloc(u8, unit_size) };
}

/// For blocks of metadata of at most `block_size` bytes.
pub fn reserveBlocks(workspace: *Workspace, block_size: u32) Allocator.Error!void {
    std.debug.assert(block_size <= block_size_max);
    for (&workspace.blocks) |*slot| if (slot.buffer.len < block_size) {
        slot.* = .{ .buffer = try workspace.arena.alloc(u8, block_size) };
    };
}

/// Returns the block of metadata at a place, or null if it is not kept.
pub fn block(workspace: *Workspace, volume: *const Volume, at: u64) ?*const Slot {
    workspace.clock += 1;
    for (&workspace.blocks) |*slot| if (slot.has(volume, at)) {
        slot.used_at = workspace.clock;
        return slot;
    };
    return null;
}

/// Returns the slot to fill; it is empty until `Slot.keep`.
pub fn oldestBlock(workspace: *Workspace) *Slot {
    var oldest = &workspace.blocks[0];
    for (workspace.blocks[1..]) |*slot| if (slot.used_at < oldest.used_at) {
        oldest = slot;
    };
    oldest.source = null;
    oldest.used_at = workspace.clock;
    return oldest;
}

/// Returns the unit of data at a place, or null if another one is kept.
pub fn unitAt(workspace: *const Workspace, volume: *const Volume, at: u64) ?*const Slot {
    return if (workspace.unit.has(volume, at)) &workspace.unit else null;
}

const testing = std.testing;

test "the block that was not used for the longest time is replaced" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var workspace: Workspace = .init(arena.allocator());
    try workspace.reserveBlocks(4096);
    var memory: @import("volume.zig").MemoryDisk = .{ .bytes = &@as([512]u8, @splat(0)) };
    const source = memory.source();
    var budget: @import("volume.zig").ReadBudget = .{ .reads_left = 1 };
    const volume: Volume = .whole(&source, &budget);
    for (0..blocks_max) |index| {
        try testing.expectEqual(null, workspace.block(&volume, index));
        workspace.oldestBlock().keep(&volume, index, 1);
    }
    try testing.expect(workspace.block(&volume, 0) != null);
    _ = workspace.oldestBlock();
    try testing.expect(workspace.block(&volume, 0) != null);
    try testing.expectEqual(null, workspace.block(&volume, 1));
}
