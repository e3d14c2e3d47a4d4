//! The packets in flight of a simulated network. Its size is fixed; when it is full, the network
//! drops packets, as switches do.

const std = @import("std");
const assert = std.debug.assert;

pub const PacketPool = @This();

/// Bytes of the largest packet.
size_max: u16,
sizes: []u16,
bytes: []u8,
free: []u16,
free_count: u32,

pub fn init(gpa: std.mem.Allocator, capacity: u16, size_max: u16) error{OutOfMemory}!PacketPool {
    const sizes = try gpa.alloc(u16, capacity);
    errdefer gpa.free(sizes);
    const bytes = try gpa.alloc(u8, @as(usize, capacity) * size_max);
    errdefer gpa.free(bytes);
    var pool: PacketPool = .{
        .size_max = size_max,
        .sizes = sizes,
        .bytes = bytes,
        .free = try gpa.alloc(u16, capacity),
        .free_count = 0,
    };
    pool.clear();
    return pool;
}

/// Frees every slot.
pub fn clear(pool: *PacketPool) void {
    for (pool.free, 0..) |*slot, index| slot.* = @intCast(index);
    pool.free_count = @intCast(pool.free.len);
}

pub fn deinit(pool: *PacketPool, gpa: std.mem.Allocator) void {
    gpa.free(pool.sizes);
    gpa.free(pool.bytes);
    gpa.free(pool.free);
    pool.* = undefined;
}

pub fn take(pool: *PacketPool, bytes: []const u8) error{Full}!u16 {
    assert(bytes.len <= pool.size_max);
    if (pool.free_count == 0) return error.Full;
    pool.free_count -= 1;
    const slot = pool.free[pool.free_count];
    pool.sizes[slot] = @intCast(bytes.len);
    @memcpy(pool.view(slot), bytes);
    return slot;
}

pub fn view(pool: *const PacketPool, slot: u16) []u8 {
    return pool.bytes[@as(usize, slot) * pool.size_max ..][0..pool.sizes[slot]];
}

pub fn giveBack(pool: *PacketPool, slot: u16) void {
    assert(pool.free_count < pool.free.len);
    pool.free[pool.free_count] = slot;
    pool.free_count += 1;
}

test "a slot is taken once until it is given back" {
    var pool: PacketPool = try .init(std.testing.allocator, 2, 1472);
    defer pool.deinit(std.testing.allocator);
    const a = try pool.take("a");
    const b = try pool.take("bb");
    try std.testing.expect(a != b);
    try std.testing.expectError(error.Full, pool.take("c"));
    try std.testing.expectEqualStrings("bb", pool.view(b));
    pool.giveBack(a);
    try std.testing.expectEqual(a, try pool.take("d"));
}
