//! Appends reports to the log by a worker, so that the packet loop waits neither for the disk nor
//! for whoever sends reports and syncs them first. A report that finds no place in the worker's
//! queue is lost as on a full disk: its number stays unused, and the log declares it.

const std = @import("std");
const base = @import("base");
const Report = @import("agent").Report;
const ReportLog = @import("report_log.zig").ReportLog;
const WaitingDevices = @import("core").site.WaitingDevices;
const report_log = @import("core").uplink.report_log;
const Worker = @import("../threads/worker.zig");

pub const ReportWriter = @This();

log: *ReportLog,
worker: *Worker,
/// Whom the worker tells that there is something to send.
listener: Listener,
/// Reports that the worker got.
given: u64 = 0,
done: std.atomic.Value(u64) = .init(0),
/// Reports that found no place; the worker declares them.
lost: std.atomic.Value(u64) = .init(0),

/// Called from the worker's thread.
pub const Listener = struct {
    context: *anyopaque,
    written: *const fn (context: *anyopaque) void,
};

const Tag = enum(u8) { boot, withdrawn, waiting, discovered, schedule_run };
const Withdrawn = extern struct { boot_id: [16]u8, to: [16]u8 };

/// The writer must not move after its first report.
pub fn append(writer: *ReportWriter, report: Report) void {
    const tag: Tag, const bytes: []const u8 = switch (report) {
        .boot => |json| .{ .boot, json },
        .discovered => |json| .{ .discovered, json },
        .schedule_run => |json| .{ .schedule_run, json },
        .waiting => |waiting| .{ .waiting, std.mem.asBytes(waiting) },
        .withdrawn => |withdrawn| return writer.give(.withdrawn, std.mem.asBytes(&Withdrawn{
            .boot_id = withdrawn.boot_id.bytes,
            .to = withdrawn.to.bytes,
        })),
    };
    writer.give(tag, bytes);
}

fn give(writer: *ReportWriter, tag: Tag, bytes: []const u8) void {
    const task: Worker.Task = .{ .context = writer, .run = run };
    if (writer.worker.give(task, &.{ &.{@backingInt(tag)}, bytes }, 0))
        writer.given += 1
    else
        _ = writer.lost.fetchAdd(1, .release);
}

/// Counts the reports that the API has not acknowledged; never waits.
pub fn backlog(writer: *const ReportWriter) u64 {
    const waiting = writer.given - writer.done.load(.acquire);
    return waiting + writer.log.published_backlog.load(.acquire);
}

/// So many reports wait that those of boots in progress would only displace their ends.
pub fn isBehind(writer: *const ReportWriter) bool {
    return writer.backlog() > report_log.behind_count;
}

fn run(context: *anyopaque, jobs: *Worker.Jobs) void {
    const writer: *ReportWriter = @ptrCast(@alignCast(context));
    var count: u64 = 0;
    while (jobs.next()) |job| : (count += 1) writer.appendNow(@fromBackingInt(job[0]), job[1..]);
    writer.log.lose(writer.lost.swap(0, .acquire));
    _ = writer.done.fetchAdd(count, .release);
    writer.listener.written(writer.listener.context);
}

fn appendNow(writer: *ReportWriter, tag: Tag, bytes: []const u8) void {
    const log = writer.log;
    switch (tag) {
        .boot => _ = log.appendBoot(bytes),
        .discovered => _ = log.appendDiscovered(bytes),
        .schedule_run => _ = log.appendScheduleRun(bytes),
        .withdrawn => {
            const ids = std.mem.bytesToValue(Withdrawn, bytes[0..@sizeOf(Withdrawn)]);
            _ = log.appendWithdrawn(.fromBytes(ids.boot_id), .fromBytes(ids.to));
        },
        .waiting => {
            const size = @sizeOf(WaitingDevices.Waiting);
            _ = log.appendWaiting(&std.mem.bytesToValue(WaitingDevices.Waiting, bytes[0..size]));
        },
    }
}

const testing = std.testing;

const Bench = struct {
    tmp: testing.TmpDir,
    log: ReportLog,
    worker: Worker,
    writer: ReportWriter,
    told: u32,

    fn init(bench: *Bench) !void {
        bench.tmp = testing.tmpDir(.{ .iterate = true });
        bench.log = try .open(
            testing.allocator,
            .{ .io = testing.io, .dir = bench.tmp.dir },
            .{ .epoch = 1 },
        );
        bench.worker = try .init(testing.io, 4096);
        bench.told = 0;
        bench.writer = .{
            .log = &bench.log,
            .worker = &bench.worker,
            .listener = .{ .context = bench, .written = noteWritten },
        };
    }

    fn noteWritten(context: *anyopaque) void {
        const bench: *Bench = @ptrCast(@alignCast(context));
        bench.told += 1;
    }

    fn deinit(bench: *Bench) void {
        bench.worker.deinit();
        bench.log.deinit(testing.allocator);
        bench.tmp.cleanup();
    }
};

test "reports of all kinds are in the log in their order, and count before they are" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    const id: base.Uuid = .fromRandom(@splat(3));
    bench.writer.append(.{ .boot = "{\"a\":1}" });
    bench.writer.append(.{ .withdrawn = .{ .boot_id = id, .to = id } });
    bench.writer.append(.{ .waiting = &.{
        .boot_id = id,
        .mac = .fromInt(0x02bf00000001),
        .edge = id,
        .started_unix_ms = 7,
        .at_us = 8,
    } });
    bench.writer.append(.{ .discovered = "{\"b\":2}" });
    bench.writer.append(.{ .schedule_run = "{\"c\":3}" });
    try testing.expectEqual(5, bench.writer.backlog());
    bench.worker.finish();
    try testing.expectEqual(5, bench.writer.backlog());
    try testing.expectEqual(1, bench.told);
    const buffer = try testing.allocator.alloc(u8, report_log.batch_size_max);
    defer testing.allocator.free(buffer);
    const batch = (try bench.log.nextBatch(buffer)).?;
    var at: usize = 0;
    for ([_][]const u8{ "\"a\"", "withdrawn", "waiting", "\"b\"", "\"c\"" }) |part|
        at = std.mem.findPos(u8, batch.body, at, part) orelse return error.OutOfOrder;
    bench.log.ack(batch.epoch, batch.until_seq);
    try testing.expectEqual(0, bench.writer.backlog());
}

test "a report that finds no place is declared as lost, and the next one is not" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    const json = "{\"text\":\"as long as a line of text is\"}";
    for (0..100) |_| bench.writer.append(.{ .boot = json });
    const lost = bench.writer.lost.load(.acquire);
    try testing.expect(lost > 0);
    bench.worker.finish();
    bench.writer.append(.{ .boot = "{}" });
    bench.worker.finish();
    const losses = bench.log.losses();
    try testing.expectEqual(lost, losses.since_start);
    try testing.expectEqual(lost, losses.gap_reports);
    try testing.expectEqual(101, bench.writer.backlog());
}
