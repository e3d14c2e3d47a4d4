//! What a simulated device may read: for each sector, the writes between the newest one that was
//! acknowledged before the read began and the newest one that was submitted before it ended.

const std = @import("std");
const content = @import("content.zig");
const StreamBoot = @import("boot.zig");

pub const StreamSectors = @This();

known: [StreamBoot.sectors_max]Sector,

/// Serial numbers (`StreamBoot.stampOf`) of the latest write submitted, acknowledged, and of the
/// latest discard.
const Sector = struct { submitted: u32 = 0, acknowledged: u32 = 0, discarded: u32 = 0 };

/// Forgets all writes.
pub fn clear(sectors: *StreamSectors) void {
    sectors.known = @splat(.{});
}

pub fn noteSubmitted(sectors: *StreamSectors, first: u32, count: u32, serial: u32) void {
    for (sectors.known[first..][0..count]) |*sector| {
        sector.submitted = serial;
        if (serial % 2 == 1) sector.discarded = serial;
    }
}

pub fn noteAcknowledged(sectors: *StreamSectors, first: u32, count: u32, serial: u32) void {
    for (sectors.known[first..][0..count]) |*sector|
        sector.acknowledged = @max(sector.acknowledged, serial);
}

/// Copies what a read that begins now must at least return.
pub fn copyFloors(sectors: *const StreamSectors, first: u32, floors: []u32) void {
    for (floors, sectors.known[first..][0..floors.len]) |*floor, *sector|
        floor.* = sector.acknowledged;
}

/// Returns whether a sector holds what may be there: nothing older than `floor`, and nothing newer
/// than what was submitted.
pub fn isRight(
    sectors: *const StreamSectors,
    boot: *const StreamBoot,
    bytes: *const [content.sector_size]u8,
    sector: u32,
    floor: u32,
) bool {
    const known = &sectors.known[sector];
    if (floor == known.submitted) return content.isFilled(bytes, sector, boot.stampOf(floor));
    // A write is in progress: each word may be old or new, and one on the border of two fragments
    // both.
    for (content.wordsOf(bytes), 0..) |word, index| {
        if (mayHold(known, boot, content.stampOf(word, sector, index), floor)) continue;
        var right_bytes: u64 = 0;
        var serial = floor;
        while (serial <= known.submitted) : (serial += 1) {
            const candidate = boot.stampOf(serial);
            if (mayHold(known, boot, candidate, floor))
                right_bytes |= content.equalBytes(word, candidate, sector, index);
        }
        if (right_bytes != std.math.maxInt(u64)) return false;
    }
    return true;
}

fn mayHold(known: *const Sector, boot: *const StreamBoot, stamp: u64, floor: u32) bool {
    if (stamp == content.zeros) return known.discarded > 0 and known.discarded >= floor;
    const serial: u32 = if (stamp == boot.stampOf(0)) 0 else @truncate(stamp);
    return stamp == boot.stampOf(serial) and serial >= floor and serial <= known.submitted;
}

const testing = std.testing;

test "only what was written since the read began, or is being written, may be read" {
    const boot: StreamBoot =
        .{ .number = 7, .writer = 7, .version = .{ .number = 1, .sectors = 64 } };
    var sectors: StreamSectors = undefined;
    sectors.clear();
    var floors: [1]u32 = undefined;
    var bytes: [content.sector_size]u8 = undefined;
    sectors.noteSubmitted(9, 1, 2);
    sectors.noteAcknowledged(9, 1, 2);
    sectors.copyFloors(9, &floors);
    content.fillSector(&bytes, 9, boot.stampOf(2));
    try testing.expect(sectors.isRight(&boot, &bytes, 9, floors[0]));
    sectors.noteSubmitted(9, 1, 4);
    var newer: [content.sector_size]u8 = undefined;
    content.fillSector(&newer, 9, boot.stampOf(4));
    try testing.expect(sectors.isRight(&boot, &newer, 9, floors[0]));
    // The fragment that was read before the write ends within a word.
    @memcpy(newer[0..99], bytes[0..99]);
    try testing.expect(sectors.isRight(&boot, &newer, 9, floors[0]));
    content.fillSector(&bytes, 9, boot.stampOf(0));
    try testing.expect(!sectors.isRight(&boot, &bytes, 9, floors[0]));
    @memset(&bytes, 0);
    try testing.expect(!sectors.isRight(&boot, &bytes, 9, floors[0]));
    sectors.noteSubmitted(9, 1, 7);
    try testing.expect(sectors.isRight(&boot, &bytes, 9, floors[0]));
}
