//! Counts which blocks and nodes the versions of a store refer to. People see the sizes; the
//! garbage collection keeps every location that is counted here.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const manifest_module = @import("tree/manifest.zig");
const Files = @import("files/files.zig");
const former_versions = @import("files/former_versions.zig");
const LocationMap = @import("tree/location_map.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const TreeWalker = @import("tree/walk.zig");

const Store = store_dir.Store;
const Uuid = base.Uuid;

pub const Error = TreeWalker.Error || store_dir.VersionError || error{OutOfMemory};

/// Bytes on the disk; data and nodes.
pub const Sizes = struct {
    /// Bytes that only this version refers to: deleting it frees them.
    own: u64 = 0,
    /// Bytes that other versions refer to, too.
    shared: u64 = 0,
};

/// Called during a count with the bytes of nodes read so far; a caller that limits the rate waits
/// there.
pub const RateLimit = struct {
    context: *anyopaque,
    wait: *const fn (*anyopaque, u64) void,

    /// Bytes of nodes between two calls.
    pub const step_size = 256 * block.block_size;
};

pub const Usage = @This();

data: LocationMap,
nodes: LocationMap,
rate_limit: ?RateLimit = null,
/// Bytes of nodes read.
read: u64 = 0,

pub fn deinit(usage: *Usage) void {
    usage.data.deinit();
    usage.nodes.deinit();
    usage.* = undefined;
}

/// Counts all versions and reads a shared node at most twice. A damaged node or manifest is an
/// error, since nothing below it is known.
pub fn of(gpa: std.mem.Allocator, store: *Store) Error!Usage {
    return ofAtRate(gpa, store, null);
}

pub fn ofAtRate(gpa: std.mem.Allocator, store: *Store, rate_limit: ?RateLimit) Error!Usage {
    var usage: Usage = .{ .data = .init(gpa), .nodes = .init(gpa), .rate_limit = rate_limit };
    errdefer usage.deinit();
    var id: ?Uuid = null;
    while (try store.nextVersion(id)) |found| {
        id = found;
        const manifest = try store.manifestOf(found);
        try usage.count(store, manifest.root, manifest.rootLevel());
    }
    try usage.countFormer(store);
    return usage;
}

/// Adds what only those refer to who opened a version before it was packed again.
fn countFormer(usage: *Usage, store: *Store) Error!void {
    var name: Files.Name = undefined;
    var at_buffer: Files.Name = undefined;
    var at: []const u8 = "";
    while (try former_versions.next(store.files, at, &name)) |former| {
        @memcpy(at_buffer[0..former.name.len], former.name);
        at = at_buffer[0..former.name.len];
        var path: Files.Name = undefined;
        const of_former = former_versions.pathOf(former.name, &path);
        const handle = store.files.open(of_former, .read) catch |err|
            // Whoever had it has closed it.
            if (err == error.NotFound) continue else return err;
        defer store.files.close(handle);
        const manifest = try store.readManifest(handle, former.version);
        try usage.count(store, manifest.root, manifest.rootLevel());
    }
}

/// Adds a tree to the counts.
pub fn count(usage: *Usage, store: *Store, root: block.Entry, level: u8) Error!void {
    var walker: TreeWalker = .init(&store.nodes, root, level);
    while (walker.next()) |step| {
        if (step.level == null) {
            try usage.countBlock(step.entry.location);
            continue;
        }
        // Everything below a shared node was counted twice when the node was found to be
        // shared.
        if (try usage.nodes.add(step.entry.location) == .more) continue;
        try walker.enter(&step);
        usage.read += block.block_size;
        if (usage.rate_limit) |rate_limit| if (usage.read % RateLimit.step_size ==
            0) rate_limit.wait(rate_limit.context, usage.read);
    }
}

fn countBlock(usage: *Usage, location: block.Location) error{OutOfMemory}!void {
    const before = try usage.data.add(location);
    if (!location.is_packed or before != .none) return;
    // All that its unit touches stays as long as one of its blocks is needed.
    var at = location.offset() / block.block_size;
    const end = if (simulated.has(.unit_kept_in_part)) at + 1 else std.math.divCeil(
        u64,
        location.offset() + location.storedSize(),
        block.block_size,
    ) catch unreachable;
    while (at < end) : (at += 1)
        _ = try usage.data.add(.{ .file = location.file, .block = @intCast(at) });
}

pub fn sizesOf(
    usage: *const Usage,
    store: *Store,
    manifest: *const manifest_module.Manifest,
) Error!Sizes {
    var sizes: Sizes = .{};
    var walker: TreeWalker = .init(&store.nodes, manifest.root, manifest.rootLevel());
    while (walker.next()) |step| {
        const map = if (step.level == null) &usage.data else &usage.nodes;
        const size = shareOf(step.entry.location);
        switch (map.useOf(step.entry.location)) {
            .none, .once => sizes.own += size,
            .more => sizes.shared += size,
        }
        if (step.level != null) try walker.enter(&step);
    }
    return sizes;
}

/// Bytes on the disk: of a packed block its share of the unit.
fn shareOf(location: block.Location) u64 {
    if (!location.is_packed) return block.block_size;
    return location.storedSize() / (@as(u64, location.place().last) + 1);
}
