//! One simulated run: an edge, its devices, an attacker and a thief over the fake network, from one seed. Whatever is
//! wrong ends the run with a sentence.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const core = @import("core");
const disk = @import("disk.zig");
const FakeDevice = @import("fake_device.zig");
const FakeEdge = @import("fake_edge.zig");
const Network = @import("network.zig");
const Scenario = @import("scenario.zig");
const Trust = @import("trust.zig");
const Plant = @import("plant.zig").Plant;
const assert = std.debug.assert;
const Endpoint = base.Endpoint;

pub const World = @This();

/// After the network has healed, every boot is over by then.
const finish_within_us = 400 * std.time.us_per_s;
const events_max = 5_000_000;
/// Steps of the loop at one instant; a machine that asks for more says that it has something to do and does nothing.
const steps_at_once_max = 100_000;
const thief_endpoint: Endpoint = .{ .ip = .init(10, 0, 3, 1), .port = 5555 };
const http_piece_size = 16384;

pub const Options = struct {
    seed: u64,
    devices: u16 = 3,
    plant: Plant = .none,
    canary: bool = false,
};

pub const Report = struct {
    /// Null: everything held.
    violation: ?[]const u8,
    /// The device it was seen at.
    device: ?u16 = null,
    hash: u64,
    events: u64,
    packets: u64,
    boots: u64,
    reads: u64,
    restarts: u32,
    now_us: u64,
};

gpa: std.mem.Allocator,
prng: *base.Prng,
scenario: Scenario,
network: *Network,
edge: *FakeEdge,
trust: *Trust,
devices: []FakeDevice,
started_at_us: []u64,
thief: ?core.StreamClient = null,
is_healed: bool = false,
violation: ?[]const u8 = null,
violation_device: ?u16 = null,

/// Runs one seed to its end. The same options give the same report.
pub fn run(gpa: std.mem.Allocator, options: Options) !Report {
    assert(options.devices > 0);
    assert(options.devices <= Scenario.devices_max);
    var prng: base.Prng = .init(options.seed);
    const scenario: Scenario = .init(&prng);
    var network: Network = .{ .gpa = gpa, .prng = &prng, .faults = scenario.faults };
    defer network.deinit();
    var trust: Trust = .{ .gpa = gpa };
    defer trust.deinit();
    var edge: FakeEdge = try .init(gpa, &network, &prng, .{
        .mode = scenario.mode,
        .plant = options.plant,
        .trust = &trust,
    });
    defer edge.deinit();
    edge.store_error_percent = scenario.store_error_percent;
    const devices = try gpa.alloc(FakeDevice, options.devices);
    defer gpa.free(devices);
    const started_at_us = try gpa.alloc(u64, options.devices);
    defer gpa.free(started_at_us);
    @memset(started_at_us, 0);
    var world: World = .{
        .gpa = gpa,
        .prng = &prng,
        .scenario = scenario,
        .network = &network,
        .edge = &edge,
        .trust = &trust,
        .devices = devices,
        .started_at_us = started_at_us,
    };
    for (devices, 0..) |*fake, index| fake.* = try world.makeDevice(@intCast(index), &options);
    defer for (devices) |*fake| {
        fake.answer.deinit(gpa);
        fake.device.deinit(gpa);
    };
    defer if (world.thief) |*thief| thief.deinit(gpa);
    try world.scenario.schedule(&prng, &network, options.devices);
    try world.loop();
    return world.report();
}

fn makeDevice(world: *World, index: u16, options: *const Options) !FakeDevice {
    const own_address: ?base.Ip4 = if (world.scenario.mode == .proxy)
        .init(10, 0, 1, @intCast(index + 1))
    else
        null;
    return .{
        .network = world.network,
        .plant = options.plant,
        .index = index,
        .own_address = own_address,
        .canary = options.canary,
        .device = try .init(world.gpa, .{
            .mac = .fromInt(0x02bf00000001 + @as(u48, index)),
            .own_address = own_address,
            .tftp_port = wire.tftp.server_port,
            .reads = world.scenario.reads[0..world.scenario.reads_count],
            .speed_per_mille = world.scenario.speed_per_mille,
            .breather_us = 200 * std.time.us_per_ms,
        }),
    };
}

fn loop(world: *World) !void {
    const network = world.network;
    const deadline_us = world.scenario.heal_at_us + finish_within_us;
    var instant_us: u64 = 0;
    var steps_at_once: u32 = 0;
    while (world.violation == null) {
        if (network.arrived > events_max) return world.violate("more events than any run needs");
        steps_at_once = if (network.now_us == instant_us) steps_at_once + 1 else 0;
        instant_us = network.now_us;
        if (steps_at_once > steps_at_once_max) return world.violateStuck();
        if (network.now_us >= deadline_us) return world.violateUnfinished();
        if (world.isFinished()) return world.checkEnd();
        const at_us = @min(world.nextAt(), deadline_us);
        if (try network.next(at_us)) |event| {
            try world.take(&event);
        } else {
            network.now_us = @max(network.now_us, at_us);
        }
        try world.runTimers();
        try world.check();
    }
}

fn nextAt(world: *const World) u64 {
    var at_us = world.network.nextAt() orelse std.math.maxInt(u64);
    at_us = @min(at_us, world.edge.deadline());
    for (world.devices) |*fake| at_us = @min(at_us, fake.device.deadline() orelse std.math.maxInt(u64));
    if (world.thief) |*thief| at_us = @min(at_us, thief.deadline() orelse std.math.maxInt(u64));
    return at_us;
}

fn runTimers(world: *World) !void {
    const now_us = world.network.now_us;
    if (world.edge.deadline() <= now_us) try world.edge.tick();
    for (world.devices) |*fake| {
        const due_us = fake.device.deadline() orelse continue;
        if (due_us <= now_us) try fake.pump();
    }
    try world.pumpThief();
}

fn take(world: *World, event: *const Network.Event) !void {
    switch (event.*) {
        .datagram => |*datagram| {
            if (world.prng.chance(world.scenario.attack_per_mille, 1000)) try world.attack(datagram);
            try world.deliver(datagram);
        },
        .connection => |connection| try world.takeConnection(&connection),
        .fault => |fault| try world.takeFault(fault),
    }
}

fn deliver(world: *World, datagram: *const Network.Datagram) !void {
    if (datagram.to.ip.eql(FakeEdge.ip)) return world.edge.receive(datagram);
    if (datagram.to.eql(thief_endpoint)) {
        if (world.thief) |*thief| thief.receive(world.network.now_us, datagram.payload());
        return;
    }
    for (world.devices) |*fake| try fake.receive(datagram);
}

/// Somebody off the path who can send from any address and has seen old packets, but knows no session.
fn attack(world: *World, seen: *const Network.Datagram) !void {
    const prng = world.prng;
    var bytes: [Network.datagram_size_max]u8 = undefined;
    @memcpy(bytes[0..seen.size], seen.payload());
    var size: u16 = seen.size;
    const stream_port = wire.stream.port_default;
    const is_stream = seen.to.port == stream_port or seen.from.port == stream_port;
    if (is_stream) {
        const is_session_known = size >= 16 and std.mem.readInt(u64, bytes[8..16], .big) != 0;
        if (is_session_known) prng.fill(bytes[8..16]);
    } else prng.fill(bytes[0..size]);
    for (0..@intCast(prng.below(4))) |_| bytes[@intCast(prng.below(size))] ^= @as(u8, 1) << @intCast(prng.below(8));
    if (prng.chance(1, 4)) size = @intCast(prng.between(1, size));
    const stranger: Endpoint = .{ .ip = .init(10, 9, 9, @intCast(prng.below(250))), .port = 7777 };
    // A forged source, or its own; a session that was guessed wrong makes both harmless.
    const from = if (is_stream and prng.chance(1, 2) and bytes[0] & 15 != 1) seen.from else stranger;
    try world.network.place(100, from, seen.to, bytes[0..size]);
}

fn takeConnection(world: *World, connection: *const Network.Connection) !void {
    const fake = &world.devices[connection.device];
    if (connection.opening != fake.opening) return;
    // TCP repeats by itself until the network is whole again.
    if (world.network.is_partitioned) return world.network.connect(300_000, connection.*);
    switch (connection.what) {
        .request => try world.answerHttp(fake, connection),
        .answer => |piece| {
            try fake.receiveHttp(piece.first, piece.end);
        },
        .closed => {
            fake.device.httpClosed(world.network.now_us);
            try fake.pump();
        },
    }
}

fn answerHttp(world: *World, fake: *FakeDevice, connection: *const Network.Connection) !void {
    var script: [core.boot_script.size_max]u8 = undefined;
    const body = world.edge.httpBody(fake.path(), &script);
    var head: [128]u8 = undefined;
    const size = if (body) |found| found.size else 0;
    const status: []const u8 = if (body == null) "404 Not Found" else "200 OK";
    const text = std.mem.print(&head, "HTTP/1.1 {s}\r\ncontent-length: {d}\r\n\r\n", .{ status, size }) catch unreachable;
    fake.answer.clearRetainingCapacity();
    try fake.answer.appendSlice(world.gpa, text);
    if (body) |found| if (found.script) |bytes| try fake.answer.appendSlice(world.gpa, bytes);
    const total = text.len + size;
    var first: u64 = 0;
    var delay_us: u64 = 1000;
    while (first < total) {
        const end = @min(total, first + world.prng.between(1, http_piece_size));
        try world.network.connect(delay_us, .{
            .device = connection.device,
            .opening = connection.opening,
            .what = .{ .answer = .{ .first = first, .end = end } },
        });
        first = end;
        delay_us += 200;
    }
}

fn takeFault(world: *World, fault: Network.Fault) !void {
    switch (fault) {
        .edge_crash => {
            try world.edge.restart();
            for (world.devices) |*fake| try world.network.connect(500, .{
                .device = fake.index,
                .opening = fake.opening,
                .what = .closed,
            });
        },
        .partition => |begins| world.network.is_partitioned = begins,
        .next_version => world.edge.version += 1,
        .thief => try world.startThief(),
        .power_on => |index| try world.powerOn(index),
        .heal => {
            world.is_healed = true;
            world.network.is_partitioned = false;
            world.network.faults = .none;
            world.edge.store_error_percent = 0;
        },
    }
}

fn powerOn(world: *World, index: u16) !void {
    var random: core.Device.Random = undefined;
    random.xid = world.prng.nextU32();
    world.prng.fill(&random.nonce_seed);
    world.started_at_us[index] = world.network.now_us;
    try world.devices[index].powerOn(random);
}

/// Takes the token of a boot that has used it.
fn startThief(world: *World) !void {
    if (world.thief != null) return;
    for (world.devices) |*fake| {
        if (fake.device.client.session == null or fake.device.phase != .stage2) continue;
        const plan = fake.device.plan orelse continue;
        world.thief = try .init(world.gpa, .{ .reads_max = 1 });
        world.thief.?.start(world.network.now_us, .{
            .boot_id = plan.boot_id,
            .token = plan.token,
            .nonce_seed = @splat(0x66),
        });
        return;
    }
    if (!world.is_healed) try world.network.schedule(world.network.now_us + 100_000, .thief);
}

fn pumpThief(world: *World) !void {
    const thief = &(world.thief orelse return);
    const now_us = world.network.now_us;
    while (thief.nextEvent()) |event| switch (event) {
        .established => return world.violate("a stolen token opened a session"),
        else => {},
    };
    var out: [wire.stream.request_size_max]u8 = undefined;
    while (thief.transmit(now_us, &out)) |packet|
        try world.network.send(thief_endpoint, FakeEdge.stream_endpoint, packet);
}

fn check(world: *World) !void {
    if (world.trust.violation) |text| return world.violate(text);
    if (world.edge.stream.session_count > FakeEdge.sessions_max) return world.violate("more sessions than the table has");
    for (world.devices) |*fake| {
        if (fake.violation) |text| return world.violateAt(fake.index, text);
        if (fake.device.phase != .failed) continue;
        const failed = fake.device.outcome.?.failed;
        if (failed.phase == .stage2) return world.violateAt(fake.index, "a boot failed while it was reading");
        if (world.started_at_us[fake.index] >= world.scenario.heal_at_us)
            return world.violateAt(fake.index, "a boot failed on a healthy network");
        // Whoever stands before the machine turns it on again.
        fake.device.powerOff();
        try world.network.schedule(world.network.now_us + std.time.us_per_s, .{ .power_on = fake.index });
    }
}

fn isFinished(world: *const World) bool {
    if (!world.is_healed) return false;
    for (world.devices) |*fake| if (fake.device.phase != .ready) return false;
    return true;
}

fn checkEnd(world: *World) void {
    for (world.devices) |*fake| {
        const boot_id = fake.device.plan.?.boot_id;
        const ref = world.edge.boots.findById(boot_id) orelse
            return world.violateAt(fake.index, "the edge does not know a boot that got ready");
        const boot = world.edge.boots.get(ref).?;
        const outcome = boot.outcome orelse return world.violateAt(fake.index, "the edge did not hear of a boot's end");
        // A late copy of an earlier boot's DISCOVER may have superseded this one.
        if (fake.boots == 1 and outcome != .ready)
            return world.violateAt(fake.index, "a boot that got ready has another outcome at the edge");
        const reads = boot.record(.stage2).?.reads;
        if (reads < fake.device.profile.reads.len and world.edge.restarts == 0)
            return world.violateAt(fake.index, "the edge counted fewer reads than were done");
    }
}

fn violateUnfinished(world: *World) void {
    for (world.devices) |*fake| {
        if (fake.device.phase != .ready) return world.violateAt(fake.index, "a boot did not finish on a healthy network");
    }
    world.violate("the run did not end");
}

fn violateStuck(world: *World) void {
    const now_us = world.network.now_us;
    for (world.devices) |*fake| {
        const due_us = fake.device.deadline() orelse continue;
        if (due_us <= now_us) return world.violateAt(fake.index, "a device wants its turn and does nothing with it");
    }
    world.violate("the edge wants its turn and does nothing with it");
}

fn violateAt(world: *World, device: u16, text: []const u8) void {
    if (world.violation == null) world.violation_device = device;
    world.violate(text);
}

fn violate(world: *World, text: []const u8) void {
    if (world.violation == null) world.violation = text;
}

fn report(world: *World) Report {
    var boots: u64 = 0;
    var reads: u64 = 0;
    for (world.devices) |*fake| {
        boots += fake.boots;
        reads += fake.reads_checked;
    }
    return .{
        .violation = world.violation,
        .device = world.violation_device,
        .hash = world.network.hash.final(),
        .events = world.network.arrived,
        .packets = world.network.sent,
        .boots = boots,
        .reads = reads,
        .restarts = world.edge.restarts,
        .now_us = world.network.now_us,
    };
}

test "a seed gives the same run twice and everything holds" {
    const options: Options = .{ .seed = 1, .devices = 2 };
    const first = try run(std.testing.allocator, options);
    const second = try run(std.testing.allocator, options);
    try std.testing.expectEqual(null, first.violation);
    try std.testing.expectEqual(first.hash, second.hash);
    try std.testing.expectEqual(first.events, second.events);
}
