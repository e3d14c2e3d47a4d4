//! Detects a disk image that is shorter than its contents, as an interrupted copy leaves it, and
//! describes what is missing. Unrecognized contents pass.

const std = @import("std");
const base = @import("base");
const file_system = @import("wire").file_system;
const assert = std.debug.assert;

/// A partition or file system that ends beyond the disk. Sizes in bytes.
pub const Shortage = struct {
    /// Null if even the start of the partition is missing.
    kind: ?file_system.Kind,
    /// Null for a file system that fills the disk.
    partition: ?u8,
    needs: u64,
    has: u64,

    /// `ext4 on partition 2 needs 25165824 bytes, 1048576 are there`.
    pub fn format(shortage: Shortage, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        if (shortage.kind) |kind| try writer.writeAll(@tagName(kind));
        if (shortage.partition) |number| {
            if (shortage.kind != null) try writer.writeAll(" on ");
            try writer.print("partition {d}", .{number});
        }
        try writer.print(" needs {d} bytes, {d} are there", .{ shortage.needs, shortage.has });
    }

    /// Truncated if it is too long.
    pub fn text(shortage: Shortage) base.UntrustedText {
        var buffer: [128]u8 = undefined;
        return .init(std.mem.print(&buffer, "{f}", .{shortage}) catch unreachable);
    }
};

/// Returns the bytes of a partition that are on the disk.
pub fn available(first: u64, size: u64, disk_size: u64) u64 {
    return @min(size, disk_size -| first);
}

/// Returns null if the whole file system is there. `has`: bytes of the disk or partition.
pub fn judge(found: ?file_system.FileSystem, partition: ?u8, has: u64) ?Shortage {
    const known = found orelse return null;
    if (known.size <= has) return null;
    return .{ .kind = known.kind, .partition = partition, .needs = known.size, .has = has };
}

const testing = std.testing;

test "a file system larger than its disk is reported with both sizes" {
    const short = judge(.{ .kind = .ext4, .size = 25165824 }, 2, 1048576).?;
    try testing.expectEqualStrings(
        "ext4 on partition 2 needs 25165824 bytes, 1048576 are there",
        short.text().slice(),
    );
    const whole = judge(.{ .kind = .xfs, .size = 1025 }, null, 1024).?;
    try testing.expectEqualStrings("xfs needs 1025 bytes, 1024 are there", whole.text().slice());
    const beyond: Shortage = .{ .kind = null, .partition = 1, .needs = 512, .has = 0 };
    try testing.expectEqualStrings(
        "partition 1 needs 512 bytes, 0 are there",
        beyond.text().slice(),
    );
    try testing.expectEqual(null, judge(.{ .kind = .ext4, .size = 1024 }, null, 1024));
    try testing.expectEqual(null, judge(null, null, 1024));
}

test "a partition counts only as far as it lies on the disk" {
    try testing.expectEqual(512, available(512, 512, 4096));
    try testing.expectEqual(512, available(512, 4096, 1024));
    try testing.expectEqual(0, available(2048, 512, 1024));
    const most = std.math.maxInt(u64);
    try testing.expectEqual(0, available(most, most, 1024));
}
