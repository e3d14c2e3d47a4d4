//! Identifies the file system of a disk or partition, and its size, from its super block. ext4:
//! Documentation/filesystems/ext4/super.rst; XFS, Btrfs and Squashfs: struct xfs_dsb,
//! btrfs_super_block and squashfs_super_block of the kernel. It must never trust a size that does
//! not fit 64 bits.

const std = @import("std");

pub const Kind = enum { ext4, xfs, btrfs, squashfs };

/// `size` in bytes.
pub const FileSystem = struct { kind: Kind, size: u64 };

/// The parts of a disk or partition that contain super blocks.
pub const front_size = 4096;
pub const btrfs_offset = 64 << 10;
pub const btrfs_size = 4096;

pub const Parts = struct {
    front: *const [front_size]u8,
    /// From `btrfs_offset` on; null if the disk ends before.
    btrfs: ?*const [btrfs_size]u8 = null,
};

/// Returns null if none of these is there.
pub fn identify(parts: Parts) ?FileSystem {
    if (parts.btrfs) |super| if (identifyBtrfs(super)) |found| return found;
    const front = parts.front;
    if (std.mem.startsWith(u8, front, "XFSB")) return sized(
        .xfs,
        std.mem.readInt(u64, front[8..16], .big),
        std.mem.readInt(u32, front[4..8], .big),
    );
    if (std.mem.startsWith(u8, front, "hsqs"))
        return sized(.squashfs, std.mem.readInt(u64, front[40..48], .little), 1);
    return identifyExt4(front[1024..2048]);
}

/// Multiples of 1024 bytes up to 64 KiB.
const ext4_block_shift_max = 6;
const ext4_incompat_64bit = 0x80;

fn identifyExt4(super: *const [1024]u8) ?FileSystem {
    if (std.mem.readInt(u16, super[56..58], .little) != 0xef53) return null;
    const shift = std.mem.readInt(u32, super[24..28], .little);
    if (shift > ext4_block_shift_max) return null;
    var blocks: u64 = std.mem.readInt(u32, super[4..8], .little);
    const features = std.mem.readInt(u32, super[96..100], .little);
    if (features & ext4_incompat_64bit != 0)
        blocks |= @as(u64, std.mem.readInt(u32, super[336..340], .little)) << 32;
    return sized(.ext4, blocks, @as(u64, 1024) << @intCast(shift));
}

/// The size on this device: a file system may span several.
fn identifyBtrfs(super: *const [btrfs_size]u8) ?FileSystem {
    if (!std.mem.eql(u8, super[64..72], "_BHRfS_M")) return null;
    return sized(.btrfs, std.mem.readInt(u64, super[209..217], .little), 1);
}

fn sized(kind: Kind, count: u64, unit: u64) ?FileSystem {
    const size = std.math.mul(u64, count, unit) catch return null;
    return if (size == 0) null else .{ .kind = kind, .size = size };
}

const testing = std.testing;

/// An ext4 file system of `blocks` blocks of 4096 bytes.
pub fn testExt4(blocks: u64) [front_size]u8 {
    var front: [front_size]u8 = @splat(0);
    const super = front[1024..2048];
    std.mem.writeInt(u32, super[4..8], @truncate(blocks), .little);
    std.mem.writeInt(u32, super[24..28], 2, .little);
    std.mem.writeInt(u16, super[56..58], 0xef53, .little);
    std.mem.writeInt(u32, super[96..100], ext4_incompat_64bit, .little);
    std.mem.writeInt(u32, super[336..340], @truncate(blocks >> 32), .little);
    return front;
}

test "the size of an ext4 file system is read, even beyond 16 TiB" {
    const small = testExt4(6144);
    try testing.expectEqual(
        FileSystem{ .kind = .ext4, .size = 6144 * 4096 },
        identify(.{ .front = &small }).?,
    );
    const large = testExt4(1 << 33);
    try testing.expectEqual(1 << 45, identify(.{ .front = &large }).?.size);
    var old = large;
    old[1024 + 96] = 0;
    // Without the feature the upper half means something else, and nothing is left.
    try testing.expectEqual(null, identify(.{ .front = &old }));
}

test "the sizes of XFS, Btrfs and Squashfs are read" {
    var front: [front_size]u8 = @splat(0);
    @memcpy(front[0..4], "XFSB");
    std.mem.writeInt(u32, front[4..8], 4096, .big);
    std.mem.writeInt(u64, front[8..16], 76800, .big);
    try testing.expectEqual(
        FileSystem{ .kind = .xfs, .size = 76800 * 4096 },
        identify(.{ .front = &front }).?,
    );
    @memcpy(front[0..4], "hsqs");
    std.mem.writeInt(u64, front[40..48], 12345, .little);
    try testing.expectEqual(
        FileSystem{ .kind = .squashfs, .size = 12345 },
        identify(.{ .front = &front }).?,
    );
    var super: [btrfs_size]u8 = @splat(0);
    @memcpy(super[64..72], "_BHRfS_M");
    std.mem.writeInt(u64, super[209..217], 1 << 30, .little);
    try testing.expectEqual(
        FileSystem{ .kind = .btrfs, .size = 1 << 30 },
        identify(.{ .front = &front, .btrfs = &super }).?,
    );
}

test "absurd sizes are no file system" {
    var front: [front_size]u8 = @splat(0xff);
    @memcpy(front[0..4], "XFSB");
    try testing.expectEqual(null, identify(.{ .front = &front }));
    const empty: [front_size]u8 = @splat(0);
    try testing.expectEqual(null, identify(.{ .front = &empty }));
}
