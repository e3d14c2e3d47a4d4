//! CRC-32C as ext4 uses it: reflected, without inversion at the start or the end, so that a
//! checksum continues from another one.

const std = @import("std");

const table = makeTable();

fn makeTable() [256]u32 {
    @setEvalBranchQuota(5000);
    var made: [256]u32 = undefined;
    for (&made, 0..) |*entry, index| {
        var crc: u32 = index;
        for (0..8) |_| crc = (crc >> 1) ^ (if (crc & 1 != 0) @as(u32, 0x82f63b78) else 0);
        entry.* = crc;
    }
    return made;
}

/// What ext4 starts with.
pub const initial: u32 = 0xffffffff;

pub fn update(crc: u32, bytes: []const u8) u32 {
    var now = crc;
    for (bytes) |byte| now = (now >> 8) ^ table[@as(u8, @truncate(now)) ^ byte];
    return now;
}

test "the check value of CRC-32C, and a checksum in two parts" {
    const whole = update(initial, "123456789");
    try std.testing.expectEqual(0xe3069283, ~whole);
    try std.testing.expectEqual(whole, update(update(initial, "1234"), "56789"));
}
