//! `zig build sim -- --seed N`: simulates, prints what happened, and exits with 1 and the seed when something did not hold.

const std = @import("std");
const sim = @import("sim");

const usage =
    \\Usage: sim [options]
    \\
    \\  --seed N      first seed (default 1); a run is its seed, for ever
    \\  --seeds N     how many seeds in a row (default 1)
    \\  --devices N   devices in each run (default 3, at most 32)
    \\  --plant NAME  put a bug into the world; a run that finds it exits with 1
    \\  --plants      run each bug over the seeds and exit with 1 unless all of them are found
    \\  --canary      change one byte before it is checked; the run must exit with 1
    \\
;

const Options = struct {
    seed: u64 = 1,
    seeds: u64 = 1,
    devices: u16 = 3,
    plant: sim.Plant = .none,
    all_plants: bool = false,
    canary: bool = false,
};

pub fn main(init: std.process.Init) !u8 {
    const gpa = std.heap.smp_allocator;
    const args = try init.minimal.args.toSlice(init.arena.allocator());
    var buffer: [4096]u8 = undefined;
    var file: std.Io.File.Writer = .initStreaming(.stdout(), init.io, &buffer);
    const out = &file.interface;
    defer out.flush() catch {};
    const options = parse(args[1..]) orelse {
        try out.writeAll(usage);
        return 2;
    };
    if (options.all_plants) return runPlants(gpa, &options, out);
    for (0..options.seeds) |index| {
        const seed = options.seed + index;
        if (!try runSeed(gpa, &options, seed, out)) return 1;
        try out.flush();
    }
    return 0;
}

/// Each seed runs twice: a run that is not the same again could not be replayed.
fn runSeed(gpa: std.mem.Allocator, options: *const Options, seed: u64, out: *std.Io.Writer) !bool {
    const world: sim.World.Options = .{
        .seed = seed,
        .devices = options.devices,
        .plant = options.plant,
        .canary = options.canary,
    };
    const report = try sim.World.run(gpa, world);
    try out.print("seed {d}: {d} events, {d} packets, {d} boots, {d} reads, {d} restarts, {d} s, hash {x:0>16}\n", .{
        seed,
        report.events,
        report.packets,
        report.boots,
        report.reads,
        report.restarts,
        report.now_us / std.time.us_per_s,
        report.hash,
    });
    if (report.violation) |text| {
        try out.print("seed {d}: FAILED: {s}", .{ seed, text });
        if (report.device) |device| try out.print(" (device {d})", .{device});
        try out.print("; again: zig build sim -- --seed {d} --devices {d}\n", .{ seed, options.devices });
        return false;
    }
    const again = try sim.World.run(gpa, world);
    if (again.hash == report.hash) return true;
    try out.print("seed {d}: FAILED: the second run of the same seed was another: hash {x:0>16}\n", .{ seed, again.hash });
    return false;
}

fn runPlants(gpa: std.mem.Allocator, options: *const Options, out: *std.Io.Writer) !u8 {
    var missed: u8 = 0;
    for (std.enums.values(sim.Plant)) |plant| {
        if (plant == .none) continue;
        const found = for (0..options.seeds) |index| {
            const report = try sim.World.run(gpa, .{
                .seed = options.seed + index,
                .devices = options.devices,
                .plant = plant,
            });
            if (report.violation) |text| {
                try out.print("planted bug {t}: found by seed {d}: {s}\n", .{ plant, options.seed + index, text });
                break true;
            }
        } else false;
        if (found) continue;
        missed += 1;
        try out.print("planted bug {t}: NOT found in {d} seeds\n", .{ plant, options.seeds });
    }
    return if (missed == 0) 0 else 1;
}

fn parse(args: []const [:0]const u8) ?Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < args.len) : (index += 1) {
        const name = args[index];
        if (std.mem.eql(u8, name, "--canary")) {
            options.canary = true;
        } else if (std.mem.eql(u8, name, "--plants")) {
            options.all_plants = true;
        } else {
            index += 1;
            if (index == args.len) return null;
            if (!setValue(&options, name, args[index])) return null;
        }
    }
    return options;
}

fn setValue(options: *Options, name: []const u8, value: []const u8) bool {
    if (std.mem.eql(u8, name, "--plant")) {
        options.plant = sim.Plant.parse(value) orelse return false;
        return true;
    }
    const number = std.fmt.parseInt(u64, value, 10) catch return false;
    if (std.mem.eql(u8, name, "--seed")) options.seed = number else if (std.mem.eql(u8, name, "--seeds"))
        options.seeds = number
    else if (std.mem.eql(u8, name, "--devices")) {
        if (number == 0 or number > 32) return false;
        options.devices = @intCast(number);
    } else return false;
    return true;
}
