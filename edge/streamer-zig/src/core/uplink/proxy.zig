//! The HTTP proxy between an edge and its control plane: named by an option, or by the environment
//! as curl and most programs read it (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, also in
//! lower case, which has precedence). Pure.

const std = @import("std");
const base = @import("base");
const ControlUrl = @import("control_url.zig");
const HostName = std.Io.net.HostName;

pub const Proxy = @This();

/// Points into the text.
host: []const u8,
port: u16,
/// The value of `Proxy-Authorization`.
authorization: ?[]const u8 = null,

pub const Error = error{ NotHttp, InvalidHost, PasswordTooLong, OutOfMemory };

/// Of a user and of a password.
const part_size_max = 255;
/// curl's default.
const port_default = 1080;

/// Parses `[http://][USER:PASSWORD@]HOST[:PORT]`.
pub fn parse(arena: std.mem.Allocator, text: []const u8) Error!Proxy {
    const uri = if (std.mem.find(u8, text, "://") == null)
        std.Uri.parseAfterScheme("http", try std.mem.concat(arena, u8, &.{ "//", text })) catch
            return error.InvalidHost
    else
        std.Uri.parse(text) catch return error.InvalidHost;
    if (!std.ascii.eqlIgnoreCase(uri.scheme, "http")) return error.NotHttp;
    const host = switch (uri.host orelse return error.InvalidHost) {
        .raw, .percent_encoded => |said| said,
    };
    HostName.validate(host) catch return error.InvalidHost;
    return .{
        .host = host,
        .port = uri.port orelse port_default,
        .authorization = try authorizationOf(arena, &uri),
    };
}

fn authorizationOf(arena: std.mem.Allocator, uri: *const std.Uri) Error!?[]const u8 {
    if (uri.user == null and uri.password == null) return null;
    var buffers: [2][part_size_max]u8 = undefined;
    const user = (uri.user orelse std.Uri.Component.empty).toRaw(&buffers[0]) catch
        return error.PasswordTooLong;
    const password = (uri.password orelse std.Uri.Component.empty).toRaw(&buffers[1]) catch
        return error.PasswordTooLong;
    if (user.len > part_size_max or password.len > part_size_max) return error.PasswordTooLong;
    // RFC 7617. The standard library's would send them as the URL has them, percent-encoded.
    const pair = try std.mem.concat(arena, u8, &.{ user, ":", password });
    return try std.fmt.allocPrint(arena, "Basic {b64}", .{pair});
}

/// Reads a variable of the environment; an empty one counts as absent.
pub const Environment = struct {
    context: *const anyopaque,
    get: *const fn (*const anyopaque, []const u8) ?[]const u8,

    fn first(environment: Environment, names: []const []const u8) ?[]const u8 {
        for (names) |name| if (environment.get(environment.context, name)) |text|
            if (text.len > 0) return text;
        return null;
    }
};

/// Returns the text of the proxy for this URL. None leads to this machine itself.
pub fn ofEnvironment(environment: Environment, url: *const ControlUrl) ?[]const u8 {
    if (url.isLoopback()) return null;
    const own: []const []const u8 =
        if (url.is_tls) &.{ "https_proxy", "HTTPS_PROXY" } else &.{ "http_proxy", "HTTP_PROXY" };
    const text = environment.first(own) orelse
        environment.first(&.{ "all_proxy", "ALL_PROXY" }) orelse return null;
    const excluded = environment.first(&.{ "no_proxy", "NO_PROXY" }) orelse return text;
    return if (isExcluded(excluded, url)) null else text;
}

/// `*`, or names with or without a leading dot that stand for themselves and what is below them,
/// each perhaps with a port; separated by commas.
fn isExcluded(list: []const u8, url: *const ControlUrl) bool {
    const host = std.mem.trimEnd(u8, url.host, ".");
    var entries = std.mem.tokenizeAny(u8, list, ", \t");
    while (entries.next()) |entry| {
        if (std.mem.eql(u8, entry, "*")) return true;
        const name, const port_text = std.mem.cutScalar(u8, entry, ':') orelse .{ entry, "" };
        if (port_text.len > 0) {
            const port = std.fmt.parseInt(u16, port_text, 10) catch continue;
            if (port != url.port) continue;
        }
        const bare = std.mem.trim(u8, name, ".");
        if (bare.len == 0 or !std.ascii.endsWithIgnoreCase(host, bare)) continue;
        if (host.len == bare.len) return true;
        // An address has nothing below it.
        const is_address = if (base.Ip4.parse(host)) |_| true else |_| false;
        if (!is_address and host[host.len - bare.len - 1] == '.') return true;
    }
    return false;
}

const testing = std.testing;

const TestEnvironment = struct {
    pairs: []const [2][]const u8,

    fn environment(self: *const TestEnvironment) Environment {
        return .{ .context = self, .get = get };
    }

    fn get(context: *const anyopaque, name: []const u8) ?[]const u8 {
        const self: *const TestEnvironment = @ptrCast(@alignCast(context));
        for (self.pairs) |pair| if (std.mem.eql(u8, pair[0], name)) return pair[1];
        return null;
    }
};

test "a proxy is a host, a port and perhaps a password" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const a = arena.allocator();
    const named = try parse(a, "http://proxy.example.org:3128/");
    try testing.expectEqualStrings("proxy.example.org", named.host);
    try testing.expectEqual(3128, named.port);
    try testing.expectEqual(null, named.authorization);
    const bare = try parse(a, "10.0.0.9:8080");
    try testing.expectEqualStrings("10.0.0.9", bare.host);
    try testing.expectEqual(8080, bare.port);
    try testing.expectEqual(port_default, (try parse(a, "proxy")).port);
    const secret = try parse(a, "http://ada:p%40ss@proxy:1");
    try testing.expectEqualStrings("Basic YWRhOnBAc3M=", secret.authorization.?);
    try testing.expectError(error.NotHttp, parse(a, "https://proxy:1"));
    try testing.expectError(error.NotHttp, parse(a, "socks5://proxy:1"));
    try testing.expectError(error.InvalidHost, parse(a, "http://"));
    try testing.expectError(error.InvalidHost, parse(a, "a b"));
    const long: [300]u8 = @splat('x');
    try testing.expectError(error.PasswordTooLong, parse(a, "http://a:" ++ long ++ "@proxy"));
}

test "the environment names a proxy by the scheme, and the hosts without one" {
    const tls = try ControlUrl.parse("https://boot.example.org");
    const plain = try ControlUrl.parse("http://boot.example.org:81");
    const Case = struct { pairs: []const [2][]const u8, tls: ?[]const u8, plain: ?[]const u8 };
    for ([_]Case{
        .{ .pairs = &.{}, .tls = null, .plain = null },
        .{ .pairs = &.{.{ "HTTPS_PROXY", "a" }}, .tls = "a", .plain = null },
        .{ .pairs = &.{.{ "http_proxy", "a" }}, .tls = null, .plain = "a" },
        .{
            .pairs = &.{ .{ "HTTPS_PROXY", "a" }, .{ "https_proxy", "b" }, .{ "ALL_PROXY", "c" } },
            .tls = "b",
            .plain = "c",
        },
        .{ .pairs = &.{ .{ "https_proxy", "" }, .{ "ALL_PROXY", "c" } }, .tls = "c", .plain = "c" },
        .{ .pairs = &.{ .{ "ALL_PROXY", "c" }, .{ "NO_PROXY", "*" } }, .tls = null, .plain = null },
        .{
            .pairs = &.{ .{ "ALL_PROXY", "c" }, .{ "no_proxy", "other, .EXAMPLE.org:81" } },
            .tls = "c",
            .plain = null,
        },
        .{
            .pairs = &.{ .{ "ALL_PROXY", "c" }, .{ "NO_PROXY", "t.example.org,ample.org" } },
            .tls = "c",
            .plain = "c",
        },
        .{
            .pairs = &.{ .{ "ALL_PROXY", "c" }, .{ "NO_PROXY", "boot.example.org" } },
            .tls = null,
            .plain = null,
        },
    }) |case| {
        const given: TestEnvironment = .{ .pairs = case.pairs };
        const urls = [_]*const ControlUrl{ &tls, &plain };
        for (urls, [_]?[]const u8{ case.tls, case.plain }) |url, want| {
            const found = ofEnvironment(given.environment(), url);
            if (want) |text| try testing.expectEqualStrings(text, found.?) else //
            try testing.expectEqual(null, found);
        }
    }
}

test "no proxy leads to this machine itself, nor to a part of an excluded address" {
    const given: TestEnvironment =
        .{ .pairs = &.{ .{ "ALL_PROXY", "c" }, .{ "NO_PROXY", "2.1,192.0.2.9" } } };
    for ([_][]const u8{ "https://localhost", "http://127.0.0.1:4000", "https://192.0.2.9" }) |text|
        try testing.expectEqual(
            null,
            ofEnvironment(given.environment(), &(try ControlUrl.parse(text))),
        );
    const other = try ControlUrl.parse("https://192.0.2.1");
    try testing.expectEqualStrings("c", ofEnvironment(given.environment(), &other).?);
}
