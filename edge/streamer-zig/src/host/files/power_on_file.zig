//! Ids of the power-on commands that were carried out, on disk: a restarted edge does not wake a
//! machine twice. A worker appends an id when the edge sends the wake-up.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const journal_file = @import("journal.zig");
const journal_writer = @import("journal_writer.zig");
const Worker = @import("../threads/worker.zig");

const PowerOnLog = core.uplink.sender.PowerOnLog;

const id_size = 16;
const Format = journal_file.Fixed("power-ons", id_size, 4 * PowerOnLog.capacity);
const Writer = journal_writer.JournalWriter(Format);

pub const PowerOnFile = @This();

writer: Writer,

/// `worker` stays the caller's and outlives the file, which must not move once ids are appended.
pub fn open(
    gpa: std.mem.Allocator,
    worker: *Worker,
    dir_fd: i32,
    log: *PowerOnLog,
) error{OutOfMemory}!PowerOnFile {
    var writer: Writer = try .init(gpa, worker, .open(dir_fd));
    var reader = writer.file.reader();
    while (reader.nextReadable()) |bytes| {
        const id: base.Uuid = .fromBytes(bytes[0..id_size].*);
        _ = log.add(id);
        writer.noteRead(keyOf(id), bytes.len, reader.end);
    }
    writer.begin(&reader);
    return .{ .writer = writer };
}

/// Waits until what was appended is in the file.
pub fn close(file: *PowerOnFile) void {
    file.writer.deinit();
    file.* = undefined;
}

/// `id` is in `log`. Best effort: without the record a restart may wake a machine again, which
/// does no harm.
pub fn append(file: *PowerOnFile, log: *const PowerOnLog, id: base.Uuid) void {
    if (file.writer.needsCompaction()) file.compact(log);
    _ = file.writer.append(keyOf(id), &id.bytes);
}

fn compact(file: *PowerOnFile, log: *const PowerOnLog) void {
    var live: [PowerOnLog.capacity]Writer.Key = undefined;
    for (&live, &log.ids) |*key, id| key.* = keyOf(id);
    file.writer.compact(&live);
}

fn keyOf(id: base.Uuid) Writer.Key {
    return @bitCast(id.bytes);
}

const testing = std.testing;

test "ids survive a restart, and the compaction of a long file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var worker: Worker = try .init(testing.io, 1 << 20);
    defer worker.deinit();
    const gpa = testing.allocator;
    const id: base.Uuid = .fromRandom(@splat(3));
    var log: PowerOnLog = .{};
    var file: PowerOnFile = try .open(gpa, &worker, tmp.dir.handle, &log);
    const count = 5 * PowerOnLog.capacity;
    for (1..count) |number| {
        var bytes: [16]u8 = @splat(1);
        std.mem.writeInt(u64, bytes[8..16], number, .big);
        try testing.expect(log.add(.fromBytes(bytes)));
        file.append(&log, .fromBytes(bytes));
        if (number % 512 == 0) worker.finish();
    }
    try testing.expect(log.add(id));
    file.append(&log, id);
    worker.finish();
    try testing.expect(file.writer.file.end < 2 * PowerOnLog.capacity * id_size);
    file.close();
    var again: PowerOnLog = .{};
    file = try .open(gpa, &worker, tmp.dir.handle, &again);
    defer file.close();
    try testing.expect(!again.add(id));
    for (log.ids) |known| try testing.expect(!again.add(known));
}

test "a file of an earlier version is read: ids of 16 bytes, and a torn one is dropped" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var worker: Worker = try .init(testing.io, 1 << 20);
    defer worker.deinit();
    const bytes: [40]u8 = @splat(0x45);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "power-ons", .data = &bytes });
    var log: PowerOnLog = .{};
    var file: PowerOnFile = try .open(testing.allocator, &worker, tmp.dir.handle, &log);
    defer file.close();
    try testing.expect(!log.add(.fromBytes(@splat(0x45))));
    try testing.expectEqual(2 * id_size, file.writer.file.end);
}
