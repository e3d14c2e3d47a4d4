//! Reads from the output of `systemctl show` when systemd began, when it was done, and which units
//! took longest: lines of KEY=VALUE, units separated by an empty line. Times are µs of
//! CLOCK_MONOTONIC; 0 means never.

const std = @import("std");
const StepList = @import("step_list.zig");
const Step = StepList.Step;

/// Properties of systemd itself.
pub const manager_properties =
    "InitRDTimestampMonotonic,UserspaceTimestampMonotonic,FinishTimestampMonotonic," ++
    "GeneratorsStartTimestampMonotonic,GeneratorsFinishTimestampMonotonic," ++
    "UnitsLoadStartTimestampMonotonic,UnitsLoadFinishTimestampMonotonic";

const slowest_units_max = 8;
/// A larger value is damage.
const instant_us_max = 24 * std.time.us_per_hour;

pub const ManagerTimes = struct {
    initrd_us: u64 = 0,
    userspace_us: u64 = 0,
    /// 0 while the system starts.
    finish_us: u64 = 0,
    generators_start_us: u64 = 0,
    generators_finish_us: u64 = 0,
    units_load_start_us: u64 = 0,
    units_load_finish_us: u64 = 0,

    pub fn parse(text: []const u8) ManagerTimes {
        var times: ManagerTimes = .{};
        var lines = std.mem.tokenizeScalar(u8, text, '\n');
        while (lines.next()) |line| {
            const key, const value = std.mem.cutScalar(u8, line, '=') orelse continue;
            const instant = parseInstant(value);
            if (is(key, "InitRD")) times.initrd_us = instant;
            if (is(key, "Userspace")) times.userspace_us = instant;
            if (is(key, "Finish")) times.finish_us = instant;
            if (is(key, "GeneratorsStart")) times.generators_start_us = instant;
            if (is(key, "GeneratorsFinish")) times.generators_finish_us = instant;
            if (is(key, "UnitsLoadStart")) times.units_load_start_us = instant;
            if (is(key, "UnitsLoadFinish")) times.units_load_finish_us = instant;
        }
        return times;
    }

    fn is(key: []const u8, comptime event: []const u8) bool {
        return std.mem.eql(u8, key, event ++ "TimestampMonotonic");
    }
};

/// Adds systemd's own steps. `hand_over_us` is when the initramfs started it: it was loading until
/// its first timestamp.
pub fn addManagerSteps(list: *StepList, times: ManagerTimes, hand_over_us: u64) void {
    if (times.userspace_us == 0) return;
    if (hand_over_us != 0) addStep(list, "load init", hand_over_us, times.userspace_us);
    addStep(list, "initrd", times.initrd_us, times.userspace_us);
    addStep(list, "userspace", times.userspace_us, times.finish_us);
    addStep(list, "generators", times.generators_start_us, times.generators_finish_us);
    addStep(list, "load units", times.units_load_start_us, times.units_load_finish_us);
}

/// Null without both a start and an end.
fn addStep(list: *StepList, name: []const u8, from_us: u64, to_us: u64) void {
    if (from_us == 0 or to_us < from_us) return;
    list.add(.init(.system, name, @intCast(from_us), to_us - from_us));
}

/// The units that took longest to start, the slowest first.
pub const SlowestUnits = struct {
    units: [slowest_units_max]Step = undefined,
    count: u8 = 0,

    /// Units that began after `finish_us` are not part of the boot.
    pub fn parse(text: []const u8, finish_us: u64) SlowestUnits {
        var slowest: SlowestUnits = .{};
        var unit: UnitTimes = .{};
        var lines = std.mem.splitScalar(u8, text, '\n');
        while (lines.next()) |line| {
            if (line.len == 0) {
                slowest.take(unit, finish_us);
                unit = .{};
                continue;
            }
            const key, const value = std.mem.cutScalar(u8, line, '=') orelse continue;
            if (std.mem.eql(u8, key, "Id")) unit.id = value;
            if (std.mem.eql(u8, key, "InactiveExitTimestampMonotonic"))
                unit.begin_us = parseInstant(value);
            if (std.mem.eql(u8, key, "ActiveEnterTimestampMonotonic"))
                unit.active_us = parseInstant(value);
            if (std.mem.eql(u8, key, "InactiveEnterTimestampMonotonic"))
                unit.ended_us = parseInstant(value);
        }
        slowest.take(unit, finish_us);
        return slowest;
    }

    pub fn addSteps(slowest: *const SlowestUnits, list: *StepList) void {
        for (slowest.units[0..slowest.count]) |unit| list.add(unit);
    }

    fn take(slowest: *SlowestUnits, unit: UnitTimes, finish_us: u64) void {
        const step = unit.step(finish_us) orelse return;
        var place: usize = slowest.count;
        while (place > 0 and slowest.units[place - 1].duration_us < step.duration_us) place -= 1;
        if (place == slowest_units_max) return;
        if (slowest.count < slowest_units_max) slowest.count += 1;
        std.mem.copyBackwards(
            Step,
            slowest.units[place + 1 .. slowest.count],
            slowest.units[place .. slowest.count - 1],
        );
        slowest.units[place] = step;
    }
};

const UnitTimes = struct {
    id: []const u8 = "",
    begin_us: u64 = 0,
    active_us: u64 = 0,
    ended_us: u64 = 0,

    /// Null for a unit that did not start, took no time, or is ours.
    fn step(unit: UnitTimes, finish_us: u64) ?Step {
        if (unit.id.len == 0 or std.mem.startsWith(u8, unit.id, "bootfarm-")) return null;
        // Those are only of the chain (unit_chain.zig).
        for ([_][]const u8{ ".target", ".socket" }) |suffix|
            if (std.mem.endsWith(u8, unit.id, suffix)) return null;
        if (unit.begin_us == 0 or unit.begin_us > finish_us) return null;
        // A oneshot unit was never active.
        const end_us = if (unit.active_us >= unit.begin_us) unit.active_us else unit.ended_us;
        if (end_us <= unit.begin_us) return null;
        const name = std.mem.cutSuffix(u8, unit.id, ".service") orelse unit.id;
        if (name.len == 0) return null;
        return .init(.unit, name, @intCast(unit.begin_us), end_us - unit.begin_us);
    }
};

/// 0 for any implausible instant.
fn parseInstant(text: []const u8) u64 {
    const instant = std.fmt.parseInt(u64, text, 10) catch return 0;
    return if (instant > instant_us_max) 0 else instant;
}

const testing = std.testing;
const base = @import("base");
const damage = @import("damaged.zig").damage;
/// systemd 252 of Debian 12, at the end of a boot.
const shown_manager =
    \\InitRDTimestampMonotonic=0
    \\UserspaceTimestampMonotonic=5878165
    \\FinishTimestampMonotonic=16442342
    \\GeneratorsStartTimestampMonotonic=6066717
    \\GeneratorsFinishTimestampMonotonic=7561765
    \\UnitsLoadStartTimestampMonotonic=7574065
    \\UnitsLoadFinishTimestampMonotonic=7648571
    \\
;
const shown_units = @embedFile("systemctl_show_units.txt");

test "systemd's own steps are those between its timestamps" {
    var list: StepList = .{};
    addManagerSteps(&list, .parse(shown_manager), 5_500_000);
    const expected = [_]Step{
        .init(.system, "load init", 5_500_000, 378_165),
        .init(.system, "userspace", 5_878_165, 10_564_177),
        .init(.system, "generators", 6_066_717, 1_495_048),
        .init(.system, "load units", 7_574_065, 74_506),
    };
    try testing.expectEqualSlices(Step, &expected, list.slice());
}

test "the slowest units are those of systemd-analyze blame, with its times" {
    const slowest: SlowestUnits = .parse(shown_units, 16_442_342);
    const blamed = [_]struct { []const u8, u64 }{
        .{ "systemd-udev-trigger", 2965 },   .{ "systemd-journald", 2231 },
        .{ "systemd-udevd", 1275 },          .{ "dev-mqueue.mount", 1183 },
        .{ "dev-hugepages.mount", 1168 },    .{ "systemd-update-utmp", 1145 },
        .{ "sys-kernel-debug.mount", 1134 }, .{ "e2scrub_reap", 1123 },
    };
    try testing.expectEqual(blamed.len, slowest.count);
    for (slowest.units[0..slowest.count], blamed) |*unit, expected| {
        try testing.expectEqualStrings(expected[0], unit.name());
        try testing.expectEqual(expected[1], unit.duration_us / std.time.us_per_ms);
    }
}

test "output that is cut anywhere or damaged gives only complete steps" {
    for (0..shown_units.len) |size| {
        const slowest: SlowestUnits = .parse(shown_units[0..size], 16_442_342);
        for (slowest.units[0..slowest.count]) |*unit| try testing.expect(unit.name().len > 0);
    }
    const times: ManagerTimes =
        .parse("UserspaceTimestampMonotonic=-1\nFinishTimestampMonotonic=\nGarbage\n=\n" ++
            "UnitsLoadStartTimestampMonotonic=99999999999999999999\n");
    try testing.expectEqual(ManagerTimes{}, times);
    var list: StepList = .{};
    addManagerSteps(&list, .{ .userspace_us = 5, .finish_us = 0, .initrd_us = 9 }, 7);
    try testing.expectEqual(0, list.count);
}

test "units that began after the boot, or are ours, are left out" {
    const text =
        "Id=late.service\nInactiveExitTimestampMonotonic=20\nActiveEnterTimestampMonotonic=30\n\n" ++
        "Id=bootfarm-ready.service\nInactiveExitTimestampMonotonic=1\nActiveEnterTimestampMonotonic=9\n\n" ++
        "Id=never.service\nInactiveExitTimestampMonotonic=0\nActiveEnterTimestampMonotonic=0\n\n" ++
        "Id=once.service\nInactiveExitTimestampMonotonic=3\nActiveEnterTimestampMonotonic=0\n" ++
        "InactiveEnterTimestampMonotonic=7\n";
    const slowest: SlowestUnits = .parse(text, 10);
    try testing.expectEqual(1, slowest.count);
    try testing.expectEqual(Step.init(.unit, "once", 3, 4), slowest.units[0]);
}

test "no output crashes the parser, whatever its bytes are" {
    var prng: base.Prng = .init(3);
    var text: [shown_units.len]u8 = undefined;
    for (0..500) |_| {
        @memcpy(&text, shown_units);
        for (0..20) |_| damage(&prng, &text, "=\n.0I");
        const slowest: SlowestUnits = .parse(&text, 16_442_342);
        var list: StepList = .{};
        slowest.addSteps(&list);
        addManagerSteps(&list, .parse(&text), prng.below(1 << 40));
        list.sort();
        for (list.slice()) |*step| try testing.expect(step.duration_us <= instant_us_max);
    }
}
