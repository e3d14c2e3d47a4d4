//! What a device says of itself in its boot (REPORT of packages/proto/STREAM.md), and when that is worth a report of the edge
//! (UPLINK.md, boot reports). Bounded: steps stay in the compact form of the packet, at most 1140 bytes. What a device
//! says may be nonsense and changes nothing but itself.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const assert = std.debug.assert;

pub const Guest = @This();

/// Where the kernel's clock began, in µs since the boot's begin: the earliest that its reports say, since only delays
/// add to it.
kernel_start_us: i64,
steps: stream.StepList = .empty,
/// How often the device has said other steps than before.
steps_changes: u8 = 0,
write_cache: ?WriteCache = null,
/// `write_cache.used` and `size` in the last report of the edge, and when that was.
reported: ?WriteCache = null,
/// The order taken last.
order_id: ?base.Uuid = null,

/// A device that goes on changing its steps is not listened to.
pub const steps_changes_max = 8;
/// The clocks of device and edge drift apart: later reports say less about when the kernel began.
pub const kernel_start_uptime_us_max = 10 * std.time.us_per_min;
/// A fill level that jumps is reported again after this at the earliest.
pub const write_cache_interval_us_min = std.time.us_per_s;
/// A write cache has moved when by this part of its size, or over one of the marks.
const moved_percent = 5;
const marks_percent = [_]u8{ 80, 95, 100 };

pub const News = enum { nothing, something, steps };

pub const WriteCache = struct {
    /// Bytes, at most `size`.
    used: u64,
    /// Bytes, not 0.
    size: u64,
    /// µs since the boot's begin.
    at_us: u64,

    fn percent(cache: WriteCache) u64 {
        return @intCast(@as(u128, cache.used) * 100 / cache.size);
    }
};

/// Takes a REPORT that came `at_us` µs after the boot's begin; `guest` is null before the first. The result says whether the
/// control plane should know.
pub fn take(guest: *?Guest, at_us: u64, report: stream.Report) News {
    const is_first = guest.* == null;
    const kernel_start_us = kernelStart(at_us, report.uptime_us);
    if (is_first) guest.* = .{ .kernel_start_us = kernel_start_us };
    const known = &guest.*.?;
    if (report.uptime_us <= kernel_start_uptime_us_max)
        known.kernel_start_us = @min(known.kernel_start_us, kernel_start_us);
    const has_steps = known.takeSteps(report.steps);
    const has_order = known.takeOrder(report.order_id);
    if (report.write_cache_size > 0) known.write_cache = .{
        .used = report.write_cache_used,
        .size = report.write_cache_size,
        .at_us = at_us,
    };
    const worth_it = is_first or has_steps or has_order or known.hasMoved();
    if (worth_it) known.reported = known.write_cache;
    return if (has_steps) .steps else if (worth_it) .something else .nothing;
}

fn kernelStart(at_us: u64, uptime_us: u64) i64 {
    const at = std.math.lossyCast(i64, at_us);
    return at -| std.math.lossyCast(i64, uptime_us);
}

fn takeSteps(guest: *Guest, steps: stream.Steps) bool {
    if (steps.count == 0 or steps.eql(guest.steps.view())) return false;
    if (guest.steps_changes == steps_changes_max) return false;
    guest.steps_changes += 1;
    guest.steps.set(steps);
    return true;
}

fn takeOrder(guest: *Guest, id: [16]u8) bool {
    if (std.mem.allEqual(u8, &id, 0)) return false;
    const said: base.Uuid = .fromBytes(id);
    if (guest.order_id) |known| if (known.eql(said)) return false;
    guest.order_id = said;
    return true;
}

fn hasMoved(guest: *const Guest) bool {
    const now = guest.write_cache orelse return false;
    const before = guest.reported orelse return true;
    assert(now.used <= now.size and before.used <= before.size);
    if (now.at_us -| before.at_us < write_cache_interval_us_min) return false;
    if (now.size != before.size) return true;
    const moved = @max(now.used, before.used) - @min(now.used, before.used);
    if (@as(u128, moved) * 100 >= @as(u128, now.size) * moved_percent) return true;
    for (marks_percent) |mark| {
        if ((now.percent() >= mark) != (before.percent() >= mark)) return true;
    }
    return false;
}

/// In the journal steps are one string, as they stand in the packet.
const Stored = struct {
    kernel_start_us: i64,
    steps: []const u8,
    steps_changes: u8,
    write_cache: ?WriteCache = null,
    reported: ?WriteCache = null,
    order_id: ?base.Uuid = null,
};

const encoder = std.base64.standard.Encoder;
const decoder = std.base64.standard.Decoder;
const steps_text_size_max = encoder.calcSize(@sizeOf(@FieldType(stream.StepList, "buffer")));

pub fn jsonStringify(guest: *const Guest, json: anytype) !void {
    var text: [steps_text_size_max]u8 = undefined;
    try json.write(Stored{
        .kernel_start_us = guest.kernel_start_us,
        .steps = encoder.encode(&text, guest.steps.view().bytes),
        .steps_changes = guest.steps_changes,
        .write_cache = guest.write_cache,
        .reported = guest.reported,
        .order_id = guest.order_id,
    });
}

pub fn jsonParse(allocator: std.mem.Allocator, source: anytype, options: std.json.ParseOptions) !Guest {
    const stored = try std.json.innerParse(Stored, allocator, source, options);
    var guest: Guest = .{
        .kernel_start_us = stored.kernel_start_us,
        .steps_changes = stored.steps_changes,
        .write_cache = stored.write_cache,
        .reported = stored.reported,
        .order_id = stored.order_id,
    };
    for ([_]?WriteCache{ guest.write_cache, guest.reported }) |place| if (place) |cache| {
        if (cache.size == 0 or cache.used > cache.size) return error.UnexpectedToken;
    };
    var bytes: [@sizeOf(@FieldType(stream.StepList, "buffer"))]u8 = undefined;
    const size = decoder.calcSizeForSlice(stored.steps) catch return error.UnexpectedToken;
    if (size > bytes.len) return error.UnexpectedToken;
    decoder.decode(bytes[0..size], stored.steps) catch return error.UnexpectedToken;
    guest.steps = stream.StepList.fromBytes(bytes[0..size]) catch return error.UnexpectedToken;
    return guest;
}

const testing = std.testing;

fn reportOf(used: u64, steps: stream.Steps) stream.Report {
    return .{ .uptime_us = 1_000_000, .write_cache_used = used, .write_cache_size = 1000, .steps = steps };
}

test "a report is worth one of the edge when it is the first, has new steps, an order, or the write cache moved" {
    var list: stream.StepList = .empty;
    try list.append(.{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = 5 });
    var guest: ?Guest = null;
    const second = std.time.us_per_s;
    try testing.expectEqual(.something, take(&guest, 10 * second, reportOf(0, .{})));
    try testing.expectEqual(9 * second, guest.?.kernel_start_us);
    try testing.expectEqual(.nothing, take(&guest, 20 * second, reportOf(49, .{})));
    try testing.expectEqual(.steps, take(&guest, 20 * second, reportOf(49, list.view())));
    try testing.expectEqual(.nothing, take(&guest, 22 * second, reportOf(98, list.view())));
    try testing.expectEqual(.something, take(&guest, 23 * second, reportOf(99, .{})));
    try testing.expectEqual(1, guest.?.steps.view().count);
    try testing.expectEqual(.something, take(&guest, 30 * second, reportOf(799, .{})));
    try testing.expectEqual(.something, take(&guest, 40 * second, reportOf(800, .{})));
    try testing.expectEqual(.nothing, take(&guest, 50 * second, reportOf(801, .{})));
    try testing.expectEqual(.something, take(&guest, 60 * second, reportOf(950, .{})));
    try testing.expectEqual(.nothing, take(&guest, 70 * second, reportOf(999, .{})));
    try testing.expectEqual(.something, take(&guest, 80 * second, reportOf(1000, .{})));
    var with_order = reportOf(1000, .{});
    with_order.order_id = @splat(7);
    try testing.expectEqual(.something, take(&guest, 81 * second, with_order));
    try testing.expectEqual(.nothing, take(&guest, 82 * second, with_order));
    try testing.expectEqual(.nothing, take(&guest, 83 * second, reportOf(1000, .{})));
    try testing.expectEqual(7, guest.?.order_id.?.bytes[3]);
    try testing.expectEqual(9 * second, guest.?.kernel_start_us);
}

test "a fill level that jumps and steps that go on changing do not fill the log of reports" {
    var guest: ?Guest = null;
    var reports: u32 = 0;
    for (0..1000) |index| {
        var list: stream.StepList = .empty;
        try list.append(.{ .group = .unit, .name = "x", .start_us = @intCast(index), .duration_us = 0 });
        const report = reportOf(if (index % 2 == 0) 0 else 1000, list.view());
        reports += @intFromBool(take(&guest, index * 10_000, report) != .nothing);
    }
    try testing.expect(reports <= 10 + steps_changes_max);
}

test "the earliest begin of the kernel counts while clocks agree, and nonsense stays a number" {
    var guest: ?Guest = null;
    const minute = std.time.us_per_min;
    _ = take(&guest, 5000, .{ .uptime_us = 1000 });
    _ = take(&guest, 5500, .{ .uptime_us = 2000 });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    _ = take(&guest, 7000, .{ .uptime_us = 2500 });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    _ = take(&guest, 12 * minute, .{ .uptime_us = 12 * minute });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    var odd: ?Guest = null;
    _ = take(&odd, std.math.maxInt(u64), .{ .uptime_us = std.math.maxInt(u64) });
    try testing.expectEqual(0, odd.?.kernel_start_us);
}

test "a guest is in the journal what it was" {
    var list: stream.StepList = .empty;
    try list.append(.{ .group = .firmware, .name = "POST", .start_us = -8_000_000, .duration_us = 6 });
    try list.append(.{ .group = .system, .name = "userspace", .start_us = 1, .duration_us = 2 });
    var guest: ?Guest = null;
    var report = reportOf(999, list.view());
    report.order_id = @splat(3);
    _ = take(&guest, 77, report);
    var buffer: [2048]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try std.json.Stringify.value(guest.?, .{ .emit_null_optional_fields = false }, &writer);
    const parsed = try std.json.parseFromSlice(Guest, testing.allocator, writer.buffered(), .{});
    defer parsed.deinit();
    try testing.expect(parsed.value.steps.view().eql(list.view()));
    try testing.expectEqual(2, parsed.value.steps.count);
    try testing.expectEqualDeep(guest.?.write_cache, parsed.value.write_cache);
    try testing.expectEqualDeep(guest.?.order_id, parsed.value.order_id);
    for ([_][]const u8{ "AAAA", "not base64", "" }, [_]bool{ false, false, true }) |steps, is_whole| {
        const text = try std.mem.print(&buffer, "{{\"kernel_start_us\":0,\"steps\":\"{s}\",\"steps_changes\":0}}", .{steps});
        const result = std.json.parseFromSlice(Guest, testing.allocator, text, .{});
        if (result) |value| value.deinit() else |_| {}
        try testing.expectEqual(is_whole, if (result) |_| true else |_| false);
    }
}
