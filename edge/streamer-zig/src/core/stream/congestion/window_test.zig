//! Tests of window.zig: on a simulated network in one thread (an edge that answers at 10 Gb/s, a
//! switch with a buffer in front of one slower link, and devices that read through it as fast as
//! their windows allow), and of its formulas at their limits.

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

/// A window in a state that a test names, at `test_now_us`, and with fragments of 1000 bytes.
fn windowOf(cwnd_bytes: u64, in_flight_bytes: u64) CongestionWindow {
    var window: CongestionWindow = .init(.{ .fragment_size = 1000, .bytes_max = 1 << 20 });
    window.cwnd_bytes = cwnd_bytes;
    window.in_flight_bytes = in_flight_bytes;
    window.serial = 10;
    window.round.last_serial = 10;
    window.credit_at_us = test_now_us;
    return window;
}

const test_now_us: u64 = 50_000_000;

/// One byte more arrives: of a request of this round, or of a later one, which ends it.
fn ackByte(window: *CongestionWindow, ends_round: bool) void {
    window.in_flight_bytes += 1;
    const serial = if (ends_round) window.round.last_serial else window.round.last_serial - 1;
    const record: CongestionWindow.SendRecord = .{ .serial = serial, .sent_at_us = test_now_us };
    window.onAck(test_now_us, 1, &record, .{ .is_first = false, .is_last = false });
}

/// The first packet of a request arrives after `took_us`.
fn ackFirst(window: *CongestionWindow, took_us: u64) void {
    window.in_flight_bytes += 1;
    const record: CongestionWindow.SendRecord = .{ .sent_at_us = test_now_us - took_us };
    window.onAck(test_now_us, 1, &record, .{ .is_first = true, .is_last = false });
}

test "a new window is 64 KiB, or as small as it has to stay" {
    for ([_]u32{ 4000, 1 << 20 }, [_]u64{ 4000, 64 << 10 }) |bytes_max, cwnd_bytes| {
        const window: CongestionWindow =
            .init(.{ .fragment_size = 1000, .bytes_max = bytes_max });
        try testing.expectEqual(cwnd_bytes, window.cwnd_bytes);
        try testing.expectEqual(0, window.in_flight_bytes);
        try testing.expect(window.is_slow_start);
    }
}

test "a request that does not fit is split into parts of a quarter of the window, 4 to 32 KiB" {
    const rows = [_][3]u64{
        .{ 8 << 10, 1 << 20, 4 << 10 },
        .{ 40 << 10, 1 << 20, 10 << 10 },
        .{ 128 << 10, 1 << 20, 32 << 10 },
        .{ 512 << 10, 1 << 20, 32 << 10 },
        .{ 512 << 10, 512, 512 },
    };
    for (rows) |row| try testing.expectEqual(row[2], windowOf(row[0], 0).partBytes(row[1]));
}

test "what may be sent is what fits, at least a part of it, and with credit" {
    const Case = struct { flying: u64, credit: i64 = 1, wanted: u64, may: u64, is_full: bool };
    const cases = [_]Case{
        .{ .flying = 0, .wanted = 65536, .may = 65536, .is_full = false },
        .{ .flying = 0, .wanted = 65537, .may = 65536, .is_full = true },
        .{ .flying = 0, .credit = -9, .wanted = 512, .may = 512, .is_full = false },
        .{ .flying = 49152, .wanted = 16384, .may = 16384, .is_full = false },
        .{ .flying = 49152, .wanted = 16385, .may = 16384, .is_full = true },
        .{ .flying = 49153, .wanted = 16385, .may = 0, .is_full = true },
        .{ .flying = 65024, .wanted = 512, .may = 512, .is_full = false },
        .{ .flying = 65025, .wanted = 512, .may = 0, .is_full = true },
        .{ .flying = 99999, .wanted = 512, .may = 0, .is_full = true },
        .{ .flying = 512, .credit = 0, .wanted = 512, .may = 0, .is_full = true },
        .{ .flying = 512, .credit = 0, .wanted = 65536, .may = 0, .is_full = true },
    };
    for (cases) |case| {
        var window = windowOf(64 << 10, case.flying);
        window.rate[0] = 1_000_000;
        window.credit = case.credit;
        try testing.expectEqual(case.may, window.sendableBytes(test_now_us, case.wanted));
        try testing.expectEqual(case.is_full, window.round.was_full);
    }
    // A window that is smaller than a part.
    var small: CongestionWindow = .init(.{ .fragment_size = 256, .bytes_max = 1024 });
    try testing.expectEqual(4096, small.sendableBytes(test_now_us, 8192));
}

test "pacing opens when the rate has earned what was sent too early" {
    const Case = struct { flying: u64 = 49152, credit: i64, rate: u64, wait: ?u64 };
    const cases = [_]Case{
        .{ .flying = 0, .credit = -9999, .rate = 1_000_000, .wait = 0 },
        .{ .credit = 1, .rate = 1_000_000, .wait = 0 },
        .{ .credit = 0, .rate = 1_000_000, .wait = 1 },
        .{ .credit = -9999, .rate = 1_000_000, .wait = 5001 },
        .{ .credit = -9999, .rate = 0, .wait = 0 },
        .{ .flying = 49153, .credit = 1, .rate = 1_000_000, .wait = null },
    };
    for (cases) |case| {
        var window = windowOf(64 << 10, case.flying);
        window.rate[1] = case.rate;
        window.credit = case.credit;
        const at_us: ?u64 = if (case.wait) |wait| test_now_us + wait else null;
        try testing.expectEqual(at_us, window.opensAt(1 << 20));
        if (case.credit != -9999 or case.rate == 0 or case.flying == 0) continue;
        // A quarter above the delivery rate once slow start is over.
        window.is_slow_start = false;
        try testing.expectEqual(test_now_us + 8001, window.opensAt(1 << 20));
        _ = window.sendableBytes(test_now_us + 8001, 1);
        try testing.expect(window.credit > 0);
    }
}

test "credit grows with time, a burst at most, and no fraction of a byte is lost" {
    const Case = struct { rate: u64, credit: i64, passed_us: u64, expected: i64 };
    const cases = [_]Case{
        .{ .rate = 1_000_000, .credit = 100, .passed_us = 1000, .expected = 1350 },
        .{ .rate = 100_000, .credit = -500_000, .passed_us = 10_000_000, .expected = -375_000 },
        .{ .rate = 1_000_000, .credit = 0, .passed_us = 1_000_000, .expected = 64 << 10 },
        .{ .rate = 500_000_000, .credit = 0, .passed_us = 1_000_000, .expected = 128_000 },
        .{ .rate = 2_000_000_000, .credit = 0, .passed_us = 1_000_000, .expected = 256 << 10 },
    };
    for (cases) |case| {
        var window = windowOf(64 << 10, 1);
        window.is_slow_start = false;
        window.rate[0] = case.rate;
        window.credit = case.credit;
        _ = window.sendableBytes(test_now_us + case.passed_us, 1);
        try testing.expectEqual(case.expected, window.credit);
        try testing.expectEqual(test_now_us + case.passed_us, window.credit_at_us);
    }
    var slow = windowOf(64 << 10, 1);
    slow.is_slow_start = false;
    slow.rate[0] = 1000;
    slow.credit = 0;
    _ = slow.sendableBytes(test_now_us + 799, 1);
    try testing.expectEqual(test_now_us, slow.credit_at_us);
    _ = slow.sendableBytes(test_now_us + 800, 1);
    try testing.expectEqual(1, slow.credit);
    // Before anything has arrived: the smallest burst.
    var unknown = windowOf(64 << 10, 0);
    unknown.credit = -5;
    const record = unknown.onSend(test_now_us + 7, 600);
    try testing.expectEqual((64 << 10) - 600, unknown.credit);
    try testing.expectEqual(test_now_us + 7, unknown.credit_at_us);
    try testing.expectEqual(10, record.serial);
    try testing.expectEqual(test_now_us + 7, record.sent_at_us);
    try testing.expectEqual(11, unknown.serial);
    try testing.expectEqual(600, unknown.in_flight_bytes);
}

test "the first request after a pause begins a round, a later one does not" {
    var window = windowOf(64 << 10, 0);
    window.round.was_full = true;
    window.round.lost = 2;
    _ = window.onSend(test_now_us, 600);
    try testing.expect(window.round.was_full_before and !window.round.was_full);
    try testing.expectEqual(0, window.round.lost);
    try testing.expectEqual(10, window.round.last_serial);
    window.round.lost = 2;
    _ = window.onSend(test_now_us, 600);
    try testing.expectEqual(2, window.round.lost);
    // The answer to a request of this round ends it; that to one before it does not.
    ackByte(&window, false);
    try testing.expectEqual(2, window.round.lost);
    ackByte(&window, true);
    try testing.expectEqual(0, window.round.lost);
    try testing.expectEqual(12, window.round.last_serial);
}

test "a wait is the shortest of its round, and a round trip the shortest of its last minute" {
    var window = windowOf(64 << 10, 1000);
    window.round.last_serial = 11;
    ackFirst(&window, 400);
    ackFirst(&window, 300);
    ackFirst(&window, 350);
    try testing.expectEqual(300, window.wait_us);
    try testing.expectEqual(350, window.last_wait_us);
    try testing.expectEqual(300, window.roundTrip());
    ackByte(&window, true);
    window.round.last_serial = 20;
    ackFirst(&window, 500);
    try testing.expectEqual(500, window.wait_us);
    try testing.expectEqual(300, window.roundTrip());
    // An answer in the microsecond of its request took one.
    ackFirst(&window, 0);
    try testing.expectEqual(1, window.roundTrip());
    var since_us: u64 = test_now_us;
    window.round_trip_us = .{ 200, 0 };
    window.round_trip_since_us = since_us;
    const rows = [_][3]u64{
        .{ 29_999_999, 300, 200 },
        .{ 30_000_000, 300, 200 },
        .{ 59_999_999, 250, 200 },
        .{ 60_000_000, 400, 250 },
        .{ 90_000_000, 500, 400 },
    };
    for (rows) |row| {
        since_us = test_now_us + row[0];
        window.in_flight_bytes += 1;
        const record: CongestionWindow.SendRecord = .{ .sent_at_us = since_us - row[1] };
        window.onAck(since_us, 1, &record, .{ .is_first = true, .is_last = false });
        try testing.expectEqual(row[2], window.roundTrip());
    }
}

test "slow start ends with the first wait of more than a quarter and 0.1 ms above the round trip" {
    for ([_]u64{ 600, 601 }) |wait_us| {
        var window = windowOf(64 << 10, 1000);
        window.round.last_serial = 20;
        ackFirst(&window, 400);
        ackFirst(&window, wait_us);
        try testing.expectEqual(wait_us == 600, window.is_slow_start);
    }
}

test "a window in slow start grows by what arrives, where it held something back" {
    for ([_]bool{ false, true, false }, [_]bool{ false, false, true }) |is_full, was_full| {
        var window = windowOf(64 << 10, 5000);
        window.round.was_full = is_full;
        window.round.was_full_before = was_full;
        const record: CongestionWindow.SendRecord = .{ .serial = 9, .sent_at_us = test_now_us };
        window.onAck(test_now_us, 700, &record, .{ .is_first = false, .is_last = false });
        const grown: u64 = if (is_full or was_full) 700 else 0;
        try testing.expectEqual((64 << 10) + grown, window.cwnd_bytes);
        try testing.expectEqual(4300, window.in_flight_bytes);
        try testing.expectEqual(700, window.delivered);
    }
    // To its upper bound.
    var window = windowOf((1 << 20) - 1, 1);
    window.round.was_full = true;
    ackByte(&window, false);
    ackByte(&window, false);
    try testing.expectEqual(1 << 20, window.cwnd_bytes);
}

test "slow start after a timeout ends at half of the window before" {
    for ([_]u64{ 65535, 65536 }) |cwnd_bytes| {
        var window = windowOf(cwnd_bytes, 1000);
        window.ssthresh_bytes = 65537;
        window.round.was_full = true;
        ackByte(&window, true);
        try testing.expectEqual(cwnd_bytes + 1, window.cwnd_bytes);
        try testing.expectEqual(cwnd_bytes == 65535, window.is_slow_start);
    }
}

test "a full round changes the window by its wait" {
    const Case = struct {
        cwnd: u64 = 200_000,
        wait: u64,
        full: u64 = 0,
        is_settling: bool = false,
        next: u64,
        next_full: u64 = 0,
    };
    // The round trip is 1000 µs: more than 1350 µs is a queue.
    const cases = [_]Case{
        .{ .wait = 1350, .next = 225_000 },
        .{ .wait = 1351, .next = 201_000 },
        .{ .wait = 1750, .next = 201_000 },
        .{ .wait = 1751, .next = 150_000 },
        .{ .wait = 1751, .is_settling = true, .next = 200_000 },
        .{ .wait = 1751, .cwnd = 131_073, .next = 131_072 },
        .{ .wait = 1751, .cwnd = 131_072, .next = 132_072 },
        // A known queue: 7/8 of it, or half of what it adds to the path.
        .{ .wait = 7_028, .full = 8000, .next = 201_000, .next_full = 8032 },
        .{ .wait = 7_029, .full = 8000, .next = 150_000, .next_full = 8032 },
        .{ .wait = 9_000, .full = 8160, .next = 150_000, .next_full = 8192 },
        .{ .wait = 9_000, .full = 8000, .cwnd = 36_768, .next = 37_768, .next_full = 8032 },
        .{ .wait = 9_000, .full = 8000, .cwnd = 36_769, .next = 36_768, .next_full = 8032 },
    };
    for (cases) |case| try checkRound(case);
}

fn checkRound(case: anytype) !void {
    var window = windowOf(case.cwnd, 1000);
    window.is_slow_start = false;
    window.round_trip_us[0] = 1000;
    window.wait_us = case.wait;
    window.full_wait_us = case.full;
    window.is_settling = case.is_settling;
    // A round that held nothing back tells nothing.
    var idle = window;
    ackByte(&idle, true);
    try testing.expectEqual(case.cwnd, idle.cwnd_bytes);
    window.round.was_full = true;
    ackByte(&window, true);
    try testing.expectEqual(case.next, window.cwnd_bytes);
    try testing.expectEqual(case.next_full, window.full_wait_us);
}

test "three losses that are more than 1/32 of what is in flight reduce the window to 7/10" {
    const Case = struct { flying: u64, delivered: u64 = 0, packets: u32, is_reduced: bool };
    const cases = [_]Case{
        .{ .flying = 20_000, .packets = 2, .is_reduced = false },
        .{ .flying = 95_999, .packets = 3, .is_reduced = true },
        .{ .flying = 96_000, .packets = 3, .is_reduced = false },
        .{ .flying = 90_000, .delivered = 5_999, .packets = 3, .is_reduced = true },
        .{ .flying = 90_000, .delivered = 6_000, .packets = 3, .is_reduced = false },
    };
    for (cases) |case| {
        var window = windowOf(100_000, case.flying);
        window.round.delivered = case.delivered;
        window.onLoss(3000, &.{ .serial = 9 }, case.packets);
        try testing.expectEqual(case.flying - 3000, window.in_flight_bytes);
        const after: u64 = if (case.is_reduced) 70_000 else 100_000;
        try testing.expectEqual(after, window.cwnd_bytes);
        try testing.expectEqual(!case.is_reduced, window.is_slow_start);
        try testing.expectEqual(0, window.full_wait_us);
        // The rest of this window's losses is answered already.
        window.onLoss(3000, &.{ .serial = 9 }, 30);
        try testing.expectEqual(70_000, window.cwnd_bytes);
        window.onLoss(3000, &.{ .serial = 9 }, 30);
        try testing.expectEqual(70_000, window.cwnd_bytes);
        // Those of the next window are not.
        window.onLoss(3000, &.{ .serial = 10 }, 30);
        try testing.expectEqual(49_000, window.cwnd_bytes);
        window.serial = 11;
        for (0..2) |_| window.onLoss(1000, &.{ .serial = 11 }, 30);
        // Its lower bound: 32 KiB and four fragments.
        try testing.expectEqual(36_768, window.cwnd_bytes);
    }
}

test "a single loss reduces the window where packets wait as long as when the network was full" {
    for ([_]u64{ 6_999, 7_000 }, [_]u64{ 100_000, 70_000 }) |wait_us, cwnd_bytes| {
        var window = windowOf(100_000, 50_000);
        window.round_trip_us[0] = 1000;
        window.full_wait_us = 8000;
        window.wait_us = wait_us;
        window.last_wait_us = 9000;
        window.onLoss(1000, &.{ .serial = 9 }, 1);
        try testing.expectEqual(cwnd_bytes, window.cwnd_bytes);
        // How long it is when full, many losses tell, and only behind a queue.
        try testing.expectEqual(8000, window.full_wait_us);
    }
    for ([_]u64{ 1350, 1351 }, [_]u64{ 0, 1351 }) |wait_us, full_wait_us| {
        var window = windowOf(100_000, 50_000);
        window.round_trip_us[0] = 1000;
        window.wait_us = 1;
        window.last_wait_us = wait_us;
        window.onLoss(3000, &.{ .serial = 9 }, 3);
        try testing.expectEqual(full_wait_us, window.full_wait_us);
        // A reduction begins a round.
        try testing.expectEqual(0, window.round.lost);
        try testing.expectEqual(10, window.round.last_serial);
    }
}

test "when half of what was lost arrives after all, the window is as before" {
    for ([_]u32{ 7, 8 }) |lost| {
        var window = windowOf(100_000, 50_000);
        window.round_trip_us[0] = 1000;
        window.full_wait_us = 8000;
        window.last_wait_us = 5000;
        window.onLoss(8000, &.{ .serial = 9 }, lost);
        try testing.expectEqual(5000, window.full_wait_us);
        for (0..3) |_| window.onSpuriousLoss();
        try testing.expectEqual(70_000, window.cwnd_bytes);
        var grown = window;
        grown.cwnd_bytes = 120_000;
        window.onSpuriousLoss();
        try testing.expectEqual(100_000, window.cwnd_bytes);
        try testing.expectEqual(8000, window.full_wait_us);
        try testing.expect(window.is_slow_start);
        try testing.expectEqual(null, window.undo);
        grown.onSpuriousLoss();
        try testing.expectEqual(120_000, grown.cwnd_bytes);
    }
}

test "bytes of an earlier window count as in flight, and their loss as nothing" {
    var window: CongestionWindow = .init(.{ .fragment_size = 1000, .bytes_max = 1 << 20 });
    const record = window.onSentBefore(9000);
    try testing.expectEqual(9000, window.in_flight_bytes);
    window.onLoss(9000, &record, 9);
    try testing.expectEqual(0, window.in_flight_bytes);
    try testing.expectEqual(64 << 10, window.cwnd_bytes);
    try testing.expectEqual(1, window.onSend(1, 1000).serial);
    // Those of this window are no earlier ones.
    window.onLoss(1000, &.{ .serial = 1 }, 9);
    try testing.expectEqual((64 << 10) * 7 / 10, window.cwnd_bytes);
    window.serial = 5;
    _ = window.onSentBefore(1);
    try testing.expectEqual(5, window.serial);
}

test "the second timeout in a row begins anew, unless something came or it is of the same silence" {
    for ([_]bool{ false, true }) |is_heard| {
        var window = windowOf(100_000, 50_000);
        window.is_slow_start = false;
        window.rate = .{ 5, 6 };
        window.round_trip_us = .{ 7, 8 };
        window.credit = 1 << 20;
        window.wait_us = 9;
        window.onTimeout(&.{ .serial = 8, .sent_at_us = 100 });
        window.onTimeout(&.{ .serial = 9, .sent_at_us = 100 });
        try testing.expectEqual(1, window.silences);
        window.serial = 12;
        window.delivered_at_us = if (is_heard) 201 else 200;
        window.onTimeout(&.{ .serial = 10, .sent_at_us = 200 });
        try testing.expectEqual(@as(u64, if (is_heard) 100_000 else 36_768), window.cwnd_bytes);
        try testing.expectEqual(!is_heard, window.is_slow_start);
        try testing.expectEqual(@as(u8, @intFromBool(is_heard)), window.silences);
        if (is_heard) continue;
        try testing.expectEqual(50_000, window.ssthresh_bytes);
        try testing.expectEqual([2]u64{ 0, 0 }, window.rate);
        try testing.expectEqual(0, window.roundTrip());
        try testing.expectEqual(64 << 10, window.credit);
        try testing.expectEqual(0, window.wait_us);
        try testing.expectEqual(12, window.round.last_serial);
        // Half of the smallest window is no bound.
        window.onTimeout(&.{ .serial = 12, .sent_at_us = 300 });
        window.serial = 13;
        window.onTimeout(&.{ .serial = 13, .sent_at_us = 300 });
        try testing.expectEqual(36_768, window.ssthresh_bytes);
        window.silences = 1;
        ackByte(&window, false);
        try testing.expectEqual(0, window.silences);
        try testing.expectEqual(test_now_us, window.delivered_at_us);
    }
}

test "the delivery rate is the highest of the last eight to sixteen full rounds" {
    var window = windowOf(1 << 20, 1 << 19);
    window.delivered = 40_000;
    const record: CongestionWindow.SendRecord =
        .{ .serial = 9, .sent_at_us = test_now_us - 2000, .delivered = 30_000 };
    window.onAck(test_now_us, 10_000, &record, .{ .is_first = false, .is_last = false });
    try testing.expectEqual([2]u64{ 0, 0 }, window.rate);
    window.onAck(test_now_us, 10_000, &record, .{ .is_first = false, .is_last = true });
    try testing.expectEqual([2]u64{ 15_000_000, 0 }, window.rate);
    for (1..17) |number| {
        ackByte(&window, true);
        window.round.was_full = true;
        ackByte(&window, true);
        const expected: [2]u64 = if (number < 8)
            .{ 15_000_000, 0 }
        else if (number < 16) .{ 0, 15_000_000 } else .{ 0, 0 };
        try testing.expectEqual(expected, window.rate);
    }
    // A lower rate counts only where the window or its pacing was the limit.
    for ([_]bool{ false, true, false }, [_]bool{ false, false, true }) |is_full, was_full| {
        var next = windowOf(1 << 20, 1 << 19);
        next.rate = .{ 1_000_000, 15_000_000 };
        next.round.was_full = is_full;
        next.round.was_full_before = was_full;
        const slow: CongestionWindow.SendRecord =
            .{ .serial = 9, .sent_at_us = test_now_us - 5000 };
        next.onAck(test_now_us, 10_000, &slow, .{ .is_first = false, .is_last = true });
        const counts = is_full or was_full;
        try testing.expectEqual(@as(u64, if (counts) 2_000_000 else 1_000_000), next.rate[0]);
        var equal = windowOf(1 << 20, 1 << 19);
        equal.rate = .{ 1_000_000, 2_000_000 };
        equal.onAck(test_now_us, 10_000, &slow, .{ .is_first = false, .is_last = true });
        try testing.expectEqual(2_000_000, equal.rate[0]);
    }
}
