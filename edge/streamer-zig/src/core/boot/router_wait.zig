//! Recognizes a boot that stands still because its loader waits for an IPv6 router. iPXE solicits
//! one and continues after about 16 s; the edge hears nothing else of it in that time, so that no
//! phase has it. Fed by boot.zig. What it knows comes from packets that anybody can send: it
//! explains a pause, and decides nothing.

const std = @import("std");
const assert = std.debug.assert;

pub const RouterWait = @This();

/// The last DHCP packet, or the last of the boot program; null: a download has followed.
from_us: ?u64 = null,
/// Heard since then and not answered.
solicitations: u16 = 0,
/// When the device was answered last; null: never.
answered_us: ?u64 = null,
/// The longest one so far.
pause: ?Pause = null,

pub const Pause = struct {
    at_us: u64,
    duration_us: u64,
    /// That the edge has heard; 0: it has inferred the wait from its length.
    solicitations: u16,
};

/// Between two answers to a device: who solicits in its name takes few answers from others.
const answer_interval_us = 200 * std.time.us_per_ms;
/// iPXE itself pauses for less than this after DHCP.
const heard_us_min = 3 * std.time.us_per_s;
/// Without solicitations: 13 to 17 s in emulated machines, and other programs pause less, or far
/// longer.
const inferred_us_min = 8 * std.time.us_per_s;
const inferred_us_max = 30 * std.time.us_per_s;

/// The device is there, and downloads nothing.
pub fn onPause(wait: *RouterWait, at_us: u64) void {
    wait.from_us = at_us;
    wait.solicitations = 0;
    assert(wait.from_us != null);
}

pub fn onSolicitation(wait: *RouterWait, at_us: u64, is_answered: bool) void {
    assert(!is_answered or wait.mayAnswer(at_us));
    if (is_answered) {
        wait.answered_us = at_us;
        wait.solicitations = 0;
    } else wait.solicitations +|= 1;
}

pub fn mayAnswer(wait: *const RouterWait, at_us: u64) bool {
    const answered_us = wait.answered_us orelse return true;
    return at_us >= answered_us + answer_interval_us;
}

/// The device downloads again. `is_ipxe`: other loaders wait for no router. Returns whether it has
/// waited for one.
pub fn onDownload(wait: *RouterWait, at_us: u64, is_ipxe: bool) bool {
    const from_us = wait.from_us orelse return false;
    const heard = wait.solicitations;
    wait.from_us = null;
    wait.solicitations = 0;
    const duration_us = at_us -| from_us;
    const has_waited = if (heard > 0)
        duration_us >= heard_us_min
    else
        is_ipxe and wait.answered_us == null and
            duration_us >= inferred_us_min and duration_us <= inferred_us_max;
    if (!has_waited) return false;
    if (wait.pause) |longest| if (longest.duration_us >= duration_us) return false;
    wait.pause = .{ .at_us = from_us, .duration_us = duration_us, .solicitations = heard };
    assert(wait.pause.?.duration_us >= heard_us_min);
    return true;
}

const testing = std.testing;
const ms = std.time.us_per_ms;

/// When iPXE solicits a router, from the start of its DHCP: each time it waits twice as long.
pub const ipxe_solicitations_ms = [_]u64{ 0, 250, 750, 1750, 3750, 7750 };
pub const ipxe_gives_up_ms = 15_750;

test "a pause with solicitations that nobody answered is a wait for a router" {
    var wait: RouterWait = .{};
    // As iPXE in a guest's card: its address after 3 s, its script when it has given up.
    var last_dhcp: usize = 0;
    for (ipxe_solicitations_ms) |at| {
        for (last_dhcp..4) |number| if (number * 1000 <= at) {
            wait.onPause(number * 1000 * ms);
            last_dhcp = number + 1;
        };
        wait.onSolicitation(0, false);
    }
    try testing.expect(wait.onDownload(ipxe_gives_up_ms * ms, true));
    const pause = wait.pause.?;
    try testing.expectEqual(3000 * ms, pause.at_us);
    try testing.expectEqual((ipxe_gives_up_ms - 3000) * ms, pause.duration_us);
    try testing.expectEqual(2, pause.solicitations);
    // Later downloads follow each other.
    try testing.expect(!wait.onDownload(40_000 * ms, true));
    try testing.expectEqual(pause, wait.pause.?);
}

test "a pause that no solicitation explains is one if it is iPXE's and as long as its wait" {
    const Case = struct { pause_ms: u64, is_ipxe: bool, has_waited: bool };
    for ([_]Case{
        .{ .pause_ms = 16_100, .is_ipxe = true, .has_waited = true },
        .{ .pause_ms = 8000, .is_ipxe = true, .has_waited = true },
        .{ .pause_ms = 30_000, .is_ipxe = true, .has_waited = true },
        .{ .pause_ms = 7999, .is_ipxe = true, .has_waited = false },
        // Somebody reads a menu.
        .{ .pause_ms = 30_001, .is_ipxe = true, .has_waited = false },
        // A firmware that tries its disks first.
        .{ .pause_ms = 16_100, .is_ipxe = false, .has_waited = false },
    }) |case| {
        var wait: RouterWait = .{};
        wait.onPause(1000 * ms);
        try testing.expectEqual(
            case.has_waited,
            wait.onDownload((1000 + case.pause_ms) * ms, case.is_ipxe),
        );
        if (case.has_waited) try testing.expectEqual(0, wait.pause.?.solicitations);
    }
}

test "a device that was answered waits for something else" {
    var wait: RouterWait = .{};
    wait.onPause(0);
    wait.onSolicitation(0, false);
    wait.onSolicitation(0, true);
    try testing.expect(!wait.onDownload(16_000 * ms, true));
    // The answer was lost: it asks again, and is not answered.
    wait.onPause(20_000 * ms);
    wait.onSolicitation(20_250 * ms, true);
    wait.onSolicitation(20_750 * ms, false);
    try testing.expect(wait.onDownload(36_000 * ms, true));
}

test "the longest of a boot's waits counts" {
    var wait: RouterWait = .{};
    for ([_]u64{ 16_000, 4000, 17_000 }) |length| {
        wait.onPause(0);
        wait.onSolicitation(0, false);
        _ = wait.onDownload(length * ms, true);
    }
    try testing.expectEqual(17_000 * ms, wait.pause.?.duration_us);
    wait.onPause(0);
    wait.onSolicitation(0, false);
    // As long as iPXE's own pauses.
    try testing.expect(!wait.onDownload(2999 * ms, true));
}

test "answers to one device keep a distance" {
    var wait: RouterWait = .{};
    try testing.expect(wait.mayAnswer(0));
    wait.onSolicitation(1000 * ms, true);
    try testing.expect(!wait.mayAnswer(1200 * ms - 1));
    try testing.expect(wait.mayAnswer(1200 * ms));
}
