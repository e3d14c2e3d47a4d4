//! Remembers the HELLOs that have opened sessions. The proof of a HELLO of version 2 does not cover
//! the cookie, so a recording of it stays valid; in version 3 it does so for a minute, at the
//! device's own address. What is remembered opens no second session. Bounded: the oldest of four
//! makes way.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const HelloMemory = @This();

/// Tags of boot and nonce, in sets; 0: free.
tags: []u64,
/// Nobody who chooses nonces can choose a set.
key: [16]u8,
/// Where the next one goes in a full set.
turn: u8 = 0,

const Hash = std.hash.SipHash64(2, 4);
const set_size = 4;

/// `capacity` is a power of 2.
pub fn init(gpa: std.mem.Allocator, capacity: u32, key: [16]u8) error{OutOfMemory}!HelloMemory {
    assert(capacity >= set_size);
    assert(std.math.isPowerOfTwo(capacity));
    const tags = try base.allocZeroed(gpa, u64, 0, capacity);
    return .{ .tags = tags, .key = key };
}

pub fn deinit(memory: *HelloMemory, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, u64, memory.tags);
    memory.* = undefined;
}

fn tagOf(memory: *const HelloMemory, boot_id: base.Uuid, client_nonce: [16]u8) u64 {
    const text = boot_id.bytes ++ client_nonce;
    return Hash.toInt(&text, &memory.key) | 1;
}

fn setOf(memory: *const HelloMemory, tag: u64) *[set_size]u64 {
    const sets = memory.tags.len / set_size;
    const index: usize = @intCast(tag >> 1 & (sets - 1));
    return memory.tags[index * set_size ..][0..set_size];
}

/// Tells whether this HELLO has opened a session.
pub fn has(memory: *const HelloMemory, boot_id: base.Uuid, client_nonce: [16]u8) bool {
    const tag = memory.tagOf(boot_id, client_nonce);
    return std.mem.findScalar(u64, memory.setOf(tag), tag) != null;
}

pub fn add(memory: *HelloMemory, boot_id: base.Uuid, client_nonce: [16]u8) void {
    if (memory.has(boot_id, client_nonce)) return;
    const tag = memory.tagOf(boot_id, client_nonce);
    const set = memory.setOf(tag);
    const free = std.mem.findScalar(u64, set, 0);
    memory.turn = (memory.turn + 1) % set_size;
    set[free orelse memory.turn] = tag;
    assert(memory.has(boot_id, client_nonce));
}

const testing = std.testing;

test "a HELLO is remembered by its boot and its nonce, and the newest ones always" {
    var memory: HelloMemory = try .init(testing.allocator, 64, @splat(7));
    defer memory.deinit(testing.allocator);
    const boot: base.Uuid = .fromBytes(@splat(1));
    for (0..1000) |index| {
        var nonce: [16]u8 = @splat(0);
        std.mem.writeInt(u64, nonce[0..8], index, .big);
        try testing.expect(!memory.has(boot, nonce));
        memory.add(boot, nonce);
        memory.add(boot, nonce);
        try testing.expect(memory.has(boot, nonce));
        try testing.expect(!memory.has(.fromBytes(@splat(2)), nonce));
    }
    var kept: u32 = 0;
    for (memory.tags) |tag| kept += @intFromBool(tag != 0);
    try testing.expectEqual(64, kept);
}
