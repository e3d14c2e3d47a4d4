//! The body of the stream's REPORT and REPORT_ACK (packages/proto/STREAM.md): a running device's
//! report, and the order that waits for it. Part of `stream.zig`, which frames it and gives its
//! guarantees.

const std = @import("std");
const base = @import("base");
const times = @import("times.zig");
const assert = std.debug.assert;

const Cursor = base.Cursor;

const header_size = 16;
pub const report_size_min = 60;
pub const report_size_max = 1200;
pub const report_ack_size = 36;
pub const steps_max = 24;
const step_name_size_max = 32;
const step_size_fixed = 18;
/// Space of a REPORT for steps, in bytes: fewer than `steps_max` fit if all have the longest names.
pub const steps_size_max = report_size_max - report_size_min;

/// Where a step belongs; `unit` is one of the slowest of the init system's units.
pub const StepGroup = enum(u8) { firmware = 0, kernel = 1, initramfs = 2, system = 3, unit = 4 };

pub const Step = struct {
    group: StepGroup,
    /// 1 to 32 bytes of printable ASCII.
    name: []const u8,
    /// Microseconds since the kernel's start; negative for firmware.
    start_us: i64,
    duration_us: u64,
};

/// Steps in the form of the packet, already checked.
pub const Steps = struct {
    bytes: []const u8 = &.{},
    count: u8 = 0,

    pub fn iterate(steps: Steps) Iterator {
        return .{ .cursor = .init(steps.bytes) };
    }

    pub const Iterator = struct {
        cursor: Cursor,

        pub fn next(iterator: *Iterator) ?Step {
            if (iterator.cursor.remaining() == 0) return null;
            // Checked by parseSteps or written by StepList.
            return parseStep(&iterator.cursor) catch unreachable;
        }
    };

    /// Returns the first steps that fit `size` bytes.
    pub fn firstWithin(steps: Steps, size: usize) Steps {
        var iterator = steps.iterate();
        var first: Steps = .{};
        while (iterator.next() != null) {
            const end = steps.bytes.len - iterator.cursor.remaining();
            if (end > size) break;
            first = .{ .bytes = steps.bytes[0..end], .count = first.count + 1 };
        }
        return first;
    }

    pub fn eql(a: Steps, b: Steps) bool {
        return std.mem.eql(u8, a.bytes, b.bytes);
    }
};

/// Collects the steps of a REPORT, and keeps them.
pub const StepList = struct {
    buffer: [steps_size_max]u8 = undefined,
    size: u16 = 0,
    count: u8 = 0,

    pub const empty: StepList = .{};

    /// A name that is empty, too long or not printable is corrected: truncated, with `?` for other
    /// bytes. `Full`: it contains `steps_max`, or does not fit a REPORT any more.
    pub fn append(list: *StepList, step: Step) error{Full}!void {
        const name_size = std.math.clamp(step.name.len, 1, step_name_size_max);
        if (list.count == steps_max) return error.Full;
        if (step_size_fixed + name_size > steps_size_max - list.size) return error.Full;
        const raw = list.buffer[list.size..][0 .. step_size_fixed + name_size];
        raw[0] = @backingInt(step.group);
        raw[1] = @intCast(name_size);
        std.mem.writeInt(i64, raw[2..10], step.start_us, .big);
        std.mem.writeInt(u64, raw[10..18], step.duration_us, .big);
        raw[step_size_fixed] = '?';
        for (0..@min(name_size, step.name.len)) |index| {
            const byte = step.name[index];
            raw[step_size_fixed + index] = if (std.ascii.isPrint(byte)) byte else '?';
        }
        list.size += @intCast(raw.len);
        list.count += 1;
    }

    pub fn set(list: *StepList, steps: Steps) void {
        assert(steps.bytes.len <= steps_size_max);
        @memcpy(list.buffer[0..steps.bytes.len], steps.bytes);
        list.size = @intCast(steps.bytes.len);
        list.count = steps.count;
    }

    /// Parses steps that were stored as the bytes of `Steps`.
    pub fn fromBytes(bytes: []const u8) error{Malformed}!StepList {
        var list: StepList = .empty;
        var cursor: Cursor = .init(bytes);
        while (cursor.remaining() > 0) {
            const step = parseStep(&cursor) catch return error.Malformed;
            list.append(step) catch return error.Malformed;
        }
        return list;
    }

    pub fn view(list: *const StepList) Steps {
        return .{ .bytes = list.buffer[0..list.size], .count = list.count };
    }
};

pub const Report = struct {
    /// Microseconds since the kernel's start, when this packet was sent.
    uptime_us: u64,
    /// The last confirmed order, or zeros.
    order_id: [16]u8 = @splat(0),
    /// Bytes; `used` is at most `size`, both are 0 where there is no write cache.
    write_cache_used: u64 = 0,
    write_cache_size: u64 = 0,
    steps: Steps = .{},
    /// Of the boot or of its phases, until it was over; left out if they do not fit.
    read_times: times.ReadTimes = .{},
};

pub const Order = enum(u8) { none = 0, power_off = 1, restart = 2 };

pub const ReportAck = struct {
    order: Order = .none,
    /// Zeros with `none`, and with nothing else.
    order_id: [16]u8 = @splat(0),
};

pub const Error = error{ WrongSize, ReservedNotZero, BadValue };

/// The body of a REPORT; `bytes` is the whole packet.
pub fn parseReport(bytes: []const u8) Error!Report {
    if (bytes.len < report_size_min or bytes.len > report_size_max) return error.WrongSize;
    var cursor: Cursor = .init(bytes[header_size..]);
    var report: Report = .{
        .uptime_us = cursor.int(u64) catch unreachable,
        .order_id = (cursor.array(16) catch unreachable).*,
        .write_cache_used = cursor.int(u64) catch unreachable,
        .write_cache_size = cursor.int(u64) catch unreachable,
        .steps = .{ .count = cursor.int(u8) catch unreachable },
        .read_times = .{ .count = cursor.int(u8) catch unreachable },
    };
    if (cursor.int(u16) catch unreachable != 0) return error.ReservedNotZero;
    if (report.steps.count > steps_max) return error.BadValue;
    if (report.write_cache_used > report.write_cache_size) return error.BadValue;
    for (0..report.steps.count) |_| _ = try parseStep(&cursor);
    const steps_end = bytes.len - cursor.remaining();
    try times.parse(&cursor, report.read_times.count);
    if (cursor.remaining() > 0) return error.WrongSize;
    report.steps.bytes = bytes[report_size_min..steps_end];
    report.read_times.bytes = bytes[steps_end..];
    return report;
}

fn parseStep(cursor: *Cursor) Error!Step {
    const group = cursor.int(u8) catch return error.WrongSize;
    const name_size = cursor.int(u8) catch return error.WrongSize;
    const start_us = cursor.int(i64) catch return error.WrongSize;
    const duration_us = cursor.int(u64) catch return error.WrongSize;
    if (name_size == 0 or name_size > step_name_size_max) return error.BadValue;
    const name = cursor.bytes(name_size) catch return error.WrongSize;
    for (name) |byte| if (!std.ascii.isPrint(byte)) return error.BadValue;
    return .{
        .group = std.enums.fromInt(StepGroup, group) orelse return error.BadValue,
        .name = name,
        .start_us = start_us,
        .duration_us = duration_us,
    };
}

/// Writes the packet's body behind its header; returns the whole packet.
pub fn emitReport(report: Report, out: []u8) []u8 {
    assert(report.write_cache_used <= report.write_cache_size);
    assert(report.steps.count <= steps_max);
    const size = report_size_min + report.steps.bytes.len + report.read_times.bytes.len;
    assert(size <= report_size_max);
    var writer: base.ByteWriter = .init(out[header_size..size]);
    writer.int(u64, report.uptime_us) catch unreachable;
    writer.bytes(&report.order_id) catch unreachable;
    writer.int(u64, report.write_cache_used) catch unreachable;
    writer.int(u64, report.write_cache_size) catch unreachable;
    writer.int(u8, report.steps.count) catch unreachable;
    writer.int(u8, report.read_times.count) catch unreachable;
    writer.int(u16, 0) catch unreachable;
    writer.bytes(report.steps.bytes) catch unreachable;
    writer.bytes(report.read_times.bytes) catch unreachable;
    return out[0..size];
}

pub fn parseReportAck(bytes: []const u8) Error!ReportAck {
    if (bytes.len != report_ack_size) return error.WrongSize;
    const order = std.enums.fromInt(Order, bytes[16]) orelse return error.BadValue;
    if (!std.mem.allEqual(u8, bytes[17..20], 0)) return error.ReservedNotZero;
    const order_id = bytes[20..36].*;
    const has_id = !std.mem.allEqual(u8, &order_id, 0);
    if (order == .none and has_id) return error.ReservedNotZero;
    if (order != .none and !has_id) return error.BadValue;
    return .{ .order = order, .order_id = order_id };
}

pub fn emitReportAck(ack: ReportAck, out: []u8) []u8 {
    assert((ack.order == .none) == std.mem.allEqual(u8, &ack.order_id, 0));
    out[16] = @backingInt(ack.order);
    @memset(out[17..20], 0);
    out[20..36].* = ack.order_id;
    return out[0..report_ack_size];
}

const testing = std.testing;

test "a list takes 24 steps or as many as fit a report, and makes every name fit to be sent" {
    var short: StepList = .empty;
    for (0..steps_max) |_|
        try short.append(.{ .group = .unit, .name = "a", .start_us = -1, .duration_us = 2 });
    try testing.expectError(error.Full, short.append(
        .{ .group = .unit, .name = "a", .start_us = 0, .duration_us = 0 },
    ));
    var long: StepList = .empty;
    const name: [80]u8 = @splat('x');
    while (true) long.append(
        .{ .group = .system, .name = &name, .start_us = 0, .duration_us = 0 },
    ) catch break;
    try testing.expectEqual(22, long.count);
    var odd: StepList = .empty;
    try odd.append(.{ .group = .kernel, .name = "", .start_us = 0, .duration_us = 0 });
    try odd.append(.{ .group = .kernel, .name = "a\x1b\xff", .start_us = 0, .duration_us = 0 });
    var steps = odd.view().iterate();
    try testing.expectEqualStrings("?", steps.next().?.name);
    try testing.expectEqualStrings("a??", steps.next().?.name);
    try testing.expectEqual(null, steps.next());
}
