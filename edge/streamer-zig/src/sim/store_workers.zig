//! Random runs of the store on some threads: each takes the next disk's seed until so many operations are done.

const std = @import("std");
const store = @import("store");
const Region = @import("region.zig");
const SignatureMemory = @import("signature_memory.zig");
const SimFiles = @import("sim_files.zig");
const StoreModel = @import("store_model.zig");
const store_run = @import("store_run.zig");
const StoreSequences = @import("store_sequences.zig");
const linux = std.os.linux;

const operations_per_disk = store_run.operations_per_disk;
pub const jobs_max = 16;
/// Distinct crash states that are told from each other; the rest is counted as power cuts alone.
const crash_states_max = 1 << 21;

pub const Options = struct {
    io: ?std.Io,
    seed: u64,
    operations: u64,
    jobs: u8 = 1,
    plant: ?store.simulated.Plant = null,
    lie: ?SimFiles.Lie = null,
    /// Null: nothing is printed.
    progress_interval_s: ?u32 = null,
};

pub const Result = struct {
    counts: StoreModel.Counts = .{},
    disks: u64 = 0,
    crash_states: u64 = 0,
    signatures_checked: u64 = 0,
    signatures_remembered: u64 = 0,
    /// The first that was found.
    violation: ?store_run.Violation = null,
};

const Shared = struct {
    options: *const Options,
    disks: u64,
    next: std.atomic.Value(u64) = .init(0),
    is_over: std.atomic.Value(bool) = .init(false),
    running: std.atomic.Value(u32) = .init(0),
};

const Worker = struct {
    shared: *Shared,
    result: Result = .{},
    crash_states: StoreModel.CrashStates = .empty,
    /// The disk that it is at; all below that of every worker are done.
    at: std.atomic.Value(u64) = .init(0),
    has_memory: bool = true,
};

pub fn run(gpa: std.mem.Allocator, options: *const Options) error{ OutOfMemory, NoThreads }!Result {
    var shared: Shared = .{
        .options = options,
        .disks = std.math.divCeil(u64, options.operations, operations_per_disk) catch unreachable,
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
    return gather(gpa, workers[0..count]);
}

fn gather(gpa: std.mem.Allocator, workers: []Worker) error{OutOfMemory}!Result {
    var total: Result = .{};
    defer for (workers) |*worker| worker.crash_states.deinit(gpa);
    for (workers) |*worker| {
        if (!worker.has_memory) return error.OutOfMemory;
        total.counts.add(&worker.result.counts);
        inline for (.{ "disks", "signatures_checked", "signatures_remembered" }) |name|
            @field(total, name) += @field(worker.result, name);
        if (worker.result.violation) |found| {
            if (total.violation == null or found.seed < total.violation.?.seed) total.violation = found;
        }
        if (worker == &workers[0]) continue;
        var states = worker.crash_states.keyIterator();
        while (states.next()) |state| try workers[0].crash_states.put(gpa, state.*, {});
    }
    total.crash_states = workers[0].crash_states.count();
    return total;
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
    const options = shared.options;
    const memory: *SignatureMemory = try .create(gpa);
    defer gpa.destroy(memory);
    const known = memory.interface();
    store.simulated.memory = &known;
    store.simulated.planted = options.plant;
    const batches = try gpa.create([3]store.WriteLayer.Batch);
    defer gpa.destroy(batches);
    const region: *Region = try .create();
    defer region.destroy();
    while (!shared.is_over.load(.monotonic)) {
        region.clear();
        const disk = shared.next.fetchAdd(1, .monotonic);
        if (disk >= shared.disks) break;
        worker.at.store(disk, .monotonic);
        const violation = try store_run.oneDisk(.{
            .gpa = region.allocator(),
            .io = options.io,
            .batches = batches,
            .counts = &worker.result.counts,
            .crash_states = if (worker.crash_states.count() < crash_states_max) &worker.crash_states else null,
            .lie = options.lie,
        }, .{
            .seed = options.seed +% disk,
            .operations = @min(operations_per_disk, options.operations - disk * operations_per_disk),
        });
        worker.result.disks += 1;
        if (violation == null) continue;
        worker.result.violation = violation;
        shared.is_over.store(true, .monotonic);
    }
    worker.at.store(shared.disks, .monotonic);
    worker.result.signatures_checked = memory.checked;
    worker.result.signatures_remembered = memory.remembered;
}

pub const Sequences = struct {
    counts: StoreSequences.Counts = .{},
    model_counts: StoreModel.Counts = .{},
    crash_states: u64 = 0,
    violation: ?StoreSequences.Violation = null,
};

const SequencesWorker = struct {
    next: *std.atomic.Value(u8),
    options: StoreSequences.Options,
    result: Sequences = .{},
    crash_states: StoreModel.CrashStates = .empty,
    has_memory: bool = true,

    fn work(worker: *SequencesWorker, gpa: std.mem.Allocator) void {
        worker.workUntilOver(gpa) catch {
            worker.has_memory = false;
        };
    }

    fn workUntilOver(worker: *SequencesWorker, gpa: std.mem.Allocator) error{OutOfMemory}!void {
        const memory: *SignatureMemory = try .create(gpa);
        defer gpa.destroy(memory);
        const known = memory.interface();
        store.simulated.memory = &known;
        worker.options.crash_states = &worker.crash_states;
        const all: *StoreSequences = try .create(gpa, worker.options);
        defer all.destroy();
        while (try all.runFirst(worker.next.fetchAdd(1, .monotonic))) {}
        worker.result = .{ .counts = all.counts, .model_counts = all.model_counts, .violation = all.violation };
    }
};

/// Every sequence of up to so many operations.
pub fn runSequences(gpa: std.mem.Allocator, jobs: u8, options: StoreSequences.Options) error{ OutOfMemory, NoThreads }!Sequences {
    var next: std.atomic.Value(u8) = .init(0);
    var workers: [jobs_max]SequencesWorker = undefined;
    var threads: [jobs_max]std.Thread = undefined;
    var count: usize = 0;
    for (workers[0..jobs], threads[0..jobs]) |*worker, *thread| {
        worker.* = .{ .next = &next, .options = options };
        thread.* = std.Thread.spawn(.{}, SequencesWorker.work, .{ worker, gpa }) catch break;
        count += 1;
    }
    for (threads[0..count]) |thread| thread.join();
    if (count < jobs) return error.NoThreads;
    var total: Sequences = .{};
    defer for (workers[0..count]) |*worker| worker.crash_states.deinit(gpa);
    for (workers[0..count]) |*worker| {
        if (!worker.has_memory) return error.OutOfMemory;
        total.counts.add(&worker.result.counts);
        total.model_counts.add(&worker.result.model_counts);
        total.violation = total.violation orelse worker.result.violation;
        total.crash_states += worker.crash_states.count();
    }
    return total;
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
        var done = shared.disks;
        for (workers) |*worker| done = @min(done, worker.at.load(.monotonic));
        const left = shared.options.operations -| done * operations_per_disk;
        std.debug.print("{d} of {d} operations; ended now, it goes on with --seed {d} --operations {d}\n", .{
            done * operations_per_disk, shared.options.operations, shared.options.seed +% done, left,
        });
    }
}
