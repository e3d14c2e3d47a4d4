//! Fuzzes HTTP requests.

const std = @import("std");
const http = @import("wire").http_request;
const http_target = @import("wire").http_target;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const heads = [_][]const u8{
    "GET /b/0123456789abcdef/boot.ipxe HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
    "HEAD /b/0123456789abcdef/disk HTTP/1.1\r\nHost: x\r\nUser-Agent: iPXE/1.21.1\r\n\r\n",
    "GET /disk HTTP/1.1\r\nHost: x\r\nRange: bytes=0-65023\r\n\r\n",
    "GET /disk HTTP/1.1\r\nRange: bytes=18446744073709551615-\r\n\r\n",
    "GET /disk HTTP/1.0\r\nrange: bytes=-512\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /next HTTP/1.1\r\n\r\n",
    "POST /failed HTTP/1.1\r\nContent-Length: 12\r\n\r\nno_root textGET / HTTP/1.1\r\n\r\n",
    "GET http://10.0.0.1:6980/b/0123456789abcdef/k%65rnel?menu=0badcafe&entry=1 HTTP/1.1\r\nIf-Range: x\r\nRange: bytes=1-\r\n\r\n",
    "GET /%2e%2e/%2f%252e HTTP/1.1\r\nConnection: keep-alive, close\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
};

pub fn parser(case: *Case) Violation!bool {
    var buffer: [http.request_size_max + 64]u8 = undefined;
    const bytes = makeBytes(case, &buffer);
    const request = switch (http.parse(bytes)) {
        .incomplete => {
            const is_short = bytes.len < http.request_size_max;
            try expect(is_short, "a head without an end is refused in the end");
            return false;
        },
        .problem => return false,
        .request => |request| request,
    };
    try expect(request.size <= bytes.len, "a request ends within what was received");
    try expect(request.size <= http.request_size_max, "a request is bounded");
    try expect(request.body.len <= http.body_size_max, "a body is bounded");
    try fuzz_case.expectWithin(request.body, bytes[0..request.size]);
    try fuzz_case.expectWithin(request.target, bytes[0..request.size]);
    try expect(request.target[0] == '/', "a target begins with a slash");
    try checkTarget(request.target);
    if (request.range) |range| try checkRange(case, range);
    const shorter: usize = @intCast(case.prng.below(request.size));
    const is_incomplete = http.parse(bytes[0..shorter]) == .incomplete;
    try expect(is_incomplete, "a request is taken only when it is whole");
    return true;
}

fn checkTarget(target: []const u8) Violation!void {
    var buffer: [http_target.size_max]u8 = undefined;
    const decoded = http_target.decode(target, &buffer) catch return;
    try expect(decoded.len <= target.len, "a target without needless escapes is no longer");
    for (decoded) |byte| try expect(std.ascii.isGraphical(byte), "a decoded target is printable");
    // Each remaining escape starts with its percent sign and two digits.
    for (decoded, 0..) |byte, index| {
        if (byte != '%') continue;
        try expect(decoded.len - index >= 3, "an escape that stays is whole");
        for (decoded[index + 1 ..][0..2]) |digit|
            try expect(std.ascii.isHex(digit), "an escape that stays is whole");
    }
}

fn checkRange(case: *Case, range: http.Range) Violation!void {
    const sizes = [_]u64{ 0, 1, 512, std.math.maxInt(u64), case.prng.nextU64() };
    for (sizes) |size| {
        const part = range.resolve(size) orelse continue;
        try expect(part.length > 0, "a range is not empty");
        try expect(part.first < size, "a range begins within the file");
        try expect(part.length <= size - part.first, "a range ends within the file");
    }
}

fn makeBytes(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    const head = case.prng.pick([]const u8, &heads);
    @memcpy(buffer[0..head.len], head);
    return if (case.prng.chance(1, 4)) buffer[0..head.len] else case.mutate(buffer, head.len);
}
