//! Where the bytes of a range of a disk are: the answer of every format to a read.

const std = @import("std");

/// A range of the disk that starts where it was asked for.
pub const Extent = struct {
    /// Bytes; not 0.
    size: u64,
    content: Content,

    /// Adds a range that follows, if its bytes continue these; returns whether they do.
    pub fn extend(extent: *Extent, next: Extent) bool {
        const continues = switch (extent.content) {
            .zeros => next.content == .zeros,
            .parent => next.content == .parent,
            .file => |location| next.content == .file and
                next.content.file == location +| extent.size,
            .compressed => false,
        };
        if (continues) extent.size +|= next.size;
        return continues;
    }
};

pub const Content = union(enum) {
    /// Byte of the file at which the range starts; not checked yet.
    file: u64,
    zeros,
    /// The bytes of the parent at the same place; zeros without a parent.
    parent,
    compressed: Compressed,
};

/// A unit that is unpacked as a whole.
pub const Compressed = struct {
    codec: Codec,
    /// Byte of the file, and bytes there; what follows the compressed data is ignored.
    location: u64,
    size: u32,
    /// Bytes of the unit, unpacked.
    unit_size: u32,
    /// Where in the unit the range starts.
    skip: u32,
};

/// `deflate`: RFC 1951. `zlib`: RFC 1950. `zstd`: RFC 8878.
pub const Codec = enum { deflate, zlib, zstd };

test "ranges are joined where one continues the other" {
    var zeros: Extent = .{ .size = 8, .content = .zeros };
    try std.testing.expect(zeros.extend(.{ .size = 4, .content = .zeros }));
    try std.testing.expectEqual(12, zeros.size);
    try std.testing.expect(!zeros.extend(.{ .size = 4, .content = .parent }));
    var file: Extent = .{ .size = 8, .content = .{ .file = 100 } };
    try std.testing.expect(!file.extend(.{ .size = 8, .content = .{ .file = 107 } }));
    try std.testing.expect(file.extend(.{ .size = 8, .content = .{ .file = 108 } }));
    try std.testing.expectEqual(16, file.size);
}
