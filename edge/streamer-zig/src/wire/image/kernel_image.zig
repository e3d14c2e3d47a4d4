//! Inspects a kernel file before anything runs it: its processor, its release if it is readable,
//! and whether the file is complete. x86 boot protocol: Documentation/arch/x86/boot.rst; arm64:
//! Documentation/arch/arm64/booting.rst; compressed EFI images:
//! drivers/firmware/efi/libstub/zboot-header.S; PE: Microsoft PE/COFF, sections 3 and 4. It must
//! never trust a length in the file.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

/// The part of a file that is sufficient: it contains the set-up code of x86, and with it the text
/// of its release.
pub const head_size_max = 64 << 10;

pub const Architecture = enum { x86, x86_64, aarch64, other };

pub const Format = enum { x86_boot, arm64_image, efi, elf, gzip };

/// Values only: it may be kept.
pub const KernelImage = struct {
    format: Format,
    /// Null if the file does not contain it.
    architecture: ?Architecture = null,
    /// As `uname -r` prints it; null if it is compressed with the rest.
    release: ?base.UntrustedText = null,
};

pub const Problem = error{
    /// Nothing that a boot loader starts.
    NotAKernel,
    /// Shorter than it claims.
    CutShort,
};

/// `head`: the file's first bytes, at most `head_size_max`, all of them if it is shorter; `size`:
/// of the whole file, in bytes.
pub fn inspect(head: []const u8, size: u64) Problem!KernelImage {
    assert(head.len <= size);
    assert(head.len == size or head.len == head_size_max);
    if (startsWithAt(head, x86.magic_offset, "HdrS")) return inspectX86(head, size);
    if (startsWithAt(head, arm64.magic_offset, "ARM\x64")) {
        // Without an EFI stub nothing in it reveals where the file ends.
        if (std.mem.startsWith(u8, head, "MZ")) _ = try inspectPe(head, size);
        return .{ .format = .arm64_image, .architecture = .aarch64 };
    }
    if (std.mem.startsWith(u8, head, "MZ")) return inspectEfi(head, size);
    if (std.mem.startsWith(u8, head, "\x7fELF")) return inspectElf(head);
    if (std.mem.startsWith(u8, head, "\x1f\x8b")) return .{ .format = .gzip };
    return error.NotAKernel;
}

/// The problem as the end of a sentence that begins with the path.
pub fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.NotAKernel => "is not a kernel",
        error.CutShort => "is a kernel that was cut short",
    };
}

/// Offsets in the file.
const x86 = struct {
    const setup_sectors_offset = 0x1f1;
    const system_size_offset = 0x1f4;
    const magic_offset = 0x202;
    const version_offset = 0x206;
    const release_offset = 0x20e;
    const load_flags_offset = 0x236;
    const sector_size = 512;
    const paragraph_size = 16;
    /// What 0 sectors mean, for old kernels' sake.
    const setup_sectors_default = 4;
    /// The offset of the release is counted from here.
    const release_base = 0x200;
    /// Protocol version that introduced a field.
    const long_system_size_since = 0x0204;
    const load_flags_since = 0x020c;
    const load_flag_64_bit = 1;
};

const arm64 = struct {
    const magic_offset = 56;
};

fn inspectX86(head: []const u8, size: u64) Problem!KernelImage {
    const version = try int(u16, head, x86.version_offset);
    const sectors = try int(u8, head, x86.setup_sectors_offset);
    const setup_sectors: u64 = if (sectors == 0) x86.setup_sectors_default else sectors;
    const paragraphs: u64 = if (version >= x86.long_system_size_since)
        try int(u32, head, x86.system_size_offset)
    else
        try int(u16, head, x86.system_size_offset);
    // The boot sector comes before the set-up code: below 2^8 * 2^9 + 2^32 * 2^4 bytes.
    const wanted = (setup_sectors + 1) * x86.sector_size + paragraphs * x86.paragraph_size;
    if (size < wanted) return error.CutShort;
    return .{
        .format = .x86_boot,
        .architecture = if (version < x86.load_flags_since)
            null
        else if (try int(u16, head, x86.load_flags_offset) & x86.load_flag_64_bit != 0)
            .x86_64
        else
            .x86,
        .release = x86Release(head),
    };
}

/// "6.1.0-56-cloud-amd64 (debian-kernel@...) #1 SMP ...": the release is the first word.
fn x86Release(head: []const u8) ?base.UntrustedText {
    const pointer = int(u16, head, x86.release_offset) catch return null;
    if (pointer == 0) return null;
    const offset = @as(usize, pointer) + x86.release_base;
    if (offset >= head.len) return null;
    const rest = head[offset..];
    const end = std.mem.findAny(u8, rest, " \x00") orelse return null;
    if (end == 0 or end > base.UntrustedText.size_max) return null;
    for (rest[0..end]) |byte| if (!std.ascii.isPrint(byte)) return null;
    return .init(rest[0..end]);
}

const zboot = struct {
    const magic_offset = 4;
    const payload_offset = 8;
    const payload_size_offset = 12;
};

fn inspectEfi(head: []const u8, size: u64) Problem!KernelImage {
    const architecture = try inspectPe(head, size);
    if (startsWithAt(head, zboot.magic_offset, "zimg")) {
        const first: u64 = try int(u32, head, zboot.payload_offset);
        if (size < first + try int(u32, head, zboot.payload_size_offset)) return error.CutShort;
    }
    return .{ .format = .efi, .architecture = architecture };
}

const pe = struct {
    const header_pointer_offset = 0x3c;
    const magic = "PE\x00\x00";
    const coff_size = 20;
    const section_size = 40;
    /// Loaders accept no more.
    const sections_max = 96;
};

/// The processor of a PE file. Its headers must lie within the head, as all do.
fn inspectPe(head: []const u8, size: u64) Problem!Architecture {
    const at: usize = try int(u32, head, pe.header_pointer_offset);
    if (at > head.len) return cutOrForeign(head, size);
    if (!startsWithAt(head, at, pe.magic)) return cutOrForeign(head, size);
    const coff = at + pe.magic.len;
    const section_count = try int(u16, head, coff + 2);
    if (section_count > pe.sections_max) return error.NotAKernel;
    const table = coff + pe.coff_size + try int(u16, head, coff + 16);
    for (0..section_count) |index| {
        const section = table + index * pe.section_size;
        const raw_size: u64 = try int(u32, head, section + 16);
        const raw_first: u64 = try int(u32, head, section + 20);
        if (size < raw_first + raw_size) return error.CutShort;
    }
    return switch (try int(u16, head, coff)) {
        0x014c => .x86,
        0x8664 => .x86_64,
        0xaa64 => .aarch64,
        else => .other,
    };
}

/// The headers are not where the file claims: it ends before them, or it is something else.
fn cutOrForeign(head: []const u8, size: u64) Problem {
    return if (head.len == size) error.CutShort else error.NotAKernel;
}

/// System V ABI, chapter 4; such a file is started by Multiboot.
fn inspectElf(head: []const u8) Problem!KernelImage {
    const machine = try int(u16, head, 18);
    return .{ .format = .elf, .architecture = switch (machine) {
        3 => .x86,
        62 => .x86_64,
        183 => .aarch64,
        else => .other,
    } };
}

fn int(comptime T: type, head: []const u8, offset: usize) Problem!T {
    const size = @divExact(@bitSizeOf(T), 8);
    // Compared by subtraction: a sum could overflow.
    if (offset > head.len or head.len - offset < size) return error.CutShort;
    return std.mem.readInt(T, head[offset..][0..size], .little);
}

fn startsWithAt(head: []const u8, offset: usize, magic: []const u8) bool {
    if (offset > head.len) return false;
    return std.mem.startsWith(u8, head[offset..], magic);
}

const testing = std.testing;

/// The smallest x86 kernel: boot sector, one sector of set-up code with the release, 32 bytes of
/// system.
pub const test_x86: [1056]u8 = blk: {
    var bytes: [1056]u8 = @splat(0);
    bytes[x86.setup_sectors_offset] = 1;
    std.mem.writeInt(u32, bytes[x86.system_size_offset..][0..4], 2, .little);
    @memcpy(bytes[x86.magic_offset..][0..4], "HdrS");
    std.mem.writeInt(u16, bytes[x86.version_offset..][0..2], 0x020f, .little);
    std.mem.writeInt(u16, bytes[x86.release_offset..][0..2], 0x100, .little);
    std.mem.writeInt(u16, bytes[x86.load_flags_offset..][0..2], 1, .little);
    const text = "6.1.0-53-amd64 (somebody) #1 SMP";
    @memcpy(bytes[0x300..][0..text.len], text);
    break :blk bytes;
};

/// An arm64 Image with an EFI stub: one section of 64 bytes from byte 192 on.
pub const test_arm64: [256]u8 = blk: {
    var bytes: [256]u8 = @splat(0);
    bytes[0..2].* = "MZ".*;
    @memcpy(bytes[arm64.magic_offset..][0..4], "ARM\x64");
    std.mem.writeInt(u32, bytes[pe.header_pointer_offset..][0..4], 64, .little);
    bytes[64..68].* = pe.magic.*;
    std.mem.writeInt(u16, bytes[68..70], 0xaa64, .little);
    std.mem.writeInt(u16, bytes[70..72], 1, .little);
    std.mem.writeInt(u32, bytes[88 + 16 ..][0..4], 64, .little);
    std.mem.writeInt(u32, bytes[88 + 20 ..][0..4], 192, .little);
    break :blk bytes;
};

test "an x86 kernel says its processor and its release" {
    const found = try inspect(&test_x86, test_x86.len);
    try testing.expectEqual(Format.x86_boot, found.format);
    try testing.expectEqual(Architecture.x86_64, found.architecture.?);
    try testing.expectEqualStrings("6.1.0-53-amd64", found.release.?.slice());
    var older = test_x86;
    older[x86.load_flags_offset] = 0;
    try testing.expectEqual(Architecture.x86, (try inspect(&older, older.len)).architecture.?);
    std.mem.writeInt(u16, older[x86.version_offset..][0..2], 0x0204, .little);
    try testing.expectEqual(null, (try inspect(&older, older.len)).architecture);
}

test "a kernel that ends too early was cut short, wherever it ends" {
    for (0x206..test_x86.len) |size|
        try testing.expectError(error.CutShort, inspect(test_x86[0..size], size));
    for (64..test_arm64.len) |size|
        try testing.expectError(error.CutShort, inspect(test_arm64[0..size], size));
}

test "an arm64 kernel is known with and without an EFI stub" {
    const found = try inspect(&test_arm64, test_arm64.len);
    try testing.expectEqual(Format.arm64_image, found.format);
    try testing.expectEqual(Architecture.aarch64, found.architecture.?);
    try testing.expectEqual(null, found.release);
    var plain = test_arm64;
    plain[0..2].* = .{ 0, 0 };
    try testing.expectEqual(Architecture.aarch64, (try inspect(&plain, plain.len)).architecture.?);
}

test "a compressed EFI kernel holds its whole payload" {
    var bytes = test_arm64;
    bytes[arm64.magic_offset] = 0;
    @memcpy(bytes[4..8], "zimg");
    std.mem.writeInt(u32, bytes[8..12], 200, .little);
    std.mem.writeInt(u32, bytes[12..16], 56, .little);
    const found = try inspect(&bytes, bytes.len);
    try testing.expectEqual(Format.efi, found.format);
    try testing.expectEqual(Architecture.aarch64, found.architecture.?);
    bytes[12] += 1;
    try testing.expectError(error.CutShort, inspect(&bytes, bytes.len));
}

test "a file that no boot loader starts is no kernel" {
    for ([_][]const u8{ "#!/bin/sh\n", "<html>", "MZ", &@as([512]u8, @splat(0)) }) |text| {
        const result = inspect(text, text.len);
        try testing.expect(result == error.NotAKernel or result == error.CutShort);
    }
    try testing.expectError(error.NotAKernel, inspect("#!/bin/sh\n", 10));
    const found = try inspect("\x1f\x8b\x08", 3);
    try testing.expectEqual(Format.gzip, found.format);
    try testing.expectEqual(null, found.architecture);
}

test "a release that is no word is refused" {
    for ([_][]const u8{ " ", "\x00", "6.1\x1b[31m ", &@as([65]u8, @splat('6')) }) |text| {
        var bytes = test_x86;
        @memset(bytes[0x300..], 0);
        @memcpy(bytes[0x300..][0..text.len], text);
        try testing.expectEqual(null, (try inspect(&bytes, bytes.len)).release);
    }
}
