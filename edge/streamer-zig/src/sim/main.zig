//! The simulator: runs seeds and tells what it found; a failing seed is run again alone by its number.
//!
//!     zig build sim -- --seed N [--seeds N] [--devices N] [--hostile-packets N] [--mutant NAME] [--self-test] [--canary] [--trace] [--reports]

const std = @import("std");
const sim = @import("sim");
const World = sim.World;
const Mutant = sim.Mutant;

const usage =
    \\usage: sim [--seed N] [--seeds N] [--devices N] [--hostile-packets N] [--mutant NAME] [--attack NAME] [--self-test] [--canary] [--trace] [--reports]
    \\  --seed N      the first seed (1); the same seed gives the same run
    \\  --seeds N     how many seeds, one after the other (1)
    \\  --devices N   1 to 60; the seed decides otherwise
    \\  --mutant NAME plant this mutant: ends with exit code 1 when a check finds it
    \\  --attack NAME attackers do only this
    \\  --hostile-packets N
    \\                every seed has an attacker, who sends at least so many packets and HTTP requests
    \\  --self-test   plants every mutant in turn; each must be found
    \\  --canary      a check that must fail: ends with exit code 1
    \\  --trace       prints everything that happens
    \\  --reports     instead: a month without the control plane, 1,000 devices that boot four times a day, ten starts
    \\                of the edge; no report lost, none counted twice
    \\
;

/// Up to so many seeds each one is run twice to compare the hashes; of more, every tenth.
const compared_all_max = 20;
/// Seeds that a mutant may need to show.
const self_test_seeds = 100;

const Options = struct {
    seed: u64 = 1,
    seeds: u64 = 1,
    devices: ?u8 = null,
    mutant: Mutant = .none,
    attack: ?sim.Attack = null,
    hostile_packets: u32 = 0,
    is_self_test: bool = false,
    is_canary: bool = false,
    is_traced: bool = false,
    is_reports: bool = false,

    fn world(options: *const Options, seed: u64) World.Options {
        return .{
            .seed = seed,
            .devices = options.devices orelse options.mutant.devices(),
            .mutant = options.mutant,
            .attack = options.attack orelse options.mutant.attack(),
            .hostile_packets = options.hostile_packets,
            .is_traced = options.is_traced,
            .is_canary = options.is_canary,
        };
    }
};

/// For the panic handler: which run goes on.
var running: Options = .{};

pub const panic = std.debug.FullPanic(panicWithSeed);

fn panicWithSeed(message: []const u8, first_address: ?usize) noreturn {
    printReplay(&running);
    std.debug.defaultPanic(message, first_address);
}

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const options = parseArguments(arguments[1..]) catch {
        std.debug.print("{s}", .{usage});
        return 2;
    };
    const gpa = std.heap.smp_allocator;
    if (options.is_reports) return runReports(gpa, &options);
    return if (options.is_self_test) selfTest(gpa, &options) else runSeeds(gpa, &options);
}

fn parseArguments(arguments: []const [:0]const u8) error{Usage}!Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < arguments.len) : (index += 1) {
        const name = arguments[index];
        if (std.mem.eql(u8, name, "--canary")) {
            options.is_canary = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--trace")) {
            options.is_traced = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--reports")) {
            options.is_reports = true;
            continue;
        }
        if (std.mem.eql(u8, name, "--self-test")) {
            options.is_self_test = true;
            continue;
        }
        index += 1;
        if (index == arguments.len) return error.Usage;
        const value = arguments[index];
        if (std.mem.eql(u8, name, "--mutant")) {
            options.mutant = Mutant.parse(value) orelse return usageMutants(value);
        } else if (std.mem.eql(u8, name, "--attack")) {
            options.attack = sim.Attack.parse(value) orelse return error.Usage;
        } else if (std.mem.eql(u8, name, "--devices")) {
            options.devices = std.fmt.parseInt(u8, value, 10) catch return error.Usage;
            if (options.devices.? == 0 or options.devices.? > World.devices_max) return error.Usage;
        } else if (std.mem.eql(u8, name, "--hostile-packets")) {
            options.hostile_packets = std.fmt.parseInt(u32, value, 10) catch return error.Usage;
        } else if (std.mem.eql(u8, name, "--seed")) {
            options.seed = std.fmt.parseInt(u64, value, 10) catch return error.Usage;
        } else if (std.mem.eql(u8, name, "--seeds")) {
            options.seeds = std.fmt.parseInt(u64, value, 10) catch return error.Usage;
            if (options.seeds == 0) return error.Usage;
        } else return error.Usage;
    }
    return options;
}

fn usageMutants(name: []const u8) error{Usage} {
    std.debug.print("no bug {s}; there are:", .{name});
    for (std.enums.values(Mutant)) |mutant| std.debug.print(" {f}", .{mutant});
    std.debug.print("\n", .{});
    return error.Usage;
}

fn runSeeds(gpa: std.mem.Allocator, options: *const Options) !u8 {
    var total: World.Result = std.mem.zeroes(World.Result);
    var scheduled_count: u64 = 0;
    var reported_count: u64 = 0;
    var compared: u64 = 0;
    var seed = options.seed;
    for (0..options.seeds) |number| {
        defer seed += 1;
        running = options.*;
        running.seed = seed;
        const result = try World.run(gpa, options.world(seed));
        print(seed, &result);
        if (result.violation) |*violation| return tell(seed, violation, options);
        const scheduled = try sim.Schedules.run(gpa, seed, options.mutant);
        if (scheduled.violation) |*violation| return tell(seed, violation, options);
        scheduled_count += scheduled.sent;
        const reported = try sim.Reports.run(gpa, .small(seed, options.mutant));
        if (reported.violation) |*violation| return tell(seed, violation, options);
        reported_count += reported.boots;
        if (options.seeds <= compared_all_max or number % 10 == 0) {
            compared += 1;
            var silent = options.world(seed);
            silent.is_traced = false;
            const again = try World.run(gpa, silent);
            if (again.hash != result.hash) return tellDifferent(seed, &result, &again, options);
        }
        inline for (@typeInfo(World.Result).@"struct".field_names) |name| {
            const is_sum = comptime !std.mem.eql(u8, name, "hash") and
                !std.mem.eql(u8, name, "violation");
            if (is_sum) @field(total, name) += @field(result, name);
        }
    }
    if (total.hostile < options.seeds * options.hostile_packets) {
        std.debug.print("sim FAILED: {d} hostile packets of {d}\n", .{
            total.hostile, options.seeds * options.hostile_packets,
        });
        return 1;
    }
    std.debug.print("sim: {d} seeds from {d}, {d} compared with a second run; {d} events, " ++
        "{d} packets, {d} lost, {d} hostile, {d} boots ready, {d} failed under faults, {d} resumptions, " ++
        "{d} fail-overs, {d} writes, {d} boot profiles handed out, {d} crashes of edges, " ++
        "{d} virtual seconds; " ++
        "{d} devices started by schedules; {d} boots reported once: ok\n", .{
        options.seeds,         options.seed,      compared,
        total.events,          total.packets,     total.lost,
        total.hostile,         total.boots_ready, total.boots_failed,
        total.resumptions,     total.failovers,   total.writes,
        total.profiles_handed, total.crashes,     total.virtual_us / std.time.us_per_s,
        scheduled_count,       reported_count,
    });
    return 0;
}

/// The whole month, for each seed.
fn runReports(gpa: std.mem.Allocator, options: *const Options) !u8 {
    for (options.seed..options.seed + options.seeds) |seed| {
        running = options.*;
        running.seed = seed;
        const result = try sim.Reports.run(gpa, .{ .seed = seed, .mutant = options.mutant });
        if (result.violation) |*violation| return tell(seed, violation, options);
        std.debug.print("seed {d}: {d} boots in 30 days without the control plane, {d} starts of the edge, {d} records torn, " ++
            "{d} MiB of log at most; {d} batches taken, {d} acknowledgements lost; 0 lost, 0 counted twice, hash {x:0>16}\n", .{
            seed,                         result.boots, result.restarts, result.torn, result.log_size_most >> 20, result.batches,
            result.acknowledgements_lost, result.hash,
        });
    }
    return 0;
}

fn print(seed: u64, result: *const World.Result) void {
    std.debug.print("seed {d}: {d} events, {d} packets, {d} lost, {d} boots ready, {d} failed, {d} virtual seconds, hash {x:0>16}\n", .{
        seed,                                  result.events, result.packets, result.lost, result.boots_ready, result.boots_failed,
        result.virtual_us / std.time.us_per_s, result.hash,
    });
}

fn tell(seed: u64, violation: *const sim.Invariants.Violation, options: *const Options) u8 {
    std.debug.print("seed {d} FAILED: {t}: {s}\n", .{ seed, violation.check, violation.text() });
    var failed = options.*;
    failed.seed = seed;
    printReplay(&failed);
    return 1;
}

fn tellDifferent(seed: u64, result: *const World.Result, again: *const World.Result, options: *const Options) u8 {
    std.debug.print("seed {d} FAILED: same_seed_same_run: {d} events with hash {x:0>16}, then {d} with {x:0>16}\n", .{
        seed, result.events, result.hash, again.events, again.hash,
    });
    var failed = options.*;
    failed.seed = seed;
    printReplay(&failed);
    return 1;
}

fn printReplay(options: *const Options) void {
    std.debug.print("again: zig build sim -- --seed {d}", .{options.seed});
    if (options.devices) |devices| std.debug.print(" --devices {d}", .{devices});
    if (options.mutant != .none) std.debug.print(" --mutant {f}", .{options.mutant});
    if (options.attack) |attack| std.debug.print(" --attack {t}", .{attack});
    if (options.hostile_packets > 0)
        std.debug.print(" --hostile-packets {d}", .{options.hostile_packets});
    if (options.is_canary) std.debug.print(" --canary", .{});
    if (options.is_reports) std.debug.print(" --reports", .{});
    std.debug.print(" --trace\n", .{});
}

fn violationOf(
    gpa: std.mem.Allocator,
    options: *const Options,
    seed: u64,
) !?sim.Invariants.Violation {
    if (options.mutant.isOfReports()) return (try sim.Reports.run(gpa, .small(seed, options.mutant))).violation;
    if (options.mutant.isOfSchedules()) return (try sim.Schedules.run(gpa, seed, options.mutant)).violation;
    return (try World.run(gpa, options.world(seed))).violation;
}

/// Plants each mutant; a simulator that does not find it is blind.
fn selfTest(gpa: std.mem.Allocator, options: *const Options) !u8 {
    var missed: u32 = 0;
    for (std.enums.values(Mutant)) |mutant| {
        if (mutant == .none) continue;
        var mutated = options.*;
        mutated.mutant = mutant;
        const first = options.seed + mutant.silentSeeds();
        const found = for (first..first + self_test_seeds) |seed| {
            running = mutated;
            running.seed = seed;
            const violation = try violationOf(gpa, &mutated, seed) orelse continue;
            std.debug.print("mutant {f}: found by {t} with seed {d}: {s}\n", .{ mutant, violation.check, seed, violation.text() });
            break true;
        } else false;
        if (found) continue;
        missed += 1;
        std.debug.print("mutant {f}: NOT FOUND in {d} seeds\n", .{ mutant, self_test_seeds });
    }
    const count = std.enums.values(Mutant).len - 1;
    std.debug.print("sim self-test: {d} of {d} mutants found\n", .{ count - missed, count });
    return if (missed == 0) 0 else 1;
}
