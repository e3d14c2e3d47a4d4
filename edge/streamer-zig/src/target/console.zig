//! Writes lines to the device's console. The program's standard error is the console in an
//! initramfs, and stays so after the system has started.

const std = @import("std");
const linux = std.os.linux;

const line_size_max = 1024;

/// Writes one line with one system call; a longer one is cut.
pub fn say(comptime format: []const u8, arguments: anytype) void {
    write(2, "bootfarm-target: " ++ format ++ "\n", arguments);
}

/// A line of output, without the program's name.
pub fn print(comptime format: []const u8, arguments: anytype) void {
    write(1, format ++ "\n", arguments);
}

fn write(fd: i32, comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print(format, arguments) catch {
        buffer[buffer.len - 1] = '\n';
        writer.end = buffer.len;
    };
    _ = linux.write(fd, writer.buffered().ptr, writer.buffered().len);
}
