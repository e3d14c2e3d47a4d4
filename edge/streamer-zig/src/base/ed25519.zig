//! Ed25519 (RFC 8032) of the standard library, optimised in every program (src/crypto).

const std = @import("std");
const assert = std.debug.assert;

pub const PublicKey = std.crypto.sign.Ed25519.PublicKey;
/// Pieces of a message that are verified together.
const pieces_max = 8;
const Piece = extern struct { from: [*]const u8, size: usize };

// src/crypto/crypto.zig
extern fn bootfarm_ed25519_public(*[32]u8, *const [32]u8) callconv(.c) bool;
extern fn bootfarm_ed25519_sign(
    *[64]u8,
    [*]const u8,
    usize,
    *const [32]u8,
    *const [32]u8,
) callconv(.c) bool;
extern fn bootfarm_ed25519_is_signed(
    [*]const Piece,
    usize,
    *const [64]u8,
    *const [32]u8,
    bool,
) callconv(.c) bool;

pub const KeyPair = struct {
    const seed_length = 32;

    public_key: PublicKey,
    seed: [seed_length]u8,

    pub fn generateDeterministic(seed: [seed_length]u8) error{IdentityElement}!KeyPair {
        var public: [PublicKey.encoded_length]u8 = undefined;
        if (!bootfarm_ed25519_public(&public, &seed)) return error.IdentityElement;
        return .{ .public_key = .{ .bytes = public }, .seed = seed };
    }

    pub fn sign(pair: *const KeyPair, message: []const u8) Signature {
        var signature: Signature = undefined;
        const is_signed =
            bootfarm_ed25519_sign(
                &signature.bytes,
                message.ptr,
                message.len,
                &pair.seed,
                &pair.public_key.bytes,
            );
        assert(is_signed);
        return signature;
    }
};

pub const Signature = struct {
    pub const encoded_length = 64;

    bytes: [encoded_length]u8,

    pub fn fromBytes(bytes: [encoded_length]u8) Signature {
        return .{ .bytes = bytes };
    }

    pub fn toBytes(signature: Signature) [encoded_length]u8 {
        return signature.bytes;
    }

    /// Verifies a message given in pieces; at most eight.
    pub fn verify(
        signature: *const Signature,
        pieces: []const []const u8,
        key: PublicKey,
    ) error{SignatureInvalid}!void {
        if (!isSigned(signature, pieces, key, false)) return error.SignatureInvalid;
    }

    /// Verifies without the cofactor eight: refuses signatures that only some implementations
    /// accept.
    pub fn verifyStrict(
        signature: *const Signature,
        pieces: []const []const u8,
        key: PublicKey,
    ) error{SignatureInvalid}!void {
        if (!isSigned(signature, pieces, key, true)) return error.SignatureInvalid;
    }
};

fn isSigned(
    signature: *const Signature,
    pieces: []const []const u8,
    key: PublicKey,
    is_strict: bool,
) bool {
    assert(pieces.len <= pieces_max);
    var all: [pieces_max]Piece = undefined;
    for (all[0..pieces.len], pieces) |*piece, bytes|
        piece.* = .{ .from = bytes.ptr, .size = bytes.len };
    return bootfarm_ed25519_is_signed(&all, pieces.len, &signature.bytes, &key.bytes, is_strict);
}

const testing = std.testing;

test "keys and signatures match RFC 8032, section 7.1" {
    var seed: [32]u8 = undefined;
    var public: [32]u8 = undefined;
    var expected: [64]u8 = undefined;
    _ = try std.fmt.hexToBytes(
        &seed,
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    );
    _ = try std.fmt.hexToBytes(
        &public,
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    );
    _ =
        try std.fmt.hexToBytes(&expected, "" ++
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da" ++
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    const pair: KeyPair = try .generateDeterministic(seed);
    try testing.expectEqual(public, pair.public_key.toBytes());
    try testing.expectEqual(expected, pair.sign("\x72").toBytes());
}

test "a signed message verifies in any pieces; other bytes, keys and signatures do not" {
    const pair: KeyPair = try .generateDeterministic(@splat(5));
    const other: KeyPair = try .generateDeterministic(@splat(6));
    const signature = pair.sign("a message");
    try testing.expectEqual(
        (try std.crypto.sign.Ed25519.KeyPair.generateDeterministic(@splat(5))).public_key,
        pair.public_key,
    );
    for ([_][]const []const u8{ &.{"a message"}, &.{ "a ", "", "message" } }) |pieces| {
        try signature.verify(pieces, pair.public_key);
        try signature.verifyStrict(pieces, pair.public_key);
        try testing.expectError(error.SignatureInvalid, signature.verify(pieces, other.public_key));
        try testing.expectError(
            error.SignatureInvalid,
            signature.verifyStrict(pieces, other.public_key),
        );
    }
    try testing.expectError(
        error.SignatureInvalid,
        signature.verify(&.{"A message"}, pair.public_key),
    );
    try testing.expectError(
        error.SignatureInvalid,
        signature.verifyStrict(&.{"A message"}, pair.public_key),
    );
    for (0..Signature.encoded_length) |at| {
        var changed = signature;
        changed.bytes[at] ^= 1;
        try testing.expectError(
            error.SignatureInvalid,
            changed.verify(&.{"a message"}, pair.public_key),
        );
        try testing.expectError(
            error.SignatureInvalid,
            changed.verifyStrict(&.{"a message"}, pair.public_key),
        );
    }
}
