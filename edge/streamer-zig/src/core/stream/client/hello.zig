//! HELLO at the device (packages/proto/STREAM.md, "Hello"): how it gets its session, for the first
//! time or again.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const RttEstimator = @import("../congestion/rtt.zig");
const step = @import("step.zig");
const stream_seal = @import("../seal.zig");
const versions = @import("hello_versions.zig");
const StreamClient = @import("client.zig");
const assert = std.debug.assert;

/// Starts a HELLO at the edge of the session, or of the first one wanted.
pub fn greetOwn(client: *StreamClient, now_us: u64, kind: wire.HelloKind) void {
    client.failover.beginAtOwn(now_us);
    greet(client, now_us, kind);
    assert(client.state == .greeting);
}

/// The session's edge is gone, or cannot read its store: contacts another one with the ticket.
pub fn failOver(client: *StreamClient, now_us: u64) void {
    assert(client.session != null);
    client.failover.leave(now_us);
    greetCurrent(client, now_us);
    assert(client.state == .greeting);
}

/// Gives the next edge its turn if the current one does not answer.
pub fn checkTurn(client: *StreamClient, now_us: u64) void {
    assert(client.state == .greeting);
    // No other edge knows about the first session.
    if (client.session == null) return;
    const ends_at_us = client.failover.turnEndsAt() orelse return;
    if (now_us < ends_at_us) return;
    client.failover.turn(now_us);
    greetCurrent(client, now_us);
}

fn greetCurrent(client: *StreamClient, now_us: u64) void {
    assert(client.session != null);
    greet(client, now_us, if (client.failover.isAtOwn()) .resumption else .ticket);
}

/// Starts a HELLO under a fresh nonce and key.
fn greet(client: *StreamClient, now_us: u64, kind: wire.HelloKind) void {
    client.transition(.greeting);
    const serial = client.greeting.nonce_serial + 1;
    const nonce = client.deriveBytes("nonce", serial)[0..16].*;
    const pair: stream_seal.KeyPair = .init(client.deriveBytes("x25519", serial));
    var hello: wire.Hello = .{
        .client_nonce = nonce,
        .kind = kind,
        .ciphers = client.options.ciphers orelse stream_seal.ownCiphers(),
        .packet_size_max = client.options.packet_size_max,
        .boot_id = client.identity.boot_id.bytes,
        .client_public = pair.public,
        .proof = undefined,
    };
    if (kind == .ticket) hello.shown = .{
        .age_us = now_us -| client.failover.known_at_us,
        .ticket = client.failover.known.?.ticket,
    };
    client.greeting = .{
        .kind = kind,
        .nonce = nonce,
        .nonce_serial = serial,
        .pair = pair,
        .hello = hello,
        .due_at_us = now_us,
    };
    versions.begin(client);
    assert(client.greeting.sent_count == 0);
}

pub fn transmit(client: *StreamClient, now_us: u64, out: []u8) ?[]const u8 {
    assert(client.state == .greeting);
    const greeting = &client.greeting;
    if (greeting.is_older_due) {
        greeting.is_older_due = false;
        const older = versions.of(client, .v2);
        return wire.emit(.{ .version = .v2, .body = .{ .hello = older } }, out);
    }
    if (greeting.is_signing or now_us < greeting.due_at_us) return null;
    versions.checkSilence(client);
    greeting.due_at_us = now_us + greeting.timeout_us;
    greeting.sent_at_us = now_us;
    greeting.sent_count += 1;
    greeting.timeout_us = @min(greeting.timeout_us * 2, RttEstimator.rto_us_max);
    greeting.is_older_due = versions.isOlderDue(client);
    return wire.emit(
        .{ .version = greeting.hello.version, .body = .{ .hello = greeting.hello } },
        out,
    );
}

/// Returns when `transmit` has something to send; null: the HELLO waits for its signature.
pub fn deadline(client: *const StreamClient) ?u64 {
    const greeting = &client.greeting;
    if (greeting.is_older_due) return greeting.sent_at_us;
    if (greeting.is_signing) return null;
    return @min(greeting.due_at_us, client.failover.turnEndsAt() orelse greeting.due_at_us);
}

pub fn receiveCookie(
    client: *StreamClient,
    now_us: u64,
    version: wire.Version,
    cookie: *const wire.Cookie,
) bool {
    if (client.state != .greeting) return false;
    if (!std.mem.eql(u8, &cookie.client_nonce, &client.greeting.nonce)) return false;
    // A second copy of the same cookie must not cause a second HELLO.
    if (std.mem.eql(u8, &cookie.cookie, &client.greeting.cookie)) return true;
    const known = versions.ofCookie(client, version, &cookie.cookie);
    // A copy from an edge of the release before, at the address of one that knows more.
    if (client.greeting.is_settled and known == .v2 and client.greeting.hello.version != .v2)
        return true;
    assert(client.failover.turn_us > 0);
    sampleRtt(client, now_us);
    client.failover.onAlive();
    client.greeting.cookie = cookie.cookie;
    client.greeting.due_at_us = now_us;
    client.greeting.sent_count = 0;
    versions.settle(client, known);
    return true;
}

pub fn receiveRefuse(client: *StreamClient, now_us: u64, refusal: wire.Refuse) bool {
    if (client.state != .greeting) return false;
    if (!std.mem.eql(u8, &refusal.client_nonce, &client.greeting.nonce)) return false;
    if (!client.failover.isAtOwn()) {
        client.pending_events.refused_elsewhere =
            .{ .edge = client.failover.current, .code = refusal.code };
        client.failover.refuse(now_us, refusal.code);
        if (client.failover.isAtOwn()) greetCurrent(client, now_us);
        return true;
    }
    assert(client.failover.isAtOwn());
    if (refusal.code == .busy) {
        client.greeting.due_at_us = now_us + RttEstimator.rto_us_max;
        return true;
    }
    if (refusal.code == .token_refused and client.greeting.kind == .resumption and
        mayShowTicket(client))
    {
        greet(client, now_us, .ticket);
        return true;
    }
    client.end(.refused, refusal.code);
    client.pending_events.refused = refusal.code;
    return true;
}

/// The own edge may have restarted before it knew more of this boot than its HELLO: the ticket
/// contains all that it needs.
fn mayShowTicket(client: *const StreamClient) bool {
    return client.mayLeave();
}

pub fn receiveWelcome(client: *StreamClient, now_us: u64, packet: []const u8) bool {
    if (packet.len < wire.welcome_size) return false;
    if (wire.Version.of(packet) != client.greeting.hello.version) return false;
    const known = wire.welcomeKnown(packet[0..wire.welcome_size]) orelse return false;
    if (!std.mem.eql(u8, &known.client_nonce, &client.greeting.nonce)) return false;
    switch (client.state) {
        .greeting => {},
        .established => return receiveSizeProof(client, packet),
        .idle, .ended => return false,
    }
    var protection: step.Protection = switch (known.cipher) {
        .clear => .{ .id = stream_seal.counterOf(packet) },
        else => .ofKeys(&(keysOf(client, &known) orelse return false)),
    };
    if (!isOffered(client.greeting.hello.ciphers, known.cipher)) return false;
    const clear = protection.open(packet, wire.welcome_size_known, &client.opened) orelse
        return false;
    const parsed = wire.parse(clear) catch return false;
    assert(client.state == .greeting);
    if (!isCodecOffered(client, parsed.body.welcome.codec)) return false;
    return establish(client, now_us, .{
        .id = parsed.session_id,
        .welcome = parsed.body.welcome,
        .protection = &protection,
        .size = @intCast(packet.len),
    });
}

fn isCodecOffered(client: *const StreamClient, codec: u8) bool {
    return codec == 0 or client.options.codecs >> @intCast(codec - 1) & 1 == 1;
}

fn isOffered(offered: wire.Ciphers, cipher: wire.Cipher) bool {
    return switch (cipher) {
        .clear => offered.clear,
        .aegis_128l => offered.aegis_128l,
        .chacha20_poly1305 => offered.chacha20_poly1305,
    };
}

/// A packet of the same HELLO: the session is open, and this one proves that its size passes the
/// path. In version 3 it may name more edges than the one without padding.
fn receiveSizeProof(client: *StreamClient, packet: []const u8) bool {
    assert(client.state == .established);
    const session = &client.session.?;
    const clear = client.protection.open(packet, wire.welcome_size_known, &client.opened) orelse
        return false;
    if (session.cipher != .clear) client.path.onProven(@intCast(packet.len));
    const parsed = wire.parse(clear) catch return true;
    const list = parsed.body.welcome.failover orelse return true;
    if (client.failover.extend(list)) session.failover = list;
    return true;
}

fn keysOf(client: *const StreamClient, known: *const wire.WelcomeKnown) ?stream_seal.SessionKeys {
    const greeting = &client.greeting;
    return stream_seal.agree(.{
        .hello = &greeting.hello,
        .edge_public = &known.edge_public,
        .cipher = known.cipher,
        .secret = versions.secretOf(client, greeting.kind),
    }, greeting.pair.secret, known.edge_public);
}

const OpenedWelcome = struct {
    id: u64,
    welcome: wire.Welcome,
    protection: *const step.Protection,
    /// Size of the packet as it arrived.
    size: u16,
};

fn establish(client: *StreamClient, now_us: u64, opened: OpenedWelcome) bool {
    const welcome = &opened.welcome;
    const session: step.Session = .{
        .id = opened.id,
        .version = client.greeting.hello.version,
        .cipher = welcome.cipher,
        .codec = welcome.codec,
        .version_tag = welcome.version_tag,
        .version_id = .fromBytes(welcome.version_id),
        .disk_size = welcome.disk_size,
        .fragment_size = welcome.fragment_size,
        .outstanding_bytes_max = @min(
            welcome.outstanding_bytes_max,
            client.options.outstanding_bytes_max,
        ),
        .resume_secret = welcome.resume_secret,
        .write_cache = welcome.write_cache,
        .write_cache_size = welcome.write_cache_size,
        .write_cache_id = welcome.write_cache_id,
        .profile_size = welcome.profile_size,
        .edge = client.failover.current,
        .failover = welcome.failover,
        .welcomed_at_us = now_us,
    };
    const size_max = session.fragment_size + wire.header_size + wire.tag_size;
    if (size_max > client.options.packet_size_max) return false;
    const resumed = client.session != null;
    // An edge that accepts a ticket knows nothing else about the boot.
    const moved = client.greeting.kind == .ticket;
    if (client.session) |*before| {
        const same = before.version_tag == session.version_tag and
            before.version_id.eql(session.version_id) and before.disk_size == session.disk_size;
        if (!same) {
            client.end(.version_changed, null);
            client.pending_events.version_changed = true;
            return true;
        }
        if (losesWrites(client, before, &session)) {
            client.end(.cache_lost, null);
            client.pending_events.cache_lost = true;
            return true;
        }
        client.statistics.resumptions += 1;
        if (moved) client.statistics.failovers += 1;
    }
    assert(session.outstanding_bytes_max <= client.options.outstanding_bytes_max);
    client.keepalive_id = null;
    client.machine_sent = 0;
    client.failover.settle(now_us, welcome.failover);
    client.session = session;
    client.network.settle(&client.protection, &client.path);
    client.protection = opened.protection.*;
    client.protection.beginCount();
    sampleRtt(client, now_us);
    client.path.begin(now_us, size_max, opened.size);
    client.transition(.established);
    client.pending_events.established = .{ .resumed = resumed, .moved = moved };
    client.restart();
    if (client.ready) |*ready| {
        // The other edge does not know it.
        if (moved) ready.acknowledged = false;
        ready.due_at_us = now_us;
        ready.timeout_us = client.rtt.rto_us;
    }
    if (moved) client.report_state.retransmitAll(client.rtt.rto_us);
    client.report_state.beginSession(now_us);
    if (client.hasInFlight()) client.waiting_since_us = now_us;
    return true;
}

fn losesWrites(
    client: *const StreamClient,
    before: *const step.Session,
    now: *const step.Session,
) bool {
    if (before.write_cache == now.write_cache and before.write_cache_id == now.write_cache_id)
        return false;
    // The lost write cache contained nothing of this device.
    const is_unused = before.write_cache == .device_ram_overflow and
        now.write_cache == .device_ram_overflow and !client.writes.is_started;
    return !is_unused;
}

/// The first reads need an RTO too; Karn's algorithm applies as for reads.
fn sampleRtt(client: *StreamClient, now_us: u64) void {
    if (client.greeting.sent_count == 1) client.rtt.sample(now_us -| client.greeting.sent_at_us);
}
