//! Checks that devices behind routers can get their boot scripts: nothing proves their MAC
//! addresses where another server gives them their addresses.

const std = @import("std");
const base = @import("base");
const networks = @import("../networks.zig");
const options_module = @import("../options.zig");
const trusted_networks = @import("../trusted_networks.zig");
const Findings = @import("findings.zig");

pub fn check(
    findings: *Findings,
    io: std.Io,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    var complaint: options_module.Complaint = .{};
    trusted_networks.check(options.trusted.items, &complaint) catch return findings.report(
        .problem,
        .dhcp,
        try findings.print("{s}", .{complaint.text()}),
        "Take the attached network out of --trust-mac-from.",
    );
    // Other checks report options with which the edge would not start.
    const found = networks.find(findings.arena, io, options, &complaint) catch |err| switch (err) {
        error.Wrong => return,
        error.OutOfMemory => return error.OutOfMemory,
    };
    for (found.networks) |*network| {
        if (network.link != null or network.mode == .server) continue;
        if (isTrusted(options.trusted.items, network.subnet)) continue;
        try findings.report(
            .warning,
            .dhcp,
            try findings.print(
                "Devices of {f} are behind a router and have addresses of another server: " ++
                    "their boot scripts are refused with 403.",
                .{network.subnet},
            ),
            try findings.print(
                "Start the edge with --trust-mac-from {f} if only trusted machines are there.",
                .{network.subnet},
            ),
        );
    }
}

fn isTrusted(trusted: []const base.Ip4Prefix, subnet: base.Ip4Prefix) bool {
    for (trusted) |network|
        if (network.size <= subnet.size and network.contains(subnet.ip)) return true;
    return false;
}
