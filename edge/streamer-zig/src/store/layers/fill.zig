//! How full a write layer is, how fast it fills, and when to raise an alarm.

const std = @import("std");

/// Percent of the limit at which an alarm is raised.
pub const marks = [_]u8{ 80, 95, 100 };
/// The fill must fall this far below a mark before the mark counts again.
const hysteresis_percent = 10;
const sample_interval_us = 10 * std.time.us_per_s;
/// The fill rate is measured over five minutes of samples.
const samples_max = 30;

pub const LayerFill = @This();

samples: [samples_max]Sample = undefined,
count: u8 = 0,
next: u8 = 0,
reached: [marks.len]bool = @splat(false),

const Sample = struct { at_us: u64, used_bytes: u64 };

/// Records the bytes in use; returns the highest mark newly reached, if any.
pub fn note(fill: *LayerFill, now_us: u64, used_bytes: u64, limit_bytes: u64) ?u8 {
    const last = (fill.next + samples_max - 1) % samples_max;
    if (fill.count == 0 or now_us -| fill.samples[last].at_us >= sample_interval_us) {
        fill.samples[fill.next] = .{ .at_us = now_us, .used_bytes = used_bytes };
        fill.next = (fill.next + 1) % samples_max;
        fill.count = @min(fill.count + 1, samples_max);
    }
    const percent = percentOf(used_bytes, limit_bytes);
    var newest: ?u8 = null;
    for (marks, &fill.reached) |mark, *reached| {
        if (percent >= mark and !reached.*) newest = mark;
        if (percent >= mark) reached.* = true;
        if (percent + hysteresis_percent <= mark) reached.* = false;
    }
    return newest;
}

/// Seconds until the layer is full at the rate of the last minutes; null if it does not fill or
/// the rate is unknown.
pub fn secondsUntilFull(
    fill: *const LayerFill,
    now_us: u64,
    used_bytes: u64,
    limit_bytes: u64,
) ?u64 {
    if (fill.count == 0) return null;
    if (used_bytes >= limit_bytes) return 0;
    const first = &fill.samples[if (fill.count < samples_max) 0 else fill.next];
    const time_us = now_us -| first.at_us;
    const grown = used_bytes -| first.used_bytes;
    if (time_us < sample_interval_us or grown == 0) return null;
    const left: u128 = limit_bytes - used_bytes;
    return @intCast(@min(left * time_us / grown / std.time.us_per_s, std.math.maxInt(u32)));
}

/// Returns 100 only when no space is left.
pub fn percentOf(used_bytes: u64, limit_bytes: u64) u8 {
    if (used_bytes >= limit_bytes) return 100;
    return @intCast(@as(u128, used_bytes) * 100 / limit_bytes);
}

const testing = std.testing;

test "each mark is reported once, and again only after the fill has fallen well below it" {
    var fill: LayerFill = .{};
    const course = [_]struct {
        u64,
        ?u8,
    }{ .{
        79,
        null,
    }, .{ 80, 80 }, .{ 79, null }, .{ 99, 95 }, .{ 100, 100 }, .{ 69, null }, .{ 96, 95 } };
    for (course, 0..) |step, at| try testing.expectEqual(step[1], fill.note(at, step[0], 100));
}

test "the time until the layer is full comes from the last minutes" {
    var fill: LayerFill = .{};
    const second = std.time.us_per_s;
    try testing.expectEqual(null, fill.secondsUntilFull(0, 0, 1000));
    for (0..61) |index| _ = fill.note(index * 10 * second, index, 1000);
    // 1 byte in 10 seconds; 940 are left.
    try testing.expectEqual(9400, fill.secondsUntilFull(600 * second, 60, 1000));
    try testing.expectEqual(0, fill.secondsUntilFull(600 * second, 1000, 1000));
    try testing.expectEqual(null, fill.secondsUntilFull(600 * second, 10, 1000));
}

test "a mark counts again ten percent below it, and not one above that" {
    var fill: LayerFill = .{};
    for ([_]u64{ 80, 71, 80, 70, 80 }, [_]?u8{ 80, null, null, null, 80 }, 0..) |used, mark, at|
        try testing.expectEqual(mark, fill.note(at, used, 100));
}

test "the rate is that of samples ten seconds apart" {
    var fill: LayerFill = .{};
    const second = std.time.us_per_s;
    _ = fill.note(0, 100, 1000);
    _ = fill.note(10 * second - 1, 500, 1000);
    try testing.expectEqual(1, fill.count);
    try testing.expectEqual(null, fill.secondsUntilFull(10 * second - 1, 200, 1000));
    // 100 bytes in 10 seconds, and 800 are left.
    try testing.expectEqual(80, fill.secondsUntilFull(10 * second, 200, 1000));
    _ = fill.note(10 * second, 200, 1000);
    try testing.expectEqual(2, fill.count);
}
