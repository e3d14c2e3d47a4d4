//! Read-only files that devices read: opened and checked once, read by offset. A path of the
//! desired state cannot leave the store's directory, neither by its text nor by symbolic links.

const std = @import("std");
const assert = std.debug.assert;
const BlockSource = @import("../block_source.zig");
const read_now_module = @import("../read_now.zig");
const linux = std.os.linux;

pub const sector_size = 512;
pub const path_size_max = 1024;

pub const OpenError = error{ Missing, NotReadable, NotAFile, Empty, NotSectors, PathEscapes };
pub const ReadError = error{ BeyondTheEnd, ReadFailed };

/// Purpose of the file; decides what is checked.
pub const Kind = enum {
    /// A disk: a regular file or a block device, a multiple of 512 bytes.
    disk,
    /// An image in any format: a regular file or a block device.
    image,
    /// A kernel or initramfs: a regular file.
    plain,
};

pub const StoreFile = @This();

fd: i32,
/// Bytes; not 0.
size: u64,
/// Time of the last change in ns; tells states of a file apart.
modified_ns: i128,
read_now: std.atomic.Value(read_now_module.Support) = .init(.asks),

/// Opens a path of the command line: absolute, or relative to the working directory.
pub fn open(path: []const u8, kind: Kind) OpenError!StoreFile {
    const path_z = terminated(path) catch return error.Missing;
    const rc = linux.openat(linux.AT.FDCWD, &path_z, .{ .CLOEXEC = true, .NONBLOCK = true }, 0);
    return fromRc(rc, kind);
}

/// Opens a path of the desired state below the directory `dir_fd`.
pub fn openBelow(dir_fd: i32, path: []const u8, kind: Kind) OpenError!StoreFile {
    if (!isInside(path)) return error.PathEscapes;
    const path_z = terminated(path) catch return error.PathEscapes;
    const OpenHow = extern struct { flags: u64, mode: u64, resolve: u64 };
    const flags: linux.O = .{ .CLOEXEC = true, .NONBLOCK = true };
    const how: OpenHow =
        .{ .flags = @as(u32, @bitCast(flags)), .mode = 0, .resolve = resolve_beneath };
    const rc = linux.syscall4(
        .openat2,
        @as(u32, @bitCast(dir_fd)),
        @intFromPtr(&path_z),
        @intFromPtr(&how),
        @sizeOf(OpenHow),
    );
    return fromRc(rc, kind);
}

pub fn close(file: *StoreFile) void {
    _ = linux.close(file.fd);
    file.* = undefined;
}

/// Fills `buffer` from `offset`, completely or not at all.
pub fn read(file: *const StoreFile, buffer: []u8, offset: u64) ReadError!void {
    if (buffer.len > file.size or offset > file.size - buffer.len) return error.BeyondTheEnd;
    var filled: usize = 0;
    while (filled < buffer.len) {
        const rest = buffer[filled..];
        const rc = linux.pread(file.fd, rest.ptr, rest.len, @intCast(offset + filled));
        switch (linux.errno(rc)) {
            // The file was truncated while it was open.
            .SUCCESS => if (rc == 0) return error.ReadFailed else {
                filled += rc;
            },
            .INTR => {},
            else => return error.ReadFailed,
        }
    }
}

/// Like `read`, but only from memory; returns false if the disk is needed.
pub fn readNow(file: *StoreFile, buffer: []u8, offset: u64) ReadError!bool {
    if (buffer.len > file.size or offset > file.size - buffer.len) return error.BeyondTheEnd;
    return read_now_module.read(&file.read_now, file.fd, buffer, offset) == buffer.len;
}

/// Returns the file as a disk. The file must be a disk, stay open and not move in memory.
pub fn source(file: *StoreFile) BlockSource {
    return .{
        .context = file,
        .vtable = &.{ .read = readSource, .readNow = readSourceNow },
        .size = file.size,
    };
}

fn readSourceNow(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!bool {
    const file: *StoreFile = @ptrCast(@alignCast(context));
    return file.readNow(buffer, offset);
}

fn readSource(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    const file: *StoreFile = @ptrCast(@alignCast(context));
    return file.read(buffer, offset);
}

fn fromRc(rc: usize, kind: Kind) OpenError!StoreFile {
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .NOENT, .NOTDIR, .NAMETOOLONG => return error.Missing,
        .XDEV, .LOOP => return error.PathEscapes,
        else => return error.NotReadable,
    }
    const fd: i32 = @intCast(rc);
    errdefer _ = linux.close(fd);
    var stat: linux.Statx = undefined;
    const mask: linux.STATX = .{ .TYPE = true, .MODE = true, .SIZE = true, .MTIME = true };
    if (linux.errno(linux.statx(fd, "", empty_path, mask, &stat)) != .SUCCESS)
        return error.NotReadable;
    const size = switch (stat.mode & linux.S.IFMT) {
        linux.S.IFREG => stat.size,
        linux.S.IFBLK => if (kind != .plain) blockDeviceSize(fd) orelse
            return error.NotReadable else return error.NotAFile,
        else => return error.NotAFile,
    };
    if (size == 0) return error.Empty;
    if (kind == .disk and size % sector_size != 0) return error.NotSectors;
    const modified_ns = @as(i128, stat.mtime.sec) * std.time.ns_per_s + stat.mtime.nsec;
    return .{ .fd = fd, .size = size, .modified_ns = modified_ns };
}

const empty_path = 0x1000;
const resolve_beneath = 0x08;
const seek_end = 2;

fn blockDeviceSize(fd: i32) ?u64 {
    const rc = linux.lseek(fd, 0, seek_end);
    return if (linux.errno(rc) == .SUCCESS) rc else null;
}

fn terminated(path: []const u8) error{BadPath}![path_size_max:0]u8 {
    if (path.len == 0 or path.len > path_size_max) return error.BadPath;
    if (std.mem.findScalar(u8, path, 0) != null) return error.BadPath;
    var path_z: [path_size_max:0]u8 = @splat(0);
    @memcpy(path_z[0..path.len], path);
    return path_z;
}

/// Returns whether a path is relative, `/`-separated, and without empty, `.` or `..` parts.
fn isInside(path: []const u8) bool {
    var parts = std.mem.splitScalar(u8, path, '/');
    while (parts.next()) |part| {
        if (part.len == 0) return false;
        if (std.mem.eql(u8, part, ".") or std.mem.eql(u8, part, "..")) return false;
    }
    return true;
}

/// Describes the problem as the end of a sentence that starts with the path.
pub fn sentence(problem: OpenError, kind: Kind) []const u8 {
    return switch (problem) {
        error.Missing => "does not exist",
        error.NotReadable => "cannot be read by this user",
        error.NotAFile => switch (kind) {
            .disk, .image => "is neither a file nor a block device",
            .plain => "is not a file",
        },
        error.Empty => "is empty",
        error.NotSectors => "is not a disk image: its size is not a multiple of 512 bytes",
        error.PathEscapes => "leads out of the store directory",
    };
}

const testing = std.testing;
const io = testing.io;

test "a disk is a file of whole sectors" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(io, .{ .sub_path = "good", .data = &@as([1024]u8, @splat('g')) });
    try tmp.dir.writeFile(io, .{ .sub_path = "odd", .data = "not a sector" });
    try tmp.dir.writeFile(io, .{ .sub_path = "empty", .data = "" });
    try tmp.dir.createDirPath(io, "dir");
    const fd = tmp.dir.handle;
    try testing.expectError(error.Missing, StoreFile.openBelow(fd, "absent", .disk));
    try testing.expectError(error.Empty, StoreFile.openBelow(fd, "empty", .disk));
    try testing.expectError(error.NotSectors, StoreFile.openBelow(fd, "odd", .disk));
    try testing.expectError(error.NotAFile, StoreFile.openBelow(fd, "dir", .disk));
    try testing.expectError(error.NotAFile, StoreFile.open("/dev/null", .disk));
    try testing.expectError(error.Missing, StoreFile.open("", .disk));
    var plain = try StoreFile.openBelow(fd, "odd", .plain);
    plain.close();
    var disk = try StoreFile.openBelow(fd, "good", .disk);
    defer disk.close();
    try testing.expectEqual(1024, disk.size);
}

test "a read returns all of its bytes or none" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(
        io,
        .{ .sub_path = "disk", .data = "a" ++ &@as([510]u8, @splat(0)) ++ "z" },
    );
    var disk = try StoreFile.openBelow(tmp.dir.handle, "disk", .disk);
    defer disk.close();
    var buffer: [512]u8 = undefined;
    try disk.read(&buffer, 0);
    try testing.expectEqual('z', buffer[511]);
    // Just written, so it is in memory on a file system that can report that.
    const is_read = try disk.readNow(buffer[0..1], 511);
    try testing.expectEqual(disk.read_now.load(.monotonic) != .never, is_read and buffer[0] == 'z');
    try testing.expectError(error.BeyondTheEnd, disk.readNow(&buffer, 1));
    try disk.source().read(buffer[0..1], 0);
    try testing.expectEqual('a', buffer[0]);
    try testing.expectError(error.BeyondTheEnd, disk.read(&buffer, 1));
    try testing.expectError(error.BeyondTheEnd, disk.read(&buffer, std.math.maxInt(u64)));
    const file = try tmp.dir.openFile(io, "disk", .{ .mode = .read_write });
    try file.setLength(io, 100);
    file.close(io);
    try testing.expectError(error.ReadFailed, disk.read(&buffer, 0));
}

test "paths and links that lead out of the store are refused" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    for ([_][]const u8{
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "./a",
        "a/.",
        "a\x00b",
    }) |path|
        try testing.expectError(
            error.PathEscapes,
            StoreFile.openBelow(tmp.dir.handle, path, .plain),
        );
    // The longest path, and one byte more.
    for ([_]OpenError{ error.Missing, error.PathEscapes }, 0..) |expected, more| {
        const path: [path_size_max + 1]u8 = @splat('a');
        const part = path[0 .. path_size_max + more];
        try testing.expectError(expected, StoreFile.openBelow(tmp.dir.handle, part, .plain));
    }
    try tmp.dir.symLink(io, "/etc", "etc", .{});
    try testing.expectError(
        error.PathEscapes,
        StoreFile.openBelow(tmp.dir.handle, "etc/passwd", .plain),
    );
}

test "an open file is closed in a program that is started, and has the time of its last change" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try tmp.dir.writeFile(io, .{ .sub_path = "file", .data = "x" });
    var path_buffer: [std.fs.max_path_bytes]u8 = undefined;
    const path = path_buffer[0..try tmp.dir.realPathFile(io, "file", &path_buffer)];
    var ways = [_]StoreFile{
        try StoreFile.openBelow(tmp.dir.handle, "file", .plain),
        try StoreFile.open(path, .plain),
    };
    for (&ways) |*file| {
        defer file.close();
        try testing.expectEqual(linux.FD_CLOEXEC, linux.fcntl(file.fd, linux.F.GETFD, 0));
        const stat = try tmp.dir.statFile(io, "file", .{});
        try testing.expectEqual(stat.mtime.nanoseconds, file.modified_ns);
        try testing.expectEqual(1, file.size);
        var byte: [1]u8 = undefined;
        try file.read(&byte, 0);
        try testing.expectError(error.BeyondTheEnd, file.read(&byte, 1));
        try file.read(byte[0..0], 1);
    }
}

test "a reader never waits to open a file that somebody has to write" {
    try testing.expectError(error.NotAFile, StoreFile.open("/dev/zero", .plain));
    try testing.expectError(error.Missing, StoreFile.open("/dev/null/x", .plain));
}
