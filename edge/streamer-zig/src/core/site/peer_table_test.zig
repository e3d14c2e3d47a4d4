//! Tests of peer_table.zig: several edges of one site over a network that loses, delays and
//! duplicates, and devices that boot as firmware and iPXE do. Time is simulated; the same seed
//! gives the same run. `Edge.ask` is a small model of the host's boots.

const std = @import("std");
const base = @import("base");
const peer = @import("wire").peer;
const Boot = @import("../boot/boot.zig");
const BootTable = @import("../boot/table.zig");
const SiteEdges = @import("edges.zig");
const PeerTable = @import("peer_table.zig");
const testing = std.testing;
const Mac = base.Mac;

const ms = std.time.us_per_ms;
const edges_max = 3;
const devices_max = 40;
const flights_max = 4096;
const network: base.Ip4 = .init(10, 77, 0, 0);
const site_key = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

fn edgeId(number: usize) base.Uuid {
    return .fromRandom(@splat(@intCast(0x10 + number)));
}

fn edgeEndpoint(number: usize) base.Endpoint {
    return .{ .ip = .init(10, 77, 0, @intCast(1 + number)), .port = 6911 };
}

fn deviceMac(number: usize) Mac {
    return .fromInt(@intCast(0x02bf_0000_0001 + number));
}

const EdgeSettings = struct { weights: [edges_max]u8 = @splat(10), draining: ?usize = null };

fn siteOf(count: usize, own: usize, said: EdgeSettings) SiteEdges {
    var edges: [edges_max]SiteEdges.EdgeDescription = undefined;
    for (edges[0..count], 0..) |*edge, number| edge.* = .{
        .id = edgeId(number),
        .weight = said.weights[number],
        .subnets = &.{},
        .draining = said.draining == number,
        .address = edgeEndpoint(number).ip,
        .peerPort = edgeEndpoint(number).port,
    };
    return .init(&.{ .key = site_key, .edges = edges[0..count] }, edgeId(own));
}

const Edge = struct {
    number: usize,
    is_up: bool = true,
    epoch: u64 = 1,
    peers: PeerTable,
    /// The part that the journal keeps across a crash.
    boots: BootTable,
    next_id: u64 = 1,
    withdrawn: u32 = 0,
    began: u32 = 0,

    const Offer = struct { edge: usize, boot: base.Uuid };

    fn init(gpa: std.mem.Allocator, number: usize, count: usize, said: EdgeSettings) !Edge {
        var edge: Edge = .{
            .number = number,
            .peers = try .init(gpa, .{ .epoch = 1, .boots_max = 256, .others_max = 128 }),
            .boots = try .init(gpa, .{ .capacity = 256 }),
        };
        edge.peers.setSite(0, siteOf(count, number, said));
        return edge;
    }

    fn deinit(edge: *Edge, gpa: std.mem.Allocator) void {
        edge.peers.deinit(gpa);
        edge.boots.deinit(gpa);
    }

    fn restart(
        edge: *Edge,
        gpa: std.mem.Allocator,
        now_us: u64,
        count: usize,
        said: EdgeSettings,
    ) !void {
        edge.peers.deinit(gpa);
        edge.epoch += 1;
        edge.peers = try .init(gpa, .{ .epoch = edge.epoch, .boots_max = 256, .others_max = 128 });
        edge.peers.setSite(now_us, siteOf(count, edge.number, said));
        var iterator = edge.boots.iterate();
        while (iterator.next()) |boot| edge.peers.onBoot(boot);
        edge.is_up = true;
    }

    /// Sends a DISCOVER; null: no answer.
    fn ask(edge: *Edge, now_us: u64, mac: Mac, xid: u32, client: Boot.DhcpClient) ?Offer {
        const request: Boot.DhcpRequest =
            .{ .message = .discover, .client = client, .xid = xid, .size = 300 };
        const known = edge.boots.findByMac(mac);
        const continues = if (known) |ref|
            edge.boots.get(ref).?.dhcpMeaning(now_us, request) == .same_boot
        else
            false;
        const asked: PeerTable.DeviceRequest = .{
            .mac = mac,
            .network = network,
            .is_loader = client == .ipxe,
            .is_addressed = false,
        };
        const boot: ?*const Boot = if (continues) edge.boots.get(known.?) else null;
        if (edge.peers.decide(now_us, asked, .of(boot, client == .ipxe)) == .leave) {
            if (known != null and !continues) edge.supersede(known.?, now_us);
            return null;
        }
        const ref = if (continues) known.? else edge.begin(now_us, mac);
        edge.apply(ref, now_us, .{ .dhcp_request = request });
        edge.apply(ref, now_us, .{ .dhcp_answer = .{ .size = 300 } });
        return .{ .edge = edge.number, .boot = edge.boots.get(ref).?.identity.id };
    }

    fn begin(edge: *Edge, now_us: u64, mac: Mac) BootTable.Ref {
        if (edge.boots.findByMac(mac)) |ref| edge.supersede(ref, now_us);
        var bytes: [16]u8 = @splat(@intCast(edge.number));
        std.mem.writeInt(u64, bytes[8..16], edge.next_id, .big);
        const handle = edge.next_id << 8 | edge.number;
        edge.next_id += 1;
        edge.began += 1;
        return edge.boots.insert(.init(.{
            .id = .fromRandom(bytes),
            .mac = mac,
            .handle = handle,
            .token = @splat(1),
        }, .{ .version_id = .zero }, now_us, 1), now_us) catch unreachable;
    }

    fn apply(edge: *Edge, ref: BootTable.Ref, now_us: u64, event: Boot.Event) void {
        edge.boots.apply(ref, now_us, event);
        edge.peers.onBoot(edge.boots.get(ref).?);
    }

    fn supersede(edge: *Edge, ref: BootTable.Ref, now_us: u64) void {
        edge.boots.supersede(ref, now_us);
        edge.peers.onBoot(edge.boots.get(ref).?);
    }

    fn withdraw(edge: *Edge, ref: BootTable.Ref) void {
        edge.peers.dropBoot(edge.boots.get(ref).?);
        edge.boots.remove(ref);
        edge.withdrawn += 1;
    }

    fn hear(edge: *Edge, now_us: u64, from: base.Endpoint, bytes: []const u8) void {
        const claim = switch (edge.peers.receive(now_us, from, bytes)) {
            .claim => |claim| claim,
            .ignored, .nothing => return,
        };
        const ref = edge.boots.findByMac(claim.mac) orelse return;
        switch (edge.peers.consequence(now_us, edge.boots.get(ref).?, claim)) {
            .keep => {},
            .withdraw => edge.withdraw(ref),
            .supersede => edge.supersede(ref, now_us),
        }
    }

    fn second(edge: *Edge, now_us: u64) void {
        if (!edge.peers.isStarting(now_us)) edge.boots.tick(now_us);
        var iterator = edge.boots.iterate();
        while (iterator.next()) |boot| edge.peers.onBoot(boot);
        edge.peers.setBooting(now_us, edge.boots.active_count);
        while (edge.peers.nextWithdrawnOffer(now_us)) |lost|
            edge.withdraw(edge.boots.findById(lost.boot).?);
    }
};

/// Firmware, then iPXE, then the system. Retransmits after 1, 2, 4 and 8 s, starts again after
/// that.
const Device = struct {
    stage: enum { off, rom, nbp, ipxe, load, ready } = .off,
    xid: u32 = 0,
    attempt: u6 = 0,
    due_us: u64,
    at: ?Edge.Offer = null,
    power_ons: u32 = 0,
    /// Downloads that its edge knew nothing about.
    lost_downloads: u32 = 0,

    const attempts_max = 5;
};

const Flight =
    struct { at_us: u64, to: usize, from: usize, size: u16, bytes: [peer.packet_size_max]u8 };

const NetworkFixture = struct {
    gpa: std.mem.Allocator,
    prng: base.Prng,
    edges: [edges_max]Edge = undefined,
    edge_count: usize,
    devices: [devices_max]Device = undefined,
    flights: std.ArrayList(Flight),
    said: EdgeSettings,
    now_us: u64 = 5 * std.time.us_per_s,
    /// Percent: between edges, and from devices to edges.
    peer_loss: u64 = 0,
    segment_loss: u64 = 0,

    fn init(
        gpa: std.mem.Allocator,
        seed: u64,
        edge_count: usize,
        said: EdgeSettings,
    ) !NetworkFixture {
        var fixture: NetworkFixture = .{
            .gpa = gpa,
            .prng = .init(seed),
            .edge_count = edge_count,
            .flights = try .initCapacity(gpa, flights_max),
            .said = said,
        };
        for (fixture.edges[0..edge_count], 0..) |*edge, number|
            edge.* = try .init(gpa, number, edge_count, said);
        for (&fixture.devices) |*device| device.* = .{
            .due_us = fixture.now_us + 3 * std.time.us_per_s +
                fixture.prng.below(20 * std.time.us_per_s),
        };
        return fixture;
    }

    fn deinit(fixture: *NetworkFixture) void {
        for (fixture.edges[0..fixture.edge_count]) |*edge| edge.deinit(fixture.gpa);
        fixture.flights.deinit(fixture.gpa);
    }

    fn run(fixture: *NetworkFixture, for_us: u64) void {
        const end_us = fixture.now_us + for_us;
        while (fixture.now_us < end_us) : (fixture.now_us += 5 * ms) {
            for (fixture.edges[0..fixture.edge_count]) |*edge|
                if (edge.is_up) fixture.collect(edge);
            fixture.deliver();
            for (&fixture.devices, 0..) |*device, number| {
                if (device.due_us <= fixture.now_us) fixture.step(device, number);
            }
            if (fixture.now_us % std.time.us_per_s != 0) continue;
            for (fixture.edges[0..fixture.edge_count]) |*edge|
                if (edge.is_up) edge.second(fixture.now_us);
        }
    }

    fn collect(fixture: *NetworkFixture, edge: *Edge) void {
        var buffer: [peer.packet_size_max]u8 = undefined;
        while (edge.peers.next(fixture.now_us, &buffer)) |bytes| for (0..fixture.edge_count) |to| {
            if (to == edge.number or fixture.prng.chance(fixture.peer_loss, 100)) continue;
            const copies: usize = if (fixture.prng.chance(1, 50)) 2 else 1;
            for (0..copies) |_| {
                if (fixture.flights.items.len == flights_max) return;
                const flight = fixture.flights.addOneAssumeCapacity();
                flight.* = .{
                    .at_us = fixture.now_us + fixture.prng.below(12) * ms,
                    .to = to,
                    .from = edge.number,
                    .size = @intCast(bytes.len),
                    .bytes = undefined,
                };
                @memcpy(flight.bytes[0..bytes.len], bytes);
            }
        };
    }

    fn deliver(fixture: *NetworkFixture) void {
        var index: usize = 0;
        while (index < fixture.flights.items.len) {
            const flight = &fixture.flights.items[index];
            if (flight.at_us > fixture.now_us) {
                index += 1;
                continue;
            }
            const edge = &fixture.edges[flight.to];
            if (edge.is_up)
                edge.hear(fixture.now_us, edgeEndpoint(flight.from), flight.bytes[0..flight.size]);
            _ = fixture.flights.swapRemove(index);
        }
    }

    fn step(fixture: *NetworkFixture, device: *Device, number: usize) void {
        switch (device.stage) {
            .off => fixture.powerOn(device),
            .rom => fixture.discover(device, number, .rom, .nbp),
            .ipxe => fixture.discover(device, number, .ipxe, .load),
            .nbp => fixture.download(device, &.{ .nbp_begin, .nbp_end }, .ipxe),
            .load => fixture.download(
                device,
                &.{
                    .{ .loader_begin = .script },
                    .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } },
                    .{ .ready = .stream },
                },
                .ready,
            ),
            .ready => device.due_us = std.math.maxInt(u64),
        }
    }

    fn powerOn(fixture: *NetworkFixture, device: *Device) void {
        device.power_ons += 1;
        device.stage = .rom;
        device.xid = fixture.prng.nextU32() | 1;
        device.attempt = 0;
        device.at = null;
        device.due_us = fixture.now_us;
    }

    fn discover(
        fixture: *NetworkFixture,
        device: *Device,
        number: usize,
        client: Boot.DhcpClient,
        after: @FieldType(Device, "stage"),
    ) void {
        if (device.attempt == Device.attempts_max) return fixture.powerOn(device);
        var best: ?Edge.Offer = null;
        const first = fixture.prng.below(fixture.edge_count);
        for (0..fixture.edge_count) |turn| {
            const edge = &fixture.edges[@intCast((first + turn) % fixture.edge_count)];
            if (!edge.is_up or fixture.prng.chance(fixture.segment_loss, 100)) continue;
            const offer = edge.ask(fixture.now_us, deviceMac(number), device.xid, client) orelse
                continue;
            if (fixture.prng.chance(fixture.segment_loss, 100)) continue;
            if (best == null) best = offer;
        }
        device.due_us = fixture.now_us + (@as(u64, 1000 * ms) << device.attempt);
        device.attempt += 1;
        if (best) |offer| {
            device.at = offer;
            device.stage = after;
            device.due_us = fixture.now_us + 200 * ms;
        }
    }

    fn download(
        fixture: *NetworkFixture,
        device: *Device,
        events: []const Boot.Event,
        after: @FieldType(Device, "stage"),
    ) void {
        const offer = device.at.?;
        const edge = &fixture.edges[offer.edge];
        const ref = if (edge.is_up) edge.boots.findById(offer.boot) else null;
        if (ref == null) {
            if (edge.is_up) device.lost_downloads += 1;
            return fixture.powerOn(device);
        }
        for (events) |event| edge.apply(ref.?, fixture.now_us, event);
        device.stage = after;
        device.xid = fixture.prng.nextU32() | 1;
        device.attempt = 0;
        device.due_us = fixture.now_us + 700 * ms;
    }

    const Count = struct { ready: u32 = 0, superseded: u32 = 0, other: u32 = 0 };

    fn countOf(fixture: *NetworkFixture, number: usize) Count {
        var count: Count = .{};
        for (fixture.edges[0..fixture.edge_count]) |*edge| {
            var iterator = edge.boots.iterate();
            while (iterator.next()) |boot| {
                if (!boot.identity.mac.eql(deviceMac(number))) continue;
                const outcome = boot.outcome orelse {
                    count.other += 1;
                    continue;
                };
                switch (outcome) {
                    .ready => count.ready += 1,
                    .superseded => count.superseded += 1,
                    else => count.other += 1,
                }
            }
        }
        return count;
    }
};

fn expectOneBootEach(fixture: *NetworkFixture) !void {
    for (&fixture.devices, 0..) |*device, number| {
        const count = fixture.countOf(number);
        errdefer std.debug.print("device {d}: {t}, power-ons {d}, {any}\n", .{
            number, device.stage, device.power_ons, count,
        });
        try testing.expectEqual(.ready, device.stage);
        try testing.expectEqual(1, count.ready);
        try testing.expectEqual(0, count.other);
        try testing.expect(count.superseded < device.power_ons);
    }
}

test "without loss each device boots at exactly one edge and no offer is withdrawn" {
    for (0..4) |seed| {
        var fixture: NetworkFixture =
            try .init(testing.allocator, seed, if (seed % 2 == 0) 2 else 3, .{});
        defer fixture.deinit();
        fixture.run(40 * std.time.us_per_s);
        try expectOneBootEach(&fixture);
        var began: u32 = 0;
        for (fixture.edges[0..fixture.edge_count]) |*edge| {
            began += edge.began;
            try testing.expect(edge.began > 0);
            try testing.expectEqual(0, edge.withdrawn);
        }
        try testing.expectEqual(devices_max, began);
    }
}

test "with loss between edges and on the segment every device becomes ready in one boot" {
    for (0..12) |seed| {
        var fixture: NetworkFixture =
            try .init(testing.allocator, 100 + seed, if (seed % 2 == 0) 2 else 3, .{});
        defer fixture.deinit();
        fixture.peer_loss = 5 + 5 * (seed % 3);
        fixture.segment_loss = 5 + seed;
        fixture.run(120 * std.time.us_per_s);
        errdefer std.debug.print("seed {d}\n", .{seed});
        try expectOneBootEach(&fixture);
    }
}

test "a crashed edge costs its devices only a retry, and returns without a second boot" {
    for (0..8) |seed| {
        var fixture: NetworkFixture = try .init(testing.allocator, 200 + seed, 2, .{});
        defer fixture.deinit();
        fixture.peer_loss = 5;
        fixture.run(8 * std.time.us_per_s);
        fixture.edges[seed % 2].is_up = false;
        const began = fixture.edges[seed % 2].began;
        fixture.run(12 * std.time.us_per_s);
        try fixture.edges[seed % 2].restart(testing.allocator, fixture.now_us, 2, fixture.said);
        fixture.run(100 * std.time.us_per_s);
        errdefer std.debug.print("seed {d}\n", .{seed});
        try expectOneBootEach(&fixture);
        for (&fixture.devices) |*device| try testing.expect(device.power_ons <= 2);
        try testing.expect(fixture.edges[seed % 2].began >= began);
    }
}

test "edges that do not hear each other both answer, and agree once they do" {
    for (0..6) |seed| {
        var fixture: NetworkFixture = try .init(testing.allocator, 300 + seed, 2, .{});
        defer fixture.deinit();
        fixture.run(2 * std.time.us_per_s);
        fixture.peer_loss = 100;
        fixture.run(12 * std.time.us_per_s);
        fixture.peer_loss = 0;
        fixture.run(100 * std.time.us_per_s);
        errdefer std.debug.print("seed {d}\n", .{seed});
        for (&fixture.devices, 0..) |*device, number| {
            const count = fixture.countOf(number);
            try testing.expectEqual(.ready, device.stage);
            try testing.expectEqual(1, count.ready);
            try testing.expectEqual(0, count.other);
        }
    }
}

test "a draining edge starts nothing while another one can, and keeps the boots that it has" {
    var fixture: NetworkFixture = try .init(testing.allocator, 400, 2, .{ .draining = 0 });
    defer fixture.deinit();
    fixture.run(20 * std.time.us_per_s);
    try testing.expectEqual(0, fixture.edges[0].began);
    const half = fixture.edges[1].began;
    try testing.expect(half > 0);
    const turned: EdgeSettings = .{ .draining = 1 };
    for (fixture.edges[0..2], 0..) |*edge, number|
        edge.peers.setSite(fixture.now_us, siteOf(2, number, turned));
    fixture.run(40 * std.time.us_per_s);
    try expectOneBootEach(&fixture);
    // In the moment in which both have changed roles without knowing of each other, both may have
    // answered.
    const withdrawn = fixture.edges[0].withdrawn + fixture.edges[1].withdrawn;
    try testing.expect(withdrawn <= 1);
    try testing.expectEqual(
        devices_max,
        fixture.edges[0].began + fixture.edges[1].began - withdrawn,
    );
    // Those that were in progress.
    try testing.expect(fixture.edges[1].began <= half + 1);
    fixture.edges[0].is_up = false;
    for (&fixture.devices) |*device|
        device.* = .{ .due_us = fixture.now_us + 4 * std.time.us_per_s };
    fixture.run(30 * std.time.us_per_s);
    for (&fixture.devices) |*device| try testing.expectEqual(.ready, device.stage);
}

test "weights are respected" {
    var fixture: NetworkFixture =
        try .init(testing.allocator, 500, 2, .{ .weights = .{ 90, 10, 0 } });
    defer fixture.deinit();
    fixture.run(40 * std.time.us_per_s);
    try expectOneBootEach(&fixture);
    try testing.expect(fixture.edges[0].began > 4 * fixture.edges[1].began);
}

/// Two tables that know each other.
const Pair = struct {
    a: PeerTable,
    b: PeerTable,

    fn init(now_us: u64) !Pair {
        var pair: Pair = .{
            .a = try .init(testing.allocator, .{ .epoch = 1, .boots_max = 8, .others_max = 8 }),
            .b = try .init(testing.allocator, .{ .epoch = 1, .boots_max = 8, .others_max = 8 }),
        };
        pair.a.setSite(now_us, siteOf(2, 0, .{}));
        pair.b.setSite(now_us, siteOf(2, 1, .{}));
        return pair;
    }

    fn deinit(pair: *Pair) void {
        pair.a.deinit(testing.allocator);
        pair.b.deinit(testing.allocator);
    }

    fn exchange(pair: *Pair, now_us: u64) void {
        var buffer: [peer.packet_size_max]u8 = undefined;
        while (pair.a.next(now_us, &buffer)) |bytes|
            _ = pair.b.receive(now_us, edgeEndpoint(0), bytes);
        while (pair.b.next(now_us, &buffer)) |bytes|
            _ = pair.a.receive(now_us, edgeEndpoint(1), bytes);
    }
};

test "edges know each other two messages after the start, and for as long as they are heard" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    pair.exchange(0);
    pair.exchange(100 * ms);
    pair.exchange(200 * ms);
    try testing.expect(pair.a.isAlive(200 * ms, 1));
    try testing.expect(pair.b.isAlive(200 * ms, 0));
    try testing.expect(!pair.b.isAlive(200 * ms + PeerTable.alive_limit_us + 1200 * ms, 0));
}

test "replayed messages are not believed, not even by an edge that has just started" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    var now_us: u64 = 0;
    var recorded: [16]struct { size: usize, bytes: [peer.packet_size_max]u8 } = undefined;
    var count: usize = 0;
    while (count < recorded.len) : (now_us += 100 * ms) {
        while (pair.a.next(now_us, &recorded[count].bytes)) |bytes| {
            recorded[count].size = bytes.len;
            _ = pair.b.receive(now_us, edgeEndpoint(0), bytes);
            count += 1;
            if (count == recorded.len) break;
        }
        var buffer: [peer.packet_size_max]u8 = undefined;
        while (pair.b.next(now_us, &buffer)) |bytes|
            _ = pair.a.receive(now_us, edgeEndpoint(1), bytes);
    }
    const before = pair.b.ignored.get(.peer_replayed);
    for (&recorded) |*message|
        try testing.expectEqual(
            base.IgnoreReason.peer_replayed,
            pair.b.receive(now_us, edgeEndpoint(0), message.bytes[0..message.size]).ignored,
        );
    try testing.expectEqual(before + recorded.len, pair.b.ignored.get(.peer_replayed));
    // The receiver restarts and remembers nothing; the sender is gone for good.
    pair.b.deinit(testing.allocator);
    pair.b = try .init(testing.allocator, .{ .epoch = 2, .boots_max = 8, .others_max = 8 });
    pair.b.setSite(now_us, siteOf(2, 1, .{}));
    for (&recorded) |*message|
        _ = pair.b.receive(now_us, edgeEndpoint(0), message.bytes[0..message.size]);
    try testing.expect(!pair.b.isAlive(now_us, 0));
}

test "messages of attackers, with other keys and in floods are ignored and counted" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    var buffer: [peer.packet_size_max]u8 = undefined;
    const bytes = pair.a.next(0, &buffer).?;
    const attacker: base.Endpoint = .{ .ip = .init(10, 77, 0, 99), .port = 6911 };
    try testing.expectEqual(
        base.IgnoreReason.peer_unknown,
        pair.b.receive(0, attacker, bytes).ignored,
    );
    var forged: [peer.packet_size_max]u8 = undefined;
    @memcpy(forged[0..bytes.len], bytes);
    forged[41] ^= 1;
    try testing.expectEqual(
        base.IgnoreReason.peer_bad_message,
        pair.b.receive(0, edgeEndpoint(0), forged[0..bytes.len]).ignored,
    );
    try testing.expectEqual(
        base.IgnoreReason.peer_bad_message,
        pair.b.receive(0, edgeEndpoint(0), "x").ignored,
    );
    for (0..PeerTable.messages_per_s_max + 10) |_|
        _ = pair.b.receive(0, edgeEndpoint(0), forged[0..bytes.len]);
    try testing.expectEqual(
        PeerTable.MessageOutcome.nothing,
        pair.b.receive(0, edgeEndpoint(0), bytes),
    );
    for (0..PeerTable.messages_per_s_max + 10) |_| try testing.expectEqual(
        base.IgnoreReason.peer_replayed,
        pair.b.receive(0, edgeEndpoint(0), bytes).ignored,
    );
    try testing.expectEqual(0, pair.b.ignored.get(.peer_too_many));
}

test "an edge takes a bounded number of genuine messages of another one in a second" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    var buffer: [peer.packet_size_max]u8 = undefined;
    var taken: u32 = 0;
    for (0..PeerTable.messages_per_s_max + 10) |round| {
        // The sender's clock runs ahead: it says ALIVE as often as it may.
        const bytes = pair.a.next(round * std.time.us_per_s, &buffer).?;
        const outcome = pair.b.receive(std.time.us_per_s - 1, edgeEndpoint(0), bytes);
        if (outcome != .ignored) taken += 1;
    }
    try testing.expectEqual(PeerTable.messages_per_s_max, taken);
    try testing.expectEqual(10, pair.b.ignored.get(.peer_too_many));
    const bytes = pair.a.next(10_000 * std.time.us_per_s, &buffer).?;
    try testing.expectEqual(
        PeerTable.MessageOutcome.nothing,
        pair.b.receive(2 * std.time.us_per_s, edgeEndpoint(0), bytes),
    );
}

test "an edge that does not know its peers yet waits for the device to retry" {
    var table: PeerTable =
        try .init(testing.allocator, .{ .epoch = 1, .boots_max = 8, .others_max = 8 });
    defer table.deinit(testing.allocator);
    const asked: PeerTable.DeviceRequest = .{ .mac = deviceMac(1), .network = network };
    try testing.expectEqual(.answer, table.decide(0, asked, .none));
    table.setSite(0, siteOf(2, 0, .{}));
    try testing.expectEqual(.leave, table.decide(1, asked, .none));
    try testing.expectEqual(.answer, table.decide(900 * ms, asked, .none));
    var addressed = asked;
    addressed.mac = deviceMac(2);
    addressed.is_addressed = true;
    try testing.expectEqual(.answer, table.decide(1, addressed, .none));
    addressed.mac = deviceMac(3);
    addressed.is_addressed = false;
    try testing.expectEqual(.answer, table.decide(1, addressed, .taken));
    try testing.expectEqual(.answer, table.decide(1100 * ms, addressed, .none));
}

test "a device is answered by the edge that keeps its writes, while that one is alive" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    for (0..13) |step| pair.exchange(step * 100 * ms);
    const now_us = 1200 * ms;
    for (0..20) |number| {
        const asked: PeerTable.DeviceRequest =
            .{ .mac = deviceMac(number), .network = network, .home = edgeId(1) };
        try testing.expectEqual(.answer, pair.b.decide(now_us, asked, .none));
        try testing.expect(pair.b.isOwn(now_us, asked) and !pair.a.isOwn(now_us, asked));
        var addressed = asked;
        addressed.is_addressed = true;
        for (0..4) |repeat| try testing.expectEqual(
            .leave,
            pair.a.decide(now_us + repeat * 300 * ms, asked, .none),
        );
        try testing.expectEqual(.leave, pair.a.decide(now_us, addressed, .offered));
        // Anybody can have loaded something from it in the device's name.
        try testing.expectEqual(.leave, pair.a.decide(now_us, asked, .taken));
        try testing.expectEqual(.answer, pair.a.decide(now_us, addressed, .taken));
        // It is not heard any more: its device learns why it cannot start.
        try testing.expectEqual(.answer, pair.a.decide(now_us + 5000 * ms, addressed, .none));
    }
}

test "the edge that keeps a device's writes answers although another one has begun its boot" {
    for ([_]bool{ false, true }) |is_taken| for ([_]bool{ false, true }) |is_proved|
        if (is_taken or !is_proved) try expectWriteOwnerAnswers(is_taken, is_proved);
}

fn expectWriteOwnerAnswers(is_taken: bool, is_proved: bool) !void {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(7)),
        .mac = deviceMac(1),
        .handle = 7,
        .token = @splat(7),
    }, .{ .version_id = .zero }, 0, 1);
    boot.apply(0, .{
        .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 },
    });
    boot.is_taken = is_taken;
    boot.stream_was_open = is_proved;
    pair.a.onBoot(&boot);
    for (0..13) |step| pair.exchange(step * 100 * ms);
    const now_us = 1200 * ms;
    var asked: PeerTable.DeviceRequest =
        .{ .mac = deviceMac(1), .network = network, .is_loader = true };
    try testing.expectEqual(.leave, pair.b.decide(now_us, asked, .none));
    asked.home = edgeId(1);
    try testing.expectEqual(.leave, pair.a.decide(now_us, asked, .offered));
    // A loader of a machine that runs elsewhere is none of its own.
    const expected: PeerTable.Verdict = if (is_proved) .leave else .answer;
    try testing.expectEqual(expected, pair.b.decide(now_us, asked, .none));
    try testing.expectEqual(expected, pair.b.decide(now_us, asked, .offered));
}

test "a device that starts again later is no retry where it went on, proved, at another edge" {
    for ([_]bool{ true, false }) |is_proved| {
        var pair: Pair = try .init(0);
        defer pair.deinit();
        for (0..13) |step| pair.exchange(step * 100 * ms);
        const number = for (0..edges_max * devices_max) |number| {
            const asked: PeerTable.DeviceRequest =
                .{ .mac = deviceMac(number), .network = network };
            if (pair.a.ownerOf(1200 * ms, asked) == .own) break number;
        } else unreachable;
        const asked: PeerTable.DeviceRequest = .{ .mac = deviceMac(number), .network = network };
        var boot: Boot = .init(.{
            .id = .fromRandom(@splat(7)),
            .mac = asked.mac,
            .handle = 7,
            .token = @splat(7),
        }, .{ .version_id = .zero }, 1200 * ms, 1);
        boot.apply(1200 * ms, .{
            .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 },
        });
        boot.is_taken = true;
        boot.stream_was_open = is_proved;
        pair.a.onBoot(&boot);
        for (13..16) |step| pair.exchange(step * 100 * ms);
        // Its firmware starts again at once: the same boot goes on, and nothing of it is news.
        try testing.expectEqual(.leave, pair.b.decide(1600 * ms, asked, .none));
        boot.apply(9000 * ms, .{ .dhcp_answer = .{ .size = 300 } });
        if (is_proved) boot.heard_us = 9000 * ms - boot.started_us;
        pair.a.onBoot(&boot);
        for (16..160) |step| pair.exchange(step * 100 * ms);
        const expected: PeerTable.Verdict = if (is_proved) .leave else .answer;
        try testing.expectEqual(expected, pair.b.decide(16_000 * ms, asked, .none));
    }
}

/// The first edge holds the version, the second one lacks it, and both know it.
fn toldPair() !Pair {
    var pair: Pair = try .init(0);
    pair.a.holdings.set(0, &.{.{ .version = booted_version, .copy = .held }});
    pair.b.holdings.set(0, &.{.{ .version = booted_version, .copy = .lacking }});
    for (0..13) |step| pair.exchange(step * 100 * ms);
    return pair;
}

const booted_version: base.Uuid = .fromRandom(@splat(0x77));

test "an edge that lacks a device's version leaves it to one that holds it, in every state" {
    var pair = try toldPair();
    defer pair.deinit();
    const now_us = 1200 * ms;
    for (0..20) |number| {
        var asked: PeerTable.DeviceRequest =
            .{ .mac = deviceMac(number), .network = network, .version = booted_version };
        try testing.expectEqual(.answer, pair.a.decide(now_us, asked, .none));
        try testing.expect(pair.a.isOwn(now_us, asked) and !pair.b.isOwn(now_us, asked));
        for ([_]PeerTable.Own{ .none, .offered, .taken }, 0..) |own, repeat|
            try testing.expectEqual(.leave, pair.b.decide(now_us + repeat * 300 * ms, asked, own));
        // It asks once more: the other edge does not reach it.
        try testing.expectEqual(.answer, pair.b.decide(now_us + 900 * ms, asked, .none));
        asked.is_addressed = true;
        try testing.expectEqual(.answer, pair.b.decide(now_us, asked, .none));
        asked.is_addressed = false;
        // The edge that keeps the device's writes answers, whatever it holds.
        asked.home = edgeId(1);
        try testing.expectEqual(.answer, pair.b.decide(now_us, asked, .none));
        asked.home = null;
        try testing.expectEqual(.answer, pair.b.decide(now_us + 5000 * ms, asked, .none));
    }
}

test "an edge that holds the version answers although one that lacks it has begun the boot" {
    for ([_]bool{ false, true }) |is_proved| {
        var pair = try toldPair();
        defer pair.deinit();
        var boot: Boot = .init(.{
            .id = .fromRandom(@splat(7)),
            .mac = deviceMac(1),
            .handle = 7,
            .token = @splat(7),
        }, .{ .version_id = booted_version }, 0, 1);
        boot.apply(0, .{
            .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 },
        });
        boot.is_taken = true;
        boot.stream_was_open = is_proved;
        pair.b.onBoot(&boot);
        for (13..16) |step| pair.exchange(step * 100 * ms);
        const asked: PeerTable.DeviceRequest = .{
            .mac = deviceMac(1),
            .network = network,
            .is_loader = true,
            .version = booted_version,
        };
        const expected: PeerTable.Verdict = if (is_proved) .leave else .answer;
        try testing.expectEqual(expected, pair.a.decide(1600 * ms, asked, .none));
    }
}

test "a schedule's device is started by the edge that keeps its writes, else alike at every load" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    for (0..13) |step| pair.exchange(step * 100 * ms);
    const now_us = 1200 * ms;
    pair.a.setBooting(now_us, 200);
    var own_count: u32 = 0;
    for (0..edges_max * devices_max) |number| {
        var asked: PeerTable.DeviceRequest = .{ .mac = deviceMac(number), .network = network };
        const is_of_a = pair.a.ownerOf(now_us, asked) == .own;
        own_count += @intFromBool(is_of_a);
        try testing.expectEqual(!is_of_a, pair.b.ownerOf(now_us, asked) == .own);
        asked.home = edgeId(1);
        try testing.expectEqual(PeerTable.Owner{ .other = 1 }, pair.a.ownerOf(now_us, asked));
        try testing.expectEqual(.own, pair.b.ownerOf(now_us, asked));
        asked.home = edgeId(0);
        try testing.expectEqual(.own, pair.a.ownerOf(now_us, asked));
    }
    try testing.expect(own_count > devices_max and own_count < 2 * devices_max);
}

test "of two edges that wait for one device, one starts it for a schedule" {
    var pair: Pair = try .init(0);
    defer pair.deinit();
    const asked: PeerTable.DeviceRequest = .{ .mac = deviceMac(1), .network = network };
    const boot_a: base.Uuid = .fromRandom(@splat(7));
    const boot_b: base.Uuid = .fromRandom(@splat(8));
    pair.b.own_claims.onBoot(deviceMac(1), boot_b, .{ .stage = .offered, .at_us = 0 });
    for (0..13) |step| pair.exchange(step * 100 * ms);
    try testing.expectEqual(PeerTable.Owner{ .claimed = 1 }, pair.a.ownerOf(1200 * ms, asked));
    try testing.expectEqual(.own, pair.b.ownerOf(1200 * ms, asked));
    pair.a.own_claims.onBoot(deviceMac(1), boot_a, .{ .stage = .offered, .at_us = 0 });
    for (13..20) |step| pair.exchange(step * 100 * ms);
    try testing.expectEqual(.own, pair.a.ownerOf(1900 * ms, asked));
    try testing.expectEqual(PeerTable.Owner{ .claimed = 0 }, pair.b.ownerOf(1900 * ms, asked));
    pair.b.own_claims.onBoot(deviceMac(1), boot_b, .{ .stage = .taken, .at_us = 1 });
    for (20..23) |step| pair.exchange(step * 100 * ms);
    try testing.expectEqual(PeerTable.Owner{ .claimed = 1 }, pair.a.ownerOf(2200 * ms, asked));
    try testing.expectEqual(.own, pair.b.ownerOf(2200 * ms, asked));
}
