//! DHCP on the network: datagrams of ports 67 and 4011, in batches, to the agent.

const agent = @import("agent");
const Agent = @import("../edge_io.zig").Agent;
const UdpSocket = @import("udp_socket.zig");

pub const DhcpPort = @This();

policy: Agent.Dhcp,

pub const Port = @FieldType(agent.dhcp.Arrival, "port");

/// Everything that waits at one of the two sockets, at most one batch.
pub fn receive(port: *DhcpPort, socket: *UdpSocket, link: u8, which: Port, now_us: u64) void {
    const count = socket.receive();
    for (0..count) |index| {
        const datagram = socket.datagram(index);
        port.policy.receive(&.{
            .source = datagram.from,
            .port = which,
            .link = link,
            .bytes = datagram.bytes,
            .at_us = datagram.at_us,
        }, now_us);
    }
}
