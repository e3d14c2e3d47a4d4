//! Sends what a READ asks for: fragments become sealed packets, and packets go out together.

const std = @import("std");
const core = @import("core");
const UdpSocket = @import("../net/udp_socket.zig").UdpSocket;

const StreamServer = core.stream.Server;

/// Of packets that go out together.
pub const sealed_size = 64 << 10;

pub const Sent = union(enum) {
    all,
    /// The send buffer is full; so many fragments are on their way.
    some: u16,
    /// The READ's session is over.
    gone,
};

/// `bytes` are those of the READ's whole range, of which only the fragments' have to be there; the first `sent` of these are on their way
/// already.
pub const What = struct { bytes: []const u8, sent: u16 };

/// Now, and without waiting. The READ may have come long ago: only its session's device gets them, where that is now.
pub fn sendRead(server: *StreamServer, sealed: []u8, socket: *UdpSocket, read: *const StreamServer.ReadRequest, what: What) Sent {
    var sealer = server.sealer(read.session_id) orelse return .gone;
    const packet_size = @as(usize, read.fragment_size) + read.overhead;
    const together: u16 = @intCast(@min(UdpSocket.packetsTogether(packet_size), sealed.len / packet_size));
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
            const at: usize = @intCast(fragment.offset - read.offset);
            filled += sealer.seal(&fragment.header, what.bytes[at..][0..fragment.length], sealed[filled..]).len;
        }
        // What did not go out is sealed anew later: no packet is ever another one under the same counter.
        const taken = socket.sendPackets(sealer.to(), sealed[0..filled], packet_size);
        done += @intCast(taken);
        if (taken < count) return .{ .some = done };
    }
}
