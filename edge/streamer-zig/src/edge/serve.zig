//! `bootfarm-edge serve`: opens everything that the edge needs or prints what it cannot get, then
//! runs until a signal ends it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const host = @import("host");
const options_module = @import("options.zig");
const start = @import("start.zig");
const Edge = @import("edge.zig");
const Terminal = @import("terminal.zig").Terminal;

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    // Before any thread exists: threads inherit the mask.
    host.blockSignals();
    var complaint: options_module.Complaint = .{};
    const code = serve(init, arguments, terminal, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    host.log.finish();
    // The uplink's threads may wait half a minute for answers; everything that counts is on disk.
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
        .disk_watch = .{ .io = init.io },
        .manager = .open(init.environ_map.get("NOTIFY_SOCKET")),
    };
    try start.prepare(&edge, complaint);
    return edge.run();
}
