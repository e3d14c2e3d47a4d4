//! The store's large files of one kind, extents or nodes: numbered, append-only, and kept open
//! while they are in use.

const std = @import("std");
const block = @import("../block.zig");
const Files = @import("files.zig");
const assert = std.debug.assert;

const Handle = Files.Handle;
const Location = block.Location;

/// `NotFound` or a short read of a referenced location means that the store is damaged.
pub const Error = Files.Error;

/// Number of files open at once.
const open_max = 64;

pub const Kind = enum {
    extents,
    nodes,

    pub fn dir(kind: Kind) []const u8 {
        return @tagName(kind);
    }
};

const OpenFile = struct {
    file: block.FileNumber = 0,
    handle: Handle = undefined,
    used_at: u64 = 0,
};

pub const FileSet = @This();

files: Files,
kind: Kind,
open: [open_max]OpenFile = @splat(.{}),
uses: u64 = 0,

pub fn init(files: Files, kind: Kind) FileSet {
    return .{ .files = files, .kind = kind };
}

pub fn deinit(set: *FileSet) void {
    for (&set.open) |*place| if (place.file != 0) set.files.close(place.handle);
    set.* = undefined;
}

/// Reads blocks or parts of them, from `skip` bytes behind the location; returns false if the
/// file ends before.
pub fn read(set: *FileSet, location: Location, skip: u64, buffer: []u8) Error!bool {
    const handle = try set.handleOf(location.file);
    return set.files.readWhole(handle, buffer, location.offset() + skip);
}

/// Like `read`, but only from memory; returns false if the disk is needed or the file is not
/// open.
pub fn readNow(set: *FileSet, location: Location, skip: u64, buffer: []u8) Error!bool {
    const handle = set.openHandle(location.file) orelse return false;
    return try set.files.readNow(handle, buffer, location.offset() + skip) == buffer.len;
}

/// Reads bytes ahead. The read itself reports a missing file.
pub fn prefetch(set: *FileSet, location: Location, skip: u64, size: u64) void {
    const handle = set.handleOf(location.file) catch return;
    set.files.prefetch(handle, location.offset() + skip, size);
}

fn openHandle(set: *FileSet, file: block.FileNumber) ?Handle {
    assert(file != 0);
    set.uses += 1;
    for (&set.open) |*place| {
        if (place.file != file) continue;
        place.used_at = set.uses;
        return place.handle;
    }
    return null;
}

/// Returns a handle for reading, which stays open until other files are used more.
pub fn handleOf(set: *FileSet, file: block.FileNumber) Error!Handle {
    if (set.openHandle(file)) |handle| return handle;
    var oldest: *OpenFile = &set.open[0];
    for (&set.open) |*place| {
        if (place.used_at < oldest.used_at) oldest = place;
    }
    var name: Files.Name = undefined;
    const handle = try set.files.open(set.nameOf(file, &name), .read);
    if (oldest.file != 0) set.files.close(oldest.handle);
    oldest.* = .{ .file = file, .handle = handle, .used_at = set.uses };
    return handle;
}

/// Closes a file that is about to be removed.
pub fn forget(set: *FileSet, file: block.FileNumber) void {
    for (&set.open) |*place| if (place.file == file) {
        set.files.close(place.handle);
        place.* = .{};
    };
}

pub fn nameOf(set: *const FileSet, file: block.FileNumber, into: *Files.Name) []const u8 {
    return std.mem.print(into, "{s}/{x:0>6}", .{ set.kind.dir(), file }) catch unreachable;
}

/// Returns the least number above `file`, or null if it is the last one. Skips foreign names.
pub fn next(set: *const FileSet, file: block.FileNumber) Error!?block.FileNumber {
    var name: Files.Name = undefined;
    const above = std.mem.print(&name, "{x:0>6}", .{file}) catch unreachable;
    var at: []const u8 = if (file == 0) "" else above;
    while (try set.files.nextName(set.kind.dir(), at, &name)) |found| {
        at = found;
        if (found.len != 6) continue;
        const number = std.fmt.parseInt(block.FileNumber, found, 16) catch continue;
        if (number != 0) return number;
    }
    return null;
}

pub const NewFile = struct { file: block.FileNumber, handle: Handle };

/// Creates the next file, empty. Nobody else has created it, even if several processes create
/// files. Its name is not durable yet.
pub fn make(set: *const FileSet) Error!NewFile {
    while (true) {
        const file = std.math.add(block.FileNumber, try set.last(), 1) catch return error.NoSpace;
        var name: Files.Name = undefined;
        const handle = set.files.create(set.nameOf(file, &name)) catch |err|
            if (err == error.Exists) continue else return err;
        return .{ .file = file, .handle = handle };
    }
}

/// Returns 0 if there are none.
pub fn last(set: *const FileSet) Error!block.FileNumber {
    var file: block.FileNumber = 0;
    while (try set.next(file)) |found| file = found;
    return file;
}

const testing = std.testing;
const LinuxFiles = @import("linux_files.zig");

test "the files used last stay open, and a forgotten one is opened again" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try files.makeDir("extents");
    var set: FileSet = .init(files, .extents);
    defer set.deinit();
    for (1..open_max + 3) |number| {
        const made = try set.make();
        try testing.expectEqual(number, made.file);
        try files.write(made.handle, &.{@intCast(number)}, block.block_size + 7);
        files.close(made.handle);
    }
    const place: Location = .{ .file = 3, .block = 1 };
    var byte: [1]u8 = undefined;
    // Not open: the disk is needed.
    try testing.expect(!try set.readNow(place, 7, &byte));
    for (1..open_max + 1) |file| _ = try set.handleOf(@intCast(file));
    try testing.expect(try set.read(place, 7, &byte));
    try testing.expectEqual(3, byte[0]);
    try testing.expect(!try set.read(place, 8, &byte));
    const first = set.openHandle(2).?;
    _ = try set.handleOf(1);
    for (4..open_max + 1) |file| _ = try set.handleOf(@intCast(file));
    // The ones used longest ago are closed for others: 3, then 2.
    const third = set.open[2].handle;
    for ([_]Handle{ third, first }, open_max + 1..) |closed, file| {
        _ = try files.size(closed);
        _ = try set.handleOf(@intCast(file));
        try testing.expectError(error.DiskFailed, files.size(closed));
    }
    for (1..open_max + 3) |file|
        try testing.expectEqual(file != 2 and file != 3, set.openHandle(@intCast(file)) != null);
    set.forget(5);
    try testing.expectEqual(null, set.openHandle(5));
    try testing.expect(set.openHandle(4) != null and set.openHandle(6) != null);
    _ = try set.handleOf(5);
    try testing.expectError(error.NotFound, set.handleOf(open_max + 3));
}

test "numbers are taken in order, foreign names are skipped, and the last number ends the store" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    try files.makeDir("nodes");
    var set: FileSet = .init(files, .nodes);
    defer set.deinit();
    try testing.expectEqual(0, try set.last());
    const names = [_][]const u8{
        "000000", "00001", "0000010", "000010", "00zz00", "0000ff", "note",
    };
    for (names) |name| {
        var path: Files.Name = undefined;
        files.close(try files.create(try std.mem.print(&path, "nodes/{s}", .{name})));
    }
    try testing.expectEqual(0x10, try set.next(0));
    try testing.expectEqual(0xff, try set.next(0x10));
    try testing.expectEqual(null, try set.next(0xff));
    const made = try set.make();
    files.close(made.handle);
    try testing.expectEqual(0x100, made.file);
    files.close(try files.create("nodes/7fffff"));
    try testing.expectError(error.NoSpace, set.make());
}
