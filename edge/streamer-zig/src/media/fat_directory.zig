//! Directory entries of a FAT volume, with long names where a name is not upper case in 8.3 form
//! ("FAT: General Overview of On-Disk Format" 1.03, "FAT Directory Structure" and "FAT Long
//! Directory Entries").

const std = @import("std");
const assert = std.debug.assert;

pub const entry_size = 32;
const long_characters = 13;
const attribute_label = 0x08;
const attribute_folder = 0x10;
const attribute_file = 0x20;
const attribute_long = 0x0f;
const last_long = 0x40;
/// 1 January 1980, the first day of FAT.
const date_first = 1 << 5 | 1;

pub const Entry = struct {
    name: []const u8,
    kind: enum { file, folder },
    cluster: u16,
    size: u32 = 0,
};

pub const Writer = struct {
    /// The whole folder, zeroed.
    bytes: []u8,
    position: usize = 0,
    /// Makes the short aliases of long names unique.
    alias_next: u8 = '1',

    pub fn label(writer: *Writer, name: []const u8) void {
        writer.short(padded(11, name), attribute_label, 0, 0);
    }

    pub fn dots(writer: *Writer, own: u16, parent: u16) void {
        writer.short(padded(11, "."), attribute_folder, own, 0);
        writer.short(padded(11, ".."), attribute_folder, parent, 0);
    }

    pub fn add(writer: *Writer, entry: Entry) void {
        const name = shortName(entry.name) orelse alias: {
            const alias = writer.aliasOf(entry.name);
            writer.long(entry.name, checksum(alias));
            break :alias alias;
        };
        const attribute: u8 = if (entry.kind == .folder) attribute_folder else attribute_file;
        writer.short(name, attribute, entry.cluster, entry.size);
    }

    /// `NAME~1.EXT`.
    fn aliasOf(writer: *Writer, name: []const u8) [11]u8 {
        assert(writer.alias_next <= '9');
        const stem, const extension = std.mem.cutScalarLast(u8, name, '.') orelse .{ name, "" };
        var alias: [11]u8 = @splat(' ');
        const kept = @min(stem.len, 6);
        for (alias[0..kept], stem[0..kept]) |*to, from| to.* = std.ascii.toUpper(from);
        alias[kept..][0..2].* = .{ '~', writer.alias_next };
        const kept_extension = @min(extension.len, 3);
        for (alias[8..][0..kept_extension], extension[0..kept_extension]) |*to, from|
            to.* = std.ascii.toUpper(from);
        writer.alias_next += 1;
        return alias;
    }

    /// Writes the last part of the name first.
    fn long(writer: *Writer, name: []const u8, sum: u8) void {
        var number = longEntries(name);
        while (number > 0) : (number -= 1) {
            const entry = writer.take();
            const begin = (number - 1) * long_characters;
            const is_last = number == longEntries(name);
            entry[0] = @as(u8, @intCast(number)) | if (is_last) @as(u8, last_long) else 0;
            entry[11] = attribute_long;
            entry[13] = sum;
            for (0..long_characters) |index| {
                const at = begin + index;
                // A zero ends the name, and ones fill the rest.
                const filler: u16 = if (at == name.len) 0 else 0xffff;
                const unit = if (at < name.len) name[at] else filler;
                const place: usize = switch (index) {
                    0...4 => 1 + index * 2,
                    5...10 => 14 + (index - 5) * 2,
                    else => 28 + (index - 11) * 2,
                };
                std.mem.writeInt(u16, entry[place..][0..2], unit, .little);
            }
        }
    }

    fn short(writer: *Writer, name: [11]u8, attribute: u8, cluster: u16, size: u32) void {
        const entry = writer.take();
        entry[0..11].* = name;
        entry[11] = attribute;
        for ([_]usize{ 16, 18, 24 }) |date_at|
            std.mem.writeInt(u16, entry[date_at..][0..2], date_first, .little);
        std.mem.writeInt(u16, entry[26..28], cluster, .little);
        std.mem.writeInt(u32, entry[28..32], size, .little);
    }

    fn take(writer: *Writer) *[entry_size]u8 {
        defer writer.position += entry_size;
        return writer.bytes[writer.position..][0..entry_size];
    }
};

/// Number of entries of a name, including the short one.
pub fn entriesFor(name: []const u8) usize {
    return 1 + if (shortName(name) == null) longEntries(name) else 0;
}

fn longEntries(name: []const u8) usize {
    return std.math.divCeil(usize, name.len, long_characters) catch unreachable;
}

/// Null if only a long entry can hold the name.
fn shortName(name: []const u8) ?[11]u8 {
    const stem, const extension = std.mem.cutScalar(u8, name, '.') orelse .{ name, "" };
    if (stem.len == 0 or stem.len > 8 or extension.len > 3) return null;
    for (name) |character| switch (character) {
        'A'...'Z', '0'...'9', '_', '-', '.' => {},
        else => return null,
    };
    if (std.mem.findScalar(u8, extension, '.') != null) return null;
    return padded(8, stem) ++ padded(3, extension);
}

pub fn padded(comptime size: usize, text: []const u8) [size]u8 {
    var result: [size]u8 = @splat(' ');
    @memcpy(result[0..text.len], text);
    return result;
}

/// Checksum that ties the long entries to their short one.
fn checksum(name: [11]u8) u8 {
    var sum: u8 = 0;
    for (name) |character| sum = std.math.rotr(u8, sum, 1) +% character;
    return sum;
}
