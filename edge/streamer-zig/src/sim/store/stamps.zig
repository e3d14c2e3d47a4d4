//! The bytes of a sector in the store's model: a stamp fills it, so that every byte tells of which
//! write it is. A third of the stamps fill it with noise, which no codec makes smaller: packed
//! units take from one to many sectors.

const std = @import("std");

pub const sector_size = 512;
pub const Sector = [sector_size]u8;
const words = sector_size / 8;

const noise_flag = 1 << 63;

/// Fills whole sectors; `first` is the number of the first one on its disk.
pub fn fill(bytes: []u8, stamp: u64, first: u64) void {
    for (0..bytes.len / sector_size) |index|
        fillSector(bytes[index * sector_size ..][0..sector_size], stamp, first + index);
}

fn fillSector(sector: *Sector, stamp: u64, number: u64) void {
    std.debug.assert(stamp < noise_flag);
    for (0..words) |index| setWord(sector, index, wordOf(stamp, number, index));
}

fn wordOf(stamp: u64, number: u64, index: usize) u64 {
    if (stamp % 3 != 1) return stamp;
    return switch (index) {
        0 => stamp | noise_flag,
        1 => number,
        else => blk: {
            // splitmix64
            var z = (stamp *% 0x9e37_79b9_7f4a_7c15) ^ (number << 7 | index);
            z = (z ^ (z >> 30)) *% 0xbf58_476d_1ce4_e5b9;
            z = (z ^ (z >> 27)) *% 0x94d0_49bb_1331_11eb;
            break :blk z ^ (z >> 31);
        },
    };
}

/// The stamp that fills a sector; null if it is mixed.
pub fn stampOf(sector: *const Sector) ?u64 {
    const first = wordAt(sector, 0);
    const stamp = first & ~@as(u64, noise_flag);
    if (first != stamp and stamp % 3 != 1) return null;
    const number = wordAt(sector, 1);
    var differences: u64 = 0;
    for (0..words) |index| differences |= wordAt(sector, index) ^ wordOf(stamp, number, index);
    return if (differences == 0) stamp else null;
}

fn wordAt(sector: *const Sector, index: usize) u64 {
    return std.mem.readInt(u64, sector[index * 8 ..][0..8], .little);
}

fn setWord(sector: *Sector, index: usize, word: u64) void {
    std.mem.writeInt(u64, sector[index * 8 ..][0..8], word, .little);
}

const testing = std.testing;

test "a sector tells its stamp, and whether it has bytes of two" {
    var sector: Sector = undefined;
    for ([_]u64{ 0, 1, 2, 3, 4, 1 << 40 }) |stamp| {
        fill(&sector, stamp, 77);
        try testing.expectEqual(stamp, stampOf(&sector));
        for ([_]usize{ 0, 8, 300, 511 }) |at| {
            sector[at] ^= 1;
            const found = stampOf(&sector);
            try testing.expect(found == null or found.? != stamp);
            sector[at] ^= 1;
        }
    }
}
