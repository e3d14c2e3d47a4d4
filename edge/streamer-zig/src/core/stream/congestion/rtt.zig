//! Round-trip time and time-out of a stream (RFC 6298, with the limits of packages/proto/STREAM.md). All in microseconds.

const std = @import("std");
const RttEstimator = @This();

pub const rto_us_min = 2 * std.time.us_per_ms;
pub const rto_us_max = std.time.us_per_s;
/// From 2 ms to 64 ms; beyond, a read that is lost again waits longer by itself.
const doublings_max = 5;
/// Stalls of busy machines; a longer floor would make real losses dear.
pub const floor_us_max = 100 * std.time.us_per_ms;

srtt_us: u64 = 0,
rttvar_us: u64 = 0,
rto_us: u64 = rto_us_max,
/// Never below; above `rto_us_min` where a time-out turned out to have been a stall and no loss.
floor_us: u64 = rto_us_min,
sampled: bool = false,
/// How often the time-out was doubled since the last sample.
doublings: u5 = 0,

/// A sample of a request that was sent once (Karn's rule is the caller's).
pub fn sample(rtt: *RttEstimator, sample_us: u64) void {
    const clamped_us = @min(sample_us, 60 * std.time.us_per_s);
    if (!rtt.sampled) {
        rtt.sampled = true;
        rtt.srtt_us = clamped_us;
        rtt.rttvar_us = clamped_us / 2;
    } else {
        const error_us = if (clamped_us > rtt.srtt_us)
            clamped_us - rtt.srtt_us
        else
            rtt.srtt_us - clamped_us;
        rtt.rttvar_us = (3 * rtt.rttvar_us + error_us) / 4;
        rtt.srtt_us = (7 * rtt.srtt_us + clamped_us) / 8;
    }
    rtt.doublings = 0;
    // Forgotten by half in 177 samples, about a quarter of a boot.
    rtt.floor_us = @max(rto_us_min, rtt.floor_us - rtt.floor_us / 256);
    rtt.update();
}

/// What was asked again after a time-out came twice: its first answer took `actual_us` and was not lost (as RFC 3522
/// finds it, by other means). Such a stall is to be waited for the next time.
pub fn onSpuriousTimeout(rtt: *RttEstimator, actual_us: u64) void {
    const wanted = @min(actual_us + actual_us / 2, floor_us_max);
    rtt.floor_us = @max(rtt.floor_us, wanted);
    rtt.update();
}

/// Time was over. Until something comes that was asked for once, nobody knows whether it was lost or is late: whatever is asked for
/// meanwhile waits twice as long (RFC 6298, section 5.5). Else devices that wait in a queue longer than their time-out would ask for
/// everything again and again, and so keep the queue as long.
pub fn onTimeout(rtt: *RttEstimator) void {
    rtt.doublings = @min(rtt.doublings + 1, doublings_max);
    rtt.update();
}

fn update(rtt: *RttEstimator) void {
    const rto_us = std.math.clamp(rtt.srtt_us + 4 * rtt.rttvar_us, rtt.floor_us, rto_us_max);
    rtt.rto_us = @min(rto_us << rtt.doublings, rto_us_max);
}

test "the time-out follows the samples and stays within its limits" {
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

test "after a time-out all wait twice as long, until a sample says how long it really takes" {
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

test "a stall that was taken for a loss is waited for, and forgotten later" {
    var rtt: RttEstimator = .{};
    rtt.sample(200);
    rtt.onSpuriousTimeout(12_000);
    try std.testing.expectEqual(18_000, rtt.rto_us);
    rtt.onSpuriousTimeout(9_000_000);
    try std.testing.expectEqual(floor_us_max, rtt.rto_us);
    for (0..2000) |_| rtt.sample(200);
    try std.testing.expectEqual(rto_us_min, rtt.rto_us);
}
