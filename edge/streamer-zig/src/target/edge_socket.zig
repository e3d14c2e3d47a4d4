//! The UDP socket to the edge. It is connected, so that the kernel drops what comes from anywhere
//! else, and it is made anew when the edge has been silent, since the device may have got another
//! address meanwhile.

const std = @import("std");
const linux = std.os.linux;
const Endpoint = @import("base").Endpoint;
const stream = @import("wire").stream;
const sys = @import("host").sys;

pub const EdgeSocket = struct {
    /// -1 while there is no network.
    fd: i32 = -1,
    edge: Endpoint,

    /// A burst of answers to all outstanding reads, with the kernel's own bookkeeping for each
    /// packet.
    const receive_buffer_size: i32 = 4 << 20;

    pub fn init(edge: Endpoint) EdgeSocket {
        return .{ .edge = edge };
    }

    /// Makes the socket, in place of an earlier one. Without a network there is none afterwards,
    /// and `send` and `receive` do nothing.
    pub fn open(socket: *EdgeSocket) void {
        if (socket.fd >= 0) sys.close(socket.fd);
        socket.fd = connected(socket.edge) catch -1;
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

    /// The next packet that is there, or null.
    pub fn receive(socket: *const EdgeSocket, buffer: *[stream.packet_size_max]u8) ?[]const u8 {
        const size = sys.check(
            linux.recvfrom(socket.fd, buffer, buffer.len, linux.MSG.DONTWAIT, null, null),
        ) catch
            return null;
        return buffer[0..size];
    }

    fn connected(edge: Endpoint) sys.Error!i32 {
        const kind = linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
        errdefer sys.close(fd);
        const size = std.mem.asBytes(&receive_buffer_size);
        // Beyond the system's limit only with CAP_NET_ADMIN, which an initramfs has.
        _ = linux.setsockopt(fd, linux.SOL.SOCKET, linux.SO.RCVBUFFORCE, size, size.len);
        const address: linux.sockaddr.in = .{
            .port = std.mem.nativeToBig(u16, edge.port),
            .addr = @bitCast(edge.ip.bytes),
        };
        _ = try sys.check(linux.connect(fd, &address, @sizeOf(linux.sockaddr.in)));
        return fd;
    }
};
