//! Reads small files of the kernel and of init.sh at once.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;

/// Returns what fits; nothing if the file cannot be read.
pub fn read(path: [*:0]const u8, buffer: []u8) []const u8 {
    return readIn(linux.AT.FDCWD, path, buffer);
}

/// Like `read`, below an open folder.
pub fn readIn(folder_fd: i32, path: [*:0]const u8, buffer: []u8) []const u8 {
    const fd: i32 =
        @intCast(sys.check(linux.openat(folder_fd, path, .{ .CLOEXEC = true }, 0)) catch return "");
    defer sys.close(fd);
    const size = sys.readAt(fd, buffer, 0) catch return "";
    return buffer[0..size];
}
