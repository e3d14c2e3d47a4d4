//! PXELINUX's configuration of one boot. PXELINUX requests files relative to its own path, so names
//! are relative: they are `b/<handle>/...`. It requests `pxelinux.cfg/` followed by the device's
//! UUID, `01-` and its hardware address, eight prefixes of its IP address in hex, and `default`.

const std = @import("std");
const base = @import("base");
const KernelLine = @import("kernel_line.zig");
const boot_script = @import("ipxe_script.zig");
const PageLink = @import("page_link.zig");

pub const size_max = 4096;

pub const Options = struct { line: KernelLine, has_initrd: bool };

pub fn write(options: *const Options, buffer: *[size_max]u8) []const u8 {
    var line: [KernelLine.size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(buffer);
    if (options.line.link) |link| say(link, &writer);
    writer.print("DEFAULT bootfarm\nPROMPT 0\nONERROR again\nLABEL bootfarm\n  LINUX kernel\n{s}" ++
        "  APPEND {s}\n{s}", .{
        if (options.has_initrd) "  INITRD initrd\n" else "",
        options.line.write(&line),
        label_again,
    }) catch unreachable;
    return writer.buffered();
}

fn say(link: PageLink, writer: *std.Io.Writer) void {
    writer.print("SAY {f}\n", .{&PageLink.Line{ .link = link }}) catch unreachable;
}

/// Returns the machine to its BIOS, which tries its next boot device or restarts.
const label_again = "LABEL again\n  LOCALBOOT -1\n";

const folder = "pxelinux.cfg/";

/// Tells whether a name is that of a configuration that PXELINUX requests and should get. It tries
/// others first, which it can do without.
pub fn isAskedAs(name: []const u8, mac: base.Mac) bool {
    const rest = std.mem.cutPrefix(u8, name, folder) orelse return false;
    if (std.mem.eql(u8, rest, "default")) return true;
    // 01: Ethernet (RFC 1700, hardware types).
    const of_card = std.mem.cutPrefix(u8, rest, "01-") orelse return false;
    const asked = base.Mac.parse(of_card) catch return false;
    return asked.eql(mac);
}

/// Recognizes optional files that PXELINUX requests first: they show that it runs.
pub fn isProbe(name: []const u8) bool {
    return std.mem.startsWith(u8, name, folder);
}

/// For a device that cannot start its version: shows why on its console, and waits before it
/// returns to its BIOS.
pub fn writeRefusal(why: []const u8, link: ?PageLink, buffer: *[size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll("SAY bootfarm: ") catch unreachable;
    for (why[0..@min(why.len, refusal_size_max)]) |byte|
        writer.writeByte(if (std.ascii.isPrint(byte)) byte else '?') catch unreachable;
    writer.writeByte('\n') catch unreachable;
    if (link) |known| say(known, &writer);
    // In tenths of a second.
    const timeout = boot_script.retry_after_s * 10;
    writer.print("DEFAULT again\nPROMPT 1\nTIMEOUT {d}\n{s}", .{ timeout, label_again }) catch
        unreachable;
    return writer.buffered();
}

const refusal_size_max = 256;

const testing = std.testing;

test "a configuration names files beside PXELINUX and keeps the command line unchanged" {
    var buffer: [size_max]u8 = undefined;
    const options: Options = .{ .line = KernelLine.test_line, .has_initrd = true };
    try testing.expectEqualStrings(
        \\DEFAULT bootfarm
        \\PROMPT 0
        \\ONERROR again
        \\LABEL bootfarm
        \\  LINUX kernel
        \\  INITRD initrd
        \\  APPEND quiet bootfarm.edge=10.0.0.1:6910 bootfarm.boot=01010101-0101-4101-8101-010101010101 bootfarm.token=0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f bootfarm.report=http://10.0.0.1:6980/b/00000000000000ab
        \\LABEL again
        \\  LOCALBOOT -1
        \\
    , write(&options, &buffer));
}

test "the longest command line fits" {
    var options: Options = .{ .line = KernelLine.test_line, .has_initrd = true };
    options.line.command_line = &@as([1024]u8, @splat('x'));
    var buffer: [size_max]u8 = undefined;
    try testing.expect(write(&options, &buffer).len < size_max);
}

test "a refusal is one line whatever it says" {
    var buffer: [size_max]u8 = undefined;
    const text = writeRefusal("a\nLABEL b", null, &buffer);
    try testing.expect(std.mem.startsWith(u8, text, "SAY bootfarm: a?LABEL b\nDEFAULT again\n"));
    const link = PageLink.of("https://boot.example.org", .fromRandom(@splat(1)));
    const shown = "SAY bootfarm: this boot: https://boot.example.org/b/010101010101\nDEFAULT ";
    try testing.expect(std.mem.find(u8, writeRefusal("no", link, &buffer), shown) != null);
    var options: Options = .{ .line = KernelLine.test_line, .has_initrd = true };
    options.line.link = link;
    try testing.expect(std.mem.startsWith(u8, write(&options, &buffer), shown));
}

test "the device's own name and the last one are answered, names of others are not" {
    const mac: base.Mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } };
    try testing.expect(isAskedAs("pxelinux.cfg/01-02-bf-00-00-00-01", mac));
    try testing.expect(isAskedAs("pxelinux.cfg/default", mac));
    const others = [_][]const u8{
        "pxelinux.cfg/01-02-bf-00-00-00-02",                 "pxelinux.cfg/0A4E0032",
        "pxelinux.cfg/564d4f4e-0000-0000-0000-000000000000", "default",
        "pxelinux.cfg/",
    };
    for (others) |name| try testing.expect(!isAskedAs(name, mac));
}
