//! Which part of a difference an edge asks for next, and where: from the other edges of its site
//! first, in the order of the job, and from the control plane if the job allows it and no edge has
//! sent anything for a while. A source that sends wrong bytes is left for good and named. Pure: the
//! caller passes the time, does what `next` says, and tells the outcome.

const std = @import("std");
const base = @import("base");
const difference_order = @import("../uplink/difference_order.zig");
const store_job = @import("../uplink/store_job.zig");
const Pieces = @import("pieces.zig");
const assert = std.debug.assert;
const Message = store_job.Message;

pub const FetchPlan = @This();

pub const peers_max = difference_order.sources_max;
/// Index of the control plane among the sources.
pub const control_plane = peers_max;
const sources_max = peers_max + 1;

/// Edges that are asked have this long to send something before the control plane is asked: an edge
/// that restarts, or that gets the piece itself just then, is quicker than the site's line.
pub const patience_ms = 30_000;
/// An edge that says that it gets the difference itself is waited for this long: so each byte comes
/// over the site's line once.
pub const absent_patience_ms = 180_000;
/// Without one new piece for so long, the job has failed; the control plane orders it again.
pub const silence_max_ms = 10 * std.time.ms_per_min;
/// An edge that gets the difference itself has the piece a little later.
const absent_wait_ms = 200;
/// An edge that has none of it yet may wait for its own jobs.
const unknown_wait_ms = 1_000;
/// An edge that gets the difference itself is waited for so long before the next one is asked. So a
/// site fills like a chain: each edge sends each piece once. Without it, all edges would ask the
/// one that has the newest piece, whose rate is limited.
const chain_patience_ms = 3_000;
const retry_first_ms = 500;
const retry_most_ms = 15_000;

pieces: Pieces,
/// One for each piece; the caller's memory.
held: []bool,
missing: u32,
has_list: bool = false,
/// Edges, then the control plane.
sources: [sources_max]Source = @splat(.{}),
peer_count: u8,
from_control_plane: bool,
/// No piece before it is missing.
cursor: u32 = 0,
begun_ms: u64,
/// When a source last sent something right.
progress_ms: u64,
/// When an edge last sent something right, or said that it gets the difference itself.
peer_alive_ms: u64,

const Source = struct {
    fault: ?Fault = null,
    not_before_ms: u64 = 0,
    failures: u8 = 0,
    last: ?Outcome = null,
    /// Since when it has had no piece that it was asked for.
    absent_since_ms: ?u64 = null,
};

/// Why a source is not asked any more.
pub const Fault = enum { wrong_list, wrong_piece, gone, refused };

pub const Outcome = union(enum) {
    /// Right: the list, or the piece.
    taken,
    /// Other bytes than the job and the list name.
    wrong,
    /// The source is well, and does not have this piece yet.
    absent,
    /// The source is well, and has nothing of the difference yet.
    unknown,
    /// No connection, or no answer in time.
    unreachable_source,
    /// The source is too busy, and says for how long.
    later: u32,
    /// The source will never have it: it was deleted, or is not this job's.
    gone,
    refused,
};

pub const Step = union(enum) {
    list: u8,
    piece: struct { index: u32, source: u8 },
    /// Nobody can be asked before.
    wait_until_ms: u64,
    complete,
    failed,
};

pub const Options = struct {
    pieces: Pieces,
    held: []bool,
    peer_count: u8,
    from_control_plane: bool,
};

pub fn init(options: Options, now_ms: u64) FetchPlan {
    assert(options.held.len == options.pieces.count());
    assert(options.peer_count <= peers_max);
    @memset(options.held, false);
    return .{
        .pieces = options.pieces,
        .held = options.held,
        .missing = options.pieces.count(),
        .peer_count = options.peer_count,
        .from_control_plane = options.from_control_plane,
        .begun_ms = now_ms,
        .progress_ms = now_ms,
        .peer_alive_ms = now_ms,
    };
}

/// The list is on this edge's disk.
pub fn onListHeld(plan: *FetchPlan) void {
    assert(!plan.has_list);
    plan.has_list = true;
}

/// A piece is on this edge's disk, and right.
pub fn onHeld(plan: *FetchPlan, index: u32) void {
    assert(plan.has_list);
    assert(!plan.held[index]);
    plan.held[index] = true;
    plan.missing -= 1;
}

pub fn doneBytes(plan: *const FetchPlan) u64 {
    const last = plan.pieces.count() - 1;
    const missing_bytes = @as(u64, plan.missing) * Pieces.piece_size;
    const shorter: u64 = if (plan.held[last]) 0 else Pieces.piece_size - plan.pieces.sizeOf(last);
    return plan.pieces.size - (missing_bytes - shorter);
}

pub fn next(plan: *FetchPlan, now_ms: u64) Step {
    if (plan.has_list and plan.missing == 0) return .complete;
    if (now_ms -| plan.progress_ms >= silence_max_ms) return .failed;
    const source = plan.chooseSource(now_ms) orelse return plan.waitStep(now_ms);
    if (!plan.has_list) return .{ .list = source };
    while (plan.held[plan.cursor]) plan.cursor += 1;
    return .{ .piece = .{ .index = plan.cursor, .source = source } };
}

fn chooseSource(plan: *const FetchPlan, now_ms: u64) ?u8 {
    for (plan.sources[0..plan.peer_count], 0..) |*peer, index| {
        if (peer.fault != null) continue;
        if (now_ms >= peer.not_before_ms) return @intCast(index);
        if (plan.isAwaited(peer, now_ms)) return null;
    }
    if (!plan.mayAskControlPlane(now_ms)) return null;
    return if (now_ms >= plan.sources[control_plane].not_before_ms) control_plane else null;
}

/// One that was ahead of this edge until a moment ago. One that is behind, or stands still with
/// this edge, is not waited for.
fn isAwaited(plan: *const FetchPlan, peer: *const Source, now_ms: u64) bool {
    const last = peer.last orelse return false;
    const absent_since_ms = peer.absent_since_ms orelse return false;
    if (last != .absent) return false;
    return now_ms < @min(absent_since_ms, plan.progress_ms) + chain_patience_ms;
}

fn mayAskControlPlane(plan: *const FetchPlan, now_ms: u64) bool {
    if (!plan.from_control_plane or plan.sources[control_plane].fault != null) return false;
    if (now_ms >= plan.patientUntil()) return true;
    for (plan.sources[0..plan.peer_count]) |*peer| if (peer.fault == null) return false;
    return true;
}

fn patientUntil(plan: *const FetchPlan) u64 {
    return @min(plan.peer_alive_ms + patience_ms, plan.progress_ms + absent_patience_ms);
}

fn waitStep(plan: *const FetchPlan, now_ms: u64) Step {
    var until_ms: ?u64 = null;
    for (plan.sources[0..plan.peer_count]) |*peer| if (peer.fault == null) {
        until_ms = @min(until_ms orelse peer.not_before_ms, peer.not_before_ms);
        if (plan.isAwaited(peer, now_ms)) return .{ .wait_until_ms = until_ms.? };
    };
    const control = &plan.sources[control_plane];
    if (plan.from_control_plane and control.fault == null) {
        // With no edge left to be patient with, it is asked at once.
        const is_alone = until_ms == null;
        const patient_ms = if (is_alone) 0 else plan.patientUntil();
        const asked_ms = @max(control.not_before_ms, patient_ms);
        until_ms = @min(until_ms orelse asked_ms, asked_ms);
    }
    const soonest_ms = until_ms orelse return .failed;
    assert(soonest_ms > now_ms);
    return .{ .wait_until_ms = @min(soonest_ms, plan.progress_ms + silence_max_ms) };
}

/// What came of a step that asked a source.
pub fn onOutcome(plan: *FetchPlan, step: Step, outcome: Outcome, now_ms: u64) void {
    const index = switch (step) {
        .list => |source| source,
        .piece => |piece| piece.source,
        .wait_until_ms, .complete, .failed => unreachable,
    };
    assert(index < plan.peer_count or index == control_plane);
    const source = &plan.sources[index];
    assert(source.fault == null);
    source.last = outcome;
    switch (outcome) {
        .taken => {
            source.failures = 0;
            source.absent_since_ms = null;
            plan.progress_ms = now_ms;
            if (index != control_plane) plan.peer_alive_ms = now_ms;
            switch (step) {
                .list => plan.onListHeld(),
                .piece => |piece| plan.onHeld(piece.index),
                .wait_until_ms, .complete, .failed => unreachable,
            }
        },
        .wrong => source.fault = if (step == .list) .wrong_list else .wrong_piece,
        .absent => {
            source.not_before_ms = now_ms + absent_wait_ms;
            if (source.absent_since_ms == null) source.absent_since_ms = now_ms;
            if (index != control_plane) plan.peer_alive_ms = now_ms;
        },
        .unknown => source.not_before_ms = now_ms + unknown_wait_ms,
        .unreachable_source => {
            const doublings: u6 = @min(source.failures, 5);
            const wait_ms = @min(@as(u64, retry_first_ms) << doublings, retry_most_ms);
            source.failures +|= 1;
            source.not_before_ms = now_ms + wait_ms;
        },
        .later => |after_ms| {
            const wait_ms = std.math.clamp(after_ms, retry_first_ms, 300_000);
            source.not_before_ms = now_ms + wait_ms;
        },
        .gone => source.fault = .gone,
        .refused => source.fault = .refused,
    }
}

/// Names the sources that sent wrong bytes, for a person; empty: none did. `peers` as in the job.
pub fn liars(plan: *const FetchPlan, peers: []const base.Uuid) Message {
    var buffer: [store_job.message_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    for (&plan.sources, 0..) |*source, index| {
        const fault = source.fault orelse continue;
        const what = switch (fault) {
            .wrong_list => "a wrong list of pieces",
            .wrong_piece => "a wrong piece",
            .gone, .refused => continue,
        };
        const before: []const u8 = if (writer.end == 0) "" else "; ";
        // The first ones are enough for a message.
        if (index == control_plane)
            writer.print("{s}the control plane sent {s}", .{ before, what }) catch break
        else
            writer.print("{s}edge {f} sent {s}", .{ before, peers[index], what }) catch break;
    }
    return store_job.messageOf(writer.buffered());
}

/// Says why the plan failed, for a person.
pub fn failure(plan: *const FetchPlan, peers: []const base.Uuid) Message {
    assert(peers.len == plan.peer_count);
    var buffer: [2 * store_job.message_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    plan.writeFailure(peers, &writer) catch {};
    return store_job.messageOf(writer.buffered());
}

fn writeFailure(
    plan: *const FetchPlan,
    peers: []const base.Uuid,
    writer: *std.Io.Writer,
) std.Io.Writer.Error!void {
    const said = plan.liars(peers);
    if (said.count > 0) try writer.print("{s}. ", .{said.constSlice()});
    const control = &plan.sources[control_plane];
    if (plan.from_control_plane) switch (control.fault orelse .wrong_list) {
        .gone => return writer.writeAll(
            "The difference is gone from the control plane, and no edge of the site sent it.",
        ),
        .refused => return writer.writeAll("The control plane refused to send the difference."),
        .wrong_list, .wrong_piece => {},
    };
    if (!plan.hasSource())
        return writer.writeAll("No edge and no control plane is left to ask for the difference.");
    const minutes = silence_max_ms / std.time.ms_per_min;
    try writer.print("No piece came for {d} minutes", .{minutes});
    for (plan.sources[0..plan.peer_count], 0..) |*peer, index| {
        if (peer.fault != null) continue;
        const last = peer.last orelse continue;
        const what: []const u8 = switch (last) {
            .unreachable_source => "cannot be reached",
            .absent, .unknown => "does not have it",
            .later => "is too busy",
            .taken, .wrong, .gone, .refused => continue,
        };
        return writer.print(": edge {f} {s}.", .{ peers[index], what });
    }
    return writer.writeAll(": the control plane cannot be reached.");
}

fn hasSource(plan: *const FetchPlan) bool {
    if (plan.from_control_plane and plan.sources[control_plane].fault == null) return true;
    for (plan.sources[0..plan.peer_count]) |*peer| if (peer.fault == null) return true;
    return false;
}

test {
    _ = @import("fetch_plan_test.zig");
}
