//! A simulated loader that waits for an IPv6 router, as iPXE in network cards does. Pure: the
//! device asks what is due.

const std = @import("std");
const RouterWait = @import("../boot/router_wait.zig");
const assert = std.debug.assert;

pub const RouterSolicitor = @This();

since_us: u64,
sent_count: u8 = 0,

const solicitations_ms = RouterWait.ipxe_solicitations_ms;

/// Returns whether to send a solicitation now.
pub fn takeDue(solicitor: *RouterSolicitor, now_us: u64) bool {
    if (solicitor.sent_count == solicitations_ms.len or now_us < solicitor.deadline()) return false;
    solicitor.sent_count += 1;
    assert(solicitor.sent_count <= solicitations_ms.len);
    return true;
}

pub fn hasGivenUp(solicitor: *const RouterSolicitor, now_us: u64) bool {
    return solicitor.sent_count == solicitations_ms.len and now_us >= solicitor.deadline();
}

/// When the next solicitation is due, or it gives up.
pub fn deadline(solicitor: *const RouterSolicitor) u64 {
    const after_ms = if (solicitor.sent_count < solicitations_ms.len)
        solicitations_ms[solicitor.sent_count]
    else
        RouterWait.ipxe_gives_up_ms;
    return solicitor.since_us + after_ms * std.time.us_per_ms;
}

test "it asks six times, each time after twice the pause, and gives up" {
    var solicitor: RouterSolicitor = .{ .since_us = 1000 };
    var count: u32 = 0;
    var now_us: u64 = 1000;
    while (!solicitor.hasGivenUp(now_us)) : (now_us = solicitor.deadline())
        count += @intFromBool(solicitor.takeDue(now_us));
    try std.testing.expectEqual(6, count);
    try std.testing.expectEqual(1000 + 15_750_000, now_us);
}
