//! Wake-on-LAN magic packets (AMD, "Magic Packet Technology", 1995): six bytes 0xff, then the
//! address sixteen times.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const Mac = base.Mac;

pub const port = 9;
pub const packet_size = 6 + repetitions * 6;
const repetitions = 16;
/// A SecureOn password of 4 or 6 bytes may follow; it is ignored.
const password_sizes = [_]usize{ 0, 4, 6 };

comptime {
    assert(packet_size == 102);
}

pub const ParseError = error{NotMagicPacket};

/// Returns the packet that wakes the machine of this address.
pub fn emit(mac: Mac) [packet_size]u8 {
    var packet: [packet_size]u8 = @splat(0xff);
    for (0..repetitions) |index| packet[6 + index * 6 ..][0..6].* = mac.bytes;
    return packet;
}

/// Returns the address that a magic packet wakes. The payload contains nothing else.
pub fn parse(payload: []const u8) ParseError!Mac {
    if (payload.len < packet_size) return error.NotMagicPacket;
    const password_size = payload.len - packet_size;
    if (std.mem.findScalar(usize, &password_sizes, password_size) == null)
        return error.NotMagicPacket;
    const mac: Mac = .{ .bytes = payload[6..12].* };
    if (!std.mem.eql(u8, payload[0..packet_size], &emit(mac))) return error.NotMagicPacket;
    return mac;
}

const testing = std.testing;

test "a magic packet gives back its address" {
    const mac = try Mac.parse("02:bf:00:00:00:01");
    const packet = emit(mac);
    try testing.expect(mac.eql(try parse(&packet)));
    try testing.expect(mac.eql(try parse(&(packet ++ [4]u8{ 1, 2, 3, 4 }))));
}

test "anything but a whole magic packet is refused" {
    var packet = emit(try Mac.parse("02:bf:00:00:00:01"));
    try testing.expectError(error.NotMagicPacket, parse(""));
    try testing.expectError(error.NotMagicPacket, parse(packet[0..101]));
    try testing.expectError(error.NotMagicPacket, parse(&(packet ++ [1]u8{0})));
    packet[101] ^= 1;
    try testing.expectError(error.NotMagicPacket, parse(&packet));
    packet[101] ^= 1;
    packet[0] = 0;
    try testing.expectError(error.NotMagicPacket, parse(&packet));
}
