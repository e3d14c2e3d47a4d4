//! Locates the parts of a unified kernel image, a UEFI program whose sections are a kernel, its
//! initramfs and its command line (uapi-group.org/specifications, "Unified Kernel Image"; Microsoft
//! PE/COFF, sections 2 to 4). Works on the first bytes of the file, and trusts no length in it.

const std = @import("std");
const int = @import("volume.zig").int;

/// Covers the headers, which are in the first page.
pub const head_size_max = 16 << 10;
/// Windows' loader accepts 96, and no UEFI program has that many.
const sections_max = 96;
const section_size = 40;

/// Bytes of the file.
pub const Range = struct { first: u64, size: u64 };

pub const UnifiedKernel = struct {
    linux: Range,
    /// Microcode, which comes before the initramfs.
    microcode: ?Range = null,
    initrd: ?Range = null,
    command_line: ?Range = null,
    /// `uname -r` of the kernel.
    release: ?Range = null,
};

/// Returns null if the file is no unified kernel image, or is cut. `size`: of the whole file.
pub fn parse(head: []const u8, size: u64) ?UnifiedKernel {
    if (head.len < 0x40 or !std.mem.startsWith(u8, head, "MZ")) return null;
    const at: u64 = int(u32, head, 0x3c);
    if (at + 24 > head.len) return null;
    const coff: usize = @intCast(at + 4);
    if (!std.mem.eql(u8, head[coff - 4 ..][0..4], "PE\x00\x00")) return null;
    const count = int(u16, head, coff + 2);
    const first = coff + 20 + @as(usize, int(u16, head, coff + 16));
    if (count > sections_max or first + count * section_size > head.len) return null;
    var linux: ?Range = null;
    var found: UnifiedKernel = .{ .linux = undefined };
    for (0..count) |index| {
        const header = head[first + index * section_size ..][0..section_size];
        const name = std.mem.trimEnd(u8, header[0..8], "\x00");
        // The sections of other profiles come after those of all.
        if (std.mem.eql(u8, name, ".profile")) break;
        const place: *?Range = if (std.mem.eql(u8, name, ".linux"))
            &linux
        else if (std.mem.eql(u8, name, ".ucode")) &found.microcode //
        else if (std.mem.eql(u8, name, ".initrd")) &found.initrd //
        else if (std.mem.eql(u8, name, ".cmdline")) &found.command_line //
        else if (std.mem.eql(u8, name, ".uname")) &found.release //
        else continue;
        // What is stored is filled to the file's alignment.
        const range: Range = .{
            .first = int(u32, header, 20),
            .size = @min(int(u32, header, 8), int(u32, header, 16)),
        };
        if (range.size == 0) continue;
        if (range.first > size or range.size > size - range.first) return null;
        if (place.* == null) place.* = range;
    }
    found.linux = linux orelse return null;
    return found;
}

const testing = std.testing;

const test_header_size = 0x200;

/// A program of sections in this order, each filled to 512 bytes.
pub fn testImage(buffer: []u8, sections: []const struct { []const u8, []const u8 }) []u8 {
    @memset(buffer, 0);
    buffer[0..2].* = "MZ".*;
    std.mem.writeInt(u32, buffer[0x3c..0x40], 0x40, .little);
    buffer[0x40..0x44].* = "PE\x00\x00".*;
    std.mem.writeInt(u16, buffer[0x46..0x48], @intCast(sections.len), .little);
    var end: usize = test_header_size;
    for (sections, 0..) |section, index| {
        const header = buffer[0x58 + index * section_size ..][0..section_size];
        @memcpy(header[0..section[0].len], section[0]);
        const stored = std.mem.alignForward(usize, section[1].len, 512);
        std.mem.writeInt(u32, header[8..12], @intCast(section[1].len), .little);
        std.mem.writeInt(u32, header[16..20], @intCast(stored), .little);
        std.mem.writeInt(u32, header[20..24], @intCast(end), .little);
        @memcpy(buffer[end..][0..section[1].len], section[1]);
        end += stored;
    }
    return buffer[0..end];
}

test "the sections of a unified kernel image are located, those of other profiles left out" {
    var buffer: [8192]u8 = undefined;
    const file = testImage(&buffer, &.{
        .{ ".osrel", "ID=x" },
        .{ ".cmdline", "quiet" },
        .{ ".linux", "kernel" },
        .{ ".initrd", "" },
        .{ ".profile", "ID=other" },
        .{ ".cmdline", "debug" },
        .{ ".initrd", "other" },
    });
    const found = parse(file[0..1024], file.len).?;
    try testing.expectEqual(Range{ .first = 1536, .size = 6 }, found.linux);
    try testing.expectEqual(Range{ .first = 1024, .size = 5 }, found.command_line.?);
    try testing.expectEqual(null, found.initrd);
    try testing.expectEqual(null, parse(file[0..1024], 1540));
    for (0..0x200) |size| _ = parse(file[0..size], file.len);
    const plain = testImage(&buffer, &.{.{ ".text", "program" }});
    try testing.expectEqual(null, parse(plain[0..512], plain.len));
}
