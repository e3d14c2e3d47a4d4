//! VMDK in one file: monolithic sparse, and stream-optimized with compressed grains. Numbers are
//! little-endian, places and sizes in sectors. Specification: VMware, "Virtual Disk Format 5.0";
//! its sections are named below.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const ParentLink = @import("parent_link.zig");
const Content = extent_module.Content;
const Extent = extent_module.Extent;

const sector_size = 512;
const header_size = 512;
const grain_sectors_min = 8;
const grain_sectors_max = 4096;
const grains_per_table_max = 512;
/// What a descriptor has of text; the rest is zeros.
const descriptor_size_max = 16 << 10;
const entries_max = 1024;
/// Before each compressed grain: its first sector (8 bytes) and its size (4 bytes).
const grain_marker_size = 12;
/// "Stream-Optimized Compressed Sparse Extents": the directory is named by the footer.
const directory_at_end = std.math.maxInt(u64);

const newline_flag = 1 << 0;
const zero_grain_flag = 1 << 2;
const compressed_flag = 1 << 16;

pub const Vmdk = @This();

/// Bytes.
disk_size: u64,
grain_size: u64,
grains_per_table: u32,
directory_at: u64,
has_zero_grains: bool,
is_compressed: bool,
/// The content identifier (CID), which changes with each session that writes.
identity: ParentLink.Identity = @splat(0),
has_parent: bool = false,
parent: ParentLink = .{},

pub fn open(file: *const File) Fault!Vmdk {
    if (!file.has(0, header_size)) return error.Truncated;
    var header = try file.readArray(header_size, 0);
    const descriptor_at, const descriptor_size = .{ int(u64, &header, 28), int(u64, &header, 36) };
    if (int(u64, &header, 56) == directory_at_end) {
        // Footer and end-of-stream marker are the last two sectors.
        if (file.size < 3 * header_size) return error.Truncated;
        header = try file.readArray(header_size, file.size - 2 * header_size);
        if (!std.mem.startsWith(u8, &header, "KDMV")) return error.Truncated;
    }
    const version = int(u32, &header, 4);
    if (version == 0 or version > 3) return error.UnknownVersion;
    const flags = int(u32, &header, 8);
    // A transfer as text would have changed these.
    if (flags & newline_flag != 0 and !std.mem.eql(u8, header[73..77], "\n \r\n"))
        return error.HeaderDamaged;
    const grain_sectors = int(u64, &header, 20);
    if (grain_sectors < grain_sectors_min or grain_sectors > grain_sectors_max or
        !std.math.isPowerOfTwo(grain_sectors)) return error.BadBlockSize;
    var vmdk: Vmdk = .{
        .disk_size = std.math.mul(u64, int(u64, &header, 12), sector_size) catch
            return error.BadDiskSize,
        .grain_size = grain_sectors * sector_size,
        .grains_per_table = int(u32, &header, 44),
        .directory_at = std.math.mul(u64, int(u64, &header, 56), sector_size) catch
            return error.Truncated,
        .has_zero_grains = flags & zero_grain_flag != 0,
        .is_compressed = flags & compressed_flag != 0,
    };
    if (vmdk.is_compressed and int(u16, &header, 77) != 1) return error.UnknownFeature;
    try vmdk.check(file);
    try vmdk.readDescriptor(file, descriptor_at, descriptor_size);
    return vmdk;
}

fn check(vmdk: *const Vmdk, file: *const File) Fault!void {
    if (vmdk.disk_size == 0) return error.BadDiskSize;
    if (vmdk.grains_per_table == 0 or vmdk.grains_per_table > grains_per_table_max)
        return error.BadBlockSize;
    if (vmdk.directory_at == 0) return error.HeaderDamaged;
    const tables = std.math.divCeil(u64, vmdk.disk_size, vmdk.tableSize()) catch unreachable;
    if (!file.has(vmdk.directory_at, tables * 4)) return error.Truncated;
}

/// Bytes of the disk that one grain table describes.
fn tableSize(vmdk: *const Vmdk) u64 {
    return vmdk.grain_size * vmdk.grains_per_table;
}

/// "The Descriptor File", which such a disk has inside.
fn readDescriptor(vmdk: *Vmdk, file: *const File, at: u64, size: u64) Fault!void {
    // One of several files: the descriptor is beside them.
    if (at == 0 or size == 0) return error.SeveralFiles;
    const first = std.math.mul(u64, at, sector_size) catch return error.Truncated;
    var buffer: [descriptor_size_max]u8 = undefined;
    const count: usize = @intCast(@min(size *| sector_size, buffer.len));
    if (!file.has(first, count)) return error.Truncated;
    try file.read(buffer[0..count], first);
    const text = std.mem.sliceTo(buffer[0..count], 0);
    var is_typed = false;
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (lines.next()) |line| {
        const key, const rest = std.mem.cutScalar(u8, line, '=') orelse continue;
        const name = std.mem.trim(u8, key, " \t");
        const value = std.mem.trim(u8, rest, " \t\"");
        if (std.ascii.eqlIgnoreCase(name, "createType")) {
            is_typed = true;
            if (!std.ascii.eqlIgnoreCase(value, "monolithicSparse") and
                !std.ascii.eqlIgnoreCase(value, "streamOptimized")) return error.SeveralFiles;
        } else if (std.ascii.eqlIgnoreCase(name, "CID")) {
            vmdk.identity = try contentId(value);
        } else if (std.ascii.eqlIgnoreCase(name, "parentCID")) {
            vmdk.has_parent = !std.ascii.eqlIgnoreCase(value, "ffffffff");
            vmdk.parent.identities[0] = try contentId(value);
        } else if (std.ascii.eqlIgnoreCase(name, "parentFileNameHint")) {
            vmdk.parent.addPath(value);
        }
    }
    if (!is_typed) return error.MetadataDamaged;
}

fn contentId(text: []const u8) Fault!ParentLink.Identity {
    const number = std.fmt.parseInt(u32, text, 16) catch return error.MetadataDamaged;
    var identity: ParentLink.Identity = @splat(0);
    // Zero is a number like the others here.
    identity[0] = 1;
    std.mem.writeInt(u32, identity[1..5], number, .little);
    return identity;
}

pub fn parentLink(vmdk: *const Vmdk) ?*const ParentLink {
    return if (vmdk.has_parent) &vmdk.parent else null;
}

/// "Hosted Sparse Extents", "Grain Directory". `offset` and `size` are within the disk.
pub fn extentAt(vmdk: *const Vmdk, file: *const File, offset: u64, size: u64) Fault!Extent {
    const table_size = vmdk.tableSize();
    const first = offset / table_size;
    const last = (vmdk.disk_size - 1) / table_size;
    var directory: [entries_max * 4]u8 = undefined;
    const count: usize = @intCast(@min(last - first + 1, entries_max));
    try file.read(directory[0 .. count * 4], vmdk.directory_at + first * 4);
    const table = int(u32, &directory, 0);
    if (table != 0) return vmdk.tableExtent(file, @as(u64, table) * sector_size, offset, size);
    var unused: u64 = 1;
    while (unused < count and int(u32, &directory, @intCast(unused * 4)) == 0) unused += 1;
    return .{ .size = (first + unused) * table_size - offset, .content = .parent };
}

fn tableExtent(
    vmdk: *const Vmdk,
    file: *const File,
    table_at: u64,
    offset: u64,
    size: u64,
) Fault!Extent {
    const in_grain = offset % vmdk.grain_size;
    const grain = offset / vmdk.grain_size;
    const first = grain % vmdk.grains_per_table;
    const wanted = std.math.divCeil(u64, in_grain +| size, vmdk.grain_size) catch unreachable;
    const count: usize = @intCast(@min(wanted, vmdk.grains_per_table - first));
    var table: [grains_per_table_max * 4]u8 = undefined;
    try file.read(table[0 .. count * 4], table_at + first * 4);
    var found: ?Extent = null;
    for (0..count) |index| {
        const skip = if (index == 0) in_grain else 0;
        const entry = int(u32, &table, index * 4);
        const next: Extent = .{
            .size = vmdk.grain_size - skip,
            .content = try vmdk.contentOf(file, entry, grain + index, skip),
        };
        if (found) |*extent| {
            if (!extent.extend(next)) break;
        } else found = next;
        if (next.content == .compressed) break;
    }
    return found.?;
}

/// "Grain Table", and "Compressed Grain".
fn contentOf(
    vmdk: *const Vmdk,
    file: *const File,
    entry: u32,
    grain: u64,
    skip: u64,
) Fault!Content {
    if (entry == 0) return .parent;
    if (entry == 1 and vmdk.has_zero_grains) return .zeros;
    const at = @as(u64, entry) * sector_size;
    if (!vmdk.is_compressed) return .{ .file = at + skip };
    const marker = try file.readArray(grain_marker_size, at);
    const first = grain * vmdk.grain_size;
    if (int(u64, &marker, 0) != first / sector_size) return error.TableDamaged;
    return .{
        .compressed = .{
            .codec = .zlib,
            .location = at + grain_marker_size,
            .size = int(u32, &marker, 8),
            // The last grain may end with the disk.
            .unit_size = @intCast(@min(vmdk.grain_size, vmdk.disk_size - first)),
            .skip = @intCast(skip),
        },
    };
}

fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .little);
}
