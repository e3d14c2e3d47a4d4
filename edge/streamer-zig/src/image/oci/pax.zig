//! Records of extended headers: "27 mtime=1700000000.123456\n", each with its own length (pax(1)).

const std = @import("std");
const Fault = @import("fault.zig").Fault;
const FileTree = @import("../ext4/file_tree.zig");
const Allocator = std.mem.Allocator;

const numbers = @import("numbers.zig");
const xattrs_max = 64;
const xattr_prefix = "SCHILY.xattr.";

pub const Time = struct { seconds: i64, nanoseconds: u32 };

/// The records that matter; texts point into the header.
pub const Records = struct {
    path: ?[]const u8 = null,
    link_path: ?[]const u8 = null,
    size: ?u64 = null,
    uid: ?u32 = null,
    gid: ?u32 = null,
    mtime: ?Time = null,
    xattrs: std.ArrayList(FileTree.Xattr) = .empty,
    /// Lists of access rights as texts, which tar writes with `--acls`.
    access_rights: ?[]const u8 = null,
    default_rights: ?[]const u8 = null,
    sparse_name: ?[]const u8 = null,
    sparse_size: ?u64 = null,
    sparse_major: u32 = 0,
    /// Of the maps 0.0 and 0.1.
    sparse_map: std.ArrayList(FileTree.Segment) = .empty,
    sparse_offset: ?u64 = null,
};

pub fn parse(arena: Allocator, text: []const u8, into: *Records) Fault!void {
    var rest = text;
    while (rest.len > 0) {
        const space = std.mem.findScalar(u8, rest[0..@min(rest.len, 20)], ' ') orelse
            return error.RecordInvalid;
        const size = std.fmt.parseInt(usize, rest[0..space], 10) catch return error.RecordInvalid;
        if (size > rest.len or size < space + 3 or rest[size - 1] != '\n')
            return error.RecordInvalid;
        const record = rest[space + 1 .. size - 1];
        const equals = std.mem.findScalar(u8, record, '=') orelse return error.RecordInvalid;
        try take(arena, record[0..equals], record[equals + 1 ..], into);
        rest = rest[size..];
    }
}

fn take(arena: Allocator, key: []const u8, value: []const u8, into: *Records) Fault!void {
    if (std.mem.cutPrefix(u8, key, xattr_prefix)) |name| {
        if (into.xattrs.items.len == xattrs_max) return error.XattrsTooLarge;
        return into.xattrs.append(arena, .{ .name = try decoded(arena, name), .value = value });
    }
    const Key = enum {
        path,
        linkpath,
        size,
        uid,
        gid,
        mtime,
        @"SCHILY.acl.access",
        @"SCHILY.acl.default",
        @"GNU.sparse.name",
        @"GNU.sparse.realsize",
        @"GNU.sparse.size",
        @"GNU.sparse.major",
        @"GNU.sparse.map",
        @"GNU.sparse.offset",
        @"GNU.sparse.numbytes",
    };
    switch (std.meta.stringToEnum(Key, key) orelse return) {
        .path => into.path = try checked(value),
        .linkpath => into.link_path = try checked(value),
        .size => into.size = try numbers.decimal(u64, value),
        .uid => into.uid = try numbers.decimal(u32, value),
        .gid => into.gid = try numbers.decimal(u32, value),
        .mtime => into.mtime = try timeOf(value),
        .@"SCHILY.acl.access" => into.access_rights = value,
        .@"SCHILY.acl.default" => into.default_rights = value,
        .@"GNU.sparse.name" => into.sparse_name = try checked(value),
        .@"GNU.sparse.realsize", .@"GNU.sparse.size" => {
            into.sparse_size = try numbers.decimal(u64, value);
        },
        .@"GNU.sparse.major" => into.sparse_major = try numbers.decimal(u32, value),
        .@"GNU.sparse.map" => {
            var texts = std.mem.splitScalar(u8, value, ',');
            if (value.len > 0) while (texts.next()) |offset| {
                const size = texts.next() orelse return error.SparseMapInvalid;
                const begin = try numbers.decimal(u64, offset);
                try addSegment(arena, into, begin, try numbers.decimal(u64, size));
            };
        },
        .@"GNU.sparse.offset" => into.sparse_offset = try numbers.decimal(u64, value),
        .@"GNU.sparse.numbytes" => {
            const offset = into.sparse_offset orelse return error.SparseMapInvalid;
            into.sparse_offset = null;
            try addSegment(arena, into, offset, try numbers.decimal(u64, value));
        },
    }
}

/// GNU tar writes these two characters of a name as others do in addresses.
fn decoded(arena: Allocator, name: []const u8) Fault![]const u8 {
    if (std.mem.findScalar(u8, name, '%') == null) return name;
    const bytes = try arena.dupe(u8, name);
    var size: usize = 0;
    var at: usize = 0;
    while (at < name.len) : (size += 1) {
        const rest = name[at..];
        const is_equals = std.mem.startsWith(u8, rest, "%3D");
        const is_coded = is_equals or std.mem.startsWith(u8, rest, "%25");
        bytes[size] = if (is_equals) '=' else if (is_coded) '%' else rest[0];
        at += if (is_coded) 3 else 1;
    }
    return bytes[0..size];
}

fn addSegment(arena: Allocator, into: *Records, offset: u64, size: u64) Fault!void {
    if (into.sparse_map.items.len == numbers.segments_max) return error.SparseMapInvalid;
    try into.sparse_map.append(arena, .{ .offset = offset, .size = size });
}

fn checked(path: []const u8) Fault![]const u8 {
    return if (std.mem.findScalar(u8, path, 0) == null) path else error.PathInvalid;
}

/// Seconds, maybe negative, maybe with a fraction.
fn timeOf(text: []const u8) Fault!Time {
    const dot = std.mem.findScalar(u8, text, '.') orelse text.len;
    var seconds = std.fmt.parseInt(i64, text[0..dot], 10) catch return error.NumberInvalid;
    var nanoseconds: u32 = 0;
    var unit: u32 = 100_000_000;
    for (text[@min(dot + 1, text.len)..]) |byte| {
        if (!std.ascii.isDigit(byte)) return error.NumberInvalid;
        nanoseconds += (byte - '0') * unit;
        unit /= 10;
    }
    if (text.len > 0 and text[0] == '-' and nanoseconds > 0) {
        seconds = std.math.sub(i64, seconds, 1) catch return error.NumberInvalid;
        nanoseconds = 1_000_000_000 - nanoseconds;
    }
    return .{ .seconds = seconds, .nanoseconds = nanoseconds };
}

const testing = std.testing;

test "records are read, and damaged ones are refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var found: Records = .{};
    try parse(arena.allocator(), "12 path=a/b\n15 mtime=-1.25\n25 SCHILY.xattr.user.a=b\n", &found);
    try parse(arena.allocator(), "34 SCHILY.xattr.user.%3Da%%253D=b\n", &found);
    try testing.expectEqualStrings("user.=a%%3D", found.xattrs.items[1].name);
    try testing.expectEqualStrings("a/b", found.path.?);
    try testing.expectEqual(Time{ .seconds = -2, .nanoseconds = 750_000_000 }, found.mtime.?);
    try testing.expectEqualStrings("user.a", found.xattrs.items[0].name);
    try testing.expectEqualStrings("b", found.xattrs.items[0].value);
    const damaged =
        [_][]const u8{ "x", "8 path=a\n", "11 path=a/b\n", "13 path=a/b\n", "7 path\n", "3 =" };
    for (damaged) |text|
        try testing.expectError(error.RecordInvalid, parse(arena.allocator(), text, &found));
    try testing.expectError(error.NumberInvalid, parse(arena.allocator(), "10 size=-\n", &found));
}
