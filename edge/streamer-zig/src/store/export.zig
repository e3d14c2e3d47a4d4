//! Exports a version to a file (zeros become holes), a block device or a stream: as a raw image, or
//! as the file of another format, whose writer says where the disk's bytes lie (`Layout`). Every
//! block is checked before it is written.

const std = @import("std");
const block = @import("block.zig");
const VersionReader = @import("version_reader.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const piece_size = 1 << 20;

pub const TargetError = error{ NoSpace, ReadOnly, Denied, WriteFailed, Closed };
/// `Damaged` and `ReadFailed` are about the version, at `Export.failed_at`; the others are about
/// the target.
pub const Error = VersionReader.Error || TargetError || error{ Canceled, OutOfMemory };

pub const Progress = struct {
    position: u64 = 0,
    size: u64,
    /// Bytes that the target already had, without its zeros.
    kept_bytes: u64 = 0,
    written_bytes: u64 = 0,
};

pub const Observer = struct {
    context: *anyopaque,
    progress: *const fn (*anyopaque, *const Progress) void,
};

pub const Target = enum {
    /// The target reads as zeros where nothing was written.
    file,
    /// The target is the file of an interrupted export; correct blocks stay.
    begun_file,
    block_device,
    stream,
};

/// The file of a format that is not raw. It gets the disk's bytes from the start to the end, and
/// none of its blocks of zeros: the file reads as zeros where nothing was written.
pub const Layout = struct {
    context: *anyopaque,
    vtable: *const VTable,

    pub const VTable = struct {
        placeOf: *const fn (*anyopaque, offset: u64) TargetError!Place,
        finish: *const fn (*anyopaque) TargetError!void,
    };

    /// Byte of the file for the byte of the disk that was asked for, and how many follow it there.
    pub const Place = struct { at: u64, size: u64 };

    /// `offset` never decreases.
    pub fn placeOf(layout: *const Layout, offset: u64) TargetError!Place {
        return layout.vtable.placeOf(layout.context, offset);
    }

    /// Writes what makes the file a whole one.
    pub fn finish(layout: *const Layout) TargetError!void {
        return layout.vtable.finish(layout.context);
    }
};

pub const Export = @This();

reader: *VersionReader,
fd: i32,
target: Target,
/// Null for a raw image; with others, the target is an empty file.
layout: ?Layout = null,
is_canceled: *const std.atomic.Value(bool),
watch: Observer,
done: Progress,
/// Bytes from the start of the disk.
failed_at: u64 = 0,

pub fn run(on: *Export, gpa: std.mem.Allocator) Error!void {
    const size = on.reader.disk_size;
    assert(on.layout == null or on.target == .file);
    if ((on.target == .file or on.target == .begun_file) and on.layout == null)
        try check(linux.ftruncate(on.fd, @intCast(size)));
    const buffer = try gpa.alloc(u8, piece_size);
    defer gpa.free(buffer);
    const there = try gpa.alloc(u8, if (on.target == .begun_file) piece_size else 0);
    defer gpa.free(there);
    while (on.done.position < size) {
        if (on.is_canceled.load(.monotonic)) return error.Canceled;
        const at = on.done.position;
        on.failed_at = at;
        const next = try on.nextData(at);
        if (next > at) {
            try on.writeZeros(at, next, buffer);
        } else {
            const bytes = buffer[0..@intCast(@min(piece_size - at % piece_size, size - at))];
            on.reader.source().read(bytes, at) catch |err| return on.locate(bytes, at, err);
            switch (on.target) {
                .file => try on.writeData(bytes, at),
                .begun_file => try on.writeChanged(bytes, there[0..bytes.len], at),
                .block_device, .stream => try on.write(bytes, at),
            }
            on.done.position = at + bytes.len;
        }
        on.watch.progress(on.watch.context, &on.done);
    }
    if (on.layout) |*layout| try layout.finish();
    if (on.target != .stream) try check(linux.fsync(on.fd));
}

/// Index within the piece of the block that cannot be read.
fn locate(on: *Export, bytes: []u8, at: u64, problem: VersionReader.Error) Error {
    var from: usize = 0;
    while (from < bytes.len) : (from += block.block_size) {
        on.failed_at = at + from;
        const size = @min(block.block_size, bytes.len - from);
        on.reader.source().read(bytes[from..][0..size], at + from) catch |err| return err;
    }
    return problem;
}

/// Finds the next bytes that are not in a block of zeros.
fn nextData(on: *Export, at: u64) Error!u64 {
    const size = on.reader.disk_size;
    const from = at / block.block_size;
    const found = try on.reader.nextBlock(from, block.blockCount(size)) orelse return size;
    return @max(at, found * block.block_size);
}

fn writeZeros(on: *Export, from: u64, to: u64, buffer: []u8) Error!void {
    switch (on.target) {
        .file => {},
        .begun_file, .block_device => try on.clear(from, to, buffer),
        .stream => {
            @memset(buffer, 0);
            const end = @min(to, from + buffer.len);
            try on.write(buffer[0..@intCast(end - from)], from);
            on.done.position = end;
            return;
        },
    }
    on.done.position = to;
}

const punch_hole = 0x02;
const keep_size = 0x01;

/// Frees the range on a device that supports it; the range reads as zeros either way.
fn clear(on: *Export, from: u64, to: u64, buffer: []u8) Error!void {
    const rc = linux.fallocate(on.fd, punch_hole | keep_size, @intCast(from), @intCast(to - from));
    switch (linux.errno(rc)) {
        .SUCCESS => return,
        .OPNOTSUPP, .NOSYS, .INVAL => {},
        else => return check(rc),
    }
    @memset(buffer, 0);
    var at = from;
    while (at < to) {
        if (on.is_canceled.load(.monotonic)) return error.Canceled;
        const part = buffer[0..@intCast(@min(buffer.len, to - at))];
        try on.write(part, at);
        at += part.len;
    }
}

/// Writes all but the blocks of zeros, which a new file has.
fn writeData(on: *Export, bytes: []const u8, at: u64) Error!void {
    var from: usize = 0;
    while (from < bytes.len) {
        const size = dataSize(bytes[from..]);
        if (size > 0) try on.writePlaced(bytes[from..][0..size], at + from);
        // Behind the data is a block of zeros, or the end.
        from += size + block.block_size;
    }
}

/// Bytes before the first block of zeros.
fn dataSize(bytes: []const u8) usize {
    var size: usize = 0;
    while (size < bytes.len) {
        const part = bytes[size..][0..@min(block.block_size, bytes.len - size)];
        if (block.isZeros(part)) break;
        size += part.len;
    }
    return size;
}

fn writePlaced(on: *Export, bytes: []const u8, at: u64) Error!void {
    const layout = on.layout orelse return on.write(bytes, at);
    var from: usize = 0;
    while (from < bytes.len) {
        const place = try layout.placeOf(at + from);
        const size: usize = @intCast(@min(place.size, bytes.len - from));
        try on.write(bytes[from..][0..size], place.at);
        from += size;
    }
}

fn writeChanged(on: *Export, bytes: []const u8, there: []u8, at: u64) Error!void {
    var filled: usize = 0;
    while (filled < there.len) {
        const rest = there[filled..];
        const rc = linux.pread(on.fd, rest.ptr, rest.len, @intCast(at + filled));
        if (linux.errno(rc) == .INTR) continue;
        try check(rc);
        // The file was just set to the size of the disk.
        if (rc == 0) return error.WriteFailed;
        filled += rc;
    }
    var from: usize = 0;
    while (from < bytes.len) {
        const size = @min(block.block_size, bytes.len - from);
        const is_same = std.mem.eql(u8, bytes[from..][0..size], there[from..][0..size]);
        if (!is_same) {
            try on.write(bytes[from..][0..size], at + from);
        } else if (!block.isZeros(bytes[from..][0..size])) on.done.kept_bytes += size;
        from += size;
    }
}

fn write(on: *Export, bytes: []const u8, at: u64) Error!void {
    var written: usize = 0;
    while (written < bytes.len) {
        const rest = bytes[written..];
        const rc = if (on.target == .stream)
            linux.write(on.fd, rest.ptr, rest.len)
        else
            linux.pwrite(on.fd, rest.ptr, rest.len, @intCast(at + written));
        if (linux.errno(rc) == .INTR) {
            if (on.is_canceled.load(.monotonic)) return error.Canceled;
            continue;
        }
        try check(rc);
        written += rc;
    }
    on.done.written_bytes += bytes.len;
}

/// Writes to a place of a file, for layouts.
pub fn writeAt(fd: i32, bytes: []const u8, at: u64) TargetError!void {
    var written: usize = 0;
    while (written < bytes.len) {
        const rest = bytes[written..];
        const rc = linux.pwrite(fd, rest.ptr, rest.len, @intCast(at + written));
        if (linux.errno(rc) == .INTR) continue;
        try check(rc);
        written += rc;
    }
}

/// Sets the size of a file, for layouts.
pub fn setSize(fd: i32, size: u64) TargetError!void {
    return check(linux.ftruncate(fd, @intCast(size)));
}

fn check(rc: usize) TargetError!void {
    return switch (linux.errno(rc)) {
        .SUCCESS => {},
        .NOSPC, .DQUOT, .FBIG => error.NoSpace,
        .ROFS => error.ReadOnly,
        .PERM, .ACCES => error.Denied,
        .PIPE => error.Closed,
        else => error.WriteFailed,
    };
}

/// Describes a problem of the target as the end of a sentence that starts with its path.
pub fn sentence(problem: TargetError) []const u8 {
    return switch (problem) {
        error.NoSpace => "has no space left for the image; free some, or choose another disk",
        error.ReadOnly => "is on a read-only file system",
        error.Denied => "cannot be written by this user",
        error.WriteFailed => "cannot be written: the system reports an error",
        error.Closed => "was closed by its reader before the end",
    };
}

test {
    _ = @import("export_test.zig");
}
