//! Finds the default entry of a grub.cfg as far as the text alone decides it: menu entries,
//! submenus, `set default`, and the lines `linux` and `initrd`. Conditions are not evaluated and
//! variables not replaced.

const std = @import("std");
const loader_texts = @import("loader_texts.zig");
const Entry = loader_texts.Entry;

/// Nesting of menus; deeper ones are read as part of this level.
const depth_max = 4;
const blocks_max = 64;

pub const Menu = struct {
    /// Null if no entry starts a kernel.
    chosen: ?Entry = null,
    /// The menu consists of entries of the Boot Loader Specification.
    has_bls: bool = false,
};

/// `saved`: the entry saved in the environment, for menus that ask for it. Texts of the entry are
/// in `gpa` or in `text`.
pub fn read(gpa: std.mem.Allocator, text: []const u8, saved: ?[]const u8) error{OutOfMemory}!Menu {
    var reader: Reader = .{ .gpa = gpa, .wanted = default(text, saved) };
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (lines.next()) |line| try reader.line(std.mem.trim(u8, line, " \t"));
    return .{
        .chosen = reader.exact orelse reader.within orelse reader.first,
        .has_bls = reader.has_bls,
    };
}

/// The last plain value of `set default=`; the environment's if it refers to that; otherwise the
/// first entry.
fn default(text: []const u8, saved: ?[]const u8) []const u8 {
    var found: ?[]const u8 = null;
    var asks_environment = false;
    var lines = std.mem.tokenizeAny(u8, text, "\r\n");
    while (lines.next()) |line| {
        const trimmed = std.mem.trim(u8, line, " \t");
        if (!std.mem.startsWith(u8, trimmed, "set default=")) continue;
        const value = std.mem.trim(u8, trimmed["set default=".len..], "\"' \t");
        if (std.mem.findScalar(u8, value, '$') == null) {
            found = value;
        } else if (std.mem.find(u8, value, "saved_entry") != null) asks_environment = true;
    }
    if (asks_environment) if (saved) |value| if (value.len > 0) return value;
    return found orelse "0";
}

const Block = enum { menu, entry, other };

const Reader = struct {
    gpa: std.mem.Allocator,
    wanted: []const u8,
    blocks: [blocks_max]Block = undefined,
    depth: usize = 0,
    /// Number of entries so far in each menu, and the title of each menu around the current line.
    counts: [depth_max]usize = @splat(0),
    menus: usize = 0,
    /// The part of `wanted` that each enclosing menu was asked for; null for another menu.
    left: [depth_max]?[]const u8 = @splat(null),
    entry: ?Entry = null,
    is_exact: bool = false,
    is_within: bool = false,
    exact: ?Entry = null,
    within: ?Entry = null,
    first: ?Entry = null,
    has_bls: bool = false,

    fn line(reader: *Reader, text: []const u8) error{OutOfMemory}!void {
        var words: Words = .{ .text = text };
        const command = words.next() orelse return;
        if (command[0] == '#') return;
        if (std.mem.eql(u8, command, "blscfg")) reader.has_bls = true;
        if (std.mem.eql(u8, command, "menuentry")) reader.beginEntry(&words);
        if (std.mem.eql(u8, command, "submenu")) reader.beginMenu(&words);
        if (std.mem.eql(u8, command, "}")) return reader.end();
        if (std.mem.endsWith(u8, text, "{") and !std.mem.endsWith(u8, text, "${")) {
            const kind: Block = if (std.mem.eql(u8, command, "menuentry")) .entry else //
                if (std.mem.eql(u8, command, "submenu")) .menu else .other;
            if (reader.depth < blocks_max) reader.blocks[reader.depth] = kind;
            reader.depth += 1;
            return;
        }
        const entry = if (reader.entry) |*open| open else return;
        if (isOneOf(command, &.{ "linux", "linux16", "linuxefi" })) {
            entry.kernel = if (words.next()) |path| try withoutDevice(reader.gpa, path) else "";
            entry.options = std.mem.trim(u8, words.text, " \t");
        } else if (isOneOf(command, &.{ "initrd", "initrd16", "initrdefi" })) {
            while (words.next()) |path| {
                const plain = try withoutDevice(reader.gpa, path);
                if (plain.len > 0 and plain[0] != '$') entry.initrds.append(plain) catch return;
            }
        }
    }

    /// The part of `wanted` for this menu; null if the entry is elsewhere.
    fn wantedHere(reader: *const Reader) ?[]const u8 {
        if (reader.menus == 0) return reader.wanted;
        return reader.left[@min(reader.menus, depth_max) - 1];
    }

    /// Returns whether the menu was asked for this entry, by number, title or id.
    fn isWanted(reader: *const Reader, words: *Words) bool {
        const asked = reader.wantedHere() orelse return false;
        const name = asked[0 .. std.mem.findScalar(u8, asked, '>') orelse asked.len];
        const index = reader.counts[@min(reader.menus, depth_max - 1)];
        if (std.fmt.parseInt(usize, name, 10) catch null) |number| if (number == index) return true;
        var copy = words.*;
        if (copy.next()) |title| if (std.mem.eql(u8, unquoted(title), name)) return true;
        while (copy.next()) |word| {
            if (!std.mem.eql(u8, word, "--id") and !std.mem.eql(u8, word, "$menuentry_id_option"))
                continue;
            const id = copy.next() orelse return false;
            return std.mem.eql(u8, unquoted(id), name);
        }
        return false;
    }

    fn beginEntry(reader: *Reader, words: *Words) void {
        const is_wanted = reader.isWanted(words);
        reader.is_exact = is_wanted;
        reader.is_within = reader.menus > 0 and reader.wantedHere() != null;
        var copy = words.*;
        reader.entry = .{ .title = unquoted(copy.next() orelse "") };
        reader.counts[@min(reader.menus, depth_max - 1)] += 1;
    }

    fn beginMenu(reader: *Reader, words: *Words) void {
        const asked = if (reader.isWanted(words)) reader.wantedHere() else null;
        reader.counts[@min(reader.menus, depth_max - 1)] += 1;
        if (reader.menus < depth_max) reader.left[reader.menus] = if (asked) |text|
            if (std.mem.findScalar(u8, text, '>')) |arrow| text[arrow + 1 ..] else "0"
        else
            null;
        reader.menus += 1;
        if (reader.menus < depth_max) reader.counts[reader.menus] = 0;
    }

    fn end(reader: *Reader) void {
        if (reader.depth == 0) return;
        reader.depth -= 1;
        const kind: Block = if (reader.depth < blocks_max) reader.blocks[reader.depth] else .other;
        switch (kind) {
            .other => {},
            .menu => reader.menus -|= 1,
            .entry => {
                const entry = reader.entry orelse return;
                reader.entry = null;
                if (entry.kernel.len == 0) return;
                if (reader.first == null) reader.first = entry;
                if (reader.is_within and reader.within == null) reader.within = entry;
                if (reader.is_exact and reader.exact == null) reader.exact = entry;
            },
        }
    }
};

/// Returns the path after `(hd0,gpt2)` or `($root)`, without quotes and backslashes.
fn withoutDevice(gpa: std.mem.Allocator, word: []const u8) error{OutOfMemory}![]const u8 {
    var path = unquoted(word);
    if (path.len > 0 and path[0] ==
        '(') path = if (std.mem.findScalar(u8, path, ')')) |close| path[close + 1 ..] else "";
    if (std.mem.startsWith(u8, path, "$root")) path = path["$root".len..];
    if (std.mem.findAny(u8, path, "\\\"'") == null) return path;
    const plain = try gpa.alloc(u8, path.len);
    var size: usize = 0;
    for (path) |byte| {
        if (std.mem.findScalar(u8, "\\\"'", byte) != null) continue;
        plain[size] = byte;
        size += 1;
    }
    return plain[0..size];
}

fn unquoted(word: []const u8) []const u8 {
    if (word.len < 2) return word;
    const quote = word[0];
    if ((quote != '\'' and quote != '"') or word[word.len - 1] != quote) return word;
    return word[1 .. word.len - 1];
}

fn isOneOf(word: []const u8, words: []const []const u8) bool {
    for (words) |known| if (std.mem.eql(u8, word, known)) return true;
    return false;
}

/// Splits a line into words; quotes and backslashes stay.
const Words = struct {
    text: []const u8,

    fn next(words: *Words) ?[]const u8 {
        const begin = std.mem.findNone(u8, words.text, " \t") orelse return null;
        var quote: u8 = 0;
        var index = begin;
        while (index < words.text.len) : (index += 1) {
            const byte = words.text[index];
            if (byte == '\\' and quote != '\'') {
                index += 1;
            } else if (quote != 0) {
                if (byte == quote) quote = 0;
            } else if (byte == '\'' or byte == '"') {
                quote = byte;
            } else if (byte == ' ' or byte == '\t') break;
        }
        const end = @min(index, words.text.len);
        defer words.text = words.text[end..];
        return words.text[begin..end];
    }
};

const testing = std.testing;

/// Shortened output of update-grub of Debian 12.
const debian =
    \\if [ "${next_entry}" ] ; then
    \\   set default="${next_entry}"
    \\else
    \\   set default="0"
    \\fi
    \\
;
const menus =
    \\function gfxmode {
    \\ set gfxpayload="${1}"
    \\}
    \\menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-6f1e' {
    \\ insmod gzio
    \\ search --no-floppy --fs-uuid --set=root 6f1e
    \\ echo 'Loading Linux 6.1.0-18-amd64 ...'
    \\ linux /boot/vmlinuz-6.1.0-18-amd64 root=UUID=6f1e ro  quiet $vt_handoff
    \\ initrd /boot/initrd.img-6.1.0-18-amd64
    \\}
    \\submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-6f1e' {
    \\ menuentry 'Debian GNU/Linux, with Linux 6.1.0-18-amd64' --id 'new' {
    \\  linux /boot/vmlinuz-6.1.0-18-amd64 root=UUID=6f1e ro quiet
    \\ }
    \\ menuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64' --id 'old' {
    \\  linux /boot/vmlinuz-6.1.0-9-amd64 root=UUID=6f1e ro quiet
    \\  initrd /boot/initrd.img-6.1.0-9-amd64 /boot/more
    \\ }
    \\}
    \\menuentry 'UEFI Firmware Settings' {
    \\ fwsetup
    \\}
;

fn expectChosen(text: []const u8, saved: ?[]const u8, kernel: ?[]const u8) !void {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const menu = try read(arena.allocator(), text, saved);
    const wanted = kernel orelse return testing.expectEqual(null, menu.chosen);
    try testing.expectEqualStrings(wanted, menu.chosen.?.kernel);
}

test "the default entry is found by number, title or id, in submenus too" {
    try expectChosen(debian ++ menus, null, "/boot/vmlinuz-6.1.0-18-amd64");
    inline for (.{
        "1>1",
        "1>old",
        "gnulinux-advanced-6f1e>Debian GNU/Linux, with Linux 6.1.0-9-amd64",
    }) |wanted| {
        const text = "set default=\"" ++ wanted ++ "\"\n" ++ menus;
        try expectChosen(text, null, "/boot/vmlinuz-6.1.0-9-amd64");
    }
    const saved = "set default=\"${saved_entry}\"\n" ++ menus;
    try expectChosen(saved, "1>old", "/boot/vmlinuz-6.1.0-9-amd64");
    try expectChosen(saved, null, "/boot/vmlinuz-6.1.0-18-amd64");
    try expectChosen("set default=\"2\"\n" ++ menus, null, "/boot/vmlinuz-6.1.0-18-amd64");
}

test "a line gives its path without a device, its options and all its initrds" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const menu = try read(arena.allocator(),
        \\menuentry "a" {
        \\ linux ($root)/vmlinuz-5\ 1 root=/dev/sda1 quiet
        \\ initrd (hd0,gpt2)/initrd-1 $extra "/initrd 2"
        \\}
    , null);
    const entry = menu.chosen.?;
    try testing.expectEqualStrings("/vmlinuz-5 1", entry.kernel);
    try testing.expectEqualStrings("root=/dev/sda1 quiet", entry.options);
    try testing.expectEqual(2, entry.initrds.count);
    try testing.expectEqualStrings("/initrd 2", entry.initrds.buffer[1]);
}

test "unclosed menus and unmatched closing braces are harmless" {
    const begins: [600 * 10]u8 = comptime blk: {
        @setEvalBranchQuota(20_000);
        var text: [6000]u8 = undefined;
        for (0..600) |index| @memcpy(text[index * 10 ..][0..10], "submenu a{");
        break :blk text;
    };
    var lines: [6000]u8 = begins;
    for (0..599) |index| lines[index * 10] = '\n';
    try expectChosen(&lines, null, null);
    const ends: [600]u8 = @splat('}');
    try expectChosen(&ends, null, null);
    try expectChosen("}\n}\n}\nmenuentry 'a' {\nlinux /k\n}\n}\n", null, "/k");
    try expectChosen("menuentry 'a\\", null, null);
    try expectChosen("menuentry", null, null);
}
