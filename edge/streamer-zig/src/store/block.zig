//! Blocks: a disk in the store consists of blocks of 4 KiB, each with its SHA-256 and a location in
//! one of the store's files. A block of zeros has no location and no hash.

const std = @import("std");
const base = @import("base");

pub const block_size = 4096;
pub const Block = [block_size]u8;

/// SHA-256 of a block's 4096 bytes, or of a node (`tree/node.zig`); all zeros stand for zeros.
pub const Hash = [32]u8;
pub const zero_hash: Hash = @splat(0);

/// Location of a block or a node: a file of its kind, and the index of 4 KiB in it. Offsets are
/// never reused, so a location always has the same bytes.
pub const Location = packed struct(u64) {
    block: u40,
    /// From 1; 0 means none.
    file: u24,

    pub const none: Location = .{ .block = 0, .file = 0 };

    pub fn isNone(location: Location) bool {
        return location.file == 0;
    }

    /// Returns the location `count` blocks later in the same file.
    pub fn plus(location: Location, count: u40) Location {
        return .{ .block = location.block + count, .file = location.file };
    }

    /// Bytes from the start of its file.
    pub fn offset(location: Location) u64 {
        return @as(u64, location.block) * block_size;
    }

    pub fn eql(a: Location, b: Location) bool {
        return a.file == b.file and a.block == b.block;
    }
};

/// A reference to a block or a node, as stored in the node above.
pub const Entry = struct {
    hash: Hash,
    location: Location,

    pub const zeros: Entry = .{ .hash = zero_hash, .location = .none };

    pub fn isZeros(entry: *const Entry) bool {
        return entry.location.isNone();
    }
};

pub fn hashOf(bytes: *const Block) Hash {
    var hash: Hash = undefined;
    base.Sha256.hash(bytes, &hash, .{});
    return hash;
}

/// Hashes consecutive blocks; faster than one call each.
pub fn hashAll(bytes: []const u8, hashes: []Hash) void {
    base.Sha256.hashEqual(block_size, bytes, hashes);
}

pub fn isZeros(bytes: []const u8) bool {
    return std.mem.allEqual(u8, bytes, 0);
}

pub fn blockCount(disk_size: u64) u64 {
    return std.math.divCeil(u64, disk_size, block_size) catch unreachable;
}

const testing = std.testing;

test "a location packs file and block into one number" {
    const last: Location = .{ .file = std.math.maxInt(u24), .block = std.math.maxInt(u40) };
    try testing.expectEqual(std.math.maxInt(u64), @as(u64, @bitCast(last)));
    try testing.expect(Location.none.isNone());
    const place: Location = .{ .file = 1, .block = 7 };
    try testing.expect(place.plus(2).eql(.{ .file = 1, .block = 9 }));
    try testing.expectEqual(7 * 4096, place.offset());
}

test "the hash of a block is its SHA-256" {
    const block: Block = @splat('a');
    var expected: Hash = undefined;
    _ = try std.fmt.hexToBytes(
        &expected,
        "c93eee2d0db02f10acc7460d9576e122dcf8cd53c4bf8dfcae1b3e74ebcfff5a",
    );
    try testing.expectEqual(expected, hashOf(&block));
}
