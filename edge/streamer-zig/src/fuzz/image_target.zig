//! Fuzzes disk images, which are untrusted: tables, file systems, configurations of boot loaders.

const std = @import("std");
const image = @import("image");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const test_disk = image.test_disk;

var bytes: test_disk.Bytes = undefined;
var memory: [image.boot_files.memory_max]u8 = undefined;
var disk: image.Disk = undefined;

pub fn disks(case: *Case) Violation!bool {
    const prng = &case.prng;
    switch (prng.below(3)) {
        0 => test_disk.debian(&bytes, .ext4),
        1 => test_disk.debian(&bytes, .ext2),
        else => test_disk.efiPartition(&bytes),
    }
    for (0..@intCast(prng.below(8))) |_| damage(case);
    var memory_disk: image.MemoryDisk = .{ .bytes = &bytes };
    const source = memory_disk.source();
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    disk.open(fixed.allocator(), &source) catch |problem| {
        try expect(problem != error.OutOfMemory, "an open disk takes no more memory than is said");
        return false;
    };
    const answer = image.find(fixed.allocator(), &disk) catch |problem| {
        try expect(
            problem != error.OutOfMemory,
            "what is looked for takes no more memory than is said",
        );
        return false;
    };
    switch (answer) {
        .reason => |reason| {
            var text: [8192]u8 = undefined;
            _ = std.mem.print(&text, "{f}", .{reason}) catch
                return fuzz_case.violated("a reason is a sentence");
            return false;
        },
        .found => |*files| try expectWhole(files),
    }
    return true;
}

/// The map of files of a damaged disk: whole, or an error.
pub fn fileMaps(case: *Case) Violation!bool {
    const prng = &case.prng;
    const is_small = prng.chance(1, 2);
    if (is_small) {
        switch (prng.below(3)) {
            0 => test_disk.debian(&bytes, .ext4),
            1 => test_disk.debian(&bytes, .ext2),
            else => test_disk.efiPartition(&bytes),
        }
        for (0..@intCast(prng.below(8))) |_| damage(case);
    } else damagedGolden(case);
    var memory_disk: image.MemoryDisk = .{ .bytes = &bytes };
    const source = if (is_small) memory_disk.source() else golden.source();
    const gpa = std.heap.smp_allocator;
    var map = image.mapDisk(gpa, &source, .{ .reads = 200_000 }) catch return false;
    defer map.deinit(gpa);
    try expect(map.isWhole(), "a map has no gaps, and every name has a parent");
    var buffer: [64]u8 = undefined;
    for (0..map.names.len) |index| for (map.path(@intCast(index), &buffer)) |byte|
        try expect(std.ascii.isPrint(byte), "a path is printable");
    return map.names.len > 1;
}

/// Sensitive values: numbers in tables, and sizes at their limits.
fn damage(case: *Case) void {
    const prng = &case.prng;
    var at: usize = 0;
    // Most of a table is empty: used parts are damaged more often.
    for (0..16) |_| {
        at = @intCast(prng.below(
            if (prng.chance(1, 8)) test_disk.size - 4 else test_disk.meta_size,
        ));
        if (bytes[at] != 0) break;
    }
    switch (prng.below(4)) {
        0 => bytes[at] ^= @as(u8, 1) << @intCast(prng.below(8)),
        1 => bytes[at] = case.byte(),
        2 => std.mem.writeInt(u32, bytes[at..][0..4], prng.nextU32(), .little),
        else => @memset(bytes[at..][0..4], if (prng.chance(1, 2)) 0xff else 0),
    }
}

fn expectWhole(files: *const image.BootFiles) Violation!void {
    try expect(
        files.kernel.size() <= image.boot_files.kernel_size_max,
        "a kernel is no larger than its limit",
    );
    try expect(
        files.command_line.len <= image.command_line.size_max,
        "a command line is no longer than its limit",
    );
    var stream: image.Stream = .open(&disk, &files.kernel);
    var buffer: [64 << 10]u8 = undefined;
    var size: u64 = 0;
    while (true) {
        // Sizes larger than this image are holes; reading their start is enough.
        if (size > 4 << 20) return;
        const part = stream.read(&buffer) catch return;
        if (part == 0) break;
        size += part;
    }
    try expect(size == files.kernel.size(), "a kernel that is read to its end is read whole");
}

pub fn partitionTables(case: *Case) Violation!bool {
    const prng = &case.prng;
    var table = image.partitions.testGpt();
    const places = [_][2]u64{
        .{ 440, 512 },
        .{ 512, 604 },
        .{ 1024, 1536 },
        .{ table.len - 512, table.len - 400 },
    };
    if (prng.chance(1, 3)) table[450] = 5;
    for (0..@intCast(prng.below(5))) |_| {
        const place = prng.pick([2]u64, &places);
        table[@intCast(prng.between(place[0], place[1] - 1))] = case.byte();
    }
    var memory_disk: image.MemoryDisk = .{ .bytes = &table };
    const source = memory_disk.source();
    var work: image.volume.ReadBudget = .{ .reads_left = 10_000 };
    const layout = image.partitions.read(&.whole(&source, &work)) catch return false;
    for (layout.partitions.constSlice()) |partition| {
        try expect(
            partition.number > 0 and partition.first > 0 and partition.size > 0,
            "a partition is somewhere",
        );
        _ = std.math.add(u64, partition.first, partition.size) catch
            return fuzz_case.violated("a partition has an end");
    }
    return layout.partitions.count > 0;
}

var golden: image.golden.GoldenDisk = undefined;
/// What is open at once: the search, and the memory to unpack files of Btrfs.
var golden_memory: [24 << 20]u8 = undefined;

/// Loads a file system made by its own tools, with damaged tables, most often with matching
/// checksums.
fn damagedGolden(case: *Case) void {
    const prng = &case.prng;
    const name = prng.pick(image.golden.Name, std.enums.values(image.golden.Name));
    golden.load(name);
    for (0..@intCast(prng.below(6))) |_| {
        const sector = golden.sector(@intCast(prng.below(golden.count)));
        const at: usize = @intCast(prng.below(508));
        switch (prng.below(4)) {
            0 => sector[at] ^= @as(u8, 1) << @intCast(prng.below(8)),
            1 => sector[at] = case.byte(),
            2 => std.mem.writeInt(u32, sector[at..][0..4], prng.nextU32(), .little),
            else => @memset(sector[at..][0..4], if (prng.chance(1, 2)) 0xff else 0),
        }
    }
    if (name == .btrfs and !prng.chance(1, 8)) golden.seal();
}

pub fn fileSystems(case: *Case) Violation!bool {
    damagedGolden(case);
    const source = golden.source();
    var fixed: std.heap.FixedBufferAllocator = .init(&golden_memory);
    disk.open(fixed.allocator(), &source) catch |problem| {
        try expect(problem != error.OutOfMemory, "an open disk takes no more memory than is said");
        return false;
    };
    const answer = image.find(fixed.allocator(), &disk) catch |problem| {
        try expect(problem != error.OutOfMemory, "a search takes no more memory than is said");
        return false;
    };
    switch (answer) {
        .reason => return false,
        .found => |*files| try expectWhole(files),
    }
    return true;
}

var lvm_bytes: [image.lvm.test_size]u8 = undefined;

/// A volume group whose label, header or text is damaged, most often with a matching checksum.
pub fn logicalVolumes(case: *Case) Violation!bool {
    const prng = &case.prng;
    image.lvm.testVolume(&lvm_bytes);
    for (0..@intCast(prng.below(4))) |_| image.lvm.damageTest(&lvm_bytes, prng.nextU32());
    if (!prng.chance(1, 8)) image.lvm.sealTest(&lvm_bytes);
    var memory_disk: image.MemoryDisk = .{ .bytes = &lvm_bytes };
    const source = memory_disk.source();
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    disk.open(fixed.allocator(), &source) catch |problem| {
        try expect(problem != error.OutOfMemory, "an open disk takes no more memory than is said");
        return false;
    };
    var is_linear = false;
    for (disk.parts.constSlice()) |*part| {
        if (part.logical == null or part.volume.size == 0) continue;
        is_linear = true;
        const volume = &part.volume;
        try expect(volume.size <= 1 << 40, "a linear volume is no larger than its extents");
        var last: [1]u8 = undefined;
        volume.read(&last, volume.size - 1) catch
            return fuzz_case.violated("a volume that was located can be read to its end");
    }
    return is_linear;
}

const grub =
    \\set default="1>0"
    \\menuentry 'a' --id b { 
    \\ linux ($root)/vmlinuz root=/dev/sda1 quiet $extra "a b"
    \\ initrd /initrd.img /more\ e
    \\}
    \\submenu 'c' {
    \\ menuentry "d" {
    \\  linux16 /k
    \\ }
    \\}
;
const extlinux =
    \\DEFAULT a
    \\LABEL a
    \\ LINUX ../k
    \\ INITRD i,j
    \\ APPEND initrd=l root=x quiet
;
const entry =
    \\title a
    \\version 6
    \\linux /k
    \\initrd /i /j
    \\options a b
    \\options c
;

pub fn loaderTexts(case: *Case) Violation!bool {
    const prng = &case.prng;
    const sample = prng.pick([]const u8, &.{ grub, extlinux, entry });
    var buffer: [1024]u8 = undefined;
    @memcpy(buffer[0..sample.len], sample);
    const text =
        if (prng.chance(1, 16)) case.garbage(&buffer) else case.mutate(&buffer, sample.len);
    const menu = image.grub_menu.read(case.gpa, text, null) catch
        return fuzz_case.violated("a small menu takes little memory");
    const bls = image.loader_texts.readBls(case.gpa, text) catch
        return fuzz_case.violated("a small entry takes little memory");
    const found = menu.chosen orelse image.loader_texts.readExtlinux(text) orelse bls orelse
        return false;
    try expect(found.kernel.len > 0, "an entry starts a kernel");
    var line: [image.command_line.size_max]u8 = undefined;
    const cleaned = image.command_line.clean(found.options, &line) catch return true;
    for (cleaned.kept) |byte| try expect(std.ascii.isPrint(byte), "a command line is printable");
    try expect(
        std.mem.find(u8, cleaned.kept, "root=") != 0,
        "a command line has no root of a disk",
    );
    const once_more = image.command_line.clean(cleaned.kept, &buffer) catch
        return fuzz_case.violated("what was cleaned fits");
    try expect(once_more.removed == 0, "what was cleaned is clean");
    const a = case.text(buffer[0..32], 0);
    const order = image.version_order.compare(a, found.kernel);
    try expect(
        image.version_order.compare(found.kernel, a) == order.invert(),
        "versions have one order",
    );
    return true;
}
