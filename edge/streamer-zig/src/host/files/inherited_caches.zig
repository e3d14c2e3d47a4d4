//! Open files of write caches that the program before this one has left in this process
//! (store/layers/handover.zig), as it leaves its sockets (net/inherited_sockets.zig).

const std = @import("std");
const store = @import("store");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Io = std.Io;
const Handle = store.Files.Handle;

/// The environment variable: `PID:FD`, the file that describes the others.
const variable = "BOOTFARM_EDGE_CACHES";

/// Takes the file that the variable names for this very process; a process that this one starts, or
/// that follows it, has another number. Nothing is found a second time.
pub fn find(environment: *std.process.Environ.Map) ?Handle {
    const text = environment.get(variable) orelse return null;
    defer _ = environment.swapRemove(variable);
    const pid_text, const fd_text = std.mem.cut(u8, text, ":") orelse return null;
    const pid = std.fmt.parseInt(i32, pid_text, 10) catch return null;
    if (pid != linux.getpid()) return null;
    const fd = std.fmt.parseInt(i32, fd_text, 10) catch return null;
    const handle: Handle = @fromBackingInt(fd);
    // A number that stands for anything else is not closed either.
    return if (fd > 2 and isLeft(fd) and setKept(handle, false)) handle else null;
}

/// Sets the variable; the file stays open beyond the end of this program, if there is a next one.
pub fn leave(environment: *std.process.Environ.Map, handle: Handle) error{OutOfMemory}!void {
    var buffer: [32]u8 = undefined;
    const text = std.mem.print(&buffer, "{d}:{d}", .{ linux.getpid(), @backingInt(handle) }) catch
        unreachable;
    try environment.put(variable, text);
    _ = setKept(handle, true);
}

/// Whether a file stays open beyond the end of this program; returns false if it is not open.
pub fn setKept(handle: Handle, is_kept: bool) bool {
    const flags: usize = if (is_kept) 0 else linux.FD_CLOEXEC;
    return linux.errno(linux.fcntl(@backingInt(handle), linux.F.SETFD, flags)) == .SUCCESS;
}

/// Closes what was left open and not taken, so that it frees its space: a hand-over may be damaged,
/// or have more than the tables hold. This program opens no file so that it stays open beyond its
/// end, and those of write caches have no names.
pub fn closeRest(io: Io) void {
    var dir = Io.Dir.cwd().openDir(io, "/proc/self/fd", .{ .iterate = true }) catch return;
    defer dir.close(io);
    var entries = dir.iterate();
    while (entries.next(io) catch return) |entry| {
        const fd = std.fmt.parseInt(i32, entry.name, 10) catch continue;
        if (fd > 2 and fd != dir.handle and isLeft(fd)) sys.close(fd);
    }
}

fn isLeft(fd: i32) bool {
    const flags = sys.check(linux.fcntl(fd, linux.F.GETFD, 0)) catch return false;
    if (flags & linux.FD_CLOEXEC != 0) return false;
    var stat: linux.Statx = undefined;
    const mask: linux.STATX = .{ .TYPE = true, .NLINK = true };
    _ = sys.check(linux.statx(fd, "", linux.AT.EMPTY_PATH, mask, &stat)) catch return false;
    return stat.mode & linux.S.IFMT == linux.S.IFREG and stat.nlink == 0;
}

const testing = std.testing;

fn open(tmp: *const testing.TmpDir, name: []const u8, has_name: bool) !Handle {
    var on: store.LinuxFiles = .fromFd(tmp.dir.handle);
    const handle = try on.files().create(name);
    if (!has_name) try on.files().remove(name);
    return handle;
}

fn isOpen(handle: Handle) bool {
    return linux.errno(linux.fcntl(@backingInt(handle), linux.F.GETFD, 0)) == .SUCCESS;
}

test "a hand-over is found once, by the process that it is for" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var environment: std.process.Environ.Map = .init(testing.allocator);
    defer environment.deinit();
    try testing.expectEqual(null, find(&environment));
    const handle = try open(&tmp, "one", false);
    try leave(&environment, handle);
    try testing.expectEqual(handle, find(&environment).?);
    try testing.expectEqual(null, find(&environment));
    for ([_][]const u8{ "", "1", "1:5", "x:5", "-1:5" }) |text| {
        try environment.put(variable, text);
        try testing.expectEqual(null, find(&environment));
    }
    // What is named is a file that this program has opened itself.
    try leave(&environment, handle);
    try testing.expect(setKept(handle, false));
    try testing.expectEqual(null, find(&environment));
    try testing.expect(isOpen(handle));
    // It is not open any more, or is standard input.
    try leave(&environment, handle);
    sys.close(@backingInt(handle));
    try testing.expectEqual(null, find(&environment));
    var buffer: [32]u8 = undefined;
    try environment.put(variable, try std.mem.print(&buffer, "{d}:0", .{linux.getpid()}));
    try testing.expectEqual(null, find(&environment));
}

test "what was left and not taken is closed, and nothing else" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const own = try open(&tmp, "own", false);
    const named = try open(&tmp, "named", true);
    const taken = try open(&tmp, "taken", false);
    const left = try open(&tmp, "left", false);
    for ([_]Handle{ named, taken, left }) |handle| try testing.expect(setKept(handle, true));
    try testing.expect(setKept(taken, false));
    closeRest(testing.io);
    for ([_]Handle{ own, named, taken }) |handle| {
        try testing.expect(isOpen(handle));
        sys.close(@backingInt(handle));
    }
    try testing.expect(!isOpen(left));
}
