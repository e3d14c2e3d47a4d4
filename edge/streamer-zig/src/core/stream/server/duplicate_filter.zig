//! Remembers which of a device's latest requests have arrived. It only keeps counters right: a READ
//! whose first packet was lost is no retransmission. Losing this state does no harm.

const std = @import("std");
const assert = std.debug.assert;
const DuplicateFilter = @This();

pub const size = 64;

newest: u32 = 0,
/// Bit i: request `newest - i` has arrived.
seen: u64 = 0,

/// Records a request; returns true if it has arrived before. Ids may wrap; those far behind the
/// newest count as seen.
pub fn note(window: *DuplicateFilter, request_id: u32) bool {
    const ahead: i32 = @bitCast(request_id -% window.newest);
    if (window.seen == 0 or ahead > 0) {
        const is_afresh = window.seen == 0 or ahead >= size;
        window.seen = if (is_afresh) 1 else window.seen << @intCast(ahead) | 1;
        window.newest = request_id;
        return false;
    }
    assert(window.seen != 0);
    const behind = window.newest -% request_id;
    if (behind >= size) return true;
    const bit = @as(u64, 1) << @intCast(behind);
    defer window.seen |= bit;
    return window.seen & bit != 0;
}

test "each request is new once, in any order, and across the wrap of its id" {
    var window: DuplicateFilter = .{};
    const ids = [_]u32{ 7, 9, 8, std.math.maxInt(u32), 0, 2, 1, 70 };
    // From 9 to the largest id is a step back by ten.
    const seen = [_]bool{ false, false, false, false, false, false, false, false };
    for (ids, seen) |id, expected| try std.testing.expectEqual(expected, window.note(id));
    try std.testing.expect(window.note(70));
    try std.testing.expect(window.note(1));
    try std.testing.expect(!window.note(71));
    var wrapping: DuplicateFilter = .{};
    try std.testing.expect(!wrapping.note(std.math.maxInt(u32)));
    try std.testing.expect(!wrapping.note(0));
    try std.testing.expect(wrapping.note(std.math.maxInt(u32)));
}

test "the filter agrees with a list of what has arrived, near the newest" {
    var window: DuplicateFilter = .{};
    var prng: std.Random.DefaultPrng = .init(3);
    var arrived: [600]bool = @splat(false);
    var newest: u32 = 100;
    _ = window.note(newest);
    arrived[newest] = true;
    for (0..2000) |_| {
        const step = prng.random().uintLessThan(u32, 80);
        const id = if (prng.random().boolean()) newest - step else newest + step % 3;
        if (id >= arrived.len) break;
        const is_far = id < newest and newest - id >= size;
        try std.testing.expectEqual(arrived[id] or is_far, window.note(id));
        if (!is_far) arrived[id] = true;
        newest = @max(newest, id);
    }
}

test "a request that is far ahead leaves only those in mind that are near it" {
    for ([_]u32{ size - 1, size, size + 1 }) |ahead| {
        var window: DuplicateFilter = .{};
        try std.testing.expect(!window.note(100));
        try std.testing.expect(!window.note(100 + ahead));
        // Seen, or too far behind to be told.
        try std.testing.expect(window.note(100));
        try std.testing.expect(!window.note(101 + ahead - size + 1));
    }
}
