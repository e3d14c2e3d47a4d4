//! Tests of pending_read.zig, fragment by fragment.

const std = @import("std");
const wire = @import("wire").stream;
const PendingRead = @import("pending_read.zig");
const testing = std.testing;

const overhead = wire.header_size + wire.tag_size;

/// Four fragments, the last one short: 1440 * 3 + 288.
const Read = struct {
    buffer: [4608]u8 = @splat(0),
    read: PendingRead = .{},

    fn begin(fixture: *Read) void {
        fixture.read = .{ .state = .queued, .buffer = &fixture.buffer, .request_id = 7 };
        fixture.read.ask(1000, 1440, 5, 200);
    }

    fn take(fixture: *Read, now_us: u64, index: u16) PendingRead.Acceptance {
        const sizes = [_]u16{ 1440, 1440, 1440, 288 };
        const payload: [1440]u8 = @splat(@intCast(index + 1));
        const bytes = payload[0..sizes[index]];
        return fixture.read.accept(now_us, .{ .index = index, .payload = bytes });
    }
};

test "a fragment is accepted once, at its place, and only with its own length" {
    var fixture: Read = .{};
    fixture.begin();
    const read = &fixture.read;
    try testing.expectEqual(4, read.fragment_count);
    try testing.expectEqual(.mismatch, read.accept(1000, .{ .index = 4, .payload = "" }));
    try testing.expectEqual(.mismatch, read.accept(1000, .{ .index = 3, .payload = "short" }));
    try testing.expectEqual(null, read.slotFor(4, 0));
    try testing.expectEqual(null, read.slotFor(3, 1440));
    try testing.expectEqual(&fixture.buffer[4320], &read.slotFor(3, 288).?[0]);
    try testing.expectEqual(.new, fixture.take(1010, 3));
    try testing.expectEqual(null, read.slotFor(3, 288));
    try testing.expectEqual(.duplicate, fixture.take(1020, 3));
    try testing.expectEqual(1, read.received_count);
    try testing.expectEqual(288, read.received_bytes);
    try testing.expectEqual(4608 - 288, read.missingBytes());
    // The time of the first one alone is a sample.
    try testing.expectEqual(10, read.round_trip_us.?);
    try testing.expect(!read.has_full_size);
    try testing.expectEqual(.new, fixture.take(1030, 0));
    try testing.expect(read.has_full_size);
    try testing.expectEqual(10, read.round_trip_us.?);
    try testing.expectEqual(1030, read.progress_at_us);
    try testing.expectEqual(1030 + 200, read.timeoutAt(1029));
    try testing.expectEqual(1040 + 200, read.timeoutAt(1040));
    try testing.expectEqual(.new, fixture.take(1040, 1));
    try testing.expect(!read.isComplete());
    try testing.expectEqual(.new, fixture.take(1040, 2));
    try testing.expect(read.isComplete());
    try testing.expectEqual([2]u8{ 3, 4 }, fixture.buffer[4319..4321].*);
}

test "a hole is retransmitted once when three fragments beyond it have arrived" {
    var fixture: Read = .{};
    fixture.begin();
    const read = &fixture.read;
    for ([_]u16{ 3, 1 }) |index| _ = fixture.take(1010, index);
    try testing.expectEqual(null, read.retransmit);
    _ = fixture.take(1010, 2);
    try testing.expectEqual(0, read.retransmit.?.first);
    try testing.expectEqual(1, read.retransmit.?.end);
    var ranges: wire.RangeList = .{};
    try testing.expectEqual(1, read.takeMissing(&ranges));
    try testing.expectEqual(null, read.retransmit);
    try testing.expectEqual(1, ranges.count);
    read.onRetransmit(1100, 9);
    try testing.expectEqual(1, read.attempt);
    try testing.expectEqual(9, read.sent_serial);
    try testing.expectEqual(1100, read.progress_at_us);
    // An answer to a retransmitted read is no sample of the RTT; there is one already.
    _ = fixture.take(1200, 0);
    try testing.expectEqual(10, read.round_trip_us.?);
    try testing.expectEqual(null, read.retransmit);
}

test "what a read misses says how large a lost packet was" {
    var fixture: Read = .{};
    fixture.begin();
    const read = &fixture.read;
    // The last one, which is short, reveals nothing: it would pass every path.
    try testing.expectEqual(3, read.missing().count);
    try testing.expectEqual(overhead + 1440, read.missing().size);
    _ = fixture.take(1010, 3);
    try testing.expectEqual(3, read.missing().count);
    try testing.expectEqual(overhead + 1440, read.missing().size);
    _ = fixture.take(1010, 0);
    try testing.expectEqual(0, read.missing().count);
    read.has_full_size = false;
    try testing.expectEqual(2, read.missing().count);
    // After a store error nothing is missing.
    read.waitAfterStoreError(1020);
    try testing.expectEqual(0, read.missing().count);
    try testing.expectEqual(400, read.timeout_us);
    try testing.expectEqual(1020, read.progress_at_us);
    // A last fragment above the smallest size is the smallest that was lost.
    fixture.read = .{ .state = .queued, .buffer = fixture.buffer[0..4096], .request_id = 7 };
    read.ask(1000, 1440, 5, 200);
    try testing.expectEqual(3, read.missing().count);
    try testing.expectEqual(overhead + 1216, read.missing().size);
}

test "missing fragments become ranges, and those that do not fit wait" {
    var fixture: Read = .{};
    fixture.begin();
    const read = &fixture.read;
    _ = fixture.take(1010, 1);
    read.retransmitMissing();
    var ranges: wire.RangeList = .{};
    try testing.expectEqual(3, read.takeMissing(&ranges));
    try testing.expectEqual(2, ranges.count);
    try testing.expectEqual(0, ranges.view().at(0).first_fragment);
    try testing.expectEqual(1, ranges.view().at(0).fragment_count);
    try testing.expectEqual(2, ranges.view().at(1).first_fragment);
    try testing.expectEqual(2, ranges.view().at(1).fragment_count);
}

test "a read that is cut keeps the rest, and one that restarts in another size begins again" {
    var fixture: Read = .{};
    fixture.read = .{ .state = .queued, .buffer = &fixture.buffer, .request_id = 7, .offset = 512 };
    const read = &fixture.read;
    const part = read.cut(900, 1024, 8);
    try testing.expectEqual(1024, part.buffer.len);
    try testing.expectEqual(512, part.offset);
    try testing.expectEqual(8, part.request_id);
    try testing.expectEqual(900, part.sent_first_at_us.?);
    try testing.expectEqual(1536, read.offset);
    try testing.expectEqual(4608 - 1024, read.buffer.len);
    read.ask(1000, 1440, 5, 200);
    try testing.expectEqual(900, read.sent_first_at_us.?);
    read.restart(1440, 7, 300);
    try testing.expectEqual(.in_flight, read.state);
    try testing.expectEqual(300, read.timeout_us);
    try testing.expectEqual(read.fragment_count, read.retransmit.?.end);
    read.restart(1000, 9, 300);
    try testing.expectEqual(.queued, read.state);
    try testing.expectEqual(9, read.request_id);
    try testing.expectEqual(0, read.received_count);
    try testing.expectEqual(1536, read.offset);
}

test "reads that somebody waits for go first, then the earlier ones, also where ids wrap" {
    const first: PendingRead = .{ .request_id = std.math.maxInt(u32) };
    const second: PendingRead = .{ .request_id = 0 };
    const ahead: PendingRead = .{ .request_id = 1, .is_waited_for = false };
    try testing.expect(first.isBefore(null));
    try testing.expect(first.isBefore(&second));
    try testing.expect(!second.isBefore(&first));
    try testing.expect(second.isBefore(&ahead));
    try testing.expect(!ahead.isBefore(&second));
}
