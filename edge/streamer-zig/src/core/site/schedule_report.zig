//! Reports of an edge's schedule runs (`schedule_run` in packages/proto/src/uplink-schedule.ts), as
//! JSON.

const std = @import("std");
const base = @import("base");
const ScheduleRunner = @import("schedule_runner.zig");
const schedule_run = @import("schedule_run.zig");
const assert = std.debug.assert;

const Run = schedule_run.Run;
const Slot = schedule_run.Slot;

pub const size_max = 4096;
/// Each at most 250 bytes.
const devices_max = 14;
/// Results of one second are reported together.
const gather_us = std.time.us_per_s;

const State = enum { running, done, missed, stopped };

/// Returns the next report, for the log; null: none is due. Its contents count as reported: the
/// caller must log it.
pub fn next(runner: *ScheduleRunner, now_us: u64, buffer: *[size_max]u8) ?[]const u8 {
    if (runner.book.takeMissed()) |missed| {
        var writer: std.Io.Writer = .fixed(buffer);
        write(&writer, .{
            .scheduleId = missed.schedule_id,
            .instantUnixMs = missed.from_ms,
            .untilUnixMs = missed.until_ms,
            .state = State.missed,
            .reason = missed.reason,
            .devices = @as([0]u8, .{}),
        });
        return writer.buffered();
    }
    for (runner.runs[0..runner.run_count]) |*run| {
        if (run.needs_devices) continue;
        const slots = runner.slotsOf(run);
        const is_over = run.isOver(slots);
        const is_full = run.unreported_count >= devices_max;
        const is_due = run.unreported_count > 0 and now_us >= run.reported_us + gather_us;
        if (run.is_begin_reported and !is_over and !is_full and !is_due) continue;
        return encode(runner, run, is_over, now_us, buffer);
    }
    return null;
}

const Device = struct {
    deviceId: base.Uuid,
    atUnixMs: u64,
    result: schedule_run.Result,
    text: ?base.UntrustedText,
};

fn encode(
    runner: *ScheduleRunner,
    run: *Run,
    is_over: bool,
    now_us: u64,
    buffer: *[size_max]u8,
) []const u8 {
    assert(!run.needs_devices);
    var devices: base.BoundedArray(Device, devices_max) = .empty;
    for (runner.slotsOf(run)) |*slot| {
        if (devices.isFull() or run.unreported_count == 0) break;
        if (slot.is_reported) continue;
        const result = slot.result() orelse continue;
        slot.is_reported = true;
        run.unreported_count -= 1;
        devices.appendAssumeCapacity(.{
            .deviceId = slot.device,
            .atUnixMs = slot.at_unix_ms,
            .result = result,
            .text = if (slot.text.size > 0) slot.text else null,
        });
    }
    run.is_begin_reported = true;
    run.reported_us = now_us;
    const is_last = is_over and run.unreported_count == 0;
    const state: State = if (!is_last) .running else if (run.is_stopped) .stopped else .done;
    var writer: std.Io.Writer = .fixed(buffer);
    write(&writer, .{
        .scheduleId = run.key.schedule_id,
        .instantUnixMs = run.key.instant_ms,
        .state = state,
        .startedUnixMs = run.begun_unix_ms,
        .devices = devices.constSlice(),
    });
    if (is_last) runner.remove(run.key);
    return writer.buffered();
}

fn write(writer: *std.Io.Writer, said: anytype) void {
    std.json.Stringify.value(said, .{ .emit_null_optional_fields = false }, writer) catch
        unreachable;
}
