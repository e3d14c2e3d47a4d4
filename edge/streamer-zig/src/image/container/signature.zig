//! Recognizes formats of files by their content, never by their names. A file that has the
//! signature of a format never counts as raw, readable or not: its bytes would make a disk of
//! garbage.

const std = @import("std");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const store = @import("store");

pub const Format = enum {
    raw,
    vhd,
    vhdx,
    qcow2,
    vmdk,
    // Recognized so that they are not taken for raw disks.
    qcow1,
    qed,
    vdi,
    vmdk_text,
    vmdk_esx,
    parallels,
    dmg,
    wim,
    gzip,
    bzip2,
    xz,
    zstd,
    seven_zip,
    zip,
    tar,
    difference,

    pub fn isReadable(format: Format) bool {
        return switch (format) {
            .raw, .vhd, .vhdx, .qcow2, .vmdk => true,
            else => false,
        };
    }

    /// The format with its article.
    pub fn name(format: Format) []const u8 {
        return switch (format) {
            .raw => "a raw image",
            .vhd => "a VHD image",
            .vhdx => "a VHDX image",
            .qcow2 => "a qcow2 image",
            .vmdk => "a VMDK image",
            .qcow1 => "a qcow image of version 1",
            .qed => "a QED image",
            .vdi => "a VDI image (VirtualBox)",
            .vmdk_text => "the description of a VMDK disk whose data is in other files",
            .vmdk_esx => "a VMDK image of an ESX server",
            .parallels => "a Parallels image",
            .dmg => "an Apple disk image",
            .wim => "a Windows image of files (WIM), not of a disk",
            .gzip => "compressed by gzip",
            .bzip2 => "compressed by bzip2",
            .xz => "compressed by xz",
            .zstd => "compressed by zstd",
            .seven_zip => "a 7-Zip archive",
            .zip => "a zip archive",
            .tar => "a tar archive",
            .difference => "a difference of versions",
        };
    }

    /// What makes a readable image of it; a whole sentence.
    pub fn remedy(format: Format) []const u8 {
        return switch (format) {
            .raw, .vhd, .vhdx, .qcow2, .vmdk => "Import the file itself.",
            .qcow1,
            .qed,
            .vdi,
            .vmdk_esx,
            .parallels,
            .dmg,
            => "Convert it with qemu-img convert -O raw.",
            .vmdk_text => "Convert it with qemu-img convert -O raw, in the directory where " ++
                "all of its files are.",
            .wim => "Apply it to a disk first.",
            .gzip => "Unpack it with gzip -d.",
            .bzip2 => "Unpack it with bzip2 -d.",
            .xz => "Unpack it with xz -d.",
            .zstd => "Unpack it with zstd -d.",
            .seven_zip => "Unpack it with 7z x.",
            .zip => "Unpack it with unzip.",
            .tar => "Unpack it with tar -x (an OVA has its disks in it).",
            .difference => "Make its version with bootfarm-edge vdisk import FILE.",
        };
    }
};

/// Bytes at the start of a file that tell, if it has as many.
pub const head_size = 512;
/// Bytes at the end of a file that tell.
pub const tail_size = 512;

const Signature = struct { format: Format, at: usize = 0, bytes: []const u8 };

const signatures = [_]Signature{
    .{ .format = .vhdx, .bytes = "vhdxfile" },
    .{ .format = .vhd, .bytes = vhd_cookie },
    .{ .format = .qcow1, .bytes = "QFI\xfb\x00\x00\x00\x01" },
    .{ .format = .qcow2, .bytes = "QFI\xfb" },
    .{ .format = .vmdk, .bytes = "KDMV" },
    .{ .format = .vmdk_esx, .bytes = "COWD" },
    // An ESX server's sparse format, 0xcafebabe as a little-endian number of 64 bits.
    .{ .format = .vmdk_esx, .bytes = "\xbe\xba\xfe\xca\x00\x00\x00\x00" },
    .{ .format = .vmdk_text, .bytes = "# Disk DescriptorFile" },
    .{ .format = .qed, .bytes = "QED\x00" },
    .{ .format = .vdi, .at = 0x40, .bytes = "\x7f\x10\xda\xbe" },
    .{ .format = .parallels, .bytes = "WithoutFreeSpace" },
    .{ .format = .parallels, .bytes = "WithouFreSpacExt" },
    .{ .format = .wim, .bytes = "MSWIM\x00\x00\x00" },
    .{ .format = .gzip, .bytes = "\x1f\x8b\x08" },
    .{ .format = .bzip2, .at = 4, .bytes = "1AY&SY" },
    .{ .format = .xz, .bytes = "\xfd7zXZ\x00" },
    .{ .format = .zstd, .bytes = "\x28\xb5\x2f\xfd" },
    .{ .format = .seven_zip, .bytes = "7z\xbc\xaf\x27\x1c" },
    .{ .format = .zip, .bytes = "PK\x03\x04" },
    .{ .format = .tar, .at = 257, .bytes = "ustar" },
    .{ .format = .difference, .bytes = &store.difference_format.magic },
};

const vhd_cookie = "conectix";

/// Recognizes a file.
pub fn recognize(file: *const File) Fault!Format {
    var head: [head_size]u8 = undefined;
    const head_count: usize = @intCast(@min(head.len, file.size));
    try file.read(head[0..head_count], 0);
    if (ofHead(head[0..head_count])) |format| return format;
    var tail: [tail_size]u8 = undefined;
    const tail_count: usize = @intCast(@min(tail.len, file.size));
    try file.read(tail[0..tail_count], file.size - tail_count);
    return ofTail(tail[0..tail_count]) orelse .raw;
}

/// Recognizes the start of a file; null if it may be raw.
pub fn ofHead(head: []const u8) ?Format {
    for (&signatures) |*signature| {
        if (head.len < signature.at) continue;
        if (std.mem.startsWith(u8, head[signature.at..], signature.bytes)) return signature.format;
    }
    return null;
}

/// Recognizes the end of a file; null if it may be raw. A fixed VHD is a raw disk and a footer,
/// which has 511 bytes if Virtual PC before 2004 wrote it.
pub fn ofTail(tail: []const u8) ?Format {
    if (tail.len < tail_size) return null;
    const last = tail[tail.len - tail_size ..];
    if (std.mem.startsWith(u8, last, vhd_cookie)) return .vhd;
    if (std.mem.startsWith(u8, last[1..], vhd_cookie)) return .vhd;
    if (std.mem.startsWith(u8, last, "koly")) return .dmg;
    return null;
}

const testing = std.testing;

fn formatOf(bytes: []const u8) !Format {
    var memory: File.MemoryFile = .{ .bytes = bytes };
    const file: File = .init(memory.source());
    return recognize(&file);
}

test "files are recognized by their bytes, and what has none of them is raw" {
    try testing.expectEqual(.raw, try formatOf("x"));
    try testing.expectEqual(.raw, try formatOf(&@as([4096]u8, @splat(0))));
    for (&signatures) |*signature| {
        var bytes: [1024]u8 = @splat('.');
        @memcpy(bytes[signature.at..][0..signature.bytes.len], signature.bytes);
        try testing.expectEqual(signature.format, try formatOf(&bytes));
        try testing.expectEqual(
            signature.format,
            try formatOf(bytes[0 .. signature.at + signature.bytes.len]),
        );
        bytes[signature.at] +%= 1;
        try testing.expectEqual(.raw, try formatOf(&bytes));
    }
    for ([_]struct { usize, []const u8, Format }{
        .{ 512, vhd_cookie, .vhd },
        .{ 513, vhd_cookie, .vhd },
        .{ 512, "koly", .dmg },
        .{ 511, vhd_cookie, .raw },
    }) |case| {
        const at, const cookie, const format = case;
        var bytes: [1024]u8 = @splat('.');
        @memcpy(bytes[at..][0..cookie.len], cookie);
        try testing.expectEqual(format, try formatOf(&bytes));
    }
}

test "every format that cannot be read has a remedy" {
    for (std.enums.values(Format)) |format| {
        const remedy = format.remedy();
        try testing.expect(remedy[remedy.len - 1] == '.');
        try testing.expect(format.isReadable() == std.mem.startsWith(u8, remedy, "Import"));
    }
}
