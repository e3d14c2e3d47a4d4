//! Prints a finished boot: a table of its phases and of the device's own steps, or one line of JSON
//! with the fields of the report. Steps that arrive later are printed alone, or the JSON is printed
//! once more.

const std = @import("std");
const base = @import("base");
const core = @import("core");

const Boot = core.boot.Boot;
const Phase = core.boot.phase.Phase;
const Writer = std.Io.Writer;

pub fn writeJson(writer: *Writer, boot: *const Boot) Writer.Error!void {
    var buffer: [core.boot.report.size_max]u8 = undefined;
    try writer.writeAll(core.boot.report.encode(boot, .{ .revision = boot.revision }, &buffer));
    try writer.writeByte('\n');
}

/// Enough for the table and for the JSON.
pub const size_max = 12 * 1024;

pub fn writeTable(
    writer: *Writer,
    boot: *const Boot,
    part: enum { whole, steps },
) Writer.Error!void {
    try writer.print("boot {f}  {f}", .{ boot.identity.id, boot.identity.mac });
    if (part == .steps) {
        try writer.writeByte('\n');
        return writeSteps(writer, boot);
    }
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
        try writer.print(
            "  {s:<10} {d:>11.1} {d:>11.1} {d:>10} {d:>12} {d:>7}/{d:<7} {d:>7} {d:>8} {d:>6}\n",
            .{
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
            },
        );
    }
    try writeWhatWasHeard(writer, boot);
    try writeSteps(writer, boot);
}

/// Writes what the edge heard during a boot that did not become ready: the meaning of its cause,
/// the offers on the segment, and the last packets.
fn writeWhatWasHeard(writer: *Writer, boot: *const Boot) Writer.Error!void {
    switch (boot.outcome.?) {
        .ready, .local_disk => return,
        .failed => |*failure| try writeCause(writer, failure.cause),
        .silent, .superseded => {},
    }
    for (&boot.offers.slots) |*place| if (place.*) |*offer| {
        try writer.print("  offer of {f}{s} after {d:.1} ms:", .{
            offer.server, if (offer.ours) " (this edge)" else "", ms(offer.at_us),
        });
        if (offer.your_ip) |ip| try writer.print(" address {f}", .{ip});
        if (offer.boots()) try writer.print(" boot file {f}", .{offer.file});
        if (offer.next_server) |ip| if (offer.boots()) try writer.print(" from {f}", .{ip});
        if (offer.relay) |ip| try writer.print(" through {f}", .{ip});
        try writer.writeByte('\n');
    };
    try writeLast(writer, "from the device", boot.last_packets.from_device);
    try writeLast(writer, "from this edge", boot.last_packets.from_edge);
}

fn writeCause(writer: *Writer, cause: core.boot.phase.Cause) Writer.Error!void {
    var memory: [32 * 1024]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const words = core.boot.phase.causeText(fixed.allocator(), cause) catch return;
    try writer.print("  {s}\n  {s}\n", .{ words.sentence, words.remedy });
}

fn writeLast(
    writer: *Writer,
    whence: []const u8,
    noted: ?core.boot.packets.PacketRecord,
) Writer.Error!void {
    const last = noted orelse return writer.print("  last packet {s}: none\n", .{whence});
    try writer.print("  last packet {s}: {f} after {d:.1} ms\n", .{
        whence, last.packet, ms(last.at_us),
    });
}

/// Writes what the device measured itself. Start times are on the boot's clock, like those of the
/// phases.
fn writeSteps(writer: *Writer, boot: *const Boot) Writer.Error!void {
    const guest = if (boot.guest) |*value| value else return;
    if (guest.write_cache) |cache| try writer.print(
        "  write cache in the device: {d} of {d} MiB used\n",
        .{ cache.used >> 20, cache.size >> 20 },
    );
    const sorted: core.boot.report.SortedSteps = .init(guest);
    if (sorted.count == 0) return;
    try writer.writeAll("  device's step                                begin ms   length ms\n");
    for (sorted.slice()) |step| try writer.print("  {s:<10} {s:<32} {d:>9.1} {d:>11.1}\n", .{
        @tagName(step.group),
        step.name,
        @as(f64, @floatFromInt(guest.kernel_start_us +| step.start_us)) / 1000,
        ms(step.duration_us),
    });
}

fn writeOutcome(writer: *Writer, boot: *const Boot) Writer.Error!void {
    switch (boot.outcome.?) {
        .ready => try writer.print(
            "ready after {d:.3} s",
            .{@as(f64, @floatFromInt(boot.last_us)) / 1e6},
        ),
        .superseded => try writer.writeAll("superseded: the device started again"),
        .local_disk => try writer.writeAll(
            "local disk: the boot menu sent the device to its own disk",
        ),
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
