//! The directory of a report log (core/uplink/report_log.zig) on the disk of a simulated edge.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const Fabric = @import("network.zig").Network;
const SimFiles = @import("../kit/sim_files.zig");

pub const LogFiles = @This();

/// The simulated wall clock is the monotonic one and this constant.
pub const unix_ms_at_0 = 1_795_000_000_000;
const dir = "reports";

disk: *SimFiles,
fabric: *const Fabric,
/// By how much the edge's wall clock is wrong.
clock_offset_ms: i64,
/// The file that was appended to last, while it is open, and where its last record begins.
appended: ?struct { file: File, offset: u64 } = null,

pub const File = store.files.Handle;
pub const Error = error{DiskFailed};

const Path = base.BoundedArray(u8, store.files.name_size_max);

/// Makes the directory of a new edge.
pub fn makeDir(disk: *SimFiles) void {
    disk.files().makeDir(dir) catch unreachable;
    disk.files().syncDir("") catch unreachable;
}

/// Deletes every file of the log.
pub fn forget(log: *LogFiles) void {
    var iterator = log.iterate();
    while (iterator.next() catch unreachable) |name| log.delete(name) catch unreachable;
}

/// Cuts the last record, as a process does that is killed while it writes; returns false if there
/// is none to cut.
pub fn tear(log: *LogFiles, prng: *base.Prng) bool {
    const appended = log.appended orelse return false;
    const files = log.disk.files();
    const size = files.size(appended.file) catch unreachable;
    if (size <= appended.offset) return false;
    files.setSize(appended.file, prng.between(appended.offset, size - 1)) catch unreachable;
    return true;
}

pub fn lock(_: *LogFiles) void {}
pub fn unlock(_: *LogFiles) void {}

pub const Iterator = struct {
    files: store.Files,
    name: store.files.Name = undefined,
    size: usize = 0,

    pub fn next(iterator: *Iterator) Error!?[]const u8 {
        const above = iterator.name;
        const found = iterator.files.nextName(dir, above[0..iterator.size], &iterator.name) catch
            return error.DiskFailed;
        const name = found orelse return null;
        iterator.size = name.len;
        return name;
    }
};

pub fn iterate(log: *LogFiles) Iterator {
    return .{ .files = log.disk.files() };
}

fn pathOf(name: []const u8) Path {
    var path: Path = .empty;
    for (dir ++ "/") |byte| path.appendAssumeCapacity(byte);
    for (name) |byte| path.appendAssumeCapacity(byte);
    return path;
}

/// Creates a file; none of the same name may exist.
pub fn make(log: *LogFiles, name: []const u8) Error!File {
    return log.disk.files().create(pathOf(name).constSlice()) catch error.DiskFailed;
}

pub fn openOrMake(log: *LogFiles, name: []const u8) Error!File {
    return log.open(name) catch log.make(name);
}

pub fn open(log: *LogFiles, name: []const u8) Error!File {
    return log.disk.files().open(pathOf(name).constSlice(), .write) catch error.DiskFailed;
}

pub fn close(log: *LogFiles, file: File) void {
    if (log.appended) |appended| if (appended.file == file) {
        log.appended = null;
    };
    log.disk.files().close(file);
}

pub fn delete(log: *LogFiles, name: []const u8) Error!void {
    log.disk.files().remove(pathOf(name).constSlice()) catch return error.DiskFailed;
}

pub fn append(log: *LogFiles, file: File, bytes: []const u8) Error!void {
    const files = log.disk.files();
    const offset = files.size(file) catch return error.DiskFailed;
    files.write(file, bytes, offset) catch return error.DiskFailed;
    log.appended = .{ .file = file, .offset = offset };
}

pub fn truncate(log: *LogFiles, file: File, size: u64) Error!void {
    log.disk.files().setSize(file, size) catch return error.DiskFailed;
}

pub fn readAt(log: *LogFiles, file: File, buffer: []u8, offset: u64) Error!usize {
    return log.disk.files().read(file, buffer, offset) catch error.DiskFailed;
}

pub fn writeAt(log: *LogFiles, file: File, bytes: []const u8, offset: u64) Error!void {
    log.disk.files().write(file, bytes, offset) catch return error.DiskFailed;
}

pub fn sync(log: *LogFiles, file: File) Error!void {
    log.disk.files().sync(file) catch return error.DiskFailed;
}

pub fn syncNames(log: *LogFiles) void {
    log.disk.files().syncDir(dir) catch {};
}

pub fn unixMs(log: *const LogFiles) u64 {
    const true_ms: i64 = @intCast(unix_ms_at_0 + log.fabric.now_us / std.time.us_per_ms);
    return @intCast(@max(0, true_ms + log.clock_offset_ms));
}
