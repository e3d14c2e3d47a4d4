//! How a difference names its parent: by the names of a file, of which only the last component
//! counts, so that a parent is looked for in one directory and nowhere else.

const std = @import("std");
const base = @import("base");

/// Bytes of UTF-8; what a Linux file system takes.
pub const name_size_max = 255;
pub const Name = base.BoundedArray(u8, name_size_max);
pub const Identity = [16]u8;

const names_max = 6;

pub const ParentLink = @This();

/// In the order of preference, without duplicates.
names: base.BoundedArray(Name, names_max) = .empty,
/// The parent must have one of these; all zeros count as absent. None for formats without.
identities: [2]?Identity = .{ null, null },
/// The difference says that its parent is raw, whatever it begins with.
is_raw: bool = false,

pub fn isIdentity(link: *const ParentLink, found: ?Identity) bool {
    var is_checked = false;
    for (link.identities) |wanted| {
        const identity = wanted orelse continue;
        if (std.mem.allEqual(u8, &identity, 0)) continue;
        is_checked = true;
        if (found) |other| if (std.mem.eql(u8, &identity, &other)) return true;
    }
    return !is_checked;
}

/// Adds the last component of a path of Windows, Linux or a URL; ignores what is no name.
pub fn addPath(link: *ParentLink, path: []const u8) void {
    const after = if (std.mem.findLastAny(u8, path, "/\\")) |at| path[at + 1 ..] else path;
    const name = std.mem.cutPrefix(u8, after, "file:") orelse after;
    if (name.len == 0 or std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) return;
    for (name) |byte| if (byte < 0x20 or byte == 0x7f) return;
    for (link.names.constSlice()) |*known|
        if (std.mem.eql(u8, known.constSlice(), name)) return;
    const bounded = Name.fromSlice(name) catch return;
    link.names.append(bounded) catch return;
}

/// Adds a path in UTF-16, up to its first zero.
pub fn addUtf16(link: *ParentLink, bytes: []const u8, endian: std.lang.Endian) void {
    var units: [path_units_max]u16 = undefined;
    const count = @min(bytes.len / 2, units.len);
    var used: usize = 0;
    for (0..count) |index| {
        const unit = std.mem.readInt(u16, bytes[index * 2 ..][0..2], endian);
        if (unit == 0) break;
        units[used] = std.mem.nativeToLittle(u16, unit);
        used += 1;
    }
    var text: [path_units_max * 3]u8 = undefined;
    const size = std.unicode.utf16LeToUtf8(&text, units[0..used]) catch return;
    link.addPath(text[0..size]);
}

/// Windows has no longer path in these formats.
pub const path_units_max = 1024;

const testing = std.testing;

test "of a path only the file's name is taken, and each name once" {
    var link: ParentLink = .{};
    for ([_][]const u8{
        "C:\\vhds\\base.vhdx", ".\\base.vhdx",   "../up/base2.vhdx", "file:base3", "base3",
        "",                    "/",              "..",               "a/..",       "a\nb",
        "file:///Users/x/b4",  "C:\\vhds\\..\\",
    }) |path| link.addPath(path);
    const wanted = [_][]const u8{ "base.vhdx", "base2.vhdx", "base3", "b4" };
    try testing.expectEqual(wanted.len, link.names.constSlice().len);
    for (wanted, link.names.constSlice()) |name, *found|
        try testing.expectEqualStrings(name, found.constSlice());
    link.addUtf16("x\x00:\x00\\\x00\xe9\x00\x00\x00y\x00", .little);
    try testing.expectEqualStrings("\xc3\xa9", link.names.constSlice()[4].constSlice());
    // A lone surrogate is no text.
    link.addUtf16("\xd8\x00", .big);
    try testing.expectEqual(5, link.names.constSlice().len);
}

test "a parent counts only with an identity that the difference names" {
    const one: Identity = @splat(1);
    const two: Identity = @splat(2);
    var link: ParentLink = .{};
    try testing.expect(link.isIdentity(null) and link.isIdentity(one));
    link.identities = .{ @splat(0), null };
    try testing.expect(link.isIdentity(one));
    link.identities = .{ @splat(0), one };
    try testing.expect(link.isIdentity(one));
    try testing.expect(!link.isIdentity(two) and !link.isIdentity(null));
}
