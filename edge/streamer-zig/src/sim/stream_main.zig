//! The simulation of the stream (docs/reference/stream-simulation.md): random runs of the real
//! server and clients on a simulated network with faults, planted mutants, a canary, and the
//! repetition of one run by its seed.

const std = @import("std");
const proof_arguments = @import("kit/arguments.zig");
const stream_failure = @import("stream/failure.zig");
const Plant = @import("stream/plants.zig").Plant;
const StreamScenario = @import("stream/scenario.zig");
const stream_workers = @import("stream/workers.zig");
const StreamWorld = @import("stream/world.zig");
const Fault = StreamScenario.Fault;

const usage =
    \\usage: stream-proof [--packets N] [--plants] [--canary] [--seed N] [--jobs N] [--progress SECONDS] [--pcap FILE]
    \\       stream-proof --run SEED [--devices N] [--without FAULT,...] [--plant NAME] [--pcap FILE]
    \\  --packets N     so many packets, in runs of about 20,000
    \\  --plants        plants every bug in turn; each must be found
    \\  --canary        a check that must fail: ends with exit code 1
    \\  --seed N        of the first run (1); the next ones follow
    \\  --jobs N        threads, 1 to 16 (1)
    \\  --progress N    says every so many seconds how far it is, and how it goes on after it was ended
    \\  --pcap FILE     where the last packets of a run that fails are written; with --run also those of one that does not
    \\  --run SEED      one run again
    \\  --devices N     with so many devices, 1 to 12
    \\  --without LIST  without these faults
    \\  --plant NAME    with this bug in it
    \\
;

/// Runs in which a planted bug has to be found.
const plant_runs_max = 400;
/// Short ones: what is planted is mostly found at once.
const plant_packets = 5_000;

const Options = struct {
    packets: u64 = 0,
    is_plants: bool = false,
    is_canary: bool = false,
    seed: u64 = 1,
    jobs: u8 = 1,
    progress_interval_s: ?u32 = null,
    pcap: ?[]const u8 = null,
    run: ?u64 = null,
    devices: ?u8 = null,
    without: FaultList = .{},
    plant: Plant = .none,

    fn limits(options: *const Options) StreamScenario.Limits {
        return .{ .devices = options.devices, .without = options.without.set };
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
    if (StreamWorld.running) |*options| stream_failure.printAgain(options);
    std.debug.defaultPanic(message, first_address);
}

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const options = parse(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    const gpa = std.heap.smp_allocator;
    const given: stream_failure.Given = .{ .gpa = gpa, .io = init.io, .pcap = options.pcap };
    if (options.run) |seed| return stream_failure.runAgain(given, .{
        .seed = seed,
        .limits = options.limits(),
        .plant = options.plant,
        .is_canary = options.is_canary,
    });
    if (options.is_plants and !try findPlants(gpa, &options)) return 1;
    if (options.packets == 0 and !options.is_canary) return 0;
    const result = try stream_workers.run(gpa, &.{
        .world = .{ .seed = options.seed, .limits = options.limits(), .plant = options.plant, .is_canary = options.is_canary },
        .packets = @max(options.packets, 1),
        .jobs = options.jobs,
        .progress_interval_s = options.progress_interval_s,
    });
    if (result.found) |found| {
        try stream_failure.tell(given, .{
            .seed = found.seed,
            .limits = options.limits(),
            .plant = options.plant,
            .is_canary = options.is_canary,
        }, &found.violation);
        return 1;
    }
    tell(&result, options.seed);
    return 0;
}

const names = [_]proof_arguments.Name{
    .{ "--packets", "packets" },
    .{ "--plants", "is_plants" },
    .{ "--canary", "is_canary" },
    .{ "--seed", "seed" },
    .{ "--jobs", "jobs" },
    .{ "--progress", "progress_interval_s" },
    .{ "--pcap", "pcap" },
    .{ "--run", "run" },
    .{ "--devices", "devices" },
    .{ "--without", "without" },
    .{ "--plant", "plant" },
};

fn parse(arguments: []const [:0]const u8) error{Usage}!Options {
    const options = try proof_arguments.parse(Options, &names, arguments);
    if (options.jobs == 0 or options.jobs > stream_workers.jobs_max) return error.Usage;
    if (options.progress_interval_s == 0) return error.Usage;
    if (options.devices) |count| if (count == 0 or count > StreamWorld.devices_max) return error.Usage;
    return options;
}

fn tell(result: *const stream_workers.Result, seed: u64) void {
    const total = &result.total;
    std.debug.print("stream: {d} packets in {d} runs from seed {d}, {d} of them compared with a second one: 0 wrong bytes, " ++
        "0 acknowledged writes lost, all finished\n", .{ total.packets, total.runs, seed, result.compared });
    std.debug.print("  of the packets {d} were lost, {d} doubled, {d} corrupted, {d} too large, {d} to an address that nobody had; " ++
        "{d} came from strangers\n", .{
        total.lost, total.duplicated, total.corrupted, total.too_large, total.unroutable, total.replayed,
    });
    std.debug.print("  {d} reads of {d} MiB, {d} writes, {d} discards, {d} flushes; {d} store errors; the edge ignored {d} packets\n", .{
        total.reads,        total.read_bytes >> 20, total.writes, total.discards, total.flushes,
        total.store_errors, total.ignored,
    });
    std.debug.print("  {d} boots, {d} refused; {d} resumptions, {d} of them at another edge, which sent {d} away; {d} new processes of devices; " ++
        "{d} orders\n", .{ total.boots, total.refusals, total.resumptions, total.hand_overs, total.refused_elsewhere, total.processes, total.orders });
    std.debug.print("  {d} ends of an edge's process, {d} that stood still; {d} times the network said that nobody listens there\n", .{
        total.crashes, total.stops, total.refused,
    });
    std.debug.print("  {d} virtual seconds; at most {d} ms from healing to the end\n", .{
        total.virtual_us / std.time.us_per_s, total.finish_us_most / std.time.us_per_ms,
    });
}

/// Plants each bug; a proof that does not find it is blind.
fn findPlants(gpa: std.mem.Allocator, options: *const Options) !bool {
    const world: *StreamWorld = try .create(gpa);
    defer world.destroy(gpa);
    var missed: u32 = 0;
    for (std.enums.values(Plant)) |plant| {
        if (plant == .none) continue;
        var packets: u64 = 0;
        const violation = for (0..plant_runs_max) |run| {
            const result = try world.run(.{ .seed = options.seed +% run, .packets = plant_packets, .plant = plant });
            packets += result.packets;
            if (result.violation) |violation| break violation;
        } else {
            missed += 1;
            std.debug.print("planted: {f}: NOT FOUND in {d} packets\n", .{ plant, packets });
            continue;
        };
        std.debug.print("planted: {f}: found after {d} packets by {t}: {s}\n", .{ plant, packets, violation.check, violation.text() });
    }
    const count = std.enums.values(Plant).len - 1;
    std.debug.print("stream: {d} of {d} planted bugs found\n", .{ count - missed, count });
    return missed == 0;
}
