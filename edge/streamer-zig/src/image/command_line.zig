//! Turns the command line of a system that booted from its own disk into one for a boot from an
//! edge: drops where its root was, how its old initramfs found it, and what the boot loader added.

const std = @import("std");

/// The limit of a version (core's desired state).
pub const size_max = 1024;

/// Words and `word=` that are dropped: the root and its mount options, which the initramfs of a
/// network boot knows.
const of_root = [_][]const u8{
    "root",     "rootfstype", "rootflags", "rootwait",  "rootdelay",       "ro",             "rw",
    "roothash", "subroot",    "usrhash",   "mount.usr", "mount.usrfstype", "mount.usrflags",
};
/// Hibernation to a disk that is missing.
const of_sleep = [_][]const u8{ "resume", "resume_offset", "resumeflags", "noresume", "hibernate" };
/// Added by boot loaders.
const of_loaders =
    [_][]const u8{ "BOOT_IMAGE", "initrd", "BOOTIF", "boot_part", "boot_root", "kernel" };
/// Other kinds of root, and a network that another initramfs set up.
const of_initramfs = [_][]const u8{
    "cryptdevice", "cryptkey",     "cryptopts", "zfs", "lvmroot", "luksroot",
    "nfsroot",     "nfsrootdebug", "netroot",   "ip",  "boot",    "break",
};
/// An edge's options of another boot.
const of_edge = [_][]const u8{
    "bootfarm.edge",
    "bootfarm.boot",
    "bootfarm.token",
    "bootfarm.report",
    "bootfarm.link",
    "bootfarm.root",
    "bootfarm.subvolume",
};
const names = of_root ++ of_sleep ++ of_loaders ++ of_initramfs ++ of_edge;
/// Options of dracut's initramfs, and of systemd's.
const prefixes = [_][]const u8{ "rd.", "luks.", "systemd.verity", "BOOT_IMAGE" };

pub const CleanedLine = struct {
    /// The remaining words, separated by one space.
    kept: []const u8,
    /// Number of dropped words.
    removed: u32,
};

/// `error.TooLong`: the result would exceed `size_max`.
pub fn clean(text: []const u8, buffer: *[size_max]u8) error{TooLong}!CleanedLine {
    var size: usize = 0;
    var removed: u32 = 0;
    var words: Words = .{ .text = text };
    while (words.next()) |word| {
        if (!isKept(word)) {
            removed += 1;
            continue;
        }
        const space: usize = @intFromBool(size > 0);
        if (word.len + space > size_max - size) return error.TooLong;
        if (space == 1) buffer[size] = ' ';
        @memcpy(buffer[size + space ..][0..word.len], word);
        size += space + word.len;
    }
    return .{ .kept = buffer[0..size], .removed = removed };
}

fn isKept(word: []const u8) bool {
    const equals = std.mem.findScalar(u8, word, '=') orelse word.len;
    for (names) |name| if (std.mem.eql(u8, word[0..equals], name)) return false;
    for (prefixes) |prefix| if (std.mem.startsWith(u8, word, prefix)) return false;
    // A variable that only the boot loader could replace.
    if (std.mem.findScalar(u8, word, '$') != null) return false;
    for (word) |byte| if (!std.ascii.isPrint(byte)) return false;
    return true;
}

/// Splits words as the kernel does: a space between double quotes belongs to its word.
pub const Words = struct {
    text: []const u8,

    pub fn next(words: *Words) ?[]const u8 {
        const begin = std.mem.findNone(u8, words.text, " \t\r\n") orelse return null;
        var is_quoted = false;
        const end = for (words.text[begin..], begin..) |byte, index| {
            if (byte == '"') is_quoted = !is_quoted;
            if (!is_quoted and std.mem.findScalar(u8, " \t\r\n", byte) != null) break index;
        } else words.text.len;
        defer words.text = words.text[end..];
        return words.text[begin..end];
    }
};

const testing = std.testing;

fn expectCleaned(text: []const u8, kept: []const u8, removed: u32) !void {
    var buffer: [size_max]u8 = undefined;
    const cleaned = try clean(text, &buffer);
    try testing.expectEqualStrings(kept, cleaned.kept);
    try testing.expectEqual(removed, cleaned.removed);
}

test "options of the old disk are dropped, and everything else stays" {
    try expectCleaned(
        "BOOT_IMAGE=/boot/vmlinuz-6.1.0-18-amd64 root=UUID=6f1e ro quiet splash resume=UUID=1 console=ttyS0,115200",
        "quiet splash console=ttyS0,115200",
        4,
    );
    try expectCleaned(
        "root=/dev/mapper/fedora-root ro rd.lvm.lv=fedora/root rd.luks.uuid=luks-1 rhgb quiet crashkernel=1G-4G:192M",
        "rhgb quiet crashkernel=1G-4G:192M",
        4,
    );
    try expectCleaned(
        " quiet  ${vt_handoff}\tdyndbg=\"file a.c +p\" \n",
        "quiet dyndbg=\"file a.c +p\"",
        1,
    );
    try expectCleaned("rootless=1 rows=2 iproute", "rootless=1 rows=2 iproute", 0);
    try expectCleaned("", "", 0);
}

test "a line longer than a version may have is refused" {
    var buffer: [size_max]u8 = undefined;
    const long: [size_max + 1]u8 = @splat('x');
    try testing.expectError(error.TooLong, clean(&long, &buffer));
    _ = try clean(long[0..size_max], &buffer);
}
