//! Tests of shards.zig, without threads: a second server has copies of the first one's sessions.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("../client/client_test.zig");
const stream_seal = @import("../seal.zig");
const StreamServer = @import("server.zig");
const StreamFixture = client_test.StreamFixture;
const testing = std.testing;

fn onlySession(server: *StreamServer) *StreamServer.Session {
    for (server.sessions) |*session| if (session.id != 0) return session;
    unreachable;
}

const header = wire.dataHeader(1, 1, 0);

fn sealedCounter(sealer: *StreamServer.Sealer) u64 {
    var out: [64]u8 = undefined;
    return stream_seal.counterOf(sealer.seal(&header, "bytes", &out));
}

test "a shard serves each READ of a copied session once, and knows its device by address alone" {
    for ([_]bool{ false, true }) |clear| {
        const ciphers: wire.Ciphers = if (clear) .{ .clear = true } else .{ .aegis_128l = true };
        var fixture: StreamFixture = try .initWith(.{ .prng = .init(31) }, .{ .ciphers = ciphers });
        defer fixture.deinit();
        try fixture.expectEstablished();
        var shard = try StreamFixture.newServer(2, fixture.sides);
        defer shard.deinit(testing.allocator);
        const session = onlySession(&fixture.server);
        try testing.expect(!shard.hasSessionAt(session.from));
        shard.copySession(session);
        try testing.expect(shard.hasSessionAt(session.from));
        var buffer: [4096]u8 = undefined;
        try fixture.client.submit(1, 0, &buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        const request = fixture.client.transmit(fixture.now_us, &out).?;
        try testing.expect(StreamServer.isPlainRead(request));
        // The bytes that steer it.
        try testing.expectEqual(session.mark, std.mem.readInt(u16, request[8..10], .big));
        var reply: StreamServer.ReplyBuffer = undefined;
        const step = shard.receive(fixture.now_us, session.from, request, &reply);
        try testing.expectEqual(session.id, step.read.session_id);
        const again = shard.receive(fixture.now_us, session.from, request, &reply);
        if (clear) try testing.expect(again.read.repeated) else try testing.expectEqual(
            .stream_replayed,
            again.ignored,
        );
        // The same session, moved: what the shard has taken stays taken.
        var moved = session.*;
        moved.from.port +%= 1;
        shard.copySession(&moved);
        try testing.expect(!shard.hasSessionAt(session.from));
        if (!clear) try testing.expectEqual(
            .stream_replayed,
            shard.receive(fixture.now_us, moved.from, request, &reply).ignored,
        );
        // A READ that a shard took counts for the session's life, a late one not backwards.
        const copy = shard.findById(session.id).?;
        copy.last_packet_at_us = 100;
        copy.last_request_at_us = 100;
        for ([_]u64{ 90, 110 }, [_]u64{ 100, 110 }) |at_us, latest| {
            shard.onRead(&step.read, at_us);
            try testing.expectEqual(latest, copy.last_packet_at_us);
            try testing.expectEqual(latest, copy.last_request_at_us);
        }
        shard.drop(shard.findById(session.id).?);
        try testing.expect(!shard.hasSessionAt(moved.from));
        try testing.expectEqual(0, shard.session_count);
    }
}

test "no two packets of a slot share a number, whoever seals them, even under earlier keys" {
    var fixture: StreamFixture =
        try .initWith(.{ .prng = .init(32) }, .{ .ciphers = .{ .aegis_128l = true } });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var shard = try StreamFixture.newServer(2, fixture.sides);
    defer shard.deinit(testing.allocator);
    shard.copySession(onlySession(&fixture.server));
    const old = onlySession(&shard).id;
    var numbers: [64]u64 = undefined;
    var count: usize = 0;
    for (0..2) |session_number| {
        for (0..8) |_| {
            var of_shard = shard.sealer(old).?;
            var of_loop = fixture.server.sealer(onlySession(&fixture.server).id).?;
            of_shard.reserve(2);
            for ([_]*StreamServer.Sealer{ &of_shard, &of_loop, &of_shard, &of_loop }) |sealer| {
                numbers[count] = sealedCounter(sealer);
                count += 1;
            }
        }
        if (session_number == 1) break;
        // The device starts a new process; the shard does not know.
        var identity = fixture.client.identity;
        identity.session = fixture.client.session;
        identity.nonce_seed[0] +%= 1;
        fixture.client.start(fixture.now_us, identity);
        const changes = fixture.server.changes;
        try fixture.expectEstablished();
        try testing.expect(fixture.server.changes != changes);
        try testing.expect(onlySession(&fixture.server).id != old);
        try testing.expectEqual(
            @as(u16, @truncate(old)),
            @as(u16, @truncate(onlySession(&fixture.server).id)),
        );
    }
    try testing.expectEqual(numbers.len, count);
    for (numbers, 0..) |number, index|
        for (numbers[0..index]) |before| try testing.expect(number != before);
}
