//! Messages of the uplink, version 1 (packages/proto/UPLINK.md): what is signed, bodies of
//! requests, answers. Golden vectors: packages/proto/vectors/uplink-v1.json.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const assert = std.debug.assert;
const Ed25519 = std.crypto.sign.Ed25519;
const Stringify = std.json.Stringify;

pub const signature_text_size = 88;
pub const key_text_size = 44;
pub const join_token_size_max = 128;
/// Bodies but for reports, and answers but for the state, are below this.
pub const body_size_max = 16 * 1024;

/// What a signature covers.
pub const Facts = struct {
    /// Upper case.
    method: []const u8,
    /// Path and query as sent.
    path: []const u8,
    /// Null for enrolment.
    edge_id: ?base.Uuid,
    boot_epoch: u64,
    counter: u64,
    body: []const u8,
};

pub fn writeSignedText(writer: *std.Io.Writer, facts: Facts) std.Io.Writer.Error!void {
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash(facts.body, &digest, .{});
    try writer.print("bootfarm-uplink-v1\n{s}\n{s}\n", .{ facts.method, facts.path });
    if (facts.edge_id) |id| try writer.print("{f}\n", .{id}) else try writer.writeAll("-\n");
    try writer.print("{d}\n{d}\n{x}", .{ facts.boot_epoch, facts.counter, &digest });
}

/// The signature in standard base64. The path is at most 256 bytes.
pub fn sign(key: Ed25519.KeyPair, facts: Facts) [signature_text_size]u8 {
    assert(facts.path.len <= 256);
    var buffer: [512]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writeSignedText(&writer, facts) catch unreachable;
    // Deterministic signing (RFC 8032) fails only for a key pair that does not belong together.
    const signature = key.sign(writer.buffered(), null) catch unreachable;
    var text: [signature_text_size]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&text, &signature.toBytes());
    return text;
}

pub fn keyText(key: [32]u8) [key_text_size]u8 {
    var text: [key_text_size]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&text, &key);
    return text;
}

pub fn parseKey(text: []const u8) error{InvalidKey}![32]u8 {
    var key: [32]u8 = undefined;
    const decoder = std.base64.standard.Decoder;
    const size = decoder.calcSizeForSlice(text) catch return error.InvalidKey;
    if (size != key.len) return error.InvalidKey;
    decoder.decode(&key, text) catch return error.InvalidKey;
    return key;
}

/// As the API names it; null for a processor that edges are not built for.
pub fn archName(arch: std.Target.Cpu.Arch) ?[]const u8 {
    return switch (arch) {
        .x86_64 => "x86_64",
        .aarch64 => "aarch64",
        else => null,
    };
}

pub const EnrolRequest = struct {
    version: u8 = 1,
    joinToken: []const u8,
    publicKey: [key_text_size]u8,
    agentVersion: []const u8,
    arch: []const u8,
    hostname: base.UntrustedText,
};

pub const EnrolAnswer = struct {
    edgeId: base.Uuid,
    organizationId: base.Uuid,
    siteId: base.Uuid,
    siteName: []const u8,
    signingKey: struct { id: base.Uuid, publicKey: []const u8 },
};

pub const Heartbeat = struct {
    agentVersion: []const u8,
    arch: []const u8,
    uptimeMs: u64,
    clockUnixMs: u64,
    devicesBooting: u64,
    reportBacklog: u64,
    state: desired_state.Pair,
    ignored: base.IgnoredCounters,
};

pub const ReportAnswer = struct { bootEpoch: u64, ackedSeq: u64 };

/// RFC 9457, with the code that the edge acts on.
pub const Problem = struct { code: []const u8 = "", detail: []const u8 = "", expectedSeq: ?u64 = null };

/// Writes a request's body; the buffer holds every body that this edge makes.
pub fn encode(message: anytype, buffer: *[body_size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    Stringify.value(message, .{ .whitespace = .minified }, &writer) catch unreachable;
    return writer.buffered();
}

/// Reads an answer; unknown fields are of a newer API and ignored.
pub fn parse(
    comptime T: type,
    arena: std.mem.Allocator,
    text: []const u8,
) error{ Malformed, OutOfMemory }!T {
    return std.json.parseFromSliceLeaky(
        T,
        arena,
        text,
        .{ .ignore_unknown_fields = true },
    ) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.Malformed,
    };
}

test {
    _ = @import("uplink_vectors_test.zig");
}
