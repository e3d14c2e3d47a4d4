//! The contents of simulated disks: every word of a sector is computed from the stamp of its
//! writer, and every second one from the sector's number and the word's index, too, so that bytes
//! of another place, device or time are found. The other words repeat: packing shrinks them.

const std = @import("std");

pub const sector_size = 512;
const word_count = sector_size / 8;
const lane_count = 8;
const Lanes = @Vector(lane_count, u64);
const Sector = [word_count / lane_count]Lanes;

const sector_factor: u64 = 0x9e3779b97f4a7c15;
const word_step: u64 = 0xd6e8feb86659fd93;
/// Of the words that repeat.
const repeated_key: u64 = 0xa0761d6478bd642f;
const first_lanes: Lanes = blk: {
    var lanes: [lane_count]u64 = undefined;
    for (&lanes, 0..) |*lane, index| lane.* = keyOf(0, index);
    break :blk lanes;
};
const lanes_step: Lanes = ofPlaces(@as(u64, lane_count) *% word_step);

/// `value` in the lanes of words that depend on their place.
fn ofPlaces(value: u64) Lanes {
    return @as(Lanes, @splat(value)) & Lanes{ ones, 0, ones, 0, ones, 0, ones, 0 };
}

const ones = std.math.maxInt(u64);

/// Stamp of a discarded sector, which holds zeros.
pub const zeros: u64 = 0;

pub fn fillSector(out: *[sector_size]u8, sector: u64, stamp: u64) void {
    if (stamp == zeros) return @memset(out, 0);
    const chunks: *align(1) Sector = @ptrCast(out);
    var key = first_lanes +% ofPlaces(sector *% sector_factor);
    const stamps: Lanes = @splat(stamp);
    for (chunks) |*chunk| {
        chunk.* = key ^ stamps;
        key +%= lanes_step;
    }
}

pub fn isFilled(bytes: *const [sector_size]u8, sector: u64, stamp: u64) bool {
    if (stamp == zeros) return std.mem.allEqual(u8, bytes, 0);
    const chunks: *align(1) const Sector = @ptrCast(bytes);
    var key = first_lanes +% ofPlaces(sector *% sector_factor);
    const stamps: Lanes = @splat(stamp);
    var wrong: Lanes = @splat(0);
    for (chunks) |*chunk| {
        wrong |= chunk.* ^ key ^ stamps;
        key +%= lanes_step;
    }
    return @reduce(.Or, wrong) == 0;
}

pub fn wordsOf(bytes: *const [sector_size]u8) [word_count]u64 {
    var words: [word_count]u64 = undefined;
    for (&words, 0..) |*word, index|
        word.* = std.mem.readInt(u64, bytes[index * 8 ..][0..8], .little);
    return words;
}

/// Returns the stamp of a word; `zeros` if it is 0.
pub fn stampOf(word: u64, sector: u64, index: usize) u64 {
    return if (word == 0) zeros else word ^ keyOf(sector, index);
}

fn keyOf(sector: u64, index: usize) u64 {
    if (index % 2 == 1) return repeated_key;
    return (@as(u64, index) + 1) *% word_step +% sector *% sector_factor;
}

/// Returns all ones in each byte of `word` that has the value of this stamp.
pub fn equalBytes(word: u64, stamp: u64, sector: u64, index: usize) u64 {
    const wrong = word ^ if (stamp == zeros) 0 else keyOf(sector, index) ^ stamp;
    var equal: u64 = 0;
    for (0..8) |byte| {
        const mask = @as(u64, 0xff) << @intCast(byte * 8);
        if (wrong & mask == 0) equal |= mask;
    }
    return equal;
}

/// Fills `out` with the bytes of a disk from `offset` on; `source.stampAt(sector)` names the
/// writer.
pub fn fill(source: anytype, offset: u64, out: []u8) void {
    var done: usize = 0;
    while (done < out.len) {
        const at = offset + done;
        const sector = at / sector_size;
        const skipped: usize = @intCast(at % sector_size);
        const length = @min(sector_size - skipped, out.len - done);
        if (length == sector_size) {
            fillSector(out[done..][0..sector_size], sector, source.stampAt(sector));
        } else {
            var whole: [sector_size]u8 = undefined;
            fillSector(&whole, sector, source.stampAt(sector));
            @memcpy(out[done..][0..length], whole[skipped..][0..length]);
        }
        done += length;
    }
}

const testing = std.testing;

test "any part of a disk has the same bytes, and a sector reveals its stamp" {
    const Source = struct {
        fn stampAt(_: @This(), sector: u64) u64 {
            return if (sector == 2) zeros else 1000 + sector;
        }
    };
    var whole: [8 * sector_size]u8 = undefined;
    fill(Source{}, 0, &whole);
    var part: [1440]u8 = undefined;
    fill(Source{}, 700, &part);
    try testing.expectEqualSlices(u8, whole[700..][0..1440], &part);
    try testing.expect(isFilled(whole[sector_size..][0..sector_size], 1, 1001));
    try testing.expect(!isFilled(whole[sector_size..][0..sector_size], 2, 1001));
    try testing.expect(!isFilled(whole[sector_size..][0..sector_size], 1, 1002));
    try testing.expect(isFilled(whole[2 * sector_size ..][0..sector_size], 2, zeros));
    const words = wordsOf(whole[3 * sector_size ..][0..sector_size]);
    for (words, 0..) |word, index| try testing.expectEqual(1003, stampOf(word, 3, index));
    try testing.expectEqual(std.math.maxInt(u64), equalBytes(words[5], 1003, 3, 5));
    try testing.expectEqual(0xff, equalBytes(words[5] ^ 0xff00, 1003, 3, 5) & 0xffff);
}
