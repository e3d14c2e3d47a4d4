//! Many runs of a proof on some threads: each takes the next seed until all are done, or something was found. Which seeds are run, and what
//! comes of each, does not depend on the threads.
//!
//! A model makes the runs of one thread, one after the other, and keeps what came of them:
//!
//!     const Given;                                             // for all threads alike
//!     fn init(model: *Model, gpa, given: *const Given) error{OutOfMemory}!void     // in its thread
//!     fn deinit(model: *Model, gpa) void                       // in its thread; what came of the runs stays
//!     fn run(model: *Model, number: u64) error{OutOfMemory}!bool                   // false: nothing more is to be run

const std = @import("std");
const linux = std.os.linux;

pub const jobs_max = 16;

pub const Options = struct {
    runs: u64,
    jobs: u8 = 1,
    /// Null: nothing is printed.
    progress: ?Progress = null,
};

/// Says now and then how far it is, and how it goes on when it is ended.
pub const Progress = struct {
    interval_s: u32,
    seed: u64,
    /// What is counted, and how many there are in all and in a run.
    unit: []const u8,
    total: u64,
    per_run: u64,
};

pub const Error = error{ OutOfMemory, NoThreads };

pub fn Runner(comptime Model: type) type {
    return struct {
        const Shared = struct {
            gpa: std.mem.Allocator,
            given: *const Model.Given,
            options: *const Options,
            next: std.atomic.Value(u64) = .init(0),
            is_over: std.atomic.Value(bool) = .init(false),
            running: std.atomic.Value(u32) = .init(0),
        };

        const Worker = struct {
            shared: *Shared,
            model: *Model,
            /// The run that it is at; all below that of every worker are done.
            at: std.atomic.Value(u64) = .init(0),
            has_memory: bool = true,
        };

        /// Fills one of `models` for each thread; those that were filled.
        pub fn run(gpa: std.mem.Allocator, given: *const Model.Given, models: *[jobs_max]Model, options: *const Options) Error![]Model {
            var shared: Shared = .{ .gpa = gpa, .given = given, .options = options };
            var workers: [jobs_max]Worker = undefined;
            var threads: [jobs_max]std.Thread = undefined;
            var count: usize = 0;
            for (workers[0..options.jobs], threads[0..options.jobs], models[0..options.jobs]) |*worker, *thread, *model| {
                worker.* = .{ .shared = &shared, .model = model };
                _ = shared.running.fetchAdd(1, .monotonic);
                thread.* = std.Thread.spawn(.{}, work, .{worker}) catch break;
                count += 1;
            }
            if (count < options.jobs) shared.is_over.store(true, .monotonic) else if (options.progress) |*progress| watch(&shared, workers[0..count], progress);
            for (threads[0..count]) |thread| thread.join();
            if (count < options.jobs) return error.NoThreads;
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
            try worker.model.init(shared.gpa, shared.given);
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
                std.debug.print("{d} of {d} {s}; ended now, it goes on with --seed {d} --{s} {d}\n", .{
                    done * progress.per_run,                   progress.total, progress.unit, progress.seed +% done, progress.unit,
                    progress.total -| done * progress.per_run,
                });
            }
        }
    };
}

const testing = std.testing;

test "each run is made once, whatever the threads, and nothing more when one has found something" {
    const Model = struct {
        sum: u64 = 0,
        given: *const Given = undefined,

        const Given = struct { stops_at: u64 };

        fn init(model: *@This(), _: std.mem.Allocator, given: *const Given) error{OutOfMemory}!void {
            model.* = .{ .given = given };
        }

        fn deinit(_: *@This(), _: std.mem.Allocator) void {}

        fn run(model: *@This(), number: u64) error{OutOfMemory}!bool {
            model.sum += number;
            return number != model.given.stops_at;
        }
    };
    var models: [jobs_max]Model = undefined;
    var sum: u64 = 0;
    for (try Runner(Model).run(testing.allocator, &.{ .stops_at = 5000 }, &models, &.{ .runs = 1000, .jobs = 3 })) |*model| sum += model.sum;
    try testing.expectEqual(999 * 1000 / 2, sum);
    const alone = try Runner(Model).run(testing.allocator, &.{ .stops_at = 10 }, &models, &.{ .runs = 1000 });
    try testing.expectEqual(10 * 11 / 2, alone[0].sum);
}
