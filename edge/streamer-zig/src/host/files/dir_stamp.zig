//! Detects by its time of change whether the names in a directory have changed since the last look:
//! somebody works in it by hand.

const std = @import("std");
const linux = std.os.linux;

pub const DirStamp = @This();

last: ?Stamp = null,

const Stamp = struct { seconds: i64, nanoseconds: u32 };

/// Returns false the first time, and if the directory cannot be read.
pub fn hasChanged(stamp: *DirStamp, path: [*:0]const u8) bool {
    var stat: linux.Statx = undefined;
    if (linux.errno(linux.statx(linux.AT.FDCWD, path, 0, .{ .MTIME = true }, &stat)) != .SUCCESS)
        return false;
    const now: Stamp = .{ .seconds = stat.mtime.sec, .nanoseconds = stat.mtime.nsec };
    defer stamp.last = now;
    return if (stamp.last) |last| !std.meta.eql(last, now) else false;
}

const testing = std.testing;

test "a name that appears in a directory or disappears from it is noticed, once" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path: [128]u8 = undefined;
    const dir = try std.mem.printSentinel(&path, ".zig-cache/tmp/{s}", .{&tmp.sub_path}, 0);
    var stamp: DirStamp = .{};
    try testing.expect(!stamp.hasChanged("/nowhere"));
    try testing.expect(!stamp.hasChanged(dir));
    // File systems count time in ticks: within one tick, two changes have the same time.
    while (!stamp.hasChanged(dir)) {
        var file = try tmp.dir.createFile(testing.io, "a", .{});
        file.close(testing.io);
        try tmp.dir.deleteFile(testing.io, "a");
    }
    try testing.expect(!stamp.hasChanged(dir));
}
