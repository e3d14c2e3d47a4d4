//! Finds a table's slots by a key of theirs, in constant time and fixed memory: open addressing
//! with linear probing, at most half full. Slots with one key form a chain, the newest first. The
//! seed keeps attackers who choose keys from choosing places.

const std = @import("std");
const mix = @import("endpoint_index.zig").mix;
const untouched = @import("untouched.zig");
const assert = std.debug.assert;

/// `Key` is an unsigned integer of at most 128 bits; zero is no key.
pub fn SlotIndex(comptime Key: type) type {
    return struct {
        const Self = @This();

        /// By slot; zero: the slot has none.
        keys: []Key,
        /// By slot: the neighbours in its chain.
        next_slots: []Link,
        previous_slots: []Link,
        /// By the hash of a key: the first slot of its chain.
        heads: []Link,
        seed: u64,
        /// Keys that have a chain.
        count: u32 = 0,

        /// A slot, or none. None is zero, so that memory of zeros is an empty index.
        const Link = enum(u32) {
            none = 0,
            _,

            fn of(slot_or_none: ?u32) Link {
                return @fromBackingInt(if (slot_or_none) |found| found + 1 else 0);
            }

            fn slot(link: Link) ?u32 {
                return if (link == .none) null else @backingInt(link) - 1;
            }
        };

        pub fn init(
            gpa: std.mem.Allocator,
            slots_max: u32,
            seed: u64,
        ) error{OutOfMemory}!Self {
            assert(slots_max > 0 and slots_max <= 1 << 30);
            const keys = try untouched.allocZeroed(gpa, Key, 0, slots_max);
            errdefer untouched.freeZeroed(gpa, Key, keys);
            const next_slots = try untouched.allocUntouched(gpa, Link, slots_max);
            errdefer untouched.freeUntouched(gpa, Link, next_slots);
            const previous_slots = try untouched.allocUntouched(gpa, Link, slots_max);
            errdefer untouched.freeUntouched(gpa, Link, previous_slots);
            const size = std.math.ceilPowerOfTwoAssert(u32, 2 * slots_max);
            const heads = try untouched.allocZeroed(gpa, Link, Link.none, size);
            return .{
                .keys = keys,
                .next_slots = next_slots,
                .previous_slots = previous_slots,
                .heads = heads,
                .seed = seed,
            };
        }

        pub fn deinit(index: *Self, gpa: std.mem.Allocator) void {
            untouched.freeZeroed(gpa, Key, index.keys);
            untouched.freeUntouched(gpa, Link, index.next_slots);
            untouched.freeUntouched(gpa, Link, index.previous_slots);
            untouched.freeZeroed(gpa, Link, index.heads);
            index.* = undefined;
        }

        /// Returns the newest slot of a key.
        pub fn first(index: *const Self, key: Key) ?u32 {
            if (key == 0) return null;
            return index.heads[index.placeOf(key)].slot();
        }

        /// Returns the slot that got its key before this one got the same.
        pub fn next(index: *const Self, slot: u32) ?u32 {
            assert(index.keys[slot] != 0);
            return index.next_slots[slot].slot();
        }

        /// Gives a slot a key in place of the one that it has; zero: none.
        pub fn set(index: *Self, slot: u32, key: Key) void {
            if (index.keys[slot] == key) return;
            if (index.keys[slot] != 0) index.remove(slot);
            if (key != 0) index.put(slot, key);
            assert(index.keys[slot] == key);
        }

        /// The slot must have no key.
        pub fn put(index: *Self, slot: u32, key: Key) void {
            assert(key != 0);
            assert(index.keys[slot] == 0);
            const head = &index.heads[index.placeOf(key)];
            index.keys[slot] = key;
            index.next_slots[slot] = head.*;
            index.previous_slots[slot] = .none;
            if (head.slot()) |second|
                index.previous_slots[second] = .of(slot)
            else
                index.count += 1;
            head.* = .of(slot);
            assert(2 * index.count <= index.heads.len);
        }

        /// The slot must have a key.
        pub fn remove(index: *Self, slot: u32) void {
            const key = index.keys[slot];
            assert(key != 0);
            const following = index.next_slots[slot];
            const previous = index.previous_slots[slot];
            if (following.slot()) |other| index.previous_slots[other] = previous;
            if (previous.slot()) |other| {
                index.next_slots[other] = following;
            } else {
                const place = index.placeOf(key);
                assert(index.heads[place] == Link.of(slot));
                index.heads[place] = following;
                if (following == .none) index.closeHole(place);
            }
            index.keys[slot] = 0;
        }

        pub fn clear(index: *Self) void {
            @memset(index.keys, 0);
            @memset(index.heads, .none);
            index.count = 0;
        }

        /// Displaced chains behind the hole move up, so that no search ends too early.
        fn closeHole(index: *Self, hole_at: usize) void {
            assert(index.heads[hole_at] == .none);
            assert(index.count > 0);
            index.count -= 1;
            const mask = index.heads.len - 1;
            var hole = hole_at;
            var place = index.after(hole);
            while (index.heads[place].slot()) |slot| : (place = index.after(place)) {
                const home = index.homeOf(index.keys[slot]);
                if (((place -% home) & mask) < ((place -% hole) & mask)) continue;
                index.heads[hole] = index.heads[place];
                index.heads[place] = .none;
                hole = place;
            }
        }

        /// Returns where the key's chain is, or would be put.
        fn placeOf(index: *const Self, key: Key) usize {
            var place = index.homeOf(key);
            while (true) : (place = index.after(place)) {
                const slot = index.heads[place].slot() orelse return place;
                if (index.keys[slot] == key) return place;
            }
        }

        fn homeOf(index: *const Self, key: Key) usize {
            const low: u64 = @truncate(key);
            const bits = if (@bitSizeOf(Key) > 64)
                mix(low ^ mix(@intCast(key >> 64), index.seed), index.seed)
            else
                mix(low, index.seed);
            return @intCast(bits & (index.heads.len - 1));
        }

        fn after(index: *const Self, place: usize) usize {
            return (place + 1) & (index.heads.len - 1);
        }

        /// Returns whether every slot is found by its key, and nothing else; for simulations.
        pub fn isSound(index: *const Self) bool {
            var count: usize = 0;
            var chains: u32 = 0;
            for (index.heads) |link| {
                const head = link.slot() orelse continue;
                chains += 1;
                const key = index.keys[head];
                if (key == 0 or index.first(key) != head) return false;
                var at: ?u32 = head;
                while (at) |slot| : (at = index.next(slot)) {
                    if (index.keys[slot] != key or count == index.keys.len) return false;
                    count += 1;
                }
            }
            for (index.keys) |key| count -%= @intFromBool(key != 0);
            return count == 0 and chains == index.count;
        }
    };
}

const testing = std.testing;

fn checkAgainstModel(comptime Key: type, keys_max: u64) !void {
    const Prng = @import("prng.zig");
    var prng: Prng = .init(7);
    const slots_max = 48;
    var index: SlotIndex(Key) = try .init(testing.allocator, slots_max, 3);
    defer index.deinit(testing.allocator);
    // The slots of each key are in the order of their stamps, the newest first.
    var model: [slots_max]Key = @splat(0);
    var stamps: [slots_max]u64 = @splat(0);
    for (1..20_000) |now| {
        const slot: u32 = @intCast(prng.below(slots_max));
        const number: Key = @intCast(1 + prng.below(keys_max));
        const key = number << (@bitSizeOf(Key) / 2);
        if (prng.chance(1, 3)) {
            index.set(slot, 0);
            model[slot] = 0;
        } else {
            if (model[slot] != key) stamps[slot] = now;
            index.set(slot, key);
            model[slot] = key;
        }
        try testing.expect(index.isSound());
        var found: usize = 0;
        var newest: u64 = std.math.maxInt(u64);
        var at = index.first(key);
        while (at) |known| : (at = index.next(known)) {
            try testing.expectEqual(key, model[known]);
            try testing.expect(stamps[known] < newest);
            newest = stamps[known];
            found += 1;
        }
        try testing.expectEqual(std.mem.countScalar(Key, &model, key), found);
        try testing.expectEqual(null, index.first(0));
    }
    index.clear();
    try testing.expect(index.isSound());
    for (0..slots_max) |slot| index.put(@intCast(slot), 1);
    try testing.expectEqual(1, index.count);
}

test "slots are found by their keys, the newest first, however keys collide and slots change" {
    try checkAgainstModel(u48, 20);
    try checkAgainstModel(u64, 200);
    try checkAgainstModel(u128, 40);
    try checkAgainstModel(u32, 3);
}

test "an index that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var index: SlotIndex(u64) = try .init(gpa, 4, 1);
            index.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}

test "an index that was damaged is not sound" {
    var index: SlotIndex(u64) = try .init(testing.allocator, 4, 1);
    defer index.deinit(testing.allocator);
    for (0..3) |slot| index.put(@intCast(slot), 5);
    try testing.expect(index.isSound());
    index.keys[1] = 6;
    try testing.expect(!index.isSound());
    index.keys[1] = 5;
    index.keys[3] = 5;
    try testing.expect(!index.isSound());
    index.keys[3] = 0;
    index.count = 2;
    try testing.expect(!index.isSound());
}
