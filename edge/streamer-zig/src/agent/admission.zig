//! Decides whether this edge answers a device that requests a boot by DHCP: whether the device may
//! boot at all, and which edge of the site owns it. Runs before a boot begins, so that an edge that
//! does not own the device keeps no state for it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const candidates = @import("candidates.zig");
const mutants = @import("mutants.zig");

pub const Verdict = enum {
    answer,
    /// This edge does not answer; the reason is counted already.
    silence,
};

/// Judges a request. `network` is the first address of the device's network.
pub fn judge(
    /// `*Boots(Io)`.
    boots: anytype,
    now_us: u64,
    request: *const core.dhcp.Service.BootRequest,
    network: base.Ip4,
    size: usize,
) Verdict {
    const client = &request.client;
    const continued_boot = candidates.continued(
        boots,
        now_us,
        client.mac,
        @TypeOf(boots.*).dhcpRequestOf(client, request.packet.xid, size),
    );
    if (continued_boot == null) switch (boots.policy.decide(client.mac, boots.io.unixMs())) {
        .ignored_device => {
            boots.ignored.add(.dhcp_ignored_device);
            return .silence;
        },
        .unknown_device => {
            boots.ignored.add(.dhcp_unknown_device);
            boots.discover(now_us, request);
            return .silence;
        },
        .disabled, .version_missing, .target => {},
    };
    const is_loader = client.loader == .ipxe;
    const is_addressed = isAddressed(request);
    var asked = boots.askedOf(client.mac, network);
    asked.is_loader = is_loader;
    asked.is_addressed = is_addressed;
    const boot: ?*const core.boot.Boot = if (continued_boot) |ref| boots.get(ref) else null;
    // Until then the boot follows the policy.
    if (boot) |known| if (known.downloadedAt() > 0) {
        asked.version = known.assignment.version_id;
    };
    if (mutants.has(.answer_without_version)) asked.version = null;
    switch (boots.peers.decide(now_us, asked, .of(boot, is_loader))) {
        .answer => return .answer,
        .leave => {
            if (mutants.has(.answer_for_others)) return .answer;
            // A boot here goes on until the device has proved itself at that edge.
            if (continued_boot == null) candidates.releaseClaims(boots, client.mac);
            return .silence;
        },
    }
}

/// Returns whether the device addressed this edge by name: it takes no other server's answer.
pub fn isAddressed(request: *const core.dhcp.Service.BootRequest) bool {
    if (request.arrival.port == .pxe) return true;
    if (request.client.message_type == .discover) return false;
    return request.packet.options.server_identifier != null;
}
