//! Where the simulated edge is on the site's network.

const base = @import("base");

pub const edge_ip: base.Ip4 = .init(10, 77, 0, 1);
pub const dhcp_port = 67;
pub const tftp_port = 69;
pub const http_port = 6980;
pub const stream_port = 6910;
/// The first address that the edge leases.
pub const pool_first: base.Ip4 = .init(10, 77, 0, 10);

pub fn endpoint(port: u16) base.Endpoint {
    return .{ .ip = edge_ip, .port = port };
}
