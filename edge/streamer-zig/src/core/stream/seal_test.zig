//! Tests of seal.zig, with the golden HELLOs, keys and sealed packets of
//! packages/proto/vectors/stream-sealed-v2.json, which the TypeScript tests read too.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const device_signature = @import("device_signature.zig");
const stream_seal = @import("seal.zig");
const testing = std.testing;

const ciphers = [_]wire.Cipher{ .aegis_128l, .chacha20_poly1305 };

test "what one side sealed the other opens, and nothing else" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(7) };
        var buffer: [200]u8 = @splat(0);
        for (buffer[0..180], 0..) |*byte, index| byte.* = @truncate(index);
        const before = buffer;
        const sealed = stream_seal.seal(&key, 0x0102030405060708, &buffer, 180, 16);
        try testing.expectEqual(196, sealed.len);
        try testing.expectEqual(0x0102030405060708, stream_seal.counterOf(sealed));
        try testing.expect(!std.mem.eql(u8, before[16..180], sealed[16..180]));
        var out: [200]u8 = undefined;
        const opened = stream_seal.open(&key, sealed, 16, &out).?;
        try testing.expectEqualSlices(u8, before[0..8], opened[0..8]);
        try testing.expectEqualSlices(u8, before[16..180], opened[16..]);
        // Every bit counts, including the counter's.
        var forged: [196]u8 = sealed[0..196].*;
        for (0..forged.len * 8) |bit| {
            const flip = @as(u8, 1) << @intCast(bit % 8);
            forged[bit / 8] ^= flip;
            try testing.expectEqual(null, stream_seal.open(&key, &forged, 16, &out));
            forged[bit / 8] ^= flip;
        }
        for (0..196) |size|
            try testing.expectEqual(null, stream_seal.open(&key, forged[0..size], 16, &out));
        var other = key;
        other.bytes[15] ^= 1;
        try testing.expectEqual(null, stream_seal.open(&other, sealed, 16, &out));
    }
}

test "sealing a fragment in one pass equals sealing its packet in place" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(9) };
        const payload: [100]u8 = @splat(3);
        const header = wire.dataHeader(.v2, 5, 6, 7);
        var out: [200]u8 = undefined;
        const at_once = stream_seal.sealFragment(&key, 77, &header, &payload, &out);
        var in_place: [200]u8 = undefined;
        in_place[0..116].* = header ++ payload;
        try testing.expectEqualSlices(u8, stream_seal.seal(&key, 77, &in_place, 116, 16), at_once);
    }
}

test "a fragment opens into its final place, and a modified one does not" {
    for (ciphers) |cipher| {
        const key: stream_seal.Key = .{ .cipher = cipher, .bytes = @splat(9) };
        var payload: [100]u8 = undefined;
        for (&payload, 0..) |*byte, index| byte.* = @truncate(index * 7);
        var sealed: [132]u8 = undefined;
        _ = stream_seal.sealFragment(&key, 77, &wire.dataHeader(.v2, 5, 6, 7), &payload, &sealed);
        var out: [102]u8 = @splat(1);
        try testing.expect(stream_seal.openFragment(&key, &sealed, out[1..101]));
        try testing.expectEqualSlices(u8, &[_]u8{1} ++ payload ++ &[_]u8{1}, &out);
        for (0..sealed.len * 8) |bit| {
            const flip = @as(u8, 1) << @intCast(bit % 8);
            sealed[bit / 8] ^= flip;
            try testing.expect(!stream_seal.openFragment(&key, &sealed, out[1..101]));
            sealed[bit / 8] ^= flip;
        }
        try testing.expectEqual([2]u8{ 1, 1 }, [2]u8{ out[0], out[101] });
        // The sealed packet is unchanged.
        try testing.expect(stream_seal.openFragment(&key, &sealed, out[1..101]));
    }
}

fn helloOf(public: [32]u8) wire.Hello {
    return .{
        .client_nonce = @splat(1),
        .kind = .token,
        .ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true },
        .packet_size_max = 1472,
        .boot_id = @splat(2),
        .client_public = public,
        .proof = @splat(3),
    };
}

test "both sides agree on keys, and on others with another secret, HELLO or cipher" {
    const device: stream_seal.KeyPair = .init(@splat(0x41));
    const edge: stream_seal.KeyPair = .init(@splat(0x42));
    const hello = helloOf(device.public);
    const agreement: stream_seal.Agreement = .{
        .hello = &hello,
        .edge_public = &edge.public,
        .cipher = .aegis_128l,
        .secret = "0123456789abcdef",
    };
    const at_device = stream_seal.agree(agreement, device.secret, edge.public).?;
    const at_edge = stream_seal.agree(agreement, edge.secret, device.public).?;
    try testing.expectEqualDeep(at_device, at_edge);
    try testing.expect(!std.mem.eql(u8, &at_device.from_device.bytes, &at_device.from_edge.bytes));
    // The cookie is not covered: it arrives in between.
    var with_cookie = hello;
    with_cookie.cookie = @splat(8);
    var same = agreement;
    same.hello = &with_cookie;
    try testing.expectEqualDeep(at_device, stream_seal.agree(same, edge.secret, device.public).?);
    var other_hello = hello;
    other_hello.ciphers.aegis_128l = false;
    var others: [3]stream_seal.Agreement = @splat(agreement);
    others[0].secret = "0123456789abcdeg";
    others[1].hello = &other_hello;
    others[2].cipher = .chacha20_poly1305;
    for (others) |other| {
        const keys = stream_seal.agree(other, edge.secret, device.public).?;
        try testing.expect(!std.mem.eql(u8, &at_device.from_edge.bytes, &keys.from_edge.bytes));
    }
    // The point 0 gives the secret 0 for any other key.
    try testing.expectEqual(null, stream_seal.agree(agreement, edge.secret, @splat(0)));
}

test "a packet is accepted once, however late within the window, and not behind it" {
    var window: stream_seal.ReplayWindow(128) = .{};
    var model: std.AutoHashMapUnmanaged(u64, void) = .empty;
    defer model.deinit(testing.allocator);
    var prng: base.Prng = .init(11);
    var newest: u64 = 1 << 40;
    for (0..20_000) |_| {
        const step: u64 = if (prng.chance(1, 50)) 500 else prng.below(3);
        const counter = if (prng.chance(1, 2)) newest + step else newest -| prng.below(160);
        const is_behind = window.is_used and counter + 128 <= window.newest;
        const expected = !is_behind and !model.contains(counter);
        try testing.expectEqual(expected, window.isNew(counter));
        if (!expected) continue;
        window.note(counter);
        try model.put(testing.allocator, counter, {});
        newest = @max(newest, counter);
    }
}

test "the better common cipher is used, and clear text only if both sides want it" {
    const all: wire.Ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true };
    try testing.expectEqual(.aegis_128l, stream_seal.chooseCipher(all, all));
    try testing.expectEqual(.chacha20_poly1305, stream_seal.chooseCipher(all, .{
        .chacha20_poly1305 = true,
    }));
    try testing.expectEqual(
        .aegis_128l,
        stream_seal.chooseCipher(.{ .clear = true, .aegis_128l = true }, all),
    );
    try testing.expectEqual(
        .aegis_128l,
        stream_seal.chooseCipher(all, .{ .clear = true, .aegis_128l = true }),
    );
    try testing.expectEqual(
        .clear,
        stream_seal.chooseCipher(.{ .clear = true }, .{ .clear = true, .aegis_128l = true }),
    );
    try testing.expectEqual(null, stream_seal.chooseCipher(.{ .clear = true }, all));
}

const ChaCha = std.crypto.aead.chacha_poly.ChaCha20Poly1305;

/// A golden packet. 64-bit numbers are hex.
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
    /// The device's key, what it signed, and its signature.
    device_key: ?[]const u8 = null,
    signed_digest: ?[]const u8 = null,
    signature: ?[]const u8 = null,
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
    try checkSignature(vector, &hello);
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
    var expected: wire.Ciphers = .{};
    for (vector.ciphers) |cipher| switch (cipher) {
        .clear => expected.clear = true,
        .aegis_128l => expected.aegis_128l = true,
        .chacha20_poly1305 => expected.chacha20_poly1305 = true,
    };
    try testing.expectEqual(expected, hello.ciphers);
    if (vector.kind != .ticket) return;
    try testing.expectEqual(try std.fmt.parseInt(u64, vector.age_us.?, 16), hello.shown.?.age_us);
    try testing.expectEqual(
        try bytesOf(wire.ticket.sealed_size, vector.ticket.?),
        hello.shown.?.ticket,
    );
}

fn checkSignature(vector: *const Vector, hello: *const wire.Hello) !void {
    const key = vector.device_key orelse
        return testing.expectEqual(.none, device_signature.claimOf(hello));
    try testing.expectEqual(try bytesOf(65, key), hello.device_key);
    try testing.expectEqual(try bytesOf(64, vector.signature.?), hello.signature);
    const transcript = device_signature.transcriptOf(hello);
    try testing.expectEqual(
        try bytesOf(32, vector.signed_digest.?),
        device_signature.digestOf(&transcript),
    );
    const fingerprint = device_signature.fingerprintOf(&hello.device_key);
    try testing.expectEqual(fingerprint, device_signature.claimOf(hello).signed);
    // It covers the whole HELLO, and the cookie that only one address has.
    var changed = hello.*;
    changed.cookie[31] ^= 1;
    try testing.expectEqual(.forged, device_signature.claimOf(&changed));
    changed = hello.*;
    changed.packet_size_max += 1;
    try testing.expectEqual(.forged, device_signature.claimOf(&changed));
    changed = hello.*;
    changed.proof[0] ^= 1;
    try testing.expectEqual(fingerprint, device_signature.claimOf(&changed).signed);
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
    const is_newer = hello[0] >> 4 == 3;
    @memset(hello[32..64], 0);
    // Version 3: four bytes more, and a signature.
    if (is_newer) @memset(hello[120..152], 0) else @memset(hello[116..148], 0);
    if (is_newer and vector.kind == .token) @memset(hello[217..281], 0);
    var transcript: base.Sha256 = .init(.{});
    transcript.update(if (is_newer) "bootfarm stream 3" else "bootfarm stream 2");
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
    for ([_][]const u8{
        @embedFile("stream_sealed_vectors_v2_json"),
        @embedFile("stream_sealed_vectors_v3_json"),
    }) |text| {
        const vectors = try std.json.parseFromSliceLeaky([]Vector, arena.allocator(), text, .{});
        try testing.expectEqual(6, vectors.len);
        for (vectors) |*vector| checkVector(vector) catch |err| {
            std.debug.print("vector: {s}\n", .{vector.name});
            return err;
        };
    }
}

test "the proofs of LOST and of its answer match the golden ones" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const LostVector = struct {
        name: []const u8,
        secret: []const u8,
        lost: []const u8,
        lost_ack: []const u8,
    };
    const text = @embedFile("stream_lost_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky([]LostVector, arena.allocator(), text, .{});
    try testing.expect(vectors.len > 0);
    for (vectors) |*vector| {
        const secret = try bytesOf(32, vector.secret);
        const lost = (try wire.parse(&try bytesOf(wire.lost_size, vector.lost))).body.lost;
        try testing.expectEqual(lost.proof, stream_seal.lostProof(&secret, &lost));
        const bytes = try bytesOf(wire.lost_ack_size, vector.lost_ack);
        const ack = (try wire.parse(&bytes)).body.lost_ack;
        try testing.expectEqual(ack.proof, stream_seal.lostAckProof(&secret, &ack));
        try testing.expectEqual(lost.nonce, ack.nonce);
    }
}

test "the proof covers the cookie in version 3, and in version 2 all but the cookie" {
    for (std.enums.values(wire.Version)) |version| {
        var hello: wire.Hello = .{
            .version = version,
            .client_nonce = @splat(1),
            .kind = .resumption,
            .ciphers = .{ .clear = true },
            .packet_size_max = 1472,
            .boot_id = @splat(2),
            .client_public = @splat(3),
            .proof = @splat(4),
        };
        const before = stream_seal.helloProof("secret", &hello);
        hello.cookie = @splat(5);
        const after = stream_seal.helloProof("secret", &hello);
        try testing.expectEqual(version == .v2, std.mem.eql(u8, &before, &after));
        hello.packet_size_max += 1;
        try testing.expect(!std.mem.eql(u8, &after, &stream_seal.helloProof("secret", &hello)));
    }
}

test "a packet that jumps ahead forgets what it passes, and nothing else" {
    const size = 128;
    for (0..64) |start| {
        const before = 1000 + start;
        var full: stream_seal.ReplayWindow(size) = .{};
        for (before + 1 - size..before + 1) |counter| full.note(counter);
        for (1..size + 70) |jump| {
            var window = full;
            const newest = before + jump;
            window.note(newest);
            for (newest - size..newest + 1) |counter| {
                const expected = counter > before and counter < newest and counter + size > newest;
                try testing.expectEqual(expected, window.isNew(counter));
            }
            try testing.expect(window.isNew(newest + 1));
        }
    }
}

test "this program has a cipher for every device, and clear text only where it was requested" {
    try testing.expect(stream_seal.ownCiphers().chacha20_poly1305);
    try testing.expect(!stream_seal.ownCiphers().clear);
    try testing.expect(stream_seal.withClear().clear);
    try testing.expect(stream_seal.withClear().chacha20_poly1305);
}
