//! What protects a session of the stream, and the packet sizes that a device finds: against the real edge's side, as in client_test.zig.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const World = client_test.World;
const disk = client_test.disk;
const testing = std.testing;

test "who listens learns nothing of the disk, and what is changed, repeated or made up is not taken" {
    for ([_]wire.Ciphers{ .{ .aegis_128l = true }, .{ .chacha20_poly1305 = true } }) |ciphers| {
        var world: World = try .initWith(.{ .prng = .init(14) }, .{ .ciphers = ciphers });
        defer world.deinit();
        try world.expectEstablished();
        var buffer: [4096]u8 = @splat(0xaa);
        try world.client.submit(1, 0, &buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        const request = world.client.transmit(world.now_us, &out).?;
        try world.serve(request);
        // The same request once more is not answered again.
        const sent = world.link.flights.items.len;
        try testing.expectEqual(3, sent);
        try world.serve(request);
        try testing.expectEqual(1, world.server.ignored.get(.stream_replayed));
        var changed: [wire.sealed_request_size_max]u8 = out;
        changed[request.len - 20] ^= 1;
        std.mem.writeInt(u64, changed[8..16], std.mem.readInt(u64, out[8..16], .big) + 5, .big);
        try world.serve(changed[0..request.len]);
        try testing.expectEqual(1, world.server.ignored.get(.stream_forged));
        try testing.expectEqual(sent, world.link.flights.items.len);
        var plain: [1440]u8 = undefined;
        disk.fill(0, &plain);
        for (world.link.flights.items) |*flight| {
            const bytes = flight.bytes[0..flight.size];
            try testing.expect(std.mem.find(u8, bytes, plain[0..16]) == null);
            for (0..bytes.len) |at| {
                bytes[at] ^= 0x10;
                world.client.receive(world.now_us, bytes);
                bytes[at] ^= 0x10;
            }
        }
        for (world.client.reads) |*read| try testing.expectEqual(0, read.received_count);
        // NO_SESSION that does not know what was asked.
        var forged: [wire.no_session_size]u8 = undefined;
        for ([_]u64{ 1, world.client.protection.counter_first - 1, world.client.protection.counter_next }) |id|
            world.client.receive(world.now_us, wire.emit(.{ .session_id = id, .body = .no_session }, &forged));
        try testing.expectEqual(.established, world.client.state);
        try testing.expect((try world.nextEvent(1_000_000)).? == .read_done);
        try testing.expectEqual(0, world.client.statistics.repeats);
        var expected: [buffer.len]u8 = undefined;
        disk.fill(0, &expected);
        try testing.expectEqualSlices(u8, &expected, &buffer);
        // Of what has come already, nothing is written again.
        try world.client.submit(2, 0, &buffer);
        try world.serve(world.client.transmit(world.now_us, &out).?);
        const first = world.link.flights.items[0];
        world.client.receive(world.now_us, first.bytes[0..first.size]);
        try testing.expectEqual(1, world.client.reads[0].received_count);
        for (0..first.size) |at| {
            var made_up = first;
            made_up.bytes[at] ^= 1;
            world.client.receive(world.now_us, made_up.bytes[0..first.size]);
        }
        try testing.expectEqualSlices(u8, expected[0 .. first.size - wire.header_size - wire.tag_size], buffer[0 .. first.size - wire.header_size - wire.tag_size]);
    }
}

test "a packet longer than any of a device is one of a wrong size, whoever sealed it" {
    var world: World = try .init(.{ .prng = .init(16) });
    defer world.deinit();
    try world.expectEstablished();
    var long: [wire.sealed_request_size_max + 1]u8 = @splat(0);
    long[0..wire.header_size].* = wire.dataHeader(1, 1, 0);
    long[1] = @backingInt(wire.Type.write);
    try world.serve(&long);
    try testing.expectEqual(1, world.server.ignored.get(.stream_wrong_size));
    try world.serve(long[0..wire.sealed_request_size_max]);
    try testing.expectEqual(1, world.server.ignored.get(.stream_forged));
}

test "no two sessions of a boot have keys in common, at one edge or after its restart with the same keys" {
    var world: World = try .init(.{ .prng = .init(15) });
    defer world.deinit();
    var seen: [6][32]u8 = undefined;
    for (&seen, 0..) |*keys, index| {
        if (index % 2 == 1) {
            // As a clone of a machine would: nothing of it is new.
            world.server.deinit(testing.allocator);
            world.server = try World.newServer(1, world.sides);
        }
        var buffer: [512]u8 = undefined;
        try world.client.submit(1, 0, &buffer);
        while (true) if ((try world.nextEvent(30_000_000)).? == .read_done) break;
        keys.* = world.client.protection.from_edge.bytes;
        for (seen[0..index]) |*before| try testing.expect(!std.mem.eql(u8, before, keys));
        world.client.start(world.now_us, blk: {
            var identity = world.client.identity;
            identity.session = world.client.session;
            identity.nonce_seed[0] +%= 1;
            break :blk identity;
        });
    }
}

test "large packets serve the whole stream, from the first read, where they come through" {
    var world: World = try .initWith(.{ .prng = .init(16) }, .{ .packet_size_max = wire.packet_size_max });
    defer world.deinit();
    try world.expectEstablished();
    const before = world.link.sent_to_device;
    var buffer: [131072]u8 = undefined;
    try world.client.submit(1, 0, &buffer);
    try testing.expect((try world.nextEvent(1_000_000)).? == .read_done);
    // In two parts, since the window begins with half as much.
    try testing.expectEqual(16, world.link.sent_to_device - before);
    try testing.expectEqual(0, world.client.statistics.repeats);
}

test "where large packets vanish the stream goes on with smaller ones, and with large ones when they come again" {
    for ([_]u16{ 1472, 1372, 700 }) |narrow| {
        var world: World = try .initWith(.{ .prng = .init(17) }, .{ .packet_size_max = wire.packet_size_max });
        defer world.deinit();
        // From the begin.
        world.link.packet_size_max = @max(narrow, wire.packet_size_ethernet);
        try world.expectEstablished();
        try world.readMany(20, 4);
        // In the middle.
        world.link.packet_size_max = wire.packet_size_max;
        for (0..40) |_| {
            if (world.client.path.size == wire.packet_size_max) break;
            try testing.expectEqual(null, try world.nextEvent(30_000_000));
        } else return error.StaysNarrow;
        world.link.packet_size_max = narrow;
        const begin_us = world.now_us;
        try world.readMany(20, 4);
        try testing.expect(world.client.path.size <= narrow);
        try testing.expect(world.now_us - begin_us < 5_000_000);
    }
}

test "a late fragment of the size before is never taken for one of the size now" {
    // 37,376 bytes are 27 fragments of 1340 and one of 1196, and 31 of 1196 and a rest: the last one of those looks like one of these.
    var world: World = try .initWith(.{ .prng = .init(18) }, .{ .ciphers = .{ .clear = true }, .packet_size_max = 1372 });
    defer world.deinit();
    try world.expectEstablished();
    var buffer: [37376]u8 = undefined;
    try world.client.submit(1, 0, &buffer);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try world.serve(world.client.transmit(world.now_us, &out).?);
    const late = world.link.flights.items[27];
    try testing.expectEqual(wire.header_size + 1196, late.size);
    world.link.flights.clearRetainingCapacity();
    while (world.client.path.size == 1372) : (world.now_us += 500) {
        // Only small packets come through from here on.
        while (world.client.transmit(world.now_us, &out)) |packet| try world.serve(packet);
        for (world.link.flights.items) |*flight| {
            if (flight.size <= wire.packet_size_min) world.client.receive(world.now_us, flight.bytes[0..flight.size]);
        }
        world.link.flights.clearRetainingCapacity();
    }
    try testing.expectEqual(1228, world.client.path.size);
    world.link.packet_size_max = 1228;
    world.client.receive(world.now_us, late.bytes[0..late.size]);
    try testing.expect((try world.nextEvent(10_000_000)).? == .read_done);
    var expected: [buffer.len]u8 = undefined;
    disk.fill(0, &expected);
    try testing.expectEqualSlices(u8, &expected, &buffer);
}

test "a read that was asked for before the way was found to be wider is asked for in smaller packets when it becomes narrow" {
    var world: World = try .initWith(.{ .prng = .init(12), .packet_size_max = wire.packet_size_ethernet }, .{ .packet_size_max = wire.packet_size_max });
    defer world.deinit();
    try world.expectEstablished();
    try testing.expectEqual(wire.packet_size_ethernet, world.client.path.size);
    world.link.packet_size_max = 700;
    var buffer: [32 << 10]u8 = undefined;
    try world.client.submit(1, 0, &buffer);
    try testing.expectEqual(null, try world.nextEvent(1_000));
    // The answer to a question of before, which came late.
    world.client.path.noteShown(wire.packet_size_max);
    try testing.expect((try world.nextEvent(60 * std.time.us_per_s)).? == .read_done);
    try testing.expectEqual(wire.packet_size_min, world.client.path.size);
}
