//! A line of the kernel's trace_pipe about a request to a disk (event `block:block_bio_queue`): who
//! asked, of which disk, and for which sectors. The event comes before requests are merged, in the
//! process that asks. Names of processes are theirs: any bytes, also a space or a line's end.

const std = @import("std");

const event = ": block_bio_queue: ";
const comm_size_max = 16;

pub const Request = struct {
    pid: u32,
    comm: []const u8,
    major: u32,
    minor: u32,
    /// Of the whole disk, also for one of its partitions.
    sector: u64,
    sectors: u64,
};

pub const Line = union(enum) {
    read: Request,
    /// Events that the kernel dropped.
    lost: u32,
    /// A write, another event, or no line of the kernel's.
    other,

    pub fn parse(line: []const u8) Line {
        if (lostEvents(line)) |count| return .{ .lost = count };
        const at = std.mem.find(u8, line, event) orelse return .other;
        const pid = pidBefore(line[0..at]) orelse return .other;
        return parseEvent(pid, line[at + event.len ..]) orelse .other;
    }
};

/// `CPU:3 [LOST 12 EVENTS]`
fn lostEvents(line: []const u8) ?u32 {
    if (!std.mem.startsWith(u8, line, "CPU:")) return null;
    const at = std.mem.find(u8, line, " [LOST ") orelse return null;
    const rest = line[at + " [LOST ".len ..];
    const end = std.mem.findScalar(u8, rest, ' ') orelse return null;
    return std.fmt.parseInt(u32, rest[0..end], 10) catch 1;
}

/// `    cat-1234    [001] .....    12.345678`, where the name may hold anything: read from its end.
fn pidBefore(prefix: []const u8) ?u32 {
    const bracket = std.mem.findScalarLast(u8, prefix, '[') orelse return null;
    const name = std.mem.trimEnd(u8, prefix[0..bracket], " ");
    const dash = std.mem.findScalarLast(u8, name, '-') orelse return null;
    return std.fmt.parseInt(u32, name[dash + 1 ..], 10) catch null;
}

/// `43,0 RA 2048 + 8 [cat]`
fn parseEvent(pid: u32, text: []const u8) ?Line {
    var words = std.mem.splitScalar(u8, text, ' ');
    const major, const minor = std.mem.cutScalar(u8, words.first(), ',') orelse return null;
    const kind = words.next() orelse return null;
    if (!std.mem.startsWith(u8, kind, "R")) return null;
    const sector = words.next() orelse return null;
    if (!std.mem.eql(u8, words.next() orelse return null, "+")) return null;
    const sectors = words.next() orelse return null;
    const comm = std.mem.trimEnd(u8, words.rest(), "\n");
    if (comm.len < 2 or comm[0] != '[' or comm[comm.len - 1] != ']') return null;
    return .{ .read = .{
        .pid = pid,
        .comm = comm[1..][0..@min(comm.len - 2, comm_size_max)],
        .major = std.fmt.parseInt(u32, major, 10) catch return null,
        .minor = std.fmt.parseInt(u32, minor, 10) catch return null,
        .sector = std.fmt.parseInt(u64, sector, 10) catch return null,
        .sectors = std.fmt.parseInt(u64, sectors, 10) catch return null,
    } };
}

const testing = std.testing;
const base = @import("base");

test "reads are taken with the process that asks, also those ahead and of metadata" {
    const lines = [_]struct { []const u8, []const u8, u32 }{
        .{
            "             cat-1234    [001] .....    12.345678: block_bio_queue: 43,0 R 2048 + 8 [cat]",
            "cat",
            1234,
        },
        .{
            "           <...>-77      [000] ..s1.     0.000001: block_bio_queue: 43,0 RAM 2048 + 8 [a [b] - c]",
            "a [b] - c",
            77,
        },
        .{
            " (udev [-w)-1-5       [010] d....  9999.000001: block_bio_queue: 43,0 RSM 2048 + 8 []",
            "",
            5,
        },
    };
    for (lines) |line| {
        const read = Line.parse(line[0]).read;
        try testing.expectEqualStrings(line[1], read.comm);
        try testing.expectEqual(line[2], read.pid);
        try testing.expectEqual(43, read.major);
        try testing.expectEqual(0, read.minor);
        try testing.expectEqual(2048, read.sector);
        try testing.expectEqual(8, read.sectors);
    }
}

test "writes and lines of no kernel are passed over, and dropped events are counted" {
    const start = "  cat-1234    [001] .....    12.345678: ";
    for ([_][]const u8{
        "",
        start ++ "block_bio_queue: 43,0 W 2048 + 8 [cat]",
        start ++ "block_bio_queue: 43,0 FF 2048 + 8 [cat]",
        start ++ "block_bio_queue: 43 R 2048 + 8 [cat]",
        start ++ "block_bio_queue: 43,0 R 2048 - 8 [cat]",
        start ++ "block_bio_queue: 43,0 R 2048 + 8 [ca",
        start ++ "block_bio_queue: 43,0 R -1 + 8 [cat]",
        start ++ "block_rq_issue: 43,0 R 4096 () 2048 + 8 [cat]",
        "cat [001] : block_bio_queue: 43,0 R 2048 + 8 [cat]",
    }) |line| try testing.expectEqual(Line.other, Line.parse(line));
    try testing.expectEqual(Line{ .lost = 12 }, Line.parse("CPU:3 [LOST 12 EVENTS]"));
}

test "no bytes crash the parser" {
    const whole = "  cat-1234  [001] .....  12.345678: block_bio_queue: 43,0 R 2048 + 8 [cat]";
    var prng: base.Prng = .init(4);
    for (0..50_000) |_| {
        var text = whole.*;
        for (0..3) |_| text[prng.below(text.len)] = "[]-+ ,R9\n"[prng.below(9)];
        const line = Line.parse(text[0 .. text.len - prng.below(4)]);
        if (line == .read) try testing.expect(line.read.comm.len <= comm_size_max);
    }
}
