//! What an edge sends of a difference to the control plane next: the list of pieces, then those
//! that the control plane says it lacks, until it lacks none. Pure: the caller passes the time and
//! the HTTP status of each answer.

const std = @import("std");
const base = @import("base");
const store_job = @import("../uplink/store_job.zig");
const BackOff = @import("../uplink/sender.zig").BackOff;
const Pieces = @import("pieces.zig");
const assert = std.debug.assert;
const Message = store_job.Message;

pub const SendPlan = @This();

/// Missing pieces that one answer names.
const missing_max = 1024;
/// Without one accepted piece for so long, the job has failed; the control plane orders it again.
pub const silence_max_ms = 10 * std.time.ms_per_min;

pieces: Pieces,
stage: Stage = .list,
missing: base.BoundedArray(u32, missing_max) = .empty,
/// The next of `missing`.
position: u32 = 0,
sent: u32 = 0,
back_off: BackOff = .{},
progress_ms: u64,
why: Message = .empty,

const Stage = enum { list, ask, send, complete, failed };

pub const Step = union(enum) {
    list,
    ask,
    piece: u32,
    wait_until_ms: u64,
    complete,
    failed,
};

pub fn init(pieces: Pieces, now_ms: u64) SendPlan {
    return .{ .pieces = pieces, .progress_ms = now_ms };
}

pub fn next(plan: *SendPlan, now_ms: u64) Step {
    switch (plan.stage) {
        .complete => return .complete,
        .failed => return .failed,
        .list, .ask, .send => {},
    }
    if (now_ms -| plan.progress_ms >= silence_max_ms) {
        const minutes = silence_max_ms / std.time.ms_per_min;
        plan.fail("The control plane has not taken a piece for {d} minutes.", .{minutes});
        return .failed;
    }
    if (now_ms < plan.back_off.not_before_ms) return .{
        .wait_until_ms = @min(plan.back_off.not_before_ms, plan.progress_ms + silence_max_ms),
    };
    return switch (plan.stage) {
        .list => .list,
        .ask => .ask,
        .send => .{ .piece = plan.missing.buffer[plan.position] },
        .complete, .failed => unreachable,
    };
}

/// The answer to a list or a piece. `status` null: none came.
pub fn onAnswer(plan: *SendPlan, status: ?u16, at: Answered) void {
    assert(plan.stage == .list or plan.stage == .send);
    if (!plan.isAccepted(status, at)) return;
    plan.progress_ms = at.now_ms;
    if (plan.stage == .list) {
        plan.stage = .ask;
        return;
    }
    plan.sent += 1;
    plan.position += 1;
    if (plan.position == plan.missing.count) plan.stage = .ask;
}

/// The control plane lacks these pieces; null with a status that is an error.
pub fn onMissing(plan: *SendPlan, missing: ?[]const u32, status: ?u16, at: Answered) void {
    assert(plan.stage == .ask);
    if (!plan.isAccepted(status, at)) return;
    const indexes = missing orelse return plan.failMalformed();
    if (indexes.len > missing_max) return plan.failMalformed();
    for (indexes) |index| if (index >= plan.pieces.count()) return plan.failMalformed();
    if (indexes.len == 0) {
        plan.stage = .complete;
        return;
    }
    plan.missing = .empty;
    for (indexes) |index| plan.missing.appendAssumeCapacity(index);
    plan.position = 0;
    plan.stage = .send;
}

pub const Answered = struct { now_ms: u64, random: u64, retry_after_s: ?u32 = null };

fn isAccepted(plan: *SendPlan, status: ?u16, at: Answered) bool {
    const code = status orelse {
        plan.back_off.fail(at.now_ms, at.random);
        return false;
    };
    switch (code) {
        200...299 => {
            plan.back_off.reset();
            return true;
        },
        429, 500...599 => {
            const after_s = at.retry_after_s orelse 1;
            plan.back_off.wait(at.now_ms, at.random, after_s *| std.time.ms_per_s);
        },
        404 => plan.fail("The control plane does not take the difference any more.", .{}),
        409 => plan.fail("The edge's file of the difference differs from its list.", .{}),
        413 => plan.fail("The difference exceeds what the control plane keeps.", .{}),
        else => plan.fail(
            "The control plane refused the difference (HTTP status {d}).",
            .{code},
        ),
    }
    return false;
}

fn failMalformed(plan: *SendPlan) void {
    plan.fail("The control plane's list of missing pieces cannot be read.", .{});
}

fn fail(plan: *SendPlan, comptime format: []const u8, values: anytype) void {
    assert(plan.stage != .complete);
    var buffer: [store_job.message_size_max]u8 = undefined;
    plan.why = store_job.messageOf(std.mem.print(&buffer, format, values) catch unreachable);
    plan.stage = .failed;
}

const testing = std.testing;
const now: Answered = .{ .now_ms = 1000, .random = 0 };

fn testPlan() SendPlan {
    return .init(.{ .size = 2 * Pieces.piece_size + 1 }, 1000);
}

test "only missing pieces are sent, and it is done when the control plane lacks none" {
    var plan = testPlan();
    try testing.expectEqual(Step.list, plan.next(1000));
    plan.onAnswer(204, now);
    try testing.expectEqual(Step.ask, plan.next(1000));
    plan.onMissing(&.{ 0, 2 }, 200, now);
    try testing.expectEqual(Step{ .piece = 0 }, plan.next(1000));
    plan.onAnswer(204, now);
    try testing.expectEqual(Step{ .piece = 2 }, plan.next(1000));
    plan.onAnswer(204, now);
    try testing.expectEqual(Step.ask, plan.next(1000));
    plan.onMissing(&.{}, 200, now);
    try testing.expectEqual(Step.complete, plan.next(1000));
    try testing.expectEqual(2, plan.sent);
}

test "a piece without an answer, or with 503, is sent again later" {
    var plan = testPlan();
    plan.onAnswer(null, now);
    const first_ms = plan.next(1000).wait_until_ms;
    try testing.expect(first_ms > 1000);
    try testing.expectEqual(Step.list, plan.next(first_ms));
    plan.onAnswer(204, .{ .now_ms = first_ms, .random = 0 });
    plan.onMissing(&.{1}, 200, now);
    plan.onAnswer(503, .{ .now_ms = first_ms, .random = 0, .retry_after_s = 9 });
    try testing.expectEqual(first_ms + 9000, plan.next(first_ms).wait_until_ms);
    try testing.expectEqual(Step{ .piece = 1 }, plan.next(first_ms + 9000));
}

test "a refusal ends it with its reason, and so does a long silence" {
    for ([_]struct { u16, []const u8 }{
        .{ 404, "The control plane does not take the difference any more." },
        .{ 409, "The edge's file of the difference differs from its list." },
        .{ 413, "The difference exceeds what the control plane keeps." },
        .{ 418, "The control plane refused the difference (HTTP status 418)." },
    }) |case| {
        var plan = testPlan();
        plan.onAnswer(case[0], now);
        try testing.expectEqual(Step.failed, plan.next(1000));
        try testing.expectEqualStrings(case[1], plan.why.constSlice());
    }
    var silent = testPlan();
    silent.onAnswer(null, .{ .now_ms = 1000 + silence_max_ms, .random = 0 });
    try testing.expectEqual(Step.failed, silent.next(1000 + silence_max_ms));
    try testing.expectEqualStrings(
        "The control plane has not taken a piece for 10 minutes.",
        silent.why.constSlice(),
    );
}

test "missing pieces that the difference does not have are no answer" {
    const many: [missing_max + 1]u32 = @splat(0);
    for ([_]?[]const u32{ null, &.{3}, &many }) |missing| {
        var plan = testPlan();
        plan.onAnswer(204, now);
        plan.onMissing(missing, 200, now);
        try testing.expectEqual(Step.failed, plan.next(1000));
    }
}
