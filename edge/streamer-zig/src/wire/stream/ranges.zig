//! The fragments that a READ of the stream requests (packages/proto/STREAM.md); part of
//! `stream.zig`, which checks them.

const std = @import("std");

pub const ranges_max = 64;

/// Fragments `first_fragment` to `first_fragment + fragment_count - 1` of a read.
pub const Range = struct {
    first_fragment: u16,
    fragment_count: u16,
};

/// Ranges in the form of the packet: ascending, disjoint, not empty. No ranges at all means every
/// fragment.
pub const Ranges = struct {
    bytes: []const u8 = &.{},

    pub fn count(ranges: Ranges) u16 {
        return @intCast(@divExact(ranges.bytes.len, 4));
    }

    pub fn at(ranges: Ranges, index: u16) Range {
        const raw = ranges.bytes[@as(usize, index) * 4 ..][0..4];
        return .{
            .first_fragment = std.mem.readInt(u16, raw[0..2], .big),
            .fragment_count = std.mem.readInt(u16, raw[2..4], .big),
        };
    }

    /// Sum of the ranges' fragments; at most `fragments_max`, since they are disjoint.
    pub fn fragmentCount(ranges: Ranges) u16 {
        var sum: u16 = 0;
        for (0..ranges.count()) |index| sum += ranges.at(@intCast(index)).fragment_count;
        return sum;
    }
};

/// Collects the ranges of a READ.
pub const RangeList = struct {
    buffer: [ranges_max * 4]u8 = undefined,
    count: u16 = 0,

    /// `range` must start beyond the end of the previous range.
    pub fn append(list: *RangeList, range: Range) error{Full}!void {
        if (list.count == ranges_max) return error.Full;
        const raw = list.buffer[@as(usize, list.count) * 4 ..][0..4];
        std.mem.writeInt(u16, raw[0..2], range.first_fragment, .big);
        std.mem.writeInt(u16, raw[2..4], range.fragment_count, .big);
        list.count += 1;
    }

    pub fn view(list: *const RangeList) Ranges {
        return .{ .bytes = list.buffer[0 .. @as(usize, list.count) * 4] };
    }
};
