//! Memory that takes no page until it is used: a safe build fills what an allocator returns, and
//! with that it takes every page of a large table.

const std = @import("std");

/// The items are undefined. `freeUntouched` frees them.
pub fn allocUntouched(
    gpa: std.mem.Allocator,
    comptime T: type,
    count: usize,
) error{OutOfMemory}![]T {
    const size = std.math.mul(usize, @sizeOf(T), count) catch return error.OutOfMemory;
    const bytes = gpa.rawAlloc(size, .of(T), @returnAddress()) orelse return error.OutOfMemory;
    const items: [*]T = @ptrCast(@alignCast(bytes));
    return items[0..count];
}

pub fn freeUntouched(gpa: std.mem.Allocator, comptime T: type, items: []T) void {
    gpa.rawFree(std.mem.sliceAsBytes(items), .of(T), @returnAddress());
}

test "what was allocated is freed" {
    const testing = std.testing;
    const items = try allocUntouched(testing.allocator, u64, 1000);
    for (items, 0..) |*item, index| item.* = index;
    try testing.expectEqual(999, items[999]);
    freeUntouched(testing.allocator, u64, items);
    try testing.expectError(
        error.OutOfMemory,
        allocUntouched(testing.failing_allocator, u64, 1),
    );
    try testing.expectError(
        error.OutOfMemory,
        allocUntouched(testing.allocator, u64, std.math.maxInt(usize) / 4),
    );
}
