//! The edges of a site as an edge's desired state describes them, read once and kept as plain
//! values. Pure.

const std = @import("std");
const base = @import("base");
const key_text = @import("../uplink/key_text.zig");
const peer = @import("wire").peer;
const peer_transfer = @import("wire").peer_transfer;
const stream_ticket = @import("../stream/ticket.zig");
const assert = std.debug.assert;

pub const SiteEdges = @This();

/// Edges that a desired state may list.
pub const edges_max = 16;
const edge_subnets_max = 32;
const weight_max = 100;

key: peer.Key,
transfer_key: peer_transfer.Key,
ticket_keys: stream_ticket.Keys = .empty,
own_id: base.Uuid,
/// Always includes this edge.
edges: base.BoundedArray(Edge, edges_max + 1) = .empty,
own_index: u8 = 0,

pub const EdgeDescription = struct {
    id: base.Uuid,
    weight: u8,
    /// `a.b.c.d/n`.
    subnets: []const []const u8,
    draining: bool,
    address: ?base.Ip4 = null,
    peerPort: ?u16 = null,
    streamPort: ?u16 = null,
};

/// The edges of a site in the desired state. Names are those of the JSON.
pub const Description = struct {
    /// 32 bytes in base64. Sealed states have it and the ticket keys elsewhere
    /// (desired_state.zig).
    key: []const u8 = "",
    /// Like `key`, at most two: the first seals fail-over tickets, both open them.
    ticketKeys: []const []const u8 = &.{},
    edges: []const EdgeDescription,
};

pub const Edge = struct {
    id: base.Uuid,
    weight: u8,
    draining: bool,
    subnets: base.BoundedArray(Subnet, edge_subnets_max) = .empty,
    /// Source and destination of its messages; null while the control plane does not know it.
    endpoint: ?base.Endpoint = null,
    /// Where it serves devices' streams; null while the control plane does not know it.
    stream: ?base.Endpoint = null,

    pub fn isNear(edge: *const Edge, network: base.Ip4) bool {
        for (edge.subnets.constSlice()) |*subnet| if (subnet.contains(network)) return true;
        return false;
    }
};

/// `a.b.c.d/n`.
pub const Subnet = struct {
    first: base.Ip4,
    prefix_size: u6,

    pub fn parse(text: []const u8) error{InvalidSubnet}!Subnet {
        const ip_text, const size_text = std.mem.cutScalar(u8, text, '/') orelse
            return error.InvalidSubnet;
        const ip = base.Ip4.parse(ip_text) catch return error.InvalidSubnet;
        if (size_text.len == 0 or size_text.len > 2) return error.InvalidSubnet;
        for (size_text) |digit| if (!std.ascii.isDigit(digit)) return error.InvalidSubnet;
        const size = std.fmt.parseInt(u6, size_text, 10) catch return error.InvalidSubnet;
        if (size > 32) return error.InvalidSubnet;
        return .{ .first = networkOf(ip, size), .prefix_size = size };
    }

    pub fn contains(subnet: *const Subnet, ip: base.Ip4) bool {
        return networkOf(ip, subnet.prefix_size).eql(subnet.first);
    }
};

/// Returns the first address of the network with this prefix that contains the address.
pub fn networkOf(ip: base.Ip4, prefix_size: u6) base.Ip4 {
    assert(prefix_size <= 32);
    if (prefix_size == 0) return .zero;
    const host_bits: u5 = @intCast(32 - @as(u6, prefix_size));
    return .fromInt(ip.toInt() >> host_bits << host_bits);
}

/// Checks a state before it is accepted.
pub fn check(site: *const Description) error{ TooLarge, Malformed }!void {
    if (site.edges.len > edges_max) return error.TooLarge;
    for (site.edges) |*edge| if (edge.subnets.len > edge_subnets_max) return error.TooLarge;
    _ = key_text.parse(site.key) catch return error.Malformed;
    if (site.ticketKeys.len > stream_ticket.keys_max) return error.Malformed;
    for (site.ticketKeys) |text| _ = key_text.parse(text) catch return error.Malformed;
    for (site.edges, 0..) |*edge, index| {
        if (edge.weight > weight_max) return error.Malformed;
        if (edge.id.eql(.zero)) return error.Malformed;
        for (edge.subnets) |text| _ = Subnet.parse(text) catch return error.Malformed;
        for (site.edges[0..index]) |*other| if (other.id.eql(edge.id)) return error.Malformed;
    }
}

/// Reads an accepted state. An edge that its own state does not list serves only if no other edge
/// is left.
pub fn init(site: *const Description, own_id: base.Uuid) SiteEdges {
    const site_key = key_text.parse(site.key) catch unreachable;
    var result: SiteEdges = .{
        .key = peer.deriveKey(site_key),
        .transfer_key = peer_transfer.deriveKey(site_key),
        .own_id = own_id,
    };
    for (site.ticketKeys) |text|
        result.ticket_keys.appendAssumeCapacity(key_text.parse(text) catch unreachable);
    var own_index: ?u8 = null;
    for (site.edges) |*said| {
        var edge: Edge = .{ .id = said.id, .weight = said.weight, .draining = said.draining };
        for (said.subnets) |text|
            edge.subnets.appendAssumeCapacity(Subnet.parse(text) catch unreachable);
        if (said.address) |ip| if (said.peerPort) |port| {
            edge.endpoint = .{ .ip = ip, .port = port };
        };
        if (said.address) |ip| if (said.streamPort) |port| if (port != 0 and !ip.eql(.zero)) {
            edge.stream = .{ .ip = ip, .port = port };
        };
        if (said.id.eql(own_id)) own_index = @intCast(result.edges.count);
        result.edges.appendAssumeCapacity(edge);
    }
    if (own_index == null) {
        own_index = @intCast(result.edges.count);
        result.edges.appendAssumeCapacity(.{ .id = own_id, .weight = 0, .draining = false });
    }
    result.own_index = own_index.?;
    return result;
}

pub fn own(site: *const SiteEdges) *const Edge {
    return &site.edges.buffer[site.own_index];
}

/// Returns null for an edge of another site.
pub fn indexOf(site: *const SiteEdges, id: base.Uuid) ?u8 {
    for (site.edges.constSlice(), 0..) |*edge, index| if (edge.id.eql(id)) return @intCast(index);
    return null;
}

const testing = std.testing;

test "a subnet contains its own addresses and no others" {
    const subnet = try Subnet.parse("10.20.30.77/20");
    try testing.expect(subnet.first.eql(.init(10, 20, 16, 0)));
    try testing.expect(subnet.contains(.init(10, 20, 31, 255)));
    try testing.expect(!subnet.contains(.init(10, 20, 32, 0)));
    const all = try Subnet.parse("0.0.0.0/0");
    try testing.expect(all.contains(.init(192, 0, 2, 1)));
    const one = try Subnet.parse("192.0.2.1/32");
    try testing.expect(one.contains(.init(192, 0, 2, 1)));
    try testing.expect(!one.contains(.init(192, 0, 2, 0)));
    for ([_][]const u8{
        "",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/+1",
        "10.0.0/8",
        "/8",
        "10.0.0.0/008",
    }) |text|
        try testing.expectError(error.InvalidSubnet, Subnet.parse(text));
}

test "an edge that its state does not list serves last" {
    const key: [44]u8 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".*;
    const other: base.Uuid = .fromRandom(@splat(1));
    const own_id: base.Uuid = .fromRandom(@splat(2));
    const said: Description = .{
        .key = &key,
        .edges = &.{.{ .id = other, .weight = 10, .subnets = &.{}, .draining = false }},
    };
    try check(&said);
    const site: SiteEdges = .init(&said, own_id);
    try testing.expectEqual(2, site.edges.count);
    try testing.expect(site.own().id.eql(own_id));
    try testing.expectEqual(0, site.own().weight);
    try testing.expectEqual(0, site.indexOf(other).?);
    const twice: Description = .{ .key = &key, .edges = &.{ said.edges[0], said.edges[0] } };
    try testing.expectError(error.Malformed, check(&twice));
    var nameless = said.edges[0];
    nameless.id = .zero;
    try testing.expectError(error.Malformed, check(&.{ .key = &key, .edges = &.{nameless} }));
    const short: Description = .{ .key = "AAAA", .edges = &.{} };
    try testing.expectError(error.Malformed, check(&short));
}
