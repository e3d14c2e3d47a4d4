//! Devices that try to boot and are not in the desired state: what they sent, and when it is
//! reported (packages/proto/UPLINK.md, `discovered`): at once when first seen, then at most once a
//! minute while they keep trying. Spoofed addresses cost no more than the fixed tables: if they
//! arrive faster than real machines are switched on, only devices that retry after a moment are
//! admitted, as real firmware does and a flood of fresh addresses does not. Pure: the caller passes
//! the clocks.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const Stringify = std.json.Stringify;

pub const DiscoveredDevices = @This();

devices: []?Device,
/// Addresses by slot; 0 where a slot is free.
macs: [devices_max]u48 = @splat(0),
/// Recently seen addresses, admitted or not: 20 bits of a hash and 12 of the second; the latest of
/// a slot counts.
traces: []u32,
/// Admissions left for first requests and for later ones.
first_rate: Rate = .{ .left = burst },
again_rate: Rate = .{ .left = burst },
/// Requests of devices that were not admitted.
passed_over: u64 = 0,

pub const devices_max = 256;
/// At 20,000 spoofed addresses per second a trace is found again after 1 s in 24 of 25 cases, after
/// 4 s in 6 of 7.
const traces_max = 1 << 19;
/// Admissions per second and kind; a whole collection switched on at once fits the burst.
const per_second = 8;
const burst = 64;
pub const report_interval_us = 60 * std.time.us_per_s;
/// Firmware retries after 1 to 16 s; a duplicated packet arrives sooner.
const trace_step_us = 300 * std.time.us_per_ms;
const again_us_max = 60 * std.time.us_per_s;

/// The JSON is shorter than this, with every text at its longest.
pub const report_size_max = 1024;

pub const Protocol = enum { dhcp, tftp, http };

/// The content of one request.
pub const Request = struct {
    mac: base.Mac,
    asked: Protocol,
    machine_id: ?base.Uuid = null,
    vendor_class: base.UntrustedText = .empty,
    user_class: base.UntrustedText = .empty,
    host_name: base.UntrustedText = .empty,
    client_arch: ?u16 = null,
    ip: ?base.Ip4 = null,
    relay: ?base.Ip4 = null,
};

pub const Device = struct {
    /// The latest known content.
    said: Request,
    first_unix_ms: u64,
    last_unix_ms: u64,
    first_us: u64,
    last_us: u64,
    requests: u64 = 1,
    reported_us: ?u64 = null,
    /// It has retried since it was last reported.
    has_news: bool = true,

    fn isDue(device: *const Device, now_us: u64) bool {
        if (!device.has_news) return false;
        const reported_us = device.reported_us orelse return true;
        return now_us -| reported_us >= report_interval_us;
    }
};

const Rate = struct {
    left: u32,
    second_us: u64 = 0,

    fn take(rate: *Rate, now_us: u64) bool {
        const seconds = (now_us -| rate.second_us) / std.time.us_per_s;
        if (seconds > 0) {
            rate.left = @intCast(@min(burst, rate.left + seconds * per_second));
            rate.second_us = now_us;
        }
        if (rate.left == 0) return false;
        assert(rate.left <= burst);
        rate.left -= 1;
        return true;
    }
};

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!DiscoveredDevices {
    const devices = try base.allocZeroed(gpa, ?Device, @as(?Device, null), devices_max);
    errdefer base.freeZeroed(gpa, ?Device, devices);
    const traces = try base.allocZeroed(gpa, u32, 0, traces_max);
    return .{ .devices = devices, .traces = traces };
}

pub fn deinit(discovered: *DiscoveredDevices, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, ?Device, discovered.devices);
    base.freeZeroed(gpa, u32, discovered.traces);
    discovered.* = undefined;
}

/// An unknown device sent a request; returns true if it is to be reported.
pub fn note(
    discovered: *DiscoveredDevices,
    now_us: u64,
    unix_ms: u64,
    request: *const Request,
) bool {
    if (!request.mac.isDevice()) return false;
    if (discovered.find(request.mac)) |device| {
        device.said = merged(&device.said, request);
        device.last_us = now_us;
        device.last_unix_ms = @max(unix_ms, device.first_unix_ms);
        device.requests += 1;
        device.has_news = true;
        assert(device.last_unix_ms >= device.first_unix_ms);
        return device.isDue(now_us);
    }
    const is_repeated = discovered.recordTrace(now_us, request.mac);
    const may_enter = discovered.first_rate.take(now_us) or
        (is_repeated and discovered.again_rate.take(now_us));
    if (!may_enter) {
        discovered.passed_over += 1;
        return false;
    }
    const index = discovered.freeSlot();
    assert(index < discovered.devices.len);
    discovered.macs[index] = request.mac.toInt();
    discovered.devices[index] = .{
        .said = request.*,
        .first_unix_ms = unix_ms,
        .last_unix_ms = unix_ms,
        .first_us = now_us,
        .last_us = now_us,
        .requests = if (is_repeated) 2 else 1,
    };
    return true;
}

pub fn hasDue(discovered: *const DiscoveredDevices, now_us: u64) bool {
    for (discovered.devices) |*slot| if (slot.*) |*device| if (device.isDue(now_us)) return true;
    return false;
}

/// Returns the next device to be reported, which then counts as reported. Those that retried come
/// first, of these the one that has waited longest.
pub fn takeDue(discovered: *DiscoveredDevices, now_us: u64) ?*const Device {
    var best: ?*Device = null;
    for (discovered.devices) |*slot| {
        const device = if (slot.*) |*known| known else continue;
        if (!device.isDue(now_us)) continue;
        if (best) |other| if (!isBefore(device, other)) continue;
        best = device;
    }
    const device = best orelse return null;
    assert(device.has_news);
    device.reported_us = now_us;
    device.has_news = false;
    return device;
}

/// The device is in the desired state now, or is to be ignored.
pub fn forget(discovered: *DiscoveredDevices, mac: base.Mac) void {
    const index = std.mem.findScalar(u48, &discovered.macs, mac.toInt()) orelse return;
    discovered.devices[index] = null;
    discovered.macs[index] = 0;
}

fn isBefore(a: *const Device, b: *const Device) bool {
    const a_repeats = a.requests > 1;
    if (a_repeats != (b.requests > 1)) return a_repeats;
    return a.first_us < b.first_us;
}

fn find(discovered: *DiscoveredDevices, mac: base.Mac) ?*Device {
    assert(mac.isDevice());
    const index = std.mem.findScalar(u48, &discovered.macs, mac.toInt()) orelse return null;
    return &discovered.devices[index].?;
}

/// In a full table: a device that sent only one request, long ago; else the one that has been
/// silent for longest.
fn freeSlot(discovered: *const DiscoveredDevices) usize {
    var worst: usize = 0;
    for (discovered.devices, 0..) |*slot, index| {
        const device = if (slot.*) |*known| known else return index;
        const other = &discovered.devices[worst].?;
        const is_single = device.requests == 1;
        const other_is_single = other.requests == 1;
        if (is_single != other_is_single) {
            if (is_single) worst = index;
        } else if (device.last_us < other.last_us) worst = index;
    }
    return worst;
}

/// Records a trace; returns true if this address was seen before, a moment or up to a minute ago.
fn recordTrace(discovered: *DiscoveredDevices, now_us: u64, mac: base.Mac) bool {
    const hash = std.hash.Wyhash.hash(0, &mac.bytes);
    const slot = &discovered.traces[@intCast(hash % traces_max)];
    const mark: u20 = @truncate(hash >> 44);
    // 0 is no trace.
    const step: u12 = @intCast(now_us / trace_step_us % 4095 + 1);
    const earlier: u20 = @truncate(slot.* >> 12);
    const earlier_step: u12 = @truncate(slot.*);
    const age = (@as(u32, step) + 4095 - earlier_step) % 4095;
    const is_known = earlier_step != 0 and earlier == mark;
    // The first request's time stays while copies of it arrive, even across a step.
    if (is_known and age < 2) return false;
    assert(step != 0);
    slot.* = @as(u32, mark) << 12 | step;
    return is_known and age <= again_us_max / trace_step_us;
}

/// Fields that a request omits keep their earlier value.
fn merged(earlier: *const Request, later: *const Request) Request {
    var result = later.*;
    if (result.machine_id == null) result.machine_id = earlier.machine_id;
    if (result.vendor_class.size == 0) result.vendor_class = earlier.vendor_class;
    if (result.user_class.size == 0) result.user_class = earlier.user_class;
    if (result.host_name.size == 0) result.host_name = earlier.host_name;
    if (result.client_arch == null) result.client_arch = earlier.client_arch;
    if (result.ip == null) result.ip = earlier.ip;
    if (result.relay == null) result.relay = earlier.relay;
    return result;
}

/// Writes the `device` of a report.
pub fn encode(device: *const Device, buffer: *[report_size_max]u8) []const u8 {
    const said = &device.said;
    var writer: std.Io.Writer = .fixed(buffer);
    // Every part is bounded: three texts of 64 characters, each at most two bytes.
    Stringify.value(.{
        .mac = said.mac,
        .machineId = if (said.machine_id) |id| @as(?[base.Uuid.text_size]u8, id.toText()) else null,
        .vendorClass = textOf(&said.vendor_class),
        .userClass = textOf(&said.user_class),
        .hostName = textOf(&said.host_name),
        .clientArch = said.client_arch,
        .ip = said.ip,
        .relay = said.relay,
        .asked = @tagName(said.asked),
        .firstSeenUnixMs = device.first_unix_ms,
        .lastSeenUnixMs = device.last_unix_ms,
        .requests = device.requests,
    }, .{ .whitespace = .minified, .emit_null_optional_fields = false }, &writer) catch unreachable;
    return writer.buffered();
}

fn textOf(text: *const base.UntrustedText) ?[]const u8 {
    return if (text.size == 0) null else text.slice();
}

const testing = std.testing;

fn testRequest(number: u64) Request {
    return .{ .mac = .fromInt(@intCast(0x02bf_0000_0001 + number)), .asked = .dhcp };
}

test "a device is reported at once, and then once a minute while it keeps trying" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    _ = discovered.note(1_000_000, 5000, &testRequest(1));
    const first = discovered.takeDue(1_000_000).?;
    try testing.expectEqual(5000, first.first_unix_ms);
    try testing.expectEqual(null, discovered.takeDue(1_000_000));
    for (2..61) |second| {
        const now_us = second * std.time.us_per_s;
        _ = discovered.note(now_us, 4000 + 1000 * second, &testRequest(1));
        try testing.expectEqual(null, discovered.takeDue(now_us));
    }
    const again = discovered.takeDue(61 * std.time.us_per_s).?;
    try testing.expectEqual(60, again.requests);
    try testing.expectEqual(5000, again.first_unix_ms);
    try testing.expectEqual(64_000, again.last_unix_ms);
    try testing.expectEqual(null, discovered.takeDue(600 * std.time.us_per_s));
}

test "known fields of a device stay when a later request omits them" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    var request = testRequest(1);
    request.vendor_class = .init("PXEClient\"\x00");
    request.client_arch = 7;
    request.machine_id = .fromRandom(@splat(3));
    request.relay = .init(10, 1, 0, 1);
    _ = discovered.note(1, 1, &request);
    var bare = testRequest(1);
    bare.asked = .http;
    bare.ip = .init(10, 0, 0, 9);
    _ = discovered.note(2, 2, &bare);
    var buffer: [report_size_max]u8 = undefined;
    try testing.expectEqualStrings(
        \\{"mac":"02:bf:00:00:00:02","machineId":"03030303-0303-4303-8303-030303030303","vendorClass":"PXEClient\"?","clientArch":7,"ip":"10.0.0.9","relay":"10.1.0.1","asked":"http","firstSeenUnixMs":1,"lastSeenUnixMs":2,"requests":2}
    , encode(discovered.takeDue(3).?, &buffer));
}

test "the longest report fits" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    const long: [80]u8 = @splat('"');
    var request: Request = .{
        .mac = .fromInt(0x02ffffffffff),
        .asked = .dhcp,
        .machine_id = .fromRandom(@splat(255)),
        .vendor_class = .init(&long),
        .user_class = .init(&long),
        .host_name = .init(&long),
        .client_arch = 65535,
        .ip = .init(223, 255, 255, 255),
        .relay = .init(223, 255, 255, 255),
    };
    _ = discovered.note(1, (1 << 53) - 1, &request);
    var buffer: [report_size_max]u8 = undefined;
    try testing.expect(encode(discovered.takeDue(1).?, &buffer).len < report_size_max);
}

test "few of a flood of spoofed addresses are admitted, and a real device among them is reported" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    var prng: base.Prng = .init(7);
    var reports: u32 = 0;
    var real_reports: u32 = 0;
    const real = testRequest(0xffff_0000);
    const flood_s = 30;
    const per_flood_second = 5_000;
    // Like firmware: after 1, 3, 7 and 15 s.
    const real_at_s = [_]u64{ 10, 11, 13, 17, 25 };
    for (0..flood_s) |second| for (0..per_flood_second) |number| {
        const now_us = second * std.time.us_per_s + number * (std.time.us_per_s / per_flood_second);
        _ = discovered.note(now_us, 1, &testRequest(prng.nextU32()));
        if (number == 777 and std.mem.findScalar(u64, &real_at_s, second) != null)
            _ = discovered.note(now_us, 1, &real);
        while (discovered.takeDue(now_us)) |device| {
            reports += 1;
            if (device.said.mac.eql(real.mac)) real_reports += 1;
        }
    };
    try testing.expect(reports <= 2 * (burst + per_second * flood_s));
    try testing.expectEqual(1, real_reports);
    try testing.expect(discovered.passed_over > flood_s * per_flood_second - reports - 10);
}

test "copies of one packet do not count as a retry in a flood" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    for (0..burst) |number| _ = discovered.note(1, 1, &testRequest(number));
    const late = testRequest(1000);
    _ = discovered.note(100, 1, &late);
    _ = discovered.note(200, 1, &late);
    try testing.expectEqual(null, discovered.find(late.mac));
    _ = discovered.note(900_000, 1, &late);
    try testing.expectEqual(2, discovered.find(late.mac).?.requests);
}

test "a full table evicts devices with a single request before those that retry" {
    var discovered: DiscoveredDevices = try .init(testing.allocator);
    defer discovered.deinit(testing.allocator);
    var now_us: u64 = 0;
    for (0..devices_max) |number| {
        now_us += std.time.us_per_s;
        _ = discovered.note(now_us, 1, &testRequest(number));
        if (number % 2 == 0) _ = discovered.note(now_us, 1, &testRequest(number));
    }
    for (0..devices_max / 2) |number| {
        now_us += std.time.us_per_s;
        _ = discovered.note(now_us, 1, &testRequest(1000 + number));
        _ = discovered.note(now_us, 1, &testRequest(1000 + number));
    }
    for (0..devices_max) |number|
        try testing.expectEqual(number % 2 == 0, discovered.find(testRequest(number).mac) != null);
    discovered.forget(testRequest(0).mac);
    try testing.expectEqual(null, discovered.find(testRequest(0).mac));
}
