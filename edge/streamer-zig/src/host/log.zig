//! The log of the running edge, one line per event on standard error.

const std = @import("std");
const sys = @import("sys.zig");

const line_size_max = 4096;

/// A line that is too long is left out. Each line is one write, from any thread.
pub fn info(comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_size_max]u8 = undefined;
    const text =
        std.mem.print(&buffer, "bootfarm-edge: " ++ format ++ "\n", arguments) catch return;
    sys.writeAll(2, text) catch {};
}
