//! Makes and verifies ECDSA signatures on NIST P-256 with SHA-256 (FIPS 186-5), optimised in all
//! programs (src/crypto). Devices sign with it, since every TPM 2.0 can; keys outside a TPM are
//! those of tests and simulated devices.

const std = @import("std");
const assert = std.debug.assert;

pub const digest_length = 32;

/// Uncompressed point (SEC 1): 4, x, y.
pub const PublicKey = [65]u8;
/// r and s.
pub const Signature = [64]u8;

/// A key outside a TPM.
pub const KeyPair = struct {
    secret: [32]u8,
    public_key: PublicKey,

    pub fn generateDeterministic(seed: [32]u8) error{IdentityElement}!KeyPair {
        var pair: KeyPair = undefined;
        if (!bootfarm_p256_pair(&pair.secret, &pair.public_key, &seed))
            return error.IdentityElement;
        return pair;
    }

    pub fn sign(pair: *const KeyPair, digest: *const [digest_length]u8) Signature {
        var signature: Signature = undefined;
        const is_signed = bootfarm_p256_sign(&signature, digest, &pair.secret);
        assert(is_signed);
        return signature;
    }
};

// src/crypto/crypto.zig
extern fn bootfarm_p256_pair(*[32]u8, *PublicKey, *const [32]u8) callconv(.c) bool;
extern fn bootfarm_p256_sign(
    *Signature,
    *const [digest_length]u8,
    *const [32]u8,
) callconv(.c) bool;
extern fn bootfarm_p256_is_signed(
    *const [digest_length]u8,
    *const Signature,
    *const PublicKey,
) callconv(.c) bool;

/// Returns false also for a key that is no point of the curve.
pub fn isSigned(
    digest: *const [digest_length]u8,
    signature: *const Signature,
    key: *const PublicKey,
) bool {
    return bootfarm_p256_is_signed(digest, signature, key);
}

const testing = std.testing;

test "a signature of RFC 6979 verifies, and any changed bit of it, its digest or its key does not" {
    // Appendix A.2.5, SHA-256, message "sample".
    var key: PublicKey = undefined;
    var signature: Signature = undefined;
    _ = try std.fmt.hexToBytes(
        &key,
        "04" ++ "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6" ++
            "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299",
    );
    _ = try std.fmt.hexToBytes(
        &signature,
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716" ++
            "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
    );
    var digest: [digest_length]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash("sample", &digest, .{});
    try testing.expect(isSigned(&digest, &signature, &key));
    for (0..signature.len) |at| {
        var changed = signature;
        changed[at] ^= 0x10;
        try testing.expect(!isSigned(&digest, &changed, &key));
    }
    for (0..digest.len) |at| {
        var changed = digest;
        changed[at] ^= 1;
        try testing.expect(!isSigned(&changed, &signature, &key));
    }
    for (0..key.len) |at| {
        var changed = key;
        changed[at] ^= 1;
        try testing.expect(!isSigned(&digest, &signature, &changed));
    }
}

test "numbers of zeros, and keys that are no point, sign nothing" {
    const digest: [digest_length]u8 = @splat(1);
    try testing.expect(!isSigned(&digest, &@splat(0), &(.{4} ++ @as([64]u8, @splat(1)))));
    try testing.expect(!isSigned(&digest, &@splat(1), &@splat(0)));
    try testing.expect(!isSigned(&digest, &@splat(0xff), &@splat(0xff)));
}

test "a key pair signs what its public key verifies" {
    const pair: KeyPair = try .generateDeterministic(@splat(5));
    const other: KeyPair = try .generateDeterministic(@splat(6));
    const digest: [digest_length]u8 = @splat(7);
    const signature = pair.sign(&digest);
    try testing.expect(isSigned(&digest, &signature, &pair.public_key));
    try testing.expect(!isSigned(&digest, &signature, &other.public_key));
}
