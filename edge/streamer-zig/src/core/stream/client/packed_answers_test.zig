//! How a device takes packed answers, packet by packet, and from the real edge's side.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const packed_test = @import("../packed_test.zig");
const StreamClient = @import("client.zig");
const StreamFixture = @import("client_test.zig").StreamFixture;
const TestDevice = @import("test_device.zig");
const testing = std.testing;

const length = 32 << 10;

/// A device in a session with a codec, and one read on its way.
const Fixture = struct {
    device: TestDevice,
    buffer: [length]u8 = @splat(0xee),
    disk: [length]u8 = undefined,
    answer: std.ArrayList(u8) = .empty,

    fn init() !*Fixture {
        const fixture = try testing.allocator.create(Fixture);
        errdefer testing.allocator.destroy(fixture);
        fixture.* = .{ .device = try .initIn(.v3, .{ .codecs = StreamClient.codecs }) };
        var prng: base.Prng = .init(5);
        for (&fixture.disk, 0..) |*byte, at|
            byte.* = if (at % 64 < 24) @truncate(prng.nextU32()) else 7;
        try packed_test.packRange(&fixture.disk, 0, &fixture.answer);
        try fixture.open();
        return fixture;
    }

    fn open(fixture: *Fixture) !void {
        const device = &fixture.device;
        const first = (try device.next()).?.body.hello;
        try testing.expectEqual(StreamClient.codecs, first.codecs);
        // The same in version 2, which has no codecs.
        try testing.expectEqual(0, (try device.next()).?.body.hello.codecs);
        var cookie = TestDevice.cookieOf(&first);
        cookie.version = .v3;
        try device.expectTaken(cookie);
        const shown = (try device.next()).?.body.hello;
        var welcome = TestDevice.welcome_usual;
        welcome.codec = wire.codec_lz4;
        var packet = TestDevice.welcomeOf(&shown, welcome);
        packet.version = .v3;
        try device.expectTaken(packet);
        try testing.expect(device.client.nextEvent().? == .established);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.device.deinit();
        fixture.answer.deinit(testing.allocator);
        testing.allocator.destroy(fixture);
    }

    fn ask(fixture: *Fixture) !wire.Packet {
        try fixture.device.client.submit(1, 0, &fixture.buffer);
        return fixture.nextRead();
    }

    fn nextRead(fixture: *Fixture) !wire.Packet {
        const packet = (try fixture.device.next()).?;
        try testing.expectEqual(.v3, packet.version);
        try testing.expect(packet.body == .read);
        return packet;
    }

    /// Fragment `index` of the packed answer.
    fn fragmentOf(fixture: *const Fixture, request_id: u32, index: u16) wire.Packet {
        const content = wire.fragment_size_ethernet - wire.packed_prefix_size;
        const begin = @as(usize, index) * content;
        const items = fixture.answer.items;
        return packetOf(request_id, .{
            .index = index,
            .packed_size = @intCast(items.len),
            .payload = items[begin..@min(items.len, begin + content)],
        });
    }

    fn fragmentCount(fixture: *const Fixture) u16 {
        const content = wire.fragment_size_ethernet - wire.packed_prefix_size;
        return @intCast(std.math.divCeil(usize, fixture.answer.items.len, content) catch
            unreachable);
    }

    fn plainFragment(fixture: *const Fixture, request_id: u32, index: u16) wire.Packet {
        const begin = @as(usize, index) * wire.fragment_size_ethernet;
        const end = @min(length, begin + wire.fragment_size_ethernet);
        return packetOf(request_id, .{ .index = index, .payload = fixture.disk[begin..end] });
    }

    fn expectDone(fixture: *Fixture) !void {
        const done = fixture.device.client.nextEvent().?.read_done;
        try testing.expectEqualSlices(u8, &fixture.disk, done.buffer);
        try testing.expectEqual(0, fixture.device.client.inFlightBytes());
    }
};

fn packetOf(request_id: u32, data: wire.Data) wire.Packet {
    var packet = TestDevice.packetOf(request_id, .{ .data = data });
    packet.version = .v3;
    return packet;
}

test "a packed answer arrives in any order, and what is missing is requested by its own fragments" {
    const fixture = try Fixture.init();
    defer fixture.deinit();
    const read = try fixture.ask();
    try testing.expect(!read.body.read.is_plain);
    const count = fixture.fragmentCount();
    try testing.expect(count > 6 and count < wire.fragmentCount(length, 1440) - 1);
    var index = count;
    while (index > 0) : (index -= 1) if (index != 3)
        try fixture.device.expectTaken(fixture.fragmentOf(read.request_id, index - 1));
    try testing.expectEqual(null, fixture.device.client.nextEvent());
    try testing.expect(fixture.device.client.inFlightBytes() > 0);
    // Fragments beyond it have arrived: it is requested at once.
    try testing.expectEqual(0, fixture.device.client.deadline());
    const again = try fixture.nextRead();
    try testing.expectEqual(read.request_id, again.request_id);
    try testing.expectEqual(1, again.body.read.ranges.count());
    try testing.expectEqual(
        wire.Range{ .first_fragment = 2, .fragment_count = 1 },
        again.body.read.ranges.at(0),
    );
    try testing.expect(!again.body.read.is_plain);
    try fixture.device.expectTaken(fixture.fragmentOf(read.request_id, 2));
    try fixture.expectDone();
    try testing.expectEqual(length, fixture.device.client.statistics.unpacked_bytes);
}

test "what contradicts the fragments before it has the read requested again, plainly" {
    for ([_]enum { plain_after, packed_after, other_size }{
        .plain_after,
        .packed_after,
        .other_size,
    }) |case| {
        const fixture = try Fixture.init();
        defer fixture.deinit();
        const read = try fixture.ask();
        const id = read.request_id;
        var other = fixture.fragmentOf(id, 1);
        other.body.data.packed_size += 1;
        const pair: [2]wire.Packet = switch (case) {
            .plain_after => .{ fixture.fragmentOf(id, 0), fixture.plainFragment(id, 1) },
            .packed_after => .{ fixture.plainFragment(id, 0), fixture.fragmentOf(id, 1) },
            .other_size => .{ fixture.fragmentOf(id, 0), other },
        };
        for (&pair) |*packet| try fixture.device.expectTaken(packet.*);
        try testing.expectEqual(1, fixture.device.client.statistics.contradictions);
        const again = try fixture.nextRead();
        try testing.expect(again.request_id != id);
        try testing.expect(again.body.read.is_plain);
        try testing.expectEqual(0, again.body.read.ranges.count());
        // Late fragments of the first request, and a packed answer to this one, count for nothing.
        try fixture.device.expectTaken(fixture.fragmentOf(id, 2));
        try fixture.device.expectIgnored(fixture.fragmentOf(again.request_id, 0));
        for (0..wire.fragmentCount(length, 1440)) |index| {
            const fragment = fixture.plainFragment(again.request_id, @intCast(index));
            try fixture.device.expectTaken(fragment);
        }
        try fixture.expectDone();
    }
}

test "an answer that does not unpack is requested again, plainly, and never read" {
    const fixture = try Fixture.init();
    defer fixture.deinit();
    fixture.answer.items[1] ^= 1;
    const read = try fixture.ask();
    for (0..fixture.fragmentCount()) |index|
        try fixture.device.expectTaken(fixture.fragmentOf(read.request_id, @intCast(index)));
    try testing.expectEqual(1, fixture.device.client.statistics.unpackable);
    try testing.expectEqual(null, fixture.device.client.nextEvent());
    const again = try fixture.nextRead();
    try testing.expect(again.body.read.is_plain and again.request_id != read.request_id);
    for (0..wire.fragmentCount(length, 1440)) |index|
        try fixture.device.expectTaken(fixture.plainFragment(again.request_id, @intCast(index)));
    try fixture.expectDone();
}

test "an answer as long as its read, or longer, is none" {
    const fixture = try Fixture.init();
    defer fixture.deinit();
    const read = try fixture.ask();
    const bytes: [wire.fragment_size_ethernet - wire.packed_prefix_size]u8 = @splat(1);
    for ([_]u32{ length, length + 1, 1 << 19 }) |packed_size|
        try fixture.device.expectIgnored(packetOf(read.request_id, .{
            .index = 0,
            .packed_size = packed_size,
            .payload = &bytes,
        }));
    // A fragment beyond its own answer, and one of another length.
    for ([_]u16{ 1, 3 }) |index|
        try fixture.device.expectIgnored(packetOf(read.request_id, .{
            .index = index,
            .packed_size = bytes.len + 10,
            .payload = &bytes,
        }));
    for (0..fixture.fragmentCount()) |index|
        try fixture.device.expectTaken(fixture.fragmentOf(read.request_id, @intCast(index)));
    try fixture.expectDone();
}

test "a large read is cut where units end, so that an edge has the parts packed" {
    const fixture = try Fixture.init();
    defer fixture.deinit();
    var buffer: [128 << 10]u8 = undefined;
    try fixture.device.client.submit(2, 12 << 10, &buffer);
    const first = try fixture.nextRead();
    try testing.expectEqual(12 << 10, first.body.read.offset);
    const end = first.body.read.offset + first.body.read.length;
    try testing.expect(first.body.read.length < buffer.len);
    try testing.expectEqual(0, end % wire.profile.unit_size);
}

const with_codec: StreamFixture.Sides = .{
    .device_codecs = StreamClient.codecs,
    .edge_codecs = StreamClient.codecs,
};

test "packed answers are right, and take half of the packets" {
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(3) }, with_codec);
    defer fixture.deinit();
    fixture.packed_percent = 100;
    try fixture.expectEstablished();
    try testing.expectEqual(wire.codec_lz4, fixture.client.session.?.codec);
    try fixture.readMany(200, 8);
    const statistics = &fixture.client.statistics;
    try testing.expectEqual(0, statistics.retransmits);
    try testing.expectEqual(0, statistics.contradictions + statistics.unpackable);
    try testing.expect(statistics.unpacked_bytes > statistics.read_bytes / 3);
    try testing.expect(statistics.bytes_in < statistics.read_bytes * 3 / 4);
}

test "an edge packs for a device that has its codec, and for no other" {
    for ([_]StreamFixture.Sides{
        .{ .device_codecs = StreamClient.codecs },
        .{ .edge_codecs = StreamClient.codecs },
        .{ .edge_codecs = StreamClient.codecs << 1, .device_codecs = StreamClient.codecs },
    }) |sides| {
        var fixture: StreamFixture = try .initWith(.{ .prng = .init(4) }, sides);
        defer fixture.deinit();
        fixture.packed_percent = 100;
        try fixture.expectEstablished();
        try testing.expectEqual(0, fixture.client.session.?.codec);
        try fixture.readMany(20, 4);
        try testing.expectEqual(0, fixture.client.statistics.unpacked_bytes);
    }
}

test "every byte is right where answers change their form, some do not unpack, and packets are lost" {
    for (0..8) |seed| {
        var sides = with_codec;
        if (seed % 2 == 1) sides.packet_size_max = 4052;
        var fixture: StreamFixture = try .initWith(.{
            .prng = .init(seed),
            .loss_percent = @intCast(seed % 4 * 8),
            .duplicate_percent = 10,
            .jitter_us = 2000 * (seed % 3),
            .packet_size_max = if (seed < 4) wire.packet_size_max else 1300,
        }, sides);
        defer fixture.deinit();
        fixture.packed_percent = 60;
        fixture.spoiled_percent = 15;
        try fixture.expectEstablished();
        try fixture.readMany(80, 1 + @as(u32, @intCast(seed)) * 2);
        try testing.expect(fixture.client.statistics.unpacked_bytes > 0);
        try testing.expect(fixture.client.statistics.unpackable > 0);
        if (seed % 4 > 0) try testing.expect(fixture.client.statistics.contradictions > 0);
    }
}

test "an edge that restarts without a codec goes on plainly" {
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(6), .jitter_us = 500 }, with_codec);
    defer fixture.deinit();
    fixture.packed_percent = 100;
    try fixture.expectEstablished();
    try fixture.readMany(20, 4);
    fixture.sides.edge_codecs = 0;
    try fixture.restartEdge();
    const before = fixture.client.statistics.unpacked_bytes;
    try fixture.readMany(20, 4);
    try testing.expectEqual(0, fixture.client.session.?.codec);
    try testing.expectEqual(before, fixture.client.statistics.unpacked_bytes);
}

test "a device that takes no packed answer, although it has named the codec, gets plain ones" {
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(7) }, with_codec);
    defer fixture.deinit();
    fixture.packed_percent = 100;
    try fixture.expectEstablished();
    // As if it did not know the flag of packed fragments.
    fixture.client.session.?.codec = 0;
    try fixture.readMany(12, 2);
    try testing.expectEqual(0, fixture.client.statistics.unpacked_bytes);
    try testing.expect(fixture.client.statistics.retransmits > 12);
}
