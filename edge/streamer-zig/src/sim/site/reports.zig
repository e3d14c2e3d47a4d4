//! A month without the control plane: devices boot, the edge is killed and starts again with a clock that is wrong by years, and
//! when the control plane is back half of its acknowledgements are lost, requests come twice, and it asks to be spared. Checked once
//! all has been sent: every boot is there, each is counted once, the log stayed within its size. The real report log, sender and
//! compression; time is virtual.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Invariants = @import("invariants.zig");
const LogDisk = @import("log_disk.zig");
const Mutant = @import("mutants.zig").Mutant;
const ReportPlane = @import("report_plane.zig");
const assert = std.debug.assert;

pub const Reports = @This();

const Log = core.uplink.report_log.ReportLog(LogDisk.Files);
const day_ms = std.time.ms_per_day;
const year_ms = 365 * day_ms;
const begin_unix_ms = 1_795_000_000_000;
/// What the control plane needs for an answer.
const answer_ms = 40;
/// Days that all may take to be sent; more is standing still.
const drain_days_max = 30;

pub const Options = struct {
    seed: u64,
    days: u32 = 30,
    devices: u32 = 1000,
    boots_per_day: u32 = 4,
    restarts: u32 = 10,
    size_max: u64 = core.uplink.report_log.size_max_default,
    mutant: Mutant = .none,

    /// Small enough for every seed.
    pub fn small(seed: u64, mutant: Mutant) Options {
        return .{ .seed = seed, .days = 3, .devices = 50, .restarts = 6, .mutant = mutant };
    }
};

pub const Result = struct {
    boots: u64 = 0,
    batches: u64 = 0,
    acknowledgements_lost: u64 = 0,
    restarts: u64 = 0,
    torn: u64 = 0,
    log_size_most: u64 = 0,
    hash: u64 = 0,
    violation: ?Invariants.Violation = null,
};

gpa: std.mem.Allocator,
options: Options,
prng: base.Prng,
disk: LogDisk,
log: Log,
plane: ReportPlane,
sender: core.uplink.sender.Sender = .{},
gzip: core.uplink.batch_gzip.BatchGzip,
buffer: []u8,
/// A copy of an earlier request, which comes once more.
stray: std.ArrayList(u8) = .empty,
stray_is_gzip: bool = false,
now_ms: u64 = 1_000,
epoch: u64 = 1,
clock_offset_ms: i64 = 0,
/// Until then the control plane has asked to be spared.
spared_until_ms: u64 = 0,
boots: u64 = 0,
result: Result = .{},

pub fn run(gpa: std.mem.Allocator, options: Options) !Result {
    const world = try gpa.create(Reports);
    defer gpa.destroy(world);
    world.* = .{
        .gpa = gpa,
        .options = options,
        .prng = .init(options.seed *% 0x9e37_79b9 +% 9),
        .disk = try .init(gpa),
        .log = undefined,
        .plane = .{ .gpa = gpa, .mutant = options.mutant },
        .gzip = try .init(gpa, core.uplink.report_log.batch_size_max),
        .buffer = try gpa.alloc(u8, core.uplink.report_log.batch_size_max),
    };
    defer {
        world.log.deinit(gpa);
        world.plane.deinit();
        world.disk.deinit();
        world.gzip.deinit(gpa);
        gpa.free(world.buffer);
        world.stray.deinit(gpa);
    }
    world.log = try world.openLog();
    try world.live();
    world.check();
    return world.result;
}

fn openLog(world: *Reports) !Log {
    return Log.open(world.gpa, .{ .disk = &world.disk }, .{ .epoch = world.epoch, .size_max = world.options.size_max });
}

/// Boots come evenly; a restart comes by chance, so that all have come shortly after the control plane is back.
fn live(world: *Reports) !void {
    const options = &world.options;
    const begin_ms = world.now_ms;
    const total: u64 = @as(u64, options.days) * options.devices * options.boots_per_day;
    const outage_ms: u64 = @as(u64, options.days) * day_ms;
    const back_ms = begin_ms + outage_ms;
    const end_ms = back_ms + drain_days_max * day_ms;
    while (world.boots < total or world.log.backlog() > 0) {
        if (world.now_ms > end_ms) return world.fail("after {d} days {d} reports still wait", .{ drain_days_max, world.log.backlog() });
        const boot_ms = begin_ms + world.boots * outage_ms / total;
        if (world.boots < total and boot_ms <= world.now_ms) {
            try world.boot();
            // Seven of ten in the month; the others while reports are sent.
            if (world.boots % (total * 10 / (@as(u64, options.restarts) * 7) + 1) == 0) try world.restart();
            continue;
        }
        const is_back = world.now_ms >= back_ms;
        if (is_back and world.result.restarts < options.restarts) {
            // A batch takes 100 at most: what chance has left out comes before the last of them.
            const is_due = world.log.backlog() <= (options.restarts - world.result.restarts) * core.uplink.report_log.batch_reports_max;
            if (world.prng.chance(1, 40) or is_due) try world.restart();
        }
        switch (world.sender.next(world.now_ms, world.log.backlog())) {
            .heartbeat => _ = world.sender.heartbeatAnswered(world.now_ms, world.prng.nextU64(), if (is_back) .ok else .nothing),
            .reports => try world.sendReports(is_back),
            .wait_until_ms => |until_ms| {
                assert(until_ms > world.now_ms);
                // A report that comes wakes the sender.
                world.now_ms = if (world.boots < total) @min(until_ms, @max(boot_ms, world.now_ms + 1)) else until_ms;
            },
            .stopped => return world.fail("the sender has stopped", .{}),
        }
        if (world.result.violation != null) return;
    }
}

/// A boot as the edge reports it when it is over; with little waiting also what came before.
fn boot(world: *Reports) !void {
    world.boots += 1;
    var one: core.boot.Boot = .init(.{
        .id = idOf(world.boots),
        .mac = .fromInt(@intCast(0x02bf_0000_0001 + world.boots % world.options.devices)),
        .handle = world.boots,
        .token = @splat(1),
    }, .{ .version_id = .zero }, 1, world.wallMs());
    one.apply(1, .power_command);
    if (!world.log.isBehind()) world.keep(&one, 1);
    one.apply(9 * std.time.us_per_s, .{ .ready = .http });
    assert(one.isOver());
    world.keep(&one, 2);
}

fn keep(world: *Reports, one: *const core.boot.Boot, revision: u64) void {
    world.disk.unix_ms = world.wallMs();
    var json: [core.boot.report.size_max]u8 = undefined;
    if (!world.log.appendBoot(core.boot.report.encode(one, .{ .revision = revision }, &json)))
        world.fail("the report log is full after {d} boots and {d} bytes", .{ world.boots, world.disk.size });
}

fn wallMs(world: *const Reports) u64 {
    const true_ms: i64 = @intCast(begin_unix_ms + world.now_ms);
    return @intCast(@max(0, true_ms + world.clock_offset_ms));
}

/// kill -9: every other time in the midst of a record, whose boot the journal has and which is reported again.
fn restart(world: *Reports) !void {
    world.result.restarts += 1;
    world.log.deinit(world.gpa);
    const is_torn = world.prng.chance(1, 2) and world.disk.tear(&world.prng);
    world.result.torn += @intFromBool(is_torn);
    if (world.options.mutant == .forget_report_log) world.disk.forget();
    world.epoch += 1;
    world.clock_offset_ms = @as(i64, @intCast(world.prng.below(80 * year_ms))) - 40 * year_ms;
    world.sender = .{};
    world.spared_until_ms = 0;
    world.log = try world.openLog();
    if (is_torn) {
        var one: core.boot.Boot = .init(.{
            .id = idOf(world.boots),
            .mac = .fromInt(0x02bf_0000_0001),
            .handle = world.boots,
            .token = @splat(1),
        }, .{ .version_id = .zero }, 1, world.wallMs());
        one.apply(9 * std.time.us_per_s, .{ .ready = .http });
        world.keep(&one, 3);
    }
}

fn sendReports(world: *Reports, is_back: bool) !void {
    const prng = &world.prng;
    if (world.now_ms < world.spared_until_ms)
        return world.fail("a request came {d} ms before the time that was asked for", .{world.spared_until_ms - world.now_ms});
    const random = prng.nextU64();
    if (!is_back) {
        _ = world.sender.reportsAnswered(world.now_ms, random, .nothing);
        return;
    }
    const batch = (world.log.nextBatch(world.buffer) catch unreachable) orelse return;
    assert(batch.body.len <= core.uplink.report_log.batch_size_max);
    if (prng.chance(1, 20)) {
        // Busy: it asks for some seconds.
        const after_ms: u32 = @intCast(prng.between(1, 10) * 1000);
        _ = world.sender.reportsAnswered(world.now_ms, random, .{ .later = after_ms });
        world.spared_until_ms = world.now_ms + after_ms;
        return;
    }
    const compressed = if (world.sender.mayCompress() and prng.chance(1, 8)) world.gzip.compress(batch.body) else null;
    const sent = compressed orelse batch.body;
    try world.comeAgain();
    if (prng.chance(1, 30)) {
        world.stray.clearRetainingCapacity();
        try world.stray.appendSlice(world.gpa, sent);
        world.stray_is_gzip = compressed != null;
    }
    if (prng.chance(1, 20)) {
        // Lost on the way there.
        _ = world.sender.reportsAnswered(world.now_ms, random, .nothing);
        return;
    }
    const answer = try world.plane.receive(sent, compressed != null);
    world.now_ms += answer_ms;
    const is_lost = prng.chance(1, 2);
    world.result.acknowledgements_lost += @intFromBool(is_lost);
    if (is_lost) {
        if (world.options.mutant == .believe_lost_answers) world.log.ack(batch.epoch, batch.until_seq + 1);
        _ = world.sender.reportsAnswered(world.now_ms, random, .nothing);
        return;
    }
    world.sender.onBatchForm(true, false);
    switch (answer) {
        .acked => |seq| {
            world.log.ack(batch.epoch, seq);
            _ = world.sender.reportsAnswered(world.now_ms, random, .ok);
        },
        .gap => |seq| {
            const refused: core.uplink.sender.Answer = .{ .refused = .{ .status = 409, .code = .report_gap, .expected_seq = seq } };
            switch (world.sender.reportsAnswered(world.now_ms, random, refused)) {
                .rewind => |expected| world.log.rewind(batch.epoch, expected),
                .none, .stop => {},
            }
        },
        .malformed => |why| world.fail("a batch was refused: {s}", .{why}),
    }
}

/// A request that was sent long ago arrives.
fn comeAgain(world: *Reports) !void {
    if (world.stray.items.len == 0 or !world.prng.chance(1, 10)) return;
    _ = try world.plane.receive(world.stray.items, world.stray_is_gzip);
    world.stray.clearRetainingCapacity();
}

fn idOf(number: u64) base.Uuid {
    var bytes: [16]u8 = @splat(0x33);
    std.mem.writeInt(u64, bytes[0..8], number *% 0x9e37_79b9_7f4a_7c15, .big);
    std.mem.writeInt(u64, bytes[8..16], number, .big);
    return .fromRandom(bytes);
}

fn check(world: *Reports) void {
    const result = &world.result;
    result.boots = world.boots;
    result.batches = world.plane.batch_count;
    result.log_size_most = world.disk.size_most;
    result.hash = world.plane.hash.final();
    if (result.violation != null) return;
    for (1..world.boots + 1) |number| {
        const kept = world.plane.boots.get(idOf(number).bytes) orelse
            return world.fail("boot {d} of {d} is lost", .{ number, world.boots });
        if (!kept.is_ready) return world.fail("boot {d} is not over", .{number});
    }
    if (world.plane.boots.count() != world.boots)
        return world.fail("{d} boots are there, {d} were", .{ world.plane.boots.count(), world.boots });
    if (world.plane.ready_count != world.boots)
        return world.fail("{d} boots are counted, {d} were", .{ world.plane.ready_count, world.boots });
    if (world.plane.lost_count != 0) return world.fail("{d} reports were declared lost", .{world.plane.lost_count});
    if (result.log_size_most > world.options.size_max + core.uplink.report_gaps.file_size)
        return world.fail("the log took {d} bytes", .{result.log_size_most});
    if (result.restarts < world.options.restarts) return world.fail("only {d} restarts", .{result.restarts});
}

fn fail(world: *Reports, comptime format: []const u8, values: anytype) void {
    if (world.result.violation != null) return;
    var violation: Invariants.Violation = .{ .check = .reports_once, .text_buffer = undefined, .text_size = 0 };
    const text = std.mem.print(&violation.text_buffer, format, values) catch violation.text_buffer[0..];
    violation.text_size = @intCast(text.len);
    world.result.violation = violation;
}

test "every boot of an outage is counted once, the same seed gives the same run, and a log that is forgotten is found" {
    const gpa = std.testing.allocator;
    for (1..7) |seed| {
        const result = try run(gpa, .small(seed, .none));
        if (result.violation) |*violation| {
            std.debug.print("seed {d}: {s}\n", .{ seed, violation.text() });
            return error.TestUnexpectedResult;
        }
        if (seed == 1) try std.testing.expectEqual(result, try run(gpa, .small(1, .none)));
    }
    for ([_]Mutant{ .forget_report_log, .apply_reports_again, .believe_lost_answers }) |mutant|
        try std.testing.expect((try run(gpa, .small(1, mutant))).violation != null);
}
