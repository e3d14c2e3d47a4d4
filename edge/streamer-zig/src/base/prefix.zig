//! An IPv4 subnet, `10.1.0.0/16` in text.

const std = @import("std");
const assert = std.debug.assert;
const Ip4 = @import("addresses.zig").Ip4;

pub const Ip4Prefix = @This();

/// Host bits are zero.
ip: Ip4,
/// Bits, 0 to 32.
size: u6,

pub const text_size_max = Ip4.text_size_max + "/32".len;

/// Returns the subnet of this size that contains the address.
pub fn of(ip: Ip4, size: u6) Ip4Prefix {
    assert(size <= 32);
    return .{ .ip = .fromInt(ip.toInt() & maskBits(size)), .size = size };
}

/// HostBits: `10.1.0.5/16` names an address, not a subnet.
pub fn parse(text: []const u8) error{ InvalidPrefix, HostBits }!Ip4Prefix {
    const slash = std.mem.findScalar(u8, text, '/') orelse return error.InvalidPrefix;
    const ip = Ip4.parse(text[0..slash]) catch return error.InvalidPrefix;
    const digits = text[slash + 1 ..];
    if (digits.len == 0 or digits.len > 2) return error.InvalidPrefix;
    for (digits) |digit| if (!std.ascii.isDigit(digit)) return error.InvalidPrefix;
    const size = std.fmt.parseInt(u6, digits, 10) catch return error.InvalidPrefix;
    if (size > 32) return error.InvalidPrefix;
    const prefix: Ip4Prefix = .of(ip, size);
    if (!prefix.ip.eql(ip)) return error.HostBits;
    return prefix;
}

pub fn format(prefix: Ip4Prefix, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.print("{f}/{d}", .{ prefix.ip, prefix.size });
}

pub fn contains(prefix: Ip4Prefix, ip: Ip4) bool {
    return ip.toInt() & maskBits(prefix.size) == prefix.ip.toInt();
}

/// Tells whether the address is one of the subnet's hosts: neither its own address nor its
/// broadcast address, if it has these (RFC 3021).
pub fn hasHost(prefix: Ip4Prefix, ip: Ip4) bool {
    if (!prefix.contains(ip)) return false;
    if (prefix.size >= 31) return true;
    if (ip.eql(prefix.ip)) return false;
    return ip.toInt() != prefix.ip.toInt() | ~maskBits(prefix.size);
}

pub fn mask(prefix: Ip4Prefix) Ip4 {
    return .fromInt(maskBits(prefix.size));
}

pub fn eql(a: Ip4Prefix, b: Ip4Prefix) bool {
    return a.size == b.size and a.ip.eql(b.ip);
}

fn maskBits(size: u6) u32 {
    if (size == 0) return 0;
    return ~@as(u32, 0) << @intCast(32 - size);
}

const testing = std.testing;

test "a subnet survives its text form and contains its addresses" {
    var buffer: [Ip4Prefix.text_size_max]u8 = undefined;
    for ([_][]const u8{ "0.0.0.0/0", "10.1.0.0/16", "10.1.2.3/32", "10.1.2.128/25" }) |text| {
        const prefix = try Ip4Prefix.parse(text);
        try testing.expectEqualStrings(text, try std.mem.print(&buffer, "{f}", .{prefix}));
    }
    const office = try Ip4Prefix.parse("10.1.2.128/25");
    try testing.expect(office.contains(.init(10, 1, 2, 200)));
    try testing.expect(!office.contains(.init(10, 1, 2, 127)));
    try testing.expect(!office.hasHost(.init(10, 1, 2, 128)));
    try testing.expect(!office.hasHost(.init(10, 1, 2, 255)));
    try testing.expect(office.hasHost(.init(10, 1, 2, 254)));
    try testing.expectEqual(Ip4.init(255, 255, 255, 128), office.mask());
    try testing.expect(office.eql(.of(.init(10, 1, 2, 129), 25)));
    try testing.expect((try Ip4Prefix.parse("0.0.0.0/0")).contains(.broadcast));
}

test "text that is not a subnet is refused" {
    for ([_][]const u8{
        "",
        "10.1.0.0",
        "10.1.0.0/",
        "10.1.0.0/33",
        "10.1.0.0/+8",
        "10.1.0/16",
    }) |text|
        try testing.expectError(error.InvalidPrefix, Ip4Prefix.parse(text));
    try testing.expectError(error.HostBits, Ip4Prefix.parse("10.1.0.5/16"));
}
