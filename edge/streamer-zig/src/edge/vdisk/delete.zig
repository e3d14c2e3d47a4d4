//! `bootfarm-edge vdisk delete`: a version that nobody has open goes; its room is free after `vdisk gc`.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const Uuid = base.Uuid;

const Options = struct {
    store: ?[]const u8 = null,
    version: ?Uuid = null,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = call.init.gpa;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    const id = options.version orelse return call.complaint.set("vdisk delete needs --version ID.", .{});
    var change = try opened.lock("vdisk delete", call.complaint);
    defer change.end();
    change.delete(id) catch |err| switch (err) {
        error.Locked => return call.complaint.set(
            "The version {f} is in use: an edge serves it, or another process reads it; end that first.",
            .{id},
        ),
        else => |other| return open_store.complainOfVersion(opened.path, id, other, call.complaint),
    };
    var buffer: [128]u8 = undefined;
    const text = if (options.json)
        std.mem.print(&buffer, "{{\"deleted\":\"{f}\"}}\n", .{id})
    else
        std.mem.print(&buffer, "deleted {f}; its room is free after bootfarm-edge vdisk gc\n", .{id});
    call.terminal.out(text catch unreachable);
    return 0;
}
