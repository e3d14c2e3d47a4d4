//! What a boot sent over time, for the chart below its phases (`series` in
//! packages/proto/UPLINK.md). Fixed size: when the last bucket is full, each two become one, and a
//! bucket lasts twice as long. A series of any boot so has between half and all of its buckets.

const std = @import("std");
const assert = std.debug.assert;

pub const Series = @This();

pub const buckets_max = 64;
const width_us_first = 100 * std.time.us_per_ms;

pub const Bucket = struct {
    /// Sent to the device; both counts stop at their limits.
    bytes: u32 = 0,
    retransmissions: u16 = 0,
    /// The most READs at a time that had arrived and were not answered yet.
    reads: u16 = 0,

    fn merged(a: Bucket, b: Bucket) Bucket {
        return .{
            .bytes = a.bytes +| b.bytes,
            .retransmissions = a.retransmissions +| b.retransmissions,
            .reads = @max(a.reads, b.reads),
        };
    }
};

/// Bucket i begins i widths after the boot's start.
buckets: [buckets_max]Bucket = @splat(.{}),
used: u8 = 0,
width_us: u64 = width_us_first,
reads_in_flight: u16 = 0,

/// `at_us` is since the boot's start, here and below; an event may come late.
pub fn onSent(series: *Series, at_us: u64, bytes: u64, retransmissions: u64) void {
    if (bytes == 0 and retransmissions == 0) return;
    const bucket = series.bucketAt(at_us);
    bucket.bytes +|= std.math.cast(u32, bytes) orelse std.math.maxInt(u32);
    bucket.retransmissions +|= std.math.cast(u16, retransmissions) orelse
        std.math.maxInt(u16);
    assert(series.used > 0);
}

/// A READ arrived for the first time.
pub fn onRead(series: *Series, at_us: u64) void {
    const bucket = series.bucketAt(at_us);
    series.reads_in_flight +|= 1;
    bucket.reads = @max(bucket.reads, series.reads_in_flight);
    assert(bucket.reads > 0);
}

/// It was answered, or will not be.
pub fn onReadEnd(series: *Series, at_us: u64) void {
    _ = series.bucketAt(at_us);
    series.reads_in_flight -|= 1;
}

/// Buckets that begin while READs are in flight have them from their start on.
fn bucketAt(series: *Series, at_us: u64) *Bucket {
    while (at_us / series.width_us >= buckets_max) series.halve();
    const index: u8 = @intCast(at_us / series.width_us);
    while (series.used <= index) : (series.used += 1)
        series.buckets[series.used].reads = series.reads_in_flight;
    assert(series.used <= buckets_max);
    return &series.buckets[index];
}

fn halve(series: *Series) void {
    const half = buckets_max / 2;
    for (0..half) |index| series.buckets[index] =
        .merged(series.buckets[2 * index], series.buckets[2 * index + 1]);
    @memset(series.buckets[half..], .{});
    series.used = (series.used + 1) / 2;
    series.width_us *= 2;
    assert(series.used <= half);
}

pub fn slice(series: *const Series) []const Bucket {
    return series.buckets[0..series.used];
}

const Kept = struct { u32, u16, u16 };

/// Short: the journal writes it again with each change of the boot.
pub fn jsonStringify(series: Series, json: anytype) !void {
    try json.beginArray();
    try json.write(series.width_us);
    for (series.slice()) |bucket|
        try json.write(Kept{ bucket.bytes, bucket.retransmissions, bucket.reads });
    try json.endArray();
}

/// What was in flight when it was written is not any more.
pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !Series {
    if (.array_begin != try source.next()) return error.UnexpectedToken;
    var series: Series = .{ .width_us = try std.json.innerParse(u64, allocator, source, options) };
    const doublings = series.width_us / width_us_first;
    if (series.width_us % width_us_first != 0 or doublings == 0 or
        !std.math.isPowerOfTwo(doublings)) return error.InvalidNumber;
    while (series.used < buckets_max) : (series.used += 1) {
        if (try source.peekNextTokenType() == .array_end) break;
        const kept = try std.json.innerParse(Kept, allocator, source, options);
        series.buckets[series.used] =
            .{ .bytes = kept[0], .retransmissions = kept[1], .reads = kept[2] };
    }
    if (.array_end != try source.next()) return error.UnexpectedToken;
    return series;
}

const testing = std.testing;
const ms = std.time.us_per_ms;

test "a bucket knows what was sent in its time, and the most reads at a time" {
    var series: Series = .{};
    series.onSent(0, 100, 0);
    series.onSent(99 * ms, 50, 1);
    series.onRead(150 * ms);
    series.onRead(160 * ms);
    series.onReadEnd(170 * ms);
    // Still in flight: it is in each bucket until its answer.
    series.onReadEnd(350 * ms);
    series.onReadEnd(360 * ms);
    series.onSent(450 * ms, 7, 0);
    // It arrives late.
    series.onSent(120 * ms, 3, 0);
    try testing.expectEqualSlices(Bucket, &.{
        .{ .bytes = 150, .retransmissions = 1 },
        .{ .bytes = 3, .reads = 2 },
        .{ .reads = 1 },
        .{ .reads = 1 },
        .{ .bytes = 7 },
    }, series.slice());
    series.onSent(500 * ms, 0, 0);
    try testing.expectEqual(5, series.used);
}

test "whatever happens when, no byte is lost, and wide buckets are the sums of narrow ones" {
    var prng: std.Random.DefaultPrng = .init(103);
    const random = prng.random();
    for (0..200) |_| {
        var series: Series = .{};
        var bytes: u64 = 0;
        var retransmissions: u64 = 0;
        var at_us: u64 = 0;
        var sent_at: [300]u64 = undefined;
        const events = random.intRangeAtMost(u32, 1, sent_at.len);
        const pause_us = std.math.shl(u64, 1, random.intRangeAtMost(u32, 4, 28));
        for (sent_at[0..events]) |*kept| {
            at_us += random.uintLessThan(u64, pause_us);
            kept.* = at_us;
            const size = random.uintLessThan(u32, 100_000);
            series.onSent(at_us, size + 1, size % 2);
            bytes += size + 1;
            retransmissions += size % 2;
        }
        var sum: u64 = 0;
        var sum_of_retransmissions: u64 = 0;
        for (series.slice()) |bucket| {
            sum += bucket.bytes;
            sum_of_retransmissions += bucket.retransmissions;
        }
        try testing.expectEqual(bytes, sum);
        try testing.expectEqual(retransmissions, sum_of_retransmissions);
        // Half of the buckets are used, or the width is the first one.
        try testing.expectEqual(at_us / series.width_us + 1, series.used);
        try testing.expect(series.width_us == width_us_first or series.used > buckets_max / 2);
        for (series.slice(), 0..) |bucket, index| {
            const is_sent = for (sent_at[0..events]) |sent_us| {
                if (sent_us / series.width_us == index) break true;
            } else false;
            try testing.expectEqual(is_sent, bucket.bytes > 0);
        }
    }
}

test "counts stop at their limits, and the longest boot has its buckets" {
    var series: Series = .{};
    series.onSent(0, std.math.maxInt(u64), std.math.maxInt(u64));
    for (0..70_000) |_| series.onRead(1);
    series.onSent(std.math.maxInt(u64), 1, 0);
    try testing.expectEqual(std.math.maxInt(u32), series.buckets[0].bytes);
    try testing.expectEqual(std.math.maxInt(u16), series.buckets[0].retransmissions);
    try testing.expectEqual(std.math.maxInt(u16), series.buckets[0].reads);
    try testing.expect(series.used <= buckets_max);
}

test "a journal gives back every bucket, and refuses what none wrote" {
    var series: Series = .{};
    for (0..90) |index| series.onSent(index * 100 * ms, index + 1, index % 3);
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = try std.json.Stringify.valueAlloc(arena.allocator(), series, .{});
    const parsed = try std.json.parseFromSliceLeaky(Series, arena.allocator(), text, .{});
    try testing.expectEqualDeep(series, parsed);
    for ([_][]const u8{ "[0]", "[300000]", "[100001]", "[100000,[1,2]]", "{}" }) |damaged| {
        const result = std.json.parseFromSliceLeaky(Series, arena.allocator(), damaged, .{});
        try testing.expect(std.meta.isError(result));
    }
}
