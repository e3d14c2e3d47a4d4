//! Compresses a batch of reports (RFC 1952) if the API accepts that (packages/proto/UPLINK.md,
//! "Compressed batches"). Never produces a body that an API would refuse as a decompression bomb.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;
const flate = std.compress.flate;

/// Smaller bodies fit one packet as they are.
pub const size_min = 1024;
/// An API refuses bodies that expand by more than this; such a batch is sent uncompressed.
pub const ratio_max = 100;

pub const BatchGzip = @This();

/// 225 KiB: too large for a thread's stack.
state: *flate.Compress,
window: *[flate.max_window_len]u8,
output: []u8,

/// `size_max`: of the largest body.
pub fn init(gpa: std.mem.Allocator, size_max: usize) error{OutOfMemory}!BatchGzip {
    assert(size_max > size_min);
    const state = try gpa.create(flate.Compress);
    errdefer gpa.destroy(state);
    const window = try gpa.create([flate.max_window_len]u8);
    errdefer gpa.destroy(window);
    const output = try base.allocUntouched(gpa, u8, size_max);
    return .{ .state = state, .window = window, .output = output };
}

pub fn deinit(gzip: *BatchGzip, gpa: std.mem.Allocator) void {
    base.freeUntouched(gpa, u8, gzip.output);
    gpa.destroy(gzip.window);
    gpa.destroy(gzip.state);
    gzip.* = undefined;
}

/// Valid until the next call; null if the body is to be sent uncompressed.
pub fn compress(gzip: *BatchGzip, body: []const u8) ?[]const u8 {
    assert(body.len <= gzip.output.len);
    if (body.len < size_min) return null;
    var writer: std.Io.Writer = .fixed(gzip.output[0 .. body.len - 1]);
    gzip.write(&writer, body) catch return null;
    const compressed = writer.buffered();
    if (compressed.len * ratio_max < body.len) return null;
    return compressed;
}

fn write(gzip: *BatchGzip, writer: *std.Io.Writer, body: []const u8) std.Io.Writer.Error!void {
    gzip.state.* = try .init(writer, gzip.window, .gzip, .default);
    try gzip.state.writer.writeAll(body);
    try gzip.state.finish();
}

const testing = std.testing;

fn expectRoundTrip(gzip: *BatchGzip, body: []const u8) !void {
    const compressed = gzip.compress(body) orelse return error.NotCompressed;
    try testing.expect(compressed.len < body.len);
    var window: [flate.max_window_len]u8 = undefined;
    var reader: std.Io.Reader = .fixed(compressed);
    var decompress: flate.Decompress = .init(&reader, .gzip, &window);
    const again = try decompress.reader.allocRemaining(testing.allocator, .limited(body.len + 1));
    defer testing.allocator.free(again);
    try testing.expectEqualStrings(body, again);
}

test "consecutive batches decompress to what was compressed" {
    var gzip: BatchGzip = try .init(testing.allocator, 64 * 1024);
    defer gzip.deinit(testing.allocator);
    var body: [64 * 1024]u8 = undefined;
    for ([_]usize{ size_min, 5000, 64 * 1024, 1500 }) |size| {
        var writer: std.Io.Writer = .fixed(body[0..size]);
        var number: u64 = 1;
        while (writer.print("{{\"seq\":{d},\"x\":{d}}},", .{ number, number *% 0x9e3779b9 % 1000 }))
            number += 1
        else |_| {}
        try expectRoundTrip(&gzip, body[0..size]);
    }
}

test "a body that is small, does not shrink or looks like a bomb is sent uncompressed" {
    var gzip: BatchGzip = try .init(testing.allocator, 64 * 1024);
    defer gzip.deinit(testing.allocator);
    var body: [64 * 1024]u8 = @splat(' ');
    try testing.expectEqual(null, gzip.compress(body[0 .. size_min - 1]));
    try testing.expectEqual(null, gzip.compress(&body));
    var prng: std.Random.DefaultPrng = .init(1);
    prng.random().bytes(&body);
    try testing.expectEqual(null, gzip.compress(&body));
}
