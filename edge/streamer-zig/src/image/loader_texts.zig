//! Parses what boot loaders read: entries of the Boot Loader Specification
//! (uapi-group.org/specifications, type 1), grub.cfg, extlinux and syslinux configurations. Nothing
//! is executed; what only a boot loader could evaluate is left out.

const std = @import("std");
const base = @import("base");
const command_line = @import("command_line.zig");

pub const initrds_max = 8;
pub const Initrds = base.BoundedArray([]const u8, initrds_max);

/// What one entry starts; all texts point into the text that was read.
pub const Entry = struct {
    title: []const u8 = "",
    version: []const u8 = "",
    kernel: []const u8 = "",
    initrds: Initrds = .empty,
    options: []const u8 = "",

    fn addInitrd(entry: *Entry, path: []const u8) void {
        // More than any loader uses; the first ones count.
        entry.initrds.append(path) catch {};
    }
};

/// Parses an entry of the Boot Loader Specification; null if it starts no kernel. Joins several
/// lines of options in `gpa`.
pub fn readBls(gpa: std.mem.Allocator, text: []const u8) error{OutOfMemory}!?Entry {
    var entry: Entry = .{};
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (lines.next()) |line| {
        const key, const value = keyAndValue(line) orelse continue;
        if (std.mem.eql(u8, key, "title")) entry.title = value;
        if (std.mem.eql(u8, key, "version")) entry.version = value;
        if (std.mem.eql(u8, key, "linux")) entry.kernel = value;
        if (std.mem.eql(u8, key, "initrd")) {
            var paths = std.mem.tokenizeAny(u8, value, " \t");
            while (paths.next()) |path| if (path[0] != '$') entry.addInitrd(path);
        }
        if (std.mem.eql(u8, key, "options"))
            entry.options = if (entry.options.len == 0) value else try std.mem.concat(gpa, u8, &.{
                entry.options, " ", value,
            });
    }
    return if (entry.kernel.len > 0) entry else null;
}

/// Null for empty lines and comments.
fn keyAndValue(line: []const u8) ?struct { []const u8, []const u8 } {
    const trimmed = std.mem.trim(u8, line, " \t");
    if (trimmed.len == 0 or trimmed[0] == '#') return null;
    const end = std.mem.findAny(u8, trimmed, " \t") orelse return .{ trimmed, "" };
    return .{ trimmed[0..end], std.mem.trimStart(u8, trimmed[end..], " \t") };
}

/// Returns a variable of a GRUB environment block, or null.
pub fn readGrubEnvironment(text: []const u8, name: []const u8) ?[]const u8 {
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        const equals = std.mem.findScalar(u8, line, '=') orelse continue;
        if (std.mem.eql(u8, line[0..equals], name)) return line[equals + 1 ..];
    }
    return null;
}

/// Returns the default entry of a syslinux, extlinux or pxelinux-like configuration; null if it
/// starts no kernel.
pub fn readExtlinux(text: []const u8) ?Entry {
    const wanted = extlinuxDefault(text);
    var chosen: ?Entry = null;
    var entry: Entry = .{};
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (true) {
        const line = lines.next();
        const key, const value = if (line) |present| keyAndValue(present) orelse
            continue else .{ "label", "" };
        if (is(key, "label")) {
            const is_wanted = wanted != null and std.mem.eql(u8, entry.title, wanted.?);
            if (entry.kernel.len > 0 and (chosen == null or is_wanted)) chosen = entry;
            if (line == null or (entry.kernel.len > 0 and is_wanted)) return chosen;
            entry = .{ .title = value };
        } else if (is(key, "kernel") or is(key, "linux")) {
            entry.kernel = value;
        } else if (is(key, "append")) {
            entry.options = value;
            var words: command_line.Words = .{ .text = value };
            while (words.next()) |word|
                if (std.mem.startsWith(u8, word, "initrd=")) addList(&entry, word["initrd=".len..]);
        } else if (is(key, "initrd")) addList(&entry, value);
    }
}

fn addList(entry: *Entry, text: []const u8) void {
    var paths = std.mem.tokenizeScalar(u8, text, ',');
    while (paths.next()) |path| entry.addInitrd(path);
}

fn extlinuxDefault(text: []const u8) ?[]const u8 {
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (lines.next()) |line| {
        const key, const value = keyAndValue(line) orelse continue;
        if (is(key, "default")) return value;
    }
    return null;
}

fn is(key: []const u8, name: []const u8) bool {
    return std.ascii.eqlIgnoreCase(key, name);
}

const testing = std.testing;

test "an entry of the Boot Loader Specification has its kernel, all its initrds and all its options" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const entry = (try readBls(arena.allocator(),
        \\# Fedora
        \\title Fedora Linux (6.9.4-200.fc40.x86_64) 40 (Forty)
        \\version 6.9.4-200.fc40.x86_64
        \\linux /vmlinuz-6.9.4-200.fc40.x86_64
        \\initrd /initramfs-6.9.4-200.fc40.x86_64.img $tuned_initrd
        \\options root=UUID=1 ro rhgb quiet
        \\options console=tty0
        \\grub_users $grub_users
    )).?;
    try testing.expectEqualStrings("6.9.4-200.fc40.x86_64", entry.version);
    try testing.expectEqualStrings("/vmlinuz-6.9.4-200.fc40.x86_64", entry.kernel);
    try testing.expectEqual(1, entry.initrds.count);
    try testing.expectEqualStrings("root=UUID=1 ro rhgb quiet console=tty0", entry.options);
    try testing.expectEqual(
        null,
        try readBls(arena.allocator(), "title a\nefi /EFI/Linux/a.efi\n"),
    );
}

test "the default of an extlinux configuration is used, or else its first entry" {
    const text =
        \\DEFAULT l1
        \\LABEL l0
        \\  LINUX ../vmlinuz-5
        \\  APPEND root=/dev/sda1 quiet
        \\label l1
        \\  kernel /boot/vmlinuz-6
        \\  initrd /boot/initrd.img-6,/boot/more
        \\  append initrd=/boot/third splash
    ;
    const entry = readExtlinux(text).?;
    try testing.expectEqualStrings("/boot/vmlinuz-6", entry.kernel);
    try testing.expectEqual(3, entry.initrds.count);
    const first = readExtlinux(text["DEFAULT l1\n".len..]).?;
    try testing.expectEqualStrings("../vmlinuz-5", first.kernel);
    try testing.expectEqual(null, readExtlinux("LABEL a\nCOM32 menu.c32\n"));
    try testing.expectEqual(null, readExtlinux(""));
}

test "a variable of GRUB's environment is found" {
    const text = "# GRUB Environment Block\nsaved_entry=0\nkernelopts=root=UUID=1 ro quiet\n####";
    try testing.expectEqualStrings(
        "root=UUID=1 ro quiet",
        readGrubEnvironment(text, "kernelopts").?,
    );
    try testing.expectEqual(null, readGrubEnvironment(text, "default"));
}
