//! Finds the partition that its owner has given to bootfarm by its name, in a GPT (UEFI 2.10,
//! chapter 5.3). The caller writes to it, so this is stricter than a kernel: a table with wrong
//! checksums has no such partition, and one that overlaps another partition, or the table itself,
//! does not count.

const std = @import("std");
const assert = std.debug.assert;

pub const name = "bootfarm-cache";
/// Bytes; a longer table has no partition of ours.
pub const entries_size_max = 128 * 128;
pub const header_size_max = 4096;

const header_size_min = 92;
const entry_size_min = 128;
const entry_name_at = 56;
const entry_name_size = 72;
/// A disk of 2^54 sectors has 2^63 bytes and more.
const sectors_max = 1 << 50;

pub const Geometry = struct {
    /// Bytes: 512 to 4096, a power of two.
    sector_size: u32,
    /// Bytes.
    disk_size: u64,

    fn sectors(geometry: Geometry) u64 {
        return geometry.disk_size / geometry.sector_size;
    }
};

/// The header's description of the entries.
pub const Header = struct {
    /// Byte offset in the disk.
    entries_at: u64,
    entry_size: u32,
    entry_count: u32,
    entries_checksum: u32,
    /// Sectors that partitions may have.
    usable_first: u64,
    usable_last: u64,

    pub fn entriesSize(header: *const Header) u32 {
        return header.entry_size * header.entry_count;
    }
};

pub const MarkedPartition = struct {
    /// As the kernel numbers it, from 1.
    number: u16,
    /// Byte offset in the disk, and size.
    first: u64,
    size: u64,
};

/// `sector` is the disk's second one, whole. Returns null for a table that cannot be trusted.
pub fn parseHeader(sector: []const u8, geometry: Geometry) ?Header {
    assert(sector.len == geometry.sector_size and sector.len <= header_size_max);
    if (!std.mem.startsWith(u8, sector, "EFI PART")) return null;
    const size = int(u32, sector[12..16]);
    if (size < header_size_min or size > sector.len) return null;
    var bytes: [header_size_max]u8 = undefined;
    @memcpy(bytes[0..size], sector[0..size]);
    @memset(bytes[16..20], 0);
    if (std.hash.Crc32.hash(bytes[0..size]) != int(u32, sector[16..20])) return null;
    if (int(u64, sector[24..32]) != 1) return null;
    const entries_sector = int(u64, sector[72..80]);
    const header: Header = .{
        .entries_at = if (entries_sector < sectors_max) entries_sector *
            geometry.sector_size else return null,
        .entry_count = int(u32, sector[80..84]),
        .entry_size = int(u32, sector[84..88]),
        .entries_checksum = int(u32, sector[88..92]),
        .usable_first = int(u64, sector[40..48]),
        .usable_last = int(u64, sector[48..56]),
    };
    if (header.entry_size < entry_size_min or header.entry_size > entries_size_max) return null;
    if (header.entry_count == 0 or header.entry_count > entries_size_max / header.entry_size)
        return null;
    if (entries_sector < 2 or header.usable_last >= geometry.sectors()) return null;
    const entries_end = header.entries_at + header.entriesSize();
    if (entries_end > header.usable_first *| geometry.sector_size) return null;
    return header;
}

/// Returns the largest partition of that name; `entries` are all that the header describes.
pub fn find(header: *const Header, entries: []const u8, geometry: Geometry) ?MarkedPartition {
    assert(entries.len == header.entriesSize());
    if (std.hash.Crc32.hash(entries) != header.entries_checksum) return null;
    var largest: ?MarkedPartition = null;
    for (0..header.entry_count) |index| {
        const entry = entryAt(header, entries, index);
        if (!isMarked(entry)) continue;
        const extent = Extent.of(entry) orelse continue;
        if (extent.first < header.usable_first or extent.last > header.usable_last) continue;
        if (overlapsAnother(header, entries, index, extent)) continue;
        const size = (extent.last - extent.first + 1) * geometry.sector_size;
        if (largest != null and largest.?.size >= size) continue;
        largest = .{
            .number = @intCast(index + 1),
            .first = extent.first * geometry.sector_size,
            .size = size,
        };
    }
    return largest;
}

const Extent = struct {
    first: u64,
    last: u64,

    /// Returns null for an entry that is empty or invalid.
    fn of(entry: []const u8) ?Extent {
        if (std.mem.allEqual(u8, entry[0..16], 0)) return null;
        const extent: Extent =
            .{ .first = int(u64, entry[32..40]), .last = int(u64, entry[40..48]) };
        return if (extent.last < extent.first or extent.last >= sectors_max) null else extent;
    }
};

fn overlapsAnother(header: *const Header, entries: []const u8, ours: usize, extent: Extent) bool {
    for (0..header.entry_count) |index| {
        if (index == ours) continue;
        const entry = entryAt(header, entries, index);
        if (std.mem.allEqual(u8, entry[0..16], 0)) continue;
        // The position of an invalid entry is unknown.
        const other = Extent.of(entry) orelse return true;
        if (other.first <= extent.last and extent.first <= other.last) return true;
    }
    return false;
}

fn entryAt(header: *const Header, entries: []const u8, index: usize) []const u8 {
    return entries[index * header.entry_size ..][0..header.entry_size];
}

/// The name in UTF-16, and nothing behind it.
fn isMarked(entry: []const u8) bool {
    var wanted: [entry_name_size]u8 = @splat(0);
    for (name, 0..) |letter, index| wanted[2 * index] = letter;
    return std.mem.eql(u8, entry[entry_name_at..][0..entry_name_size], &wanted);
}

fn int(comptime T: type, bytes: *const [@divExact(@bitSizeOf(T), 8)]u8) T {
    return std.mem.readInt(T, bytes, .little);
}

/// A table for tests: a disk of 100 MiB with these partitions.
pub const TestTable = struct {
    header: [512]u8 = @splat(0),
    entries: [entries_size_max]u8 = @splat(0),

    pub const geometry: Geometry = .{ .sector_size = 512, .disk_size = 100 << 20 };
    pub const Entry = struct { name: []const u8, first: u64, last: u64 };

    pub fn init(partitions: []const Entry) TestTable {
        var table: TestTable = .{};
        for (partitions, 0..) |partition, index| {
            const entry = table.entries[index * entry_size_min ..][0..entry_size_min];
            entry[0] = 1;
            std.mem.writeInt(u64, entry[32..40], partition.first, .little);
            std.mem.writeInt(u64, entry[40..48], partition.last, .little);
            for (partition.name, 0..) |letter, at| entry[entry_name_at + 2 * at] = letter;
        }
        const header = &table.header;
        @memcpy(header[0..8], "EFI PART");
        std.mem.writeInt(u32, header[12..16], header_size_min, .little);
        std.mem.writeInt(u64, header[24..32], 1, .little);
        std.mem.writeInt(u64, header[40..48], 34, .little);
        std.mem.writeInt(u64, header[48..56], geometry.sectors() - 34, .little);
        std.mem.writeInt(u64, header[72..80], 2, .little);
        std.mem.writeInt(u32, header[80..84], 128, .little);
        std.mem.writeInt(u32, header[84..88], entry_size_min, .little);
        table.seal();
        return table;
    }

    pub fn seal(table: *TestTable) void {
        std.mem.writeInt(u32, table.header[88..92], std.hash.Crc32.hash(&table.entries), .little);
        std.mem.writeInt(u32, table.header[16..20], 0, .little);
        const checksum = std.hash.Crc32.hash(table.header[0..header_size_min]);
        std.mem.writeInt(u32, table.header[16..20], checksum, .little);
    }

    pub fn found(table: *const TestTable) ?MarkedPartition {
        const header = parseHeader(&table.header, geometry) orelse return null;
        return find(&header, table.entries[0..header.entriesSize()], geometry);
    }
};

const testing = std.testing;

test "the largest partition of that name is found, whatever lies beside it" {
    const table: TestTable = .init(&.{
        .{ .name = "root", .first = 2048, .last = 9999 },
        .{ .name = name, .first = 10_000, .last = 19_999 },
        .{ .name = name, .first = 20_000, .last = 99_999 },
        .{ .name = name, .first = 100_000, .last = 110_000 },
    });
    try testing.expectEqual(
        MarkedPartition{ .number = 3, .first = 20_000 * 512, .size = 80_000 * 512 },
        table.found().?,
    );
}

test "a similar name does not match" {
    for ([_][]const u8{
        "bootfarm-cach",
        "bootfarm-cache2",
        "Bootfarm-cache",
        "",
        "bootfarm-cache\x00x",
    }) |other| {
        const table: TestTable = .init(&.{.{ .name = other, .first = 2048, .last = 99_999 }});
        try testing.expectEqual(null, table.found());
    }
}

test "a partition that overlaps another one, the table or the disk's end does not match" {
    const ours: TestTable.Entry = .{ .name = name, .first = 2048, .last = 99_999 };
    try testing.expect(TestTable.init(&.{ours}).found() != null);
    const wrong = [_][]const TestTable.Entry{
        &.{ ours, .{ .name = "root", .first = 99_999, .last = 120_000 } },
        &.{ .{ .name = "all", .first = 34, .last = 150_000 }, ours },
        &.{ .{ .name = "turned", .first = 500, .last = 400 }, ours },
        &.{.{ .name = name, .first = 0, .last = 99_999 }},
        &.{.{ .name = name, .first = 33, .last = 99_999 }},
        &.{.{ .name = name, .first = 2048, .last = (100 << 20) / 512 - 1 }},
        &.{.{ .name = name, .first = 2048, .last = std.math.maxInt(u64) }},
        &.{.{ .name = name, .first = std.math.maxInt(u64), .last = std.math.maxInt(u64) }},
        &.{.{ .name = name, .first = 3000, .last = 2048 }},
    };
    for (wrong) |entries| try testing.expectEqual(null, TestTable.init(entries).found());
}

test "an invalid table, or one with a wrong checksum, has no partition of ours" {
    const good: TestTable = .init(&.{.{ .name = name, .first = 2048, .last = 99_999 }});
    // Changes of the header, each with a corrected checksum: size, own sector, last usable sector,
    // entries' position, count, size.
    const changes = [_]struct { usize, u64, usize }{
        .{ 12, 91, 4 },                   .{ 12, 513, 4 },     .{ 24, 2, 8 },
        .{ 48, (100 << 20) / 512, 8 },    .{ 40, 33, 8 },      .{ 72, 1, 8 },
        .{ 72, 3, 8 },                    .{ 80, 0, 4 },       .{ 72, std.math.maxInt(u64), 8 },
        .{ 80, 129, 4 },                  .{ 84, 127, 4 },     .{ 84, 129, 4 },
        .{ 80, std.math.maxInt(u32), 4 }, .{ 84, 1 << 31, 4 }, .{ 84, 0, 4 },
        .{ 0, 0, 8 },
    };
    for (changes) |change| {
        var table = good;
        var bytes: [8]u8 = undefined;
        std.mem.writeInt(u64, &bytes, change[1], .little);
        @memcpy(table.header[change[0]..][0..change[2]], bytes[0..change[2]]);
        table.seal();
        try testing.expectEqual(null, table.found());
    }
    for (0..header_size_min * 8) |bit| {
        var table = good;
        table.header[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try testing.expectEqual(null, table.found());
    }
    for ([_]usize{ 0, 32, 40, 56, 127, entries_size_max - 1 }) |at| {
        var table = good;
        table.entries[at] ^= 1;
        try testing.expectEqual(null, table.found());
    }
}
