//! The headers of a PE file, such as a UEFI program: its processor, whether it is complete, its
//! sections, and the table of its signatures. Microsoft PE/COFF, sections 2 to 5. Works on the
//! whole file in memory; it must never trust a length in the file.

const std = @import("std");
const assert = std.debug.assert;

pub const Machine = enum { x86, x86_64, aarch64, other };

/// What starts it. UEFI has three kinds of its own (UEFI 2.10, section 2.1.1).
pub const Subsystem = enum { efi, other };

pub const Problem = error{
    /// No PE file.
    NotPe,
    /// Shorter than it claims.
    CutShort,
    /// Its headers contradict each other.
    Malformed,
};

/// Slices of the file.
pub const PeImage = struct {
    machine: Machine,
    subsystem: Subsystem,
    /// The attribute certificate table; empty if there is none.
    certificates: []const u8,
    file: []const u8,
    sections: []const u8,

    const section_size = 40;
    /// Windows' loader accepts 96, and no UEFI program has that many.
    const sections_max = 96;

    /// Returns the contents of a section in the file; null if there is none of this name.
    pub fn section(image: *const PeImage, name: []const u8) ?[]const u8 {
        assert(name.len <= 8);
        var at: usize = 0;
        while (at < image.sections.len) : (at += section_size) {
            const header = image.sections[at..][0..section_size];
            const found = std.mem.trimEnd(u8, header[0..8], "\x00");
            if (!std.mem.eql(u8, found, name)) continue;
            const raw = image.rawOf(header);
            // The rest is the file's alignment.
            const size = std.mem.readInt(u32, header[8..12], .little);
            return raw[0..@min(raw.len, size)];
        }
        return null;
    }

    fn rawOf(image: *const PeImage, header: *const [section_size]u8) []const u8 {
        const size = std.mem.readInt(u32, header[16..20], .little);
        const first = std.mem.readInt(u32, header[20..24], .little);
        return image.file[first..][0..size];
    }
};

const coff_size = 20;
/// Offsets in the optional header of PE32+: the number of its directories, and the directories.
const directory_count_at = 108;
const directories_at = 112;
/// The same of PE32, whose addresses are shorter.
const directory_count_at_pe32 = 92;
const directories_at_pe32 = 96;
const certificate_directory = 4;
const subsystem_at = 68;

pub fn parse(file: []const u8) Problem!PeImage {
    if (!std.mem.startsWith(u8, file, "MZ")) return error.NotPe;
    const at = int(u32, file, 0x3c) catch return error.NotPe;
    const magic = slice(file, at, 4) catch return error.NotPe;
    if (!std.mem.eql(u8, magic, "PE\x00\x00")) return error.NotPe;
    const coff: u64 = @as(u64, at) + 4;
    const optional_size = try int(u16, file, coff + 16);
    const optional = try slice(file, coff + coff_size, optional_size);
    const section_count = try int(u16, file, coff + 2);
    if (section_count > PeImage.sections_max) return error.Malformed;
    const sections_first = coff + coff_size + optional_size;
    const sections =
        try slice(file, sections_first, @as(u64, section_count) * PeImage.section_size);
    for (0..section_count) |index| {
        const header = sections[index * PeImage.section_size ..][0..PeImage.section_size];
        const size = std.mem.readInt(u32, header[16..20], .little);
        const first = std.mem.readInt(u32, header[20..24], .little);
        _ = try slice(file, first, size);
    }
    return .{
        .machine = switch (try int(u16, file, coff)) {
            0x014c => .x86,
            0x8664 => .x86_64,
            0xaa64 => .aarch64,
            else => .other,
        },
        .subsystem = switch (int(u16, optional, subsystem_at) catch 0) {
            10...13 => .efi,
            else => .other,
        },
        .certificates = try certificatesOf(file, optional),
        .file = file,
        .sections = sections,
    };
}

/// The only directory whose address is an offset in the file, not in memory.
fn certificatesOf(file: []const u8, optional: []const u8) Problem![]const u8 {
    const is_pe32 = switch (int(u16, optional, 0) catch return "") {
        0x10b => true,
        0x20b => false,
        else => return error.Malformed,
    };
    const count_at: u64 = if (is_pe32) directory_count_at_pe32 else directory_count_at;
    const first_at: u64 = if (is_pe32) directories_at_pe32 else directories_at;
    const count = int(u32, optional, count_at) catch return "";
    if (count <= certificate_directory) return "";
    const entry = first_at + certificate_directory * 8;
    const first = int(u32, optional, entry) catch return error.Malformed;
    const size = int(u32, optional, entry + 4) catch return error.Malformed;
    if (size == 0) return "";
    return slice(file, first, size);
}

fn slice(bytes: []const u8, offset: u64, size: u64) error{CutShort}![]const u8 {
    // Compared by subtraction: a sum could overflow.
    if (offset > bytes.len or bytes.len - offset < size) return error.CutShort;
    return bytes[@intCast(offset)..][0..@intCast(size)];
}

fn int(comptime T: type, bytes: []const u8, offset: u64) error{CutShort}!T {
    const size = @divExact(@bitSizeOf(T), 8);
    return std.mem.readInt(T, (try slice(bytes, offset, size))[0..size], .little);
}

/// A UEFI program of one section `.sbat` with `text`, and a certificate table of `certificates`.
pub fn testImage(buffer: []u8, machine: u16, text: []const u8, certificates: []const u8) []u8 {
    const optional_size = directories_at + 5 * 8;
    const sections_first = 0x40 + 4 + coff_size + optional_size;
    const text_first = sections_first + PeImage.section_size;
    const size = text_first + text.len + certificates.len;
    @memset(buffer[0..size], 0);
    buffer[0..2].* = "MZ".*;
    std.mem.writeInt(u32, buffer[0x3c..0x40], 0x40, .little);
    buffer[0x40..0x44].* = "PE\x00\x00".*;
    std.mem.writeInt(u16, buffer[0x44..0x46], machine, .little);
    std.mem.writeInt(u16, buffer[0x46..0x48], 1, .little);
    std.mem.writeInt(u16, buffer[0x54..0x56], optional_size, .little);
    const optional = buffer[0x58..];
    std.mem.writeInt(u16, optional[0..2], 0x20b, .little);
    std.mem.writeInt(u16, optional[subsystem_at..][0..2], 10, .little);
    std.mem.writeInt(u32, optional[directory_count_at..][0..4], 5, .little);
    const entry = optional[directories_at + certificate_directory * 8 ..];
    std.mem.writeInt(u32, entry[0..4], @intCast(text_first + text.len), .little);
    std.mem.writeInt(u32, entry[4..8], @intCast(certificates.len), .little);
    const header = buffer[sections_first..][0..PeImage.section_size];
    header[0..5].* = ".sbat".*;
    std.mem.writeInt(u32, header[8..12], @intCast(text.len), .little);
    std.mem.writeInt(u32, header[16..20], @intCast(text.len), .little);
    std.mem.writeInt(u32, header[20..24], @intCast(text_first), .little);
    @memcpy(buffer[text_first..][0..text.len], text);
    @memcpy(buffer[text_first + text.len ..][0..certificates.len], certificates);
    return buffer[0..size];
}

const testing = std.testing;

test "processor, section and signatures are found" {
    var buffer: [1024]u8 = undefined;
    const image = try parse(testImage(&buffer, 0xaa64, "sbat,1\n", "CERT"));
    try testing.expectEqual(.aarch64, image.machine);
    try testing.expectEqual(.efi, image.subsystem);
    try testing.expectEqualStrings("sbat,1\n", image.section(".sbat").?);
    try testing.expectEqual(null, image.section(".text"));
    try testing.expectEqualStrings("CERT", image.certificates);
}

test "a truncated file is recognized, wherever it ends" {
    var buffer: [1024]u8 = undefined;
    const whole = testImage(&buffer, 0x8664, "text", "CERT");
    for (0..whole.len) |size| {
        if (parse(whole[0..size])) |_|
            return error.TestUnexpectedResult
        else |problem|
            try testing.expect(problem == error.CutShort or
                (size < 0x44 and problem == error.NotPe));
    }
    try testing.expectEqual("".len, (try parse(
        testImage(&buffer, 0x8664, "", ""),
    )).certificates.len);
    try testing.expectError(error.NotPe, parse("\x7fELF"));
}
