//! Receives many UDP packets at a time: the kernel hands over packets of one sender and one size as
//! a single piece (UDP_GRO, udp(7), Linux 5.0), which is split in place. A kernel without this
//! feature gives one packet each time.

const std = @import("std");
const base = @import("base");
const sockets = @import("sockets.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const PacketReceiver = @This();

/// No IP packet is larger, and no piece is either.
bytes: [65_535]u8 = undefined,
/// For a connected socket: the network has reported that nobody listens there. The caller that
/// acts on it clears it.
is_refused: bool = false,

/// Asks the kernel to join packets from now on.
pub fn join(fd: i32) void {
    sockets.setInt(fd, linux.IPPROTO.UDP, linux.UDP.GRO, 1) catch {};
}

/// Returns what waits at the head of the socket's queue, or null; valid until the next call.
pub fn receive(receiver: *PacketReceiver, fd: i32) ?Packets {
    var from: linux.sockaddr.in = undefined;
    var control: [control_size]u8 align(@alignOf(linux.cmsghdr)) = undefined;
    var vector: [1]std.posix.iovec = .{.{ .base = &receiver.bytes, .len = receiver.bytes.len }};
    var message: linux.msghdr = .{
        .name = @ptrCast(&from),
        .namelen = @sizeOf(linux.sockaddr.in),
        .iov = &vector,
        .iovlen = 1,
        .control = &control,
        .controllen = control.len,
        .flags = 0,
    };
    const rc = linux.recvmsg(fd, &message, linux.MSG.DONTWAIT);
    if (linux.errno(rc) == .CONNREFUSED) receiver.is_refused = true;
    const size = sys.check(rc) catch return null;
    const given = control[0..@min(@as(usize, @intCast(message.controllen)), control.len)];
    return .{
        .rest = receiver.bytes[0..size],
        .packet_size = packetSize(given) orelse size,
        .from = sockets.fromSockaddr(&from),
    };
}

/// Packets of one sender in the order of their arrival: all have one size except the last, which
/// may be shorter.
pub const Packets = struct {
    rest: []const u8,
    packet_size: usize,
    from: base.Endpoint,

    pub fn next(packets: *Packets) ?[]const u8 {
        if (packets.rest.len == 0) return null;
        const size = @min(packets.rest.len, packets.packet_size);
        defer packets.rest = packets.rest[size..];
        return packets.rest[0..size];
    }
};

const header_size = @sizeOf(linux.cmsghdr);
const control_size =
    std.mem.alignForward(usize, header_size + @sizeOf(c_int), @alignOf(linux.cmsghdr));

/// Nothing else is requested, so it is the only message.
fn packetSize(control: []const u8) ?usize {
    if (control.len < header_size + @sizeOf(c_int)) return null;
    const header = std.mem.bytesToValue(linux.cmsghdr, control[0..header_size]);
    if (header.level != linux.IPPROTO.UDP or header.type != linux.UDP.GRO) return null;
    const size = std.mem.bytesToValue(c_int, control[header_size..][0..@sizeOf(c_int)]);
    return if (size > 0) @intCast(size) else null;
}

const testing = std.testing;
const UdpSocket = @import("udp_socket.zig");

/// Sends 40 packets of 1000 bytes and one of 300, as one piece for the kernel; returns how many
/// pieces came out.
fn expectAllArrive(is_joined: bool) !usize {
    const address: base.Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };
    const fd = try sockets.openUdp(.{ .address = address });
    defer sys.close(fd);
    if (is_joined) PacketReceiver.join(fd);
    var sender: UdpSocket =
        try .init(testing.allocator, try sockets.openUdp(.{ .address = address }), null);
    defer sender.deinit(testing.allocator);
    var own: linux.sockaddr.in = undefined;
    var own_size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(fd, @ptrCast(&own), &own_size));

    var bytes: [40_300]u8 = undefined;
    for (&bytes, 0..) |*byte, index| byte.* = @truncate(index / 1000);
    var pieces: [41]std.posix.iovec_const = undefined;
    for (&pieces, 0..) |*piece, index| piece.* = .{
        .base = bytes[index * 1000 ..].ptr,
        .len = @min(1000, bytes.len - index * 1000),
    };
    sender.sendCut(sockets.fromSockaddr(&own), &pieces, .{ .pieces_each = 1, .packet_size = 1000 });

    var receiver: PacketReceiver = .{};
    var came: usize = 0;
    var calls: usize = 0;
    while (receiver.receive(fd)) |received| {
        var packets = received;
        calls += 1;
        while (packets.next()) |packet| : (came += 1) {
            try testing.expectEqual(pieces[came].len, packet.len);
            try testing.expect(std.mem.allEqual(u8, packet, @intCast(came)));
        }
    }
    try testing.expectEqual(pieces.len, came);
    return calls;
}

test "packets come out as they were sent, in one call if the kernel joins them and in many if not" {
    try testing.expectEqual(1, try expectAllArrive(true));
    try testing.expectEqual(41, try expectAllArrive(false));
}
