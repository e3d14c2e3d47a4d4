//! The UDP socket to the edge. It is connected, so that the kernel drops what comes from anywhere
//! else, and it is made anew when the edge has been silent, since the device may have got another
//! address meanwhile.

const std = @import("std");
const linux = std.os.linux;
const Endpoint = @import("base").Endpoint;
const PacketBurst = @import("packet_burst.zig").PacketBurst;
const host = @import("host");
const stream = @import("wire").stream;
const sys = host.sys;
const PacketReceiver = host.packet_receiver.PacketReceiver;
const Packets = host.packet_receiver.Packets;

pub const EdgeSocket = struct {
    /// -1 while there is no network.
    fd: i32 = -1,
    edge: Endpoint,
    burst: PacketBurst = .{},
    receiver: PacketReceiver = undefined,

    /// Bytes: answers to all outstanding reads, with the kernel's own bookkeeping for each packet, which
    /// may be more than the packet; all writes that are under way, too.
    const buffer_size = 8 << 20;

    pub fn init(edge: Endpoint) EdgeSocket {
        return .{ .edge = edge };
    }

    /// Makes the socket, in place of an earlier one. Without a network there is none afterwards,
    /// and `send` and `receive` do nothing.
    pub fn open(socket: *EdgeSocket) void {
        if (socket.fd >= 0) sys.close(socket.fd);
        // Another interface may be able to cut.
        socket.burst = .{};
        socket.fd = connected(socket.edge) catch -1;
    }

    /// The largest packet of the stream that this machine's card takes, in bytes of UDP payload.
    pub fn packetSizeMax(socket: *const EdgeSocket) u16 {
        const size = host.sockets.payloadSizeOf(socket.fd) orelse return stream.packet_size_ethernet;
        return @intCast(std.math.clamp(size, stream.packet_size_min, stream.packet_size_max));
    }

    pub fn send(socket: *const EdgeSocket, packet: []const u8) void {
        // A packet that the kernel does not take is a lost packet: the stream asks again.
        _ = linux.sendto(
            socket.fd,
            packet.ptr,
            packet.len,
            linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
            null,
            0,
        );
    }

    /// The next packets that are there, or null; valid until the next call.
    pub fn receive(socket: *EdgeSocket) ?Packets {
        return socket.receiver.receive(socket.fd);
    }

    /// The edge's machine says that nobody listens there.
    pub fn isRefused(socket: *const EdgeSocket) bool {
        var code: i32 = 0;
        var size: linux.socklen_t = @sizeOf(i32);
        _ = sys.check(linux.getsockopt(socket.fd, linux.SOL.SOCKET, linux.SO.ERROR, @ptrCast(&code), &size)) catch return false;
        return code == @backingInt(linux.E.CONNREFUSED);
    }

    fn connected(edge: Endpoint) sys.Error!i32 {
        const kind = linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
        errdefer sys.close(fd);
        host.sockets.setBuffer(fd, linux.SO.RCVBUFFORCE, linux.SO.RCVBUF, buffer_size);
        host.sockets.setBuffer(fd, linux.SO.SNDBUFFORCE, linux.SO.SNDBUF, buffer_size);
        PacketReceiver.join(fd);
        host.sockets.neverCut(fd);
        const address: linux.sockaddr.in = .{
            .port = std.mem.nativeToBig(u16, edge.port),
            .addr = @bitCast(edge.ip.bytes),
        };
        _ = try sys.check(linux.connect(fd, &address, @sizeOf(linux.sockaddr.in)));
        return fd;
    }
};
