//! The distribution of round-trip times in µs, for people: of fixed size, each quantile within
//! 6.25 % of the sample that it stands for. `rtt.zig` decides about retransmission.

const std = @import("std");
const assert = std.debug.assert;
const RttSketch = @This();

/// Times below this have a bucket each; from there on every doubling has as many.
const per_doubling = 8;
const bits = 3;
const buckets = per_doubling * (32 - bits + 1);

comptime {
    assert(1 << bits == per_doubling);
}

counts: [buckets]u16 = @splat(0),
count: u32 = 0,
min_us: u32 = std.math.maxInt(u32),
max_us: u32 = 0,

/// A bucket that is full takes no more samples.
pub fn note(sketch: *RttSketch, sample_us: u64) void {
    const us = std.math.lossyCast(u32, sample_us);
    const bucket = &sketch.counts[bucketOf(us)];
    if (bucket.* == std.math.maxInt(u16)) return;
    bucket.* += 1;
    sketch.count += 1;
    sketch.min_us = @min(sketch.min_us, us);
    sketch.max_us = @max(sketch.max_us, us);
}

/// Returns the value that `percent` of the samples do not exceed, between the shortest and the
/// longest one; 0 without samples.
pub fn quantile(sketch: *const RttSketch, percent: u32) u32 {
    assert(percent > 0 and percent <= 100);
    if (sketch.count == 0) return 0;
    const rank = std.math.divCeil(u64, @as(u64, sketch.count) * percent, 100) catch unreachable;
    var below: u64 = 0;
    for (sketch.counts, 0..) |count, index| {
        below += count;
        if (below < rank) continue;
        return std.math.clamp(middleOf(@intCast(index)), sketch.min_us, sketch.max_us);
    }
    unreachable; // The counts' sum is `count`.
}

fn bucketOf(us: u32) u16 {
    if (us < per_doubling) return @intCast(us);
    const doubling = std.math.log2_int(u32, us) - bits;
    const part = us >> doubling;
    assert(part >= per_doubling and part < 2 * per_doubling);
    return @intCast(@as(u32, doubling) * per_doubling + part);
}

fn middleOf(bucket: u16) u32 {
    if (bucket < 2 * per_doubling) return bucket;
    const doubling: u5 = @intCast(bucket / per_doubling - 1);
    const first = @as(u32, bucket % per_doubling + per_doubling) << doubling;
    return first + (@as(u32, 1) << doubling) / 2;
}

const testing = std.testing;

test "each time has a bucket whose middle is within 6.25 %" {
    var us: u64 = 0;
    while (us <= std.math.maxInt(u32)) : (us += us / 7 + 1) {
        const value: u32 = @intCast(us);
        const bucket = bucketOf(value);
        try testing.expect(bucket < buckets);
        const middle: u64 = middleOf(bucket);
        const distance = @max(middle, us) - @min(middle, us);
        try testing.expect(distance * 16 <= us);
    }
    try testing.expectEqual(buckets - 1, bucketOf(std.math.maxInt(u32)));
}

test "quantiles lie between the shortest and the longest, and none without samples" {
    var sketch: RttSketch = .{};
    try testing.expectEqual(0, sketch.quantile(50));
    sketch.note(1001);
    try testing.expectEqual(1001, sketch.quantile(50));
    try testing.expectEqual(1001, sketch.quantile(95));
    for (0..98) |_| sketch.note(100);
    sketch.note(std.math.maxInt(u64));
    try testing.expectEqual(100, sketch.min_us);
    try testing.expect(sketch.quantile(95) >= 100 and sketch.quantile(95) <= 106);
    try testing.expect(sketch.quantile(99) > 900 and sketch.quantile(99) < 1070);
    try testing.expect(sketch.quantile(100) > 1 << 31);
}

test "a full bucket takes no more, and the counts stay those of the samples" {
    var sketch: RttSketch = .{};
    for (0..70_000) |_| sketch.note(50);
    try testing.expectEqual(std.math.maxInt(u16), sketch.count);
    sketch.note(5000);
    try testing.expectEqual(std.math.maxInt(u16) + 1, sketch.count);
}
