//! GRUB's configuration of one boot: what to load, and from where. Every input is made by this edge
//! or was checked for printable ASCII, and stands in single quotes, in which GRUB expands nothing
//! (GRUB manual, "Quoting"). The signed GRUB of a distribution gets its configuration only from the
//! network.

const std = @import("std");
const base = @import("base");
const KernelLine = @import("kernel_line.zig");
const boot_script = @import("ipxe_script.zig");
const PageLink = @import("page_link.zig");
const start_file = @import("start_file.zig");
const assert = std.debug.assert;

pub const size_max = 8192;

pub const By = enum { tftp, http };

pub const Options = struct {
    line: KernelLine,
    /// The protocol by which this GRUB reads files: signed ones of Debian 12 support TFTP only.
    by: By,
    has_initrd: bool,
};

pub fn write(options: *const Options, buffer: *[size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writeTo(options, &writer) catch unreachable;
    return writer.buffered();
}

fn writeTo(options: *const Options, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.writeAll(
        "set timeout=0\nset default=0\nset fallback=1\nmenuentry 'Bootfarm' {\n",
    );
    if (options.line.link) |link|
        try writer.print("  echo '{f}'\n", .{&PageLink.Line{ .link = link }});
    try writer.writeAll("  linux ");
    try writePath(options, "kernel", writer);
    var buffer: [KernelLine.size_max]u8 = undefined;
    try writeWords(options.line.write(&buffer), writer);
    try writer.writeByte('\n');
    if (options.has_initrd) {
        try writer.writeAll("  initrd ");
        try writePath(options, "initrd", writer);
        try writer.writeByte('\n');
    }
    // GRUB boots when the entry ends, and ignores that a script to run is missing (`source` of
    // grub-core/normal/main.c).
    try writer.writeAll("  source ");
    try writePath(options, start_file.name, writer);
    try writer.writeAll("\n}\n");
    try writeRestart(writer);
}

/// `(tftp,10.0.0.1)/b/HANDLE/NAME`: the server is named, since GRUB would otherwise use the plain
/// DHCP server.
fn writePath(
    options: *const Options,
    name: []const u8,
    writer: *std.Io.Writer,
) std.Io.Writer.Error!void {
    try writeDevice(options.by, options.line.http, writer);
    try writer.print("/b/{x:0>16}/{s}", .{ options.line.identity.handle, name });
}

pub fn writeDevice(by: By, http: base.Endpoint, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    switch (by) {
        .tftp => try writer.print("(tftp,{f})", .{http.ip}),
        .http => try writer.print("(http,{f})", .{http}),
    }
}

/// Writes the words of a kernel's command line, each as one word of GRUB's. A kernel groups words
/// by double quotes; GRUB removes the quotes and puts them around the whole word again.
fn writeWords(line: []const u8, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    var rest = std.mem.trimStart(u8, line, " ");
    while (rest.len > 0) {
        var is_quoted = false;
        const size = for (rest, 0..) |byte, index| {
            if (byte == '"') is_quoted = !is_quoted;
            if (byte == ' ' and !is_quoted) break index;
        } else rest.len;
        try writer.writeAll(" '");
        for (rest[0..size]) |byte| switch (byte) {
            '"' => {},
            '\'' => try writer.writeAll("'\\''"),
            else => try writer.writeByte(byte),
        };
        try writer.writeByte('\'');
        rest = std.mem.trimStart(u8, rest[size..], " ");
    }
}

/// The reaction of a device that could not start its kernel: the cause may be gone by then.
fn writeRestart(writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.print(
        "menuentry 'Start again' {{\n  echo 'bootfarm: starting again in {d} s'\n  sleep {d}\n  reboot\n}}\n",
        .{ boot_script.retry_after_s, boot_script.retry_after_s },
    );
}

/// For a device that cannot start its version: shows why on its console, waits and restarts.
pub fn writeRefusal(why: []const u8, link: ?PageLink, buffer: *[size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll("set timeout=0\necho 'bootfarm: ") catch unreachable;
    for (why[0..@min(why.len, refusal_size_max)]) |byte| {
        const is_harmless = std.ascii.isPrint(byte) and byte != '\'';
        writer.writeByte(if (is_harmless) byte else '?') catch unreachable;
    }
    writer.writeAll("'\n") catch unreachable;
    if (link) |known|
        writer.print("echo '{f}'\n", .{&PageLink.Line{ .link = known }}) catch unreachable;
    writeRestart(&writer) catch unreachable;
    return writer.buffered();
}

const refusal_size_max = 256;

/// Tells whether a name is that of a configuration that GRUB requests: `grub.cfg`, or the same with
/// its card's address (`grub.cfg-01-aa-bb-...`), in the folders that GRUB images of distributions
/// search.
pub fn isAskedAs(name: []const u8, mac: base.Mac) bool {
    const folders = [_][]const u8{ "", "grub/", "boot/grub/", "grub2/", "boot/grub2/" };
    for (folders) |folder| {
        const rest = std.mem.cutPrefix(u8, name, folder) orelse continue;
        if (std.mem.eql(u8, rest, "grub.cfg")) return true;
        const of_card = std.mem.cutPrefix(u8, rest, "grub.cfg-01-") orelse continue;
        const asked = base.Mac.parse(of_card) catch continue;
        if (asked.eql(mac)) return true;
    }
    return false;
}

/// Recognizes optional files that GRUB requests: module lists, modules, translations,
/// configurations. No other client requests them, so they show that GRUB runs.
pub fn isProbe(name: []const u8) bool {
    const at = std.mem.find(u8, name, "grub") orelse return false;
    const rest = name[at..];
    for ([_][]const u8{ ".lst", ".mod", ".mo", ".mo.gz", "/grub.cfg", ".pf2" }) |end|
        if (std.mem.endsWith(u8, rest, end)) return true;
    return std.mem.find(u8, rest, "grub.cfg-") != null;
}

const testing = std.testing;

const test_options: Options = .{ .line = KernelLine.test_line, .by = .tftp, .has_initrd = true };

test "a configuration loads kernel and initramfs from this edge and falls back to a restart" {
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(
        \\set timeout=0
        \\set default=0
        \\set fallback=1
        \\menuentry 'Bootfarm' {
        \\  linux (tftp,10.0.0.1)/b/00000000000000ab/kernel 'quiet' 'bootfarm.edge=10.0.0.1:6910' 'bootfarm.boot=01010101-0101-4101-8101-010101010101' 'bootfarm.token=0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f' 'bootfarm.report=http://10.0.0.1:6980/b/00000000000000ab'
        \\  initrd (tftp,10.0.0.1)/b/00000000000000ab/initrd
        \\  source (tftp,10.0.0.1)/b/00000000000000ab/start
        \\}
        \\menuentry 'Start again' {
        \\  echo 'bootfarm: starting again in 60 s'
        \\  sleep 60
        \\  reboot
        \\}
        \\
    , write(&test_options, &buffer));
}

test "GRUB with HTTP support gets addresses with the port" {
    var options = test_options;
    options.by = .http;
    options.has_initrd = false;
    var buffer: [size_max]u8 = undefined;
    const text = write(&options, &buffer);
    try testing.expect(
        std.mem.find(u8, text, "linux (http,10.0.0.1:6980)/b/00000000000000ab/kernel ") != null,
    );
    try testing.expectEqual(null, std.mem.find(u8, text, "initrd"));
}

test "no command line ends its word, and quoted spaces stay in theirs" {
    var options = test_options;
    options.line.command_line = "a=$x dyndbg=\"file a b\" it's  {};#";
    var buffer: [size_max]u8 = undefined;
    const text = write(&options, &buffer);
    try testing.expect(std.mem.find(
        u8,
        text,
        "/kernel 'a=$x' 'dyndbg=file a b' 'it'\\''s' '{};#' 'bootfarm.edge=",
    ) != null);
}

test "the longest command line fits even if each byte needs four" {
    var options = test_options;
    options.line.command_line = &@as([1024]u8, @splat('\''));
    var buffer: [size_max]u8 = undefined;
    try testing.expect(write(&options, &buffer).len < size_max);
}

test "a refusal says why and no part of it can end its quotes" {
    var buffer: [size_max]u8 = undefined;
    const text = writeRefusal("a'\nb $c", null, &buffer);
    try testing.expect(
        std.mem.startsWith(u8, text, "set timeout=0\necho 'bootfarm: a??b $c'\nmenuentry"),
    );
}

test "the boot's page is shown before its kernel, and with a refusal" {
    var options = test_options;
    options.line.link = PageLink.of("https://boot.example.org", options.line.identity.id);
    var buffer: [size_max]u8 = undefined;
    const shown = "echo 'bootfarm: this boot: https://boot.example.org/b/010101010101'\n";
    try testing.expect(std.mem.find(u8, write(&options, &buffer), shown ++ "  linux ") != null);
    const refusal = writeRefusal("no", options.line.link, &buffer);
    try testing.expect(std.mem.find(u8, refusal, "no'\n" ++ shown ++ "menuentry ") != null);
}

test "configurations are recognized by the names that GRUB requests" {
    const mac: base.Mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } };
    for ([_][]const u8{
        "grub.cfg",
        "grub/grub.cfg",
        "boot/grub/grub.cfg",
        "grub/grub.cfg-01-02-bf-00-00-00-01",
    }) |name|
        try testing.expect(isAskedAs(name, mac));
    const others = [_][]const u8{
        "grub/x86_64-efi/grub.cfg", "grub/grub.cfg-01-02-bf-00-00-00-02", "grub.cfg-0A000001",
        "grub/../grub.cfg",         "grub.cfg/x",                         "grubx64.efi",
    };
    for (others) |name| try testing.expect(!isAskedAs(name, mac));
    for ([_][]const u8{
        "grub/x86_64-efi/command.lst",
        "grub/x86_64-efi/grub.cfg",
        "grub/locale/en.mo",
    }) |name|
        try testing.expect(isProbe(name));
    for ([_][]const u8{ "revocations_sbat.efi", "grubx64.efi", "x.mod" }) |name|
        try testing.expect(!isProbe(name));
}
