//! The output of the vdisk commands: sizes and instants for people, JSON for programs, and the
//! progress of long commands.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const Terminal = @import("../terminal.zig").Terminal;
const linux = std.os.linux;

const Manifest = store_module.Manifest;

/// Formats 1536 as "1.5 KiB".
pub const Size = struct {
    bytes: u64,

    pub fn format(size: Size, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        const units = [_][]const u8{ "KiB", "MiB", "GiB", "TiB", "PiB" };
        if (size.bytes < 1024) return writer.print("{d} B", .{size.bytes});
        var scaled: f64 = @floatFromInt(size.bytes);
        var unit: usize = 0;
        scaled /= 1024;
        while (scaled >= 1024 and unit + 1 < units.len) : (unit += 1) scaled /= 1024;
        try writer.print("{d:.1} {s}", .{ scaled, units[unit] });
    }
};

/// Formats an instant as RFC 3339, UTC.
pub const Instant = struct {
    unix_ms: u64,

    pub fn format(instant: Instant, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        // The last year with four digits.
        const seconds = @min(instant.unix_ms / std.time.ms_per_s, 253402300799);
        const epoch: std.time.epoch.EpochSeconds = .{ .secs = seconds };
        const year_day = epoch.getEpochDay().calculateYearDay();
        const month_day = year_day.calculateMonthDay();
        const day = epoch.getDaySeconds();
        try writer.print("{d:0>4}-{d:0>2}-{d:0>2}T{d:0>2}:{d:0>2}:{d:0>2}Z", .{
            year_day.year,
            month_day.month.numeric(),
            month_day.day_index + 1,
            day.getHoursIntoDay(),
            day.getMinutesIntoHour(),
            day.getSecondsIntoMinute(),
        });
    }
};

/// Writes a sentence as a line for programs, cut if it is too long.
pub fn writeError(terminal: *Terminal, sentence: []const u8) void {
    var buffer: [4096]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    const Line = struct { @"error": []const u8 };
    std.json.Stringify.value(Line{ .@"error" = sentence }, .{}, &writer) catch return;
    writer.writeByte('\n') catch return;
    terminal.out(writer.buffered());
}

/// A version that was made, or is shown.
pub const Version = struct {
    manifest: *const Manifest,
    /// The space that it takes in the store; null if it was not asked for or is not known.
    sizes: ?store_module.usage.Sizes = null,

    pub fn jsonStringify(
        version: Version,
        json: *std.json.Stringify,
    ) std.json.Stringify.Error!void {
        return writeVersion(json, version.manifest, version.sizes);
    }
};

fn writeVersion(
    json: *std.json.Stringify,
    manifest: *const Manifest,
    sizes: ?store_module.usage.Sizes,
) std.json.Stringify.Error!void {
    try json.beginObject();
    try field(json, "version", manifest.version);
    try field(json, "vdisk", manifest.vdisk);
    try field(json, "name", manifest.name.constSlice());
    if (manifest.note.count > 0) try field(json, "note", manifest.note.constSlice());
    try field(json, "number", manifest.number);
    try field(json, "parent", if (manifest.isBase()) null else @as(?base.Uuid, manifest.parent));
    try field(
        json,
        "organization",
        if (manifest.organization.eql(.zero)) null else @as(?base.Uuid, manifest.organization),
    );
    try field(json, "sizeBytes", manifest.disk_size);
    try field(json, "createdUnixMs", manifest.created_unix_ms);
    try json.objectField("manifest");
    try json.beginObject();
    var root: [std.base64.standard.Encoder.calcSize(32)]u8 = undefined;
    try field(json, "root", std.base64.standard.Encoder.encode(&root, &manifest.root.hash));
    try field(json, "incarnation", manifest.incarnation);
    try field(json, "counter", manifest.counter);
    try json.endObject();
    try writeBootFile(json, "kernel", manifest.kernel);
    try writeBootFile(json, "initrd", manifest.initrd);
    try field(json, "commandLine", manifest.command_line.constSlice());
    if (sizes) |known| {
        try field(json, "ownBytes", known.own);
        try field(json, "sharedBytes", known.shared);
    }
    try json.endObject();
}

fn writeBootFile(
    json: *std.json.Stringify,
    name: []const u8,
    file: ?store_module.manifest.BootFile,
) std.json.Stringify.Error!void {
    try json.objectField(name);
    const given = file orelse return json.write(null);
    try json.beginObject();
    try json.objectField("sha256");
    try json.print("\"{x}\"", .{&given.hash});
    try field(json, "sizeBytes", given.size);
    try json.endObject();
}

fn field(
    json: *std.json.Stringify,
    name: []const u8,
    value: anytype,
) std.json.Stringify.Error!void {
    try json.objectField(name);
    try json.write(value);
}

/// Shows one line at a time: on a terminal it replaces the previous one, as JSON each is its own
/// line, and otherwise nothing is shown.
pub const ProgressLine = struct {
    how: enum { none, terminal, json },
    started_us: u64,
    said_us: u64 = 0,

    const pause_us = 500 * std.time.us_per_ms;

    pub fn init(is_json: bool) ProgressLine {
        const how: @FieldType(ProgressLine, "how") =
            if (is_json) .json else if (isTerminal(2)) .terminal else .none;
        return .{ .how = how, .started_us = host.sys.monotonicUs() };
    }

    pub const Figures = struct { position: u64, size: ?u64 };

    /// Updates as often as a person can read it.
    pub fn update(line: *ProgressLine, figures: Figures) void {
        const now_us = host.sys.monotonicUs();
        if (line.how == .none or now_us -| line.said_us < pause_us) return;
        line.said_us = now_us;
        const rate = figures.position * std.time.us_per_s / @max(1, now_us - line.started_us);
        var buffer: [256]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        switch (line.how) {
            .none => unreachable,
            .json => {
                writer.print(
                    "{{\"progress\":{{\"positionBytes\":{d},\"sizeBytes\":{?d},\"bytesPerSecond\":{d}}}}}\n",
                    .{ figures.position, figures.size, rate },
                ) catch return;
                host.sys.writeAll(1, writer.buffered()) catch {};
            },
            .terminal => {
                writer.print("\r{f}", .{Size{ .bytes = figures.position }}) catch return;
                if (figures.size) |size| writer.print(" of {f}, {d} %", .{
                    Size{ .bytes = size },
                    @as(u64, @intCast(@as(u128, figures.position) * 100 / @max(1, size))),
                }) catch return;
                writer.print(", {f}/s\x1b[K", .{Size{ .bytes = rate }}) catch return;
                host.sys.writeAll(2, writer.buffered()) catch {};
            },
        }
    }

    /// Ends the line, so that what follows begins on a new one.
    pub fn end(line: *ProgressLine) void {
        if (line.how == .terminal and line.said_us > 0) host.sys.writeAll(2, "\r\x1b[K") catch {};
        line.how = .none;
    }
};

fn isTerminal(fd: i32) bool {
    var size: std.posix.winsize = undefined;
    return linux.errno(linux.ioctl(fd, linux.T.IOCGWINSZ, @intFromPtr(&size))) == .SUCCESS;
}

const testing = std.testing;

test "sizes are printed in the unit that people read" {
    var buffer: [32]u8 = undefined;
    for ([_]struct { u64, []const u8 }{
        .{ 0, "0 B" },
        .{ 1536, "1.5 KiB" },
        .{ 100 << 30, "100.0 GiB" },
        .{ std.math.maxInt(u64), "16384.0 PiB" },
    }) |case| try testing.expectEqualStrings(case[1], try std.mem.print(&buffer, "{f}", .{
        Size{ .bytes = case[0] },
    }));
}

test "an instant is printed in UTC" {
    var buffer: [32]u8 = undefined;
    const text = try std.mem.print(&buffer, "{f}", .{Instant{ .unix_ms = 1_790_000_000_000 }});
    try testing.expectEqualStrings("2026-09-21T14:13:20Z", text);
}
