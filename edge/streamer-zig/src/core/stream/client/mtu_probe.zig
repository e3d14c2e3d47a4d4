//! Probes whether an edge that does not answer a write is alive (packages/proto/STREAM.md, "Packet
//! sizes"): a small packet follows the write. An edge that answers the probe and not the write did
//! not receive the write: it was lost, or its packets exceed the path MTU. An edge that is gone or
//! stalled answers neither. Pure; times are microseconds.

const std = @import("std");

const MtuProbe = @This();

/// Interval from an unanswered probe to the next; doubled each time.
const wait_us_first = 20 * std.time.us_per_ms;
const wait_us_max = std.time.us_per_s;
const assert = std.debug.assert;
/// Time that the edge gets to answer a write, counted from the probe that it answered: twice that
/// probe's round trip, and at least this. Doubled each time, since a full switch drops large
/// packets for a while and lets small ones pass.
const round_us_first = 20 * std.time.us_per_ms;
const round_us_max = 250 * std.time.us_per_ms;

/// When the probe is due; null: none is wanted.
due_at_us: ?u64 = null,
/// The probe that waits for its answer.
request_id: ?u32 = null,
sent_at_us: u64 = 0,
wait_us: u64 = wait_us_first,

/// A write that may exceed the path MTU was sent once more.
pub fn schedule(probe: *MtuProbe, now_us: u64) void {
    if (probe.due_at_us != null) return;
    probe.due_at_us =
        if (probe.request_id == null) now_us else @max(now_us, probe.sent_at_us + probe.wait_us);
    assert(probe.due_at_us.? >= now_us);
}

/// No probe is wanted any more.
pub fn cancel(probe: *MtuProbe) void {
    probe.due_at_us = null;
}

pub fn isDue(probe: *const MtuProbe, now_us: u64) bool {
    return now_us >= probe.due_at_us orelse return false;
}

/// The probe is sent now.
pub fn onSend(probe: *MtuProbe, now_us: u64, request_id: u32) void {
    assert(probe.isDue(now_us));
    probe.wait_us =
        if (probe.request_id == null) wait_us_first else @min(2 * probe.wait_us, wait_us_max);
    probe.due_at_us = null;
    probe.request_id = request_id;
    probe.sent_at_us = now_us;
    assert(probe.wait_us <= wait_us_max);
}

pub const Answer = struct { sent_at_us: u64, took_us: u64 };

/// Returns null if this does not answer the newest probe.
pub fn answer(probe: *MtuProbe, now_us: u64, request_id: u32) ?Answer {
    if (probe.request_id != request_id) return null;
    probe.request_id = null;
    return .{ .sent_at_us = probe.sent_at_us, .took_us = now_us -| probe.sent_at_us };
}

/// Returns how long a write may stay unanswered after its last packet, given its previous futile
/// rounds.
pub fn roundUs(futile: u8) u64 {
    return @min(@as(u64, round_us_first) << @min(futile, 8), round_us_max);
}

const testing = std.testing;

test "unanswered probes slow down to one a second, and start at once again after an answer" {
    var probe: MtuProbe = .{};
    var now_us: u64 = 1000;
    probe.schedule(now_us);
    try testing.expect(probe.isDue(now_us));
    var sent: u32 = 0;
    while (now_us < 60 * std.time.us_per_s) : (now_us += std.time.us_per_ms) {
        probe.schedule(now_us);
        if (!probe.isDue(now_us)) continue;
        sent += 1;
        probe.onSend(now_us, sent);
        try testing.expect(!probe.isDue(now_us));
    }
    try testing.expect(sent > 60 and sent < 70);
    // An answer to an earlier probe.
    try testing.expectEqual(null, probe.answer(now_us, sent - 1));
    try testing.expectEqual(
        Answer{ .sent_at_us = probe.sent_at_us, .took_us = now_us - probe.sent_at_us },
        probe.answer(now_us, sent).?,
    );
    try testing.expectEqual(null, probe.answer(now_us, sent));
    probe.cancel();
    try testing.expect(!probe.isDue(now_us));
    probe.schedule(now_us);
    try testing.expect(probe.isDue(now_us));
}

test "a probe is due at once, and behind an unanswered one after 20 ms, doubled up to a second" {
    const ms = std.time.us_per_ms;
    var probe: MtuProbe = .{};
    var now_us: u64 = 5000;
    for ([_]u64{ 0, 20, 40, 80, 160, 320, 640, 1000, 1000 }, 0..) |wait_ms, id| {
        const due_us = now_us + wait_ms * ms;
        probe.schedule(now_us);
        try testing.expectEqual(due_us, probe.due_at_us);
        // One that is scheduled already stays.
        probe.schedule(now_us + 1);
        try testing.expectEqual(due_us, probe.due_at_us);
        if (wait_ms > 0) try testing.expect(!probe.isDue(due_us - 1));
        try testing.expect(probe.isDue(due_us));
        probe.onSend(due_us, @intCast(id));
        try testing.expectEqual(null, probe.due_at_us);
        now_us = due_us;
    }
    // Long after its time it is due now.
    probe.schedule(now_us + 5000 * ms);
    try testing.expectEqual(now_us + 5000 * ms, probe.due_at_us);
    // After an answer everything starts over.
    const answered: Answer = .{ .sent_at_us = now_us, .took_us = 7 };
    try testing.expectEqual(answered, probe.answer(now_us + 7, 8));
    probe.cancel();
    probe.schedule(now_us + 7);
    try testing.expectEqual(now_us + 7, probe.due_at_us);
    probe.onSend(now_us + 7, 9);
    probe.schedule(now_us + 8);
    try testing.expectEqual(now_us + 7 + 20 * ms, probe.due_at_us);
}

test "the rounds of one size take 0.3 s in total, and none is longer than a quarter of a second" {
    const ms = std.time.us_per_ms;
    for ([_]u64{ 20, 40, 80, 160, 250, 250, 250, 250, 250, 250 }, 0..) |round_ms, futile|
        try testing.expectEqual(round_ms * ms, roundUs(@intCast(futile)));
    try testing.expectEqual(250 * ms, roundUs(std.math.maxInt(u8)));
}
