//! The time that an update is judged by (docs/decisions/0038-release-metadata.md). The edge
//! sends a random nonce, and the control plane signs it together with its own time, so that nobody
//! on the path can hold back the time: an old answer has another nonce. The edge's wall clock is
//! never read.

const std = @import("std");
const base = @import("base");
const key_text = @import("../uplink/key_text.zig");
const Ed25519 = base.Ed25519;

const head = "bootfarm-time-v1\n";

pub const Nonce = [32]u8;

pub const Answer = struct {
    /// The nonce of the request, 32 bytes in base64.
    nonce: []const u8,
    unixMs: u64,
    /// By the organization's key over `bootfarm-time-v1`, the nonce and the time, a line each.
    signature: []const u8,
};

pub const Refusal = error{
    Malformed,
    /// The answer to another question.
    NotAsked,
    SignatureInvalid,
};

/// Returns the seconds since 1970. `key` is the organization's signing key.
pub fn verify(answer: *const Answer, nonce: *const Nonce, key: [32]u8) Refusal!u64 {
    const named = key_text.parse(answer.nonce) catch return error.Malformed;
    if (!std.mem.eql(u8, &named, nonce)) return error.NotAsked;
    var raw: [Ed25519.Signature.encoded_length]u8 = undefined;
    const decoder = std.base64.standard.Decoder;
    const size = decoder.calcSizeForSlice(answer.signature) catch return error.Malformed;
    if (size != raw.len) return error.Malformed;
    decoder.decode(&raw, answer.signature) catch return error.Malformed;
    const public_key = Ed25519.PublicKey.fromBytes(key) catch return error.SignatureInvalid;
    var digits: [20]u8 = undefined;
    const unix_ms = std.mem.print(&digits, "{d}", .{answer.unixMs}) catch unreachable;
    const lines = [_][]const u8{ head, answer.nonce, "\n", unix_ms, "\n" };
    try Ed25519.Signature.fromBytes(raw).verifyStrict(&lines, public_key);
    return answer.unixMs / std.time.ms_per_s;
}

const testing = std.testing;

test "only an answer to this very question tells the time" {
    const pair: Ed25519.KeyPair = try .generateDeterministic(@splat(3));
    const nonce: Nonce = @splat(5);
    const nonce_text = key_text.write(nonce);
    const signed = head ++ nonce_text ++ "\n1795003600999\n";
    var signature: [88]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&signature, &pair.sign(signed).toBytes());
    var answer: Answer =
        .{ .nonce = &nonce_text, .unixMs = 1795003600999, .signature = &signature };
    const key = pair.public_key.toBytes();
    try testing.expectEqual(1795003600, try verify(&answer, &nonce, key));
    try testing.expectError(error.NotAsked, verify(&answer, &@splat(6), key));
    const other: Ed25519.KeyPair = try .generateDeterministic(@splat(4));
    try testing.expectError(
        error.SignatureInvalid,
        verify(&answer, &nonce, other.public_key.toBytes()),
    );
    answer.unixMs -= 1;
    try testing.expectError(error.SignatureInvalid, verify(&answer, &nonce, key));
    answer.signature = "AAAA";
    try testing.expectError(error.Malformed, verify(&answer, &nonce, key));
    answer.nonce = "AAAA";
    try testing.expectError(error.Malformed, verify(&answer, &nonce, key));
}
