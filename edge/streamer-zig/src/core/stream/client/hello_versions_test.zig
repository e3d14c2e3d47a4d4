//! Tests of hello_versions.zig, and of what version 3 adds to a session of the device: how both
//! sides agree on a version, signatures, KEEPALIVE, codecs, the longer list of edges.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const device_signature = @import("../device_signature.zig");
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
const StreamClient = @import("client.zig");
const TestDevice = @import("test_device.zig");
const testing = std.testing;

const ms = std.time.us_per_ms;
const token: [16]u8 = @splat(0x70);

fn cookieOf(version: wire.Version, hello: *const wire.Hello, cookie: [32]u8) wire.Packet {
    return .{ .version = version, .body = .{
        .cookie = .{ .client_nonce = hello.client_nonce, .cookie = cookie },
    } };
}

fn welcomeOf(hello: *const wire.Hello) wire.Packet {
    var packet = TestDevice.welcomeOf(hello, TestDevice.welcome_usual);
    packet.version = hello.version;
    return packet;
}

test "an edge that is not known yet is asked in both versions, and answers in the newest it knows" {
    const plain: [32]u8 = @splat(0xc0);
    const Case = struct { answer: wire.Version, cookie: [32]u8, expected: wire.Version };
    for ([_]Case{
        .{ .answer = .v3, .cookie = plain, .expected = .v3 },
        .{ .answer = .v2, .cookie = plain, .expected = .v2 },
        // The answer in version 3 was lost.
        .{ .answer = .v2, .cookie = secrets.marked(plain), .expected = .v3 },
    }) |case| {
        var device: TestDevice = try .initIn(.v3, .{});
        defer device.deinit();
        const first = (try device.next()).?.body.hello;
        const second = (try device.next()).?.body.hello;
        try testing.expectEqual(.v3, first.version);
        try testing.expectEqual(.v2, second.version);
        try testing.expectEqual(first.client_nonce, second.client_nonce);
        try testing.expectEqual(stream_seal.helloProof(&token, &second), second.proof);
        try device.expectNothingUntil(device.now_us + 200 * ms);
        // Nobody has answered: both again.
        for ([_]wire.Hello{ first, second }) |hello|
            try testing.expectEqual(hello, (try device.next()).?.body.hello);
        try device.expectNothing();
        try device.expectTaken(cookieOf(case.answer, &first, case.cookie));
        const proven = (try device.next()).?.body.hello;
        try testing.expectEqual(case.expected, proven.version);
        try testing.expectEqual(case.cookie, proven.cookie);
        try testing.expectEqual(stream_seal.helloProof(&token, &proven), proven.proof);
        try device.expectNothing();
        // A WELCOME of another version is none.
        var wrong = welcomeOf(&proven);
        wrong.version = if (case.expected == .v2) .v3 else .v2;
        try device.expectIgnored(wrong);
        try device.expectTaken(welcomeOf(&proven));
        try testing.expectEqual(case.expected, device.client.session.?.version);
    }
}

test "a device that has settled on version 3 stays there, and one on version 2 moves up" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    try device.expectTaken(cookieOf(.v2, &hello, @splat(1)));
    try testing.expectEqual(.v2, (try device.next()).?.body.hello.version);
    try device.expectTaken(cookieOf(.v3, &hello, @splat(2)));
    try testing.expectEqual(.v3, (try device.next()).?.body.hello.version);
    try device.expectTaken(cookieOf(.v2, &hello, @splat(3)));
    try device.expectNothing();
    try testing.expectEqual(@as([32]u8, @splat(2)), device.client.greeting.cookie);
}

test "an edge that falls silent behind its cookie is asked in both versions again" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    try device.expectTaken(cookieOf(.v3, &hello, @splat(1)));
    for (0..5) |_| {
        const shown = (try device.next()).?.body.hello;
        try testing.expectEqual(@as([32]u8, @splat(1)), shown.cookie);
        try device.expectNothing();
        device.now_us = device.client.deadline().?;
    }
    for ([_]wire.Version{ .v3, .v2 }) |version| {
        const shown = (try device.next()).?.body.hello;
        try testing.expectEqual(version, shown.version);
        try testing.expectEqual(@as([32]u8, @splat(0)), shown.cookie);
    }
}

test "the edge of a session in version 3 is asked in version 2 only when it is silent" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    try device.expectTaken(cookieOf(.v3, &hello, @splat(1)));
    try device.expectTaken(welcomeOf(&(try device.next()).?.body.hello));
    _ = device.client.nextEvent();
    try device.expectTaken(.{
        .version = .v3,
        .session_id = TestDevice.session_id,
        .body = .no_session,
    });
    try testing.expectEqual(.v3, (try device.next()).?.version);
    try device.expectNothingUntil(device.now_us + 200 * ms);
    try testing.expectEqual(.v3, (try device.next()).?.version);
    try testing.expectEqual(.v2, (try device.next()).?.version);
    try device.expectNothing();
}

test "a key signs the HELLO with the cookie before it is sent, and a new cookie is signed again" {
    const pair: base.ecdsa_p256.KeyPair = try .generateDeterministic(@splat(9));
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    var identity = TestDevice.identity();
    identity.device_key = pair.public_key;
    device.client.start(device.now_us, identity);
    const first = (try device.next()).?.body.hello;
    try testing.expectEqual(pair.public_key, first.device_key);
    try testing.expectEqual(@as(wire.DeviceSignature, @splat(0)), first.signature);
    const older = (try device.next()).?.body.hello;
    try testing.expectEqual(@as(wire.DeviceKey, @splat(0)), older.device_key);
    for ([_]u8{ 1, 2 }) |byte| {
        try device.expectTaken(cookieOf(.v3, &first, @splat(byte)));
        try testing.expectEqual(null, device.client.deadline());
        try device.expectNothing();
        const digest = device.client.nextEvent().?.sign;
        try testing.expectEqual(null, device.client.nextEvent());
        device.client.sign(device.now_us, pair.sign(&digest));
        const signed = (try device.next()).?.body.hello;
        try testing.expectEqual(@as([32]u8, @splat(byte)), signed.cookie);
        try testing.expectEqual(
            device_signature.fingerprintOf(&pair.public_key),
            device_signature.claimOf(&signed).signed,
        );
        try testing.expectEqual(stream_seal.helloProof(&token, &signed), signed.proof);
    }
    // A signature that nobody waits for any more.
    device.client.sign(device.now_us, @splat(1));
    try device.expectNothing();
}

test "a key that cannot sign is left out, and an edge of version 2 is shown none" {
    const pair: base.ecdsa_p256.KeyPair = try .generateDeterministic(@splat(9));
    for ([_]wire.Version{ .v2, .v3 }) |version| {
        var device: TestDevice = try .initIn(.v3, .{});
        defer device.deinit();
        var identity = TestDevice.identity();
        identity.device_key = pair.public_key;
        device.client.start(device.now_us, identity);
        const first = (try device.next()).?.body.hello;
        _ = try device.next();
        try device.expectTaken(cookieOf(version, &first, @splat(1)));
        if (version == .v3) {
            _ = device.client.nextEvent().?.sign;
            device.client.sign(device.now_us, null);
        }
        const hello = (try device.next()).?.body.hello;
        try testing.expectEqual(version, hello.version);
        try testing.expectEqual(.none, device_signature.claimOf(&hello));
        try testing.expectEqual(stream_seal.helloProof(&token, &hello), hello.proof);
    }
}

/// With an open session in version 3.
fn initOpen() !TestDevice {
    var device: TestDevice = try .initIn(.v3, .{});
    errdefer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    try device.expectTaken(cookieOf(.v3, &hello, @splat(1)));
    try device.expectTaken(welcomeOf(&(try device.next()).?.body.hello));
    try testing.expect(device.client.nextEvent().? == .established);
    return device;
}

fn packetOf(request_id: u32, body: wire.Body) wire.Packet {
    return .{
        .version = .v3,
        .session_id = TestDevice.session_id,
        .request_id = request_id,
        .body = body,
    };
}

test "a device answers at once whether it is still there" {
    var device = try initOpen();
    defer device.deinit();
    try device.expectTaken(packetOf(77, .keepalive));
    try testing.expect(device.client.deadline().? <= device.now_us);
    const answer = (try device.next()).?;
    try testing.expectEqual(.v3, answer.version);
    try testing.expectEqual(77, answer.request_id);
    try testing.expect(answer.body == .keepalive_ack);
    try device.expectNothing();
}

test "a packed answer is dropped, since this device has offered no codec" {
    var device = try initOpen();
    defer device.deinit();
    var buffer: [4096]u8 = @splat(0);
    try device.client.submit(1, 0, &buffer);
    const read = (try device.next()).?;
    try testing.expectEqual(.v3, read.version);
    const bytes: [64]u8 = @splat(0x5a);
    try device.expectIgnored(packetOf(read.request_id, .{
        .data = .{ .index = 0, .packed_size = 64, .payload = &bytes },
    }));
    // And plain data of the other version.
    var older = packetOf(read.request_id, .{ .data = .{ .index = 0, .payload = &bytes } });
    older.version = .v2;
    try device.expectIgnored(older);
    try testing.expect(std.mem.allEqual(u8, &buffer, 0));
    try testing.expectEqual(null, device.client.nextEvent());
}

test "a WELCOME with a codec that was not offered opens no session" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    try device.expectTaken(cookieOf(.v3, &hello, @splat(1)));
    const shown = (try device.next()).?.body.hello;
    try testing.expectEqual(0, shown.codecs);
    var welcome = welcomeOf(&shown);
    welcome.body.welcome.codec = 1;
    try device.expectIgnored(welcome);
    try device.expectTaken(welcomeOf(&shown));
}

test "a refusal for the device's identity ends the boot" {
    var device: TestDevice = try .initIn(.v3, .{});
    defer device.deinit();
    const hello = (try device.next()).?.body.hello;
    _ = try device.next();
    var refusal = TestDevice.refusalOf(&hello, .identity_refused);
    refusal.version = .v3;
    try device.expectTaken(refusal);
    try testing.expectEqual(.identity_refused, device.client.nextEvent().?.refused);
}

test "the larger WELCOME names the edges that the other has no place for, in any order" {
    for ([_]bool{ false, true }) |is_larger_first| {
        var device: TestDevice = try .initIn(.v3, .{});
        defer device.deinit();
        const hello = (try device.next()).?.body.hello;
        _ = try device.next();
        try device.expectTaken(cookieOf(.v3, &hello, @splat(1)));
        const shown = (try device.next()).?.body.hello;
        var larger = welcomeOf(&shown);
        larger.body.welcome.failover =
            .{ .lifetime_s = 9, .edges = .empty, .ticket = TestDevice.ticket };
        for (0..5) |index| larger.body.welcome.failover.?.edges.appendAssumeCapacity(
            .{ .ip = .init(10, 0, 1, @intCast(index)), .port = 6910 },
        );
        var shorter = larger;
        shorter.body.welcome.failover.?.edges.count = wire.edges_unpadded_max_v3;
        try device.expectTaken(if (is_larger_first) larger else shorter);
        try device.expectTaken(if (is_larger_first) shorter else larger);
        try testing.expectEqual(5, device.client.failover.others().len);
        try testing.expectEqual(5, device.client.session.?.failover.?.edges.count);
    }
}
