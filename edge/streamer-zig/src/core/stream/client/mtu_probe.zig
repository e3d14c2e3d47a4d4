//! Whether an edge that says nothing of a write is there (packages/proto/STREAM.md, "Packet sizes"): it is asked by a small packet that goes
//! out behind the write. An edge that answers that one, and of the write says nothing, has not got the write: it was lost, or its packets
//! are too large for the way. An edge that is gone, or stands still, answers neither. Pure; times are microseconds.

const std = @import("std");

const MtuProbe = @This();

/// From one that is not answered to the next; then twice as long each time.
const wait_us_first = 20 * std.time.us_per_ms;
const wait_us_max = std.time.us_per_s;
/// How long the edge may take to say something of a write, from the question that it has answered: twice what that took, and not less than
/// this. Twice as long each time, since a full switch drops large packets for a while and lets small ones through.
const round_us_first = 20 * std.time.us_per_ms;
const round_us_max = 250 * std.time.us_per_ms;

/// When it is asked; null: nobody wants to know.
due_at_us: ?u64 = null,
/// Of the one that waits for its answer.
request_id: ?u32 = null,
sent_at_us: u64 = 0,
wait_us: u64 = wait_us_first,

/// A write that may be too large for the way has gone out once more.
pub fn want(question: *MtuProbe, now_us: u64) void {
    if (question.due_at_us != null) return;
    question.due_at_us = if (question.request_id == null) now_us else @max(now_us, question.sent_at_us + question.wait_us);
}

/// Nobody wants to know any more.
pub fn drop(question: *MtuProbe) void {
    question.due_at_us = null;
}

pub fn isDue(question: *const MtuProbe, now_us: u64) bool {
    return now_us >= question.due_at_us orelse return false;
}

/// It goes out now.
pub fn noteSent(question: *MtuProbe, now_us: u64, request_id: u32) void {
    question.wait_us = if (question.request_id == null) wait_us_first else @min(2 * question.wait_us, wait_us_max);
    question.due_at_us = null;
    question.request_id = request_id;
    question.sent_at_us = now_us;
}

pub const Answered = struct { sent_at_us: u64, took_us: u64 };

/// Null: it is not the answer to the newest.
pub fn answer(question: *MtuProbe, now_us: u64, request_id: u32) ?Answered {
    if (question.request_id != request_id) return null;
    question.request_id = null;
    return .{ .sent_at_us = question.sent_at_us, .took_us = now_us -| question.sent_at_us };
}

/// From a write's last packet until it counts as not heard, after so many times before.
pub fn roundUs(futile: u8) u64 {
    return @min(@as(u64, round_us_first) << @min(futile, 8), round_us_max);
}

const testing = std.testing;

test "who is not answered asks ever more rarely, once a second in the end, and at once again after an answer" {
    var question: MtuProbe = .{};
    var now_us: u64 = 1000;
    question.want(now_us);
    try testing.expect(question.isDue(now_us));
    var sent: u32 = 0;
    while (now_us < 60 * std.time.us_per_s) : (now_us += std.time.us_per_ms) {
        question.want(now_us);
        if (!question.isDue(now_us)) continue;
        sent += 1;
        question.noteSent(now_us, sent);
        try testing.expect(!question.isDue(now_us));
    }
    try testing.expect(sent > 60 and sent < 70);
    // Not of the newest.
    try testing.expectEqual(null, question.answer(now_us, sent - 1));
    try testing.expectEqual(Answered{ .sent_at_us = question.sent_at_us, .took_us = now_us - question.sent_at_us }, question.answer(now_us, sent).?);
    try testing.expectEqual(null, question.answer(now_us, sent));
    question.drop();
    try testing.expect(!question.isDue(now_us));
    question.want(now_us);
    try testing.expect(question.isDue(now_us));
}

test "the rounds of a size are 0.3 s together, and none is longer than a quarter of a second" {
    var all_us: u64 = 0;
    for (0..4) |futile| all_us += roundUs(@intCast(futile));
    try testing.expectEqual(300 * std.time.us_per_ms, all_us);
    try testing.expectEqual(round_us_max, roundUs(std.math.maxInt(u8)));
}
