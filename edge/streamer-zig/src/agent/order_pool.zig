//! Orders of devices that wait for a thread, with a copy of their bytes. Its memory is allocated
//! once. Whoever takes much leaves as much for others: a device may take another slot as long as it
//! has no more than are free.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const assert = std.debug.assert;

const WriteRef = core.stream.Server.WriteRef;

pub const OrderPool = @This();

pub const Order = union(enum) {
    write: struct { offset: u64, bytes: []const u8 },
    discard: struct { offset: u64, length: u32 },
    flush,

    fn size(order: Order) usize {
        return if (order == .write) order.write.bytes.len else 0;
    }
};

/// An order of a device, from its arrival to its end.
pub const Pending = struct {
    ref: WriteRef = undefined,
    /// Its bytes are in the pool.
    order: Order = .flush,
    /// Written by the thread that carries it out.
    result: store.WriteLayer.WriteError!void = {},
    /// So much of a discard is carried out; written by threads, one after the other.
    done_size: u32 = 0,
    next: u16 = none,
};

/// The orders of one layer, oldest first.
pub const Queue = struct {
    first: u16 = none,
    last: u16 = none,
    count: u16 = 0,
};

pub const none = std.math.maxInt(u16);

/// Most writes are one page of a device, or few.
const small_size = 4096;
const small_count = 256;
const large_count = 32;
/// The most bytes that one thread carries out for one layer before others get their turn.
const batch_size_max = 1 << 20;

slots: []Pending,
buffers: []u8,
free: [2]Queue,

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!OrderPool {
    const slots = try gpa.alloc(Pending, small_count + large_count);
    errdefer gpa.free(slots);
    @memset(slots, .{});
    var pool: OrderPool = .{
        .slots = slots,
        .buffers = try base.allocUntouched(
            gpa,
            u8,
            small_count * small_size + large_count * @as(usize, wire.writes.write_size_max),
        ),
        .free = @splat(.{}),
    };
    for (0..slots.len) |index| pool.append(&pool.free[classOf(index)], @intCast(index));
    return pool;
}

pub fn deinit(pool: *OrderPool, gpa: std.mem.Allocator) void {
    gpa.free(pool.slots);
    base.freeUntouched(gpa, u8, pool.buffers);
    pool.* = undefined;
}

/// Copies an order behind those of `queue`; returns false if no slot is free for its device.
pub fn give(pool: *OrderPool, queue: *Queue, ref: WriteRef, order: Order) bool {
    const class: usize = @intFromBool(order.size() > small_size);
    assert(order.size() <= wire.writes.write_size_max);
    const free = &pool.free[class];
    if (free.count == 0 or queue.count > free.count) return false;
    const index = pool.popFirst(free);
    const slot = &pool.slots[index];
    slot.* = .{ .ref = ref, .order = order };
    if (order == .write) {
        const bytes = pool.bufferOf(index)[0..order.size()];
        @memcpy(bytes, order.write.bytes);
        slot.order.write.bytes = bytes;
    }
    pool.append(queue, index);
    assert(queue.last == index);
    return true;
}

/// Counts the orders that a thread may carry out together.
pub fn batchOf(pool: *const OrderPool, queue: *const Queue) u16 {
    var count: u16 = 0;
    var size: usize = 0;
    var index = queue.first;
    while (count < queue.count) : (count += 1) {
        const slot = &pool.slots[index];
        size += slot.order.size();
        if (count > 0 and size > batch_size_max) break;
        index = slot.next;
    }
    return count;
}

/// Returns whether a part of the oldest order is carried out, and not all of it.
pub fn isFirstBegun(pool: *const OrderPool, queue: *const Queue) bool {
    return queue.count > 0 and pool.slots[queue.first].done_size > 0;
}

/// The first orders of a queue, to which others may be added at the same time.
pub const Iterator = struct {
    pool: *OrderPool,
    index: u16,
    left: u16,

    pub fn next(iterator: *Iterator) ?*Pending {
        if (iterator.left == 0) return null;
        iterator.left -= 1;
        const slot = &iterator.pool.slots[iterator.index];
        // The loop may be changing that of the last one.
        if (iterator.left > 0) iterator.index = slot.next;
        return slot;
    }
};

pub fn iterate(pool: *OrderPool, queue: *const Queue, count: u16) Iterator {
    assert(count <= queue.count);
    return .{ .pool = pool, .index = queue.first, .left = count };
}

/// Frees the slot of the oldest order and returns a copy of it, whose bytes are gone.
pub fn takeFirst(pool: *OrderPool, queue: *Queue) Pending {
    const index = pool.popFirst(queue);
    const free = &pool.free[classOf(index)];
    assert(queue != free);
    assert(free.count < pool.slots.len);
    defer pool.append(free, index);
    return pool.slots[index];
}

pub fn drop(pool: *OrderPool, queue: *Queue) void {
    while (queue.count > 0) _ = pool.takeFirst(queue);
    assert(queue.count == 0);
}

fn classOf(index: usize) usize {
    return @intFromBool(index >= small_count);
}

fn bufferOf(pool: *OrderPool, index: usize) []u8 {
    if (index < small_count) return pool.buffers[index * small_size ..][0..small_size];
    const at = small_count * small_size + (index - small_count) * wire.writes.write_size_max;
    return pool.buffers[at..][0..wire.writes.write_size_max];
}

fn append(pool: *OrderPool, queue: *Queue, index: u16) void {
    assert(index < pool.slots.len);
    assert(queue.count < pool.slots.len);
    pool.slots[index].next = none;
    if (queue.count == 0) queue.first = index else pool.slots[queue.last].next = index;
    queue.last = index;
    queue.count += 1;
}

fn popFirst(pool: *OrderPool, queue: *Queue) u16 {
    assert(queue.count > 0);
    const index = queue.first;
    assert(index < pool.slots.len);
    queue.first = pool.slots[index].next;
    queue.count -= 1;
    assert(queue.count == 0 or queue.first != none);
    return index;
}

const testing = std.testing;

fn refOf(request_id: u32) WriteRef {
    return .{ .boot_id = .zero, .session_id = 1, .request_id = request_id };
}

test "orders come back in their order, with the bytes that they had" {
    var pool: OrderPool = try .init(testing.allocator);
    defer pool.deinit(testing.allocator);
    var queue: Queue = .{};
    var bytes: [small_size + 512]u8 = undefined;
    for (0..6) |number| {
        @memset(&bytes, @intCast(number));
        const size: usize = if (number % 2 == 0) 512 else bytes.len;
        const order: Order = .{ .write = .{ .offset = number, .bytes = bytes[0..size] } };
        try testing.expect(pool.give(&queue, refOf(@intCast(number)), order));
    }
    var orders = pool.iterate(&queue, 6);
    for (0..6) |number| {
        const write = orders.next().?.order.write;
        try testing.expectEqual(number, write.offset);
        try testing.expect(std.mem.allEqual(u8, write.bytes, @intCast(number)));
    }
    try testing.expectEqual(null, orders.next());
    for (0..6) |number|
        try testing.expectEqual(number, pool.takeFirst(&queue).ref.request_id);
    try testing.expectEqual(0, queue.count);
    try testing.expectEqual(small_count, pool.free[0].count);
    try testing.expectEqual(large_count, pool.free[1].count);
}

test "a device that writes much leaves slots for others, and a batch is bounded" {
    var pool: OrderPool = try .init(testing.allocator);
    defer pool.deinit(testing.allocator);
    const bytes: [wire.writes.write_size_max]u8 = @splat(1);
    const order: Order = .{ .write = .{ .offset = 0, .bytes = &bytes } };
    var queues: [3]Queue = @splat(.{});
    while (pool.give(&queues[0], refOf(1), order)) {}
    try testing.expectEqual(large_count / 2 + 1, queues[0].count);
    try testing.expectEqual(batch_size_max / bytes.len, pool.batchOf(&queues[0]));
    while (pool.give(&queues[1], refOf(1), order)) {}
    try testing.expect(queues[1].count >= large_count / 4);
    try testing.expect(pool.give(&queues[2], refOf(1), order));
    // Small ones have slots of their own.
    try testing.expect(pool.give(&queues[2], refOf(2), .flush));
    try testing.expectEqual(2, pool.batchOf(&queues[2]));
    for (&queues) |*queue| pool.drop(queue);
    try testing.expectEqual(large_count, pool.free[1].count);
}
