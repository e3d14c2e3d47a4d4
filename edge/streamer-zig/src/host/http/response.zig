//! The answers of the HTTP server: status, body, the boot that they belong to, and the head (RFC
//! 9110, RFC 9112).

const std = @import("std");
const agent = @import("agent");
const http_request = @import("wire").http_request;

pub const text_size_max = agent.response.text_size_max;
pub const head_size_max = 512;
pub const Body = agent.response.Body;
pub const Tag = agent.response.Tag;
pub const Response = agent.response.Response;
pub const Progress = agent.response.Progress;

pub fn writeHead(
    buffer: *[head_size_max]u8,
    status: u16,
    response: *const Response,
    part: http_request.Range.Part,
    whole_size: u64,
    keep_alive: bool,
) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.print("HTTP/1.1 {d} {s}\r\n", .{ status, reasonOf(status) }) catch unreachable;
    // RFC 9110 section 8.6: 204 has no length.
    if (status != 204) writer.print(
        "content-length: {d}\r\naccept-ranges: bytes\r\ncontent-type: {s}\r\n",
        .{ part.length, response.content_type },
    ) catch unreachable;
    if (status == 206) writer.print("content-range: bytes {d}-{d}/{d}\r\n", .{
        part.first, part.first + part.length - 1, whole_size,
    }) catch unreachable;
    if (status == 416)
        writer.print("content-range: bytes */{d}\r\n", .{whole_size}) catch unreachable;
    if (status == 405) writer.print("allow: {s}\r\n", .{response.allow}) catch unreachable;
    writer.print("connection: {s}\r\n\r\n", .{if (keep_alive) "keep-alive" else "close"}) catch
        unreachable;
    return writer.buffered();
}

fn reasonOf(status: u16) []const u8 {
    return switch (status) {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        else => unreachable,
    };
}
