//! Reads the part of a file that is in memory, without waiting for a disk (preadv2(2), RWF_NOWAIT).

const std = @import("std");
const linux = std.os.linux;

/// How the files of one file system can be read.
pub const Support = enum(u8) {
    /// The default: ask the file system.
    asks,
    /// The file system cannot report what is in memory.
    never,
    /// Everything is in memory.
    always,
};

/// Returns the bytes read without waiting for a disk; 0 also if that cannot be told. May be called
/// from any thread.
pub fn read(known: *std.atomic.Value(Support), fd: i32, buffer: []u8, offset: u64) usize {
    const flags: u32 = switch (known.load(.monotonic)) {
        .asks => linux.RWF.NOWAIT,
        .never => return 0,
        .always => 0,
    };
    const vector: [1]std.posix.iovec = .{.{ .base = buffer.ptr, .len = buffer.len }};
    const rc = linux.preadv2(fd, &vector, 1, @intCast(offset), flags);
    switch (linux.errno(rc)) {
        .SUCCESS => return rc,
        .OPNOTSUPP, .NOSYS => {},
        // A waiting read reports the error.
        else => return 0,
    }
    if (flags == 0) return 0;
    known.store(if (liesInMemory(fd)) .always else .never, .monotonic);
    return read(known, fd, buffer, offset);
}

/// tmpfs does not support the flag, and everything in it is in memory.
fn liesInMemory(fd: i32) bool {
    const tmpfs_magic = 0x0102_1994;
    // `struct statfs` starts with the type.
    var stat: [16]i64 = @splat(0);
    const rc = linux.syscall2(.fstatfs, @as(u32, @bitCast(fd)), @intFromPtr(&stat));
    return linux.errno(rc) == .SUCCESS and stat[0] == tmpfs_magic;
}

const testing = std.testing;

test "a file is read by waiting where the file system cannot report what is in memory, or counts as in memory" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const file = try tmp.dir.createFile(testing.io, "file", .{ .read = true });
    defer file.close(testing.io);
    try file.writePositionalAll(testing.io, "abc", 0);
    var buffer: [3]u8 = undefined;
    var never: std.atomic.Value(Support) = .init(.never);
    try testing.expectEqual(0, read(&never, file.handle, &buffer, 0));
    var always: std.atomic.Value(Support) = .init(.always);
    try testing.expectEqual(3, read(&always, file.handle, &buffer, 0));
    try testing.expectEqualStrings("abc", &buffer);
}

test "files of tmpfs are in memory" {
    const rc = linux.memfd_create("in memory", linux.MFD.CLOEXEC);
    try testing.expectEqual(.SUCCESS, linux.errno(rc));
    const fd: i32 = @intCast(rc);
    defer _ = linux.close(fd);
    try testing.expectEqual(3, linux.write(fd, "abc", 3));
    var known: std.atomic.Value(Support) = .init(.asks);
    var buffer: [3]u8 = undefined;
    try testing.expectEqual(3, read(&known, fd, &buffer, 0));
    try testing.expectEqualStrings("abc", &buffer);
}
