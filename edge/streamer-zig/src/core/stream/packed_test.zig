//! Tests packed.zig, also by answers that an independent writer has made.

const std = @import("std");
const base = @import("base");
const lz4 = @import("codec").lz4;
const wire = @import("wire").stream;
const packed_answers = @import("packed.zig");
const testing = std.testing;

const unit_size = packed_answers.unit_size;

/// Packs a range as an edge does that has all of its units packed.
pub fn packRange(disk: []const u8, offset: usize, out: *std.ArrayList(u8)) !void {
    var table: lz4.Table = undefined;
    var pieces: packed_answers.PieceIterator = .init(offset, disk.len);
    while (pieces.next()) |piece| {
        const bytes = disk[@intCast(piece.offset - offset)..][0..piece.size];
        var buffer: [unit_size]u8 = undefined;
        const is_zeros = std.mem.allEqual(u8, bytes, 0);
        const body = if (is_zeros)
            ""
        else if (lz4.pack(&table, buffer[0 .. bytes.len - 1], bytes)) |size|
            buffer[0..size]
        else
            bytes;
        try out.appendSlice(testing.allocator, &packed_answers.pieceHeader(body.len));
        try out.appendSlice(testing.allocator, body);
    }
}

/// Units of text, of zeros and of noise in turn.
fn fillDisk(disk: []u8) void {
    var prng: base.Prng = .init(3);
    for (disk, 0..) |*byte, at| byte.* = switch (at / unit_size % 3) {
        0 => "The edge packs units and keeps them. "[at % 37],
        1 => 0,
        else => @truncate(prng.below(256)),
    };
}

test "a range is cut at the boundaries of the disk's units" {
    var pieces: packed_answers.PieceIterator = .init(unit_size - 512, 2 * unit_size);
    try testing.expectEqual(
        packed_answers.Piece{ .offset = unit_size - 512, .size = 512 },
        pieces.next().?,
    );
    try testing.expectEqual(unit_size, pieces.next().?.size);
    try testing.expectEqual(unit_size - 512, pieces.next().?.size);
    try testing.expectEqual(null, pieces.next());
}

test "what is packed unpacks to the same bytes, wherever the range begins and ends" {
    const disk = try testing.allocator.alloc(u8, 7 * unit_size);
    defer testing.allocator.free(disk);
    fillDisk(disk);
    const to = try testing.allocator.alloc(u8, disk.len);
    defer testing.allocator.free(to);
    var answer: std.ArrayList(u8) = .empty;
    defer answer.deinit(testing.allocator);
    for ([_][2]usize{
        .{ 0, unit_size },
        .{ 4096, 8192 },
        .{ unit_size - 4096, unit_size },
        .{ 0, 7 * unit_size },
        .{ 512, 7 * unit_size - 1024 },
        .{ 2 * unit_size, 512 },
    }) |range| {
        const expected = disk[range[0]..][0..range[1]];
        answer.clearRetainingCapacity();
        try packRange(expected, range[0], &answer);
        @memset(to, 0xee);
        try packed_answers.unpack(to[0..range[1]], range[0], answer.items);
        try testing.expectEqualSlices(u8, expected, to[0..range[1]]);
        try testing.expect(std.mem.allEqual(u8, to[range[1]..], 0xee));
        // Shorter, longer, and at another place of the disk: none of it is accepted.
        const bytes = to[0..range[1]];
        const cut_off = answer.items[0 .. answer.items.len - 1];
        try testing.expectError(
            error.Corrupt,
            packed_answers.unpack(bytes, range[0], cut_off),
        );
        try answer.append(testing.allocator, 0);
        try testing.expectError(
            error.Corrupt,
            packed_answers.unpack(bytes, range[0], answer.items),
        );
    }
    try testing.expectError(error.Corrupt, packed_answers.unpack(to[0..512], 0, ""));
}

test "no answer writes outside of its range, whatever it says" {
    var prng: base.Prng = .init(11);
    const disk = try testing.allocator.alloc(u8, 3 * unit_size);
    defer testing.allocator.free(disk);
    fillDisk(disk);
    const to = try testing.allocator.alloc(u8, disk.len + 64);
    defer testing.allocator.free(to);
    var answer: std.ArrayList(u8) = .empty;
    defer answer.deinit(testing.allocator);
    try packRange(disk, 0, &answer);
    for (0..2000) |_| {
        var broken = try answer.clone(testing.allocator);
        defer broken.deinit(testing.allocator);
        for (0..1 + prng.below(4)) |_|
            broken.items[@intCast(prng.below(200))] = @truncate(prng.below(256));
        @memset(to[disk.len..], 0x77);
        packed_answers.unpack(to[0..disk.len], 0, broken.items) catch {};
        try testing.expect(std.mem.allEqual(u8, to[disk.len..], 0x77));
    }
}

test "a packed answer is laid out as its fragments carry it, however it is written" {
    var answer: [5000]u8 = undefined;
    for (&answer, 0..) |*byte, at| byte.* = @truncate(at *% 31);
    for ([_]u16{ 512, 1440, 8940 }) |fragment_size| {
        var one: [6000]u8 = @splat(0xee);
        const size = packed_answers.AnswerWriter.sizeOf(answer.len, fragment_size);
        var writer: packed_answers.AnswerWriter =
            .{ .to = one[0..size], .fragment_size = fragment_size, .packed_size = answer.len };
        writer.write(answer[0..1]);
        writer.write(answer[1..2500]);
        writer.write(answer[2500..]);
        var at: usize = 0;
        for (0..wire.fragmentCount(size, fragment_size)) |index| {
            const payload = one[index * fragment_size ..][0..wire.fragmentLength(
                size,
                fragment_size,
                @intCast(index),
            )];
            try testing.expectEqual(answer.len, std.mem.readInt(u32, payload[0..4], .big));
            try testing.expectEqualSlices(u8, answer[at..][0 .. payload.len - 4], payload[4..]);
            at += payload.len - 4;
        }
        try testing.expectEqual(answer.len, at);
        try testing.expect(std.mem.allEqual(u8, one[size..], 0xee));
    }
}

const Vector = struct {
    name: []const u8,
    offset: u64,
    length: u32,
    /// Hex.
    @"packed": []const u8,
    bytes: ?[]const u8 = null,
    refused: bool = false,
};

test "the golden packed answers unpack to their bytes, and the mistakes to nothing" {
    const json = @embedFile("stream_packed_vectors_json");
    const parsed = try std.json.parseFromSlice([]const Vector, testing.allocator, json, .{});
    defer parsed.deinit();
    try testing.expect(parsed.value.len >= 20);
    for (parsed.value) |*vector| {
        var answer: [4096]u8 = undefined;
        var to: [4096]u8 = undefined;
        const bytes = to[0..vector.length];
        const from = try std.fmt.hexToBytes(&answer, vector.@"packed");
        if (vector.refused) {
            const found = packed_answers.unpack(bytes, vector.offset, from);
            testing.expectError(error.Corrupt, found) catch |err| {
                std.debug.print("{s}\n", .{vector.name});
                return err;
            };
            continue;
        }
        try packed_answers.unpack(bytes, vector.offset, from);
        var expected: [4096]u8 = undefined;
        const text = vector.bytes.?;
        try testing.expectEqualSlices(u8, try std.fmt.hexToBytes(&expected, text), bytes);
    }
}
