//! A histogram of durations by powers of two: of fixed size and without a clock, so that it can
//! always be on.

const std = @import("std");
const assert = std.debug.assert;

pub const DurationHistogram = @This();

/// Bucket 0: less than 1 µs; bucket i: from 2^(i-1) to less than 2^i µs; the last one: all
/// longer ones too.
counts: [buckets]u32 = @splat(0),
/// The longest, in µs, saturating.
max_us: u32 = 0,
/// Sum of all durations, in µs.
sum_us: u64 = 0,

/// The last bucket starts at 4.2 s.
pub const buckets = 24;

pub fn note(histogram: *DurationHistogram, duration_us: u64) void {
    const bucket = @min(64 - @clz(duration_us), buckets - 1);
    histogram.counts[bucket] +|= 1;
    histogram.sum_us +|= duration_us;
    histogram.max_us = @max(histogram.max_us, std.math.lossyCast(u32, duration_us));
}

/// Replaces a duration that was noted before by a longer one. Without such a one nothing changes
/// but the longest.
pub fn prolong(histogram: *DurationHistogram, before_us: u64, duration_us: u64) void {
    assert(duration_us >= before_us);
    const bucket = @min(64 - @clz(before_us), buckets - 1);
    histogram.counts[bucket] -|= 1;
    histogram.sum_us -|= before_us;
    histogram.note(duration_us);
}

/// Returns the sum of both histograms.
pub fn plus(
    histogram: *const DurationHistogram,
    other: *const DurationHistogram,
) DurationHistogram {
    var sum = histogram.*;
    for (&sum.counts, other.counts) |*each, more| each.* +|= more;
    sum.max_us = @max(sum.max_us, other.max_us);
    sum.sum_us +|= other.sum_us;
    return sum;
}

pub fn count(histogram: *const DurationHistogram) u64 {
    var total: u64 = 0;
    for (histogram.counts) |each| total += each;
    return total;
}

/// Returns the buckets from the first used one to the last; null: there are no samples.
pub fn used(histogram: *const DurationHistogram) ?struct { first: u8, counts: []const u32 } {
    const first = for (histogram.counts, 0..) |each, bucket| {
        if (each > 0) break bucket;
    } else return null;
    var end: usize = buckets;
    while (histogram.counts[end - 1] == 0) end -= 1;
    return .{ .first = @intCast(first), .counts = histogram.counts[first..end] };
}

/// Returns a power of two in µs below which `per_mille` of all durations lie; 0 without
/// samples.
pub fn quantileUs(histogram: *const DurationHistogram, per_mille: u16) u64 {
    assert(per_mille <= 1000);
    const total = histogram.count();
    if (total == 0) return 0;
    var seen: u64 = 0;
    for (histogram.counts, 0..) |each, bucket| {
        seen += each;
        if (seen * 1000 >= total * per_mille and seen > 0) return @as(u64, 1) << @intCast(bucket);
    }
    unreachable; // All have been counted.
}

const testing = std.testing;

test "a duration is in the bucket of its power of two, and no duration is too long" {
    var histogram: DurationHistogram = .{};
    try testing.expectEqual(null, histogram.used());
    const durations = [_]u64{ 1, 2, 3, 4, 1023, 1024, std.math.maxInt(u64) };
    const expected = [_]usize{ 1, 2, 2, 3, 10, 11, DurationHistogram.buckets - 1 };
    for (durations, expected) |duration, bucket| {
        const before = histogram.counts[bucket];
        histogram.note(duration);
        try testing.expectEqual(before + 1, histogram.counts[bucket]);
    }
    try testing.expectEqual(1, histogram.used().?.first);
    try testing.expectEqual(DurationHistogram.buckets - 1, histogram.used().?.counts.len);
    histogram.note(0);
    try testing.expectEqual(0, histogram.used().?.first);
    try testing.expectEqual(durations.len + 1, histogram.count());
    try testing.expectEqual(std.math.maxInt(u64), histogram.sum_us);
    try testing.expectEqual(std.math.maxInt(u32), histogram.max_us);
}

test "a prolonged duration is counted once" {
    var histogram: DurationHistogram = .{};
    histogram.note(3);
    histogram.note(3);
    histogram.prolong(3, 900);
    var expected: DurationHistogram = .{};
    expected.note(3);
    expected.note(900);
    try testing.expectEqual(expected, histogram);
}

test "a sum contains the samples of both" {
    var one: DurationHistogram = .{};
    var other: DurationHistogram = .{};
    var both: DurationHistogram = .{};
    for ([_]u64{ 0, 7, 7, 900 }) |duration_us|
        for ([_]*DurationHistogram{ &one, &both }) |histogram| histogram.note(duration_us);
    for ([_]u64{ 6, 1 << 40, std.math.maxInt(u64) }) |duration_us|
        for ([_]*DurationHistogram{ &other, &both }) |histogram| histogram.note(duration_us);
    try testing.expectEqual(both, one.plus(&other));
    try testing.expectEqual(both, other.plus(&one));
    try testing.expectEqual(one, one.plus(&.{}));
}

test "a quantile is the bucket's end, and 0 without samples" {
    var histogram: DurationHistogram = .{};
    try testing.expectEqual(0, histogram.quantileUs(500));
    for (0..99) |_| histogram.note(300);
    histogram.note(100_000);
    try testing.expectEqual(512, histogram.quantileUs(500));
    try testing.expectEqual(512, histogram.quantileUs(990));
    try testing.expectEqual(131_072, histogram.quantileUs(1000));
    try testing.expectEqual(100_000, histogram.max_us);
}
