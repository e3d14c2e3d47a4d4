//! Memory of tables that takes no page until it is used. A safe build fills what an allocator
//! returns, and with that it takes every page of a large table: an edge whose tables are sized for
//! 16,384 devices would take 80 MB at each start, and its devices wait for that when the program is
//! exchanged (docs/decisions/0039-exchange-of-the-program.md).

const builtin = @import("builtin");
const std = @import("std");
const assert = std.debug.assert;

/// The items are undefined. `freeUntouched` frees them.
pub fn allocUntouched(
    gpa: std.mem.Allocator,
    comptime T: type,
    count: usize,
) error{OutOfMemory}![]T {
    if (count == 0) return &.{};
    const size = std.math.mul(usize, @sizeOf(T), count) catch return error.OutOfMemory;
    const bytes = gpa.rawAlloc(size, .of(T), @returnAddress()) orelse return error.OutOfMemory;
    const items: [*]T = @ptrCast(@alignCast(bytes));
    return items[0..count];
}

pub fn freeUntouched(gpa: std.mem.Allocator, comptime T: type, items: []T) void {
    if (items.len == 0) return;
    gpa.rawFree(std.mem.sliceAsBytes(items), .of(T), @returnAddress());
}

/// Of x86-64, and of arm64 with pages of 4 KiB.
const large_page_size = 2 << 20;

/// Asks the system for large pages where the memory has room for whole ones, as they are touched:
/// a table that is read all over misses the processor's page tables at nearly every read otherwise.
pub fn preferLargePages(bytes: []u8) void {
    if (builtin.os.tag != .linux or bytes.len < large_page_size) return;
    const page = std.heap.page_size_min;
    const begin = std.mem.alignForward(usize, @intFromPtr(bytes.ptr), page);
    const end = std.mem.alignBackward(usize, @intFromPtr(bytes.ptr) + bytes.len, page);
    // A kernel without large pages refuses, and nothing is lost.
    if (begin < end)
        _ = std.os.linux.madvise(@ptrFromInt(begin), end - begin, std.os.linux.MADV.HUGEPAGE);
}

/// From this size on memory is mapped for its table alone: the system returns zero pages.
const mapped_size_min = 64 << 10;

/// All bytes of the items are zero, and an item of zeros is `free`. `freeZeroed` frees them.
pub fn allocZeroed(
    gpa: std.mem.Allocator,
    comptime T: type,
    /// What the table reads of an item that was never written, and so all that is defined of it: a
    /// value of T, or of a struct with some of its fields.
    comptime free: anytype,
    count: usize,
) error{OutOfMemory}![]T {
    const items = try allocUntouched(sourceOf(gpa, T, count), T, count);
    if (!isMapped(T, count)) @memset(std.mem.sliceAsBytes(items), 0);
    if (count > 0) assertFree(T, free, &items[0]);
    return items;
}

pub fn freeZeroed(gpa: std.mem.Allocator, comptime T: type, items: []T) void {
    freeUntouched(sourceOf(gpa, T, items.len), T, items);
}

fn isMapped(comptime T: type, count: usize) bool {
    return count >= mapped_size_min / @sizeOf(T);
}

fn sourceOf(gpa: std.mem.Allocator, comptime T: type, count: usize) std.mem.Allocator {
    return if (isMapped(T, count)) std.heap.page_allocator else gpa;
}

fn assertFree(comptime T: type, comptime free: anytype, item: *const T) void {
    const Free = @TypeOf(free);
    if (@typeInfo(Free) != .@"struct" or Free == T)
        return assert(std.meta.eql(@as(T, free), item.*));
    inline for (comptime std.meta.fieldNames(Free)) |name|
        assert(std.meta.eql(@as(@FieldType(T, name), @field(free, name)), @field(item, name)));
}

const testing = std.testing;

test "what was allocated is freed" {
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

const Slot = struct {
    id: u64 = 0,
    layer: ?u32 = null,
    kind: enum { none, file } = .none,
    bytes: [40]u8 = undefined,
};

test "items are free, in a small table and in one that is mapped, and their memory is returned" {
    const free = .{ .id = 0, .layer = null, .kind = .none };
    for ([_]usize{ 0, 1, 100, mapped_size_min / @sizeOf(Slot), 5000 }) |count| {
        for (0..3) |_| {
            const items = try allocZeroed(testing.allocator, Slot, free, count);
            for (items) |*item| {
                try testing.expectEqual(0, item.id);
                try testing.expectEqual(null, item.layer);
                try testing.expectEqual(.none, item.kind);
            }
            for (items) |*item| item.* = .{ .id = 7, .layer = 7, .kind = .file };
            freeZeroed(testing.allocator, Slot, items);
        }
    }
    try testing.expectError(
        error.OutOfMemory,
        allocZeroed(testing.failing_allocator, u8, @as(u8, 0), 100),
    );
}

test "a large table takes no memory before it is used" {
    const page_size = std.heap.page_size_min;
    const items = try allocZeroed(testing.allocator, Slot, .{ .id = 0 }, 1 << 20);
    defer freeZeroed(testing.allocator, Slot, items);
    items[items.len - 1].id = 7;
    var is_there: [@sizeOf(Slot) * (1 << 20) / page_size + 1]u8 = undefined;
    const bytes = std.mem.sliceAsBytes(items);
    const rc = std.os.linux.mincore(bytes.ptr, bytes.len, &is_there);
    try testing.expectEqual(.SUCCESS, std.os.linux.errno(rc));
    var pages: u32 = 0;
    for (is_there[0 .. bytes.len / page_size]) |is| pages += is & 1;
    // The first was looked at. A system with huge pages takes one of them for each.
    try testing.expect(pages <= 2 * (2 << 20) / page_size);
}
