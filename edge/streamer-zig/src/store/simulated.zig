//! Hooks of the simulation in the store: mutants, to see that the checks find them, and a cache of
//! signatures. The product is compiled without them: each is a constant there.

const std = @import("std");
const base = @import("base");
const Ed25519 = base.Ed25519;

/// True only in the programs of the simulation.
const is_compiled_in: bool = @import("store_options").is_simulated;

/// Each mutant is a mistake that a programmer could make.
pub const Mutant = enum {
    /// A discard makes the hole but does not mark the block as owned.
    discard_not_owned,
    /// A part of a block is written without the rest of the block from below.
    part_without_base,
    /// Bits reach the disk before the bytes that they stand for.
    map_before_bytes,
    /// A layer of a killed process is opened as if everything visible were durable.
    layer_taken_unsynced,
    /// A layer is opened although it was written above another version.
    another_version_served,
    /// A merge has the bytes of the parent.
    merge_of_the_parent,
    /// Sealing leaves out the last block of a layer.
    seal_without_last,
    /// Names of a killed process are built on before they are durable.
    names_taken_unsynced,
    /// Recovery finishes a change without the manifest.
    recovery_without_manifest,
    /// The garbage collection keeps only what exactly one version refers to.
    shared_is_freed,
    /// Appending starts at the beginning of the last file.
    append_over_others,
    /// Another appender takes the file of a running import.
    append_beside_others,
    /// The garbage collection ignores imports.
    import_is_freed,
    /// Every version has the same counter.
    counter_stands,
    /// A block is delivered without checking its hash.
    block_unchecked,
    /// Bytes of a packed unit are used although its checksum and the hashes of its blocks differ.
    unit_unchecked,
    /// The garbage collection keeps only the first 4 KiB of a packed unit.
    unit_kept_in_part,
    /// A version that is packed again is freed below those who read it.
    former_is_freed,
    /// A node is used without checking its hash.
    node_unchecked,
    /// A manifest is used without checking its checksum and signature.
    manifest_unchecked,
    /// The head of a layer is used without checking its checksum.
    head_unchecked,
    /// A record of a layer's map is used without checking its checksum.
    map_unchecked,
    /// A block of a layer is delivered without checking its checksum.
    layer_unchecked,
    /// A checksum counts although a power failure may have kept an older one.
    sums_always_certain,
    /// The last part of a layer's map is not handed over.
    handover_without_last,
    /// A discard whose blocks a snapshot copies ends after its first part.
    discard_ends_early,
    /// A block changes before a snapshot has copied it.
    snapshot_without_copy,
    /// A snapshot takes what it read of a block that changed meanwhile.
    snapshot_of_changed,
    /// A repair writes what it gets.
    repair_unchecked,
    /// A repair writes behind the block.
    repair_elsewhere,
    /// Blocks that a repaired unit lacks are delivered as zeros.
    absent_is_read,
    /// A repaired unit claims to have all blocks.
    absent_is_forgotten,
};

/// Per thread.
pub threadlocal var mutant: ?Mutant = null;

pub inline fn has(comptime expected: Mutant) bool {
    if (!is_compiled_in) return false;
    return mutant == expected;
}

/// Results of pure functions.
pub const Memory = struct {
    context: *anyopaque,
    keyPair: *const fn (*anyopaque, seed: *const [32]u8) ?Ed25519.KeyPair,
    sign: *const fn (*anyopaque, message: []const u8, key: *const Ed25519.KeyPair) [64]u8,
    isRight: *const fn (
        *anyopaque,
        message: []const u8,
        signature: *const [64]u8,
        key: Ed25519.PublicKey,
    ) bool,
};

/// Per thread; null computes everything.
pub threadlocal var memory: ?*const Memory = null;

pub fn keyPairOf(seed: *const [32]u8) ?Ed25519.KeyPair {
    if (is_compiled_in) if (memory) |known| return known.keyPair(known.context, seed);
    return Ed25519.KeyPair.generateDeterministic(seed.*) catch null;
}

pub fn sign(message: []const u8, key: *const Ed25519.KeyPair) [64]u8 {
    if (is_compiled_in) if (memory) |known| return known.sign(known.context, message, key);
    return key.sign(message).toBytes();
}

/// Returns whether the key signed the message.
pub fn isSigned(message: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool {
    if (is_compiled_in)
        if (memory) |known| return known.isRight(known.context, message, signature, key);
    return isRight(message, signature, key);
}

pub fn isRight(message: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool {
    Ed25519.Signature.fromBytes(signature.*).verifyStrict(&.{message}, key) catch return false;
    return true;
}
