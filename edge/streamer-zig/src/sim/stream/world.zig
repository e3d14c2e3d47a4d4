//! One run of the stream's proof: the real servers and the real clients over a fake network, clock and disk. One thread, one seed; the same
//! seed gives the same run. First everything goes wrong that the seed says; then all heals, and everything has to finish in bounded time.

const std = @import("std");
const base = @import("base");
const Checks = @import("checks.zig");
const link = @import("link.zig");
const Plant = @import("plants.zig").Plant;
const StreamBoot = @import("boot.zig");
const StreamDevice = @import("device.zig");
const mischief = @import("mischief.zig");
const storage = @import("storage.zig");
const StreamNetwork = @import("network.zig");
const StreamPcap = @import("pcap.zig");
const StreamScenario = @import("scenario.zig");
const StreamSite = @import("site.zig");
const Endpoint = base.Endpoint;

pub const StreamWorld = @This();

pub const devices_max = StreamNetwork.links_max;
/// Packets of a run, about.
pub const packets_per_run = 20_000;
/// Where a network is cut for long there are none.
const faults_us_max = 300 * std.time.us_per_s;
/// From healing to the end: the longest silence, a hello, and what is under way.
const finish_us_max = 4 * link.silence_us_max;

arena: std.heap.ArenaAllocator,
checks: Checks,
network: StreamNetwork,
site: StreamSite,
devices: [StreamNetwork.links_max]StreamDevice,
scenario: StreamScenario,
prng: base.Prng,
options: Options,
boot_serial: u32,
address_serial: u16,
healed_at_us: ?u64,
keeps_keys: bool,

/// What this thread runs, for who has to tell of a panic.
pub threadlocal var running: ?Options = null;

pub const Options = struct {
    seed: u64,
    packets: u64 = packets_per_run,
    limits: StreamScenario.Limits = .{},
    plant: Plant = .none,
    /// A check that must fail.
    is_canary: bool = false,
    pcap: ?*StreamPcap = null,
};

pub const Result = struct {
    violation: ?Checks.Violation = null,
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
    hand_overs: u64 = 0,
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
            if (comptime std.mem.eql(u8, name, "violation") or std.mem.eql(u8, name, "hash")) continue;
            if (comptime std.mem.eql(u8, name, "finish_us_most")) {
                total.finish_us_most = @max(total.finish_us_most, other.finish_us_most);
            } else @field(total, name) += @field(other, name);
        }
    }
};

/// Memory for one run after the other.
pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*StreamWorld {
    const world = try gpa.create(StreamWorld);
    errdefer gpa.destroy(world);
    world.arena = .init(gpa);
    world.checks = .{};
    world.network = try .init(gpa, &world.checks);
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
    try world.begin(options);
    while (world.checks.violation == null) {
        const event = world.network.next() orelse break;
        try world.handle(event);
        if (world.healed_at_us) |healed_us| {
            if (world.isFinished()) break;
            if (world.network.now_us > healed_us + world.finishUsMax()) world.standsStill();
        } else if (world.network.statistics.packets >= options.packets or world.network.now_us > faults_us_max) try world.heal();
        if (world.network.statistics.packets > 4 * options.packets + 100_000)
            world.checks.violate(.everything_finishes, "{d} packets, and no end", .{world.network.statistics.packets});
    }
    for (world.site.edgesOf()) |*edge| if (edge.is_up) edge.end();
    return world.result();
}

/// Devices that have no place wait until one has asked for nothing for long enough.
fn finishUsMax(world: *const StreamWorld) u64 {
    const rounds: u64 = world.scenario.device_count / world.scenario.edge.sessions_max;
    return finish_us_max + rounds * (link.session_spare_us + finish_us_max / 2);
}

fn begin(world: *StreamWorld, options: Options) error{OutOfMemory}!void {
    _ = world.arena.reset(.retain_capacity);
    const gpa = world.arena.allocator();
    world.options = options;
    world.checks = .{};
    world.prng = .init(options.seed);
    world.scenario = .draw(&world.prng, options.limits);
    world.boot_serial = 0;
    world.address_serial = 0;
    world.healed_at_us = null;
    world.keeps_keys = true;
    world.network.restart(world.prng.nextU64(), .{ .links = world.scenario.device_count, .edges = world.scenario.edge_count }, options.pcap);
    world.site = .{
        .network = &world.network,
        .checks = &world.checks,
        .edge_count = world.scenario.edge_count,
        .ticket_key = undefined,
        .ticket_lifetime_s = world.scenario.ticket_lifetime_s,
        .vigil = .init(&world.scenario),
    };
    world.prng.fill(&world.site.ticket_key);
    for (world.site.edgesOf(), 0..) |*edge, index| {
        edge.* = .{
            .index = @intCast(index),
            .site = &world.site,
            .gpa = gpa,
            .network = &world.network,
            .checks = &world.checks,
            .plant = options.plant,
            .prng = .init(world.prng.nextU64()),
            .settings = world.scenario.edge,
            .disk = world.scenario.disk,
            .resumption_key = @splat(@intCast(3 + index)),
            .cache_serial = index << 32,
        };
        try edge.start();
    }
    for (0..world.scenario.device_count) |index| {
        const drawn = &world.scenario.devices[index];
        const own = &world.network.links[index];
        own.* = .{ .faults = drawn.link, .slow_us = drawn.slow_us, .address = world.newAddress(@intCast(index)), .path_max = drawn.path_max };
        own.openPath();
        const device = &world.devices[index];
        device.restart(.{
            .index = @intCast(index),
            .side = try .init(gpa, .{
                .reads_max = StreamDevice.reads_max,
                .writes_max = StreamDevice.writes_max,
                .packet_size_max = drawn.packet_size_max,
                .outstanding_bytes_max = drawn.habits.outstanding_bytes_max,
            }, options.plant),
            .network = &world.network,
            .site = &world.site,
            .checks = &world.checks,
            .prng = .init(world.prng.nextU64()),
            .habits = drawn.habits,
            .next_at_us = world.network.now_us + world.prng.below(100_000),
        });
        world.network.plan(device.next_at_us, .{ .device_wake = @intCast(index) });
    }
    world.site.vigil.look(&world.site);
    world.network.plan(world.network.now_us + std.time.us_per_s, .edge_second);
    world.network.plan(world.network.now_us + world.scenario.calm_us, .mischief);
}

/// One that nobody has had, or, now and then, one that another device had.
pub fn newAddress(world: *StreamWorld, index: u8) Endpoint {
    world.address_serial += 1;
    return .{ .ip = .init(10, 77, 1, index), .port = 40_000 + world.address_serial };
}

fn handle(world: *StreamWorld, event: StreamNetwork.Event) error{OutOfMemory}!void {
    const network = &world.network;
    switch (event) {
        .packet => |packet| world.arrive(packet),
        .device_wake => |index| {
            const device = &world.devices[index];
            // One that was planned before an earlier one.
            if (network.now_us < device.wake_at_us and device.wake_at_us != std.math.maxInt(u64)) return;
            world.tick(index);
        },
        .edge_wake => |index| storage.wake(&world.site.edges[index]),
        // Seldom, and with much on the stack.
        else => try @call(.never_inline, handleSeldom, .{ world, event }),
    }
}

fn handleSeldom(world: *StreamWorld, event: StreamNetwork.Event) error{OutOfMemory}!void {
    const network = &world.network;
    switch (event) {
        .packet, .device_wake, .edge_wake => unreachable,
        .edge_second => {
            for (world.site.edgesOf()) |*edge| edge.second();
            network.plan(network.now_us + std.time.us_per_s, .edge_second);
            return;
        },
        .refused => |said| {
            world.devices[said.link].noteRefused(StreamNetwork.edgeAddress(said.edge));
            world.tick(said.link);
            return;
        },
        .edge_start => |index| if (!world.site.edges[index].is_up) try world.site.edges[index].start(),
        .edge_go_on => |index| if (world.site.edges[index].is_up) world.site.edges[index].goOn(),
        .edge_mend => |index| {
            network.edge_is_cut[index] = false;
            for (network.links[0..network.link_count]) |*own| own.is_cut_from[index] = false;
        },
        .mischief => if (world.healed_at_us == null) {
            try mischief.make(world);
            network.plan(network.now_us + 1 + world.prng.below(world.scenario.calm_us), .mischief);
        },
        .mend => |index| mischief.mend(world, index),
    }
    world.site.vigil.look(&world.site);
}

pub fn tick(world: *StreamWorld, index: u8) void {
    const device = &world.devices[index];
    device.wake_at_us = std.math.maxInt(u64);
    device.tick(world.healed_at_us != null, &world.boot_serial);
}

fn arrive(world: *StreamWorld, packet: StreamNetwork.Packet) void {
    const network = &world.network;
    const bytes = network.pool.view(packet.slot);
    network.trail.note(@as(u64, packet.link) << 8 | @as(u64, packet.edge) << 1 | @backingInt(packet.direction));
    network.trail.noteBytes(bytes);
    if (network.corrupts(&packet)) {
        if (!link.findsFlips(world.options.plant, bytes)) return network.pool.giveBack(packet.slot);
        const bit = network.prng.below(bytes.len * 8);
        bytes[@intCast(bit / 8)] ^= @as(u8, 1) << @intCast(bit % 8);
    }
    switch (packet.direction) {
        .to_edge => {
            const edge = &world.site.edges[packet.edge];
            if (edge.keep(packet)) return;
            if (!edge.is_up and world.scenario.faults.contains(.refused_ports) and network.linkOf(packet.from) == packet.link)
                network.refuse(&packet);
            edge.receive(packet.from, bytes);
        },
        // It has another address by now.
        .to_device => if (network.links[packet.link].address.eql(packet.to)) {
            world.site.edges[packet.edge].noteArrival(packet.to);
            world.devices[packet.link].receive(packet.from, bytes);
            world.tick(packet.link);
        },
    }
    network.pool.giveBack(packet.slot);
}

fn isFinished(world: *const StreamWorld) bool {
    for (world.devices[0..world.scenario.device_count]) |*device| if (device.state != .finished) return false;
    return true;
}

fn standsStill(world: *StreamWorld) void {
    for (world.devices[0..world.scenario.device_count]) |*device| {
        if (device.state == .finished) continue;
        var buffer: [160]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        device.describe(&writer) catch {};
        return world.checks.violate(.everything_finishes, "{s}", .{writer.buffered()});
    }
}

fn heal(world: *StreamWorld) error{OutOfMemory}!void {
    const network = &world.network;
    world.healed_at_us = network.now_us;
    // What switches and tunnels take is as it is.
    for (network.links[0..network.link_count]) |*own| {
        own.* = .{
            .faults = own.faults.healed(),
            .address = own.address,
            .path_max = own.path_max,
            .lost_at_us = network.now_us,
        };
        own.openPath();
    }
    network.edge_is_cut = @splat(false);
    for (world.site.edgesOf()) |*edge| {
        edge.disk = .{ .latency_us = @min(edge.disk.latency_us, 500) };
        if (!edge.is_up) try edge.start();
        edge.goOn();
    }
    world.site.vigil.look(&world.site);
    for (0..world.scenario.device_count) |index| world.tick(@intCast(index));
    if (world.options.is_canary) world.checks.violate(.canary, "the canary", .{});
}

fn result(world: *const StreamWorld) Result {
    const network = &world.network;
    var all: Result = .{
        .violation = world.checks.violation,
        .hash = network.trail.hash,
        .runs = 1,
        .virtual_us = network.now_us - StreamNetwork.start_us,
    };
    for (world.site.edges[0..world.site.edge_count]) |*edge| {
        all.crashes += edge.statistics.crashes;
        all.stops += edge.statistics.stops;
        all.store_errors += edge.statistics.store_errors;
        all.ignored += edge.statistics.ignored.total();
    }
    if (world.healed_at_us) |healed_us| all.finish_us_most = network.now_us - healed_us;
    inline for (.{ "packets", "bytes", "lost", "duplicated", "corrupted", "too_large", "unroutable", "replayed", "refused" }) |name|
        @field(all, name) = @field(network.statistics, name);
    for (world.devices[0..world.scenario.device_count]) |*device| {
        inline for (@typeInfo(StreamDevice.Statistics).@"struct".field_names) |name|
            @field(all, name) += @field(device.statistics, name);
    }
    return all;
}
