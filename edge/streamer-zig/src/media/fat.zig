//! Writes a FAT16 volume with long file names: the EFI system partition of a boot medium. Layout:
//! Microsoft's "FAT: General Overview of On-Disk Format" 1.03; UEFI 2.10 section 13.3 asks for
//! FAT16 on removable media. Equal files give equal bytes: every date is FAT's first, and the
//! serial number is computed from the files.

const std = @import("std");
const fat_directory = @import("fat_directory.zig");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;

pub const sector_size = 512;
/// The smallest number of MiB with enough clusters for a FAT16 (4085), and the largest whose
/// sectors an El Torito catalogue can count (16 bits) with at most 65524 clusters.
const size_min_mib = 3;
const size_max_mib = 31;
const mib = 1 << 20;
const reserved_sectors = 1;
const fat_count = 2;
const root_entries = 512;
const root_sectors = root_entries * fat_directory.entry_size / sector_size;
const media_fixed = 0xf8;
const clusters_min = 4085;
const clusters_max = 65524;
const end_of_chain: u16 = 0xffff;

pub const Node = struct {
    /// Printable ASCII that FAT's long names allow; unique in its folder ignoring case.
    name: []const u8,
    content: union(enum) { file: []const u8, folder: []const Node },
};

pub const Options = struct {
    root: []const Node,
    /// At most 11 upper-case letters.
    label: []const u8,
    /// Sectors of 512 bytes before the volume on its disk.
    hidden_sectors: u32,
};

/// Returns the volume's size in bytes, whole MiB; null if the files are too large.
pub fn sizeFor(root: []const Node) ?usize {
    const content = clustersOf(root) * sector_size;
    for (size_min_mib..size_max_mib + 1) |count| {
        const geometry: Geometry = .of(@intCast(count * mib / sector_size));
        if (geometry.clusters * sector_size >= content) return count * mib;
    }
    return null;
}

/// Sectors where the parts of a volume start; a cluster is one sector.
const Geometry = struct {
    fat_sectors: u32,
    first_data: u32,
    clusters: u32,

    fn of(total_sectors: u32) Geometry {
        // Two bytes for each cluster and for the two reserved entries.
        const fat_sectors = std.math.divCeil(u32, (total_sectors + 2) * 2, sector_size) catch
            unreachable;
        const first_data = reserved_sectors + fat_count * fat_sectors + root_sectors;
        const clusters = total_sectors - first_data;
        assert(clusters >= clusters_min);
        assert(clusters <= clusters_max);
        return .{ .fat_sectors = fat_sectors, .first_data = first_data, .clusters = clusters };
    }
};

/// Fills `volume`, whose size came from `sizeFor`.
pub fn write(volume: []u8, options: Options) void {
    assert(volume.len % mib == 0);
    @memset(volume, 0);
    const total: u32 = @intCast(volume.len / sector_size);
    var writer: VolumeWriter = .{ .volume = volume, .geometry = .of(total) };
    writer.setNext(0, 0xff00 | media_fixed);
    writer.setNext(1, end_of_chain);
    const root_at = (reserved_sectors + fat_count * writer.geometry.fat_sectors) * sector_size;
    const root_size = root_sectors * sector_size;
    var root: fat_directory.Writer = .{ .bytes = volume[root_at..][0..root_size] };
    root.label(options.label);
    writer.addAll(&root, options.root, null);
    writer.copyFat();
    writer.bootSector(options, total);
}

const VolumeWriter = struct {
    volume: []u8,
    geometry: Geometry,
    cluster_next: u16 = 2,

    fn addAll(
        writer: *VolumeWriter,
        directory: *fat_directory.Writer,
        nodes: []const Node,
        own_cluster: ?u16,
    ) void {
        for (nodes) |node| switch (node.content) {
            .file => |bytes| {
                const chain = writer.allocate(clustersFor(bytes.len));
                @memcpy(writer.bytesOf(chain, bytes.len), bytes);
                directory.add(.{
                    .name = node.name,
                    .kind = .file,
                    .cluster = chain.first,
                    .size = @intCast(bytes.len),
                });
            },
            .folder => |children| {
                const chain = writer.allocate(folderClusters(children));
                directory.add(.{ .name = node.name, .kind = .folder, .cluster = chain.first });
                var inner: fat_directory.Writer =
                    .{ .bytes = writer.bytesOf(chain, @as(usize, chain.count) * sector_size) };
                // Cluster 0 means the root.
                inner.dots(chain.first, own_cluster orelse 0);
                writer.addAll(&inner, children, chain.first);
            },
        };
    }

    const Chain = struct { first: u16, count: u16 };

    /// Chains the next free clusters; an empty file has none and starts at 0.
    fn allocate(writer: *VolumeWriter, count: u32) Chain {
        if (count == 0) return .{ .first = 0, .count = 0 };
        const first = writer.cluster_next;
        assert(first - 2 + count <= writer.geometry.clusters);
        for (0..count) |index| {
            const cluster: u16 = @intCast(first + index);
            writer.setNext(cluster, if (index + 1 == count) end_of_chain else cluster + 1);
        }
        writer.cluster_next += @intCast(count);
        return .{ .first = first, .count = @intCast(count) };
    }

    fn bytesOf(writer: *VolumeWriter, chain: Chain, size: usize) []u8 {
        if (chain.count == 0) return &.{};
        const sector = writer.geometry.first_data + (chain.first - 2);
        return writer.volume[@as(usize, sector) * sector_size ..][0..size];
    }

    fn setNext(writer: *VolumeWriter, cluster: u16, next: u16) void {
        const at = reserved_sectors * sector_size + @as(usize, cluster) * 2;
        std.mem.writeInt(u16, writer.volume[at..][0..2], next, .little);
    }

    fn copyFat(writer: *VolumeWriter) void {
        const size = @as(usize, writer.geometry.fat_sectors) * sector_size;
        const first = writer.volume[reserved_sectors * sector_size ..][0..size];
        @memcpy(writer.volume[reserved_sectors * sector_size + size ..][0..size], first);
    }

    /// Written last: the serial number is a checksum of everything else.
    fn bootSector(writer: *VolumeWriter, options: Options, total_sectors: u32) void {
        const serial = std.hash.Crc32.hash(writer.volume);
        const sector = writer.volume[0..sector_size];
        var fields: std.Io.Writer = .fixed(sector);
        const f: Fields = .{ .writer = &fields };
        f.bytes("\xeb\x3c\x90BOOTFARM");
        f.int(u16, sector_size);
        f.int(u8, 1); // sectors per cluster
        f.int(u16, reserved_sectors);
        f.int(u8, fat_count);
        f.int(u16, root_entries);
        f.int(u16, if (total_sectors < 1 << 16) @intCast(total_sectors) else 0);
        f.int(u8, media_fixed);
        f.int(u16, @intCast(writer.geometry.fat_sectors));
        f.int(u16, 32); // sectors per track, as in the partition table
        f.int(u16, 64); // heads
        f.int(u32, options.hidden_sectors);
        f.int(u32, if (total_sectors < 1 << 16) 0 else total_sectors);
        f.int(u8, 0x80); // drive
        f.int(u8, 0);
        f.int(u8, 0x29); // the next three fields are present
        f.int(u32, serial);
        f.bytes(&fat_directory.padded(11, options.label));
        f.bytes("FAT16   ");
        // A BIOS cannot start it: int 18h ("no boot"), then halt.
        f.bytes("\xcd\x18\xf4\xeb\xfd");
        sector[510..512].* = .{ 0x55, 0xaa };
    }
};

/// Writes little-endian fields into a buffer that holds all of them.
const Fields = struct {
    writer: *std.Io.Writer,

    fn int(fields: Fields, comptime T: type, value: T) void {
        fields.writer.writeInt(T, value, .little) catch unreachable;
    }

    fn bytes(fields: Fields, value: []const u8) void {
        fields.writer.writeAll(value) catch unreachable;
    }
};

fn clustersFor(size: usize) u32 {
    return @intCast(std.math.divCeil(usize, size, sector_size) catch unreachable);
}

fn folderClusters(children: []const Node) u32 {
    var entries: usize = 2;
    for (children) |child| entries += fat_directory.entriesFor(child.name);
    return clustersFor(entries * fat_directory.entry_size);
}

fn clustersOf(nodes: []const Node) usize {
    var count: usize = 0;
    for (nodes) |node| count += switch (node.content) {
        .file => |bytes| clustersFor(bytes.len),
        .folder => |children| folderClusters(children) + clustersOf(children),
    };
    return count;
}
