//! Converts between the kernel's times and µs.

const std = @import("std");
const linux = std.os.linux;

/// A duration for ppoll.
pub fn timespecOf(us: u64) linux.timespec {
    return .{
        .sec = @intCast(us / std.time.us_per_s),
        .nsec = @intCast(us % std.time.us_per_s * std.time.ns_per_us),
    };
}

/// µs since the kernel's start, suspension included: the closest to power-on that a device knows.
pub fn uptimeUs() u64 {
    var ts: linux.timespec = undefined;
    _ = linux.clock_gettime(.BOOTTIME, &ts);
    return @as(u64, @intCast(ts.sec)) * std.time.us_per_s +
        @as(u64, @intCast(ts.nsec)) / std.time.ns_per_us;
}
