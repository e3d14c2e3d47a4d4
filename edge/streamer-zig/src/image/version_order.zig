//! Orders versions as distributions do (deb-version(7)): runs of digits as numbers, text between
//! them with letters first. `~` sorts before the end, and so does `-rc` of a kernel.

const std = @import("std");
const Order = std.math.Order;

pub fn compare(a: []const u8, b: []const u8) Order {
    var left: Side = .{ .text = a };
    var right: Side = .{ .text = b };
    while (left.text.len > 0 or right.text.len > 0) {
        while (left.isText() or right.isText()) {
            const order = std.math.order(left.weight(), right.weight());
            if (order != .eq) return order;
            left.skip();
            right.skip();
        }
        const order = compareDigits(left.digits(), right.digits());
        if (order != .eq) return order;
    }
    return .eq;
}

const Side = struct {
    text: []const u8,

    fn isText(side: *const Side) bool {
        return side.text.len > 0 and !std.ascii.isDigit(side.text[0]);
    }

    fn weight(side: *const Side) u16 {
        if (!side.isText()) return 1;
        const byte = side.text[0];
        if (byte == '~' or std.mem.startsWith(u8, side.text, "-rc")) return 0;
        return if (std.ascii.isAlphabetic(byte)) byte else @as(u16, byte) + 256;
    }

    fn skip(side: *Side) void {
        if (side.isText()) side.text = side.text[1..];
    }

    /// Without leading zeros.
    fn digits(side: *Side) []const u8 {
        const end = for (side.text, 0..) |byte, index| {
            if (!std.ascii.isDigit(byte)) break index;
        } else side.text.len;
        defer side.text = side.text[end..];
        return std.mem.trimStart(u8, side.text[0..end], "0");
    }
};

fn compareDigits(a: []const u8, b: []const u8) Order {
    if (a.len != b.len) return std.math.order(a.len, b.len);
    return std.mem.order(u8, a, b);
}

test "versions are in the order of distributions" {
    const ordered = [_][]const u8{
        "",                            "0-rescue-4a1b",               "5.10.0-28-amd64",
        "5.14.0-70.13.1.el9_0.x86_64", "5.14.0-362.8.1.el9_3.x86_64", "6.1.0-9-amd64",
        "6.1.0-18-amd64",              "6.1.0-18-cloud-amd64",        "6.9.0-rc3",
        "6.9.0",                       "6.10.0~rc1",                  "6.10.0",
        "6.10.0-061000-generic",
    };
    for (ordered, 0..) |a, left| for (ordered, 0..) |b, right|
        try std.testing.expectEqual(std.math.order(left, right), compare(a, b));
    try std.testing.expectEqual(Order.eq, compare("6.01", "6.1"));
    try std.testing.expectEqual(Order.lt, compare("6.9", "6.99999999999999999999999999999999"));
}
