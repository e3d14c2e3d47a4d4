//! Measures how full a file system is (statfs(2)).

const std = @import("std");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const Space = struct {
    total_bytes: u64,
    free_bytes: u64,
    /// Without what is reserved for the superuser.
    available_bytes: u64,
    is_read_only: bool = false,
};

/// Measures the file system of an open file or directory.
pub fn spaceOf(fd: i32) sys.Error!Space {
    var status: Status = undefined;
    const argument: usize = @bitCast(@as(isize, fd));
    _ = try sys.check(linux.syscall2(.fstatfs, argument, @intFromPtr(&status)));
    return status.space();
}

pub fn spaceAt(path: [:0]const u8) sys.Error!Space {
    var status: Status = undefined;
    _ = try sys.check(linux.syscall2(.statfs, @intFromPtr(path.ptr), @intFromPtr(&status)));
    return status.space();
}

/// struct statfs of 64-bit Linux.
const Status = extern struct {
    kind: i64,
    block_size: i64,
    blocks: u64,
    blocks_free: u64,
    blocks_available: u64,
    files: u64,
    files_free: u64,
    id: [2]i32,
    name_size_max: i64,
    fragment_size: i64,
    flags: i64,
    spare: [4]i64,

    comptime {
        std.debug.assert(@sizeOf(Status) == 120);
    }

    /// ST_RDONLY.
    const read_only_flag = 1;

    /// Counts are in fragments, not in the preferred block size.
    fn space(status: *const Status) Space {
        const unit: u64 = @intCast(@max(status.fragment_size, 1));
        return .{
            .total_bytes = status.blocks *| unit,
            .free_bytes = status.blocks_free *| unit,
            .available_bytes = status.blocks_available *| unit,
            .is_read_only = status.flags & read_only_flag != 0,
        };
    }
};

test "a file's system has free space, the same by its path and by its file" {
    const rc =
        linux.open("/proc/self", .{ .ACCMODE = .RDONLY, .DIRECTORY = true, .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(try sys.check(rc));
    defer sys.close(fd);
    // Nothing is stored there.
    try std.testing.expectEqual(
        Space{ .total_bytes = 0, .free_bytes = 0, .available_bytes = 0 },
        try spaceOf(fd),
    );
    const space = try spaceAt("/");
    try std.testing.expect(space.total_bytes >= space.free_bytes);
    try std.testing.expect(space.free_bytes >= space.available_bytes and space.total_bytes > 0);
    if (spaceAt("/proc/self/none")) |_| return error.Found else |_| {}
    if (spaceOf(-1)) |_| return error.Found else |_| {}
}
