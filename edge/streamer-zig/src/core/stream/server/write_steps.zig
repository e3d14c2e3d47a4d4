//! WRITE and CONTROL at the stream server: which of them to execute, and how the others are
//! answered.

const std = @import("std");
const wire = @import("wire").stream;
const secrets = @import("../secrets.zig");
const step = @import("step.zig");
const StreamServer = @import("server.zig");
const ReplyBuffer = StreamServer.ReplyBuffer;
const Session = StreamServer.Session;
const Step = StreamServer.Step;
const WriteRef = step.WriteRef;
const assert = std.debug.assert;

pub fn receiveWrite(
    server: *StreamServer,
    now_us: u64,
    session: *Session,
    request_id: u32,
    write: *const wire.Write,
    reply: *ReplyBuffer,
) Step {
    assert(session.id != 0);
    if (checkWrite(session, write.version_tag, write.offset, write.length)) |code|
        return .{ .reply = emitAck(session, request_id, .{ .code = code }, reply) };
    switch (session.writes.check(request_id)) {
        .new => {},
        .late => return server.ignore(.stream_stale_write),
        // Otherwise its device considers the packet lost, and finally too large.
        .busy => return .{ .reply = emitAck(session, request_id, .{ .code = .not_yet }, reply) },
        .ended => |code| return .{ .reply = emitAck(
            session,
            request_id,
            .{ .code = code },
            reply,
        ) },
    }
    switch (server.collector.take(now_us, .{
        .session_id = session.id,
        .request_id = request_id,
    }, write)) {
        .part => return .taken,
        .mismatch => return server.ignore(.stream_bad_range),
        .busy => return .{ .reply = emitAck(session, request_id, .{ .code = .not_yet }, reply) },
        .missing => |list| return .{
            .reply = emitAck(session, request_id, .{ .code = .missing, .missing = list }, reply),
        },
        .whole => |bytes| {
            assert(bytes.len == write.length);
            session.writes.begin(request_id);
            const ref: WriteRef =
                .{ .boot_id = session.boot_id, .session_id = session.id, .request_id = request_id };
            return .{ .write = .{ .ref = ref, .offset = write.offset, .bytes = bytes } };
        },
    }
}

pub fn receiveControl(
    server: *StreamServer,
    session: *Session,
    request_id: u32,
    control: *const wire.Control,
    reply: *ReplyBuffer,
) Step {
    assert(session.id != 0);
    if (checkWrite(session, control.version_tag, control.offset, control.length)) |code|
        return .{ .reply = emitAck(session, request_id, .{ .code = code }, reply) };
    switch (session.writes.check(request_id)) {
        .new => {},
        .late => return server.ignore(.stream_stale_write),
        .busy => return .{ .reply = emitAck(session, request_id, .{ .code = .not_yet }, reply) },
        .ended => |code| return .{
            .reply = emitAck(session, request_id, .{ .code = code }, reply),
        },
    }
    session.writes.begin(request_id);
    return .{ .control = .{
        .ref = .{ .boot_id = session.boot_id, .session_id = session.id, .request_id = request_id },
        .operation = control.operation,
        .offset = control.offset,
        .length = control.length,
    } };
}

fn checkWrite(session: *const Session, version_tag: u64, offset: u64, length: u32) ?wire.WriteCode {
    if (session.write_cache.class == .device_ram) return .no_cache;
    if (version_tag != secrets.versionTag(session.version_id)) return .version_mismatch;
    if (length > session.disk_size or offset > session.disk_size - length) return .beyond_the_end;
    return null;
}

fn emitAck(session: *Session, request_id: u32, ack: wire.WriteAck, reply: *ReplyBuffer) []const u8 {
    return session.emit(request_id, .{ .write_ack = ack }, wire.header_size, reply);
}

/// Ends a write or control request. Returns the answer and its address, or null when nobody is left
/// to answer. `code` null: it could not be executed now; the device retransmits.
pub fn finishWrite(
    server: *StreamServer,
    ref: WriteRef,
    code: ?wire.WriteCode,
    reply: *ReplyBuffer,
) ?step.Outgoing {
    // The session was resumed meanwhile and has another id.
    const session = server.findById(ref.session_id) orelse server.sessionOf(ref.boot_id) orelse
        return null;
    assert(session.boot_id.eql(ref.boot_id));
    session.writes.end(ref.request_id, code);
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.writes.write_ack_size_min + session.from_edge.overhead();
    return .{
        .to = session.from,
        .packet = emitAck(session, ref.request_id, .{ .code = code orelse .not_yet }, reply),
    };
}
