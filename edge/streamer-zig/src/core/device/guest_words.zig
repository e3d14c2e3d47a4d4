//! The reports of a simulated device (REPORT of packages/proto/STREAM.md): when its system starts,
//! and once it is ready a few steps derived from its own boot, a write cache that fills at a
//! constant rate, and the orders that it confirmed.

const std = @import("std");
const stream = @import("wire").stream;
const Device = @import("device.zig");
const StreamClient = @import("../stream/client/client.zig");
const Read = @import("read_trace.zig").Read;
const assert = std.debug.assert;

pub const GuestWords = @This();

/// A confirmed order is executed after this even if the edge has not acknowledged the confirmation.
const order_wait_us_max = 2 * std.time.us_per_s;
/// Without an acknowledgement for this long, the edge is assumed not to support reports.
const first_word_us_max = 2 * std.time.us_per_s;

/// Zero before the first report.
begun_at_us: u64 = 0,
kernel_start_us: u64 = 0,
due_at_us: ?u64 = null,
/// Fill level in the last report, and in the last acknowledged one.
used_said: u64 = 0,
used_known: ?u64 = null,
has_said: bool = false,
order: ?StreamClient.Order = null,
/// When the order is executed.
order_due_at_us: ?u64 = null,

pub const Profile = struct {
    interval_us: u64 = 5 * std.time.us_per_s,
    /// Bytes.
    write_cache_size: u64 = 512 << 20,
    write_cache_used_at_ready: u64 = 24 << 20,
    /// Bytes written to it per second, until it holds `write_cache_used_max`.
    write_cache_per_second: u64 = 1 << 20,
    write_cache_used_max: u64 = 320 << 20,
};

/// When the parts of the boot started; µs on the caller's clock.
pub const Begins = struct { kernel_us: u64, stream_us: u64, ready_us: u64 };

pub fn beginsOf(device: *const Device) Begins {
    const begins = &device.timings.begins;
    return .{
        .kernel_us = device.power_on_at_us + begins.get(.breather).?,
        .stream_us = device.power_on_at_us + begins.get(.stage2).?,
        .ready_us = device.power_on_at_us + begins.get(.ready).?,
    };
}

/// Reports what is due.
pub fn say(device: *Device, now_us: u64) void {
    if (device.phase == .stage2 and isBeforeSystem(device) and
        device.reads_done == device.read_index)
    {
        device.client.times.beginSystem();
        device.client.report(now_us, .{
            .uptime_us = now_us - device.power_on_at_us - device.timings.begins.get(.breather).?,
        });
    }
    if (device.phase != .ready) return;
    var steps: stream.StepList = .empty;
    const report = device.guest.next(now_us, &device.profile.guest, beginsOf(device), &steps) orelse
        return;
    device.client.report(now_us, report);
}

/// The next read is the system's first: the initramfs's own have ended before.
pub fn isBeforeSystem(device: *const Device) bool {
    return device.client.times.system == null and isSystem(device.profile.reads, device.read_index);
}

/// The initramfs takes this part of the system's start.
const initramfs_part = 10;

/// The next read is one of the system's.
fn isSystem(reads: []const Read, index: u32) bool {
    if (index == 0 or index == reads.len) return false;
    return reads[index].at_us >= reads[reads.len - 1].at_us / initramfs_part;
}

/// The device is ready. An order that it confirmed earlier is executed now.
pub fn begin(words: *GuestWords, begins: Begins) void {
    assert(begins.kernel_us <= begins.stream_us and begins.stream_us <= begins.ready_us);
    words.* = .{
        .begun_at_us = begins.ready_us,
        .kernel_start_us = begins.kernel_us,
        .due_at_us = begins.ready_us,
        .order = words.order,
        .order_due_at_us = words.order_due_at_us,
    };
}

/// Returns the report that is due now. `list` receives the steps of the first one.
pub fn next(
    words: *GuestWords,
    now_us: u64,
    profile: *const Profile,
    begins: Begins,
    list: *stream.StepList,
) ?StreamClient.Report {
    if (now_us < words.due_at_us orelse return null) return null;
    assert(now_us >= words.begun_at_us);
    words.due_at_us = now_us + profile.interval_us;
    words.has_said = true;
    words.used_said = usedAt(profile, now_us - words.begun_at_us);
    if (words.used_known == null) appendSteps(list, begins);
    return .{
        .uptime_us = now_us - words.kernel_start_us,
        .write_cache = .{ .used = words.used_said, .size = profile.write_cache_size },
        .steps = list.view(),
    };
}

pub fn usedAt(profile: *const Profile, age_us: u64) u64 {
    const filled = @as(u128, age_us) * profile.write_cache_per_second / std.time.us_per_s;
    return @intCast(@min(profile.write_cache_used_at_ready + filled, profile.write_cache_used_max));
}

/// The edge has acknowledged the last report.
pub fn acknowledged(words: *GuestWords, now_us: u64) void {
    // Otherwise it acknowledges the report from before the device was ready.
    if (words.has_said) words.used_known = words.used_said;
    if (words.order != null) words.order_due_at_us = now_us;
}

pub fn take(words: *GuestWords, now_us: u64, order: StreamClient.Order) void {
    words.order = order;
    words.order_due_at_us = now_us + order_wait_us_max;
}

/// Returns the order to execute now; none before the device is ready.
pub fn dueOrder(words: *GuestWords, now_us: u64) ?StreamClient.Order {
    if (words.due_at_us == null) return null;
    if (now_us < words.order_due_at_us orelse return null) return null;
    assert(words.order != null);
    words.order_due_at_us = null;
    defer words.order = null;
    return words.order;
}

pub fn deadline(words: *const GuestWords) ?u64 {
    var at_us = words.due_at_us orelse return null;
    if (words.order_due_at_us) |order_us| at_us = @min(at_us, order_us);
    return at_us;
}

/// Returns how long a caller that ends with the device should wait; null: no first report is
/// pending.
pub fn firstWordUntil(words: *const GuestWords) ?u64 {
    if (words.due_at_us == null or words.used_known != null) return null;
    return words.begun_at_us + first_word_us_max;
}

/// Shares of the boot as in a small Linux system.
fn appendSteps(list: *stream.StepList, begins: Begins) void {
    assert(begins.kernel_us <= begins.stream_us);
    assert(begins.stream_us <= begins.ready_us);
    const breather_us = begins.stream_us - begins.kernel_us;
    const stream_us: i64 = @intCast(breather_us);
    const system_us = begins.ready_us - begins.stream_us;
    const kernel_us = breather_us / 3 * 2;
    const steps = [_]stream.Step{
        .{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = kernel_us },
        .{
            .group = .initramfs,
            .name = "network",
            .start_us = @intCast(kernel_us),
            .duration_us = breather_us - kernel_us,
        },
        .{
            .group = .initramfs,
            .name = "mount",
            .start_us = stream_us,
            .duration_us = system_us / initramfs_part,
        },
        .{ .group = .system, .name = "system", .start_us = stream_us + @as(i64, @intCast(
            system_us / initramfs_part,
        )), .duration_us = system_us - system_us / initramfs_part },
    };
    for (steps) |step| list.append(step) catch unreachable; // There is room for 24.
}

const testing = std.testing;

test "steps follow one another until the device is ready, and the write cache fills completely" {
    var words: GuestWords = .{};
    const begins: Begins =
        .{ .kernel_us = 1_000_000, .stream_us = 1_900_000, .ready_us = 4_000_000 };
    const profile: Profile = .{};
    words.begin(begins);
    var list: stream.StepList = .empty;
    const first = words.next(4_000_000, &profile, begins, &list).?;
    try testing.expectEqual(3_000_000, first.uptime_us);
    var end_us: i64 = 0;
    var steps = first.steps.iterate();
    while (steps.next()) |step| {
        try testing.expectEqual(end_us, step.start_us);
        end_us += @intCast(step.duration_us);
    }
    try testing.expectEqual(3_000_000, end_us);
    try testing.expectEqual(null, words.next(4_000_001, &profile, begins, &list));
    words.acknowledged(4_100_000);
    const second = words.next(words.deadline().?, &profile, begins, &list).?;
    try testing.expectEqual((24 + 5) << 20, second.write_cache.?.used);
    try testing.expectEqual(profile.write_cache_used_max, usedAt(&profile, std.math.maxInt(u64)));
}

test "an acknowledgement from before the device was ready covers no later report, and orders wait" {
    var words: GuestWords = .{};
    const order: StreamClient.Order = .{ .kind = .restart, .id = .fromRandom(@splat(1)) };
    words.take(10, order);
    words.acknowledged(11);
    try testing.expectEqual(null, words.dueOrder(20));
    const begins: Begins = .{ .kernel_us = 0, .stream_us = 10, .ready_us = 100 };
    words.begin(begins);
    words.acknowledged(100);
    var list: stream.StepList = .empty;
    try testing.expectEqual(4, words.next(100, &.{}, begins, &list).?.steps.count);
    try testing.expectEqual(.restart, words.dueOrder(100).?.kind);
}

test "the system starts with the first read after a tenth of the boot" {
    var reads: [11]Read = undefined;
    for (&reads, 0..) |*read, index| read.* = .{ .at_us = index * 100, .offset = 0, .length = 512 };
    try testing.expect(!isSystem(&reads, 0));
    try testing.expect(isSystem(&reads, 1));
    reads[1].at_us = 99;
    try testing.expect(!isSystem(&reads, 1));
    try testing.expect(isSystem(&reads, 2));
    try testing.expect(!isSystem(&reads, 11));
    try testing.expect(!isSystem(reads[0..1], 0));
}

test "an order is executed once the edge has acknowledged it, or after two seconds" {
    var words: GuestWords = .{};
    words.begin(.{ .kernel_us = 0, .stream_us = 0, .ready_us = 0 });
    const order: StreamClient.Order = .{ .kind = .restart, .id = .fromRandom(@splat(1)) };
    words.take(10, order);
    try testing.expectEqual(null, words.dueOrder(11));
    words.acknowledged(12);
    try testing.expectEqual(.restart, words.dueOrder(12).?.kind);
    try testing.expectEqual(null, words.dueOrder(13));
    words.take(20, order);
    try testing.expectEqual(null, words.dueOrder(19 + order_wait_us_max));
    try testing.expectEqual(.restart, words.dueOrder(20 + order_wait_us_max).?.kind);
}
