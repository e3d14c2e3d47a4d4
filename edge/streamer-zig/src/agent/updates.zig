//! Decides when this edge fetches the release that the control plane wants here, whether it tries
//! one again, and what it reports of it. Fetching and exchanging are the host's; whether a program
//! is healthy is decided by core/update/probation.zig. Nothing here ever stops an edge from
//! serving.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const assert = std.debug.assert;
const Record = core.update.Record;
const Cause = Record.Cause;

/// Fetching fails for reasons that pass: the link, a repository that is being copied.
const retry_first_ms = 10 * std.time.ms_per_s;
const retry_most_ms = 30 * std.time.ms_per_min;

pub const Updates = @This();

/// The version of the program that runs.
running: []const u8 = base.version,
order: ?Order = null,
/// The last release that this edge has given its chance, or gives it.
tried: ?Tried = null,
/// This one lies in the data directory, verified, and waits to take over.
fetched: ?Order = null,
/// Why the last fetch failed.
cause: ?Cause = null,
failures: u8 = 0,
not_before_ms: u64 = 0,

const Version = base.BoundedArray(u8, Record.version_size_max);

/// `attempt`: the control plane counts how often it has ordered a release here.
pub const Order = struct {
    version: Version,
    attempt: u64,

    /// Returns null for what is no version.
    pub fn init(version: []const u8, attempt: u64) ?Order {
        if (!Record.isVersion(version)) return null;
        return .{ .version = Version.fromSlice(version) catch return null, .attempt = attempt };
    }

    pub fn eql(order: *const Order, other: *const Order) bool {
        return order.attempt == other.attempt and order.isFor(other.version.constSlice());
    }

    fn isFor(order: *const Order, version: []const u8) bool {
        return std.mem.eql(u8, order.version.constSlice(), version);
    }
};

pub const Tried = struct { order: Order, outcome: Record.Outcome, cause: ?Cause };

pub const State = enum { fetching, waiting, probation, healthy, failed };

/// What the heartbeat says.
pub const Status = struct { order: Order, state: State, cause: ?Cause };

pub const Step = union(enum) {
    /// Nothing until an order comes.
    idle,
    wait_until_ms: u64,
    fetch: Order,
};

/// The desired state names this release, or none. Returns whether that is news; what was fetched
/// for another order is not used.
pub fn setOrder(updates: *Updates, order: ?Order) bool {
    if (order == null and updates.order == null) return false;
    if (order) |*given| if (updates.order) |*known| if (known.eql(given)) return false;
    updates.order = order;
    updates.fetched = null;
    updates.cause = null;
    updates.failures = 0;
    updates.not_before_ms = 0;
    return true;
}

pub fn next(updates: *const Updates, now_ms: u64) Step {
    const order = updates.order orelse return .idle;
    switch (updates.stateOf(&order)) {
        .healthy, .failed, .probation, .waiting => return .idle,
        .fetching => {},
    }
    if (now_ms < updates.not_before_ms) return .{ .wait_until_ms = updates.not_before_ms };
    return .{ .fetch = order };
}

/// The program of this order lies in the data directory; false: it is no longer wanted.
pub fn onFetched(updates: *Updates, order: Order) bool {
    const wanted = updates.order orelse return false;
    if (!wanted.eql(&order)) return false;
    updates.fetched = order;
    updates.cause = null;
    updates.failures = 0;
    return true;
}

/// Returns the release that is to take over now. On probation it has to be accepted by the control
/// plane, so it waits for a moment in which this program is: one that passed during an outage could
/// turn out to be refused ever after, and would never hear of another release.
pub fn due(updates: *const Updates, is_accepted: bool) ?Order {
    return if (is_accepted) updates.fetched else null;
}

/// Fetching failed, or the fetched program cannot take over for a reason that may pass.
pub fn onFailed(updates: *Updates, cause: Cause, now_ms: u64, random: u64) void {
    updates.fetched = null;
    updates.cause = cause;
    const doublings: u6 = @intCast(@min(updates.failures, 10));
    const half_ms = @min(@as(u64, retry_first_ms) << doublings, retry_most_ms) / 2;
    updates.failures +|= 1;
    updates.not_before_ms = now_ms + half_ms + random % (half_ms + 1);
    assert(updates.not_before_ms > now_ms);
}

/// A program has had its chance: it runs on probation, has passed, or was left.
pub fn onTried(updates: *Updates, tried: Tried) void {
    assert((tried.outcome == .failed) == (tried.cause != null));
    updates.tried = tried;
    updates.fetched = null;
}

pub fn status(updates: *const Updates) ?Status {
    const order = updates.order orelse return null;
    const state = updates.stateOf(&order);
    return .{ .order = order, .state = state, .cause = switch (state) {
        .failed => updates.tried.?.cause,
        .fetching => updates.cause,
        .waiting, .probation, .healthy => null,
    } };
}

fn stateOf(updates: *const Updates, order: *const Order) State {
    const is_running = order.isFor(updates.running);
    if (updates.tried) |*tried| if (tried.order.isFor(order.version.constSlice())) {
        if (tried.outcome == .probation and is_running) return .probation;
        if (tried.outcome == .failed and tried.order.attempt >= order.attempt) return .failed;
    };
    if (is_running) return .healthy;
    return if (updates.fetched != null) .waiting else .fetching;
}

const testing = std.testing;

fn orderOf(version: []const u8, attempt: u64) Order {
    return Order.init(version, attempt).?;
}

fn expectFetch(order: Order, step: Step) !void {
    try testing.expect(step == .fetch);
    try testing.expect(step.fetch.eql(&order));
}

test "an order is fetched once, and then waits for its exchange" {
    var updates: Updates = .{ .running = "0.1.0" };
    try testing.expectEqual(.idle, updates.next(0));
    try testing.expect(updates.setOrder(orderOf("0.2.0", 1)));
    try testing.expect(!updates.setOrder(orderOf("0.2.0", 1)));
    try expectFetch(orderOf("0.2.0", 1), updates.next(0));
    try testing.expect(updates.onFetched(orderOf("0.2.0", 1)));
    try testing.expectEqual(.idle, updates.next(0));
    try testing.expectEqual(.waiting, updates.status().?.state);
    try testing.expectEqual(null, updates.due(false));
    try testing.expect(updates.due(true).?.eql(&orderOf("0.2.0", 1)));
}

test "the running version is not fetched" {
    var updates: Updates = .{ .running = "0.2.0" };
    _ = updates.setOrder(orderOf("0.2.0", 7));
    try testing.expectEqual(.idle, updates.next(0));
    try testing.expectEqual(.healthy, updates.status().?.state);
}

test "what was fetched for an order that has changed does not take over" {
    var updates: Updates = .{ .running = "0.1.0" };
    _ = updates.setOrder(orderOf("0.2.0", 1));
    try testing.expect(updates.setOrder(orderOf("0.3.0", 1)));
    try testing.expect(!updates.onFetched(orderOf("0.2.0", 1)));
    try testing.expect(updates.onFetched(orderOf("0.3.0", 1)));
    try testing.expect(updates.setOrder(null));
    try testing.expectEqual(null, updates.fetched);
    try testing.expect(!updates.onFetched(orderOf("0.3.0", 1)));
    try testing.expectEqual(null, updates.status());
}

test "a failed fetch is tried again, later and later, and within half an hour" {
    var updates: Updates = .{ .running = "0.1.0" };
    _ = updates.setOrder(orderOf("0.2.0", 1));
    var now_ms: u64 = 1000;
    var last_ms: u64 = 0;
    for (0..20) |_| {
        updates.onFailed(.no_answer, now_ms, std.math.maxInt(u64));
        const until_ms = updates.next(now_ms).wait_until_ms;
        const waited_ms = until_ms - now_ms;
        try testing.expect(waited_ms >= last_ms / 2 and waited_ms <= retry_most_ms);
        try testing.expectEqual(.no_answer, updates.status().?.cause.?);
        try expectFetch(orderOf("0.2.0", 1), updates.next(until_ms));
        last_ms = waited_ms;
        now_ms = until_ms;
    }
    // Another order does not wait for it.
    _ = updates.setOrder(orderOf("0.3.0", 1));
    try expectFetch(orderOf("0.3.0", 1), updates.next(now_ms));
}

test "a release that failed here is tried again only by a new order" {
    var updates: Updates = .{ .running = "0.1.0" };
    updates.onTried(.{ .order = orderOf("0.2.0", 3), .outcome = .failed, .cause = .ended });
    _ = updates.setOrder(orderOf("0.2.0", 3));
    try testing.expectEqual(.idle, updates.next(0));
    const status_ = updates.status().?;
    try testing.expect(status_.order.eql(&orderOf("0.2.0", 3)));
    try testing.expectEqual(.failed, status_.state);
    try testing.expectEqual(.ended, status_.cause.?);
    // A control plane that was restored counts from a lower number.
    _ = updates.setOrder(orderOf("0.2.0", 2));
    try testing.expectEqual(.idle, updates.next(0));
    _ = updates.setOrder(orderOf("0.2.0", 4));
    try expectFetch(orderOf("0.2.0", 4), updates.next(0));
    _ = updates.setOrder(orderOf("0.3.0", 1));
    try expectFetch(orderOf("0.3.0", 1), updates.next(0));
}

test "a program on probation fetches nothing for its own order, and is healthy afterwards" {
    var updates: Updates = .{ .running = "0.2.0" };
    _ = updates.setOrder(orderOf("0.2.0", 1));
    updates.onTried(.{ .order = orderOf("0.2.0", 1), .outcome = .probation, .cause = null });
    try testing.expectEqual(.idle, updates.next(0));
    try testing.expectEqual(.probation, updates.status().?.state);
    updates.onTried(.{ .order = orderOf("0.2.0", 1), .outcome = .healthy, .cause = null });
    try testing.expectEqual(.healthy, updates.status().?.state);
}

test "an older release is fetched like a newer one" {
    var updates: Updates = .{ .running = "0.2.0" };
    updates.onTried(.{ .order = orderOf("0.2.0", 1), .outcome = .healthy, .cause = null });
    _ = updates.setOrder(orderOf("0.1.0", 1));
    try expectFetch(orderOf("0.1.0", 1), updates.next(0));
}
