//! The address of a boot's page in the dashboard, short enough to be copied from a screen. Loaders
//! and devices print it, and pass it through scripts and command lines: an address with any other
//! byte than these has none. The id is the first half of the boot's; who may see the boot is up to
//! the dashboard.

const std = @import("std");
const base = @import("base");
const ControlUrl = @import("../uplink/control_url.zig");
const assert = std.debug.assert;

pub const PageLink = @This();

/// Passed `isDashboard`.
dashboard: []const u8,
boot_id: base.Uuid,

/// The limit of `dashboardUrl` in packages/proto/src/uplink-state.ts.
pub const dashboard_size_max = 128;
/// 48 bits, all of them random.
const id_size = 6;
const folder = "/b/";
pub const size_max = dashboard_size_max + folder.len + 2 * id_size;

/// On the kernel's command line.
pub const word = "bootfarm.link=";

/// Null: the control plane told no address, or one that no screen should show.
pub fn of(dashboard: ?[]const u8, boot_id: base.Uuid) ?PageLink {
    const text = std.mem.trimEnd(u8, dashboard orelse return null, "/");
    if (!isDashboard(text)) return null;
    return .{ .dashboard = text, .boot_id = boot_id };
}

fn isDashboard(text: []const u8) bool {
    if (text.len > dashboard_size_max) return false;
    for (text) |byte| switch (byte) {
        'a'...'z', 'A'...'Z', '0'...'9', '.', ':', '/', '_', '-', '~' => {},
        else => return false,
    };
    _ = ControlUrl.parse(text) catch return false;
    return true;
}

pub fn format(link: *const PageLink, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    assert(isDashboard(link.dashboard));
    try writer.print("{s}" ++ folder ++ "{x}", .{ link.dashboard, link.boot_id.bytes[0..id_size] });
}

/// A line for a console, without its end.
pub const Line = struct {
    link: PageLink,

    pub fn format(line: *const Line, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("bootfarm: this boot: {f}", .{&line.link});
    }
};

const testing = std.testing;

test "a link is the dashboard's address and the first half of the boot's id" {
    const id = try base.Uuid.parse("01234567-89ab-4def-8123-456789abcdef");
    var buffer: [PageLink.size_max]u8 = undefined;
    for ([_][]const u8{ "https://boot.example.org", "https://boot.example.org/" }) |url| {
        const text = try std.mem.print(&buffer, "{f}", .{&PageLink.of(url, id).?});
        try testing.expectEqualStrings("https://boot.example.org/b/0123456789ab", text);
    }
    const longest = "http://" ++ @as([60]u8, @splat('a')) ++ ".b/" ++ @as([58]u8, @splat('c'));
    comptime assert(longest.len == dashboard_size_max);
    const text = try std.mem.print(&buffer, "{f}", .{&PageLink.of(longest, id).?});
    try testing.expectEqual(PageLink.size_max, text.len);
    try testing.expectEqual(null, PageLink.of(longest ++ "c", id));
}

test "an address that could say anything else on a screen or in a script has no link" {
    const id: base.Uuid = .fromRandom(@splat(1));
    try testing.expectEqual(null, PageLink.of(null, id));
    for ([_][]const u8{
        "",                    "boot.example.org",      "ftp://a",           "javascript:x",
        "http://",             "https://a b",           "https://a\x1b[2J",  "https://a\nreboot",
        "https://${net0/mac}", "https://a'; reboot; '", "https://u@a",       "https://a/?b=c",
        "https://a#b",         "https://\xc3\xa4",      "https://a|| shell", "https://[::1]",
        "https://a%41",
    }) |text| try testing.expectEqual(null, PageLink.of(text, id));
}
