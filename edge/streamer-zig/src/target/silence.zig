//! Tells the console when the edge, or every edge of a fail-over, does not answer, and reopens the
//! socket with the device's current address.

const std = @import("std");
const core = @import("core");
const say = @import("console.zig").say;
const EdgeSocket = @import("edge_socket.zig");

/// Silence before the first message. One HELLO and its retransmissions may be lost before.
const first_line_us = 3 * std.time.us_per_s;
/// Interval of further messages.
const line_interval_us = 30 * std.time.us_per_s;
const reopen_interval_us = 10 * std.time.us_per_s;
/// Longest wait between two calls.
pub const look_interval_us = 1 * std.time.us_per_s;

pub const Silence = @This();

/// When the serving edge was last heard; 0 before the first call.
since_us: u64 = 0,
line_at_us: u64 = 0,
reopen_at_us: u64 = 0,

pub fn heard(silence: *Silence, now_us: u64) void {
    silence.* = .{
        .since_us = now_us,
        .line_at_us = now_us + first_line_us,
        .reopen_at_us = now_us + reopen_interval_us,
    };
}

/// An established client sends HELLO again by itself after a long silence; an idle one receives
/// nothing.
pub fn watch(
    silence: *Silence,
    client: *const core.stream.Client,
    edge: *EdgeSocket,
    now_us: u64,
) void {
    if (silence.since_us == 0) silence.heard(now_us);
    if (client.state != .greeting) return;
    if (now_us >= silence.line_at_us) {
        silence.line_at_us = now_us + line_interval_us;
        const silent_s = (now_us - silence.since_us) / std.time.us_per_s;
        if (client.failover.hasOthers())
            say(
                "no edge has served the disk for {d} s; {f} and the others are tried in turn",
                .{ silent_s, client.failover.own },
            )
        else
            say("the edge {f} has not answered for {d} s; still trying", .{ edge.edge, silent_s });
    }
    if (now_us >= silence.reopen_at_us) {
        silence.reopen_at_us = now_us + reopen_interval_us;
        edge.open();
    }
}
