//! Tests of report.zig: a device's REPORT while it runs, against the real edge's side as in
//! client_test.zig, and each REPORT and its time alone.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const StreamClient = @import("client.zig");
const ReadTimes = @import("read_times.zig");
const ReportState = @import("report.zig");
const StreamFixture = client_test.StreamFixture;
const disk = client_test.disk;
const testing = std.testing;

fn reportOf(used: u64, steps: wire.Steps) StreamClient.Report {
    return .{
        .uptime_us = 1_000_000,
        .write_cache = .{ .used = used, .size = 1000 },
        .steps = steps,
    };
}

test "a newer report replaces an unacknowledged one, and steps are sent until acknowledged" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(10) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var list: wire.StepList = .empty;
    try list.append(.{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = 812_000 });
    fixture.link.loss_percent = 100;
    fixture.client.report(fixture.now_us, reportOf(1, list.view()));
    try testing.expectEqual(null, try fixture.nextEvent(3_000_000));
    fixture.link.loss_percent = 0;
    fixture.client.report(fixture.now_us, reportOf(2, .{}));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(2, fixture.write_cache_used);
    try testing.expectEqual(1, fixture.reports);
    try testing.expectEqual(1, fixture.reports_with_steps);
    fixture.client.report(fixture.now_us, reportOf(5000, list.view()));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(1000, fixture.write_cache_used);
    try testing.expectEqual(1, fixture.reports_with_steps);
    try list.append(
        .{ .group = .unit, .name = "ssh.service", .start_us = 812_000, .duration_us = 9 },
    );
    fixture.client.report(fixture.now_us, reportOf(3, list.view()));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(2, fixture.reports_with_steps);
    try testing.expectEqual(null, try fixture.nextEvent(60_000_000));
    try testing.expectEqual(3, fixture.reports);
}

test "a part of the device's account is sent until the edge has it" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(12) });
    defer fixture.deinit();
    const part: wire.Account =
        .{ .kind = .block_trace, .part = 3, .is_last = true, .bytes = "an account" };
    try testing.expect(!fixture.client.sendAccount(fixture.now_us, part));
    try fixture.expectEstablished();
    fixture.link.loss_percent = 20;
    for (1..20) |count| {
        try testing.expect(fixture.client.sendAccount(fixture.now_us, part));
        while (true) {
            const event = try fixture.nextEvent(60_000_000) orelse return error.NeverThere;
            if (event == .account_acknowledged) break;
        }
        try testing.expect(fixture.account_parts >= count);
    }
}

test "a report has the boot's read times if they fit, and none from after READY" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(21) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.readMany(5, 1);
    var list: wire.StepList = .empty;
    while (true) list.append(
        .{ .group = .unit, .name = &@as([32]u8, @splat('x')), .start_us = 0, .duration_us = 1 },
    ) catch break;
    try list.append(
        .{ .group = .unit, .name = &@as([22]u8, @splat('x')), .start_us = 0, .duration_us = 1 },
    );
    fixture.client.report(fixture.now_us, reportOf(1, list.view()));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(0, fixture.reads_timed);
    fixture.client.report(fixture.now_us, reportOf(1, .{}));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(5, fixture.reads_timed);
    fixture.client.reportReady(fixture.now_us, .ready, 123, .{});
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .ready_acknowledged);
    try fixture.readMany(3, 1);
    fixture.client.report(fixture.now_us, reportOf(1, .{}));
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .report_acknowledged);
    try testing.expectEqual(5, fixture.reads_timed);
}

test "a report too large for the path arrives cut within a second, and the rest on a wider path" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(22) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.readMany(5, 1);
    fixture.path_size = wire.packet_size_min;
    fixture.order = .{ .order = .restart, .order_id = @splat(7) };
    var list: wire.StepList = .empty;
    for (0..wire.steps_max) |_| try list.append(
        .{ .group = .unit, .name = "names.service", .start_us = 0, .duration_us = 1 },
    );
    fixture.client.report(fixture.now_us, reportOf(1, list.view()));
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .order);
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .report_acknowledged);
    try testing.expectEqual(1, fixture.write_cache_used);
    try testing.expect(fixture.step_count > 0 and fixture.step_count < wire.steps_max);
    try testing.expectEqual(5, fixture.reads_timed);
    // Steps that leave no space for the times are sent without them.
    list = .empty;
    for (0..15) |_| try list.append(
        .{ .group = .unit, .name = "names.service", .start_us = 0, .duration_us = 1 },
    );
    fixture.reads_timed = 0;
    fixture.client.report(fixture.now_us, reportOf(2, list.view()));
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .report_acknowledged);
    try testing.expectEqual(15, fixture.step_count);
    try testing.expectEqual(0, fixture.reads_timed);
    fixture.client.report(fixture.now_us, reportOf(2, .{}));
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .report_acknowledged);
    try testing.expectEqual(0, fixture.step_count);
    try testing.expectEqual(5, fixture.reads_timed);
    for (15..wire.steps_max) |_| try list.append(
        .{ .group = .unit, .name = "names.service", .start_us = 0, .duration_us = 1 },
    );
    fixture.client.report(fixture.now_us, reportOf(3, list.view()));
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .report_acknowledged);
    try testing.expect(fixture.step_count < wire.steps_max);
    fixture.path_size = wire.packet_size_ethernet;
    fixture.client.report(fixture.now_us, reportOf(4, .{}));
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .report_acknowledged);
    try testing.expectEqual(wire.steps_max, fixture.step_count);
}

test "a retransmitted report has the uptime of its transmission" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(11) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const said_us = fixture.now_us;
    fixture.link.loss_percent = 100;
    fixture.client.report(fixture.now_us, reportOf(1, .{}));
    try testing.expectEqual(null, try fixture.nextEvent(5_000_000));
    fixture.link.loss_percent = 0;
    try testing.expect((try fixture.nextEvent(5_000_000)).? == .report_acknowledged);
    const late_us = fixture.now_us - said_us - 2 * fixture.link.delay_us;
    try testing.expectEqual(1_000_000 + late_us, fixture.uptime_us);
}

test "an order is taken once, under loss and a restart of the edge, and then the edge knows" {
    var fixture: StreamFixture = try .init(
        .{ .prng = .init(12), .loss_percent = 40, .duplicate_percent = 20, .jitter_us = 3000 },
    );
    defer fixture.deinit();
    try fixture.expectEstablished();
    for (0..20) |round| {
        fixture.order = .{
            .order = if (round % 2 == 0) .restart else .power_off,
            .order_id = @splat(@intCast(round + 1)),
        };
        if (round % 5 == 4) try fixture.restartEdge();
        fixture.client.report(fixture.now_us, reportOf(round, .{}));
        var taken: u32 = 0;
        while (try fixture.nextEvent(40_000_000)) |event| switch (event) {
            .order => |order| {
                taken += 1;
                try testing.expectEqual(@as(u8, @intCast(round + 1)), order.id.bytes[0]);
                try testing.expectEqual(round % 2 == 0, order.kind == .restart);
            },
            .report_acknowledged => {
                try testing.expectEqual(1, taken);
                try testing.expectEqual(.none, fixture.order.order);
            },
            .established => {},
            else => return error.UnexpectedEvent,
        };
        try testing.expectEqual(1, taken);
    }
}

test "a device that only reports notices that its edge is gone, and resumes when it is back" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(13) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    fixture.link.loss_percent = 100;
    for (0..4) |round| {
        fixture.client.report(fixture.now_us, reportOf(round, .{}));
        try testing.expectEqual(null, try fixture.nextEvent(5_000_000));
    }
    try testing.expectEqual(.greeting, fixture.client.state);
    fixture.link.loss_percent = 0;
    try testing.expect((try fixture.nextEvent(5_000_000)).?.established.resumed);
    try testing.expect((try fixture.nextEvent(5_000_000)).? == .report_acknowledged);
    try testing.expectEqual(3, fixture.write_cache_used);
}

/// Steps of `count` units with names of 11 bytes.
fn stepsOf(count: usize) !wire.StepList {
    var list: wire.StepList = .empty;
    for (0..count) |_| try list.append(
        .{ .group = .unit, .name = "longer.name", .start_us = 0, .duration_us = 1 },
    );
    return list;
}

const no_times: ReadTimes = .{};

test "a REPORT is sent at once, then after its timeout, twice as long each time, up to a second" {
    var state: ReportState = .{};
    try testing.expectEqual(null, state.dueAt());
    try testing.expectEqual(null, state.transmit(1000, 9));
    const cache: @FieldType(StreamClient.Report, "write_cache") = .{ .used = 70, .size = 100 };
    state.set(500, .{ .uptime_us = 8000, .write_cache = cache }, &no_times);
    state.send(1000, 5, 100_000);
    var now_us: u64 = 1000;
    for ([_]u64{ 100, 200, 400, 800, 1000, 1000 }) |wait_ms| {
        try testing.expectEqual(now_us, state.dueAt());
        if (now_us > 1000) try testing.expectEqual(null, state.transmit(now_us - 1, 9));
        const report = state.transmit(now_us, 9).?;
        try testing.expectEqual(8000 + now_us - 500, report.uptime_us);
        try testing.expectEqual(70, report.write_cache_used);
        try testing.expectEqual(100, report.write_cache_size);
        try testing.expectEqual(0, report.steps.count);
        try testing.expectEqual(0, report.read_times.count);
        try testing.expectEqual(5, state.request_id);
        now_us += wait_ms * std.time.us_per_ms;
    }
    try testing.expectEqual(.late, state.acknowledge(6, .{}));
    try testing.expectEqual(now_us, state.dueAt());
    try testing.expectEqual(.known, state.acknowledge(5, .{}));
    try testing.expectEqual(null, state.dueAt());
    try testing.expectEqual(null, state.transmit(now_us, 9));
    try testing.expectEqual(.late, state.acknowledge(5, .{}));
    // Without a write cache both are 0, and a fuller one than possible is full.
    state.set(500, .{ .uptime_us = 8000 }, &no_times);
    state.send(now_us, 6, 100);
    try testing.expectEqual(0, state.transmit(now_us, 9).?.write_cache_size);
    state.set(500, .{ .uptime_us = 1, .write_cache = .{ .used = 101, .size = 100 } }, &no_times);
    state.send(now_us, 7, 100);
    try testing.expectEqual(100, state.transmit(now_us, 9).?.write_cache_used);
}

test "a REPORT is whole four times and for half a second, then cut under another id" {
    const list = try stepsOf(wire.steps_max);
    for ([_]u64{ 1, 34_000, 100_000, 400_000 }) |timeout_us| {
        var state: ReportState = .{};
        state.set(0, .{ .uptime_us = 1, .steps = list.view() }, &no_times);
        const began_us = 5_000_000;
        state.send(began_us, 5, timeout_us);
        var sent: u32 = 0;
        for (0..30) |_| {
            const now_us = state.dueAt().?;
            const report = state.transmit(now_us, 77).?;
            sent += 1;
            const is_whole = sent <= 4 or now_us < began_us + 500_000;
            try testing.expectEqual(is_whole, report.steps.count == wire.steps_max);
            try testing.expectEqual(@as(u32, if (is_whole) 5 else 77), state.request_id);
            if (is_whole) continue;
            try testing.expect(report.steps.count > 0);
            // As many as every path takes, and one more would be too many.
            const size = wire.report_size_min + report.steps.bytes.len + wire.tag_size;
            try testing.expect(size <= wire.packet_size_min);
            const each = list.view().bytes.len / wire.steps_max;
            try testing.expect(size + each > wire.packet_size_min);
            break;
        } else return error.NeverCut;
        // The next one keeps the id of the cut form.
        _ = state.transmit(state.dueAt().?, 78).?;
        try testing.expectEqual(77, state.request_id);
        // It is known: the steps are not.
        try testing.expectEqual(.known, state.acknowledge(77, .{}));
        state.set(0, .{ .uptime_us = 1 }, &no_times);
        state.send(0, 80, timeout_us);
        try testing.expectEqual(wire.steps_max, state.transmit(0, 81).?.steps.count);
        // The whole one may be acknowledged late, and then all of it is known.
        state.sent_count = 20;
        state.first_sent_at_us = 0;
        _ = state.transmit(state.dueAt().? + 600_000, 82).?;
        try testing.expectEqual(82, state.request_id);
        try testing.expectEqual(.known, state.acknowledge(80, .{}));
        state.send(0, 90, timeout_us);
        try testing.expectEqual(0, state.transmit(0, 91).?.steps.count);
    }
}

test "steps that fit every path stay whole under their id, and read times give way to them" {
    const limit = wire.packet_size_min - wire.tag_size - wire.report_size_min;
    var times: ReadTimes = .{};
    times.onFetch(5);
    const times_size = times.listWhole().size;
    const each = (try stepsOf(1)).size;
    for (1..(limit / each) + 2) |count| {
        const list = try stepsOf(count);
        var state: ReportState = .{};
        state.set(0, .{ .uptime_us = 1, .steps = list.view() }, &times);
        state.send(0, 5, 10);
        state.sent_count = 5;
        const report = state.transmit(600_000, 77).?;
        const fits = list.size <= limit;
        try testing.expectEqual(@as(u32, if (fits) 5 else 77), state.request_id);
        try testing.expectEqual(fits, report.steps.count == count);
        if (fits) {
            const has_times = list.size + times_size <= limit;
            try testing.expectEqual(has_times, report.read_times.count > 0);
        } else {
            // Of steps that are cut, some make room for the times.
            try testing.expect(report.read_times.count > 0);
            try testing.expect(report.steps.bytes.len + times_size <= limit);
            try testing.expect(report.steps.bytes.len + each + times_size > limit);
        }
    }
}

test "an order is told once, and the same order again is known" {
    var state: ReportState = .{};
    const orders = [_]wire.ReportAck{
        .{ .order = .restart, .order_id = @splat(1) },
        .{ .order = .power_off, .order_id = @splat(2) },
        .{ .order = .restart, .order_id = @splat(3) },
    };
    for (orders, 1..) |ack, id| for (0..2) |time| {
        state.set(0, .{ .uptime_us = 1 }, &no_times);
        state.send(0, @intCast(2 * id + time), 10);
        const before: u8 = @intCast(if (time == 0) id - 1 else id);
        try testing.expectEqual(@as([16]u8, @splat(before)), state.transmit(0, 99).?.order_id);
        const told = state.acknowledge(@intCast(2 * id + time), ack);
        if (time == 1) {
            try testing.expectEqual(.known, told);
        } else {
            try testing.expectEqual(ack.order == .restart, told.order.kind == .restart);
            try testing.expectEqual(ack.order_id, told.order.id.bytes);
        }
    };
}

test "another edge gets everything again, and a device that never reported sends nothing" {
    var state: ReportState = .{};
    state.retransmitAll(10);
    try testing.expectEqual(null, state.dueAt());
    const list = try stepsOf(3);
    state.set(0, .{ .uptime_us = 1, .steps = list.view() }, &no_times);
    state.send(0, 5, 10);
    _ = state.transmit(0, 9);
    try testing.expectEqual(.known, state.acknowledge(5, .{}));
    // The same steps again are known; others are not.
    state.set(0, .{ .uptime_us = 1, .steps = list.view() }, &no_times);
    state.send(0, 6, 10);
    try testing.expectEqual(0, state.transmit(0, 9).?.steps.count);
    try testing.expectEqual(.known, state.acknowledge(6, .{}));
    state.retransmitAll(300);
    state.beginSession(1000);
    try testing.expectEqual(1000, state.dueAt());
    try testing.expectEqual(3, state.transmit(1000, 9).?.steps.count);
    try testing.expectEqual(1300, state.dueAt());
    try testing.expectEqual(.known, state.acknowledge(6, .{}));
    const more = try stepsOf(4);
    state.set(0, .{ .uptime_us = 1, .steps = more.view() }, &no_times);
    state.send(0, 7, 10);
    try testing.expectEqual(4, state.transmit(0, 9).?.steps.count);
}

test "a new session sends a report whole again, and a clock that goes back adds nothing" {
    const list = try stepsOf(wire.steps_max);
    var state: ReportState = .{};
    state.set(1000, .{ .uptime_us = 50, .steps = list.view() }, &no_times);
    state.send(1000, 5, 10);
    try testing.expectEqual(50, state.transmit(1000, 9).?.uptime_us);
    state.sent_count = 10;
    try testing.expect(state.transmit(600_000, 9).?.steps.count < wire.steps_max);
    try testing.expectEqual(9, state.request_id);
    state.beginSession(700_000);
    try testing.expectEqual(wire.steps_max, state.transmit(700_000, 10).?.steps.count);
    // Under the id that the edge may know as the cut one's: now it stands for the whole.
    try testing.expectEqual(9, state.request_id);
    try testing.expectEqual(.known, state.acknowledge(9, .{}));
    try testing.expect(state.steps_acknowledged);
    state.set(1000, .{ .uptime_us = 50 }, &no_times);
    state.send(500, 11, 10);
    try testing.expectEqual(50, state.transmit(500, 12).?.uptime_us);
}

/// Steps of exactly `size` bytes.
fn stepsOfSize(size: usize) !wire.StepList {
    const name: [32]u8 = @splat('x');
    const fixed = (try stepsOf(1)).size - "longer.name".len;
    var list: wire.StepList = .empty;
    while (list.size < size) {
        const left = size - list.size;
        // The last two share what is left.
        const longest = fixed + name.len;
        const each = if (left > 2 * longest) longest else if (left > longest) left / 2 else left;
        try list.append(
            .{ .group = .unit, .name = name[0 .. each - fixed], .start_us = 0, .duration_us = 1 },
        );
    }
    try testing.expectEqual(size, list.size);
    return list;
}

test "steps and read times fill a REPORT to its last byte, whole and cut" {
    const limit = wire.packet_size_min - wire.tag_size - wire.report_size_min;
    var times: ReadTimes = .{};
    times.onFetch(5);
    const times_size = times.listWhole().size;
    for ([_]usize{ 0, 1 }) |more| {
        var state: ReportState = .{};
        const whole = try stepsOfSize(wire.steps_size_max - times_size + more);
        state.set(0, .{ .uptime_us = 1, .steps = whole.view() }, &times);
        state.send(0, 5, 10);
        try testing.expectEqual(more == 0, state.transmit(0, 77).?.read_times.count > 0);
        // Half a second after the first one, and not before.
        state.sent_count = 4;
        const before = state.transmit(500_000 - 1, 77).?;
        try testing.expectEqual(whole.count, before.steps.count);
        state.sent_count = 4;
        const cut = state.transmit(1_000_000 + more, 77).?;
        try testing.expect(cut.steps.count < whole.count);
        // Steps that fit with the times, and by themselves.
        for ([_]usize{ limit - times_size, limit }) |size| {
            const narrow = try stepsOfSize(size + more);
            state.set(0, .{ .uptime_us = 1, .steps = narrow.view() }, &times);
            state.send(0, 6, 10);
            _ = state.transmit(0, 77).?;
            state.sent_count = 4;
            const report = state.transmit(500_000, 77).?;
            const is_cut = size + more > limit;
            try testing.expectEqual(@as(u32, if (is_cut) 77 else 6), state.request_id);
            try testing.expectEqual(!is_cut, report.steps.count == narrow.count);
            const has_times = is_cut or size + more + times_size <= limit;
            try testing.expectEqual(has_times, report.read_times.count > 0);
        }
    }
}

test "steps are cut at the last one that fits, beside read times or where these are too large" {
    const limit = wire.packet_size_min - wire.tag_size - wire.report_size_min;
    var times: ReadTimes = .{};
    times.onFetch(5);
    for ([_]u16{ times.list().size, limit, limit + 1 }) |times_size| for ([_]usize{ 0, 1 }) |more| {
        const room = if (times_size > limit) limit else limit - times_size;
        // A step that ends at the limit or one byte beyond, and more of them behind it.
        var list = if (room == 0) wire.StepList.empty else try stepsOfSize(room + more);
        const first_count = list.count;
        while (list.size <= limit) try list.append(
            .{ .group = .unit, .name = "longer.name", .start_us = 0, .duration_us = 1 },
        );
        var state: ReportState = .{};
        state.set(0, .{ .uptime_us = 1, .steps = list.view() }, &times);
        state.read_times.size = times_size;
        state.whole_read_times.size = times_size;
        state.send(0, 5, 10);
        _ = state.transmit(0, 77).?;
        state.sent_count = 4;
        const report = state.transmit(500_000, 77).?;
        const expected = if (room == 0) 0 else first_count - @as(u8, @intCast(more));
        try testing.expectEqual(expected, report.steps.count);
        try testing.expectEqual(times_size <= limit, report.read_times.bytes.len > 0);
    };
}
