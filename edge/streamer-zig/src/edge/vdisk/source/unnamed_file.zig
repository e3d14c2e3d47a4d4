//! A file of the store's disk that nobody else sees and no crash leaves behind: it has no name.

const std = @import("std");
const Call = @import("../subcommand.zig");
const linux = std.os.linux;

/// Returns a file of this size whose bytes are zeros and take no space. `purpose` follows "which"
/// in a message.
pub fn make(call: *const Call, size: u64, purpose: []const u8) Call.Error!i32 {
    const dir_fd = call.opened.on.dir_fd;
    const flags: linux.O =
        .{ .ACCMODE = .RDWR, .CLOEXEC = true, .DIRECTORY = true, .TMPFILE = true };
    var rc = linux.openat(dir_fd, ".", flags, 0o600);
    if (linux.errno(rc) != .SUCCESS) {
        // Not every file system has files without a name.
        var buffer: [64:0]u8 = @splat(0);
        // Imports at once have a file each.
        _ = std.mem.print(&buffer, "imports/.unpacked-{f}", .{Call.randomId()}) catch unreachable;
        const name: [*:0]const u8 = &buffer;
        const named: linux.O =
            .{ .ACCMODE = .RDWR, .CLOEXEC = true, .CREAT = true, .EXCL = true, .NOFOLLOW = true };
        rc = linux.openat(dir_fd, name, named, 0o600);
        if (linux.errno(rc) == .SUCCESS) _ = linux.unlinkat(dir_fd, name, 0);
    }
    if (linux.errno(rc) != .SUCCESS) return call.fail(
        "The directory {s} cannot be written to, which {s} needs.",
        .{ call.path(), purpose },
    );
    const fd: i32 = @intCast(rc);
    if (linux.errno(linux.ftruncate(fd, @intCast(size))) == .SUCCESS) return fd;
    _ = linux.close(fd);
    return call.fail("The file system of {s} takes no file of {d} bytes, which {s} needs.", .{
        call.path(), size, purpose,
    });
}
