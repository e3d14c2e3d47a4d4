//! A reader of ISO 9660 discs for tests (ECMA-119) that checks everything it reads.

const std = @import("std");

const sector_size = 2048;
const Extent = struct { begin: usize, size: usize };

/// Returns the content of a file in a folder of the root.
pub fn file(image: []const u8, folder_name: []const u8, name: []const u8) ![]const u8 {
    const root = try extentOf(image[16 * sector_size + 156 ..]);
    const folder = try find(image, root, folder_name);
    var buffer: [32]u8 = undefined;
    const found = try find(image, folder, try std.mem.print(&buffer, "{s};1", .{name}));
    return image[found.begin..][0..found.size];
}

/// Checks that descriptors, sizes and path tables agree with each other and with the folders.
pub fn checkStructure(image: []const u8) !void {
    const primary = image[16 * sector_size ..][0..sector_size];
    try expect(std.mem.eql(u8, primary[0..7], "\x01CD001\x01"));
    try expect(std.mem.eql(u8, image[18 * sector_size ..][0..7], "\xffCD001\x01"));
    try expect(try both(u32, primary[80..]) == image.len / sector_size);
    try expect(try both(u16, primary[128..]) == sector_size);
    const table_size = try both(u32, primary[132..]);
    const little = std.mem.readInt(u32, primary[140..144], .little) * sector_size;
    const big = std.mem.readInt(u32, primary[148..152], .big) * sector_size;
    var at: usize = 0;
    while (at < table_size) {
        const a, const b = .{ image[little + at ..], image[big + at ..] };
        const size = a[0];
        try expect(std.mem.eql(u8, a[8..][0..size], b[8..][0..size]));
        const sector = std.mem.readInt(u32, a[2..6], .little);
        try expect(sector == std.mem.readInt(u32, b[2..6], .big));
        try expect(std.mem.readInt(u16, a[6..8], .little) == 1);
        // Every folder begins with a record of itself.
        const own = try extentOf(image[sector * sector_size ..]);
        try expect(own.begin == sector * sector_size);
        at += 8 + size + size % 2;
    }
    try expect(at == table_size);
}

fn find(image: []const u8, folder: Extent, name: []const u8) !Extent {
    const records = image[folder.begin..][0..folder.size];
    var at: usize = 0;
    while (records[at] != 0) : (at += records[at]) {
        const record = records[at..][0..records[at]];
        if (std.mem.eql(u8, record[33..][0..record[32]], name)) return extentOf(record);
    }
    return error.FileNotFound;
}

fn extentOf(record: []const u8) !Extent {
    const size = try both(u32, record[10..]);
    return .{ .begin = @as(usize, try both(u32, record[2..])) * sector_size, .size = size };
}

/// A number stored in both byte orders.
fn both(comptime T: type, bytes: []const u8) !T {
    const little = std.mem.readInt(T, bytes[0..@sizeOf(T)], .little);
    const big = std.mem.readInt(T, bytes[@sizeOf(T)..][0..@sizeOf(T)], .big);
    try expect(little == big);
    return little;
}

fn expect(is_so: bool) !void {
    if (!is_so) return error.WrongStructure;
}
