//! Writes a dynamic VHDX file. Numbers are little-endian. Specification: [MS-VHDX], "Virtual Hard
//! Disk v2 (VHDX) File Format"; its sections are named below.
//!
//! The file is the header section, an empty log, the metadata, the block allocation table (BAT),
//! and the blocks that are not zeros, each at a whole MiB.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const numbers = @import("../container/vhdx_numbers.zig");
const Layout = store.@"export".Layout;
const TargetError = store.@"export".TargetError;
const assert = std.debug.assert;
const setSize = store.@"export".setSize;
const writeAt = store.@"export".writeAt;

const mib = 1 << 20;
/// [MS-VHDX] 2.2: two headers and two region tables, each 64 KiB behind the one before.
const headers_at = [_]u64{ 64 << 10, 128 << 10 };
const header_size = 4096;
const regions_at = [_]u64{ 192 << 10, 256 << 10 };
const regions_size = 64 << 10;
/// A log has at least 1 MiB, also if it is empty.
const log_at = 1 * mib;
const metadata_at = 2 * mib;
const bat_at = 3 * mib;
const items_at = 64 << 10;

const logical_sector_size = 512;
const physical_sector_size = 4096;
/// Small blocks waste less of the file; large disks have large ones, for a table of at most 16 MiB.
const small_block_size = 2 * mib;
const large_block_size = 32 * mib;
const small_disk_size_max = 4 << 40;
/// [MS-VHDX] 2.6.2.2.
pub const disk_size_max = 64 << 40;
/// Sectors whose bits would fill one bitmap block ([MS-VHDX] 2.5); its entry is in every BAT.
const chunk_sectors = 1 << 23;
/// [MS-VHDX] 2.5.1.1: the block is in the file.
const fully_present = 6;

pub const VhdxWriter = @This();

fd: i32,
disk_size: u64,
block_size: u64,
/// Of the version.
id: [16]u8,
/// Bytes of the file that are in use, whole MiB.
end: u64,
/// The last block that has a place.
block: ?u64 = null,
block_at: u64 = 0,

pub fn init(fd: i32, disk_size: u64, id: base.Uuid) error{TooLarge}!VhdxWriter {
    if (disk_size > disk_size_max) return error.TooLarge;
    var writer: VhdxWriter = .{
        .fd = fd,
        .disk_size = disk_size,
        .block_size = if (disk_size > small_disk_size_max) large_block_size else small_block_size,
        .id = id.bytes,
        .end = 0,
    };
    writer.end = bat_at + writer.batSize();
    return writer;
}

pub fn layout(writer: *VhdxWriter) Layout {
    return .{ .context = writer, .vtable = &.{ .placeOf = placeOf, .finish = finish } };
}

fn of(context: *anyopaque) *VhdxWriter {
    return @ptrCast(@alignCast(context));
}

/// Blocks before each entry of a bitmap.
fn chunkRatio(writer: *const VhdxWriter) u64 {
    return chunk_sectors * logical_sector_size / writer.block_size;
}

/// Bytes, whole MiB. The last entry is that of the last block ([MS-VHDX] 2.5).
fn batSize(writer: *const VhdxWriter) u64 {
    const blocks = std.math.divCeil(u64, writer.disk_size, writer.block_size) catch unreachable;
    const entries = blocks + (blocks - 1) / writer.chunkRatio();
    return std.mem.alignForward(u64, entries * 8, mib);
}

fn placeOf(context: *anyopaque, offset: u64) TargetError!Layout.Place {
    const writer = of(context);
    assert(offset < writer.disk_size);
    const block = offset / writer.block_size;
    if (writer.block != block) {
        assert(writer.block == null or writer.block.? < block);
        writer.block_at = writer.end;
        writer.end += writer.block_size;
        writer.block = block;
        var entry: [8]u8 = undefined;
        put(u64, &entry, 0, writer.block_at | fully_present);
        try writeAt(writer.fd, &entry, bat_at + (block + block / writer.chunkRatio()) * 8);
    }
    const skip = offset % writer.block_size;
    return .{ .at = writer.block_at + skip, .size = writer.block_size - skip };
}

fn finish(context: *anyopaque) TargetError!void {
    const writer = of(context);
    try setSize(writer.fd, writer.end);
    try writer.writeMetadata();
    for (regions_at) |at| try writer.writeRegions(at);
    for (headers_at, 1..) |at, sequence| try writer.writeHeader(at, sequence);
    // [MS-VHDX] 2.2.1: the signature, and the program that made the file.
    const creator = "Bootfarm";
    var identifier: [8 + creator.len * 2]u8 = undefined;
    @memcpy(identifier[0..8], "vhdxfile");
    for (creator, 0..) |char, index| put(u16, &identifier, 8 + index * 2, char);
    try writeAt(writer.fd, &identifier, 0);
}

/// [MS-VHDX] 2.2.2: without the id of a log there is nothing to replay.
fn writeHeader(writer: *const VhdxWriter, at: u64, sequence: u64) TargetError!void {
    var header: [header_size]u8 = @splat(0);
    @memcpy(header[0..4], "head");
    put(u64, &header, 8, sequence);
    // The state of the file, and of the disk in it: a program that writes to them changes these.
    header[16..32].* = writer.id;
    header[32..48].* = writer.id;
    put(u16, &header, 66, 1);
    put(u32, &header, 68, mib);
    put(u64, &header, 72, log_at);
    put(u32, &header, 4, numbers.checksum(&header));
    try writeAt(writer.fd, &header, at);
}

/// [MS-VHDX] 2.2.3.
fn writeRegions(writer: *const VhdxWriter, at: u64) TargetError!void {
    var table: [regions_size]u8 = @splat(0);
    @memcpy(table[0..4], "regi");
    const regions = [_]struct { [16]u8, u64, u64 }{
        .{ numbers.guid("2dc27766-f623-4200-9d64-115e9bfd4a08"), bat_at, writer.batSize() },
        .{ numbers.guid("8b7ca206-4790-4b9a-b8fe-575f050f886e"), metadata_at, mib },
    };
    put(u32, &table, 8, regions.len);
    for (regions, 0..) |region, index| {
        const entry = table[16 + index * 32 ..][0..32];
        entry[0..16].*, const region_at, const size = region;
        put(u64, entry, 16, region_at);
        put(u32, entry, 24, @intCast(size));
        put(u32, entry, 28, 1);
    }
    put(u32, &table, 4, numbers.checksum(&table));
    try writeAt(writer.fd, &table, at);
}

/// Flags of an entry of the metadata table ([MS-VHDX] 2.6.1.2).
const is_virtual_disk = 2;
const is_required = 4;

/// [MS-VHDX] 2.6: the table, and the items behind it.
fn writeMetadata(writer: *const VhdxWriter) TargetError!void {
    var items: [40]u8 = @splat(0);
    put(u32, &items, 0, @intCast(writer.block_size));
    put(u64, &items, 8, writer.disk_size);
    items[16..32].* = writer.id;
    put(u32, &items, 32, logical_sector_size);
    put(u32, &items, 36, physical_sector_size);
    const known = [_]struct { [16]u8, u32, u32, u32 }{
        .{ numbers.guid("caa16737-fa36-4d43-b3b6-33f0aa44e76b"), 0, 8, 0 },
        .{ numbers.guid("2fa54224-cd1b-4876-b211-5dbed83bf4b8"), 8, 8, is_virtual_disk },
        .{ numbers.guid("beca12ab-b2e6-4523-93ef-c309e000c746"), 16, 16, is_virtual_disk },
        .{ numbers.guid("8141bf1d-a96f-4709-ba47-f233a8faab5f"), 32, 4, is_virtual_disk },
        .{ numbers.guid("cda348c7-445d-4471-9cc9-e9885251c556"), 36, 4, is_virtual_disk },
    };
    var table: [32 + known.len * 32]u8 = @splat(0);
    @memcpy(table[0..8], "metadata");
    put(u16, &table, 10, known.len);
    for (known, 0..) |item, index| {
        const entry = table[32 + index * 32 ..][0..32];
        entry[0..16].*, const item_at, const size, const flags = item;
        put(u32, entry, 16, items_at + item_at);
        put(u32, entry, 20, size);
        put(u32, entry, 24, flags | is_required);
    }
    try writeAt(writer.fd, &table, metadata_at);
    try writeAt(writer.fd, &items, metadata_at + items_at);
}

fn put(comptime T: type, bytes: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], value, .little);
}
