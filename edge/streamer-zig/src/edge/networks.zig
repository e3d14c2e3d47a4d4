//! Derives the networks of an edge from its options and from the interfaces of this machine. Each
//! address that the edge listens on has a network; all other networks are behind relay agents.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const dhcp_config_file = @import("dhcp_config_file.zig");
const options_module = @import("options.zig");
const subnet_settings = @import("subnet_settings.zig");
const assert = std.debug.assert;

const Complaint = options_module.Complaint;
const Ip4Prefix = base.Ip4Prefix;
const Network = core.dhcp.network.Network;
const Serve = options_module.Serve;
const SubnetSettings = subnet_settings.SubnetSettings;

pub const Networks = struct {
    listens: []const host.EdgeSockets.Listen,
    links: []const core.dhcp.network.Link,
    networks: []const Network,
};

pub const Error = options_module.Error || error{OutOfMemory};

/// Allocates the result in the arena.
pub fn find(
    arena: std.mem.Allocator,
    io: std.Io,
    options: *const Serve,
    complaint: *Complaint,
) Error!Networks {
    var settings: std.ArrayList(SubnetSettings) = .empty;
    if (options.dhcp_config) |path|
        try settings.appendSlice(arena, try dhcp_config_file.read(arena, io, path, complaint));
    try settings.appendSlice(arena, options.subnets.items);
    const listens = try arena.alloc(host.EdgeSockets.Listen, options.listens.items.len);
    const links = try arena.alloc(core.dhcp.network.Link, listens.len);
    var networks: std.ArrayList(Network) = .empty;
    for (options.listens.items, listens, links, 0..) |ip, *listen, *link, index| {
        const interface = try findInterface(ip, complaint);
        const prefix_size = if (interface) |found| found.prefix_size else 8;
        listen.* = .{ .ip = ip, .interface = interface, .dhcp = false };
        link.* = .{ .ip = ip };
        try networks.append(arena, .{
            // A network without a second host address has its devices behind a router.
            .subnet = .of(ip, @intCast(@min(prefix_size, 30))),
            .mode = options.dhcp,
            .link = @intCast(index),
        });
    }
    try settle(arena, options, settings.items, &networks, complaint);
    try check(networks.items, links.len, complaint);
    for (listens, 0..) |*listen, index| {
        for (networks.items) |*network| {
            const is_reached = network.link == null or network.link.? == index;
            if (is_reached and network.mode != .off) listen.dhcp = true;
        }
    }
    return .{ .listens = listens, .links = links, .networks = networks.items };
}

/// A subnet that contains an address of this edge describes that address's network; the others are
/// behind relay agents.
fn settle(
    arena: std.mem.Allocator,
    options: *const Serve,
    settings: []const SubnetSettings,
    networks: *std.ArrayList(Network),
    complaint: *Complaint,
) Error!void {
    const listens = options.listens.items;
    var is_described: [core.dhcp.network.links_max]bool = @splat(false);
    for (settings) |*said| {
        var network = said.network;
        network.mode = said.mode orelse options.dhcp;
        const own = for (listens, 0..) |ip, index| {
            if (network.subnet.contains(ip)) break index;
        } else null;
        if (own) |index| {
            network.link = @intCast(index);
            if (said.server) |server| if (!server.eql(listens[index])) return complaint.set(
                "In {f} this edge's address is {f}, not {f}.",
                .{ network.subnet, listens[index], server },
            );
            if (is_described[index]) return complaint.set(
                "There are two descriptions of the network of {f}; one is enough.",
                .{listens[index]},
            );
            is_described[index] = true;
            networks.items[index] = network;
            continue;
        }
        network.via = indexOf(listens, said.server orelse host.sockets.sourceTo(network.subnet.ip));
        if (said.server) |server| if (network.via == null) return complaint.set(
            "{f} is configured for {f}, but no --listen has this address.",
            .{ network.subnet, server },
        );
        if (networks.items.len == core.dhcp.network.networks_max) return complaint.set(
            "There are more than {d} subnets.",
            .{core.dhcp.network.networks_max},
        );
        try networks.append(arena, network);
    }
    for (listens, 0..) |ip, index| for (networks.items[0..index]) |*other| {
        if (other.subnet.eql(networks.items[index].subnet)) return complaint.set(
            "{f} and {f} are in the same network {f}; one --listen serves all its devices.",
            .{ listens[other.link.?], ip, other.subnet },
        );
    };
    if (options.pool) |*pool| {
        const index = core.dhcp.network.find(networks.items, pool[0].first) orelse 0;
        const network = &networks.items[index];
        if (network.pools.len > 0) return complaint.set(
            "--dhcp-pool and the pools of {f} describe the same addresses; give one of them.",
            .{network.subnet},
        );
        network.pools = pool[0..1];
    }
}

fn indexOf(listens: []const base.Ip4, wanted: ?base.Ip4) ?u8 {
    const ip = wanted orelse return null;
    for (listens, 0..) |listen, index| if (listen.eql(ip)) return @intCast(index);
    return null;
}

/// Returns null on loopback.
fn findInterface(ip: base.Ip4, complaint: *Complaint) Error!?host.sockets.Interface {
    if (host.sockets.isLoopback(ip)) return null;
    const found = host.sockets.interfaceOf(ip) catch
        return complaint.set("The addresses of this machine cannot be read.", .{});
    return found orelse
        complaint.set("{f} is not an address of this machine; --listen needs one that is.", .{ip});
}

fn check(networks: []const Network, link_count: usize, complaint: *Complaint) Error!void {
    const problem = core.dhcp.network.problemOf(networks, link_count) orelse return;
    const network = &networks[problem.network];
    return switch (problem.what) {
        .link_without_network => unreachable,
        .subnet_twice => complaint.set(
            "There are two descriptions of {f}; one is enough.",
            .{network.subnet},
        ),
        .no_addresses => complaint.set(
            "--dhcp server needs addresses to lease in {f}: --dhcp-pool FIRST-LAST, or a pool of its --subnet.",
            .{network.subnet},
        ),
        .pool_backwards, .pool_outside, .pools_overlap => {
            const pool = network.pools[problem.index];
            return complaint.set(
                "The pool {f}-{f} of {f} {s}.",
                .{
                    pool.first, pool.last, network.subnet,
                    switch (problem.what) {
                        .pool_backwards => "ends before it begins",
                        .pool_outside => "has addresses that devices cannot have there",
                        .pools_overlap => "overlaps another one",
                        else => unreachable,
                    },
                },
            );
        },
        .pool_too_large => complaint.set(
            "{f} has more than {d} addresses to lease; make its pools smaller.",
            .{ network.subnet, core.dhcp.network.pool_size_max },
        ),
        .reservation_outside, .reservation_of_nobody, .reservation_twice => {
            const ip = network.reservations[problem.index].ip;
            return complaint.set(
                "The reservation of {f} in {f} {s}.",
                .{
                    ip, network.subnet,
                    switch (problem.what) {
                        .reservation_outside => "has an address that a device cannot have there",
                        .reservation_of_nobody => "needs a MAC address or a client identifier",
                        .reservation_twice => "has an address or a client of another reservation",
                        else => unreachable,
                    },
                },
            );
        },
        .lease_times => complaint.set(
            "The lease times of {f} contradict each other: renewal comes before rebinding, rebinding before the lease's end, and the shortest lease is shorter than the longest.",
            .{network.subnet},
        ),
    };
}
