//! System calls that std.posix no longer wraps, with the errors that this program distinguishes.

const std = @import("std");
const linux = std.os.linux;

pub const Error = error{ WouldBlock, Interrupted, SystemCallFailed };

/// Returns the result of a raw system call, or its error.
pub fn check(rc: usize) Error!usize {
    return switch (linux.errno(rc)) {
        .SUCCESS => rc,
        .AGAIN => error.WouldBlock,
        .INTR => error.Interrupted,
        else => error.SystemCallFailed,
    };
}

pub fn close(fd: i32) void {
    _ = linux.close(fd);
}

/// In µs of CLOCK_MONOTONIC: the same for all processes as long as the kernel runs.
pub fn monotonicUs() u64 {
    return clockNs(.MONOTONIC) / std.time.ns_per_us;
}

/// Returns the interval between two ticks of the kernel's timer.
pub fn tickUs() u64 {
    var ts: linux.timespec = undefined;
    _ = check(linux.clock_getres(.MONOTONIC_COARSE, &ts)) catch return std.time.us_per_ms;
    return @max(@as(u64, @intCast(ts.nsec)) / std.time.ns_per_us, 1);
}

pub fn unixMs() u64 {
    return clockNs(.REALTIME) / std.time.ns_per_ms;
}

fn clockNs(clock: linux.clockid_t) u64 {
    var ts: linux.timespec = undefined;
    _ = linux.clock_gettime(clock, &ts);
    const ns = @as(i128, ts.sec) * std.time.ns_per_s + ts.nsec;
    // A wall clock before 1970 counts as 1970.
    return @intCast(@max(ns, 0));
}

/// Lets this process open as many files as the system allows; returns how many.
pub fn raiseFileLimit() u64 {
    var limit = std.posix.getrlimit(.NOFILE) catch return 1024;
    const before = limit.cur;
    limit.cur = limit.max;
    std.posix.setrlimit(.NOFILE, limit) catch return before;
    return limit.max;
}

/// Writes everything to a file; sockets need their own loop.
pub fn writeAll(fd: i32, bytes: []const u8) Error!void {
    var written: usize = 0;
    while (written < bytes.len) {
        const rest = bytes[written..];
        written += check(linux.write(fd, rest.ptr, rest.len)) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return err,
        };
    }
}

/// Writes everything to a file at an offset.
pub fn writeAllAt(fd: i32, bytes: []const u8, offset: u64) Error!void {
    var written: usize = 0;
    while (written < bytes.len) {
        const rest = bytes[written..];
        const rc = linux.pwrite(fd, rest.ptr, rest.len, @intCast(offset + written));
        written += check(rc) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return err,
        };
    }
}

/// Reads up to `buffer.len` bytes at an offset; short only at the end of the file.
pub fn readAt(fd: i32, buffer: []u8, offset: u64) Error!usize {
    var filled: usize = 0;
    while (filled < buffer.len) {
        const rest = buffer[filled..];
        const count = check(
            linux.pread(fd, rest.ptr, rest.len, @intCast(offset + filled)),
        ) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return err,
        };
        if (count == 0) break;
        filled += count;
    }
    return filled;
}

/// Reads a small file; what does not fit is cut.
pub fn readFile(path: [*:0]const u8, buffer: []u8) Error![]u8 {
    return readFileIn(linux.AT.FDCWD, path, buffer);
}

/// Like `readFile`, below an open folder.
pub fn readFileIn(folder_fd: i32, path: [*:0]const u8, buffer: []u8) Error![]u8 {
    const fd: i32 = @intCast(try check(linux.openat(folder_fd, path, .{ .CLOEXEC = true }, 0)));
    defer close(fd);
    return buffer[0..try readAt(fd, buffer, 0)];
}

/// Fills the buffer with random bytes from the kernel; a system without them cannot run this
/// program.
pub fn random(buffer: []u8) void {
    var filled: usize = 0;
    while (filled < buffer.len) {
        const rest = buffer[filled..];
        filled += check(linux.getrandom(rest.ptr, rest.len, 0)) catch |err| switch (err) {
            error.Interrupted, error.WouldBlock => continue,
            error.SystemCallFailed => @panic("getrandom does not work on this system"),
        };
    }
}

/// Waits until a descriptor can be read, for at most so long.
pub fn waitReadable(fd: i32, limit_ms: u64) void {
    var polled: [1]linux.pollfd = .{.{ .fd = fd, .events = linux.POLL.IN, .revents = 0 }};
    _ = linux.poll(&polled, 1, std.math.lossyCast(i32, limit_ms));
}

/// Wakes the thread that polls this eventfd. May be called from any thread.
pub fn wake(wake_fd: i32) void {
    const one: u64 = 1;
    _ = linux.write(wake_fd, std.mem.asBytes(&one), 8);
}
