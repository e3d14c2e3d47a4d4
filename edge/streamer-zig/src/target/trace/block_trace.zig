//! The kernel's trace of requests to disks: an instance of tracefs of this program alone, so that
//! nothing else that traces on this machine notices it. It is gone with `end`.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const guest_trace = @import("core").boot.guest_trace;

pub const BlockTrace = @This();

/// The mounted tracefs, and the instance in it.
tracefs_fd: i32,
instance_fd: i32,
pipe_fd: i32,

/// tracefs is mounted here for a moment; what was opened there stays.
const mount_point = "/run/bootfarm/tracing";
const instance = "instances/bootfarm";
/// Before requests are merged, in the process that asks.
const event_enable = "events/block/block_bio_queue/enable";
/// Of each processor: some thousand events, read every few milliseconds.
const buffer_size_kib = "256";

pub const Error = error{
    /// No tracefs, or it is locked.
    NoTracing,
    NoEvent,
};

pub fn begin() Error!BlockTrace {
    const tracefs_fd = mountedFolder() orelse return error.NoTracing;
    errdefer sys.close(tracefs_fd);
    const made = linux.errno(linux.mkdirat(tracefs_fd, instance, 0o700));
    if (made != .SUCCESS and made != .EXIST) return error.NoTracing;
    errdefer _ = linux.unlinkat(tracefs_fd, instance, linux.AT.REMOVEDIR);
    const instance_fd = openFolder(tracefs_fd, instance) orelse return error.NoTracing;
    errdefer sys.close(instance_fd);
    _ = write(instance_fd, "buffer_size_kb", buffer_size_kib);
    // A reader is woken for each event, and not only when half of the buffer is full.
    _ = write(instance_fd, "buffer_percent", "0");
    const flags: linux.O = .{ .NONBLOCK = true, .CLOEXEC = true };
    const pipe_fd: i32 = @intCast(sys.check(
        linux.openat(instance_fd, "trace_pipe", flags, 0),
    ) catch return error.NoTracing);
    errdefer sys.close(pipe_fd);
    if (!write(instance_fd, event_enable, "1")) return error.NoEvent;
    return .{ .tracefs_fd = tracefs_fd, .instance_fd = instance_fd, .pipe_fd = pipe_fd };
}

/// No event comes after this; those that came are still in the pipe.
pub fn stop(trace: *const BlockTrace) void {
    _ = write(trace.instance_fd, event_enable, "0");
}

pub fn end(trace: *BlockTrace) void {
    sys.close(trace.pipe_fd);
    sys.close(trace.instance_fd);
    _ = linux.unlinkat(trace.tracefs_fd, instance, linux.AT.REMOVEDIR);
    sys.close(trace.tracefs_fd);
    trace.* = undefined;
}

/// Null: nothing is there now.
pub fn read(trace: *const BlockTrace, buffer: []u8) ?[]u8 {
    const size = sys.check(linux.read(trace.pipe_fd, buffer.ptr, buffer.len)) catch return null;
    return if (size == 0) null else buffer[0..size];
}

/// Waits for an event, or for this time.
pub fn wait(trace: *const BlockTrace, limit_ms: u64) void {
    sys.waitReadable(trace.pipe_fd, limit_ms);
}

fn mountedFolder() ?i32 {
    _ = linux.mkdir("/run/bootfarm", 0o755);
    _ = linux.mkdir(mount_point, 0o700);
    defer _ = linux.rmdir(mount_point);
    const flags = linux.MS.NOSUID | linux.MS.NODEV | linux.MS.NOEXEC;
    const rc = linux.mount("tracefs", mount_point, "tracefs", flags, 0);
    if (linux.errno(rc) != .SUCCESS) return null;
    // Whoever has it open keeps it: the system's own mount of tracefs is another one.
    defer _ = linux.umount2(mount_point, linux.MNT.DETACH);
    return openFolder(linux.AT.FDCWD, mount_point);
}

fn openFolder(folder_fd: i32, path: [*:0]const u8) ?i32 {
    const flags: linux.O = .{ .DIRECTORY = true, .CLOEXEC = true };
    return @intCast(sys.check(linux.openat(folder_fd, path, flags, 0)) catch return null);
}

fn write(folder_fd: i32, path: [*:0]const u8, text: []const u8) bool {
    const flags: linux.O = .{ .ACCMODE = .WRONLY, .CLOEXEC = true };
    const fd: i32 =
        @intCast(sys.check(linux.openat(folder_fd, path, flags, 0)) catch return false);
    defer sys.close(fd);
    sys.writeAll(fd, text) catch return false;
    return true;
}
