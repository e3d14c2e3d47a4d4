//! `bootfarm-sim tftp-flood`: sends read requests under many source addresses that never answer, to
//! test servers, and counts the replies. Only for networks made for it: the addresses must be local
//! here (`ip route add local NET dev lo`).

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const host = @import("host");
const linux = std.os.linux;
const sys = host.sys;
const sockets = host.sockets;

const batch_max = 32;
const seconds_max = 120;
const rate_max = 1_000_000;

pub const usage =
    \\Usage: bootfarm-sim tftp-flood --server IP --file NAME --sources IP/PREFIX [OPTIONS]
    \\
    \\Sends TFTP read requests under every address of a network in turn and never answers. Prints one JSON line:
    \\requests sent, their bytes, packets and bytes that came back. Needs root, and local addresses:
    \\ip route add local IP/PREFIX dev lo
    \\
    \\  --port N              the server's port (default 69)
    \\  --rate N              requests per second; 0 is unlimited (default 20000)
    \\  --seconds N           duration (default 5, at most 120)
    \\  --plain               requests without options, answered by a block instead of an OACK
    \\
    \\Example:
    \\  bootfarm-sim tftp-flood --server 10.0.0.1 --file snponly.efi --sources 10.99.0.0/16
    \\
;

const Options = struct {
    server: base.Endpoint = .{ .ip = .zero, .port = wire.tftp.server_port },
    file: []const u8 = "",
    first: base.Ip4 = .zero,
    count: u32 = 0,
    rate: u32 = 20_000,
    seconds: u32 = 5,
    is_plain: bool = false,
};

const Totals = struct {
    requests: u64 = 0,
    bytes_out: u64 = 0,
    answers: u64 = 0,
    bytes_in: u64 = 0,
};

/// `args` are those after `tftp-flood`. Returns the exit code; a problem is one sentence on
/// `errors`.
pub fn run(
    gpa: std.mem.Allocator,
    args: []const [:0]const u8,
    out: *std.Io.Writer,
    errors: *std.Io.Writer,
) !u8 {
    if (args.len == 1 and std.mem.eql(u8, args[0], "--help")) {
        try out.writeAll(usage);
        return 0;
    }
    var wrong: []const u8 = "";
    const options = parse(args, &wrong) catch {
        try errors.print(
            "bootfarm-sim: tftp-flood: {s} is unknown, missing, or its value does not fit; see bootfarm-sim tftp-flood --help\n",
            .{wrong},
        );
        return 1;
    };
    const own: base.Endpoint = .{ .ip = .zero, .port = 0 };
    const fd = sockets.openUdp(.{ .address = own, .buffer_size = 8 << 20 }) catch {
        try errors.writeAll("bootfarm-sim: tftp-flood: the system refused a socket\n");
        return 1;
    };
    var socket: host.UdpSocket = try .init(gpa, fd, null);
    defer socket.deinit(gpa);
    const totals = flood(&socket, &options) catch {
        try errors.writeAll(
            "bootfarm-sim: tftp-flood: the system refused a source address; is the network of --sources local here?\n",
        );
        return 1;
    };
    try out.print(
        "{{\"requests\":{d},\"requestBytes\":{d},\"answers\":{d},\"answerBytes\":{d}}}\n",
        .{ totals.requests, totals.bytes_out, totals.answers, totals.bytes_in },
    );
    return 0;
}

fn flood(socket: *host.UdpSocket, options: *const Options) !Totals {
    var buffer: [wire.tftp.request_size_max]u8 = undefined;
    const request = wire.tftp.emit(&.{ .rrq = .{
        .file_name = options.file,
        .options = if (options.is_plain) .{} else .{
            .blksize = 1468,
            .tsize = 0,
            .windowsize = 64,
        },
    } }, &buffer) catch unreachable;
    var totals: Totals = .{};
    const begun_at_us = sys.monotonicUs();
    const end_us = begun_at_us + @as(u64, options.seconds) * std.time.us_per_s;
    while (true) {
        const now_us = sys.monotonicUs();
        if (now_us >= end_us) break;
        const due = if (options.rate == 0) totals.requests +
            batch_max else (now_us - begun_at_us) * options.rate / std.time.us_per_s;
        const count = @min(batch_max, due -| totals.requests);
        for (0..count) |_| {
            const offset: u32 = @intCast(totals.requests % options.count);
            socket.source_ip = .fromInt(options.first.toInt() + offset);
            const dropped = socket.dropped;
            socket.send(options.server, request);
            if (socket.dropped != dropped and totals.requests == 0) return error.Refused;
            totals.requests += 1;
            totals.bytes_out += request.len;
        }
        drain(socket, &totals);
        // It does not sleep while it is behind its rate.
        if (count < batch_max) wait(socket.fd, 1);
    }
    // Packets still in flight; the server answers at once or never.
    const rest_us = 200 * std.time.us_per_ms;
    var quiet_since_us = sys.monotonicUs();
    while (sys.monotonicUs() - quiet_since_us < rest_us) {
        const before = totals.answers;
        wait(socket.fd, 20);
        drain(socket, &totals);
        if (totals.answers != before) quiet_since_us = sys.monotonicUs();
        if (sys.monotonicUs() > end_us + 10 * std.time.us_per_s) break;
    }
    return totals;
}

fn drain(socket: *host.UdpSocket, totals: *Totals) void {
    for (0..8) |_| {
        const count = socket.receive();
        for (0..count) |index| {
            totals.answers += 1;
            totals.bytes_in += socket.datagram(index).bytes.len;
        }
        if (count == 0) return;
    }
}

fn wait(fd: i32, timeout_ms: i32) void {
    var polled = [1]linux.pollfd{.{ .fd = fd, .events = linux.POLL.IN, .revents = 0 }};
    _ = linux.poll(&polled, polled.len, timeout_ms);
}

fn parse(args: []const [:0]const u8, wrong: *[]const u8) error{Unfit}!Options {
    const Name = enum { server, file, sources, port, rate, seconds };
    var options: Options = .{};
    var index: usize = 0;
    while (index < args.len) : (index += 1) {
        wrong.* = args[index];
        if (std.mem.eql(u8, args[index], "--plain")) {
            options.is_plain = true;
            continue;
        }
        const bare = std.mem.cutPrefix(u8, args[index], "--") orelse return error.Unfit;
        const name = std.meta.stringToEnum(Name, bare) orelse return error.Unfit;
        index += 1;
        if (index == args.len) return error.Unfit;
        const value = args[index];
        switch (name) {
            .server => options.server.ip = base.Ip4.parse(value) catch return error.Unfit,
            .file => options.file = value,
            .port => options.server.port = @intCast(try number(value, 1, 65535)),
            .rate => options.rate = try number(value, 0, rate_max),
            .seconds => options.seconds = try number(value, 1, seconds_max),
            .sources => {
                const ip, const prefix = std.mem.cutScalar(u8, value, '/') orelse
                    return error.Unfit;
                const bits = try number(prefix, 8, 32);
                options.first = base.Ip4.parse(ip) catch return error.Unfit;
                options.count = @as(u32, 1) << @intCast(32 - bits);
                options.first = .fromInt(options.first.toInt() & ~(options.count - 1));
            },
        }
    }
    wrong.* = "--server";
    if (options.server.ip.isZero()) return error.Unfit;
    wrong.* = "--sources";
    if (options.count == 0) return error.Unfit;
    wrong.* = "--file";
    if (options.file.len == 0 or options.file.len > 400) return error.Unfit;
    return options;
}

fn number(text: []const u8, least: u32, most: u32) error{Unfit}!u32 {
    const value = std.fmt.parseInt(u32, text, 10) catch return error.Unfit;
    return if (value < least or value > most) error.Unfit else value;
}
