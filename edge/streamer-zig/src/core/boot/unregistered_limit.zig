//! Limits how often devices that nobody has registered begin boots: by a rate for each address and
//! one for all of them. Anybody can invent MAC addresses, and each would have a boot, its reports
//! and its journal. Once half of the common allowance is used up, and until no new ones have come
//! for a while, a MAC address has to be seen twice: firmware repeats its requests, and inventions
//! do not. Fixed size, pure.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const UnregisteredLimit = @This();

/// Keeps attackers from choosing their slots.
seed: u64,
common: Allowance = .{},
common_rate: Rate,
/// By the hash of an address. Addresses that share a slot share its allowance: nobody can displace
/// another one's.
addresses: []Allowance,
address_rate: Rate,
/// By the hash of a MAC address, the latest one.
sightings: []Sighting,
/// Until then a MAC address has to be seen twice.
wary_until_us: u64 = 0,

const address_slots = 1024;
/// A sighting outlives so many others, on average, for each boot of the table's part.
const sightings_per_boot = 32;

/// A flood that goes on gets nothing of what the common rate gives back.
const wary_us = 10 * std.time.us_per_s;

const Sighting = struct {
    tag: u32 = 0,
    at_s: u32 = 0,

    /// Firmware repeats a DISCOVER after 4, 8 and 16 s, iPXE after 1 s; boot media after 10 s.
    const age_s_min = 1;
    const age_s_max = 60;
};

const Rate = struct {
    interval_us: u64,
    burst: u64,

    /// A boot per interval for each boot of the table's part.
    fn of(boots_max: u32, interval_s: u64, burst: u32) Rate {
        const interval_us = interval_s * std.time.us_per_s / boots_max;
        return .{ .interval_us = @max(1, interval_us), .burst = @max(1, burst) };
    }
};

/// A bucket of tokens, as the instant at which it will be full again.
const Allowance = struct {
    full_at_us: u64 = 0,

    /// Returns what is left of the burst.
    fn left(allowance: Allowance, now_us: u64, rate: Rate) u64 {
        const used_us = allowance.full_at_us -| now_us;
        const used = std.math.divCeil(u64, used_us, rate.interval_us) catch unreachable;
        return rate.burst -| used;
    }

    fn take(allowance: *Allowance, now_us: u64, rate: Rate) void {
        assert(allowance.left(now_us, rate) > 0);
        allowance.full_at_us = @max(allowance.full_at_us, now_us) + rate.interval_us;
    }
};

/// `boots_max`: the part of the table of boots that unregistered devices share. A boot that comes
/// no further than its DHCP offer ends after a minute. With a quarter in one go, and as much as all
/// in two minutes, such boots take three quarters at most.
pub fn init(
    gpa: std.mem.Allocator,
    boots_max: u32,
    seed: u64,
) error{OutOfMemory}!UnregisteredLimit {
    assert(boots_max > 0);
    const addresses = try base.allocZeroed(gpa, Allowance, Allowance{}, address_slots);
    errdefer base.freeZeroed(gpa, Allowance, addresses);
    const count = std.math.ceilPowerOfTwoAssert(u32, sightings_per_boot * boots_max);
    const sightings = try base.allocZeroed(gpa, Sighting, Sighting{}, count);
    return .{
        .seed = seed,
        .common_rate = .of(boots_max, 128, boots_max / 4),
        .addresses = addresses,
        .address_rate = .of(boots_max, 1024, boots_max / 16),
        .sightings = sightings,
    };
}

pub fn deinit(limit: *UnregisteredLimit, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, Allowance, limit.addresses);
    base.freeZeroed(gpa, Sighting, limit.sightings);
    limit.* = undefined;
}

/// Returns whether a device may begin a boot now, which is then counted. `from`: the address that
/// its request came from; null if it has none yet, or if many devices may share it.
pub fn admits(limit: *UnregisteredLimit, now_us: u64, mac: base.Mac, from: ?base.Ip4) bool {
    assert(mac.isDevice());
    const is_short = 2 * limit.common.left(now_us, limit.common_rate) <= limit.common_rate.burst;
    if ((is_short or now_us < limit.wary_until_us) and !limit.isRepeated(now_us, mac)) return false;
    const address = if (from) |ip| &limit.addresses[limit.slotOf(ip)] else null;
    if (address) |allowance| if (allowance.left(now_us, limit.address_rate) == 0) return false;
    if (limit.common.left(now_us, limit.common_rate) == 0) return false;
    if (address) |allowance| allowance.take(now_us, limit.address_rate);
    limit.common.take(now_us, limit.common_rate);
    return true;
}

fn isRepeated(limit: *UnregisteredLimit, now_us: u64, mac: base.Mac) bool {
    const hash = base.mix(mac.toInt(), limit.seed);
    const tag: u32 = @intCast(hash >> 32);
    const now_s: u32 = @intCast(now_us / std.time.us_per_s);
    const sighting = &limit.sightings[@intCast(hash & (limit.sightings.len - 1))];
    const age_s = now_s -| sighting.at_s;
    const is_known = sighting.tag == tag and age_s <= Sighting.age_s_max;
    if (is_known) return age_s >= Sighting.age_s_min;
    sighting.* = .{ .tag = tag, .at_s = now_s };
    limit.wary_until_us = now_us + wary_us;
    return false;
}

fn slotOf(limit: *const UnregisteredLimit, ip: base.Ip4) usize {
    const hash = base.mix(ip.toInt(), limit.seed);
    return @intCast(hash & (limit.addresses.len - 1));
}

const testing = std.testing;
const second = std.time.us_per_s;

test "an address that invents MAC addresses has used its burst, and others have not" {
    var limit: UnregisteredLimit = try .init(testing.allocator, 1024, 7);
    defer limit.deinit(testing.allocator);
    var prng: base.Prng = .init(1);
    const here: base.Ip4 = .init(10, 0, 0, 1);
    var count: u32 = 0;
    for (0..5000) |_| {
        const mac: base.Mac = .fromInt(@as(u48, 0x0200_0000_0000) + prng.nextU32());
        count += @intFromBool(limit.admits(9 * second, mac, here));
    }
    try testing.expectEqual(64, count);
    try testing.expect(limit.admits(9 * second, .fromInt(0x02bf_0000_0001), .init(10, 0, 0, 2)));
    // One in a second.
    for ([_]bool{ true, false }, 0x02be_0000_0000..) |is_admitted, number|
        try testing.expectEqual(
            is_admitted,
            limit.admits(10 * second, .fromInt(@intCast(number)), here),
        );
}

test "a device that repeats its request begins its boot while others invent MAC addresses" {
    var limit: UnregisteredLimit = try .init(testing.allocator, 1024, 7);
    defer limit.deinit(testing.allocator);
    var prng: base.Prng = .init(2);
    var now_us: u64 = second;
    var invented: u32 = 0;
    var is_first_refused = false;
    const device: base.Mac = .fromInt(0x02bf_0000_0001);
    const flood_s = 60;
    for (0..flood_s * 1000) |index| {
        const mac: base.Mac = .fromInt(@as(u48, 0x0200_0000_0000) + prng.nextU32());
        invented += @intFromBool(limit.admits(now_us, mac, null));
        now_us += 1000;
        if (index == 30_000) is_first_refused = !limit.admits(now_us, device, null);
        if (index == 34_000) try testing.expect(limit.admits(now_us, device, null));
    }
    try testing.expect(is_first_refused);
    // Half the burst, and one that the rate has given back until then.
    try testing.expectEqual(129, invented);
    const other: base.Mac = .fromInt(0x02bf_0000_0002);
    try testing.expect(!limit.admits(now_us, other, null));
    // Calm has returned.
    now_us += wary_us;
    try testing.expect(limit.admits(now_us, .fromInt(0x02bf_0000_0003), null));
}

test "the same MAC address a thousand times is one that was not repeated after a second" {
    var limit: UnregisteredLimit = try .init(testing.allocator, 16, 7);
    defer limit.deinit(testing.allocator);
    const mac: base.Mac = .fromInt(0x02bf_0000_0001);
    const start_us = 100 * second;
    for (0..2) |index| {
        const invented: base.Mac = .fromInt(@intCast(0x02ca_0000_0000 + index));
        try testing.expect(limit.admits(start_us, invented, null));
    }
    for (0..1000) |_| try testing.expect(!limit.admits(start_us, mac, null));
    try testing.expect(limit.admits(start_us + second, mac, null));
}
