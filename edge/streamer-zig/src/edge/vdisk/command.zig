//! `bootfarm-edge vdisk`: works on the versions of a store. Each subcommand has its own file with
//! its `Options` and a `run`. Its words and its `--json` output are one format, for people's
//! scripts and for the edge, which runs store jobs through it (core/uplink/store_job.zig). Being
//! killed at any moment is an ordinary end.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const arguments_module = @import("arguments.zig");
const options_module = @import("../options.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Terminal = @import("../terminal.zig").Terminal;

const Complaint = options_module.Complaint;
const Store = store_module.Store;
const Uuid = base.Uuid;

pub const Error = open_store.Error;

/// 0: done; 1: failed, and a sentence says why.
pub const exit_failed = 1;
/// A signal ended it; running it again continues.
pub const exit_interrupted = 3;
/// Another process has what this one needs; a sentence names it. The same command succeeds later.
pub const exit_busy = 4;

/// One run of a subcommand.
pub const Call = struct {
    init: std.process.Init,
    gpa: std.mem.Allocator,
    /// The name of the subcommand.
    name: []const u8,
    terminal: *Terminal,
    complaint: *Complaint,
    /// Prints lines for programs instead of text for people.
    is_json: bool,
    opened: *open_store.OpenStore,

    pub fn store(call: *const Call) *Store {
        return &call.opened.store;
    }

    pub fn files(call: *const Call) store_module.Files {
        return call.opened.on.files();
    }

    /// Returns the store's directory as it was given.
    pub fn path(call: *const Call) []const u8 {
        return call.opened.path;
    }

    pub fn fail(call: *const Call, comptime format: []const u8, values: anytype) error{Wrong} {
        return call.complaint.set(format, values);
    }

    /// Another process has what is needed; the sentence names it.
    pub fn failBusy(call: *const Call, comptime format: []const u8, values: anytype) error{Busy} {
        call.complaint.set(format, values) catch {};
        return error.Busy;
    }

    pub fn failStore(call: *const Call, problem: open_store.Problem) Error {
        return open_store.complainOf(call.path(), problem, call.complaint);
    }

    pub fn failVersion(call: *const Call, id: Uuid, problem: open_store.VersionProblem) Error {
        return open_store.complainOfVersion(call.path(), id, problem, call.complaint);
    }

    /// Acquires the right to change the store.
    pub fn lock(call: *const Call) Error!store_module.store_dir.Change {
        return call.opened.lock(call.init.io, call.name, call.complaint);
    }

    /// Does what `lock` does without waiting.
    pub fn lockNow(call: *const Call) Error!store_module.store_dir.Change {
        return call.opened.lockNow(call.name, call.complaint);
    }

    pub fn need(call: *const Call, id: ?Uuid, comptime option: []const u8) Error!Uuid {
        return id orelse call.fail("{s} needs " ++ option ++ ".", .{call.name});
    }

    /// Prints the result: the line of JSON, or the text.
    pub fn say(
        call: *const Call,
        json: anytype,
        comptime format: []const u8,
        values: anytype,
    ) void {
        if (call.is_json) return call.line(json);
        var buffer: [8192]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        writer.print(format ++ "\n", values) catch {};
        call.terminal.out(writer.buffered());
    }

    fn line(call: *const Call, json: anytype) void {
        var buffer: [8192]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        std.json.Stringify.value(json, .{}, &writer) catch unreachable;
        writer.writeByte('\n') catch unreachable;
        call.terminal.out(writer.buffered());
    }
};

pub fn randomId() Uuid {
    var random: [16]u8 = undefined;
    host.sys.random(&random);
    return .fromRandom(random);
}

const Run = *const fn (init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8;
const Subcommand = struct { name: []const u8, run: Run };

pub const subcommands = [_]Subcommand{
    of("init", @import("init.zig")),
    of("import", @import("import.zig")),
    of("export", @import("export.zig")),
    of("list", @import("list.zig")),
    of("show", @import("show.zig")),
    of("diff", @import("diff.zig")),
    of("seal", @import("seal.zig")),
    of("merge", @import("merge.zig")),
    of("verify", @import("verify.zig")),
    of("gc", @import("gc.zig")),
    of("profile", @import("profile.zig")),
    of("delete", @import("delete.zig")),
    of("caches", @import("caches.zig")),
    of("drop-cache", @import("drop_cache.zig")),
};

fn of(comptime name: []const u8, comptime module: type) Subcommand {
    const Made = struct {
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
                return if (err == error.Busy) exit_busy else failed;
            };
        }

        const Told =
            struct { terminal: *Terminal, complaint: *Complaint, common: *arguments_module.Common };

        fn begin(init: std.process.Init, rest: []const [:0]const u8, told: Told) Error!u8 {
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
    return .{ .name = name, .run = Made.run };
}

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    const names = comptime namesOf();
    if (arguments.len == 0)
        return terminal.fail(
            "Name a vdisk command: {s}; see bootfarm-edge vdisk --help.",
            .{names},
        );
    for (subcommands) |subcommand|
        if (std.mem.eql(u8, subcommand.name, arguments[0]))
            return subcommand.run(init, arguments[1..], terminal);
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
    _ = @import("output.zig");
}
