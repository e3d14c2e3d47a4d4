//! What a device measures of the path from its edge, for NETWORK (packages/proto/STREAM.md, "What
//! the network does"): lost packets by the numbers of sealed ones, holes in answers, order, and the
//! round trip of small PROBEs. Producer: the stream client; consumer: its edge. Of fixed size and
//! without a clock; it explains, and decides nothing. Its figures end with the boot.

const std = @import("std");
const wire = @import("wire").stream;
const PathMtu = @import("../congestion/path_mtu.zig");
const RttSketch = @import("../congestion/rtt_sketch.zig");
const step = @import("step.zig");
const assert = std.debug.assert;

pub const NetworkTally = @This();

/// So many PROBEs are sent for the round trip, at most: a minute's, four a second.
const probes_max = 240;
/// Repetitions of the final figures: NETWORK is not acknowledged.
const final_sends_max = 3;

/// Of earlier sessions, and of this one before its count began again.
expected_before: u64 = 0,
lost_before: u64 = 0,
runs: u32 = 0,
run_packets: u32 = 0,
run_max: u16 = 0,
ordered: u32 = 0,
reordered: u32 = 0,
reorder_max: u16 = 0,
rtt: RttSketch = .{},
probes: u16 = 0,
probe_at_us: u64 = 0,
/// The PROBE that waits for its answer.
probe_id: ?u32 = null,
probe_sent_at_us: u64 = 0,
/// NETWORK goes before the next REPORT or READY.
is_due: bool = false,
/// The figures at the end of the boot.
final: ?wire.Network = null,
final_sends: u8 = 0,

/// The session's packets are counted no more, or from its newest one on.
pub fn settle(tally: *NetworkTally, protection: *step.Protection, path: *const PathMtu) void {
    const lost = lostOf(protection, path);
    tally.expected_before += protection.expected();
    tally.lost_before += lost;
    protection.beginCount();
    assert(tally.lost_before <= tally.expected_before);
}

/// Smaller packets pass a path that does not take the size in use: what was lost for its size is
/// no loss, and PathMtu knows of it.
pub fn excuse(tally: *NetworkTally, protection: *step.Protection) void {
    assert(protection.arrived <= protection.expected());
    tally.expected_before += protection.arrived;
    protection.beginCount();
}

/// A fragment of a READ's first answer arrived; `beyond` is the index behind the highest one before
/// it.
pub fn onFragment(tally: *NetworkTally, index: u16, beyond: u16) void {
    if (tally.final != null) return;
    tally.ordered +|= 1;
    if (index >= beyond) return;
    tally.reordered +|= 1;
    tally.reorder_max = @max(tally.reorder_max, beyond - index);
}

/// An answer of which something has arrived lacks these.
pub fn onHoles(tally: *NetworkTally, holes: wire.Ranges) void {
    if (tally.final != null) return;
    for (0..holes.count()) |index| {
        const size = holes.at(@intCast(index)).fragment_count;
        tally.runs +|= 1;
        tally.run_packets +|= size;
        tally.run_max = @max(tally.run_max, size);
    }
    assert(tally.run_max <= tally.run_packets);
}

/// Returns when a PROBE is due; null: never.
pub fn probeAt(tally: *const NetworkTally, interval_us: u64) ?u64 {
    if (interval_us == 0 or tally.final != null or tally.probes >= probes_max) return null;
    return tally.probe_at_us;
}

/// Returns whether a PROBE with this id is to be sent now.
pub fn takeProbe(tally: *NetworkTally, now_us: u64, request_id: u32, interval_us: u64) bool {
    const at_us = tally.probeAt(interval_us) orelse return false;
    if (now_us < at_us) return false;
    assert(tally.probes < probes_max);
    tally.probes += 1;
    tally.probe_at_us = now_us + interval_us;
    tally.probe_id = request_id;
    tally.probe_sent_at_us = now_us;
    return true;
}

pub fn onProbeAnswer(tally: *NetworkTally, now_us: u64, request_id: u32) void {
    if (tally.final != null or tally.probe_id != request_id) return;
    tally.probe_id = null;
    tally.rtt.note(now_us -| tally.probe_sent_at_us);
}

/// A REPORT is about to be sent.
pub fn onReport(tally: *NetworkTally) void {
    assert(tally.final_sends <= final_sends_max);
    if (tally.final_sends < final_sends_max) tally.is_due = true;
}

pub const View = struct {
    card: wire.NetworkCard,
    protection: *const step.Protection,
    path: *const PathMtu,
    /// No READ waits for its answer.
    is_settled: bool,
};

/// The boot is over: the figures stay as they are now.
pub fn finish(tally: *NetworkTally, view: View) void {
    if (tally.final != null) return;
    assert(tally.final_sends == 0);
    var figures = tally.now(view);
    figures.is_final = true;
    tally.final = figures;
    tally.is_due = true;
}

/// Returns the body of the NETWORK that is due; null: none is.
pub fn take(tally: *NetworkTally, view: View) ?wire.Network {
    if (!tally.is_due) return null;
    tally.is_due = false;
    const final = tally.final orelse return tally.now(view);
    assert(tally.final_sends < final_sends_max);
    tally.final_sends += 1;
    return final;
}

fn now(tally: *const NetworkTally, view: View) wire.Network {
    const lost_size = view.path.lostSize();
    const expected = tally.expected_before + view.protection.expected();
    const lost = tally.lost_before + lostOf(view.protection, view.path);
    const figures: wire.Network = .{
        .card = view.card,
        .is_settled = view.is_settled,
        .size_max = view.path.size_max,
        .size = view.path.size,
        .size_lost = if (lost_size) |found| found.size else 0,
        .size_lost_count = if (lost_size) |found| found.count else 0,
        .expected = std.math.lossyCast(u32, expected),
        .lost = std.math.lossyCast(u32, lost),
        .runs = tally.runs,
        .run_packets = tally.run_packets,
        .run_max = tally.run_max,
        .ordered = tally.ordered,
        .reordered = tally.reordered,
        .reorder_max = tally.reorder_max,
        .rtt_count = tally.rtt.count,
        .rtt_min_us = if (tally.rtt.count > 0) tally.rtt.min_us else 0,
        .rtt_p50_us = tally.rtt.quantile(50),
        .rtt_p95_us = tally.rtt.quantile(95),
    };
    assert(figures.isValid());
    return figures;
}

/// Without the answers to PROBEs of sizes that may not pass.
fn lostOf(protection: *const step.Protection, path: *const PathMtu) u64 {
    const expected = protection.expected();
    assert(protection.arrived <= expected);
    return expected - protection.arrived -| path.probes_lost;
}

const testing = std.testing;

fn protectionOf(newest: u64, arrived: u64) step.Protection {
    var protection: step.Protection = .{ .counted_from = 100, .arrived = arrived };
    protection.from_edge.cipher = .aegis_128l;
    protection.taken.note(newest);
    return protection;
}

fn viewOf(protection: *const step.Protection, path: *const PathMtu) View {
    return .{ .card = .{}, .protection = protection, .path = path, .is_settled = true };
}

test "lost packets are the numbers that never arrived, of all sessions, but for large probes" {
    var tally: NetworkTally = .{};
    var path: PathMtu = .{ .probes_lost = 2 };
    var protection = protectionOf(200, 93);
    tally.is_due = true;
    const first = tally.take(viewOf(&protection, &path)).?;
    try testing.expectEqual(100, first.expected);
    try testing.expectEqual(5, first.lost);
    try testing.expectEqual(null, tally.take(viewOf(&protection, &path)));
    tally.settle(&protection, &path);
    try testing.expectEqual(0, protection.expected());
    path.probes_lost = 0;
    var next = protectionOf(150, 50);
    tally.is_due = true;
    const both = tally.take(viewOf(&next, &path)).?;
    try testing.expectEqual(150, both.expected);
    try testing.expectEqual(5, both.lost);
    // Lost for their size.
    next = protectionOf(150, 20);
    tally.excuse(&next);
    tally.is_due = true;
    const excused = tally.take(viewOf(&next, &path)).?;
    try testing.expectEqual(120, excused.expected);
    try testing.expectEqual(5, excused.lost);
}

test "in clear text no packet has a number, and none is known to be lost" {
    var tally: NetworkTally = .{ .is_due = true };
    var protection: step.Protection = .{ .id = 7 };
    var path: PathMtu = .{};
    protection.taken.note(5000);
    try testing.expectEqual(0, tally.take(viewOf(&protection, &path)).?.expected);
}

test "packets that a later one overtook are counted with the longest distance, holes as runs" {
    var tally: NetworkTally = .{};
    const order = [_]u16{ 0, 1, 4, 2, 3, 5, 9, 6 };
    var beyond: u16 = 0;
    for (order) |index| {
        tally.onFragment(index, beyond);
        beyond = @max(beyond, index + 1);
    }
    try testing.expectEqual(8, tally.ordered);
    try testing.expectEqual(3, tally.reordered);
    try testing.expectEqual(4, tally.reorder_max);
    var holes: wire.RangeList = .{};
    try holes.append(.{ .first_fragment = 1, .fragment_count = 1 });
    try holes.append(.{ .first_fragment = 7, .fragment_count = 5 });
    tally.onHoles(holes.view());
    try testing.expectEqual(2, tally.runs);
    try testing.expectEqual(6, tally.run_packets);
    try testing.expectEqual(5, tally.run_max);
}

test "the round trip is that of probes, of which there are not more than a minute's" {
    var tally: NetworkTally = .{};
    try testing.expect(!tally.takeProbe(0, 1, 0));
    var now_us: u64 = 1000;
    var id: u32 = 0;
    while (tally.probeAt(250) != null) : (now_us += 250) {
        id += 1;
        try testing.expect(tally.takeProbe(now_us, id, 250));
        try testing.expect(!tally.takeProbe(now_us + 249, id + 1, 250));
        // The answer to an earlier one says nothing any more.
        tally.onProbeAnswer(now_us + 40, id - 1);
        if (id % 2 == 0) tally.onProbeAnswer(now_us + 100, id);
        tally.onProbeAnswer(now_us + 200, id + 1);
    }
    try testing.expectEqual(probes_max, id);
    try testing.expectEqual(probes_max / 2, tally.rtt.count);
    try testing.expectEqual(100, tally.rtt.min_us);
}

test "figures end with the boot, and are sent three times more" {
    var tally: NetworkTally = .{};
    var protection = protectionOf(110, 10);
    const path: PathMtu = .{};
    tally.onFragment(0, 0);
    tally.finish(viewOf(&protection, &path));
    tally.onFragment(1, 5);
    protection.arrived = 9;
    for (0..3) |_| {
        const sent = tally.take(viewOf(&protection, &path)).?;
        try testing.expect(sent.is_final);
        try testing.expectEqual(0, sent.lost);
        try testing.expectEqual(1, sent.ordered);
        tally.onReport();
    }
    try testing.expectEqual(null, tally.take(viewOf(&protection, &path)));
    try testing.expectEqual(null, tally.probeAt(250));
}
