//! What a device learns before its stream: fetches the edge's boot script for its address by HTTP,
//! and reads from it the address and the token of the stream.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const linux = std.os.linux;
const sys = @import("host").sys;
const sockets = @import("host").sockets;

pub const Error = error{ EdgeNotReached, NoScript };

const answer_size_max = 16 << 10;

/// Starts a boot of the device with this MAC address.
pub fn fetch(http: base.Endpoint, mac: base.Mac) Error!core.target.options.TargetOptions {
    var buffer: [answer_size_max]u8 = undefined;
    var request_buffer: [256]u8 = undefined;
    const request =
        std.mem.print(
            &request_buffer,
            "GET /m/{x:0>2}-{x:0>2}-{x:0>2}-{x:0>2}-{x:0>2}-{x:0>2}/boot.ipxe HTTP/1.0\r\n\r\n",
            .{ mac.bytes[0], mac.bytes[1], mac.bytes[2], mac.bytes[3], mac.bytes[4], mac.bytes[5] },
        ) catch unreachable;
    const answer = exchange(http, request, &buffer) catch return error.EdgeNotReached;
    return core.target.options.TargetOptions.parse(try wordsOf(answer, &request_buffer)) catch
        error.NoScript;
}

fn exchange(http: base.Endpoint, request: []const u8, buffer: *[answer_size_max]u8) ![]const u8 {
    const fd: i32 = @intCast(try sys.check(
        linux.socket(linux.AF.INET, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0),
    ));
    defer sys.close(fd);
    const limit: linux.timeval = .{ .sec = 5, .usec = 0 };
    _ = linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.RCVTIMEO_NEW,
        std.mem.asBytes(&limit),
        @sizeOf(linux.timeval),
    );
    const address = sockets.toSockaddr(http);
    _ = try sys.check(linux.connect(fd, &address, @sizeOf(linux.sockaddr.in)));
    try sys.writeAll(fd, request);
    var filled: usize = 0;
    while (filled < buffer.len) {
        const count = try sys.check(linux.read(fd, buffer[filled..].ptr, buffer.len - filled));
        if (count == 0) break;
        filled += count;
        if (isWhole(buffer[0..filled])) break;
    }
    return buffer[0..filled];
}

/// The edge may keep the connection open.
fn isWhole(answer: []const u8) bool {
    const head_size = (std.mem.find(u8, answer, "\r\n\r\n") orelse return false) + 4;
    var lines = std.mem.tokenizeSequence(u8, answer[0..head_size], "\r\n");
    while (lines.next()) |line| {
        const name = "content-length:";
        if (line.len < name.len or !std.ascii.eqlIgnoreCase(line[0..name.len], name)) continue;
        const size = std.fmt.parseInt(usize, std.mem.trim(u8, line[name.len..], " "), 10) catch
            return false;
        return answer.len - head_size >= size;
    }
    return false;
}

/// Converts `set bootfarm_edge IP:PORT` and so on to words of a kernel's command line.
fn wordsOf(script: []const u8, buffer: []u8) Error![]const u8 {
    var words: std.Io.Writer = .fixed(buffer);
    inline for (.{ "edge", "boot", "token" }) |name| {
        const key = "set bootfarm_" ++ name ++ " ";
        const at = (std.mem.find(u8, script, key) orelse return error.NoScript) + key.len;
        const end = std.mem.findScalarPos(u8, script, at, '\n') orelse return error.NoScript;
        words.print(
            "bootfarm." ++ name ++ "={s} ",
            .{std.mem.trimEnd(u8, script[at..end], "\r ")},
        ) catch return error.NoScript;
    }
    if (std.mem.find(u8, script, "\nset bootfarm_stream clear\n") != null)
        words.writeAll(core.stream.seal.clear_word) catch return error.NoScript;
    return words.buffered();
}
