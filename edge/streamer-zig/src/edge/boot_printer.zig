//! Prints a boot that is over: a table of its phases, or one line of JSON with the fields of the
//! report.

const std = @import("std");
const base = @import("base");
const core = @import("core");

const Boot = core.boot.Boot;
const Phase = core.boot_phase.Phase;
const Writer = std.Io.Writer;

pub fn writeJson(writer: *Writer, boot: *const Boot) Writer.Error!void {
    var buffer: [core.boot_report.size_max]u8 = undefined;
    try writer.writeAll(core.boot_report.encode(boot, .{ .revision = boot.revision }, &buffer));
    try writer.writeByte('\n');
}

pub fn writeTable(writer: *Writer, boot: *const Boot) Writer.Error!void {
    try writer.print("boot {f}  {f}", .{ boot.identity.id, boot.identity.mac });
    if (boot.facts.ip) |ip| try writer.print("  {f}", .{ip});
    if (boot.isSimulated()) try writer.writeAll("  simulated");
    try writer.writeAll("  ");
    try writeOutcome(writer, boot);
    try writer.writeAll(
        "\n  phase         begin ms   length ms   bytes in    bytes out  packets in/out  retries  missing  reads\n",
    );
    for (std.enums.values(Phase)) |phase| {
        const record = boot.record(phase) orelse continue;
        const traffic = &record.traffic;
        try writer.print("  {s:<10} {d:>11.1} {d:>11.1} {d:>10} {d:>12} {d:>7}/{d:<7} {d:>7} {d:>8} {d:>6}\n", .{
            @tagName(phase),
            ms(record.start_us),
            ms(record.durationUs() orelse 0),
            traffic.bytes_in,
            traffic.bytes_out,
            traffic.packets_in,
            traffic.packets_out,
            traffic.retries,
            traffic.missing_fragments,
            record.reads,
        });
    }
}

fn writeOutcome(writer: *Writer, boot: *const Boot) Writer.Error!void {
    switch (boot.outcome.?) {
        .ready => try writer.print(
            "ready after {d:.3} s",
            .{@as(f64, @floatFromInt(boot.last_us)) / 1e6},
        ),
        .superseded => try writer.writeAll("superseded: the device started again"),
        .silent => |phase| try writer.print("silent in {t}", .{phase}),
        .failed => |*failure| {
            try writer.print("failed in {t}: {t}", .{ failure.phase, failure.cause });
            if (failure.text.size > 0) try writer.print(" {f}", .{failure.text});
        },
    }
    if (boot.reconnects > 0) try writer.print(", {d} reconnects", .{boot.reconnects});
}

fn ms(us: u64) f64 {
    return @as(f64, @floatFromInt(us)) / 1000;
}
