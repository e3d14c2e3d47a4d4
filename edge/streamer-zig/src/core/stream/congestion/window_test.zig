//! Tests of window.zig on a simulated network in one thread: an edge that answers at 10 Gb/s, a
//! switch with a buffer in front of one slower link, and devices that read through it as fast as
//! their windows allow.

const std = @import("std");
const base = @import("base");
const CongestionWindow = @import("window.zig");
const assert = std.debug.assert;
const testing = std.testing;

const fragment_size = 1456;
/// With the headers of Ethernet, IP, UDP and the stream.
const packet_size = fragment_size + 82;
const gigabit = 125_000_000;
const edge_rate = 10 * gigabit;
const ns_per_s = std.time.ns_per_s;

const Path = struct {
    /// Bytes per second.
    rate: u64 = gigabit,
    /// Bytes.
    buffer: u64 = 64 << 10,
    one_way_us: u64 = 250,
    /// Per 10,000 packets, in each direction.
    loss: u64 = 0,
    /// Storage time of the edge per request.
    storage_us: u64 = 0,
};

/// What its system requests at a time.
const request_bytes = 32 * fragment_size;
const asks_max = 1024;

const Ask = struct {
    record: CongestionWindow.SendRecord,
    fragments: u32,
    /// Fragments before this one have arrived or are lost.
    next: u32 = 0,
};

const Device = struct {
    window: CongestionWindow,
    begins_at_us: u64 = 0,
    asks: [asks_max]Ask = undefined,
    /// Serials of the oldest request in flight, and of the next one.
    first: u64 = 0,
    end: u64 = 0,
    heard_at_us: u64 = 0,
    received: u64 = 0,
    /// Bytes that its system has wanted so far, and that it has requested.
    wanted: u64 = std.math.maxInt(u64),
    wanted_at_us: u64 = 0,
    asked: u64 = 0,
    timeouts: u4 = 0,

    fn of(device: *Device, serial: u64) *Ask {
        return &device.asks[@intCast(serial % asks_max)];
    }

    fn timeoutAt(device: *Device) ?u64 {
        if (device.first == device.end) return null;
        const since_us = @max(device.heard_at_us, device.of(device.first).record.sent_at_us);
        return since_us + (@max(4_000, 3 * device.window.wait_us) << device.timeouts);
    }

    /// Packets arrive in order: what was overtaken is lost.
    fn lose(device: *Device, ask: *Ask, end: u32) void {
        if (end == ask.next) return;
        const count = end - ask.next;
        const was_heard = ask.next > 0 or end < ask.fragments;
        ask.next = end;
        device.window.onLoss(
            @as(u64, count) * fragment_size,
            &ask.record,
            if (was_heard) count else 1,
        );
    }

    fn receive(device: *Device, now_us: u64, serial: u64, index: u32) void {
        while (device.first < serial) : (device.first += 1) {
            const before = device.of(device.first);
            device.lose(before, before.fragments);
        }
        // It was abandoned already.
        if (serial < device.first) return;
        const ask = device.of(serial);
        const is_first = ask.next == 0 and index == 0;
        device.timeouts = 0;
        device.lose(ask, index);
        ask.next = index + 1;
        device.heard_at_us = now_us;
        device.received += fragment_size;
        const is_last = ask.next == ask.fragments;
        device.window.onAck(now_us, fragment_size, &ask.record, .{
            .is_first = is_first,
            .is_last = is_last,
        });
        if (is_last) device.first += 1;
    }

    fn timeOut(device: *Device) void {
        device.timeouts = @min(device.timeouts + 1, 8);
        while (device.first < device.end) : (device.first += 1) {
            const ask = device.of(device.first);
            device.window.onTimeout(&ask.record);
            device.lose(ask, ask.fragments);
        }
    }
};

const Request = struct { at_ns: u64, device: u16, serial: u64, fragments: u32 };
const Packet = struct { at_ns: u64, device: u16, serial: u64, index: u32 };

const SwitchFixture = struct {
    path: Path,
    prng: base.Prng = .init(7),
    devices: []Device,
    requests: std.Deque(Request) = .empty,
    packets: std.Deque(Packet) = .empty,
    now_us: u64 = 1,
    /// When the edge's network card and the slow link become idle.
    edge_free_ns: u64 = 0,
    link_free_ns: u64 = 0,
    dropped: u64 = 0,

    fn init(count: usize, path: Path) !SwitchFixture {
        const devices = try testing.allocator.alloc(Device, count);
        for (devices) |*device| device.* =
            .{ .window = .init(.{ .fragment_size = fragment_size, .bytes_max = 1 << 20 }) };
        return .{ .path = path, .devices = devices };
    }

    fn deinit(fixture: *SwitchFixture) void {
        fixture.requests.deinit(testing.allocator);
        fixture.packets.deinit(testing.allocator);
        testing.allocator.free(fixture.devices);
    }

    fn run(fixture: *SwitchFixture, for_us: u64) !void {
        for (fixture.devices) |*device| {
            device.received = 0;
            device.wanted_at_us = fixture.now_us;
        }
        fixture.dropped = 0;
        const until_us = fixture.now_us + for_us;
        while (fixture.now_us < until_us) {
            for (fixture.devices, 0..) |*device, index| try fixture.tend(device, @intCast(index));
            fixture.now_us = @min(until_us, @max(fixture.now_us + 1, fixture.nextAt()));
            while (fixture.requests.front()) |request| {
                if (request.at_ns > fixture.now_us * 1000) break;
                _ = fixture.requests.popFront();
                try fixture.answer(request);
            }
            while (fixture.packets.front()) |packet| {
                if (packet.at_ns > fixture.now_us * 1000) break;
                _ = fixture.packets.popFront();
                fixture.devices[packet.device].receive(fixture.now_us, packet.serial, packet.index);
            }
        }
    }

    fn nextAt(fixture: *SwitchFixture) u64 {
        var at_us: u64 = std.math.maxInt(u64);
        if (fixture.requests.front()) |request| at_us = @min(at_us, (request.at_ns + 999) / 1000);
        if (fixture.packets.front()) |packet| at_us = @min(at_us, (packet.at_ns + 999) / 1000);
        for (fixture.devices) |*device| {
            if (device.begins_at_us > fixture.now_us) at_us = @min(at_us, device.begins_at_us);
            if (device.timeoutAt()) |timeout_us| at_us = @min(at_us, timeout_us);
            if (device.asked >= device.wanted) continue;
            if (device.window.opensAt(request_bytes)) |open_us| at_us = @min(at_us, open_us);
        }
        return at_us;
    }

    fn tend(fixture: *SwitchFixture, device: *Device, index: u16) !void {
        if (fixture.now_us < device.begins_at_us) return;
        while (device.timeoutAt()) |at_us| {
            if (at_us > fixture.now_us) break;
            device.timeOut();
        }
        while (device.end - device.first < asks_max and device.asked < device.wanted) {
            const room = device.window.sendableBytes(fixture.now_us, request_bytes);
            const bytes = room - room % fragment_size;
            if (bytes == 0) return;
            const record = device.window.onSend(fixture.now_us, bytes);
            device.asked += bytes;
            const fragments: u32 = @intCast(bytes / fragment_size);
            device.of(device.end).* = .{ .record = record, .fragments = fragments };
            defer device.end += 1;
            if (fixture.isLost()) continue;
            const at_ns =
                (fixture.now_us + fixture.path.one_way_us + fixture.path.storage_us) * 1000;
            try fixture.requests.pushBack(
                testing.allocator,
                .{ .at_ns = at_ns, .device = index, .serial = device.end, .fragments = fragments },
            );
        }
    }

    fn isLost(fixture: *SwitchFixture) bool {
        return fixture.prng.chance(fixture.path.loss, 10_000);
    }

    fn answer(fixture: *SwitchFixture, request: Request) !void {
        for (0..request.fragments) |index| {
            fixture.edge_free_ns =
                @max(fixture.edge_free_ns, request.at_ns) + packet_size * ns_per_s / edge_rate;
            const waiting_ns = fixture.link_free_ns -| fixture.edge_free_ns;
            if (waiting_ns * fixture.path.rate / ns_per_s + packet_size > fixture.path.buffer) {
                fixture.dropped += 1;
                continue;
            }
            fixture.link_free_ns = @max(fixture.link_free_ns, fixture.edge_free_ns) +
                packet_size * ns_per_s / fixture.path.rate;
            if (fixture.isLost()) continue;
            try fixture.packets.pushBack(testing.allocator, .{
                .at_ns = fixture.link_free_ns + fixture.path.one_way_us * 1000,
                .device = request.device,
                .serial = request.serial,
                .index = @intCast(index),
            });
        }
    }

    /// Percentage of the link's capacity used in the last `run`, without headers.
    fn used(fixture: *const SwitchFixture, for_us: u64) u64 {
        var received: u64 = 0;
        for (fixture.devices) |*device| received += device.received;
        const most = fixture.path.rate * for_us / std.time.us_per_s * fragment_size / packet_size;
        return received * 100 / most;
    }

    /// Bytes of the fastest device as a percentage of the slowest.
    fn unfairness(fixture: *const SwitchFixture) u64 {
        var least: u64 = std.math.maxInt(u64);
        var most: u64 = 0;
        for (fixture.devices) |*device| {
            least = @min(least, device.received);
            most = @max(most, device.received);
        }
        return most * 100 / @max(1, least);
    }
};

test "one device uses 95 % of a link with any buffer, even at a random loss of 1 %" {
    for ([_]u64{ 64 << 10, 256 << 10, 1 << 20 }) |buffer| for ([_]u64{ 0, 100 }) |loss| {
        var fixture: SwitchFixture = try .init(1, .{ .buffer = buffer, .loss = loss });
        defer fixture.deinit();
        try fixture.run(300_000);
        try testing.expect(fixture.used(300_000) >= 95);
        // The switch drops few packets.
        try testing.expect(fixture.dropped * fragment_size < 5 * fixture.devices[0].received / 100);
    };
}

test "eight devices that start one after the other share a full link within a factor of four" {
    // Space for what each device may always have in flight.
    for ([_]u64{ 256 << 10, 512 << 10 }) |buffer| for ([_]u64{ 0, 100 }) |loss| {
        var fixture: SwitchFixture = try .init(8, .{ .buffer = buffer, .loss = loss });
        defer fixture.deinit();
        for (fixture.devices, 0..) |*device, index| device.begins_at_us = index * 20_000;
        try fixture.run(1_000_000);
        try fixture.run(1_000_000);
        try testing.expect(fixture.used(1_000_000) >= 95);
        // Less would take windows below the size of a read.
        try testing.expect(fixture.unfairness() <= 400);
    };
}

test "a link that becomes ten times slower is filled, not overrun, and filled again later" {
    var fixture: SwitchFixture = try .init(1, .{ .buffer = 128 << 10 });
    defer fixture.deinit();
    try fixture.run(200_000);
    fixture.path.rate = gigabit / 10;
    try fixture.run(100_000);
    try fixture.run(500_000);
    try testing.expect(fixture.used(500_000) >= 90);
    try testing.expect(fixture.dropped * fragment_size < 5 * fixture.devices[0].received / 100);
    fixture.path.rate = gigabit;
    try fixture.run(200_000);
    try fixture.run(200_000);
    try testing.expect(fixture.used(200_000) >= 90);
}

test "a burst of 1 MiB after a pause is paced: a port buffer of 128 KiB drops next to nothing" {
    var fixture: SwitchFixture = try .init(1, .{ .buffer = 128 << 10 });
    defer fixture.deinit();
    const device = &fixture.devices[0];
    device.wanted = 0;
    var dropped: u64 = 0;
    for (0..20) |_| {
        device.wanted += 1 << 20;
        try fixture.run(100_000);
        dropped += fixture.dropped;
    }
    try testing.expect(dropped * fragment_size * 100 < device.asked);
    // It took no longer than the link needs, plus a few round trips.
    try testing.expect(device.heard_at_us - device.wanted_at_us < 12_000);
}

test "slow storage is no full network: the window grows to cover its latency" {
    var fixture: SwitchFixture = try .init(1, .{ .storage_us = 10_000 });
    defer fixture.deinit();
    try fixture.run(1_000_000);
    try testing.expect(fixture.devices[0].window.cwnd_bytes >= 128 << 10);
}

test "after an outage the device requests little, and soon as much as before" {
    var fixture: SwitchFixture = try .init(1, .{ .buffer = 128 << 10 });
    defer fixture.deinit();
    try fixture.run(100_000);
    fixture.path.loss = 10_000;
    try fixture.run(500_000);
    try testing.expectEqual((32 << 10) + 4 * fragment_size, fixture.devices[0].window.cwnd_bytes);
    fixture.path.loss = 0;
    try fixture.run(1_100_000);
    try fixture.run(100_000);
    try testing.expect(fixture.used(100_000) >= 90);
}

test "packets that arrive after all undo the reduction, and those that do not leave it" {
    var window: CongestionWindow = .init(.{ .fragment_size = fragment_size, .bytes_max = 1 << 20 });
    const before = window.cwnd_bytes;
    for ([_]bool{ true, false }) |comes_late| {
        const record = window.onSend(1000, 32 * fragment_size);
        window.onAck(2000, 24 * fragment_size, &record, .{ .is_first = true, .is_last = false });
        window.onLoss(8 * fragment_size, &record, 8);
        try testing.expect(window.cwnd_bytes < before);
        if (!comes_late) break;
        for (0..4) |_| window.onSpuriousLoss();
        try testing.expectEqual(before, window.cwnd_bytes);
        try testing.expect(window.is_slow_start);
    }
    for (0..3) |_| window.onSpuriousLoss();
    try testing.expect(window.cwnd_bytes < before);
}

test "every requested byte is accounted for, and an oversized request goes alone" {
    var window: CongestionWindow = .init(.{ .fragment_size = fragment_size, .bytes_max = 1 << 20 });
    try testing.expectEqual(window.cwnd_bytes, window.sendableBytes(1, 1 << 20));
    const large = window.onSend(1, 1 << 20);
    try testing.expectEqual(0, window.sendableBytes(2, fragment_size));
    try testing.expectEqual(null, window.opensAt(fragment_size));
    window.onLoss(1 << 19, &large, 1);
    window.onAbandoned((1 << 19) - fragment_size);
    window.onAck(1000, fragment_size, &large, .{ .is_first = true, .is_last = true });
    try testing.expectEqual(0, window.in_flight_bytes);
    try testing.expect(window.opensAt(fragment_size) != null);
}
