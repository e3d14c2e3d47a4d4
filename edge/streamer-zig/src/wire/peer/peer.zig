//! Messages between the edges of a site: packages/proto/PEERS.md. Golden packets:
//! packages/proto/vectors/peers-v1.json. Every message carries a tag by the site's key; a message
//! with an unverified tag must never be acted on.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const Hmac = base.HmacSha256;
const Mac = base.Mac;
const Uuid = base.Uuid;

pub const magic = "BFPE";
pub const version = 1;
pub const header_size = 40;
pub const tag_size = 16;
/// Other edges that one ALIVE may name: those of a site except its sender.
pub const heard_max = 15;
pub const packet_size_max = header_size + alive_size + heard_max * heard_size + tag_size;

const alive_size = 8;
const heard_size = 24;
const claim_size = 28;
const holdings_size = 36;
const holding_size = 17;
/// Versions that one HOLDINGS may name.
pub const holdings_max =
    (packet_size_max - header_size - holdings_size - tag_size) / holding_size;

pub const Key = [Hmac.key_length]u8;

/// The key of the tags: the state's key is never used for anything else directly.
pub fn deriveKey(site_key: [32]u8) Key {
    var key: Key = undefined;
    Hmac.create(&key, "bootfarm-peers-v1", &site_key);
    return key;
}

pub const Type = enum(u8) { alive = 1, claim = 2, release = 3, holdings = 4 };

/// Progress of a boot at its edge.
pub const Stage = enum(u8) {
    /// The edge has answered; the device may take another edge's answer.
    offered = 1,
    /// The device has chosen this edge: a REQUEST, or a first download.
    taken = 2,
};

/// The highest boot epoch that the sender has received from an edge.
pub const Heard = struct { edge: Uuid, epoch: u64 };

pub const Alive = struct {
    /// Devices in the middle of a boot.
    booting: u32,
    draining: bool,
    /// It has started and does not know the others' boots: they announce all of them again.
    starting: bool = false,
    heard: base.BoundedArray(Heard, heard_max) = .empty,
};

/// A boot of the sender: one in progress or, as a release, one that is over or was none.
pub const Claim = struct {
    boot: Uuid,
    mac: Mac,
    stage: Stage,
    /// The device's iPXE was seen first in this boot, not its firmware.
    begun_by_loader: bool,
    /// The device has proved itself in this boot. Older edges refuse a message that tells it.
    is_proved: bool = false,
    /// Time since the device's last progress.
    age_ms: u32,
};

pub const Copy = enum(u8) {
    lacking = 0,
    /// Whole: devices can boot it there.
    held = 1,
    /// Parts of it cannot be read, or are other bytes.
    damaged = 2,
};

/// What an edge has of a version.
pub const Holding = struct { version: Uuid, copy: Copy };

/// What the sender knows of its versions from `first` to `last`, in ascending order of their ids.
/// Of others in this range it knows nothing.
pub const Holdings = struct {
    first: Uuid,
    last: Uuid,
    /// Where the sender serves boot scripts; 0: nowhere.
    http_port: u16,
    list: base.BoundedArray(Holding, holdings_max) = .empty,
};

pub const Body = union(Type) { alive: Alive, claim: Claim, release: Claim, holdings: Holdings };

pub const Message = struct {
    edge: Uuid,
    /// Epoch of the sender's start; grows with each.
    epoch: u64,
    /// Grows by each message of an epoch, from 1.
    counter: u64,
    body: Body,
};

pub const ParseError =
    error{ WrongSize, NotPeer, WrongVersion, UnknownType, ReservedNotZero, BadValue };

/// Parses one UDP payload; `isAuthentic` verifies it.
pub fn parse(payload: []const u8) ParseError!Message {
    if (payload.len < header_size + tag_size or payload.len > packet_size_max)
        return error.WrongSize;
    var cursor: base.Cursor = .init(payload[0 .. payload.len - tag_size]);
    return parseWhole(&cursor) catch |err| switch (err) {
        error.Truncated => error.WrongSize,
        else => |other| other,
    };
}

fn parseWhole(cursor: *base.Cursor) (ParseError || error{Truncated})!Message {
    if (!std.mem.eql(u8, try cursor.array(magic.len), magic)) return error.NotPeer;
    if (try cursor.int(u8) != version) return error.WrongVersion;
    const kind = std.enums.fromInt(Type, try cursor.int(u8)) orelse return error.UnknownType;
    if (try cursor.int(u16) != cursor.buffer.len - header_size) return error.WrongSize;
    const edge: Uuid = .fromBytes((try cursor.array(16)).*);
    const epoch = try cursor.int(u64);
    const counter = try cursor.int(u64);
    if (epoch == 0 or counter == 0) return error.BadValue;
    assert(cursor.position == header_size);
    const body: Body = switch (kind) {
        .alive => .{ .alive = try parseAlive(cursor) },
        .claim => .{ .claim = try parseClaim(cursor) },
        .release => .{ .release = try parseClaim(cursor) },
        .holdings => .{ .holdings = try parseHoldings(cursor) },
    };
    if (cursor.remaining() > 0) return error.WrongSize;
    return .{ .edge = edge, .epoch = epoch, .counter = counter, .body = body };
}

fn parseAlive(cursor: *base.Cursor) (ParseError || error{Truncated})!Alive {
    var alive: Alive = .{ .booting = try cursor.int(u32), .draining = false };
    const flags = try cursor.int(u8);
    if (flags > 3) return error.ReservedNotZero;
    alive.draining = flags & 1 != 0;
    alive.starting = flags & 2 != 0;
    const count = try cursor.int(u8);
    if (try cursor.int(u16) != 0) return error.ReservedNotZero;
    if (count > heard_max) return error.BadValue;
    for (0..count) |_| alive.heard.appendAssumeCapacity(.{
        .edge = .fromBytes((try cursor.array(16)).*),
        .epoch = try cursor.int(u64),
    });
    return alive;
}

fn parseClaim(cursor: *base.Cursor) (ParseError || error{Truncated})!Claim {
    const boot: Uuid = .fromBytes((try cursor.array(16)).*);
    const mac: Mac = .{ .bytes = (try cursor.array(6)).* };
    const stage = std.enums.fromInt(Stage, try cursor.int(u8)) orelse return error.BadValue;
    const flags = try cursor.int(u8);
    if (flags > 3) return error.ReservedNotZero;
    if (!mac.isDevice()) return error.BadValue;
    return .{
        .boot = boot,
        .mac = mac,
        .stage = stage,
        .begun_by_loader = flags & 1 != 0,
        .is_proved = flags & 2 != 0,
        .age_ms = try cursor.int(u32),
    };
}

fn parseHoldings(cursor: *base.Cursor) (ParseError || error{Truncated})!Holdings {
    var holdings: Holdings = .{
        .first = .fromBytes((try cursor.array(16)).*),
        .last = .fromBytes((try cursor.array(16)).*),
        .http_port = try cursor.int(u16),
    };
    const count = try cursor.int(u8);
    if (try cursor.int(u8) != 0) return error.ReservedNotZero;
    if (count > holdings_max) return error.BadValue;
    if (isBefore(holdings.last, holdings.first)) return error.BadValue;
    for (0..count) |index| {
        const id: Uuid = .fromBytes((try cursor.array(16)).*);
        const copy = std.enums.fromInt(Copy, try cursor.int(u8)) orelse return error.BadValue;
        if (isBefore(id, holdings.first) or isBefore(holdings.last, id)) return error.BadValue;
        if (index > 0 and !isBefore(holdings.list.buffer[index - 1].version, id))
            return error.BadValue;
        holdings.list.appendAssumeCapacity(.{ .version = id, .copy = copy });
    }
    return holdings;
}

/// The order of versions in HOLDINGS.
pub fn isBefore(a: Uuid, b: Uuid) bool {
    return std.mem.order(u8, &a.bytes, &b.bytes) == .lt;
}

/// The tag over everything before it; compared in constant time.
pub fn isAuthentic(payload: []const u8, key: *const Key) bool {
    if (payload.len < header_size + tag_size) return false;
    const said = payload[payload.len - tag_size ..][0..tag_size];
    const own = tagOf(payload[0 .. payload.len - tag_size], key);
    return std.crypto.timing_safe.eql([tag_size]u8, own, said.*);
}

/// Writes a message with its tag.
pub fn emit(message: *const Message, key: *const Key, buffer: *[packet_size_max]u8) []u8 {
    assert(message.epoch > 0);
    assert(message.counter > 0);
    var writer: base.ByteWriter = .init(buffer);
    emitWhole(message, &writer) catch unreachable;
    const tag = tagOf(writer.written(), key);
    writer.bytes(&tag) catch unreachable;
    return writer.written();
}

fn emitWhole(message: *const Message, writer: *base.ByteWriter) base.ByteWriter.Error!void {
    const body_size: usize = switch (message.body) {
        .alive => |*alive| alive_size + heard_size * alive.heard.count,
        .claim, .release => claim_size,
        .holdings => |*holdings| holdings_size + holding_size * holdings.list.count,
    };
    try writer.bytes(magic);
    try writer.int(u8, version);
    try writer.int(u8, @backingInt(std.meta.activeTag(message.body)));
    try writer.int(u16, @intCast(body_size));
    try writer.bytes(&message.edge.bytes);
    try writer.int(u64, message.epoch);
    try writer.int(u64, message.counter);
    switch (message.body) {
        .alive => |*alive| {
            try writer.int(u32, alive.booting);
            const starting: u8 = @intFromBool(alive.starting);
            try writer.int(u8, starting << 1 | @intFromBool(alive.draining));
            try writer.int(u8, @intCast(alive.heard.count));
            try writer.int(u16, 0);
            for (alive.heard.constSlice()) |*heard| {
                try writer.bytes(&heard.edge.bytes);
                try writer.int(u64, heard.epoch);
            }
        },
        .claim, .release => |*claim| {
            try writer.bytes(&claim.boot.bytes);
            try writer.bytes(&claim.mac.bytes);
            try writer.int(u8, @backingInt(claim.stage));
            const proved: u8 = @intFromBool(claim.is_proved);
            try writer.int(u8, proved << 1 | @intFromBool(claim.begun_by_loader));
            try writer.int(u32, claim.age_ms);
        },
        .holdings => |*holdings| {
            try writer.bytes(&holdings.first.bytes);
            try writer.bytes(&holdings.last.bytes);
            try writer.int(u16, holdings.http_port);
            try writer.int(u8, @intCast(holdings.list.count));
            try writer.int(u8, 0);
            for (holdings.list.constSlice()) |*holding| {
                try writer.bytes(&holding.version.bytes);
                try writer.int(u8, @backingInt(holding.copy));
            }
        },
    }
    assert(writer.position == header_size + body_size);
}

fn tagOf(bytes: []const u8, key: *const Key) [tag_size]u8 {
    var whole: [Hmac.mac_length]u8 = undefined;
    Hmac.create(&whole, bytes, key);
    return whole[0..tag_size].*;
}
