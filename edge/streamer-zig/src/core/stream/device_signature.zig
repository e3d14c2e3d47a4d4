//! What a device signs with the key in its TPM, and whether it did
//! (docs/decisions/0026-device-identity.md). The signature is part of the HELLO that opens a
//! session by a boot token. It is fresh, since it covers the edge's cookie, and it is of no use to
//! others, since it covers the device's X25519 key, from which the session's keys are derived. Pure
//! functions.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const Claim = @import("../site/device_identity.zig").Claim;

const label = "bootfarm device identity v1";
const label_size = 32;

/// All of it is fixed by the HELLO that carries the signature.
pub const Transcript = struct {
    boot_id: [16]u8,
    client_nonce: [16]u8,
    /// The edge's: it is valid for at most a minute, at this edge, from one address.
    cookie: [32]u8,
    /// X25519, new in each hello.
    client_public: [32]u8,
    device_key: base.ecdsa_p256.PublicKey,
    /// SHA-256 of the HELLO with zeros in its proof and its signature.
    hello_digest: [32]u8,
};

/// Returns the transcript of a HELLO with the edge's cookie and the device's key.
pub fn transcriptOf(hello: *const wire.Hello) Transcript {
    var unsigned = hello.*;
    unsigned.proof = @splat(0);
    unsigned.signature = @splat(0);
    var buffer: [wire.hello_size_max]u8 = undefined;
    const text = wire.emit(.{ .version = hello.version, .body = .{ .hello = unsigned } }, &buffer);
    var hello_digest: [32]u8 = undefined;
    base.Sha256.hash(text, &hello_digest, .{});
    return .{
        .boot_id = hello.boot_id,
        .client_nonce = hello.client_nonce,
        .cookie = hello.cookie,
        .client_public = hello.client_public,
        .device_key = hello.device_key,
        .hello_digest = hello_digest,
    };
}

/// Returns what a HELLO claims. It costs a signature: the caller has verified cookie and proof.
pub fn claimOf(hello: *const wire.Hello) Claim {
    if (std.mem.allEqual(u8, &hello.device_key, 0)) return .none;
    const transcript = transcriptOf(hello);
    if (!isSigned(&transcript, &hello.signature)) return .forged;
    return .{ .signed = fingerprintOf(&hello.device_key) };
}

/// Returns what the TPM signs.
pub fn digestOf(transcript: *const Transcript) [32]u8 {
    var hash: base.Sha256 = .init(.{});
    hash.update(label ++ @as([label_size - label.len]u8, @splat(0)));
    hash.update(&transcript.boot_id);
    hash.update(&transcript.client_nonce);
    hash.update(&transcript.cookie);
    hash.update(&transcript.client_public);
    hash.update(&transcript.device_key);
    hash.update(&transcript.hello_digest);
    return hash.finalResult();
}

pub fn isSigned(transcript: *const Transcript, signature: *const base.ecdsa_p256.Signature) bool {
    const digest = digestOf(transcript);
    return base.ecdsa_p256.isSigned(&digest, signature, &transcript.device_key);
}

/// Names a device's key for people and in records: SHA-256 of its 65 bytes.
pub fn fingerprintOf(key: *const base.ecdsa_p256.PublicKey) [32]u8 {
    var fingerprint: [32]u8 = undefined;
    base.Sha256.hash(key, &fingerprint, .{});
    return fingerprint;
}

const testing = std.testing;
const KeyPair = base.ecdsa_p256.KeyPair;

fn testTranscript(pair: *const KeyPair) Transcript {
    return .{
        .boot_id = @splat(1),
        .client_nonce = @splat(2),
        .cookie = @splat(3),
        .client_public = @splat(4),
        .device_key = pair.public_key,
        .hello_digest = @splat(5),
    };
}

test "the digest is SHA-256 of the label in 32 bytes and the fields in their order" {
    const pair: KeyPair = try .generateDeterministic(@splat(9));
    const transcript = testTranscript(&pair);
    const fields = "bootfarm device identity v1\x00\x00\x00\x00\x00".* ++
        @as([16]u8, @splat(1)) ++ @as([16]u8, @splat(2)) ++ @as([32]u8, @splat(3)) ++
        @as([32]u8, @splat(4)) ++ transcript.device_key ++ @as([32]u8, @splat(5));
    try testing.expectEqual(225, fields.len);
    var expected: [32]u8 = undefined;
    base.Sha256.hash(&fields, &expected, .{});
    try testing.expectEqual(expected, digestOf(&transcript));
}

test "a signature holds for one transcript and one key" {
    const pair: KeyPair = try .generateDeterministic(@splat(9));
    const other: KeyPair = try .generateDeterministic(@splat(10));
    const transcript = testTranscript(&pair);
    const digest = digestOf(&transcript);
    const signature = pair.sign(&digest);
    try testing.expect(isSigned(&transcript, &signature));
    inline for (@typeInfo(Transcript).@"struct".field_names) |name| {
        var changed = transcript;
        const field = &@field(changed, name);
        field[field.len - 1] ^= 1;
        try testing.expect(!isSigned(&changed, &signature));
    }
    var stolen = transcript;
    stolen.device_key = other.public_key;
    try testing.expect(!isSigned(&stolen, &signature));
    try testing.expect(!std.mem.eql(
        u8,
        &fingerprintOf(&stolen.device_key),
        &fingerprintOf(&transcript.device_key),
    ));
}
