//! The command line of a system that booted from its own disk, for a boot from an edge: without what says where its root was, how its old
//! initramfs found it, and what the boot loader added.

const std = @import("std");

/// As much as a version may have (core's desired state).
pub const size_max = 1024;

/// Words and `word=` that are left out: where the root is and how it is mounted, which the initramfs of a boot from an edge knows.
const of_root = [_][]const u8{
    "root",     "rootfstype", "rootflags", "rootwait",  "rootdelay",       "ro",             "rw",
    "roothash", "subroot",    "usrhash",   "mount.usr", "mount.usrfstype", "mount.usrflags",
};
/// Sleep to a disk that is not there.
const of_sleep = [_][]const u8{ "resume", "resume_offset", "resumeflags", "noresume", "hibernate" };
/// What boot loaders add.
const of_loaders = [_][]const u8{ "BOOT_IMAGE", "initrd", "BOOTIF", "boot_part", "boot_root", "kernel" };
/// Other ways to a root, and a network that another initramfs set up.
const of_initramfs = [_][]const u8{
    "cryptdevice", "cryptkey",     "cryptopts", "zfs", "lvmroot", "luksroot",
    "nfsroot",     "nfsrootdebug", "netroot",   "ip",  "boot",    "break",
};
/// An edge's own words, of another boot.
const of_edge = [_][]const u8{ "bootfarm.edge", "bootfarm.boot", "bootfarm.token", "bootfarm.report", "bootfarm.root" };
const names = of_root ++ of_sleep ++ of_loaders ++ of_initramfs ++ of_edge;
/// Of dracut's initramfs, and of systemd's in one.
const prefixes = [_][]const u8{ "rd.", "luks.", "systemd.verity", "BOOT_IMAGE" };

pub const Cleaned = struct {
    /// What is kept, with one space between words.
    kept: []const u8,
    /// How many words were left out.
    removed: u32,
};

/// `error.TooLong`: more than `size_max` would be kept.
pub fn clean(text: []const u8, buffer: *[size_max]u8) error{TooLong}!Cleaned {
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

/// Words as the kernel takes them: a space between double quotes belongs to its word.
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

test "what belonged to the disk goes, everything else stays" {
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
    try expectCleaned(" quiet  ${vt_handoff}\tdyndbg=\"file a.c +p\" \n", "quiet dyndbg=\"file a.c +p\"", 1);
    try expectCleaned("rootless=1 rows=2 iproute", "rootless=1 rows=2 iproute", 0);
    try expectCleaned("", "", 0);
}

test "a line that no version may have is refused" {
    var buffer: [size_max]u8 = undefined;
    const long: [size_max + 1]u8 = @splat('x');
    try testing.expectError(error.TooLong, clean(&long, &buffer));
    _ = try clean(long[0..size_max], &buffer);
}
