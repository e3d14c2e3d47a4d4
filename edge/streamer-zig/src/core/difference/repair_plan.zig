//! Which edge of the site is asked for a damaged block, and whether there is still a point in
//! repairing this store. One block at a time. An edge that sends wrong bytes is left for an hour;
//! one without the version, or out of reach, for a while. A disk that damages blocks faster than a
//! few a second, more than a few thousand a day, or the same one again and again, is not repaired:
//! somebody has to replace it. Damage that no device waits for takes at most half of that, and the
//! same place is not tried again at once, so that two edges with the same damage do not ask each
//! other for ever. Pure: the caller passes the time, asks whom `next` names, and tells
//! the outcome.

const std = @import("std");
const base = @import("base");
const SiteEdges = @import("../site/edges.zig");
const assert = std.debug.assert;

pub const RepairPlan = @This();

pub const edges_max = SiteEdges.edges_max;

/// A repair that takes longer has failed; the device asks again, or another edge.
const repair_limit_ms = 3_000;
/// Blocks that may be repaired one after the other: 2 MiB, a damaged track.
const burst_max = 512;
const blocks_per_s = 16;
/// 32 MiB: a disk with more damage in a day is dying.
pub const day_max = 8192;
const day_ms = 24 * std.time.ms_per_hour;
/// How often the same place is repaired in a day.
const again_max = 3;
const places_max = 64;
/// How long a place that nobody has is left, unless a device waits for it.
const failed_ms = 10 * std.time.ms_per_min;
/// The places of 64 packed units: as many as are reported at once (host/repair/repairer.zig).
const failed_max = 512;
const liar_ms = std.time.ms_per_hour;
const unknown_ms = 30_000;
const unknown_max = 4;
const retry_first_ms = 1_000;
const retry_most_ms = 60_000;

edges: base.BoundedArray(Edge, edges_max) = .empty,
/// Asked first: it sent the last right block.
preferred: ?base.Uuid = null,
current: ?Current = null,
/// Thousandths of blocks.
credit: u64 = burst_max * 1000,
credit_ms: u64 = 0,
day_begun_ms: u64 = 0,
/// Repairs that were begun on this day.
day_count: u32 = 0,
places: base.BoundedArray(Known, places_max) = .empty,
next_place: u8 = 0,
/// Those that no edge had lately.
failed: base.BoundedArray(Failed, failed_max) = .empty,
next_failed: u16 = 0,

const Edge = struct {
    id: base.Uuid,
    not_before_ms: u64 = 0,
    failures: u8 = 0,
    unknown: base.BoundedArray(Unknown, unknown_max) = .empty,

    const Unknown = struct { version: base.Uuid, until_ms: u64 };

    fn lacks(edge: *const Edge, version: base.Uuid, now_ms: u64) bool {
        for (edge.unknown.constSlice()) |*known|
            if (known.version.eql(version) and now_ms < known.until_ms) return true;
        return false;
    }
};

pub const Place = struct {
    version: base.Uuid,
    /// Null for a block.
    level: ?u8,
    index: u64,

    fn eql(a: *const Place, b: *const Place) bool {
        return a.version.eql(b.version) and a.level == b.level and a.index == b.index;
    }
};

const Known = struct { place: Place, count: u8 };
const Failed = struct { place: Place, until_ms: u64 };

/// Who waits for a repair.
pub const Waiter = enum { device, nobody };

const Current = struct {
    place: Place,
    until_ms: u64,
    asked: base.BoundedArray(base.Uuid, edges_max) = .empty,

    fn hasAsked(current: *const Current, id: base.Uuid) bool {
        for (current.asked.constSlice()) |one| if (one.eql(id)) return true;
        return false;
    }
};

/// Why a place is not repaired now.
pub const Refusal = enum {
    /// More than a few a second.
    too_many,
    /// More than a day's share.
    worn,
    /// This place was repaired again and again.
    again,
    /// No edge had it lately, and no device waits for it.
    failed_lately,
};

pub const Outcome = enum {
    /// The bytes have the hash that the tree names.
    right,
    wrong,
    /// The edge does not have the version.
    unknown,
    /// The same place is damaged there.
    damaged,
    unreachable_edge,
};

/// The other edges of the site; what is known of those that stay is kept.
pub fn setEdges(plan: *RepairPlan, ids: []const base.Uuid) void {
    assert(ids.len <= edges_max);
    assert(plan.current == null);
    var edges: base.BoundedArray(Edge, edges_max) = .empty;
    for (ids) |id| {
        const known: ?*const Edge = for (plan.edges.constSlice()) |*edge| {
            if (edge.id.eql(id)) break edge;
        } else null;
        edges.appendAssumeCapacity(if (known) |edge| edge.* else .{ .id = id });
    }
    plan.edges = edges;
    assert(plan.edges.count == ids.len);
}

/// Begins the repair of a place; null: `next` names whom to ask.
pub fn begin(plan: *RepairPlan, place: Place, waiter: Waiter, now_ms: u64) ?Refusal {
    assert(plan.current == null);
    plan.refill(now_ms);
    if (waiter == .nobody) {
        if (plan.hasFailedLately(&place, now_ms)) return .failed_lately;
        // The rest is for reads of devices.
        if (plan.day_count >= day_max / 2) return .too_many;
        if (plan.credit < burst_max / 2 * 1000) return .too_many;
    }
    if (plan.day_count >= day_max) return .worn;
    const known = plan.knownOf(&place);
    if (known) |found| if (found.count >= again_max) return .again;
    if (plan.credit < 1000) return .too_many;
    plan.credit -= 1000;
    plan.day_count += 1;
    plan.current = .{ .place = place, .until_ms = now_ms + repair_limit_ms };
    assert(plan.day_count <= day_max);
    return null;
}

fn refill(plan: *RepairPlan, now_ms: u64) void {
    const passed_ms = now_ms -| plan.credit_ms;
    plan.credit = @min(burst_max * 1000, plan.credit +| passed_ms *| blocks_per_s);
    plan.credit_ms = @max(plan.credit_ms, now_ms);
    assert(plan.credit <= burst_max * 1000);
    if (now_ms -| plan.day_begun_ms < day_ms) return;
    assert(now_ms >= plan.day_begun_ms);
    plan.day_begun_ms = now_ms;
    plan.day_count = 0;
    plan.places.clear();
    plan.next_place = 0;
}

fn knownOf(plan: *RepairPlan, place: *const Place) ?*Known {
    for (plan.places.slice()) |*known| if (known.place.eql(place)) return known;
    return null;
}

/// Returns the edge to ask; null: nobody is left, and the repair has failed.
pub fn next(plan: *RepairPlan, now_ms: u64) ?base.Uuid {
    const current = &plan.current.?;
    assert(current.asked.count <= plan.edges.count);
    const found = if (now_ms < current.until_ms) plan.choose(current, now_ms) else null;
    const id = found orelse {
        plan.noteFailed(&current.place, now_ms);
        plan.current = null;
        return null;
    };
    current.asked.appendAssumeCapacity(id);
    return id;
}

fn choose(plan: *const RepairPlan, current: *const Current, now_ms: u64) ?base.Uuid {
    var first: ?base.Uuid = null;
    for (plan.edges.constSlice()) |*edge| {
        if (current.hasAsked(edge.id) or now_ms < edge.not_before_ms) continue;
        if (edge.lacks(current.place.version, now_ms)) continue;
        if (plan.preferred) |preferred| if (preferred.eql(edge.id)) return edge.id;
        if (first == null) first = edge.id;
    }
    return first;
}

/// What came of asking the edge that `next` named. `right` ends the repair: the bytes are written.
pub fn onOutcome(plan: *RepairPlan, outcome: Outcome, now_ms: u64) void {
    const current = &plan.current.?;
    assert(current.asked.count > 0);
    const id = current.asked.constSlice()[current.asked.count - 1];
    const edge = for (plan.edges.slice()) |*one| {
        if (one.id.eql(id)) break one;
    } else unreachable;
    switch (outcome) {
        .right => {
            edge.failures = 0;
            plan.preferred = id;
            plan.note(&current.place);
            plan.current = null;
        },
        .wrong => edge.not_before_ms = now_ms + liar_ms,
        .unknown => {
            edge.failures = 0;
            var kept: base.BoundedArray(Edge.Unknown, unknown_max) = .empty;
            kept.appendAssumeCapacity(.{
                .version = current.place.version,
                .until_ms = now_ms + unknown_ms,
            });
            for (edge.unknown.constSlice()) |known| {
                if (known.version.eql(current.place.version)) continue;
                if (now_ms < known.until_ms) kept.append(known) catch break;
            }
            edge.unknown = kept;
        },
        .damaged => edge.failures = 0,
        .unreachable_edge => {
            const doublings: u6 = @min(edge.failures, 6);
            edge.failures +|= 1;
            edge.not_before_ms =
                now_ms + @min(@as(u64, retry_first_ms) << doublings, retry_most_ms);
        },
    }
}

fn hasFailedLately(plan: *const RepairPlan, place: *const Place, now_ms: u64) bool {
    for (plan.failed.constSlice()) |*failed|
        if (now_ms < failed.until_ms and failed.place.eql(place)) return true;
    return false;
}

fn noteFailed(plan: *RepairPlan, place: *const Place, now_ms: u64) void {
    assert(plan.next_failed < failed_max);
    const failed: Failed = .{ .place = place.*, .until_ms = now_ms + failed_ms };
    for (plan.failed.slice()) |*known| if (known.place.eql(place)) {
        known.* = failed;
        return;
    };
    plan.failed.append(failed) catch {
        plan.failed.slice()[plan.next_failed] = failed;
        plan.next_failed = (plan.next_failed + 1) % failed_max;
    };
}

fn note(plan: *RepairPlan, place: *const Place) void {
    assert(plan.next_place < places_max);
    if (plan.knownOf(place)) |known| {
        assert(known.count < again_max);
        known.count += 1;
        return;
    }
    const known: Known = .{ .place = place.*, .count = 1 };
    plan.places.append(known) catch {
        plan.places.slice()[plan.next_place] = known;
        plan.next_place = (plan.next_place + 1) % places_max;
    };
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn blockAt(index: u64) Place {
    return .{ .version = uuid(9), .level = null, .index = index };
}

fn testPlan() RepairPlan {
    var plan: RepairPlan = .{};
    plan.setEdges(&.{ uuid(1), uuid(2), uuid(3) });
    return plan;
}

fn expectNext(plan: *RepairPlan, id: ?base.Uuid, now_ms: u64) !void {
    const found = plan.next(now_ms);
    try testing.expectEqual(id == null, found == null);
    if (id) |wanted| try testing.expect(found.?.eql(wanted));
}

test "edges are asked in turn until one has the block, and that one is asked first afterwards" {
    var plan = testPlan();
    try testing.expectEqual(null, plan.begin(blockAt(1), .device, 0));
    try expectNext(&plan, uuid(1), 0);
    plan.onOutcome(.damaged, 0);
    try expectNext(&plan, uuid(2), 1);
    plan.onOutcome(.right, 1);
    try testing.expectEqual(null, plan.begin(blockAt(2), .device, 2));
    try expectNext(&plan, uuid(2), 2);
    plan.onOutcome(.damaged, 2);
    try expectNext(&plan, uuid(1), 2);
    plan.onOutcome(.damaged, 2);
    try expectNext(&plan, uuid(3), 2);
    plan.onOutcome(.damaged, 2);
    try expectNext(&plan, null, 2);
    try testing.expectEqual(null, plan.begin(blockAt(2), .device, 3));
}

test "a liar is left for an hour, a silent edge for a while, and each other one only for its lack" {
    var plan = testPlan();
    try testing.expectEqual(null, plan.begin(blockAt(1), .device, 0));
    for ([_]Outcome{ .wrong, .unreachable_edge, .unknown }, 1..) |outcome, number| {
        try expectNext(&plan, uuid(@intCast(number)), 0);
        plan.onOutcome(outcome, 0);
    }
    try expectNext(&plan, null, 0);
    try testing.expectEqual(null, plan.begin(blockAt(2), .device, 999));
    try expectNext(&plan, null, 999);
    var other = blockAt(3);
    other.version = uuid(8);
    try testing.expectEqual(null, plan.begin(other, .device, 999));
    try expectNext(&plan, uuid(3), 999);
    plan.onOutcome(.damaged, 999);
    try expectNext(&plan, uuid(2), 1000);
    plan.onOutcome(.unreachable_edge, 1000);
    try expectNext(&plan, null, 1000);
    // The second failure in a row lasts twice as long.
    try testing.expectEqual(null, plan.begin(other, .device, 2999));
    try expectNext(&plan, uuid(3), 2999);
    plan.onOutcome(.damaged, 2999);
    try expectNext(&plan, uuid(2), 3000);
    plan.onOutcome(.right, 3000);
    // What is known of an edge stays when the state comes again.
    plan.setEdges(&.{ uuid(3), uuid(1) });
    try testing.expectEqual(null, plan.begin(blockAt(4), .device, 29_999));
    try expectNext(&plan, null, 29_999);
    try testing.expectEqual(null, plan.begin(blockAt(4), .device, 30_000));
    try expectNext(&plan, uuid(3), 30_000);
    plan.onOutcome(.damaged, 30_000);
    try expectNext(&plan, null, 30_000);
    try testing.expectEqual(null, plan.begin(blockAt(4), .device, liar_ms));
    try expectNext(&plan, uuid(3), liar_ms);
    plan.onOutcome(.damaged, liar_ms);
    try expectNext(&plan, uuid(1), liar_ms);
}

test "a repair ends after three seconds" {
    var plan = testPlan();
    try testing.expectEqual(null, plan.begin(blockAt(1), .device, 0));
    try expectNext(&plan, uuid(1), repair_limit_ms - 1);
    plan.onOutcome(.damaged, repair_limit_ms);
    try expectNext(&plan, null, repair_limit_ms);
}

fn repairOne(plan: *RepairPlan, index: u64, now_ms: u64) !?Refusal {
    if (plan.begin(blockAt(index), .device, now_ms)) |refusal| return refusal;
    _ = plan.next(now_ms) orelse return error.NobodyAsked;
    plan.onOutcome(.right, now_ms);
    return null;
}

test "a place is repaired three times a day" {
    var plan = testPlan();
    for (0..again_max) |_| try testing.expectEqual(null, try repairOne(&plan, 1, 0));
    try testing.expectEqual(.again, try repairOne(&plan, 1, day_ms - 1));
    try testing.expectEqual(null, try repairOne(&plan, 2, day_ms - 1));
    try testing.expectEqual(null, try repairOne(&plan, 1, day_ms));
}

test "a burst is repaired, then sixteen blocks a second, and 8192 a day" {
    var plan = testPlan();
    for (0..burst_max) |index| try testing.expectEqual(null, try repairOne(&plan, index, 0));
    try testing.expectEqual(.too_many, try repairOne(&plan, 999, 0));
    try testing.expectEqual(.too_many, try repairOne(&plan, 999, 62));
    try testing.expectEqual(null, try repairOne(&plan, 999, 63));
    var now_ms: u64 = 63;
    for (burst_max + 1..day_max) |index| {
        now_ms += 63;
        try testing.expectEqual(null, try repairOne(&plan, 1000 + index, now_ms));
    }
    try testing.expectEqual(.worn, try repairOne(&plan, 1, now_ms + 10_000));
    try testing.expectEqual(null, try repairOne(&plan, 1, day_ms));
}

test "a place that nobody has is left for ten minutes, unless a device waits for it" {
    var plan = testPlan();
    try failOne(&plan, 1, .nobody, 0);
    try testing.expectEqual(.failed_lately, plan.begin(blockAt(1), .nobody, 0));
    try failOne(&plan, 2, .nobody, 0);
    try failOne(&plan, 1, .device, 1);
    try testing.expectEqual(.failed_lately, plan.begin(blockAt(1), .nobody, failed_ms));
    try failOne(&plan, 2, .nobody, failed_ms);
    try failOne(&plan, 1, .nobody, failed_ms + 1);
    // The latest ones are kept.
    plan = testPlan();
    plan.credit = std.math.maxInt(u64);
    for (0..failed_max + 1) |index| try failOne(&plan, index, .device, 2 * index * 63);
    const now_ms = 2 * failed_max * 63;
    try failOne(&plan, 0, .nobody, now_ms);
    try testing.expectEqual(.failed_lately, plan.begin(blockAt(2), .nobody, now_ms));
}

fn failOne(plan: *RepairPlan, index: u64, waiter: Waiter, now_ms: u64) !void {
    try testing.expectEqual(null, plan.begin(blockAt(index), waiter, now_ms));
    while (plan.next(now_ms)) |_| plan.onOutcome(.damaged, now_ms);
}

test "damage that no device waits for leaves devices half of what may be repaired" {
    var plan = testPlan();
    var index: u64 = 0;
    while (plan.begin(blockAt(index), .nobody, 0) == null) : (index += 1) {
        _ = plan.next(0).?;
        plan.onOutcome(.right, 0);
    }
    try testing.expectEqual(burst_max / 2 + 1, index);
    for (0..burst_max / 2 - 1) |more|
        try testing.expectEqual(null, try repairOne(&plan, 1000 + more, 0));
    try testing.expectEqual(.too_many, try repairOne(&plan, 5000, 0));
    plan = testPlan();
    plan.day_count = day_max / 2 - 1;
    try testing.expectEqual(null, plan.begin(blockAt(1), .nobody, 0));
    _ = plan.next(0).?;
    plan.onOutcome(.right, 0);
    try testing.expectEqual(.too_many, plan.begin(blockAt(2), .nobody, 0));
    try testing.expectEqual(null, try repairOne(&plan, 2, 0));
}
