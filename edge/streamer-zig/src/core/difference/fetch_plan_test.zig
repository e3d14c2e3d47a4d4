//! Tests fetch_plan.zig.

const std = @import("std");
const base = @import("base");
const FetchPlan = @import("fetch_plan.zig");
const Pieces = @import("pieces.zig");
const testing = std.testing;

const control_plane = FetchPlan.control_plane;
const ids = [_]base.Uuid{ .fromRandom(@splat(1)), .fromRandom(@splat(2)) };
const three: Pieces = .{ .size = 2 * Pieces.piece_size + 5 };

fn planOf(held: []bool, peer_count: u8, from_control_plane: bool) FetchPlan {
    return .init(.{
        .pieces = .{ .size = (held.len - 1) * Pieces.piece_size + 5 },
        .held = held,
        .peer_count = peer_count,
        .from_control_plane = from_control_plane,
    }, 1000);
}

fn sourceOf(step: FetchPlan.Step) ?u8 {
    return switch (step) {
        .list => |source| source,
        .piece => |piece| piece.source,
        .wait_until_ms, .complete, .failed => null,
    };
}

fn take(plan: *FetchPlan, outcome: FetchPlan.Outcome, now_ms: u64) !void {
    const step = plan.next(now_ms);
    try testing.expect(sourceOf(step) != null);
    plan.onOutcome(step, outcome, now_ms);
}

test "the list comes first, then each missing piece once, in order" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 1, false);
    try testing.expectEqual(FetchPlan.Step{ .list = 0 }, plan.next(1000));
    try take(&plan, .taken, 1000);
    try testing.expectEqual(0, plan.doneBytes());
    // An earlier process has fetched it.
    plan.onHeld(1);
    try testing.expectEqual(Pieces.piece_size, plan.doneBytes());
    try testing.expectEqual(0, plan.next(1001).piece.index);
    try take(&plan, .taken, 1001);
    try testing.expectEqual(2, plan.next(1002).piece.index);
    try take(&plan, .taken, 1002);
    try testing.expectEqual(three.size, plan.doneBytes());
    try testing.expectEqual(FetchPlan.Step.complete, plan.next(1003));
}

test "edges of the site are asked before the control plane, and have some time to come back" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 1, true);
    try take(&plan, .taken, 1000);
    try take(&plan, .unreachable_source, 1000);
    var now_ms: u64 = 1000;
    var asked: u32 = 0;
    while (true) switch (plan.next(now_ms)) {
        .wait_until_ms => |until_ms| {
            try testing.expect(until_ms > now_ms);
            now_ms = until_ms;
        },
        else => |step| {
            if (sourceOf(step).? == control_plane) break;
            asked += 1;
            plan.onOutcome(step, .unreachable_source, now_ms);
        },
    };
    try testing.expectEqual(1000 + FetchPlan.patience_ms, now_ms);
    // With back-off.
    try testing.expect(asked >= 3 and asked <= 8);
    // The edge that has returned is asked again before the control plane.
    const step = plan.next(now_ms);
    plan.onOutcome(step, .taken, now_ms);
    const later_ms = now_ms + 15_000;
    try testing.expectEqual(0, sourceOf(plan.next(later_ms)).?);
    try take(&plan, .taken, later_ms);
    try testing.expectEqual(0, sourceOf(plan.next(later_ms)).?);
}

test "an edge that sends wrong bytes is left for the next source and named" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 2, true);
    try take(&plan, .taken, 1000);
    try take(&plan, .wrong, 1000);
    try testing.expectEqual(1, sourceOf(plan.next(1000)).?);
    try take(&plan, .wrong, 1000);
    // Nobody is left to be patient with.
    try testing.expectEqual(control_plane, sourceOf(plan.next(1000)).?);
    try testing.expectEqual(0, plan.next(1000).piece.index);
    var text: [128]u8 = undefined;
    try testing.expectEqualStrings(
        try std.mem.print(
            &text,
            "edge {f} sent a wrong piece; edge {f} sent a wrong piece",
            .{ ids[0], ids[1] },
        ),
        plan.liars(&ids).constSlice(),
    );
    try take(&plan, .wrong, 1000);
    try testing.expectEqual(FetchPlan.Step.failed, plan.next(1000));
    const said = plan.failure(&ids);
    try testing.expect(std.mem.startsWith(u8, said.constSlice(), "edge "));
}

test "an edge that does not have a piece yet is asked again soon" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 1, true);
    try take(&plan, .taken, 1000);
    try take(&plan, .absent, 1000);
    const until_ms = plan.next(1000).wait_until_ms;
    try testing.expect(until_ms > 1000 and until_ms <= 2000);
    try testing.expectEqual(0, plan.next(until_ms).piece.source);
    try take(&plan, .unknown, until_ms);
    try testing.expect(plan.next(until_ms).wait_until_ms <= until_ms + 5000);
}

test "an edge that gets the difference itself is waited for, but not for ever" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 1, true);
    try take(&plan, .taken, 1000);
    var now_ms: u64 = 1000;
    while (true) switch (plan.next(now_ms)) {
        .wait_until_ms => |until_ms| now_ms = until_ms,
        else => |step| {
            if (sourceOf(step).? == control_plane) break;
            plan.onOutcome(step, .absent, now_ms);
        },
    };
    try testing.expectEqual(1000 + FetchPlan.absent_patience_ms, now_ms);
}

test "a site fills like a chain: the next edge is not asked while the one before it is a moment behind" {
    var held: [8]bool = undefined;
    var plan = planOf(&held, 2, false);
    try take(&plan, .taken, 1000);
    try take(&plan, .absent, 1000);
    var now_ms = plan.next(1000).wait_until_ms;
    try testing.expectEqual(0, sourceOf(plan.next(now_ms)).?);
    try take(&plan, .taken, now_ms);
    // It does not get further: the other one is asked, and then without waiting.
    const begun_ms = now_ms;
    while (sourceOf(plan.next(now_ms)) != 1) switch (plan.next(now_ms)) {
        .wait_until_ms => |until_ms| now_ms = until_ms,
        else => |step| plan.onOutcome(step, .absent, now_ms),
    };
    try testing.expect(now_ms - begun_ms >= 2_500 and now_ms - begun_ms <= 3_500);
    try take(&plan, .taken, now_ms);
    try testing.expectEqual(1, sourceOf(plan.next(now_ms)).?);
    // Once it is ahead again, it comes first again, and is waited for again.
    now_ms += 1000;
    try testing.expectEqual(0, sourceOf(plan.next(now_ms)).?);
    try take(&plan, .taken, now_ms);
    try take(&plan, .absent, now_ms);
    try testing.expectEqual(null, sourceOf(plan.next(now_ms)));
}

test "a fetch without progress ends, and says whom it asked last" {
    var held: [3]bool = undefined;
    var plan = planOf(&held, 1, false);
    var now_ms: u64 = 1000;
    var steps: u32 = 0;
    while (steps < 1000) : (steps += 1) switch (plan.next(now_ms)) {
        .wait_until_ms => |until_ms| now_ms = until_ms,
        .failed => break,
        else => |step| plan.onOutcome(step, .unreachable_source, now_ms),
    };
    try testing.expectEqual(1000 + FetchPlan.silence_max_ms, now_ms);
    var text: [128]u8 = undefined;
    try testing.expectEqualStrings(
        try std.mem.print(
            &text,
            "No piece came for 10 minutes: edge {f} cannot be reached.",
            .{ids[0]},
        ),
        plan.failure(ids[0..1]).constSlice(),
    );
}

test "the control plane is not asked unless the job allows it, and what it refuses ends the fetch" {
    var held: [1]bool = undefined;
    var plan = planOf(&held, 0, false);
    try testing.expectEqual(FetchPlan.Step.failed, plan.next(1000));
    var other = planOf(&held, 0, true);
    try take(&other, .{ .later = 7000 }, 1000);
    try testing.expectEqual(8000, other.next(1000).wait_until_ms);
    try take(&other, .gone, 8000);
    try testing.expectEqual(FetchPlan.Step.failed, other.next(8000));
    try testing.expectEqualStrings(
        "The difference is gone from the control plane, and no edge of the site sent it.",
        other.failure(&.{}).constSlice(),
    );
}

test "whatever sources do, a fetch ends whole or failed, and asks nobody who lied again" {
    var prng: base.Prng = .init(7);
    for (0..300) |_| {
        var held: [8]bool = undefined;
        var plan = planOf(&held, @intCast(prng.below(3)), prng.chance(1, 2));
        var now_ms: u64 = 1000;
        var lied: [16]bool = @splat(false);
        var taken: u32 = 0;
        for (0..100_000) |_| switch (plan.next(now_ms)) {
            .wait_until_ms => |until_ms| now_ms = until_ms,
            .complete => {
                try testing.expectEqual(8 + 1, taken);
                break;
            },
            .failed => break,
            else => |step| {
                const source = sourceOf(step).?;
                try testing.expect(!lied[source]);
                const outcome: FetchPlan.Outcome = switch (prng.below(12)) {
                    0 => .wrong,
                    1 => .absent,
                    2 => .unknown,
                    3 => .{ .later = prng.nextU32() },
                    4...6 => .unreachable_source,
                    7 => if (prng.chance(1, 10)) .gone else .absent,
                    8 => if (prng.chance(1, 10)) .refused else .taken,
                    else => .taken,
                };
                if (outcome == .wrong) lied[source] = true;
                if (outcome == .taken) taken += 1;
                now_ms += prng.below(100);
                plan.onOutcome(step, outcome, now_ms);
            },
        } else return error.DoesNotEnd;
    }
}
