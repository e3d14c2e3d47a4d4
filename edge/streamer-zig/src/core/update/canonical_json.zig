//! Canonical JSON (the OLPC form that the TUF specification, section 4.1, names): the bytes over
//! which TUF metadata is signed. Keys are sorted by code point, nothing is escaped except `"` and
//! `\`, and numbers are integers. A text with two fields of one name, or nested deeper than any
//! metadata, is refused, since two readers could understand it differently.

const std = @import("std");
const base = @import("base");
const Allocator = std.mem.Allocator;

pub const Value = std.json.Value;
pub const Error = error{ Malformed, OutOfMemory };

/// A target's `custom` lies six levels deep.
const depth_max = 16;

/// Everything returned lives in `arena`. Numbers stay text.
pub fn parse(arena: Allocator, text: []const u8) Error!Value {
    return std.json.parseFromSliceLeaky(Value, arena, text, .{
        .duplicate_field_behavior = .@"error",
        .parse_numbers = false,
    }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.Malformed,
    };
}

/// Returns the canonical bytes of a parsed value, in `arena`.
pub fn encode(arena: Allocator, value: *const Value) Error![]const u8 {
    var out: std.Io.Writer.Allocating = .init(arena);
    write(arena, &out.writer, value, 0) catch |err| return switch (err) {
        error.Malformed => error.Malformed,
        error.OutOfMemory, error.WriteFailed => error.OutOfMemory,
    };
    return out.written();
}

const WriteError = Error || std.Io.Writer.Error;

fn write(arena: Allocator, out: *std.Io.Writer, value: *const Value, depth: u32) WriteError!void {
    if (depth == depth_max) return error.Malformed;
    switch (value.*) {
        .null => try out.writeAll("null"),
        .bool => |is_true| try out.writeAll(if (is_true) "true" else "false"),
        .number_string => |text| try out.print("{d}", .{try integer(text)}),
        .string => |text| try writeString(out, text),
        .array => |items| {
            try out.writeByte('[');
            for (items.items, 0..) |*item, index| {
                if (index > 0) try out.writeByte(',');
                try write(arena, out, item, depth + 1);
            }
            try out.writeByte(']');
        },
        .object => |*fields| try writeObject(arena, out, fields, depth),
        // `parse` leaves numbers as text.
        .integer, .float => unreachable,
    }
}

fn writeObject(
    arena: Allocator,
    out: *std.Io.Writer,
    fields: *const std.json.ObjectMap,
    depth: u32,
) WriteError!void {
    // The order of UTF-8 bytes is that of code points.
    const names = try arena.dupe([]const u8, fields.keys());
    base.sort([]const u8, names, {}, isBefore);
    try out.writeByte('{');
    for (names, 0..) |name, index| {
        if (index > 0) try out.writeByte(',');
        try writeString(out, name);
        try out.writeByte(':');
        try write(arena, out, fields.getPtr(name).?, depth + 1);
    }
    try out.writeByte('}');
}

fn isBefore(_: void, one: []const u8, other: []const u8) bool {
    return std.mem.order(u8, one, other) == .lt;
}

fn writeString(out: *std.Io.Writer, text: []const u8) std.Io.Writer.Error!void {
    try out.writeByte('"');
    for (text) |byte| {
        if (byte == '"' or byte == '\\') try out.writeByte('\\');
        try out.writeByte(byte);
    }
    try out.writeByte('"');
}

/// Fractions and exponents have no canonical form.
pub fn integer(text: []const u8) error{Malformed}!i64 {
    return std.fmt.parseInt(i64, text, 10) catch error.Malformed;
}

const testing = std.testing;

fn expectCanonical(want: []const u8, text: []const u8) !void {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const value = try parse(arena.allocator(), text);
    try testing.expectEqualStrings(want, try encode(arena.allocator(), &value));
}

fn expectMalformed(text: []const u8) !void {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const value = parse(arena.allocator(), text) catch |err|
        return testing.expectEqual(error.Malformed, err);
    try testing.expectError(error.Malformed, encode(arena.allocator(), &value));
}

test "keys are sorted by code point and white space is dropped" {
    try expectCanonical(
        "{\"B\":[1,-2,{}],\"a\":{\"y\":null,\"z\":true},\"\u{e9}\":false,\"\u{1f600}\":\"\"}",
        "{ \"\\ud83d\\ude00\":\"\", \"a\" : {\"z\": true,\n\"y\":null}, \"\u{e9}\":false," ++
            " \"B\": [1, -2, {}] }",
    );
}

test "only the quote and the backslash are escaped" {
    try expectCanonical("\"\\\"\\\\\n\x01/\"", "\"\\u0022\\\\\\n\\u0001\\/\"");
}

test "what has no canonical form is refused" {
    for ([_][]const u8{
        "1.5",
        "1e3",
        "99999999999999999999",
        "{\"a\":1,\"a\":1}",
        "{\"a\":{\"b\":1,\"b\":2}}",
        "\"\\ud800\"",
        "\"\xff\"",
        "[1,]",
        "",
        "{} {}",
    }) |text| try expectMalformed(text);
    try expectCanonical("0", "-0");
}

test "what is nested deeper than any metadata is refused" {
    const opened: [depth_max + 1]u8 = @splat('[');
    const closed: [depth_max + 1]u8 = @splat(']');
    const deep = opened ++ closed;
    try expectCanonical(deep[1 .. deep.len - 1], deep[1 .. deep.len - 1]);
    try expectMalformed(&deep);
}
