//! A bounded ring from one thread to another (single producer, single consumer), without locks and
//! without waiting: the side that finds it full decides what to do. Entries are written and read in
//! place, never copied.

const std = @import("std");
const assert = std.debug.assert;

pub fn SpscRing(comptime T: type) type {
    return struct {
        const Ring = @This();

        places: []T,
        /// How many entries were put in and taken out; each is written by one side alone.
        put: std.atomic.Value(u64) align(std.atomic.cache_line) = .init(0),
        taken: std.atomic.Value(u64) align(std.atomic.cache_line) = .init(0),

        pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!Ring {
            assert(std.math.isPowerOfTwo(capacity));
            return .{ .places = try gpa.alloc(T, capacity) };
        }

        pub fn deinit(ring: *Ring, gpa: std.mem.Allocator) void {
            gpa.free(ring.places);
            ring.* = undefined;
        }

        /// For the producer: returns the slot to fill in before `give`, or null if the ring is
        /// full.
        pub fn room(ring: *Ring) ?*T {
            const at = ring.put.load(.monotonic);
            if (at - ring.taken.load(.acquire) == ring.places.len) return null;
            return &ring.places[@intCast(at % ring.places.len)];
        }

        pub fn give(ring: *Ring) void {
            ring.put.store(ring.put.load(.monotonic) + 1, .release);
        }

        /// For the consumer: returns the next entry, valid until `done`, or null if there is none.
        pub fn next(ring: *Ring) ?*T {
            const at = ring.taken.load(.monotonic);
            if (at == ring.put.load(.acquire)) return null;
            return &ring.places[@intCast(at % ring.places.len)];
        }

        pub fn done(ring: *Ring) void {
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
                const place = while (true) {
                    if (to.room()) |place| break place;
                    std.Thread.yield() catch {};
                };
                place.* = number;
                to.give();
            }
        }
    }.run, .{&ring});
    defer writer.join();
    for (0..total) |expected| {
        const number = while (true) {
            if (ring.next()) |number| break number;
            std.Thread.yield() catch {};
        };
        try testing.expectEqual(expected, number.*);
        ring.done();
    }
    try testing.expectEqual(null, ring.next());
}

test "a full ring takes nothing until something was taken out" {
    const testing = std.testing;
    var ring: SpscRing(u8) = try .init(testing.allocator, 2);
    defer ring.deinit(testing.allocator);
    for (0..2) |number| {
        ring.room().?.* = @intCast(number);
        ring.give();
    }
    try testing.expectEqual(null, ring.room());
    try testing.expectEqual(0, ring.next().?.*);
    ring.done();
    ring.room().?.* = 2;
    ring.give();
    for ([_]u8{ 1, 2 }) |expected| {
        try testing.expectEqual(expected, ring.next().?.*);
        ring.done();
    }
}
