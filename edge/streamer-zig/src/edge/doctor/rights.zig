//! Checks what this process may do: open ports below 1024, and listen on the segment
//! (capabilities(7)).

const std = @import("std");
const host = @import("host");
const options_module = @import("../options.zig");
const Findings = @import("findings.zig");

const net_bind_service = 10;
const net_raw = 13;

pub const Rights = struct { ports: bool, listening: bool };

pub fn check(findings: *Findings, options: *const options_module.Serve) error{OutOfMemory}!Rights {
    const effective = effectiveCapabilities() orelse {
        try findings.report(
            .warning,
            .rights,
            "The rights of this process cannot be read from /proc/self/status.",
            "Mount /proc, or run as root.",
        );
        return .{ .ports = true, .listening = false };
    };
    const ports = &options.ports;
    var lowest = @min(@min(ports.tftp, ports.http), ports.stream);
    if (options.dhcp != .off) lowest = @min(lowest, @min(ports.dhcp, ports.pxe));
    const rights: Rights = .{
        .ports = lowest >= lowestFreePort() or has(effective, net_bind_service),
        .listening = has(effective, net_raw),
    };
    if (!rights.ports) try findings.report(
        .problem,
        .rights,
        try findings.print("This user may not open port {d} and others below {d}.", .{
            lowest, lowestFreePort(),
        }),
        "Run as root, or give the program CAP_NET_BIND_SERVICE (AmbientCapabilities= of its systemd unit).",
    );
    if (!rights.listening) try findings.report(
        .warning,
        .rights,
        "CAP_NET_RAW is missing: offers of other servers are not heard, packets are not captured, and DHCP servers cannot be queried now.",
        "Run as root, or give the program CAP_NET_RAW as well.",
    );
    if (rights.ports and rights.listening)
        try findings.ok(.rights, "This user may open all ports and listen on the segment.", .{});
    return rights;
}

fn has(capabilities: u64, bit: u6) bool {
    return capabilities >> bit & 1 == 1;
}

fn effectiveCapabilities() ?u64 {
    var buffer: [8192]u8 = undefined;
    const text = host.sys.readFile("/proc/self/status", &buffer) catch return null;
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        const hex = std.mem.cutPrefix(u8, line, "CapEff:") orelse continue;
        return std.fmt.parseInt(u64, std.mem.trim(u8, hex, " \t"), 16) catch null;
    }
    return null;
}

fn lowestFreePort() u16 {
    var buffer: [32]u8 = undefined;
    const text = host.sys.readFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", &buffer) catch
        return 1024;
    return std.fmt.parseInt(u16, std.mem.trim(u8, text, " \n"), 10) catch 1024;
}
