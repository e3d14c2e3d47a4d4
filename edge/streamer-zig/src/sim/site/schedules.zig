//! Runs of a schedule at a site of several edges: messages between them that are lost and late,
//! edges that die and come back by their journals, clocks that are a little off and clocks that
//! jump. Checked once everything has healed: every device was started in every run or booting in
//! it, by no edge twice in one, and where nothing went wrong by one edge alone. The real runner,
//! peer table and boot table.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const assert = std.debug.assert;

const ScheduleRunner = core.site.ScheduleRunner;

pub const Schedules = @This();

const edges_max = 3;
const devices_max = 40;
const step_us = 50 * std.time.us_per_ms;
const second = std.time.us_per_s;
const site_key = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const network: base.Ip4 = .init(10, 77, 0, 0);
const policy: core.boot.Policy = .nothing;
const begin_ms = 1_795_000_000_000;
/// Since the begin: faults end before the last run is over, and edges have time to agree afterwards.
const runs_at_ms = [_]u64{ 20_000, 140_000, 260_000 };
const heal_at_us = 330 * second;
const end_at_us = 600 * second;
/// A boot that a power-on began claims its device for so long.
const claimed_us = 8 * second;

const Flight = struct { at_us: u64, to: u8, from: u8, size: u16, bytes: [512]u8 };
const Records = std.ArrayList(ScheduleRunner.Record);

const Edge = struct {
    number: u8,
    gpa: std.mem.Allocator,
    is_up: bool = true,
    back_at_us: u64 = 0,
    epoch: u64 = 1,
    /// Wall against true time, and by how much a fault has set it.
    skew_ms: i64 = 0,
    jump_ms: i64 = 0,
    jump_ends_us: u64 = 0,
    peers: core.site.PeerTable,
    boots: core.boot.Table,
    runner: ScheduleRunner,
    records: Records = .empty,
    is_forgetful: bool = false,
    sent: [runs_at_ms.len][devices_max]u8 = std.mem.zeroes([runs_at_ms.len][devices_max]u8),
};

gpa: std.mem.Allocator,
arena: std.heap.ArenaAllocator,
prng: base.Prng,
state: *core.uplink.desired_state.DesiredState,
edges: []Edge,
flights: std.ArrayList(Flight) = .empty,
/// Devices that an edge had in a boot between a run's instant and the next one: they need no start.
is_booting: [runs_at_ms.len][devices_max]bool = std.mem.zeroes([runs_at_ms.len][devices_max]bool),
device_count: u8,
loss_percent: u64,
has_faults: bool,
now_us: u64 = 1000 * second,
boot_number: u64 = 0,

pub const Result = struct {
    sent: u64 = 0,
    crashes: u64 = 0,
    violation: ?Invariants.Violation = null,
};

pub fn run(gpa: std.mem.Allocator, seed: u64, mutant: Mutant) !Result {
    const world = try create(gpa, seed, mutant);
    defer world.destroy();
    var result: Result = .{};
    const begin_us = world.now_us;
    while (world.now_us < begin_us + end_at_us) : (world.now_us += step_us) {
        const passed_us = world.now_us - begin_us;
        if (world.has_faults and passed_us < heal_at_us) try world.fault(&result);
        for (world.edges) |*edge| {
            if (!edge.is_up and (world.now_us >= edge.back_at_us or passed_us >= heal_at_us)) try world.restart(edge);
            if (edge.jump_ms != 0 and (world.now_us >= edge.jump_ends_us or passed_us >= heal_at_us)) edge.jump_ms = 0;
            if (edge.is_up) world.turn(edge, passed_us);
        }
        world.deliver();
    }
    world.check(&result);
    return result;
}

fn create(gpa: std.mem.Allocator, seed: u64, mutant: Mutant) !*Schedules {
    const world = try gpa.create(Schedules);
    world.* = .{
        .gpa = gpa,
        .arena = .init(gpa),
        .prng = .init(seed *% 0x9e37_79b9 +% 5),
        .state = undefined,
        .edges = undefined,
        .device_count = undefined,
        .loss_percent = undefined,
        .has_faults = undefined,
    };
    const prng = &world.prng;
    world.device_count = @intCast(prng.between(5, devices_max));
    world.has_faults = prng.chance(3, 4) or mutant == .forget_schedules;
    world.loss_percent = if (world.has_faults) prng.below(30) else 0;
    world.state = try world.makeState(@intCast(prng.between(60, 600)));
    world.edges = try world.arena.allocator().alloc(Edge, @intCast(prng.between(1, edges_max)));
    for (world.edges, 0..) |*edge, number| {
        edge.* = .{
            .number = @intCast(number),
            .gpa = gpa,
            .peers = try .init(gpa, .{ .epoch = 1, .boots_max = 256, .others_max = 128 }),
            .boots = try .init(gpa, 256),
            .runner = try .init(gpa),
            .is_forgetful = mutant == .forget_schedules,
            // Without faults clocks are as NTP keeps them.
            .skew_ms = if (world.has_faults) @as(i64, @intCast(prng.below(6000))) - 3000 else 0,
        };
        edge.runner.journal = .{ .context = edge, .write = keep };
        edge.peers.setSite(world.now_us, world.siteOf(edge.number));
        edge.runner.setState(world.now_us, world.wallOf(edge, 0), world.state);
    }
    return world;
}

fn destroy(world: *Schedules) void {
    for (world.edges) |*edge| {
        edge.peers.deinit(world.gpa);
        edge.boots.deinit(world.gpa);
        edge.runner.deinit(world.gpa);
        edge.records.deinit(world.gpa);
    }
    world.flights.deinit(world.gpa);
    world.arena.deinit();
    world.gpa.destroy(world);
}

fn makeState(world: *Schedules, rate: u32) !*core.uplink.desired_state.DesiredState {
    const arena = world.arena.allocator();
    const devices = try arena.alloc(core.uplink.desired_state.Device, world.device_count);
    const indexes = try arena.alloc(u32, world.device_count);
    for (devices, indexes, 0..) |*device, *index, number| {
        index.* = @intCast(number);
        device.* = .{ .id = idOf(number), .name = "", .mac = macOf(number), .versionId = .zero, .enabled = true };
    }
    const instants = try arena.alloc(u64, runs_at_ms.len);
    for (instants, runs_at_ms) |*instant, at_ms| instant.* = begin_ms + at_ms;
    const schedules = try arena.alloc(core.uplink.desired_state.Schedule, 1);
    schedules[0] = .{
        .id = idOf(999),
        .action = "power_on",
        .power = "wake_on_lan",
        .ratePerMinute = rate,
        .devices = indexes,
        .instants = instants,
    };
    const state = try arena.create(core.uplink.desired_state.DesiredState);
    state.* = .{
        .edgeId = .zero,
        .organizationId = .zero,
        .siteId = .zero,
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = .ignore,
        .vdisks = &.{},
        .devices = devices,
        .powerOns = &.{},
        .schedules = schedules,
        .issuedUnixMs = begin_ms,
    };
    return state;
}

fn idOf(number: u64) base.Uuid {
    var bytes: [16]u8 = @splat(0x22);
    std.mem.writeInt(u64, bytes[0..8], number, .big);
    return .fromBytes(bytes);
}

fn macOf(number: u64) base.Mac {
    return .fromInt(@intCast(0x02bf_0000_0001 + number));
}

fn edgeId(number: usize) base.Uuid {
    return .fromRandom(@splat(@intCast(0x10 + number)));
}

fn endpointOf(number: usize) base.Endpoint {
    return .{ .ip = .init(10, 77, 0, @intCast(1 + number)), .port = 6911 };
}

fn siteOf(world: *const Schedules, own: u8) core.site.Edges {
    var edges: [edges_max]core.site.Edges.EdgeDescription = undefined;
    for (edges[0..world.edges.len], 0..) |*edge, number| edge.* = .{
        .id = edgeId(number),
        .weight = 10,
        .subnets = &.{},
        .draining = false,
        .address = endpointOf(number).ip,
        .peerPort = endpointOf(number).port,
    };
    return .init(&.{ .key = site_key, .edges = edges[0..world.edges.len] }, edgeId(own));
}

fn keep(context: *anyopaque, record: ScheduleRunner.Record) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    if (edge.is_forgetful) return;
    edge.records.append(edge.gpa, record) catch @panic("no memory");
}

fn wallOf(_: *const Schedules, edge: *const Edge, passed_us: u64) u64 {
    const true_ms: i64 = @intCast(begin_ms + passed_us / std.time.us_per_ms);
    return @intCast(true_ms + edge.skew_ms + edge.jump_ms);
}

fn fault(world: *Schedules, result: *Result) !void {
    const prng = &world.prng;
    // About one of each kind in a minute.
    if (prng.chance(1, 1200)) {
        const edge = &world.edges[@intCast(prng.below(world.edges.len))];
        if (edge.is_up) {
            edge.is_up = false;
            edge.back_at_us = world.now_us + prng.between(1, 30) * second;
            result.crashes += 1;
        }
    }
    if (prng.chance(1, 1200)) {
        const edge = &world.edges[@intCast(prng.below(world.edges.len))];
        const jumps = [_]i64{ 40_000, -40_000, 3_600_000, -3_600_000, 31_536_000_000, -31_536_000_000 };
        if (edge.jump_ms == 0) edge.jump_ms = jumps[@intCast(prng.below(jumps.len))];
        // Set right again before it is believed.
        edge.jump_ends_us = world.now_us + prng.between(1, 50) * second;
    }
}

fn restart(world: *Schedules, edge: *Edge) !void {
    edge.epoch += 1;
    edge.peers.deinit(world.gpa);
    edge.peers = try .init(world.gpa, .{ .epoch = edge.epoch, .boots_max = 256, .others_max = 128 });
    edge.peers.setSite(world.now_us, world.siteOf(edge.number));
    var boots = edge.boots.iterate();
    while (boots.next()) |boot| edge.peers.onBoot(boot);
    edge.runner.deinit(world.gpa);
    edge.runner = try .init(world.gpa);
    for (edge.records.items) |record| edge.runner.restore(record);
    edge.runner.journal = .{ .context = edge, .write = keep };
    edge.is_up = true;
    // A process that starts cannot tell that its clock is wrong: the machine has set it by then.
    edge.jump_ms = 0;
    const passed_us = world.now_us - 1000 * second;
    edge.runner.setState(world.now_us, world.wallOf(edge, passed_us), world.state);
}

/// What host/boots/schedules.zig and host/edge_loop.zig do, in small.
fn turn(world: *Schedules, edge: *Edge, passed_us: u64) void {
    edge.runner.observe(world.now_us, world.wallOf(edge, passed_us));
    const site: ScheduleRunner.Site =
        .{ .peers = &edge.peers, .policy = &policy, .network = network };
    while (edge.runner.next(world.now_us, site)) |action| {
        world.powerOn(edge, &action);
        edge.runner.ended(action.key, action.device, .sent, .empty);
    }
    var buffer: [core.site.schedule_report.size_max]u8 = undefined;
    while (core.site.schedule_report.next(&edge.runner, world.now_us, &buffer)) |_| {}
    world.noteBooting(edge, passed_us);
    world.ageBoots(edge);
    var message: [@import("wire").peer.packet_size_max]u8 = undefined;
    while (edge.peers.next(world.now_us, &message)) |bytes| world.send(edge.number, bytes);
}

fn powerOn(world: *Schedules, edge: *Edge, action: *const ScheduleRunner.Action) void {
    const run_index = for (runs_at_ms, 0..) |at_ms, index| {
        if (begin_ms + at_ms == action.key.instant_ms) break index;
    } else unreachable;
    edge.sent[run_index][@intCast(action.mac.toInt() - macOf(0).toInt())] += 1;
    if (edge.boots.findByMac(action.mac)) |ref| if (!edge.boots.get(ref).?.isOver()) return;
    world.boot_number += 1;
    const boot: core.boot.Boot = .init(.{
        .id = idOf(10_000 + world.boot_number),
        .mac = action.mac,
        .handle = world.boot_number,
        .token = @splat(1),
    }, .{ .version_id = .zero }, world.now_us, 1);
    const ref = edge.boots.insert(boot, world.now_us) catch return;
    edge.boots.apply(ref, world.now_us, .power_command);
    edge.peers.onBoot(edge.boots.get(ref).?);
    edge.peers.setBooting(world.now_us, edge.boots.active_count);
}

fn noteBooting(world: *Schedules, edge: *Edge, passed_us: u64) void {
    var run_index: ?usize = null;
    for (runs_at_ms, 0..) |at_ms, index| if (passed_us >= at_ms * std.time.us_per_ms) {
        run_index = index;
    };
    for (0..world.device_count) |number| {
        const ref = edge.boots.findByMac(macOf(number)) orelse continue;
        if (edge.boots.get(ref).?.isOver()) continue;
        world.is_booting[run_index orelse return][number] = true;
    }
}

fn ageBoots(world: *Schedules, edge: *Edge) void {
    if (world.now_us % second != 0) return;
    for (0..world.device_count) |number| {
        const ref = edge.boots.findByMac(macOf(number)) orelse continue;
        const boot = edge.boots.get(ref).?;
        if (boot.isOver() or world.now_us < boot.started_us + claimed_us) continue;
        edge.boots.supersede(ref, world.now_us);
        edge.peers.onBoot(edge.boots.get(ref).?);
    }
    edge.peers.setBooting(world.now_us, edge.boots.active_count);
}

fn send(world: *Schedules, from: u8, bytes: []const u8) void {
    for (0..world.edges.len) |to| {
        if (to == from or world.prng.chance(world.loss_percent, 100)) continue;
        var flight: Flight = .{
            .at_us = world.now_us + world.prng.below(60 * std.time.us_per_ms),
            .to = @intCast(to),
            .from = from,
            .size = @intCast(bytes.len),
            .bytes = undefined,
        };
        @memcpy(flight.bytes[0..bytes.len], bytes);
        world.flights.append(world.gpa, flight) catch @panic("no memory");
    }
}

fn deliver(world: *Schedules) void {
    var index: usize = 0;
    while (index < world.flights.items.len) {
        if (world.flights.items[index].at_us > world.now_us) {
            index += 1;
            continue;
        }
        const flight = world.flights.swapRemove(index);
        const edge = &world.edges[flight.to];
        if (edge.is_up) _ = edge.peers.receive(world.now_us, endpointOf(flight.from), flight.bytes[0..flight.size]);
    }
}

fn check(world: *const Schedules, result: *Result) void {
    for (runs_at_ms, 0..) |_, run_index| for (0..world.device_count) |number| {
        var total: u32 = 0;
        for (world.edges) |*edge| {
            const count = edge.sent[run_index][number];
            total += count;
            if (count > 1) return world.fail(result, "edge {d} started device {d} {d} times in run {d}", .{ edge.number, number, count, run_index });
        }
        result.sent += total;
        if (total == 0 and !world.is_booting[run_index][number]) return world.fail(result, "device {d} was not started in run {d}", .{ number, run_index });
        if (total > 1 and !world.has_faults) return world.fail(result, "device {d} was started by {d} edges in run {d}", .{ number, total, run_index });
    };
}

fn fail(_: *const Schedules, result: *Result, comptime format: []const u8, values: anytype) void {
    var violation: Invariants.Violation = .{ .check = .schedules, .text_buffer = undefined, .text_size = 0 };
    const text = std.mem.print(&violation.text_buffer, format, values) catch violation.text_buffer[0..];
    violation.text_size = @intCast(text.len);
    result.violation = violation;
}

test "every device is started in every run, whatever edges and clocks do, and a forgotten journal is found" {
    for (1..5) |seed| {
        const result = try run(std.testing.allocator, seed, .none);
        if (result.violation) |*violation| {
            std.debug.print("seed {d}: {s}\n", .{ seed, violation.text() });
            return error.TestUnexpectedResult;
        }
        if (seed == 1) try std.testing.expectEqual(result, try run(std.testing.allocator, seed, .none));
    }
    const is_found = for (1..30) |seed| {
        if ((try run(std.testing.allocator, seed, .forget_schedules)).violation != null) break true;
    } else false;
    try std.testing.expect(is_found);
}
