//! The newest READs that an edge answered in a boot: its own part of each, so that the network's
//! can be told from the device's time, and when the last packet of each answer left, so that a
//! retransmission of it has a cost in time. Fixed size per boot, one step a READ.

const std = @import("std");
const wire = @import("wire").stream;
const assert = std.debug.assert;

pub const RecentReads = @This();

/// A device numbers its packets one after the other: the older of two READs with the same place is
/// over, and the device has told its time, or has waited long beside many others.
const count = 2 * wire.fetch_times_later_ids_max;

slots: [count]?Answer = @splat(null),

const Answer = struct {
    request_id: u32,
    /// The low half of µs on the edge's clock: it repeats after 71 minutes.
    sent_at_us: u32,
    /// From there to the last packet of its newest retransmission.
    late_us: u32 = 0,
    /// From the READ's arrival until `sent_at_us`; the largest: the device has told its time.
    own_us: u32,

    const told = std.math.maxInt(u32);
};

/// A READ that arrived for the first time was answered; its last packet left at `sent_at_us`.
pub fn onAnswer(
    reads: *RecentReads,
    request_id: u32,
    times: struct { arrived_at_us: u64, sent_at_us: u64 },
) void {
    const own_us = times.sent_at_us -| times.arrived_at_us;
    assert(own_us <= times.sent_at_us);
    reads.slotOf(request_id).* = .{
        .request_id = request_id,
        .sent_at_us = @truncate(times.sent_at_us),
        .own_us = @intCast(@min(own_us, Answer.told - 1)),
    };
}

/// The device says that this READ took `fetch_us` until its last byte. Returns the part of it that
/// was not this edge's, in µs, once for each answer; null: its answer is no longer known. A device
/// may have the last byte before the edge has read its clock: that is 0.
pub fn takeNetworkUs(reads: *RecentReads, request_id: u32, fetch_us: u64) ?u64 {
    const answer = if (reads.slotOf(request_id).*) |*known| known else return null;
    if (answer.request_id != request_id or answer.own_us == Answer.told) return null;
    assert(answer.own_us < Answer.told);
    defer answer.own_us = Answer.told;
    return fetch_us -| answer.own_us;
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

/// The journal does not keep them: they are of use for seconds, and longer than all else of a boot.
pub fn jsonStringify(_: *const RecentReads, json: anytype) !void {
    try json.beginObject();
    try json.endObject();
}

pub fn jsonParse(
    _: std.mem.Allocator,
    source: anytype,
    _: std.json.ParseOptions,
) !RecentReads {
    try source.skipValue();
    return .{};
}

fn slotOf(reads: *RecentReads, request_id: u32) *?Answer {
    return &reads.slots[request_id % count];
}

const testing = std.testing;

test "a read is later by all of its retransmissions together" {
    var reads: RecentReads = .{};
    try testing.expectEqual(null, reads.onRetransmission(7, 100));
    reads.onAnswer(7, .{ .arrived_at_us = 900, .sent_at_us = 1000 });
    reads.onAnswer(8, .{ .arrived_at_us = 1000, .sent_at_us = 1010 });
    const first: Delay = .{ .before_us = 0, .us = 250 };
    try testing.expectEqual(first, reads.onRetransmission(7, 1250).?);
    const second: Delay = .{ .before_us = 250, .us = 900 };
    try testing.expectEqual(second, reads.onRetransmission(7, 1900).?);
    const other: Delay = .{ .before_us = 0, .us = 1 };
    try testing.expectEqual(other, reads.onRetransmission(8, 1010).?);
}

test "a later READ in the same place is another one, and the clock's low half may repeat" {
    var reads: RecentReads = .{};
    reads.onAnswer(7, .{ .arrived_at_us = 900, .sent_at_us = 1000 });
    reads.onAnswer(7 + count, .{ .arrived_at_us = 1900, .sent_at_us = 2000 });
    try testing.expectEqual(null, reads.onRetransmission(7, 2100));
    try testing.expectEqual(null, reads.takeNetworkUs(7, 2100));
    const wrapped = std.math.maxInt(u32) - 9;
    reads.onAnswer(1, .{ .arrived_at_us = wrapped - 5, .sent_at_us = wrapped });
    try testing.expectEqual(30, reads.onRetransmission(1, wrapped + 30).?.us);
}

test "the network's part of a read is the device's time without the edge's, once and never negative" {
    var reads: RecentReads = .{};
    try testing.expectEqual(null, reads.takeNetworkUs(0, 500));
    reads.onAnswer(0, .{ .arrived_at_us = 1000, .sent_at_us = 1300 });
    reads.onAnswer(1, .{ .arrived_at_us = 1000, .sent_at_us = 1300 });
    // What was sent again lies in the network's part, too.
    _ = reads.onRetransmission(0, 1900);
    try testing.expectEqual(700, reads.takeNetworkUs(0, 1000).?);
    try testing.expectEqual(null, reads.takeNetworkUs(0, 1000));
    try testing.expectEqual(0, reads.takeNetworkUs(1, 299).?);
    try testing.expectEqual(1200, reads.onRetransmission(1, 2500).?.us);
    // A disk that took for ever, and a clock that was set back.
    reads.onAnswer(2, .{ .arrived_at_us = 0, .sent_at_us = std.math.maxInt(u64) });
    try testing.expectEqual(1, reads.takeNetworkUs(2, std.math.maxInt(u32)).?);
    reads.onAnswer(3, .{ .arrived_at_us = 9, .sent_at_us = 3 });
    try testing.expectEqual(5, reads.takeNetworkUs(3, 5).?);
}

test "what an earlier program wrote into the journal is skipped, and nothing is written" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const before = "{\"slots\":[null,{\"request_id\":1,\"sent_at_us\":2,\"late_us\":0}]}";
    const read = try std.json.parseFromSliceLeaky(RecentReads, arena.allocator(), before, .{});
    try testing.expectEqual(RecentReads{}, read);
    var reads: RecentReads = .{};
    reads.onAnswer(7, .{ .arrived_at_us = 900, .sent_at_us = 1000 });
    var buffer: [64]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try std.json.Stringify.value(reads, .{}, &writer);
    try testing.expectEqualStrings("{}", writer.buffered());
}
