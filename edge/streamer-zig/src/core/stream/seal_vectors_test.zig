//! Tests of seal.zig with the golden HELLOs, keys and sealed packets of
//! packages/proto/vectors/stream-sealed-v2.json, which the TypeScript tests read too. 64-bit
//! numbers are hex.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const stream_seal = @import("seal.zig");
const testing = std.testing;
const ChaCha = std.crypto.aead.chacha_poly.ChaCha20Poly1305;

const Sealed = struct {
    packet: []const u8,
    direction: []const u8,
    counter: []const u8,
    known_size: u16,
    nonce: []const u8,
    sealed: []const u8,
};

const Vector = struct {
    name: []const u8,
    cipher: wire.Cipher,
    kind: wire.HelloKind,
    secret: []const u8,
    device_secret: []const u8,
    device_public: []const u8,
    edge_secret: []const u8,
    edge_public: []const u8,
    packet_size_max: u16,
    client_nonce: []const u8,
    boot_id: []const u8,
    ciphers: []const wire.Cipher,
    age_us: ?[]const u8 = null,
    ticket: ?[]const u8 = null,
    hello: []const u8,
    proof: []const u8,
    shared: []const u8,
    context: []const u8,
    from_device: []const u8,
    from_edge: []const u8,
    device_counter_first: []const u8,
    sealed: []const Sealed,
};

fn bytesOf(comptime size: usize, hex: []const u8) ![size]u8 {
    var bytes: [size]u8 = undefined;
    _ = try std.fmt.hexToBytes(&bytes, hex);
    return bytes;
}

fn checkVector(vector: *const Vector) !void {
    var secret_buffer: [32]u8 = undefined;
    const secret = try std.fmt.hexToBytes(&secret_buffer, vector.secret);
    const device: stream_seal.KeyPair = .init(try bytesOf(32, vector.device_secret));
    const edge: stream_seal.KeyPair = .init(try bytesOf(32, vector.edge_secret));
    try testing.expectEqual(try bytesOf(32, vector.device_public), device.public);
    try testing.expectEqual(try bytesOf(32, vector.edge_public), edge.public);
    var hello_buffer: [wire.hello_size_max]u8 = undefined;
    const hello = (try wire.parse(try std.fmt.hexToBytes(&hello_buffer, vector.hello))).body.hello;
    try checkHello(vector, &hello, device.public);
    try testing.expectEqual(hello.proof, stream_seal.helloProof(secret, &hello));
    const agreement: stream_seal.Agreement = .{
        .hello = &hello,
        .edge_public = &edge.public,
        .cipher = vector.cipher,
        .secret = secret,
    };
    const keys = stream_seal.agree(agreement, edge.secret, device.public).?;
    try testing.expectEqual(try bytesOf(32, vector.from_device), keys.from_device.bytes);
    try testing.expectEqual(try bytesOf(32, vector.from_edge), keys.from_edge.bytes);
    try testing.expectEqual(
        try std.fmt.parseInt(u64, vector.device_counter_first, 16),
        keys.device_counter_first,
    );
    try checkSteps(
        vector,
        secret,
        edge.secret,
        device.public,
        hello_buffer[0 .. vector.hello.len / 2],
    );
    for (vector.sealed) |*sealed| {
        const key = if (std.mem.eql(u8, sealed.direction, "from_edge"))
            &keys.from_edge
        else
            &keys.from_device;
        const counter = try std.fmt.parseInt(u64, sealed.counter, 16);
        var buffer: [wire.packet_size_ethernet]u8 = undefined;
        const packet = try std.fmt.hexToBytes(&buffer, sealed.packet);
        var expected: [wire.packet_size_ethernet]u8 = undefined;
        const golden = try std.fmt.hexToBytes(&expected, sealed.sealed);
        try testing.expectEqualSlices(
            u8,
            golden,
            stream_seal.seal(key, counter, &buffer, packet.len, sealed.known_size),
        );
        try openByNonce(key, sealed, golden);
    }
}

fn checkHello(vector: *const Vector, hello: *const wire.Hello, device_public: [32]u8) !void {
    try testing.expectEqual(vector.kind, hello.kind);
    try testing.expectEqual(try bytesOf(16, vector.client_nonce), hello.client_nonce);
    try testing.expectEqual(try bytesOf(16, vector.boot_id), hello.boot_id);
    try testing.expectEqual(vector.packet_size_max, hello.packet_size_max);
    try testing.expectEqual(device_public, hello.client_public);
    try testing.expectEqual(try bytesOf(32, vector.proof), hello.proof);
    var ciphers: wire.Ciphers = .{};
    for (vector.ciphers) |cipher| switch (cipher) {
        .clear => ciphers.clear = true,
        .aegis_128l => ciphers.aegis_128l = true,
        .chacha20_poly1305 => ciphers.chacha20_poly1305 = true,
    };
    try testing.expectEqual(ciphers, hello.ciphers);
    if (vector.kind != .ticket) return;
    try testing.expectEqual(try std.fmt.parseInt(u64, vector.age_us.?, 16), hello.shown.?.age_us);
    try testing.expectEqual(
        try bytesOf(wire.ticket.sealed_size, vector.ticket.?),
        hello.shown.?.ticket,
    );
}

/// Recomputes the steps between both sides' keys and the session keys from the vector alone.
fn checkSteps(
    vector: *const Vector,
    secret: []const u8,
    edge_secret: [32]u8,
    device_public: [32]u8,
    hello: []u8,
) !void {
    const shared = try bytesOf(32, vector.shared);
    try testing.expectEqual(base.x25519.shared(&edge_secret, &device_public).?, shared);
    @memset(hello[32..64], 0);
    @memset(hello[116..148], 0);
    var transcript: base.Sha256 = .init(.{});
    transcript.update("bootfarm stream 2");
    transcript.update(hello);
    transcript.update(&(try bytesOf(32, vector.edge_public)));
    transcript.update(&.{@backingInt(vector.cipher)});
    const context = try bytesOf(32, vector.context);
    try testing.expectEqual(transcript.finalResult(), context);
    var keys: [72]u8 = undefined;
    base.HkdfSha256.expand(&keys, &context, base.HkdfSha256.extract(secret, &shared));
    try testing.expectEqual(try bytesOf(32, vector.from_device), keys[0..32].*);
    try testing.expectEqual(try bytesOf(32, vector.from_edge), keys[32..64].*);
}

/// The golden packet opens under the nonce that the vector names, with its readable bytes as
/// associated data.
fn openByNonce(key: *const stream_seal.Key, vector: *const Sealed, golden: []const u8) !void {
    const known = golden[0..vector.known_size];
    const text = golden[known.len .. golden.len - wire.tag_size];
    const tag = golden[golden.len - wire.tag_size ..][0..wire.tag_size];
    var out: [wire.packet_size_ethernet]u8 = undefined;
    const opened = out[0..text.len];
    switch (key.cipher) {
        .clear => unreachable,
        .aegis_128l => {
            const nonce = try bytesOf(16, vector.nonce);
            try testing.expect(
                base.aegis128l.open(opened, tag, text, known, nonce, key.bytes[0..16]),
            );
        },
        .chacha20_poly1305 => try ChaCha.decrypt(
            opened,
            text,
            tag.*,
            known,
            try bytesOf(12, vector.nonce),
            key.bytes,
        ),
    }
    var packet: [wire.packet_size_ethernet]u8 = undefined;
    const clear = try std.fmt.hexToBytes(&packet, vector.packet);
    try testing.expectEqualSlices(u8, clear[known.len..], opened);
}

test "HELLOs, keys and sealed packets match the golden ones" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = @embedFile("stream_sealed_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky([]Vector, arena.allocator(), text, .{});
    try testing.expectEqual(6, vectors.len);
    for (vectors) |*vector| checkVector(vector) catch |err| {
        std.debug.print("vector: {s}\n", .{vector.name});
        return err;
    };
}
