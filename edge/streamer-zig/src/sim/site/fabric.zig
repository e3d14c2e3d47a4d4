//! The fake network with its clock: every node sends and plans through it. It loses, doubles, holds
//! back and drops packets as the faults of each link say, and delivers the rest at their time. One
//! link for each device, one for an attacker, and one for each edge to the others. It must never
//! change a byte that it delivers.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const EventQueue = @import("event_queue.zig");
const PacketPool = @import("../kit/packet_pool.zig");
const Trail = @import("../kit/trail.zig");
const Ledger = @import("ledger.zig");
const Faults = @import("../kit/faults.zig").Faults;
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const Link = EventQueue.Link;
const Direction = EventQueue.Direction;

pub const Fabric = @This();

pub const links_max = 64;
const queue_capacity = 32 * 1024;
const pool_capacity = 16 * 1024;
/// Packets kept for the attacker, who replays them.
const sniffed_max = 16;

now_us: u64 = start_us,
queue: EventQueue.Queue,
pool: PacketPool,
prng: base.Prng,
trail: *Trail,
ledger: *Ledger,
link_count: u8,
/// The last links are those between the edges, one for each sender.
edge_count: u8 = 0,
links: [links_max]LinkState,
/// Until when the edge's own link is busy.
busy_until_us: [2]u64 = @splat(0),
statistics: Statistics = .{},
sniffed: [2]Sniffed = @splat(.{}),

/// Not 0, so that a forgotten time stands out.
pub const start_us = 1_000_000;

pub const Statistics = struct {
    packets: u64 = 0,
    lost: u64 = 0,
    duplicated: u64 = 0,
    corrupted: u64 = 0,
    /// For an address that nobody has.
    unroutable: u64 = 0,
};

const LinkState = struct {
    faults: Faults = .{},
    /// The device's address; null while it has none.
    ip: ?base.Ip4 = null,
    is_cut: bool = false,
};

/// The last packets of one direction, as somebody on the wire could see them.
pub const Sniffed = struct {
    packets: [sniffed_max]Packet = undefined,
    count: u64 = 0,

    pub const Packet = struct { link: Link, from: Endpoint, to: Endpoint, size: u16, bytes: [PacketPool.payload_size_max]u8 };

    pub fn pick(sniffed: *const Sniffed, prng: *base.Prng) ?*const Packet {
        const kept = @min(sniffed.count, sniffed_max);
        if (kept == 0) return null;
        return &sniffed.packets[@intCast(prng.below(kept))];
    }
};

pub fn init(gpa: std.mem.Allocator, link_count: u8, seed: u64, trail: *Trail, ledger: *Ledger) error{OutOfMemory}!Fabric {
    assert(link_count <= links_max);
    var queue: EventQueue.Queue = try .init(gpa, queue_capacity);
    errdefer queue.deinit(gpa);
    return .{
        .queue = queue,
        .pool = try .init(gpa, pool_capacity, PacketPool.payload_size_max),
        .prng = .init(seed),
        .trail = trail,
        .ledger = ledger,
        .link_count = link_count,
        .links = @splat(.{}),
    };
}

pub fn deinit(fabric: *Fabric, gpa: std.mem.Allocator) void {
    fabric.queue.deinit(gpa);
    fabric.pool.deinit(gpa);
    fabric.* = undefined;
}

pub fn plan(fabric: *Fabric, at_us: u64, event: EventQueue.Event) void {
    fabric.queue.push(at_us, event) catch fabric.ledger.violate(.queue_bounded, "{d} events are planned", .{fabric.queue.count});
}

/// The next event, with the clock set to its time; null when nothing will happen any more.
pub fn next(fabric: *Fabric) ?EventQueue.Event {
    const planned = fabric.queue.pop() orelse return null;
    if (planned.at_us < fabric.now_us)
        fabric.ledger.violate(.time_forward, "an event at {d} us comes at {d} us", .{ planned.at_us, fabric.now_us });
    fabric.now_us = planned.at_us;
    fabric.trail.note(planned.at_us);
    fabric.trail.note(@backingInt(std.meta.activeTag(planned.event)));
    return planned.event;
}

pub fn sendToEdge(fabric: *Fabric, link: Link, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    fabric.send(link, .to_edge, from, to, bytes, 0);
}

/// From one edge to another, over the sender's link.
pub fn sendToPeer(fabric: *Fabric, edge: u8, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    const first = fabric.link_count - fabric.edge_count;
    fabric.sendToEdge(first + edge, from, to, bytes);
}

/// From the edge; `after_us` is the time it took to make the packet.
pub fn sendToDevices(fabric: *Fabric, from: Endpoint, to: Endpoint, bytes: []const u8, after_us: u64) void {
    if (to.ip.eql(.broadcast)) {
        for (0..fabric.link_count) |link| fabric.send(@intCast(link), .to_device, from, to, bytes, after_us);
        return;
    }
    const link = fabric.linkOf(to.ip) orelse {
        fabric.statistics.packets += 1;
        fabric.statistics.unroutable += 1;
        return;
    };
    fabric.send(link, .to_device, from, to, bytes, after_us);
}

pub fn linkOf(fabric: *const Fabric, ip: base.Ip4) ?Link {
    for (fabric.links[0..fabric.link_count], 0..) |*state, link| {
        const known = state.ip orelse continue;
        if (known.eql(ip)) return @intCast(link);
    }
    return null;
}

/// Delivered as it is, past all faults: what a switch puts out at the wrong port.
pub fn deliver(fabric: *Fabric, arrival: EventQueue.Arrival, bytes: []const u8, after_us: u64) void {
    var planned = arrival;
    planned.slot = fabric.pool.take(bytes) catch return fabric.countLost();
    fabric.queue.push(fabric.now_us + after_us, .{ .arrival = planned }) catch {
        fabric.pool.giveBack(planned.slot);
        fabric.countLost();
    };
}

fn countLost(fabric: *Fabric) void {
    fabric.statistics.lost += 1;
}

fn send(fabric: *Fabric, link: Link, direction: Direction, from: Endpoint, to: Endpoint, bytes: []const u8, after_us: u64) void {
    fabric.statistics.packets += 1;
    if (bytes.len > PacketPool.payload_size_max)
        return fabric.ledger.violate(.mtu_respected, "{d} bytes to {f} do not fit the MTU", .{ bytes.len, to });
    fabric.sniff(link, direction, from, to, bytes);
    const state = &fabric.links[link];
    const faults = &state.faults;
    const prng = &fabric.prng;
    if (state.is_cut or prng.chance(faults.loss_per_mille, 1000)) return fabric.countLost();
    if (prng.chance(faults.corrupt_per_mille, 1000)) {
        fabric.statistics.corrupted += 1;
        return fabric.countLost();
    }
    const busy = &fabric.busy_until_us[@backingInt(direction)];
    const leaves_us = @max(fabric.now_us, busy.*);
    if (leaves_us - fabric.now_us > faults.queue_us_max) return fabric.countLost();
    // 28 bytes of IP and UDP, 38 of Ethernet with its gap.
    busy.* = leaves_us + (bytes.len + 66) * 8 / faults.bits_per_us;
    const is_doubled = prng.chance(faults.duplicate_per_mille, 1000);
    for (0..if (is_doubled) 2 else 1) |_| {
        var travel_us = faults.delay_us + prng.below(faults.jitter_us + 1);
        if (prng.chance(faults.reorder_per_mille, 1000)) travel_us += prng.below(faults.hold_us + 1);
        const arrival: EventQueue.Arrival = .{ .slot = 0, .link = link, .direction = direction, .from = from, .to = to };
        fabric.deliver(arrival, bytes, busy.* - fabric.now_us + after_us + travel_us);
    }
    if (is_doubled) fabric.statistics.duplicated += 1;
    if (direction == .to_device and from.port == stream.port_default and prng.chance(faults.stray_per_mille, 1000))
        fabric.deliver(.{
            .slot = 0,
            .link = @intCast((link + prng.between(1, fabric.link_count - 1)) % fabric.link_count),
            .direction = direction,
            .from = from,
            .to = to,
        }, bytes, busy.* - fabric.now_us + faults.delay_us);
}

fn sniff(fabric: *Fabric, link: Link, direction: Direction, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    const sniffed = &fabric.sniffed[@backingInt(direction)];
    const packet = &sniffed.packets[@intCast(sniffed.count % sniffed_max)];
    sniffed.count += 1;
    packet.* = .{ .link = link, .from = from, .to = to, .size = @intCast(bytes.len), .bytes = undefined };
    @memcpy(packet.bytes[0..bytes.len], bytes);
}

const testing = std.testing;
const test_edge: Endpoint = .{ .ip = .init(10, 77, 0, 1), .port = 6910 };
const test_device: Endpoint = .{ .ip = .init(10, 77, 1, 1), .port = 40000 };

fn testFabric(trail: *Trail, ledger: *Ledger, faults: Faults) !Fabric {
    var fabric: Fabric = try .init(testing.allocator, 2, 7, trail, ledger);
    fabric.links[0] = .{ .faults = faults, .ip = test_device.ip };
    return fabric;
}

test "about as many packets are lost and doubled as asked for" {
    var trail: Trail = .{};
    var ledger: Ledger = .{};
    var fabric = try testFabric(&trail, &ledger, .{ .loss_per_mille = 200, .duplicate_per_mille = 100, .bits_per_us = 100_000 });
    defer fabric.deinit(testing.allocator);
    var arrived: u32 = 0;
    for (0..10_000) |_| {
        fabric.sendToDevices(test_edge, test_device, "packet", 0);
        while (fabric.next()) |event| {
            fabric.pool.giveBack(event.arrival.slot);
            arrived += 1;
        }
    }
    // 10,000 * 0.8 * 1.1
    try testing.expect(arrived > 8_600 and arrived < 9_000);
    try testing.expect(fabric.statistics.lost > 1_850 and fabric.statistics.lost < 2_150);
}

test "a cut link and an unknown address get nothing, a broadcast reaches everyone else" {
    var trail: Trail = .{};
    var ledger: Ledger = .{};
    var fabric = try testFabric(&trail, &ledger, .{});
    defer fabric.deinit(testing.allocator);
    fabric.links[0].is_cut = true;
    fabric.sendToDevices(test_edge, test_device, "x", 0);
    fabric.sendToDevices(test_edge, .{ .ip = .init(10, 9, 9, 9), .port = 1 }, "x", 0);
    try testing.expectEqual(null, fabric.next());
    fabric.sendToDevices(test_edge, .{ .ip = .broadcast, .port = 68 }, "x", 0);
    try testing.expectEqual(1, fabric.next().?.arrival.link);
    try testing.expectEqual(null, fabric.next());
}

test "a link carries no more bits than it has" {
    var trail: Trail = .{};
    var ledger: Ledger = .{};
    var fabric = try testFabric(&trail, &ledger, .{ .bits_per_us = 100, .queue_us_max = 1_000_000 });
    defer fabric.deinit(testing.allocator);
    const packet: [1434]u8 = @splat(7);
    for (0..100) |_| fabric.sendToDevices(test_edge, test_device, &packet, 0);
    while (fabric.next()) |_| {}
    // 100 packets of 1500 bytes at 100 Mb/s take 12 ms.
    try testing.expectEqual(start_us + 100 * 120 + 100, fabric.now_us);
}
