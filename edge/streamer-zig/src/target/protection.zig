//! Keeps the process that serves the root disk alive: the machine would stop if it needed something
//! from that disk while memory is short, or if it were killed with the other processes at shutdown.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;

/// Linux 5.6: this process is part of the way to a disk, so its allocations never wait for that
/// disk.
pub const PR_SET_IO_FLUSHER = 57;

/// Includes SIGCHLD: the kernel then discards children without a wait.
pub const ignored_signals =
    [_]std.posix.SIG{ .TERM, .INT, .HUP, .QUIT, .PIPE, .USR1, .USR2, .CHLD };

/// Leaves the caller's session and terminal, ignores the signals that end other programs, and locks
/// all memory. Returns false if the memory could not be locked.
pub fn protect() bool {
    _ = linux.setsid();
    const ignore: std.posix.Sigaction =
        .{ .handler = .{ .handler = linux.SIG.IGN }, .mask = std.posix.sigemptyset(), .flags = 0 };
    for (ignored_signals) |signal| std.posix.sigaction(signal, &ignore, null);
    _ = linux.prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    surviveShortMemory();
    return linux.errno(linux.mlockall(.{ .CURRENT = true, .FUTURE = true })) == .SUCCESS;
}

/// Undoes `protect` for one signal: the kernel keeps how a child ended until it is asked.
pub fn awaitChildren() void {
    const default: std.posix.Sigaction =
        .{ .handler = .{ .handler = linux.SIG.DFL }, .mask = std.posix.sigemptyset(), .flags = 0 };
    std.posix.sigaction(.CHLD, &default, null);
}

/// systemd spares processes whose name begins with `@` from its final kill
/// (https://systemd.io/ROOT_STORAGE_DAEMONS/).
pub fn markAsStorage(first_argument: [*:0]const u8) void {
    @constCast(first_argument)[0] = '@';
}

/// Exempts the process from the OOM killer. Continues without it if /proc is not mounted.
fn surviveShortMemory() void {
    const path = "/proc/self/oom_score_adj";
    const fd: i32 = @intCast(
        sys.check(linux.open(path, .{ .ACCMODE = .WRONLY, .CLOEXEC = true }, 0)) catch return,
    );
    defer sys.close(fd);
    const never = "-1000";
    _ = linux.write(fd, never, never.len);
}
