//! The boot menu for loaders that request configurations by name: GRUB and PXELINUX. Each entry is
//! a configuration of its own, `menu-<mark>-<entry>.cfg` below the boot's handle: requesting it is
//! the choice. Titles come from users: no part of them may be read as a command.

const std = @import("std");
const base = @import("base");
const BootHandle = @import("../boot/handle.zig");
const BootMenu = @import("menu.zig");
const grub_config = @import("grub_config.zig");
const Answer = BootMenu.Answer;
const Writer = std.Io.Writer;
const assert = std.debug.assert;

pub const size_max = 8192;

pub const Options = struct {
    menu: BootMenu,
    handle: BootHandle,
    http: base.Endpoint,
    by: grub_config.By = .tftp,
};

const name_begin = "menu-";
const name_end = ".cfg";

/// Returns null for a name that is no entry's.
pub fn parseName(name: []const u8) ?Answer {
    const rest = std.mem.cutPrefix(u8, name, name_begin) orelse return null;
    if (!std.mem.endsWith(u8, rest, name_end)) return null;
    const mark, const entry = std.mem.cutScalar(u8, rest[0 .. rest.len - name_end.len], '-') orelse
        return null;
    var buffer: [64]u8 = undefined;
    const query = std.mem.print(&buffer, "menu={s}&entry={s}", .{ mark, entry }) catch return null;
    return .parse(query);
}

fn writeName(writer: *Writer, menu: BootMenu, entry: usize) Writer.Error!void {
    try writer.print(name_begin ++ "{x:0>8}-{d}" ++ name_end, .{ menu.mark(), entry });
}

pub fn writeGrub(options: *const Options, buffer: *[size_max]u8) []const u8 {
    var writer: Writer = .fixed(buffer);
    grub(options, &writer) catch unreachable;
    return writer.buffered();
}

fn grub(options: *const Options, writer: *Writer) Writer.Error!void {
    const menu = options.menu;
    try writer.print("set timeout={d}\nset default={d}\n", .{
        std.math.divCeil(u32, menu.menu.timeoutMs, std.time.ms_per_s) catch unreachable,
        menu.defaultEntry(),
    });
    for (menu.entries(), 0..) |*entry, index| {
        try writer.writeAll("menuentry '");
        for (entry.title) |byte| switch (byte) {
            '\'' => try writer.writeAll("'\\''"),
            else => try writer.writeByte(byte),
        };
        if (!menu.isHere(@intCast(index))) try writer.writeAll(" (not at this edge)");
        try writer.writeAll("' {\n  configfile ");
        try grub_config.writeDevice(options.by, options.http, writer);
        try writer.print("/b/{f}/", .{options.handle});
        try writeName(writer, menu, index);
        try writer.writeAll("\n}\n");
    }
}

/// Returns to the firmware, which starts the next entry in its boot order.
pub const grub_local_disk = "set timeout=0\nexit\n";

pub fn writePxelinux(options: *const Options, buffer: *[size_max]u8) []const u8 {
    var writer: Writer = .fixed(buffer);
    pxelinux(options, &writer) catch unreachable;
    return writer.buffered();
}

/// Without extra modules PXELINUX has no menu: it shows lines and accepts a label.
fn pxelinux(options: *const Options, writer: *Writer) Writer.Error!void {
    const menu = options.menu;
    try writer.writeAll("SAY Bootfarm: type the number of what to start\n");
    for (menu.entries(), 0..) |*entry, index| {
        try writer.print("SAY  {d}  {s}{s}\n", .{
            index, entry.title, if (menu.isHere(@intCast(index))) "" else " (not at this edge)",
        });
    }
    try writer.print("DEFAULT {d}\nPROMPT 1\nTIMEOUT {d}\n", .{
        menu.defaultEntry(),
        // In tenths of a second.
        std.math.divCeil(u32, menu.menu.timeoutMs, 100) catch unreachable,
    });
    for (0..menu.entries().len) |index| {
        try writer.print("LABEL {d}\n  CONFIG ", .{index});
        try writeName(writer, menu, index);
        try writer.writeByte('\n');
    }
}

/// A normal boot, as without a network card.
pub const pxelinux_local_disk = "DEFAULT local\nPROMPT 0\nLABEL local\n  LOCALBOOT 0\n";

const testing = std.testing;

test "an entry's name identifies the entry and its menu" {
    try testing.expectEqual(
        Answer{ .mark = 0xab12, .entry = 3 },
        parseName("menu-0000ab12-3.cfg").?,
    );
    const others = [_][]const u8{
        "menu-0000ab12-3", "menu-x-3.cfg", "menu-0000ab12.cfg", "grub.cfg", "menu-1-2-3.cfg",
        "menu--.cfg",
    };
    for (others) |name| if (parseName(name)) |answer| {
        std.debug.print("{s} {any}\n", .{ name, answer });
        return error.TestUnexpectedResult;
    };
}
