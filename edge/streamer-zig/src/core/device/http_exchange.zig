//! One HTTP/1.1 request of a simulated device and its answer (RFC 9112), with a length and without
//! coding: the subset that iPXE needs. Bytes in, body out; the connection is the caller's.

const std = @import("std");
const assert = std.debug.assert;
const HttpExchange = @This();

pub const head_size_max = 2048;
pub const request_size_max = 512;

head: [head_size_max]u8 = undefined,
head_size: u16 = 0,
state: State = .head,
status: u16 = 0,
body_size: u64 = 0,
body_received: u64 = 0,

pub const State = enum { head, body, done, failed };

/// Returns the request's text; null if the path is too long. `range_size`: request only this many
/// bytes from the start.
pub fn request(
    host: anytype,
    path: []const u8,
    range_size: ?u32,
    buffer: *[request_size_max]u8,
) ?[]const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.print(
        "GET {s} HTTP/1.1\r\nhost: {f}\r\nuser-agent: bootfarm-sim\r\nconnection: close\r\n",
        .{ path, host },
    ) catch
        return null;
    if (range_size) |size| writer.print("range: bytes=0-{d}\r\n", .{size - 1}) catch return null;
    writer.writeAll("\r\n") catch return null;
    return writer.buffered();
}

/// Takes bytes of the answer and returns those that are body. Bytes after the end are an error of
/// the server.
pub fn receive(exchange: *HttpExchange, bytes: []const u8) []const u8 {
    var rest = bytes;
    while (exchange.state == .head and rest.len > 0) {
        if (exchange.head_size == head_size_max) {
            exchange.state = .failed;
            return "";
        }
        exchange.head[exchange.head_size] = rest[0];
        exchange.head_size += 1;
        rest = rest[1..];
        if (std.mem.endsWith(u8, exchange.head[0..exchange.head_size], "\r\n\r\n"))
            exchange.parseHead();
    }
    if (exchange.state != .body) return "";
    if (rest.len > exchange.body_size - exchange.body_received) {
        exchange.state = .failed;
        return "";
    }
    assert(exchange.body_received + rest.len <= exchange.body_size);
    exchange.body_received += rest.len;
    if (exchange.body_received == exchange.body_size) exchange.state = .done;
    return rest;
}

fn parseHead(exchange: *HttpExchange) void {
    assert(exchange.state == .head);
    exchange.state = .failed;
    var lines = std.mem.splitSequence(u8, exchange.head[0..exchange.head_size], "\r\n");
    const status_line = lines.next().?;
    if (!std.mem.startsWith(u8, status_line, "HTTP/1.1 ")) return;
    if (status_line.len < 12) return;
    exchange.status = std.fmt.parseInt(u16, status_line[9..12], 10) catch return;
    var length: ?u64 = null;
    while (lines.next()) |line| {
        const name, const value = std.mem.cutScalar(u8, line, ':') orelse continue;
        if (std.ascii.eqlIgnoreCase(name, "transfer-encoding")) return;
        if (!std.ascii.eqlIgnoreCase(name, "content-length")) continue;
        length = std.fmt.parseInt(u64, std.mem.trim(u8, value, " "), 10) catch return;
    }
    exchange.body_size = length orelse return;
    exchange.state = if (exchange.body_size == 0) .done else .body;
}

const testing = std.testing;

test "an answer in any number of pieces gives its body once" {
    const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for (1..answer.len) |cut| {
        var exchange: HttpExchange = .{};
        var body: std.ArrayList(u8) = .empty;
        defer body.deinit(testing.allocator);
        try body.appendSlice(testing.allocator, exchange.receive(answer[0..cut]));
        try body.appendSlice(testing.allocator, exchange.receive(answer[cut..]));
        try testing.expectEqualStrings("hello", body.items);
        try testing.expectEqual(.done, exchange.state);
        try testing.expectEqual(200, exchange.status);
    }
}

test "an answer that is too long, coded or not HTTP fails" {
    for ([_][]const u8{
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "SSH-2.0-x\r\n\r\n",
        &@as([head_size_max + 1]u8, @splat('x')),
    }) |answer| {
        var exchange: HttpExchange = .{};
        _ = exchange.receive(answer);
        try testing.expectEqual(.failed, exchange.state);
    }
}
