//! One simulated site from one seed: an edge, its devices, an attacker, a network and a disk, and what goes wrong with them
//! and when. Faults come first; then everything heals and every boot must finish.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const Attacker = @import("attacker.zig");
const DeviceNode = @import("device_node.zig");
const Disk = @import("disk.zig");
const addresses = @import("addresses.zig");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("fabric.zig");
const Faults = @import("../kit/faults.zig").Faults;
const Journal = @import("journal.zig");
const Ledger = @import("ledger.zig");
const PacketPool = @import("../kit/packet_pool.zig");
const Plant = @import("plant.zig").Plant;
const scenario = @import("scenario.zig");
const Trail = @import("../kit/trail.zig");
const assert = std.debug.assert;

pub const World = @This();

pub const devices_max = 60;
/// After the faults every device has that long to be ready.
const finish_us_max = 300 * std.time.us_per_s;
/// Afterwards nothing more may happen to the boots.
const calm_us = 5 * std.time.us_per_s;
const events_max = 5_000_000;

gpa: std.mem.Allocator,
options: Options,
plan: scenario.Scenario,
trail: Trail,
ledger: Ledger = .{},
prng: base.Prng,
fabric: Fabric,
disk: Disk,
journal: Journal,
edge: EdgeNode,
devices: []DeviceNode,
reads: [][]core.device.read_trace.Read,
attacker: Attacker,
events: u64 = 0,
done_at_us: ?u64 = null,
/// Orders that are still to come.
orders_left: u32 = 0,

pub const Options = struct {
    seed: u64,
    /// Null: the seed decides.
    devices: ?u8 = null,
    plant: Plant = .none,
    /// Null: the attacks that the agent withstands.
    attack: ?Attacker.Attack = null,
    is_traced: bool = false,
    is_canary: bool = false,
};

pub const Result = struct {
    events: u64,
    packets: u64,
    lost: u64,
    boots_ready: u32,
    boots_failed: u32,
    resumptions: u64,
    crashes: u32,
    virtual_us: u64,
    hash: u64,
    violation: ?Ledger.Violation,
};

/// Runs a seed to its end.
pub fn run(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!Result {
    agent.mutants.planted = std.meta.stringToEnum(agent.mutants.Mutant, @tagName(options.plant));
    defer agent.mutants.planted = null;
    const world = try gpa.create(World);
    defer gpa.destroy(world);
    try world.init(gpa, options);
    defer world.deinit();
    try world.play();
    return .{
        .events = world.events,
        .packets = world.fabric.statistics.packets,
        .lost = world.fabric.statistics.lost,
        .boots_ready = world.ledger.devices_ready,
        .boots_failed = world.ledger.devices_failed,
        .resumptions = world.ledger.resumptions,
        .crashes = world.edge.generation - 1,
        .virtual_us = world.fabric.now_us - Fabric.start_us,
        .hash = world.trail.hash,
        .violation = world.ledger.violation,
    };
}

fn init(world: *World, gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!void {
    var prng: base.Prng = .init(options.seed);
    const plan: scenario.Scenario = .draw(&prng, options.devices);
    assert(plan.device_count > 0 and plan.device_count <= devices_max);
    world.gpa = gpa;
    world.options = options;
    world.plan = plan;
    world.trail = .{ .is_traced = options.is_traced };
    world.ledger = .{};
    world.events = 0;
    world.done_at_us = null;
    world.orders_left = 0;
    world.fabric = try .init(gpa, plan.device_count + 1, prng.nextU64(), &world.trail, &world.ledger);
    errdefer world.fabric.deinit(gpa);
    world.disk = .init(&prng);
    var resumption_key: [32]u8 = undefined;
    prng.fill(&resumption_key);
    world.journal = try .init(gpa, resumption_key);
    errdefer world.journal.deinit(gpa);
    const attacker_seed = prng.nextU64();
    world.attacker = .{
        .fabric = &world.fabric,
        .edge = &world.edge,
        .link = plan.device_count,
        .prng = .init(attacker_seed),
        .devices = &.{},
        .thief = try .init(gpa, .{ .reads_max = 1 }),
        .period_us = if (options.attack == null) plan.attack_period_us else 10_000,
        .only = options.attack,
    };
    errdefer world.attacker.thief.deinit(gpa);
    world.edge = .{
        .gpa = gpa,
        .fabric = &world.fabric,
        .journal = &world.journal,
        .disk = &world.disk,
        .prng = &world.prng,
        .versions = &world.plan.versions,
        .plant = options.plant,
        .mode = plan.mode,
        .pool_size = plan.device_count + 2,
    };
    world.prng = .init(prng.nextU64());
    errdefer world.edge.crash();
    try world.edge.start();
    try world.initDevices(&prng);
    world.attacker.devices = world.devices;
    world.planFaults(&prng);
}

fn initDevices(world: *World, prng: *base.Prng) error{OutOfMemory}!void {
    const gpa = world.gpa;
    const count = world.plan.device_count;
    const devices = try gpa.alloc(DeviceNode, count);
    errdefer gpa.free(devices);
    world.reads = try gpa.alloc([]core.device.read_trace.Read, count);
    errdefer gpa.free(world.reads);
    var made: usize = 0;
    errdefer for (devices[0..made], world.reads[0..made]) |*node, reads| {
        node.device.deinit(gpa);
        gpa.free(reads);
    };
    const shared_xid = prng.nextU32();
    for (devices, world.reads, 0..) |*node, *reads, index| {
        reads.* = try scenario.drawReads(gpa, prng, world.plan.versions[0].size);
        const address: base.Ip4 = .init(10, 77, 1, @intCast(index + 1));
        node.* = .{
            .device = Device.init(gpa, .{
                .mac = Ledger.macOf(@intCast(index)),
                .own_address = if (world.plan.mode == .proxy) address else null,
                .tftp_port = addresses.tftp_port,
                .reads = reads.*,
                .speed_per_mille = world.plan.speed_per_mille,
                .breather_us = prng.between(0, 800) * std.time.us_per_ms,
                .read_ahead_bytes = if (index % 3 == 0) 0 else @as(u32, core.profile.ReadAhead.cache_size_min) << @intCast(index % 3),
                .guest = .{
                    .interval_us = 500 * std.time.us_per_ms,
                    .write_cache_size = 64 << 20,
                    .write_cache_used_at_ready = 1 << 20,
                    .write_cache_per_second = prng.pick(u64, &.{ 0, 10, 60 }) << 20,
                    .write_cache_used_max = prng.between(1, 64) << 20,
                },
            }) catch |err| {
                gpa.free(reads.*);
                return err;
            },
            .link = @intCast(index),
            .plant = world.options.plant,
            .fabric = &world.fabric,
            .own_address = if (world.plan.mode == .proxy) address else null,
            .xid_next = if (world.plan.is_xid_shared) shared_xid else prng.nextU32(),
            .prng = .init(prng.nextU64()),
        };
        made += 1;
    }
    world.devices = devices;
}

const Device = core.device.Device;

fn deinit(world: *World) void {
    const gpa = world.gpa;
    for (world.devices, world.reads) |*node, reads| {
        node.device.deinit(gpa);
        gpa.free(reads);
    }
    gpa.free(world.devices);
    gpa.free(world.reads);
    world.edge.crash();
    world.attacker.thief.deinit(gpa);
    world.journal.deinit(gpa);
    world.fabric.deinit(gpa);
    world.* = undefined;
}

fn planFaults(world: *World, prng: *base.Prng) void {
    const fabric = &world.fabric;
    for (fabric.links[0..fabric.link_count]) |*link| link.faults = .draw(prng);
    fabric.links[world.attacker.link].ip = Attacker.ip;
    const plan = &world.plan;
    for (world.devices) |*node| node.planPowerOn(prng.below(2 * std.time.us_per_s));
    for (plan.planned[0..plan.planned_count]) |planned| world.schedule(planned);
    if (plan.late_order) |planned| world.schedule(planned);
    if (world.attacker.period_us > 0)
        fabric.plan(fabric.now_us + world.attacker.period_us, .attack);
    fabric.plan(fabric.now_us + std.time.us_per_s, .edge_second);
    fabric.plan(Fabric.start_us + plan.heal_at_us, .heal);
}

fn schedule(world: *World, planned: scenario.Scenario.Planned) void {
    if (planned.event == .order) world.orders_left += 1;
    world.fabric.plan(Fabric.start_us + planned.at_us, planned.event);
}

fn play(world: *World) error{OutOfMemory}!void {
    const finish_at_us = Fabric.start_us + world.plan.heal_at_us + finish_us_max;
    while (world.ledger.violation == null) {
        const event = world.fabric.next() orelse break;
        world.events += 1;
        try world.handle(event);
        if (world.done_at_us) |done_at_us| {
            if (world.fabric.now_us >= done_at_us + calm_us) break;
        } else if (world.ledger.healed and world.isDone()) {
            world.done_at_us = world.fabric.now_us;
        } else if (world.fabric.now_us > finish_at_us or world.events > events_max) {
            world.tellUnfinished();
        }
    }
    if (world.ledger.violation == null) world.ledger.checkEnd();
    if (world.ledger.violation == null) for (world.devices) |*node| node.checkWords();
    if (world.options.is_canary)
        world.ledger.violate(.canary, "{d} boots were ready, none should have been", .{world.ledger.devices_ready});
}

fn isDone(world: *const World) bool {
    for (world.devices) |*node| if (!node.isDone()) return false;
    return world.orders_left == 0 and !world.ledger.hasOrderFor(world.devices);
}

fn tellUnfinished(world: *World) void {
    for (world.devices) |*node| if (!node.isDone()) {
        const device = &node.device;
        return world.ledger.violate(.every_boot_finishes, "device {d} is in {t} after {d} events, {d} of {d} reads done, client {t}", .{
            node.link, device.phase, world.events, device.reads_done, device.profile.reads.len, device.client.state,
        });
    };
}

fn handle(world: *World, event: EventQueue.Event) error{OutOfMemory}!void {
    const fabric = &world.fabric;
    const edge = &world.edge;
    switch (event) {
        .arrival => |arrival| world.arrive(arrival),
        .device_wake => |link| world.devices[link].wake(),
        .edge_wake => edge.wake(),
        .edge_second => {
            edge.second();
            for (world.devices) |*node| node.checkProgress();
            fabric.plan(fabric.now_us + std.time.us_per_s, .edge_second);
        },
        .http => |http| world.devices[http.link].stepHttp(edge, http.serial, http.step),
        .power_on => |link| world.devices[link].powerOn(),
        .edge_crash => {
            world.trail.print(fabric.now_us, "edge crashes", .{});
            edge.crash();
        },
        .edge_start => if (edge.process == null) {
            world.trail.print(fabric.now_us, "edge starts", .{});
            try edge.start();
        },
        .cut => |cut| {
            world.trail.print(fabric.now_us, "link {d} is cut for {d} us", .{ cut.link, cut.duration_us });
            fabric.links[cut.link].is_cut = true;
            fabric.plan(fabric.now_us + cut.duration_us, .{ .mend = cut.link });
        },
        .mend => |link| fabric.links[link].is_cut = false,
        .switch_version => edge.assign(1 - edge.version_index),
        .order => |link| {
            world.trail.print(fabric.now_us, "an order for device {d}", .{link});
            world.orders_left -= 1;
            edge.order(link);
        },
        // It never stops: devices have to make progress under attack.
        .attack => {
            world.attacker.act();
            fabric.plan(fabric.now_us + world.attacker.period_us, .attack);
        },
        .heal => {
            world.trail.print(fabric.now_us, "everything heals", .{});
            world.ledger.healed = true;
            world.disk.error_per_mille = 0;
            for (fabric.links[0..fabric.link_count]) |*link| {
                link.faults = link.faults.healed();
                link.is_cut = false;
            }
        },
    }
}

fn arrive(world: *World, arrival: EventQueue.Arrival) void {
    const fabric = &world.fabric;
    const bytes = fabric.pool.view(arrival.slot);
    world.trail.note(@as(u64, arrival.link) << 1 | @backingInt(arrival.direction));
    world.trail.noteBytes(bytes);
    world.trail.print(fabric.now_us, "{t} {d}: {f} -> {f}, {d} bytes, {x}", .{
        arrival.direction, arrival.link, arrival.from, arrival.to, bytes.len, bytes[0..@min(bytes.len, 8)],
    });
    var copy: [PacketPool.payload_size_max]u8 = undefined;
    const packet = copy[0..bytes.len];
    @memcpy(packet, bytes);
    fabric.pool.giveBack(arrival.slot);
    switch (arrival.direction) {
        .to_edge => world.edge.receive(arrival.from, arrival.to, packet),
        .to_device => if (arrival.link == world.attacker.link)
            world.attacker.receive(arrival.to, packet)
        else
            world.devices[arrival.link].receive(arrival.from, arrival.to, packet),
    }
}
