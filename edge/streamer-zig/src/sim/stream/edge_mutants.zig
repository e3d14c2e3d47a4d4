//! Mutants of the stream's server that are no change of the agent's code: they change the state of
//! the real server, or answer in its place.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const link = @import("link.zig");
const StreamEdge = @import("edge.zig");
const Endpoint = base.Endpoint;
const Server = link.Server;

/// `source_unchecked`: a session moves to whoever names it.
pub fn followSource(server: *Server, from: Endpoint, bytes: []const u8) void {
    const parsed = wire.parse(bytes) catch return;
    const session = server.findById(parsed.session_id) orelse return;
    if (session.from.eql(from) or server.index.get(from) != null) return;
    server.index.remove(session.from);
    session.from = from;
    server.index.put(from, @intCast(session - server.sessions.ptr));
}

/// `cookie_unchecked`, `answer_too_long`: returns whether the mutant answered a HELLO.
pub fn answerHello(edge: *StreamEdge, from: Endpoint, bytes: []const u8) bool {
    if (edge.mutant != .cookie_unchecked and edge.mutant != .answer_too_long) return false;
    const parsed = wire.parse(bytes) catch return false;
    if (parsed.body != .hello) return false;
    const hello = parsed.body.hello;
    if (edge.mutant == .answer_too_long) {
        const padding: [wire.hello_size_v3_token + 1]u8 = @splat(0);
        edge.send(from, &padding);
        return true;
    }
    edge.noteClaim(from);
    edge.process.?.stream.admit(
        &.{ .from = from, .hello = hello, .boot_id = .fromBytes(hello.boot_id) },
        &.{ .from = from, .bytes = bytes, .at_us = edge.network.now_us },
        edge.network.now_us,
    );
    return true;
}

/// `whole_without_a_fragment`: a write counts as whole although one fragment is missing.
pub fn completeWrite(server: *Server) void {
    for (server.collector.slots) |*slot| {
        if (slot.session_id == 0 or slot.count + 2 != slot.fragment_count) continue;
        for (0..slot.fragment_count) |index| if (!slot.came.isSet(index)) {
            slot.came.set(index);
            slot.count += 1;
            return;
        };
    }
}

/// `late_write_carried_out`: the server forgets which requests have ended. Returns false if the
/// packet belongs to no session.
pub fn forgetWrites(server: *Server, bytes: []const u8) bool {
    const parsed = wire.parse(bytes) catch return false;
    const session = server.findById(parsed.session_id) orelse return false;
    session.writes = .{};
    return true;
}

pub fn isNotYet(packet: []const u8) bool {
    const parsed = wire.parse(packet) catch return false;
    return parsed.body == .write_ack and parsed.body.write_ack.code == .not_yet;
}

/// `keys_go_along`: a boot that failed over keeps the keys of its session at the edge before.
pub fn takeKeysAlong(edge: *StreamEdge, session: *Server.Session) void {
    for (edge.site.edgesOf()) |*other| {
        if (other == edge) continue;
        const process = other.process orelse continue;
        const before = process.stream.server.sessionOf(session.boot_id) orelse continue;
        session.from_device = before.from_device;
        session.from_edge = before.from_edge;
        session.counter.last = 0;
    }
}
