//! The network of the stream's simulation: its events and its limits over `kit/network.zig`.

const base = @import("base");
const wire = @import("wire").stream;
const Invariants = @import("invariants.zig");
const kit = @import("../kit/network.zig");

pub const links_max = 12;
pub const edges_max = 4;
pub const start_us = kit.start_us;
pub const Direction = kit.Direction;
pub const Packet = kit.Packet;

pub const Network = kit.Network(Event, Invariants, .{
    .links = links_max,
    .edges = edges_max,
    .payload_size = wire.packet_size_max,
    .events = 16 * 1024,
    .packets = 4 * 1024,
    .sniffed = 24,
});

pub const Event = union(enum) {
    packet: Packet,
    device_wake: u8,
    /// The disk of this edge has finished something.
    edge_wake: u8,
    edge_second,
    edge_start: u8,
    edge_resume: u8,
    edge_reconnect: u8,
    /// The network of a device reports that nobody listens at this edge.
    refused: struct { link: u8, edge: u8 },
    fault,
    link_open: u8,
};

pub fn edgeAddress(index: u8) base.Endpoint {
    return .{ .ip = kit.edgeIp(index), .port = wire.port_default };
}

/// Returns the edge with this address, which must be one.
pub fn edgeOf(address: base.Endpoint) u8 {
    return address.ip.bytes[3] - 1;
}
