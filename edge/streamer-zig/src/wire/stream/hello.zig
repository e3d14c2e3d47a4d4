//! HELLO, COOKIE and REFUSE of the stream (packages/proto/STREAM.md, "Hello"): the packets in clear
//! text before there is a session.

const std = @import("std");
const stream = @import("stream.zig");
const ticket_packet = @import("ticket.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

/// Of version 2, and of a resumption in version 3.
pub const hello_size = 240;
/// With the device's key and its signature.
pub const hello_size_v3_token = common_size_v3 + 136;
/// Of kind `ticket` in version 2.
pub const hello_size_max = hello_size + ticket_packet.shown_size;
const hello_size_v3_ticket = common_size_v3 + ticket_packet.shown_size;
/// What HELLOs of all kinds begin with.
const common_size_v2 = 148;
const common_size_v3 = 152;
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

/// ECDSA on P-256 (docs/decisions/0026-device-identity.md): 4, x, y; and r, s.
pub const DeviceKey = [65]u8;
pub const DeviceSignature = [64]u8;

pub const Hello = struct {
    version: stream.Version = .v2,
    client_nonce: [16]u8,
    /// Zeros until the edge has sent one.
    cookie: [32]u8 = @splat(0),
    kind: HelloKind,
    /// Ciphers that the device supports and accepts; at least one.
    ciphers: Ciphers,
    /// UDP payload that the device can receive, in bytes; at least `packet_size_min`.
    packet_size_max: u16,
    /// Bit i, from the lowest: the device unpacks codec i + 1. Version 3; bits without a meaning
    /// here belong to later devices.
    codecs: u8 = 0,
    boot_id: [16]u8,
    /// X25519 (RFC 7748), new in each hello.
    client_public: [32]u8,
    /// HMAC-SHA256 of this packet with zeros in `proof`, and in version 2 also in `cookie`. Its key
    /// is the boot token, or the resume secret.
    proof: [32]u8,
    /// Kind `token` of version 3: the key in the device's TPM and its signature
    /// (core/stream/device_signature.zig), or zeros. The signature follows the cookie: a HELLO
    /// without one has zeros.
    device_key: DeviceKey = @splat(0),
    signature: DeviceSignature = @splat(0),
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
    /// The device's key is missing, has changed, or did not sign: what this boot opens is for the
    /// device that is known by its key. Version 3; in version 2 the code is `token_refused`.
    identity_refused = 9,
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
};

/// The same fields, and those of version 3.
const HelloLayoutV3 = extern struct {
    header: [stream.header_size]u8,
    client_nonce: [16]u8,
    cookie: [32]u8,
    kind: u8,
    ciphers: u8,
    packet_size_max: [2]u8,
    codecs: u8,
    reserved: [3]u8,
    boot_id: [16]u8,
    client_public: [32]u8,
    proof: [32]u8,
};

/// Follows the others with kind `token` of version 3.
const IdentityLayout = extern struct {
    device_key: DeviceKey,
    signature: DeviceSignature,
    padding: [7]u8,
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
    assert(@sizeOf(HelloLayout) == common_size_v2);
    assert(@sizeOf(HelloLayoutV3) == common_size_v3);
    assert(common_size_v3 + @sizeOf(IdentityLayout) == hello_size_v3_token);
    assert(hello_size_v3_ticket <= hello_size_max);
    assert(@sizeOf(CookieLayout) == cookie_size);
    assert(@sizeOf(RefuseLayout) == refuse_size);
}

pub fn parseHello(version: stream.Version, bytes: []const u8) ParseError!Hello {
    var hello = switch (version) {
        .v2 => try parseCommon(HelloLayout, bytes),
        .v3 => try parseCommon(HelloLayoutV3, bytes),
    };
    hello.version = version;
    if (bytes.len != sizeOf(version, hello.kind)) return error.WrongSize;
    const rest = bytes[if (version == .v2) common_size_v2 else common_size_v3..];
    switch (hello.kind) {
        .token => switch (version) {
            .v2 => try stream.expectZero(rest),
            .v3 => try parseIdentity(&hello, rest),
        },
        .resumption => try stream.expectZero(rest),
        .ticket => {
            const shown = rest[rest.len - ticket_packet.shown_size ..][0..ticket_packet.shown_size];
            try stream.expectZero(rest[0 .. rest.len - shown.len]);
            hello.shown = ticket_packet.parseShown(shown);
        },
    }
    return hello;
}

fn parseCommon(comptime Layout: type, bytes: []const u8) ParseError!Hello {
    if (bytes.len < hello_size) return error.WrongSize;
    const layout = try stream.overlay(Layout, bytes, .at_least);
    if (Layout == HelloLayoutV3) try stream.expectZero(&layout.reserved);
    const kind = std.enums.fromInt(HelloKind, layout.kind) orelse return error.BadValue;
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
        .codecs = if (Layout == HelloLayoutV3) layout.codecs else 0,
        .boot_id = layout.boot_id,
        .client_public = layout.client_public,
        .proof = layout.proof,
    };
}

fn parseIdentity(hello: *Hello, rest: []const u8) ParseError!void {
    const layout: *const IdentityLayout = @ptrCast(rest[0..@sizeOf(IdentityLayout)]);
    try stream.expectZero(&layout.padding);
    // Zeros, or an uncompressed point.
    if (std.mem.allEqual(u8, &layout.device_key, 0)) {
        try stream.expectZero(&layout.signature);
    } else if (layout.device_key[0] != 4) return error.BadValue;
    hello.device_key = layout.device_key;
    hello.signature = layout.signature;
}

fn sizeOf(version: stream.Version, kind: HelloKind) usize {
    return switch (kind) {
        .token => if (version == .v3) hello_size_v3_token else hello_size,
        .resumption => hello_size,
        .ticket => if (version == .v3) hello_size_v3_ticket else hello_size_max,
    };
}

pub fn parseCookie(bytes: []const u8) ParseError!Cookie {
    const layout = try stream.overlay(CookieLayout, bytes, .exactly);
    return .{ .client_nonce = layout.client_nonce, .cookie = layout.cookie };
}

pub fn parseRefuse(version: stream.Version, bytes: []const u8) ParseError!Refuse {
    const layout = try stream.overlay(RefuseLayout, bytes, .exactly);
    try stream.expectZero(&layout.reserved);
    const code = std.enums.fromInt(RefuseCode, stream.int(u16, &layout.code)) orelse
        return error.BadValue;
    if (version == .v2 and code == .identity_refused) return error.BadValue;
    return .{ .client_nonce = layout.client_nonce, .code = code };
}

/// The header is written already.
pub fn emitHello(hello: *const Hello, out: []u8) []u8 {
    assert((hello.kind == .ticket) == (hello.shown != null));
    const size = sizeOf(hello.version, hello.kind);
    @memset(out[stream.header_size..size], 0);
    switch (hello.version) {
        .v2 => emitCommon(HelloLayout, hello, out),
        .v3 => emitCommon(HelloLayoutV3, hello, out),
    }
    if (hello.shown) |*shown| {
        const at = size - ticket_packet.shown_size;
        ticket_packet.emitShown(shown, out[at..][0..ticket_packet.shown_size]);
    }
    if (hello.version == .v3 and hello.kind == .token) {
        const layout = stream.overlayMutable(IdentityLayout, out[common_size_v3..]);
        layout.device_key = hello.device_key;
        layout.signature = hello.signature;
    } else assert(std.mem.allEqual(u8, &hello.device_key, 0));
    return out[0..size];
}

fn emitCommon(comptime Layout: type, hello: *const Hello, out: []u8) void {
    const layout = stream.overlayMutable(Layout, out);
    layout.client_nonce = hello.client_nonce;
    layout.cookie = hello.cookie;
    layout.kind = @backingInt(hello.kind);
    layout.ciphers = @bitCast(hello.ciphers);
    std.mem.writeInt(u16, &layout.packet_size_max, hello.packet_size_max, .big);
    if (Layout == HelloLayoutV3) layout.codecs = hello.codecs else assert(hello.codecs == 0);
    layout.boot_id = hello.boot_id;
    layout.client_public = hello.client_public;
    layout.proof = hello.proof;
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
