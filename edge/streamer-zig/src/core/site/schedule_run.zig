//! One run of a schedule: its timeline, and the state of each of its devices at this edge. Plain
//! values; schedule_runner.zig decides.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const assert = std.debug.assert;
const Uuid = base.Uuid;

pub const RunKey = struct {
    schedule_id: Uuid,
    instant_ms: u64,

    pub fn eql(a: RunKey, b: RunKey) bool {
        return a.instant_ms == b.instant_ms and a.schedule_id.eql(b.schedule_id);
    }
};

/// How a device is switched on.
pub const Power = enum { wake_on_lan, hook, both };

/// Returns null for an action that this edge cannot perform.
pub fn powerOf(schedule: *const desired_state.Schedule) ?Power {
    if (!std.mem.eql(u8, schedule.action, "power_on")) return null;
    return std.meta.stringToEnum(Power, schedule.power);
}

/// The reported result of a device. `packages/proto/src/uplink-schedule.ts`.
pub const Result = enum(u8) { sent = 1, hook_failed, disabled, booting_already, late };

pub const Slot = struct {
    device: Uuid,
    mac: base.Mac,
    state: State = .waiting,
    /// The edge that it was left to, as an index of the site's edges.
    left_to: u8 = 0,
    left_rounds: u8 = 0,
    is_reported: bool = false,
    left_us: u64 = 0,
    at_unix_ms: u64 = 0,
    /// Output of the power command.
    text: base.UntrustedText = .empty,

    pub const State = union(enum) {
        waiting,
        /// `next` has returned it.
        starting,
        left,
        /// Taken back from another edge.
        again,
        /// Another edge's; nothing is to be reported here.
        settled,
        over: Result,
    };

    pub fn result(slot: *const Slot) ?Result {
        return switch (slot.state) {
            .over => |over| over,
            else => null,
        };
    }

    pub fn end(slot: *Slot, run: *Run, how: Result, unix_ms: u64) void {
        assert(slot.result() == null);
        slot.state = .{ .over = how };
        slot.at_unix_ms = unix_ms;
        run.unreported_count += 1;
        assert(run.unreported_count <= run.count);
    }

    pub fn leave(slot: *Slot, run: *Run, edge: u8, now_us: u64) void {
        assert(slot.state == .waiting);
        slot.state = .left;
        slot.left_to = edge;
        slot.left_us = now_us;
        run.left_count += 1;
        assert(run.left_count <= run.count);
    }

    pub fn leaveAgain(slot: *Slot, edge: u8, now_us: u64) void {
        assert(slot.state == .left);
        slot.left_rounds += 1;
        slot.left_to = edge;
        slot.left_us = now_us;
    }

    pub fn takeBack(slot: *Slot, run: *Run) void {
        assert(slot.state == .left);
        slot.state = .again;
        assert(run.left_count > 0);
        run.left_count -= 1;
        run.again_count += 1;
    }

    pub fn settle(slot: *Slot, run: *Run) void {
        assert(slot.state == .left);
        slot.state = .settled;
        assert(run.left_count > 0);
        run.left_count -= 1;
    }
};

pub const Run = struct {
    key: RunKey,
    /// Of the runs that this process has begun, counted from 1; 0: an earlier process did.
    number: u64 = 0,
    /// When its first device was due, on the edge's wall clock.
    begun_unix_ms: u64,
    begun_us: u64 = 0,
    /// By how much the run is older than the monotonic clock.
    lead_us: u64 = 0,
    power: Power = .wake_on_lan,
    spacing_us: u64 = 0,
    /// Index of its first device slot.
    first: u32 = 0,
    count: u32 = 0,
    /// The first device whose time has not come.
    cursor: u32 = 0,
    left_count: u32 = 0,
    again_count: u32 = 0,
    unreported_count: u32 = 0,
    /// No other device is switched on here before this.
    next_send_us: u64 = 0,
    reviewed_us: u64 = 0,
    reported_us: u64 = 0,
    /// Restored from the journal; the state lists its devices.
    needs_devices: bool = false,
    is_begin_reported: bool = false,
    is_stopped: bool = false,

    pub fn dueOf(run: *const Run, index: u32) u64 {
        return (run.begun_us + index * run.spacing_us) -| run.lead_us;
    }

    /// A device is switched on now. A late one does not hurry those after it.
    pub fn paced(run: *Run, due_us: u64, now_us: u64) void {
        const base_us = @max(due_us, run.next_send_us);
        run.next_send_us = @max(base_us, now_us -| run.spacing_us) + run.spacing_us;
    }

    /// Its schedule is gone: devices that have not been started stay off.
    pub fn stop(run: *Run, slots: []Slot) void {
        run.is_stopped = true;
        run.needs_devices = false;
        run.cursor = run.count;
        run.left_count = 0;
        run.again_count = 0;
        for (slots) |*slot| switch (slot.state) {
            .waiting, .left, .again => slot.state = .settled,
            .starting, .settled, .over => {},
        };
    }

    /// Nothing more happens in it at this edge.
    pub fn isOver(run: *const Run, slots: []const Slot) bool {
        if (run.needs_devices or run.cursor < run.count) return false;
        if (run.left_count > 0 or run.again_count > 0) return false;
        for (slots) |*slot| if (slot.state == .starting) return false;
        return true;
    }
};

/// A record that has to survive a restart.
pub const Record = union(enum) {
    begun: struct { key: RunKey, unix_ms: u64 },
    device: struct { key: RunKey, device: Uuid, result: Result, at_unix_ms: u64 },
    ended: RunKey,
    missed: RunKey,
    /// The clock was set back: instants missed after this one were not missed.
    set_back: u64,
};

pub const Restored = struct { key: RunKey, device: Uuid, result: Result, at_unix_ms: u64 };

/// The sink of records, which keeps their order and may write them later.
pub const Journal = struct {
    context: *anyopaque,
    write: *const fn (context: *anyopaque, record: Record) void,

    pub const none: Journal = .{ .context = undefined, .write = forget };

    fn forget(_: *anyopaque, _: Record) void {}
};
