//! The edge's question whether a device is still there (packages/proto/STREAM.md, "Is the device
//! still there?"). The caller decides when to ask, and for how long to wait.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const step = @import("step.zig");
const StreamServer = @import("server.zig");

/// Asks the device of a boot whether it is still there: returns a packet for it, or null if the
/// boot has no session. A device that is there answers within a round trip: with the step
/// `present`, or in version 2, which has no such question, by resuming its session (NO_SESSION
/// names the newest of its packets). Any other packet of the session answers as well. Null also if
/// a device of version 2 has not sent anything yet.
pub fn askPresence(
    server: *StreamServer,
    boot_id: base.Uuid,
    reply: *StreamServer.ReplyBuffer,
) ?step.Outgoing {
    const session = server.sessionOf(boot_id) orelse return null;
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.header_size;
    if (session.version != .v2) {
        session.statistics.bytes_out += session.from_edge.overhead();
        const packet = session.emit(0, .keepalive, wire.header_size, reply);
        return .{ .to = session.from, .packet = packet };
    }
    const is_clear = session.cipher() == .clear;
    if (!is_clear and !session.taken.is_used) return null;
    return .{ .to = session.from, .packet = wire.emit(.{
        .session_id = session.newestCounter(),
        .body = .no_session,
    }, reply) };
}

/// Returns when the device of a boot was last heard in its session; null: it has none. A session
/// that its device has not used counts from its HELLO.
pub fn heardAt(server: *const StreamServer, boot_id: base.Uuid) ?u64 {
    return (server.sessionOf(boot_id) orelse return null).last_packet_at_us;
}
