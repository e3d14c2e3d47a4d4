//! Runs a program of the root inside the root, in its own mount namespace: its mounts vanish when
//! it ends, however it ends.

const std = @import("std");
const linux = std.os.linux;
const RootDirectory = @import("root_directory.zig");

pub const Error = error{
    /// It could not be started.
    NotStarted,
    /// It ended with a code other than 0, which is in `last_code`.
    Failed,
};

pub var last_code: u32 = 0;

const not_started_code = 127;
/// In mount order; Debian's base-files has all of these directories.
const mounts = [_][*:0]const u8{ "dev", "proc", "sys" };

/// `arguments` begin with the program's path inside the root; standard output and error are ours.
pub fn run(
    root: RootDirectory,
    is_running_system: bool,
    arguments: [:null]const ?[*:0]const u8,
) Error!void {
    const forked = linux.fork();
    if (linux.errno(forked) != .SUCCESS) return error.NotStarted;
    const pid: i32 = @bitCast(@as(u32, @truncate(forked)));
    if (pid == 0) {
        if (is_running_system or enter(root)) start(arguments);
        linux.exit_group(not_started_code);
    }
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(pid, &status, 0)) == .INTR) {}
    const waited: u32 = @bitCast(status);
    if (!linux.W.IFEXITED(waited)) return error.Failed;
    last_code = linux.W.EXITSTATUS(waited);
    if (last_code == not_started_code) return error.NotStarted;
    if (last_code != 0) return error.Failed;
}

/// Runs in the child: a mount namespace with /dev, /proc and /sys of the running system, then the
/// root.
fn enter(root: RootDirectory) bool {
    // First: a working directory is carried into the new namespace, an open directory is not.
    if (!ok(linux.fchdir(root.fd))) return false;
    if (!ok(linux.unshare(linux.CLONE.NEWNS))) return false;
    if (!ok(linux.mount("none", "/", null, linux.MS.REC | linux.MS.PRIVATE, 0))) return false;
    for (mounts) |name| {
        var from: [8:0]u8 = @splat(0);
        _ = std.mem.print(&from, "/{s}", .{name}) catch unreachable; // The longest is /proc.
        if (!ok(linux.mount(&from, name, null, linux.MS.BIND | linux.MS.REC, 0))) return false;
    }
    return ok(linux.chroot(".")) and ok(linux.chdir("/"));
}

fn start(arguments: [:null]const ?[*:0]const u8) void {
    const environment = [_:null]?[*:0]const u8{
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL=C",
        "HOME=/root",
    };
    _ = linux.execve(arguments[0].?, arguments.ptr, &environment);
}

fn ok(rc: usize) bool {
    return linux.errno(rc) == .SUCCESS;
}
