//! The life of a thread that moves one difference (difference_fetch.zig, difference_send.zig): it
//! is started for a job, reports bytes while it runs, ends with an outcome, and is abandoned when
//! nobody waits for the job any more. Everything that waits looks for that several times a second.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const KeyRotation = @import("../uplink/key_rotation.zig");
const SitePeers = @import("site_peers.zig");
const UplinkClient = @import("../uplink/client.zig");
const Message = core.uplink.store_job.Message;
const messageOf = core.uplink.store_job.messageOf;

pub const TransferThread = @This();

const wait_step_ms = 200;
const stack_size = 2 << 20;

/// What every transfer gets. `store_path` outlives it.
pub const Context = struct {
    gpa: std.mem.Allocator,
    io: std.Io,
    client_options: UplinkClient.Options,
    rotation: *KeyRotation,
    /// Becomes readable when the thread ends.
    wake_fd: i32,
    store_path: []const u8,
    /// Null: this edge asks no others.
    peers: ?*SitePeers = null,
};

pub const State = enum(u8) {
    running,
    /// Nobody waits for it any more: the thread frees it.
    abandoned,
    done,
    failed,
};

context: Context,
job_id: base.Uuid,
total_bytes: std.atomic.Value(u64) = .init(0),
/// Bytes that are where they are to go.
done_bytes: std.atomic.Value(u64) = .init(0),
state: std.atomic.Value(State) = .init(.running),
/// Of what goes to the control plane or comes from there; 0: no limit. A new state may change it.
bytes_per_s: std.atomic.Value(u64) = .init(0),
/// Set before `failed` and `done`: why it failed, or what is to be said.
message: Message = .empty,

pub const Failed = error{Failed};

/// `owner` has this as `thread`, a function `work` that returns whether it was done, and `destroy`.
pub fn start(comptime Owner: type, owner: *Owner) std.Thread.SpawnError!void {
    const Runner = struct {
        fn run(moved: *Owner) void {
            const thread = &moved.thread;
            const wake_fd = thread.context.wake_fd;
            const end: State = if (moved.work()) .done else |_| .failed;
            if (thread.state.cmpxchgStrong(.running, end, .acq_rel, .acquire) != null)
                return moved.destroy();
            sys.wake(wake_fd);
        }
    };
    const spawned = try std.Thread.spawn(.{ .stack_size = stack_size }, Runner.run, .{owner});
    spawned.detach();
}

/// Ends the use of it by its owner. A thread that still runs ends after its request.
pub fn release(comptime Owner: type, owner: *Owner) void {
    const state = &owner.thread.state;
    if (state.cmpxchgStrong(.running, .abandoned, .acq_rel, .acquire) == null) return;
    owner.destroy();
}

pub fn stateNow(thread: *const TransferThread) State {
    return thread.state.load(.acquire);
}

pub fn isAbandoned(thread: *const TransferThread) bool {
    return thread.stateNow() == .abandoned;
}

pub fn fail(thread: *TransferThread, comptime format: []const u8, values: anytype) Failed {
    var buffer: [512]u8 = undefined;
    thread.message =
        messageOf(std.mem.print(&buffer, format, values) catch "The transfer failed.");
    return error.Failed;
}

/// Returns early if nobody waits for the transfer any more.
pub fn waitUntil(thread: *const TransferThread, until_ms: u64) void {
    while (!thread.isAbandoned()) {
        const left_ms = until_ms -| nowMs();
        if (left_ms == 0) return;
        const step: std.Io.Duration = .fromMilliseconds(@intCast(@min(left_ms, wait_step_ms)));
        thread.context.io.sleep(step, .awake) catch return;
    }
}

pub fn setRate(thread: *TransferThread, bytes_per_s: ?u64) void {
    thread.bytes_per_s.store(bytes_per_s orelse 0, .monotonic);
}

pub fn count(thread: *const TransferThread, move: SitePeers.Move, bytes: u64) void {
    if (thread.context.peers) |peers| peers.count(move, bytes);
}

/// Waits until the rate allows the next part.
pub fn waitForRate(thread: *const TransferThread, rate: *core.difference.RateLimit) void {
    const bytes_per_s = thread.bytes_per_s.load(.monotonic);
    rate.bytes_per_s = if (bytes_per_s == 0) null else bytes_per_s;
    const wait_us = rate.waitUs(sys.monotonicUs());
    if (wait_us > 0) thread.waitUntil(nowMs() + (wait_us + 999) / 1000);
}

pub fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

pub fn randomNumber() u64 {
    var bytes: [8]u8 = undefined;
    sys.random(&bytes);
    return std.mem.readInt(u64, &bytes, .little);
}
