//! A histogram of read times, in classes at most 3 % wide, so that memory does not grow with the
//! number of reads.

const std = @import("std");
const assert = std.debug.assert;

pub const Latencies = @This();

counts: [classes]u64 = @splat(0),
total: u64 = 0,
max_ns: u64 = 0,

/// Classes per doubling.
const parts = 32;
const parts_bits = 5;
const classes = (64 - parts_bits + 1) * parts;

pub fn add(latencies: *Latencies, ns: u64) void {
    latencies.counts[classOf(ns)] += 1;
    latencies.total += 1;
    latencies.max_ns = @max(latencies.max_ns, ns);
}

/// Quantile in µs (per mille), as the bound of its class; 0 if nothing was added.
pub fn quantileUs(latencies: *const Latencies, per_mille: u64) f64 {
    assert(per_mille <= 1000);
    if (latencies.total == 0) return 0;
    const rank = @max(1, (latencies.total * per_mille + 999) / 1000);
    var seen: u64 = 0;
    for (latencies.counts, 0..) |count, class| {
        seen += count;
        if (seen >= rank)
            return @as(f64, @floatFromInt(@min(highestOf(class), latencies.max_ns))) / 1000;
    }
    unreachable;
}

fn classOf(ns: u64) usize {
    if (ns < parts) return @intCast(ns);
    const shift: u6 = @intCast(63 - @clz(ns) - parts_bits);
    return (@as(usize, shift) + 1) * parts + @as(usize, @intCast((ns >> shift) - parts));
}

fn highestOf(class: usize) u64 {
    if (class < parts) return class;
    const shift: u6 = @intCast(class / parts - 1);
    return ((@as(u64, class % parts) + parts) << shift) + ((@as(u64, 1) << shift) - 1);
}

test "quantiles are at most one class off" {
    var latencies: Latencies = .{};
    for (1..1001) |us| latencies.add(us * 1000);
    for ([_]u64{ 1, 500, 990, 1000 }) |per_mille| {
        const exact: f64 = @floatFromInt(per_mille);
        const found = latencies.quantileUs(per_mille);
        try std.testing.expect(found >= exact and found <= exact * 1.04);
    }
    try std.testing.expectEqual(1000, latencies.quantileUs(1000));
    latencies.add(std.math.maxInt(u64));
    try std.testing.expect(latencies.quantileUs(1000) > 1e15);
}
