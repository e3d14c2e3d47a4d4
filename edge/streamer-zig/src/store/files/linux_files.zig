//! `Files` on a real directory of Linux. Adds no guarantees to those of the system calls that each
//! function names.

const std = @import("std");
const Files = @import("files.zig");
const read_now_module = @import("../read_now.zig");
const linux = std.os.linux;

const Error = Files.Error;
const Handle = Files.Handle;
const Mode = Files.Mode;

const LinuxFiles = @This();

dir_fd: i32,
/// Some file systems cannot report what is in memory. The first thread that reads finds out.
read_now: std.atomic.Value(read_now_module.Support) = .init(.asks),

/// Opens an existing directory.
pub fn open(path: []const u8) Error!LinuxFiles {
    var path_z: [4096]u8 = undefined;
    if (path.len == 0 or path.len >= path_z.len) return error.NotFound;
    @memcpy(path_z[0..path.len], path);
    path_z[path.len] = 0;
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
    const fd = try check(linux.openat(linux.AT.FDCWD, @ptrCast(&path_z), flags, 0));
    return .{ .dir_fd = @intCast(fd) };
}

/// Takes ownership of a directory's descriptor.
pub fn fromFd(dir_fd: i32) LinuxFiles {
    return .{ .dir_fd = dir_fd };
}

pub fn close(on: *LinuxFiles) void {
    _ = linux.close(on.dir_fd);
    on.* = undefined;
}

pub fn files(on: *LinuxFiles) Files {
    return .{ .context = on, .vtable = &vtable };
}

const vtable: Files.VTable = .{
    .open = openFile,
    .create = create,
    .close = closeFile,
    .size = size,
    .setSize = setSize,
    .read = read,
    .readNow = readNow,
    .prefetch = prefetch,
    .write = write,
    .sync = sync,
    .punch = punch,
    .nextData = nextData,
    .allocated = allocated,
    .tryLock = tryLock,
    .rename = rename,
    .remove = remove,
    .makeDir = makeDir,
    .syncDir = syncDir,
    .nextName = nextName,
    .freeBytes = freeBytes,
};

const NameZ = [Files.name_size_max + 1]u8;

fn terminated(name: []const u8, into: *NameZ) Error![*:0]const u8 {
    if (name.len == 0 or name.len > Files.name_size_max) return error.NotFound;
    if (std.mem.findScalar(u8, name, 0) != null) return error.NotFound;
    @memcpy(into[0..name.len], name);
    into[name.len] = 0;
    return @ptrCast(into);
}

fn dirOf(context: *anyopaque) i32 {
    const on: *LinuxFiles = @ptrCast(@alignCast(context));
    return on.dir_fd;
}

fn fdOf(handle: Handle) i32 {
    return @backingInt(handle);
}

fn openFile(context: *anyopaque, name: []const u8, mode: Mode) Error!Handle {
    return openWith(context, name, .{
        .ACCMODE = switch (mode) {
            .read => .RDONLY,
            .write => .RDWR,
        },
        .CLOEXEC = true,
        .NOFOLLOW = true,
    });
}

fn create(context: *anyopaque, name: []const u8) Error!Handle {
    return openWith(context, name, .{
        .ACCMODE = .RDWR,
        .CREAT = true,
        .EXCL = true,
        .CLOEXEC = true,
        .NOFOLLOW = true,
    });
}

fn openWith(context: *anyopaque, name: []const u8, flags: linux.O) Error!Handle {
    var name_z: NameZ = undefined;
    const rc = linux.openat(dirOf(context), try terminated(name, &name_z), flags, 0o600);
    return @fromBackingInt(@as(i32, @intCast(try check(rc))));
}

fn closeFile(_: *anyopaque, handle: Handle) void {
    _ = linux.close(fdOf(handle));
}

fn statOf(handle: Handle) Error!linux.Statx {
    var stat: linux.Statx = undefined;
    const mask: linux.STATX = .{ .SIZE = true, .BLOCKS = true };
    _ = try check(linux.statx(fdOf(handle), "", linux.AT.EMPTY_PATH, mask, &stat));
    return stat;
}

fn size(_: *anyopaque, handle: Handle) Error!u64 {
    return (try statOf(handle)).size;
}

fn allocated(_: *anyopaque, handle: Handle) Error!u64 {
    return (try statOf(handle)).blocks * 512;
}

fn setSize(_: *anyopaque, handle: Handle, bytes: u64) Error!void {
    _ = try check(linux.ftruncate(fdOf(handle), @intCast(bytes)));
}

fn read(_: *anyopaque, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    var filled: usize = 0;
    while (filled < buffer.len) {
        const rest = buffer[filled..];
        const rc = linux.pread(fdOf(handle), rest.ptr, rest.len, @intCast(offset + filled));
        if (linux.errno(rc) == .INTR) continue;
        const count = try check(rc);
        if (count == 0) break;
        filled += count;
    }
    return filled;
}

fn readNow(context: *anyopaque, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    const on: *LinuxFiles = @ptrCast(@alignCast(context));
    return read_now_module.read(&on.read_now, fdOf(handle), buffer, offset);
}

const will_need = 3;

fn prefetch(_: *anyopaque, handle: Handle, offset: u64, bytes: u64) void {
    // A failure only costs speed.
    _ = linux.fadvise(fdOf(handle), @intCast(offset), @intCast(bytes), will_need);
}

fn write(_: *anyopaque, handle: Handle, bytes: []const u8, offset: u64) Error!void {
    var written: usize = 0;
    while (written < bytes.len) {
        const rest = bytes[written..];
        const rc = linux.pwrite(fdOf(handle), rest.ptr, rest.len, @intCast(offset + written));
        if (linux.errno(rc) == .INTR) continue;
        written += try check(rc);
    }
}

fn sync(_: *anyopaque, handle: Handle) Error!void {
    _ = try check(linux.fdatasync(fdOf(handle)));
}

const punch_hole = 0x02;
const keep_size = 0x01;

fn punch(context: *anyopaque, handle: Handle, offset: u64, bytes: u64) Error!void {
    if (bytes == 0) return;
    const rc =
        linux.fallocate(fdOf(handle), punch_hole | keep_size, @intCast(offset), @intCast(bytes));
    switch (linux.errno(rc)) {
        .OPNOTSUPP, .NOSYS => {},
        else => {
            _ = try check(rc);
            return;
        },
    }
    const zeros: [4096]u8 = @splat(0);
    const end = @min(offset + bytes, @max(offset, try size(context, handle)));
    var at = offset;
    while (at < end) {
        const part: usize = @intCast(@min(zeros.len, end - at));
        try write(context, handle, zeros[0..part], at);
        at += part;
    }
}

const seek_data = 3;

fn nextData(_: *anyopaque, handle: Handle, offset: u64) Error!?u64 {
    const rc = linux.lseek(fdOf(handle), @intCast(offset), seek_data);
    return switch (linux.errno(rc)) {
        .NXIO => null,
        else => try check(rc),
    };
}

const lock_shared = 1;
const lock_exclusive = 2;
const lock_now = 4;

fn tryLock(_: *anyopaque, handle: Handle, exclusive: bool) Error!bool {
    const how: i32 = if (exclusive) lock_exclusive else lock_shared;
    const rc = linux.flock(fdOf(handle), how | lock_now);
    return switch (linux.errno(rc)) {
        .AGAIN => false,
        else => {
            _ = try check(rc);
            return true;
        },
    };
}

fn rename(context: *anyopaque, from: []const u8, to: []const u8) Error!void {
    var from_z: NameZ = undefined;
    var to_z: NameZ = undefined;
    const dir_fd = dirOf(context);
    const old, const new = .{ try terminated(from, &from_z), try terminated(to, &to_z) };
    _ = try check(linux.renameat2(dir_fd, old, dir_fd, new, .{}));
}

fn remove(context: *anyopaque, name: []const u8) Error!void {
    var name_z: NameZ = undefined;
    const text = try terminated(name, &name_z);
    const rc = linux.unlinkat(dirOf(context), text, 0);
    _ = switch (linux.errno(rc)) {
        .ISDIR => try check(linux.unlinkat(dirOf(context), text, linux.AT.REMOVEDIR)),
        else => try check(rc),
    };
}

fn makeDir(context: *anyopaque, name: []const u8) Error!void {
    var name_z: NameZ = undefined;
    _ = try check(linux.mkdirat(dirOf(context), try terminated(name, &name_z), 0o700));
}

fn syncDir(context: *anyopaque, name: []const u8) Error!void {
    const fd = try openDir(context, name);
    defer _ = linux.close(fd);
    _ = try check(linux.fsync(fd));
}

fn openDir(context: *anyopaque, name: []const u8) Error!i32 {
    var name_z: NameZ = undefined;
    const text = if (name.len == 0) "." else try terminated(name, &name_z);
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true, .NOFOLLOW = true };
    return @intCast(try check(linux.openat(dirOf(context), text, flags, 0)));
}

/// The system returns names in any order, and a directory of the store is small: finds the least
/// name above by reading them all.
fn nextName(
    context: *anyopaque,
    dir: []const u8,
    above: []const u8,
    into: *Files.Name,
) Error!?[]const u8 {
    const fd = try openDir(context, dir);
    defer _ = linux.close(fd);
    var least: Files.Name = undefined;
    var least_size: usize = 0;
    var buffer: [4096]u8 align(@alignOf(linux.dirent64)) = undefined;
    while (true) {
        const filled = try check(linux.getdents64(fd, &buffer, buffer.len));
        if (filled == 0) break;
        var at: usize = 0;
        while (at < filled) {
            const entry: *align(1) linux.dirent64 = @ptrCast(&buffer[at]);
            at += entry.reclen;
            const name = std.mem.span(@as([*:0]const u8, @ptrCast(&entry.name)));
            if (std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) continue;
            if (name.len > least.len) continue;
            if (std.mem.order(u8, name, above) != .gt) continue;
            if (least_size > 0 and std.mem.order(u8, name, least[0..least_size]) != .lt) continue;
            @memcpy(least[0..name.len], name);
            least_size = name.len;
        }
    }
    if (least_size == 0) return null;
    @memcpy(into[0..least_size], least[0..least_size]);
    return into[0..least_size];
}

fn freeBytes(context: *anyopaque) Error!u64 {
    var stat: Statfs = undefined;
    _ = try check(linux.syscall2(.fstatfs, @as(u32, @bitCast(dirOf(context))), @intFromPtr(&stat)));
    return @as(u64, @intCast(@max(stat.bavail, 0))) * @as(u64, @intCast(@max(stat.bsize, 0)));
}

/// `struct statfs` of 64-bit Linux (include/uapi/asm-generic/statfs.h).
const Statfs = extern struct {
    type: i64,
    bsize: i64,
    blocks: i64,
    bfree: i64,
    bavail: i64,
    files: i64,
    ffree: i64,
    fsid: [2]i32,
    namelen: i64,
    frsize: i64,
    flags: i64,
    spare: [4]i64,
};

fn check(rc: usize) Error!usize {
    return switch (linux.errno(rc)) {
        .SUCCESS => rc,
        .NOENT, .NOTDIR, .NAMETOOLONG, .LOOP => error.NotFound,
        .EXIST, .NOTEMPTY => error.Exists,
        .NOSPC, .DQUOT, .FBIG => error.NoSpace,
        .ROFS => error.ReadOnly,
        .ACCES, .PERM => error.Denied,
        .MFILE, .NFILE => error.TooManyFiles,
        else => error.DiskFailed,
    };
}

const testing = std.testing;

test "files are created, read, renamed, listed in order and removed" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    try dir.makeDir("sub");
    try testing.expectError(error.Exists, dir.makeDir("sub"));
    try testing.expectError(error.NotFound, dir.open("sub/a", .read));
    for ([_][]const u8{ "sub/c", "sub/a", "sub/b" }) |name| {
        const handle = try dir.create(name);
        defer dir.close(handle);
        try dir.write(handle, name, 4096);
        try dir.sync(handle);
    }
    try testing.expectError(error.Exists, dir.create("sub/a"));
    try dir.rename("sub/c", "sub/a");
    try dir.syncDir("sub");
    var name: Files.Name = undefined;
    try testing.expectEqualStrings("a", (try dir.nextName("sub", "", &name)).?);
    try testing.expectEqualStrings("b", (try dir.nextName("sub", "a", &name)).?);
    try testing.expectEqual(null, try dir.nextName("sub", "b", &name));
    const handle = try dir.open("sub/a", .write);
    defer dir.close(handle);
    try testing.expectEqual(4101, try dir.size(handle));
    var buffer: [16]u8 = undefined;
    try testing.expectEqual(5, try dir.read(handle, &buffer, 4096));
    try testing.expectEqualStrings("sub/c", buffer[0..5]);
    try testing.expectEqual(false, try dir.readWhole(handle, &buffer, 4096));
    try dir.punch(handle, 4096, 4096);
    try testing.expectEqual(4101, try dir.size(handle));
    try testing.expectEqual(null, try dir.nextData(handle, 0));
    try testing.expectError(error.Exists, dir.remove("sub"));
    try dir.remove("sub/a");
    try dir.remove("sub/b");
    try dir.remove("sub");
    try testing.expect(try dir.freeBytes() > 0);
}

test "only one of two handles gets the lock" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    const first = try dir.create("lock");
    const second = try dir.open("lock", .write);
    defer dir.close(second);
    try testing.expect(try dir.tryLock(first, true));
    try testing.expectEqual(false, try dir.tryLock(second, false));
    dir.close(first);
    try testing.expect(try dir.tryLock(second, true));
}
