//! The DHCP server of one network: which address a client gets, and whether it gets NAK (RFC 2131
//! section 4.3). It must never grant what `DhcpLeases` refuses, and never answer for another
//! server.

const std = @import("std");
const base = @import("base");
const dhcp = @import("wire").dhcp;
const boot_client = @import("../boot/client.zig");
const dhcp_network = @import("network.zig");
const DhcpLeases = @import("leases.zig");
const Ip4 = base.Ip4;
const Network = dhcp_network.Network;
const BootClient = boot_client.BootClient;
const assert = std.debug.assert;

const ethernet_mtu = 1500;

pub const Client = DhcpLeases.Client;

pub fn clientOf(network: *const Network, packet: *const dhcp.Packet) Client {
    return .of(packet.chaddr, packet.options.client_identifier, network.identify_by);
}

/// The decision on a packet for this server.
pub const Verdict = union(enum) {
    /// OFFER or ACK with this address.
    give: struct { ip: Ip4, lease_time_s: u32 },
    /// INFORM: parameters alone.
    inform,
    nak,
    ignored: base.IgnoreReason,
};

/// Decides a DISCOVER, REQUEST or INFORM.
pub fn decide(leases: *DhcpLeases, now_us: u64, packet: *const dhcp.Packet) Verdict {
    const options = &packet.options;
    const client = clientOf(leases.network, packet);
    const lease_time_s = leaseTime(leases.network, options.lease_time_s);
    switch (options.message_type.?) {
        .discover => {
            const ip = leases.offer(now_us, &client, options.requested_ip) orelse
                return .{ .ignored = .dhcp_no_free_address };
            return .{ .give = .{ .ip = ip, .lease_time_s = lease_time_s } };
        },
        .request => return request(leases, now_us, &client, packet, lease_time_s),
        .inform => return .inform,
        else => unreachable,
    }
}

/// RFC 2131 section 4.3.2. SELECTING names this server; INIT-REBOOT requests the address that the
/// client had (option 50), RENEWING and REBINDING the one that it has (ciaddr).
fn request(
    leases: *DhcpLeases,
    now_us: u64,
    client: *const Client,
    packet: *const dhcp.Packet,
    lease_time_s: u32,
) Verdict {
    const network = leases.network;
    const ip = boot_client.addressOf(packet) orelse return .{ .ignored = .dhcp_bad_option };
    const is_selecting = packet.options.server_identifier != null;
    const refusal: Verdict =
        if (is_selecting or network.authoritative) .nak else .{ .ignored = .dhcp_bad_address };
    if (!network.subnet.contains(ip)) return refusal;
    // A client whose lease this server has lost: only the sole server of a network may assume that
    // this address is free.
    if (!is_selecting and !network.authoritative and !leases.isOf(client, ip))
        return .{ .ignored = .dhcp_bad_address };
    assert(network.subnet.contains(ip));
    return switch (leases.bind(now_us, client, ip, lease_time_s)) {
        .granted => .{ .give = .{ .ip = ip, .lease_time_s = lease_time_s } },
        .taken => refusal,
        // The address may belong to another server, which will answer.
        .unknown => if (is_selecting) .nak else .{ .ignored = .dhcp_bad_address },
    };
}

/// Returns the requested lease time within the network's limits.
fn leaseTime(network: *const Network, wish_s: ?u32) u32 {
    const wished = wish_s orelse return network.lease_time_s;
    const shortest_s = @min(network.lease_time_min_s, network.lease_time_s);
    const longest_s = @max(network.lease_time_max_s, network.lease_time_s);
    return std.math.clamp(wished, shortest_s, longest_s);
}

/// iPXE in network cards sizes its buffers by the option, has no memory for those of jumbo frames,
/// and falls silent (QEMU 7.2's ROMs with `host_mtu=9000`, 2026-11): firmware and loaders learn of
/// no more than Ethernet's size. The initramfs asks for itself.
fn mtuFor(network: *const Network, packet: *const dhcp.Packet) ?u16 {
    const mtu = network.mtu orelse return null;
    if (mtu <= ethernet_mtu) return mtu;
    const message_type = packet.options.message_type orelse return mtu;
    return if (BootClient.of(packet, message_type) == null) mtu else null;
}

/// Adds the network's parameters. A client with a parameter request list (option 55) gets only what
/// it lists; mask and times are always sent.
pub fn addParameters(
    out: *dhcp.Packet,
    leases: *const DhcpLeases,
    packet: *const dhcp.Packet,
    lease_time_s: ?u32,
) void {
    const network = leases.network;
    const query = &packet.options;
    const options = &out.options;
    if (lease_time_s) |lease_s| {
        const is_default = lease_s == network.lease_time_s;
        assert(lease_s > 0);
        options.lease_time_s = lease_s;
        // Configured times apply to a lease of the configured length.
        options.renewal_time_s = (if (is_default) network.renewal_time_s else null) orelse
            lease_s / 2;
        options.rebinding_time_s = (if (is_default) network.rebinding_time_s else null) orelse
            lease_s / 8 * 7;
    }
    options.subnet_mask = network.subnet.mask();
    if (query.wants(.routers)) options.routers = network.routers;
    if (query.wants(.dns_servers)) options.dns_servers = network.dns_servers;
    if (query.wants(.ntp_servers)) options.ntp_servers = network.ntp_servers;
    if (query.wants(.domain_name)) options.domain_name = network.domain_name;
    if (query.wants(.interface_mtu)) options.interface_mtu = mtuFor(network, packet);
    const client = clientOf(network, packet);
    if (query.wants(.host_name)) options.host_name = leases.hostNameOf(&client);
    // RFC 6842: an answer returns the client's identifier.
    options.client_identifier = query.client_identifier;
}
