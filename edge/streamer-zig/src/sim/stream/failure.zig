//! A run of the stream's proof that failed: made smaller where that is easy, told how to be had again, and its last packets written down.

const std = @import("std");
const Checks = @import("checks.zig");
const StreamPcap = @import("pcap.zig");
const StreamScenario = @import("scenario.zig");
const StreamWorld = @import("world.zig");

pub const Given = struct {
    gpa: std.mem.Allocator,
    io: std.Io,
    /// Null: a name made of the seed, in the directory for files that pass.
    pcap: ?[]const u8,
};

/// Says what was found with which seed, and in how small a run.
pub fn tell(given: Given, options: StreamWorld.Options, violation: *const Checks.Violation) !void {
    std.debug.print("seed {d} FAILED: {t}: {s}\n", .{ options.seed, violation.check, violation.text() });
    printAgain(&options);
    const world: *StreamWorld = try .create(given.gpa);
    defer world.destroy(given.gpa);
    const smaller = try shrink(world, options, violation.check);
    if (!std.meta.eql(smaller.limits, options.limits)) {
        std.debug.print("the same check fails in a smaller run; ", .{});
        printAgain(&smaller);
    }
    const result = try runRecorded(given, world, smaller);
    if (result.violation == null) std.debug.print("it did not fail again: it depends on more than its seed\n", .{});
}

/// Fewer devices and fewer faults, as long as the same check fails.
fn shrink(world: *StreamWorld, options: StreamWorld.Options, check: Checks.Check) !StreamWorld.Options {
    var smallest = options;
    for (1..StreamWorld.devices_max) |count| {
        var tried = smallest;
        tried.limits.devices = @intCast(count);
        if (!try fails(world, tried, check)) continue;
        smallest = tried;
        break;
    }
    for (std.enums.values(StreamScenario.Fault)) |fault| {
        var tried = smallest;
        tried.limits.without.insert(fault);
        if (try fails(world, tried, check)) smallest = tried;
    }
    return smallest;
}

fn fails(world: *StreamWorld, options: StreamWorld.Options, check: Checks.Check) !bool {
    const result = try world.run(options);
    const violation = result.violation orelse return false;
    return violation.check == check;
}

/// One run by its seed; 1 when something was found.
pub fn runAgain(given: Given, options: StreamWorld.Options) !u8 {
    const world: *StreamWorld = try .create(given.gpa);
    defer world.destroy(given.gpa);
    const result = if (given.pcap == null) try world.run(options) else try runRecorded(given, world, options);
    std.debug.print("seed {d}: {d} packets, {d} lost, {d} boots, {d} resumptions, {d} starts of the edge, {d} ms from healing to the end, hash {x:0>16}\n", .{
        options.seed,
        result.packets,
        result.lost,
        result.boots,
        result.resumptions,
        result.crashes + 1,
        result.finish_us_most / std.time.us_per_ms,
        result.hash,
    });
    std.debug.print("  faults:", .{});
    var faults = world.scenario.faults.iterator();
    while (faults.next()) |fault| std.debug.print(" {f}", .{fault});
    std.debug.print("\n", .{});
    const violation = result.violation orelse return 0;
    std.debug.print("FAILED: {t}: {s}\n", .{ violation.check, violation.text() });
    return 1;
}

fn runRecorded(given: Given, world: *StreamWorld, options: StreamWorld.Options) !StreamWorld.Result {
    var pcap: StreamPcap = try .init(given.gpa);
    defer pcap.deinit(given.gpa);
    var recorded = options;
    recorded.pcap = &pcap;
    const result = try world.run(recorded);
    var buffer: [64]u8 = undefined;
    const path = given.pcap orelse std.mem.print(&buffer, "/tmp/stream-proof-{d}.pcap", .{options.seed}) catch unreachable;
    writeFile(given.io, path, &pcap) catch |err| {
        std.debug.print("cannot write {s}: {t}\n", .{ path, err });
        return result;
    };
    std.debug.print("its last {d} packets are in {s}: tcpdump -vr {s} (a time to live of 1: the network lost it)\n", .{
        @min(pcap.count, pcap.packets.len), path, path,
    });
    return result;
}

fn writeFile(io: std.Io, path: []const u8, pcap: *const StreamPcap) !void {
    var file = try std.Io.Dir.cwd().createFile(io, path, .{});
    defer file.close(io);
    var buffer: [64 << 10]u8 = undefined;
    var writer = file.writer(io, &buffer);
    try pcap.write(&writer.interface);
    try writer.interface.flush();
}

pub fn printAgain(options: *const StreamWorld.Options) void {
    std.debug.print("again: zig build stream-proof -- --run {d}", .{options.seed});
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
    if (options.plant != .none) std.debug.print(" --plant {f}", .{options.plant});
    std.debug.print("\n", .{});
}
