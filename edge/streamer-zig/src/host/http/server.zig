//! HTTP for boots: GET and HEAD of small texts, boot files in memory and files on disk, with single
//! ranges and keep-alive, and POST of a short word. Non-blocking, with a fixed number of
//! connections and a time limit for everything that a client can delay. The handler decides what a
//! path means.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const http_request = @import("wire").http_request;
const http_target = @import("wire").http_target;
const Connections = @import("connections.zig");
const http_response = @import("response.zig");
const HeldDisk = @import("../stream/version_disk.zig").HeldDisk;
const PageWarmer = @import("../files/page_warmer.zig");
const kernel_stamp = @import("../net/kernel_stamp.zig");
const sys = @import("../sys.zig");
const tcp_delivery = @import("tcp_delivery.zig");
const Epoll = @import("../net/epoll.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const Request = http_request.Request;
const Body = http_response.Body;
const Connection = Connections.Connection;
const Response = http_response.Response;
const Tag = http_response.Tag;
const text_size_max = http_response.text_size_max;

/// The time for a client to send a whole head, or its next one on a connection that is kept open.
const head_limit_us = 15 * std.time.us_per_s;
/// The longest time for which a request waits for a version that a thread opens.
const version_limit_us = 60 * std.time.us_per_s;
/// The longest time in which nothing of an answer could be sent.
pub const stall_limit_us = 20 * std.time.us_per_s;
/// An answer may take a minute plus the time for its size at this rate.
const slowest_bytes_per_s = 64 * 1024;
const send_chunk_size = 512 * 1024;
/// Bytes of one connection per turn of the loop, so that others get theirs.
const turn_size_max = 2 * 1024 * 1024;
/// Bytes that a thread reads for one connection at a time, so that others get theirs.
const warm_size = 2 * 1024 * 1024;
/// The end of an answer whose delivery is measured goes out in a separate send: its last byte is
/// the one that the kernel watches.
const watched_size = 16 * 1024;

pub const Progress = http_response.Progress;

pub const Handler = struct {
    context: *anyopaque,
    /// Decides the answer. A small answer can be written to `text`.
    respond: *const fn (
        context: *anyopaque,
        peer: base.Ip4,
        request: *const Request,
        text: *[text_size_max]u8,
    ) Response,
    progress: *const fn (context: *anyopaque, tag: Tag, progress: Progress) void,
    /// Returns a number if what was given to the journal is not written yet: `endRecords` is called
    /// once `isWritten` may be true for it.
    awaitRecords: *const fn (context: *anyopaque) ?u64,
    isWritten: *const fn (context: *anyopaque, number: u64) bool,
    /// Fills the buffer from an offset of a version's disk.
    read: *const fn (
        context: *anyopaque,
        version_id: base.Uuid,
        buffer: []u8,
        offset: u64,
        how: DiskRead,
    ) DiskRead.Result,
    /// The disk for a thread that reads it; null: there is none.
    hold: *const fn (context: *anyopaque, version_id: base.Uuid) ?HeldDisk,
    /// A thread has read and checked this.
    markRead: *const fn (
        context: *anyopaque,
        version_id: base.Uuid,
        offset: u64,
        size: u64,
    ) void,
};

/// `now`: only what is in memory and checked.
pub const DiskRead = enum {
    now,
    wait,

    pub const Result = enum { filled, waits, failed };
};

pub const HttpServer = @This();

listener: i32,
epoll: Epoll,
/// Added to a connection's slot to get its token in the epoll instance.
token_base: u64,
connections: Connections,
handler: Handler,
/// Bytes of a disk that are sent at a time.
disk_buffer: [64 << 10]u8 = undefined,
/// Null where pieces of files are sent without asking whether they are in memory.
warmer: ?*PageWarmer = null,
/// False once the kernel has refused to stamp acknowledgements.
stamps: bool = true,
ignored: base.IgnoredCounters = .{},
sent_bytes: u64 = 0,

pub const connections_default = 4096;

pub fn init(
    gpa: std.mem.Allocator,
    listener: i32,
    epoll: Epoll,
    token_base: u64,
    handler: Handler,
    connections_max: u16,
) error{OutOfMemory}!HttpServer {
    return .{
        .listener = listener,
        .epoll = epoll,
        .token_base = token_base,
        .connections = try .init(gpa, connections_max),
        .handler = handler,
    };
}

pub fn deinit(server: *HttpServer, gpa: std.mem.Allocator) void {
    for (server.connections.all) |*connection|
        if (connection.state != .free) server.close(connection);
    server.connections.deinit(gpa);
    server.* = undefined;
}

/// Counts the answers that are not delivered yet.
pub fn answerCount(server: *const HttpServer) u32 {
    var count: u32 = 0;
    for (server.connections.all) |*connection| switch (connection.state) {
        .free, .reading => {},
        .waiting, .sending, .draining => count += 1,
    };
    return count;
}

/// Accepts what waits at the listener, at most as many as there are slots.
pub fn accept(server: *HttpServer, now_us: u64) void {
    for (0..server.connections.all.len) |_| {
        var address: linux.sockaddr.in = undefined;
        var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
        const flags = linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const fd: i32 = @intCast(
            sys.check(linux.accept4(server.listener, @ptrCast(&address), &size, flags)) catch
                return,
        );
        const peer: base.Ip4 = .{ .bytes = std.mem.toBytes(address.addr) };
        const index = switch (server.connections.placeFor(peer)) {
            .free => |index| index,
            .waiting => |index| made: {
                server.ignored.add(.http_busy);
                server.close(&server.connections.all[index]);
                break :made index;
            },
            .none => {
                server.ignored.add(.http_busy);
                sys.close(fd);
                continue;
            },
        };
        const connection = &server.connections.all[index];
        server.epoll.add(fd, .read, server.token_base + index) catch {
            sys.close(fd);
            continue;
        };
        connection.fd = fd;
        server.connections.peers[index] = peer;
        kernel_stamp.stampPackets(fd);
        connection.state = .reading;
        connection.deadline_us = now_us + head_limit_us;
        connection.input_size = 0;
        connection.counters = .{};
    }
}

/// The connection of this token can be read or written, or is closed.
pub fn handle(server: *HttpServer, token: u64, now_us: u64) void {
    const connection = &server.connections.all[@intCast(token - server.token_base)];
    connection.turn_sent = 0;
    switch (connection.state) {
        .free => {},
        .reading => server.read(connection, now_us),
        .waiting => server.checkClient(connection),
        .sending => if (connection.awaits_disk)
            server.checkClient(connection)
        else
            server.send(connection, now_us),
        .draining => server.drain(connection, now_us, .event),
    }
}

/// The client may be gone while its answer waits.
fn checkClient(server: *HttpServer, connection: *Connection) void {
    if (tcp_delivery.isBroken(connection.fd)) return server.close(connection);
    _ = tcp_delivery.takeStamp(connection.fd);
}

/// Threads have read pieces of files: their connections go on when they can be written.
pub fn endReads(server: *HttpServer) void {
    const warmer = server.warmer orelse return;
    while (warmer.takeEnded()) |task| {
        const connection: *Connection = @alignCast(@fieldParentPtr("task", task));
        // Otherwise it was read for an earlier answer, and `send` asks again.
        if (connection.warm_to == reading_for) {
            connection.warm_to = task.offset + task.size;
            if (connection.body == .disk) server.handler.markRead(
                server.handler.context,
                connection.body.disk.version_id,
                task.offset,
                task.size,
            );
        }
        if (!connection.awaits_disk or connection.awaited_record != null) continue;
        server.resumeSending(connection);
    }
}

/// Records have been written: the answers that promise them go out.
pub fn endRecords(server: *HttpServer) void {
    for (server.connections.all) |*connection| {
        const number = connection.awaited_record orelse continue;
        if (!server.handler.isWritten(server.handler.context, number)) continue;
        connection.awaited_record = null;
        server.resumeSending(connection);
    }
}

/// A version has been opened, or could not: requests that wait for one are answered, or wait on.
pub fn onVersionOpened(server: *HttpServer, now_us: u64) void {
    for (server.connections.all) |*connection| {
        if (connection.state != .waiting) continue;
        const deadline_us = connection.deadline_us;
        connection.state = .reading;
        server.parse(connection, now_us);
        if (connection.state == .waiting) connection.deadline_us = deadline_us;
    }
}

fn resumeSending(server: *HttpServer, connection: *Connection) void {
    assert(connection.state == .sending);
    assert(connection.awaits_disk);
    connection.awaits_disk = false;
    server.epoll.modify(connection.fd, .write, server.tokenOf(connection)) catch
        server.close(connection);
}

/// Closes the connections of clients that are too slow; runs once a second.
pub fn tick(server: *HttpServer, now_us: u64) void {
    for (server.connections.all) |*connection| {
        if (connection.state == .draining) server.drain(connection, now_us, .tick);
        server.expire(connection, now_us);
    }
}

fn expire(server: *HttpServer, connection: *Connection, now_us: u64) void {
    switch (connection.state) {
        .free => {},
        .waiting => if (now_us > connection.deadline_us) server.refuse(
            connection,
            503,
            "The edge could not open the version of this boot in time; its log says why.",
            now_us,
        ),
        .reading => if (now_us > connection.deadline_us) {
            if (connection.input_size > 0) server.ignored.add(.http_slow);
            server.close(connection);
        },
        .draining => if (now_us > connection.deadline_us or
            now_us > connection.answer_deadline_us)
            server.giveUpDraining(connection),
        .sending => if (now_us > connection.deadline_us or now_us > connection.answer_deadline_us) {
            server.ignored.add(.http_slow);
            server.close(connection);
        },
    }
}

fn read(server: *HttpServer, connection: *Connection, now_us: u64) void {
    const free = connection.buffers.input[connection.input_size..];
    assert(free.len > 0);
    const count = tcp_delivery.receive(
        connection.fd,
        free,
        &connection.arrived_us,
    ) catch |err| switch (err) {
        error.WouldBlock, error.Interrupted => {
            // A late stamp would wake the loop again and again.
            _ = tcp_delivery.takeStamp(connection.fd);
            return;
        },
        error.SystemCallFailed => return server.close(connection),
    };
    if (count == 0) return server.close(connection);
    connection.input_size += count;
    server.parse(connection, now_us);
}

/// Answers the request at the front of the input, if it is complete.
fn parse(server: *HttpServer, connection: *Connection, now_us: u64) void {
    assert(connection.state == .reading);
    switch (http_request.parse(connection.buffers.input[0..connection.input_size])) {
        .incomplete => {},
        .problem => |problem| {
            server.ignored.add(.http_bad_request);
            server.refuse(connection, problem.status(), problem.sentence(), now_us);
        },
        .request => |request| {
            connection.keep_alive = request.keep_alive;
            const response = server.answerOf(connection, request);
            if (response.waits_for_version) return server.beginWaiting(connection, now_us);
            if (response.status == 404) server.ignored.add(.http_not_found);
            server.begin(connection, response, request.range, request.method, request.size, now_us);
        },
    }
}

/// Answers with a sentence, and ends the connection: what else the client has sent is dropped.
fn refuse(
    server: *HttpServer,
    connection: *Connection,
    status: u16,
    sentence: []const u8,
    now_us: u64,
) void {
    connection.state = .reading;
    connection.keep_alive = false;
    connection.input_size = 0;
    const refusal: Response = .saying(status, sentence, &connection.buffers.text);
    server.begin(connection, refusal, null, .get, 0, now_us);
}

/// The request stays at the front of the input, and the client's later ones behind it.
fn beginWaiting(server: *HttpServer, connection: *Connection, now_us: u64) void {
    connection.state = .waiting;
    connection.deadline_us = now_us + version_limit_us;
    server.epoll.modify(connection.fd, .none, server.tokenOf(connection)) catch
        server.close(connection);
}

fn answerOf(server: *HttpServer, connection: *Connection, request: Request) Response {
    const text = &connection.buffers.text;
    var buffer: [http_target.size_max]u8 = undefined;
    var plain = request;
    plain.target = http_target.decode(request.target, &buffer) catch {
        server.ignored.add(.http_bad_request);
        return .saying(
            400,
            "This address is too long, or has a % that is not followed by two hex digits.",
            text,
        );
    };
    const peer = server.connections.peers[server.connections.indexOf(connection)];
    return server.handler.respond(server.handler.context, peer, &plain, text);
}

/// `consumed`: bytes of the input that the request took.
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
    connection.warm_to = 0;
    connection.acknowledged_us = null;
    const head = http_response.writeHead(
        &connection.buffers.head,
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
        connection.buffers.input[0..rest],
        connection.buffers.input[connection.input_size - rest ..][0..rest],
    );
    connection.input_size = rest;
    connection.state = .sending;
    connection.deadline_us = now_us + stall_limit_us;
    connection.answer_deadline_us = now_us + 60 * std.time.us_per_s +
        part.length / slowest_bytes_per_s * std.time.us_per_s;
    const traffic: core.boot.phase.Traffic = .{ .bytes_in = consumed };
    server.report(
        connection,
        .{ .traffic = traffic, .begins = true, .at_us = connection.arrived_us },
    );
    if (response.after_journal) connection.awaited_record =
        server.handler.awaitRecords(server.handler.context);
    connection.awaits_disk = connection.awaited_record != null;
    const interest: Epoll.Interest = if (connection.awaits_disk) .none else .write;
    server.epoll.modify(connection.fd, interest, server.tokenOf(connection)) catch
        return server.close(connection);
    if (!connection.awaits_disk) server.send(connection, now_us);
}

fn send(server: *HttpServer, connection: *Connection, now_us: u64) void {
    assert(connection.state == .sending);
    var sent: u64 = 0;
    while (connection.head_sent < connection.head_size or connection.left > 0) {
        // Counts all answers to requests that arrived together.
        if (connection.turn_sent >= turn_size_max) {
            server.report(connection, .{ .traffic = .{ .bytes_out = sent } });
            return;
        }
        const count = server.sendSome(connection) catch |err| switch (err) {
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
        // A file that was truncated in the meantime: the client sees that bytes are missing.
        if (count == 0) return server.close(connection);
        sent += count;
        server.sent_bytes += count;
        connection.turn_sent += count;
        connection.deadline_us = now_us + stall_limit_us;
    }
    releaseBody(connection);
    if (connection.body_size > 0 and connection.tag.isMeasured()) {
        server.report(connection, .{ .traffic = .{ .bytes_out = sent } });
        return server.beginDraining(connection, now_us);
    }
    server.report(connection, .{ .traffic = .{ .bytes_out = sent }, .finished = true });
    server.endAnswer(connection, now_us);
}

/// Sends a piece of the head or of the body; returns its size in bytes.
fn sendSome(server: *HttpServer, connection: *Connection) sys.Error!u64 {
    if (connection.head_sent < connection.head_size) {
        const rest = connection.buffers.head[connection.head_sent..connection.head_size];
        const more: u32 = if (connection.left > 0) linux.MSG.MORE else 0;
        const count = try sys.check(
            linux.sendto(connection.fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL | more, null, 0),
        );
        connection.head_sent += count;
        return count;
    }
    const size = server.sizeOfNext(connection);
    const count = switch (connection.body) {
        .none => unreachable,
        .text => |length| try sendBytes(
            connection.fd,
            connection.buffers.text[0..length],
            connection.offset,
            size,
        ),
        .memory => |bytes| try sendBytes(connection.fd, bytes, connection.offset, size),
        .disk => |disk| blk: {
            const bytes = server.disk_buffer[0..@min(size, server.disk_buffer.len)];
            try server.readDisk(connection, disk.version_id, bytes);
            break :blk try sendBytes(connection.fd, bytes, 0, bytes.len);
        },
        .file => |file| blk: {
            if (server.readsFirst(connection, file.fd, size)) return error.WouldBlock;
            var offset: i64 = @intCast(connection.offset);
            break :blk try sys.check(linux.sendfile(connection.fd, file.fd, &offset, size));
        },
    };
    connection.offset += count;
    connection.left -= count;
    return count;
}

/// In place of an offset: a thread reads for this answer.
const reading_for = std.math.maxInt(u64);

/// Fills the bytes of a version's disk, or has a thread read them first.
fn readDisk(
    server: *HttpServer,
    connection: *Connection,
    version_id: base.Uuid,
    bytes: []u8,
) sys.Error!void {
    const handler = &server.handler;
    const at = connection.offset;
    switch (handler.read(handler.context, version_id, bytes, at, .now)) {
        .filled => return,
        .failed => return error.SystemCallFailed,
        .waits => {},
    }
    const is_read = connection.warm_to != reading_for and at + bytes.len <= connection.warm_to;
    if (!is_read and server.warmer != null) {
        if (!connection.task.is_busy) {
            const disk = handler.hold(handler.context, version_id) orelse
                return error.SystemCallFailed;
            const wanted = @min(connection.left, warm_size);
            server.warmer.?.startDisk(&connection.task, disk, at, wanted);
            connection.warm_to = reading_for;
        }
        server.awaitDisk(connection);
        return error.WouldBlock;
    }
    // It may have been evicted since.
    return switch (handler.read(handler.context, version_id, bytes, at, .wait)) {
        .filled => {},
        .waits, .failed => error.SystemCallFailed,
    };
}

fn awaitDisk(server: *HttpServer, connection: *Connection) void {
    connection.awaits_disk = true;
    server.epoll.modify(connection.fd, .none, server.tokenOf(connection)) catch {};
}

/// Returns whether a thread has to read the next bytes of a file first.
fn readsFirst(server: *HttpServer, connection: *Connection, fd: i32, size: usize) bool {
    const warmer = server.warmer orelse return false;
    if (connection.warm_to != reading_for and connection.offset + size <= connection.warm_to)
        return false;
    if (warmer.options.isInMemory(fd, connection.offset, size)) return false;
    // A thread that still reads for an earlier answer of this connection is waited for.
    if (!connection.task.is_busy) {
        const wanted = @min(connection.left, warm_size);
        if (!warmer.start(&connection.task, fd, connection.offset, wanted)) return false;
        connection.warm_to = reading_for;
    }
    server.awaitDisk(connection);
    return true;
}

fn sizeOfNext(server: *HttpServer, connection: *Connection) usize {
    const left = connection.left;
    if (!connection.tag.isMeasured()) return @intCast(@min(left, send_chunk_size));
    if (left > watched_size) return @intCast(@min(left - watched_size, send_chunk_size));
    if (server.stamps and !connection.stamped) {
        connection.stamped = tcp_delivery.stampAcknowledgements(connection.fd, true);
        server.stamps = connection.stamped;
    }
    return @intCast(left);
}

fn beginDraining(server: *HttpServer, connection: *Connection, now_us: u64) void {
    connection.state = .draining;
    connection.deadline_us = now_us + stall_limit_us;
    connection.unacknowledged = std.math.maxInt(u32);
    // A stamp is reported in any case. Without stamps, the client's next request shows that it
    // has this answer.
    server.epoll.modify(
        connection.fd,
        if (connection.stamped) .none else .read,
        server.tokenOf(connection),
    ) catch return server.close(connection);
    server.drain(connection, now_us, .begin);
}

/// Continues when everything is acknowledged.
fn drain(
    server: *HttpServer,
    connection: *Connection,
    now_us: u64,
    by: enum { begin, event, tick },
) void {
    assert(connection.state == .draining);
    // Before looking at what is not acknowledged: a stamp that arrives in between wakes the
    // loop.
    if (tcp_delivery.takeStamp(connection.fd)) |at_us| connection.acknowledged_us = at_us;
    const left = tcp_delivery.unacknowledged(connection.fd) orelse return server.close(connection);
    if (left > 0) {
        if (tcp_delivery.isBroken(connection.fd)) return server.endReset(connection, left);
        if (left < connection.unacknowledged) {
            connection.deadline_us = now_us + stall_limit_us;
            const at_us = tcp_delivery.lastAcknowledgedUs(connection.fd);
            if (by != .begin) server.report(connection, .{ .traffic = .{}, .at_us = at_us });
        }
        connection.unacknowledged = left;
        // It sent its next request early and is checked once a second.
        if (!connection.stamped and by != .tick)
            server.epoll.modify(connection.fd, .none, server.tokenOf(connection)) catch
                return server.close(connection);
        return;
    }
    const at_us = connection.acknowledged_us orelse
        if (connection.stamped and
            by != .tick) return else tcp_delivery.lastAcknowledgedUs(connection.fd);
    if (connection.stamped) _ = tcp_delivery.stampAcknowledgements(connection.fd, false);
    connection.stamped = false;
    server.report(connection, .{ .traffic = .{}, .finished = true, .at_us = at_us });
    server.endAnswer(connection, now_us);
}

/// OVMF's HTTP boot client resets its connection when it starts what it has loaded, sometimes
/// before it has acknowledged the last segment (EDK II of Debian 12, November 2026). A client
/// that resets while more is missing has not got the answer.
fn endReset(server: *HttpServer, connection: *Connection, left: u32) void {
    const has_all = tcp_delivery.mayHaveAll(connection.fd, left);
    const at_us = tcp_delivery.lastAcknowledgedUs(connection.fd);
    server.report(connection, .{ .traffic = .{}, .finished = has_all, .at_us = at_us });
    server.close(connection);
}

/// iPXE under UEFI may start the kernel without acknowledging the last packets (iPXE 1.0.0+ of
/// Debian 12 under OVMF, November 2026). If everything was sent, that is what has happened: the
/// end is the last acknowledgement. If it is not, the loader requests it again, because the
/// connection is gone.
fn giveUpDraining(server: *HttpServer, connection: *Connection) void {
    if (tcp_delivery.isAllSent(connection.fd)) {
        const at_us = tcp_delivery.lastAcknowledgedUs(connection.fd);
        server.report(connection, .{ .traffic = .{}, .finished = true, .at_us = at_us });
    } else {
        server.ignored.add(.http_slow);
    }
    server.close(connection);
}

/// Starts the next request, or closes the connection.
fn endAnswer(server: *HttpServer, connection: *Connection, now_us: u64) void {
    if (!connection.keep_alive) return server.close(connection);
    connection.state = .reading;
    connection.deadline_us = now_us + head_limit_us;
    server.epoll.modify(connection.fd, .read, server.tokenOf(connection)) catch
        return server.close(connection);
    // The next request may already be here.
    if (connection.input_size > 0) server.parse(connection, now_us);
}

fn report(server: *HttpServer, connection: *Connection, step: Progress) void {
    if (connection.tag.boot == null) return;
    var whole = step;
    whole.body_size = connection.body_size;
    if (whole.at_us == 0) whole.at_us = sys.monotonicUs();
    const now = tcp_delivery.counters(connection.fd) orelse connection.counters;
    whole.traffic.packets_in = now.segments_in -| connection.counters.segments_in;
    whole.traffic.packets_out = now.segments_out -| connection.counters.segments_out;
    whole.traffic.retries = now.retransmitted -| connection.counters.retransmitted;
    connection.counters = now;
    server.handler.progress(server.handler.context, connection.tag, whole);
}

fn close(server: *HttpServer, connection: *Connection) void {
    assert(connection.state != .free);
    releaseBody(connection);
    sys.close(connection.fd);
    connection.fd = -1;
    connection.stamped = false;
    connection.awaits_disk = false;
    connection.awaited_record = null;
    connection.state = .free;
    server.connections.peers[server.connections.indexOf(connection)] = .zero;
}

fn tokenOf(server: *const HttpServer, connection: *const Connection) u64 {
    return server.token_base + server.connections.indexOf(connection);
}

/// Duplicates the file descriptor for the answer: the version may be closed while a slow client
/// still reads it.
fn heldBody(body: Body) ?Body {
    switch (body) {
        .none, .text, .memory, .disk => return body,
        .file => |file| {
            const rc = linux.fcntl(file.fd, linux.F.DUPFD_CLOEXEC, 0);
            const fd: i32 = @intCast(sys.check(rc) catch return null);
            return .{ .file = .{ .fd = fd, .size = file.size } };
        },
    }
}

fn releaseBody(connection: *Connection) void {
    switch (connection.body) {
        .none, .text, .memory, .disk => {},
        .file => |file| sys.close(file.fd),
    }
    connection.body = .none;
}

fn sendBytes(fd: i32, bytes: []const u8, offset: u64, size: usize) sys.Error!usize {
    const rest = bytes[@intCast(offset)..][0..size];
    return sys.check(linux.sendto(fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL, null, 0));
}
