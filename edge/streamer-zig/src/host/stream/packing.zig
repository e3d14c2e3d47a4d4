//! Packed answers to READs, from units that are in memory (packages/proto/STREAM.md, "Packed
//! answers"). Nothing is packed here, and nothing waits.

const std = @import("std");
const core = @import("core");
const wire = @import("wire").stream;
const AnswerPieces = @import("answer_pieces.zig");
const PiecePacker = @import("piece_packer.zig");
const VersionDisk = @import("version_disk.zig").VersionDisk;
const assert = std.debug.assert;

const AnswerWriter = core.stream.packed_answers.AnswerWriter;
const Piece = core.stream.packed_answers.Piece;
const PieceIterator = core.stream.packed_answers.PieceIterator;
const ReadRequest = core.stream.Server.ReadRequest;
const piece_header_size = core.stream.packed_answers.piece_header_size;
const pieceHeader = core.stream.packed_answers.pieceHeader;

/// The pieces of a READ, held until the answer is written.
const Pieces = struct {
    found: [core.stream.packed_answers.pieces_max]Found = undefined,
    count: usize = 0,
    /// Bytes of the packed answer.
    size: u32 = 0,

    const Found = struct {
        piece: Piece,
        /// Null: zeros.
        as: ?AnswerPieces.Found,

        fn size(found: *const Found) u32 {
            return switch (found.as orelse return 0) {
                .stored => found.piece.size,
                .held => |held| held.size(),
            };
        }
    };

    fn release(pieces: *Pieces) void {
        for (pieces.found[0..pieces.count]) |*found| if (found.as) |as| as.release();
    }
};

/// Returns the whole answer as its fragments carry it, if all of its pieces are in memory and it
/// takes fewer packets than a plain one. `scratch` is for bytes of the disk, `out` for the answer.
pub fn answer(
    packer: *PiecePacker,
    disk: *VersionDisk,
    read: *ReadRequest,
    scratch: []u8,
    out: []u8,
) ?[]const u8 {
    assert(read.may_pack);
    var pieces: Pieces = .{};
    defer pieces.release();
    if (!gather(packer, disk, read, &pieces)) return null;
    const whole = AnswerWriter.sizeOf(pieces.size, read.fragment_size);
    const plain_count = wire.fragmentCount(read.length, read.fragment_size);
    if (whole > (plain_count - 1) * @as(u32, read.fragment_size)) return null;
    var writer: AnswerWriter =
        .{ .to = out[0..whole], .fragment_size = read.fragment_size, .packed_size = pieces.size };
    for (pieces.found[0..pieces.count]) |*found| {
        writer.write(&pieceHeader(found.size()));
        switch (found.as orelse continue) {
            .held => |held| held.writeTo(&writer),
            .stored => {
                const bytes = scratch[0..found.piece.size];
                const is_read = disk.source().readNow(bytes, found.piece.offset) catch return null;
                if (!is_read) return null;
                writer.write(bytes);
            },
        }
    }
    const plain_bytes = read.bytes_out;
    if (!read.answerBy(whole)) return null;
    packer.answers.add(1);
    packer.saved_bytes.add(plain_bytes -| read.bytes_out);
    return out[0..whole];
}

test {
    _ = @import("packing_test.zig");
}

/// Returns false if a piece is missing; the packer hears of each that is.
fn gather(
    packer: *PiecePacker,
    disk: *VersionDisk,
    read: *const ReadRequest,
    pieces: *Pieces,
) bool {
    var is_whole = true;
    var iterator: PieceIterator = .init(read.offset, read.length);
    while (iterator.next()) |piece| {
        const key = PiecePacker.keyNow(disk, piece) orelse return false;
        const as = if (key.isZeros()) null else packer.pieces.find(&key) orelse {
            // A retransmission is no sign that the piece is wanted more often.
            if (!read.repeated) packer.onMissing(disk, &key, piece);
            is_whole = false;
            continue;
        };
        const found: Pieces.Found = .{ .piece = piece, .as = as };
        pieces.found[pieces.count] = found;
        pieces.count += 1;
        pieces.size += piece_header_size + found.size();
    }
    return is_whole;
}
