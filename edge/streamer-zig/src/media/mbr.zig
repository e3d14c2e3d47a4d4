//! The master boot record that makes the image bootable from a USB stick: ISOLINUX's boot code for
//! a disc image on a disk, and a partition table (UEFI 2.10 section 5.2) with the EFI system
//! partition. Partitions must not overlap, since firmware ignores such a table.

const std = @import("std");
const assert = std.debug.assert;

pub const sector_size = 512;
/// Space for isohdpfx.bin; its parameters follow.
pub const code_size_max = 432;
/// A cylinder of 64 heads and 32 sectors is one MiB, so partitions of whole MiB end on one.
const heads = 64;
const sectors_per_track = 32;
const type_efi_system = 0xef;
/// Hidden, so that no system offers to format it.
const type_hidden = 0x17;
const active = 0x80;
/// The descriptors of ISO 9660 start here; only this record is before them.
const iso_begin = 64;

pub const Options = struct {
    code: []const u8,
    /// Start of isolinux.bin in sectors of 512 bytes.
    program_sector: u32,
    /// In sectors of 512 bytes.
    efi_begin: u32,
    efi_sectors: u32,
    /// Identifies the disk.
    disk_id: u32,
};

pub fn record(options: Options) [sector_size]u8 {
    assert(options.code.len <= code_size_max);
    assert(options.efi_begin > iso_begin);
    var bytes: [sector_size]u8 = @splat(0);
    @memcpy(bytes[0..options.code.len], options.code);
    std.mem.writeInt(u64, bytes[432..440], options.program_sector, .little);
    std.mem.writeInt(u32, bytes[440..444], options.disk_id, .little);
    bytes[446..462].* = partition(active, type_hidden, iso_begin, options.efi_begin - iso_begin);
    bytes[462..478].* = partition(0, type_efi_system, options.efi_begin, options.efi_sectors);
    bytes[510..512].* = .{ 0x55, 0xaa };
    return bytes;
}

fn partition(flag: u8, kind: u8, begin: u32, count: u32) [16]u8 {
    var entry: [16]u8 = undefined;
    entry[0] = flag;
    entry[1..4].* = address(begin);
    entry[4] = kind;
    entry[5..8].* = address(begin + count - 1);
    std.mem.writeInt(u32, entry[8..12], begin, .little);
    std.mem.writeInt(u32, entry[12..16], count, .little);
    return entry;
}

/// Head, sector from 1 with the cylinder's upper bits, cylinder.
fn address(sector: u32) [3]u8 {
    const cylinder = sector / (heads * sectors_per_track);
    assert(cylinder < 1024);
    const head: u8 = @intCast(sector / sectors_per_track % heads);
    const upper: u8 = @intCast(cylinder >> 8);
    const in_track: u8 = @intCast(sector % sectors_per_track + 1);
    return .{ head, upper << 6 | in_track, @truncate(cylinder) };
}
