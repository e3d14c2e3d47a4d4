//! Answers IPv6 router solicitations of one segment with "no router here". The iPXE of 2019, which
//! is in many network cards, waits for such an answer before it continues with IPv4.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const linux = std.os.linux;
const router_discovery = wire.router_discovery;

pub const OpenError = error{ PermissionDenied, NoIpv6, SystemCallFailed };

pub const RouterAdvertiser = @This();

fd: i32,
interface_index: u32,
/// Answers that may still be sent in this second.
budget: u32 = answers_per_second_max,

/// More than the machines that are switched on together need; a flood gets no more.
const answers_per_second_max = 64;
const batch_max = 16;

/// linux/icmpv6.h, linux/in6.h; std does not have them.
const icmpv6_filter = 1;
const ipv6_unicast_hops = 16;
const ipv6_multicast_hops = 18;
const ipv6_add_membership = 20;
const ipv6_recv_hop_limit = 51;
const ipv6_hop_limit = 52;
const all_routers: [16]u8 = .{ 0xff, 2 } ++ @as([13]u8, @splat(0)) ++ .{2};
const all_nodes: [16]u8 = .{ 0xff, 2 } ++ @as([13]u8, @splat(0)) ++ .{1};

pub fn open(interface: *const sockets.Interface) OpenError!RouterAdvertiser {
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
    const solicitation = router_discovery.type_solicitation;
    filter[solicitation / 32] ^= 1 << (solicitation % 32);
    try set(fd, linux.IPPROTO.ICMPV6, icmpv6_filter, std.mem.sliceAsBytes(&filter));
    const name = interface.name();
    try set(fd, linux.SOL.SOCKET, linux.SO.BINDTODEVICE, name);
    const hops: i32 = router_discovery.hop_limit;
    const on: i32 = 1;
    try set(fd, linux.IPPROTO.IPV6, ipv6_unicast_hops, std.mem.asBytes(&hops));
    try set(fd, linux.IPPROTO.IPV6, ipv6_multicast_hops, std.mem.asBytes(&hops));
    try set(fd, linux.IPPROTO.IPV6, ipv6_recv_hop_limit, std.mem.asBytes(&on));
    const Membership = extern struct { group: [16]u8, interface_index: u32 };
    const membership: Membership = .{ .group = all_routers, .interface_index = interface.index };
    set(fd, linux.IPPROTO.IPV6, ipv6_add_membership, std.mem.asBytes(&membership)) catch
        return error.NoIpv6;
    return .{ .fd = fd, .interface_index = interface.index };
}

pub fn close(advertiser: *RouterAdvertiser) void {
    sys.close(advertiser.fd);
    advertiser.* = undefined;
}

/// Answers what waits, at most one batch.
pub fn receive(advertiser: *RouterAdvertiser) void {
    for (0..batch_max) |_| {
        var message: [1500]u8 = undefined;
        var from: linux.sockaddr.in6 = undefined;
        var control: [64]u8 align(8) = undefined;
        var vector = [1]std.posix.iovec{.{ .base = &message, .len = message.len }};
        var header: linux.msghdr = .{
            .name = @ptrCast(&from),
            .namelen = @sizeOf(linux.sockaddr.in6),
            .iov = &vector,
            .iovlen = 1,
            .control = &control,
            .controllen = control.len,
            .flags = 0,
        };
        const size = sys.check(linux.recvmsg(advertiser.fd, &header, linux.MSG.DONTWAIT)) catch
            return;
        const hop_limit = hopLimitIn(control[0..header.controllen]) orelse continue;
        if (!router_discovery.isSolicitation(message[0..size], hop_limit)) continue;
        advertiser.answer(from.addr);
    }
}

/// Runs once a second.
pub fn tick(advertiser: *RouterAdvertiser) void {
    advertiser.budget = answers_per_second_max;
}

/// Sends to the host itself, or to all hosts if it has no address yet (RFC 4861 section 6.2.6).
fn answer(advertiser: *RouterAdvertiser, host: [16]u8) void {
    if (advertiser.budget == 0) return;
    advertiser.budget -= 1;
    const is_nobody = std.mem.allEqual(u8, &host, 0);
    const to: linux.sockaddr.in6 = .{
        .port = 0,
        .flowinfo = 0,
        .addr = if (is_nobody) all_nodes else host,
        .scope_id = advertiser.interface_index,
    };
    const message = router_discovery.advertisement();
    // If an answer cannot be sent, the host asks again.
    _ = linux.sendto(
        advertiser.fd,
        &message,
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
