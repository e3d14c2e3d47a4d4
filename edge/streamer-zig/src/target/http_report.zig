//! Reports to the edge over HTTP how this boot went, if there is no stream (UPLINK.md, "Device
//! reports over HTTP"): one request on one connection, within a few seconds.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const sys = @import("host").sys;

pub const Outcome = enum { ready, failed };

/// The edge's limit.
pub const body_size_max = 256;
const path_size_max = 64;
/// Timeout of the connection, of sending, and of the answer.
const step_timeout: linux.timeval = .{ .sec = 3, .usec = 0 };

/// Where this boot reports to, from the kernel's command line.
pub const Address = struct {
    edge: base.Endpoint,
    path: []const u8,

    /// `words` are separated by white space; the last `bootfarm.report=http://IP:PORT/PATH` counts.
    /// The path is a slice of `words`.
    pub fn find(words: []const u8) ?Address {
        var found: ?[]const u8 = null;
        var rest = std.mem.tokenizeAny(u8, words, " \t\r\n");
        while (rest.next()) |word|
            found = std.mem.cutPrefix(u8, word, "bootfarm.report=http://") orelse found;
        const slash = std.mem.findScalar(u8, found orelse return null, '/') orelse return null;
        const path = found.?[slash..];
        if (path.len > path_size_max) return null;
        for (path) |byte| if (!std.ascii.isAlphanumeric(byte) and byte != '/' and
            byte != '-') return null;
        const edge = base.Endpoint.parse(found.?[0..slash]) catch return null;
        return if (edge.ip.isUnicast()) .{ .edge = edge, .path = path } else null;
    }
};

/// Returns true if the edge accepted it. A longer body is cut.
pub fn post(address: Address, outcome: Outcome, body: []const u8) bool {
    var buffer: [path_size_max + body_size_max + 256]u8 = undefined;
    const request = writeRequest(&buffer, address, outcome, body[0..@min(body.len, body_size_max)]);
    const kind = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(sys.check(linux.socket(linux.AF.INET, kind, 0)) catch return false);
    defer sys.close(fd);
    for ([_]u32{ linux.SO.SNDTIMEO_NEW, linux.SO.RCVTIMEO_NEW }) |option|
        _ = linux.setsockopt(
            fd,
            linux.SOL.SOCKET,
            option,
            @ptrCast(&step_timeout),
            @sizeOf(linux.timeval),
        );
    const socket_address: linux.sockaddr.in = .{
        .port = std.mem.nativeToBig(u16, address.edge.port),
        .addr = @bitCast(address.edge.ip.bytes),
    };
    _ = sys.check(linux.connect(fd, &socket_address, @sizeOf(linux.sockaddr.in))) catch
        return false;
    // It fits into the send buffer of a new connection, so it is sent completely or not at all.
    const sent = sys.check(
        linux.sendto(fd, request.ptr, request.len, linux.MSG.NOSIGNAL, null, 0),
    ) catch return false;
    if (sent != request.len) return false;
    var answer: [512]u8 = undefined;
    const size =
        sys.check(linux.recvfrom(fd, &answer, answer.len, 0, null, null)) catch return false;
    return isSuccess(answer[0..size]);
}

fn writeRequest(buffer: []u8, address: Address, outcome: Outcome, body: []const u8) []const u8 {
    return std.mem.print(
        buffer,
        "POST {s}/{t} HTTP/1.1\r\nHost: {f}\r\nContent-Type: text/plain\r\n" ++
            "Content-Length: {d}\r\nConnection: close\r\n\r\n{s}",
        .{ address.path, outcome, address.edge, body.len, body },
    ) catch
        unreachable; // The buffer has room for the longest path and body.
}

fn isSuccess(answer: []const u8) bool {
    const rest = std.mem.cutPrefix(u8, answer, "HTTP/1.") orelse return false;
    return rest.len >= 3 and rest[1] == ' ' and rest[2] == '2';
}

const testing = std.testing;

test "the last word of its kind gives the address" {
    const words =
        "quiet bootfarm.report=http://10.0.0.1:1/b/00 bootfarm.report=http://10.77.0.1:6980/b/0123456789abcdef\n";
    const address = Address.find(words).?;
    try testing.expectEqualStrings("/b/0123456789abcdef", address.path);
    try testing.expectEqual(6980, address.edge.port);
}

test "an address that no edge wrote is rejected" {
    for ([_][]const u8{
        "",
        "bootfarm.report=",
        "bootfarm.report=https://10.0.0.1:6980/b/00",
        "bootfarm.report=http://10.0.0.1:6980",
        "bootfarm.report=http://edge:6980/b/00",
        "bootfarm.report=http://255.255.255.255:6980/b/00",
        "bootfarm.report=http://10.0.0.1:6980/b/\x00",
        "bootfarm.report=http://10.0.0.1:6980/b/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    }) |words| try testing.expectEqual(null, Address.find(words));
}

test "a request has the length of its body, and an answer of 2xx is a success" {
    const address = Address.find("bootfarm.report=http://10.77.0.1:6980/b/01").?;
    var buffer: [512]u8 = undefined;
    const request = writeRequest(&buffer, address, .failed, "no_nbd this kernel has no nbd driver");
    try testing.expect(
        std.mem.startsWith(u8, request, "POST /b/01/failed HTTP/1.1\r\nHost: 10.77.0.1:6980\r\n"),
    );
    try testing.expect(std.mem.find(u8, request, "\r\nContent-Length: 36\r\n") != null);
    try testing.expect(
        std.mem.endsWith(u8, request, "\r\n\r\nno_nbd this kernel has no nbd driver"),
    );
    try testing.expect(isSuccess("HTTP/1.1 204 No Content\r\n\r\n"));
    for ([_][]const u8{
        "",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 409 Conflict\r\n",
        "SSH-2.0-x",
    }) |answer|
        try testing.expect(!isSuccess(answer));
}
