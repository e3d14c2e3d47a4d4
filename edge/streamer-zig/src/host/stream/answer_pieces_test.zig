//! Tests answer_pieces.zig: what is found, what makes room, and threads that find while others add.

const std = @import("std");
const core = @import("core");
const AnswerPieces = @import("answer_pieces.zig");
const testing = std.testing;
const gpa = testing.allocator;

const AnswerWriter = core.stream.packed_answers.AnswerWriter;

fn keyOf(number: u64, size: u32) AnswerPieces.Key {
    var key: AnswerPieces.Key = .{ .hashes = @splat(@splat(0)), .size = size };
    for (&key.hashes, 0..) |*hash, index|
        std.mem.writeInt(u64, hash[0..8], (number + 1) *% 0x9e3779b97f4a7c15 +% index, .little);
    return key;
}

fn fill(bytes: []u8, number: u64) void {
    for (bytes, 0..) |*byte, at| byte.* = @truncate(at *% 7 +% number);
}

/// Returns whether the piece is there, and fails if it has other bytes than `fill` gave it.
fn isThere(pieces: *AnswerPieces, number: u64, size: u16) !bool {
    const held = (pieces.find(&keyOf(number, 32768)) orelse return false).held;
    defer held.release();
    try testing.expectEqual(size, held.size());
    var to: [40_000]u8 = undefined;
    const whole = AnswerWriter.sizeOf(size, 8940);
    var writer: AnswerWriter =
        .{ .to = to[0..whole], .fragment_size = 8940, .packed_size = size };
    held.writeTo(&writer);
    try testing.expectEqual(size, writer.done);
    var expected: [32768]u8 = undefined;
    fill(expected[0..size], number);
    for (0..size) |at|
        try testing.expectEqual(expected[at], to[at / 8936 * 8940 + 4 + at % 8936]);
    return true;
}

fn addPiece(pieces: *AnswerPieces, number: u64, size: u16) void {
    var bytes: [32768]u8 = undefined;
    fill(bytes[0..size], number);
    pieces.add(&keyOf(number, 32768), bytes[0..size], .quickly);
}

test "all pieces are forgotten, except one that is being sent, and their memory is free again" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    for (0..20) |number| addPiece(&pieces, number, 9000);
    pieces.add(&keyOf(30, 32768), null, .quickly);
    const held = pieces.find(&keyOf(3, 32768)).?.held;
    pieces.forgetAll();
    for (0..20) |number| if (number != 3) try testing.expect(!try isThere(&pieces, number, 9000));
    try testing.expectEqual(null, pieces.find(&keyOf(30, 32768)));
    try testing.expectEqual(1, pieces.piece_count.load(.monotonic));
    held.release();
    try testing.expect(try isThere(&pieces, 3, 9000));
    pieces.forgetAll();
    try testing.expectEqual(0, pieces.used_bytes.load(.monotonic));
    addPiece(&pieces, 1, 9000);
    try testing.expect(try isThere(&pieces, 1, 9000));
}

test "a piece is found by all of its content, and what does not shrink is remembered as such" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    addPiece(&pieces, 1, 9000);
    try testing.expect(try isThere(&pieces, 1, 9000));
    try testing.expect(!try isThere(&pieces, 2, 9000));
    try testing.expectEqual(null, pieces.find(&keyOf(1, 4096)));
    // The same tag, and another block: the tag takes 8 bytes of a hash alone.
    var other = keyOf(1, 32768);
    other.hashes[3][31] = 1;
    try testing.expectEqual(null, pieces.find(&other));
    pieces.add(&keyOf(2, 32768), null, .quickly);
    try testing.expectEqual(.stored, pieces.find(&keyOf(2, 32768)).?);
    try testing.expectEqual(null, pieces.find(&keyOf(2, 4096)));
    // It stays so.
    addPiece(&pieces, 2, 9000);
    try testing.expectEqual(.stored, pieces.find(&keyOf(2, 32768)).?);
    // A smaller form takes its place, a larger one does not.
    addPiece(&pieces, 1, 9500);
    try testing.expect(try isThere(&pieces, 1, 9000));
    addPiece(&pieces, 1, 6000);
    try testing.expect(try isThere(&pieces, 1, 6000));
    try testing.expectEqual(2, pieces.piece_count.load(.monotonic));
    try testing.expectEqual(3 * 2048, pieces.used_bytes.load(.monotonic));
}

test "a piece that is packed as small as it gets is told from one that can shrink" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    try testing.expect(!pieces.canShrink(&keyOf(1, 32768)));
    addPiece(&pieces, 1, 9000);
    try testing.expect(pieces.canShrink(&keyOf(1, 32768)));
    // What is tried and is no smaller is not tried again.
    var bytes: [32768]u8 = undefined;
    pieces.add(&keyOf(1, 32768), bytes[0..9000], .small);
    try testing.expect(!pieces.canShrink(&keyOf(1, 32768)));
    try testing.expect(try isThere(&pieces, 1, 9000));
    addPiece(&pieces, 2, 9000);
    fill(bytes[0..7000], 2);
    pieces.add(&keyOf(2, 32768), bytes[0..7000], .small);
    try testing.expect(!pieces.canShrink(&keyOf(2, 32768)));
    try testing.expect(try isThere(&pieces, 2, 7000));
    pieces.add(&keyOf(3, 32768), null, .quickly);
    try testing.expect(!pieces.canShrink(&keyOf(3, 32768)));
}

test "what is used stays when memory runs out, and all memory is found again" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    addPiece(&pieces, 0, 12_000);
    var number: u64 = 1;
    while (number < 2000) : (number += 1) {
        addPiece(&pieces, number, @intCast(1 + number * 97 % 20_000));
        try testing.expect(try isThere(&pieces, 0, 12_000));
        try testing.expect(pieces.used_bytes.load(.monotonic) <= AnswerPieces.size_min);
    }
    try testing.expect(pieces.evicted_count.load(.monotonic) > 1000);
    var used: u64 = 0;
    for (pieces.entries) |*entry| used += @as(u64, entry.chunk_count) * 2048;
    try testing.expectEqual(used, pieces.used_bytes.load(.monotonic));
    const free = pieces.free_count + pieces.memory.len / 2048 - pieces.fresh;
    try testing.expectEqual(pieces.memory.len, used + free * 2048);
}

test "a piece that is held neither changes nor goes" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    addPiece(&pieces, 5, 9000);
    const held = pieces.find(&keyOf(5, 32768)).?.held;
    addPiece(&pieces, 5, 6000);
    for (100..400) |number| addPiece(&pieces, number, 20_000);
    try testing.expect(try isThere(&pieces, 5, 9000));
    held.release();
    addPiece(&pieces, 5, 6000);
    try testing.expect(try isThere(&pieces, 5, 6000));
}

/// Looks for each of some pieces, and compares what it finds; returns how many there were.
fn findAll(pieces: *AnswerPieces) !u32 {
    var found: u32 = 0;
    for (0..200) |number| {
        const held = (pieces.find(&keyOf(number, 32768)) orelse continue).held;
        defer held.release();
        var to: [40_000]u8 = undefined;
        var writer: AnswerWriter = .{
            .to = &to,
            .fragment_size = 8940,
            .packed_size = held.size(),
        };
        held.writeTo(&writer);
        for ([_]usize{ 0, held.size() / 2, held.size() - 1 }) |at| {
            const expected: u8 = @truncate(at *% 7 +% number);
            try testing.expectEqual(expected, to[at / 8936 * 8940 + 4 + at % 8936]);
        }
        found += 1;
    }
    return found;
}

test "threads that find and threads that add never see half of a piece" {
    var pieces: AnswerPieces = try .init(gpa, AnswerPieces.size_min);
    defer pieces.deinit(gpa);
    const Adder = struct {
        fn run(of: *AnswerPieces, first: u64, left: *std.atomic.Value(u32)) void {
            for (0..3000) |round|
                addPiece(of, (first + round * 13) % 200, @intCast(16_000 - round * 4));
            _ = left.fetchSub(1, .release);
        }
    };
    for (0..200) |number| addPiece(&pieces, number, 16_100);
    try testing.expect(try findAll(&pieces) > 0);
    var left: std.atomic.Value(u32) = .init(2);
    const adders = [_]std.Thread{
        try std.Thread.spawn(.{}, Adder.run, .{ &pieces, 0, &left }),
        try std.Thread.spawn(.{}, Adder.run, .{ &pieces, 77, &left }),
    };
    defer for (adders) |adder| adder.join();
    while (left.load(.acquire) > 0) _ = try findAll(&pieces);
}
