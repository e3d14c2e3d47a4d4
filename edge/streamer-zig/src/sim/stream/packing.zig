//! Packed answers of a simulated edge: units are packed when they are requested, and what its
//! memory holds is drawn anew for each answer.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const lz4 = @import("codec").lz4;
const store = @import("store");
const wire = @import("wire").stream;

const packed_answers = core.stream.packed_answers;
const ReadRequest = core.stream.Server.ReadRequest;
const unit_size = packed_answers.unit_size;

pub const Packing = @This();

/// The answer as its fragments carry it.
out: [wire.read_size_promised]u8 = undefined,
content: [wire.read_size_promised + wire.read_size_promised / unit_size * 8]u8 = undefined,
unit: [unit_size]u8 = undefined,
table: lz4.Table = undefined,
/// For a mutant: units are those beside the right ones.
is_misplaced: bool = false,

/// Null: packing saves no packet, or nothing that the READ names is in a packed answer.
pub fn answer(
    packing: *Packing,
    prng: *base.Prng,
    request: *const ReadRequest,
    source: *const store.BlockSource,
) ?ReadRequest {
    if (request.length > wire.read_size_promised) return null;
    const size = packing.pack(prng, request, source) orelse return null;
    const whole = packed_answers.AnswerWriter.sizeOf(size, request.fragment_size);
    const plain_count = wire.fragmentCount(request.length, request.fragment_size);
    if (whole > (plain_count - 1) * @as(u32, request.fragment_size)) return null;
    var answered = request.*;
    answered.may_pack = true;
    if (!answered.answerBy(whole)) return null;
    var writer: packed_answers.AnswerWriter = .{
        .to = packing.out[0..whole],
        .fragment_size = request.fragment_size,
        .packed_size = size,
    };
    writer.write(packing.content[0..size]);
    return answered;
}

fn pack(
    packing: *Packing,
    prng: *base.Prng,
    request: *const ReadRequest,
    source: *const store.BlockSource,
) ?u32 {
    var size: usize = 0;
    var pieces: packed_answers.PieceIterator = .init(request.offset, request.length);
    while (pieces.next()) |piece| {
        const bytes = packing.unit[0..piece.size];
        var from = piece.offset;
        if (packing.is_misplaced and from + unit_size + piece.size <= source.size)
            from += unit_size;
        source.read(bytes, from) catch return null;
        const to = packing.content[size + packed_answers.piece_header_size ..];
        const found = if (prng.chance(1, 8)) null else lz4.pack(
            &packing.table,
            to[0 .. bytes.len - 1],
            bytes,
        );
        if (found == null) @memcpy(to[0..bytes.len], bytes);
        const packed_size = if (std.mem.allEqual(u8, bytes, 0)) 0 else found orelse bytes.len;
        packing.content[size..][0..packed_answers.piece_header_size].* =
            packed_answers.pieceHeader(packed_size);
        size += packed_answers.piece_header_size + packed_size;
    }
    return @intCast(size);
}
