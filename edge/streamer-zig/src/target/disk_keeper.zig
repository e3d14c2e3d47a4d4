//! The process that holds the kernel's disk. It reads no packets of the network: a child process
//! does, and is restarted whenever it ends. Requests in progress are then sent to the next child,
//! so the system only sees a slow disk. This process does little, and its memory is fixed.

const std = @import("std");
const linux = std.os.linux;
const core = @import("core");
const sys = @import("host").sys;
const say = @import("console.zig").say;
const disk_link = @import("disk_link.zig");
const sys_time = @import("sys_time.zig");
const KernelSocket = @import("kernel_socket.zig");
const NbdQueue = core.target.NbdQueue;

/// A child that lived less than this counts as a failed start: the next start waits longer each
/// time.
const settled_us = 10 * std.time.us_per_s;
const pause_us_first = 50 * std.time.us_per_ms;
const pause_us_max = 5 * std.time.us_per_s;

/// Runs in the child: it has one end of the link and never returns. `serial` counts from 0.
pub const StreamMain = *const fn (context: *anyopaque, link_fd: i32, serial: u32) noreturn;

pub const DiskKeeper = @This();

kernel: KernelSocket,
stream_main: StreamMain,
context: *anyopaque,
/// Used by the first child only, and closed here once it has it.
handed_over_fd: i32,
/// The pending request of each slot.
parts: [core.target.nbd_queue.slots_max]?NbdQueue.Part = @splat(null),
link_fd: i32 = -1,
pid: i32 = 0,
serial: u32 = 0,
started_at_us: u64 = 0,
pause_us: u64 = pause_us_first,

pub const Error = KernelSocket.Error;

/// Serves until the kernel closes the device.
pub fn run(keeper: *DiskKeeper) Error!void {
    keeper.startStream();
    while (true) {
        keeper.serve() catch |reason| switch (reason) {
            error.Gone => {
                keeper.endStream();
                keeper.startStream();
                continue;
            },
            error.KernelGone => return error.KernelGone,
        };
        try keeper.wait();
    }
}

fn serve(keeper: *DiskKeeper) (Error || disk_link.Error)!void {
    while (try disk_link.receive(disk_link.Answer, keeper.link_fd)) |answer|
        try keeper.take(answer);
    while (true) {
        const sent_any = try keeper.kernel.sendReplies();
        const took_any = try keeper.kernel.takeRequests();
        while (try keeper.kernel.nextPart()) |part| {
            keeper.parts[part.slot] = part;
            try keeper.ask(part);
        }
        if (!sent_any and !took_any) return;
    }
}

fn take(keeper: *DiskKeeper, answer: disk_link.Answer) Error!void {
    // Whatever the other process sends, the queue only hears of reads that it waits for.
    if (answer.slot >= keeper.parts.len or keeper.parts[answer.slot] == null) return;
    const slot: u8 = @intCast(answer.slot);
    switch (answer.result) {
        .done => keeper.kernel.queue.complete(slot),
        .failed => keeper.kernel.queue.fail(slot, .input_output) catch return error.KernelGone,
        .full => keeper.kernel.queue.fail(slot, .no_space) catch return error.KernelGone,
        _ => return,
    }
    keeper.parts[slot] = null;
}

fn ask(keeper: *DiskKeeper, part: NbdQueue.Part) disk_link.Error!void {
    const request: disk_link.Request =
        .{ .offset = part.offset, .length = part.length, .slot = part.slot, .kind = part.kind };
    try disk_link.send(keeper.link_fd, request);
}

fn wait(keeper: *DiskKeeper) Error!void {
    var polled = [_]linux.pollfd{
        .{ .fd = keeper.link_fd, .events = linux.POLL.IN, .revents = 0 },
        .{ .fd = keeper.kernel.fd, .events = keeper.kernel.pollEvents(), .revents = 0 },
    };
    _ = linux.ppoll(&polled, polled.len, null, null);
    const gone: i16 = linux.POLL.HUP | linux.POLL.ERR;
    if (polled[1].revents & gone != 0) return error.KernelGone;
}

/// Starts the stream's process, retrying until it runs, and sends it the requests in progress.
fn startStream(keeper: *DiskKeeper) void {
    while (true) {
        keeper.tryStart() catch {
            keeper.pause();
            continue;
        };
        keeper.retransmit() catch {}; // Noticed by the next `serve`.
        return;
    }
}

/// In order of arrival: of two writes to one place the later one counts.
fn retransmit(keeper: *DiskKeeper) disk_link.Error!void {
    var above: ?u64 = null;
    while (true) {
        var next: ?NbdQueue.Part = null;
        for (keeper.parts) |place| {
            const part = place orelse continue;
            if (above != null and part.sequence <= above.?) continue;
            if (next == null or part.sequence < next.?.sequence) next = part;
        }
        const part = next orelse return;
        try keeper.ask(part);
        above = part.sequence;
    }
}

fn tryStart(keeper: *DiskKeeper) sys.Error!void {
    const fds = try disk_link.pair();
    const pid = sys.check(linux.fork()) catch |err| {
        for (fds) |fd| sys.close(fd);
        return err;
    };
    if (pid == 0) {
        sys.close(fds[0]);
        // Otherwise the kernel would not notice that the keeper ended.
        sys.close(keeper.kernel.fd);
        keeper.stream_main(keeper.context, fds[1], keeper.serial);
    }
    sys.close(fds[1]);
    if (keeper.handed_over_fd >= 0) sys.close(keeper.handed_over_fd);
    keeper.handed_over_fd = -1;
    keeper.link_fd = fds[0];
    keeper.pid = @bitCast(@as(u32, @truncate(pid)));
    keeper.serial +%= 1;
    keeper.started_at_us = sys.monotonicUs();
}

/// Reports how the process ended; waits for its end.
fn endStream(keeper: *DiskKeeper) void {
    sys.close(keeper.link_fd);
    keeper.link_fd = -1;
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(keeper.pid, &status, 0)) == .INTR) {}
    const word: u32 = @bitCast(status);
    const how, const number = if (linux.W.IFEXITED(word))
        .{ "code", @as(u32, linux.W.EXITSTATUS(word)) }
    else
        .{ "signal", @backingInt(linux.W.TERMSIG(word)) };
    say("the process that talks to the edge ended ({s} {d}); starting another", .{ how, number });
    if (sys.monotonicUs() - keeper.started_at_us >= settled_us) {
        keeper.pause_us = pause_us_first;
    } else keeper.pause();
}

fn pause(keeper: *DiskKeeper) void {
    const time = sys_time.timespecOf(keeper.pause_us);
    _ = linux.nanosleep(&time, null);
    keeper.pause_us = @min(2 * keeper.pause_us, pause_us_max);
}
