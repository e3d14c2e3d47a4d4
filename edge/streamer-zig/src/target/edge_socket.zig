//! The UDP socket to the edge. It is connected, so that the kernel drops packets from elsewhere,
//! and replaced when the edge has been silent, since the device may have another address by then.

const std = @import("std");
const linux = std.os.linux;
const Endpoint = @import("base").Endpoint;
const PacketBurst = @import("packet_burst.zig");
const host = @import("host");
const stream = @import("wire").stream;
const sys = host.sys;
const PacketReceiver = host.packet_receiver.PacketReceiver;
const Packets = host.packet_receiver.Packets;

pub const EdgeSocket = @This();

/// -1 while there is no network.
fd: i32 = -1,
edge: Endpoint,
burst: PacketBurst = .{},
receiver: PacketReceiver = .{},

/// Bytes: answers to all outstanding reads, with the kernel's bookkeeping for each packet,
/// which may exceed the packet; also all writes in flight.
const buffer_size = 8 << 20;

pub fn init(edge: Endpoint) EdgeSocket {
    return .{ .edge = edge };
}

/// Makes the socket, replacing an earlier one. Without a network there is none, and `send` and
/// `receive` do nothing.
pub fn open(socket: *EdgeSocket) void {
    if (socket.fd >= 0) sys.close(socket.fd);
    // Another interface may be able to segment.
    socket.burst = .{};
    socket.receiver.is_refused = false;
    socket.fd = connected(socket.edge) catch -1;
}

/// The largest packet of the stream for this machine's card, in bytes of UDP payload.
pub fn packetSizeMax(socket: *const EdgeSocket) u16 {
    const size = host.sockets.payloadSizeOf(socket.fd) orelse return stream.packet_size_ethernet;
    return @intCast(std.math.clamp(size, stream.packet_size_min, stream.packet_size_max));
}

pub fn send(socket: *const EdgeSocket, packet: []const u8) void {
    // A packet that the kernel refuses counts as lost: the stream retransmits it.
    _ = linux.sendto(
        socket.fd,
        packet.ptr,
        packet.len,
        linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
        null,
        0,
    );
}

/// Returns the next packets, or null; valid until the next call.
pub fn receive(socket: *EdgeSocket) ?Packets {
    return socket.receiver.receive(socket.fd);
}

/// Returns whether the edge's machine has reported, since the last call, that nobody listens
/// there. The kernel reports it once: to a send, to a receive or, if the socket's `has_error`
/// is set, to a query.
pub fn takeRefusal(socket: *EdgeSocket, has_error: bool) bool {
    const was_told = socket.burst.is_refused or socket.receiver.is_refused;
    socket.burst.is_refused = false;
    socket.receiver.is_refused = false;
    if (!has_error) return was_told;
    var code: i32 = 0;
    var size: linux.socklen_t = @sizeOf(i32);
    _ = sys.check(
        linux.getsockopt(socket.fd, linux.SOL.SOCKET, linux.SO.ERROR, @ptrCast(&code), &size),
    ) catch return was_told;
    return was_told or code == @backingInt(linux.E.CONNREFUSED);
}

fn connected(edge: Endpoint) sys.Error!i32 {
    const kind = linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
    errdefer sys.close(fd);
    host.sockets.setBuffer(fd, linux.SO.RCVBUFFORCE, linux.SO.RCVBUF, buffer_size);
    host.sockets.setBuffer(fd, linux.SO.SNDBUFFORCE, linux.SO.SNDBUF, buffer_size);
    PacketReceiver.join(fd);
    host.sockets.neverCut(fd);
    const address: linux.sockaddr.in =
        .{ .port = std.mem.nativeToBig(u16, edge.port), .addr = @bitCast(edge.ip.bytes) };
    _ = try sys.check(linux.connect(fd, &address, @sizeOf(linux.sockaddr.in)));
    return fd;
}

const testing = std.testing;

/// A socket to a loopback port where nobody listens.
fn testRefused() !EdgeSocket {
    const bound: i32 = @intCast(try sys.check(
        linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0),
    ));
    var address: linux.sockaddr.in = .{ .port = 0, .addr = @bitCast([4]u8{ 127, 0, 0, 1 }) };
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.bind(bound, @ptrCast(&address), size));
    _ = try sys.check(linux.getsockname(bound, @ptrCast(&address), &size));
    var socket: EdgeSocket =
        .init(.{ .ip = .init(127, 0, 0, 1), .port = std.mem.bigToNative(u16, address.port) });
    socket.open();
    sys.close(bound);
    return socket;
}

/// Sends packets until the network's answer to an earlier one arrives.
fn sendUntilRefused(socket: *EdgeSocket) !void {
    socket.send("nobody hears it");
    var polled = [_]linux.pollfd{.{ .fd = socket.fd, .events = 0, .revents = 0 }};
    var limit: linux.timespec = .{ .sec = 10, .nsec = 0 };
    try testing.expectEqual(1, try sys.check(linux.ppoll(&polled, 1, &limit, null)));
    try testing.expect(polled[0].revents & linux.POLL.ERR != 0);
}

test "a closed port is reported by a send, a receive or the socket, once" {
    const SystemCall = enum { send, send_cut, receive, asked };
    for (std.enums.values(SystemCall)) |way| {
        var socket = try testRefused();
        defer sys.close(socket.fd);
        try sendUntilRefused(&socket);
        switch (way) {
            .send => socket.burst.add(socket.fd, 100),
            .send_cut => for (0..2) |_| socket.burst.add(socket.fd, 100),
            .receive => try testing.expectEqual(null, socket.receive()),
            .asked => {},
        }
        socket.burst.flush(socket.fd);
        try testing.expect(socket.takeRefusal(way == .asked));
        try testing.expect(!socket.takeRefusal(false));
    }
}

test "an error of one edge is not attributed to the next" {
    var socket = try testRefused();
    defer sys.close(socket.fd);
    try sendUntilRefused(&socket);
    socket.burst.add(socket.fd, 100);
    socket.burst.flush(socket.fd);
    socket.open();
    try testing.expect(!socket.takeRefusal(true));
}
