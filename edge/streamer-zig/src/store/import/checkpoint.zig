//! The checkpoint of an import: `imports/<version>`, replaced atomically at each durable step.
//! Everything that it refers to was synced before, so an import resumes from it after any crash.
//! Its partial tree has a root like a version's, which the garbage collection keeps.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const Files = @import("../files/files.zig");
const image_source = @import("image_source.zig");
const manifest_module = @import("../tree/manifest.zig");
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

const BootFile = manifest_module.BootFile;

const magic = "BFIMPRT1".*;
/// From 2 on, blocks may be in packed units.
const format: u32 = 2;
const file_size = block.block_size;
const dir = "imports";

/// `NoImport`: the version has no import.
pub const Error = Files.Error || error{ NoImport, Damaged, TooNew };

/// Describes the version to be made, and the progress.
pub const Checkpoint = @This();

version: Uuid,
vdisk: Uuid,
/// Zeros for a base.
parent: Uuid,
number: u32,
kernel: ?BootFile = null,
initrd: ?BootFile = null,
command_line: base.BoundedArray(u8, manifest_module.command_line_size_max) = .empty,
name: base.BoundedArray(u8, manifest_module.name_size_max) = .empty,
note: base.BoundedArray(u8, manifest_module.note_size_max) = .empty,
path: base.BoundedArray(u8, image_source.path_size_max) = .empty,
stamp: image_source.Stamp,
/// Bytes; null for a stream whose end is unknown.
source_size: ?u64,
/// Pads the end of the image with zeros to whole sectors.
pad: bool,
/// Bytes of the source that are in the tree.
position: u64 = 0,
root: block.Entry = .zeros,
root_level: u8,
/// The import appends at or behind these locations. Zeros: written by an earlier bootfarm-edge,
/// locations unknown.
data_from: block.Location = .{ .file = 0, .block = 0 },
nodes_from: block.Location = .{ .file = 0, .block = 0 },
/// The source is a difference, which says what the version is; null: an image.
difference: ?Difference = null,

pub const Difference = struct {
    /// The version whose blocks are shared; zeros: none. Of an image, that is the parent.
    base: Uuid,
    base_root: block.Hash,
    /// What the import must result in.
    root: block.Hash,
    incarnation: u64,
    counter: u64,
    created_unix_ms: u64,
};

pub fn write(checkpoint: *const Checkpoint, files: Files) Files.Error!void {
    var bytes: [file_size]u8 = @splat(0);
    var writer: base.ByteWriter = .init(&bytes);
    checkpoint.encode(&writer) catch unreachable;
    Sha256.hash(bytes[0..signed_size], bytes[signed_size..], .{});
    var name: Files.Name = undefined;
    try files.replace(nameOf(checkpoint.version, &name), &bytes);
}

const signed_size = file_size - Sha256.digest_length;

fn encode(checkpoint: *const Checkpoint, writer: *base.ByteWriter) base.ByteWriter.Error!void {
    try writer.bytes(&magic);
    try writer.int(u32, format);
    for ([_]Uuid{ checkpoint.version, checkpoint.vdisk, checkpoint.parent }) |id|
        try writer.bytes(&id.bytes);
    try writer.int(u32, checkpoint.number);
    for ([_]?BootFile{ checkpoint.kernel, checkpoint.initrd }) |file| {
        const given = file orelse BootFile{ .hash = block.zero_hash, .size = 0 };
        try writer.bytes(&given.hash);
        try writer.int(u64, given.size);
    }
    try writer.int(u8, @backingInt(checkpoint.stamp.kind));
    for ([_]u64{
        checkpoint.stamp.device,
        checkpoint.stamp.inode,
        checkpoint.stamp.modified_ns,
        // A source is never empty.
        checkpoint.source_size orelse 0,
        checkpoint.position,
        @bitCast(checkpoint.root.location),
    }) |number| try writer.int(u64, number);
    try writer.bytes(&checkpoint.root.hash);
    try writer.int(u8, checkpoint.root_level);
    try writer.int(u8, @intFromBool(checkpoint.pad));
    for ([_][]const u8{
        checkpoint.command_line.constSlice(),
        checkpoint.name.constSlice(),
        checkpoint.path.constSlice(),
    }) |text| {
        try writer.int(u16, @intCast(text.len));
        try writer.bytes(text);
    }
    for ([_]block.Location{ checkpoint.data_from, checkpoint.nodes_from }) |from|
        try writer.int(u64, @bitCast(from));
    try writer.int(u16, @intCast(checkpoint.note.count));
    try writer.bytes(checkpoint.note.constSlice());
    // Without one, the zeros that follow say so, as in checkpoints of an earlier bootfarm-edge.
    const difference = checkpoint.difference orelse return;
    try writer.int(u8, 1);
    try writer.bytes(&difference.base.bytes);
    try writer.bytes(&difference.base_root);
    try writer.bytes(&difference.root);
    inline for (.{ "incarnation", "counter", "created_unix_ms" }) |field|
        try writer.int(u64, @field(difference, field));
}

pub fn read(files: Files, version: Uuid) Error!Checkpoint {
    var name: Files.Name = undefined;
    const handle = files.open(nameOf(version, &name), .read) catch |err|
        return if (err == error.NotFound) error.NoImport else err;
    defer files.close(handle);
    var bytes: [file_size]u8 = undefined;
    if (!try files.readWhole(handle, &bytes, 0)) return error.Damaged;
    const found = try decode(&bytes);
    return if (found.version.eql(version)) found else error.Damaged;
}

fn decode(bytes: *const [file_size]u8) error{ Damaged, TooNew }!Checkpoint {
    var digest: [Sha256.digest_length]u8 = undefined;
    Sha256.hash(bytes[0..signed_size], &digest, .{});
    if (!std.mem.eql(u8, &digest, bytes[signed_size..])) return error.Damaged;
    if (!std.mem.eql(u8, bytes[0..magic.len], &magic)) return error.Damaged;
    var cursor: base.Cursor = .init(bytes[magic.len..signed_size]);
    if ((cursor.int(u32) catch unreachable) > format) return error.TooNew;
    return decodeBody(&cursor) catch error.Damaged;
}

fn decodeBody(cursor: *base.Cursor) !Checkpoint {
    var found: Checkpoint = undefined;
    inline for (.{ "version", "vdisk", "parent" }) |field| @field(found, field) =
        .fromBytes((try cursor.array(16)).*);
    found.number = try cursor.int(u32);
    inline for (.{ "kernel", "initrd" }) |field| {
        const hash = (try cursor.array(32)).*;
        const size = try cursor.int(u64);
        @field(found, field) = if (size == 0) null else .{ .hash = hash, .size = size };
    }
    found.stamp.kind = std.enums.fromInt(image_source.Stamp.Kind, try cursor.int(u8)) orelse
        return error.Damaged;
    inline for (.{ "device", "inode", "modified_ns" }) |field| @field(found.stamp, field) =
        try cursor.int(u64);
    const size = try cursor.int(u64);
    found.source_size = if (size == 0) null else size;
    found.position = try cursor.int(u64);
    found.root.location = @bitCast(try cursor.int(u64));
    found.root.hash = (try cursor.array(32)).*;
    found.root_level = try cursor.int(u8);
    found.pad = try cursor.int(u8) != 0;
    inline for (.{ "command_line", "name", "path" }) |field|
        @field(found, field) = try .fromSlice(try cursor.bytes(try cursor.int(u16)));
    inline for (.{ "data_from", "nodes_from" }) |field| @field(found, field) =
        @bitCast(try cursor.int(u64));
    // Zeros where an earlier bootfarm-edge wrote it.
    found.note = try .fromSlice(try cursor.bytes(try cursor.int(u16)));
    found.difference = null;
    if (try cursor.int(u8) == 0) return found;
    var difference: Difference = undefined;
    difference.base = .fromBytes((try cursor.array(16)).*);
    inline for (.{ "base_root", "root" }) |field|
        @field(difference, field) = (try cursor.array(32)).*;
    inline for (.{ "incarnation", "counter", "created_unix_ms" }) |field|
        @field(difference, field) = try cursor.int(u64);
    found.difference = difference;
    return found;
}

/// The version whose blocks are shared; zeros: none.
pub fn sharedVersion(checkpoint: *const Checkpoint) Uuid {
    return if (checkpoint.difference) |known| known.base else checkpoint.parent;
}

/// Called for an import that does not run, or by the import itself.
pub fn remove(files: Files, version: Uuid) Error!void {
    var name: Files.Name = undefined;
    files.remove(nameOf(version, &name)) catch |err|
        return if (err == error.NotFound) error.NoImport else err;
    try files.syncDir(dir);
}

/// Lock of the process that reads the image, for the whole import; the change lock is needed only
/// at its start and end.
pub const ImportLock = struct {
    files: Files,
    version: Uuid,
    handle: Files.Handle,

    /// Requires the store's lock. Throws `InUse` if another process holds it.
    pub fn begin(files: Files, version: Uuid) (Files.Error || error{InUse})!ImportLock {
        var name: Files.Name = undefined;
        const path = lockNameOf(version, &name);
        const handle = files.open(path, .write) catch |err|
            if (err == error.NotFound) try files.create(path) else return err;
        errdefer files.close(handle);
        if (!try files.tryLock(handle, true)) return error.InUse;
        return .{ .files = files, .version = version, .handle = handle };
    }

    /// Keeps the file for a resumed import; `tidy` removes it where none follows.
    pub fn end(running: *ImportLock) void {
        running.files.close(running.handle);
        running.* = undefined;
    }

    /// Called when the import is done, under the store's lock, so that no new import has the file
    /// open.
    pub fn remove(running: *const ImportLock) void {
        var name: Files.Name = undefined;
        running.files.remove(lockNameOf(running.version, &name)) catch {};
    }
};

pub fn isRunning(files: Files, version: Uuid) Files.Error!bool {
    var name: Files.Name = undefined;
    const handle = files.open(lockNameOf(version, &name), .write) catch |err|
        return if (err == error.NotFound) false else err;
    defer files.close(handle);
    return !try files.tryLock(handle, true);
}

/// Returns the import with the least id above `above`, or null.
pub fn next(files: Files, above: ?Uuid) Files.Error!?Uuid {
    var name: Files.Name = undefined;
    var at_buffer: [Files.name_size_max]u8 = undefined;
    var at: []const u8 = if (above) |id| std.mem.print(&at_buffer, "{f}", .{id}) catch
        unreachable else "";
    while (try files.nextName(dir, at, &name)) |found| {
        @memcpy(at_buffer[0..found.len], found);
        at = at_buffer[0..found.len];
        return Uuid.parse(found) catch continue;
    }
    return null;
}

/// Removes partly written checkpoints of a crash, and locks of imports that do not run. Requires
/// the store's lock.
pub fn tidy(files: Files) Files.Error!void {
    var name: Files.Name = undefined;
    var at_buffer: [Files.name_size_max]u8 = undefined;
    var at: []const u8 = "";
    while (try files.nextName(dir, at, &name)) |found| {
        @memcpy(at_buffer[0..found.len], found);
        at = at_buffer[0..found.len];
        // Images may be here, too.
        const id = Uuid.parse(
            std.mem.cutSuffix(u8, at, ".new") orelse std.mem.cutSuffix(u8, at, lock_suffix) orelse
                continue,
        ) catch continue;
        if (try isRunning(files, id)) continue;
        var path: Files.Name = undefined;
        // A longer name is foreign.
        const whole = std.mem.print(&path, dir ++ "/{s}", .{at}) catch continue;
        files.remove(whole) catch |err| if (err != error.NotFound) return err;
    }
}

const lock_suffix = ".lock";

fn lockNameOf(version: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, dir ++ "/{f}" ++ lock_suffix, .{version}) catch unreachable;
}

fn nameOf(version: Uuid, into: *Files.Name) []const u8 {
    return std.mem.print(into, dir ++ "/{f}", .{version}) catch unreachable;
}

/// Describes the problem as the end of a sentence that starts with "The import".
pub fn sentence(problem: Error) []const u8 {
    return switch (problem) {
        error.NoImport => "is not in this store: `vdisk list` shows the imports that can be " ++
            "resumed",
        error.Damaged => "cannot resume: its checkpoint is damaged; abandon it with --abandon " ++
            "and start again",
        error.TooNew => "was started by a later bootfarm-edge; resume it with that release",
        else => |other| Files.sentence(other),
    };
}

comptime {
    // The longest texts fit in one block.
    const numbers = 8 + 4 + 3 * 16 + 4 + 2 * 40 + 1 + 6 * 8 + 32 + 2 + 4 * 2 + 2 * 8;
    const texts = manifest_module.command_line_size_max + manifest_module.name_size_max +
        manifest_module.note_size_max + image_source.path_size_max;
    std.debug.assert(numbers + texts + Sha256.digest_length <= file_size);
}

const testing = std.testing;
const LinuxFiles = @import("../files/linux_files.zig");

fn testCheckpoint() Checkpoint {
    return .{
        .version = .fromRandom(@splat(1)),
        .vdisk = .fromRandom(@splat(2)),
        .parent = .zero,
        .number = 3,
        .command_line = base.BoundedArray(
            u8,
            manifest_module.command_line_size_max,
        ).fromSlice("quiet") catch unreachable,
        .stamp = .{ .kind = .file, .device = 1, .inode = 2, .modified_ns = 3 },
        .source_size = null,
        .pad = true,
        .position = 77,
        .root = .{ .hash = @splat(4), .location = .{ .file = 1, .block = 2 } },
        .root_level = 5,
    };
}

test "a checkpoint is read back as written, and listed" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const written = testCheckpoint();
    try testing.expectEqual(null, try next(files, null));
    try written.write(files);
    try written.write(files);
    const found = try Checkpoint.read(files, written.version);
    try testing.expectEqualStrings("quiet", found.command_line.constSlice());
    try testing.expectEqual(written.root, found.root);
    try testing.expectEqual(written.stamp, found.stamp);
    try testing.expectEqual(null, found.source_size);
    try testing.expectEqual(77, found.position);
    try testing.expect(found.pad);
    const listed = (try next(files, null)).?;
    try testing.expect(listed.eql(written.version));
    try testing.expectEqual(null, try next(files, listed));
    try Checkpoint.remove(files, written.version);
    try testing.expectError(error.NoImport, Checkpoint.remove(files, written.version));
    try testing.expectError(error.NoImport, Checkpoint.read(files, written.version));
}

test "a flipped bit of a checkpoint is found" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const written = testCheckpoint();
    try written.write(files);
    var name: Files.Name = undefined;
    const handle = try files.open(nameOf(written.version, &name), .read);
    defer files.close(handle);
    var bytes: [file_size]u8 = undefined;
    try testing.expect(try files.readWhole(handle, &bytes, 0));
    // One bit of each byte, at all eight positions.
    for (0..bytes.len) |at| {
        const bit = at * 8 + at % 8;
        const mask = @as(u8, 1) << @intCast(bit % 8);
        bytes[bit / 8] ^= mask;
        try testing.expectError(error.Damaged, Checkpoint.decode(&bytes));
        bytes[bit / 8] ^= mask;
    }
}

test "what a crash left of imports is removed, running and foreign files are not" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const written = testCheckpoint();
    try written.write(files);
    const running_id: Uuid = .fromRandom(@splat(2));
    var running: ImportLock = try .begin(files, running_id);
    try testing.expectError(error.InUse, ImportLock.begin(files, running_id));
    var ended: ImportLock = try .begin(files, written.version);
    ended.end();
    try testing.expect(try isRunning(files, running_id));
    try testing.expect(!try isRunning(files, written.version));
    try testing.expect(!try isRunning(files, .fromRandom(@splat(9))));
    var name: Files.Name = undefined;
    var path: Files.Name = undefined;
    for ([_][]const u8{ "image.raw", "image.new", "x.lock" }) |foreign|
        files.close(try files.create(try std.mem.print(&path, dir ++ "/{s}", .{foreign})));
    files.close(
        try files.create(try std.mem.print(&path, dir ++ "/{f}.new", .{written.version})),
    );
    try tidy(files);
    var at: []const u8 = "";
    for ([_][]const u8{
        "01010101-0101-4101-8101-010101010101",
        "02020202-0202-4202-8202-020202020202.lock",
        "image.new",
        "image.raw",
        "x.lock",
    }) |expected| {
        at = (try files.nextName(dir, at, &name)).?;
        try testing.expectEqualStrings(expected, at);
    }
    try testing.expectEqual(null, try files.nextName(dir, at, &name));
    const listed = (try next(files, null)).?;
    try testing.expect(listed.eql(written.version));
    try testing.expectEqual(null, try next(files, listed));
    running.remove();
    running.end();
    try testing.expect(!try isRunning(files, running_id));
}

test "a checkpoint of a later format, under another name, or cut off is refused" {
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    try tmp.dir.createDirPath(testing.io, dir);
    var on: LinuxFiles = .fromFd(tmp.dir.handle);
    const files = on.files();
    const written = testCheckpoint();
    try written.write(files);
    const other: Uuid = .fromRandom(@splat(5));
    var names: [2]Files.Name = undefined;
    try files.rename(nameOf(written.version, &names[0]), nameOf(other, &names[1]));
    try testing.expectError(error.Damaged, Checkpoint.read(files, other));
    try files.rename(nameOf(other, &names[1]), nameOf(written.version, &names[0]));
    const handle = try files.open(nameOf(written.version, &names[0]), .write);
    defer files.close(handle);
    var bytes: [file_size]u8 = undefined;
    try testing.expect(try files.readWhole(handle, &bytes, 0));
    for ([_]struct { usize, Error }{ .{ 11, error.TooNew }, .{ 0, error.Damaged } }) |case| {
        var changed = bytes;
        changed[case[0]] += 1;
        Sha256.hash(changed[0..signed_size], changed[signed_size..], .{});
        try testing.expectError(case[1], decode(&changed));
    }
    try files.setSize(handle, file_size - 1);
    try testing.expectError(error.Damaged, Checkpoint.read(files, written.version));
}
