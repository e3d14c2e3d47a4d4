//! Many runs of the stream's proof on some threads: each takes the next seed until so many packets are sent. Which seeds are run, and what
//! comes of each, does not depend on the threads.

const std = @import("std");
const StreamWorld = @import("stream_world.zig");
const Checks = @import("stream_checks.zig");
const linux = std.os.linux;

pub const jobs_max = 16;
/// One run in so many is done again to compare the hashes.
const compared_every = 50;

pub const Options = struct {
    world: StreamWorld.Options,
    packets: u64,
    jobs: u8 = 1,
    /// Null: nothing is printed.
    progress_interval_s: ?u32 = null,
};

pub const Found = struct { seed: u64, violation: Checks.Violation };

pub const Result = struct {
    total: StreamWorld.Result = .{},
    compared: u64 = 0,
    /// That of the lowest seed.
    found: ?Found = null,
};

const Shared = struct {
    options: *const Options,
    runs: u64,
    next: std.atomic.Value(u64) = .init(0),
    is_over: std.atomic.Value(bool) = .init(false),
    running: std.atomic.Value(u32) = .init(0),
};

const Worker = struct {
    shared: *Shared,
    result: Result = .{},
    /// The run that it is at; all below that of every worker are done.
    at: std.atomic.Value(u64) = .init(0),
    has_memory: bool = true,
};

pub fn run(gpa: std.mem.Allocator, options: *const Options) error{ OutOfMemory, NoThreads }!Result {
    var shared: Shared = .{
        .options = options,
        .runs = std.math.divCeil(u64, options.packets, options.world.packets) catch unreachable,
    };
    var workers: [jobs_max]Worker = undefined;
    var threads: [jobs_max]std.Thread = undefined;
    var count: usize = 0;
    for (workers[0..options.jobs], threads[0..options.jobs]) |*worker, *thread| {
        worker.* = .{ .shared = &shared };
        _ = shared.running.fetchAdd(1, .monotonic);
        thread.* = std.Thread.spawn(.{}, work, .{ worker, gpa }) catch break;
        count += 1;
    }
    if (options.progress_interval_s) |seconds| watch(&shared, workers[0..count], seconds);
    for (threads[0..count]) |thread| thread.join();
    if (count < options.jobs) return error.NoThreads;
    var all: Result = .{};
    for (workers[0..count]) |*worker| {
        if (!worker.has_memory) return error.OutOfMemory;
        all.total.add(&worker.result.total);
        all.compared += worker.result.compared;
        const found = worker.result.found orelse continue;
        if (all.found == null or found.seed < all.found.?.seed) all.found = found;
    }
    return all;
}

fn work(worker: *Worker, gpa: std.mem.Allocator) void {
    defer _ = worker.shared.running.fetchSub(1, .monotonic);
    workUntilOver(worker, gpa) catch {
        worker.has_memory = false;
        worker.shared.is_over.store(true, .monotonic);
    };
}

fn workUntilOver(worker: *Worker, gpa: std.mem.Allocator) error{OutOfMemory}!void {
    const shared = worker.shared;
    const world: *StreamWorld = try .create(gpa);
    defer world.destroy(gpa);
    while (!shared.is_over.load(.monotonic)) {
        const number = shared.next.fetchAdd(1, .monotonic);
        if (number >= shared.runs) break;
        worker.at.store(number, .monotonic);
        var options = shared.options.world;
        options.seed +%= number;
        const result = try runOnce(world, options, number, &worker.result.compared);
        worker.result.total.add(&result);
        const violation = result.violation orelse continue;
        worker.result.found = .{ .seed = options.seed, .violation = violation };
        shared.is_over.store(true, .monotonic);
    }
    worker.at.store(shared.runs, .monotonic);
}

fn runOnce(world: *StreamWorld, options: StreamWorld.Options, number: u64, compared: *u64) error{OutOfMemory}!StreamWorld.Result {
    var result = try world.run(options);
    if (number % compared_every != 0 or result.violation != null) return result;
    compared.* += 1;
    const again = try world.run(options);
    if (again.hash == result.hash) return result;
    var checks: Checks = .{};
    checks.violate(.same_seed_same_run, "hash {x:0>16}, and {x:0>16} the second time", .{ result.hash, again.hash });
    result.violation = checks.violation;
    return result;
}

/// Says now and then how far it is, and with which seed it goes on when it is ended.
fn watch(shared: *Shared, workers: []Worker, seconds: u32) void {
    var waited_ms: u64 = 0;
    while (shared.running.load(.monotonic) > 0) {
        const step_ms = 100;
        const time: linux.timespec = .{ .sec = 0, .nsec = step_ms * std.time.ns_per_ms };
        _ = linux.nanosleep(&time, null);
        waited_ms += step_ms;
        if (waited_ms < @as(u64, seconds) * std.time.ms_per_s) continue;
        waited_ms = 0;
        var done = shared.runs;
        for (workers) |*worker| done = @min(done, worker.at.load(.monotonic));
        const packets = done * shared.options.world.packets;
        std.debug.print("{d} of {d} packets; ended now, it goes on with --seed {d} --packets {d}\n", .{
            packets, shared.options.packets, shared.options.world.seed +% done, shared.options.packets -| packets,
        });
    }
}
