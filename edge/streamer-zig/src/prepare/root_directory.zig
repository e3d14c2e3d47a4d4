//! Files of a root file system that may not be the running one. Every path is resolved inside it,
//! absolute symbolic links too (openat2(2), RESOLVE_IN_ROOT, Linux 5.6). Uses raw system calls,
//! since it is part of the program that every device downloads.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;

/// With its directory; a longer path counts as missing.
pub const path_size_max = 512;

pub const Error = error{
    /// No file has this name.
    NotThere,
    /// The file system is mounted read-only.
    ReadOnly,
    /// Only root may do this.
    NotPermitted,
    /// Any other error: a full disk, a file in place of a directory, a broken disk.
    Failed,
};

const PathBuffer = [path_size_max:0]u8;

const OpenHow = extern struct {
    flags: u64,
    mode: u64 = 0,
    resolve: u64 = resolve_in_root | resolve_no_magiclinks,

    const resolve_no_magiclinks = 0x02;
    const resolve_in_root = 0x10;
};

pub const RootDirectory = @This();

fd: i32,

/// `path` is a directory of the running system.
pub fn open(path: [*:0]const u8) Error!RootDirectory {
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
    return .{ .fd = @intCast(try check(linux.open(path, flags, 0))) };
}

pub fn close(root: RootDirectory) void {
    sys.close(root.fd);
}

pub fn openFile(root: RootDirectory, path: []const u8, flags: linux.O) Error!i32 {
    var buffer: PathBuffer = undefined;
    var with_cloexec = flags;
    with_cloexec.CLOEXEC = true;
    const how: OpenHow = .{ .flags = @as(u32, @bitCast(with_cloexec)) };
    return @intCast(try check(linux.syscall4(
        .openat2,
        @as(u32, @bitCast(root.fd)),
        @intFromPtr(try terminated(&buffer, path)),
        @intFromPtr(&how),
        @sizeOf(OpenHow),
    )));
}

pub fn exists(root: RootDirectory, path: []const u8) bool {
    const fd = root.openFile(path, .{ .PATH = true }) catch return false;
    sys.close(fd);
    return true;
}

/// Reads the whole file, up to `size_max` bytes.
pub fn read(
    root: RootDirectory,
    gpa: std.mem.Allocator,
    path: []const u8,
    size_max: usize,
) (Error || error{OutOfMemory})![]u8 {
    const fd = try root.openFile(path, .{});
    defer sys.close(fd);
    var stat: linux.Statx = undefined;
    _ = try check(linux.statx(fd, "", linux.AT.EMPTY_PATH, .{ .SIZE = true }, &stat));
    // Files of /proc and /sys have no size; nothing here reads them.
    if (stat.size > size_max) return error.Failed;
    const content = try gpa.alloc(u8, @intCast(stat.size));
    const size = sys.readAt(fd, content, 0) catch return error.Failed;
    return content[0..size];
}

/// Makes missing directories, and writes the file completely or not at all.
pub fn write(root: RootDirectory, path: []const u8, mode: u32, content: []const u8) Error!void {
    const parent = try root.makeDirectories(std.fs.path.dirnamePosix(path) orelse "");
    defer sys.close(parent);
    const part = ".bootfarm-part";
    const flags: linux.O = .{
        .ACCMODE = .WRONLY,
        .CREAT = true,
        .TRUNC = true,
        .NOFOLLOW = true,
        .CLOEXEC = true,
    };
    const fd: i32 = @intCast(try check(linux.openat(parent, part, flags, 0o600)));
    errdefer _ = linux.unlinkat(parent, part, 0);
    {
        defer sys.close(fd);
        sys.writeAll(fd, content) catch return error.Failed;
        _ = try check(linux.fchmod(fd, mode));
        _ = try check(linux.fsync(fd));
    }
    var buffer: PathBuffer = undefined;
    const name = try terminated(&buffer, std.fs.path.basenamePosix(path));
    _ = try check(linux.renameat(parent, part, parent, name));
}

/// Removes a file, and its directory if that is empty then.
pub fn remove(root: RootDirectory, path: []const u8) Error!void {
    const folder = std.fs.path.dirnamePosix(path) orelse "";
    try root.unlink(folder, std.fs.path.basenamePosix(path), 0);
}

/// Removes a directory if it is empty.
pub fn removeEmpty(root: RootDirectory, path: []const u8) void {
    const folder = std.fs.path.dirnamePosix(path) orelse "";
    const flag_directory = linux.AT.REMOVEDIR;
    root.unlink(folder, std.fs.path.basenamePosix(path), flag_directory) catch {};
}

fn unlink(root: RootDirectory, folder: []const u8, name: []const u8, flags: u32) Error!void {
    const parent = try root.openFolder(folder);
    defer sys.close(parent);
    var buffer: PathBuffer = undefined;
    _ = try check(linux.unlinkat(parent, try terminated(&buffer, name), flags));
}

fn openFolder(root: RootDirectory, path: []const u8) Error!i32 {
    return root.openFile(if (path.len == 0) "." else path, .{ .DIRECTORY = true });
}

/// Opens the last directory of the path.
fn makeDirectories(root: RootDirectory, path: []const u8) Error!i32 {
    var made = try root.openFolder("");
    var names = std.mem.tokenizeScalar(u8, path, '/');
    while (names.next()) |name| {
        errdefer sys.close(made);
        const so_far = path[0..names.index];
        const next = root.openFolder(so_far) catch |reason| switch (reason) {
            error.NotThere => next: {
                var buffer: PathBuffer = undefined;
                _ = try check(linux.mkdirat(made, try terminated(&buffer, name), 0o755));
                break :next try root.openFolder(so_far);
            },
            else => return reason,
        };
        sys.close(made);
        made = next;
    }
    return made;
}

/// Returns at most `names_max` names of a directory in any order, without `.` and `..`.
pub fn list(
    root: RootDirectory,
    arena: std.mem.Allocator,
    path: []const u8,
) (Error || error{OutOfMemory})![]const []const u8 {
    const names_max = 4096;
    const fd = try root.openFolder(path);
    defer sys.close(fd);
    var names: std.ArrayList([]const u8) = .empty;
    var buffer: [8192]u8 align(@alignOf(linux.dirent64)) = undefined;
    while (names.items.len < names_max) {
        const size = try check(linux.getdents64(fd, &buffer, buffer.len));
        if (size == 0) break;
        var at: usize = 0;
        while (at < size) {
            const entry: *align(1) const linux.dirent64 = @ptrCast(buffer[at..]);
            const name_at = at + @offsetOf(linux.dirent64, "name");
            const name = std.mem.sliceTo(buffer[name_at .. at + entry.reclen], 0);
            at += entry.reclen;
            if (std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) continue;
            try names.append(arena, try arena.dupe(u8, name));
        }
    }
    return names.items;
}

fn terminated(buffer: *PathBuffer, path: []const u8) Error![*:0]const u8 {
    if (path.len >= buffer.len) return error.Failed;
    @memcpy(buffer[0..path.len], path);
    buffer[path.len] = 0;
    return buffer;
}

pub fn check(rc: usize) Error!usize {
    return switch (linux.errno(rc)) {
        .SUCCESS => rc,
        .NOENT, .NOTDIR => error.NotThere,
        .ROFS => error.ReadOnly,
        .ACCES, .PERM => error.NotPermitted,
        else => error.Failed,
    };
}

const testing = std.testing;

/// A directory for one test, opened as a root.
pub const TestRoot = struct {
    directory: testing.TmpDir,
    root: RootDirectory,

    pub fn init() !TestRoot {
        var directory = testing.tmpDir(.{});
        errdefer directory.cleanup();
        var path: [64:0]u8 = undefined;
        const text = try std.mem.print(&path, "/proc/self/fd/{d}", .{directory.dir.handle});
        path[text.len] = 0;
        return .{ .directory = directory, .root = try .open(&path) };
    }

    pub fn deinit(t: *TestRoot) void {
        t.root.close();
        t.directory.cleanup();
    }
};

test "a file is written with its directories, read, listed and removed" {
    var t: TestRoot = try .init();
    defer t.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    try t.root.write("etc/a/b", 0o644, "one\n");
    try t.root.write("etc/a/b", 0o644, "two\n");
    try testing.expectEqualStrings("two\n", try t.root.read(arena.allocator(), "etc/a/b", 100));
    try testing.expectError(error.Failed, t.root.read(arena.allocator(), "etc/a/b", 3));
    const names = try t.root.list(arena.allocator(), "etc/a");
    try testing.expectEqual(1, names.len);
    try testing.expectEqualStrings("b", names[0]);
    try t.root.remove("etc/a/b");
    try testing.expect(!t.root.exists("etc/a/b"));
    t.root.removeEmpty("etc/a");
    try testing.expect(!t.root.exists("etc/a"));
    try testing.expectError(error.NotThere, t.root.remove("etc/a/b"));
}

test "absolute links lead to files inside the root" {
    var t: TestRoot = try .init();
    defer t.deinit();
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    try t.root.write("usr/etc/name", 0o644, "inside");
    try testing.expectEqual(.SUCCESS, linux.errno(linux.symlinkat("/usr/etc", t.root.fd, "etc")));
    try testing.expectEqualStrings("inside", try t.root.read(arena.allocator(), "etc/name", 100));
    try t.root.write("etc/new", 0o644, "");
    try testing.expect(t.root.exists("usr/etc/new"));
    try testing.expect(!t.root.exists("../../../../etc/passwd"));
}
