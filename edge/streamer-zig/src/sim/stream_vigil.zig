//! Since when each device of the stream's proof has had a way to each edge that served it, to see that it goes on in time at another one
//! where its own is gone, and never leaves one that is there.

const std = @import("std");
const base = @import("base");
const link = @import("stream_link.zig");
const StreamDevice = @import("stream_device.zig");
const StreamNetwork = @import("stream_network.zig");
const StreamScenario = @import("stream_scenario.zig");
const StreamSite = @import("stream_site.zig");

pub const StreamVigil = @This();

/// STREAM.md, "Fail-over": the first byte of the other edge comes within two seconds of the last one of the old; with the time that hello
/// and a read take on the slowest link.
const silence_us_max = 2 * std.time.us_per_s + 100 * std.time.us_per_ms;
/// Where the network says that nobody listens there: a hello of which one packet finds no room in a switch, and a read.
const told_us_max = 500 * std.time.us_per_ms;
/// Whoever could be heard for so long was not gone.
const reason_us_max = 3 * std.time.us_per_s;

/// Null: there is none.
since_us: [StreamNetwork.links_max][StreamSite.edges_max]?u64 = @splat(@splat(null)),
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

pub fn init(scenario: *const StreamScenario) StreamVigil {
    return .{
        .is_strict = scenario.edge_count > 1 and scenario.faults.intersectWith(other_reasons).count() == 0,
        .is_loyal = scenario.edge_count > 1 and scenario.faults.intersectWith(reasons_to_leave).count() == 0,
    };
}

/// After anything that may have opened or closed a way.
pub fn look(vigil: *StreamVigil, site: *const StreamSite) void {
    const network = site.network;
    for (vigil.since_us[0..network.link_count], network.links[0..network.link_count]) |*ways, *own| {
        for (ways[0..site.edge_count], site.edges[0..site.edge_count], 0..) |*since_us, *edge, index| {
            const is_open = edge.is_up and !edge.is_stopped and !network.edge_is_cut[index] and !own.is_cut_from[index] and
                !own.is_cut[0] and !own.is_cut[1] and own.payload_max[0] >= link.packet_size_ethernet and
                own.payload_max[1] >= link.packet_size_ethernet;
            if (!is_open) {
                since_us.* = null;
            } else if (since_us.* == null) since_us.* = network.now_us;
        }
    }
}

/// What this device's way was like says nothing of what it is from now on.
pub fn beginAnew(vigil: *StreamVigil, site: *const StreamSite, device: u8) void {
    vigil.since_us[device] = @splat(null);
    vigil.look(site);
}

/// An edge that could be reached all the time since then.
fn reachableSince(vigil: *const StreamVigil, device: u8, at_us: u64) ?usize {
    for (vigil.since_us[device], 0..) |since_us, index| if ((since_us orelse continue) <= at_us) return index;
    return null;
}

/// Before what has just come is counted, and whenever a device is looked at.
pub fn checkSilence(vigil: *const StreamVigil, device: *StreamDevice) void {
    if (!vigil.is_strict or device.boot.class != .device_ram) return;
    const now_us = device.network.now_us;
    const asked_us = device.oldestReadUs() orelse return;
    const heard = device.side.heard(now_us) orelse return;
    const silent_from_us = @max(asked_us, heard.at_us);
    if (vigil.reachableSince(device.index, silent_from_us) != null and now_us - silent_from_us > silence_us_max)
        device.checks.violate(.goes_on_in_time, "device {d} has had no answer for {d} us, and another edge is there", .{
            device.index, now_us - silent_from_us,
        });
    const told = device.told orelse return;
    if (told.at_us < silent_from_us or now_us - told.at_us <= told_us_max) return;
    const there = vigil.reachableSince(device.index, silent_from_us) orelse return;
    if (there != told.edge) device.checks.violate(.goes_on_in_time, "device {d} was told {d} us ago that nobody listens there, and another edge is there", .{
        device.index, now_us - told.at_us,
    });
}

/// A device has gone on at this edge.
pub fn checkReason(vigil: *const StreamVigil, site: *const StreamSite, device: u8, arrived_at: u8) void {
    if (!vigil.is_loyal) return;
    const now_us = site.network.now_us;
    for (vigil.since_us[device][0..site.edge_count], 0..) |since_us, index| {
        if (index == arrived_at) continue;
        if (now_us -| (since_us orelse return) < reason_us_max) return;
    }
    site.checks.violate(.leaves_for_a_reason, "device {d} goes to edge {d}, and all others were there", .{ device, arrived_at });
}
