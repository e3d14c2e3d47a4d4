//! The fake network of the stream's proof with its clock: it loses, doubles, holds back and cuts as the faults of each link say, lets
//! packets over a size vanish, and delivers the rest at their time. Opaque packets: it knows addresses and sizes.

const std = @import("std");
const base = @import("base");
const Checks = @import("checks.zig");
const Faults = @import("../kit/faults.zig").Faults;
const PacketPool = @import("../kit/packet_pool.zig");
const StreamPcap = @import("pcap.zig");
const TimedQueue = @import("../kit/timed_queue.zig").TimedQueue;
const Trail = @import("../kit/trail.zig");
const Endpoint = base.Endpoint;

pub const StreamNetwork = @This();

pub const links_max = 12;
const queue_capacity = 16 * 1024;
const pool_capacity = 4 * 1024;
const payload_size_max = StreamPcap.payload_size_max;
/// Packets kept for strangers to send again, of any age.
const sniffed_max = 48;
/// Not 0, so that a forgotten time stands out.
pub const start_us = 1_000_000;
pub const edges_max = 4;

pub fn edgeAddress(index: u8) Endpoint {
    return .{ .ip = .init(10, 77, 0, 1 + index), .port = 6910 };
}

/// Of an address of an edge.
pub fn edgeOf(address: Endpoint) u8 {
    return address.ip.bytes[3] - 1;
}

now_us: u64 = start_us,
queue: TimedQueue(Event),
pool: PacketPool,
prng: base.Prng = .init(0),
trail: Trail = .{},
checks: *Checks,
links: [links_max]Link = @splat(.{}),
link_count: u8 = 0,
edge_count: u8 = 1,
/// From all devices.
edge_is_cut: [edges_max]bool = @splat(false),
sniffed: [sniffed_max]Sniffed = undefined,
sniffed_count: u64 = 0,
statistics: Statistics = .{},
/// Null but when a run is looked at closer.
pcap: ?*StreamPcap = null,

pub const Direction = enum(u1) { to_edge, to_device };

pub const Event = union(enum) {
    packet: Packet,
    device_wake: u8,
    /// Something that this edge's disk was to do is done.
    edge_wake: u8,
    edge_second,
    edge_start: u8,
    edge_go_on: u8,
    edge_mend: u8,
    /// A device's network says that nobody listens at this edge.
    refused: struct { link: u8, edge: u8 },
    mischief,
    mend: u8,
};

pub const Packet = struct { slot: u16 = 0, link: u8, edge: u8, direction: Direction, from: Endpoint, to: Endpoint };

pub const Statistics = struct {
    packets: u64 = 0,
    bytes: u64 = 0,
    lost: u64 = 0,
    duplicated: u64 = 0,
    corrupted: u64 = 0,
    too_large: u64 = 0,
    unroutable: u64 = 0,
    replayed: u64 = 0,
    refused: u64 = 0,
};

pub const Link = struct {
    faults: Faults = .{},
    /// The device's, as the edge sees it.
    address: Endpoint = .{ .ip = .zero, .port = 0 },
    is_cut: [2]bool = @splat(false),
    is_cut_from: [edges_max]bool = @splat(false),
    /// Larger ones vanish without a word.
    payload_max: [2]u16 = @splat(payload_size_max),
    /// The same as long as nothing is wrong: what the cards and switches between can.
    path_max: u16 = payload_size_max,
    /// When something was lost last, or a stranger said to the device what may have overtaken what was meant for it.
    lost_at_us: u64 = 0,
    /// The device looks at what has come only every so often; 0: at once.
    slow_us: u64 = 0,
    busy_until_us: [2]u64 = @splat(0),

    /// Packets vanish only where switches and tunnels do not take them.
    pub fn openPath(link: *Link) void {
        link.payload_max = @splat(link.path_max);
    }
};

const Sniffed = struct { packet: Packet, size: u16, bytes: [payload_size_max]u8 };

pub fn init(gpa: std.mem.Allocator, checks: *Checks) error{OutOfMemory}!StreamNetwork {
    var queue: TimedQueue(Event) = try .init(gpa, queue_capacity);
    errdefer queue.deinit(gpa);
    return .{ .queue = queue, .pool = try .init(gpa, pool_capacity, payload_size_max), .checks = checks };
}

pub fn deinit(network: *StreamNetwork, gpa: std.mem.Allocator) void {
    network.queue.deinit(gpa);
    network.pool.deinit(gpa);
    network.* = undefined;
}

/// As new, with the memory that it has.
pub fn restart(network: *StreamNetwork, seed: u64, counts: struct { links: u8, edges: u8 }, pcap: ?*StreamPcap) void {
    network.pool.clear();
    network.* = .{
        .queue = .{ .heap = network.queue.heap },
        .pool = network.pool,
        .prng = .init(seed),
        .checks = network.checks,
        .link_count = counts.links,
        .edge_count = counts.edges,
        .pcap = pcap,
    };
}

pub fn plan(network: *StreamNetwork, at_us: u64, event: Event) void {
    network.queue.push(@max(at_us, network.now_us), event) catch
        network.checks.violate(.queue_bounded, "{d} events are planned", .{network.queue.count});
}

/// The next event, with the clock set to its time.
pub fn next(network: *StreamNetwork) ?Event {
    const planned = network.queue.pop() orelse return null;
    network.now_us = planned.at_us;
    network.trail.note(planned.at_us ^ @as(u64, @backingInt(std.meta.activeTag(planned.event))) << 56);
    return planned.event;
}

pub fn sendToEdge(network: *StreamNetwork, link: u8, edge: u8, bytes: []const u8) void {
    network.send(.{ .link = link, .edge = edge, .direction = .to_edge, .from = network.links[link].address, .to = edgeAddress(edge) }, bytes, 0);
}

/// `after_us` is the time that it took to make the packet.
pub fn sendToDevice(network: *StreamNetwork, edge: u8, to: Endpoint, bytes: []const u8, after_us: u64) void {
    const from = edgeAddress(edge);
    const link = network.linkOf(to) orelse {
        network.statistics.packets += 1;
        network.statistics.unroutable += 1;
        network.record(from, to, bytes, true);
        return;
    };
    network.send(.{ .link = link, .edge = edge, .direction = .to_device, .from = from, .to = to }, bytes, after_us);
}

/// The machine of an edge whose process has ended says so to whoever sends there, as far as the network lets it.
pub fn refuse(network: *StreamNetwork, packet: *const Packet) void {
    const size_of_icmp = 56;
    const at_us = network.travel(packet.link, packet.edge, .to_device, size_of_icmp) orelse return;
    network.statistics.refused += 1;
    network.plan(at_us, .{ .refused = .{ .link = packet.link, .edge = packet.edge } });
}

pub fn linkOf(network: *const StreamNetwork, address: Endpoint) ?u8 {
    for (network.links[0..network.link_count], 0..) |*link, index| if (link.address.eql(address)) return @intCast(index);
    return null;
}

/// Past all faults.
fn deliver(network: *StreamNetwork, packet: Packet, bytes: []const u8, at_us: u64) void {
    var planned = packet;
    planned.slot = network.pool.take(bytes) catch return network.countLost(packet.link);
    network.queue.push(at_us, .{ .packet = planned }) catch {
        network.pool.giveBack(planned.slot);
        network.countLost(packet.link);
    };
}

fn countLost(network: *StreamNetwork, link: u8) void {
    network.links[link].lost_at_us = network.now_us;
    network.statistics.lost += 1;
}

fn record(network: *StreamNetwork, from: Endpoint, to: Endpoint, bytes: []const u8, is_lost: bool) void {
    if (network.pcap) |pcap| pcap.note(network.now_us, from, to, bytes, is_lost);
}

fn send(network: *StreamNetwork, packet: Packet, bytes: []const u8, after_us: u64) void {
    network.statistics.packets += 1;
    network.statistics.bytes += bytes.len;
    const arrives_us = network.travel(packet.link, packet.edge, packet.direction, bytes.len);
    network.record(packet.from, packet.to, bytes, arrives_us == null);
    network.sniff(packet, bytes);
    const at_us = arrives_us orelse return network.countLost(packet.link);
    network.deliver(packet, bytes, network.onTurn(packet, at_us + after_us));
    const faults = &network.links[packet.link].faults;
    if (!network.happens(faults.duplicate_per_mille)) return;
    network.statistics.duplicated += 1;
    network.deliver(packet, bytes, network.onTurn(packet, at_us + after_us + network.prng.below(faults.hold_us + 1)));
}

/// When a packet arrives that is sent now; null: never.
fn travel(network: *StreamNetwork, link_index: u8, edge: u8, direction: Direction, size: usize) ?u64 {
    const link = &network.links[link_index];
    const faults = &link.faults;
    if (link.is_cut[@backingInt(direction)] or link.is_cut_from[edge] or network.edge_is_cut[edge]) return null;
    if (size > link.payload_max[@backingInt(direction)]) {
        network.statistics.too_large += 1;
        return null;
    }
    if (network.happens(faults.loss_per_mille)) return null;
    const busy = &link.busy_until_us[@backingInt(direction)];
    const leaves_us = @max(network.now_us, busy.*);
    if (leaves_us - network.now_us > faults.queue_us_max) return null;
    // 28 bytes of IP and UDP, 38 of Ethernet with its gap.
    busy.* = leaves_us + (size + 66) * 8 / faults.bits_per_us;
    var at_us = busy.* + faults.delay_us;
    if (faults.jitter_us > 0) at_us += network.prng.below(faults.jitter_us);
    if (network.happens(faults.reorder_per_mille)) at_us += network.prng.below(faults.hold_us + 1);
    return at_us;
}

fn happens(network: *StreamNetwork, per_mille: u32) bool {
    return per_mille > 0 and network.prng.below(1000) < per_mille;
}

fn onTurn(network: *const StreamNetwork, packet: Packet, at_us: u64) u64 {
    const slow_us = network.links[packet.link].slow_us;
    if (packet.direction == .to_edge or slow_us == 0) return at_us;
    return std.mem.alignForwardAnyAlign(u64, at_us, slow_us);
}

/// True: a bit of what has just arrived is to be flipped, or, where the receiver's UDP checksum is all that protects it, it is dropped.
pub fn corrupts(network: *StreamNetwork, packet: *const Packet) bool {
    const is_corrupted = network.happens(network.links[packet.link].faults.corrupt_per_mille);
    if (is_corrupted) network.statistics.corrupted += 1;
    return is_corrupted;
}

fn sniff(network: *StreamNetwork, packet: Packet, bytes: []const u8) void {
    const number = network.sniffed_count;
    network.sniffed_count += 1;
    if (number >= sniffed_max and number % 16 != 0) return;
    const place = if (number < sniffed_max) number else network.prng.below(sniffed_max);
    const sniffed = &network.sniffed[@intCast(place)];
    sniffed.packet = packet;
    sniffed.size = @intCast(bytes.len);
    @memcpy(sniffed.bytes[0..bytes.len], bytes);
}

/// A stranger sends what was once on the wire, from the address that it came from or from `own`.
pub fn replay(network: *StreamNetwork, own: Endpoint) void {
    if (network.sniffed_count == 0) return;
    const sniffed = &network.sniffed[@intCast(network.prng.below(@min(network.sniffed_count, sniffed_max)))];
    var packet = sniffed.packet;
    if (network.prng.chance(1, 3)) {
        if (packet.direction == .to_edge) packet.from = own else packet.link = @intCast(network.prng.below(network.link_count));
    }
    if (packet.direction == .to_device) {
        packet.to = network.links[packet.link].address;
        network.links[packet.link].lost_at_us = network.now_us;
    }
    // What was said to one edge is said to another, and what one has said as if another said it.
    if (network.prng.chance(1, 4)) {
        packet.edge = @intCast(network.prng.below(network.edge_count));
        const address = edgeAddress(packet.edge);
        if (packet.direction == .to_device) packet.from = address else packet.to = address;
    }
    network.statistics.replayed += 1;
    const bytes = sniffed.bytes[0..sniffed.size];
    network.record(packet.from, packet.to, bytes, false);
    network.deliver(packet, bytes, network.now_us + network.prng.below(2000));
}

/// A stranger sends something of his own to an edge, from whatever address he likes.
pub fn spoof(network: *StreamNetwork, from: Endpoint, edge: u8, bytes: []const u8) void {
    const to = edgeAddress(edge);
    network.statistics.replayed += 1;
    network.record(from, to, bytes, false);
    const packet: Packet = .{ .link = 0, .edge = edge, .direction = .to_edge, .from = from, .to = to };
    network.deliver(packet, bytes, network.now_us + network.prng.below(2000));
}
