//! Tests client.zig against a server of raw sockets.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const sockets = @import("../net/sockets.zig");
const UplinkClient = @import("client.zig");

const testing = std.testing;
const linux = std.os.linux;

/// Accepts one connection, reads the first bytes, and answers with these bytes; null: never
/// answers.
const Server = struct {
    listener: i32,
    port: u16,
    answer: ?[]const u8,
    /// Leaves closing the connection to the client, like a server that keeps it alive.
    keeps_open: bool = false,
    request: [2048]u8 = undefined,
    request_size: usize = 0,

    fn init(answer: ?[]const u8) !Server {
        const listener = try sockets.openListener(.{ .ip = .init(127, 0, 0, 1), .port = 0 });
        var address: linux.sockaddr.in = undefined;
        var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
        _ = try sys.check(linux.getsockname(listener, @ptrCast(&address), &size));
        return .{
            .listener = listener,
            .port = std.mem.bigToNative(u16, address.port),
            .answer = answer,
        };
    }

    fn run(server: *Server) void {
        const text = server.answer orelse return;
        var polled =
            [1]linux.pollfd{.{ .fd = server.listener, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.poll(&polled, 1, 5000);
        const rc = linux.accept4(server.listener, null, null, linux.SOCK.CLOEXEC);
        const fd: i32 = @intCast(sys.check(rc) catch return);
        defer sys.close(fd);
        server.request_size =
            sys.check(linux.read(fd, &server.request, server.request.len)) catch return;
        sys.writeAll(fd, text) catch return;
        var rest: [64]u8 = undefined;
        if (server.keeps_open) _ = sys.check(linux.read(fd, &rest, rest.len)) catch return;
    }
};

fn ask(
    server: *Server,
    timeout_ms: u32,
    buffer: []u8,
) !UplinkClient.RequestError!UplinkClient.Answer {
    return askWith(server, .{ .bytes = "{}" }, timeout_ms, buffer);
}

fn askWith(
    server: *Server,
    body: UplinkClient.Body,
    timeout_ms: u32,
    buffer: []u8,
) !UplinkClient.RequestError!UplinkClient.Answer {
    const thread = try std.Thread.spawn(.{}, Server.run, .{server});
    defer thread.join();
    var counter: std.atomic.Value(u64) = .init(6);
    var client: UplinkClient = .init(testing.allocator, testing.io, .{
        .transport = .{ .url = .{
            .is_tls = false,
            .host = "127.0.0.1",
            .port = server.port,
            .prefix = "",
        } },
        .key = try base.Ed25519.KeyPair.generateDeterministic(@splat(1)),
        .edge_id = .fromRandom(@splat(2)),
        .epoch = 3,
        .counter = &counter,
    });
    defer client.deinit();
    return client.requestEncoded(.POST, "/edge/v1/x?after=1.5", body, timeout_ms, buffer);
}

test "a request carries what the signature covers" {
    var server: Server = try .init("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    defer sys.close(server.listener);
    var buffer: [64]u8 = undefined;
    const answer = try try ask(&server, 5000, &buffer);
    try testing.expectEqual(200, answer.status);
    try testing.expectEqualStrings("hi", answer.body);
    const request = server.request[0..server.request_size];
    try testing.expect(std.mem.startsWith(u8, request, "POST /edge/v1/x?after=1.5 HTTP/1.1\r\n"));
    const signature = core.uplink.message.sign(try .generateDeterministic(@splat(1)), .{
        .method = "POST",
        .path = "/edge/v1/x?after=1.5",
        .edge_id = .fromRandom(@splat(2)),
        .boot_epoch = 3,
        .counter = 7,
        .body = "{}",
    });
    try testing.expect(std.mem.find(u8, request, &signature) != null);
    try testing.expect(std.mem.find(u8, request, "bootfarm-counter: 7\r\n") != null);
    try testing.expect(std.mem.find(u8, request, "content-encoding") == null);
    try testing.expect(!answer.takes_gzip);
}

test "a server that accepts the connection and stays silent costs no more than the limit" {
    var server: Server = try .init(null);
    defer sys.close(server.listener);
    var buffer: [64]u8 = undefined;
    const began_us = sys.monotonicUs();
    try testing.expectError(error.NoAnswer, try ask(&server, 100, &buffer));
    try testing.expect(sys.monotonicUs() - began_us < 4_000_000);
}

test "an answer without content ends with its head, though the connection stays open" {
    var server: Server = try .init("HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\n");
    defer sys.close(server.listener);
    server.keeps_open = true;
    var buffer: [64]u8 = undefined;
    const answer = try try ask(&server, 5000, &buffer);
    try testing.expectEqual(204, answer.status);
    try testing.expectEqualStrings("", answer.body);
}

test "a compressed body is declared, is signed as it is sent, and the answer's Retry-After is returned" {
    var server: Server =
        try .init("HTTP/1.1 503 Service Unavailable\r\nAccept-Encoding: br, GZIP\r\n" ++
            "Retry-After: 17\r\ncontent-length: 2\r\n\r\n{}");
    defer sys.close(server.listener);
    var buffer: [64]u8 = undefined;
    const body: UplinkClient.Body = .{ .bytes = "\x1f\x8b not looked at", .encoding = .gzip };
    const answer = try try askWith(&server, body, 5000, &buffer);
    try testing.expectEqual(17, answer.retry_after_s.?);
    try testing.expect(answer.takes_gzip);
    const request = server.request[0..server.request_size];
    try testing.expect(std.mem.find(u8, request, "content-encoding: gzip\r\n") != null);
    const signature = core.uplink.message.sign(try .generateDeterministic(@splat(1)), .{
        .method = "POST",
        .path = "/edge/v1/x?after=1.5",
        .edge_id = .fromRandom(@splat(2)),
        .boot_epoch = 3,
        .counter = 7,
        .body = body.bytes,
    });
    try testing.expect(std.mem.find(u8, request, &signature) != null);
}

test "an answer that is too large is refused, and an absent server is no answer" {
    var server: Server = try .init("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfar more!");
    var buffer: [4]u8 = undefined;
    try testing.expectError(error.AnswerTooLarge, try ask(&server, 5000, &buffer));
    sys.close(server.listener);
    server.answer = null;
    try testing.expectError(error.NoAnswer, try ask(&server, 5000, &buffer));
}

test "refusals have their code, and temporary ones are retried" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const a = arena.allocator();
    try testing.expectEqual(.nothing, std.meta.activeTag(UplinkClient.meaning(a, error.NoAnswer)));
    try testing.expectEqual(
        .nothing,
        std.meta.activeTag(UplinkClient.meaning(a, .{ .status = 503, .body = "{}" })),
    );
    try testing.expectEqual(
        .nothing,
        std.meta.activeTag(UplinkClient.meaning(a, .{ .status = 429, .body = "" })),
    );
    try testing.expectEqual(
        core.uplink.sender.Answer{ .later = 2000 },
        UplinkClient.meaning(a, .{ .status = 503, .body = "{}", .retry_after_s = 2 }),
    );
    try testing.expectEqual(
        .ok,
        std.meta.activeTag(UplinkClient.meaning(a, .{ .status = 204, .body = "" })),
    );
    const gap = UplinkClient.meaning(
        a,
        .{ .status = 409, .body = "{\"code\":\"report_gap\",\"expectedSeq\":4,\"x\":1}" },
    );
    try testing.expectEqual(core.uplink.sender.Code.report_gap, gap.refused.code);
    try testing.expectEqual(4, gap.refused.expected_seq.?);
    const html = UplinkClient.meaning(a, .{ .status = 404, .body = "<html>" });
    try testing.expectEqual(core.uplink.sender.Code.other, html.refused.code);
}
