//! Which versions are in the store of a simulated edge, and which of them its check has found
//! damaged. A version comes, is damaged or is mended while the edge runs or is down; what is
//! damaged is served on, as by the product.

const std = @import("std");
const base = @import("base");
const ControlPlane = @import("control_plane.zig");
const EventQueue = @import("event_queue.zig");
const Copy = EventQueue.Copy;
const assert = std.debug.assert;

pub const VersionCopies = @This();

const versions_max = ControlPlane.versions_max;

copies: [versions_max]Copy = @splat(.whole),
/// Grows with each change.
revision: u64 = 0,

pub fn set(copies: *VersionCopies, version: u8, copy: Copy) void {
    assert(copy != .absent);
    copies.copies[version] = copy;
    copies.revision += 1;
}

/// What becomes of the versions of a site.
pub const Fate = struct {
    /// At the start of the run, by edge.
    first: [edges_max]VersionCopies = @splat(.{}),
    planned: [planned_max]Planned = undefined,
    planned_count: u32 = 0,

    const edges_max = @import("addresses.zig").edges_max;
    const planned_max = 2 * edges_max * versions_max;

    /// The time is since the start of the run.
    pub const Planned = struct { at_us: u64, event: @FieldType(EventQueue.Event, "copy") };

    /// Draws the fate of versions that any edge may serve: one edge has each of them whole all the
    /// time; others lack it for a while or for good, or find it damaged.
    pub fn draw(seed: u64, of: struct {
        edge_count: u8,
        /// Of these versions no edge keeps what devices write.
        version_count: u8,
        heal_at_us: u64,
    }) Fate {
        var fate: Fate = .{};
        // A generator of its own: the other faults of a seed stay as they are.
        var prng: base.Prng = .init(seed *% 0x9e37_79b9 +% 17);
        if (of.edge_count < 2 or prng.chance(1, 3)) return fate;
        for (0..of.version_count) |number| {
            const version: u8 = @intCast(number);
            const keeper = prng.below(of.edge_count);
            for (0..of.edge_count) |index| {
                const edge: u8 = @intCast(index);
                const is_absent = prng.chance(1, 2);
                const comes = prng.chance(1, 2);
                const comes_at_us = prng.below(of.heal_at_us);
                const is_damaged = prng.chance(1, 4);
                const damaged_at_us = prng.below(of.heal_at_us);
                const is_mended = prng.chance(1, 2);
                if (edge == keeper) continue;
                if (is_absent) fate.first[edge].copies[version] = .absent;
                if (is_absent) {
                    if (comes) fate.add(comes_at_us, edge, version, .whole);
                } else if (is_damaged) {
                    fate.add(damaged_at_us, edge, version, .damaged);
                    if (is_mended) fate.add(
                        damaged_at_us + (of.heal_at_us - damaged_at_us) / 2,
                        edge,
                        version,
                        .whole,
                    );
                }
            }
        }
        return fate;
    }

    fn add(fate: *Fate, at_us: u64, edge: u8, version: u8, copy: Copy) void {
        fate.planned[fate.planned_count] =
            .{ .at_us = at_us, .event = .{ .edge = edge, .version = version, .copy = copy } };
        fate.planned_count += 1;
    }
};

test "one edge has each version whole all the time, and others lack some" {
    var absent: u32 = 0;
    for (0..100) |seed| {
        const fate: Fate =
            .draw(seed, .{ .edge_count = 3, .version_count = 2, .heal_at_us = 10_000_000 });
        for (0..2) |version| {
            var is_kept: [3]bool = undefined;
            for (&is_kept, fate.first[0..3]) |*kept, *first|
                kept.* = first.copies[version] == .whole;
            for (fate.planned[0..fate.planned_count]) |*planned| {
                try std.testing.expect(planned.at_us < 10_000_000);
                if (planned.event.version == version) is_kept[planned.event.edge] = false;
            }
            try std.testing.expect(is_kept[0] or is_kept[1] or is_kept[2]);
            for (fate.first[0..3]) |*first|
                absent += @intFromBool(first.copies[version] == .absent);
        }
    }
    try std.testing.expect(absent > 50);
}
