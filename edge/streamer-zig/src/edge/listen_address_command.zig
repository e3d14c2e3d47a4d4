//! `bootfarm-edge listen-address`: prints the address of this machine that an edge should listen
//! on: the only one, or that of the interface with the default route.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const Terminal = @import("terminal.zig").Terminal;

const Interfaces = host.interface_list.Interfaces;

pub fn run(_: std.process.Init, _: []const [:0]const u8, terminal: *Terminal) u8 {
    var interfaces: Interfaces = .empty;
    host.interface_list.read(&interfaces);
    var buffer: [16 * 1024]u8 = undefined;
    const routes = host.sys.readFile("/proc/net/route", &buffer) catch "";
    const ip = choose(&interfaces, routes) orelse {
        if (interfaces.count == 0)
            return terminal.fail("This machine has no IPv4 address; give it a fixed one.", .{});
        var text: [1024]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&text);
        for (interfaces.constSlice()) |*interface|
            writer.print(" {f} ({f})", .{ interface.ip, interface.name }) catch break;
        return terminal.fail(
            "This machine has several addresses; name the one that devices reach with --listen IP:{s}.",
            .{writer.buffered()},
        );
    };
    var text: [base.Ip4.text_size_max + 1]u8 = undefined;
    terminal.out(std.mem.print(&text, "{f}\n", .{ip}) catch unreachable);
    return 0;
}

fn choose(interfaces: *const Interfaces, routes: []const u8) ?base.Ip4 {
    if (interfaces.count == 1) return interfaces.constSlice()[0].ip;
    const name = defaultInterface(routes) orelse return null;
    for (interfaces.constSlice()) |*interface|
        if (std.mem.eql(u8, interface.name.slice(), name)) return interface.ip;
    return null;
}

/// Finds the default route in /proc/net/route (proc(5)): interface, destination, gateway, flags, …,
/// mask; the first line without a destination and a mask.
fn defaultInterface(routes: []const u8) ?[]const u8 {
    var lines = std.mem.tokenizeScalar(u8, routes, '\n');
    while (lines.next()) |line| {
        var fields = std.mem.tokenizeAny(u8, line, " \t");
        const name = fields.next() orelse continue;
        const destination = fields.next() orelse continue;
        var mask: []const u8 = "";
        for (0..6) |_| mask = fields.next() orelse "";
        if (std.mem.eql(u8, destination, "00000000") and std.mem.eql(u8, mask, "00000000"))
            return name;
    }
    return null;
}

test "the address is the only one, or that of the default route, and otherwise none is chosen" {
    const routes =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" ++
        "eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n" ++
        "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
    var interfaces: Interfaces = .empty;
    try std.testing.expect(choose(&interfaces, routes) == null);
    interfaces.appendAssumeCapacity(
        .{ .name = .init("eth1"), .ip = .init(10, 0, 0, 1), .prefixLength = 8, .mtu = 1500 },
    );
    try std.testing.expect(choose(&interfaces, "").?.eql(.init(10, 0, 0, 1)));
    interfaces.appendAssumeCapacity(
        .{ .name = .init("eth0"), .ip = .init(192, 168, 1, 9), .prefixLength = 24, .mtu = 1500 },
    );
    try std.testing.expect(choose(&interfaces, routes).?.eql(.init(192, 168, 1, 9)));
    try std.testing.expect(choose(&interfaces, routes[0..80]) == null);
}
