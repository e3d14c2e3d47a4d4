//! Writes bytes of a store's large files at the places that they have in another store. A place has
//! one content for ever, so a copy needs no other order than: bytes, `sync`, then the manifest that
//! refers to them.

const std = @import("std");
const block = @import("../block.zig");
const FileSet = @import("../files/file_set.zig");
const Files = @import("../files/files.zig");

/// Files open for writing at once; versions of one vDisk alternate between few.
const open_max = 16;

pub const PlaceWriter = @This();

const OpenFile = struct {
    file: block.FileNumber = 0,
    handle: Files.Handle = undefined,
    size: u64 = 0,
    used_at: u64 = 0,
    is_dirty: bool = false,
};

/// Drops what the system has of a file in memory, so that what is read next comes from the disk.
pub const Evict = *const fn (Files.Handle) void;

set: *FileSet,
evict: ?Evict,
open: [open_max]OpenFile = @splat(.{}),
uses: u64 = 0,
/// Names of new files are not durable.
has_new_names: bool = false,

pub fn init(set: *FileSet, evict: ?Evict) PlaceWriter {
    return .{ .set = set, .evict = evict };
}

pub fn deinit(writer: *PlaceWriter) void {
    for (&writer.open) |*each| if (each.file != 0) writer.set.files.close(each.handle);
    writer.* = undefined;
}

/// Fills the buffer with what is already at that place; returns false if nothing is.
pub fn read(
    writer: *PlaceWriter,
    file: block.FileNumber,
    offset: u64,
    buffer: []u8,
) Files.Error!bool {
    const opened = try writer.take(file);
    if (opened.size < offset + buffer.len) return false;
    return writer.set.files.readWhole(opened.handle, buffer, offset);
}

pub fn write(
    writer: *PlaceWriter,
    file: block.FileNumber,
    offset: u64,
    bytes: []const u8,
) Files.Error!void {
    const opened = try writer.take(file);
    opened.is_dirty = true;
    try writer.set.files.write(opened.handle, bytes, offset);
    opened.size = @max(opened.size, offset + bytes.len);
}

/// Makes all that was written durable.
pub fn sync(writer: *PlaceWriter) Files.Error!void {
    for (&writer.open) |*each| if (each.file != 0) try writer.syncFile(each);
    if (writer.has_new_names) try writer.set.files.syncDir(writer.set.kind.dir());
    writer.has_new_names = false;
}

fn syncFile(writer: *PlaceWriter, opened: *OpenFile) Files.Error!void {
    if (!opened.is_dirty) return;
    try writer.set.files.sync(opened.handle);
    opened.is_dirty = false;
    if (writer.evict) |evict| evict(opened.handle);
}

fn take(writer: *PlaceWriter, file: block.FileNumber) Files.Error!*OpenFile {
    writer.uses += 1;
    var oldest: *OpenFile = &writer.open[0];
    for (&writer.open) |*each| {
        if (each.file == file) {
            each.used_at = writer.uses;
            return each;
        }
        if (each.used_at < oldest.used_at) oldest = each;
    }
    const files = writer.set.files;
    if (oldest.file != 0) {
        try writer.syncFile(oldest);
        files.close(oldest.handle);
        oldest.* = .{};
    }
    var name: Files.Name = undefined;
    const path = writer.set.nameOf(file, &name);
    const handle = files.open(path, .write) catch |err| switch (err) {
        error.NotFound => blk: {
            const made = try files.create(path);
            writer.has_new_names = true;
            break :blk made;
        },
        else => |other| return other,
    };
    errdefer files.close(handle);
    oldest.* = .{
        .file = file,
        .handle = handle,
        .size = try files.size(handle),
        .used_at = writer.uses,
    };
    return oldest;
}
