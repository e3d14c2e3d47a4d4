//! LOST and LOST_ACK of the stream (packages/proto/STREAM.md, "A session that is lost for good"):
//! a device without a session says why, and learns of an order. Both are in clear text, and proven
//! by the resume secret. Part of `stream.zig`, which frames them and gives its guarantees.

const std = @import("std");
const guest = @import("guest.zig");
const stream = @import("stream.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

pub const lost_size = 104;
pub const lost_ack_size = 84;

/// Why the device's session is lost.
pub const Reason = enum(u8) {
    /// An edge has refused the boot for good.
    refused = 1,
    /// A resumption has offered another version or size.
    version_changed = 2,
    /// The device's writes are gone.
    cache_lost = 3,
};

pub const Lost = struct {
    boot_id: [16]u8,
    /// Fresh in each packet; the answer repeats it.
    nonce: [16]u8,
    reason: Reason,
    /// The code of the refusal; null with any other reason.
    refusal: ?stream.RefuseCode = null,
    /// Seconds until the device restarts by itself; 0: it waits for an order or a person.
    restart_in_s: u32 = 0,
    /// The last order that the device has taken, or zeros.
    order_id: [16]u8 = @splat(0),
    /// HMAC-SHA256 by the resume secret of this packet with zeros in `proof`.
    proof: [32]u8,
};

pub const LostAck = struct {
    nonce: [16]u8,
    order: guest.Order = .none,
    /// Zeros with `none`, and with nothing else.
    order_id: [16]u8 = @splat(0),
    /// As in LOST.
    proof: [32]u8,
};

const LostLayout = extern struct {
    header: [stream.header_size]u8,
    boot_id: [16]u8,
    nonce: [16]u8,
    reason: u8,
    refusal: u8,
    reserved: [2]u8,
    restart_in_s: [4]u8,
    order_id: [16]u8,
    proof: [32]u8,
};

const LostAckLayout = extern struct {
    header: [stream.header_size]u8,
    nonce: [16]u8,
    order: u8,
    reserved: [3]u8,
    order_id: [16]u8,
    proof: [32]u8,
};

comptime {
    assert(@sizeOf(LostLayout) == lost_size);
    assert(@sizeOf(LostAckLayout) == lost_ack_size);
    // Nobody has shown a cookie.
    assert(lost_ack_size < lost_size);
}

pub fn parseLost(bytes: []const u8) ParseError!Lost {
    const layout = try stream.overlay(LostLayout, bytes, .exactly);
    try stream.expectZero(&layout.reserved);
    const reason = std.enums.fromInt(Reason, layout.reason) orelse return error.BadValue;
    if (reason != .refused and layout.refusal != 0) return error.ReservedNotZero;
    return .{
        .boot_id = layout.boot_id,
        .nonce = layout.nonce,
        .reason = reason,
        .refusal = if (reason == .refused)
            std.enums.fromInt(stream.RefuseCode, layout.refusal) orelse return error.BadValue
        else
            null,
        .restart_in_s = stream.int(u32, &layout.restart_in_s),
        .order_id = layout.order_id,
        .proof = layout.proof,
    };
}

pub fn parseLostAck(bytes: []const u8) ParseError!LostAck {
    const layout = try stream.overlay(LostAckLayout, bytes, .exactly);
    try stream.expectZero(&layout.reserved);
    const order = std.enums.fromInt(guest.Order, layout.order) orelse return error.BadValue;
    const has_id = !std.mem.allEqual(u8, &layout.order_id, 0);
    if (order == .none and has_id) return error.ReservedNotZero;
    if (order != .none and !has_id) return error.BadValue;
    return .{
        .nonce = layout.nonce,
        .order = order,
        .order_id = layout.order_id,
        .proof = layout.proof,
    };
}

/// The header is written already.
pub fn emitLost(lost: *const Lost, out: []u8) []u8 {
    assert((lost.reason == .refused) == (lost.refusal != null));
    const layout = stream.overlayMutable(LostLayout, out);
    layout.boot_id = lost.boot_id;
    layout.nonce = lost.nonce;
    layout.reason = @backingInt(lost.reason);
    layout.refusal = if (lost.refusal) |code| @intCast(@backingInt(code)) else 0;
    layout.reserved = @splat(0);
    std.mem.writeInt(u32, &layout.restart_in_s, lost.restart_in_s, .big);
    layout.order_id = lost.order_id;
    layout.proof = lost.proof;
    return out[0..lost_size];
}

pub fn emitLostAck(ack: *const LostAck, out: []u8) []u8 {
    assert((ack.order == .none) == std.mem.allEqual(u8, &ack.order_id, 0));
    const layout = stream.overlayMutable(LostAckLayout, out);
    layout.nonce = ack.nonce;
    layout.order = @backingInt(ack.order);
    layout.reserved = @splat(0);
    layout.order_id = ack.order_id;
    layout.proof = ack.proof;
    return out[0..lost_ack_size];
}
