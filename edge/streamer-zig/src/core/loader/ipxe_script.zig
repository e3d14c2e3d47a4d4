//! The iPXE script of one boot: where the edge is, which boot this is, and what to load. Every
//! input is made by this edge or was checked for printable ASCII; no text of a device reaches a
//! script.

const std = @import("std");
const base = @import("base");
const boot_module = @import("../boot/boot.zig");
const isCommandLine = @import("../boot/assignment.zig").isCommandLine;
const desired_state = @import("../uplink/desired_state.zig");
const clear_word = @import("../stream/seal.zig").clear_word;
const LocalDisk = @import("../target/local_disk_order.zig");
const Tuning = @import("../target/tuning.zig");
const PageLink = @import("page_link.zig");
const start_file = @import("start_file.zig");
const assert = std.debug.assert;

pub const size_max = 4096;

pub const Options = struct {
    identity: boot_module.Identity,
    http: base.Endpoint,
    stream: base.Endpoint,
    has_kernel: bool,
    has_initrd: bool,
    /// Passed `isCommandLine`.
    command_line: []const u8,
    local_disk: ?LocalDisk = null,
    /// Its words follow those of the command line, and the last one of a kind counts.
    tuning: Tuning = .{},
    /// The stream runs in clear text.
    clear: bool = false,
    /// For the device's console.
    link: ?PageLink = null,
};

pub fn write(options: Options, buffer: *[size_max]u8) []const u8 {
    assert(isCommandLine(options.command_line));
    var writer: std.Io.Writer = .fixed(buffer);
    writeTo(options, &writer) catch unreachable;
    return writer.buffered();
}

fn writeTo(options: Options, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    const id = &options.identity;
    try writer.print(
        "#!ipxe\nset bootfarm_edge {f}\nset bootfarm_boot {f}\nset bootfarm_token {x}\n",
        .{ options.stream, id.id, &id.token },
    );
    // For readers of the script; a kernel gets it as a word of its command line.
    if (options.clear) try writer.writeAll("set bootfarm_stream clear\n");
    if (options.link) |link| try writer.print("echo {f}\n", .{&PageLink.Line{ .link = link }});
    if (!options.has_kernel) {
        try writer.print("sanboot --no-describe http://{f}/b/{x:0>16}/disk\n", .{
            options.http, id.handle,
        });
        return;
    }
    try writer.print("kernel http://{f}/b/{x:0>16}/kernel {s}", .{
        options.http, id.handle, options.command_line,
    });
    if (options.command_line.len > 0) try writer.writeByte(' ');
    try writer.writeAll(
        "bootfarm.edge=${bootfarm_edge} bootfarm.boot=${bootfarm_boot} bootfarm.token=${bootfarm_token}",
    );
    // For an initramfs that cannot open a stream, and for systems without our client.
    try writer.print(" bootfarm.report=http://{f}/b/{x:0>16}", .{ options.http, id.handle });
    if (options.local_disk) |*order| try writer.print(" {f}", .{order});
    try writer.print("{f}", .{options.tuning});
    if (options.clear) try writer.writeAll(" " ++ clear_word);
    if (options.link) |*link| try writer.print(" " ++ PageLink.word ++ "{f}", .{link});
    // Facts that a boot medium adds about its device: the card, and an address; empty for others.
    try writer.writeAll(" ${bootfarm_words}");
    if (options.has_initrd) {
        try writer.writeAll(" initrd=initrd\n");
        try writer.print("initrd --name initrd http://{f}/b/{x:0>16}/initrd\n", .{
            options.http, id.handle,
        });
    } else try writer.writeByte('\n');
    try writeStart(options, writer);
    try writer.writeAll("boot\n");
}

/// Says when the kernel is started. Only iPXE's image of that name is freed: any other one would
/// reach the kernel as a part of its initramfs.
fn writeStart(options: Options, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    const name = "bootfarm_" ++ start_file.name;
    try writer.print(
        "imgfetch --name " ++ name ++ " --timeout {d} http://{f}/b/{x:0>16}/" ++
            start_file.name ++ " && imgfree " ++ name ++ " ||\n",
        .{ start_file.timeout_ms, options.http, options.identity.handle },
    );
}

/// How long a device that cannot be started waits before it retries, and so how often an edge sees
/// each of them.
pub const retry_after_s = 60;

/// For a device that cannot start its version: shows why on its console, waits and restarts, since
/// the cause may be gone by then.
pub fn writeRefusal(why: []const u8, link: ?PageLink, buffer: *[size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.writeAll("#!ipxe\necho bootfarm: ") catch unreachable;
    const kept = why[0..@min(why.len, refusal_size_max)];
    for (kept) |byte| writer.writeByte(if (isHarmless(byte)) byte else '?') catch unreachable;
    if (link) |known|
        writer.print("\necho {f}", .{&PageLink.Line{ .link = known }}) catch unreachable;
    writer.print("\necho bootfarm: starting again in {d} s\nsleep {d}\nreboot\n", .{
        retry_after_s, retry_after_s,
    }) catch unreachable;
    return writer.buffered();
}

const refusal_size_max = 256;

/// iPXE expands `${...}` and ends commands at `&&`, `||` and `;`; file names may contain any byte.
fn isHarmless(byte: u8) bool {
    return switch (byte) {
        'a'...'z', 'A'...'Z', '0'...'9', ' ', '.', ',', ':', '_', '-', '+', '/', '~' => true,
        else => false,
    };
}

/// For networks whose own server names this file: the device sends the address of the card that it
/// booted from (iPXE's `netX`, opened last), and gets its boot's script.
pub fn writeEntrance(http: base.Endpoint, buffer: *[size_max]u8) []const u8 {
    return std.mem.print(
        buffer,
        "#!ipxe\nchain http://{f}/m/${{netX/mac:hexhyp}}/boot.ipxe\n",
        .{http},
    ) catch unreachable;
}

const testing = std.testing;

const test_options: Options = .{
    .identity = .{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .handle = 0xab,
        .token = @splat(0x0f),
    },
    .http = .{ .ip = .init(10, 0, 0, 1), .port = 6980 },
    .stream = .{ .ip = .init(10, 0, 0, 1), .port = 6910 },
    .has_kernel = true,
    .has_initrd = true,
    .command_line = "quiet",
};

test "a script with a kernel passes boot id and token to the kernel" {
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(
        \\#!ipxe
        \\set bootfarm_edge 10.0.0.1:6910
        \\set bootfarm_boot 01010101-0101-4101-8101-010101010101
        \\set bootfarm_token 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
        \\kernel http://10.0.0.1:6980/b/00000000000000ab/kernel quiet bootfarm.edge=${bootfarm_edge} bootfarm.boot=${bootfarm_boot} bootfarm.token=${bootfarm_token} bootfarm.report=http://10.0.0.1:6980/b/00000000000000ab ${bootfarm_words} initrd=initrd
        \\initrd --name initrd http://10.0.0.1:6980/b/00000000000000ab/initrd
        \\imgfetch --name bootfarm_start --timeout 2000 http://10.0.0.1:6980/b/00000000000000ab/start && imgfree bootfarm_start ||
        \\boot
        \\
    , write(test_options, &buffer));
}

test "a script prints the boot's page and passes its address on" {
    var options = test_options;
    options.link = PageLink.of("https://boot.example.org", options.identity.id);
    var buffer: [size_max]u8 = undefined;
    const text = write(options, &buffer);
    const address = "https://boot.example.org/b/010101010101";
    const shown = "\necho bootfarm: this boot: " ++ address ++ "\nkernel ";
    try testing.expect(std.mem.find(u8, text, shown) != null);
    try testing.expect(std.mem.find(u8, text, " bootfarm.link=" ++ address ++ " ") != null);
    options.has_kernel = false;
    const disk = "bootfarm: this boot: " ++ address ++ "\nsanboot ";
    try testing.expect(std.mem.find(u8, write(options, &buffer), disk) != null);
}

test "a script without a kernel boots the disk over HTTP" {
    var options = test_options;
    options.has_kernel = false;
    var buffer: [size_max]u8 = undefined;
    const text = write(options, &buffer);
    try testing.expect(
        std.mem.endsWith(
            u8,
            text,
            "sanboot --no-describe http://10.0.0.1:6980/b/00000000000000ab/disk\n",
        ),
    );
    try testing.expectEqualStrings(
        "#!ipxe\nchain http://10.0.0.1:6980/m/${netX/mac:hexhyp}/boot.ipxe\n",
        writeEntrance(options.http, &buffer),
    );
}

test "a script selects the clear-text stream, with a kernel and without one" {
    var options = test_options;
    var buffer: [size_max]u8 = undefined;
    for ([_]bool{ false, true }) |has_kernel| {
        options.has_kernel = has_kernel;
        for ([_]bool{ false, true }) |clear| {
            options.clear = clear;
            const text = write(options, &buffer);
            try testing.expectEqual(
                clear,
                std.mem.find(u8, text, "\nset bootfarm_stream clear\n") != null,
            );
            try testing.expectEqual(clear and
                has_kernel, std.mem.find(u8, text, " " ++ clear_word ++ " ") != null);
        }
    }
}

test "a refusal says why, waits and restarts, whatever a file's name is" {
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(
        \\#!ipxe
        \\echo bootfarm: kernel 6.1, initramfs for 6.2
        \\echo bootfarm: starting again in 60 s
        \\sleep 60
        \\reboot
        \\
    , writeRefusal("kernel 6.1, initramfs for 6.2", null, &buffer));
    const text = writeRefusal("a\nshell ${net0/mac} && b || c ; d", null, &buffer);
    try testing.expect(std.mem.find(u8, text, "a?shell ??net0/mac? ?? b ?? c ? d\n") != null);
    const long: [size_max]u8 = @splat('x');
    try testing.expect(writeRefusal(&long, null, &buffer).len < 2 * refusal_size_max);
    const link = PageLink.of("https://boot.example.org", .fromRandom(@splat(1)));
    const linked = "no\necho bootfarm: this boot: https://boot.example.org/b/010101010101\necho ";
    try testing.expect(std.mem.find(u8, writeRefusal("no", link, &buffer), linked) != null);
}

test "the longest command line and our own words fit the script and the kernel's limit" {
    var options = test_options;
    options.http = .{ .ip = .init(255, 255, 255, 255), .port = 65535 };
    options.stream = options.http;
    options.command_line = &@as([desired_state.command_line_size_max]u8, @splat('x'));
    options.local_disk = .{ .full = .read_only, .limit_bytes = std.math.maxInt(u64) };
    options.tuning =
        .ofKnown(&.{ "read-ahead=256m", "codec=auto", "read-limit=128k", "mtu=9000" });
    const url = "http://a/" ++ @as([PageLink.dashboard_size_max - 9]u8, @splat('b'));
    options.link = PageLink.of(url, options.identity.id).?;
    var buffer: [size_max]u8 = undefined;
    const text = write(options, &buffer);
    try testing.expect(text.len < size_max);
    const at = std.mem.find(u8, text, "/kernel ").? + "/kernel ".len;
    const line = text[at..][0..std.mem.findScalar(u8, text[at..], '\n').?];
    // The values that iPXE substitutes for the variables.
    const values = "255.255.255.255:65535".len + 36 + 32;
    // COMMAND_LINE_SIZE of x86 and arm64, with its terminator; iPXE adds nothing.
    try testing.expect(line.len + values < 2048);
}
