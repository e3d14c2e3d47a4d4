//! Checks whether a disk image contains all of its file systems: a truncated image fails on a
//! device in ways that nobody understands. A few reads, once, when a disk is opened.

const std = @import("std");
const core = @import("core");
const store = @import("store");
const wire = @import("wire");

const BlockSource = store.BlockSource;
const StoreFile = store.StoreFile;
const Shortage = core.loader.disk_fit.Shortage;
const file_system = wire.file_system;
const partition_table = wire.partition_table;

/// Returns null if nothing is known to be missing. A disk that cannot be read is reported when it
/// is served.
pub fn findShortage(disk: *const BlockSource) ?Shortage {
    var head: [partition_table.head_size]u8 = @splat(0);
    const head_size: usize = @intCast(@min(disk.size, head.len));
    disk.read(head[0..head_size], 0) catch return null;
    const partitions = partition_table.read(&head);
    if (partitions.count == 0)
        return core.loader.disk_fit.judge(identifyAt(disk, 0, disk.size), null, disk.size);
    for (partitions.buffer[0..partitions.count]) |partition| {
        const has = core.loader.disk_fit.available(partition.first, partition.size, disk.size);
        if (has == 0) return .{
            .kind = null,
            .partition = partition.number,
            .needs = partition.size,
            .has = 0,
        };
        const found = identifyAt(disk, partition.first, has);
        if (core.loader.disk_fit.judge(found, partition.number, has)) |shortage| return shortage;
    }
    return null;
}

fn identifyAt(disk: *const BlockSource, first: u64, size: u64) ?file_system.FileSystem {
    var front: [file_system.front_size]u8 = @splat(0);
    disk.read(front[0..@intCast(@min(size, front.len))], first) catch return null;
    var super: [file_system.btrfs_size]u8 = undefined;
    const has_btrfs = size >= file_system.btrfs_offset + super.len;
    if (has_btrfs) disk.read(&super, first + file_system.btrfs_offset) catch return null;
    return file_system.identify(.{ .front = &front, .btrfs = if (has_btrfs) &super else null });
}

const testing = std.testing;

fn shortageOf(tmp: *testing.TmpDir, content: []const u8, size: u64) !?Shortage {
    const io = testing.io;
    try tmp.dir.writeFile(io, .{ .sub_path = "disk", .data = content });
    const file = try tmp.dir.openFile(io, "disk", .{ .mode = .read_write });
    try file.setLength(io, size);
    file.close(io);
    var disk = try StoreFile.openBelow(tmp.dir.handle, "disk", .disk);
    defer disk.close();
    return findShortage(&disk.source());
}

test "a disk that ends before its file system is detected, with and without partitions" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const ext4 = file_system.testExt4(100);
    const needs = 100 * 4096;
    try testing.expectEqual(null, try shortageOf(&tmp, &ext4, needs));
    const whole = (try shortageOf(&tmp, &ext4, needs - 512)).?;
    try testing.expectEqual(
        Shortage{ .kind = .ext4, .partition = null, .needs = needs, .has = needs - 512 },
        whole,
    );

    // The partition of 200 sectors ends at byte 2248 * 512; its file system needs more.
    const gpt = partition_table.testGpt();
    var image: [2048 * 512 + ext4.len]u8 = @splat(0);
    @memcpy(image[0..gpt.len], &gpt);
    @memcpy(image[2048 * 512 ..][0..ext4.len], &ext4);
    const in_partition = (try shortageOf(&tmp, &image, 3000 * 512)).?;
    try testing.expectEqual(
        Shortage{ .kind = .ext4, .partition = 3, .needs = needs, .has = 200 * 512 },
        in_partition,
    );
    @memcpy(image[2048 * 512 ..][0..ext4.len], &file_system.testExt4(25));
    try testing.expectEqual(null, try shortageOf(&tmp, &image, 3000 * 512));
    const cut = (try shortageOf(&tmp, &image, 2100 * 512)).?;
    try testing.expectEqual(52 * 512, cut.has);
    const beyond = (try shortageOf(&tmp, &gpt, 1024 * 512)).?;
    try testing.expectEqual(
        Shortage{ .kind = null, .partition = 3, .needs = 200 * 512, .has = 0 },
        beyond,
    );
}

test "a disk without a known file system is not judged, however short" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    try testing.expectEqual(null, try shortageOf(&tmp, "", 512));
    try testing.expectEqual(null, try shortageOf(&tmp, "", 128 << 10));
    const truncated = partition_table.testMbr();
    try testing.expect((try shortageOf(&tmp, truncated[0..512], 512)) != null);
}
