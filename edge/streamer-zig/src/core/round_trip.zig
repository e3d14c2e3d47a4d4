//! Round-trip time and time-out of a stream (RFC 6298, with the limits of packages/proto/STREAM.md). All in microseconds.

const std = @import("std");
const RoundTrip = @This();

pub const timeout_us_min = 4 * std.time.us_per_ms;
pub const timeout_us_max = std.time.us_per_s;

smoothed_us: u64 = 0,
variation_us: u64 = 0,
timeout_us: u64 = timeout_us_max,
sampled: bool = false,

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
    const timeout = round_trip.smoothed_us + 4 * round_trip.variation_us;
    round_trip.timeout_us = std.math.clamp(timeout, timeout_us_min, timeout_us_max);
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
