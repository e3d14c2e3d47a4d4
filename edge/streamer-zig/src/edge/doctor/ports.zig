//! Checks whether the edge's ports are free, and finds the process that has one that is not
//! (proc(5): net/udp, net/tcp, and the sockets among the processes' open files).

const std = @import("std");
const Io = std.Io;
const base = @import("base");
const host = @import("host");
const options_module = @import("../options.zig");
const Findings = @import("findings.zig");

const Protocol = enum { udp, tcp };
const NeededPort = struct { protocol: Protocol, port: u16, what: []const u8, option: []const u8 };

pub fn check(
    findings: *Findings,
    io: Io,
    options: *const options_module.Serve,
    listen: base.Ip4,
) error{OutOfMemory}!void {
    const ports = &options.ports;
    const peer = "other edges";
    const wanted = [_]NeededPort{
        .{ .protocol = .udp, .port = ports.dhcp, .what = "DHCP", .option = "--dhcp-port" },
        .{ .protocol = .udp, .port = ports.pxe, .what = "PXE", .option = "--pxe-port" },
        .{ .protocol = .udp, .port = ports.tftp, .what = "TFTP", .option = "--tftp-port" },
        .{ .protocol = .udp, .port = ports.stream, .what = "stream", .option = "--stream-port" },
        .{ .protocol = .tcp, .port = ports.http, .what = "boot HTTP", .option = "--http-port" },
        .{ .protocol = .udp, .port = ports.peer, .what = peer, .option = "--peer-port" },
        .{ .protocol = .tcp, .port = ports.peer, .what = peer, .option = "--peer-port" },
    };
    // A port that is taken then is that edge's.
    var is_edge_running = false;
    var free: u32 = 0;
    for (&wanted, 0..) |*one, index| {
        if (options.dhcp == .off and index < 2) continue;
        // Only a control plane names other edges.
        if (options.isAlone() and one.port == ports.peer) continue;
        const is_dhcp = index == 0;
        open(
            one,
            if (is_dhcp and !host.sockets.isLoopback(listen)) .zero else listen,
        ) catch |err| switch (err) {
            error.PortInUse => {
                const owner = try ownerOf(findings.arena, io, one);
                if (owner) |found| if (std.mem.eql(u8, found.name, "bootfarm-edge")) {
                    is_edge_running = true;
                    continue;
                };
                try addTakenPort(findings, one, owner);
                continue;
            },
            // Reported once, with the rights.
            error.PermissionDenied => continue,
            // Reported with the interface.
            error.AddressNotHere => continue,
            error.SystemCallFailed => {
                try findings.report(
                    .problem,
                    .ports,
                    try findings.print("{t} port {d} ({s}) cannot be opened.", .{
                        one.protocol, one.port, one.what,
                    }),
                    try findings.print("Choose another with {s}.", .{one.option}),
                );
                continue;
            },
        };
        free += 1;
    }
    if (is_edge_running)
        try findings.ok(.ports, "An edge is already running here and has its ports.", .{})
    else if (free > 0)
        try findings.ok(.ports, "{d} of the ports that an edge needs are free.", .{free});
}

fn open(wanted: *const NeededPort, ip: base.Ip4) host.sockets.OpenError!void {
    const address: base.Endpoint = .{ .ip = ip, .port = wanted.port };
    const fd = switch (wanted.protocol) {
        .udp => try host.sockets.openUdp(.{ .address = address }),
        .tcp => try host.sockets.openListener(address),
    };
    host.sys.close(fd);
}

fn addTakenPort(
    findings: *Findings,
    wanted: *const NeededPort,
    owner: ?Owner,
) error{OutOfMemory}!void {
    const who = if (owner) |found|
        try findings.print("{s} (process {d})", .{ found.name, found.pid })
    else
        "a program that this user cannot see";
    try findings.report(
        .problem,
        .ports,
        try findings.print("{t} port {d} ({s}) is taken by {s}.", .{
            wanted.protocol, wanted.port, wanted.what, who,
        }),
        try findings.print("Stop that program, or choose another port with {s}.", .{wanted.option}),
    );
}

const Owner = struct { pid: u32, name: []const u8 };

/// Returns null if no process is found, for example because this user may not see it.
fn ownerOf(arena: std.mem.Allocator, io: Io, wanted: *const NeededPort) error{OutOfMemory}!?Owner {
    var buffer: [256 * 1024]u8 = undefined;
    const path = switch (wanted.protocol) {
        .udp => "/proc/net/udp",
        .tcp => "/proc/net/tcp",
    };
    const table = host.sys.readFile(path, &buffer) catch return null;
    const inode = inodeOf(table, wanted) orelse return null;
    var link_buffer: [64]u8 = undefined;
    const link = std.mem.print(&link_buffer, "socket:[{d}]", .{inode}) catch unreachable;
    var proc = Io.Dir.cwd().openDir(io, "/proc", .{ .iterate = true }) catch return null;
    defer proc.close(io);
    var processes = proc.iterate();
    while (processes.next(io) catch null) |entry| {
        const pid = std.fmt.parseInt(u32, entry.name, 10) catch continue;
        if (!holds(io, pid, link)) continue;
        return .{ .pid = pid, .name = try nameOf(arena, pid) };
    }
    return null;
}

/// Returns the inode of the listening or unconnected socket of this port. Lines: `sl local_address
/// rem_address st tx:rx tr:when retrnsmt uid timeout inode`; addresses are hex, with the port after
/// the colon.
fn inodeOf(table: []const u8, wanted: *const NeededPort) ?u64 {
    const tcp_listen = "0A";
    var lines = std.mem.tokenizeScalar(u8, table, '\n');
    _ = lines.next();
    while (lines.next()) |line| {
        var fields = std.mem.tokenizeScalar(u8, line, ' ');
        _ = fields.next() orelse continue;
        const local = fields.next() orelse continue;
        _ = fields.next() orelse continue;
        const state = fields.next() orelse continue;
        const colon = std.mem.findScalar(u8, local, ':') orelse continue;
        const port = std.fmt.parseInt(u16, local[colon + 1 ..], 16) catch continue;
        if (port != wanted.port) continue;
        if (wanted.protocol == .tcp and !std.mem.eql(u8, state, tcp_listen)) continue;
        for (0..5) |_| _ = fields.next();
        return std.fmt.parseInt(u64, fields.next() orelse continue, 10) catch null;
    }
    return null;
}

fn holds(io: Io, pid: u32, link: []const u8) bool {
    var path_buffer: [64]u8 = undefined;
    const path = std.mem.print(&path_buffer, "/proc/{d}/fd", .{pid}) catch unreachable;
    var dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch return false;
    defer dir.close(io);
    var files = dir.iterate();
    while (files.next(io) catch null) |entry| {
        var target: [128]u8 = undefined;
        const size = dir.readLink(io, entry.name, &target) catch continue;
        if (std.mem.eql(u8, target[0..size], link)) return true;
    }
    return false;
}

fn nameOf(arena: std.mem.Allocator, pid: u32) error{OutOfMemory}![]const u8 {
    var path_buffer: [64]u8 = undefined;
    const path = std.mem.printSentinel(&path_buffer, "/proc/{d}/comm", .{pid}, 0) catch unreachable;
    var buffer: [64]u8 = undefined;
    const text = host.sys.readFile(path, &buffer) catch return "a process that has just ended";
    return arena.dupe(u8, base.UntrustedText.init(std.mem.trim(u8, text, "\n")).slice());
}
