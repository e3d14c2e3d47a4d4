//! Decides whether an edge answers the IPv6 router solicitations of one segment with "no router
//! here" (docs/decisions/0063-router-advertisements.md). iPXE waits some 16 s for a router before
//! it continues. Input: what was heard on the segment, and whether the sender boots here; the agent
//! sends. Pure. Invariants: an answer makes no router of the edge; where a router was heard there
//! is none; by default only a device that is in its loader here gets one, and nobody else sees it.
//! RFC 4861: sections 4.2, 6.2.6, 6.3.4, 6.3.7 and 10.

const std = @import("std");
const wire = @import("wire");
const assert = std.debug.assert;

pub const RouterDiscovery = @This();

pub const Mode = enum {
    never,
    /// Only devices in their loader, once the segment has been asked for a router.
    booting,
    /// Whoever asks, from the start.
    everybody,
};

pub const Destination = enum { sender, all_nodes };

mode: Mode,
asked_count: u8 = 0,
asked_us: u64 = 0,
/// Until then a router counts as present.
router_until_us: u64 = 0,
multicast_from_us: u64 = 0,
/// Whether there is a router was said last: null: not yet.
said_router: ?bool = null,
/// Answers that may still be sent in this second.
budget: u32 = answers_per_second_max,

/// More than the machines that are switched on together need; a flood gets no more.
const answers_per_second_max = 64;
/// MAX_RTR_SOLICITATIONS, RTR_SOLICITATION_INTERVAL.
const asks_first = 3;
const ask_interval_us = 4 * std.time.us_per_s;
/// A router that joins says so by itself; this finds one whose advertisements were lost.
const ask_again_us = 10 * 60 * std.time.us_per_s;
/// MIN_DELAY_BETWEEN_RAS.
const multicast_interval_us = 3 * std.time.us_per_s;
/// MaxRtrAdvInterval of a router is at most this: a silent one has left.
const router_kept_s_min = 1800;

/// Runs once a second. Returns whether to solicit a router now.
pub fn tick(discovery: *RouterDiscovery, now_us: u64) bool {
    discovery.budget = answers_per_second_max;
    if (discovery.mode == .never) return false;
    const interval_us: u64 = if (discovery.asked_count < asks_first)
        ask_interval_us
    else
        ask_again_us;
    if (discovery.asked_count > 0 and now_us < discovery.asked_us + interval_us) return false;
    discovery.asked_count = @min(discovery.asked_count + 1, asks_first + 1);
    discovery.asked_us = now_us;
    assert(discovery.asked_count > 0);
    return true;
}

/// Another machine's advertisement was heard.
pub fn onAdvertisement(
    discovery: *RouterDiscovery,
    now_us: u64,
    heard: wire.router_discovery.Advertisement,
) void {
    // Another edge's answer.
    if (heard.is_bare) return;
    const kept_s: u64 = @max(heard.router_lifetime_s, router_kept_s_min);
    discovery.router_until_us =
        @max(discovery.router_until_us, now_us + kept_s * std.time.us_per_s);
    assert(discovery.hasRouter(now_us));
}

fn hasRouter(discovery: *const RouterDiscovery, now_us: u64) bool {
    return now_us < discovery.router_until_us;
}

/// The segment was asked often enough, and a router would have answered.
fn isSettled(discovery: *const RouterDiscovery, now_us: u64) bool {
    if (discovery.asked_count > asks_first) return true;
    return discovery.asked_count == asks_first and
        now_us >= discovery.asked_us + ask_interval_us;
}

/// Returns whether there is a router, if that is known and news.
pub fn news(discovery: *RouterDiscovery, now_us: u64) ?bool {
    const has_router = discovery.hasRouter(now_us);
    if (!has_router and !discovery.isSettled(now_us)) return null;
    if (discovery.said_router == has_router) return null;
    discovery.said_router = has_router;
    assert(discovery.mode != .never or has_router);
    return has_router;
}

pub const Sender = struct {
    address: wire.router_discovery.Address,
    /// A boot of it is in its loader here.
    is_booting: bool,
};

/// Returns whom to answer; null: nobody.
pub fn answer(discovery: *RouterDiscovery, now_us: u64, sender: Sender) ?Destination {
    if (discovery.mode == .never or discovery.hasRouter(now_us)) return null;
    const is_nobody = std.mem.eql(u8, &sender.address, &wire.router_discovery.unspecified);
    const is_near = wire.router_discovery.isLinkLocal(sender.address);
    if (discovery.mode == .booting) {
        if (!sender.is_booting or !is_near or !discovery.isSettled(now_us)) return null;
    }
    if (!is_near and !is_nobody) return null;
    if (is_nobody and now_us < discovery.multicast_from_us) return null;
    if (discovery.budget == 0) return null;
    discovery.budget -= 1;
    assert(discovery.budget < answers_per_second_max);
    if (!is_nobody) return .sender;
    discovery.multicast_from_us = now_us + multicast_interval_us;
    return .all_nodes;
}

const testing = std.testing;
const second = std.time.us_per_s;
const Address = wire.router_discovery.Address;
const host: Address = wire.router_discovery.linkLocalOf(.{ .bytes = .{ 2, 0, 0, 0, 0, 1 } });
const device: Sender = .{ .address = host, .is_booting = true };
const stranger: Sender = .{ .address = host, .is_booting = false };

fn settled() RouterDiscovery {
    var discovery: RouterDiscovery = .{ .mode = .booting };
    for (1..14) |at| _ = discovery.tick(at * second);
    return discovery;
}

test "a segment is asked three times for a router, and then every ten minutes" {
    var discovery: RouterDiscovery = .{ .mode = .booting };
    var asked: [8]u64 = undefined;
    var count: usize = 0;
    for (1..1500) |at| if (discovery.tick(at * second)) {
        asked[count] = at;
        count += 1;
    };
    try testing.expectEqualSlices(u64, &.{ 1, 5, 9, 609, 1209 }, asked[0..count]);
    var silent: RouterDiscovery = .{ .mode = .never };
    for (1..20) |at| try testing.expect(!silent.tick(at * second));
}

test "a device in its loader is answered once no router has answered" {
    var discovery: RouterDiscovery = .{ .mode = .booting };
    for (1..10) |at| {
        _ = discovery.tick(at * second);
        try testing.expectEqual(null, discovery.answer(at * second, device));
    }
    try testing.expectEqual(null, discovery.answer(13 * second - 1, device));
    try testing.expectEqual(null, discovery.news(13 * second - 1));
    try testing.expectEqual(false, discovery.news(13 * second).?);
    try testing.expectEqual(null, discovery.news(14 * second));
    try testing.expectEqual(.sender, discovery.answer(13 * second, device).?);
    // It stays so while the segment is asked again.
    for (13..700) |at| _ = discovery.tick(at * second);
    try testing.expectEqual(.sender, discovery.answer(700 * second, device).?);
}

test "by default nobody is answered who does not boot here, or by name only" {
    var discovery = settled();
    try testing.expectEqual(null, discovery.answer(20 * second, stranger));
    // An answer to all would reach machines that did not ask.
    try testing.expectEqual(null, discovery.answer(20 * second, .{
        .address = wire.router_discovery.unspecified,
        .is_booting = true,
    }));
    var global = host;
    global[0] = 0x20;
    try testing.expectEqual(
        null,
        discovery.answer(20 * second, .{ .address = global, .is_booting = true }),
    );
    var never: RouterDiscovery = .{ .mode = .never };
    try testing.expectEqual(null, never.answer(20 * second, device));
}

test "no answer competes with a router, whichever mode is chosen" {
    for ([_]Mode{ .booting, .everybody }) |mode| {
        var discovery = settled();
        discovery.mode = mode;
        discovery.onAdvertisement(20 * second, .{ .router_lifetime_s = 0, .is_bare = false });
        try testing.expectEqual(true, discovery.news(20 * second).?);
        try testing.expectEqual(null, discovery.answer(1819 * second, device));
        try testing.expectEqual(.sender, discovery.answer(1820 * second, device).?);
        discovery.onAdvertisement(2000 * second, .{ .router_lifetime_s = 9000, .is_bare = false });
        // A later word of a shorter lifetime does not make it leave earlier.
        discovery.onAdvertisement(2001 * second, .{ .router_lifetime_s = 0, .is_bare = false });
        try testing.expectEqual(null, discovery.answer(10_999 * second, device));
        try testing.expectEqual(.sender, discovery.answer(11_000 * second, device).?);
    }
}

test "another edge's answer is no router" {
    var discovery = settled();
    discovery.onAdvertisement(20 * second, .{ .router_lifetime_s = 0, .is_bare = true });
    try testing.expectEqual(.sender, discovery.answer(21 * second, device).?);
}

test "answers are limited by the second, and those to all nodes by RFC 4861" {
    var discovery: RouterDiscovery = .{ .mode = .everybody };
    for (0..answers_per_second_max) |_|
        try testing.expectEqual(.sender, discovery.answer(second, stranger).?);
    try testing.expectEqual(null, discovery.answer(second, stranger));
    _ = discovery.tick(2 * second);
    const nobody: Sender =
        .{ .address = wire.router_discovery.unspecified, .is_booting = false };
    try testing.expectEqual(.all_nodes, discovery.answer(2 * second, nobody).?);
    try testing.expectEqual(null, discovery.answer(5 * second - 1, nobody));
    try testing.expectEqual(.all_nodes, discovery.answer(5 * second, nobody).?);
}
