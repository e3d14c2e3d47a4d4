//! Writes an ISO 9660 volume (ECMA-119, 2nd edition; section numbers below are its own) with El
//! Torito's boot record in sector 17. Names are of interchange level 1 (10.1). Every date is "not
//! specified" (8.4.26.1, 9.1.5), so equal files give equal bytes.

const std = @import("std");
const assert = std.debug.assert;

pub const sector_size = 2048;
const descriptors_begin = 16;
/// El Torito 1.0 section 2.0: the boot record is in sector 17.
const boot_record_sector = 17;
const little_table_sector = 19;
const big_table_sector = 20;
const root_sector = 21;
const folder_sector = 22;
const files_begin = 23;

pub const File = struct {
    /// `NAME.EXT`, upper case; files are in the order of their names (9.3).
    name: []const u8,
    content: []const u8,
    /// First sector of its content; set by `place`.
    sector: u32 = 0,
};

/// A volume whose root has one folder with all files.
pub const Volume = struct {
    /// At most 32 of A-Z, 0-9 and `_`.
    label: []const u8,
    folder_name: []const u8,
    files: []File,

    /// Assigns sectors to the files, in order.
    pub fn place(volume: *const Volume) void {
        var next: u32 = files_begin;
        for (volume.files) |*file| {
            file.sector = next;
            next += sectorsFor(file.content.len);
        }
    }

    /// Fills `image` (zeros, whole sectors) except sectors 0 to 15, which belong to no part of this
    /// format.
    pub fn write(volume: *const Volume, image: []u8, catalog_sector: u32) void {
        assert(image.len % sector_size == 0);
        const little = sectorOf(image, little_table_sector);
        const table_size = volume.pathTable(little, .little);
        assert(table_size == volume.pathTable(sectorOf(image, big_table_sector), .big));
        volume.primaryDescriptor(image, table_size);
        bootRecord(sectorOf(image, boot_record_sector), catalog_sector);
        // 8.3: the end of the descriptors.
        sectorOf(image, boot_record_sector + 1)[0..7].* = "\xffCD001\x01".*;
        volume.directories(image);
        for (volume.files) |file| {
            const at = @as(usize, file.sector) * sector_size;
            @memcpy(image[at..][0..file.content.len], file.content);
        }
    }

    /// 8.4; offsets are one less than the standard's byte positions.
    fn primaryDescriptor(volume: *const Volume, image: []u8, table_size: u32) void {
        const sector = sectorOf(image, descriptors_begin);
        sector[0..8].* = "\x01CD001\x01\x00".*;
        // Text fields are padded with spaces; files and people are left empty.
        @memset(sector[8..72], ' ');
        @memcpy(sector[40..][0..volume.label.len], volume.label);
        both(u32, sector[80..88], @intCast(image.len / sector_size));
        both(u16, sector[120..124], 1); // volumes in the set
        both(u16, sector[124..128], 1); // number of this volume
        both(u16, sector[128..132], sector_size);
        both(u32, sector[132..140], table_size);
        std.mem.writeInt(u32, sector[140..144], little_table_sector, .little);
        std.mem.writeInt(u32, sector[148..152], big_table_sector, .big);
        var root: Records = .{ .bytes = sector[156..190] };
        root.addFolder("\x00", root_sector);
        @memset(sector[190..813], ' ');
        // 8.4.26.1: digits of zero are no date.
        for (0..4) |index| @memset(sector[813 + index * 17 ..][0..16], '0');
        sector[881] = 1; // version of the directory format
    }

    /// 9.4, the root and its folder. Returns its size in bytes.
    fn pathTable(volume: *const Volume, sector: *[sector_size]u8, order: std.lang.Endian) u32 {
        const names = [_][]const u8{ "\x00", volume.folder_name };
        const sectors = [_]u32{ root_sector, folder_sector };
        var at: usize = 0;
        for (names, sectors) |name, begin| {
            sector[at] = @intCast(name.len);
            std.mem.writeInt(u32, sector[at + 2 ..][0..4], begin, order);
            std.mem.writeInt(u16, sector[at + 6 ..][0..2], 1, order); // in the root
            @memcpy(sector[at + 8 ..][0..name.len], name);
            at += std.mem.alignForward(usize, 8 + name.len, 2);
        }
        return @intCast(at);
    }

    /// 6.8.2: each starts with itself and its parent.
    fn directories(volume: *const Volume, image: []u8) void {
        var root: Records = .{ .bytes = sectorOf(image, root_sector) };
        root.addFolder("\x00", root_sector);
        root.addFolder("\x01", root_sector);
        root.addFolder(volume.folder_name, folder_sector);
        var folder: Records = .{ .bytes = sectorOf(image, folder_sector) };
        folder.addFolder("\x00", folder_sector);
        folder.addFolder("\x01", root_sector);
        var before: []const u8 = "";
        for (volume.files) |file| {
            assert(std.mem.order(u8, before, file.name) == .lt);
            before = file.name;
            var name: [14]u8 = undefined;
            const versioned = std.mem.print(&name, "{s};1", .{file.name}) catch unreachable;
            const size: u32 = @intCast(file.content.len);
            folder.add(versioned, .{ .sector = file.sector, .size = size, .flags = 0 });
        }
    }
};

/// Writes consecutive directory records (9.1) into one sector.
const Records = struct {
    bytes: []u8,
    at: usize = 0,

    fn addFolder(records: *Records, name: []const u8, sector: u32) void {
        records.add(name, .{ .sector = sector, .size = sector_size, .flags = 0x02 });
    }

    const Extent = struct { sector: u32, size: u32, flags: u8 };

    fn add(records: *Records, name: []const u8, extent: Extent) void {
        const size = std.mem.alignForward(usize, 33 + name.len, 2);
        const record = records.bytes[records.at..][0..size];
        records.at += size;
        record[0] = @intCast(size);
        both(u32, record[2..10], extent.sector);
        both(u32, record[10..18], extent.size);
        record[25] = extent.flags;
        both(u16, record[28..32], 1);
        record[32] = @intCast(name.len);
        @memcpy(record[33..][0..name.len], name);
    }
};

/// El Torito 1.0 figure 7.
fn bootRecord(sector: *[sector_size]u8, catalog_sector: u32) void {
    sector[0..7].* = "\x00CD001\x01".*;
    const system = "EL TORITO SPECIFICATION";
    sector[7..][0..system.len].* = system.*;
    std.mem.writeInt(u32, sector[71..75], catalog_sector, .little);
}

/// A number in both byte orders (7.2.3, 7.3.3).
fn both(comptime T: type, bytes: *[2 * @sizeOf(T)]u8, value: T) void {
    std.mem.writeInt(T, bytes[0..@sizeOf(T)], value, .little);
    std.mem.writeInt(T, bytes[@sizeOf(T)..], value, .big);
}

fn sectorOf(image: []u8, sector: u32) *[sector_size]u8 {
    return image[@as(usize, sector) * sector_size ..][0..sector_size];
}

fn sectorsFor(size: usize) u32 {
    return @intCast(std.math.divCeil(usize, size, sector_size) catch unreachable);
}
