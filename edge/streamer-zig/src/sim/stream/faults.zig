//! Injects the faults of a run of the stream's simulation into devices, edges and the network, as
//! its seed says.

const std = @import("std");
const base = @import("base");
const StreamDevice = @import("device.zig");
const StreamScenario = @import("scenario.zig");
const StreamWorld = @import("world.zig");
const network_module = @import("network.zig");
const Endpoint = base.Endpoint;

/// Ends the faults of a link except the packet sizes that its path forwards.
pub fn openLink(world: *StreamWorld, index: u8) void {
    const own = &world.network.links[index];
    own.is_cut = @splat(false);
    own.openPath();
}

/// Injects one of the faults that may occur in this run.
pub fn inject(world: *StreamWorld) error{OutOfMemory}!void {
    const prng = &world.prng;
    const occurring = world.scenario.faults.intersectWith(StreamScenario.occurring);
    if (occurring.count() == 0) return;
    var faults = occurring.iterator();
    for (0..prng.below(occurring.count())) |_| _ = faults.next();
    const fault = faults.next().?;
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
        .thieves => if (device.state != .off)
            try world.site.edges[at].tryToken(device.boot, attacker(world)),
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
