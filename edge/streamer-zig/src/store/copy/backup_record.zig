//! Tells backups of one store from each other: the record of a backup directory, and the lineage of
//! a store. A restored store has the id and the places of the one that was backed up, so two stores
//! with one id would write different bytes at the same places of one backup. A restore therefore
//! begins a new lineage, which continues the backup only if nothing was added to that since.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const Uuid = base.Uuid;

pub const record_name = "bootfarm-backup";
pub const lineage_name = "lineage";
const format = 1;
const size_max = 1024;

pub const Error = Files.Error || error{ Damaged, TooNew };

/// Who has written a store since when.
pub const Lineage = struct {
    format: u32 = format,
    id: Uuid,
    /// The lineage and the state of the backup that the store was restored from.
    restored_from: Uuid,
    sequence: u64,

    pub fn read(files: Files, store: Uuid) Error!Lineage {
        // A store that was made here.
        const own: Lineage = .{ .id = store, .restored_from = store, .sequence = 0 };
        return try readNamed(files, lineage_name) orelse own;
    }

    pub fn write(lineage: *const Lineage, files: Files) Files.Error!void {
        return lineage.writeNamed(files, lineage_name);
    }

    /// For the lineage of a store that is not whole yet.
    pub fn readNamed(files: Files, name: []const u8) Error!?Lineage {
        return readJson(Lineage, files, name);
    }

    pub fn writeNamed(lineage: *const Lineage, files: Files, name: []const u8) Files.Error!void {
        return writeJson(files, name, lineage.*);
    }
};

/// Of a backup directory.
pub const Record = struct {
    format: u32 = format,
    store: Uuid,
    lineage: Uuid,
    /// Number of times that a backup was begun here.
    sequence: u64,
    /// 0: no backup was ever completed here.
    completed_unix_ms: u64,
    /// A backup has begun and was not completed.
    is_interrupted: bool,
    versions: u64,
    caches: u64,
    /// Versions and caches of the store that the last complete backup could not copy.
    problems: u64,

    /// Null if there is none.
    pub fn read(files: Files) Error!?Record {
        return readJson(Record, files, record_name);
    }

    pub fn write(record: *const Record, files: Files) Files.Error!void {
        return writeJson(files, record_name, record.*);
    }

    /// Returns whether that store may add to this backup.
    pub fn isContinuedBy(record: *const Record, store: Uuid, lineage: *const Lineage) bool {
        if (!record.store.eql(store)) return false;
        if (record.lineage.eql(lineage.id)) return true;
        return record.lineage.eql(lineage.restored_from) and record.sequence == lineage.sequence;
    }
};

fn readJson(comptime Value: type, files: Files, name: []const u8) Error!?Value {
    const handle = files.open(name, .read) catch |err|
        return if (err == error.NotFound) null else err;
    defer files.close(handle);
    var text: [size_max]u8 = undefined;
    const size = try files.read(handle, &text, 0);
    var memory: [8 * size_max]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const gpa = fixed.allocator();
    const Head = struct { format: u32 };
    const head = std.json.parseFromSliceLeaky(
        Head,
        gpa,
        text[0..size],
        .{ .ignore_unknown_fields = true },
    ) catch return error.Damaged;
    if (head.format > format) return error.TooNew;
    return std.json.parseFromSliceLeaky(Value, gpa, text[0..size], .{}) catch error.Damaged;
}

fn writeJson(files: Files, name: []const u8, value: anytype) Files.Error!void {
    var text: [size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&text);
    std.json.Stringify.value(value, .{ .whitespace = .indent_2 }, &writer) catch unreachable;
    writer.writeByte('\n') catch unreachable;
    try files.replace(name, writer.buffered());
}

const testing = std.testing;
const LinuxFiles = @import("../files/linux_files.zig");

test "a record and a lineage are read as written; damaged ones and those of later releases are refused" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try testing.expectEqual(null, try Record.read(files));
    const store: Uuid = .fromRandom(@splat(1));
    const own: Lineage = try .read(files, store);
    try testing.expectEqual(store, own.id);
    const record: Record = .{
        .store = store,
        .lineage = own.id,
        .sequence = std.math.maxInt(u64),
        .completed_unix_ms = 7,
        .is_interrupted = true,
        .versions = 2,
        .caches = 3,
        .problems = 1,
    };
    try record.write(files);
    try testing.expectEqual(record, (try Record.read(files)).?);
    const lineage: Lineage =
        .{ .id = .fromRandom(@splat(2)), .restored_from = store, .sequence = 9 };
    try lineage.write(files);
    try testing.expectEqual(lineage, try Lineage.read(files, store));
    for ([_]struct { []const u8, Error }{
        .{ "", error.Damaged },
        .{ "{\"format\":1}", error.Damaged },
        .{ "{\"format\":2,\"more\":1}", error.TooNew },
    }) |case| {
        try files.replace(record_name, case[0]);
        try testing.expectError(case[1], Record.read(files));
    }
}

test "a backup is continued by its store, or by one restored from its last state alone" {
    const store: Uuid = .fromRandom(@splat(1));
    const own: Lineage = .{ .id = store, .restored_from = store, .sequence = 0 };
    var record: Record = .{
        .store = store,
        .lineage = store,
        .sequence = 4,
        .completed_unix_ms = 7,
        .is_interrupted = false,
        .versions = 0,
        .caches = 0,
        .problems = 0,
    };
    try testing.expect(record.isContinuedBy(store, &own));
    try testing.expect(!record.isContinuedBy(.fromRandom(@splat(3)), &own));
    const restored: Lineage =
        .{ .id = .fromRandom(@splat(2)), .restored_from = store, .sequence = 4 };
    try testing.expect(record.isContinuedBy(store, &restored));
    record.sequence = 5;
    try testing.expect(!record.isContinuedBy(store, &restored));
    record.lineage = restored.id;
    try testing.expect(record.isContinuedBy(store, &restored));
    try testing.expect(!record.isContinuedBy(store, &own));
}
