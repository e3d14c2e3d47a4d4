//! The file of a difference while it is written, and the list of its pieces: the SHA-256 of each
//! 4 MiB. The list's own SHA-256 and the size of the file name the difference.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const export_directory = @import("../export_directory.zig");
const linux = std.os.linux;
const Sha256 = base.Sha256;

const FdSource = store_module.image_source.FdSource;
const format = store_module.difference_format;
const PackedPart = store_module.PackedPart;
const TargetError = store_module.@"export".TargetError;

const path_size_max = 1024;
const part_suffix = export_directory.part_suffix;
const list_suffix = ".pieces";
/// A list has at most 1 MiB, which is 128 GiB of a file.
const pieces_max = 32768;
const Path = [path_size_max + list_suffix.len + part_suffix.len:0]u8;
const Digest = [Sha256.digest_length]u8;

pub const Made = struct { size: u64, changed_bytes: u64, list_digest: Digest };

pub const PieceWriter = @This();

call: *const Call,
path: []const u8,
fd: i32,
size: u64 = 0,
/// Of the piece that is being written.
sha: Sha256 = .init(.{}),
list: std.ArrayList(Digest) = .empty,
is_too_large: bool = false,
is_whole: bool = false,

/// Opens the file under its temporary name. `keepPart` follows.
pub fn open(
    writer: *PieceWriter,
    call: *const Call,
    path: []const u8,
    force: bool,
) Call.Error!void {
    if (path.len == 0 or path.len > path_size_max)
        return call.fail("The path to write to is empty or too long.", .{});
    const kind = kindOf(path, "");
    if (kind) |found| if (found != linux.S.IFREG)
        return call.fail("{s} is no file; name a file.", .{path});
    if (kind != null and !force)
        return call.fail("{s} already exists; --force overwrites it.", .{path});
    const part = pathOf(path, part_suffix);
    const flags: linux.O =
        .{ .ACCMODE = .RDWR, .CLOEXEC = true, .CREAT = true, .NOFOLLOW = true };
    const rc = linux.openat(linux.AT.FDCWD, &part, flags, 0o600);
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .NOENT, .NOTDIR => return call.fail("The folder of {s} does not exist.", .{path}),
        .ROFS => return call.fail("{s} is on a file system that is read-only.", .{path}),
        .NOSPC, .DQUOT => return call.fail("The disk of {s} is full.", .{path}),
        else => return call.fail(
            "{s}" ++ part_suffix ++ " cannot be created or written by this user.",
            .{path},
        ),
    }
    const fd: i32 = @intCast(rc);
    errdefer host.sys.close(fd);
    if (!export_directory.lock(fd)) return call.failBusy(
        "{s}" ++ part_suffix ++ " is being written by another process; wait until it ends, or stop it first.",
        .{path},
    );
    writer.* = .{ .call = call, .path = path, .fd = fd };
}

/// Keeps the part of this difference that a killed run has left, and cuts off the rest of the file.
pub fn keepPart(writer: *PieceWriter, header: *const format.Header) Call.Error!?PackedPart {
    const gpa = writer.call.gpa;
    const buffer = try gpa.create([format.raw_size_max]u8);
    defer gpa.destroy(buffer);
    // An empty file is no source.
    const part = if (FdSource.fromFd(writer.fd, &cancel.is_asked)) |opened| blk: {
        var file = opened;
        break :blk PackedPart.find(&file.source(), header, buffer);
    } else |_| null;
    const size = if (part) |*found| found.size else 0;
    if (linux.errno(linux.ftruncate(writer.fd, @intCast(size))) != .SUCCESS)
        return writer.call.fail(
            "{s}" ++ part_suffix ++ " cannot be written by this user.",
            .{writer.path},
        );
    while (writer.size < size) {
        const bytes = buffer[0..@intCast(@min(buffer.len, size - writer.size))];
        const count = host.sys.readAt(writer.fd, bytes, writer.size) catch 0;
        if (count < bytes.len) return writer.call.fail(
            "{s}" ++ part_suffix ++ " cannot be read; remove it, and pack the version again.",
            .{writer.path},
        );
        writer.take(bytes) catch |err| return writer.explain(err);
    }
    return part;
}

/// Removes a file that is not whole.
pub fn close(writer: *PieceWriter) void {
    if (!writer.is_whole) {
        for ([_][]const u8{ part_suffix, list_suffix ++ part_suffix }) |suffix| {
            const part = pathOf(writer.path, suffix);
            _ = linux.unlinkat(linux.AT.FDCWD, &part, 0);
        }
    }
    host.sys.close(writer.fd);
    writer.list.deinit(writer.call.gpa);
    writer.* = undefined;
}

pub fn sink(writer: *PieceWriter) store_module.pack.Sink {
    return .{ .context = writer, .write = write };
}

fn write(context: *anyopaque, bytes: []const u8) TargetError!void {
    const writer: *PieceWriter = @ptrCast(@alignCast(context));
    try store_module.@"export".writeAt(writer.fd, bytes, writer.size);
    try writer.take(bytes);
}

/// Counts bytes that the file has got.
fn take(writer: *PieceWriter, bytes: []const u8) TargetError!void {
    var left = bytes;
    while (left.len > 0) {
        const part = left[0..@min(left.len, format.piece_size - writer.size % format.piece_size)];
        writer.sha.update(part);
        writer.size += part.len;
        left = left[part.len..];
        if (writer.size % format.piece_size == 0) try writer.endPiece();
    }
}

fn endPiece(writer: *PieceWriter) TargetError!void {
    writer.is_too_large = writer.list.items.len == pieces_max;
    if (writer.is_too_large) return error.WriteFailed;
    writer.list.append(writer.call.gpa, writer.sha.finalResult()) catch return error.WriteFailed;
    writer.sha = .init(.{});
}

/// Makes both files durable and gives them their names, that of the difference last.
pub fn finish(writer: *PieceWriter, changed_bytes: u64) Call.Error!Made {
    if (writer.size % format.piece_size > 0) writer.endPiece() catch |err|
        return writer.explain(err);
    const list = std.mem.sliceAsBytes(writer.list.items);
    writer.writeList(list) catch |err| return writer.explain(err);
    if (linux.errno(linux.fsync(writer.fd)) != .SUCCESS) return writer.explain(error.WriteFailed);
    try writer.giveName(list_suffix);
    try writer.giveName("");
    writer.is_whole = true;
    syncFolder(writer.path);
    return .{ .size = writer.size, .changed_bytes = changed_bytes, .list_digest = digestOf(list) };
}

fn writeList(writer: *const PieceWriter, list: []const u8) TargetError!void {
    const part = pathOf(writer.path, list_suffix ++ part_suffix);
    const flags: linux.O =
        .{ .ACCMODE = .WRONLY, .CLOEXEC = true, .CREAT = true, .TRUNC = true, .NOFOLLOW = true };
    const rc = linux.openat(linux.AT.FDCWD, &part, flags, 0o600);
    if (linux.errno(rc) != .SUCCESS) return error.WriteFailed;
    const fd: i32 = @intCast(rc);
    defer host.sys.close(fd);
    try store_module.@"export".writeAt(fd, list, 0);
    if (linux.errno(linux.fsync(fd)) != .SUCCESS) return error.WriteFailed;
}

fn giveName(writer: *const PieceWriter, comptime suffix: []const u8) Call.Error!void {
    const part, const whole =
        .{ pathOf(writer.path, suffix ++ part_suffix), pathOf(writer.path, suffix) };
    const rc = linux.renameat2(linux.AT.FDCWD, &part, linux.AT.FDCWD, &whole, .{});
    if (linux.errno(rc) != .SUCCESS) return writer.call.fail(
        "{s}" ++ suffix ++ part_suffix ++ " is complete but cannot be renamed.",
        .{writer.path},
    );
}

pub fn explain(writer: *const PieceWriter, problem: TargetError) Call.Error {
    if (writer.is_too_large) return writer.call.fail(
        "The difference is larger than {d} GiB; choose a --base that is nearer to the version.",
        .{pieces_max * format.piece_size >> 30},
    );
    return switch (problem) {
        error.NoSpace => writer.call.fail(
            "{s} has no space left for the difference, and nothing of it is kept; free some, or choose another disk.",
            .{writer.path},
        ),
        else => writer.call.fail("{s} {s}.", .{
            writer.path, store_module.@"export".sentence(problem),
        }),
    };
}

/// Finds the file of a run that ended before it could report it; null: there is none, or its list
/// is missing.
pub fn madeBefore(
    call: *const Call,
    path: []const u8,
    header: *const format.Header,
) Call.Error!?Made {
    if (path.len == 0 or path.len > path_size_max or kindOf(path, "") == null) return null;
    const fd = openRead(path, "") orelse return call.fail("{s} cannot be read.", .{path});
    defer host.sys.close(fd);
    var there: [format.header_size]u8 = undefined;
    const count = host.sys.readAt(fd, &there, 0) catch 0;
    if (count < there.len or !std.mem.eql(u8, &there, &header.encode())) return call.fail(
        "{s} already exists and is something else; remove it, or name another file.",
        .{path},
    );
    const list_fd = openRead(path, list_suffix) orelse return null;
    defer host.sys.close(list_fd);
    const list = try call.gpa.alloc(u8, pieces_max * @sizeOf(Digest) + 1);
    defer call.gpa.free(list);
    const list_size = host.sys.readAt(list_fd, list, 0) catch return null;
    const size = linux.lseek(fd, 0, seek_end);
    if (linux.errno(size) != .SUCCESS or size < format.header_size + format.frame_head_size)
        return null;
    var end: [format.frame_head_size]u8 = undefined;
    if ((host.sys.readAt(fd, &end, size - end.len) catch 0) < end.len) return null;
    const last = format.FrameHead.decode(&end) catch return null;
    if (last.kind != .end or !last.isIntact(&end, "")) return null;
    const pieces = std.math.divCeil(u64, size, format.piece_size) catch unreachable;
    if (list_size != pieces * @sizeOf(Digest)) return null;
    return .{
        .size = size,
        .changed_bytes = last.first *| store_module.block.block_size,
        .list_digest = digestOf(list[0..list_size]),
    };
}

const seek_end = 2;

fn openRead(path: []const u8, comptime suffix: []const u8) ?i32 {
    const path_z = pathOf(path, suffix);
    const flags: linux.O = .{ .CLOEXEC = true, .NOFOLLOW = true, .NONBLOCK = true };
    const rc = linux.openat(linux.AT.FDCWD, &path_z, flags, 0);
    return if (linux.errno(rc) == .SUCCESS) @intCast(rc) else null;
}

fn digestOf(list: []const u8) Digest {
    var digest: Digest = undefined;
    Sha256.hash(list, &digest, .{});
    return digest;
}

fn kindOf(path: []const u8, comptime suffix: []const u8) ?u32 {
    const path_z = pathOf(path, suffix);
    var stat: linux.Statx = undefined;
    const rc = linux.statx(
        linux.AT.FDCWD,
        &path_z,
        linux.AT.SYMLINK_NOFOLLOW,
        .{ .TYPE = true },
        &stat,
    );
    return if (linux.errno(rc) == .SUCCESS) stat.mode & linux.S.IFMT else null;
}

fn pathOf(path: []const u8, suffix: []const u8) Path {
    var path_z: Path = @splat(0);
    @memcpy(path_z[0..path.len], path);
    @memcpy(path_z[path.len..][0..suffix.len], suffix);
    return path_z;
}

fn syncFolder(path: []const u8) void {
    const folder = pathOf(std.fs.path.dirname(path) orelse ".", "");
    const rc =
        linux.openat(linux.AT.FDCWD, &folder, .{ .DIRECTORY = true, .CLOEXEC = true }, 0);
    if (linux.errno(rc) != .SUCCESS) return;
    defer host.sys.close(@intCast(rc));
    _ = linux.fsync(@intCast(rc));
}
