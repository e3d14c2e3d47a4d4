//! Makes a boot cold for an experiment (docs/decisions/0108-tuning-lab.md): before it, the edge
//! forgets what this machine's memory holds of its store, as after a restart. A thread does that:
//! the system takes seconds to drop many pages. All devices of the edge read from the disk then.

const std = @import("std");
const PiecePacker = @import("../stream/piece_packer.zig");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

pub const ColdStart = @This();

/// The store's directory; null: there is none.
store_fd: ?i32 = null,
/// Null: nothing is packed.
packer: ?*PiecePacker = null,
/// A thread is at it, which does for another boot, too.
is_busy: std.atomic.Value(bool) = .init(false),

const depth_max = 4;

/// Begins to forget.
pub fn begin(cold: *ColdStart) void {
    if (cold.is_busy.swap(true, .acquire)) return;
    const thread = std.Thread.spawn(.{ .stack_size = 256 << 10 }, run, .{cold}) catch {
        cold.is_busy.store(false, .release);
        return;
    };
    thread.detach();
}

fn run(cold: *ColdStart) void {
    defer cold.is_busy.store(false, .release);
    if (cold.packer) |packer| packer.pieces.forgetAll();
    if (cold.store_fd) |fd| forgetIn(fd, ".", depth_max);
}

/// Drops the pages of all files in a directory; links are not followed.
fn forgetIn(dir_fd: i32, name: [*:0]const u8, depth: u8) void {
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true, .NOFOLLOW = true };
    const fd: i32 = @intCast(sys.check(linux.openat(dir_fd, name, flags, 0)) catch return);
    defer sys.close(fd);
    var buffer: [4096]u8 align(@alignOf(linux.dirent64)) = undefined;
    while (true) {
        const filled = sys.check(linux.getdents64(fd, &buffer, buffer.len)) catch return;
        if (filled == 0) return;
        var at: usize = 0;
        while (at < filled) {
            const entry: *align(1) linux.dirent64 = @ptrCast(&buffer[at]);
            at += entry.reclen;
            assert(entry.reclen > 0);
            const child: [*:0]const u8 = @ptrCast(&entry.name);
            if (child[0] == '.') continue;
            if (entry.type == linux.DT.DIR and depth > 0) forgetIn(fd, child, depth - 1);
            if (entry.type == linux.DT.REG) forgetFile(fd, child);
        }
    }
}

fn forgetFile(dir_fd: i32, name: [*:0]const u8) void {
    const flags: linux.O = .{ .CLOEXEC = true, .NOFOLLOW = true, .NONBLOCK = true };
    const fd: i32 = @intCast(sys.check(linux.openat(dir_fd, name, flags, 0)) catch return);
    defer sys.close(fd);
    const dont_need = 4;
    _ = linux.fadvise(fd, 0, 0, dont_need);
}

const testing = std.testing;

test "files in directories are forgotten, and what there is not does no harm" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, "a/b");
    const data: [8192]u8 = @splat(7);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "a/b/data", .data = &data });
    var cold: ColdStart = .{ .store_fd = tmp.dir.handle };
    run(&cold);
    forgetFile(tmp.dir.handle, "missing");
    forgetIn(tmp.dir.handle, "missing", 1);
    try testing.expect(!cold.is_busy.load(.monotonic));
    var buffer: [16]u8 = undefined;
    const bytes = try tmp.dir.readFile(testing.io, "a/b/data", &buffer);
    try testing.expectEqual(7, bytes[0]);
}
