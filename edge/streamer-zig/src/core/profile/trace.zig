//! The disk reads of one boot as its edge saw them: units in the order of their first demand, each
//! with its wanted blocks. Bounded: if a boot reads more, its beginning is kept. Read-ahead counts
//! only when the device reports that its system used it: a profile must not keep itself alive.

const std = @import("std");
const profile = @import("wire").stream.profile;
const assert = std.debug.assert;

pub const Trace = @This();

pub const Unit = profile.Unit;

units: [profile.units_max]Unit = undefined,
count: u16 = 0,
/// Slot in `units` by the unit's index, open addressing; `none` is free.
places: [places_count]u16 = @splat(none),
/// Bytes that the edge sent ahead of demand, and those of them that the system used.
ahead_bytes: u64 = 0,
used_bytes: u64 = 0,

const places_count = 16384;
const none = std.math.maxInt(u16);

comptime {
    assert(places_count >= 2 * profile.units_max);
}

pub fn clear(trace: *Trace) void {
    trace.count = 0;
    trace.places = @splat(none);
    trace.ahead_bytes = 0;
    trace.used_bytes = 0;
}

/// The system demanded these bytes.
pub fn demand(trace: *Trace, offset: u64, length: u32) void {
    assert(length > 0);
    var units: profile.UnitIterator = .init(offset, length);
    while (units.next()) |unit| trace.add(unit);
}

/// The system used these blocks of the read-ahead.
pub fn used(trace: *Trace, unit: Unit) void {
    trace.used_bytes += @as(u64, @popCount(unit.blocks)) * profile.block_size;
    trace.add(unit);
}

pub fn slice(trace: *const Trace) []const Unit {
    return trace.units[0..trace.count];
}

fn add(trace: *Trace, unit: Unit) void {
    var at = homeOf(unit.index);
    while (trace.places[at] != none) : (at = (at + 1) % places_count) {
        const known = &trace.units[trace.places[at]];
        if (known.index != unit.index) continue;
        known.blocks |= unit.blocks;
        return;
    }
    if (trace.count == trace.units.len) return;
    trace.places[at] = trace.count;
    trace.units[trace.count] = unit;
    trace.count += 1;
    assert(trace.count <= trace.units.len);
}

fn homeOf(index: u40) usize {
    // Fibonacci hashing: consecutive units lie apart.
    return @intCast((@as(u64, index) *% 0x9e37_79b9_7f4a_7c15) >> 50);
}

const testing = std.testing;

test "units are kept in the order of their first demand, with all demanded blocks" {
    var trace: Trace = .{};
    trace.demand(5 * profile.unit_size, 4096);
    trace.demand(profile.unit_size - 4096, 8192);
    trace.used(.{ .index = 5, .blocks = 0x80 });
    trace.demand(5 * profile.unit_size, 512);
    try testing.expectEqualSlices(Unit, &.{
        .{ .index = 5, .blocks = 0x81 },
        .{ .index = 0, .blocks = 0x80 },
        .{ .index = 1, .blocks = 0x01 },
    }, trace.slice());
    try testing.expectEqual(4096, trace.used_bytes);
    trace.clear();
    try testing.expectEqual(0, trace.slice().len);
    trace.demand(0, 512);
    try testing.expectEqual(1, trace.slice().len);
}

test "of a boot that reads everything the beginning is kept" {
    const trace = try testing.allocator.create(Trace);
    defer testing.allocator.destroy(trace);
    trace.* = .{};
    for (0..profile.units_max + 100) |index| trace.demand(index * profile.unit_size, 128 << 10);
    try testing.expectEqual(profile.units_max, trace.slice().len);
    for (trace.slice(), 0..) |unit, index|
        try testing.expectEqual(Unit{ .index = @intCast(index), .blocks = 0xff }, unit);
}
