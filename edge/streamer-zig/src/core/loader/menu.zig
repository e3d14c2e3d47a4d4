//! The boot menu of a device: what its entries mean, and which of them a loader's answer names. Its
//! form belongs to the configuration of each loader (ipxe_menu.zig for iPXE). Pure; a menu is
//! looked up again for each request, since the desired state may have changed.

const std = @import("std");
const base = @import("base");
const assignments = @import("../boot/assignment.zig");
const desired_state = @import("../uplink/desired_state.zig");
const release = @import("../boot/release.zig");
const assert = std.debug.assert;

const DesiredState = desired_state.DesiredState;

pub const BootMenu = @This();

/// Must outlive the menu.
state: *const DesiredState,
device: *const desired_state.Device,
menu: *const desired_state.Menu,
/// By the edge's clock: releases up to it are effective.
unix_ms: u64,

pub const entries_max = desired_state.menu_entries_max;

/// Returns null if the device has no menu, or the state does not describe it.
pub fn of(state: *const DesiredState, device: *const desired_state.Device, unix_ms: u64) ?BootMenu {
    const id = device.menuId orelse return null;
    for (state.menus) |*menu| {
        if (menu.id.eql(id))
            return .{ .state = state, .device = device, .menu = menu, .unix_ms = unix_ms };
    }
    return null;
}

pub fn entries(menu: BootMenu) []const desired_state.MenuEntry {
    return menu.menu.entries;
}

pub fn defaultEntry(menu: BootMenu) u8 {
    assert(menu.menu.defaultEntry < menu.menu.entries.len);
    return @intCast(menu.menu.defaultEntry);
}

/// Tells whether this edge could start the entry, as far as the state says.
pub fn isHere(menu: BootMenu, entry: u8) bool {
    const wanted = &menu.menu.entries[entry];
    return switch (wanted.kind) {
        .local_disk => true,
        .version => assignments.ofVersion(menu.state, menu.versionOf(entry).?, menu.device) != null,
    };
}

/// Returns the version that an entry starts now; null if it starts none.
pub fn versionOf(menu: BootMenu, entry: u8) ?base.Uuid {
    const wanted = &menu.menu.entries[entry];
    const id = wanted.versionId orelse return null;
    return if (wanted.followsVdisk) release.versionAt(menu.state, id, menu.unix_ms) else id;
}

/// Identifies the entries and their order: a choice from a menu that has changed since is
/// invalid. A release does not change the mark: an entry that follows a vDisk still does.
pub fn mark(menu: BootMenu) u32 {
    var sum: std.hash.Crc32 = .init();
    for (menu.menu.entries) |*entry| {
        sum.update(@tagName(entry.kind));
        sum.update(entry.title);
        if (entry.versionId) |id| sum.update(&id.toText());
    }
    return sum.final();
}

/// Returns null if the answer names no entry of this menu.
pub fn choice(menu: BootMenu, answer: Answer) ?Choice {
    if (answer.mark != menu.mark() or answer.entry >= menu.menu.entries.len) return null;
    return menu.choiceOf(answer.entry);
}

pub fn choiceOf(menu: BootMenu, entry: u8) Choice {
    const wanted = &menu.menu.entries[entry];
    const title: base.UntrustedText = .init(wanted.title);
    return switch (wanted.kind) {
        .local_disk => .{ .title = title, .start = .local_disk },
        .version => .{ .title = title, .start = .{
            .version = menu.assignmentOf(menu.versionOf(entry).?),
        } },
    };
}

fn assignmentOf(menu: BootMenu, version_id: base.Uuid) assignments.Assignment {
    return assignments.ofVersion(menu.state, version_id, menu.device) orelse
        assignments.ofMissing(menu.state, version_id, menu.device);
}

/// The entry that a device takes, by hand or by timeout.
pub const Choice = struct {
    title: base.UntrustedText,
    start: union(enum) { version: assignments.Assignment, local_disk },
};

/// The entry that a loader names in its next request, `menu=<8 hex digits>&entry=<number>`.
pub const Answer = struct {
    mark: u32,
    entry: u8,

    /// Parses the query of a URL. Returns null if it is no answer.
    pub fn parse(query: []const u8) ?Answer {
        var menu_mark: ?u32 = null;
        var entry: ?u8 = null;
        var words = std.mem.splitScalar(u8, query, '&');
        while (words.next()) |word| {
            const name, const value = std.mem.cutScalar(u8, word, '=') orelse continue;
            if (std.mem.eql(u8, name, "menu")) menu_mark = numberOf(u32, value, 16);
            if (std.mem.eql(u8, name, "entry")) entry = numberOf(u8, value, 10);
        }
        return .{ .mark = menu_mark orelse return null, .entry = entry orelse return null };
    }

    pub fn format(answer: Answer, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("menu={x:0>8}&entry={d}", .{ answer.mark, answer.entry });
    }
};

fn numberOf(comptime T: type, text: []const u8, radix: u8) ?T {
    if (text.len == 0 or text.len > 8) return null;
    for (text) |byte| if (!std.ascii.isHex(byte)) return null;
    return std.fmt.parseInt(T, text, radix) catch null;
}

test {
    _ = @import("menu_test.zig");
}
