//! Tests of network_tally.zig with both sides of the stream, over a link that loses and reorders.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const StreamClient = @import("client.zig");
const StreamServer = @import("../server/server.zig");
const testing = std.testing;

const StreamFixture = client_test.StreamFixture;

/// Reports until NETWORK arrives.
fn reportNetwork(fixture: *StreamFixture) !StreamServer.DeviceNetwork {
    fixture.network = null;
    for (0..20) |_| {
        fixture.client.report(fixture.now_us, .{ .uptime_us = 1 });
        const event = try fixture.nextEvent(30 * std.time.us_per_s);
        try testing.expect(event.? == .report_acknowledged);
        if (fixture.network) |said| return said;
    }
    return error.NoNetwork;
}

test "device and edge measure in each direction what the link loses, and unused numbers are known" {
    for ([_]u8{ 0, 2, 10 }) |loss_percent| {
        var fixture: StreamFixture = try .init(.{ .prng = .init(5) });
        defer fixture.deinit();
        fixture.client.identity.card = .{ .duplex = .half };
        try fixture.expectEstablished();
        fixture.link.loss_percent = loss_percent;
        try fixture.readMany(60, 6);
        const session = fixture.server.sessionOf(client_test.boot_id).?;
        var sealer = fixture.server.sealer(session.id).?;
        sealer.reserve(7);
        sealer.skip(7);
        try fixture.readMany(60, 6);
        const said = try reportNetwork(&fixture);
        const network = &said.network;
        try testing.expectEqual(.half, network.card.duplex);
        try testing.expect(network.is_settled);
        try testing.expectEqual(7, said.passed.skipped);
        try testing.expectEqual(fixture.lost_to_edge, said.passed.sent - said.passed.arrived);
        // Those that were sent last may be lost without a later one that tells of it.
        try testing.expect(network.lost - 7 <= fixture.lost_to_device);
        try testing.expect(network.lost - 7 + 30 >= fixture.lost_to_device);
        if (loss_percent > 0) try testing.expect(network.lost > 7 + 30);
        try testing.expectEqual(0, network.reordered);
        try testing.expect(network.ordered > 1000);
    }
}

test "packets that overtake each other are counted, and the round trip is that of the link" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(9), .jitter_us = 40, .delay_us = 480 });
    defer fixture.deinit();
    fixture.client.identity.card = .{};
    fixture.client.options.rtt_probe_us = StreamClient.rtt_probe_us_default;
    try fixture.expectEstablished();
    try fixture.readMany(40, 4);
    try testing.expectEqual(null, try fixture.nextEvent(5 * std.time.us_per_s));
    const network = (try reportNetwork(&fixture)).network;
    try testing.expect(network.reordered > network.ordered / 10);
    try testing.expect(network.reorder_max > 0);
    try testing.expectEqual(0, network.lost);
    try testing.expect(network.rtt_count >= 20);
    try testing.expect(network.rtt_min_us >= 960);
    try testing.expect(network.rtt_p95_us <= 1060);
}

test "a path that takes less than both cards is told with the size that vanishes, and is no loss" {
    const jumbo: StreamFixture.Sides = .{ .packet_size_max = wire.packet_size_max };
    var fixture: StreamFixture = try .initWith(
        .{ .prng = .init(3), .packet_size_max = wire.packet_size_ethernet },
        jumbo,
    );
    defer fixture.deinit();
    fixture.client.identity.card = .{ .mtu = 9000 };
    try fixture.expectEstablished();
    try fixture.readMany(20, 4);
    try testing.expectEqual(null, try fixture.nextEvent(9 * std.time.us_per_s));
    try fixture.readMany(1, 1);
    const network = (try reportNetwork(&fixture)).network;
    try testing.expectEqual(wire.packet_size_max, network.size_max);
    try testing.expectEqual(wire.packet_size_ethernet, network.size);
    try testing.expectEqual(4052, network.size_lost);
    try testing.expect(network.size_lost_count >= 3);
    try testing.expectEqual(0, network.lost);
    // The path becomes narrower still.
    fixture.link.packet_size_max = 1400;
    try fixture.readMany(4, 2);
    const narrow = (try reportNetwork(&fixture)).network;
    try testing.expectEqual(1372, narrow.size);
    try testing.expectEqual(wire.packet_size_ethernet, narrow.size_lost);
    try testing.expectEqual(0, narrow.lost);
}
