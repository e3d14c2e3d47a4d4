//! The disk of the store's single faults: few blocks, each filled with one byte, in all nodes of a
//! tree of two levels; and an import's source that reads as it.

const std = @import("std");
const store = @import("store");
const block = store.block;

/// In two levels of nodes; the last block is a sector.
pub const block_count = 206;
pub const size = (block_count - 1) * block.block_size + 512;
/// The blocks that are written, in all three nodes.
pub const places = [_]u64{ 0, 1, 2, 101, 102, 205 };
/// The byte that fills each of these; 0 for zeros.
pub const Content = [places.len]u8;

pub const next_content: Content = .{ 1, 0, 33, 4, 55, 6 };

pub fn byteOf(content: *const Content, index: u64) u8 {
    for (places, content) |place, byte| if (place == index) return byte;
    return 0;
}

pub fn blockOf(index: u64, byte: u8) block.Block {
    var bytes: block.Block = @splat(0);
    @memset(bytes[0..@intCast(@min(bytes.len, size - index * block.block_size))], byte);
    return bytes;
}

/// Reads as `next_content`.
pub const Image = struct {
    pub const vtable: store.image_source.ImageSource.VTable =
        .{ .read = read, .nextData = nextData, .now = now };

    fn read(
        _: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store.image_source.ReadError!usize {
        const count: usize = @intCast(@min(buffer.len, size - offset));
        for (0..count / 512) |sector| {
            const index = (offset + sector * 512) / block.block_size;
            @memset(buffer[sector * 512 ..][0..512], byteOf(&next_content, index));
        }
        return count;
    }

    pub fn nextData(_: *anyopaque, offset: u64) ?u64 {
        return offset;
    }

    fn now(_: *anyopaque) ?store.image_source.ImageSource.Now {
        return .{ .stamp = .{ .kind = .file, .inode = 1 }, .size = size };
    }

    pub fn progress(_: *anyopaque, _: *const store.import.Progress) void {}

    threadlocal var clock_us: u64 = 0;

    pub fn monotonicUs() u64 {
        clock_us += std.time.us_per_min;
        return clock_us;
    }
};
