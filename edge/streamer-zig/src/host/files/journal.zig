//! A small append-only file of records in an edge's data directory. The files of this folder give
//! it the format of their records; it opens, reads, appends and compacts. Invariants: what was
//! whole before a crash is readable after it, and a torn or damaged record hides no other.
//!
//! A record that was appended is with the kernel: a killed process loses nothing. A machine that
//! loses power loses what was not synced; the owner of a file calls `sync` where that matters.
//!
//! Compaction writes a second file, syncs it with fdatasync, renames it over the first, and syncs
//! the directory with fsync. Each step is needed:
//! - Without fdatasync, the new name may reach the disk before the bytes do, and a power failure
//!   leaves an empty file where a full one was. fdatasync is enough: it also writes the file's
//!   size, and leaves out only the times of access and change.
//! - rename replaces the file in one step, so that a reader finds the old file or the new one.
//! - Without fsync of the directory, a power failure may bring the old file back, and with it lose
//!   records that were appended to the new one and synced.

const std = @import("std");
const record_frame = @import("core").uplink.record_frame;
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

/// `Record` declares the format of a file:
/// - `name`: its name in the directory;
/// - `size_max`: in bytes; a longer file needs compaction, once it is `growth` times as long as the
///   last one left it;
/// - `frame_size_max`: of one record;
/// - `frameSize(bytes) ?usize`: the size of the whole record at the front of `bytes`, or null if it
///   is torn or damaged.
pub fn Journal(comptime Record: type) type {
    return struct {
        const Self = @This();

        /// What was kept may already be longer than `size_max`: an idle edge must not write it
        /// again and again, and a busy one writes a third more than it appends.
        const growth = 4;
        const name_new = Record.name ++ ".new";
        const reader_size = @max(2 * Record.frame_size_max, 4096);

        dir_fd: i32,
        /// -1 where the file can be neither opened nor created: an edge starts without it.
        fd: i32,
        /// The disk let it be read only. The next record tries again.
        is_read_only: bool = false,
        /// The end of the last complete record, and the place of the next one.
        end: u64,
        /// Compaction is due beyond this size.
        compact_above: u64 = Record.size_max,
        is_synced: bool = true,

        /// Opens the file, or creates an empty one. Read it, and call `endReading`, before the
        /// first record.
        /// A disk that refuses both gives an empty journal: whatever a disk does, the edge starts.
        pub fn open(dir_fd: i32) Self {
            var journal: Self = .{ .dir_fd = dir_fd, .fd = -1, .end = 0 };
            journal.fd = openWritable(dir_fd) catch blk: {
                journal.is_read_only = true;
                break :blk openFile(dir_fd, Record.name, .{ .ACCMODE = .RDONLY }) catch -1;
            };
            if (journal.fd >= 0)
                journal.end = sys.check(linux.lseek(journal.fd, 0, linux.SEEK.END)) catch 0;
            return journal;
        }

        fn openWritable(dir_fd: i32) sys.Error!i32 {
            return openFile(dir_fd, Record.name, .{ .ACCMODE = .RDWR, .CREAT = true });
        }

        pub fn close(journal: *Self) void {
            if (journal.fd >= 0) sys.close(journal.fd);
            journal.* = undefined;
        }

        /// Opens the file to be written if it was not.
        fn makeWritable(journal: *Self) sys.Error!void {
            if (!journal.is_read_only) return;
            const fd = try openWritable(journal.dir_fd);
            errdefer sys.close(fd);
            // A torn end, which nobody could cut.
            _ = try sys.check(linux.ftruncate(fd, @intCast(journal.end)));
            if (journal.fd >= 0) sys.close(journal.fd);
            journal.fd = fd;
            journal.is_read_only = false;
        }

        pub fn reader(journal: *const Self) Reader {
            return .{ .fd = journal.fd };
        }

        /// Drops what is torn behind the last whole record that `reader` returned. What could not
        /// be read stays, and records follow behind it.
        pub fn endReading(journal: *Self, from: *const Reader) void {
            if (from.has_failed) return;
            _ = linux.ftruncate(journal.fd, @intCast(from.end));
            journal.end = from.end;
        }

        /// Returns false if the disk refused the record, for example because it is full. The file
        /// then ends where it did before.
        pub fn append(journal: *Self, frame: []const u8) bool {
            assert(frame.len <= Record.frame_size_max);
            return journal.appendAll(frame);
        }

        /// Appends whole records, one behind the other: all of them or none.
        pub fn appendAll(journal: *Self, frames: []const u8) bool {
            assert(frames.len > 0);
            journal.makeWritable() catch return false;
            sys.writeAllAt(journal.fd, frames, journal.end) catch {
                _ = linux.ftruncate(journal.fd, @intCast(journal.end));
                return false;
            };
            journal.end += frames.len;
            journal.is_synced = false;
            return true;
        }

        /// Returns whether the disk takes a record now. Zeros behind the last one are skipped.
        pub fn probe(journal: *Self) bool {
            journal.makeWritable() catch return false;
            const zeros: [512]u8 = @splat(0);
            defer _ = linux.ftruncate(journal.fd, @intCast(journal.end));
            return if (sys.writeAllAt(journal.fd, &zeros, journal.end)) true else |_| false;
        }

        /// Returns once all records are on the disk; false if the disk refuses.
        pub fn sync(journal: *Self) bool {
            if (journal.is_synced) return true;
            const is_synced = linux.errno(linux.fdatasync(journal.fd)) == .SUCCESS;
            journal.is_synced = is_synced;
            return is_synced;
        }

        pub fn needsCompaction(journal: *const Self) bool {
            return journal.end > journal.compact_above;
        }

        /// `size`: what a compaction would leave.
        pub fn setCompacted(journal: *Self, size: u64) void {
            journal.compact_above = @max(Record.size_max, growth * size);
        }

        /// Replaces the records of the file by those that `write` appends. If a step fails, the
        /// file stays as it is, compaction is due again once the file has grown by `size_max`, and
        /// the result is false.
        pub fn compact(
            journal: *Self,
            context: anytype,
            comptime write: fn (@TypeOf(context), *Compaction) sys.Error!void,
        ) bool {
            journal.tryCompact(context, write) catch {
                journal.compact_above = journal.end + Record.size_max;
                return false;
            };
            return true;
        }

        fn tryCompact(
            journal: *Self,
            context: anytype,
            comptime write: fn (@TypeOf(context), *Compaction) sys.Error!void,
        ) sys.Error!void {
            var fresh: Compaction = try .begin(journal.dir_fd);
            errdefer sys.close(fresh.fd);
            try write(context, &fresh);
            try fresh.commit(journal.dir_fd);
            if (journal.fd >= 0) sys.close(journal.fd);
            journal.* = .{ .dir_fd = journal.dir_fd, .fd = fresh.fd, .end = fresh.end };
            journal.setCompacted(fresh.end);
        }

        /// The second file of a compaction, until it takes the place of the first.
        pub const Compaction = struct {
            fd: i32,
            end: u64 = 0,

            /// Overwrites the remains of a compaction that a crash interrupted.
            fn begin(dir_fd: i32) sys.Error!Compaction {
                const fd = try openFile(dir_fd, name_new, .{
                    .ACCMODE = .RDWR,
                    .CREAT = true,
                    .TRUNC = true,
                });
                return .{ .fd = fd };
            }

            pub fn append(fresh: *Compaction, frame: []const u8) sys.Error!void {
                assert(frame.len <= Record.frame_size_max);
                try fresh.appendAll(frame);
            }

            pub fn appendAll(fresh: *Compaction, frames: []const u8) sys.Error!void {
                assert(frames.len > 0);
                try sys.writeAllAt(fresh.fd, frames, fresh.end);
                fresh.end += frames.len;
            }

            fn commit(fresh: *const Compaction, dir_fd: i32) sys.Error!void {
                _ = try sys.check(linux.fdatasync(fresh.fd));
                _ = try sys.check(linux.renameat(dir_fd, name_new, dir_fd, Record.name));
                _ = linux.fsync(dir_fd);
            }
        };

        /// Reads whole records one after another. It skips what is torn or damaged, byte by byte:
        /// a damaged size says nothing about where the next record begins.
        pub const Reader = struct {
            fd: i32,
            /// Where the last record that `next` returned ends in the file.
            end: u64 = 0,
            /// Bytes that belong to no whole record, so far.
            skipped: u64 = 0,
            /// As long as two records, so that skipping does not move the bytes at each step.
            buffer: [reader_size]u8 = undefined,
            /// Bytes of `buffer` that were read, and those of them that are done with.
            filled: usize = 0,
            used: usize = 0,
            /// The place of `buffer` in the file.
            begin: u64 = 0,
            is_at_end: bool = false,
            /// The disk did not give everything to `nextReadable`.
            has_failed: bool = false,

            /// Like `next`; a disk that fails ends the file.
            pub fn nextReadable(from: *Reader) ?[]const u8 {
                return from.next() catch {
                    from.has_failed = true;
                    return null;
                };
            }

            /// A record is valid until the next call.
            pub fn next(from: *Reader) sys.Error!?[]const u8 {
                if (from.fd < 0) return null;
                while (true) {
                    const rest = from.buffer[from.used..from.filled];
                    if (rest.len < Record.frame_size_max and !from.is_at_end) {
                        try from.fill();
                        continue;
                    }
                    if (rest.len == 0) return null;
                    if (Record.frameSize(rest)) |size| {
                        from.used += size;
                        from.end = from.begin + from.used;
                        return rest[0..size];
                    }
                    from.used += 1;
                    from.skipped += 1;
                }
            }

            fn fill(from: *Reader) sys.Error!void {
                const rest = from.filled - from.used;
                std.mem.copyForwards(
                    u8,
                    from.buffer[0..rest],
                    from.buffer[from.used..from.filled],
                );
                from.begin += from.used;
                from.used = 0;
                const free = from.buffer[rest..];
                const count = try sys.readAt(from.fd, free, from.begin + rest);
                from.filled = rest + count;
                from.is_at_end = count < free.len;
            }
        };

        fn openFile(dir_fd: i32, name: [:0]const u8, flags: linux.O) sys.Error!i32 {
            var all = flags;
            all.CLOEXEC = true;
            return @intCast(try sys.check(linux.openat(dir_fd, name, all, 0o600)));
        }

        /// Opens the file of an edge that may be running, to read it.
        pub fn openReader(dir_fd: i32) (sys.Error || error{Missing})!Reader {
            const flags: linux.O = .{ .ACCMODE = .RDONLY, .CLOEXEC = true };
            const rc = linux.openat(dir_fd, Record.name, flags, 0);
            if (linux.errno(rc) == .NOENT) return error.Missing;
            return .{ .fd = @intCast(try sys.check(rc)) };
        }
    };
}

/// Records of any size, each with its size and a checksum (core/uplink/record_frame.zig).
pub fn Framed(comptime file_name: [:0]const u8, comptime size: u64) type {
    return struct {
        pub const name = file_name;
        pub const size_max = size;
        pub const frame_size_max = record_frame.frame_size_max;

        pub fn frameSize(bytes: []const u8) ?usize {
            const record = record_frame.decode(bytes) orelse return null;
            return record.frame_size;
        }

        /// The payload of a frame that a reader returned.
        pub fn payload(frame: []const u8) []const u8 {
            return record_frame.decode(frame).?.payload;
        }
    };
}

/// Records of one size without a checksum: a torn one is short.
pub fn Fixed(
    comptime file_name: [:0]const u8,
    comptime record_size: usize,
    comptime records_max: u64,
) type {
    return struct {
        pub const name = file_name;
        pub const size_max = (records_max - 1) * record_size;
        pub const frame_size_max = record_size;

        pub fn frameSize(bytes: []const u8) ?usize {
            return if (bytes.len < record_size) null else record_size;
        }
    };
}

const testing = std.testing;
const TestJournal = Journal(Framed("test", 64));

fn testFrame(number: u64, buffer: *[64]u8) []const u8 {
    return record_frame.encode(number, "record", buffer);
}

fn expectNumbers(dir_fd: i32, numbers: []const u64) !void {
    var reader = try TestJournal.openReader(dir_fd);
    defer sys.close(reader.fd);
    for (numbers) |number|
        try testing.expectEqual(number, record_frame.decode((try reader.next()).?).?.number);
    try testing.expectEqual(null, try reader.next());
}

fn appendNumbers(numbers: []const u64, fresh: *TestJournal.Compaction) sys.Error!void {
    var buffer: [64]u8 = undefined;
    for (numbers) |number| try fresh.append(testFrame(number, &buffer));
}

test "a file that is cut at any byte keeps its whole records and takes new ones" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const dir_fd = tmp.dir.handle;
    var buffer: [64]u8 = undefined;
    const frame_size = testFrame(0, &buffer).len;
    for (0..3 * frame_size + 1) |size| {
        var journal: TestJournal = .open(dir_fd);
        defer journal.close();
        journal.endReading(&.{ .fd = journal.fd });
        for (0..3) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
        _ = linux.ftruncate(journal.fd, @intCast(size));
        var again: TestJournal = .open(dir_fd);
        defer again.close();
        var reader = again.reader();
        while (try reader.next()) |_| {}
        try testing.expectEqual(size / frame_size * frame_size, reader.end);
        again.endReading(&reader);
        try testing.expect(again.append(testFrame(9, &buffer)));
        const numbers = [_]u64{ 0, 1, 2 };
        const kept = numbers[0 .. size / frame_size];
        var expected: [4]u64 = undefined;
        @memcpy(expected[0..kept.len], kept);
        expected[kept.len] = 9;
        try expectNumbers(dir_fd, expected[0 .. kept.len + 1]);
    }
}

test "a damaged record loses only itself, wherever it is damaged" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [64]u8 = undefined;
    const frame_size = testFrame(0, &buffer).len;
    for (0..frame_size) |index| {
        var journal: TestJournal = .open(tmp.dir.handle);
        defer journal.close();
        journal.endReading(&.{ .fd = journal.fd });
        for (0..3) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
        try sys.writeAllAt(journal.fd, "\xff", frame_size + index);
        try expectNumbers(tmp.dir.handle, &.{ 0, 2 });
        var reader = journal.reader();
        while (try reader.next()) |_| {}
        try testing.expectEqual(frame_size, reader.skipped);
        journal.endReading(&reader);
        try testing.expect(journal.append(testFrame(7, &buffer)));
        try expectNumbers(tmp.dir.handle, &.{ 0, 2, 7 });
    }
}

test "zeros, as a power failure leaves them, hide nothing that is behind them" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal: TestJournal = .open(tmp.dir.handle);
    defer journal.close();
    var buffer: [64]u8 = undefined;
    try testing.expect(journal.append(testFrame(1, &buffer)));
    journal.end += 3 * TestJournal.reader_size;
    try testing.expect(journal.append(testFrame(2, &buffer)));
    try expectNumbers(tmp.dir.handle, &.{ 1, 2 });
}

test "a crash at any step of a compaction leaves the old records or the new ones" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const dir_fd = tmp.dir.handle;
    var journal: TestJournal = .open(dir_fd);
    var buffer: [64]u8 = undefined;
    for (0..3) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
    try testing.expect(journal.needsCompaction());
    // The second file is empty, then has a record, then a torn one.
    for (0..3) |step| {
        var fresh: TestJournal.Compaction = try .begin(dir_fd);
        defer sys.close(fresh.fd);
        if (step > 0) try fresh.append(testFrame(2, &buffer));
        if (step > 1) try sys.writeAllAt(fresh.fd, "torn", fresh.end);
        try expectNumbers(dir_fd, &.{ 0, 1, 2 });
    }
    // After the rename, before anything else: the process ends with the old file open.
    var fresh: TestJournal.Compaction = try .begin(dir_fd);
    try fresh.append(testFrame(2, &buffer));
    try fresh.commit(dir_fd);
    sys.close(fresh.fd);
    journal.close();
    try expectNumbers(dir_fd, &.{2});
    // What the crashes left does not stand in the way of the next compaction.
    journal = .open(dir_fd);
    defer journal.close();
    try testing.expect(journal.compact(@as([]const u64, &.{ 5, 6 }), appendNumbers));
    try testing.expect(!journal.needsCompaction());
    try testing.expect(journal.append(testFrame(8, &buffer)));
    try expectNumbers(dir_fd, &.{ 5, 6, 8 });
}

test "a file whose records all stay is compacted again only when it is four times as long" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal: TestJournal = .open(tmp.dir.handle);
    defer journal.close();
    var buffer: [64]u8 = undefined;
    const numbers = [_]u64{ 0, 1, 2, 3, 4, 5, 6, 7 };
    for (numbers) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
    try testing.expect(journal.needsCompaction());
    try testing.expect(journal.compact(@as([]const u64, &numbers), appendNumbers));
    for (0..(TestJournal.growth - 1) * numbers.len) |number| {
        try testing.expect(!journal.needsCompaction());
        try testing.expect(journal.append(testFrame(number, &buffer)));
    }
    try testing.expect(!journal.needsCompaction());
    try testing.expect(journal.append(testFrame(8, &buffer)));
    try testing.expect(journal.needsCompaction());
    try testing.expect(journal.compact(@as([]const u64, &.{8}), appendNumbers));
    for (0..4) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
    try testing.expect(journal.needsCompaction());
}

test "a compaction that the disk refuses keeps the file, which takes more records" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var journal: TestJournal = .open(tmp.dir.handle);
    defer journal.close();
    var buffer: [64]u8 = undefined;
    for (0..3) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
    const refuse = struct {
        fn refuse(_: void, fresh: *TestJournal.Compaction) sys.Error!void {
            try appendNumbers(&.{9}, fresh);
            return error.SystemCallFailed;
        }
    }.refuse;
    try testing.expect(!journal.compact({}, refuse));
    try testing.expect(!journal.needsCompaction());
    for (3..7) |number| try testing.expect(journal.append(testFrame(number, &buffer)));
    try testing.expect(journal.needsCompaction());
    try expectNumbers(tmp.dir.handle, &.{ 0, 1, 2, 3, 4, 5, 6 });
}
