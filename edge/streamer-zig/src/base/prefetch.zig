//! Asks the processor for memory a moment before it is used, so that other work goes on while it comes. It changes nothing but time.

const std = @import("std");

const line_size = 64;

/// All of what a pointer leads to; it is going to be changed.
pub fn prefetch(pointer: anytype) void {
    const bytes = std.mem.asBytes(pointer);
    var at: usize = 0;
    while (at < bytes.len) : (at += line_size) @prefetch(&bytes[at], .{ .rw = .write });
    // It may begin in the middle of a line.
    @prefetch(&bytes[bytes.len - 1], .{ .rw = .write });
}
