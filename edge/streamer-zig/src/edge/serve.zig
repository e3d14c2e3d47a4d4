//! `bootfarm-edge serve`: opens everything or says what it cannot have, then runs until it is told
//! to end.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const host = @import("host");
const options_module = @import("options.zig");
const start = @import("start.zig");
const Edge = @import("edge.zig").Edge;
const Terminal = @import("terminal.zig").Terminal;

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    // Before any thread exists: threads inherit the mask.
    host.blockSignals();
    var complaint: options_module.Complaint = .{};
    const code = serve(init, arguments, terminal, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    // The uplink's threads wait for answers that may take half a minute; everything that counts is
    // on disk.
    std.process.exit(code);
}

fn serve(
    init: std.process.Init,
    arguments: []const [:0]const u8,
    terminal: *Terminal,
    complaint: *options_module.Complaint,
) start.Error!u8 {
    const options = try options_module.parseServe(init.arena.allocator(), arguments, complaint);
    var edge: Edge = .{
        .init = init,
        .terminal = terminal,
        .options = options,
        .manager = .open(init.environ_map.get("NOTIFY_SOCKET")),
    };
    try start.prepare(&edge, complaint);
    return edge.run();
}
