//! Runs of a schedule at a site of several edges: messages between them that are lost and late,
//! edges that die and come back by their journals, clocks that are a little off and clocks that
//! jump. Checked once everything has healed: every device was started in every run or booting in
//! it, by no edge twice in one, and where nothing went wrong by one edge alone. The edges are those
//! of the simulated site, on its network and with its control plane; devices are switched on and
//! boot no further.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const ControlPlane = @import("control_plane.zig");
const Disk = @import("disk.zig");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const Faults = @import("../kit/faults.zig").Faults;
const Invariants = @import("invariants.zig");
const LogFiles = @import("log_files.zig");
const Mutant = @import("mutants.zig").Mutant;
const SimFiles = @import("../kit/sim_files.zig");
const addresses = @import("addresses.zig");
const network = @import("network.zig");
const assert = std.debug.assert;

pub const Schedules = @This();

const devices_max = 40;
const step_us = 50 * std.time.us_per_ms;
const second = std.time.us_per_s;
const begin_ms = LogFiles.unix_ms_at_0 + network.start_us / std.time.us_per_ms;
/// Since the begin: faults end before the last run is over, and edges have time to agree afterwards.
const runs_at_ms = [_]u64{ 20_000, 140_000, 260_000 };
const heal_at_us = 330 * second;
const end_at_us = 600 * second;
/// A device takes so long to boot: its edge claims it in the meantime.
const boot_us = 8 * second;

gpa: std.mem.Allocator,
prng: base.Prng,
/// Of the edges.
edge_prng: base.Prng,
invariants: Invariants = .{},
fabric: Fabric,
disk: Disk,
versions: [ControlPlane.versions_max]Disk.Version,
plane: ControlPlane,
edges: []EdgeNode,
/// When each edge is started again; null: it is up.
back_at_us: [addresses.edges_max]?u64 = @splat(null),
/// Wall against true time, and by how much a fault has set it until when.
skew_ms: [addresses.edges_max]i64 = @splat(0),
jump_ms: [addresses.edges_max]i64 = @splat(0),
jump_ends_us: [addresses.edges_max]u64 = @splat(0),
/// Faults between the edges and the control plane.
uplink: Faults,
device_count: u8,
/// Per minute.
rate: u32,
has_faults: bool,
/// Magic packets by edge.
wakes: [addresses.edges_max]u32 = @splat(0),
/// Starts by edge, run and device.
sent: [addresses.edges_max][runs_at_ms.len][devices_max]u8 =
    std.mem.zeroes([addresses.edges_max][runs_at_ms.len][devices_max]u8),
/// Starts, in the same way, whose records were lost with a process: a restarted edge may start the
/// device again.
lost: [addresses.edges_max][runs_at_ms.len][devices_max]u8 =
    std.mem.zeroes([addresses.edges_max][runs_at_ms.len][devices_max]u8),
/// Devices that an edge had in a boot between a run's instant and the next one: they need no start.
is_booting: [runs_at_ms.len][devices_max]bool = std.mem.zeroes([runs_at_ms.len][devices_max]bool),
result: Result = .{},

pub const Result = struct {
    sent: u64 = 0,
    crashes: u64 = 0,
    violation: ?Invariants.Violation = null,
};

pub fn run(gpa: std.mem.Allocator, seed: u64, mutant: Mutant) !Result {
    agent.mutants.active = std.meta.stringToEnum(agent.mutants.Mutant, @tagName(mutant));
    defer agent.mutants.active = null;
    const world = try gpa.create(Schedules);
    defer gpa.destroy(world);
    try world.init(gpa, seed, mutant);
    defer world.deinit();
    const fabric = &world.fabric;
    while (world.invariants.violation == null) {
        const event = fabric.next() orelse break;
        if (fabric.now_us >= network.start_us + end_at_us) break;
        try world.handle(event);
    }
    if (world.invariants.violation == null) world.check();
    world.result.violation = world.invariants.violation;
    return world.result;
}

fn init(world: *Schedules, gpa: std.mem.Allocator, seed: u64, mutant: Mutant) !void {
    var prng: base.Prng = .init(seed *% 0x9e37_79b9 +% 5);
    const has_faults = prng.chance(3, 4) or mutant == .forget_schedules;
    world.* = .{
        .gpa = gpa,
        .prng = .init(prng.nextU64()),
        .edge_prng = .init(prng.nextU64()),
        .fabric = try .init(gpa, &world.invariants),
        .disk = .init(&prng),
        .versions = undefined,
        .plane = undefined,
        .edges = undefined,
        .uplink = if (has_faults) .draw(&prng) else .{},
        .device_count = @intCast(prng.between(5, devices_max)),
        .rate = @intCast(prng.between(60, 600)),
        .has_faults = has_faults,
    };
    errdefer world.fabric.deinit(gpa);
    const edge_count: u8 = @intCast(prng.between(1, addresses.edges_max));
    const fabric = &world.fabric;
    fabric.restart(.{ .seed = prng.nextU64(), .links = 1, .edges = edge_count });
    if (has_faults) fabric.backbone = .{
        .loss_per_mille = @intCast(prng.below(300)),
        .duplicate_per_mille = @intCast(prng.below(100)),
        .corrupt_per_mille = @intCast(prng.below(20)),
        .reorder_per_mille = @intCast(prng.below(200)),
        .hold_us = 30_000,
        .jitter_us = 60_000,
    };
    for (&world.versions) |*version| {
        var id: [16]u8 = undefined;
        prng.fill(&id);
        version.* = .{ .id = .fromRandom(id), .size = 1 << 20 };
    }
    world.plane = .init(gpa, &prng, .{
        .device_count = world.device_count,
        .edge_count = edge_count,
        .versions = &world.versions,
    });
    try world.initEdges(edge_count, mutant);
    fabric.plan(fabric.now_us, .schedule_turn);
    fabric.plan(fabric.now_us + second, .edge_second);
    fabric.plan(network.start_us + heal_at_us, .heal);
}

fn initEdges(world: *Schedules, count: u8, mutant: Mutant) !void {
    const gpa = world.gpa;
    const edges = try gpa.alloc(EdgeNode, count);
    errdefer gpa.free(edges);
    var made: usize = 0;
    errdefer for (edges[0..made]) |*edge| edge.deinit();
    for (edges, 0..) |*edge, index| {
        const files = try gpa.create(SimFiles);
        files.* = try .init(gpa, world.prng.nextU64());
        edge.* = .{
            .gpa = gpa,
            .index = @intCast(index),
            .fabric = &world.fabric,
            .journal = try .init(gpa, @splat(@intCast(index))),
            .files = files,
            .reports = try .init(gpa, .{
                .fabric = &world.fabric,
                .edge = @intCast(index),
                .disk = files,
                .seed = world.prng.nextU64(),
                .mutant = mutant,
                .requests = world.uplink,
                .answers = world.uplink,
            }),
            .disk = &world.disk,
            .prng = &world.edge_prng,
            .versions = &world.versions,
            .mutant = mutant,
            .mode = .proxy,
            .pool_size = 2,
            .wakes = .{ .context = world, .note = noteWake },
        };
        made += 1;
        // Without faults clocks are as NTP keeps them.
        if (world.has_faults)
            world.skew_ms[index] = @as(i64, @intCast(world.prng.below(6000))) - 3000;
        edge.reports.clock_offset_ms = world.skew_ms[index];
        edge.applyState(try world.stateFor(edge.index));
        try edge.start();
    }
    world.edges = edges;
}

fn deinit(world: *Schedules) void {
    for (world.edges) |*edge| edge.deinit();
    world.gpa.free(world.edges);
    world.fabric.deinit(world.gpa);
}

/// The site's state, with one schedule of all devices.
fn stateFor(world: *Schedules, edge: u8) !*ControlPlane.StateBox {
    const box = try world.plane.stateFor(edge);
    errdefer box.destroy(world.gpa);
    const arena = box.arena.allocator();
    const indexes = try arena.alloc(u32, world.device_count);
    for (indexes, 0..) |*index, number| index.* = @intCast(number);
    const instants = try arena.alloc(u64, runs_at_ms.len);
    for (instants, runs_at_ms) |*instant, at_ms| instant.* = begin_ms + at_ms;
    const schedules = try arena.alloc(core.uplink.desired_state.Schedule, 1);
    schedules[0] = .{
        .id = .fromRandom(@splat(0x77)),
        .action = "power_on",
        .power = "wake_on_lan",
        .ratePerMinute = world.rate,
        .devices = indexes,
        .instants = instants,
    };
    box.state.schedules = schedules;
    box.state.issuedUnixMs = begin_ms;
    return box;
}

fn handle(world: *Schedules, event: EventQueue.Event) !void {
    const fabric = &world.fabric;
    switch (event) {
        .packet => |packet| {
            var copy: [network.payload_size_max]u8 = undefined;
            const bytes = fabric.pool.view(packet.slot);
            const payload = copy[0..bytes.len];
            @memcpy(payload, bytes);
            fabric.pool.giveBack(packet.slot);
            // The receiver's UDP checksum detects a flipped bit.
            if (fabric.corrupts(&packet)) return;
            world.edges[packet.edge].receive(packet.from, packet.to, payload);
        },
        .reports => |due| try world.edges[due.edge].reports.step(due.serial, due.step),
        .peer_wake => |edge| world.edges[edge].wakePeers(),
        .edge_wake => |edge| world.edges[edge].wake(),
        .work_end => |edge| world.edges[edge].endWorks(),
        .profile_job => |edge| world.edges[edge].runProfileJob(),
        .edge_second => {
            for (world.edges) |*edge| {
                edge.endBoots(fabric.now_us -| boot_us);
                edge.second();
            }
            fabric.plan(fabric.now_us + second, .edge_second);
        },
        .schedule_turn => {
            try world.turn();
            fabric.plan(fabric.now_us + step_us, .schedule_turn);
        },
        .heal => {
            world.invariants.healed = true;
            fabric.backbone = fabric.backbone.healed();
            for (world.edges) |*edge| {
                edge.reports.requests = edge.reports.requests.healed();
                edge.reports.answers = edge.reports.answers.healed();
            }
        },
        else => unreachable,
    }
}

fn turn(world: *Schedules) !void {
    const now_us = world.fabric.now_us;
    const is_healed = world.invariants.healed;
    if (world.has_faults and !is_healed) world.fault();
    for (world.edges, 0..) |*edge, index| {
        if (world.back_at_us[index]) |at_us| if (now_us >= at_us or is_healed) {
            world.back_at_us[index] = null;
            // A process that starts cannot tell that its clock is wrong: the machine has set it.
            world.jump_ms[index] = 0;
            edge.reports.clock_offset_ms = world.skew_ms[index];
            try edge.start();
        };
        if (now_us >= world.jump_ends_us[index] or is_healed) world.jump_ms[index] = 0;
        edge.reports.clock_offset_ms = world.skew_ms[index] + world.jump_ms[index];
        edge.turnSchedules();
    }
    world.noteBooting();
}

/// About one of each kind in a minute.
fn fault(world: *Schedules) void {
    const prng = &world.prng;
    const now_us = world.fabric.now_us;
    if (prng.chance(1, 1200)) {
        const index: usize = @intCast(prng.below(world.edges.len));
        if (world.back_at_us[index] == null) {
            world.edges[index].crash(.{ .is_power_cut = prng.chance(1, 2) });
            world.back_at_us[index] = now_us + prng.between(1, 30) * second;
            world.result.crashes += 1;
        }
    }
    if (prng.chance(1, 1200)) {
        const index: usize = @intCast(prng.below(world.edges.len));
        const jumps =
            [_]i64{ 40_000, -40_000, 3_600_000, -3_600_000, 31_536_000_000, -31_536_000_000 };
        const is_right = world.jump_ms[index] == 0;
        if (is_right) world.jump_ms[index] = jumps[@intCast(prng.below(jumps.len))];
        // Set right again before it is believed, so a clock that is wrong already is left to that.
        const ends_us = now_us + prng.between(1, 50) * second;
        if (is_right) world.jump_ends_us[index] = ends_us;
    }
}

/// An edge sends a magic packet.
fn noteWake(context: *anyopaque, edge: u8, mac: base.Mac) void {
    const world: *Schedules = @ptrCast(@alignCast(context));
    world.invariants.notePowerOn(Invariants.deviceOf(mac).?);
    world.wakes[edge] += 1;
}

/// Counts what the edges' journals say that they started.
fn countSent(world: *Schedules) void {
    for (world.edges, 0..) |*edge, number| {
        if (edge.process) |process| process.io.endRuns(world.fabric.now_us);
        const kept = countStarts(edge, edge.journal.runs.items, &world.sent[number]);
        const lost = countStarts(edge, edge.journal.lost_runs.items, &world.lost[number]);
        if (kept + lost != world.wakes[number]) return world.invariants.violate(
            .schedules,
            "edge {d} sent {d} magic packets for {d} starts",
            .{ number, world.wakes[number], kept + lost },
        );
    }
}

fn countStarts(
    edge: *const EdgeNode,
    records: []const core.site.ScheduleRunner.Record,
    starts: *[runs_at_ms.len][devices_max]u8,
) u32 {
    var count: u32 = 0;
    for (records) |record| {
        if (record != .device or record.device.result != .sent) continue;
        count += 1;
        const index = for (runs_at_ms, 0..) |at_ms, place| {
            if (begin_ms + at_ms == record.device.key.instant_ms) break place;
        } else unreachable;
        const device = for (edge.box.?.state.devices, 0..) |*known, place| {
            if (known.id.eql(record.device.device)) break place;
        } else unreachable;
        starts[index][device] += 1;
    }
    return count;
}

fn noteBooting(world: *Schedules) void {
    const passed_us = world.fabric.now_us - network.start_us;
    var index: usize = runs_at_ms.len;
    while (index > 0) : (index -= 1)
        if (passed_us >= runs_at_ms[index - 1] * std.time.us_per_ms) break;
    if (index == 0) return;
    for (world.edges) |*edge| for (0..world.device_count) |device| {
        const mac = Invariants.macOf(@intCast(device));
        if (edge.hasBoot(mac)) world.is_booting[index - 1][device] = true;
    };
}

fn check(world: *Schedules) void {
    const invariants = &world.invariants;
    world.countSent();
    for (world.edges, 0..) |*edge, number| if (!edge.reports.isDrained()) invariants.violate(
        .schedules,
        "edge {d} has not sent its reports",
        .{number},
    );
    for (0..runs_at_ms.len) |index| for (0..world.device_count) |device| {
        var total: u32 = 0;
        for (0..world.edges.len) |edge| {
            const count = world.sent[edge][index][device];
            total += count + world.lost[edge][index][device];
            if (count > 1) return invariants.violate(
                .schedules,
                "edge {d} started device {d} {d} times in run {d}",
                .{ edge, device, count, index },
            );
        }
        world.result.sent += total;
        if (total == 0 and !world.is_booting[index][device]) return invariants.violate(
            .schedules,
            "device {d} was not started in run {d}",
            .{ device, index },
        );
        if (total > 1 and !world.has_faults) return invariants.violate(
            .schedules,
            "device {d} was started by {d} edges in run {d}",
            .{ device, total, index },
        );
    };
}

test "every device is started in every run, and a forgotten journal is found" {
    for (1..5) |seed| {
        const result = try run(std.testing.allocator, seed, .none);
        if (result.violation) |*violation| {
            std.debug.print("seed {d}: {s}\n", .{ seed, violation.text() });
            return error.TestUnexpectedResult;
        }
        if (seed == 1)
            try std.testing.expectEqual(result, try run(std.testing.allocator, seed, .none));
    }
    const is_found = for (1..30) |seed| {
        if ((try run(std.testing.allocator, seed, .forget_schedules)).violation != null) break true;
    } else false;
    try std.testing.expect(is_found);
    const early = try run(std.testing.allocator, 1, .start_before_kept);
    try std.testing.expect(early.violation != null);
}
