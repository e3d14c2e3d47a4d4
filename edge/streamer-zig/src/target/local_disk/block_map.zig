//! Maps blocks of the disk to slots of 4 KiB on the local disk, each with the counter and the tag
//! of its seal. The map outlives the process that uses it, so the next one continues with it. It
//! takes memory as it is used: 8 bytes for a block that was written or discarded, 24 for a slot. A
//! chunk of zeros, as after a trim of free space, takes none.
//!
//! One thread changes it. Others may read it meanwhile: their view was true at some instant since
//! they began to look.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const assert = std.debug.assert;

pub const block_size = 4096;
pub const sector_size = 512;
/// Blocks whose entries fill a page.
pub const chunk_blocks = 512;
/// Spare slots for new bytes of blocks that have slots: a slot is not overwritten while it is in
/// use, so that a process may end at any instant. As many as one write has blocks.
pub const spare_slots = 33;
const all_sectors = 0xff;
/// Flags of fallocate(2).
const punch_hole_keep_size = 2 | 1;

/// The known state of a block of the disk.
pub const Entry = packed struct(u64) {
    /// From 1; 0 means zeros.
    slot: u32 = 0,
    /// A bit for each sector that was written or discarded; the others are the version's.
    mask: u8 = 0,
    _: u24 = 0,

    pub const zeros: Entry = .{ .mask = all_sectors };
};

/// Opens the seal of a slot.
pub const Seal = extern struct { counter: u64, tag: [16]u8 };

pub const BlockMap = @This();

fd: i32,
layout: Layout,
/// Limit of the slots of all blocks.
limit_slots: u32,
view: View = undefined,

const Shared = extern struct { counter: u64, used_slots: u64, next_slot: u64 };
const ChunkState = enum(u8) { by_entry = 0, zeros = 1 };

const View = struct {
    shared: *Shared,
    chunks: []u8,
    bitmap: []u64,
    seals: []Seal,
    entries: []u64,
};

const Layout = struct {
    slots: u32,
    blocks: usize,
    chunks_at: usize,
    bitmap_at: usize,
    seals_at: usize,
    entries_at: usize,
    size: usize,

    fn of(disk_size: u64, slots: u32) Layout {
        const blocks: usize =
            @intCast(std.mem.alignForward(u64, disk_size, block_size) / block_size);
        const chunks = std.math.divCeil(usize, blocks, chunk_blocks) catch unreachable;
        const bitmap_at = block_size + pages(chunks);
        const seals_at = bitmap_at + pages(words(slots) * 8);
        const entries_at = seals_at + pages(@as(usize, slots) * @sizeOf(Seal));
        return .{
            .slots = slots,
            .blocks = blocks,
            .chunks_at = block_size,
            .bitmap_at = bitmap_at,
            .seals_at = seals_at,
            .entries_at = entries_at,
            .size = entries_at + chunks * block_size,
        };
    }
};

pub const Error = sys.Error;

/// For this process and all that it will fork; each calls `look` before anything else.
pub fn init(disk_size: u64, slots: u32, limit_slots: u32) Error!BlockMap {
    assert(slots > spare_slots and limit_slots > 0);
    const layout: Layout = .of(disk_size, slots);
    const fd: i32 =
        @intCast(try sys.check(linux.memfd_create("bootfarm-local-disk", linux.MFD.CLOEXEC)));
    errdefer sys.close(fd);
    _ = try sys.check(linux.ftruncate(fd, @intCast(layout.size)));
    return .{ .fd = fd, .layout = layout, .limit_slots = @min(limit_slots, slots - spare_slots) };
}

/// Maps it. Call this after `protection.protect`, which would lock memory for all of it: a
/// later mapping is unlocked before it can be touched.
pub fn look(map: *BlockMap) Error!void {
    const layout = &map.layout;
    const address = try sys.check(
        linux.mmap(null, layout.size, .{}, .{ .TYPE = .SHARED, .NORESERVE = true }, map.fd, 0),
    );
    const bytes: [*]align(block_size) u8 = @ptrFromInt(address);
    _ = try sys.check(linux.munlock(bytes, layout.size));
    _ = try sys.check(linux.mprotect(bytes, layout.size, .{ .READ = true, .WRITE = true }));
    const chunk_count = (layout.size - layout.entries_at) / block_size;
    map.view = .{
        .shared = @ptrCast(bytes),
        .chunks = bytes[layout.chunks_at..][0..chunk_count],
        .bitmap = @as([*]u64, @ptrCast(@alignCast(bytes +
            layout.bitmap_at)))[0..words(layout.slots)],
        .seals = @as([*]Seal, @ptrCast(@alignCast(bytes + layout.seals_at)))[0..layout.slots],
        .entries = @as([*]u64, @ptrCast(@alignCast(bytes + layout.entries_at)))[0..layout.blocks],
    };
}

pub fn deinit(map: *BlockMap) void {
    const bytes: [*]align(block_size) u8 = @ptrCast(@alignCast(map.view.shared));
    _ = linux.munmap(bytes, map.layout.size);
    sys.close(map.fd);
    map.* = undefined;
}

pub fn get(map: *const BlockMap, block: usize) Entry {
    if (@atomicLoad(
        u8,
        &map.view.chunks[block / chunk_blocks],
        .acquire,
    ) == @backingInt(ChunkState.zeros)) return .zeros;
    return @bitCast(@atomicLoad(u64, &map.view.entries[block], .acquire));
}

/// Frees the slot that it had.
pub fn put(map: *BlockMap, block: usize, entry: Entry) void {
    map.writeOut(block / chunk_blocks);
    const before: Entry = @bitCast(map.view.entries[block]);
    @atomicStore(u64, &map.view.entries[block], @bitCast(entry), .release);
    if (before.slot != 0 and before.slot != entry.slot) map.giveBack(before.slot - 1);
}

/// Makes all of a chunk's blocks zeros and frees their slots.
pub fn putZeros(map: *BlockMap, chunk: usize) Error!void {
    const state = &map.view.chunks[chunk];
    if (state.* == @backingInt(ChunkState.zeros)) return;
    const first = chunk * chunk_blocks;
    const entries = map.view.entries[first..@min(first + chunk_blocks, map.layout.blocks)];
    // A process that ends in between loses slots, and none is assigned twice.
    @atomicStore(u8, state, @backingInt(ChunkState.zeros), .release);
    for (entries) |raw| {
        const entry: Entry = @bitCast(raw);
        if (entry.slot != 0) map.giveBack(entry.slot - 1);
    }
    const at = map.layout.entries_at + chunk * block_size;
    _ = try sys.check(linux.fallocate(map.fd, punch_hole_keep_size, @intCast(at), block_size));
}

/// Returns a slot for a block, which has none yet if it `is_new`; null if the disk is full.
pub fn take(map: *BlockMap, is_new: bool) ?u32 {
    const shared = map.view.shared;
    const limit = if (is_new) map.limit_slots else map.layout.slots;
    if (shared.used_slots >= limit) return null;
    const slot = map.freeFrom(@intCast(shared.next_slot), map.layout.slots) orelse
        map.freeFrom(0, map.layout.slots) orelse return null;
    map.view.bitmap[slot / 64] |= bitOf(slot);
    shared.next_slot = (slot + 1) % map.layout.slots;
    @atomicStore(u64, &shared.used_slots, shared.used_slots + 1, .monotonic);
    return slot;
}

pub fn giveBack(map: *BlockMap, slot: u32) void {
    const word = &map.view.bitmap[slot / 64];
    assert(word.* & bitOf(slot) != 0);
    word.* &= ~bitOf(slot);
    @atomicStore(u64, &map.view.shared.used_slots, map.view.shared.used_slots - 1, .monotonic);
}

/// Never returns the same value twice, in any process.
pub fn nextCounter(map: *BlockMap) u64 {
    return @atomicRmw(u64, &map.view.shared.counter, .Add, 1, .seq_cst) + 1;
}

pub fn usedSlots(map: *const BlockMap) u64 {
    return @min(@atomicLoad(u64, &map.view.shared.used_slots, .monotonic), map.limit_slots);
}

/// Replaces the state of a whole chunk by entries. A reader sees either one; both mean the
/// same.
fn writeOut(map: *BlockMap, chunk: usize) void {
    if (map.view.chunks[chunk] == @backingInt(ChunkState.by_entry)) return;
    const first = chunk * chunk_blocks;
    @memset(
        map.view.entries[first..@min(first + chunk_blocks, map.layout.blocks)],
        @bitCast(Entry.zeros),
    );
    @atomicStore(u8, &map.view.chunks[chunk], @backingInt(ChunkState.by_entry), .release);
}

fn freeFrom(map: *const BlockMap, first: u32, end: u32) ?u32 {
    var slot = first;
    while (slot < end) {
        const used = map.view.bitmap[slot / 64] >> @intCast(slot % 64);
        const skipped: u32 = @ctz(~used);
        if (slot % 64 + skipped < 64) return if (slot + skipped < end) slot + skipped else null;
        slot = (slot / 64 + 1) * 64;
    }
    return null;
}

fn bitOf(slot: u32) u64 {
    return @as(u64, 1) << @intCast(slot % 64);
}

fn words(slots: u32) usize {
    return std.math.divCeil(usize, slots, 64) catch unreachable;
}

fn pages(size: usize) usize {
    return std.mem.alignForward(usize, size, block_size);
}

const testing = std.testing;

fn memoryOf(map: *const BlockMap) !u64 {
    var stat: linux.Statx = undefined;
    _ = try sys.check(linux.statx(map.fd, "", linux.AT.EMPTY_PATH, linux.STATX.BASIC_STATS, &stat));
    return stat.blocks * 512;
}

test "a slot is assigned once until it is free, and a full map has space again after a discard" {
    var map: BlockMap = try .init(64 << 20, 200, 100);
    defer map.deinit();
    try map.look();
    var seen: std.bit_set.Static(200) = .empty;
    for (0..100) |block| {
        const slot = map.take(true).?;
        try testing.expect(!seen.isSet(slot));
        seen.set(slot);
        map.put(block, .{ .slot = slot + 1, .mask = all_sectors });
    }
    try testing.expectEqual(null, map.take(true));
    try testing.expectEqual(100, map.usedSlots());
    // New bytes of a block that has a slot.
    for (0..1000) |turn| {
        const slot = map.take(false).?;
        map.put(turn % 100, .{ .slot = slot + 1, .mask = all_sectors });
    }
    try testing.expectEqual(100, map.usedSlots());
    map.put(7, .zeros);
    const slot = map.take(true).?;
    map.put(200, .{ .slot = slot + 1, .mask = 1 });
    try testing.expectEqual(null, map.take(true));
    try testing.expectEqual(Entry{ .slot = slot + 1, .mask = 1 }, map.get(200));
    try testing.expectEqual(Entry.zeros, map.get(7));
    try testing.expectEqual(Entry{}, map.get(201));
}

test "memory is taken only for what is used, and a chunk of zeros frees it" {
    var map: BlockMap = try .init(1 << 40, 1 << 24, 1 << 24);
    defer map.deinit();
    try map.look();
    try testing.expectEqual(0, try memoryOf(&map));
    for (0..2 * chunk_blocks) |block|
        map.put(block, .{ .slot = map.take(true).? + 1, .mask = all_sectors });
    const used = try memoryOf(&map);
    try testing.expect(used <= 16 << 12);
    for (0..2) |chunk| try map.putZeros(chunk);
    try testing.expectEqual(0, map.usedSlots());
    try testing.expect(try memoryOf(&map) < used);
    const free = try memoryOf(&map);
    for (2..1000) |chunk| try map.putZeros(chunk);
    try testing.expectEqual(free, try memoryOf(&map));
    map.put(chunk_blocks + 3, .{ .slot = map.take(true).? + 1, .mask = 1 });
    for (0..2 * chunk_blocks) |block| {
        if (block != chunk_blocks + 3) try testing.expectEqual(Entry.zeros, map.get(block));
    }
}
