//! One run of the stream's simulation: agents and clients over a simulated network, clock and disk.
//! One thread, one seed; the same seed gives the same run. First every fault of the seed is active;
//! then all of them end, and everything has to finish in bounded time.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const Pcap = @import("../kit/pcap.zig");
const StreamDevice = @import("device.zig");
const StreamScenario = @import("scenario.zig");
const StreamSite = @import("site.zig");
const faults = @import("faults.zig");
const link = @import("link.zig");
const network_module = @import("network.zig");
const Endpoint = base.Endpoint;
const Event = network_module.Event;
const Network = network_module.Network;
const Packet = network_module.Packet;

pub const StreamWorld = @This();

pub const devices_max = network_module.links_max;
/// Approximate number of packets of a run.
pub const packets_per_run = 20_000;
/// Ends the faults of a run whose network is cut for so long that it has few packets.
const faults_us_max = 300 * std.time.us_per_s;
/// From healing to the end: the longest silence, a HELLO, and what is in progress.
const finish_us_max = 4 * link.silence_us_max;

arena: std.heap.ArenaAllocator,
invariants: Invariants,
network: Network,
site: StreamSite,
devices: [devices_max]StreamDevice,
scenario: StreamScenario,
prng: base.Prng,
options: Options,
boot_serial: u32,
address_serial: u16,
healed_at_us: ?u64,

/// The run of this thread, for a panic.
pub threadlocal var running: ?Options = null;

pub const Options = struct {
    seed: u64,
    packets: u64 = packets_per_run,
    limits: StreamScenario.Limits = .{},
    mutant: Mutant = .none,
    /// Plants a check that must fail.
    is_canary: bool = false,
    pcap: ?*Pcap = null,
};

pub const Result = struct {
    violation: ?Invariants.Violation = null,
    hash: u64 = 0,
    runs: u64 = 0,
    packets: u64 = 0,
    bytes: u64 = 0,
    lost: u64 = 0,
    duplicated: u64 = 0,
    corrupted: u64 = 0,
    too_large: u64 = 0,
    unroutable: u64 = 0,
    replayed: u64 = 0,
    refused: u64 = 0,
    reads: u64 = 0,
    read_bytes: u64 = 0,
    writes: u64 = 0,
    discards: u64 = 0,
    flushes: u64 = 0,
    boots: u64 = 0,
    processes: u64 = 0,
    resumptions: u64 = 0,
    failovers: u64 = 0,
    refused_elsewhere: u64 = 0,
    refusals: u64 = 0,
    orders: u64 = 0,
    crashes: u64 = 0,
    stops: u64 = 0,
    store_errors: u64 = 0,
    ignored: u64 = 0,
    virtual_us: u64 = 0,
    /// The longest time from healing to the end.
    finish_us_most: u64 = 0,

    pub fn add(total: *Result, other: *const Result) void {
        inline for (@typeInfo(Result).@"struct".field_names) |name| {
            if (comptime std.mem.eql(u8, name, "violation") or std.mem.eql(u8, name, "hash"))
                continue;
            if (comptime std.mem.eql(u8, name, "finish_us_most")) {
                total.finish_us_most = @max(total.finish_us_most, other.finish_us_most);
            } else @field(total, name) += @field(other, name);
        }
    }
};

/// Allocates memory for one run after another.
pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*StreamWorld {
    const world = try gpa.create(StreamWorld);
    errdefer gpa.destroy(world);
    world.arena = .init(gpa);
    world.invariants = .{};
    world.network = try .init(gpa, &world.invariants);
    return world;
}

pub fn destroy(world: *StreamWorld, gpa: std.mem.Allocator) void {
    world.network.deinit(gpa);
    world.arena.deinit();
    gpa.destroy(world);
}

pub fn run(world: *StreamWorld, options: Options) error{OutOfMemory}!Result {
    running = options;
    defer running = null;
    agent.mutants.active =
        std.meta.stringToEnum(agent.mutants.Mutant, @tagName(options.mutant));
    defer agent.mutants.active = null;
    try world.begin(options);
    while (world.invariants.violation == null) {
        const event = world.network.next() orelse break;
        try world.handle(event);
        const packets = world.network.statistics.packets;
        if (world.healed_at_us) |healed_us| {
            if (world.isFinished()) break;
            if (world.network.now_us > healed_us + world.finishUsMax()) world.reportUnfinished();
        } else if (packets >= options.packets or world.network.now_us > faults_us_max)
            try world.heal();
        if (packets > 4 * options.packets + 100_000) world.invariants.violate(
            .everything_finishes,
            "the run has {d} packets, and does not end",
            .{packets},
        );
    }
    for (world.site.edgesOf()) |*edge| if (edge.process != null) edge.end();
    return world.result();
}

/// Devices without a session wait until another one has been idle for long enough.
fn finishUsMax(world: *const StreamWorld) u64 {
    const rounds: u64 = world.scenario.device_count / world.scenario.edge.sessions_max;
    return finish_us_max + rounds * (link.session_spare_us + finish_us_max / 2);
}

fn begin(world: *StreamWorld, options: Options) error{OutOfMemory}!void {
    _ = world.arena.reset(.retain_capacity);
    world.options = options;
    world.invariants = .{};
    world.prng = .init(options.seed);
    world.scenario = .draw(&world.prng, options.limits);
    world.boot_serial = 0;
    world.address_serial = 0;
    world.healed_at_us = null;
    world.network.restart(.{
        .seed = world.prng.nextU64(),
        .links = world.scenario.device_count,
        .edges = world.scenario.edge_count,
        .pcap = options.pcap,
    });
    try world.beginSite();
    for (0..world.scenario.device_count) |index| try world.beginDevice(@intCast(index));
    world.site.reachability.update(&world.site);
    const now_us = world.network.now_us;
    world.network.plan(now_us + std.time.us_per_s, .edge_second);
    world.network.plan(now_us + world.scenario.calm_us, .fault);
}

fn beginSite(world: *StreamWorld) error{OutOfMemory}!void {
    world.site = .{
        .network = &world.network,
        .invariants = &world.invariants,
        .edge_count = world.scenario.edge_count,
        .ticket_key = undefined,
        .ticket_lifetime_s = world.scenario.ticket_lifetime_s,
        .reachability = .init(&world.scenario),
        .sectors = undefined,
    };
    world.prng.fill(&world.site.ticket_key);
    var classes: [devices_max]link.Class = undefined;
    for (&classes, &world.site.sectors, &world.scenario.devices) |*class, *sectors, *drawn| {
        class.* = drawn.habits.class;
        sectors.* = drawn.habits.sectors;
    }
    world.site.describe(&classes);
    const gpa = world.arena.allocator();
    for (world.site.edgesOf(), 0..) |*edge, index| {
        edge.* = .{
            .index = @intCast(index),
            .site = &world.site,
            .gpa = gpa,
            .network = &world.network,
            .invariants = &world.invariants,
            .mutant = world.options.mutant,
            .prng = .init(world.prng.nextU64()),
            .settings = world.scenario.edge,
            .disk = world.scenario.disk,
            .files = try .init(gpa, world.prng.nextU64()),
            .journal = .{ .resumption_key = @splat(@intCast(3 + index)) },
        };
        try edge.start();
    }
}

fn beginDevice(world: *StreamWorld, index: u8) error{OutOfMemory}!void {
    const drawn = &world.scenario.devices[index];
    const own = &world.network.links[index];
    own.* = .{
        .faults = drawn.link,
        .slow_us = drawn.slow_us,
        .address = world.newAddress(index),
        .path_max = drawn.path_max,
    };
    own.openPath();
    const device = &world.devices[index];
    device.restart(.{
        .index = index,
        .side = try .init(world.arena.allocator(), .{
            .reads_max = StreamDevice.reads_max,
            .writes_max = StreamDevice.writes_max,
            .packet_size_max = drawn.packet_size_max,
            .outstanding_bytes_max = drawn.habits.outstanding_bytes_max,
        }, world.options.mutant),
        .network = &world.network,
        .site = &world.site,
        .invariants = &world.invariants,
        .prng = .init(world.prng.nextU64()),
        .habits = drawn.habits,
        .next_at_us = world.network.now_us + world.prng.below(100_000),
    });
    world.network.plan(device.next_at_us, .{ .device_wake = index });
}

/// Returns an address that no device has had.
pub fn newAddress(world: *StreamWorld, index: u8) Endpoint {
    world.address_serial += 1;
    return .{ .ip = .init(10, 77, 1, index), .port = 40_000 + world.address_serial };
}

fn handle(world: *StreamWorld, event: Event) error{OutOfMemory}!void {
    const network = &world.network;
    switch (event) {
        .packet => |packet| world.arrive(packet),
        .device_wake => |index| {
            const device = &world.devices[index];
            // An earlier wake-up was planned since.
            const is_planned = device.wake_at_us != std.math.maxInt(u64);
            if (network.now_us < device.wake_at_us and is_planned) return;
            world.tick(index);
        },
        .edge_wake => |index| world.site.edges[index].wake(),
        // These are rare, and need much stack.
        else => try @call(.never_inline, handleRare, .{ world, event }),
    }
}

fn handleRare(world: *StreamWorld, event: Event) error{OutOfMemory}!void {
    const network = &world.network;
    const edges = &world.site.edges;
    switch (event) {
        .packet, .device_wake, .edge_wake => unreachable,
        .edge_second => {
            for (world.site.edgesOf()) |*edge| edge.second();
            network.plan(network.now_us + std.time.us_per_s, .edge_second);
            return;
        },
        .refused => |refused| {
            const address = network_module.edgeAddress(refused.edge);
            world.devices[refused.link].noteRefused(address);
            world.tick(refused.link);
            return;
        },
        .edge_start => |index| if (edges[index].process == null) try edges[index].start(),
        .edge_resume => |index| if (edges[index].process != null) edges[index].unstop(),
        .edge_reconnect => |index| {
            network.edge_is_cut[index] = false;
            for (network.links[0..network.link_count]) |*own| own.is_cut_from[index] = false;
        },
        .fault => if (world.healed_at_us == null) {
            try faults.inject(world);
            const calm_us = world.prng.below(world.scenario.calm_us);
            network.plan(network.now_us + 1 + calm_us, .fault);
        },
        .link_open => |index| faults.openLink(world, index),
    }
    world.site.reachability.update(&world.site);
}

pub fn tick(world: *StreamWorld, index: u8) void {
    const device = &world.devices[index];
    device.wake_at_us = std.math.maxInt(u64);
    device.tick(world.healed_at_us != null, &world.boot_serial);
}

fn arrive(world: *StreamWorld, packet: Packet) void {
    const network = &world.network;
    const bytes = network.pool.view(packet.slot);
    const ends = @as(u64, packet.link) << 8 | @as(u64, packet.edge) << 2;
    network.trace.note(ends | @backingInt(packet.direction));
    network.trace.noteBytes(bytes);
    if (network.corrupts(&packet)) {
        if (!link.detectsFlips(world.options.mutant, bytes))
            return network.pool.giveBack(packet.slot);
        const bit = network.prng.below(bytes.len * 8);
        bytes[@intCast(bit / 8)] ^= @as(u8, 1) << @intCast(bit % 8);
    }
    switch (packet.direction) {
        .to_edge => {
            const edge = &world.site.edges[packet.edge];
            if (edge.keep(packet)) return;
            if (edge.process == null) world.reportClosed(&packet);
            edge.receive(packet.from, bytes);
        },
        // Otherwise the device has another address by now.
        .to_device => if (network.links[packet.link].address.eql(packet.to)) {
            world.site.edges[packet.edge].noteArrival(packet.to);
            world.devices[packet.link].receive(packet.from, bytes);
            world.tick(packet.link);
        },
        .between_edges => unreachable,
    }
    network.pool.giveBack(packet.slot);
}

/// The machine of a dead edge reports that nobody listens there.
fn reportClosed(world: *StreamWorld, packet: *const Packet) void {
    if (!world.scenario.faults.contains(.refused_ports)) return;
    if (world.network.linkOf(packet.from) != packet.link) return;
    const refused: Event = .{ .refused = .{ .link = packet.link, .edge = packet.edge } };
    world.network.refuse(packet, refused);
}

fn isFinished(world: *const StreamWorld) bool {
    for (world.devices[0..world.scenario.device_count]) |*device|
        if (device.state != .finished) return false;
    return true;
}

fn reportUnfinished(world: *StreamWorld) void {
    for (world.devices[0..world.scenario.device_count]) |*device| {
        if (device.state == .finished) continue;
        var buffer: [160]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        device.describe(&writer) catch {};
        return world.invariants.violate(.everything_finishes, "{s}", .{writer.buffered()});
    }
}

fn heal(world: *StreamWorld) error{OutOfMemory}!void {
    const network = &world.network;
    world.healed_at_us = network.now_us;
    for (network.links[0..network.link_count]) |*own| own.heal(network.now_us);
    network.edge_is_cut = @splat(false);
    for (world.site.edgesOf()) |*edge| {
        edge.disk = .{ .latency_us = @min(edge.disk.latency_us, 500) };
        if (edge.process == null) try edge.start();
        edge.unstop();
    }
    world.site.reachability.update(&world.site);
    for (0..world.scenario.device_count) |index| world.tick(@intCast(index));
    if (world.options.is_canary) world.invariants.violate(.canary, "the canary", .{});
}

fn result(world: *const StreamWorld) Result {
    const network = &world.network;
    var all: Result = .{
        .violation = world.invariants.violation,
        .hash = network.trace.hash,
        .runs = 1,
        .virtual_us = network.now_us - network_module.start_us,
    };
    for (world.site.edges[0..world.site.edge_count]) |*edge| {
        all.crashes += edge.statistics.crashes;
        all.stops += edge.statistics.stops;
        all.store_errors += edge.statistics.store_errors;
        all.ignored += edge.statistics.ignored.total();
    }
    if (world.healed_at_us) |healed_us| all.finish_us_most = network.now_us - healed_us;
    inline for (@typeInfo(@TypeOf(network.statistics)).@"struct".field_names) |name|
        @field(all, name) = @field(network.statistics, name);
    for (world.devices[0..world.scenario.device_count]) |*device| {
        inline for (@typeInfo(StreamDevice.Statistics).@"struct".field_names) |name|
            @field(all, name) += @field(device.statistics, name);
    }
    return all;
}
