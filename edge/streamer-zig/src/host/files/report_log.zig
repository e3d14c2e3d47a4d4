//! The report log (core/uplink/report_log.zig) in a directory of this system.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Io = std.Io;

pub const ReportLog = core.uplink.report_log.ReportLog(LogFiles);
pub const batch_size_max = core.uplink.report_log.batch_size_max;

pub const LogFiles = struct {
    io: Io,
    /// Used only by the log, and iterable; its opener closes it after the log. Null until `parent`
    /// lets it be created.
    dir: ?Io.Dir,
    parent: ?Io.Dir = null,
    mutex: Io.Mutex = .init,

    pub const File = i32;
    pub const Error = error{DiskFailed};

    pub fn lock(files: *LogFiles) void {
        files.mutex.lockUncancelable(files.io);
    }

    pub fn unlock(files: *LogFiles) void {
        files.mutex.unlock(files.io);
    }

    /// Opens the directory `reports` of the data directory `parent` as soon as the disk lets it.
    pub fn below(io: Io, parent: Io.Dir) LogFiles {
        var files: LogFiles = .{ .io = io, .dir = null, .parent = parent };
        files.dir = files.directory() catch null;
        return files;
    }

    fn directory(files: *LogFiles) Error!Io.Dir {
        if (files.dir) |dir| return dir;
        const parent = files.parent orelse return error.DiskFailed;
        parent.createDirPath(files.io, "reports") catch return error.DiskFailed;
        files.dir = parent.openDir(files.io, "reports", .{ .iterate = true }) catch
            return error.DiskFailed;
        return files.dir.?;
    }

    pub const Iterator = struct {
        io: Io,
        entries: ?Io.Dir.Iterator,

        pub fn next(iterator: *Iterator) Error!?[]const u8 {
            const entries = if (iterator.entries) |*entries| entries else return null;
            const entry = entries.next(iterator.io) catch return error.DiskFailed;
            return if (entry) |found| found.name else null;
        }
    };

    pub fn iterate(files: *LogFiles) Iterator {
        return .{ .io = files.io, .entries = if (files.dir) |dir| dir.iterate() else null };
    }

    /// Creates a file; none of the same name may exist.
    pub fn make(files: *LogFiles, name: []const u8) Error!File {
        const dir = try files.directory();
        const file = dir.createFile(
            files.io,
            name,
            .{ .read = true, .exclusive = true },
        ) catch return error.DiskFailed;
        return ownersOnly(file.handle);
    }

    pub fn openOrMake(files: *LogFiles, name: []const u8) Error!File {
        const dir = try files.directory();
        const file = dir.createFile(
            files.io,
            name,
            .{ .read = true, .truncate = false },
        ) catch return files.open(name);
        return ownersOnly(file.handle);
    }

    /// Of a disk that is read-only, the file can be read at least.
    pub fn open(files: *LogFiles, name: []const u8) Error!File {
        const dir = try files.directory();
        const file = dir.openFile(files.io, name, .{ .mode = .read_write }) catch
            dir.openFile(files.io, name, .{}) catch return error.DiskFailed;
        return ownersOnly(file.handle);
    }

    /// Reports name devices and their users' machines: whatever the umask was when a file was
    /// created, only the edge's user reads it. A file system without modes keeps the file usable.
    fn ownersOnly(file: File) File {
        _ = linux.fchmod(file, 0o600);
        return file;
    }

    pub fn close(_: *LogFiles, file: File) void {
        sys.close(file);
    }

    pub fn delete(files: *LogFiles, name: []const u8) Error!void {
        (try files.directory()).deleteFile(files.io, name) catch return error.DiskFailed;
    }

    /// Appends at the file's position, which is its end.
    pub fn append(_: *LogFiles, file: File, bytes: []const u8) Error!void {
        sys.writeAll(file, bytes) catch return error.DiskFailed;
    }

    pub fn truncate(_: *LogFiles, file: File, size: u64) Error!void {
        if (linux.errno(linux.ftruncate(file, @intCast(size))) != .SUCCESS) return error.DiskFailed;
        if (linux.errno(linux.lseek(file, @intCast(size), linux.SEEK.SET)) != .SUCCESS)
            return error.DiskFailed;
    }

    pub fn readAt(_: *LogFiles, file: File, buffer: []u8, offset: u64) Error!usize {
        return sys.readAt(file, buffer, offset) catch error.DiskFailed;
    }

    pub fn writeAt(_: *LogFiles, file: File, bytes: []const u8, offset: u64) Error!void {
        sys.writeAllAt(file, bytes, offset) catch return error.DiskFailed;
    }

    pub fn sync(_: *LogFiles, file: File) Error!void {
        if (linux.errno(linux.fdatasync(file)) != .SUCCESS) return error.DiskFailed;
    }

    pub fn syncNames(files: *LogFiles) void {
        if (files.dir) |dir| _ = linux.fsync(dir.handle);
    }

    pub fn unixMs(_: *LogFiles) u64 {
        return sys.unixMs();
    }
};

test {
    _ = @import("report_log_test.zig");
}
