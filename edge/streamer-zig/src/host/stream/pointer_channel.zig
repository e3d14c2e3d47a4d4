//! Passes pointers from one thread to others through a pipe, so that a thread can wait for them,
//! and the packet loop beside its sockets. Pointers are never split: they are shorter than what a
//! pipe takes at once.

const std = @import("std");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const PointerChannel = @This();

/// One to read, one to write.
fds: [2]i32,

/// What a pipe holds that nobody has made larger (pipe(7)).
pub const count_usual = (64 << 10) / @sizeOf(usize);

/// `loop`: the packet loop receives and never waits. `thread`: a thread receives and waits.
/// `count_max`: pointers that may be sent before any is received; a writer never waits.
pub fn init(
    receiver: enum { loop, thread },
    count_max: usize,
) error{SystemCallFailed}!PointerChannel {
    var fds: [2]i32 = undefined;
    _ = sys.check(linux.pipe2(&fds, .{ .CLOEXEC = true })) catch return error.SystemCallFailed;
    const pipe: PointerChannel = .{ .fds = fds };
    if (count_max > count_usual) {
        const size = std.math.ceilPowerOfTwoAssert(usize, count_max * @sizeOf(usize));
        _ = sys.check(linux.fcntl(fds[0], linux.F.SETPIPE_SZ, size)) catch {
            for (fds) |fd| sys.close(fd);
            return error.SystemCallFailed;
        };
    }
    if (receiver == .thread) return pipe;
    const flags: linux.O = .{ .NONBLOCK = true };
    const number: u32 = @bitCast(flags);
    _ = sys.check(linux.fcntl(fds[0], linux.F.SETFL, number)) catch return error.SystemCallFailed;
    return pipe;
}

pub fn deinit(pipe: *PointerChannel) void {
    sys.close(pipe.fds[0]);
    if (pipe.fds[1] >= 0) sys.close(pipe.fds[1]);
    pipe.* = undefined;
}

/// Receivers get null once everything that was sent is received.
pub fn end(pipe: *PointerChannel) void {
    sys.close(pipe.fds[1]);
    pipe.fds[1] = -1;
}

/// The descriptor that the receiver can wait for.
pub fn receiveFd(pipe: *const PointerChannel) i32 {
    return pipe.fds[0];
}

pub fn send(pipe: *const PointerChannel, comptime T: type, pointer: *T) void {
    const bytes = std.mem.toBytes(@intFromPtr(pointer));
    while (linux.errno(linux.write(pipe.fds[1], &bytes, bytes.len)) == .INTR) {}
}

/// Returns null if there is none now (loop), or if none will come (thread).
pub fn receive(pipe: *const PointerChannel, comptime T: type) ?*T {
    var bytes: [@sizeOf(usize)]u8 = undefined;
    while (true) {
        const rc = linux.read(pipe.fds[0], &bytes, bytes.len);
        if (linux.errno(rc) == .INTR) continue;
        if (linux.errno(rc) != .SUCCESS or rc != bytes.len) return null;
        return @ptrFromInt(std.mem.bytesToValue(usize, &bytes));
    }
}
