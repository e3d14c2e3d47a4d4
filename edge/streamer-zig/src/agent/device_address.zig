//! Judges whether a peer is the device that it asks for. A boot's script has its token, so it goes
//! only to an address that belongs to the device's MAC address: by a lease of this edge's own DHCP
//! server, or by the kernel's neighbour table. Networks behind routers have neither; whoever runs
//! the edge names those that he trusts. Whoever uses another machine's MAC address in that
//! machine's own network deceives this.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

pub const Verdict = enum {
    /// The address belongs to this MAC address.
    proven,
    /// Nothing tells, in a network where any machine may name any MAC address.
    trusted,
    /// Nothing tells.
    unknown,
    /// The neighbour table has another MAC address.
    another,
};

/// Networks that an edge can name as trusted.
pub const trusted_max = 16;

/// `boots` is a `*Boots(Io)`. A neighbour entry counts also in a trusted network: that one is
/// attached then.
pub fn judge(boots: anytype, peer: base.Ip4, mac: base.Mac) Verdict {
    if (mutants.has(.script_for_strangers)) return .trusted;
    if (boots.leases) |service| if (service.macOf(boots.io.now(), peer)) |owner|
        if (owner.eql(mac)) return .proven;
    if (boots.io.neighbourOf(peer)) |known| return if (known.eql(mac)) .proven else .another;
    for (boots.trusted) |network| if (network.contains(peer)) return .trusted;
    return .unknown;
}

/// Returns the MAC address of a peer as far as something proves it.
pub fn macOf(boots: anytype, peer: base.Ip4) ?base.Mac {
    if (boots.leases) |service| if (service.macOf(boots.io.now(), peer)) |mac| return mac;
    return boots.io.neighbourOf(peer);
}

/// Returns whether a peer may have what is meant for the device of this boot alone; a refusal is
/// counted.
pub fn mayBeDevice(boots: anytype, boot: *core.boot.Boot, peer: base.Ip4) bool {
    assert(boot.identity.mac.isDevice());
    const is_device = switch (judge(boots, peer, boot.identity.mac)) {
        .proven, .trusted => true,
        .unknown => boot.isAt(peer),
        .another => false,
    };
    if (!is_device) boots.ignored.add(.device_unconfirmed);
    return is_device;
}

/// Learns a boot's address from DHCP. What a packet says does not displace what is proven.
pub fn learnByDhcp(boots: anytype, boot: *core.boot.Boot, ip: base.Ip4) void {
    const is_confirmed = switch (judge(boots, ip, boot.identity.mac)) {
        .proven, .trusted => true,
        .unknown, .another => false,
    };
    if (boot.facts.is_ip_confirmed and !is_confirmed) return;
    boots.table.setAddress(boot, ip, is_confirmed);
}

/// Returns whether a boot's device has this address, and keeps it if so.
pub fn isDevice(boots: anytype, boot: *core.boot.Boot, peer: base.Ip4) bool {
    if (boot.isAt(peer)) return true;
    switch (judge(boots, peer, boot.identity.mac)) {
        .proven => {},
        .trusted => if (!peer.eql(boot.facts.ip orelse return false)) return false,
        .unknown, .another => return false,
    }
    if (mutants.has(.address_unindexed)) {
        boot.facts.ip = peer;
        boot.facts.is_ip_confirmed = true;
    } else boots.table.setAddress(boot, peer, true);
    return true;
}

/// Learns a boot's address from a request for its script by MAC address. In a trusted network it
/// displaces an address that is not proven: a DHCP packet may have said that one, or offered it.
pub fn learnByScript(boots: anytype, boot: *core.boot.Boot, peer: base.Ip4) void {
    const mac = boot.identity.mac;
    const is_proven = if (boot.facts.ip) |ip| judge(boots, ip, mac) == .proven else false;
    if (!is_proven and judge(boots, peer, mac) == .trusted)
        boots.table.setAddress(boot, peer, boot.facts.is_ip_confirmed);
    learnByRequest(boots, boot, peer);
    assert(is_proven or boot.facts.ip != null or !boot.facts.is_ip_confirmed);
}

/// Learns a boot's address from a request by TFTP or HTTP. In a trusted network the first one that
/// asks has it.
pub fn learnByRequest(boots: anytype, boot: *core.boot.Boot, peer: base.Ip4) void {
    if (boot.facts.ip == null and judge(boots, peer, boot.identity.mac) == .trusted)
        boots.table.setAddress(boot, peer, boot.facts.is_ip_confirmed);
    _ = isDevice(boots, boot, peer);
    assert(boot.facts.ip != null or !boot.facts.is_ip_confirmed);
}
