//! A boot's kernel command line for a loader's configuration: the version's own command line,
//! followed by the edge's address, the boot's identity and its token.

const std = @import("std");
const base = @import("base");
const boot_module = @import("../boot/boot.zig");
const desired_state = @import("../uplink/desired_state.zig");
const clear_word = @import("../stream/seal.zig").clear_word;
const LocalDisk = @import("../target/local_disk_order.zig");
const Tuning = @import("../target/tuning.zig");
const PageLink = @import("page_link.zig");

pub const KernelLine = @This();

identity: boot_module.Identity,
http: base.Endpoint,
stream: base.Endpoint,
/// Passed `isCommandLine`.
command_line: []const u8,
local_disk: ?LocalDisk = null,
/// Its words follow those of the command line, and the last one of a kind counts.
tuning: Tuning = .{},
/// The stream runs in clear text.
clear: bool = false,
/// For the device's console.
link: ?PageLink = null,

pub const size_max = desired_state.command_line_size_max + 256 + LocalDisk.text_size_max +
    Tuning.text_size_max + clear_word.len + 1 + PageLink.word.len +
    PageLink.size_max + 1;

/// Writes the line as the kernel is to receive it.
pub fn write(line: *const KernelLine, buffer: *[size_max]u8) []const u8 {
    const id = &line.identity;
    var writer: std.Io.Writer = .fixed(buffer);
    writer.print("{s}{s}bootfarm.edge={f} bootfarm.boot={f} bootfarm.token={x} ", .{
        line.command_line, if (line.command_line.len > 0) " " else "",
        line.stream,       id.id,
        &id.token,
    }) catch unreachable;
    writer.print("bootfarm.report=http://{f}/b/{x:0>16}", .{ line.http, id.handle }) catch
        unreachable;
    if (line.local_disk) |*order| writer.print(" {f}", .{order}) catch unreachable;
    writer.print("{f}", .{line.tuning}) catch unreachable;
    if (line.clear) writer.writeAll(" " ++ clear_word) catch unreachable;
    if (line.link) |*link| writer.print(" " ++ PageLink.word ++ "{f}", .{link}) catch unreachable;
    return writer.buffered();
}

pub const test_line: KernelLine = .{
    .identity = .{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .handle = 0xab,
        .token = @splat(0x0f),
    },
    .http = .{ .ip = .init(10, 0, 0, 1), .port = 6980 },
    .stream = .{ .ip = .init(10, 0, 0, 1), .port = 6910 },
    .command_line = "quiet",
};

test "the longest line fits its own buffer and the kernel's limit" {
    var line = test_line;
    line.http = .{ .ip = .init(255, 255, 255, 255), .port = 65535 };
    line.stream = line.http;
    line.command_line = &@as([desired_state.command_line_size_max]u8, @splat('x'));
    line.clear = true;
    line.tuning =
        .ofKnown(&.{ "read-ahead=256m", "codec=auto", "read-limit=128k", "mtu=9000" });
    line.local_disk = .{ .full = .read_only, .limit_bytes = std.math.maxInt(u64) };
    const url = "http://a/" ++ @as([PageLink.dashboard_size_max - 9]u8, @splat('b'));
    line.link = PageLink.of(url, line.identity.id).?;
    var buffer: [KernelLine.size_max]u8 = undefined;
    try std.testing.expect(line.write(&buffer).len < 2048);
}
