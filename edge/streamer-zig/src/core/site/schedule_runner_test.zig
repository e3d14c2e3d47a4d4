//! Tests of schedule_runner.zig: days of runs in simulated time, with clocks that are set,
//! restarts, changing states, and edges that come and go.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const BootPolicy = @import("../boot/policy.zig").BootPolicy;
const PeerTable = @import("peer_table.zig");
const ScheduleRunner = @import("schedule_runner.zig");
const SiteEdges = @import("edges.zig");
const peer = @import("wire").peer;
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

fn siteOf(peers: *const PeerTable) ScheduleRunner.Site {
    return .{ .peers = peers, .policy = &.nothing, .network = .zero };
}

/// One edge alone, with its clocks and its disk. Counts the devices that were switched on.
const ScheduleFixture = struct {
    runner: ScheduleRunner,
    peers: PeerTable,
    now_us: u64 = 100 * second_us,
    /// The wall clock, against the monotonic one.
    wall_ms: u64 = begin_ms,
    records: std.ArrayList(ScheduleRunner.Record) = .empty,
    sent: std.ArrayList(struct { device: base.Uuid, at_us: u64, wall_ms: u64 }) = .empty,
    reports: std.ArrayList([]const u8) = .empty,
    arena: std.heap.ArenaAllocator,

    fn create() !*ScheduleFixture {
        const fixture = try testing.allocator.create(ScheduleFixture);
        fixture.* = .{
            .runner = try .init(testing.allocator),
            .peers = try .init(testing.allocator, .{ .epoch = 1, .boots_max = 1, .others_max = 1 }),
            .arena = .init(testing.allocator),
        };
        fixture.runner.journal = fixture.journal();
        return fixture;
    }

    fn destroy(fixture: *ScheduleFixture) void {
        fixture.runner.deinit(testing.allocator);
        fixture.peers.deinit(testing.allocator);
        fixture.arena.deinit();
        testing.allocator.destroy(fixture);
    }

    fn journal(fixture: *ScheduleFixture) ScheduleRunner.Journal {
        return .{ .context = fixture, .write = keep };
    }

    fn keep(context: *anyopaque, record: ScheduleRunner.Record) void {
        const fixture: *ScheduleFixture = @ptrCast(@alignCast(context));
        fixture.records.append(fixture.arena.allocator(), record) catch @panic("no memory");
    }

    fn give(fixture: *ScheduleFixture, state: *const desired_state.DesiredState) void {
        fixture.runner.setState(fixture.now_us, fixture.wall_ms, state);
    }

    /// Advances a quarter of a second of time, and runs the edge.
    fn step(fixture: *ScheduleFixture) !void {
        fixture.now_us += second_us / 4;
        fixture.wall_ms += 250;
        fixture.runner.observe(fixture.now_us, fixture.wall_ms);
        while (fixture.runner.next(fixture.now_us, siteOf(&fixture.peers))) |action| {
            try fixture.sent.append(
                fixture.arena.allocator(),
                .{ .device = action.device, .at_us = fixture.now_us, .wall_ms = fixture.wall_ms },
            );
            fixture.runner.ended(action.key, action.device, .sent, .empty);
        }
        var buffer: [schedule_report.size_max]u8 = undefined;
        while (schedule_report.next(&fixture.runner, fixture.now_us, &buffer)) |text|
            try fixture.reports.append(
                fixture.arena.allocator(),
                try fixture.arena.allocator().dupe(u8, text),
            );
    }

    fn run(fixture: *ScheduleFixture, seconds: u64) !void {
        for (0..seconds * 4) |_| try fixture.step();
    }

    /// The process crashes, and another starts after a while from its journal.
    fn restart(
        fixture: *ScheduleFixture,
        state: *const desired_state.DesiredState,
        away_s: u64,
    ) !void {
        fixture.runner.deinit(testing.allocator);
        fixture.runner = try .init(testing.allocator);
        for (fixture.records.items) |record| fixture.runner.restore(record);
        fixture.runner.journal = fixture.journal();
        fixture.now_us += away_s * second_us;
        fixture.wall_ms += away_s * 1000;
        fixture.give(state);
    }

    fn setClock(fixture: *ScheduleFixture, wall_ms: u64) void {
        fixture.wall_ms = wall_ms;
    }

    fn reported(fixture: *const ScheduleFixture, words: []const u8) u32 {
        var count: u32 = 0;
        for (fixture.reports.items) |text| count += @intCast(std.mem.count(u8, text, words));
        return count;
    }

    fn timesSent(fixture: *const ScheduleFixture, device: base.Uuid) u32 {
        var count: u32 = 0;
        for (fixture.sent.items) |one| count += @intFromBool(one.device.eql(device));
        return count;
    }

    fn expectEachOnce(fixture: *const ScheduleFixture) !void {
        for (&devices) |*device| try testing.expectEqual(1, fixture.timesSent(device.id));
    }
};

test "a run starts at its instant, and starts its devices evenly at its rate" {
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    const instants = [_]u64{begin_ms + 10_000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    fixture.give(&state);
    try fixture.run(9);
    try testing.expectEqual(0, fixture.sent.items.len);
    try fixture.run(60);
    try fixture.expectEachOnce();
    for (fixture.sent.items, 0..) |one, index| {
        try testing.expect(one.device.eql(devices[index].id));
        if (index > 0)
            try testing.expectEqual(second_us, one.at_us - fixture.sent.items[index - 1].at_us);
    }
    try testing.expectEqual(device_count, fixture.reported("\"result\":\"sent\""));
    try testing.expectEqual(1, fixture.reported("\"state\":\"done\""));
    try testing.expectEqual(0, fixture.runner.run_count);
    try testing.expectEqual(0, fixture.runner.slot_count);
}

test "every report is one that the API accepts: bounded, each device once" {
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    fixture.give(&state);
    try fixture.run(5);
    const Report = struct {
        scheduleId: base.Uuid,
        instantUnixMs: u64,
        state: []const u8,
        startedUnixMs: u64,
        devices: []const struct { deviceId: base.Uuid, atUnixMs: u64, result: []const u8 },
    };
    var seen: u32 = 0;
    for (fixture.reports.items) |text| {
        const report =
            try std.json.parseFromSliceLeaky(Report, fixture.arena.allocator(), text, .{});
        try testing.expect(report.devices.len <= 24);
        seen += @intCast(report.devices.len);
    }
    try testing.expectEqual(device_count, seen);
}

test "a restart in the middle of a run starts the rest, and no device twice" {
    for (1..29) |restart_after_s| {
        const fixture = try ScheduleFixture.create();
        defer fixture.destroy();
        const instants = [_]u64{begin_ms + 1000};
        const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
        const state = stateOf(&schedules);
        fixture.give(&state);
        try fixture.run(restart_after_s);
        try fixture.restart(&state, 20);
        try fixture.run(100);
        try fixture.expectEachOnce();
        try fixture.restart(&state, 1);
        try fixture.run(100);
        try fixture.expectEachOnce();
        for (fixture.sent.items[1..], fixture.sent.items[0 .. fixture.sent.items.len -
            1]) |one, before|
            try testing.expect(one.at_us - before.at_us >= second_us / 2);
    }
}

test "an edge that was off starts up to 15 minutes late, and reports the instants that it missed" {
    const instants =
        [_]u64{ begin_ms + 60 * minute_ms, begin_ms + 70 * minute_ms, begin_ms + 90 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(1);
    try fixture.restart(&state, 80 * 60);
    try fixture.run(10);
    try fixture.expectEachOnce();
    try testing.expectEqual(1, fixture.reported("\"reason\":\"late\""));
    try fixture.restart(&state, 1);
    try fixture.run(10);
    try fixture.expectEachOnce();
    try testing.expectEqual(1, fixture.reported("missed"));
}

test "devices that are more than 15 minutes late stay off" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 1)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(90);
    try testing.expectEqual(2, fixture.sent.items.len);
    try fixture.restart(&state, 20 * 60);
    try fixture.run(31 * 60);
    const late = fixture.reported("\"result\":\"late\"");
    try testing.expect(late >= 4 and late <= 7);
    try testing.expectEqual(device_count, fixture.sent.items.len + late);
}

test "a clock that is set back repeats no run, and instants that it seemed to miss still come" {
    const instants = [_]u64{ begin_ms + minute_ms, begin_ms + 120 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(100);
    try fixture.expectEachOnce();
    fixture.setClock(begin_ms);
    try fixture.run(200);
    try fixture.expectEachOnce();
    // A year ahead, for ten minutes.
    const true_ms = fixture.wall_ms;
    fixture.setClock(true_ms + 365 * 24 * 60 * minute_ms);
    try fixture.run(600);
    try testing.expectEqual(1, fixture.reported("missed"));
    fixture.setClock(true_ms + 10 * minute_ms);
    try fixture.run(61);
    try fixture.restart(&state, 1);
    try fixture.run(120 * 60);
    for (&devices) |*device| try testing.expectEqual(2, fixture.timesSent(device.id));
}

test "a clock that jumps for less than a minute starts nothing and gives nothing up" {
    const instants = [_]u64{ begin_ms + 5 * minute_ms, begin_ms + 600 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(10);
    for ([_]u64{ 6 * minute_ms, 300 * minute_ms }) |ahead_ms| {
        const true_ms = fixture.wall_ms;
        fixture.setClock(true_ms + ahead_ms);
        try fixture.run(50);
        fixture.setClock(true_ms + 50_000);
        try fixture.run(70);
        try testing.expectEqual(0, fixture.sent.items.len);
        try testing.expectEqual(0, fixture.reports.items.len);
    }
    try fixture.run(300);
    try fixture.expectEachOnce();
}

test "a run in progress is unaffected by a clock change" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(10);
    fixture.setClock(begin_ms + 90 * minute_ms);
    try fixture.run(5);
    fixture.setClock(begin_ms);
    try fixture.run(60);
    try fixture.expectEachOnce();
    for (fixture.sent.items[1..], fixture.sent.items[0 .. fixture.sent.items.len - 1]) |one, before|
        try testing.expectEqual(second_us, one.at_us - before.at_us);
}

test "a schedule that disappears from the state stops its run; other changes do not" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(10);
    var fewer = schedules[0];
    fewer.devices = all_devices[0..3];
    fewer.instants = &.{};
    const changed = stateOf(&.{fewer});
    fixture.give(&changed);
    try fixture.run(10);
    try testing.expectEqual(20, fixture.sent.items.len);
    const empty = stateOf(&.{});
    fixture.give(&empty);
    try fixture.run(60);
    try testing.expectEqual(20, fixture.sent.items.len);
    try testing.expectEqual(1, fixture.reported("\"state\":\"stopped\""));
    try testing.expectEqual(0, fixture.runner.run_count);
}

test "a run in progress is not begun again, however long its schedule was gone" {
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    const instants = [_]u64{begin_ms + 1_000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    fixture.give(&state);
    fixture.now_us += second_us;
    fixture.wall_ms += 1_000;
    fixture.runner.observe(fixture.now_us, fixture.wall_ms);
    const site = siteOf(&fixture.peers);
    const action = fixture.runner.next(fixture.now_us, site).?;
    // So many others that this edge knows nothing of the first any more.
    var others: [desired_state.schedules_max]desired_state.Schedule = undefined;
    for (0..2) |round| {
        for (&others, 0..) |*other, number| {
            other.* = scheduleOf(&.{}, 60);
            other.id = uuid(1000 + round * others.len + number);
        }
        const without = stateOf(&others);
        fixture.give(&without);
    }
    fixture.give(&state);
    fixture.runner.observe(fixture.now_us, fixture.wall_ms);
    try testing.expectEqual(1, fixture.runner.run_count);
    fixture.runner.ended(action.key, action.device, .sent, .empty);
    try fixture.run(120);
    try testing.expectEqual(0, fixture.sent.items.len);
    try testing.expectEqual(0, fixture.runner.run_count);
}

test "an unsupported action is reported as missed, and disabled devices stay off" {
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
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(20);
    try testing.expectEqual(2, fixture.reported("\"reason\":\"action_unknown\""));
    try testing.expectEqual(device_count - 1, fixture.sent.items.len);
    try testing.expectEqual(1, fixture.reported("\"result\":\"disabled\""));
    try fixture.restart(&state, 1);
    try fixture.run(20);
    try testing.expectEqual(2, fixture.reported("\"reason\":\"action_unknown\""));
}

test "instants from before the state was made are not this edge's to miss" {
    const instants = [_]u64{ begin_ms - 40 * minute_ms, begin_ms - 10 * minute_ms };
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(20);
    try testing.expectEqual(0, fixture.reported("missed"));
    try fixture.expectEachOnce();
}

test "a run each minute for a day is started each time, despite restarts" {
    var instants: [1024]u64 = undefined;
    for (&instants, 1..) |*instant, number| instant.* = begin_ms + number * minute_ms;
    var schedule = scheduleOf(&instants, 6000);
    schedule.devices = all_devices[0..1];
    const state = stateOf(&.{schedule});
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    var prng: base.Prng = .init(4);
    for (0..170) |_| {
        try fixture.run(prng.between(60, 400));
        try fixture.restart(&state, prng.below(100));
    }
    try fixture.run(60);
    const passed = @min(1024, (fixture.wall_ms - begin_ms) / minute_ms);
    try testing.expectEqual(passed, fixture.sent.items.len);
    try testing.expect(fixture.runner.book.count == 1);
}

test "a rewritten journal restores as much as the records that it replaces" {
    const instants = [_]u64{begin_ms + 1000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 60)};
    const state = stateOf(&schedules);
    const fixture = try ScheduleFixture.create();
    defer fixture.destroy();
    fixture.give(&state);
    try fixture.run(12);
    fixture.records.clearRetainingCapacity();
    fixture.runner.writeAll(fixture.journal());
    try fixture.restart(&state, 2);
    try fixture.run(60);
    try fixture.expectEachOnce();
}

fn edgeId(number: usize) base.Uuid {
    return .fromRandom(@splat(@intCast(0x10 + number)));
}

/// Two edges that hear each other at once and keep one time. Each claims what it starts.
const PairFixture = struct {
    runners: [2]ScheduleRunner,
    peers: [2]PeerTable,
    is_observing: [2]bool = @splat(true),
    now_us: u64 = 100 * second_us,
    wall_ms: u64 = begin_ms,
    sent: [2][device_count]u32 = @splat(@splat(0)),
    boot_count: u8 = 0,

    fn init(fixture: *PairFixture) !void {
        fixture.* = .{ .runners = undefined, .peers = undefined };
        for (&fixture.runners, &fixture.peers, 0..) |*runner, *peers, own| {
            runner.* = try .init(testing.allocator);
            peers.* = try .init(testing.allocator, .{
                .epoch = 1,
                .boots_max = 2 * device_count,
                .others_max = 2 * device_count,
            });
            var edges: [2]SiteEdges.EdgeDescription = undefined;
            for (&edges, 0..) |*edge, number| edge.* = .{
                .id = edgeId(number),
                .weight = 10,
                .subnets = &.{},
                .draining = false,
                .address = .init(10, 77, 0, @intCast(1 + number)),
                .peerPort = 6911,
            };
            const key = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
            peers.setSite(fixture.now_us, .init(&.{ .key = key, .edges = &edges }, edgeId(own)));
        }
    }

    fn deinit(fixture: *PairFixture) void {
        for (&fixture.runners) |*runner| runner.deinit(testing.allocator);
        for (&fixture.peers) |*peers| peers.deinit(testing.allocator);
    }

    fn give(fixture: *PairFixture, state: *const desired_state.DesiredState) void {
        for (&fixture.runners) |*runner| runner.setState(fixture.now_us, fixture.wall_ms, state);
    }

    fn step(fixture: *PairFixture) void {
        fixture.now_us += second_us / 4;
        fixture.wall_ms += 250;
        fixture.exchange();
        for (&fixture.runners, &fixture.peers, 0..) |*runner, *peers, own| {
            if (fixture.is_observing[own]) runner.observe(fixture.now_us, fixture.wall_ms);
            while (runner.next(fixture.now_us, siteOf(peers))) |action| {
                fixture.sent[own][@intCast(action.mac.toInt() - testMac(0).toInt())] += 1;
                fixture.claim(own, action.mac);
                runner.ended(action.key, action.device, .sent, .empty);
            }
        }
    }

    fn claim(fixture: *PairFixture, own: usize, mac: base.Mac) void {
        fixture.boot_count += 1;
        fixture.peers[own].own_claims.onBoot(
            mac,
            .fromRandom(@splat(fixture.boot_count)),
            .{ .stage = .offered, .at_us = fixture.now_us },
        );
    }

    fn exchange(fixture: *PairFixture) void {
        var buffer: [peer.packet_size_max]u8 = undefined;
        for (0..2) |_| for (0..2) |own| {
            const from: base.Endpoint =
                .{ .ip = .init(10, 77, 0, @intCast(1 + own)), .port = 6911 };
            while (fixture.peers[own].next(fixture.now_us, &buffer)) |bytes|
                _ = fixture.peers[1 - own].receive(fixture.now_us, from, bytes);
        };
    }

    fn expectEachOnce(fixture: *const PairFixture) !void {
        for (fixture.sent[0], fixture.sent[1]) |a, b| try testing.expectEqual(1, a + b);
    }
};

test "two edges start each device once between them, however many of them boot" {
    var fixture: PairFixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const instants = [_]u64{begin_ms + 10_000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 600)};
    const state = stateOf(&schedules);
    fixture.give(&state);
    for (0..4 * 60) |number| {
        // Nobody has heard of it when the next device is due.
        for (&fixture.peers, 0..) |*peers, own|
            peers.setBooting(fixture.now_us, @intCast((number * (own + 3)) % 200));
        fixture.step();
    }
    try fixture.expectEachOnce();
}

test "devices of an edge that is alive and does not begin the run are started by the other one" {
    for ([_][]const u8{ "wake_on_lan", "hook" }, [_]u64{ 40, 130 }) |power, limit_s| {
        var fixture: PairFixture = undefined;
        try fixture.init();
        defer fixture.deinit();
        fixture.is_observing[1] = false;
        const instants = [_]u64{begin_ms + 10_000};
        var schedule = scheduleOf(&instants, 6000);
        schedule.power = power;
        const state = stateOf(&.{schedule});
        fixture.give(&state);
        for (0..4 * 20) |_| fixture.step();
        var count: u32 = 0;
        for (fixture.sent[0]) |sent| count += sent;
        try testing.expect(count > 0 and count < device_count);
        for (0..4 * limit_s) |_| fixture.step();
        try fixture.expectEachOnce();
    }
}

test "a device that an edge has in a boot when it is due is its own, whoever would start it" {
    var fixture: PairFixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    for (0..4 * 5) |_| fixture.step();
    for (0..device_count) |number| fixture.claim(number % 2, testMac(number));
    const instants = [_]u64{begin_ms + 10_000};
    const schedules = [_]desired_state.Schedule{scheduleOf(&instants, 6000)};
    const state = stateOf(&schedules);
    fixture.give(&state);
    for (0..4 * 60) |_| fixture.step();
    for (0..device_count) |number| {
        try testing.expectEqual(1, fixture.sent[number % 2][number]);
        try testing.expectEqual(0, fixture.sent[1 - number % 2][number]);
    }
}
