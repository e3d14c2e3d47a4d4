//! Runs a program of the system and captures its output, bounded in time and size.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const sys_time = @import("sys_time.zig");

const environment = [_:null]?[*:0]const u8{ "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C" };
/// Exit code of a child that found no program.
const not_found = 127;

pub const Error = error{
    /// There is no such program, or no process for it.
    CannotRun,
    /// It was stopped early: the output may be any part of the whole.
    TookTooLong,
};

/// Runs the first existing program of `paths` and returns its output, cut to `buffer`; stops it
/// after `limit_us`. `arguments` begin with the program's name.
pub fn outputOf(
    paths: []const [*:0]const u8,
    arguments: [*:null]const ?[*:0]const u8,
    buffer: []u8,
    limit_us: u64,
) Error![]const u8 {
    var pipe: [2]i32 = undefined;
    _ = sys.check(linux.pipe2(&pipe, .{ .CLOEXEC = true })) catch return error.CannotRun;
    const pid: i32 = @bitCast(@as(u32, @truncate(sys.check(linux.fork()) catch {
        sys.close(pipe[0]);
        sys.close(pipe[1]);
        return error.CannotRun;
    })));
    if (pid == 0) runInChild(paths, arguments, pipe[1]);
    sys.close(pipe[1]);
    const size = readUntilEnd(pipe[0], buffer, sys.monotonicUs() + limit_us);
    // This or the signal stops a program that still prints.
    sys.close(pipe[0]);
    _ = linux.kill(pid, .KILL);
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(pid, &status, 0)) == .INTR) {}
    const word: u32 = @bitCast(status);
    if (linux.W.IFEXITED(word) and linux.W.EXITSTATUS(word) == not_found) return error.CannotRun;
    return buffer[0 .. size orelse return error.TookTooLong];
}

/// Returns the number of bytes; null after the timeout.
fn readUntilEnd(fd: i32, buffer: []u8, deadline_us: u64) ?usize {
    var filled: usize = 0;
    while (filled < buffer.len) {
        const left_us = deadline_us -| sys.monotonicUs();
        if (left_us == 0) return null;
        var polled = [_]linux.pollfd{.{ .fd = fd, .events = linux.POLL.IN, .revents = 0 }};
        var timeout = sys_time.timespecOf(left_us);
        if (linux.ppoll(&polled, polled.len, &timeout, null) != 1) continue;
        const rest = buffer[filled..];
        const size = sys.check(linux.read(fd, rest.ptr, rest.len)) catch break;
        if (size == 0) break;
        filled += size;
    }
    return filled;
}

fn runInChild(
    paths: []const [*:0]const u8,
    arguments: [*:null]const ?[*:0]const u8,
    output: i32,
) noreturn {
    if (sys.check(linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0))) |nothing| {
        _ = linux.dup2(@intCast(nothing), 0);
        _ = linux.dup2(@intCast(nothing), 2);
    } else |_| {}
    _ = linux.dup2(output, 1);
    for (paths) |path| _ = linux.execve(path, arguments, &environment);
    linux.exit_group(not_found);
}

const testing = std.testing;

test "a program's output is captured, cut to the buffer" {
    var buffer: [8]u8 = undefined;
    const arguments = [_:null]?[*:0]const u8{ "sh", "-c", "echo 123; echo 456789" };
    const second = std.time.us_per_s;
    try testing.expectEqualStrings(
        "123\n4567",
        try outputOf(&.{ "/nowhere", "/bin/sh" }, &arguments, &buffer, 30 * second),
    );
}

test "a late program, a missing one and a silent one are told apart" {
    var buffer: [8]u8 = undefined;
    const endless = [_:null]?[*:0]const u8{ "sh", "-c", "echo 1; while :; do :; done" };
    try testing.expectError(
        error.TookTooLong,
        outputOf(&.{"/bin/sh"}, &endless, &buffer, 50 * std.time.us_per_ms),
    );
    const silent = [_:null]?[*:0]const u8{ "sh", "-c", "exit 1" };
    try testing.expectEqualStrings(
        "",
        try outputOf(&.{"/bin/sh"}, &silent, &buffer, 30 * std.time.us_per_s),
    );
    try testing.expectError(
        error.CannotRun,
        outputOf(&.{"/nowhere"}, &silent, &buffer, 30 * std.time.us_per_s),
    );
}
