//! The boot catalogue of a CD (El Torito 1.0, section 2): one entry for BIOS machines and one for
//! UEFI machines (UEFI 2.10 section 13.3.2.1), both without emulation. Also the table that ISOLINUX
//! needs in its own file, since El Torito does not tell a program its location.

const std = @import("std");
const assert = std.debug.assert;

pub const catalog_size = 2048;
const entry_size = 32;
const platform_bios = 0x00;
const platform_efi = 0xef;
const bootable = 0x88;
const last_header = 0x91;
/// El Torito's unit, whatever the disc's sectors are.
const virtual_sector_size = 512;
/// Sectors of a program that are loaded; it loads the rest itself.
const bios_sectors = 4;

pub const Options = struct {
    /// Sectors of 2048 bytes.
    bios_sector: u32,
    efi_sector: u32,
    /// Bytes; whole sectors of 512, fewer than 65536 of them.
    efi_size: usize,
};

pub fn catalog(options: Options) [catalog_size]u8 {
    assert(options.efi_size % virtual_sector_size == 0);
    var bytes: [catalog_size]u8 = @splat(0);
    const validation = bytes[0..entry_size];
    validation[0] = 1;
    validation[1] = platform_bios;
    validation[4..12].* = "BOOTFARM".*;
    validation[30..32].* = .{ 0x55, 0xaa };
    std.mem.writeInt(u16, validation[28..30], complement(validation), .little);
    entry(bytes[entry_size..][0..entry_size], options.bios_sector, bios_sectors);
    const header = bytes[2 * entry_size ..][0..entry_size];
    header[0] = last_header;
    header[1] = platform_efi;
    std.mem.writeInt(u16, header[2..4], 1, .little); // entries that follow
    const efi_sectors: u16 = @intCast(options.efi_size / virtual_sector_size);
    entry(bytes[3 * entry_size ..][0..entry_size], options.efi_sector, efi_sectors);
    return bytes;
}

/// Figures 3 and 5: medium 0 is "no emulation", load segment 0 the traditional 0x7c0.
fn entry(bytes: *[entry_size]u8, sector: u32, sector_count: u16) void {
    bytes[0] = bootable;
    std.mem.writeInt(u16, bytes[6..8], sector_count, .little);
    std.mem.writeInt(u32, bytes[8..12], sector, .little);
}

/// Makes the sum of the entry's words zero.
fn complement(bytes: *const [entry_size]u8) u16 {
    var sum: u16 = 0;
    for (0..entry_size / 2) |index|
        sum +%= std.mem.readInt(u16, bytes[index * 2 ..][0..2], .little);
    return 0 -% sum;
}

const table_at = 8;
const table_end = 64;

/// Writes the boot information table (mkisofs(8), "EL TORITO BOOT INFORMATION TABLE") into the boot
/// program: the sectors of the volume's first descriptor and of the program, its size in bytes, and
/// the sum of its 32-bit words from byte 64 on.
pub fn fillBootInfo(program: []u8, program_sector: u32) void {
    var sum: u32 = 0;
    var at: usize = table_end;
    while (at < program.len) : (at += 4) {
        var word: [4]u8 = @splat(0);
        const count = @min(4, program.len - at);
        @memcpy(word[0..count], program[at..][0..count]);
        sum +%= std.mem.readInt(u32, &word, .little);
    }
    const table = program[table_at..table_end];
    @memset(table, 0);
    const fields = [_]u32{ 16, program_sector, @intCast(program.len), sum };
    for (fields, 0..) |field, index|
        std.mem.writeInt(u32, table[index * 4 ..][0..4], field, .little);
}
