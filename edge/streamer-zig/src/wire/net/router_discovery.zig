//! ICMPv6 router solicitations, and the advertisement of a router that offers nothing (RFC 4861
//! sections 4.1, 4.2 and 6.1.1): no prefix, and no default route. It must never make a host
//! configure an address.

const std = @import("std");
const base = @import("base");

pub const type_solicitation = 133;
const type_advertisement = 134;
/// A packet that crossed a router has less: it is not from this segment.
pub const hop_limit = 255;
const header_size = 8;
const advertisement_size = 16;

/// Tells whether this is a solicitation as a host on this segment sends it. The kernel verifies the
/// checksum.
pub fn isSolicitation(message: []const u8, message_hop_limit: u8) bool {
    if (message_hop_limit != hop_limit) return false;
    if (message.len < header_size) return false;
    if (message[0] != type_solicitation or message[1] != 0) return false;
    var cursor: base.Cursor = .init(message[header_size..]);
    while (cursor.remaining() > 0) {
        const head = cursor.array(2) catch return false;
        // In units of 8 bytes, the head included.
        if (head[1] == 0) return false;
        cursor.skip(@as(usize, head[1]) * 8 - 2) catch return false;
    }
    return true;
}

/// Returns an advertisement that declines everything: hop limit, flags, router lifetime and both
/// timers are 0 (unspecified). The kernel fills in the checksum.
pub fn advertisement() [advertisement_size]u8 {
    var message: [advertisement_size]u8 = @splat(0);
    message[0] = type_advertisement;
    return message;
}

const testing = std.testing;

test "a solicitation of this segment is recognized" {
    const plain = [_]u8{ 133, 0, 0, 0, 0, 0, 0, 0 };
    const with_address = plain ++ [_]u8{ 1, 1, 0x52, 0x54, 0, 1, 2, 3 };
    try testing.expect(isSolicitation(&plain, 255));
    try testing.expect(isSolicitation(&with_address, 255));
    try testing.expect(!isSolicitation(&plain, 254));
    try testing.expect(!isSolicitation(plain[0..7], 255));
    try testing.expect(!isSolicitation(&(plain ++ [_]u8{ 1, 0, 0, 0, 0, 0, 0, 0 }), 255));
    try testing.expect(!isSolicitation(&(plain ++ [_]u8{ 1, 2, 0, 0, 0, 0, 0, 0 }), 255));
    try testing.expect(!isSolicitation(&(plain ++ [_]u8{1}), 255));
    try testing.expect(!isSolicitation(&advertisement(), 255));
}

test "the advertisement has router lifetime 0 and no prefix" {
    const message = advertisement();
    try testing.expectEqual(134, message[0]);
    try testing.expectEqual(0, std.mem.readInt(u16, message[6..8], .big));
    try testing.expectEqual(16, message.len);
}
