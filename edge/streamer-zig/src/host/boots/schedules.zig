//! Runs the schedules of an enrolled edge with real clocks, magic packets, the power command, the
//! journal and the report log. core/site/schedule_runner.zig decides what happens when.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const EdgeIo = @import("../edge_io.zig");
const Boots = EdgeIo.Agent.Boots;
const PowerHook = @import("../power_hook.zig").PowerHook;
const ReportLog = @import("../files/report_log.zig").ReportLog;
const ScheduleFile = @import("../files/schedule_file.zig");
const assert = std.debug.assert;

pub const Schedules = @This();

runner: core.site.ScheduleRunner,
file: ScheduleFile,
/// Null without `--power-hook`.
hook: ?*PowerHook,
report_log: *ReportLog,
boots: *Boots,
next_turn_us: u64 = 0,
jump_count: u64 = 0,

const turn_interval_us = std.time.us_per_s / 4;
/// Reports waiting in the log, of any kind; beyond that, reports of runs are delayed.
const backlog_max = 4096;

/// `schedules` must not move afterwards.
pub fn init(
    schedules: *Schedules,
    gpa: std.mem.Allocator,
    dir_fd: i32,
    options: struct { hook: ?*PowerHook, log: *ReportLog, boots: *Boots },
) (error{OutOfMemory} || sys.Error)!void {
    schedules.* = .{
        .runner = try .init(gpa),
        .file = undefined,
        .hook = options.hook,
        .report_log = options.log,
        .boots = options.boots,
    };
    schedules.file = try ScheduleFile.open(dir_fd, &schedules.runner);
    schedules.runner.journal = schedules.file.journal();
}

pub fn setState(schedules: *Schedules, state: *const core.uplink.desired_state.DesiredState) void {
    schedules.runner.setState(sys.monotonicUs(), sys.unixMs(), state);
    schedules.next_turn_us = 0;
}

/// Runs when `next_turn_us` has come.
pub fn turn(schedules: *Schedules, now_us: u64) void {
    const runner = &schedules.runner;
    runner.observe(now_us, sys.unixMs());
    if (runner.jump_count != schedules.jump_count) {
        schedules.jump_count = runner.jump_count;
        log.info("This machine's clock was set: no schedule starts within the next minute.", .{});
    }
    if (schedules.hook) |hook| while (hook.take()) |done| {
        const job = &done.job;
        if (done.is_on and !schedules.hasBegunSince(job.mac, job.given_us))
            schedules.boots.expect(now_us, job.mac);
        runner.ended(job.key, job.device, if (done.is_on) .sent else .hook_failed, done.text);
    };
    const site: core.site.ScheduleRunner.Site = .{
        .peers = schedules.boots.peers,
        .policy = &schedules.boots.policy,
        .network = schedules.boots.network,
        .may_hook = if (schedules.hook) |hook| hook.hasRoom() else true,
    };
    while (runner.next(now_us, site)) |action| schedules.start(&action, now_us);
    schedules.report(now_us);
    schedules.file.compact(runner);
    const deadline_us =
        @max(runner.nextDeadline() orelse std.math.maxInt(u64), now_us + std.time.us_per_ms);
    schedules.next_turn_us = @min(deadline_us, now_us + turn_interval_us);
}

fn start(schedules: *Schedules, action: *const core.site.ScheduleRunner.Action, now_us: u64) void {
    const runner = &schedules.runner;
    if (schedules.isBooting(action.mac))
        return runner.ended(action.key, action.device, .booting_already, .empty);
    if (action.power != .hook) {
        schedules.boots.io.wake(action.mac);
        schedules.boots.expect(now_us, action.mac);
    }
    if (action.power == .wake_on_lan) return runner.ended(action.key, action.device, .sent, .empty);
    const hook = schedules.hook orelse {
        const is_sent = action.power == .both;
        return runner.ended(
            action.key,
            action.device,
            if (is_sent) .sent else .hook_failed,
            .init("this edge has no --power-hook"),
        );
    };
    hook.give(.{
        .key = action.key,
        .device = action.device,
        .mac = action.mac,
        .name = .init(schedules.nameOf(action.device)),
        .given_us = now_us,
    });
}

/// Returns whether the device's boot is past a power-on without any answer.
fn isBooting(schedules: *Schedules, mac: base.Mac) bool {
    const table = &schedules.boots.table;
    const boot = table.get(table.findByMac(mac) orelse return false).?;
    return !boot.isOver() and (boot.current() orelse .firmware) != .firmware;
}

/// Returns whether the device was quicker than the command that switched it on.
fn hasBegunSince(schedules: *Schedules, mac: base.Mac, since_us: u64) bool {
    const table = &schedules.boots.table;
    return table.get(table.findByMac(mac) orelse return false).?.started_us >= since_us;
}

fn nameOf(schedules: *const Schedules, id: base.Uuid) []const u8 {
    const state = schedules.runner.state orelse return "";
    for (state.devices) |*device| if (device.id.eql(id)) return device.name;
    return "";
}

fn report(schedules: *Schedules, now_us: u64) void {
    var has_written = false;
    var buffer: [core.site.schedule_report.size_max]u8 = undefined;
    while (schedules.report_log.backlog() < backlog_max) {
        const text = core.site.schedule_report.next(&schedules.runner, now_us, &buffer) orelse
            break;
        _ = schedules.report_log.appendScheduleRun(text);
        has_written = true;
    }
    if (has_written) schedules.boots.io.listener.written(schedules.boots.io.listener.context);
}
