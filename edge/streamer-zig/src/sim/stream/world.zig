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
            .version_max = world.scenario.edge_versions[index],
            .packed_percent = world.scenario.packed_percent[index],
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
            .version_max = drawn.version_max,
            .codecs = if (drawn.has_codec) link.codecs else 0,
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
fn newAddress(world: *StreamWorld, index: u8) Endpoint {
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
            try inject(world);
            const calm_us = world.prng.below(world.scenario.calm_us);
            network.plan(network.now_us + 1 + calm_us, .fault);
        },
        .link_open => |index| openLink(world, index),
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

/// Ends the faults of a link except the packet sizes that its path forwards.
fn openLink(world: *StreamWorld, index: u8) void {
    const own = &world.network.links[index];
    own.is_cut = @splat(false);
    own.openPath();
}

/// Injects one of the faults that may occur in this run.
fn inject(world: *StreamWorld) error{OutOfMemory}!void {
    const prng = &world.prng;
    const occurring = world.scenario.faults.intersectWith(StreamScenario.occurring);
    if (occurring.count() == 0) return;
    var drawn = occurring.iterator();
    for (0..prng.below(occurring.count())) |_| _ = drawn.next();
    const fault = drawn.next().?;
    const index: u8 = @intCast(prng.below(world.scenario.device_count));
    const at: u8 = @intCast(prng.below(world.site.edge_count));
    const device = &world.devices[index];
    const now_us = world.network.now_us;
    switch (fault) {
        .cuts => cutLink(world, index, .both),
        .one_way_cuts => cutLink(world, index, if (prng.chance(1, 2)) .to_edge else .to_device),
        .black_holes => narrowLink(world, index),
        .path_changes => {
            const own = &world.network.links[index];
            own.path_max = StreamScenario.pathSize(prng);
            own.openPath();
            world.site.reachability.restart(&world.site, index);
        },
        .stops, .edge_cuts, .crashes => {
            var struck = drawEdges(world, at);
            while (struck.next()) |edge| switch (fault) {
                .stops => stopEdge(world, edge),
                .edge_cuts => cutEdge(world, index, edge),
                else => crash(world, edge),
            };
        },
        .refused_ports => if (prng.chance(1, 4))
            world.network.plan(now_us, .{ .refused = .{ .link = index, .edge = at } }),
        .addresses => changeAddress(world, index),
        .replays => for (0..prng.between(1, 40)) |_| world.network.replay(attacker(world)),
        .garbage => for (0..prng.between(1, 10)) |_| sendGarbage(world, index, at),
        .thieves => {
            const edge = &world.site.edges[at];
            if (device.state != .off) try edge.tryToken(device.boot, attacker(world));
            edge.recorded.replay(edge, attacker(world));
        },
        .reboots => if (device.state == .on and prng.chance(1, 3)) {
            device.end();
            world.tick(index);
        },
        .processes => {
            device.replaceProcess();
            world.tick(index);
        },
        .orders => giveOrder(world, device),
        .bad_links, .narrow_paths, .several_edges, .lost_keys, .slow_disk => unreachable,
        .store_errors, .missing_versions, .slow_devices, .few_sessions => unreachable,
        .full_caches => unreachable,
    }
}

fn cutLink(world: *StreamWorld, index: u8, what: enum { both, to_edge, to_device }) void {
    const is_cut = &world.network.links[index].is_cut;
    const Direction = network_module.Direction;
    switch (what) {
        .both => is_cut.* = @splat(true),
        .to_edge => is_cut[@backingInt(Direction.to_edge)] = true,
        .to_device => is_cut[@backingInt(Direction.to_device)] = true,
    }
    const at_us = world.network.now_us + drawPause(world);
    world.network.plan(at_us, .{ .link_open = index });
}

fn narrowLink(world: *StreamWorld, index: u8) void {
    const prng = &world.prng;
    const own = &world.network.links[index];
    const size_max: u64 = if (prng.chance(1, 2)) 1472 else own.path_max;
    const payload_max = &own.payload_max[@intCast(prng.below(2))];
    payload_max.* = @min(payload_max.*, @as(u16, @intCast(prng.between(300, size_max))));
    const at_us = world.network.now_us + prng.below(5 * std.time.us_per_s);
    world.network.plan(at_us, .{ .link_open = index });
}

fn drawPause(world: *StreamWorld) u64 {
    const is_short = world.prng.chance(1, 2);
    return world.prng.below(if (is_short) std.time.us_per_s else 15 * std.time.us_per_s);
}

/// Draws this edge, and sometimes some of those that follow it; one of several is always left.
fn drawEdges(world: *StreamWorld, first: u8) Struck {
    const count = world.site.edge_count;
    const more = if (count > 2 and world.prng.chance(1, 2)) world.prng.below(count - 1) else 0;
    return .{ .at = first, .left = @intCast(1 + more), .count = count };
}

const Struck = struct {
    at: u8,
    left: u8,
    count: u8,

    fn next(struck: *Struck) ?u8 {
        if (struck.left == 0) return null;
        defer struck.at = (struck.at + 1) % struck.count;
        struck.left -= 1;
        return struck.at;
    }
};

fn stopEdge(world: *StreamWorld, at: u8) void {
    const edge = &world.site.edges[at];
    if (edge.process == null) return;
    edge.stop();
    world.network.plan(world.network.now_us + drawPause(world), .{ .edge_resume = at });
}

/// Cuts an edge off from this device, or from all.
fn cutEdge(world: *StreamWorld, device: u8, at: u8) void {
    if (world.prng.chance(1, 2))
        world.network.edge_is_cut[at] = true
    else
        world.network.links[device].is_cut_from[at] = true;
    world.network.plan(world.network.now_us + drawPause(world), .{ .edge_reconnect = at });
}

/// Returns an address of a machine that is no device.
fn attacker(world: *StreamWorld) Endpoint {
    const ip: base.Ip4 = .init(10, 77, 9, @intCast(world.prng.below(4)));
    return .{ .ip = ip, .port = @intCast(world.prng.between(1, 8)) };
}

fn sendGarbage(world: *StreamWorld, index: u8, at: u8) void {
    const prng = &world.prng;
    var bytes: [1472]u8 = undefined;
    const size: usize = @intCast(prng.below(bytes.len + 1));
    prng.fill(bytes[0..size]);
    const own = world.network.links[index].address;
    world.network.inject(.{
        .link = 0,
        .edge = at,
        .direction = .to_edge,
        .from = if (prng.chance(1, 2)) own else attacker(world),
        .to = network_module.edgeAddress(at),
    }, bytes[0..size]);
}

fn mayMove(device: *const StreamDevice) bool {
    return device.state != .off and !device.boot.addresses.isFull();
}

fn changeAddress(world: *StreamWorld, index: u8) void {
    const prng = &world.prng;
    const device = &world.devices[index];
    if (!mayMove(device)) return;
    var address = world.newAddress(index);
    const other: u8 = @intCast(prng.below(world.scenario.device_count));
    if (other != index and prng.chance(1, 3) and mayMove(&world.devices[other])) {
        // The other device gets a new address, and this one the other's.
        const links = &world.network.links;
        address = links[other].address;
        links[other].address = world.newAddress(other);
        world.devices[other].boot.addresses.appendAssumeCapacity(links[other].address);
    }
    world.network.links[index].address = address;
    world.site.reachability.restart(&world.site, index);
    world.site.reachability.restart(&world.site, other);
    device.boot.addresses.appendAssumeCapacity(address);
}

fn crash(world: *StreamWorld, at: u8) void {
    const edge = &world.site.edges[at];
    if (edge.process == null) return;
    edge.crash(!world.scenario.faults.contains(.lost_keys) or world.prng.chance(3, 4));
    const is_short = world.prng.chance(1, 2);
    // An edge may be away for longer if there is another one.
    const long_us: u64 = if (world.site.edge_count > 1) 20 else 4;
    const pause_us_max = if (is_short) 10_000 else long_us * std.time.us_per_s;
    const at_us = world.network.now_us + world.prng.below(pause_us_max);
    world.network.plan(at_us, .{ .edge_start = at });
}

fn giveOrder(world: *StreamWorld, device: *StreamDevice) void {
    if (device.state != .on or device.boot.orders_given.isFull()) return;
    var id: [16]u8 = undefined;
    world.prng.fill(&id);
    if (world.site.order(device.index, id)) device.boot.orders_given.appendAssumeCapacity(id);
}
