//! HTTP/1.1 to the control plane over one connection that is kept: TCP, the tunnel of a proxy (RFC
//! 9110, 9.3.6), TLS by a process (`tls_process.zig`). The standard library's client is not used
//! for it: through a proxy it sends `https` in clear text, and it does not say why TLS failed.
//! Redirects are not followed.
//!
//! Blocks its thread, which the caller cancels after its time limit. Used by one thread at a time.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const authorities = @import("authorities.zig");
const sys = @import("../sys.zig");
const Failure = @import("transport_failure.zig").Failure;
const TlsProcess = @import("tls_process.zig");
const assert = std.debug.assert;
const Head = std.http.Client.Response.Head;
const Io = std.Io;
const net = std.Io.net;
const linux = std.os.linux;
const ControlUrl = core.uplink.ControlUrl;
const Proxy = core.uplink.Proxy;
const ImportUrl = core.uplink.ImportUrl;

pub const Transport = @This();

gpa: std.mem.Allocator,
io: Io,
settings: Settings,
connection: ?*Connection = null,
/// What the exchange waits for. Read by the caller when its time is over.
step: std.atomic.Value(Step) = .init(.reach),
/// Why the last exchange failed.
failure: Failure = .closed,
/// The status by which a proxy refused its tunnel.
proxy_status: u16 = 0,
/// The address that `Settings.sources` forbids.
refused: ?RefusedAddress = null,
/// What the last answer says about the file that it has a part of.
part: PartHead = .{},

pub const Settings = struct {
    url: ControlUrl,
    proxy: ?Proxy = null,
    /// The certificates of these authorities are trusted, and no others; null: the system's.
    ca_file: ?[]const u8 = null,
    /// The only addresses that are connected to; null: all. Goes without a proxy.
    sources: ?*const ImportUrl.Sources = null,
};

pub const RefusedAddress = struct { address: net.IpAddress, why: ImportUrl.Sources.Refusal };

/// Headers of a part of a file (RFC 9110, 14), and of a redirect. Longer ones are dropped.
pub const PartHead = struct {
    content_range: base.BoundedArray(u8, 96) = .empty,
    entity_tag: base.BoundedArray(u8, 128) = .empty,
    last_modified: base.BoundedArray(u8, 128) = .empty,
    location: base.BoundedArray(u8, ImportUrl.size_max) = .empty,

    fn take(part: *PartHead, header: std.http.Header) void {
        if (std.ascii.eqlIgnoreCase(header.name, "content-range")) {
            part.content_range = @TypeOf(part.content_range).fromSlice(header.value) catch .empty;
        } else if (std.ascii.eqlIgnoreCase(header.name, "etag")) {
            part.entity_tag = @TypeOf(part.entity_tag).fromSlice(header.value) catch .empty;
        } else if (std.ascii.eqlIgnoreCase(header.name, "last-modified")) {
            part.last_modified = @TypeOf(part.last_modified).fromSlice(header.value) catch .empty;
        } else if (std.ascii.eqlIgnoreCase(header.name, "location")) {
            part.location = @TypeOf(part.location).fromSlice(header.value) catch .empty;
        }
    }
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

/// `gpa` must be thread-safe.
pub fn init(gpa: std.mem.Allocator, io: Io, settings: Settings) Transport {
    return .{ .gpa = gpa, .io = io, .settings = settings };
}

pub fn deinit(transport: *Transport) void {
    transport.drop();
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
    connection.close(transport.io);
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
    const stream = if (settings.sources) |sources|
        try transport.connectAllowed(sources)
    else
        name.connect(transport.io, port, .{ .mode = .stream }) catch |err| {
            if (err == error.Canceled) return error.Canceled;
            if (settings.proxy != null) return transport.fail(.proxy_not_reached);
            return transport.fail(failureOf(err));
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

fn failureOf(err: net.HostName.ConnectError) Failure {
    return switch (err) {
        error.UnknownHostName,
        error.NoAddressReturned,
        error.InvalidDnsCnameRecord,
        => .name_unknown,
        error.NameServerFailure, error.ResolvConfParseFailed => .name_server_silent,
        error.ConnectionRefused => .nothing_listens,
        error.NetworkUnreachable, error.HostUnreachable => .no_route,
        else => .not_reached,
    };
}

const addresses_max = 32;

/// Connects to the first address of the host that is allowed. The name is resolved once: the
/// address that was decided about is the one that is connected to.
fn connectAllowed(transport: *Transport, sources: *const ImportUrl.Sources) Error!net.Stream {
    const url = &transport.settings.url;
    transport.refused = null;
    var addresses: base.BoundedArray(net.IpAddress, addresses_max) = .empty;
    try transport.resolve(&addresses);
    var failure: Failure = .name_unknown;
    for (addresses.constSlice()) |address| {
        if (sources.refusal(url.host, plainOf(address))) |why| {
            transport.refused = .{ .address = address, .why = why };
            failure = .address_refused;
            continue;
        }
        const stream = address.connect(transport.io, .{ .mode = .stream }) catch |err| {
            if (err == error.Canceled) return error.Canceled;
            failure = failureOf(err);
            continue;
        };
        const peer = peerOf(stream.socket.handle);
        if (peer != null and sources.refusal(url.host, peer.?) == null) return stream;
        stream.close(transport.io);
        transport.refused = .{ .address = address, .why = .not_listed };
        failure = .address_refused;
    }
    return transport.fail(failure);
}

fn resolve(
    transport: *Transport,
    addresses: *base.BoundedArray(net.IpAddress, addresses_max),
) Error!void {
    const url = &transport.settings.url;
    if (net.IpAddress.parse(url.host, url.port)) |address|
        return addresses.appendAssumeCapacity(address)
    else |_| {}
    var results: [addresses_max]net.HostName.LookupResult = undefined;
    // The lookup does not wait for it to be read.
    var queue: Io.Queue(net.HostName.LookupResult) = .init(&results);
    var canonical_name: [net.HostName.max_len]u8 = undefined;
    const name: net.HostName = .{ .bytes = url.host };
    name.lookup(transport.io, &queue, .{
        .port = url.port,
        .canonical_name_buffer = &canonical_name,
    }) catch |err| return if (err == error.Canceled)
        error.Canceled
    else
        transport.fail(failureOf(err));
    while (queue.getOneUncancelable(transport.io)) |result| switch (result) {
        .address => |address| addresses.append(address) catch break,
        .canonical_name => {},
    } else |_| {}
}

fn plainOf(address: net.IpAddress) ImportUrl.Address {
    return switch (address) {
        .ip4 => |ip| .{ .ip4 = ip.bytes },
        .ip6 => |ip| .{ .ip6 = ip.bytes },
    };
}

/// The other end of a connection.
fn peerOf(fd: i32) ?ImportUrl.Address {
    var storage: linux.sockaddr.storage = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.storage);
    _ = sys.check(linux.getpeername(fd, @ptrCast(&storage), &size)) catch return null;
    const bytes = std.mem.asBytes(&storage);
    return switch (storage.family) {
        linux.AF.INET => .{ .ip4 = bytes[@offsetOf(linux.sockaddr.in, "addr")..][0..4].* },
        linux.AF.INET6 => .{ .ip6 = bytes[@offsetOf(linux.sockaddr.in6, "addr")..][0..16].* },
        else => null,
    };
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
    connection.startTls(transport.io, &transport.settings) catch
        return transport.fail(.not_reached);
    const failure = TlsProcess.handshakeFailure(&connection.socket_reader.interface) orelse return;
    return transport.fail(failure);
}

/// Checks the file of `--ca-file` before anything depends on it.
pub const checkAuthorities = authorities.check;

fn send(transport: *const Transport, connection: *Connection, request: *const Request) !void {
    const url = &transport.settings.url;
    const writer = connection.writer();
    try writer.print("{s} ", .{request.method});
    // A proxy takes requests in clear text itself, and needs to know for whom they are.
    const proxy = if (url.is_tls) null else transport.settings.proxy;
    if (proxy != null) try writer.print("http://{s}:{d}", .{ url.host, url.port });
    const is_ip6 = std.mem.findScalar(u8, url.host, ':') != null;
    const form: []const u8 = if (is_ip6) "[]" else "";
    try writer.print("{s} HTTP/1.1\r\nhost: {s}{s}{s}", .{
        request.target, form[0 .. form.len / 2], url.host, form[form.len / 2 ..],
    });
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
    try writer.flush();
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
    transport.part = .{};
    while (headers.next()) |header| {
        take(&answer, header);
        if (transport.settings.sources != null) transport.part.take(header);
    }
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

/// Keeps its place: reader and writer point into it.
const Connection = struct {
    /// To the server or its proxy; with TLS, to the process that speaks it.
    stream: net.Stream,
    tls: ?TlsProcess,
    socket_reader: net.Stream.Reader,
    socket_writer: net.Stream.Writer,
    /// The head of an answer fits.
    read_buffer: [2 * head_size_max]u8,
    write_buffer: [4096]u8,

    fn init(connection: *Connection, io: Io, stream: net.Stream) void {
        connection.tls = null;
        connection.use(io, stream);
    }

    fn use(connection: *Connection, io: Io, stream: net.Stream) void {
        connection.stream = stream;
        connection.socket_reader = stream.reader(io, &connection.read_buffer);
        connection.socket_writer = stream.writer(io, &connection.write_buffer);
    }

    fn close(connection: *Connection, io: Io) void {
        if (connection.tls) |*process| process.stop();
        connection.stream.close(io);
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

    fn startTls(connection: *Connection, io: Io, settings: *const Settings) !void {
        assert(connection.tls == null);
        const server = connection.stream;
        const process: TlsProcess =
            try .start(server.socket.handle, settings.url.host, settings.ca_file);
        connection.tls = process;
        connection.use(io, .{ .socket = .{
            .handle = process.socket,
            .address = server.socket.address,
        } });
        sys.close(server.socket.handle);
    }

    fn writer(connection: *Connection) *Io.Writer {
        return &connection.socket_writer.interface;
    }

    fn httpReader(connection: *Connection) std.http.Reader {
        return .{
            .in = &connection.socket_reader.interface,
            .state = .ready,
            .interface = undefined,
            .max_head_len = head_size_max,
        };
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
