//! The bytes of a file that holds an image. Every range is checked against the size of the file
//! before it is read.

const std = @import("std");
const store = @import("store");
const Fault = @import("fault.zig").Fault;
const ImageSource = store.image_source.ImageSource;

pub const File = @This();

source: ImageSource,
/// Bytes when the file was opened.
size: u64,

/// `source` must be positional.
pub fn init(source: ImageSource) File {
    return .{ .source = source, .size = source.size.? };
}

/// Returns whether `size` bytes from `offset` are in the file; never overflows.
pub fn has(file: *const File, offset: u64, size: u64) bool {
    return size <= file.size and offset <= file.size - size;
}

/// Fills `buffer` from byte `offset` of the file, completely or not at all.
pub fn read(file: *const File, buffer: []u8, offset: u64) Fault!void {
    if (!file.has(offset, buffer.len)) return error.Truncated;
    var failed_at: u64 = 0;
    const count = try file.source.read(buffer, offset, &failed_at);
    if (count < buffer.len) return error.Truncated;
}

pub fn readArray(file: *const File, comptime size: usize, offset: u64) Fault![size]u8 {
    var buffer: [size]u8 = undefined;
    try file.read(&buffer, offset);
    return buffer;
}

/// Returns the first byte at or after `offset` that may be nonzero, or the size.
pub fn nextData(file: *const File, offset: u64) u64 {
    const found = file.source.nextData(offset) orelse return file.size;
    return @min(found, file.size);
}

/// A file in memory, for tests and the fuzzer; it must not move while it is read.
pub const MemoryFile = struct {
    bytes: []const u8,
    /// Tells files apart, as an inode does.
    number: u64 = 1,

    pub fn source(memory: *MemoryFile) ImageSource {
        return .{
            .context = memory,
            .vtable = &.{ .read = readSource, .nextData = nextSource, .now = now },
            .size = memory.bytes.len,
            .is_positional = true,
        };
    }

    fn of(context: *anyopaque) *const MemoryFile {
        return @ptrCast(@alignCast(context));
    }

    fn readSource(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store.image_source.ReadError!usize {
        const bytes = of(context).bytes;
        const rest = bytes[@min(bytes.len, @as(usize, @intCast(offset)))..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }

    fn nextSource(context: *anyopaque, offset: u64) ?u64 {
        const bytes = of(context).bytes;
        if (offset >= bytes.len) return null;
        const at = std.mem.findNonePos(u8, bytes, @intCast(offset), "\x00");
        return at;
    }

    fn now(context: *anyopaque) ?ImageSource.Now {
        const memory = of(context);
        return .{
            .stamp = .{ .kind = .file, .inode = memory.number },
            .size = memory.bytes.len,
        };
    }
};

test "a range is in a file only if all of it is, whatever its numbers" {
    var memory: MemoryFile = .{ .bytes = "abcdef" };
    const file: File = .init(memory.source());
    try std.testing.expectEqualStrings("ef", &try file.readArray(2, 4));
    const last = std.math.maxInt(u64);
    for ([_][2]u64{ .{ 5, 2 }, .{ 6, 1 }, .{ last, 1 }, .{ 1, last }, .{ last, last } }) |range|
        try std.testing.expect(!file.has(range[0], range[1]));
    try std.testing.expectError(error.Truncated, file.readArray(2, 5));
    try std.testing.expectError(error.Truncated, file.readArray(2, last));
}
