//! The reads of a device that have ended and whose times its edge does not know yet: the content of
//! the next FETCH_TIMES (packages/proto/STREAM.md, "Where time went"). It is never acknowledged, so
//! a lost one leaves its reads unmeasured.

const std = @import("std");
const wire = @import("wire").stream;
const assert = std.debug.assert;

pub const FetchedReads = @This();

buffer: wire.FetchTimeBuffer(packet_reads_max) = .{},

/// A packet for so many reads: one more beside their READs and the packets of their answers.
const packet_reads_max = 32;

/// A read ended, `fetch_us` after its READ was sent for the first time. Without space it is left
/// out.
pub fn add(reads: *FetchedReads, request_id: u32, fetch_us: u64) void {
    _ = reads.buffer.append(.{
        .request_id = request_id,
        .fetch_us = std.math.lossyCast(u32, fetch_us),
    });
    assert(reads.buffer.count > 0);
}

/// Its packet is full, or the edge will soon have forgotten its first read.
pub fn isDue(reads: *const FetchedReads, request_id_next: u32) bool {
    if (reads.buffer.count == 0) return false;
    if (reads.buffer.isFull()) return true;
    const first = reads.buffer.view().at(0);
    return request_id_next -% first.request_id >= wire.fetch_times_later_ids_max;
}

/// Returns the reads of the next packet; valid until the next `add`. Null: there is none.
pub fn take(reads: *FetchedReads) ?wire.FetchTimes {
    if (reads.buffer.count == 0) return null;
    defer reads.buffer.count = 0;
    assert(reads.buffer.count <= packet_reads_max);
    return .{ .reads = reads.buffer.view() };
}

const testing = std.testing;

test "reads are due when a packet is full, or when the edge will soon have forgotten the first" {
    var reads: FetchedReads = .{};
    try testing.expect(!reads.isDue(1000));
    try testing.expectEqual(null, reads.take());
    const first: u32 = std.math.maxInt(u32) - 3;
    const ids_max: u32 = wire.fetch_times_later_ids_max;
    reads.add(first, 900);
    try testing.expect(!reads.isDue(first +% (ids_max - 1)));
    try testing.expect(reads.isDue(first +% ids_max));
    for (1..packet_reads_max) |index| {
        try testing.expect(!reads.isDue(first +% 1));
        reads.add(first +% @as(u32, @intCast(index)), std.math.maxInt(u64));
    }
    try testing.expect(reads.isDue(first +% 1));
    reads.add(7, 7);
    const taken = reads.take().?.reads;
    try testing.expectEqual(packet_reads_max, taken.count());
    try testing.expectEqual(wire.FetchTime{ .request_id = first, .fetch_us = 900 }, taken.at(0));
    try testing.expectEqual(std.math.maxInt(u32), taken.at(packet_reads_max - 1).fetch_us);
    try testing.expectEqual(null, reads.take());
}
