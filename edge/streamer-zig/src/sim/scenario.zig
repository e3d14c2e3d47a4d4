//! What one seed means: how bad the network is, what breaks and when, who boots what. First everything is faulty, then it
//! heals, and then every boot must finish.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const disk = @import("disk.zig");
const Network = @import("network.zig");

pub const Scenario = @This();

pub const devices_max = 32;
pub const reads_max = 80;
/// Partitions are shorter than what makes a device give up a boot that reads.
const partition_us_max = 15 * std.time.us_per_s;

faults: Network.Faults,
store_error_percent: u8,
mode: core.DhcpService.Mode,
attack_per_mille: u16,
heal_at_us: u64,
reads: [reads_max]core.read_trace.Read,
reads_count: u16,
speed_per_mille: u32,

pub fn init(prng: *base.Prng) Scenario {
    const is_calm = prng.chance(1, 8);
    var scenario: Scenario = .{
        .faults = if (is_calm) .none else .{
            .loss_percent = @intCast(prng.below(31)),
            .duplicate_percent = @intCast(prng.below(11)),
            .corrupt_percent = @intCast(prng.below(6)),
            .delay_us_min = prng.between(20, 500),
            .delay_us_max = prng.between(500, 20_000),
        },
        .store_error_percent = if (prng.chance(1, 2)) 0 else @intCast(prng.below(20)),
        .mode = if (prng.chance(1, 2)) .proxy else .server,
        .attack_per_mille = @intCast(prng.below(30)),
        .heal_at_us = prng.between(15, 60) * std.time.us_per_s,
        .reads = undefined,
        .reads_count = @intCast(prng.between(1, reads_max)),
        .speed_per_mille = prng.pick(u32, &.{ 0, 1000, 20_000 }),
    };
    var at_us: u64 = 0;
    for (&scenario.reads) |*read| {
        at_us += if (prng.chance(1, 3)) prng.below(200_000) else prng.below(2000);
        const length_max: u64 = prng.pick(u64, &.{ 1, 8, 32, 256 });
        const length: u32 = @intCast(512 * prng.between(1, length_max));
        read.* = .{ .at_us = at_us, .offset = 512 * prng.below((disk.disk_size - length) / 512 + 1), .length = length };
    }
    return scenario;
}

/// Puts everything that will break into the network's queue.
pub fn schedule(scenario: *const Scenario, prng: *base.Prng, network: *Network, devices: u16) !void {
    const heal_at_us = scenario.heal_at_us;
    for (0..devices) |index| {
        try network.schedule(prng.below(5 * std.time.us_per_s), .{ .power_on = @intCast(index) });
        // Somebody presses reset in the middle of a boot.
        if (prng.chance(1, 4)) try network.schedule(prng.below(heal_at_us), .{ .power_on = @intCast(index) });
    }
    for (0..@intCast(prng.below(5))) |_| try network.schedule(prng.below(heal_at_us), .edge_crash);
    for (0..@intCast(prng.below(3))) |_| try network.schedule(prng.below(heal_at_us), .next_version);
    for (0..@intCast(prng.below(4))) |_| {
        const begin_us = prng.below(heal_at_us);
        const end_us = @min(heal_at_us, begin_us + prng.between(100_000, partition_us_max));
        try network.schedule(begin_us, .{ .partition = true });
        try network.schedule(end_us, .{ .partition = false });
    }
    try network.schedule(prng.between(2, 12) * std.time.us_per_s, .thief);
    try network.schedule(heal_at_us, .heal);
}
