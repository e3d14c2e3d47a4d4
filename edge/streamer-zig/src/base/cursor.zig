//! Checked reading of network bytes. Whatever lengths a packet claims, a Cursor never reads beyond
//! its slice and never overflows.

const std = @import("std");
const assert = std.debug.assert;

/// Reads from the front of a slice; every read either succeeds whole or leaves the position
/// unchanged.
pub const Cursor = @This();

buffer: []const u8,
position: usize = 0,

pub const Error = error{Truncated};

pub fn init(buffer: []const u8) Cursor {
    return .{ .buffer = buffer };
}

pub fn remaining(cursor: *const Cursor) usize {
    assert(cursor.position <= cursor.buffer.len);
    return cursor.buffer.len - cursor.position;
}

/// Reads an integer, big endian (network order). T has whole bytes, u24 included.
pub fn int(cursor: *Cursor, comptime T: type) Error!T {
    const size = @divExact(@bitSizeOf(T), 8);
    const raw = try cursor.array(size);
    return std.mem.readInt(T, raw, .big);
}

/// Reads `size` bytes, as a slice of the buffer.
pub fn bytes(cursor: *Cursor, size: usize) Error![]const u8 {
    // Compared by subtraction: position + size could overflow.
    if (size > cursor.remaining()) return error.Truncated;
    defer cursor.position += size;
    return cursor.buffer[cursor.position..][0..size];
}

/// Reads `size` bytes, with the size known at compile time.
pub fn array(cursor: *Cursor, comptime size: usize) Error!*const [size]u8 {
    return (try cursor.bytes(size))[0..size];
}

pub fn skip(cursor: *Cursor, size: usize) Error!void {
    _ = try cursor.bytes(size);
}

/// Returns the remaining bytes; may be empty.
pub fn rest(cursor: *Cursor) []const u8 {
    defer cursor.position = cursor.buffer.len;
    return cursor.buffer[cursor.position..];
}

/// Reads up to the next zero byte, which is consumed and not returned.
pub fn untilZero(cursor: *Cursor) Error![]const u8 {
    const left = cursor.buffer[cursor.position..];
    const size = std.mem.findScalar(u8, left, 0) orelse return error.Truncated;
    cursor.position += size + 1;
    return left[0..size];
}

const testing = std.testing;

test "integers are read in network order" {
    var cursor: Cursor = .init(&.{ 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc });
    try testing.expectEqual(0x12, try cursor.int(u8));
    try testing.expectEqual(0x3456, try cursor.int(u16));
    try testing.expectEqual(0x789abc, try cursor.int(u24));
    try testing.expectEqual(0, cursor.remaining());
}

test "a read beyond the end fails and moves nothing" {
    var cursor: Cursor = .init(&.{ 1, 2, 3 });
    try testing.expectError(error.Truncated, cursor.int(u32));
    try testing.expectError(error.Truncated, cursor.bytes(std.math.maxInt(usize)));
    try testing.expectEqual(3, cursor.remaining());
    try testing.expectEqualSlices(u8, &.{ 1, 2, 3 }, cursor.rest());
    try testing.expectEqual(0, cursor.rest().len);
}

test "a text without its zero byte is truncated" {
    var cursor: Cursor = .init("ab\x00cd");
    try testing.expectEqualStrings("ab", try cursor.untilZero());
    try testing.expectError(error.Truncated, cursor.untilZero());
    try testing.expectEqual(2, cursor.remaining());
}
