//! INT and TERM ask a long command to end at a point from which it can continue.

const std = @import("std");

pub var is_asked: std.atomic.Value(bool) = .init(false);

pub fn listen() void {
    const action: std.posix.Sigaction =
        .{ .handler = .{ .handler = ask }, .mask = std.posix.sigemptyset(), .flags = 0 };
    std.posix.sigaction(.INT, &action, null);
    std.posix.sigaction(.TERM, &action, null);
}

fn ask(_: std.posix.SIG) callconv(.c) void {
    is_asked.store(true, .monotonic);
}
