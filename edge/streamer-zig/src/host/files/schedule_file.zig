//! Keeps the progress of the schedules' runs at this edge on disk: a restarted edge starts no run
//! twice and continues those in progress. The schedule runner gives the records through its
//! `Journal`, and a worker writes them, in order; each has one size and a checksum.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const sys = @import("../sys.zig");
const Worker = @import("../threads/worker.zig");
const assert = std.debug.assert;

const ScheduleRunner = core.site.ScheduleRunner;
const Record = ScheduleRunner.Record;

const Format = struct {
    pub const name = "schedules";
    /// Enough for four times what is in memory.
    const count_max = 4 * ScheduleRunner.slots_max;
    pub const size_max = (count_max - 1) * record_size;
    pub const frame_size_max = record_size;

    pub fn frameSize(bytes: []const u8) ?usize {
        if (bytes.len < record_size) return null;
        const stored = std.mem.readInt(u32, bytes[4..8], .little);
        return if (ScheduleFile.checksum(bytes[0..record_size]) == stored) record_size else null;
    }
};
const Journal = journal_file.Journal(Format);
const record_size = 64;
/// Bytes that are written at once.
const batch_size = 256 * record_size;

pub const ScheduleFile = @This();

gpa: std.mem.Allocator,
worker: *Worker,
/// An eventfd, written to when a run is kept.
wake_fd: i32,
/// Runs that began, as `ScheduleRunner` counts them.
begun: u64 = 0,
/// The worker was full: the whole file has to be written again.
is_incomplete: bool = false,
/// Where the loop leaves what a compaction writes; untouched pages take no memory.
compaction: []u8,
/// The worker has not written `compaction` yet.
is_compacting: std.atomic.Value(bool) = .init(false),
/// The file is long enough to be compacted.
is_long: std.atomic.Value(bool) = .init(false),
/// Of `begun`, those that are on the disk, or that the disk has refused.
kept: std.atomic.Value(u64) = .init(0),
/// From here on, the worker's.
file: Journal,

const Kind = enum(u8) { begun = 1, device, ended, missed, set_back };

/// Precedes the frame of a record, or, without one, names the size of a compaction. `begun`: with
/// it, so many runs are to be kept.
const Header = struct { compaction_size: ?u64 = null, begun: ?u64 = null };

/// Restores what an earlier process wrote in `runner`. Records that this version cannot read are
/// left out. `worker` stays the caller's and outlives the file, which must not move once records
/// are given.
pub fn open(
    gpa: std.mem.Allocator,
    worker: *Worker,
    dir_fd: i32,
    runner: *ScheduleRunner,
    wake_fd: i32,
) error{OutOfMemory}!ScheduleFile {
    const compaction = try gpa.alloc(u8, ScheduleRunner.records_max * record_size);
    var file: Journal = .open(dir_fd);
    var reader = file.reader();
    while (reader.nextReadable()) |frame|
        runner.restore(decode(frame[0..record_size]) orelse continue);
    file.endReading(&reader);
    return .{
        .gpa = gpa,
        .worker = worker,
        .wake_fd = wake_fd,
        .compaction = compaction,
        .file = file,
    };
}

/// Waits until what was given is in the file.
pub fn close(file: *ScheduleFile) void {
    file.worker.finish();
    file.gpa.free(file.compaction);
    file.file.close();
    file.* = undefined;
}

pub fn journal(file: *ScheduleFile) ScheduleRunner.Journal {
    return .{ .context = file, .write = give };
}

/// How many of the runs that began are kept. A disk that refuses a record has answered, too: the
/// edge continues, and only a restart would show it.
pub fn keptRuns(file: *const ScheduleFile) u64 {
    return file.kept.load(.acquire);
}

/// Between turns: keeps the file small, and whole after the worker was full.
pub fn compact(file: *ScheduleFile, runner: *const ScheduleRunner) void {
    if (!file.is_incomplete and !file.is_long.load(.acquire)) return;
    if (file.is_compacting.load(.acquire)) return;
    var target: Target = .{ .bytes = file.compaction };
    runner.writeAll(.{ .context = &target, .write = Target.write });
    file.is_compacting.store(true, .release);
    if (file.giveJob(.{ .compaction_size = target.size, .begun = file.begun }, "")) {
        file.is_incomplete = false;
        file.is_long.store(false, .release);
    } else {
        file.is_compacting.store(false, .release);
    }
}

const Target = struct {
    bytes: []u8,
    size: usize = 0,

    fn write(context: *anyopaque, record: Record) void {
        const target: *Target = @ptrCast(@alignCast(context));
        target.bytes[target.size..][0..record_size].* = encode(record);
        target.size += record_size;
    }
};

fn give(context: *anyopaque, record: Record) void {
    const file: *ScheduleFile = @ptrCast(@alignCast(context));
    if (record == .begun) file.begun += 1;
    // The next compaction has it.
    if (file.is_incomplete) return;
    const header: Header = .{ .begun = if (record == .begun) file.begun else null };
    if (!file.giveJob(header, &encode(record))) file.is_incomplete = true;
}

fn giveJob(file: *ScheduleFile, header: Header, frame: []const u8) bool {
    const task: Worker.Task = .{ .context = file, .run = run };
    return file.worker.give(task, &.{ std.mem.asBytes(&header), frame }, 0);
}

// The worker calls these.

/// Best effort: without the record of a device a restart may start it again, which does no harm.
/// That a run began is synced, so that it does not begin twice.
fn run(context: *anyopaque, jobs: *Worker.Jobs) void {
    const file: *ScheduleFile = @ptrCast(@alignCast(context));
    var buffer: [batch_size]u8 = undefined;
    var used: usize = 0;
    var begun: ?u64 = null;
    while (jobs.next()) |job| {
        const header = std.mem.bytesToValue(Header, job[0..@sizeOf(Header)]);
        begun = header.begun orelse begun;
        if (header.compaction_size) |size| {
            used = file.flush(buffer[0..used]);
            _ = file.file.compact(file.compaction[0..@intCast(size)], writeRuns);
            file.is_compacting.store(false, .release);
            continue;
        }
        const frame = job[@sizeOf(Header)..];
        if (used + frame.len > buffer.len) used = file.flush(buffer[0..used]);
        @memcpy(buffer[used..][0..frame.len], frame);
        used += frame.len;
    }
    _ = file.flush(buffer[0..used]);
    if (file.file.needsCompaction()) file.is_long.store(true, .release);
    const count = begun orelse return;
    _ = file.file.sync();
    assert(count >= file.kept.load(.monotonic));
    file.kept.store(count, .release);
    sys.wake(file.wake_fd);
}

fn flush(file: *ScheduleFile, frames: []const u8) usize {
    if (frames.len > 0) _ = file.file.appendAll(frames);
    return 0;
}

fn writeRuns(frames: []const u8, fresh: *Journal.Compaction) sys.Error!void {
    if (frames.len > 0) try fresh.appendAll(frames);
}

fn encode(record: Record) [record_size]u8 {
    var bytes: [record_size]u8 = @splat(0);
    const key = switch (record) {
        .begun => |begun| begun.key,
        .device => |device| device.key,
        .ended, .missed => |key| key,
        .set_back => |unix_ms| ScheduleRunner.RunKey{ .schedule_id = .zero, .instant_ms = unix_ms },
    };
    bytes[8..24].* = key.schedule_id.bytes;
    std.mem.writeInt(u64, bytes[24..32], key.instant_ms, .little);
    switch (record) {
        .begun => |begun| std.mem.writeInt(u64, bytes[48..56], begun.unix_ms, .little),
        .device => |device| {
            bytes[1] = @backingInt(device.result);
            bytes[32..48].* = device.device.bytes;
            std.mem.writeInt(u64, bytes[48..56], device.at_unix_ms, .little);
        },
        .ended, .missed, .set_back => {},
    }
    bytes[0] = @backingInt(switch (record) {
        .begun => Kind.begun,
        .device => Kind.device,
        .ended => Kind.ended,
        .missed => Kind.missed,
        .set_back => Kind.set_back,
    });
    std.mem.writeInt(u32, bytes[4..8], checksum(&bytes), .little);
    return bytes;
}

fn decode(bytes: *const [record_size]u8) ?Record {
    const key: core.site.ScheduleRunner.RunKey = .{
        .schedule_id = .fromBytes(bytes[8..24].*),
        .instant_ms = std.mem.readInt(u64, bytes[24..32], .little),
    };
    const unix_ms = std.mem.readInt(u64, bytes[48..56], .little);
    return switch (std.enums.fromInt(Kind, bytes[0]) orelse return null) {
        .begun => .{ .begun = .{ .key = key, .unix_ms = unix_ms } },
        .device => .{ .device = .{
            .key = key,
            .device = .fromBytes(bytes[32..48].*),
            .result = std.enums.fromInt(ScheduleRunner.Result, bytes[1]) orelse return null,
            .at_unix_ms = unix_ms,
        } },
        .ended => .{ .ended = key },
        .missed => .{ .missed = key },
        .set_back => .{ .set_back = key.instant_ms },
    };
}

/// Covers all bytes but its own.
fn checksum(bytes: *const [record_size]u8) u32 {
    var crc: std.hash.Crc32 = .init();
    crc.update(bytes[0..4]);
    crc.update(bytes[8..]);
    return crc.final();
}

const testing = std.testing;

const Bench = struct {
    tmp: testing.TmpDir,
    worker: Worker,
    runner: ScheduleRunner,
    file: ScheduleFile,
    wake_fd: i32,

    fn init(bench: *Bench) !void {
        bench.tmp = testing.tmpDir(.{});
        bench.worker = try .init(testing.io, 1 << 20);
        const flags = std.os.linux.EFD.NONBLOCK;
        bench.wake_fd = @intCast(try sys.check(std.os.linux.eventfd(0, flags)));
        try bench.open();
    }

    fn open(bench: *Bench) !void {
        bench.runner = try .init(testing.allocator);
        const fd = bench.tmp.dir.handle;
        const gpa = testing.allocator;
        bench.file = try .open(gpa, &bench.worker, fd, &bench.runner, bench.wake_fd);
    }

    /// As a restarted edge reads it.
    fn openAgain(bench: *Bench) !void {
        bench.close();
        try bench.open();
    }

    fn close(bench: *Bench) void {
        bench.file.close();
        bench.runner.deinit(testing.allocator);
    }

    fn deinit(bench: *Bench) void {
        bench.close();
        bench.worker.deinit();
        sys.close(bench.wake_fd);
        bench.tmp.cleanup();
    }

    fn write(bench: *Bench, record: Record) void {
        const to = bench.file.journal();
        to.write(to.context, record);
    }
};

const test_key: ScheduleRunner.RunKey =
    .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 1_795_000_000_000 };

test "runs that began and devices that started survive a restart, and a torn end is dropped" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    const device: base.Uuid = .fromRandom(@splat(2));
    bench.write(.{ .begun = .{ .key = test_key, .unix_ms = test_key.instant_ms + 3 } });
    bench.write(.{
        .device = .{ .key = test_key, .device = device, .result = .sent, .at_unix_ms = 9 },
    });
    bench.write(.{ .missed = test_key });
    bench.worker.finish();
    try sys.writeAllAt(bench.file.file.fd, "torn", bench.file.file.end);
    try bench.openAgain();
    try testing.expectEqual(3 * record_size, bench.file.file.end);
    try testing.expectEqual(1, bench.runner.run_count);
    try testing.expectEqual(test_key.instant_ms + 3, bench.runner.runs[0].begun_unix_ms);
    try testing.expectEqual(1, bench.runner.restored_count);
    try testing.expect(bench.runner.restored[0].device.eql(device));
}

test "a run is kept when the worker has synced its record, and then the loop is woken" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    bench.write(.{ .begun = .{ .key = test_key, .unix_ms = 3 } });
    try testing.expectEqual(0, bench.file.keptRuns());
    bench.worker.finish();
    try testing.expectEqual(1, bench.file.keptRuns());
    try testing.expect(bench.file.file.is_synced);
    var count: u64 = 0;
    const read = std.os.linux.read;
    try testing.expectEqual(8, try sys.check(read(bench.wake_fd, @ptrCast(&count), 8)));
}

test "records that a full worker refused are in the file after the next compaction" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    bench.worker.deinit();
    bench.worker = try .init(testing.io, 1024);
    var instant_ms: u64 = 0;
    while (!bench.file.is_incomplete) : (instant_ms += 1) {
        const key: ScheduleRunner.RunKey =
            .{ .schedule_id = test_key.schedule_id, .instant_ms = instant_ms };
        const record: Record = .{ .begun = .{ .key = key, .unix_ms = 78 } };
        bench.runner.restore(record);
        bench.write(record);
    }
    bench.worker.finish();
    try testing.expectEqual(instant_ms - 1, bench.file.keptRuns());
    bench.file.compact(&bench.runner);
    bench.worker.finish();
    try testing.expectEqual(instant_ms, bench.file.keptRuns());
    try bench.openAgain();
    try testing.expectEqual(instant_ms, bench.runner.run_count);
}

test "a compacted file has the same runs as the long one" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    const key: ScheduleRunner.RunKey = .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 77 };
    bench.runner.restore(.{ .begun = .{ .key = key, .unix_ms = 78 } });
    bench.runner.restore(.{ .ended = .{ .schedule_id = key.schedule_id, .instant_ms = 55 } });
    bench.file.file.end = Format.size_max + 1;
    bench.write(.{ .missed = key });
    bench.worker.finish();
    bench.file.compact(&bench.runner);
    bench.worker.finish();
    try testing.expect(bench.file.file.end < 10 * record_size);
    try bench.openAgain();
    try testing.expectEqual(1, bench.runner.run_count);
    const schedule: core.uplink.desired_state.Schedule = .{
        .id = key.schedule_id,
        .action = "power_on",
        .power = "hook",
        .ratePerMinute = 1,
        .devices = &.{},
        .instants = &.{ 55, 66, 77 },
    };
    var pending = bench.runner.book.pending(&schedule, 100);
    try testing.expectEqual(66, pending.next());
    try testing.expectEqual(null, pending.next());
}

test "a file of an earlier version is read: kind, CRC-32, schedule, instant, device, time" {
    var bench: Bench = undefined;
    try bench.init();
    defer bench.deinit();
    var bytes: [2 * record_size]u8 = undefined;
    _ =
        try std.fmt.hexToBytes(
            &bytes,
            "01000000d195b185010101010101410181010101010101014d00000000000000" ++
                "000000000000000000000000000000004e000000000000000000000000000000" ++
                "04000000b88f9f80010101010101410181010101010101013700000000000000" ++
                "0000000000000000000000000000000000000000000000000000000000000000",
        );
    try bench.tmp.dir.writeFile(testing.io, .{ .sub_path = "schedules", .data = &bytes });
    try bench.openAgain();
    try testing.expectEqual(2 * record_size, bench.file.file.end);
    try testing.expectEqual(1, bench.runner.run_count);
    try testing.expectEqual(78, bench.runner.runs[0].begun_unix_ms);
}
