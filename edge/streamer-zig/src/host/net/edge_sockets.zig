//! The sockets that an edge listens on, opened together so that a start either has all of them or
//! names the one that it cannot have.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const steering = @import("../stream/steering.zig");
const InheritedSockets = @import("inherited_sockets.zig");
const UdpSocket = @import("udp_socket.zig");
const assert = std.debug.assert;

pub const EdgeSockets = @This();

links: base.BoundedArray(LinkSockets, core.dhcp.network.links_max) = .empty,
tftp: UdpSocket,
stream: UdpSocket,
/// The sockets of shards 1 and on, with the same address; empty with one shard.
stream_shards: []UdpSocket = &.{},
/// For the other edges of the site; null without a control plane.
peer: ?UdpSocket = null,
listener: i32,

/// The sockets of one address of this edge.
pub const LinkSockets = struct {
    /// Null if DHCP is off, and for further addresses of an interface, which all get the same
    /// broadcasts.
    dhcp: ?UdpSocket = null,
    pxe: ?UdpSocket = null,
    wol: UdpSocket,
};

/// An address to listen on.
pub const Listen = struct {
    ip: base.Ip4,
    /// The interface that has the address; null on loopback, which has no broadcasts.
    interface: ?sockets.Interface,
    dhcp: bool,
};

pub const Ports = struct {
    dhcp: u16 = 67,
    pxe: u16 = 4011,
    tftp: u16 = 69,
    http: u16 = 6980,
    stream: u16 = 6910,
    peer: u16 = 6911,
};

pub const What = enum { dhcp, pxe, tftp, http, stream, wol, peer };

/// Names the socket that cannot be opened, and why.
pub const Problem = struct { what: What, ip: base.Ip4, port: u16, why: sockets.OpenError };

pub const OpenError = error{ Problem, OutOfMemory };

pub fn open(
    gpa: std.mem.Allocator,
    listens: []const Listen,
    with: struct {
        ports: Ports,
        peers: bool,
        shards: u16 = 1,
        /// Emptied: what is not taken is closed.
        inherited: *InheritedSockets,
    },
    problem: *Problem,
) OpenError!EdgeSockets {
    defer with.inherited.closeRest();
    const opener: Opener = .{ .inherited = with.inherited, .problem = problem };
    const ports = with.ports;
    // Devices of every network reach the same sockets.
    const ip: base.Ip4 = if (listens.len == 1) listens[0].ip else .zero;
    var stream: sockets.UdpOptions = .{
        .address = .{ .ip = ip, .port = ports.stream },
        .whole = true,
        .with_destination = listens.len > 1,
        .buffer_size = 8 << 20,
        // The kernel sends its queue in order, which delays every device: 8 ms at 1 Gb/s. The
        // rest waits where devices take turns, and where a duplicate READ is answered once.
        .send_buffer_size = @max(256 << 10, @as(u32, 1 << 20) / with.shards),
    };
    // The system gives each of them a part of the packets: all have to be there, or none.
    if (with.inherited.countUdp(stream.address) != with.shards)
        with.inherited.closeUdp(stream.address);
    var result: EdgeSockets = .{
        .tftp = try .init(gpa, try opener.udp(.tftp, .{
            .address = .{ .ip = ip, .port = ports.tftp },
            .with_destination = listens.len > 1,
            // The kernel doubles it and counts at least 768 bytes for a small packet: a full
            // buffer holds fewer requests than the server keeps waiting.
            .buffer_size = 4 << 20,
        }), null),
        .stream = try .init(gpa, try opener.udp(.stream, stream), null),
        .listener = try opener.listener(.{ .ip = ip, .port = ports.http }),
    };
    stream.is_shared = true;
    if (with.shards > 1)
        result.stream_shards = try openShards(gpa, &result.stream, stream, with.shards, opener);
    // The others know this edge by its first address.
    if (with.peers) result.peer = try .init(gpa, try opener.udp(.peer, .{
        .address = .{ .ip = listens[0].ip, .port = ports.peer },
    }), null);
    for (listens, 0..) |*listen, index| {
        const is_first = isFirstOfInterface(listens, index);
        const link = try openLink(gpa, listen, ports, is_first, opener);
        result.links.appendAssumeCapacity(link);
    }
    return result;
}

/// Empty if the system cannot steer packets to shards: there is one shard then.
fn openShards(
    gpa: std.mem.Allocator,
    first: *const UdpSocket,
    options: sockets.UdpOptions,
    shards: u16,
    opener: Opener,
) OpenError![]UdpSocket {
    sockets.share(first.fd) catch return &.{};
    const opened = try gpa.alloc(UdpSocket, shards - 1);
    for (opened) |*socket| socket.* = try .init(gpa, try opener.udp(.stream, options), null);
    steering.attach(first.fd, shards) catch {
        for (opened) |*socket| socket.deinit(gpa);
        gpa.free(opened);
        return &.{};
    };
    return opened;
}

/// Returns the sockets that a later process of this edge can take over.
pub fn handles(
    open_sockets: *const EdgeSockets,
    arena: std.mem.Allocator,
) error{OutOfMemory}![]const i32 {
    var fds: std.ArrayList(i32) = .empty;
    try fds.appendSlice(arena, &.{
        open_sockets.listener, open_sockets.tftp.fd, open_sockets.stream.fd,
    });
    for (open_sockets.stream_shards) |*socket| try fds.append(arena, socket.fd);
    if (open_sockets.peer) |*socket| try fds.append(arena, socket.fd);
    for (open_sockets.links.constSlice()) |*link| {
        if (link.dhcp) |*socket| try fds.append(arena, socket.fd);
        if (link.pxe) |*socket| try fds.append(arena, socket.fd);
    }
    assert(fds.items.len <= InheritedSockets.count_max);
    return fds.items;
}

pub fn hasDhcp(open_sockets: *const EdgeSockets) bool {
    for (open_sockets.links.constSlice()) |*link| if (link.pxe != null) return true;
    return false;
}

fn openLink(
    gpa: std.mem.Allocator,
    listen: *const Listen,
    ports: Ports,
    is_first: bool,
    opener: Opener,
) OpenError!LinkSockets {
    const interface = if (listen.interface) |*interface| interface else null;
    var link: LinkSockets = .{ .wol = try .init(gpa, try opener.udp(.wol, .{
        .address = .{ .ip = listen.ip, .port = 0 },
        .interface = interface,
        .broadcast = true,
    }), null) };
    if (!listen.dhcp) return link;
    link.pxe = try .init(gpa, try opener.udp(.pxe, .{
        .address = .{ .ip = listen.ip, .port = ports.pxe },
    }), null);
    if (!is_first) return link;
    // Broadcasts arrive only at a socket without an address; the interface keeps other
    // networks' packets out.
    const fd = try opener.udp(.dhcp, .{
        .address = .{ .ip = if (interface == null) listen.ip else .zero, .port = ports.dhcp },
        .interface = interface,
        .broadcast = true,
    });
    link.dhcp = try .init(gpa, fd, if (interface == null) null else listen.ip);
    return link;
}

fn isFirstOfInterface(listens: []const Listen, index: usize) bool {
    const interface = listens[index].interface orelse return true;
    for (listens[0..index]) |*other| if (other.interface) |earlier| {
        if (earlier.index == interface.index and other.dhcp) return false;
    };
    return true;
}

/// Takes a socket of the earlier process where there is one, and otherwise opens it.
const Opener = struct {
    inherited: *InheritedSockets,
    problem: *Problem,

    fn udp(opener: Opener, what: What, options: sockets.UdpOptions) error{Problem}!i32 {
        if (opener.inherited.takeUdp(options)) |fd| return fd;
        return sockets.openUdp(options) catch |err| opener.fail(what, options.address, err);
    }

    fn listener(opener: Opener, address: base.Endpoint) error{Problem}!i32 {
        if (opener.inherited.takeListener(address)) |fd| return fd;
        return sockets.openListener(address) catch |err| opener.fail(.http, address, err);
    }

    fn fail(
        opener: Opener,
        what: What,
        address: base.Endpoint,
        why: sockets.OpenError,
    ) error{Problem} {
        const port = address.port;
        opener.problem.* = .{ .what = what, .ip = address.ip, .port = port, .why = why };
        return error.Problem;
    }
};
