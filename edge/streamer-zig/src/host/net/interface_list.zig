//! Lists the networks that this machine is in, for the heartbeat.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sockets = @import("sockets.zig");
const Interface = core.uplink.message.Interface;

pub const Interfaces = base.BoundedArray(Interface, core.uplink.message.interfaces_max);

/// Returns the first ones in the system's order, without loopback; none if the system does not
/// tell.
pub fn read(interfaces: *Interfaces) void {
    interfaces.clear();
    sockets.eachAddress(interfaces, add) catch {};
}

fn add(interfaces: *Interfaces, address: sockets.Address) bool {
    if (sockets.isLoopback(address.ip)) return true;
    const interface = sockets.withName(address.index, address.prefix_size) catch return true;
    // It may have disappeared since.
    const mtu = sockets.mtuOf(interface.name()) catch return true;
    interfaces.append(.{
        .name = .init(interface.name()),
        .ip = address.ip,
        .prefixLength = address.prefix_size,
        .mtu = @min(mtu, 65535),
    }) catch return false;
    return true;
}

test "interfaces are listed as the system describes them, without loopback" {
    var interfaces: Interfaces = .empty;
    read(&interfaces);
    for (interfaces.constSlice()) |*interface| {
        try std.testing.expect(!sockets.isLoopback(interface.ip));
        try std.testing.expect(interface.prefixLength <= 32);
        try std.testing.expect(interface.mtu > 0);
        const found = (try sockets.interfaceOf(interface.ip)).?;
        try std.testing.expectEqualStrings(found.name(), interface.name.slice());
    }
    try std.testing.expect(try sockets.mtuOf("lo") > 0);
}
