//! The process that changes a store. It writes itself into the lock file while it holds the lock,
//! so that others, also on another machine, can report it.

const std = @import("std");
const Files = @import("files.zig");

const Handle = Files.Handle;

pub const size_max = 256;
const separator = '\n';

pub const Holder = struct {
    host: []const u8,
    pid: u32,
    /// The command, in the words of the command line.
    command: []const u8,
};

/// Only for people: the lock is valid without it.
pub fn write(files: Files, lock: Handle, holder: *const Holder) void {
    var buffer: [size_max]u8 = undefined;
    const command = holder.command[0..@min(holder.command.len, 64)];
    const host = holder.host[0..@min(holder.host.len, 64)];
    const text = std.mem.print(&buffer, "{s}\n{d}\n{s}\n", .{ host, holder.pid, command }) catch
        unreachable;
    files.setSize(lock, 0) catch return;
    files.write(lock, text, 0) catch return;
}

/// Null if the file holds nothing readable.
pub fn read(files: Files, lock_name: []const u8, buffer: *[size_max]u8) ?Holder {
    const handle = files.open(lock_name, .read) catch return null;
    defer files.close(handle);
    const size = files.read(handle, buffer, 0) catch return null;
    var lines = std.mem.splitScalar(u8, buffer[0..size], separator);
    const host, const pid, const command = .{
        lines.first(),
        lines.next() orelse return null,
        lines.next() orelse return null,
    };
    if (lines.next() == null) return null;
    for ([_][]const u8{ host, command }) |text|
        for (text) |byte| if (!std.ascii.isPrint(byte)) return null;
    return .{
        .host = host,
        .pid = std.fmt.parseInt(u32, pid, 10) catch return null,
        .command = command,
    };
}

const testing = std.testing;
const LinuxFiles = @import("linux_files.zig");

test "the holder of a lock is read back, and foreign bytes name nobody" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const handle = try files.create("lock");
    defer files.close(handle);
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqual(null, read(files, "lock", &buffer));
    write(files, handle, &.{ .host = "edge-1", .pid = 4711, .command = "vdisk import disk.raw" });
    const found = read(files, "lock", &buffer).?;
    try testing.expectEqualStrings("edge-1", found.host);
    try testing.expectEqual(4711, found.pid);
    try testing.expectEqualStrings("vdisk import disk.raw", found.command);
    try files.write(handle, "\x1b[2J", 0);
    try testing.expectEqual(null, read(files, "lock", &buffer));
}

test "long names are cut, and a text with a part missing or a control character names nobody" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const handle = try files.create("lock");
    defer files.close(handle);
    var buffer: [size_max]u8 = undefined;
    const long: [65]u8 = @splat('n');
    write(files, handle, &.{ .host = &long, .pid = std.math.maxInt(u32), .command = &long });
    const found = read(files, "lock", &buffer).?;
    try testing.expectEqualStrings(long[0..64], found.host);
    try testing.expectEqualStrings(long[0..64], found.command);
    try testing.expectEqual(std.math.maxInt(u32), found.pid);
    write(files, handle, &.{ .host = "a", .pid = 1, .command = "b" });
    try testing.expectEqual(6, try files.size(handle));
    for ([_][]const u8{
        "a",
        "a\n1",
        "a\n1\nb",
        "a\nx\nb\n",
        "a\n-1\nb\n",
        "a\n1\n\x1b\n",
    }) |text| {
        try files.setSize(handle, 0);
        try files.write(handle, text, 0);
        try testing.expectEqual(null, read(files, "lock", &buffer));
    }
    try testing.expectEqual(null, read(files, "absent", &buffer));
}
