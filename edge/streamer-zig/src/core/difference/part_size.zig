//! How many bytes of a piece an edge asks the control plane for at once. The line is idle from the
//! end of one part until the next one comes, so that a quick line needs large parts; a slow one
//! needs small parts, which come before the time-out of a request, and lose little to a cut. Pure.

const std = @import("std");
const Pieces = @import("pieces.zig");
const assert = std.debug.assert;

pub const PartSize = @This();

/// The first one, which comes over a slow line in time.
pub const size_min = 512 << 10;
pub const size_max = Pieces.piece_size;
/// Twice as many bytes come in time, too, if the line becomes several times slower.
const quick_ms = 2_000;
const slow_ms = 8_000;

size: u32 = size_min,

/// A part came whole, within this time.
pub fn onCame(part: *PartSize, duration_ms: u64) void {
    if (duration_ms <= quick_ms) part.size = @min(part.size * 2, size_max);
    if (duration_ms >= slow_ms) part.size = @max(part.size / 2, size_min);
    assert(part.size >= size_min and part.size <= size_max);
}

/// A part did not come, or not in time.
pub fn onLost(part: *PartSize) void {
    part.size = size_min;
}

/// `bytes_per_s`: the limit of the job, null if it has none. A part is no more than what the limit
/// allows in a second, so that other users of the line do not wait for long.
pub fn next(part: *const PartSize, bytes_per_s: ?u64) u32 {
    const rate = bytes_per_s orelse return part.size;
    return @intCast(@max(@min(part.size, rate), size_min));
}

const testing = std.testing;

test "parts grow to a whole piece on a quick line, shrink on a slow one, and begin again after a loss" {
    var part: PartSize = .{};
    var sum: u64 = 0;
    for (0..3) |_| {
        sum += part.next(null);
        part.onCame(quick_ms);
    }
    try testing.expectEqual(7 * size_min, sum);
    try testing.expectEqual(size_max, part.next(null));
    part.onCame(0);
    try testing.expectEqual(size_max, part.next(null));
    part.onCame(quick_ms + 1);
    try testing.expectEqual(size_max, part.next(null));
    part.onCame(slow_ms);
    try testing.expectEqual(size_max / 2, part.next(null));
    part.onLost();
    try testing.expectEqual(size_min, part.next(null));
    part.onCame(slow_ms);
    try testing.expectEqual(size_min, part.next(null));
}

test "a part takes at most a second of a limited rate, or is the smallest" {
    const part: PartSize = .{ .size = size_max };
    try testing.expectEqual(size_max, part.next(10 * size_max));
    try testing.expectEqual(size_max / 4, part.next(size_max / 4));
    try testing.expectEqual(size_min, part.next(1));
}
