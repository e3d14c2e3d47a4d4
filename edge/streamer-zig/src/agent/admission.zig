//! Whether a device that asks to boot by DHCP is answered by this edge: whether it may boot at all,
//! and whose of the site's edges it is. Called before a boot is begun for it, so that an edge whose
//! the device is not keeps nothing of it.

const std = @import("std");
const base = @import("base");
const core = @import("core");

pub const Verdict = enum {
    answer,
    /// It gets no answer here; counted already.
    silence,
};

/// `network`: the first address of the one that the device is in.
pub fn judge(
    /// `*Boots(Io)`.
    boots: anytype,
    now_us: u64,
    request: *const core.dhcp.Service.BootRequest,
    network: base.Ip4,
    size: usize,
) Verdict {
    const client = &request.client;
    const goes_on = boots.continued(
        now_us,
        client.mac,
        @TypeOf(boots.*).dhcpRequestOf(client, request.packet.xid, size),
    );
    if (goes_on == null) switch (boots.policy.decide(client.mac, boots.io.unixMs())) {
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
    const boot: ?*const core.boot.Boot = if (goes_on) |ref| boots.get(ref) else null;
    switch (boots.peers.decide(now_us, asked, .of(boot, is_loader))) {
        .answer => return .answer,
        .leave => {
            // A device that begins anew elsewhere has left its boot here.
            if (goes_on == null) boots.endEarlier(now_us, client.mac);
            return .silence;
        },
    }
}

/// The device has turned to this edge by name: other servers' answers are out of the question.
pub fn isAddressed(request: *const core.dhcp.Service.BootRequest) bool {
    if (request.arrival.port == .pxe) return true;
    if (request.client.message_type == .discover) return false;
    return request.packet.options.server_identifier != null;
}
