//! Finds out whether the log of XFS was emptied when the file system was unmounted: whether the
//! record before its head is an unmount record (fs/xfs/xfs_log_recover.c, xfs_log_format.h).
//! Otherwise changes may be missing from the rest of the disk. Nothing is replayed.

const std = @import("std");
const xfs_module = @import("xfs.zig");
const Xfs = xfs_module.Xfs;
const Error = xfs_module.Error;
const int = xfs_module.int;

const unit = 512;
const record_magic = 0xfeed_babe;
const flag_unmount = 0x20;
/// A header has one unit for each of these bytes of its record.
const header_covers = 32 << 10;
/// The unmount record is padded to at most 256 KiB, and has a header of at most eight units.
const units_back_max = 600;

pub const Place = struct { first: u64, blocks: u32 };

const Log = struct {
    xfs: *const Xfs,
    /// Byte of the file system.
    at: u64,
    /// Units; the log is a ring of them.
    count: u64,

    fn read(log: *const Log, index: u64) Error![unit]u8 {
        return log.xfs.readArray(unit, log.at + index % log.count * unit);
    }

    /// Each unit begins with the number of the round in which it was written, or is a header, which
    /// has it in another place.
    fn cycleOf(log: *const Log, index: u64) Error!u32 {
        const bytes = try log.read(index);
        const first = int(u32, &bytes, 0);
        return if (first == record_magic) int(u32, &bytes, 4) else first;
    }

    /// Returns the unit behind the newest one. Rounds only change there.
    fn head(log: *const Log, oldest: u32) Error!u64 {
        const last = try log.cycleOf(log.count - 1);
        if (oldest == last) return log.count;
        var low: u64 = 0;
        var high = log.count - 1;
        while (high - low > 1) {
            const middle = low + (high - low) / 2;
            if (try log.cycleOf(middle) == last) high = middle else low = middle;
        }
        return high;
    }
};

pub fn isClean(xfs: *const Xfs, place: Place) Error!bool {
    if (place.blocks == 0) return error.Corrupt;
    const log: Log = .{
        .xfs = xfs,
        .at = try xfs.byteOf(place.first, place.blocks),
        .count = @as(u64, place.blocks) << xfs.block_log - 9,
    };
    const oldest = try log.cycleOf(0);
    // Never written.
    if (oldest == 0) return true;
    const head = try log.head(oldest);
    for (1..@intCast(@min(units_back_max, log.count) + 1)) |back| {
        const index = head + log.count - back;
        const header = try log.read(index);
        if (int(u32, &header, 0) != record_magic) continue;
        const size = int(u32, &header, 12);
        const record_size = int(u32, &header, 320);
        const is_version2 = int(u32, &header, 8) & 2 != 0;
        const header_units: u64 = if (is_version2 and record_size > header_covers)
            std.math.divCeil(u64, record_size, header_covers) catch unreachable
        else
            1;
        const behind = index + header_units + (@as(u64, size) + unit - 1) / unit;
        if (behind % log.count != head % log.count) return false;
        if (int(u32, &header, 40) != 1) return false;
        const operation = try log.read(index + header_units);
        return operation[9] & flag_unmount != 0;
    }
    return false;
}
