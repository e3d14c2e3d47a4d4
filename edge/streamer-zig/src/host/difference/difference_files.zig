//! The files of differences below the store's directory: `differences/ID` is whole, `ID.part` has
//! the pieces that came until now at their places, `ID.pieces` is the list of either. Written by
//! the store's own process (`vdisk pack`) and by the thread of a fetch, read by those that send.
//! What a file holds is known from its list alone: every piece is compared with it before it
//! counts, so a power cut or a damaged disk is found.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const file_system = @import("../files/file_system.zig");
const linux = std.os.linux;
const Pieces = core.difference.Pieces;

pub const DifferenceFiles = @This();

/// Of the folder.
fd: i32,

/// Space that stays free for devices' writes and for the version.
pub const free_bytes_min = 256 << 20;

const Name = struct {
    buffer: [base.Uuid.text_size + 16]u8 = undefined,

    fn of(name: *Name, id: base.Uuid, comptime suffix: []const u8) [:0]const u8 {
        return std.mem.printSentinel(&name.buffer, "{f}" ++ suffix, .{id}, 0) catch unreachable;
    }
};

/// Creates the folder if there is none. Only its owner reads what will be a version.
pub fn open(store_path: []const u8) sys.Error!DifferenceFiles {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 32]u8 = undefined;
    const names = .{ store_path, core.uplink.difference_order.folder };
    const path = std.mem.printSentinel(&path_buffer, "{s}/{s}", names, 0) catch
        return error.SystemCallFailed;
    const errno = linux.errno(linux.mkdirat(linux.AT.FDCWD, path, 0o700));
    if (errno != .SUCCESS and errno != .EXIST) return error.SystemCallFailed;
    const flags: linux.O = .{ .DIRECTORY = true, .NOFOLLOW = true, .CLOEXEC = true };
    return .{ .fd = @intCast(try sys.check(linux.openat(linux.AT.FDCWD, path, flags, 0))) };
}

pub fn close(files: *DifferenceFiles) void {
    sys.close(files.fd);
    files.* = undefined;
}

/// Returns the whole file of a difference.
pub fn openWhole(files: *const DifferenceFiles, id: base.Uuid) sys.Error!i32 {
    var name: Name = .{};
    return files.openToRead(name.of(id, ""));
}

/// Returns the file that a fetch has not completed.
pub fn openPart(files: *const DifferenceFiles, id: base.Uuid) sys.Error!i32 {
    var name: Name = .{};
    return files.openToRead(name.of(id, ".part"));
}

pub fn openList(files: *const DifferenceFiles, id: base.Uuid) sys.Error!i32 {
    var name: Name = .{};
    return files.openToRead(name.of(id, ".pieces"));
}

/// Tells whether there is a whole file with its list. Neither is compared.
pub fn isWhole(files: *const DifferenceFiles, id: base.Uuid) bool {
    inline for (.{ "", ".pieces" }) |suffix| {
        var name: Name = .{};
        const fd = files.openToRead(name.of(id, suffix)) catch return false;
        sys.close(fd);
    }
    return true;
}

fn openToRead(files: *const DifferenceFiles, name: [:0]const u8) sys.Error!i32 {
    const flags: linux.O = .{ .NOFOLLOW = true, .CLOEXEC = true };
    return @intCast(try sys.check(linux.openat(files.fd, name, flags, 0)));
}

/// Returns the file to write pieces to; a whole file becomes one to write to.
pub fn openToWrite(files: *const DifferenceFiles, id: base.Uuid) sys.Error!i32 {
    var name: Name = .{};
    var part: Name = .{};
    const part_name = part.of(id, ".part");
    _ = linux.renameat(files.fd, name.of(id, ""), files.fd, part_name);
    const flags: linux.O =
        .{ .ACCMODE = .RDWR, .CREAT = true, .NOFOLLOW = true, .CLOEXEC = true };
    return @intCast(try sys.check(linux.openat(files.fd, part_name, flags, 0o600)));
}

/// The file to which pieces were written is whole.
pub fn finish(files: *const DifferenceFiles, id: base.Uuid, fd: i32) sys.Error!void {
    _ = try sys.check(linux.fsync(fd));
    var name: Name = .{};
    var part: Name = .{};
    const rc = linux.renameat(files.fd, part.of(id, ".part"), files.fd, name.of(id, ""));
    _ = try sys.check(rc);
    _ = try sys.check(linux.fsync(files.fd));
}

/// Returns the list that lies beside a difference; null: none, or none of a possible size.
pub fn readList(files: *const DifferenceFiles, id: base.Uuid, buffer: []u8) ?[]u8 {
    var name: Name = .{};
    const fd = files.openToRead(name.of(id, ".pieces")) catch return null;
    defer sys.close(fd);
    const size = sizeOf(fd);
    if (size == 0 or size > buffer.len or size % Pieces.hash_size != 0) return null;
    const count = sys.readAt(fd, buffer[0..@intCast(size)], 0) catch return null;
    return if (count == size) buffer[0..count] else null;
}

pub fn writeList(files: *const DifferenceFiles, id: base.Uuid, list: []const u8) sys.Error!void {
    var name: Name = .{};
    var new: Name = .{};
    const new_name = new.of(id, ".pieces.new");
    const flags: linux.O = .{
        .ACCMODE = .WRONLY,
        .CREAT = true,
        .TRUNC = true,
        .NOFOLLOW = true,
        .CLOEXEC = true,
    };
    const fd: i32 =
        @intCast(try sys.check(linux.openat(files.fd, new_name, flags, 0o600)));
    defer sys.close(fd);
    try sys.writeAllAt(fd, list, 0);
    _ = try sys.check(linux.fsync(fd));
    _ = try sys.check(linux.renameat(files.fd, new_name, files.fd, name.of(id, ".pieces")));
}

/// Reads a piece; null: it cannot be read, or is not what the list says.
pub fn readPiece(
    fd: i32,
    pieces: Pieces,
    list: []const u8,
    index: u32,
    buffer: *[Pieces.piece_size]u8,
) ?[]const u8 {
    const part = buffer[0..pieces.sizeOf(index)];
    const count = sys.readAt(fd, part, pieces.offsetOf(index)) catch return null;
    if (count != part.len) return null;
    return if (pieces.isPiece(list, index, part)) part else null;
}

/// Like `readPiece`, without knowing the size of the difference: the list tells all but the last
/// piece's, and that one's hash the rest.
pub fn readUnsized(
    fd: i32,
    list: []const u8,
    index: u32,
    buffer: *[Pieces.piece_size]u8,
) ?[]const u8 {
    const offset = @as(u64, index) * Pieces.piece_size;
    const count = sys.readAt(fd, buffer, offset) catch return null;
    if (count == 0) return null;
    const digest = Pieces.digestOf(buffer[0..count]);
    const said = list[index * Pieces.hash_size ..][0..Pieces.hash_size];
    return if (std.mem.eql(u8, &digest, said)) buffer[0..count] else null;
}

pub fn availableBytes(files: *const DifferenceFiles) ?u64 {
    const space = file_system.spaceOf(files.fd) catch return null;
    return space.available_bytes;
}

pub fn remove(files: *const DifferenceFiles, id: base.Uuid) void {
    inline for (.{ "", ".part", ".pieces", ".pieces.part", ".pieces.new" }) |suffix| {
        var name: Name = .{};
        _ = linux.unlinkat(files.fd, name.of(id, suffix), 0);
    }
}

/// Removes what no job and no other edge needs any more.
pub fn sweep(
    io: std.Io,
    store_path: []const u8,
    orders: []const core.uplink.store_job.Order,
    kept: []const base.Uuid,
) void {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 32]u8 = undefined;
    const names = .{ store_path, core.uplink.difference_order.folder };
    const path = std.mem.print(&path_buffer, "{s}/{s}", names) catch unreachable;
    var dir = std.Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch return;
    defer dir.close(io);
    var entries = dir.iterate();
    while (entries.next(io) catch return) |entry| {
        if (entry.name.len < base.Uuid.text_size) continue;
        const id = base.Uuid.parse(entry.name[0..base.Uuid.text_size]) catch continue;
        if (core.uplink.difference_order.isWanted(id, orders, kept)) continue;
        dir.deleteFile(io, entry.name) catch {};
    }
}

pub fn sizeOf(fd: i32) u64 {
    var stat: linux.Statx = undefined;
    const rc = linux.statx(fd, "", linux.AT.EMPTY_PATH, .{ .SIZE = true }, &stat);
    _ = sys.check(rc) catch return 0;
    return stat.size;
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn testPath(tmp: *const testing.TmpDir, buffer: []u8) ![]const u8 {
    return std.mem.print(buffer, ".zig-cache/tmp/{s}", .{&tmp.sub_path});
}

test "a file counts as its pieces: a damaged one is found, and what nobody needs is removed" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path_buffer: [64]u8 = undefined;
    const path = try testPath(&tmp, &path_buffer);
    var files = try open(path);
    defer files.close();
    const bytes: [100]u8 = @splat(7);
    const pieces = Pieces.of(bytes.len).?;
    const list = Pieces.digestOf(&bytes);
    var list_buffer: [64]u8 = undefined;
    try testing.expectEqual(null, files.readList(uuid(1), &list_buffer));
    try files.writeList(uuid(1), &list);
    try testing.expectEqualSlices(u8, &list, files.readList(uuid(1), &list_buffer).?);
    const buffer = try testing.allocator.create([Pieces.piece_size]u8);
    defer testing.allocator.destroy(buffer);
    {
        const fd = try files.openToWrite(uuid(1));
        defer sys.close(fd);
        try testing.expectEqual(null, readPiece(fd, pieces, &list, 0, buffer));
        try sys.writeAllAt(fd, &bytes, 0);
        try testing.expectEqualSlices(u8, &bytes, readPiece(fd, pieces, &list, 0, buffer).?);
        try files.finish(uuid(1), fd);
        try sys.writeAllAt(fd, "x", 99);
        try testing.expectEqual(null, readPiece(fd, pieces, &list, 0, buffer));
    }
    try testing.expectError(error.SystemCallFailed, files.openPart(uuid(1)));
    sys.close(try files.openWhole(uuid(1)));
    sys.close(try files.openToWrite(uuid(1)));
    try testing.expectError(error.SystemCallFailed, files.openWhole(uuid(1)));
    sweep(testing.io, path, &.{}, &.{uuid(1)});
    sys.close(try files.openPart(uuid(1)));
    sweep(testing.io, path, &.{}, &.{uuid(2)});
    try testing.expectError(error.SystemCallFailed, files.openPart(uuid(1)));
    try testing.expectEqual(null, files.readList(uuid(1), &list_buffer));
}
