//! A device whose session is lost for good (packages/proto/STREAM.md): it tells its edge so, and
//! takes an order from it. Both sides prove the packets by the resume secret.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const step = @import("step.zig");
const stream_seal = @import("../seal.zig");
const StreamClient = @import("client.zig");
const assert = std.debug.assert;

/// The edge is asked at once, and then at intervals that double.
const interval_us_first = std.time.us_per_s;
const interval_us_max = 16 * std.time.us_per_s;

pub const LostSession = @This();

reason: wire.LostReason,
/// With reason `refused` only.
refusal: ?wire.RefuseCode = null,
/// When the device restarts by itself; null: it waits for an order or a person.
restart_at_us: ?u64 = null,
/// Null until the caller has reported it: nothing is sent.
due_at_us: ?u64 = null,
interval_us: u64 = interval_us_first,
serial: u64 = 0,
/// Of the newest packet; an answer to an earlier one is late.
nonce: [16]u8 = @splat(0),
/// The newest packet named the order that was taken.
is_confirming: bool = false,

/// Starts to tell the edge of the latest session. Without a session nobody could prove anything.
pub fn report(client: *StreamClient, now_us: u64, restart_at_us: ?u64) void {
    assert(client.state == .ended);
    const lost = if (client.lost) |*lost| lost else return;
    assert(client.session != null);
    lost.restart_at_us = restart_at_us;
    lost.due_at_us = now_us;
}

pub fn transmit(client: *StreamClient, now_us: u64, out: []u8) ?[]const u8 {
    assert(client.state == .ended);
    const lost = if (client.lost) |*lost| lost else return null;
    if (now_us < lost.due_at_us orelse return null) return null;
    lost.due_at_us = now_us + lost.interval_us;
    lost.interval_us = @min(2 * lost.interval_us, interval_us_max);
    lost.serial += 1;
    lost.nonce = client.deriveBytes("lost", lost.serial)[0..16].*;
    const left_us = if (lost.restart_at_us) |at_us| at_us -| now_us else 0;
    const left_s = std.math.divCeil(u64, left_us, std.time.us_per_s) catch unreachable;
    var packet: wire.Lost = .{
        .boot_id = client.identity.boot_id.bytes,
        .nonce = lost.nonce,
        .reason = lost.reason,
        .refusal = lost.refusal,
        .restart_in_s = if (lost.restart_at_us == null)
            0
        else
            std.math.clamp(std.math.lossyCast(u32, left_s), 1, std.math.maxInt(u32)),
        .order_id = client.report_state.order_id,
        .proof = @splat(0),
    };
    packet.proof = stream_seal.lostProof(&client.session.?.resume_secret, &packet);
    lost.is_confirming = !std.mem.allEqual(u8, &packet.order_id, 0);
    return wire.emit(.{ .version = .v3, .body = .{ .lost = packet } }, out);
}

pub fn receive(client: *StreamClient, now_us: u64, ack: *const wire.LostAck) bool {
    if (client.state != .ended) return false;
    const lost = if (client.lost) |*lost| lost else return false;
    if (lost.serial == 0 or !std.mem.eql(u8, &lost.nonce, &ack.nonce)) return false;
    const expected = stream_seal.lostAckProof(&client.session.?.resume_secret, ack);
    if (!std.crypto.timing_safe.eql([32]u8, expected, ack.proof)) return false;
    const order = client.report_state.takeOrder(.{
        .order = ack.order,
        .order_id = ack.order_id,
    }) orelse {
        if (lost.is_confirming) client.pending_events.report_acknowledged = true;
        return true;
    };
    client.pending_events.order = order;
    // The edge is to know at once that the order is taken.
    lost.due_at_us = now_us;
    lost.interval_us = interval_us_first;
    return true;
}
