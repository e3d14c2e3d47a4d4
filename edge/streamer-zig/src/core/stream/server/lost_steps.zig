//! LOST at the edge (packages/proto/STREAM.md, "A session that is lost for good"): a device without
//! a session proves its boot by the resume secret, which the edge derives from the boot's id, so it
//! needs no table for it.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
const StreamServer = @import("server.zig");
const assert = std.debug.assert;

/// Packets of this kind that are verified in a second: more wait for the next one.
const per_second_max = 1000;

/// A device's report that its session is lost for good.
pub const LostReport = struct {
    boot_id: base.Uuid,
    nonce: [16]u8,
    reason: wire.LostReason,
    /// With reason `refused` only.
    refusal: ?wire.RefuseCode,
    /// 0: it waits for an order or a person.
    restart_in_s: u32,
    /// The last order that the device has taken, or zeros.
    order_id: [16]u8,
};

/// Bounds the work for senders that nobody knows.
pub const Budget = struct {
    second: u64 = 0,
    used: u32 = 0,

    pub fn take(budget: *Budget, now_us: u64) bool {
        const second = now_us / std.time.us_per_s;
        if (second != budget.second) budget.* = .{ .second = second };
        if (budget.used == per_second_max) return false;
        budget.used += 1;
        assert(budget.used <= per_second_max);
        return true;
    }
};

pub fn receiveLost(server: *StreamServer, now_us: u64, lost: *const wire.Lost) StreamServer.Step {
    if (!server.lost_budget.take(now_us)) return server.ignore(.stream_busy);
    const boot_id: base.Uuid = .fromBytes(lost.boot_id);
    const secret = secrets.resumeSecret(&server.options.keys.resumption, boot_id);
    const expected = stream_seal.lostProof(&secret, lost);
    if (!std.crypto.timing_safe.eql([32]u8, expected, lost.proof))
        return server.ignore(.stream_forged);
    return .{ .lost = .{
        .boot_id = boot_id,
        .nonce = lost.nonce,
        .reason = lost.reason,
        .refusal = lost.refusal,
        .restart_in_s = lost.restart_in_s,
        .order_id = lost.order_id,
    } };
}

/// Returns LOST_ACK with the order that waits for this device, which nobody else can make.
pub fn answerLost(
    server: *const StreamServer,
    lost: *const LostReport,
    order: wire.ReportAck,
    reply: *StreamServer.ReplyBuffer,
) []const u8 {
    const secret = secrets.resumeSecret(&server.options.keys.resumption, lost.boot_id);
    var ack: wire.LostAck = .{
        .nonce = lost.nonce,
        .order = order.order,
        .order_id = order.order_id,
        .proof = @splat(0),
    };
    ack.proof = stream_seal.lostAckProof(&secret, &ack);
    const packet = wire.emit(.{ .version = .v3, .body = .{ .lost_ack = ack } }, reply);
    assert(packet.len < wire.lost_size);
    return packet;
}

test "a second has a bounded number of packets to verify" {
    const testing = std.testing;
    var budget: Budget = .{};
    for (0..per_second_max) |_| try testing.expect(budget.take(5));
    try testing.expect(!budget.take(6));
    try testing.expect(budget.take(std.time.us_per_s));
}
