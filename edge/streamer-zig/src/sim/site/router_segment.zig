//! Router discovery on the simulated segment: who has solicited, what each edge has heard of a
//! router, and what an edge may answer. Some runs have it; of those, in every second one a machine
//! of the attacker claims to be a router. Its generator is its own: the rest of a run does not
//! depend on it. Invariants: an edge denies only to a device that boots there and has asked that
//! there is a router, no more often than it was asked, and never beside a router.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const addresses = @import("addresses.zig");
const Invariants = @import("invariants.zig");
const assert = std.debug.assert;
const router_discovery = wire.router_discovery;

pub const RouterSegment = @This();

const edges_max = addresses.edges_max;
const devices_max = 64;
/// MaxRtrAdvInterval of RFC 4861 is at most this.
const router_kept_us = 1800 * std.time.us_per_s;
/// An edge has asked for a router by then.
const settled_us = 15 * std.time.us_per_s;

prng: base.Prng,
/// Null: nobody claims to be a router.
router_at_us: ?u64,
/// Solicitations that have reached each edge in the name of each device, and its answers.
asked: [edges_max][devices_max]u32 = @splat(@splat(0)),
answered: [edges_max][devices_max]u32 = @splat(@splat(0)),
/// Until when each edge knows of a router; a restart forgets it.
router_until_us: [edges_max]u64 = @splat(0),
/// When the process of each edge has started.
started_us: [edges_max]u64 = @splat(0),

/// Returns whether a run has it: few, none of which another check is tuned to.
pub fn isIn(seed: u64) bool {
    return seed % 11 == 8;
}

pub fn init(seed: u64, heal_at_us: u64) RouterSegment {
    var prng: base.Prng = .init(seed *% 0x9e37_79b9 +% 63);
    const router_at_us = if (seed % 2 == 0) null else prng.below(heal_at_us);
    return .{ .prng = prng, .router_at_us = router_at_us };
}

/// A packet in four is lost while there are faults.
pub fn loses(segment: *RouterSegment, is_healed: bool) bool {
    return !is_healed and segment.prng.chance(1, 4);
}

pub fn noteStart(segment: *RouterSegment, edge: u8, now_us: u64) void {
    segment.started_us[edge] = now_us;
    segment.router_until_us[edge] = 0;
}

pub fn noteAsked(segment: *RouterSegment, edge: u8, device: u8) void {
    segment.asked[edge][device] += 1;
}

pub fn noteRouter(segment: *RouterSegment, edge: u8, now_us: u64) void {
    segment.router_until_us[edge] = now_us + router_kept_us;
}

pub const Answer = struct {
    edge: u8,
    to: router_discovery.Address,
    bytes: []const u8,
    /// A boot of the device is before its operating system at this edge.
    is_booting: bool,
};

/// Checks an advertisement of an edge; returns the device that gets it.
pub fn noteAnswer(
    segment: *RouterSegment,
    invariants: *Invariants,
    now_us: u64,
    answer: Answer,
) ?u8 {
    const edge = answer.edge;
    const mac = router_discovery.macOf(answer.to);
    const device = if (mac) |known| Invariants.deviceOf(known) else null;
    const to = device orelse {
        invariants.violate(.router_denied_rarely, "edge {d} denies a router to {x}", .{
            edge, answer.to,
        });
        return null;
    };
    if (!std.mem.eql(u8, answer.bytes, &router_discovery.advertisement()))
        invariants.violate(.router_denied_rarely, "edge {d} advertises something", .{edge});
    if (!answer.is_booting)
        invariants.violate(.router_denied_rarely, "edge {d} answers device {d}, which runs", .{
            edge, to,
        });
    if (now_us < segment.router_until_us[edge])
        invariants.violate(.router_denied_rarely, "edge {d} denies a router that it knows", .{
            edge,
        });
    segment.answered[edge][to] += 1;
    if (segment.answered[edge][to] > segment.asked[edge][to])
        invariants.violate(.router_denied_rarely, "edge {d} answers device {d} unasked", .{
            edge, to,
        });
    return to;
}

/// Returns whether a device that is switched on now, on a healed network, waits for no router.
pub fn isAvoided(segment: *const RouterSegment, edge_count: u8, power_on_us: u64) bool {
    assert(edge_count > 0);
    for (0..edge_count) |edge| {
        if (power_on_us < segment.router_until_us[edge]) return false;
        if (power_on_us < segment.started_us[edge] + settled_us) return false;
    }
    return true;
}

/// Who solicits in an attack: a device, a machine that does not exist, or nobody.
pub fn attackersName(segment: *RouterSegment, device_count: u8) router_discovery.Address {
    return switch (segment.prng.below(4)) {
        0 => router_discovery.unspecified,
        1 => router_discovery.linkLocalOf(addresses.inventedMac(segment.prng.nextU32())),
        else => router_discovery.linkLocalOf(
            Invariants.macOf(@intCast(segment.prng.below(device_count))),
        ),
    };
}
