//! Tests of secrets.zig: each secret is the HMAC that STREAM.md names, of all that it is bound to.

const std = @import("std");
const base = @import("base");
const secrets = @import("secrets.zig");
const testing = std.testing;

const key: [32]u8 = @splat(7);
const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const nonce: [16]u8 = @splat(5);

fn hmac(text: []const u8) [32]u8 {
    var digest: [32]u8 = undefined;
    base.HmacSha256.create(&digest, text, &key);
    return digest;
}

test "a resume secret is bound to its boot, a session's bits to boot, nonce and serial" {
    try testing.expectEqual(hmac(&boot_id.bytes), secrets.resumeSecret(&key, boot_id));
    const digest = hmac(&(boot_id.bytes ++ nonce ++ [_]u8{ 0, 0, 0, 0, 0, 0, 1, 2 }));
    try testing.expectEqual(
        std.mem.readInt(u48, digest[0..6], .big),
        secrets.sessionBits(&key, boot_id, nonce, 0x102),
    );
}

test "the seed of a key pair is bound to nonce and serial" {
    const text = "x25519\x00\x00".* ++ nonce ++ [_]u8{ 0, 0, 0, 0, 0, 0, 1, 2 };
    try testing.expectEqual(hmac(&text), secrets.pairSeed(&key, nonce, 0x102));
}

test "a version's tag is the start of the hash of its id" {
    var digest: [32]u8 = undefined;
    base.Sha256.hash(&boot_id.bytes, &digest, .{});
    try testing.expectEqual(std.mem.readInt(u64, digest[0..8], .big), secrets.versionTag(boot_id));
}

test "a cookie is bound to time, address and nonce" {
    const from: base.Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 0x1234 };
    const text = [_]u8{ 0, 0, 0, 0, 0, 0, 1, 2, 10, 0, 0, 1, 0x12, 0x34 } ++ nonce;
    try testing.expectEqual(hmac(&text), secrets.cookie(&key, 0x102, from, nonce));
}
