//! HELLO at the edge (packages/proto/STREAM.md, "Hello"): cookies, admission of a session, and its
//! keys.

const std = @import("std");
const arrivals = @import("arrivals.zig");
const base = @import("base");
const wire = @import("wire").stream;
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
const device_signature = @import("../device_signature.zig");
const StreamServer = @import("server.zig");
const assert = std.debug.assert;
const Admission = StreamServer.Admission;
const Claim = StreamServer.Claim;
const Grant = StreamServer.Grant;
const ReplyBuffer = StreamServer.ReplyBuffer;
const Session = StreamServer.Session;

pub fn receiveHello(
    server: *StreamServer,
    now_us: u64,
    from: base.Endpoint,
    hello: *const wire.Hello,
    reply: *ReplyBuffer,
) StreamServer.Step {
    const key = &server.options.keys.cookie;
    const slot = now_us / secrets.cookie_slot_us;
    var current = secrets.cookie(key, slot, from, hello.client_nonce);
    var previous = secrets.cookie(key, slot -| 1, from, hello.client_nonce);
    if (server.options.version_max != .v2) {
        current = secrets.marked(current);
        previous = secrets.marked(previous);
    }
    const holds = std.crypto.timing_safe.eql([32]u8, current, hello.cookie) or
        std.crypto.timing_safe.eql([32]u8, previous, hello.cookie);
    if (holds) return .{
        .admit = .{ .from = from, .hello = hello.*, .boot_id = .fromBytes(hello.boot_id) },
    };
    if (!std.mem.allEqual(u8, &hello.cookie, 0)) server.ignored.add(.stream_stale_cookie);
    return .{ .reply = wire.emit(.{ .version = hello.version, .body = .{ .cookie = .{
        .client_nonce = hello.client_nonce,
        .cookie = current,
    } } }, reply) };
}

/// Answers the claim of an `admit` step. `grant` is what the caller knows about `claim.boot_id`
/// now.
pub fn admit(
    server: *StreamServer,
    now_us: u64,
    claim: Claim,
    grant: Grant,
    reply: *ReplyBuffer,
) Admission {
    const boot = switch (grant) {
        .unknown => return refuse(server, &claim, .token_refused, reply),
        .version_missing => return refuse(server, &claim, .version_missing, reply),
        .no_cache => |code| return refuse(server, &claim, code, reply),
        .identity_refused => return refuse(server, &claim, .identity_refused, reply),
        .waits => return .{ .outcome = .waits, .reply = null },
        .boot => |boot| boot,
    };
    assert(boot.disk_size > 0);
    assert(boot.disk_size % wire.sector_size == 0);
    const hello = &claim.hello;
    if (!proofHolds(server, &claim, &boot)) return refuse(server, &claim, .token_refused, reply);
    if (hello.kind == .token) {
        const device = claim.device orelse device_signature.claimOf(hello);
        if (device == .forged) return refuse(server, &claim, .identity_refused, reply);
    }
    const existing = server.sessionOf(claim.boot_id);
    if (existing) |session| if (repeat(server, now_us, session, &claim, reply)) |admission|
        return admission;
    renewSerial(server);
    var opened = agree(server, &claim, &boot) orelse
        return refuse(server, &claim, .no_cipher, reply);
    const session = existing orelse allocateSession(server, now_us, &claim) orelse
        return refuse(server, &claim, .busy, reply);
    server.collector.drop(session.id);
    server.noteChange(session);
    opened.id = makeSessionId(server, session, &claim);
    if (opened.cipher() == .clear) opened.mark = @intCast(opened.id >> 48);
    opened.counter = session.counter;
    arrivals.begin(&opened);
    opened.from = session.from;
    opened.last_packet_at_us = now_us;
    opened.welcomed_at_us = now_us;
    opened.last_request_at_us = now_us;
    opened.statistics = session.statistics;
    opened.ready = session.ready;
    opened.requests = session.requests;
    opened.writes = session.writes;
    opened.question = session.question;
    assert(opened.id != 0);
    assert(opened.packet_size_max <= server.options.packet_size_max);
    session.* = opened;
    server.hello_memory.add(claim.boot_id, hello.client_nonce);
    moveTo(server, session, claim.from);
    if (hello.kind != .token) session.statistics.resumptions += 1;
    return .{
        .outcome = if (hello.kind == .token) .opened else .resumed,
        .reply = welcome(server, session, 0, reply),
        .session_id = session.id,
    };
}

/// Answers a HELLO of a boot that has a session; null: it opens another one.
fn repeat(
    server: *StreamServer,
    now_us: u64,
    session: *Session,
    claim: *const Claim,
    reply: *ReplyBuffer,
) ?Admission {
    const hello = &claim.hello;
    if (isReplay(server, session, claim)) {
        server.ignored.add(.stream_stale_hello);
        return .{ .outcome = .stale, .reply = null };
    }
    if (std.mem.eql(u8, &session.client_nonce, &hello.client_nonce)) {
        if (isOutrun(session, claim)) return null;
        moveTo(server, session, claim.from);
        server.noteChange(session);
        session.packet_size_max = @min(session.packet_size_max, hello.packet_size_max);
        session.last_packet_at_us = now_us;
        session.welcomed_at_us = now_us;
        session.last_request_at_us = now_us;
        return .{
            .outcome = .repeated,
            .reply = welcome(server, session, 0, reply),
            .session_id = session.id,
        };
    }
    if (hello.kind != .token) return null;
    if (session.kind == .token) return refuse(server, claim, .token_refused, reply);
    server.ignored.add(.stream_stale_hello);
    return .{ .outcome = .stale, .reply = null };
}

/// A HELLO that has opened a session is remembered while that session lasts, and afterwards: a copy
/// of it, from whoever recorded it, neither moves nor ends the device's session. A device sends it
/// again only if it has not had WELCOME.
fn isReplay(server: *const StreamServer, session: *const Session, claim: *const Claim) bool {
    const nonce = claim.hello.client_nonce;
    if (std.mem.eql(u8, &session.client_nonce, &nonce)) {
        if (@backingInt(claim.hello.version) < @backingInt(session.version)) return true;
        return session.isHeard() and !session.from.eql(claim.from);
    }
    return claim.hello.kind != .token and server.hello_memory.has(claim.boot_id, nonce);
}

/// A device says HELLO in two versions, with one nonce, and continues in the newer one that its
/// edge knows. Its HELLO in the older one is valid from every address: a copy of it, from whoever
/// recorded it, may have opened the session, in which the device does not take its WELCOME.
pub fn isOutrun(session: *const Session, claim: *const Claim) bool {
    if (!std.mem.eql(u8, &session.client_nonce, &claim.hello.client_nonce)) return false;
    return !session.isHeard() and
        @backingInt(claim.hello.version) > @backingInt(session.version);
}

/// Returns a WELCOME padded with zeros to the largest packet that device and edge could use: if it
/// arrives, all reads may be that large. Null if that is Ethernet's usual size, and the list of
/// edges fits a WELCOME without padding. It is sent before the WELCOME without padding.
pub fn showSize(
    server: *StreamServer,
    admission: *const Admission,
    out: *StreamServer.LargeBuffer,
) ?[]const u8 {
    const session = server.findById(admission.session_id) orelse return null;
    const is_large = session.packet_size_max > wire.packet_size_ethernet;
    if (!is_large and isListWhole(session)) return null;
    const size = session.packet_size_max - session.from_edge.overhead();
    // A device may take no packet that names all of them.
    const list = if (session.failover) |*list| list else null;
    if (size < wire.welcomeSizeOf(session.version, list)) return null;
    return welcome(server, session, size, out);
}

/// A WELCOME without padding names all edges.
fn isListWhole(session: *const Session) bool {
    const list = if (session.failover) |*list| list else return true;
    return session.version == .v2 or list.edges.count <= wire.edges_unpadded_max_v3;
}

pub fn proofHolds(server: *const StreamServer, claim: *const Claim, boot: *const Grant.Boot) bool {
    const hello = &claim.hello;
    var buffer: [32]u8 = undefined;
    const secret = secretOf(server, claim, boot, &buffer) orelse return false;
    const expected = stream_seal.helloProof(secret, hello);
    if (!std.crypto.timing_safe.eql([32]u8, hello.proof, expected)) return false;
    if (hello.kind != .token) return true;
    const nonce = boot.token_nonce orelse return true;
    return std.mem.eql(u8, &nonce, &hello.client_nonce);
}

/// Returns the secret that the device proves and that its keys are bound to. Null: this edge does
/// not accept its ticket.
fn secretOf(
    server: *const StreamServer,
    claim: *const Claim,
    boot: *const Grant.Boot,
    buffer: *[32]u8,
) ?[]const u8 {
    switch (claim.hello.kind) {
        .token => return &boot.token,
        .resumption => buffer.* = secrets.resumeSecret(
            &server.options.keys.resumption,
            claim.boot_id,
        ),
        .ticket => buffer.* = boot.ticket_secret orelse return null,
    }
    return buffer;
}

/// Keys and id of the next session get a serial that none had before.
fn renewSerial(server: *StreamServer) void {
    server.session_serial += 1;
}

/// Returns the session that device and edge agree on, without its slot; null if they have no common
/// cipher.
fn agree(server: *const StreamServer, claim: *const Claim, boot: *const Grant.Boot) ?Session {
    const hello = &claim.hello;
    const cipher = stream_seal.chooseCipher(hello.ciphers, server.options.ciphers orelse
        stream_seal.ownCiphers()) orelse return null;
    var session: Session = .{
        .version = hello.version,
        .boot_id = claim.boot_id,
        .client_nonce = hello.client_nonce,
        .kind = hello.kind,
        .version_id = boot.version_id,
        .disk_size = boot.disk_size,
        .codec = chooseCodec(hello, server.options.codecs),
        .packet_size_max = @min(hello.packet_size_max, server.options.packet_size_max),
        .write_cache = boot.write_cache,
        .profile_size = boot.profile_size,
        .failover = boot.failover,
    };
    if (cipher == .clear) return session;
    const pair: stream_seal.KeyPair = .init(
        secrets.pairSeed(&server.options.keys.session, hello.client_nonce, server.session_serial),
    );
    var buffer: [32]u8 = undefined;
    const keys = stream_seal.agree(.{
        .hello = hello,
        .edge_public = &pair.public,
        .cipher = cipher,
        .secret = secretOf(server, claim, boot, &buffer).?,
    }, pair.secret, hello.client_public) orelse return null;
    session.edge_public = pair.public;
    session.from_device = keys.from_device;
    session.from_edge = keys.from_edge;
    session.mark = @intCast(keys.device_counter_first >> 48);
    session.counter_first = keys.device_counter_first;
    return session;
}

/// Returns the lowest codec that both have; 0: none. The device of a session of version 2 has none.
fn chooseCodec(hello: *const wire.Hello, own: u8) u8 {
    const common = hello.codecs & own;
    if (hello.version == .v2 or common == 0) return 0;
    return @as(u8, @ctz(common)) + 1;
}

/// Unguessable; its low 16 bits are the session's slot plus one.
fn makeSessionId(server: *const StreamServer, session: *const Session, claim: *const Claim) u64 {
    const key = &server.options.keys.session;
    const bits =
        secrets.sessionBits(key, claim.boot_id, claim.hello.client_nonce, server.session_serial);
    const index = session - server.sessions.ptr;
    assert(index < server.sessions.len);
    return @as(u64, bits) << 16 | (index + 1);
}

/// Allocates a free slot, or that of the session that has been idle longest: a waiting device
/// retransmits every second, so a session idle for `session_spare_us` belongs to a boot that is
/// over or to a device that needs nothing now.
fn allocateSession(server: *StreamServer, now_us: u64, claim: *const Claim) ?*Session {
    // Another boot of the same machine: the address belongs to nobody else.
    dropAt(server, claim.from);
    if (server.session_count == server.sessions.len)
        server.drop(findSpare(server, now_us) orelse return null);
    const slot = server.free_slots.first().?;
    const session = &server.sessions[slot];
    assert(session.id == 0);
    session.* = .{
        .boot_id = claim.boot_id,
        .from = claim.from,
        .counter = &server.counters[slot],
    };
    server.enter(session);
    return session;
}

/// The search reads every session: one that found none is not repeated before.
const search_interval_us = 100 * std.time.us_per_ms;

fn findSpare(server: *StreamServer, now_us: u64) ?*Session {
    assert(server.session_count == server.sessions.len);
    if (server.searched_us) |at_us| if (now_us -| at_us < search_interval_us) return null;
    var oldest = &server.sessions[0];
    for (server.sessions) |*session| {
        if (session.last_request_at_us < oldest.last_request_at_us) oldest = session;
    }
    const is_spare = now_us -| oldest.last_request_at_us >= StreamServer.session_spare_us;
    server.searched_us = if (is_spare) null else now_us;
    return if (is_spare) oldest else null;
}

pub fn moveTo(server: *StreamServer, session: *Session, from: base.Endpoint) void {
    assert(session.id != 0);
    if (session.from.eql(from)) return;
    dropAt(server, from);
    server.index.remove(session.from);
    session.from = from;
    server.index.put(from, @intCast(session - server.sessions.ptr));
    assert(server.index.get(from) != null);
}

pub fn dropAt(server: *StreamServer, from: base.Endpoint) void {
    const slot = server.index.get(from) orelse return;
    assert(server.sessions[slot].id != 0);
    server.drop(&server.sessions[slot]);
}

/// `size` is that of the packet before it is sealed; 0: without padding.
fn welcome(server: *const StreamServer, session: *Session, size: u16, out: []u8) []const u8 {
    assert(session.id != 0);
    var failover = session.failover;
    if (size == 0 and !isListWhole(session)) failover.?.edges.count = wire.edges_unpadded_max_v3;
    const unpadded = wire.welcomeSizeOf(session.version, if (failover) |*list| list else null);
    assert(size == 0 or size >= unpadded);
    return session.emit(0, .{ .welcome = .{
        .client_nonce = session.client_nonce,
        .edge_public = session.edge_public,
        .cipher = session.cipher(),
        .version_tag = secrets.versionTag(session.version_id),
        .disk_size = session.disk_size,
        .fragment_size = session.fragmentSizeMax(),
        .read_size_max = server.options.read_size_max,
        .outstanding_bytes_max = server.options.outstanding_bytes_max,
        .resume_secret = secrets.resumeSecret(&server.options.keys.resumption, session.boot_id),
        .version_id = session.version_id.bytes,
        .profile_size = session.profile_size,
        .failover = failover,
        .write_cache = session.write_cache.class,
        .codec = session.codec,
        .write_cache_size = session.write_cache.size,
        .write_cache_id = session.write_cache.id,
        .padding = size -| unpadded,
    } }, wire.welcome_size_known, out);
}

fn refuse(
    server: *StreamServer,
    claim: *const Claim,
    code: wire.RefuseCode,
    reply: *ReplyBuffer,
) Admission {
    const outcome: Admission.Outcome, const reason: base.IgnoreReason = switch (code) {
        .token_refused => .{ .token_refused, .stream_token_refused },
        .version_missing => .{ .version_missing, .stream_version_missing },
        .busy => .{ .busy, .stream_busy },
        .no_cipher => .{ .no_cipher, .stream_no_cipher },
        .cache_lost, .cache_version, .cache_failed, .cache_elsewhere => .{
            .{ .no_cache = code },
            .stream_no_cache,
        },
        .identity_refused => .{ .identity_refused, .stream_identity_refused },
    };
    server.ignored.add(reason);
    const version = claim.hello.version;
    const packet = wire.emit(.{ .version = version, .body = .{ .refuse = .{
        .client_nonce = claim.hello.client_nonce,
        .code = if (version == .v2 and code == .identity_refused) .token_refused else code,
    } } }, reply);
    return .{ .outcome = outcome, .reply = packet };
}

/// Returns the device's secret in a ticket for this boot.
pub fn resumeSecretOf(server: *const StreamServer, boot_id: base.Uuid) [32]u8 {
    return secrets.resumeSecret(&server.options.keys.resumption, boot_id);
}
