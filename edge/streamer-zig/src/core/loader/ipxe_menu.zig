//! The boot menu as an iPXE script, and the script that leaves iPXE for the device's local disk.
//! Titles come from users: no part of them may be read as a command.

const std = @import("std");
const base = @import("base");
const BootHandle = @import("../boot/handle.zig");
const BootMenu = @import("menu.zig");
const boot_script = @import("ipxe_script.zig");
const desired_state = @import("../uplink/desired_state.zig");
const assert = std.debug.assert;

const Writer = std.Io.Writer;

pub const size_max = boot_script.size_max;

pub const Options = struct {
    menu: BootMenu,
    handle: BootHandle,
    http: base.Endpoint,
    /// The device answered from a menu that no longer exists.
    is_changed: bool = false,
};

/// The timeout and a cancelled menu lead to the default, as does an iPXE built without menus. In
/// iPXE, pressing a key stops the timeout.
pub fn write(options: Options, buffer: *[size_max]u8) []const u8 {
    var writer: Writer = .fixed(buffer);
    writeTo(options, &writer) catch unreachable;
    return writer.buffered();
}

fn writeTo(options: Options, writer: *Writer) Writer.Error!void {
    const menu = options.menu;
    const default = menu.defaultEntry();
    try writer.print(
        "#!ipxe\nset bootfarm_entry {d}\nmenu Bootfarm: {s} || goto bootfarm_chosen\n",
        .{
            default,
            if (options.is_changed)
                "the menu has changed, choose again"
            else
                "choose what to start",
        },
    );
    for (menu.entries(), 0..) |*entry, index| {
        try writer.print("item {d} ", .{index});
        try writeTitle(writer, entry.title);
        if (!menu.isHere(@intCast(index))) try writer.writeAll(" (not at this edge)");
        try writer.writeByte('\n');
    }
    try writer.print(
        "choose --timeout {d} --default {d} bootfarm_entry || set bootfarm_entry {d}\n",
        .{ menu.menu.timeoutMs, default, default },
    );
    try writer.print(
        ":bootfarm_chosen\nchain --replace --autofree http://{f}/b/{f}/boot.ipxe?menu={x:0>8}&entry=${{bootfarm_entry}} ||\n",
        .{ options.http, options.handle, menu.mark() },
    );
    // Ctrl-C ends the wait, and the script.
    try writer.print(
        "echo bootfarm: the edge does not answer, asking again in {d} s\nsleep {d}\ngoto bootfarm_chosen\n",
        .{ retry_after_s, retry_after_s },
    );
}

const retry_after_s = 5;

/// iPXE expands `${...}` in the whole line, then splits it into words: `||`, `&&` and `;` end a
/// command, and a word that begins with `#` starts a comment (src/core/exec.c of iPXE). Any such
/// word is changed, but stays readable.
fn writeTitle(writer: *Writer, title: []const u8) Writer.Error!void {
    var words = std.mem.tokenizeScalar(u8, title, ' ');
    var is_first = true;
    while (words.next()) |word| {
        if (!is_first) try writer.writeByte(' ');
        is_first = false;
        const is_command = for ([_][]const u8{ "||", "&&", ";" }) |command| {
            if (std.mem.eql(u8, word, command)) break true;
        } else false;
        // An option, too, begins with a character that no label begins with.
        if (is_command or word[0] == '#' or word[0] == '-') try writer.writeByte('\'');
        for (word, 0..) |byte, index| {
            assert(std.ascii.isPrint(byte));
            const is_expansion = byte == '{' and index > 0 and word[index - 1] == '$';
            try writer.writeByte(if (is_expansion) '(' else byte);
        }
        if (is_command) try writer.writeByte('\'');
    }
    // A title of spaces only.
    if (is_first) try writer.writeByte('-');
}

/// On BIOS iPXE starts the first disk itself; if that fails, and on UEFI, which continues with its
/// next boot entry only after a failure, iPXE exits.
pub fn writeLocalDisk(buffer: *[size_max]u8) []const u8 {
    const text =
        \\#!ipxe
        \\echo bootfarm: starting from the disk of this device
        \\iseq ${platform} efi && exit 1 ||
        \\sanboot --no-describe --drive 0x80 || exit 1
        \\
    ;
    @memcpy(buffer[0..text.len], text);
    return buffer[0..text.len];
}

const testing = std.testing;

fn expectTitle(want: []const u8, title: []const u8) !void {
    var buffer: [256]u8 = undefined;
    var writer: Writer = .fixed(&buffer);
    try writeTitle(&writer, title);
    try testing.expectEqualStrings(want, writer.buffered());
}

test "a title stays readable and is never a command" {
    try expectTitle("Debian 12 (test) 100%, $5", "Debian 12 (test) 100%, $5");
    try expectTitle("a '||' shell '&&' b ';' '#c", "a || shell && b ; #c");
    try expectTitle("$(net0/mac} $$({x}", "${net0/mac} $${{x}");
    try expectTitle("'--gap x", "--gap x");
    try expectTitle("a b", "  a   b ");
    try expectTitle("-", "   ");
    try expectTitle("a||b", "a||b");
}
