//! Frames records in a file that a crash may tear: size, CRC, number, payload, all little endian. A
//! reader recognizes an incomplete or damaged record, and everything before it stays readable.

const std = @import("std");
const assert = std.debug.assert;

pub const header_size = 16;
pub const payload_size_max = 24 * 1024;
pub const frame_size_max = header_size + payload_size_max;

pub const Record = struct {
    number: u64,
    payload: []const u8,
    /// Size of the whole frame: where the next record starts, relative to this one.
    frame_size: u32,
};

/// Writes a record's frame into `buffer`.
pub fn encode(number: u64, payload: []const u8, buffer: []u8) []const u8 {
    assert(payload.len > 0);
    assert(payload.len <= payload_size_max);
    assert(buffer.len >= header_size + payload.len);
    std.mem.writeInt(u32, buffer[0..4], @intCast(payload.len), .little);
    std.mem.writeInt(u64, buffer[8..16], number, .little);
    @memcpy(buffer[header_size..][0..payload.len], payload);
    const checked = buffer[8 .. header_size + payload.len];
    std.mem.writeInt(u32, buffer[4..8], checksum(checked), .little);
    return buffer[0 .. header_size + payload.len];
}

/// Returns the record at the front of `bytes`; null if it is torn or damaged.
pub fn decode(bytes: []const u8) ?Record {
    if (bytes.len < header_size) return null;
    const size = std.mem.readInt(u32, bytes[0..4], .little);
    if (size == 0 or size > payload_size_max) return null;
    if (bytes.len - header_size < size) return null;
    const checked = bytes[8 .. header_size + size];
    if (checksum(checked) != std.mem.readInt(u32, bytes[4..8], .little)) return null;
    return .{
        .number = std.mem.readInt(u64, bytes[8..16], .little),
        .payload = bytes[header_size..][0..size],
        .frame_size = header_size + size,
    };
}

fn checksum(bytes: []const u8) u32 {
    return std.hash.Crc32.hash(bytes);
}

const testing = std.testing;

test "a record survives its frame and every torn or damaged one is refused" {
    var buffer: [header_size + 5]u8 = undefined;
    const frame = encode(42, "hello", &buffer);
    const record = decode(frame).?;
    try testing.expectEqual(42, record.number);
    try testing.expectEqualStrings("hello", record.payload);
    for (0..frame.len) |size| try testing.expectEqual(null, decode(frame[0..size]));
    for (0..frame.len) |index| {
        var damaged = buffer;
        damaged[index] ^= 1;
        try testing.expectEqual(null, decode(&damaged));
    }
}
