//! Tests of writes.zig: each packet of a device's writes and its time. A test decides what the edge
//! answers, and when.

const std = @import("std");
const wire = @import("wire").stream;
const WriteQueue = @import("writes.zig");
const MtuProbe = @import("mtu_probe.zig");
const step = @import("step.zig");
const testing = std.testing;

const ms = std.time.us_per_ms;

const QueueFixture = struct {
    queue: WriteQueue,
    now_us: u64 = 1_000_000,
    out: [wire.packet_size_max]u8 = undefined,

    const session: step.Session = .{
        .id = 1,
        .cipher = .clear,
        .version_tag = 2,
        .version_id = .zero,
        .disk_size = 1 << 20,
        .fragment_size = wire.fragment_size_ethernet,
        .outstanding_bytes_max = 1 << 20,
        .resume_secret = @splat(0),
    };
    const bytes: [48 << 10]u8 = @splat(7);

    fn init() !QueueFixture {
        return .{ .queue = try .init(testing.allocator, 8) };
    }

    fn deinit(fixture: *QueueFixture) void {
        fixture.queue.deinit(testing.allocator);
    }

    fn write(fixture: *QueueFixture, offset: u64, length: u32) !void {
        try fixture.queue.submit(.{
            .kind = .write,
            .offset = offset,
            .length = length,
            .bytes = bytes[0..length],
        });
    }

    fn next(fixture: *QueueFixture) !?wire.Packet {
        const size = wire.fragment_size_ethernet;
        const packet = fixture.queue.transmit(fixture.now_us, &session, size, &fixture.out);
        return try wire.parse(packet orelse return null);
    }

    fn expectFragments(fixture: *QueueFixture, expected: []const u16) !void {
        for (expected) |index|
            try testing.expectEqual(index, (try fixture.next()).?.body.write.index);
        try testing.expectEqual(null, try fixture.next());
    }

    fn acknowledge(fixture: *QueueFixture, request_id: u32, code: wire.WriteCode) bool {
        return fixture.queue.acknowledge(fixture.now_us, request_id, .{ .code = code });
    }
};

test "overlapping writes and flushes wait for earlier ones, others do not" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try fixture.write(0, 1024);
    try fixture.write(512, 512);
    try fixture.write(1024, 512);
    try fixture.queue.submit(.{ .kind = .flush });
    try testing.expectEqual(1, (try fixture.next()).?.request_id);
    try testing.expectEqual(3, (try fixture.next()).?.request_id);
    try testing.expectEqual(null, try fixture.next());
    try testing.expectEqual(1536, fixture.queue.outstanding_bytes);
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expect(!fixture.acknowledge(1, .done));
    try testing.expectEqual(2, (try fixture.next()).?.request_id);
    try testing.expect(fixture.acknowledge(2, .done));
    try testing.expectEqual(null, try fixture.next());
    try testing.expect(fixture.acknowledge(3, .cache_full));
    const flush = (try fixture.next()).?;
    try testing.expectEqual(.flush, flush.body.control.operation);
    try testing.expect(fixture.acknowledge(flush.request_id, .done));
    var codes: [4]wire.WriteCode = undefined;
    for (&codes) |*code| code.* = fixture.queue.nextEnded().?.code;
    try testing.expectEqual(.cache_full, codes[2]);
    try testing.expectEqual(null, fixture.queue.nextEnded());
    try testing.expectEqual(0, fixture.queue.outstanding_bytes);
    try testing.expect(!fixture.queue.hasInFlight());
}

test "a silent write of many fragments is probed by its last one, a short one is sent again" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try fixture.write(0, 512);
    try fixture.expectFragments(&.{0});
    try fixture.write(8192, 8192);
    try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
    const due_us = fixture.queue.deadline().?;
    try testing.expect(due_us > fixture.now_us);
    fixture.queue.checkTimers(due_us - 1);
    try testing.expectEqual(null, try fixture.next());
    fixture.now_us = due_us;
    fixture.queue.checkTimers(due_us);
    try testing.expectEqual(0, fixture.queue.deadline().?);
    try testing.expectEqual(1, (try fixture.next()).?.body.write.attempt);
    try fixture.expectFragments(&.{5});
    // The edge lacks two of them.
    const missing: wire.WriteAck = .{ .code = .missing, .missing = &.{0b001010} };
    try testing.expect(fixture.queue.acknowledge(fixture.now_us, 2, missing));
    try fixture.expectFragments(&.{ 1, 3 });
    // The same answer again: they are in flight.
    try testing.expect(fixture.queue.acknowledge(fixture.now_us, 2, missing));
    try testing.expectEqual(null, try fixture.next());
}

test "an edge that is alive and gets nothing of a write gets it in smaller fragments" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try fixture.write(0, 8192);
    var rounds: u32 = 0;
    while (fixture.queue.fragment_size_max == wire.fragment_size_ethernet) {
        while (try fixture.next()) |_| {}
        fixture.now_us = fixture.queue.deadline().?;
        fixture.queue.checkTimers(fixture.now_us);
        while (try fixture.next()) |_| {}
        if (!fixture.queue.takeProbe(fixture.now_us, 100 + rounds)) continue;
        fixture.now_us += 1000;
        fixture.queue.onProbeAnswer(fixture.now_us, 100 + rounds);
        rounds += 1;
        try testing.expect(rounds < 10);
    }
    try testing.expectEqual(4, rounds);
    const narrower = fixture.queue.pending[0].fragment_size;
    try testing.expect(narrower < wire.fragment_size_ethernet);
    // A later write begins small, and after ten minutes large again.
    try testing.expect(fixture.acknowledge(1, .done));
    try fixture.write(0, 8192);
    const small = (try fixture.next()).?.body.write.fragment_size;
    try testing.expectEqual(narrower, small);
    while (try fixture.next()) |_| {}
    try testing.expect(fixture.acknowledge(2, .done));
    fixture.now_us += 10 * std.time.us_per_min;
    try fixture.write(0, 8192);
    const large = (try fixture.next()).?.body.write.fragment_size;
    try testing.expectEqual(wire.fragment_size_ethernet, large);
}

test "after a resumption everything in flight is sent again, and what waits keeps its order" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try fixture.write(0, 512);
    try fixture.write(512, 512);
    try testing.expectEqual(1, (try fixture.next()).?.request_id);
    fixture.queue.mtu_probe.schedule(fixture.now_us);
    fixture.queue.restart(wire.fragment_size_ethernet);
    try testing.expectEqual(null, fixture.queue.mtu_probe.due_at_us);
    const again = (try fixture.next()).?;
    try testing.expectEqual(1, again.request_id);
    try testing.expectEqual(1, again.body.write.attempt);
    try testing.expectEqual(2, (try fixture.next()).?.request_id);
    // The edge is executing the first one: it is not sent again before its time.
    try testing.expect(fixture.acknowledge(1, .not_yet));
    try testing.expectEqual(null, try fixture.next());
    try testing.expect(fixture.acknowledge(1, .done));
}

test "the window of writes shrinks with a loss and grows with each acknowledgement" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const first = fixture.queue.window_bytes;
    try fixture.write(0, 4096);
    try fixture.expectFragments(&.{ 0, 1, 2 });
    try testing.expect(fixture.queue.acknowledge(fixture.now_us, 1, .{
        .code = .missing,
        .missing = &.{0b001},
    }));
    try testing.expectEqual(first - first / 8, fixture.queue.window_bytes);
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expectEqual(first - first / 8 + (16 << 10), fixture.queue.window_bytes);
    try fixture.write(0, 512);
    _ = try fixture.next();
    try testing.expect(fixture.acknowledge(2, .cache_full));
    try testing.expectEqual(first - first / 8 + (16 << 10), fixture.queue.window_bytes);
    // What does not fit waits.
    fixture.queue.window_bytes = 32 << 10;
    for ([_]u64{ 0, 16 << 10, 32 << 10 }, [_]u32{ 16 << 10, 16 << 10, 512 }) |offset, length|
        try fixture.write(offset, length);
    var sent: u32 = 0;
    while (try fixture.next()) |packet| {
        try testing.expect(packet.request_id < 5);
        sent += 1;
    }
    try testing.expectEqual(24, sent);
    try testing.expect(fixture.acknowledge(3, .done));
    try testing.expectEqual(5, (try fixture.next()).?.request_id);
}

test "another process of the device uses ids beyond all of the earlier one" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    fixture.queue.continueAfter(10);
    try testing.expect(fixture.queue.is_started);
    try fixture.write(0, 512);
    try testing.expectEqual(10 + wire.writes.window + 1, (try fixture.next()).?.request_id);
    for (0..7) |number| try fixture.write(512 * number, 512);
    try testing.expectError(error.Full, fixture.write(0, 512));
    fixture.queue.clear();
    try testing.expectEqual(null, try fixture.next());
}

/// Nothing is sent before `at_us`, and the queue says so; then its timers are checked.
fn expectQuietUntil(fixture: *QueueFixture, at_us: u64) !void {
    try testing.expectEqual(null, try fixture.next());
    try testing.expectEqual(at_us, fixture.queue.deadline());
    fixture.now_us = at_us - 1;
    fixture.queue.checkTimers(fixture.now_us);
    try testing.expectEqual(null, try fixture.next());
    fixture.now_us = at_us;
    fixture.queue.checkTimers(fixture.now_us);
}

test "an unanswered request is sent again after 0.2 s, then twice as long, up to a second" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try testing.expectEqual(null, fixture.queue.deadline());
    try fixture.queue.submit(.{ .kind = .flush });
    try testing.expectEqual(0, fixture.queue.deadline());
    var packet = (try fixture.next()).?;
    for ([_]u64{ 200, 400, 800, 1000, 1000, 1000 }, 0..) |wait_ms, attempt| {
        try testing.expectEqual(1, packet.request_id);
        try testing.expectEqual(1, packet.session_id);
        try testing.expectEqual(2, packet.body.control.version_tag);
        try testing.expectEqual(attempt, packet.body.control.attempt);
        try expectQuietUntil(&fixture, fixture.now_us + wait_ms * ms);
        packet = (try fixture.next()).?;
    }
    try testing.expect(fixture.queue.hasInFlight());
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expect(!fixture.queue.hasInFlight());
    try testing.expectEqual(null, fixture.queue.deadline());
}

test "an answer is a sample if the request was sent once, or was executing when it was sent again" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const rtt = &fixture.queue.rtt;
    try fixture.write(0, 512);
    _ = try fixture.next();
    fixture.now_us += 200 * ms;
    fixture.queue.checkTimers(fixture.now_us);
    try testing.expectEqual(1, (try fixture.next()).?.body.write.attempt);
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expect(!rtt.sampled);
    // Executed when it was sent again: the edge had the first transmission.
    try fixture.write(0, 512);
    _ = try fixture.next();
    fixture.now_us += 1 * ms;
    try testing.expect(fixture.acknowledge(2, .not_yet));
    fixture.now_us += 199 * ms;
    fixture.queue.checkTimers(fixture.now_us);
    try testing.expectEqual(1, (try fixture.next()).?.body.write.attempt);
    fixture.now_us += 50 * ms;
    try testing.expect(fixture.acknowledge(2, .done));
    try testing.expectEqual(250 * ms, rtt.srtt_us);
    // Sent once.
    try fixture.queue.submit(.{ .kind = .discard, .offset = 512, .length = 1024 });
    const discard = (try fixture.next()).?.body.control;
    try testing.expectEqual(.discard, discard.operation);
    try testing.expectEqual(512, discard.offset);
    try testing.expectEqual(1024, discard.length);
    try testing.expectEqual(0, discard.attempt);
    fixture.now_us += 90 * ms;
    try testing.expect(fixture.acknowledge(3, .cache_full));
    try testing.expectEqual((7 * 250 + 90) * ms / 8, rtt.srtt_us);
    // From now on requests wait as long as that says. No probe is wanted any more.
    try testing.expect(!fixture.queue.takeProbe(fixture.now_us, 100));
    try fixture.queue.submit(.{ .kind = .flush });
    _ = try fixture.next();
    try expectQuietUntil(&fixture, fixture.now_us + rtt.rto_us);
    try testing.expectEqual(1, (try fixture.next()).?.body.control.attempt);
}

test "a WRITE has its part of the bytes, and names all of the range" {
    const fixture = try testing.allocator.create(QueueFixture);
    defer testing.allocator.destroy(fixture);
    fixture.* = try .init();
    defer fixture.deinit();
    var bytes: [6 * 512]u8 = undefined;
    for (&bytes, 0..) |*byte, at| byte.* = @truncate(at / 7);
    try fixture.queue.submit(.{
        .kind = .write,
        .tag = 99,
        .offset = 8192,
        .length = bytes.len,
        .bytes = &bytes,
    });
    var at: usize = 0;
    for (0..3) |index| {
        const packet = (try fixture.next()).?;
        const write = packet.body.write;
        try testing.expectEqual(1, packet.session_id);
        try testing.expectEqual(2, write.version_tag);
        try testing.expectEqual(8192, write.offset);
        try testing.expectEqual(bytes.len, write.length);
        try testing.expectEqual(1440, write.fragment_size);
        try testing.expectEqual(index, write.index);
        try testing.expectEqual(0, write.attempt);
        try testing.expectEqualSlices(u8, bytes[at..][0..write.payload.len], write.payload);
        at += write.payload.len;
    }
    try testing.expectEqual(bytes.len, at);
    try testing.expectEqual(bytes.len, fixture.queue.outstanding_bytes);
    try testing.expect(fixture.acknowledge(1, .beyond_the_end));
    try testing.expectEqual(0, fixture.queue.outstanding_bytes);
    const ended = fixture.queue.nextEnded().?;
    try testing.expectEqual(99, ended.tag);
    try testing.expectEqual(.beyond_the_end, ended.code);
}

test "two ranges wait for each other exactly if they share a byte, and in the order of submission" {
    for (0..8) |first| for (1..4) |first_length| for (0..8) |second| for (1..4) |second_length| {
        const shares = first < second + second_length and second < first + first_length;
        for ([_]WriteQueue.Kind{ .write, .discard }) |kind| {
            var fixture: QueueFixture = try .init();
            defer fixture.deinit();
            fixture.queue.request_id_next = std.math.maxInt(u32);
            for ([_][2]u64{ .{ first, first_length }, .{ second, second_length } }) |range|
                try fixture.queue.submit(.{
                    .kind = kind,
                    .offset = 512 * range[0],
                    .length = @intCast(512 * range[1]),
                    .bytes = QueueFixture.bytes[0..@intCast(512 * range[1])],
                });
            var sent: [2]bool = @splat(false);
            while (try fixture.next()) |packet| sent[packet.request_id +% 1] = true;
            try testing.expectEqual([2]bool{ true, !shares }, sent);
            try testing.expect(fixture.acknowledge(std.math.maxInt(u32), .done));
            try testing.expectEqual(shares, try fixture.next() != null);
        }
    };
}

test "ids in flight lie within 64, so that the edge knows all of them" {
    var queue: WriteQueue = try .init(testing.allocator, wire.writes.window);
    defer queue.deinit(testing.allocator);
    var out: [wire.packet_size_max]u8 = undefined;
    const size = wire.fragment_size_ethernet;
    for (0..wire.writes.window) |index|
        try queue.submit(.{ .kind = .discard, .offset = 512 * index, .length = 512 });
    try testing.expectError(error.Full, queue.submit(.{ .kind = .flush }));
    for (0..wire.writes.window) |_|
        _ = queue.transmit(1, &QueueFixture.session, size, &out).?;
    // All but the first end: two more may not be sent before it has ended.
    for (2..wire.writes.window + 1) |id|
        try testing.expect(queue.acknowledge(2, @intCast(id), .{ .code = .done }));
    while (queue.nextEnded()) |_| {}
    for (100..102) |index|
        try queue.submit(.{ .kind = .discard, .offset = 512 * index, .length = 512 });
    try testing.expectEqual(null, queue.transmit(3, &QueueFixture.session, size, &out));
    try testing.expect(queue.deadline().? > 3);
    try testing.expect(queue.acknowledge(4, 1, .{ .code = .done }));
    try testing.expectEqual(0, queue.deadline());
    for (0..2) |_| _ = queue.transmit(4, &QueueFixture.session, size, &out).?;
    // The last id of the window may be sent.
    while (queue.nextEnded()) |_| {}
    try testing.expect(queue.acknowledge(5, 66, .{ .code = .done }));
    _ = queue.nextEnded().?;
    queue.request_id_next = 65 + wire.writes.window - 1;
    for (0..2) |index|
        try queue.submit(.{ .kind = .discard, .offset = 512 * index, .length = 512 });
    const last = try wire.parse(queue.transmit(6, &QueueFixture.session, size, &out).?);
    try testing.expectEqual(65 + 63, last.request_id);
    try testing.expectEqual(null, queue.transmit(6, &QueueFixture.session, size, &out));
}

test "a write waits while the window is full, one alone never does, and others are not limited" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    fixture.queue.window_bytes = 32 << 10;
    try fixture.write(0, 48 << 10);
    while (try fixture.next()) |packet| try testing.expectEqual(1, packet.request_id);
    try testing.expectEqual(48 << 10, fixture.queue.outstanding_bytes);
    try fixture.write(64 << 10, 512);
    try testing.expectEqual(null, try fixture.next());
    try fixture.queue.submit(.{ .kind = .discard, .offset = 128 << 10, .length = 4096 });
    try testing.expectEqual(3, (try fixture.next()).?.request_id);
    try testing.expectEqual(52 << 10, fixture.queue.outstanding_bytes);
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expectEqual(48 << 10, fixture.queue.window_bytes);
    try testing.expectEqual(2, (try fixture.next()).?.request_id);
    // Exactly full, and a sector more.
    fixture.queue.window_bytes = 32 << 10;
    const left = (32 << 10) - 4096 - 512;
    try fixture.write(256 << 10, left + 512);
    try testing.expectEqual(null, try fixture.next());
    try fixture.write(512 << 10, left);
    while (try fixture.next()) |packet| try testing.expectEqual(5, packet.request_id);
    try testing.expectEqual(32 << 10, fixture.queue.outstanding_bytes);
}

test "the window of writes stays between 32 KiB and 1 MiB" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    fixture.queue.window_bytes = (1 << 20) - 5;
    try fixture.write(0, 512);
    _ = try fixture.next();
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expectEqual(1 << 20, fixture.queue.window_bytes);
    fixture.queue.window_bytes = 33 << 10;
    try fixture.write(0, 4096);
    try fixture.expectFragments(&.{ 0, 1, 2 });
    for ([_]u8{ 0b110, 0b100 }) |missing| {
        const ack: wire.WriteAck = .{ .code = .missing, .missing = &.{missing} };
        try testing.expect(fixture.queue.acknowledge(fixture.now_us, 2, ack));
        try testing.expectEqual(32 << 10, fixture.queue.window_bytes);
        while (try fixture.next()) |_| {}
    }
}

test "fragments that the edge lacks are sent at once if it got others, and else after a round" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    // With a sample, so that the round is longer than the timeout.
    fixture.queue.rtt.sample(1000);
    try fixture.write(0, 8192);
    try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
    const began_us = fixture.now_us;
    const all: wire.WriteAck = .{ .code = .missing, .missing = &.{0b111111} };
    const two: wire.WriteAck = .{ .code = .missing, .missing = &.{0b000110} };
    const queue = &fixture.queue;
    try testing.expect(!queue.acknowledge(fixture.now_us, 9, two));
    // The same number as before: on its way, or lost.
    fixture.now_us = began_us + MtuProbe.roundUs(0) - 1;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, all));
    try testing.expectEqual(null, try fixture.next());
    try testing.expectEqual(0, queue.pending[0].futile);
    fixture.now_us += 1;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, all));
    try testing.expectEqual(1, queue.pending[0].futile);
    try testing.expectEqual(1, queue.pending[0].attempt);
    try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
    // Fewer: something arrived.
    fixture.now_us += 10;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try testing.expectEqual(0, queue.pending[0].futile);
    try testing.expectEqual(2, queue.pending[0].missing);
    const window_bytes = queue.window_bytes;
    // The rest of them is still to be sent: nothing changes.
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try testing.expectEqual(window_bytes, queue.window_bytes);
    try testing.expectEqual(2, queue.pending[0].attempt);
    try fixture.expectFragments(&.{ 1, 2 });
    const round_us = fixture.now_us;
    // A second time the same: after the round that begins now.
    fixture.now_us = round_us + MtuProbe.roundUs(0) - 1;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try testing.expectEqual(null, try fixture.next());
    fixture.now_us += 1;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try fixture.expectFragments(&.{ 1, 2 });
    try testing.expectEqual(1, queue.pending[0].futile);
    // The second round is twice as long.
    fixture.now_us += MtuProbe.roundUs(1) - 1;
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try testing.expectEqual(null, try fixture.next());
    // It is being executed: all of it may have to be sent again.
    try testing.expect(fixture.acknowledge(1, .not_yet));
    try testing.expectEqual(6, queue.pending[0].missing);
    try testing.expectEqual(0, queue.pending[0].futile);
    try testing.expect(queue.pending[0].is_executing);
    try testing.expect(queue.acknowledge(fixture.now_us, 1, two));
    try fixture.expectFragments(&.{ 1, 2 });
    // Others than writes have no fragments.
    try fixture.queue.submit(.{ .kind = .discard, .offset = 1 << 20, .length = 512 });
    _ = try fixture.next();
    try testing.expect(!queue.acknowledge(fixture.now_us, 2, two));
}

test "before any sample, a round without progress lasts the first timeout" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    try fixture.write(0, 8192);
    try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
    const all: wire.WriteAck = .{ .code = .missing, .missing = &.{0b111111} };
    fixture.now_us += 200 * ms - 1;
    try testing.expect(fixture.queue.acknowledge(fixture.now_us, 1, all));
    try testing.expectEqual(null, try fixture.next());
    fixture.now_us += 1;
    try testing.expect(fixture.queue.acknowledge(fixture.now_us, 1, all));
    try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
}

test "up to three fragments are sent again when a write is silent, of more only the last" {
    for ([_]u32{ 512, 2048, 4096, 4608 }, [_][]const u16{
        &.{0},
        &.{ 0, 1 },
        &.{ 0, 1, 2 },
        &.{3},
    }) |length, again| {
        var fixture: QueueFixture = try .init();
        defer fixture.deinit();
        try fixture.write(0, length);
        while (try fixture.next()) |_| {}
        fixture.now_us = fixture.queue.deadline().?;
        fixture.queue.checkTimers(fixture.now_us);
        try fixture.expectFragments(again);
    }
}

test "the edge is probed for a write that was sent again, and never for what cannot be smaller" {
    const kinds = [_]WriteQueue.Kind{ .write, .flush, .discard };
    for (kinds) |kind| for ([_]u16{ 1440, 516 }) |largest| {
        var fixture: QueueFixture = try .init();
        defer fixture.deinit();
        const queue = &fixture.queue;
        queue.fragment_size_max = largest;
        queue.narrow_since_us = fixture.now_us;
        try queue.submit(.{ .kind = kind, .length = 512, .bytes = QueueFixture.bytes[0..512] });
        while (try fixture.next()) |_| {}
        try testing.expect(!queue.takeProbe(fixture.now_us, 100));
        fixture.now_us = queue.deadline().?;
        queue.checkTimers(fixture.now_us);
        const is_probed = kind == .write and largest == 1440;
        // Requests go first.
        if (is_probed) try testing.expectEqual(fixture.now_us, queue.mtu_probe.due_at_us);
        while (try fixture.next()) |_| {}
        try testing.expectEqual(is_probed, queue.takeProbe(fixture.now_us, 100));
        try testing.expect(!queue.takeProbe(fixture.now_us, 101));
    };
}

test "an answered write needs no probe, and one that was answered since it was sent ends it" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    try fixture.write(0, 512);
    _ = try fixture.next();
    fixture.now_us = queue.deadline().?;
    queue.checkTimers(fixture.now_us);
    _ = try fixture.next();
    try testing.expect(fixture.acknowledge(1, .not_yet));
    try testing.expect(!queue.takeProbe(fixture.now_us, 100));
    try testing.expectEqual(null, queue.mtu_probe.due_at_us);
    // Sent before the probe and not answered: its time ends. After the probe: nothing is known.
    for ([_]bool{ false, true }) |is_later| {
        fixture.now_us = queue.deadline().?;
        queue.checkTimers(fixture.now_us);
        while (try fixture.next()) |_| {}
        fixture.now_us = @max(fixture.now_us, queue.mtu_probe.due_at_us.?);
        const sent_us = fixture.now_us;
        try testing.expect(queue.takeProbe(sent_us, 200));
        if (is_later) queue.pending[0].sent_at_us = sent_us + 1;
        fixture.now_us += 30 * ms;
        queue.onProbeAnswer(fixture.now_us, 201);
        try testing.expectEqual(null, queue.pending[0].round_ends_us);
        queue.onProbeAnswer(fixture.now_us, 200);
        // Twice the probe's time.
        const ends_us: ?u64 = if (is_later) null else sent_us + 60 * ms;
        try testing.expectEqual(ends_us, queue.pending[0].round_ends_us);
        if (is_later) continue;
        try testing.expectEqual(ends_us.?, queue.deadline());
        try testing.expect(fixture.acknowledge(1, .not_yet));
        try testing.expectEqual(null, queue.pending[0].round_ends_us);
    }
    // At least the round of its size.
    queue.pending[0].sent_at_us = fixture.now_us;
    queue.pending[0].futile = 2;
    queue.mtu_probe.schedule(fixture.now_us + std.time.us_per_s);
    fixture.now_us += std.time.us_per_s;
    try testing.expect(queue.takeProbe(fixture.now_us, 300));
    queue.onProbeAnswer(fixture.now_us + 1, 300);
    try testing.expectEqual(fixture.now_us + 80 * ms, queue.pending[0].round_ends_us.?);
}

test "after four futile rounds all large writes in flight are sent smaller, and the window stays" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    queue.rtt.sample(1000);
    try fixture.write(0, 8192);
    try fixture.write(8192, 4096);
    while (try fixture.next()) |_| {}
    try queue.submit(.{ .kind = .discard, .offset = 1 << 20, .length = 512 });
    _ = (try fixture.next()).?;
    try fixture.write(16384, 512);
    queue.narrow_since_us = fixture.now_us;
    queue.fragment_size_max = 1340;
    _ = (try fixture.next()).?;
    queue.fragment_size_max = 1440;
    const all: wire.WriteAck = .{ .code = .missing, .missing = &.{0b111111} };
    for (0..4) |round| {
        try testing.expectEqual(round, queue.pending[0].futile);
        try testing.expectEqual(1440, queue.pending[0].fragment_size);
        fixture.now_us += MtuProbe.roundUs(@intCast(round));
        try testing.expect(queue.acknowledge(fixture.now_us, 1, all));
        if (round < 3) try fixture.expectFragments(&.{ 0, 1, 2, 3, 4, 5 });
    }
    try testing.expectEqual(1340, queue.fragment_size_max);
    try testing.expectEqual(fixture.now_us, queue.narrow_since_us);
    const sizes = [_]u16{ 1340, 1340, 1440, 1340 };
    for (sizes, [_]u16{ 3, 1, 0, 0 }, queue.pending[0..4]) |size, attempt, *write| {
        if (write.kind == .write) try testing.expectEqual(size, write.fragment_size);
        try testing.expectEqual(attempt, write.attempt);
        try testing.expectEqual(0, write.futile);
    }
    var sent: [5]u32 = @splat(0);
    while (try fixture.next()) |packet| sent[packet.request_id] += 1;
    try testing.expectEqual([5]u32{ 0, 7, 4, 0, 0 }, sent);
    // The sizes below follow.
    for ([_]u16{ 1196, 516, 516 }) |size| {
        for (0..4) |round| {
            fixture.now_us += @max(MtuProbe.roundUs(@intCast(round)), 250 * ms);
            const bits: [4]u8 = @splat(0xff);
            const missing: wire.WriteAck = .{ .code = .missing, .missing = &bits };
            try testing.expect(queue.acknowledge(fixture.now_us, 1, missing));
            // Also where none is smaller.
            try testing.expect(try fixture.next() != null);
            while (try fixture.next()) |_| {}
        }
        try testing.expectEqual(size, queue.fragment_size_max);
    }
}

test "large fragments are tried again ten minutes after a smaller size was found" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    queue.fragment_size_max = 516;
    queue.narrow_since_us = fixture.now_us;
    const began_us = fixture.now_us;
    for ([_]u64{ 0, 10 * std.time.us_per_min - 1, 10 * std.time.us_per_min }, 1..) |after_us, id| {
        fixture.now_us = began_us + after_us;
        try fixture.write(0, 512);
        const size = (try fixture.next()).?.body.write.fragment_size;
        try testing.expectEqual(@as(u16, if (id == 3) 1440 else 516), size);
        while (try fixture.next()) |_| {}
        try testing.expect(fixture.acknowledge(@intCast(id), .done));
        _ = queue.nextEnded();
    }
    // Never larger than reads: their path is that narrow, too.
    try fixture.write(0, 512);
    const packet = queue.transmit(fixture.now_us, &QueueFixture.session, 1000, &fixture.out).?;
    try testing.expectEqual(1000, (try wire.parse(packet)).body.write.fragment_size);
    queue.restart(800);
    const again = queue.transmit(fixture.now_us, &QueueFixture.session, 1440, &fixture.out).?;
    try testing.expectEqual(800, (try wire.parse(again)).body.write.fragment_size);
    queue.fragment_size_max = 600;
    queue.restart(1440);
    const last = queue.transmit(fixture.now_us, &QueueFixture.session, 1440, &fixture.out).?;
    try testing.expectEqual(600, (try wire.parse(last)).body.write.fragment_size);
    try testing.expectEqual(2, (try wire.parse(last)).body.write.attempt);
}

test "ids of another process continue 65 after its last one, also where they wrap" {
    for ([_]u32{ 0, 10, std.math.maxInt(u32) - 64, std.math.maxInt(u32) }) |last| {
        var fixture: QueueFixture = try .init();
        defer fixture.deinit();
        try testing.expect(!fixture.queue.is_started);
        fixture.queue.continueAfter(last);
        try fixture.queue.submit(.{ .kind = .flush });
        try testing.expectEqual(last +% 65, (try fixture.next()).?.request_id);
    }
}

test "a queue that is cleared is new" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    const fresh = queue.*;
    try fixture.write(0, 8192);
    while (try fixture.next()) |_| {}
    fixture.now_us = queue.deadline().?;
    queue.checkTimers(fixture.now_us);
    try testing.expect(queue.is_started);
    queue.clear();
    try testing.expectEqual(fresh, queue.*);
    for (queue.pending) |*write| try testing.expectEqual(WriteQueue.PendingWrite{}, write.*);
}

test "a queue waits for the earliest of its requests" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const began_us = fixture.now_us;
    for (0..3) |index| {
        try fixture.write(512 * index, 512);
        _ = (try fixture.next()).?;
        fixture.now_us += 10 * ms;
        try testing.expectEqual(began_us + 200 * ms, fixture.queue.deadline());
    }
    fixture.queue.pending[1].timeout_us = 50 * ms;
    try testing.expectEqual(began_us + 60 * ms, fixture.queue.deadline());
    fixture.queue.mtu_probe.schedule(began_us + 40 * ms);
    try testing.expectEqual(began_us + 40 * ms, fixture.queue.deadline());
    fixture.queue.mtu_probe.due_at_us = began_us + 70 * ms;
    try testing.expectEqual(began_us + 60 * ms, fixture.queue.deadline());
}

test "after a resumption a write begins anew: its fragments, its round and its sample" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    queue.fragment_size_max = 516;
    queue.narrow_since_us = fixture.now_us;
    try fixture.write(0, 4096);
    _ = (try fixture.next()).?;
    try testing.expect(fixture.acknowledge(1, .not_yet));
    queue.pending[0].round_ends_us = fixture.now_us + 1;
    // Large fragments pass at the other edge.
    queue.fragment_size_max = 1440;
    queue.restart(1440);
    try fixture.expectFragments(&.{ 0, 1, 2 });
    try testing.expectEqual(fixture.now_us + 200 * ms, queue.deadline());
    fixture.now_us += 5 * ms;
    try testing.expect(fixture.acknowledge(1, .done));
    try testing.expect(!queue.rtt.sampled);
}

test "no probe goes for a write that has packets to send, or for what has one packet only" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    try fixture.queue.submit(.{ .kind = .flush });
    _ = (try fixture.next()).?;
    queue.pending[0].attempt = 1;
    queue.mtu_probe.schedule(fixture.now_us);
    try testing.expect(!queue.takeProbe(fixture.now_us, 100));
    try testing.expectEqual(null, queue.mtu_probe.due_at_us);
    try testing.expect(fixture.acknowledge(1, .done));
    _ = queue.nextEnded();
    try fixture.write(0, 4096);
    _ = (try fixture.next()).?;
    queue.pending[0].attempt = 1;
    queue.mtu_probe.schedule(fixture.now_us);
    try testing.expect(!queue.takeProbe(fixture.now_us, 100));
    while (try fixture.next()) |_| {}
    queue.mtu_probe.schedule(fixture.now_us);
    try testing.expect(queue.takeProbe(fixture.now_us, 100));
}

test "a round that ends sends a write again without doubling its timeout" {
    var fixture: QueueFixture = try .init();
    defer fixture.deinit();
    const queue = &fixture.queue;
    try fixture.write(0, 8192);
    while (try fixture.next()) |_| {}
    const write = &queue.pending[0];
    write.round_ends_us = fixture.now_us + 50 * ms;
    try expectQuietUntil(&fixture, fixture.now_us + 50 * ms);
    try fixture.expectFragments(&.{5});
    try testing.expectEqual(1, write.futile);
    try testing.expectEqual(200 * ms, write.timeout_us);
    try testing.expectEqual(null, write.round_ends_us);
    // An answer ends a round, also while its fragments are still being sent.
    write.round_ends_us = fixture.now_us + 50 * ms;
    write.to_send.set(2);
    const ack: wire.WriteAck = .{ .code = .missing, .missing = &.{0b000100} };
    try testing.expect(queue.acknowledge(fixture.now_us, 1, ack));
    try testing.expectEqual(null, write.round_ends_us);
    try testing.expect(write.is_answered);
}
