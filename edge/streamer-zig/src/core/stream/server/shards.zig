//! The shard's part of a stream server: a shard serves plain reads of sessions that another server
//! has opened, with a copy of each. HELLO and all other packets stay with the server that opened
//! the session (docs/decisions/0022-stream-shards.md).

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const hello_steps = @import("hello.zig");
const step = @import("step.zig");
const StreamServer = @import("server.zig");
const assert = std.debug.assert;
const Session = StreamServer.Session;

/// Copies a session of another server with the same number of slots. A session that is already here
/// keeps its counters and moves.
pub fn copySession(server: *StreamServer, session: *const Session) void {
    assert(session.id != 0);
    const slot: u16 = @as(u16, @truncate(session.id)) - 1;
    assert(slot < server.sessions.len);
    const own = &server.sessions[slot];
    if (own.id == session.id) {
        own.packet_size_max = session.packet_size_max;
        return hello_steps.moveTo(server, own, session.from);
    }
    if (own.id != 0) server.drop(own);
    hello_steps.dropAt(server, session.from);
    own.* = session.*;
    server.enter(own);
    server.noteChange(own);
    assert(server.session_count <= server.sessions.len);
}

pub fn hasSessionAt(server: *const StreamServer, from: base.Endpoint) bool {
    return server.index.get(from) != null;
}

/// A shard has taken a READ of this session.
pub fn onRead(server: *StreamServer, read: *const step.ReadRequest, at_us: u64) void {
    const session = server.findById(read.session_id) orelse return;
    session.last_packet_at_us = @max(session.last_packet_at_us, at_us);
    session.last_request_at_us = @max(session.last_request_at_us, at_us);
    session.shard_counter = @max(session.shard_counter, read.counter);
}

/// Recognizes a READ of the disk by its readable bytes, before it is opened; must match the BPF
/// program of `host/stream/steering.zig`.
pub fn isPlainRead(packet: []const u8) bool {
    if (packet.len < wire.header_size) return false;
    return packet[1] == @backingInt(wire.Type.read) and
        packet[0] & 0x0f != @backingInt(wire.ReadKind.profile);
}

test {
    _ = @import("shards_test.zig");
}
