//! HTTP for boots: GET and HEAD of small texts, boot files in memory and files on disk, with single
//! ranges and keep-alive, and POST of a short word. Non-blocking, a fixed number of connections, and a time limit for
//! everything a client can delay. What a path means is the handler's business.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const http_request = @import("wire").http_request;
const sys = @import("sys.zig");
const Epoll = @import("epoll.zig").Epoll;
const assert = std.debug.assert;
const linux = std.os.linux;

const Request = http_request.Request;

/// A client gets that long to send a whole head, or its next one on a connection kept open.
pub const head_limit_us = 15 * std.time.us_per_s;
/// Longest time in which nothing of an answer could be sent.
pub const stall_limit_us = 20 * std.time.us_per_s;
/// An answer may take a minute and what its size takes at this rate.
pub const slowest_bytes_per_s = 64 * 1024;
pub const text_size_max = 4096;
const send_chunk_size = 512 * 1024;
/// Bytes of one connection per turn of the loop, so that others get theirs.
const turn_size_max = 2 * 1024 * 1024;

pub const Body = union(enum) {
    none,
    /// Written into the connection's own buffer by the handler; length in bytes.
    text: usize,
    memory: []const u8,
    file: struct { fd: i32, size: u64 },

    fn size(body: Body) u64 {
        return switch (body) {
            .none => 0,
            .text => |length| length,
            .memory => |bytes| bytes.len,
            .file => |file| file.size,
        };
    }
};

/// What an answer belongs to; handed back with its progress.
pub const Tag = struct {
    boot: ?core.BootTable.Ref = null,
    what: What = .other,

    pub const What = enum { other, nbp, script, kernel, initrd, disk };
};

pub const Response = struct {
    status: u16,
    content_type: []const u8 = "application/octet-stream",
    body: Body = .none,
    tag: Tag = .{},
    /// With 405: what the path takes.
    allow: []const u8 = "GET, HEAD, POST",

    /// One line for whoever asked, in place of what was asked for.
    pub fn saying(status: u16, sentence: []const u8, text: *[text_size_max]u8) Response {
        const line = std.mem.print(text, "{s}\n", .{sentence}) catch unreachable;
        return .{ .status = status, .content_type = "text/plain", .body = .{ .text = line.len } };
    }
};

pub const Progress = struct {
    traffic: core.boot_phase.Traffic,
    /// The first of this answer.
    begins: bool = false,
    /// The last byte was handed to the network.
    finished: bool = false,
    /// Bytes of the body that this answer has in all, after its range.
    body_size: u64 = 0,
};

pub const Handler = struct {
    context: *anyopaque,
    /// Decides the answer. `text` is where a small answer can be written.
    respond: *const fn (context: *anyopaque, peer: base.Ip4, request: *const Request, text: *[text_size_max]u8) Response,
    progress: *const fn (context: *anyopaque, tag: Tag, progress: Progress) void,
};

const Connection = struct {
    fd: i32 = -1,
    peer: base.Ip4 = .zero,
    state: enum { free, reading, sending } = .free,
    deadline_us: u64 = 0,
    /// No answer lasts longer than this, however it goes on.
    answer_deadline_us: u64 = 0,
    keep_alive: bool = false,
    input_size: usize = 0,
    input: [http_request.request_size_max]u8 = undefined,
    head_size: usize = 0,
    head_sent: usize = 0,
    head: [512]u8 = undefined,
    text: [text_size_max]u8 = undefined,
    body: Body = .none,
    /// Of the body, still to send.
    offset: u64 = 0,
    left: u64 = 0,
    body_size: u64 = 0,
    tag: Tag = .{},
    counters: TcpCounters = .{},
};

/// From TCP_INFO; what the kernel counted for this connection.
const TcpCounters = struct { segments_in: u64 = 0, segments_out: u64 = 0, retransmitted: u64 = 0 };

pub const HttpServer = struct {
    listener: i32,
    epoll: Epoll,
    /// Added to a connection's place: its token in the epoll instance.
    token_base: u64,
    connections: []Connection,
    handler: Handler,
    ignored: base.IgnoredCounters = .{},

    pub const connections_default = 512;
    pub const connections_per_address_max = 64;

    pub fn init(
        gpa: std.mem.Allocator,
        listener: i32,
        epoll: Epoll,
        token_base: u64,
        handler: Handler,
        connections_max: u16,
    ) error{OutOfMemory}!HttpServer {
        const connections = try gpa.alloc(Connection, connections_max);
        for (connections) |*connection| connection.* = .{};
        return .{
            .listener = listener,
            .epoll = epoll,
            .token_base = token_base,
            .connections = connections,
            .handler = handler,
        };
    }

    pub fn deinit(server: *HttpServer, gpa: std.mem.Allocator) void {
        for (server.connections) |*connection| if (connection.state != .free) server.close(connection);
        gpa.free(server.connections);
        server.* = undefined;
    }

    /// Takes what waits at the listener, at most as many as there are places.
    pub fn accept(server: *HttpServer, now_us: u64) void {
        for (0..server.connections.len) |_| {
            var address: linux.sockaddr.in = undefined;
            var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
            const flags = linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
            const fd: i32 = @intCast(
                sys.check(
                    linux.accept4(server.listener, @ptrCast(&address), &size, flags),
                ) catch return,
            );
            const peer: base.Ip4 = .{ .bytes = std.mem.toBytes(address.addr) };
            const index = server.placeFor(peer) orelse {
                server.ignored.add(.http_busy);
                sys.close(fd);
                continue;
            };
            const connection = &server.connections[index];
            server.epoll.add(fd, .read, server.token_base + index) catch {
                sys.close(fd);
                continue;
            };
            connection.fd = fd;
            connection.peer = peer;
            connection.state = .reading;
            connection.deadline_us = now_us + head_limit_us;
            connection.input_size = 0;
            connection.counters = .{};
        }
    }

    /// The connection of this token can be read or written, or is closed.
    pub fn handle(server: *HttpServer, token: u64, now_us: u64) void {
        const connection = &server.connections[@intCast(token - server.token_base)];
        switch (connection.state) {
            .free => {},
            .reading => server.read(connection, now_us),
            .sending => server.send(connection, now_us),
        }
    }

    /// Cuts off clients that are too slow; once a second.
    pub fn tick(server: *HttpServer, now_us: u64) void {
        for (server.connections) |*connection| switch (connection.state) {
            .free => {},
            .reading => if (now_us > connection.deadline_us) {
                if (connection.input_size > 0) server.ignored.add(.http_slow);
                server.close(connection);
            },
            .sending => if (now_us > connection.deadline_us or now_us > connection.answer_deadline_us) {
                server.ignored.add(.http_slow);
                server.close(connection);
            },
        };
    }

    fn placeFor(server: *const HttpServer, peer: base.Ip4) ?usize {
        var free: ?usize = null;
        var of_peer: u32 = 0;
        for (server.connections, 0..) |*connection, index| {
            if (connection.state == .free) {
                free = free orelse index;
            } else if (connection.peer.eql(peer)) {
                of_peer += 1;
            }
        }
        return if (of_peer < connections_per_address_max) free else null;
    }

    fn read(server: *HttpServer, connection: *Connection, now_us: u64) void {
        const room = connection.input[connection.input_size..];
        assert(room.len > 0);
        const count = sys.check(
            linux.recvfrom(connection.fd, room.ptr, room.len, 0, null, null),
        ) catch |err| switch (err) {
            error.WouldBlock, error.Interrupted => return,
            error.SystemCallFailed => return server.close(connection),
        };
        if (count == 0) return server.close(connection);
        connection.input_size += count;
        server.parse(connection, now_us);
    }

    /// Answers the request at the front of the input, if it is whole.
    fn parse(server: *HttpServer, connection: *Connection, now_us: u64) void {
        assert(connection.state == .reading);
        switch (http_request.parse(connection.input[0..connection.input_size])) {
            .incomplete => {},
            .problem => |problem| {
                server.ignored.add(.http_bad_request);
                connection.keep_alive = false;
                connection.input_size = 0;
                const refusal: Response = .saying(problem.status(), problem.sentence(), &connection.text);
                server.begin(connection, refusal, null, .get, 0, now_us);
            },
            .request => |request| {
                connection.keep_alive = request.keep_alive;
                const response = server.handler.respond(
                    server.handler.context,
                    connection.peer,
                    &request,
                    &connection.text,
                );
                if (response.status == 404) server.ignored.add(.http_not_found);
                server.begin(
                    connection,
                    response,
                    request.range,
                    request.method,
                    request.size,
                    now_us,
                );
            },
        }
    }

    /// `consumed`: bytes of the input that the request was.
    fn begin(
        server: *HttpServer,
        connection: *Connection,
        response: Response,
        range: ?http_request.Range,
        method: http_request.Method,
        consumed: usize,
        now_us: u64,
    ) void {
        var status = response.status;
        const whole_size = response.body.size();
        var part: http_request.Range.Part = .{ .first = 0, .length = whole_size };
        if (status == 200) if (range) |wanted| {
            if (wanted.resolve(whole_size)) |found| {
                part = found;
                status = 206;
            } else {
                status = 416;
                part.length = 0;
            }
        };
        connection.body = heldBody(response.body) orelse return server.close(connection);
        connection.tag = response.tag;
        connection.offset = part.first;
        connection.left = if (method == .head) 0 else part.length;
        connection.body_size = connection.left;
        const head = writeHead(
            &connection.head,
            status,
            &response,
            part,
            whole_size,
            connection.keep_alive,
        );
        connection.head_size = head.len;
        connection.head_sent = 0;
        const rest = connection.input_size - @min(consumed, connection.input_size);
        std.mem.copyForwards(
            u8,
            connection.input[0..rest],
            connection.input[connection.input_size - rest ..][0..rest],
        );
        connection.input_size = rest;
        connection.state = .sending;
        connection.deadline_us = now_us + stall_limit_us;
        connection.answer_deadline_us = now_us + 60 * std.time.us_per_s +
            part.length / slowest_bytes_per_s * std.time.us_per_s;
        const traffic: core.boot_phase.Traffic = .{ .bytes_in = consumed };
        server.report(connection, .{ .traffic = traffic, .begins = true });
        server.epoll.modify(
            connection.fd,
            .write,
            server.tokenOf(connection),
        ) catch return server.close(connection);
        server.send(connection, now_us);
    }

    fn send(server: *HttpServer, connection: *Connection, now_us: u64) void {
        assert(connection.state == .sending);
        var sent: u64 = 0;
        while (connection.head_sent < connection.head_size or connection.left > 0) {
            const count = sendSome(connection) catch |err| switch (err) {
                error.WouldBlock => {
                    server.report(connection, .{ .traffic = .{ .bytes_out = sent } });
                    return;
                },
                error.Interrupted => continue,
                error.SystemCallFailed => {
                    server.report(connection, .{ .traffic = .{ .bytes_out = sent } });
                    return server.close(connection);
                },
            };
            // A file that was cut short under us: the client sees that bytes are missing.
            if (count == 0) return server.close(connection);
            sent += count;
            connection.deadline_us = now_us + stall_limit_us;
            if (sent >= turn_size_max) {
                server.report(connection, .{ .traffic = .{ .bytes_out = sent } });
                return;
            }
        }
        server.report(connection, .{ .traffic = .{ .bytes_out = sent }, .finished = true });
        releaseBody(connection);
        if (!connection.keep_alive) return server.close(connection);
        connection.state = .reading;
        connection.deadline_us = now_us + head_limit_us;
        server.epoll.modify(
            connection.fd,
            .read,
            server.tokenOf(connection),
        ) catch return server.close(connection);
        // The next request may be here already.
        if (connection.input_size > 0) server.parse(connection, now_us);
    }

    fn report(server: *HttpServer, connection: *Connection, step: Progress) void {
        if (connection.tag.boot == null) return;
        var whole = step;
        whole.body_size = connection.body_size;
        const now = tcpCounters(connection.fd) orelse connection.counters;
        whole.traffic.packets_in = now.segments_in -| connection.counters.segments_in;
        whole.traffic.packets_out = now.segments_out -| connection.counters.segments_out;
        whole.traffic.retries = now.retransmitted -| connection.counters.retransmitted;
        connection.counters = now;
        server.handler.progress(server.handler.context, connection.tag, whole);
    }

    fn close(server: *HttpServer, connection: *Connection) void {
        _ = server;
        assert(connection.state != .free);
        releaseBody(connection);
        sys.close(connection.fd);
        connection.fd = -1;
        connection.state = .free;
    }

    fn tokenOf(server: *const HttpServer, connection: *const Connection) u64 {
        return server.token_base + (connection - server.connections.ptr);
    }
};

/// A file descriptor of the answer's own: the version may be closed while a slow client still reads
/// it.
fn heldBody(body: Body) ?Body {
    switch (body) {
        .none, .text, .memory => return body,
        .file => |file| {
            const rc = linux.fcntl(file.fd, linux.F.DUPFD_CLOEXEC, 0);
            const fd: i32 = @intCast(sys.check(rc) catch return null);
            return .{ .file = .{ .fd = fd, .size = file.size } };
        },
    }
}

fn releaseBody(connection: *Connection) void {
    switch (connection.body) {
        .none, .text, .memory => {},
        .file => |file| sys.close(file.fd),
    }
    connection.body = .none;
}

/// Sends a piece of the head or of the body; returns its bytes.
fn sendSome(connection: *Connection) sys.Error!u64 {
    if (connection.head_sent < connection.head_size) {
        const rest = connection.head[connection.head_sent..connection.head_size];
        const more: u32 = if (connection.left > 0) linux.MSG.MORE else 0;
        const count = try sys.check(
            linux.sendto(connection.fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL | more, null, 0),
        );
        connection.head_sent += count;
        return count;
    }
    const size: usize = @intCast(@min(connection.left, send_chunk_size));
    const count = switch (connection.body) {
        .none => unreachable,
        .text => |length| try sendBytes(
            connection.fd,
            connection.text[0..length],
            connection.offset,
            size,
        ),
        .memory => |bytes| try sendBytes(connection.fd, bytes, connection.offset, size),
        .file => |file| blk: {
            var offset: i64 = @intCast(connection.offset);
            break :blk try sys.check(linux.sendfile(connection.fd, file.fd, &offset, size));
        },
    };
    connection.offset += count;
    connection.left -= count;
    return count;
}

fn sendBytes(fd: i32, bytes: []const u8, offset: u64, size: usize) sys.Error!usize {
    const rest = bytes[@intCast(offset)..][0..size];
    return sys.check(linux.sendto(fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL, null, 0));
}

fn writeHead(
    buffer: *[512]u8,
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
    if (status == 206)
        writer.print(
            "content-range: bytes {d}-{d}/{d}\r\n",
            .{ part.first, part.first + part.length - 1, whole_size },
        ) catch unreachable;
    if (status == 416) writer.print(
        "content-range: bytes */{d}\r\n",
        .{whole_size},
    ) catch unreachable;
    if (status == 405) writer.print("allow: {s}\r\n", .{response.allow}) catch unreachable;
    writer.print("connection: {s}\r\n\r\n", .{
        if (keep_alive) "keep-alive" else "close",
    }) catch unreachable;
    return writer.buffered();
}

fn reasonOf(status: u16) []const u8 {
    return switch (status) {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        else => unreachable,
    };
}

/// Offsets of struct tcp_info (linux/tcp.h); it only ever grows at its end.
fn tcpCounters(fd: i32) ?TcpCounters {
    var info: [144]u8 align(8) = undefined;
    var size: linux.socklen_t = info.len;
    const tcp_info = 11;
    _ = sys.check(
        linux.getsockopt(fd, linux.IPPROTO.TCP, tcp_info, &info, &size),
    ) catch return null;
    if (size < info.len) return null;
    return .{
        .retransmitted = std.mem.readInt(u32, info[100..104], .native),
        .segments_out = std.mem.readInt(u32, info[136..140], .native),
        .segments_in = std.mem.readInt(u32, info[140..144], .native),
    };
}
