//! Keeps a job to a rate, so that it does not take the disk from those who boot.

const std = @import("std");
const host = @import("host");
const linux = std.os.linux;

pub const Pace = struct {
    /// Null: as fast as it goes.
    bytes_per_s: ?u64,
    begun_us: u64,

    /// What is done between two looks at the clock.
    pub const step_size = 4 << 20;

    pub fn init(mib_per_s: ?u32) Pace {
        return .{
            .bytes_per_s = if (mib_per_s) |mib| @as(u64, mib) << 20 else null,
            .begun_us = host.sys.monotonicUs(),
        };
    }

    /// Waits until so many bytes may have been done.
    pub fn wait(pace: *const Pace, done: u64) void {
        const rate = pace.bytes_per_s orelse return;
        const due_us: u64 = @intCast(@as(u128, done) * std.time.us_per_s / rate);
        const passed_us = host.sys.monotonicUs() - pace.begun_us;
        if (due_us <= passed_us) return;
        const left_us = due_us - passed_us;
        const pause: linux.timespec = .{
            .sec = @intCast(left_us / std.time.us_per_s),
            .nsec = @intCast(left_us % std.time.us_per_s * std.time.ns_per_us),
        };
        // A signal ends it early: whoever paces looks for one.
        _ = linux.nanosleep(&pause, null);
    }
};
