//! Messages of the uplink, version 1 (packages/proto/UPLINK.md): signatures, bodies of requests,
//! answers. Golden vectors: packages/proto/vectors/uplink-v1.json.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const desired_state = @import("desired_state.zig");
const key_text = @import("key_text.zig");
const store_job = @import("store_job.zig");
const authenticode = wire.authenticode;
const boot_program = wire.boot_program;
const assert = std.debug.assert;
const Ed25519 = base.Ed25519;
const Stringify = std.json.Stringify;

const signature_text_size = 88;
pub const join_token_size_max = 128;
/// Bodies except reports, and answers except the state, are below this.
pub const body_size_max = 24 * 1024;

/// The signed parts of a request.
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
    base.Sha256.hash(facts.body, &digest, .{});
    try writer.print("bootfarm-uplink-v1\n{s}\n{s}\n", .{ facts.method, facts.path });
    if (facts.edge_id) |id| try writer.print("{f}\n", .{id}) else try writer.writeAll("-\n");
    try writer.print("{d}\n{d}\n{x}", .{ facts.boot_epoch, facts.counter, &digest });
}

/// Returns the signature in standard base64. The path is at most 256 bytes.
pub fn sign(key: Ed25519.KeyPair, facts: Facts) [signature_text_size]u8 {
    assert(facts.path.len <= 256);
    var buffer: [512]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writeSignedText(&writer, facts) catch unreachable;
    // Deterministic signing (RFC 8032) fails only for a key pair that does not match.
    const signature = key.sign(writer.buffered());
    var text: [signature_text_size]u8 = undefined;
    _ = std.base64.standard.Encoder.encode(&text, &signature.toBytes());
    return text;
}

/// The version that this edge speaks (VERSIONS.md).
pub const uplink_version = "5";

pub const key_statements_max = 16;

/// States that one key of an edge follows another, signed by the old one.
pub const KeyStatement = struct {
    oldPublicKey: [key_text.size]u8,
    newPublicKey: [key_text.size]u8,
    signature: [signature_text_size]u8,
};

pub const RotateKeyRequest = struct { version: u8 = 1, statements: []const KeyStatement };

pub fn stateKey(old: Ed25519.KeyPair, edge_id: base.Uuid, new_key: [32]u8) KeyStatement {
    var statement: KeyStatement = .{
        .oldPublicKey = key_text.write(old.public_key.toBytes()),
        .newPublicKey = key_text.write(new_key),
        .signature = undefined,
    };
    var buffer: [256]u8 = undefined;
    const text = std.mem.print(&buffer, "bootfarm-edge-key-v1\n{f}\n{s}\n{s}", .{
        edge_id, &statement.oldPublicKey, &statement.newPublicKey,
    }) catch unreachable;
    const signature = old.sign(text);
    _ = std.base64.standard.Encoder.encode(&statement.signature, &signature.toBytes());
    return statement;
}

/// Returns the API's name; null for a processor that edges are not built for.
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
    publicKey: [key_text.size]u8,
    /// The X25519 key to which the control plane seals what only this edge may read.
    sealKey: [key_text.size]u8,
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

/// Another edge of the site, as this one hears it.
pub const HeardPeer = struct { edgeId: base.Uuid, heardMsAgo: u64, booting: u64 };

pub const peers_max = 16;

pub const Interface = struct { name: base.UntrustedText, ip: base.Ip4, prefixLength: u8, mtu: u32 };

pub const interfaces_max = 16;

/// What the edge's store lies on (`storeMedium` in src/uplink.ts).
pub const Medium = struct {
    kind: Kind,
    /// A disk's model, or a file system's name; empty: nobody knows. Printable ASCII.
    name: []const u8,

    pub const Kind = enum { nvme, ssd, hdd, network, memory };
    pub const name_size_max = 64;
};

/// The machine that the edge runs on (`edgeMachine` in src/uplink.ts).
pub const Machine = struct {
    loadAverage: f64,
    processors: u64,
    memoryTotalBytes: u64,
    memoryAvailableBytes: u64,
    fileCacheBytes: u64,
    storeTotalBytes: u64,
    storeFreeBytes: u64,
    /// Null if the system does not tell.
    storeMedium: ?Medium = null,
};

/// How much the edge works (`edgeLoad` in src/uplink.ts): levels, and counters since its start.
pub const Load = struct {
    /// Devices that stream their disk.
    streams: u64,
    /// Sent over each protocol.
    tftpBytes: u64,
    httpBytes: u64,
    streamBytes: u64,
    reads: u64,
    /// Of these, reads that waited for a disk or for verification, and how long they waited.
    coldReads: u64,
    coldReadUs: u64,
    /// Time of all processors of the machine together, and of this the time in which they worked,
    /// but not at what yields to all other work. Null if the system does not tell.
    processorMs: ?u64 = null,
    processorBusyMs: ?u64 = null,
    /// Speed of the interface that devices reach. Null if it has none, as virtual ones.
    linkMbps: ?u64 = null,

    /// JSON's numbers are exact below this: a counter that reaches it begins at 0 again.
    pub const counter_end = 1 << 53;
};

/// A place of a version that the edge could not read for a device.
pub const StoreError = struct {
    versionId: base.Uuid,
    offset: u64,
    length: u64,
    count: u64,
    sinceUnixMs: u64,
};

pub const store_errors_max = 16;

/// What became of damaged blocks of a version since the edge started.
pub const Repair = struct {
    versionId: base.Uuid,
    repaired: u64,
    /// How often no other edge of the site had the right bytes.
    failed: u64,
    lastUnixMs: u64,
};

pub const repairs_max = 16;

/// Copies that this edge keeps of the write layers of another one.
pub const CacheCopies = struct {
    edgeId: base.Uuid,
    count: u64,
    oldestUnixMs: u64,
};

pub const cache_copies_max = 16;

/// What became of the release that the desired state names.
pub const UpdateStatus = struct {
    version: []const u8,
    attempt: u64,
    state: []const u8,
    cause: ?[]const u8,
};

pub const Heartbeat = struct {
    agentVersion: []const u8,
    arch: []const u8,
    uptimeMs: u64,
    clockUnixMs: u64,
    devicesBooting: u64,
    reportBacklog: u64,
    /// As in the enrolment: an edge of before has none there.
    sealKey: [key_text.size]u8,
    state: desired_state.Pair,
    /// Why the API's state for this edge was not accepted.
    stateRefused: ?[]const u8 = null,
    ignored: base.IgnoredCounters,
    bootPrograms: []const BootProgram = &.{},
    /// Where devices and other edges of the site reach it.
    address: ?base.Ip4 = null,
    peerPort: ?u16 = null,
    streamPort: ?u16 = null,
    machine: ?Machine = null,
    load: ?Load = null,
    interfaces: []const Interface = &.{},
    peers: []const HeardPeer = &.{},
    storeErrors: []const StoreError = &.{},
    repairs: []const Repair = &.{},
    cacheCopies: []const CacheCopies = &.{},
    /// Names of what is wrong with the edge's disks.
    problems: []const []const u8 = &.{},
    /// Null: no release is ordered.
    update: ?UpdateStatus = null,
    storeJobKinds: []const []const u8 = &store_job_words,
};

/// The kinds of jobs that this edge does, and what else of them it understands.
const store_job_words = words: {
    const kinds = @typeInfo(store_job.Kind).@"enum".field_names;
    const more = [_][]const u8{
        "import_modules", "import_upload", "import_url", "import_empty",
    };
    var all: [kinds.len + more.len][]const u8 = undefined;
    for (all[0..kinds.len], kinds) |*word, kind| word.* = kind;
    for (all[kinds.len..], more) |*word, name| word.* = name;
    break :words all;
};

/// A boot program in the heartbeat (`bootProgram` in src/uplink.ts).
pub const BootProgram = struct {
    set: []const u8,
    file: []const u8,
    arch: boot_program.Arch,
    kind: boot_program.Kind,
    version: base.UntrustedText,
    size: u64,
    sha256: [32]u8,
    signers: authenticode.Signers,

    /// Further ones are not sent.
    pub const count_max = 32;
    /// Their total size stays below this, so that the rest of a heartbeat fits.
    pub const text_size_max = 10 * 1024;

    pub fn jsonStringify(program: BootProgram, json: anytype) !void {
        try json.beginObject();
        try member(json, "set", program.set);
        try member(json, "file", program.file);
        try member(json, "arch", @tagName(program.arch));
        try member(json, "kind", program.kind.text());
        if (program.version.size > 0) try member(json, "version", program.version.slice());
        try member(json, "sizeBytes", program.size);
        try member(json, "sha256", &std.fmt.bytesToHex(program.sha256, .lower));
        try json.objectField("signedBy");
        try json.beginArray();
        for (program.signers.constSlice()) |*signer| try json.write(signer.slice());
        try json.endArray();
        try json.endObject();
    }

    fn member(json: anytype, name: []const u8, value: anytype) !void {
        try json.objectField(name);
        try json.write(value);
    }

    /// Returns how many of them, from the first on, fit a heartbeat.
    pub fn countThatFits(programs: []const BootProgram) usize {
        var left: usize = text_size_max;
        for (programs[0..@min(programs.len, count_max)], 0..) |program, index| {
            var discarding: std.Io.Writer.Discarding = .init(&.{});
            Stringify.value(program, .{}, &discarding.writer) catch unreachable;
            const size: usize = @intCast(discarding.fullCount() + ",".len);
            if (size > left) return index;
            left -= size;
        }
        return @min(programs.len, count_max);
    }
};

/// `nextMs`: when the API wants the next one. `pollWaitMs`: polls may carry heartbeats, and wait so
/// long. An API of before says nothing.
pub const HeartbeatAnswer = struct { nextMs: u64 = 0, pollWaitMs: u64 = 0 };

/// A hash of what people wait for in a heartbeat: while it stays the same, the next one may wait.
/// Not the clocks, nor what changes all the time.
pub fn newsOf(heartbeat: *const Heartbeat) u64 {
    var news = heartbeat.*;
    news.uptimeMs = 0;
    news.clockUnixMs = 0;
    news.reportBacklog = @min(news.reportBacklog, 1);
    news.ignored = .{};
    news.machine = null;
    news.load = null;
    news.bootPrograms = &.{};
    var peers: [peers_max]HeardPeer = undefined;
    assert(news.peers.len <= peers_max);
    var hasher: std.hash.Wyhash = .init(0);
    for (news.peers, peers[0..news.peers.len]) |heard, *peer|
        peer.* = .{ .edgeId = heard.edgeId, .heardMsAgo = 0, .booting = 0 };
    news.peers = peers[0..news.peers.len];
    var buffer: [body_size_max]u8 = undefined;
    hasher.update(encode(news, &buffer));
    return hasher.final();
}

pub const ReportAnswer = struct { bootEpoch: u64, ackedSeq: u64 };

/// RFC 9457, with the code that the edge acts on.
pub const Problem =
    struct { code: []const u8 = "", detail: []const u8 = "", expectedSeq: ?u64 = null };

/// Writes a request's body; the buffer holds every body that this edge sends.
pub fn encode(message: anytype, buffer: *[body_size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    Stringify.value(
        message,
        .{ .whitespace = .minified, .emit_null_optional_fields = false },
        &writer,
    ) catch unreachable;
    return writer.buffered();
}

/// Parses an answer; unknown fields belong to a newer API and are ignored.
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
    _ = @import("message_test.zig");
}

test "a heartbeat contains as many boot programs as fit beside the rest, in the API's form" {
    var program: BootProgram = .{
        .set = "shim-grub",
        .file = "shimx64.efi",
        .arch = .x64_uefi,
        .kind = .shim,
        .version = .init("16.1"),
        .size = 5,
        .sha256 = @splat(0xab),
        .signers = .empty,
    };
    program.signers.appendAssumeCapacity(.init("A \"Site\""));
    const hex: [64]u8 = @bitCast(@as([32][2]u8, @splat("ab".*)));
    var buffer: [body_size_max]u8 = undefined;
    try std.testing.expectEqualStrings(
        "{\"set\":\"shim-grub\",\"file\":\"shimx64.efi\",\"arch\":\"x64_uefi\",\"kind\":\"shim\"," ++
            "\"version\":\"16.1\",\"sizeBytes\":5,\"sha256\":\"" ++ hex ++ "\",\"signedBy\":[\"A \\\"Site\\\"\"]}",
        encode(program, &buffer),
    );
    const many: [64]BootProgram = @splat(program);
    try std.testing.expectEqual(BootProgram.count_max, BootProgram.countThatFits(&many));
    var long = program;
    long.version = .init(&@as([64]u8, @splat('"')));
    for (0..3) |_| long.signers.appendAssumeCapacity(long.version);
    const largest: [64]BootProgram = @splat(long);
    const count = BootProgram.countThatFits(&largest);
    try std.testing.expect(count > 4 and count < BootProgram.count_max);
    try std.testing.expect(encode(largest[0..count], &buffer).len <= BootProgram.text_size_max);
}
