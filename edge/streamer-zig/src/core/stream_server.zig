//! The edge's side of the stream (packages/proto/STREAM.md): cookies, sessions, and which bytes of which version a READ
//! asks for. It never carries disk bytes, keeps nothing before a valid cookie, and never answers an address that has not
//! shown a cookie with more bytes than came from it. What a device does wrong is counted and ignored.
//!
//! How the host uses it, for each datagram:
//!
//!     switch (server.receive(now_us, from, datagram, &reply_buffer)) {
//!         .ignored => |reason| {},                         // counted in server.ignored already
//!         .reply => |packet| send(from, packet),
//!         .admit => |claim| {                              // a HELLO whose cookie is right: who is this boot?
//!             const admission = server.admit(now_us, claim, grantOf(claim.boot_id), &reply_buffer);
//!             if (admission.reply) |packet| send(from, packet);
//!             // .opened: keep claim.client_nonce with the boot (Grant.token_nonce), before sending
//!         },
//!         .read => |read| {                                // send each fragment, or server.storeError(read, ...)
//!             var fragments = read.fragments();
//!             while (fragments.next()) |fragment| ...
//!         },
//!         .write => |write| {},                            // carry it out, then server.finishWrite(write.ref, code, ...)
//!         .control => |control| {},                        // the same
//!         .taken => {},                                    // a part of a write
//!         .ready => |ready| send(from, ready.reply),
//!         .report => |report| send(from, server.acknowledgeReport(&report, order, &reply_buffer)),
//!     }
//!     // and about once a second: server.expire(now_us)

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const secrets = @import("stream_secrets.zig");
const step = @import("stream_server_step.zig");
const server_writes = @import("stream_server_writes.zig");
const write_steps = @import("stream_server_write_steps.zig");
const RequestWindow = @import("request_window.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const Uuid = base.Uuid;

pub const session_idle_us_default = 300 * std.time.us_per_s;
/// A session that has asked for nothing for so long gives its place to another one when the table is full; its device resumes.
pub const session_spare_us = 10 * std.time.us_per_s;
pub const read_size_buckets = step.read_size_buckets;
/// Room for every answer but DATA.
pub const ReplyBuffer = [wire.welcome_size]u8;

comptime {
    assert(wire.welcome_size >= wire.cookie_size);
    assert(wire.welcome_size >= wire.refuse_size);
    assert(wire.welcome_size >= wire.report_ack_size);
    assert(wire.welcome_size >= wire.writes.write_ack_size_max);
}

pub const StreamServer = @This();

sessions: []Session,
options: Options,
ignored: base.IgnoredCounters = .{},
/// Makes each session id different from all before.
session_serial: u64 = 0,
session_count: u16 = 0,
collector: server_writes.Collector,

pub const Keys = struct {
    /// Random, new in each process.
    cookie: [32]u8,
    /// Random, new in each process.
    session: [32]u8,
    /// Random, kept in the data directory: with it devices resume after a restart of the edge.
    resumption: [32]u8,
};

pub const Options = struct {
    keys: Keys,
    sessions_max: u16 = 1024,
    /// Bytes of payload in a DATA packet.
    fragment_size_max: u16 = wire.fragment_size_ethernet,
    read_size_max: u32 = wire.read_size_max,
    outstanding_bytes_max: u32 = 1 << 20,
    session_idle_us: u64 = session_idle_us_default,
    /// Writes of more than one fragment that can be put together at a time; 128 KiB each.
    write_places: u16 = 64,
};

/// A HELLO from an address that has shown a cookie. The caller looks the boot up and calls `admit` with the answer.
pub const Claim = struct {
    from: Endpoint,
    client_nonce: [16]u8,
    kind: wire.HelloKind,
    boot_id: Uuid,
    proof: [32]u8,
    fragment_size_max: u16,
};

/// What the caller knows about the boot of a claim.
pub const Grant = union(enum) {
    /// No such boot, or it is over.
    unknown,
    /// The boot is known and its version is not in the store.
    version_missing,
    /// What the device has written, or will write, cannot be used: REFUSE with this code.
    no_cache: wire.RefuseCode,
    boot: Boot,

    pub const Boot = struct {
        token: [16]u8,
        /// `client_nonce` of the `opened` admission of this boot, if there was one; kept over a restart of the edge.
        token_nonce: ?[16]u8,
        version_id: Uuid,
        /// Bytes; a multiple of 512, not 0.
        disk_size: u64,
        write_cache: step.WriteCache = .{},
    };
};

pub const Admission = struct {
    outcome: Outcome,
    /// WELCOME or REFUSE; null when the hello is ignored. Points into the reply buffer.
    reply: ?[]const u8,

    pub const Outcome = union(enum) {
        /// The token bought a session: the boot's first. The caller keeps the claim's nonce with the boot.
        opened,
        /// The same hello once more; it got the same answer.
        repeated,
        /// A known device after NO_SESSION, a change of address, silence, or a restart of the edge.
        resumed,
        token_refused,
        version_missing,
        no_cache: wire.RefuseCode,
        busy,
        /// A late copy of the hello that opened the boot's session before a resumption.
        stale,
    };
};

pub const Step = union(enum) {
    ignored: base.IgnoreReason,
    /// COOKIE, NO_SESSION or READ_ERROR; points into the reply buffer.
    reply: []const u8,
    admit: Claim,
    read: ReadRequest,
    write: step.WriteRequest,
    control: step.ControlRequest,
    /// A part of a write.
    taken,
    ready: ReadyReport,
    /// Answered by `acknowledgeReport` once the caller knows what waits for the device.
    report: DeviceReport,
};

pub const WriteCache = step.WriteCache;
pub const WriteRef = step.WriteRef;
pub const WriteRequest = step.WriteRequest;
pub const ControlRequest = step.ControlRequest;
pub const ReadRequest = step.ReadRequest;
pub const Fragment = step.Fragment;
pub const FragmentIterator = step.FragmentIterator;
pub const ReadyReport = step.ReadyReport;
pub const DeviceReport = step.DeviceReport;
pub const Statistics = step.Statistics;

pub const Session = struct {
    /// 0: free.
    id: u64 = 0,
    boot_id: Uuid = .zero,
    from: Endpoint = .{ .ip = .zero, .port = 0 },
    client_nonce: [16]u8 = @splat(0),
    kind: wire.HelloKind = .token,
    version_id: Uuid = .zero,
    disk_size: u64 = 0,
    fragment_size: u16 = 0,
    last_packet_at_us: u64 = 0,
    /// The last packet that was no REPORT: what a device has to say of itself keeps no other from booting.
    last_request_at_us: u64 = 0,
    ready: bool = false,
    requests: RequestWindow = .{},
    write_cache: step.WriteCache = .{},
    writes: server_writes.Window = .{},
    statistics: Statistics = .{},
};

/// Allocates the table of sessions, and nothing later.
pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!StreamServer {
    assert(options.sessions_max > 0);
    assert(options.sessions_max < std.math.maxInt(u16));
    assert(options.fragment_size_max >= wire.fragment_size_min);
    assert(options.fragment_size_max <= wire.fragment_size_max);
    assert(options.read_size_max >= wire.read_size_promised);
    assert(options.read_size_max <= wire.read_size_max);
    const sessions = try gpa.alloc(Session, options.sessions_max);
    errdefer gpa.free(sessions);
    @memset(sessions, .{});
    return .{ .sessions = sessions, .options = options, .collector = try .init(gpa, options.write_places) };
}

pub fn deinit(server: *StreamServer, gpa: std.mem.Allocator) void {
    gpa.free(server.sessions);
    server.collector.deinit(gpa);
    server.* = undefined;
}

/// One datagram. `now_us` is of the host's monotonic clock; `packet` is alive until the step is done with.
pub fn receive(
    server: *StreamServer,
    now_us: u64,
    from: Endpoint,
    packet: []const u8,
    reply: *ReplyBuffer,
) Step {
    const parsed = wire.parse(packet) catch |err| return server.ignore(switch (err) {
        error.WrongSize => .stream_wrong_size,
        error.WrongVersion => .stream_wrong_version,
        error.UnknownType => .stream_unknown_type,
        error.ReservedNotZero => .stream_reserved_not_zero,
        error.BadValue => .stream_bad_value,
    });
    switch (parsed.body) {
        .hello => |hello| return server.receiveHello(now_us, from, hello, reply),
        .read, .ready, .report, .write, .control => {},
        .cookie, .welcome, .refuse, .data, .read_error, .no_session, .ready_ack, .report_ack, .write_ack => {
            return server.ignore(.stream_wrong_direction);
        },
    }
    const session = server.findById(parsed.session_id) orelse {
        server.ignored.add(.stream_unknown_session);
        return answer(.{
            .session_id = parsed.session_id,
            .request_id = parsed.request_id,
            .body = .no_session,
        }, reply);
    };
    if (!session.from.eql(from)) return server.ignore(.stream_wrong_source);
    session.last_packet_at_us = now_us;
    if (parsed.body != .report) session.last_request_at_us = now_us;
    session.statistics.packets_in += 1;
    session.statistics.bytes_in += packet.len;
    return switch (parsed.body) {
        .read => |read| server.receiveRead(session, parsed.request_id, read, reply),
        .write => |*write| write_steps.receiveWrite(server, now_us, session, parsed.request_id, write, reply),
        .control => |*control| write_steps.receiveControl(server, session, parsed.request_id, control, reply),
        .ready => |ready| receiveReady(session, parsed.request_id, ready, reply),
        .report => |report| .{ .report = .{
            .boot_id = session.boot_id,
            .session_id = session.id,
            .request_id = parsed.request_id,
            .report = report,
        } },
        else => unreachable,
    };
}

/// Answers the claim of an `admit` step. `grant` is what the caller knows about `claim.boot_id` right now.
pub fn admit(
    server: *StreamServer,
    now_us: u64,
    claim: Claim,
    grant: Grant,
    reply: *ReplyBuffer,
) Admission {
    const boot = switch (grant) {
        .unknown => return server.refuse(claim, .token_refused, reply),
        .version_missing => return server.refuse(claim, .version_missing, reply),
        .no_cache => |code| return server.refuse(claim, code, reply),
        .boot => |boot| boot,
    };
    assert(boot.disk_size > 0);
    assert(boot.disk_size % wire.sector_size == 0);
    if (!server.proofHolds(claim, boot)) return server.refuse(claim, .token_refused, reply);
    const existing = server.sessionOf(claim.boot_id);
    if (existing) |session| {
        if (std.mem.eql(u8, &session.client_nonce, &claim.client_nonce)) {
            session.from = claim.from;
            session.last_packet_at_us = now_us;
            session.last_request_at_us = now_us;
            return .{ .outcome = .repeated, .reply = server.welcome(session, reply) };
        }
        if (claim.kind == .token and session.kind == .token)
            return server.refuse(claim, .token_refused, reply);
        if (claim.kind == .token) {
            server.ignored.add(.stream_stale_hello);
            return .{ .outcome = .stale, .reply = null };
        }
    }
    const session = existing orelse server.takeSession(now_us) orelse
        return server.refuse(claim, .busy, reply);
    const statistics = session.statistics;
    const ready = session.ready;
    const requests = session.requests;
    const window = session.writes;
    server.collector.drop(session.id);
    session.* = .{
        .id = server.makeSessionId(session, claim),
        .boot_id = claim.boot_id,
        .from = claim.from,
        .client_nonce = claim.client_nonce,
        .kind = claim.kind,
        .version_id = boot.version_id,
        .disk_size = boot.disk_size,
        .fragment_size = @min(claim.fragment_size_max, server.options.fragment_size_max),
        .last_packet_at_us = now_us,
        .last_request_at_us = now_us,
        .statistics = statistics,
        .ready = ready,
        .requests = requests,
        .write_cache = boot.write_cache,
        .writes = window,
    };
    if (claim.kind == .resumption) session.statistics.resumptions += 1;
    return .{
        .outcome = if (claim.kind == .token) .opened else .resumed,
        .reply = server.welcome(session, reply),
    };
}

/// READ_ERROR for a read whose bytes could not be given: at `store_error` the device asks again.
pub fn readError(read: ReadRequest, code: wire.ReadErrorCode, reply: *ReplyBuffer) []const u8 {
    return wire.emit(.{
        .session_id = read.session_id,
        .request_id = read.request_id,
        .body = .{ .read_error = .{ .code = code } },
    }, reply);
}

/// The end of a write or control request (`stream_server_write_steps.zig`).
pub const finishWrite = write_steps.finishWrite;

/// REPORT_ACK with the order that waits for this device; shorter than any REPORT.
pub fn acknowledgeReport(
    server: *StreamServer,
    report: *const DeviceReport,
    ack: wire.ReportAck,
    reply: *ReplyBuffer,
) []const u8 {
    if (server.findById(report.session_id)) |session| {
        session.statistics.packets_out += 1;
        session.statistics.bytes_out += wire.report_ack_size;
    }
    return wire.emit(.{
        .session_id = report.session_id,
        .request_id = report.request_id,
        .body = .{ .report_ack = ack },
    }, reply);
}

/// Forgets sessions that said nothing for `session_idle_us`; their devices resume when they have something to ask.
pub fn expire(server: *StreamServer, now_us: u64) void {
    for (server.sessions) |*session| {
        if (session.id == 0) continue;
        if (now_us -| session.last_packet_at_us < server.options.session_idle_us) continue;
        server.drop(session);
    }
}

/// Ends the session of a boot that is over, for example since its device started again.
pub fn forget(server: *StreamServer, boot_id: Uuid) void {
    if (server.sessionOf(boot_id)) |session| server.drop(session);
}

/// The boot's session, for its statistics; the pointer is good until the next call.
pub fn sessionOf(server: *const StreamServer, boot_id: Uuid) ?*Session {
    for (server.sessions) |*session| {
        if (session.id != 0 and session.boot_id.eql(boot_id)) return session;
    }
    return null;
}

/// Where a read of `length` bytes counts: index i has sizes in (2^(i+8), 2^(i+9)], index 0 all up to 512.
pub fn readSizeIndex(length: u32) u4 {
    assert(length > 0);
    if (length <= wire.sector_size) return 0;
    return @intCast(@min(std.math.log2_int_ceil(u32, length) - 9, read_size_buckets - 1));
}

fn receiveHello(
    server: *StreamServer,
    now_us: u64,
    from: Endpoint,
    hello: wire.Hello,
    reply: *ReplyBuffer,
) Step {
    const key = &server.options.keys.cookie;
    const slot = now_us / secrets.cookie_slot_us;
    const current = secrets.cookie(key, slot, from, hello.client_nonce);
    const previous = secrets.cookie(key, slot -| 1, from, hello.client_nonce);
    const holds = std.crypto.timing_safe.eql([32]u8, current, hello.cookie) or
        std.crypto.timing_safe.eql([32]u8, previous, hello.cookie);
    if (!holds) {
        if (!std.mem.allEqual(u8, &hello.cookie, 0)) server.ignored.add(.stream_stale_cookie);
        return answer(.{ .body = .{ .cookie = .{
            .client_nonce = hello.client_nonce,
            .cookie = current,
        } } }, reply);
    }
    return .{ .admit = .{
        .from = from,
        .client_nonce = hello.client_nonce,
        .kind = hello.kind,
        .boot_id = .fromBytes(hello.boot_id),
        .proof = hello.proof,
        .fragment_size_max = hello.fragment_size_max,
    } };
}

fn receiveRead(
    server: *StreamServer,
    session: *Session,
    request_id: u32,
    read: wire.Read,
    reply: *ReplyBuffer,
) Step {
    const mistake: ?wire.ReadErrorCode = if (read.version_tag != secrets.versionTag(session.version_id))
        .version_mismatch
    else if (read.length > server.options.read_size_max)
        .too_large
    else if (read.length > session.disk_size or read.offset > session.disk_size - read.length)
        .beyond_the_end
    else
        null;
    if (mistake) |code| return answer(.{
        .session_id = session.id,
        .request_id = request_id,
        .body = .{ .read_error = .{ .code = code } },
    }, reply);

    const fragment_count = wire.fragmentCount(read.length, session.fragment_size);
    const range_count = read.ranges.count();
    if (range_count > 0) {
        const last = read.ranges.at(range_count - 1);
        if (last.first_fragment + last.fragment_count > fragment_count) return server.ignore(.stream_bad_range);
    }
    var request: ReadRequest = .{
        .boot_id = session.boot_id,
        .version_id = session.version_id,
        .to = session.from,
        .session_id = session.id,
        .request_id = request_id,
        .offset = read.offset,
        .length = read.length,
        .fragment_size = session.fragment_size,
        .write_cache = session.write_cache.class,
        .ranges = read.ranges,
        .first = session.statistics.reads == 0 and session.statistics.retries == 0,
        .repeated = false,
        .bytes_out = read.length,
        .packets_out = fragment_count,
    };
    if (range_count > 0) {
        const last = read.ranges.at(range_count - 1);
        const ends_short = last.first_fragment + last.fragment_count == fragment_count;
        const last_length = wire.fragmentLength(read.length, session.fragment_size, fragment_count - 1);
        request.packets_out = read.ranges.fragmentCount();
        request.bytes_out = @as(u32, request.packets_out) * session.fragment_size;
        if (ends_short) request.bytes_out -= session.fragment_size - last_length;
    }
    const is_seen = session.requests.note(request_id);
    request.repeated = is_seen or request.packets_out < fragment_count;
    countRead(&session.statistics, &request);
    return .{ .read = request };
}

fn countRead(statistics: *Statistics, request: *const ReadRequest) void {
    statistics.packets_out += request.packets_out;
    statistics.bytes_out += request.bytes_out + @as(u64, request.packets_out) * wire.header_size;
    if (request.repeated) {
        statistics.retries += 1;
        statistics.missing_fragments += request.packets_out;
    } else {
        statistics.reads += 1;
        statistics.read_bytes += request.length;
        statistics.read_sizes[readSizeIndex(request.length)] += 1;
    }
}

fn receiveReady(session: *Session, request_id: u32, ready: wire.Ready, reply: *ReplyBuffer) Step {
    defer session.ready = true;
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.ready_ack_size;
    return .{ .ready = .{
        .boot_id = session.boot_id,
        .outcome = ready.outcome,
        .uptime_us = ready.uptime_us,
        .code = .init(std.mem.trimEnd(u8, &ready.code, "\x00")),
        .sentence = .init(ready.sentence),
        .repeated = session.ready,
        .reply = wire.emit(.{ .session_id = session.id, .request_id = request_id, .body = .ready_ack }, reply),
    } };
}

pub fn proofHolds(server: *const StreamServer, claim: Claim, boot: Grant.Boot) bool {
    switch (claim.kind) {
        .token => {
            if (!std.crypto.timing_safe.eql([16]u8, claim.proof[0..16].*, boot.token)) return false;
            const nonce = boot.token_nonce orelse return true;
            return std.mem.eql(u8, &nonce, &claim.client_nonce);
        },
        .resumption => {
            const secret = secrets.resumeSecret(&server.options.keys.resumption, claim.boot_id);
            const expected = secrets.resumeProof(&secret, claim.client_nonce);
            return std.crypto.timing_safe.eql([32]u8, claim.proof, expected);
        },
    }
}

/// Unguessable, and the session's place in the table plus one in its low 16 bits.
fn makeSessionId(server: *StreamServer, session: *const Session, claim: Claim) u64 {
    server.session_serial += 1;
    const key = &server.options.keys.session;
    const bits = secrets.sessionBits(key, claim.boot_id, claim.client_nonce, server.session_serial);
    const index = session - server.sessions.ptr;
    return @as(u64, bits) << 16 | (index + 1);
}

pub fn findById(server: *StreamServer, id: u64) ?*Session {
    const place: u16 = @truncate(id);
    if (place == 0 or place > server.sessions.len) return null;
    const session = &server.sessions[place - 1];
    return if (session.id == id) session else null;
}

/// A free place, or that of the session which has asked for nothing longest: whoever waits for something asks again every
/// second, so that a session idle for `session_spare_us` is of a boot that is over or of a device that needs nothing now.
fn takeSession(server: *StreamServer, now_us: u64) ?*Session {
    if (server.session_count == server.sessions.len) {
        var oldest = &server.sessions[0];
        for (server.sessions) |*session| {
            if (session.last_request_at_us < oldest.last_request_at_us) oldest = session;
        }
        if (now_us -| oldest.last_request_at_us < session_spare_us) return null;
        server.drop(oldest);
    }
    for (server.sessions) |*session| {
        if (session.id != 0) continue;
        server.session_count += 1;
        session.* = .{};
        return session;
    }
    unreachable;
}

fn drop(server: *StreamServer, session: *Session) void {
    assert(session.id != 0);
    assert(server.session_count > 0);
    server.session_count -= 1;
    server.collector.drop(session.id);
    session.* = .{};
}

fn welcome(server: *const StreamServer, session: *const Session, reply: *ReplyBuffer) []const u8 {
    return wire.emit(.{ .session_id = session.id, .body = .{ .welcome = .{
        .client_nonce = session.client_nonce,
        .version_tag = secrets.versionTag(session.version_id),
        .disk_size = session.disk_size,
        .fragment_size = session.fragment_size,
        .read_size_max = server.options.read_size_max,
        .outstanding_bytes_max = server.options.outstanding_bytes_max,
        .resume_secret = secrets.resumeSecret(&server.options.keys.resumption, session.boot_id),
        .version_id = session.version_id.bytes,
        .write_cache = session.write_cache.class,
        .write_cache_size = session.write_cache.size,
        .write_cache_id = session.write_cache.id,
    } } }, reply);
}

fn refuse(server: *StreamServer, claim: Claim, code: wire.RefuseCode, reply: *ReplyBuffer) Admission {
    const outcome: Admission.Outcome, const reason: base.IgnoreReason = switch (code) {
        .token_refused => .{ .token_refused, .stream_token_refused },
        .version_missing => .{ .version_missing, .stream_version_missing },
        .busy => .{ .busy, .stream_busy },
        .cache_lost, .cache_version, .cache_failed => .{ .{ .no_cache = code }, .stream_no_cache },
        .protocol_version => unreachable,
    };
    server.ignored.add(reason);
    const packet = wire.emit(.{ .body = .{ .refuse = .{
        .client_nonce = claim.client_nonce,
        .code = code,
    } } }, reply);
    return .{ .outcome = outcome, .reply = packet };
}

pub fn ignore(server: *StreamServer, reason: base.IgnoreReason) Step {
    server.ignored.add(reason);
    return .{ .ignored = reason };
}

fn answer(packet: wire.Packet, reply: *ReplyBuffer) Step {
    return .{ .reply = wire.emit(packet, reply) };
}

test {
    _ = @import("stream_server_test.zig");
    _ = server_writes;
}
