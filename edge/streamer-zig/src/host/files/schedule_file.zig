//! Keeps the progress of the schedules' runs at this edge on disk: a restarted edge starts no run
//! twice and continues those in progress. The schedule runner writes the records through its
//! `Journal`; each has one size and a checksum.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const sys = @import("../sys.zig");

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

pub const ScheduleFile = @This();

file: Journal,

const Kind = enum(u8) { begun = 1, device, ended, missed, set_back };

/// Restores what an earlier process wrote in `runner`. Records that this version cannot read
/// are left out.
pub fn open(dir_fd: i32, runner: *ScheduleRunner) ScheduleFile {
    var file: Journal = .open(dir_fd);
    var reader = file.reader();
    while (reader.nextReadable()) |frame|
        runner.restore(decode(frame[0..record_size]) orelse continue);
    file.endReading(&reader);
    return .{ .file = file };
}

pub fn close(file: *ScheduleFile) void {
    file.file.close();
    file.* = undefined;
}

pub fn journal(file: *ScheduleFile) ScheduleRunner.Journal {
    return .{ .context = file, .write = write };
}

/// Between turns: keeps the file small.
pub fn compact(file: *ScheduleFile, runner: *const ScheduleRunner) void {
    if (file.file.needsCompaction()) _ = file.file.compact(runner, writeRuns);
}

fn writeRuns(runner: *const ScheduleRunner, fresh: *Journal.Compaction) sys.Error!void {
    var target: Target = .{ .fresh = fresh };
    runner.writeAll(.{ .context = &target, .write = Target.write });
    if (target.has_failed) return error.SystemCallFailed;
}

const Target = struct {
    fresh: *Journal.Compaction,
    has_failed: bool = false,

    fn write(context: *anyopaque, record: Record) void {
        const target: *Target = @ptrCast(@alignCast(context));
        target.fresh.append(&encode(record)) catch {
            target.has_failed = true;
        };
    }
};

/// Best effort: without a record a restart may start a device again, which does no harm. A run
/// that began is synced at once, so that it does not begin twice.
fn write(context: *anyopaque, record: Record) void {
    const file: *ScheduleFile = @ptrCast(@alignCast(context));
    _ = file.file.append(&encode(record));
    if (record == .begun) _ = file.file.sync();
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

test "runs that began and devices that started survive a restart, and a torn end is dropped" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var runner: ScheduleRunner = try .init(testing.allocator);
    defer runner.deinit(testing.allocator);
    var file = ScheduleFile.open(tmp.dir.handle, &runner);
    const written = file.journal();
    const key: ScheduleRunner.RunKey =
        .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 1_795_000_000_000 };
    const device: base.Uuid = .fromRandom(@splat(2));
    written.write(written.context, .{ .begun = .{ .key = key, .unix_ms = key.instant_ms + 3 } });
    written.write(written.context, .{
        .device = .{ .key = key, .device = device, .result = .sent, .at_unix_ms = 9 },
    });
    written.write(written.context, .{ .missed = key });
    try sys.writeAllAt(file.file.fd, "torn", file.file.end);
    file.close();
    var again: ScheduleRunner = try .init(testing.allocator);
    defer again.deinit(testing.allocator);
    file = ScheduleFile.open(tmp.dir.handle, &again);
    defer file.close();
    try testing.expectEqual(3 * record_size, file.file.end);
    try testing.expectEqual(1, again.run_count);
    try testing.expectEqual(key.instant_ms + 3, again.runs[0].begun_unix_ms);
    try testing.expectEqual(1, again.restored_count);
    try testing.expect(again.restored[0].device.eql(device));
}

test "a compacted file has the same runs as the long one" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var runner: ScheduleRunner = try .init(testing.allocator);
    defer runner.deinit(testing.allocator);
    var file = ScheduleFile.open(tmp.dir.handle, &runner);
    const key: ScheduleRunner.RunKey = .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 77 };
    runner.restore(.{ .begun = .{ .key = key, .unix_ms = 78 } });
    runner.restore(.{ .ended = .{ .schedule_id = key.schedule_id, .instant_ms = 55 } });
    file.file.end = Format.size_max + 1;
    file.compact(&runner);
    try testing.expect(file.file.end < 10 * record_size);
    file.close();
    var again: ScheduleRunner = try .init(testing.allocator);
    defer again.deinit(testing.allocator);
    file = ScheduleFile.open(tmp.dir.handle, &again);
    defer file.close();
    try testing.expectEqual(1, again.run_count);
    const schedule: core.uplink.desired_state.Schedule = .{
        .id = key.schedule_id,
        .action = "power_on",
        .power = "hook",
        .ratePerMinute = 1,
        .devices = &.{},
        .instants = &.{ 55, 66, 77 },
    };
    var pending = again.book.pending(&schedule, 100);
    try testing.expectEqual(66, pending.next());
    try testing.expectEqual(null, pending.next());
}

test "a file of an earlier version is read: kind, CRC-32, schedule, instant, device, time" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var bytes: [2 * record_size]u8 = undefined;
    _ =
        try std.fmt.hexToBytes(
            &bytes,
            "01000000d195b185010101010101410181010101010101014d00000000000000" ++
                "000000000000000000000000000000004e000000000000000000000000000000" ++
                "04000000b88f9f80010101010101410181010101010101013700000000000000" ++
                "0000000000000000000000000000000000000000000000000000000000000000",
        );
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "schedules", .data = &bytes });
    var runner: ScheduleRunner = try .init(testing.allocator);
    defer runner.deinit(testing.allocator);
    var file = ScheduleFile.open(tmp.dir.handle, &runner);
    defer file.close();
    try testing.expectEqual(2 * record_size, file.file.end);
    try testing.expectEqual(1, runner.run_count);
    try testing.expectEqual(78, runner.runs[0].begun_unix_ms);
}
