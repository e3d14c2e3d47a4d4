//! The networks of an edge, out of its options and of what the interfaces of this machine say. Each
//! address that it listens at has one; the others are behind relay agents.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const options_module = @import("options.zig");
const assert = std.debug.assert;

const Complaint = options_module.Complaint;
const Ip4Prefix = base.Ip4Prefix;
const Network = core.dhcp_network.Network;
const Serve = options_module.Serve;

pub const Networks = struct {
    listens: []const host.EdgeSockets.Listen,
    links: []const core.dhcp_network.Link,
    networks: []const Network,
};

pub const Error = options_module.Error || error{OutOfMemory};

/// What is made lives in the arena.
pub fn find(arena: std.mem.Allocator, options: *const Serve, complaint: *Complaint) Error!Networks {
    const listens = try arena.alloc(host.EdgeSockets.Listen, options.listens.items.len);
    const links = try arena.alloc(core.dhcp_network.Link, listens.len);
    var networks: std.ArrayList(Network) = .empty;
    for (options.listens.items, listens, links, 0..) |ip, *listen, *link, index| {
        const interface = try findInterface(ip, complaint);
        const prefix_size = if (interface) |found| found.prefix_size else 8;
        listen.* = .{ .ip = ip, .interface = interface, .dhcp = false };
        link.* = .{ .ip = ip };
        try networks.append(arena, .{
            // One with no room for a second host has devices behind a router.
            .subnet = .of(ip, @intCast(@min(prefix_size, 30))),
            .mode = options.dhcp,
            .link = @intCast(index),
        });
    }
    if (options.pool) |*pool| networks.items[0].pools = pool[0..1];
    try check(networks.items, links.len, complaint);
    for (listens, 0..) |*listen, index| {
        for (networks.items) |*network| {
            const is_reached = network.link == null or network.link.? == index;
            if (is_reached and network.mode != .off) listen.dhcp = true;
        }
    }
    return .{ .listens = listens, .links = links, .networks = networks.items };
}

/// Null on loopback.
fn findInterface(ip: base.Ip4, complaint: *Complaint) Error!?host.sockets.Interface {
    if (host.sockets.isLoopback(ip)) return null;
    const found = host.sockets.interfaceOf(ip) catch
        return complaint.set("The addresses of this machine cannot be read.", .{});
    return found orelse complaint.set(
        "{f} is not an address of this machine; --listen needs one that is.",
        .{ip},
    );
}

fn check(networks: []const Network, link_count: usize, complaint: *Complaint) Error!void {
    const problem = core.dhcp_network.problemOf(networks, link_count) orelse return;
    const network = &networks[problem.network];
    return switch (problem.what) {
        .link_without_network => unreachable,
        .subnet_twice => complaint.set("There are two descriptions of {f}; one is enough.", .{network.subnet}),
        .no_addresses => complaint.set(
            "A DHCP server in {f} needs addresses to give: name them with --dhcp-pool FIRST-LAST.",
            .{network.subnet},
        ),
        .pool_backwards, .pool_outside, .pools_overlap => {
            const pool = network.pools[problem.index];
            return complaint.set("The pool {f}-{f} of {f} {s}.", .{ pool.first, pool.last, network.subnet, switch (problem.what) {
                .pool_backwards => "ends before it begins",
                .pool_outside => "is not of addresses that devices can have there",
                .pools_overlap => "overlaps another one",
                else => unreachable,
            } });
        },
        .pool_too_large => complaint.set(
            "{f} has more than {d} addresses to give; make its pools smaller.",
            .{ network.subnet, core.dhcp_network.pool_size_max },
        ),
        .reservation_outside, .reservation_of_nobody, .reservation_twice => {
            const ip = network.reservations[problem.index].ip;
            return complaint.set("The reservation of {f} in {f} {s}.", .{ ip, network.subnet, switch (problem.what) {
                .reservation_outside => "is not of an address that a device can have there",
                .reservation_of_nobody => "needs a MAC address or a client identifier",
                .reservation_twice => "has an address or a client that another one has already",
                else => unreachable,
            } });
        },
        .lease_times => complaint.set(
            "The lease times of {f} do not fit: renewal before rebinding before the lease's end, and the shortest lease before the longest.",
            .{network.subnet},
        ),
    };
}
