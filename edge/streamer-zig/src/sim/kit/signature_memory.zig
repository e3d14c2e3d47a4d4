//! A cache of signatures that were made or checked, with everything on which they depend. The real
//! function makes and checks each of them once.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const simulated = store.simulated;
const assert = std.debug.assert;
const Ed25519 = base.Ed25519;

pub const SignatureMemory = @This();

const slots_max = 1024;
const message_size_max = 640;

const CheckedSignature = struct {
    /// 0: none.
    message_size: u16 = 0,
    message: [message_size_max]u8,
    signature: [64]u8,
    key: [32]u8,
    is_right: bool,
};

/// Ed25519 is deterministic: a key and a message have one signature.
const MadeSignature = struct {
    /// 0: none.
    message_size: u16 = 0,
    message: [message_size_max]u8,
    seed: [32]u8,
    signature: [64]u8,
};

known: [slots_max]CheckedSignature,
made: [slots_max]MadeSignature,
pair: ?struct { seed: [32]u8, pair: Ed25519.KeyPair } = null,
checked: u64 = 0,
remembered: u64 = 0,

pub fn create(gpa: std.mem.Allocator) error{OutOfMemory}!*SignatureMemory {
    const memory = try gpa.create(SignatureMemory);
    memory.pair = null;
    memory.checked = 0;
    memory.remembered = 0;
    for (&memory.known, &memory.made) |*known, *made| {
        known.message_size = 0;
        made.message_size = 0;
    }
    return memory;
}

pub fn interface(memory: *SignatureMemory) simulated.Memory {
    return .{ .context = memory, .keyPair = keyPair, .sign = sign, .isRight = isRight };
}

fn keyPair(context: *anyopaque, seed: *const [32]u8) ?Ed25519.KeyPair {
    const memory: *SignatureMemory = @ptrCast(@alignCast(context));
    if (memory.pair) |*known| if (std.mem.eql(u8, &known.seed, seed)) return known.pair;
    const made = Ed25519.KeyPair.generateDeterministic(seed.*) catch return null;
    memory.pair = .{ .seed = seed.*, .pair = made };
    return made;
}

fn sign(context: *anyopaque, message: []const u8, key: *const Ed25519.KeyPair) [64]u8 {
    const memory: *SignatureMemory = @ptrCast(@alignCast(context));
    assert(message.len > 0);
    if (message.len > message_size_max) return key.sign(message).toBytes();
    const slot = &memory.made[@intCast(std.hash.Wyhash.hash(0, message) % slots_max)];
    const is_made = slot.message_size == message.len and
        std.mem.eql(u8, slot.message[0..message.len], message) and
        std.mem.eql(u8, &slot.seed, &key.seed);
    if (is_made) return slot.signature;
    slot.message_size = @intCast(message.len);
    @memcpy(slot.message[0..message.len], message);
    slot.seed = key.seed;
    slot.signature = key.sign(message).toBytes();
    return slot.signature;
}

fn isRight(
    context: *anyopaque,
    message: []const u8,
    signature: *const [64]u8,
    key: Ed25519.PublicKey,
) bool {
    const memory: *SignatureMemory = @ptrCast(@alignCast(context));
    assert(message.len > 0);
    const key_bytes = key.toBytes();
    const slot = &memory.known[@intCast(std.hash.Wyhash.hash(0, signature) % slots_max)];
    const is_known = slot.message_size == message.len and
        std.mem.eql(u8, slot.message[0..message.len], message) and
        std.mem.eql(u8, &slot.signature, signature) and
        std.mem.eql(u8, &slot.key, &key_bytes);
    if (is_known) {
        memory.remembered += 1;
        return slot.is_right;
    }
    memory.checked += 1;
    const result = simulated.isRight(message, signature, key);
    if (message.len > message_size_max) return result;
    slot.message_size = @intCast(message.len);
    @memcpy(slot.message[0..message.len], message);
    slot.signature = signature.*;
    slot.key = key_bytes;
    slot.is_right = result;
    return result;
}

test "a repeated signature is that of the key and the message" {
    const memory = try create(std.testing.allocator);
    defer std.testing.allocator.destroy(memory);
    const known = memory.interface();
    const pairs = [_]Ed25519.KeyPair{
        try .generateDeterministic(@splat(3)),
        try .generateDeterministic(@splat(4)),
    };
    const messages = [_][]const u8{ "message", "massage", "messages" };
    for (0..2) |_| for (&pairs) |*pair| for (messages) |message| {
        const expected = pair.sign(message).toBytes();
        for (0..2) |_|
            try std.testing.expectEqual(expected, known.sign(known.context, message, pair));
    };
}

test "a repeated check has the same result, and other bytes are checked by the real function" {
    const memory = try create(std.testing.allocator);
    defer std.testing.allocator.destroy(memory);
    const known = memory.interface();
    const pair = known.keyPair(known.context, &@splat(3)).?;
    try std.testing.expectEqual(pair, known.keyPair(known.context, &@splat(3)).?);
    const key = pair.public_key;
    var signature = pair.sign("message").toBytes();
    for (0..2) |_| {
        try std.testing.expect(known.isRight(known.context, "message", &signature, key));
        try std.testing.expect(!known.isRight(known.context, "massage", &signature, key));
    }
    try std.testing.expectEqual(4, memory.checked);
    try std.testing.expect(known.isRight(known.context, "message", &signature, key));
    try std.testing.expect(known.isRight(known.context, "message", &signature, key));
    try std.testing.expectEqual(1, memory.remembered);
    signature[0] ^= 1;
    try std.testing.expect(!known.isRight(known.context, "message", &signature, key));
}
