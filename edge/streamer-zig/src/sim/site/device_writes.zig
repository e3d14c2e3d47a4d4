//! What a simulated device writes to its disk, and what it may read there afterwards: what was
//! acknowledged last, or what may have been written since. Blocks lie where the device reads in
//! each boot, so that every boot looks at what earlier ones have written.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Disk = @import("disk.zig");
const assert = std.debug.assert;

pub const DeviceWrites = @This();

pub const block_size = 4096;
pub const blocks_max = 16;
const sector_size = 512;
/// Values of a block that were overwritten while reads of it were in progress.
const earlier_max = 32;
/// Unacknowledged writes of a block; a block with so many is not written any more.
const unsure_max = 8;

device: u8,
blocks: base.BoundedArray(Block, blocks_max) = .empty,
buffers: [blocks_max][block_size]u8 = undefined,
serial: u32 = 0,
acknowledged: u64 = 0,

const Block = struct {
    offset: u64,
    /// Serial of the write that was acknowledged last; 0: the version's own bytes.
    serial: u32 = 0,
    in_flight: ?u32 = null,
    /// Writes that were not acknowledged before their boot ended.
    unsure: base.BoundedArray(u32, unsure_max) = .empty,
    /// Overwritten values, and until when each one was the latest.
    earlier: [earlier_max]struct { serial: u32, until_us: u64 } =
        @splat(.{ .serial = 0, .until_us = 0 }),
    earlier_count: u32 = 0,

    fn noteEarlier(block: *Block, serial: u32, until_us: u64) void {
        block.earlier[block.earlier_count % earlier_max] =
            .{ .serial = serial, .until_us = until_us };
        block.earlier_count += 1;
    }

    /// Returns whether a read that was requested at this time may get this value.
    fn mayHold(block: *const Block, serial: u32, asked_at_us: u64) bool {
        if (serial == block.serial) return true;
        if (block.in_flight) |number| if (serial == number) return true;
        for (block.unsure.constSlice()) |number| if (serial == number) return true;
        for (block.earlier[0..@min(block.earlier_count, earlier_max)]) |value|
            if (serial == value.serial and asked_at_us <= value.until_us) return true;
        return false;
    }
};

/// Chooses the blocks among those that the device reads.
pub fn init(device: u8, reads: []const core.device.read_trace.Read, disk_size: u64) DeviceWrites {
    var writes: DeviceWrites = .{ .device = device };
    for (reads) |read| {
        const offset = std.mem.alignBackward(u64, read.offset, block_size);
        if (offset + block_size > disk_size or writes.find(offset) != null) continue;
        writes.blocks.append(.{ .offset = offset }) catch break;
    }
    return writes;
}

fn find(writes: *const DeviceWrites, offset: u64) ?*const Block {
    for (writes.blocks.constSlice()) |*block| if (block.offset == offset) return block;
    return null;
}

pub const Write = struct { tag: u64, offset: u64, bytes: []const u8 };

/// Returns the next write; null: each block has one in progress.
pub fn next(writes: *DeviceWrites, prng: *base.Prng) ?Write {
    if (writes.blocks.count == 0) return null;
    const index: usize = @intCast(prng.below(writes.blocks.count));
    const block = &writes.blocks.buffer[index];
    if (block.in_flight != null or block.unsure.count == unsure_max) return null;
    writes.serial += 1;
    block.in_flight = writes.serial;
    const bytes = &writes.buffers[index];
    Disk.fill(writes.contentOf(writes.serial), block.offset, bytes);
    return .{ .tag = index, .offset = block.offset, .bytes = bytes };
}

/// Takes back a write that the client refused.
pub fn takeBack(writes: *DeviceWrites, tag: u64) void {
    writes.blocks.buffer[@intCast(tag)].in_flight = null;
}

pub fn end(writes: *DeviceWrites, now_us: u64, tag: u64, is_done: bool) void {
    const block = &writes.blocks.buffer[@intCast(tag)];
    const serial = block.in_flight.?;
    block.in_flight = null;
    if (!is_done) return block.unsure.append(serial) catch unreachable;
    block.noteEarlier(block.serial, now_us);
    for (block.unsure.constSlice()) |number| block.noteEarlier(number, now_us);
    block.serial = serial;
    block.unsure = .empty;
    writes.acknowledged += 1;
}

/// Ends the boot, whose writes stay where they outlive it.
pub fn endBoot(writes: *DeviceWrites, stay: bool) void {
    for (writes.blocks.slice()) |*block| {
        if (block.in_flight) |serial| block.unsure.append(serial) catch unreachable;
        block.in_flight = null;
        block.earlier_count = 0;
        if (!stay) block.* = .{ .offset = block.offset };
    }
}

/// Returns where the bytes begin to differ from every possible content; null: nowhere.
pub fn firstDifference(
    writes: *const DeviceWrites,
    version: Disk.Version,
    asked_at_us: u64,
    offset: u64,
    bytes: []const u8,
) ?u64 {
    assert(offset % sector_size == 0 and bytes.len % sector_size == 0);
    var at: u64 = 0;
    while (at < bytes.len) {
        const position = offset + at;
        const block_begin = std.mem.alignBackward(u64, position, block_size);
        const size = @min(bytes.len - at, block_begin + block_size - position);
        const part = bytes[@intCast(at)..][0..@intCast(size)];
        at += size;
        if (Disk.firstDifference(version, position, part)) |wrong| {
            const block = writes.find(block_begin) orelse return wrong;
            if (writes.wrongSector(block, version, asked_at_us, position, part)) |sector|
                return sector;
        } else if (writes.find(block_begin)) |block|
            if (!block.mayHold(0, asked_at_us)) return position;
    }
    return null;
}

/// An interrupted write may have changed some sectors of its block. A read during a write may have
/// fragments from before and after it, which divide a sector anywhere.
fn wrongSector(
    writes: *const DeviceWrites,
    block: *const Block,
    version: Disk.Version,
    asked_at_us: u64,
    offset: u64,
    bytes: []const u8,
) ?u64 {
    var at: usize = 0;
    while (at < bytes.len) : (at += sector_size) {
        const sector = bytes[at..][0..sector_size];
        var is_known: [sector_size]bool = @splat(false);
        for (0..writes.serial + 1) |serial| {
            if (!block.mayHold(@intCast(serial), asked_at_us)) continue;
            const content = if (serial == 0) version else writes.contentOf(@intCast(serial));
            var candidate: [sector_size]u8 = undefined;
            Disk.fill(content, offset + at, &candidate);
            for (&is_known, sector, &candidate) |*known, byte, wanted|
                known.* = known.* or byte == wanted;
        }
        if (std.mem.findScalar(bool, &is_known, false) != null) return offset + at;
    }
    return null;
}

fn contentOf(writes: *const DeviceWrites, serial: u32) Disk.Version {
    var id: [16]u8 = @splat(writes.device +% 1);
    std.mem.writeInt(u32, id[0..4], serial, .little);
    return .{ .id = .{ .bytes = id }, .size = 0 };
}

const testing = std.testing;

test "what was acknowledged last is read, or what may have been written since" {
    const reads = [_]core.device.read_trace.Read{.{ .at_us = 0, .offset = 512, .length = 4096 }};
    const version: Disk.Version = .{ .id = .fromRandom(@splat(9)), .size = 1 << 20 };
    var writes: DeviceWrites = .init(0, &reads, version.size);
    var prng: base.Prng = .init(1);
    var bytes: [8192]u8 = undefined;
    Disk.fill(version, 0, &bytes);
    try testing.expectEqual(null, writes.firstDifference(version, 10, 0, &bytes));
    const write = writes.next(&prng).?;
    try testing.expectEqual(null, writes.firstDifference(version, 10, 0, &bytes));
    writes.end(20, write.tag, true);
    // An earlier read may still get the version's bytes; a later one may not.
    try testing.expectEqual(null, writes.firstDifference(version, 10, 0, &bytes));
    try testing.expectEqual(0, writes.firstDifference(version, 21, 0, &bytes).?);
    @memcpy(bytes[0..block_size], write.bytes);
    try testing.expectEqual(null, writes.firstDifference(version, 21, 0, &bytes));
    bytes[600] ^= 1;
    try testing.expectEqual(512, writes.firstDifference(version, 21, 0, &bytes).?);
    bytes[600] ^= 1;
    writes.endBoot(false);
    try testing.expect(writes.firstDifference(version, 30, 0, &bytes) != null);
}
