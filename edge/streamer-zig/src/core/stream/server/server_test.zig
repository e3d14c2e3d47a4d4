//! Tests of server.zig: guarantees of the edge's side of the stream.

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
const token: [16]u8 = @splat(0x70);
const wrong_secret: [16]u8 = @splat(0x71);
const boot: StreamServer.Grant.Boot = .{
    .token = token,
    .token_nonce = null,
    .version_id = .{ .bytes = @splat(0xdd) },
    .disk_size = 1 << 20,
};
const keys: StreamServer.Keys =
    .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) };

/// A server and the packets of a device, as short as a test needs them.
const ServerFixture = struct {
    server: StreamServer,
    reply: StreamServer.ReplyBuffer = undefined,
    out: [wire.packet_size_max]u8 = undefined,
    now_us: u64 = 100 * std.time.us_per_s,

    fn init(sessions_max: u16) !ServerFixture {
        return .{ .server = try .init(
            testing.allocator,
            .{ .keys = keys, .sessions_max = sessions_max, .ciphers = .{ .clear = true } },
        ) };
    }

    fn deinit(fixture: *ServerFixture) void {
        fixture.server.deinit(testing.allocator);
    }

    fn send(fixture: *ServerFixture, from: base.Endpoint, packet: wire.Packet) StreamServer.Step {
        return fixture.server.receive(
            fixture.now_us,
            from,
            wire.emit(packet, &fixture.out),
            &fixture.reply,
        );
    }

    /// A HELLO of a device that knows `secret`, in clear text so that a test can read all answers.
    fn hello(nonce: u8, kind: wire.HelloKind, secret: []const u8) wire.Hello {
        return helloOf(boot_id, nonce, kind, secret);
    }

    fn helloOf(of: base.Uuid, nonce: u8, kind: wire.HelloKind, secret: []const u8) wire.Hello {
        var greeting: wire.Hello = .{
            .client_nonce = @splat(nonce),
            .kind = kind,
            .ciphers = .{ .clear = true },
            .packet_size_max = wire.packet_size_ethernet,
            .boot_id = of.bytes,
            .client_public = @splat(9),
            .proof = undefined,
        };
        greeting.proof = stream_seal.helloProof(secret, &greeting);
        return greeting;
    }

    fn cookieFor(fixture: *ServerFixture, from: base.Endpoint, greeting: wire.Hello) ![32]u8 {
        const step =
            fixture.send(from, .{ .version = greeting.version, .body = .{ .hello = greeting } });
        return (try wire.parse(step.reply)).body.cookie.cookie;
    }

    /// Sends a HELLO with its cookie round trip, and returns the answer for `grant`.
    fn admit(
        fixture: *ServerFixture,
        from: base.Endpoint,
        greeting: wire.Hello,
        grant: StreamServer.Grant,
    ) !StreamServer.Admission {
        var with_cookie = greeting;
        with_cookie.cookie = try fixture.cookieFor(from, greeting);
        const step = fixture.send(from, .{ .body = .{ .hello = with_cookie } });
        return fixture.server.admit(fixture.now_us, step.admit, grant, &fixture.reply);
    }

    /// The same for the device's HELLO in the newest version, whose proof covers the cookie.
    fn admitNewest(
        fixture: *ServerFixture,
        from: base.Endpoint,
        old: wire.Hello,
        secret: []const u8,
        grant: StreamServer.Grant,
    ) !StreamServer.Admission {
        var greeting = old;
        greeting.version = .newest;
        greeting.cookie = try fixture.cookieFor(from, greeting);
        greeting.proof = stream_seal.helloProof(secret, &greeting);
        const step = fixture.send(from, .{ .version = .newest, .body = .{ .hello = greeting } });
        return fixture.server.admit(fixture.now_us, step.admit, grant, &fixture.reply);
    }

    fn open(fixture: *ServerFixture) !wire.Packet {
        const admission = try fixture.admit(device, hello(5, .token, &token), .{ .boot = boot });
        try testing.expectEqual(.opened, admission.outcome);
        return wire.parse(admission.reply.?);
    }

    fn read(
        fixture: *ServerFixture,
        from: base.Endpoint,
        session: wire.Packet,
        request: wire.Read,
    ) StreamServer.Step {
        var tagged = request;
        if (tagged.version_tag == 0) tagged.version_tag = session.body.welcome.version_tag;
        return fixture.send(
            from,
            .{ .session_id = session.session_id, .request_id = 9, .body = .{ .read = tagged } },
        );
    }
};

test "an address without a cookie gets a cookie, fewer bytes than it sent, and leaves no trace" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const step =
        fixture.send(device, .{ .body = .{ .hello = ServerFixture.hello(5, .token, &token) } });
    try testing.expectEqual(wire.cookie_size, step.reply.len);
    try testing.expect(step.reply.len < wire.hello_size);
    try testing.expectEqual(0, fixture.server.session_count);
}

test "a cookie holds for its address, nonce and minute only" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    var greeting = ServerFixture.hello(5, .token, &token);
    greeting.cookie = try fixture.cookieFor(device, greeting);
    try testing.expect(fixture.send(device, .{ .body = .{ .hello = greeting } }) == .admit);
    try testing.expect(fixture.send(elsewhere, .{ .body = .{ .hello = greeting } }) == .reply);
    var other_nonce = greeting;
    other_nonce.client_nonce = @splat(6);
    try testing.expect(fixture.send(device, .{ .body = .{ .hello = other_nonce } }) == .reply);
    fixture.now_us += secrets.cookie_slot_us;
    try testing.expect(fixture.send(device, .{ .body = .{ .hello = greeting } }) == .admit);
    fixture.now_us += secrets.cookie_slot_us;
    try testing.expect(fixture.send(device, .{ .body = .{ .hello = greeting } }) == .reply);
    try testing.expectEqual(3, fixture.server.ignored.get(.stream_stale_cookie));
}

test "the same HELLO again gets the same WELCOME" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const first = try fixture.open();
    const secret = first.body.welcome.resume_secret;
    var used = boot;
    used.token_nonce = @splat(5);
    const again =
        try fixture.admit(device, ServerFixture.hello(5, .token, &token), .{ .boot = used });
    try testing.expectEqual(.repeated, again.outcome);
    const welcome = try wire.parse(again.reply.?);
    try testing.expectEqual(first.session_id, welcome.session_id);
    try testing.expectEqualSlices(u8, &secret, &welcome.body.welcome.resume_secret);
    try testing.expectEqual(1, fixture.server.session_count);
}

test "a token opens a session once, whoever shows it with another nonce" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    _ = try fixture.open();
    const in_memory =
        try fixture.admit(elsewhere, ServerFixture.hello(6, .token, &token), .{ .boot = boot });
    try testing.expectEqual(.token_refused, in_memory.outcome);
    fixture.server.forget(boot_id);
    var used = boot;
    used.token_nonce = @splat(5);
    const after_restart =
        try fixture.admit(elsewhere, ServerFixture.hello(6, .token, &token), .{ .boot = used });
    try testing.expectEqual(.token_refused, after_restart.outcome);
    try testing.expectEqual(0, fixture.server.session_count);
}

test "a refused device sees no packet of another device's session" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    fixture.server.options.packet_size_max = wire.packet_size_max;
    var greeting = ServerFixture.hello(5, .token, &token);
    greeting.packet_size_max = wire.packet_size_max;
    greeting.proof = stream_seal.helloProof(&token, &greeting);
    var large: StreamServer.LargeBuffer = undefined;
    const opened = try fixture.admit(device, greeting, .{ .boot = boot });
    try testing.expectEqual(wire.packet_size_max, fixture.server.showSize(&opened, &large).?.len);
    greeting.client_nonce = @splat(6);
    greeting.proof = stream_seal.helloProof(&token, &greeting);
    const refused = try fixture.admit(elsewhere, greeting, .{ .boot = boot });
    try testing.expectEqual(.token_refused, refused.outcome);
    try testing.expectEqual(null, fixture.server.showSize(&refused, &large));
}

test "a wrong token, an unknown boot and a missing version are refused with their code" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const wrong = ServerFixture.hello(5, .token, &wrong_secret);
    const right = ServerFixture.hello(5, .token, &token);
    const cases = [_]struct { wire.Hello, StreamServer.Grant, wire.RefuseCode }{
        .{ wrong, .{ .boot = boot }, .token_refused },
        .{ right, .unknown, .token_refused },
        .{ right, .version_missing, .version_missing },
        .{ ServerFixture.hello(5, .resumption, &wrong_secret), .{ .boot = boot }, .token_refused },
    };
    for (cases) |case| {
        const admission = try fixture.admit(device, case[0], case[1]);
        try testing.expectEqual(case[2], (try wire.parse(admission.reply.?)).body.refuse.code);
    }
    try testing.expectEqual(0, fixture.server.session_count);
}

test "a device resumes at a restarted edge with its resume secret" {
    var fixture: ServerFixture = try .init(4);
    const secret = (try fixture.open()).body.welcome.resume_secret;
    fixture.deinit();
    fixture = try .init(4);
    defer fixture.deinit();
    fixture.server.options.keys.cookie = @splat(8);
    fixture.server.options.keys.session = @splat(9);
    const admission = try fixture.admit(
        elsewhere,
        ServerFixture.hello(6, .resumption, &secret),
        .{ .boot = boot },
    );
    try testing.expectEqual(.resumed, admission.outcome);
    const packet = try wire.parse(admission.reply.?);
    try testing.expect(fixture.read(
        elsewhere,
        packet,
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = 512 },
    ) == .read);
}

test "a resumption replaces the session and a late token HELLO does not undo it" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const first = try fixture.open();
    const resumed = try fixture.admit(
        device,
        ServerFixture.hello(6, .resumption, &first.body.welcome.resume_secret),
        .{ .boot = boot },
    );
    const second = try wire.parse(resumed.reply.?);
    try testing.expect(first.session_id != second.session_id);
    try testing.expectEqual(1, fixture.server.session_count);
    const late =
        try fixture.admit(device, ServerFixture.hello(5, .token, &token), .{ .boot = boot });
    try testing.expectEqual(.stale, late.outcome);
    try testing.expect(fixture.read(
        device,
        second,
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = 512 },
    ) == .read);
    try testing.expect(fixture.read(
        device,
        first,
        .{ .fragment_size = 1440, .version_tag = 1, .offset = 0, .length = 512 },
    ) == .reply);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_unknown_session));
}

test "a copy of the HELLO in version 2 neither keeps the device's session, nor moves it" {
    for ([_]wire.HelloKind{ .token, .resumption }) |kind| {
        var fixture: ServerFixture = try .init(4);
        defer fixture.deinit();
        const resume_secret = fixture.server.resumeSecretOf(boot_id);
        const secret: []const u8 = if (kind == .token) &token else &resume_secret;
        const old = ServerFixture.hello(5, kind, secret);
        const copied = try fixture.admit(elsewhere, old, .{ .boot = boot });
        var used = boot;
        used.token_nonce = @splat(5);
        const own = try fixture.admitNewest(device, old, secret, .{ .boot = used });
        const welcome = try wire.parse(own.reply.?);
        try testing.expectEqual(.v3, welcome.version);
        try testing.expect(own.session_id != copied.session_id);
        try testing.expectEqual(1, fixture.server.session_count);
        const late = try fixture.admit(elsewhere, old, .{ .boot = used });
        try testing.expectEqual(.stale, late.outcome);
        try testing.expectEqual(null, late.reply);
        try testing.expect(fixture.server.sessionOf(boot_id).?.from.eql(device));
        const again = try fixture.admitNewest(device, old, secret, .{ .boot = used });
        try testing.expectEqual(.repeated, again.outcome);
        try testing.expectEqual(own.session_id, again.session_id);
    }
}

test "a session that its device uses stays in its version" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const welcome = try fixture.open();
    const request: wire.Read =
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = 512 };
    try testing.expect(fixture.read(device, welcome, request) == .read);
    var used = boot;
    used.token_nonce = @splat(5);
    fixture.now_us += 1;
    try testing.expect(fixture.read(device, welcome, request) != .reply);
    const old = ServerFixture.hello(5, .token, &token);
    const newer = try fixture.admitNewest(elsewhere, old, &token, .{ .boot = used });
    try testing.expectEqual(.stale, newer.outcome);
    try testing.expectEqual(.v2, fixture.server.sessionOf(boot_id).?.version);
}

test "a READ names exactly its fragments, the last one short" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    const step = fixture.read(
        device,
        session,
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 8192, .length = 4096 },
    );
    try testing.expect(step.read.first);
    var fragments = step.read.fragments();
    const lengths = [_]u16{ 1440, 1440, 1216 };
    for (lengths, 0..) |length, index| {
        const fragment = fragments.next().?;
        try testing.expectEqual(index, fragment.index);
        try testing.expectEqual(8192 + index * 1440, fragment.offset);
        try testing.expectEqual(length, fragment.length);
    }
    try testing.expectEqual(null, fragments.next());
    try testing.expectEqual(4096, step.read.bytes_out);
    try testing.expectEqual(3, step.read.packets_out);
}

test "a retransmitted READ names the missing fragments only and counts as a retry" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    _ = fixture.read(
        device,
        session,
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = 131072 },
    );
    var list: wire.RangeList = .{};
    try list.append(.{ .first_fragment = 3, .fragment_count = 2 });
    try list.append(.{ .first_fragment = 90, .fragment_count = 1 });
    const step = fixture.read(device, session, .{
        .fragment_size = 1440,
        .version_tag = 0,
        .offset = 0,
        .length = 131072,
        .attempt = 1,
        .ranges = list.view(),
    });
    var fragments = step.read.fragments();
    for ([_]u16{ 3, 4, 90 }) |index| try testing.expectEqual(index, fragments.next().?.index);
    try testing.expectEqual(null, fragments.next());
    try testing.expectEqual(2 * 1440 + 1440, step.read.bytes_out);
    const statistics = fixture.server.sessionOf(boot_id).?.statistics;
    try testing.expectEqual(1, statistics.reads);
    try testing.expectEqual(1, statistics.retries);
    try testing.expectEqual(3, statistics.missing_fragments);
    try testing.expectEqual(131072, statistics.read_bytes);
    try testing.expectEqual(1, statistics.read_sizes[8]);
}

test "a READ whose first packet was lost counts as a read, a second copy as a retry" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    var list: wire.RangeList = .{};
    try list.append(.{ .first_fragment = 0, .fragment_count = 3 });
    const again: wire.Read =
        .{
            .fragment_size = 1440,
            .version_tag = 0,
            .offset = 0,
            .length = 4096,
            .attempt = 1,
            .ranges = list.view(),
        };
    try testing.expect(!fixture.read(device, session, again).read.repeated);
    try testing.expect(fixture.read(device, session, again).read.repeated);
    const statistics = fixture.server.sessionOf(boot_id).?.statistics;
    try testing.expectEqual(1, statistics.reads);
    try testing.expectEqual(1, statistics.retries);
}

test "a READ beyond the disk, its limits or its version is answered with an error and no bytes" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    const cases = [_]struct { wire.Read, wire.ReadErrorCode }{
        .{
            .{ .fragment_size = 1440, .version_tag = 0, .offset = 1 << 20, .length = 512 },
            .beyond_the_end,
        },
        .{
            .{ .fragment_size = 1440, .version_tag = 0, .offset = (1 << 20) - 512, .length = 1024 },
            .beyond_the_end,
        },
        .{ .{ .fragment_size = 1440, .version_tag = 0, .offset = std.math.maxInt(
            u64,
        ) - 511, .length = 512 }, .beyond_the_end },
        .{
            .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = (1 << 20) + 512 },
            .too_large,
        },
        .{
            .{ .fragment_size = 1440, .version_tag = 77, .offset = 0, .length = 512 },
            .version_mismatch,
        },
    };
    for (cases) |case| {
        const step = fixture.read(device, session, case[0]);
        const packet = try wire.parse(step.reply);
        try testing.expectEqual(case[1], packet.body.read_error.code);
        try testing.expectEqual(9, packet.request_id);
    }
    try testing.expectEqual(0, fixture.server.sessionOf(boot_id).?.statistics.bytes_out);
}

test "a range beyond the last fragment is ignored" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    var list: wire.RangeList = .{};
    try list.append(.{ .first_fragment = 2, .fragment_count = 2 });
    const step =
        fixture.read(device, session, .{
            .fragment_size = 1440,
            .version_tag = 0,
            .offset = 0,
            .length = 4096,
            .ranges = list.view(),
        });
    try testing.expectEqual(.stream_bad_range, step.ignored);
}

test "another address cannot use a session, and an edge's own packets are no requests" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    const step = fixture.read(
        elsewhere,
        session,
        .{ .fragment_size = 1440, .version_tag = 0, .offset = 0, .length = 512 },
    );
    try testing.expectEqual(.no_session, std.meta.activeTag((try wire.parse(step.reply)).body));
    const echo = fixture.send(device, .{ .session_id = session.session_id, .body = .ready_ack });
    try testing.expectEqual(.stream_wrong_direction, echo.ignored);
}

test "READY is acknowledged each time and new only once" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    const packet: wire.Packet = .{
        .session_id = session.session_id,
        .request_id = 3,
        .body = .{
            .ready = .{
                .outcome = .failed,
                .uptime_us = 42,
                .code = "no_root".* ++ @as([5]u8, @splat(0)),
                .sentence = "no file system has an init",
            },
        },
    };
    const first = fixture.send(device, packet).ready;
    try testing.expect(!first.repeated);
    try testing.expectEqualStrings("no_root", first.code.slice());
    try testing.expectEqualStrings("no file system has an init", first.sentence.slice());
    try testing.expectEqual(wire.Type.ready_ack, std.meta.activeTag(
        (try wire.parse(first.reply)).body,
    ));
    try testing.expect(fixture.send(device, packet).ready.repeated);
}

test "a REPORT carries its steps and is acknowledged with the waiting order" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const session = try fixture.open();
    var list: wire.StepList = .empty;
    try list.append(.{ .group = .firmware, .name = "POST", .start_us = -9, .duration_us = 7 });
    const packet: wire.Packet = .{
        .session_id = session.session_id,
        .request_id = 3,
        .body = .{
            .report = .{
                .uptime_us = 42,
                .write_cache_used = 1,
                .write_cache_size = 2,
                .steps = list.view(),
            },
        },
    };
    const said = fixture.send(device, packet).report;
    try testing.expectEqual(42, said.report.uptime_us);
    var steps = said.report.steps.iterate();
    try testing.expectEqualStrings("POST", steps.next().?.name);
    const order: wire.ReportAck = .{ .order = .restart, .order_id = @splat(5) };
    const answer = try wire.parse(fixture.server.acknowledgeReport(&said, order, &fixture.reply).?);
    try testing.expectEqual(3, answer.request_id);
    try testing.expectEqual(session.session_id, answer.session_id);
    try testing.expectEqualDeep(order, answer.body.report_ack);
    try testing.expectEqual(wire.no_session_size, fixture.send(elsewhere, packet).reply.len);
}

test "a device that only reports yields its slot to one that wants to boot" {
    var fixture: ServerFixture = try .init(1);
    defer fixture.deinit();
    const session = try fixture.open();
    const packet: wire.Packet =
        .{ .session_id = session.session_id, .body = .{ .report = .{ .uptime_us = 42 } } };
    for (0..3) |_| {
        fixture.now_us += StreamServer.session_spare_us / 2;
        _ = fixture.send(device, packet).report;
    }
    const other = ServerFixture.helloOf(.{ .bytes = @splat(0xb1) }, 5, .token, &token);
    try testing.expectEqual(.opened, (try fixture.admit(
        elsewhere,
        other,
        .{ .boot = boot },
    )).outcome);
    try testing.expect(fixture.send(device, packet).reply.len == wire.no_session_size);
}

test "a full table refuses as busy while all sessions are active, then evicts the most silent one" {
    var fixture: ServerFixture = try .init(1);
    defer fixture.deinit();
    _ = try fixture.open();
    const other = ServerFixture.helloOf(.{ .bytes = @splat(0xb1) }, 5, .token, &token);
    try testing.expectEqual(.busy, (try fixture.admit(
        elsewhere,
        other,
        .{ .boot = boot },
    )).outcome);
    // The search for a session that is spare is not repeated for every HELLO.
    const search_interval_us = 100 * std.time.us_per_ms;
    fixture.now_us += StreamServer.session_spare_us - search_interval_us;
    for (0..2) |_| {
        try testing.expectEqual(
            .busy,
            (try fixture.admit(elsewhere, other, .{ .boot = boot })).outcome,
        );
        fixture.now_us += search_interval_us - 1;
    }
    fixture.now_us += 1;
    try testing.expectEqual(
        .opened,
        (try fixture.admit(elsewhere, other, .{ .boot = boot })).outcome,
    );
    try testing.expectEqual(1, fixture.server.session_count);
    try testing.expectEqual(null, fixture.server.sessionOf(boot_id));
}

test "a session that has been idle for its time is forgotten" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    _ = try fixture.open();
    fixture.server.expire(fixture.now_us + StreamServer.session_idle_us_default - 1);
    try testing.expectEqual(1, fixture.server.session_count);
    fixture.server.expire(fixture.now_us + StreamServer.session_idle_us_default);
    try testing.expectEqual(0, fixture.server.session_count);
}

test "sizes of reads fall into the buckets of the boot report" {
    const cases = [_]struct { u32, u4 }{
        .{ 512, 0 },  .{ 1024, 1 }, .{ 1536, 2 },     .{ 2048, 2 },
        .{ 4096, 3 }, .{ 4608, 4 }, .{ 131072, 8 },   .{ 1 << 20, 11 },
        .{ 1, 0 },    .{ 513, 1 },  .{ 1 << 24, 15 }, .{ (1 << 24) + 1, 15 },
    };
    for (cases) |case| try testing.expectEqual(case[1], StreamServer.readSizeIndex(case[0]));
}

/// What a test saw on the network.
const Traffic = struct {
    packets: u64 = 0,
    bytes: u64 = 0,

    fn add(traffic: *Traffic, packet: []const u8) void {
        traffic.packets += 1;
        traffic.bytes += packet.len;
    }
};

/// A session whose device and edge have the same key, in a table that has no place but its own.
const SessionFixture = struct {
    host: ServerFixture,
    session: *StreamServer.Session,
    /// Of the next sealed packet.
    counter: u64 = 1,
    in: Traffic = .{},
    out: Traffic = .{},
    large: StreamServer.LargeBuffer = undefined,

    fn init(cipher: wire.Cipher) !SessionFixture {
        var host: ServerFixture = try .init(1);
        _ = try host.open();
        const session = host.server.sessionOf(boot_id).?;
        session.from_device = .{ .cipher = cipher, .bytes = @splat(4) };
        session.from_edge = session.from_device;
        return .{ .host = host, .session = session };
    }

    fn send(fixture: *SessionFixture, request_id: u32, body: wire.Body) StreamServer.Step {
        const out = &fixture.host.out;
        const clear = wire.emit(
            .{ .session_id = fixture.session.id, .request_id = request_id, .body = body },
            out,
        );
        const key = &fixture.session.from_device;
        const packet =
            stream_seal.seal(key, fixture.counter, out, clear.len, wire.header_size);
        fixture.counter += 1;
        fixture.in.add(packet);
        fixture.host.now_us += 1;
        return fixture.host.server.receive(
            fixture.host.now_us,
            fixture.session.from,
            packet,
            &fixture.host.reply,
        );
    }

    fn read(fixture: *SessionFixture, request_id: u32, said: wire.Read) StreamServer.Step {
        var tagged = said;
        tagged.version_tag = secrets.versionTag(fixture.session.version_id);
        return fixture.send(request_id, .{ .read = tagged });
    }

    /// Sends what a READ requests.
    fn serve(fixture: *SessionFixture, request: *const StreamServer.ReadRequest) !void {
        const zeros: [1440]u8 = @splat(0);
        var sealer = fixture.host.server.sealer(request.session_id).?;
        var fragments = request.fragments();
        const before = fixture.out;
        while (fragments.next()) |*fragment| fixture.out.add(
            sealer.seal(&fragment.header, zeros[0..fragment.length], &fixture.large),
        );
        try testing.expectEqual(fixture.out.packets - before.packets, request.packets_out);
        try testing.expectEqual(fixture.out.bytes - before.bytes, request.wireBytes());
    }
};

const plain_read: wire.Read =
    .{ .version_tag = 0, .offset = 0, .length = 4096, .fragment_size = 1440 };

test "what goes in and out of a session is counted to the byte, sealed or not" {
    for ([_]wire.Cipher{ .clear, .chacha20_poly1305 }) |cipher| {
        var fixture: SessionFixture = try .init(cipher);
        defer fixture.host.deinit();
        const server = &fixture.host.server;
        const session = fixture.session;
        try fixture.serve(&fixture.read(1, plain_read).read);
        // A retransmission of the short fragment at the end, of one before it, and of both.
        for ([_]u16{ 2, 1, 1 }, [_]u16{ 1, 1, 2 }) |first, count| {
            var list: wire.RangeList = .{};
            try list.append(.{ .first_fragment = first, .fragment_count = count });
            var again = plain_read;
            again.attempt = 1;
            again.ranges = list.view();
            try fixture.serve(&fixture.read(1, again).read);
        }
        const ready = fixture.send(2, .{ .ready = .{
            .outcome = .failed,
            .uptime_us = 42,
            .code = "no_root".* ++ @as([5]u8, @splat(0)),
            .sentence = "no init",
        } });
        fixture.out.add(ready.ready.reply);
        const reply = &fixture.host.reply;
        const report = fixture.send(3, .{ .report = .{ .uptime_us = 42 } }).report;
        fixture.out.add(server.acknowledgeReport(&report, .{}, reply).?);
        const packet = fixture.host.out;
        const no_session = server.requestHello(&report, &packet, reply).?;
        fixture.out.add(no_session);
        try testing.expectEqual(
            stream_seal.counterOf(&packet),
            (try wire.parse(no_session)).session_id,
        );
        session.write_cache = .{ .class = .edge, .size = 1 << 20, .id = 1 };
        const flush = fixture.send(5, .{ .control = .{
            .version_tag = secrets.versionTag(session.version_id),
            .operation = .flush,
        } }).control;
        fixture.out.add(server.finishWrite(flush.ref, .done, reply).?.packet);
        const probe = fixture.send(4, .{ .probe = .{ .size = 1472 } }).probe;
        const shown = server.answerProbe(probe, &fixture.large).?;
        try testing.expectEqual(1472, shown.len);
        fixture.out.add(shown);
        try testing.expectEqual(
            [_]u64{ fixture.in.packets, fixture.in.bytes, fixture.out.packets, fixture.out.bytes },
            [_]u64{
                session.statistics.packets_in,
                session.statistics.bytes_in,
                session.statistics.packets_out,
                session.statistics.bytes_out,
            },
        );
    }
}

test "every packet keeps its session alive, and all but a REPORT its place in the table" {
    var fixture: SessionFixture = try .init(.chacha20_poly1305);
    defer fixture.host.deinit();
    _ = fixture.read(1, plain_read).read;
    const read_at_us = fixture.host.now_us;
    try testing.expectEqual(read_at_us, fixture.session.last_packet_at_us);
    try testing.expectEqual(read_at_us, fixture.session.last_request_at_us);
    _ = fixture.send(2, .{ .report = .{ .uptime_us = 42 } }).report;
    try testing.expectEqual(read_at_us + 1, fixture.session.last_packet_at_us);
    try testing.expectEqual(read_at_us, fixture.session.last_request_at_us);
}

test "a session's first READ is told from all later ones, of which one may be a retransmission" {
    for ([_]bool{ false, true }) |was_lost| {
        var fixture: SessionFixture = try .init(.clear);
        defer fixture.host.deinit();
        var first = plain_read;
        var list: wire.RangeList = .{};
        try list.append(.{ .first_fragment = 0, .fragment_count = 1 });
        if (was_lost) first.ranges = list.view();
        const request = fixture.read(1, first).read;
        try testing.expect(request.first);
        try testing.expectEqual(was_lost, request.repeated);
        try testing.expect(!fixture.read(2, plain_read).read.first);
    }
}

test "a READ, a fragment and a PROBE may be as large as was agreed, and no larger" {
    var fixture: SessionFixture = try .init(.clear);
    defer fixture.host.deinit();
    const server = &fixture.host.server;
    server.options.read_size_max = 8192;
    var read = plain_read;
    read.length = 8192;
    try testing.expect(fixture.read(1, read) == .read);
    read.length = 8704;
    try testing.expectEqual(
        .too_large,
        (try wire.parse(fixture.read(2, read).reply)).body.read_error.code,
    );
    fixture.session.packet_size_max = 1400;
    read.length = 8192;
    read.fragment_size = fixture.session.fragmentSizeMax();
    try testing.expectEqual(1368, read.fragment_size);
    try testing.expect(fixture.read(3, read) == .read);
    read.fragment_size += 8;
    try testing.expectEqual(.stream_bad_range, fixture.read(4, read).ignored);
    try testing.expect(fixture.send(5, .{ .probe = .{ .size = 1400 } }) == .probe);
    try testing.expectEqual(
        .stream_bad_value,
        fixture.send(6, .{ .probe = .{ .size = 1401 } }).ignored,
    );
}

test "packets to a device are numbered from one, without a gap" {
    var fixture: SessionFixture = try .init(.chacha20_poly1305);
    defer fixture.host.deinit();
    // The WELCOME had the first number.
    for (2..6) |number| {
        const packet =
            fixture.session.emit(7, .ready_ack, wire.header_size, &fixture.host.reply);
        try testing.expectEqual(number, stream_seal.counterOf(packet));
    }
}

test "a packet of no session is answered under its own number, unless that is zero" {
    var fixture: ServerFixture = try .init(4);
    defer fixture.deinit();
    const unknown: wire.Packet =
        .{ .session_id = 1, .request_id = 9, .body = .{ .read = plain_read } };
    var request = wire.emit(unknown, &fixture.out);
    const answer = try wire.parse(
        fixture.server.receive(fixture.now_us, device, request, &fixture.reply).reply,
    );
    try testing.expectEqual(1, answer.session_id);
    try testing.expectEqual(9, answer.request_id);
    fixture.out[8..16].* = @splat(0);
    request = fixture.out[0..request.len];
    try testing.expectEqual(
        .stream_unknown_session,
        fixture.server.receive(fixture.now_us, device, request, &fixture.reply).ignored,
    );
    try testing.expectEqual(2, fixture.server.ignored.get(.stream_unknown_session));
}

test "each session that begins, moves or ends is one change, and its end leaves nothing of it" {
    var fixture: ServerFixture = try .init(2);
    defer fixture.deinit();
    const server = &fixture.server;
    try testing.expectEqual(null, server.sessionOf(.zero));
    _ = try fixture.open();
    try testing.expectEqual(1, server.changes);
    const first_id = server.sessionOf(boot_id).?.id;
    try testing.expectEqual(0, StreamServer.slotOf(first_id));
    try testing.expectEqual(0, server.prefetch(device).?);
    try testing.expectEqual(null, server.prefetch(elsewhere));
    _ = try fixture.admit(elsewhere, ServerFixture.hello(5, .token, &token), .{ .boot = boot });
    try testing.expectEqual(2, server.changes);
    server.collector.slots[0].session_id = first_id;
    server.forget(boot_id);
    try testing.expectEqual(3, server.changes);
    try testing.expectEqual(0, server.collector.slots[0].session_id);
    try testing.expectEqual(null, server.sessionOf(.zero));
    try testing.expect(!server.hasSessionAt(elsewhere));
    // The same HELLO gives another session.
    _ = try fixture.open();
    try testing.expect(server.sessionOf(boot_id).?.id != first_id);
}

test "a server that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator) !void {
            var server: StreamServer = try .init(gpa, .{ .keys = keys, .write_slots = 1 });
            server.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{});
}
