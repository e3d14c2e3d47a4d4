//! Draws a run from its seed: the number of devices, the DHCP mode, what devices read, and what
//! happens to the site until it heals: crashes of edges, cut links, devices that are switched off
//! and on, another version.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const addresses = @import("addresses.zig");
const ControlPlane = @import("control_plane.zig");
const Disk = @import("disk.zig");
const EventQueue = @import("event_queue.zig");
const assert = std.debug.assert;

pub const planned_max = 96;
const second = std.time.us_per_s;

pub const Scenario = struct {
    device_count: u8,
    edge_count: u8,
    /// There is a control plane; otherwise one edge gives every device the same version.
    is_managed: bool,
    mode: core.dhcp.Service.Mode,
    is_xid_shared: bool,
    speed_per_mille: u32,
    versions: [ControlPlane.versions_max]Disk.Version,
    /// Since the start of the run; faults end here.
    heal_at_us: u64,
    /// 0: the run has no attacker.
    attack_period_us: u64,
    planned: [planned_max]Planned = undefined,
    planned_count: u32 = 0,
    /// A power order after the site has healed.
    late_order: ?Planned = null,

    /// Times are since the start of the run.
    pub const Planned = struct { at_us: u64, event: EventQueue.Event };

    pub fn draw(prng: *base.Prng, device_count: ?u8) Scenario {
        const drawn_count: u8 = @intCast(prng.between(2, 8));
        const is_managed = prng.chance(2, 3);
        const several: u8 = @intCast(prng.between(1, addresses.edges_max));
        var scenario: Scenario = .{
            .device_count = device_count orelse drawn_count,
            .edge_count = if (is_managed) several else 1,
            .is_managed = is_managed,
            .mode = if (prng.chance(1, 2)) .proxy else .server,
            .is_xid_shared = prng.chance(1, 3),
            .speed_per_mille = @intCast(prng.pick(u64, &.{ 0, 1000, 4000 })),
            .versions = undefined,
            // Devices can fail over only after they have booted, which takes seconds.
            .heal_at_us = if (is_managed and several > 1)
                prng.between(8, 30) * second
            else
                prng.between(2, 20) * second,
            .attack_period_us = if (prng.chance(2, 3)) prng.between(1_000, 20_000) else 0,
        };
        // Versions of one vDisk sometimes differ in size.
        const size = prng.between(2_000, 40_000) * 512;
        for (&scenario.versions) |*version| {
            var id: [16]u8 = undefined;
            prng.fill(&id);
            version.* = .{ .id = .fromRandom(id), .size = size + prng.below(2) * 8 * 512 };
        }
        scenario.drawEvents(prng);
        return scenario;
    }

    fn drawEvents(scenario: *Scenario, prng: *base.Prng) void {
        const heal_at_us = scenario.heal_at_us;
        for (0..@intCast(prng.below(6))) |_| {
            const at_us = prng.below(heal_at_us);
            // Within a second, as a supervisor restarts it, or so late that devices fail over.
            const is_quick = prng.chance(if (scenario.edge_count > 1) 1 else 2, 3);
            const down_us = prng.between(1, if (is_quick) second else 12 * second);
            const edge: u8 = @intCast(prng.below(scenario.edge_count));
            const is_power_cut = prng.chance(1, 2);
            scenario.add(at_us, .{ .edge_crash = .{ .edge = edge, .is_power_cut = is_power_cut } });
            scenario.add(@min(at_us + down_us, heal_at_us), .{ .edge_start = edge });
        }
        for (0..@intCast(prng.below(8))) |_| {
            const link: u8 = @intCast(prng.below(scenario.linkCount()));
            const duration_us = prng.between(1, if (prng.chance(1, 2)) second else 15 * second);
            scenario.add(
                prng.below(heal_at_us),
                .{ .cut = .{ .link = link, .duration_us = duration_us } },
            );
        }
        for (0..@intCast(prng.below(8))) |_| {
            const at_us = prng.between(2, heal_at_us);
            scenario.add(at_us, .{ .power_on = @intCast(prng.below(scenario.device_count)) });
        }
        if (scenario.is_managed) scenario.drawChanges(prng) else {
            for (0..@intCast(prng.below(4))) |_|
                scenario.add(prng.below(heal_at_us), .switch_version);
        }
        for (0..@intCast(prng.below(5))) |_| {
            const at_us = prng.below(heal_at_us);
            scenario.add(at_us, .{ .order = @intCast(prng.below(scenario.device_count)) });
        }
        for (0..@intCast(prng.below(3))) |_| {
            const at_us = prng.below(heal_at_us);
            scenario.add(at_us, .{ .clear_tpm = @intCast(prng.below(scenario.device_count)) });
        }
        if (prng.chance(1, 2)) scenario.late_order = .{
            .at_us = heal_at_us + prng.between(1, 4 * second),
            .event = .{ .order = @intCast(prng.below(scenario.device_count)) },
        };
    }

    /// Counts the links that can be cut: those of devices, of the attacker, and of each edge to the
    /// others.
    fn linkCount(scenario: *const Scenario) u8 {
        return scenario.device_count + 1 + if (scenario.edge_count > 1) scenario.edge_count else 0;
    }

    fn drawChanges(scenario: *Scenario, prng: *base.Prng) void {
        const heal_at_us = scenario.heal_at_us;
        for (0..@intCast(prng.below(16))) |_| scenario.add(prng.below(heal_at_us), .change_state);
        for (0..@intCast(prng.below(5))) |_| {
            const edge: u8 = @intCast(prng.below(scenario.edge_count));
            const at_us = prng.below(heal_at_us);
            const back_at_us = @min(at_us + prng.between(1, 10 * second), heal_at_us);
            scenario.add(at_us, .{ .uplink = .{ .edge = edge, .is_up = false } });
            scenario.add(back_at_us, .{ .uplink = .{ .edge = edge, .is_up = true } });
        }
    }

    fn add(scenario: *Scenario, at_us: u64, event: EventQueue.Event) void {
        scenario.planned[scenario.planned_count] = .{ .at_us = at_us, .event = event };
        scenario.planned_count += 1;
    }
};

const Read = core.device.read_trace.Read;

/// Draws what a device reads in a boot: bursts and pauses, small and large, as in recorded boots.
pub fn drawReads(
    gpa: std.mem.Allocator,
    prng: *base.Prng,
    disk_size: u64,
) error{OutOfMemory}![]Read {
    const reads = try gpa.alloc(Read, @intCast(prng.between(5, 80)));
    var at_us: u64 = 0;
    for (reads) |*read| {
        if (prng.chance(1, 3)) at_us += prng.below(200_000);
        const length: u32 = switch (prng.below(4)) {
            0 => 4096,
            1 => 512 * @as(u32, @intCast(prng.between(1, 64))),
            2 => 32 * 1024,
            else => 128 * 1024,
        };
        const sectors = (disk_size -| length) / 512;
        // Faults are likely at the end of the disk.
        const sector = if (prng.chance(1, 16)) sectors else prng.below(sectors + 1);
        read.* = .{ .at_us = at_us, .offset = sector * 512, .length = length };
    }
    return reads;
}

test "a scenario is the same for the same seed and heals after its last event" {
    for (0..200) |seed| {
        var prng: base.Prng = .init(seed);
        const one: Scenario = .draw(&prng, null);
        var again: base.Prng = .init(seed);
        const other: Scenario = .draw(&again, null);
        try std.testing.expectEqual(one.heal_at_us, other.heal_at_us);
        const planned_events = one.planned[0..one.planned_count];
        try std.testing.expectEqualDeep(planned_events, other.planned[0..other.planned_count]);
        for (planned_events) |planned| try std.testing.expect(planned.at_us <= one.heal_at_us);
    }
}
