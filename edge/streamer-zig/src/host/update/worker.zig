//! The thread that fetches releases. agent/updates.zig decides when; the packet loop gives it
//! orders, and takes what was fetched.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const DataDir = @import("../files/data_dir.zig");
const KeyRotation = @import("../uplink/key_rotation.zig");
const ReleaseSlots = @import("release_slots.zig");
const UplinkClient = @import("../uplink/client.zig");
const Updates = @import("agent").Updates;
const Fetch = @import("fetch.zig").Fetch;
const Cause = core.update.Record.Cause;
const Io = std.Io;

pub const UpdateWorker = @This();

pub const Order = Updates.Order;

gpa: std.mem.Allocator,
io: Io,
data: *const DataDir,
slots: ReleaseSlots,
client_options: UplinkClient.Options,
rotation: *KeyRotation,
mutex: Io.Mutex = .init,
/// Behind the mutex.
updates: Updates = .{},
/// Wakes the packet loop when a release was fetched.
wake_fd: i32,
/// Grows with each change of an order; the thread waits for it.
changes: std.atomic.Value(u32) = .init(0),

/// The thread runs until the process ends.
pub fn start(worker: *UpdateWorker) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 2 << 20 }, run, .{worker});
    thread.detach();
}

/// Returns whether the order is news.
pub fn setOrder(worker: *UpdateWorker, order: ?Updates.Order) bool {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    if (!worker.updates.setOrder(order)) return false;
    worker.wakeThread();
    return true;
}

/// The release that lies in the data directory and is to take over now.
pub fn due(worker: *UpdateWorker, is_accepted: bool) ?Updates.Order {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    return worker.updates.due(is_accepted);
}

pub fn status(worker: *UpdateWorker) ?Updates.Status {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    return worker.updates.status();
}

pub fn onTried(worker: *UpdateWorker, tried: Updates.Tried) void {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    worker.updates.onTried(tried);
}

/// The fetched program cannot take over now.
pub fn onFailed(worker: *UpdateWorker, cause: Cause) void {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    worker.updates.onFailed(cause, nowMs(), randomNumber());
    worker.wakeThread();
}

fn wakeThread(worker: *UpdateWorker) void {
    _ = worker.changes.fetchAdd(1, .release);
    worker.io.futexWake(u32, &worker.changes.raw, 1);
}

fn run(worker: *UpdateWorker) void {
    var client: UplinkClient = .init(worker.gpa, worker.io, worker.client_options);
    defer client.deinit();
    while (true) {
        const seen = worker.changes.load(.acquire);
        switch (worker.next()) {
            .idle => worker.io.futexWait(u32, &worker.changes.raw, seen) catch return,
            .wait_until_ms => |until_ms| {
                const limit: Io.Timeout = .{ .duration = .{
                    .raw = .fromMilliseconds(@intCast(until_ms -| nowMs())),
                    .clock = .awake,
                } };
                worker.io.futexWaitTimeout(u32, &worker.changes.raw, seen, limit) catch return;
            },
            .fetch => |order| worker.fetch(&client, order),
        }
    }
}

fn next(worker: *UpdateWorker) Updates.Step {
    worker.mutex.lockUncancelable(worker.io);
    defer worker.mutex.unlock(worker.io);
    return worker.updates.next(nowMs());
}

fn fetch(worker: *UpdateWorker, client: *UplinkClient, order: Updates.Order) void {
    const version = order.version.constSlice();
    log.info("Release {s} is fetched.", .{version});
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    client.key = worker.rotation.key();
    var one: Fetch = .{
        .arena = arena.allocator(),
        .client = client,
        .data = worker.data,
        .slots = worker.slots,
    };
    var cause: Cause = undefined;
    if (one.run(version, &cause)) {
        worker.mutex.lockUncancelable(worker.io);
        defer worker.mutex.unlock(worker.io);
        if (!worker.updates.onFetched(order)) return;
        log.info("Release {s} was fetched and verified.", .{version});
        sys.wake(worker.wake_fd);
    } else |_| {
        worker.mutex.lockUncancelable(worker.io);
        defer worker.mutex.unlock(worker.io);
        worker.updates.onFailed(cause, nowMs(), randomNumber());
        log.info("Release {s} was not fetched: {s}. The edge retries.", .{
            version, cause.sentence(),
        });
    }
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

fn randomNumber() u64 {
    var bytes: [8]u8 = undefined;
    sys.random(&bytes);
    return std.mem.readInt(u64, &bytes, .little);
}
