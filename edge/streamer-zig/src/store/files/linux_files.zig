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
    .link = link,
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
        .OPNOTSUPP, .NOSYS => return writeZeros(context, handle, offset, bytes),
        else => _ = try check(rc),
    }
}

/// For a file system without holes; the size of the file stays.
fn writeZeros(context: *anyopaque, handle: Handle, offset: u64, bytes: u64) Error!void {
    const zeros: [4096]u8 = @splat(0);
    const end = @min(offset + bytes, try size(context, handle));
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

fn link(context: *anyopaque, from: []const u8, to: []const u8) Error!void {
    var from_z: NameZ = undefined;
    var to_z: NameZ = undefined;
    const dir_fd = dirOf(context);
    const old, const new = .{ try terminated(from, &from_z), try terminated(to, &to_z) };
    _ = try check(linux.linkat(dir_fd, old, dir_fd, new, 0));
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
    try testing.expectError(error.Exists, dir.link("sub/c", "sub/a"));
    try dir.link("sub/c", "sub/second");
    try dir.remove("sub/second");
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

fn flagsOf(handle: Handle) usize {
    return linux.fcntl(fdOf(handle), linux.F.GETFD, 0);
}

test "only the user of the store reads its files, and programs that it starts do not" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    try dir.makeDir("sub");
    const made = try dir.create("sub/a");
    defer dir.close(made);
    const again = try dir.open("sub/a", .read);
    defer dir.close(again);
    for ([_]Handle{ made, again }) |handle|
        try testing.expectEqual(linux.FD_CLOEXEC, flagsOf(handle));
    for ([_][]const u8{ "sub", "sub/a" }, [_]u32{ 0o700, 0o600 }) |name, mode| {
        const stat = try tmp.dir.statFile(testing.io, name, .{});
        try testing.expectEqual(mode, @backingInt(stat.permissions) & 0o777);
    }
    try testing.expectError(error.DiskFailed, dir.write(again, "x", 0));
}

test "names that the store cannot have made are not found" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    const name: [Files.name_size_max + 1]u8 = @splat('n');
    const longest = name[0..Files.name_size_max];
    dir.close(try dir.create(longest));
    try testing.expectError(error.NotFound, dir.create(&name));
    for ([_][]const u8{ "", "a\x00b" }) |bad| {
        try testing.expectError(error.NotFound, dir.open(bad, .read));
        try testing.expectError(error.NotFound, dir.remove(bad));
        try testing.expectError(error.NotFound, dir.rename(longest, bad));
    }
    // A longer foreign name is passed over, and a link is not followed.
    try tmp.dir.writeFile(testing.io, .{ .sub_path = &name, .data = "" });
    try tmp.dir.symLink(testing.io, longest, "link", .{});
    try tmp.dir.createDirPath(testing.io, "sub");
    try tmp.dir.symLink(testing.io, "sub", "to-sub", .{});
    try testing.expectError(error.NotFound, dir.open("link", .read));
    try testing.expectError(error.NotFound, dir.syncDir("to-sub"));
    var found: Files.Name = undefined;
    try testing.expectEqualStrings("link", (try dir.nextName("", "", &found)).?);
    try testing.expectEqualStrings(longest, (try dir.nextName("", "link", &found)).?);
    try testing.expectEqualStrings("sub", (try dir.nextName("", longest, &found)).?);
    try testing.expectEqualStrings("to-sub", (try dir.nextName("", "sub", &found)).?);
    try testing.expectEqual(null, try dir.nextName("", "to-sub", &found));
}

test "all names are listed in order, however many the system returns at once" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    var name: Files.Name = undefined;
    for (0..300) |index| {
        const made = try std.mem.print(&name, "{d:0>60}", .{index * 7919 % 300});
        dir.close(try dir.create(made));
    }
    var at: []const u8 = "";
    var expected: Files.Name = undefined;
    for (0..300) |index| {
        at = (try dir.nextName("", at, &name)).?;
        try testing.expectEqualStrings(try std.mem.print(&expected, "{d:0>60}", .{index}), at);
    }
    try testing.expectEqual(null, try dir.nextName("", at, &name));
}

test "zeros are written where there are no holes, up to the end of the file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    const handle = try dir.create("file");
    defer dir.close(handle);
    for ([_][2]u64{
        .{ 3, 5000 },
        .{ 0, 4096 },
        .{ 0, 1 },
        .{ 8999, 100 },
        .{ 9000, 5 },
        .{ 9500, 1 },
        .{ 7, 0 },
    }) |range| {
        const full: [9000]u8 = @splat('x');
        var found: [9001]u8 = undefined;
        for ([_]bool{ true, false }) |has_holes| {
            try dir.write(handle, &full, 0);
            if (has_holes)
                try dir.punch(handle, range[0], range[1])
            else
                try writeZeros(&on, handle, range[0], range[1]);
            try testing.expectEqual(9000, try dir.read(handle, &found, 0));
            for (found[0..9000], 0..) |byte, at| {
                const is_zero = at >= range[0] and at < range[0] + range[1];
                try testing.expectEqual(@as(u8, if (is_zero) 0 else 'x'), byte);
            }
        }
    }
}

test "sizes, holes and space are those of the file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    const handle = try dir.create("file");
    defer dir.close(handle);
    try dir.setSize(handle, 1 << 20);
    try testing.expectEqual(1 << 20, try dir.size(handle));
    try testing.expectEqual(0, try dir.allocated(handle));
    try dir.write(handle, &@as([8192]u8, @splat('x')), 64 << 10);
    try dir.sync(handle);
    try testing.expectEqual(8192, try dir.allocated(handle));
    try testing.expectEqual(64 << 10, (try dir.nextData(handle, 0)).?);
    try testing.expectEqual((64 << 10) + 1, (try dir.nextData(handle, (64 << 10) + 1)).?);
    try testing.expectEqual(null, try dir.nextData(handle, (64 << 10) + 8192));
    try testing.expectEqual(null, try dir.nextData(handle, 1 << 20));
    try dir.setSize(handle, 3);
    try testing.expectEqual(3, try dir.size(handle));
    var buffer: [8]u8 = undefined;
    try testing.expectEqual(0, try dir.read(handle, &buffer, 3));
    try testing.expectEqual(1, try dir.read(handle, &buffer, 2));
}

test "the free space is what the file system reports to this user" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    var stat: Statfs = undefined;
    const free = try on.files().freeBytes();
    _ = linux.syscall2(.fstatfs, @as(u32, @bitCast(on.dir_fd)), @intFromPtr(&stat));
    const now: u64 = @intCast(stat.bavail * stat.bsize);
    // Others write meanwhile.
    try testing.expect(free <= now + (1 << 30) and now <= free + (1 << 30));
}

test "several readers share a lock, which excludes a writer" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const dir = on.files();
    var handles: [3]Handle = undefined;
    handles[0] = try dir.create("lock");
    for (handles[1..]) |*handle| handle.* = try dir.open("lock", .write);
    defer for (handles) |handle| dir.close(handle);
    try testing.expect(try dir.tryLock(handles[0], false));
    try testing.expect(try dir.tryLock(handles[1], false));
    try testing.expect(!try dir.tryLock(handles[2], true));
    dir.close(handles[0]);
    handles[0] = try dir.open("lock", .write);
    try testing.expect(try dir.tryLock(handles[1], true));
}

test "each error of the system is the one that an operator can act on" {
    const Case = struct { linux.E, Error };
    for ([_]Case{
        .{ .NOENT, error.NotFound },       .{ .NOTDIR, error.NotFound },
        .{ .NAMETOOLONG, error.NotFound }, .{ .LOOP, error.NotFound },
        .{ .EXIST, error.Exists },         .{ .NOTEMPTY, error.Exists },
        .{ .NOSPC, error.NoSpace },        .{ .DQUOT, error.NoSpace },
        .{ .FBIG, error.NoSpace },         .{ .ROFS, error.ReadOnly },
        .{ .ACCES, error.Denied },         .{ .PERM, error.Denied },
        .{ .MFILE, error.TooManyFiles },   .{ .NFILE, error.TooManyFiles },
        .{ .IO, error.DiskFailed },
    }) |case| {
        const rc: usize = @bitCast(-@as(isize, @intCast(@backingInt(case[0]))));
        try testing.expectError(case[1], check(rc));
    }
    try testing.expectEqual(7, try check(7));
}

test "a directory is opened by its path, unless that is empty, too long or a file" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path_buffer: [std.fs.max_path_bytes]u8 = undefined;
    const path = path_buffer[0..try tmp.dir.realPathFile(testing.io, ".", &path_buffer)];
    var on = try LinuxFiles.open(path);
    defer on.close();
    try testing.expectEqual(linux.FD_CLOEXEC, linux.fcntl(on.dir_fd, linux.F.GETFD, 0));
    const file = try on.files().create("file");
    defer on.files().close(file);
    try testing.expectError(error.NotFound, LinuxFiles.open(""));
    try testing.expectError(error.NotFound, LinuxFiles.open("/dev/null"));
    // The longest path, and one byte more.
    var long: [4097]u8 = @splat('/');
    var root = try LinuxFiles.open(long[0..4095]);
    root.close();
    try testing.expectError(error.NotFound, LinuxFiles.open(long[0..4096]));
    try testing.expectError(error.NotFound, LinuxFiles.open(&long));
}
