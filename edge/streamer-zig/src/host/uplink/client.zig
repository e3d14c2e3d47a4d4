//! Signed HTTP(S) requests to the API, each with a limit on its total time and on the size of its
//! answer. Blocks its thread; the packet loop never uses it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Failure = @import("transport_failure.zig").Failure;
const Transport = @import("transport.zig");
const Io = std.Io;
const Ed25519 = base.Ed25519;

pub const Answer = Transport.Answer;

pub const Encoding = enum { identity, gzip };

pub const RequestError = error{
    /// No connection, no answer in time, or one that is not HTTP.
    NoAnswer,
    /// The answer does not fit the buffer.
    AnswerTooLarge,
};

pub const Method = enum { GET, POST, PUT };

/// The signed path is at most this long.
const target_size_max = 256;

pub const UplinkClient = @This();

io: Io,
transport: Transport,
key: Ed25519.KeyPair,
/// Null before enrolment.
edge_id: ?base.Uuid,
epoch: u64,
/// Shared by all clients of this edge: counters grow with each request.
counter: *std.atomic.Value(u64),

pub const Options = struct {
    transport: Transport.Settings,
    key: Ed25519.KeyPair,
    edge_id: ?base.Uuid,
    epoch: u64,
    counter: *std.atomic.Value(u64),
};

/// `gpa` must be thread-safe.
pub fn init(gpa: std.mem.Allocator, io: Io, options: Options) UplinkClient {
    return .{
        .io = io,
        .transport = .init(gpa, io, options.transport),
        .key = options.key,
        .edge_id = options.edge_id,
        .epoch = options.epoch,
        .counter = options.counter,
    };
}

pub fn deinit(client: *UplinkClient) void {
    client.transport.deinit();
    client.* = undefined;
}

/// Why the last request has no answer.
pub fn failure(client: *const UplinkClient) Failure {
    return client.transport.failure;
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
pub const Body = struct {
    bytes: []const u8,
    encoding: Encoding = .identity,
    /// Only these bytes of the answer (RFC 9110, 14.2). No signature covers it.
    range: ?Range = null,
    /// Null: that of the method.
    content_type: ?[]const u8 = null,
    /// Of the request, if the caller has taken it from `Options.counter`; null: the next one.
    counter: ?u64 = null,
};

pub const Range = struct { first: u64, last: u64 };

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
    return client.within(timeout_ms, exchange, .{ client, method, path, body, buffer });
}

/// An unsigned request with the same limits, to another server.
pub fn exchangeWithin(
    client: *UplinkClient,
    unsigned: *const Transport.Request,
    timeout_ms: u32,
    buffer: []u8,
) RequestError!Answer {
    return client.within(
        timeout_ms,
        Transport.exchange,
        .{ &client.transport, unsigned, buffer },
    );
}

fn within(
    client: *UplinkClient,
    timeout_ms: u32,
    comptime work: anytype,
    arguments: std.meta.ArgsTuple(@TypeOf(work)),
) RequestError!Answer {
    const Outcome = union(enum) {
        answered: Transport.Error!Answer,
        timeout: Io.Cancelable!void,
    };
    var outcomes: [2]Outcome = undefined;
    const outcome = blk: {
        var select: Io.Select(Outcome) = .init(client.io, &outcomes);
        // The exchange has ended when this returns.
        defer select.cancelDiscard();
        select.concurrent(.answered, work, arguments) catch
            return error.NoAnswer;
        select.concurrent(
            .timeout,
            Io.sleep,
            .{ client.io, .fromMilliseconds(timeout_ms), .awake },
        ) catch return error.NoAnswer;
        break :blk select.await() catch return error.NoAnswer;
    };
    switch (outcome) {
        .answered => |result| if (result) |answer| {
            return answer;
        } else |err| switch (err) {
            error.AnswerTooLarge => {
                client.transport.failure = .too_large;
                return error.AnswerTooLarge;
            },
            error.Failed, error.Canceled => return error.NoAnswer,
        },
        .timeout => {
            client.transport.onTimeout();
            return error.NoAnswer;
        },
    }
}

fn exchange(
    client: *UplinkClient,
    method: Method,
    path: []const u8,
    body: Body,
    buffer: []u8,
) Transport.Error!Answer {
    const prefix = client.transport.settings.url.prefix;
    var target_buffer: [target_size_max]u8 = undefined;
    const target = std.mem.print(&target_buffer, "{s}{s}", .{ prefix, path }) catch {
        client.transport.failure = .not_http;
        return error.Failed;
    };
    const counter = if (client.edge_id == null)
        0
    else
        body.counter orelse nextCounter(client.counter);
    const signature = core.uplink.message.sign(client.key, .{
        .method = @tagName(method),
        .path = target,
        .edge_id = client.edge_id,
        .boot_epoch = client.epoch,
        .counter = counter,
        .body = body.bytes,
    });
    var edge_text: [base.Uuid.text_size]u8 = undefined;
    if (client.edge_id) |id| edge_text = id.toText();
    var epoch_text: [20]u8 = undefined;
    var counter_text: [20]u8 = undefined;
    var range_text: [64]u8 = undefined;
    var headers: base.BoundedArray(std.http.Header, 7) = .empty;
    for ([_]std.http.Header{
        .{ .name = "bootfarm-edge", .value = if (client.edge_id == null) "-" else &edge_text },
        .{ .name = "bootfarm-epoch", .value = decimal(&epoch_text, client.epoch) },
        .{ .name = "bootfarm-counter", .value = decimal(&counter_text, counter) },
        .{ .name = "bootfarm-signature", .value = &signature },
        .{ .name = "bootfarm-uplink", .value = core.uplink.message.uplink_version },
    }) |header| headers.appendAssumeCapacity(header);
    if (body.encoding != .identity) headers.appendAssumeCapacity(
        .{ .name = "content-encoding", .value = @tagName(body.encoding) },
    );
    if (body.range) |range| headers.appendAssumeCapacity(.{
        .name = "range",
        .value = std.mem.print(
            &range_text,
            "bytes={d}-{d}",
            .{ range.first, range.last },
        ) catch unreachable,
    });
    return client.transport.exchange(&.{
        .method = @tagName(method),
        .target = target,
        .body = if (method == .GET) null else body.bytes,
        .content_type = body.content_type orelse switch (method) {
            .GET, .POST => "application/json",
            .PUT => "application/vnd.tcpdump.pcap",
        },
        .headers = headers.constSlice(),
    }, buffer);
}

pub fn nextCounter(counter: *std.atomic.Value(u64)) u64 {
    return counter.fetchAdd(1, .monotonic) + 1;
}

fn decimal(buffer: *[20]u8, value: u64) []const u8 {
    return std.mem.print(buffer, "{d}", .{value}) catch unreachable;
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
