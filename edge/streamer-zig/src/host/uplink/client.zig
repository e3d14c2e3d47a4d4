//! Signed HTTP(S) requests to the API, each with a limit on its total time and on the size of its
//! answer. Blocks its thread; the packet loop never uses it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const assert = std.debug.assert;
const Io = std.Io;
const Ed25519 = base.Ed25519;

pub const Answer = struct {
    status: u16,
    body: []const u8,
    /// `Retry-After` in seconds (RFC 9110, 10.2.3); a date is ignored, because clocks are not
    /// trusted.
    retry_after_s: ?u32 = null,
    /// Requests to this path may be sent with `content-encoding: gzip` (RFC 7694).
    takes_gzip: bool = false,
};

pub const Encoding = enum { identity, gzip };

pub const RequestError = error{
    /// No connection, no answer in time, or one that is not HTTP.
    NoAnswer,
    /// The answer does not fit the buffer.
    AnswerTooLarge,
};

pub const Method = enum { GET, POST, PUT };

pub const UplinkClient = @This();

io: Io,
http: std.http.Client,
/// Without a trailing slash.
url: []const u8,
key: Ed25519.KeyPair,
/// Null before enrolment.
edge_id: ?base.Uuid,
epoch: u64,
/// Shared by all clients of this edge: counters grow with each request.
counter: *std.atomic.Value(u64),

pub const Options = struct {
    url: []const u8,
    key: Ed25519.KeyPair,
    edge_id: ?base.Uuid,
    epoch: u64,
    counter: *std.atomic.Value(u64),
};

const url_size_max = 2048;
/// A new certificate is accepted this late at most. Reading the system's certificates takes some
/// milliseconds.
const trust_age_s_max = 60;

/// `gpa` must be thread-safe.
pub fn init(gpa: std.mem.Allocator, io: Io, options: Options) UplinkClient {
    return .{
        .io = io,
        .http = .{ .allocator = gpa, .io = io },
        .url = options.url,
        .key = options.key,
        .edge_id = options.edge_id,
        .epoch = options.epoch,
        .counter = options.counter,
    };
}

pub fn deinit(client: *UplinkClient) void {
    client.http.deinit();
    client.* = undefined;
}

pub fn request(
    client: *UplinkClient,
    method: Method,
    path: []const u8,
    body: []const u8,
    timeout_ms: u32,
    buffer: []u8,
) RequestError!Answer {
    return client.requestEncoded(method, path, .{ .bytes = body }, timeout_ms, buffer);
}

/// A body as sent: the signature covers these bytes.
pub const Body = struct { bytes: []const u8, encoding: Encoding = .identity };

/// `body` is empty for GET. The answer's body is in `buffer`. `timeout_ms` covers everything:
/// resolving the name, connecting, sending, waiting and receiving.
pub fn requestEncoded(
    client: *UplinkClient,
    method: Method,
    path: []const u8,
    body: Body,
    timeout_ms: u32,
    buffer: []u8,
) RequestError!Answer {
    const Outcome = union(enum) {
        answered: RequestError!Answer,
        timeout: Io.Cancelable!void,
    };
    var outcomes: [2]Outcome = undefined;
    var select: Io.Select(Outcome) = .init(client.io, &outcomes);
    defer select.cancelDiscard();
    select.concurrent(.answered, exchange, .{ client, method, path, body, buffer }) catch
        return error.NoAnswer;
    select.concurrent(
        .timeout,
        Io.sleep,
        .{ client.io, .fromMilliseconds(timeout_ms), .awake },
    ) catch return error.NoAnswer;
    return switch (select.await() catch return error.NoAnswer) {
        .answered => |answered| answered,
        .timeout => error.NoAnswer,
    };
}

fn exchange(
    client: *UplinkClient,
    method: Method,
    path: []const u8,
    body: Body,
    buffer: []u8,
) RequestError!Answer {
    return client.tryExchange(method, path, body, buffer) catch |err| switch (err) {
        error.AnswerTooLarge => error.AnswerTooLarge,
        else => error.NoAnswer,
    };
}

fn tryExchange(
    client: *UplinkClient,
    method: Method,
    path: []const u8,
    body: Body,
    buffer: []u8,
) !Answer {
    var url_buffer: [url_size_max]u8 = undefined;
    const uri = try std.Uri.parse(try std.mem.print(&url_buffer, "{s}{s}", .{ client.url, path }));
    client.renewTrust();
    const counter = if (client.edge_id == null) 0 else client.counter.fetchAdd(1, .monotonic) + 1;
    const signature = core.uplink.message.sign(client.key, .{
        .method = @tagName(method),
        .path = uri.path.percent_encoded.ptr[0..pathSize(uri)],
        .edge_id = client.edge_id,
        .boot_epoch = client.epoch,
        .counter = counter,
        .body = body.bytes,
    });
    var edge_text: [base.Uuid.text_size]u8 = undefined;
    if (client.edge_id) |id| edge_text = id.toText();
    var epoch_text: [20]u8 = undefined;
    var counter_text: [20]u8 = undefined;
    const headers = [_]std.http.Header{
        .{ .name = "bootfarm-edge", .value = if (client.edge_id == null) "-" else &edge_text },
        .{
            .name = "bootfarm-epoch",
            .value = try std.mem.print(&epoch_text, "{d}", .{client.epoch}),
        },
        .{
            .name = "bootfarm-counter",
            .value = try std.mem.print(&counter_text, "{d}", .{counter}),
        },
        .{ .name = "bootfarm-signature", .value = &signature },
        .{ .name = "bootfarm-uplink", .value = core.uplink.message.uplink_version },
        .{ .name = "content-encoding", .value = @tagName(body.encoding) },
    };
    const header_count = headers.len - @intFromBool(body.encoding == .identity);
    var sent = try client.http.request(switch (method) {
        .GET => .GET,
        .POST => .POST,
        .PUT => .PUT,
    }, uri, .{
        .redirect_behavior = .unhandled,
        .headers = .{
            .content_type = .{
                .override = if (method == .PUT)
                    "application/vnd.tcpdump.pcap"
                else
                    "application/json",
            },
            .accept_encoding = .omit,
        },
        .extra_headers = headers[0..header_count],
    });
    defer sent.deinit();
    switch (method) {
        .GET => try sent.sendBodiless(),
        // The body is only read; the standard library's signature requires more than it needs.
        .POST, .PUT => try sent.sendBodyComplete(@constCast(body.bytes)),
    }
    return receiveAnswer(&sent, buffer);
}

/// The standard library reads the system's certificates, and the time by which certificates are
/// judged, at the first request only. An edge runs for months: by then the control plane has a
/// certificate that is newer than that time, and would be refused as not valid yet. Each client is
/// used by one thread.
pub fn renewTrust(client: *UplinkClient) void {
    const read_at = client.http.now orelse return;
    const now = Io.Clock.real.now(client.io);
    const age_s = @divTrunc(now.nanoseconds - read_at.nanoseconds, std.time.ns_per_s);
    // Also where the clock was set back: null reads both again, at the next request over TLS.
    client.http.now = if (age_s < 0 or age_s >= trust_age_s_max) null else read_at;
}

fn receiveAnswer(sent: *std.http.Client.Request, buffer: []u8) !Answer {
    var response = try sent.receiveHead(&.{});
    var answer: Answer = .{ .status = @backingInt(response.head.status), .body = "" };
    // Before the body: what the head points to is gone then.
    var received = response.head.iterateHeaders();
    while (received.next()) |header| take(&answer, header);
    // A 204 ends with its head and has no length (RFC 9112, 6.3). The standard library would
    // read on until the connection is closed: a poll without news would hear nothing until
    // then.
    if (response.head.status == .no_content) response.head.content_length = 0;
    var transfer_buffer: [4096]u8 = undefined;
    var writer: Io.Writer = .fixed(buffer);
    _ = response.reader(&transfer_buffer).streamRemaining(&writer) catch |err| {
        // A connection that was not read to its end must not be used again.
        if (sent.connection) |connection| connection.closing = true;
        return switch (err) {
            error.WriteFailed => error.AnswerTooLarge,
            error.ReadFailed => error.NoAnswer,
        };
    };
    answer.body = writer.buffered();
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
    }
}

/// Path and query are adjacent in the parsed text.
fn pathSize(uri: std.Uri) usize {
    const path_size = uri.path.percent_encoded.len;
    const query = uri.query orelse return path_size;
    return path_size + 1 + query.percent_encoded.len;
}

/// Translates an answer for the state machine that decides what comes next.
pub fn meaning(arena: std.mem.Allocator, result: RequestError!Answer) core.uplink.sender.Answer {
    const answer = result catch return .nothing;
    if (answer.status >= 200 and answer.status < 300) return .ok;
    if (answer.status == 429 or answer.status >= 500) {
        const after_s = answer.retry_after_s orelse return .nothing;
        return .{ .later = after_s *| std.time.ms_per_s };
    }
    const problem = core.uplink.message.parse(core.uplink.message.Problem, arena, answer.body) catch
        core.uplink.message.Problem{};
    return .{ .refused = .{
        .status = answer.status,
        .code = .parse(problem.code),
        .expected_seq = problem.expectedSeq,
    } };
}
