//! The simulation of the stream (docs/reference/stream-simulation.md): random runs of the agent,
//! the stream's server and its clients on a simulated network with faults, mutants, a canary, and
//! the repetition of one run by its seed.

const std = @import("std");
const arguments_module = @import("kit/arguments.zig");
const failure = @import("stream/failure.zig");
const Mutant = @import("stream/mutants.zig").Mutant;
const StreamScenario = @import("stream/scenario.zig");
const StreamWorld = @import("stream/world.zig");
const mutant_runs = @import("stream/mutant_runs.zig");
const workers = @import("stream/workers.zig");
const Fault = StreamScenario.Fault;

const usage =
    \\usage: stream-sim [--packets N] [--mutants] [--canary] [--seed N] [--jobs N]
    \\                  [--progress SECONDS] [--pcap FILE]
    \\       stream-sim --run SEED [--devices N] [--without FAULT,...] [--mutant NAME] [--pcap FILE]
    \\  --packets N     simulate so many packets, in runs of about 20,000
    \\  --mutants       plant every mutant in turn; each must be found
    \\  --canary        run a check that must fail: ends with exit code 1
    \\  --seed N        seed of the first run (1); the next runs use the next seeds
    \\  --jobs N        threads, 1 to 16 (1)
    \\  --progress N    print the progress every N seconds, and how to resume
    \\  --pcap FILE     where to write the last packets of a failed run; with --run, of any run
    \\  --run SEED      repeat one run
    \\  --devices N     simulate so many devices, 1 to 12
    \\  --without LIST  leave out these faults
    \\  --mutant NAME   plant this mutant
    \\
;

const Options = struct {
    packets: u64 = 0,
    has_mutants: bool = false,
    is_canary: bool = false,
    seed: u64 = 1,
    jobs: u8 = 1,
    progress_interval_s: ?u32 = null,
    pcap: ?[]const u8 = null,
    run: ?u64 = null,
    devices: ?u8 = null,
    without: FaultList = .{},
    mutant: Mutant = .none,

    fn world(options: *const Options, seed: u64) StreamWorld.Options {
        return .{
            .seed = seed,
            .limits = .{ .devices = options.devices, .without = options.without.set },
            .mutant = options.mutant,
            .is_canary = options.is_canary,
        };
    }
};

const FaultList = struct {
    set: StreamScenario.FaultSet = .empty,

    pub fn parse(text: []const u8) ?FaultList {
        var list: FaultList = .{};
        var words = std.mem.tokenizeScalar(u8, text, ',');
        while (words.next()) |word| list.set.insert(Fault.parse(word) orelse return null);
        return list;
    }
};

pub const panic = std.debug.FullPanic(panicWithSeed);

fn panicWithSeed(message: []const u8, first_address: ?usize) noreturn {
    if (StreamWorld.running) |*options| failure.printCommand(options);
    std.debug.defaultPanic(message, first_address);
}

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const options = parse(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    const gpa = std.heap.smp_allocator;
    const context: failure.Context = .{ .gpa = gpa, .io = init.io, .pcap = options.pcap };
    if (options.run) |seed| return failure.repeat(context, options.world(seed));
    if (options.has_mutants and !try mutant_runs.findAll(gpa, options.seed)) return 1;
    if (options.packets == 0 and !options.is_canary) return 0;
    const result = try workers.run(gpa, &.{
        .world = options.world(options.seed),
        .packets = @max(options.packets, 1),
        .jobs = options.jobs,
        .progress_interval_s = options.progress_interval_s,
    });
    if (result.found) |found| {
        try failure.report(context, options.world(found.seed), &found.violation);
        return 1;
    }
    print(&result, options.seed);
    return 0;
}

const names = [_]arguments_module.Name{
    .{ "--packets", "packets" },
    .{ "--mutants", "has_mutants" },
    .{ "--canary", "is_canary" },
    .{ "--seed", "seed" },
    .{ "--jobs", "jobs" },
    .{ "--progress", "progress_interval_s" },
    .{ "--pcap", "pcap" },
    .{ "--run", "run" },
    .{ "--devices", "devices" },
    .{ "--without", "without" },
    .{ "--mutant", "mutant" },
};

fn parse(arguments: []const [:0]const u8) error{Usage}!Options {
    const options = try arguments_module.parse(Options, &names, arguments);
    if (options.jobs == 0 or options.jobs > workers.jobs_max) return error.Usage;
    if (options.progress_interval_s == 0) return error.Usage;
    if (options.devices) |count| if (count == 0 or count > StreamWorld.devices_max)
        return error.Usage;
    return options;
}

fn print(result: *const workers.Result, seed: u64) void {
    const total = &result.total;
    std.debug.print(
        \\stream: {d} packets in {d} runs from seed {d}, {d} of them repeated: 0 wrong bytes,
        \\  0 acknowledged writes lost, all finished
        \\  packets: {d} lost, {d} duplicated, {d} corrupted, {d} too large, {d} unroutable,
        \\  {d} from attackers
        \\
    , .{
        total.packets,    total.runs,      seed,            result.compared,  total.lost,
        total.duplicated, total.corrupted, total.too_large, total.unroutable, total.replayed,
    });
    std.debug.print(
        \\  {d} reads of {d} MiB, {d} writes, {d} discards, {d} flushes; {d} store errors;
        \\  edges ignored {d} packets
        \\
    , .{
        total.reads,        total.read_bytes >> 20, total.writes, total.discards, total.flushes,
        total.store_errors, total.ignored,
    });
    std.debug.print(
        \\  {d} boots, {d} refused; {d} resumptions, {d} fail-overs, {d} refused by another edge;
        \\  {d} new processes of devices; {d} power orders
        \\
    , .{
        total.boots,             total.refusals,  total.resumptions, total.failovers,
        total.refused_elsewhere, total.processes, total.orders,
    });
    std.debug.print(
        \\  {d} edges died, {d} hung; {d} closed ports reported
        \\  {d} virtual seconds; at most {d} ms from healing to the end
        \\
    , .{
        total.crashes,
        total.stops,
        total.refused,
        total.virtual_us / std.time.us_per_s,
        total.finish_us_most / std.time.us_per_ms,
    });
}
