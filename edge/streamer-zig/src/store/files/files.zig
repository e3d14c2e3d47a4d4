//! The interface of the store to its directory: real files (`linux_files.zig`), or a simulated disk
//! that loses and tears writes that were not synced. Names are relative, `/`-separated, without
//! `..`.
//!
//! Guarantees: bytes are durable after `sync` of their file, names after `syncDir` of their
//! directory, and `rename` replaces a name atomically. Before that, a crash may leave any mixture
//! of old and new, block by block.

const std = @import("std");

/// `NoSpace`: the disk or a quota is full. `Denied`: this user lacks permission. `DiskFailed`: any
/// other I/O error of the system.
pub const Error = error{ NotFound, Exists, NoSpace, ReadOnly, Denied, TooManyFiles, DiskFailed };

pub const Handle = enum(i32) { _ };

pub const Mode = enum { read, write };

pub const name_size_max = 128;
/// Longest name below the store's directory.
pub const Name = [name_size_max]u8;

pub const Files = @This();

context: *anyopaque,
vtable: *const VTable,

pub const VTable = struct {
    open: *const fn (*anyopaque, name: []const u8, mode: Mode) Error!Handle,
    create: *const fn (*anyopaque, name: []const u8) Error!Handle,
    close: *const fn (*anyopaque, Handle) void,
    size: *const fn (*anyopaque, Handle) Error!u64,
    setSize: *const fn (*anyopaque, Handle, size: u64) Error!void,
    read: *const fn (*anyopaque, Handle, buffer: []u8, offset: u64) Error!usize,
    readNow: *const fn (*anyopaque, Handle, buffer: []u8, offset: u64) Error!usize,
    prefetch: *const fn (*anyopaque, Handle, offset: u64, size: u64) void,
    write: *const fn (*anyopaque, Handle, bytes: []const u8, offset: u64) Error!void,
    sync: *const fn (*anyopaque, Handle) Error!void,
    punch: *const fn (*anyopaque, Handle, offset: u64, size: u64) Error!void,
    nextData: *const fn (*anyopaque, Handle, offset: u64) Error!?u64,
    allocated: *const fn (*anyopaque, Handle) Error!u64,
    tryLock: *const fn (*anyopaque, Handle, exclusive: bool) Error!bool,
    rename: *const fn (*anyopaque, from: []const u8, to: []const u8) Error!void,
    link: *const fn (*anyopaque, from: []const u8, to: []const u8) Error!void,
    remove: *const fn (*anyopaque, name: []const u8) Error!void,
    makeDir: *const fn (*anyopaque, name: []const u8) Error!void,
    syncDir: *const fn (*anyopaque, name: []const u8) Error!void,
    nextName: *const fn (
        *anyopaque,
        dir: []const u8,
        above: []const u8,
        into: *Name,
    ) Error!?[]const u8,
    freeBytes: *const fn (*anyopaque) Error!u64,
};

/// Throws `NotFound`.
pub fn open(files: Files, name: []const u8, mode: Mode) Error!Handle {
    return files.vtable.open(files.context, name, mode);
}

/// Opens a new file for reading and writing; throws `Exists`.
pub fn create(files: Files, name: []const u8) Error!Handle {
    return files.vtable.create(files.context, name);
}

pub fn close(files: Files, handle: Handle) void {
    files.vtable.close(files.context, handle);
}

/// Bytes.
pub fn size(files: Files, handle: Handle) Error!u64 {
    return files.vtable.size(files.context, handle);
}

/// Truncates the file, or extends it by a hole.
pub fn setSize(files: Files, handle: Handle, bytes: u64) Error!void {
    return files.vtable.setSize(files.context, handle, bytes);
}

/// Returns the number of bytes read; fewer only at the end of the file.
pub fn read(files: Files, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    return files.vtable.read(files.context, handle, buffer, offset);
}

/// Returns the number of bytes read from memory, without waiting for the disk.
pub fn readNow(files: Files, handle: Handle, buffer: []u8, offset: u64) Error!usize {
    return files.vtable.readNow(files.context, handle, buffer, offset);
}

/// Starts reading the range ahead, without waiting.
pub fn prefetch(files: Files, handle: Handle, offset: u64, bytes: u64) void {
    files.vtable.prefetch(files.context, handle, offset, bytes);
}

pub fn write(files: Files, handle: Handle, bytes: []const u8, offset: u64) Error!void {
    return files.vtable.write(files.context, handle, bytes, offset);
}

/// Makes the file's bytes and size durable.
pub fn sync(files: Files, handle: Handle) Error!void {
    return files.vtable.sync(files.context, handle);
}

/// Makes the range read as zeros and take no space; the size of the file stays. Writes zeros
/// where the file system has no holes.
pub fn punch(files: Files, handle: Handle, offset: u64, bytes: u64) Error!void {
    return files.vtable.punch(files.context, handle, offset, bytes);
}

/// Finds the next bytes at or after `offset` that are not in a hole; null if only holes follow.
pub fn nextData(files: Files, handle: Handle, offset: u64) Error!?u64 {
    return files.vtable.nextData(files.context, handle, offset);
}

/// Bytes that the file takes on the disk.
pub fn allocated(files: Files, handle: Handle) Error!u64 {
    return files.vtable.allocated(files.context, handle);
}

/// Returns false if another process holds the lock. The lock ends with the handle and with the
/// process.
pub fn tryLock(files: Files, handle: Handle, exclusive: bool) Error!bool {
    return files.vtable.tryLock(files.context, handle, exclusive);
}

pub fn rename(files: Files, from: []const u8, to: []const u8) Error!void {
    return files.vtable.rename(files.context, from, to);
}

/// Gives a file a second name. Throws `Exists`.
pub fn link(files: Files, from: []const u8, to: []const u8) Error!void {
    return files.vtable.link(files.context, from, to);
}

/// Throws `NotFound`. A directory must be empty.
pub fn remove(files: Files, name: []const u8) Error!void {
    return files.vtable.remove(files.context, name);
}

/// Throws `Exists`.
pub fn makeDir(files: Files, name: []const u8) Error!void {
    return files.vtable.makeDir(files.context, name);
}

/// Makes the names in it durable; "" is the directory itself.
pub fn syncDir(files: Files, name: []const u8) Error!void {
    return files.vtable.syncDir(files.context, name);
}

/// Returns the first name in a directory after `above`, in byte order ("" starts); null at the
/// end. `above` may point into `into`.
pub fn nextName(files: Files, dir: []const u8, above: []const u8, into: *Name) Error!?[]const u8 {
    return files.vtable.nextName(files.context, dir, above, into);
}

/// Bytes that this user can still write.
pub fn freeBytes(files: Files) Error!u64 {
    return files.vtable.freeBytes(files.context);
}

/// Fills the buffer; returns false if the file ends before.
pub fn readWhole(files: Files, handle: Handle, buffer: []u8, offset: u64) Error!bool {
    return try files.read(handle, buffer, offset) == buffer.len;
}

/// Writes a file durably: completely or not at all.
pub fn replace(files: Files, name: []const u8, bytes: []const u8) Error!void {
    var buffer: Name = undefined;
    const temporary = std.mem.print(&buffer, "{s}.new", .{name}) catch unreachable;
    files.remove(temporary) catch |err| if (err != error.NotFound) return err;
    {
        const handle = try files.create(temporary);
        defer files.close(handle);
        try files.write(handle, bytes, 0);
        try files.sync(handle);
    }
    try files.rename(temporary, name);
    const slash = std.mem.findScalarLast(u8, name, '/') orelse 0;
    try files.syncDir(name[0..slash]);
}

/// Describes the problem as the end of a sentence.
pub fn sentence(problem: Error) []const u8 {
    return switch (problem) {
        error.NotFound => "does not exist",
        error.Exists => "already exists",
        error.NoSpace => "has no space left: the disk is full",
        error.ReadOnly => "is on a read-only file system",
        error.Denied => "cannot be used by this user",
        error.TooManyFiles => "cannot be opened: this process has too many open files",
        error.DiskFailed => "cannot be read or written: the disk reports an error",
    };
}
