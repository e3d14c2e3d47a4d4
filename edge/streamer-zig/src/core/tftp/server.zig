//! The TFTP server (RFC 1350, 2347, 2348, 2349, 7440): which block goes to which peer, when it is
//! retransmitted, and when a transfer ends. Reads only, octet only, and only names that a catalogue
//! knows: a name is looked up, never opened. It must never carry file bytes, and never send more
//! than one packet to a peer that has not answered it, nor retransmit that one by itself: a spoofed
//! request causes one packet to its victim, not a transfer.
//!
//! An unanswered request stands in a ring of its own (`requests.zig`) and holds nothing else; only
//! its peer's first acknowledgement turns it into a transfer. So a flood of requests from spoofed
//! addresses takes nothing from transfers, and a device has as long to answer as the ring takes to
//! fill.
//!
//! How the host uses it, for each datagram:
//!
//!     act(server.receive(now_us, from, datagram, &reply_buffer));
//!     // and when server.nextDeadline() has passed:
//!     while (server.tick(now_us)) |step| act(step);
//!
//!     fn act(step: TftpServer.Step) void {   // and last: release(step.released)
//!         for (step.events.constSlice()) |event| report(event);
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
const boot_handle = @import("../boot/handle.zig");
const tftp_reply = @import("reply.zig");
const tftp_step = @import("event.zig");
const Session = @import("session.zig");
const TftpRequests = @import("requests.zig");
const TftpSources = @import("sources.zig");
const TftpWindow = @import("window.zig");
const Endpoint = base.Endpoint;

pub const TftpServer = @This();

pub const Catalogue = tftp_step.Catalogue;
pub const FileQuery = tftp_step.FileQuery;
pub const File = tftp_step.File;
pub const Transfer = tftp_step.Transfer;
pub const Failure = tftp_step.Failure;
pub const Refusal = tftp_step.Refusal;
pub const Event = tftp_step.Event;
pub const Blocks = tftp_step.Blocks;
pub const Send = tftp_step.Send;
pub const Step = tftp_step.Step;

catalogue: Catalogue,
/// Transfers whose peers have answered.
sessions: []Session,
/// When each of them is due; `never` where a slot is free.
deadlines_us: []u64,
index: base.EndpointIndex,
session_count: u32 = 0,
requests: TftpRequests,
sources: TftpSources,
options: Options,
ignored: base.IgnoredCounters = .{},

pub const ReplyBuffer = tftp_reply.Buffer;

/// RFC 7440 allows 65535; more than 64 gains nothing and makes a loss more expensive.
pub const windowsize_max = 64;
const never = std.math.maxInt(u64);

pub const Options = struct {
    sessions_max: u16 = 1024,
    /// Devices behind one address; simulated devices on loopback share theirs.
    sessions_per_source_max: u32 = 256,
    /// Capacity for unanswered requests. A peer whose first ACK was lost repeats it after a second,
    /// and then after two more, and must still find its request: with 20,000 spoofed requests per
    /// second each stays for 3.2 s.
    requests_max: u16 = 65_000,
    requests_per_source_max: u16 = 1024,
    /// 1500 - 20 (IP) - 8 (UDP) - 4 (TFTP): larger blocks would cause IP fragments.
    blksize_max: u16 = 1468,
    /// Unknown to peers.
    hash_seed: u64 = 0,
};

/// Allocates its tables, and nothing later.
pub fn init(
    gpa: std.mem.Allocator,
    catalogue: Catalogue,
    options: Options,
) error{OutOfMemory}!TftpServer {
    assert(options.sessions_max > 0);
    assert(options.sessions_per_source_max > 0);
    assert(options.requests_max > 0);
    assert(options.blksize_max >= tftp.blksize_default);
    const sessions =
        try base.allocZeroed(gpa, Session, .{ .is_taken = false }, options.sessions_max);
    errdefer base.freeZeroed(gpa, Session, sessions);
    const deadlines_us = try gpa.alloc(u64, options.sessions_max);
    errdefer gpa.free(deadlines_us);
    @memset(deadlines_us, never);
    var index: base.EndpointIndex = try .init(gpa, options.sessions_max, options.hash_seed);
    errdefer index.deinit(gpa);
    var requests: TftpRequests = try .init(gpa, options.requests_max, options.hash_seed);
    errdefer requests.deinit(gpa);
    return .{
        .catalogue = catalogue,
        .sessions = sessions,
        .deadlines_us = deadlines_us,
        .index = index,
        .requests = requests,
        .sources = try .init(gpa, options.hash_seed),
        .options = options,
    };
}

pub fn deinit(server: *TftpServer, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, Session, server.sessions);
    gpa.free(server.deadlines_us);
    server.index.deinit(gpa);
    server.requests.deinit(gpa);
    server.sources.deinit(gpa);
    server.* = undefined;
}

/// Takes one datagram. `now_us` is of the host's monotonic clock.
pub fn receive(
    server: *TftpServer,
    now_us: u64,
    from: Endpoint,
    datagram: []const u8,
    reply: *ReplyBuffer,
) Step {
    if (from.port == 0 or !from.ip.isUnicast()) return server.ignore(.tftp_bad_packet);
    const packet = tftp.parse(datagram) catch |refusal|
        return server.ignore(tftp.ignoreReason(refusal));
    switch (packet) {
        .rrq => |request| return server.receiveRequest(now_us, from, &request, datagram.len, reply),
        .wrq => {
            var step = server.ignore(.tftp_not_a_read);
            const text = "this server is read-only";
            step.send = tftp_reply.refusal(from, .access_violation, text, datagram.len, reply);
            return step;
        },
        .ack => |block| {
            if (server.find(from)) |session| return server.receiveAck(now_us, session, block);
            const pending = server.requests.find(from) orelse
                return server.ignore(.tftp_unknown_transfer);
            return server.receiveFirstAck(now_us, pending, block, reply);
        },
        .err => |failure| {
            if (server.find(from)) |session| return server.receiveError(session, &failure);
            const pending = server.requests.find(from) orelse
                return server.ignore(.tftp_unknown_transfer);
            return server.receiveFirstError(pending, &failure);
        },
        .data, .oack => return server.ignore(.tftp_bad_packet),
    }
}

/// Returns the next step that is due, or null. Call it until it returns null.
pub fn tick(server: *TftpServer, now_us: u64) ?Step {
    if (server.requests.deadlineUs()) |deadline_us| if (deadline_us <= now_us) {
        var step: Step = .{};
        assert(server.requests.count > 0);
        server.dropRequest(server.requests.first().?, .timeout, &step);
        return step;
    };
    // Called in every turn of a loop that has other work.
    if (server.session_count == 0) return null;
    for (server.deadlines_us, server.sessions) |deadline_us, *session| {
        if (deadline_us > now_us) continue;
        return server.expire(now_us, session);
    }
    return null;
}

/// Returns when `tick` has something to do; null while no transfer is in progress.
pub fn nextDeadline(server: *const TftpServer) ?u64 {
    var earliest_us: u64 = server.requests.deadlineUs() orelse never;
    if (server.session_count > 0) for (server.deadlines_us) |deadline_us| {
        earliest_us = @min(earliest_us, deadline_us);
    };
    return if (earliest_us == never) null else earliest_us;
}

/// The caller could not read the file: the peer gets an ERROR, the transfer has failed.
pub fn abort(server: *TftpServer, peer: Endpoint, reply: *ReplyBuffer) Step {
    var step: Step = .{};
    if (server.find(peer)) |session|
        server.fail(session, .aborted, &step)
    else if (server.requests.find(peer)) |pending|
        server.dropRequest(pending, .aborted, &step)
    else
        return step;
    step.send = tftp_reply.refusal(peer, .not_defined, "cannot read the file", reply.len, reply);
    return step;
}

/// Returns whether the peer still waits for these blocks of its transfer: the caller may have read
/// them in the meantime.
pub fn awaits(server: *TftpServer, blocks: *const Blocks) bool {
    const session = server.find(blocks.to) orelse return false;
    const transfer = &session.transfer;
    const window = &session.window;
    return transfer.slot == blocks.slot and transfer.file.source == blocks.source and
        window.file_size == blocks.file_size and window.blksize == blocks.blksize and
        window.first_unacked == blocks.first and blocks.count <= window.in_flight;
}

fn receiveRequest(
    server: *TftpServer,
    now_us: u64,
    from: Endpoint,
    request: *const tftp.Request,
    request_size: usize,
    reply: *ReplyBuffer,
) Step {
    const source = server.sources.of(from.ip);
    if (!server.sources.chargeRequest(now_us, source)) return server.ignore(.tftp_source_limit);
    const path: boot_handle.BootPath = .parse(request.file_name);
    if (request.mode != .octet) {
        var step = server.refuse(.tftp_not_octet, from, path, .not_octet);
        const text = "only mode octet";
        step.send = tftp_reply.refusal(from, .illegal_operation, text, request_size, reply);
        return step;
    }
    var step: Step = .{};
    if (server.find(from)) |session| {
        if (session.isDuplicate(now_us, path, &request.options))
            return server.ignore(.tftp_repeated_request);
        server.fail(session, .superseded, &step);
    }
    const file = server.open(from, path, false) catch |refusal| switch (refusal) {
        error.Busy => {
            step.ignored = server.ignore(.tftp_busy).ignored;
            return step;
        },
        error.NotFound => {
            const refused = server.refuse(.tftp_file_not_found, from, path, .not_found);
            step.ignored = refused.ignored;
            step.events.appendAssumeCapacity(refused.events.constSlice()[0]);
            step.send =
                tftp_reply.refusal(from, .file_not_found, "file not found", request_size, reply);
            return step;
        },
    };
    // For this packet only: an unanswered request holds nothing.
    step.released.appendAssumeCapacity(file.source);
    server.answer(now_us, .{ .peer = from, .handle = path.handle, .file = file }, .{
        .name = path.name,
        .options = &request.options,
        .size = request_size,
    }, reply, &step);
    return step;
}

const RequestedFile = struct { name: []const u8, options: *const tftp.Options, size: usize };

/// Returns the first packet: an OACK if options were requested, else block 1.
fn answer(
    server: *TftpServer,
    now_us: u64,
    transfer: Transfer,
    requested: RequestedFile,
    reply: *ReplyBuffer,
    step: *Step,
) void {
    const source = server.sources.of(transfer.peer.ip);
    const window = server.windowFor(requested.options, transfer.file.size);
    const send: Send = if (requested.options.isEmpty()) .{ .blocks = .{
        .to = transfer.peer,
        .source = transfer.file.source,
        .file_size = transfer.file.size,
        .blksize = window.blksize,
        .first = 1,
        .count = 1,
    } } else .{ .packet = tftp_reply.oack(&transfer, requested.options, &window, reply) };
    const excess: u32 = @intCast(tftp_reply.sizeOf(&send) -| requested.size);
    if (!server.sources.chargeExcess(now_us, source, excess)) {
        step.ignored = server.ignore(.tftp_source_limit).ignored;
        return;
    }
    step.send = send;
    if (server.requests.find(transfer.peer)) |pending| {
        if (pending.isRetransmission(&transfer, requested.name, requested.options)) {
            pending.is_retransmitted = true;
            return;
        }
        server.dropRequest(pending, .superseded, step);
    }
    if (server.sources.pendingOf(source) >= server.options.requests_per_source_max) {
        if (server.requests.oldestOf(source)) |oldest| server.dropRequest(oldest, .evicted, step);
    }
    if (server.requests.nextVictim()) |oldest| server.dropRequest(oldest, .evicted, step);
    var pending: TftpRequests.Pending = .{
        .peer = transfer.peer,
        .handle = transfer.handle,
        .options = requested.options.*,
        .file_size = transfer.file.size,
        .requested_at_us = now_us,
        .name_size = @intCast(requested.name.len),
    };
    @memcpy(pending.name_buffer[0..requested.name.len], requested.name);
    server.requests.add(pending, source);
    server.sources.addPending(source);
    step.events.appendAssumeCapacity(.{ .requested = transfer });
    assert(server.sources.pendingOf(source) <= server.options.requests_per_source_max);
}

fn windowFor(server: *const TftpServer, requested: *const tftp.Options, file_size: u64) TftpWindow {
    return .{
        .file_size = file_size,
        .blksize = @min(requested.blksize orelse tftp.blksize_default, server.options.blksize_max),
        .windowsize = @min(requested.windowsize orelse 1, windowsize_max),
        .agreed_timeout_us = if (requested.timeout_s) |timeout_s| @as(u64, timeout_s) *
            std.time.us_per_s else null,
    };
}

/// The peer has answered: ACK 0 to an OACK, or the ACK of block 1.
fn receiveFirstAck(
    server: *TftpServer,
    now_us: u64,
    pending: *TftpRequests.Pending,
    block: u16,
    reply: *ReplyBuffer,
) Step {
    const is_first_block = pending.options.isEmpty();
    if (block != @intFromBool(is_first_block)) return server.ignore(.tftp_stale_ack);
    const known = pending.*;
    assert(known.is_taken);
    const source = server.sources.of(known.peer.ip);
    if (is_first_block) server.sources.refund(source, tftp.data_header_size + tftp.blksize_default);
    var step: Step = .{};
    const slot = server.claim(known.peer, &step) catch |refusal| return server.ignore(
        switch (refusal) {
            // The request stays: the peer's next acknowledgement may find capacity.
            error.SourceLimit => .tftp_source_limit,
            error.Busy => .tftp_busy,
        },
    );
    const path: boot_handle.BootPath = .{ .handle = known.handle, .name = known.name() };
    const file = server.open(known.peer, path, true) catch |refusal| switch (refusal) {
        error.Busy => {
            step.ignored = server.ignore(.tftp_busy).ignored;
            return step;
        },
        error.NotFound => return server.fileChanged(pending, reply, &step),
    };
    if (file.size != known.file_size) {
        step.released.appendAssumeCapacity(file.source);
        return server.fileChanged(pending, reply, &step);
    }
    server.forget(pending);
    const session = &server.sessions[slot];
    session.* = .{
        .is_taken = true,
        .transfer = .{ .peer = known.peer, .handle = known.handle, .file = file, .slot = slot },
        .window = server.windowFor(&known.options, file.size),
        .requested = known.options,
        .name_size = known.name_size,
        .name_buffer = known.name_buffer,
        .started_at_us = now_us,
    };
    server.index.put(known.peer, slot);
    assert(server.session_count < server.sessions.len);
    server.session_count += 1;
    step.events.appendAssumeCapacity(.{ .started = session.transfer });
    const window = &session.window;
    if (!known.is_retransmitted) window.onSample(now_us -| known.requested_at_us);
    if (is_first_block) {
        window.first_unacked = 2;
        if (window.first_unacked > window.lastBlock()) {
            server.finish(session, true, &step);
            return step;
        }
    }
    window.start(now_us);
    server.sendWindow(session, &step);
    return step;
}

/// The announced file no longer exists, or has another size.
fn fileChanged(
    server: *TftpServer,
    pending: *TftpRequests.Pending,
    reply: *ReplyBuffer,
    step: *Step,
) Step {
    assert(pending.is_taken);
    const peer = pending.peer;
    server.dropRequest(pending, .aborted, step);
    const text = "the file has changed, ask again";
    step.send = tftp_reply.refusal(peer, .not_defined, text, reply.len, reply);
    return step.*;
}

fn receiveAck(server: *TftpServer, now_us: u64, session: *Session, block: u16) Step {
    assert(session.is_taken);
    switch (session.window.acknowledge(now_us, block)) {
        .stale => return server.ignore(.tftp_stale_ack),
        .send => {
            var step: Step = .{};
            server.sendWindow(session, &step);
            return step;
        },
        .finished => {
            var step: Step = .{};
            server.finish(session, true, &step);
            return step;
        },
    }
}

fn receiveError(server: *TftpServer, session: *Session, failure: *const tftp.Error) Step {
    assert(session.is_taken);
    var step: Step = .{};
    server.fail(session, peerError(failure), &step);
    return step;
}

fn receiveFirstError(
    server: *TftpServer,
    pending: *TftpRequests.Pending,
    failure: *const tftp.Error,
) Step {
    assert(pending.is_taken);
    var step: Step = .{};
    if (!pending.options.isEmpty() and failure.code == .option_refused) {
        step.events.appendAssumeCapacity(.{ .size_queried = .{
            .peer = pending.peer,
            .handle = pending.handle,
        } });
        server.forget(pending);
    } else server.dropRequest(pending, peerError(failure), &step);
    return step;
}

fn peerError(failure: *const tftp.Error) Failure {
    return .{ .peer_error = .{ .code = failure.code, .text = .init(failure.text) } };
}

fn expire(server: *TftpServer, now_us: u64, session: *Session) Step {
    assert(session.is_taken);
    assert(server.session_count > 0);
    var step: Step = .{};
    const window = &session.window;
    if (window.expire(now_us))
        server.sendWindow(session, &step)
    else if (window.first_unacked == window.lastBlock())
        server.finish(session, false, &step)
    else
        server.fail(session, .timeout, &step);
    return step;
}

fn sendWindow(server: *TftpServer, session: *Session, step: *Step) void {
    assert(session.is_taken);
    const window = &session.window;
    assert(window.in_flight > 0);
    server.deadlines_us[session.transfer.slot] = window.deadlineUs();
    step.send = .{ .blocks = .{
        .to = session.transfer.peer,
        .slot = session.transfer.slot,
        .source = session.transfer.file.source,
        .file_size = session.transfer.file.size,
        .blksize = window.blksize,
        .first = window.first_unacked,
        .count = window.in_flight,
    } };
}

fn finish(server: *TftpServer, session: *Session, last_ack_seen: bool, step: *Step) void {
    assert(session.window.first_unacked >= session.window.lastBlock());
    step.events.appendAssumeCapacity(.{ .finished = .{
        .transfer = session.transfer,
        .bytes = session.transfer.file.size,
        .retries = session.window.retries,
        .last_ack_seen = last_ack_seen,
    } });
    server.free(session, step);
}

fn fail(server: *TftpServer, session: *Session, why: Failure, step: *Step) void {
    assert(session.is_taken);
    step.events.appendAssumeCapacity(.{ .failed = .{
        .transfer = session.transfer,
        .bytes = session.window.bytesAcked(),
        .retries = session.window.retries,
        .why = why,
    } });
    server.free(session, step);
}

fn free(server: *TftpServer, session: *Session, step: *Step) void {
    assert(session.is_taken);
    step.released.appendAssumeCapacity(session.transfer.file.source);
    server.index.remove(session.transfer.peer);
    server.deadlines_us[session.transfer.slot] = never;
    server.session_count -= 1;
    session.is_taken = false;
}

/// Ends a request without a transfer.
fn dropRequest(
    server: *TftpServer,
    pending: *TftpRequests.Pending,
    why: Failure,
    step: *Step,
) void {
    step.events.appendAssumeCapacity(.{ .unanswered = .{
        .peer = pending.peer,
        .handle = pending.handle,
        .why = why,
    } });
    server.forget(pending);
}

fn forget(server: *TftpServer, pending: *TftpRequests.Pending) void {
    server.sources.removePending(server.requests.remove(pending));
}

/// Claims a slot for a new transfer. If all are taken, the transfer that has acknowledged nothing
/// for longest, and was retransmitted to already, is evicted.
fn claim(server: *TftpServer, peer: Endpoint, step: *Step) error{ SourceLimit, Busy }!u16 {
    var free_slot: ?u16 = null;
    var stalled: ?*Session = null;
    var stalled_of_source: ?*Session = null;
    var source_count: u32 = 0;
    for (server.sessions, 0..) |*session, slot| {
        if (!session.is_taken) {
            if (free_slot == null) free_slot = @intCast(slot);
            continue;
        }
        const is_of_source = session.transfer.peer.ip.eql(peer.ip);
        source_count += @intFromBool(is_of_source);
        if (session.window.retry_count == 0) continue;
        stalled = quieter(stalled, session);
        if (is_of_source) stalled_of_source = quieter(stalled_of_source, session);
    }
    const is_limited = source_count >= server.options.sessions_per_source_max;
    if (!is_limited) if (free_slot) |slot| return slot;
    const evicted = if (is_limited) stalled_of_source orelse
        return error.SourceLimit else stalled orelse return error.Busy;
    const slot = evicted.transfer.slot;
    server.fail(evicted, .evicted, step);
    return slot;
}

fn quieter(known: ?*Session, session: *Session) *Session {
    const other = known orelse return session;
    return if (session.window.progress_at_us < other.window.progress_at_us) session else other;
}

fn find(server: *TftpServer, peer: Endpoint) ?*Session {
    return &server.sessions[server.index.get(peer) orelse return null];
}

fn open(
    server: *const TftpServer,
    peer: Endpoint,
    path: boot_handle.BootPath,
    is_confirmed: bool,
) Catalogue.OpenError!File {
    if (path.name.len > TftpRequests.name_size_max) return error.NotFound;
    const query: FileQuery =
        .{ .name = path.name, .handle = path.handle, .peer = peer, .is_confirmed = is_confirmed };
    return server.catalogue.open(server.catalogue.context, &query);
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

fn ignore(server: *TftpServer, reason: base.IgnoreReason) Step {
    server.ignored.add(reason);
    return .{ .ignored = reason };
}
