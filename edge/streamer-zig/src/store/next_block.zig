//! Finds the blocks of a version that are not zeros, skipping empty subtrees.

const std = @import("std");
const node_cache = @import("tree/node_cache.zig");
const node_module = @import("tree/node.zig");
const VersionReader = @import("version_reader.zig");

/// Returns the first block at or after `from` that is not zeros, or null.
pub fn nextBlock(reader: *VersionReader, from: u64, block_count: u64) node_cache.Error!?u64 {
    var index = from;
    search: while (index < block_count) {
        var entry = reader.root;
        var level = reader.root_level;
        while (!entry.isZeros()) : (level -= 1) {
            const cached = try reader.reading.cache.get(reader.reading.nodes, &entry, level);
            const below: u64 = if (level == 0) 1 else node_module.blocksBelow(level - 1);
            var child = index / below % node_module.fanout;
            while (cached.node.location(@intCast(child)).isNone()) {
                // Restart at the next child, or at the next node.
                index = (index / below + 1) * below;
                child += 1;
                if (child == node_module.fanout or index >= block_count) continue :search;
            }
            if (level == 0) return index;
            entry = cached.node.entry(@intCast(child));
        }
        return null;
    }
    return null;
}
