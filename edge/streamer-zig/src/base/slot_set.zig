//! A set of slots of a table: a bit for each, allocated once.

const std = @import("std");
const assert = std.debug.assert;

pub const SlotSet = @This();

words: []u64,
slots_max: u32,

const word_bits = 64;

/// No slot is in the set.
pub fn initEmpty(gpa: std.mem.Allocator, slots_max: u32) error{OutOfMemory}!SlotSet {
    const count = std.math.divCeil(u32, slots_max, word_bits) catch unreachable;
    const words = try gpa.alloc(u64, count);
    @memset(words, 0);
    return .{ .words = words, .slots_max = slots_max };
}

/// Every slot is in the set.
pub fn initFull(gpa: std.mem.Allocator, slots_max: u32) error{OutOfMemory}!SlotSet {
    var slots: SlotSet = try .initEmpty(gpa, slots_max);
    slots.setAll();
    return slots;
}

pub fn deinit(slots: *SlotSet, gpa: std.mem.Allocator) void {
    gpa.free(slots.words);
    slots.* = undefined;
}

pub fn setAll(slots: *SlotSet) void {
    for (0..slots.slots_max) |slot| slots.set(@intCast(slot));
}

pub fn isSet(slots: *const SlotSet, slot: u32) bool {
    assert(slot < slots.slots_max);
    return slots.words[slot / word_bits] & bitOf(slot) != 0;
}

pub fn set(slots: *SlotSet, slot: u32) void {
    slots.setValue(slot, true);
}

pub fn unset(slots: *SlotSet, slot: u32) void {
    slots.setValue(slot, false);
}

pub fn setValue(slots: *SlotSet, slot: u32, is_in: bool) void {
    assert(slot < slots.slots_max);
    const word = &slots.words[slot / word_bits];
    if (is_in) word.* |= bitOf(slot) else word.* &= ~bitOf(slot);
    assert(slots.isSet(slot) == is_in);
}

fn bitOf(slot: u32) u64 {
    return @as(u64, 1) << @intCast(slot % word_bits);
}

pub fn first(slots: *const SlotSet) ?u32 {
    return slots.firstFrom(0);
}

/// Returns the first slot of the set that is not before this one.
pub fn firstFrom(slots: *const SlotSet, from: u32) ?u32 {
    if (from >= slots.slots_max) return null;
    var word = from / word_bits;
    var bits = slots.words[word] & ~(bitOf(from) - 1);
    while (bits == 0) {
        word += 1;
        if (word == slots.words.len) return null;
        bits = slots.words[word];
    }
    return word * word_bits + @ctz(bits);
}

/// Removes the first slot from the set, and returns it.
pub fn takeFirst(slots: *SlotSet) ?u32 {
    const slot = slots.first() orelse return null;
    slots.unset(slot);
    return slot;
}

/// In the order of their numbers; the caller may remove the slot that it has.
pub fn iterate(slots: *const SlotSet) Iterator {
    return .{ .slots = slots };
}

pub const Iterator = struct {
    slots: *const SlotSet,
    from: u32 = 0,

    pub fn next(iterator: *Iterator) ?u32 {
        const slot = iterator.slots.firstFrom(iterator.from) orelse return null;
        iterator.from = slot + 1;
        return slot;
    }
};

const testing = std.testing;

test "a set has the slots that were put into it, in the order of their numbers" {
    const Prng = @import("prng.zig");
    var prng: Prng = .init(3);
    inline for (.{ 1, 63, 64, 65, 200 }) |slots_max| {
        var model: [slots_max]bool = @splat(true);
        var slots: SlotSet = try .initFull(testing.allocator, slots_max);
        defer slots.deinit(testing.allocator);
        for (0..2000) |_| {
            const slot: u32 = @intCast(prng.below(slots_max));
            model[slot] = prng.chance(1, 3);
            slots.setValue(slot, model[slot]);
            if (prng.chance(1, 10)) if (slots.takeFirst()) |first_slot| {
                try testing.expectEqual(std.mem.findScalar(bool, &model, true).?, first_slot);
                model[first_slot] = false;
            };
            var iterator = slots.iterate();
            for (model, 0..) |is_in, index| {
                try testing.expectEqual(is_in, slots.isSet(@intCast(index)));
                if (is_in) try testing.expectEqual(index, iterator.next().?);
            }
            try testing.expectEqual(null, iterator.next());
            const from: u32 = @intCast(prng.below(slots_max + 2));
            const expected: ?usize = if (from < slots_max)
                std.mem.findScalarPos(bool, &model, from, true)
            else
                null;
            const found: ?usize = if (slots.firstFrom(from)) |slot_found| slot_found else null;
            try testing.expectEqual(expected, found);
        }
    }
}

test "an empty set and one of no slot have none" {
    for ([_]u32{ 0, 5 }) |slots_max| {
        var slots: SlotSet = try .initEmpty(testing.allocator, slots_max);
        defer slots.deinit(testing.allocator);
        try testing.expectEqual(null, slots.first());
        try testing.expectEqual(null, slots.takeFirst());
    }
}
