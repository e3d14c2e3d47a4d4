//! Ethernet and IPv4 addresses with their text forms.

const std = @import("std");
const assert = std.debug.assert;

/// An Ethernet address. Written lower case and colon-separated; `-` is read as well.
pub const Mac = extern struct {
    bytes: [6]u8,

    pub const text_size = 17;
    pub const zero: Mac = .{ .bytes = @splat(0) };
    pub const broadcast: Mac = .{ .bytes = @splat(0xff) };

    pub fn parse(text: []const u8) error{InvalidMac}!Mac {
        if (text.len != text_size) return error.InvalidMac;
        const separator = text[2];
        if (separator != ':' and separator != '-') return error.InvalidMac;
        var mac: Mac = .zero;
        for (&mac.bytes, 0..) |*byte, index| {
            const at = index * 3;
            if (index > 0 and text[at - 1] != separator) return error.InvalidMac;
            _ = std.fmt.hexToBytes(byte[0..1], text[at..][0..2]) catch return error.InvalidMac;
        }
        return mac;
    }

    pub fn format(mac: Mac, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        for (mac.bytes, 0..) |byte, index| {
            if (index > 0) try writer.writeByte(':');
            try writer.print("{x:0>2}", .{byte});
        }
    }

    pub fn toText(mac: Mac) [text_size]u8 {
        var text: [text_size]u8 = undefined;
        const written = std.mem.print(&text, "{f}", .{mac}) catch unreachable;
        assert(written.len == text_size);
        return text;
    }

    /// A JSON string, for std.json.
    pub fn jsonStringify(mac: Mac, json: anytype) !void {
        try json.print("\"{f}\"", .{mac});
    }

    pub fn jsonParse(
        allocator: std.mem.Allocator,
        source: anytype,
        options: std.json.ParseOptions,
    ) !Mac {
        const text = try std.json.innerParse([]const u8, allocator, source, options);
        return parse(text) catch error.UnexpectedToken;
    }

    pub fn eql(a: Mac, b: Mac) bool {
        return std.mem.eql(u8, &a.bytes, &b.bytes);
    }

    /// For tables keyed by address.
    pub fn toInt(mac: Mac) u48 {
        return std.mem.readInt(u48, &mac.bytes, .big);
    }

    pub fn fromInt(value: u48) Mac {
        var mac: Mac = .zero;
        std.mem.writeInt(u48, &mac.bytes, value, .big);
        return mac;
    }

    /// Tells whether this can be a device's address: unicast and not all zeros.
    pub fn isDevice(mac: Mac) bool {
        return mac.bytes[0] & 1 == 0 and !mac.eql(.zero);
    }
};

/// An IPv4 address, dotted decimal in text. Extern, so that a packet's list of addresses can be
/// read in place.
pub const Ip4 = extern struct {
    bytes: [4]u8,

    pub const text_size_max = 15;
    pub const zero: Ip4 = .{ .bytes = @splat(0) };
    pub const broadcast: Ip4 = .{ .bytes = @splat(255) };

    pub fn init(a: u8, b: u8, c: u8, d: u8) Ip4 {
        return .{ .bytes = .{ a, b, c, d } };
    }

    /// Four decimal numbers without leading zeros (which some readers take for octal).
    pub fn parse(text: []const u8) error{InvalidIp}!Ip4 {
        var ip: Ip4 = .zero;
        var parts = std.mem.splitScalar(u8, text, '.');
        for (&ip.bytes) |*byte| {
            const part = parts.next() orelse return error.InvalidIp;
            if (part.len == 0 or part.len > 3) return error.InvalidIp;
            if (part.len > 1 and part[0] == '0') return error.InvalidIp;
            var value: u16 = 0;
            for (part) |digit| {
                if (!std.ascii.isDigit(digit)) return error.InvalidIp;
                value = value * 10 + (digit - '0');
            }
            byte.* = std.math.cast(u8, value) orelse return error.InvalidIp;
        }
        if (parts.next() != null) return error.InvalidIp;
        return ip;
    }

    pub fn format(ip: Ip4, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        const b = ip.bytes;
        try writer.print("{d}.{d}.{d}.{d}", .{ b[0], b[1], b[2], b[3] });
    }

    /// A JSON string, for std.json.
    pub fn jsonStringify(ip: Ip4, json: anytype) !void {
        try json.print("\"{f}\"", .{ip});
    }

    pub fn jsonParse(
        allocator: std.mem.Allocator,
        source: anytype,
        options: std.json.ParseOptions,
    ) !Ip4 {
        const text = try std.json.innerParse([]const u8, allocator, source, options);
        return parse(text) catch error.UnexpectedToken;
    }

    pub fn eql(a: Ip4, b: Ip4) bool {
        return a.toInt() == b.toInt();
    }

    pub fn isZero(ip: Ip4) bool {
        return ip.toInt() == 0;
    }

    /// Returns the address as a number in the order of addresses.
    pub fn toInt(ip: Ip4) u32 {
        return std.mem.readInt(u32, &ip.bytes, .big);
    }

    pub fn fromInt(value: u32) Ip4 {
        var ip: Ip4 = .zero;
        std.mem.writeInt(u32, &ip.bytes, value, .big);
        return ip;
    }

    /// Not 0.0.0.0, multicast, reserved or broadcast: an address that one machine can own.
    pub fn isUnicast(ip: Ip4) bool {
        return !ip.isZero() and ip.bytes[0] < 224;
    }
};

/// One endpoint of UDP or TCP.
pub const Endpoint = struct {
    ip: Ip4,
    port: u16,

    pub const text_size_max = Ip4.text_size_max + ":65535".len;

    /// `IP:PORT`, port 1 to 65535.
    pub fn parse(text: []const u8) error{InvalidEndpoint}!Endpoint {
        const colon = std.mem.findScalar(u8, text, ':') orelse return error.InvalidEndpoint;
        const ip = Ip4.parse(text[0..colon]) catch return error.InvalidEndpoint;
        const digits = text[colon + 1 ..];
        for (digits) |digit| if (!std.ascii.isDigit(digit)) return error.InvalidEndpoint;
        const port = std.fmt.parseInt(u16, digits, 10) catch return error.InvalidEndpoint;
        if (port == 0) return error.InvalidEndpoint;
        return .{ .ip = ip, .port = port };
    }

    pub fn format(endpoint: Endpoint, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("{f}:{d}", .{ endpoint.ip, endpoint.port });
    }

    pub fn eql(a: Endpoint, b: Endpoint) bool {
        return a.ip.eql(b.ip) and a.port == b.port;
    }

    /// For tables keyed by endpoint.
    pub fn toInt(endpoint: Endpoint) u48 {
        return @as(u48, endpoint.ip.toInt()) << 16 | endpoint.port;
    }
};

const testing = std.testing;

test "a MAC address survives its text form" {
    const mac: Mac = .{ .bytes = .{ 0x02, 0xbf, 0, 0, 0xaa, 0x0f } };
    try testing.expectEqualStrings("02:bf:00:00:aa:0f", &mac.toText());
    try testing.expect(mac.eql(try .parse("02:BF:00:00:AA:0F")));
    try testing.expect(mac.eql(try .parse("02-bf-00-00-aa-0f")));
    try testing.expect(mac.eql(.fromInt(mac.toInt())));
}

test "text that is not a MAC address is refused" {
    const wrong = [_][]const u8{
        "",                  "02:bf:00:00:00",    "02:bf:00:00:00:0g", "02:bf:00:00:00:01:",
        "02bf.0000.0001000", "02:bf:00-00:00:01", "+2:bf:00:00:00:01",
    };
    for (wrong) |text| try testing.expectError(error.InvalidMac, Mac.parse(text));
}

test "multicast and zero addresses are no devices" {
    try testing.expect(!Mac.zero.isDevice());
    try testing.expect(!Mac.broadcast.isDevice());
    try testing.expect((try Mac.parse("02:bf:00:00:00:01")).isDevice());
}

test "an IPv4 address survives its text form" {
    var buffer: [Ip4.text_size_max]u8 = undefined;
    for ([_][]const u8{ "0.0.0.0", "127.77.0.10", "255.255.255.255" }) |text| {
        const ip = try Ip4.parse(text);
        try testing.expectEqualStrings(text, try std.mem.print(&buffer, "{f}", .{ip}));
        try testing.expect(ip.eql(.fromInt(ip.toInt())));
    }
}

test "text that is not an IPv4 address is refused" {
    const wrong = [_][]const u8{
        "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.x", "1..2.3", "+1.2.3.4",
    };
    for (wrong) |text| try testing.expectError(error.InvalidIp, Ip4.parse(text));
}

test "an endpoint survives its text form and wrong ones are refused" {
    var buffer: [Endpoint.text_size_max]u8 = undefined;
    const endpoint = try Endpoint.parse("255.255.255.255:9");
    const text_again = try std.mem.print(&buffer, "{f}", .{endpoint});
    try testing.expectEqualStrings("255.255.255.255:9", text_again);
    const wrong = [_][]const u8{
        "", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:+1", "1.2.3.4:1_0",
    };
    for (wrong) |text| try testing.expectError(error.InvalidEndpoint, Endpoint.parse(text));
}
