//! The DHCP server's leases on disk, so that a restarted edge gives each device its address again.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("sys.zig");
const DataDir = @import("data_dir.zig").DataDir;

/// One lease; names are those of the JSON. 0: it has run out, the address is remembered.
const Row = struct { ip: base.Ip4, mac: base.Mac, untilUnixMs: u64 };

/// Rows that do not fit the pool any more are left out. A file that cannot be read is like none.
pub fn load(
    data: *const DataDir,
    gpa: std.mem.Allocator,
    leases: *core.DhcpLeases,
    now_us: u64,
) void {
    var arena: std.heap.ArenaAllocator = .init(gpa);
    defer arena.deinit();
    const text = data.read(arena.allocator(), "leases.json") catch return;
    const rows = std.json.parseFromSliceLeaky([]const Row, arena.allocator(), text, .{
        .ignore_unknown_fields = true,
    }) catch return;
    const now_unix_ms = sys.unixMs();
    for (rows) |row| _ = leases.restore(now_us, .{
        .ip = row.ip,
        .mac = row.mac,
        .remaining_us = (row.untilUnixMs -| now_unix_ms) *| std.time.us_per_ms,
    });
}

/// `buffer` holds all rows of the largest pool.
pub fn save(
    data: *const DataDir,
    leases: *const core.DhcpLeases,
    now_us: u64,
    buffer: *Buffer,
) sys.Error!void {
    var writer: std.Io.Writer = .fixed(buffer);
    write(leases, now_us, &writer) catch return error.SystemCallFailed;
    try data.write("leases.json", writer.buffered());
}

const row_size_max = 96;
pub const Buffer = [row_size_max * core.DhcpLeases.pool_size_max + 16]u8;

fn write(
    leases: *const core.DhcpLeases,
    now_us: u64,
    writer: *std.Io.Writer,
) std.json.Stringify.Error!void {
    const now_unix_ms = sys.unixMs();
    var json: std.json.Stringify = .{ .writer = writer };
    try json.beginArray();
    var iterator = leases.dump(now_us);
    while (iterator.next()) |record| {
        const left_ms = record.remaining_us / std.time.us_per_ms;
        const row: Row = .{
            .ip = record.ip,
            .mac = record.mac,
            .untilUnixMs = if (record.remaining_us == 0) 0 else now_unix_ms + left_ms,
        };
        try json.write(row);
    }
    try json.endArray();
}
