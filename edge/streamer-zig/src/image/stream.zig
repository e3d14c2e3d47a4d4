//! Reads a file of an image from start to end, a part at a time.

const std = @import("std");
const boot_files = @import("boot_files.zig");
const Disk = @import("disk.zig");
const file_system = @import("file_system.zig");

pub const Error = Disk.Error;

/// `disk` and `found` must not move.
pub const Stream = @This();

disk: *Disk,
content: file_system.Content,
/// Bytes of the file before what is read.
first: u64,
size: u64,
at: u64 = 0,

pub fn open(disk: *Disk, found: *const boot_files.BootFile) Stream {
    return .{
        .disk = disk,
        .content = .open(disk.system(found.place.part).?, &found.place.node),
        .first = found.first(),
        .size = found.size(),
    };
}

/// Returns how much of `buffer` was filled; 0 only at the end.
pub fn read(stream: *Stream, buffer: []u8) Error!usize {
    const size: usize = @intCast(@min(buffer.len, stream.size - stream.at));
    if (size == 0) return 0;
    stream.disk.renewWork();
    try stream.content.read(buffer[0..size], stream.first + stream.at);
    stream.at += size;
    return size;
}

/// Writes the whole file; `buffer` limits each read.
pub fn copy(
    disk: *Disk,
    found: *const boot_files.BootFile,
    writer: *std.Io.Writer,
    buffer: []u8,
) (Error || std.Io.Writer.Error)!void {
    var stream: Stream = .open(disk, found);
    while (true) {
        const size = try stream.read(buffer);
        if (size == 0) return;
        try writer.writeAll(buffer[0..size]);
    }
}
