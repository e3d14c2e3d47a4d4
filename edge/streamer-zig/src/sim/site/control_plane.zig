//! The control plane of a simulated site: its plan for each device, version and edge, and the
//! desired states that describe the plan, which changes during the faults. Consumers: the edges,
//! which act on a state, and the invariants, which compare what edges do with the plan behind it.
//! Invariant: every state could have passed `desired_state.accept`.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const addresses = @import("addresses.zig");
const Disk = @import("disk.zig");
const assert = std.debug.assert;
const desired_state = core.uplink.desired_state;

pub const ControlPlane = @This();

pub const versions_max = 4;
const vdisk_count = 2;
/// The first version of the second vDisk.
const writers_version = 2;
const versions_per_vdisk = versions_max / vdisk_count;
const devices_max = 60;
const ticket_key = "ISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A=";
const site_key = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

gpa: std.mem.Allocator,
prng: base.Prng,
device_count: u8,
edge_count: u8,
versions: *const [versions_max]Disk.Version,
/// The seed draws them, since they decide which edge answers which device.
edge_ids: [addresses.edges_max]base.Uuid = undefined,
plan: Plan,
/// The keys in the devices' TPMs, which a person compares before he decides; null: it has none.
keys: [devices_max]?core.site.DeviceIdentity.Fingerprint = @splat(null),
/// Grows with each change.
counter: u64 = 1,

/// What the control plane wants.
pub const Plan = struct {
    edge_count: u8,
    devices: [devices_max]DevicePlan = @splat(.{}),
    /// Versions that the states do not describe.
    is_withdrawn: [versions_max]bool = @splat(false),
    /// The version of the menu's default entry.
    menu_default: u8 = 0,
    /// Where the devices of the second vDisk write; null: into their own memory.
    write_class: ?core.boot.Guest.CacheClass = null,
    /// The edge that keeps what each device of the second vDisk writes.
    write_owner: [devices_max]u8 = @splat(0),
    /// Edges that take no new devices while another one is there.
    is_draining: [addresses.edges_max]bool = @splat(false),

    /// Returns whether the control plane keeps this device at one version, since it writes there.
    fn isWriter(plan: *const Plan, device: u8) bool {
        return plan.write_class != null and plan.devices[device].version == writers_version;
    }

    /// Returns the only edge that may keep what this device writes; null: it writes nothing that
    /// outlives its boot.
    pub fn writeOwnerOf(plan: *const Plan, device: u8) ?u32 {
        const class = plan.write_class orelse return null;
        return if (class.isKept() and plan.isWriter(device)) plan.write_owner[device] else null;
    }

    /// Returns whether this edge begins no boot while the others are there.
    pub fn leavesToOthers(plan: *const Plan, edge: u8) bool {
        if (!plan.is_draining[edge]) return false;
        for (plan.is_draining[0..plan.edge_count]) |is_draining| if (!is_draining) return true;
        return false;
    }

    /// Returns the version that a device begins to boot; null: it may not boot.
    pub fn versionOf(plan: *const Plan, device: u8) ?u8 {
        const wanted = &plan.devices[device];
        if (wanted.registration != .enabled) return null;
        return if (wanted.has_menu) plan.menu_default else wanted.version;
    }
};

pub const DevicePlan = struct {
    registration: enum { enabled, disabled, absent } = .enabled,
    version: u8 = 0,
    has_menu: bool = false,
    key_policy: KeyPolicy = .lenient,
    /// What is decided about its key.
    key: core.site.DeviceIdentity.State = .unknown,
    key_revision: u64 = 0,
};

pub const KeyPolicy = enum {
    first,
    approval,
    lenient,

    /// Devices of which no key is known get everything.
    pub fn isLenient(policy: KeyPolicy) bool {
        return policy == .lenient;
    }

    pub fn needsApproval(policy: KeyPolicy) bool {
        return policy == .approval;
    }
};

/// By their order in `KeyPolicy`.
const key_policies = [_]desired_state.KeyPolicy{
    .{ .learn = "accept_first", .without = "shared" },
    .{ .learn = "approve", .without = "shared" },
    .{ .learn = "accept_first", .without = "everything" },
};

/// A desired state as one edge keeps it on its disk, with the plan that it was made from.
pub const StateBox = struct {
    arena: std.heap.ArenaAllocator,
    plan: Plan,
    state: desired_state.DesiredState,
    policy: core.boot.Policy,

    pub fn destroy(box: *StateBox, gpa: std.mem.Allocator) void {
        box.arena.deinit();
        gpa.destroy(box);
    }
};

pub fn init(gpa: std.mem.Allocator, prng: *base.Prng, options: struct {
    device_count: u8,
    edge_count: u8,
    versions: *const [versions_max]Disk.Version,
}) ControlPlane {
    assert(options.device_count <= devices_max);
    assert(options.edge_count > 0 and options.edge_count <= addresses.edges_max);
    var plane: ControlPlane = .{
        .gpa = gpa,
        .prng = .init(prng.nextU64()),
        .device_count = options.device_count,
        .edge_count = options.edge_count,
        .versions = options.versions,
        .plan = .{ .edge_count = options.edge_count },
    };
    for (&plane.edge_ids) |*id| {
        var random: [16]u8 = undefined;
        plane.prng.fill(&random);
        id.* = .fromRandom(random);
    }
    const plan = &plane.plan;
    plan.write_class = switch (plane.prng.below(3)) {
        0 => null,
        1 => .edge,
        else => .edge_persistent,
    };
    for (plan.devices[0..options.device_count], 0..) |*device, index| {
        const is_writer = plan.write_class != null and index % 3 == 0;
        device.* = .{
            .version = if (is_writer) writers_version else plane.anyVersion(),
            .has_menu = !is_writer and plane.prng.chance(1, 4),
        };
        plan.write_owner[index] = @intCast(plane.prng.below(options.edge_count));
    }
    return plane;
}

/// Only devices that write boot versions of the second vDisk.
fn anyVersion(plane: *ControlPlane) u8 {
    return @intCast(plane.prng.below(plane.movingVersions()));
}

/// Counts the versions, from the first, whose devices any edge may serve.
pub fn movingVersions(plane: *const ControlPlane) u8 {
    return if (plane.plan.write_class == null) versions_max else versions_per_vdisk;
}

/// Makes one random change of the plan.
pub fn change(plane: *ControlPlane) void {
    const prng = &plane.prng;
    const plan = &plane.plan;
    plane.counter += 1;
    const index: u8 = @intCast(prng.below(plane.device_count));
    const device = &plan.devices[index];
    const is_writer = plan.isWriter(index);
    const version = plane.anyVersion();
    switch (prng.below(8)) {
        0, 1 => device.registration = switch (prng.below(3)) {
            0 => .disabled,
            1 => .absent,
            else => .enabled,
        },
        2 => if (!is_writer) {
            device.version = version;
        },
        3 => if (!is_writer) {
            device.has_menu = !device.has_menu;
        },
        4 => plan.menu_default = version,
        5 => plan.is_withdrawn[version] = !plan.is_withdrawn[version],
        6 => if (prng.chance(2, 3)) plane.decideKey(index) else {
            device.key = .unknown;
            device.key_revision += 1;
        },
        else => {
            const edge: usize = @intCast(prng.below(plane.edge_count));
            plan.is_draining[edge] = !plan.is_draining[edge];
        },
    }
}

/// A person compares the key with that of the machine, and approves it.
fn decideKey(plane: *ControlPlane, device: u8) void {
    const planned = &plane.plan.devices[device];
    planned.key = if (plane.keys[device]) |key| .{ .known = key } else .keyless;
    planned.key_revision += 1;
}

/// Names the keys of the devices before the first state. Who has none needs a policy that allows
/// it; chance decides for the others.
pub fn setKeys(plane: *ControlPlane, prng: *base.Prng) void {
    const planned = plane.plan.devices[0..plane.device_count];
    for (planned, plane.keys[0..plane.device_count]) |*device, key|
        device.key_policy = if (key == null) .lenient else @fromBackingInt(
            @as(u2, @intCast(prng.below(key_policies.len))),
        );
}

/// Lets every device boot from now on, except some that stay out.
pub fn settle(plane: *ControlPlane) void {
    const plan = &plane.plan;
    plane.counter += 1;
    plan.is_withdrawn = @splat(false);
    for (plan.devices[0..plane.device_count], 0..) |*device, index| {
        device.registration = .enabled;
        plane.decideKey(@intCast(index));
        // Some of those without a key stay undecided: whoever comes with one would be the first.
        if (device.key == .keyless and index % 2 == 0) device.key = .unknown;
    }
    if (plane.device_count < 3) return;
    if (plane.prng.chance(1, 2)) plan.devices[0].registration = .disabled;
    if (plane.prng.chance(1, 2)) plan.devices[1].registration = .absent;
}

fn idOf(kind: u8, number: usize) base.Uuid {
    var bytes: [16]u8 = @splat(kind);
    std.mem.writeInt(u64, bytes[8..16], number, .big);
    return .fromRandom(bytes);
}

/// Makes the current state of an edge, which owns it.
pub fn stateFor(plane: *const ControlPlane, edge: u8) error{OutOfMemory}!*StateBox {
    const box = try plane.gpa.create(StateBox);
    errdefer plane.gpa.destroy(box);
    box.arena = .init(plane.gpa);
    errdefer box.arena.deinit();
    const arena = box.arena.allocator();
    box.plan = plane.plan;
    box.state = .{
        .edgeId = plane.edge_ids[edge],
        .organizationId = .zero,
        .siteId = .zero,
        .siteName = "",
        .incarnation = 1,
        .counter = plane.counter,
        .unknownDevices = .ignore,
        .vdisks = try plane.vdisks(arena),
        .devices = try plane.devices(arena),
        .menus = try plane.menus(arena),
        .powerOns = &.{},
        .homeEdges = try plane.writeOwners(arena),
        .keyPolicies = &key_policies,
        .siteEdges = if (plane.edge_count > 1) .{
            .key = site_key,
            .ticketKeys = &.{ticket_key},
            .edges = try plane.siteEdges(arena),
        } else null,
    };
    box.policy = try .init(arena, &box.state);
    return box;
}

fn vdisks(plane: *const ControlPlane, arena: std.mem.Allocator) ![]const desired_state.Vdisk {
    const list = try arena.alloc(desired_state.Vdisk, vdisk_count);
    for (list, 0..) |*vdisk, index| {
        var versions: std.ArrayList(desired_state.Version) = .empty;
        for (0..versions_per_vdisk) |number| {
            const version = index * versions_per_vdisk + number;
            if (!plane.plan.is_withdrawn[version]) try versions.append(arena, .{
                .id = plane.versions[version].id,
                .number = number + 1,
                .sizeBytes = plane.versions[version].size,
                .diskPath = "disk",
                .kernelPath = "kernel",
                .initrdPath = "initrd",
                .commandLine = "quiet",
            });
        }
        vdisk.* = .{ .id = idOf(0x30, index), .name = "vdisk", .versions = versions.items };
        if (index == 0) continue;
        const class = plane.plan.write_class orelse continue;
        vdisk.writeCache = .{ .class = @tagName(class), .full = .stop };
    }
    return list;
}

fn devices(plane: *const ControlPlane, arena: std.mem.Allocator) ![]const desired_state.Device {
    var list: std.ArrayList(desired_state.Device) = .empty;
    for (plane.plan.devices[0..plane.device_count], 0..) |*device, index| {
        if (device.registration == .absent) continue;
        try list.append(arena, .{
            .id = idOf(0x40, index),
            .name = "device",
            .mac = addresses.macOf(@intCast(index)),
            .versionId = plane.versions[device.version].id,
            .enabled = device.registration == .enabled,
            .home = plane.plan.writeOwnerOf(@intCast(index)),
            .menuId = if (device.has_menu) idOf(0x50, 0) else null,
            .keyPolicy = @backingInt(device.key_policy),
            .key = if (device.key == .known)
                try arena.dupe(u8, &core.uplink.key_text.write(device.key.known))
            else
                null,
            .keyless = device.key == .keyless,
            .keyRevision = device.key_revision,
        });
    }
    return list.items;
}

fn menus(plane: *const ControlPlane, arena: std.mem.Allocator) ![]const desired_state.Menu {
    const entries = try arena.alloc(desired_state.MenuEntry, versions_max + 1);
    for (entries[0..versions_max], plane.versions) |*entry, *version| entry.* = .{
        .kind = .version,
        .title = "version",
        .versionId = version.id,
    };
    entries[versions_max] = .{ .kind = .local_disk, .title = "local disk" };
    const list = try arena.alloc(desired_state.Menu, 1);
    list[0] = .{
        .id = idOf(0x50, 0),
        .timeoutMs = 1000,
        .defaultEntry = plane.plan.menu_default,
        .entries = entries,
    };
    return list;
}

fn writeOwners(
    plane: *const ControlPlane,
    arena: std.mem.Allocator,
) ![]const desired_state.WriteOwnerEdge {
    const list = try arena.alloc(desired_state.WriteOwnerEdge, plane.edge_count);
    for (list, 0..) |*edge, index| edge.* = .{ .id = plane.edge_ids[index], .name = "an edge" };
    return list;
}

fn siteEdges(
    plane: *const ControlPlane,
    arena: std.mem.Allocator,
) ![]const core.site.Edges.EdgeDescription {
    const list = try arena.alloc(core.site.Edges.EdgeDescription, plane.edge_count);
    for (list, 0..) |*edge, index| edge.* = .{
        .id = plane.edge_ids[index],
        .weight = 10,
        .subnets = &.{},
        .draining = plane.plan.is_draining[index],
        .address = addresses.edgeIp(@intCast(index)),
        .peerPort = addresses.peer_port,
        .streamPort = addresses.stream_port,
    };
    return list;
}
