//! Caches checked nodes, and remembers which blocks of each node of level 0 were checked since the
//! node was loaded. One cache serves all readers of a store in one thread. Its size is fixed; a
//! clock hand (second chance) evicts nodes that were not used lately.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const FileSet = @import("../files/file_set.zig");
const node_module = @import("node.zig");
const tree_walk = @import("walk.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Location = block.Location;
const Node = node_module.Node;

pub const Error = tree_walk.Error;

/// 32 MiB: the nodes of 3.2 GiB of blocks.
pub const nodes_default = 8192;

/// 128 KiB, which takes a disk little longer than one node.
const prefetch_nodes = 32;

pub const CachedNode = struct {
    node: Node,
    hash: block.Hash,
    location: Location,
    /// For a node of level 0: blocks whose bytes were checked since the node was loaded.
    checked: std.bit_set.Static(node_module.fanout),
    used: bool,
};

pub const NodeCache = @This();

slots: []CachedNode,
count: u32 = 0,
/// The next slot to consider for eviction.
hand: u32 = 0,
/// Maps locations to slots by open addressing; `no_slot` marks a free entry.
index: []u32,
loads: u64 = 0,

const no_slot = std.math.maxInt(u32);

/// Takes at least 16 nodes: more than the levels of two trees. Throws `OutOfMemory`.
pub fn init(gpa: std.mem.Allocator, nodes: u32) error{OutOfMemory}!NodeCache {
    assert(nodes >= 16);
    const slots = try base.allocUntouched(gpa, CachedNode, nodes);
    errdefer base.freeUntouched(gpa, CachedNode, slots);
    base.preferLargePages(std.mem.sliceAsBytes(slots));
    const index = try gpa.alloc(u32, std.math.ceilPowerOfTwoAssert(u32, nodes * 2));
    @memset(index, no_slot);
    return .{ .slots = slots, .index = index };
}

pub fn deinit(cache: *NodeCache, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, CachedNode, cache.slots);
    gpa.free(cache.index);
    cache.* = undefined;
}

/// Returns the checked node of an entry, valid until the next call.
pub fn get(cache: *NodeCache, set: *FileSet, entry: *const Entry, level: u8) Error!*CachedNode {
    if (try cache.known(entry, level)) |cached| return cached;
    var node: Node = undefined;
    if (level == 0) prefetch(set, entry.location);
    try tree_walk.load(set, entry, level, &node);
    return cache.keep(entry, &node);
}

/// Like `get`, without waiting for the disk; returns null if the disk is needed.
pub fn getNow(cache: *NodeCache, set: *FileSet, entry: *const Entry, level: u8) Error!?*CachedNode {
    if (try cache.known(entry, level)) |cached| return cached;
    var node: Node = undefined;
    const is_read = set.readNow(entry.location, 0, std.mem.asBytes(&node)) catch return null;
    if (!is_read) return null;
    if (!node.isSound(&entry.hash, level)) return error.Damaged;
    return cache.keep(entry, &node);
}

fn known(cache: *NodeCache, entry: *const Entry, level: u8) error{Damaged}!?*CachedNode {
    assert(!entry.isZeros());
    const slot = cache.find(entry.location) orelse return null;
    const cached = &cache.slots[slot];
    // A location has one content: another expected hash comes from a damaged node.
    if (!std.mem.eql(u8, &cached.hash, &entry.hash)) return error.Damaged;
    if (cached.node.level != level) return error.Damaged;
    cached.used = true;
    return cached;
}

/// Empties the cache, after files were cut or replaced under it.
pub fn clear(cache: *NodeCache) void {
    @memset(cache.index, no_slot);
    cache.count = 0;
    cache.hand = 0;
}

fn keep(cache: *NodeCache, entry: *const Entry, node: *const Node) *CachedNode {
    cache.loads += 1;
    const slot = cache.freeSlot();
    const cached = &cache.slots[slot];
    cached.* = .{
        .node = node.*,
        .hash = entry.hash,
        .location = entry.location,
        .checked = .empty,
        .used = true,
    };
    cache.insert(slot);
    return cached;
}

/// Reads ahead: neighbouring nodes are stored side by side as far as one version wrote them.
fn prefetch(set: *FileSet, location: Location) void {
    var byte: [1]u8 = undefined;
    if (set.readNow(location, 0, &byte) catch false) return;
    const first = location.block - location.block % prefetch_nodes;
    set.prefetch(.{ .file = location.file, .block = first }, 0, prefetch_nodes * block.block_size);
}

/// Evicts a node when the hand passes it twice without a use in between.
fn freeSlot(cache: *NodeCache) u32 {
    if (cache.count < cache.slots.len) {
        cache.count += 1;
        return cache.count - 1;
    }
    while (cache.slots[cache.hand].used) {
        cache.slots[cache.hand].used = false;
        cache.advance();
    }
    const slot = cache.hand;
    cache.advance();
    cache.erase(slot);
    return slot;
}

fn advance(cache: *NodeCache) void {
    cache.hand = if (cache.hand + 1 == cache.slots.len) 0 else cache.hand + 1;
}

fn homeOf(cache: *const NodeCache, location: Location) usize {
    // Fibonacci hashing spreads consecutive locations.
    const product = @as(u64, @bitCast(location)) *% 0x9e37_79b9_7f4a_7c15;
    return @intCast((product >> 32) & (cache.index.len - 1));
}

fn find(cache: *const NodeCache, location: Location) ?u32 {
    var at = cache.homeOf(location);
    while (cache.index[at] != no_slot) : (at = (at + 1) & (cache.index.len - 1)) {
        const slot = cache.index[at];
        if (cache.slots[slot].location.eql(location)) return slot;
    }
    return null;
}

fn insert(cache: *NodeCache, slot: u32) void {
    var at = cache.homeOf(cache.slots[slot].location);
    while (cache.index[at] != no_slot) at = (at + 1) & (cache.index.len - 1);
    cache.index[at] = slot;
}

/// Moves later entries up, so that no search ends too early.
fn erase(cache: *NodeCache, slot: u32) void {
    const mask = cache.index.len - 1;
    var hole = cache.homeOf(cache.slots[slot].location);
    while (cache.index[hole] != slot) hole = (hole + 1) & mask;
    var at = (hole + 1) & mask;
    while (cache.index[at] != no_slot) : (at = (at + 1) & mask) {
        const home = cache.homeOf(cache.slots[cache.index[at]].location);
        // Whether the home slot is behind the hole, in circular order.
        if ((at -% home) & mask < (at -% hole) & mask) continue;
        cache.index[hole] = cache.index[at];
        hole = at;
    }
    cache.index[hole] = no_slot;
}
