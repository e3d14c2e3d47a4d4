//! Compares two versions and reports the ranges of blocks whose bytes differ. Nodes with equal
//! hashes are skipped whole, so the time depends on the size of the difference.

const std = @import("std");
const block = @import("block.zig");
const FileSet = @import("files/file_set.zig");
const node_module = @import("tree/node.zig");
const tree_walk = @import("tree/walk.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Node = node_module.Node;

pub const Error = tree_walk.Error;

/// Consecutive blocks of the disk that differ.
pub const Range = struct { first: u64, count: u64 };

pub const Tree = struct { root: Entry, level: u8 };

pub fn Comparison(comptime Context: type) type {
    return struct {
        const Self = @This();

        nodes: *FileSet,
        context: Context,
        /// Called for each range in ascending order; ranges do not touch.
        report: *const fn (Context, Range) void,
        open: ?Range = null,

        /// Blocks beyond the end of the smaller disk are compared with zeros.
        pub fn run(comparison: *Self, a: Tree, b: Tree) Error!void {
            const level = @max(a.level, b.level);
            try comparison.compare(lifted(a, level), lifted(b, level), level, 0);
            if (comparison.open) |range| comparison.report(comparison.context, range);
            comparison.open = null;
        }

        /// The recursion is at most as deep as a tree.
        fn compare(comparison: *Self, a: Side, b: Side, level: u8, first: u64) Error!void {
            if (a.eql(b)) return;
            var a_node: Node = undefined;
            var b_node: Node = undefined;
            try comparison.load(a, level, &a_node);
            try comparison.load(b, level, &b_node);
            for (0..node_module.fanout) |child| {
                if (level == 0) {
                    if (!std.mem.eql(u8, &a_node.hashes[child], &b_node.hashes[child]))
                        comparison.add(first + child);
                    continue;
                }
                const below = node_module.blocksBelow(level - 1);
                try comparison.compare(
                    a.child(&a_node, child),
                    b.child(&b_node, child),
                    level - 1,
                    first + child * below,
                );
            }
        }

        fn load(comparison: *Self, side: Side, level: u8, into: *Node) Error!void {
            // Above its root a smaller disk has one child only, which `child` returns.
            if (side.lift > 0 or side.entry.isZeros()) {
                into.* = .empty(level);
                return;
            }
            return tree_walk.load(comparison.nodes, &side.entry, level, into);
        }

        fn add(comparison: *Self, index: u64) void {
            if (comparison.open) |*range| {
                assert(index >= range.first + range.count);
                if (index == range.first + range.count) {
                    range.count += 1;
                    return;
                }
                comparison.report(comparison.context, range.*);
            }
            comparison.open = .{ .first = index, .count = 1 };
        }
    };
}

const Side = struct {
    entry: Entry,
    /// Number of levels above its entry.
    lift: u8,

    fn eql(a: Side, b: Side) bool {
        return a.lift == b.lift and std.mem.eql(u8, &a.entry.hash, &b.entry.hash);
    }

    fn child(side: Side, node: *const Node, index: usize) Side {
        if (side.lift == 0) return .{ .entry = node.entry(index), .lift = 0 };
        return if (index == 0) .{
            .entry = side.entry,
            .lift = side.lift - 1,
        } else .{ .entry = .zeros, .lift = 0 };
    }
};

fn lifted(tree: Tree, level: u8) Side {
    return .{ .entry = tree.root, .lift = level - tree.level };
}
