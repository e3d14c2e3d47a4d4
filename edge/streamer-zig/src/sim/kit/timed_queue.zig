//! The planned events of a simulation, in order of time, and at the same time in the order in which
//! they were planned. Fixed capacity: an event that does not fit is a fault of the simulation.

const std = @import("std");
const base = @import("base");

pub fn TimedQueue(comptime Event: type) type {
    return struct {
        const Queue = @This();

        heap: []Planned,
        count: u32 = 0,
        sequence: u64 = 0,
        count_max_seen: u32 = 0,

        pub const Planned = struct { at_us: u64, sequence: u64, event: Event };

        pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!Queue {
            return .{ .heap = try gpa.alloc(Planned, capacity) };
        }

        pub fn deinit(queue: *Queue, gpa: std.mem.Allocator) void {
            gpa.free(queue.heap);
            queue.* = undefined;
        }

        pub fn push(queue: *Queue, at_us: u64, event: Event) error{Full}!void {
            if (queue.count == queue.heap.len) return error.Full;
            var index = queue.count;
            queue.count += 1;
            queue.count_max_seen = @max(queue.count_max_seen, queue.count);
            const planned: Planned =
                .{ .at_us = at_us, .sequence = queue.sequence, .event = event };
            queue.sequence += 1;
            while (index > 0) {
                const parent = (index - 1) / 2;
                if (!isBefore(&planned, &queue.heap[parent])) break;
                queue.heap[index] = queue.heap[parent];
                index = parent;
            }
            queue.heap[index] = planned;
        }

        pub fn pop(queue: *Queue) ?Planned {
            if (queue.count == 0) return null;
            const first = queue.heap[0];
            queue.count -= 1;
            const last = queue.heap[queue.count];
            var index: u32 = 0;
            while (true) {
                var child = index * 2 + 1;
                if (child >= queue.count) break;
                const has_next = child + 1 < queue.count;
                if (has_next and isBefore(&queue.heap[child + 1], &queue.heap[child])) child += 1;
                if (!isBefore(&queue.heap[child], &last)) break;
                queue.heap[index] = queue.heap[child];
                index = child;
            }
            if (queue.count > 0) queue.heap[index] = last;
            return first;
        }

        fn isBefore(a: *const Planned, b: *const Planned) bool {
            if (a.at_us != b.at_us) return a.at_us < b.at_us;
            return a.sequence < b.sequence;
        }
    };
}

const testing = std.testing;

test "events are ordered by time, and equal times by the order of planning" {
    const Queue = TimedQueue(u8);
    var queue: Queue = try .init(testing.allocator, 1000);
    defer queue.deinit(testing.allocator);
    var prng: base.Prng = .init(3);
    for (0..1000) |_| try queue.push(prng.below(50), 7);
    try testing.expectError(error.Full, queue.push(1, 7));
    var before: Queue.Planned = queue.pop().?;
    for (1..1000) |_| {
        const planned = queue.pop().?;
        try testing.expect(planned.at_us >= before.at_us);
        if (planned.at_us == before.at_us) try testing.expect(planned.sequence > before.sequence);
        before = planned;
    }
    try testing.expectEqual(null, queue.pop());
}
