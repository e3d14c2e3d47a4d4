//! When an edge makes copies of its write layers: every so many hours since the last time that all
//! of it was done, also over restarts; after a failure an hour later, then two and so on, as one
//! layer may fail for ever and all others are read each time. Pure.

const std = @import("std");
const assert = std.debug.assert;

pub const CopySchedule = @This();

pub const hours_max = 24 * 7;
const postponed_ms = 10 * std.time.ms_per_min;

/// 0: never.
hours: u16 = 0,
/// Null: never yet.
done_unix_ms: ?u64 = null,
not_before_ms: u64 = 0,
/// Since all of it was done.
failures: u8 = 0,

/// `now_ms` is of a clock that never goes back.
pub fn isDue(schedule: *const CopySchedule, now_ms: u64, now_unix_ms: u64) bool {
    assert(schedule.hours <= hours_max);
    if (schedule.hours == 0 or now_ms < schedule.not_before_ms) return false;
    const done = schedule.done_unix_ms orelse return true;
    // A clock that was set back by more than this makes nobody wait for it.
    if (now_unix_ms < done) return true;
    return now_unix_ms - done >= @as(u64, schedule.hours) * std.time.ms_per_hour;
}

/// Somebody makes them by hand, or no process could be started.
pub fn postpone(schedule: *CopySchedule, now_ms: u64) void {
    assert(schedule.hours > 0);
    assert(now_ms >= schedule.not_before_ms);
    schedule.not_before_ms = now_ms + postponed_ms;
}

pub fn onEnd(schedule: *CopySchedule, is_done: bool, now_ms: u64, now_unix_ms: u64) void {
    assert(schedule.hours > 0);
    assert(schedule.hours <= hours_max);
    schedule.failures = if (is_done) 0 else schedule.failures +| 1;
    if (is_done)
        schedule.done_unix_ms = now_unix_ms
    else
        schedule.not_before_ms =
            now_ms + @as(u64, @min(schedule.failures, schedule.hours)) * std.time.ms_per_hour;
}

pub const text_size = 20;

pub fn write(schedule: *const CopySchedule, into: *[text_size]u8) []const u8 {
    return std.mem.print(into, "{d}", .{schedule.done_unix_ms orelse 0}) catch unreachable;
}

/// A text that cannot be read has the copies made again, which is harmless.
pub fn restore(schedule: *CopySchedule, text: []const u8) void {
    const done = std.fmt.parseInt(u64, text, 10) catch return;
    schedule.done_unix_ms = if (done == 0) null else done;
}

const testing = std.testing;
const hour = std.time.ms_per_hour;

test "copies are made every so many hours, also over a restart, and later after a failure" {
    var schedule: CopySchedule = .{};
    try testing.expect(!schedule.isDue(0, 1000));
    schedule.hours = 6;
    try testing.expect(schedule.isDue(0, 1000));
    schedule.postpone(0);
    try testing.expect(!schedule.isDue(postponed_ms - 1, 1000));
    try testing.expect(schedule.isDue(postponed_ms, 1000));
    schedule.onEnd(false, postponed_ms, 1000);
    try testing.expect(!schedule.isDue(postponed_ms + hour - 1, 1000));
    try testing.expect(schedule.isDue(postponed_ms + hour, 1000));
    // The longer it fails, the later, up to the hours of the schedule.
    for (2..9) |failures| {
        schedule.onEnd(false, 0, 1000);
        const wait_ms = @as(u64, @min(failures, 6)) * hour;
        try testing.expect(!schedule.isDue(wait_ms - 1, 1000));
        try testing.expect(schedule.isDue(wait_ms, 1000));
    }
    const now = 6 * hour;
    schedule.onEnd(true, now, 5000);
    try testing.expect(!schedule.isDue(now, 5000 + 6 * hour - 1));
    try testing.expect(schedule.isDue(now, 5000 + 6 * hour));
    // The clock was set back.
    try testing.expect(schedule.isDue(now, 4999));
    var text: [text_size]u8 = undefined;
    var restarted: CopySchedule = .{ .hours = 6 };
    restarted.restore(schedule.write(&text));
    try testing.expect(!restarted.isDue(0, 5000 + 6 * hour - 1));
    restarted.restore("nonsense");
    try testing.expect(!restarted.isDue(0, 5000 + 6 * hour - 1));
    restarted.restore("0");
    try testing.expect(restarted.isDue(0, 5000));
}
