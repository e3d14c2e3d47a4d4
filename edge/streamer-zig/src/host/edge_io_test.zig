//! Boots of an edge with its journal and its report log on a real file system; time comes in.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const EdgeIo = @import("edge_io.zig");
const Boots = @import("edge_io.zig").Agent.Boots;
const BootFiles = @import("files/boot_files.zig");
const BootJournal = @import("files/boot_journal.zig");
const ReportLog = @import("files/report_log.zig").ReportLog;
const ReportWriter = @import("files/report_writer.zig");
const Worker = @import("threads/worker.zig");
const report_log = core.uplink.report_log;
const testing = std.testing;
const gpa = testing.allocator;

const second = std.time.us_per_s;
const silence_us = core.boot.Guest.silence_us;
/// When the boot began.
const begun_us = 1000 * second;
const boot_id: base.Uuid = .fromRandom(@splat(1));

const Site = struct {
    tmp: testing.TmpDir,
    log_dir: std.Io.Dir,
    log: ReportLog,
    worker: Worker,
    writer: ReportWriter,
    journal: BootJournal,
    io: EdgeIo,
    peers: core.site.PeerTable,
    boots: Boots,
    buffer: []u8,
    boots_max: u16,
    starts: u32 = 0,

    fn init(site: *Site) !void {
        return site.initFor(4);
    }

    fn initFor(site: *Site, boots_max: u16) !void {
        site.boots_max = boots_max;
        site.tmp = testing.tmpDir(.{});
        site.log_dir = try site.tmp.dir.createDirPathOpen(testing.io, "log", .{
            .open_options = .{ .iterate = true },
        });
        site.buffer = try gpa.alloc(u8, report_log.batch_size_max);
        site.starts = 0;
        try site.start(begun_us);
    }

    fn start(site: *Site, now_us: u64) !void {
        site.starts += 1;
        site.log =
            try .open(gpa, .{ .io = testing.io, .dir = site.log_dir }, .{ .epoch = site.starts });
        site.worker = try .init(testing.io, 1 << 20);
        site.journal = try .open(gpa, &site.worker, site.tmp.dir.handle);
        site.writer = .{
            .log = &site.log,
            .worker = &site.worker,
            .listener = .{ .context = site, .written = ignoreWritten },
        };
        site.io = .{
            .versions = try .init(gpa, 4),
            .files = &BootFiles.none,
            .report_log = &site.writer,
            .boot_journal = &site.journal,
            .listener = .{
                .context = site,
                .reported = ignoreReport,
                .version_problem = ignoreProblem,
            },
        };
        site.peers = try .init(gpa, .{ .epoch = 1, .boots_max = site.boots_max });
        site.boots = .{
            .io = &site.io,
            .table = try .init(gpa, site.boots_max),
            .peers = &site.peers,
            .discovery = .{ .devices = try .init(gpa) },
            .caches = .none(gpa, &site.io),
            .profiles = .none(gpa, &site.io),
        };
        try site.journal.load(&site.boots.table, now_us, 1_795_000_000_000);
    }

    /// As kill -9 leaves it.
    fn end(site: *Site) void {
        site.boots.deinit(gpa);
        site.peers.deinit(gpa);
        site.io.deinit(gpa);
        site.journal.close();
        site.worker.deinit();
        site.log.deinit(gpa);
    }

    fn restart(site: *Site, now_us: u64) !void {
        site.end();
        try site.start(now_us);
    }

    fn deinit(site: *Site) void {
        site.end();
        gpa.free(site.buffer);
        site.log_dir.close(testing.io);
        site.tmp.cleanup();
    }

    /// A device that is up and says so as bootfarm-target does.
    fn bootDevice(site: *Site) !void {
        const ref = try site.boots.table.insert(.init(.{
            .id = boot_id,
            .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
            .handle = 1,
            .token = @splat(1),
        }, .{ .version_id = .fromRandom(@splat(9)) }, begun_us, 1_795_000_000_000), begun_us);
        site.boots.apply(ref, begun_us + second, .{ .ready = .http });
        site.hear(begun_us + 2 * second);
    }

    fn hear(site: *Site, now_us: u64) void {
        _ = site.boots.takeReport(now_us, &.{
            .boot_id = boot_id,
            .session_id = 1,
            .request_id = 1,
            .report = .{ .uptime_us = now_us - begun_us },
        });
    }

    /// Each device reports every 30 seconds; the first turns write what came before.
    fn expectIdleHour(site: *Site, from_us: u64) !void {
        const written = &site.journal.writer.written_bytes;
        var before: u64 = 0;
        for (0..3600) |turn| {
            const now_us = from_us + turn * second;
            if (turn % 30 == 0) {
                var iterator = site.boots.table.iterate();
                while (iterator.next()) |boot| _ = site.boots.takeReport(now_us, &.{
                    .boot_id = boot.identity.id,
                    .session_id = 1,
                    .request_id = 1,
                    .report = .{ .uptime_us = now_us - begun_us },
                });
            }
            site.boots.tick(now_us);
            site.worker.finish();
            if (turn == 60) before = written.load(.acquire);
        }
        try testing.expect(written.load(.acquire) - before < 1_000_000);
    }

    /// Acknowledges all reports, so that only later ones remain.
    fn forgetReports(site: *Site) !void {
        site.worker.finish();
        while (try site.log.nextBatch(site.buffer)) |batch|
            site.log.ack(batch.epoch, batch.until_seq);
    }

    /// Returns `silentSinceUs` of the only report since; null if it has none.
    fn silentSince(site: *Site) !?i64 {
        site.worker.finish();
        const batch = try site.log.nextBatch(site.buffer) orelse return null;
        try testing.expectEqual(batch.from_seq, batch.until_seq);
        const parsed = try std.json.parseFromSlice(std.json.Value, gpa, batch.body, .{});
        defer parsed.deinit();
        site.log.ack(batch.epoch, batch.until_seq);
        const boot =
            parsed.value.object.get("reports").?.array.items[0].object.get("boot").?.object;
        try testing.expectEqualStrings("ready", boot.get("outcome").?.object.get("kind").?.string);
        return if (boot.get("silentSinceUs")) |since| since.integer else -1;
    }

    fn ignoreReport(_: *anyopaque, _: *const core.boot.Boot) void {}
    fn ignoreWritten(_: *anyopaque) void {}
    fn ignoreProblem(_: *anyopaque, _: @import("files/version_table.zig").Problem) void {}
};

test "a device that is switched off by hand is told as not heard since its last word, once, also by an edge that starts again" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.bootDevice();
    site.hear(begun_us + 7 * second);
    try site.forgetReports();
    const silent_us = begun_us + 7 * second + silence_us;
    site.boots.tick(silent_us - second);
    try testing.expectEqual(null, try site.silentSince());
    site.boots.tick(silent_us);
    try testing.expectEqual(7 * second, try site.silentSince());
    site.boots.tick(silent_us + second);
    try testing.expectEqual(null, try site.silentSince());
    // A restart of the edge does not make the last sign of the device more recent.
    try site.restart(silent_us + 10 * second);
    site.boots.tick(silent_us + 10 * second);
    site.boots.tick(silent_us + 11 * second + silence_us);
    try testing.expectEqual(null, try site.silentSince());
    // It is there again, e.g. behind a cable that was out.
    site.hear(silent_us + 20 * second + silence_us);
    try testing.expectEqual(-1, try site.silentSince());
    site.boots.tick(silent_us + 20 * second + 2 * silence_us);
    try testing.expectEqual(67 * second + 20 * second + silence_us, try site.silentSince());
}

test "while the edge was down nobody listened: that is no silence of a device" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.bootDevice();
    try site.forgetReports();
    const started_us = begun_us + 3600 * second;
    try site.restart(started_us);
    site.boots.tick(started_us);
    site.boots.tick(started_us + silence_us - second);
    try testing.expectEqual(null, try site.silentSince());
    site.boots.tick(started_us + silence_us);
    try testing.expectEqual(3600 * second, try site.silentSince());
}

test "read times are told by phase, but for reports that wait with many others" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    try site.bootDevice();
    const boot = site.boots.get(site.boots.table.findById(boot_id).?).?;
    boot.read_times.onRead(512, .{ .is_cold = false, .storage_us = 3, .send_us = 40 });
    boot.read_times.system = .{};
    for ([_]usize{ 0, report_log.behind_count + 1 }) |waiting| {
        try site.forgetReports();
        for (0..waiting) |_| try testing.expect(site.log.appendBoot("{}"));
        boot.changed = true;
        site.boots.apply(site.boots.table.findById(boot_id).?, begun_us + 3 * second, .store_error);
        site.worker.finish();
        var phases: usize = 0;
        var times: usize = 0;
        while (try site.log.nextBatch(site.buffer)) |batch| {
            phases += std.mem.count(u8, batch.body, "\"name\":\"system\"");
            times += std.mem.count(u8, batch.body, "\"readTimes\"");
            site.log.ack(batch.epoch, batch.until_seq);
        }
        try testing.expectEqual(1, times);
        try testing.expectEqual(@intFromBool(waiting == 0), phases);
    }
}

test "an edge with 2,000 devices that run writes less than 1 MB in an hour, also after a restart" {
    const count = 2000;
    var site: Site = undefined;
    try site.initFor(count);
    defer site.deinit();
    for (0..count) |index| {
        var id = boot_id;
        std.mem.writeInt(u32, id.bytes[0..4], @intCast(index), .little);
        const ref = try site.boots.table.insert(.init(.{
            .id = id,
            .mac = .fromInt(0x02bf00000000 + @as(u48, @intCast(index))),
            .handle = 1 + index,
            .token = @splat(1),
        }, .{ .version_id = .fromRandom(@splat(9)) }, begun_us, 1_795_000_000_000), begun_us);
        // As many records as a boot has phases and steps.
        const boot = site.boots.get(ref).?;
        for (0..10) |_| site.boots.journalNow(boot);
        site.worker.finish();
        site.boots.apply(ref, begun_us + second, .{ .ready = .http });
    }
    try site.expectIdleHour(begun_us + 2 * second);
    try site.restart(begun_us + 4000 * second);
    try testing.expectEqual(count, site.boots.table.count);
    try site.expectIdleHour(begun_us + 4000 * second);
}

test "a disk that does not answer stops no boot: what it must keep waits, and is kept later" {
    var site: Site = undefined;
    try site.init();
    defer site.deinit();
    // The worker does nothing until it is told to finish.
    try site.bootDevice();
    for (0..60) |turn| {
        const now_us = begun_us + turn * second;
        site.hear(now_us);
        site.boots.tick(now_us);
    }
    try testing.expect(site.journal.writer.given > 0);
    try testing.expectEqual(0, site.journal.writer.written.load(.acquire));
    try testing.expectEqual(site.writer.given, site.writer.backlog());
    try testing.expectEqual(0, site.log.backlog());
    try site.restart(begun_us + 60 * second);
    try testing.expectEqual(1, site.boots.table.count);
    try testing.expect(site.log.backlog() > 0);
}
