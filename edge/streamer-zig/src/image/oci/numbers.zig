//! Numbers and limits that the readers of tar share.

const std = @import("std");
const Fault = @import("fault.zig").Fault;

pub const record_size = 512;
/// Of a sparse file.
pub const segments_max = 64 << 10;

/// Of an extended header.
pub fn decimal(comptime T: type, text: []const u8) Fault!T {
    for (text) |byte| if (!std.ascii.isDigit(byte)) return error.NumberInvalid;
    return std.fmt.parseInt(T, text, 10) catch error.NumberInvalid;
}

/// Octal digits between spaces and zeros, or GNU's base 256, whose first bit is set.
pub fn ofField(comptime T: type, bytes: []const u8) Fault!T {
    const number = try signedOf(bytes);
    return std.math.cast(T, number) orelse error.NumberInvalid;
}

pub fn signedOf(field: []const u8) Fault!i64 {
    if (field[0] & 0x80 != 0) return base256(field);
    const text = std.mem.trim(u8, textOf(std.mem.trimStart(u8, field, " \x00")), " ");
    if (text.len == 0) return 0;
    for (text) |byte| if (byte < '0' or byte > '7') return error.NumberInvalid;
    return std.fmt.parseInt(i64, text, 8) catch error.NumberInvalid;
}

fn base256(field: []const u8) Fault!i64 {
    const is_negative = field[0] & 0x40 != 0;
    var number: i64 = if (is_negative) -1 else 0;
    for (field, 0..) |byte, at| {
        const bits = if (at == 0) (byte & 0x3f) | @as(u8, if (is_negative) 0xc0 else 0) else byte;
        const is_sign = bits == @as(u8, if (is_negative) 0xff else 0);
        if (at + 8 < field.len and !is_sign) return error.NumberInvalid;
        number = @bitCast(@as(u64, @bitCast(number)) << 8 | bits);
    }
    if (number < 0 and !is_negative) return error.NumberInvalid;
    return number;
}

/// What is before the first zero byte.
pub fn textOf(field: []const u8) []const u8 {
    return field[0 .. std.mem.findScalar(u8, field, 0) orelse field.len];
}
