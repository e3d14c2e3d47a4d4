//! Which versions of a store refer to what: the sizes that people see, and what the garbage collection must not free.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const manifest_module = @import("tree/manifest.zig");
const place_map = @import("tree/place_map.zig");
const store_dir = @import("files/store_dir.zig");
const tree_walk = @import("tree/walk.zig");

const PlaceMap = place_map.PlaceMap;
const Store = store_dir.Store;
const TreeWalker = tree_walk.TreeWalker;
const Uuid = base.Uuid;

pub const Error = tree_walk.Error || store_dir.VersionError || error{OutOfMemory};

/// Bytes on the disk, in whole blocks, data and nodes.
pub const Sizes = struct {
    /// No other version refers to it: what deleting this one frees.
    own: u64 = 0,
    /// Other versions refer to it too.
    shared: u64 = 0,
};

/// Called while it is counted with the bytes of nodes that were read so far: whoever keeps a rate waits there.
pub const Rest = struct {
    context: *anyopaque,
    wait: *const fn (*anyopaque, u64) void,

    /// Bytes of nodes between two calls.
    pub const step_size = 256 * block.block_size;
};

pub const Usage = struct {
    data: PlaceMap,
    nodes: PlaceMap,
    rest: ?Rest = null,
    /// Bytes of nodes.
    read: u64 = 0,

    pub fn deinit(usage: *Usage) void {
        usage.data.deinit();
        usage.nodes.deinit();
        usage.* = undefined;
    }

    /// Goes through all versions; a node that they share is read twice at most. A damaged node or manifest is an error: nothing is known
    /// of what is below it.
    pub fn of(gpa: std.mem.Allocator, store: *Store) Error!Usage {
        return ofAtRate(gpa, store, null);
    }

    pub fn ofAtRate(gpa: std.mem.Allocator, store: *Store, rest: ?Rest) Error!Usage {
        var usage: Usage = .{ .data = .init(gpa), .nodes = .init(gpa), .rest = rest };
        errdefer usage.deinit();
        var id: ?Uuid = null;
        while (try store.nextVersion(id)) |found| {
            id = found;
            const manifest = try store.manifestOf(found);
            try usage.count(store, manifest.root, manifest.rootLevel());
        }
        return usage;
    }

    /// Takes a tree into account.
    pub fn count(usage: *Usage, store: *Store, root: block.Entry, level: u8) Error!void {
        var walker: TreeWalker = .init(&store.nodes, root, level);
        while (walker.next()) |step| {
            if (step.level == null) {
                _ = try usage.data.add(step.entry.location);
                continue;
            }
            // All below a node that is known to be shared was counted twice when that became known.
            if (try usage.nodes.add(step.entry.location) == .more) continue;
            try walker.enter(&step);
            usage.read += block.block_size;
            if (usage.rest) |rest| if (usage.read % Rest.step_size == 0) rest.wait(rest.context, usage.read);
        }
    }

    pub fn sizesOf(usage: *const Usage, store: *Store, manifest: *const manifest_module.Manifest) Error!Sizes {
        var sizes: Sizes = .{};
        var walker: TreeWalker = .init(&store.nodes, manifest.root, manifest.rootLevel());
        while (walker.next()) |step| {
            const map = if (step.level == null) &usage.data else &usage.nodes;
            switch (map.useOf(step.entry.location)) {
                .none, .once => sizes.own += block.block_size,
                .more => sizes.shared += block.block_size,
            }
            if (step.level != null) try walker.enter(&step);
        }
        return sizes;
    }
};
