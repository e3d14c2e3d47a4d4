//! Adaptive busy polling of a TFTP server: polls for its peer's next acknowledgement instead of
//! sleeping. Both ends of a transfer wait for each other in turn, and waking a processor takes
//! longer (25 to 35 µs in a virtual machine) than building a window; a polling server sends the
//! next window before the peer's processor sleeps as well. It polls only for peers that answer that
//! fast, never without blocks in flight, and yields as soon as another program wants the processor.
//! Pure arithmetic: the host polls.

const std = @import("std");
const assert = std.debug.assert;
const us_per_ms = std.time.us_per_ms;

pub const BusyPoll = @This();

/// Slower peers are not polled for: compared with their answers, waking is fast.
const answer_max_us = 100;
/// A poll lasts at most twice the answer time, and at least this: the peer may have to wake its
/// processor first.
const wait_min_us = 60;
/// Upper bound of the contribution of a single late answer to the mean.
const sample_max_us = 1000;
/// Consecutive polls without an answer, and the pause that follows.
const misses_max = 4;
const rest_after_misses_us = 20 * us_per_ms;
/// Polls are less than 1 µs apart, and interrupts take some 50 µs. A longer gap is another
/// program's time slice, or another machine's on the same processor.
const gap_max_us = 200;
/// Another program's time slice takes up to 4 ms. The first pause is short, since a single gap
/// means little; if gaps continue, each attempt costs a slice or two, so pauses grow quickly.
const rest_min_us = 5 * us_per_ms;
const rest_growth = 16;
const rest_max_us = 1000 * us_per_ms;
/// Consecutive answers caught until the pause is reset.
const catches_undisturbed = 1000;

/// When the blocks were sent of which nothing is acknowledged yet.
sent_at_us: ?u64 = null,
/// Time from blocks to acknowledgement, smoothed with a gain of 1/8; null until the first sample.
answer_us: ?u64 = null,
/// The latest answer arrived before the call that sent its blocks returned: the peer runs on this
/// very processor, or others' answers arrive all the time. Then nobody has to be woken.
is_immediate: bool = false,
polled_at_us: u64 = 0,
misses: u8 = 0,
catches: u32 = 0,
rest_until_us: u64 = 0,
rest_us: u64 = rest_min_us,

/// Blocks were sent.
pub fn onSend(busy_poll: *BusyPoll, now_us: u64) void {
    busy_poll.sent_at_us = now_us;
}

/// An acknowledgement of blocks arrived at `at_us`, whether or not the server was polling.
pub fn onAnswer(busy_poll: *BusyPoll, at_us: u64) void {
    const sent_at_us = busy_poll.sent_at_us orelse return;
    busy_poll.sent_at_us = null;
    busy_poll.is_immediate = at_us <= sent_at_us;
    const sample_us = @min(at_us -| sent_at_us, sample_max_us);
    busy_poll.answer_us =
        if (busy_poll.answer_us) |answer_us| (7 * answer_us + sample_us) / 8 else sample_us;
    assert(busy_poll.answer_us.? <= sample_max_us);
}

/// Tells whether the server is to poll at this time.
pub fn isActive(busy_poll: *const BusyPoll, now_us: u64) bool {
    if (now_us < busy_poll.rest_until_us or busy_poll.is_immediate) return false;
    return (busy_poll.answer_us orelse return false) <= answer_max_us;
}

/// Tells whether to start polling; if so, `shouldContinue` is called after each poll.
pub fn shouldStart(busy_poll: *BusyPoll, now_us: u64) bool {
    if (!busy_poll.isActive(now_us)) return false;
    const until_us = busy_poll.untilUs() orelse return false;
    assert(busy_poll.rest_until_us <= now_us);
    busy_poll.polled_at_us = now_us;
    return now_us < until_us;
}

/// A poll has ended; `is_caught`: it has found something. Tells whether to poll again.
pub fn shouldContinue(busy_poll: *BusyPoll, now_us: u64, is_caught: bool) bool {
    const gap_us = now_us -| busy_poll.polled_at_us;
    busy_poll.polled_at_us = now_us;
    if (gap_us > gap_max_us) {
        busy_poll.yield(now_us);
        return false;
    }
    if (is_caught) {
        busy_poll.misses = 0;
        busy_poll.catches +|= 1;
        if (busy_poll.catches >= catches_undisturbed) busy_poll.rest_us = rest_min_us;
        return false;
    }
    if (now_us < busy_poll.untilUs() orelse now_us) return true;
    assert(busy_poll.misses < misses_max);
    busy_poll.misses += 1;
    if (busy_poll.misses == misses_max) {
        busy_poll.misses = 0;
        busy_poll.rest_until_us = now_us + rest_after_misses_us;
    }
    return false;
}

/// Other programs want the processors: a sleeping server is woken at once when an answer arrives, a
/// polling one would have used up its time slice by then; and a peer on the same machine runs best
/// beside this program.
pub fn yield(busy_poll: *BusyPoll, now_us: u64) void {
    assert(busy_poll.rest_us >= rest_min_us);
    busy_poll.misses = 0;
    busy_poll.catches = 0;
    busy_poll.rest_until_us = now_us + busy_poll.rest_us;
    busy_poll.rest_us = @min(rest_growth * busy_poll.rest_us, rest_max_us);
    assert(busy_poll.rest_us <= rest_max_us);
}

/// Returns when the wait for the blocks in flight ends; null: none are.
fn untilUs(busy_poll: *const BusyPoll) ?u64 {
    const sent_at_us = busy_poll.sent_at_us orelse return null;
    const answer_us = busy_poll.answer_us orelse return null;
    return sent_at_us + @max(2 * answer_us, wait_min_us);
}

const testing = std.testing;

/// A peer that has answered after `answer_us`, and has blocks in flight since `now_us`.
fn testBusyPoll(now_us: u64, answer_us: u64) BusyPoll {
    var busy_poll: BusyPoll = .{};
    busy_poll.onSend(now_us - 500);
    busy_poll.onAnswer(now_us - 500 + answer_us);
    busy_poll.onSend(now_us);
    return busy_poll;
}

test "only blocks in flight to a peer that answers fast, not immediately, make the server poll" {
    var busy_poll: BusyPoll = .{};
    try testing.expect(!busy_poll.shouldStart(1000));
    busy_poll.onSend(1000);
    // The peer's answer time is unknown.
    try testing.expect(!busy_poll.shouldStart(1001));
    busy_poll.onAnswer(1040);
    try testing.expect(!busy_poll.shouldStart(1041));
    busy_poll.onSend(1050);
    try testing.expect(busy_poll.shouldStart(1051));
    busy_poll.onAnswer(1050);
    busy_poll.onSend(1060);
    try testing.expect(!busy_poll.shouldStart(1061));
    var slow = testBusyPoll(10_000, answer_max_us + 1);
    try testing.expect(!slow.shouldStart(10_001));
}

test "polling ends after twice the answer time" {
    var busy_poll = testBusyPoll(10_000, 40);
    try testing.expect(busy_poll.shouldStart(10_001));
    try testing.expect(busy_poll.shouldContinue(10_079, false));
    try testing.expect(!busy_poll.shouldContinue(10_080, false));
    try testing.expect(!busy_poll.shouldStart(10_081));
}

test "polls in vain cause a pause, an answer between them none" {
    var busy_poll = testBusyPoll(10_000, 30);
    var now_us: u64 = 10_000;
    for (0..2 * misses_max) |index| {
        busy_poll.onSend(now_us);
        try testing.expect(busy_poll.shouldStart(now_us));
        now_us += wait_min_us;
        if (index == misses_max - 1) try testing.expect(!busy_poll.shouldContinue(now_us, true));
        if (index != misses_max - 1) try testing.expect(!busy_poll.shouldContinue(now_us, false));
    }
    busy_poll.onSend(now_us);
    try testing.expect(!busy_poll.shouldStart(now_us));
    now_us += rest_after_misses_us;
    busy_poll.onSend(now_us);
    try testing.expect(busy_poll.shouldStart(now_us));
}

test "a server that takes others' time slices pauses, longer each time, until undisturbed answers" {
    var busy_poll = testBusyPoll(10_000, 30);
    var now_us: u64 = 10_000;
    var expected_us: u64 = rest_min_us;
    for (0..10) |_| {
        busy_poll.onSend(now_us);
        try testing.expect(busy_poll.shouldStart(now_us));
        // Whatever was found: another program has run.
        now_us += gap_max_us + 1;
        try testing.expect(!busy_poll.shouldContinue(now_us, true));
        busy_poll.onSend(now_us + expected_us - 1);
        try testing.expect(!busy_poll.shouldStart(now_us + expected_us - 1));
        now_us += expected_us;
        expected_us = @min(rest_growth * expected_us, rest_max_us);
    }
    try testing.expectEqual(rest_max_us, busy_poll.rest_us);
    for (0..catches_undisturbed) |_| {
        busy_poll.onSend(now_us);
        try testing.expect(busy_poll.shouldStart(now_us));
        now_us += 30;
        try testing.expect(!busy_poll.shouldContinue(now_us, true));
    }
    try testing.expectEqual(rest_min_us, busy_poll.rest_us);
}

test "one late answer does not end polling" {
    var busy_poll = testBusyPoll(10_000, 10);
    busy_poll.onAnswer(5_000_000);
    busy_poll.onSend(5_000_000);
    // (7 * 10 + 1000) / 8 = 133: two fast ones later it is below the limit again.
    try testing.expect(!busy_poll.shouldStart(5_000_000));
    for (0..3) |_| {
        busy_poll.onAnswer(5_000_010);
        busy_poll.onSend(5_000_000);
    }
    try testing.expect(busy_poll.shouldStart(5_000_001));
}
