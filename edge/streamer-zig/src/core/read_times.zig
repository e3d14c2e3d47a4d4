//! Where a device's time goes, seen from its disk: how long the system waited for each read, and how long it took from an answer to
//! its next demand. A boot that is slow by the first is slow because of the network or the edge, one by the second because of its own
//! machine. Histograms in powers of two: always on, of fixed size, without a clock.

const std = @import("std");
const assert = std.debug.assert;

const ReadTimes = @This();

/// Durations by their power of two.
pub const Histogram = struct {
    /// Bucket 0: less than 1 µs; bucket i: from 2^(i-1) to less than 2^i µs; the last one: all longer ones too.
    counts: [buckets]u32 = @splat(0),
    /// Of all durations, in µs.
    sum_us: u64 = 0,

    /// The last begins at 4.2 s.
    pub const buckets = 24;

    pub fn note(histogram: *Histogram, duration_us: u64) void {
        const bucket = @min(64 - @clz(duration_us), buckets - 1);
        histogram.counts[bucket] +|= 1;
        histogram.sum_us +|= duration_us;
    }

    pub fn count(histogram: *const Histogram) u64 {
        var total: u64 = 0;
        for (histogram.counts) |each| total += each;
        return total;
    }

    /// In µs: `per_mille` of all durations are shorter; a power of two, 0 where nothing was noted.
    pub fn quantileUs(histogram: *const Histogram, per_mille: u16) u64 {
        assert(per_mille <= 1000);
        const total = histogram.count();
        if (total == 0) return 0;
        var seen: u64 = 0;
        for (histogram.counts, 0..) |each, bucket| {
            seen += each;
            if (seen * 1000 >= total * per_mille and seen > 0) return @as(u64, 1) << @intCast(bucket);
        }
        unreachable; // All have been seen.
    }
};

/// From the system's demand to its answer.
wait: Histogram = .{},
/// From an answer to the next demand, while the system waited for no read.
turnaround: Histogram = .{},
waiting: u32 = 0,
/// null: nothing was answered yet.
answered_at_us: ?u64 = null,

/// The system wants something; the caller keeps `now_us` until the answer.
pub fn noteDemand(times: *ReadTimes, now_us: u64) void {
    if (times.waiting == 0) if (times.answered_at_us) |before_us| times.turnaround.note(now_us -| before_us);
    times.waiting += 1;
}

/// It has it, `demanded_at_us` being the time of its demand.
pub fn noteAnswer(times: *ReadTimes, now_us: u64, demanded_at_us: u64) void {
    assert(times.waiting > 0);
    times.waiting -= 1;
    times.answered_at_us = now_us;
    times.wait.note(now_us -| demanded_at_us);
}

const testing = std.testing;

test "a duration is in the bucket of its power of two, and no duration is too long" {
    var histogram: Histogram = .{};
    const durations = [_]u64{ 0, 1, 2, 3, 4, 1023, 1024, std.math.maxInt(u64) };
    const expected = [_]usize{ 0, 1, 2, 2, 3, 10, 11, Histogram.buckets - 1 };
    for (durations, expected) |duration, bucket| {
        const before = histogram.counts[bucket];
        histogram.note(duration);
        try testing.expectEqual(before + 1, histogram.counts[bucket]);
    }
    try testing.expectEqual(durations.len, histogram.count());
    try testing.expectEqual(std.math.maxInt(u64), histogram.sum_us);
}

test "a quantile is the bucket's end, and of nothing it is 0" {
    var histogram: Histogram = .{};
    try testing.expectEqual(0, histogram.quantileUs(500));
    for (0..99) |_| histogram.note(300);
    histogram.note(100_000);
    try testing.expectEqual(512, histogram.quantileUs(500));
    try testing.expectEqual(512, histogram.quantileUs(990));
    try testing.expectEqual(131_072, histogram.quantileUs(1000));
}

test "the system's own time is what passes while it waits for nothing" {
    var times: ReadTimes = .{};
    times.noteDemand(1000);
    times.noteDemand(1100);
    times.noteAnswer(1500, 1000);
    // Another read is waited for: no turnaround.
    times.noteDemand(1600);
    times.noteAnswer(2000, 1100);
    times.noteAnswer(2100, 1600);
    times.noteDemand(10_100);
    try testing.expectEqual(3, times.wait.count());
    try testing.expectEqual(500 + 900 + 500, times.wait.sum_us);
    try testing.expectEqual(1, times.turnaround.count());
    try testing.expectEqual(8000, times.turnaround.sum_us);
}
