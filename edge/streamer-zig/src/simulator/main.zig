//! `bootfarm-sim`: simulated devices over real sockets, and the demo's history. Dispatches to one
//! file per command.

const std = @import("std");
const boot_command = @import("boot_command.zig");
const history_command = @import("history_command.zig");
const tftp_command = @import("tftp_command.zig");
const tftp_flood_command = @import("tftp_flood_command.zig");

const usage =
    \\Usage: bootfarm-sim COMMAND [OPTIONS]
    \\
    \\Simulates devices over real sockets, to test and measure an edge.
    \\
    \\  boot        boot simulated devices
    \\  history     write generated boots into an edge's report log
    \\  tftp-get    read a file by TFTP, many times at once
    \\  tftp-flood  request a file under many false addresses
    \\
    \\`bootfarm-sim COMMAND --help` explains a command and gives an example.
    \\
;

pub fn main(init: std.process.Init) !u8 {
    const io = init.io;
    const args = try init.minimal.args.toSlice(init.arena.allocator());
    var buffer: [1024]u8 = undefined;
    var errors: std.Io.File.Writer = .initStreaming(.stderr(), io, &buffer);
    defer errors.interface.flush() catch {};
    if (args.len >= 2 and std.mem.eql(u8, args[1], "history"))
        return history_command.run(io, std.heap.smp_allocator, args[2..], &errors.interface);
    var out_buffer: [4096]u8 = undefined;
    var out: std.Io.File.Writer = .initStreaming(.stdout(), io, &out_buffer);
    defer out.interface.flush() catch {};
    if (args.len >= 2 and std.mem.eql(u8, args[1], "boot"))
        return boot_command.run(
            io,
            std.heap.smp_allocator,
            args[2..],
            &out.interface,
            &errors.interface,
        );
    if (args.len >= 2 and std.mem.eql(u8, args[1], "tftp-get"))
        return tftp_command.run(
            std.heap.smp_allocator,
            args[2..],
            &out.interface,
            &errors.interface,
        );
    if (args.len >= 2 and std.mem.eql(u8, args[1], "tftp-flood"))
        return tftp_flood_command.run(
            std.heap.smp_allocator,
            args[2..],
            &out.interface,
            &errors.interface,
        );
    if (args.len == 2 and std.mem.eql(u8, args[1], "--help")) {
        try out.interface.writeAll(usage);
        return 0;
    }
    try errors.interface.writeAll(
        "bootfarm-sim: needs a command: boot, history, tftp-get or tftp-flood; see bootfarm-sim --help\n",
    );
    return 1;
}
