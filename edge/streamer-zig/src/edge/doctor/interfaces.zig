//! Checks the interface that devices reach: it exists, is up, has a link, and has an MTU that
//! firmware supports (netdevice(7)).

const std = @import("std");
const base = @import("base");
const host = @import("host");
const Findings = @import("findings.zig");
const linux = std.os.linux;

const siocgifflags = 0x8913;
const siocgifmtu = 0x8921;
const flag_up = 1;
const flag_running = 0x40;
/// The MTU of Ethernet; boot programs are sent in blocks that fill it.
const mtu_expected = 1500;

pub const Interface = struct { found: host.sockets.Interface, mtu: u32, is_loopback: bool };

/// Returns null if nothing can be served from the address.
pub fn check(findings: *Findings, listen: base.Ip4) error{OutOfMemory}!?Interface {
    const found = host.sockets.interfaceOf(listen) catch null orelse {
        if (listen.bytes[0] == 127) return loopback(findings);
        try findings.report(
            .problem,
            .interface,
            try findings.print("{f} is not an address of this machine.", .{listen}),
            "Pass --listen one that is (`ip -4 addr` shows them), and make it a fixed one.",
        );
        return null;
    };
    if (listen.bytes[0] == 127) return loopback(findings);
    const name = found.name();
    const flags: u32 = ask(name, siocgifflags, u16) orelse 0;
    const mtu = ask(name, siocgifmtu, u32) orelse mtu_expected;
    if (flags & flag_up == 0) try findings.report(
        .problem,
        .interface,
        try findings.print("{s}, which has {f}, is down.", .{ name, listen }),
        try findings.print("ip link set {s} up", .{name}),
    ) else if (flags & flag_running == 0) try findings.report(
        .problem,
        .interface,
        try findings.print("{s}, which has {f}, has no link.", .{ name, listen }),
        "Check the cable and the switch's port.",
    ) else if (mtu < mtu_expected) try findings.report(
        .warning,
        .interface,
        try findings.print("{s}, which has {f}, has an MTU of {d} bytes.", .{ name, listen, mtu }),
        try findings.print(
            "ip link set {s} mtu {d}; otherwise blocks are fragmented, and much firmware drops fragments.",
            .{ name, mtu_expected },
        ),
    ) else try findings.ok(
        .interface,
        "{s} has {f}/{d}, a link, and an MTU of {d} bytes.",
        .{ name, listen, found.prefix_size, mtu },
    );
    return .{ .found = found, .mtu = mtu, .is_loopback = false };
}

fn loopback(findings: *Findings) error{OutOfMemory}!?Interface {
    try findings.report(
        .warning,
        .interface,
        "The address is on loopback: no other machine can reach it.",
        "Pass --listen the address that devices reach.",
    );
    const found = host.sockets.interfaceOf(.init(127, 0, 0, 1)) catch null orelse return null;
    return .{ .found = found, .mtu = 65536, .is_loopback = true };
}

/// Reads a field of struct ifreq: the name, then the value.
fn ask(name: []const u8, request: u32, comptime T: type) ?T {
    const rc = linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const fd: i32 = @intCast(host.sys.check(rc) catch return null);
    defer host.sys.close(fd);
    var buffer: [40]u8 align(8) = @splat(0);
    if (name.len >= linux.IFNAMESIZE) return null;
    @memcpy(buffer[0..name.len], name);
    _ = host.sys.check(linux.ioctl(fd, request, @intFromPtr(&buffer))) catch return null;
    return std.mem.readInt(T, buffer[16..][0..@sizeOf(T)], .native);
}
