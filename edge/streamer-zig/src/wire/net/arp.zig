//! Asks who has an IPv4 address on an Ethernet segment, without an address of one's own: the probe
//! of RFC 5227 section 2.1.1, in packets of RFC 826.

const std = @import("std");
const base = @import("base");

pub const packet_size = 28;
/// Hardware type Ethernet, protocol IPv4, and the sizes of their addresses.
const head = [6]u8{ 0, 1, 8, 0, 6, 4 };
const operation_request = 1;
const operation_reply = 2;

/// Who answered, and for which address.
pub const Holder = struct { ip: base.Ip4, mac: base.Mac };

pub const ParseError = error{ Truncated, NotReply, BadAddress };

/// Returns the packet that asks for `ip`, to be broadcast by the machine `from`. It names no
/// address of the sender, so that it changes nobody's table.
pub fn probe(from: base.Mac, ip: base.Ip4) [packet_size]u8 {
    return head ++ [2]u8{ 0, operation_request } ++ from.bytes ++ base.Ip4.zero.bytes ++
        @as([6]u8, @splat(0)) ++ ip.bytes;
}

/// Takes a reply; what follows it is Ethernet's padding.
pub fn parse(bytes: []const u8) ParseError!Holder {
    if (bytes.len < packet_size) return error.Truncated;
    if (!std.mem.eql(u8, bytes[0..6], &head)) return error.NotReply;
    if (std.mem.readInt(u16, bytes[6..8], .big) != operation_reply) return error.NotReply;
    const holder: Holder = .{
        .mac = .{ .bytes = bytes[8..14].* },
        .ip = .{ .bytes = bytes[14..18].* },
    };
    if (!holder.mac.isDevice() or !holder.ip.isUnicast()) return error.BadAddress;
    return holder;
}

const testing = std.testing;
const own: base.Mac = .{ .bytes = .{ 0x02, 0xbf, 0, 0, 0, 1 } };
const other: base.Mac = .{ .bytes = .{ 0x02, 0xbf, 0, 0, 0, 2 } };
const asked: base.Ip4 = .init(10, 0, 0, 9);

/// What a machine that has the address answers.
fn replyTo(request: *const [packet_size]u8, mac: base.Mac) [packet_size]u8 {
    var reply = request.*;
    reply[7] = operation_reply;
    reply[8..14].* = mac.bytes;
    reply[14..18].* = request[24..28].*;
    reply[18..24].* = request[8..14].*;
    reply[24..28].* = request[14..18].*;
    return reply;
}

test "a probe asks for an address and names none of its sender" {
    const request = probe(own, asked);
    try testing.expectEqualSlices(u8, &own.bytes, request[8..14]);
    try testing.expectEqualSlices(u8, &[4]u8{ 0, 0, 0, 0 }, request[14..18]);
    try testing.expectEqualSlices(u8, &asked.bytes, request[24..28]);
    try testing.expectError(error.NotReply, parse(&request));
}

test "a reply names the machine that has the address" {
    const reply = replyTo(&probe(own, asked), other);
    const holder = try parse(&(reply ++ @as([18]u8, @splat(0))));
    try testing.expect(holder.mac.eql(other));
    try testing.expect(holder.ip.eql(asked));
}

test "what is cut off, of another network, or from nobody is refused" {
    var reply = replyTo(&probe(own, asked), other);
    for (0..packet_size) |size|
        try testing.expectError(error.Truncated, parse(reply[0..size]));
    for (0..6) |index| {
        reply[index] ^= 1;
        try testing.expectError(error.NotReply, parse(&reply));
        reply[index] ^= 1;
    }
    for ([_]base.Mac{ .zero, .broadcast }) |mac|
        try testing.expectError(error.BadAddress, parse(&replyTo(&probe(own, asked), mac)));
    try testing.expectError(error.BadAddress, parse(&replyTo(&probe(own, .zero), other)));
}
