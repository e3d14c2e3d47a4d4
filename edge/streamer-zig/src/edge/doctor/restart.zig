//! Names the devices whose writes are in the edge's process and end with it, before somebody
//! restarts the edge: class `edge`, and `device_ram_overflow` once it has sent writes to the edge
//! (docs/guides/write-caches.md). Their disks are then lost, and they restart. An exchange of the
//! program keeps them. Reads the journal of the edge, which may be running.

const std = @import("std");
const Io = std.Io;
const core = @import("core");
const readDevices = @import("host").BootJournal.readDevices;
const Findings = @import("findings.zig");

/// The rest is counted.
const named_max = 20;

/// `level` is that of a finding of such devices.
pub fn check(
    findings: *Findings,
    io: Io,
    data: []const u8,
    level: Findings.Level,
) error{OutOfMemory}!void {
    // `checkSpace` reports a directory that cannot be read.
    var dir = Io.Dir.cwd().openDir(io, data, .{}) catch return;
    defer dir.close(io);
    const devices = readDevices(findings.arena, dir.handle) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        error.Missing => return,
        else => return findings.report(
            .warning,
            .restart,
            try findings.print("The boots in {s} cannot be read.", .{data}),
            "Check its permissions: devices whose writes end with the edge are not known.",
        ),
    };
    var names: Io.Writer.Allocating = .init(findings.arena);
    var count: u32 = 0;
    for (devices) |*device| {
        if (!device.is_alive or !endsWithTheEdge(device.class)) continue;
        count += 1;
        if (count > named_max) continue;
        names.writer.print("{s}{f}", .{ if (count > 1) ", " else "", device.mac }) catch
            return error.OutOfMemory;
    }
    if (count == 0) return findings.ok(.restart, "No device loses its writes with the edge.", .{});
    if (count > named_max) names.writer.print(" and {d} more", .{count - named_max}) catch
        return error.OutOfMemory;
    try findings.report(
        level,
        .restart,
        try findings.print(
            "When the edge ends, these devices lose their writes, and restart ({d}): {s}.",
            .{ count, names.written() },
        ),
        "systemctl reload bootfarm-edge exchanges the program, and keeps them. Restart the edge " ++
            "when these devices are off, or use the write cache edge_persistent.",
    );
}

fn endsWithTheEdge(class: core.boot.Guest.CacheClass) bool {
    return class.isAtTheEdge() and !class.isKept();
}
