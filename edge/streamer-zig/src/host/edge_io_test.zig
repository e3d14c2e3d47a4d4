//! Boots of an edge with its journal and its report log on a real file system; time comes in.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const EdgeIo = @import("edge_io.zig");
const Boots = @import("edge_io.zig").Agent.Boots;
const BootFiles = @import("files/boot_files.zig");
const BootJournal = @import("files/boot_journal.zig");
const LeaseFile = @import("files/lease_file.zig").LeaseFile;
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
            .table = try .init(gpa, .{ .capacity = site.boots_max }),
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

    /// Each device reports as bootfarm-target does, and renews its lease at half of it; the first
    /// turns write what came before. Counts what this process writes anywhere.
    fn expectIdleHour(site: *Site, leases: *Leases, from_us: u64) !void {
        var before: u64 = 0;
        for (0..60 + 3600) |turn| {
            const now_us = from_us + turn * second;
            if (turn % 5 == 0) {
                var iterator = site.boots.table.iterate();
                while (iterator.next()) |boot| _ = site.boots.takeReport(now_us, &.{
                    .boot_id = boot.identity.id,
                    .session_id = 1,
                    .request_id = 1,
                    .report = .{ .uptime_us = now_us - begun_us },
                });
            }
            site.boots.tick(now_us);
            try leases.turn(@intCast(turn), now_us);
            site.worker.finish();
            if (turn == 60) before = try writtenByProcess();
        }
        const written = try writtenByProcess() - before;
        errdefer std.debug.print("{d} bytes written in an idle hour\n", .{written});
        try testing.expect(written < 1_000_000);
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

/// The leases of devices that run, with their file.
const Leases = struct {
    service: core.dhcp.Service,
    file: LeaseFile,
    count: u32,

    /// A device's system names itself as systemd-networkd does: with 19 bytes.
    const client_id_size = 19;
    const first: base.Ip4 = .init(10, 0, 1, 0);
    const lease_s = 3600;

    fn init(site: *Site, count: u32, now_us: u64) !Leases {
        var leases: Leases = .{ .service = undefined, .file = undefined, .count = count };
        leases.service = try .init(gpa, .{
            .links = &.{.{ .ip = .init(10, 0, 0, 1) }},
            .networks = &.{.{
                .subnet = .of(.init(10, 0, 0, 1), 16),
                .mode = .server,
                .link = 0,
                .pools = &.{.{ .first = first, .last = .init(10, 0, 30, 255) }},
            }},
            .http_port = 80,
        });
        const dir = site.tmp.dir.handle;
        leases.file = try .open(gpa, &site.worker, dir, &leases.service, now_us);
        return leases;
    }

    fn deinit(leases: *Leases) void {
        leases.file.close();
        leases.service.deinit(gpa);
    }

    /// The devices renew their leases one after the other.
    fn turn(leases: *Leases, second_number: u32, now_us: u64) !void {
        const table = leases.service.leasesOf(0).?;
        const period_s = lease_s / 2;
        for (0..leases.count) |index| {
            if (index % period_s != second_number % period_s) continue;
            var id: [client_id_size]u8 = @splat(0xff);
            std.mem.writeInt(u32, id[0..4], @intCast(index), .big);
            const mac: base.Mac = .fromInt(0x02bf00000000 + @as(u48, @intCast(index)));
            const client: core.dhcp.Leases.Client = .of(mac, &id, .client_id);
            const ip: base.Ip4 = .fromInt(first.toInt() + @as(u32, @intCast(index)));
            try testing.expectEqual(.granted, table.bind(now_us, &client, ip, lease_s));
        }
        while (leases.service.takeChange(now_us)) |record| leases.file.append(&record);
        leases.file.tick(&leases.service, now_us);
    }
};

/// Returns how many bytes this process has given to the system to write (proc_pid_io(5)).
fn writtenByProcess() !u64 {
    var buffer: [1024]u8 = undefined;
    const text = try std.Io.Dir.cwd().readFile(testing.io, "/proc/self/io", &buffer);
    const name = "wchar: ";
    const from = (std.mem.find(u8, text, name) orelse return error.NotTold) + name.len;
    const size = std.mem.findScalar(u8, text[from..], '\n') orelse return error.NotTold;
    return std.fmt.parseInt(u64, text[from..][0..size], 10);
}

test "an edge with 3,000 devices that run writes less than 1 MB in an hour, also after a restart" {
    const count = 3000;
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
    for ([_]u64{ 2, 10_000 }) |after_s| {
        if (after_s > 2) try site.restart(begun_us + after_s * second);
        var leases: Leases = try .init(&site, count, begun_us + after_s * second);
        defer leases.deinit();
        // An hour begins in which each device renews its lease for the first time.
        for (0..Leases.lease_s / 2) |number|
            try leases.turn(@intCast(number), begun_us + after_s * second);
        try testing.expectEqual(count, site.boots.table.count);
        try site.expectIdleHour(&leases, begun_us + after_s * second);
    }
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
