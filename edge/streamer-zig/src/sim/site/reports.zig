//! A month without the control plane. Devices boot, and the edge is killed, loses power and starts
//! again with a clock that is wrong by years. When the control plane is back, half of its
//! acknowledgements are lost, requests arrive twice, and it asks for delays. Once everything is
//! sent, every boot is there, each is counted once, and the log has stayed within its size. The
//! report log, the sender and the compression are the product's; network, clock and disk are those
//! of every simulated edge (report_uplink.zig).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Fabric = network.Network;
const Invariants = @import("invariants.zig");
const LogFiles = @import("log_files.zig");
const Mutant = @import("mutants.zig").Mutant;
const ReportUplink = @import("report_uplink.zig");
const SimFiles = @import("../kit/sim_files.zig");
const network = @import("network.zig");

pub const Reports = @This();

const day_us = std.time.us_per_day;
const year_ms = 365 * std.time.ms_per_day;
/// Everything is sent within so many days, or the edge makes no progress.
const drain_days_max = 30;

pub const Options = struct {
    seed: u64,
    days: u64 = 30,
    devices: u32 = 1000,
    boots_per_day: u32 = 4,
    restarts: u32 = 10,
    mutant: Mutant = .none,

    /// A run that is short enough for every seed.
    pub fn small(seed: u64, mutant: Mutant) Options {
        return .{ .seed = seed, .days = 3, .devices = 50, .restarts = 6, .mutant = mutant };
    }

    fn bootCount(options: *const Options) u64 {
        return options.days * options.devices * options.boots_per_day;
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

options: Options,
prng: base.Prng,
invariants: Invariants = .{},
fabric: Fabric,
disk: SimFiles,
uplink: ReportUplink,
boots: u64 = 0,
result: Result = .{},

pub fn run(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!Result {
    const world = try gpa.create(Reports);
    defer gpa.destroy(world);
    world.* = .{
        .options = options,
        .prng = .init(options.seed *% 0x9e37_79b9 +% 9),
        .fabric = undefined,
        .disk = undefined,
        .uplink = undefined,
    };
    world.fabric = try .init(gpa, &world.invariants);
    defer world.fabric.deinit(gpa);
    world.fabric.restart(.{ .seed = world.prng.nextU64(), .links = 0 });
    world.disk = try .init(gpa, world.prng.nextU64());
    defer world.disk.deinit();
    world.uplink = try .init(gpa, .{
        .fabric = &world.fabric,
        .edge = 0,
        .disk = &world.disk,
        .seed = world.prng.nextU64(),
        .mutant = options.mutant,
        .requests = .{
            .loss_per_mille = 50,
            .duplicate_per_mille = 30,
            .hold_us = std.time.us_per_hour,
        },
        .answers = .{ .loss_per_mille = 500, .delay_us = 40 * std.time.us_per_ms },
    });
    defer world.uplink.deinit();
    try world.play();
    world.check();
    return world.result;
}

/// Boots come evenly over the outage.
fn play(world: *Reports) error{OutOfMemory}!void {
    const fabric = &world.fabric;
    const uplink = &world.uplink;
    const back_us = network.start_us + world.options.days * day_us;
    uplink.is_cut = true;
    fabric.plan(network.start_us, .{ .power_on = 0 });
    fabric.plan(back_us, .{ .uplink = .{ .edge = 0, .is_up = true } });
    try uplink.start();
    while (world.invariants.violation == null) {
        if (uplink.isDrained() and !uplink.is_cut) return;
        switch (fabric.next() orelse return world.fail("nothing more is planned", .{})) {
            .power_on => try world.boot(),
            .uplink => uplink.is_cut = false,
            .reports => |due| try uplink.step(due.serial, due.step),
            else => unreachable,
        }
        world.result.log_size_most = @max(world.result.log_size_most, world.disk.namedBytes());
        if (!uplink.is_cut) try world.restartSometimes();
        if (fabric.now_us > back_us + drain_days_max * day_us) return world.fail(
            "after {d} days {d} reports are not sent",
            .{ drain_days_max, uplink.process.?.log.backlog() },
        );
    }
}

/// Reports a boot as the edge does when it is over, and before its end while the log keeps up.
fn boot(world: *Reports) error{OutOfMemory}!void {
    const total = world.options.bootCount();
    world.boots += 1;
    if (world.boots < total) {
        const after_us = world.boots * world.options.days * day_us / total;
        world.fabric.plan(network.start_us + after_us, .{ .power_on = 0 });
    }
    var one = world.bootOf(world.boots);
    one.apply(1, .power_command);
    if (!world.uplink.process.?.log.isBehind()) world.keep(&one, 1);
    one.apply(9 * std.time.us_per_s, .{ .ready = .http });
    world.keep(&one, 2);
    // Seven of ten restarts are in the outage, the others while reports are sent.
    if (world.boots % (total * 10 / (@as(u64, world.options.restarts) * 7) + 1) == 0)
        try world.restart();
}

fn bootOf(world: *const Reports, number: u64) core.boot.Boot {
    const clock_ms = world.uplink.process.?.log.files.unixMs();
    return .init(.{
        .id = idOf(number),
        .mac = .fromInt(@intCast(0x02bf_0000_0001 + number % world.options.devices)),
        .handle = number,
        .token = @splat(1),
    }, .{ .version_id = .zero }, 1, clock_ms);
}

fn idOf(number: u64) base.Uuid {
    var bytes: [16]u8 = @splat(0x33);
    std.mem.writeInt(u64, bytes[0..8], number *% 0x9e37_79b9_7f4a_7c15, .big);
    std.mem.writeInt(u64, bytes[8..16], number, .big);
    return .fromRandom(bytes);
}

fn keep(world: *Reports, one: *core.boot.Boot, revision: u64) void {
    one.revision = revision;
    var json: [core.boot.report.size_max]u8 = undefined;
    const text = core.boot.report.encode(one, .{ .revision = revision }, &json);
    world.uplink.report(.{ .boot = text });
    world.uplink.expect(one);
}

/// While reports are sent, the edge restarts by chance, at the latest before the last batches.
fn restartSometimes(world: *Reports) error{OutOfMemory}!void {
    if (world.result.restarts >= world.options.restarts) return;
    const left = world.options.restarts - world.result.restarts;
    const backlog = world.uplink.process.?.log.backlog();
    const is_due = backlog <= left * core.uplink.report_log.batch_reports_max;
    if (world.prng.chance(1, 40) or is_due) try world.restart();
}

/// The edge is killed in the middle of a record, or between two, or it ends in order and then loses
/// power. The journal has the boot of a torn record, which is reported again.
fn restart(world: *Reports) error{OutOfMemory}!void {
    const uplink = &world.uplink;
    world.result.restarts += 1;
    const log = &uplink.process.?.log;
    const is_power_cut = world.prng.chance(1, 3);
    if (is_power_cut) log.sync();
    const is_torn = !is_power_cut and world.prng.chance(1, 2) and log.files.tear(&world.prng);
    world.result.torn += @intFromBool(is_torn);
    uplink.crash();
    if (is_power_cut) world.disk.crash() else world.disk.endProcess();
    const offset_ms: i64 = @intCast(world.prng.below(80 * year_ms));
    uplink.clock_offset_ms = offset_ms - 40 * year_ms;
    try uplink.start();
    if (!is_torn) return;
    var one = world.bootOf(world.boots);
    one.apply(9 * std.time.us_per_s, .{ .ready = .http });
    world.keep(&one, 3);
}

fn check(world: *Reports) void {
    const uplink = &world.uplink;
    const result = &world.result;
    const count = world.options.bootCount();
    if (world.invariants.violation == null) uplink.check();
    for (1..count + 1) |number| {
        if (world.invariants.violation != null) break;
        const applied = uplink.plane.boots.get(idOf(number).bytes) orelse
            return world.fail("boot {d} of {d} is lost", .{ number, count });
        if (!applied.is_ready) world.fail("boot {d} is not over", .{number});
    }
    if (uplink.plane.boots.count() != count)
        world.fail("{d} boots are there, {d} were", .{ uplink.plane.boots.count(), count });
    if (uplink.plane.ready_count != count)
        world.fail("{d} boots are counted, {d} were", .{ uplink.plane.ready_count, count });
    if (result.log_size_most > uplink.size_max + core.uplink.report_gaps.file_size)
        world.fail("the log took {d} bytes", .{result.log_size_most});
    if (result.restarts < world.options.restarts)
        world.fail("only {d} restarts", .{result.restarts});
    result.boots = world.boots;
    result.batches = uplink.plane.batch_count;
    result.acknowledgements_lost = uplink.lost_acknowledgements;
    result.hash = uplink.plane.hash.final();
    result.violation = world.invariants.violation;
}

fn fail(world: *Reports, comptime format: []const u8, values: anytype) void {
    world.invariants.violate(.reports_once, format, values);
}

test "every boot of an outage is counted once, and the same seed gives the same run" {
    const gpa = std.testing.allocator;
    for (1..7) |seed| {
        const result = try run(gpa, .small(seed, .none));
        if (result.violation) |*violation| {
            std.debug.print("seed {d}: {s}\n", .{ seed, violation.text() });
            return error.TestUnexpectedResult;
        }
        if (seed == 1) try std.testing.expectEqual(result, try run(gpa, .small(1, .none)));
    }
}

test "a log that is forgotten and a report that counts twice are found" {
    for ([_]Mutant{ .forget_report_log, .apply_reports_again, .believe_lost_answers }) |mutant| {
        const is_found = for (1..11) |seed| {
            const result = try run(std.testing.allocator, .small(seed, mutant));
            if (result.violation != null) break true;
        } else false;
        try std.testing.expect(is_found);
    }
}
