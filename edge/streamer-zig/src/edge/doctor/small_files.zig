//! Reads short files, most of them in /proc, whole into a buffer.

const std = @import("std");
const host = @import("host");
const linux = std.os.linux;

/// Returns null if the file cannot be read; what does not fit is cut.
pub fn read(path: [:0]const u8, buffer: []u8) ?[]u8 {
    const rc = linux.openat(linux.AT.FDCWD, path, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(host.sys.check(rc) catch return null);
    defer host.sys.close(fd);
    var filled: usize = 0;
    while (filled < buffer.len) {
        const rest = buffer[filled..];
        const count = host.sys.check(linux.read(fd, rest.ptr, rest.len)) catch |err| switch (err) {
            error.Interrupted => continue,
            else => return null,
        };
        if (count == 0) break;
        filled += count;
    }
    return buffer[0..filled];
}
