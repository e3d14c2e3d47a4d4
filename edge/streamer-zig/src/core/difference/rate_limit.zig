//! A limit of bytes per second: a token bucket that holds one part, so that an idle time pays for
//! nothing later. Each part is sent whole; the next one waits until the rate allows it. What a
//! timer wakes late is made up for. Pure.

const std = @import("std");
const assert = std.debug.assert;

pub const RateLimit = @This();

/// Timers count milliseconds, and a part of 32 KiB takes less than one at some rates.
const late_max_us = 5_000;

/// Null: no limit.
bytes_per_s: ?u64 = null,
/// When the next part may be sent.
free_us: u64 = 0,

/// Returns how long to wait before the next part.
pub fn waitUs(limit: *const RateLimit, now_us: u64) u64 {
    return limit.free_us -| now_us;
}

/// A part was sent, or is being sent.
pub fn spend(limit: *RateLimit, bytes: u64, now_us: u64) void {
    const rate = limit.bytes_per_s orelse return;
    assert(rate > 0);
    const cost_us = bytes *| std.time.us_per_s / rate;
    limit.free_us = @max(limit.free_us, now_us -| late_max_us) +| cost_us;
    assert(limit.free_us >= now_us -| late_max_us);
}

const testing = std.testing;

test "parts come at the rate, and time that passed unused pays for nothing" {
    var limit: RateLimit = .{ .bytes_per_s = 1000 };
    try testing.expectEqual(0, limit.waitUs(0));
    limit.spend(500, 0);
    try testing.expectEqual(500_000, limit.waitUs(0));
    try testing.expectEqual(100_000, limit.waitUs(400_000));
    limit.spend(500, 500_000);
    try testing.expectEqual(500_000, limit.waitUs(500_000));
    // An hour later.
    const later_us = 3600 * std.time.us_per_s;
    try testing.expectEqual(0, limit.waitUs(later_us));
    limit.spend(1000, later_us);
    try testing.expectEqual(1_000_000 - late_max_us, limit.waitUs(later_us));
}

test "timers that wake late do not lower the rate" {
    // 32 KiB at 96 MiB/s take 326 us, and the timer wakes after a millisecond.
    var limit: RateLimit = .{ .bytes_per_s = 96 << 20 };
    var sent: u64 = 0;
    for (0..1000) |ms| while (limit.waitUs(ms * 1000) == 0) {
        limit.spend(32 << 10, ms * 1000);
        sent += 32 << 10;
    };
    try testing.expect(sent > 95 << 20);
    try testing.expect(sent < 97 << 20);
}

test "without a rate nothing waits, and the largest numbers do not overflow" {
    var free: RateLimit = .{};
    free.spend(1 << 40, 5);
    try testing.expectEqual(0, free.waitUs(5));
    var slow: RateLimit = .{ .bytes_per_s = 1 };
    slow.spend(std.math.maxInt(u64), 5);
    slow.spend(std.math.maxInt(u64), 5);
    try testing.expect(slow.waitUs(5) > 0);
}
