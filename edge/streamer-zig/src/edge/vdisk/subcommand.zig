//! What every subcommand of `bootfarm-edge vdisk` works with: the run that it gets from
//! `command.zig`, its exit codes and its errors.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const Complaint = @import("../complaint.zig");
const open_store = @import("open_store.zig");
const Terminal = @import("../terminal.zig").Terminal;

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
pub const Call = @This();

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
    return open_store.explain(call.path(), problem, call.complaint);
}

pub fn failVersion(call: *const Call, id: Uuid, problem: open_store.VersionProblem) Error {
    return open_store.explainVersion(call.path(), id, problem, call.complaint);
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
pub fn print(call: *const Call, json: anytype, comptime format: []const u8, values: anytype) void {
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

pub fn randomId() Uuid {
    var random: [16]u8 = undefined;
    host.sys.random(&random);
    return .fromRandom(random);
}
