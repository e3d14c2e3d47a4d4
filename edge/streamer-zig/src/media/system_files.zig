//! Files of a boot medium that come from the system's packages: where they are, and how to
//! recognize them.

const std = @import("std");

pub const SystemFiles = struct {
    /// iPXE in the form of a Linux kernel.
    ipxe_bios: []const u8,
    ipxe_uefi: []const u8,
    isolinux: []const u8,
    /// Boot code for a disc image on a disk.
    mbr_code: []const u8,
    ldlinux: []const u8,
};

/// One of the fields of `SystemFiles`.
pub const Requirement = struct {
    field: []const u8,
    name: []const u8,
    /// Folders of Debian and of Fedora, in this order.
    folders: []const []const u8,
    /// The package that contains it, in Debian and in Ubuntu.
    package: []const u8,
    is_it: *const fn (bytes: []const u8) bool,
    /// Completes "FILE is not ...".
    description: []const u8,
    /// Set by --ipxe instead of --syslinux.
    is_ipxe: bool = false,
};

pub const requirements = [_]Requirement{
    .{
        .field = "ipxe_bios",
        .name = "ipxe.lkrn",
        .folders = &.{ "/usr/lib/ipxe", "/usr/share/ipxe" },
        .package = "ipxe",
        .is_it = isLinuxKernel,
        .description = "iPXE as a Linux kernel for BIOS machines",
        .is_ipxe = true,
    },
    .{
        .field = "ipxe_uefi",
        .name = "ipxe.efi",
        .folders = &.{ "/usr/lib/ipxe", "/usr/share/ipxe" },
        .package = "ipxe",
        .is_it = isUefiProgram,
        .description = "a UEFI program for x86-64",
        .is_ipxe = true,
    },
    .{
        .field = "isolinux",
        .name = "isolinux.bin",
        .folders = &.{ "/usr/lib/ISOLINUX", "/usr/share/syslinux" },
        .package = "isolinux",
        .is_it = isIsolinux,
        .description = "an ISOLINUX that starts from disks too (version 3.72 or later)",
    },
    .{
        .field = "mbr_code",
        .name = "isohdpfx.bin",
        .folders = &.{ "/usr/lib/ISOLINUX", "/usr/share/syslinux" },
        .package = "isolinux",
        .is_it = isStartCode,
        .description = "ISOLINUX's start code of 432 bytes",
    },
    .{
        .field = "ldlinux",
        .name = "ldlinux.c32",
        .folders = &.{ "/usr/lib/syslinux/modules/bios", "/usr/share/syslinux" },
        .package = "syslinux-common",
        .is_it = isElf,
        .description = "a module of ISOLINUX",
    },
};

/// iPXE has run a script of this name beside itself since January 2021.
pub fn looksForScript(ipxe_uefi: []const u8) bool {
    return std.mem.find(u8, ipxe_uefi, "autoexec.ipxe") != null;
}

/// Documentation/arch/x86/boot.rst of Linux: the header's magic number.
fn isLinuxKernel(bytes: []const u8) bool {
    return bytes.len > 0x206 and std.mem.eql(u8, bytes[0x202..0x206], "HdrS");
}

/// Microsoft's PE format: the last field of the old header points to the new one.
fn isUefiProgram(bytes: []const u8) bool {
    const machine_x86_64 = 0x8664;
    if (bytes.len < 0x40 or !std.mem.eql(u8, bytes[0..2], "MZ")) return false;
    const at = std.mem.readInt(u32, bytes[0x3c..0x40], .little);
    if (at > bytes.len - 6) return false;
    return std.mem.eql(u8, bytes[at..][0..4], "PE\x00\x00") and
        std.mem.readInt(u16, bytes[at + 4 ..][0..2], .little) == machine_x86_64;
}

fn isIsolinux(bytes: []const u8) bool {
    const hybrid_magic = 0x7078c0fb;
    // It loads itself below 384 KiB.
    if (bytes.len < 4096 or bytes.len > 384 << 10) return false;
    return std.mem.readInt(u32, bytes[64..68], .little) == hybrid_magic;
}

fn isStartCode(bytes: []const u8) bool {
    return bytes.len == 432 and std.mem.find(u8, bytes, "isolinux.bin missing") != null;
}

fn isElf(bytes: []const u8) bool {
    return std.mem.startsWith(u8, bytes, "\x7fELF");
}
