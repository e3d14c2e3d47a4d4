//! Runs the schedules of an enrolled edge: core/site/schedule_runner.zig decides what happens when,
//! this file what it means for the boots, which reports are due, and when the edge looks again.
//! Magic packets, the power command and the journal are `Io`'s. An edge without a control plane has
//! a runner that no state has reached: it does nothing.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const agent_io = @import("io.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const ScheduleRunner = core.site.ScheduleRunner;
const never_us = std.math.maxInt(u64);

pub fn Schedules(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);

        runner: ScheduleRunner,
        boots: *Boots,
        next_turn_us: u64 = 0,
        jump_count: u64 = 0,

        const turn_interval_us = std.time.us_per_s / 4;
        /// Reports waiting in the log, of any kind; beyond that, reports of runs are delayed.
        pub const backlog_max = 4096;

        pub fn setState(
            schedules: *Self,
            now_us: u64,
            state: *const core.uplink.desired_state.DesiredState,
        ) void {
            schedules.runner.setState(now_us, schedules.boots.io.unixMs(), state);
            schedules.next_turn_us = 0;
            assert(schedules.runner.state == state);
        }

        /// Runs when `next_turn_us` has come.
        pub fn turn(schedules: *Self, now_us: u64) void {
            const runner = &schedules.runner;
            const io = schedules.boots.io;
            schedules.next_turn_us = never_us;
            if (runner.state == null) return;
            runner.observe(now_us, io.unixMs());
            assert(runner.jump_count >= schedules.jump_count);
            if (runner.jump_count != schedules.jump_count) {
                schedules.jump_count = runner.jump_count;
                io.log(
                    "This machine's clock was set: no schedule starts within the next minute.",
                    .{},
                );
            }
            while (io.takePowerResult()) |result| schedules.endCommand(now_us, &result);
            const kept_runs = if (mutants.has(.start_before_kept))
                std.math.maxInt(u64)
            else
                io.keptRuns();
            while (runner.next(now_us, .{
                .peers = schedules.boots.peers,
                .policy = &schedules.boots.policy,
                .network = schedules.boots.network,
                .may_hook = io.powerHook() != .busy,
                .kept_runs = kept_runs,
            })) |action| schedules.start(&action, now_us);
            schedules.report(now_us);
            io.compactSchedules(runner);
            const deadline_us =
                @max(runner.nextDeadline(kept_runs) orelse never_us, now_us + std.time.us_per_ms);
            schedules.next_turn_us = @min(deadline_us, now_us + turn_interval_us);
            assert(schedules.next_turn_us > now_us);
        }

        fn start(schedules: *Self, action: *const ScheduleRunner.Action, now_us: u64) void {
            const boots = schedules.boots;
            assert(schedules.runner.state != null);
            if (schedules.isBooting(action.mac))
                return schedules.end(action, .booting_already, .empty);
            if (action.power != .hook) {
                boots.io.wake(action.mac);
                boots.expect(now_us, action.mac);
            }
            if (action.power == .wake_on_lan) return schedules.end(action, .sent, .empty);
            switch (boots.io.powerHook()) {
                .none => schedules.end(
                    action,
                    if (action.power == .both) .sent else .hook_failed,
                    .init("this edge has no --power-hook"),
                ),
                // `may_hook` was false.
                .busy => unreachable,
                .ready => boots.io.startPowerHook(.{
                    .key = action.key,
                    .device = action.device,
                    .mac = action.mac,
                    .name = .init(schedules.nameOf(action.device)),
                    .given_us = now_us,
                }),
            }
        }

        /// A power command has ended.
        fn endCommand(schedules: *Self, now_us: u64, result: *const agent_io.PowerResult) void {
            const job = &result.job;
            assert(job.given_us <= now_us);
            if (result.is_on and !schedules.hasBegunSince(job.mac, job.given_us))
                schedules.boots.expect(now_us, job.mac);
            schedules.runner.ended(
                job.key,
                job.device,
                if (result.is_on) .sent else .hook_failed,
                result.text,
            );
        }

        fn end(
            schedules: *Self,
            action: *const ScheduleRunner.Action,
            result: ScheduleRunner.Result,
            text: base.UntrustedText,
        ) void {
            assert(schedules.runner.run_count > 0);
            schedules.runner.ended(action.key, action.device, result, text);
        }

        /// Returns whether the device's boot is past a power-on without any answer.
        fn isBooting(schedules: *Self, mac: base.Mac) bool {
            const table = &schedules.boots.table;
            const boot = table.get(table.findByMac(mac) orelse return false).?;
            return !boot.isOver() and (boot.current() orelse .firmware) != .firmware;
        }

        /// Returns whether the device was quicker than the command that switched it on.
        fn hasBegunSince(schedules: *Self, mac: base.Mac, since_us: u64) bool {
            const table = &schedules.boots.table;
            return table.get(table.findByMac(mac) orelse return false).?.started_us >= since_us;
        }

        fn nameOf(schedules: *const Self, id: base.Uuid) []const u8 {
            const state = schedules.runner.state orelse return "";
            for (state.devices) |*device| if (device.id.eql(id)) return device.name;
            return "";
        }

        fn report(schedules: *Self, now_us: u64) void {
            const io = schedules.boots.io;
            assert(schedules.runner.state != null);
            var buffer: [core.site.schedule_report.size_max]u8 = undefined;
            while (io.reportBacklog() < backlog_max) {
                const next = core.site.schedule_report.next;
                const text = next(&schedules.runner, now_us, &buffer) orelse return;
                assert(text.len > 0);
                io.report(.{ .schedule_run = text });
            }
        }
    };
}
