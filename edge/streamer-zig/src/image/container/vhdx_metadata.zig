//! The metadata of a VHDX file: size and blocks of its disk, and its parent ([MS-VHDX] 2.6).

const std = @import("std");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const ParentLink = @import("parent_link.zig");
const numbers = @import("vhdx_numbers.zig");
const VhdxFile = @import("vhdx_file.zig");
const int = numbers.int;

const mib = 1 << 20;
const entries_max = 2047;
const disk_size_max = 64 << 40;
/// Items are behind the table ([MS-VHDX] 2.6.1.2).
const items_from = 64 << 10;
const locator_entries_max = 64;

const file_parameters = numbers.guid("caa16737-fa36-4d43-b3b6-33f0aa44e76b");
const virtual_disk_size = numbers.guid("2fa54224-cd1b-4876-b211-5dbed83bf4b8");
const logical_sector_size = numbers.guid("8141bf1d-a96f-4709-ba47-f233a8faab5f");
const parent_locator = numbers.guid("a8d35f2d-b30b-454d-abf7-d3d84834ab0c");
const virtual_disk_id = numbers.guid("beca12ab-b2e6-4523-93ef-c309e000c746");
const physical_sector_size = numbers.guid("cda348c7-445d-4471-9cc9-e9885251c556");
/// The locator type of a VHDX parent ([MS-VHDX] 2.6.2.6.1).
const vhdx_locator = numbers.guid("b04aefb7-d19e-4a81-b789-25b8e9445913");

const Metadata = @This();

disk_size: u64 = 0,
block_size: u64 = 0,
/// Bytes of a sector, as the bits of bitmaps count them.
sector_size: u32 = 0,
has_parent: bool = false,
parent: ParentLink = .{},

const Region = struct { bytes: *const VhdxFile, file: *const File, at: u64, size: u64 };

pub fn read(bytes: *const VhdxFile, file: *const File, at: u64, size: u64) Fault!Metadata {
    const region: Region = .{ .bytes = bytes, .file = file, .at = at, .size = size };
    var head: [32]u8 = undefined;
    if (size < items_from) return error.MetadataDamaged;
    try bytes.read(file, &head, at);
    if (!std.mem.startsWith(u8, &head, "metadata")) return error.MetadataDamaged;
    const count = int(u16, &head, 10);
    if (count > entries_max) return error.MetadataDamaged;
    var metadata: Metadata = .{};
    var locator: ?[2]u64 = null;
    for (0..count) |index| {
        var entry: [32]u8 = undefined;
        try bytes.read(file, &entry, at + 32 + index * 32);
        const item: [2]u64 = .{ int(u32, &entry, 16), int(u32, &entry, 20) };
        if (item[1] > size or item[0] > size - item[1]) return error.MetadataDamaged;
        if (std.mem.eql(u8, entry[0..16], &parent_locator)) {
            locator = item;
        } else try metadata.take(&region, &entry, item);
    }
    try metadata.check();
    if (metadata.has_parent)
        try metadata.readLocator(&region, locator orelse return error.ParentUnnamed);
    return metadata;
}

fn take(metadata: *Metadata, region: *const Region, entry: *const [32]u8, item: [2]u64) Fault!void {
    const id = entry[0..16];
    var bytes: [8]u8 = @splat(0);
    if (std.mem.eql(u8, id, &file_parameters)) {
        try readItem(region, &bytes, item);
        metadata.block_size = int(u32, &bytes, 0);
        metadata.has_parent = int(u32, &bytes, 4) & 2 != 0;
    } else if (std.mem.eql(u8, id, &virtual_disk_size)) {
        try readItem(region, &bytes, item);
        metadata.disk_size = int(u64, &bytes, 0);
    } else if (std.mem.eql(u8, id, &logical_sector_size)) {
        try readItem(region, bytes[0..4], item);
        metadata.sector_size = int(u32, &bytes, 0);
    } else if (!std.mem.eql(u8, id, &virtual_disk_id) and
        !std.mem.eql(u8, id, &physical_sector_size))
    {
        // Required by its flag: nobody who does not know it may read the file.
        if (int(u32, entry, 24) & 4 != 0) return error.UnknownFeature;
    }
}

fn readItem(region: *const Region, buffer: []u8, item: [2]u64) Fault!void {
    if (item[0] < items_from or item[1] < buffer.len) return error.MetadataDamaged;
    try region.bytes.read(region.file, buffer, region.at + item[0]);
}

fn check(metadata: *const Metadata) Fault!void {
    if (metadata.sector_size != 512 and metadata.sector_size != 4096)
        return error.MetadataDamaged;
    if (metadata.block_size < mib or metadata.block_size > 256 * mib or
        !std.math.isPowerOfTwo(metadata.block_size)) return error.BadBlockSize;
    if (metadata.disk_size == 0 or metadata.disk_size > disk_size_max or
        metadata.disk_size % metadata.sector_size != 0) return error.BadDiskSize;
}

/// Keys and values in UTF-16: where the parent is, and which state of it ([MS-VHDX] 2.6.2.6).
fn readLocator(metadata: *Metadata, region: *const Region, item: [2]u64) Fault!void {
    var head: [20]u8 = undefined;
    try readItem(region, &head, item);
    if (!std.mem.eql(u8, head[0..16], &vhdx_locator)) return error.UnknownVariant;
    const count = int(u16, &head, 18);
    if (count > locator_entries_max) return error.MetadataDamaged;
    for (0..count) |index| {
        var entry: [12]u8 = undefined;
        const at = 20 + index * 12;
        if (at + entry.len > item[1]) return error.MetadataDamaged;
        try region.bytes.read(region.file, &entry, region.at + item[0] + at);
        var key: [64]u8 = undefined;
        const key_size = int(u16, &entry, 8);
        if (key_size > key.len) continue;
        try readText(region, key[0..key_size], item, int(u32, &entry, 0));
        var value: [ParentLink.path_units_max * 2]u8 = undefined;
        const value_size = @min(int(u16, &entry, 10), value.len);
        try readText(region, value[0..value_size], item, int(u32, &entry, 4));
        metadata.takePair(key[0..key_size], value[0..value_size]);
    }
}

fn readText(region: *const Region, buffer: []u8, item: [2]u64, at: u64) Fault!void {
    if (buffer.len > item[1] or at > item[1] - buffer.len) return error.MetadataDamaged;
    try region.bytes.read(region.file, buffer, region.at + item[0] + at);
}

fn takePair(metadata: *Metadata, key: []const u8, value: []const u8) void {
    const parent = &metadata.parent;
    if (isKey(key, "parent_linkage")) {
        parent.identities[0] = parseLinkage(value);
    } else if (isKey(key, "parent_linkage2")) {
        parent.identities[1] = parseLinkage(value);
    } else if (isKey(key, "relative_path") or isKey(key, "volume_path") or
        isKey(key, "absolute_win32_path")) parent.addUtf16(value, .little);
}

fn isKey(key: []const u8, comptime name: []const u8) bool {
    if (key.len != name.len * 2) return false;
    for (name, 0..) |char, index| {
        if (key[index * 2] != char or key[index * 2 + 1] != 0) return false;
    }
    return true;
}

/// `{83ed0ec3-24c8-49a6-a959-5e4bd1288791}` in UTF-16.
fn parseLinkage(value: []const u8) ?ParentLink.Identity {
    if (value.len != 38 * 2) return null;
    var text: [38]u8 = undefined;
    for (&text, 0..) |*char, index| {
        if (value[index * 2 + 1] != 0) return null;
        char.* = value[index * 2];
    }
    if (text[0] != '{' or text[37] != '}') return null;
    return numbers.parseGuid(text[1..37]);
}
