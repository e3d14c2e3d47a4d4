//! The manifest of an exported vDisk of PVS: an XML file with the root `versionManifest`, and in it
//! a `version` with `versionNumber`, `description`, `type`, `access`, `diskFileName`, `size` and
//! dates for each version. Citrix documents its use ("Exporting and importing vDisks") and the
//! numbers ("PowerShell with Objects Programmer's Guide", Get-PvsDiskVersion).

const std = @import("std");
const base = @import("base");
const file_name = @import("file_name.zig");
const Xml = @import("xml.zig");

pub const size_max = 1 << 20;
pub const versions_max = 256;
/// Bytes of UTF-8; PVS takes 250 characters.
const description_size_max = 512;
/// Bytes of one element's text, with those of a description of 250 characters of 4 bytes.
const text_size_max = 1024;

pub const Name = base.BoundedArray(u8, 255);
pub const Description = base.BoundedArray(u8, description_size_max);

/// The numbers of Get-PvsDiskVersion.
pub const Access = enum(u8) {
    production = 0,
    maintenance = 1,
    maintenance_highest_version = 2,
    override = 3,
    merge = 4,
    merge_maintenance = 5,
    merge_test = 6,
    @"test" = 7,
};

pub const Version = struct {
    number: u32,
    file: Name,
    description: Description = .empty,
    /// Null: not said, or a number that is not known.
    access: ?Access = null,
    /// Bytes of the file; null: not said.
    size: ?u64 = null,
};

/// `FileOutside`: a version whose file is not in the manifest's directory.
pub const Fault = Xml.Fault || error{
    NotAManifest,
    NoVersions,
    TooManyVersions,
    NoNumber,
    BadNumber,
    NoFile,
    FileOutside,
};

pub const Manifest = @This();

/// In the file's order; their numbers may repeat.
versions: base.BoundedArray(Version, versions_max) = .empty,

/// Elements of a version, without regard to case.
const Field = enum { versionnumber, description, access, diskfilename, size };

const Parser = struct {
    manifest: *Manifest,
    depth: usize = 0,
    is_version: bool = false,
    field: ?Field = null,
    text: [text_size_max]u8 = undefined,
    text_size: usize = 0,
    /// Of the version that is being read.
    number: ?u32 = null,
    file: Name = .empty,
    description: Description = .empty,
    access: ?Access = null,
    size: ?u64 = null,

    fn open(parser: *Parser, name: []const u8) Fault!void {
        parser.depth += 1;
        switch (parser.depth) {
            1 => if (!std.ascii.eqlIgnoreCase(name, "versionManifest")) return error.NotAManifest,
            2 => {
                parser.is_version = std.ascii.eqlIgnoreCase(name, "version");
                const manifest = parser.manifest;
                if (parser.is_version)
                    parser.* = .{ .manifest = manifest, .depth = 2, .is_version = true };
            },
            3 => {
                parser.field = if (parser.is_version) fieldOf(name) else null;
                parser.text_size = 0;
            },
            else => {},
        }
    }

    fn takeText(parser: *Parser, text: Xml.Text) Fault!void {
        if (parser.depth != 3 or parser.field == null) return;
        parser.text_size += try text.write(parser.text[parser.text_size..]);
    }

    fn close(parser: *Parser) Fault!void {
        if (parser.depth == 3) if (parser.field) |field| {
            const text = std.mem.trim(u8, parser.text[0..parser.text_size], " \t\r\n");
            try parser.takeField(field, text);
            parser.field = null;
        };
        if (parser.depth == 2 and parser.is_version) try parser.takeVersion();
        parser.depth -= 1;
    }

    fn takeField(parser: *Parser, field: Field, text: []const u8) Fault!void {
        switch (field) {
            .versionnumber => parser.number =
                std.fmt.parseInt(u31, text, 10) catch return error.BadNumber,
            .description => parser.description = describe(text),
            .access => {
                const number = std.fmt.parseInt(u8, text, 10) catch return;
                parser.access = std.enums.fromInt(Access, number);
            },
            .diskfilename => {
                if (!file_name.isPlain(text))
                    return if (text.len == 0) error.NoFile else error.FileOutside;
                parser.file = Name.fromSlice(text) catch unreachable;
            },
            // Empty where the file was not there at the export.
            .size => if (text.len > 0) {
                parser.size = std.fmt.parseInt(u63, text, 10) catch return error.BadNumber;
            },
        }
    }

    fn takeVersion(parser: *Parser) Fault!void {
        const number = parser.number orelse return error.NoNumber;
        if (parser.file.count == 0) return error.NoFile;
        parser.manifest.versions.append(.{
            .number = number,
            .file = parser.file,
            .description = parser.description,
            .access = parser.access,
            .size = parser.size,
        }) catch return error.TooManyVersions;
    }
};

fn fieldOf(name: []const u8) ?Field {
    var lower: [16]u8 = undefined;
    if (name.len > lower.len) return null;
    return std.meta.stringToEnum(Field, std.ascii.lowerString(&lower, name));
}

/// One line, cut at a character if it is too long.
pub fn describe(text: []const u8) Description {
    var size = @min(text.len, description_size_max);
    // The first byte left out must begin a character.
    while (size > 0 and size < text.len and text[size] & 0xc0 == 0x80) size -= 1;
    var description = Description.fromSlice(text[0..size]) catch unreachable;
    for (description.slice()) |*char| {
        if (std.ascii.isControl(char.*)) char.* = ' ';
    }
    return description;
}

/// After a fault, `manifest.versions` has those before the one that has it.
pub fn parse(manifest: *Manifest, bytes: []const u8) Fault!void {
    manifest.versions = .empty;
    var xml: Xml = try .init(bytes);
    var parser: Parser = .{ .manifest = manifest };
    while (try xml.next()) |event| switch (event) {
        .open => |name| try parser.open(name),
        .text => |text| try parser.takeText(text),
        .close => try parser.close(),
    };
    if (manifest.versions.count == 0) return error.NoVersions;
}

/// Describes a fault as the end of a sentence that starts with the name of the file.
pub fn sentence(fault: Fault) []const u8 {
    return switch (fault) {
        error.NotAManifest => "is not a manifest of Citrix Provisioning: it has no versionManifest",
        error.NoVersions => "names no version",
        error.TooManyVersions => "names more than 256 versions. Merge some of them first",
        error.NoNumber => "has a version without versionNumber",
        error.BadNumber => "has a version with a number that is none",
        error.NoFile => "has a version without diskFileName",
        error.FileOutside => "names a file outside of its directory: diskFileName has to be a " ++
            "name without a path",
        else => |other| Xml.sentence(other),
    };
}

const testing = std.testing;

pub const example =
    \\<?xml version="1.0" encoding="utf-8"?>
    \\<versionManifest>
    \\  <startingVersion>0</startingVersion>
    \\  <version>
    \\    <versionNumber>0</versionNumber><description></description><type>0</type>
    \\    <access>0</access><createDate>2024-05-02 08:11:06</createDate><scheduledDate/>
    \\    <deleteWhenFree>0</deleteWhenFree><diskFileName>lab.vhdx</diskFileName>
    \\    <size>4194304</size><lastWriteTime>2024-05-02T08:20:31</lastWriteTime>
    \\  </version>
    \\  <version>
    \\    <versionNumber>1</versionNumber>
    \\    <description>Office &amp; drivers</description>
    \\    <access>7</access><diskFileName>lab.1.avhdx</diskFileName><size></size>
    \\  </version>
    \\</versionManifest>
;

test "the versions of a manifest have numbers, files and descriptions" {
    const manifest = try testing.allocator.create(Manifest);
    defer testing.allocator.destroy(manifest);
    try manifest.parse(example);
    const versions = manifest.versions.constSlice();
    try testing.expectEqual(2, versions.len);
    try testing.expectEqual(0, versions[0].number);
    try testing.expectEqualStrings("lab.vhdx", versions[0].file.constSlice());
    try testing.expectEqual(.production, versions[0].access.?);
    try testing.expectEqual(4194304, versions[0].size.?);
    try testing.expectEqual(0, versions[0].description.count);
    try testing.expectEqual(1, versions[1].number);
    try testing.expectEqualStrings("Office & drivers", versions[1].description.constSlice());
    try testing.expectEqual(.@"test", versions[1].access.?);
    try testing.expectEqual(null, versions[1].size);
}

test "what no manifest says is refused by name" {
    const manifest = try testing.allocator.create(Manifest);
    defer testing.allocator.destroy(manifest);
    const head = "<versionManifest><version>";
    const tail = "</version></versionManifest>";
    const number = "<versionNumber>1</versionNumber>";
    for ([_]struct { Fault, []const u8 }{
        .{ error.NotAManifest, "<html/>" },
        .{ error.NoVersions, "<versionManifest/>" },
        .{ error.NoNumber, head ++ "<diskFileName>a.vhd</diskFileName>" ++ tail },
        .{ error.NoFile, head ++ number ++ tail },
        .{ error.NoFile, head ++ number ++ "<diskFileName/>" ++ tail },
        .{ error.BadNumber, head ++ "<versionNumber>-1</versionNumber>" ++ tail },
        .{ error.BadNumber, head ++ "<versionNumber></versionNumber>" ++ tail },
        .{ error.BadNumber, head ++ "<size>x</size>" ++ tail },
        .{ error.FileOutside, head ++ number ++ "<diskFileName>../a.vhd</diskFileName>" ++ tail },
        .{ error.FileOutside, head ++ "<diskFileName>C:\\a.vhd</diskFileName>" ++ tail },
        .{ error.Truncated, head },
    }) |case| try testing.expectError(case[0], manifest.parse(case[1]));
    const long: [text_size_max + 1]u8 = @splat('a');
    try testing.expectError(
        error.TooLong,
        manifest.parse(head ++ "<description>" ++ &long ++ "</description>" ++ tail),
    );
    const one = "<version>" ++ number ++ "<diskFileName>a.vhd</diskFileName></version>";
    var many: std.ArrayList(u8) = .empty;
    defer many.deinit(testing.allocator);
    try many.appendSlice(testing.allocator, "<versionManifest>");
    for (0..versions_max + 1) |_| try many.appendSlice(testing.allocator, one);
    try testing.expectError(error.TooManyVersions, manifest.parse(many.items));
}

test "a description is one line of whole characters" {
    try testing.expectEqualStrings("a b  c", describe("a\tb\r\nc").constSlice());
    var long: [description_size_max + 1]u8 = @splat('a');
    long[description_size_max - 1] = 0xc3;
    long[description_size_max] = 0xa4;
    try testing.expectEqual(description_size_max - 1, describe(&long).count);
}
