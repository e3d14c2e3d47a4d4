//! The simulation of the vDisk store (docs/reference/vdisk-store.md, "Simulation"): random
//! operations with power cuts, sequences, flipped bits, mutants.

const std = @import("std");
const arguments_module = @import("kit/arguments.zig");
const store = @import("store");
const SignatureMemory = @import("kit/signature_memory.zig");
const StoreModel = @import("store/model.zig");
const store_operation = @import("store/operation.zig");
const StoreFlips = @import("store/flips.zig");
const store_mutants = @import("store/mutants.zig");
const store_run = @import("store/run.zig");
const store_sequences = @import("store/sequences.zig");
const store_workers = @import("store/workers.zig");

const usage =
    \\usage: store-sim [--operations N] [--sequences LENGTH] [--flips] [--mutants] [--seed N]
    \\                 [--jobs N] [--progress SECONDS]
    \\       store-sim --disk SEED
    \\  --operations N  runs this many random operations, with kills and power cuts between and
    \\                  during them
    \\  --sequences N   runs every sequence of at most this many operations on four blocks (1 to 8);
    \\                  each operation of those up to three is also interrupted at each of its
    \\                  changing calls
    \\  --flips         flips every bit of a store: each must be found before a byte is delivered
    \\  --mutants       runs every mutant in turn; each must be found
    \\  --seed N        seed of the first disk (1), which is used for 5,000 operations; the next
    \\                  disks use the next seeds
    \\  --jobs N        threads, 1 to 16 (1)
    \\  --progress N    prints the progress every N seconds, and how to resume after an interruption
    \\  --disk SEED     repeats one disk's run and prints each operation
    \\
;

/// Length of the sequences before an interrupted operation.
const cut_after = 2;

const Options = struct {
    operations: u64 = 0,
    sequences: u8 = 0,
    has_mutants: bool = false,
    is_flips: bool = false,
    seed: u64 = 1,
    jobs: u8 = 1,
    progress_interval_s: ?u32 = null,
    disk: ?u64 = null,
};

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const options = parse(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    const gpa = std.heap.smp_allocator;
    if (options.disk) |seed| return runDisk(gpa, init.io, seed);
    if (options.is_flips and !try runFlips(gpa)) return 1;
    if (options.has_mutants and !try findMutants(gpa, init.io, &options)) return 1;
    if (options.sequences > 0 and !try runSequences(gpa, &options)) return 1;
    if (options.operations > 0 and !try runRandom(gpa, init.io, &options)) return 1;
    return 0;
}

const names = [_]arguments_module.Name{
    .{ "--operations", "operations" },
    .{ "--sequences", "sequences" },
    .{ "--flips", "is_flips" },
    .{ "--mutants", "has_mutants" },
    .{ "--seed", "seed" },
    .{ "--jobs", "jobs" },
    .{ "--progress", "progress_interval_s" },
    .{ "--disk", "disk" },
};

fn parse(arguments: []const [:0]const u8) error{Usage}!Options {
    const options = try arguments_module.parse(Options, &names, arguments);
    if (options.jobs == 0 or options.jobs > store_workers.jobs_max) return error.Usage;
    if (options.sequences > store_sequences.length_max) return error.Usage;
    if (options.progress_interval_s == 0) return error.Usage;
    return options;
}

fn runRandom(gpa: std.mem.Allocator, io: std.Io, options: *const Options) !bool {
    const result = try store_workers.run(gpa, &.{
        .io = io,
        .seed = options.seed,
        .operations = options.operations,
        .jobs = options.jobs,
        .progress_interval_s = options.progress_interval_s,
    });
    if (result.violation) |found| return tell(&found);
    const counts = &result.counts;
    std.debug.print(
        "store: {d} operations on {d} disks from seed {d}: 0 wrong bytes, 0 acknowledged writes lost\n",
        .{
            counts.total(), result.disks, options.seed,
        },
    );
    for (std.enums.values(store_operation.Kind)) |kind|
        std.debug.print(
            "  {t}: {d}, interrupted {d}\n",
            .{ kind, counts.operations.get(kind), counts.cut.get(kind) },
        );
    std.debug.print(
        "  {d} power cuts left {d} different disks; {d} kills; {d} restarts interrupted; " ++
            "{d} seals finished by a restart\n",
        .{
            counts.power_cuts,   result.crash_states,   counts.kills,
            counts.restarts_cut, counts.seals_finished,
        },
    );
    std.debug.print(
        "  {d} layers lost with their process, {d} layers refused above another version; " ++
            "the longest opening took {d} us\n",
        .{ counts.fleeting_lost, counts.refused, counts.longest_opening_us },
    );
    std.debug.print(
        "  {d} snapshots compared with the bytes of their moment, {d} ended by a full disk\n",
        .{ counts.snapshots, counts.snapshots_ended },
    );
    std.debug.print("  {d} damaged blocks repaired\n", .{counts.repaired});
    std.debug.print(
        "  {d} signatures checked, {d} known from before\n",
        .{ result.signatures_checked, result.signatures_remembered },
    );
    return true;
}

fn runSequences(gpa: std.mem.Allocator, options: *const Options) !bool {
    const result = try store_workers.runSequences(gpa, options.jobs, .{
        .seed = options.seed,
        .length = options.sequences,
        .cut_after = cut_after,
    });
    if (result.violation) |found| {
        std.debug.print("violated: {f}\n", .{found});
        return false;
    }
    std.debug.print(
        "store: all {d} sequences of up to {d} operations, and {d} interrupted at every changing " ++
            "call of an operation: 0 wrong bytes; {d} power cuts left {d} different disks, the " ++
            "longest opening took {d} us\n",
        .{
            result.counts.sequences,
            options.sequences,
            result.counts.cut,
            result.model_counts.power_cuts,
            result.crash_states,
            result.model_counts.longest_opening_us,
        },
    );
    return true;
}

fn runFlips(gpa: std.mem.Allocator) !bool {
    const result = try StoreFlips.run(gpa);
    if (result.missed) |missed| {
        std.debug.print(
            "violated: bit {d} of the {t} was flipped and not found\n",
            .{ missed.bit, missed.part },
        );
        return false;
    }
    std.debug.print(
        "store: {d} bits flipped one after the other, each found before a byte was delivered\n",
        .{result.total()},
    );
    for (std.enums.values(StoreFlips.Part)) |part| std.debug.print(
        "  {t}: {d}\n",
        .{ part, result.flips.get(part) },
    );
    return true;
}

fn tell(found: *const store_run.Violation) bool {
    std.debug.print(
        "violated: {s}; disk {d}, operation {d}; again: zig build store-sim -- --disk {d}\n",
        .{
            found.what, found.seed, found.operation, found.seed,
        },
    );
    return false;
}

fn runDisk(gpa: std.mem.Allocator, io: std.Io, seed: u64) !u8 {
    const batches = try gpa.create([3]store.WriteLayer.Batch);
    defer gpa.destroy(batches);
    var counts: StoreModel.Counts = .{};
    const given: StoreModel.Environment = .{
        .gpa = gpa,
        .io = io,
        .batches = batches,
        .counts = &counts,
    };
    const found = try store_run.oneDisk(given, .{ .seed = seed, .is_traced = true });
    if (found) |violation| return @intFromBool(!tell(&violation));
    std.debug.print("disk {d}: ok\n", .{seed});
    return 0;
}

fn findMutants(gpa: std.mem.Allocator, io: std.Io, options: *const Options) !bool {
    var missed: u32 = 0;
    for (store_mutants.all) |mutant| {
        const found = try store_mutants.find(gpa, io, options.seed, &mutant) orelse {
            missed += 1;
            std.debug.print("mutant {s}: NOT FOUND\n", .{mutant.what});
            continue;
        };
        std.debug.print("mutant {s}: found after {d} {s}: {s}\n", .{
            mutant.what, found.count,
            if (mutant.bug ==
                .unchecked) "flips" else "operations",
            found.why,
        });
    }
    std.debug.print(
        "store: {d} of {d} mutants found\n",
        .{ store_mutants.all.len - missed, store_mutants.all.len },
    );
    return missed == 0;
}
