//! Where the time of a device's reads goes, as it can tell (packages/proto/STREAM.md, "Where time went"): how long each READ took from
//! when it was sent to its last byte, how long the system waited for each of its reads, and how long it took from an answer to its next
//! demand. A boot is slow by the first because of the network or the edge, by the last because of its own machine. Always on, of fixed
//! size, without a clock.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const assert = std.debug.assert;

const ReadTimes = @This();

pub const Histogram = base.DurationHistogram;

/// From the first READ of a read to its last byte.
fetch: Histogram = .{},
/// From the system's demand to its answer.
wait: Histogram = .{},
/// From an answer to the next demand, while the system waited for no read.
turnaround: Histogram = .{},
waiting: u32 = 0,
/// null: nothing was answered yet.
answered_at_us: ?u64 = null,
/// The boot is over; what follows belongs to no boot's times.
is_over: bool = false,

pub fn noteFetch(times: *ReadTimes, duration_us: u64) void {
    if (!times.is_over) times.fetch.note(duration_us);
}

/// The system wants something; the caller keeps `now_us` until the answer.
pub fn noteDemand(times: *ReadTimes, now_us: u64) void {
    if (times.waiting == 0 and !times.is_over) if (times.answered_at_us) |before_us| times.turnaround.note(now_us -| before_us);
    times.waiting += 1;
}

/// It has it, `demanded_at_us` being the time of its demand.
pub fn noteAnswer(times: *ReadTimes, now_us: u64, demanded_at_us: u64) void {
    assert(times.waiting > 0);
    times.waiting -= 1;
    times.answered_at_us = now_us;
    if (!times.is_over) times.wait.note(now_us -| demanded_at_us);
}

/// As REPORT carries them.
pub fn list(times: *const ReadTimes) wire.ReadTimeList {
    var said: wire.ReadTimeList = .empty;
    said.append(.fetch, &times.fetch);
    said.append(.wait, &times.wait);
    said.append(.turnaround, &times.turnaround);
    return said;
}

const testing = std.testing;

test "the system's own time is what passes while it waits for nothing" {
    var times: ReadTimes = .{};
    times.noteDemand(1000);
    times.noteDemand(1100);
    times.noteAnswer(1500, 1000);
    // Another read is waited for: no turnaround.
    times.noteDemand(1600);
    times.noteAnswer(2000, 1100);
    times.noteAnswer(2100, 1600);
    times.noteDemand(10_100);
    try testing.expectEqual(3, times.wait.count());
    try testing.expectEqual(500 + 900 + 500, times.wait.sum_us);
    try testing.expectEqual(1, times.turnaround.count());
    try testing.expectEqual(8000, times.turnaround.sum_us);
}

test "what comes after the boot is not counted, and what was begun before it ends well" {
    var times: ReadTimes = .{};
    times.noteDemand(1000);
    times.is_over = true;
    times.noteFetch(7);
    times.noteAnswer(1500, 1000);
    times.noteDemand(1600);
    try testing.expectEqual(0, times.list().view().count);
}
