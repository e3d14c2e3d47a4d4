//! The pieces of a difference (packages/proto/UPLINK.md, "Differences"): a file of known size, cut
//! into pieces of 4 MiB, of which the last one may be shorter. The concatenation of the SHA-256 of
//! all pieces is its list; the list's SHA-256 names the content of the file. Pure.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const piece_size = 4 << 20;
pub const pieces_max = 32 * 1024;
pub const size_max: u64 = @as(u64, piece_size) * pieces_max;
pub const hash_size = base.Sha256.digest_length;
pub const list_size_max = pieces_max * hash_size;

pub const Pieces = @This();

/// Of the whole file.
size: u64,

/// Returns null if no difference has this size.
pub fn of(size: u64) ?Pieces {
    return if (size == 0 or size > size_max) null else .{ .size = size };
}

pub fn count(pieces: Pieces) u32 {
    assert(pieces.size > 0 and pieces.size <= size_max);
    return @intCast((pieces.size + piece_size - 1) / piece_size);
}

pub fn offsetOf(pieces: Pieces, index: u32) u64 {
    assert(index < pieces.count());
    return @as(u64, index) * piece_size;
}

pub fn sizeOf(pieces: Pieces, index: u32) u32 {
    return @intCast(@min(pieces.size - pieces.offsetOf(index), piece_size));
}

pub fn listSize(pieces: Pieces) u32 {
    return pieces.count() * hash_size;
}

/// Tells whether this is the list that the SHA-256 names, with an entry for each piece.
pub fn isList(pieces: Pieces, list: []const u8, sha256: *const [32]u8) bool {
    if (list.len != pieces.listSize()) return false;
    return std.mem.eql(u8, &digestOf(list), sha256);
}

/// Tells whether these are the bytes that the list describes.
pub fn isPiece(pieces: Pieces, list: []const u8, index: u32, bytes: []const u8) bool {
    assert(list.len == pieces.listSize());
    if (bytes.len != pieces.sizeOf(index)) return false;
    return std.mem.eql(u8, &digestOf(bytes), list[index * hash_size ..][0..hash_size]);
}

pub fn digestOf(bytes: []const u8) [hash_size]u8 {
    var digest: [hash_size]u8 = undefined;
    base.Sha256.hash(bytes, &digest, .{});
    return digest;
}

const testing = std.testing;

test "every byte belongs to one piece, and the last one is shorter" {
    try testing.expectEqual(null, of(0));
    try testing.expectEqual(null, of(size_max + 1));
    for ([_]struct { u64, u32, u32 }{
        .{ 1, 1, 1 },
        .{ piece_size, 1, piece_size },
        .{ piece_size + 1, 2, 1 },
        .{ size_max, pieces_max, piece_size },
    }) |case| {
        const pieces = of(case[0]).?;
        try testing.expectEqual(case[1], pieces.count());
        const last = pieces.count() - 1;
        try testing.expectEqual(case[2], pieces.sizeOf(last));
        try testing.expectEqual(case[0], pieces.offsetOf(last) + pieces.sizeOf(last));
        try testing.expect(pieces.listSize() <= list_size_max);
    }
}

test "another list, and another piece, are told from those that are named" {
    const bytes: [piece_size + 3]u8 = @splat(7);
    const pieces = of(bytes.len).?;
    const list = digestOf(bytes[0..piece_size]) ++ digestOf(bytes[piece_size..]);
    const name = digestOf(&list);
    try testing.expect(pieces.isList(&list, &name));
    try testing.expect(!pieces.isList(list[0..hash_size], &name));
    try testing.expect(!pieces.isList(&list, &digestOf("x")));
    try testing.expect(pieces.isPiece(&list, 0, bytes[0..piece_size]));
    try testing.expect(pieces.isPiece(&list, 1, bytes[piece_size..]));
    try testing.expect(!pieces.isPiece(&list, 1, bytes[piece_size + 1 ..]));
    try testing.expect(!pieces.isPiece(&list, 1, "xyz"));
}
