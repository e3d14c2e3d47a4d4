//! Tests of whole images: that each format gives the bytes of its disk, and each fault its name.

const std = @import("std");
const store = @import("store");
const Chain = @import("chain.zig");
const Fault = @import("fault.zig").Fault;
const MemoryFile = @import("file.zig").MemoryFile;
const signature = @import("signature.zig");
const test_images = @import("test_images.zig");
const testing = std.testing;
const block_size = test_images.block_size;
const vhdx = @import("test_vhdx.zig");
const ImageSource = store.image_source.ImageSource;

/// Files of one directory, the first of which is the image.
const TestDirectory = struct {
    names: []const []const u8,
    files: [4]MemoryFile = undefined,

    fn init(names: []const []const u8, contents: []const []const u8) TestDirectory {
        var directory: TestDirectory = .{ .names = names };
        for (contents, 0..) |bytes, index|
            directory.files[index] = .{ .bytes = bytes, .number = index };
        return directory;
    }

    fn open(directory: *TestDirectory, chain: *Chain, format: ?signature.Format) Fault!void {
        return chain.open(testing.allocator, directory.files[0].source(), &.{
            .format = format,
            .directory = .{ .context = directory, .open = openFile },
        });
    }

    fn openFile(
        context: *anyopaque,
        name: []const u8,
    ) error{ ParentMissing, ParentUnreadable }!ImageSource {
        const directory: *TestDirectory = @ptrCast(@alignCast(context));
        for (directory.names, 0..) |known, index|
            if (std.mem.eql(u8, known, name)) return directory.files[index].source();
        return error.ParentMissing;
    }

    fn expectFault(directory: *TestDirectory, fault: Fault, layer: usize) !void {
        const chain = try testing.allocator.create(Chain);
        defer testing.allocator.destroy(chain);
        try testing.expectError(fault, directory.open(chain, null));
        try testing.expectEqual(layer, chain.failed_layer);
    }

    /// Reads the disk in several ways and compares it.
    fn expectDisk(directory: *TestDirectory, expected: []const u8) !void {
        const chain = try testing.allocator.create(Chain);
        defer testing.allocator.destroy(chain);
        try directory.open(chain, null);
        defer chain.close();
        try testing.expectEqual(expected.len, chain.size());
        const source = chain.source();
        const buffer = try testing.allocator.alloc(u8, expected.len);
        defer testing.allocator.free(buffer);
        var failed_at: u64 = 0;
        try testing.expectEqual(expected.len, try source.read(buffer, 0, &failed_at));
        try testing.expectEqualSlices(u8, expected, buffer);
        // Parts that begin and end anywhere.
        const steps = [_]usize{ 1000, 511, 4097, 70_000 };
        var at: usize = 0;
        for (0..1_000_000) |index| {
            const count = @min(steps[index % steps.len], expected.len - at);
            if (count == 0) break;
            try chain.read(buffer[0..count], at);
            try testing.expectEqualSlices(u8, expected[at..][0..count], buffer[0..count]);
            at += count;
        }
        // What is skipped is zeros.
        at = 0;
        while (source.nextData(at)) |found| {
            try testing.expect(found >= at and found < expected.len);
            try testing.expect(std.mem.allEqual(u8, expected[at..@intCast(found)], 0));
            at = @intCast(found + 1);
            at = std.mem.alignForward(usize, at, block_size);
        }
        if (at < expected.len) try testing.expect(std.mem.allEqual(u8, expected[at..], 0));
    }
};

/// What a file of this layout makes of the disk below it.
fn lay(disk: []u8, layout: test_images.Layout, seed: u8) void {
    for (layout, 0..) |block, index| {
        const bytes = disk[index * block_size ..][0..block_size];
        for (bytes, index * block_size..) |*byte, offset| switch (block) {
            .absent => {},
            .zeros => byte.* = 0,
            .data, .compressed => byte.* = test_images.byteAt(seed, offset),
            .part => if (offset / 512 % 2 == 0) {
                byte.* = test_images.byteAt(seed, offset);
            },
        };
    }
}

const Layout = test_images.Layout;
const whole: Layout =
    .{ .absent, .data, .data, .zeros, .compressed, .absent, .compressed, .data };
const over: Layout = .{ .absent, .absent, .part, .part, .data, .zeros, .absent, .part };

test "a fixed VHD is its data, whether its footer has 512 bytes or 511" {
    var file: [3 * 512 + 512]u8 = @splat('d');
    for ([_]usize{ 512, 511 }) |size| {
        test_images.vhdFooter(file[3 * 512 ..], .fixed, 3 * 512, @splat(1));
        var directory: TestDirectory = .init(&.{"a"}, &.{file[0 .. 3 * 512 + size]});
        try directory.expectDisk(file[0 .. 3 * 512]);
    }
    // The footer's copy at the start is for dynamic disks alone.
    file[3 * 512 + 100] ^= 1;
    var damaged: TestDirectory = .init(&.{"a"}, &.{&file});
    try damaged.expectFault(error.HeaderDamaged, 0);
    test_images.vhdFooter(file[3 * 512 ..], .fixed, 4 * 512, @splat(1));
    try damaged.expectFault(error.Truncated, 0);
}

test "a dynamic VHD has zeros where it has no blocks, and needs one of its two footers" {
    var buffer: [test_images.vhd_size_max]u8 = undefined;
    const file = test_images.vhd(&buffer, whole, 3, null);
    var disk: [test_images.disk_size]u8 = @splat(0);
    lay(&disk, whole, 3);
    var directory: TestDirectory = .init(&.{"a"}, &.{file});
    try directory.expectDisk(&disk);
    file[file.len - 1] ^= 1;
    try directory.expectDisk(&disk);
    file[100] ^= 1;
    try directory.expectFault(error.HeaderDamaged, 0);
}

test "differencing VHDs are read through their parents, which are known by their identifiers" {
    var buffers: [3][test_images.vhd_size_max]u8 = undefined;
    const files = [_][]u8{
        test_images.vhd(&buffers[0], over, 5, .{ .name = "b.avhd", .identity = @splat(4) }),
        test_images.vhd(&buffers[1], over, 4, .{ .name = "c.vhd", .identity = @splat(3) }),
        test_images.vhd(&buffers[2], whole, 3, null),
    };
    var disk: [test_images.disk_size]u8 = @splat(0);
    // The absent and zero blocks of a VHD: only the second have a place.
    lay(&disk, whole, 3);
    lay(&disk, over, 4);
    lay(&disk, over, 5);
    var directory: TestDirectory = .init(&.{ "a", "b.avhd", "c.vhd" }, &files);
    try directory.expectDisk(&disk);
    directory.names = &.{ "a", "b.avhd", "elsewhere" };
    try directory.expectFault(error.ParentMissing, 1);
    // The parent of the second is the first, and the other way round.
    directory.names = &.{ "c.vhd", "b.avhd", "" };
    try directory.expectFault(error.ParentCycle, 1);
    // Another disk under the parent's name.
    directory.names = &.{ "a", "c.vhd", "b.avhd" };
    try directory.expectFault(error.ParentOther, 0);
    // Damage of a parent is the parent's.
    directory.names = &.{ "a", "b.avhd", "c.vhd" };
    files[1][600] ^= 1;
    try directory.expectFault(error.HeaderDamaged, 1);
}

test "a qcow2 image has its clusters, packed ones as well, and those of its backing file" {
    var buffers: [2][test_images.qcow2_size_max]u8 = undefined;
    for ([_]bool{ false, true }) |is_zstd| {
        var disk: [test_images.disk_size]u8 = @splat(0);
        const base = test_images.qcow2(&buffers[0], whole, 3, null, is_zstd);
        lay(&disk, whole, 3);
        var directory: TestDirectory = .init(&.{"a"}, &.{base});
        try directory.expectDisk(&disk);
        const clusters: test_images.Layout =
            .{ .absent, .absent, .data, .compressed, .absent, .zeros, .absent, .data };
        const top = test_images.qcow2(&buffers[1], clusters, 4, "/images/base.qcow2", is_zstd);
        lay(&disk, clusters, 4);
        directory = .init(&.{ "a", "base.qcow2" }, &.{ top, base });
        try directory.expectDisk(&disk);
        directory.names = &.{ "base.qcow2", "x" };
        try directory.expectFault(error.ParentCycle, 0);
    }
}

test "a backing file of a qcow2 image may be raw and shorter than its disk" {
    var buffer: [test_images.qcow2_size_max]u8 = undefined;
    const absent: test_images.Layout = @splat(.absent);
    const top = test_images.qcow2(&buffer, absent, 4, "base.raw", false);
    var disk: [test_images.disk_size]u8 = @splat(0);
    @memset(disk[0..5000], 'r');
    var directory: TestDirectory = .init(&.{ "a", "base.raw" }, &.{ top, disk[0..5000] });
    try directory.expectDisk(&disk);
    // Its name is no file beside the image.
    for ([_][]const u8{ "json:{\"file\":1}", "nbd://server/x", "..", "/" }) |name| {
        const other = test_images.qcow2(&buffer, absent, 4, name, false);
        directory = .init(&.{ "a", name }, &.{ other, disk[0..5000] });
        try directory.expectFault(error.ParentUnnamed, 0);
    }
}

test "features of qcow2 that cannot be read are refused by their names" {
    var buffer: [test_images.qcow2_size_max]u8 = undefined;
    for ([_]struct { usize, u8, Fault }{
        .{ 79, 2, error.MarkedCorrupt },
        .{ 79, 4, error.ExternalData },
        // Extended L2 entries, with clusters too small for them.
        .{ 79, 16, error.BadBlockSize },
        .{ 78, 1, error.UnknownFeature },
        .{ 35, 1, error.Encrypted },
        .{ 7, 4, error.UnknownVersion },
        .{ 23, 30, error.BadBlockSize },
        .{ 24, 1, error.BadDiskSize },
        .{ 40, 1, error.Truncated },
    }) |case| {
        const at, const value, const fault = case;
        const file = test_images.qcow2(&buffer, whole, 1, null, false);
        file[at] = value;
        var directory: TestDirectory = .init(&.{"a"}, &.{file});
        try directory.expectFault(fault, 0);
    }
}

test "a VMDK image has its grains, packed ones as well" {
    var buffer: [test_images.vmdk_size_max]u8 = undefined;
    for ([_]bool{ false, true }) |is_packed| {
        const file = test_images.vmdk(&buffer, whole, 3, is_packed);
        var disk: [test_images.disk_size]u8 = @splat(0);
        lay(&disk, whole, 3);
        var directory: TestDirectory = .init(&.{"a"}, &.{file});
        try directory.expectDisk(&disk);
    }
    const file = test_images.vmdk(&buffer, whole, 3, false);
    var directory: TestDirectory = .init(&.{"a"}, &.{file});
    file[75] = '\n';
    try directory.expectFault(error.HeaderDamaged, 0);
    file[75] = '\r';
    @memset(file[512..1536], 0);
    try directory.expectFault(error.MetadataDamaged, 0);
    const split = "createType=\"twoGbMaxExtentSparse\"";
    @memcpy(file[512..][0..split.len], split);
    try directory.expectFault(error.SeveralFiles, 0);
}

fn layVhdx(disk: []u8, layout: vhdx.Layout, seed: u8) void {
    const size = disk.len / vhdx.blocks;
    for (layout, 0..) |block, index| {
        if (block == .zeros) @memset(disk[index * size ..][0..size], 0);
        if (block == .absent or block == .zeros) continue;
        for (disk[index * size ..][0..size], index * size..) |*byte, offset| {
            const is_own = block != .part or offset / 512 % 2 == 0;
            if (!is_own) continue;
            byte.* = if (offset % vhdx.step < 4096) test_images.byteAt(seed, offset) else 0;
        }
    }
}

const VhdxFiles = struct {
    bytes: [2][vhdx.size_max]u8,
    disk: [vhdx.disk_size]u8,
};

test "VHDX images are read through their parents, which are known by the state of their data" {
    const files = try testing.allocator.create(VhdxFiles);
    defer testing.allocator.destroy(files);
    const base_layout: vhdx.Layout = .{ .data, .absent, .data, .data };
    const top_layout: vhdx.Layout = .{ .absent, .data, .part, .zeros };
    const base = vhdx.make(&files.bytes[0], base_layout, 3, null);
    @memset(&files.disk, 0);
    layVhdx(&files.disk, base_layout, 3);
    var directory: TestDirectory = .init(&.{"a"}, &.{base});
    try directory.expectDisk(&files.disk);
    const top = vhdx.make(
        &files.bytes[1],
        top_layout,
        4,
        .{ .name = "C:\\vm\\base.vhdx", .identity = @splat(3) },
    );
    layVhdx(&files.disk, top_layout, 4);
    directory = .init(&.{ "a", "base.vhdx" }, &.{ top, base });
    try directory.expectDisk(&files.disk);
    // The parent was written to since.
    for (0..2) |which| vhdx.header(&files.bytes[0], which, 9, 5);
    try directory.expectFault(error.ParentOther, 0);
}

test "of two VHDX headers the later valid one counts" {
    const files = try testing.allocator.create(VhdxFiles);
    defer testing.allocator.destroy(files);
    const file = vhdx.make(&files.bytes[0], @splat(.absent), 3, null);
    @memset(&files.disk, 0);
    var directory: TestDirectory = .init(&.{"a"}, &.{file});
    // The second header has a log that is not there, and a wrong checksum, then a right one.
    file[(128 << 10) + 48] = 1;
    try directory.expectDisk(&files.disk);
    std.mem.writeInt(u32, file[(128 << 10) + 4 ..][0..4], @import("vhdx_numbers.zig").checksum(
        file[128 << 10 ..][0..4096],
    ), .little);
    try directory.expectFault(error.LogDamaged, 0);
    file[64 << 10] = 'x';
    file[128 << 10] = 'x';
    try directory.expectFault(error.HeaderDamaged, 0);
}

test "the log of a VHDX that was not closed is applied, also where it wraps" {
    const files = try testing.allocator.create(VhdxFiles);
    defer testing.allocator.destroy(files);
    // The table knows block 1 only by the log, and block 0 no more.
    const layout: vhdx.Layout = .{ .data, .data, .absent, .data };
    for ([_]usize{ 0, 100, 253, 254, 255 }) |first_sector| {
        const file = vhdx.make(&files.bytes[0], layout, 3, null);
        var table: [4096]u8 = undefined;
        @memcpy(&table, file[vhdx.table_at..][0..4096]);
        @memset(file[vhdx.table_at..][0..4096], 0);
        // An earlier session's entries, which end before.
        vhdx.log(&files.bytes[0], 40, 7, &.{.{ .at = vhdx.table_at, .page = null }});
        vhdx.log(&files.bytes[0], first_sector, 20, &.{
            .{ .at = vhdx.table_at, .page = null },
            .{ .at = vhdx.table_at, .page = &table },
            // Of block 3, which has data every 64 KiB, the first data are zeros now.
            .{ .at = 8 << 20, .page = null },
        });
        @memset(&files.disk, 0);
        layVhdx(&files.disk, layout, 3);
        @memset(files.disk[3 << 20 ..][0..4096], 0);
        var directory: TestDirectory = .init(&.{"a"}, &.{file});
        try directory.expectDisk(&files.disk);
        // Without its last entry the earlier ones make no whole sequence: each knows its tail, so
        // that the page that they have counts.
        file[vhdx.log_at + (first_sector + 3) % 256 * 4096 + 70] ^= 1;
        layVhdx(&files.disk, layout, 3);
        try directory.expectDisk(&files.disk);
    }
}

test "a log without a whole sequence, and one that is not whole, are refused" {
    const files = try testing.allocator.create(VhdxFiles);
    defer testing.allocator.destroy(files);
    const file = vhdx.make(&files.bytes[0], @splat(.data), 3, null);
    vhdx.log(&files.bytes[0], 3, 20, &.{.{ .at = 0, .page = null }});
    var directory: TestDirectory = .init(&.{"a"}, &.{file});
    file[vhdx.log_at + 3 * 4096 + 90] ^= 1;
    try directory.expectFault(error.LogDamaged, 0);
    file[vhdx.log_at + 3 * 4096 + 90] ^= 1;
    // What the log has flushed is not there.
    directory = .init(&.{"a"}, &.{file[0 .. vhdx.size_max - 4096]});
    try directory.expectFault(error.Truncated, 0);
}

test "raw bytes that look like a container are raw only if that is said" {
    var bytes: [1024]u8 = @splat('.');
    bytes[0..8].* = "conectix".*;
    var directory: TestDirectory = .init(&.{"a"}, &.{&bytes});
    try directory.expectFault(error.HeaderDamaged, 0);
    const chain = try testing.allocator.create(Chain);
    defer testing.allocator.destroy(chain);
    try directory.open(chain, .raw);
    try testing.expect(chain.isRaw() and chain.size() == 1024);
    chain.close();
    try testing.expectError(error.OtherFormat, directory.open(chain, .qcow2));
    bytes[0..4].* = "QED\x00".*;
    try directory.expectFault(error.NotReadable, 0);
}

test "a place beyond the file's end is a fault of the read that needs it" {
    var buffer: [test_images.vhd_size_max]u8 = undefined;
    const file = test_images.vhd(&buffer, whole, 3, null);
    // The entry of block 1 in the table.
    std.mem.writeInt(u32, file[1536 + 4 ..][0..4], 0xffff_fffe, .big);
    var directory: TestDirectory = .init(&.{"a"}, &.{file});
    const chain = try testing.allocator.create(Chain);
    defer testing.allocator.destroy(chain);
    try directory.open(chain, null);
    defer chain.close();
    var bytes: [block_size]u8 = undefined;
    try chain.read(&bytes, 2 * block_size);
    try testing.expectEqual(null, chain.faultOfRead());
    try testing.expectError(error.Truncated, chain.read(&bytes, block_size));
    try testing.expectEqual(error.Truncated, chain.faultOfRead().?.fault);
}
