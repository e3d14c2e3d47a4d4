//! Sends what a READ requests: fragments become sealed packets, and packets are sent together.

const std = @import("std");
const core = @import("core");
const UdpSocket = @import("../net/udp_socket.zig");

const StreamServer = core.stream.Server;

/// For packets that are sent together.
pub const sealed_size = 64 << 10;

pub const Sent = union(enum) {
    all,
    /// The send buffer is full; this many fragments were sent.
    some: u16,
    /// The READ's session has ended.
    gone,
};

/// `bytes` are those of the whole answer, of which only the fragments' bytes have to be valid; the
/// first `sent` of these were already sent.
pub const What = struct { bytes: []const u8, sent: u16 };

/// Sends now and without waiting. The READ may have arrived long ago: only its session's device
/// gets the bytes, at its present address.
pub fn sendRead(
    server: *StreamServer,
    sealed: []u8,
    socket: *UdpSocket,
    read: *const StreamServer.ReadRequest,
    what: What,
) Sent {
    var sealer = server.sealer(read.session_id) orelse return .gone;
    const packet_size = @as(usize, read.fragment_size) + read.overhead;
    const together: u16 =
        @intCast(@min(UdpSocket.packetsTogether(packet_size), sealed.len / packet_size));
    var done = what.sent;
    var fragments = read.fragments();
    for (0..what.sent) |_| _ = fragments.next();
    while (true) {
        const count: u16 = @min(together, read.packets_out - done);
        if (count == 0) return .all;
        sealer.reserve(count);
        var filled: usize = 0;
        for (0..count) |_| {
            const fragment = fragments.next().?;
            filled += sealer.seal(
                &fragment.header,
                what.bytes[fragment.at..][0..fragment.length],
                sealed[filled..],
            ).len;
        }
        // Packets that were not sent are sealed again later: no two packets ever share a counter.
        const taken = socket.sendPackets(sealer.to(), sealed[0..filled], packet_size);
        done += @intCast(taken);
        if (taken < count) {
            sealer.skip(count - taken);
            return .{ .some = done };
        }
    }
}
