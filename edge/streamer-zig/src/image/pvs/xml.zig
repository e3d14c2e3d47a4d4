//! Reads small XML files without memory of its own: elements and text, in order. Specification:
//! W3C, "Extensible Markup Language (XML) 1.0", fifth edition; its sections are named below.
//! Document types are refused, so that no entity can be declared.

const std = @import("std");

/// Elements within elements.
pub const depth_max = 16;

/// `NotUtf8`: another encoding. `HasDoctype`: declares entities or loads other files.
pub const Fault = error{
    NotUtf8,
    Truncated,
    Malformed,
    HasDoctype,
    TooDeep,
    UnknownEntity,
    TooLong,
};

/// Names and text are slices of the file.
pub const Event = union(enum) {
    open: []const u8,
    close: []const u8,
    text: Text,
};

pub const Text = struct {
    bytes: []const u8,
    /// Of a CDATA section, which has no entities.
    is_literal: bool,

    /// Replaces entities; returns the number of bytes.
    pub fn write(text: Text, into: []u8) Fault!usize {
        if (text.is_literal) return copy(into, 0, text.bytes);
        var size: usize = 0;
        var at: usize = 0;
        while (at < text.bytes.len) {
            const rest = text.bytes[at..];
            const plain = std.mem.findScalar(u8, rest, '&') orelse rest.len;
            size = try copy(into, size, rest[0..plain]);
            if (plain == rest.len) break;
            const end = std.mem.findScalar(u8, rest[plain..], ';') orelse
                return error.UnknownEntity;
            var buffer: [4]u8 = undefined;
            size = try copy(into, size, try entity(rest[plain + 1 .. plain + end], &buffer));
            at += plain + end + 1;
        }
        return size;
    }

    fn copy(into: []u8, size: usize, bytes: []const u8) Fault!usize {
        if (bytes.len > into.len - size) return error.TooLong;
        @memcpy(into[size..][0..bytes.len], bytes);
        return size + bytes.len;
    }
};

/// Section 4.6: five names, and numbers of characters.
fn entity(name: []const u8, buffer: *[4]u8) Fault![]const u8 {
    const known = [_]struct { []const u8, []const u8 }{
        .{ "amp", "&" }, .{ "lt", "<" }, .{ "gt", ">" }, .{ "quot", "\"" }, .{ "apos", "'" },
    };
    for (known) |pair| if (std.mem.eql(u8, name, pair[0])) return pair[1];
    if (name.len < 2 or name.len > 10 or name[0] != '#') return error.UnknownEntity;
    const is_hex = name[1] == 'x';
    const digits = name[if (is_hex) 2 else 1..];
    for (digits) |char| if (!std.ascii.isHex(char)) return error.UnknownEntity;
    const code = std.fmt.parseInt(u21, digits, if (is_hex) 16 else 10) catch
        return error.UnknownEntity;
    if (code == 0) return error.UnknownEntity;
    const size = std.unicode.utf8Encode(code, buffer) catch return error.UnknownEntity;
    return buffer[0..size];
}

pub const Xml = @This();

bytes: []const u8,
at: usize,
names: [depth_max][]const u8 = undefined,
depth: usize = 0,
/// The element was opened and closed by one tag.
is_closing: bool = false,
is_root_read: bool = false,

/// Skips the mark at the start that Windows writes.
pub fn init(bytes: []const u8) Fault!Xml {
    const mark = "\xef\xbb\xbf";
    if (!std.unicode.utf8ValidateSlice(bytes)) return error.NotUtf8;
    // Also text of 16 bits without a mark, whose second byte is zero.
    if (std.mem.findScalar(u8, bytes, 0) != null) return error.NotUtf8;
    return .{ .bytes = bytes, .at = if (std.mem.startsWith(u8, bytes, mark)) mark.len else 0 };
}

/// Null at the end. Text outside of the root is only white space, and not returned.
pub fn next(xml: *Xml) Fault!?Event {
    if (xml.is_closing) {
        xml.is_closing = false;
        return xml.pop();
    }
    while (xml.at < xml.bytes.len) {
        const rest = xml.bytes[xml.at..];
        if (rest[0] != '<') {
            const size = std.mem.findScalar(u8, rest, '<') orelse rest.len;
            xml.at += size;
            if (xml.depth > 0) return .{ .text = .{ .bytes = rest[0..size], .is_literal = false } };
            if (std.mem.trim(u8, rest[0..size], space).len > 0) return error.Malformed;
            continue;
        }
        if (std.mem.startsWith(u8, rest, "<?")) {
            _ = try xml.skipTo("?>");
        } else if (std.mem.startsWith(u8, rest, "<!--")) {
            xml.at += "<!--".len;
            _ = try xml.skipTo("-->");
        } else if (std.mem.startsWith(u8, rest, "<![CDATA[")) {
            if (xml.depth == 0) return error.Malformed;
            xml.at += "<![CDATA[".len;
            return .{ .text = .{ .bytes = try xml.skipTo("]]>"), .is_literal = true } };
        } else if (std.mem.startsWith(u8, rest, "<!")) {
            return error.HasDoctype;
        } else return try xml.tag();
    }
    if (xml.depth > 0) return error.Truncated;
    return if (xml.is_root_read) null else error.Malformed;
}

const space = " \t\r\n";

fn skipTo(xml: *Xml, comptime end: []const u8) Fault![]const u8 {
    const rest = xml.bytes[xml.at..];
    const size = std.mem.find(u8, rest, end) orelse return error.Truncated;
    xml.at += size + end.len;
    return rest[0..size];
}

/// Section 3.1. Attributes are skipped; a bracket in one does not end the tag.
fn tag(xml: *Xml) Fault!Event {
    const start = xml.at + 1;
    var quote: ?u8 = null;
    const end = for (xml.bytes[start..], start..) |char, at| {
        if (quote) |open| {
            if (char == open) quote = null;
        } else if (char == '"' or char == '\'') {
            quote = char;
        } else if (char == '<') {
            return error.Malformed;
        } else if (char == '>') break at;
    } else return error.Truncated;
    xml.at = end + 1;
    const inside = xml.bytes[start..end];
    if (std.mem.startsWith(u8, inside, "/")) {
        const name = std.mem.trimEnd(u8, inside[1..], space);
        if (xml.depth == 0 or !std.mem.eql(u8, name, xml.names[xml.depth - 1]))
            return error.Malformed;
        return xml.pop();
    }
    xml.is_closing = std.mem.endsWith(u8, inside, "/");
    const size = std.mem.findAny(u8, inside, space ++ "/") orelse inside.len;
    return xml.push(inside[0..size]);
}

fn push(xml: *Xml, name: []const u8) Fault!Event {
    if (!isName(name)) return error.Malformed;
    if (xml.depth == 0 and xml.is_root_read) return error.Malformed;
    if (xml.depth == depth_max) return error.TooDeep;
    xml.is_root_read = true;
    xml.names[xml.depth] = name;
    xml.depth += 1;
    return .{ .open = name };
}

fn pop(xml: *Xml) Event {
    std.debug.assert(xml.depth > 0);
    xml.depth -= 1;
    return .{ .close = xml.names[xml.depth] };
}

/// Names of ASCII alone.
fn isName(name: []const u8) bool {
    if (name.len == 0 or std.ascii.isDigit(name[0])) return false;
    for (name) |char|
        if (!std.ascii.isAlphanumeric(char) and std.mem.findScalar(u8, "_-.:", char) == null)
            return false;
    return true;
}

/// Describes a fault as the end of a sentence that starts with the name of the file.
pub fn sentence(fault: Fault) []const u8 {
    return switch (fault) {
        error.NotUtf8 => "is not text in UTF-8. Export the vDisk again, or save the file as UTF-8",
        error.Truncated => "is truncated. Copy it again",
        error.Malformed => "is not well-formed XML. Export the vDisk again",
        error.HasDoctype => "has a document type, which no manifest has",
        error.TooDeep => "has elements nested too deeply for a manifest",
        error.UnknownEntity => "has an entity that XML does not define",
        error.TooLong => "has a text that is longer than any of a manifest",
    };
}

const testing = std.testing;

fn expectEvents(text: []const u8, expected: []const u8) !void {
    var xml: Xml = try .init(text);
    var buffer: [512]u8 = undefined;
    var size: usize = 0;
    while (try xml.next()) |event| {
        const sign: u8, const bytes = switch (event) {
            .open => |name| .{ '<', name },
            .close => |name| .{ '>', name },
            .text => |found| .{ '=', found.bytes },
        };
        buffer[size] = sign;
        @memcpy(buffer[size + 1 ..][0..bytes.len], bytes);
        size += 1 + bytes.len;
    }
    try testing.expectEqualStrings(expected, buffer[0..size]);
}

test "elements and text come in their order, and all else is skipped" {
    try expectEvents("<a/>", "<a>a");
    try expectEvents(
        "\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<!-- <x> --><a b='>' c=\"/\">" ++
            "<b>1 &amp; 2</b><c d='' /></a>\n",
        "<a<b=1 &amp; 2>b<c>c>a",
    );
    try expectEvents("<a><![CDATA[<b>&]]></a >", "<a=<b>&>a");
}

fn faultOf(text: []const u8) Fault!void {
    var xml: Xml = try .init(text);
    for (0..text.len + 2) |_| _ = try xml.next() orelse return;
}

test "each fault has its name" {
    for ([_]struct { Fault, []const u8 }{
        .{ error.NotUtf8, "<a>\xff</a>" },
        .{ error.NotUtf8, "<\x00a\x00/\x00>\x00" },
        .{ error.Truncated, "<a>" },
        .{ error.Truncated, "<a" },
        .{ error.Truncated, "<a b='></a>" },
        .{ error.Truncated, "<a><!-- </a>" },
        .{ error.Truncated, "<?xml" },
        .{ error.Malformed, "" },
        .{ error.Malformed, "text" },
        .{ error.Malformed, "<a></b>" },
        .{ error.Malformed, "</a>" },
        .{ error.Malformed, "<a/><b/>" },
        .{ error.Malformed, "<a/>x" },
        .{ error.Malformed, "<a<b>" },
        .{ error.Malformed, "< a/>" },
        .{ error.Malformed, "<1/>" },
        .{ error.HasDoctype, "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>" },
        .{ error.TooDeep, "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>" },
    }) |case| try testing.expectError(case[0], faultOf(case[1]));
}

test "entities become characters" {
    var buffer: [16]u8 = undefined;
    const text: Text = .{ .bytes = "&lt;&#228;&#x41;&quot;&apos;&gt;", .is_literal = false };
    try testing.expectEqualStrings("<\xc3\xa4A\"'>", buffer[0..try text.write(&buffer)]);
    const literal: Text = .{ .bytes = "&b;", .is_literal = true };
    try testing.expectEqualStrings("&b;", buffer[0..try literal.write(&buffer)]);
    for ([_][]const u8{
        "&", "&b;", "&#;", "&#x;", "&#0;", "&#xd800;", "&#1114112;", "&#-1;",
    }) |bytes| try testing.expectError(
        error.UnknownEntity,
        (Text{ .bytes = bytes, .is_literal = false }).write(&buffer),
    );
    const long: [17]u8 = @splat('a');
    try testing.expectError(
        error.TooLong,
        (Text{ .bytes = &long, .is_literal = true }).write(&buffer),
    );
}
