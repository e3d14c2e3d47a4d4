//! Small images of every format, for tests and the fuzzer, made from what a disk should have in
//! each of its blocks.

const std = @import("std");
const Vhd = @import("vhd.zig");

/// Blocks of the disks: 4 KiB, but for VHDX, which has none below 1 MiB.
pub const block_size = 4096;
pub const blocks = 8;
pub const disk_size = blocks * block_size;

pub const Block = enum {
    /// Has no place in the file.
    absent,
    /// Known to be zeros.
    zeros,
    /// Bytes of the file.
    data,
    /// Compressed bytes of the file, where the format has that.
    compressed,
    /// The even sectors are in the file, the odd ones are the parent's.
    part,
};

pub const Layout = [blocks]Block;

/// The byte of the data that a file has for a place of its disk; never 0.
pub fn byteAt(seed: u8, offset: u64) u8 {
    return @as(u8, @truncate(offset / 512 *% 7 +% seed)) | 1;
}

pub const Parent = struct { name: []const u8, identity: [16]u8 };

/// Appends to a buffer.
const Builder = struct {
    buffer: []u8,
    size: usize = 0,

    fn add(builder: *Builder, count: usize) []u8 {
        const part = builder.buffer[builder.size..][0..count];
        @memset(part, 0);
        builder.size += count;
        return part;
    }

    fn addData(builder: *Builder, seed: u8, offset: u64, count: usize) usize {
        const at = builder.size;
        for (builder.add(count), offset..) |*byte, place| byte.* = byteAt(seed, place);
        return at;
    }
};

fn put(comptime T: type, bytes: []u8, at: usize, value: T, endian: std.lang.Endian) void {
    std.mem.writeInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], value, endian);
}

fn putUtf16(bytes: []u8, text: []const u8, endian: std.lang.Endian) void {
    for (text, 0..) |char, index| put(u16, bytes, index * 2, char, endian);
}

pub const vhd_size_max = 64 << 10;

pub fn vhdFooter(footer: []u8, kind: Vhd.Kind, size: u64, identity: [16]u8) void {
    @memset(footer, 0);
    @memcpy(footer[0..8], Vhd.cookie);
    put(u32, footer, 12, 0x0001_0000, .big);
    put(u64, footer, 16, if (kind == .fixed) std.math.maxInt(u64) else 512, .big);
    put(u64, footer, 40, size, .big);
    put(u64, footer, 48, size, .big);
    put(u32, footer, 60, @backingInt(kind), .big);
    footer[68..84].* = identity;
    put(u32, footer, 64, Vhd.checksum(footer, 64), .big);
}

/// A dynamic disk, or a differencing one.
pub fn vhd(buffer: []u8, layout: Layout, seed: u8, parent: ?Parent) []u8 {
    var builder: Builder = .{ .buffer = buffer };
    const kind: Vhd.Kind = if (parent == null) .dynamic else .differencing;
    const identity: [16]u8 = @splat(seed);
    vhdFooter(builder.add(512), kind, disk_size, identity);
    const header = builder.add(1024);
    const table_at = builder.size;
    const table = builder.add(512);
    @memset(table, 0xff);
    @memcpy(header[0..8], Vhd.header_cookie);
    put(u64, header, 16, table_at, .big);
    put(u32, header, 24, 0x0001_0000, .big);
    put(u32, header, 28, blocks, .big);
    put(u32, header, 32, block_size, .big);
    if (parent) |known| {
        header[40..56].* = known.identity;
        putUtf16(header[64..576], known.name, .big);
        header[576..580].* = "W2ru".*;
        const path = builder.add(512);
        putUtf16(path, ".\\", .little);
        putUtf16(path[4..], known.name, .little);
        put(u32, header, 576 + 4, 1, .big);
        put(u32, header, 576 + 8, @intCast(4 + known.name.len * 2), .big);
        put(u64, header, 576 + 16, builder.size - 512, .big);
    }
    put(u32, header, 36, Vhd.checksum(header, 36), .big);
    for (layout, 0..) |block, index| {
        if (block == .absent) continue;
        put(u32, table, index * 4, @intCast(builder.size / 512), .big);
        const bitmap = builder.add(512);
        bitmap[0] = if (block == .part) 0xaa else 0xff;
        const at = builder.addData(seed, index * block_size, block_size);
        if (block == .zeros) @memset(buffer[at..][0..block_size], 0);
    }
    vhdFooter(builder.add(512), kind, disk_size, identity);
    return buffer[0..builder.size];
}

pub const qcow2_size_max = 128 << 10;

/// Version 3, clusters of 4 KiB; deflate as stored blocks, zstd as a frame of one raw block.
pub fn qcow2(buffer: []u8, layout: Layout, seed: u8, parent: ?[]const u8, is_zstd: bool) []u8 {
    var builder: Builder = .{ .buffer = buffer };
    const header = builder.add(block_size);
    const l1 = builder.add(block_size);
    const l2 = builder.add(block_size);
    header[0..4].* = "QFI\xfb".*;
    put(u32, header, 4, 3, .big);
    put(u32, header, 20, 12, .big);
    put(u64, header, 24, disk_size, .big);
    put(u32, header, 36, 1, .big);
    put(u64, header, 40, block_size, .big);
    put(u32, header, 96, 4, .big);
    put(u32, header, 100, 112, .big);
    if (is_zstd) {
        put(u64, header, 72, 1 << 3, .big);
        header[104] = 1;
    }
    if (parent) |name| {
        put(u64, header, 8, 512, .big);
        put(u32, header, 16, @intCast(name.len), .big);
        @memcpy(header[512..][0..name.len], name);
    }
    put(u64, l1, 0, 2 * block_size | 1 << 63, .big);
    for (layout, 0..) |block, index| {
        const at = index * block_size;
        const entry: u64 = switch (block) {
            .absent => 0,
            .zeros => 1,
            .data, .part => builder.addData(seed, at, block_size) | 1 << 63,
            .compressed => packed_cluster: {
                const head: []const u8 = if (is_zstd)
                    // Single segment, content size in 2 bytes; the last block, raw.
                    "\x28\xb5\x2f\xfd\x60\x00\x0f" ++ "\x01\x80\x00"
                else
                    "\x01\x00\x10\xff\xef";
                const place = builder.size;
                @memcpy(builder.add(head.len), head);
                _ = builder.addData(seed, at, block_size);
                const sectors = (builder.size - 1) / 512 - place / 512;
                _ = builder.add(std.mem.alignForward(usize, builder.size, block_size) -
                    builder.size);
                break :packed_cluster place | @as(u64, sectors) << 58 | 1 << 62;
            },
        };
        put(u64, l2, index * 8, entry, .big);
    }
    return buffer[0..builder.size];
}

pub const vmdk_size_max = 64 << 10;

/// Grains of 4 KiB, with zlib if `is_packed`.
pub fn vmdk(buffer: []u8, layout: Layout, seed: u8, is_packed: bool) []u8 {
    var builder: Builder = .{ .buffer = buffer };
    const header = builder.add(512);
    const descriptor = builder.add(1024);
    const directory = builder.add(512);
    const table_at = builder.size;
    const table = builder.add(2048);
    header[0..4].* = "KDMV".*;
    put(u32, header, 4, 1, .little);
    put(u32, header, 8, if (is_packed) 0x3_0005 else 5, .little);
    for ([_]u64{ disk_size / 512, block_size / 512, 1, 2 }, 0..) |number, index|
        put(u64, header, 12 + index * 8, number, .little);
    put(u32, header, 44, 512, .little);
    put(u64, header, 56, 3, .little);
    @memcpy(header[73..77], "\n \r\n");
    put(u16, header, 77, if (is_packed) 1 else 0, .little);
    const text = "# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\n" ++
        "createType=\"monolithicSparse\"\n\nRW 64 SPARSE \"x.vmdk\"\n";
    @memcpy(descriptor[0..text.len], text);
    put(u32, directory, 0, @intCast(table_at / 512), .little);
    for (layout, 0..) |block, index| {
        const at = index * block_size;
        const entry: usize = switch (block) {
            .absent => 0,
            .zeros => 1,
            else => grain: {
                const place = builder.size;
                if (!is_packed) {
                    _ = builder.addData(seed, at, block_size);
                    break :grain place / 512;
                }
                const marker = builder.add(12 + 7);
                put(u64, marker, 0, at / 512, .little);
                put(u32, marker, 8, 7 + block_size + 4, .little);
                @memcpy(marker[12..19], "\x78\x01\x01\x00\x10\xff\xef");
                const data_at = builder.addData(seed, at, block_size);
                const sum = std.hash.Adler32.hash(buffer[data_at..][0..block_size]);
                put(u32, builder.add(4), 0, sum, .big);
                _ = builder.add(std.mem.alignForward(usize, builder.size, 512) - builder.size);
                break :grain place / 512;
            },
        };
        put(u32, table, index * 4, @intCast(entry), .little);
    }
    return buffer[0..builder.size];
}
