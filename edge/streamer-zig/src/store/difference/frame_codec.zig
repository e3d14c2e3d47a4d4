//! Packs and unpacks the frames of a difference, one at a time, in memory of fixed size.

const std = @import("std");
const format = @import("format.zig");
const assert = std.debug.assert;
const flate = std.compress.flate;
const Allocator = std.mem.Allocator;

/// Smaller frames are not worth it.
const size_min = 512;
/// Together a sixteenth of the largest frame.
const samples = 4;
const sample_size = 16 << 10;
const sampled_size_min = 256 << 10;

pub const Packer = struct {
    /// 225 KiB: too large for a thread's stack.
    state: *flate.Compress,
    window: *[flate.max_window_len]u8,
    output: *[format.raw_size_max]u8,

    pub fn init(gpa: Allocator) error{OutOfMemory}!Packer {
        const state = try gpa.create(flate.Compress);
        errdefer gpa.destroy(state);
        const window = try gpa.create([flate.max_window_len]u8);
        errdefer gpa.destroy(window);
        return .{
            .state = state,
            .window = window,
            .output = try gpa.create([format.raw_size_max]u8),
        };
    }

    pub fn deinit(packer: *Packer, gpa: Allocator) void {
        gpa.destroy(packer.output);
        gpa.destroy(packer.window);
        gpa.destroy(packer.state);
        packer.* = undefined;
    }

    /// Valid until the next call; null if the frame is to be stored as it is.
    pub fn deflate(packer: *Packer, raw: []const u8) ?[]const u8 {
        assert(raw.len <= format.raw_size_max);
        if (raw.len < size_min or !packer.isWorthIt(raw)) return null;
        return packer.deflateBelow(raw.len, raw);
    }

    /// Returns null if it takes at least so many bytes.
    fn deflateBelow(packer: *Packer, limit: usize, raw: []const u8) ?[]const u8 {
        var writer: std.Io.Writer = .fixed(packer.output[0 .. limit - 1]);
        packer.write(&writer, raw) catch return null;
        return writer.buffered();
    }

    /// Of a large frame, some samples decide: much in an image is packed or encrypted already, and
    /// deflate takes longest where it finds nothing.
    fn isWorthIt(packer: *Packer, raw: []const u8) bool {
        if (raw.len < sampled_size_min) return true;
        const step = raw.len / samples;
        for (0..samples) |index| {
            const sample = raw[index * step + (step - sample_size) / 2 ..][0..sample_size];
            if (packer.deflateBelow(sample_size - sample_size / 32, sample) != null) return true;
        }
        return false;
    }

    fn write(
        packer: *Packer,
        writer: *std.Io.Writer,
        raw: []const u8,
    ) std.Io.Writer.Error!void {
        packer.state.* = try .init(writer, packer.window, .raw, level);
        try packer.state.writer.writeAll(raw);
        try packer.state.finish();
    }
};

/// docs/results/2026-11-28-differences.md has the measurement.
const level: flate.Compress.Options = .level_4;

/// Fills `raw`; returns false if the packed bytes do not give exactly that many.
///
/// @param window `flate.max_window_len` bytes
pub fn inflate(packed_bytes: []const u8, raw: []u8, window: []u8) bool {
    var input: std.Io.Reader = .fixed(packed_bytes);
    var decompress: flate.Decompress = .init(&input, .raw, window);
    decompress.reader.readSliceAll(raw) catch return false;
    var more: [1]u8 = undefined;
    return (decompress.reader.readSliceShort(&more) catch return false) == 0;
}

const testing = std.testing;

test "a frame that shrinks is packed and unpacked, and any other is stored" {
    var packer: Packer = try .init(testing.allocator);
    defer packer.deinit(testing.allocator);
    const raw = try testing.allocator.alloc(u8, format.raw_size_max);
    defer testing.allocator.free(raw);
    const again = try testing.allocator.alloc(u8, raw.len);
    defer testing.allocator.free(again);
    const window = try testing.allocator.alloc(u8, flate.max_window_len);
    defer testing.allocator.free(window);
    var prng: std.Random.DefaultPrng = .init(1);
    for (raw, 0..) |*byte, at| byte.* = @truncate(at / 40 * 7 + at / 4096);
    for ([_]usize{ size_min, 4096 + 12, 65536, format.raw_size_max }) |size| {
        const packed_bytes = packer.deflate(raw[0..size]) orelse return error.NotPacked;
        try testing.expect(packed_bytes.len < size);
        const part = packed_bytes[0 .. packed_bytes.len - 1];
        try testing.expect(inflate(packed_bytes, again[0..size], window));
        try testing.expectEqualSlices(u8, raw[0..size], again[0..size]);
        // One byte less or more than was packed, and a packed byte less.
        try testing.expect(!inflate(packed_bytes, again[0 .. size - 1], window));
        if (size < raw.len)
            try testing.expect(!inflate(packed_bytes, again[0 .. size + 1], window));
        try testing.expect(!inflate(part, again[0..size], window));
    }
    const large = raw[0..sampled_size_min];
    prng.random().bytes(raw);
    try testing.expectEqual(null, packer.deflate(raw));
    try testing.expectEqual(null, packer.deflate(large));
    // One sample that shrinks is enough.
    const step = large.len / samples;
    @memset(large[3 * step + (step - sample_size) / 2 ..][0 .. sample_size / 16], 'z');
    const packed_bytes = packer.deflate(large) orelse return error.NotPacked;
    try testing.expect(inflate(packed_bytes, again[0..large.len], window));
    try testing.expectEqualSlices(u8, large, again[0..large.len]);
    prng.random().bytes(raw);
    try testing.expectEqual(null, packer.deflate(raw[0 .. size_min - 1]));
}
