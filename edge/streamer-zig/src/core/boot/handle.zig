//! The handle that ties a download to its boot: 16 hex digits in the path `b/<handle>/<name>`, the
//! same in TFTP and HTTP. It is a name, not a secret.

const std = @import("std");
const assert = std.debug.assert;

pub const BootHandle = @This();

value: u64,

pub const text_size = 16;

pub fn format(handle: BootHandle, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.print("{x:0>16}", .{handle.value});
}

pub fn toText(handle: BootHandle) [text_size]u8 {
    var text: [text_size]u8 = undefined;
    const written = std.mem.print(&text, "{f}", .{handle}) catch unreachable;
    assert(written.len == text_size);
    return text;
}

/// Accepts exactly 16 hex digits in lower case, as `format` writes them: a path has one
/// spelling.
pub fn parse(text: []const u8) error{InvalidHandle}!BootHandle {
    if (text.len != text_size) return error.InvalidHandle;
    var value: u64 = 0;
    for (text) |digit| value = value << 4 | switch (digit) {
        '0'...'9' => digit - '0',
        'a'...'f' => digit - 'a' + 10,
        else => return error.InvalidHandle,
    };
    return .{ .value = value };
}

/// A path that a device requested, split. `name` is a slice of the path and still untrusted.
pub const BootPath = struct {
    handle: ?BootHandle,
    name: []const u8,

    /// Accepts `b/<handle>/<name>` or a bare name; leading slashes are dropped (GRUB requests
    /// absolute paths). Any other form is a bare name, which the published table will not contain.
    pub fn parse(path: []const u8) BootPath {
        const relative = std.mem.trimStart(u8, path, "/");
        const bare: BootPath = .{ .handle = null, .name = relative };
        const rest = std.mem.cutPrefix(u8, relative, "b/") orelse return bare;
        const digits, const name = std.mem.cutScalar(u8, rest, '/') orelse return bare;
        const handle = BootHandle.parse(digits) catch return bare;
        return .{ .handle = handle, .name = name };
    }
};

const testing = std.testing;

test "a handle survives its text form and has only one" {
    const handle: BootHandle = .{ .value = 0x0123456789abcdef };
    try testing.expectEqualStrings("0123456789abcdef", &handle.toText());
    try testing.expectEqual(handle, try BootHandle.parse(&handle.toText()));
    for ([_][]const u8{ "", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdeg" }) |text|
        try testing.expectError(error.InvalidHandle, BootHandle.parse(text));
}

test "a path is split into handle and name, and any other path is a bare name" {
    const split: BootPath = .parse("/b/00000000000000ff/grub/x.cfg");
    try testing.expectEqual(255, split.handle.?.value);
    try testing.expectEqualStrings("grub/x.cfg", split.name);
    const bare =
        [_][]const u8{ "undionly.kpxe", "b/ff/x", "b/00000000000000FF/x", "b/", "b", "../b/x" };
    for (bare) |path| {
        const whole: BootPath = .parse(path);
        try testing.expectEqual(null, whole.handle);
        try testing.expectEqualStrings(path, whole.name);
    }
}
