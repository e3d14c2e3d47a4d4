//! Units: up to eight neighbouring blocks of a disk, packed into one LZ4 block. A unit that does
//! not shrink by an eighth is not stored as one: its blocks are stored as they are.
//!
//! A unit takes whole sectors of 512 bytes of an extent file, at least one for each of its blocks,
//! so that each block has a number of its own there (`tree/location_map.zig`). It begins with the
//! size of its packed bytes, the number of its blocks, its codec, and a checksum of all of this.
//! The tree says where it lies and which of its blocks is meant, and has the hash of each block.
//!
//! A unit that was damaged and repaired (unit_repair.zig) may lack blocks, and tells which.

const std = @import("std");
const block = @import("block.zig");
const lz4 = @import("codec").lz4;
const simulated = @import("simulated.zig");
const assert = std.debug.assert;

const Location = block.Location;
const Place = Location.Place;

pub const blocks_max = 8;
/// Bytes of the blocks of the largest unit.
pub const raw_size_max = blocks_max * block.block_size;
/// Bytes of the largest unit on the disk.
pub const stored_size_max = raw_size_max - raw_size_max / saved_part;
const saved_part = 8;

pub const header_size = 8;
const sector_size = block.unit_sector_size;
const checksum_seed = 0x62_66_75_31;

/// Others would be unknown to this program.
const codec_lz4 = 1;
/// A byte with a bit for each block that the unit lacks, and an LZ4 block of the others.
const codec_lz4_part = 2;
/// As `codec_lz4`; no packer of this program makes it smaller.
const codec_lz4_small = 3;

/// Of a unit, from bit 0 on.
pub const BlockSet = u8;

pub fn allOf(count: usize) BlockSet {
    assert(count > 0 and count <= blocks_max);
    return @intCast((@as(u16, 1) << @intCast(count)) - 1);
}

comptime {
    assert(blocks_max == std.math.maxInt(@FieldType(Place, "index")) + 1);
    assert(stored_size_max / sector_size <= std.math.maxInt(@FieldType(Place, "last_sector")) + 1);
}

/// How much time the packing of a unit may take.
pub const Packer = union(enum) {
    quick: *lz4.Table,
    /// About twenty times as long, for an eighth less.
    small: *lz4.Search,
};

/// Earlier places that `small` compares at each byte.
const search_depth = 8;

pub const Stored = [stored_size_max]u8;

/// Packs whole blocks. Returns the unit's bytes, in whole sectors, or null if they are not worth
/// it.
pub fn pack(packer: Packer, into: *Stored, raw: []const u8) ?[]const u8 {
    assert(raw.len > 0 and raw.len <= raw_size_max and raw.len % block.block_size == 0);
    const room = into[header_size .. raw.len - raw.len / saved_part];
    const packed_size = pressed(packer, room, raw) orelse return null;
    const count = raw.len / block.block_size;
    const used = header_size + packed_size;
    putHeader(into, .{ .packed_size = packed_size, .count = count, .codec = codecOf(packer) });
    const size = @max(std.mem.alignForward(usize, used, sector_size), count * sector_size);
    @memset(into[used..size], 0);
    return into[0..size];
}

/// Packs a unit into the place that it had, without the blocks that are `absent`. Returns false if
/// it does not fit.
pub fn packAgain(packer: Packer, place: []u8, raw: []const u8, absent: BlockSet) bool {
    const count = raw.len / block.block_size;
    assert(absent & ~allOf(count) == 0 and absent != allOf(count));
    assert(place.len % sector_size == 0 and place.len <= stored_size_max);
    var together: [raw_size_max]u8 = undefined;
    var size: usize = 0;
    for (0..count) |index| {
        if (isIn(absent, index)) continue;
        @memcpy(
            together[size..][0..block.block_size],
            raw[index * block.block_size ..][0..block.block_size],
        );
        size += block.block_size;
    }
    const before: usize = @intFromBool(absent != 0);
    place[header_size] = absent;
    const room = place[header_size + before ..];
    const packed_size = before + (pressed(packer, room, together[0..size]) orelse return false);
    putHeader(place, .{
        .packed_size = packed_size,
        .count = count,
        .codec = if (absent == 0) codecOf(packer) else codec_lz4_part,
    });
    @memset(place[header_size + packed_size ..], 0);
    return true;
}

fn pressed(packer: Packer, room: []u8, raw: []const u8) ?usize {
    return switch (packer) {
        .quick => |table| lz4.pack(table, room, raw),
        .small => |search| lz4.packSmall(search, room, raw, search_depth),
    };
}

fn codecOf(packer: Packer) u8 {
    return switch (packer) {
        .quick => codec_lz4,
        .small => codec_lz4_small,
    };
}

const Header = struct { packed_size: usize, count: usize, codec: u8 };

fn putHeader(stored: []u8, header: Header) void {
    std.mem.writeInt(u16, stored[0..2], @intCast(header.packed_size), .little);
    stored[2] = @intCast(header.count);
    stored[3] = header.codec;
    sum(stored);
}

pub fn isIn(set: BlockSet, index: usize) bool {
    return set >> @intCast(index) & 1 == 1;
}

/// Fills `raw` with the blocks of a unit. Any other bytes are refused. Returns the blocks that the
/// unit lacks: they are zeros in `raw`, and nobody may get them.
pub fn unpack(raw: []u8, stored: []const u8) error{Damaged}!BlockSet {
    const count = raw.len / block.block_size;
    const bytes = try intactBytes(stored, count);
    const absent: BlockSet = switch (stored[3]) {
        codec_lz4, codec_lz4_small => {
            lz4.unpack(raw, bytes) catch return error.Damaged;
            return 0;
        },
        codec_lz4_part => if (bytes.len > 0) bytes[0] else return error.Damaged,
        else => return error.Damaged,
    };
    if (absent == 0 or absent & ~allOf(count) != 0 or absent == allOf(count)) return error.Damaged;
    var left = count - @popCount(absent);
    lz4.unpack(raw[0 .. left * block.block_size], bytes[1..]) catch return error.Damaged;
    // They lie together; from the last on, each moves behind those that are left.
    var index = count;
    while (index > 0) {
        index -= 1;
        const to = raw[index * block.block_size ..][0..block.block_size];
        if (isIn(absent, index)) {
            @memset(to, 0);
            continue;
        }
        left -= 1;
        if (left != index) @memcpy(to, raw[left * block.block_size ..][0..block.block_size]);
    }
    assert(left == 0);
    return absent;
}

/// Like `unpack`, for the first blocks of a unit alone. Those behind them count as lacking.
pub fn unpackStart(raw: []u8, stored: []const u8, wanted: usize) error{Damaged}!BlockSet {
    const count = raw.len / block.block_size;
    assert(wanted > 0 and wanted <= count);
    const bytes = try intactBytes(stored, count);
    const is_whole = stored[3] == codec_lz4 or stored[3] == codec_lz4_small;
    if (!is_whole or wanted == count) return unpack(raw, stored);
    lz4.unpackStart(raw, bytes, wanted * block.block_size) catch return error.Damaged;
    return allOf(count) & ~allOf(wanted);
}

/// Returns the LZ4 block of an intact unit of so many blocks, none of which it lacks.
pub fn packedBytes(stored: []const u8, blocks: usize) error{Damaged}![]const u8 {
    const bytes = try intactBytes(stored, blocks);
    return switch (stored[3]) {
        codec_lz4, codec_lz4_small => bytes,
        else => error.Damaged,
    };
}

/// Returns whether a unit with this header was packed small.
pub fn isSmall(header: *const [header_size]u8) bool {
    return header[3] == codec_lz4_small;
}

fn intactBytes(stored: []const u8, blocks: usize) error{Damaged}![]const u8 {
    assert(stored.len >= sector_size);
    const used = header_size + @as(usize, std.mem.readInt(u16, stored[0..2], .little));
    if (used > stored.len or stored[2] != blocks) return error.Damaged;
    const is_intact = std.mem.readInt(u32, stored[4..8], .little) == checksum(stored[0..used]);
    if (!is_intact and !simulated.has(.unit_unchecked)) return error.Damaged;
    return stored[header_size..used];
}

/// Sets the checksum of a unit, whose header may be of any size.
pub fn sum(stored: []u8) void {
    const used = header_size + @as(usize, std.mem.readInt(u16, stored[0..2], .little));
    const found = checksum(stored[0..@min(used, stored.len)]);
    std.mem.writeInt(u32, stored[4..8], found, .little);
}

/// Of the header without the checksum itself, and the packed bytes.
fn checksum(used: []const u8) u32 {
    var hasher: std.hash.XxHash64 = .init(checksum_seed);
    hasher.update(used[0..4]);
    hasher.update(used[header_size..]);
    return @truncate(hasher.final());
}

/// Returns the location of a block of a unit that was stored at this sector of a file.
pub fn locationOf(
    file: block.FileNumber,
    sector: u28,
    size: usize,
    blocks: usize,
    index: usize,
) Location {
    assert(size % sector_size == 0 and index < blocks);
    return .{ .file = file, .is_packed = true, .block = @bitCast(Place{
        .index = @intCast(index),
        .last = @intCast(blocks - 1),
        .last_sector = @intCast(size / sector_size - 1),
        .sector = sector,
    }) };
}

/// Returns whether a location can be that of a unit that `pack` has made.
pub fn isPossible(location: Location) bool {
    const place = location.place();
    return place.index <= place.last and place.last <= place.last_sector and
        location.storedSize() <= stored_size_max;
}

const testing = std.testing;

const Fixture = struct {
    table: *lz4.Table,
    search: *lz4.Search,
    prng: std.Random.DefaultPrng = .init(1),

    fn init() !Fixture {
        return .{
            .table = try testing.allocator.create(lz4.Table),
            .search = try testing.allocator.create(lz4.Search),
        };
    }

    fn deinit(fixture: *Fixture) void {
        testing.allocator.destroy(fixture.table);
        testing.allocator.destroy(fixture.search);
    }

    /// Random bytes in a part of each block, and letters in the rest.
    fn fill(fixture: *Fixture, raw: []u8, random_part: usize) void {
        const random = fixture.prng.random();
        var at: usize = 0;
        while (at < raw.len) : (at += block.block_size) {
            random.bytes(raw[at..][0..random_part]);
            for (raw[at + random_part ..][0 .. block.block_size - random_part]) |*byte|
                byte.* = 'a' + random.uintLessThan(u8, 3);
        }
    }
};

test "a unit is unpacked to its blocks, takes a sector for each, and is refused if it saves too little" {
    var fixture: Fixture = try .init();
    defer fixture.deinit();
    var raw: [raw_size_max]u8 = undefined;
    var back: [raw_size_max]u8 = undefined;
    var stored: Stored = undefined;
    for (1..blocks_max + 1) |count| {
        const blocks = raw[0 .. count * block.block_size];
        for ([_]Packer{ .{ .quick = fixture.table }, .{ .small = fixture.search } }) |packer| {
            for ([_]usize{ 0, 1000, 1500 }) |random_part| {
                fixture.fill(blocks, random_part);
                const unit = pack(packer, &stored, blocks).?;
                try testing.expectEqual(0, unit.len % sector_size);
                try testing.expect(unit.len >= count * sector_size);
                try testing.expect(unit.len <= blocks.len - blocks.len / saved_part);
                try testing.expect(unit.len >= count * random_part);
                try testing.expectEqual(packer == .small, isSmall(unit[0..header_size]));
                try testing.expectEqual(0, try unpack(back[0..blocks.len], unit));
                try testing.expectEqualSlices(u8, blocks, back[0..blocks.len]);
                if (count > 1) try testing.expectError(
                    error.Damaged,
                    unpack(back[0 .. blocks.len - block.block_size], unit),
                );
            }
            fixture.fill(blocks, 4000);
            try testing.expectEqual(null, pack(packer, &stored, blocks));
            // Blocks of one byte take the smallest unit.
            @memset(blocks, 'x');
            try testing.expectEqual(count * sector_size, pack(packer, &stored, blocks).?.len);
        }
    }
}

test "a unit that lacks blocks has the others, tells which, and its bytes are not a whole unit's" {
    var fixture: Fixture = try .init();
    defer fixture.deinit();
    var raw: [raw_size_max]u8 = undefined;
    var back: [raw_size_max]u8 = undefined;
    var stored: Stored = undefined;
    var again: Stored = undefined;
    for (1..blocks_max + 1) |count| {
        const blocks = raw[0 .. count * block.block_size];
        fixture.fill(blocks, 300);
        const whole = pack(.{ .quick = fixture.table }, &stored, blocks).?;
        const place = again[0..whole.len];
        for (0..allOf(count)) |set| {
            const absent: BlockSet = @intCast(set);
            const packer: Packer = if (set % 2 == 0)
                .{ .quick = fixture.table }
            else
                .{ .small = fixture.search };
            try testing.expect(packAgain(packer, place, blocks, absent));
            try testing.expectEqual(absent, try unpack(back[0..blocks.len], place));
            for (0..count) |index| {
                const begin, const end =
                    .{ index * block.block_size, (index + 1) * block.block_size };
                if (isIn(absent, index))
                    try testing.expect(block.isZeros(back[begin..end]))
                else
                    try testing.expectEqualSlices(u8, raw[begin..end], back[begin..end]);
            }
            if (absent == 0)
                try testing.expectEqualSlices(u8, whole, place)
            else
                try testing.expectError(error.Damaged, packedBytes(place, count));
        }
    }
    // Noise has no place here.
    fixture.fill(&raw, block.block_size);
    try testing.expect(!packAgain(.{ .quick = fixture.table }, again[0..4096], &raw, 1));
}

test "every flipped bit of a unit is found, and no hostile unit is read beyond its end" {
    var fixture: Fixture = try .init();
    defer fixture.deinit();
    var raw: [2 * block.block_size]u8 = undefined;
    var back: [raw.len]u8 = undefined;
    fixture.fill(&raw, 200);
    var stored: Stored = undefined;
    const size = pack(.{ .quick = fixture.table }, &stored, &raw).?.len;
    const unit = stored[0..size];
    const used = header_size + @as(usize, std.mem.readInt(u16, stored[0..2], .little));
    for (0..used * 8) |bit| {
        const mask = @as(u8, 1) << @intCast(bit % 8);
        unit[bit / 8] ^= mask;
        try testing.expectError(error.Damaged, unpack(&back, unit));
        unit[bit / 8] ^= mask;
    }
    const random = fixture.prng.random();
    for (0..20_000) |_| {
        var hostile: [3 * sector_size]u8 = undefined;
        random.bytes(&hostile);
        const packed_size = random.uintAtMost(u16, hostile.len);
        std.mem.writeInt(u16, hostile[0..2], packed_size, .little);
        hostile[2] = 2;
        const codecs = [_]u8{ codec_lz4, codec_lz4_part, codec_lz4_small };
        hostile[3] = codecs[random.uintLessThan(usize, codecs.len)];
        sum(&hostile);
        try testing.expectError(error.Damaged, unpack(&back, &hostile));
    }
}

test "a location says where its unit is, and an impossible one is told" {
    const location = locationOf(3, 70_000, 9 * sector_size, 8, 5);
    try testing.expectEqual(70_000 * sector_size, location.offset());
    try testing.expectEqual(9 * sector_size, location.storedSize());
    try testing.expect(isPossible(location));
    const Case = struct { index: u3 = 0, last: u3 = 7, last_sector: u6 = 7 };
    for ([_]Case{
        .{ .index = 6, .last = 5 },
        .{ .last_sector = 6 },
        .{ .last_sector = stored_size_max / sector_size },
    }) |case| {
        const place: Place = .{
            .index = case.index,
            .last = case.last,
            .last_sector = case.last_sector,
            .sector = 1,
        };
        try testing.expect(
            !isPossible(.{ .file = 1, .is_packed = true, .block = @bitCast(place) }),
        );
    }
}
