//! The first entry of an initramfs of ours: the kernel that it was made for. It precedes the
//! compressed rest in an archive of its own, so that it is read without unpacking anything. cpio
//! "newc": Documentation/driver-api/early-userspace/buffer-format.rst, which allows one archive
//! after the other, compressed or not.

const std = @import("std");
const base = @import("base");
const Architecture = @import("kernel_image.zig").Architecture;

/// Its path in the root file system that the kernel makes of the archive.
pub const name = "bootfarm-initramfs";
pub const content_size_max = 256;
/// The part of a file that contains it.
pub const head_size_max = 512;

const first_line = "bootfarm-initramfs 1";
const header_size = 110;
const magic = "070701";
/// Offsets of fields of eight hex digits.
const file_size_offset = 54;
const name_size_offset = 94;
/// The name and its zero byte, padded so that the content starts at a multiple of four.
const content_offset = std.mem.alignForward(usize, header_size + name.len + 1, 4);

comptime {
    std.debug.assert(content_offset + content_size_max <= head_size_max);
}

/// Values only: it may be kept.
pub const InitramfsMark = struct {
    release: base.UntrustedText,
    architecture: Architecture,

    /// Writes the entry's content into `buffer`.
    pub fn write(mark: *const InitramfsMark, buffer: *[content_size_max]u8) []const u8 {
        return std.mem.print(buffer, first_line ++ "\nrelease {s}\narchitecture {t}\n", .{
            mark.release.slice(), mark.architecture,
        }) catch unreachable;
    }
};

/// `head`: the file's first bytes. Returns null for an initramfs from elsewhere: nothing is known
/// about it.
pub fn read(head: []const u8) ?InitramfsMark {
    if (head.len < content_offset) return null;
    if (!std.mem.startsWith(u8, head, magic)) return null;
    if ((hex(head[name_size_offset..][0..8]) orelse return null) != name.len + 1) return null;
    if (!std.mem.eql(u8, head[header_size..][0 .. name.len + 1], name ++ "\x00")) return null;
    const size = hex(head[file_size_offset..][0..8]) orelse return null;
    if (size > content_size_max or size > head.len - content_offset) return null;
    return parse(head[content_offset..][0..size]);
}

fn parse(content: []const u8) ?InitramfsMark {
    var lines = std.mem.splitScalar(u8, content, '\n');
    if (!std.mem.eql(u8, lines.first(), first_line)) return null;
    const release = valueOf(lines.next(), "release ") orelse return null;
    if (release.len > base.UntrustedText.size_max) return null;
    for (release) |byte| if (!std.ascii.isPrint(byte) or byte == ' ') return null;
    const architecture = valueOf(lines.next(), "architecture ") orelse return null;
    return .{
        .release = .init(release),
        .architecture = std.meta.stringToEnum(Architecture, architecture) orelse return null,
    };
}

fn valueOf(line: ?[]const u8, key: []const u8) ?[]const u8 {
    const value = std.mem.cutPrefix(u8, line orelse return null, key) orelse return null;
    return if (value.len > 0) value else null;
}

fn hex(digits: *const [8]u8) ?u32 {
    for (digits) |digit| if (!std.ascii.isHex(digit)) return null;
    return std.fmt.parseInt(u32, digits, 16) catch unreachable;
}

const testing = std.testing;

/// The entry as `cpio.zig` of the module `initramfs` writes it.
pub fn testEntry(content: []const u8, buffer: *[head_size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll(magic) catch unreachable;
    for ([13]usize{ 1, 0o100644, 1, 0, 0, 0, content.len, 0, 0, 0, 0, name.len + 1, 0 }) |field|
        writer.print("{X:0>8}", .{field}) catch unreachable;
    writer.writeAll(name ++ "\x00") catch unreachable;
    writer.splatByteAll(0, content_offset - writer.end) catch unreachable;
    writer.writeAll(content) catch unreachable;
    return writer.buffered();
}

test "a written mark is read back" {
    const mark: InitramfsMark = .{ .release = .init("6.1.0-53-amd64"), .architecture = .x86_64 };
    var content: [content_size_max]u8 = undefined;
    var head: [head_size_max]u8 = undefined;
    const found = read(testEntry(mark.write(&content), &head)).?;
    try testing.expectEqualStrings("6.1.0-53-amd64", found.release.slice());
    try testing.expectEqual(Architecture.x86_64, found.architecture);
    const long: InitramfsMark =
        .{ .release = .init(&@as([64]u8, @splat('6'))), .architecture = .aarch64 };
    try testing.expectEqual(64, read(testEntry(long.write(&content), &head)).?.release.size);
}

test "an initramfs from elsewhere is not judged" {
    var head: [head_size_max]u8 = undefined;
    const lines = first_line ++ "\nrelease 6.1\narchitecture x86_64\n";
    try testing.expect(read(testEntry(lines, &head)) != null);
    const others = [_][]const u8{
        "",
        first_line,
        "bootfarm-initramfs 2\nrelease 6.1\narchitecture x86_64\n",
        first_line ++ "\nrelease \narchitecture x86_64\n",
        first_line ++ "\nrelease 6.1 x\narchitecture x86_64\n",
        first_line ++ "\nrelease 6.1\narchitecture z80\n",
    };
    for (others) |content| try testing.expectEqual(null, read(testEntry(content, &head)));
    try testing.expectEqual(null, read("\x1f\x8b\x08"));
    const whole = testEntry(lines, &head);
    for (0..whole.len) |size| try testing.expectEqual(null, read(whole[0..size]));
    head[file_size_offset] = 'F';
    try testing.expectEqual(null, read(&head));
}
