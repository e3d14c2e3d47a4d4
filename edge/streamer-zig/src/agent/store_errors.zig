//! The places in versions that this edge could not read for a device: which, since when, and how
//! often. Devices leave for another edge (core/stream/client/store_errors.zig), so that nobody
//! would hear of a damaged block or a dying disk otherwise.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const StoreErrors = @This();

pub const places_max = 16;
/// A place that nobody has asked for since is forgotten: it may have been mended.
const kept_us = 30 * std.time.us_per_min;

places: base.BoundedArray(Place, places_max) = .empty,
/// READs that were answered with an error since the start.
total: u64 = 0,

/// The range of a READ; the damage is somewhere in it.
pub const Place = struct {
    version_id: base.Uuid,
    offset: u64,
    length: u32,
    count: u64 = 1,
    since_unix_ms: u64,
    last_us: u64,

    fn isOf(place: *const Place, version_id: base.Uuid, offset: u64, length: u32) bool {
        return place.version_id.eql(version_id) and
            offset < place.offset + place.length and place.offset < offset + length;
    }
};

/// Returns whether the place is new. If there are too many, one that was silent for longest goes.
pub fn note(errors: *StoreErrors, now_us: u64, place: Place) bool {
    assert(place.length > 0);
    errors.total += 1;
    var oldest: ?*Place = null;
    for (errors.places.slice()) |*known| {
        if (known.isOf(place.version_id, place.offset, place.length)) {
            known.count += 1;
            known.last_us = now_us;
            return false;
        }
        if (oldest == null or known.last_us < oldest.?.last_us) oldest = known;
    }
    errors.places.append(place) catch {
        oldest.?.* = place;
    };
    assert(errors.places.count > 0);
    assert(errors.total >= errors.places.count);
    return true;
}

/// Runs once a second.
pub fn tick(errors: *StoreErrors, now_us: u64) void {
    var kept: base.BoundedArray(Place, places_max) = .empty;
    for (errors.places.constSlice()) |place|
        if (now_us -| place.last_us < kept_us) kept.appendAssumeCapacity(place);
    assert(kept.count <= errors.places.count);
    errors.places = kept;
}

const testing = std.testing;

fn placeOf(number: u8, offset: u64, at_us: u64) Place {
    return .{
        .version_id = .fromRandom(@splat(number)),
        .offset = offset,
        .length = 8192,
        .since_unix_ms = 7,
        .last_us = at_us,
    };
}

test "reads that overlap are one place, and a place is forgotten half an hour after its last error" {
    var errors: StoreErrors = .{};
    try testing.expect(errors.note(5, placeOf(1, 4096, 5)));
    for ([_]u64{ 0, 4096, 8192 }) |offset|
        try testing.expect(!errors.note(9, placeOf(1, offset, 9)));
    try testing.expect(errors.note(9, placeOf(1, 12288, 9)));
    try testing.expect(errors.note(9, placeOf(2, 4096, 9)));
    try testing.expectEqual(6, errors.total);
    try testing.expectEqual(4, errors.places.constSlice()[0].count);
    try testing.expect(!errors.note(1000, placeOf(2, 4096, 1000)));
    errors.tick(9 + kept_us - 1);
    try testing.expectEqual(3, errors.places.count);
    errors.tick(9 + kept_us);
    try testing.expectEqual(1, errors.places.count);
    errors.tick(1000 + kept_us);
    try testing.expectEqual(0, errors.places.count);
}

test "of more places than fit, the one that was silent for longest goes" {
    var errors: StoreErrors = .{};
    for (0..places_max) |index| _ = errors.note(index, placeOf(1, index << 20, index));
    _ = errors.note(100, placeOf(1, 0, 100));
    try testing.expect(errors.note(101, placeOf(9, 0, 101)));
    try testing.expectEqual(places_max, errors.places.count);
    try testing.expect(!errors.note(102, placeOf(1, 0, 102)));
    try testing.expect(errors.note(103, placeOf(1, 1 << 20, 103)));
}
