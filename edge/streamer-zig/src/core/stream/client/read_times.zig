//! Where a device's read time is spent, as measured at the device (packages/proto/STREAM.md, "Where
//! time went"): from each READ's request to its last byte, how long the system waited for each of
//! its reads, and from an answer to its next demand. The first tells of a slow network or edge, the
//! last of a slow machine. Always on, of fixed size, without a clock; split by boot phase if the
//! caller reports when the initramfs switches to the system.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const assert = std.debug.assert;

const ReadTimes = @This();

pub const Histogram = base.DurationHistogram;

/// Until the system started; everything if nobody reported that.
initramfs: Part = .{},
/// From then on; null before.
system: ?Part = null,
waiting: u32 = 0,
/// Null: no demand was answered yet.
answered_at_us: ?u64 = null,
/// The boot is over; later reads do not count.
is_over: bool = false,

pub const Part = struct {
    /// From the first READ of a read to its last byte.
    fetch: Histogram = .{},
    /// From the system's demand to its answer.
    wait: Histogram = .{},
    /// From an answer to the next demand, while the system waited for no read.
    turnaround: Histogram = .{},

    fn appendTo(part: *const Part, said: *wire.ReadTimeList, phase: wire.ReadPhase) void {
        said.append(phase, .fetch, &part.fetch);
        said.append(phase, .wait, &part.wait);
        said.append(phase, .turnaround, &part.turnaround);
    }
};

/// The initramfs has switched to the system: reads that end from now on are the system's. Calling
/// it twice changes nothing.
pub fn beginSystem(times: *ReadTimes) void {
    if (times.system == null) times.system = .{};
}

fn current(times: *ReadTimes) *Part {
    return if (times.system) |*part| part else &times.initramfs;
}

pub fn onFetch(times: *ReadTimes, duration_us: u64) void {
    if (!times.is_over) times.current().fetch.note(duration_us);
}

/// The system demands data; the caller keeps `now_us` until the answer.
pub fn onDemand(times: *ReadTimes, now_us: u64) void {
    if (times.waiting == 0 and !times.is_over)
        if (times.answered_at_us) |before_us| times.current().turnaround.note(now_us -| before_us);
    times.waiting += 1;
    assert(times.waiting > 0);
}

/// The demand made at `demanded_at_us` is answered.
pub fn onAnswer(times: *ReadTimes, now_us: u64, demanded_at_us: u64) void {
    assert(times.waiting > 0);
    times.waiting -= 1;
    times.answered_at_us = now_us;
    if (!times.is_over) times.current().wait.note(now_us -| demanded_at_us);
}

/// Returns the times of the whole boot.
pub fn whole(times: *const ReadTimes) Part {
    const part = if (times.system) |*found| found else return times.initramfs;
    const before = &times.initramfs;
    return .{
        .fetch = before.fetch.plus(&part.fetch),
        .wait = before.wait.plus(&part.wait),
        .turnaround = before.turnaround.plus(&part.turnaround),
    };
}

/// Returns the form of REPORT: by phase where the device distinguishes them.
pub fn list(times: *const ReadTimes) wire.ReadTimeList {
    const part = if (times.system) |*found| found else return times.listWhole();
    var said: wire.ReadTimeList = .empty;
    times.initramfs.appendTo(&said, .initramfs);
    part.appendTo(&said, .system);
    return said;
}

/// The same for an edge that knows no phases.
pub fn listWhole(times: *const ReadTimes) wire.ReadTimeList {
    var said: wire.ReadTimeList = .empty;
    times.whole().appendTo(&said, .whole);
    return said;
}

const testing = std.testing;

test "the system's own time is the time in which it waits for nothing" {
    var times: ReadTimes = .{};
    times.onDemand(1000);
    times.onDemand(1100);
    times.onAnswer(1500, 1000);
    // Another read is still awaited: no turnaround.
    times.onDemand(1600);
    times.onAnswer(2000, 1100);
    times.onAnswer(2100, 1600);
    times.onDemand(10_100);
    try testing.expectEqual(3, times.whole().wait.count());
    try testing.expectEqual(500 + 900 + 500, times.whole().wait.sum_us);
    try testing.expectEqual(1, times.whole().turnaround.count());
    try testing.expectEqual(8000, times.whole().turnaround.sum_us);
}

test "reads after the boot are not counted, and earlier ones end well" {
    var times: ReadTimes = .{};
    times.onDemand(1000);
    times.is_over = true;
    times.onFetch(7);
    times.onAnswer(1500, 1000);
    times.onDemand(1600);
    try testing.expectEqual(0, times.list().view().count);
}

test "reads that end after the switch are the system's, and both together are the whole boot's" {
    var times: ReadTimes = .{};
    times.onDemand(0);
    times.onFetch(90);
    times.onAnswer(100, 0);
    times.onDemand(150);
    try testing.expectEqual(wire.ReadPhase.whole, phaseOf(&times.list(), 0));
    times.beginSystem();
    times.onFetch(40);
    times.onAnswer(200, 150);
    times.beginSystem();
    times.onDemand(900);
    const said = times.list();
    try testing.expectEqual(6, said.count);
    try testing.expectEqual(wire.ReadPhase.initramfs, phaseOf(&said, 2));
    try testing.expectEqual(wire.ReadPhase.system, phaseOf(&said, 3));
    try testing.expectEqual(90, times.initramfs.fetch.sum_us);
    try testing.expectEqual(50, times.initramfs.turnaround.sum_us);
    try testing.expectEqual([_]u64{ 40, 50, 700 }, [_]u64{
        times.system.?.fetch.sum_us,
        times.system.?.wait.sum_us,
        times.system.?.turnaround.sum_us,
    });
    var entries = times.listWhole().view().iterate();
    try testing.expectEqual(130, entries.next().?.histogram.sum_us);
    try testing.expectEqual(2, entries.next().?.histogram.count());
    try testing.expectEqual(wire.ReadPhase.whole, entries.next().?.phase);
    try testing.expectEqual(null, entries.next());
}

fn phaseOf(said: *const wire.ReadTimeList, index: usize) wire.ReadPhase {
    var entries = said.view().iterate();
    for (0..index) |_| _ = entries.next().?;
    return entries.next().?.phase;
}
