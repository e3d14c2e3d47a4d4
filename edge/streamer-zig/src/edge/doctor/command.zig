//! `bootfarm-edge doctor`: looks at a site before its first boot, or when boots fail, and says what
//! to do. It changes nothing and may run beside a serving edge.

const std = @import("std");
const options_module = @import("../options.zig");
const Terminal = @import("../terminal.zig").Terminal;
const control_plane = @import("control_plane.zig");
const dhcp_servers = @import("dhcp_servers.zig");
const firewall = @import("firewall.zig");
const interfaces = @import("interfaces.zig");
const local_files = @import("local_files.zig");
const ports = @import("ports.zig");
const restart = @import("restart.zig");
const rights = @import("rights.zig");
const routed_networks = @import("routed_networks.zig");
const Findings = @import("findings.zig");

const output_size_max = 64 * 1024;

/// The part of the checks that `--only` names.
const Part = enum { all, ports, restart, imports };

/// `arguments` follow `doctor`: those of `serve`, then `--only PART`. Returns 0 if there is no
/// problem.
pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: options_module.Complaint = .{};
    const arena = init.arena.allocator();
    const part = partOf(arguments);
    const given = arguments[0 .. arguments.len - @as(usize, if (part == .all) 0 else 2)];
    const options = options_module.parseDoctor(arena, given, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    var findings: Findings = .{ .arena = arena };
    (switch (part) {
        .all => look(&findings, init, &options),
        .ports => lookAtPorts(&findings, init.io, &options),
        .restart => restart.check(&findings, init.io, options.data orelse
            return terminal.fail("--only restart needs --data DIR.", .{}), .problem),
        .imports => if (options.store == null and options.data == null)
            return terminal.fail("--only imports needs --data DIR or --store DIR.", .{})
        else
            local_files.checkImports(&findings, init.io, &options),
    }) catch return terminal.fail("There is not enough memory.", .{});
    var buffer: [output_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    // What does not fit is cut: the texts and their number are bounded.
    (if (options.json) findings.writeJson(&writer) else findings.writeText(&writer)) catch {};
    terminal.out(writer.buffered());
    return if (findings.count(.problem) > 0) 1 else 0;
}

fn partOf(arguments: []const [:0]const u8) Part {
    if (arguments.len < 2) return .all;
    if (!std.mem.eql(u8, arguments[arguments.len - 2], "--only")) return .all;
    // Another word is an unknown option.
    return std.meta.stringToEnum(Part, arguments[arguments.len - 1]) orelse .all;
}

/// Checks, before an edge is installed, whether it could start.
fn lookAtPorts(
    findings: *Findings,
    io: std.Io,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    for (options.listens.items) |listen| {
        _ = try interfaces.check(findings, listen) orelse continue;
        try ports.check(findings, io, options, listen);
    }
}

fn look(
    findings: *Findings,
    init: std.process.Init,
    options: *const options_module.Serve,
) error{OutOfMemory}!void {
    const io = init.io;
    const may = try rights.check(findings, options);
    try firewall.check(findings, options);
    for (options.listens.items) |listen| {
        const interface = try interfaces.check(findings, listen) orelse continue;
        try ports.check(findings, io, options, listen);
        if (may.listening) try dhcp_servers.check(findings, options, listen, &interface);
    }
    try routed_networks.check(findings, io, options);
    try local_files.checkBootFiles(findings, io, options);
    try control_plane.checkClock(findings);
    if (options.vdisk != null) try local_files.checkDisk(findings, options);
    const data = options.data orelse return;
    try local_files.checkSpace(findings, data);
    try restart.check(findings, io, data, .warning);
    if (options.vdisk != null) return;
    const known = try control_plane.checkIdentity(findings, data) orelse return;
    if (try control_plane.keptState(findings, data, &known.identity)) |*state|
        try local_files.checkStore(findings, io, options, state);
    try local_files.checkImports(findings, io, options);
    var complaint: options_module.Complaint = .{};
    const transport = options.uplink.settings(
        init,
        known.identity.url,
        &complaint,
    ) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        error.Wrong => return findings.report(
            .problem,
            .uplink,
            try findings.print("{s}", .{complaint.text()}),
            "serve refuses to start with these options; see bootfarm-edge serve --help.",
        ),
    };
    try control_plane.checkUplink(findings, io, &known, transport);
}
