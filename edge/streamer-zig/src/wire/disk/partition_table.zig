//! Locates the partitions of a disk with 512-byte sectors: MBR and GPT (UEFI 2.10, chapter 5). Its
//! results decide whether a disk is complete, so it must never be stricter than a kernel, and
//! trusts no length. It does not follow logical partitions (in an extended one); `image`, which
//! reads the rest of a disk too, follows them with the same entries.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const sector_size = 512;
/// The boot sector, GPT's header and the 32 sectors that its 128 entries take.
pub const head_size = 34 * sector_size;
/// More than any bootable image has; further ones are ignored.
pub const partitions_max = 16;

pub const Partition = struct {
    /// As the kernel numbers it, from 1.
    number: u8,
    /// Byte offset in the disk.
    first: u64,
    /// Bytes; not 0.
    size: u64,
};

pub const Partitions = base.BoundedArray(Partition, partitions_max);

/// One of the four entries of a boot record, in sectors.
pub const MbrEntry = struct {
    kind: u8,
    /// From the disk's start; relative to another sector for logical partitions.
    first: u32,
    count: u32,

    pub fn isExtended(entry: *const MbrEntry) bool {
        return std.mem.findScalar(u8, &mbr.types_extended, entry.kind) != null;
    }

    pub fn isEmpty(entry: *const MbrEntry) bool {
        return entry.kind == 0 or entry.first == 0 or entry.count == 0;
    }

    pub fn isGpt(entry: *const MbrEntry) bool {
        return entry.kind == mbr.type_gpt;
    }
};

/// Returns null for a sector that is no boot record, such as a file system's own.
pub fn mbrEntries(sector: *const [sector_size]u8) ?[mbr.entry_count]MbrEntry {
    if (sector[510] != 0x55 or sector[511] != 0xaa) return null;
    var entries: [mbr.entry_count]MbrEntry = undefined;
    for (&entries, 0..) |*entry, index| {
        const raw = sector[mbr.table_offset + index * mbr.entry_size ..][0..mbr.entry_size];
        // A file system's own boot sector has the same signature and code or text here.
        if (raw[0] & 0x7f != 0) return null;
        entry.* = .{
            .kind = raw[mbr.type_offset],
            .first = std.mem.readInt(u32, raw[mbr.first_offset..][0..4], .little),
            .count = std.mem.readInt(u32, raw[mbr.count_offset..][0..4], .little),
        };
    }
    return entries;
}

/// Returns one entry of a GPT, in bytes; null if it is empty or invalid.
pub fn gptExtent(entry: *const [gpt.entry_size]u8) ?struct { first: u64, size: u64 } {
    if (std.mem.allEqual(u8, entry[0..16], 0)) return null;
    const first = std.mem.readInt(u64, entry[32..40], .little);
    const last = std.mem.readInt(u64, entry[40..48], .little);
    if (first == 0 or last < first or last >= gpt.sectors_max) return null;
    return .{ .first = first * sector_size, .size = (last - first + 1) * sector_size };
}

/// Returns no partitions for a disk without a table, such as a file system that fills it.
pub fn read(head: *const [head_size]u8) Partitions {
    if (head[510] != 0x55 or head[511] != 0xaa) return .empty;
    for (0..mbr.entry_count) |index| {
        const at = mbr.table_offset + index * mbr.entry_size + mbr.type_offset;
        if (head[at] == mbr.type_gpt) return readGpt(head);
    }
    return readMbr(&(mbrEntries(head[0..sector_size]) orelse return .empty));
}

const mbr = struct {
    const table_offset = 446;
    const entry_size = 16;
    const entry_count = 4;
    const type_offset = 4;
    const first_offset = 8;
    const count_offset = 12;
    const type_gpt = 0xee;
    const types_extended = [_]u8{ 0x05, 0x0f, 0x85 };
};

fn readMbr(entries: *const [mbr.entry_count]MbrEntry) Partitions {
    var found: Partitions = .empty;
    for (entries, 1..) |entry, number| {
        if (entry.isEmpty() or entry.isExtended()) continue;
        found.append(.{
            .number = @intCast(number),
            .first = @as(u64, entry.first) * sector_size,
            .size = @as(u64, entry.count) * sector_size,
        }) catch unreachable;
    }
    return found;
}

const gpt = struct {
    const magic = "EFI PART";
    const entries_at_offset = sector_size + 72;
    const entry_count_offset = sector_size + 80;
    const entry_size_offset = sector_size + 84;
    /// The position and size of entries that every partitioning tool uses.
    const entries_sector = 2;
    const entry_size = 128;
    const entry_count_max = (head_size - entries_sector * sector_size) / entry_size;
    /// A disk of 2^55 sectors has 2^64 bytes.
    const sectors_max = 1 << 54;
};

fn readGpt(head: *const [head_size]u8) Partitions {
    var found: Partitions = .empty;
    if (!std.mem.startsWith(u8, head[sector_size..], gpt.magic)) return .empty;
    const at = std.mem.readInt(u64, head[gpt.entries_at_offset..][0..8], .little);
    const size = std.mem.readInt(u32, head[gpt.entry_size_offset..][0..4], .little);
    if (at != gpt.entries_sector or size != gpt.entry_size) return .empty;
    const count = std.mem.readInt(u32, head[gpt.entry_count_offset..][0..4], .little);
    for (0..@min(count, gpt.entry_count_max)) |index| {
        const entry = head[gpt.entries_sector * sector_size + index * gpt.entry_size ..];
        const extent = gptExtent(entry[0..gpt.entry_size]) orelse continue;
        found.append(.{
            .number = @intCast(index + 1),
            .first = extent.first,
            .size = extent.size,
        }) catch break;
    }
    return found;
}

comptime {
    assert(gpt.entry_count_max == 128);
    assert(partitions_max >= mbr.entry_count);
}

const testing = std.testing;

/// A disk with an MBR partition of 100 sectors at sector 64, as number 2.
pub fn testMbr() [head_size]u8 {
    var head: [head_size]u8 = @splat(0);
    head[510..512].* = .{ 0x55, 0xaa };
    const entry = head[mbr.table_offset + mbr.entry_size ..][0..mbr.entry_size];
    entry[mbr.type_offset] = 0x83;
    std.mem.writeInt(u32, entry[mbr.first_offset..][0..4], 64, .little);
    std.mem.writeInt(u32, entry[mbr.count_offset..][0..4], 100, .little);
    return head;
}

/// A disk with a GPT partition of 200 sectors at sector 2048, as number 3.
pub fn testGpt() [head_size]u8 {
    var head: [head_size]u8 = @splat(0);
    head[510..512].* = .{ 0x55, 0xaa };
    head[mbr.table_offset + mbr.type_offset] = mbr.type_gpt;
    @memcpy(head[sector_size..][0..8], gpt.magic);
    std.mem.writeInt(u64, head[gpt.entries_at_offset..][0..8], 2, .little);
    std.mem.writeInt(u32, head[gpt.entry_count_offset..][0..4], 128, .little);
    std.mem.writeInt(u32, head[gpt.entry_size_offset..][0..4], 128, .little);
    const entry = head[(gpt.entries_sector * sector_size) + 2 * gpt.entry_size ..];
    entry[0] = 1;
    std.mem.writeInt(u64, entry[32..40], 2048, .little);
    std.mem.writeInt(u64, entry[40..48], 2247, .little);
    return head;
}

test "partitions of both kinds of table have their position, size and number" {
    const of_mbr = read(&testMbr());
    try testing.expectEqual(1, of_mbr.count);
    try testing.expectEqual(
        Partition{ .number = 2, .first = 64 * 512, .size = 100 * 512 },
        of_mbr.buffer[0],
    );
    const of_gpt = read(&testGpt());
    try testing.expectEqual(1, of_gpt.count);
    try testing.expectEqual(
        Partition{ .number = 3, .first = 2048 * 512, .size = 200 * 512 },
        of_gpt.buffer[0],
    );
}

test "a disk without a table has no partitions" {
    var head: [head_size]u8 = @splat(0);
    try testing.expectEqual(0, read(&head).count);
    head = testMbr();
    head[mbr.table_offset] = 'R';
    try testing.expectEqual(0, read(&head).count);
    head = testMbr();
    head[mbr.table_offset + mbr.entry_size + mbr.type_offset] = 0x05;
    try testing.expectEqual(0, read(&head).count);
    head = testGpt();
    head[sector_size] = 'X';
    try testing.expectEqual(0, read(&head).count);
    head = testGpt();
    std.mem.writeInt(u64, head[(2 * sector_size) + 2 * 128 + 40 ..][0..8], 2047, .little);
    try testing.expectEqual(0, read(&head).count);
}

test "further partitions are ignored" {
    var head = testGpt();
    for (0..128) |index| {
        const entry = head[2 * sector_size + index * 128 ..];
        entry[0] = 1;
        std.mem.writeInt(u64, entry[32..40], 2048, .little);
        std.mem.writeInt(u64, entry[40..48], 2048, .little);
    }
    try testing.expectEqual(partitions_max, read(&head).count);
}
