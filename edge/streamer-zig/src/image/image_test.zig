//! Tests of whole disks: what is found on them, and that damage anywhere gives an answer.

const std = @import("std");
const image = @import("image.zig");
const partitions = @import("partitions.zig");
const test_disk = @import("test_disk.zig");
const testing = std.testing;
const Disk = image.Disk;

/// What was found on a disk in memory, with its kernel's bytes.
const SearchResult = struct {
    arena: std.heap.ArenaAllocator,
    disk: Disk,
    memory: image.MemoryDisk,
    source: @import("store").BlockSource,
    answer: image.boot_files.Answer,

    fn open(found: *SearchResult, bytes: []const u8) !void {
        found.arena = .init(testing.allocator);
        errdefer found.arena.deinit();
        found.memory = .{ .bytes = bytes };
        found.source = found.memory.source();
        try found.disk.open(found.arena.allocator(), &found.source);
        found.answer = try image.find(found.arena.allocator(), &found.disk);
    }

    fn close(found: *SearchResult) void {
        found.arena.deinit();
    }

    fn expectKernel(found: *SearchResult, path: []const u8) !void {
        const files = &found.answer.found;
        try testing.expectEqualStrings(path, files.kernel.path);
        var written: std.Io.Writer.Allocating = .init(found.arena.allocator());
        // Not a multiple of the block size, so that partial blocks are read too.
        var buffer: [700]u8 = undefined;
        try image.copy(&found.disk, &files.kernel, &written.writer, &buffer);
        try testing.expectEqualStrings(test_disk.kernel, written.written());
    }

    fn expectReason(found: *SearchResult, words: []const u8) !void {
        var written: std.Io.Writer.Allocating = .init(found.arena.allocator());
        try written.writer.print("{f}", .{found.answer.reason});
        errdefer std.debug.print("{s}\n", .{written.written()});
        try testing.expect(std.mem.find(u8, written.written(), words) != null);
    }
};

test "a Debian without partitions gives the entry of its grub.cfg, through links, with blocks of both kinds" {
    for ([_]test_disk.Kind{ .ext4, .ext2 }) |kind| {
        var bytes: test_disk.Bytes = undefined;
        test_disk.debian(&bytes, kind);
        var found: SearchResult = undefined;
        try found.open(&bytes);
        defer found.close();
        try found.expectKernel("/vmlinuz");
        const files = &found.answer.found;
        try testing.expectEqual(image.boot_files.Source.grub, files.by);
        try testing.expectEqualStrings("quiet", files.command_line);
        try testing.expectEqual(2, files.removed_words);
        try testing.expectEqual(1, files.initrds.len);
        try testing.expect(!files.is_prepared);
        try testing.expectEqual(null, files.release);
    }
}

test "the newest kernel is used if no configuration names one" {
    var bytes: test_disk.Bytes = undefined;
    test_disk.debian(&bytes, .ext4);
    // grub.cfg now has another name.
    bytes[std.mem.find(u8, &bytes, "grub.cfg").?] = 'x';
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectKernel("/boot/vmlinuz-6.1.0-18-amd64");
    try testing.expectEqualStrings("6.1.0-18-amd64", found.answer.found.release.?);
    try testing.expectEqual(image.boot_files.Source.names, found.answer.found.by);
}

test "an entry of the Boot Loader Specification on an EFI system partition is used" {
    var bytes: test_disk.Bytes = undefined;
    test_disk.efiPartition(&bytes);
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectKernel("/kernel");
    try testing.expectEqual(
        image.boot_files.Source.boot_loader_specification,
        found.answer.found.by,
    );
    try testing.expectEqualStrings("/loader/entries/a.conf", found.answer.found.origin);
    try testing.expectEqualStrings("quiet", found.answer.found.command_line);
}

test "a file system whose journal must be replayed is not served" {
    var bytes: test_disk.Bytes = undefined;
    test_disk.debian(&bytes, .ext4);
    bytes[1024 + 96] |= 0x4;
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectReason("was not unmounted: boot and shut it down first");
}

test "file systems that cannot be read are named" {
    var bytes: test_disk.Bytes = @splat(0);
    @memcpy(bytes[0..4], "XFSB");
    std.mem.writeInt(u32, bytes[4..8], 4096, .big);
    std.mem.writeInt(u64, bytes[8..16], 16, .big);
    var found: SearchResult = undefined;
    try found.open(&bytes);
    try found.expectReason("the file system has an unknown feature");
    found.close();
    @memset(&bytes, 0);
    try found.open(&bytes);
    try found.expectReason("no known file system was found");
    found.close();
    var ext: test_disk.Ext = .init(&bytes, .ext4);
    _ = ext.directory(2, "etc");
    try found.open(&bytes);
    try found.expectReason("no kernel was found");
    found.close();
}

test "a file that is not a kernel is reported, and so is a program that has none" {
    var bytes: test_disk.Bytes = undefined;
    var ext: test_disk.Ext = .init(&bytes, .ext4);
    ext.file(2, "vmlinuz", "#!/bin/sh\n");
    var found: SearchResult = undefined;
    try found.open(&bytes);
    try found.expectReason("/vmlinuz is not a kernel");
    found.close();
    ext = .init(&bytes, .ext4);
    ext.file(ext.directory(ext.directory(2, "EFI"), "Linux"), "arch.efi", "MZ");
    try found.open(&bytes);
    try found.expectReason("/EFI/Linux/arch.efi is not a unified kernel image");
    found.close();
}

test "the newest unified kernel image gives its kernel, its initramfs and its command line" {
    var program: [24 << 10]u8 = undefined;
    const file = image.unified_kernel.testImage(&program, &.{
        .{ ".uname", "6.9.4-arch1\n" },
        .{ ".cmdline", "root=UUID=1 rw quiet\n\x00" },
        .{ ".linux", test_disk.kernel },
        .{ ".initrd", "initrd" },
    });
    var bytes: test_disk.Bytes = undefined;
    var ext: test_disk.Ext = .init(&bytes, .ext2);
    const directory = ext.directory(ext.directory(2, "EFI"), "Linux");
    ext.file(directory, "arch-6.8.efi", "MZ");
    ext.file(directory, "arch-6.10.efi", file);
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectKernel("/EFI/Linux/arch-6.10.efi");
    const files = &found.answer.found;
    try testing.expectEqual(image.boot_files.Source.unified, files.by);
    try testing.expectEqualStrings("quiet", files.command_line);
    try testing.expectEqualStrings("6.9.4-arch1", files.release.?);
    try testing.expectEqual(6, files.initrds[0].size());
    var stream: image.Stream = .open(&found.disk, &files.initrds[0]);
    var buffer: [16]u8 = undefined;
    try testing.expectEqual(6, try stream.read(&buffer));
    try testing.expectEqualStrings("initrd", buffer[0..6]);
}

test "a kernel beside its modules is used if there is no other" {
    var bytes: test_disk.Bytes = undefined;
    var ext: test_disk.Ext = .init(&bytes, .ext4);
    _ = ext.directory(2, "etc");
    const usr = ext.directory(2, "usr");
    _ = ext.directory(usr, "bin");
    const modules = ext.directory(ext.directory(usr, "lib"), "modules");
    ext.file(ext.directory(modules, "6.9.4"), "vmlinuz", "old");
    const newest = ext.directory(modules, "6.10.1");
    ext.file(newest, "vmlinuz", test_disk.kernel);
    ext.file(newest, "initramfs.img", "initrd");
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectKernel("/usr/lib/modules/6.10.1/vmlinuz");
    try testing.expectEqualStrings("6.10.1", found.answer.found.release.?);
    try testing.expectEqual(1, found.answer.found.initrds.len);
}

test "cycles of symbolic links end" {
    var bytes: test_disk.Bytes = undefined;
    var ext: test_disk.Ext = .init(&bytes, .ext4);
    ext.symlink(2, "vmlinuz", "boot");
    ext.symlink(2, "boot", "/../vmlinuz/./");
    ext.symlink(2, "etc", "etc/etc");
    var found: SearchResult = undefined;
    try found.open(&bytes);
    defer found.close();
    try found.expectReason("no kernel was found");
}

test "memory stays small during a search, whatever the disk says" {
    var bytes: test_disk.Bytes = undefined;
    test_disk.debian(&bytes, .ext2);
    const memory = try testing.allocator.alloc(u8, image.boot_files.memory_max);
    defer testing.allocator.free(memory);
    var fixed: std.heap.FixedBufferAllocator = .init(memory);
    var memory_disk: image.MemoryDisk = .{ .bytes = &bytes };
    const source = memory_disk.source();
    var disk: Disk = undefined;
    try disk.open(fixed.allocator(), &source);
    try testing.expect(try image.find(fixed.allocator(), &disk) == .found);
}

test "each flipped bit of a disk's tables gives an answer, and never other bytes of another size" {
    var bytes: test_disk.Bytes = undefined;
    for ([_]?test_disk.Kind{ .ext4, .ext2, null }) |kind| {
        if (kind) |ext| test_disk.debian(&bytes, ext) else test_disk.efiPartition(&bytes);
        // The superblock, the first inodes and directories: one bit of every fifth byte, a
        // different one each time.
        for (0..test_disk.meta_size / 5) |index| {
            const at = index * 5 + index % 5;
            const bit = @as(u8, 1) << @intCast(index % 8);
            bytes[at] ^= bit;
            defer bytes[at] ^= bit;
            var found: SearchResult = undefined;
            found.open(&bytes) catch continue;
            defer found.close();
            const files = switch (found.answer) {
                .found => |*files| files,
                .reason => continue,
            };
            var stream: image.Stream = .open(&found.disk, &files.kernel);
            var buffer: [4096]u8 = undefined;
            var size: u64 = 0;
            while (stream.read(&buffer) catch null) |part| : (size += part) if (part == 0) break;
            try testing.expect(size <= files.kernel.size());
        }
    }
}
