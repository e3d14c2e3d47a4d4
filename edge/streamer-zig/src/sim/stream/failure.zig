//! A failed run of the stream's simulation: makes it smaller where that is easy, prints the command
//! that repeats it, and writes its last packets.

const std = @import("std");
const Invariants = @import("invariants.zig");
const Pcap = @import("../kit/pcap.zig");
const StreamScenario = @import("scenario.zig");
const StreamWorld = @import("world.zig");

pub const Context = struct {
    gpa: std.mem.Allocator,
    io: std.Io,
    /// Null: a name with the seed, in the directory for temporary files.
    pcap: ?[]const u8,
};

/// Prints what failed, and the smallest run in which it fails.
pub fn report(
    context: Context,
    options: StreamWorld.Options,
    violation: *const Invariants.Violation,
) !void {
    std.debug.print("seed {d} FAILED: {t}: {s}\n", .{
        options.seed, violation.check, violation.text(),
    });
    printCommand(&options);
    const world: *StreamWorld = try .create(context.gpa);
    defer world.destroy(context.gpa);
    const smaller = try shrink(world, options, violation.check);
    if (!std.meta.eql(smaller.limits, options.limits)) {
        std.debug.print("the same check fails in a smaller run; ", .{});
        printCommand(&smaller);
    }
    const result = try runRecorded(context, world, smaller);
    if (result.violation == null)
        std.debug.print("it did not fail again: it depends on more than its seed\n", .{});
}

/// Removes devices and faults as long as the same check fails.
fn shrink(
    world: *StreamWorld,
    options: StreamWorld.Options,
    check: Invariants.Check,
) !StreamWorld.Options {
    var smallest = options;
    for (1..StreamWorld.devices_max) |count| {
        var smaller = smallest;
        smaller.limits.devices = @intCast(count);
        if (!try fails(world, smaller, check)) continue;
        smallest = smaller;
        break;
    }
    for (std.enums.values(StreamScenario.Fault)) |fault| {
        var smaller = smallest;
        smaller.limits.without.insert(fault);
        if (try fails(world, smaller, check)) smallest = smaller;
    }
    return smallest;
}

fn fails(world: *StreamWorld, options: StreamWorld.Options, check: Invariants.Check) !bool {
    const result = try world.run(options);
    const violation = result.violation orelse return false;
    return violation.check == check;
}

/// Repeats one run. Returns 1 if a check failed.
pub fn repeat(context: Context, options: StreamWorld.Options) !u8 {
    const world: *StreamWorld = try .create(context.gpa);
    defer world.destroy(context.gpa);
    const result = if (context.pcap == null)
        try world.run(options)
    else
        try runRecorded(context, world, options);
    std.debug.print(
        "seed {d}: {d} packets, {d} lost, {d} boots, {d} resumptions, {d} deaths of edges, " ++
            "{d} ms from healing to the end, hash {x:0>16}\n",
        .{
            options.seed,
            result.packets,
            result.lost,
            result.boots,
            result.resumptions,
            result.crashes,
            result.finish_us_most / std.time.us_per_ms,
            result.hash,
        },
    );
    std.debug.print("  faults:", .{});
    var faults = world.scenario.faults.iterator();
    while (faults.next()) |fault| std.debug.print(" {f}", .{fault});
    std.debug.print("\n", .{});
    const violation = result.violation orelse return 0;
    std.debug.print("FAILED: {t}: {s}\n", .{ violation.check, violation.text() });
    return 1;
}

fn runRecorded(
    context: Context,
    world: *StreamWorld,
    options: StreamWorld.Options,
) !StreamWorld.Result {
    var pcap: Pcap = try .init(context.gpa);
    defer pcap.deinit(context.gpa);
    var recorded = options;
    recorded.pcap = &pcap;
    const result = try world.run(recorded);
    var buffer: [64]u8 = undefined;
    const path = context.pcap orelse
        std.mem.print(&buffer, "/tmp/stream-sim-{d}.pcap", .{options.seed}) catch unreachable;
    writeFile(context.io, path, &pcap) catch |err| {
        std.debug.print("cannot write {s}: {t}\n", .{ path, err });
        return result;
    };
    std.debug.print(
        "its last {d} packets are in {s}: tcpdump -vr {s} (a time to live of 1: the packet was " ++
            "lost)\n",
        .{ @min(pcap.count, pcap.packets.len), path, path },
    );
    return result;
}

fn writeFile(io: std.Io, path: []const u8, pcap: *const Pcap) !void {
    var file = try std.Io.Dir.cwd().createFile(io, path, .{});
    defer file.close(io);
    var buffer: [64 << 10]u8 = undefined;
    var writer = file.writer(io, &buffer);
    try pcap.write(&writer.interface);
    try writer.interface.flush();
}

/// Prints the command that repeats a run.
pub fn printCommand(options: *const StreamWorld.Options) void {
    std.debug.print("again: zig build stream-sim -- --run {d}", .{options.seed});
    if (options.limits.devices) |count| std.debug.print(" --devices {d}", .{count});
    if (options.limits.without.count() > 0) {
        std.debug.print(" --without ", .{});
        var faults = options.limits.without.iterator();
        var separator: []const u8 = "";
        while (faults.next()) |fault| {
            std.debug.print("{s}{f}", .{ separator, fault });
            separator = ",";
        }
    }
    if (options.is_canary) std.debug.print(" --canary", .{});
    if (options.mutant != .none) std.debug.print(" --mutant {f}", .{options.mutant});
    std.debug.print("\n", .{});
}
