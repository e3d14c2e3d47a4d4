//! Mutants of the store, and of the disk below it where that has the same effect; the model must
//! kill each of them.

const std = @import("std");
const store = @import("store");
const SimFiles = @import("../kit/sim_files.zig");
const StoreFlips = @import("flips.zig");
const store_workers = @import("workers.zig");

/// Operations within which it must be found.
const operations_max = 400_000;

pub const Mutant = struct {
    what: []const u8,
    bug: union(enum) {
        store: store.simulated.Mutant,
        disk: SimFiles.SkippedCall,
        /// Shown by a flipped bit.
        unchecked: store.simulated.Mutant,
    },
};

fn inStore(mutant: store.simulated.Mutant) Mutant {
    return .{ .what = @tagName(mutant), .bug = .{ .store = mutant } };
}

fn ofDamage(mutant: store.simulated.Mutant) Mutant {
    return .{ .what = @tagName(mutant), .bug = .{ .unchecked = mutant } };
}

fn onDisk(what: []const u8, skipped_call: SimFiles.SkippedCall) Mutant {
    return .{ .what = what, .bug = .{ .disk = skipped_call } };
}

pub const all = [_]Mutant{
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
    inStore(.sums_always_certain),
    inStore(.handover_without_last),
    inStore(.discard_ends_early),
    inStore(.snapshot_without_copy),
    inStore(.snapshot_of_changed),
    inStore(.unit_kept_in_part),
    inStore(.former_is_freed),
    inStore(.repair_unchecked),
    inStore(.repair_elsewhere),
    inStore(.absent_is_read),
    inStore(.absent_is_forgotten),
    ofDamage(.block_unchecked),
    ofDamage(.unit_unchecked),
    ofDamage(.node_unchecked),
    ofDamage(.manifest_unchecked),
    ofDamage(.head_unchecked),
    ofDamage(.map_unchecked),
    ofDamage(.layer_unchecked),
    onDisk("the bytes of a layer are not synced", .{ .call = .sync, .name = "/data" }),
    onDisk("the map of a layer is not synced", .{ .call = .sync, .name = "/map" }),
    onDisk("the checksums of a layer are not synced", .{ .call = .sync, .name = "/sums" }),
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
pub const Kill = struct { count: u64, why: []const u8 };

/// Null: it survived.
pub fn find(gpa: std.mem.Allocator, io: std.Io, seed: u64, mutant: *const Mutant) !?Kill {
    if (mutant.bug == .unchecked) {
        store.simulated.mutant = mutant.bug.unchecked;
        defer store.simulated.mutant = null;
        const flips = try StoreFlips.run(gpa);
        const missed = flips.missed orelse return null;
        return .{ .count = flips.total() + 1, .why = @tagName(missed.part) };
    }
    const result = try store_workers.run(gpa, &.{
        .io = io,
        .seed = seed,
        .operations = operations_max,
        .mutant = if (mutant.bug == .store) mutant.bug.store else null,
        .skipped_call = if (mutant.bug == .disk) mutant.bug.disk else null,
    });
    const violation = result.violation orelse return null;
    return .{ .count = result.counts.total(), .why = violation.what };
}
