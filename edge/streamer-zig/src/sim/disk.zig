//! Fake disks: what a version has at an offset is computed, so that nobody has to keep it.

const base = @import("base");

pub const disk_size = 8 << 20;

pub fn versionId(number: u8) base.Uuid {
    return .{ .bytes = @splat(0xd0 +% number) };
}

pub fn fill(version_id: base.Uuid, offset: u64, buffer: []u8) void {
    const salt: u64 = @as(u64, version_id.bytes[0]) *% 0xff51afd7ed558ccd;
    for (buffer, offset..) |*byte, at| byte.* = @truncate(((at +% salt) *% 0x9e3779b97f4a7c15) >> 29);
}
