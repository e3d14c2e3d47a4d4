//! Walks a tree in block order, node by node, without the cache, for jobs that visit everything
//! once. Usage, verification and export use it; each node is checked before its entries are
//! returned.

const std = @import("std");
const block = @import("../block.zig");
const FileSet = @import("../files/file_set.zig");
const node_module = @import("node.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Node = node_module.Node;

pub const Error = error{ Damaged, ReadFailed };

/// A node or a block that is not zeros. `first` is the index of the first block of the disk below
/// it.
pub const Step = struct {
    entry: Entry,
    /// Null for a block.
    level: ?u8,
    first: u64,
};

const Frame = struct {
    node: Node,
    level: u8,
    first: u64,
    next: u8,
};

pub const TreeWalker = @This();

nodes: *FileSet,
frames: [node_module.level_max + 1]Frame = undefined,
depth: u8 = 0,
root: ?Step,

pub fn init(nodes: *FileSet, root: Entry, level: u8) TreeWalker {
    return .{
        .nodes = nodes,
        .root = if (root.isZeros()) null else .{ .entry = root, .level = level, .first = 0 },
    };
}

/// Returns the next step, or null at the end. The entries of a node follow only if the caller
/// enters the node.
pub fn next(walker: *TreeWalker) ?Step {
    if (walker.root) |step| {
        walker.root = null;
        return step;
    }
    while (walker.depth > 0) {
        const frame = &walker.frames[walker.depth - 1];
        while (frame.next < node_module.fanout) {
            const child = frame.next;
            frame.next += 1;
            const entry = frame.node.entry(child);
            if (entry.isZeros()) continue;
            if (frame.level == 0)
                return .{ .entry = entry, .level = null, .first = frame.first + child };
            const below = node_module.blocksBelow(frame.level - 1);
            return .{
                .entry = entry,
                .level = frame.level - 1,
                .first = frame.first + child * below,
            };
        }
        walker.depth -= 1;
    }
    return null;
}

/// Descends into the node that `next` returned last.
pub fn enter(walker: *TreeWalker, step: *const Step) Error!void {
    const level = step.level.?;
    assert(walker.depth <= node_module.level_max);
    const frame = &walker.frames[walker.depth];
    frame.* = .{ .node = undefined, .level = level, .first = step.first, .next = 0 };
    try load(walker.nodes, &step.entry, level, &frame.node);
    walker.depth += 1;
}

/// Reads a node and checks it.
pub fn load(nodes: *FileSet, entry: *const Entry, level: u8, into: *Node) Error!void {
    const is_whole = nodes.read(entry.location, 0, std.mem.asBytes(into)) catch |err|
        return switch (err) {
            // A missing file means that the location or the store is damaged.
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        };
    if (!is_whole or !into.isSound(&entry.hash, level)) return error.Damaged;
}
