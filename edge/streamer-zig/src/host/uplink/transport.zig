//! HTTP/1.1 to the control plane over one connection that is kept: TCP, the tunnel of a proxy (RFC
//! 9110, 9.3.6), TLS. The standard library's client is not used for it: through a proxy it sends
//! `https` in clear text, and it does not say why TLS failed. Redirects are not followed.
//!
//! Blocks its thread, which the caller cancels after its time limit. Used by one thread at a time.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const authorities = @import("authorities.zig");
const Failure = @import("transport_failure.zig").Failure;
const assert = std.debug.assert;
const Certificate = std.crypto.Certificate;
const Head = std.http.Client.Response.Head;
const Io = std.Io;
const net = std.Io.net;
const tls = std.crypto.tls;
const linux = std.os.linux;
const ControlUrl = core.uplink.ControlUrl;
const Proxy = core.uplink.Proxy;

pub const Transport = @This();

gpa: std.mem.Allocator,
io: Io,
settings: Settings,
connection: ?*Connection = null,
trust: Certificate.Bundle = .empty,
trust_lock: Io.RwLock = .init,
/// Null before the first time.
trust_read_at: ?Io.Timestamp = null,
/// What the exchange waits for. Read by the caller when its time is over.
step: std.atomic.Value(Step) = .init(.reach),
/// Why the last exchange failed.
failure: Failure = .closed,
/// The status by which a proxy refused its tunnel.
proxy_status: u16 = 0,

pub const Settings = struct {
    url: ControlUrl,
    proxy: ?Proxy = null,
    /// The certificates of these authorities are trusted, and no others; null: the system's.
    ca_file: ?[]const u8 = null,
};

const Step = enum(u8) { reach, tunnel, handshake, answer };

pub const Request = struct {
    method: []const u8,
    /// Path and query, with the URL's prefix.
    target: []const u8,
    /// Null: the request has no body.
    body: ?[]const u8 = null,
    content_type: []const u8 = "application/json",
    headers: []const std.http.Header = &.{},
};

pub const Answer = struct {
    status: u16,
    body: []const u8,
    /// `Retry-After` in seconds (RFC 9110, 10.2.3); a date is ignored, because clocks are not
    /// trusted.
    retry_after_s: ?u32 = null,
    /// Requests to this path may be sent with `content-encoding: gzip` (RFC 7694).
    takes_gzip: bool = false,
    /// The server's clock (RFC 9110, 5.6.7).
    date: ?[date_size]u8 = null,
    /// Where a redirect leads.
    location: base.UntrustedText = .empty,
};

const date_size = "Sun, 06 Nov 1994 08:49:37 GMT".len;

/// `Failed`: `failure` says why.
pub const Error = error{ Failed, AnswerTooLarge, Canceled };

const head_size_max = 8192;
/// Interim answers (1xx) before the answer.
const interim_max = 4;
/// A new certificate is accepted this late at most. Reading the system's certificates takes some
/// milliseconds.
const trust_age_s_max = 60;

/// `gpa` must be thread-safe.
pub fn init(gpa: std.mem.Allocator, io: Io, settings: Settings) Transport {
    return .{ .gpa = gpa, .io = io, .settings = settings };
}

pub fn deinit(transport: *Transport) void {
    transport.drop();
    transport.trust.deinit(transport.gpa);
    transport.* = undefined;
}

/// The answer's body is in `buffer`.
pub fn exchange(transport: *Transport, request: *const Request, buffer: []u8) Error!Answer {
    const connection = try transport.ready();
    errdefer transport.drop();
    transport.step.store(.answer, .monotonic);
    transport.send(connection, request) catch return transport.fail(.closed);
    return transport.receive(connection, buffer);
}

/// The time for an exchange is over, and it has been canceled.
pub fn onTimeout(transport: *Transport) void {
    transport.failure = switch (transport.step.load(.monotonic)) {
        .reach => if (transport.settings.proxy == null) .not_reached else .proxy_not_reached,
        .tunnel => .proxy_silent,
        .handshake => .tls_silent,
        .answer => .silent,
    };
}

fn fail(transport: *Transport, failure: Failure) error{Failed} {
    transport.failure = failure;
    return error.Failed;
}

/// Ends the connection: it failed, or its last answer was not read to its end.
fn drop(transport: *Transport) void {
    const connection = transport.connection orelse return;
    transport.connection = null;
    connection.stream.close(transport.io);
    transport.gpa.destroy(connection);
}

fn ready(transport: *Transport) Error!*Connection {
    if (transport.connection) |connection| {
        if (!connection.hasInput()) return connection;
        // The server has closed it: a request would be lost.
        transport.drop();
    }
    transport.step.store(.reach, .monotonic);
    const settings = &transport.settings;
    const host, const port = if (settings.proxy) |*proxy|
        .{ proxy.host, proxy.port }
    else
        .{ settings.url.host, settings.url.port };
    const name: net.HostName = .{ .bytes = host };
    const stream = name.connect(transport.io, port, .{ .mode = .stream }) catch |err| {
        if (err == error.Canceled) return error.Canceled;
        if (settings.proxy != null) return transport.fail(.proxy_not_reached);
        return transport.fail(switch (err) {
            error.UnknownHostName,
            error.NoAddressReturned,
            error.InvalidDnsCnameRecord,
            => .name_unknown,
            error.NameServerFailure, error.ResolvConfParseFailed => .name_server_silent,
            error.ConnectionRefused => .nothing_listens,
            error.NetworkUnreachable, error.HostUnreachable => .no_route,
            else => .not_reached,
        });
    };
    const connection = transport.gpa.create(Connection) catch {
        stream.close(transport.io);
        return transport.fail(.not_reached);
    };
    connection.init(transport.io, stream);
    transport.connection = connection;
    errdefer transport.drop();
    if (settings.url.is_tls) {
        if (settings.proxy) |*proxy| try transport.openTunnel(connection, proxy);
        try transport.handshake(connection);
    }
    return connection;
}

fn openTunnel(transport: *Transport, connection: *Connection, proxy: *const Proxy) Error!void {
    transport.step.store(.tunnel, .monotonic);
    const url = &transport.settings.url;
    connection.sendConnect(url, proxy) catch return transport.fail(.proxy_closed);
    var reader: std.http.Reader = connection.httpReader();
    const head = receiveHead(&reader) catch |err| return transport.fail(switch (err) {
        error.NotHttp => .proxy_not_http,
        error.Closed => .proxy_closed,
    });
    const status = @backingInt(head.status);
    if (status >= 200 and status < 300) return;
    transport.proxy_status = status;
    return transport.fail(if (status == 407) .proxy_wants_password else .proxy_refuses);
}

fn handshake(transport: *Transport, connection: *Connection) Error!void {
    transport.step.store(.handshake, .monotonic);
    try transport.renewTrust();
    connection.startTls(transport) catch |err| {
        if (err == error.Canceled) return error.Canceled;
        return transport.fail(.ofHandshake(err));
    };
}

/// An edge runs for months, and its authorities change meanwhile.
fn renewTrust(transport: *Transport) Error!void {
    const now = Io.Clock.real.now(transport.io);
    if (transport.trust_read_at) |read_at| if (!isStale(read_at, now)) return;
    var trust: Certificate.Bundle = .empty;
    errdefer trust.deinit(transport.gpa);
    readTrust(transport.gpa, transport.io, transport.settings.ca_file, now, &trust) catch |err| {
        if (err == error.Canceled) return error.Canceled;
        trust.deinit(transport.gpa);
        trust = .empty;
        // What was trusted a minute ago still is.
        if (transport.trust_read_at != null) return;
        return transport.fail(.authorities_unreadable);
    };
    transport.trust.deinit(transport.gpa);
    transport.trust = trust;
    transport.trust_read_at = now;
}

/// Also where the clock was set back.
fn isStale(read_at: Io.Timestamp, now: Io.Timestamp) bool {
    const age_s = @divTrunc(now.nanoseconds - read_at.nanoseconds, std.time.ns_per_s);
    return age_s < 0 or age_s >= trust_age_s_max;
}

fn readTrust(
    gpa: std.mem.Allocator,
    io: Io,
    ca_file: ?[]const u8,
    now: Io.Timestamp,
    trust: *Certificate.Bundle,
) authorities.Error!void {
    if (ca_file) |path| return authorities.read(gpa, io, path, now, trust);
    trust.rescan(gpa, io, now) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        else => error.NotReadable,
    };
}

/// Checks the file of `--ca-file` before anything depends on it.
pub fn checkAuthorities(
    gpa: std.mem.Allocator,
    io: Io,
    path: []const u8,
) authorities.Error!void {
    var trust: Certificate.Bundle = .empty;
    defer trust.deinit(gpa);
    return readTrust(gpa, io, path, Io.Clock.real.now(io), &trust);
}

fn send(transport: *const Transport, connection: *Connection, request: *const Request) !void {
    const url = &transport.settings.url;
    const writer = connection.writer();
    try writer.print("{s} ", .{request.method});
    // A proxy takes requests in clear text itself, and needs to know for whom they are.
    const proxy = if (url.is_tls) null else transport.settings.proxy;
    if (proxy != null) try writer.print("http://{s}:{d}", .{ url.host, url.port });
    try writer.print("{s} HTTP/1.1\r\nhost: {s}", .{ request.target, url.host });
    if (url.port != if (url.is_tls) @as(u16, 443) else 80) try writer.print(":{d}", .{url.port});
    try writer.print("\r\nuser-agent: bootfarm-edge/{s}\r\n", .{base.version});
    if (proxy) |*named| if (named.authorization) |value|
        try writer.print("proxy-authorization: {s}\r\n", .{value});
    for (request.headers) |header| {
        assert(std.mem.findAny(u8, header.value, "\r\n") == null);
        try writer.print("{s}: {s}\r\n", .{ header.name, header.value });
    }
    if (request.body) |body| try writer.print("content-type: {s}\r\ncontent-length: {d}\r\n", .{
        request.content_type, body.len,
    });
    try writer.writeAll("\r\n");
    if (request.body) |body| try writer.writeAll(body);
    try connection.flush();
}

fn receive(transport: *Transport, connection: *Connection, buffer: []u8) Error!Answer {
    var reader = connection.httpReader();
    var head = receiveHead(&reader) catch |err| return transport.fail(switch (err) {
        error.NotHttp => .not_http,
        error.Closed => .closed,
    });
    var answer: Answer = .{ .status = @backingInt(head.status), .body = "" };
    // Before the body: what the head points to is gone then.
    var headers = head.iterateHeaders();
    while (headers.next()) |header| take(&answer, header);
    // These end with their head and may have no length (RFC 9112, 6.3).
    if (head.status == .no_content or head.status == .not_modified) head.content_length = 0;
    const keeps_open = head.keep_alive;
    var transfer_buffer: [4096]u8 = undefined;
    var writer: Io.Writer = .fixed(buffer);
    const body = reader.bodyReader(&transfer_buffer, head.transfer_encoding, head.content_length);
    _ = body.streamRemaining(&writer) catch |err| return switch (err) {
        error.WriteFailed => error.AnswerTooLarge,
        error.ReadFailed => transport.fail(.closed),
    };
    answer.body = writer.buffered();
    if (!keeps_open or reader.state != .ready) transport.drop();
    return answer;
}

fn take(answer: *Answer, header: std.http.Header) void {
    if (std.ascii.eqlIgnoreCase(header.name, "retry-after")) {
        answer.retry_after_s = std.fmt.parseInt(u32, header.value, 10) catch null;
    } else if (std.ascii.eqlIgnoreCase(header.name, "accept-encoding")) {
        var codings = std.mem.splitScalar(u8, header.value, ',');
        while (codings.next()) |coding| {
            if (std.ascii.eqlIgnoreCase(std.mem.trim(u8, coding, " \t"), "gzip"))
                answer.takes_gzip = true;
        }
    } else if (std.ascii.eqlIgnoreCase(header.name, "date")) {
        if (header.value.len == date_size) answer.date = header.value[0..date_size].*;
    } else if (std.ascii.eqlIgnoreCase(header.name, "location")) {
        answer.location = .init(header.value);
    }
}

/// Returns the head of the answer, which is behind at most a few interim ones.
fn receiveHead(reader: *std.http.Reader) error{ NotHttp, Closed }!Head {
    for (0..interim_max) |_| {
        const bytes = reader.receiveHead() catch |err| return switch (err) {
            error.HttpHeadersOversize => error.NotHttp,
            error.HttpRequestTruncated,
            error.HttpConnectionClosing,
            error.ReadFailed,
            => error.Closed,
        };
        if (!isStatusLine(bytes)) return error.NotHttp;
        const head = Head.parse(bytes) catch return error.NotHttp;
        if (head.status.class() != .informational) return head;
        reader.state = .ready;
    }
    return error.NotHttp;
}

/// The standard library's parser takes any three bytes for a status.
fn isStatusLine(bytes: []const u8) bool {
    if (bytes.len < "HTTP/1.1 200".len) return false;
    for (bytes[9..12]) |byte| if (!std.ascii.isDigit(byte)) return false;
    return bytes[9] >= '1' and bytes[9] <= '5';
}

/// Keeps its place: reader and writer of TLS point into it.
const Connection = struct {
    stream: net.Stream,
    socket_reader: net.Stream.Reader,
    socket_writer: net.Stream.Writer,
    tls: ?tls.Client,
    socket_read_buffer: [@max(tls.Client.min_buffer_len, head_size_max)]u8,
    socket_write_buffer: [tls.Client.min_buffer_len]u8,
    /// A record, and beside it the head of an answer.
    tls_read_buffer: [tls.Client.min_buffer_len + head_size_max]u8,
    tls_write_buffer: [4096]u8,

    fn init(connection: *Connection, io: Io, stream: net.Stream) void {
        connection.stream = stream;
        connection.socket_reader = stream.reader(io, &connection.socket_read_buffer);
        connection.socket_writer = stream.writer(io, &connection.socket_write_buffer);
        connection.tls = null;
    }

    fn sendConnect(connection: *Connection, url: *const ControlUrl, proxy: *const Proxy) !void {
        const output = &connection.socket_writer.interface;
        try output.print("CONNECT {s}:{d} HTTP/1.1\r\nhost: {s}:{d}\r\n", .{
            url.host, url.port, url.host, url.port,
        });
        if (proxy.authorization) |value|
            try output.print("proxy-authorization: {s}\r\n", .{value});
        try output.writeAll("\r\n");
        try output.flush();
    }

    fn startTls(connection: *Connection, transport: *Transport) tls.Client.InitError!void {
        assert(connection.tls == null);
        var entropy: [tls.Client.Options.entropy_len]u8 = undefined;
        transport.io.random(&entropy);
        connection.tls = try .init(
            &connection.socket_reader.interface,
            &connection.socket_writer.interface,
            .{
                .host = .{ .explicit = transport.settings.url.host },
                .ca = .{ .bundle = .{
                    .gpa = transport.gpa,
                    .io = transport.io,
                    .lock = &transport.trust_lock,
                    .bundle = &transport.trust,
                } },
                .read_buffer = &connection.tls_read_buffer,
                .write_buffer = &connection.tls_write_buffer,
                .entropy = &entropy,
                .realtime_now = Io.Clock.real.now(transport.io),
                // An answer has a length, or it ends with the connection and is parsed as a whole.
                .allow_truncation_attacks = true,
            },
        );
    }

    fn reader(connection: *Connection) *Io.Reader {
        return if (connection.tls) |*client|
            &client.reader
        else
            &connection.socket_reader.interface;
    }

    fn writer(connection: *Connection) *Io.Writer {
        return if (connection.tls) |*client|
            &client.writer
        else
            &connection.socket_writer.interface;
    }

    fn httpReader(connection: *Connection) std.http.Reader {
        return .{
            .in = connection.reader(),
            .state = .ready,
            .interface = undefined,
            .max_head_len = head_size_max,
        };
    }

    fn flush(connection: *Connection) Io.Writer.Error!void {
        if (connection.tls) |*client| try client.writer.flush();
        try connection.socket_writer.interface.flush();
    }

    /// Between two exchanges only the end of the connection arrives.
    fn hasInput(connection: *const Connection) bool {
        var polled = [1]linux.pollfd{.{
            .fd = connection.stream.socket.handle,
            .events = linux.POLL.IN,
            .revents = 0,
        }};
        return linux.poll(&polled, 1, 0) != 0;
    }
};

test "certificates of authorities are read again after a minute, and when the clock is set back" {
    const now: Io.Timestamp = .{ .nanoseconds = 1_795_000_000 * std.time.ns_per_s };
    const Case = struct { age_s: i64, is_stale: bool };
    for ([_]Case{
        .{ .age_s = 0, .is_stale = false },
        .{ .age_s = 59, .is_stale = false },
        .{ .age_s = 60, .is_stale = true },
        .{ .age_s = 86_400, .is_stale = true },
        .{ .age_s = -1, .is_stale = true },
    }) |case| try std.testing.expectEqual(
        case.is_stale,
        isStale(.{ .nanoseconds = now.nanoseconds - case.age_s * std.time.ns_per_s }, now),
    );
}

test "three bytes that are no number are no status" {
    for ([_][]const u8{
        "HTTP/1.1 abc no\r\n\r\n",
        "HTTP/1.1 \xff\xff\xff",
        "HTTP/1.1 999 x",
        "HTTP",
    }) |text|
        try std.testing.expect(!isStatusLine(text));
    try std.testing.expect(isStatusLine("HTTP/1.1 407 Proxy"));
}
