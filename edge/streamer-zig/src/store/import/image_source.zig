//! Sources of disk images: a file, a block device, a stream. Importers use only this interface, so
//! that other formats and the network can implement it.

const std = @import("std");
const assert = std.debug.assert;
const linux = std.os.linux;

/// `Canceled`: the operation was canceled while it waited for bytes.
pub const ReadError = error{ ReadFailed, Canceled };
pub const OpenError = error{ Missing, NotReadable, NotAnImage, Empty, TooLong };

pub const path_size_max = 1024;

/// Tells states of a source apart. A device and a stream have no such mark: bytes read before must
/// be read again and compared.
pub const Stamp = struct {
    kind: Kind,
    device: u64 = 0,
    inode: u64 = 0,
    modified_ns: u64 = 0,

    pub const Kind = enum(u8) { file = 1, block_device = 2, stream = 3 };

    pub fn eql(a: Stamp, b: Stamp) bool {
        return a.kind == b.kind and a.device == b.device and a.inode == b.inode and
            a.modified_ns == b.modified_ns;
    }

    /// Returns whether equal stamps mean equal bytes.
    pub fn isProof(stamp: Stamp) bool {
        return stamp.kind == .file;
    }
};

pub const ImageSource = struct {
    context: *anyopaque,
    vtable: *const VTable,
    /// Size in bytes when it was opened; null if only the end tells.
    size: ?u64,
    /// Reads may come at any offset and from several threads; otherwise in order, one at a time.
    is_positional: bool,

    pub const VTable = struct {
        read: *const fn (*anyopaque, buffer: []u8, offset: u64, failed_at: *u64) ReadError!usize,
        nextData: *const fn (*anyopaque, offset: u64) ?u64,
        now: *const fn (*anyopaque) ?Now,
        /// Of a source that has only what differs from the disk that the import begins with; null
        /// for whole images.
        dataEnd: ?*const fn (*anyopaque, offset: u64) u64 = null,
    };

    /// The source's current state.
    pub const Now = struct { stamp: Stamp, size: ?u64 };

    /// Returns the number of bytes read; fewer only at the end. `failed_at`: the byte that could
    /// not be read.
    pub fn read(
        source: *const ImageSource,
        buffer: []u8,
        offset: u64,
        failed_at: *u64,
    ) ReadError!usize {
        return source.vtable.read(source.context, buffer, offset, failed_at);
    }

    /// Finds the next bytes at or after `offset` that may be nonzero, or that differ; null if none
    /// follow.
    pub fn nextData(source: *const ImageSource, offset: u64) ?u64 {
        return source.vtable.nextData(source.context, offset);
    }

    /// Returns whether the disk stays as it is where `nextData` skips bytes, in place of zeros.
    pub fn isDifference(source: *const ImageSource) bool {
        return source.vtable.dataEnd != null;
    }

    /// Returns where the bytes end that `nextData` has found at `offset`; null: not before the next
    /// ones that it skips.
    pub fn dataEnd(source: *const ImageSource, offset: u64) ?u64 {
        const find = source.vtable.dataEnd orelse return null;
        return find(source.context, offset);
    }

    /// Null if the state can no longer be read.
    pub fn now(source: *const ImageSource) ?Now {
        return source.vtable.now(source.context);
    }
};

/// A regular file, a block device, or a descriptor such as standard input.
pub const FdSource = struct {
    fd: i32,
    kind: Stamp.Kind,
    size: ?u64,
    /// Checked while a stream has no bytes.
    is_canceled: *const std.atomic.Value(bool),
    stream_at: u64 = 0,
    /// Of a file that was made for the import from something that has these bytes alone: the same
    /// stamp whenever it is made.
    content_stamp: ?Stamp = null,

    /// Interval at which a waiting read checks for cancellation.
    const stream_wait_ms = 200;
    const vtable: ImageSource.VTable = .{ .read = read, .nextData = nextData, .now = now };

    pub fn open(path: []const u8, is_canceled: *const std.atomic.Value(bool)) OpenError!FdSource {
        if (path.len == 0) return error.Missing;
        if (path.len > path_size_max) return error.TooLong;
        var path_z: [path_size_max:0]u8 = @splat(0);
        @memcpy(path_z[0..path.len], path);
        const rc = linux.openat(linux.AT.FDCWD, &path_z, .{ .CLOEXEC = true }, 0);
        switch (linux.errno(rc)) {
            .SUCCESS => {},
            .NOENT, .NOTDIR => return error.Missing,
            else => return error.NotReadable,
        }
        const fd: i32 = @intCast(rc);
        errdefer _ = linux.close(fd);
        return fromFd(fd, is_canceled);
    }

    /// Takes ownership of a descriptor that is open for reading.
    pub fn fromFd(fd: i32, is_canceled: *const std.atomic.Value(bool)) OpenError!FdSource {
        const stat = statOf(fd) orelse return error.NotReadable;
        const kind: Stamp.Kind = switch (stat.mode & linux.S.IFMT) {
            linux.S.IFREG => .file,
            linux.S.IFBLK => .block_device,
            linux.S.IFIFO, linux.S.IFSOCK => .stream,
            else => return error.NotAnImage,
        };
        const size: ?u64 = switch (kind) {
            .file => stat.size,
            .block_device => blockDeviceSize(fd) orelse return error.NotReadable,
            .stream => null,
        };
        if (size == 0) return error.Empty;
        return .{ .fd = fd, .kind = kind, .size = size, .is_canceled = is_canceled };
    }

    pub fn close(on: *FdSource) void {
        _ = linux.close(on.fd);
        on.* = undefined;
    }

    pub fn source(on: *FdSource) ImageSource {
        return .{
            .context = on,
            .vtable = &vtable,
            .size = on.size,
            .is_positional = on.kind != .stream,
        };
    }

    fn read(context: *anyopaque, buffer: []u8, offset: u64, failed_at: *u64) ReadError!usize {
        const on: *FdSource = @ptrCast(@alignCast(context));
        assert(on.kind != .stream or offset == on.stream_at);
        var filled: usize = 0;
        while (filled < buffer.len) {
            if (on.kind == .stream) try on.awaitStream();
            const rest = buffer[filled..];
            const rc = if (on.kind == .stream)
                linux.read(on.fd, rest.ptr, rest.len)
            else
                linux.pread(on.fd, rest.ptr, rest.len, @intCast(offset + filled));
            switch (linux.errno(rc)) {
                .SUCCESS => {},
                .INTR, .AGAIN => continue,
                else => {
                    failed_at.* = offset + filled;
                    return error.ReadFailed;
                },
            }
            if (rc == 0) break;
            filled += rc;
        }
        if (on.kind == .stream) on.stream_at += filled;
        return filled;
    }

    fn awaitStream(on: *const FdSource) ReadError!void {
        while (true) {
            if (on.is_canceled.load(.monotonic)) return error.Canceled;
            var polled = [_]linux.pollfd{.{ .fd = on.fd, .events = linux.POLL.IN, .revents = 0 }};
            const rc = linux.poll(&polled, polled.len, stream_wait_ms);
            if (linux.errno(rc) == .SUCCESS and rc == 0) continue;
            if (linux.errno(rc) == .INTR) continue;
            return;
        }
    }

    const seek_end = 2;
    const seek_data = 3;

    fn nextData(context: *anyopaque, offset: u64) ?u64 {
        const on: *FdSource = @ptrCast(@alignCast(context));
        if (on.kind != .file) return offset;
        const rc = linux.lseek(on.fd, @intCast(offset), seek_data);
        return switch (linux.errno(rc)) {
            .SUCCESS => rc,
            .NXIO => null,
            // A file system without holes has data everywhere.
            else => offset,
        };
    }

    fn now(context: *anyopaque) ?ImageSource.Now {
        const on: *FdSource = @ptrCast(@alignCast(context));
        if (on.kind == .stream) return .{ .stamp = .{ .kind = .stream }, .size = null };
        const stat = statOf(on.fd) orelse return null;
        if (on.kind == .block_device) return .{
            .stamp = .{
                .kind = .block_device,
                .device = deviceNumber(stat.rdev_major, stat.rdev_minor),
            },
            .size = blockDeviceSize(on.fd),
        };
        if (on.content_stamp) |stamp| return .{ .size = stat.size, .stamp = stamp };
        const modified_ns = @as(i128, stat.mtime.sec) * std.time.ns_per_s + stat.mtime.nsec;
        return .{ .size = stat.size, .stamp = .{
            .kind = .file,
            .device = deviceNumber(stat.dev_major, stat.dev_minor),
            .inode = stat.ino,
            .modified_ns = @truncate(@as(u128, @bitCast(modified_ns))),
        } };
    }

    fn deviceNumber(major: u32, minor: u32) u64 {
        return @as(u64, major) << 32 | minor;
    }

    fn statOf(fd: i32) ?linux.Statx {
        var stat: linux.Statx = undefined;
        const mask: linux.STATX = .{
            .TYPE = true,
            .MODE = true,
            .SIZE = true,
            .MTIME = true,
            .INO = true,
        };
        const rc = linux.statx(fd, "", linux.AT.EMPTY_PATH, mask, &stat);
        return if (linux.errno(rc) == .SUCCESS) stat else null;
    }

    fn blockDeviceSize(fd: i32) ?u64 {
        const rc = linux.lseek(fd, 0, seek_end);
        return if (linux.errno(rc) == .SUCCESS) rc else null;
    }
};

/// Describes the problem as the end of a sentence that starts with the source's path.
pub fn sentence(problem: OpenError) []const u8 {
    return switch (problem) {
        error.Missing => "does not exist",
        error.NotReadable => "cannot be read by this user",
        error.NotAnImage => "is neither a file, a block device nor a stream",
        error.Empty => "is empty",
        error.TooLong => "has a path that is too long",
    };
}

const testing = std.testing;
const io = testing.io;

test "a file has a size, holes, and a stamp that changes with its bytes" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const file = try tmp.dir.createFile(io, "image", .{ .read = true });
    try file.setLength(io, 8 << 20);
    try file.writePositionalAll(io, "x", 4 << 20);
    const is_canceled: std.atomic.Value(bool) = .init(false);
    var on: FdSource = try .fromFd(file.handle, &is_canceled);
    defer on.close();
    const source = on.source();
    try testing.expectEqual(8 << 20, source.size.?);
    try testing.expect(source.is_positional);
    const data = source.nextData(0).?;
    try testing.expect(data > 0 and data <= 4 << 20);
    try testing.expectEqual(null, source.nextData(5 << 20));
    var buffer: [4]u8 = undefined;
    var failed_at: u64 = 0;
    try testing.expectEqual(1, try source.read(&buffer, (8 << 20) - 1, &failed_at));
    const before = source.now().?;
    try testing.expect(before.stamp.eql(source.now().?.stamp));
    try file.setLength(io, 9 << 20);
    const after = source.now().?;
    try testing.expect(after.size.? != before.size.?);
    try testing.expect(before.stamp.isProof());
}

test "a stream is read in order up to its end, and a canceled read returns" {
    var fds: [2]i32 = undefined;
    try testing.expectEqual(.SUCCESS, linux.errno(linux.pipe2(&fds, .{ .CLOEXEC = true })));
    var is_canceled: std.atomic.Value(bool) = .init(false);
    var on: FdSource = try .fromFd(fds[0], &is_canceled);
    defer on.close();
    const source = on.source();
    try testing.expectEqual(null, source.size);
    try testing.expect(!source.now().?.stamp.isProof());
    _ = linux.write(fds[1], "abcdef", 6);
    var buffer: [4]u8 = undefined;
    var failed_at: u64 = 0;
    try testing.expectEqual(4, try source.read(&buffer, 0, &failed_at));
    try testing.expectEqualStrings("abcd", &buffer);
    is_canceled.store(true, .monotonic);
    try testing.expectError(error.Canceled, source.read(&buffer, 4, &failed_at));
    is_canceled.store(false, .monotonic);
    _ = linux.close(fds[1]);
    try testing.expectEqual(2, try source.read(&buffer, 4, &failed_at));
}

test "sources that are not images are refused with the reason" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const is_canceled: std.atomic.Value(bool) = .init(false);
    try testing.expectError(error.Missing, FdSource.open("", &is_canceled));
    try testing.expectError(error.NotAnImage, FdSource.open("/dev/null", &is_canceled));
    try testing.expectError(error.NotAnImage, FdSource.open("/", &is_canceled));
    const file = try tmp.dir.createFile(io, "empty", .{ .read = true });
    defer file.close(io);
    try testing.expectError(error.Empty, FdSource.fromFd(file.handle, &is_canceled));
}

test "each part of a stamp tells states of a source apart" {
    const stamp: Stamp = .{ .kind = .file, .device = 1, .inode = 2, .modified_ns = 3 };
    try testing.expect(stamp.eql(stamp));
    var others: [4]Stamp = @splat(stamp);
    others[0].kind = .block_device;
    others[1].device = 9;
    others[2].inode = 9;
    others[3].modified_ns = 9;
    for (others) |other| try testing.expect(!stamp.eql(other) and !other.eql(stamp));
    try testing.expect(!others[0].isProof());
}

test "a file is opened by its path, has the stamp that the system gives, and reads up to its end" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const is_canceled: std.atomic.Value(bool) = .init(false);
    try tmp.dir.writeFile(io, .{ .sub_path = "image", .data = "0123456789" });
    var path_buffer: [std.fs.max_path_bytes]u8 = undefined;
    const path = path_buffer[0..try tmp.dir.realPathFile(io, "image", &path_buffer)];
    var on: FdSource = try .open(path, &is_canceled);
    defer on.close();
    try testing.expectEqual(linux.FD_CLOEXEC, linux.fcntl(on.fd, linux.F.GETFD, 0));
    const stat = FdSource.statOf(on.fd).?;
    const now = on.source().now().?;
    try testing.expectEqual(10, now.size.?);
    try testing.expectEqual(stat.ino, now.stamp.inode);
    const device = @as(u64, stat.dev_major) * (1 << 32) + stat.dev_minor;
    try testing.expectEqual(device, now.stamp.device);
    const seconds: u64 = @intCast(stat.mtime.sec);
    try testing.expectEqual(seconds * std.time.ns_per_s + stat.mtime.nsec, now.stamp.modified_ns);
    var buffer: [8]u8 = undefined;
    var failed_at: u64 = 0;
    try testing.expectEqual(8, try on.source().read(&buffer, 1, &failed_at));
    try testing.expectEqualStrings("12345678", &buffer);
    try testing.expectEqual(3, try on.source().read(&buffer, 7, &failed_at));
    try testing.expectEqual(0, try on.source().read(&buffer, 10, &failed_at));
    // The longest path, and one byte more.
    const long: [path_size_max + 1]u8 = @splat('/');
    try testing.expectError(error.NotAnImage, FdSource.open(long[0..path_size_max], &is_canceled));
    try testing.expectError(error.TooLong, FdSource.open(&long, &is_canceled));
    try testing.expectError(error.Missing, FdSource.open("/dev/null/x", &is_canceled));
}

test "a source that cannot be read is reported at the byte" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const is_canceled: std.atomic.Value(bool) = .init(false);
    // Only for writing.
    const file = try tmp.dir.createFile(io, "image", .{});
    try file.writePositionalAll(io, "abc", 0);
    var on: FdSource = try .fromFd(file.handle, &is_canceled);
    defer on.close();
    var buffer: [2]u8 = undefined;
    var failed_at: u64 = 0;
    try testing.expectError(error.ReadFailed, on.source().read(&buffer, 1, &failed_at));
    try testing.expectEqual(1, failed_at);
    try testing.expectError(error.NotReadable, FdSource.fromFd(-1, &is_canceled));
}
