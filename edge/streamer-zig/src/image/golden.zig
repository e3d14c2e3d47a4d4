//! Small disks for tests and the fuzzer, each a file system that its own tools made
//! (e2e/lib/images/golden-file-systems.ts). Only sectors that are not all zeros are kept.

const std = @import("std");
const store = @import("store");
const boot_files = @import("boot_files.zig");
const Crc32c = @import("crc32c.zig").Crc32c;
const Disk = @import("disk.zig");
const stream = @import("stream.zig");
const test_disk = @import("test_disk.zig");
const BlockSource = store.BlockSource;

pub const Name = enum {
    xfs_v5,
    xfs_v4,
    btrfs,
    squashfs_gzip,
    squashfs_xz,
    squashfs_zstd,
    squashfs_lz4,
    squashfs_lzo,
    squashfs_plain,

    fn compressed(name: Name) []const u8 {
        return switch (name) {
            .xfs_v5 => @embedFile("golden/xfs-v5.zlib"),
            .xfs_v4 => @embedFile("golden/xfs-v4.zlib"),
            .btrfs => @embedFile("golden/btrfs.zlib"),
            .squashfs_gzip => @embedFile("golden/squashfs-gzip.zlib"),
            .squashfs_xz => @embedFile("golden/squashfs-xz.zlib"),
            .squashfs_zstd => @embedFile("golden/squashfs-zstd.zlib"),
            .squashfs_lz4 => @embedFile("golden/squashfs-lz4.zlib"),
            .squashfs_lzo => @embedFile("golden/squashfs-lzo.zlib"),
            .squashfs_plain => @embedFile("golden/squashfs-plain.zlib"),
        };
    }
};

const sector_size = 512;
/// A sector and its number.
const record_size = 4 + sector_size;

pub const GoldenDisk = @This();

bytes: [384 << 10]u8,
count: usize,
sectors: u32,

pub fn load(disk: *GoldenDisk, name: Name) void {
    var window: [std.compress.flate.max_window_len]u8 = undefined;
    var input: std.Io.Reader = .fixed(name.compressed());
    var decompress: std.compress.flate.Decompress = .init(&input, .zlib, &window);
    var head: [4]u8 = undefined;
    decompress.reader.readSliceAll(&head) catch unreachable;
    disk.sectors = std.mem.readInt(u32, &head, .little);
    const size = decompress.reader.readSliceShort(&disk.bytes) catch unreachable;
    disk.count = size / record_size;
}

/// The disk must not move while it is read.
pub fn source(disk: *GoldenDisk) BlockSource {
    return .{
        .context = disk,
        .vtable = &.{ .read = read },
        .size = @as(u64, disk.sectors) * sector_size,
    };
}

/// Returns one of the sectors that are not all zeros.
pub fn sector(disk: *GoldenDisk, index: usize) *[sector_size]u8 {
    return disk.bytes[index * record_size + 4 ..][0..sector_size];
}

fn find(disk: *GoldenDisk, wanted: u64) ?*[sector_size]u8 {
    var low: usize = 0;
    var high = disk.count;
    while (low < high) {
        const middle = low + (high - low) / 2;
        const number = std.mem.readInt(u32, disk.bytes[middle * record_size ..][0..4], .little);
        if (number == wanted) return disk.sector(middle);
        if (number < wanted) low = middle + 1 else high = middle;
    }
    return null;
}

fn read(context: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
    const disk: *GoldenDisk = @ptrCast(@alignCast(context));
    var filled: usize = 0;
    while (filled < buffer.len) {
        const at = offset + filled;
        const within: usize = @intCast(at % sector_size);
        const part = buffer[filled..][0..@min(buffer.len - filled, sector_size - within)];
        if (disk.find(at / sector_size)) |bytes|
            @memcpy(part, bytes[within..][0..part.len])
        else
            @memset(part, 0);
        filled += part.len;
    }
}

const super_at = 64 << 10;
const node_size = 4096;

/// Makes the checksums of a Btrfs match its damaged nodes and superblock.
pub fn seal(disk: *GoldenDisk) void {
    const super = disk.find(super_at / sector_size) orelse return;
    const id = super[32..48].*;
    var node: [node_size]u8 = undefined;
    for (0..disk.count) |index| {
        const number = std.mem.readInt(u32, disk.bytes[index * record_size ..][0..4], .little);
        const first = disk.sector(index);
        if (number % (node_size / sector_size) != 0 or
            !std.mem.eql(u8, first[32..48], &id)) continue;
        read(disk, &node, @as(u64, number) * sector_size) catch unreachable;
        const crc = Crc32c.hash(node[32..]);
        std.mem.writeInt(u32, first[0..4], crc, .little);
    }
}

const testing = std.testing;

const Opened = struct {
    golden: GoldenDisk,
    source: BlockSource,
    disk: Disk,
    arena: std.heap.ArenaAllocator,

    fn open(opened: *Opened) !boot_files.Answer {
        opened.source = opened.golden.source();
        opened.arena = .init(testing.allocator);
        errdefer opened.arena.deinit();
        try opened.disk.open(opened.arena.allocator(), &opened.source);
        return boot_files.find(opened.arena.allocator(), &opened.disk);
    }

    fn expectContent(opened: *Opened, found: *const boot_files.BootFile, wanted: []const u8) !void {
        var written: std.Io.Writer.Allocating = .init(testing.allocator);
        defer written.deinit();
        // Not a multiple of any block size.
        var buffer: [1700]u8 = undefined;
        try stream.copy(&opened.disk, found, &written.writer, &buffer);
        try testing.expectEqualStrings(wanted, written.written());
    }
};

test "kernel and initramfs of each file system are read through directories and links" {
    const opened = try testing.allocator.create(Opened);
    defer testing.allocator.destroy(opened);
    var initrd: [7000]u8 = undefined;
    for (&initrd, 0..) |*byte, index| byte.* = "initrd "[index % 7];
    for (std.enums.values(Name)) |name| {
        opened.golden.load(name);
        errdefer std.debug.print("{t}\n", .{name});
        const answer = try opened.open();
        defer opened.arena.deinit();
        const files = &answer.found;
        try testing.expectEqualStrings("/boot/vmlinuz-6.1", files.kernel.path);
        try testing.expectEqualStrings("quiet", files.command_line);
        try opened.expectContent(&files.kernel, test_disk.kernel);
        try opened.expectContent(&files.initrds[0], &initrd);
        const root = opened.disk.root.?;
        const many = "/usr/lib/many/a-rather-long-name-of-file-";
        for ([_][]const u8{ many ++ "0", many ++ "77", many ++ "149" }) |path|
            try testing.expect(try opened.disk.has(root, path, .file));
        try testing.expect(!try opened.disk.has(root, many ++ "150", .file));
        const names = try opened.disk.list(opened.arena.allocator(), root, "/usr/lib/many", isAny);
        try testing.expectEqual(150, names.len);
    }
}

fn isAny(_: []const u8) bool {
    return true;
}

test "each flipped bit of what has checksums gives the same bytes or an error" {
    const opened = try testing.allocator.create(Opened);
    defer testing.allocator.destroy(opened);
    for ([_]Name{ .xfs_v5, .btrfs }) |name| {
        opened.golden.load(name);
        for (0..opened.golden.count) |index| {
            // Files of XFS have no checksums.
            const at = index * 37 % sector_size;
            const byte = &opened.golden.sector(index)[at];
            if (byte.* == 'k' or byte.* == 'i') continue;
            byte.* ^= 4;
            defer byte.* ^= 4;
            const answer = opened.open() catch continue;
            defer opened.arena.deinit();
            const files = switch (answer) {
                .found => |*files| files,
                .reason => continue,
            };
            opened.expectContent(&files.kernel, test_disk.kernel) catch |reason|
                try testing.expect(reason == error.Corrupt);
        }
    }
}

test "a node of Btrfs is read from its second copy if the first one is damaged" {
    const opened = try testing.allocator.create(Opened);
    defer testing.allocator.destroy(opened);
    opened.golden.load(.btrfs);
    const super = opened.golden.find(super_at / sector_size).?;
    // The first copy of the chunk tree, by the system chunk of the superblock.
    const chunk_root = std.mem.readInt(u64, super[88..96], .little);
    var chunks: [512]u8 = undefined;
    try read(&opened.golden, &chunks, super_at + 811);
    const logical = std.mem.readInt(u64, chunks[9..17], .little);
    const copies = [_]u64{
        std.mem.readInt(u64, chunks[17 + 56 ..][0..8], .little),
        std.mem.readInt(u64, chunks[17 + 32 + 56 ..][0..8], .little),
    };
    for (copies) |copy| {
        const first = opened.golden.find((copy + chunk_root - logical) / sector_size).?;
        first[60] ^= 1;
        const answer = opened.open() catch |reason| return reason;
        defer opened.arena.deinit();
        if (copy == copies[0]) {
            try opened.expectContent(&answer.found.kernel, test_disk.kernel);
        } else try testing.expect(answer == .reason);
    }
}
