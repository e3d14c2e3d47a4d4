//! Numbers of VHDX files: little-endian integers, GUIDs, and the checksums of its structures.

const std = @import("std");
const Crc32c = @import("../crc32c.zig").Crc32c;

pub fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .little);
}

/// A GUID as it lies in the file: its first three numbers are little-endian.
pub fn guid(comptime text: *const [36]u8) [16]u8 {
    return comptime parseGuid(text) orelse unreachable;
}

pub fn parseGuid(text: []const u8) ?[16]u8 {
    if (text.len != 36) return null;
    const order = [16]u8{ 6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34 };
    for ([_]usize{ 8, 13, 18, 23 }) |at| if (text[at] != '-') return null;
    var bytes: [16]u8 = undefined;
    for (&bytes, order) |*byte, at|
        byte.* = std.fmt.parseInt(u8, text[at..][0..2], 16) catch return null;
    return bytes;
}

/// The CRC-32C of a header, a region table or an entry of the log, with zeros in its own place,
/// which is byte 4.
pub fn checksum(bytes: []const u8) u32 {
    var crc: Crc32c = .init();
    crc.update(bytes[0..4]);
    crc.update(&.{ 0, 0, 0, 0 });
    crc.update(bytes[8..]);
    return crc.final();
}

const testing = std.testing;

test "a GUID of text has the bytes that it has in a file" {
    const wanted = [16]u8{
        0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0x00, 0x42,
        0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a, 0x08,
    };
    try testing.expectEqual(wanted, guid("2dc27766-f623-4200-9d64-115e9bfd4a08"));
    try testing.expectEqual(null, parseGuid("2dc27766-f623-4200-9d64-115e9bfd4a0"));
    try testing.expectEqual(null, parseGuid("2dc27766-f623-4200-9d64x115e9bfd4a08"));
    try testing.expectEqual(null, parseGuid("2dc27766-f623-4200-9d64-115e9bfd4ag8"));
}
