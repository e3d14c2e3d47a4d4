//! ICMPv6 router discovery (RFC 4861 sections 4.1, 4.2 and 6.1): solicitations, what of an
//! advertisement tells of a router, and the advertisement of a router that offers nothing: no
//! prefix, and no default route. It must never make a host configure an address.

const std = @import("std");
const base = @import("base");

pub const type_solicitation = 133;
pub const type_advertisement = 134;
/// A packet that crossed a router has less: it is not from this segment.
pub const hop_limit = 255;
const solicitation_size = 8;
const advertisement_size = 16;

pub const Address = [16]u8;
pub const unspecified: Address = @splat(0);
pub const all_nodes: Address = .{ 0xff, 2 } ++ @as([13]u8, @splat(0)) ++ .{1};
pub const all_routers: Address = .{ 0xff, 2 } ++ @as([13]u8, @splat(0)) ++ .{2};

const option_source_link_address = 1;

/// A message with what IPv6 says of it.
pub const Packet = struct { from: Address, hop_limit: u8, bytes: []const u8 };

pub const Message = union(enum) {
    solicitation,
    advertisement: Advertisement,
};

pub const Advertisement = struct {
    router_lifetime_s: u16,
    /// It declines everything, as `advertisement()` does: no router sends it.
    is_bare: bool,
};

/// Parses a message as a machine on this segment sends it; null: it is none. The kernel has
/// verified the checksum.
pub fn parse(message: []const u8, message_hop_limit: u8) ?Message {
    if (message_hop_limit != hop_limit) return null;
    if (message.len < solicitation_size or message[1] != 0) return null;
    switch (message[0]) {
        type_solicitation => {
            if (Options.parse(message[solicitation_size..]) == null) return null;
            return .solicitation;
        },
        type_advertisement => {
            if (message.len < advertisement_size) return null;
            const options = Options.parse(message[advertisement_size..]) orelse return null;
            const offers = !std.mem.allEqual(u8, message[4..advertisement_size], 0);
            return .{ .advertisement = .{
                .router_lifetime_s = std.mem.readInt(u16, message[6..8], .big),
                .is_bare = !offers and !options.has_others,
            } };
        },
        else => return null,
    }
}

const Options = struct {
    /// There are options beside the sender's MAC address.
    has_others: bool = false,

    fn parse(bytes: []const u8) ?Options {
        var options: Options = .{};
        var cursor: base.Cursor = .init(bytes);
        while (cursor.remaining() > 0) {
            const head = cursor.array(2) catch return null;
            // In units of 8 bytes, the head included.
            if (head[1] == 0) return null;
            cursor.skip(@as(usize, head[1]) * 8 - 2) catch return null;
            if (head[0] != option_source_link_address) options.has_others = true;
        }
        return options;
    }
};

/// Returns an advertisement that declines everything: hop limit, flags, router lifetime and both
/// timers are 0 (unspecified). The kernel fills in the checksum.
pub fn advertisement() [advertisement_size]u8 {
    var message: [advertisement_size]u8 = @splat(0);
    message[0] = type_advertisement;
    return message;
}

pub fn solicitation() [solicitation_size]u8 {
    var message: [solicitation_size]u8 = @splat(0);
    message[0] = type_solicitation;
    return message;
}

pub fn isLinkLocal(address: Address) bool {
    return address[0] == 0xfe and address[1] & 0xc0 == 0x80;
}

/// Returns the link-local address that a machine without an operating system makes of its MAC
/// address (RFC 4291 appendix A).
pub fn linkLocalOf(mac: base.Mac) Address {
    const from = mac.bytes;
    return .{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0 } ++
        .{ from[0] ^ 2, from[1], from[2], 0xff, 0xfe, from[3], from[4], from[5] };
}

/// Returns the MAC address that a link-local address was made of; null: it was not.
pub fn macOf(address: Address) ?base.Mac {
    if (!isLinkLocal(address) or address[11] != 0xff or address[12] != 0xfe) return null;
    const mac: base.Mac = .{ .bytes = .{
        address[8] ^ 2, address[9], address[10], address[13], address[14], address[15],
    } };
    return if (std.mem.eql(u8, &linkLocalOf(mac), &address)) mac else null;
}

const testing = std.testing;

test "a solicitation of this segment is recognized" {
    const plain = solicitation();
    const with_address = plain ++ [_]u8{ 1, 1, 0x52, 0x54, 0, 1, 2, 3 };
    try testing.expectEqual(.solicitation, parse(&plain, 255).?);
    try testing.expectEqual(.solicitation, parse(&with_address, 255).?);
    try testing.expectEqual(null, parse(&plain, 254));
    try testing.expectEqual(null, parse(plain[0..7], 255));
    try testing.expectEqual(null, parse(&(plain ++ [_]u8{ 1, 0, 0, 0, 0, 0, 0, 0 }), 255));
    try testing.expectEqual(null, parse(&(plain ++ [_]u8{ 1, 2, 0, 0, 0, 0, 0, 0 }), 255));
    try testing.expectEqual(null, parse(&(plain ++ [_]u8{1}), 255));
}

test "the advertisement has router lifetime 0 and no prefix" {
    const message = advertisement();
    const parsed = parse(&message, 255).?.advertisement;
    try testing.expectEqual(0, parsed.router_lifetime_s);
    try testing.expect(parsed.is_bare);
    try testing.expectEqual(null, parse(message[0..15], 255));
    try testing.expectEqual(null, parse(&message, 64));
}

test "what a router advertises is told from an empty advertisement" {
    var message = advertisement();
    // An edge that gives its own MAC address offers nothing more.
    try testing.expect(parse(
        &(message ++ [_]u8{ 1, 1, 2, 0, 0, 0, 0, 1 }),
        255,
    ).?.advertisement.is_bare);
    // A prefix without a default route, and a flag without either.
    const prefix = [_]u8{ 3, 4 } ++ @as([30]u8, @splat(0));
    try testing.expect(!parse(&(message ++ prefix), 255).?.advertisement.is_bare);
    message[5] = 0x80;
    try testing.expect(!parse(&message, 255).?.advertisement.is_bare);
    message[5] = 0;
    std.mem.writeInt(u16, message[6..8], 1800, .big);
    const parsed = parse(&message, 255).?.advertisement;
    try testing.expectEqual(1800, parsed.router_lifetime_s);
    try testing.expect(!parsed.is_bare);
}

test "a link-local address tells the MAC address that it was made of" {
    const mac: base.Mac = .{ .bytes = .{ 0x52, 0x54, 0, 0x12, 0x34, 0x56 } };
    const address: Address = .{ 0xfe, 0x80, 0, 0, 0, 0, 0, 0 } ++
        .{ 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56 };
    try testing.expectEqual(address, linkLocalOf(mac));
    try testing.expectEqual(mac, macOf(address).?);
    try testing.expectEqual(null, macOf(unspecified));
    try testing.expectEqual(null, macOf(all_nodes));
    // Chosen at random, as operating systems do (RFC 7217).
    var private = address;
    private[11] = 0x12;
    try testing.expectEqual(null, macOf(private));
    // Another prefix than fe80::/64.
    var other = address;
    other[7] = 1;
    try testing.expectEqual(null, macOf(other));
}
