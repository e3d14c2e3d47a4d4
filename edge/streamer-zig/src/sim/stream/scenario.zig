//! Draws a run of the stream's simulation from its seed: the devices and their habits, the faults
//! of network and disks, and the faults that occur meanwhile.

const std = @import("std");
const base = @import("base");
const Faults = @import("../kit/faults.zig").Faults;
const link = @import("link.zig");
const StreamBoot = @import("boot.zig");
const StreamDevice = @import("device.zig");
const StreamEdge = @import("edge.zig");
const network_module = @import("network.zig");

pub const StreamScenario = @This();

device_count: u8,
edge_count: u8,
faults: FaultSet,
/// Longest time between two faults.
calm_us: u64,
edge: StreamEdge.Settings,
disk: StreamEdge.Disk,
ticket_lifetime_s: u32,
devices: [network_module.links_max]Drawn,
/// Versions of the stream that edges speak until they restart.
edge_versions: [network_module.edges_max]link.Version,
/// Answers that edges pack, of those that they may: others are not in their memory, or not any
/// more. 0: they have no codec.
packed_percent: [network_module.edges_max]u8,

const Drawn = struct {
    habits: StreamDevice.Habits,
    link: Faults,
    slow_us: u64,
    packet_size_max: u16,
    /// Of the stream: some devices are of the release before.
    version_max: link.Version,
    has_codec: bool,
    /// UDP payload that passes in both directions.
    path_max: u16,
};

pub const FaultSet = std.EnumSet(Fault);

pub const Fault = enum {
    /// Packets are lost, duplicated, delayed and corrupted.
    bad_links,
    /// A link is cut for a while.
    cuts,
    /// A link is cut in one direction.
    one_way_cuts,
    /// Packets above a size vanish for a while.
    black_holes,
    /// The path of a device forwards smaller packets than both ends take, and reports nothing.
    narrow_paths,
    /// The size that a path forwards changes.
    path_changes,
    /// A device gets another address, sometimes that of another device.
    addresses,
    /// Attackers replay packets.
    replays,
    /// Attackers send invented packets.
    garbage,
    /// An attacker knows the token of a boot.
    thieves,
    /// The site has two to four edges.
    several_edges,
    /// An edge hangs for a while, and then handles everything that arrived.
    stops,
    /// An edge is cut off from one device or from all.
    edge_cuts,
    /// The machine of a dead edge reports the closed port; sometimes an attacker reports it.
    refused_ports,
    /// An edge dies and restarts.
    crashes,
    /// An edge restarts with another resumption key.
    lost_keys,
    slow_disk,
    store_errors,
    missing_versions,
    /// Devices process their packets only every so often.
    slow_devices,
    /// A device restarts.
    reboots,
    /// Another process of a device takes over.
    processes,
    orders,
    /// Fewer sessions than devices.
    few_sessions,
    /// Write caches become full.
    full_caches,

    /// Parses a name of the command line, with dashes for underscores.
    pub fn parse(text: []const u8) ?Fault {
        var buffer: [32]u8 = undefined;
        if (text.len > buffer.len) return null;
        const name = buffer[0..text.len];
        @memcpy(name, text);
        std.mem.replaceScalar(u8, name, '-', '_');
        return std.meta.stringToEnum(Fault, name);
    }

    pub fn format(fault: Fault, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        for (@tagName(fault)) |byte| try writer.writeByte(if (byte == '_') '-' else byte);
    }
};

/// Faults that occur now and then; the others last for the whole run.
pub const occurring: FaultSet = .init(.{
    .cuts = true,
    .one_way_cuts = true,
    .black_holes = true,
    .addresses = true,
    .replays = true,
    .garbage = true,
    .thieves = true,
    .path_changes = true,
    .stops = true,
    .edge_cuts = true,
    .refused_ports = true,
    .crashes = true,
    .reboots = true,
    .processes = true,
    .orders = true,
});

/// The only faults of some runs.
const of_edges: FaultSet = .init(.{
    .stops = true,
    .edge_cuts = true,
    .refused_ports = true,
    .crashes = true,
    .narrow_paths = true,
    .slow_disk = true,
});

pub const Limits = struct {
    /// Null: the seed decides.
    devices: ?u8 = null,
    with: FaultSet = .empty,
    without: FaultSet = .empty,
    /// Only the edges have faults.
    is_of_edges: bool = false,
    /// Devices make one request at a time.
    is_serial: bool = false,
};

pub fn draw(prng: *base.Prng, limits: Limits) StreamScenario {
    var faults: FaultSet = .empty;
    // One run in eight has no faults, and in one only the edges of a site have faults.
    const drawn_kind = prng.below(8);
    const kind = if (limits.is_of_edges) 1 else drawn_kind;
    const of_eight = if (kind == 0) 0 else if (kind == 1) 4 else prng.between(1, 6);
    for (std.enums.values(Fault)) |fault| if (prng.chance(of_eight, 8)) faults.insert(fault);
    if (kind == 1) {
        faults = faults.intersectWith(of_edges);
        faults.insert(.several_edges);
    }
    faults = faults.unionWith(limits.with).differenceWith(limits.without);
    const drawn_count: u8 = @intCast(prng.between(1, network_module.links_max));
    const device_count = limits.devices orelse drawn_count;
    var scenario: StreamScenario = .{
        .device_count = device_count,
        .edge_count = if (faults.contains(.several_edges))
            @intCast(prng.between(2, network_module.edges_max))
        else
            1,
        .faults = faults,
        .calm_us = prng.between(20, 1000) * std.time.us_per_ms,
        .edge = .{
            .sessions_max = @intCast(if (faults.contains(.few_sessions))
                @max(1, device_count - device_count / 3)
            else
                device_count + prng.below(8)),
            .packet_size_max = if (prng.chance(1, 2))
                link.packet_size_max
            else
                @max(link.packet_size_ethernet, packetSize(prng)),
            .outstanding_bytes_max = @intCast(prng.between(128, 1024) << 10),
            .session_idle_us = prng.between(30, 300) * std.time.us_per_s,
            .write_slots = @intCast(prng.between(2, 16)),
        },
        .disk = .{ .latency_us = prng.below(500) },
        .ticket_lifetime_s = @intCast(if (prng.chance(1, 4))
            prng.between(4, 60)
        else
            prng.between(400, 4000)),
        .devices = undefined,
        .edge_versions = @splat(.newest),
        .packed_percent = drawPacked(prng),
    };
    // In one run of three the site is being updated.
    if (prng.chance(1, 3)) for (&scenario.edge_versions) |*version| {
        if (prng.chance(1, 2)) version.* = .v2;
    };
    drawDisk(prng, &faults, &scenario.disk);
    for (&scenario.devices) |*device| {
        device.* = drawDevice(prng, &faults);
        if (limits.is_serial) device.habits.depth = 1;
    }
    // Where edges come and go, a run must last for some time, and not all edges may be gone for
    // most of it.
    if (kind == 1) {
        scenario.calm_us *= 4;
        for (&scenario.devices) |*device| device.habits.think_us = 2 * std.time.us_per_s;
    }
    return scenario;
}

fn drawDisk(prng: *base.Prng, faults: *const FaultSet, disk: *StreamEdge.Disk) void {
    if (faults.contains(.slow_disk)) {
        disk.latency_us = prng.below(20_000);
        disk.stalls_per_mille = @intCast(prng.below(50));
        disk.stall_us = prng.below(5 * std.time.us_per_s);
    }
    if (faults.contains(.store_errors)) {
        disk.read_errors_per_mille = @intCast(prng.below(100));
        disk.write_errors_per_mille = @intCast(prng.below(100));
    }
    if (faults.contains(.missing_versions))
        disk.missing_per_mille = @intCast(prng.below(200));
}

fn drawPacked(prng: *base.Prng) [network_module.edges_max]u8 {
    var percents: [network_module.edges_max]u8 = undefined;
    for (&percents) |*percent| percent.* = prng.pick(u8, &.{ 0, 50, 90, 100 });
    return percents;
}

fn packetSize(prng: *base.Prng) u16 {
    return switch (prng.below(4)) {
        0 => @intCast(prng.between(link.packet_size_min, link.packet_size_ethernet)),
        1 => @intCast(prng.between(link.packet_size_ethernet, link.packet_size_max)),
        2 => link.packet_size_max,
        else => link.packet_size_ethernet,
    };
}

/// Draws a size between those of tunnels and jumbo frames, also sizes that no network has.
pub fn pathSize(prng: *base.Prng) u16 {
    return if (prng.chance(1, 2))
        prng.pick(
            u16,
            &.{ link.packet_size_max, 4052, link.packet_size_ethernet, 1372, 1228 },
        )
    else
        @intCast(prng.between(path_size_min, link.packet_size_max));
}

/// A REPORT without steps is the largest packet that a device cannot make smaller.
const path_size_min = 560;

/// Persistent write caches are drawn twice as often.
const classes = [_]link.Class{
    .device_ram,
    .edge,
    .edge_persistent,
    .edge_persistent,
    .device_ram_overflow,
};

fn drawDevice(prng: *base.Prng, faults: *const FaultSet) Drawn {
    var treatment: Faults = .draw(prng);
    if (!faults.contains(.bad_links)) treatment = treatment.healed();
    // Devices accept only packets for their address.
    treatment.stray_per_mille = 0;
    const sectors: u32 = @intCast(prng.between(64, StreamBoot.sectors_max));
    const is_small = faults.contains(.full_caches) and prng.chance(1, 2);
    return .{
        .link = treatment,
        .slow_us = if (faults.contains(.slow_devices) and prng.chance(1, 2))
            prng.between(1, 60) * std.time.us_per_ms
        else
            0,
        .packet_size_max = packetSize(prng),
        .version_max = if (prng.chance(1, 3)) .v2 else .newest,
        .has_codec = prng.chance(2, 3),
        .path_max = if (faults.contains(.narrow_paths)) pathSize(prng) else link.packet_size_max,
        .habits = .{
            .class = if (faults.contains(.several_edges) and prng.chance(1, 2))
                .device_ram
            else
                prng.pick(link.Class, &classes),
            .sectors = sectors,
            // A device with one request at a time learns from nothing else.
            .depth = if (prng.chance(1, 8))
                1
            else
                @intCast(prng.between(1, StreamDevice.reads_max + StreamDevice.writes_max)),
            .think_us = prng.pick(u64, &.{ 100, 1_000, 5_000, 50_000 }),
            .usual_sectors = prng.pick(u32, &.{ 1, 8, 16, 64 }),
            .writes_percent = @intCast(prng.below(50)),
            .discards_percent = @intCast(prng.below(10)),
            .flushes_percent = @intCast(prng.below(6)),
            .ahead_percent = @intCast(prng.below(20)),
            .ready_after = prng.below(200),
            .limit_bytes = if (is_small)
                @max(1, prng.between(sectors / 2, sectors) / 8) * 4096
            else
                null,
            .is_stopped_when_full = prng.chance(1, 2),
            .outstanding_bytes_max = @intCast(prng.between(128, 1024) << 10),
        },
    };
}
