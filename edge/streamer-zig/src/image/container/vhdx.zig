//! VHDX: fixed, dynamic and differencing disks. Numbers are little-endian. Specification:
//! [MS-VHDX], "Virtual Hard Disk v2 (VHDX) File Format"; its sections are named below.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const Metadata = @import("vhdx_metadata.zig");
const numbers = @import("vhdx_numbers.zig");
const ParentLink = @import("parent_link.zig");
const Replay = @import("vhdx_log.zig");
const VhdxFile = @import("vhdx_file.zig");
const Allocator = std.mem.Allocator;
const Crc32c = @import("../crc32c.zig").Crc32c;
const Extent = extent_module.Extent;
const int = numbers.int;

const mib = 1 << 20;
/// [MS-VHDX] 2.2: two headers and two region tables, each 64 KiB behind the one before.
const header_at = [_]u64{ 64 << 10, 128 << 10 };
const header_size = 4096;
const regions_at = [_]u64{ 192 << 10, 256 << 10 };
const regions_size = 64 << 10;
const regions_max = 2047;
/// Sectors whose bits fill one bitmap block of 1 MiB ([MS-VHDX] 2.5).
const chunk_sectors = 1 << 23;
/// Table entries, and bytes of a bitmap, that are read at once.
const entries_max = 512;
const bitmap_part_size = 512;

const bat_region = numbers.guid("2dc27766-f623-4200-9d64-115e9bfd4a08");
const metadata_region = numbers.guid("8b7ca206-4790-4b9a-b8fe-575f050f886e");

pub const Vhdx = @This();

/// Identifies the state of the data; changes with each session that writes ([MS-VHDX] 2.2.2).
identity: ParentLink.Identity,
metadata: Metadata,
bytes: VhdxFile,
table_at: u64 = 0,
table_size: u64 = 0,

const Header = struct { sequence: u64, bytes: [80]u8 };

/// Allocates the updates of a log that has to be replayed.
pub fn open(gpa: Allocator, file: *const File) Fault!Vhdx {
    const header = try readHeader(file);
    const bytes = &header.bytes;
    if (int(u16, bytes, 66) != 1) return error.UnknownVersion;
    var vhdx: Vhdx = .{
        .identity = bytes[32..48].*,
        .metadata = undefined,
        .bytes = .{ .replay = .empty, .size = file.size },
    };
    const log_id = bytes[48..64];
    if (!std.mem.allEqual(u8, log_id, 0)) {
        if (int(u16, bytes, 64) != 0) return error.UnknownVersion;
        vhdx.bytes.replay = try .load(gpa, file, .{
            .id = log_id.*,
            .at = int(u64, bytes, 72),
            .size = int(u32, bytes, 68),
        });
        vhdx.bytes.size = @max(file.size, vhdx.bytes.replay.file_size);
    }
    errdefer vhdx.close(gpa);
    try vhdx.openRegions(file);
    return vhdx;
}

pub fn close(vhdx: *Vhdx, gpa: Allocator) void {
    vhdx.bytes.replay.deinit(gpa);
}

/// Returns the valid header with the higher sequence number ([MS-VHDX] 2.2.2.1).
fn readHeader(file: *const File) Fault!Header {
    var current: ?Header = null;
    for (header_at) |at| {
        if (!file.has(at, header_size)) continue;
        const bytes = try file.readArray(header_size, at);
        if (!std.mem.startsWith(u8, &bytes, "head") or
            int(u32, &bytes, 4) != numbers.checksum(&bytes)) continue;
        const sequence = int(u64, &bytes, 8);
        if (current) |*other| if (other.sequence >= sequence) continue;
        current = .{ .sequence = sequence, .bytes = bytes[0..80].* };
    }
    return current orelse error.HeaderDamaged;
}

/// [MS-VHDX] 2.2.3. The copies are equal; one may be damaged.
fn openRegions(vhdx: *Vhdx, file: *const File) Fault!void {
    var metadata: ?[2]u64 = null;
    var table: ?[2]u64 = null;
    const at = for (regions_at) |at| {
        if (try vhdx.isRegionTable(file, at)) break at;
    } else return error.HeaderDamaged;
    var head: [16]u8 = undefined;
    try vhdx.bytes.read(file, &head, at);
    const count = int(u32, &head, 8);
    if (count > regions_max) return error.HeaderDamaged;
    for (0..count) |index| {
        var entry: [32]u8 = undefined;
        try vhdx.bytes.read(file, &entry, at + 16 + index * 32);
        const region: [2]u64 = .{ int(u64, &entry, 16), int(u32, &entry, 24) };
        if (region[0] % mib != 0 or region[0] < mib) return error.HeaderDamaged;
        if (!vhdx.bytes.has(region[0], region[1])) return error.Truncated;
        if (std.mem.eql(u8, entry[0..16], &bat_region)) {
            table = region;
        } else if (std.mem.eql(u8, entry[0..16], &metadata_region)) {
            metadata = region;
        } else if (int(u32, &entry, 28) & 1 != 0) return error.UnknownFeature;
    }
    const metadata_in = metadata orelse return error.HeaderDamaged;
    vhdx.table_at, vhdx.table_size = table orelse return error.HeaderDamaged;
    vhdx.metadata = try .read(&vhdx.bytes, file, metadata_in[0], metadata_in[1]);
    if (vhdx.table_size / 8 < vhdx.entriesNeeded()) return error.TableDamaged;
}

fn isRegionTable(vhdx: *const Vhdx, file: *const File, at: u64) Fault!bool {
    if (!vhdx.bytes.has(at, regions_size)) return false;
    var crc: Crc32c = .init();
    var wanted: u32 = 0;
    var part: [4096]u8 = undefined;
    for (0..regions_size / part.len) |index| {
        try vhdx.bytes.read(file, &part, at + index * part.len);
        if (index == 0) {
            if (!std.mem.startsWith(u8, &part, "regi")) return false;
            wanted = int(u32, &part, 4);
            @memset(part[4..8], 0);
        }
        crc.update(&part);
    }
    return crc.final() == wanted;
}

fn entriesNeeded(vhdx: *const Vhdx) u64 {
    const metadata = &vhdx.metadata;
    const blocks = std.math.divCeil(u64, metadata.disk_size, metadata.block_size) catch
        unreachable;
    const ratio = vhdx.chunkRatio();
    if (!metadata.has_parent) return blocks + (blocks - 1) / ratio;
    const chunks = std.math.divCeil(u64, blocks, ratio) catch unreachable;
    return chunks * (ratio + 1);
}

/// Payload blocks for each bitmap block ([MS-VHDX] 2.5).
fn chunkRatio(vhdx: *const Vhdx) u64 {
    return @as(u64, chunk_sectors) * vhdx.metadata.sector_size / vhdx.metadata.block_size;
}

pub fn parentLink(vhdx: *const Vhdx) ?*const ParentLink {
    return if (vhdx.metadata.has_parent) &vhdx.metadata.parent else null;
}

/// `offset` and `size` are within the disk.
pub fn extentAt(vhdx: *const Vhdx, file: *const File, offset: u64, size: u64) Fault!Extent {
    const block_size = vhdx.metadata.block_size;
    const ratio = vhdx.chunkRatio();
    const first = offset / block_size;
    const wanted = std.math.divCeil(u64, offset % block_size +| size, block_size) catch
        unreachable;
    // Behind the last payload block of a chunk is the entry of its bitmap.
    const count: usize = @intCast(@min(wanted, ratio - first % ratio, entries_max));
    var table: [entries_max * 8]u8 = undefined;
    // The last block of the disk is the last entry of the table.
    const entry = first + first / ratio;
    const left = vhdx.table_size / 8 - entry;
    const known: usize = @intCast(@min(count, left));
    try vhdx.bytes.read(file, table[0 .. known * 8], vhdx.table_at + entry * 8);
    var found: ?Extent = null;
    for (0..known) |index| {
        const skip = if (index == 0) offset % block_size else 0;
        const next =
            try vhdx.blockExtent(file, first + index, int(u64, &table, index * 8), skip);
        if (found) |*extent| {
            if (!extent.extend(next)) break;
        } else found = next;
        if (next.size != block_size - skip) break;
    }
    return found.?;
}

/// The part of a block from byte `skip` on ([MS-VHDX] 2.5.1.1).
fn blockExtent(
    vhdx: *const Vhdx,
    file: *const File,
    block: u64,
    entry: u64,
    skip: u64,
) Fault!Extent {
    const rest = vhdx.metadata.block_size - skip;
    const at = (entry >> 20) *| mib;
    return switch (@as(u3, @truncate(entry))) {
        // Not present.
        0 => .{ .size = rest, .content = .parent },
        // Undefined, zeros, unmapped.
        1, 2, 3 => .{ .size = rest, .content = .zeros },
        // Fully present.
        6 => .{ .size = rest, .content = .{ .file = at +| skip } },
        7 => {
            if (!vhdx.metadata.has_parent) return error.TableDamaged;
            return vhdx.partExtent(file, block, at, skip);
        },
        4, 5 => error.TableDamaged,
    };
}

/// A block of which a bitmap says which sectors are here and which are the parent's: the least
/// significant bit first ([MS-VHDX] 2.5.1.2).
fn partExtent(vhdx: *const Vhdx, file: *const File, block: u64, at: u64, skip: u64) Fault!Extent {
    const ratio = vhdx.chunkRatio();
    const chunk = block / ratio;
    var entry: [8]u8 = undefined;
    // The table has it: it ends with a whole chunk.
    try vhdx.bytes.read(file, &entry, vhdx.table_at + (chunk * (ratio + 1) + ratio) * 8);
    const bitmap_entry = int(u64, &entry, 0);
    if (@as(u3, @truncate(bitmap_entry)) != 6) return error.TableDamaged;
    const sector_size: u64 = vhdx.metadata.sector_size;
    const block_sectors = vhdx.metadata.block_size / sector_size;
    const first = block % ratio * block_sectors + skip / sector_size;
    const byte = first / 8 - first / 8 % bitmap_part_size;
    var bitmap: [bitmap_part_size]u8 = undefined;
    try vhdx.bytes.read(file, &bitmap, (bitmap_entry >> 20) *| mib +| byte);
    const from: usize = @intCast(first - byte * 8);
    const end = @min(bitmap.len * 8, from + (block_sectors - skip / sector_size));
    const is_own = isSet(&bitmap, from);
    var to = from + 1;
    while (to < end and isSet(&bitmap, to) == is_own) to += 1;
    return .{
        .size = (to - from) * sector_size - skip % sector_size,
        .content = if (is_own) .{ .file = at +| skip } else .parent,
    };
}

fn isSet(bitmap: []const u8, index: usize) bool {
    return bitmap[index / 8] & @as(u8, 1) << @intCast(index % 8) != 0;
}
