//! A bounded ring from one thread to another (single producer, single consumer), without locks and
//! without waiting: the side that finds it full decides what to do. Entries are written and read in
//! place, never copied.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub fn SpscRing(comptime T: type) type {
    return struct {
        const Ring = @This();

        slots: []T,
        /// How many entries were put in and taken out; each is written by one side alone.
        put: std.atomic.Value(u64) align(std.atomic.cache_line) = .init(0),
        taken: std.atomic.Value(u64) align(std.atomic.cache_line) = .init(0),

        pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!Ring {
            assert(std.math.isPowerOfTwo(capacity));
            return .{ .slots = try base.allocUntouched(gpa, T, capacity) };
        }

        pub fn deinit(ring: *Ring, gpa: std.mem.Allocator) void {
            base.freeUntouched(gpa, T, ring.slots);
            ring.* = undefined;
        }

        /// For the producer: returns the slot to fill in before `commit`, or null if the ring is
        /// full.
        pub fn reserve(ring: *Ring) ?*T {
            const at = ring.put.load(.monotonic);
            if (at - ring.taken.load(.acquire) == ring.slots.len) return null;
            return &ring.slots[@intCast(at % ring.slots.len)];
        }

        pub fn commit(ring: *Ring) void {
            ring.put.store(ring.put.load(.monotonic) + 1, .release);
        }

        /// For the consumer: returns the next entry, valid until `release`, or null if there is
        /// none.
        pub fn peek(ring: *Ring) ?*T {
            const at = ring.taken.load(.monotonic);
            if (at == ring.put.load(.acquire)) return null;
            return &ring.slots[@intCast(at % ring.slots.len)];
        }

        pub fn release(ring: *Ring) void {
            ring.taken.store(ring.taken.load(.monotonic) + 1, .release);
        }

        pub fn count(ring: *const Ring) u64 {
            return ring.put.load(.acquire) - ring.taken.load(.acquire);
        }
    };
}

test "everything that one thread puts in, another takes out in order, however short the ring" {
    const testing = std.testing;
    const total = 20_000;
    var ring: SpscRing(u64) = try .init(testing.allocator, 4);
    defer ring.deinit(testing.allocator);
    const writer = try std.Thread.spawn(.{}, struct {
        fn run(to: *SpscRing(u64)) void {
            for (0..total) |number| {
                const slot = while (true) {
                    if (to.reserve()) |slot| break slot;
                    std.Thread.yield() catch {};
                };
                slot.* = number;
                to.commit();
            }
        }
    }.run, .{&ring});
    defer writer.join();
    for (0..total) |expected| {
        const number = while (true) {
            if (ring.peek()) |number| break number;
            std.Thread.yield() catch {};
        };
        try testing.expectEqual(expected, number.*);
        ring.release();
    }
    try testing.expectEqual(null, ring.peek());
}

test "a full ring takes nothing until something was taken out" {
    const testing = std.testing;
    var ring: SpscRing(u8) = try .init(testing.allocator, 2);
    defer ring.deinit(testing.allocator);
    for (0..2) |number| {
        ring.reserve().?.* = @intCast(number);
        ring.commit();
    }
    try testing.expectEqual(null, ring.reserve());
    try testing.expectEqual(0, ring.peek().?.*);
    ring.release();
    ring.reserve().?.* = 2;
    ring.commit();
    for ([_]u8{ 1, 2 }) |expected| {
        try testing.expectEqual(expected, ring.peek().?.*);
        ring.release();
    }
}
