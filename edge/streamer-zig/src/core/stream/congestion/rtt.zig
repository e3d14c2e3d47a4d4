//! Round-trip time and retransmission timeout of a stream (RFC 6298, with the limits of
//! packages/proto/STREAM.md): SRTT, RTTVAR and RTO. All times are microseconds.

const std = @import("std");
const assert = std.debug.assert;
const RttEstimator = @This();

const rto_us_min = 2 * std.time.us_per_ms;
pub const rto_us_max = std.time.us_per_s;
/// From 2 ms to 64 ms; above that, a read that is lost again waits longer anyway.
const doublings_max = 5;
/// Stalls of busy machines; a higher floor would make real losses expensive.
const floor_us_max = 100 * std.time.us_per_ms;

srtt_us: u64 = 0,
rttvar_us: u64 = 0,
rto_us: u64 = rto_us_max,
/// Lower bound of the RTO; above `rto_us_min` after a timeout that was a stall and not a loss.
floor_us: u64 = rto_us_min,
sampled: bool = false,
/// How often the RTO was doubled since the last sample.
doublings: u5 = 0,

/// Takes the round-trip time of a request that was sent once (Karn's algorithm is the caller's
/// duty).
pub fn sample(rtt: *RttEstimator, sample_us: u64) void {
    const clamped_us = @min(sample_us, 60 * std.time.us_per_s);
    if (!rtt.sampled) {
        rtt.sampled = true;
        rtt.srtt_us = clamped_us;
        rtt.rttvar_us = clamped_us / 2;
    } else {
        const error_us = @max(clamped_us, rtt.srtt_us) - @min(clamped_us, rtt.srtt_us);
        rtt.rttvar_us = (3 * rtt.rttvar_us + error_us) / 4;
        rtt.srtt_us = (7 * rtt.srtt_us + clamped_us) / 8;
    }
    rtt.doublings = 0;
    // Decays by half in 177 samples, about a quarter of a boot.
    rtt.floor_us = @max(rto_us_min, rtt.floor_us - rtt.floor_us / 256);
    rtt.update();
}

/// A spurious timeout: the answer to the first transmission took `actual_us` and was not lost (the
/// result of RFC 3522, found by other means). The next such stall is waited out.
pub fn onSpuriousTimeout(rtt: *RttEstimator, actual_us: u64) void {
    const wanted = @min(actual_us + actual_us / 2, floor_us_max);
    rtt.floor_us = @max(rtt.floor_us, wanted);
    rtt.update();
}

/// A timeout. Until a request that was sent once is answered, nobody knows whether the answer was
/// lost or is late: meanwhile every request waits twice as long (RFC 6298, section 5.5). Otherwise
/// devices that queue for longer than their RTO would retransmit everything repeatedly and so keep
/// the queue long.
pub fn onTimeout(rtt: *RttEstimator) void {
    rtt.doublings = @min(rtt.doublings + 1, doublings_max);
    rtt.update();
}

fn update(rtt: *RttEstimator) void {
    // Nothing is known yet: a timeout tells nothing about the round trip.
    if (!rtt.sampled) return;
    const rto_us = std.math.clamp(rtt.srtt_us + 4 * rtt.rttvar_us, rtt.floor_us, rto_us_max);
    rtt.rto_us = @min(rto_us << rtt.doublings, rto_us_max);
    assert(rtt.doublings <= doublings_max);
    assert(rtt.floor_us >= rto_us_min);
    assert(rtt.floor_us <= floor_us_max);
    assert(rtt.rto_us >= rtt.floor_us);
}

test "the RTO follows the samples and stays within its limits" {
    var rtt: RttEstimator = .{};
    try std.testing.expectEqual(rto_us_max, rtt.rto_us);
    rtt.sample(200);
    try std.testing.expectEqual(rto_us_min, rtt.rto_us);
    for (0..40) |_| rtt.sample(20_000);
    try std.testing.expect(rtt.rto_us >= 20_000);
    try std.testing.expect(rtt.rto_us < 30_000);
    rtt.sample(std.math.maxInt(u64));
    try std.testing.expectEqual(rto_us_max, rtt.rto_us);
}

test "after a timeout every request waits twice as long, until a sample gives the real RTT" {
    var rtt: RttEstimator = .{};
    rtt.sample(200);
    rtt.onTimeout();
    rtt.onTimeout();
    try std.testing.expectEqual(4 * rto_us_min, rtt.rto_us);
    for (0..10) |_| rtt.onTimeout();
    try std.testing.expectEqual(rto_us_min << doublings_max, rtt.rto_us);
    rtt.sample(200);
    try std.testing.expectEqual(rto_us_min, rtt.rto_us);
    for (0..40) |_| rtt.sample(600_000);
    rtt.onTimeout();
    try std.testing.expectEqual(rto_us_max, rtt.rto_us);
}

test "a stall mistaken for a loss is waited out next time, and forgotten later" {
    var rtt: RttEstimator = .{};
    rtt.sample(200);
    rtt.onSpuriousTimeout(12_000);
    try std.testing.expectEqual(18_000, rtt.rto_us);
    rtt.onSpuriousTimeout(9_000_000);
    try std.testing.expectEqual(floor_us_max, rtt.rto_us);
    for (0..2000) |_| rtt.sample(200);
    try std.testing.expectEqual(rto_us_min, rtt.rto_us);
}

test "a timeout before the first sample leaves the RTO as long as it can be" {
    var rtt: RttEstimator = .{};
    rtt.onTimeout();
    try std.testing.expectEqual(rto_us_max, rtt.rto_us);
    rtt.onSpuriousTimeout(10_000);
    try std.testing.expectEqual(rto_us_max, rtt.rto_us);
    rtt.sample(200);
    try std.testing.expectEqual(15_000 - 15_000 / 256, rtt.rto_us);
}

test "SRTT, RTTVAR and RTO are those of RFC 6298, sample by sample" {
    var rtt: RttEstimator = .{};
    const rows = [_][4]u64{
        .{ 20_000, 20_000, 10_000, 60_000 },
        .{ 10_000, 18_750, 10_000, 58_750 },
        .{ 30_000, 20_156, 10_312, 61_404 },
        .{ 20_156, 20_156, 7_734, 51_092 },
        .{ 200_000, 42_636, 50_761, 245_680 },
        .{ std.math.maxInt(u64), 7_537_306, 15_027_411, rto_us_max },
    };
    for (rows) |row| {
        rtt.sample(row[0]);
        try std.testing.expectEqual(
            row[1..4].*,
            [_]u64{ rtt.srtt_us, rtt.rttvar_us, rtt.rto_us },
        );
    }
}

test "a stall raises the floor to half more than it took, and a shorter one does not lower it" {
    var rtt: RttEstimator = .{};
    rtt.sample(200);
    const rows = [_][2]u64{
        .{ 1_000, 2_000 },
        .{ 1_334, 2_001 },
        .{ 12_000, 18_000 },
        .{ 2_000, 18_000 },
        .{ 66_666, 99_999 },
        .{ 66_668, 100_000 },
    };
    for (rows) |row| {
        rtt.onSpuriousTimeout(row[0]);
        try std.testing.expectEqual(row[1], rtt.rto_us);
    }
    rtt.sample(200);
    try std.testing.expectEqual(100_000 - 390, rtt.rto_us);
}
