//! Tests of sends.zig: READY and REPORT of a device and their times, with the device alone.

const std = @import("std");
const wire = @import("wire").stream;
const TestDevice = @import("test_device.zig");
const testing = std.testing;

test "READY is retransmitted ever more rarely until its own acknowledgement, which counts once" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    try device.expectIgnored(TestDevice.packetOf(1, .ready_ack));
    client.reportReady(device.now_us, .failed, 123, .{ .code = "disk", .sentence = "no disk" });
    try testing.expectEqual(device.now_us, client.deadline());
    const packet = (try device.next()).?;
    const ready = packet.body.ready;
    try testing.expectEqual(.failed, ready.outcome);
    try testing.expectEqual(123, ready.uptime_us);
    try testing.expectEqualStrings("disk", ready.code[0..4]);
    try testing.expectEqual(0, ready.code[4]);
    try testing.expectEqualStrings("no disk", ready.sentence);
    var wait_us: u64 = TestDevice.timeout_us;
    for (0..12) |_| {
        try device.expectNothingUntil(device.now_us + wait_us);
        try testing.expectEqual(packet.request_id, (try device.next()).?.request_id);
        wait_us = @min(2 * wait_us, std.time.us_per_s);
    }
    try testing.expectEqual(std.time.us_per_s, wait_us);
    try device.expectIgnored(TestDevice.packetOf(packet.request_id + 1, .ready_ack));
    try testing.expectEqual(null, client.nextEvent());
    for (0..2) |_| try device.expectTaken(TestDevice.packetOf(packet.request_id, .ready_ack));
    try testing.expect(client.nextEvent().? == .ready_acknowledged);
    try testing.expectEqual(null, client.nextEvent());
    try device.expectTaken(TestDevice.packetOf(packet.request_id, .ready_ack));
    try testing.expectEqual(null, client.nextEvent());
    try device.expectNothing();
    try testing.expectEqual(null, client.deadline());
    try testing.expect(client.times.is_over);
}

test "an order is confirmed by a report at once, and only that report's acknowledgement is told" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    client.report(device.now_us, .{ .uptime_us = 1000 });
    const first = (try device.next()).?;
    try testing.expectEqual(@as([16]u8, @splat(0)), first.body.report.order_id);
    device.now_us += 100;
    const order: wire.ReportAck = .{ .order = .power_off, .order_id = @splat(0x0d) };
    try device.expectTaken(TestDevice.packetOf(first.request_id, .{ .report_ack = order }));
    const told = client.nextEvent().?.order;
    try testing.expectEqual(.power_off, told.kind);
    try testing.expectEqual(@as([16]u8, @splat(0x0d)), told.id.bytes);
    try testing.expectEqual(null, client.nextEvent());
    const second = (try device.next()).?;
    try testing.expect(second.request_id != first.request_id);
    try testing.expectEqual(@as([16]u8, @splat(0x0d)), second.body.report.order_id);
    try testing.expectEqual(1100, second.body.report.uptime_us);
    // A late answer to the first report.
    try device.expectIgnored(TestDevice.packetOf(first.request_id, .{ .report_ack = .{} }));
    try device.expectNothingUntil(device.now_us + TestDevice.timeout_us);
    try testing.expectEqual(second.request_id, (try device.next()).?.request_id);
    try device.expectTaken(TestDevice.packetOf(second.request_id, .{ .report_ack = order }));
    try testing.expect(client.nextEvent().? == .report_acknowledged);
    try testing.expectEqual(null, client.nextEvent());
    try device.expectNothing();
    try testing.expectEqual(null, client.deadline());
}

test "an acknowledgement that is not told yet is dropped when an order follows it" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    client.report(device.now_us, .{ .uptime_us = 1 });
    const first = (try device.next()).?;
    try device.expectTaken(TestDevice.packetOf(first.request_id, .{ .report_ack = .{} }));
    client.report(device.now_us, .{ .uptime_us = 2 });
    const second = (try device.next()).?;
    const order: wire.ReportAck = .{ .order = .restart, .order_id = @splat(1) };
    try device.expectTaken(TestDevice.packetOf(second.request_id, .{ .report_ack = order }));
    try testing.expectEqual(.restart, client.nextEvent().?.order.kind);
    try testing.expectEqual(null, client.nextEvent());
}

test "a probe and a report that is cut take ids that no later request has" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    const name: [20]u8 = @splat('x');
    var steps: wire.StepList = .empty;
    for (0..wire.steps_max) |_|
        try steps.append(.{ .group = .unit, .name = &name, .start_us = 0, .duration_us = 1 });
    client.report(device.now_us, .{ .uptime_us = 1, .steps = steps.view() });
    const whole = (try device.next()).?;
    client.report_state.sent_count = 10;
    device.now_us += 600 * std.time.us_per_ms;
    const cut = (try device.next()).?;
    try testing.expect(cut.body.report.steps.count < wire.steps_max);
    const probe = (try device.next()).?;
    try testing.expectEqual(wire.packet_size_min, probe.body.probe.size);
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    const ids = [_]u32{ whole.request_id, cut.request_id, probe.request_id, asked.request_id };
    for (ids, 0..) |id, index| for (ids[0..index]) |before| try testing.expect(id > before);
    // The cut one keeps its id, and takes no other.
    const next = client.request_id_next;
    device.now_us += std.time.us_per_s;
    while (try device.next()) |packet| if (packet.body == .report)
        try testing.expectEqual(cut.request_id, packet.request_id);
    try testing.expect(client.request_id_next <= next + 1);
}

/// One read of 512 bytes, which ends `fetch_us` after its READ; returns the READ's id.
fn fetchOne(device: *TestDevice, fetch_us: u64) !u32 {
    var buffer: [512]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const packet = (try device.next()).?;
    device.now_us += fetch_us;
    const answer: wire.Body = .{ .data = .{ .index = 0, .payload = &@as([512]u8, @splat(7)) } };
    try device.expectTaken(newer(packet.request_id, answer));
    try testing.expect(device.client.nextEvent().? == .read_done);
    return packet.request_id;
}

fn newer(request_id: u32, body: wire.Body) wire.Packet {
    var packet = TestDevice.packetOf(request_id, body);
    packet.version = .v3;
    return packet;
}

/// With an open session of version 3.
fn openNewer(device: *TestDevice) !void {
    var welcome = TestDevice.welcome_usual;
    for (0..2) |_| {
        const packet = (try device.next()).?;
        // The same hello for an edge of the release before follows the first one.
        _ = try device.next();
        device.now_us += TestDevice.round_trip_us;
        const hello = packet.body.hello;
        welcome.client_nonce = hello.client_nonce;
        var answer: wire.Packet = if (std.mem.allEqual(u8, &hello.cookie, 0))
            TestDevice.cookieOf(&hello)
        else
            TestDevice.welcomeOf(&hello, welcome);
        answer.version = .v3;
        try device.expectTaken(answer);
    }
    try testing.expect(device.client.nextEvent().? == .established);
    try testing.expectEqual(.v3, device.client.session.?.version);
}

test "the times of reads are sent when they fill a packet, and before what ends their part" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    try openNewer(&device);
    const client = &device.client;
    var ids: [32]u32 = undefined;
    for (&ids, 0..) |*id, index| {
        try device.expectNothing();
        id.* = try fetchOne(&device, 100 + index);
    }
    const full = (try device.next()).?.body.fetch_times.reads;
    try testing.expectEqual(ids.len, full.count());
    for (ids, 0..) |id, index| try testing.expectEqual(
        wire.FetchTime{ .request_id = id, .fetch_us = @intCast(100 + index) },
        full.at(@intCast(index)),
    );
    try device.expectNothing();
    const before_report = try fetchOne(&device, 700);
    client.report(device.now_us, .{ .uptime_us = 1 });
    const first = (try device.next()).?.body.fetch_times.reads;
    try testing.expectEqual(1, first.count());
    try testing.expectEqual(before_report, first.at(0).request_id);
    const report = (try device.next()).?;
    try device.expectTaken(newer(report.request_id, .{ .report_ack = .{} }));
    const before_ready = try fetchOne(&device, 800);
    client.reportReady(device.now_us, .ready, 1, .{});
    const last = (try device.next()).?.body.fetch_times.reads;
    try testing.expectEqual(before_ready, last.at(0).request_id);
    try testing.expectEqual(800, last.at(0).fetch_us);
    try testing.expect((try device.next()).?.body == .ready);
    // The boot is over.
    for (0..ids.len) |_| _ = try fetchOne(&device, 1);
    client.report(device.now_us, .{ .uptime_us = 2 });
    while (try device.next()) |packet| try testing.expect(packet.body != .fetch_times);
}

test "the first three reports of a session say before them what the machine is" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    device.client.identity.machine = .{ .cpu_count = 4, .memory_mib = 100 };
    try openNewer(&device);
    for (0..5) |index| {
        device.client.report(device.now_us, .{ .uptime_us = 1 });
        if (index < 3)
            try testing.expectEqual(4, (try device.next()).?.body.machine.cpu_count);
        const report = (try device.next()).?;
        try testing.expect(report.body == .report);
        try device.expectTaken(newer(report.request_id, .{ .report_ack = .{} }));
    }
}

test "an edge of version 2 is told no times of reads, and not what the machine is" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    device.client.identity.machine = .{ .cpu_count = 4, .memory_mib = 100 };
    for (0..40) |_| {
        var buffer: [512]u8 = undefined;
        try device.client.submit(1, 0, &buffer);
        const asked = (try device.nextRead()).?;
        try device.answerAll(&asked);
        try testing.expect(device.client.nextEvent().? == .read_done);
    }
    device.client.report(device.now_us, .{ .uptime_us = 1 });
    try testing.expect((try device.next()).?.body == .report);
}

test "what the network does is told before reports and the end of a boot, and twice after it" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    device.client.identity.card = .{ .duplex = .full, .mtu = 1500 };
    try openNewer(&device);
    for (0..2) |_| {
        device.client.report(device.now_us, .{ .uptime_us = 1 });
        const said = (try device.next()).?.body.network;
        try testing.expectEqual(1500, said.card.mtu);
        try testing.expect(said.is_settled and !said.is_final);
        const report = (try device.next()).?;
        try device.expectTaken(newer(report.request_id, .{ .report_ack = .{} }));
    }
    device.client.reportReady(device.now_us, .ready, 1, .{});
    try testing.expect((try device.next()).?.body.network.is_final);
    const ready = (try device.next()).?;
    try device.expectTaken(newer(ready.request_id, .ready_ack));
    device.client.identity.card = .{ .mtu = 9000 };
    for (0..5) |index| {
        device.client.report(device.now_us, .{ .uptime_us = 1 });
        // READY was sent with the first of them.
        if (index < 2)
            try testing.expectEqual(1500, (try device.next()).?.body.network.card.mtu);
        const report = (try device.next()).?;
        try testing.expect(report.body == .report);
        try device.expectTaken(newer(report.request_id, .{ .report_ack = .{} }));
    }
}

test "a device whose card nobody knows says nothing of the network" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    try openNewer(&device);
    device.client.report(device.now_us, .{ .uptime_us = 1 });
    const report = (try device.next()).?;
    try testing.expect(report.body == .report);
    try device.expectTaken(newer(report.request_id, .{ .report_ack = .{} }));
    device.client.reportReady(device.now_us, .ready, 1, .{});
    try testing.expect((try device.next()).?.body == .ready);
}
