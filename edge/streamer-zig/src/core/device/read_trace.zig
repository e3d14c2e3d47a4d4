//! The reads of a recorded boot: CSV with the header `time_ms,offset,length`, one read per line, in
//! the order of the machine's requests. Times are milliseconds with up to three decimals since the
//! first read; offset and length are bytes.

const std = @import("std");
const wire = @import("wire").stream;
const assert = std.debug.assert;

pub const header = "time_ms,offset,length";
/// Lines of a trace; a Linux boot has under a thousand.
pub const reads_max = 100_000;

pub const Read = struct {
    at_us: u64,
    /// Bytes; multiples of 512.
    offset: u64,
    length: u32,

    /// Returns the same read on a disk of `disk_size` bytes: one beyond the end is folded back into
    /// the disk.
    pub fn within(read: Read, disk_size: u64) Read {
        assert(disk_size >= wire.sector_size);
        assert(disk_size % wire.sector_size == 0);
        const length: u32 = @intCast(@min(read.length, disk_size));
        const offset_max = disk_size - length;
        if (read.offset <= offset_max)
            return .{ .at_us = read.at_us, .offset = read.offset, .length = length };
        const sectors = offset_max / wire.sector_size + 1;
        const offset = read.offset / wire.sector_size % sectors * wire.sector_size;
        return .{ .at_us = read.at_us, .offset = offset, .length = length };
    }
};

pub const ParseError = error{ NoHeader, BadLine, TooLong, Empty, OutOfMemory };

/// Returns the reads of a trace; the caller frees the slice. `line` is set to the line of an error,
/// counted from 1.
pub fn parse(gpa: std.mem.Allocator, text: []const u8, line: *u32) ParseError![]Read {
    var reads: std.ArrayList(Read) = .empty;
    errdefer reads.deinit(gpa);
    var lines = std.mem.splitScalar(u8, text, '\n');
    line.* = 1;
    const first = std.mem.trimEnd(u8, lines.next() orelse "", "\r ");
    if (!std.mem.eql(u8, first, header)) return error.NoHeader;
    while (lines.next()) |raw| {
        line.* += 1;
        const trimmed = std.mem.trim(u8, raw, "\r ");
        if (trimmed.len == 0) continue;
        const read = parseLine(trimmed) orelse return error.BadLine;
        if (reads.items.len > 0 and read.at_us < reads.items[reads.items.len - 1].at_us)
            return error.BadLine;
        if (reads.items.len == reads_max) return error.TooLong;
        try reads.append(gpa, read);
    }
    if (reads.items.len == 0) return error.Empty;
    return reads.toOwnedSlice(gpa);
}

fn parseLine(text: []const u8) ?Read {
    var fields = std.mem.splitScalar(u8, text, ',');
    const at_us = parseMilliseconds(fields.next() orelse return null) orelse return null;
    const offset = std.fmt.parseInt(u64, fields.next() orelse return null, 10) catch return null;
    const length = std.fmt.parseInt(u32, fields.next() orelse return null, 10) catch return null;
    if (fields.next() != null) return null;
    if (length == 0 or length > wire.read_size_promised) return null;
    if (length % wire.sector_size != 0 or offset % wire.sector_size != 0) return null;
    if (offset > @as(u64, std.math.maxInt(u64)) - length) return null;
    return .{ .at_us = at_us, .offset = offset, .length = length };
}

fn parseMilliseconds(text: []const u8) ?u64 {
    const dot = std.mem.findScalar(u8, text, '.') orelse text.len;
    const whole = std.fmt.parseInt(u32, text[0..dot], 10) catch return null;
    var micros: u64 = @as(u64, whole) * 1000;
    if (dot == text.len) return micros;
    const decimals = text[dot + 1 ..];
    if (decimals.len == 0 or decimals.len > 3) return null;
    var scale: u64 = 100;
    for (decimals) |digit| {
        if (!std.ascii.isDigit(digit)) return null;
        micros += (digit - '0') * scale;
        scale /= 10;
    }
    return micros;
}

const testing = std.testing;

test "a trace is read with its times to the microsecond" {
    var line: u32 = 0;
    const reads = try parse(
        testing.allocator,
        "time_ms,offset,length\n0.000,0,4096\n19.171,4096,512\r\n20,8192,131072\n",
        &line,
    );
    defer testing.allocator.free(reads);
    try testing.expectEqual(3, reads.len);
    try testing.expectEqual(Read{ .at_us = 19_171, .offset = 4096, .length = 512 }, reads[1]);
    try testing.expectEqual(20_000, reads[2].at_us);
}

test "a line that is no read is reported by its number" {
    const wrong = [_][]const u8{
        "1,0",       "1,0,512,9",   "x,0,512",      "1,-1,512",         "1,0,0", "1,0,513",
        "1,511,512", "1,0,1048576", "1.2345,0,512", "5,0,512\n4,0,512",
    };
    for (wrong) |bad| {
        var buffer: [128]u8 = undefined;
        const text = try std.mem.print(&buffer, header ++ "\n0,0,512\n{s}\n", .{bad});
        var line: u32 = 0;
        try testing.expectError(error.BadLine, parse(testing.allocator, text, &line));
        try testing.expect(line >= 3);
    }
    var line: u32 = 0;
    try testing.expectError(error.NoHeader, parse(testing.allocator, "0,0,512\n", &line));
    try testing.expectError(error.Empty, parse(testing.allocator, header ++ "\n", &line));
}

test "a read beyond a small disk is folded into it" {
    const read: Read = .{ .at_us = 7, .offset = 419_299_328, .length = 131072 };
    try testing.expectEqual(read, read.within(419_430_400));
    const folded = read.within(1 << 20);
    try testing.expect(folded.offset + folded.length <= 1 << 20);
    try testing.expectEqual(0, folded.offset % 512);
    try testing.expectEqual(512, read.within(512).length);
}
