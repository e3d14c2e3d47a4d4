//! The URL of a control plane: what it must be before an edge speaks to it. Pure.

const std = @import("std");
const base = @import("base");
const HostName = std.Io.net.HostName;

pub const ControlUrl = @This();

is_tls: bool,
/// A name or an IPv4 address. Points into the text, as `prefix` does.
host: []const u8,
port: u16,
/// What precedes the path of each request, without a trailing slash.
prefix: []const u8,

pub const Error = error{
    /// Neither `http://` nor `https://`.
    UnknownScheme,
    InvalidHost,
    /// A password in a URL ends up in logs.
    HasCredentials,
    HasQuery,
};

pub fn parse(text: []const u8) Error!ControlUrl {
    const is_tls = std.ascii.startsWithIgnoreCase(text, "https://");
    if (!is_tls and !std.ascii.startsWithIgnoreCase(text, "http://")) return error.UnknownScheme;
    const uri = std.Uri.parse(text) catch return error.InvalidHost;
    if (uri.user != null or uri.password != null) return error.HasCredentials;
    if (uri.query != null or uri.fragment != null) return error.HasQuery;
    const host = textOf(uri.host orelse return error.InvalidHost);
    HostName.validate(host) catch return error.InvalidHost;
    return .{
        .is_tls = is_tls,
        .host = host,
        .port = uri.port orelse if (is_tls) 443 else 80,
        .prefix = std.mem.trimEnd(u8, textOf(uri.path), "/"),
    };
}

fn textOf(component: std.Uri.Component) []const u8 {
    return switch (component) {
        .raw, .percent_encoded => |text| text,
    };
}

/// Nobody listens between this machine and itself. Names below `localhost` are resolved to the
/// loopback address whatever a name server says (RFC 6761, 6.3).
pub fn isLoopback(url: *const ControlUrl) bool {
    if (base.Ip4.parse(url.host)) |ip| return ip.bytes[0] == 127 else |_| {}
    const name = std.mem.trimEnd(u8, url.host, ".");
    return std.ascii.eqlIgnoreCase(name, "localhost") or
        std.ascii.endsWithIgnoreCase(name, ".localhost");
}

/// Whether somebody on the path can read what is sent, and send answers.
pub fn isExposed(url: *const ControlUrl) bool {
    return !url.is_tls and !url.isLoopback();
}

const testing = std.testing;

test "a URL is split into what a connection needs" {
    const plain = try parse("http://127.0.0.1:4000");
    try testing.expect(!plain.is_tls and plain.port == 4000);
    try testing.expectEqualStrings("127.0.0.1", plain.host);
    try testing.expectEqualStrings("", plain.prefix);
    const nested = try parse("HTTPS://Boot.example.org/bootfarm/");
    try testing.expect(nested.is_tls and nested.port == 443);
    try testing.expectEqualStrings("Boot.example.org", nested.host);
    try testing.expectEqualStrings("/bootfarm", nested.prefix);
}

test "a URL that names no server over HTTP is refused" {
    for ([_]struct { []const u8, Error }{
        .{ "bootfarm.example.org", error.UnknownScheme },
        .{ "ftp://a", error.UnknownScheme },
        .{ "", error.UnknownScheme },
        .{ "http://", error.InvalidHost },
        .{ "http://a b", error.InvalidHost },
        .{ "https://[::1]/", error.InvalidHost },
        .{ "https://u:p@a/", error.HasCredentials },
        .{ "https://a/?x=1", error.HasQuery },
    }) |case| try testing.expectError(case[1], parse(case[0]));
}

test "only loopback may do without TLS" {
    for ([_][]const u8{
        "http://localhost:4000",
        "http://LOCALHOST",
        "http://api.localhost.",
        "http://127.9.9.9",
        "https://192.0.2.1",
        "https://bootfarm.example.org",
    }) |text| try testing.expect(!(try parse(text)).isExposed());
    for ([_][]const u8{
        "http://192.0.2.1",
        "http://localhost.example.org",
        "http://notlocalhost",
        "http://127.0.0.1.example.org",
        "http://128.0.0.1",
    }) |text| try testing.expect((try parse(text)).isExposed());
}
