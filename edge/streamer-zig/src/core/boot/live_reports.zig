//! When a boot in progress is reported though no phase began or ended, so that whoever looks at it
//! sees its counters move: a few times, at growing distances, whatever the boot is. Thousands of
//! boots at once then cost the control plane a few more reports each.

const std = @import("std");

pub const LiveReports = @This();

const pauses_s = [_]u64{ 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 };

/// Of those that only told counters.
count: u8 = 0,
/// The last report of any kind, in µs since the boot's start.
reported_us: u64 = 0,

pub fn onReport(live: *LiveReports, age_us: u64) void {
    live.reported_us = @max(live.reported_us, age_us);
}

/// Returns whether the boot is to be reported now, and counts that.
pub fn take(live: *LiveReports, age_us: u64) bool {
    if (live.count >= pauses_s.len) return false;
    const pause_us = pauses_s[live.count] * std.time.us_per_s;
    if (age_us -| live.reported_us < pause_us) return false;
    live.count += 1;
    return true;
}

const testing = std.testing;
const second = std.time.us_per_s;

test "reports come at growing distances, and their number is limited" {
    var live: LiveReports = .{};
    try testing.expect(!live.take(2 * second - 1));
    try testing.expect(live.take(2 * second));
    live.onReport(2 * second);
    try testing.expect(!live.take(5 * second - 1));
    // A phase that ends has its own report.
    live.onReport(4 * second);
    try testing.expect(!live.take(5 * second));
    try testing.expect(live.take(7 * second));
    var taken: usize = 2;
    for (0..3600) |age_s| if (live.take(age_s * second)) {
        live.onReport(age_s * second);
        taken += 1;
    };
    try testing.expectEqual(pauses_s.len, taken);
}
