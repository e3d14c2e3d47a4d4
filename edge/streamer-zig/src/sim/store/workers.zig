//! Runs the simulation on several threads: random runs, one disk after the other, and all sequences
//! of operations (`kit/runner.zig`).

const std = @import("std");
const runner = @import("../kit/runner.zig");
const store = @import("store");
const Region = @import("../kit/region.zig");
const SignatureMemory = @import("../kit/signature_memory.zig");
const SimFiles = @import("../kit/sim_files.zig");
const StoreModel = @import("model.zig");
const store_run = @import("run.zig");
const StoreSequences = @import("sequences.zig");

const operations_per_disk = store_run.operations_per_disk;
pub const jobs_max = runner.jobs_max;
/// Distinct crash states that are recorded; further ones are only counted as power cuts.
const crash_states_max = 1 << 21;

pub const Options = struct {
    io: ?std.Io,
    seed: u64,
    operations: u64,
    jobs: u8 = 1,
    mutant: ?store.simulated.Mutant = null,
    skipped_call: ?SimFiles.SkippedCall = null,
    /// Null prints nothing.
    progress_interval_s: ?u32 = null,
};

pub const Result = struct {
    counts: StoreModel.Counts = .{},
    disks: u64 = 0,
    crash_states: u64 = 0,
    signatures_checked: u64 = 0,
    signatures_remembered: u64 = 0,
    /// The first violation found.
    violation: ?store_run.Violation = null,
};

const Disks = struct {
    options: *const Settings,
    result: Result,
    crash_states: StoreModel.CrashStates,
    memory: *SignatureMemory,
    known: store.simulated.Memory,
    batches: *[3]store.WriteLayer.Batch,
    region: *Region,

    pub const Settings = Options;

    pub fn init(
        model: *Disks,
        gpa: std.mem.Allocator,
        settings: *const Settings,
    ) error{OutOfMemory}!void {
        const memory: *SignatureMemory = try .create(gpa);
        errdefer gpa.destroy(memory);
        const batches = try gpa.create([3]store.WriteLayer.Batch);
        errdefer gpa.destroy(batches);
        model.* = .{
            .options = settings,
            .result = .{},
            .crash_states = .empty,
            .memory = memory,
            .known = memory.interface(),
            .batches = batches,
            .region = try .create(),
        };
        // Per thread.
        store.simulated.memory = &model.known;
        store.simulated.mutant = settings.mutant;
    }

    pub fn deinit(model: *Disks, gpa: std.mem.Allocator) void {
        model.result.signatures_checked = model.memory.checked;
        model.result.signatures_remembered = model.memory.remembered;
        model.region.destroy();
        gpa.destroy(model.batches);
        gpa.destroy(model.memory);
    }

    pub fn run(model: *Disks, disk: u64) error{OutOfMemory}!bool {
        const options = model.options;
        model.region.clear();
        model.result.violation = try store_run.oneDisk(.{
            .gpa = model.region.allocator(),
            .io = options.io,
            .batches = model.batches,
            .counts = &model.result.counts,
            .crash_states = if (model.crash_states.count() < crash_states_max)
                &model.crash_states
            else
                null,
            .skipped_call = options.skipped_call,
        }, .{
            .seed = options.seed +% disk,
            .operations = @min(
                operations_per_disk,
                options.operations - disk * operations_per_disk,
            ),
        });
        model.result.disks += 1;
        return model.result.violation == null;
    }
};

pub fn run(gpa: std.mem.Allocator, options: *const Options) runner.Error!Result {
    var models: [jobs_max]Disks = undefined;
    const filled = try runner.Runner(Disks).run(gpa, options, &models, &.{
        .runs = std.math.divCeil(u64, options.operations, operations_per_disk) catch unreachable,
        .jobs = options.jobs,
        .progress = if (options.progress_interval_s) |seconds| .{
            .interval_s = seconds,
            .seed = options.seed,
            .unit = "operations",
            .total = options.operations,
            .per_run = operations_per_disk,
        } else null,
    });
    var total: Result = .{};
    defer for (filled) |*model| model.crash_states.deinit(gpa);
    for (filled) |*model| {
        total.counts.add(&model.result.counts);
        inline for (.{ "disks", "signatures_checked", "signatures_remembered" }) |name|
            @field(total, name) += @field(model.result, name);
        if (model.result.violation) |found| {
            if (total.violation == null or
                found.seed < total.violation.?.seed) total.violation = found;
        }
        if (model == &filled[0]) continue;
        var states = model.crash_states.keyIterator();
        while (states.next()) |state| try filled[0].crash_states.put(gpa, state.*, {});
    }
    total.crash_states = filled[0].crash_states.count();
    return total;
}

pub const Sequences = struct {
    counts: StoreSequences.Counts = .{},
    model_counts: StoreModel.Counts = .{},
    crash_states: u64 = 0,
    violation: ?StoreSequences.Violation = null,
};

const FirstOperations = struct {
    all: *StoreSequences,
    result: Sequences,
    crash_states: StoreModel.CrashStates,
    memory: *SignatureMemory,
    known: store.simulated.Memory,

    pub const Settings = StoreSequences.Options;

    pub fn init(
        model: *FirstOperations,
        gpa: std.mem.Allocator,
        settings: *const Settings,
    ) error{OutOfMemory}!void {
        const memory: *SignatureMemory = try .create(gpa);
        errdefer gpa.destroy(memory);
        model.* = .{
            .all = undefined,
            .result = .{},
            .crash_states = .empty,
            .memory = memory,
            .known = memory.interface(),
        };
        store.simulated.memory = &model.known;
        var options = settings.*;
        options.crash_states = &model.crash_states;
        model.all = try .create(gpa, options);
    }

    pub fn deinit(model: *FirstOperations, gpa: std.mem.Allocator) void {
        model.result = .{
            .counts = model.all.counts,
            .model_counts = model.all.model_counts,
            .violation = model.all.violation,
        };
        model.all.destroy();
        gpa.destroy(model.memory);
    }

    /// Runs all sequences that start with one operation; returns false if there is none of this
    /// number.
    pub fn run(model: *FirstOperations, number: u64) error{OutOfMemory}!bool {
        return model.all.runFirst(@intCast(number));
    }
};

/// Runs every sequence of at most this length.
pub fn runSequences(
    gpa: std.mem.Allocator,
    jobs: u8,
    options: StoreSequences.Options,
) runner.Error!Sequences {
    var models: [jobs_max]FirstOperations = undefined;
    const filled = try runner.Runner(FirstOperations).run(
        gpa,
        &options,
        &models,
        &.{ .runs = std.math.maxInt(u8), .jobs = jobs },
    );
    var total: Sequences = .{};
    defer for (filled) |*model| model.crash_states.deinit(gpa);
    for (filled) |*model| {
        total.counts.add(&model.result.counts);
        total.model_counts.add(&model.result.model_counts);
        total.violation = total.violation orelse model.result.violation;
        total.crash_states += model.crash_states.count();
    }
    return total;
}
