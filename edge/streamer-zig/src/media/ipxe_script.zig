//! Builds the iPXE script of a boot medium. For each network card it gets an address and asks the
//! edges in order; after the last card it pauses and starts over. The screen shows each attempt,
//! iPXE's own error, and the next step. Uses only commands of the iPXE of 2019. Only the caller's
//! numbers are inserted.

const std = @import("std");
const base = @import("base");
const Writer = std.Io.Writer;
const assert = std.debug.assert;

pub const edges_max = 8;
pub const size_max = 8192;
/// Timeout of connection and answer. A card that is slow to see its link uses some of it.
const answer_limit_ms = 10_000;
/// Pause between two rounds over all cards and edges.
const pause_s = 10;

pub const FixedAddress = struct {
    ip: base.Ip4,
    /// Length of the network's prefix, 1 to 30.
    prefix: u6,
    gateway: base.Ip4,

    fn netmask(address: FixedAddress) base.Ip4 {
        return .fromInt(~@as(u32, 0) << @intCast(32 - @as(u8, address.prefix)));
    }
};

pub const Options = struct {
    /// Addresses for HTTP; at least one, at most `edges_max`.
    edges: []const base.Endpoint,
    /// Null uses DHCP.
    address: ?FixedAddress = null,
};

/// Cannot fail: `size_max` covers `edges_max` edges.
pub fn write(options: Options, buffer: *[size_max]u8) []const u8 {
    assert(options.edges.len > 0);
    assert(options.edges.len <= edges_max);
    var writer: Writer = .fixed(buffer);
    writeTo(&writer, options) catch unreachable;
    return writer.buffered();
}

fn writeTo(writer: *Writer, options: Options) Writer.Error!void {
    try writer.writeAll(
        \\#!ipxe
        \\set round:int32 1
        \\:round
        \\set card:int32 0
        \\echo
        \\echo Bootfarm boot medium, round ${round}, edges
    );
    for (options.edges) |edge| try writer.print(" {f}", .{edge});
    try writer.writeAll(
        \\
        \\:card
        \\isset ${net${card}/mac} || goto no_more_cards
        \\
    );
    try writeAddress(writer, options.address);
    try writer.writeAll(
        \\set bootfarm_query from=media&platform=${platform}&uuid=${uuid}
        \\
    );
    for (options.edges, 1..) |edge, number| try writeEdge(writer, edge, .{
        .number = number,
        .count = options.edges.len,
    });
    try writer.writeAll(
        \\goto next_card
        \\:no_address
        \\echo Bootfarm: net${card} has no address, for the reason above
        \\:next_card
        \\ifclose net${card}
        \\inc card
        \\goto card
        \\:no_more_cards
        \\iseq ${card} 0 && echo Bootfarm: iPXE has no driver for a network card of this machine ||
        \\
    );
    try writer.print(
        "echo Bootfarm: nothing booted; trying everything again in {d} s\n",
        .{pause_s},
    );
    try writer.print("sleep {d}\ninc round\ngoto round\n", .{pause_s});
}

/// Tells the kernel which card to use, and an address that no DHCP server would give it.
fn writeAddress(writer: *Writer, fixed: ?FixedAddress) Writer.Error!void {
    const address = fixed orelse return writer.writeAll(
        \\echo Bootfarm: asking a DHCP server for an address of net${card}, ${net${card}/mac}
        \\dhcp net${card} || goto no_address
        \\set bootfarm_words BOOTIF=01-${net${card}/mac:hexhyp}
        \\
    );
    try writer.writeAll("ifopen net${card} || goto no_address\n");
    try writer.print("set net${{card}}/ip {f}\n", .{address.ip});
    try writer.print("set net${{card}}/netmask {f}\n", .{address.netmask()});
    try writer.print("set net${{card}}/gateway {f}\n", .{address.gateway});
    try writer.writeAll("set bootfarm_words BOOTIF=01-${net${card}/mac:hexhyp}");
    try writer.print(" bootfarm.address={f}/{d},{f}\n", .{
        address.ip, address.prefix, address.gateway,
    });
}

const EdgePosition = struct { number: usize, count: usize };

fn writeEdge(writer: *Writer, edge: base.Endpoint, place: EdgePosition) Writer.Error!void {
    const number = place.number;
    try writer.print(
        "echo Bootfarm: asking edge {d} of {d}, {f}, from address ${{net${{card}}/ip}}\n",
        .{ number, place.count, edge },
    );
    try writer.print(
        "imgfetch --name bootfarm --timeout {d} " ++
            "http://{f}/m/${{net${{card}}/mac:hexhyp}}/boot.ipxe?${{bootfarm_query}} " ++
            "|| goto unanswered_{d}\n",
        .{ answer_limit_ms, edge, number },
    );
    try writer.print("imgexec bootfarm ||\n", .{});
    try writer.print(
        "echo Bootfarm: edge {f} answered, but its boot failed, for the reason above\n",
        .{edge},
    );
    try writer.print("goto after_{d}\n:unanswered_{d}\n", .{ number, number });
    try writer.print("echo Bootfarm: edge {f} gave no boot script, for the reason above", .{edge});
    try writer.writeAll(" (no such file: it does not know this machine)\n");
    // Otherwise the files of a failed boot would become part of the next one.
    try writer.print(":after_{d}\nimgfree\n", .{number});
}

const testing = std.testing;

test "every edge is asked in order and the script starts over" {
    const edges = [_]base.Endpoint{
        .{ .ip = .init(10, 0, 0, 1), .port = 6980 },
        .{ .ip = .init(10, 0, 0, 2), .port = 80 },
    };
    var buffer: [size_max]u8 = undefined;
    const text = write(.{ .edges = &edges }, &buffer);
    const order = [_][]const u8{
        "#!ipxe\n",
        "edges 10.0.0.1:6980 10.0.0.2:80\n",
        "dhcp net${card} || goto no_address\n",
        "imgfetch --name bootfarm --timeout 10000 " ++
            "http://10.0.0.1:6980/m/${net${card}/mac:hexhyp}/boot.ipxe?${bootfarm_query} " ++
            "|| goto unanswered_1\n",
        ":unanswered_1\n",
        "http://10.0.0.2:80/m/",
        ":unanswered_2\n",
        "sleep 10\n",
        "goto round\n",
    };
    var rest = text;
    for (order) |wanted| {
        const at = std.mem.find(u8, rest, wanted) orelse {
            std.debug.print("{s} is not in {s}\n", .{ wanted, rest });
            return error.Missing;
        };
        rest = rest[at + wanted.len ..];
    }
    try testing.expectEqualStrings("", rest);
}

test "every label that is jumped to exists once" {
    const edges: [edges_max]base.Endpoint = @splat(.{ .ip = .init(1, 2, 3, 4), .port = 1 });
    var buffer: [size_max]u8 = undefined;
    const text = write(.{ .edges = &edges }, &buffer);
    var lines = std.mem.splitScalar(u8, text, '\n');
    while (lines.next()) |line| {
        const at = std.mem.find(u8, line, "goto ") orelse continue;
        var label: [32]u8 = undefined;
        const wanted = try std.mem.print(&label, "\n:{s}\n", .{line[at + 5 ..]});
        try testing.expectEqual(1, std.mem.count(u8, text, wanted));
    }
}

test "a fixed address is set on the card and passed to the kernel" {
    const edges = [_]base.Endpoint{.{ .ip = .init(10, 0, 0, 1), .port = 6980 }};
    var buffer: [size_max]u8 = undefined;
    const text = write(.{ .edges = &edges, .address = .{
        .ip = .init(192, 168, 1, 20),
        .prefix = 22,
        .gateway = .init(192, 168, 0, 1),
    } }, &buffer);
    const wanted = "set net${card}/ip 192.168.1.20\n" ++ "set net${card}/netmask 255.255.252.0\n" ++
        "set net${card}/gateway 192.168.0.1\n" ++
        "set bootfarm_words BOOTIF=01-${net${card}/mac:hexhyp} " ++
        "bootfarm.address=192.168.1.20/22,192.168.0.1\n";
    try testing.expect(std.mem.find(u8, text, wanted) != null);
    try testing.expect(std.mem.find(u8, text, "dhcp net") == null);
}
