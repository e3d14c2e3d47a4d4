//! Tests of schedules.zig: one edge, a schedule with one device that boots, and what the agent
//! does with it as the runner says that it is due.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const agent_test = @import("agent_test.zig");
const TestIo = @import("io_test.zig");
const Site = agent_test.Site;
const Schedules = @import("schedules.zig").Schedules(TestIo);
const desired_state = core.uplink.desired_state;
const testing = std.testing;
const gpa = testing.allocator;
const second_us = std.time.us_per_s;

const Fixture = struct {
    site: *Site,
    schedules: Schedules,
    schedule: [1]desired_state.Schedule,
    instants: [1]u64,

    fn create(power: []const u8) !*Fixture {
        const fixture = try gpa.create(Fixture);
        const site: *Site = try .withVersion();
        fixture.* = .{
            .site = site,
            .schedules = .{ .runner = try .init(gpa), .boots = &site.boots },
            .instants = .{site.io.unix_ms + 1000},
            .schedule = undefined,
        };
        fixture.schedule = .{.{
            .id = agent_test.uuid(70),
            .action = "power_on",
            .power = power,
            .ratePerMinute = 60,
            .devices = &.{0},
            .instants = &fixture.instants,
        }};
        site.state.schedules = &fixture.schedule;
        site.state.issuedUnixMs = site.io.unix_ms;
        fixture.schedules.setState(site.io.now_us, &site.state);
        return fixture;
    }

    fn destroy(fixture: *Fixture) void {
        fixture.schedules.runner.deinit(gpa);
        fixture.site.destroy();
        gpa.destroy(fixture);
    }

    fn run(fixture: *Fixture, seconds: u64) void {
        const io = &fixture.site.io;
        for (0..seconds * 4) |_| {
            io.now_us += second_us / 4;
            io.unix_ms += 250;
            if (io.now_us >= fixture.schedules.next_turn_us) fixture.schedules.turn(io.now_us);
        }
    }

    fn boot(fixture: *Fixture) ?*core.boot.Boot {
        const table = &fixture.site.boots.table;
        return table.get(table.findByMac(agent_test.macOf(1)) orelse return null);
    }
};

test "a due device gets a magic packet and a boot that waits for it, and its run is reported" {
    const fixture: *Fixture = try .create("wake_on_lan");
    defer fixture.destroy();
    const io = &fixture.site.io;
    io.backlog = Schedules.backlog_max;
    fixture.run(5);
    try testing.expectEqual(1, io.woken.count);
    try testing.expectEqual(.firmware, fixture.boot().?.current().?);
    // A full log delays the reports; none is lost.
    try testing.expectEqual(0, io.runs_reported);
    io.backlog -= 1;
    fixture.run(1);
    try testing.expectEqual(1, io.runs_reported);
    try testing.expectEqual(0, fixture.schedules.runner.run_count);
}

test "a device that is booting is not switched on, one that has not answered is" {
    for ([_]bool{ false, true }) |has_answered| {
        const fixture: *Fixture = try .create("both");
        defer fixture.destroy();
        const ref = try fixture.site.begin(1);
        const event: core.boot.Event = if (has_answered) .{ .dhcp_request = .{
            .message = .discover,
            .client = .rom,
            .xid = 1,
            .size = 300,
        } } else .power_command;
        fixture.site.boots.apply(ref, fixture.site.io.now_us, event);
        fixture.run(5);
        try testing.expectEqual(@intFromBool(!has_answered), fixture.site.io.woken.count);
        try testing.expectEqual(ref, fixture.site.boots.table.findByMac(agent_test.macOf(1)));
    }
}

test "an edge without a power command sends the magic packet and fails only where that is all" {
    const Power = struct { name: []const u8, packets: u32 };
    for ([_]Power{
        .{ .name = "hook", .packets = 0 },
        .{ .name = "both", .packets = 1 },
    }) |power| {
        const fixture: *Fixture = try .create(power.name);
        defer fixture.destroy();
        fixture.run(5);
        try testing.expectEqual(power.packets, fixture.site.io.woken.count);
        try testing.expectEqual(power.packets == 1, fixture.boot() != null);
        try testing.expectEqual(1, fixture.site.io.runs_reported);
    }
}

test "a device waits until a power command may run, and boots once the command has ended well" {
    for ([_]bool{ false, true }) |is_on| {
        const fixture: *Fixture = try .create("hook");
        defer fixture.destroy();
        const io = &fixture.site.io;
        io.power_hook = .busy;
        fixture.run(5);
        try testing.expectEqual(0, io.power_jobs.count);
        io.power_hook = .ready;
        fixture.run(5);
        try testing.expectEqual(1, io.power_jobs.count);
        const job = io.power_jobs.buffer[0];
        try testing.expect(job.mac.eql(agent_test.macOf(1)));
        try testing.expectEqual(null, fixture.boot());
        io.power_result = .{ .job = job, .is_on = is_on, .text = .empty };
        fixture.run(5);
        try testing.expectEqual(is_on, fixture.boot() != null);
        try testing.expectEqual(0, fixture.schedules.runner.run_count);
    }
}

test "a device that is quicker than its power command keeps its boot, also when that is over" {
    const fixture: *Fixture = try .create("hook");
    defer fixture.destroy();
    const io = &fixture.site.io;
    io.power_hook = .ready;
    fixture.run(5);
    const ref = try fixture.site.begin(1);
    fixture.site.boots.table.supersede(ref, io.now_us);
    io.power_result = .{ .job = io.power_jobs.buffer[0], .is_on = true, .text = .empty };
    fixture.run(5);
    try testing.expectEqual(ref, fixture.site.boots.table.findByMac(agent_test.macOf(1)));
    try testing.expect(fixture.boot().?.isOver());
}

test "a clock that is set starts nothing for a minute, and an edge without a state never does" {
    const fixture: *Fixture = try .create("wake_on_lan");
    defer fixture.destroy();
    const io = &fixture.site.io;
    fixture.instants[0] += 300_000;
    fixture.run(1);
    io.unix_ms += 300_000;
    fixture.run(55);
    try testing.expectEqual(0, io.woken.count);
    fixture.run(10);
    try testing.expectEqual(1, io.woken.count);
    var alone: Schedules = .{ .runner = .none, .boots = &fixture.site.boots };
    alone.turn(io.now_us);
    try testing.expectEqual(std.math.maxInt(u64), alone.next_turn_us);
}

test "no device is switched on before the journal has kept that its run began" {
    const fixture: *Fixture = try .create("wake_on_lan");
    defer fixture.destroy();
    const io = &fixture.site.io;
    io.kept_runs = 0;
    fixture.run(5);
    try testing.expectEqual(0, io.woken.count);
    try testing.expectEqual(1, fixture.schedules.runner.begun_count);
    io.kept_runs = 1;
    fixture.run(1);
    try testing.expectEqual(1, io.woken.count);
}
