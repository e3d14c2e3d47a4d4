//! A device and two edges of its site (packages/proto/STREAM.md, "Fail-over"): the real sides of the stream, and the real tickets.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamClient = @import("client.zig");
const StreamServer = @import("../server/server.zig");
const stream_ticket = @import("../ticket.zig");
const testing = std.testing;

const key: stream_ticket.Key = @splat(0x51);
const device: base.Endpoint = .{ .ip = .init(10, 0, 0, 77), .port = 4000 };
const boot_id: base.Uuid = .fromRandom(@splat(1));
const version_id: base.Uuid = .fromRandom(@splat(2));
const disk_size = 1 << 20;
const step_us = std.time.us_per_ms;

const TestEdge = struct {
    at: base.Endpoint,
    server: StreamServer,
    is_alive: bool = true,
    /// Of the tickets that it makes.
    write_cache: wire.WriteCacheClass = .device_ram,
    keys: []const stream_ticket.Key = &.{key},
    /// What it said to the last ticket.
    judged: ?stream_ticket.Judgement = null,
    hellos: u32 = 0,
    probes: u32 = 0,
    /// READs get no answer, everything else does.
    is_slow: bool = false,
    /// A boot that it has not forgotten, or never heard of.
    knows_boot: bool = true,
    hears_other: bool = true,
    /// So many that are gone stand before the other edge in the list.
    dead_count: u8 = 0,
    /// From a hello with a cookie until it is answered.
    welcome_us: u64 = 0,

    fn grant(edge: *TestEdge, claim: *const StreamServer.Claim, other: base.Endpoint) StreamServer.Grant {
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
        if (edge.write_cache != .device_ram) boot.write_cache = .{ .class = edge.write_cache, .id = 7, .size = 1 << 20 };
        if (!edge.hears_other) return .{ .boot = boot };
        boot.failover = .{ .lifetime_s = 100, .edges = .empty, .ticket = stream_ticket.seal(&key, @splat(4), &.{
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
        }) };
        for (0..edge.dead_count) |index|
            boot.failover.?.edges.appendAssumeCapacity(.{ .ip = .init(10, 0, 1, @intCast(index + 1)), .port = 6910 });
        boot.failover.?.edges.appendAssumeCapacity(other);
        return .{ .boot = boot };
    }
};

const World = struct {
    now_us: u64 = 1_000_000,
    edges: [2]TestEdge,
    client: StreamClient,
    /// A WELCOME that takes its time.
    late: ?struct { at_us: u64, size: usize, bytes: [wire.sealed_request_size_max]u8 = undefined } = null,

    fn init() !World {
        var world: World = .{ .edges = undefined, .client = try .init(testing.allocator, .{}) };
        for (&world.edges, 0..) |*edge, index| edge.* = .{
            .at = .{ .ip = .init(10, 0, 0, @intCast(index + 1)), .port = 6910 },
            .server = try .init(testing.allocator, .{ .sessions_max = 4, .keys = .{
                .cookie = @splat(@intCast(index + 1)),
                .session = @splat(@intCast(index + 11)),
                .resumption = @splat(@intCast(index + 21)),
            } }),
        };
        world.client.start(world.now_us, .{ .boot_id = boot_id, .token = @splat(3), .nonce_seed = @splat(5), .edge = world.edges[0].at });
        return world;
    }

    fn deinit(world: *World) void {
        for (&world.edges) |*edge| edge.server.deinit(testing.allocator);
        world.client.deinit(testing.allocator);
    }

    fn turn(world: *World) void {
        var out: [wire.sealed_request_size_max]u8 = undefined;
        for (0..1000) |_| {
            world.client.tend(world.now_us);
            const packet = world.client.transmit(world.now_us, &out) orelse break;
            for (&world.edges, 0..) |*edge, index| if (edge.is_alive and edge.at.eql(world.client.failover.asked)) world.serve(edge, 1 - index, packet);
        }
        world.now_us += step_us;
        const late = if (world.late) |*late| late else return;
        if (world.now_us < late.at_us) return;
        world.client.receive(world.now_us, late.bytes[0..late.size]);
        world.late = null;
    }

    fn serve(world: *World, edge: *TestEdge, other: usize, packet: []const u8) void {
        var reply: StreamServer.ReplyBuffer = undefined;
        var large: StreamServer.LargeBuffer = undefined;
        switch (edge.server.receive(world.now_us, device, packet, &reply)) {
            .reply => |answer| world.client.receive(world.now_us, answer),
            .admit => |claim| {
                edge.hellos += 1;
                const admission = edge.server.admit(world.now_us, claim, edge.grant(&claim, world.edges[other].at), &reply);
                const answer = admission.reply orelse return;
                if (edge.welcome_us == 0) return world.client.receive(world.now_us, answer);
                if (world.late != null) return;
                world.late = .{ .at_us = world.now_us + edge.welcome_us, .size = answer.len };
                @memcpy(world.late.?.bytes[0..answer.len], answer);
            },
            .probe => |probe| {
                edge.probes += 1;
                world.client.receive(world.now_us, edge.server.answerProbe(probe, &large).?);
            },
            .read => |*request| if (!edge.is_slow) {
                var sealer = edge.server.sealer(request.session_id).?;
                var fragments = request.fragments();
                while (fragments.next()) |fragment| {
                    var payload: [wire.fragment_size_max]u8 = undefined;
                    for (payload[0..fragment.length], fragment.offset..) |*byte, at| byte.* = byteAt(at);
                    world.client.receive(world.now_us, sealer.seal(&fragment.header, payload[0..fragment.length], &large));
                }
            },
            .ready => |ready| world.client.receive(world.now_us, ready.reply),
            .report => |*report| {
                const given = if (edge.server.findById(report.session_id).?.failover) |*given| given else null;
                const listed: []const base.Endpoint = if (edge.hears_other) &.{world.edges[other].at} else &.{};
                const answer = if (stream_ticket.isOutdated(given, listed, edge.keys))
                    edge.server.askForHello(report, packet, &reply)
                else
                    edge.server.acknowledgeReport(report, .{}, &reply);
                world.client.receive(world.now_us, answer.?);
            },
            else => {},
        }
    }

    fn byteAt(offset: u64) u8 {
        return @truncate(offset *% 0x9e3779b97f4a7c15 >> 32);
    }

    /// How long it took.
    fn read(world: *World, offset: u64, limit_us: u64) !u64 {
        var buffer: [32 << 10]u8 = @splat(0);
        const began_us = world.now_us;
        try world.client.submit(1, offset, &buffer);
        while (world.now_us - began_us < limit_us) {
            world.turn();
            while (world.client.nextEvent()) |event| switch (event) {
                .read_done => {
                    for (&buffer, offset..) |byte, at| try testing.expectEqual(byteAt(at), byte);
                    return world.now_us - began_us;
                },
                .established, .refused_elsewhere, .ready_acknowledged, .report_acknowledged => {},
                else => return error.UnexpectedEvent,
            };
        }
        return error.NoAnswer;
    }
};

test "an edge that falls silent is left for the other one within two seconds, which goes on with all that was said" {
    var world: World = try .init();
    defer world.deinit();
    _ = try world.read(0, 1_000_000);
    world.client.reportReady(world.now_us, .ready, 5, .{});
    _ = try world.read(65536, 1_000_000);
    try testing.expect(world.client.ready.?.acknowledged);
    world.edges[0].is_alive = false;
    const waited_us = try world.read(4096, 3_000_000);
    try testing.expect(waited_us < 2_000_000);
    try testing.expectEqual(1, world.client.statistics.hand_overs);
    try testing.expect(world.client.failover.asked.eql(world.edges[1].at));
    _ = try world.read(8192, 100_000);
    try testing.expect(world.edges[1].server.sessionOf(boot_id).?.ready);
    // And back, by the ticket of the second one.
    world.edges[0].is_alive = true;
    world.edges[1].is_alive = false;
    try testing.expect(try world.read(12288, 3_000_000) < 2_000_000);
    try testing.expectEqual(2, world.client.statistics.hand_overs);
}

test "with its own edge three others are gone before the one that is there: reads go on within three seconds" {
    for ([_]u64{ 2_000, 200_000 }) |round_trip_us| {
        var world: World = try .init();
        defer world.deinit();
        world.edges[0].dead_count = 3;
        _ = try world.read(0, 1_000_000);
        // On a slow way it takes longer to be sure that the own edge is gone.
        for (0..40) |_| world.client.rtt.sample(round_trip_us);
        world.edges[0].is_alive = false;
        try testing.expect(try world.read(4096, 10_000_000) < 3_000_000);
        try testing.expect(world.client.failover.asked.eql(world.edges[1].at));
        try testing.expectEqual(1, world.client.statistics.hand_overs);
    }
}

test "an edge that is there, and takes its time for a hello, keeps its turn" {
    var world: World = try .init();
    defer world.deinit();
    world.edges[0].dead_count = 1;
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_alive = false;
    world.edges[1].welcome_us = 400_000;
    try testing.expect(try world.read(4096, 10_000_000) < 2_000_000);
    try testing.expectEqual(1, world.client.statistics.hand_overs);
}

test "where the network says that nobody is there, the other edge is asked at once" {
    var world: World = try .init();
    defer world.deinit();
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_alive = false;
    var buffer: [512]u8 = undefined;
    try world.client.submit(2, 0, &buffer);
    world.turn();
    world.client.noteUnreachable(world.now_us);
    const began_us = world.now_us;
    while (world.client.reads[0].state == .asked and world.now_us - began_us < 100_000) world.turn();
    try testing.expect(world.client.nextEvent().? == .established);
    try testing.expect(world.client.nextEvent().? == .read_done);
}

test "an edge whose disk is slow is asked whether it is there, and stays" {
    var world: World = try .init();
    defer world.deinit();
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_slow = true;
    try testing.expectError(error.NoAnswer, world.read(4096, 8_000_000));
    try testing.expect(world.edges[0].probes > 0);
    try testing.expectEqual(0, world.client.statistics.hand_overs);
    try testing.expectEqual(0, world.edges[1].hellos);
}

test "another edge has none of a device whose writes are at its own: it waits for that one" {
    var world: World = try .init();
    defer world.deinit();
    world.edges[0].write_cache = .edge;
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_alive = false;
    try testing.expectError(error.NoAnswer, world.read(4096, 60_000_000));
    try testing.expectEqual(boot_id.bytes, world.edges[1].judged.?.elsewhere.boot_id);
    try testing.expectEqual(null, world.edges[1].server.sessionOf(boot_id));
    try testing.expectEqual(1, world.edges[1].hellos);
    try testing.expect(world.client.failover.asked.eql(world.edges[0].at));
    world.edges[0].is_alive = true;
    _ = try world.read(8192, 3_000_000);
    try testing.expectEqual(0, world.client.statistics.hand_overs);
}

test "an edge of another site's keys does not take it, and its own one is asked again and again" {
    var world: World = try .init();
    defer world.deinit();
    world.edges[1].keys = &.{@splat(1)};
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_alive = false;
    try testing.expectError(error.NoAnswer, world.read(4096, 30_000_000));
    try testing.expect(world.edges[1].hellos > 1);
    try testing.expect(world.edges[1].hellos < 30);
    world.edges[0].is_alive = true;
    _ = try world.read(8192, 10_000_000);
    try testing.expectEqual(0, world.client.statistics.hand_overs);
}

test "a device with nothing to ask gets a new ticket when half the time of its own is over" {
    var world: World = try .init();
    defer world.deinit();
    _ = try world.read(0, 1_000_000);
    const hellos = world.edges[0].hellos;
    world.now_us += 51 * std.time.us_per_s;
    world.turn();
    world.turn();
    try testing.expectEqual(hellos + 1, world.edges[0].hellos);
    try testing.expectEqual(.established, world.client.state);
}

test "a device hears of an edge that came later with its next report, and goes on there" {
    var world: World = try .init();
    defer world.deinit();
    world.edges[0].hears_other = false;
    _ = try world.read(0, 1_000_000);
    world.client.report(world.now_us, .{ .uptime_us = 1 });
    _ = try world.read(4096, 1_000_000);
    try testing.expect(!world.client.failover.hasOthers());
    const hellos = world.edges[0].hellos;
    world.edges[0].hears_other = true;
    for (0..3) |_| {
        world.client.report(world.now_us, .{ .uptime_us = 1 });
        _ = try world.read(8192, 1_000_000);
    }
    try testing.expectEqual(hellos + 1, world.edges[0].hellos);
    try testing.expectEqual(null, world.client.report_state.dueAt());
    try testing.expect(world.client.failover.hasOthers());
    world.edges[0].is_alive = false;
    try testing.expect(try world.read(4096, 3_000_000) < 2_000_000);
    try testing.expectEqual(1, world.client.statistics.hand_overs);
}

test "an edge that began anew before it knew a boot that came to it goes on with it by the ticket that it made" {
    var world: World = try .init();
    defer world.deinit();
    _ = try world.read(0, 1_000_000);
    world.edges[0].is_alive = false;
    _ = try world.read(4096, 3_000_000);
    world.edges[1].server.forget(boot_id);
    world.edges[1].knows_boot = false;
    _ = try world.read(8192, 3_000_000);
    try testing.expect(world.client.failover.asked.eql(world.edges[1].at));
    // What its device has written is gone: then nothing is shown.
    world.edges[1].server.forget(boot_id);
    world.client.session.?.write_cache = .edge;
    try testing.expectError(error.UnexpectedEvent, world.read(12288, 3_000_000));
    try testing.expectEqual(.ended, world.client.state);
}
