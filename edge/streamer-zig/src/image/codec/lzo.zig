//! Unpacks LZO1X (Linux, Documentation/staging/lzo.rst): instructions that copy literals and
//! matches, up to an end marker. The output never exceeds its buffer, and a match never begins
//! before it. The run-length variant of newer kernels is never on a disk.

const std = @import("std");
const copyMatch = @import("lz4.zig").copyMatch;

pub const Error = error{Damaged};

const Reader = struct {
    input: []const u8,
    at: usize = 0,
    output: []u8,
    out: usize = 0,
    /// Literals that the last instruction copied, which decide what a small opcode means; 4 stands
    /// for a run of literals.
    state: u8 = 0,

    fn byte(reader: *Reader) Error!u8 {
        if (reader.at == reader.input.len) return error.Damaged;
        defer reader.at += 1;
        return reader.input[reader.at];
    }

    fn pair(reader: *Reader) Error!u16 {
        const low = try reader.byte();
        return low | @as(u16, try reader.byte()) << 8;
    }

    /// A length of 0 is followed by zeros of 255 each and a last byte.
    fn length(reader: *Reader, said: u8, base: usize) Error!usize {
        if (said != 0) return said;
        var total = base;
        while (true) {
            const next = try reader.byte();
            if (next != 0) return total + next;
            total += 255;
        }
    }

    fn literals(reader: *Reader, size: usize) Error!void {
        if (size > reader.input.len - reader.at or size > reader.output.len - reader.out)
            return error.Damaged;
        @memcpy(reader.output[reader.out..][0..size], reader.input[reader.at..][0..size]);
        reader.at += size;
        reader.out += size;
    }

    /// A match, and the up to three literals behind it.
    fn match(reader: *Reader, distance: usize, size: usize, behind: u2) Error!void {
        if (distance > reader.out or size > reader.output.len - reader.out) return error.Damaged;
        copyMatch(reader.output, reader.out, distance, size);
        reader.out += size;
        try reader.literals(behind);
        reader.state = behind;
    }

    /// Returns false at the end marker.
    fn step(reader: *Reader) Error!bool {
        const opcode = try reader.byte();
        if (opcode < 16) {
            try reader.small(opcode);
        } else if (opcode >= 64) {
            const distance = 1 + @as(usize, opcode >> 2 & 7) + (@as(usize, try reader.byte()) << 3);
            try reader.match(distance, @as(usize, opcode >> 5) + 1, @truncate(opcode));
        } else if (opcode >= 32) {
            const size = try reader.length(opcode & 31, 31) + 2;
            const word = try reader.pair();
            try reader.match(1 + @as(usize, word >> 2), size, @truncate(word));
        } else {
            const size = try reader.length(opcode & 7, 7) + 2;
            const word = try reader.pair();
            const distance = (@as(usize, opcode & 8) << 11) + (word >> 2);
            if (distance == 0) return false;
            try reader.match(distance + 0x4000, size, @truncate(word));
        }
        return true;
    }

    fn small(reader: *Reader, opcode: u8) Error!void {
        if (reader.state == 0) {
            try reader.literals(try reader.length(opcode, 15) + 3);
            reader.state = 4;
            return;
        }
        const near = 1 + @as(usize, opcode >> 2) + (@as(usize, try reader.byte()) << 2);
        if (reader.state == 4) return reader.match(near + 0x800, 3, @truncate(opcode));
        return reader.match(near, 2, @truncate(opcode));
    }
};

/// Returns the number of bytes.
pub fn unpack(input: []const u8, output: []u8) Error!usize {
    var reader: Reader = .{ .input = input, .output = output };
    if (input.len > 0 and input[0] > 17) {
        reader.at = 1;
        const size = input[0] - 17;
        try reader.literals(size);
        reader.state = @min(size, 4);
    }
    while (try reader.step()) {}
    return reader.out;
}

const testing = std.testing;

const end = "\x11\x00\x00";

test "literals and matches of each instruction are unpacked" {
    var buffer: [600]u8 = undefined;
    // Four literals, 5 bytes from 4 before with two literals behind, and the end.
    const near = "\x15abcd" ++ "\x8e\x00xy" ++ end;
    try testing.expectEqualStrings("abcdabcdaxy", buffer[0..try unpack(near, &buffer)]);
    // A run of 3 + 15 + 2 literals, and 2 + 31 + 255 + 1 from 1 before.
    const long = "\x00\x02" ++ "00000000000000000001" ++ "\x20\x00\x01\x00\x00" ++ end;
    const size = try unpack(long, &buffer);
    try testing.expectEqual(20 + 289, size);
    try testing.expect(std.mem.allEqual(u8, buffer[19..size], '1'));
    // Two literals first, then two bytes from 2 before.
    const two = "\x13ab" ++ "\x04\x00" ++ end;
    try testing.expectEqualStrings("abab", buffer[0..try unpack(two, &buffer)]);
}

test "what is cut, reaches before the output or is too long is damage" {
    var buffer: [16]u8 = undefined;
    for ([_][]const u8{
        "",
        "\x15abc",
        "\x15abcd",
        "\x15abcd\x90\x01" ++ end,
        "\x15abcd\x18\x00\x00" ++ end,
        "\x15abcd\x00\x00" ++ end,
        "\x00\x00\x00",
        "\x15abcd\x20\x00\x01\x00\x00" ++ end,
    }) |input| try testing.expectError(error.Damaged, unpack(input, &buffer));
}
