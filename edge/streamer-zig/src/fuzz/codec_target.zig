//! Fuzzes the codecs: what was packed is unpacked to the same bytes, and whatever else is given to
//! `unpack` is refused or fills the unit, and nothing beside it. The same for the packed answers of
//! the stream, which consist of such units.

const std = @import("std");
const lz4 = @import("codec").lz4;
const packed_answers = @import("core").stream.packed_answers;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const unit_max = 8 << 10;
const guard = 32;
const mark = 0xa5;

var table: lz4.Table = undefined;
var search: lz4.Search = undefined;
var unit: [unit_max]u8 = undefined;
var packed_unit: [lz4.sizeMax(unit_max) + guard]u8 = undefined;
var unpacked: [unit_max + guard]u8 = undefined;

pub fn lz4Block(case: *Case) Violation!bool {
    const bytes = anyUnit(case);
    const room: usize = if (case.prng.chance(1, 4))
        @intCast(case.prng.below(bytes.len + 1))
    else
        packed_unit.len - guard;
    @memset(&packed_unit, mark);
    const to = packed_unit[0..room];
    const size = (if (case.prng.chance(1, 2))
        lz4.pack(&table, to, bytes)
    else
        lz4.packSmall(&search, to, bytes, @intCast(case.prng.between(1, 64)))) orelse {
        try expect(room < lz4.sizeMax(bytes.len), "what has room for everything is filled");
        return false;
    };
    try expect(size <= room, "a packer stays within its room");
    try expect(isMarked(packed_unit[room..]), "a packer writes nothing behind its room");
    @memset(&unpacked, mark);
    const is_read = !std.meta.isError(lz4.unpack(unpacked[0..bytes.len], packed_unit[0..size]));
    try expect(is_read, "what was packed can be unpacked");
    try expect(std.mem.eql(u8, unpacked[0..bytes.len], bytes), "the bytes are the same");
    try expect(isMarked(unpacked[bytes.len..]), "nothing is written behind the unit");
    const part: usize = @intCast(case.prng.below(bytes.len + 1));
    @memset(&unpacked, mark);
    const is_part_read =
        !std.meta.isError(lz4.unpackStart(unpacked[0..bytes.len], packed_unit[0..size], part));
    try expect(is_part_read, "the beginning of what was packed can be unpacked");
    try expect(std.mem.eql(u8, unpacked[0..part], bytes[0..part]), "its bytes are the same");
    try expect(isMarked(unpacked[bytes.len..]), "nothing is written behind the unit");
    const damaged = case.mutate(packed_unit[0 .. packed_unit.len - guard], size);
    const wanted: usize = @intCast(case.prng.below(unit_max + 1));
    @memset(&unpacked, mark);
    lz4.unpack(unpacked[0..wanted], damaged) catch {};
    lz4.unpackStart(unpacked[0..wanted], damaged, wanted / 2) catch {};
    try expect(isMarked(unpacked[wanted..]), "nothing is written behind the unit");
    return true;
}

/// Bytes that repeat at some distances.
fn anyUnit(case: *Case) []const u8 {
    const prng = &case.prng;
    const size: usize = @intCast(prng.below(unit_max + 1));
    const letters = prng.between(1, 256);
    var at: usize = 0;
    while (at < size) {
        const run: usize = @intCast(prng.between(1, @min(size - at, 600)));
        if (at > 0 and prng.chance(1, 2)) {
            const from: usize = @intCast(prng.below(at));
            for (unit[at..][0..run], unit[from..][0..run]) |*byte, earlier| byte.* = earlier;
        } else for (unit[at..][0..run]) |*byte| byte.* = @intCast(prng.below(letters));
        at += run;
    }
    return unit[0..size];
}

const range_max = 3 * packed_answers.unit_size;

var range: [range_max]u8 = undefined;
var answer: [2 * range_max]u8 = undefined;
var range_unpacked: [range_max + guard]u8 = undefined;

/// An answer to a READ that begins and ends anywhere.
pub fn packedAnswer(case: *Case) Violation!bool {
    const prng = &case.prng;
    const offset = 512 * prng.below(200);
    const length: usize = @intCast(512 * prng.between(1, range_max / 512));
    const bytes = range[0..length];
    var filled: usize = 0;
    while (filled < length) {
        const more = anyUnit(case);
        const size = @min(more.len, length - filled);
        @memcpy(bytes[filled..][0..size], more[0..size]);
        filled += @max(1, size);
    }
    if (prng.chance(1, 4)) @memset(bytes[0 .. length / 2], 0);
    const size = packRange(case, bytes, offset);
    const to = range_unpacked[0..length];
    @memset(&range_unpacked, mark);
    const is_read = !std.meta.isError(packed_answers.unpack(to, offset, answer[0..size]));
    try expect(is_read, "what was packed can be unpacked");
    try expect(std.mem.eql(u8, to, bytes), "the bytes are the same");
    try expect(isMarked(range_unpacked[length..]), "nothing is written behind the range");
    const damaged = case.mutate(&answer, size);
    const wanted: usize = @intCast(prng.between(1, range_max));
    @memset(&range_unpacked, mark);
    packed_answers.unpack(range_unpacked[0..wanted], 512 * prng.below(200), damaged) catch {};
    try expect(isMarked(range_unpacked[wanted..]), "nothing is written behind the range");
    return true;
}

/// As an edge does, which is free to leave pieces as they are.
fn packRange(case: *Case, bytes: []const u8, offset: u64) usize {
    var size: usize = 0;
    var pieces: packed_answers.PieceIterator = .init(offset, bytes.len);
    while (pieces.next()) |piece| {
        const part = bytes[@intCast(piece.offset - offset)..][0..piece.size];
        const to = answer[size + packed_answers.piece_header_size ..];
        const is_stored = case.prng.chance(1, 4);
        const found = if (is_stored) null else lz4.pack(&table, to[0 .. part.len - 1], part);
        const packed_size = if (std.mem.allEqual(u8, part, 0)) 0 else found orelse part.len;
        if (packed_size == part.len) @memcpy(to[0..part.len], part);
        answer[size..][0..packed_answers.piece_header_size].* =
            packed_answers.pieceHeader(packed_size);
        size += packed_answers.piece_header_size + packed_size;
    }
    return size;
}

fn isMarked(bytes: []const u8) bool {
    return std.mem.allEqual(u8, bytes, mark);
}
