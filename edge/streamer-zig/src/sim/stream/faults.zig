//! What happens to devices, edges and the network between them in a run of the stream's proof, now and then, as its seed says.

const std = @import("std");
const base = @import("base");
const StreamDevice = @import("device.zig");
const network_module = @import("network.zig");
const StreamScenario = @import("scenario.zig");
const StreamWorld = @import("world.zig");
const Endpoint = base.Endpoint;

pub fn openLink(world: *StreamWorld, index: u8) void {
    const own = &world.network.links[index];
    own.is_cut = @splat(false);
    own.openPath();
}

/// One of the things that may happen in this run.
pub fn inject(world: *StreamWorld) error{OutOfMemory}!void {
    const prng = &world.prng;
    const happening = world.scenario.faults.intersectWith(StreamScenario.happenings);
    if (happening.count() == 0) return;
    var faults = happening.iterator();
    for (0..prng.below(happening.count())) |_| _ = faults.next();
    const fault = faults.next().?;
    const index: u8 = @intCast(prng.below(world.scenario.device_count));
    const own = &world.network.links[index];
    const device = &world.devices[index];
    const at: u8 = @intCast(prng.below(world.site.edge_count));
    const edge = &world.site.edges[at];
    switch (fault) {
        .cuts => breakFor(world, index, .both),
        .one_way_cuts => breakFor(world, index, if (prng.chance(1, 2)) .to_edge else .to_device),
        .black_holes => {
            const most: u64 = if (prng.chance(1, 2)) 1472 else own.path_max;
            const payload_max = &own.payload_max[@intCast(prng.below(2))];
            payload_max.* = @min(payload_max.*, @as(u16, @intCast(prng.between(300, most))));
            world.network.plan(world.network.now_us + prng.below(5 * std.time.us_per_s), .{ .link_open = index });
        },
        .path_changes => {
            own.path_max = StreamScenario.pathSize(prng);
            own.openPath();
            world.site.reachability.restart(&world.site, index);
        },
        .stops, .edge_cuts, .crashes => {
            var struck = edgesFrom(world, at);
            while (struck.next()) |each| switch (fault) {
                .stops => stopFor(world, each),
                .edge_cuts => cutFor(world, index, each),
                else => crash(world, each),
            };
        },
        .refused_ports => if (prng.chance(1, 4))
            world.network.plan(world.network.now_us, .{ .refused = .{ .link = index, .edge = at } }),
        .addresses => changeAddress(world, index),
        .replays => for (0..prng.between(1, 40)) |_| world.network.replay(attacker(world)),
        .garbage => for (0..prng.between(1, 10)) |_| {
            var bytes: [1472]u8 = undefined;
            const size: usize = @intCast(prng.below(bytes.len + 1));
            prng.fill(bytes[0..size]);
            world.network.inject(.{
                .link = 0,
                .edge = at,
                .direction = .to_edge,
                .from = if (prng.chance(1, 2)) own.address else attacker(world),
                .to = network_module.edgeAddress(at),
            }, bytes[0..size]);
        },
        .thieves => if (device.state != .off) try edge.tryToken(device.boot, attacker(world)),
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
        .store_errors, .missing_versions, .slow_devices, .few_sessions, .full_caches => unreachable,
    }
}

fn breakFor(world: *StreamWorld, index: u8, what: enum { both, to_edge, to_device }) void {
    const own = &world.network.links[index];
    switch (what) {
        .both => own.is_cut = @splat(true),
        .to_edge => own.is_cut[@backingInt(network_module.Direction.to_edge)] = true,
        .to_device => own.is_cut[@backingInt(network_module.Direction.to_device)] = true,
    }
    world.network.plan(world.network.now_us + forAWhile(world), .{ .link_open = index });
}

fn forAWhile(world: *StreamWorld) u64 {
    return world.prng.below(if (world.prng.chance(1, 2)) std.time.us_per_s else 15 * std.time.us_per_s);
}

/// Mostly this one alone; now and then also some of those that come after it, and one of a site is always left.
fn edgesFrom(world: *StreamWorld, first: u8) Struck {
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

fn stopFor(world: *StreamWorld, at: u8) void {
    const edge = &world.site.edges[at];
    if (edge.process == null) return;
    edge.stop();
    world.network.plan(world.network.now_us + forAWhile(world), .{ .edge_resume = at });
}

/// From this device, or from all.
fn cutFor(world: *StreamWorld, device: u8, at: u8) void {
    if (world.prng.chance(1, 2)) world.network.edge_is_cut[at] = true else world.network.links[device].is_cut_from[at] = true;
    world.network.plan(world.network.now_us + forAWhile(world), .{ .edge_reconnect = at });
}

/// Of somebody who is no device.
fn attacker(world: *StreamWorld) Endpoint {
    return .{ .ip = .init(10, 77, 9, @intCast(world.prng.below(4))), .port = @intCast(world.prng.between(1, 8)) };
}

fn changeAddress(world: *StreamWorld, index: u8) void {
    const prng = &world.prng;
    const device = &world.devices[index];
    if (device.state == .off or device.boot.addresses.isFull()) return;
    const own = &world.network.links[index];
    var address = world.newAddress(index);
    const other: u8 = @intCast(prng.below(world.scenario.device_count));
    if (other != index and prng.chance(1, 3) and world.devices[other].state != .off and !world.devices[other].boot.addresses.isFull()) {
        // The other one gets a new one, and this one has what it had.
        address = world.network.links[other].address;
        world.network.links[other].address = world.newAddress(other);
        world.devices[other].boot.addresses.appendAssumeCapacity(world.network.links[other].address);
    }
    own.address = address;
    world.site.reachability.restart(&world.site, index);
    world.site.reachability.restart(&world.site, other);
    device.boot.addresses.appendAssumeCapacity(address);
}

fn crash(world: *StreamWorld, at: u8) void {
    const edge = &world.site.edges[at];
    if (edge.process == null) return;
    edge.crash(!world.scenario.faults.contains(.lost_keys) or world.prng.chance(3, 4));
    const is_short = world.prng.chance(1, 2);
    // Where there is another edge, this one may be away for long.
    const most_us: u64 = if (is_short) 10_000 else if (world.site.edge_count > 1) 20 * std.time.us_per_s else 4 * std.time.us_per_s;
    world.network.plan(world.network.now_us + world.prng.below(most_us), .{ .edge_start = at });
}

fn giveOrder(world: *StreamWorld, device: *StreamDevice) void {
    if (device.state != .on or device.boot.orders_given.isFull()) return;
    var id: [16]u8 = undefined;
    world.prng.fill(&id);
    if (world.site.order(device.index, id)) device.boot.orders_given.appendAssumeCapacity(id);
}
