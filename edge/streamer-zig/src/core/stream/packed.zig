//! Packed answers of codec 1 (packages/proto/STREAM.md, "Packed answers"): how the bytes of a range
//! of the disk follow each other in one. The range is cut at the boundaries of the disk's units;
//! each piece is packed by itself, so that an edge keeps pieces and not answers. Pure.

const std = @import("std");
const base = @import("base");
const lz4 = @import("codec").lz4;
const wire = @import("wire").stream;
const assert = std.debug.assert;

/// Pieces end at multiples of this, in bytes of the disk.
pub const unit_size = wire.profile.unit_size;
/// In front of each piece: the size of what follows.
pub const piece_header_size = 2;
/// Pieces of a READ that begins and ends in the middle of a unit.
pub const pieces_max = wire.read_size_max / unit_size + 1;

comptime {
    assert(unit_size <= std.math.maxInt(u16) and unit_size <= lz4.unit_size_max);
}

/// A part of the range that lies within one unit.
pub const Piece = struct { offset: u64, size: u32 };

pub const PieceIterator = struct {
    at: u64,
    end: u64,

    pub fn init(offset: u64, length: u64) PieceIterator {
        return .{ .at = offset, .end = offset + length };
    }

    pub fn next(pieces: *PieceIterator) ?Piece {
        if (pieces.at == pieces.end) return null;
        const piece_end = @min(pieces.end, (pieces.at / unit_size + 1) * unit_size);
        defer pieces.at = piece_end;
        return .{ .offset = pieces.at, .size = @intCast(piece_end - pieces.at) };
    }
};

/// Returns the header of a piece: 0 stands for zeros, the size of the piece itself for its bytes as
/// they are, and less for an LZ4 block.
pub fn pieceHeader(size: usize) [piece_header_size]u8 {
    var header: [piece_header_size]u8 = undefined;
    std.mem.writeInt(u16, &header, @intCast(size), .big);
    return header;
}

/// Fills `to`, which is at `offset` of the disk, from a packed answer. Anything that no edge packs
/// is an error; `to` then has arbitrary bytes.
pub fn unpack(to: []u8, offset: u64, from: []const u8) error{Corrupt}!void {
    var rest = from;
    var done: usize = 0;
    var pieces: PieceIterator = .init(offset, to.len);
    while (pieces.next()) |piece| {
        if (rest.len < piece_header_size) return error.Corrupt;
        const size = std.mem.readInt(u16, rest[0..piece_header_size], .big);
        rest = rest[piece_header_size..];
        if (size > rest.len or size > piece.size) return error.Corrupt;
        const bytes = to[done..][0..piece.size];
        if (size == 0)
            @memset(bytes, 0)
        else if (size == piece.size)
            @memcpy(bytes, rest[0..size])
        else
            try lz4.unpack(bytes, rest[0..size]);
        rest = rest[size..];
        done += piece.size;
    }
    if (rest.len > 0) return error.Corrupt;
}

/// Writes a packed answer as its fragments carry it: each `fragment_size` bytes begin with the size
/// of the whole.
pub const AnswerWriter = struct {
    to: []u8,
    /// Of a fragment, with its prefix.
    fragment_size: u16,
    packed_size: u32,
    /// Bytes of the packed answer that are written.
    done: u32 = 0,

    /// Bytes of all fragments of an answer of `packed_size` bytes.
    pub fn sizeOf(packed_size: u32, fragment_size: u16) u32 {
        const content = fragment_size - wire.packed_prefix_size;
        const fragments = std.math.divCeil(u32, packed_size, content) catch unreachable;
        return packed_size + fragments * wire.packed_prefix_size;
    }

    pub fn write(writer: *AnswerWriter, bytes: []const u8) void {
        const content = writer.fragment_size - wire.packed_prefix_size;
        assert(bytes.len <= writer.packed_size - writer.done);
        var rest = bytes;
        while (rest.len > 0) {
            const index = writer.done / content;
            const in_fragment = writer.done % content;
            const begin = @as(usize, index) * writer.fragment_size;
            if (in_fragment == 0)
                std.mem.writeInt(u32, writer.to[begin..][0..4], writer.packed_size, .big);
            const size = @min(rest.len, content - in_fragment);
            @memcpy(
                writer.to[begin + wire.packed_prefix_size + in_fragment ..][0..size],
                rest[0..size],
            );
            rest = rest[size..];
            writer.done += @intCast(size);
        }
    }
};

test {
    _ = @import("packed_test.zig");
}
