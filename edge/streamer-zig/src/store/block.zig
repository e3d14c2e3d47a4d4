//! Blocks: a disk in the store consists of blocks of 4 KiB, each with its SHA-256 and a location in
//! one of the store's files. A block of zeros has no location and no hash.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const block_size = 4096;
pub const Block = [block_size]u8;

/// SHA-256 of a block's 4096 bytes, or of a node (`tree/node.zig`); all zeros stand for zeros.
pub const Hash = [32]u8;
pub const zero_hash: Hash = @splat(0);

/// Number of a file of the store, from 1.
pub const FileNumber = u23;

/// Location of a block or a node: a file of its kind, and the index of 4 KiB in it. A block may
/// also be in a packed unit (unit.zig). Offsets are never reused, so a location always has the same
/// bytes.
pub const Location = packed struct(u64) {
    /// In a packed unit the bits of a `Place`.
    block: u40,
    /// 0 means none.
    file: FileNumber,
    is_packed: bool = false,

    pub const none: Location = .{ .block = 0, .file = 0 };

    /// A block in a packed unit.
    pub const Place = packed struct(u40) {
        /// Index of the block in the unit.
        index: u3,
        /// Blocks of the unit, minus one.
        last: u3,
        /// Sectors of 512 bytes that the unit takes, minus one.
        last_sector: u6,
        /// Where the unit begins in the file, in sectors.
        sector: u28,
    };

    pub fn isNone(location: Location) bool {
        return location.file == 0;
    }

    pub fn place(location: Location) Place {
        assert(location.is_packed);
        return @bitCast(location.block);
    }

    /// Returns the location `count` blocks later in the same file. Not of a packed block.
    pub fn plus(location: Location, count: u40) Location {
        assert(!location.is_packed);
        return .{ .block = location.block + count, .file = location.file };
    }

    /// Bytes from the start of its file; of a packed block, those of its unit.
    pub fn offset(location: Location) u64 {
        if (location.is_packed) return @as(u64, location.place().sector) * unit_sector_size;
        return @as(u64, location.block) * block_size;
    }

    /// Bytes to read for the block: all of its unit if it is packed.
    pub fn storedSize(location: Location) usize {
        if (!location.is_packed) return block_size;
        return (@as(usize, location.place().last_sector) + 1) * unit_sector_size;
    }

    /// Returns the unit of a packed block: the location of its first block.
    pub fn unit(location: Location) Location {
        var first = location.place();
        first.index = 0;
        return .{ .block = @bitCast(first), .file = location.file, .is_packed = true };
    }

    pub fn eql(a: Location, b: Location) bool {
        return @as(u64, @bitCast(a)) == @as(u64, @bitCast(b));
    }
};

/// Units are stored in sectors: fine enough to save nearly all that packing saves.
pub const unit_sector_size = 512;

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
    const last: Location = .{
        .file = std.math.maxInt(FileNumber),
        .block = std.math.maxInt(u40),
        .is_packed = true,
    };
    try testing.expectEqual(std.math.maxInt(u64), @as(u64, @bitCast(last)));
    try testing.expect(Location.none.isNone());
    const place: Location = .{ .file = 1, .block = 7 };
    try testing.expect(place.plus(2).eql(.{ .file = 1, .block = 9 }));
    try testing.expectEqual(7 * 4096, place.offset());
}

test "the location of a packed block has its unit, and its index in it" {
    const packed_block: Location = .{
        .file = 5,
        .block = @bitCast(Location.Place{ .index = 3, .last = 6, .last_sector = 19, .sector = 9 }),
        .is_packed = true,
    };
    try testing.expectEqual(9 * 512, packed_block.offset());
    try testing.expectEqual(20 * 512, packed_block.storedSize());
    try testing.expectEqual(0, packed_block.unit().place().index);
    try testing.expectEqual(6, packed_block.unit().place().last);
    try testing.expect(!packed_block.eql(packed_block.unit()));
    // The bits of a location on the disk.
    try testing.expectEqual(
        (1 << 63) | (5 << 40) | (9 << 12) | (19 << 6) | (6 << 3) | 3,
        @as(u64, @bitCast(packed_block)),
    );
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
