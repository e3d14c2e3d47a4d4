//! Where a boot's read time was spent (packages/proto/STREAM.md, "Where time went"), until the boot
//! is over: what the edge measures for each READ that arrives for the first time, and what the
//! device reports itself in REPORT. Split by the phases that the device distinguishes; the edge
//! starts a new one when the device reports it. Fixed size per boot.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const RecentReads = @import("recent_reads.zig");

const Histogram = base.DurationHistogram;
const assert = std.debug.assert;

pub const BootReadTimes = @This();

/// Until the device's initramfs switches to its system; everything if the device never reports
/// that.
initramfs: Part = .{},
/// From then on; null before.
system: ?Part = null,
/// Of the current part.
recent: RecentReads = .{},

pub const Part = struct {
    /// Bytes requested by READs.
    bytes: u64 = 0,
    /// From the READ to its bytes in hand: `warm` from memory, `cold` after waiting for a disk.
    warm: Histogram = .{},
    cold: Histogram = .{},
    /// From there until the kernel had the last packet.
    send: Histogram = .{},
    /// By how much reads whose fragments were sent again are later: from the last packet of the
    /// answer to the last packet of its last retransmission.
    late: Histogram = .{},
    /// What the device measured of a READ without what this edge did.
    wire: Histogram = .{},
    /// Measured by the device.
    fetch: Histogram = .{},
    wait: Histogram = .{},
    turnaround: Histogram = .{},

    pub const histogram_names =
        [_][]const u8{ "warm", "cold", "send", "late", "wire", "fetch", "wait", "turnaround" };

    pub fn isEmpty(part: *const Part) bool {
        inline for (histogram_names) |name| {
            if (@field(part, name).used() != null) return false;
        }
        return true;
    }

    fn ofDevice(part: *Part, kind: wire.ReadTimeKind) *Histogram {
        return switch (kind) {
            .fetch => &part.fetch,
            .wait => &part.wait,
            .turnaround => &part.turnaround,
        };
    }
};

/// The times of one READ.
pub const ReadSample = struct {
    is_cold: bool,
    /// µs.
    storage_us: u64,
    send_us: u64,
};

/// Records a READ of `bytes`.
pub fn onRead(times: *BootReadTimes, bytes: u64, sample: ReadSample) void {
    const part = times.current();
    part.bytes +|= bytes;
    const storage = if (sample.is_cold) &part.cold else &part.warm;
    storage.note(sample.storage_us);
    part.send.note(sample.send_us);
}

pub const SentAnswer = struct {
    request_id: u32,
    /// Of the READ.
    arrived_at_us: u64,
    /// Of the answer's last packet.
    at_us: u64,
    /// Of a READ that was answered before.
    is_repeated: bool,
};

pub fn onSent(times: *BootReadTimes, sent: SentAnswer) void {
    if (!sent.is_repeated) return times.recent.onAnswer(
        sent.request_id,
        .{ .arrived_at_us = sent.arrived_at_us, .sent_at_us = sent.at_us },
    );
    const delay = times.recent.onRetransmission(sent.request_id, sent.at_us) orelse return;
    const part = times.current();
    if (delay.before_us == 0)
        part.late.note(delay.us)
    else
        part.late.prolong(delay.before_us, delay.us);
}

/// The device says how long reads took. A time longer than the boot so far is no time of this boot:
/// it is left out, as is a read that this edge did not answer, or that was told before.
pub fn onFetched(times: *BootReadTimes, reads: wire.FetchTimes.Reads, boot_us: u64) void {
    for (0..reads.count()) |index| {
        const read = reads.at(@intCast(index));
        if (read.fetch_us > boot_us) continue;
        const network_us = times.recent.takeNetworkUs(read.request_id, read.fetch_us) orelse
            continue;
        assert(network_us <= read.fetch_us);
        times.current().wire.note(network_us);
    }
}

fn current(times: *BootReadTimes) *Part {
    return if (times.system) |*part| part else &times.initramfs;
}

/// Replaces the device's earlier report by this one. Returns true if it contains more samples.
/// `after_failover`: the boot began at another edge, where the device may already have been in its
/// last phase.
pub fn onReport(times: *BootReadTimes, reported: wire.ReadTimes, after_failover: bool) bool {
    var is_more = false;
    var entries = reported.iterate();
    while (entries.next()) |entry| {
        if (entry.phase != .whole and times.system == null) times.beginSystem(after_failover);
        // Not split by phase: retransmitted for an edge that knows no phases. The next REPORT has
        // them.
        if (entry.phase == .whole and times.system != null) continue;
        const part = if (entry.phase == .system) &times.system.? else &times.initramfs;
        const known = part.ofDevice(entry.kind);
        is_more = is_more or entry.histogram.count() > known.count();
        known.* = entry.histogram;
    }
    return is_more;
}

fn beginSystem(times: *BootReadTimes, after_failover: bool) void {
    assert(times.system == null);
    times.system = .{};
    times.recent = .{};
    if (!after_failover) return;
    const before = times.initramfs;
    times.system = .{
        .bytes = before.bytes,
        .warm = before.warm,
        .cold = before.cold,
        .send = before.send,
        .late = before.late,
        .wire = before.wire,
    };
    times.initramfs =
        .{ .fetch = before.fetch, .wait = before.wait, .turnaround = before.turnaround };
}

/// Returns the times of the whole boot.
pub fn whole(times: *const BootReadTimes) Part {
    const part = if (times.system) |*part| part else return times.initramfs;
    var sum: Part = .{ .bytes = times.initramfs.bytes +| part.bytes };
    inline for (Part.histogram_names) |name|
        @field(sum, name) = @field(times.initramfs, name).plus(&@field(part, name));
    return sum;
}

pub fn isEmpty(times: *const BootReadTimes) bool {
    return times.initramfs.isEmpty() and (if (times.system) |*part| part.isEmpty() else true);
}

const testing = std.testing;

fn testReport(comptime phases: []const wire.ReadPhase, fetch_us: []const u64) wire.ReadTimeList {
    var list: wire.ReadTimeList = .empty;
    for (phases, fetch_us) |phase, duration_us| {
        var reported: Histogram = .{};
        reported.note(duration_us);
        list.append(phase, .fetch, &reported);
    }
    return list;
}

/// Answered in 90 µs.
fn testSent(request_id: u32, at_us: u64, is_repeated: bool) SentAnswer {
    return .{
        .request_id = request_id,
        .arrived_at_us = at_us - 90,
        .at_us = at_us,
        .is_repeated = is_repeated,
    };
}

test "warm and cold reads are counted apart, and the device's newest report wins" {
    var times: BootReadTimes = .{};
    try testing.expect(times.isEmpty());
    times.onRead(4096, .{ .is_cold = false, .storage_us = 3, .send_us = 40 });
    times.onRead(512, .{ .is_cold = true, .storage_us = 3000, .send_us = 50 });
    const part = &times.initramfs;
    try testing.expectEqual(1, part.warm.count());
    try testing.expectEqual(3000, part.cold.sum_us);
    try testing.expectEqual(90, part.send.sum_us);
    try testing.expectEqual(4608, part.bytes);
    const list = testReport(&.{.whole}, &.{700});
    try testing.expect(times.onReport(list.view(), false));
    try testing.expect(!times.onReport(list.view(), false));
    try testing.expectEqual(700, part.fetch.sum_us);
    try testing.expect(!times.onReport(.{}, false));
    try testing.expect(!times.isEmpty());
    try testing.expectEqual(part.*, times.whole());
}

test "a read that was sent again is later once, in the part in which it was answered" {
    var times: BootReadTimes = .{};
    times.onSent(testSent(1, 1000, false));
    times.onSent(testSent(2, 1100, false));
    times.onSent(testSent(1, 1300, true));
    times.onSent(testSent(1, 2000, true));
    const part = &times.initramfs;
    try testing.expectEqual(1, part.late.count());
    try testing.expectEqual(1000, part.late.sum_us);
    times.beginSystem(false);
    times.onSent(testSent(2, 2500, true));
    times.onSent(testSent(3, 2600, false));
    times.onSent(testSent(3, 2900, true));
    try testing.expectEqual(1, part.late.count());
    try testing.expectEqual(300, times.system.?.late.sum_us);
    try testing.expectEqual(1300, times.whole().late.sum_us);
}

test "the network's part counts once a read, in its part of the boot, and no longer than the boot" {
    var times: BootReadTimes = .{};
    for (1..5) |id| times.onSent(testSent(@intCast(id), 1000, false));
    var told: wire.FetchTimeBuffer(4) = .{};
    for ([_]u32{ 1, 1, 9, 2 }, [_]u32{ 290, 400, 400, 5001 }) |id, fetch_us|
        try testing.expect(told.append(.{ .request_id = id, .fetch_us = fetch_us }));
    times.onFetched(told.view(), 5000);
    try testing.expectEqual(1, times.initramfs.wire.count());
    try testing.expectEqual(200, times.initramfs.wire.sum_us);
    // The read whose time was too long is still unknown.
    told = .{};
    try testing.expect(told.append(.{ .request_id = 2, .fetch_us = 5000 }));
    times.onFetched(told.view(), 5000);
    try testing.expectEqual(4910, times.initramfs.wire.max_us);
    times.beginSystem(false);
    times.onFetched(told.view(), 5000);
    times.onSent(testSent(5, 2000, false));
    told = .{};
    for ([_]u32{ 3, 5 }) |id|
        try testing.expect(told.append(.{ .request_id = id, .fetch_us = 91 }));
    times.onFetched(told.view(), 5000);
    try testing.expectEqual(1, times.system.?.wire.count());
    try testing.expectEqual(1, times.system.?.wire.sum_us);
    try testing.expectEqual(3, times.whole().wire.count());
}

test "once the device reports its system, reads are the system's, and the boot's the sum" {
    var times: BootReadTimes = .{};
    times.onRead(4096, .{ .is_cold = false, .storage_us = 3, .send_us = 40 });
    _ = times.onReport(testReport(&.{.whole}, &.{600}).view(), false);
    // Nothing has been read since.
    try testing.expect(!times.onReport(testReport(&.{.initramfs}, &.{700}).view(), false));
    times.onRead(512, .{ .is_cold = true, .storage_us = 3000, .send_us = 50 });
    try testing.expect(
        times.onReport(testReport(&.{ .initramfs, .system }, &.{ 700, 90 }).view(), false),
    );
    // Retransmitted for an edge that knows no phases.
    try testing.expect(!times.onReport(testReport(&.{.whole}, &.{790}).view(), false));
    const first, const second = .{ &times.initramfs, &times.system.? };
    try testing.expectEqual([_]u64{ 4096, 1, 0, 40, 700 }, [_]u64{
        first.bytes,
        first.warm.count(),
        first.cold.count(),
        first.send.sum_us,
        first.fetch.sum_us,
    });
    try testing.expectEqual([_]u64{ 512, 0, 1, 50, 90 }, [_]u64{
        second.bytes,
        second.warm.count(),
        second.cold.count(),
        second.send.sum_us,
        second.fetch.sum_us,
    });
    const sum = times.whole();
    try testing.expectEqual(
        [_]u64{ 4608, 1, 3000, 90, 790 },
        [_]u64{ sum.bytes, sum.warm.count(), sum.cold.sum_us, sum.send.sum_us, sum.fetch.sum_us },
    );
}

test "reads that this edge served after a fail-over belong to the phase that the device is in" {
    var times: BootReadTimes = .{};
    times.onRead(512, .{ .is_cold = false, .storage_us = 3, .send_us = 40 });
    try testing.expect(
        times.onReport(testReport(&.{ .initramfs, .system }, &.{ 700, 90 }).view(), true),
    );
    try testing.expectEqual(
        [_]u64{ 0, 0, 700 },
        [_]u64{ times.initramfs.bytes, times.initramfs.warm.count(), times.initramfs.fetch.sum_us },
    );
    try testing.expectEqual(
        [_]u64{ 512, 1, 90 },
        [_]u64{ times.system.?.bytes, times.system.?.warm.count(), times.system.?.fetch.sum_us },
    );
}
