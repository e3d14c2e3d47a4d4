//! Unpacks the compressed units of file systems, each into a buffer that bounds it. The memory that
//! a codec needs is made once and used for every unit.

const std = @import("std");
const lz4 = @import("lz4.zig");
const lzo = @import("lzo.zig");
const Allocator = std.mem.Allocator;
const flate = std.compress.flate;
const zstd = std.compress.zstd;

pub const Codec = enum { zlib, xz, zstd, lz4, lzo };

/// The input is not what the codec writes, or would give more than the buffer has.
pub const Error = error{Damaged};

pub const Unpacker = @This();

/// For the window of zlib and zstd, or all that xz allocates.
memory: []u8 = &.{},
/// The largest unit.
unit_size: usize = 0,

/// Reserves what units of at most `unit_size` bytes need; the former memory stays in `arena`.
pub fn reserve(
    unpacker: *Unpacker,
    arena: Allocator,
    codec: Codec,
    unit_size: usize,
) Allocator.Error!void {
    const needed: usize = switch (codec) {
        .zlib => flate.max_window_len,
        .zstd => unit_size + zstd.block_size_max,
        // The unit twice, since its list grows by half, and the tables of the decoder.
        .xz => unit_size * 4 + (1 << 20),
        .lz4, .lzo => 0,
    };
    unpacker.unit_size = @max(unpacker.unit_size, unit_size);
    if (unpacker.memory.len < needed) unpacker.memory = try arena.alloc(u8, needed);
}

/// Returns the bytes that were written to `output`, which has at most the reserved size.
pub fn unpack(
    unpacker: *Unpacker,
    codec: Codec,
    input: []const u8,
    output: []u8,
) Error!usize {
    std.debug.assert(output.len <= unpacker.unit_size);
    return switch (codec) {
        .lz4 => lz4.unpack(input, output),
        .lzo => lzo.unpack(input, output),
        .zlib => {
            var reader: std.Io.Reader = .fixed(input);
            var decompress: flate.Decompress =
                .init(&reader, .zlib, unpacker.memory[0..flate.max_window_len]);
            return drain(&decompress.reader, output);
        },
        .zstd => {
            var reader: std.Io.Reader = .fixed(input[0..try frameSize(input)]);
            const window = unpacker.memory.len - zstd.block_size_max;
            var decompress: zstd.Decompress =
                .init(&reader, unpacker.memory, .{ .window_len = @intCast(window) });
            return drain(&decompress.reader, output);
        },
        .xz => {
            var reader: std.Io.Reader = .fixed(input);
            var fixed: std.heap.FixedBufferAllocator = .init(unpacker.memory);
            var decompress = std.compress.xz.Decompress.init(
                &reader,
                fixed.allocator(),
                &.{},
            ) catch return error.Damaged;
            return drain(&decompress.reader, output);
        },
    };
}

/// Fills `output`, and makes sure that nothing is left.
fn drain(reader: *std.Io.Reader, output: []u8) Error!usize {
    const size = reader.readSliceShort(output) catch return error.Damaged;
    if (size < output.len) return size;
    var more: [1]u8 = undefined;
    const left = reader.readSliceShort(&more) catch return error.Damaged;
    return if (left == 0) size else error.Damaged;
}

/// Finds the end of the first frame (RFC 8878, section 3.1.1): Btrfs fills the sector behind it.
fn frameSize(input: []const u8) Error!usize {
    if (input.len < 5 or !std.mem.startsWith(u8, input, "\x28\xb5\x2f\xfd")) return error.Damaged;
    const descriptor = input[4];
    const is_single_segment = descriptor & 0x20 != 0;
    const dictionary_sizes = [_]usize{ 0, 1, 2, 4 };
    const content_sizes = [_]usize{ if (is_single_segment) 1 else 0, 2, 4, 8 };
    var at: usize = 5 + dictionary_sizes[descriptor & 3] + content_sizes[descriptor >> 6] +
        @as(usize, @intFromBool(!is_single_segment));
    while (true) {
        if (at > input.len or input.len - at < 3) return error.Damaged;
        const header = std.mem.readInt(u24, input[at..][0..3], .little);
        const kind = header >> 1 & 3;
        if (kind == 3) return error.Damaged;
        // A block of one repeated byte.
        at += 3 + @as(usize, if (kind == 1) 1 else header >> 3);
        if (header & 1 != 0) break;
    }
    if (descriptor & 4 != 0) at += 4;
    return if (at > input.len) error.Damaged else at;
}

const testing = std.testing;

/// The same text packed by zlib 1.2.13, xz 5.4.1 and zstd 1.5.4.
const units = [_]struct { codec: Codec, hex: []const u8 }{
    .{ .codec = .xz, .hex = "fd377a585a0000016922de360200210116000000742fe5a301000f6120" ++
        "6b65726e656c206d6f64756c650a00e29c500700012410e944d9cc9042990d010000000001595a" },
    .{ .codec = .zstd, .hex = "28b52ffd241081000061206b65726e656c206d6f64756c650a2a78663f" },
    .{ .codec = .zlib, .hex = "78da4b54c84e2dca4bcd51c8cd4f29cd49e50200314005b3" },
};

test "a unit of each codec is unpacked, and damage is found" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var unpacker: Unpacker = .{};
    var output: [64]u8 = undefined;
    for (units) |unit| {
        try unpacker.reserve(arena.allocator(), unit.codec, 64);
        var buffer: [256]u8 = undefined;
        const input = try std.fmt.hexToBytes(&buffer, unit.hex);
        const size = try unpacker.unpack(unit.codec, input, &output);
        try testing.expectEqualStrings("a kernel module\n", output[0..size]);
        try testing.expectError(
            error.Damaged,
            unpacker.unpack(unit.codec, input[0 .. input.len / 2], &output),
        );
        try testing.expectError(error.Damaged, unpacker.unpack(unit.codec, input, output[0..15]));
        try testing.expectError(error.Damaged, unpacker.unpack(unit.codec, "no unit", &output));
    }
}
