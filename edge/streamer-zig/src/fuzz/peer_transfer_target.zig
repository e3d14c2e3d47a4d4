//! Fuzzes transfers between edges of a site: greetings and messages by any bytes, and the session
//! of the edge that answers by whole connections, some of them damaged.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").peer_transfer;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const ServingSession = core.difference.ServingSession;
const expect = fuzz_case.expect;

const key: wire.Key = @splat(7);
const own_id: base.Uuid = .fromRandom(@splat(1));
const peer_id: base.Uuid = .fromRandom(@splat(2));

pub fn parser(case: *Case) Violation!bool {
    var buffer: [wire.greeting_size]u8 = undefined;
    case.prng.fill(&buffer);
    const is_ours = case.prng.chance(3, 4);
    if (is_ours) buffer[0..8].* = (wire.magic ++ "\x01\x01\x00\x00").*;
    var accepted = false;
    if (wire.parseGreeting(&buffer)) |greeting| {
        accepted = true;
        const tagged = wire.emitGreeting(
            &greeting,
            &key,
            if (greeting.kind == .welcome) &buffer else null,
        );
        const unsigned = wire.greeting_size - wire.tag_size;
        try expect(
            std.mem.eql(u8, tagged[0..unsigned], buffer[0..unsigned]),
            "emit(parse(x)) == x",
        );
    } else |_| {}
    const size: usize = @intCast(case.prng.below(wire.content_request_size + 2));
    buffer[0] = @truncate(case.prng.below(8));
    if (wire.parseRequest(buffer[0..size])) |request| {
        accepted = true;
        var bytes: wire.RequestBytes = undefined;
        try expect(
            std.mem.eql(u8, wire.emitRequest(request, &bytes), buffer[0..size]),
            "a request has one form",
        );
    } else |_| {}
    buffer[0] = @truncate(case.prng.between(128, 132));
    if (wire.parseAnswer(buffer[0..size])) |_| {
        accepted = true;
    } else |_| {}
    return accepted;
}

/// A connection of an edge that knows the key, or of one that does not, with damaged bytes.
pub fn session(case: *Case) Violation!bool {
    const knows = case.prng.chance(2, 3);
    const damages = case.prng.chance(1, 2);
    var asking_key: wire.Key = key;
    if (!knows) case.prng.fill(&asking_key);
    var peers: ServingSession.Peers = .empty;
    peers.appendAssumeCapacity(peer_id);
    var serving: ServingSession = .init(.{
        .key = key,
        .own_id = own_id,
        .peers = peers,
        .nonce = @splat(9),
    }, 0);
    var hello = wire.emitGreeting(
        &.{ .kind = .hello, .from = peer_id, .to = own_id, .nonce = @splat(3) },
        &asking_key,
        null,
    );
    const is_hello_damaged = damages and case.prng.chance(1, 3);
    if (is_hello_damaged) hello[@intCast(case.prng.below(hello.len))] ^= 1;
    const welcome = switch (try feed(case, &serving, &hello)) {
        .welcome => |bytes| bytes,
        .close => return false,
        .nothing, .request => return expectFalse("a greeting is answered or refused"),
    };
    try expect(knows and !is_hello_damaged, "only an edge of the site is answered");
    var asked: wire.Session = .init(&asking_key, &hello, &welcome);
    for (0..@intCast(case.prng.between(1, 4))) |_| {
        var buffer: [wire.record_size_max]u8 = undefined;
        const request: wire.Request = switch (case.prng.below(6)) {
            0 => .{ .list = own_id },
            1 => .{ .copies = own_id },
            2 => .{ .copy_list = own_id },
            3 => .{ .copy_area = .{ .layer = own_id, .area = case.prng.nextU32() } },
            4 => .{ .piece = .{ .difference = own_id, .index = case.prng.nextU32() } },
            else => .{ .content = .{
                .version = own_id,
                .what = .node,
                .level = @truncate(case.prng.nextU32()),
                .index = case.prng.nextU32(),
            } },
        };
        var bytes: wire.RequestBytes = undefined;
        const record = asked.asking.seal(wire.emitRequest(request, &bytes), &buffer);
        const is_damaged = damages and case.prng.chance(1, 2);
        if (is_damaged) record[@intCast(case.prng.below(record.len))] ^= 1;
        switch (try feed(case, &serving, record)) {
            .request => |got| {
                try expect(!is_damaged, "a damaged record is no request");
                try expect(std.meta.eql(got, request), "a request arrives as it was sent");
                serving.onAnswered(0);
            },
            .close => {
                try expect(is_damaged, "a whole record is not refused");
                return true;
            },
            .nothing, .welcome => return expectFalse("a record is a request, or ends it"),
        }
    }
    return true;
}

fn expectFalse(comptime what: []const u8) Violation!bool {
    try expect(false, what);
    return false;
}

fn feed(case: *Case, serving: *ServingSession, bytes: []const u8) Violation!ServingSession.Event {
    var rest = bytes;
    while (rest.len > 0) {
        const place = serving.wanted();
        try expect(place.len > 0, "a session that waits says for what");
        const most = @min(place.len, rest.len);
        const size: usize = @intCast(case.prng.between(1, most));
        @memcpy(place[0..size], rest[0..size]);
        const event = serving.received(size, 0);
        if (event != .nothing) return event;
        rest = rest[size..];
    }
    return .nothing;
}
