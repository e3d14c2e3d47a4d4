//! Tests of hello.zig and write_steps.zig: what a HELLO changes at the edge, and how writes are
//! answered. In clear text, so that a test reads all answers.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
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
    const before = session.counter.*;
    var sealer = fixture.server.sealer(session.id).?;
    const header = wire.dataHeader(session.id, 1, 0);
    for (1..4) |count| {
        _ = sealer.seal(&header, "bytes", &fixture.out);
        try testing.expectEqual(before + count, session.counter.*);
    }
}
