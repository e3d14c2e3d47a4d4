//! Many runs of the stream's simulation, one seed after another, until so many packets are sent
//! (`kit/runner.zig`).

const std = @import("std");
const runner = @import("../kit/runner.zig");
const StreamWorld = @import("world.zig");
const Invariants = @import("invariants.zig");

pub const jobs_max = runner.jobs_max;
/// One run in so many is repeated to compare the trace hashes.
const compared_every = 50;

pub const Options = struct {
    world: StreamWorld.Options,
    packets: u64,
    jobs: u8 = 1,
    /// Null: prints no progress.
    progress_interval_s: ?u32 = null,
};

pub const FoundViolation = struct { seed: u64, violation: Invariants.Violation };

pub const Result = struct {
    total: StreamWorld.Result = .{},
    compared: u64 = 0,
    /// The violation with the lowest seed.
    found: ?FoundViolation = null,
};

const Model = struct {
    world: *StreamWorld,
    options: *const Settings,
    result: Result,

    pub const Settings = StreamWorld.Options;

    pub fn init(
        model: *Model,
        gpa: std.mem.Allocator,
        settings: *const Settings,
    ) error{OutOfMemory}!void {
        model.* = .{ .world = try .create(gpa), .options = settings, .result = .{} };
    }

    pub fn deinit(model: *Model, gpa: std.mem.Allocator) void {
        model.world.destroy(gpa);
    }

    pub fn run(model: *Model, number: u64) error{OutOfMemory}!bool {
        var options = model.options.*;
        options.seed +%= number;
        const result = try model.runOnce(options, number);
        model.result.total.add(&result);
        const violation = result.violation orelse return true;
        model.result.found = .{ .seed = options.seed, .violation = violation };
        return false;
    }

    fn runOnce(
        model: *Model,
        options: StreamWorld.Options,
        number: u64,
    ) error{OutOfMemory}!StreamWorld.Result {
        var result = try model.world.run(options);
        if (number % compared_every != 0 or result.violation != null) return result;
        model.result.compared += 1;
        const again = try model.world.run(options);
        if (again.hash == result.hash) return result;
        var invariants: Invariants = .{};
        invariants.violate(
            .same_seed_same_run,
            "trace hash {x:0>16}, and {x:0>16} the second time",
            .{ result.hash, again.hash },
        );
        result.violation = invariants.violation;
        return result;
    }
};

pub fn run(gpa: std.mem.Allocator, options: *const Options) runner.Error!Result {
    var models: [jobs_max]Model = undefined;
    const filled = try runner.Runner(Model).run(gpa, &options.world, &models, &.{
        .runs = std.math.divCeil(u64, options.packets, options.world.packets) catch unreachable,
        .jobs = options.jobs,
        .progress = if (options.progress_interval_s) |seconds| .{
            .interval_s = seconds,
            .seed = options.world.seed,
            .unit = "packets",
            .total = options.packets,
            .per_run = options.world.packets,
        } else null,
    });
    var all: Result = .{};
    for (filled) |*model| {
        all.total.add(&model.result.total);
        all.compared += model.result.compared;
        const found = model.result.found orelse continue;
        if (all.found == null or found.seed < all.found.?.seed) all.found = found;
    }
    return all;
}
