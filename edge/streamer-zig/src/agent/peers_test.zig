//! Tests of peers.zig: what the messages of another edge do to the boots of this one.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const TestIo = @import("io_test.zig");
const fixture = @import("agent_test.zig");
const testing = std.testing;
const Site = fixture.Site;
const Peers = @import("peers.zig").Peers(TestIo);
const macOf = fixture.macOf;
const other: base.Endpoint = .{ .ip = fixture.other_edge.ip, .port = fixture.peer_port };
const uuid = fixture.uuid;

/// The other edge's claim on the boot of device 1.
fn claimOf(counter: u64, body: peer.Body) peer.Message {
    return .{ .edge = uuid(23), .epoch = 1, .counter = counter, .body = body };
}

fn receive(peers: *Peers, site: *Site, message: *const peer.Message) void {
    var buffer: [peer.packet_size_max]u8 = undefined;
    const bytes = peer.emit(message, &site.peers.site.?.key, &buffer);
    peers.receive(other, bytes, site.io.now_us);
}

fn takenBy(counter: u64, is_proved: bool) peer.Message {
    return claimOf(counter, .{ .claim = .{
        .boot = uuid(60),
        .mac = macOf(1),
        .stage = .taken,
        .begun_by_loader = false,
        .is_proved = is_proved,
        .age_ms = 0,
    } });
}

test "an offer yields to the edge that its device has taken" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.io.now_us += 60 * std.time.us_per_s;
    receive(&peers, site, &takenBy(1, false));
    try testing.expectEqual(null, site.boots.get(ref));
    try testing.expectEqual(1, site.io.journaled_failovers);
}

test "a boot that was taken here ends once its device has proved itself at another edge" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.boots.take(ref);
    site.io.now_us += 60 * std.time.us_per_s;
    // Anybody can load something from that edge in the device's name.
    receive(&peers, site, &takenBy(1, false));
    try testing.expect(!site.boot(ref).isOver());
    receive(&peers, site, &takenBy(2, true));
    try testing.expectEqual(.superseded, std.meta.activeTag(site.boot(ref).outcome.?));
    try testing.expectEqual(0, site.io.journaled_failovers);
}

test "a boot whose device is heard here goes on, and ends when it falls silent" {
    const second = std.time.us_per_s;
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.boots.apply(ref, site.io.now_us, .{
        .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l },
    });
    site.io.now_us += second;
    receive(&peers, site, &takenBy(1, true));
    try testing.expect(!site.boot(ref).isOver());
    site.io.now_us += 11 * second - 1;
    peers.tick(site.io.now_us);
    try testing.expect(!site.boot(ref).isOver());
    site.io.now_us += 1;
    peers.tick(site.io.now_us);
    try testing.expectEqual(.superseded, std.meta.activeTag(site.boot(ref).outcome.?));
}

test "a forged message, or one about another device, changes nothing" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.io.now_us += 60 * std.time.us_per_s;
    var claim = claimOf(1, .{ .claim = .{
        .boot = uuid(60),
        .mac = macOf(2),
        .stage = .taken,
        .begun_by_loader = false,
        .age_ms = 0,
    } });
    receive(&peers, site, &claim);
    claim.body.claim.mac = macOf(1);
    claim.counter = 2;
    var buffer: [peer.packet_size_max]u8 = undefined;
    const bytes = peer.emit(&claim, &@as(peer.Key, @splat(1)), &buffer);
    peers.receive(other, bytes, site.io.now_us);
    try testing.expect(!site.boot(ref).isOver());
}

test "what is due goes to each other edge, and none of it to this one" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.boots.take(ref);
    peers.flush(site.io.now_us);
    // That it is alive, and its claim on the device.
    try testing.expectEqual(2, site.io.sent.count);
    for (site.io.sent.constSlice()) |*sent| {
        try testing.expectEqual(.peer, std.meta.activeTag(sent.port));
        try testing.expect(sent.to.eql(other));
        try testing.expect((try peer.parse(sent.bytes())).edge.eql(uuid(20)));
    }
}

test "a tick tells how many devices boot here, and withdraws an offer that another edge made too" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    const ref = try site.begin(1);
    site.boots.settle(site.boot(ref));
    peers.tick(site.io.now_us);
    try testing.expectEqual(1, site.peers.booting);
    receive(&peers, site, &claimOf(1, .{ .claim = .{
        .boot = uuid(60),
        .mac = macOf(1),
        .stage = .offered,
        .begun_by_loader = false,
        .age_ms = 0,
    } }));
    try testing.expect(site.boots.get(ref) != null);
    // Of the two, the edge with the higher id withdraws.
    site.peers.site.?.own_id = uuid(99);
    var seconds: u64 = 0;
    while (site.boots.get(ref) != null and seconds < 60) : (seconds += 1) {
        site.io.now_us += std.time.us_per_s;
        site.peers.peers[1 - site.peers.site.?.own_index].heard_us = site.io.now_us;
        peers.tick(site.io.now_us);
    }
    try testing.expectEqual(null, site.boots.get(ref));
    try testing.expect(site.io.withdrawn_to.?.eql(uuid(23)));
    peers.tick(site.io.now_us);
    try testing.expectEqual(0, site.peers.booting);
}

test "the end of an earlier boot at another edge ends no boot that the device began at once here" {
    for ([_]bool{ true, false }) |is_over| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        _ = site.addEdge();
        // The other edge has the lower id, and wins where both have the device.
        site.peers.site.?.own_id = uuid(99);
        var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
        const ref = try site.begin(1);
        site.boots.take(ref);
        site.boots.settle(site.boot(ref));
        const claim: peer.Claim = .{
            .boot = uuid(60),
            .mac = macOf(1),
            .stage = .taken,
            .begun_by_loader = false,
            .is_proved = true,
            .age_ms = 1,
        };
        receive(
            &peers,
            site,
            &claimOf(1, if (is_over) .{ .release = claim } else .{ .claim = claim }),
        );
        try testing.expectEqual(is_over, !site.boot(ref).isOver());
    }
}

test "what an edge holds is sent to the others, and heard from those that are known" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    const index = site.addEdge();
    var peers: Peers = .{ .table = &site.peers, .boots = &site.boots };
    site.boots.tick(site.io.now_us);
    while (site.io.sent.pop()) |_| {}
    peers.flush(site.io.now_us);
    const told = while (site.io.sent.pop()) |*sent| {
        const message = try peer.parse(sent.bytes());
        if (message.body == .holdings) break message.body.holdings;
    } else return error.NothingTold;
    try testing.expectEqual(1, told.list.count);
    const expected: peer.Holding = .{ .version = uuid(1), .copy = .held };
    try testing.expectEqual(expected, told.list.buffer[0]);
    const message: peer.Message =
        .{ .edge = uuid(23), .epoch = 1, .counter = 7, .body = .{ .holdings = told } };
    site.peers.peers[index].is_known = false;
    receive(&peers, site, &message);
    try testing.expectEqual(.unknown, site.peers.holdings.of(index, uuid(1)));
    site.peers.peers[index].is_known = true;
    var next = message;
    next.counter = 8;
    receive(&peers, site, &next);
    try testing.expectEqual(.held, site.peers.holdings.of(index, uuid(1)));
    // It starts again, and has not told yet what it holds.
    next.epoch = 2;
    next.body = .{ .alive = .{ .booting = 0, .draining = false } };
    receive(&peers, site, &next);
    try testing.expectEqual(.unknown, site.peers.holdings.of(index, uuid(1)));
}
