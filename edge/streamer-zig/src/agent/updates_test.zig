//! Simulates edges that update themselves, in virtual time: orders come, downloads are cut or
//! changed, programs end, do not start, or are refused by the control plane, and the edge is killed
//! in any state. The decisions are the product's (updates.zig, core/update); the data directory and
//! the start of programs are as host/update and edge/serve.zig make them.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Updates = @import("updates.zig");
const Exchange = core.update.Exchange;
const Probation = core.update.Probation;
const Record = core.update.Record;
const testing = std.testing;
const us_per_s = std.time.us_per_s;

const Kind = enum { good, ends_at_once, cannot_start, refused, unfit };

/// Its version says what it does.
const Program = struct { version: []const u8, kind: Kind };

const installed: Program = .{ .version = "0.1.0", .kind = .good };
const programs = [_]Program{
    installed,
    .{ .version = "0.2.0", .kind = .good },
    .{ .version = "0.3.0", .kind = .good },
    .{ .version = "0.4.0", .kind = .ends_at_once },
    .{ .version = "0.5.0", .kind = .refused },
    .{ .version = "0.6.0", .kind = .cannot_start },
    .{ .version = "0.7.0", .kind = .unfit },
};

/// Survives the processes.
const Disk = struct {
    /// `updated-program`, `updated-program.next`, `former-program`.
    release: ?Program = null,
    next: ?Program = null,
    former: ?Program = null,
    probation: ?Probation.Record = null,
    record: ?Record = null,
    /// Of the last desired state, which is in the data directory as well.
    order: ?Updates.Order = null,
};

const Process = struct {
    program: Program,
    is_release: bool,
    updates: Updates,
    exchange: Exchange = .{},
    exchange_order: Updates.Order = undefined,
    successor: Exchange.Successor = .unknown,
    probation: ?Probation = null,
    is_accepted: bool = false,
};

const Edge = struct {
    disk: Disk = .{},
    /// Null while the service manager waits to start it again.
    process: ?Process = null,
    now_us: u64 = us_per_s,
    prng: base.Prng,
    /// While it is on, everything can go wrong.
    has_faults: bool = true,
    is_plane_up: bool = true,
    /// The last one that has passed: what an edge returns to.
    passed: Program = installed,
    tried_by: [programs.len]u64 = @splat(0),
    exchanges: u32 = 0,

    /// A service manager starts the installed program.
    fn start(edge: *Edge) void {
        if (edge.disk.record) |*record| if (edge.disk.release != null) {
            switch (record.choose(installed.version)) {
                .forget => unreachable,
                .leave => edge.giveBack(.ended),
                .release => {},
            }
            return edge.begin(edge.disk.release.?, true);
        };
        edge.begin(installed, false);
    }

    fn begin(edge: *Edge, program: Program, is_release: bool) void {
        edge.process = null;
        if (program.kind == .ends_at_once) return;
        var probation: ?Probation = null;
        if (edge.disk.former != null) if (edge.disk.probation) |*record| {
            if (!record.start()) return edge.leave(.ended);
            probation = .{ .was_accepted = record.was_accepted, .began_us = edge.now_us };
        };
        if (program.kind == .cannot_start) return edge.leave(.cannot_start);
        edge.process = .{
            .program = program,
            .is_release = is_release,
            .updates = .{ .running = program.version },
            .probation = probation,
        };
        edge.tellTried();
        _ = edge.process.?.updates.setOrder(edge.disk.order);
    }

    fn leave(edge: *Edge, cause: Record.Cause) void {
        edge.giveBack(cause);
        edge.begin(edge.disk.release.?, true);
    }

    fn giveBack(edge: *Edge, cause: Record.Cause) void {
        edge.disk.record.?.fail(cause);
        edge.disk.release = edge.disk.former.?;
        edge.disk.former = null;
        edge.disk.probation = null;
    }

    fn tellTried(edge: *Edge) void {
        const record = edge.disk.record orelse return;
        edge.process.?.updates.onTried(.{
            .order = Updates.Order.init(record.version, record.attempt).?,
            .outcome = record.outcome,
            .cause = record.cause,
        });
    }

    /// A second passes.
    fn step(edge: *Edge) !void {
        edge.now_us += us_per_s;
        if (edge.has_faults and edge.prng.chance(1, 200)) edge.process = null;
        if (edge.has_faults and edge.prng.chance(1, 60)) edge.is_plane_up = !edge.is_plane_up;
        if (edge.process == null) return edge.start();
        const process = &edge.process.?;
        process.is_accepted = edge.is_plane_up and process.program.kind != .refused;
        try edge.fetch();
        edge.turnUpdate();
        edge.turnExchange();
        if (edge.process != null) edge.turnProbation();
    }

    fn fetch(edge: *Edge) !void {
        const process = &edge.process.?;
        const order = switch (process.updates.next(edge.now_us / std.time.us_per_ms)) {
            .fetch => |order| order,
            .idle, .wait_until_ms => return,
        };
        const program = programOf(&order);
        // What has failed here is not tried again without another order.
        try testing.expect(edge.tried_by[indexOf(program)] < order.attempt);
        const causes = [_]Record.Cause{ .no_answer, .target_refused, .too_slow, .no_space };
        if (!process.is_accepted) return edge.failFetch(.no_answer);
        if (edge.has_faults and edge.prng.chance(1, 2))
            return edge.failFetch(edge.prng.pick(Record.Cause, &causes));
        edge.disk.next = program;
        try testing.expect(process.updates.onFetched(order));
    }

    fn failFetch(edge: *Edge, cause: Record.Cause) void {
        const now_ms = edge.now_us / std.time.us_per_ms;
        edge.process.?.updates.onFailed(cause, now_ms, edge.prng.nextU64());
    }

    fn turnUpdate(edge: *Edge) void {
        const process = &edge.process.?;
        if (process.probation != null or process.exchange.asked_us != null) return;
        const order = process.updates.due(process.is_accepted) orelse return;
        process.exchange.ask(edge.now_us);
        process.exchange_order = order;
        process.successor = if (edge.disk.next.?.kind == .unfit) .unfit else .ready;
        if (process.successor == .ready) edge.disk.former = process.program;
    }

    fn turnExchange(edge: *Edge) void {
        const process = &edge.process.?;
        const order = process.exchange_order;
        var decision = process.exchange.decide(edge.now_us, .{
            .successor = process.successor,
            .downloads = if (edge.has_faults) @intCast(edge.prng.below(2)) else 0,
            .volatile_caches = @intFromBool(edge.has_faults and edge.prng.chance(1, 2)),
            .takes_caches = edge.has_faults and edge.prng.chance(1, 2),
        });
        if (decision == .due) {
            const is_complete = !edge.has_faults or edge.prng.chance(3, 4);
            decision = process.exchange.onHandover(edge.now_us, is_complete);
        }
        switch (decision) {
            .none, .awaits_program, .awaits_caches, .awaits_downloads, .awaits_handover => {},
            .refused => {
                edge.tried_by[indexOf(edge.disk.next.?)] = order.attempt;
                edge.disk.record = recordOf(&order, .failed);
                edge.tellTried();
            },
            .due => {
                edge.exchanges += 1;
                edge.disk.probation = .{ .was_accepted = true };
                edge.disk.record = recordOf(&order, .probation);
                edge.disk.release = edge.disk.next.?;
                edge.disk.next = null;
                edge.tried_by[indexOf(edge.disk.release.?)] = order.attempt;
                edge.begin(edge.disk.release.?, true);
            },
        }
    }

    fn turnProbation(edge: *Edge) void {
        const process = &edge.process.?;
        const probation = process.probation orelse return;
        switch (probation.judge(edge.now_us, process.is_accepted)) {
            .open => {},
            .passed => {
                edge.disk.record.?.pass(process.program.version);
                edge.tellTried();
                edge.disk.former = null;
                edge.disk.probation = null;
                process.probation = null;
                edge.passed = process.program;
            },
            .failed => edge.leave(.no_control_plane),
        }
    }

    fn setOrder(edge: *Edge, program: Program, attempt: u64) void {
        edge.disk.order = Updates.Order.init(program.version, attempt).?;
        const process = if (edge.process) |*process| process else return;
        if (!process.updates.setOrder(edge.disk.order)) return;
        process.exchange.asked_us = null;
    }

    /// Whatever happened: an edge that is not on probation runs what has passed, one that is can
    /// return to it, and nothing that is unfit ever runs.
    fn check(edge: *const Edge) !void {
        const process = if (edge.process) |*process| process else return;
        const runs = process.program;
        try testing.expectEqual(.good, edge.passed.kind);
        if (process.probation) |probation| {
            try testing.expectEqualStrings(edge.passed.version, edge.disk.former.?.version);
            try testing.expect(edge.now_us - probation.began_us <= 60 * us_per_s);
            return;
        }
        try testing.expectEqualStrings(edge.passed.version, runs.version);
    }
};

fn recordOf(order: *const Updates.Order, outcome: Record.Outcome) Record {
    return .{
        .version = programOf(order).version,
        .attempt = order.attempt,
        .installed = installed.version,
        .outcome = outcome,
        .cause = if (outcome == .failed) .unfit else null,
    };
}

fn programOf(order: *const Updates.Order) Program {
    for (programs) |program|
        if (std.mem.eql(u8, program.version, order.version.constSlice())) return program;
    unreachable;
}

fn indexOf(program: Program) usize {
    for (programs, 0..) |one, index|
        if (std.mem.eql(u8, program.version, one.version)) return index;
    unreachable;
}

/// Longer than the longest wait between two fetches, and a probation.
const settle_s = 32 * std.time.s_per_min;

test "whatever is ordered and fails, an edge runs what has passed, or can return to it" {
    var exchanges: u64 = 0;
    for (0..300) |seed| {
        var edge: Edge = .{ .prng = .init(seed) };
        errdefer std.debug.print("seed {d}, at {d} s\n", .{ seed, edge.now_us / us_per_s });
        edge.start();
        var attempt: u64 = 0;
        for (0..12) |_| {
            attempt += 1;
            edge.setOrder(edge.prng.pick(Program, &programs), attempt);
            for (0..edge.prng.between(1, 400)) |_| {
                try edge.step();
                try edge.check();
            }
        }
        edge.has_faults = false;
        edge.is_plane_up = true;
        const last = edge.prng.pick(Program, &programs);
        attempt += 1;
        edge.setOrder(last, attempt);
        for (0..settle_s) |_| {
            try edge.step();
            try edge.check();
        }
        const status = edge.process.?.updates.status().?;
        try testing.expectEqual(
            @as(Updates.State, if (last.kind == .good) .healthy else .failed),
            status.state,
        );
        try testing.expectEqual(last.kind == .good, status.cause == null);
        exchanges += edge.exchanges;
    }
    // The faults leave something to try.
    try testing.expect(exchanges > 1000);
}

test "a release that the control plane refuses is left after a minute, and not tried again" {
    var edge: Edge = .{ .prng = .init(1), .has_faults = false };
    edge.start();
    edge.setOrder(programs[4], 1);
    var exchanged_us: ?u64 = null;
    while (edge.exchanges == 0 or edge.process.?.probation != null) {
        try edge.step();
        if (edge.exchanges == 1 and exchanged_us == null) exchanged_us = edge.now_us;
    }
    try testing.expectEqual(60 * us_per_s, edge.now_us - exchanged_us.?);
    try testing.expectEqualStrings(installed.version, edge.process.?.program.version);
    for (0..settle_s) |_| try edge.step();
    try testing.expectEqual(1, edge.exchanges);
    const status = edge.process.?.updates.status().?;
    try testing.expectEqual(.failed, status.state);
    try testing.expectEqual(.no_control_plane, status.cause.?);
    // A new order is a new chance.
    edge.setOrder(programs[4], 2);
    for (0..settle_s) |_| try edge.step();
    try testing.expectEqual(2, edge.exchanges);
}

test "an edge that is killed in any second of an update has the release or the one before" {
    for (0..30) |second| {
        var edge: Edge = .{ .prng = .init(second), .has_faults = false };
        edge.start();
        edge.setOrder(programs[1], 1);
        for (0..second) |_| try edge.step();
        const was_on_probation = edge.process.?.probation != null;
        edge.process = null;
        for (0..settle_s) |_| {
            try edge.step();
            try edge.check();
        }
        const status = edge.process.?.updates.status().?;
        // Killed on probation is ended on probation: nobody can tell them apart.
        try testing.expectEqual(
            @as(Updates.State, if (was_on_probation) .failed else .healthy),
            status.state,
        );
        if (was_on_probation) try testing.expectEqual(.ended, status.cause.?);
    }
}
