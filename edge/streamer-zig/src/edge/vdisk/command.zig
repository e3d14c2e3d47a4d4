//! `bootfarm-edge vdisk`: works on the versions of a store. Each subcommand has its own file with
//! its `Options` and a `run`. Its words and its `--json` output are one format, for people's
//! scripts and for the edge, which runs store jobs through it (core/uplink/store_job.zig). Being
//! killed at any moment is an ordinary end.

const std = @import("std");
const arguments_module = @import("arguments.zig");
const options_module = @import("../options.zig");
const help = @import("../help.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Call = @import("subcommand.zig");
const Terminal = @import("../terminal.zig").Terminal;

const Complaint = options_module.Complaint;

const Run = *const fn (init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8;
const Subcommand = struct { name: []const u8, run: Run };

pub const subcommands = [_]Subcommand{
    of("init", @import("init.zig")),
    of("import", @import("import.zig")),
    of("import-pvs", @import("pvs/import_pvs.zig")),
    of("export", @import("export.zig")),
    of("pack", @import("difference/pack.zig")),
    of("list", @import("list.zig")),
    of("show", @import("show.zig")),
    of("files", @import("files/files.zig")),
    of("diff", @import("diff.zig")),
    of("seal", @import("seal.zig")),
    of("merge", @import("merge.zig")),
    of("verify", @import("verify.zig")),
    of("compress", @import("compress.zig")),
    of("gc", @import("gc.zig")),
    of("backup", @import("backup/backup.zig")),
    of("restore", @import("backup/restore.zig")),
    of("move", @import("backup/move.zig")),
    of("profile", @import("profile.zig")),
    of("delete", @import("delete.zig")),
    of("caches", @import("caches.zig")),
    of("caches export", @import("caches_export.zig")),
    of("caches snapshot", @import("caches_snapshot.zig")),
    of("caches import", @import("caches_import.zig")),
    of("caches copy", @import("copies/caches_copy.zig")),
    of("caches copies", @import("copies/caches_copies.zig")),
    of("caches restore-copy", @import("copies/caches_restore_copy.zig")),
    of("drop-cache", @import("drop_cache.zig")),
};

fn of(comptime name: []const u8, comptime module: type) Subcommand {
    const Runner = struct {
        fn run(init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8 {
            var complaint: Complaint = .{};
            var common: arguments_module.Common = .{};
            const code = begin(
                init,
                rest,
                .{ .terminal = terminal, .complaint = &complaint, .common = &common },
            );
            return code catch |err| {
                if (err == error.OutOfMemory)
                    complaint.set("There is not enough memory.", .{}) catch {};
                if (common.json) output.writeError(terminal, complaint.text());
                const failed = terminal.fail("{s}", .{complaint.text()});
                return if (err == error.Busy) Call.exit_busy else failed;
            };
        }

        const Output =
            struct { terminal: *Terminal, complaint: *Complaint, common: *arguments_module.Common };

        fn begin(init: std.process.Init, rest: []const [:0]const u8, told: Output) Call.Error!u8 {
            const options =
                try arguments_module.parse(module.Options, name, rest, told.common, told.complaint);
            const path = told.common.store orelse
                return told.complaint.set(
                    "vdisk " ++ name ++ " needs --store DIR, the directory of the store.",
                    .{},
                );
            var opened: open_store.OpenStore = undefined;
            var call: Call = .{
                .init = init,
                .gpa = std.heap.smp_allocator,
                .name = "vdisk " ++ name,
                .terminal = told.terminal,
                .complaint = told.complaint,
                .is_json = told.common.json,
                .opened = &opened,
            };
            if (@hasDecl(module, "make")) return module.make(&call, &options, path);
            try opened.open(call.gpa, path, told.complaint);
            defer opened.close(call.gpa);
            return module.run(&call, &options);
        }
    };
    return .{ .name = name, .run = Runner.run };
}

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    const names = comptime namesOf();
    if (arguments.len == 0)
        return terminal.fail(
            "Name a vdisk command: {s}; see bootfarm-edge vdisk --help.",
            .{names},
        );
    var found: ?*const Subcommand = null;
    var found_words: usize = 0;
    for (&subcommands) |*subcommand| {
        const words = help.wordsMatched(subcommand.name, arguments);
        if (words <= found_words) continue;
        found = subcommand;
        found_words = words;
    }
    if (found) |subcommand| return subcommand.run(init, arguments[found_words..], terminal);
    return terminal.fail(
        "There is no command 'vdisk {s}', only {s}; see bootfarm-edge vdisk --help.",
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
    _ = @import("export_directory.zig");
    _ = @import("files/summary.zig");
    _ = open_store;
    _ = @import("output.zig");
}
