//! Which instants of which schedule this edge has handled: a started one is never started again,
//! whatever the clock does; a missed one is reported once, and no longer counts if the clock is set
//! back before it. Bounded: the last instants of each schedule individually, all earlier ones by a
//! limit. Pure.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");
const schedule_run = @import("schedule_run.zig");
const assert = std.debug.assert;
const RunKey = schedule_run.RunKey;
const Uuid = base.Uuid;

pub const ScheduleBook = @This();

/// Twice as many as a state may hold: one that was gone for a while is recognized.
pub const entries_max = 2 * desired_state.schedules_max;
/// Instants that may arrive out of order: runs that were started by hand, between clocks that
/// differ.
const begun_max = 16;
const missed_max = 64;
/// Records of `writeAll`.
pub const records_max = entries_max * (begun_max + 1);

entries: []Entry,
count: u32 = 0,
/// Incremented with each state; the least recently listed entry is evicted.
round: u64 = 0,
missed: base.BoundedArray(MissedInstants, missed_max) = .empty,

pub const Reason = enum { late, action_unknown, too_many };

/// A range to report: all instants from `from_ms` to `until_ms`.
pub const MissedInstants =
    struct { schedule_id: Uuid, from_ms: u64, until_ms: u64, reason: Reason };

const Entry = struct {
    id: Uuid,
    /// Ascending; instants up to `floor_ms` are handled.
    begun: base.BoundedArray(u64, begun_max) = .empty,
    floor_ms: u64 = 0,
    missed_until_ms: u64 = 0,
    round: u64 = 0,

    fn isBegun(entry: *const Entry, instant_ms: u64) bool {
        if (instant_ms <= entry.floor_ms) return true;
        for (entry.begun.constSlice()) |begun| if (begun == instant_ms) return true;
        return false;
    }

    fn note(entry: *Entry, instant_ms: u64) void {
        if (entry.isBegun(instant_ms)) return;
        if (entry.begun.isFull()) {
            // Older than all that are kept, as of a run that lasts for many others: counts with
            // the limit.
            if (instant_ms < entry.begun.buffer[0]) {
                entry.floor_ms = instant_ms;
                return;
            }
            entry.floor_ms = entry.begun.buffer[0];
            std.mem.copyForwards(
                u64,
                entry.begun.buffer[0 .. begun_max - 1],
                entry.begun.buffer[1..],
            );
            entry.begun.count -= 1;
        }
        entry.begun.appendAssumeCapacity(instant_ms);
        base.sort(u64, entry.begun.slice(), {}, std.sort.asc(u64));
        assert(entry.begun.count > 0);
        assert(entry.begun.count <= begun_max);
    }
};

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!ScheduleBook {
    return .{ .entries = try base.allocUntouched(gpa, Entry, entries_max) };
}

pub fn deinit(book: *ScheduleBook, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, Entry, book.entries);
    book.* = undefined;
}

/// Instants of a schedule that is new to this edge are handled from `since_ms` on.
pub fn setSchedules(
    book: *ScheduleBook,
    schedules: []const desired_state.Schedule,
    since_ms: u64,
) void {
    assert(schedules.len <= desired_state.schedules_max);
    book.round += 1;
    for (schedules) |*schedule| if (book.find(schedule.id)) |entry| {
        entry.round = book.round;
    };
    for (schedules) |*schedule| if (book.find(schedule.id) == null) {
        const entry = book.add(schedule.id);
        entry.missed_until_ms = since_ms;
    };
    assert(book.count <= book.entries.len);
}

pub fn markBegun(book: *ScheduleBook, key: RunKey) void {
    const entry = book.find(key.schedule_id) orelse book.add(key.schedule_id);
    entry.note(key.instant_ms);
    assert(entry.isBegun(key.instant_ms));
}

pub fn markMissed(book: *ScheduleBook, schedule_id: Uuid, instant_ms: u64) void {
    const entry = book.find(schedule_id) orelse book.add(schedule_id);
    entry.missed_until_ms = @max(entry.missed_until_ms, instant_ms);
    assert(entry.missed_until_ms >= instant_ms);
}

/// To be reported; false: the capacity is used up, and it stays unhandled.
pub fn miss(book: *ScheduleBook, key: RunKey, reason: Reason) bool {
    const is_known = for (book.missed.slice()) |*missed| {
        if (!missed.schedule_id.eql(key.schedule_id) or missed.reason != reason) continue;
        missed.from_ms = @min(missed.from_ms, key.instant_ms);
        missed.until_ms = @max(missed.until_ms, key.instant_ms);
        break true;
    } else false;
    if (!is_known) book.missed.append(.{
        .schedule_id = key.schedule_id,
        .from_ms = key.instant_ms,
        .until_ms = key.instant_ms,
        .reason = reason,
    }) catch return false;
    book.markMissed(key.schedule_id, key.instant_ms);
    assert(book.missed.count > 0);
    return true;
}

/// By the clock, these instants are yet to come.
pub fn forgetMissedAfter(book: *ScheduleBook, unix_ms: u64) void {
    for (book.entries[0..book.count]) |*entry|
        entry.missed_until_ms = @min(entry.missed_until_ms, unix_ms);
}

pub fn takeMissed(book: *ScheduleBook) ?MissedInstants {
    if (book.missed.count == 0) return null;
    return book.missed.swapRemove(0);
}

/// Iterates over the schedule's unhandled instants up to now, the earliest first.
pub fn pending(book: *ScheduleBook, schedule: *const desired_state.Schedule, unix_ms: u64) Pending {
    const entry = book.find(schedule.id) orelse
        return .{ .entry = null, .instants = &.{}, .unix_ms = 0 };
    const from = std.sort.lowerBound(u64, schedule.instants, entry.floor_ms, order);
    return .{ .entry = entry, .instants = schedule.instants[from..], .unix_ms = unix_ms };
}

fn order(wanted: u64, instant: u64) std.math.Order {
    return std.math.order(wanted, instant);
}

pub const Pending = struct {
    entry: ?*const Entry,
    instants: []const u64,
    unix_ms: u64,

    pub fn next(iterator: *Pending) ?u64 {
        while (iterator.instants.len > 0) {
            const instant_ms = iterator.instants[0];
            if (instant_ms > iterator.unix_ms) return null;
            iterator.instants = iterator.instants[1..];
            assert(iterator.entry != null);
            const entry = iterator.entry.?;
            if (entry.isBegun(instant_ms) or instant_ms <= entry.missed_until_ms) continue;
            return instant_ms;
        }
        return null;
    }
};

pub fn writeAll(book: *const ScheduleBook, journal: schedule_run.Journal) void {
    for (book.entries[0..book.count]) |*entry| {
        if (entry.missed_until_ms > 0) journal.write(journal.context, .{
            .missed = .{ .schedule_id = entry.id, .instant_ms = entry.missed_until_ms },
        });
        for (entry.begun.constSlice()) |instant_ms| journal.write(journal.context, .{
            .ended = .{ .schedule_id = entry.id, .instant_ms = instant_ms },
        });
    }
}

fn find(book: *ScheduleBook, id: Uuid) ?*Entry {
    for (book.entries[0..book.count]) |*entry| if (entry.id.eql(id)) return entry;
    return null;
}

fn add(book: *ScheduleBook, id: Uuid) *Entry {
    assert(book.find(id) == null);
    const entry = if (book.count < book.entries.len) blk: {
        book.count += 1;
        break :blk &book.entries[book.count - 1];
    } else blk: {
        var oldest = &book.entries[0];
        for (book.entries) |*other| if (other.round < oldest.round) {
            oldest = other;
        };
        break :blk oldest;
    };
    entry.* = .{ .id = id, .round = book.round };
    assert(book.count > 0);
    assert(book.count <= book.entries.len);
    return entry;
}

test "an instant that began before all that are kept counts as begun" {
    const testing = std.testing;
    var entries: [2]Entry = undefined;
    var book: ScheduleBook = .{ .entries = &entries };
    const id: Uuid = .fromRandom(@splat(7));
    for (0..begun_max) |index|
        book.markBegun(.{ .schedule_id = id, .instant_ms = 1_000_000 + index });
    // As the journal of a run that is older than the last instants of its schedule says.
    book.markBegun(.{ .schedule_id = id, .instant_ms = 500_000 });
    const entry = book.find(id).?;
    try testing.expect(entry.isBegun(500_000));
    try testing.expect(!entry.isBegun(500_001));
    for (0..begun_max) |index| try testing.expect(entry.isBegun(1_000_000 + index));
    book.markBegun(.{ .schedule_id = id, .instant_ms = 2_000_000 });
    try testing.expect(entry.isBegun(1_000_000));
    try testing.expect(entry.isBegun(2_000_000));
    try testing.expect(!entry.isBegun(1_999_999));
}
