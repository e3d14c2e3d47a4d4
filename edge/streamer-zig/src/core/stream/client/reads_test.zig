//! Tests of reads.zig: each READ and its time, with the device alone: the order of requests, what
//! is retransmitted and when, and what is counted.

const std = @import("std");
const wire = @import("wire").stream;
const StreamClient = @import("client.zig");
const TestDevice = @import("test_device.zig");
const testing = std.testing;

const timeout_us = TestDevice.timeout_us;

/// Fragments in the ranges of a READ, as bits; all of them where it names none.
fn fragmentsOf(asked: *const TestDevice.Asked) u64 {
    var bits: u64 = 0;
    for (asked.ranges) |range| for (0..range.fragment_count) |index| {
        bits |= @as(u64, 1) << @intCast(range.first_fragment + index);
    };
    return bits;
}

test "READs go out in the order of submission, those that somebody waits for first" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [6][1024]u8 = undefined;
    const client = &device.client;
    client.request_id_next = std.math.maxInt(u32) - 1;
    try client.submitOf(.ahead, 10, 0, &buffers[0]);
    try client.submitOf(.ahead, 11, 1024, &buffers[1]);
    try client.submit(12, 2048, &buffers[2]);
    try client.submitOf(.profile, 13, 0, buffers[3][0..512]);
    try client.submitOf(.ahead, 14, 4096, &buffers[4]);
    try client.submit(15, 5120, &buffers[5]);
    client.onWaitedFor(14);
    client.onWaitedFor(12);
    client.onWaitedFor(99);
    const kinds = [_]wire.ReadKind{ .demand, .profile, .ahead, .demand, .ahead, .ahead };
    const offsets = [_]u64{ 2048, 0, 4096, 5120, 0, 1024 };
    const ids = [_]u32{ 0, 1, 2, 3, std.math.maxInt(u32) - 1, std.math.maxInt(u32) };
    var asked: [6]TestDevice.Asked = undefined;
    for (kinds, offsets, ids, &asked) |kind, offset, id, *each| {
        each.* = (try device.nextRead()).?;
        try testing.expectEqual(kind, each.kind);
        try testing.expectEqual(offset, each.offset);
        try testing.expectEqual(id, each.request_id);
        try testing.expectEqual(@as(u32, if (kind == .profile) 512 else 1024), each.length);
        try testing.expectEqual(1440, each.fragment_size);
        try testing.expectEqual(0, each.attempt);
        try testing.expectEqual(0, fragmentsOf(each));
    }
    try device.expectNothing();
    try testing.expectEqual(5 * 1024 + 512, client.inFlightBytes());
    // Everything but the profile counts as a request of the boot, and in its times.
    try testing.expectEqual(5, client.statistics.requests);
    device.now_us += 300;
    for (&asked) |*each| try device.answerAll(each);
    try testing.expectEqual(0, client.inFlightBytes());
    try testing.expectEqual(5, client.times.initramfs.fetch.count());
    try testing.expectEqual(5 * 300, client.times.initramfs.fetch.sum_us);
    try testing.expectEqual(6, client.statistics.reads);
    try testing.expectEqual(5 * 1024 + 512, client.statistics.read_bytes);
    for (10..16) |tag| try testing.expectEqual(tag, client.nextEvent().?.read_done.tag);
    try testing.expectEqual(null, client.nextEvent());
    try testing.expectEqual(0, client.slots_used);
    try testing.expectEqual(0, client.reads_count);
    for (buffers[5], 5120..) |byte, at| try testing.expectEqual(TestDevice.byteAt(at), byte);
    try testing.expectEqual(0, client.statistics.ignored);
    try testing.expectEqual(null, client.deadline());
}

test "one READ ahead is in flight even where the window is full, and never two" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    const large = try testing.allocator.create([64 << 10]u8);
    defer testing.allocator.destroy(large);
    var buffers: [2][512]u8 = undefined;
    try client.submit(1, 0, large);
    for (&buffers, 2..) |*buffer, tag| try client.submitOf(.ahead, tag, 512 * tag, buffer);
    const first = (try device.nextRead()).?;
    try testing.expectEqual(large.len, first.length);
    try testing.expectEqual(0, client.deadline());
    for (2..4) |tag| {
        const ahead = (try device.nextRead()).?;
        try testing.expectEqual(.ahead, ahead.kind);
        try testing.expectEqual(512 * tag, ahead.offset);
        try device.expectNothing();
        try testing.expect(client.deadline().? > device.now_us);
        device.now_us += 10;
        try device.answerAll(&ahead);
        try testing.expectEqual(tag, client.nextEvent().?.read_done.tag);
    }
    try device.expectNothing();
}

test "a limited READ goes out in parts, however much the window takes" {
    var device: TestDevice = try .initOpen(.{ .request_bytes_max = 16 << 10 });
    defer device.deinit();
    const client = &device.client;
    const buffer = try testing.allocator.create([44 << 10]u8);
    defer testing.allocator.destroy(buffer);
    try client.submit(1, 0, buffer);
    var asked_bytes: u64 = 0;
    for (0..64) |_| {
        if (try device.nextRead()) |asked| {
            try testing.expectEqual(asked_bytes, asked.offset);
            try testing.expectEqual(@min(16 << 10, buffer.len - asked_bytes), asked.length);
            asked_bytes += asked.length;
            device.now_us += 100;
            try device.answerAll(&asked);
        } else if (client.nextEvent()) |event| {
            try testing.expectEqual(1, event.read_done.tag);
            break;
        } else device.now_us = @max(device.now_us, client.deadline().?);
    } else return error.TestUnexpectedResult;
    try testing.expectEqual(buffer.len, asked_bytes);
    for (buffer, 0..) |byte, at| try testing.expectEqual(TestDevice.byteAt(at), byte);
    // Others are not cut.
    try client.submit(2, 0, buffer[0 .. 16 << 10]);
    try testing.expectEqual(16 << 10, (try device.nextRead()).?.length);
}

test "a profile is never split: it waits until nothing else is in flight" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    const document = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(document);
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    try client.submitOf(.profile, 2, 0, document);
    const first = (try device.nextRead()).?;
    try testing.expectEqual(512, first.length);
    try device.expectNothing();
    device.now_us += 100;
    try device.answerAll(&first);
    const whole = (try device.nextRead()).?;
    try testing.expectEqual(.profile, whole.kind);
    try testing.expectEqual(document.len, whole.length);
}

test "a READ is retransmitted when three fragments of later ones have arrived, and no other is" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [6][512]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, 512 * tag, buffer);
    var asked: [6]TestDevice.Asked = undefined;
    for (&asked) |*each| each.* = (try device.nextRead()).?;
    device.now_us += 100;
    for ([_]usize{ 2, 3 }) |index| {
        try device.answerAll(&asked[index]);
        try device.expectNothing();
    }
    try device.answerAll(&asked[4]);
    try testing.expectEqual(0, device.client.deadline());
    for ([_]usize{ 0, 1 }) |index| {
        const again = (try device.nextRead()).?;
        try testing.expectEqual(asked[index].request_id, again.request_id);
        try testing.expectEqual(1, again.attempt);
        try testing.expectEqual(1, fragmentsOf(&again));
    }
    try device.expectNothing();
    // Answers to requests sent before say nothing about the retransmissions.
    try device.answerAll(&asked[5]);
    try device.answerAll(&asked[1]);
    try device.expectNothing();
    try testing.expectEqual(2, device.client.statistics.retransmits);
    try testing.expectEqual(2, device.client.statistics.missing_fragments);
    try testing.expectEqual(0, device.client.statistics.timeouts);
    try testing.expectEqual(512, device.client.inFlightBytes());
}

test "fragments of a read reveal nothing about the read itself, whatever their number" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffer: [16 << 10]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.now_us += 100;
    for (0..11) |index| try device.answer(&asked, @intCast(index));
    try device.expectNothingUntil(device.now_us + timeout_us);
    const again = (try device.nextRead()).?;
    try testing.expectEqual(1 << 11, fragmentsOf(&again));
    try testing.expectEqual(1, device.client.statistics.timeouts);
    try testing.expectEqual(1, device.client.statistics.missing_fragments);
    try testing.expectEqual((16 << 10) - 11 * 1440, device.client.inFlightBytes());
}

test "an unanswered READ waits twice as long each time, up to a second, until the edge is silent" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffer: [512]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    const began_us = device.now_us;
    var wait_us: u64 = timeout_us;
    var attempt: u16 = 0;
    while (device.now_us + wait_us < began_us + StreamClient.silence_us_max) {
        try device.expectNothingUntil(device.now_us + wait_us);
        attempt += 1;
        const again = (try device.nextRead()).?;
        try testing.expectEqual(asked.request_id, again.request_id);
        try testing.expectEqual(attempt, again.attempt);
        try testing.expectEqual(attempt, device.client.statistics.timeouts);
        // At the second one, the path is treated as a new one.
        const cwnd_bytes = device.client.window.cwnd_bytes;
        if (attempt == 1) try testing.expectEqual(64 << 10, cwnd_bytes);
        if (attempt == 2) try testing.expect(cwnd_bytes < 64 << 10);
        wait_us = @min(2 * wait_us, std.time.us_per_s);
    }
    try testing.expectEqual(17, attempt);
    try testing.expectEqual(attempt, device.client.statistics.retransmits);
    // Other reads wait longer, too, but only until the next answer.
    try testing.expectEqual(32 * timeout_us, device.client.rtt.rto_us);
    device.now_us = began_us + StreamClient.silence_us_max - 1;
    try device.expectNothing();
    device.now_us += 1;
    try testing.expectEqual(.resumption, (try device.next()).?.body.hello.kind);
}

test "READs that time out together double the timeout of others once" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [3][512]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, 512 * tag, buffer);
    for (0..3) |_| _ = (try device.nextRead()).?;
    for ([_]u64{ 2, 4, 8 }, 1..) |factor, round| {
        try device.expectNothingUntil(device.now_us + factor / 2 * timeout_us);
        for (0..3) |_| try testing.expectEqual(round, (try device.nextRead()).?.attempt);
        try testing.expectEqual(3 * round, device.client.statistics.timeouts);
        try testing.expectEqual(factor * timeout_us, device.client.rtt.rto_us);
    }
}

test "while fragments of any read arrive no read times out" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [2][2048]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, 4096 * tag, buffer);
    const first = (try device.nextRead()).?;
    const second = (try device.nextRead()).?;
    device.now_us += 1900;
    try device.answer(&second, 0);
    const rto_us = device.client.rtt.rto_us;
    // Only the read that was answered has the new timeout.
    try testing.expect(rto_us > timeout_us);
    try device.expectNothingUntil(device.now_us + timeout_us);
    const again = (try device.nextRead()).?;
    try testing.expectEqual(first.request_id, again.request_id);
    try testing.expectEqual(0b11, fragmentsOf(&again));
    try device.expectNothingUntil(device.now_us - timeout_us + rto_us);
    try testing.expectEqual(second.request_id, (try device.nextRead()).?.request_id);
}

test "a timeout that was a stall is noticed by the second answer, and the next stall waited out" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [2][512]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, 512 * tag, buffer);
    const asked = [_]TestDevice.Asked{ (try device.nextRead()).?, (try device.nextRead()).? };
    device.now_us += timeout_us;
    for (0..2) |_| _ = (try device.nextRead()).?;
    const rtt = &device.client.rtt;
    const srtt_us = rtt.srtt_us;
    device.now_us += 2000;
    try device.answerAll(&asked[1]);
    device.now_us += 1000;
    try device.answerAll(&asked[0]);
    // The answer to a READ that was sent twice is no sample.
    try testing.expectEqual(srtt_us, rtt.srtt_us);
    try testing.expectEqual(timeout_us, rtt.floor_us);
    device.now_us += 500;
    try device.answerAll(&asked[1]);
    try testing.expectEqual(1, device.client.statistics.unexpected_fragments);
    try testing.expectEqual(4000 + 2000, rtt.floor_us);
    rtt.floor_us = timeout_us;
    // The same read says it only once.
    try device.answerAll(&asked[1]);
    try testing.expectEqual(2, device.client.statistics.unexpected_fragments);
    try testing.expectEqual(timeout_us, rtt.floor_us);
    for (0..2) |_| try testing.expect(device.client.nextEvent().? == .read_done);
    // Its slot is free by now, and remembers it.
    try device.answerAll(&asked[0]);
    try testing.expectEqual(7500, rtt.floor_us);
    try testing.expectEqual(3, device.client.statistics.unexpected_fragments);
    // Of an id that no slot has: counted, and nothing else.
    var unknown = asked[0];
    unknown.request_id +%= 100;
    try device.answerAll(&unknown);
    try testing.expectEqual(4, device.client.statistics.unexpected_fragments);
    try testing.expectEqual(7500, rtt.floor_us);
}

test "a read that was not retransmitted is no stall when its fragment arrives twice" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffer: [2048]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.now_us += 1000;
    const before_us = device.client.last_fragment_at_us;
    try device.answer(&asked, 0);
    try testing.expect(before_us < device.client.last_fragment_at_us);
    const floor_us = device.client.rtt.floor_us;
    try device.answer(&asked, 0);
    try testing.expectEqual(1, device.client.statistics.unexpected_fragments);
    try testing.expectEqual(floor_us, device.client.rtt.floor_us);
    try testing.expectEqual(2048 - 1440, device.client.inFlightBytes());
}

test "after a store error a READ is sent again after twice its timeout, whatever others do" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffers: [5][512]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, 512 * tag, buffer);
    var asked: [5]TestDevice.Asked = undefined;
    for (&asked) |*each| each.* = (try device.nextRead()).?;
    device.now_us += 100;
    for (1..3) |number| {
        try device.expectTaken(TestDevice.packetOf(
            asked[0].request_id,
            .{ .read_error = .{ .code = .store_error } },
        ));
        try testing.expectEqual(number, device.client.statistics.store_errors);
    }
    for (asked[1..]) |*each| try device.answerAll(each);
    for (1..5) |tag| try testing.expectEqual(tag, device.client.nextEvent().?.read_done.tag);
    try device.expectNothingUntil(device.now_us + 4 * timeout_us);
    const again = (try device.nextRead()).?;
    try testing.expectEqual(asked[0].request_id, again.request_id);
    try testing.expectEqual(1, again.attempt);
    // The error of a read that has ended changes nothing.
    try device.answerAll(&again);
    try device.expectTaken(TestDevice.packetOf(
        asked[0].request_id,
        .{ .read_error = .{ .code = .beyond_the_end } },
    ));
    try testing.expectEqual(0, device.client.nextEvent().?.read_done.tag);
}

test "a refused read fails with its code, all of it, and leaves the others in flight" {
    for ([_]wire.ReadErrorCode{
        .beyond_the_end,
        .version_mismatch,
        .too_large,
        .cache_lost,
        .stopped,
    }) |code| {
        var device: TestDevice = try .initOpen(.{});
        defer device.deinit();
        const client = &device.client;
        const large = try testing.allocator.create([StreamClient.read_size_max]u8);
        defer testing.allocator.destroy(large);
        var buffer: [512]u8 = undefined;
        try client.submit(6, 0, &buffer);
        try client.submit(7, 0, large);
        const small = (try device.nextRead()).?;
        const part = (try device.nextRead()).?;
        try testing.expect(part.length < large.len and part.length % 4096 == 0);
        device.now_us += 100;
        try device.answer(&part, 0);
        try testing.expectEqual(512 + part.length - 1440, client.inFlightBytes());
        try device.expectTaken(
            TestDevice.packetOf(part.request_id, .{ .read_error = .{ .code = code } }),
        );
        try testing.expectEqual(512, client.inFlightBytes());
        const failed = client.nextEvent().?.read_failed;
        try testing.expectEqual(7, failed.tag);
        try testing.expectEqual(code, failed.code);
        try testing.expectEqual(null, client.nextEvent());
        try testing.expectEqual(1, client.reads_count);
        try device.expectNothing();
        try device.answerAll(&small);
        try testing.expectEqual(6, client.nextEvent().?.read_done.tag);
        try testing.expectEqual(0, client.slots_used);
        try testing.expectEqual(1, client.statistics.reads);
    }
}

test "the parts of a read are contiguous whole blocks, and the read's time starts with the first" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    const buffer = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(buffer);
    try client.submit(7, 512, buffer);
    const began_us = device.now_us;
    var offset: u64 = 512;
    var parts: u32 = 0;
    while (client.nextEvent() == null) : (parts += 1) {
        const part = (try device.nextRead()).?;
        try testing.expectEqual(offset, part.offset);
        offset += part.length;
        if (offset < 512 + buffer.len) try testing.expectEqual(0, part.length % 4096);
        device.now_us += 1000;
        try testing.expectEqual(0, client.times.initramfs.fetch.count());
        try device.answerAll(&part);
    }
    try testing.expectEqual(512 + buffer.len, offset);
    try testing.expect(parts > 1);
    try testing.expectEqual(parts, client.statistics.requests);
    try testing.expectEqual(1, client.statistics.reads);
    try testing.expectEqual(buffer.len, client.statistics.read_bytes);
    try testing.expectEqual(device.now_us - began_us, client.times.initramfs.fetch.sum_us);
    for (buffer, 512..) |byte, at| try testing.expectEqual(TestDevice.byteAt(at), byte);
}

test "a read is split only while there are slots for the reads that may still be submitted" {
    // 16 slots are for parts: with all of them taken a large read waits for an empty window.
    for ([_]u16{ 15, 16 }) |taken| {
        var device: TestDevice = try .initOpen(.{ .reads_max = 2 });
        defer device.deinit();
        const client = &device.client;
        const large = try testing.allocator.create([StreamClient.read_size_max]u8);
        defer testing.allocator.destroy(large);
        try client.submit(1, 0, large);
        for (client.reads[1..][0..taken]) |*read| read.state = .done;
        client.slots_used = 1 + taken;
        const asked = (try device.nextRead()).?;
        const whole: u32 = if (taken == 16) large.len else 64 << 10;
        try testing.expectEqual(whole, asked.length);
    }
    // Free slots between used ones count.
    var device: TestDevice = try .initOpen(.{ .reads_max = 2 });
    defer device.deinit();
    const client = &device.client;
    const large = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(large);
    try client.submit(1, 0, large);
    for (client.reads[2..]) |*read| read.state = .done;
    client.slots_used = 18;
    try testing.expectEqual(large.len, (try device.nextRead()).?.length);
    client.reads[0].state = .queued;
    client.reads[5].state = .free;
    client.window.in_flight_bytes = 0;
    client.window.credit = 64 << 10;
    try testing.expectEqual(64 << 10, (try device.nextRead()).?.length);
}

test "no more is requested than the edge allows, in blocks that fit" {
    var device: TestDevice = try .init(.{});
    defer device.deinit();
    const client = &device.client;
    var welcome = TestDevice.welcome_usual;
    welcome.outstanding_bytes_max = wire.read_size_promised;
    try device.open(welcome);
    try testing.expect(client.nextEvent().? == .established);
    const buffer = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(buffer);
    client.window.cwnd_bytes = 1 << 20;
    client.window.credit = 1 << 20;
    try client.submit(1, 0, buffer[0 .. 100 << 10]);
    try client.submit(2, 0, buffer);
    try testing.expectEqual(100 << 10, (try device.nextRead()).?.length);
    const part = (try device.nextRead()).?;
    try testing.expectEqual(28 << 10, part.length);
    try device.expectNothing();
    try testing.expectEqual(128 << 10, client.inFlightBytes());
}

test "units that the system used go before its next READ, and at once if they fill a packet" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    var buffers: [3][512]u8 = undefined;
    client.used.add(.{ .index = 5, .blocks = 3 });
    try device.expectNothing();
    try client.submitOf(.ahead, 1, 0, &buffers[0]);
    try testing.expectEqual(.ahead, (try device.nextRead()).?.kind);
    try client.submitOf(.profile, 2, 0, &buffers[1]);
    try testing.expectEqual(.profile, (try device.nextRead()).?.kind);
    try client.submit(3, 0, &buffers[2]);
    const used = (try device.next()).?;
    try testing.expectEqual(TestDevice.session_id, used.session_id);
    try testing.expectEqual(1, used.body.used.units.count());
    try testing.expectEqual(5, used.body.used.units.at(0).index);
    const demand = (try device.nextRead()).?;
    try testing.expectEqual(.demand, demand.kind);
    try testing.expect(used.request_id != demand.request_id);
    try device.expectNothing();
    for (0..63) |index| client.used.add(.{ .index = @intCast(index), .blocks = 1 });
    try device.expectNothing();
    client.used.add(.{ .index = 63, .blocks = 1 });
    try testing.expectEqual(64, (try device.next()).?.body.used.units.count());
    try device.expectNothing();
    // With READY the rest follows.
    client.used.add(.{ .index = 7, .blocks = 1 });
    client.reportReady(device.now_us, .ready, 1, .{});
    try testing.expectEqual(7, (try device.next()).?.body.used.units.at(0).index);
    try testing.expectEqual(1, (try device.next()).?.body.ready.uptime_us);
    try device.expectNothing();
}

test "a hole in a read is filled by one READ that names it, and its bytes count once" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    var buffer: [9 * 1440 / 512 * 512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    try testing.expectEqual(9, wire.fragmentCount(asked.length, asked.fragment_size));
    device.now_us += 100;
    for ([_]u16{ 0, 2, 4, 5 }) |index| {
        try device.answer(&asked, index);
        if (index < 5) try device.expectNothing();
    }
    const again = (try device.nextRead()).?;
    try testing.expectEqual(0b10, fragmentsOf(&again));
    for ([_]u16{ 6, 7 }) |index| try device.answer(&asked, index);
    const third = (try device.nextRead()).?;
    try testing.expectEqual(0b1000, fragmentsOf(&third));
    try testing.expectEqual(2, third.attempt);
    try testing.expectEqual(buffer.len - 6 * 1440, client.inFlightBytes());
    try testing.expectEqual(2, client.statistics.retransmits);
    for ([_]u16{ 8, 1 }) |index| try device.answer(&asked, index);
    // What was queued and has arrived since is not requested.
    client.reads[0].retransmit = .{ .first = 0, .end = 3 };
    try device.expectNothing();
    try device.answer(&asked, 3);
    try testing.expectEqual(1, client.nextEvent().?.read_done.tag);
    for (buffer, 0..) |byte, at| try testing.expectEqual(TestDevice.byteAt(at), byte);
}

test "four lost packets of each of two timeouts make the device doubt the size, and a probe tell" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    var buffers: [2][8 << 10]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try client.submit(tag, buffer.len * tag, buffer);
    const first = (try device.nextRead()).?;
    const second = (try device.nextRead()).?;
    device.now_us += timeout_us;
    _ = (try device.nextRead()).?;
    _ = (try device.nextRead()).?;
    const probe = (try device.next()).?;
    try testing.expectEqual(wire.packet_size_min, probe.body.probe.size);
    try device.expectNothing();
    device.now_us += 500;
    try device.expectTaken(TestDevice.packetOf(
        probe.request_id,
        .{ .probe_ack = wire.packet_size_min },
    ));
    // The size is too large: everything is requested again, under other ids.
    try testing.expectEqual(2, client.statistics.renamed_requests);
    for ([_]TestDevice.Asked{ first, second }) |before| {
        const asked = (try device.nextRead()).?;
        try testing.expectEqual(before.offset, asked.offset);
        try testing.expectEqual(1372 - wire.header_size - wire.tag_size, asked.fragment_size);
        try testing.expectEqual(0, asked.attempt);
        try testing.expect(asked.request_id > second.request_id);
    }
    try testing.expectEqual(4, client.statistics.requests);
    try testing.expectEqual(16 << 10, client.inFlightBytes());
    // Fragments of the earlier size are dropped.
    try device.answer(&first, 0);
    try testing.expectEqual(1, client.statistics.unexpected_fragments);
    try testing.expectEqual(16 << 10, client.inFlightBytes());
}

test "a stall counts once for a read, whatever else of it arrives" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const rtt = &device.client.rtt;
    var buffer: [4096]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.now_us += timeout_us;
    _ = (try device.nextRead()).?;
    device.now_us += 2000;
    for (0..2) |_| try device.answer(&asked, 0);
    try testing.expectEqual(6000, rtt.floor_us);
    device.now_us += 2000;
    for (0..2) |_| try device.answer(&asked, 1);
    try testing.expectEqual(6000, rtt.floor_us);
}

test "the round trip is the wait for the first fragment, and the rate that of a whole answer" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const window = &device.client.window;
    var buffers: [2][4096]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| {
        try device.client.submit(tag, 4096 * tag, buffer);
        const asked = (try device.nextRead()).?;
        const is_again = tag == 1;
        if (is_again) {
            device.now_us += 10 * timeout_us;
            _ = (try device.nextRead()).?;
        }
        // The first fragment comes soon, so that a rate from it alone would be larger.
        device.now_us += 300;
        try device.answer(&asked, 0);
        try testing.expectEqual(300, window.roundTrip());
        try testing.expectEqual((7 * 200 + 300) / 8, device.client.rtt.srtt_us);
        device.now_us += 1200;
        try device.answer(&asked, 1);
        if (!is_again) try testing.expectEqual(0, window.rate[0]);
        try device.answer(&asked, 2);
        try testing.expectEqual(4096 * std.time.us_per_s / 1500, window.rate[0]);
        // A READ that was sent twice tells neither.
        try testing.expectEqual(300, window.roundTrip());
        try testing.expectEqual((7 * 200 + 300) / 8, device.client.rtt.srtt_us);
    }
}

test "a READ without any answer counts as one lost packet, however many fragments it lacks" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const window = &device.client.window;
    var buffers: [3][8 << 10]u8 = undefined;
    for (&buffers, 0..) |*buffer, tag| try device.client.submit(tag, buffer.len * tag, buffer);
    const first = (try device.nextRead()).?;
    const second = (try device.nextRead()).?;
    _ = (try device.nextRead()).?;
    device.now_us += 100;
    for ([_]u16{ 0, 3, 4 }) |index| try device.answer(&second, index);
    try testing.expectEqual(0, window.round.lost);
    const again = (try device.nextRead()).?;
    try testing.expectEqual(first.request_id, again.request_id);
    try testing.expectEqual(0b111111, fragmentsOf(&again));
    try testing.expectEqual(1, window.round.lost);
}

test "losses shrink the window, and grow it back when the packets were only late" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const window = &device.client.window;
    var buffer: [16 << 10]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    const before = window.cwnd_bytes;
    device.now_us += 100;
    for ([_]u16{ 0, 4, 5, 6 }) |index| try device.answer(&asked, index);
    try testing.expectEqual(0b1110, fragmentsOf(&(try device.nextRead()).?));
    try testing.expect(window.cwnd_bytes < before);
    for ([_]u16{ 1, 2, 3, 1 }) |index| try device.answer(&asked, index);
    try testing.expect(window.cwnd_bytes < before);
    try device.answer(&asked, 2);
    try testing.expectEqual(before, window.cwnd_bytes);
    try testing.expectEqual(2, device.client.statistics.unexpected_fragments);
}

test "a fragment as large as a lost one ends the doubt about the size, a smaller one does not" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const path = &device.client.path;
    var buffer: [8 << 10]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.now_us += timeout_us;
    _ = (try device.nextRead()).?;
    try testing.expectEqual(4, path.missed);
    path.missed_size = 1440 + wire.header_size + wire.tag_size;
    try device.answer(&asked, 5);
    try testing.expectEqual(4, path.missed);
    try device.answer(&asked, 0);
    try testing.expectEqual(0, path.missed);
}

test "a fragment of another length or index is ignored, however a sealed one would be counted" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffer: [2048]u8 = @splat(0xaa);
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    const payload: [2048]u8 = @splat(1);
    for ([_]struct { u16, usize }{
        .{ 0, 1439 },                 .{ 0, 1441 },
        .{ 0, 1440 + wire.tag_size }, .{ 0, 1440 - wire.tag_size },
        .{ 1, 608 + wire.tag_size },  .{ 1, 607 },
        .{ 2, 512 },                  .{ 2000, 1440 },
    }) |case| try device.expectIgnored(TestDevice.packetOf(asked.request_id, .{
        .data = .{ .index = case[0], .payload = payload[0..case[1]] },
    }));
    try testing.expect(std.mem.allEqual(u8, &buffer, 0xaa));
    try testing.expectEqual(2048, device.client.inFlightBytes());
}

test "where requests are paced the next one goes exactly when the device said" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    const buffer = try testing.allocator.create([64 << 10]u8);
    defer testing.allocator.destroy(buffer);
    try client.submit(1, 0, buffer);
    const asked = (try device.nextRead()).?;
    device.now_us += 500;
    try device.answerAll(&asked);
    try testing.expect(client.nextEvent().? == .read_done);
    client.window.cwnd_bytes = 1 << 20;
    for (0..20) |tag| try client.submit(tag, 0, buffer[0 .. 16 << 10]);
    var paced: u32 = 0;
    for (0..20) |_| {
        if (try device.nextRead() != null) continue;
        const opens_us = client.deadline().?;
        try testing.expect(opens_us < device.now_us + timeout_us);
        try device.expectNothingUntil(opens_us);
        try testing.expect(try device.nextRead() != null);
        paced += 1;
    }
    try testing.expect(paced > 3);
}

test "the payload of a sealed packet goes to its place without a copy" {
    const client_test = @import("client_test.zig");
    const reads_in_flight = @import("reads.zig");
    var fixture: client_test.StreamFixture = try .init(.{ .prng = .init(1) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [2048]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    for ([_]usize{ 0, 1440 }, [_]usize{ 1440, 608 }, 0..) |begin, size, index| {
        var flight = fixture.link.takeFirst().?;
        const slot = reads_in_flight.slotFor(&fixture.client, flight.bytes[0..flight.size]).?;
        try testing.expectEqual(index, slot.index);
        try testing.expectEqual(&buffer[begin], &slot.buffer[0]);
        try testing.expectEqual(size, slot.buffer.len);
    }
}
