//! VHD: fixed, dynamic and differencing disks. Numbers are big-endian. Specification: Microsoft,
//! "Virtual Hard Disk Image Format Specification", version 1.0 of October 2006; its sections are
//! named below.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const ParentLink = @import("parent_link.zig");
const Extent = extent_module.Extent;

/// "Hard Disk Footer Format".
const footer_size = 512;
pub const cookie = "conectix";
/// "Dynamic Disk Header Format".
pub const header_size = 1024;
pub const header_cookie = "cxsparse";
const sector_size = 512;
const version = 0x0001_0000;
const unused = 0xffff_ffff;

const block_size_min = 4096;
const block_size_max = 256 << 20;
/// Table entries, and bytes of a block's bitmap, that are read at once.
const entries_max = 1024;
const bitmap_part_size = 512;

pub const Kind = enum(u32) { fixed = 2, dynamic = 3, differencing = 4 };

pub const Vhd = @This();

kind: Kind,
/// Bytes.
disk_size: u64,
identity: ParentLink.Identity,
/// Byte of the file; unused for a fixed disk, as all below.
table_at: u64 = 0,
entry_count: u32 = 0,
block_size: u32 = 0,
/// Bytes before each block's data, whole sectors.
bitmap_size: u32 = 0,
parent: ParentLink = .{},

pub fn open(file: *const File) Fault!Vhd {
    const footer = try readFooter(file);
    if (int(u32, &footer, 12) >> 16 != version >> 16) return error.UnknownVersion;
    var vhd: Vhd = .{
        .kind = std.enums.fromInt(Kind, int(u32, &footer, 60)) orelse return error.UnknownVariant,
        // "Current Size". Tools that go by the disk's geometry write its product here.
        .disk_size = int(u64, &footer, 48),
        .identity = footer[68..84].*,
    };
    if (vhd.disk_size == 0 or vhd.disk_size % sector_size != 0) return error.BadDiskSize;
    if (vhd.kind == .fixed) {
        // Data, and the smaller of both footers.
        if (!file.has(vhd.disk_size, footer_size - 1)) return error.Truncated;
    } else try vhd.openHeader(file, int(u64, &footer, 16));
    return vhd;
}

/// The footer is the last sector; a dynamic disk has a copy of it at its start, for when a crash
/// has overwritten the other ("Dynamic Disk").
fn readFooter(file: *const File) Fault![footer_size]u8 {
    for ([_]u64{ footer_size, footer_size - 1 }) |size| {
        if (file.size < size) continue;
        var footer: [footer_size]u8 = @splat(0);
        try file.read(footer[0..@intCast(size)], file.size - size);
        if (isFooter(&footer)) return footer;
    }
    if (file.size < footer_size) return error.HeaderDamaged;
    const footer = try file.readArray(footer_size, 0);
    if (!isFooter(&footer)) return error.HeaderDamaged;
    // A fixed disk's first sector is data.
    if (int(u32, &footer, 60) == @backingInt(Kind.fixed)) return error.HeaderDamaged;
    return footer;
}

fn isFooter(footer: *const [footer_size]u8) bool {
    return std.mem.startsWith(u8, footer, cookie) and
        int(u32, footer, 64) == checksum(footer, 64);
}

/// The complement of the sum of all bytes but those of the checksum itself.
pub fn checksum(bytes: []const u8, at: usize) u32 {
    var sum: u32 = 0;
    for (bytes, 0..) |byte, index| {
        if (index < at or index >= at + 4) sum +%= byte;
    }
    return ~sum;
}

fn openHeader(vhd: *Vhd, file: *const File, at: u64) Fault!void {
    if (!file.has(at, header_size)) return error.Truncated;
    const header = try file.readArray(header_size, at);
    if (!std.mem.startsWith(u8, &header, header_cookie) or
        int(u32, &header, 36) != checksum(&header, 36)) return error.HeaderDamaged;
    if (int(u32, &header, 24) >> 16 != version >> 16) return error.UnknownVersion;
    vhd.table_at = int(u64, &header, 16);
    vhd.entry_count = int(u32, &header, 28);
    vhd.block_size = int(u32, &header, 32);
    if (vhd.block_size < block_size_min or vhd.block_size > block_size_max or
        !std.math.isPowerOfTwo(vhd.block_size)) return error.BadBlockSize;
    // One bit a sector, padded to whole sectors ("Data Blocks").
    vhd.bitmap_size =
        std.mem.alignForward(u32, vhd.block_size / sector_size / 8, sector_size);
    const needed = std.math.divCeil(u64, vhd.disk_size, vhd.block_size) catch unreachable;
    if (vhd.entry_count < needed) return error.BadDiskSize;
    if (!file.has(vhd.table_at, needed * 4)) return error.Truncated;
    if (vhd.kind == .differencing) try vhd.readParent(file, &header);
}

/// The relative and the absolute path in UTF-16, the URL of a Mac, and the name alone ("Parent
/// Locator Entry", "Parent Unicode Name").
fn readParent(vhd: *Vhd, file: *const File, header: *const [header_size]u8) Fault!void {
    vhd.parent.identities[0] = header[40..56].*;
    for (0..8) |index| {
        const entry = header[576 + index * 24 ..][0..24];
        var path: [ParentLink.path_units_max * 2]u8 = undefined;
        const size = @min(int(u32, entry, 8), path.len);
        const at = int(u64, entry, 16);
        const code = entry[0..4];
        const is_wide = std.mem.eql(u8, code, "W2ru") or std.mem.eql(u8, code, "W2ku");
        if (!is_wide and !std.mem.eql(u8, code, "MacX")) continue;
        if (!file.has(at, size)) return error.Truncated;
        try file.read(path[0..size], at);
        if (is_wide) {
            vhd.parent.addUtf16(path[0..size], .little);
        } else vhd.parent.addPath(std.mem.trimEnd(u8, path[0..size], "\x00"));
    }
    vhd.parent.addUtf16(header[64..576], .big);
}

pub fn parentLink(vhd: *const Vhd) ?*const ParentLink {
    return if (vhd.kind == .differencing) &vhd.parent else null;
}

/// `offset` and `size` are within the disk.
pub fn extentAt(vhd: *const Vhd, file: *const File, offset: u64, size: u64) Fault!Extent {
    if (vhd.kind == .fixed) return .{ .size = size, .content = .{ .file = offset } };
    const first = offset / vhd.block_size;
    const wanted = std.math.divCeil(u64, offset % vhd.block_size +| size, vhd.block_size) catch
        unreachable;
    const count: usize = @intCast(@min(wanted, vhd.entry_count - first, entries_max));
    var table: [entries_max * 4]u8 = undefined;
    try file.read(table[0 .. count * 4], vhd.table_at + first * 4);
    var found: ?Extent = null;
    for (0..count) |index| {
        const skip = if (index == 0) offset % vhd.block_size else 0;
        const next = try vhd.blockExtent(file, int(u32, &table, index * 4), skip);
        if (found) |*extent| {
            if (!extent.extend(next)) break;
        } else found = next;
        // The end of a block with a bitmap is not known yet.
        if (next.size != vhd.block_size - skip) break;
    }
    return found.?;
}

/// The part of a block from byte `skip` on.
fn blockExtent(vhd: *const Vhd, file: *const File, sector: u32, skip: u64) Fault!Extent {
    const rest = vhd.block_size - skip;
    if (sector == unused) return .{ .size = rest, .content = .parent };
    const bitmap_at = @as(u64, sector) * sector_size;
    const data_at = bitmap_at + vhd.bitmap_size;
    // What was never written to a dynamic disk's block is zeros in the file, too, and some tools
    // do not keep the bitmap up to date.
    if (vhd.kind == .dynamic) return .{ .size = rest, .content = .{ .file = data_at + skip } };
    var bitmap: [bitmap_part_size]u8 = undefined;
    const first = skip / sector_size;
    const byte = first / 8 - first / 8 % bitmap.len;
    const count: usize = @intCast(@min(bitmap.len, vhd.bitmap_size - byte));
    try file.read(bitmap[0..count], bitmap_at + byte);
    const from: usize = @intCast(first - byte * 8);
    const end = @min(count * 8, vhd.block_size / sector_size - byte * 8);
    const is_own = isSet(&bitmap, from);
    var to = from + 1;
    while (to < end and isSet(&bitmap, to) == is_own) to += 1;
    return .{
        .size = @as(u64, to - from) * sector_size - skip % sector_size,
        .content = if (is_own) .{ .file = data_at + skip } else .parent,
    };
}

fn isSet(bitmap: []const u8, index: usize) bool {
    return bitmap[index / 8] & @as(u8, 0x80) >> @intCast(index % 8) != 0;
}

fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .big);
}
