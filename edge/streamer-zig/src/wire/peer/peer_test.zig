//! Tests of peer.zig with the golden messages of packages/proto/vectors/peers-v1.json. In them
//! bytes are hex.

const std = @import("std");
const base = @import("base");
const peer = @import("peer.zig");
const testing = std.testing;

const Heard = struct { edge: base.Uuid, epoch: u64 };

const Holding = struct { version: base.Uuid, copy: peer.Copy };

const Fields = struct {
    type: peer.Type,
    edge: base.Uuid,
    epoch: u64,
    counter: u64,
    booting: u32 = 0,
    draining: bool = false,
    starting: bool = false,
    heard: []const Heard = &.{},
    boot: base.Uuid = .zero,
    mac: base.Mac = .zero,
    stage: peer.Stage = .offered,
    begunByLoader: bool = false,
    isProved: bool = false,
    ageMs: u32 = 0,
    first: base.Uuid = .zero,
    last: base.Uuid = .zero,
    httpPort: u16 = 0,
    holdings: []const Holding = &.{},
};

const Vectors = struct {
    siteKey: []const u8,
    messageKey: []const u8,
    messages: []const struct { name: []const u8, hex: []const u8, fields: Fields },
    refused: []const struct { name: []const u8, hex: []const u8, why: []const u8 },
};

fn bytesOf(hex: []const u8, buffer: []u8) ![]u8 {
    return std.fmt.hexToBytes(buffer, hex);
}

fn messageOf(fields: *const Fields) !peer.Message {
    var alive: peer.Alive =
        .{ .booting = fields.booting, .draining = fields.draining, .starting = fields.starting };
    for (fields.heard) |*heard|
        try alive.heard.append(.{ .edge = heard.edge, .epoch = heard.epoch });
    const claim: peer.Claim = .{
        .boot = fields.boot,
        .mac = fields.mac,
        .stage = fields.stage,
        .begun_by_loader = fields.begunByLoader,
        .is_proved = fields.isProved,
        .age_ms = fields.ageMs,
    };
    var holdings: peer.Holdings =
        .{ .first = fields.first, .last = fields.last, .http_port = fields.httpPort };
    for (fields.holdings) |*holding|
        try holdings.list.append(.{ .version = holding.version, .copy = holding.copy });
    return .{
        .edge = fields.edge,
        .epoch = fields.epoch,
        .counter = fields.counter,
        .body = switch (fields.type) {
            .alive => .{ .alive = alive },
            .claim => .{ .claim = claim },
            .release => .{ .release = claim },
            .holdings => .{ .holdings = holdings },
        },
    };
}

fn reasonOf(err: peer.ParseError) []const u8 {
    return switch (err) {
        error.WrongSize => "wrong_size",
        error.NotPeer => "not_peer",
        error.WrongVersion => "wrong_version",
        error.UnknownType => "unknown_type",
        error.ReservedNotZero => "reserved_not_zero",
        error.BadValue => "bad_value",
    };
}

test "golden messages are emitted and parsed byte for byte, and invalid ones are refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try std.json.parseFromSliceLeaky(
        Vectors,
        arena.allocator(),
        @embedFile("peers_vectors_json"),
        .{ .ignore_unknown_fields = true },
    );
    var site_key: [32]u8 = undefined;
    _ = try bytesOf(vectors.siteKey, &site_key);
    const key = peer.deriveKey(site_key);
    try testing.expectEqualStrings(vectors.messageKey, &std.fmt.bytesToHex(key, .lower));
    try testing.expect(vectors.messages.len >= 5);
    for (vectors.messages) |*vector| {
        var golden_buffer: [peer.packet_size_max]u8 = undefined;
        const golden = try bytesOf(vector.hex, &golden_buffer);
        const message = try messageOf(&vector.fields);
        var buffer: [peer.packet_size_max]u8 = undefined;
        try testing.expectEqualSlices(u8, golden, peer.emit(&message, &key, &buffer));
        try testing.expect(peer.isAuthentic(golden, &key));
        var again: [peer.packet_size_max]u8 = undefined;
        const parsed = try peer.parse(golden);
        try testing.expectEqualSlices(u8, golden, peer.emit(&parsed, &key, &again));
        golden[golden.len / 2] ^= 1;
        try testing.expect(!peer.isAuthentic(golden, &key));
    }
    for (vectors.refused) |vector| {
        var buffer: [peer.packet_size_max + 64]u8 = undefined;
        const bytes = try bytesOf(vector.hex, &buffer);
        if (std.mem.eql(u8, vector.why, "not_authentic")) {
            try testing.expect(!peer.isAuthentic(bytes, &key));
            continue;
        }
        if (peer.parse(bytes)) |_| return error.Accepted else |err| testing.expectEqualStrings(
            vector.why,
            reasonOf(err),
        ) catch |failure| {
            std.debug.print("vector: {s}\n", .{vector.name});
            return failure;
        };
    }
}
