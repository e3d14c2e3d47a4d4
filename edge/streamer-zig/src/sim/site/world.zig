//! Runs one simulated site from one seed: its edges, their control plane, devices, an attacker, a
//! network and disks, with the faults that the seed draws. Faults come first; then everything but
//! the attacker heals, and every boot must finish.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const Attack = @import("attack.zig").Attack;
const Attacker = @import("attacker.zig");
const ControlPlane = @import("control_plane.zig");
const ProfileReads = @import("profile_reads.zig");
const device_keys = @import("device_keys.zig");
const DeviceNode = @import("device_node.zig");
const DeviceWrites = @import("device_writes.zig");
const Disk = @import("disk.zig");
const addresses = @import("addresses.zig");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const Packet = @import("../kit/network.zig").Packet;
const network = @import("network.zig");
const Faults = @import("../kit/faults.zig").Faults;
const Journal = @import("journal.zig");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const RouterSegment = @import("router_segment.zig");
const router_discovery = @import("wire").router_discovery;
const scenario = @import("scenario.zig");
const VersionCopies = @import("version_copies.zig");
const SimFiles = @import("../kit/sim_files.zig");
const assert = std.debug.assert;

pub const World = @This();

pub const devices_max = 60;
/// Every device is ready so long after the faults at the latest.
const finish_us_max = 300 * std.time.us_per_s;
/// So long after the faults the edges have heard each other, and no earlier boot is offered.
const settle_us = 6 * std.time.us_per_s;
/// For so long after the last boot nothing more may happen to the boots, except that those end
/// whose devices have left them for another edge.
const calm_us = 14 * std.time.us_per_s;
const events_max = 5_000_000;

gpa: std.mem.Allocator,
options: Options,
plan: scenario.Scenario,
invariants: Invariants = .{},
prng: base.Prng,
fabric: Fabric,
disk: Disk,
profile_reads: ProfileReads,
edges: []EdgeNode,
/// Null in standalone use.
plane: ?ControlPlane = null,
is_uplink_up: [addresses.edges_max]bool = @splat(true),
/// What becomes of the copies of versions.
fate: VersionCopies.Fate = .{},
devices: []DeviceNode,
reads: [][]core.device.read_trace.Read,
attacker: Attacker,
/// Null where nobody solicits a router.
routers: ?RouterSegment = null,
events: u64 = 0,
done_at_us: ?u64 = null,
/// Orders that are planned and not given yet.
orders_left: u32 = 0,

pub const Options = struct {
    seed: u64,
    /// Null: the seed decides.
    devices: ?u8 = null,
    mutant: Mutant = .none,
    /// Null: all attacks.
    attack: ?Attack = null,
    /// There is an attacker, and he sends at least so many packets; 0: the seed decides.
    hostile_packets: u32 = 0,
    is_traced: bool = false,
    is_canary: bool = false,
};

pub const Result = struct {
    events: u64,
    packets: u64,
    lost: u64,
    /// Packets and HTTP requests of the attacker.
    hostile: u64,
    boots_ready: u32,
    boots_failed: u32,
    resumptions: u64,
    failovers: u64,
    writes: u64,
    profiles_handed: u64,
    crashes: u32,
    virtual_us: u64,
    hash: u64,
    violation: ?Invariants.Violation,
};

/// Runs a seed to its end.
pub fn run(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!Result {
    agent.mutants.active = std.meta.stringToEnum(agent.mutants.Mutant, @tagName(options.mutant));
    defer agent.mutants.active = null;
    const world = try gpa.create(World);
    defer gpa.destroy(world);
    try world.init(gpa, options);
    defer world.deinit();
    try world.play();
    return .{
        .events = world.events,
        .packets = world.fabric.statistics.packets,
        .lost = world.fabric.statistics.lost,
        .hostile = world.attacker.sent,
        .boots_ready = world.invariants.devices_ready,
        .boots_failed = world.invariants.devices_failed,
        .resumptions = world.invariants.resumptions,
        .failovers = world.invariants.failovers,
        .writes = world.writeCount(),
        .profiles_handed = world.profile_reads.handed,
        .crashes = world.crashCount(),
        .virtual_us = world.fabric.now_us - network.start_us,
        .hash = world.fabric.trace.hash,
        .violation = world.invariants.violation,
    };
}

fn init(world: *World, gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!void {
    var prng: base.Prng = .init(options.seed);
    const plan: scenario.Scenario = .draw(&prng, options.devices);
    assert(plan.device_count > 0 and plan.device_count <= devices_max);
    world.gpa = gpa;
    world.options = options;
    world.plan = plan;
    world.invariants = .{
        .is_attacked = options.attack != null or options.hostile_packets > 0 or
            plan.attack_period_us > 0,
    };
    world.events = 0;
    world.done_at_us = null;
    world.orders_left = 0;
    world.plane = null;
    world.is_uplink_up = @splat(true);
    world.fabric = try .init(gpa, &world.invariants);
    errdefer world.fabric.deinit(gpa);
    world.fabric.restart(.{
        .seed = prng.nextU64(),
        .links = plan.device_count + 1,
        .edges = plan.edge_count,
        .has_shared_port = true,
        .stray_port = addresses.stream_port,
    });
    world.fabric.trace.is_traced = options.is_traced;
    world.disk = .init(&prng);
    world.profile_reads = try .init(gpa, &world.plan.versions);
    errdefer world.profile_reads.deinit(gpa);
    world.prng = .init(prng.nextU64());
    if (plan.is_managed) world.plane = .init(gpa, &prng, .{
        .device_count = plan.device_count,
        .edge_count = plan.edge_count,
        .versions = &world.plan.versions,
    });
    if (world.plane) |*plane| {
        for (plane.keys[0..plan.device_count], 0..) |*key, device| {
            const pair = device_keys.pairOf(options.seed, @intCast(device), 0);
            key.* = if (pair) |*found| device_keys.fingerprintOf(found) else null;
        }
        // A generator of its own: the policies leave the faults of a seed unchanged.
        var policies: base.Prng = .init(options.seed *% 0x9e37_79b9 +% 11);
        plane.setKeys(&policies);
    }
    world.routers = if (RouterSegment.isIn(options.seed))
        .init(options.seed, plan.heal_at_us)
    else
        null;
    world.drawFate();
    try world.initEdges(&prng);
    errdefer world.deinitEdges();
    try world.initAttacker(prng.nextU64());
    errdefer world.attacker.thief.deinit(gpa);
    try world.initDevices(&prng);
    world.attacker.devices = world.devices;
    world.planFaults(&prng);
}

fn drawFate(world: *World) void {
    world.fate = .{};
    const plane = if (world.plane) |*plane| plane else return;
    world.fate = .draw(world.options.seed, .{
        .edge_count = world.plan.edge_count,
        .version_count = plane.movingVersions(),
        .heal_at_us = world.plan.heal_at_us,
    });
}

fn initAttacker(world: *World, seed: u64) error{OutOfMemory}!void {
    const attack = world.options.attack;
    world.attacker = .{
        .fabric = &world.fabric,
        .edges = world.edges,
        .link = world.plan.device_count,
        .prng = .init(seed),
        .devices = &.{},
        .thief = try .init(world.gpa, .{ .reads_max = 1 }),
        .pair = device_keys.attackersPair(world.options.seed),
        .period_us = world.attackPeriod(),
        .only = attack,
    };
}

/// Most of the packets come while there are faults.
fn attackPeriod(world: *const World) u64 {
    const drawn_us = if (world.options.attack == null) world.plan.attack_period_us else 10_000;
    const wanted = world.options.hostile_packets;
    if (wanted == 0) return drawn_us;
    const needed_us = @max(1, world.plan.heal_at_us / wanted);
    return if (drawn_us == 0) needed_us else @min(drawn_us, needed_us);
}

fn initEdges(world: *World, prng: *base.Prng) error{OutOfMemory}!void {
    const gpa = world.gpa;
    const plan = &world.plan;
    const edges = try gpa.alloc(EdgeNode, plan.edge_count);
    errdefer gpa.free(edges);
    var made: usize = 0;
    errdefer for (edges[0..made]) |*edge| edge.deinit();
    // A generator of their own: the faults of the uplinks leave those of the site unchanged.
    var uplinks: base.Prng = .init(world.options.seed *% 0x9e37_79b9 +% 5);
    for (edges, 0..) |*edge, index| {
        var resumption_key: [32]u8 = undefined;
        prng.fill(&resumption_key);
        const files = try makeFiles(gpa, prng.nextU64());
        edge.* = .{
            .gpa = gpa,
            .index = @intCast(index),
            .fabric = &world.fabric,
            .journal = try .init(gpa, resumption_key),
            .files = files,
            .reports = try .init(gpa, .{
                .fabric = &world.fabric,
                .edge = @intCast(index),
                .disk = files,
                .seed = uplinks.nextU64(),
                .mutant = world.options.mutant,
                .requests = .draw(&uplinks),
                .answers = .draw(&uplinks),
            }),
            .disk = &world.disk,
            .routers = if (world.routers) |*routers| routers else null,
            .profile_reads = &world.profile_reads,
            .prng = &world.prng,
            .versions = &plan.versions,
            .mutant = world.options.mutant,
            .mode = plan.mode,
            .pool_size = plan.device_count + 2,
        };
        edge.copies = world.fate.first[index];
        made += 1;
        if (world.plane) |*plane| edge.applyState(try plane.stateFor(edge.index));
        try edge.start();
    }
    world.edges = edges;
}

fn makeFiles(gpa: std.mem.Allocator, seed: u64) error{OutOfMemory}!*SimFiles {
    const files = try gpa.create(SimFiles);
    errdefer gpa.destroy(files);
    files.* = try .init(gpa, seed);
    return files;
}

fn deinitEdges(world: *World) void {
    for (world.edges) |*edge| edge.deinit();
    world.gpa.free(world.edges);
}

fn writeCount(world: *const World) u64 {
    var count: u64 = 0;
    for (world.devices) |*node| count += node.writes.acknowledged;
    return count;
}

fn crashCount(world: *const World) u32 {
    var count: u32 = 0;
    for (world.edges) |*edge| count += edge.generation - 1;
    return count;
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
        gpa.destroy(node.writes);
        gpa.free(reads);
    };
    const shared_xid = prng.nextU32();
    for (devices, world.reads, 0..) |*node, *reads, index| {
        reads.* = try scenario.drawReads(gpa, prng, world.plan.versions[0].size);
        const address: base.Ip4 = .init(10, 77, 1, @intCast(index + 1));
        node.* = .{
            .device = Device.init(gpa, .{
                .mac = Invariants.macOf(@intCast(index)),
                .own_address = if (world.plan.mode == .proxy) address else null,
                .tftp_port = addresses.tftp_port,
                .reads = reads.*,
                .speed_per_mille = world.plan.speed_per_mille,
                .breather_us = prng.between(0, 800) * std.time.us_per_ms,
                .writes_max = 4,
                .waits_for_router = world.routers != null,
                .read_ahead_bytes = if (index % 3 == 0)
                    0
                else
                    @as(u32, core.profile.ReadAhead.cache_size_min) << @intCast(index % 3),
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
            .mutant = world.options.mutant,
            .fabric = &world.fabric,
            .edge_count = world.plan.edge_count,
            .writes = try makeWrites(gpa, @intCast(index), reads.*, world.plan.versions[2].size),
            .own_address = if (world.plan.mode == .proxy) address else null,
            .xid_next = if (world.plan.is_xid_shared) shared_xid else prng.nextU32(),
            .repeats_xids = index % 3 == 1,
            .prng = .init(prng.nextU64()),
        };
        world.setKey(node);
        made += 1;
    }
    world.devices = devices;
}

fn makeWrites(
    gpa: std.mem.Allocator,
    device: u8,
    reads: []const core.device.read_trace.Read,
    disk_size: u64,
) error{OutOfMemory}!*DeviceWrites {
    const writes = try gpa.create(DeviceWrites);
    writes.* = .init(device, reads, disk_size);
    return writes;
}

const Device = core.device.Device;

fn deinit(world: *World) void {
    const gpa = world.gpa;
    for (world.devices, world.reads) |*node, reads| {
        node.device.deinit(gpa);
        gpa.destroy(node.writes);
        gpa.free(reads);
    }
    gpa.free(world.devices);
    gpa.free(world.reads);
    world.deinitEdges();
    world.attacker.thief.deinit(gpa);
    world.profile_reads.deinit(gpa);
    world.fabric.deinit(gpa);
    world.* = undefined;
}

fn planFaults(world: *World, prng: *base.Prng) void {
    const fabric = &world.fabric;
    for (fabric.links[0..fabric.link_count]) |*link| link.faults = .draw(prng);
    fabric.backbone = .draw(prng);
    fabric.links[world.attacker.link].setIp(Attacker.ip);
    const plan = &world.plan;
    for (world.devices) |*node| node.planPowerOn(prng.below(2 * std.time.us_per_s));
    for (plan.planned[0..plan.planned_count]) |planned| world.schedule(planned);
    if (plan.late_order) |planned| world.schedule(planned);
    for (world.fate.planned[0..world.fate.planned_count]) |*planned|
        world.schedule(.{ .at_us = planned.at_us, .event = .{ .copy = planned.event } });
    world.planExchanges();
    if (world.attacker.period_us > 0)
        fabric.plan(fabric.now_us + world.attacker.period_us, .attack);
    fabric.plan(fabric.now_us + std.time.us_per_s, .edge_second);
    fabric.plan(network.start_us + plan.heal_at_us, .heal);
}

/// Exchanges the program of the only edge, where devices have write caches that end with its
/// process. Its own numbers: the rest of a run does not depend on them.
fn planExchanges(world: *World) void {
    const plane = if (world.plane) |*plane| plane else return;
    if (plane.plan.write_class != .edge or world.plan.edge_count > 1) return;
    const id = &world.plan.versions[0].id.bytes;
    var own: base.Prng = .init(std.mem.readInt(u64, id[0..8], .little));
    for (0..@intCast(own.between(30, 60))) |_| {
        const at_us = own.below(world.plan.heal_at_us);
        world.fabric.plan(network.start_us + at_us, .{ .edge_exchange = 0 });
    }
}

fn schedule(world: *World, planned: scenario.Scenario.Planned) void {
    if (planned.event == .order) world.orders_left += 1;
    world.fabric.plan(network.start_us + planned.at_us, planned.event);
}

fn play(world: *World) error{OutOfMemory}!void {
    const finish_at_us = network.start_us + world.plan.heal_at_us + finish_us_max;
    while (world.invariants.violation == null) {
        const event = world.fabric.next() orelse break;
        world.events += 1;
        try world.handle(event);
        if (world.fabric.statistics.too_large > 0)
            world.invariants.violate(.mtu_respected, "a packet does not fit the MTU", .{});
        if (world.done_at_us) |done_at_us| {
            if (world.fabric.now_us >= done_at_us + calm_us) break;
        } else if (world.invariants.healed and world.isDone()) {
            world.done_at_us = world.fabric.now_us;
        } else if (world.fabric.now_us > finish_at_us or world.events > events_max) {
            world.tellUnfinished();
        }
    }
    if (world.invariants.violation == null) try world.sendLastReports();
    if (world.invariants.violation == null) world.invariants.checkEnd();
    if (world.invariants.violation == null) for (world.devices) |*node| node.checkWords();
    if (world.options.is_canary)
        world.invariants.violate(
            .canary,
            "{d} boots were ready, none should have been",
            .{world.invariants.devices_ready},
        );
}

/// Lets the edges send what their report logs have kept; nothing else happens any more.
fn sendLastReports(world: *World) error{OutOfMemory}!void {
    const end_us = world.fabric.now_us + finish_us_max;
    for (world.edges) |*edge| {
        while (!edge.reports.isDrained()) {
            const event = world.fabric.next();
            if (event == null or world.fabric.now_us > end_us)
                return world.invariants.violate(
                    .reports_once,
                    "edge {d} does not send its reports",
                    .{edge.index},
                );
            if (event.? == .reports) try world.handle(event.?);
            if (world.invariants.violation != null) return;
        }
        edge.reports.check();
    }
}

fn isDone(world: *const World) bool {
    for (world.devices) |*node| if (!node.isDone()) return false;
    if (world.attacker.sent < world.options.hostile_packets) return false;
    return world.orders_left == 0 and !world.invariants.hasOrderFor(world.devices);
}

fn tellUnfinished(world: *World) void {
    for (world.devices) |*node| if (!node.isDone()) {
        const device = &node.device;
        return world.invariants.violate(
            .every_boot_finishes,
            "device {d} is in {t} after {d} events, {d} of {d} reads done, client {t}",
            .{
                node.link,         device.phase,             world.events,
                device.reads_done, device.profile.reads.len, device.client.state,
            },
        );
    };
    if (world.attacker.sent < world.options.hostile_packets) world.invariants.violate(
        .every_boot_finishes,
        "the attacker has sent {d} packets after {d} events",
        .{ world.attacker.sent, world.events },
    );
}

fn handle(world: *World, event: EventQueue.Event) error{OutOfMemory}!void {
    const fabric = &world.fabric;
    switch (event) {
        .packet => |packet| world.arrive(packet),
        .device_wake => |link| world.devices[link].wake(),
        .edge_wake => |edge| world.edges[edge].wake(),
        .peer_wake => |edge| world.edges[edge].wakePeers(),
        .work_end => |edge| world.edges[edge].endWorks(),
        .profile_job => |edge| world.edges[edge].runProfileJob(),
        .edge_second => {
            const settled_at_us = network.start_us + world.plan.heal_at_us + settle_us;
            world.noteCopies();
            world.invariants.is_settled = fabric.now_us >= settled_at_us;
            for (world.edges) |*edge| edge.second();
            for (world.devices) |*node| node.checkProgress();
            for (world.devices) |*node| world.checkKept(node);
            if (world.routers) |*routers| world.stepRouters(routers);
            fabric.plan(fabric.now_us + std.time.us_per_s, .edge_second);
        },
        .http => |http| world.devices[http.link].stepHttp(world.edges, http.serial, http.step),
        .reports => |due| try world.edges[due.edge].reports.step(due.serial, due.step),
        .power_on => |link| world.devices[link].powerOn(),
        .edge_crash => |crash| {
            world.fabric.trace.print(fabric.now_us, "edge {d} crashes", .{crash.edge});
            world.edges[crash.edge].crash(.{ .is_power_cut = crash.is_power_cut });
        },
        .edge_start => |edge| if (world.edges[edge].process == null) {
            world.fabric.trace.print(fabric.now_us, "edge {d} starts", .{edge});
            try world.edges[edge].start();
            try world.sendStates();
        },
        .copy => |copy| world.changeCopy(copy),
        .edge_exchange => |edge| try world.exchange(edge),
        .uplink => |uplink| {
            world.fabric.trace.print(fabric.now_us, "uplink of edge {d}: {}", .{
                uplink.edge, uplink.is_up,
            });
            world.is_uplink_up[uplink.edge] = uplink.is_up;
            world.edges[uplink.edge].reports.is_cut = !uplink.is_up;
            try world.sendStates();
        },
        .change_state => {
            world.fabric.trace.print(fabric.now_us, "the desired state changes", .{});
            try world.changeState();
        },
        .cut => |cut| world.cutFor(cut.link, cut.duration_us),
        .mend => |link| world.cutLink(link, false),
        .switch_version => world.edges[0].assign(1 - world.edges[0].version_index),
        .clear_tpm => |link| {
            const node = &world.devices[link];
            node.key_number += 1;
            world.setKey(node);
        },
        .order => |link| {
            world.fabric.trace.print(fabric.now_us, "an order for device {d}", .{link});
            world.orders_left -= 1;
            world.order(link);
        },
        .schedule_turn => unreachable,
        // The attacker never stops: devices have to make progress under attack.
        .attack => {
            world.attacker.act();
            fabric.plan(fabric.now_us + world.attacker.period_us, .attack);
        },
        .router_solicitation, .router_answer, .router_question => world.handleRouters(event),
        .heal => try world.heal(),
    }
}

fn changeCopy(world: *World, change: @FieldType(EventQueue.Event, "copy")) void {
    world.fabric.trace.print(world.fabric.now_us, "version {d} of edge {d}: {t}", .{
        change.version, change.edge, change.copy,
    });
    world.edges[change.edge].copies.set(change.version, change.copy);
}

fn noteCopies(world: *World) void {
    for (world.edges) |*edge| {
        var copies = edge.copies.copies;
        // A read of it failed lately.
        if (edge.process) |process| for (&copies, edge.versions) |*copy, *version| {
            const is_unreadable = process.boots.holdings.isUnreadable(version.id);
            if (is_unreadable and copy.* == .whole) copy.* = .damaged;
        };
        world.invariants.noteCopies(edge.index, edge.process != null, &copies);
    }
}

fn handleRouters(world: *World, event: EventQueue.Event) void {
    switch (event) {
        .router_solicitation => |link| {
            const bytes = router_discovery.solicitation();
            const from = router_discovery.linkLocalOf(Invariants.macOf(link));
            for (world.edges) |*edge| edge.receiveRouterMessage(from, &bytes);
        },
        .router_answer => |link| world.devices[link].receiveRouterAdvertisement(),
        .router_question => |edge| if (world.isRouterThere()) world.advertiseRouter(edge),
        else => unreachable,
    }
}

fn isRouterThere(world: *const World) bool {
    const at_us = world.routers.?.router_at_us orelse return false;
    return world.fabric.now_us >= network.start_us + at_us;
}

fn advertiseRouter(world: *World, edge: u8) void {
    var bytes = router_discovery.advertisement();
    std.mem.writeInt(u16, bytes[6..8], 1800, .big);
    const from = router_discovery.linkLocalOf(addresses.attackerMacOf(Attacker.ip).?);
    world.edges[edge].receiveRouterMessage(from, &bytes);
}

/// Who is on the segment solicits in anybody's name, and where he wants to be a router says so.
fn stepRouters(world: *World, routers: *RouterSegment) void {
    if (world.isRouterThere())
        for (world.edges) |*edge| world.advertiseRouter(edge.index);
    const bytes = router_discovery.solicitation();
    if (world.invariants.is_attacked) for (0..20) |_| {
        const from = routers.attackersName(world.plan.device_count);
        for (world.edges) |*edge| edge.receiveRouterMessage(from, &bytes);
    };
    for (world.devices) |*node| world.checkRouterWait(node, routers);
}

/// A device that is beyond its loader on the quiet network has waited only beside a router, or an
/// edge that has just started; and then its boot says so.
fn checkRouterWait(world: *World, node: *const DeviceNode, routers: *const RouterSegment) void {
    const device = &node.device;
    if (device.phase != .stage2 or !node.powered_on_healed or !node.is_expected) return;
    const waited_us = device.router_waited_us;
    if (waited_us < 3 * std.time.us_per_s) return;
    const power_on_us = device.power_on_at_us;
    if (routers.isAvoided(world.plan.edge_count, power_on_us))
        return world.invariants.violate(.router_wait_known, "device {d} waited {d} ms", .{
            node.link, waited_us / std.time.us_per_ms,
        });
    // Whoever sends DHCP requests in the device's name makes its pause look shorter.
    if (world.invariants.is_attacked) return;
    const edge = addresses.edgeOf(node.stream_to.ip) orelse return;
    if (routers.started_us[edge] > power_on_us) return;
    const process = world.edges[edge].process orelse return;
    const ref = process.boots.table.findById(device.plan.?.boot_id) orelse return;
    const boot = process.boots.get(ref).?;
    if (boot.failover == null and boot.router_wait.pause == null)
        world.invariants.violate(.router_wait_known, "device {d} waited {d} ms unseen", .{
            node.link, waited_us / std.time.us_per_ms,
        });
}

fn exchange(world: *World, edge: u8) error{OutOfMemory}!void {
    if (!try world.edges[edge].exchange()) return;
    world.fabric.trace.print(world.fabric.now_us, "edge {d} exchanges its program", .{edge});
    try world.sendStates();
}

/// Checks that the edge has the boot that a device runs in.
fn checkKept(world: *World, node: *const DeviceNode) void {
    const device = &node.device;
    if (device.phase != .stage2 and device.phase != .ready) return;
    if (device.client.state != .established) return;
    const id = device.plan.?.boot_id;
    const edge = addresses.edgeOf(node.stream_to.ip) orelse return;
    const process = world.edges[edge].process orelse return;
    const table = &process.boots.table;
    const boot = if (table.findById(id)) |ref| table.get(ref) else null;
    if (boot != null and boot.?.isRunning()) return;
    const account = world.invariants.find(id) orelse return;
    if (account.was_silent or account.edge != edge) return;
    world.invariants.violate(
        .running_boot_kept,
        "device {d} runs, and edge {d} has ended its boot",
        .{ node.link, edge },
    );
}

fn cutFor(world: *World, link: u8, duration_us: u64) void {
    const fabric = &world.fabric;
    fabric.trace.print(fabric.now_us, "link {d} is cut for {d} us", .{ link, duration_us });
    world.cutLink(link, true);
    fabric.plan(fabric.now_us + duration_us, .{ .mend = link });
}

/// Cuts a link, or ends the cut; the links after the attacker's are those between edges.
fn cutLink(world: *World, link: u8, is_cut: bool) void {
    const fabric = &world.fabric;
    if (link < fabric.link_count)
        fabric.links[link].is_cut = @splat(is_cut)
    else
        fabric.edge_is_isolated[link - fabric.link_count] = is_cut;
}

/// Ends the faults, and lets the control plane settle.
fn heal(world: *World) error{OutOfMemory}!void {
    const fabric = &world.fabric;
    world.fabric.trace.print(fabric.now_us, "everything heals", .{});
    world.invariants.healed = true;
    world.disk.error_per_mille = 0;
    for (fabric.links[0..fabric.link_count]) |*link| {
        link.faults = link.faults.healed();
        link.is_cut = @splat(false);
    }
    fabric.backbone = fabric.backbone.healed();
    fabric.edge_is_isolated = @splat(false);
    for (world.edges) |*edge| {
        edge.reports.is_cut = false;
        edge.reports.requests = edge.reports.requests.healed();
        edge.reports.answers = edge.reports.answers.healed();
    }
    if (world.plane) |*plane| {
        plane.settle();
        world.is_uplink_up = @splat(true);
        try world.sendStates();
        for (world.devices) |*node| {
            node.is_expected = plane.plan.versionOf(node.link) != null;
            world.invariants.is_kept_out[node.link] = !node.is_expected;
        }
    }
}

/// Puts a key into the device's TPM, if it has one.
fn setKey(world: *World, node: *DeviceNode) void {
    const pair = device_keys.pairOf(world.options.seed, node.link, node.key_number);
    node.device.profile.key = pair;
    const plane = if (world.plane) |*plane| plane else return;
    plane.keys[node.link] = if (pair) |*key| device_keys.fingerprintOf(key) else null;
}

fn changeState(world: *World) error{OutOfMemory}!void {
    const plane = &world.plane.?;
    plane.change();
    for (plane.plan.is_withdrawn) |is_withdrawn| if (is_withdrawn) {
        world.invariants.has_withdrawn = true;
    };
    for (world.devices) |*node| if (plane.plan.devices[node.link].registration == .absent) {
        world.invariants.was_absent[node.link] = true;
    };
    try world.sendStates();
}

/// Sends each edge whose uplink is up the state that it does not have yet.
fn sendStates(world: *World) error{OutOfMemory}!void {
    const plane = if (world.plane) |*plane| plane else return;
    for (world.edges) |*edge| {
        if (edge.process == null or !world.is_uplink_up[edge.index]) continue;
        if (edge.box.?.state.counter < plane.counter)
            edge.applyState(try plane.stateFor(edge.index));
    }
}

/// Puts a power order into the desired state of each edge.
fn order(world: *World, device: EventQueue.Link) void {
    var id: [16]u8 = undefined;
    world.prng.fill(&id);
    const kind: core.uplink.desired_state.PowerOrderKind =
        if (world.prng.chance(2, 3)) .restart else .power_off;
    for (world.edges) |*edge| edge.order(.{
        .id = .fromRandom(id),
        .deviceId = .zero,
        .mac = Invariants.macOf(device),
        .order = kind,
    });
}

fn arrive(world: *World, packet: Packet) void {
    const fabric = &world.fabric;
    const bytes = fabric.pool.view(packet.slot);
    fabric.trace.note(@as(u64, packet.link) << 2 | @backingInt(packet.direction));
    fabric.trace.noteBytes(bytes);
    fabric.trace.print(fabric.now_us, "{t} {d}: {f} -> {f}, {d} bytes, {x}", .{
        packet.direction, packet.link,                  packet.from, packet.to,
        bytes.len,        bytes[0..@min(bytes.len, 8)],
    });
    var copy: [network.payload_size_max]u8 = undefined;
    const payload = copy[0..bytes.len];
    @memcpy(payload, bytes);
    fabric.pool.giveBack(packet.slot);
    // The receiver's UDP checksum detects the flipped bit.
    if (fabric.corrupts(&packet)) return;
    switch (packet.direction) {
        .to_edge, .between_edges => if (addresses.edgeOf(packet.to.ip)) |edge|
            world.edges[edge].receive(packet.from, packet.to, payload),
        .to_device => if (packet.link == world.attacker.link)
            world.attacker.receive(packet.to, payload)
        else if (packet.link < world.devices.len)
            world.devices[packet.link].receive(packet.from, packet.to, payload),
    }
}
