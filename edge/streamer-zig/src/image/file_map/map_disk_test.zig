//! Tests of whole maps: the bytes that a map names for a file are the file's, and damage anywhere
//! gives a map.

const std = @import("std");
const image = @import("../image.zig");
const test_disk = @import("../test_disk.zig");
const golden = @import("../golden.zig");
const store = @import("store");
const testing = std.testing;
const BlockSource = store.BlockSource;
const Disk = image.Disk;
const FileMap = image.FileMap;

/// The bytes of the disk that the map gives a name, in the order of the disk. Small disks of tests
/// have no file in another order.
fn bytesOf(
    arena: std.mem.Allocator,
    map: *const FileMap,
    source: *const BlockSource,
    name: usize,
) ![]u8 {
    var bytes: std.ArrayList(u8) = .empty;
    for (map.extents) |extent| {
        if (extent.name != name) continue;
        const part = try bytes.addManyAsSlice(arena, @intCast(extent.size));
        try source.read(part, extent.first);
    }
    return bytes.items;
}

/// Compares every file that has extents; returns how many there were.
fn compareFiles(source: *const BlockSource) !u32 {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    var map = try image.mapDisk(testing.allocator, source, .{});
    defer map.deinit(testing.allocator);
    try testing.expect(map.isWhole());
    const disk = try arena.create(Disk);
    try disk.open(arena, source);
    var compared: u32 = 0;
    for (map.names, 0..) |name, index| {
        if (name.kind != .file) continue;
        var buffer: [FileMap.path_size_max]u8 = undefined;
        const path = map.path(@intCast(index), &buffer);
        const found = (try disk.find(disk.root orelse 0, path)).?;
        const content = try arena.alloc(u8, @intCast(found.node.size()));
        var file: image.file_system.Content = .open(disk.system(found.part).?, &found.node);
        try file.read(content, 0);
        const on_disk = try bytesOf(arena, &map, source, index);
        // Holes, and files inside their inodes.
        if (on_disk.len < content.len) continue;
        errdefer std.debug.print("{s}\n", .{path});
        try testing.expectEqualSlices(u8, content, on_disk[0..content.len]);
        compared += @intFromBool(content.len > 0);
    }
    return compared;
}

test "the bytes that a map names for a file of ext4, ext2 or FAT are the file's" {
    var bytes: test_disk.Bytes = undefined;
    for ([_]struct { ?test_disk.Kind, u32 }{ .{ .ext4, 4 }, .{ .ext2, 4 }, .{ null, 3 } }) |case| {
        if (case[0]) |kind| test_disk.debian(&bytes, kind) else test_disk.efiPartition(&bytes);
        var memory: image.MemoryDisk = .{ .bytes = &bytes };
        const source = memory.source();
        try testing.expectEqual(case[1], try compareFiles(&source));
    }
}

test "the bytes that a map names for a file of XFS, Btrfs or Squashfs are the file's" {
    const disk = try testing.allocator.create(golden.GoldenDisk);
    defer testing.allocator.destroy(disk);
    for ([_]golden.Name{ .xfs_v5, .xfs_v4, .btrfs, .squashfs_plain }) |name| {
        disk.load(name);
        const source = disk.source();
        errdefer std.debug.print("{t}\n", .{name});
        try testing.expect(try compareFiles(&source) > 0);
    }
}

fn nameAt(map: *const FileMap, at: u64, buffer: []u8) []const u8 {
    var parts = map.partsOf(at, 1);
    return map.path(parts.next().?.name, buffer);
}

test "tables and directories of ext4 have names of their own, and what is in nothing is free" {
    var bytes: test_disk.Bytes = undefined;
    test_disk.debian(&bytes, .ext4);
    var memory: image.MemoryDisk = .{ .bytes = &bytes };
    const source = memory.source();
    var map = try image.mapDisk(testing.allocator, &source, .{});
    defer map.deinit(testing.allocator);
    var buffer: [100]u8 = undefined;
    for ([_]struct { u64, []const u8 }{
        .{ 0, "ext4 superblocks and group descriptors" },
        .{ 1024, "ext4 superblocks and group descriptors" },
        .{ 5 * 1024, "ext4 inode tables" },
        .{ 13 * 1024, "/" },
        .{ 14 * 1024, "/etc/" },
        .{ test_disk.size - 1, "ext4 free space" },
    }) |wanted| try testing.expectEqualStrings(wanted[1], nameAt(&map, wanted[0], &buffer));
}

test "partitions are told apart, and what no reader knows is said to be unmapped" {
    var table = image.partitions.testGpt();
    var memory: image.MemoryDisk = .{ .bytes = &table };
    const source = memory.source();
    var map = try image.mapDisk(testing.allocator, &source, .{});
    defer map.deinit(testing.allocator);
    try testing.expect(map.isWhole());
    var buffer: [100]u8 = undefined;
    try testing.expectEqualStrings("partition table", nameAt(&map, 512, &buffer));
    var unmapped: u32 = 0;
    for (map.names, 0..) |name, index| if (name.kind == .unmapped) {
        const path = map.path(@intCast(index), &buffer);
        if (std.mem.startsWith(u8, path, "not mapped: ")) unmapped += 1;
    };
    try testing.expect(unmapped > 0);
}

test "files of a logical volume lie where its segments do" {
    const bytes = try testing.allocator.create([image.lvm.test_size]u8);
    defer testing.allocator.destroy(bytes);
    image.lvm.testVolume(bytes);
    var memory: image.MemoryDisk = .{ .bytes = bytes };
    const source = memory.source();
    var map = try image.mapDisk(testing.allocator, &source, .{});
    defer map.deinit(testing.allocator);
    try testing.expect(map.isWhole());
    var buffer: [100]u8 = undefined;
    try testing.expectEqualStrings("not mapped: LVM", nameAt(&map, 0, &buffer));
}

test "damage anywhere gives a whole map, or an error" {
    var prng: std.Random.DefaultPrng = .init(3);
    const random = prng.random();
    var bytes: test_disk.Bytes = undefined;
    for (0..400) |round| {
        test_disk.debian(&bytes, if (round % 2 == 0) .ext4 else .ext2);
        for (0..random.uintAtMost(usize, 8)) |_|
            bytes[random.uintLessThan(usize, test_disk.meta_size)] = random.int(u8);
        var memory: image.MemoryDisk = .{ .bytes = &bytes };
        const source = memory.source();
        var map = image.mapDisk(testing.allocator, &source, .{}) catch continue;
        defer map.deinit(testing.allocator);
        try testing.expect(map.isWhole());
    }
}

test "a map that cannot have all of its memory takes none" {
    const Make = struct {
        fn make(gpa: std.mem.Allocator, source: *const BlockSource) !void {
            var map = try image.mapDisk(gpa, source, .{});
            map.deinit(gpa);
        }
    };
    var bytes: test_disk.Bytes = undefined;
    test_disk.debian(&bytes, .ext4);
    var memory: image.MemoryDisk = .{ .bytes = &bytes };
    const source = memory.source();
    try testing.checkAllAllocationFailures(testing.allocator, Make.make, .{&source});
}
