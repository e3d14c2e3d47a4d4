//! Matches a name with an alias of a kernel module, as libkmod does: `*`, `?` and `[...]` match as
//! in fnmatch(3), and a dash equals an underscore. `modules.alias` and modprobe.d(5) hold aliases.

const std = @import("std");

/// Patterns come from an image, so the steps of one match are bounded.
const steps_max = 1 << 14;

/// Returns whether `name` fits `pattern`.
pub fn matches(pattern: []const u8, name: []const u8) bool {
    var at: usize = 0;
    var pattern_at: usize = 0;
    // Where matching continues after the last star, with that star taking one more byte.
    var star: ?usize = null;
    var star_at: usize = 0;
    for (0..steps_max) |_| {
        if (pattern_at < pattern.len and pattern[pattern_at] == '*') {
            star = pattern_at + 1;
            star_at = at;
            pattern_at += 1;
        } else if (at == name.len) {
            return pattern_at == pattern.len;
        } else if (one(pattern, pattern_at, name[at])) |next| {
            pattern_at = next;
            at += 1;
        } else {
            pattern_at = star orelse return false;
            star_at += 1;
            at = star_at;
        }
    }
    return false;
}

/// Returns the pattern's next place if its element at `at` matches the byte.
fn one(pattern: []const u8, at: usize, byte: u8) ?usize {
    if (at == pattern.len) return null;
    switch (pattern[at]) {
        '?' => return at + 1,
        '[' => {
            const end = std.mem.findScalarPos(u8, pattern, at, ']') orelse return null;
            return if (isInSet(pattern[at + 1 .. end], byte)) end + 1 else null;
        },
        else => |wanted| return if (normal(wanted) == normal(byte)) at + 1 else null,
    }
}

/// `set` is what stands between the brackets: bytes, and ranges such as `0-9`.
fn isInSet(set: []const u8, byte: u8) bool {
    var at: usize = 0;
    while (at < set.len) : (at += 1) {
        if (at + 2 < set.len and set[at + 1] == '-') {
            if (byte >= set[at] and byte <= set[at + 2]) return true;
            at += 2;
        } else if (set[at] == byte) return true;
    }
    return false;
}

fn normal(byte: u8) u8 {
    return if (byte == '-') '_' else byte;
}

const testing = std.testing;

test "an alias matches its name, whatever dashes both have" {
    try testing.expect(matches("crypto-crc32c", "crypto_crc32c"));
    try testing.expect(!matches("crypto-crc32c", "crypto-crc32c-intel"));
    try testing.expect(!matches("crypto-crc32c-intel", "crypto-crc32c"));
}

test "stars, question marks and sets match" {
    try testing.expect(matches("virtio:d00000001v*", "virtio:d00000001v00001AF4"));
    try testing.expect(matches("usb:v*p0A?Cd*[0-3]", "usb:v0BDAp0A1Cd0002"));
    try testing.expect(!matches("usb:v*p0A?Cd*[0-3]", "usb:v0BDAp0A1Cd0004"));
    try testing.expect(matches("*", ""));
    try testing.expect(!matches("a?", "a"));
    try testing.expect(!matches("a[b", "ab"));
}

test "a match ends after a bounded number of steps" {
    var name: [steps_max]u8 = @splat('a');
    name[steps_max - 1] = 'b';
    try testing.expect(!matches("*b", &name));
    try testing.expect(matches("*b", name[steps_max - 100 ..]));
}
