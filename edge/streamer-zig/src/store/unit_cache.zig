//! Caches unpacked units (unit.zig), so that a unit is unpacked once for the reads of its blocks.
//! One cache serves all readers of a store in one thread. Its size is fixed; a set of eight slots
//! keeps the units that were used last.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const simulated = @import("simulated.zig");
const unit_module = @import("unit.zig");
const assert = std.debug.assert;

const Location = block.Location;

pub const Error = error{ Damaged, ReadFailed };

/// 4 MiB: enough to read a disk from its start to its end.
pub const units_default = 128;

const ways = 8;

pub const UnitCache = @This();

/// Sets of eight, in the order of the keys' hashes.
slots: []Slot,
blocks: []Raw,
stored: *unit_module.Stored,
uses: u32 = 0,
unpacked: u64 = 0,
/// The unit that was there and lacked blocks, at the last search.
short: u64 = 0,

const Raw = [unit_module.raw_size_max]u8;
/// `key` 0: empty.
const Slot = struct { key: u64 = 0, used_at: u32 = 0, absent: unit_module.BlockSet = 0 };

/// Takes a multiple of eight units. Memory is taken as units come.
pub fn init(gpa: std.mem.Allocator, units: u32) error{OutOfMemory}!UnitCache {
    assert(units >= ways and units % ways == 0);
    const slots = try gpa.alloc(Slot, units);
    errdefer gpa.free(slots);
    @memset(slots, .{});
    const blocks = try base.allocUntouched(gpa, Raw, units);
    errdefer base.freeUntouched(gpa, Raw, blocks);
    base.preferLargePages(std.mem.sliceAsBytes(blocks));
    return .{ .slots = slots, .blocks = blocks, .stored = try gpa.create(unit_module.Stored) };
}

pub fn deinit(cache: *UnitCache, gpa: std.mem.Allocator) void {
    gpa.destroy(cache.stored);
    base.freeUntouched(gpa, Raw, cache.blocks);
    gpa.free(cache.slots);
    cache.* = undefined;
}

/// Empties the cache, after files were cut or replaced under it.
pub fn clear(cache: *UnitCache) void {
    @memset(cache.slots, .{});
}

/// Drops a unit, one of whose blocks is not what its hash says: once that is repaired, the unit is
/// read again.
pub fn forget(cache: *UnitCache, location: Location) void {
    const key = keyOf(location);
    for (cache.slots[cache.setOf(key)..][0..ways]) |*slot| {
        if (slot.key == key) slot.key = 0;
    }
}

/// Returns so many blocks of a unit, from that of the location on, valid until the next call. Waits
/// for the disk.
pub fn get(cache: *UnitCache, data: *FileSet, location: Location, count: usize) Error![]const u8 {
    if (!unit_module.isPossible(location)) return error.Damaged;
    if (cache.find(location, count)) |found| return found;
    const stored = cache.stored[0..location.storedSize()];
    const is_whole = data.read(location, 0, stored) catch |err| return switch (err) {
        error.NotFound => error.Damaged,
        else => error.ReadFailed,
    };
    if (!is_whole) return error.Damaged;
    return cache.unpack(location, count, stored);
}

/// Like `get`, without waiting for the disk; returns null if the disk is needed, or if so many
/// units were unpacked before.
pub fn getNow(
    cache: *UnitCache,
    data: *FileSet,
    location: Location,
    count: usize,
    unpacked_end: ?u64,
) error{Damaged}!?[]const u8 {
    if (!unit_module.isPossible(location)) return error.Damaged;
    if (cache.find(location, count)) |found| return found;
    if (cache.unpacked == unpacked_end) return null;
    const stored = cache.stored[0..location.storedSize()];
    const is_read = data.readNow(location, 0, stored) catch return null;
    return if (is_read) try cache.unpack(location, count, stored) else null;
}

fn find(cache: *UnitCache, location: Location, count: usize) ?[]const u8 {
    const key = keyOf(location);
    const first = cache.setOf(key);
    for (cache.slots[first..][0..ways], first..) |*slot, index| {
        if (slot.key != key) continue;
        const found = cache.blocksOf(index, location, count) orelse {
            // They were not wanted, or it may have them by now.
            slot.key = 0;
            cache.short = key;
            return null;
        };
        cache.use(slot);
        return found;
    }
    return null;
}

/// Returns null if the unit lacks one of these blocks.
fn blocksOf(cache: *const UnitCache, index: usize, location: Location, count: usize) ?[]const u8 {
    const place = location.place();
    assert(count > 0 and place.index + count <= @as(usize, place.last) + 1);
    const wanted = unit_module.allOf(count) << place.index;
    const is_there = cache.slots[index].absent & wanted == 0;
    if (!is_there and !simulated.has(.absent_is_read)) return null;
    const begin = @as(usize, place.index) * block.block_size;
    return cache.blocks[index][begin..][0 .. count * block.block_size];
}

fn unpack(
    cache: *UnitCache,
    location: Location,
    count: usize,
    stored: []const u8,
) error{Damaged}![]const u8 {
    const key = keyOf(location);
    const first = cache.setOf(key);
    var oldest = first;
    for (cache.slots[first..][0..ways], first..) |*slot, index| {
        if (slot.key == 0) {
            oldest = index;
            break;
        }
        const is_older = cache.uses -% slot.used_at > cache.uses -% cache.slots[oldest].used_at;
        if (is_older) oldest = index;
    }
    const slot = &cache.slots[oldest];
    slot.key = 0;
    const raw = cache.blocks[oldest][0..sizeOf(location)];
    // Most reads of a few blocks are the only ones of their unit: what is behind them is unpacked
    // when it is wanted, and then all of it.
    slot.absent = if (key == cache.short)
        try unit_module.unpack(raw, stored)
    else
        try unit_module.unpackStart(raw, stored, location.place().index + count);
    cache.unpacked += 1;
    slot.key = key;
    cache.use(slot);
    return cache.blocksOf(oldest, location, count) orelse error.Damaged;
}

fn use(cache: *UnitCache, slot: *Slot) void {
    cache.uses +%= 1;
    slot.used_at = cache.uses;
}

/// Bytes of the unit's blocks.
fn sizeOf(location: Location) usize {
    return (@as(usize, location.place().last) + 1) * block.block_size;
}

fn keyOf(location: Location) u64 {
    return @bitCast(location.unit());
}

fn setOf(cache: *const UnitCache, key: u64) usize {
    // Fibonacci hashing spreads consecutive locations.
    const product: u128 = @as(u128, key *% 0x9e37_79b9_7f4a_7c15) * (cache.slots.len / ways);
    return @as(usize, @intCast(product >> 64)) * ways;
}
