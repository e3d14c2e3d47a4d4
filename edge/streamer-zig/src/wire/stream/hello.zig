//! HELLO, COOKIE and REFUSE of the stream (packages/proto/STREAM.md, "Hello"): the packets in clear
//! text before there is a session.

const std = @import("std");
const stream = @import("stream.zig");
const ticket_packet = @import("ticket.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

pub const hello_size = 240;
/// Of kind `ticket`.
pub const hello_size_max = hello_size + ticket_packet.shown_size;
pub const cookie_size = 64;
pub const refuse_size = 36;

pub const HelloKind = enum(u8) {
    token = 0,
    resumption = 1,
    /// A resumption at an edge that does not know the boot: the device shows another edge's ticket.
    ticket = 2,
};

/// The protection of a session's packets.
pub const Cipher = enum(u8) {
    /// None: only if both sides are configured for it.
    clear = 0,
    aegis_128l = 1,
    chacha20_poly1305 = 2,
};

/// Bit i: cipher i.
pub const Ciphers = packed struct(u8) {
    clear: bool = false,
    aegis_128l: bool = false,
    chacha20_poly1305: bool = false,
    reserved: u5 = 0,
};

pub const Hello = struct {
    client_nonce: [16]u8,
    /// Zeros until the edge has sent one.
    cookie: [32]u8 = @splat(0),
    kind: HelloKind,
    /// Ciphers that the device supports and accepts; at least one.
    ciphers: Ciphers,
    /// UDP payload that the device can receive, in bytes; at least `packet_size_min`.
    packet_size_max: u16,
    boot_id: [16]u8,
    /// X25519 (RFC 7748), new in each hello.
    client_public: [32]u8,
    /// HMAC-SHA256 of this packet with zeros in `cookie` and `proof`. Its key is the boot token, or
    /// the resume secret.
    proof: [32]u8,
    /// Only with kind `ticket`; otherwise null.
    shown: ?ticket_packet.Shown = null,
};

pub const Cookie = struct {
    client_nonce: [16]u8,
    cookie: [32]u8,
};

pub const RefuseCode = enum(u16) {
    token_refused = 1,
    version_missing = 2,
    busy = 3,
    /// Device and edge have no common cipher.
    no_cipher = 4,
    /// The edge has lost the device's writes.
    cache_lost = 5,
    /// The device's writes lie above another version.
    cache_version = 6,
    /// The edge cannot create or open the device's write cache.
    cache_failed = 7,
    /// Another edge keeps the device's writes, and no other edge can continue the boot.
    cache_elsewhere = 8,
};

pub const Refuse = struct {
    client_nonce: [16]u8,
    code: RefuseCode,
};

const HelloLayout = extern struct {
    header: [stream.header_size]u8,
    client_nonce: [16]u8,
    cookie: [32]u8,
    kind: u8,
    ciphers: u8,
    packet_size_max: [2]u8,
    boot_id: [16]u8,
    client_public: [32]u8,
    proof: [32]u8,
    padding: [92]u8,
};

const CookieLayout = extern struct {
    header: [stream.header_size]u8,
    client_nonce: [16]u8,
    cookie: [32]u8,
};

const RefuseLayout = extern struct {
    header: [stream.header_size]u8,
    client_nonce: [16]u8,
    code: [2]u8,
    reserved: [2]u8,
};

comptime {
    assert(@sizeOf(HelloLayout) == hello_size);
    assert(@sizeOf(CookieLayout) == cookie_size);
    assert(@sizeOf(RefuseLayout) == refuse_size);
}

pub fn parseHello(bytes: []const u8) ParseError!Hello {
    const layout = try stream.overlay(HelloLayout, bytes, .at_least);
    const kind = std.enums.fromInt(HelloKind, layout.kind) orelse return error.BadValue;
    if (bytes.len != sizeOf(kind)) return error.WrongSize;
    try stream.expectZero(&layout.padding);
    const ciphers: Ciphers = @bitCast(layout.ciphers);
    if (ciphers.reserved != 0) return error.ReservedNotZero;
    if (layout.ciphers == 0) return error.BadValue;
    const packet_size = stream.int(u16, &layout.packet_size_max);
    if (packet_size < stream.packet_size_min) return error.BadValue;
    return .{
        .client_nonce = layout.client_nonce,
        .cookie = layout.cookie,
        .kind = kind,
        .ciphers = ciphers,
        .packet_size_max = packet_size,
        .boot_id = layout.boot_id,
        .client_public = layout.client_public,
        .proof = layout.proof,
        .shown = if (kind == .ticket) ticket_packet.parseShown(
            bytes[hello_size..][0..ticket_packet.shown_size],
        ) else null,
    };
}

fn sizeOf(kind: HelloKind) usize {
    return if (kind == .ticket) hello_size_max else hello_size;
}

pub fn parseCookie(bytes: []const u8) ParseError!Cookie {
    const layout = try stream.overlay(CookieLayout, bytes, .exactly);
    return .{ .client_nonce = layout.client_nonce, .cookie = layout.cookie };
}

pub fn parseRefuse(bytes: []const u8) ParseError!Refuse {
    const layout = try stream.overlay(RefuseLayout, bytes, .exactly);
    try stream.expectZero(&layout.reserved);
    const code = std.enums.fromInt(RefuseCode, stream.int(u16, &layout.code)) orelse
        return error.BadValue;
    return .{ .client_nonce = layout.client_nonce, .code = code };
}

/// The header is written already.
pub fn emitHello(hello: *const Hello, out: []u8) []u8 {
    const layout = stream.overlayMutable(HelloLayout, out);
    layout.client_nonce = hello.client_nonce;
    layout.cookie = hello.cookie;
    layout.kind = @backingInt(hello.kind);
    layout.ciphers = @bitCast(hello.ciphers);
    std.mem.writeInt(u16, &layout.packet_size_max, hello.packet_size_max, .big);
    layout.boot_id = hello.boot_id;
    layout.client_public = hello.client_public;
    layout.proof = hello.proof;
    layout.padding = @splat(0);
    assert((hello.kind == .ticket) == (hello.shown != null));
    if (hello.shown) |*shown|
        ticket_packet.emitShown(shown, out[hello_size..][0..ticket_packet.shown_size]);
    return out[0..sizeOf(hello.kind)];
}

pub fn emitCookie(cookie: Cookie, out: []u8) []u8 {
    const layout = stream.overlayMutable(CookieLayout, out);
    layout.client_nonce = cookie.client_nonce;
    layout.cookie = cookie.cookie;
    return out[0..cookie_size];
}

pub fn emitRefuse(refuse: Refuse, out: []u8) []u8 {
    const layout = stream.overlayMutable(RefuseLayout, out);
    layout.client_nonce = refuse.client_nonce;
    std.mem.writeInt(u16, &layout.code, @backingInt(refuse.code), .big);
    layout.reserved = @splat(0);
    return out[0..refuse_size];
}
