//! The newest READs that an edge answered in a boot: when the last packet of each answer left, so
//! that a retransmission of it has a cost in time. Fixed size per boot, one step a READ.

const std = @import("std");
const assert = std.debug.assert;

pub const RecentReads = @This();

/// A device has at most this many reads in flight, and numbers them one after the other: the older
/// of two READs with the same place is over, or has waited long beside many others.
const count = 64;

slots: [count]?Answer = @splat(null),

const Answer = struct {
    request_id: u32,
    /// The low half of µs on the edge's clock: it repeats after 71 minutes.
    sent_at_us: u32,
    /// From there to the last packet of its newest retransmission.
    late_us: u32 = 0,
};

/// A READ that arrived for the first time was answered; its last packet left at `sent_at_us`.
pub fn onAnswer(reads: *RecentReads, request_id: u32, sent_at_us: u64) void {
    reads.slotOf(request_id).* = .{ .request_id = request_id, .sent_at_us = @truncate(sent_at_us) };
}

/// By how much a read is later, in µs, and by how much it was before; 0: it was not.
pub const Delay = struct { before_us: u64, us: u64 };

/// Fragments of a READ were sent again, the last of them at `sent_at_us`. Null: its answer is no
/// longer known.
pub fn onRetransmission(reads: *RecentReads, request_id: u32, sent_at_us: u64) ?Delay {
    const answer = if (reads.slotOf(request_id).*) |*known| known else return null;
    if (answer.request_id != request_id) return null;
    const low: u32 = @truncate(sent_at_us);
    const before_us = answer.late_us;
    // Two answers of one READ may be sent at the same time, and end in any order.
    answer.late_us = @max(low -% answer.sent_at_us, before_us, 1);
    assert(answer.late_us > 0);
    return .{ .before_us = before_us, .us = answer.late_us };
}

fn slotOf(reads: *RecentReads, request_id: u32) *?Answer {
    return &reads.slots[request_id % count];
}

const testing = std.testing;

test "a read is later by all of its retransmissions together" {
    var reads: RecentReads = .{};
    try testing.expectEqual(null, reads.onRetransmission(7, 100));
    reads.onAnswer(7, 1000);
    reads.onAnswer(8, 1010);
    const first: Delay = .{ .before_us = 0, .us = 250 };
    try testing.expectEqual(first, reads.onRetransmission(7, 1250).?);
    const second: Delay = .{ .before_us = 250, .us = 900 };
    try testing.expectEqual(second, reads.onRetransmission(7, 1900).?);
    const other: Delay = .{ .before_us = 0, .us = 1 };
    try testing.expectEqual(other, reads.onRetransmission(8, 1010).?);
}

test "a later READ in the same place is another one, and the clock's low half may repeat" {
    var reads: RecentReads = .{};
    reads.onAnswer(7, 1000);
    reads.onAnswer(7 + count, 2000);
    try testing.expectEqual(null, reads.onRetransmission(7, 2100));
    const wrapped = std.math.maxInt(u32) - 9;
    reads.onAnswer(1, wrapped);
    try testing.expectEqual(30, reads.onRetransmission(1, wrapped + 30).?.us);
}
