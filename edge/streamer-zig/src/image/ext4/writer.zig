//! Writes a new ext4 file system with the files of a tree (kernel.org, filesystems/ext4): extents,
//! 64-bit block numbers, checksums of all metadata, an empty journal. The same tree, size and
//! identity give the same bytes; nothing comes from a clock or a random number.
//!
//!     try plan.make(arena, &tree, .{ .size = size });
//!     const writer: Writer = .init(&plan, digest, sink);
//!     try writer.writeMetadata();
//!     for (plan.contents) |index|
//!         try writer.writeContent(index, offset, bytes);     // in any order

const std = @import("std");
const crc32c = @import("../crc32c.zig");
const directory = @import("directory.zig");
const extent_tree = @import("extent_tree.zig");
const fields = @import("fields.zig");
const FileTree = @import("file_tree.zig");
const layout_module = @import("layout.zig");
const Plan = @import("plan.zig");
const Sink = @import("sink.zig");
const super_block = @import("super_block.zig");
const xattr = @import("xattr.zig");
const put = fields.put;
const Extent = FileTree.Extent;
const Inode = FileTree.Inode;

const block_size = layout_module.block_size;
const inode_size = layout_module.inode_size;
const journal_number = 8;
const extents_flag = 0x80000;
const mode_types = std.enums.EnumArray(FileTree.Kind, u16).init(.{
    .file = 0o100000,
    .directory = 0o040000,
    .symlink = 0o120000,
    .char_device = 0o020000,
    .block_device = 0o060000,
    .fifo = 0o010000,
});

pub const Error = Sink.Error || xattr.Error;

pub const Writer = @This();

plan: *const Plan,
sink: Sink,
identity: super_block.Identity,

/// `digest` identifies the input; the file system's UUID and hash seed come from it.
pub fn init(plan: *const Plan, digest: [32]u8, sink: Sink) Writer {
    return .{ .plan = plan, .sink = sink, .identity = .of(digest) };
}

/// Writes everything but the content of files.
pub fn writeMetadata(writer: *const Writer) Error!void {
    const plan = writer.plan;
    for (plan.order) |index| try writer.writeInode(plan.tree.at(index));
    var journal: [60]u8 = undefined;
    try writer.writeJournal(&journal);
    try super_block.write(plan, &writer.identity, &journal, writer.sink);
}

/// Writes bytes of a file's content, which are stored ones.
pub fn writeContent(
    writer: *const Writer,
    inode: *const Inode,
    offset: u64,
    bytes: []const u8,
) Sink.Error!void {
    const extents = inode.plan.extents;
    var index = extentOf(extents, offset);
    var done: usize = 0;
    while (done < bytes.len) : (index += 1) {
        const extent = &extents[index];
        const at = offset + done;
        const first = @as(u64, extent.logical) * block_size;
        const end = first + @as(u64, extent.count) * block_size;
        std.debug.assert(at >= first and at < end);
        const part: usize = @intCast(@min(bytes.len - done, end - at));
        const place = extent.physical * block_size + (at - first);
        try writer.sink.write(bytes[done..][0..part], place);
        done += part;
    }
}

/// The last extent that begins at or before a byte of the file.
fn extentOf(extents: []const Extent, offset: u64) usize {
    var low: usize = 0;
    var high = extents.len;
    while (high - low > 1) {
        const middle = low + (high - low) / 2;
        const first = @as(u64, extents[middle].logical) * block_size;
        if (first <= offset) low = middle else high = middle;
    }
    return low;
}

const Record = struct {
    bytes: [inode_size]u8 = @splat(0),
    number: u32,
    seed: u32,

    fn of(writer: *const Writer, number: u32) Record {
        var words: [8]u8 = @splat(0);
        put(u32, &words, 0, number);
        return .{ .number = number, .seed = crc32c.update(writer.identity.seed, &words) };
    }

    fn times(record: *Record, seconds: i64, nanoseconds: u32) void {
        // From 1901 to 2446, in 34 bits.
        const clamped = std.math.clamp(seconds, -(1 << 31), (1 << 34) - (1 << 31) - 1);
        const low: i32 = @truncate(clamped);
        const epoch: u32 = @intCast((clamped - low) >> 32);
        const extra = epoch | nanoseconds << 2;
        for ([_]usize{ 0x8, 0xc, 0x10, 0x90 }) |at| put(i32, &record.bytes, at, low);
        for ([_]usize{ 0x84, 0x88, 0x8c, 0x94 }) |at| put(u32, &record.bytes, at, extra);
    }

    fn sizes(record: *Record, size: u64, blocks: u64) void {
        put(u32, &record.bytes, 0x4, @truncate(size));
        put(u32, &record.bytes, 0x6c, @intCast(size >> 32));
        const sectors = blocks * (block_size / 512);
        put(u32, &record.bytes, 0x1c, @truncate(sectors));
        put(u16, &record.bytes, 0x74, @intCast(sectors >> 32));
    }

    fn finish(record: *Record) *const [inode_size]u8 {
        put(u16, &record.bytes, 0x80, xattr.inode_place - 128);
        const sum = crc32c.update(record.seed, &record.bytes);
        put(u16, &record.bytes, 0x7c, fields.low16(sum));
        put(u16, &record.bytes, 0x82, fields.high16(sum));
        return &record.bytes;
    }
};

fn writeInode(writer: *const Writer, inode: *const Inode) Error!void {
    const needed = &inode.plan;
    var record: Record = .of(writer, needed.number);
    const bytes = &record.bytes;
    put(u16, bytes, 0x0, mode_types.get(inode.kind) | inode.mode);
    put(u16, bytes, 0x2, fields.low16(inode.uid));
    put(u16, bytes, 0x78, fields.high16(inode.uid));
    put(u16, bytes, 0x18, fields.low16(inode.gid));
    put(u16, bytes, 0x7a, fields.high16(inode.gid));
    put(u16, bytes, 0x1a, if (needed.links > Plan.links_max) 1 else @intCast(needed.links));
    record.times(inode.mtime, inode.mtime_ns);
    const xattr_blocks: u64 = @intFromBool(needed.xattr_block != 0);
    record.sizes(inode.size, needed.data_blocks + needed.tree_blocks.len + xattr_blocks);
    try writer.writeContentPlaces(inode, &record);
    try writer.writeXattrs(inode, &record);
    try writer.sink.write(record.finish(), writer.plan.layout.placeOfInode(needed.number));
}

/// Fills the inode's part for places of content, and writes directories and targets.
fn writeContentPlaces(writer: *const Writer, inode: *const Inode, record: *Record) Error!void {
    const needed = &inode.plan;
    const root = record.bytes[0x28..][0..60];
    switch (inode.kind) {
        .char_device, .block_device => return writeDevice(root, inode),
        .fifo => return,
        .symlink => if (inode.target.len <= Plan.short_target_max) {
            @memcpy(root[0..inode.target.len], inode.target);
            return;
        },
        .file, .directory => {},
    }
    put(u32, &record.bytes, 0x20, extents_flag);
    try extent_tree.write(root, needed.extents, needed.tree_blocks, record.seed, writer.sink);
    if (inode.kind == .symlink)
        try writer.sink.write(inode.target, needed.extents[0].physical * block_size);
    if (inode.kind != .directory) return;
    try directory.write(writer.plan.tree, &.{
        .number = needed.number,
        .parent_number = writer.plan.tree.at(inode.parent).plan.number,
        .extents = needed.extents,
    }, needed.sorted, record.seed, writer.sink);
}

/// Small numbers as in 1993, others as the kernel's `new_encode_dev`.
fn writeDevice(root: *[60]u8, inode: *const Inode) void {
    const major, const minor = .{ inode.major, inode.minor };
    if (major < 256 and minor < 256)
        put(u32, root, 0, major << 8 | minor)
    else
        put(u32, root, 4, (minor & 0xff) | (major & 0xfff) << 8 | (minor & 0xfff00) << 12);
}

fn writeXattrs(writer: *const Writer, inode: *const Inode, record: *Record) Error!void {
    if (inode.xattrs.len == 0) return;
    const ready = try xattr.pack(writer.plan.arena, inode.xattrs);
    ready.writeInode(&record.bytes);
    const number = inode.plan.xattr_block;
    if (number == 0) return;
    put(u32, &record.bytes, 0x68, @truncate(number));
    put(u16, &record.bytes, 0x76, @intCast(number >> 32));
    var block: [block_size]u8 = undefined;
    ready.writeBlock(&block, number, writer.identity.seed);
    try writer.sink.write(&block, number * block_size);
}

/// Writes an empty journal, and returns what its inode says of its places.
fn writeJournal(writer: *const Writer, places: *[60]u8) Error!void {
    const plan = writer.plan;
    const blocks = plan.layout.journal_blocks;
    var record: Record = .of(writer, journal_number);
    put(u16, &record.bytes, 0x0, mode_types.get(.file) | 0o600);
    put(u16, &record.bytes, 0x1a, 1);
    put(u32, &record.bytes, 0x20, extents_flag);
    record.times(super_block.secondsOf(plan), 0);
    record.sizes(@as(u64, blocks) * block_size, blocks);
    const root = record.bytes[0x28..][0..60];
    try extent_tree.write(root, plan.journal, &.{}, record.seed, writer.sink);
    places.* = root.*;
    try writer.sink.write(record.finish(), plan.layout.placeOfInode(journal_number));
    var block: [block_size]u8 = @splat(0);
    // Magic, a super block of version 2, block size, blocks, first block, first sequence, one user.
    for ([_]struct { usize, u32 }{
        .{ 0, 0xc03b3998 }, .{ 4, 4 },  .{ 12, block_size }, .{ 16, blocks },
        .{ 20, 1 },         .{ 24, 1 }, .{ 64, 1 },
    }) |field| std.mem.writeInt(u32, block[field[0]..][0..4], field[1], .big);
    try writer.sink.write(&block, plan.journal[0].physical * block_size);
}
