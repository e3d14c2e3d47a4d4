//! The segment files of the report log: their names, and the scan at a start.

const std = @import("std");
const base = @import("base");
const record_frame = @import("record_frame.zig");
const assert = std.debug.assert;

/// Each start of the edge adds one; those without reports are never created.
pub const count_max = 4096;

pub const Segment = struct {
    epoch: u64,
    first_seq: u64,
    /// Below `first_seq` while the segment is empty.
    last_seq: u64,
    size: u64,

    const digits = 20;
    const suffix = ".log";
    pub const name_size = digits + 1 + digits + suffix.len;

    /// `EPOCH-FIRST_SEQ.log` with leading zeros, so that names sort like segments.
    pub fn name(segment: *const Segment) [name_size]u8 {
        var text: [name_size]u8 = undefined;
        _ = std.mem.print(&text, "{d:0>20}-{d:0>20}" ++ suffix, .{
            segment.epoch, segment.first_seq,
        }) catch unreachable;
        return text;
    }

    /// Returns null for a name that is not a segment's.
    fn parse(text: []const u8) ?Segment {
        if (text.len != name_size or text[digits] != '-') return null;
        if (!std.mem.endsWith(u8, text, suffix)) return null;
        const epoch = std.fmt.parseInt(u64, text[0..digits], 10) catch return null;
        const first_seq =
            std.fmt.parseInt(u64, text[digits + 1 ..][0..digits], 10) catch return null;
        if (epoch == 0 or first_seq == 0) return null;
        return .{ .epoch = epoch, .first_seq = first_seq, .last_seq = first_seq - 1, .size = 0 };
    }

    fn before(_: void, a: Segment, b: Segment) bool {
        if (a.epoch != b.epoch) return a.epoch < b.epoch;
        return a.first_seq < b.first_seq;
    }
};

/// Reads consecutive records from a file of `Files`.
pub fn Reader(comptime Files: type) type {
    return struct {
        files: *Files,
        file: Files.File,
        offset: u64 = 0,
        buffer: *[record_frame.frame_size_max]u8,

        /// Returns the next complete record; its payload is valid until the next call. Null at the
        /// end and at damage.
        pub fn next(reader: *@This()) error{DiskFailed}!?record_frame.Record {
            const size = try reader.files.readAt(reader.file, reader.buffer, reader.offset);
            const record = record_frame.decode(reader.buffer[0..size]) orelse return null;
            reader.offset += record.frame_size;
            return record;
        }
    };
}

pub const ScanError = error{ DiskFailed, OutOfMemory };

/// Fills `segments` from the directory, sorted. A torn tail is cut off its file; a file without one
/// complete record is deleted.
pub fn scan(
    comptime Files: type,
    files: *Files,
    segments: *std.ArrayList(Segment),
    buffer: *[record_frame.frame_size_max]u8,
) ScanError!void {
    var iterator = files.iterate();
    while (try iterator.next()) |name| {
        const segment = Segment.parse(name) orelse continue;
        try segments.appendBounded(segment);
    }
    base.sort(Segment, segments.items, {}, Segment.before);
    var index: usize = 0;
    while (index < segments.items.len) {
        const segment = &segments.items[index];
        try measure(Files, files, segment, buffer);
        if (segment.last_seq >= segment.first_seq) {
            index += 1;
            continue;
        }
        try files.delete(&segment.name());
        _ = segments.orderedRemove(index);
    }
}

fn measure(
    comptime Files: type,
    files: *Files,
    segment: *Segment,
    buffer: *[record_frame.frame_size_max]u8,
) error{DiskFailed}!void {
    const file = try files.open(&segment.name());
    defer files.close(file);
    var reader: Reader(Files) = .{ .files = files, .file = file, .buffer = buffer };
    while (try reader.next()) |record| {
        if (record.number <= segment.last_seq) break;
        assert(reader.offset > segment.size);
        segment.last_seq = record.number;
        segment.size = reader.offset;
    }
    try files.truncate(file, segment.size);
}
