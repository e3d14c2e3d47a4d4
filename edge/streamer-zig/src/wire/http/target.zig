//! Normalizes request targets to the one spelling that the rest of the program knows: absolute-form
//! targets lose scheme and host (RFC 9112 section 3.2.2), and unreserved characters their percent
//! encoding (RFC 3986 section 6.2.2.2). All other escapes stay: no published name contains them.

const std = @import("std");

/// Longer targets name nothing that is published.
pub const size_max = 1024;

pub const Error = error{Malformed};

/// Returns the path and query of a request line's target; begins with `/`. A slice of it.
pub fn pathOf(target: []const u8) Error![]const u8 {
    if (target.len == 0) return error.Malformed;
    if (target[0] == '/') return target;
    const scheme = "http://";
    if (target.len <= scheme.len or !std.ascii.eqlIgnoreCase(target[0..scheme.len], scheme))
        return error.Malformed;
    const rest = target[scheme.len..];
    const slash = std.mem.findScalar(u8, rest, '/') orelse return error.Malformed;
    if (slash == 0) return error.Malformed;
    for (rest[0..slash]) |byte| switch (byte) {
        'a'...'z', 'A'...'Z', '0'...'9', '.', '-', ':', '[', ']' => {},
        else => return error.Malformed,
    };
    return rest[slash..];
}

/// Writes the target without needless escapes; a slice of `buffer`.
pub fn decode(target: []const u8, buffer: *[size_max]u8) Error![]const u8 {
    var size: usize = 0;
    var index: usize = 0;
    while (index < target.len) {
        if (size == buffer.len) return error.Malformed;
        buffer[size] = target[index];
        if (target[index] == '%') {
            if (target.len - index < 3) return error.Malformed;
            const byte = try escaped(target[index + 1 ..][0..2]);
            if (isUnreserved(byte)) {
                buffer[size] = byte;
                index += 2;
            }
        }
        size += 1;
        index += 1;
    }
    return buffer[0..size];
}

fn escaped(digits: *const [2]u8) Error!u8 {
    // parseInt accepts signs and underscores, too.
    for (digits) |digit| if (!std.ascii.isHex(digit)) return error.Malformed;
    return std.fmt.parseInt(u8, digits, 16) catch return error.Malformed;
}

fn isUnreserved(byte: u8) bool {
    return std.ascii.isAlphanumeric(byte) or std.mem.findScalar(u8, "-._~", byte) != null;
}

const testing = std.testing;

fn expectDecoded(want: []const u8, target: []const u8) !void {
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(want, try decode(target, &buffer));
}

test "the path of an absolute target follows its host" {
    try testing.expectEqualStrings("/b/x?y", try pathOf("/b/x?y"));
    try testing.expectEqualStrings("/b/x?y", try pathOf("http://10.0.0.1:6980/b/x?y"));
    try testing.expectEqualStrings("/", try pathOf("HTTP://[fe80::1]/"));
    for ([_][]const u8{
        "",
        "*",
        "x",
        "http://",
        "http:///x",
        "http://host",
        "https://host/x",
        "http://a@b/x",
        "ftp://a/x",
    }) |other|
        try testing.expectError(error.Malformed, pathOf(other));
}

test "unreserved characters have one spelling, and other escapes stay" {
    try expectDecoded("/b/kernel", "/b/k%65rnel");
    try expectDecoded("/snp-only_x64.efi~", "/snp%2Donly%5fx64%2eefi%7E");
    try expectDecoded("/a%2fb%00%20%25", "/a%2fb%00%20%25");
    // Decoded once only.
    try expectDecoded("/%252e", "/%252e");
    var buffer: [size_max]u8 = undefined;
    for ([_][]const u8{ "/%", "/%4", "/%zz", "/%+1", "/%_1" }) |other|
        try testing.expectError(error.Malformed, decode(other, &buffer));
    const long: [size_max + 1]u8 = @splat('/');
    try testing.expectEqual(size_max, (try decode(long[0..size_max], &buffer)).len);
    try testing.expectError(error.Malformed, decode(&long, &buffer));
}
