//! Starts the runs of the desired state's schedules (packages/proto/UPLINK.md, "Schedules"): each
//! once, at its instant, its devices one after the other at the schedule's rate. Pure: the caller
//! passes wall and monotonic time; `next` returns devices to switch on, `schedule_report.zig`
//! returns reports, and records that have to survive a restart go to `journal`.
//!
//! The wall clock decides when a run starts; from then on it is paced by the monotonic clock. All
//! edges of a site step through a run's devices on the same timeline and each starts its own, so
//! the site's rate holds without a message between them.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const BootPolicy = @import("../boot/policy.zig").BootPolicy;
const PeerTable = @import("peer_table.zig");
const ScheduleBook = @import("schedule_book.zig");
const schedule_run = @import("schedule_run.zig");
const assert = std.debug.assert;
const Mac = base.Mac;
const Uuid = base.Uuid;

pub const ScheduleRunner = @This();

pub const Run = schedule_run.Run;
pub const RunKey = schedule_run.RunKey;
pub const Slot = schedule_run.Slot;
pub const Result = schedule_run.Result;
pub const Missed = ScheduleBook.MissedInstants;
pub const Record = schedule_run.Record;
pub const Journal = schedule_run.Journal;

const runs_max = 64;
/// Devices of all runs at a time.
pub const slots_max = 2 * desired_state.devices_max;
/// Records of `writeAll`.
pub const records_max = ScheduleBook.records_max + runs_max + slots_max;
/// A run, and each device of a run, is started at most this late.
const lateness_ms = 15 * std.time.ms_per_min;
/// A wall clock that deviates from elapsed time by more than this has been set.
pub const jump_ms = 30 * std.time.ms_per_s;
/// No run starts or is given up until a clock that was set has been steady for this long.
const settle_us = 60 * std.time.us_per_s;
/// An edge that starts a device claims its boot; without such a claim for this long, the owner is
/// decided again.
const left_limit_us = 10 * std.time.us_per_s;
/// A power command is claimed when it has ended.
const hook_limit_us = 30 * std.time.us_per_s;
/// An owner that is silent for another so many limits has not begun the run (its clock was set, or
/// it has no such state yet): then any edge that has begun it starts the device.
const left_rounds_max = 2;

runs: []Run,
run_count: u32 = 0,
/// Runs that this process has begun.
begun_count: u64 = 0,
slots: []Slot,
slot_count: u32 = 0,
book: ScheduleBook,
/// Journal records of runs in progress, until the state lists their devices.
restored: []schedule_run.Restored,
restored_count: u32 = 0,
state: ?*const desired_state.DesiredState = null,
journal: Journal = .none,
last_us: u64 = 0,
last_unix_ms: u64 = 0,
has_time: bool = false,
settled_us: u64 = 0,
/// How often the wall clock was set.
jump_count: u64 = 0,

/// Of an edge that has no schedules, and never gets a state.
pub const none: ScheduleRunner =
    .{ .runs = &.{}, .slots = &.{}, .restored = &.{}, .book = .{ .entries = &.{} } };

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!ScheduleRunner {
    const runs = try base.allocUntouched(gpa, Run, runs_max);
    errdefer base.freeUntouched(gpa, Run, runs);
    const slots = try base.allocUntouched(gpa, Slot, slots_max);
    errdefer base.freeUntouched(gpa, Slot, slots);
    const restored = try base.allocUntouched(gpa, schedule_run.Restored, slots_max);
    errdefer base.freeUntouched(gpa, schedule_run.Restored, restored);
    return .{ .runs = runs, .slots = slots, .restored = restored, .book = try .init(gpa) };
}

pub fn deinit(runner: *ScheduleRunner, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, Run, runner.runs);
    base.freeUntouched(gpa, Slot, runner.slots);
    base.freeUntouched(gpa, schedule_run.Restored, runner.restored);
    runner.book.deinit(gpa);
    runner.* = undefined;
}

/// Takes a new desired state, which need not outlive the call. Runs whose schedule is no longer in
/// it end; the others keep the devices that they started with.
pub fn setState(
    runner: *ScheduleRunner,
    now_us: u64,
    unix_ms: u64,
    state: *const desired_state.DesiredState,
) void {
    runner.state = state;
    runner.book.setSchedules(state.schedules, state.issuedUnixMs -| lateness_ms);
    for (runner.runs[0..runner.run_count]) |*run| {
        const schedule = runner.find(run.key.schedule_id) orelse {
            run.stop(runner.slotsOf(run));
            continue;
        };
        if (run.needs_devices) runner.resumeRun(run, schedule, now_us, unix_ms);
    }
    runner.restored_count = 0;
    assert(runner.run_count <= runner.runs.len);
    assert(runner.slot_count <= runner.slots.len);
}

/// Takes a record of an earlier start's journal, in order, before the first state.
pub fn restore(runner: *ScheduleRunner, record: Record) void {
    switch (record) {
        .begun => |begun| {
            runner.book.markBegun(begun.key);
            if (runner.run_count == runs_max or runner.findRun(begun.key) != null) return;
            runner.runs[runner.run_count] =
                .{ .key = begun.key, .begun_unix_ms = begun.unix_ms, .needs_devices = true };
            runner.run_count += 1;
        },
        .device => |device| {
            if (runner.restored_count == runner.restored.len) return;
            runner.restored[runner.restored_count] = .{
                .key = device.key,
                .device = device.device,
                .result = device.result,
                .at_unix_ms = device.at_unix_ms,
            };
            runner.restored_count += 1;
        },
        .ended => |key| {
            runner.book.markBegun(key);
            const index = runner.indexOf(key) orelse return;
            assert(index < runner.run_count);
            std.mem.copyForwards(
                Run,
                runner.runs[index .. runner.run_count - 1],
                runner.runs[index + 1 .. runner.run_count],
            );
            runner.run_count -= 1;
        },
        .missed => |missed| runner.book.markMissed(missed.schedule_id, missed.instant_ms),
        .set_back => |unix_ms| runner.book.forgetMissedAfter(unix_ms),
    }
}

/// Writes everything that a new journal must start with, so that a restart knows as much as this
/// process.
pub fn writeAll(runner: *const ScheduleRunner, journal: Journal) void {
    runner.book.writeAll(journal);
    for (runner.runs[0..runner.run_count]) |*run| {
        journal.write(journal.context, .{
            .begun = .{ .key = run.key, .unix_ms = run.begun_unix_ms },
        });
        for (runner.slots[run.first..][0..run.count]) |*slot| if (slot.result()) |result|
            journal.write(journal.context, .{ .device = .{
                .key = run.key,
                .device = slot.device,
                .result = result,
                .at_unix_ms = slot.at_unix_ms,
            } });
    }
}

/// Time has passed: starts runs whose instant has come and gives up those whose time is over. At
/// least once a second.
pub fn observe(runner: *ScheduleRunner, now_us: u64, unix_ms: u64) void {
    runner.watchClock(now_us, unix_ms);
    assert(runner.has_time);
    if (now_us < runner.settled_us) return;
    const state = runner.state orelse return;
    for (state.schedules) |*schedule| {
        var instants = runner.book.pending(schedule, unix_ms);
        while (instants.next()) |instant_ms| {
            const key: RunKey = .{ .schedule_id = schedule.id, .instant_ms = instant_ms };
            if (unix_ms - instant_ms > lateness_ms) {
                if (!runner.book.miss(key, .late)) break;
            } else {
                const why = runner.begin(key, schedule, now_us, unix_ms) orelse continue;
                if (!runner.book.miss(key, why)) break;
                runner.book.markBegun(key);
            }
            runner.journal.write(runner.journal.context, .{ .missed = key });
        }
    }
}

/// A clock that was set is not trusted at once; one that was set back has not passed the instants
/// that it seemed to miss.
fn watchClock(runner: *ScheduleRunner, now_us: u64, unix_ms: u64) void {
    const expected_ms = runner.last_unix_ms + (now_us -| runner.last_us) / std.time.us_per_ms;
    if (runner.has_time and @max(unix_ms, expected_ms) - @min(unix_ms, expected_ms) > jump_ms) {
        runner.settled_us = now_us + settle_us;
        runner.jump_count += 1;
        if (unix_ms < expected_ms) {
            // Instants that are less late than that were not missed at all.
            const since_ms = unix_ms -| lateness_ms;
            runner.book.forgetMissedAfter(since_ms);
            runner.journal.write(runner.journal.context, .{ .set_back = since_ms });
        }
    }
    runner.has_time = true;
    runner.last_us = now_us;
    runner.last_unix_ms = unix_ms;
}

/// Returns null if it has started, else why it cannot.
fn begin(
    runner: *ScheduleRunner,
    key: RunKey,
    schedule: *const desired_state.Schedule,
    now_us: u64,
    unix_ms: u64,
) ?ScheduleBook.Reason {
    // The book may have forgotten a schedule that was gone from the states in between.
    if (runner.findRun(key) != null) {
        runner.book.markBegun(key);
        return null;
    }
    const power = schedule_run.powerOf(schedule) orelse return .action_unknown;
    if (runner.run_count == runs_max) return .too_many;
    if (runner.slots.len - runner.slot_count < schedule.devices.len) return .too_many;
    const run = &runner.runs[runner.run_count];
    runner.begun_count += 1;
    run.* = .{ .key = key, .number = runner.begun_count, .begun_unix_ms = unix_ms };
    runner.addSlots(run, schedule, power);
    assert(run.first + run.count == runner.slot_count);
    run.begun_us = now_us;
    runner.run_count += 1;
    assert(runner.run_count <= runs_max);
    runner.book.markBegun(key);
    runner.journal.write(runner.journal.context, .{ .begun = .{ .key = key, .unix_ms = unix_ms } });
    return null;
}

fn addSlots(
    runner: *ScheduleRunner,
    run: *Run,
    schedule: *const desired_state.Schedule,
    power: schedule_run.Power,
) void {
    run.power = power;
    run.spacing_us = std.time.us_per_min / schedule.ratePerMinute;
    run.first = runner.slot_count;
    run.count = @intCast(schedule.devices.len);
    run.needs_devices = false;
    runner.slot_count += run.count;
    assert(runner.slot_count <= runner.slots.len);
    for (schedule.devices, runner.slotsOf(run)) |index, *slot| {
        const device = &runner.state.?.devices[index];
        slot.* = .{ .device = device.id, .mac = device.mac };
        if (!device.enabled) slot.end(run, .disabled, runner.last_unix_ms);
    }
}

/// A run in progress when the edge stopped continues at the current point of its timeline.
fn resumeRun(
    runner: *ScheduleRunner,
    run: *Run,
    schedule: *const desired_state.Schedule,
    now_us: u64,
    unix_ms: u64,
) void {
    assert(run.needs_devices);
    const power = schedule_run.powerOf(schedule);
    if (power == null or runner.slots.len - runner.slot_count < schedule.devices.len) {
        run.stop(&.{});
        return;
    }
    runner.last_unix_ms = unix_ms;
    runner.addSlots(run, schedule, power.?);
    const passed_us = (unix_ms -| run.begun_unix_ms) *| std.time.us_per_ms;
    // The monotonic clock may be younger than the run.
    run.begun_us = now_us -| passed_us;
    run.lead_us = passed_us -| now_us;
    run.next_send_us = now_us;
    for (runner.restored[0..runner.restored_count]) |*restored| {
        if (!restored.key.eql(run.key)) continue;
        for (runner.slotsOf(run)) |*slot| if (slot.device.eql(restored.device) and
            slot.result() == null)
        {
            slot.end(run, restored.result, restored.at_unix_ms);
            break;
        };
    }
}

pub const Site = struct {
    peers: *const PeerTable,
    policy: *const BootPolicy,
    /// The first address of this edge's own network.
    network: base.Ip4,
    /// Another power command may run.
    may_hook: bool = true,
    /// The journal has kept the records of so many runs that this process has begun: the others
    /// start no device, so that a restart does not begin them twice.
    kept_runs: u64 = std.math.maxInt(u64),

    fn ownerOf(site: *const Site, now_us: u64, mac: Mac) PeerTable.Owner {
        return site.peers.ownerOf(now_us, .{
            .mac = mac,
            .network = site.network,
            .home = site.policy.homeOf(mac),
        });
    }
};

pub const Action = struct {
    key: RunKey,
    device: Uuid,
    mac: Mac,
    power: schedule_run.Power,
};

/// Returns the next device to switch on now; null: none. The caller must call `ended` for each with
/// its result.
pub fn next(runner: *ScheduleRunner, now_us: u64, site: Site) ?Action {
    // The others may not have announced yet what they have started.
    if (site.peers.isStarting(now_us)) return null;
    for (runner.runs[0..runner.run_count]) |*run| {
        if (run.needs_devices or run.is_stopped or run.number > site.kept_runs) continue;
        if (run.power != .wake_on_lan and !site.may_hook) continue;
        if (run.left_count > 0) runner.review(run, now_us, site);
        if (runner.nextOf(run, now_us, site)) |slot| {
            assert(slot.result() == null);
            slot.state = .starting;
            return .{ .key = run.key, .device = slot.device, .mac = slot.mac, .power = run.power };
        }
    }
    return null;
}

fn nextOf(runner: *ScheduleRunner, run: *Run, now_us: u64, site: Site) ?*Slot {
    assert(run.cursor <= run.count);
    const slots = runner.slotsOf(run);
    if (run.again_count > 0 and now_us >= run.next_send_us) for (slots, 0..) |*slot, index| {
        if (slot.state != .again) continue;
        assert(run.again_count > 0);
        run.again_count -= 1;
        if (runner.isTooLate(run, @intCast(index), now_us)) {
            slot.end(run, .late, runner.last_unix_ms);
            continue;
        }
        run.paced(run.dueOf(@intCast(index)), now_us);
        return slot;
    };
    while (run.cursor < run.count) {
        const slot = &slots[run.cursor];
        const due_us = run.dueOf(run.cursor);
        if (now_us < due_us) return null;
        if (slot.state == .waiting) {
            if (runner.isTooLate(run, run.cursor, now_us)) {
                slot.end(run, .late, runner.last_unix_ms);
            } else switch (site.ownerOf(now_us, slot.mac)) {
                .own => {
                    if (now_us < run.next_send_us) return null;
                    run.paced(due_us, now_us);
                    run.cursor += 1;
                    return slot;
                },
                .claimed => slot.end(run, .booting_already, runner.last_unix_ms),
                .other => |edge| slot.leave(run, edge, now_us),
            }
        }
        run.cursor += 1;
    }
    return null;
}

fn isTooLate(_: *const ScheduleRunner, run: *const Run, index: u32, now_us: u64) bool {
    return now_us -| run.dueOf(index) > lateness_ms * std.time.us_per_ms;
}

/// Reviews devices that were left to another edge: it has claimed the boot, or is gone, or is
/// silent. Only a claim shows that somebody starts the device: without one this edge does, for an
/// edge that is alive may not have begun the run, or may compute another owner.
fn review(runner: *ScheduleRunner, run: *Run, now_us: u64, site: Site) void {
    assert(run.left_count > 0);
    assert(!run.is_stopped);
    if (now_us < run.reviewed_us + std.time.us_per_s) return;
    run.reviewed_us = now_us;
    const limit_us: u64 =
        if (run.power == .hook) left_limit_us + hook_limit_us else left_limit_us;
    for (runner.slotsOf(run)) |*slot| {
        if (slot.state != .left) continue;
        const is_silent = now_us >= slot.left_us + limit_us;
        switch (site.ownerOf(now_us, slot.mac)) {
            .claimed => slot.settle(run),
            .own => if (is_silent or !site.peers.isAlive(now_us, slot.left_to))
                slot.takeBack(run),
            .other => |edge| {
                if (edge == slot.left_to and !is_silent) continue;
                if (slot.left_rounds == left_rounds_max)
                    slot.takeBack(run)
                else
                    slot.leaveAgain(edge, now_us);
            },
        }
    }
}

/// The result of a device that `next` has returned.
pub fn ended(
    runner: *ScheduleRunner,
    key: RunKey,
    device: Uuid,
    result: Result,
    text: base.UntrustedText,
) void {
    const run = runner.findRun(key) orelse return;
    for (runner.slotsOf(run)) |*slot| {
        if (slot.state != .starting or !slot.device.eql(device)) continue;
        slot.end(run, result, runner.last_unix_ms);
        slot.text = text;
        runner.journal.write(runner.journal.context, .{ .device = .{
            .key = key,
            .device = device,
            .result = result,
            .at_unix_ms = runner.last_unix_ms,
        } });
        return;
    }
}

/// Returns when `next` may have a device again; null: not before the state, the clock or
/// `kept_runs` changes.
pub fn nextDeadline(runner: *const ScheduleRunner, kept_runs: u64) ?u64 {
    var deadline_us: ?u64 = null;
    for (runner.runs[0..runner.run_count]) |*run| {
        if (run.needs_devices or run.is_stopped or run.cursor == run.count) continue;
        if (run.number > kept_runs) continue;
        const due_us = @max(run.dueOf(run.cursor), run.next_send_us);
        deadline_us = @min(deadline_us orelse due_us, due_us);
    }
    return deadline_us;
}

/// Removes a run that is reported completely.
pub fn remove(runner: *ScheduleRunner, key: RunKey) void {
    const index = runner.indexOf(key) orelse return;
    const gone = runner.runs[index];
    std.mem.copyForwards(
        Slot,
        runner.slots[gone.first .. runner.slot_count - gone.count],
        runner.slots[gone.first + gone.count .. runner.slot_count],
    );
    assert(runner.slot_count >= gone.count);
    runner.slot_count -= gone.count;
    std.mem.copyForwards(
        Run,
        runner.runs[index .. runner.run_count - 1],
        runner.runs[index + 1 .. runner.run_count],
    );
    runner.run_count -= 1;
    for (runner.runs[0..runner.run_count]) |*run| if (run.first > gone.first) {
        run.first -= gone.count;
    };
    assert(runner.run_count < runner.runs.len);
    runner.journal.write(runner.journal.context, .{ .ended = key });
}

pub fn slotsOf(runner: *ScheduleRunner, run: *const Run) []Slot {
    assert(run.first + run.count <= runner.slot_count);
    return runner.slots[run.first..][0..run.count];
}

fn findRun(runner: *ScheduleRunner, key: RunKey) ?*Run {
    return &runner.runs[runner.indexOf(key) orelse return null];
}

fn indexOf(runner: *const ScheduleRunner, key: RunKey) ?u32 {
    for (runner.runs[0..runner.run_count], 0..) |*run, index|
        if (run.key.eql(key)) return @intCast(index);
    return null;
}

fn find(runner: *const ScheduleRunner, id: Uuid) ?*const desired_state.Schedule {
    const state = runner.state orelse return null;
    for (state.schedules) |*schedule| if (schedule.id.eql(id)) return schedule;
    return null;
}

test {
    _ = @import("schedule_runner_test.zig");
}
