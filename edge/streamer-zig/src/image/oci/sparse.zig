//! Maps of sparse files: which of their bytes are stored ("Storing Sparse Files" of GNU tar's
//! manual).

const std = @import("std");
const Fault = @import("fault.zig").Fault;
const FileTree = @import("../ext4/file_tree.zig");
const numbers = @import("numbers.zig");
const Segment = FileTree.Segment;

pub const Map = struct {
    arena: std.mem.Allocator,
    segments: std.ArrayList(Segment) = .empty,

    pub fn add(map: *Map, segment: Segment) Fault!void {
        if (map.segments.items.len == numbers.segments_max) return error.SparseMapInvalid;
        try map.segments.append(map.arena, segment);
    }

    /// Pairs of twelve bytes; the first empty one is the end.
    pub fn addGnu(map: *Map, bytes: []const u8) Fault!void {
        var at: usize = 0;
        while (at + 24 <= bytes.len) : (at += 24) {
            if (bytes[at] == 0) return;
            try map.add(.{
                .offset = try numbers.ofField(u64, bytes[at..][0..12]),
                .size = try numbers.ofField(u64, bytes[at + 12 ..][0..12]),
            });
        }
    }

    /// Checks that the parts are in order, in the file, and as long as what is stored.
    pub fn finish(map: *Map, size: u64, stored_size: u64) Fault![]const Segment {
        var end: u64 = 0;
        var stored: u64 = 0;
        for (map.segments.items) |segment| {
            if (segment.offset < end) return error.SparseMapInvalid;
            end = std.math.add(u64, segment.offset, segment.size) catch
                return error.SparseMapInvalid;
            stored += segment.size;
        }
        if (end > size or stored != stored_size) return error.SparseMapInvalid;
        return map.segments.items;
    }
};

/// Map 1.0: decimal numbers, one a line: how many parts, then offset and size of each.
pub const TextMap = struct {
    map: *Map,
    digits: [20]u8 = undefined,
    digit_count: usize = 0,
    parts_left: ?u64 = null,
    offset: ?u64 = null,
    is_done: bool = false,

    /// Takes the next record; the last one is filled with zeros.
    pub fn add(text: *TextMap, record: *const [numbers.record_size]u8) Fault!void {
        for (record) |byte| {
            if (text.is_done) return;
            if (byte != '\n') {
                if (text.digit_count == text.digits.len) return error.SparseMapInvalid;
                text.digits[text.digit_count] = byte;
                text.digit_count += 1;
                continue;
            }
            const number = try numbers.decimal(u64, text.digits[0..text.digit_count]);
            text.digit_count = 0;
            try text.take(number);
        }
    }

    fn take(text: *TextMap, number: u64) Fault!void {
        if (text.parts_left) |*left| {
            const offset = text.offset orelse {
                text.offset = number;
                return;
            };
            text.offset = null;
            try text.map.add(.{ .offset = offset, .size = number });
            left.* -= 1;
        } else text.parts_left = number;
        text.is_done = text.parts_left.? == 0;
    }
};
