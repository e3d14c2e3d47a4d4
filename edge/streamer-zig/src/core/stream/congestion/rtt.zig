//! Round-trip time and time-out of a stream (RFC 6298, with the limits of packages/proto/STREAM.md). All in microseconds.

const std = @import("std");
const RoundTrip = @This();

pub const timeout_us_min = 2 * std.time.us_per_ms;
pub const timeout_us_max = std.time.us_per_s;
/// From 2 ms to 64 ms; beyond, a read that is lost again waits longer by itself.
const doublings_max = 5;
/// Stalls of busy machines; a longer floor would make real losses dear.
pub const floor_us_max = 100 * std.time.us_per_ms;

smoothed_us: u64 = 0,
variation_us: u64 = 0,
timeout_us: u64 = timeout_us_max,
/// Never below; above `timeout_us_min` where a time-out turned out to have been a stall and no loss.
floor_us: u64 = timeout_us_min,
sampled: bool = false,
/// How often the time-out was doubled since the last sample.
doublings: u5 = 0,

/// A sample of a request that was sent once (Karn's rule is the caller's).
pub fn measure(round_trip: *RoundTrip, sample_us: u64) void {
    const sample = @min(sample_us, 60 * std.time.us_per_s);
    if (!round_trip.sampled) {
        round_trip.sampled = true;
        round_trip.smoothed_us = sample;
        round_trip.variation_us = sample / 2;
    } else {
        const error_us = if (sample > round_trip.smoothed_us)
            sample - round_trip.smoothed_us
        else
            round_trip.smoothed_us - sample;
        round_trip.variation_us = (3 * round_trip.variation_us + error_us) / 4;
        round_trip.smoothed_us = (7 * round_trip.smoothed_us + sample) / 8;
    }
    round_trip.doublings = 0;
    // Forgotten by half in 177 samples, about a quarter of a boot.
    round_trip.floor_us = @max(timeout_us_min, round_trip.floor_us - round_trip.floor_us / 256);
    round_trip.update();
}

/// What was asked again after a time-out came twice: its first answer took `actual_us` and was not lost (as RFC 3522
/// finds it, by other means). Such a stall is to be waited for the next time.
pub fn noteSpurious(round_trip: *RoundTrip, actual_us: u64) void {
    const wanted = @min(actual_us + actual_us / 2, floor_us_max);
    round_trip.floor_us = @max(round_trip.floor_us, wanted);
    round_trip.update();
}

/// Time was over. Until something comes that was asked for once, nobody knows whether it was lost or is late: whatever is asked for
/// meanwhile waits twice as long (RFC 6298, section 5.5). Else devices that wait in a queue longer than their time-out would ask for
/// everything again and again, and so keep the queue as long.
pub fn backOff(round_trip: *RoundTrip) void {
    round_trip.doublings = @min(round_trip.doublings + 1, doublings_max);
    round_trip.update();
}

fn update(round_trip: *RoundTrip) void {
    const timeout = std.math.clamp(round_trip.smoothed_us + 4 * round_trip.variation_us, round_trip.floor_us, timeout_us_max);
    round_trip.timeout_us = @min(timeout << round_trip.doublings, timeout_us_max);
}

test "the time-out follows the samples and stays within its limits" {
    var round_trip: RoundTrip = .{};
    try std.testing.expectEqual(timeout_us_max, round_trip.timeout_us);
    round_trip.measure(200);
    try std.testing.expectEqual(timeout_us_min, round_trip.timeout_us);
    for (0..40) |_| round_trip.measure(20_000);
    try std.testing.expect(round_trip.timeout_us >= 20_000);
    try std.testing.expect(round_trip.timeout_us < 30_000);
    round_trip.measure(std.math.maxInt(u64));
    try std.testing.expectEqual(timeout_us_max, round_trip.timeout_us);
}

test "after a time-out all wait twice as long, until a sample says how long it really takes" {
    var round_trip: RoundTrip = .{};
    round_trip.measure(200);
    round_trip.backOff();
    round_trip.backOff();
    try std.testing.expectEqual(4 * timeout_us_min, round_trip.timeout_us);
    for (0..10) |_| round_trip.backOff();
    try std.testing.expectEqual(timeout_us_min << doublings_max, round_trip.timeout_us);
    round_trip.measure(200);
    try std.testing.expectEqual(timeout_us_min, round_trip.timeout_us);
    for (0..40) |_| round_trip.measure(600_000);
    round_trip.backOff();
    try std.testing.expectEqual(timeout_us_max, round_trip.timeout_us);
}

test "a stall that was taken for a loss is waited for, and forgotten later" {
    var round_trip: RoundTrip = .{};
    round_trip.measure(200);
    round_trip.noteSpurious(12_000);
    try std.testing.expectEqual(18_000, round_trip.timeout_us);
    round_trip.noteSpurious(9_000_000);
    try std.testing.expectEqual(floor_us_max, round_trip.timeout_us);
    for (0..2000) |_| round_trip.measure(200);
    try std.testing.expectEqual(timeout_us_min, round_trip.timeout_us);
}
