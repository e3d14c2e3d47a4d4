//! Tests of failover.zig: a device and two edges of its site (packages/proto/STREAM.md,
//! "Fail-over"), with the real sides of the stream and real tickets; and times to the microsecond,
//! with the device alone.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamClient = @import("client.zig");
const StreamServer = @import("../server/server.zig");
const stream_ticket = @import("../ticket.zig");
const TestDevice = @import("test_device.zig");
const testing = std.testing;

const key: stream_ticket.Key = @splat(0x51);
const device_address: base.Endpoint = .{ .ip = .init(10, 0, 0, 77), .port = 4000 };
const boot_id: base.Uuid = .fromRandom(@splat(1));
const version_id: base.Uuid = .fromRandom(@splat(2));
const disk_size = 1 << 20;
const step_us = std.time.us_per_ms;

const TestEdge = struct {
    at: base.Endpoint,
    server: StreamServer,
    is_alive: bool = true,
    /// Class in the tickets that it makes.
    write_cache: wire.WriteCacheClass = .device_ram,
    keys: []const stream_ticket.Key = &.{key},
    /// Its verdict on the last ticket.
    judged: ?stream_ticket.Judgement = null,
    hellos: u32 = 0,
    probes: u32 = 0,
    /// READs get no answer, everything else does.
    is_slow: bool = false,
    /// READs at and behind this offset get a store error.
    damaged_from: u64 = std.math.maxInt(u64),
    store_errors: u32 = 0,
    /// It has heard of the boot and not forgotten it.
    knows_boot: bool = true,
    hears_other: bool = true,
    /// The number of dead edges in the list before the other edge.
    dead_count: u8 = 0,
    /// Time from a HELLO with a cookie to its answer.
    welcome_us: u64 = 0,

    fn grant(
        edge: *TestEdge,
        claim: *const StreamServer.Claim,
        other: base.Endpoint,
    ) StreamServer.Grant {
        var boot: StreamServer.Grant.Boot = .{
            .token = @splat(3),
            .token_nonce = null,
            .version_id = version_id,
            .disk_size = disk_size,
        };
        if (!edge.knows_boot and claim.hello.kind != .ticket) return .unknown;
        if (claim.hello.kind == .ticket) {
            edge.judged = stream_ticket.judge(edge.keys, &claim.hello, 1_795_000_000_000);
            switch (edge.judged.?) {
                .refused => return .unknown,
                .elsewhere => return .{ .no_cache = .cache_elsewhere },
                .good => |ticket| boot.ticket_secret = ticket.resume_secret,
            }
        }
        if (edge.write_cache != .device_ram)
            boot.write_cache = .{ .class = edge.write_cache, .id = 7, .size = 1 << 20 };
        if (!edge.hears_other) return .{ .boot = boot };
        boot.failover = .{ .lifetime_s = 100, .edges = .empty, .ticket = undefined };
        boot.failover.?.ticket = stream_ticket.seal(.v1, &key, @splat(4), &.{
            .boot_id = boot_id.bytes,
            .version_id = version_id.bytes,
            .vdisk_id = @splat(0),
            .device_id = @splat(0),
            .edge_id = @splat(9),
            .resume_secret = edge.server.resumeSecretOf(boot_id),
            .mac = .{ .bytes = .{ 2, 0, 0, 0, 0, 1 } },
            .write_cache = edge.write_cache,
            .flags = .{},
            .hand_overs = 0,
            .started_unix_ms = 1_795_000_000_000,
            .elapsed_us = 0,
            .expires_unix_ms = 1_795_000_100_000,
            .disk_size = disk_size,
        });
        for (0..edge.dead_count) |index|
            boot.failover.?.edges.appendAssumeCapacity(
                .{ .ip = .init(10, 0, 1, @intCast(index + 1)), .port = 6910 },
            );
        boot.failover.?.edges.appendAssumeCapacity(other);
        return .{ .boot = boot };
    }
};

const SiteFixture = struct {
    now_us: u64 = 1_000_000,
    edges: [2]TestEdge,
    client: StreamClient,
    /// A WELCOME that is delayed.
    late: ?struct {
        at_us: u64,
        size: usize,
        bytes: [wire.sealed_request_size_max]u8 = undefined,
    } = null,

    fn init() !SiteFixture {
        var fixture: SiteFixture =
            .{ .edges = undefined, .client = try .init(testing.allocator, .{}) };
        for (&fixture.edges, 0..) |*edge, index| edge.* = .{
            .at = .{ .ip = .init(10, 0, 0, @intCast(index + 1)), .port = 6910 },
            .server = try .init(testing.allocator, .{ .sessions_max = 4, .keys = .{
                .cookie = @splat(@intCast(index + 1)),
                .session = @splat(@intCast(index + 11)),
                .resumption = @splat(@intCast(index + 21)),
            } }),
        };
        fixture.client.start(fixture.now_us, .{
            .boot_id = boot_id,
            .token = @splat(3),
            .nonce_seed = @splat(5),
            .edge = fixture.edges[0].at,
        });
        return fixture;
    }

    fn deinit(fixture: *SiteFixture) void {
        for (&fixture.edges) |*edge| edge.server.deinit(testing.allocator);
        fixture.client.deinit(testing.allocator);
    }

    fn turn(fixture: *SiteFixture) void {
        var out: [wire.sealed_request_size_max]u8 = undefined;
        for (0..1000) |_| {
            fixture.client.onTimer(fixture.now_us);
            const packet = fixture.client.transmit(fixture.now_us, &out) orelse break;
            for (&fixture.edges, 0..) |*edge, index| if (edge.is_alive and edge.at.eql(
                fixture.client.failover.current,
            )) fixture.serve(edge, 1 - index, packet);
        }
        fixture.now_us += step_us;
        const late = if (fixture.late) |*late| late else return;
        if (fixture.now_us < late.at_us) return;
        fixture.client.receive(fixture.now_us, late.bytes[0..late.size]);
        fixture.late = null;
    }

    fn serve(fixture: *SiteFixture, edge: *TestEdge, other: usize, packet: []const u8) void {
        var reply: StreamServer.ReplyBuffer = undefined;
        var large: StreamServer.LargeBuffer = undefined;
        switch (edge.server.receive(fixture.now_us, device_address, packet, &reply)) {
            .reply => |answer| fixture.client.receive(fixture.now_us, answer),
            .admit => |claim| {
                edge.hellos += 1;
                const admission = edge.server.admit(
                    fixture.now_us,
                    claim,
                    edge.grant(&claim, fixture.edges[other].at),
                    &reply,
                );
                if (edge.server.showSize(&admission, &large)) |packet_large|
                    fixture.client.receive(fixture.now_us, packet_large);
                const answer = admission.reply orelse return;
                if (edge.welcome_us == 0) return fixture.client.receive(fixture.now_us, answer);
                if (fixture.late != null) return;
                fixture.late = .{ .at_us = fixture.now_us + edge.welcome_us, .size = answer.len };
                @memcpy(fixture.late.?.bytes[0..answer.len], answer);
            },
            .probe => |probe| {
                edge.probes += 1;
                fixture.client.receive(fixture.now_us, edge.server.answerProbe(probe, &large).?);
            },
            .read => |*request| if (request.offset >= edge.damaged_from) {
                edge.store_errors += 1;
                fixture.client.receive(
                    fixture.now_us,
                    edge.server.readError(request, .store_error, &reply).?,
                );
            } else if (!edge.is_slow) {
                var sealer = edge.server.sealer(request.session_id).?;
                var fragments = request.fragments();
                while (fragments.next()) |fragment| {
                    var payload: [wire.fragment_size_max]u8 = undefined;
                    for (payload[0..fragment.length], fragment.offset..) |*byte, at|
                        byte.* = byteAt(at);
                    fixture.client.receive(
                        fixture.now_us,
                        sealer.seal(&fragment.header, payload[0..fragment.length], &large),
                    );
                }
            },
            .ready => |ready| fixture.client.receive(fixture.now_us, ready.reply),
            .report => |*report| {
                const given = if (edge.server.findById(report.session_id).?.failover) |*given|
                    given
                else
                    null;
                const listed: []const base.Endpoint =
                    if (edge.hears_other) &.{fixture.edges[other].at} else &.{};
                const answer = if (stream_ticket.isOutdated(given, listed, edge.keys))
                    edge.server.requestHello(report, packet, &reply)
                else
                    edge.server.acknowledgeReport(report, .{}, &reply);
                fixture.client.receive(fixture.now_us, answer.?);
            },
            else => {},
        }
    }

    fn byteAt(offset: u64) u8 {
        return @truncate(offset *% 0x9e3779b97f4a7c15 >> 32);
    }

    /// Returns how long it took.
    fn read(fixture: *SiteFixture, offset: u64, limit_us: u64) !u64 {
        var buffer: [32 << 10]u8 = @splat(0);
        const began_us = fixture.now_us;
        try fixture.client.submit(1, offset, &buffer);
        while (fixture.now_us - began_us < limit_us) {
            fixture.turn();
            while (fixture.client.nextEvent()) |event| switch (event) {
                .read_done => {
                    for (&buffer, offset..) |byte, at| try testing.expectEqual(byteAt(at), byte);
                    return fixture.now_us - began_us;
                },
                .established, .refused_elsewhere, .ready_acknowledged, .report_acknowledged => {},
                else => return error.UnexpectedEvent,
            };
        }
        return error.NoAnswer;
    }
};

test "a silent edge is left within two seconds, and the other edge knows the device's reports" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    fixture.client.reportReady(fixture.now_us, .ready, 5, .{});
    _ = try fixture.read(65536, 1_000_000);
    try testing.expect(fixture.client.ready.?.acknowledged);
    fixture.edges[0].is_alive = false;
    const waited_us = try fixture.read(4096, 3_000_000);
    try testing.expect(waited_us < 2_000_000);
    try testing.expectEqual(1, fixture.client.statistics.failovers);
    try testing.expect(fixture.client.failover.current.eql(fixture.edges[1].at));
    _ = try fixture.read(8192, 100_000);
    try testing.expect(fixture.edges[1].server.sessionOf(boot_id).?.ready);
    // And back, by the ticket of the second edge.
    fixture.edges[0].is_alive = true;
    fixture.edges[1].is_alive = false;
    try testing.expect(try fixture.read(12288, 3_000_000) < 2_000_000);
    try testing.expectEqual(2, fixture.client.statistics.failovers);
}

test "if four edges are gone, its own among them, a device reads on within three seconds" {
    for ([_]u64{ 2_000, 200_000 }) |round_trip_us| {
        var fixture: SiteFixture = try .init();
        defer fixture.deinit();
        fixture.edges[0].dead_count = 3;
        _ = try fixture.read(0, 1_000_000);
        // On a slow path it takes longer to be sure that the own edge is gone.
        for (0..40) |_| fixture.client.rtt.sample(round_trip_us);
        fixture.edges[0].is_alive = false;
        try testing.expect(try fixture.read(4096, 10_000_000) < 3_000_000);
        try testing.expect(fixture.client.failover.current.eql(fixture.edges[1].at));
        try testing.expectEqual(1, fixture.client.statistics.failovers);
    }
}

test "if six edges are gone, its own among them, a device on a LAN reads on within three seconds" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[0].dead_count = 5;
    _ = try fixture.read(0, 1_000_000);
    for (0..40) |_| fixture.client.rtt.sample(2_000);
    fixture.edges[0].is_alive = false;
    try testing.expect(try fixture.read(4096, 10_000_000) < 3_000_000);
    try testing.expect(fixture.client.failover.current.eql(fixture.edges[1].at));
    try testing.expectEqual(1, fixture.client.statistics.failovers);
}

test "a live edge that is slow to answer a HELLO keeps its turn" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[0].dead_count = 1;
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_alive = false;
    fixture.edges[1].welcome_us = 400_000;
    try testing.expect(try fixture.read(4096, 10_000_000) < 2_000_000);
    try testing.expectEqual(1, fixture.client.statistics.failovers);
}

test "if the network reports that nobody is there, the other edge is tried at once" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_alive = false;
    var buffer: [512]u8 = undefined;
    try fixture.client.submit(2, 0, &buffer);
    fixture.turn();
    fixture.client.onUnreachable(fixture.now_us);
    const began_us = fixture.now_us;
    while (fixture.client.reads[0].state == .in_flight and fixture.now_us - began_us < 100_000)
        fixture.turn();
    try testing.expect(fixture.client.nextEvent().? == .established);
    try testing.expect(fixture.client.nextEvent().? == .read_done);
}

test "an edge with a slow disk is probed, and kept" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_slow = true;
    try testing.expectError(error.NoAnswer, fixture.read(4096, 8_000_000));
    try testing.expect(fixture.edges[0].probes > 0);
    try testing.expectEqual(0, fixture.client.statistics.failovers);
    try testing.expectEqual(0, fixture.edges[1].hellos);
}

test "a read that its edge cannot read is read from another edge, and the device stays there" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].damaged_from = 1 << 19;
    try testing.expect(try fixture.read(1 << 19, 3_000_000) < 500_000);
    try testing.expectEqual(3, fixture.edges[0].store_errors);
    try testing.expectEqual(1, fixture.client.statistics.departures);
    try testing.expect(fixture.client.failover.current.eql(fixture.edges[1].at));
    _ = try fixture.read(1 << 19, 100_000);
    // One damaged block there leads back at once, since the former one was read.
    fixture.edges[1].damaged_from = 0;
    fixture.edges[0].damaged_from = std.math.maxInt(u64);
    try testing.expect(try fixture.read(4096, 3_000_000) < 500_000);
    try testing.expectEqual(2, fixture.client.statistics.departures);
}

test "if no edge can read it, the device asks its own, and the others less and less often" {
    for ([_]bool{ false, true }) |is_refused| {
        var fixture: SiteFixture = try .init();
        defer fixture.deinit();
        _ = try fixture.read(0, 1_000_000);
        for (&fixture.edges) |*edge| edge.damaged_from = 1 << 19;
        if (is_refused) fixture.edges[1].keys = &.{@splat(1)};
        try testing.expectError(error.NoAnswer, fixture.read(1 << 19, 100_000_000));
        // After 0, 10, 30 and 70 seconds.
        try testing.expectEqual(4, fixture.client.statistics.departures);
        try testing.expect(fixture.edges[0].store_errors > 20);
        // What can be read is read meanwhile.
        _ = try fixture.read(8192, 1_000_000);
    }
}

test "a device whose writes are at its own edge asks that edge alone, however often it fails" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[0].write_cache = .edge;
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].damaged_from = 1 << 19;
    var buffer: [512]u8 = undefined;
    try fixture.client.submit(2, 1 << 19, &buffer);
    for (0..20_000) |_| fixture.turn();
    try testing.expectEqual(.established, fixture.client.state);
    try testing.expect(fixture.edges[0].store_errors > 10);
    try testing.expectEqual(0, fixture.client.statistics.departures);
    try testing.expectEqual(0, fixture.edges[1].hellos);
    fixture.edges[0].damaged_from = std.math.maxInt(u64);
    for (0..1_100) |_| fixture.turn();
    try testing.expect(fixture.client.nextEvent().? == .read_done);
}

test "another edge refuses a device whose own edge keeps its writes: the device waits for it" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[0].write_cache = .edge;
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_alive = false;
    try testing.expectError(error.NoAnswer, fixture.read(4096, 60_000_000));
    try testing.expectEqual(boot_id.bytes, fixture.edges[1].judged.?.elsewhere.boot_id);
    try testing.expectEqual(null, fixture.edges[1].server.sessionOf(boot_id));
    try testing.expectEqual(1, fixture.edges[1].hellos);
    try testing.expect(fixture.client.failover.current.eql(fixture.edges[0].at));
    fixture.edges[0].is_alive = true;
    _ = try fixture.read(8192, 3_000_000);
    try testing.expectEqual(0, fixture.client.statistics.failovers);
}

test "an edge with another site's keys refuses the boot, and the own edge is tried repeatedly" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[1].keys = &.{@splat(1)};
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_alive = false;
    try testing.expectError(error.NoAnswer, fixture.read(4096, 30_000_000));
    try testing.expect(fixture.edges[1].hellos > 1);
    try testing.expect(fixture.edges[1].hellos < 30);
    fixture.edges[0].is_alive = true;
    _ = try fixture.read(8192, 10_000_000);
    try testing.expectEqual(0, fixture.client.statistics.failovers);
}

test "an idle device gets a new ticket when half the lifetime of its ticket is over" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    const hellos = fixture.edges[0].hellos;
    fixture.now_us += 51 * std.time.us_per_s;
    fixture.turn();
    fixture.turn();
    try testing.expectEqual(hellos + 1, fixture.edges[0].hellos);
    try testing.expectEqual(.established, fixture.client.state);
}

test "a device learns of a new edge with its next report, and fails over to it" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    fixture.edges[0].hears_other = false;
    _ = try fixture.read(0, 1_000_000);
    fixture.client.report(fixture.now_us, .{ .uptime_us = 1 });
    _ = try fixture.read(4096, 1_000_000);
    try testing.expect(!fixture.client.failover.hasOthers());
    const hellos = fixture.edges[0].hellos;
    fixture.edges[0].hears_other = true;
    for (0..3) |_| {
        fixture.client.report(fixture.now_us, .{ .uptime_us = 1 });
        _ = try fixture.read(8192, 1_000_000);
    }
    try testing.expectEqual(hellos + 1, fixture.edges[0].hellos);
    try testing.expectEqual(null, fixture.client.report_state.dueAt());
    try testing.expect(fixture.client.failover.hasOthers());
    fixture.edges[0].is_alive = false;
    try testing.expect(try fixture.read(4096, 3_000_000) < 2_000_000);
    try testing.expectEqual(1, fixture.client.statistics.failovers);
}

test "an edge that restarted before it stored a failed-over boot accepts its own ticket" {
    var fixture: SiteFixture = try .init();
    defer fixture.deinit();
    _ = try fixture.read(0, 1_000_000);
    fixture.edges[0].is_alive = false;
    _ = try fixture.read(4096, 3_000_000);
    fixture.edges[1].server.forget(boot_id);
    fixture.edges[1].knows_boot = false;
    _ = try fixture.read(8192, 3_000_000);
    try testing.expect(fixture.client.failover.current.eql(fixture.edges[1].at));
    // The device's writes are lost: then no ticket is shown.
    fixture.edges[1].server.forget(boot_id);
    fixture.client.session.?.write_cache = .edge;
    try testing.expectError(error.UnexpectedEvent, fixture.read(12288, 3_000_000));
    try testing.expectEqual(.ended, fixture.client.state);
}

test "a device greets the next edge after four probes without an answer, and shows its ticket" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    const welcomed_us = device.now_us;
    device.now_us += 7 * std.time.us_per_s;
    const began_us = device.now_us;
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    var probes: [5]u64 = undefined;
    var count: usize = 0;
    while (client.state == .established) {
        while (try device.next()) |packet| switch (packet.body) {
            .read => {},
            .probe => |probe| {
                try testing.expectEqual(wire.packet_size_min, probe.size);
                probes[count] = device.now_us - began_us;
                count += 1;
            },
            .hello => |hello| {
                try testing.expectEqual(.ticket, hello.kind);
                const shown = hello.shown.?;
                try testing.expectEqual(device.now_us - welcomed_us, shown.age_us);
                try testing.expectEqual(TestDevice.ticket, shown.ticket);
                break;
            },
            else => return error.UnexpectedPacket,
        };
        if (client.state != .established) break;
        device.now_us = @max(device.now_us, client.deadline().?);
    }
    const ms = std.time.us_per_ms;
    const expected = [_]u64{ 500 * ms, 625 * ms, 750 * ms, 875 * ms };
    try testing.expectEqualSlices(u64, &expected, probes[0..count]);
    try testing.expectEqual(1000 * ms, device.now_us - began_us);
    // Edges, kinds and durations of the turns; HELLO once more 200 ms after the first.
    const turns = [_]struct { base.Endpoint, wire.HelloKind, u64 }{
        .{ TestDevice.others[0], .ticket, 250 }, .{ TestDevice.others[1], .ticket, 250 },
        .{ TestDevice.edge, .resumption, 500 },  .{ TestDevice.others[0], .ticket, 500 },
        .{ TestDevice.others[1], .ticket, 500 }, .{ TestDevice.edge, .resumption, 1000 },
    };
    var nonce: [16]u8 = @splat(0);
    var due_us = device.now_us;
    for (turns, 0..) |turn, index| {
        const edge, const kind, const wait_ms = turn;
        // The first HELLO was sent above.
        if (index > 0) {
            const hello = (try device.next()).?.body.hello;
            try testing.expectEqual(kind, hello.kind);
            try testing.expect(!std.mem.eql(u8, &nonce, &hello.client_nonce));
        }
        nonce = client.greeting.nonce;
        try testing.expect(edge.eql(client.failover.current));
        due_us += wait_ms * ms;
        try device.expectNothingUntil(device.now_us + 200 * ms);
        while (device.now_us < due_us) {
            const packet = (try device.next()).?;
            try testing.expectEqual(nonce, packet.body.hello.client_nonce);
            device.now_us = @max(device.now_us, client.deadline().?);
        }
        try testing.expectEqual(due_us, device.now_us);
    }
}

test "an edge that answers a probe is kept" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    var answered: u32 = 0;
    while (answered < 5) {
        while (try device.next()) |packet| if (packet.body == .probe) {
            answered += 1;
            device.now_us += 100;
            const body: wire.Body = .{ .probe_ack = packet.body.probe.size };
            try device.expectTaken(TestDevice.packetOf(packet.request_id, body));
        };
        try testing.expectEqual(.established, client.state);
        const before_us = device.now_us;
        device.now_us = @max(device.now_us, client.deadline().?);
        try testing.expect(device.now_us - before_us <= 900 * std.time.us_per_ms);
    }
    try testing.expectEqual(0, client.failover.probes);
}

test "an idle device resumes for a new ticket at half its ticket's lifetime, a busy one later" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    const due_us = device.now_us + 50 * std.time.us_per_s;
    device.now_us = due_us - 1;
    try device.expectNothing();
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.now_us = due_us;
    try device.expectNothing();
    try device.answerAll(&asked);
    try testing.expect(client.nextEvent().? == .read_done);
    const hello = (try device.next()).?.body.hello;
    try testing.expectEqual(.resumption, hello.kind);
    try testing.expect(client.failover.isAtOwn());
}

test "a device whose network says that nobody is there goes on only if it wants something" {
    // Alone it waits, whatever the network says.
    var alone: TestDevice = try .initOpen(.{});
    defer alone.deinit();
    var buffer: [512]u8 = undefined;
    try alone.client.submit(1, 0, &buffer);
    _ = try alone.next();
    alone.client.onUnreachable(alone.now_us);
    try testing.expectEqual(.established, alone.client.state);

    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    client.onUnreachable(device.now_us);
    try testing.expectEqual(.established, client.state);
    try client.submit(1, 0, &buffer);
    _ = try device.next();
    client.onUnreachable(device.now_us);
    try testing.expectEqual(.greeting, client.state);
    try testing.expect(client.failover.current.eql(TestDevice.others[0]));
    _ = (try device.next()).?;
    device.now_us += 1000;
    client.onUnreachable(device.now_us);
    // A turn of 250 ms becomes one of 100 ms.
    try device.expectNothingUntil(device.now_us - 1000 + 100_000);
    _ = (try device.next()).?;
    try testing.expect(client.failover.current.eql(TestDevice.others[1]));
}

test "a device that resumes a session of another process continues at that session's edge" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    var identity = TestDevice.identity();
    identity.edge = .{ .ip = .init(10, 9, 9, 9), .port = 1 };
    identity.session = client.session;
    identity.session.?.edge = TestDevice.others[1];
    const welcomed_us = identity.session.?.welcomed_at_us;
    device.now_us += 1000;
    client.start(device.now_us, identity);
    try testing.expect(client.failover.current.eql(TestDevice.others[1]));
    try testing.expect(client.failover.isAtOwn());
    try testing.expectEqual(2, client.failover.others().len);
    try testing.expectEqual(welcomed_us, client.failover.known_at_us);
    // It counts its edge's silence from now on.
    try testing.expectEqual(device.now_us, client.heardAt());
    try testing.expectEqual(.resumption, (try device.next()).?.body.hello.kind);
    identity.session = null;
    client.start(device.now_us, identity);
    try testing.expect(client.failover.current.eql(identity.edge));
    try testing.expectEqual(.token, (try device.next()).?.body.hello.kind);
}

test "a refusal elsewhere is told and shortens the turn, and the edge that accepts learns all" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    // The own edge knows of the boot's end, and what the device reports.
    client.reportReady(device.now_us, .ready, 5, .{});
    try device.expectTaken(TestDevice.packetOf((try device.next()).?.request_id, .ready_ack));
    var steps: wire.StepList = .empty;
    try steps.append(.{ .group = .unit, .name = "x", .start_us = 0, .duration_us = 1 });
    client.report(device.now_us, .{ .uptime_us = 1, .steps = steps.view() });
    const report = (try device.next()).?;
    try device.expectTaken(TestDevice.packetOf(report.request_id, .{ .report_ack = .{} }));
    try testing.expect(client.nextEvent().? == .ready_acknowledged);
    try testing.expect(client.nextEvent().? == .report_acknowledged);
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    _ = (try device.next()).?;
    client.onUnreachable(device.now_us);
    const began_us = device.now_us;
    const first = (try device.next()).?.body.hello;
    device.now_us += 1000;
    try device.expectTaken(TestDevice.refusalOf(&first, .version_missing));
    const told = client.nextEvent().?.refused_elsewhere;
    try testing.expectEqual(TestDevice.others[0], told.edge);
    try testing.expectEqual(.version_missing, told.code);
    try testing.expectEqual(null, client.nextEvent());
    try device.expectNothingUntil(began_us + 100_000);
    try testing.expectEqual(.greeting, client.state);
    try device.open(TestDevice.welcome_usual);
    try testing.expectEqual(TestDevice.others[1], client.failover.current);
    try testing.expectEqual(TestDevice.others[1], client.session.?.edge);
    const opened = client.nextEvent().?.established;
    try testing.expect(opened.resumed and opened.moved);
    try testing.expectEqual(1, client.statistics.failovers);
    try testing.expectEqual(1, client.statistics.resumptions);
    try testing.expectEqual(1, (try device.next()).?.body.read.attempt);
    const ready = (try device.next()).?;
    try testing.expectEqual(5, ready.body.ready.uptime_us);
    const again = (try device.next()).?;
    try testing.expectEqual(1, again.body.report.steps.count);
    // The caller knows of the boot's end already.
    try device.expectTaken(TestDevice.packetOf(ready.request_id, .ready_ack));
    try device.expectTaken(TestDevice.packetOf(again.request_id, .{ .report_ack = .{} }));
    try testing.expect(client.nextEvent().? == .report_acknowledged);
    try testing.expectEqual(null, client.nextEvent());
}
