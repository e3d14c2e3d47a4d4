//! `bootfarm-sim tftp-get`: reads one file by TFTP any number of times at once, as fast as the
//! server sends it, to measure and test servers. Bytes go to memory and are hashed after the
//! measurement.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const core = @import("core");
const host = @import("host");
const linux = std.os.linux;
const sys = host.sys;
const sockets = host.sockets;
const TftpClient = core.tftp.Client;

const clients_max = 64;
const file_size_max = 1 << 30;
const batch_max = 16;
/// Largest receive when the kernel joins a window's packets (UDP_GRO).
const joined_size_max = 65536;

pub const usage =
    \\Usage: bootfarm-sim tftp-get --server IP --file NAME [OPTIONS]
    \\
    \\Reads a file by TFTP into memory and prints one JSON line: bytes, seconds from the first request to the
    \\last byte, retransmitted packets, and the SHA-256 of the content. The exit code is 0 if every client has the file.
    \\
    \\  --server IP           the TFTP server
    \\  --file NAME           name of the file
    \\  --port N              the server's port (default 69)
    \\  --blksize N           8 to 65464; 0 omits the option (default 1468)
    \\  --windowsize N        1 to 65535; 0 omits the option (default 0)
    \\  --clients N           number of clients at once, each with its own port (default 1, at most 64)
    \\  --separate            do not let the kernel join the packets of a window (UDP_GRO)
    \\
    \\Example:
    \\  bootfarm-sim tftp-get --server 10.0.0.1 --file snponly.efi --clients 8
    \\
;

const Options = struct {
    server: base.Endpoint = .{ .ip = .zero, .port = wire.tftp.server_port },
    file: []const u8 = "",
    blksize: ?u16 = 1468,
    windowsize: ?u16 = null,
    clients: u16 = 1,
    is_joined: bool = true,
};

const Reader = struct {
    fd: i32,
    client: TftpClient,
    bytes: std.ArrayList(u8) = .empty,
    outcome: ?TftpClient.Outcome = null,
};

const Batch = host.ReceiveBatch(linux.sockaddr.in, .{
    .count = batch_max,
    .packet_size = joined_size_max,
    .control_size = 64,
});

/// `args` are those after `tftp-get`. Returns the exit code; a problem is one sentence on `errors`.
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
            "bootfarm-sim: tftp-get: {s} is unknown, missing, or its value does not fit; see bootfarm-sim tftp-get --help\n",
            .{wrong},
        );
        return 1;
    };
    const readers = try gpa.alloc(Reader, options.clients);
    defer gpa.free(readers);
    for (readers) |*reader| {
        const own: base.Endpoint = .{ .ip = .zero, .port = 0 };
        const fd = sockets.openUdp(.{ .address = own, .buffer_size = 8 << 20 }) catch {
            try errors.writeAll("bootfarm-sim: tftp-get: the system refused a socket\n");
            return 1;
        };
        if (options.is_joined) sockets.setInt(fd, linux.IPPROTO.UDP, linux.UDP.GRO, 1) catch {};
        reader.* = .{ .fd = fd, .client = .init(.{
            .server = options.server,
            .file_name = options.file,
            .blksize = options.blksize,
            .windowsize = options.windowsize,
        }) };
        // Page faults of untouched memory would count as the server's time.
        try reader.bytes.ensureTotalCapacity(gpa, if (options.clients == 1) 128 << 20 else 8 << 20);
        @memset(reader.bytes.allocatedSlice(), 0);
    }
    defer for (readers) |*reader| {
        sys.close(reader.fd);
        reader.bytes.deinit(gpa);
    };
    const batch = try Batch.create(gpa);
    defer gpa.destroy(batch);
    const begun_at_us = sys.monotonicUs();
    try readAll(gpa, readers, batch);
    const took_us = sys.monotonicUs() - begun_at_us;
    return report(readers, took_us, out, errors);
}

fn report(readers: []const Reader, took_us: u64, out: *std.Io.Writer, errors: *std.Io.Writer) !u8 {
    var size: u64 = 0;
    var retries: u64 = 0;
    var code: u8 = 0;
    var hash: [32]u8 = @splat(0);
    for (readers, 0..) |*reader, index| {
        size += reader.bytes.items.len;
        retries += reader.client.retries;
        var own: [32]u8 = undefined;
        base.Sha256.hash(reader.bytes.items, &own, .{});
        if (index == 0) hash = own;
        switch (reader.outcome.?) {
            .done => if (!std.mem.eql(u8, &own, &hash)) {
                try errors.writeAll("bootfarm-sim: tftp-get: two clients got different bytes\n");
                code = 1;
            },
            .failed => |failure| {
                code = 1;
                switch (failure) {
                    .timeout => try errors.writeAll(
                        "bootfarm-sim: tftp-get: the server stopped answering\n",
                    ),
                    .bad_options => try errors.writeAll(
                        "bootfarm-sim: tftp-get: the server accepted options that were not requested\n",
                    ),
                    .server_error => |said| try errors.print(
                        "bootfarm-sim: tftp-get: the server reported: {s} (error {d})\n",
                        .{ said.text.slice(), @backingInt(said.code) },
                    ),
                }
            },
        }
    }
    if (code == 0) try out.print(
        "{{\"clients\":{d},\"bytes\":{d},\"seconds\":{d:.6},\"retries\":{d},\"windowsize\":{d},\"blksize\":{d},\"sha256\":\"{x}\"}}\n",
        .{
            readers.len,
            size,
            @as(f64, @floatFromInt(took_us)) / 1e6,
            retries,
            readers[0].client.windowsize,
            readers[0].client.blksize,
            &hash,
        },
    );
    return code;
}

/// Runs until every reader has its outcome.
fn readAll(gpa: std.mem.Allocator, readers: []Reader, batch: *Batch) !void {
    var epoll = try host.Epoll.init();
    defer epoll.deinit();
    for (readers, 0..) |*reader, index| try epoll.add(reader.fd, .read, index);
    var buffer: TftpClient.Buffer = undefined;
    for (readers) |*reader| {
        const step = reader.client.start(sys.monotonicUs(), &buffer);
        try act(gpa, reader, &step);
    }
    while (true) {
        var deadline_us: u64 = std.math.maxInt(u64);
        var is_over = true;
        for (readers) |*reader| {
            if (reader.outcome != null) continue;
            is_over = false;
            deadline_us = @min(deadline_us, reader.client.deadline_us);
        }
        if (is_over) return;
        const wait_us = deadline_us -| sys.monotonicUs();
        var tokens: [clients_max]u64 = undefined;
        const timeout_ms: i32 = @intCast(@min(wait_us / std.time.us_per_ms + 1, 1000));
        for (try epoll.wait(&tokens, timeout_ms)) |token|
            try receive(gpa, &readers[@intCast(token)], batch);
        const now_us = sys.monotonicUs();
        for (readers) |*reader| {
            if (reader.outcome != null or reader.client.deadline_us > now_us) continue;
            const step = reader.client.tick(now_us, &buffer);
            try act(gpa, reader, &step);
        }
    }
}

fn receive(gpa: std.mem.Allocator, reader: *Reader, batch: *Batch) !void {
    const count = batch.receive(reader.fd);
    const now_us = sys.monotonicUs();
    var buffer: TftpClient.Buffer = undefined;
    for (0..count) |index| {
        const bytes = batch.bytes(index);
        const from = sockets.fromSockaddr(&batch.names[index]);
        const segment = segmentSize(batch.control(index)) orelse bytes.len;
        var at: usize = 0;
        while (true) {
            const end = @min(at + segment, bytes.len);
            const step = reader.client.receive(now_us, from, bytes[at..end], &buffer);
            try act(gpa, reader, &step);
            at = end;
            if (at >= bytes.len) break;
        }
    }
}

/// Handles packets that the kernel has joined.
fn segmentSize(control: []const u8) ?usize {
    const header_size = @sizeOf(linux.cmsghdr);
    if (control.len < header_size + @sizeOf(i32)) return null;
    const header = std.mem.bytesToValue(linux.cmsghdr, control[0..header_size]);
    if (header.level != linux.IPPROTO.UDP or header.type != linux.UDP.GRO) return null;
    const size = std.mem.bytesToValue(i32, control[header_size..][0..@sizeOf(i32)]);
    return if (size > 0) @intCast(size) else null;
}

fn act(gpa: std.mem.Allocator, reader: *Reader, step: *const TftpClient.Step) !void {
    if (step.content) |content| {
        if (content.offset + content.bytes.len > file_size_max) return error.FileTooBig;
        try reader.bytes.appendSlice(gpa, content.bytes);
    }
    if (step.send) |packet| {
        const to = sockets.toSockaddr(packet.to);
        _ = linux.sendto(
            reader.fd,
            packet.bytes.ptr,
            packet.bytes.len,
            linux.MSG.NOSIGNAL,
            @ptrCast(&to),
            @sizeOf(linux.sockaddr.in),
        );
    }
    if (step.outcome) |outcome| reader.outcome = outcome;
}

fn parse(args: []const [:0]const u8, wrong: *[]const u8) error{Unfit}!Options {
    const Name = enum { server, file, port, blksize, windowsize, clients };
    var options: Options = .{};
    var index: usize = 0;
    while (index < args.len) : (index += 2) {
        wrong.* = args[index];
        if (std.mem.eql(u8, args[index], "--separate")) {
            options.is_joined = false;
            index -%= 1;
            continue;
        }
        const bare = std.mem.cutPrefix(u8, args[index], "--") orelse return error.Unfit;
        const name = std.meta.stringToEnum(Name, bare) orelse return error.Unfit;
        if (index + 1 == args.len) return error.Unfit;
        const value = args[index + 1];
        switch (name) {
            .server => options.server.ip = base.Ip4.parse(value) catch return error.Unfit,
            .file => options.file = value,
            .port => options.server.port = try number(value, 1, 65535),
            .blksize => options.blksize = try numberOrNone(
                value,
                wire.tftp.blksize_min,
                wire.tftp.blksize_max,
            ),
            .windowsize => options.windowsize = try numberOrNone(value, 1, 65535),
            .clients => options.clients = try number(value, 1, clients_max),
        }
    }
    wrong.* = "--server";
    if (options.server.ip.isZero()) return error.Unfit;
    wrong.* = "--file";
    if (options.file.len == 0 or options.file.len > 400) return error.Unfit;
    return options;
}

fn numberOrNone(text: []const u8, least: u16, most: u16) error{Unfit}!?u16 {
    if (std.mem.eql(u8, text, "0")) return null;
    return try number(text, least, most);
}

fn number(text: []const u8, least: u16, most: u16) error{Unfit}!u16 {
    const value = std.fmt.parseInt(u16, text, 10) catch return error.Unfit;
    return if (value < least or value > most) error.Unfit else value;
}
