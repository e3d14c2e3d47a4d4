//! Asks the kernel's neighbour table for the MAC address of an address: SIOCGARP of arp(7), one
//! system call with a bounded answer, which needs no right and waits for nobody. rtnetlink's
//! RTM_GETNEIGH would answer the same with a parser more; /proc/net/arp would be read whole.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

/// linux/sockios.h.
const siocgarp = 0x8954;
/// linux/if_arp.h: the entry has a MAC address that is valid now: REACHABLE, STALE, DELAY, PROBE or
/// PERMANENT.
const atf_com = 0x02;
const arphrd_ether = 1;

/// struct arpreq of linux/if_arp.h.
const Request = extern struct {
    address: linux.sockaddr.in,
    hardware: extern struct { family: u16 = 0, bytes: [14]u8 = @splat(0) } = .{},
    flags: i32 = 0,
    netmask: [16]u8 = @splat(0),
    device: [linux.IFNAMESIZE]u8 = @splat(0),
};

comptime {
    assert(@sizeOf(Request) == 68);
}

/// Returns null if the address is no neighbour on this interface. `socket` is any IPv4 socket.
pub fn macOf(socket: i32, interface: []const u8, ip: base.Ip4) ?base.Mac {
    if (interface.len == 0 or interface.len >= linux.IFNAMESIZE) return null;
    var request: Request = .{ .address = .{ .port = 0, .addr = @bitCast(ip.bytes) } };
    @memcpy(request.device[0..interface.len], interface);
    _ = sys.check(linux.ioctl(socket, siocgarp, @intFromPtr(&request))) catch return null;
    if (request.flags & atf_com == 0) return null;
    if (request.hardware.family != arphrd_ether) return null;
    const mac: base.Mac = .{ .bytes = request.hardware.bytes[0..6].* };
    return if (mac.isDevice()) mac else null;
}

test "an address of this machine, and an interface that is not there, have no neighbour" {
    const rc = linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const socket: i32 = @intCast(try sys.check(rc));
    defer sys.close(socket);
    try std.testing.expectEqual(null, macOf(socket, "lo", .init(127, 0, 0, 1)));
    try std.testing.expectEqual(null, macOf(socket, "no-such-link", .init(10, 0, 0, 1)));
    try std.testing.expectEqual(null, macOf(socket, "a-name-that-is-too-long", .zero));
}
