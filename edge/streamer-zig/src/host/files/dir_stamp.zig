//! Whether the names in a directory have changed since it was looked at last, by its time of change: somebody works in it by hand.

const std = @import("std");
const linux = std.os.linux;

pub const DirStamp = struct {
    last: ?Stamp = null,

    const Stamp = struct { seconds: i64, nanoseconds: u32 };

    /// False the first time, and where it cannot be seen.
    pub fn hasChanged(stamp: *DirStamp, path: [*:0]const u8) bool {
        var stat: linux.Statx = undefined;
        if (linux.errno(linux.statx(linux.AT.FDCWD, path, 0, .{ .MTIME = true }, &stat)) != .SUCCESS) return false;
        const now: Stamp = .{ .seconds = stat.mtime.sec, .nanoseconds = stat.mtime.nsec };
        defer stamp.last = now;
        return if (stamp.last) |last| !std.meta.eql(last, now) else false;
    }
};

const testing = std.testing;

test "a name that comes or goes in a directory is noticed, once" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path: [128]u8 = undefined;
    const dir = try std.mem.printSentinel(&path, ".zig-cache/tmp/{s}", .{&tmp.sub_path}, 0);
    var stamp: DirStamp = .{};
    try testing.expect(!stamp.hasChanged("/nowhere"));
    try testing.expect(!stamp.hasChanged(dir));
    // File systems count time in ticks: until one is over, a change may have the time of the one before.
    while (!stamp.hasChanged(dir)) {
        var file = try tmp.dir.createFile(testing.io, "a", .{});
        file.close(testing.io);
        try tmp.dir.deleteFile(testing.io, "a");
    }
    try testing.expect(!stamp.hasChanged(dir));
}
