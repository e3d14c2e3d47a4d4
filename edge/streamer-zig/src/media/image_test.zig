//! Tests of image.zig. Boot media are read back with separate readers, which know the formats and
//! share no code with the writers.

const std = @import("std");
const image_module = @import("image.zig");
const iso_reader = @import("test_iso_reader.zig");
const fat_reader = @import("test_fat_reader.zig");
const testing = std.testing;

const mib = 1 << 20;
const old_ipxe_uefi = "MZ an iPXE of 2019";
const new_ipxe_uefi = "MZ an iPXE that looks for autoexec.ipxe by itself";
const starter = "MZ the program that types";
const script = "#!ipxe\necho hello\n";

fn bytesOf(comptime size: usize, seed: u64) [size]u8 {
    var bytes: [size]u8 = undefined;
    var prng: std.Random.DefaultPrng = .init(seed);
    prng.random().bytes(&bytes);
    return bytes;
}

const isolinux = bytes: {
    @setEvalBranchQuota(100_000);
    break :bytes bytesOf(4099, 1);
};
const mbr_code: [432]u8 = @splat(0x90);
const ipxe_bios: [5000]u8 = @splat(0x42);

fn contentWith(ipxe_uefi: []const u8) image_module.Content {
    return .{
        .files = .{
            .ipxe_bios = &ipxe_bios,
            .ipxe_uefi = ipxe_uefi,
            .isolinux = &isolinux,
            .mbr_code = &mbr_code,
            .ldlinux = "\x7fELF module",
        },
        .uefi_starter = starter,
        .script = script,
    };
}

const MediumFixture = struct {
    arena: std.heap.ArenaAllocator,
    image: []u8,

    fn of(content: image_module.Content) !MediumFixture {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        errdefer arena.deinit();
        const image = try image_module.build(arena.allocator(), content);
        return .{ .arena = arena, .image = image };
    }

    fn int(built: *const MediumFixture, comptime T: type, at: usize) T {
        return std.mem.readInt(T, built.image[at..][0..@sizeOf(T)], .little);
    }

    fn efiVolume(built: *const MediumFixture) ![]const u8 {
        return iso_reader.file(built.image, "ISOLINUX", "UEFI.IMG");
    }
};

test "the disc has every file as it was given, and only isolinux.bin is patched" {
    var built: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer built.arena.deinit();
    const image = built.image;
    const files = .{ .{ "BOOTFARM.IPX", script }, .{ "IPXE.KRN", &ipxe_bios } };
    inline for (files) |file|
        try testing.expectEqualSlices(u8, file[1], try iso_reader.file(image, "ISOLINUX", file[0]));
    const config = try iso_reader.file(image, "ISOLINUX", "ISOLINUX.CFG");
    try testing.expect(std.mem.find(u8, config, "LINUX ipxe.krn\n") != null);
    try testing.expect(std.mem.find(u8, config, "INITRD bootfarm.ipx\n") != null);
    const program = try iso_reader.file(image, "ISOLINUX", "ISOLINUX.BIN");
    try testing.expectEqualSlices(u8, isolinux[0..8], program[0..8]);
    try testing.expectEqualSlices(u8, isolinux[64..], program[64..]);
    try iso_reader.checkStructure(image);
}

test "the boot catalogue leads a BIOS to ISOLINUX and UEFI to the system partition" {
    var built: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer built.arena.deinit();
    const image = built.image;
    const record = 17 * 2048;
    const head = "\x00CD001\x01EL TORITO SPECIFICATION\x00";
    try testing.expectEqualStrings(head, image[record..][0..head.len]);
    const catalog = built.int(u32, record + 0x47) * 2048;
    var sum: u16 = 0;
    for (0..16) |word| sum +%= built.int(u16, catalog + word * 2);
    try testing.expectEqual(0, sum);
    try testing.expectEqual(0x88, image[catalog + 32]);
    const program = try iso_reader.file(image, "ISOLINUX", "ISOLINUX.BIN");
    const bios_sector = built.int(u32, catalog + 40);
    try testing.expectEqual(program.ptr, image[bios_sector * 2048 ..].ptr);
    try testing.expectEqualSlices(u8, &.{ 0x91, 0xef, 1, 0 }, image[catalog + 64 ..][0..4]);
    try testing.expectEqual(0x88, image[catalog + 96]);
    const volume = try built.efiVolume();
    const efi_sector = built.int(u32, catalog + 96 + 8);
    try testing.expectEqual(volume.ptr, image[efi_sector * 2048 ..].ptr);
    try testing.expectEqual(volume.len, @as(usize, built.int(u16, catalog + 96 + 6)) * 512);
}

test "ISOLINUX is given its location, size and checksum" {
    var built: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer built.arena.deinit();
    const program = try iso_reader.file(built.image, "ISOLINUX", "ISOLINUX.BIN");
    const begin = @intFromPtr(program.ptr) - @intFromPtr(built.image.ptr);
    try testing.expectEqual(16, built.int(u32, begin + 8));
    try testing.expectEqual(begin / 2048, built.int(u32, begin + 12));
    try testing.expectEqual(isolinux.len, built.int(u32, begin + 16));
    // It sums whole words of its sectors, and the rest of a file's last sector is zero.
    var sum: u32 = 0;
    var at: usize = 64;
    while (at < program.len) : (at += 4) sum +%= built.int(u32, begin + at);
    try testing.expectEqual(sum, built.int(u32, begin + 20));
}

test "the partition table has the system partition and no overlap" {
    var built: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer built.arena.deinit();
    const image = built.image;
    try testing.expectEqualSlices(u8, &mbr_code, image[0..432]);
    const program = try iso_reader.file(image, "ISOLINUX", "ISOLINUX.BIN");
    const program_begin = @intFromPtr(program.ptr) - @intFromPtr(image.ptr);
    try testing.expectEqual(program_begin / 512, built.int(u64, 432));
    try testing.expectEqual(0x80, image[446]);
    const first_begin, const first_size = .{ built.int(u32, 446 + 8), built.int(u32, 446 + 12) };
    const efi_begin, const efi_size = .{ built.int(u32, 462 + 8), built.int(u32, 462 + 12) };
    try testing.expectEqual(0xef, image[462 + 4]);
    try testing.expectEqual(efi_begin, first_begin + first_size);
    try testing.expectEqual(image.len, @as(usize, efi_begin + efi_size) * 512);
    try testing.expectEqual((try built.efiVolume()).ptr, image[efi_begin * 512 ..].ptr);
    // Whole cylinders of 64 heads and 32 sectors: both end on head 63, sector 32.
    for ([_]usize{ 446, 462 }) |entry| {
        try testing.expectEqual(63, image[entry + 5]);
        try testing.expectEqual(32, image[entry + 6] & 0x3f);
    }
    try testing.expect(std.mem.allEqual(u8, image[478..510], 0));
    try testing.expectEqualSlices(u8, &.{ 0x55, 0xaa }, image[510..512]);
}

test "an iPXE that does not look for its script is started by the typing program" {
    var built: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer built.arena.deinit();
    const volume: fat_reader.Volume = try .open(try built.efiVolume());
    try testing.expectEqualStrings(starter, try volume.file("EFI/BOOT/BOOTX64.EFI"));
    try testing.expectEqualStrings(old_ipxe_uefi, try volume.file("EFI/BOOT/ipxe.efi"));
    try testing.expectEqualStrings(script, try volume.file("EFI/BOOT/autoexec.ipxe"));
    try testing.expectEqual(volume.hidden_sectors, built.int(u32, 462 + 8));
    try volume.checkStructure();
}

test "UEFI starts an iPXE that looks for its script" {
    var built: MediumFixture = try .of(contentWith(new_ipxe_uefi));
    defer built.arena.deinit();
    const volume: fat_reader.Volume = try .open(try built.efiVolume());
    try testing.expectEqualStrings(new_ipxe_uefi, try volume.file("EFI/BOOT/BOOTX64.EFI"));
    try testing.expectEqualStrings(script, try volume.file("EFI/BOOT/autoexec.ipxe"));
    try testing.expectError(error.FileNotFound, volume.file("EFI/BOOT/ipxe.efi"));
}

test "equal files give equal bytes, and another script another disk" {
    var first: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer first.arena.deinit();
    var second: MediumFixture = try .of(contentWith(old_ipxe_uefi));
    defer second.arena.deinit();
    try testing.expectEqualSlices(u8, first.image, second.image);
    var other_content = contentWith(old_ipxe_uefi);
    other_content.script = "#!ipxe\necho other\n";
    var other: MediumFixture = try .of(other_content);
    defer other.arena.deinit();
    try testing.expect(first.int(u32, 440) != other.int(u32, 440));
}

test "an iPXE of any size is read back whole, until it is too large for a FAT16" {
    const sizes = [_]usize{ 1, 511, 512, 513, 3 * mib - 60_000, 3 * mib, 5 * mib + 1, 30 * mib };
    const large = try testing.allocator.alloc(u8, 32 * mib);
    defer testing.allocator.free(large);
    var prng: std.Random.DefaultPrng = .init(2);
    prng.random().bytes(large);
    for (sizes) |size| {
        var built: MediumFixture = try .of(contentWith(large[0..size]));
        defer built.arena.deinit();
        const volume: fat_reader.Volume = try .open(try built.efiVolume());
        try testing.expectEqualSlices(u8, large[0..size], try volume.file("EFI/BOOT/ipxe.efi"));
        try volume.checkStructure();
    }
    try testing.expectError(error.FilesTooLarge, MediumFixture.of(contentWith(large)));
}
