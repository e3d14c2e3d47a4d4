//! A list of fixed capacity that is a plain value: it can be copied, compared and put into an
//! event.

const std = @import("std");
const assert = std.debug.assert;

/// At most `capacity` items of T, in order. A full list returns `error.Full`, and never crashes.
pub fn BoundedArray(comptime T: type, comptime capacity: u32) type {
    return struct {
        const Self = @This();
        const capacity_max = capacity;
        pub const empty: Self = .{};

        buffer: [capacity]T = undefined,
        count: u32 = 0,

        pub fn append(list: *Self, item: T) error{Full}!void {
            assert(list.count <= capacity);
            if (list.count == capacity) return error.Full;
            list.buffer[list.count] = item;
            list.count += 1;
        }

        /// For callers that have proved the capacity; a full list is our mistake.
        pub fn appendAssumeCapacity(list: *Self, item: T) void {
            list.append(item) catch unreachable;
        }

        pub fn fromSlice(source: []const T) error{Full}!Self {
            if (source.len > capacity) return error.Full;
            var list: Self = .{ .count = @intCast(source.len) };
            @memcpy(list.buffer[0..source.len], source);
            return list;
        }

        pub fn slice(list: *Self) []T {
            return list.buffer[0..list.count];
        }

        pub fn constSlice(list: *const Self) []const T {
            return list.buffer[0..list.count];
        }

        /// Removes an item by putting the last one in its place: the order is not kept.
        pub fn swapRemove(list: *Self, index: u32) T {
            assert(index < list.count);
            const removed = list.buffer[index];
            list.count -= 1;
            list.buffer[index] = list.buffer[list.count];
            return removed;
        }

        /// Removes the last item; null: there is none.
        pub fn pop(list: *Self) ?T {
            if (list.count == 0) return null;
            list.count -= 1;
            return list.buffer[list.count];
        }

        pub fn clear(list: *Self) void {
            list.count = 0;
        }

        pub fn isFull(list: *const Self) bool {
            return list.count == capacity;
        }
    };
}

const testing = std.testing;

test "a full list refuses and keeps its items" {
    var list: BoundedArray(u16, 2) = .empty;
    try list.append(7);
    try list.append(8);
    try testing.expect(list.isFull());
    try testing.expectError(error.Full, list.append(9));
    try testing.expectEqualSlices(u16, &.{ 7, 8 }, list.constSlice());
    try testing.expectEqual(7, list.swapRemove(0));
    try testing.expectEqualSlices(u16, &.{8}, list.constSlice());
    try testing.expectError(error.Full, BoundedArray(u16, 2).fromSlice(&.{ 1, 2, 3 }));
}
