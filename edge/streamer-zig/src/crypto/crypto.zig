//! Cryptography of the standard library, always optimised: twenty to a hundred times faster than in
//! debug builds, whose own code keeps all its checks. Used only by `base.x25519`, `base.Ed25519`,
//! `base.ecdsa_p256` and `base.Sha256`.

const std = @import("std");
const sha256 = @import("sha256.zig");
const X25519 = std.crypto.dh.X25519;
const Ed25519 = std.crypto.sign.Ed25519;
const P256 = std.crypto.sign.ecdsa.EcdsaP256Sha256;

/// A piece of a message.
const Piece = extern struct { from: [*]const u8, size: usize };

export fn bootfarm_x25519_public(out: *[32]u8, secret: *const [32]u8) callconv(.c) void {
    out.* = X25519.recoverPublicKey(secret.*);
}

/// Returns false for the few public keys that give everybody the same secret.
export fn bootfarm_x25519_shared(
    out: *[32]u8,
    secret: *const [32]u8,
    public: *const [32]u8,
) callconv(.c) bool {
    out.* = X25519.scalarmult(secret.*, public.*) catch return false;
    return true;
}

/// Returns false if the seed gives no key.
export fn bootfarm_ed25519_public(out: *[32]u8, seed: *const [32]u8) callconv(.c) bool {
    const pair = Ed25519.KeyPair.generateDeterministic(seed.*) catch return false;
    out.* = pair.public_key.bytes;
    return true;
}

/// `public` belongs to `seed`. Returns false otherwise.
export fn bootfarm_ed25519_sign(
    out: *[64]u8,
    message: [*]const u8,
    size: usize,
    seed: *const [32]u8,
    public: *const [32]u8,
) callconv(.c) bool {
    const pair: Ed25519.KeyPair = .{
        .public_key = .{ .bytes = public.* },
        .secret_key = Ed25519.SecretKey.fromBytes(seed.* ++ public.*) catch return false,
    };
    const signature = pair.sign(message[0..size], null) catch return false;
    out.* = signature.toBytes();
    return true;
}

/// Returns whether the concatenated pieces were signed; `is_strict` rejects signatures that some
/// verifiers reject.
export fn bootfarm_ed25519_is_signed(
    pieces: [*]const Piece,
    count: usize,
    signature: *const [64]u8,
    public: *const [32]u8,
    is_strict: bool,
) callconv(.c) bool {
    const key = Ed25519.PublicKey.fromBytes(public.*) catch return false;
    var verifier = Ed25519.Signature.fromBytes(signature.*).verifier(key) catch return false;
    for (pieces[0..count]) |piece| verifier.update(piece.from[0..piece.size]);
    if (is_strict) verifier.verifyStrict() catch return false else verifier.verify() catch
        return false;
    return true;
}

/// Compresses whole blocks into a state.
export fn bootfarm_sha256_plain(
    state: *sha256.State,
    from: [*]const u8,
    blocks: usize,
) callconv(.c) void {
    sha256.compressPlain(state, from[0 .. blocks * sha256.block_length]);
}

/// The same; only if the processor has the instructions.
export fn bootfarm_sha256_fast(
    state: *sha256.State,
    from: [*]const u8,
    blocks: usize,
) callconv(.c) void {
    if (sha256.is_compiled) sha256.compressFast(1, .{state}, .{from}, blocks);
}

/// Two states at once, with the same number of blocks.
export fn bootfarm_sha256_fast_two(
    one: *sha256.State,
    two: *sha256.State,
    from_one: [*]const u8,
    from_two: [*]const u8,
    blocks: usize,
) callconv(.c) void {
    if (sha256.is_compiled) sha256.compressFast(2, .{ one, two }, .{ from_one, from_two }, blocks);
}

/// Returns false if the seed gives no key.
export fn bootfarm_p256_pair(
    secret: *[32]u8,
    public: *[65]u8,
    seed: *const [32]u8,
) callconv(.c) bool {
    const pair = P256.KeyPair.generateDeterministic(seed.*) catch return false;
    secret.* = pair.secret_key.toBytes();
    public.* = pair.public_key.toUncompressedSec1();
    return true;
}

/// Returns false if `secret` is no key.
export fn bootfarm_p256_sign(
    out: *[64]u8,
    digest: *const [32]u8,
    secret: *const [32]u8,
) callconv(.c) bool {
    const key = P256.SecretKey.fromBytes(secret.*) catch return false;
    const pair = P256.KeyPair.fromSecretKey(key) catch return false;
    const signature = pair.signPrehashed(digest.*, null) catch return false;
    out.* = signature.toBytes();
    return true;
}

/// Returns whether the holder of an uncompressed P-256 key signed the digest.
export fn bootfarm_p256_is_signed(
    digest: *const [32]u8,
    signature: *const [64]u8,
    public: *const [65]u8,
) callconv(.c) bool {
    // A compressed or an infinite point has other lengths.
    if (public[0] != 4) return false;
    const key = P256.PublicKey.fromSec1(public) catch return false;
    P256.Signature.fromBytes(signature.*).verifyPrehashed(digest.*, key) catch return false;
    return true;
}
