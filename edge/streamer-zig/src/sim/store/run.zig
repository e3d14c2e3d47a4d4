//! Random runs of the store against its model, with ends of the process and power cuts between and
//! during operations.

const std = @import("std");
const base = @import("base");
const StoreDevice = @import("device.zig");
const store_checks = @import("checks.zig");
const StoreModel = @import("model.zig");
const store_operation = @import("operation.zig");

const Operation = store_operation.Operation;
const Prng = base.Prng;
const LayerKind = store_operation.LayerKind;

/// A new disk starts after this many operations: a person who looks for a cause has to read what
/// happened on one disk.
pub const operations_per_disk = 5000;

pub const Violation = struct {
    what: []const u8,
    /// Seed of the disk, to reproduce it.
    seed: u64,
    operation: u64,
};

pub const Options = struct {
    /// Seed of the disk: the same seed gives the same run.
    seed: u64,
    operations: u64 = operations_per_disk,
    /// Prints each operation.
    is_traced: bool = false,
};

/// Runs this many operations on an empty disk, and checks every byte at the end. Returns null if
/// nothing is wrong.
pub fn oneDisk(given: StoreModel.Environment, options: Options) error{OutOfMemory}!?Violation {
    var prng: Prng = .init(options.seed);
    const geometry: store_operation.Geometry = .{
        .is_far = prng.chance(1, 2),
        .is_cut_short = prng.chance(1, 2),
    };
    var model: StoreModel = undefined;
    defer model.deinit();
    var at: u64 = 0;
    run(&model, given, geometry, &prng, &options, &at) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Violation, error.Stopped => .{
            .what = model.violation,
            .seed = options.seed,
            .operation = at,
        },
    };
    return null;
}

fn run(
    model: *StoreModel,
    given: StoreModel.Environment,
    geometry: store_operation.Geometry,
    prng: *Prng,
    options: *const Options,
    at: *u64,
) StoreModel.Error!void {
    try model.init(given, options.seed, geometry);
    while (at.* < options.operations) : (at.* += 1) {
        const operation = choose(prng, geometry);
        const cut = chooseCut(prng, operation);
        if (options.is_traced) std.debug.print("{d}: {any} {any}\n", .{ at.*, operation, cut });
        try model.step(operation, cut);
        if (at.* % 64 == 63) try store_checks.checkAnyVersion(model);
    }
    return store_checks.checkAll(model);
}

/// In ten thousand: cheap operations often, expensive ones thousands of times in ten million.
const weights = std.enums.directEnumArray(store_operation.Kind, u16, 0, .{
    .write = 3540,
    .write_part = 2500,
    .discard = 1100,
    .flush = 1500,
    .sync_begin = 400,
    .sync_end = 400,
    .read = 200,
    .snapshot = 30,
    .snapshot_step = 150,
    .seal = 20,
    .merge = 15,
    .import = 2,
    .compress = 10,
    .revert = 15,
    .boot = 20,
    .kill = 18,
    .crash = 60,
    .repair = 20,
});
const weights_total = blk: {
    var sum: u64 = 0;
    for (weights) |weight| sum += weight;
    break :blk sum;
};

fn choose(prng: *Prng, geometry: store_operation.Geometry) Operation {
    var drawn = prng.below(weights_total);
    const kind: store_operation.Kind = for (weights, 0..) |weight, index| {
        if (drawn < weight) break @fromBackingInt(@intCast(index));
        drawn -= weight;
    } else unreachable;
    const random_bits = prng.nextU32();
    const who: LayerKind = @fromBackingInt(@as(u2, @intCast(random_bits % 3)));
    const sectors = geometry.sectorCount();
    return switch (kind) {
        .write => blk: {
            const first: u8 =
                @intCast((random_bits >> 8) % StoreDevice.blocks * StoreDevice.sectors_per_block);
            break :blk .{
                .write = .{
                    .who = who,
                    .first = first,
                    .count = @intCast(@min(StoreDevice.sectors_per_block, sectors - first)),
                },
            };
        },
        .write_part => blk: {
            const first = (random_bits >> 8) % sectors;
            const count = 1 + (random_bits >> 16) % 12;
            break :blk .{
                .write_part = .{
                    .who = who,
                    .first = @intCast(first),
                    .count = @intCast(@min(count, sectors - first)),
                },
            };
        },
        .discard => blk: {
            const is_whole = random_bits >> 31 == 0;
            const first = if (is_whole)
                (random_bits >> 8) % StoreDevice.blocks * StoreDevice.sectors_per_block
            else
                (random_bits >> 8) % sectors;
            const count = if (is_whole) StoreDevice.sectors_per_block else 1 +
                (random_bits >> 16) % 20;
            break :blk .{
                .discard = .{
                    .who = who,
                    .first = @intCast(first),
                    .count = @intCast(@min(count, sectors - first)),
                },
            };
        },
        .flush => .{ .flush = who },
        .sync_begin => .{ .sync_begin = .persistent },
        .sync_end => .{ .sync_end = .persistent },
        .read => .{ .read = who },
        .boot => .{ .boot = if (random_bits >> 8 & 1 == 0) .persistent else .fleeting },
        inline .snapshot,
        .snapshot_step,
        .seal,
        .merge,
        .import,
        .compress,
        .revert,
        .kill,
        .crash,
        .repair,
        => |plain| plain,
    };
}

/// The longer an operation takes, the more often it is interrupted.
fn chooseCut(prng: *Prng, operation: Operation) ?store_operation.Cut {
    const one_in: u64, const calls_most: u64 = switch (operation) {
        .write, .write_part, .discard, .read => .{ 2000, 4 },
        .flush, .sync_begin, .sync_end => .{ 25, 5 },
        .seal => .{ 2, 45 },
        .merge => .{ 3, 16 },
        .import => .{ 2, 40 },
        .compress => .{ 2, 60 },
        .revert, .boot => .{ 3, 10 },
        .snapshot, .snapshot_step => .{ 10, 8 },
        .repair => .{ 2, 4 },
        .kill, .crash => return null,
    };
    if (!prng.chance(1, one_in)) return null;
    return .{
        .calls = prng.below(calls_most),
        .how = if (prng.chance(2, 3)) .crash else .kill,
        .loss = switch (prng.below(4)) {
            0 => .all,
            1 => .nothing,
            else => .any,
        },
    };
}
