//! The bytes of a VHDX file as they are once its log is written: with the log's updates, and zeros
//! where the file grows.

const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const Replay = @import("vhdx_log.zig");

pub const VhdxFile = @This();

/// Updates of the log that were not written yet.
replay: Replay,
size: u64,

/// Returns whether `size` bytes from `offset` are in the file; never overflows.
pub fn has(bytes: *const VhdxFile, offset: u64, size: u64) bool {
    return size <= bytes.size and offset <= bytes.size - size;
}

pub fn read(bytes: *const VhdxFile, file: *const File, buffer: []u8, offset: u64) Fault!void {
    if (!bytes.has(offset, buffer.len)) return error.Truncated;
    const in_file: usize = @intCast(@min(buffer.len, file.size -| offset));
    if (in_file > 0) try file.read(buffer[0..in_file], offset);
    @memset(buffer[in_file..], 0);
    try bytes.replay.apply(file, buffer, offset);
}
