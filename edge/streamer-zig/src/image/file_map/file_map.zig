//! Which file holds which bytes of a disk: extents in the order of the disk, without gaps or
//! overlaps, each with a name. Names are a tree of files below the roots of file systems, and areas
//! that are no file: tables, journals, free space. Made by `builder.zig`.

const std = @import("std");
const builtin = @import("builtin");
const Allocator = std.mem.Allocator;
const assert = std.debug.assert;

pub const FileMap = @This();

/// Bytes.
disk_size: u64,
extents: []const Extent,
names: []const Name,
/// What `Name.at` refers to.
texts: []const u8,

pub const Kind = enum(u8) {
    file,
    directory,
    link,
    /// A table or journal of a file system, or of the disk.
    area,
    /// In a mapped file system, and in no file.
    free,
    /// Nobody knows what is there.
    unmapped,

    /// Whether a read of it is one of something with a name.
    pub fn isNamed(kind: Kind) bool {
        return kind != .free and kind != .unmapped;
    }
};

/// Bytes of the disk.
pub const Extent = packed struct(u128) {
    first: u48,
    size: u48,
    name: u32,

    pub fn end(extent: Extent) u64 {
        return @as(u64, extent.first) + extent.size;
    }
};

pub const Name = extern struct {
    /// A lower index; its own: a root, whose text is whole.
    parent: u32,
    at: u32,
    size: u16,
    kind: Kind,
    zero: u8 = 0,
};

/// 128 TiB.
pub const disk_size_max = 1 << 47;
pub const extents_max = 4 << 20;
pub const names_max = 1 << 20;
pub const texts_size_max = 64 << 20;

comptime {
    assert(builtin.cpu.arch.endian() == .little);
    assert(@sizeOf(Extent) == 16);
    assert(@sizeOf(Name) == 12);
}

pub fn deinit(map: *FileMap, gpa: Allocator) void {
    gpa.free(map.extents);
    gpa.free(map.names);
    gpa.free(map.texts);
    map.* = undefined;
}

/// A part of a range that lies in one extent.
pub const Part = struct { first: u64, size: u64, name: u32 };

/// Iterates over the parts of a range; what is beyond the end of the disk is left out.
pub fn partsOf(map: *const FileMap, first: u64, size: u64) Parts {
    return .{ .map = map, .at = first, .end = @min(first +| size, map.disk_size) };
}

pub const Parts = struct {
    map: *const FileMap,
    at: u64,
    end: u64,

    pub fn next(parts: *Parts) ?Part {
        if (parts.at >= parts.end) return null;
        const extent = parts.map.extents[parts.map.indexAt(parts.at)];
        assert(extent.first <= parts.at and parts.at < extent.end());
        const size = @min(extent.end(), parts.end) - parts.at;
        defer parts.at += size;
        return .{ .first = parts.at, .size = size, .name = extent.name };
    }
};

fn indexAt(map: *const FileMap, at: u64) usize {
    var low: usize = 0;
    var high = map.extents.len;
    while (high - low > 1) {
        const middle = low + (high - low) / 2;
        if (map.extents[middle].first <= at) low = middle else high = middle;
    }
    return low;
}

/// Longest path that `path` gives.
pub const path_size_max = 1024;

/// Returns the path of a file or directory, or the words for an area. Printable ASCII: the image
/// chose it. Of a path that is too long for `buffer`, the end is kept.
pub fn path(map: *const FileMap, index: u32, buffer: []u8) []const u8 {
    assert(buffer.len > dots.len);
    var end: Backwards = .{ .buffer = buffer, .at = buffer.len };
    var at = index;
    if (map.names[index].kind == .directory) end.put("/");
    while (true) {
        const name = map.names[at];
        const text = map.texts[name.at..][0..name.size];
        end.put(text);
        if (name.parent == at) break;
        end.put("/");
        at = name.parent;
    }
    if (end.is_full) @memcpy(buffer[0..dots.len], dots);
    const written = buffer[end.at..];
    for (written) |*byte| if (!std.ascii.isPrint(byte.*)) {
        byte.* = '?';
    };
    return written;
}

const dots = "...";

const Backwards = struct {
    buffer: []u8,
    at: usize,
    is_full: bool = false,

    fn put(end: *Backwards, text: []const u8) void {
        const size = @min(text.len, end.at);
        if (size < text.len) end.is_full = true;
        end.at -= size;
        @memcpy(end.buffer[end.at..][0..size], text[text.len - size ..]);
    }
};

const magic = "BFFILES1";
const head_size = 64;
pub const Root = [32]u8;

/// Writes the map of a version with this root hash: a head (magic, root hash, disk size, counts,
/// XXH64 of what follows), extents, names and texts, little-endian. The caller frees it.
pub fn encode(map: *const FileMap, gpa: Allocator, root: *const Root) Allocator.Error![]u8 {
    const parts = [_][]const u8{
        std.mem.sliceAsBytes(map.extents),
        std.mem.sliceAsBytes(map.names),
        map.texts,
    };
    var size: usize = head_size;
    for (parts) |part| size += part.len;
    const bytes = try gpa.alloc(u8, size);
    var at: usize = head_size;
    for (parts) |part| {
        @memcpy(bytes[at..][0..part.len], part);
        at += part.len;
    }
    const head = bytes[0..head_size];
    head[0..8].* = magic.*;
    head[8..40].* = root.*;
    std.mem.writeInt(u32, head[40..44], @intCast(map.extents.len), .little);
    std.mem.writeInt(u32, head[44..48], @intCast(map.names.len), .little);
    std.mem.writeInt(u64, head[48..56], map.disk_size, .little);
    std.mem.writeInt(u64, head[56..64], std.hash.XxHash64.hash(0, bytes[head_size..]), .little);
    return bytes;
}

pub const DecodeError = Allocator.Error || error{
    /// No map, a damaged one, or one of other bytes.
    NotUsable,
};

/// Reads what `encode` wrote; every number is checked.
pub fn decode(gpa: Allocator, bytes: []const u8, root: *const Root) DecodeError!FileMap {
    if (bytes.len < head_size or !std.mem.startsWith(u8, bytes, magic)) return error.NotUsable;
    if (!std.mem.eql(u8, bytes[8..40], root)) return error.NotUsable;
    const extent_count = std.mem.readInt(u32, bytes[40..44], .little);
    const name_count = std.mem.readInt(u32, bytes[44..48], .little);
    if (extent_count > extents_max or name_count > names_max) return error.NotUsable;
    const fixed = @as(usize, extent_count) * @sizeOf(Extent) +
        @as(usize, name_count) * @sizeOf(Name);
    const rest = bytes[head_size..];
    if (rest.len < fixed or rest.len - fixed > texts_size_max) return error.NotUsable;
    const sum = std.mem.readInt(u64, bytes[56..64], .little);
    if (std.hash.XxHash64.hash(0, rest) != sum) return error.NotUsable;
    var map: FileMap = .{
        .disk_size = std.mem.readInt(u64, bytes[48..56], .little),
        .extents = &.{},
        .names = &.{},
        .texts = &.{},
    };
    errdefer map.deinit(gpa);
    const extents = try gpa.alloc(Extent, extent_count);
    map.extents = extents;
    const extents_size = extents.len * @sizeOf(Extent);
    @memcpy(std.mem.sliceAsBytes(extents), rest[0..extents_size]);
    const names = try gpa.alloc(Name, name_count);
    map.names = names;
    const names_bytes = rest[extents_size..fixed];
    for (0..name_count) |index|
        // A kind that there is not must never become a value of the enum.
        if (names_bytes[index * @sizeOf(Name) + 10] > @backingInt(Kind.unmapped))
            return error.NotUsable;
    @memcpy(std.mem.sliceAsBytes(names), names_bytes);
    map.texts = try gpa.dupe(u8, rest[fixed..]);
    if (!map.isWhole()) return error.NotUsable;
    return map;
}

/// The invariant of a map.
pub fn isWhole(map: *const FileMap) bool {
    if (map.disk_size == 0 or map.disk_size > disk_size_max) return false;
    var at: u64 = 0;
    for (map.extents) |extent| {
        if (extent.first != at or extent.size == 0 or extent.name >= map.names.len) return false;
        at = extent.end();
    }
    if (at != map.disk_size) return false;
    for (map.names, 0..) |name, index| {
        if (name.parent > index) return false;
        if (name.at > map.texts.len or name.size > map.texts.len - name.at) return false;
    }
    return true;
}

const testing = std.testing;

fn testMap() FileMap {
    return .{
        .disk_size = 100,
        .extents = &.{
            .{ .first = 0, .size = 10, .name = 0 },
            .{ .first = 10, .size = 50, .name = 3 },
            .{ .first = 60, .size = 40, .name = 4 },
        },
        .names = &.{
            .{ .parent = 0, .at = 0, .size = 5, .kind = .area },
            .{ .parent = 1, .at = 0, .size = 0, .kind = .directory },
            .{ .parent = 1, .at = 5, .size = 3, .kind = .directory },
            .{ .parent = 2, .at = 8, .size = 2, .kind = .file },
            .{ .parent = 4, .at = 10, .size = 4, .kind = .free },
        },
        .texts = "tableusrls\x1bree",
    };
}

test "a range is split where files end, and its parts are named by their paths" {
    const map = testMap();
    try testing.expect(map.isWhole());
    var parts = map.partsOf(5, 1000);
    var buffer: [64]u8 = undefined;
    for ([_]struct { u64, u64, []const u8 }{
        .{ 5, 5, "table" },
        .{ 10, 50, "/usr/ls" },
        // What a terminal would obey is not printed.
        .{ 60, 40, "?ree" },
    }) |wanted| {
        const part = parts.next().?;
        try testing.expectEqual(wanted[0], part.first);
        try testing.expectEqual(wanted[1], part.size);
        try testing.expectEqualStrings(wanted[2], map.path(part.name, &buffer));
    }
    try testing.expectEqual(null, parts.next());
    var beyond = map.partsOf(100, 1);
    try testing.expectEqual(null, beyond.next());
    try testing.expectEqualStrings("/usr/", map.path(2, &buffer));
    try testing.expectEqualStrings("/", map.path(1, &buffer));
    // Of a long path, the end is kept.
    try testing.expectEqualStrings(".../ls", map.path(3, buffer[0..6]));
}

test "a map is read as it was written, and damage anywhere is found" {
    const map = testMap();
    const root: Root = @splat(7);
    const bytes = try map.encode(testing.allocator, &root);
    defer testing.allocator.free(bytes);
    var read = try decode(testing.allocator, bytes, &root);
    defer read.deinit(testing.allocator);
    try testing.expectEqualDeep(map, read);
    for (0..bytes.len) |index| {
        bytes[index] ^= 1;
        defer bytes[index] ^= 1;
        try testing.expectError(error.NotUsable, decode(testing.allocator, bytes, &root));
    }
    try testing.expectError(
        error.NotUsable,
        decode(testing.allocator, bytes, &@as(Root, @splat(8))),
    );
    for (0..bytes.len) |size|
        try testing.expectError(error.NotUsable, decode(testing.allocator, bytes[0..size], &root));
}

test "a map that cannot have all of its memory takes none" {
    const Decode = struct {
        fn decodeOnce(gpa: Allocator, bytes: []const u8) !void {
            var map = try decode(gpa, bytes, &@as(Root, @splat(7)));
            map.deinit(gpa);
        }
    };
    const bytes = try testMap().encode(testing.allocator, &@as(Root, @splat(7)));
    defer testing.allocator.free(bytes);
    try testing.checkAllAllocationFailures(testing.allocator, Decode.decodeOnce, .{bytes});
}
