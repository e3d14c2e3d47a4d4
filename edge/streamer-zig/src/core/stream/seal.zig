//! Protection of a session's packets (packages/proto/STREAM.md, "Protection"): keys from the HELLO,
//! sealing and opening of packets, and the replay window. Pure functions and small state; the
//! caller passes random numbers.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const assert = std.debug.assert;
const ChaCha = std.crypto.aead.chacha_poly.ChaCha20Poly1305;
const Hkdf = base.HkdfSha256;
const HmacSha256 = base.HmacSha256;
const x25519 = base.x25519;
const aegis128l = base.aegis128l;

const tag_size = wire.tag_size;
const header_size = wire.header_size;

comptime {
    assert(tag_size == aegis128l.tag_size);
    assert(tag_size == ChaCha.tag_length);
}

/// The key of one direction of a session.
pub const Key = struct {
    cipher: wire.Cipher = .clear,
    /// AEGIS-128L uses the first 16 bytes.
    bytes: [32]u8 = @splat(0),

    /// Bytes that sealing adds to a packet.
    pub fn overhead(key: *const Key) u16 {
        return if (key.cipher == .clear) 0 else tag_size;
    }
};

/// Chooses a cipher: the edge prefers the one that this processor computes fast.
pub fn chooseCipher(offered: wire.Ciphers, own: wire.Ciphers) ?wire.Cipher {
    if (offered.clear and own.clear) return .clear;
    if (offered.aegis_128l and own.aegis_128l) return .aegis_128l;
    if (offered.chacha20_poly1305 and own.chacha20_poly1305) return .chacha20_poly1305;
    return null;
}

/// The ciphers that this program accepts unless clear text was requested.
pub fn ownCiphers() wire.Ciphers {
    return .{ .aegis_128l = aegis128l.hasInstructions(), .chacha20_poly1305 = true };
}

/// The ciphers when clear text was requested: clear text, and all others for devices that did not
/// request it.
pub fn withClear() wire.Ciphers {
    var ciphers = ownCiphers();
    ciphers.clear = true;
    return ciphers;
}

/// Word in the edge's kernel command lines: the stream runs in clear text.
pub const clear_word = "bootfarm.stream=clear";

/// Returns the proof of a HELLO: it shows that the sender knows `secret`, the boot token or the
/// resume secret, and that nobody changed the HELLO. In version 3 it also covers the cookie, so it
/// is of no use from another address, or a minute later.
pub fn helloProof(secret: []const u8, hello: *const wire.Hello) [32]u8 {
    var proven = hello.*;
    if (hello.version == .v2) proven.cookie = @splat(0);
    proven.proof = @splat(0);
    return proofOf(secret, .{ .version = hello.version, .body = .{ .hello = proven } });
}

/// Returns the proof of a LOST.
pub fn lostProof(secret: []const u8, lost: *const wire.Lost) [32]u8 {
    var proven = lost.*;
    proven.proof = @splat(0);
    return proofOf(secret, .{ .version = .v3, .body = .{ .lost = proven } });
}

/// Returns the proof of its answer.
pub fn lostAckProof(secret: []const u8, ack: *const wire.LostAck) [32]u8 {
    var proven = ack.*;
    proven.proof = @splat(0);
    return proofOf(secret, .{ .version = .v3, .body = .{ .lost_ack = proven } });
}

fn proofOf(secret: []const u8, packet: wire.Packet) [32]u8 {
    var text: [wire.hello_size_max]u8 = undefined;
    var proof: [32]u8 = undefined;
    HmacSha256.create(&proof, wire.emit(packet, &text), secret);
    return proof;
}

/// Returns the part of a HELLO that is the same in all its transmissions, whatever the cookie.
fn helloText(hello: *const wire.Hello, out: *[wire.hello_size_max]u8) []const u8 {
    var kept = hello.*;
    kept.cookie = @splat(0);
    kept.proof = @splat(0);
    kept.signature = @splat(0);
    return wire.emit(.{ .version = hello.version, .body = .{ .hello = kept } }, out);
}

/// A key pair of X25519; each is used for one HELLO.
pub const KeyPair = struct {
    secret: [32]u8,
    public: [32]u8,

    /// `seed` is random and used once.
    pub fn init(seed: [32]u8) KeyPair {
        return .{ .secret = seed, .public = x25519.publicOf(&seed) };
    }
};

/// The keys of both directions.
pub const SessionKeys = struct {
    from_device: Key,
    from_edge: Key,
    /// First packet counter of the device; nobody else knows it.
    device_counter_first: u64,
};

pub const Agreement = struct {
    hello: *const wire.Hello,
    edge_public: *const [32]u8,
    cipher: wire.Cipher,
    /// The boot token or the resume secret.
    secret: []const u8,
};

/// `own_secret` and `other_public` are of X25519. Returns null if the other key is one of the few
/// that give every peer the same secret.
pub fn agree(agreement: Agreement, own_secret: [32]u8, other_public: [32]u8) ?SessionKeys {
    assert(agreement.cipher != .clear);
    const shared = x25519.shared(&own_secret, &other_public) orelse return null;
    var transcript: base.Sha256 = .init(.{});
    transcript.update(switch (agreement.hello.version) {
        .v2 => "bootfarm stream 2",
        .v3 => "bootfarm stream 3",
    });
    var text: [wire.hello_size_max]u8 = undefined;
    transcript.update(helloText(agreement.hello, &text));
    transcript.update(agreement.edge_public);
    transcript.update(&.{@backingInt(agreement.cipher)});
    const context = transcript.finalResult();
    // RFC 5869; the secret as salt binds the keys to the boot.
    const master = Hkdf.extract(agreement.secret, &shared);
    var bytes: [72]u8 = undefined;
    Hkdf.expand(&bytes, &context, master);
    return .{
        .from_device = .{ .cipher = agreement.cipher, .bytes = bytes[0..32].* },
        .from_edge = .{ .cipher = agreement.cipher, .bytes = bytes[32..64].* },
        // Far from overflow however long the session lasts.
        .device_counter_first = std.mem.readInt(u64, bytes[64..72], .big) >> 2 | 1,
    };
}

/// Seals a packet in `buffer`, which has space for a tag behind it. The first `known_size` bytes
/// stay readable: at least the header, which receives `counter`. No counter is used twice with one
/// key.
pub fn seal(key: *const Key, counter: u64, buffer: []u8, size: usize, known_size: usize) []u8 {
    if (key.cipher == .clear) return buffer[0..size];
    std.mem.writeInt(u64, buffer[8..16], counter, .big);
    const text = buffer[known_size..size];
    sealBytes(key, counter, buffer[0..known_size], text, text, buffer[size..][0..tag_size]);
    return buffer[0 .. size + tag_size];
}

/// Seals a packet of `header` and `payload` directly into `out`.
pub fn sealFragment(
    key: *const Key,
    counter: u64,
    header: *const [header_size]u8,
    payload: []const u8,
    out: []u8,
) []u8 {
    out[0..header_size].* = header.*;
    if (key.cipher == .clear) {
        @memcpy(out[header_size..][0..payload.len], payload);
        return out[0 .. header_size + payload.len];
    }
    std.mem.writeInt(u64, out[8..16], counter, .big);
    const size = header_size + payload.len;
    sealBytes(
        key,
        counter,
        out[0..header_size],
        payload,
        out[header_size..size],
        out[size..][0..tag_size],
    );
    return out[0 .. size + tag_size];
}

fn sealBytes(
    key: *const Key,
    counter: u64,
    known: []const u8,
    text: []const u8,
    out: []u8,
    tag: *[tag_size]u8,
) void {
    switch (key.cipher) {
        .clear => unreachable,
        .aegis_128l => aegis128l.seal(out, tag, text, known, nonce16(counter), key.bytes[0..16]),
        .chacha20_poly1305 => ChaCha.encrypt(out, tag, text, known, nonce12(counter), key.bytes),
    }
}

/// Opens `sealed` into `out`, which then holds the packet as before sealing, except for bytes 8 to
/// 15: its counter. Returns null if no holder of the key sealed exactly this.
pub fn open(key: *const Key, sealed: []const u8, known_size: usize, out: []u8) ?[]u8 {
    assert(key.cipher != .clear);
    if (sealed.len < known_size + tag_size) return null;
    const size = sealed.len - tag_size;
    if (size > out.len) return null;
    const counter = counterOf(sealed);
    const known = sealed[0..known_size];
    const text = sealed[known_size..size];
    const tag = sealed[size..][0..tag_size];
    switch (key.cipher) {
        .clear => unreachable,
        .aegis_128l => if (!aegis128l.open(
            out[known_size..size],
            tag,
            text,
            known,
            nonce16(counter),
            key.bytes[0..16],
        ))
            return null,
        .chacha20_poly1305 => ChaCha.decrypt(
            out[known_size..size],
            text,
            tag.*,
            known,
            nonce12(counter),
            key.bytes,
        ) catch
            return null,
    }
    @memcpy(out[0..known_size], known);
    return out[0..size];
}

/// Opens what `sealFragment` made; `out` is as long as its payload. Returns false if no holder of
/// the key sealed exactly this; `out` then holds nothing of value.
pub fn openFragment(key: *const Key, sealed: []const u8, out: []u8) bool {
    assert(key.cipher != .clear);
    assert(sealed.len == header_size + out.len + tag_size);
    const counter = counterOf(sealed);
    const known = sealed[0..header_size];
    const text = sealed[header_size..][0..out.len];
    const tag = sealed[sealed.len - tag_size ..][0..tag_size];
    switch (key.cipher) {
        .clear => unreachable,
        .aegis_128l => return aegis128l.open(
            out,
            tag,
            text,
            known,
            nonce16(counter),
            key.bytes[0..16],
        ),
        .chacha20_poly1305 => ChaCha.decrypt(
            out,
            text,
            tag.*,
            known,
            nonce12(counter),
            key.bytes,
        ) catch
            return false,
    }
    return true;
}

/// Returns the counter of a packet of at least a header.
pub fn counterOf(packet: []const u8) u64 {
    return std.mem.readInt(u64, packet[8..16], .big);
}

fn nonce16(counter: u64) [16]u8 {
    var nonce: [16]u8 = @splat(0);
    std.mem.writeInt(u64, nonce[8..16], counter, .big);
    return nonce;
}

fn nonce12(counter: u64) [12]u8 {
    var nonce: [12]u8 = @splat(0);
    std.mem.writeInt(u64, nonce[4..12], counter, .big);
    return nonce;
}

/// Replay window: each packet of the other side is accepted once, and none that is too far behind
/// the newest (RFC 4303, section 3.4.3).
pub fn ReplayWindow(comptime size: u32) type {
    assert(size % 64 == 0);
    return struct {
        const Window = @This();
        pub const reach = size;

        newest: u64 = 0,
        is_used: bool = false,
        /// Bit i % 64 of word i / 64 stands for counter i, for the last `size` counters.
        seen: [size / 64]u64 = @splat(0),

        /// Tells whether a packet with this counter may be accepted; checked before it is opened.
        pub fn isNew(window: *const Window, counter: u64) bool {
            if (!window.is_used or counter > window.newest) return true;
            if (window.newest - counter >= size) return false;
            return window.seen[counter / 64 % window.seen.len] >> @intCast(counter % 64) & 1 == 0;
        }

        /// Records the counter of a packet that was opened and is genuine.
        pub fn note(window: *Window, counter: u64) void {
            assert(window.isNew(counter));
            if (!window.is_used or counter > window.newest) {
                const before = if (window.is_used) window.newest else counter -| 1;
                if (!window.is_used or counter -
                    before >= size) window.seen = @splat(0) else window.forget(before + 1, counter);
                window.newest = counter;
                window.is_used = true;
            }
            window.seen[counter / 64 % window.seen.len] |= @as(u64, 1) << @intCast(counter % 64);
        }

        fn forget(window: *Window, first: u64, last: u64) void {
            var counter = first;
            while (counter <= last) {
                const word = &window.seen[counter / 64 % window.seen.len];
                if (counter % 64 == 0 and last - counter >= 63) {
                    word.* = 0;
                    counter += 64;
                } else {
                    word.* &= ~(@as(u64, 1) << @intCast(counter % 64));
                    counter += 1;
                }
            }
        }
    };
}

test {
    _ = @import("seal_test.zig");
}
