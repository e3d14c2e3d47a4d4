//! What a device reports of itself during its boot (REPORT of packages/proto/STREAM.md), and when
//! that is worth a report of the edge (UPLINK.md, boot reports). Bounded: steps stay in the compact
//! form of the packet, at most 1140 bytes. A device may report nonsense; it changes nothing but its
//! own record.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const assert = std.debug.assert;

pub const Guest = @This();

/// When the kernel's clock started, in µs since the boot's start: the earliest value that its
/// reports imply, since delays only add to it.
kernel_start_us: i64,
steps: stream.StepList = .empty,
/// How often the device has reported different steps.
steps_changes: u8 = 0,
write_cache: ?WriteCache = null,
/// Where the device's writes are kept, and whether it can still write.
cache_status: CacheStatus = .{},
/// Start of the window over which the fill rate is measured, and the point that will replace it.
fill_from: ?WriteCache = null,
fill_next: ?WriteCache = null,
/// `write_cache.used` and `size` in the edge's last report, and when that was.
reported: ?WriteCache = null,
/// The latest order that the device confirmed.
order_id: ?base.Uuid = null,
/// Time of the latest report, µs since the boot's start.
heard_us: u64 = 0,
/// No report for `silence_us`: switched off, or disconnected.
is_silent: bool = false,

/// Further changes of a device's steps are ignored.
const steps_changes_max = 8;
/// The clocks of device and edge drift apart: later reports say less about when the kernel started.
const kernel_start_uptime_us_max = 10 * std.time.us_per_min;
/// A fill level that jumps is reported again after this interval at the earliest.
const write_cache_interval_us_min = std.time.us_per_s;
/// A device reports every 5 s (target/guest_report.zig): up to this long, packet loss is assumed.
pub const silence_us = 60 * std.time.us_per_s;
/// A write cache has moved when it changed by this part of its size, or crossed one of the marks.
const moved_percent = 5;
const marks_percent = [_]u8{ 80, 95, 100 };
/// The fill rate is measured over this window, or up to twice as long.
const fill_window_us = 150 * std.time.us_per_s;
const fill_time_us_min = 10 * std.time.us_per_s;

pub const CacheState = enum {
    ok,
    /// Full; the device continues and can no longer write.
    read_only,
    /// Full; the device's disk is stopped.
    stopped,
    /// The written blocks are lost; the device's disk is stopped.
    lost,
};

/// Where a device's writes are kept; the names are those of the desired state.
pub const CacheClass = enum {
    device_ram,
    /// Memory first, then the edge.
    device_ram_overflow,
    /// Memory first, then the device's local disk.
    device_ram_local_disk,
    edge,
    edge_persistent,
    /// A private image of the device, above the version that it booted first.
    private,

    /// The class as the device sees it: it does not distinguish the persistent ones.
    pub fn onWire(class: CacheClass) stream.WriteCacheClass {
        return switch (class) {
            // The part outside memory does not concern the stream.
            .device_ram, .device_ram_local_disk => .device_ram,
            .device_ram_overflow => .device_ram_overflow,
            .edge => .edge,
            .edge_persistent, .private => .edge_persistent,
        };
    }

    /// Tells whether the writes outlive the boot.
    pub fn isKept(class: CacheClass) bool {
        return class == .edge_persistent or class == .private;
    }

    pub fn isAtTheEdge(class: CacheClass) bool {
        return switch (class) {
            .device_ram, .device_ram_local_disk => false,
            .device_ram_overflow, .edge, .edge_persistent, .private => true,
        };
    }
};

pub const CacheStatus = struct { class: CacheClass = .device_ram, state: CacheState = .ok };

pub const ReportTrigger = enum { nothing, something, steps };

pub const WriteCache = struct {
    /// Bytes, at most `size`.
    used: u64,
    /// Bytes, not 0.
    size: u64,
    /// µs since the boot's start.
    at_us: u64,

    fn percent(cache: WriteCache) u64 {
        return @intCast(@as(u128, cache.used) * 100 / cache.size);
    }
};

/// Takes a REPORT that arrived `at_us` µs after the boot's start; `guest` is null before the first.
/// Returns whether the control plane should learn of it.
pub fn onReport(guest: *?Guest, at_us: u64, report: stream.Report) ReportTrigger {
    const is_first = guest.* == null;
    const kernel_start_us = kernelStart(at_us, report.uptime_us);
    if (is_first) guest.* = .{ .kernel_start_us = kernel_start_us };
    const known = &guest.*.?;
    if (report.uptime_us <= kernel_start_uptime_us_max)
        known.kernel_start_us = @min(known.kernel_start_us, kernel_start_us);
    known.heard_us = at_us;
    const is_back = known.is_silent;
    known.is_silent = false;
    const has_steps = known.takeSteps(report.steps);
    const has_order = known.takeOrder(report.order_id);
    if (report.write_cache_size > 0) {
        known.write_cache =
            .{ .used = report.write_cache_used, .size = report.write_cache_size, .at_us = at_us };
        known.onFill();
    }
    assert(!known.is_silent);
    const is_due = is_first or is_back or has_steps or has_order or known.hasMoved();
    if (is_due) known.reported = known.write_cache;
    return if (has_steps) .steps else if (is_due) .something else .nothing;
}

/// Returns true when the device has just become silent, `at_us` µs after the boot's start.
pub fn checkSilence(guest: *Guest, at_us: u64) bool {
    if (guest.is_silent or at_us -| guest.heard_us < silence_us) return false;
    guest.is_silent = true;
    return true;
}

fn kernelStart(at_us: u64, uptime_us: u64) i64 {
    const at = std.math.lossyCast(i64, at_us);
    return at -| std.math.lossyCast(i64, uptime_us);
}

fn takeSteps(guest: *Guest, steps: stream.Steps) bool {
    if (steps.count == 0 or steps.eql(guest.steps.view())) return false;
    if (guest.steps_changes == steps_changes_max) return false;
    guest.steps_changes += 1;
    assert(steps.count > 0);
    guest.steps.set(steps);
    return true;
}

fn takeOrder(guest: *Guest, id: [16]u8) bool {
    if (std.mem.allEqual(u8, &id, 0)) return false;
    const confirmed: base.Uuid = .fromBytes(id);
    if (guest.order_id) |known| if (known.eql(confirmed)) return false;
    guest.order_id = confirmed;
    return true;
}

/// Returns true if the status changed.
pub fn setCacheStatus(guest: *Guest, status: CacheStatus) bool {
    if (std.meta.eql(guest.cache_status, status)) return false;
    guest.cache_status = status;
    return true;
}

fn onFill(guest: *Guest) void {
    assert(guest.write_cache.?.size > 0);
    const now = guest.write_cache.?;
    const next = guest.fill_next orelse now;
    if (guest.fill_from == null) guest.fill_from = now;
    guest.fill_next = next;
    if (now.at_us -| next.at_us < fill_window_us) return;
    guest.fill_from = next;
    guest.fill_next = now;
}

/// Time until the write cache is full at the fill rate of the last minutes; null if it does not
/// fill or the rate is unknown.
pub fn secondsUntilFull(guest: *const Guest) ?u64 {
    const now, const from =
        .{ guest.write_cache orelse return null, guest.fill_from orelse return null };
    if (now.used == now.size) return 0;
    const time_us, const grown = .{ now.at_us -| from.at_us, now.used -| from.used };
    if (time_us < fill_time_us_min or grown == 0 or now.size != from.size) return null;
    const left: u128 = now.size - now.used;
    return @intCast(@min(left * time_us / grown / std.time.us_per_s, std.math.maxInt(u32)));
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

/// The form in the journal: steps are one string, as in the packet.
const JournalForm = struct {
    kernel_start_us: i64,
    steps: []const u8,
    steps_changes: u8,
    write_cache: ?WriteCache = null,
    reported: ?WriteCache = null,
    order_id: ?base.Uuid = null,
    held: CacheStatus = .{},
    /// For a silent device: since when, so that a restarted edge knows.
    silent_since_us: ?u64 = null,
};

const encoder = std.base64.standard.Encoder;
const decoder = std.base64.standard.Decoder;
const steps_text_size_max = encoder.calcSize(@sizeOf(@FieldType(stream.StepList, "buffer")));

pub fn jsonStringify(guest: *const Guest, json: anytype) !void {
    var text: [steps_text_size_max]u8 = undefined;
    try json.write(JournalForm{
        .kernel_start_us = guest.kernel_start_us,
        .steps = encoder.encode(&text, guest.steps.view().bytes),
        .steps_changes = guest.steps_changes,
        .write_cache = guest.write_cache,
        .reported = guest.reported,
        .order_id = guest.order_id,
        .held = guest.cache_status,
        .silent_since_us = if (guest.is_silent) guest.heard_us else null,
    });
}

pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !Guest {
    const stored = try std.json.innerParse(JournalForm, allocator, source, options);
    var guest: Guest = .{
        .kernel_start_us = stored.kernel_start_us,
        .steps_changes = stored.steps_changes,
        .write_cache = stored.write_cache,
        .reported = stored.reported,
        .order_id = stored.order_id,
        .cache_status = stored.held,
        .heard_us = stored.silent_since_us orelse 0,
        .is_silent = stored.silent_since_us != null,
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
    return .{
        .uptime_us = 1_000_000,
        .write_cache_used = used,
        .write_cache_size = 1000,
        .steps = steps,
    };
}

test "a device that stops reporting becomes silent once, until it reports again" {
    const second = std.time.us_per_s;
    var guest: ?Guest = null;
    _ = onReport(&guest, 5 * second, .{ .uptime_us = second });
    try testing.expect(!guest.?.checkSilence(64 * second));
    try testing.expect(guest.?.checkSilence(65 * second));
    try testing.expect(!guest.?.checkSilence(66 * second));
    try testing.expectEqual(5 * second, guest.?.heard_us);
    try testing.expectEqual(.something, onReport(&guest, 70 * second, .{
        .uptime_us = 66 * second,
    }));
    try testing.expectEqual(.nothing, onReport(&guest, 75 * second, .{ .uptime_us = 71 * second }));
    try testing.expect(!guest.?.checkSilence(134 * second));
}

test "a report counts if it is the first, has new steps or an order, or the cache moved" {
    var list: stream.StepList = .empty;
    try list.append(.{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = 5 });
    var guest: ?Guest = null;
    const second = std.time.us_per_s;
    try testing.expectEqual(.something, onReport(&guest, 10 * second, reportOf(0, .{})));
    try testing.expectEqual(9 * second, guest.?.kernel_start_us);
    try testing.expectEqual(.nothing, onReport(&guest, 20 * second, reportOf(49, .{})));
    try testing.expectEqual(.steps, onReport(&guest, 20 * second, reportOf(49, list.view())));
    try testing.expectEqual(.nothing, onReport(&guest, 22 * second, reportOf(98, list.view())));
    try testing.expectEqual(.something, onReport(&guest, 23 * second, reportOf(99, .{})));
    try testing.expectEqual(1, guest.?.steps.view().count);
    try testing.expectEqual(.something, onReport(&guest, 30 * second, reportOf(799, .{})));
    try testing.expectEqual(.something, onReport(&guest, 40 * second, reportOf(800, .{})));
    try testing.expectEqual(.nothing, onReport(&guest, 50 * second, reportOf(801, .{})));
    try testing.expectEqual(.something, onReport(&guest, 60 * second, reportOf(950, .{})));
    try testing.expectEqual(.nothing, onReport(&guest, 70 * second, reportOf(999, .{})));
    try testing.expectEqual(.something, onReport(&guest, 80 * second, reportOf(1000, .{})));
    var with_order = reportOf(1000, .{});
    with_order.order_id = @splat(7);
    try testing.expectEqual(.something, onReport(&guest, 81 * second, with_order));
    try testing.expectEqual(.nothing, onReport(&guest, 82 * second, with_order));
    try testing.expectEqual(.nothing, onReport(&guest, 83 * second, reportOf(1000, .{})));
    try testing.expectEqual(7, guest.?.order_id.?.bytes[3]);
    try testing.expectEqual(9 * second, guest.?.kernel_start_us);
}

test "a jumping fill level and constantly changing steps do not fill the report log" {
    var guest: ?Guest = null;
    var reports: u32 = 0;
    for (0..1000) |index| {
        var list: stream.StepList = .empty;
        try list.append(
            .{ .group = .unit, .name = "x", .start_us = @intCast(index), .duration_us = 0 },
        );
        const report = reportOf(if (index % 2 == 0) 0 else 1000, list.view());
        reports += @intFromBool(onReport(&guest, index * 10_000, report) != .nothing);
    }
    try testing.expect(reports <= 10 + steps_changes_max);
}

test "the time until a write cache is full follows the last minutes, even after another fill rate" {
    const second = std.time.us_per_s;
    var guest: ?Guest = null;
    _ = onReport(&guest, 0, reportOf(0, .{}));
    try testing.expectEqual(null, guest.?.secondsUntilFull());
    // Fast at first: 300 in 300 s, then 1 in 10 s.
    for (1..61) |index| _ = onReport(&guest, index * 5 * second, reportOf(index * 5, .{}));
    try testing.expectEqual(700, guest.?.secondsUntilFull().?);
    for (1..61) |index|
        _ = onReport(&guest, (300 + index * 10) * second, reportOf(300 + index, .{}));
    try testing.expectEqual(6400, guest.?.secondsUntilFull().?);
    _ = onReport(&guest, 1000 * second, reportOf(1000, .{}));
    try testing.expectEqual(0, guest.?.secondsUntilFull().?);
    _ = onReport(&guest, 1010 * second, reportOf(10, .{}));
    try testing.expectEqual(null, guest.?.secondsUntilFull());
    try testing.expect(guest.?.setCacheStatus(.{ .class = .edge, .state = .stopped }));
    try testing.expect(!guest.?.setCacheStatus(.{ .class = .edge, .state = .stopped }));
}

test "the earliest start of the kernel counts while clocks agree, and nonsense stays a number" {
    var guest: ?Guest = null;
    const minute = std.time.us_per_min;
    _ = onReport(&guest, 5000, .{ .uptime_us = 1000 });
    _ = onReport(&guest, 5500, .{ .uptime_us = 2000 });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    _ = onReport(&guest, 7000, .{ .uptime_us = 2500 });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    _ = onReport(&guest, 12 * minute, .{ .uptime_us = 12 * minute });
    try testing.expectEqual(3500, guest.?.kernel_start_us);
    var odd: ?Guest = null;
    _ = onReport(&odd, std.math.maxInt(u64), .{ .uptime_us = std.math.maxInt(u64) });
    try testing.expectEqual(0, odd.?.kernel_start_us);
}

test "a guest survives the journal unchanged" {
    var list: stream.StepList = .empty;
    try list.append(
        .{ .group = .firmware, .name = "POST", .start_us = -8_000_000, .duration_us = 6 },
    );
    try list.append(.{ .group = .system, .name = "userspace", .start_us = 1, .duration_us = 2 });
    var guest: ?Guest = null;
    var report = reportOf(999, list.view());
    report.order_id = @splat(3);
    _ = onReport(&guest, 77, report);
    var buffer: [2048]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try std.json.Stringify.value(guest.?, .{ .emit_null_optional_fields = false }, &writer);
    const parsed = try std.json.parseFromSlice(Guest, testing.allocator, writer.buffered(), .{});
    defer parsed.deinit();
    try testing.expect(parsed.value.steps.view().eql(list.view()));
    try testing.expectEqual(2, parsed.value.steps.count);
    try testing.expectEqualDeep(guest.?.write_cache, parsed.value.write_cache);
    try testing.expectEqualDeep(guest.?.order_id, parsed.value.order_id);
    for ([_][]const u8{
        "AAAA",
        "not base64",
        "",
    }, [_]bool{ false, false, true }) |steps, is_whole| {
        const text = try std.mem.print(
            &buffer,
            "{{\"kernel_start_us\":0,\"steps\":\"{s}\",\"steps_changes\":0}}",
            .{steps},
        );
        const result = std.json.parseFromSlice(Guest, testing.allocator, text, .{});
        if (result) |value| value.deinit() else |_| {}
        try testing.expectEqual(is_whole, if (result) |_| true else |_| false);
    }
}

test "a class of write cache is kept or not, at the edge or not, and one of four to the device" {
    const Case = struct { CacheClass, bool, bool, stream.WriteCacheClass };
    for ([_]Case{
        .{ .device_ram, false, false, .device_ram },
        .{ .device_ram_overflow, false, true, .device_ram_overflow },
        .{ .device_ram_local_disk, false, false, .device_ram },
        .{ .edge, false, true, .edge },
        .{ .edge_persistent, true, true, .edge_persistent },
        .{ .private, true, true, .edge_persistent },
    }) |case| {
        try testing.expectEqual(case[1], case[0].isKept());
        try testing.expectEqual(case[2], case[0].isAtTheEdge());
        try testing.expectEqual(case[3], case[0].onWire());
    }
}

test "the kernel's start counts up to ten minutes of uptime" {
    for ([_]u64{ 10, 11 }, [_]i64{ 1000, 5000 }) |minutes, start_us| {
        var guest: ?Guest = null;
        _ = onReport(&guest, 5000, .{ .uptime_us = 0 });
        const more_us: u64 = if (minutes > 10) 1 else 0;
        const uptime_us = kernel_start_uptime_us_max + more_us;
        _ = onReport(&guest, uptime_us + 1000, .{ .uptime_us = uptime_us });
        try testing.expectEqual(start_us, guest.?.kernel_start_us);
    }
}

test "a device's steps count eight times, and then no more" {
    var guest: ?Guest = null;
    _ = onReport(&guest, 0, .{ .uptime_us = 1 });
    for (1..10) |round| {
        var list: stream.StepList = .empty;
        try list.append(
            .{ .group = .unit, .name = "x", .start_us = @intCast(round), .duration_us = 0 },
        );
        const trigger = onReport(&guest, 0, .{ .uptime_us = 1, .steps = list.view() });
        try testing.expectEqual(if (round <= 8) ReportTrigger.steps else .nothing, trigger);
    }
}

test "a write cache that appears or changes its size is reported, a second after the last report" {
    const second = std.time.us_per_s;
    var guest: ?Guest = null;
    _ = onReport(&guest, 0, .{ .uptime_us = 1 });
    const Step = struct { at_us: u64, used: u64, size: u64, trigger: ReportTrigger };
    for ([_]Step{
        // One byte is a cache, too.
        .{ .at_us = 1, .used = 0, .size = 1, .trigger = .something },
        .{ .at_us = second, .used = 0, .size = 10_000, .trigger = .nothing },
        .{ .at_us = second + 1, .used = 0, .size = 10_000, .trigger = .something },
        .{ .at_us = 9 * second, .used = 499, .size = 10_000, .trigger = .nothing },
        .{ .at_us = 9 * second, .used = 500, .size = 10_000, .trigger = .something },
    }) |step| try testing.expectEqual(step.trigger, onReport(&guest, step.at_us, .{
        .uptime_us = 1,
        .write_cache_used = step.used,
        .write_cache_size = step.size,
    }));
}

test "the fill rate is known after ten seconds, and its window moves after 150" {
    const second = std.time.us_per_s;
    var guest: ?Guest = null;
    _ = onReport(&guest, 0, reportOf(0, .{}));
    _ = onReport(&guest, 10 * second - 1, reportOf(100, .{}));
    try testing.expectEqual(null, guest.?.secondsUntilFull());
    _ = onReport(&guest, 10 * second, reportOf(100, .{}));
    try testing.expectEqual(90, guest.?.secondsUntilFull().?);
    _ = onReport(&guest, 150 * second, reportOf(150, .{}));
    _ = onReport(&guest, 300 * second, reportOf(600, .{}));
    // 450 in 150 s, not 600 in 300 s.
    try testing.expectEqual(133, guest.?.secondsUntilFull().?);
}

fn reparsed(guest: *const Guest, buffer: []u8) !std.json.Parsed(Guest) {
    var writer: std.Io.Writer = .fixed(buffer);
    try std.json.Stringify.value(guest.*, .{ .emit_null_optional_fields = false }, &writer);
    return std.json.parseFromSlice(Guest, testing.allocator, writer.buffered(), .{
        .allocate = .alloc_always,
    });
}

test "the journal keeps since when a device is silent, and as many steps as there can be" {
    const second = std.time.us_per_s;
    var list: stream.StepList = .empty;
    while (true) {
        const left = list.buffer.len - list.size;
        // Names that fill the list to its last byte.
        const name: [32]u8 = @splat('x');
        const name_size = @min(left -| 18, name.len);
        list.append(.{
            .group = .unit,
            .name = name[0..name_size],
            .start_us = @intCast(list.count),
            .duration_us = 0,
        }) catch break;
    }
    try testing.expectEqual(list.buffer.len, list.size);
    var guest: ?Guest = null;
    _ = onReport(&guest, 5 * second, .{ .uptime_us = 1, .steps = list.view() });
    var buffer: [4096]u8 = undefined;
    const heard = try reparsed(&guest.?, &buffer);
    defer heard.deinit();
    try testing.expect(!heard.value.is_silent);
    try testing.expectEqual(0, heard.value.heard_us);
    try testing.expect(heard.value.steps.view().eql(list.view()));
    try testing.expect(guest.?.checkSilence(5 * second + silence_us));
    const silent = try reparsed(&guest.?, &buffer);
    defer silent.deinit();
    try testing.expect(silent.value.is_silent);
    try testing.expectEqual(5 * second, silent.value.heard_us);
    // A byte more is no list of steps.
    var text: [encoder.calcSize(list.buffer.len + 1)]u8 = undefined;
    var line: [4096]u8 = undefined;
    var bytes: [list.buffer.len + 1]u8 = @splat(0);
    @memcpy(bytes[0..list.size], &list.buffer);
    try testing.expectError(error.UnexpectedToken, std.json.parseFromSlice(
        Guest,
        testing.allocator,
        try std.mem.print(
            &line,
            "{{\"kernel_start_us\":0,\"steps\":\"{s}\",\"steps_changes\":0}}",
            .{encoder.encode(&text, &bytes)},
        ),
        .{},
    ));
}

test "the journal gives no write cache without size, or fuller than full" {
    var buffer: [256]u8 = undefined;
    const sizes = [_][2]u64{ .{ 0, 0 }, .{ 0, 1 }, .{ 1, 1 }, .{ 2, 1 } };
    for (sizes, [_]bool{ false, true, true, false }) |pair, is_sound| {
        const line = try std.mem.print(&buffer, "{{\"kernel_start_us\":0,\"steps\":\"\"," ++
            "\"steps_changes\":0,\"write_cache\":{{\"used\":{d},\"size\":{d},\"at_us\":0}}}}", .{
            pair[0], pair[1],
        });
        const result = std.json.parseFromSlice(Guest, testing.allocator, line, .{});
        if (result) |value| value.deinit() else |_| {}
        try testing.expectEqual(is_sound, if (result) |_| true else |_| false);
    }
}
