//! What has to hold in the stream's proof, and the first thing that did not.

const std = @import("std");

pub const Checks = @This();

violation: ?Violation = null,

pub const Check = enum {
    /// What a device read is not the version with what the device wrote above it.
    bytes_are_right,
    /// A write that was acknowledged is not there, or one came after a later one.
    writes_in_order,
    /// A request of a device was carried out twice though its session was never forgotten.
    carried_out_once,
    /// A flush ended before what was submitted before it.
    flush_is_a_barrier,
    windows_bounded,
    tables_bounded,
    /// More went to an address without a cookie than came from it.
    no_amplification,
    /// A session was opened for an address that had been sent nothing.
    cookie_is_checked,
    /// A packet of a session went to an address that its device never had.
    right_address,
    /// A boot's token opened two sessions.
    token_opens_once,
    /// Two packets were sealed with one key under one counter.
    nonce_once,
    /// A boot whose writes are at one edge was given a session by another one.
    writes_stay_home,
    /// A device that was told so asked another edge again.
    asks_its_own_edge,
    /// An edge could be reached, and a device that had lost its own had nothing from it in time.
    goes_on_in_time,
    leaves_for_a_reason,
    /// An edge that goes on with a boot has not heard what the one before it had.
    said_again,
    /// Nothing kept larger packets from a device, and its first read asked for smaller ones.
    jumbo_from_the_first,
    ready_once,
    report_is_known,
    order_taken_once,
    /// A packet was dropped without a counter, or counted without being dropped.
    drops_are_counted,
    /// A boot ended for a reason that nobody gave.
    ends_have_a_reason,
    no_busy_waiting,
    /// A device that hears nothing asks ever more slowly.
    silence_is_quiet,
    everything_finishes,
    queue_bounded,
    same_seed_same_run,
    canary,
};

pub const Violation = struct {
    check: Check,
    buffer: [200]u8 = undefined,
    size: u8 = 0,

    pub fn text(violation: *const Violation) []const u8 {
        return violation.buffer[0..violation.size];
    }
};

pub fn violate(checks: *Checks, check: Check, comptime format: []const u8, arguments: anytype) void {
    if (checks.violation != null) return;
    var violation: Violation = .{ .check = check };
    const said = std.mem.print(&violation.buffer, format, arguments) catch violation.buffer[0..];
    violation.size = @intCast(said.len);
    checks.violation = violation;
}
