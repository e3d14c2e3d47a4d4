//! HTTP/1.x requests (RFC 9112) as boot firmware, loaders and reporting machines send them: GET and
//! HEAD with at most one byte range (RFC 9110 section 14), and POST with a short body whose length
//! is given once. No other framing of a body is accepted, so that no request can hide another.

const std = @import("std");
const http_target = @import("target.zig");
const assert = std.debug.assert;

/// Longer heads are refused.
pub const head_size_max = 4096;

/// Longer bodies are refused.
pub const body_size_max = 256;
/// Holds every accepted request, and a head that is refused for its length.
pub const request_size_max = head_size_max + body_size_max;

pub const Method = enum { get, head, post };

pub const Range = union(enum) {
    /// First and last byte, both included.
    closed: struct { first: u64, last: u64 },
    /// From this byte to the end.
    open: u64,
    /// This many last bytes.
    suffix: u64,

    pub const Part = struct { first: u64, length: u64 };

    /// Returns the range within `size` bytes; null if it is empty (416).
    pub fn resolve(range: Range, size: u64) ?Part {
        switch (range) {
            .closed => |closed| {
                if (closed.first >= size) return null;
                return .{
                    .first = closed.first,
                    .length = @min(closed.last, size - 1) - closed.first + 1,
                };
            },
            .open => |first| return if (first >= size) null else .{
                .first = first,
                .length = size - first,
            },
            .suffix => |count| {
                if (count == 0 or size == 0) return null;
                const length = @min(count, size);
                return .{ .first = size - length, .length = length };
            },
        }
    }
};

pub const Request = struct {
    method: Method,
    /// Begins with `/`; printable ASCII without spaces; not decoded (target.zig).
    target: []const u8,
    /// Null also for a header that may be ignored (several ranges, other units).
    range: ?Range,
    keep_alive: bool,
    /// Body of a POST; at most `body_size_max` arbitrary bytes.
    body: []const u8 = "",
    /// Size of the head with its empty line and of the body: where the next request starts.
    size: usize,
};

pub const Problem = enum {
    malformed,
    too_long,
    method_not_allowed,
    has_body,
    /// A POST without a length.
    no_length,
    version_not_supported,

    pub fn status(problem: Problem) u16 {
        return switch (problem) {
            .malformed => 400,
            .too_long => 431,
            .method_not_allowed => 405,
            .has_body => 413,
            .no_length => 411,
            .version_not_supported => 505,
        };
    }

    /// One line for the client.
    pub fn sentence(problem: Problem) []const u8 {
        return switch (problem) {
            .malformed => "This is not an HTTP request.",
            .too_long => "The head of this request is longer than 4096 bytes.",
            .method_not_allowed => "Only GET, HEAD and POST are served here.",
            .has_body => "A body may have at most 256 bytes, and only that of POST.",
            .no_length => "A body needs a Content-Length; it is not taken in chunks.",
            .version_not_supported => "Only HTTP/1.0 and HTTP/1.1 are served here.",
        };
    }
};

pub const Result = union(enum) {
    /// The empty line, or the end of the body, has not arrived yet.
    incomplete,
    request: Request,
    problem: Problem,
};

/// Parses the request at the front of `bytes`; slices point into it.
pub fn parse(bytes: []const u8) Result {
    const window = bytes[0..@min(bytes.len, head_size_max)];
    const end = std.mem.find(u8, window, "\r\n\r\n") orelse
        return if (bytes.len >= head_size_max) .{ .problem = .too_long } else .incomplete;
    var lines = std.mem.splitSequence(u8, window[0..end], "\r\n");
    var request = parseLine(lines.first()) catch |err| return .{ .problem = problemOf(err) };
    request.size = end + 4;
    var framing: Framing = .{};
    var is_conditional = false;
    while (lines.next()) |line| {
        parseField(&request, &framing, line) catch |err| return .{ .problem = problemOf(err) };
        if (std.ascii.startsWithIgnoreCase(line, "if-range:")) is_conditional = true;
    }
    // RFC 9110 section 13.1.5: nothing here has a validator, so the condition never holds.
    if (is_conditional) request.range = null;
    const body_size =
        framing.bodySize(request.method) catch |err| return .{ .problem = problemOf(err) };
    if (bytes.len - request.size < body_size) return .incomplete;
    request.body = bytes[request.size..][0..body_size];
    request.size += body_size;
    return .{ .request = request };
}

/// The head's description of a body.
const Framing = struct {
    length: ?u64 = null,
    is_encoded: bool = false,

    fn bodySize(framing: Framing, method: Method) Error!usize {
        const length = framing.length orelse 0;
        switch (method) {
            .get, .head => if (framing.is_encoded or length > 0) return error.HasBody,
            .post => {
                // RFC 9112 section 6.3: without framing there is no body, as in `curl -X POST`.
                if (framing.is_encoded) return error.NoLength;
                if (length > body_size_max) return error.HasBody;
            },
        }
        return @intCast(length);
    }
};

const Error = error{ Malformed, MethodNotAllowed, HasBody, NoLength, VersionNotSupported };

fn problemOf(err: Error) Problem {
    return switch (err) {
        error.Malformed => .malformed,
        error.MethodNotAllowed => .method_not_allowed,
        error.HasBody => .has_body,
        error.NoLength => .no_length,
        error.VersionNotSupported => .version_not_supported,
    };
}

fn parseLine(line: []const u8) Error!Request {
    var parts = std.mem.splitScalar(u8, line, ' ');
    const method_text = parts.first();
    const target = parts.next() orelse return error.Malformed;
    const version = parts.next() orelse return error.Malformed;
    if (parts.next() != null) return error.Malformed;
    const keep_alive = if (std.mem.eql(u8, version, "HTTP/1.1"))
        true
    else if (std.mem.eql(u8, version, "HTTP/1.0"))
        false
    else
        return if (std.mem.startsWith(
            u8,
            version,
            "HTTP/",
        )) error.VersionNotSupported else error.Malformed;
    if (method_text.len == 0) return error.Malformed;
    for (method_text) |byte| if (!std.ascii.isUpper(byte)) return error.Malformed;
    const method: Method = if (std.mem.eql(u8, method_text, "GET"))
        .get
    else if (std.mem.eql(u8, method_text, "HEAD"))
        .head
    else if (std.mem.eql(u8, method_text, "POST")) .post else return error.MethodNotAllowed;
    for (target) |byte| if (!std.ascii.isGraphical(byte)) return error.Malformed;
    return .{
        .method = method,
        .target = try http_target.pathOf(target),
        .range = null,
        .keep_alive = keep_alive,
        .size = 0,
    };
}

fn parseField(request: *Request, framing: *Framing, line: []const u8) Error!void {
    const colon = std.mem.findScalar(u8, line, ':') orelse return error.Malformed;
    const name = line[0..colon];
    const value = std.mem.trim(u8, line[colon + 1 ..], " \t");
    if (name.len == 0) return error.Malformed;
    // RFC 9112 section 5.1: no space before the colon; a folded line begins with one.
    for (name) |byte| if (!std.ascii.isGraphical(byte)) return error.Malformed;
    for (value) |byte| if (byte < 0x20 and byte != '\t') return error.Malformed;
    if (std.ascii.eqlIgnoreCase(name, "connection")) {
        var options = std.mem.splitScalar(u8, value, ',');
        var wants_close = false;
        while (options.next()) |raw| {
            const option = std.mem.trim(u8, raw, " \t");
            if (std.ascii.eqlIgnoreCase(option, "close")) wants_close = true;
            if (std.ascii.eqlIgnoreCase(option, "keep-alive")) request.keep_alive = true;
        }
        // RFC 9112 section 9.3: close is the stronger of the two.
        if (wants_close) request.keep_alive = false;
    } else if (std.ascii.eqlIgnoreCase(name, "transfer-encoding")) {
        framing.is_encoded = true;
    } else if (std.ascii.eqlIgnoreCase(name, "content-length")) {
        // RFC 9112 section 6.3: a duplicate or invalid length could hide a request.
        if (framing.length != null) return error.Malformed;
        framing.length = number(value) orelse return error.Malformed;
    } else if (std.ascii.eqlIgnoreCase(name, "range")) {
        request.range = parseRange(value);
    }
}

fn parseRange(value: []const u8) ?Range {
    const unit = "bytes=";
    if (value.len < unit.len or !std.ascii.eqlIgnoreCase(value[0..unit.len], unit)) return null;
    const spec = value[unit.len..];
    const dash = std.mem.findScalar(u8, spec, '-') orelse return null;
    const first_text = spec[0..dash];
    const last_text = spec[dash + 1 ..];
    if (first_text.len == 0) return .{ .suffix = number(last_text) orelse return null };
    const first = number(first_text) orelse return null;
    if (last_text.len == 0) return .{ .open = first };
    const last = number(last_text) orelse return null;
    return if (last < first) null else .{ .closed = .{ .first = first, .last = last } };
}

fn number(text: []const u8) ?u64 {
    if (text.len == 0 or text.len > 18) return null;
    for (text) |byte| if (!std.ascii.isDigit(byte)) return null;
    return std.fmt.parseInt(u64, text, 10) catch null;
}

const testing = std.testing;

fn expectProblem(problem: Problem, text: []const u8) !void {
    try testing.expectEqual(Result{ .problem = problem }, parse(text));
}

test "requests of iPXE and of HTTP boot firmware are parsed" {
    const text = "GET /b/0123456789abcdef/disk HTTP/1.1\r\nConnection: keep-alive\r\n" ++
        "User-Agent: iPXE/1.21\r\nHost: 10.0.0.1:6980\r\nRange: bytes=512-1023\r\n\r\nGET ";
    const request = parse(text).request;
    try testing.expectEqual(.get, request.method);
    try testing.expectEqualStrings("/b/0123456789abcdef/disk", request.target);
    try testing.expect(request.keep_alive);
    try testing.expectEqual(text.len - 4, request.size);
    try testing.expectEqual(
        Range.Part{ .first = 512, .length = 512 },
        request.range.?.resolve(4096).?,
    );
    const head = parse("HEAD /x HTTP/1.0\r\n\r\n").request;
    try testing.expectEqual(.head, head.method);
    try testing.expect(!head.keep_alive);
    for (0..text.len - 5) |size| try testing.expectEqual(Result.incomplete, parse(text[0..size]));
}

test "ranges beyond the end are cut or refused, and unknown ones are not ranges" {
    const open: Range = .{ .open = 10 };
    try testing.expectEqual(Range.Part{ .first = 10, .length = 2 }, open.resolve(12).?);
    try testing.expectEqual(null, open.resolve(10));
    const closed: Range = .{ .closed = .{ .first = 5, .last = 900 } };
    try testing.expectEqual(Range.Part{ .first = 5, .length = 5 }, closed.resolve(10).?);
    const suffix: Range = .{ .suffix = 900 };
    try testing.expectEqual(Range.Part{ .first = 0, .length = 10 }, suffix.resolve(10).?);
    for ([_][]const u8{
        "bytes=",
        "bytes=-",
        "bytes=5-4",
        "bytes=0-1,4-5",
        "lines=1-2",
        "bytes=99999999999999999999-",
    }) |value|
        try testing.expectEqual(null, parseRange(value));
}

test "a range with a condition is no range, and a list of options is parsed" {
    const conditional =
        parse("GET /x HTTP/1.1\r\nIf-Range: \"a\"\r\nRange: bytes=0-1\r\n\r\n").request;
    try testing.expectEqual(null, conditional.range);
    const list =
        "GET http://edge:6980/x HTTP/1.0\r\nConnection: Keep-Alive, TE\r\nTE: trailers\r\n\r\n";
    try testing.expect(parse(list).request.keep_alive);
    try testing.expectEqualStrings("/x", parse(list).request.target);
    try testing.expect(
        !parse("GET / HTTP/1.1\r\nConnection: close, keep-alive\r\n\r\n").request.keep_alive,
    );
}

test "a request that could hide another, or that is none, is refused" {
    try expectProblem(.malformed, "\r\n\r\n");
    try expectProblem(.malformed, "GET /\r\n\r\n");
    try expectProblem(.malformed, "GET  / HTTP/1.1\r\n\r\n");
    try expectProblem(.malformed, "GET x HTTP/1.1\r\n\r\n");
    try expectProblem(.malformed, "GET /\x01 HTTP/1.1\r\n\r\n");
    try expectProblem(.malformed, "GET / HTTP/1.1\r\nHost : x\r\n\r\n");
    try expectProblem(.malformed, "GET / HTTP/1.1\r\n folded\r\n\r\n");
    try expectProblem(.method_not_allowed, "PUT / HTTP/1.1\r\n\r\n");
    try expectProblem(.no_length, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    try expectProblem(
        .no_length,
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    );
    try expectProblem(.has_body, "POST / HTTP/1.1\r\nContent-Length: 257\r\n\r\n");
    try expectProblem(
        .malformed,
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    );
    for ([_][]const u8{ "", "-1", "+1", "0x1", "1, 1", "9999999999999999999" }) |length| {
        var buffer: [128]u8 = undefined;
        const text = try std.mem.print(
            &buffer,
            "POST / HTTP/1.1\r\nContent-Length: {s}\r\n\r\n1",
            .{length},
        );
        try expectProblem(.malformed, text);
    }
    try expectProblem(.has_body, "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
    try expectProblem(.has_body, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    try expectProblem(.version_not_supported, "GET / HTTP/2.0\r\n\r\n");
    try expectProblem(.too_long, &@as([head_size_max]u8, @splat('x')));
}

test "a short body is taken whole, and the next request starts behind it" {
    const text = "POST /failed HTTP/1.1\r\nContent-Length: 14\r\n\r\nno_root \r\n\r\nx?GET ";
    const request = parse(text).request;
    try testing.expectEqual(.post, request.method);
    try testing.expectEqualStrings("no_root \r\n\r\nx?", request.body);
    try testing.expectEqual(text.len - 4, request.size);
    for (0..text.len - 4) |size| try testing.expectEqual(Result.incomplete, parse(text[0..size]));
    for ([_][]const u8{
        "POST /ready HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
        "POST /ready HTTP/1.1\r\n\r\n",
    }) |empty|
        try testing.expectEqual(0, parse(empty).request.body.len);
}

test "random heads never crash the parser and accepted targets are printable" {
    const fuzzOne = struct {
        fn run(_: void, smith: *testing.Smith) !void {
            var buffer: [256]u8 = undefined;
            const size = smith.slice(&buffer);
            switch (parse(buffer[0..size])) {
                .request => |request| for (request.target) |byte| try testing.expect(
                    std.ascii.isGraphical(byte),
                ),
                .incomplete, .problem => {},
            }
        }
    }.run;
    try testing.fuzz(
        {},
        fuzzOne,
        .{ .corpus = &.{ "GET / HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n", "HEAD" } },
    );
}
