//! CRC-32C (RFC 3720, B.4) of file systems and images: reflected, with Castagnoli's polynomial.

const std = @import("std");

/// Inverted at the start and at the end, as XFS, Btrfs and VHDX have it.
pub const Crc32c = std.hash.crc.@"CRC-32/ISCSI";

/// What ext4 starts with.
pub const initial: u32 = 0xffffffff;

/// As ext4 has it: not inverted, so that a checksum continues from another one.
pub fn update(crc: u32, bytes: []const u8) u32 {
    // With instructions for it, the standard library keeps the inverted value.
    const is_inverted = comptime Crc32c.init().crc != initial;
    var now: Crc32c = .{ .crc = if (is_inverted) ~crc else crc };
    now.update(bytes);
    return if (is_inverted) ~now.crc else now.crc;
}

test "the check value of CRC-32C, and a checksum in two parts" {
    const whole = update(initial, "123456789");
    try std.testing.expectEqual(0xe3069283, ~whole);
    try std.testing.expectEqual(0xe3069283, Crc32c.hash("123456789"));
    try std.testing.expectEqual(whole, update(update(initial, "1234"), "56789"));
}
