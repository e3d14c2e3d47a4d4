//! The bytes of the measured disk: each word is computed from its position, so that a read is
//! checked without a copy of the disk. Bytes of another place, of a duplicate or of an earlier time
//! are detected.

const std = @import("std");
const assert = std.debug.assert;

const word_size = 8;
const lanes = 8;
const Lanes = @Vector(lanes, u64);
/// Odd, so that no two words of a disk are equal.
const step: u64 = 0x9e37_79b9_7f4a_7c15;
const origin: u64 = 0x0b00_7fa3_0b00_7fa3;

/// `offset` and the length are multiples of `word_size`.
pub fn fill(bytes: []u8, offset: u64) void {
    assert(offset % word_size == 0 and bytes.len % word_size == 0);
    var at: usize = 0;
    while (at < bytes.len) : (at += word_size) {
        const word = wordAt((offset + at) / word_size);
        bytes[at..][0..word_size].* = @bitCast(word);
    }
}

/// Returns whether these are the bytes of the disk at `offset`; about 10 GB/s, so that checking is
/// cheap compared to receiving.
pub fn isRight(bytes: []const u8, offset: u64) bool {
    assert(offset % word_size == 0 and bytes.len % word_size == 0);
    const wide = lanes * word_size;
    var expected: Lanes = undefined;
    inline for (0..lanes) |lane| expected[lane] = wordAt(offset / word_size + lane);
    const advance: Lanes = @splat(step *% lanes);
    var difference: Lanes = @splat(0);
    var at: usize = 0;
    while (at + wide <= bytes.len) : (at += wide) {
        // A cast of the bytes by value instead of their address compiles to byte-by-byte code.
        const words: *align(1) const Lanes = @ptrCast(bytes[at..][0..wide]);
        difference |= words.* ^ expected;
        expected +%= advance;
    }
    if (@reduce(.Or, difference) != 0) return false;
    while (at < bytes.len) : (at += word_size) {
        const word: u64 = @bitCast(bytes[at..][0..word_size].*);
        if (word != wordAt((offset + at) / word_size)) return false;
    }
    return true;
}

fn wordAt(index: u64) u64 {
    return origin +% index *% step;
}

test "a read is right only where it was written" {
    var bytes: [4096 + 512]u8 = undefined;
    fill(&bytes, 1 << 20);
    try std.testing.expect(isRight(&bytes, 1 << 20));
    try std.testing.expect(isRight(bytes[512..], (1 << 20) + 512));
    try std.testing.expect(!isRight(bytes[512..], 1 << 20));
    for ([_]usize{ 0, 777, bytes.len - 1 }) |at| {
        bytes[at] ^= 1;
        try std.testing.expect(!isRight(&bytes, 1 << 20));
        bytes[at] ^= 1;
    }
}
