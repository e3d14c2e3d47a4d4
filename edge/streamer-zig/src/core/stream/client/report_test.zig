//! Tests of report.zig: a device's REPORT while it runs, against the real edge's side as in
//! client_test.zig.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const StreamClient = @import("client.zig");
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
