//! Fail-over tickets (packages/proto/STREAM.md, "Fail-over"): an edge of a site seals what another
//! one needs to know about a boot, and the other one decides whether to believe it. Pure: the
//! caller passes time and random bytes.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const stream_seal = @import("seal.zig");
const Aead = std.crypto.aead.chacha_poly.ChaCha20Poly1305;
const HmacSha256 = base.HmacSha256;
const Ticket = wire.ticket.Ticket;

pub const Key = [32]u8;
/// Keys of a site. The first one seals, all open: other edges may have an older or a newer state.
pub const Keys = base.BoundedArray(Key, keys_max);
pub const keys_max = 2;
/// Edges of the release before this one open no other. Once no edge of a site can be that old, the
/// format is 2.
pub const sealed_format: Format = .v1;
/// A device requests a new ticket when half of this is over.
pub const lifetime_s = 7 * std.time.s_per_day;
/// Format 2 uses the first 16 bytes.
pub const Salt = [wire.ticket.salt_size_max]u8;
const Format = wire.ticket.Format;

comptime {
    std.debug.assert(Aead.tag_length == wire.tag_size);
}

/// Each salt gives its own key, so the nonce may be zero.
fn keyOf(format: Format, key: *const Key, salt: []const u8) Key {
    var mac: HmacSha256 = .init(key);
    mac.update(switch (format) {
        .v1 => "bootfarm-ticket-v1",
        .v2 => "bootfarm-ticket-v2",
    });
    mac.update(salt);
    var derived: Key = undefined;
    mac.final(&derived);
    return derived;
}

/// `salt` is random and used once.
pub fn seal(format: Format, key: *const Key, salt: Salt, ticket: *const Ticket) wire.ticket.Sealed {
    var sealed: wire.ticket.Sealed = undefined;
    const used = salt[0..format.saltSize()];
    @memcpy(sealed[0..used.len], used);
    var buffer: [wire.ticket.body_size_max]u8 = undefined;
    const clear = buffer[0..format.bodySize()];
    wire.ticket.emitBody(format, ticket, clear);
    Aead.encrypt(
        sealed[used.len..][0..clear.len],
        sealed[sealed.len - wire.tag_size ..],
        clear,
        "",
        @splat(0),
        keyOf(format, key, used),
    );
    return sealed;
}

/// Returns null if no edge of this site made the ticket.
pub fn open(keys: []const Key, sealed: *const wire.ticket.Sealed) ?Ticket {
    for (std.enums.values(Format)) |format| for (keys) |*key| {
        const salt = sealed[0..format.saltSize()];
        var buffer: [wire.ticket.body_size_max]u8 = undefined;
        const clear = buffer[0..format.bodySize()];
        Aead.decrypt(
            clear,
            sealed[salt.len..][0..clear.len],
            sealed[sealed.len - wire.tag_size ..].*,
            "",
            @splat(0),
            keyOf(format, key, salt),
        ) catch
            continue;
        return wire.ticket.parseBody(format, clear) catch null;
    };
    return null;
}

pub const Judgement = union(enum) {
    /// For this boot and its device, whose own edge is unreachable.
    good: Ticket,
    /// Valid, but the device's writes are kept by the edge that made the ticket; the version below
    /// them must never be served in their place.
    elsewhere: Ticket,
    refused: wire.RefuseCode,
};

/// Decides whether this edge may continue the boot of a HELLO that shows a ticket.
pub fn judge(keys: []const Key, hello: *const wire.Hello, now_unix_ms: u64) Judgement {
    const shown = if (hello.shown) |*shown| shown else return .{ .refused = .token_refused };
    const ticket = open(keys, &shown.ticket) orelse return .{ .refused = .token_refused };
    if (!std.mem.eql(u8, &ticket.boot_id, &hello.boot_id)) return .{ .refused = .token_refused };
    const expected = stream_seal.helloProof(&ticket.resume_secret, hello);
    if (!std.crypto.timing_safe.eql([32]u8, hello.proof, expected))
        return .{ .refused = .token_refused };
    if (now_unix_ms >= ticket.expires_unix_ms) return .{ .refused = .token_refused };
    if (ticket.write_cache != .device_ram) return .{ .elsewhere = ticket };
    return .{ .good = ticket };
}

/// Tells whether a device should send a new HELLO to learn what the next WELCOME contains: it does
/// not know an edge that it could fail over to, or its ticket no longer opens anywhere. `given` is
/// what it has; null: there was no other edge. An edge that disappeared is no reason: the device
/// finds out when it contacts it, and an edge that comes and goes would otherwise cause a HELLO of
/// every device each time.
pub fn isOutdated(
    given: ?*const wire.ticket.Failover,
    listed: []const base.Endpoint,
    keys: []const Key,
) bool {
    if (listed.len == 0 or keys.len == 0) return false;
    const known = given orelse return true;
    if (open(keys, &known.ticket) == null) return true;
    if (known.edges.isFull()) return false;
    for (listed) |edge| {
        for (known.edges.constSlice()) |told| {
            if (told.eql(edge)) break;
        } else return true;
    }
    return false;
}

const testing = std.testing;

test "a device learns of an edge that it does not know, and when its ticket no longer opens" {
    const key: Key = @splat(0x77);
    const edges = [_]base.Endpoint{
        .{ .ip = .init(10, 0, 0, 1), .port = 6910 },
        .{ .ip = .init(10, 0, 0, 2), .port = 6910 },
    };
    var given: wire.ticket.Failover =
        .{ .lifetime_s = 1, .edges = .empty, .ticket = seal(.v1, &key, @splat(1), &testTicket()) };
    given.edges.appendAssumeCapacity(edges[0]);
    try testing.expect(!isOutdated(&given, edges[0..1], &.{key}));
    try testing.expect(isOutdated(&given, &edges, &.{key}));
    try testing.expect(isOutdated(&given, edges[1..], &.{key}));
    try testing.expect(isOutdated(null, edges[0..1], &.{key}));
    // An edge that is gone, whose keys are the second ones by now.
    try testing.expect(!isOutdated(&given, &.{}, &.{key}));
    try testing.expect(!isOutdated(&given, edges[0..1], &.{ @splat(1), key }));
    try testing.expect(isOutdated(&given, edges[0..1], &.{@splat(1)}));
    // Without a key there is no ticket.
    try testing.expect(!isOutdated(null, &edges, &.{}));
    // The list is full.
    while (!given.edges.isFull()) given.edges.appendAssumeCapacity(edges[0]);
    try testing.expect(!isOutdated(&given, &edges, &.{key}));
}

fn testTicket() Ticket {
    var ticket: Ticket = .{
        .boot_id = @splat(1),
        .version_id = @splat(2),
        .vdisk_id = @splat(3),
        .device_id = @splat(4),
        .edge_id = @splat(5),
        .resume_secret = @splat(6),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .write_cache = .device_ram,
        .flags = .{ .managed = true },
        .hand_overs = 3,
        .started_unix_ms = 1_795_000_000_000,
        .elapsed_us = 12_345_678,
        .expires_unix_ms = 1_795_000_000_000 + lifetime_s * std.time.ms_per_s,
        .disk_size = 1 << 30,
    };
    ticket.phases[1] = .{ .start_us = 0, .end_us = 2_000_000 };
    ticket.phases[5] = .{ .start_us = 9_000_000 };
    return ticket;
}

fn testHello(ticket: *const Ticket, key: *const Key) wire.Hello {
    var hello: wire.Hello = .{
        .client_nonce = @splat(9),
        .kind = .ticket,
        .ciphers = .{ .chacha20_poly1305 = true },
        .packet_size_max = 1472,
        .boot_id = ticket.boot_id,
        .client_public = @splat(10),
        .proof = undefined,
        .shown = .{ .age_us = 77, .ticket = seal(.v1, key, @splat(11), ticket) },
    };
    hello.proof = stream_seal.helloProof(&ticket.resume_secret, &hello);
    return hello;
}

const Vector = struct {
    name: []const u8,
    key: []const u8,
    salt: []const u8,
    ticket: struct {
        boot_id: []const u8,
        edge_id: []const u8,
        hand_overs: u16,
        elapsed_us: []const u8,
        flags: u8,
        disk_size: []const u8,
        device_address: ?[]const u8 = null,
        phases: []const []const u8,
    },
    sealed: []const u8,
};

test "tickets match the golden ones" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const texts = .{
        @embedFile("stream_tickets_v1_json"),
        @embedFile("stream_tickets_v2_json"),
    };
    inline for (texts, .{ Format.v1, Format.v2 }) |text, format|
        try checkTickets(format, arena.allocator(), text);
}

fn checkTickets(format: Format, gpa: std.mem.Allocator, text: []const u8) !void {
    const vectors = try std.json.parseFromSliceLeaky([]Vector, gpa, text, .{
        .ignore_unknown_fields = true,
    });
    try testing.expect(vectors.len > 0);
    for (vectors) |*vector| {
        var key: Key = undefined;
        var salt: Salt = @splat(0);
        var sealed: wire.ticket.Sealed = undefined;
        try testing.expectEqual(key.len, (try std.fmt.hexToBytes(&key, vector.key)).len);
        const used = try std.fmt.hexToBytes(&salt, vector.salt);
        try testing.expectEqual(format.saltSize(), used.len);
        try testing.expectEqual(sealed.len, (try std.fmt.hexToBytes(&sealed, vector.sealed)).len);
        const ticket = open(&.{key}, &sealed).?;
        try testing.expectEqualSlices(u8, &sealed, &seal(format, &key, salt, &ticket));
        var boot_id: [16]u8 = undefined;
        _ = try std.fmt.hexToBytes(&boot_id, vector.ticket.boot_id);
        try testing.expectEqual(boot_id, ticket.boot_id);
        try testing.expectEqual(vector.ticket.hand_overs, ticket.hand_overs);
        const disk_size = try std.fmt.parseInt(u64, vector.ticket.disk_size, 16);
        try testing.expectEqual(disk_size, ticket.disk_size);
        var address: [16]u8 = @splat(0);
        if (vector.ticket.device_address) |hex| _ = try std.fmt.hexToBytes(&address, hex);
        try testing.expectEqual(address, ticket.device_address);
        try testing.expectEqual(vector.ticket.flags, @as(u8, @bitCast(ticket.flags)));
        try testing.expectEqual(
            try std.fmt.parseInt(u64, vector.ticket.elapsed_us, 16),
            ticket.elapsed_us,
        );
        for (vector.ticket.phases, ticket.phases) |said, phase| {
            const start_us = try std.fmt.parseInt(u48, said[0..12], 16);
            try testing.expectEqual(start_us == std.math.maxInt(u48), phase == null);
            if (phase) |known| try testing.expectEqual(start_us, known.start_us);
        }
    }
}

test "a ticket opens with the site's keys, old and new, and with no others" {
    const key: Key = @splat(0x77);
    for (std.enums.values(Format)) |format| {
        var ticket = testTicket();
        if (format == .v2) ticket.flags.signed = true;
        const sealed = seal(format, &key, @splat(8), &ticket);
        try testing.expectEqualDeep(ticket, open(&.{key}, &sealed).?);
        try testing.expectEqualDeep(ticket, open(&.{ @splat(1), key }, &sealed).?);
        try testing.expectEqual(null, open(&.{ @splat(1), @splat(2) }, &sealed));
        try testing.expectEqual(null, open(&.{}, &sealed));
        for (0..sealed.len) |index| {
            var changed = sealed;
            changed[index] ^= 1;
            try testing.expectEqual(null, open(&.{key}, &changed));
        }
    }
}

test "only a valid, proven ticket of this boot whose device keeps its own writes is good" {
    const key: Key = @splat(0x77);
    var ticket = testTicket();
    const now = ticket.started_unix_ms;
    try testing.expectEqualDeep(
        Judgement{ .good = ticket },
        judge(&.{key}, &testHello(&ticket, &key), now),
    );
    try testing.expectEqual(
        .token_refused,
        judge(&.{key}, &testHello(&ticket, &key), ticket.expires_unix_ms).refused,
    );
    try testing.expectEqual(
        .token_refused,
        judge(&.{@splat(1)}, &testHello(&ticket, &key), now).refused,
    );
    var hello = testHello(&ticket, &key);
    hello.boot_id[0] ^= 1;
    hello.proof = stream_seal.helloProof(&ticket.resume_secret, &hello);
    try testing.expectEqual(.token_refused, judge(&.{key}, &hello, now).refused);
    hello = testHello(&ticket, &key);
    hello.shown.?.age_us += 1;
    try testing.expectEqual(.token_refused, judge(&.{key}, &hello, now).refused);
    for ([_]wire.WriteCacheClass{ .edge, .edge_persistent, .device_ram_overflow }) |class| {
        ticket.write_cache = class;
        try testing.expectEqualDeep(
            Judgement{ .elsewhere = ticket },
            judge(&.{key}, &testHello(&ticket, &key), now),
        );
        try testing.expectEqual(
            .token_refused,
            judge(&.{key}, &testHello(&ticket, &key), ticket.expires_unix_ms).refused,
        );
    }
}
