//! Opens what the control plane sealed to this edge: HPKE (RFC 9180) in base mode, one message for
//! each encapsulation, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20Poly1305
//! (`sealBox` in packages/proto/src/sealed-box.ts). Anybody can make a box, so it must never be
//! believed unless what it came in is signed. Pure.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const x25519 = base.x25519;
const Hmac = base.HmacSha256;
const ChaCha = std.crypto.aead.chacha_poly.ChaCha20Poly1305;

/// The encapsulated key and the tag.
pub const overhead_size = x25519.key_size + ChaCha.tag_length;

/// `KEM` and the id of DHKEM(X25519, HKDF-SHA256).
const kem_suite = "KEM\x00\x20";
/// `HPKE` and the ids of KEM, KDF and AEAD.
const suite = "HPKE\x00\x20\x00\x01\x00\x03";
const base_mode = 0;

comptime {
    assert(Hmac.mac_length == x25519.key_size);
    assert(ChaCha.key_length == Hmac.mac_length);
    assert(ChaCha.nonce_length < Hmac.mac_length);
}

/// `NotOpened`: sealed to another key, for another purpose, or changed on the way.
pub const Error = error{ Truncated, NotOpened };

pub const Box = struct {
    /// The encapsulated key, the ciphertext and the tag.
    bytes: []const u8,
    /// What the box is for, as its sender named it.
    info: []const u8,
    aad: []const u8 = "",
};

/// Returns the content, which is written to `out`: as large as the box without `overhead_size`.
/// After an error `out` holds nothing of use.
pub fn open(secret: *const x25519.Key, box: Box, out: []u8) Error![]u8 {
    if (box.bytes.len < overhead_size) return error.Truncated;
    const size = box.bytes.len - overhead_size;
    assert(out.len >= size);
    const encapsulated = box.bytes[0..x25519.key_size];
    const ciphertext = box.bytes[x25519.key_size..][0..size];
    const tag = box.bytes[x25519.key_size + size ..][0..ChaCha.tag_length];
    const dh = x25519.shared(secret, encapsulated) orelse return error.NotOpened;
    const keys = messageKeys(&dh, encapsulated, &x25519.publicOf(secret), box.info);
    ChaCha.decrypt(out[0..size], ciphertext, tag.*, box.aad, keys.nonce, keys.key) catch
        return error.NotOpened;
    return out[0..size];
}

const MessageKeys = struct { key: [ChaCha.key_length]u8, nonce: [ChaCha.nonce_length]u8 };

/// RFC 9180, sections 4.1 and 5.1. The nonce is that of sequence number 0: a box has one message.
fn messageKeys(
    dh: *const x25519.Key,
    encapsulated: *const x25519.Key,
    recipient: *const x25519.Key,
    info: []const u8,
) MessageKeys {
    const eae_prk = labeledExtract(kem_suite, "", "eae_prk", dh);
    const kem_context = encapsulated.* ++ recipient.*;
    const shared = labeledExpand(kem_suite, &eae_prk, "shared_secret", &kem_context, 32);
    const psk_id_hash = labeledExtract(suite, "", "psk_id_hash", "");
    const info_hash = labeledExtract(suite, "", "info_hash", info);
    const context = [_]u8{base_mode} ++ psk_id_hash ++ info_hash;
    const secret = labeledExtract(suite, &shared, "secret", "");
    return .{
        .key = labeledExpand(suite, &secret, "key", &context, ChaCha.key_length),
        .nonce = labeledExpand(suite, &secret, "base_nonce", &context, ChaCha.nonce_length),
    };
}

fn labeledExtract(
    comptime suite_id: []const u8,
    salt: []const u8,
    comptime label: []const u8,
    input: []const u8,
) [Hmac.mac_length]u8 {
    var hmac: Hmac = .init(salt);
    hmac.update("HPKE-v1" ++ suite_id ++ label);
    hmac.update(input);
    var out: [Hmac.mac_length]u8 = undefined;
    hmac.final(&out);
    return out;
}

fn labeledExpand(
    comptime suite_id: []const u8,
    secret: *const [Hmac.mac_length]u8,
    comptime label: []const u8,
    info: []const u8,
    comptime size: u8,
) [size]u8 {
    // The first block of RFC 5869's expansion is enough.
    comptime assert(size <= Hmac.mac_length);
    var hmac: Hmac = .init(secret);
    hmac.update(&[_]u8{ 0, size });
    hmac.update("HPKE-v1" ++ suite_id ++ label);
    hmac.update(info);
    hmac.update(&[_]u8{1});
    var block: [Hmac.mac_length]u8 = undefined;
    hmac.final(&block);
    return block[0..size].*;
}

test {
    _ = @import("sealed_box_test.zig");
}
