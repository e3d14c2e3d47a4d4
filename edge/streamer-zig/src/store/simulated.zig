//! What the simulation puts into the store: bugs, to see that its checks find them, and a memory of signatures that it has seen. The
//! product is compiled without any of it: there each of these is a constant.

const std = @import("std");
const base = @import("base");
const Ed25519 = base.Ed25519;

/// True in the programs of the simulation alone.
pub const is_compiled_in: bool = @import("store_options").is_simulated;

/// Each is what somebody could have written.
pub const Plant = enum {
    /// A discard makes the hole, and does not note that the layer owns it.
    discard_not_owned,
    /// A part of a block is written without the rest of the block from below.
    part_without_base,
    /// Bits go to the disk before the bytes that they stand for.
    map_before_bytes,
    /// A layer that a killed process left is taken as if all that is seen of it were durable.
    layer_taken_unsynced,
    /// A layer is opened whatever version it was written above.
    another_version_served,
    /// A merge has the bytes of the parent.
    merge_of_the_parent,
    /// The last block of a layer is left out when it is sealed.
    seal_without_last,
    /// What a killed process left is built on before it is durable.
    names_taken_unsynced,
    /// What was cut off is finished without the manifest.
    recovery_without_manifest,
    /// The garbage collection keeps only what one version alone refers to.
    shared_is_freed,
    /// Appending begins at the begin of the last file.
    append_over_others,
    /// What an import appends to is taken by others meanwhile.
    append_beside_others,
    /// The garbage collection knows nothing of imports.
    import_is_freed,
    /// Every version has the same counter.
    counter_stands,
    /// A block is delivered without a look at its hash.
    block_unchecked,
    /// A node is believed without a look at its hash.
    node_unchecked,
    /// A manifest is believed without a look at its checksum and signature.
    manifest_unchecked,
    /// The head of a layer is believed without a look at its checksum.
    head_unchecked,
    /// A record of a layer's map is believed without a look at its checksum.
    map_unchecked,
};

/// Of this thread.
pub threadlocal var planted: ?Plant = null;

pub inline fn has(comptime plant: Plant) bool {
    if (!is_compiled_in) return false;
    return planted == plant;
}

/// Results of functions that depend on nothing but what they are given.
pub const Memory = struct {
    context: *anyopaque,
    keyPair: *const fn (*anyopaque, seed: *const [32]u8) ?Ed25519.KeyPair,
    sign: *const fn (*anyopaque, message: []const u8, key: *const Ed25519.KeyPair) [64]u8,
    isRight: *const fn (*anyopaque, message: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool,
};

/// Of this thread; null: everything is computed.
pub threadlocal var memory: ?*const Memory = null;

pub fn keyPairOf(seed: *const [32]u8) ?Ed25519.KeyPair {
    if (is_compiled_in) if (memory) |known| return known.keyPair(known.context, seed);
    return Ed25519.KeyPair.generateDeterministic(seed.*) catch null;
}

pub fn sign(message: []const u8, key: *const Ed25519.KeyPair) [64]u8 {
    if (is_compiled_in) if (memory) |known| return known.sign(known.context, message, key);
    return key.sign(message).toBytes();
}

/// Whether the key signed the message.
pub fn isSigned(message: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool {
    if (is_compiled_in) if (memory) |known| return known.isRight(known.context, message, signature, key);
    return isRight(message, signature, key);
}

pub fn isRight(message: []const u8, signature: *const [64]u8, key: Ed25519.PublicKey) bool {
    Ed25519.Signature.fromBytes(signature.*).verifyStrict(&.{message}, key) catch return false;
    return true;
}
