//! The stream client's part of REPORT (packages/proto/STREAM.md): the newest report until it is
//! acknowledged, steps until they are acknowledged once, and the latest order.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const ReadTimes = @import("read_times.zig");
const RttEstimator = @import("../congestion/rtt.zig");
const step = @import("step.zig");

pub const ReportState = @This();

/// A REPORT that stays unacknowledged after this many transmissions is cut to what every path
/// takes.
const whole_count_max = 4;
const whole_us_max = 500 * std.time.us_per_ms;
/// Bytes of steps and read times in a packet of the smallest size.
const cut_size_max = wire.packet_size_min - wire.tag_size - wire.report_size_min;
const assert = std.debug.assert;

/// The latest report; null before the first.
newest: ?step.Report = null,
/// When `newest` was made; its uptime continues from there.
said_at_us: u64 = 0,
steps: wire.StepList = .empty,
steps_acknowledged: bool = false,
/// By phase where the device distinguishes them, and of the whole boot.
read_times: wire.ReadTimeList = .empty,
whole_read_times: wire.ReadTimeList = .empty,
/// Zeros before the first.
order_id: [16]u8 = @splat(0),
request_id: u32 = 0,
/// Request id of the complete report; differs from `request_id` when that one is cut.
request_id_whole: u32 = 0,
sent_count: u8 = 0,
first_sent_at_us: u64 = 0,
acknowledged: bool = true,
/// MACHINE was sent before the next transmission.
has_machine: bool = false,
due_at_us: u64 = 0,
timeout_us: u64 = 0,

pub const Acknowledgement = union(enum) {
    /// Not for the report that waits for its acknowledgement.
    late,
    /// The edge knows everything reported.
    known,
    /// A new order; taken now, so that the next report confirms it.
    order: step.Order,
};

/// Replaces the previous report; steps stay if `report` has none.
pub fn set(
    state: *ReportState,
    now_us: u64,
    report: step.Report,
    read_times: *const ReadTimes,
) void {
    state.newest = report;
    state.read_times = read_times.list();
    state.whole_read_times = read_times.listWhole();
    state.said_at_us = now_us;
    if (report.steps.count == 0 or report.steps.eql(state.steps.view())) return;
    state.steps.set(report.steps);
    state.steps_acknowledged = false;
}

/// Sends the current report under `request_id`, at once and until it is acknowledged.
pub fn send(state: *ReportState, now_us: u64, request_id: u32, timeout_us: u64) void {
    assert(state.newest != null);
    state.request_id = request_id;
    state.beginWhole();
    state.acknowledged = false;
    state.due_at_us = now_us;
    state.timeout_us = timeout_us;
}

/// Retransmits everything to an edge that knows nothing yet.
pub fn retransmitAll(state: *ReportState, timeout_us: u64) void {
    if (state.newest == null) return;
    assert(timeout_us > 0);
    state.steps_acknowledged = false;
    state.acknowledged = false;
    state.timeout_us = timeout_us;
}

/// In a new session the report is sent at once and complete.
pub fn beginSession(state: *ReportState, now_us: u64) void {
    state.beginWhole();
    state.due_at_us = now_us;
}

fn beginWhole(state: *ReportState) void {
    state.request_id_whole = state.request_id;
    state.sent_count = 0;
}

/// Returns when REPORT is sent next; null: nothing waits for an acknowledgement.
pub fn dueAt(state: *const ReportState) ?u64 {
    return if (state.acknowledged) null else state.due_at_us;
}

/// Returns REPORT when it is due. `request_id_next` is unused yet; this report gets it if it is cut
/// from now on.
pub fn transmit(state: *ReportState, now_us: u64, request_id_next: u32) ?wire.Report {
    if (state.acknowledged or now_us < state.due_at_us) return null;
    const newest = state.newest.?;
    state.has_machine = false;
    state.due_at_us = now_us + state.timeout_us;
    state.timeout_us = @min(state.timeout_us * 2, RttEstimator.rto_us_max);
    assert(state.timeout_us > 0);
    var steps: wire.Steps = if (state.steps_acknowledged) .{} else state.steps.view();
    // An edge that knows no phases does not acknowledge them: every other transmission, and always
    // the last count, has the form that it knows.
    const read_times =
        if (state.sent_count % 2 == 0) &state.read_times else &state.whole_read_times;
    // If both do not fit, the next report has them.
    var fits = steps.bytes.len + read_times.size <= wire.steps_size_max;
    if (state.sent_count == 0) state.first_sent_at_us = now_us;
    state.sent_count +|= 1;
    const may_pass = state.sent_count <= whole_count_max or
        now_us -| state.first_sent_at_us < whole_us_max;
    if (!may_pass and steps.bytes.len > cut_size_max) {
        if (state.request_id == state.request_id_whole) state.request_id = request_id_next;
        fits = read_times.size <= cut_size_max;
        steps = steps.firstWithin(if (fits) cut_size_max - read_times.size else cut_size_max);
    } else if (!may_pass and steps.bytes.len + read_times.size > cut_size_max) fits = false;
    assert(steps.bytes.len <= wire.steps_size_max);
    return .{
        .uptime_us = newest.uptime_us +| (now_us -| state.said_at_us),
        .order_id = state.order_id,
        .write_cache_used = if (newest.write_cache) |cache| @min(cache.used, cache.size) else 0,
        .write_cache_size = if (newest.write_cache) |cache| cache.size else 0,
        .steps = steps,
        .read_times = if (fits) read_times.view() else .{},
    };
}

pub fn acknowledge(state: *ReportState, request_id: u32, ack: wire.ReportAck) Acknowledgement {
    const is_whole = request_id == state.request_id_whole;
    if (state.acknowledged or !is_whole and request_id != state.request_id) return .late;
    assert(state.newest != null);
    state.acknowledged = true;
    // The omitted part is in the next report.
    if (is_whole) state.steps_acknowledged = true;
    return if (state.takeOrder(ack)) |order| .{ .order = order } else .known;
}

/// Returns the order that an edge's answer carries, the first time.
pub fn takeOrder(state: *ReportState, ack: wire.ReportAck) ?step.Order {
    const kind: step.Order.Kind = switch (ack.order) {
        .none => return null,
        .power_off => .power_off,
        .restart => .restart,
    };
    if (std.mem.eql(u8, &ack.order_id, &state.order_id)) return null;
    state.order_id = ack.order_id;
    return .{ .kind = kind, .id = .fromBytes(ack.order_id) };
}

const testing = std.testing;

fn firstPhase(report: wire.Report) wire.ReadPhase {
    var entries = report.read_times.iterate();
    return entries.next().?.phase;
}

test "read times are sent by phase, every other retransmission those of the whole boot" {
    var times: ReadTimes = .{};
    times.onFetch(5);
    times.beginSystem();
    times.onFetch(7);
    var state: ReportState = .{};
    state.set(0, .{ .uptime_us = 1 }, &times);
    state.send(0, 1, 10);
    const expected = [_]wire.ReadPhase{ .initramfs, .whole, .initramfs, .whole };
    for (expected) |phase| {
        const report = state.transmit(state.dueAt().?, 9).?;
        try testing.expectEqual(phase, firstPhase(report));
        try testing.expectEqual(@as(u8, if (phase == .whole) 1 else 2), report.read_times.count);
    }
    // The next report starts over, and so does one for another edge.
    state.send(1000, 2, 10);
    try testing.expectEqual(.initramfs, firstPhase(state.transmit(1000, 9).?));
    state.retransmitAll(10);
    state.beginSession(2000);
    try testing.expectEqual(.initramfs, firstPhase(state.transmit(2000, 9).?));
}

test "read times by phase that do not fit beside steps are replaced by the shorter sum" {
    var times: ReadTimes = .{};
    times.onFetch(5);
    times.beginSystem();
    times.onFetch(7);
    times.onFetch(16);
    var steps: wire.StepList = .empty;
    while (steps.size + 50 <= wire.steps_size_max) try steps.append(
        .{ .group = .unit, .name = &@as([32]u8, @splat('x')), .start_us = 0, .duration_us = 1 },
    );
    const left = wire.steps_size_max - steps.size;
    try testing.expect(left >= times.listWhole().size and left < times.list().size);
    var state: ReportState = .{};
    state.set(0, .{ .uptime_us = 1, .steps = steps.view() }, &times);
    state.send(0, 1, 10);
    try testing.expectEqual(0, state.transmit(0, 9).?.read_times.count);
    try testing.expectEqual(1, state.transmit(state.dueAt().?, 9).?.read_times.count);
}

test "on a narrow path a report has the read times that fit, by phase or of the whole boot" {
    var times: ReadTimes = .{};
    for (0..12) |bit| times.onFetch(@as(u64, 1) << @intCast(bit));
    times.beginSystem();
    for (12..23) |bit| times.onFetch(@as(u64, 1) << @intCast(bit));
    var steps: wire.StepList = .empty;
    while (cut_size_max - steps.size >= times.list().size)
        try steps.append(.{ .group = .unit, .name = "x", .start_us = 0, .duration_us = 1 });
    try testing.expect(cut_size_max - steps.size >= times.listWhole().size);
    var state: ReportState = .{};
    state.set(0, .{ .uptime_us = 1, .steps = steps.view() }, &times);
    state.send(0, 1, whole_us_max);
    for (0..whole_count_max) |_|
        try testing.expect(state.transmit(state.dueAt().?, 9).?.read_times.count > 0);
    try testing.expectEqual(0, state.transmit(state.dueAt().?, 9).?.read_times.count);
    const report = state.transmit(state.dueAt().?, 9).?;
    try testing.expectEqual(steps.count, report.steps.count);
    try testing.expectEqual(.whole, firstPhase(report));
}
