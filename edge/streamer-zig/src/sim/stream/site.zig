//! The site of the stream's simulation: its edges and their desired state, and what is true of the
//! boots of its devices, whichever edge they are at.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Invariants = @import("invariants.zig");
const Nonces = @import("nonces.zig");
const Reachability = @import("reachability.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const link = @import("link.zig");
const network_module = @import("network.zig");
const desired_state = core.uplink.desired_state;
const Network = network_module.Network;

pub const StreamSite = @This();

pub const edges_max = network_module.edges_max;
pub const boots_max = network_module.links_max;
const unix_ms_at_0 = 1_795_000_000_000;

network: *Network,
invariants: *Invariants,
/// The newest boot of each device.
boots: [boots_max]StreamBoot = @splat(.{}),
edges: [edges_max]StreamEdge = undefined,
edge_count: u8,
/// Seals and opens the tickets of this site.
ticket_key: [32]u8,
ticket_lifetime_s: u32,
nonces: Nonces = .{},
reachability: Reachability,
/// Power orders that no device has confirmed yet.
orders: base.BoundedArray(desired_state.PowerOrder, boots_max) = .empty,
/// The desired state, which the agents' policies refer to.
vdisks: [boots_max]desired_state.Vdisk = undefined,
versions: [boots_max]desired_state.Version = undefined,
devices: [boots_max]desired_state.Device = undefined,
owners: [edges_max]desired_state.WriteOwnerEdge = undefined,
states: [edges_max]desired_state.DesiredState = undefined,
sectors: [boots_max]u32,

pub fn edgesOf(site: *StreamSite) []StreamEdge {
    return site.edges[0..site.edge_count];
}

pub fn macOf(device: u8) base.Mac {
    return .{ .bytes = .{ 2, 0xbf, 0, 0, 0, device } };
}

fn edgeId(index: usize) base.Uuid {
    return .fromBytes(@splat(@intCast(1 + index)));
}

/// Returns the edge with this id, which must be one.
pub fn edgeWith(id: base.Uuid) u8 {
    return id.bytes[0] - 1;
}

pub fn versionOf(site: *const StreamSite, device: u8) StreamBoot.Version {
    return .{ .number = device, .sectors = site.sectors[device] };
}

/// Returns the edge that owns the durable writes of a device.
pub fn ownerOf(site: *const StreamSite, device: u8) u8 {
    return device % site.edge_count;
}

/// Writes the desired state: each device boots a vDisk of its own.
pub fn describe(site: *StreamSite, classes: []const link.Class) void {
    for (&site.owners, 0..) |*owner, index| owner.* = .{ .id = edgeId(index), .name = "edge" };
    for (classes, 0..) |class, index| {
        const device: u8 = @intCast(index);
        const of = site.versionOf(device);
        site.versions[index] = .{
            .id = of.id(),
            .number = 1,
            .sizeBytes = @as(u64, of.sectors) * link.sector_size,
            .diskPath = "",
            .commandLine = "",
        };
        site.vdisks[index] = .{
            .id = idOf(0xd1, device),
            .name = "",
            .versions = site.versions[index..][0..1],
        };
        site.devices[index] = .{
            .id = idOf(0xde, device),
            .name = "",
            .mac = macOf(device),
            .versionId = of.id(),
            .enabled = true,
            .home = if (class == .edge_persistent) site.ownerOf(device) else null,
        };
    }
    for (&site.states, 0..) |*state, index| state.* = .{
        .edgeId = edgeId(index),
        .organizationId = .zero,
        .siteId = .zero,
        .siteName = "",
        .incarnation = 1,
        .counter = 1,
        .unknownDevices = .ignore,
        .vdisks = site.vdisks[0..classes.len],
        .devices = site.devices[0..classes.len],
        .powerOns = &.{},
        .homeEdges = site.owners[0..site.edge_count],
    };
}

fn idOf(kind: u8, device: u8) base.Uuid {
    var bytes: [16]u8 = @splat(kind);
    bytes[15] = device;
    return .fromRandom(bytes);
}

pub fn policyOf(
    site: *const StreamSite,
    gpa: std.mem.Allocator,
    edge: u8,
) error{OutOfMemory}!core.boot.Policy {
    return .init(gpa, &site.states[edge]);
}

/// Makes the edges of the site known to one of them; all always count as alive.
pub fn introduce(site: *const StreamSite, own: u8, peers: *core.site.PeerTable) void {
    if (site.edge_count == 1) return;
    var edges: core.site.Edges = .{
        .key = @splat(7),
        .transfer_key = @splat(7),
        .own_id = edgeId(own),
        .own_index = own,
    };
    edges.ticket_keys.appendAssumeCapacity(site.ticket_key);
    for (0..site.edge_count) |index| edges.edges.appendAssumeCapacity(.{
        .id = edgeId(index),
        .weight = 10,
        .draining = false,
        .stream = network_module.edgeAddress(@intCast(index)),
    });
    peers.setSite(site.network.now_us, edges);
    for (peers.peers[0..site.edge_count]) |*peer|
        peer.* = .{ .is_known = true, .heard_us = std.math.maxInt(u64) };
}

/// Begins another boot of a device at the edge `boot.home`; every edge ends the one before. Null:
/// that edge does not answer now.
pub fn begin(site: *StreamSite, device: u8, boot: *const StreamBoot) ?*StreamBoot {
    const mac = macOf(device);
    site.vdisks[device].writeCache = if (boot.class == .device_ram) null else .{
        .class = @tagName(boot.class),
        .limitBytes = boot.limit_bytes,
        .full = if (boot.is_stopped_when_full) .stop else .read_only,
    };
    const identity = site.edges[boot.home].begin(mac) orelse return null;
    site.dropOrders(mac);
    const begun = &site.boots[device];
    begun.* = boot.*;
    begun.id = identity.id;
    begun.token = identity.token;
    for (site.edgesOf()) |*edge| edge.endEarlier(mac, identity.id);
    return begun;
}

pub fn bootOf(site: *StreamSite, id: base.Uuid) ?*StreamBoot {
    for (&site.boots) |*boot| if (boot.number != 0 and boot.id.eql(id)) return boot;
    return null;
}

pub fn indexOf(site: *const StreamSite, boot: *const StreamBoot) u8 {
    return @intCast(boot - &site.boots);
}

/// Orders a device to restart, unless an earlier order waits for it.
pub fn order(site: *StreamSite, device: u8, id: [16]u8) bool {
    const mac = macOf(device);
    for (site.orders.constSlice()) |*known| if (known.mac.eql(mac)) return false;
    site.orders.appendAssumeCapacity(.{
        .id = .fromBytes(id),
        .deviceId = site.devices[device].id,
        .mac = mac,
        .order = .restart,
    });
    site.tellOrders();
    return true;
}

/// The control plane learns that a device has taken an order.
pub fn confirmOrder(site: *StreamSite, id: base.Uuid) void {
    for (site.orders.constSlice(), 0..) |*known, index| if (known.id.eql(id)) {
        _ = site.orders.swapRemove(@intCast(index));
        return site.tellOrders();
    };
}

fn dropOrders(site: *StreamSite, mac: base.Mac) void {
    for (site.orders.constSlice(), 0..) |*known, index| if (known.mac.eql(mac)) {
        _ = site.orders.swapRemove(@intCast(index));
        return site.tellOrders();
    };
}

fn tellOrders(site: *StreamSite) void {
    for (site.edgesOf()) |*edge| edge.takeOrders();
}

/// The wall clock of all edges.
pub fn unixMs(site: *const StreamSite) u64 {
    return unix_ms_at_0 + site.network.now_us / std.time.us_per_ms;
}
