//! Transfers of differences between the edges of a site over TCP: packages/proto/PEERS.md,
//! "Transfers". Golden bytes: packages/proto/vectors/peer-transfer-v1.json. Two greetings in clear
//! text carry nonces and tags by the site's key; everything after them is sealed records. A
//! greeting with an unverified tag, and a record that does not open, must never be acted on.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const ChaCha = std.crypto.aead.chacha_poly.ChaCha20Poly1305;
const Hmac = base.HmacSha256;
const Uuid = base.Uuid;

pub const magic = "BFPT";
pub const version = 1;
pub const nonce_size = 32;
pub const tag_size = 16;
pub const greeting_size = 8 + 2 * 16 + nonce_size + tag_size;
/// Bytes of content that one record has at most.
pub const content_size_max = 32 * 1024;
pub const head_size = 2;
const seal_size = ChaCha.tag_length;
pub const record_size_max = head_size + 1 + content_size_max + seal_size;
pub const request_size = 1 + 16 + 4;
pub const content_request_size = 1 + 16 + 1 + 1 + 8;
/// Bytes of a request behind its head.
pub const sealed_request_size = request_size + seal_size;
/// Likewise, of a request for a version's content.
pub const sealed_content_request_size = content_request_size + seal_size;

comptime {
    assert(record_size_max - head_size <= std.math.maxInt(u16));
}

pub const Key = [Hmac.key_length]u8;

/// The key of greetings and sessions: the state's key is never used for anything else directly.
pub fn deriveKey(site_key: [32]u8) Key {
    var key: Key = undefined;
    Hmac.create(&key, "bootfarm-transfers-v1", &site_key);
    return key;
}

pub const Kind = enum(u8) {
    /// Of the edge that asks.
    hello = 1,
    /// Of the edge that answers; its tag covers the HELLO, too.
    welcome = 2,
};

pub const Greeting = struct { kind: Kind, from: Uuid, to: Uuid, nonce: [nonce_size]u8 };

pub const GreetingBytes = [greeting_size]u8;

pub const ParseError = error{ Truncated, NotTransfer, WrongVersion, BadValue };

pub fn parseGreeting(bytes: *const GreetingBytes) ParseError!Greeting {
    var cursor: base.Cursor = .init(bytes);
    if (!std.mem.eql(u8, try cursor.array(magic.len), magic)) return error.NotTransfer;
    if (try cursor.int(u8) != version) return error.WrongVersion;
    const kind = std.enums.fromInt(Kind, try cursor.int(u8)) orelse return error.BadValue;
    if (try cursor.int(u16) != 0) return error.BadValue;
    return .{
        .kind = kind,
        .from = .fromBytes((try cursor.array(16)).*),
        .to = .fromBytes((try cursor.array(16)).*),
        .nonce = (try cursor.array(nonce_size)).*,
    };
}

/// `hello`: the HELLO that a WELCOME answers.
pub fn emitGreeting(
    greeting: *const Greeting,
    key: *const Key,
    hello: ?*const GreetingBytes,
) GreetingBytes {
    assert((greeting.kind == .welcome) == (hello != null));
    var bytes: GreetingBytes = undefined;
    var writer: base.ByteWriter = .init(&bytes);
    writeGreeting(greeting, &writer) catch unreachable;
    const tag = tagOf(writer.written(), key, hello);
    writer.bytes(&tag) catch unreachable;
    assert(writer.position == greeting_size);
    return bytes;
}

fn writeGreeting(greeting: *const Greeting, writer: *base.ByteWriter) base.ByteWriter.Error!void {
    try writer.bytes(magic);
    try writer.int(u8, version);
    try writer.int(u8, @backingInt(greeting.kind));
    try writer.int(u16, 0);
    try writer.bytes(&greeting.from.bytes);
    try writer.bytes(&greeting.to.bytes);
    try writer.bytes(&greeting.nonce);
}

/// Compared in constant time.
pub fn isAuthentic(
    bytes: *const GreetingBytes,
    key: *const Key,
    hello: ?*const GreetingBytes,
) bool {
    const own = tagOf(bytes[0 .. greeting_size - tag_size], key, hello);
    return std.crypto.timing_safe.eql([tag_size]u8, own, bytes[greeting_size - tag_size ..].*);
}

fn tagOf(bytes: []const u8, key: *const Key, hello: ?*const GreetingBytes) [tag_size]u8 {
    var hmac: Hmac = .init(key);
    if (hello) |first| hmac.update(first);
    hmac.update(bytes);
    var whole: [Hmac.mac_length]u8 = undefined;
    hmac.final(&whole);
    return whole[0..tag_size].*;
}

/// The keys of one connection: both nonces are in them, so none is ever used again.
pub const Session = struct {
    asking: Direction,
    answering: Direction,

    pub fn init(
        key: *const Key,
        hello: *const GreetingBytes,
        welcome: *const GreetingBytes,
    ) Session {
        var secret: [Hmac.mac_length]u8 = undefined;
        var hmac: Hmac = .init(key);
        hmac.update("bootfarm-transfer-session-v1");
        hmac.update(hello);
        hmac.update(welcome);
        hmac.final(&secret);
        var session: Session = .{ .asking = .{}, .answering = .{} };
        Hmac.create(&session.asking.key, "asking", &secret);
        Hmac.create(&session.answering.key, "answering", &secret);
        return session;
    }
};

/// Records of one direction; their order is part of the seal.
pub const Direction = struct {
    key: [32]u8 = undefined,
    counter: u64 = 0,

    /// Writes a whole record with its head.
    pub fn seal(direction: *Direction, text: []const u8, buffer: *[record_size_max]u8) []u8 {
        assert(text.len > 0 and text.len <= 1 + content_size_max);
        const size: u16 = @intCast(text.len + seal_size);
        std.mem.writeInt(u16, buffer[0..head_size], size, .big);
        const sealed = buffer[head_size..][0..text.len];
        const tag = buffer[head_size + text.len ..][0..seal_size];
        ChaCha.encrypt(sealed, tag, text, buffer[0..head_size], direction.nonce(), direction.key);
        direction.counter += 1;
        return buffer[0 .. head_size + size];
    }

    /// Opens a record in place, without its head; returns its text.
    pub fn open(direction: *Direction, record: []u8) error{Forged}![]u8 {
        if (record.len <= seal_size or record.len > record_size_max - head_size)
            return error.Forged;
        var head: [head_size]u8 = undefined;
        std.mem.writeInt(u16, &head, @intCast(record.len), .big);
        const text = record[0 .. record.len - seal_size];
        const tag = record[record.len - seal_size ..][0..seal_size].*;
        ChaCha.decrypt(text, text, tag, &head, direction.nonce(), direction.key) catch
            return error.Forged;
        direction.counter += 1;
        return text;
    }

    fn nonce(direction: *const Direction) [ChaCha.nonce_length]u8 {
        var bytes: [ChaCha.nonce_length]u8 = @splat(0);
        std.mem.writeInt(u64, bytes[4..12], direction.counter, .big);
        return bytes;
    }
};

pub const Request = union(enum) {
    list: Uuid,
    piece: struct { difference: Uuid, index: u32 },
    content: VersionContent,
    /// Which write layers of the edge have copies: those with ids above this one.
    copies: Uuid,
    /// The list of a layer's copy.
    copy_list: Uuid,
    /// The owned blocks of an area of a layer.
    copy_area: struct { layer: Uuid, area: u32 },
};

/// A part of a version, to repair the same version in another store.
pub const VersionContent = struct {
    version: Uuid,
    what: What,
    /// Of a node; otherwise 0.
    level: u8 = 0,
    /// Of the block on the disk, of the node among those of its level, of the piece in its file.
    index: u64,

    pub const What = enum(u8) {
        /// 4096 bytes.
        block = 1,
        /// The hashes of its entries.
        node = 2,
        /// A piece of the file.
        kernel = 3,
        initramfs = 4,
    };
};

const list_type = 1;
const piece_type = 2;
const version_content_type = 3;
const copies_type = 4;
const copy_list_type = 5;
const copy_area_type = 6;

pub fn parseRequest(text: []const u8) ParseError!Request {
    var cursor: base.Cursor = .init(text);
    const kind = try cursor.int(u8);
    const size: usize = if (kind == version_content_type) content_request_size else request_size;
    if (text.len != size) return error.BadValue;
    const id: Uuid = .fromBytes((try cursor.array(16)).*);
    if (kind == version_content_type) {
        const content: VersionContent = .{
            .version = id,
            .what = std.enums.fromInt(VersionContent.What, try cursor.int(u8)) orelse
                return error.BadValue,
            .level = try cursor.int(u8),
            .index = try cursor.int(u64),
        };
        if (content.what != .node and content.level != 0) return error.BadValue;
        return .{ .content = content };
    }
    const index = try cursor.int(u32);
    return switch (kind) {
        list_type => if (index == 0) .{ .list = id } else error.BadValue,
        piece_type => .{ .piece = .{ .difference = id, .index = index } },
        copies_type => if (index == 0) .{ .copies = id } else error.BadValue,
        copy_list_type => if (index == 0) .{ .copy_list = id } else error.BadValue,
        copy_area_type => .{ .copy_area = .{ .layer = id, .area = index } },
        else => error.BadValue,
    };
}

pub const RequestBytes = [content_request_size]u8;

/// Returns the part of `bytes` that the request takes.
pub fn emitRequest(request: Request, bytes: *RequestBytes) []u8 {
    var writer: base.ByteWriter = .init(bytes);
    writeRequest(request, &writer) catch unreachable;
    return bytes[0..writer.position];
}

fn writeRequest(request: Request, writer: *base.ByteWriter) base.ByteWriter.Error!void {
    switch (request) {
        .list => |id| try writeNumbered(writer, list_type, id, 0),
        .piece => |piece| try writeNumbered(writer, piece_type, piece.difference, piece.index),
        .copies => |above| try writeNumbered(writer, copies_type, above, 0),
        .copy_list => |layer| try writeNumbered(writer, copy_list_type, layer, 0),
        .copy_area => |asked| try writeNumbered(writer, copy_area_type, asked.layer, asked.area),
        .content => |content| {
            assert(content.what == .node or content.level == 0);
            try writer.int(u8, version_content_type);
            try writer.bytes(&content.version.bytes);
            try writer.int(u8, @backingInt(content.what));
            try writer.int(u8, content.level);
            try writer.int(u64, content.index);
        },
    }
}

fn writeNumbered(
    writer: *base.ByteWriter,
    kind: u8,
    id: Uuid,
    number: u32,
) base.ByteWriter.Error!void {
    try writer.int(u8, kind);
    try writer.bytes(&id.bytes);
    try writer.int(u32, number);
}

/// What an edge offers of a copy of one of its write layers; the content of an answer to `copies`
/// is up to `copies_max` of them, by their ids. Fewer are the last.
pub const CopySummary = struct {
    /// Names the layer in requests.
    layer: Uuid,
    /// A layer that was dropped and made again has the same name, and another id.
    layer_id: Uuid,
    /// The layer was so at this time of that edge.
    moment_unix_ms: u64,
    /// Of the body of its list.
    entries: u32,
    sha256: [32]u8,

    pub const size = 16 + 16 + 8 + 4 + 32;
    pub const Bytes = [size]u8;

    pub fn emit(summary: *const CopySummary) Bytes {
        var bytes: Bytes = undefined;
        bytes[0..16].* = summary.layer.bytes;
        bytes[16..32].* = summary.layer_id.bytes;
        std.mem.writeInt(u64, bytes[32..40], summary.moment_unix_ms, .big);
        std.mem.writeInt(u32, bytes[40..44], summary.entries, .big);
        bytes[44..76].* = summary.sha256;
        return bytes;
    }

    pub fn parse(bytes: *const Bytes) CopySummary {
        return .{
            .layer = .fromBytes(bytes[0..16].*),
            .layer_id = .fromBytes(bytes[16..32].*),
            .moment_unix_ms = std.mem.readInt(u64, bytes[32..40], .big),
            .entries = std.mem.readInt(u32, bytes[40..44], .big),
            .sha256 = bytes[44..76].*,
        };
    }
};

pub const copies_max = 48;

/// Why a request is not answered with content.
pub const Absence = enum(u8) {
    /// The edge has nothing of the difference.
    unknown = 1,
    /// The edge has not got this piece yet.
    absent = 2,
    /// The edge's disk has other bytes than it should.
    damaged = 3,
};

/// The first record of an answer: the size of the content, which follows in records of their own.
pub const Answer = union(enum) {
    content: u32,
    absence: Absence,
    /// Bytes of the content.
    part: []const u8,
};

const content_type = 129;
const absence_type = 130;
const part_type = 131;
pub const answer_size_max = 5;

pub fn parseAnswer(text: []const u8) ParseError!Answer {
    var cursor: base.Cursor = .init(text);
    const answer: Answer = switch (try cursor.int(u8)) {
        content_type => .{ .content = try cursor.int(u32) },
        absence_type => .{
            .absence = std.enums.fromInt(Absence, try cursor.int(u8)) orelse
                return error.BadValue,
        },
        part_type => return if (text.len == 1) error.BadValue else .{ .part = cursor.rest() },
        else => return error.BadValue,
    };
    return if (cursor.remaining() > 0) error.BadValue else answer;
}

pub fn emitContent(size: u32) [answer_size_max]u8 {
    var bytes: [answer_size_max]u8 = undefined;
    bytes[0] = content_type;
    std.mem.writeInt(u32, bytes[1..5], size, .big);
    return bytes;
}

pub fn emitAbsence(absence: Absence) [2]u8 {
    return .{ absence_type, @backingInt(absence) };
}

/// The text of a part is this byte and then the part.
pub const part_mark: u8 = part_type;
