//! The server's side of TFTP (RFC 1350, 2347, 2348, 2349, 7440): which block goes to whom, when
//! again, and when it is over. Reads only, octet only, and only names of a published table: a name
//! is compared, never opened. It must never carry file bytes, and never send more than one packet
//! to a peer that has not answered it, nor that one twice by itself: a spoofed request brings one
//! packet to its victim, not a transfer.
//!
//! How the host uses it, for each datagram:
//!
//!     act(server.receive(now_us, from, datagram, &reply_buffer));
//!     // and when server.nextDeadline() has passed:
//!     while (server.tick(now_us)) |step| act(step);
//!
//!     fn act(step: TftpServer.Step) void {   // and last: release(step.released)
//!         for (step.events.constSlice()) |event| tell(event);
//!         switch (step.send) {
//!             .nothing => {},
//!             .packet => |packet| send(packet.to, packet.bytes),
//!             .blocks => |blocks| {   // for each: header, then `size` bytes from `offset`
//!                 var iterator = blocks.iterate();
//!                 while (iterator.next()) |block| ...   // on a read error: act(server.abort(...))
//!             },
//!         }
//!     }

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const tftp = @import("wire").tftp;
const boot_handle = @import("boot_handle.zig");
const tftp_step = @import("tftp_step.zig");
const Endpoint = base.Endpoint;

pub const TftpServer = @This();

pub const Catalogue = tftp_step.Catalogue;
pub const Question = tftp_step.Question;
pub const File = tftp_step.File;
pub const Transfer = tftp_step.Transfer;
pub const Failure = tftp_step.Failure;
pub const Refusal = tftp_step.Refusal;
pub const Event = tftp_step.Event;
pub const Blocks = tftp_step.Blocks;
pub const Send = tftp_step.Send;
pub const Step = tftp_step.Step;

catalogue: Catalogue,
sessions: []Session,
options: Options,
ignored: base.IgnoredCounters = .{},

/// Room for every packet but DATA: an OACK of all options, or an ERROR.
pub const ReplyBuffer = [160]u8;

/// RFC 7440 allows 65535; beyond 64 nothing is won and a loss costs more.
pub const windowsize_max = 64;
/// A peer that has not answered the first packet is forgotten; its own next request starts again.
const unanswered_hold_us = 10 * std.time.us_per_s;
const retry_timeout_min_us = 500 * std.time.us_per_ms;
const retry_timeout_max_us = 4 * std.time.us_per_s;
/// Longer names are not published.
pub const name_size_max = 128;
/// Times that one window is sent again before the transfer has failed.
const retries_max = 6;

pub const Options = struct {
    sessions_max: u32 = 1024,
    /// Devices behind one address; simulated devices on loopback share theirs.
    sessions_per_source_max: u32 = 256,
    /// 1500 - 20 (IP) - 8 (UDP) - 4 (TFTP): larger blocks would be cut into IP fragments.
    blksize_max: u16 = 1468,
};

const State = enum {
    free,
    /// The OACK is out, the peer has not answered.
    offered,
    /// Block 1 is out without an OACK, the peer has not answered.
    first_block,
    /// The peer has answered.
    flowing,
};

const Session = struct {
    state: State = .free,
    transfer: Transfer = undefined,
    /// As asked, to know a repeated request.
    name: base.BoundedArray(u8, name_size_max) = .empty,
    asked: tftp.Options = .{},
    blksize: u16 = tftp.blksize_default,
    windowsize: u16 = 1,
    retry_timeout_us: u64 = retry_timeout_min_us,
    /// The peer named the timeout (RFC 2349): it is not doubled.
    is_timeout_agreed: bool = false,
    /// The first block that is not acknowledged, and how many from it are out.
    first_unacked: u64 = 1,
    in_flight: u16 = 0,
    /// The window was already sent again for a repeated ACK; the next time only the clock does it.
    is_repeat_answered: bool = false,
    retry_count: u32 = 0,
    retries: u64 = 0,
    started_at_us: u64 = 0,
    deadline_us: u64 = 0,

    /// The last block is shorter than the others, so that a multiple of them ends with an empty
    /// one.
    fn lastBlock(session: *const Session) u64 {
        return session.transfer.file.size / session.blksize + 1;
    }

    fn bytesAcked(session: *const Session) u64 {
        return @min((session.first_unacked - 1) * session.blksize, session.transfer.file.size);
    }
};

/// Allocates the table of sessions, and nothing later.
pub fn init(
    gpa: std.mem.Allocator,
    catalogue: Catalogue,
    options: Options,
) error{OutOfMemory}!TftpServer {
    assert(options.sessions_max > 0);
    assert(options.sessions_per_source_max > 0);
    assert(options.blksize_max >= tftp.blksize_default);
    const sessions = try gpa.alloc(Session, options.sessions_max);
    @memset(sessions, .{});
    return .{ .catalogue = catalogue, .sessions = sessions, .options = options };
}

pub fn deinit(server: *TftpServer, gpa: std.mem.Allocator) void {
    gpa.free(server.sessions);
    server.* = undefined;
}

/// One datagram. `now_us` is of the host's monotonic clock.
pub fn receive(
    server: *TftpServer,
    now_us: u64,
    from: Endpoint,
    datagram: []const u8,
    reply: *ReplyBuffer,
) Step {
    const packet = tftp.parse(datagram) catch |refusal|
        return server.ignore(tftp.ignoreReason(refusal));
    switch (packet) {
        .rrq => |request| return server.receiveRequest(now_us, from, &request, datagram.len, reply),
        .wrq => {
            var step = server.ignore(.tftp_not_a_read);
            const text = "this server is read-only";
            step.send = errorPacket(from, .access_violation, text, datagram.len, reply);
            return step;
        },
        .ack => |block| {
            const session = server.find(from) orelse return server.ignore(.tftp_unknown_transfer);
            return server.receiveAck(now_us, session, block);
        },
        .err => |failure| {
            const session = server.find(from) orelse return server.ignore(.tftp_unknown_transfer);
            return receiveError(session, &failure);
        },
        .data, .oack => return server.ignore(.tftp_bad_packet),
    }
}

/// The next thing that time demands, or null. Call it until it is null.
pub fn tick(server: *TftpServer, now_us: u64) ?Step {
    for (server.sessions) |*session| {
        if (session.state == .free) continue;
        if (session.deadline_us > now_us) continue;
        return expire(now_us, session);
    }
    return null;
}

/// When `tick` has something to do; null while there are no transfers.
pub fn nextDeadline(server: *const TftpServer) ?u64 {
    var earliest: ?u64 = null;
    for (server.sessions) |*session| {
        if (session.state == .free) continue;
        earliest = @min(earliest orelse session.deadline_us, session.deadline_us);
    }
    return earliest;
}

pub fn sessionCount(server: *const TftpServer) u32 {
    var count: u32 = 0;
    for (server.sessions) |*session| count += @intFromBool(session.state != .free);
    return count;
}

/// The caller could not read the file: the peer is told, the transfer has failed.
pub fn abort(server: *TftpServer, peer: Endpoint, reply: *ReplyBuffer) Step {
    var step: Step = .{};
    const session = server.find(peer) orelse return step;
    fail(session, .aborted, &step);
    step.send = errorPacket(peer, .not_defined, "cannot read the file", reply.len, reply);
    return step;
}

fn receiveRequest(
    server: *TftpServer,
    now_us: u64,
    from: Endpoint,
    request: *const tftp.Request,
    request_size: usize,
    reply: *ReplyBuffer,
) Step {
    const path: boot_handle.BootPath = .parse(request.file_name);
    if (request.mode != .octet) {
        var step = server.refuse(.tftp_not_octet, from, path, .not_octet);
        step.send = errorPacket(from, .illegal_operation, "only mode octet", request_size, reply);
        return step;
    }
    var step: Step = .{};
    const current = server.find(from);
    if (current) |session| if (isRepeated(session, path, request)) {
        begin(now_us, session, &step, reply);
        return step;
    };
    const file = server.open(from, path) catch |refusal| switch (refusal) {
        error.Busy => return server.ignore(.tftp_busy),
        error.NotFound => {
            var refused = server.refuse(.tftp_file_not_found, from, path, .not_found);
            refused.send = errorPacket(from, .file_not_found, "file not found", request_size, reply);
            return refused;
        },
    };
    if (current) |session| fail(session, .superseded, &step);
    const session = server.claim(from, &step) catch |refusal| {
        step.released.appendAssumeCapacity(file.source);
        const refused = server.ignore(switch (refusal) {
            error.SourceLimit => .tftp_source_limit,
            error.Busy => .tftp_busy,
        });
        step.ignored = refused.ignored;
        return step;
    };
    session.* = .{
        .transfer = .{ .peer = from, .handle = path.handle, .file = file },
        .asked = request.options,
        .started_at_us = now_us,
    };
    session.name = @TypeOf(session.name).fromSlice(path.name) catch unreachable;
    step.events.appendAssumeCapacity(.{ .began = session.transfer });
    server.agree(session, &request.options);
    begin(now_us, session, &step, reply);
    return step;
}

/// A peer that heard nothing sends its request again, from the same port.
fn isRepeated(
    session: *const Session,
    path: boot_handle.BootPath,
    request: *const tftp.Request,
) bool {
    if (session.state == .flowing) return false;
    if (!std.mem.eql(u8, session.name.constSlice(), path.name)) return false;
    if (!std.meta.eql(session.transfer.handle, path.handle)) return false;
    return std.meta.eql(session.asked, request.options);
}

fn agree(server: *const TftpServer, session: *Session, asked: *const tftp.Options) void {
    if (asked.blksize) |blksize| session.blksize = @min(blksize, server.options.blksize_max);
    if (asked.windowsize) |windowsize| session.windowsize = @min(windowsize, windowsize_max);
    if (asked.timeout_s) |timeout_s| {
        session.retry_timeout_us = @as(u64, timeout_s) * std.time.us_per_s;
        session.is_timeout_agreed = true;
    }
}

/// The first packet: an OACK where options were asked for, else block 1.
fn begin(now_us: u64, session: *Session, step: *Step, reply: *ReplyBuffer) void {
    const asked = &session.asked;
    session.deadline_us = now_us + unanswered_hold_us;
    if (asked.isEmpty()) {
        session.state = .first_block;
        session.in_flight = 1;
        step.send = .{ .blocks = blocksOf(session) };
        return;
    }
    session.state = .offered;
    const oack: tftp.Packet = .{ .oack = .{
        .blksize = if (asked.blksize != null) session.blksize else null,
        .tsize = if (asked.tsize != null) session.transfer.file.size else null,
        .timeout_s = asked.timeout_s,
        .windowsize = if (asked.windowsize != null) session.windowsize else null,
    } };
    const bytes = tftp.emit(&oack, reply) catch unreachable;
    step.send = .{ .packet = .{ .to = session.transfer.peer, .bytes = bytes } };
}

fn receiveAck(server: *TftpServer, now_us: u64, session: *Session, block: u16) Step {
    var step: Step = .{};
    switch (session.state) {
        .free => unreachable,
        .offered => {
            if (block != 0) return server.ignore(.tftp_stale_ack);
            session.state = .flowing;
            sendWindow(now_us, session, &step);
            return step;
        },
        .first_block, .flowing => {},
    }
    // Block numbers have 16 bits and start again at 0; a window is far smaller than that, so the
    // distance from the last acknowledged block says which one is meant.
    const last_acked: u16 = @truncate(session.first_unacked - 1);
    const acked_count = block -% last_acked;
    if (acked_count > session.in_flight) return server.ignore(.tftp_stale_ack);
    if (acked_count == 0) {
        // With a window the peer says so that it misses the first block (RFC 7440 section 4). In
        // lock-step it is a duplicate, and answering it would double every packet from here on (RFC
        // 1123 section 4.2.3.1, the sorcerer's apprentice).
        if (session.windowsize == 1) return server.ignore(.tftp_stale_ack);
        if (session.is_repeat_answered) return server.ignore(.tftp_stale_ack);
        session.is_repeat_answered = true;
        session.retries += session.in_flight;
        sendWindow(now_us, session, &step);
        return step;
    }
    session.retries += session.in_flight - acked_count;
    session.state = .flowing;
    session.first_unacked += acked_count;
    session.in_flight = 0;
    session.retry_count = 0;
    session.is_repeat_answered = false;
    if (session.first_unacked > session.lastBlock()) {
        finish(session, true, &step);
        return step;
    }
    sendWindow(now_us, session, &step);
    return step;
}

fn receiveError(session: *Session, failure: *const tftp.Error) Step {
    var step: Step = .{};
    if (session.state == .offered and failure.code == .option_refused) {
        step.events.appendAssumeCapacity(.{ .size_asked = session.transfer });
        step.released.appendAssumeCapacity(session.transfer.file.source);
        session.* = .{};
        return step;
    }
    const text: base.UntrustedText = .init(failure.text);
    fail(session, .{ .peer_error = .{ .code = failure.code, .text = text } }, &step);
    return step;
}

fn expire(now_us: u64, session: *Session) Step {
    var step: Step = .{};
    switch (session.state) {
        .free => unreachable,
        .offered, .first_block => fail(session, .timeout, &step),
        .flowing => if (session.retry_count < retries_max) {
            session.retry_count += 1;
            session.retries += session.in_flight;
            sendWindow(now_us, session, &step);
        } else if (session.first_unacked == session.lastBlock()) {
            finish(session, false, &step);
        } else fail(session, .timeout, &step),
    }
    return step;
}

fn sendWindow(now_us: u64, session: *Session, step: *Step) void {
    assert(session.state == .flowing);
    const left = session.lastBlock() - session.first_unacked + 1;
    assert(left > 0);
    session.in_flight = @intCast(@min(left, session.windowsize));
    session.deadline_us = now_us + retryTimeoutUs(session);
    step.send = .{ .blocks = blocksOf(session) };
}

fn retryTimeoutUs(session: *const Session) u64 {
    if (session.is_timeout_agreed) return session.retry_timeout_us;
    assert(session.retry_count <= retries_max);
    const doubled = session.retry_timeout_us << @intCast(session.retry_count);
    return @min(doubled, retry_timeout_max_us);
}

fn blocksOf(session: *const Session) Blocks {
    assert(session.in_flight > 0);
    return .{
        .to = session.transfer.peer,
        .source = session.transfer.file.source,
        .file_size = session.transfer.file.size,
        .blksize = session.blksize,
        .first = session.first_unacked,
        .count = session.in_flight,
    };
}

fn finish(session: *Session, last_ack_seen: bool, step: *Step) void {
    step.events.appendAssumeCapacity(.{ .finished = .{
        .transfer = session.transfer,
        .bytes = session.transfer.file.size,
        .retries = session.retries,
        .last_ack_seen = last_ack_seen,
    } });
    step.released.appendAssumeCapacity(session.transfer.file.source);
    session.* = .{};
}

fn fail(session: *Session, why: Failure, step: *Step) void {
    assert(session.state != .free);
    step.events.appendAssumeCapacity(.{ .failed = .{
        .transfer = session.transfer,
        .bytes = session.bytesAcked(),
        .retries = session.retries,
        .why = why,
    } });
    step.released.appendAssumeCapacity(session.transfer.file.source);
    session.* = .{};
}

/// A place for a new transfer. Where all are taken, the peer that has left its first packet
/// unanswered for longest loses its own: a flood of spoofed requests cannot lock devices out.
fn claim(
    server: *TftpServer,
    from: Endpoint,
    step: *Step,
) error{ SourceLimit, Busy }!*Session {
    var free: ?*Session = null;
    var oldest: ?*Session = null;
    var oldest_of_source: ?*Session = null;
    var source_count: u32 = 0;
    for (server.sessions) |*session| {
        if (session.state == .free) {
            if (free == null) free = session;
            continue;
        }
        const is_of_source = session.transfer.peer.ip.eql(from.ip);
        source_count += @intFromBool(is_of_source);
        if (session.state == .flowing) continue;
        oldest = older(oldest, session);
        if (is_of_source) oldest_of_source = older(oldest_of_source, session);
    }
    if (source_count >= server.options.sessions_per_source_max) {
        const evicted = oldest_of_source orelse return error.SourceLimit;
        fail(evicted, .evicted, step);
        return evicted;
    }
    if (free) |session| return session;
    const evicted = oldest orelse return error.Busy;
    fail(evicted, .evicted, step);
    return evicted;
}

fn older(known: ?*Session, session: *Session) *Session {
    const other = known orelse return session;
    return if (session.started_at_us < other.started_at_us) session else other;
}

fn find(server: *TftpServer, peer: Endpoint) ?*Session {
    for (server.sessions) |*session| {
        if (session.state == .free) continue;
        if (session.transfer.peer.eql(peer)) return session;
    }
    return null;
}

fn open(server: *const TftpServer, peer: Endpoint, path: boot_handle.BootPath) Catalogue.OpenError!File {
    if (path.name.len > name_size_max) return error.NotFound;
    const question: Question = .{ .name = path.name, .handle = path.handle, .peer = peer };
    return server.catalogue.open(server.catalogue.context, &question);
}

fn refuse(
    server: *TftpServer,
    reason: base.IgnoreReason,
    from: Endpoint,
    path: boot_handle.BootPath,
    why: Refusal,
) Step {
    var step = server.ignore(reason);
    step.events.appendAssumeCapacity(.{ .refused = .{
        .peer = from,
        .handle = path.handle,
        .name = .init(path.name),
        .why = why,
    } });
    return step;
}

/// An ERROR that is no longer than the packet it answers: its text is cut.
fn errorPacket(
    to: Endpoint,
    code: tftp.ErrorCode,
    text: []const u8,
    size_max: usize,
    reply: *ReplyBuffer,
) Send {
    const overhead = 5; // Opcode, code and the zero byte; the shortest request has 9 bytes.
    assert(size_max >= overhead);
    const size = @min(text.len, size_max - overhead);
    const packet: tftp.Packet = .{ .err = .{ .code = code, .text = text[0..size] } };
    const bytes = tftp.emit(&packet, reply) catch unreachable;
    return .{ .packet = .{ .to = to, .bytes = bytes } };
}

fn ignore(server: *TftpServer, reason: base.IgnoreReason) Step {
    server.ignored.add(reason);
    return .{ .ignored = reason };
}
