//! Tests of report_log.zig on a real file system.

const std = @import("std");
const base = @import("base");
const report_log = @import("core").uplink.report_log;
const ReportLog = @import("report_log.zig").ReportLog;

const core_gaps = @import("core").uplink.report_gaps;
const linux = std.os.linux;
const testing = std.testing;
const io = testing.io;

const Fixture = struct {
    tmp: testing.TmpDir,
    log: ReportLog,
    buffer: []u8,

    fn init(options: report_log.Options) !Fixture {
        const tmp = testing.tmpDir(.{ .iterate = true });
        return .{
            .tmp = tmp,
            .log = try .open(testing.allocator, .{ .io = io, .dir = tmp.dir }, options),
            .buffer = try testing.allocator.alloc(u8, report_log.batch_size_max),
        };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.log.deinit(testing.allocator);
        testing.allocator.free(fixture.buffer);
        fixture.tmp.cleanup();
    }

    /// Restarts as after kill -9: nothing is written at the end.
    fn restart(fixture: *Fixture, options: report_log.Options) !void {
        fixture.log.deinit(testing.allocator);
        fixture.log = try .open(testing.allocator, .{ .io = io, .dir = fixture.tmp.dir }, options);
    }

    fn append(fixture: *Fixture, count: u32) !void {
        for (0..count) |_| try testing.expect(fixture.log.appendBoot("{\"id\":\"x\"}"));
    }

    fn next(fixture: *Fixture) !report_log.Batch {
        return (try fixture.log.nextBatch(fixture.buffer)) orelse error.NothingToSend;
    }
};

test "only the edge's user reads the report log, also where an earlier release created it" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    try fixture.append(1);
    var entries = fixture.tmp.dir.iterate();
    while (try entries.next(io)) |entry| {
        const file = try fixture.tmp.dir.openFile(io, entry.name, .{ .mode = .read_write });
        defer file.close(io);
        try testing.expectEqual(.SUCCESS, linux.errno(linux.fchmod(file.handle, 0o644)));
    }
    try fixture.restart(.{ .epoch = 2 });
    try fixture.append(1);
    var file_count: usize = 0;
    entries = fixture.tmp.dir.iterate();
    while (try entries.next(io)) |entry| {
        const stat = try fixture.tmp.dir.statFile(io, entry.name, .{});
        try testing.expectEqual(0o600, stat.permissions.toMode() & 0o777);
        file_count += 1;
    }
    try testing.expect(file_count > 0);
}

test "reports are sent in order until acknowledged, and retransmitted until then" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    try testing.expectEqual(null, try fixture.log.nextBatch(fixture.buffer));
    try fixture.append(2);
    const body =
        "{\"bootEpoch\":1,\"fromSeq\":1,\"reports\":[{\"seq\":1,\"type\":\"boot\",\"boot\":{\"id\":\"x\"}}," ++
        "{\"seq\":2,\"type\":\"boot\",\"boot\":{\"id\":\"x\"}}]}";
    try testing.expectEqualStrings(body, (try fixture.next()).body);
    try testing.expectEqualStrings(body, (try fixture.next()).body);
    fixture.log.ack(1, 1);
    try testing.expectEqual(1, fixture.log.backlog());
    try testing.expectEqual(2, (try fixture.next()).from_seq);
    fixture.log.ack(1, 2);
    try testing.expectEqual(0, fixture.log.backlog());
    try testing.expectEqual(null, try fixture.log.nextBatch(fixture.buffer));
    try fixture.append(1);
    try testing.expectEqual(3, (try fixture.next()).from_seq);
}

test "a batch has at most 100 reports, and the next one continues after it" {
    var fixture = try Fixture.init(.{ .epoch = 1, .segment_size_max = 1000 });
    defer fixture.deinit();
    try fixture.append(250);
    var sent: u64 = 0;
    while (try fixture.log.nextBatch(fixture.buffer)) |batch| {
        try testing.expectEqual(sent + 1, batch.from_seq);
        try testing.expect(batch.until_seq - sent <= 100);
        sent = batch.until_seq;
        fixture.log.ack(1, sent);
    }
    try testing.expectEqual(250, sent);
    try testing.expectEqual(0, fixture.log.segments.items.len);
}

test "reports of earlier epochs are sent first and survive restarts" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    try fixture.append(3);
    try fixture.restart(.{ .epoch = 2 });
    try fixture.append(1);
    try testing.expectEqual(4, fixture.log.backlog());
    const old = try fixture.next();
    try testing.expectEqual(1, old.epoch);
    try testing.expectEqual(3, old.until_seq);
    fixture.log.ack(1, 3);
    const new = try fixture.next();
    try testing.expectEqual(2, new.epoch);
    try testing.expectEqual(1, new.from_seq);
    fixture.log.ack(2, 1);
    try testing.expectEqual(0, fixture.log.backlog());
}

test "a torn tail is cut, and everything before it is kept" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    try fixture.append(3);
    const segment = fixture.log.segments.items[0];
    const file = try fixture.tmp.dir.openFile(io, &segment.name(), .{ .mode = .read_write });
    try file.setLength(io, segment.size - 1);
    file.close(io);
    try fixture.restart(.{ .epoch = 2 });
    try testing.expectEqual(2, (try fixture.next()).until_seq);
    // In the same epoch (the start did not get far), the next report follows what is left.
    try fixture.restart(.{ .epoch = 1 });
    try fixture.append(1);
    try testing.expectEqual(3, (try fixture.next()).until_seq);
}

test "a full log loses reports, declares them as a gap, and continues" {
    var fixture = try Fixture.init(.{ .epoch = 1, .size_max = 200, .segment_size_max = 100 });
    defer fixture.deinit();
    while (fixture.log.appendBoot("{\"id\":\"x\"}")) {}
    try testing.expect(!fixture.log.appendBoot("{\"id\":\"y\"}"));
    // Two were lost after those that were kept.
    const kept = (try fixture.next()).until_seq - 2;
    fixture.log.ack(1, kept);
    try fixture.append(1);
    const batch = try fixture.next();
    try testing.expectEqual(kept + 1, batch.from_seq);
    try testing.expectEqual(kept + 3, batch.until_seq);
    try testing.expect(std.mem.find(u8, batch.body, "\"type\":\"gap\",\"untilSeq\":6,") != null);
    const losses = fixture.log.losses();
    try testing.expectEqual(.{ 2, 1, 2 }, .{
        losses.since_start, losses.gap_count, losses.gap_reports,
    });
    fixture.log.ack(1, batch.until_seq);
    try testing.expectEqual(.{ 2, 0, 0 }, .{
        fixture.log.losses().since_start,
        fixture.log.losses().gap_count,
        fixture.log.losses().gap_reports,
    });
}

test "what a full log lost last is declared at once, with its times, and over restarts" {
    const options: report_log.Options = .{ .epoch = 1, .size_max = 200, .segment_size_max = 100 };
    var fixture = try Fixture.init(options);
    defer fixture.deinit();
    var kept: u64 = 0;
    while (fixture.log.appendBoot("{\"id\":\"x\"}")) kept += 1;
    for (0..9) |_| try testing.expect(!fixture.log.appendBoot("{\"id\":\"y\"}"));
    try testing.expectEqual(kept + 10, fixture.log.backlog());
    for (2..5) |epoch| {
        // The log is full, so each start can only lose: three reports each.
        try fixture.restart(.{ .epoch = epoch, .size_max = 200, .segment_size_max = 100 });
        for (0..3) |_| try testing.expect(!fixture.log.appendBoot("{\"id\":\"z\"}"));
    }
    try fixture.restart(.{ .epoch = 5, .size_max = 200, .segment_size_max = 100 });
    try testing.expectEqual(kept + 10 + 9, fixture.log.backlog());
    const first = try fixture.next();
    try testing.expectEqual(kept + 10, first.until_seq);
    var expected: [128]u8 = undefined;
    const gap =
        try std.mem.print(
            &expected,
            "{{\"seq\":{d},\"type\":\"gap\",\"untilSeq\":{d},\"reason\":\"report log full\",\"fromUnixMs\":",
            .{ kept + 1, kept + 10 },
        );
    try testing.expect(std.mem.find(u8, first.body, gap) != null);
    fixture.log.ack(1, kept + 10);
    for (2..5) |epoch| {
        const batch = try fixture.next();
        try testing.expectEqual(epoch, batch.epoch);
        try testing.expectEqual(1, batch.from_seq);
        try testing.expectEqual(3, batch.until_seq);
        fixture.log.ack(epoch, 3);
    }
    try testing.expectEqual(null, try fixture.log.nextBatch(fixture.buffer));
    // There is free space again, now and after a start.
    try fixture.append(1);
    try fixture.restart(.{ .epoch = 6, .size_max = 200, .segment_size_max = 100 });
    try testing.expectEqual(1, fixture.log.backlog());
}

test "a log that loses reports from time to time declares every gap, also more than it can record" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    const stretches = core_gaps.count_max + 50;
    for (0..stretches) |_| {
        fixture.log.options.size_max = 0;
        try testing.expect(!fixture.log.appendBoot("{\"id\":\"y\"}"));
        fixture.log.options.size_max = 1 << 20;
        try fixture.append(1);
    }
    try fixture.restart(.{ .epoch = 2 });
    var gaps: usize = 0;
    while (try fixture.log.nextBatch(fixture.buffer)) |batch| {
        gaps += std.mem.count(u8, batch.body, "\"type\":\"gap\"");
        fixture.log.ack(batch.epoch, batch.until_seq);
    }
    try testing.expectEqual(stretches, gaps);
    for (fixture.log.gaps.slots) |place| try testing.expectEqual(null, place);
}

test "reports that an API requests again but that are gone are declared as a gap" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    try fixture.append(2);
    _ = try fixture.next();
    fixture.log.ack(1, 2);
    try fixture.append(1);
    _ = try fixture.next();
    fixture.log.rewind(1, 1);
    const batch = try fixture.next();
    try testing.expectEqual(1, batch.from_seq);
    try testing.expect(
        std.mem.find(u8, batch.body, "{\"seq\":1,\"type\":\"gap\",\"untilSeq\":2,") != null,
    );
}

test "a log of a higher epoch is refused" {
    var fixture = try Fixture.init(.{ .epoch = 2 });
    defer fixture.deinit();
    try fixture.append(1);
    try testing.expectError(
        error.LogFromTheFuture,
        ReportLog.open(testing.allocator, .{ .io = io, .dir = fixture.tmp.dir }, .{ .epoch = 1 }),
    );
}

test "a log with a gap of a higher epoch is refused" {
    var fixture = try Fixture.init(.{ .epoch = 2, .size_max = 0 });
    defer fixture.deinit();
    try testing.expect(!fixture.log.appendBoot("{\"id\":\"x\"}"));
    try testing.expectError(
        error.LogFromTheFuture,
        ReportLog.open(testing.allocator, .{ .io = io, .dir = fixture.tmp.dir }, .{ .epoch = 1 }),
    );
}

test "the API may acknowledge all while the last segment is still empty" {
    var fixture = try Fixture.init(.{ .epoch = 1, .segment_size_max = 1 });
    defer fixture.deinit();
    try fixture.append(1);
    {
        // As on a full disk: a file can be created, and takes no byte.
        var ignore: linux.Sigaction =
            .{ .handler = .{ .handler = linux.SIG.IGN }, .mask = linux.sigemptyset(), .flags = 0 };
        var before: linux.Sigaction = undefined;
        _ = linux.sigaction(.XFSZ, &ignore, &before);
        defer _ = linux.sigaction(.XFSZ, &before, null);
        const limits = try std.posix.getrlimit(.FSIZE);
        try std.posix.setrlimit(.FSIZE, .{ .cur = 0, .max = limits.max });
        defer std.posix.setrlimit(.FSIZE, limits) catch unreachable;
        try testing.expect(!fixture.log.appendBoot("{\"id\":\"y\"}"));
    }
    const batch = try fixture.next();
    try testing.expectEqual(2, batch.until_seq);
    fixture.log.ack(1, 2);
    try testing.expectEqual(0, fixture.log.segments.items.len);
    try testing.expectEqual(null, try fixture.log.nextBatch(fixture.buffer));
    try fixture.append(1);
    try testing.expectEqual(3, (try fixture.next()).until_seq);
}

test "the report of a waiting device is complete even if all of it has its greatest length" {
    var fixture = try Fixture.init(.{ .epoch = 1 });
    defer fixture.deinit();
    const id: base.Uuid = .fromRandom(@splat(0xff));
    try testing.expect(fixture.log.appendWaiting(&.{
        .boot_id = id,
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .edge = id,
        .started_unix_ms = std.math.maxInt(u64),
        .at_us = std.math.maxInt(u64),
    }));
    const uuid = "ffffffff-ffff-4fff-bfff-ffffffffffff";
    try testing.expectEqualStrings("{\"bootEpoch\":1,\"fromSeq\":1,\"reports\":[{\"seq\":1," ++
        "\"type\":\"waiting\",\"bootId\":\"" ++
        uuid ++
        "\",\"mac\":\"02:bf:00:00:00:01\",\"edgeId\":\"" ++ uuid ++
        "\",\"startedUnixMs\":9007199254740991,\"atUs\":9007199254740991}]}", (try fixture.next()).body);
}
