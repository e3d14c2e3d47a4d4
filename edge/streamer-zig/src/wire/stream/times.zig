//! The read times of a REPORT (packages/proto/STREAM.md, "Where time went"): histograms, each from
//! its first used bucket to the last one, so that the encoding is unique. Part of `stream.zig`,
//! which gives its guarantees.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

const Cursor = base.Cursor;
const Histogram = base.DurationHistogram;

/// The measured interval; each occurs in a phase at most once, in this order.
pub const Kind = enum(u8) { fetch = 0, wait = 1, turnaround = 2 };

/// The part of the boot. A REPORT has either those of the whole boot or those of its phases, in
/// this order.
pub const Phase = enum(u8) {
    /// All of the boot so far.
    whole = 0,
    /// Until the initramfs switched to the system.
    initramfs = 1,
    /// From there until READY.
    system = 2,
};

const kinds = @typeInfo(Kind).@"enum".field_names.len;
const phases = @typeInfo(Phase).@"enum".field_names.len - 1;
const size_fixed = 16;
const size_each_max = size_fixed + 4 * Histogram.buckets;
/// A REPORT contains at most this many.
pub const count_max = phases * kinds;
pub const size_max = count_max * size_each_max;

pub const Error = error{ WrongSize, BadValue };

/// In the form of the packet, already checked.
pub const ReadTimes = struct {
    bytes: []const u8 = &.{},
    count: u8 = 0,

    pub fn iterate(times: ReadTimes) Iterator {
        return .{ .cursor = .init(times.bytes) };
    }

    pub const Iterator = struct {
        cursor: Cursor,

        pub fn next(iterator: *Iterator) ?Entry {
            if (iterator.cursor.remaining() == 0) return null;
            // Checked by `parse` or written by ReadTimeList.
            return parseEntry(&iterator.cursor) catch unreachable;
        }
    };
};

pub const Entry = struct { phase: Phase, kind: Kind, histogram: Histogram };

/// Collects the read times of a REPORT.
pub const ReadTimeList = struct {
    buffer: [size_max]u8 = undefined,
    size: u16 = 0,
    count: u8 = 0,

    pub const empty: ReadTimeList = .{};

    /// In the order of `Phase` and then of `Kind`, each once; an empty one is left out.
    pub fn append(list: *ReadTimeList, phase: Phase, kind: Kind, histogram: *const Histogram) void {
        const used = histogram.used() orelse return;
        const raw = list.buffer[list.size..][0 .. size_fixed + 4 * used.counts.len];
        raw[0..4].* =
            .{ @backingInt(kind), used.first, @intCast(used.counts.len), @backingInt(phase) };
        std.mem.writeInt(u32, raw[4..8], histogram.max_us, .big);
        std.mem.writeInt(u64, raw[8..16], histogram.sum_us, .big);
        for (used.counts, 0..) |count, index|
            std.mem.writeInt(u32, raw[size_fixed + 4 * index ..][0..4], count, .big);
        list.size += @intCast(raw.len);
        list.count += 1;
    }

    pub fn set(list: *ReadTimeList, times: ReadTimes) void {
        assert(times.bytes.len <= size_max);
        @memcpy(list.buffer[0..times.bytes.len], times.bytes);
        list.size = @intCast(times.bytes.len);
        list.count = times.count;
    }

    pub fn view(list: *const ReadTimeList) ReadTimes {
        return .{ .bytes = list.buffer[0..list.size], .count = list.count };
    }
};

/// Checks `count` of them and leaves the cursor behind them.
pub fn parse(cursor: *Cursor, count: u8) Error!void {
    if (count > count_max) return error.BadValue;
    var before: ?Entry = null;
    for (0..count) |_| {
        const entry = try parseEntry(cursor);
        if (before) |*last| if (!mayFollow(last, &entry)) return error.BadValue;
        before = entry;
    }
}

fn mayFollow(before: *const Entry, entry: *const Entry) bool {
    if (entry.phase == before.phase) return @backingInt(entry.kind) > @backingInt(before.kind);
    return before.phase != .whole and @backingInt(entry.phase) > @backingInt(before.phase);
}

fn parseEntry(cursor: *Cursor) Error!Entry {
    const head = cursor.array(size_fixed) catch return error.WrongSize;
    const kind = std.enums.fromInt(Kind, head[0]) orelse return error.BadValue;
    const first, const count = .{ head[1], head[2] };
    const phase = std.enums.fromInt(Phase, head[3]) orelse return error.BadValue;
    if (count == 0 or first >= Histogram.buckets or count > Histogram.buckets - first)
        return error.BadValue;
    var histogram: Histogram = .{
        .max_us = std.mem.readInt(u32, head[4..8], .big),
        .sum_us = std.mem.readInt(u64, head[8..16], .big),
    };
    for (histogram.counts[first..][0..count]) |*each|
        each.* = cursor.int(u32) catch return error.WrongSize;
    if (histogram.counts[first] == 0 or histogram.counts[first + count - 1] == 0)
        return error.BadValue;
    return .{ .phase = phase, .kind = kind, .histogram = histogram };
}
