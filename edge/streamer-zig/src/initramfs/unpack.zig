//! Decompresses kernel modules, which distributions store in different formats.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Packing = @import("module_table.zig").Packing;

/// Longest module, decompressed.
pub const size_max = 256 << 20;

/// Returns the module in `content`, which is kept or copied into `arena`.
pub fn unpack(
    arena: Allocator,
    packing: Packing,
    content: []const u8,
) error{ OutOfMemory, CannotUnpack }![]const u8 {
    return unpackAny(arena, packing, content) catch |reason| switch (reason) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.CannotUnpack,
    };
}

fn unpackAny(arena: Allocator, packing: Packing, content: []const u8) ![]const u8 {
    var in: std.Io.Reader = .fixed(content);
    const limit: std.Io.Limit = .limited(size_max);
    switch (packing) {
        .plain => return content,
        .gzip => {
            const window = try arena.alloc(u8, std.compress.flate.max_window_len);
            var unpacker: std.compress.flate.Decompress = .init(&in, .gzip, window);
            return unpacker.reader.allocRemaining(arena, limit);
        },
        .xz => {
            var unpacker: std.compress.xz.Decompress = try .init(&in, arena, &.{});
            return unpacker.reader.allocRemaining(arena, limit);
        },
        .zstd => {
            const options: std.compress.zstd.Decompress.Options = .{};
            const window =
                try arena.alloc(u8, options.window_len + std.compress.zstd.block_size_max);
            var unpacker: std.compress.zstd.Decompress = .init(&in, window, options);
            return unpacker.reader.allocRemaining(arena, limit);
        },
    }
}

const testing = std.testing;

/// The same text compressed by gzip 1.12, xz 5.4.1 and zstd 1.5.4.
const packed_text = [_]struct { packing: Packing, hex: []const u8 }{
    .{
        .packing = .gzip,
        .hex = "1f8b08000000000002034b54c84e2dca4bcd51c8cd4f29cd49e50200e29c500710000000",
    },
    .{ .packing = .xz, .hex = "fd377a585a0000016922de360200210116000000742fe5a301000f6120" ++
        "6b65726e656c206d6f64756c650a00e29c500700012410e944d9cc9042990d010000000001595a" },
    .{ .packing = .zstd, .hex = "28b52ffd241081000061206b65726e656c206d6f64756c650a2a78663f" },
};

test "a module is decompressed from each format that distributions use" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    for (packed_text) |case| {
        var buffer: [256]u8 = undefined;
        const bytes = try std.fmt.hexToBytes(&buffer, case.hex);
        try testing.expectEqualStrings(
            "a kernel module\n",
            try unpack(arena.allocator(), case.packing, bytes),
        );
    }
    try testing.expectEqualStrings("as it is", try unpack(arena.allocator(), .plain, "as it is"));
}

test "truncated and foreign content is refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    for (packed_text) |case| {
        var buffer: [256]u8 = undefined;
        const bytes = try std.fmt.hexToBytes(&buffer, case.hex);
        const cut = bytes[0 .. bytes.len / 2];
        try testing.expectError(error.CannotUnpack, unpack(arena.allocator(), case.packing, cut));
        try testing.expectError(
            error.CannotUnpack,
            unpack(arena.allocator(), case.packing, "\x7fELF"),
        );
    }
}
