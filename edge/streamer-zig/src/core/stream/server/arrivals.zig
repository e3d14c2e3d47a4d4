//! Which packets of a session's device have arrived (packages/proto/STREAM.md, "What the network
//! does"): one count for all threads that serve the session, beside its packet counter.

const std = @import("std");
const wire = @import("wire").stream;
const step = @import("step.zig");
const stream_seal = @import("../seal.zig");
const Session = @import("server.zig").Session;
const assert = std.debug.assert;

/// `session` begins with its counter, which earlier sessions of its slot had, too.
pub fn begin(session: *Session) void {
    session.opened_before = @atomicLoad(u64, &session.counter.opened, .monotonic);
    session.skipped_before = @atomicLoad(u64, &session.counter.skipped, .monotonic);
}

/// A packet of the device was opened, for the first time.
pub fn onOpen(session: *Session) void {
    assert(session.cipher() != .clear);
    _ = @atomicRmw(u64, &session.counter.opened, .Add, 1, .monotonic);
}

/// What a device says of itself is no request: one that only reports keeps no other from booting.
pub fn onPacket(session: *Session, now_us: u64, size: usize, body: wire.Body) void {
    assert(session.id != 0);
    session.last_packet_at_us = now_us;
    switch (body) {
        .report, .account, .network => {},
        else => session.last_request_at_us = now_us,
    }
    session.statistics.packets_in += 1;
    session.statistics.bytes_in += size;
}

/// `packet` is that of NETWORK, as it arrived.
pub fn networkOf(
    session: *const Session,
    said: *const wire.Network,
    packet: []const u8,
) step.DeviceNetwork {
    assert(session.id != 0);
    const opened = @atomicLoad(u64, &session.counter.opened, .monotonic);
    const skipped = @atomicLoad(u64, &session.counter.skipped, .monotonic);
    const sent = if (session.cipher() == .clear)
        0
    else
        stream_seal.counterOf(packet) -| session.counter_first + 1;
    return .{
        .boot_id = session.boot_id,
        .session_id = session.id,
        .network = said.*,
        .passed = .{
            .sent = sent,
            .arrived = @min(sent, opened -| session.opened_before),
            .skipped = skipped -| session.skipped_before,
        },
    };
}
