//! The plan of a new file system: numbers of the inodes, and blocks of directories, links, extended
//! attributes and files. Contents of files get their blocks in the order in which the layers have
//! them, so that they are written one after another in one pass.

const std = @import("std");
const base = @import("base");
const directory = @import("directory.zig");
const extent_tree = @import("extent_tree.zig");
const FileTree = @import("file_tree.zig");
const Layout = @import("layout.zig");
const xattr = @import("xattr.zig");
const Allocator = std.mem.Allocator;
const Extent = FileTree.Extent;
const Inode = FileTree.Inode;

const block_size = Layout.block_size;
const default_size_min = 8 << 30;
const size_step = 1 << 20;
const root_number = 2;
/// The kernel's limit; a directory with more subdirectories has 1.
pub const links_max = 65000;
/// Targets up to this size are in the inode.
pub const short_target_max = 59;
const file_size_max = @as(u64, std.math.maxInt(u32)) * block_size;

pub const Error = FileTree.Error || Layout.Error || xattr.Error ||
    error{ TooManyLinks, FileTooLarge };

pub const Settings = struct {
    /// Bytes of the file system; null leaves as much free as the files take, and at least makes it
    /// 8 GiB: blocks of zeros cost nothing in a store.
    size: ?u64 = null,
};

/// Blocks of a file that are stored.
const BlockRange = struct { first: u64, count: u64 };

pub const Plan = @This();

arena: Allocator,
tree: *FileTree,
size: u64,
layout: Layout,
/// The root, then by number from 11 on.
order: []const u32,
/// Files with stored content, in the order of their layers and places there.
contents: []const u32,
journal: []const Extent,
/// The latest time of the tree.
time: i64,
/// The inode that a fault is about.
failed: ?u32 = null,

/// After an error, `failed` says which inode it is about.
pub fn make(plan: *Plan, arena: Allocator, tree: *FileTree, settings: Settings) Error!void {
    plan.* = .{
        .arena = arena,
        .tree = tree,
        .size = undefined,
        .layout = undefined,
        .order = &.{},
        .contents = &.{},
        .journal = &.{},
        .time = 0,
    };
    try addLostAndFound(tree);
    try plan.number();
    const needed = try plan.count();
    plan.size = settings.size orelse @max(
        default_size_min,
        std.mem.alignForward(u64, needed *| (2 * block_size), size_step),
    );
    if (plan.size > Layout.size_max) return error.TooSmall;
    plan.layout = try .make(arena, plan.size, plan.order.len + Layout.first_inode);
    const journal_blocks = plan.layout.journal_blocks;
    plan.journal = try plan.extentsOf(&.{.{ .first = 0, .count = journal_blocks }});
    if (plan.journal.len > extent_tree.in_inode_max) return error.TooSmall;
    for (plan.order) |index| {
        plan.failed = index;
        try plan.placeMetadata(tree.at(index));
    }
    for (plan.contents) |index| {
        plan.failed = index;
        const inode = tree.at(index);
        try plan.placeBlocks(inode, try plan.rangesOf(inode));
    }
    plan.failed = null;
}

/// e2fsck puts what it finds there; it has the first number, as mke2fs gives it.
fn addLostAndFound(tree: *FileTree) FileTree.Error!void {
    const name = "lost+found";
    if (tree.find(FileTree.root, name)) |child|
        if (tree.at(child.inode).kind == .directory) return;
    const made = try tree.add(.{ .kind = .directory, .mode = 0o700 });
    try tree.put(FileTree.root, name, .{ .inode = made, .layer = 0 });
}

/// Numbers what is reached from the root, level by level and by name.
fn number(plan: *Plan) Error!void {
    const tree = plan.tree;
    var order: std.ArrayList(u32) = .empty;
    try order.append(plan.arena, FileTree.root);
    tree.at(FileTree.root).plan.number = root_number;
    var done: usize = 0;
    while (done < order.items.len) : (done += 1) {
        const index = order.items[done];
        const inode = tree.at(index);
        plan.time = @max(plan.time, inode.mtime);
        if (inode.kind != .directory) continue;
        inode.plan.links +|= 2;
        inode.plan.sorted = try sorted(plan.arena, inode);
        for (inode.plan.sorted) |child| {
            const found = tree.at(child.inode);
            if (found.kind == .directory) inode.plan.links +|= 1 else found.plan.links += 1;
            if (found.plan.links > links_max) {
                plan.failed = child.inode;
                if (found.kind != .directory) return error.TooManyLinks;
            }
            if (found.plan.number != 0) continue;
            found.plan.number = @intCast(Layout.first_inode + order.items.len - 1);
            try order.append(plan.arena, child.inode);
        }
    }
    plan.failed = null;
    plan.order = order.items;
}

fn sorted(arena: Allocator, inode: *const Inode) Error![]const FileTree.NamedChild {
    const children = &inode.children;
    const names = try arena.alloc(FileTree.NamedChild, children.count());
    for (names, children.keys(), children.values()) |*named, name, child|
        named.* = .{ .name = name, .inode = child.inode };
    base.sort(FileTree.NamedChild, names, {}, isNameBefore);
    return names;
}

fn isNameBefore(_: void, a: FileTree.NamedChild, b: FileTree.NamedChild) bool {
    return std.mem.order(u8, a.name, b.name) == .lt;
}

/// Counts the blocks that the files need, and sorts the files with content.
fn count(plan: *Plan) Error!u64 {
    var contents: std.ArrayList(u32) = .empty;
    var blocks: u64 = 0;
    for (plan.order) |index| {
        plan.failed = index;
        const inode = plan.tree.at(index);
        if (inode.kind == .directory) blocks += directory.blocksOf(inode.plan.sorted);
        if (inode.kind == .symlink) blocks += 1;
        if (inode.xattrs.len > 0) blocks += 1;
        if (inode.kind != .file or inode.size == 0) continue;
        if (inode.size > file_size_max) return error.FileTooLarge;
        for (try plan.rangesOf(inode)) |range| blocks +|= range.count;
        if (inode.segments == null or inode.segments.?.len > 0)
            try contents.append(plan.arena, index);
    }
    plan.failed = null;
    base.sort(u32, contents.items, plan.tree, isContentBefore);
    plan.contents = contents.items;
    return blocks;
}

fn isContentBefore(tree: *FileTree, a: u32, b: u32) bool {
    const first, const second = .{ tree.at(a), tree.at(b) };
    if (first.layer != second.layer) return first.layer < second.layer;
    return first.offset < second.offset;
}

/// Blocks with stored bytes, ascending.
fn rangesOf(plan: *Plan, inode: *const Inode) Error![]const BlockRange {
    const segments = inode.segments orelse {
        const all = try plan.arena.alloc(BlockRange, 1);
        all[0] = .{ .first = 0, .count = blocksFor(inode.size) };
        return all;
    };
    var ranges: std.ArrayList(BlockRange) = .empty;
    for (segments) |segment| {
        if (segment.size == 0) continue;
        const first = segment.offset / block_size;
        const end = blocksFor(segment.offset + segment.size);
        if (ranges.items.len > 0) {
            const last = &ranges.items[ranges.items.len - 1];
            if (first <= last.first + last.count) {
                last.count = @max(last.count, end - last.first);
                continue;
            }
        }
        try ranges.append(plan.arena, .{ .first = first, .count = end - first });
    }
    return ranges.items;
}

fn blocksFor(size: u64) u64 {
    return std.math.divCeil(u64, size, block_size) catch unreachable;
}

fn placeMetadata(plan: *Plan, inode: *Inode) Error!void {
    if (inode.kind == .directory) {
        const blocks = directory.blocksOf(inode.plan.sorted);
        inode.size = blocks * block_size;
        try plan.placeBlocks(inode, &.{.{ .first = 0, .count = blocks }});
    }
    if (inode.kind == .symlink) {
        inode.size = inode.target.len;
        if (inode.target.len > short_target_max)
            try plan.placeBlocks(inode, &.{.{ .first = 0, .count = 1 }});
    }
    const ready = try xattr.pack(plan.arena, inode.xattrs);
    if (!ready.is_in_inode) inode.plan.xattr_block = try plan.layout.takeWhole(1);
}

fn placeBlocks(plan: *Plan, inode: *Inode, ranges: []const BlockRange) Error!void {
    const needed = &inode.plan;
    needed.extents = try plan.extentsOf(ranges);
    for (needed.extents) |extent| needed.data_blocks += extent.count;
    const tree_blocks =
        try plan.arena.alloc(u64, extent_tree.blocksOf(needed.extents.len));
    for (tree_blocks) |*block| block.* = try plan.layout.takeWhole(1);
    needed.tree_blocks = tree_blocks;
}

fn extentsOf(plan: *Plan, ranges: []const BlockRange) Error![]const Extent {
    var extents: std.ArrayList(Extent) = .empty;
    for (ranges) |range| {
        var done: u64 = 0;
        while (done < range.count) {
            const run =
                try plan.layout.take(@min(range.count - done, extent_tree.extent_blocks_max));
            try extents.append(plan.arena, .{
                .logical = @intCast(range.first + done),
                .count = @intCast(run.count),
                .physical = run.first,
            });
            done += run.count;
        }
    }
    return extents.items;
}
