//! A device's own account of what its boot read: the programs that asked for sectors of the disk,
//! each with its unit of the init system, and the runs of sectors in the order in which they were
//! asked for (docs/reference/files-read.md). The device writes it with `Collector`; the edge takes
//! any bytes for one, and `Trace.parse` accepts nothing beyond the limits below.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const magic = "BFTRACE1";
const head_size = 16;
pub const program_size_max = 16;
pub const unit_size_max = 64;
pub const programs_max = 512;
/// A boot has some thousand runs of about five bytes.
const runs_size_max = 80 << 10;
pub const size_max = head_size + 2 +
    programs_max * (2 + program_size_max + unit_size_max) + runs_size_max;
/// Greatest number of a sector: 512 TiB.
const sector_max = 1 << 40;

comptime {
    assert(size_max < 128 << 10);
}

pub const State = enum(u8) {
    /// Everything from the first read of the disk on.
    complete = 0,
    /// The kernel has no tracefs, or keeps it locked.
    no_tracing = 1,
    /// The kernel has no event for a request to a disk.
    no_event = 2,
};

pub const Program = struct {
    name: []const u8,
    /// Empty: unknown.
    unit: []const u8,
};

pub const Run = struct { sector: u64, count: u64, program: u16 };

/// Collects what the device's kernel says, in fixed memory.
pub const Collector = struct {
    programs: [programs_max]Name = undefined,
    program_count: u16 = 0,
    runs: [runs_size_max]u8 = undefined,
    runs_size: usize = 0,
    /// The newest run, which may grow.
    open: ?Run = null,
    /// End of the last run that was written.
    previous_end: u64 = 0,
    /// Events that the kernel dropped, and requests that did not fit here.
    lost: u32 = 0,

    const Name = struct {
        name: [program_size_max]u8,
        name_size: u8,
        unit: [unit_size_max]u8,
        unit_size: u8,

        fn is(name: *const Name, program: Program) bool {
            return std.mem.eql(u8, name.name[0..name.name_size], program.name) and
                std.mem.eql(u8, name.unit[0..name.unit_size], program.unit);
        }
    };

    /// Returns the number of a program; null: there are too many.
    pub fn programOf(collector: *Collector, given: Program) ?u16 {
        const program: Program = .{
            .name = given.name[0..@min(given.name.len, program_size_max)],
            .unit = given.unit[0..@min(given.unit.len, unit_size_max)],
        };
        for (collector.programs[0..collector.program_count], 0..) |*known, index|
            if (known.is(program)) return @intCast(index);
        assert(collector.program_count <= programs_max);
        if (collector.program_count == programs_max) return null;
        const added = &collector.programs[collector.program_count];
        added.name_size = @intCast(program.name.len);
        @memcpy(added.name[0..program.name.len], program.name);
        added.unit_size = @intCast(program.unit.len);
        @memcpy(added.unit[0..program.unit.len], program.unit);
        collector.program_count += 1;
        return collector.program_count - 1;
    }

    /// A program asked for sectors; null: one that has no number.
    pub fn add(collector: *Collector, program: ?u16, sector: u64, count: u64) void {
        const number = program orelse return collector.lose();
        if (count == 0 or sector >= sector_max or count >= sector_max - sector)
            return collector.lose();
        assert(number < collector.program_count);
        if (collector.open) |*run| {
            if (run.program == number and run.sector + run.count == sector) {
                run.count += count;
                return;
            }
            collector.close();
        }
        collector.open = .{ .sector = sector, .count = count, .program = number };
    }

    pub fn lose(collector: *Collector) void {
        collector.lost +|= 1;
    }

    fn close(collector: *Collector) void {
        const run = collector.open orelse return;
        collector.open = null;
        assert(run.count > 0);
        assert(run.program < collector.program_count);
        assert(collector.runs_size <= runs_size_max);
        var writer: std.Io.Writer = .fixed(collector.runs[collector.runs_size..]);
        const sector: i64 = @intCast(run.sector);
        const distance = sector - @as(i64, @intCast(collector.previous_end));
        writeNumber(&writer, zigzag(distance)) catch return collector.lose();
        writeNumber(&writer, run.count) catch return collector.lose();
        writeNumber(&writer, run.program) catch return collector.lose();
        collector.runs_size += writer.end;
        collector.previous_end = run.sector + run.count;
    }

    /// Writes everything collected. `has_systemd`: the times of its units follow.
    pub fn write(
        collector: *Collector,
        state: State,
        has_systemd: bool,
        buffer: *[size_max]u8,
    ) []const u8 {
        collector.close();
        assert(collector.open == null);
        assert(!has_systemd or state == .complete or collector.runs_size == 0);
        var writer: base.ByteWriter = .init(buffer);
        writer.bytes(magic) catch unreachable;
        writer.int(u8, @backingInt(state)) catch unreachable;
        writer.int(u8, @intFromBool(has_systemd)) catch unreachable;
        writer.int(u16, 0) catch unreachable;
        writer.int(u32, collector.lost) catch unreachable;
        writer.int(u16, collector.program_count) catch unreachable;
        for (collector.programs[0..collector.program_count]) |*program| {
            writer.int(u8, program.name_size) catch unreachable;
            writer.bytes(program.name[0..program.name_size]) catch unreachable;
            writer.int(u8, program.unit_size) catch unreachable;
            writer.bytes(program.unit[0..program.unit_size]) catch unreachable;
        }
        writer.bytes(collector.runs[0..collector.runs_size]) catch unreachable;
        return writer.written();
    }
};

/// Whether an account, of which these are the first bytes, says that its units follow. It is not
/// checked yet.
pub fn saysSystemd(bytes: []const u8) bool {
    return bytes.len > magic.len + 1 and bytes[magic.len + 1] == 1;
}

/// Seven bits a byte, the lowest first.
fn writeNumber(writer: *std.Io.Writer, number: u64) std.Io.Writer.Error!void {
    var left = number;
    while (left >= 0x80) : (left >>= 7) try writer.writeByte(@as(u8, @truncate(left)) | 0x80);
    try writer.writeByte(@intCast(left));
}

fn readNumber(cursor: *base.Cursor) error{Malformed}!u64 {
    var number: u64 = 0;
    for (0..7) |index| {
        const byte = cursor.int(u8) catch return error.Malformed;
        number |= @as(u64, byte & 0x7f) << @intCast(7 * index);
        if (byte < 0x80) return number;
    }
    return error.Malformed;
}

fn zigzag(distance: i64) u64 {
    return @as(u64, @bitCast(distance << 1)) ^ @as(u64, @bitCast(distance >> 63));
}

fn unzigzag(number: u64) i64 {
    return @as(i64, @intCast(number >> 1)) ^ -@as(i64, @intCast(number & 1));
}

/// A device's account, checked; everything points into its bytes.
pub const Trace = struct {
    state: State,
    has_systemd: bool,
    lost: u32,
    program_count: u16,
    programs_bytes: []const u8,
    runs_bytes: []const u8,

    pub fn parse(bytes: []const u8) error{Malformed}!Trace {
        if (bytes.len > size_max) return error.Malformed;
        if (!std.mem.startsWith(u8, bytes, magic)) return error.Malformed;
        var cursor: base.Cursor = .init(bytes[magic.len..]);
        const state = cursor.int(u8) catch return error.Malformed;
        const has_systemd = cursor.int(u8) catch return error.Malformed;
        const zero = cursor.int(u16) catch return error.Malformed;
        const lost = cursor.int(u32) catch return error.Malformed;
        const count = cursor.int(u16) catch return error.Malformed;
        if (has_systemd > 1 or zero != 0 or count > programs_max) return error.Malformed;
        const programs_at = bytes.len - cursor.remaining();
        for (0..count) |_| _ = try readProgram(&cursor);
        const runs_at = bytes.len - cursor.remaining();
        const trace: Trace = .{
            .state = std.enums.fromInt(State, state) orelse return error.Malformed,
            .has_systemd = has_systemd == 1,
            .lost = lost,
            .program_count = count,
            .programs_bytes = bytes[programs_at..runs_at],
            .runs_bytes = bytes[runs_at..],
        };
        var all = trace.runs();
        while (try all.read()) |_| {}
        return trace;
    }

    pub fn programs(trace: *const Trace) Programs {
        return .{ .cursor = .init(trace.programs_bytes) };
    }

    pub fn runs(trace: *const Trace) Runs {
        return .{ .cursor = .init(trace.runs_bytes), .program_count = trace.program_count };
    }
};

pub const Programs = struct {
    cursor: base.Cursor,

    pub fn next(programs: *Programs) ?Program {
        if (programs.cursor.remaining() == 0) return null;
        return readProgram(&programs.cursor) catch unreachable; // `parse` has read them.
    }
};

pub const Runs = struct {
    cursor: base.Cursor,
    program_count: u16,
    previous_end: u64 = 0,

    pub fn next(runs: *Runs) ?Run {
        return runs.read() catch unreachable; // `parse` has read them.
    }

    fn read(runs: *Runs) error{Malformed}!?Run {
        if (runs.cursor.remaining() == 0) return null;
        const distance = unzigzag(try readNumber(&runs.cursor));
        const count = try readNumber(&runs.cursor);
        const program = try readNumber(&runs.cursor);
        assert(runs.previous_end <= sector_max);
        const sector = @as(i64, @intCast(runs.previous_end)) + distance;
        if (sector < 0 or sector >= sector_max) return error.Malformed;
        if (count == 0 or count >= sector_max - @as(u64, @intCast(sector))) return error.Malformed;
        if (program >= runs.program_count) return error.Malformed;
        runs.previous_end = @as(u64, @intCast(sector)) + count;
        return .{ .sector = @intCast(sector), .count = count, .program = @intCast(program) };
    }
};

fn readProgram(cursor: *base.Cursor) error{Malformed}!Program {
    const name = try readText(cursor, program_size_max);
    return .{ .name = name, .unit = try readText(cursor, unit_size_max) };
}

fn readText(cursor: *base.Cursor, size_limit: u8) error{Malformed}![]const u8 {
    const size = cursor.int(u8) catch return error.Malformed;
    if (size > size_limit) return error.Malformed;
    return cursor.bytes(size) catch error.Malformed;
}

const testing = std.testing;

test "programs, units and runs survive a round trip, and runs that touch become one" {
    var collector: Collector = .{};
    const cat = collector.programOf(.{ .name = "cat", .unit = "a.service" });
    const again = collector.programOf(.{ .name = "cat", .unit = "a.service" });
    const other = collector.programOf(.{ .name = "cat", .unit = "" });
    try testing.expectEqual(cat, again);
    collector.add(cat, 2048, 8);
    collector.add(cat, 2056, 248);
    collector.add(other, 16, 8);
    collector.add(cat, sector_max - 10, 9);
    collector.add(cat, sector_max - 10, 11);
    collector.add(null, 5, 1);
    collector.add(cat, 5, 0);
    var buffer: [size_max]u8 = undefined;
    const trace: Trace = try .parse(collector.write(.complete, true, &buffer));
    try testing.expectEqual(3, trace.lost);
    try testing.expect(trace.has_systemd);
    var programs = trace.programs();
    try testing.expectEqualStrings("a.service", programs.next().?.unit);
    try testing.expectEqualStrings("cat", programs.next().?.name);
    try testing.expectEqual(null, programs.next());
    var runs = trace.runs();
    try testing.expectEqual(Run{ .sector = 2048, .count = 256, .program = 0 }, runs.next());
    try testing.expectEqual(Run{ .sector = 16, .count = 8, .program = 1 }, runs.next());
    try testing.expectEqual(
        Run{ .sector = sector_max - 10, .count = 9, .program = 0 },
        runs.next(),
    );
    try testing.expectEqual(null, runs.next());
}

test "a machine with more programs and requests than fit loses them, and counts each" {
    var collector: Collector = .{};
    for (0..programs_max) |index| {
        var name: [program_size_max]u8 = @splat('n');
        _ = std.mem.print(&name, "{d}", .{index}) catch unreachable;
        const unit: [2 * unit_size_max]u8 = @splat('u');
        const number = collector.programOf(.{ .name = &name, .unit = &unit });
        try testing.expectEqual(@as(u16, @intCast(index)), number);
    }
    try testing.expectEqual(null, collector.programOf(.{ .name = "one more", .unit = "" }));
    var prng: base.Prng = .init(1);
    for (0..40_000) |_| collector.add(511, prng.below(sector_max / 2), 1 + prng.below(1000));
    try testing.expect(collector.lost > 10_000);
    var buffer: [size_max]u8 = undefined;
    const trace: Trace = try .parse(collector.write(.complete, false, &buffer));
    var runs = trace.runs();
    var count: u32 = 0;
    while (runs.next()) |_| count += 1;
    try testing.expectEqual(40_000, count + trace.lost);
}

test "bytes that no device would send are refused or read within their limits" {
    var collector: Collector = .{};
    const program = collector.programOf(.{ .name = "udevd", .unit = "systemd-udevd.service" });
    for (0..50) |index| collector.add(program, 4096 * (50 - index), 8);
    var buffer: [size_max]u8 = undefined;
    const whole = collector.write(.complete, true, &buffer);
    for (0..head_size + 2) |size|
        try testing.expectError(error.Malformed, Trace.parse(whole[0..size]));
    var prng: base.Prng = .init(2);
    var copy: [512]u8 = undefined;
    for (0..50_000) |_| {
        const bytes = copy[0..whole.len];
        @memcpy(bytes, whole);
        for (0..1 + prng.below(4)) |_|
            bytes[prng.below(bytes.len)] = @truncate(prng.below(256));
        const trace = Trace.parse(bytes[0 .. bytes.len - prng.below(8)]) catch continue;
        var runs = trace.runs();
        while (runs.next()) |run| {
            try testing.expect(run.program < trace.program_count);
            try testing.expect(run.sector + run.count <= sector_max);
        }
    }
}
