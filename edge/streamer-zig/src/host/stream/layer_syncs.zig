//! Threads that wait for the disk on behalf of write layers, so that one device's syncs keep no
//! other waiting.

const std = @import("std");
const write_caches = @import("agent").write_caches;
const PointerChannel = @import("pointer_channel.zig");

const Layer = write_caches.Layer;

pub const LayerSyncs = @This();

/// Pointers of layers to the threads, and back.
jobs: PointerChannel,
ended: PointerChannel,

const workers_count = 4;

pub fn init() error{SystemCallFailed}!LayerSyncs {
    return .{ .jobs = try .init(.thread), .ended = try .init(.loop) };
}

/// Starts the threads; they run until the process ends.
pub fn run(syncs: *const LayerSyncs) std.Thread.SpawnError!void {
    for (0..workers_count) |_| {
        const thread =
            try std.Thread.spawn(.{ .stack_size = 256 << 10 }, work, .{ syncs.jobs, syncs.ended });
        thread.detach();
    }
}

pub fn start(syncs: *LayerSyncs, layer: *Layer) void {
    syncs.jobs.send(Layer, layer);
}

/// There is nothing to sync: it has ended when the loop looks next.
pub fn endSoon(syncs: *LayerSyncs, layer: *Layer) void {
    syncs.ended.send(Layer, layer);
}

/// A descriptor that can be read when a sync has ended.
pub fn endedFd(syncs: *const LayerSyncs) i32 {
    return syncs.ended.receiveFd();
}

pub fn takeEnded(syncs: *LayerSyncs) ?*Layer {
    return syncs.ended.receive(Layer);
}

fn work(jobs: PointerChannel, ended: PointerChannel) void {
    while (jobs.receive(Layer)) |layer| {
        layer.result = layer.inner.runSync(&layer.batch);
        ended.send(Layer, layer);
    }
}
