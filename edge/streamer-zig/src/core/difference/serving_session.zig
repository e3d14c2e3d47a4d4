//! One connection of an edge that asks another one of its site for differences
//! (packages/proto/PEERS.md, "Transfers"), at the edge that answers: what is expected next, and
//! until when. Nothing is read from a disk before the asking edge has shown, in this connection,
//! that it knows the site's key. Pure: the caller reads into `wanted`, passes the time, and
//! executes what `received` returns.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").peer_transfer;
const assert = std.debug.assert;

pub const ServingSession = @This();

/// From the connection to the first record that opens.
pub const greeting_limit_ms = 5_000;
/// Between two requests.
const idle_limit_ms = 30_000;
/// For each record that the asking edge takes.
const record_limit_ms = 10_000;

key: wire.Key,
own_id: base.Uuid,
/// The edges that have the address from which the connection comes.
peers: Peers,
/// Which of them has greeted.
asking: base.Uuid = .zero,
nonce: [wire.nonce_size]u8,
stage: Stage = .hello,
deadline_ms: u64,
input: [wire.greeting_size]u8 = undefined,
input_size: u8 = 0,
/// Of the request that comes, without its head.
request_size: u8 = 0,
session: wire.Session = undefined,

/// Edges of a site may share an address, with another port each.
pub const Peers = base.BoundedArray(base.Uuid, 16);

const Stage = enum {
    hello,
    /// The head of the first request.
    proof_head,
    proof,
    head,
    request,
    /// The caller answers.
    busy,
};

comptime {
    assert(wire.sealed_content_request_size <= wire.greeting_size);
    assert(wire.sealed_request_size <= wire.greeting_size);
}

pub const Options = struct {
    key: wire.Key,
    own_id: base.Uuid,
    peers: Peers,
    /// Random for each connection.
    nonce: [wire.nonce_size]u8,
};

pub fn init(options: Options, now_ms: u64) ServingSession {
    assert(options.peers.count > 0);
    return .{
        .key = options.key,
        .own_id = options.own_id,
        .peers = options.peers,
        .nonce = options.nonce,
        .deadline_ms = now_ms + greeting_limit_ms,
    };
}

/// Where the next bytes are to be read; empty while an answer is sent.
pub fn wanted(session: *ServingSession) []u8 {
    const size: usize = switch (session.stage) {
        .hello => wire.greeting_size,
        .proof_head, .head => wire.head_size,
        .proof, .request => session.request_size,
        .busy => 0,
    };
    return if (size == 0) &.{} else session.input[session.input_size..size];
}

pub const Event = union(enum) {
    nothing,
    /// To be sent.
    welcome: wire.GreetingBytes,
    request: wire.Request,
    /// Not an edge of this site, or one with a fault: the connection ends without a word.
    close,
};

/// So many bytes were read into `wanted`.
pub fn received(session: *ServingSession, count: usize, now_ms: u64) Event {
    assert(count > 0 and count <= session.wanted().len);
    session.input_size += @intCast(count);
    if (session.wanted().len > 0) return .nothing;
    session.input_size = 0;
    switch (session.stage) {
        .hello => return session.onHello(),
        .proof_head, .head => {
            const size = std.mem.readInt(u16, session.input[0..wire.head_size], .big);
            if (size != wire.sealed_request_size and size != wire.sealed_content_request_size)
                return .close;
            session.request_size = @intCast(size);
            session.stage = if (session.stage == .head) .request else .proof;
            return .nothing;
        },
        .proof, .request => {
            const record = session.input[0..session.request_size];
            const text = session.session.asking.open(record) catch return .close;
            const request = wire.parseRequest(text) catch return .close;
            session.stage = .busy;
            session.deadline_ms = now_ms + record_limit_ms;
            return .{ .request = request };
        },
        .busy => unreachable,
    }
}

fn onHello(session: *ServingSession) Event {
    const hello = &session.input;
    const greeting = wire.parseGreeting(hello) catch return .close;
    if (greeting.kind != .hello or !greeting.to.eql(session.own_id)) return .close;
    for (session.peers.constSlice()) |id| {
        if (id.eql(greeting.from)) break;
    } else return .close;
    if (!wire.isAuthentic(hello, &session.key, null)) return .close;
    const welcome = wire.emitGreeting(&.{
        .kind = .welcome,
        .from = session.own_id,
        .to = greeting.from,
        .nonce = session.nonce,
    }, &session.key, hello);
    assert(session.asking.eql(.zero));
    assert(session.stage == .hello);
    session.asking = greeting.from;
    session.session = .init(&session.key, hello, &welcome);
    session.stage = .proof_head;
    return .{ .welcome = welcome };
}

pub fn isProved(session: *const ServingSession) bool {
    return switch (session.stage) {
        .hello, .proof_head, .proof => false,
        .head, .request, .busy => true,
    };
}

/// Seals a record of the answer.
pub fn seal(
    session: *ServingSession,
    text: []const u8,
    buffer: *[wire.record_size_max]u8,
) []u8 {
    assert(session.stage == .busy);
    return session.session.answering.seal(text, buffer);
}

/// The asking edge has taken a record.
pub fn onRecordSent(session: *ServingSession, now_ms: u64) void {
    assert(session.stage == .busy);
    session.deadline_ms = now_ms + record_limit_ms;
}

/// The answer is sent.
pub fn onAnswered(session: *ServingSession, now_ms: u64) void {
    assert(session.stage == .busy);
    session.stage = .head;
    session.deadline_ms = now_ms + idle_limit_ms;
}

pub const connections_max = 16;
const connections_per_address_max = 4;

/// Tells whether a connection from an address may be kept beside the others.
pub fn mayAccept(others: []const base.Ip4, from: base.Ip4) bool {
    if (others.len >= connections_max) return false;
    var same: u32 = 0;
    for (others) |address| if (address.eql(from)) {
        same += 1;
    };
    return same < connections_per_address_max;
}

const testing = std.testing;

const test_own_id: base.Uuid = .fromRandom(@splat(1));
const test_peer_id: base.Uuid = .fromRandom(@splat(2));
const test_key: wire.Key = @splat(7);

fn testSession() ServingSession {
    var peers: Peers = .empty;
    peers.appendAssumeCapacity(test_peer_id);
    return .init(.{
        .key = test_key,
        .own_id = test_own_id,
        .peers = peers,
        .nonce = @splat(9),
    }, 1000);
}

fn feed(session: *ServingSession, bytes: []const u8) Event {
    var rest = bytes;
    var event: Event = .nothing;
    while (rest.len > 0) {
        const place = session.wanted();
        if (place.len == 0) return event;
        // In parts, as a network brings them.
        const size = @min(@min(place.len, rest.len), 5);
        @memcpy(place[0..size], rest[0..size]);
        event = session.received(size, 1000);
        if (event != .nothing) return event;
        rest = rest[size..];
    }
    return event;
}

fn helloOf(from: base.Uuid, to: base.Uuid, with: *const wire.Key) wire.GreetingBytes {
    const greeting: wire.Greeting =
        .{ .kind = .hello, .from = from, .to = to, .nonce = @splat(3) };
    return wire.emitGreeting(&greeting, with, null);
}

fn requestOf(asking: *wire.Direction, buffer: *[wire.record_size_max]u8) []u8 {
    var bytes: wire.RequestBytes = undefined;
    const request: wire.Request = .{ .piece = .{ .difference = test_own_id, .index = 4 } };
    return asking.seal(wire.emitRequest(request, &bytes), buffer);
}

test "an edge of the site greets, asks, gets sealed records, and asks again" {
    var session = testSession();
    const hello = helloOf(test_peer_id, test_own_id, &test_key);
    const welcome = feed(&session, &hello).welcome;
    try testing.expect(wire.isAuthentic(&welcome, &test_key, &hello));
    var asked: wire.Session = .init(&test_key, &hello, &welcome);
    var buffer: [wire.record_size_max]u8 = undefined;
    for (0..2) |_| {
        const event = feed(&session, requestOf(&asked.asking, &buffer));
        try testing.expectEqual(4, event.request.piece.index);
        try testing.expect(session.isProved());
        try testing.expectEqual(0, session.wanted().len);
        const record = session.seal(&wire.emitContent(5), &buffer);
        const text = try asked.answering.open(record[wire.head_size..]);
        try testing.expectEqual(5, (try wire.parseAnswer(text)).content);
        session.onAnswered(2000);
        try testing.expectEqual(2000 + idle_limit_ms, session.deadline_ms);
    }
}

test "strangers, other edges' greetings and those for others end without a word" {
    const stranger: wire.Key = @splat(8);
    var altered = helloOf(test_peer_id, test_own_id, &test_key);
    altered[60] ^= 1;
    const greeting: wire.Greeting =
        .{ .kind = .welcome, .from = test_peer_id, .to = test_own_id, .nonce = @splat(3) };
    for ([_]wire.GreetingBytes{
        helloOf(test_peer_id, test_own_id, &stranger),
        helloOf(test_own_id, test_own_id, &test_key),
        helloOf(test_peer_id, test_peer_id, &test_key),
        wire.emitGreeting(&greeting, &test_key, &altered),
        altered,
        @splat(0),
    }) |hello| {
        var session = testSession();
        try testing.expectEqual(Event.close, feed(&session, &hello));
        try testing.expect(!session.isProved());
    }
}

test "a replayed connection gives nothing but another nonce" {
    const hello = helloOf(test_peer_id, test_own_id, &test_key);
    var first = testSession();
    const welcome = feed(&first, &hello).welcome;
    var asked: wire.Session = .init(&test_key, &hello, &welcome);
    var buffer: [wire.record_size_max]u8 = undefined;
    const request = requestOf(&asked.asking, &buffer);
    var second = testSession();
    second.nonce = @splat(10);
    try testing.expect(feed(&second, &hello) == .welcome);
    try testing.expectEqual(Event.close, feed(&second, request));
    try testing.expect(!second.isProved());
    // Nor does a record that is repeated within a connection.
    try testing.expect(feed(&first, request) == .request);
    first.onAnswered(1000);
    try testing.expectEqual(Event.close, feed(&first, request));
}

test "a greeting has 5 s, and a record of another size is none" {
    var session = testSession();
    try testing.expectEqual(1000 + greeting_limit_ms, session.deadline_ms);
    const hello = helloOf(test_peer_id, test_own_id, &test_key);
    _ = feed(&session, &hello);
    try testing.expectEqual(1000 + greeting_limit_ms, session.deadline_ms);
    try testing.expectEqual(Event.close, feed(&session, &.{ 0xff, 0xff }));
}

test "an address has 4 connections, and all have 16" {
    const one: base.Ip4 = .init(10, 0, 0, 1);
    const other: base.Ip4 = .init(10, 0, 0, 2);
    try testing.expect(mayAccept(&.{ one, one, one, other }, one));
    try testing.expect(!mayAccept(&.{ one, one, one, other, one }, one));
    try testing.expect(mayAccept(&.{ one, one, one, one }, other));
    const many: [connections_max]base.Ip4 = @splat(other);
    try testing.expect(!mayAccept(&many, one));
}
