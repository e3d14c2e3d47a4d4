//! Whether a TFTP server stays awake for its peer's next acknowledgement instead of sleeping until it
//! comes. Both ends of a transfer wait for each other in turns, and waking a processor takes longer
//! (25 to 35 µs in a virtual machine) than making a window does; a server that is awake has the next
//! window on its way before the peer's processor sleeps as well. It does so only for peers that answer
//! that quickly, never without blocks on their way, and gives way as soon as it shows that
//! another program wants the processor. Pure arithmetic: the host polls.

const std = @import("std");
const assert = std.debug.assert;
const us_per_ms = std.time.us_per_ms;

pub const BusyPoll = @This();

/// Whoever answers later is not waited for: beside that, waking is short.
const answer_max_us = 100;
/// The limit of one wait is twice what answers take, and at least this: one of them may have to wake
/// its processor first.
const wait_min_us = 60;
/// What a single late answer can add to the mean.
const sample_max_us = 1000;
/// Waits in vain in a row, and the sleep that they bring.
const misses_max = 4;
const rest_after_misses_us = 20 * us_per_ms;
/// Polls are less than 1 µs apart, and interrupts take some 50. More than this is another program's
/// turn, or another machine's on the same processor.
const gap_max_us = 200;
/// Another program's turn takes up to 4 ms. The first rest is short, since a single one says little;
/// where they go on, each try costs a turn or two, and so rests grow quickly.
const rest_min_us = 5 * us_per_ms;
const rest_growth = 16;
const rest_max_us = 1000 * us_per_ms;
/// Answers caught in a row until trying again is cheap again.
const catches_undisturbed = 1000;

/// When blocks went out of which nothing is acknowledged yet.
sent_at_us: ?u64 = null,
/// From blocks to acknowledgement, smoothed with a gain of 1/8; null until the first was seen.
answer_us: ?u64 = null,
/// The last one was there before the call that sent its blocks had come back: the peer runs on this
/// very processor, or others' answers come all the time. Nobody has to be woken then.
is_immediate: bool = false,
polled_at_us: u64 = 0,
misses: u8 = 0,
catches: u32 = 0,
rest_until_us: u64 = 0,
rest_us: u64 = rest_min_us,

/// Blocks went out.
pub fn sent(busy_poll: *BusyPoll, now_us: u64) void {
    busy_poll.sent_at_us = now_us;
}

/// An acknowledgement of blocks arrived at `at_us`, whether anybody was awake or not.
pub fn heard(busy_poll: *BusyPoll, at_us: u64) void {
    const sent_at_us = busy_poll.sent_at_us orelse return;
    busy_poll.sent_at_us = null;
    busy_poll.is_immediate = at_us <= sent_at_us;
    const sample_us = @min(at_us -| sent_at_us, sample_max_us);
    busy_poll.answer_us = if (busy_poll.answer_us) |answer_us| (7 * answer_us + sample_us) / 8 else sample_us;
}

/// Whether answers are waited for awake at this time.
pub fn isKept(busy_poll: *const BusyPoll, now_us: u64) bool {
    if (now_us < busy_poll.rest_until_us or busy_poll.is_immediate) return false;
    return (busy_poll.answer_us orelse return false) <= answer_max_us;
}

/// Whether to stay awake from now on; if so, `goesOn` is asked after each poll.
pub fn begins(busy_poll: *BusyPoll, now_us: u64) bool {
    if (!busy_poll.isKept(now_us)) return false;
    const until_us = busy_poll.untilUs() orelse return false;
    busy_poll.polled_at_us = now_us;
    return now_us < until_us;
}

/// A poll is over; `is_caught`: it has found something. Whether to poll again.
pub fn goesOn(busy_poll: *BusyPoll, now_us: u64, is_caught: bool) bool {
    const gap_us = now_us -| busy_poll.polled_at_us;
    busy_poll.polled_at_us = now_us;
    if (gap_us > gap_max_us) {
        busy_poll.giveWay(now_us);
        return false;
    }
    if (is_caught) {
        busy_poll.misses = 0;
        busy_poll.catches +|= 1;
        if (busy_poll.catches >= catches_undisturbed) busy_poll.rest_us = rest_min_us;
        return false;
    }
    if (now_us < busy_poll.untilUs() orelse now_us) return true;
    busy_poll.misses += 1;
    if (busy_poll.misses == misses_max) {
        busy_poll.misses = 0;
        busy_poll.rest_until_us = now_us + rest_after_misses_us;
    }
    return false;
}

/// Other programs want the processors: who sleeps is woken at once when an answer comes, who polls
/// would use up the turns that it needs then; and a peer on the same machine is best off beside this program.
pub fn giveWay(busy_poll: *BusyPoll, now_us: u64) void {
    assert(busy_poll.rest_us >= rest_min_us);
    busy_poll.misses = 0;
    busy_poll.catches = 0;
    busy_poll.rest_until_us = now_us + busy_poll.rest_us;
    busy_poll.rest_us = @min(rest_growth * busy_poll.rest_us, rest_max_us);
}

/// The end of the wait for what is out; null: nothing is.
fn untilUs(busy_poll: *const BusyPoll) ?u64 {
    const sent_at_us = busy_poll.sent_at_us orelse return null;
    const answer_us = busy_poll.answer_us orelse return null;
    return sent_at_us + @max(2 * answer_us, wait_min_us);
}

const testing = std.testing;

/// Whose peer has answered after `answer_us`, and has blocks out since `now_us`.
fn testVigil(now_us: u64, answer_us: u64) BusyPoll {
    var busy_poll: BusyPoll = .{};
    busy_poll.sent(now_us - 500);
    busy_poll.heard(now_us - 500 + answer_us);
    busy_poll.sent(now_us);
    return busy_poll;
}

test "only blocks on their way to a peer that answers quickly, not at once, keep the server awake" {
    var busy_poll: BusyPoll = .{};
    try testing.expect(!busy_poll.begins(1000));
    busy_poll.sent(1000);
    // Nobody knows yet how quick it is.
    try testing.expect(!busy_poll.begins(1001));
    busy_poll.heard(1040);
    try testing.expect(!busy_poll.begins(1041));
    busy_poll.sent(1050);
    try testing.expect(busy_poll.begins(1051));
    busy_poll.heard(1050);
    busy_poll.sent(1060);
    try testing.expect(!busy_poll.begins(1061));
    var slow = testVigil(10_000, answer_max_us + 1);
    try testing.expect(!slow.begins(10_001));
}

test "a wait ends after twice the time that answers take" {
    var busy_poll = testVigil(10_000, 40);
    try testing.expect(busy_poll.begins(10_001));
    try testing.expect(busy_poll.goesOn(10_079, false));
    try testing.expect(!busy_poll.goesOn(10_080, false));
    try testing.expect(!busy_poll.begins(10_081));
}

test "waits in vain bring a rest, an answer between them none" {
    var busy_poll = testVigil(10_000, 30);
    var now_us: u64 = 10_000;
    for (0..2 * misses_max) |index| {
        busy_poll.sent(now_us);
        try testing.expect(busy_poll.begins(now_us));
        now_us += wait_min_us;
        if (index == misses_max - 1) try testing.expect(!busy_poll.goesOn(now_us, true));
        if (index != misses_max - 1) try testing.expect(!busy_poll.goesOn(now_us, false));
    }
    busy_poll.sent(now_us);
    try testing.expect(!busy_poll.begins(now_us));
    now_us += rest_after_misses_us;
    busy_poll.sent(now_us);
    try testing.expect(busy_poll.begins(now_us));
}

test "who keeps others from their turn rests, longer each time, until answers come undisturbed" {
    var busy_poll = testVigil(10_000, 30);
    var now_us: u64 = 10_000;
    var expected_us: u64 = rest_min_us;
    for (0..10) |_| {
        busy_poll.sent(now_us);
        try testing.expect(busy_poll.begins(now_us));
        // Whatever was found: another program has had its turn.
        now_us += gap_max_us + 1;
        try testing.expect(!busy_poll.goesOn(now_us, true));
        busy_poll.sent(now_us + expected_us - 1);
        try testing.expect(!busy_poll.begins(now_us + expected_us - 1));
        now_us += expected_us;
        expected_us = @min(rest_growth * expected_us, rest_max_us);
    }
    try testing.expectEqual(rest_max_us, busy_poll.rest_us);
    for (0..catches_undisturbed) |_| {
        busy_poll.sent(now_us);
        try testing.expect(busy_poll.begins(now_us));
        now_us += 30;
        try testing.expect(!busy_poll.goesOn(now_us, true));
    }
    try testing.expectEqual(rest_min_us, busy_poll.rest_us);
}

test "one late answer does not end what was quick" {
    var busy_poll = testVigil(10_000, 10);
    busy_poll.heard(5_000_000);
    busy_poll.sent(5_000_000);
    // (7 * 10 + 1000) / 8 = 133: two quick ones later it is below the limit again.
    try testing.expect(!busy_poll.begins(5_000_000));
    for (0..3) |_| {
        busy_poll.heard(5_000_010);
        busy_poll.sent(5_000_000);
    }
    try testing.expect(busy_poll.begins(5_000_001));
}
