//! Runs of schedules over days in no time: clocks that are set, restarts, states that change, edges that come and go.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const ScheduleRunner = @import("schedule_runner.zig");
const schedule_report = @import("schedule_report.zig");
const schedule_run = @import("schedule_run.zig");
const assert = std.debug.assert;

const testing = std.testing;
const second_us = std.time.us_per_s;
const begin_ms = 1_795_000_000_000;
const minute_ms = std.time.ms_per_min;

fn uuid(number: u64) base.Uuid {
    var bytes: [16]u8 = @splat(0x11);
    std.mem.writeInt(u64, bytes[0..8], number, .big);
    return .fromBytes(bytes);
}

fn testMac(number: u64) base.Mac {
    return .fromInt(@intCast(0x02bf_0000_0000 + number));
}

const device_count = 30;
const devices = blk: {
    @setEvalBranchQuota(10_000);
    var list: [device_count]desired_state.Device = undefined;
    for (&list, 0..) |*device, number| device.* = .{
        .id = uuid(1000 + number),
        .name = "",
        .mac = testMac(number),
        .versionId = uuid(5),
        .enabled = true,
    };
    break :blk list;
};
const all_devices = blk: {
    var list: [device_count]u32 = undefined;
    for (&list, 0..) |*index, number| index.* = number;
    break :blk list;
};

fn stateOf(schedules: []const desired_state.Schedule) desired_state.DesiredState {
    return .{
        .edgeId = uuid(1),
        .organizationId = uuid(2),
        .siteId = uuid(3),
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = .ignore,
        .vdisks = &.{},
        .devices = &devices,
        .powerOns = &.{},
        .schedules = schedules,
        .issuedUnixMs = begin_ms,
    };
}

fn scheduleOf(instants: []const u64, rate: u32) desired_state.Schedule {
    return .{
        .id = uuid(77),
        .action = "power_on",
        .power = "wake_on_lan",
        .ratePerMinute = rate,
        .devices = &all_devices,
        .instants = instants,
    };
}

/// One edge alone, its clocks and its disk. What was switched on is counted.
const Bench = struct {
    runner: ScheduleRunner,
    now_us: u64 = 100 * second_us,
    /// Of the wall clock against the monotonic one.
    wall_ms: u64 = begin_ms,
    records: std.ArrayList(ScheduleRunner.Record) = .empty,
    sent: std.ArrayList(struct { device: base.Uuid, at_us: u64, wall_ms: u64 }) = .empty,
    reports: std.ArrayList([]const u8) = .empty,
    arena: std.heap.ArenaAllocator,

    fn create() !*Bench {
        const bench = try testing.allocator.create(Bench);
        bench.* = .{ .runner = try .init(testing.allocator), .arena = .init(testing.allocator) };
        bench.runner.journal = bench.journal();
        return bench;
    }

    fn destroy(bench: *Bench) void {
        bench.runner.deinit(testing.allocator);
        bench.arena.deinit();
        testing.allocator.destroy(bench);
    }

    fn journal(bench: *Bench) ScheduleRunner.Journal {
        return .{ .context = bench, .write = keep };
    }

    fn keep(context: *anyopaque, record: ScheduleRunner.Record) void {
        const bench: *Bench = @ptrCast(@alignCast(context));
        bench.records.append(bench.arena.allocator(), record) catch @panic("no memory");
    }

    fn give(bench: *Bench, state: *const desired_state.DesiredState) void {
        bench.runner.setState(bench.now_us, bench.wall_ms, state);
    }

    /// A quarter of a second of time, and what the edge does in it.
    fn step(bench: *Bench) !void {
        bench.now_us += second_us / 4;
        bench.wall_ms += 250;
        bench.runner.observe(bench.now_us, bench.wall_ms);
        while (bench.runner.next(bench.now_us, .{ .peers = null, .network = .zero })) |action| {
            try bench.sent.append(bench.arena.allocator(), .{ .device = action.device, .at_us = bench.now_us, .wall_ms = bench.wall_ms });
            bench.runner.ended(action.key, action.device, .sent, .empty);
        }
        var buffer: [schedule_report.size_max]u8 = undefined;
        while (schedule_report.next(&bench.runner, bench.now_us, &buffer)) |text|
            try bench.reports.append(bench.arena.allocator(), try bench.arena.allocator().dupe(u8, text));
    }

    fn run(bench: *Bench, seconds: u64) !void {
        for (0..seconds * 4) |_| try bench.step();
    }

    /// The process ends without a word, and another begins after a while by its journal.
    fn restart(bench: *Bench, state: *const desired_state.DesiredState, away_s: u64) !void {
        bench.runner.deinit(testing.allocator);
        bench.runner = try .init(testing.allocator);
        for (bench.records.items) |record| bench.runner.restore(record);
        bench.runner.journal = bench.journal();
        bench.now_us += away_s * second_us;
        bench.wall_ms += away_s * 1000;
        bench.give(state);
    }

    fn setClock(bench: *Bench, wall_ms: u64) void {
        bench.wall_ms = wall_ms;
    }

    fn reported(bench: *const Bench, words: []const u8) u32 {
        var count: u32 = 0;
        for (bench.reports.items) |text| count += @intCast(std.mem.count(u8, text, words));
        return count;
    }

    fn timesSent(bench: *const Bench, device: base.Uuid) u32 {
        var count: u32 = 0;
        for (bench.sent.items) |one| count += @intFromBool(one.device.eql(device));
        return count;
    }

    fn expectEachOnce(bench: *const Bench) !void {
        for (&devices) |*device| try testing.expectEqual(1, bench.timesSent(device.id));
    }
};

test "a run begins at its instant, and starts its devices evenly at its rate" {
    const bench = try Bench.create();
    defer bench.destroy();
    const instants = [_]u64{begin_ms + 10_000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    bench.give(&state);
    try bench.run(9);
    try testing.expectEqual(0, bench.sent.items.len);
    try bench.run(60);
    try bench.expectEachOnce();
    for (bench.sent.items, 0..) |one, index| {
        try testing.expect(one.device.eql(devices[index].id));
        if (index > 0) try testing.expectEqual(second_us, one.at_us - bench.sent.items[index - 1].at_us);
    }
    try testing.expectEqual(device_count, bench.reported("\"result\":\"sent\""));
    try testing.expectEqual(1, bench.reported("\"state\":\"done\""));
    try testing.expectEqual(0, bench.runner.run_count);
    try testing.expectEqual(0, bench.runner.slot_count);
}

test "every report is one that the API reads: bounded, each device once" {
    const bench = try Bench.create();
    defer bench.destroy();
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    bench.give(&state);
    try bench.run(5);
    const Report = struct {
        scheduleId: base.Uuid,
        instantUnixMs: u64,
        state: []const u8,
        startedUnixMs: u64,
        devices: []const struct { deviceId: base.Uuid, atUnixMs: u64, result: []const u8 },
    };
    var seen: u32 = 0;
    for (bench.reports.items) |text| {
        const report = try std.json.parseFromSliceLeaky(Report, bench.arena.allocator(), text, .{});
        try testing.expect(report.devices.len <= 24);
        seen += @intCast(report.devices.len);
    }
    try testing.expectEqual(device_count, seen);
}

test "a restart in the middle of a run starts the rest, and nobody twice" {
    for (1..29) |restart_after_s| {
        const bench = try Bench.create();
        defer bench.destroy();
        const instants = [_]u64{begin_ms + 1000};
        const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
        const state = stateOf(&schedules);
        bench.give(&state);
        try bench.run(restart_after_s);
        try bench.restart(&state, 20);
        try bench.run(100);
        try bench.expectEachOnce();
        try bench.restart(&state, 1);
        try bench.run(100);
        try bench.expectEachOnce();
        for (bench.sent.items[1..], bench.sent.items[0 .. bench.sent.items.len - 1]) |one, before|
            try testing.expect(one.at_us - before.at_us >= second_us / 2);
    }
}

test "an edge that was off begins up to 15 minutes late, and reports what it has missed" {
    const instants = [_]u64{ begin_ms + 60 * minute_ms, begin_ms + 70 * minute_ms, begin_ms + 90 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(1);
    try bench.restart(&state, 80 * 60);
    try bench.run(10);
    try bench.expectEachOnce();
    try testing.expectEqual(1, bench.reported("\"reason\":\"late\""));
    try bench.restart(&state, 1);
    try bench.run(10);
    try bench.expectEachOnce();
    try testing.expectEqual(1, bench.reported("missed"));
}

test "devices that are due for more than 15 minutes stay off" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 1)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(90);
    try testing.expectEqual(2, bench.sent.items.len);
    try bench.restart(&state, 20 * 60);
    try bench.run(31 * 60);
    const late = bench.reported("\"result\":\"late\"");
    try testing.expect(late >= 4 and late <= 7);
    try testing.expectEqual(device_count, bench.sent.items.len + late);
}

test "a clock that is set back repeats no run, and what it seemed to have missed still comes" {
    const instants = [_]u64{ begin_ms + minute_ms, begin_ms + 120 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(100);
    try bench.expectEachOnce();
    bench.setClock(begin_ms);
    try bench.run(200);
    try bench.expectEachOnce();
    // A year ahead, for ten minutes.
    const true_ms = bench.wall_ms;
    bench.setClock(true_ms + 365 * 24 * 60 * minute_ms);
    try bench.run(600);
    try testing.expectEqual(1, bench.reported("missed"));
    bench.setClock(true_ms + 10 * minute_ms);
    try bench.run(61);
    try bench.restart(&state, 1);
    try bench.run(120 * 60);
    for (&devices) |*device| try testing.expectEqual(2, bench.timesSent(device.id));
}

test "a clock that jumps for less than a minute begins nothing and gives nothing up" {
    const instants = [_]u64{ begin_ms + 5 * minute_ms, begin_ms + 600 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(10);
    for ([_]u64{ 6 * minute_ms, 300 * minute_ms }) |ahead_ms| {
        const true_ms = bench.wall_ms;
        bench.setClock(true_ms + ahead_ms);
        try bench.run(50);
        bench.setClock(true_ms + 50_000);
        try bench.run(70);
        try testing.expectEqual(0, bench.sent.items.len);
        try testing.expectEqual(0, bench.reports.items.len);
    }
    try bench.run(300);
    try bench.expectEachOnce();
}

test "a run under way does not notice its clock being set" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(10);
    bench.setClock(begin_ms + 90 * minute_ms);
    try bench.run(5);
    bench.setClock(begin_ms);
    try bench.run(60);
    try bench.expectEachOnce();
    for (bench.sent.items[1..], bench.sent.items[0 .. bench.sent.items.len - 1]) |one, before|
        try testing.expectEqual(second_us, one.at_us - before.at_us);
}

test "a schedule that goes from the state stops its run; other changes do not" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(10);
    var fewer = schedules[0];
    fewer.devices = all_devices[0..3];
    fewer.instants = &.{};
    const changed = stateOf(&.{fewer});
    bench.give(&changed);
    try bench.run(10);
    try testing.expectEqual(20, bench.sent.items.len);
    const empty = stateOf(&.{});
    bench.give(&empty);
    try bench.run(60);
    try testing.expectEqual(20, bench.sent.items.len);
    try testing.expectEqual(1, bench.reported("\"state\":\"stopped\""));
    try testing.expectEqual(0, bench.runner.run_count);
}

test "what this edge cannot do is reported as missed, and disabled devices stay off" {
    const instants = [_]u64{begin_ms + 1000};
    var unknown = scheduleOf(&instants, 60);
    unknown.id = uuid(78);
    unknown.action = "revert";
    var other = scheduleOf(&instants, 60);
    other.id = uuid(79);
    other.power = "ipmi";
    var some: [device_count]desired_state.Device = devices;
    some[4].enabled = false;
    const schedules = [_]desired_state.Schedule{ unknown, other, scheduleOf(&instants, 6000) };
    var state = stateOf(&schedules);
    state.devices = &some;
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(20);
    try testing.expectEqual(2, bench.reported("\"reason\":\"action_unknown\""));
    try testing.expectEqual(device_count - 1, bench.sent.items.len);
    try testing.expectEqual(1, bench.reported("\"result\":\"disabled\""));
    try bench.restart(&state, 1);
    try bench.run(20);
    try testing.expectEqual(2, bench.reported("\"reason\":\"action_unknown\""));
}

test "instants from before the state was made are not this edge's to miss" {
    const instants = [_]u64{ begin_ms - 40 * minute_ms, begin_ms - 10 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(20);
    try testing.expectEqual(0, bench.reported("missed"));
    try bench.expectEachOnce();
}

test "a run each minute for a day is begun each time, whatever restarts come" {
    var instants: [1024]u64 = undefined;
    for (&instants, 1..) |*instant, number| instant.* = begin_ms + number * minute_ms;
    var schedule = scheduleOf(&instants, 6000);
    schedule.devices = all_devices[0..1];
    const state = stateOf(&.{schedule});
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    var prng: base.Prng = .init(4);
    for (0..170) |_| {
        try bench.run(prng.between(60, 400));
        try bench.restart(&state, prng.below(100));
    }
    try bench.run(60);
    const passed = @min(1024, (bench.wall_ms - begin_ms) / minute_ms);
    try testing.expectEqual(passed, bench.sent.items.len);
    try testing.expect(bench.runner.book.count == 1);
}

test "a full journal says as much as the records it stands for" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const bench = try Bench.create();
    defer bench.destroy();
    bench.give(&state);
    try bench.run(12);
    bench.records.clearRetainingCapacity();
    bench.runner.writeAll(bench.journal());
    try bench.restart(&state, 2);
    try bench.run(60);
    try bench.expectEachOnce();
}
