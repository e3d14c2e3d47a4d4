//! Tests of pending_read.zig, fragment by fragment.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const PendingRead = @import("pending_read.zig");
const RttEstimator = @import("../congestion/rtt.zig");
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

test "in any order of arrival each hole is named once, when three fragments beyond it arrived" {
    const fragments = 150;
    const length = fragments * 512;
    const buffer = try testing.allocator.alloc(u8, length);
    defer testing.allocator.free(buffer);
    for (0..40) |seed| {
        var prng: base.Prng = .init(seed);
        var order: [fragments]u16 = undefined;
        for (&order, 0..) |*each, index| each.* = @intCast(index);
        // Some in order, some a little late, some from anywhere.
        const reaches: [4]u64 = .{ 1, 4, 20, fragments };
        const reach = reaches[seed % 4];
        for (0..fragments) |at| {
            const other = @min(fragments - 1, at + prng.below(reach));
            std.mem.swap(u16, &order[at], &order[other]);
        }
        var read: PendingRead = .{ .state = .queued, .buffer = buffer, .request_id = 7 };
        read.ask(1000, 512, 5, 200);
        var has: [fragments]bool = @splat(false);
        var asked: [fragments]bool = @splat(false);
        for (order, 0..) |index, number| {
            const payload: [512]u8 = @splat(@truncate(index));
            const fragment: wire.Data = .{ .index = index, .payload = &payload };
            const slot = read.slotFor(index, 512).?;
            try testing.expectEqual(512, slot.len);
            try testing.expectEqual(&buffer[@as(usize, index) * 512], &slot[0]);
            try testing.expectEqual(.new, read.accept(1000 + number, fragment));
            try testing.expectEqual(.duplicate, read.accept(1000 + number, fragment));
            has[index] = true;
            try testing.expectEqual(number + 1 == fragments, read.isComplete());
            try testing.expectEqual(length - 512 * (number + 1), read.missingBytes());
            var expected: [fragments]bool = @splat(false);
            for (0..fragments) |hole| {
                var beyond: u32 = 0;
                for (has[hole + 1 ..]) |is_there| beyond += @intFromBool(is_there);
                expected[hole] = !has[hole] and !asked[hole] and beyond >= 3;
            }
            const is_wanted = std.mem.findScalar(bool, &expected, true) != null;
            try testing.expectEqual(is_wanted, read.retransmit != null);
            var named: [fragments]bool = @splat(false);
            while (read.retransmit != null) {
                var ranges: wire.RangeList = .{};
                const count = read.takeMissing(&ranges);
                try testing.expectEqual(ranges.view().fragmentCount(), count);
                if (count == 0) continue;
                try testing.expectEqual(512 * @as(u32, count), read.bytesOf(ranges.view()));
                for (0..ranges.count) |at| {
                    const range = ranges.view().at(@intCast(at));
                    for (0..range.fragment_count) |more| named[range.first_fragment + more] = true;
                }
            }
            try testing.expectEqual(expected, named);
            for (&asked, expected) |*each, now| each.* = each.* or now;
        }
        for (0..fragments) |index|
            try testing.expectEqual(@as(u8, @truncate(index)), buffer[index * 512]);
    }
}

test "holes that nobody has taken yet grow together" {
    var buffer: [10 * 512]u8 = undefined;
    var read: PendingRead = .{ .state = .queued, .buffer = &buffer, .request_id = 7 };
    read.ask(1000, 512, 5, 200);
    const payload: [512]u8 = @splat(1);
    for ([_]u16{ 2, 3, 4 }) |index|
        _ = read.accept(1000, .{ .index = index, .payload = &payload });
    try testing.expectEqual(0, read.retransmit.?.first);
    try testing.expectEqual(2, read.retransmit.?.end);
    for ([_]u16{ 6, 7, 8 }) |index|
        _ = read.accept(1000, .{ .index = index, .payload = &payload });
    try testing.expectEqual(0, read.retransmit.?.first);
    try testing.expectEqual(6, read.retransmit.?.end);
    var ranges: wire.RangeList = .{};
    try testing.expectEqual(3, read.takeMissing(&ranges));
    try testing.expectEqual(5, ranges.view().at(1).first_fragment);
    try testing.expectEqual(1, ranges.view().at(1).fragment_count);
}

test "a READ names at most 64 ranges, and the next one the rest" {
    const fragments = 200;
    const buffer = try testing.allocator.alloc(u8, fragments * 512);
    defer testing.allocator.free(buffer);
    var read: PendingRead = .{ .state = .queued, .buffer = buffer, .request_id = 7 };
    read.ask(1000, 512, 5, 200);
    const payload: [512]u8 = @splat(1);
    for (0..fragments / 2) |index|
        _ = read.accept(1000, .{ .index = @intCast(2 * index), .payload = &payload });
    read.retransmitMissing();
    var ranges: wire.RangeList = .{};
    try testing.expectEqual(64, read.takeMissing(&ranges));
    try testing.expectEqual(64, ranges.count);
    for (0..64) |at|
        try testing.expectEqual(2 * at + 1, ranges.view().at(@intCast(at)).first_fragment);
    try testing.expectEqual(129, read.retransmit.?.first);
    ranges = .{};
    try testing.expectEqual(36, read.takeMissing(&ranges));
    try testing.expectEqual(199, ranges.view().at(35).first_fragment);
    try testing.expectEqual(null, read.retransmit);
}

test "the bytes of ranges are those of their fragments, the last of which may be short" {
    var buffer: [9 * 512]u8 = undefined;
    var read: PendingRead = .{ .state = .queued, .buffer = &buffer, .request_id = 7 };
    read.ask(1000, 1000, 5, 200);
    try testing.expectEqual(5, read.fragment_count);
    const sizes = [_]u32{ 1000, 1000, 1000, 1000, 608 };
    for (0..5) |first| for (first..5) |last| for (last..5) |single| {
        var ranges: wire.RangeList = .{};
        var expected: u32 = 0;
        const count: u16 = @intCast(last + 1 - first);
        try ranges.append(.{ .first_fragment = @intCast(first), .fragment_count = count });
        for (sizes[first .. last + 1]) |size| expected += size;
        if (single > last) {
            try ranges.append(.{ .first_fragment = @intCast(single), .fragment_count = 1 });
            expected += sizes[single];
        }
        try testing.expectEqual(expected, read.bytesOf(ranges.view()));
    };
}

test "a lost packet as small as the smallest says nothing about the path, a larger one does" {
    // Last fragments of 512, 516 and 520 bytes: packets of 544, 548 and 552.
    const Case = struct { length: u32, fragment_size: u16, last: u16 };
    for ([_]Case{
        .{ .length = lengthFor(1440, 512), .fragment_size = 1440, .last = 512 },
        .{ .length = lengthFor(1340, 516), .fragment_size = 1340, .last = 516 },
        .{ .length = lengthFor(1340, 520), .fragment_size = 1340, .last = 520 },
    }) |case| {
        const buffer = try testing.allocator.alloc(u8, case.length);
        defer testing.allocator.free(buffer);
        var read: PendingRead = .{ .state = .queued, .buffer = buffer, .request_id = 7 };
        read.ask(1000, case.fragment_size, 5, 200);
        const fragments = wire.fragmentCount(case.length, case.fragment_size);
        const is_telling = overhead + case.last > wire.packet_size_min;
        const missing = read.missing();
        try testing.expectEqual(if (is_telling) fragments else fragments - 1, missing.count);
        const size = if (is_telling) case.last else case.fragment_size;
        try testing.expectEqual(overhead + size, missing.size);
        // Without the last one, which has arrived.
        const payload: [wire.fragment_size_max]u8 = @splat(1);
        const last: wire.Data = .{ .index = fragments - 1, .payload = payload[0..case.last] };
        try testing.expectEqual(.new, read.accept(1001, last));
        try testing.expectEqual(fragments - 1, read.missing().count);
        try testing.expectEqual(overhead + case.fragment_size, read.missing().size);
    }
}

/// A length whose last fragment has `last` bytes.
fn lengthFor(fragment_size: u32, last: u32) u32 {
    var length: u32 = 512;
    while (length % fragment_size != last or length < fragment_size) length += 512;
    return length;
}

test "a part takes all of its read but the range, and so does a read that begins again" {
    var buffer: [4608]u8 = undefined;
    var read: PendingRead = .{
        .state = .queued,
        .tag = 3,
        .kind = .ahead,
        .is_waited_for = false,
        .offset = 512,
        .buffer = &buffer,
        .request_id = 7,
        .whole = &buffer,
        .whole_id = 6,
    };
    const rest_of = read;
    const part = read.cut(900, 1024, 8);
    var expected = rest_of;
    expected.sent_first_at_us = 900;
    expected.buffer = buffer[0..1024];
    expected.request_id = 8;
    try expectSame(&expected, &part);
    expected = rest_of;
    expected.sent_first_at_us = 900;
    expected.buffer = buffer[1024..];
    expected.offset += 1024;
    try expectSame(&expected, &read);
    // The read's time starts with its first part.
    const second = read.cut(950, 512, 9);
    try testing.expectEqual(900, second.sent_first_at_us.?);
    expected.buffer = buffer[1536..];
    expected.offset += 512;
    read.ask(1000, 1440, 5, 200);
    try testing.expectEqual(900, read.sent_first_at_us.?);
    const payload: [1440]u8 = @splat(1);
    try testing.expectEqual(.new, read.accept(1100, .{ .index = 0, .payload = &payload }));
    read.onRetransmit(1200, 6);
    read.restart(1000, 9, 300);
    expected.request_id = 9;
    try expectSame(&expected, &read);
}

/// Everything but the buffers is compared by value.
fn expectSame(expected: *const PendingRead, actual: *const PendingRead) !void {
    try testing.expectEqual(expected.buffer, actual.buffer);
    try testing.expectEqual(expected.whole, actual.whole);
    try testing.expectEqual(expected.*, actual.*);
}

test "a read keeps its first times and counts, and a retransmission begins a new round" {
    var fixture: Read = .{};
    fixture.read = .{ .state = .queued, .buffer = &fixture.buffer, .request_id = 7 };
    const read = &fixture.read;
    read.ask(1000, 1440, 5, 200);
    try testing.expectEqual(1000, read.sent_first_at_us.?);
    try testing.expectEqual(5, read.first_serial);
    try testing.expectEqual(1200, read.timeoutAt(0));
    read.overtaken = 2;
    read.timed_out = true;
    read.onRetransmit(1300, 6);
    try testing.expectEqual(0, read.overtaken);
    try testing.expectEqual(5, read.first_serial);
    try testing.expectEqual(1000, read.sent_at_us);
    read.attempt = std.math.maxInt(u16);
    read.onRetransmit(1400, 7);
    try testing.expectEqual(std.math.maxInt(u16), read.attempt);
    _ = fixture.take(1500, 0);
    try testing.expectEqual(500, read.stall_us.?);
    try testing.expectEqual(null, read.round_trip_us);
    _ = fixture.take(1600, 1);
    try testing.expectEqual(500, read.stall_us.?);
    try testing.expect(read.has_full_size);
    read.onRetransmit(1700, 8);
    try testing.expect(!read.has_full_size);
    // Only the first fragment of the first request is a sample.
    var second: Read = .{};
    second.begin();
    _ = second.take(1010, 1);
    second.read.round_trip_us = null;
    _ = second.take(1020, 2);
    try testing.expectEqual(null, second.read.round_trip_us);
    try testing.expectEqual(null, second.read.stall_us);
}

test "a store error doubles the timeout up to a second and takes back what was to be sent again" {
    var fixture: Read = .{};
    fixture.begin();
    const read = &fixture.read;
    read.retransmitMissing();
    read.timeout_us = 400_000;
    for ([_]u64{ 800_000, RttEstimator.rto_us_max, RttEstimator.rto_us_max }) |timeout_us| {
        read.waitAfterStoreError(5000);
        try testing.expectEqual(timeout_us, read.timeout_us);
        try testing.expectEqual(null, read.retransmit);
        try testing.expectEqual(5000 + timeout_us, read.timeoutAt(0));
    }
}

test "of two reads exactly one is before the other, and none before itself" {
    const reads = [_]PendingRead{
        .{ .request_id = 5 },
        .{ .request_id = 6 },
        .{ .request_id = 5 +% (1 << 31) -% 1 },
        .{ .request_id = 7, .is_waited_for = false },
        .{ .request_id = 4, .is_waited_for = false },
    };
    for (&reads, 0..) |*one, i| for (&reads, 0..) |*other, j|
        if (i == j)
            try testing.expect(!one.isBefore(other))
        else
            try testing.expect(one.isBefore(other) != other.isBefore(one));
    try testing.expect(reads[0].isBefore(&reads[2]));
    try testing.expect(reads[1].isBefore(&reads[4]));
    try testing.expect(reads[4].isBefore(&reads[3]));
}

test "holes of a read that was just requested again are not requested once more" {
    var buffer: [8 * 512]u8 = undefined;
    var read: PendingRead = .{ .state = .queued, .buffer = &buffer, .request_id = 7 };
    read.ask(1000, 512, 5, 200);
    read.retransmitMissing();
    var ranges: wire.RangeList = .{};
    try testing.expectEqual(8, read.takeMissing(&ranges));
    read.onRetransmit(1200, 6);
    const payload: [512]u8 = @splat(1);
    for ([_]u16{ 2, 3, 4, 7 }) |index| {
        try testing.expectEqual(.new, read.accept(1300, .{ .index = index, .payload = &payload }));
        try testing.expectEqual(null, read.retransmit);
    }
}
