//! A backup directory: `bootfarm-backup`, its record; `store`, a copy of the store that every
//! command can read and none can change; `caches`, the writes of devices as files of `vdisk caches
//! export`; and `lock`, held by the process that works on it.

const std = @import("std");
const store_module = @import("store");
const Call = @import("../subcommand.zig");
const Io = std.Io;
const linux = std.os.linux;

const LinuxFiles = store_module.LinuxFiles;
const Record = store_module.backup_record.Record;

const store_name = "store";
pub const caches_name = "caches";
const lock_name = "lock";
pub const cache_suffix = ".cache";

pub const Directory = @This();

path: []const u8,
on: LinuxFiles,
/// The copy of the store.
store_on: LinuxFiles,
store_path: []const u8,
lock: store_module.files.Handle,

pub fn close(directory: *Directory) void {
    directory.on.files().close(directory.lock);
    directory.store_on.close();
    directory.on.close();
    directory.* = undefined;
}

/// Opens a backup directory to write to it, and makes it if it is not there.
pub fn openToWrite(call: *const Call, path: []const u8) Call.Error!Directory {
    const io, const cwd = .{ call.init.io, Io.Dir.cwd() };
    cwd.createDirPath(io, path) catch return call.fail(
        "The directory {s} cannot be created; choose one that this user may create.",
        .{path},
    );
    try refuseNested(call, path);
    var on = LinuxFiles.open(path) catch |err| return explain(call, path, err);
    errdefer on.close();
    const files = on.files();
    const record = try readRecord(call, path, files);
    if (record == null and !try isEmpty(files, call, path)) return call.fail(
        "{s} contains other files; choose an empty directory, or one with a backup of this store.",
        .{path},
    );
    for ([_][]const u8{ store_name, caches_name }) |name| files.makeDir(name) catch |err|
        if (err != error.Exists) return explain(call, path, err);
    const lock = files.create(lock_name) catch |err| switch (err) {
        error.Exists => files.open(lock_name, .write) catch |other|
            return explain(call, path, other),
        else => |other| return explain(call, path, other),
    };
    errdefer files.close(lock);
    return take(call, path, on, lock, true);
}

/// Opens a backup directory to read it, which may be on a read-only file system.
pub fn openToRead(call: *const Call, path: []const u8) Call.Error!Directory {
    var on = LinuxFiles.open(path) catch |err| return explain(call, path, err);
    errdefer on.close();
    const files = on.files();
    const lock = files.open(lock_name, .read) catch |err| return if (err == error.NotFound)
        call.fail("{s} is not a backup of bootfarm-edge vdisk backup.", .{path})
    else
        explain(call, path, err);
    errdefer files.close(lock);
    return take(call, path, on, lock, false);
}

fn take(
    call: *const Call,
    path: []const u8,
    on: LinuxFiles,
    lock: store_module.files.Handle,
    is_exclusive: bool,
) Call.Error!Directory {
    var held = on;
    const is_locked = held.files().tryLock(lock, is_exclusive) catch |err|
        return explain(call, path, err);
    if (!is_locked) return call.failBusy(
        "The backup {s} is in use by another backup or restore; wait until it ends.",
        .{path},
    );
    const arena = call.init.arena.allocator();
    const store_path = try std.fmt.allocPrint(arena, "{s}/" ++ store_name, .{path});
    return .{
        .path = path,
        .on = on,
        .store_on = LinuxFiles.open(store_path) catch |err|
            return explain(call, store_path, err),
        .store_path = store_path,
        .lock = lock,
    };
}

/// Returns the path of a file in `caches`.
pub fn cachePath(
    directory: *const Directory,
    arena: std.mem.Allocator,
    name: []const u8,
    suffix: []const u8,
) error{OutOfMemory}![]const u8 {
    return std.fmt.allocPrint(
        arena,
        "{s}/" ++ caches_name ++ "/{s}{s}",
        .{ directory.path, name, suffix },
    );
}

pub fn readRecord(
    call: *const Call,
    path: []const u8,
    files: store_module.Files,
) Call.Error!?Record {
    return Record.read(files) catch |err| switch (err) {
        error.Damaged => call.fail(
            "{s} is not used: its file " ++ store_module.backup_record.record_name ++
                " is damaged; choose another directory for a new backup.",
            .{path},
        ),
        error.TooNew => call.fail(
            "A later release has made the backup {s}; update bootfarm-edge.",
            .{path},
        ),
        else => |other| explain(call, path, other),
    };
}

/// Explains a problem of the backup's disk.
pub fn explain(
    call: *const Call,
    path: []const u8,
    problem: store_module.files.Error,
) Call.Error {
    return switch (problem) {
        error.NoSpace => call.fail(
            "The disk of {s} is full. What was copied stays, and so does what the last backup has: free some space and run the command again.",
            .{path},
        ),
        else => |other| call.fail("{s} {s}.", .{ path, store_module.files.sentence(other) }),
    };
}

fn isEmpty(files: store_module.Files, call: *const Call, path: []const u8) Call.Error!bool {
    var name: store_module.files.Name = undefined;
    var at: []const u8 = "";
    while (files.nextName("", at, &name) catch |err| return explain(call, path, err)) |found| {
        at = found;
        // What an interrupted start has left, and the root of a file system.
        const ours = [_][]const u8{ lock_name, store_name, caches_name, "lost+found" };
        for (ours) |each| {
            if (std.mem.eql(u8, each, found)) break;
        } else if (!std.mem.endsWith(u8, found, ".new")) return false;
    }
    return true;
}

/// A backup in its store would be lost with it, and a store in its backup be part of the next one.
pub fn refuseNested(call: *const Call, path: []const u8) Call.Error!void {
    const io, const cwd = .{ call.init.io, Io.Dir.cwd() };
    var buffers: [2][std.fs.max_path_bytes]u8 = undefined;
    var paths: [2][]const u8 = undefined;
    for ([_][]const u8{ path, call.path() }, &buffers, &paths) |given, *buffer, *real| {
        const size = cwd.realPathFile(io, given, buffer) catch return;
        real.* = buffer[0..size];
    }
    for ([_][2][]const u8{ .{ paths[0], paths[1] }, .{ paths[1], paths[0] } }) |pair| {
        const rest = std.mem.cutPrefix(u8, pair[0], pair[1]) orelse continue;
        if (rest.len > 0 and rest[0] != '/' and pair[1].len > 1) continue;
        // If it was made for this, it is empty.
        cwd.deleteDir(io, path) catch {};
        return call.fail(
            "{s} and the store {s} contain one another; choose a directory on another disk.",
            .{ path, call.path() },
        );
    }
}

/// Drops what the system has of a file in memory, so that what is read back comes from the disk.
pub fn evict(handle: store_module.files.Handle) void {
    const dont_need = 4;
    _ = linux.fadvise(@backingInt(handle), 0, 0, dont_need);
}
