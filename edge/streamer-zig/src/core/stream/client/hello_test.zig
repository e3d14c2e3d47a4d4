//! Tests of hello.zig: protection of a session and path MTU discovery, against the real edge's side
//! as in client_test.zig.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const StreamFixture = client_test.StreamFixture;
const disk = client_test.disk;
const testing = std.testing;

test "eavesdroppers learn nothing, and altered, replayed or forged packets are dropped" {
    for ([_]wire.Ciphers{ .{ .aegis_128l = true }, .{ .chacha20_poly1305 = true } }) |ciphers| {
        var fixture: StreamFixture = try .initWith(.{ .prng = .init(14) }, .{ .ciphers = ciphers });
        defer fixture.deinit();
        try fixture.expectEstablished();
        var buffer: [4096]u8 = @splat(0xaa);
        try fixture.client.submit(1, 0, &buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        const request = fixture.client.transmit(fixture.now_us, &out).?;
        try fixture.serve(request);
        // The same request once more is not answered again.
        const sent = fixture.link.flights.items.len;
        try testing.expectEqual(3, sent);
        try fixture.serve(request);
        try testing.expectEqual(1, fixture.server.ignored.get(.stream_replayed));
        var changed: [wire.sealed_request_size_max]u8 = out;
        changed[request.len - 20] ^= 1;
        std.mem.writeInt(u64, changed[8..16], std.mem.readInt(u64, out[8..16], .big) + 5, .big);
        try fixture.serve(changed[0..request.len]);
        try testing.expectEqual(1, fixture.server.ignored.get(.stream_forged));
        try testing.expectEqual(sent, fixture.link.flights.items.len);
        var plain: [1440]u8 = undefined;
        disk.fill(0, &plain);
        for (fixture.link.flights.items) |*flight| {
            const bytes = flight.bytes[0..flight.size];
            try testing.expect(std.mem.find(u8, bytes, plain[0..16]) == null);
            for (0..bytes.len) |at| {
                bytes[at] ^= 0x10;
                fixture.client.receive(fixture.now_us, bytes);
                bytes[at] ^= 0x10;
            }
        }
        for (fixture.client.reads) |*read| try testing.expectEqual(0, read.received_count);
        // A NO_SESSION of an attacker who does not know the request.
        var forged: [wire.no_session_size]u8 = undefined;
        for ([_]u64{
            1,
            fixture.client.protection.counter_first - 1,
            fixture.client.protection.counter_next,
        }) |id|
            fixture.client.receive(
                fixture.now_us,
                wire.emit(.{ .session_id = id, .body = .no_session }, &forged),
            );
        try testing.expectEqual(.established, fixture.client.state);
        try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
        try testing.expectEqual(0, fixture.client.statistics.retransmits);
        var expected: [buffer.len]u8 = undefined;
        disk.fill(0, &expected);
        try testing.expectEqualSlices(u8, &expected, &buffer);
        // Nothing that has arrived is written again.
        try fixture.client.submit(2, 0, &buffer);
        try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
        const first = fixture.link.flights.items[0];
        fixture.client.receive(fixture.now_us, first.bytes[0..first.size]);
        try testing.expectEqual(1, fixture.client.reads[0].received_count);
        for (0..first.size) |at| {
            var made_up = first;
            made_up.bytes[at] ^= 1;
            fixture.client.receive(fixture.now_us, made_up.bytes[0..first.size]);
        }
        try testing.expectEqualSlices(
            u8,
            expected[0 .. first.size - wire.header_size - wire.tag_size],
            buffer[0 .. first.size - wire.header_size - wire.tag_size],
        );
    }
}

test "a packet longer than any of a device has the wrong size, whoever sealed it" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(16) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var long: [wire.sealed_request_size_max + 1]u8 = @splat(0);
    long[0..wire.header_size].* = wire.dataHeader(1, 1, 0);
    long[1] = @backingInt(wire.Type.write);
    try fixture.serve(&long);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_wrong_size));
    try fixture.serve(long[0..wire.sealed_request_size_max]);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_forged));
}

test "no two sessions of a boot share keys, even at a restarted edge with the same keys" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(15) });
    defer fixture.deinit();
    var seen: [6][32]u8 = undefined;
    for (&seen, 0..) |*keys, index| {
        if (index % 2 == 1) {
            // Like a clone of a machine: nothing in it is new.
            fixture.server.deinit(testing.allocator);
            fixture.server = try StreamFixture.newServer(1, fixture.sides);
        }
        var buffer: [512]u8 = undefined;
        try fixture.client.submit(1, 0, &buffer);
        while (true) if ((try fixture.nextEvent(30_000_000)).? == .read_done) break;
        keys.* = fixture.client.protection.from_edge.bytes;
        for (seen[0..index]) |*before| try testing.expect(!std.mem.eql(u8, before, keys));
        fixture.client.start(fixture.now_us, blk: {
            var identity = fixture.client.identity;
            identity.session = fixture.client.session;
            identity.nonce_seed[0] +%= 1;
            break :blk identity;
        });
    }
}

test "large packets serve the whole stream, from the first read, where they pass" {
    var fixture: StreamFixture =
        try .initWith(.{ .prng = .init(16) }, .{ .packet_size_max = wire.packet_size_max });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const before = fixture.link.sent_to_device;
    var buffer: [131072]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
    // In two parts, since the window starts at half of that.
    try testing.expectEqual(16, fixture.link.sent_to_device - before);
    try testing.expectEqual(0, fixture.client.statistics.retransmits);
}

test "where large packets vanish the stream uses smaller ones, until large ones pass again" {
    for ([_]u16{ 1472, 1372, 700 }) |narrow| {
        var fixture: StreamFixture =
            try .initWith(.{ .prng = .init(17) }, .{ .packet_size_max = wire.packet_size_max });
        defer fixture.deinit();
        // From the start.
        fixture.link.packet_size_max = @max(narrow, wire.packet_size_ethernet);
        try fixture.expectEstablished();
        try fixture.readMany(20, 4);
        // In the middle.
        fixture.link.packet_size_max = wire.packet_size_max;
        for (0..40) |_| {
            if (fixture.client.path.size == wire.packet_size_max) break;
            try testing.expectEqual(null, try fixture.nextEvent(30_000_000));
        } else return error.StaysNarrow;
        fixture.link.packet_size_max = narrow;
        const begin_us = fixture.now_us;
        try fixture.readMany(20, 4);
        try testing.expect(fixture.client.path.size <= narrow);
        try testing.expect(fixture.now_us - begin_us < 5_000_000);
    }
}

test "a late fragment of the previous size is never accepted as one of the current size" {
    // 37,376 bytes are 27 fragments of 1340 and one of 1196, or 31 of 1196 and a rest: the last
    // fragment of the former looks like one of the latter.
    var fixture: StreamFixture = try .initWith(
        .{ .prng = .init(18) },
        .{ .ciphers = .{ .clear = true }, .packet_size_max = 1372 },
    );
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [37376]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    const late = fixture.link.flights.items[27];
    try testing.expectEqual(wire.header_size + 1196, late.size);
    fixture.link.flights.clearRetainingCapacity();
    while (fixture.client.path.size == 1372) : (fixture.now_us += 500) {
        // From here on only small packets pass.
        while (fixture.client.transmit(fixture.now_us, &out)) |packet| try fixture.serve(packet);
        for (fixture.link.flights.items) |*flight| {
            if (flight.size <= wire.packet_size_min)
                fixture.client.receive(fixture.now_us, flight.bytes[0..flight.size]);
        }
        fixture.link.flights.clearRetainingCapacity();
    }
    try testing.expectEqual(1228, fixture.client.path.size);
    fixture.link.packet_size_max = 1228;
    fixture.client.receive(fixture.now_us, late.bytes[0..late.size]);
    try testing.expect((try fixture.nextEvent(10_000_000)).? == .read_done);
    var expected: [buffer.len]u8 = undefined;
    disk.fill(0, &expected);
    try testing.expectEqualSlices(u8, &expected, &buffer);
}

test "a read requested on a wide path is requested in smaller packets when the path narrows" {
    var fixture: StreamFixture = try .initWith(
        .{ .prng = .init(12), .packet_size_max = wire.packet_size_ethernet },
        .{ .packet_size_max = wire.packet_size_max },
    );
    defer fixture.deinit();
    try fixture.expectEstablished();
    try testing.expectEqual(wire.packet_size_ethernet, fixture.client.path.size);
    fixture.link.packet_size_max = 700;
    var buffer: [32 << 10]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    try testing.expectEqual(null, try fixture.nextEvent(1_000));
    // The answer to an earlier probe, arriving late.
    fixture.client.path.onProven(wire.packet_size_max);
    try testing.expect((try fixture.nextEvent(60 * std.time.us_per_s)).? == .read_done);
    try testing.expectEqual(wire.packet_size_min, fixture.client.path.size);
}
