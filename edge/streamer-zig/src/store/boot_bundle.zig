//! Kernels and initramfs of versions: `boot-bundles/<sha256>`, stored once for all versions that
//! boot the same bytes. They are durable before a manifest names them, and checked by their hash
//! before they are used.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const Files = @import("files/files.zig");
const manifest_module = @import("tree/manifest.zig");
const Sha256 = base.Sha256;

const BootFile = manifest_module.BootFile;

const dir = "boot-bundles";
const new_name = dir ++ "/new";
const piece_size = 64 << 10;

/// Larger than any kernel or initramfs.
pub const size_max: u64 = 4 << 30;

pub const TakeError = Files.Error || error{ TooLarge, Empty, SourceFailed };
/// `OtherSize`, `Damaged`: the bytes differ from those that the manifest names.
pub const CheckError = Files.Error || error{ OtherSize, Damaged };

/// Source of the bytes; reads are short only at the end.
pub const Bytes = struct {
    context: *anyopaque,
    read: *const fn (context: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize,
};

/// Copies a file in, durable on return. Requires the store's lock.
pub fn take(files: Files, bytes: Bytes) TakeError!BootFile {
    var writer: FileWriter = try .begin(files);
    defer writer.end();
    var buffer: [piece_size]u8 = undefined;
    while (true) {
        const count = try bytes.read(bytes.context, &buffer, writer.size);
        try writer.append(buffer[0..count]);
        if (count < buffer.len) break;
    }
    return writer.finish();
}

/// A file that arrives in pieces; it is invisible before `finish`.
pub const FileWriter = struct {
    files: Files,
    handle: Files.Handle,
    sha: Sha256 = .init(.{}),
    size: u64 = 0,

    pub fn begin(files: Files) Files.Error!FileWriter {
        files.remove(new_name) catch |err| if (err != error.NotFound) return err;
        return .{ .files = files, .handle = try files.create(new_name) };
    }

    pub fn append(writer: *FileWriter, bytes: []const u8) (Files.Error || error{TooLarge})!void {
        if (writer.size + bytes.len > size_max) return error.TooLarge;
        writer.sha.update(bytes);
        try writer.files.write(writer.handle, bytes, writer.size);
        writer.size += bytes.len;
    }

    /// Makes the file durable.
    pub fn finish(writer: *FileWriter) (Files.Error || error{Empty})!BootFile {
        if (writer.size == 0) return error.Empty;
        const file: BootFile = .{ .hash = writer.sha.finalResult(), .size = writer.size };
        var name: Files.Name = undefined;
        try writer.files.sync(writer.handle);
        try writer.files.rename(new_name, nameOf(&file, &name));
        try writer.files.syncDir(dir);
        return file;
    }

    /// Removes an unfinished file.
    pub fn end(writer: *FileWriter) void {
        writer.files.close(writer.handle);
        writer.files.remove(new_name) catch {};
        writer.* = undefined;
    }
};

/// Reads the file once and checks it. A later open by the returned name is correct as long as
/// nobody writes to the store's files.
pub fn check(files: Files, file: *const BootFile) CheckError!void {
    var name: Files.Name = undefined;
    const handle = try files.open(nameOf(file, &name), .read);
    defer files.close(handle);
    if (try files.size(handle) != file.size) return error.OtherSize;
    var sha: Sha256 = .init(.{});
    var at: u64 = 0;
    var buffer: [piece_size]u8 = undefined;
    while (at < file.size) {
        const count = try files.read(handle, &buffer, at);
        if (count == 0) return error.OtherSize;
        sha.update(buffer[0..count]);
        at += count;
    }
    if (!std.mem.eql(u8, &sha.finalResult(), &file.hash)) return error.Damaged;
}

/// Path below the store's directory.
pub fn nameOf(file: *const BootFile, into: *Files.Name) []const u8 {
    return std.mem.print(into, dir ++ "/{x}", .{&file.hash}) catch unreachable;
}

const testing = std.testing;
const LinuxFiles = @import("files/linux_files.zig");

const Text = struct {
    text: []const u8,

    fn bytes(text: *Text) Bytes {
        return .{ .context = text, .read = read };
    }

    fn read(context: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
        const on: *Text = @ptrCast(@alignCast(context));
        const rest = on.text[@intCast(offset)..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }
};

test "a boot file is stored once per hash, and every change of it is found" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    const io = testing.io;
    try tmp.dir.createDirPath(io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const content: [piece_size + 1]u8 = @splat('k');
    var kernel: Text = .{ .text = &content };
    const file = try take(files, kernel.bytes());
    try testing.expectEqual(content.len, file.size);
    try testing.expectEqual(file, try take(files, kernel.bytes()));
    try check(files, &file);
    var name: Files.Name = undefined;
    const path = nameOf(&file, &name);
    const handle = try files.open(path, .write);
    defer files.close(handle);
    try files.write(handle, "x", piece_size);
    try testing.expectError(error.Damaged, check(files, &file));
    try files.setSize(handle, piece_size);
    try testing.expectError(error.OtherSize, check(files, &file));
    try files.remove(path);
    try testing.expectError(error.NotFound, check(files, &file));
    var none: Text = .{ .text = "" };
    try testing.expectError(error.Empty, take(files, none.bytes()));
    try testing.expectEqual(null, try files.nextName(dir, "", &name));
}

test "a boot file is at most as large as its limit, and an unfinished one is removed" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    var name: Files.Name = undefined;
    {
        var writer: FileWriter = try .begin(files);
        defer writer.end();
        // A hole in front of what is written.
        writer.size = size_max - 2;
        try writer.append("ab");
        try testing.expectEqual(size_max, writer.size);
        try testing.expectEqual(size_max, try files.size(writer.handle));
        try testing.expectError(error.TooLarge, writer.append("c"));
    }
    try testing.expectEqual(null, try files.nextName(dir, "", &name));
    // One that a crash left is replaced.
    files.close(try files.create(new_name));
    const content: [piece_size]u8 = @splat('k');
    var kernel: Text = .{ .text = &content };
    const file = try take(files, kernel.bytes());
    try testing.expectEqual(piece_size, file.size);
    try check(files, &file);
    try testing.expectError(error.OtherSize, check(files, &.{ .hash = file.hash, .size = 1 }));
}
