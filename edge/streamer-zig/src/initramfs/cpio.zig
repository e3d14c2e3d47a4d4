//! Writes a cpio archive in the "newc" format, which the kernel unpacks as its first root file
//! system (Documentation/driver-api/early-userspace/buffer-format.rst). Equal entries give equal
//! bytes: the archive has no times, owners or inode numbers of the build machine.

const std = @import("std");
const assert = std.debug.assert;
const Writer = std.Io.Writer;

const magic = "070701";
const header_size = magic.len + 13 * 8;
const trailer_name = "TRAILER!!!";

const type_directory: u32 = 0o040000;
const type_file: u32 = 0o100000;
const type_link: u32 = 0o120000;
const type_character_device: u32 = 0o020000;

/// Names are paths from the root without a leading slash; a directory comes before its content.
pub const CpioWriter = @This();

writer: *Writer,
inode_next: u32 = 1,
/// Bytes written so far.
size: u64 = 0,

pub fn directory(cpio: *CpioWriter, name: []const u8) Writer.Error!void {
    try cpio.entry(.{ .name = name, .mode = type_directory | 0o755 });
}

/// `permissions` as for chmod.
pub fn file(
    cpio: *CpioWriter,
    name: []const u8,
    permissions: u32,
    content: []const u8,
) Writer.Error!void {
    assert(permissions <= 0o7777);
    try cpio.entry(.{ .name = name, .mode = type_file | permissions, .content = content });
}

pub fn symbolicLink(cpio: *CpioWriter, name: []const u8, target: []const u8) Writer.Error!void {
    try cpio.entry(.{ .name = name, .mode = type_link | 0o777, .content = target });
}

pub fn characterDevice(
    cpio: *CpioWriter,
    name: []const u8,
    major: u32,
    minor: u32,
) Writer.Error!void {
    try cpio.entry(
        .{ .name = name, .mode = type_character_device | 0o600, .major = major, .minor = minor },
    );
}

/// The trailer; the kernel ignores what follows.
pub fn finish(cpio: *CpioWriter) Writer.Error!void {
    cpio.inode_next = 0;
    try cpio.entry(.{ .name = trailer_name, .mode = 0 });
}

const Entry = struct {
    name: []const u8,
    mode: u32,
    content: []const u8 = "",
    major: u32 = 0,
    minor: u32 = 0,
};

fn entry(cpio: *CpioWriter, e: Entry) Writer.Error!void {
    assert(e.name.len > 0);
    assert(e.name[0] != '/');
    const fields = [13]u32{
        cpio.inode_next,
        e.mode,
        1, // links
        0, // owner
        0, // group
        0, // modification time
        @intCast(e.content.len),
        0, // device, major and minor
        0,
        e.major,
        e.minor,
        @intCast(e.name.len + 1),
        0, // checksum, used by another format only
    };
    try cpio.bytes(magic);
    for (fields) |field| {
        var text: [8]u8 = undefined;
        const written = std.mem.print(&text, "{X:0>8}", .{field}) catch unreachable;
        assert(written.len == text.len);
        try cpio.bytes(&text);
    }
    try cpio.bytes(e.name);
    try cpio.bytes("\x00");
    try cpio.pad();
    try cpio.bytes(e.content);
    try cpio.pad();
    cpio.inode_next += 1;
}

fn bytes(cpio: *CpioWriter, content: []const u8) Writer.Error!void {
    try cpio.writer.writeAll(content);
    cpio.size += content.len;
}

fn pad(cpio: *CpioWriter) Writer.Error!void {
    const zeros: [3]u8 = @splat(0);
    const missing: usize = @intCast((4 - cpio.size % 4) % 4);
    try cpio.bytes(zeros[0..missing]);
    assert(cpio.size % 4 == 0);
}

const testing = std.testing;

test "an entry is a header of 110 characters, the name and the content, each padded to four bytes" {
    var buffer: [512]u8 = undefined;
    var writer: Writer = .fixed(&buffer);
    var cpio: CpioWriter = .{ .writer = &writer };
    try cpio.file("a/b", 0o755, "hello");
    const expected = "070701" ++ "00000001" ++ "000081ED" ++ "00000001" ++ "00000000" ++
        "00000000" ++ "00000000" ++ "00000005" ++ "00000000" ++ "00000000" ++ "00000000" ++
        "00000000" ++ "00000004" ++ "00000000" ++ "a/b\x00" ++ "\x00\x00" ++ "hello\x00\x00\x00";
    comptime assert(header_size == 110);
    try testing.expectEqualStrings(expected, writer.buffered());
    try testing.expectEqual(expected.len, cpio.size);
}

test "the trailer ends the archive and has no inode" {
    var buffer: [512]u8 = undefined;
    var writer: Writer = .fixed(&buffer);
    var cpio: CpioWriter = .{ .writer = &writer };
    try cpio.directory("dev");
    try cpio.characterDevice("dev/console", 5, 1);
    try cpio.symbolicLink("bin", "usr/bin");
    try cpio.finish();
    const text = writer.buffered();
    try testing.expectEqual(0, text.len % 4);
    const trailer = std.mem.find(u8, text, trailer_name).?;
    try testing.expectEqualStrings("07070100000000", text[trailer - header_size ..][0..14]);
}
