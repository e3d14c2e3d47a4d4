//! Mutants of the store, and of the disk below it where that has the same effect; the model must
//! kill each of them.

const std = @import("std");
const store = @import("store");
const SimFiles = @import("sim_files.zig");
const StoreFlips = @import("flips.zig");
const store_workers = @import("workers.zig");

/// Operations within which it must be found.
const operations_max = 400_000;

pub const Planted = struct {
    what: []const u8,
    bug: union(enum) {
        store: store.simulated.Plant,
        disk: SimFiles.Lie,
        /// Shown by a flipped bit.
        unchecked: store.simulated.Plant,
    },
};

fn inStore(plant: store.simulated.Plant) Planted {
    return .{ .what = @tagName(plant), .bug = .{ .store = plant } };
}

fn ofDamage(plant: store.simulated.Plant) Planted {
    return .{ .what = @tagName(plant), .bug = .{ .unchecked = plant } };
}

fn onDisk(what: []const u8, lie: SimFiles.Lie) Planted {
    return .{ .what = what, .bug = .{ .disk = lie } };
}

pub const all = [_]Planted{
    inStore(.discard_not_owned),
    inStore(.part_without_base),
    inStore(.map_before_bytes),
    inStore(.layer_taken_unsynced),
    inStore(.another_version_served),
    inStore(.merge_of_the_parent),
    inStore(.seal_without_last),
    inStore(.names_taken_unsynced),
    inStore(.recovery_without_manifest),
    inStore(.shared_is_freed),
    inStore(.append_over_others),
    inStore(.append_beside_others),
    inStore(.import_is_freed),
    inStore(.counter_stands),
    ofDamage(.block_unchecked),
    ofDamage(.node_unchecked),
    ofDamage(.manifest_unchecked),
    ofDamage(.head_unchecked),
    ofDamage(.map_unchecked),
    onDisk("the bytes of a layer are not synced", .{ .call = .sync, .name = "/data" }),
    onDisk("the map of a layer is not synced", .{ .call = .sync, .name = "/map" }),
    onDisk("the head of a layer is not synced", .{ .call = .sync, .name = "/head" }),
    onDisk("nodes are not synced", .{ .call = .sync, .name = "nodes/" }),
    onDisk("extents are not synced", .{ .call = .sync, .name = "extents/" }),
    onDisk("manifests are not synced", .{ .call = .sync, .name = ".manifest" }),
    onDisk("the record of a seal is not synced", .{ .call = .sync, .name = "sealing" }),
    onDisk("the directory of versions is not synced", .{ .call = .sync_dir, .name = "versions" }),
    onDisk("the directory of extents is not synced", .{ .call = .sync_dir, .name = "extents" }),
    onDisk("the directory of nodes is not synced", .{ .call = .sync_dir, .name = "nodes" }),
    onDisk("directories of layers are not synced", .{ .call = .sync_dir, .name = "layers" }),
    onDisk("a discard frees nothing", .{ .call = .punch, .name = "/data" }),
    onDisk("what is read is not locked", .{ .call = .lock, .name = ".manifest" }),
};

/// Flips or operations until it was found.
pub const Found = struct { count: u64, why: []const u8 };

/// Null: it survived.
pub fn find(gpa: std.mem.Allocator, io: std.Io, seed: u64, plant: *const Planted) !?Found {
    if (plant.bug == .unchecked) {
        store.simulated.planted = plant.bug.unchecked;
        defer store.simulated.planted = null;
        const flips = try StoreFlips.run(gpa);
        const missed = flips.missed orelse return null;
        return .{ .count = flips.total() + 1, .why = @tagName(missed.part) };
    }
    const result = try store_workers.run(gpa, &.{
        .io = io,
        .seed = seed,
        .operations = operations_max,
        .plant = if (plant.bug == .store) plant.bug.store else null,
        .lie = if (plant.bug == .disk) plant.bug.disk else null,
    });
    const violation = result.violation orelse return null;
    return .{ .count = result.counts.total(), .why = violation.what };
}
