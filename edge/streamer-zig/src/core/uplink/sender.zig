//! Decides when the edge sends what to the API, and what an answer means
//! (packages/proto/UPLINK.md). Pure: the caller passes time and random numbers. Reports and
//! heartbeats share one queue of requests (`Sender`), the long poll has its own (`Poller`). Where
//! the API takes a heartbeat with a poll, the sender sends one by itself only if there is news, or
//! if polls fail. A batch of reports is never dropped, whatever the API answers.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

/// Without another word of the API; also the least time between two heartbeats.
const heartbeat_least_ms = 5_000;
const heartbeat_most_ms = 60_000;
/// Of a poll without a heartbeat.
const poll_wait_ms = 25_000;
/// Upper bound of what an API may name for one with a heartbeat.
const carrying_wait_most_ms = 60_000;
/// A poll is answered so much later than it asked for, at most, as long as nothing is wrong.
const carrying_grace_ms = 5_000;
/// A refused poll with a heartbeat is not tried again before.
const separate_ms = 10 * 60_000;
const retry_first_ms = 1_000;
const retry_most_ms = 30_000;
/// Upper bound of the delay that an API may request.
pub const retry_after_most_ms = 300_000;
/// Other reports may follow a new one at once; they are sent together.
pub const report_delay_ms = 50;

/// The answer to a request.
pub const Answer = union(enum) {
    /// None: no connection, no answer in time, or none that can be parsed.
    nothing,
    /// Not now: 429 or 5xx with the ms to wait (`Retry-After`).
    later: u32,
    ok,
    refused: struct { status: u16, code: Code, expected_seq: ?u64 = null },

    /// Returns whether the control plane takes what this edge sends, now that it has answered this:
    /// an edge whose requests are all refused reaches it as little as one without an answer. A
    /// control plane that is busy, or misses a report, says nothing about that.
    pub fn accepts(answer: Answer, before: bool) bool {
        return switch (answer) {
            .ok => true,
            .nothing => false,
            .later => before,
            .refused => |refused| before and refused.code == .report_gap,
        };
    }
};

pub const Code = enum {
    join_token_unknown,
    join_token_used,
    join_token_expired,
    edge_unknown,
    edge_revoked,
    edge_too_old,
    edge_too_new,
    boot_unknown,
    signature_invalid,
    stale_epoch,
    invalid_body,
    report_gap,
    too_large,
    unavailable,
    /// One that is unknown to this version.
    other,

    pub fn parse(text: []const u8) Code {
        return std.meta.stringToEnum(Code, text) orelse .other;
    }
};

/// Back-off of one kind of request.
pub const BackOff = struct {
    failures: u8 = 0,
    not_before_ms: u64 = 0,
    /// The API has requested this time; nothing shortens it.
    requested_ms: u64 = 0,

    pub fn reset(back_off: *BackOff) void {
        back_off.* = .{};
    }

    /// The API has answered another request: an unanswered one is retried as soon as the API
    /// allows.
    fn hurry(back_off: *BackOff, now_ms: u64) void {
        back_off.not_before_ms = @max(@min(back_off.not_before_ms, now_ms), back_off.requested_ms);
        assert(back_off.not_before_ms >= back_off.requested_ms);
    }

    /// Waits as the API requests, at most `retry_after_most_ms`, plus a random part of up to half
    /// of it; never less than without its request.
    pub fn wait(back_off: *BackOff, now_ms: u64, random: u64, after_ms: u32) void {
        back_off.fail(now_ms, random);
        const requested_ms: u64 = @min(after_ms, retry_after_most_ms);
        back_off.requested_ms = now_ms + requested_ms;
        back_off.not_before_ms =
            @max(back_off.not_before_ms, back_off.requested_ms + random % (requested_ms / 2 + 1));
        assert(back_off.not_before_ms >= back_off.requested_ms);
    }

    /// 1 s doubling to 30 s, of which a random part between half and all, so that edges of one site
    /// do not return together.
    pub fn fail(back_off: *BackOff, now_ms: u64, random: u64) void {
        const doublings: u6 = @intCast(@min(back_off.failures, 5));
        const whole_ms = @min(@as(u64, retry_first_ms) << doublings, retry_most_ms);
        const half_ms = whole_ms / 2;
        back_off.failures +|= 1;
        back_off.not_before_ms = now_ms + half_ms + random % (half_ms + 1);
        assert(back_off.failures > 0);
        assert(back_off.not_before_ms >= now_ms);
    }
};

pub const Effect = union(enum) {
    none,
    /// The API's cursor is elsewhere: continue from this seq.
    rewind: u64,
    /// The edge is revoked or unknown: nothing more is sent.
    stop,
};

pub const Sender = struct {
    reports: BackOff = .{},
    heartbeats: BackOff = .{},
    stopped: bool = false,
    next_heartbeat_ms: u64 = 0,
    /// Whether a heartbeat would say something else is looked at then.
    next_look_ms: u64 = 0,
    /// A poll in progress carries the heartbeat: by itself none is due before.
    carried_until_ms: u64 = 0,
    /// People wait for what a heartbeat would say: a poll in progress cannot say it.
    has_news: bool = false,
    /// The last answer to a batch allows compression.
    takes_gzip: bool = false,
    /// A compressed batch was refused for its form: this API's announcement is not trusted any
    /// more.
    distrusts_gzip: bool = false,

    pub const Step = union(enum) {
        reports,
        heartbeat,
        /// The caller compares what a heartbeat would say with what the last one said: `looked`.
        look,
        /// Nothing to do before this time, unless a report is appended.
        wait_until_ms: u64,
        stopped,
    };

    /// Heartbeats first: they are small, and reports may take long.
    pub fn next(sender: *const Sender, now_ms: u64, backlog: u64) Step {
        if (sender.stopped) return .stopped;
        const due_ms = if (sender.has_news)
            now_ms
        else
            @max(sender.next_heartbeat_ms, sender.carried_until_ms);
        const heartbeat_ms = @max(due_ms, sender.heartbeats.not_before_ms);
        if (now_ms >= heartbeat_ms) return .heartbeat;
        const look_ms = @max(sender.next_look_ms, sender.heartbeats.not_before_ms);
        if (now_ms >= look_ms) return .look;
        const either_ms = @min(heartbeat_ms, look_ms);
        if (backlog == 0) return .{ .wait_until_ms = either_ms };
        if (now_ms >= sender.reports.not_before_ms) return .reports;
        return .{ .wait_until_ms = @min(either_ms, sender.reports.not_before_ms) };
    }

    /// Something has changed that people wait for: whether a heartbeat would say it is looked at
    /// now. Back-off is kept.
    pub fn hurry(sender: *Sender, now_ms: u64) void {
        sender.next_look_ms = @min(sender.next_look_ms, now_ms);
    }

    /// `is_news`: people wait for what a heartbeat would say now.
    pub fn looked(sender: *Sender, now_ms: u64, is_news: bool) void {
        sender.next_look_ms = now_ms + heartbeat_least_ms;
        if (is_news) sender.has_news = true;
    }

    /// A poll that carries a heartbeat was sent; 0: the last one has failed.
    pub fn onCarried(sender: *Sender, until_ms: u64) void {
        sender.carried_until_ms = until_ms;
    }

    /// `next_ms`: the time that the answer names (`nextMs`); 0 without one.
    pub fn heartbeatAnswered(
        sender: *Sender,
        now_ms: u64,
        random: u64,
        answer: Answer,
        next_ms: u64,
    ) Effect {
        assert(!sender.stopped);
        const named_ms = @min(next_ms, heartbeat_most_ms);
        // Edges that come back together do not stay together.
        const wait_ms = @max(named_ms - random % (named_ms / 4 + 1), heartbeat_least_ms);
        sender.next_heartbeat_ms = now_ms + wait_ms;
        sender.next_look_ms = now_ms + heartbeat_least_ms;
        sender.has_news = false;
        assert(sender.next_heartbeat_ms >= sender.next_look_ms);
        switch (answer) {
            .ok => {
                // The API is back: waiting reports are sent at once.
                if (sender.heartbeats.failures > 0) sender.reports.hurry(now_ms);
                sender.heartbeats.reset();
            },
            .nothing => sender.heartbeats.fail(now_ms, random),
            .later => |after_ms| sender.heartbeats.wait(now_ms, random, after_ms),
            .refused => |refused| {
                sender.heartbeats.fail(now_ms, random);
                return sender.refusal(refused.code);
            },
        }
        return .none;
    }

    pub fn reportsAnswered(sender: *Sender, now_ms: u64, random: u64, answer: Answer) Effect {
        assert(!sender.stopped);
        switch (answer) {
            .ok => sender.reports.reset(),
            .nothing => sender.reports.fail(now_ms, random),
            .later => |after_ms| sender.reports.wait(now_ms, random, after_ms),
            .refused => |refused| {
                if (refused.code == .report_gap) if (refused.expected_seq) |seq| {
                    // An API that repeatedly requests the same seq must not cause a busy loop.
                    if (sender.reports.failures > 0)
                        sender.reports.fail(now_ms, random)
                    else
                        sender.reports.failures = 1;
                    return .{ .rewind = seq };
                };
                sender.reports.fail(now_ms, random);
                return sender.refusal(refused.code);
            },
        }
        return .none;
    }

    pub fn mayCompress(sender: *const Sender) bool {
        return sender.takes_gzip and !sender.distrusts_gzip;
    }

    /// How the API took a batch's form: `takes_gzip` is what its answer announces, `refused_form`
    /// that it refused a compressed one.
    pub fn onBatchForm(sender: *Sender, takes_gzip: bool, refused_form: bool) void {
        sender.takes_gzip = takes_gzip;
        if (refused_form) sender.distrusts_gzip = true;
    }

    fn refusal(sender: *Sender, code: Code) Effect {
        if (code != .edge_revoked) return .none;
        sender.stopped = true;
        return .stop;
    }
};

pub const Poller = struct {
    back_off: BackOff = .{},
    stopped: bool = false,
    /// Before this time polls carry no heartbeat: the API has refused one that did.
    separate_until_ms: u64 = 0,
    /// Before this time polls request whole states: a change of one did not fit.
    whole_until_ms: u64 = 0,

    pub const Step = union(enum) { poll, wait_until_ms: u64, stopped };

    /// How a poll is sent.
    pub const Request = struct {
        wait_ms: u64,
        carries_heartbeat: bool,
        /// It names the state that this edge has: the answer may be a change of that.
        names_base: bool,

        /// Until when the heartbeat that it carries suffices.
        pub fn carriesUntil(request: Request, now_ms: u64) u64 {
            assert(request.carries_heartbeat);
            return now_ms + request.wait_ms + carrying_grace_ms;
        }
    };

    /// `named_ms`: how long a poll with a heartbeat may wait, as the last answer to a heartbeat
    /// names it (`pollWaitMs`); 0: the API takes none. Edges that come back together do not stay
    /// together: up to an eighth is taken off.
    pub fn plan(poller: *const Poller, now_ms: u64, named_ms: u64, random: u64) Request {
        const names_base = now_ms >= poller.whole_until_ms;
        if (named_ms == 0 or now_ms < poller.separate_until_ms) return .{
            .wait_ms = poll_wait_ms,
            .carries_heartbeat = false,
            .names_base = names_base,
        };
        const wait_ms = std.math.clamp(named_ms, heartbeat_least_ms, carrying_wait_most_ms);
        return .{
            .wait_ms = wait_ms - random % (wait_ms / 8 + 1),
            .carries_heartbeat = true,
            .names_base = names_base,
        };
    }

    /// The answer was a change that leads to no acceptable state. Returns whether the whole is
    /// requested at once; a control plane that sends changes to polls without a base waits.
    pub fn onUnfitDelta(poller: *Poller, now_ms: u64) bool {
        const was_named = now_ms >= poller.whole_until_ms;
        poller.whole_until_ms = now_ms + separate_ms;
        assert(poller.whole_until_ms > now_ms);
        return was_named;
    }

    /// A poll with a heartbeat was answered, before `answered`. An API that does not know such
    /// polls, or refuses what the heartbeat says, is polled without: states come all the same.
    pub fn onCarried(poller: *Poller, now_ms: u64, answer: Answer) void {
        const refused = switch (answer) {
            .refused => |refused| refused,
            .ok, .nothing, .later => return,
        };
        switch (refused.status) {
            400, 404, 405, 413, 415 => poller.separate_until_ms = now_ms + separate_ms,
            else => {},
        }
    }

    pub fn next(poller: *const Poller, now_ms: u64) Step {
        if (poller.stopped) return .stopped;
        if (now_ms >= poller.back_off.not_before_ms) return .poll;
        return .{ .wait_until_ms = poller.back_off.not_before_ms };
    }

    /// `usable`: the answer contained an accepted state, or that there is none. A refused state
    /// would be returned again at once.
    pub fn answered(
        poller: *Poller,
        now_ms: u64,
        random: u64,
        answer: Answer,
        usable: bool,
    ) Effect {
        assert(!poller.stopped);
        switch (answer) {
            .ok => if (usable) poller.back_off.reset() else poller.back_off.fail(now_ms, random),
            .nothing => poller.back_off.fail(now_ms, random),
            .later => |after_ms| poller.back_off.wait(now_ms, random, after_ms),
            .refused => |refused| {
                poller.back_off.fail(now_ms, random);
                if (refused.code == .edge_revoked) {
                    poller.stopped = true;
                    return .stop;
                }
            },
        }
        return .none;
    }
};

/// Executed power-on commands. An API repeats them until they are a minute old; each is executed
/// once as long as its id is among the last ones kept.
pub const PowerOnLog = struct {
    ids: [capacity]base.Uuid = @splat(.zero),
    next: u32 = 0,

    pub const capacity = 4096;

    /// Returns false if the id was seen before.
    pub fn add(log: *PowerOnLog, id: base.Uuid) bool {
        for (&log.ids) |*known| if (known.eql(id)) return false;
        log.ids[log.next] = id;
        log.next = (log.next + 1) % capacity;
        return true;
    }
};

const testing = std.testing;

test "heartbeats are sent every five seconds and reports in between" {
    var sender: Sender = .{};
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(100, 5));
    _ = sender.heartbeatAnswered(110, 0, .ok, 0);
    try testing.expectEqual(Sender.Step.reports, sender.next(111, 5));
    _ = sender.reportsAnswered(120, 0, .ok);
    try testing.expectEqual(Sender.Step{ .wait_until_ms = 5110 }, sender.next(121, 0));
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(5110, 0));
}

test "an API may ask for fewer heartbeats, and news are told after five seconds all the same" {
    var prng: base.Prng = .init(9);
    for (0..200) |_| {
        var sender: Sender = .{};
        _ = sender.heartbeatAnswered(1000, prng.nextU64(), .ok, 30_000);
        try testing.expect(sender.next_heartbeat_ms >= 1000 + 22_500);
        try testing.expect(sender.next_heartbeat_ms <= 1000 + 30_000);
        try testing.expectEqual(Sender.Step{ .wait_until_ms = 6000 }, sender.next(1001, 0));
        try testing.expectEqual(Sender.Step.look, sender.next(6000, 0));
        sender.looked(6000, false);
        try testing.expectEqual(Sender.Step{ .wait_until_ms = 11_000 }, sender.next(6001, 0));
        sender.looked(11_000, true);
        try testing.expectEqual(Sender.Step.heartbeat, sender.next(11_000, 0));
        // What people wait for is not looked at later than it happens.
        _ = sender.heartbeatAnswered(12_000, prng.nextU64(), .ok, 30_000);
        sender.hurry(12_100);
        try testing.expectEqual(Sender.Step.look, sender.next(12_100, 0));
        sender.looked(12_100, true);
        try testing.expectEqual(Sender.Step.heartbeat, sender.next(12_100, 0));
        _ = sender.heartbeatAnswered(12_200, prng.nextU64(), .nothing, 0);
        sender.hurry(12_201);
        try testing.expect(sender.next(12_201, 0).wait_until_ms >= 12_700);
        // A year is cut to a minute, and a moment is five seconds.
        _ = sender.heartbeatAnswered(0, prng.nextU64(), .ok, std.math.maxInt(u64));
        try testing.expect(sender.next_heartbeat_ms <= 60_000);
        _ = sender.heartbeatAnswered(0, prng.nextU64(), .ok, 1);
        try testing.expectEqual(5_000, sender.next_heartbeat_ms);
    }
}

test "a poll that carries the heartbeat is the only request of an edge without news" {
    var prng: base.Prng = .init(11);
    var sender: Sender = .{};
    const poller: Poller = .{};
    _ = sender.heartbeatAnswered(1000, 0, .ok, 30_000);
    var now_ms: u64 = 1000;
    for (0..100) |_| {
        const poll = poller.plan(now_ms, 30_000, prng.nextU64());
        try testing.expect(poll.carries_heartbeat);
        try testing.expect(poll.wait_ms >= 26_250 and poll.wait_ms <= 30_000);
        sender.onCarried(poll.carriesUntil(now_ms));
        const end_ms = now_ms + poll.wait_ms;
        while (now_ms < end_ms) : (now_ms += 5_000) switch (sender.next(now_ms, 0)) {
            .look => sender.looked(now_ms, false),
            .wait_until_ms => {},
            .heartbeat, .reports, .stopped => return error.TestUnexpectedResult,
        };
        now_ms = end_ms;
    }
    // News do not wait for the poll's end.
    sender.next_look_ms = now_ms;
    try testing.expectEqual(Sender.Step.look, sender.next(now_ms, 0));
    sender.looked(now_ms, true);
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(now_ms, 0));
    _ = sender.heartbeatAnswered(now_ms, 0, .ok, 30_000);
    try testing.expect(sender.next(now_ms, 0) != .heartbeat);
}

test "heartbeats come by themselves again when polls fail or stay unanswered" {
    var sender: Sender = .{};
    _ = sender.heartbeatAnswered(0, 0, .ok, 30_000);
    sender.onCarried(65_000);
    sender.looked(30_000, false);
    try testing.expectEqual(Sender.Step{ .wait_until_ms = 35_000 }, sender.next(30_001, 0));
    sender.looked(64_000, false);
    // Its answer is late.
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(65_000, 0));
    // The connection was lost.
    sender.onCarried(0);
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(30_001, 0));
    // The control plane that does not answer is not asked more often for all that.
    _ = sender.heartbeatAnswered(30_001, 0, .nothing, 0);
    sender.looked(35_001, true);
    try testing.expectEqual(Sender.Step.heartbeat, sender.next(35_001, 0));
    for (0..8) |_| _ = sender.heartbeatAnswered(35_001, 0, .nothing, 0);
    sender.looked(40_001, true);
    try testing.expect(sender.next(40_001, 0) != .heartbeat);
}

test "an API that refuses polls with heartbeats is polled without, and asked again later" {
    const refusals = [_]Answer{
        .{ .refused = .{ .status = 404, .code = .other } },
        .{ .refused = .{ .status = 400, .code = .invalid_body } },
    };
    for (refusals) |refusal| {
        var poller: Poller = .{};
        // Before anything is known.
        try testing.expect(!poller.plan(0, 0, 0).carries_heartbeat);
        try testing.expectEqual(poll_wait_ms, poller.plan(0, 0, 7).wait_ms);
        try testing.expect(poller.plan(1000, 30_000, 7).carries_heartbeat);
        for ([_]Answer{ .ok, .nothing, .{ .later = 5 } }) |other| poller.onCarried(1000, other);
        try testing.expect(poller.plan(1000, 30_000, 7).carries_heartbeat);
        poller.onCarried(1000, refusal);
        try testing.expect(!poller.plan(1000 + separate_ms - 1, 30_000, 7).carries_heartbeat);
        try testing.expect(poller.plan(1000 + separate_ms, 30_000, 7).carries_heartbeat);
    }
    const poller: Poller = .{};
    // No busy loop, and no edge that seems lost.
    try testing.expect(poller.plan(0, 1, std.math.maxInt(u64)).wait_ms >= 4_000);
    try testing.expect(poller.plan(0, std.math.maxInt(u64), 0).wait_ms <= 60_000);
}

test "retries wait 1 s doubling to 30 s with jitter, and end when the API is back" {
    var back_off: BackOff = .{};
    var prng: base.Prng = .init(3);
    for ([_]u64{ 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000 }) |whole_ms| {
        back_off.fail(7, prng.nextU64());
        try testing.expect(back_off.not_before_ms >= 7 + whole_ms / 2);
        try testing.expect(back_off.not_before_ms <= 7 + whole_ms);
    }
    var sender: Sender = .{};
    for (0..300) |_| _ = sender.reportsAnswered(0, 0, .nothing);
    _ = sender.heartbeatAnswered(0, 0, .nothing, 0);
    _ = sender.heartbeatAnswered(1, 0, .ok, 0);
    try testing.expectEqual(Sender.Step.reports, sender.next(1, 1));
}

test "a time that an API requests is respected, and edges do not all return together after it" {
    var prng: base.Prng = .init(5);
    for (0..200) |_| {
        var sender: Sender = .{};
        var random = prng.nextU64();
        _ = sender.reportsAnswered(1000, random, .{ .later = 8_000 });
        try testing.expect(sender.reports.not_before_ms >= 9_000);
        try testing.expect(sender.reports.not_before_ms <= 13_000);
        // An API that answers heartbeats may still refuse reports.
        _ = sender.heartbeatAnswered(1001, 0, .nothing, 0);
        _ = sender.heartbeatAnswered(1002, 0, .ok, 0);
        try testing.expectEqual(9_000, sender.reports.not_before_ms);
        // A requested year is cut to minutes, and a requested zero does not mean at once.
        random = prng.nextU64();
        sender.reports.wait(0, random, std.math.maxInt(u32));
        try testing.expect(sender.reports.not_before_ms >= retry_after_most_ms);
        try testing.expect(sender.reports.not_before_ms <= retry_after_most_ms * 3 / 2);
        sender.reports.reset();
        sender.reports.wait(0, random, 0);
        try testing.expect(sender.reports.not_before_ms >= retry_first_ms / 2);
    }
}

test "batches are compressed while the API accepts it, and never again after it refused one" {
    var sender: Sender = .{};
    try testing.expect(!sender.mayCompress());
    sender.onBatchForm(true, false);
    try testing.expect(sender.mayCompress());
    // An older API replaces it.
    sender.onBatchForm(false, false);
    try testing.expect(!sender.mayCompress());
    sender.onBatchForm(true, true);
    try testing.expect(!sender.mayCompress());
}

test "a refused batch is kept and retried later, a gap is declared at once" {
    var sender: Sender = .{};
    _ = sender.heartbeatAnswered(0, 0, .ok, 0);
    const invalid: Answer = .{ .refused = .{ .status = 400, .code = .invalid_body } };
    try testing.expectEqual(Effect.none, sender.reportsAnswered(0, 0, invalid));
    try testing.expectEqual(Sender.Step{ .wait_until_ms = 500 }, sender.next(1, 1));
    sender.reports.reset();
    const gap: Answer = .{ .refused = .{ .status = 409, .code = .report_gap, .expected_seq = 4 } };
    try testing.expectEqual(Effect{ .rewind = 4 }, sender.reportsAnswered(1, 0, gap));
    try testing.expectEqual(Sender.Step.reports, sender.next(2, 1));
    try testing.expectEqual(Effect{ .rewind = 4 }, sender.reportsAnswered(2, 0, gap));
    try testing.expectEqual(
        std.meta.Tag(Sender.Step).wait_until_ms,
        std.meta.activeTag(sender.next(3, 1)),
    );
}

test "a revoked edge sends nothing more" {
    var sender: Sender = .{};
    var poller: Poller = .{};
    const revoked: Answer = .{ .refused = .{ .status = 403, .code = .edge_revoked } };
    try testing.expectEqual(Effect.stop, sender.heartbeatAnswered(0, 0, revoked, 0));
    try testing.expectEqual(Effect.stop, poller.answered(0, 0, revoked, false));
    try testing.expectEqual(Sender.Step.stopped, sender.next(90_000, 3));
    try testing.expectEqual(Poller.Step.stopped, poller.next(90_000));
}

test "a refused state is not requested again at once" {
    var poller: Poller = .{};
    _ = poller.answered(0, 0, .ok, false);
    try testing.expectEqual(Poller.Step{ .wait_until_ms = 500 }, poller.next(1));
    _ = poller.answered(1, 0, .ok, true);
    try testing.expectEqual(Poller.Step.poll, poller.next(1));
}

test "a change that does not fit is followed by the whole state at once, and by no loop" {
    var poller: Poller = .{};
    try testing.expect(poller.plan(1000, 0, 0).names_base);
    try testing.expect(poller.onUnfitDelta(1000));
    _ = poller.answered(1000, 0, .ok, true);
    try testing.expectEqual(Poller.Step.poll, poller.next(1000));
    for ([_]u64{ 0, 28_000 }) |named_ms| {
        try testing.expect(!poller.plan(1000, named_ms, 0).names_base);
        try testing.expect(!poller.plan(1000 + separate_ms - 1, named_ms, 0).names_base);
        try testing.expect(poller.plan(1000 + separate_ms, named_ms, 0).names_base);
    }
    // It was not asked for.
    const again = poller.onUnfitDelta(2000);
    try testing.expect(!again);
    _ = poller.answered(2000, 0, .ok, again);
    try testing.expectEqual(Poller.Step{ .wait_until_ms = 2500 }, poller.next(2001));
    try testing.expect(!poller.plan(1000 + separate_ms, 0, 0).names_base);
}

test "a power-on is executed once" {
    var log: PowerOnLog = .{};
    const id: base.Uuid = .fromRandom(@splat(5));
    try testing.expect(log.add(id));
    try testing.expect(!log.add(id));
    for (0..PowerOnLog.capacity - 1) |index| {
        var bytes: [16]u8 = @splat(1);
        std.mem.writeInt(u64, bytes[8..16], index, .big);
        try testing.expect(log.add(.fromBytes(bytes)));
    }
    try testing.expect(!log.add(id));
}

test "an edge that is refused is not accepted, and a busy control plane changes nothing" {
    const refused: Answer = .{ .refused = .{ .status = 401, .code = .signature_invalid } };
    const gap: Answer = .{ .refused = .{ .status = 409, .code = .report_gap } };
    const busy: Answer = .{ .later = 1000 };
    for ([_]bool{ false, true }) |before| {
        try testing.expect(@as(Answer, .ok).accepts(before));
        try testing.expect(!@as(Answer, .nothing).accepts(before));
        try testing.expect(!refused.accepts(before));
        try testing.expectEqual(before, gap.accepts(before));
        try testing.expectEqual(before, busy.accepts(before));
    }
}
