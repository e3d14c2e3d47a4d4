//! `bootfarm-sim`: simulated devices over real sockets, and the demo's history.

const std = @import("std");
const history_command = @import("history_command.zig");

pub fn main(init: std.process.Init) !u8 {
    const io = init.io;
    const args = try init.minimal.args.toSlice(init.arena.allocator());
    var buffer: [1024]u8 = undefined;
    var errors: std.Io.File.Writer = .initStreaming(.stderr(), io, &buffer);
    defer errors.interface.flush() catch {};
    if (args.len >= 2 and std.mem.eql(u8, args[1], "history"))
        return history_command.run(io, std.heap.smp_allocator, args[2..], &errors.interface);
    try errors.interface.writeAll("bootfarm-sim: needs a command: history\n");
    return 1;
}
