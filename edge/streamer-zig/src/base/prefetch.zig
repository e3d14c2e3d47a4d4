//! Requests memory from the processor shortly before its use, so that other work continues while it
//! loads. It changes nothing but time.

const std = @import("std");

const line_size = 64;

/// Prefetches the pointer's whole target for writing.
pub fn prefetch(pointer: anytype) void {
    const bytes = std.mem.asBytes(pointer);
    var at: usize = 0;
    while (at < bytes.len) : (at += line_size) @prefetch(&bytes[at], .{ .rw = .write });
    // It may start in the middle of a line.
    @prefetch(&bytes[bytes.len - 1], .{ .rw = .write });
}
