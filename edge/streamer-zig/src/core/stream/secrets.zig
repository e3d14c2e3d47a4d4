//! Secrets by which edge and device of a stream recognize each other (packages/proto/STREAM.md,
//! Rules). Pure functions.

const std = @import("std");
const base = @import("base");
const HmacSha256 = base.HmacSha256;

pub const cookie_slot_us = 30 * std.time.us_per_s;

/// A cookie ends with this if its edge knows version 3 of the stream. An edge that does not has 8
/// bytes of a digest here.
const cookie_mark = "stream 3";

/// Returns a cookie that tells devices that its edge knows version 3.
pub fn marked(value: [32]u8) [32]u8 {
    return value[0..24].* ++ cookie_mark.*;
}

pub fn isMarked(value: *const [32]u8) bool {
    return std.mem.eql(u8, value[24..], cookie_mark);
}

/// Returns the cookie that proves the address `from` during the time slots `slot` and `slot + 1`.
pub fn cookie(key: *const [32]u8, slot: u64, from: base.Endpoint, client_nonce: [16]u8) [32]u8 {
    var text: [30]u8 = undefined;
    std.mem.writeInt(u64, text[0..8], slot, .big);
    std.mem.writeInt(u48, text[8..14], from.toInt(), .big);
    text[14..30].* = client_nonce;
    var digest: [32]u8 = undefined;
    HmacSha256.create(&digest, &text, key);
    return digest;
}

/// Returns the secret that WELCOME gives to the device of a boot.
pub fn resumeSecret(key: *const [32]u8, boot_id: base.Uuid) [32]u8 {
    var secret: [32]u8 = undefined;
    HmacSha256.create(&secret, &boot_id.bytes, key);
    return secret;
}

/// Returns 48 unguessable bits of a session id; `serial` is never used twice with one key.
pub fn sessionBits(key: *const [32]u8, boot_id: base.Uuid, client_nonce: [16]u8, serial: u64) u48 {
    var text: [40]u8 = undefined;
    text[0..16].* = boot_id.bytes;
    text[16..32].* = client_nonce;
    std.mem.writeInt(u64, text[32..40], serial, .big);
    var digest: [32]u8 = undefined;
    HmacSha256.create(&digest, &text, key);
    return std.mem.readInt(u48, digest[0..6], .big);
}

/// Returns the seed of a new key pair of the edge; `serial` is never used twice with one key.
pub fn pairSeed(key: *const [32]u8, client_nonce: [16]u8, serial: u64) [32]u8 {
    var text: [32]u8 = "x25519\x00\x00".* ++ client_nonce ++ @as([8]u8, @splat(0));
    std.mem.writeInt(u64, text[24..32], serial, .big);
    var seed: [32]u8 = undefined;
    HmacSha256.create(&seed, &text, key);
    return seed;
}

/// Returns the tag that ties READs to a version: the first 8 bytes of SHA-256 of the version's id.
pub fn versionTag(version_id: base.Uuid) u64 {
    var digest: [32]u8 = undefined;
    base.Sha256.hash(&version_id.bytes, &digest, .{});
    return std.mem.readInt(u64, digest[0..8], .big);
}

test {
    _ = @import("secrets_test.zig");
}
