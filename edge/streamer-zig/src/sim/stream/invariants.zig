//! The invariants of the stream's simulation, and the first violation of a run.

const std = @import("std");

pub const Invariants = @This();

violation: ?Violation = null,

pub const Check = enum {
    /// What a device reads is its version with the device's writes above it.
    bytes_are_right,
    /// No acknowledged write is missing, and no write comes after a later one.
    writes_in_order,
    /// No request is carried out twice while its session is kept.
    carried_out_once,
    /// A flush ends after all requests that were submitted before it.
    flush_is_a_barrier,
    windows_bounded,
    tables_bounded,
    /// An address that has shown no cookie gets no more bytes than it sent.
    no_amplification,
    /// No session opens for an address that was sent nothing.
    cookie_is_checked,
    /// Packets of a session go to addresses that its device has had.
    right_address,
    /// The token of a boot opens one session.
    token_opens_once,
    /// A HELLO that is shown again from elsewhere neither moves nor ends a session.
    recorded_hello_does_nothing,
    /// A device gets packed answers only by a codec that it has offered.
    packed_as_offered,
    /// No key seals two packets under one counter.
    nonce_once,
    /// No edge opens a session of a boot whose writes another edge keeps.
    writes_stay_at_owner,
    /// A device that was told so contacts no other edge.
    asks_its_own_edge,
    /// A device that has lost its edge hears in time from another one that is reachable.
    fails_over_in_time,
    leaves_for_a_reason,
    /// The edge to which a boot failed over has everything that the earlier edge had.
    reported_again,
    /// If nothing keeps larger packets from a device, its first read asks for them.
    jumbo_from_the_first,
    ready_once,
    report_is_known,
    order_taken_once,
    /// A device whose session is lost for good tells its edge.
    lost_is_told,
    /// Each dropped packet is counted once, and no accepted packet is.
    drops_are_counted,
    /// A boot ends only for a cause that occurred.
    ends_have_a_reason,
    no_busy_waiting,
    /// A device that hears nothing retransmits ever more slowly.
    silence_is_quiet,
    everything_finishes,
    queue_bounded,
    time_forward,
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

pub fn violate(
    invariants: *Invariants,
    check: Check,
    comptime format: []const u8,
    arguments: anytype,
) void {
    if (invariants.violation != null) return;
    var violation: Violation = .{ .check = check };
    const text = std.mem.print(&violation.buffer, format, arguments) catch violation.buffer[0..];
    violation.size = @intCast(text.len);
    invariants.violation = violation;
}
