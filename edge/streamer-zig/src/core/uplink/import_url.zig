//! The address of an image that an edge fetches for an import: its parts, where its redirects lead,
//! and which addresses an edge may fetch from at all (`--import-from`). The edge stands inside of a
//! site's network: without these rules whoever may import could read what only the site can reach.
//! Pure; the host resolves names, and asks here before it connects and again when it has connected.

const std = @import("std");
const base = @import("base");
const HostName = std.Io.net.HostName;

pub const ImportUrl = @This();

is_tls: bool,
/// A name, an IPv4 address, or an IPv6 address without brackets. Points into the text.
host: []const u8,
/// Set where `host` is an address.
address: ?Address,
port: u16,
/// `host` as a header and another URL have it.
host_header: []const u8,
/// Path and query, as they are sent; empty: `/`.
target: []const u8,

pub const size_max = 2048;
pub const redirects_max = 5;

pub const Error = error{
    /// Neither `http://` nor `https://`.
    UnknownScheme,
    InvalidHost,
    InvalidPort,
    /// A password in a URL ends up in logs.
    HasCredentials,
    /// A space, a control character, or something that is not ASCII.
    InvalidCharacter,
    TooLong,
};

pub fn parse(text: []const u8) Error!ImportUrl {
    if (text.len > size_max) return error.TooLong;
    for (text) |byte| if (!isGraphic(byte)) return error.InvalidCharacter;
    const is_tls = std.ascii.startsWithIgnoreCase(text, "https://");
    if (!is_tls and !std.ascii.startsWithIgnoreCase(text, "http://")) return error.UnknownScheme;
    const rest = text[if (is_tls) "https://".len else "http://".len..];
    const end = std.mem.findAny(u8, rest, "/?#") orelse rest.len;
    const authority = rest[0..end];
    // Browsers read a backslash as a slash: two readers would see two hosts.
    if (std.mem.findScalar(u8, authority, '\\') != null) return error.InvalidHost;
    if (std.mem.findScalar(u8, authority, '@') != null) return error.HasCredentials;
    const fragment = std.mem.findScalar(u8, rest, '#') orelse rest.len;
    var url: ImportUrl = .{
        .is_tls = is_tls,
        .host = authority,
        .address = null,
        .host_header = authority,
        .port = if (is_tls) 443 else 80,
        .target = rest[end..fragment],
    };
    try url.takeAuthority(authority);
    return url;
}

fn isGraphic(byte: u8) bool {
    return byte > ' ' and byte < 0x7f;
}

fn takeAuthority(url: *ImportUrl, authority: []const u8) Error!void {
    var after: []const u8 = "";
    defer url.host_header = authority[0 .. authority.len - after.len];
    if (std.mem.startsWith(u8, authority, "[")) {
        const close = std.mem.findScalar(u8, authority, ']') orelse return error.InvalidHost;
        url.host = authority[1..close];
        after = authority[close + 1 ..];
        const parsed = std.Io.net.Ip6Address.parse(url.host, 0) catch return error.InvalidHost;
        url.address = .{ .ip6 = parsed.bytes };
    } else {
        const colon = std.mem.findScalar(u8, authority, ':') orelse authority.len;
        url.host = authority[0..colon];
        after = authority[colon..];
        if (base.Ip4.parse(url.host)) |ip| {
            url.address = .{ .ip4 = ip.bytes };
        } else |_| {
            HostName.validate(url.host) catch return error.InvalidHost;
            // 127.1, 2130706433 and 0x7f000001 are addresses to some resolvers.
            if (endsInNumber(url.host)) return error.InvalidHost;
        }
    }
    if (after.len == 0) return;
    if (after[0] != ':') return error.InvalidHost;
    if (after.len == 1) return;
    url.port = std.fmt.parseInt(u16, after[1..], 10) catch return error.InvalidPort;
    if (url.port == 0 or !std.ascii.isDigit(after[1])) return error.InvalidPort;
}

fn endsInNumber(name: []const u8) bool {
    const trimmed = std.mem.trimEnd(u8, name, ".");
    const dot = std.mem.findScalarLast(u8, trimmed, '.');
    const last = if (dot) |at| trimmed[at + 1 ..] else trimmed;
    if (std.ascii.startsWithIgnoreCase(last, "0x")) return true;
    for (last) |byte| if (!std.ascii.isDigit(byte)) return false;
    return true;
}

/// Writes where a redirect of this URL leads. An encrypted one leads to no clear text.
pub fn follow(
    url: *const ImportUrl,
    location: []const u8,
    buffer: *[size_max]u8,
) (Error || error{LosesTls})!ImportUrl {
    for (location) |byte| if (!isGraphic(byte)) return error.InvalidCharacter;
    const scheme = if (url.is_tls) "https:" else "http:";
    const is_whole = std.mem.find(u8, location, "://") != null and
        std.mem.findAny(u8, location, "/?#").? == std.mem.find(u8, location, "://").? + 1;
    const text = if (is_whole)
        std.mem.print(buffer, "{s}", .{location})
    else if (std.mem.startsWith(u8, location, "//"))
        std.mem.print(buffer, "{s}{s}", .{ scheme, location })
    else
        std.mem.print(buffer, "{s}//{s}:{d}{s}{s}", .{
            scheme,
            url.host_header,
            url.port,
            url.directoryFor(location),
            location,
        });
    const next = try parse(text catch return error.TooLong);
    if (url.is_tls and !next.is_tls) return error.LosesTls;
    return next;
}

/// What precedes a relative reference (RFC 3986, 5.2.3).
fn directoryFor(url: *const ImportUrl, location: []const u8) []const u8 {
    if (std.mem.startsWith(u8, location, "/")) return "";
    const query = std.mem.findScalar(u8, url.target, '?') orelse url.target.len;
    const path = url.target[0..query];
    if (location.len == 0 or location[0] == '?' or location[0] == '#')
        return if (path.len == 0) "/" else path;
    const slash = std.mem.findScalarLast(u8, path, '/') orelse return "/";
    return path[0 .. slash + 1];
}

pub const Address = union(enum) {
    ip4: [4]u8,
    ip6: [16]u8,

    pub const Class = enum { public, private, loopback, link_local, reserved };

    /// An IPv4 address in another form is of that address's class: a router or this machine may
    /// lead there.
    pub fn class(address: Address) Class {
        return switch (address) {
            .ip4 => |bytes| classOfIp4(bytes),
            .ip6 => |bytes| classOfIp6(bytes),
        };
    }

    /// The IPv4 address that an IPv6 one stands for.
    fn plain(address: Address) Address {
        return switch (address) {
            .ip4 => address,
            .ip6 => |bytes| if (std.mem.startsWith(u8, &bytes, &mapped_prefix))
                .{ .ip4 = bytes[12..16].* }
            else
                address,
        };
    }
};

/// RFC 4291, 2.5.5.2.
const mapped_prefix = [_]u8{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
/// RFC 6052.
const nat64_prefix = [_]u8{ 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0 };

const Ip4Class = struct { bytes: [4]u8, size: u6, class: Address.Class };
/// RFC 6890.
const ip4_classes = [_]Ip4Class{
    .{ .bytes = .{ 0, 0, 0, 0 }, .size = 8, .class = .reserved },
    .{ .bytes = .{ 10, 0, 0, 0 }, .size = 8, .class = .private },
    .{ .bytes = .{ 100, 64, 0, 0 }, .size = 10, .class = .private },
    .{ .bytes = .{ 127, 0, 0, 0 }, .size = 8, .class = .loopback },
    .{ .bytes = .{ 169, 254, 0, 0 }, .size = 16, .class = .link_local },
    .{ .bytes = .{ 172, 16, 0, 0 }, .size = 12, .class = .private },
    .{ .bytes = .{ 192, 0, 0, 0 }, .size = 24, .class = .reserved },
    .{ .bytes = .{ 192, 0, 2, 0 }, .size = 24, .class = .reserved },
    .{ .bytes = .{ 192, 168, 0, 0 }, .size = 16, .class = .private },
    .{ .bytes = .{ 198, 18, 0, 0 }, .size = 15, .class = .private },
    .{ .bytes = .{ 198, 51, 100, 0 }, .size = 24, .class = .reserved },
    .{ .bytes = .{ 203, 0, 113, 0 }, .size = 24, .class = .reserved },
    // Multicast, reserved, broadcast.
    .{ .bytes = .{ 224, 0, 0, 0 }, .size = 3, .class = .reserved },
};

fn classOfIp4(bytes: [4]u8) Address.Class {
    for (&ip4_classes) |*one|
        if (hasPrefix(&bytes, &one.bytes, one.size)) return one.class;
    return .public;
}

fn classOfIp6(bytes: [16]u8) Address.Class {
    for ([_]*const [12]u8{ &mapped_prefix, &nat64_prefix }) |prefix|
        if (std.mem.startsWith(u8, &bytes, prefix)) return classOfIp4(bytes[12..16].*);
    // 6to4 (RFC 3056).
    if (bytes[0] == 0x20 and bytes[1] == 0x02) return classOfIp4(bytes[2..6].*);
    if (std.mem.allEqual(u8, bytes[0..15], 0))
        return if (bytes[15] == 1) .loopback else .reserved;
    if (bytes[0] == 0xfe and bytes[1] & 0xc0 == 0x80) return .link_local;
    if (bytes[0] == 0xfe and bytes[1] & 0xc0 == 0xc0) return .private;
    if (bytes[0] & 0xfe == 0xfc) return .private;
    // Teredo and what is assigned to protocols (RFC 2928); documentation (RFC 3849).
    if (hasPrefix(&bytes, &.{ 0x20, 0x01, 0, 0 }, 23)) return .reserved;
    if (hasPrefix(&bytes, &.{ 0x20, 0x01, 0x0d, 0xb8 }, 32)) return .reserved;
    // Only this is assigned as global unicast (RFC 4291, 2.4).
    return if (bytes[0] & 0xe0 == 0x20) .public else .reserved;
}

fn hasPrefix(bytes: []const u8, prefix: []const u8, size: u8) bool {
    const whole = size / 8;
    if (!std.mem.eql(u8, bytes[0..whole], prefix[0..whole])) return false;
    if (size % 8 == 0) return true;
    const shift: u3 = @intCast(8 - size % 8);
    return bytes[whole] >> shift == prefix[whole] >> shift;
}

/// Where an edge may fetch images.
pub const Sources = struct {
    list: base.BoundedArray(Source, sources_max) = .{
        .buffer = @splat(.public),
        .count = 1,
    },

    pub const sources_max = 32;
    pub const none: Sources = .{ .list = .empty };

    pub const Source = union(enum) {
        /// Each address that is reachable from everywhere.
        public,
        network: Network,
        /// A name; with a leading dot, all names below it. At any address but loopback and
        /// link-local ones.
        name: []const u8,
    };

    pub const Network = struct { bytes: [16]u8, size: u8, is_ip6: bool };

    pub const Refusal = enum {
        not_listed,
        loopback,
        link_local,
        private,
        reserved,

        /// Follows the address.
        pub fn sentence(why: Refusal) []const u8 {
            return switch (why) {
                .not_listed => "which --import-from of this edge does not list",
                .loopback => "the edge's machine itself",
                .link_local => "a link-local address",
                .private => "a private address",
                .reserved => "a reserved address",
            };
        }
    };

    /// Parses `public`, `none`, networks, addresses and names. Points into the text.
    pub fn parse(text: []const u8) error{ Invalid, TooMany }!Sources {
        var sources: Sources = .none;
        if (std.mem.eql(u8, text, "none")) return sources;
        var words = std.mem.splitScalar(u8, text, ',');
        while (words.next()) |word| {
            const source = parseSource(word) orelse return error.Invalid;
            sources.list.append(source) catch return error.TooMany;
        }
        return sources;
    }

    /// Returns why an edge may not connect to this address for a URL of this host.
    pub fn refusal(sources: *const Sources, host: []const u8, given: Address) ?Refusal {
        const address = given.plain();
        const class = address.class();
        for (sources.list.constSlice()) |source| switch (source) {
            .public => if (class == .public) return null,
            .network => |network| if (isWithin(address, network)) return null,
            .name => |name| {
                const may = class == .public or class == .private;
                if (may and isNamed(host, name)) return null;
            },
        };
        return switch (class) {
            .public => .not_listed,
            .private => .private,
            .loopback => .loopback,
            .link_local => .link_local,
            .reserved => .reserved,
        };
    }
};

fn parseSource(word: []const u8) ?Sources.Source {
    if (std.mem.eql(u8, word, "public")) return .public;
    const slash = std.mem.findScalar(u8, word, '/') orelse word.len;
    const text = word[0..slash];
    if (base.Ip4.parse(text)) |ip| {
        const size = sizeOf(word[slash..], 32) orelse return null;
        return .{ .network = .{
            .bytes = ip.bytes ++ @as([12]u8, @splat(0)),
            .size = size,
            .is_ip6 = false,
        } };
    } else |_| {}
    if (std.Io.net.Ip6Address.parse(text, 0)) |ip| {
        const size = sizeOf(word[slash..], 128) orelse return null;
        return .{ .network = .{ .bytes = ip.bytes, .size = size, .is_ip6 = true } };
    } else |_| {}
    if (slash != word.len) return null;
    const name = if (std.mem.startsWith(u8, word, ".")) word[1..] else word;
    HostName.validate(name) catch return null;
    if (endsInNumber(name)) return null;
    return .{ .name = word };
}

/// An address alone is the network of itself.
fn sizeOf(text: []const u8, max: u8) ?u8 {
    if (text.len == 0) return max;
    const size = std.fmt.parseInt(u8, text[1..], 10) catch return null;
    return if (size <= max and std.ascii.isDigit(text[1])) size else null;
}

fn isWithin(address: Address, network: Sources.Network) bool {
    return switch (address) {
        .ip4 => |bytes| !network.is_ip6 and hasPrefix(&bytes, &network.bytes, network.size),
        .ip6 => |bytes| network.is_ip6 and hasPrefix(&bytes, &network.bytes, network.size),
    };
}

fn isNamed(host: []const u8, name: []const u8) bool {
    const given = std.mem.trimEnd(u8, host, ".");
    if (!std.mem.startsWith(u8, name, ".")) return std.ascii.eqlIgnoreCase(given, name);
    return given.len > name.len and std.ascii.endsWithIgnoreCase(given, name);
}

const testing = std.testing;

test "a URL is split into what a connection needs" {
    const plain = try parse("HTTP://images.example.org/a/b.raw?x=1#part");
    try testing.expect(!plain.is_tls and plain.port == 80 and plain.address == null);
    try testing.expectEqualStrings("images.example.org", plain.host);
    try testing.expectEqualStrings("/a/b.raw?x=1", plain.target);
    const other = try parse("https://[2001:db8::1]:8443");
    try testing.expect(other.is_tls and other.port == 8443 and other.address.? == .ip6);
    try testing.expectEqualStrings("2001:db8::1", other.host);
    try testing.expectEqualStrings("", other.target);
    try testing.expectEqual([4]u8{ 192, 0, 2, 1 }, (try parse("http://192.0.2.1:/x")).address.?.ip4);
}

test "a URL that two readers could take for two hosts is refused" {
    for ([_]struct { []const u8, Error }{
        .{ "ftp://a/b", error.UnknownScheme },
        .{ "file:///etc/passwd", error.UnknownScheme },
        .{ "//a/b", error.UnknownScheme },
        .{ "http:///b", error.InvalidHost },
        .{ "http://user@a/", error.HasCredentials },
        .{ "http://a:b@127.0.0.1/", error.HasCredentials },
        .{ "http://a\\@b/", error.InvalidHost },
        .{ "http://a b/", error.InvalidCharacter },
        .{ "http://a/\r\nx: y", error.InvalidCharacter },
        .{ "http://\xc3\xa4/", error.InvalidCharacter },
        .{ "http://127.1/", error.InvalidHost },
        .{ "http://2130706433/", error.InvalidHost },
        .{ "http://0x7f000001/", error.InvalidHost },
        .{ "http://0177.0.0.1/", error.InvalidHost },
        .{ "http://[::1/", error.InvalidHost },
        .{ "http://[::1]x/", error.InvalidHost },
        .{ "http://[fe80::1%eth0]/", error.InvalidHost },
        .{ "http://a:0/", error.InvalidPort },
        .{ "http://a:65536/", error.InvalidPort },
        .{ "http://a:+80/", error.InvalidPort },
        .{ "http://a/" ++ @as([size_max]u8, @splat(120)), error.TooLong },
    }) |case| try testing.expectError(case[1], parse(case[0]));
}

test "a redirect leads where RFC 3986 says, and never from TLS to clear text" {
    const from = try parse("https://a.example:8443/images/x.raw?y=/z");
    var buffer: [size_max]u8 = undefined;
    for ([_]struct { []const u8, []const u8, u16, []const u8 }{
        .{ "https://b.example/c", "b.example", 443, "/c" },
        .{ "//b.example/c", "b.example", 443, "/c" },
        .{ "/c?d=http://e/", "a.example", 8443, "/c?d=http://e/" },
        .{ "c", "a.example", 8443, "/images/c" },
        .{ "?d", "a.example", 8443, "/images/x.raw?d" },
    }) |case| {
        const next = try from.follow(case[0], &buffer);
        try testing.expectEqualStrings(case[1], next.host);
        try testing.expectEqual(case[2], next.port);
        try testing.expectEqualStrings(case[3], next.target);
    }
    try testing.expectError(error.LosesTls, from.follow("http://a.example/", &buffer));
    try testing.expectError(error.HasCredentials, from.follow("https://u:p@b/", &buffer));
    try testing.expectError(error.UnknownScheme, from.follow("file:///etc/passwd", &buffer));
    const six = try parse("http://[2001:db8::1]/a/b");
    try testing.expect((try six.follow("c", &buffer)).address.? == .ip6);
}

fn addressOf(text: []const u8) !Address {
    if (base.Ip4.parse(text)) |ip| return .{ .ip4 = ip.bytes } else |_| {}
    return .{ .ip6 = (try std.Io.net.Ip6Address.parse(text, 0)).bytes };
}

test "each address has its class, in whatever form it comes" {
    for ([_]struct { []const u8, Address.Class }{
        .{ "0.0.0.0", .reserved },
        .{ "9.255.255.255", .public },
        .{ "10.0.0.1", .private },
        .{ "100.63.255.255", .public },
        .{ "100.64.0.1", .private },
        .{ "127.0.0.1", .loopback },
        .{ "127.255.255.255", .loopback },
        .{ "169.254.169.254", .link_local },
        .{ "172.15.0.1", .public },
        .{ "172.31.0.1", .private },
        .{ "172.32.0.1", .public },
        .{ "192.168.1.1", .private },
        .{ "198.19.0.1", .private },
        .{ "203.0.113.5", .reserved },
        .{ "224.0.0.1", .reserved },
        .{ "255.255.255.255", .reserved },
        .{ "1.1.1.1", .public },
        .{ "::", .reserved },
        .{ "::1", .loopback },
        .{ "::2", .reserved },
        .{ "::ffff:127.0.0.1", .loopback },
        .{ "::ffff:10.0.0.1", .private },
        .{ "::ffff:1.1.1.1", .public },
        .{ "64:ff9b::7f00:1", .loopback },
        .{ "64:ff9b::a9fe:a9fe", .link_local },
        .{ "2002:7f00:1::1", .loopback },
        .{ "2002:a00:1::1", .private },
        .{ "2001::1", .reserved },
        .{ "2001:db8::1", .reserved },
        .{ "2606:4700::1111", .public },
        .{ "fc00::1", .private },
        .{ "fd12::1", .private },
        .{ "fe80::1", .link_local },
        .{ "fec0::1", .private },
        .{ "ff02::1", .reserved },
        .{ "4000::1", .reserved },
    }) |case| try testing.expectEqual(case[1], (try addressOf(case[0])).class());
}

test "an edge fetches from public addresses, or from what is listed" {
    const public: Sources = .{};
    try testing.expectEqual(null, public.refusal("a.example", try addressOf("1.1.1.1")));
    for ([_]struct { []const u8, Sources.Refusal }{
        .{ "127.0.0.1", .loopback },
        .{ "::ffff:127.0.0.1", .loopback },
        .{ "10.0.0.1", .private },
        .{ "fe80::1", .link_local },
        .{ "0.0.0.0", .reserved },
    }) |case| try testing.expectEqual(
        case[1],
        public.refusal("a.example", try addressOf(case[0])),
    );
    const listed = try Sources.parse("10.1.0.0/16,fd00::/8,.lab.example,images.example,127.0.0.1");
    for ([_]struct { []const u8, []const u8, ?Sources.Refusal }{
        .{ "x", "10.1.2.3", null },
        .{ "x", "::ffff:10.1.2.3", null },
        .{ "x", "10.2.0.1", .private },
        .{ "x", "fd12::1", null },
        .{ "x", "1.1.1.1", .not_listed },
        .{ "x", "127.0.0.1", null },
        .{ "x", "127.0.0.2", .loopback },
        .{ "images.example", "1.1.1.1", null },
        .{ "IMAGES.example.", "192.168.0.1", null },
        .{ "not-images.example", "1.1.1.1", .not_listed },
        .{ "a.lab.example", "192.168.0.1", null },
        .{ "lab.example", "192.168.0.1", .private },
        // A name may not lead to the machine itself.
        .{ "images.example", "127.0.0.2", .loopback },
        .{ "images.example", "169.254.169.254", .link_local },
        .{ "images.example", "::1", .loopback },
    }) |case| try testing.expectEqual(
        case[2],
        listed.refusal(case[0], try addressOf(case[1])),
    );
    try testing.expectEqual(
        .not_listed,
        (try Sources.parse("none")).refusal("x", try addressOf("1.1.1.1")),
    );
}

test "what is no source of images is refused" {
    for ([_][]const u8{
        "",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "::/129",
        "a b",
        "public,",
        "127.1",
        ".",
        "a/8",
    }) |text| try testing.expectError(error.Invalid, Sources.parse(text));
    const many: [Sources.sources_max + 1][2]u8 = @splat(.{ 'a', ',' });
    const text = std.mem.asBytes(&many);
    try testing.expectError(error.TooMany, Sources.parse(text[0 .. text.len - 1]));
}
