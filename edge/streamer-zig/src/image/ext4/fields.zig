//! Writes numbers of ext4's structures, which are little-endian.

const std = @import("std");

pub fn put(comptime T: type, bytes: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, bytes[at..][0..@sizeOf(T)], value, .little);
}

/// Takes the lower bits: a number whose other half is elsewhere.
pub fn low16(value: anytype) u16 {
    return @truncate(value);
}

pub fn high16(value: u32) u16 {
    return @truncate(value >> 16);
}
