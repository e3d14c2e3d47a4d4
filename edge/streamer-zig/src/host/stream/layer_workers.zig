//! Threads that work on the files of write layers, so that no device waits for another one's disk.
//! Some open, sync and close layers, others write to them: a write into memory does not wait behind
//! syncs.

const std = @import("std");
const store = @import("store");
const write_caches = @import("agent").write_caches;
const PointerChannel = @import("pointer_channel.zig");
const Reader = @import("read_workers.zig").Reader;
const version_disk = @import("version_disk.zig");
const assert = std.debug.assert;

const HeldDisk = version_disk.HeldDisk;
const LayerWork = write_caches.LayerWork;

pub const LayerWorkers = @This();

/// A work, from its start until the loop has heard of its end.
const Job = struct {
    work: *LayerWork = undefined,
    /// The version below the layer; null: the work does not read it, or it is not open now.
    below: ?HeldDisk = null,
    next: ?*Job = null,
};

/// All devices of a site may start at once, and the creation of a layer takes ten syncs.
const sync_threads = 8;
const write_threads = 2;
/// Nodes of versions' trees in memory, for each thread that writes: 256 KiB.
const cache_nodes = 64;
/// Unpacked units in memory, likewise: 256 KiB.
const cache_units = 8;

/// Pointers of jobs to the threads, and back. A pipe has capacity for all of them.
syncs: PointerChannel,
writes: PointerChannel,
ended: PointerChannel,
jobs: []Job,
free: ?*Job = null,
readers: [write_threads]Reader,
threads: [sync_threads + write_threads]std.Thread = undefined,

/// A layer has one work and one sync in progress.
pub fn init(
    gpa: std.mem.Allocator,
    layers_max: u32,
) error{ OutOfMemory, SystemCallFailed }!LayerWorkers {
    const jobs = try gpa.alloc(Job, 2 * layers_max);
    errdefer gpa.free(jobs);
    var workers: LayerWorkers = .{
        .syncs = try .init(.thread, jobs.len),
        .writes = try .init(.thread, jobs.len),
        .ended = try .init(.loop, jobs.len),
        .jobs = jobs,
        .readers = undefined,
    };
    for (&workers.readers) |*reader| reader.* = try .init(gpa, cache_nodes, cache_units);
    for (jobs) |*job| {
        job.* = .{ .next = workers.free };
        workers.free = job;
    }
    return workers;
}

/// Threads run until `deinit`, or until the process ends: `workers` must not move.
pub fn run(workers: *LayerWorkers) std.Thread.SpawnError!void {
    for (&workers.threads, 0..) |*thread, index| thread.* = try std.Thread.spawn(
        .{ .stack_size = 512 << 10 },
        runAll,
        .{
            if (index < sync_threads) workers.syncs else workers.writes,
            workers.ended,
            if (index < sync_threads) null else &workers.readers[index - sync_threads],
        },
    );
}

/// After `run`: waits until the threads have done what they were given.
pub fn deinit(workers: *LayerWorkers, gpa: std.mem.Allocator) void {
    workers.syncs.end();
    workers.writes.end();
    for (workers.threads) |thread| thread.join();
    while (workers.takeEnded()) |_| {}
    for (&workers.readers) |*reader| reader.deinit(gpa);
    workers.syncs.deinit();
    workers.writes.deinit();
    workers.ended.deinit();
    gpa.free(workers.jobs);
    workers.* = undefined;
}

pub fn start(
    workers: *LayerWorkers,
    work: *LayerWork,
    below: ?*const version_disk.VersionDisk,
) void {
    const job = workers.take(work);
    if (below) |disk| job.below = HeldDisk.init(disk) catch null;
    const channel = if (work.kind == .write) &workers.writes else &workers.syncs;
    channel.send(Job, job);
}

/// There is nothing to do: it has ended when the loop looks next.
pub fn endSoon(workers: *LayerWorkers, work: *LayerWork) void {
    workers.ended.send(Job, workers.take(work));
}

/// A descriptor that can be read when a work has ended.
pub fn endedFd(workers: *const LayerWorkers) i32 {
    return workers.ended.receiveFd();
}

pub fn takeEnded(workers: *LayerWorkers) ?*LayerWork {
    const job = workers.ended.receive(Job) orelse return null;
    if (job.below) |*below| below.letGo();
    const work = job.work;
    job.* = .{ .next = workers.free };
    workers.free = job;
    return work;
}

fn take(workers: *LayerWorkers, work: *LayerWork) *Job {
    const job = workers.free.?;
    workers.free = job.next;
    job.* = .{ .work = work };
    return job;
}

fn runAll(given: PointerChannel, ended: PointerChannel, reader: ?*Reader) void {
    while (given.receive(Job)) |job| {
        var below: Below = .{ .reader = reader, .disk = if (job.below) |*disk| disk else null };
        const layer = job.work.layer;
        // The version's own reader is the packet loop's.
        if (job.work.kind == .write) layer.inner.below = below.source(layer.binding.disk_size);
        job.work.run();
        ended.send(Job, job);
    }
}

/// The version below a layer, read by a thread.
const Below = struct {
    reader: ?*Reader,
    disk: ?*HeldDisk,

    fn source(below: *Below, size: u64) store.BlockSource {
        return .{ .context = below, .vtable = &.{ .read = read }, .size = size };
    }

    fn read(context: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
        const below: *Below = @ptrCast(@alignCast(context));
        return below.reader.?.readBelow(below.disk orelse return error.ReadFailed, buffer, offset);
    }
};
