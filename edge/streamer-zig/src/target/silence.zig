//! Tells the console when the edge does not answer, and opens the socket anew, with whatever address the device has then.

const std = @import("std");
const core = @import("core");
const say = @import("console.zig").say;
const EdgeSocket = @import("edge_socket.zig").EdgeSocket;

/// Silence after which the console says so, and how often again.
pub const line_us = 10 * std.time.us_per_s;

pub const Silence = struct {
    /// When something came, or silence was last spoken of; 0 before the first look.
    since_us: u64 = 0,

    pub fn heard(silence: *Silence, now_us: u64) void {
        silence.since_us = now_us;
    }

    /// An established client says hello again by itself after as long a silence; one that has nothing to ask hears nothing.
    pub fn watch(silence: *Silence, client: *const core.StreamClient, edge: *EdgeSocket, now_us: u64) void {
        if (silence.since_us == 0) silence.since_us = now_us;
        if (client.state != .greeting) return;
        if (now_us -| silence.since_us < line_us) return;
        silence.since_us = now_us;
        say("the edge {f} does not answer; still asking", .{edge.edge});
        edge.open();
    }
};
