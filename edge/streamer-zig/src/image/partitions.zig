//! Partitions of a disk: MBR with logical partitions, GPT with both copies (UEFI 2.10, chapter 5),
//! which may count in sectors of 512 or 4096 bytes. Checksums are enforced: a GPT with two bad
//! copies is damaged, never guessed.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const volume_module = @import("volume.zig");
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;
const int = volume_module.int;
const partition_table = wire.partition_table;
const sector_size = partition_table.sector_size;
/// Of disks that are addressed in larger sectors ("4Kn").
const large_sector_size = 4096;

/// More than a bootable disk has; a longer table is refused, not cut.
pub const partitions_max = 128;
const logical_max = 64;

pub const Table = enum { none, mbr, gpt };

/// Purpose of a partition according to its table.
pub const Purpose = enum {
    unknown,
    efi_system,
    extended_boot,
    linux,
    swap,
    lvm,
    raid,
    luks,
    bios_boot,
};

pub const Partition = struct {
    /// Number from 1, as the kernel assigns it.
    number: u16,
    /// Bytes from the start of the disk.
    first: u64,
    /// Bytes, according to the table; not 0.
    size: u64,
    purpose: Purpose,
};

pub const Partitions = base.BoundedArray(Partition, partitions_max);

pub const Layout = struct {
    table: Table,
    /// Bytes.
    sector_size: u32 = sector_size,
    partitions: Partitions = .empty,
    /// The table at the start of the disk is damaged; this is the copy at its end.
    is_backup: bool = false,
};

pub const Error = ReadError || error{
    /// Both copies of the GPT are damaged.
    TableDamaged,
    /// More than `partitions_max`, or a chain of logical partitions that does not end.
    TooManyPartitions,
};

/// `disk` is the whole disk.
pub fn read(disk: *const Volume) Error!Layout {
    const first = try disk.readArray(sector_size, 0);
    if (try hasMagicAt(disk, large_sector_size) and
        !try hasMagicAt(disk, sector_size)) return readGpt(disk);
    const entries = partition_table.mbrEntries(&first) orelse return .{ .table = .none };
    for (entries) |entry| if (entry.isGpt()) return readGpt(disk);
    return readMbr(disk, &entries);
}

fn readMbr(disk: *const Volume, entries: []const partition_table.MbrEntry) Error!Layout {
    var layout: Layout = .{ .table = .mbr };
    var has_extended = false;
    for (entries, 1..) |entry, number| {
        if (entry.isEmpty() or entry.isExtended()) continue;
        try append(&layout, &entry, 0, @intCast(number));
    }
    for (entries) |entry| {
        if (entry.isEmpty() or !entry.isExtended() or has_extended) continue;
        has_extended = true;
        try readLogical(disk, &layout, entry.first);
    }
    if (layout.partitions.count == 0 and !has_extended) layout.table = .none;
    return layout;
}

fn append(
    layout: *Layout,
    entry: *const partition_table.MbrEntry,
    origin: u64,
    number: u16,
) Error!void {
    layout.partitions.append(.{
        .number = number,
        .first = (origin + entry.first) * sector_size,
        .size = @as(u64, entry.count) * sector_size,
        .purpose = switch (entry.kind) {
            0xef => .efi_system,
            0x83 => .linux,
            0x82 => .swap,
            0x8e => .lvm,
            0xfd => .raid,
            0xe8 => .luks,
            0xea => .extended_boot,
            else => .unknown,
        },
    }) catch return error.TooManyPartitions;
}

/// Each logical partition has its own boot record. The first entry is the partition, relative to
/// the record; the second leads to the next record, relative to the start of the extended
/// partition.
fn readLogical(disk: *const Volume, layout: *Layout, extended: u64) Error!void {
    var at = extended;
    for (0..logical_max) |index| {
        const sector = disk.readArray(
            sector_size,
            at * sector_size,
        ) catch |reason| switch (reason) {
            // The disk is truncated; the caller that looks for a missing partition reports it.
            error.BeyondTheEnd => return,
            else => return reason,
        };
        const entries = partition_table.mbrEntries(&sector) orelse return;
        if (!entries[0].isEmpty() and !entries[0].isExtended())
            try append(layout, &entries[0], at, @intCast(5 + index));
        if (entries[1].isEmpty() or !entries[1].isExtended()) return;
        at = extended + entries[1].first;
    }
    return error.TooManyPartitions;
}

const gpt = struct {
    const magic = "EFI PART";
    const header_size_min = 92;
    const entry_size_min = 128;
    const entry_size_max = 4096;
    const entries_size_max = 1 << 20;
};

fn hasMagicAt(disk: *const Volume, offset: u64) ReadError!bool {
    const magic = disk.readArray(gpt.magic.len, offset) catch |reason| switch (reason) {
        error.BeyondTheEnd => return false,
        else => return reason,
    };
    return std.mem.eql(u8, &magic, gpt.magic);
}

/// Tries the tables at the start before those at the end. A header says which sector it is in, so
/// that none is taken for one of the other size.
fn readGpt(disk: *const Volume) Error!Layout {
    for ([_]bool{ false, true }) |is_backup| for ([_]u32{ sector_size, large_sector_size }) |size| {
        const sectors = disk.size / size;
        if (sectors < 2) continue;
        const sector = if (is_backup) sectors - 1 else 1;
        var layout = readGptAt(disk, size, sector) catch |reason| switch (reason) {
            error.TableDamaged, error.BeyondTheEnd => continue,
            else => return reason,
        };
        layout.is_backup = is_backup;
        return layout;
    };
    return error.TableDamaged;
}

fn readGptAt(disk: *const Volume, size: u32, sector: u64) Error!Layout {
    var header = try disk.readArray(sector_size, sector * size);
    if (!std.mem.startsWith(u8, &header, gpt.magic)) return error.TableDamaged;
    const header_size = int(u32, &header, 12);
    if (header_size < gpt.header_size_min or header_size > sector_size) return error.TableDamaged;
    const header_sum = int(u32, &header, 16);
    @memset(header[16..20], 0);
    if (std.hash.Crc32.hash(header[0..header_size]) != header_sum) return error.TableDamaged;
    if (int(u64, &header, 24) != sector) return error.TableDamaged;
    const entries_at = std.math.mul(u64, int(u64, &header, 72), size) catch
        return error.TableDamaged;
    const count = int(u32, &header, 80);
    const entry_size = int(u32, &header, 84);
    if (entry_size < gpt.entry_size_min or
        entry_size > gpt.entry_size_max) return error.TableDamaged;
    if (!std.math.isPowerOfTwo(entry_size)) return error.TableDamaged;
    if (@as(u64, count) * entry_size > gpt.entries_size_max) return error.TooManyPartitions;
    return readGptEntries(disk, size, .{
        .at = entries_at,
        .count = count,
        .size = entry_size,
        .sum = int(u32, &header, 88),
    });
}

const Entries = struct { at: u64, count: u32, size: u32, sum: u32 };

fn readGptEntries(disk: *const Volume, size: u32, entries: Entries) Error!Layout {
    var layout: Layout = .{ .table = .gpt, .sector_size = size };
    const scale = size / sector_size;
    var sum: std.hash.Crc32 = .init();
    var buffer: [gpt.entry_size_max]u8 = undefined;
    for (0..entries.count) |index| {
        const entry = buffer[0..entries.size];
        const at = std.math.add(u64, entries.at, index * entries.size) catch
            return error.TableDamaged;
        try disk.read(entry, at);
        sum.update(entry);
        const extent = partition_table.gptExtent(entry[0..128]) orelse continue;
        layout.partitions.append(.{
            .number = @intCast(index + 1),
            .first = std.math.mul(u64, extent.first, scale) catch return error.TableDamaged,
            .size = std.math.mul(u64, extent.size, scale) catch return error.TableDamaged,
            .purpose = purposeOf(entry[0..16]),
        }) catch return error.TooManyPartitions;
    }
    if (sum.final() != entries.sum) return error.TableDamaged;
    return layout;
}

const types = [_]struct { []const u8, Purpose }{
    .{ "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", .efi_system },
    .{ "bc13c2ff-59e6-4262-a352-b275fd6f7172", .extended_boot },
    .{ "0fc63daf-8483-4772-8e79-3d69d8477de4", .linux },
    .{ "4f68bce3-e8cd-4db1-96e7-fbcaf984b709", .linux },
    .{ "b921b045-1df0-41c3-af44-4c6f280d3fae", .linux },
    .{ "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", .swap },
    .{ "e6d6d379-f507-44c2-a23c-238f2a3df928", .lvm },
    .{ "a19d880f-05fc-4d3b-a006-743f0f84911e", .raid },
    .{ "ca7d7ccb-63ed-4c53-861c-1742536059cc", .luks },
    .{ "21686148-6449-6e6f-744e-656564454649", .bios_boot },
};

fn purposeOf(raw: *const [16]u8) Purpose {
    var text: [36]u8 = undefined;
    // The first three groups are little-endian numbers, the others bytes.
    _ = std.mem.print(&text, "{x:0>8}-{x:0>4}-{x:0>4}-{x}-{x}", .{
        int(u32, raw, 0), int(u16, raw, 4), int(u16, raw, 6), raw[8..10], raw[10..16],
    }) catch unreachable;
    for (types) |known| if (std.mem.eql(u8, &text, known[0])) return known[1];
    return .unknown;
}

const testing = std.testing;
const MemoryDisk = volume_module.MemoryDisk;

fn readBytes(bytes: []const u8) Error!Layout {
    var disk: MemoryDisk = .{ .bytes = bytes };
    const source = disk.source();
    var work: volume_module.ReadBudget = .{ .reads_left = 10_000 };
    return read(&.whole(&source, &work));
}

const gpt_sectors = 2 * 34 + 64;

/// A disk with both copies of a GPT, and a partition of 64 sectors, number 2, for a root file
/// system.
pub fn testGpt() [gpt_sectors * sector_size]u8 {
    var disk: [gpt_sectors * sector_size]u8 = @splat(0);
    disk[510..512].* = .{ 0x55, 0xaa };
    disk[446 + 4] = 0xee;
    disk[446 + 8] = 1;
    disk[446 + 12] = 0xff;
    var entries: [128 * 128]u8 = @splat(0);
    const entry = entries[128..256];
    _ = std.fmt.hexToBytes(entry[0..16], "af3dc60f838472478e793d69d8477de4") catch unreachable;
    std.mem.writeInt(u64, entry[32..40], 34, .little);
    std.mem.writeInt(u64, entry[40..48], 34 + 63, .little);
    writeTestHeader(&disk, &entries, .{ .at = 1, .other = gpt_sectors - 1, .entries = 2 });
    writeTestHeader(
        &disk,
        &entries,
        .{ .at = gpt_sectors - 1, .other = 1, .entries = gpt_sectors - 33 },
    );
    return disk;
}

fn writeTestHeader(
    disk: []u8,
    entries: []const u8,
    sectors: struct { at: u64, other: u64, entries: u64, size: u64 = sector_size },
) void {
    @memcpy(disk[@intCast(sectors.entries * sectors.size)..][0..entries.len], entries);
    const header = disk[@intCast(sectors.at * sectors.size)..][0..gpt.header_size_min];
    @memset(header, 0);
    @memcpy(header[0..8], gpt.magic);
    std.mem.writeInt(u32, header[12..16], gpt.header_size_min, .little);
    std.mem.writeInt(u64, header[24..32], sectors.at, .little);
    std.mem.writeInt(u64, header[32..40], sectors.other, .little);
    std.mem.writeInt(u64, header[72..80], sectors.entries, .little);
    std.mem.writeInt(u32, header[80..84], 128, .little);
    std.mem.writeInt(u32, header[84..88], 128, .little);
    std.mem.writeInt(u32, header[88..92], std.hash.Crc32.hash(entries), .little);
    std.mem.writeInt(u32, header[16..20], std.hash.Crc32.hash(header), .little);
}

test "a GPT is read from its copy at the end of the disk if the first is damaged" {
    var disk = testGpt();
    const wanted: Partition =
        .{ .number = 2, .first = 34 * 512, .size = 64 * 512, .purpose = .linux };
    const whole = try readBytes(&disk);
    try testing.expectEqual(Table.gpt, whole.table);
    try testing.expectEqualSlices(Partition, &.{wanted}, whole.partitions.constSlice());
    try testing.expect(!whole.is_backup);
    for ([_]usize{ 512 + 30, 1024 + 128 + 33 }) |damaged| {
        disk = testGpt();
        disk[damaged] ^= 4;
        const backup = try readBytes(&disk);
        try testing.expect(backup.is_backup);
        try testing.expectEqualSlices(Partition, &.{wanted}, backup.partitions.constSlice());
        disk[disk.len - 512 + 30] ^= 4;
        try testing.expectError(error.TableDamaged, readBytes(&disk));
    }
}

const large_sectors = 2 * 6 + 8;

/// A disk of sectors of 4096 bytes with both copies of a GPT; partition 2 takes sectors 6 to 13.
fn testLargeGpt() [large_sectors * large_sector_size]u8 {
    var disk: [large_sectors * large_sector_size]u8 = @splat(0);
    disk[510..512].* = .{ 0x55, 0xaa };
    disk[446 + 4] = 0xee;
    disk[446 + 8] = 1;
    var entries: [128 * 128]u8 = @splat(0);
    _ = std.fmt.hexToBytes(entries[128..144], "af3dc60f838472478e793d69d8477de4") catch unreachable;
    std.mem.writeInt(u64, entries[128 + 32 ..][0..8], 6, .little);
    std.mem.writeInt(u64, entries[128 + 40 ..][0..8], 13, .little);
    const last = large_sectors - 1;
    writeTestHeader(&disk, &entries, .{ .at = 1, .other = last, .entries = 2, .size = 4096 });
    writeTestHeader(
        &disk,
        &entries,
        .{ .at = last, .other = 1, .entries = last - 4, .size = 4096 },
    );
    return disk;
}

test "a table that counts in sectors of 4096 bytes is read, from its copy as well" {
    var empty: [64 * 512]u8 = @splat(0);
    try testing.expectEqual(Table.none, (try readBytes(&empty)).table);
    var disk = testLargeGpt();
    for ([_]bool{ false, true }) |is_backup| {
        const layout = try readBytes(&disk);
        try testing.expectEqual(4096, layout.sector_size);
        try testing.expectEqual(is_backup, layout.is_backup);
        try testing.expectEqualSlices(Partition, &.{.{
            .number = 2,
            .first = 6 * 4096,
            .size = 8 * 4096,
            .purpose = .linux,
        }}, layout.partitions.constSlice());
        // The magic as well: the protective record alone leads to the copy.
        disk[4096] = 0;
    }
    disk[disk.len - 4096] ^= 1;
    try testing.expectError(error.TableDamaged, readBytes(&disk));
}

test "a place beyond 2^64 bytes is damage" {
    var disk = testLargeGpt();
    for ([_]usize{ 1, large_sectors - 1 }) |at| {
        const first: usize = if (at == 1) 2 else large_sectors - 5;
        const entries = disk[first * 4096 ..][0 .. 128 * 128];
        std.mem.writeInt(u64, entries[128 + 32 ..][0..8], 1 << 53, .little);
        std.mem.writeInt(u64, entries[128 + 40 ..][0..8], (1 << 53) + 1, .little);
        const header = disk[at * 4096 ..][0..92];
        std.mem.writeInt(u32, header[88..92], std.hash.Crc32.hash(entries), .little);
        @memset(header[16..20], 0);
        std.mem.writeInt(u32, header[16..20], std.hash.Crc32.hash(header), .little);
    }
    try testing.expectError(error.TableDamaged, readBytes(&disk));
}

fn testRecord(sector: []u8, entries: []const [3]u32) void {
    sector[510..512].* = .{ 0x55, 0xaa };
    for (entries, 0..) |entry, index| {
        const raw = sector[446 + 16 * index ..][0..16];
        raw[4] = @intCast(entry[0]);
        std.mem.writeInt(u32, raw[8..12], entry[1], .little);
        std.mem.writeInt(u32, raw[12..16], entry[2], .little);
    }
}

test "logical partitions are followed, and a cycle of them ends" {
    var disk: [64 * 512]u8 = @splat(0);
    testRecord(disk[0..512], &.{ .{ 0x83, 1, 3 }, .{ 0x05, 8, 40 } });
    testRecord(disk[8 * 512 ..][0..512], &.{ .{ 0x82, 1, 4 }, .{ 0x05, 10, 10 } });
    testRecord(disk[18 * 512 ..][0..512], &.{.{ 0x83, 2, 8 }});
    const layout = try readBytes(&disk);
    try testing.expectEqual(Table.mbr, layout.table);
    try testing.expectEqualSlices(Partition, &.{
        .{ .number = 1, .first = 512, .size = 3 * 512, .purpose = .linux },
        .{ .number = 5, .first = 9 * 512, .size = 4 * 512, .purpose = .swap },
        .{ .number = 6, .first = 20 * 512, .size = 8 * 512, .purpose = .linux },
    }, layout.partitions.constSlice());
    testRecord(disk[18 * 512 ..][0..512], &.{ .{ 0x83, 2, 8 }, .{ 0x05, 10, 10 } });
    try testing.expectError(error.TooManyPartitions, readBytes(&disk));
    testRecord(disk[18 * 512 ..][0..512], &.{ .{ 0x83, 2, 8 }, .{ 0x05, 1 << 30, 10 } });
    try testing.expectEqual(3, (try readBytes(&disk)).partitions.count);
}
