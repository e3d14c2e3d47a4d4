//! Replaces this process by a new one of the edge's program, which takes over its sockets
//! (net/inherited_sockets.zig). The process keeps its number, so that a service manager notices
//! nothing.

const std = @import("std");
const sys = @import("sys.zig");
const EdgeSockets = @import("net/edge_sockets.zig");
const InheritedSockets = @import("net/inherited_sockets.zig");
const linux = std.os.linux;

/// The running program, whatever lies at its path now.
pub const running_program = "/proc/self/exe";
/// What the kernel appends to the path of a program that was replaced.
const deleted_mark = " (deleted)";
/// In the environment of a former program that was kept: the path of the installed one.
const installed_variable = "BOOTFARM_EDGE_PROGRAM";
/// The same, in the environment of a release that runs in place of the installed program.
const updated_variable = "BOOTFARM_EDGE_UPDATED";

pub const Program = struct {
    /// Where a newer program is put.
    installed: [:0]const u8,
    kind: Kind,

    /// `former`: the installed program was left for this one. `updated`: this is a release of the
    /// control plane.
    pub const Kind = enum { installed, former, updated };

    /// Before `find`.
    pub const none: Program = .{ .installed = "", .kind = .installed };

    pub fn find(
        environment: *const std.process.Environ.Map,
        buffer: *[std.fs.max_path_bytes:0]u8,
    ) error{SystemCallFailed}!Program {
        if (environment.get(installed_variable)) |path|
            return .{ .installed = try within(buffer, path), .kind = .former };
        if (environment.get(updated_variable)) |path|
            return .{ .installed = try within(buffer, path), .kind = .updated };
        const rc = linux.readlink(running_program, buffer, buffer.len);
        const size = sys.check(rc) catch return error.SystemCallFailed;
        const path = std.mem.cutSuffix(u8, buffer[0..size], deleted_mark) orelse buffer[0..size];
        buffer[path.len] = 0;
        return .{ .installed = buffer[0..path.len :0], .kind = .installed };
    }

    fn within(
        buffer: *[std.fs.max_path_bytes:0]u8,
        path: []const u8,
    ) error{SystemCallFailed}![:0]const u8 {
        if (path.len >= buffer.len) return error.SystemCallFailed;
        @memcpy(buffer[0..path.len], path);
        buffer[path.len] = 0;
        return buffer[0..path.len :0];
    }
};

pub const Successor = union(enum) {
    /// The installed program.
    installed,
    /// Path of the program that was kept.
    former: [:0]const u8,
    /// Path of a release.
    updated: [:0]const u8,
};

/// Starts another program in this process. If that cannot be started, the one that runs now starts
/// again: an edge serves, whatever is put in its place. Returns only if the system starts neither.
pub fn run(
    init: std.process.Init,
    program: *const Program,
    successor: Successor,
    /// Null before there are any.
    sockets: ?*const EdgeSockets,
) error{ OutOfMemory, SystemCallFailed } {
    const arena = init.arena.allocator();
    const environment = init.environ_map;
    var buffer: [16 * InheritedSockets.count_max]u8 = undefined;
    if (sockets) |open| {
        const fds = try open.handles(arena);
        const text = InheritedSockets.leave(fds, &buffer) catch return error.SystemCallFailed;
        try environment.put(InheritedSockets.variable, text);
    }
    const path = switch (successor) {
        .installed => program.installed,
        .former, .updated => |path| path,
    };
    for ([_][]const u8{ installed_variable, updated_variable }) |name|
        _ = environment.swapRemove(name);
    switch (successor) {
        .installed => {},
        .former => try environment.put(installed_variable, program.installed),
        .updated => try environment.put(updated_variable, program.installed),
    }
    const all = init.minimal.args.toSlice(arena) catch return error.OutOfMemory;
    const words = try arena.allocSentinel(?[*:0]const u8, all.len, null);
    for (words, all) |*word, argument| word.* = argument.ptr;
    const variables = try arena.allocSentinel(?[*:0]const u8, environment.count(), null);
    for (variables, environment.keys(), environment.values()) |*variable, name, value|
        variable.* = try std.fmt.allocPrintSentinel(arena, "{s}={s}", .{ name, value }, 0);
    _ = linux.execve(path, words, variables);
    _ = linux.execve(running_program, words, variables);
    return error.SystemCallFailed;
}
