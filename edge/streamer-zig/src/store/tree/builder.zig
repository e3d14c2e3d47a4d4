//! Builds a version's tree from the tree of another version and the blocks that differ. Unchanged
//! nodes are shared. With blocks in ascending order, each changed node is written once.

const std = @import("std");
const block = @import("../block.zig");
const node_module = @import("node.zig");
const NodeCache = @import("node_cache.zig");
const Appender = @import("../files/appender.zig");
const FileSet = @import("../files/file_set.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Node = node_module.Node;

pub const Error = NodeCache.Error || Appender.Error;

const Level = struct {
    node: Node,
    /// Position among the nodes of its level, from the left.
    index: u64,
    differs: bool,
    is_loaded: bool,
};

pub const TreeBuilder = @This();

cache: *NodeCache,
nodes: *Appender,
root: Entry,
root_level: u8,
block_count: u64,
levels: [node_module.level_max + 1]Level = undefined,

/// Starts a new tree.
///
/// @param base root to start from; `Entry.zeros` for a new disk
pub fn init(cache: *NodeCache, nodes: *Appender, base: Entry, block_count: u64) TreeBuilder {
    var builder: TreeBuilder = .{
        .cache = cache,
        .nodes = nodes,
        .root = base,
        .root_level = node_module.rootLevel(block_count),
        .block_count = block_count,
    };
    for (&builder.levels) |*level| level.is_loaded = false;
    return builder;
}

/// Returns the current entry of the block with this index.
pub fn get(builder: *TreeBuilder, index: u64) Error!Entry {
    try builder.moveTo(index);
    return builder.levels[0].node.entry(@intCast(index % node_module.fanout));
}

pub fn put(builder: *TreeBuilder, index: u64, entry: Entry) Error!void {
    const before = try builder.get(index);
    if (before.location.eql(entry.location)) return;
    // The same bytes at another location would only cost a node.
    if (std.mem.eql(u8, &before.hash, &entry.hash)) return;
    const leaf = &builder.levels[0];
    leaf.node.set(@intCast(index % node_module.fanout), entry);
    leaf.differs = true;
}

/// Returns the root of the new tree. Its nodes are durable after a sync of their appender.
pub fn finish(builder: *TreeBuilder) Error!Entry {
    var level: u8 = 0;
    while (level <= builder.root_level) : (level += 1) try builder.leave(level);
    return builder.root;
}

/// Loads the nodes above a block, top down, and leaves the nodes that it does not need.
fn moveTo(builder: *TreeBuilder, index: u64) Error!void {
    assert(index < builder.block_count);
    if (builder.isAt(0, index)) return;
    var level: u8 = 0;
    while (level <= builder.root_level and !builder.isAt(level, index)) : (level += 1)
        try builder.leave(level);
    while (level > 0) {
        level -= 1;
        try builder.enter(level, index / node_module.blocksBelow(level));
    }
}

fn isAt(builder: *const TreeBuilder, level: u8, index: u64) bool {
    const state = &builder.levels[level];
    return state.is_loaded and state.index == index / node_module.blocksBelow(level);
}

fn enter(builder: *TreeBuilder, level: u8, index: u64) Error!void {
    const entry = if (level == builder.root_level)
        builder.root
    else
        builder.levels[level + 1].node.entry(@intCast(index % node_module.fanout));
    if (!entry.isZeros()) try builder.nodes.reveal(entry.location);
    const node = if (entry.isZeros())
        Node.empty(level)
    else
        (try builder.cache.get(builder.nodes.set, &entry, level)).node;
    builder.levels[level] = .{ .node = node, .index = index, .differs = false, .is_loaded = true };
}

fn leave(builder: *TreeBuilder, level: u8) Error!void {
    const state = &builder.levels[level];
    if (!state.is_loaded) return;
    if (state.differs) {
        const entry = try builder.write(&state.node);
        if (level == builder.root_level) {
            builder.root = entry;
        } else {
            const above = &builder.levels[level + 1];
            assert(above.is_loaded and above.index == state.index / node_module.fanout);
            above.node.set(@intCast(state.index % node_module.fanout), entry);
            above.differs = true;
        }
    }
    state.is_loaded = false;
}

fn write(builder: *TreeBuilder, node: *Node) Error!Entry {
    if (node.isZeros()) return .zeros;
    node.seal();
    return .{ .hash = node.hash(), .location = try builder.nodes.append(std.mem.asBytes(node)) };
}
