//! How far the copy of this machine's disk is: `capture` writes it, and the process that serves the
//! boot's disk reports it to the edge in place of the fill of a write cache (STREAM.md, REPORT).
//! Both run in the initramfs. One small write replaces the whole file, so that no reader finds half
//! of it.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const Level = @import("../write_cache.zig").Level;

pub const path = "/run/bootfarm/captured";
/// Bytes that are copied, then the size of the disk.
const file_size = 16;

/// What cannot be written is not reported: the copy matters more.
pub fn write(to: [*:0]const u8, done: u64, size: u64) void {
    var bytes: [file_size]u8 = undefined;
    std.mem.writeInt(u64, bytes[0..8], done, .little);
    std.mem.writeInt(u64, bytes[8..16], size, .little);
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CREAT = true, .CLOEXEC = true };
    const fd: i32 = @intCast(sys.check(linux.open(to, flags, 0o600)) catch return);
    defer sys.close(fd);
    sys.writeAllAt(fd, &bytes, 0) catch {};
}

/// Null: this machine captures nothing, or has not copied anything yet.
pub fn read(from: [*:0]const u8) ?Level {
    var buffer: [file_size + 1]u8 = undefined;
    const bytes = sys.readFile(from, &buffer) catch return null;
    if (bytes.len != file_size) return null;
    const done = std.mem.readInt(u64, bytes[0..8], .little);
    const size = std.mem.readInt(u64, bytes[8..16], .little);
    return if (size == 0 or done > size) null else .{ .used_bytes = done, .size_bytes = size };
}

const testing = std.testing;

test "the last progress is read, and nothing else is one" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [128]u8 = undefined;
    const file =
        try std.mem.printSentinel(&buffer, ".zig-cache/tmp/{s}/captured", .{tmp.sub_path}, 0);
    try testing.expectEqual(null, read(file));
    write(file, 0, 1 << 40);
    try testing.expectEqual(Level{ .used_bytes = 0, .size_bytes = 1 << 40 }, read(file));
    write(file, 3 << 30, 1 << 40);
    try testing.expectEqual(Level{ .used_bytes = 3 << 30, .size_bytes = 1 << 40 }, read(file));
    write(file, 2, 1);
    try testing.expectEqual(null, read(file));
}
