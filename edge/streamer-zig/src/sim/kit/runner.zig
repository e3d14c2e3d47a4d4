//! Many runs of a simulation on some threads: each takes the next seed until all are done, or a
//! violation was found. The seeds and their results do not depend on the threads.
//!
//! A model makes the runs of one thread, one after another, and keeps their results:
//!
//!     const Settings;                     // the same for all threads
//!     // The thread calls these; the results outlive `deinit`.
//!     fn init(model: *Model, gpa, settings: *const Settings) error{OutOfMemory}!void
//!     fn deinit(model: *Model, gpa) void
//!     // Returns false to end all runs.
//!     fn run(model: *Model, number: u64) error{OutOfMemory}!bool

const std = @import("std");
const linux = std.os.linux;

pub const jobs_max = 16;

pub const Options = struct {
    runs: u64,
    jobs: u8 = 1,
    /// Null: prints no progress.
    progress: ?Progress = null,
};

/// Prints the progress, and how to resume after an interruption.
pub const Progress = struct {
    interval_s: u32,
    seed: u64,
    /// The unit that is counted, and how many there are in all and in a run.
    unit: []const u8,
    total: u64,
    per_run: u64,
};

pub const Error = error{ OutOfMemory, NoThreads };

pub fn Runner(comptime Model: type) type {
    return struct {
        const Shared = struct {
            gpa: std.mem.Allocator,
            settings: *const Model.Settings,
            options: *const Options,
            next: std.atomic.Value(u64) = .init(0),
            is_over: std.atomic.Value(bool) = .init(false),
            running: std.atomic.Value(u32) = .init(0),
        };

        const Worker = struct {
            shared: *Shared,
            model: *Model,
            /// Its current run; all below those of every worker are done.
            at: std.atomic.Value(u64) = .init(0),
            has_memory: bool = true,
        };

        /// Uses one of `models` for each thread, and returns these.
        pub fn run(
            gpa: std.mem.Allocator,
            settings: *const Model.Settings,
            models: *[jobs_max]Model,
            options: *const Options,
        ) Error![]Model {
            var shared: Shared = .{ .gpa = gpa, .settings = settings, .options = options };
            var workers: [jobs_max]Worker = undefined;
            var threads: [jobs_max]std.Thread = undefined;
            var count: usize = 0;
            const jobs = options.jobs;
            for (workers[0..jobs], threads[0..jobs], models[0..jobs]) |*worker, *thread, *model| {
                worker.* = .{ .shared = &shared, .model = model };
                _ = shared.running.fetchAdd(1, .monotonic);
                thread.* = std.Thread.spawn(.{}, work, .{worker}) catch break;
                count += 1;
            }
            if (count < jobs)
                shared.is_over.store(true, .monotonic)
            else if (options.progress) |*progress|
                watch(&shared, workers[0..count], progress);
            for (threads[0..count]) |thread| thread.join();
            if (count < jobs) return error.NoThreads;
            for (workers[0..count]) |*worker| if (!worker.has_memory) return error.OutOfMemory;
            return models[0..count];
        }

        fn work(worker: *Worker) void {
            defer _ = worker.shared.running.fetchSub(1, .monotonic);
            workUntilOver(worker) catch {
                worker.has_memory = false;
                worker.shared.is_over.store(true, .monotonic);
            };
        }

        fn workUntilOver(worker: *Worker) error{OutOfMemory}!void {
            const shared = worker.shared;
            try worker.model.init(shared.gpa, shared.settings);
            defer worker.model.deinit(shared.gpa);
            while (!shared.is_over.load(.monotonic)) {
                const number = shared.next.fetchAdd(1, .monotonic);
                if (number >= shared.options.runs) break;
                worker.at.store(number, .monotonic);
                if (!try worker.model.run(number)) shared.is_over.store(true, .monotonic);
            }
            worker.at.store(shared.options.runs, .monotonic);
        }

        fn watch(shared: *Shared, workers: []Worker, progress: *const Progress) void {
            var waited_ms: u64 = 0;
            while (shared.running.load(.monotonic) > 0) {
                const step_ms = 100;
                const time: linux.timespec = .{ .sec = 0, .nsec = step_ms * std.time.ns_per_ms };
                _ = linux.nanosleep(&time, null);
                waited_ms += step_ms;
                if (waited_ms < @as(u64, progress.interval_s) * std.time.ms_per_s) continue;
                waited_ms = 0;
                var done = shared.options.runs;
                for (workers) |*worker| done = @min(done, worker.at.load(.monotonic));
                const units = done * progress.per_run;
                std.debug.print("{d} of {d} {s}; to resume from here: --seed {d} --{s} {d}\n", .{
                    units,         progress.total,          progress.unit, progress.seed +% done,
                    progress.unit, progress.total -| units,
                });
            }
        }
    };
}

const testing = std.testing;

test "each run is made once on any number of threads, and none after a run has ended them" {
    const Model = struct {
        sum: u64 = 0,
        settings: *const Settings = undefined,

        const Settings = struct { stops_at: u64 };

        fn init(
            model: *@This(),
            _: std.mem.Allocator,
            settings: *const Settings,
        ) error{OutOfMemory}!void {
            model.* = .{ .settings = settings };
        }

        fn deinit(_: *@This(), _: std.mem.Allocator) void {}

        fn run(model: *@This(), number: u64) error{OutOfMemory}!bool {
            model.sum += number;
            return number != model.settings.stops_at;
        }
    };
    var models: [jobs_max]Model = undefined;
    var sum: u64 = 0;
    const gpa = testing.allocator;
    const options: Options = .{ .runs = 1000, .jobs = 3 };
    const together = try Runner(Model).run(gpa, &.{ .stops_at = 5000 }, &models, &options);
    for (together) |*model| sum += model.sum;
    try testing.expectEqual(999 * 1000 / 2, sum);
    const alone = try Runner(Model).run(gpa, &.{ .stops_at = 10 }, &models, &.{ .runs = 1000 });
    try testing.expectEqual(10 * 11 / 2, alone[0].sum);
}
