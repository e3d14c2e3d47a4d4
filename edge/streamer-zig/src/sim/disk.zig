//! The simulated disk: what it holds is a function of version and offset, so that a read of any size can be checked
//! without keeping a byte. Reads take time; most are cached, some wait for a slow disk.

const std = @import("std");
const base = @import("base");

pub const Disk = @This();

prng: base.Prng,
latency_us_typical: u64,
latency_us_slow: u64,
slow_per_mille: u64,
/// Reads that fail; the next try may succeed.
error_per_mille: u64,

pub const Version = struct {
    id: base.Uuid,
    /// Bytes; a multiple of 512.
    size: u64,

    fn key(version: Version) u64 {
        return std.mem.readInt(u64, version.id.bytes[0..8], .little);
    }
};

pub fn init(prng: *base.Prng) Disk {
    return .{
        .prng = .init(prng.nextU64()),
        .latency_us_typical = prng.between(5, 200),
        .latency_us_slow = prng.between(1_000, 30_000),
        .slow_per_mille = prng.below(20),
        .error_per_mille = if (prng.chance(1, 2)) 0 else prng.below(100),
    };
}

/// How long the next read takes.
pub fn latencyUs(disk: *Disk) u64 {
    if (disk.prng.chance(disk.slow_per_mille, 1000)) return disk.prng.between(1, disk.latency_us_slow);
    return disk.prng.between(1, disk.latency_us_typical);
}

/// Whether the next read fails.
pub fn fails(disk: *Disk) bool {
    return disk.prng.chance(disk.error_per_mille, 1000);
}

pub fn fill(version: Version, offset: u64, buffer: []u8) void {
    var filled: usize = 0;
    while (filled < buffer.len) {
        const at = offset + filled;
        const bytes = wordAt(version.key(), at / 8);
        const skip: usize = @intCast(at % 8);
        const count = @min(8 - skip, buffer.len - filled);
        @memcpy(buffer[filled..][0..count], bytes[skip..][0..count]);
        filled += count;
    }
}

/// Where the bytes begin to differ from the disk's; null: nowhere.
pub fn firstDifference(version: Version, offset: u64, bytes: []const u8) ?u64 {
    var checked: usize = 0;
    while (checked < bytes.len) {
        const at = offset + checked;
        const expected = wordAt(version.key(), at / 8);
        const skip: usize = @intCast(at % 8);
        const count = @min(8 - skip, bytes.len - checked);
        if (!std.mem.eql(u8, bytes[checked..][0..count], expected[skip..][0..count])) return at;
        checked += count;
    }
    return null;
}

fn wordAt(key: u64, index: u64) [8]u8 {
    const mixed = (key ^ index *% 0x9e3779b97f4a7c15) *% 0xd6e8feb86659fd93;
    return std.mem.toBytes(std.mem.nativeToLittle(u64, mixed ^ (mixed >> 32)));
}

const testing = std.testing;

test "a piece of the disk is the same however it is read, and differs from another version's" {
    const version: Version = .{ .id = .fromRandom(@splat(1)), .size = 1 << 20 };
    const other: Version = .{ .id = .fromRandom(@splat(2)), .size = 1 << 20 };
    var whole: [4096]u8 = undefined;
    fill(version, 512, &whole);
    var piece: [101]u8 = undefined;
    fill(version, 512 + 1003, &piece);
    try testing.expectEqualSlices(u8, whole[1003..][0..101], &piece);
    try testing.expectEqual(null, firstDifference(version, 512, &whole));
    try testing.expect(firstDifference(other, 512, &whole) != null);
    whole[77] ^= 1;
    try testing.expect(firstDifference(version, 512, &whole).? <= 512 + 77);
}
