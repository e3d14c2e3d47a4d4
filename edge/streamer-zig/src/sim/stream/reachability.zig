//! Since when each device has had a path to each edge that serves it: checks that a device fails
//! over in time when its edge is gone, and never leaves one that is reachable.

const std = @import("std");
const StreamDevice = @import("device.zig");
const StreamScenario = @import("scenario.zig");
const StreamSite = @import("site.zig");
const link = @import("link.zig");
const network_module = @import("network.zig");

pub const Reachability = @This();

/// STREAM.md, "Fail-over": the first byte of the other edge arrives within two seconds of the last
/// one of the old; and the time that HELLO and a read take on the slowest link.
const silence_us_max = 2 * std.time.us_per_s + 100 * std.time.us_per_ms;
/// After the network has reported that nobody listens there: a HELLO of which a switch drops one
/// packet, and a read.
const refused_us_max = 500 * std.time.us_per_ms;
/// For each other edge that is gone too, and may have been contacted before.
const passed_us_max = 250 * std.time.us_per_ms;
/// And the device's delay.
const silent_turn_us_max = passed_us_max + 20 * std.time.us_per_ms;

/// An edge that could be heard for so long was not gone: when it came back, each of the others may
/// have been in its longest turn.
fn reasonUsMax(site: *const StreamSite) u64 {
    return std.time.us_per_s + 2 * std.time.us_per_s * @as(u64, site.edge_count - 1);
}

/// Null: there is no path.
since_us: [network_module.links_max][StreamSite.edges_max]?u64 = @splat(@splat(null)),
/// Only edges that are gone delay the reads of this run's devices.
is_strict: bool = false,
/// Devices of this run leave only edges that are gone.
is_loyal: bool = false,

/// Faults that may delay bytes for longer, each for its own reason.
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
    // An attacker may report that nobody listens there.
    .refused_ports = true,
});

pub fn init(scenario: *const StreamScenario) Reachability {
    const has_others = scenario.edge_count > 1;
    const faults = scenario.faults;
    return .{
        .is_strict = has_others and faults.intersectWith(other_reasons).count() == 0,
        .is_loyal = has_others and faults.intersectWith(reasons_to_leave).count() == 0,
    };
}

/// Runs after every event that may have opened or closed a path.
pub fn update(reachability: *Reachability, site: *const StreamSite) void {
    const network = site.network;
    const links = network.links[0..network.link_count];
    for (reachability.since_us[0..links.len], links) |*paths, *own| {
        const is_wide = own.payload_max[0] >= link.packet_size_ethernet and
            own.payload_max[1] >= link.packet_size_ethernet;
        const is_connected = is_wide and !own.is_cut[0] and !own.is_cut[1];
        const edges = site.edges[0..site.edge_count];
        for (paths[0..edges.len], edges, 0..) |*since_us, *edge, index| {
            const is_cut = network.edge_is_cut[index] or own.is_cut_from[index];
            if (!is_connected or is_cut or edge.running() == null) {
                since_us.* = null;
            } else if (since_us.* == null) since_us.* = network.now_us;
        }
    }
}

/// The device has another path from now on.
pub fn restart(reachability: *Reachability, site: *const StreamSite, device: u8) void {
    reachability.since_us[device] = @splat(null);
    reachability.update(site);
}

const Others = struct { there: u64 = 0, gone: u64 = 0 };

/// Counts edges beside this one: reachable all the time since then, or not.
fn othersSince(
    reachability: *const Reachability,
    device: *const StreamDevice,
    except: u8,
    at_us: u64,
) Others {
    var others: Others = .{};
    const paths = reachability.since_us[device.index][0..device.site.edge_count];
    for (paths, 0..) |since_us, index| {
        if (index == except) continue;
        if ((since_us orelse std.math.maxInt(u64)) <= at_us)
            others.there += 1
        else
            others.gone += 1;
    }
    return others;
}

/// Runs before an arriving packet counts, and whenever a device runs.
pub fn checkSilence(reachability: *const Reachability, device: *StreamDevice) void {
    if (!reachability.is_strict or device.boot.class != .device_ram) return;
    const now_us = device.network.now_us;
    const asked_us = device.oldestReadUs() orelse return;
    const heard_us = device.side.heardUs(now_us) orelse return;
    const silent_from_us = @max(asked_us, heard_us);
    const others = reachability.othersSince(device, device.heard_from, silent_from_us);
    const passed_us = others.gone * passed_us_max;
    const silent_us = now_us - silent_from_us;
    if (others.there > 0 and silent_us > silence_us_max + passed_us) device.invariants.violate(
        .fails_over_in_time,
        "device {d} has had no answer for {d} us, and another edge is there ({d} more are gone)",
        .{ device.index, silent_us, others.gone },
    );
    checkTurns(device, silent_from_us, &others);
    const refusal = device.refusal orelse return;
    const rest = reachability.othersSince(device, refusal.edge, silent_from_us);
    const refused_us = now_us - refusal.at_us;
    if (refusal.at_us < silent_from_us or rest.there == 0) return;
    if (refused_us > refused_us_max + rest.gone * passed_us_max) device.invariants.violate(
        .fails_over_in_time,
        "device {d} learned {d} us ago that nobody listens there, and another edge is there",
        .{ device.index, refused_us },
    );
}

/// An edge that is gone delays the contact to one that is there by at most a quarter of a second.
fn checkTurns(device: *StreamDevice, silent_from_us: u64, others: *const Others) void {
    const elsewhere = device.elsewhere orelse return;
    if (others.there == 0 or elsewhere.since_us < silent_from_us) return;
    const turn_us = device.network.now_us - elsewhere.asked_us;
    if (turn_us > silent_turn_us_max) device.invariants.violate(
        .fails_over_in_time,
        "device {d} has contacted edge {d}, which is silent, for {d} us, and another one is there",
        .{ device.index, elsewhere.edge, turn_us },
    );
    const left_us = device.network.now_us - elsewhere.since_us;
    const passed_us = others.gone * passed_us_max;
    if (left_us > refused_us_max + passed_us) device.invariants.violate(
        .fails_over_in_time,
        "device {d} left its edge {d} us ago, and another one is there ({d} more are gone)",
        .{ device.index, left_us, others.gone },
    );
}

/// A device has failed over.
pub fn checkReason(
    reachability: *const Reachability,
    site: *const StreamSite,
    device: u8,
    move: struct { left: u8, at: u8 },
) void {
    // A device that shows its ticket to the edge that made it has left none.
    if (!reachability.is_loyal or move.left == move.at) return;
    const since_us = reachability.since_us[device][move.left] orelse return;
    if (site.network.now_us -| since_us < reasonUsMax(site)) return;
    site.invariants.violate(
        .leaves_for_a_reason,
        "device {d} fails over from edge {d} to edge {d}, and the first one was there",
        .{ device, move.left, move.at },
    );
}
