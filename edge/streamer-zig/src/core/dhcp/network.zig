//! The networks in which an edge answers DHCP, and the choice of a packet's network: the one of the
//! interface that it arrived at, or a configured one that a relay agent, the client or its address
//! names (RFC 2131 section 4.3.1, RFC 3011, RFC 3527). It must never choose a network that is not
//! configured.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const dhcp = @import("wire").dhcp;
const Endpoint = base.Endpoint;
const Ip4 = base.Ip4;
const Ip4Prefix = base.Ip4Prefix;
const Mac = base.Mac;

pub const Mode = enum { proxy, server, off };

pub const networks_max = 64;
/// Addresses at which an edge listens.
pub const links_max = 16;
pub const reservations_max = 4096;
/// Routers, DNS or NTP servers, pools and relay agents of one network.
pub const addresses_max = 8;
pub const domain_name_size_max = 128;
pub const host_name_size_max = 63;
/// Addresses of one network's pools and reservations.
pub const pool_size_max = 16_384;
/// RFC 1542 section 4.1.1: relay agents drop packets that crossed more of them.
const hops_max = 16;

/// An address of this edge, as devices behind one interface reach it.
pub const Link = struct { ip: Ip4 };

pub const Pool = struct { first: Ip4, last: Ip4 };

/// An address reserved for one client, inside or outside the pools.
pub const Reservation = struct {
    ip: Ip4,
    /// At least one of the two is set; either one matches.
    mac: ?Mac = null,
    /// Option 61 as sent.
    client_id: ?[]const u8 = null,
    host_name: ?[]const u8 = null,
};

/// Slices live as long as the service.
pub const Network = struct {
    subnet: Ip4Prefix,
    mode: Mode,
    /// The link in this network; null for a network that only relay agents reach.
    link: ?u8 = null,
    /// Behind relay agents: the link whose address its devices use; null for the one at which the
    /// relay agent's packet arrived.
    via: ?u8 = null,
    pools: []const Pool = &.{},
    reservations: []const Reservation = &.{},
    /// Relay agents that may send requests for this network; empty: those with an address in a
    /// configured one.
    relays: []const Ip4 = &.{},
    routers: []const Ip4 = &.{},
    dns_servers: []const Ip4 = &.{},
    ntp_servers: []const Ip4 = &.{},
    domain_name: ?[]const u8 = null,
    /// Bytes.
    mtu: ?u16 = null,
    lease_time_s: u32 = lease_time_s_default,
    /// Limits of the lease time that a client requests (option 51).
    lease_time_min_s: u32 = 120,
    lease_time_max_s: u32 = 86400,
    /// Half and seven eighths of the lease where they are not set (RFC 2131 section 4.4.5).
    renewal_time_s: ?u32 = null,
    rebinding_time_s: ?u32 = null,
    /// No other server assigns addresses here: a client with a wrong one gets NAK at once.
    authoritative: bool = true,
    identify_by: IdentifyBy = .client_id,

    const lease_time_s_default = 3600;
};

/// What identifies a client. RFC 2131 section 4.2 says the client identifier, where there is one;
/// by MAC alone a machine keeps its address from its firmware to its system.
pub const IdentifyBy = enum { client_id, mac };

pub const NetworkChoice = union(enum) { network: u8, ignored: base.IgnoreReason };

/// Chooses the network of a client's packet.
pub fn choose(
    networks: []const Network,
    link: u8,
    source: Endpoint,
    packet: *const dhcp.Packet,
) NetworkChoice {
    if (packet.hops > hops_max) return .{ .ignored = .dhcp_too_many_hops };
    const options = &packet.options;
    if (!packet.giaddr.isZero()) {
        const wanted = options.linkSelection() orelse options.subnet_selection orelse packet.giaddr;
        const index = find(networks, wanted) orelse return .{ .ignored = .dhcp_relayed };
        if (!isRelay(networks, index, packet.giaddr)) return .{ .ignored = .dhcp_relayed };
        return .{ .network = index };
    }
    if (options.subnet_selection) |wanted|
        return if (find(networks, wanted)) |index| .{ .network = index } else .{
            .ignored = .dhcp_relayed,
        };
    // A renewing client sends from its own address, across routers, to this edge alone.
    if (!source.ip.isZero() and packet.ciaddr.isUnicast())
        if (find(networks, packet.ciaddr)) |index| return .{ .network = index };
    return .{ .network = ofLink(networks, link) };
}

/// Returns the network that contains this address: the smallest one where they are nested.
pub fn find(networks: []const Network, ip: Ip4) ?u8 {
    var found: ?u8 = null;
    for (networks, 0..) |*network, index| {
        if (!network.subnet.contains(ip)) continue;
        if (found) |other| if (networks[other].subnet.size >= network.subnet.size) continue;
        found = @intCast(index);
    }
    return found;
}

/// Returns the network of a link.
fn ofLink(networks: []const Network, link: u8) u8 {
    for (networks, 0..) |*network, index| {
        const own = network.link orelse continue;
        if (own == link) return @intCast(index);
    }
    unreachable; // `problemOf` has verified this.
}

/// This edge's addresses, and the choice of the one that a device uses.
pub const Addresses = struct {
    links: []const Link,
    networks: []const Network,
    http_port: u16,
    stream_port: u16,

    /// The endpoint at which a device reads files and reports its progress.
    pub fn http(addresses: *const Addresses, device: ?Ip4) Endpoint {
        return .{ .ip = addresses.facing(device orelse .zero), .port = addresses.http_port };
    }

    /// The endpoint at which a device reads its disk.
    pub fn stream(addresses: *const Addresses, device: ?Ip4) Endpoint {
        return .{ .ip = addresses.facing(device orelse .zero), .port = addresses.stream_port };
    }

    /// Tells whether this is one of the edge's own addresses.
    pub fn has(addresses: *const Addresses, ip: Ip4) bool {
        for (addresses.links) |link| if (link.ip.eql(ip)) return true;
        return false;
    }

    /// Returns the address in the device's own network; the first one for a device in none of them.
    pub fn facing(addresses: *const Addresses, device: Ip4) Ip4 {
        assert(addresses.links.len > 0);
        const links = addresses.links;
        if (links.len == 1) return links[0].ip;
        const index = find(addresses.networks, device) orelse return links[0].ip;
        const network = &addresses.networks[index];
        return links[network.link orelse network.via orelse 0].ip;
    }
};

fn isRelay(networks: []const Network, index: u8, giaddr: Ip4) bool {
    if (!giaddr.isUnicast()) return false;
    const relays = networks[index].relays;
    if (relays.len == 0) return find(networks, giaddr) != null;
    for (relays) |relay| if (relay.eql(giaddr)) return true;
    return false;
}

/// What is wrong with a configuration, and in which network.
pub const Problem = struct {
    network: u8,
    what: Kind,
    /// The pool or reservation at fault, if there is one.
    index: u32 = 0,

    pub const Kind = enum {
        subnet_twice,
        link_without_network,
        no_addresses,
        pool_backwards,
        pool_outside,
        pools_overlap,
        pool_too_large,
        reservation_outside,
        reservation_of_nobody,
        reservation_twice,
        lease_times,
    };

    fn at(network: usize, what: Kind, index: usize) Problem {
        return .{ .network = @intCast(network), .what = what, .index = @intCast(index) };
    }
};

/// Returns null if the service can work with these.
pub fn problemOf(networks: []const Network, link_count: usize) ?Problem {
    assert(networks.len <= networks_max);
    assert(link_count <= links_max);
    for (0..link_count) |link| {
        const has = for (networks) |*network| {
            if (network.link) |own| if (own == link) break true;
        } else false;
        if (!has) return .at(0, .link_without_network, link);
    }
    for (networks, 0..) |*network, index| {
        for (networks[0..index]) |*other|
            if (other.subnet.eql(network.subnet) and (other.link == null or network.link == null))
                return .at(index, .subnet_twice, 0);
        if (problemOfPools(network, index)) |problem| return problem;
        if (problemOfReservations(network, index)) |problem| return problem;
        const lease_s = network.lease_time_s;
        const renewal_s = network.renewal_time_s orelse lease_s / 2;
        const rebinding_s = network.rebinding_time_s orelse lease_s / 8 * 7;
        const is_ordered = lease_s > 0 and renewal_s <= rebinding_s and rebinding_s <= lease_s and
            network.lease_time_min_s <= network.lease_time_max_s;
        if (!is_ordered) return .at(index, .lease_times, 0);
    }
    return null;
}

fn problemOfPools(network: *const Network, index: usize) ?Problem {
    var size: u64 = network.reservations.len;
    for (network.pools, 0..) |pool, number| {
        const first = pool.first.toInt();
        const last = pool.last.toInt();
        if (last < first) return .at(index, .pool_backwards, number);
        if (!isUsable(network, pool.first)) return .at(index, .pool_outside, number);
        if (!isUsable(network, pool.last)) return .at(index, .pool_outside, number);
        for (network.pools[0..number]) |other|
            if (first <= other.last.toInt() and other.first.toInt() <= last)
                return .at(index, .pools_overlap, number);
        size += @as(u64, last - first) + 1;
    }
    if (size > pool_size_max) return .at(index, .pool_too_large, 0);
    if (network.mode == .server and size == 0) return .at(index, .no_addresses, 0);
    return null;
}

fn problemOfReservations(network: *const Network, index: usize) ?Problem {
    for (network.reservations, 0..) |*reservation, number| {
        if (!isUsable(network, reservation.ip)) return .at(index, .reservation_outside, number);
        if (reservation.mac == null and reservation.client_id == null)
            return .at(index, .reservation_of_nobody, number);
        for (network.reservations[0..number]) |*other|
            if (isSameReservation(other, reservation))
                return .at(index, .reservation_twice, number);
    }
    return null;
}

fn isSameReservation(a: *const Reservation, b: *const Reservation) bool {
    if (a.ip.eql(b.ip)) return true;
    if (a.mac) |mac| if (b.mac) |other| if (mac.eql(other)) return true;
    if (a.client_id) |id| if (b.client_id) |other| return std.mem.eql(u8, id, other);
    return false;
}

fn isUsable(network: *const Network, ip: Ip4) bool {
    return ip.isUnicast() and network.subnet.hasHost(ip);
}

const testing = std.testing;

fn packetOf(giaddr: Ip4, ciaddr: Ip4, options: dhcp.Options) dhcp.Packet {
    return .{
        .op = .request,
        .xid = 1,
        .chaddr = .fromInt(0x02bf00000001),
        .giaddr = giaddr,
        .ciaddr = ciaddr,
        .options = options,
    };
}

test "a packet belongs to its interface's network, or to the one that a relay agent names" {
    const networks = [_]Network{
        .{ .subnet = try .parse("10.1.0.0/16"), .mode = .server, .link = 0 },
        .{ .subnet = try .parse("10.2.0.0/16"), .mode = .server, .link = 1 },
        .{ .subnet = try .parse("10.3.0.0/16"), .mode = .server },
        .{ .subnet = try .parse("10.3.7.0/24"), .mode = .server },
        .{
            .subnet = try .parse("10.4.0.0/16"),
            .mode = .server,
            .relays = &.{.init(192, 0, 2, 9)},
        },
    };
    const nowhere: Endpoint = .{ .ip = .zero, .port = 68 };
    const relay: Endpoint = .{ .ip = .init(10, 3, 0, 1), .port = 67 };
    const Case =
        struct { link: u8 = 0, source: Endpoint, packet: dhcp.Packet, want: NetworkChoice };
    const link_selection = [_]u8{ 1, 2, 0, 7, 5, 4, 10, 3, 7, 0 };
    const link_selection_4 = [_]u8{ 5, 4, 10, 4, 0, 0 };
    var many_hops = packetOf(relay.ip, .zero, .{});
    many_hops.hops = 17;
    const cases = [_]Case{
        .{ .source = nowhere, .packet = packetOf(.zero, .zero, .{}), .want = .{ .network = 0 } },
        .{
            .link = 1,
            .source = nowhere,
            .packet = packetOf(.zero, .zero, .{}),
            .want = .{ .network = 1 },
        },
        .{ .source = relay, .packet = packetOf(relay.ip, .zero, .{}), .want = .{ .network = 2 } },
        .{
            .source = relay,
            .packet = packetOf(.init(10, 3, 7, 1), .zero, .{}),
            .want = .{ .network = 3 },
        },
        .{
            .source = relay,
            .packet = packetOf(relay.ip, .zero, .{ .relay_agent = &link_selection }),
            .want = .{ .network = 3 },
        },
        .{
            .source = relay,
            .packet = packetOf(relay.ip, .zero, .{ .subnet_selection = .init(10, 1, 0, 0) }),
            .want = .{ .network = 0 },
        },
        .{
            .source = nowhere,
            .packet = packetOf(.zero, .zero, .{ .subnet_selection = .init(10, 2, 0, 0) }),
            .want = .{ .network = 1 },
        },
        .{
            .source = .{ .ip = .init(10, 3, 0, 50), .port = 68 },
            .packet = packetOf(.zero, .init(10, 3, 0, 50), .{}),
            .want = .{ .network = 2 },
        },
        // A broadcast reveals where the client is; the address in it may be wrong.
        .{
            .source = nowhere,
            .packet = packetOf(.zero, .init(10, 3, 0, 50), .{}),
            .want = .{ .network = 0 },
        },
        .{
            .source = relay,
            .packet = packetOf(.init(192, 0, 2, 1), .zero, .{}),
            .want = .{ .ignored = .dhcp_relayed },
        },
        // Only its own relay agent sends requests for the last network.
        .{
            .source = relay,
            .packet = packetOf(.init(10, 4, 0, 1), .zero, .{}),
            .want = .{ .ignored = .dhcp_relayed },
        },
        .{
            .source = relay,
            .packet = packetOf(.init(192, 0, 2, 9), .zero, .{ .relay_agent = &link_selection_4 }),
            .want = .{ .network = 4 },
        },
        .{ .source = relay, .packet = many_hops, .want = .{ .ignored = .dhcp_too_many_hops } },
    };
    for (&cases, 0..) |*case, number| {
        errdefer std.debug.print("case {d}\n", .{number});
        const got = choose(&networks, case.link, case.source, &case.packet);
        try testing.expectEqual(case.want, got);
    }
}

test "a device uses the edge's address in its own network" {
    const addresses: Addresses = .{
        .links = &.{ .{ .ip = .init(10, 1, 0, 1) }, .{ .ip = .init(10, 2, 0, 1) } },
        .networks = &.{
            .{ .subnet = try .parse("10.1.0.0/16"), .mode = .proxy, .link = 0 },
            .{ .subnet = try .parse("10.2.0.0/16"), .mode = .proxy, .link = 1 },
            .{ .subnet = try .parse("10.3.0.0/16"), .mode = .proxy, .via = 1 },
            .{ .subnet = try .parse("10.4.0.0/16"), .mode = .proxy },
        },
        .http_port = 6980,
        .stream_port = 6910,
    };
    const cases = [_]struct { u8, Ip4 }{
        .{ 1, addresses.links[0].ip }, .{ 2, addresses.links[1].ip }, .{ 3, addresses.links[1].ip },
        .{ 4, addresses.links[0].ip }, .{ 9, addresses.links[0].ip },
    };
    for (cases) |case| try testing.expectEqual(case[1], addresses.facing(.init(10, case[0], 7, 7)));
}

test "an invalid configuration is refused with what is wrong" {
    const subnet: Ip4Prefix = try .parse("10.0.0.0/24");
    const mac: Mac = .fromInt(0x02bf00000001);
    const good: Network = .{
        .subnet = subnet,
        .mode = .server,
        .link = 0,
        .pools = &.{
            .{ .first = .init(10, 0, 0, 10), .last = .init(10, 0, 0, 20) },
            .{ .first = .init(10, 0, 0, 30), .last = .init(10, 0, 0, 30) },
        },
        .reservations = &.{.{ .ip = .init(10, 0, 0, 5), .mac = mac }},
    };
    try testing.expectEqual(null, problemOf(&.{good}, 1));
    const Case = struct {
        what: Problem.Kind,
        pools: []const Pool = &.{},
        reservations: []const Reservation = &.{},
        lease_time_s: u32 = 60,
    };
    const cases = [_]Case{
        .{ .what = .no_addresses },
        .{ .what = .pool_backwards, .pools = &.{
            .{ .first = .init(10, 0, 0, 9), .last = .init(10, 0, 0, 8) },
        } },
        .{ .what = .pool_outside, .pools = &.{
            .{ .first = .init(10, 0, 0, 9), .last = .init(10, 0, 1, 8) },
        } },
        .{ .what = .pool_outside, .pools = &.{
            .{ .first = .init(10, 0, 0, 0), .last = .init(10, 0, 0, 8) },
        } },
        .{ .what = .pool_outside, .pools = &.{
            .{ .first = .init(10, 0, 0, 1), .last = .init(10, 0, 0, 255) },
        } },
        .{ .what = .pools_overlap, .pools = &.{
            good.pools[0],
            .{ .first = .init(10, 0, 0, 20), .last = .init(10, 0, 0, 21) },
        } },
        .{ .what = .reservation_outside, .reservations = &.{
            .{ .ip = .init(10, 0, 1, 1), .mac = mac },
        } },
        .{ .what = .reservation_of_nobody, .reservations = &.{.{ .ip = .init(10, 0, 0, 1) }} },
        .{
            .what = .reservation_twice,
            .reservations = &.{ good.reservations[0], .{ .ip = .init(10, 0, 0, 6), .mac = mac } },
        },
        .{ .what = .lease_times, .pools = good.pools, .lease_time_s = 0 },
    };
    for (cases) |case| {
        errdefer std.debug.print("case: {t}\n", .{case.what});
        var network = good;
        network.pools = case.pools;
        network.reservations = case.reservations;
        network.lease_time_s = case.lease_time_s;
        try testing.expectEqual(case.what, problemOf(&.{network}, 1).?.what);
    }
    var large = good;
    large.subnet = try .parse("10.0.0.0/8");
    large.pools = &.{.{ .first = .init(10, 0, 0, 1), .last = .init(10, 0, 64, 1) }};
    try testing.expectEqual(.pool_too_large, problemOf(&.{large}, 1).?.what);
    try testing.expectEqual(.link_without_network, problemOf(&.{good}, 2).?.what);
    var remote = good;
    remote.link = null;
    try testing.expectEqual(.subnet_twice, problemOf(&.{ good, remote }, 1).?.what);
}
