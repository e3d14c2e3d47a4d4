//! Names of files in a PVS store. The base of the vDisk `lab` is `lab.vhdx`, its version 2 is
//! `lab.2.avhdx` (a difference), or `lab.2.vhdx` after a merge to a new base; VHD stores have
//! `.vhd` and `.avhd`. Beside each disk lies a `.pvp` with settings, while it is in use a `.lok`,
//! and after an export `lab.xml`. See Citrix, "VHDX chain of differencing disks".

const std = @import("std");

pub const Kind = enum { base, difference, settings, lock, manifest };

pub const FileName = struct {
    /// Name of the vDisk, a slice of the file's name.
    disk: []const u8,
    kind: Kind,
    /// 0 without a number in the name.
    number: u32,
};

const extensions = [_]struct { []const u8, Kind }{
    .{ ".vhdx", .base },
    .{ ".vhd", .base },
    .{ ".avhdx", .difference },
    .{ ".avhd", .difference },
    .{ ".pvp", .settings },
    .{ ".lok", .lock },
    .{ ".xml", .manifest },
};

/// Null for a file that does not belong to a vDisk.
pub fn parse(name: []const u8) ?FileName {
    for (extensions) |extension| {
        const end, const kind = extension;
        // Windows does not distinguish case.
        if (!std.ascii.endsWithIgnoreCase(name, end)) continue;
        const stem = name[0 .. name.len - end.len];
        if (stem.len == 0) return null;
        if (kind == .manifest) return .{ .disk = stem, .kind = kind, .number = 0 };
        if (std.mem.findScalarLast(u8, stem, '.')) |dot| if (dot > 0)
            if (parseNumber(stem[dot + 1 ..])) |number|
                return .{ .disk = stem[0..dot], .kind = kind, .number = number };
        // A difference always has the number of its version.
        if (kind == .difference) return null;
        return .{ .disk = stem, .kind = kind, .number = 0 };
    }
    return null;
}

/// At most nine digits, as PVS writes them.
fn parseNumber(text: []const u8) ?u32 {
    if (text.len == 0 or text.len > 9 or text[0] == '0') return null;
    for (text) |char| if (!std.ascii.isDigit(char)) return null;
    return std.fmt.parseInt(u32, text, 10) catch unreachable;
}

/// Returns whether a name stays in its directory, on Linux and on Windows.
pub fn isPlain(name: []const u8) bool {
    if (name.len == 0 or name.len > 255) return false;
    if (std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) return false;
    for (name) |char| if (std.ascii.isControl(char)) return false;
    return std.mem.findAny(u8, name, "/\\:") == null;
}

const testing = std.testing;

fn expectName(name: []const u8, disk: []const u8, kind: Kind, number: u32) !void {
    const found = parse(name).?;
    try testing.expectEqualStrings(disk, found.disk);
    try testing.expectEqual(kind, found.kind);
    try testing.expectEqual(number, found.number);
}

test "a file's name says which vDisk and version it belongs to" {
    try expectName("lab.vhdx", "lab", .base, 0);
    try expectName("lab.1.avhdx", "lab", .difference, 1);
    try expectName("lab.12.VHD", "lab", .base, 12);
    try expectName("Win 10.v2.7.avhd", "Win 10.v2", .difference, 7);
    try expectName("lab.pvp", "lab", .settings, 0);
    try expectName("lab.3.pvp", "lab", .settings, 3);
    try expectName("lab.3.lok", "lab", .lock, 3);
    try expectName("lab.2.xml", "lab.2", .manifest, 0);
    // No number, or none that PVS writes.
    try expectName("lab.1909b.vhdx", "lab.1909b", .base, 0);
    try expectName("lab.01.vhdx", "lab.01", .base, 0);
    try expectName("lab.1234567890.vhdx", "lab.1234567890", .base, 0);
    try expectName(".1.vhdx", ".1", .base, 0);
    for ([_][]const u8{
        "", ".vhdx", "lab.avhdx", "lab.x.avhd", "lab", "lab.raw", "lab.vhdx.part",
    }) |name| try testing.expectEqual(null, parse(name));
}

test "a plain name is no path" {
    try testing.expect(isPlain("lab.1.avhdx") and isPlain("Win 10.vhd"));
    for ([_][]const u8{ "", ".", "..", "a/b", "..\\b", "C:b", "/etc/shadow", "a\nb" }) |name|
        try testing.expect(!isPlain(name));
    const long: [256]u8 = @splat('a');
    try testing.expect(!isPlain(&long));
}
