//! Unpacks a block of LZ4 (lz4, doc/lz4_Block_format.md): literals and matches until the input
//! ends. The output never exceeds its buffer, and a match never begins before it.

const std = @import("std");

pub const Error = error{Damaged};

/// Returns the number of bytes.
pub fn unpack(input: []const u8, output: []u8) Error!usize {
    var in: usize = 0;
    var out: usize = 0;
    while (in < input.len) {
        const token = input[in];
        in += 1;
        const literals = try length(input, &in, token >> 4);
        if (literals > input.len - in or literals > output.len - out) return error.Damaged;
        @memcpy(output[out..][0..literals], input[in..][0..literals]);
        in += literals;
        out += literals;
        // The last sequence has no match.
        if (in == input.len) return out;
        if (input.len - in < 2) return error.Damaged;
        const distance: usize = std.mem.readInt(u16, input[in..][0..2], .little);
        in += 2;
        const size = try length(input, &in, token & 0xf) + 4;
        if (distance == 0 or distance > out or size > output.len - out) return error.Damaged;
        copyMatch(output, out, distance, size);
        out += size;
    }
    return error.Damaged;
}

/// A nibble of 15 is followed by bytes to add, up to one that is not 255.
fn length(input: []const u8, in: *usize, nibble: u8) Error!usize {
    var total: usize = nibble;
    if (nibble != 15) return total;
    while (true) {
        if (in.* == input.len) return error.Damaged;
        const byte = input[in.*];
        in.* += 1;
        total += byte;
        if (byte != 255) return total;
    }
}

/// Repeats what was written, byte by byte where the match overlaps itself.
pub fn copyMatch(output: []u8, out: usize, distance: usize, size: usize) void {
    if (distance >= size) {
        @memcpy(output[out..][0..size], output[out - distance ..][0..size]);
        return;
    }
    for (output[out..][0..size], output[out - distance ..][0..size]) |*to, from| to.* = from;
}

const testing = std.testing;

test "literals, matches that overlap themselves and long lengths are unpacked" {
    var buffer: [400]u8 = undefined;
    // "abc", 9 bytes from 3 before, "d".
    const short = "\x35abc\x03\x00\x10d";
    try testing.expectEqualStrings("abcabcabcabcd", buffer[0..try unpack(short, &buffer)]);
    // "a", then 4 + 15 + 255 + 3 times the same, and 15 literals.
    const long = "\x1fa\x01\x00\xff\x03\xf0\x00123456789abcdef";
    const size = try unpack(long, &buffer);
    try testing.expectEqual(1 + 277 + 15, size);
    try testing.expect(std.mem.allEqual(u8, buffer[0..278], 'a'));
    try testing.expectEqualStrings("123456789abcdef", buffer[278..size]);
}

test "what is cut, reaches before the output or is too long is damage" {
    var buffer: [16]u8 = undefined;
    for ([_][]const u8{
        "",
        "\x35ab",
        "\x35abc\x03",
        "\x35abc\x04\x00\x10d",
        "\x35abc\x00\x00\x10d",
        "\x3fabc\x03\x00\xff",
        "\x3fabc\x03\x00\x20\x10d",
        "\xf0\xff\xff",
    }) |input| try testing.expectError(error.Damaged, unpack(input, &buffer));
}
