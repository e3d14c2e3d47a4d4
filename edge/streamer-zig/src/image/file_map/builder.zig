//! Collects what is known of the bytes of a disk, in any order, and makes a `FileMap` of it. What
//! lies in nothing is filled with the ground of its place: the file system or partition around it.
//! Bounded by the limits of `FileMap`, whatever the image says.

const std = @import("std");
const FileMap = @import("file_map.zig");
const Allocator = std.mem.Allocator;
const Extent = FileMap.Extent;
const Name = FileMap.Name;
const assert = std.debug.assert;

pub const Builder = @This();

gpa: Allocator,
disk_size: u64,
extents: std.ArrayList(Extent) = .empty,
grounds: std.ArrayList(Extent) = .empty,
names: std.ArrayList(Name) = .empty,
texts: std.ArrayList(u8) = .empty,

pub const Error = Allocator.Error || error{
    /// More files, names or extents than a map takes.
    TooLarge,
};

pub fn init(gpa: Allocator, disk_size: u64) Builder {
    assert(disk_size > 0 and disk_size <= FileMap.disk_size_max);
    return .{ .gpa = gpa, .disk_size = disk_size };
}

pub fn deinit(builder: *Builder) void {
    builder.extents.deinit(builder.gpa);
    builder.grounds.deinit(builder.gpa);
    builder.names.deinit(builder.gpa);
    builder.texts.deinit(builder.gpa);
    builder.* = undefined;
}

/// Adds an area, or the root of a file system, whose text is the beginning of its paths.
pub fn addRoot(builder: *Builder, kind: FileMap.Kind, text: []const u8) Error!u32 {
    return builder.append(@intCast(builder.names.items.len), kind, text);
}

pub fn addName(builder: *Builder, parent: u32, kind: FileMap.Kind, text: []const u8) Error!u32 {
    assert(parent < builder.names.items.len);
    return builder.append(parent, kind, text);
}

fn append(builder: *Builder, parent: u32, kind: FileMap.Kind, text: []const u8) Error!u32 {
    if (builder.names.items.len == FileMap.names_max or
        builder.texts.items.len + text.len > FileMap.texts_size_max) return error.TooLarge;
    const index: u32 = @intCast(builder.names.items.len);
    try builder.names.append(builder.gpa, .{
        .parent = parent,
        .at = @intCast(builder.texts.items.len),
        .size = @intCast(text.len),
        .kind = kind,
    });
    errdefer builder.names.items.len -= 1;
    try builder.texts.appendSlice(builder.gpa, text);
    return index;
}

/// These bytes are `name`'s; what lies beyond the disk is left out.
pub fn add(builder: *Builder, first: u64, size: u64, name: u32) Error!void {
    assert(name < builder.names.items.len);
    if (first >= builder.disk_size or size == 0) return;
    const end = @min(first +| size, builder.disk_size);
    if (builder.extents.items.len > 0) {
        const last = &builder.extents.items[builder.extents.items.len - 1];
        if (last.name == name and last.end() == first) {
            last.size += @intCast(end - first);
            return;
        }
    }
    if (builder.extents.items.len == FileMap.extents_max) return error.TooLarge;
    try builder.extents.append(builder.gpa, .{
        .first = @intCast(first),
        .size = @intCast(end - first),
        .name = name,
    });
}

/// What is in nothing else, in these bytes. Of several the one that was added last counts.
pub fn addGround(builder: *Builder, first: u64, size: u64, name: u32) Error!void {
    if (first >= builder.disk_size or size == 0) return;
    try builder.grounds.append(builder.gpa, .{
        .first = @intCast(first),
        .size = @intCast(@min(size, builder.disk_size - first)),
        .name = name,
    });
}

/// Where several files claim the same bytes, which only a damaged file system has, the one that
/// begins first has them. The builder is empty afterwards.
pub fn finish(builder: *Builder, outside: u32) Error!FileMap {
    const items = builder.extents.items;
    std.sort.heap(Extent, items, {}, isBefore);
    var whole: std.ArrayList(Extent) = .empty;
    errdefer whole.deinit(builder.gpa);
    var at: u64 = 0;
    for (items) |extent| {
        if (extent.end() <= at) continue;
        if (extent.first > at) try builder.fill(&whole, at, extent.first, outside);
        const first = @max(at, extent.first);
        try builder.put(&whole, first, extent.end(), extent.name);
        at = extent.end();
    }
    if (at < builder.disk_size) try builder.fill(&whole, at, builder.disk_size, outside);
    const extents = try whole.toOwnedSlice(builder.gpa);
    errdefer builder.gpa.free(extents);
    const names = try builder.names.toOwnedSlice(builder.gpa);
    errdefer builder.gpa.free(names);
    const map: FileMap = .{
        .disk_size = builder.disk_size,
        .extents = extents,
        .names = names,
        .texts = try builder.texts.toOwnedSlice(builder.gpa),
    };
    assert(map.isWhole());
    return map;
}

fn isBefore(_: void, a: Extent, b: Extent) bool {
    return if (a.first == b.first) a.name < b.name else a.first < b.first;
}

/// Fills a gap with its grounds. There are as many as partitions and volumes: few.
fn fill(
    builder: *Builder,
    whole: *std.ArrayList(Extent),
    first: u64,
    end: u64,
    outside: u32,
) Error!void {
    var at = first;
    while (at < end) {
        var name = outside;
        var until = end;
        for (builder.grounds.items) |ground| {
            if (ground.first <= at and at < ground.end()) {
                name = ground.name;
                until = @min(end, ground.end());
            }
        }
        // Another ground may begin before this one ends.
        for (builder.grounds.items) |ground| if (ground.first > at and ground.first < until) {
            until = ground.first;
        };
        try builder.put(whole, at, until, name);
        at = until;
    }
}

fn put(
    builder: *Builder,
    whole: *std.ArrayList(Extent),
    first: u64,
    end: u64,
    name: u32,
) Error!void {
    assert(end > first);
    if (whole.items.len > 0) {
        const last = &whole.items[whole.items.len - 1];
        assert(last.end() == first);
        if (last.name == name) {
            last.size += @intCast(end - first);
            return;
        }
    }
    if (whole.items.len == FileMap.extents_max) return error.TooLarge;
    try whole.append(builder.gpa, .{
        .first = @intCast(first),
        .size = @intCast(end - first),
        .name = name,
    });
}

const testing = std.testing;

test "gaps are filled with the ground of their place, neighbours are one, and nothing overlaps" {
    var builder: Builder = .init(testing.allocator, 1000);
    defer builder.deinit();
    const outside = try builder.addRoot(.unmapped, "outside");
    const free = try builder.addRoot(.free, "free");
    const inner = try builder.addRoot(.free, "inner");
    const root = try builder.addRoot(.directory, "");
    const a = try builder.addName(root, .file, "a");
    const b = try builder.addName(root, .file, "b");
    try builder.addGround(100, 700, free);
    try builder.addGround(300, 100, inner);
    try builder.add(200, 20, b);
    try builder.add(150, 30, a);
    try builder.add(180, 20, a);
    // Another file claims a part of it.
    try builder.add(190, 20, b);
    try builder.add(990, 500, b);
    try builder.add(1000, 1, b);
    var map = try builder.finish(outside);
    defer map.deinit(testing.allocator);
    try testing.expect(map.isWhole());
    const wanted = [_]Extent{
        .{ .first = 0, .size = 100, .name = outside },
        .{ .first = 100, .size = 50, .name = free },
        .{ .first = 150, .size = 50, .name = a },
        .{ .first = 200, .size = 20, .name = b },
        .{ .first = 220, .size = 80, .name = free },
        .{ .first = 300, .size = 100, .name = inner },
        .{ .first = 400, .size = 400, .name = free },
        .{ .first = 800, .size = 190, .name = outside },
        .{ .first = 990, .size = 10, .name = b },
    };
    try testing.expectEqualSlices(Extent, &wanted, map.extents);
}

test "any extents make a whole map" {
    var prng: std.Random.DefaultPrng = .init(7);
    const random = prng.random();
    for (0..200) |_| {
        const size = random.intRangeAtMost(u64, 1, 300);
        var builder: Builder = .init(testing.allocator, size);
        defer builder.deinit();
        const outside = try builder.addRoot(.unmapped, "");
        for (0..random.uintLessThan(usize, 30)) |_| {
            const name = try builder.addRoot(.file, "x");
            const first = random.uintLessThan(u64, 320);
            const length = random.uintLessThan(u64, 60);
            if (random.boolean()) try builder.add(first, length, name) else //
            try builder.addGround(first, length, name);
        }
        var map = try builder.finish(outside);
        defer map.deinit(testing.allocator);
        try testing.expect(map.isWhole());
    }
}
