//! Prints the results of `bootfarm-sim boot`: one line for each boot, as a table or as JSON.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Device = core.device.Device;

const columns = [_]struct { title: []const u8, from: Device.Phase, to: Device.Phase }{
    .{ .title = "dhcp", .from = .dhcp, .to = .nbp },
    .{ .title = "nbp", .from = .nbp, .to = .ipxe_dhcp },
    .{ .title = "dhcp2", .from = .ipxe_dhcp, .to = .loader },
    .{ .title = "loader", .from = .loader, .to = .breather },
    .{ .title = "breather", .from = .breather, .to = .stage2 },
    .{ .title = "stage2", .from = .stage2, .to = .ready },
    .{ .title = "total", .from = .dhcp, .to = .ready },
};

pub fn writeHeader(writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.writeAll("device             outcome");
    for (columns) |column| try writer.print(" {s:>9}", .{column.title});
    try writer.writeAll("  [ms]   reads      bytes repeats resumed\n");
}

pub fn writeRow(
    writer: *std.Io.Writer,
    device: *const Device,
    outcome: Device.Outcome,
) std.Io.Writer.Error!void {
    try writer.print("{f}  {s:<7}", .{ device.profile.mac, @tagName(outcome) });
    for (columns) |column| {
        if (durationUs(device, column.from, column.to)) |duration_us| {
            try writer.print(" {d:>9.1}", .{@as(f64, @floatFromInt(duration_us)) / 1000});
        } else try writer.print(" {s:>9}", .{"-"});
    }
    const statistics = &device.client.statistics;
    try writer.print("       {d:>7} {d:>10} {d:>7} {d:>7}", .{
        statistics.reads, statistics.read_bytes, statistics.retransmits, statistics.resumptions,
    });
    switch (outcome) {
        .ready => {},
        .failed => |failed| try writer.print("  {t}: {s}", .{ failed.phase, failed.text.slice() }),
    }
    try writer.writeByte('\n');
}

/// One object and a newline; times in microseconds, absent if the boot did not get so far.
pub fn writeJson(
    writer: *std.Io.Writer,
    device: *const Device,
    outcome: Device.Outcome,
    boot: u32,
) !void {
    var json: std.json.Stringify = .{ .writer = writer };
    try json.beginObject();
    try json.objectField("mac");
    try json.write(&device.profile.mac.toText());
    try json.objectField("boot");
    try json.write(boot);
    try json.objectField("outcome");
    try json.write(@tagName(outcome));
    switch (outcome) {
        .ready => {},
        .failed => |failed| {
            try json.objectField("phase");
            try json.write(@tagName(failed.phase));
            try json.objectField("text");
            try json.write(failed.text);
        },
    }
    for (columns) |column| {
        const duration_us = durationUs(device, column.from, column.to) orelse continue;
        var name: [16]u8 = undefined;
        try json.objectField(try std.mem.print(&name, "{s}Us", .{column.title}));
        try json.write(duration_us);
    }
    const statistics = &device.client.statistics;
    try writeCounts(&json, .{
        .nbpBytes = device.timings.nbp_bytes,
        .loaderBytes = device.timings.loader_bytes,
        .reads = statistics.reads,
        .readBytes = statistics.read_bytes,
        .repeats = statistics.retransmits,
        .missingFragments = statistics.missing_fragments,
        .unexpectedFragments = statistics.unexpected_fragments,
        .storeErrors = statistics.store_errors,
        .resumptions = statistics.resumptions,
        .handOvers = statistics.failovers,
        .longestReadUs = device.longest_read_us,
    });
    if (device.ahead) |*ahead| try writeCounts(&json, .{
        .aheadReads = ahead.statistics.reads,
        .aheadBytes = ahead.statistics.bytes,
        .aheadHits = ahead.statistics.hits,
        .aheadWaits = ahead.statistics.waits,
        .aheadUsedBytes = ahead.statistics.used_bytes,
        .demandReads = ahead.statistics.misses,
    });
    try json.endObject();
    try writer.writeByte('\n');
}

fn writeCounts(json: *std.json.Stringify, counts: anytype) !void {
    const info = @typeInfo(@TypeOf(counts)).@"struct";
    inline for (info.field_names) |name| {
        try json.objectField(name);
        try json.write(@field(counts, name));
    }
}

fn durationUs(device: *const Device, from: Device.Phase, to: Device.Phase) ?u64 {
    const begin = device.timings.begins.get(from) orelse return null;
    const end = device.timings.begins.get(to) orelse return null;
    return end - begin;
}
