//! `bootfarm-sim history`: parses its options and opens the data directory of the edge whose report
//! log gets the boots.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const history = @import("history.zig");

pub const usage =
    \\Usage: bootfarm-sim history --data DIR [OPTIONS]
    \\
    \\Writes simulated boots, marked as generated, into the report log of a stopped edge. The edge reports
    \\them to the API like any boot when it starts.
    \\
    \\  --data DIR        the edge's data directory
    \\  --days N          length of the history until now (default 30, at most 366)
    \\  --seed N          seed; the same seed gives the same boots (default 1)
    \\  --devices N       number of devices (default 6, at most 64)
    \\  --first-mac MAC   address of the first device; the others count up (default 02:bf:00:00:00:01)
    \\
    \\Example:
    \\  bootfarm-sim history --data /var/lib/bootfarm --days 7
    \\
;

const Parsed = struct {
    data: ?[]const u8 = null,
    options: history.Options,
};

/// `args` are those after `history`. Returns the exit code; a problem is one sentence on `errors`.
pub fn run(
    io: std.Io,
    gpa: std.mem.Allocator,
    args: []const [:0]const u8,
    errors: *std.Io.Writer,
) !u8 {
    var parsed: Parsed = .{ .options = .{
        .seed = 1,
        .days = 30,
        .devices = 6,
        .first_mac = .fromInt(0x02bf00000001),
        .now_unix_ms = host.sys.unixMs(),
    } };
    if (args.len == 1 and std.mem.eql(u8, args[0], "--help")) {
        try errors.writeAll(usage);
        return 0;
    }
    var index: usize = 0;
    while (index < args.len) : (index += 2) {
        const value = if (index + 1 < args.len) args[index + 1] else "";
        if (parse(&parsed, args[index], value)) continue;
        try errors.print(
            "bootfarm-sim: history: {s} {s} is not understood; see bootfarm-sim history --help\n",
            .{ args[index], value },
        );
        return 1;
    }
    const path = parsed.data orelse {
        try errors.writeAll("bootfarm-sim: history: --data DIR is missing\n");
        return 1;
    };
    const count = append(io, gpa, path, parsed.options) catch |err| {
        const why = switch (err) {
            error.Locked => "an edge is running with it; stop the edge first",
            error.NotUsable => "it cannot be read or written",
            error.LogFromTheFuture => "its report log is damaged",
            error.ReportLogFull => "its report log is full",
            else => @errorName(err),
        };
        try errors.print("bootfarm-sim: history: data directory {s}: {s}\n", .{ path, why });
        return 1;
    };
    try errors.print("wrote {d} generated boots of {d} days into {s}\n", .{
        count, parsed.options.days, path,
    });
    return 0;
}

fn append(io: std.Io, gpa: std.mem.Allocator, path: []const u8, options: history.Options) !u64 {
    var data: host.DataDir = try .open(io, path);
    defer data.close();
    const reports = try data.subDir("reports");
    defer reports.close(io);
    var files: host.LogFiles = .{ .io = io, .dir = reports };
    const epoch = data.nextEpoch(host.ReportLog.newestEpoch(&files), host.sys.unixMs());
    var log: host.ReportLog = try .open(gpa, files, .{ .epoch = epoch.number });
    defer log.deinit(gpa);
    return history.write(gpa, options, &log);
}

fn parse(parsed: *Parsed, name: []const u8, value: []const u8) bool {
    const options = &parsed.options;
    const Option = enum { @"--data", @"--days", @"--seed", @"--devices", @"--first-mac" };
    if (value.len == 0) return false;
    switch (std.meta.stringToEnum(Option, name) orelse return false) {
        .@"--data" => parsed.data = value,
        .@"--days" => options.days = parseAtMost(u16, value, history.days_max) orelse return false,
        .@"--seed" => options.seed = std.fmt.parseInt(u64, value, 10) catch return false,
        .@"--devices" => options.devices = parseAtMost(u8, value, history.devices_max) orelse
            return false,
        .@"--first-mac" => options.first_mac = base.Mac.parse(value) catch return false,
    }
    return true;
}

fn parseAtMost(comptime Number: type, text: []const u8, limit: Number) ?Number {
    const number = std.fmt.parseInt(Number, text, 10) catch return null;
    return if (number >= 1 and number <= limit) number else null;
}
