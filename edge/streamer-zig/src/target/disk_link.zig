//! Messages between the process of the kernel's disk and the process of the stream: a read or write
//! is requested with a buffer of the shared memory, and is done. Each is one packet of a socket
//! pair; at most one per slot of the queue is in flight, so the socket is never full.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const sys = @import("host").sys;

pub const Request = extern struct {
    offset: u64,
    length: u32,
    slot: u32,
    kind: core.target.NbdQueue.Kind,
    reserved: u32 = 0,
};

/// `full`: it does not fit in the write cache.
pub const Result = enum(u32) { done, failed, full, _ };
pub const Answer = extern struct { slot: u32, result: Result };

/// The other process has gone.
pub const Error = error{Gone};

/// One end for each process.
pub fn pair() sys.Error![2]i32 {
    var fds: [2]i32 = undefined;
    const kind = linux.SOCK.SEQPACKET | linux.SOCK.CLOEXEC | linux.SOCK.NONBLOCK;
    _ = try sys.check(linux.socketpair(linux.AF.UNIX, kind, 0, &fds));
    return fds;
}

pub fn send(fd: i32, message: anytype) Error!void {
    const bytes = std.mem.asBytes(&message);
    while (true) {
        _ = sys.check(
            linux.sendto(fd, bytes, bytes.len, linux.MSG.NOSIGNAL, null, 0),
        ) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock => @panic(
                "the processes' socket has no room for one message of each slot",
            ),
            error.SystemCallFailed => return error.Gone,
        };
        return;
    }
}

/// Null if nothing is there to receive.
pub fn receive(comptime Message: type, fd: i32) Error!?Message {
    var message: Message = undefined;
    const bytes = std.mem.asBytes(&message);
    const size = sys.check(
        linux.recvfrom(fd, bytes, bytes.len, 0, null, null),
    ) catch |err| switch (err) {
        error.WouldBlock, error.Interrupted => return null,
        error.SystemCallFailed => return error.Gone,
    };
    // The other end is closed; no message is empty.
    return if (size == bytes.len) message else error.Gone;
}

const testing = std.testing;

test "every slot's message fits, and a closed end is noticed" {
    const fds = try pair();
    defer sys.close(fds[0]);
    try testing.expectEqual(null, try receive(Request, fds[0]));
    for (0..core.target.nbd_queue.slots_max) |slot| {
        const request: Request =
            .{ .offset = slot << 20, .length = 512, .slot = @intCast(slot), .kind = .read };
        try send(fds[0], request);
    }
    for (0..core.target.nbd_queue.slots_max) |slot| {
        const request = (try receive(Request, fds[1])).?;
        try testing.expectEqual(slot, request.slot);
    }
    try send(fds[1], Answer{ .slot = 3, .result = .failed });
    sys.close(fds[1]);
    try testing.expectEqual(Result.failed, (try receive(Answer, fds[0])).?.result);
    try testing.expectError(error.Gone, receive(Answer, fds[0]));
    try testing.expectError(error.Gone, send(fds[0], Answer{ .slot = 0, .result = .done }));
}
