//! Tests of lost.zig: what a device without a session sends, and which orders it believes.

const std = @import("std");
const wire = @import("wire").stream;
const stream_seal = @import("../seal.zig");
const StreamClient = @import("client.zig");
const TestDevice = @import("test_device.zig");
const testing = std.testing;

const second_us = std.time.us_per_s;
const secret = TestDevice.welcome_usual.resume_secret;

/// A device that its edge has refused to resume.
fn initRefused() !TestDevice {
    var device: TestDevice = try .initOpen(.{});
    errdefer device.deinit();
    device.take(TestDevice.packetOf(TestDevice.session_id, .no_session));
    const hello = (try device.next()).?.body.hello;
    device.now_us += 100;
    try device.expectTaken(TestDevice.refusalOf(&hello, .token_refused));
    try testing.expectEqual(.token_refused, device.client.nextEvent().?.refused);
    return device;
}

fn nextLost(device: *TestDevice) !wire.Lost {
    const packet = (try device.next()).?;
    try testing.expectEqual(.v3, packet.version);
    const lost = packet.body.lost;
    try testing.expectEqual(stream_seal.lostProof(&secret, &lost), lost.proof);
    try testing.expectEqual(TestDevice.boot_id.bytes, lost.boot_id);
    return lost;
}

fn answerOf(lost: *const wire.Lost, order: wire.Order, key: []const u8) wire.Packet {
    var ack: wire.LostAck = .{
        .nonce = lost.nonce,
        .order = order,
        .order_id = if (order == .none) @splat(0) else @splat(0x0d),
        .proof = @splat(0),
    };
    ack.proof = stream_seal.lostAckProof(key, &ack);
    return .{ .version = .v3, .body = .{ .lost_ack = ack } };
}

test "a device whose session is lost says why at intervals that double, once it is asked to" {
    var device = try initRefused();
    defer device.deinit();
    try testing.expectEqual(null, device.client.deadline());
    try device.expectNothing();
    device.client.reportLost(device.now_us, device.now_us + 60 * second_us);
    const first = try nextLost(&device);
    try testing.expectEqual(.refused, first.reason);
    try testing.expectEqual(.token_refused, first.refusal);
    try testing.expectEqual(60, first.restart_in_s);
    var nonce = first.nonce;
    for ([_]u64{ 1, 2, 4, 8, 16, 16 }) |wait_s| {
        try device.expectNothingUntil(device.now_us + wait_s * second_us);
        const lost = try nextLost(&device);
        try testing.expect(!std.mem.eql(u8, &nonce, &lost.nonce));
        nonce = lost.nonce;
    }
    // 47 s have passed.
    try testing.expectEqual(13, 60 - (device.now_us - 1_000_000) / second_us);
}

test "a lost device takes an order that its edge has proved, once, and confirms it at once" {
    var device = try initRefused();
    defer device.deinit();
    device.client.reportLost(device.now_us, null);
    var lost = try nextLost(&device);
    try testing.expectEqual(0, lost.restart_in_s);
    try device.expectTaken(answerOf(&lost, .none, &secret));
    try testing.expectEqual(null, device.client.nextEvent());
    // Forged: by another secret, for another packet, or changed.
    try device.expectIgnored(answerOf(&lost, .restart, &@as([32]u8, @splat(1))));
    var other = lost;
    other.nonce[0] ^= 1;
    try device.expectIgnored(answerOf(&other, .restart, &secret));
    var changed = answerOf(&lost, .restart, &secret);
    changed.body.lost_ack.order = .power_off;
    try device.expectIgnored(changed);
    try testing.expectEqual(null, device.client.nextEvent());
    // An answer to an earlier packet is late.
    device.now_us += second_us;
    const late = answerOf(&lost, .restart, &secret);
    lost = try nextLost(&device);
    try device.expectIgnored(late);
    try device.expectTaken(answerOf(&lost, .restart, &secret));
    const order = device.client.nextEvent().?.order;
    try testing.expectEqual(.restart, order.kind);
    const confirmed = try nextLost(&device);
    try testing.expectEqual(order.id.bytes, confirmed.order_id);
    // The edge may repeat it until it knows.
    try device.expectTaken(answerOf(&confirmed, .restart, &secret));
    try testing.expectEqual(.report_acknowledged, device.client.nextEvent().?);
    try testing.expectEqual(null, device.client.nextEvent());
}

test "a device that never had a session has nothing to prove, and stays silent" {
    var device: TestDevice = try .init(.{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    try device.expectTaken(TestDevice.refusalOf(&hello, .version_missing));
    try testing.expectEqual(.version_missing, device.client.nextEvent().?.refused);
    device.client.reportLost(device.now_us, null);
    try device.expectNothing();
    try testing.expectEqual(null, device.client.deadline());
}

test "a device in a session takes no order outside of it" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const lost: wire.Lost = .{
        .boot_id = TestDevice.boot_id.bytes,
        .nonce = @splat(0),
        .reason = .cache_lost,
        .proof = @splat(0),
    };
    try device.expectIgnored(answerOf(&lost, .restart, &secret));
    try testing.expectEqual(null, device.client.nextEvent());
}
