//! Chooses the edge that a device contacts (packages/proto/STREAM.md, "Fail-over"): its own until
//! that is silent; then the others of the newest WELCOME and its own, in turn, until one accepts
//! the boot. Pure: it only decides when and where.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

pub const Failover = @This();

/// The edge of the session, or of the first one wanted.
own: Endpoint = nowhere,
/// The edge that packets currently go to.
current: Endpoint = nowhere,
/// The newest WELCOME's list; null: there is no other edge.
known: ?wire.ticket.Failover = null,
known_at_us: u64 = 0,
/// Index into the others; their count stands for the own edge.
index: u8 = 0,
/// Of the HELLO for the fail-over.
turn_began_us: u64 = 0,
turn_us: u64 = turn_us_first,
turn_ends_us: u64 = 0,
/// The own edge is tried before any other: no round ends after it.
is_own_edge_first: bool = false,
/// Unanswered probes, and when the next one is due.
probes: u8 = 0,
probe_at_us: u64 = 0,
/// Another edge reported that it cannot continue this boot: the writes are kept by the own edge.
is_bound: bool = false,
/// Why another edge last refused the boot.
refused: ?wire.RefuseCode = null,
/// Edges that did not give a read, and those that did not take the device because of it, until
/// some edge gives it.
unable: base.BoundedArray(Endpoint, wire.ticket.edges_max + 1) = .empty,

const nowhere: Endpoint = .{ .ip = .zero, .port = 0 };
/// Silence after which the edge is probed, and the number of probes before it counts as gone: 1 s
/// in all unless the path is slow. An edge with a slow disk answers; a device that stalled itself
/// probes first.
const doubt_us_min = 500 * std.time.us_per_ms;
const doubt_us_max = 900 * std.time.us_per_ms;
const probes_max = 4;
/// Duration of the HELLO at one edge; doubled with each round. The first round sends two HELLOs.
const turn_us_first = 500 * std.time.us_per_ms;
const turn_us_max = 4 * std.time.us_per_s;
/// Part of its turn that a silent edge gets: a quarter of a second at first, and two HELLOs. COOKIE
/// costs an edge nothing, and a dead edge must not delay a live one: behind three dead edges, reads
/// continue within 3 s.
const silent_part = 2;
/// Part of its turn that a refusing edge keeps: 0.1 s at first, 0.8 s after long. Otherwise the
/// devices of a dead edge would keep another one busy with tickets that it does not accept.
const refused_part = 5;

pub fn init(own: Endpoint) Failover {
    return .{ .own = own, .current = own };
}

/// The other edges where the boot can continue, in order of preference.
pub fn others(failover: *const Failover) []const Endpoint {
    return if (failover.known) |*known| known.edges.constSlice() else &.{};
}

pub fn hasOthers(failover: *const Failover) bool {
    return failover.known != null and !failover.is_bound;
}

/// The current edge's store does not give a read. Once none is left that may, each may again.
pub fn markUnable(failover: *Failover) void {
    if (!failover.hasAble()) failover.unable.clear();
    failover.leaveOut();
    assert(failover.isUnable(failover.current));
}

fn leaveOut(failover: *Failover) void {
    if (failover.isUnable(failover.current)) return;
    // A list that names other edges than the one before.
    if (failover.unable.isFull()) failover.unable.clear();
    failover.unable.appendAssumeCapacity(failover.current);
    assert(failover.unable.count > 0);
}

/// Tells whether some other edge may give a read that the current one does not.
pub fn hasAble(failover: *const Failover) bool {
    for (failover.others()) |edge|
        if (!edge.eql(failover.current) and !failover.isUnable(edge)) return true;
    return false;
}

fn isUnable(failover: *const Failover, edge: Endpoint) bool {
    for (failover.unable.constSlice()) |one| if (one.eql(edge)) return true;
    return false;
}

pub fn isAtOwn(failover: *const Failover) bool {
    return failover.current.eql(failover.own);
}

/// A session is open at the current edge.
pub fn settle(failover: *Failover, now_us: u64, known: ?wire.ticket.Failover) void {
    failover.* = .{
        .own = failover.current,
        .current = failover.current,
        .known = known,
        .known_at_us = now_us,
        .unable = failover.unable,
    };
    assert(failover.isAtOwn());
}

/// The same session's WELCOME in another size names more edges.
pub fn extend(failover: *Failover, known: wire.ticket.Failover) bool {
    if (known.edges.count <= failover.others().len) return false;
    failover.known = known;
    return true;
}

/// A packet of the session has arrived.
pub fn onReceive(failover: *Failover) void {
    failover.probes = 0;
}

/// Returns when something is due if requests are in flight and nothing arrives.
pub fn dueAt(failover: *const Failover, heard_at_us: u64, timeout_us: u64) ?u64 {
    if (!failover.hasOthers()) return null;
    return if (failover.probes == 0) heard_at_us +
        silenceLimit(timeout_us) else failover.probe_at_us;
}

fn silenceLimit(timeout_us: u64) u64 {
    return std.math.clamp(4 * timeout_us, doubt_us_min, doubt_us_max);
}

/// Tells whether to probe the edge now.
pub fn takeProbe(failover: *Failover, now_us: u64, heard_at_us: u64, timeout_us: u64) bool {
    const due_at_us = failover.dueAt(heard_at_us, timeout_us) orelse return false;
    if (now_us < due_at_us or failover.probes == probes_max) return false;
    assert(failover.probes < probes_max);
    failover.probes += 1;
    failover.probe_at_us = now_us + silenceLimit(timeout_us) / probes_max;
    return true;
}

/// All probes have timed out.
pub fn isGone(failover: *const Failover, now_us: u64) bool {
    return failover.hasOthers() and failover.probes == probes_max and
        now_us >= failover.probe_at_us;
}

/// Tells whether a new ticket is wanted before this one expires.
pub fn wantsTicket(failover: *const Failover, now_us: u64) bool {
    const known = if (failover.known) |*known| known else return false;
    return now_us -| failover.known_at_us >= @as(u64, known.lifetime_s) * std.time.us_per_s / 2;
}

/// A HELLO at the own edge starts, for whatever reason.
pub fn beginAtOwn(failover: *Failover, now_us: u64) void {
    failover.current = failover.own;
    failover.index = @intCast(failover.others().len);
    failover.turn_began_us = now_us;
    failover.turn_us = turn_us_first;
    failover.turn_ends_us = now_us + turn_us_first;
    failover.is_own_edge_first = true;
    assert(failover.isAtOwn());
}

/// The own edge is gone: the first of the others is next.
pub fn leave(failover: *Failover, now_us: u64) void {
    assert(failover.hasOthers());
    failover.beginAtOwn(now_us);
    failover.is_own_edge_first = false;
    failover.index = 0;
    for (failover.others(), 0..) |edge, index| if (!failover.isUnable(edge)) {
        failover.index = @intCast(index);
        break;
    };
    failover.current = failover.others()[failover.index];
    failover.turn_ends_us = now_us + failover.turn_us / silent_part;
}

/// Returns when the next edge is tried in place of a silent one; null: never.
pub fn turnEndsAt(failover: *const Failover) ?u64 {
    if (!failover.hasOthers()) return null;
    return failover.turn_ends_us;
}

/// Starts the next edge's turn.
pub fn turn(failover: *Failover, now_us: u64) void {
    assert(failover.hasOthers());
    if (failover.unable.count > 0) failover.leaveOut();
    for (0..failover.others().len + 1) |_| {
        failover.advance();
        // In the first round only: the others may be gone.
        if (failover.turn_us > turn_us_first or !failover.isUnable(failover.current)) break;
    }
    failover.turn_began_us = now_us;
    // The own edge may have just restarted.
    failover.turn_ends_us =
        now_us + if (failover.isAtOwn()) failover.turn_us else failover.turn_us / silent_part;
    assert(failover.index <= failover.others().len);
    assert(failover.turn_us <= turn_us_max);
}

fn advance(failover: *Failover) void {
    const list = failover.others();
    failover.index = if (failover.index == list.len) 0 else failover.index + 1;
    if (failover.index == 0) {
        if (!failover.is_own_edge_first) failover.turn_us = @min(2 * failover.turn_us, turn_us_max);
        failover.is_own_edge_first = false;
    }
    failover.current = if (failover.index < list.len) list[failover.index] else failover.own;
    assert(failover.index <= list.len);
}

/// The current edge is alive and has sent COOKIE: it gets its whole turn.
pub fn onAlive(failover: *Failover) void {
    assert(failover.turn_us <= turn_us_max);
    failover.turn_ends_us = @max(failover.turn_ends_us, failover.turn_began_us + failover.turn_us);
}

/// The current edge refuses this boot, or is not there.
pub fn refuse(failover: *Failover, now_us: u64, code: ?wire.RefuseCode) void {
    assert(failover.turn_us > 0);
    if (code) |known| failover.refused = known;
    if (code == .cache_elsewhere) {
        failover.beginAtOwn(now_us);
        failover.is_bound = true;
        return;
    }
    failover.turn_ends_us = @min(
        failover.turn_ends_us,
        @max(now_us, failover.turn_began_us + failover.turn_us / refused_part),
    );
}

const testing = std.testing;

fn testKnown(count: u8) wire.ticket.Failover {
    var known: wire.ticket.Failover = .{ .lifetime_s = 100, .edges = .empty, .ticket = @splat(1) };
    for (0..count) |index| known.edges.appendAssumeCapacity(
        .{ .ip = .init(10, 0, 0, @intCast(index + 1)), .port = 6910 },
    );
    return known;
}

test "a silent edge is left after four probes, and within a second" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(2));
    var now_us: u64 = 0;
    var probes: u32 = 0;
    while (!failover.isGone(now_us)) : (now_us += std.time.us_per_ms) {
        if (failover.takeProbe(now_us, 0, 4000)) probes += 1;
    }
    try testing.expectEqual(4, probes);
    try testing.expect(now_us <= 1_100 * std.time.us_per_ms);
    failover.leave(now_us);
    try testing.expect(failover.current.eql(testKnown(2).edges.buffer[0]));
    failover.turn(now_us);
    try testing.expect(failover.current.eql(testKnown(2).edges.buffer[1]));
    failover.turn(now_us);
    try testing.expect(failover.isAtOwn());
    try testing.expectEqual(turn_us_first, failover.turn_us);
    failover.turn(now_us);
    try testing.expectEqual(2 * turn_us_first, failover.turn_us);
}

test "if the own edge comes first and is silent, the others have their first turns after it" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(2));
    failover.beginAtOwn(0);
    var now_us: u64 = turn_us_first;
    for (0..2) |index| {
        try testing.expectEqual(now_us, failover.turnEndsAt().?);
        failover.turn(now_us);
        try testing.expect(failover.current.eql(testKnown(2).edges.buffer[index]));
        now_us += turn_us_first / silent_part;
    }
    failover.turn(now_us);
    try testing.expect(failover.isAtOwn());
    failover.turn(now_us);
    try testing.expectEqual(2 * turn_us_first, failover.turn_us);
}

test "an edge whose store has failed the device is left out in the first round" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    const edges = testKnown(3).edges.buffer;
    failover.settle(0, testKnown(3));
    failover.markUnable();
    failover.leave(0);
    try testing.expect(failover.current.eql(edges[0]));
    // The first of the others accepts the boot, names the own edge, and cannot read either.
    var known = testKnown(3);
    known.edges.buffer[0] = failover.own;
    failover.settle(0, known);
    try testing.expect(failover.hasAble());
    failover.markUnable();
    failover.leave(0);
    try testing.expect(failover.current.eql(edges[1]));
    failover.turn(1);
    try testing.expect(failover.current.eql(edges[2]));
    // Everybody has had a turn: those that failed the device are asked again.
    failover.turn(2);
    try testing.expect(failover.current.eql(known.edges.buffer[0]));
    for (1..3) |index| {
        failover.turn(3);
        try testing.expect(failover.current.eql(known.edges.buffer[index]));
    }
    failover.turn(4);
    try testing.expect(failover.isAtOwn());
    // Where all have failed it, each may be asked again.
    try testing.expect(!failover.hasAble());
    failover.markUnable();
    try testing.expect(failover.hasAble());
}

test "a device that stalled itself probes before it leaves, and an edge that answers is kept" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(1));
    const late_us = 60 * std.time.us_per_s;
    try testing.expect(!failover.isGone(late_us));
    try testing.expect(failover.takeProbe(late_us, 0, 4000));
    try testing.expect(!failover.takeProbe(late_us, 0, 4000));
    failover.onReceive();
    try testing.expectEqual(late_us + doubt_us_min, failover.dueAt(late_us, 4000).?);
}

test "refusing edges are tried at once the first time, and at most every 0.8 s later on" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(1));
    failover.leave(0);
    var now_us: u64 = 0;
    var turns: u32 = 0;
    while (now_us < 10 * std.time.us_per_s) : (turns += 1) {
        failover.refuse(now_us, if (failover.isAtOwn()) null else .version_missing);
        const ends_at_us = failover.turnEndsAt().?;
        if (turns == 0) try testing.expectEqual(100 * std.time.us_per_ms, ends_at_us);
        now_us = ends_at_us;
        failover.turn(now_us);
    }
    // Two turns of each length until the longest.
    const until_longest_us = 2 * (100 + 200 + 400) * std.time.us_per_ms;
    const longest_us = 800 * std.time.us_per_ms;
    try testing.expectEqual(
        6 + (10 * std.time.us_per_s - until_longest_us + longest_us - 1) / longest_us,
        turns,
    );
}

test "a device whose writes are at its own edge contacts only that edge" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(3));
    failover.leave(0);
    failover.refuse(10, .cache_elsewhere);
    try testing.expect(failover.isAtOwn());
    try testing.expectEqual(null, failover.turnEndsAt());
}

test "a device without another edge probes and never leaves" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, null);
    try testing.expectEqual(null, failover.dueAt(0, 4000));
    try testing.expect(!failover.takeProbe(std.time.us_per_day, 0, 4000));
    try testing.expect(!failover.isGone(std.time.us_per_day));
}

test "turns of both kinds double with each round up to four seconds, and a silent edge gets half" {
    const ms = std.time.us_per_ms;
    const own: Endpoint = .{ .ip = .init(10, 0, 0, 9), .port = 6910 };
    for ([_]bool{ false, true }) |is_own_first| {
        var failover: Failover = .init(own);
        failover.settle(0, testKnown(2));
        var now_us: u64 = 77;
        if (is_own_first) {
            failover.beginAtOwn(now_us);
            try testing.expect(failover.isAtOwn());
            now_us += 500 * ms;
            try testing.expectEqual(now_us, failover.turnEndsAt());
            failover.turn(now_us);
        } else failover.leave(now_us);
        for ([_]u64{ 500, 1000, 2000, 4000, 4000, 4000 }) |turn_ms| {
            for (testKnown(2).edges.constSlice()) |edge| {
                try testing.expectEqual(edge, failover.current);
                try testing.expectEqual(now_us + turn_ms / 2 * ms, failover.turnEndsAt());
                now_us = failover.turnEndsAt().?;
                failover.turn(now_us);
            }
            try testing.expectEqual(own, failover.current);
            try testing.expectEqual(now_us + turn_ms * ms, failover.turnEndsAt());
            now_us = failover.turnEndsAt().?;
            failover.turn(now_us);
        }
    }
}

test "an edge that is alive gets its whole turn, one that refuses a fifth, and none gets more" {
    const ms = std.time.us_per_ms;
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(2));
    failover.leave(1000 * ms);
    failover.onAlive();
    try testing.expectEqual(1500 * ms, failover.turnEndsAt());
    failover.turn(1250 * ms);
    failover.onAlive();
    try testing.expectEqual(1750 * ms, failover.turnEndsAt());
    // Leaving anew is as short as the first time, however long the turns were.
    for (0..20) |_| failover.turn(1250 * ms);
    failover.leave(1000 * ms);
    try testing.expectEqual(1250 * ms, failover.turnEndsAt());
    failover.onAlive();
    try testing.expectEqual(1500 * ms, failover.turnEndsAt());
    failover.turn_ends_us = 1700 * ms;
    failover.onAlive();
    try testing.expectEqual(1700 * ms, failover.turnEndsAt());
    failover.refuse(1050 * ms, .busy);
    try testing.expectEqual(1100 * ms, failover.turnEndsAt());
    try testing.expectEqual(.busy, failover.refused);
    // Later than that: at once.
    failover.turn_ends_us = 1700 * ms;
    failover.refuse(1101 * ms, null);
    try testing.expectEqual(1101 * ms, failover.turnEndsAt());
    try testing.expectEqual(.busy, failover.refused);
    // A second refusal does not give it more time.
    failover.refuse(1200 * ms, .version_missing);
    try testing.expectEqual(1101 * ms, failover.turnEndsAt());
    try testing.expectEqual(.version_missing, failover.refused);
    try testing.expect(failover.hasOthers());
}

test "an edge is probed after four timeouts, at least 0.5 s and at most 0.9 s, and four times" {
    const ms = std.time.us_per_ms;
    for ([_][2]u64{
        .{ 1, 500 * ms },
        .{ 125 * ms, 500 * ms },
        .{ 150 * ms, 600 * ms },
        .{ 225 * ms, 900 * ms },
        .{ 1000 * ms, 900 * ms },
    }) |case| {
        const timeout_us, const limit_us = case;
        var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
        failover.settle(0, testKnown(1));
        const heard_us = 33;
        var due_us = heard_us + limit_us;
        for (0..4) |_| {
            try testing.expectEqual(due_us, failover.dueAt(heard_us, timeout_us));
            try testing.expect(!failover.takeProbe(due_us - 1, heard_us, timeout_us));
            try testing.expect(failover.takeProbe(due_us, heard_us, timeout_us));
            try testing.expect(!failover.isGone(due_us));
            due_us += limit_us / 4;
        }
        try testing.expectEqual(due_us, failover.dueAt(heard_us, timeout_us));
        try testing.expect(!failover.takeProbe(due_us, heard_us, timeout_us));
        try testing.expect(!failover.isGone(due_us - 1));
        try testing.expect(failover.isGone(due_us));
        failover.onReceive();
        try testing.expect(!failover.isGone(due_us));
    }
}

test "a ticket is outdated from half its lifetime on, and no ticket is wanted without others" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(1000, null);
    try testing.expect(!failover.wantsTicket(std.time.us_per_day));
    try testing.expect(!failover.hasOthers());
    try testing.expectEqual(0, failover.others().len);
    var known = testKnown(2);
    known.lifetime_s = 3;
    failover.settle(1000, known);
    try testing.expectEqual(2, failover.others().len);
    try testing.expect(!failover.wantsTicket(1000 + 1_499_999));
    try testing.expect(failover.wantsTicket(1000 + 1_500_000));
    // A clock that goes back makes none older.
    try testing.expect(!failover.wantsTicket(0));
}

test "a device whose own edge keeps its writes starts there at once, and a session frees it" {
    var failover: Failover = .init(.{ .ip = .init(10, 0, 0, 9), .port = 6910 });
    failover.settle(0, testKnown(2));
    failover.leave(1000);
    failover.refuse(2000, .cache_elsewhere);
    try testing.expectEqual(.cache_elsewhere, failover.refused);
    try testing.expectEqual(2000 + turn_us_first, failover.turn_ends_us);
    try testing.expect(!failover.hasOthers());
    try testing.expectEqual(null, failover.dueAt(0, 4000));
    failover.settle(5000, testKnown(1));
    try testing.expect(failover.hasOthers());
    try testing.expectEqual(null, failover.refused);
    try testing.expectEqual(5000, failover.known_at_us);
}
