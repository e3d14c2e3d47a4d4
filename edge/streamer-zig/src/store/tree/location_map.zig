//! Counts references to each location of the store's files: none, one, or more. Uses two bits a
//! location, and memory only for the parts of files that are in use.
//!
//! Blocks of packed units are counted apart from whole blocks: by the sector of their unit and
//! their index, which no other block has, since a unit takes a sector for each.

const std = @import("std");
const block = @import("../block.zig");

const Location = block.Location;

/// Locations in one part of the map: 128 MiB of blocks, or 16 MiB of units.
const part_blocks = 1 << 15;
const Bits = std.bit_set.Static(part_blocks);
const Part = struct { once: Bits = .empty, more: Bits = .empty };

pub const Use = enum { none, once, more };

pub const LocationMap = @This();

gpa: std.mem.Allocator,
parts: std.AutoHashMapUnmanaged(u64, *Part) = .empty,

pub fn init(gpa: std.mem.Allocator) LocationMap {
    return .{ .gpa = gpa };
}

pub fn deinit(map: *LocationMap) void {
    var values = map.parts.valueIterator();
    while (values.next()) |part| map.gpa.destroy(part.*);
    map.parts.deinit(map.gpa);
    map.* = undefined;
}

pub fn useOf(map: *const LocationMap, location: Location) Use {
    const part = map.parts.get(keyOf(location)) orelse return .none;
    const at = bitOf(location);
    if (part.more.isSet(at)) return .more;
    return if (part.once.isSet(at)) .once else .none;
}

/// Adds one reference and returns the use before.
pub fn add(map: *LocationMap, location: Location) error{OutOfMemory}!Use {
    const found = try map.parts.getOrPut(map.gpa, keyOf(location));
    if (!found.found_existing) {
        errdefer _ = map.parts.remove(keyOf(location));
        found.value_ptr.* = try map.gpa.create(Part);
        found.value_ptr.*.* = .{};
    }
    const part = found.value_ptr.*;
    const at = bitOf(location);
    if (!part.once.isSet(at)) {
        part.once.set(at);
        return .none;
    }
    const before: Use = if (part.more.isSet(at)) .more else .once;
    part.more.set(at);
    return before;
}

/// Bytes of memory in use.
pub fn memorySize(map: *const LocationMap) u64 {
    return @as(u64, map.parts.count()) * @sizeOf(Part) + map.parts.capacity() * 17;
}

fn keyOf(location: Location) u64 {
    return @bitCast(Location{
        .file = location.file,
        .block = numberOf(location) / part_blocks,
        .is_packed = location.is_packed,
    });
}

fn bitOf(location: Location) usize {
    return @intCast(numberOf(location) % part_blocks);
}

fn numberOf(location: Location) u40 {
    if (!location.is_packed) return location.block;
    const place = location.place();
    return @as(u40, place.sector) + place.index;
}

const testing = std.testing;

test "a location is unused, used once, or used more often" {
    var map: LocationMap = .init(testing.allocator);
    defer map.deinit();
    const place: Location = .{ .file = 3, .block = 1 << 33 };
    try testing.expectEqual(.none, map.useOf(place));
    try testing.expectEqual(.none, try map.add(place));
    try testing.expectEqual(.once, map.useOf(place));
    try testing.expectEqual(.once, try map.add(place));
    try testing.expectEqual(.more, try map.add(place));
    try testing.expectEqual(.more, map.useOf(place));
    try testing.expectEqual(.none, map.useOf(place.plus(1)));
    try testing.expectEqual(.none, map.useOf(.{ .file = 4, .block = 1 << 33 }));
}

test "a packed block is counted apart from other blocks, and from those of its unit" {
    var map: LocationMap = .init(testing.allocator);
    defer map.deinit();
    const place: Location.Place = .{ .index = 2, .last = 3, .last_sector = 5, .sector = 40_000 };
    var location: Location = .{ .file = 3, .block = @bitCast(place), .is_packed = true };
    try testing.expectEqual(.none, try map.add(location));
    try testing.expectEqual(.none, map.useOf(location.unit()));
    try testing.expectEqual(.none, map.useOf(.{ .file = 3, .block = 40_002 }));
    try testing.expectEqual(.once, try map.add(location));
    try testing.expectEqual(.more, map.useOf(location));
    location.file = 4;
    try testing.expectEqual(.none, map.useOf(location));
}
