//! Finds out whether the device of a session is still there when another boot of the same device
//! has proved itself (docs/decisions/0027-candidate-boots.md). The question (`presence.zig`)
//! is repeated with the HELLO of the other boot, so it needs no timer. Invariant: a device is asked
//! so rarely that nobody can keep it from reading by repeating a HELLO.

const std = @import("std");
const StreamServer = @import("server.zig");
const assert = std.debug.assert;

pub const Question = @This();

/// Null: no question is open.
asked_us: ?u64 = null,
sent_us: u64 = 0,
sent_count: u8 = 0,
/// When the device last answered a question.
answered_us: ?u64 = null,

/// A device that runs answers within two round trips.
const answer_us_max = std.time.us_per_s;
/// A copy of a HELLO asks no second time.
const spacing_us = 100 * std.time.us_per_ms;
/// Of the questions, one may be lost.
const sent_count_min = 2;
/// A device that has answered is not asked again so soon.
const pause_us = 30 * std.time.us_per_s;
/// A device that sends a REPORT every 5 s and is silent for this long is not there.
const silence_us = 12 * std.time.us_per_s;

pub const Answer = union(enum) {
    /// The device runs. `news`: it has answered a question since the last call.
    there: struct { news: bool },
    /// Not known yet; the packet goes to the session's address.
    unknown: ?[]const u8,
    gone,
};

pub fn ask(
    server: *StreamServer,
    session: *StreamServer.Session,
    now_us: u64,
    reply: *StreamServer.ReplyBuffer,
) Answer {
    assert(session.id != 0);
    const question = &session.question;
    const asked_us = question.asked_us orelse {
        if (question.answered_us) |answered_us| if (now_us -| answered_us < pause_us) {
            if (now_us -| session.last_packet_at_us >= silence_us) return .gone;
            return .{ .there = .{ .news = false } };
        };
        question.asked_us = now_us;
        question.sent_count = 0;
        return .{ .unknown = send(server, session, now_us, reply) };
    };
    if (session.last_packet_at_us > asked_us) {
        question.asked_us = null;
        question.answered_us = now_us;
        return .{ .there = .{ .news = true } };
    }
    const is_late = now_us -| asked_us >= answer_us_max;
    if (is_late and question.sent_count >= sent_count_min) return .gone;
    if (now_us -| question.sent_us < spacing_us) return .{ .unknown = null };
    return .{ .unknown = send(server, session, now_us, reply) };
}

fn send(
    server: *StreamServer,
    session: *StreamServer.Session,
    now_us: u64,
    reply: *StreamServer.ReplyBuffer,
) ?[]const u8 {
    const question = &session.question;
    question.sent_us = now_us;
    question.sent_count +|= 1;
    // Null: a device of version 2 that has sent nothing yet still says HELLO.
    const outgoing = server.askPresence(session.boot_id, reply) orelse return null;
    assert(outgoing.to.eql(session.from));
    return outgoing.packet;
}
