//! Tests of hello.zig and write_steps.zig: what a HELLO changes at the edge, and how writes are
//! answered. In clear text, so that a test reads all answers.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
const device_signature = @import("../device_signature.zig");
const StreamServer = @import("server.zig");
const testing = std.testing;

const device: base.Endpoint = .{ .ip = .init(127, 77, 0, 10), .port = 40000 };
const elsewhere: base.Endpoint = .{ .ip = .init(127, 77, 0, 11), .port = 40000 };
const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const other_id: base.Uuid = .{ .bytes = @splat(0xb1) };
const token: [16]u8 = @splat(0x70);
const disk_size = 1 << 20;
const boot: StreamServer.Grant.Boot = .{
    .token = token,
    .token_nonce = null,
    .version_id = .{ .bytes = @splat(0xdd) },
    .disk_size = disk_size,
    .write_cache = .{ .class = .edge, .size = disk_size, .id = 1 },
};

const Fixture = struct {
    server: StreamServer,
    now_us: u64 = 100 * std.time.us_per_s,
    out: [wire.packet_size_max]u8 = undefined,
    reply: StreamServer.ReplyBuffer = undefined,

    fn init(sessions_max: u16) !Fixture {
        return .{ .server = try .init(testing.allocator, .{
            .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            .sessions_max = sessions_max,
            .ciphers = .{ .clear = true },
        }) };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.server.deinit(testing.allocator);
    }

    fn hello(id: base.Uuid, nonce: u8, kind: wire.HelloKind, packet_size_max: u16) wire.Hello {
        var said: wire.Hello = .{
            .client_nonce = @splat(nonce),
            .kind = kind,
            .ciphers = .{ .clear = true },
            .packet_size_max = packet_size_max,
            .boot_id = id.bytes,
            .client_public = @splat(9),
            .proof = undefined,
            .shown = if (kind == .ticket) .{ .age_us = 0, .ticket = @splat(0) } else null,
        };
        const resume_secret = secrets.resumeSecret(&@as([32]u8, @splat(3)), id);
        const secret: []const u8 = if (kind == .token) &token else &resume_secret;
        said.proof = stream_seal.helloProof(secret, &said);
        return said;
    }

    fn admit(fixture: *Fixture, from: base.Endpoint, said: wire.Hello) StreamServer.Admission {
        return fixture.server.admit(fixture.now_us, .{
            .from = from,
            .hello = said,
            .boot_id = .fromBytes(said.boot_id),
        }, .{ .boot = boot }, &fixture.reply);
    }

    fn open(fixture: *Fixture, from: base.Endpoint, id: base.Uuid) !*StreamServer.Session {
        const said = hello(id, 5, .token, wire.packet_size_ethernet);
        try testing.expectEqual(.opened, fixture.admit(from, said).outcome);
        return fixture.server.sessionOf(id).?;
    }

    fn send(fixture: *Fixture, from: base.Endpoint, packet: wire.Packet) StreamServer.Step {
        const bytes = wire.emit(packet, &fixture.out);
        return fixture.server.receive(fixture.now_us, from, bytes, &fixture.reply);
    }

    fn control(
        fixture: *Fixture,
        session: *const StreamServer.Session,
        request_id: u32,
        said: wire.Control,
    ) StreamServer.Step {
        var tagged = said;
        tagged.version_tag = secrets.versionTag(session.version_id);
        return fixture.send(session.from, .{
            .session_id = session.id,
            .request_id = request_id,
            .body = .{ .control = tagged },
        });
    }
};

fn codeOf(step: StreamServer.Step) !wire.WriteCode {
    return (try wire.parse(step.reply)).body.write_ack.code;
}

test "the same HELLO from another address moves the session, and lets it live on" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    const changes = fixture.server.changes;
    fixture.now_us += 1;
    const said = Fixture.hello(boot_id, 5, .token, wire.packet_size_ethernet - 32);
    const again = fixture.admit(elsewhere, said);
    try testing.expectEqual(.repeated, again.outcome);
    try testing.expectEqual(session.id, again.session_id);
    try testing.expectEqual(wire.welcome_size, again.reply.?.len);
    try testing.expect(session.from.eql(elsewhere));
    try testing.expect(fixture.server.changes > changes);
    try testing.expectEqual(fixture.now_us, session.last_packet_at_us);
    try testing.expectEqual(fixture.now_us, session.last_request_at_us);
    // The narrower path counts.
    try testing.expectEqual(wire.packet_size_ethernet - 32, session.packet_size_max);
    _ = fixture.admit(elsewhere, Fixture.hello(boot_id, 5, .token, wire.packet_size_ethernet));
    try testing.expectEqual(wire.packet_size_ethernet - 32, session.packet_size_max);
    try testing.expectEqual(
        wire.no_session_size,
        fixture.control(&.{ .id = session.id, .from = device }, 1, flush).reply.len,
    );
}

const flush: wire.Control = .{ .version_tag = 0, .operation = .flush };

test "a session that moves to another's address ends that one" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    _ = try fixture.open(elsewhere, other_id);
    const said = Fixture.hello(boot_id, 5, .token, wire.packet_size_ethernet);
    try testing.expectEqual(.repeated, fixture.admit(elsewhere, said).outcome);
    try testing.expectEqual(null, fixture.server.sessionOf(other_id));
    try testing.expectEqual(1, fixture.server.session_count);
    try testing.expect(session.from.eql(elsewhere));
}

test "a resumption keeps what the boot has done, drops what was half there, and is counted" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    try testing.expectEqual(0, session.statistics.resumptions);
    session.ready = true;
    session.statistics.packets_out = 77;
    try testing.expect(fixture.control(session, 9, flush) == .control);
    const first_id = session.id;
    try testing.expectEqual(.taken, std.meta.activeTag(fixture.send(device, .{
        .session_id = first_id,
        .request_id = 10,
        .body = .{ .write = .{
            .version_tag = secrets.versionTag(session.version_id),
            .offset = 0,
            .length = 4096,
            .fragment_size = 1440,
            .index = 0,
            .payload = &@as([1416]u8, @splat(1)),
        } },
    })));
    const said = Fixture.hello(boot_id, 6, .resumption, wire.packet_size_ethernet);
    try testing.expectEqual(.resumed, fixture.admit(elsewhere, said).outcome);
    try testing.expect(session.id != first_id);
    try testing.expect(session.from.eql(elsewhere));
    try testing.expect(session.ready);
    try testing.expectEqual(77, session.statistics.packets_out);
    try testing.expectEqual(1, session.statistics.resumptions);
    // The request is still being executed.
    try testing.expectEqual(.not_yet, try codeOf(fixture.control(session, 9, flush)));
    for (fixture.server.collector.slots) |*slot| try testing.expectEqual(0, slot.session_id);
    // A copy of the first HELLO is late.
    const late = Fixture.hello(boot_id, 5, .token, wire.packet_size_ethernet);
    try testing.expectEqual(.stale, fixture.admit(elsewhere, late).outcome);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_stale_hello));
}

test "a READ of the session before a resumption is no new one" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    const read: wire.Read = .{
        .version_tag = secrets.versionTag(session.version_id),
        .offset = 0,
        .length = 512,
        .fragment_size = 1440,
    };
    var packet: wire.Packet =
        .{ .session_id = session.id, .request_id = 3, .body = .{ .read = read } };
    try testing.expect(!fixture.send(device, packet).read.repeated);
    _ = fixture.admit(device, Fixture.hello(boot_id, 6, .resumption, wire.packet_size_ethernet));
    packet.session_id = session.id;
    try testing.expect(fixture.send(device, packet).read.repeated);
}

test "device and edge agree on the smaller packet size" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    for (
        [_]u16{ wire.packet_size_ethernet - 32, wire.packet_size_max },
        [_]u16{ wire.packet_size_ethernet - 32, wire.packet_size_ethernet },
        1..,
    ) |offered, agreed, number| {
        const id: base.Uuid = .{ .bytes = @splat(@intCast(number)) };
        _ = fixture.admit(device, Fixture.hello(id, 5, .token, offered));
        try testing.expectEqual(agreed, fixture.server.sessionOf(id).?.packet_size_max);
    }
}

test "a ticket is worth nothing for a boot that no ticket was accepted for" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const refused = fixture.admit(device, Fixture.hello(boot_id, 5, .ticket, 1472));
    try testing.expectEqual(.token_refused, refused.outcome);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_token_refused));
    try testing.expectEqual(0, fixture.server.session_count);
}

test "of a full table the session whose device has requested nothing for longest goes" {
    for ([_]bool{ false, true }) |is_first_older| {
        var fixture: Fixture = try .init(3);
        defer fixture.deinit();
        var ids: [3]base.Uuid = undefined;
        for (&ids, 1..) |*id, number| {
            id.* = .{ .bytes = @splat(@intCast(number)) };
            const from: base.Endpoint = .{ .ip = .init(127, 77, 1, @intCast(number)), .port = 9 };
            _ = try fixture.open(from, id.*);
        }
        const oldest: usize = if (is_first_older) 0 else 2;
        for (ids, 0..) |id, index| fixture.server.sessionOf(id).?.last_request_at_us =
            if (index == oldest) fixture.now_us - 2 else fixture.now_us - 1;
        fixture.now_us += StreamServer.session_spare_us;
        _ = try fixture.open(device, boot_id);
        for (ids, 0..) |id, index|
            try testing.expectEqual(index == oldest, fixture.server.sessionOf(id) == null);
    }
}

test "a control request is executed once, over the whole disk and not beyond it" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    const whole: wire.Control =
        .{ .version_tag = 0, .operation = .discard, .offset = 0, .length = disk_size };
    const step = fixture.control(session, 1, whole);
    try testing.expectEqual(disk_size, step.control.length);
    try testing.expectEqual(.not_yet, try codeOf(fixture.control(session, 1, whole)));
    const before = session.statistics;
    const answer = fixture.server.finishWrite(step.control.ref, .done, &fixture.reply).?;
    try testing.expectEqual(.done, (try wire.parse(answer.packet)).body.write_ack.code);
    try testing.expectEqual(before.packets_out + 1, session.statistics.packets_out);
    try testing.expectEqual(before.bytes_out + answer.packet.len, session.statistics.bytes_out);
    try testing.expectEqual(.done, try codeOf(fixture.control(session, 1, whole)));
    var beyond = whole;
    beyond.length += 512;
    try testing.expectEqual(.beyond_the_end, try codeOf(fixture.control(session, 2, beyond)));
    beyond = .{ .version_tag = 0, .operation = .discard, .offset = 512, .length = disk_size };
    try testing.expectEqual(.beyond_the_end, try codeOf(fixture.control(session, 2, beyond)));
    // Now it could not be executed: it may come again.
    const later = fixture.control(session, 3, flush);
    _ = fixture.server.finishWrite(later.control.ref, null, &fixture.reply).?;
    try testing.expect(fixture.control(session, 3, flush) == .control);
}

test "a packet that is sealed alone takes one counter" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open(device, boot_id);
    const before = session.counter.last;
    var sealer = fixture.server.sealer(session.id).?;
    const header = wire.dataHeader(.v2, session.id, 1, 0);
    for (1..4) |count| {
        _ = sealer.seal(&header, "bytes", &fixture.out);
        try testing.expectEqual(before + count, session.counter.last);
    }
}

/// A HELLO of version 3 from `from`, with the cookie of that address.
fn newer(fixture: *Fixture, from: base.Endpoint, nonce: u8, kind: wire.HelloKind) !wire.Hello {
    var said = Fixture.hello(boot_id, nonce, kind, wire.packet_size_ethernet);
    said.version = .v3;
    const asked = fixture.send(from, .{ .version = .v3, .body = .{ .hello = said } });
    const answer = try wire.parse(asked.reply);
    try testing.expectEqual(.v3, answer.version);
    said.cookie = answer.body.cookie.cookie;
    try testing.expect(secrets.isMarked(&said.cookie));
    prove(&said);
    return said;
}

fn prove(said: *wire.Hello) void {
    const resume_secret =
        secrets.resumeSecret(&@as([32]u8, @splat(3)), .fromBytes(said.boot_id));
    const secret: []const u8 = if (said.kind == .token) &token else &resume_secret;
    said.proof = stream_seal.helloProof(secret, said);
}

test "a HELLO gets the cookie of its version, with the same bytes, and of an older edge unmarked" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const said = try newer(&fixture, device, 5, .token);
    var older = said;
    older.version = .v2;
    older.cookie = @splat(0);
    const asked = fixture.send(device, .{ .version = .v2, .body = .{ .hello = older } });
    const answer = try wire.parse(asked.reply);
    try testing.expectEqual(.v2, answer.version);
    try testing.expectEqual(said.cookie, answer.body.cookie.cookie);
    // The edge of the release before.
    fixture.server.options.version_max = .v2;
    const unmarked = try wire.parse(
        fixture.send(device, .{ .version = .v2, .body = .{ .hello = older } }).reply,
    );
    try testing.expect(!secrets.isMarked(&unmarked.body.cookie.cookie));
    try testing.expectEqual(
        .stream_wrong_version,
        fixture.send(device, .{ .version = .v3, .body = .{ .hello = said } }).ignored,
    );
}

test "a recorded HELLO of version 3 is of no use from another address" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const first = try newer(&fixture, device, 5, .token);
    try testing.expectEqual(.opened, fixture.admit(device, first).outcome);
    const resumed = try newer(&fixture, device, 6, .resumption);
    try testing.expectEqual(.resumed, fixture.admit(device, resumed).outcome);
    const session = fixture.server.sessionOf(boot_id).?;
    const id = session.id;
    for ([_]wire.Hello{ first, resumed }) |recorded| {
        // With the cookie of the thief's own address, which the proof does not cover.
        var replayed = recorded;
        replayed.cookie = (try newer(&fixture, elsewhere, 5, recorded.kind)).cookie;
        try testing.expectEqual(.token_refused, fixture.admit(elsewhere, replayed).outcome);
        try testing.expect(session.from.eql(device));
        try testing.expectEqual(id, session.id);
    }
    // The device itself moves on.
    const moved = try newer(&fixture, elsewhere, 7, .resumption);
    try testing.expectEqual(.resumed, fixture.admit(elsewhere, moved).outcome);
    try testing.expect(fixture.server.sessionOf(boot_id).?.from.eql(elsewhere));
}

test "an old resumption of version 2 neither moves nor ends a session, however often it comes" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    _ = try fixture.open(device, boot_id);
    const size = wire.packet_size_ethernet;
    for (10..20) |nonce| {
        const said = Fixture.hello(boot_id, @intCast(nonce), .resumption, size);
        try testing.expectEqual(.resumed, fixture.admit(device, said).outcome);
    }
    const session = fixture.server.sessionOf(boot_id).?;
    const id = session.id;
    const before = fixture.server.ignored.get(.stream_stale_hello);
    for (10..19) |nonce| {
        const said = Fixture.hello(boot_id, @intCast(nonce), .resumption, size);
        for ([_]base.Endpoint{ elsewhere, device }) |from| {
            try testing.expectEqual(.stale, fixture.admit(from, said).outcome);
            try testing.expectEqual(null, fixture.admit(from, said).reply);
        }
    }
    try testing.expectEqual(before + 4 * 9, fixture.server.ignored.get(.stream_stale_hello));
    try testing.expectEqual(id, session.id);
    try testing.expect(session.from.eql(device));
    // The newest one: WELCOME may be lost, so the device's address may have changed meanwhile.
    const newest = Fixture.hello(boot_id, 19, .resumption, size);
    try testing.expectEqual(.repeated, fixture.admit(elsewhere, newest).outcome);
    fixture.now_us += 1;
    _ = fixture.send(elsewhere, .{
        .session_id = id,
        .request_id = 1,
        .body = .{ .probe = .{ .size = wire.packet_size_min } },
    });
    // The device has had WELCOME.
    try testing.expectEqual(.stale, fixture.admit(device, newest).outcome);
    try testing.expectEqual(.repeated, fixture.admit(elsewhere, newest).outcome);
    try testing.expect(session.from.eql(elsewhere));
}

test "a HELLO with another cookie gets the same session, as a retransmission does" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const first = try newer(&fixture, device, 5, .token);
    try testing.expectEqual(.opened, fixture.admit(device, first).outcome);
    const id = fixture.server.sessionOf(boot_id).?.id;
    fixture.now_us += 2 * secrets.cookie_slot_us;
    const again = try newer(&fixture, device, 5, .token);
    try testing.expect(!std.mem.eql(u8, &first.cookie, &again.cookie));
    try testing.expectEqual(.repeated, fixture.admit(device, again).outcome);
    try testing.expectEqual(id, fixture.server.sessionOf(boot_id).?.id);
}

test "a device's signature is verified behind its proof, and a wrong one is refused" {
    const pair: base.ecdsa_p256.KeyPair = try .generateDeterministic(@splat(9));
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    var said = try newer(&fixture, device, 5, .token);
    said.device_key = pair.public_key;
    for ([_]bool{ false, true }) |is_right| {
        said.signature =
            pair.sign(&device_signature.digestOf(&device_signature.transcriptOf(&said)));
        if (!is_right) said.signature[63] ^= 1;
        prove(&said);
        var claim: StreamServer.Claim =
            .{ .from = device, .hello = said, .boot_id = boot_id };
        const expected: StreamServer.DeviceClaim = if (is_right)
            .{ .signed = device_signature.fingerprintOf(&pair.public_key) }
        else
            .forged;
        try testing.expectEqual(expected, StreamServer.verifyDevice(&claim));
        const grant: StreamServer.Grant = .{ .boot = boot };
        const admission =
            fixture.server.admit(fixture.now_us, claim, grant, &fixture.reply);
        if (is_right) {
            try testing.expectEqual(.opened, admission.outcome);
            continue;
        }
        try testing.expectEqual(.identity_refused, admission.outcome);
        const refusal = (try wire.parse(admission.reply.?)).body.refuse;
        try testing.expectEqual(.identity_refused, refusal.code);
        try testing.expectEqual(null, fixture.server.sessionOf(boot_id));
    }
    // Version 2 has no such code.
    const older = Fixture.hello(other_id, 6, .token, wire.packet_size_ethernet);
    const claim: StreamServer.Claim = .{ .from = device, .hello = older, .boot_id = other_id };
    const refused =
        fixture.server.admit(fixture.now_us, claim, .identity_refused, &fixture.reply);
    try testing.expectEqual(.identity_refused, refused.outcome);
    try testing.expectEqual(
        .token_refused,
        (try wire.parse(refused.reply.?)).body.refuse.code,
    );
}

test "a session keeps its version, and a device of either is asked whether it is still there" {
    for (std.enums.values(wire.Version)) |version| {
        var fixture: Fixture = try .init(4);
        defer fixture.deinit();
        try testing.expectEqual(null, fixture.server.askPresence(boot_id, &fixture.reply));
        try testing.expectEqual(null, fixture.server.heardAt(boot_id));
        const said = if (version == .v3)
            try newer(&fixture, device, 5, .token)
        else
            Fixture.hello(boot_id, 5, .token, wire.packet_size_ethernet);
        const opened = fixture.admit(device, said);
        try testing.expectEqual(version, (try wire.parse(opened.reply.?)).version);
        const session = fixture.server.sessionOf(boot_id).?;
        const id = session.id;
        const asked = fixture.server.askPresence(boot_id, &fixture.reply).?;
        try testing.expect(asked.to.eql(device));
        const question = try wire.parse(asked.packet);
        try testing.expectEqual(version, question.version);
        try testing.expectEqual(id, question.session_id);
        try testing.expectEqual(
            if (version == .v3) wire.Type.keepalive else .no_session,
            std.meta.activeTag(question.body),
        );
        try testing.expectEqual(fixture.now_us, fixture.server.heardAt(boot_id));
        fixture.now_us += 50;
        const answer: wire.Packet =
            .{ .version = .v3, .session_id = id, .body = .keepalive_ack };
        const step = fixture.send(device, answer);
        if (version == .v2) {
            // A packet of another version is none of this session's.
            try testing.expect((try wire.parse(step.reply)).body == .no_session);
            continue;
        }
        try testing.expect(step.present.eql(boot_id));
        try testing.expectEqual(fixture.now_us, fixture.server.heardAt(boot_id));
        // In the other direction it is none.
        const wrong: wire.Packet = .{ .version = .v3, .session_id = id, .body = .keepalive };
        try testing.expectEqual(
            .stream_wrong_direction,
            fixture.send(device, wrong).ignored,
        );
    }
}

test "LOST is believed by its proof alone, and answered with the order, in less than it has" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    const secret = secrets.resumeSecret(&@as([32]u8, @splat(3)), boot_id);
    var lost: wire.Lost = .{
        .boot_id = boot_id.bytes,
        .nonce = @splat(6),
        .reason = .refused,
        .refusal = .token_refused,
        .restart_in_s = 60,
        .order_id = @splat(4),
        .proof = @splat(0),
    };
    const packet: wire.Packet = .{ .version = .v3, .body = .{ .lost = lost } };
    try testing.expectEqual(.stream_forged, fixture.send(device, packet).ignored);
    lost.proof = stream_seal.lostProof(&secret, &lost);
    var changed = lost;
    changed.restart_in_s = 0;
    try testing.expectEqual(
        .stream_forged,
        fixture.send(device, .{ .version = .v3, .body = .{ .lost = changed } }).ignored,
    );
    const proven: wire.Packet = .{ .version = .v3, .body = .{ .lost = lost } };
    const report = fixture.send(device, proven).lost;
    try testing.expect(report.boot_id.eql(boot_id));
    try testing.expectEqual(.refused, report.reason);
    try testing.expectEqual(.token_refused, report.refusal);
    try testing.expectEqual(60, report.restart_in_s);
    try testing.expectEqual(lost.order_id, report.order_id);
    const order: wire.ReportAck = .{ .order = .restart, .order_id = @splat(8) };
    const bytes = fixture.server.answerLost(&report, order, &fixture.reply);
    try testing.expect(bytes.len < wire.lost_size);
    const ack = (try wire.parse(bytes)).body.lost_ack;
    try testing.expectEqual(lost.nonce, ack.nonce);
    try testing.expectEqual(.restart, ack.order);
    try testing.expectEqual(stream_seal.lostAckProof(&secret, &ack), ack.proof);
    // A flood costs a bounded number of digests a second.
    var busy: u32 = 0;
    for (0..2000) |_| switch (fixture.send(device, packet)) {
        .ignored => |reason| busy += @intFromBool(reason == .stream_busy),
        else => return error.Believed,
    };
    try testing.expect(busy >= 1000);
    fixture.now_us += std.time.us_per_s;
    try testing.expect(fixture.send(device, proven) == .lost);
}

test "a WELCOME of version 3 names three edges, and a larger one all of them" {
    var fixture: Fixture = try .init(4);
    defer fixture.deinit();
    for ([_]u8{ 3, 8 }) |count| {
        var granted = boot;
        granted.failover = .{ .lifetime_s = 100, .edges = .empty, .ticket = @splat(7) };
        for (0..count) |index| granted.failover.?.edges.appendAssumeCapacity(
            .{ .ip = .init(10, 0, 0, @intCast(index + 1)), .port = 6910 },
        );
        const said = try newer(&fixture, device, count, .resumption);
        const claim: StreamServer.Claim = .{ .from = device, .hello = said, .boot_id = boot_id };
        const grant: StreamServer.Grant = .{ .boot = granted };
        const admission =
            fixture.server.admit(fixture.now_us, claim, grant, &fixture.reply);
        const short = admission.reply.?;
        try testing.expect(short.len + wire.tag_size <= wire.packet_size_min);
        const welcome = (try wire.parse(short)).body.welcome;
        try testing.expectEqual(3, welcome.failover.?.edges.count);
        var large: StreamServer.LargeBuffer = undefined;
        const shown = fixture.server.showSize(&admission, &large);
        try testing.expectEqual(count > 3, shown != null);
        if (shown) |bytes| {
            try testing.expectEqual(wire.packet_size_ethernet, bytes.len);
            const whole = (try wire.parse(bytes)).body.welcome;
            try testing.expectEqual(count, whole.failover.?.edges.count);
        }
    }
}
