//! Whether a TFTP server stays awake for its peer's next acknowledgement instead of sleeping until it
//! comes. Both ends of a transfer wait for each other in turns, and waking a processor takes longer
//! (25 to 35 µs in a virtual machine) than making a window does; a server that is awake has the next
//! window on its way before the peer's processor sleeps as well. It does so only for peers that answer
//! that quickly, never without blocks on their way, and gives way as soon as it shows that
//! another program wants the processor. Pure arithmetic: the host polls.

const std = @import("std");
const assert = std.debug.assert;
const us_per_ms = std.time.us_per_ms;

pub const TftpVigil = @This();

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
pub fn sent(vigil: *TftpVigil, now_us: u64) void {
    vigil.sent_at_us = now_us;
}

/// An acknowledgement of blocks arrived at `at_us`, whether anybody was awake or not.
pub fn heard(vigil: *TftpVigil, at_us: u64) void {
    const sent_at_us = vigil.sent_at_us orelse return;
    vigil.sent_at_us = null;
    vigil.is_immediate = at_us <= sent_at_us;
    const sample_us = @min(at_us -| sent_at_us, sample_max_us);
    vigil.answer_us = if (vigil.answer_us) |answer_us| (7 * answer_us + sample_us) / 8 else sample_us;
}

/// Whether answers are waited for awake at this time.
pub fn isKept(vigil: *const TftpVigil, now_us: u64) bool {
    if (now_us < vigil.rest_until_us or vigil.is_immediate) return false;
    return (vigil.answer_us orelse return false) <= answer_max_us;
}

/// Whether to stay awake from now on; if so, `goesOn` is asked after each poll.
pub fn begins(vigil: *TftpVigil, now_us: u64) bool {
    if (!vigil.isKept(now_us)) return false;
    const until_us = vigil.untilUs() orelse return false;
    vigil.polled_at_us = now_us;
    return now_us < until_us;
}

/// A poll is over; `is_caught`: it has found something. Whether to poll again.
pub fn goesOn(vigil: *TftpVigil, now_us: u64, is_caught: bool) bool {
    const gap_us = now_us -| vigil.polled_at_us;
    vigil.polled_at_us = now_us;
    if (gap_us > gap_max_us) {
        vigil.giveWay(now_us);
        return false;
    }
    if (is_caught) {
        vigil.misses = 0;
        vigil.catches +|= 1;
        if (vigil.catches >= catches_undisturbed) vigil.rest_us = rest_min_us;
        return false;
    }
    if (now_us < vigil.untilUs() orelse now_us) return true;
    vigil.misses += 1;
    if (vigil.misses == misses_max) {
        vigil.misses = 0;
        vigil.rest_until_us = now_us + rest_after_misses_us;
    }
    return false;
}

/// Other programs want the processors: who sleeps is woken at once when an answer comes, who polls
/// would use up the turns that it needs then; and a peer on the same machine is best off beside this program.
pub fn giveWay(vigil: *TftpVigil, now_us: u64) void {
    assert(vigil.rest_us >= rest_min_us);
    vigil.misses = 0;
    vigil.catches = 0;
    vigil.rest_until_us = now_us + vigil.rest_us;
    vigil.rest_us = @min(rest_growth * vigil.rest_us, rest_max_us);
}

/// The end of the wait for what is out; null: nothing is.
fn untilUs(vigil: *const TftpVigil) ?u64 {
    const sent_at_us = vigil.sent_at_us orelse return null;
    const answer_us = vigil.answer_us orelse return null;
    return sent_at_us + @max(2 * answer_us, wait_min_us);
}

const testing = std.testing;

/// Whose peer has answered after `answer_us`, and has blocks out since `now_us`.
fn testVigil(now_us: u64, answer_us: u64) TftpVigil {
    var vigil: TftpVigil = .{};
    vigil.sent(now_us - 500);
    vigil.heard(now_us - 500 + answer_us);
    vigil.sent(now_us);
    return vigil;
}

test "only blocks on their way to a peer that answers quickly, not at once, keep the server awake" {
    var vigil: TftpVigil = .{};
    try testing.expect(!vigil.begins(1000));
    vigil.sent(1000);
    // Nobody knows yet how quick it is.
    try testing.expect(!vigil.begins(1001));
    vigil.heard(1040);
    try testing.expect(!vigil.begins(1041));
    vigil.sent(1050);
    try testing.expect(vigil.begins(1051));
    vigil.heard(1050);
    vigil.sent(1060);
    try testing.expect(!vigil.begins(1061));
    var slow = testVigil(10_000, answer_max_us + 1);
    try testing.expect(!slow.begins(10_001));
}

test "a wait ends after twice the time that answers take" {
    var vigil = testVigil(10_000, 40);
    try testing.expect(vigil.begins(10_001));
    try testing.expect(vigil.goesOn(10_079, false));
    try testing.expect(!vigil.goesOn(10_080, false));
    try testing.expect(!vigil.begins(10_081));
}

test "waits in vain bring a rest, an answer between them none" {
    var vigil = testVigil(10_000, 30);
    var now_us: u64 = 10_000;
    for (0..2 * misses_max) |index| {
        vigil.sent(now_us);
        try testing.expect(vigil.begins(now_us));
        now_us += wait_min_us;
        if (index == misses_max - 1) try testing.expect(!vigil.goesOn(now_us, true));
        if (index != misses_max - 1) try testing.expect(!vigil.goesOn(now_us, false));
    }
    vigil.sent(now_us);
    try testing.expect(!vigil.begins(now_us));
    now_us += rest_after_misses_us;
    vigil.sent(now_us);
    try testing.expect(vigil.begins(now_us));
}

test "who keeps others from their turn rests, longer each time, until answers come undisturbed" {
    var vigil = testVigil(10_000, 30);
    var now_us: u64 = 10_000;
    var expected_us: u64 = rest_min_us;
    for (0..10) |_| {
        vigil.sent(now_us);
        try testing.expect(vigil.begins(now_us));
        // Whatever was found: another program has had its turn.
        now_us += gap_max_us + 1;
        try testing.expect(!vigil.goesOn(now_us, true));
        vigil.sent(now_us + expected_us - 1);
        try testing.expect(!vigil.begins(now_us + expected_us - 1));
        now_us += expected_us;
        expected_us = @min(rest_growth * expected_us, rest_max_us);
    }
    try testing.expectEqual(rest_max_us, vigil.rest_us);
    for (0..catches_undisturbed) |_| {
        vigil.sent(now_us);
        try testing.expect(vigil.begins(now_us));
        now_us += 30;
        try testing.expect(!vigil.goesOn(now_us, true));
    }
    try testing.expectEqual(rest_min_us, vigil.rest_us);
}

test "one late answer does not end what was quick" {
    var vigil = testVigil(10_000, 10);
    vigil.heard(5_000_000);
    vigil.sent(5_000_000);
    // (7 * 10 + 1000) / 8 = 133: two quick ones later it is below the limit again.
    try testing.expect(!vigil.begins(5_000_000));
    for (0..3) |_| {
        vigil.heard(5_000_010);
        vigil.sent(5_000_000);
    }
    try testing.expect(vigil.begins(5_000_001));
}
