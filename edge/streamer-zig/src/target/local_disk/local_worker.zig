//! The thread that waits for the local disk, so that the loop of the stream never does: a stuck
//! disk is a slow disk to the system, and nothing else stops. Requests are carried out in order of
//! arrival; at most one per slot of the queue is pending, so neither pipe is ever full.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const sys = @import("host").sys;
const protection = @import("../protection.zig");
const LocalCache = @import("local_cache.zig");
const Buffers = @import("../shared_memory.zig").Buffers;

const stack_size = 256 << 10;

pub const Request = extern struct {
    offset: u64,
    length: u32,
    slot: u32,
    kind: core.target.NbdQueue.Kind,
    /// Start of the bytes in the slot's buffer.
    buffer_at: u32 = 0,
};

/// `lost`, `damaged`: the content of the disk is unreliable.
pub const Result = enum(u32) { done, full, lost, damaged };
pub const Completion = extern struct { slot: u32, result: Result };

pub const LocalWorker = @This();

cache: *LocalCache,
buffers: *Buffers,
orders: [2]i32,
ended: [2]i32,

pub const StartError = std.Thread.SpawnError || error{SystemCallFailed};

/// In place: the thread keeps a pointer to it, and runs until the process ends.
pub fn start(worker: *LocalWorker, cache: *LocalCache, buffers: *Buffers) StartError!void {
    cache.map.look() catch return error.SystemCallFailed;
    worker.* = .{
        .cache = cache,
        .buffers = buffers,
        .orders = try pipe(.{ .CLOEXEC = true }),
        .ended = try pipe(.{ .CLOEXEC = true }),
    };
    const flags: linux.O = .{ .NONBLOCK = true };
    const number: u32 = @bitCast(flags);
    _ = sys.check(linux.fcntl(worker.ended[0], linux.F.SETFL, number)) catch
        return error.SystemCallFailed;
    const thread = try std.Thread.spawn(.{ .stack_size = stack_size }, run, .{worker});
    thread.detach();
}

pub fn submit(worker: *LocalWorker, order: Request) void {
    sys.writeAll(worker.orders[1], std.mem.asBytes(&order)) catch
        @panic("the pipe to the local disk's thread is closed");
}

/// Waits until everything that was submitted is done, and drops what is not taken yet.
pub fn finish(worker: *LocalWorker) void {
    const last = std.math.maxInt(u32);
    // In order of arrival, so it is the last one; it touches neither disk nor buffer.
    worker.submit(.{ .offset = 0, .length = 0, .slot = last, .kind = .flush });
    while (true) {
        if (worker.next()) |ended| {
            if (ended.slot == last) return;
            continue;
        }
        var polled = [_]linux.pollfd{.{ .fd = worker.fd(), .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.ppoll(&polled, polled.len, null, null);
    }
}

/// Becomes readable when `next` has something.
pub fn fd(worker: *const LocalWorker) i32 {
    return worker.ended[0];
}

pub fn next(worker: *LocalWorker) ?Completion {
    return receive(Completion, worker.ended[0]);
}

fn run(worker: *LocalWorker) void {
    // Only for this thread.
    _ = linux.prctl(protection.PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    while (true) {
        const order = receive(Request, worker.orders[0]) orelse continue;
        const ended: Completion = .{ .slot = order.slot, .result = worker.carryOut(&order) };
        sys.writeAll(worker.ended[1], std.mem.asBytes(&ended)) catch
            @panic("the pipe from the local disk's thread is closed");
    }
}

fn carryOut(worker: *LocalWorker, order: *const Request) Result {
    if (order.kind == .flush) return .done; // Everything that was answered is there.
    const cache = worker.cache;
    const buffer = &worker.buffers[order.slot];
    switch (order.kind) {
        .read => cache.lay(buffer[0..order.length], order.offset) catch |err| return resultOf(err),
        .write => {
            const bytes = buffer[order.buffer_at..][0..order.length];
            return switch (cache.write(bytes, order.offset) catch |err| return resultOf(err)) {
                .done => .done,
                .full => .full,
            };
        },
        .discard => cache.discard(order.offset, order.length) catch |err| return resultOf(err),
        .flush => unreachable,
    }
    return .done;
}

fn resultOf(err: LocalCache.Error) Result {
    return switch (err) {
        error.Lost => .lost,
        error.Damaged => .damaged,
    };
}

fn pipe(flags: linux.O) error{SystemCallFailed}![2]i32 {
    var fds: [2]i32 = undefined;
    _ = sys.check(linux.pipe2(&fds, flags)) catch return error.SystemCallFailed;
    return fds;
}

/// A message is shorter than what a pipe takes atomically, so it arrives whole.
fn receive(comptime Message: type, from: i32) ?Message {
    var message: Message = undefined;
    const size = sys.check(linux.read(from, std.mem.asBytes(&message), @sizeOf(Message))) catch
        return null;
    return if (size == @sizeOf(Message)) message else null;
}
