//! Blocks of directories (kernel.org, filesystems/ext4, "Linear Directories"): entries by name, and
//! a tail with a checksum. The kernel adds the hash tree when a directory grows.

const std = @import("std");
const crc32c = @import("../crc32c.zig");
const fields = @import("fields.zig");
const FileTree = @import("file_tree.zig");
const layout_module = @import("layout.zig");
const Sink = @import("sink.zig");
const put = fields.put;
const NamedChild = FileTree.NamedChild;

const block_size = layout_module.block_size;
const header_size = 8;
const tail_size = 12;
const entries_size = block_size - tail_size;
/// `.` and `..`.
const own_size = 2 * (header_size + 4);

fn entrySize(name: []const u8) usize {
    return header_size + std.mem.alignForward(usize, name.len, 4);
}

pub fn blocksOf(children: []const NamedChild) u64 {
    var blocks: u64 = 1;
    var filled: usize = own_size;
    for (children) |child| {
        const size = entrySize(child.name);
        if (filled + size > entries_size) {
            blocks += 1;
            filled = 0;
        }
        filled += size;
    }
    return blocks;
}

pub const Owner = struct { number: u32, parent_number: u32, extents: []const FileTree.Extent };

pub fn write(
    tree: *const FileTree,
    owner: *const Owner,
    children: []const NamedChild,
    seed: u32,
    sink: Sink,
) Sink.Error!void {
    var block: Block = .{ .seed = seed };
    block.add(".", owner.number, .directory);
    block.add("..", owner.parent_number, .directory);
    var logical: u64 = 0;
    for (children) |child| {
        if (block.filled + entrySize(child.name) > entries_size) {
            try sink.write(block.finish(), placeOf(owner.extents, logical));
            block = .{ .seed = seed };
            logical += 1;
        }
        const inode = tree.at(child.inode);
        block.add(child.name, inode.plan.number, inode.kind);
    }
    try sink.write(block.finish(), placeOf(owner.extents, logical));
}

fn placeOf(extents: []const FileTree.Extent, logical: u64) u64 {
    for (extents) |extent| if (logical < @as(u64, extent.logical) + extent.count)
        return (extent.physical + logical - extent.logical) * block_size;
    unreachable;
}

const Block = struct {
    bytes: [block_size]u8 = @splat(0),
    filled: usize = 0,
    last: usize = 0,
    seed: u32,

    fn add(block: *Block, name: []const u8, number: u32, kind: FileTree.Kind) void {
        const at = block.filled;
        put(u32, &block.bytes, at, number);
        put(u16, &block.bytes, at + 4, @intCast(entrySize(name)));
        block.bytes[at + 6] = @intCast(name.len);
        block.bytes[at + 7] = switch (kind) {
            .file => 1,
            .directory => 2,
            .char_device => 3,
            .block_device => 4,
            .fifo => 5,
            .symlink => 7,
        };
        @memcpy(block.bytes[at + header_size ..][0..name.len], name);
        block.last = at;
        block.filled += entrySize(name);
    }

    fn finish(block: *Block) *const [block_size]u8 {
        // The last entry reaches to the tail.
        put(u16, &block.bytes, block.last + 4, @intCast(entries_size - block.last));
        put(u16, &block.bytes, entries_size + 4, tail_size);
        block.bytes[entries_size + 7] = 0xde;
        const sum = crc32c.update(block.seed, block.bytes[0..entries_size]);
        put(u32, &block.bytes, entries_size + 8, sum);
        return &block.bytes;
    }
};
