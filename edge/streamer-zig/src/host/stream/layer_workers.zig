//! Threads that work on the files of write layers, so that no device waits for another one's disk:
//! they open, sync and close layers.

const std = @import("std");
const write_caches = @import("agent").write_caches;
const PointerChannel = @import("pointer_channel.zig");

const LayerWork = write_caches.LayerWork;

pub const LayerWorkers = @This();

/// Pointers of works to the threads, and back. A pipe has capacity for all works of all layers.
given: PointerChannel,
ended: PointerChannel,
threads: [threads_count]std.Thread = undefined,

/// All devices of a site may start at once, and the creation of a layer takes ten syncs.
const threads_count = 8;

pub fn init() error{SystemCallFailed}!LayerWorkers {
    return .{ .given = try .init(.thread), .ended = try .init(.loop) };
}

/// Threads run until `deinit`, or until the process ends.
pub fn run(workers: *LayerWorkers) std.Thread.SpawnError!void {
    for (&workers.threads) |*thread| thread.* = try std.Thread.spawn(
        .{ .stack_size = 512 << 10 },
        runAll,
        .{ workers.given, workers.ended },
    );
}

/// After `run`: waits until the threads have done what they were given.
pub fn deinit(workers: *LayerWorkers) void {
    workers.given.end();
    for (workers.threads) |thread| thread.join();
    workers.given.deinit();
    workers.ended.deinit();
    workers.* = undefined;
}

pub fn start(workers: *LayerWorkers, work: *LayerWork) void {
    workers.given.send(LayerWork, work);
}

/// There is nothing to do: it has ended when the loop looks next.
pub fn endSoon(workers: *LayerWorkers, work: *LayerWork) void {
    workers.ended.send(LayerWork, work);
}

/// A descriptor that can be read when a work has ended.
pub fn endedFd(workers: *const LayerWorkers) i32 {
    return workers.ended.receiveFd();
}

pub fn takeEnded(workers: *LayerWorkers) ?*LayerWork {
    return workers.ended.receive(LayerWork);
}

fn runAll(given: PointerChannel, ended: PointerChannel) void {
    while (given.receive(LayerWork)) |work| {
        work.run();
        ended.send(LayerWork, work);
    }
}
