//! Where the simulated edges are on the site's network.

const std = @import("std");
const base = @import("base");

pub const edges_max = 3;
pub const dhcp_port = 67;
pub const tftp_port = 69;
pub const http_port = 6980;
pub const stream_port = 6910;
pub const peer_port = 6911;
/// Each edge leases at most so many addresses of its own.
pub const pool_size_max = 62;

pub const attacker_ip: base.Ip4 = .init(10, 77, 0, 250);
/// Replays never come from this address.
pub const attacker_other_ip: base.Ip4 = .init(10, 77, 0, 251);

/// Returns the attacker's MAC address for its addresses, null for others.
pub fn attackerMacOf(ip: base.Ip4) ?base.Mac {
    if (!ip.eql(attacker_ip) and !ip.eql(attacker_other_ip)) return null;
    return .fromInt(0x02ee_0000_0001);
}

/// The first of the MAC addresses that the attacker invents.
const invented_first: u48 = 0x02cf_0000_0000;

pub fn inventedMac(number: u32) base.Mac {
    return .fromInt(invented_first + number);
}

pub fn isInvented(mac: base.Mac) bool {
    return mac.toInt() & ~@as(u48, std.math.maxInt(u32)) == invented_first;
}

pub const edgeIp = @import("../kit/network.zig").edgeIp;

/// Returns null for an address that is no edge's.
pub fn edgeOf(ip: base.Ip4) ?u8 {
    for (0..edges_max) |edge| if (ip.eql(edgeIp(@intCast(edge)))) return @intCast(edge);
    return null;
}

pub fn endpoint(edge: u8, port: u16) base.Endpoint {
    return .{ .ip = edgeIp(edge), .port = port };
}

/// The first address that an edge leases.
pub fn poolFirst(edge: u8) base.Ip4 {
    return .init(10, 77, 0, 10 + edge * (pool_size_max + 1));
}

/// The last byte is the device's index; the others are spread, so that devices compete for slots in
/// tables.
pub fn macOf(device: u8) base.Mac {
    return .{ .bytes = .{ 0x02, 0xbf, 0, device *% 59, device *% 101, device + 1 } };
}
