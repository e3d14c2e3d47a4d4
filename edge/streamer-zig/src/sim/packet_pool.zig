//! Packets that are under way. A fixed number of them; when all are taken the network drops, as switches do.

const std = @import("std");
const assert = std.debug.assert;

pub const PacketPool = @This();

/// Payload of UDP at an MTU of 1500: less 20 bytes of IP and 8 of UDP.
pub const payload_size_max = 1472;

packets: []Packet,
free: []u16,
free_count: u32,

const Packet = struct { size: u16, bytes: [payload_size_max]u8 };

pub fn init(gpa: std.mem.Allocator, capacity: u16) error{OutOfMemory}!PacketPool {
    const packets = try gpa.alloc(Packet, capacity);
    errdefer gpa.free(packets);
    const free = try gpa.alloc(u16, capacity);
    for (free, 0..) |*slot, index| slot.* = @intCast(index);
    return .{ .packets = packets, .free = free, .free_count = capacity };
}

pub fn deinit(pool: *PacketPool, gpa: std.mem.Allocator) void {
    gpa.free(pool.packets);
    gpa.free(pool.free);
    pool.* = undefined;
}

pub fn take(pool: *PacketPool, bytes: []const u8) error{Full}!u16 {
    assert(bytes.len <= payload_size_max);
    if (pool.free_count == 0) return error.Full;
    pool.free_count -= 1;
    const slot = pool.free[pool.free_count];
    pool.packets[slot].size = @intCast(bytes.len);
    @memcpy(pool.packets[slot].bytes[0..bytes.len], bytes);
    return slot;
}

pub fn view(pool: *const PacketPool, slot: u16) []u8 {
    const packet = &pool.packets[slot];
    return packet.bytes[0..packet.size];
}

pub fn giveBack(pool: *PacketPool, slot: u16) void {
    assert(pool.free_count < pool.free.len);
    pool.free[pool.free_count] = slot;
    pool.free_count += 1;
}

test "a pool gives each slot once until it is given back" {
    var pool: PacketPool = try .init(std.testing.allocator, 2);
    defer pool.deinit(std.testing.allocator);
    const a = try pool.take("a");
    const b = try pool.take("bb");
    try std.testing.expect(a != b);
    try std.testing.expectError(error.Full, pool.take("c"));
    try std.testing.expectEqualStrings("bb", pool.view(b));
    pool.giveBack(a);
    try std.testing.expectEqual(a, try pool.take("d"));
}
