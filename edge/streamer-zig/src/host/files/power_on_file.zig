//! Ids of the power-on commands that were carried out, on disk: a restarted edge does not wake a
//! machine twice. The edge appends an id before it sends the wake-up.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const sys = @import("../sys.zig");

const PowerOnLog = core.uplink.sender.PowerOnLog;

const id_size = 16;
const Format = journal_file.Fixed("power-ons", id_size, 4 * PowerOnLog.capacity);
const Journal = journal_file.Journal(Format);

pub const PowerOnFile = @This();

file: Journal,

pub fn open(dir_fd: i32, log: *PowerOnLog) PowerOnFile {
    var file: Journal = .open(dir_fd);
    var reader = file.reader();
    while (reader.nextReadable()) |id| _ = log.add(.fromBytes(id[0..id_size].*));
    file.endReading(&reader);
    return .{ .file = file };
}

pub fn close(file: *PowerOnFile) void {
    file.file.close();
    file.* = undefined;
}

/// `id` is in `log`. Best effort: without the record a restart may wake a machine again, which
/// does no harm.
pub fn append(file: *PowerOnFile, log: *const PowerOnLog, id: base.Uuid) void {
    _ = file.file.append(&id.bytes);
    if (file.file.needsCompaction()) _ = file.file.compact(log, writeIds);
}

/// From the oldest to the newest.
fn writeIds(log: *const PowerOnLog, fresh: *Journal.Compaction) sys.Error!void {
    for (0..PowerOnLog.capacity) |step| {
        const id = log.ids[(log.next + step) % PowerOnLog.capacity];
        try fresh.append(&id.bytes);
    }
}

const testing = std.testing;

test "ids survive a restart, and the compaction of a long file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const id: base.Uuid = .fromRandom(@splat(3));
    var log: PowerOnLog = .{};
    var file = PowerOnFile.open(tmp.dir.handle, &log);
    file.file.compact_above = 2 * id_size;
    for (10..13) |number| {
        const other: base.Uuid = .fromRandom(@splat(@intCast(number)));
        try testing.expect(log.add(other));
        file.append(&log, other);
    }
    try testing.expectEqual(PowerOnLog.capacity * id_size, file.file.end);
    try testing.expect(log.add(id));
    file.append(&log, id);
    file.close();
    var again: PowerOnLog = .{};
    file = PowerOnFile.open(tmp.dir.handle, &again);
    defer file.close();
    try testing.expect(!again.add(id));
    try testing.expectEqual(log, again);
}

test "a file of an earlier version is read: ids of 16 bytes, and a torn one is dropped" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const bytes: [40]u8 = @splat(0x45);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "power-ons", .data = &bytes });
    var log: PowerOnLog = .{};
    var file = PowerOnFile.open(tmp.dir.handle, &log);
    defer file.close();
    try testing.expect(!log.add(.fromBytes(@splat(0x45))));
    try testing.expectEqual(2 * id_size, file.file.end);
}
