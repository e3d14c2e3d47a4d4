//! Measures how full the write cache is: the tmpfs in the device's RAM that takes what the system
//! writes above its read-only disk. A check never waits for the disk, since everything is in
//! memory.

const std = @import("std");
const linux = std.os.linux;
const host = @import("host");
const sys = host.sys;

/// Percent at which the console and the edge are told.
pub const marks = [_]u8{ 80, 95, 100 };
/// The fill must fall this far below a mark before the mark counts again.
const hysteresis_percent = 10;

pub const Level = struct {
    used_bytes: u64,
    size_bytes: u64,

    /// Returns 100 only when no space is left.
    pub fn percent(level: Level) u8 {
        if (level.size_bytes == 0) return 0;
        if (level.used_bytes >= level.size_bytes) return 100;
        return @intCast(@min(@as(u128, level.used_bytes) * 100 / level.size_bytes, 99));
    }
};

/// Marks that were reached and not left since.
pub const Warnings = struct {
    reached: [marks.len]bool = @splat(false),

    /// Returns the highest mark newly reached, if any.
    pub fn next(warnings: *Warnings, level: Level) ?u8 {
        const percent = level.percent();
        var newest: ?u8 = null;
        for (marks, &warnings.reached) |mark, *reached| {
            if (percent >= mark and !reached.*) newest = mark;
            if (percent >= mark) reached.* = true;
            if (percent + hysteresis_percent <= mark) reached.* = false;
        }
        return newest;
    }
};

/// The watched file system, by a descriptor that stays valid when its mount point is gone.
pub const WriteCache = struct {
    fd: i32,

    /// Null if `path` does not exist.
    pub fn open(path: [*:0]const u8) ?WriteCache {
        const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
        return .{ .fd = @intCast(sys.check(linux.open(path, flags, 0)) catch return null) };
    }

    pub fn close(cache: WriteCache) void {
        sys.close(cache.fd);
    }

    pub fn level(cache: WriteCache) ?Level {
        const space = host.file_system.spaceOf(cache.fd) catch return null;
        return .{
            .used_bytes = space.total_bytes -| space.free_bytes,
            .size_bytes = space.total_bytes,
        };
    }
};

const testing = std.testing;

fn levelOf(percent: u64) Level {
    return .{ .used_bytes = percent << 20, .size_bytes = 100 << 20 };
}

test "each mark is reported once, and again only after the fill has fallen well below it" {
    var warnings: Warnings = .{};
    const course = [_]struct { u64, ?u8 }{
        .{ 79, null },
        .{ 80, 80 },
        .{ 81, null },
        .{ 79, null },
        .{ 80, null },
        .{ 95, 95 },
        .{ 100, 100 },
        .{ 96, null },
        .{ 100, null },
        .{ 90, null },
        .{ 100, 100 },
        .{ 85, null },
        .{ 96, 95 },
        .{ 70, null },
        .{ 80, 80 },
        .{ 0, null },
        .{ 100, 100 },
        .{ 99, null },
    };
    for (course) |step| try testing.expectEqual(step[1], warnings.next(levelOf(step[0])));
}

test "only a cache without a free byte is full" {
    const size = 1 << 40;
    try testing.expectEqual(99, (Level{ .used_bytes = size - 1, .size_bytes = size }).percent());
    try testing.expectEqual(100, (Level{ .used_bytes = size, .size_bytes = size }).percent());
    try testing.expectEqual(0, (Level{ .used_bytes = 0, .size_bytes = 0 }).percent());
    const most = std.math.maxInt(u64);
    try testing.expectEqual(99, (Level{ .used_bytes = most - 1, .size_bytes = most }).percent());
}

test "a file system reports how full it is" {
    const cache = WriteCache.open("/dev/shm") orelse return error.SkipZigTest;
    defer cache.close();
    const level = cache.level().?;
    try testing.expect(level.size_bytes > 0);
    try testing.expect(level.used_bytes <= level.size_bytes);
    try testing.expectEqual(null, WriteCache.open("/nowhere"));
}
