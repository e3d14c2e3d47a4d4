//! X25519 (RFC 7748) of the standard library, optimised in every program (src/crypto).

const std = @import("std");

pub const key_size = 32;
pub const Key = [key_size]u8;

// src/crypto/crypto.zig
extern fn bootfarm_x25519_public(*Key, *const Key) callconv(.c) void;
extern fn bootfarm_x25519_shared(*Key, *const Key, *const Key) callconv(.c) bool;

pub fn publicOf(secret: *const Key) Key {
    var public: Key = undefined;
    bootfarm_x25519_public(&public, secret);
    return public;
}

/// Returns the shared secret, to be hashed before use. Null: the other key is one of the few that
/// give every peer the same secret.
pub fn shared(secret: *const Key, public: *const Key) ?Key {
    var out: Key = undefined;
    return if (bootfarm_x25519_shared(&out, secret, public)) out else null;
}

const testing = std.testing;

test "products match RFC 7748, sections 5.2 and 6.1, and both sides get the same secret" {
    const vectors = [_][3]*const [64]u8{ .{
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    }, .{
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "0900000000000000000000000000000000000000000000000000000000000000",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    } };
    var keys: [vectors.len][3]Key = undefined;
    for (vectors, &keys) |texts, *three| for (texts, three) |text, *key| {
        _ = try std.fmt.hexToBytes(key, text);
    };
    for (&keys) |*three| try testing.expectEqual(three[2], shared(&three[0], &three[1]).?);
    const one, const two = .{ keys[0][0], keys[1][0] };
    try testing.expectEqual(keys[1][2], publicOf(&two));
    try testing.expectEqual(shared(&one, &publicOf(&two)).?, shared(&two, &publicOf(&one)).?);
}

test "a key that gives every peer the same secret is refused" {
    try testing.expectEqual(null, shared(&@splat(7), &@splat(0)));
}
