//! Reads all blocks of a version or a store and reports those that differ from what was sealed: at
//! the end of an import, before a version is trusted again, and as a scrub beside running devices.
//! Each step has a byte budget.

const std = @import("std");
const base = @import("base");
const block = @import("block.zig");
const manifest_module = @import("tree/manifest.zig");
const LocationMap = @import("tree/location_map.zig");
const store_dir = @import("files/store_dir.zig");
const TreeWalker = @import("tree/walk.zig");

const Manifest = manifest_module.Manifest;
const Step = TreeWalker.Step;
const Store = store_dir.Store;

pub const Problem = struct {
    /// A block, or a node and with it all blocks below that no other version shares.
    step: Step,
    why: TreeWalker.Error,
};

pub const Progress = union(enum) {
    more,
    problem: Problem,
    done,
};

/// Verifies the versions of one store in turn; shared blocks are checked once.
pub const Verification = @This();

store: *Store,
seen_data: LocationMap,
seen_nodes: LocationMap,
walker: TreeWalker,
/// Bytes found correct.
checked: u64 = 0,

pub fn init(gpa: std.mem.Allocator, store: *Store) Verification {
    return .{
        .store = store,
        .seen_data = .init(gpa),
        .seen_nodes = .init(gpa),
        .walker = .init(&store.nodes, .zeros, 0),
    };
}

pub fn deinit(verification: *Verification) void {
    verification.seen_data.deinit();
    verification.seen_nodes.deinit();
    verification.* = undefined;
}

/// Starts this version, which must stay open until `step` is done.
pub fn begin(verification: *Verification, manifest: *const Manifest) void {
    // What was read before may be damaged by now.
    verification.store.units.clear();
    verification.walker = .init(&verification.store.nodes, manifest.root, manifest.rootLevel());
}

/// Checks up to `budget` bytes, or until the first problem; the next step continues behind it.
pub fn step(verification: *Verification, budget: u64) error{OutOfMemory}!Progress {
    const end = verification.checked +| budget;
    while (verification.checked < end) {
        const at = verification.walker.next() orelse return .done;
        const map = if (at.level == null) &verification.seen_data else &verification.seen_nodes;
        if (try map.add(at.entry.location) != .none) continue;
        verification.check(&at) catch |why| return .{ .problem = .{ .step = at, .why = why } };
        verification.checked += block.block_size;
    }
    return .more;
}

fn check(verification: *Verification, at: *const Step) TreeWalker.Error!void {
    if (at.level != null) return verification.walker.enter(at);
    const location = at.entry.location;
    if (location.is_packed) {
        const store = verification.store;
        const found = (try store.units.get(&store.data, location, 1))[0..block.block_size];
        if (!std.mem.eql(u8, &block.hashOf(found), &at.entry.hash)) return error.Damaged;
        return;
    }
    var bytes: block.Block = undefined;
    const is_whole = verification.store.data.read(location, 0, &bytes) catch |err|
        return switch (err) {
            error.NotFound => error.Damaged,
            else => error.ReadFailed,
        };
    if (!is_whole or !std.mem.eql(u8, &block.hashOf(&bytes), &at.entry.hash)) return error.Damaged;
}
