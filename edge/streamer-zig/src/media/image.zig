//! Builds a boot medium: one image that is an ISO 9660 disc for BIOS and UEFI machines, and works
//! for both when its bytes are written to a USB stick.
//!
//!     0      master boot record (USB, BIOS)
//!     32 KiB ISO 9660: boot catalogue, ISOLINUX, iPXE and its script (BIOS)
//!     n MiB  EFI system partition, a FAT16 that is a file of the disc as well (UEFI)

const std = @import("std");
const el_torito = @import("el_torito.zig");
const fat = @import("fat.zig");
const iso9660 = @import("iso9660.zig");
const mbr = @import("mbr.zig");
const system_files = @import("system_files.zig");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;

const mib = 1 << 20;
const disk_sectors_per_sector = iso9660.sector_size / mbr.sector_size;

pub const Content = struct {
    files: system_files.SystemFiles,
    /// The first UEFI program if iPXE does not find its script by itself.
    uefi_starter: []const u8,
    script: []const u8,
};

pub const Error = error{ OutOfMemory, FilesTooLarge };

/// The complete image. Equal content gives equal bytes.
pub fn build(arena: Allocator, content: Content) Error![]u8 {
    const efi_tree = try efiTree(arena, content);
    const efi_size = fat.sizeFor(efi_tree) orelse return error.FilesTooLarge;
    const efi = try arena.alloc(u8, efi_size);
    const program = try arena.dupe(u8, content.files.isolinux);
    const catalog = try arena.create([el_torito.catalog_size]u8);
    var files = [_]iso9660.File{
        .{ .name = "BOOT.CAT", .content = catalog },
        .{ .name = "BOOTFARM.IPX", .content = content.script },
        .{ .name = "IPXE.KRN", .content = content.files.ipxe_bios },
        .{ .name = "ISOLINUX.BIN", .content = program },
        .{ .name = "ISOLINUX.CFG", .content = isolinux_config },
        .{ .name = "LDLINUX.C32", .content = content.files.ldlinux },
        // The last file: its name sorts last, and it starts on a whole MiB of the disk.
        .{ .name = "UEFI.IMG", .content = efi },
    };
    const catalog_file, const program_file, const efi_file = .{ &files[0], &files[3], &files[6] };
    const volume: iso9660.Volume =
        .{ .label = "BOOTFARM", .folder_name = "ISOLINUX", .files = &files };
    volume.place();
    const others_end = @as(usize, efi_file.sector) * iso9660.sector_size;
    const efi_begin = std.mem.alignForward(usize, others_end, mib);
    efi_file.sector = @intCast(efi_begin / iso9660.sector_size);
    fat.write(efi, .{
        .root = efi_tree,
        .label = "BOOTFARM",
        .hidden_sectors = @intCast(efi_begin / fat.sector_size),
    });
    el_torito.fillBootInfo(program, program_file.sector);
    catalog.* = el_torito.catalog(.{
        .bios_sector = program_file.sector,
        .efi_sector = efi_file.sector,
        .efi_size = efi_size,
    });
    const image = try arena.alloc(u8, efi_begin + efi_size);
    @memset(image, 0);
    volume.write(image, catalog_file.sector);
    image[0..mbr.sector_size].* = mbr.record(.{
        .code = content.files.mbr_code,
        .program_sector = program_file.sector * disk_sectors_per_sector,
        .efi_begin = @intCast(efi_begin / mbr.sector_size),
        .efi_sectors = @intCast(efi_size / mbr.sector_size),
        .disk_id = std.hash.Crc32.hash(image[mbr.sector_size..]),
    });
    return image;
}

/// ISOLINUX passes the script to iPXE as its initial RAM disk.
const isolinux_config =
    \\DEFAULT bootfarm
    \\PROMPT 0
    \\LABEL bootfarm
    \\  LINUX ipxe.krn
    \\  INITRD bootfarm.ipx
    \\
;

/// UEFI 2.10 section 3.5.1.1 starts EFI/BOOT/BOOTX64.EFI from a removable medium.
fn efiTree(arena: Allocator, content: Content) error{OutOfMemory}![]const fat.Node {
    const ipxe = content.files.ipxe_uefi;
    const script: fat.Node = .{ .name = "autoexec.ipxe", .content = .{ .file = content.script } };
    const boot = if (system_files.looksForScript(ipxe)) try arena.dupe(fat.Node, &.{
        .{ .name = "BOOTX64.EFI", .content = .{ .file = ipxe } },
        script,
    }) else try arena.dupe(fat.Node, &.{
        .{ .name = "BOOTX64.EFI", .content = .{ .file = content.uefi_starter } },
        .{ .name = "ipxe.efi", .content = .{ .file = ipxe } },
        script,
    });
    const efi = try arena.dupe(fat.Node, &.{.{ .name = "BOOT", .content = .{ .folder = boot } }});
    return arena.dupe(fat.Node, &.{.{ .name = "EFI", .content = .{ .folder = efi } }});
}
