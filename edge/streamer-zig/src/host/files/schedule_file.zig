//! What became of the schedules' runs at this edge, on disk: a restarted edge begins none twice and goes on with those under way. Records
//! of one size, each with a checksum; what a crash has torn ends the file.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const ScheduleRunner = core.site.ScheduleRunner;
const Record = ScheduleRunner.Record;

pub const ScheduleFile = struct {
    dir_fd: i32,
    fd: i32,
    count: u64 = 0,

    const name = "schedules";
    const new_name = "schedules.new";
    const record_size = 64;
    /// Beyond this many records the file begins anew with what is in memory.
    const count_max = 4 * ScheduleRunner.slots_max;

    const Kind = enum(u8) { begun = 1, device, ended, missed, set_back };

    /// Reads what an earlier start has left into `runner`.
    pub fn open(dir_fd: i32, runner: *ScheduleRunner) sys.Error!ScheduleFile {
        var file: ScheduleFile = .{ .dir_fd = dir_fd, .fd = try openFile(dir_fd, name, false) };
        var bytes: [record_size]u8 = undefined;
        while (try sys.readAt(file.fd, &bytes, file.count * record_size) == record_size) : (file.count += 1)
            runner.restore(decode(&bytes) orelse break);
        return file;
    }

    pub fn journal(file: *ScheduleFile) ScheduleRunner.Journal {
        return .{ .context = file, .write = write };
    }

    /// Between turns: keeps the file in bounds.
    pub fn compact(file: *ScheduleFile, runner: *const ScheduleRunner) void {
        if (file.count < count_max) return;
        var fresh: ScheduleFile = .{
            .dir_fd = file.dir_fd,
            .fd = openFile(file.dir_fd, new_name, true) catch return,
        };
        runner.writeAll(fresh.journal());
        _ = linux.fdatasync(fresh.fd);
        if (linux.errno(linux.renameat(file.dir_fd, new_name, file.dir_fd, name)) != .SUCCESS) {
            sys.close(fresh.fd);
            return;
        }
        _ = linux.fsync(file.dir_fd);
        sys.close(file.fd);
        file.fd = fresh.fd;
        file.count = fresh.count;
    }

    /// Best effort: without it a restart may start a device again, which does no harm.
    fn write(context: *anyopaque, record: Record) void {
        const file: *ScheduleFile = @ptrCast(@alignCast(context));
        const bytes = encode(record);
        const rc = linux.pwrite(file.fd, &bytes, bytes.len, @intCast(file.count * record_size));
        if ((sys.check(rc) catch 0) == bytes.len) file.count += 1;
        if (record == .begun) _ = linux.fdatasync(file.fd);
    }

    fn openFile(dir_fd: i32, file_name: [*:0]const u8, is_new: bool) sys.Error!i32 {
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = true, .TRUNC = is_new, .CLOEXEC = true };
        return @intCast(try sys.check(linux.openat(dir_fd, file_name, flags, 0o600)));
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
        if (checksum(bytes) != std.mem.readInt(u32, bytes[4..8], .little)) return null;
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

    /// Of all but itself.
    fn checksum(bytes: *const [record_size]u8) u32 {
        var crc: std.hash.Crc32 = .init();
        crc.update(bytes[0..4]);
        crc.update(bytes[8..]);
        return crc.final();
    }
};

const testing = std.testing;

test "what was begun and started survives a restart, and a torn end is left out" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var runner: ScheduleRunner = try .init(testing.allocator);
    defer runner.deinit(testing.allocator);
    var file = try ScheduleFile.open(tmp.dir.handle, &runner);
    const journal = file.journal();
    const key: ScheduleRunner.RunKey = .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 1_795_000_000_000 };
    const device: base.Uuid = .fromRandom(@splat(2));
    journal.write(journal.context, .{ .begun = .{ .key = key, .unix_ms = key.instant_ms + 3 } });
    journal.write(journal.context, .{ .device = .{ .key = key, .device = device, .result = .sent, .at_unix_ms = 9 } });
    journal.write(journal.context, .{ .missed = key });
    _ = linux.pwrite(file.fd, "torn", 4, @intCast(file.count * 64));
    sys.close(file.fd);
    var again: ScheduleRunner = try .init(testing.allocator);
    defer again.deinit(testing.allocator);
    file = try ScheduleFile.open(tmp.dir.handle, &again);
    defer sys.close(file.fd);
    try testing.expectEqual(3, file.count);
    try testing.expectEqual(1, again.run_count);
    try testing.expectEqual(key.instant_ms + 3, again.runs[0].begun_unix_ms);
    try testing.expectEqual(1, again.restored_count);
    try testing.expect(again.restored[0].device.eql(device));
}

test "a file that begins anew knows as much as before" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var runner: ScheduleRunner = try .init(testing.allocator);
    defer runner.deinit(testing.allocator);
    var file = try ScheduleFile.open(tmp.dir.handle, &runner);
    const key: ScheduleRunner.RunKey = .{ .schedule_id = .fromRandom(@splat(1)), .instant_ms = 77 };
    runner.restore(.{ .begun = .{ .key = key, .unix_ms = 78 } });
    runner.restore(.{ .ended = .{ .schedule_id = key.schedule_id, .instant_ms = 55 } });
    file.count = ScheduleFile.count_max;
    file.compact(&runner);
    try testing.expect(file.count < 10);
    sys.close(file.fd);
    var again: ScheduleRunner = try .init(testing.allocator);
    defer again.deinit(testing.allocator);
    file = try ScheduleFile.open(tmp.dir.handle, &again);
    defer sys.close(file.fd);
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
