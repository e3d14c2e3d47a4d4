//! Text chosen by a device. It is bounded and printable from the moment it enters, and reaches
//! logs, JSON or scripts only through the encoders of their writers.

const std = @import("std");
const assert = std.debug.assert;

/// At most 64 bytes of printable ASCII; every other byte was replaced by `?` (UPLINK.md, boot
/// reports).
pub const UntrustedText = @This();

buffer: [size_max]u8 = @splat(0),
size: u8 = 0,

pub const size_max = 64;
pub const empty: UntrustedText = .{};

/// Longer text is truncated.
pub fn init(raw: []const u8) UntrustedText {
    var text: UntrustedText = .empty;
    const size = @min(raw.len, size_max);
    for (text.buffer[0..size], raw[0..size]) |*kept, byte|
        kept.* = if (std.ascii.isPrint(byte)) byte else '?';
    text.size = @intCast(size);
    return text;
}

pub fn slice(text: *const UntrustedText) []const u8 {
    assert(text.size <= size_max);
    return text.buffer[0..text.size];
}

pub fn jsonParse(
    allocator: std.mem.Allocator,
    source: anytype,
    options: std.json.ParseOptions,
) !UntrustedText {
    return .init(try std.json.innerParse([]const u8, allocator, source, options));
}

pub fn eql(a: *const UntrustedText, b: *const UntrustedText) bool {
    return std.mem.eql(u8, a.slice(), b.slice());
}

/// Writes the text between quotes; a quote or backslash inside becomes `?` so that a log line
/// keeps its fields.
pub fn format(text: UntrustedText, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.writeByte('"');
    for (text.buffer[0..text.size]) |byte|
        try writer.writeByte(if (byte == '"' or byte == '\\') '?' else byte);
    try writer.writeByte('"');
}

/// A JSON string for `std.json.Stringify`.
pub fn jsonStringify(text: UntrustedText, json: anytype) !void {
    try json.write(text.buffer[0..text.size]);
}

const testing = std.testing;

test "only printable ASCII is kept and the rest becomes a question mark" {
    const text: UntrustedText = .init("a\x00b\x1b[31m\xff~ ");
    try testing.expectEqualStrings("a?b?[31m?~ ", text.slice());
}

test "a text longer than 64 bytes is cut" {
    const long: [300]u8 = @splat('x');
    const text: UntrustedText = .init(&long);
    try testing.expectEqual(64, text.slice().len);
}

test "a printed text cannot end its own quotes" {
    var buffer: [32]u8 = undefined;
    const text: UntrustedText = .init("a\" id=\\");
    try testing.expectEqualStrings("\"a? id=?\"", try std.mem.print(&buffer, "{f}", .{text}));
}
