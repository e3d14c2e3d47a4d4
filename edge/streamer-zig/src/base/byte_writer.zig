//! Checked writing of network bytes into a buffer of fixed size.

const std = @import("std");
const assert = std.debug.assert;

/// Appends to a caller's buffer; a write that does not fit changes nothing and fails.
pub const ByteWriter = @This();

buffer: []u8,
position: usize = 0,

pub const Error = error{NoSpace};

pub fn init(buffer: []u8) ByteWriter {
    return .{ .buffer = buffer };
}

pub fn remaining(writer: *const ByteWriter) usize {
    assert(writer.position <= writer.buffer.len);
    return writer.buffer.len - writer.position;
}

/// Returns the bytes written so far.
pub fn written(writer: *const ByteWriter) []u8 {
    return writer.buffer[0..writer.position];
}

/// Appends an integer, big endian (network order).
pub fn int(writer: *ByteWriter, comptime T: type, value: T) Error!void {
    const size = @divExact(@bitSizeOf(T), 8);
    const room = try writer.reserve(size);
    std.mem.writeInt(T, room[0..size], value, .big);
}

pub fn bytes(writer: *ByteWriter, source: []const u8) Error!void {
    const room = try writer.reserve(source.len);
    @memcpy(room, source);
}

pub fn fill(writer: *ByteWriter, value: u8, size: usize) Error!void {
    const room = try writer.reserve(size);
    @memset(room, value);
}

/// Appends text and a zero byte; the caller ensures that the text contains none.
pub fn zeroTerminated(writer: *ByteWriter, text: []const u8) Error!void {
    assert(std.mem.findScalar(u8, text, 0) == null);
    if (text.len >= writer.remaining()) return error.NoSpace;
    try writer.bytes(text);
    try writer.int(u8, 0);
}

/// Appends formatted text; text that does not fit changes nothing.
pub fn print(writer: *ByteWriter, comptime format: []const u8, arguments: anytype) Error!void {
    const room = writer.buffer[writer.position..];
    const text = std.mem.print(room, format, arguments) catch return error.NoSpace;
    writer.position += text.len;
}

fn reserve(writer: *ByteWriter, size: usize) Error![]u8 {
    if (size > writer.remaining()) return error.NoSpace;
    defer writer.position += size;
    return writer.buffer[writer.position..][0..size];
}

const testing = std.testing;

test "a write that does not fit is refused whole" {
    var buffer: [5]u8 = @splat(0xee);
    var writer: ByteWriter = .init(&buffer);
    try writer.int(u16, 0x0102);
    try testing.expectError(error.NoSpace, writer.int(u32, 7));
    try testing.expectError(error.NoSpace, writer.zeroTerminated("abc"));
    try testing.expectError(error.NoSpace, writer.print("{d}", .{12345}));
    try writer.zeroTerminated("ab");
    try testing.expectEqualSlices(u8, &.{ 1, 2, 'a', 'b', 0 }, writer.written());
    try testing.expectEqual(0, writer.remaining());
}
