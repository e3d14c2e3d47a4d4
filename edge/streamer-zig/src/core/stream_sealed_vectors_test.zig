//! The golden keys and sealed packets of packages/proto/vectors/stream-sealed-v2.json, which the TypeScript tests read too. 64-bit
//! numbers are hex.

const std = @import("std");
const wire = @import("wire").stream;
const stream_seal = @import("stream_seal.zig");
const testing = std.testing;

const Sealed = struct { packet: []const u8, direction: []const u8, counter: []const u8, known_size: u16, sealed: []const u8 };

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
    proof: []const u8,
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
    const hello: wire.Hello = .{
        .client_nonce = try bytesOf(16, vector.client_nonce),
        .kind = vector.kind,
        .ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true },
        .packet_size_max = vector.packet_size_max,
        .boot_id = try bytesOf(16, vector.boot_id),
        .client_public = device.public,
        .proof = @splat(0),
    };
    try testing.expectEqual(try bytesOf(32, vector.proof), stream_seal.helloProof(secret, &hello));
    const agreement: stream_seal.Agreement = .{ .hello = &hello, .edge_public = &edge.public, .cipher = vector.cipher, .secret = secret };
    const keys = stream_seal.agree(agreement, edge.secret, device.public).?;
    try testing.expectEqual(try bytesOf(32, vector.from_device), keys.from_device.bytes);
    try testing.expectEqual(try bytesOf(32, vector.from_edge), keys.from_edge.bytes);
    try testing.expectEqual(try std.fmt.parseInt(u64, vector.device_counter_first, 16), keys.device_counter_first);
    for (vector.sealed) |*sealed| {
        const key = if (std.mem.eql(u8, sealed.direction, "from_edge")) &keys.from_edge else &keys.from_device;
        const counter = try std.fmt.parseInt(u64, sealed.counter, 16);
        var buffer: [wire.packet_size_ethernet]u8 = undefined;
        const packet = try std.fmt.hexToBytes(&buffer, sealed.packet);
        var expected: [wire.packet_size_ethernet]u8 = undefined;
        const golden = try std.fmt.hexToBytes(&expected, sealed.sealed);
        try testing.expectEqualSlices(u8, golden, stream_seal.seal(key, counter, &buffer, packet.len, sealed.known_size));
    }
}

test "keys and sealed packets are the golden ones" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const text = @embedFile("stream_sealed_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky([]Vector, arena.allocator(), text, .{});
    try testing.expectEqual(4, vectors.len);
    for (vectors) |*vector| checkVector(vector) catch |err| {
        std.debug.print("vector: {s}\n", .{vector.name});
        return err;
    };
}
