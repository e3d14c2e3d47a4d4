//! Reads FAT12, FAT16 and FAT32 with long names: EFI system partitions and boot partitions. Layout:
//! Microsoft's "FAT: General Overview of On-Disk Format" 1.03. A chain is followed for at most as
//! many clusters as the volume has.

const std = @import("std");
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;
const int = volume_module.int;

pub const name_size_max = 255 * 3;
const entry_size = 32;
/// 65536 entries, the format's limit.
const directory_size_max = 65536 * entry_size;

pub const OpenError = Error || error{NotFat};
pub const Error = volume_module.ReadError || error{Corrupt};

const Width = enum { fat12, fat16, fat32 };

pub const Fat = struct {
    volume: Volume,
    width: Width,
    sector_size: u32,
    cluster_size: u32,
    /// Bytes from the start of the volume.
    table_at: u64,
    root_at: u64,
    root_size: u32,
    data_at: u64,
    /// The first cluster has number 2.
    clusters: u32,
    root_cluster: u32,

    pub fn open(volume: Volume) OpenError!Fat {
        const boot = volume.readArray(512, 0) catch |reason| switch (reason) {
            error.BeyondTheEnd => return error.NotFat,
            else => return reason,
        };
        if (boot[510] != 0x55 or boot[511] != 0xaa) return error.NotFat;
        if (boot[0] != 0xeb and boot[0] != 0xe9) return error.NotFat;
        const sector_size: u32 = int(u16, &boot, 11);
        const sectors_per_cluster: u32 = boot[13];
        const reserved: u32 = int(u16, &boot, 14);
        const table_count: u32 = boot[16];
        if (sector_size < 512 or sector_size > 4096 or
            !std.math.isPowerOfTwo(sector_size)) return error.NotFat;
        if (sectors_per_cluster == 0 or
            !std.math.isPowerOfTwo(sectors_per_cluster)) return error.NotFat;
        if (reserved == 0 or table_count == 0 or table_count > 2) return error.NotFat;
        const small: u32 = int(u16, &boot, 22);
        const table_sectors = if (small != 0) small else int(u32, &boot, 36);
        const total_small: u32 = int(u16, &boot, 19);
        const total = if (total_small != 0) total_small else int(u32, &boot, 32);
        const root_size = @as(u32, int(u16, &boot, 17)) * entry_size;
        const root_sectors = (root_size + sector_size - 1) / sector_size;
        const before: u64 = reserved + @as(u64, table_count) * table_sectors + root_sectors;
        if (table_sectors == 0 or before >= total) return error.NotFat;
        const clusters: u32 = @intCast((total - before) / sectors_per_cluster);
        const width: Width =
            if (clusters < 4085) .fat12 else if (clusters < 65525) .fat16 else .fat32;
        const table_at = @as(u64, reserved) * sector_size;
        const root_at = table_at + @as(u64, table_count) * table_sectors * sector_size;
        const fat: Fat = .{
            .volume = volume,
            .width = width,
            .sector_size = sector_size,
            .cluster_size = sectors_per_cluster * sector_size,
            .table_at = table_at,
            .root_at = root_at,
            .root_size = root_size,
            .data_at = root_at + @as(u64, root_sectors) * sector_size,
            .clusters = clusters,
            .root_cluster = if (width == .fat32) int(u32, &boot, 44) else 0,
        };
        if (fat.tableSizeNeeded() > @as(u64, table_sectors) * sector_size) return error.Corrupt;
        return fat;
    }

    fn tableSizeNeeded(fat: *const Fat) u64 {
        const count: u64 = @as(u64, fat.clusters) + 2;
        return switch (fat.width) {
            .fat12 => (count * 3 + 1) / 2,
            .fat16 => count * 2,
            .fat32 => count * 4,
        };
    }

    pub fn size(fat: *const Fat) u64 {
        return fat.data_at + @as(u64, fat.clusters) * fat.cluster_size;
    }

    pub fn root(fat: *const Fat) Node {
        return .{
            .is_directory = true,
            .size = fat.root_size,
            .cluster = fat.root_cluster,
            .is_fixed_root = fat.width != .fat32,
        };
    }

    /// Returns the next cluster of a chain, or null at the end.
    pub fn nextCluster(fat: *const Fat, cluster: u32) Error!?u32 {
        const next: u32 = switch (fat.width) {
            .fat12 => next: {
                const raw = try fat.tableEntry(2, @as(u64, cluster) + cluster / 2);
                const pair: u32 = int(u16, &raw, 0);
                break :next if (cluster % 2 == 0) pair & 0xfff else pair >> 4;
            },
            .fat16 => int(u16, &try fat.tableEntry(2, @as(u64, cluster) * 2), 0),
            .fat32 => int(u32, &try fat.tableEntry(4, @as(u64, cluster) * 4), 0) & 0x0fffffff,
        };
        const end: u32 = switch (fat.width) {
            .fat12 => 0xff8,
            .fat16 => 0xfff8,
            .fat32 => 0x0ffffff8,
        };
        if (next >= end) return null;
        try fat.check(next);
        return next;
    }

    fn tableEntry(fat: *const Fat, comptime bytes: usize, at: u64) Error![bytes]u8 {
        var raw: [bytes]u8 = undefined;
        try fat.read(&raw, fat.table_at + at);
        return raw;
    }

    pub fn check(fat: *const Fat, cluster: u32) error{Corrupt}!void {
        if (cluster < 2 or cluster - 2 >= fat.clusters) return error.Corrupt;
    }

    fn read(fat: *const Fat, buffer: []u8, at: u64) Error!void {
        return fat.volume.read(buffer, at) catch |reason| switch (reason) {
            error.BeyondTheEnd => error.Corrupt,
            else => reason,
        };
    }
};

/// A file or directory; holds values only.
pub const Node = struct {
    is_directory: bool,
    /// Bytes; a directory has the size of its chain.
    size: u32,
    cluster: u32,
    /// The root of FAT12 and FAT16, which is not a chain.
    is_fixed_root: bool = false,
};

/// The content of a node. It remembers its position in the chain, so a sequential read looks each
/// cluster up once.
pub const File = struct {
    fat: *const Fat,
    node: Node,
    /// Index of `cluster` within the file.
    index: u32 = 0,
    cluster: ?u32 = null,

    /// Fills `buffer` from byte `offset`; for a directory, returns false if its chain ends before.
    pub fn read(file: *File, buffer: []u8, offset: u64) Error!bool {
        const fat = file.fat;
        const node = &file.node;
        const is_bounded = !node.is_directory or node.is_fixed_root;
        if (is_bounded and
            (buffer.len > node.size or offset > node.size - buffer.len)) return error.BeyondTheEnd;
        if (node.is_fixed_root) {
            try fat.read(buffer, fat.root_at + offset);
            return true;
        }
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            if (!try file.seek(@intCast(at / fat.cluster_size))) {
                if (node.is_directory) return false;
                return error.Corrupt;
            }
            const within = at % fat.cluster_size;
            const part =
                buffer[filled..][0..@intCast(@min(buffer.len - filled, fat.cluster_size - within))];
            try fat.read(
                part,
                fat.data_at + @as(u64, file.cluster.? - 2) * fat.cluster_size + within,
            );
            filled += part.len;
        }
        return true;
    }

    fn seek(file: *File, wanted: u32) Error!bool {
        if (wanted >= file.fat.clusters) return false;
        if (file.cluster == null or file.index > wanted) {
            file.fat.check(file.node.cluster) catch
                return if (file.node.is_directory) error.Corrupt else false;
            file.cluster = file.node.cluster;
            file.index = 0;
        }
        while (file.index < wanted) : (file.index += 1)
            file.cluster = try file.fat.nextCluster(file.cluster.?) orelse return false;
        return true;
    }
};

pub const Entry = struct { name: []const u8, node: Node };

pub const Directory = struct {
    file: File,
    at: u32 = 0,
    name: LongName = .{},
    text: [name_size_max]u8 = undefined,

    pub fn open(fat: *const Fat, node: Node) Error!Directory {
        if (!node.is_directory) return error.Corrupt;
        return .{ .file = .{ .fat = fat, .node = node } };
    }

    /// Returns null at the end; the name is valid until the next call.
    pub fn next(directory: *Directory) Error!?Entry {
        const fat = directory.file.fat;
        while (directory.at < directory_size_max) {
            var raw: [entry_size]u8 = undefined;
            if (directory.file.node.is_fixed_root and
                directory.at + entry_size > directory.file.node.size) return null;
            if (!try directory.file.read(&raw, directory.at)) return null;
            directory.at += entry_size;
            if (raw[0] == 0) return null;
            const attributes = raw[11];
            if (raw[0] == 0xe5 or attributes & 0x08 != 0) {
                if (raw[0] != 0xe5 and
                    attributes == 0x0f) directory.name.add(&raw) else directory.name = .{};
                continue;
            }
            const long = directory.name.take(&raw, &directory.text);
            const name = long orelse shortName(&raw, &directory.text);
            if (raw[0] == '.') continue;
            const upper: u32 = if (fat.width == .fat32) int(u16, &raw, 20) else 0;
            const cluster = upper << 16 | int(u16, &raw, 26);
            const is_directory = attributes & 0x10 != 0;
            return .{
                .name = name,
                .node = .{
                    .is_directory = is_directory,
                    .size = int(u32, &raw, 28),
                    .cluster = cluster,
                },
            };
        }
        return null;
    }
};

/// The parts of a long name come in reverse order, before the entry that they name.
const LongName = struct {
    units: [20 * 13]u16 = undefined,
    /// Parts still to come; null if none was started.
    left: ?u8 = null,
    parts: u8 = 0,
    sum: u8 = 0,

    const places = [13]u8{ 1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30 };

    fn add(name: *LongName, raw: *const [entry_size]u8) void {
        const number = raw[0] & 0x3f;
        if (raw[0] & 0x40 != 0) name.* = .{ .left = number, .parts = number, .sum = raw[13] };
        const left = name.left orelse return;
        if (number == 0 or number > 20 or number != left or raw[13] != name.sum) {
            name.* = .{};
            return;
        }
        for (places, 0..) |place, index| name.units[
            (number - 1) * @as(usize, 13) +
                index
        ] = int(u16, raw, place);
        name.left = number - 1;
    }

    /// Returns null if no long name belongs to this entry, and resets the name.
    fn take(name: *LongName, raw: *const [entry_size]u8, buffer: *[name_size_max]u8) ?[]const u8 {
        defer name.* = .{};
        if (name.left != 0 or name.parts == 0) return null;
        var sum: u8 = 0;
        for (raw[0..11]) |byte| sum = std.math.rotr(u8, sum, 1) +% byte;
        if (sum != name.sum) return null;
        const all = name.units[0 .. name.parts * @as(usize, 13)];
        const units = all[0 .. std.mem.findScalar(u16, all, 0) orelse all.len];
        if (units.len == 0 or units.len > 255) return null;
        const size = std.unicode.utf16LeToUtf8(buffer, units) catch return null;
        return buffer[0..size];
    }
};

/// Stem and extension, each in lower case where the entry says so.
fn shortName(raw: *const [entry_size]u8, buffer: *[name_size_max]u8) []const u8 {
    const stem = std.mem.trimEnd(u8, raw[0..8], " ");
    const extension = std.mem.trimEnd(u8, raw[8..11], " ");
    const dot = if (extension.len > 0) "." else "";
    // 12 bytes at most.
    const name = std.mem.print(buffer, "{s}{s}{s}", .{ stem, dot, extension }) catch unreachable;
    if (raw[12] & 0x08 != 0) for (buffer[0..stem.len]) |*byte| {
        byte.* = std.ascii.toLower(byte.*);
    };
    if (raw[12] & 0x10 != 0) for (buffer[name.len - extension.len .. name.len]) |*byte| {
        byte.* = std.ascii.toLower(byte.*);
    };
    return name;
}

/// Ignores case.
pub fn find(fat: *const Fat, node: Node, name: []const u8) Error!?Node {
    var directory = try Directory.open(fat, node);
    while (try directory.next()) |entry|
        if (std.ascii.eqlIgnoreCase(entry.name, name)) return entry.node;
    return null;
}
