//! `bootfarm-edge vdisk`: what is done with the versions of a store. Each subcommand is a file of its own.

const std = @import("std");
const options_module = @import("../options.zig");
const open_store = @import("open_store.zig");
const Terminal = @import("../terminal.zig").Terminal;

const Complaint = options_module.Complaint;

pub const Error = open_store.Error;

/// 0: done; 1: not, and a sentence says why; 3: it was ended before, and can go on.
pub const exit_interrupted = 3;

pub const Call = struct {
    init: std.process.Init,
    /// Behind the subcommand's name.
    rest: []const [:0]const u8,
    terminal: *Terminal,
    complaint: *Complaint,
};

const Subcommand = struct { name: []const u8, run: *const fn (call: *const Call) Error!u8 };

const subcommands = [_]Subcommand{
    .{ .name = "init", .run = @import("init.zig").run },
    .{ .name = "import", .run = @import("import.zig").run },
    .{ .name = "export", .run = @import("export.zig").run },
    .{ .name = "list", .run = @import("list.zig").run },
    .{ .name = "show", .run = @import("show.zig").run },
    .{ .name = "diff", .run = @import("diff.zig").run },
    .{ .name = "merge", .run = @import("merge.zig").run },
    .{ .name = "verify", .run = @import("verify.zig").run },
    .{ .name = "gc", .run = @import("gc.zig").run },
    .{ .name = "delete", .run = @import("delete.zig").run },
};

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    const names = comptime namesOf();
    if (arguments.len == 0)
        return terminal.complain("Say what to do with vDisks: {s}; see bootfarm-edge --help.", .{names});
    var complaint: Complaint = .{};
    const call: Call = .{ .init = init, .rest = arguments[1..], .terminal = terminal, .complaint = &complaint };
    for (subcommands) |subcommand| {
        if (!std.mem.eql(u8, subcommand.name, arguments[0])) continue;
        return subcommand.run(&call) catch |err| switch (err) {
            error.Wrong => terminal.complain("{s}", .{complaint.text()}),
            error.OutOfMemory => terminal.complain("There is not enough memory.", .{}),
        };
    }
    return terminal.complain(
        "There is no command 'vdisk {s}': say {s}; see bootfarm-edge --help.",
        .{ arguments[0], names },
    );
}

fn namesOf() []const u8 {
    var text: []const u8 = "";
    for (subcommands, 0..) |subcommand, index| {
        const before = if (index == 0) "" else if (index + 1 == subcommands.len) " or " else ", ";
        text = text ++ before ++ subcommand.name;
    }
    return text;
}

test {
    _ = @import("arguments.zig");
    _ = @import("output.zig");
}
