//! Limits the rate of a job, so that it does not take the disk from booting devices.

const std = @import("std");
const host = @import("host");
const linux = std.os.linux;

pub const Pace = @This();

/// Null: no limit.
bytes_per_s: ?u64,
/// Rests as long as it works, and so uses at most half of the disk's time.
is_idle: bool,
started_us: u64,
worked_from_us: u64,

/// Bytes between two looks at the clock.
pub const step_size = 4 << 20;

pub fn init(mib_per_s: ?u32, is_idle: bool) Pace {
    const now_us = host.sys.monotonicUs();
    return .{
        .bytes_per_s = if (mib_per_s) |mib| @as(u64, mib) << 20 else null,
        .is_idle = is_idle,
        .started_us = now_us,
        .worked_from_us = now_us,
    };
}

/// Waits until `done` bytes are within the rate.
pub fn wait(pace: *Pace, done: u64) void {
    const now_us = host.sys.monotonicUs();
    var left_us: u64 = if (pace.is_idle) now_us - pace.worked_from_us else 0;
    if (pace.bytes_per_s) |rate| {
        const due_us: u64 = @intCast(@as(u128, done) * std.time.us_per_s / rate);
        left_us = @max(left_us, due_us -| (now_us - pace.started_us));
    }
    if (left_us > 0) {
        const pause: linux.timespec = .{
            .sec = @intCast(left_us / std.time.us_per_s),
            .nsec = @intCast(left_us % std.time.us_per_s * std.time.ns_per_us),
        };
        // A signal ends it early; the caller checks for one.
        _ = linux.nanosleep(&pause, null);
    }
    pace.worked_from_us = host.sys.monotonicUs();
}
