//! A stable in-place sort. The standard library's stable sort compiles to eight to twenty kilobytes
//! of instructions for each sorted type, which made a tenth of our programs and of their build
//! time; our lists are short, or rarely sorted.
//!
//! Merges by rotation (K. Dudzinski, A. Dydek: On a stable minimum storage merging algorithm,
//! 1981): n log n comparisons, n log² n moves.

const std = @import("std");

/// Runs of this size are sorted by insertion.
const run_size = 16;

pub fn sort(
    comptime T: type,
    items: []T,
    context: anytype,
    comptime isBefore: fn (@TypeOf(context), T, T) bool,
) void {
    const before: Before(T, @TypeOf(context), isBefore) = .{ .context = context };
    var begin: usize = 0;
    while (begin < items.len) : (begin += run_size) before.insert(
        items[begin..@min(begin + run_size, items.len)],
    );
    var size: usize = run_size;
    while (size < items.len) : (size *= 2) {
        begin = 0;
        while (begin + size < items.len) : (begin += 2 *
            size) before.merge(items[begin..@min(begin + 2 * size, items.len)], size);
    }
}

fn Before(
    comptime T: type,
    comptime Context: type,
    comptime isBefore: fn (Context, T, T) bool,
) type {
    return struct {
        context: Context,

        const Self = @This();

        noinline fn insert(self: Self, items: []T) void {
            for (1..@max(items.len, 1)) |from| {
                const item = items[from];
                var at = from;
                while (at > 0 and isBefore(
                    self.context,
                    item,
                    items[at - 1],
                )) : (at -= 1) items[at] = items[at - 1];
                items[at] = item;
            }
        }

        /// Merges two sorted parts. The longer one is halved each time, so the recursion is at most
        /// a few dozen calls deep.
        noinline fn merge(self: Self, items: []T, middle: usize) void {
            if (middle == 0 or middle == items.len) return;
            if (!isBefore(self.context, items[middle], items[middle - 1])) return;
            var left = middle / 2;
            var right = middle + (items.len - middle) / 2;
            if (middle >= items.len - middle) {
                right = middle + self.countBefore(items[middle..], items[left], .those_before);
            } else {
                left = self.countBefore(items[0..middle], items[right], .those_not_after);
            }
            std.mem.rotate(T, items[left..right], middle - left);
            const between = left + (right - middle);
            self.merge(items[0..between], left);
            self.merge(items[between..], right - between);
        }

        fn countBefore(self: Self, items: []const T, item: T, of: enum {
            those_before,
            those_not_after,
        }) usize {
            var low: usize = 0;
            var high = items.len;
            while (low < high) {
                const at = low + (high - low) / 2;
                const is_counted = switch (of) {
                    .those_before => isBefore(self.context, items[at], item),
                    .those_not_after => !isBefore(self.context, item, items[at]),
                };
                if (is_counted) low = at + 1 else high = at;
            }
            return low;
        }
    };
}

const testing = std.testing;
const Prng = @import("prng.zig");

const Item = struct {
    key: u32,
    place: u32,

    fn isBefore(_: void, one: Item, other: Item) bool {
        return one.key < other.key;
    }
};

fn expectSame(items: []Item) !void {
    const expected = try testing.allocator.dupe(Item, items);
    defer testing.allocator.free(expected);
    std.sort.insertion(Item, expected, {}, Item.isBefore);
    sort(Item, items, {}, Item.isBefore);
    try testing.expectEqualSlices(Item, expected, items);
}

test "sorted items are in order, and equal items keep their order" {
    var prng: Prng = .init(3);
    var all: [1500]Item = undefined;
    for (0..200) |count| for ([_]u32{ 1, 2, 10, 1000 }) |keys| {
        const items = all[0..count];
        for (items, 0..) |*item, place|
            item.* = .{ .key = @intCast(prng.below(keys)), .place = @intCast(place) };
        try expectSame(items);
    };
    for ([_]u32{ 3, 100, 1 << 30 }) |keys| {
        for (&all, 0..) |*item, place|
            item.* = .{ .key = @intCast(prng.below(keys)), .place = @intCast(place) };
        try expectSame(&all);
        std.mem.reverse(Item, &all);
        try expectSame(&all);
        try expectSame(&all);
    }
}

test "the context reaches the comparison" {
    var numbers = [_]u8{ 0, 1, 2 };
    const weights = [_]u8{ 5, 9, 1 };
    sort(u8, &numbers, @as([]const u8, &weights), struct {
        fn isBefore(of: []const u8, one: u8, other: u8) bool {
            return of[one] < of[other];
        }
    }.isBefore);
    try testing.expectEqual([_]u8{ 2, 0, 1 }, numbers);
}
