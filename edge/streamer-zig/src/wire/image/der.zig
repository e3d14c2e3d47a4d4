//! Reads DER (ITU-T X.690) element by element, within bounds: definite lengths of at most four
//! bytes, tags of one byte. It only finds elements; it verifies no signature.

const std = @import("std");
const base = @import("base");

pub const Error = error{ Truncated, Malformed };

pub const tag = struct {
    pub const integer = 0x02;
    const octet_string = 0x04;
    pub const object_identifier = 0x06;
    pub const utf8_string = 0x0c;
    pub const printable_string = 0x13;
    pub const t61_string = 0x14;
    pub const ia5_string = 0x16;
    pub const sequence = 0x30;
    pub const set = 0x31;
    /// Context-specific and constructed: `[0]`.
    pub const context_0 = 0xa0;
};

pub const Element = struct {
    tag: u8,
    content: []const u8,
    /// With its tag and length.
    whole: []const u8,

    pub fn reader(element: Element) Reader {
        return .{ .cursor = .init(element.content) };
    }
};

pub const Reader = struct {
    cursor: base.Cursor,

    pub fn init(bytes: []const u8) Reader {
        return .{ .cursor = .init(bytes) };
    }

    /// Null at the end.
    pub fn next(reader: *Reader) Error!?Element {
        const cursor = &reader.cursor;
        if (cursor.remaining() == 0) return null;
        const begin = cursor.position;
        const found_tag = try cursor.int(u8);
        // No element that is needed has a tag of several bytes.
        if (found_tag & 0x1f == 0x1f) return error.Malformed;
        const content = try cursor.bytes(try size(cursor));
        return .{
            .tag = found_tag,
            .content = content,
            .whole = cursor.buffer[begin..cursor.position],
        };
    }

    /// Reads the next element, which must have this tag.
    pub fn expect(reader: *Reader, wanted: u8) Error!Element {
        const element = try reader.next() orelse return error.Truncated;
        return if (element.tag == wanted) element else error.Malformed;
    }

    fn size(cursor: *base.Cursor) Error!usize {
        const first = try cursor.int(u8);
        return switch (first) {
            0...0x7f => first,
            0x81 => try cursor.int(u8),
            0x82 => try cursor.int(u16),
            0x83 => try cursor.int(u24),
            0x84 => try cursor.int(u32),
            // 0x80 is BER's indefinite length, and nothing is longer than 4 GiB.
            else => error.Malformed,
        };
    }
};

const testing = std.testing;

test "elements follow each other and hold others" {
    const bytes = "\x30\x06\x02\x01\x05\x0c\x01x\x04\x81\x02ab";
    var reader: Reader = .init(bytes);
    const sequence = try reader.expect(tag.sequence);
    try testing.expectEqualSlices(u8, bytes[0..8], sequence.whole);
    var inner = sequence.reader();
    try testing.expectEqualStrings("\x05", (try inner.expect(tag.integer)).content);
    try testing.expectEqualStrings("x", (try inner.expect(tag.utf8_string)).content);
    try testing.expectEqual(null, try inner.next());
    try testing.expectError(error.Truncated, inner.expect(tag.integer));
    try testing.expectEqualStrings("ab", (try reader.expect(tag.octet_string)).content);
}

test "a length beyond the end, an indefinite length and a long tag are refused" {
    for ([_][]const u8{
        "\x30\x03\x02\x01",
        "\x30",
        "\x30\x84\xff\xff\xff\xff",
        "\x30\x82\x01",
    }) |bytes| {
        var reader: Reader = .init(bytes);
        try testing.expectError(error.Truncated, reader.next());
    }
    for ([_][]const u8{ "\x30\x80\x00\x00", "\x30\x85\x00", "\x1f\x81\x01\x00" }) |bytes| {
        var reader: Reader = .init(bytes);
        try testing.expectError(error.Malformed, reader.next());
    }
    var reader: Reader = .init("\x02\x01\x05");
    try testing.expectError(error.Malformed, reader.expect(tag.sequence));
}
