//! Small VHDX images for tests and the fuzzer. Nothing in this format is smaller than 1 MiB, so
//! the disk has few blocks and the file is mostly zeros.

const std = @import("std");
const test_images = @import("test_images.zig");
const numbers = @import("vhdx_numbers.zig");

const mib = 1 << 20;
pub const blocks = 4;
pub const disk_size = blocks * mib;
pub const table_at = 1 * mib;
pub const metadata_at = 2 * mib;
pub const log_at = 3 * mib;
const bitmap_at = 4 * mib;
const data_at = 5 * mib;
pub const size_max = data_at + blocks * mib;
pub const log_id: [16]u8 = @splat(0x77);
/// The bitmap block's entry in a table of one chunk.
const chunk_ratio = (1 << 23) * 512 / mib;

pub const Layout = [blocks]test_images.Block;

fn put(comptime T: type, bytes: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], value, .little);
}

/// Of blocks that have data in the file only each 64th KiB is written.
pub const step = 64 << 10;

pub fn make(buffer: *[size_max]u8, layout: Layout, seed: u8, parent: ?test_images.Parent) []u8 {
    @memset(buffer, 0);
    @memcpy(buffer[0..8], "vhdxfile");
    header(buffer, 0, 1, seed);
    header(buffer, 1, 2, seed);
    regions(buffer[192 << 10 ..][0 .. 64 << 10]);
    @memcpy(buffer[256 << 10 ..][0 .. 64 << 10], buffer[192 << 10 ..][0 .. 64 << 10]);
    metadata(buffer[metadata_at..][0..mib], parent);
    const table = buffer[table_at..][0..mib];
    for (layout, 0..) |block, index| {
        const place = data_at + index * mib;
        const entry: u64 = switch (block) {
            .absent => 0,
            .zeros => 2,
            .data, .compressed => place | 6,
            .part => place | 7,
        };
        put(u64, table, index * 8, entry);
        if (block != .data and block != .compressed and block != .part) continue;
        var at: usize = 0;
        while (at < mib) : (at += step) {
            for (buffer[place + at ..][0..4096], index * mib + at..) |*byte, offset|
                byte.* = test_images.byteAt(seed, offset);
        }
        if (block != .part) continue;
        put(u64, table, chunk_ratio * 8, bitmap_at | 6);
        // The least significant bit is the first sector: even sectors are here.
        @memset(buffer[bitmap_at + index * mib / 512 / 8 ..][0 .. mib / 512 / 8], 0x55);
    }
    return buffer;
}

/// @param which 0 or 1
pub fn header(buffer: *[size_max]u8, which: usize, sequence: u64, seed: u8) void {
    const bytes = buffer[(64 << 10) * (which + 1) ..][0..4096];
    @memcpy(bytes[0..4], "head");
    put(u64, bytes, 8, sequence);
    bytes[32..48].* = @splat(seed);
    put(u16, bytes, 66, 1);
    put(u32, bytes, 68, mib);
    put(u64, bytes, 72, log_at);
    seal(bytes);
}

/// Corrects the checksum of a header, a region table, or an entry of the log.
pub fn seal(bytes: []u8) void {
    put(u32, bytes, 4, numbers.checksum(bytes));
}

fn regions(bytes: []u8) void {
    @memcpy(bytes[0..4], "regi");
    put(u32, bytes, 8, 2);
    for ([_]struct { [16]u8, u64 }{
        .{ numbers.guid("2dc27766-f623-4200-9d64-115e9bfd4a08"), table_at },
        .{ numbers.guid("8b7ca206-4790-4b9a-b8fe-575f050f886e"), metadata_at },
    }, 0..) |region, index| {
        const entry = bytes[16 + index * 32 ..][0..32];
        entry[0..16].* = region[0];
        put(u64, entry, 16, region[1]);
        put(u32, entry, 24, mib);
        put(u32, entry, 28, 1);
    }
    put(u32, bytes, 4, numbers.checksum(bytes));
}

fn metadata(bytes: *[mib]u8, parent: ?test_images.Parent) void {
    @memcpy(bytes[0..8], "metadata");
    const items = bytes[64 << 10 ..];
    put(u32, items, 0, mib);
    put(u32, items, 4, if (parent == null) 0 else 2);
    put(u64, items, 8, disk_size);
    put(u32, items, 16, 512);
    var locator_size: u32 = 0;
    if (parent) |known| locator_size = locator(items[64..1024], &known);
    for ([_]struct { *const [36]u8, u32, u32 }{
        .{ "caa16737-fa36-4d43-b3b6-33f0aa44e76b", 0, 8 },
        .{ "2fa54224-cd1b-4876-b211-5dbed83bf4b8", 8, 8 },
        .{ "8141bf1d-a96f-4709-ba47-f233a8faab5f", 16, 4 },
        .{ "a8d35f2d-b30b-454d-abf7-d3d84834ab0c", 64, locator_size },
    }, 0..) |item, index| {
        const entry = bytes[32 + index * 32 ..][0..32];
        entry[0..16].* = numbers.parseGuid(item[0]).?;
        put(u32, entry, 16, (64 << 10) + item[1]);
        put(u32, entry, 20, item[2]);
        put(u32, entry, 24, 4);
    }
    put(u16, bytes, 10, if (parent == null) 3 else 4);
}

fn locator(item: []u8, parent: *const test_images.Parent) u32 {
    item[0..16].* = numbers.guid("b04aefb7-d19e-4a81-b789-25b8e9445913");
    put(u16, item, 18, 2);
    var linkage: [38]u8 = undefined;
    const id = &parent.identity;
    _ = std.mem.print(&linkage, "{{{x:0>8}-{x:0>4}-{x:0>4}-{x}-{x}}}", .{
        std.mem.readInt(u32, id[0..4], .little), std.mem.readInt(u16, id[4..6], .little),
        std.mem.readInt(u16, id[6..8], .little), id[8..10],
        id[10..16],
    }) catch unreachable;
    var at: u32 = 20 + 2 * 12;
    for ([_][2][]const u8{
        .{ "parent_linkage", &linkage },
        .{ "relative_path", parent.name },
    }, 0..) |pair, index| {
        const entry = item[20 + index * 12 ..][0..12];
        for (pair, 0..) |text, which| {
            put(u32, entry, which * 4, at);
            put(u16, entry, 8 + which * 2, @intCast(text.len * 2));
            for (text) |char| {
                put(u16, item, at, char);
                at += 2;
            }
        }
    }
    return at;
}

/// An update of the log: a page of the file.
pub const Update = struct { at: u64, page: ?*const [4096]u8 };

/// Makes the file one that was not closed: with an entry of its log for each update. A null page
/// is zeroed by a descriptor alone.
pub fn log(
    buffer: *[size_max]u8,
    first_sector: usize,
    sequence: u64,
    updates: []const Update,
) void {
    const ring = buffer[log_at..][0..mib];
    var sector = first_sector;
    const tail: u32 = @intCast(first_sector * 4096);
    for (updates, 0..) |*update, index| {
        const number = sequence + index;
        const size: usize = if (update.page == null) 4096 else 8192;
        var entry: [8192]u8 = @splat(0);
        @memcpy(entry[0..4], "loge");
        put(u32, &entry, 8, @intCast(size));
        put(u32, &entry, 12, tail);
        put(u64, &entry, 16, number);
        put(u32, &entry, 24, 1);
        entry[32..48].* = log_id;
        put(u64, &entry, 48, size_max);
        put(u64, &entry, 56, size_max);
        const descriptor = entry[64..96];
        put(u64, descriptor, 16, update.at);
        put(u64, descriptor, 24, number);
        if (update.page) |page| {
            @memcpy(descriptor[0..4], "desc");
            descriptor[4..8].* = page[4092..4096].*;
            descriptor[8..16].* = page[0..8].*;
            const sector_bytes = entry[4096..8192];
            @memcpy(sector_bytes[0..4], "data");
            put(u32, sector_bytes, 4, @truncate(number >> 32));
            @memcpy(sector_bytes[8..4092], page[8..4092]);
            put(u32, sector_bytes, 4092, @truncate(number));
        } else {
            @memcpy(descriptor[0..4], "zero");
            put(u64, descriptor, 8, 4096);
        }
        put(u32, &entry, 4, numbers.checksum(entry[0..size]));
        // The log is a ring.
        for (0..size / 4096) |part| {
            @memcpy(ring[sector % 256 * 4096 ..][0..4096], entry[part * 4096 ..][0..4096]);
            sector += 1;
        }
    }
    for (0..2) |which| {
        const bytes = buffer[(64 << 10) * (which + 1) ..][0..4096];
        bytes[48..64].* = log_id;
        put(u32, bytes, 4, numbers.checksum(bytes));
    }
}
