//! The socket of router discovery on one segment: passes solicitations and advertisements to the
//! agent (agent/segment/routers.zig), which decides what is answered. Needs CAP_NET_RAW, and IPv6
//! on the interface.

const std = @import("std");
const wire = @import("wire");
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const linux = std.os.linux;
const router_discovery = wire.router_discovery;

pub const OpenError = error{ PermissionDenied, NoIpv6, SystemCallFailed };

pub const RouterPort = @This();

fd: i32,
interface_index: u32,

const batch_max = 16;

/// linux/icmpv6.h, linux/in6.h; std does not have them.
const icmpv6_filter = 1;
const ipv6_unicast_hops = 16;
const ipv6_multicast_hops = 18;
const ipv6_add_membership = 20;
const ipv6_recv_hop_limit = 51;
const ipv6_hop_limit = 52;

pub fn open(interface: *const sockets.Interface) OpenError!RouterPort {
    const flags = linux.SOCK.RAW | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    const rc = linux.socket(linux.AF.INET6, flags, linux.IPPROTO.ICMPV6);
    const fd: i32 = switch (linux.errno(rc)) {
        .SUCCESS => @intCast(rc),
        .PERM, .ACCES => return error.PermissionDenied,
        .AFNOSUPPORT => return error.NoIpv6,
        else => return error.SystemCallFailed,
    };
    errdefer sys.close(fd);
    // A set bit blocks a type.
    var filter: [8]u32 = @splat(std.math.maxInt(u32));
    for ([_]u8{
        router_discovery.type_solicitation,
        router_discovery.type_advertisement,
    }) |message_type| filter[message_type / 32] ^= @as(u32, 1) << @intCast(message_type % 32);
    try set(fd, linux.IPPROTO.ICMPV6, icmpv6_filter, std.mem.sliceAsBytes(&filter));
    const name = interface.name();
    try set(fd, linux.SOL.SOCKET, linux.SO.BINDTODEVICE, name);
    const hops: i32 = router_discovery.hop_limit;
    const on: i32 = 1;
    try set(fd, linux.IPPROTO.IPV6, ipv6_unicast_hops, std.mem.asBytes(&hops));
    try set(fd, linux.IPPROTO.IPV6, ipv6_multicast_hops, std.mem.asBytes(&hops));
    try set(fd, linux.IPPROTO.IPV6, ipv6_recv_hop_limit, std.mem.asBytes(&on));
    const Membership = extern struct { group: [16]u8, interface_index: u32 };
    const membership: Membership =
        .{ .group = router_discovery.all_routers, .interface_index = interface.index };
    set(fd, linux.IPPROTO.IPV6, ipv6_add_membership, std.mem.asBytes(&membership)) catch
        return error.NoIpv6;
    return .{ .fd = fd, .interface_index = interface.index };
}

pub fn close(port: *RouterPort) void {
    sys.close(port.fd);
    port.* = undefined;
}

pub const Batch = struct {
    port: *const RouterPort,
    left: u32 = batch_max,
    /// Of longer ones the end is cut off: they are damaged then. A router's have a few hundred
    /// bytes.
    message: [1500]u8 = undefined,

    /// Returns what waits next, at most one batch; its bytes are valid until the next call.
    pub fn next(batch: *Batch) ?router_discovery.Packet {
        while (batch.left > 0) {
            batch.left -= 1;
            var from: linux.sockaddr.in6 = undefined;
            var control: [64]u8 align(8) = undefined;
            var vector = [1]std.posix.iovec{
                .{ .base = &batch.message, .len = batch.message.len },
            };
            var header: linux.msghdr = .{
                .name = @ptrCast(&from),
                .namelen = @sizeOf(linux.sockaddr.in6),
                .iov = &vector,
                .iovlen = 1,
                .control = &control,
                .controllen = control.len,
                .flags = 0,
            };
            const rc = linux.recvmsg(batch.port.fd, &header, linux.MSG.DONTWAIT);
            const size = sys.check(rc) catch return null;
            return .{
                .from = from.addr,
                .hop_limit = hopLimitIn(control[0..header.controllen]) orelse continue,
                .bytes = batch.message[0..size],
            };
        }
        return null;
    }
};

/// A message that cannot be sent is as good as lost: who waits for it asks again.
pub fn send(port: *const RouterPort, address: router_discovery.Address, message: []const u8) void {
    const to: linux.sockaddr.in6 = .{
        .port = 0,
        .flowinfo = 0,
        .addr = address,
        .scope_id = port.interface_index,
    };
    _ = linux.sendto(
        port.fd,
        message.ptr,
        message.len,
        linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
        @ptrCast(&to),
        @sizeOf(linux.sockaddr.in6),
    );
}

fn hopLimitIn(control: []align(8) const u8) ?u8 {
    const head_size = @sizeOf(linux.cmsghdr);
    if (control.len < head_size + 4) return null;
    const head = std.mem.bytesToValue(linux.cmsghdr, control[0..head_size]);
    if (head.level != linux.IPPROTO.IPV6 or head.type != ipv6_hop_limit) return null;
    const value = std.mem.readInt(i32, control[head_size..][0..4], .native);
    return std.math.cast(u8, value);
}

fn set(fd: i32, level: i32, option: u32, value: []const u8) OpenError!void {
    const rc = linux.setsockopt(fd, level, option, value.ptr, @intCast(value.len));
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .PERM => return error.PermissionDenied,
        else => return error.SystemCallFailed,
    }
}
