//! What the stream client keeps of the device's REPORT (packages/proto/STREAM.md): the newest one until it is
//! acknowledged, the steps until they are acknowledged once, and the order taken last.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const RoundTrip = @import("round_trip.zig");
const step = @import("stream_client_step.zig");

pub const ReportState = @This();

/// What the device said last; null before it has said anything.
newest: ?step.Report = null,
/// When `newest` was said; its uptime goes on from there.
said_at_us: u64 = 0,
steps: wire.StepList = .empty,
steps_acknowledged: bool = false,
read_times: wire.ReadTimeList = .empty,
/// Zeros before the first.
order_id: [16]u8 = @splat(0),
request_id: u32 = 0,
acknowledged: bool = true,
due_at_us: u64 = 0,
timeout_us: u64 = 0,

pub const Acknowledgement = union(enum) {
    /// Not of the report that waits for it.
    late,
    /// The edge knows everything that was said.
    known,
    /// An order that was not taken before; taken now, so that the next report says so.
    order: step.Order,
};

/// Replaces what was said before; steps stay when there are none in `report`.
pub fn say(state: *ReportState, now_us: u64, report: step.Report, read_times: *const wire.ReadTimeList) void {
    state.newest = report;
    state.read_times = read_times.*;
    state.said_at_us = now_us;
    if (report.steps.count == 0 or report.steps.eql(state.steps.view())) return;
    state.steps.set(report.steps);
    state.steps_acknowledged = false;
}

/// Sends what is known now under `request_id`, at once and until it is acknowledged.
pub fn send(state: *ReportState, now_us: u64, request_id: u32, timeout_us: u64) void {
    state.request_id = request_id;
    state.acknowledged = false;
    state.due_at_us = now_us;
    state.timeout_us = timeout_us;
}

/// An edge that has heard nothing yet has to know it all.
pub fn sayAllAgain(state: *ReportState, timeout_us: u64) void {
    if (state.newest == null) return;
    state.steps_acknowledged = false;
    state.acknowledged = false;
    state.timeout_us = timeout_us;
}

/// When REPORT goes out next; null: nothing waits for its acknowledgement.
pub fn dueAt(state: *const ReportState) ?u64 {
    return if (state.acknowledged) null else state.due_at_us;
}

/// REPORT when it is due.
pub fn transmit(state: *ReportState, now_us: u64) ?wire.Report {
    if (state.acknowledged or now_us < state.due_at_us) return null;
    const newest = state.newest.?;
    state.due_at_us = now_us + state.timeout_us;
    state.timeout_us = @min(state.timeout_us * 2, RoundTrip.timeout_us_max);
    const cache = newest.write_cache orelse step.WriteCache{ .used = 0, .size = 0 };
    const steps: wire.Steps = if (state.steps_acknowledged) .{} else state.steps.view();
    // Where there is no room for both, the next report has them.
    const has_room = steps.bytes.len + state.read_times.size <= wire.steps_size_max;
    return .{
        .uptime_us = newest.uptime_us +| (now_us -| state.said_at_us),
        .order_id = state.order_id,
        .write_cache_used = @min(cache.used, cache.size),
        .write_cache_size = cache.size,
        .steps = steps,
        .read_times = if (has_room) state.read_times.view() else .{},
    };
}

pub fn acknowledge(state: *ReportState, request_id: u32, ack: wire.ReportAck) Acknowledgement {
    if (state.acknowledged or state.request_id != request_id) return .late;
    state.acknowledged = true;
    state.steps_acknowledged = true;
    const order: step.Order.Kind = switch (ack.order) {
        .none => return .known,
        .power_off => .power_off,
        .restart => .restart,
    };
    if (std.mem.eql(u8, &ack.order_id, &state.order_id)) return .known;
    state.order_id = ack.order_id;
    return .{ .order = .{ .kind = order, .id = .fromBytes(ack.order_id) } };
}
