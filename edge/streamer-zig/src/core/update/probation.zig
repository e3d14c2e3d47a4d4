//! A program that has just taken over an edge is on probation: it has to serve, and to reach the
//! control plane if the program before it did. One that ends in that time, or is not healthy at its
//! end, is left for the former one. What the host must remember across starts is a `Record`.

const std = @import("std");
const assert = std.debug.assert;

/// It must have served for this long, unless the edge's options name another time.
const serving_us_default = 10 * std.time.us_per_s;
/// After so many times of it, a program that is not healthy is left. Reconnecting to a control
/// plane takes up to half of the default minute.
const patience_factor = 6;
/// The start by the former program itself. A second one means that the program ended.
const starts_max = 1;

/// Kept in the data directory for as long as the probation lasts.
pub const Record = struct {
    /// The control plane took what the former program sent.
    was_accepted: bool,
    starts: u8 = 0,

    pub const size_max = "answered 255\n".len;

    pub fn write(record: *const Record, buffer: *[size_max]u8) []const u8 {
        const word = if (record.was_accepted) "answered" else "alone";
        return std.mem.print(buffer, "{s} {d}\n", .{ word, record.starts }) catch unreachable;
    }

    /// Returns null for what is no record: there is no probation then.
    pub fn parse(text: []const u8) ?Record {
        var words = std.mem.splitScalar(u8, std.mem.cutSuffix(u8, text, "\n") orelse
            return null, ' ');
        const word = words.first();
        const was_accepted = std.mem.eql(u8, word, "answered");
        if (!was_accepted and !std.mem.eql(u8, word, "alone")) return null;
        const starts = std.fmt.parseInt(u8, words.rest(), 10) catch return null;
        return .{ .was_accepted = was_accepted, .starts = starts };
    }

    /// Counts a start of the program; returns false if it had its chance.
    pub fn start(record: *Record) bool {
        record.starts +|= 1;
        assert(record.starts > 0);
        return record.starts <= starts_max;
    }
};

pub const Verdict = enum { open, passed, failed };

pub const Probation = @This();

was_accepted: bool,
began_us: u64,
serving_us_min: u64 = serving_us_default,

/// Called once a second while the edge serves; `is_accepted`: the control plane takes what
/// the edge sends. One that refuses everything would never be asked for another release.
pub fn judge(probation: *const Probation, now_us: u64, is_accepted: bool) Verdict {
    assert(now_us >= probation.began_us);
    const served_us = now_us - probation.began_us;
    const is_healthy = is_accepted or !probation.was_accepted;
    if (is_healthy and served_us >= probation.serving_us_min) return .passed;
    return if (served_us < patience_factor * probation.serving_us_min) .open else .failed;
}

const testing = std.testing;

test "a shorter probation is left sooner as well" {
    const short: Probation =
        .{ .was_accepted = true, .began_us = 5, .serving_us_min = 2 * std.time.us_per_s };
    try testing.expectEqual(.open, short.judge(4 + short.serving_us_min, true));
    try testing.expectEqual(.passed, short.judge(5 + short.serving_us_min, true));
    try testing.expectEqual(.open, short.judge(4 + patience_factor * short.serving_us_min, false));
    try testing.expectEqual(
        .failed,
        short.judge(5 + patience_factor * short.serving_us_min, false),
    );
}

test "a program that serves passes, and needs the control plane only if the former one had it" {
    const limit_us = patience_factor * serving_us_default;
    const alone: Probation = .{ .was_accepted = false, .began_us = 5 };
    try testing.expectEqual(.open, alone.judge(5, false));
    try testing.expectEqual(.open, alone.judge(4 + serving_us_default, false));
    try testing.expectEqual(.passed, alone.judge(5 + serving_us_default, false));
    const answered: Probation = .{ .was_accepted = true, .began_us = 5 };
    try testing.expectEqual(.open, answered.judge(4 + serving_us_default, true));
    try testing.expectEqual(.open, answered.judge(4 + limit_us, false));
    try testing.expectEqual(.passed, answered.judge(4 + limit_us, true));
    try testing.expectEqual(.failed, answered.judge(5 + limit_us, false));
}

test "a program is started once on probation, and its record survives being written" {
    var buffer: [Record.size_max]u8 = undefined;
    for ([_]bool{ true, false }) |was_accepted| {
        var record: Record = .{ .was_accepted = was_accepted };
        try testing.expect(record.start());
        var again = Record.parse(record.write(&buffer)).?;
        try testing.expectEqualDeep(record, again);
        try testing.expect(!again.start());
        try testing.expectEqual(2, Record.parse(again.write(&buffer)).?.starts);
    }
    for ([_][]const u8{ "", "alone", "alone 1", "other 1\n", "alone 256\n", "answered\n" }) |text|
        try testing.expectEqual(null, Record.parse(text));
}
