//! Tests of shards.zig, without threads: a second server has copies of the first one's sessions.

const std = @import("std");
const base = @import("base");
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

const header = wire.dataHeader(.v2, 1, 1, 0);

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

const elsewhere: base.Endpoint = .{ .ip = .init(127, 77, 0, 11), .port = 40000 };

test "a copied session takes the place and the address of the ones that had them" {
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(33) }, .{});
    defer fixture.deinit();
    try fixture.expectEstablished();
    const session = onlySession(&fixture.server);
    var shard = try StreamFixture.newServer(2, fixture.sides);
    defer shard.deinit(testing.allocator);
    var expected: u64 = 1;
    shard.copySession(session);
    try testing.expectEqual(expected, shard.changes);
    // The same one, whose path is narrower.
    var narrow = session.*;
    narrow.packet_size_max -= 8;
    shard.copySession(&narrow);
    try testing.expectEqual(narrow.packet_size_max, onlySession(&shard).packet_size_max);
    try testing.expectEqual(expected, shard.changes);
    // Another one in its slot, from elsewhere: one ends, one begins.
    var next = session.*;
    next.id += 1 << 16;
    next.from = elsewhere;
    shard.copySession(&next);
    expected += 2;
    try testing.expectEqual(expected, shard.changes);
    try testing.expectEqual(1, shard.session_count);
    try testing.expect(!shard.hasSessionAt(session.from));
    try testing.expectEqual(next.id, onlySession(&shard).id);
    // Another one at its address, in another slot.
    var other = next;
    other.id = if (next.id & 1 == 0) next.id - 1 else next.id + 1;
    shard.copySession(&other);
    expected += 2;
    try testing.expectEqual(expected, shard.changes);
    try testing.expectEqual(1, shard.session_count);
    try testing.expectEqual(other.id, onlySession(&shard).id);
    try testing.expect(shard.hasSessionAt(elsewhere));
}

test "a plain READ is told by its first two bytes, in a packet that has a header" {
    var packet: [wire.header_size]u8 = @splat(0);
    for (0..256) |kind_byte| for (0..256) |first_byte| {
        packet[0] = @intCast(first_byte);
        packet[1] = @intCast(kind_byte);
        const is_read = kind_byte == @backingInt(wire.Type.read);
        const is_profile = first_byte % 16 == @backingInt(wire.ReadKind.profile);
        try testing.expectEqual(is_read and !is_profile, StreamServer.isPlainRead(&packet));
    };
    packet[0] = 0;
    packet[1] = @backingInt(wire.Type.read);
    try testing.expect(StreamServer.isPlainRead(&packet));
    try testing.expect(!StreamServer.isPlainRead(packet[1..]));
}
