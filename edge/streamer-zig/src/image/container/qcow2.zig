//! qcow2, versions 2 and 3: backing files, zero clusters, compressed clusters, subclusters. Numbers
//! are big-endian. Snapshots inside the file are not read, and neither are reference counts.
//! Specification: QEMU's docs/interop/qcow2.rst; its sections are named below.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const ParentLink = @import("parent_link.zig");
const Codec = extent_module.Codec;
const Content = extent_module.Content;
const Extent = extent_module.Extent;

const header_size_v2 = 72;
const header_size_v3 = 104;
const cluster_bits_min = 9;
const cluster_bits_max = 21;
/// As QEMU: 32 MiB.
const l1_entries_max = 4 << 20;
const backing_name_max = 1023;
/// Bytes of a table that are read at once.
const table_part_size = 4096;
/// With extended L2 entries: a cluster's parts, and the least bits that give each a sector.
const subclusters = 32;
const extended_cluster_bits_min = 14;
/// Bits 9 to 55 of a table entry: a place in the file.
const offset_mask = 0x00ff_ffff_ffff_fe00;
const extension_backing_format = 0xe279_2aca;

/// Section "Header", bytes 72 to 79.
const Incompatible = packed struct(u64) {
    is_dirty: bool,
    is_corrupt: bool,
    has_external_data: bool,
    has_compression_type: bool,
    has_extended_l2: bool,
    others: u59,
};

pub const Qcow2 = @This();

version: u32,
/// Bytes.
disk_size: u64,
cluster_bits: u5,
l1_at: u64,
l1_entries: u64,
/// Bytes of an entry of an L2 table: 8, or 16 with the states of subclusters.
l2_entry_size: u32,
codec: Codec,
has_parent: bool,
parent: ParentLink,

pub fn open(file: *const File) Fault!Qcow2 {
    var header: [header_size_v3 + 8]u8 = @splat(0);
    if (!file.has(0, header_size_v2)) return error.Truncated;
    try file.read(header[0..@intCast(@min(header.len, file.size))], 0);
    const cluster_bits = int(u32, &header, 20);
    if (cluster_bits < cluster_bits_min or cluster_bits > cluster_bits_max)
        return error.BadBlockSize;
    var qcow2: Qcow2 = .{
        .version = int(u32, &header, 4),
        .disk_size = int(u64, &header, 24),
        .cluster_bits = @intCast(cluster_bits),
        .l1_at = int(u64, &header, 40),
        .l1_entries = int(u32, &header, 36),
        .l2_entry_size = 8,
        .codec = .deflate,
        .has_parent = int(u64, &header, 8) != 0,
        .parent = .{},
    };
    if (int(u32, &header, 32) != 0) return error.Encrypted;
    const header_size = switch (qcow2.version) {
        2 => header_size_v2,
        3 => try qcow2.takeFeatures(&header),
        else => return error.UnknownVersion,
    };
    try qcow2.checkTable(file);
    if (qcow2.has_parent)
        try qcow2.readParent(file, header_size, int(u64, &header, 8), int(u32, &header, 16));
    return qcow2;
}

/// Returns the size of the header.
fn takeFeatures(qcow2: *Qcow2, header: *const [header_size_v3 + 8]u8) Fault!u32 {
    const header_size = int(u32, header, 100);
    if (header_size < header_size_v3) return error.HeaderDamaged;
    if (header_size > qcow2.clusterSize()) return error.HeaderDamaged;
    const features: Incompatible = @bitCast(int(u64, header, 72));
    // After a crash only reference counts can be wrong: `is_dirty` keeps nobody from reading.
    if (features.is_corrupt) return error.MarkedCorrupt;
    if (features.has_external_data) return error.ExternalData;
    if (features.has_extended_l2) {
        if (qcow2.cluster_bits < extended_cluster_bits_min) return error.BadBlockSize;
        qcow2.l2_entry_size = 16;
    }
    if (features.others != 0) return error.UnknownFeature;
    if (features.has_compression_type) {
        if (header_size <= header_size_v3) return error.HeaderDamaged;
        qcow2.codec = switch (header[104]) {
            0 => .deflate,
            1 => .zstd,
            else => return error.UnknownFeature,
        };
    }
    return header_size;
}

fn checkTable(qcow2: *const Qcow2, file: *const File) Fault!void {
    if (qcow2.disk_size == 0) return error.BadDiskSize;
    const needed = ((qcow2.disk_size - 1) >> qcow2.l1Bits()) + 1;
    if (needed > l1_entries_max or needed > qcow2.l1_entries) return error.BadDiskSize;
    if (qcow2.l1_at % qcow2.clusterSize() != 0) return error.TableDamaged;
    if (!file.has(qcow2.l1_at, needed * 8)) return error.Truncated;
}

fn clusterSize(qcow2: *const Qcow2) u64 {
    return @as(u64, 1) << qcow2.cluster_bits;
}

/// Bits of an offset below the index of its L1 entry: a cluster of L2 entries.
fn l1Bits(qcow2: *const Qcow2) u6 {
    return @as(u6, qcow2.cluster_bits) * 2 - @ctz(qcow2.l2_entry_size);
}

/// The name is in the first cluster, behind the header and its extensions (section "Header",
/// "Header extensions").
fn readParent(qcow2: *Qcow2, file: *const File, header_size: u32, at: u64, size: u32) Fault!void {
    if (size == 0 or size > backing_name_max) return error.HeaderDamaged;
    if (!file.has(at, size)) return error.Truncated;
    var name: [backing_name_max]u8 = undefined;
    try file.read(name[0..size], at);
    // Neither a description in JSON nor a place on the network is a file beside this one.
    const path = name[0..size];
    if (!std.mem.startsWith(u8, path, "json:") and std.mem.find(u8, path, "://") == null)
        qcow2.parent.addPath(path);
    var next: u64 = header_size;
    const end = @min(at, qcow2.clusterSize());
    while (next + 8 <= end) {
        const extension = try file.readArray(8, next);
        const kind, const length = .{ int(u32, &extension, 0), int(u32, &extension, 4) };
        if (kind == 0) break;
        if (length > end or next + 8 > end - length) return error.HeaderDamaged;
        if (kind == extension_backing_format and length == 3) {
            const format = try file.readArray(3, next + 8);
            qcow2.parent.is_raw = std.mem.eql(u8, &format, "raw");
        }
        next += 8 + std.mem.alignForward(u64, length, 8);
    }
}

pub fn parentLink(qcow2: *const Qcow2) ?*const ParentLink {
    return if (qcow2.has_parent) &qcow2.parent else null;
}

/// `offset` and `size` are within the disk.
pub fn extentAt(qcow2: *const Qcow2, file: *const File, offset: u64, size: u64) Fault!Extent {
    const first = offset >> qcow2.l1Bits();
    const last = (qcow2.disk_size - 1) >> qcow2.l1Bits();
    var table: [table_part_size]u8 = undefined;
    const count: usize = @intCast(@min(last - first + 1, table.len / 8));
    try file.read(table[0 .. count * 8], qcow2.l1_at + first * 8);
    const l2_at = int(u64, &table, 0) & offset_mask;
    if (l2_at != 0) return qcow2.l2Extent(file, l2_at, offset, size);
    var unused: u64 = 1;
    while (unused < count and int(u64, &table, @intCast(unused * 8)) & offset_mask == 0)
        unused += 1;
    const end = (first + unused) << qcow2.l1Bits();
    return .{ .size = end - offset, .content = .parent };
}

fn l2Extent(
    qcow2: *const Qcow2,
    file: *const File,
    l2_at: u64,
    offset: u64,
    size: u64,
) Fault!Extent {
    const cluster_size = qcow2.clusterSize();
    if (l2_at % cluster_size != 0) return error.TableDamaged;
    const entry_size = qcow2.l2_entry_size;
    const in_cluster = offset % cluster_size;
    const first = offset >> qcow2.cluster_bits & (cluster_size / entry_size - 1);
    const wanted = std.math.divCeil(u64, in_cluster +| size, cluster_size) catch unreachable;
    var table: [table_part_size]u8 = undefined;
    const count: usize =
        @intCast(@min(wanted, cluster_size / entry_size - first, table.len / entry_size));
    try file.read(table[0 .. count * entry_size], l2_at +| first * entry_size);
    var found: ?Extent = null;
    for (0..count) |index| {
        const skip = if (index == 0) in_cluster else 0;
        const entry = int(u64, &table, index * entry_size);
        const next: Extent = if (entry_size == 16)
            try qcow2.subclusterExtent(entry, int(u64, &table, index * entry_size + 8), skip)
        else
            .{ .size = cluster_size - skip, .content = try qcow2.contentOf(entry, skip) };
        if (found) |*extent| {
            if (!extent.extend(next)) break;
        } else found = next;
        // The rest of the cluster is elsewhere.
        if (next.size != cluster_size - skip) break;
    }
    return found.?;
}

const compressed_bit = 1 << 62;

/// Section "Cluster mapping".
fn contentOf(qcow2: *const Qcow2, entry: u64, skip: u64) Fault!Content {
    if (entry & compressed_bit != 0) return .{ .compressed = qcow2.compressedAt(entry, skip) };
    if (entry & 1 != 0) return if (qcow2.version == 2) error.TableDamaged else .zeros;
    const at = entry & offset_mask;
    if (at == 0) return .parent;
    if (at % qcow2.clusterSize() != 0) return error.TableDamaged;
    return .{ .file = at + skip };
}

/// Section "Extended L2 Entries": 32 bits say which subclusters are allocated, and 32 which are
/// zeros.
fn subclusterExtent(qcow2: *const Qcow2, entry: u64, states: u64, skip: u64) Fault!Extent {
    const cluster_size = qcow2.clusterSize();
    if (entry & compressed_bit != 0)
        return .{ .size = cluster_size - skip, .content = try qcow2.contentOf(entry, skip) };
    const at = entry & offset_mask;
    if (entry & 1 != 0 or at % cluster_size != 0) return error.TableDamaged;
    const size = cluster_size / subclusters;
    const first = skip / size;
    const state = stateOf(states, first);
    var end = first + 1;
    while (end < subclusters and stateOf(states, end) == state) end += 1;
    if (state == .allocated and at == 0) return error.TableDamaged;
    return .{ .size = end * size - skip, .content = switch (state) {
        .zeros => .zeros,
        .allocated => .{ .file = at + skip },
        .unallocated => .parent,
        .impossible => return error.TableDamaged,
    } };
}

fn stateOf(states: u64, index: u64) enum { unallocated, allocated, zeros, impossible } {
    const shift: u5 = @intCast(index);
    const is_allocated = states >> shift & 1 != 0;
    const is_zeros = states >> 32 >> shift & 1 != 0;
    if (is_zeros) return if (is_allocated) .impossible else .zeros;
    return if (is_allocated) .allocated else .unallocated;
}

/// Section "Cluster mapping", "Compressed Clusters Descriptor": a byte of the file, and the number
/// of sectors of 512 bytes behind the first one.
fn compressedAt(qcow2: *const Qcow2, entry: u64, skip: u64) extent_module.Compressed {
    const sectors_from: u6 = 62 - (@as(u6, qcow2.cluster_bits) - 8);
    const location = entry & (@as(u64, 1) << sectors_from) - 1;
    const sectors = (entry & (1 << 62) - 1) >> sectors_from;
    return .{
        .codec = qcow2.codec,
        .location = location,
        .size = @intCast((sectors + 1) * 512 - location % 512),
        .unit_size = @intCast(qcow2.clusterSize()),
        .skip = @intCast(skip),
    };
}

fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .big);
}
