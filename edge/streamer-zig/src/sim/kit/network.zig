//! The simulated network with its clock: a link for each device, a port for each edge. It loses,
//! duplicates, delays and drops packets as the faults of each link say, and delivers the rest at
//! their time. Producers: simulated devices, edges and attackers; consumer: the simulation's loop,
//! through `next`. Invariant: packets are opaque, and every delivered byte is as it was sent.

const std = @import("std");
const base = @import("base");
const Faults = @import("faults.zig").Faults;
const PacketPool = @import("packet_pool.zig");
const Pcap = @import("pcap.zig");
const TimedQueue = @import("timed_queue.zig").TimedQueue;
const TraceHash = @import("trace_hash.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

/// Not 0, so that a forgotten time stands out.
pub const start_us = 1_000_000;
/// IP and UDP take 28 bytes, Ethernet with its gap 38.
const frame_overhead = 66;

pub const Direction = enum(u2) { to_edge, to_device, between_edges };

pub const Packet = struct {
    /// Slot of the pool.
    slot: u16 = 0,
    /// Link of the device; the sending edge if the packet goes between edges.
    link: u8,
    edge: u8,
    direction: Direction,
    from: Endpoint,
    to: Endpoint,
};

pub const Statistics = struct {
    packets: u64 = 0,
    bytes: u64 = 0,
    lost: u64 = 0,
    duplicated: u64 = 0,
    corrupted: u64 = 0,
    too_large: u64 = 0,
    /// Sent to an address that nobody has.
    unroutable: u64 = 0,
    replayed: u64 = 0,
    refused: u64 = 0,
};

pub const Limits = struct {
    links: u8,
    edges: u8 = 1,
    /// UDP payload of the largest packet, in bytes.
    payload_size: u16,
    /// Planned events.
    events: u32,
    /// Packets in flight.
    packets: u16,
    /// Packets that are kept for attackers, by direction.
    sniffed: u8,
};

pub const Options = struct {
    seed: u64,
    links: u8,
    edges: u8 = 1,
    /// All devices of an edge share the rate of its port.
    has_shared_port: bool = false,
    /// Strays are packets that devices get from this port of an edge; null: from any.
    stray_port: ?u16 = null,
    /// Null except when a run is recorded.
    pcap: ?*Pcap = null,
};

pub fn edgeIp(index: u8) base.Ip4 {
    return .init(10, 77, 0, 1 + index);
}

/// `Event` is a union with `packet: Packet`; `Invariants` has `violate` and the checks
/// `queue_bounded` and `time_forward`.
pub fn Network(comptime Event: type, comptime Invariants: type, comptime limits: Limits) type {
    return struct {
        const Self = @This();

        pub const links_max = limits.links;
        pub const edges_max = limits.edges;

        now_us: u64 = start_us,
        queue: TimedQueue(Event),
        pool: PacketPool,
        prng: base.Prng = .init(0),
        trace: TraceHash = .{},
        invariants: *Invariants,
        links: [limits.links]Link = @splat(.{}),
        link_count: u8 = 0,
        edge_count: u8 = 1,
        /// From all devices and edges.
        edge_is_cut: [limits.edges]bool = @splat(false),
        /// From the other edges.
        edge_is_isolated: [limits.edges]bool = @splat(false),
        /// Faults of packets between edges.
        backbone: Faults = .{},
        has_shared_port: bool = false,
        stray_port: ?u16 = null,
        port_busy_until_us: [limits.edges][3]u64 = @splat(@splat(0)),
        sniffed: [3]Sniffed = @splat(.{}),
        statistics: Statistics = .{},
        pcap: ?*Pcap = null,

        pub const Link = struct {
            faults: Faults = .{},
            /// Address of the device, as edges see it; port 0 stands for all its ports.
            address: Endpoint = .{ .ip = .zero, .port = 0 },
            is_cut: [2]bool = @splat(false),
            is_cut_from: [limits.edges]bool = @splat(false),
            /// Larger packets vanish without notice.
            payload_max: [2]u16 = @splat(limits.payload_size),
            /// The same while no fault narrows it: what the devices on the path forward.
            path_max: u16 = limits.payload_size,
            /// When a packet was lost last, or an attacker's packet may have overtaken one.
            lost_at_us: u64 = 0,
            /// The device processes its packets only every so often; 0: at once.
            slow_us: u64 = 0,
            busy_until_us: [2]u64 = @splat(0),

            /// Returns the address of the device; null while it has none.
            pub fn ip(link: *const Link) ?base.Ip4 {
                return if (link.address.ip.eql(.zero)) null else link.address.ip;
            }

            pub fn setIp(link: *Link, given: ?base.Ip4) void {
                link.address = .{ .ip = given orelse .zero, .port = 0 };
            }

            /// Packets vanish only where the path does not forward them.
            pub fn openPath(link: *Link) void {
                link.payload_max = @splat(link.path_max);
            }

            /// Ends all faults except the packet sizes that the path forwards.
            pub fn heal(link: *Link, now_us: u64) void {
                link.* = .{
                    .faults = link.faults.healed(),
                    .address = link.address,
                    .path_max = link.path_max,
                    .lost_at_us = now_us,
                };
                link.openPath();
            }
        };

        /// Packets of one direction as somebody on the wire could see them, of any age.
        pub const Sniffed = struct {
            packets: [limits.sniffed]Copy = undefined,
            count: u64 = 0,

            pub const Copy = struct {
                packet: Packet,
                size: u16,
                bytes: [limits.payload_size]u8,

                pub fn slice(copy: *const Copy) []const u8 {
                    return copy.bytes[0..copy.size];
                }
            };

            pub fn pick(sniffed: *const Sniffed, prng: *base.Prng) ?*const Copy {
                const kept = @min(sniffed.count, limits.sniffed);
                return if (kept == 0) null else &sniffed.packets[@intCast(prng.below(kept))];
            }
        };

        pub fn init(
            gpa: std.mem.Allocator,
            invariants: *Invariants,
        ) error{OutOfMemory}!Self {
            var queue: TimedQueue(Event) = try .init(gpa, limits.events);
            errdefer queue.deinit(gpa);
            return .{
                .queue = queue,
                .pool = try .init(gpa, limits.packets, limits.payload_size),
                .invariants = invariants,
            };
        }

        pub fn deinit(network: *Self, gpa: std.mem.Allocator) void {
            network.queue.deinit(gpa);
            network.pool.deinit(gpa);
            network.* = undefined;
        }

        /// Starts over, and keeps the memory.
        pub fn restart(network: *Self, options: Options) void {
            assert(options.links <= limits.links);
            assert(options.edges > 0 and options.edges <= limits.edges);
            network.pool.clear();
            network.* = .{
                .queue = .{ .heap = network.queue.heap },
                .pool = network.pool,
                .prng = .init(options.seed),
                .invariants = network.invariants,
                .link_count = options.links,
                .edge_count = options.edges,
                .has_shared_port = options.has_shared_port,
                .stray_port = options.stray_port,
                .pcap = options.pcap,
            };
        }

        pub fn plan(network: *Self, at_us: u64, event: Event) void {
            network.queue.push(at_us, event) catch
                network.invariants.violate(
                    .queue_bounded,
                    "{d} events are planned",
                    .{network.queue.count},
                );
        }

        /// Returns the next event and sets the clock to its time; null: nothing is planned.
        pub fn next(network: *Self) ?Event {
            const planned = network.queue.pop() orelse return null;
            if (planned.at_us < network.now_us) network.invariants.violate(
                .time_forward,
                "an event at {d} us comes at {d} us",
                .{ planned.at_us, network.now_us },
            );
            network.now_us = planned.at_us;
            const tag: u64 = @backingInt(std.meta.activeTag(planned.event));
            network.trace.note(planned.at_us ^ tag << 56);
            return planned.event;
        }

        /// Sends a packet of a device; to every edge if it is a broadcast.
        pub fn sendToEdge(
            network: *Self,
            link: u8,
            from: Endpoint,
            to: Endpoint,
            bytes: []const u8,
        ) void {
            var packet: Packet =
                .{ .link = link, .edge = 0, .direction = .to_edge, .from = from, .to = to };
            if (!to.ip.eql(.broadcast)) {
                packet.edge = network.edgeOf(to.ip) orelse
                    return network.countUnroutable(from, to, bytes);
                return network.send(packet, bytes, 0);
            }
            for (0..network.edge_count) |edge| {
                packet.edge = @intCast(edge);
                network.send(packet, bytes, 0);
            }
        }

        /// Sends a packet of an edge, `after_us` from now; to every device if it is a broadcast.
        pub fn sendToDevice(
            network: *Self,
            from: Endpoint,
            to: Endpoint,
            bytes: []const u8,
            after_us: u64,
        ) void {
            var packet: Packet = .{
                .link = 0,
                .edge = network.edgeOf(from.ip).?,
                .direction = .to_device,
                .from = from,
                .to = to,
            };
            if (!to.ip.eql(.broadcast)) {
                packet.link = network.linkOf(to) orelse
                    return network.countUnroutable(from, to, bytes);
                return network.send(packet, bytes, after_us);
            }
            for (0..network.link_count) |link| {
                packet.link = @intCast(link);
                network.send(packet, bytes, after_us);
            }
        }

        pub fn sendBetweenEdges(
            network: *Self,
            from: Endpoint,
            to: Endpoint,
            bytes: []const u8,
        ) void {
            const edge = network.edgeOf(to.ip) orelse
                return network.countUnroutable(from, to, bytes);
            network.send(.{
                .link = network.edgeOf(from.ip).?,
                .edge = edge,
                .direction = .between_edges,
                .from = from,
                .to = to,
            }, bytes, 0);
        }

        pub fn edgeOf(network: *const Self, ip: base.Ip4) ?u8 {
            for (0..network.edge_count) |index|
                if (edgeIp(@intCast(index)).eql(ip)) return @intCast(index);
            return null;
        }

        pub fn linkOf(network: *const Self, address: Endpoint) ?u8 {
            for (network.links[0..network.link_count], 0..) |*link, index| {
                if (link.address.ip.eql(.zero) or !link.address.ip.eql(address.ip)) continue;
                if (link.address.port == 0 or link.address.port == address.port)
                    return @intCast(index);
            }
            return null;
        }

        /// Reports a closed port (ICMP) to the sender, if the network lets the report pass.
        /// `refused` is the event that delivers it.
        pub fn refuse(network: *Self, packet: *const Packet, refused: Event) void {
            const icmp_size = 56;
            var answer = packet.*;
            answer.direction = .to_device;
            const at_us = network.travel(&answer, icmp_size) orelse return;
            network.statistics.refused += 1;
            network.plan(at_us, refused);
        }

        /// Delivers a packet past all faults, as a switch does that has forgotten a port.
        pub fn deliver(network: *Self, packet: Packet, bytes: []const u8, at_us: u64) void {
            var planned = packet;
            planned.slot = network.pool.take(bytes) catch return network.countLost(&packet);
            network.queue.push(at_us, .{ .packet = planned }) catch {
                network.pool.giveBack(planned.slot);
                network.countLost(&packet);
            };
        }

        fn countLost(network: *Self, packet: *const Packet) void {
            network.statistics.lost += 1;
            if (packet.direction == .between_edges) return;
            network.links[packet.link].lost_at_us = network.now_us;
        }

        fn countUnroutable(network: *Self, from: Endpoint, to: Endpoint, bytes: []const u8) void {
            network.statistics.packets += 1;
            network.statistics.unroutable += 1;
            network.record(from, to, bytes, true);
        }

        fn record(
            network: *Self,
            from: Endpoint,
            to: Endpoint,
            bytes: []const u8,
            is_lost: bool,
        ) void {
            if (network.pcap) |pcap| pcap.note(network.now_us, from, to, bytes, is_lost);
        }

        fn send(network: *Self, packet: Packet, bytes: []const u8, after_us: u64) void {
            network.statistics.packets += 1;
            network.statistics.bytes += bytes.len;
            const arrives_us = network.travel(&packet, bytes.len);
            network.record(packet.from, packet.to, bytes, arrives_us == null);
            network.sniff(packet, bytes);
            const at_us = (arrives_us orelse return network.countLost(&packet)) + after_us;
            network.deliver(packet, bytes, network.processedAt(&packet, at_us));
            const faults = network.faultsOf(&packet);
            if (network.happens(faults.duplicate_per_mille)) {
                network.statistics.duplicated += 1;
                const again_us = at_us + network.prng.below(faults.hold_us + 1);
                network.deliver(packet, bytes, network.processedAt(&packet, again_us));
            }
            if (packet.direction != .to_device or packet.to.ip.eql(.broadcast)) return;
            if (network.stray_port) |port| if (packet.from.port != port) return;
            if (network.link_count < 2 or !network.happens(faults.stray_per_mille)) return;
            var stray = packet;
            const step = network.prng.between(1, network.link_count - 1);
            stray.link = @intCast((packet.link + step) % network.link_count);
            network.deliver(stray, bytes, at_us);
        }

        fn faultsOf(network: *const Self, packet: *const Packet) *const Faults {
            if (packet.direction == .between_edges) return &network.backbone;
            return &network.links[packet.link].faults;
        }

        fn isCut(network: *const Self, packet: *const Packet) bool {
            if (network.edge_is_cut[packet.edge]) return true;
            if (packet.direction == .between_edges)
                return network.edge_is_cut[packet.link] or network.edge_is_isolated[packet.link];
            const link = &network.links[packet.link];
            return link.is_cut[@backingInt(packet.direction)] or link.is_cut_from[packet.edge];
        }

        /// Returns when a packet arrives that is sent now; null: it is lost.
        fn travel(network: *Self, packet: *const Packet, size: usize) ?u64 {
            const direction = @backingInt(packet.direction);
            const is_of_device = packet.direction != .between_edges;
            const faults = network.faultsOf(packet);
            if (network.isCut(packet)) return null;
            const size_max = if (is_of_device)
                network.links[packet.link].payload_max[direction]
            else
                limits.payload_size;
            if (size > size_max) {
                network.statistics.too_large += 1;
                return null;
            }
            if (network.happens(faults.loss_per_mille)) return null;
            const busy = if (is_of_device and !network.has_shared_port)
                &network.links[packet.link].busy_until_us[direction]
            else
                &network.port_busy_until_us[packet.edge][direction];
            const leaves_us = @max(network.now_us, busy.*);
            if (leaves_us - network.now_us > faults.queue_us_max) return null;
            busy.* = leaves_us + (size + frame_overhead) * 8 / faults.bits_per_us;
            var at_us = busy.* + faults.delay_us;
            if (faults.jitter_us > 0) at_us += network.prng.below(faults.jitter_us);
            if (network.happens(faults.reorder_per_mille))
                at_us += network.prng.below(faults.hold_us + 1);
            return at_us;
        }

        fn happens(network: *Self, per_mille: u32) bool {
            return per_mille > 0 and network.prng.below(1000) < per_mille;
        }

        fn processedAt(network: *const Self, packet: *const Packet, at_us: u64) u64 {
            if (packet.direction != .to_device) return at_us;
            const slow_us = network.links[packet.link].slow_us;
            return if (slow_us == 0) at_us else std.mem.alignForwardAnyAlign(u64, at_us, slow_us);
        }

        /// Returns whether this packet arrives corrupted. The caller flips a bit, or drops the
        /// packet where only the receiver's UDP checksum protects it.
        pub fn corrupts(network: *Self, packet: *const Packet) bool {
            const is_corrupted = network.happens(network.faultsOf(packet).corrupt_per_mille);
            if (is_corrupted) network.statistics.corrupted += 1;
            return is_corrupted;
        }

        fn sniff(network: *Self, packet: Packet, bytes: []const u8) void {
            const sniffed = &network.sniffed[@backingInt(packet.direction)];
            const number = sniffed.count;
            sniffed.count += 1;
            if (number >= limits.sniffed and number % 16 != 0) return;
            const slot = if (number < limits.sniffed)
                number
            else
                network.prng.below(limits.sniffed);
            const copy = &sniffed.packets[@intCast(slot)];
            copy.packet = packet;
            copy.size = @intCast(bytes.len);
            @memcpy(copy.bytes[0..bytes.len], bytes);
        }

        /// An attacker sends a packet that was once on the wire, from its address or from `own`.
        pub fn replay(network: *Self, own: Endpoint) void {
            const direction = network.prng.below(2);
            const copy = network.sniffed[@intCast(direction)].pick(&network.prng) orelse return;
            var packet = copy.packet;
            if (network.prng.chance(1, 3)) {
                if (packet.direction == .to_edge)
                    packet.from = own
                else
                    packet.link = @intCast(network.prng.below(network.link_count));
            }
            if (packet.direction == .to_device) {
                packet.to = network.links[packet.link].address;
                network.links[packet.link].lost_at_us = network.now_us;
            }
            // A packet for one edge goes to another, or comes as if from another.
            if (network.prng.chance(1, 4)) {
                packet.edge = @intCast(network.prng.below(network.edge_count));
                const end = if (packet.direction == .to_device) &packet.from else &packet.to;
                end.ip = edgeIp(packet.edge);
            }
            network.inject(packet, copy.slice());
        }

        /// An attacker sends a packet of its own, from any address.
        pub fn inject(network: *Self, packet: Packet, bytes: []const u8) void {
            network.statistics.replayed += 1;
            network.record(packet.from, packet.to, bytes, false);
            network.deliver(packet, bytes, network.now_us + network.prng.below(2000));
        }
    };
}

const testing = std.testing;
const TestEvent = union(enum) { packet: Packet };
const TestInvariants = struct {
    fn violate(
        _: *TestInvariants,
        _: enum { queue_bounded, time_forward },
        comptime _: []const u8,
        _: anytype,
    ) void {
        unreachable;
    }
};
const TestNetwork = Network(TestEvent, TestInvariants, .{
    .links = 2,
    .edges = 2,
    .payload_size = 1472,
    .events = 1024,
    .packets = 1024,
    .sniffed = 4,
});
const test_edge: Endpoint = .{ .ip = edgeIp(0), .port = 6910 };
const test_device: Endpoint = .{ .ip = .init(10, 77, 1, 1), .port = 40000 };
var test_invariants: TestInvariants = .{};

fn testNetwork(faults: Faults, has_shared_port: bool) !TestNetwork {
    var network: TestNetwork = try .init(testing.allocator, &test_invariants);
    network.restart(.{ .seed = 7, .links = 2, .edges = 2, .has_shared_port = has_shared_port });
    network.links[0] = .{ .faults = faults, .address = .{ .ip = test_device.ip, .port = 0 } };
    network.backbone = faults;
    return network;
}

test "about as many packets are lost and duplicated as the faults say" {
    var network = try testNetwork(.{
        .loss_per_mille = 200,
        .duplicate_per_mille = 100,
        .bits_per_us = 100_000,
    }, false);
    defer network.deinit(testing.allocator);
    var arrived: u32 = 0;
    for (0..10_000) |_| {
        network.sendToDevice(test_edge, test_device, "packet", 0);
        while (network.next()) |event| {
            network.pool.giveBack(event.packet.slot);
            arrived += 1;
        }
    }
    // 10,000 * 0.8 * 1.1
    try testing.expect(arrived > 8_600 and arrived < 9_000);
    try testing.expect(network.statistics.lost > 1_850 and network.statistics.lost < 2_150);
}

test "a cut link and an unknown address get nothing, a broadcast reaches everyone else" {
    var network = try testNetwork(.{}, false);
    defer network.deinit(testing.allocator);
    network.links[0].is_cut = @splat(true);
    network.sendToDevice(test_edge, test_device, "x", 0);
    network.sendToDevice(test_edge, .{ .ip = .init(10, 9, 9, 9), .port = 1 }, "x", 0);
    network.sendToEdge(0, test_device, test_edge, "x");
    try testing.expectEqual(null, network.next());
    network.sendToDevice(test_edge, .{ .ip = .broadcast, .port = 68 }, "x", 0);
    try testing.expectEqual(1, network.next().?.packet.link);
    try testing.expectEqual(null, network.next());
    network.sendToEdge(1, .{ .ip = .zero, .port = 68 }, .{ .ip = .broadcast, .port = 67 }, "x");
    try testing.expectEqual(0, network.next().?.packet.edge);
    try testing.expectEqual(1, network.next().?.packet.edge);
    network.edge_is_cut[1] = true;
    const other: Endpoint = .{ .ip = edgeIp(1), .port = 6911 };
    network.sendBetweenEdges(test_edge, other, "x");
    try testing.expectEqual(null, network.next());
}

test "a link carries no more bits than its rate" {
    for ([_]bool{ false, true }) |has_shared_port| {
        var network = try testNetwork(
            .{ .bits_per_us = 100, .queue_us_max = 1_000_000 },
            has_shared_port,
        );
        defer network.deinit(testing.allocator);
        const packet: [1434]u8 = @splat(7);
        for (0..100) |_| network.sendToDevice(test_edge, test_device, &packet, 0);
        while (network.next()) |_| {}
        // 100 packets of 1500 bytes at 100 Mb/s take 12 ms.
        try testing.expectEqual(start_us + 100 * 120 + 100, network.now_us);
    }
}
