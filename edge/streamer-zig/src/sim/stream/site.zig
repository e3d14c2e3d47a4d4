//! The site of the stream's proof: its edges, and what is true of its devices' boots, whichever edge they are at.

const std = @import("std");
const base = @import("base");
const Checks = @import("checks.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const StreamNetwork = @import("network.zig");
const StreamNonces = @import("nonces.zig");
const StreamVigil = @import("vigil.zig");

pub const StreamSite = @This();

pub const edges_max = StreamNetwork.edges_max;
pub const boots_max = StreamNetwork.links_max;

network: *StreamNetwork,
checks: *Checks,
/// The newest boot of each device.
boots: [boots_max]StreamBoot = @splat(.{}),
edges: [edges_max]StreamEdge = undefined,
edge_count: u8,
/// Of the tickets that its edges make and take.
ticket_key: [32]u8,
ticket_lifetime_s: u32,
nonces: StreamNonces = .{},
vigil: StreamVigil,

pub fn edgesOf(site: *StreamSite) []StreamEdge {
    return site.edges[0..site.edge_count];
}

/// Another boot of this device: no edge knows anything of the one before any more, and one knows this one.
pub fn begin(site: *StreamSite, device: u8, boot: StreamBoot) *StreamBoot {
    for (site.edgesOf()) |*edge| edge.forget(device);
    site.boots[device] = boot;
    site.edges[boot.home].know(device);
    return &site.boots[device];
}

pub fn bootOf(site: *StreamSite, id: base.Uuid) ?*StreamBoot {
    for (&site.boots) |*boot| if (boot.number != 0 and boot.id.eql(id)) return boot;
    return null;
}

pub fn indexOf(site: *const StreamSite, boot: *const StreamBoot) u8 {
    return @intCast(boot - &site.boots);
}

/// Of the wall clock that all of them have.
pub fn unixMs(site: *const StreamSite) u64 {
    return 1_795_000_000_000 + site.network.now_us / std.time.us_per_ms;
}
