//! Since when each device of the stream's proof has had a way to each edge that served it, to see that it goes on in time at another one
//! where its own is gone, and never leaves one that is there.

const std = @import("std");
const base = @import("base");
const link = @import("link.zig");
const StreamDevice = @import("device.zig");
const network_module = @import("network.zig");
const StreamScenario = @import("scenario.zig");
const StreamSite = @import("site.zig");

pub const Reachability = @This();

/// STREAM.md, "Fail-over": the first byte of the other edge comes within two seconds of the last one of the old; with the time that hello
/// and a read take on the slowest link.
const silence_us_max = 2 * std.time.us_per_s + 100 * std.time.us_per_ms;
/// Where the network says that nobody listens there: a hello of which one packet finds no room in a switch, and a read.
const told_us_max = 500 * std.time.us_per_ms;
/// For each other one that is gone, too, and may have been asked before.
const passed_us_max = 250 * std.time.us_per_ms;
/// With what the device is late.
const silent_turn_us_max = passed_us_max + 20 * std.time.us_per_ms;
/// Whoever could be heard for so long was not gone: the others may have had the longest turns, one after the other, when it came back.
fn reasonUsMax(site: *const StreamSite) u64 {
    return std.time.us_per_s + 2 * std.time.us_per_s * @as(u64, site.edge_count - 1);
}

/// Null: there is none.
since_us: [network_module.links_max][StreamSite.edges_max]?u64 = @splat(@splat(null)),
/// Nothing but edges that are gone keeps this run's devices from what they read.
is_strict: bool = false,
/// Nothing but edges that are gone makes this run's devices leave.
is_loyal: bool = false,

/// Faults that may keep bytes back for longer, each for a reason of its own.
const other_reasons: StreamScenario.FaultSet = .init(.{
    .bad_links = true,
    .store_errors = true,
    .missing_versions = true,
    .few_sessions = true,
    .slow_disk = true,
    .slow_devices = true,
    .lost_keys = true,
});
const reasons_to_leave: StreamScenario.FaultSet = .init(.{
    .bad_links = true,
    .missing_versions = true,
    .few_sessions = true,
    .lost_keys = true,
    .slow_devices = true,
    // Somebody may say in the network's name that nobody is there.
    .refused_ports = true,
});

pub fn init(scenario: *const StreamScenario) Reachability {
    return .{
        .is_strict = scenario.edge_count > 1 and scenario.faults.intersectWith(other_reasons).count() == 0,
        .is_loyal = scenario.edge_count > 1 and scenario.faults.intersectWith(reasons_to_leave).count() == 0,
    };
}

/// After anything that may have opened or closed a way.
pub fn update(reachability: *Reachability, site: *const StreamSite) void {
    const network = site.network;
    for (reachability.since_us[0..network.link_count], network.links[0..network.link_count]) |*ways, *own| {
        for (ways[0..site.edge_count], site.edges[0..site.edge_count], 0..) |*since_us, *edge, index| {
            const is_open = edge.running() != null and !network.edge_is_cut[index] and !own.is_cut_from[index] and
                !own.is_cut[0] and !own.is_cut[1] and own.payload_max[0] >= link.packet_size_ethernet and
                own.payload_max[1] >= link.packet_size_ethernet;
            if (!is_open) {
                since_us.* = null;
            } else if (since_us.* == null) since_us.* = network.now_us;
        }
    }
}

/// What this device's way was like says nothing of what it is from now on.
pub fn restart(reachability: *Reachability, site: *const StreamSite, device: u8) void {
    reachability.since_us[device] = @splat(null);
    reachability.update(site);
}

const Others = struct { there: u64 = 0, gone: u64 = 0 };

/// Edges beside this one: those that could be reached all the time since then, and those that could not.
fn othersSince(reachability: *const Reachability, device: *const StreamDevice, except: u8, at_us: u64) Others {
    var others: Others = .{};
    for (reachability.since_us[device.index][0..device.site.edge_count], 0..) |since_us, index| {
        if (index == except) continue;
        if ((since_us orelse std.math.maxInt(u64)) <= at_us) others.there += 1 else others.gone += 1;
    }
    return others;
}

/// Before what has just come is counted, and whenever a device is looked at.
pub fn checkSilence(reachability: *const Reachability, device: *StreamDevice) void {
    if (!reachability.is_strict or device.boot.class != .device_ram) return;
    const now_us = device.network.now_us;
    const asked_us = device.oldestReadUs() orelse return;
    const heard = device.side.heard(now_us) orelse return;
    const silent_from_us = @max(asked_us, heard.at_us);
    const others = reachability.othersSince(device, device.heard_from, silent_from_us);
    const passed_us = others.gone * passed_us_max;
    if (others.there > 0 and now_us - silent_from_us > silence_us_max + passed_us)
        device.invariants.violate(.fails_over_in_time, "device {d} has had no answer for {d} us, and another edge is there ({d} more are gone)", .{
            device.index, now_us - silent_from_us, others.gone,
        });
    checkTurns(device, silent_from_us, &others);
    const told = device.told orelse return;
    const untold = reachability.othersSince(device, told.edge, silent_from_us);
    if (told.at_us < silent_from_us or now_us - told.at_us <= told_us_max + untold.gone * passed_us_max) return;
    if (untold.there > 0) device.invariants.violate(.fails_over_in_time, "device {d} was told {d} us ago that nobody listens there, and another edge is there", .{
        device.index, now_us - told.at_us,
    });
}

/// Whoever is not there keeps it from the one that is for no longer than a quarter of a second.
fn checkTurns(device: *StreamDevice, silent_from_us: u64, others: *const Others) void {
    const elsewhere = device.elsewhere orelse return;
    if (others.there == 0 or elsewhere.since_us < silent_from_us) return;
    const now_us = device.network.now_us;
    if (now_us - elsewhere.asked_us > silent_turn_us_max) device.invariants.violate(.fails_over_in_time, "device {d} has asked edge {d} for {d} us, which says nothing, and another edge is there", .{
        device.index, elsewhere.edge, now_us - elsewhere.asked_us,
    });
    if (now_us - elsewhere.since_us > told_us_max + others.gone * passed_us_max) device.invariants.violate(.fails_over_in_time, "device {d} left its edge {d} us ago, and another one is there ({d} more are gone)", .{
        device.index, now_us - elsewhere.since_us, others.gone,
    });
}

/// A device has gone on at another edge.
pub fn checkReason(reachability: *const Reachability, site: *const StreamSite, device: u8, went: struct { left: u8, at: u8 }) void {
    // One that shows its ticket to the edge that made it has left nobody.
    if (!reachability.is_loyal or went.left == went.at) return;
    const since_us = reachability.since_us[device][went.left] orelse return;
    if (site.network.now_us -| since_us < reasonUsMax(site)) return;
    site.invariants.violate(.leaves_for_a_reason, "device {d} goes from edge {d} to edge {d}, and the first one was there", .{ device, went.left, went.at });
}
