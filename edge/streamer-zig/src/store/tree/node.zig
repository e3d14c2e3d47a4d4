//! Nodes of a version's tree. A node has 102 entries and fills 4 KiB. Entries of level 0 are blocks
//! of the disk; entries above are nodes.
//!
//! A node carries two checks. Its hash covers the hashes of its entries but not their locations, so
//! a version has the same root on every edge, wherever its blocks are stored. Its checksum covers
//! all of its bytes and finds a damaged location.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;

const Entry = block.Entry;
const Hash = block.Hash;
const Location = block.Location;

pub const fanout = 102;
/// 102^8 blocks exceed what 64 bits can count in bytes.
pub const level_max = 7;

const magic = "BFN1".*;
const hash_prefix = "bootfarm tree node 1";
const checksum_seed = 0x62_66_6e_31;

/// The format on disk. Integers are little-endian.
pub const Node = extern struct {
    magic: [4]u8,
    level: u8,
    reserved: [3]u8,
    checksum: [8]u8,
    hashes: [fanout]Hash,
    locations: [fanout][8]u8,

    comptime {
        assert(@sizeOf(Node) == block.block_size and @alignOf(Node) == 1);
    }

    /// Returns a node with zeros below every entry.
    pub fn empty(level: u8) Node {
        assert(level <= level_max);
        return .{
            .magic = magic,
            .level = level,
            .reserved = @splat(0),
            .checksum = @splat(0),
            .hashes = @splat(block.zero_hash),
            .locations = @splat(@splat(0)),
        };
    }

    pub fn entry(node: *const Node, index: usize) Entry {
        return .{ .hash = node.hashes[index], .location = node.location(index) };
    }

    pub fn location(node: *const Node, index: usize) Location {
        return @bitCast(std.mem.readInt(u64, &node.locations[index], .little));
    }

    pub fn set(node: *Node, index: usize, new: Entry) void {
        assert(new.isZeros() == std.mem.eql(u8, &new.hash, &block.zero_hash));
        node.hashes[index] = new.hash;
        std.mem.writeInt(u64, &node.locations[index], @bitCast(new.location), .little);
    }

    pub fn isZeros(node: *const Node) bool {
        return block.isZeros(std.mem.asBytes(&node.locations));
    }

    pub fn hash(node: *const Node) Hash {
        var sha: base.Sha256 = .init(.{});
        sha.update(hash_prefix);
        sha.update(&.{node.level});
        sha.update(std.mem.asBytes(&node.hashes));
        return sha.finalResult();
    }

    /// Computes the checksum; call it before writing the node.
    pub fn seal(node: *Node) void {
        std.mem.writeInt(u64, &node.checksum, node.checksumOf(), .little);
    }

    /// Returns whether these bytes are the node with this hash, complete and as sealed.
    pub fn isSound(node: *const Node, expected: *const Hash, level: u8) bool {
        if (!std.mem.eql(u8, &node.magic, &magic)) return false;
        if (node.level != level) return false;
        if (simulated.has(.node_unchecked)) return true;
        if (std.mem.readInt(u64, &node.checksum, .little) != node.checksumOf()) return false;
        return std.mem.eql(u8, &node.hash(), expected);
    }

    fn checksumOf(node: *const Node) u64 {
        const bytes = std.mem.asBytes(node);
        const at = @offsetOf(Node, "checksum");
        var hasher: std.hash.XxHash64 = .init(checksum_seed);
        hasher.update(bytes[0..at]);
        hasher.update(bytes[at + 8 ..]);
        return hasher.final();
    }
};

/// Number of blocks below a node of this level; does not overflow for `level_max`.
pub fn blocksBelow(level: u8) u64 {
    assert(level <= level_max);
    return std.math.pow(u64, fanout, @as(u64, level) + 1);
}

/// Level of a disk's root: the lowest whose node covers all blocks.
pub fn rootLevel(block_count: u64) u8 {
    assert(block_count > 0);
    var level: u8 = 0;
    while (blocksBelow(level) < block_count) level += 1;
    return level;
}

const testing = std.testing;

test "the root of a disk covers all of its blocks" {
    try testing.expectEqual(0, rootLevel(1));
    try testing.expectEqual(0, rootLevel(102));
    try testing.expectEqual(1, rootLevel(103));
    try testing.expectEqual(3, rootLevel(25 << 20));
    try testing.expectEqual(level_max, rootLevel(std.math.maxInt(u64) / block.block_size));
}

test "every flipped bit of a node is found" {
    var node: Node = .empty(1);
    node.set(0, .{ .hash = @splat(7), .location = .{ .file = 1, .block = 9 } });
    node.set(101, .{ .hash = @splat(9), .location = .{ .file = 2, .block = 1 } });
    node.seal();
    const hash = node.hash();
    try testing.expect(node.isSound(&hash, 1));
    try testing.expect(!node.isSound(&hash, 0));
    const bytes = std.mem.asBytes(&node);
    for (0..bytes.len * 8) |bit| {
        const mask = @as(u8, 1) << @intCast(bit % 8);
        bytes[bit / 8] ^= mask;
        try testing.expect(!node.isSound(&hash, 1));
        bytes[bit / 8] ^= mask;
    }
}

test "the hash of a node does not depend on the locations of its blocks" {
    var one: Node = .empty(0);
    var other: Node = .empty(0);
    one.set(5, .{ .hash = @splat(7), .location = .{ .file = 1, .block = 9 } });
    other.set(5, .{ .hash = @splat(7), .location = .{ .file = 3, .block = 0 } });
    try testing.expectEqual(one.hash(), other.hash());
    other.set(5, .zeros);
    try testing.expect(other.isZeros());
    try testing.expect(!std.mem.eql(u8, &one.hash(), &other.hash()));
}
