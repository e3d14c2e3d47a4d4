//! Which edge keeps the writes of a device, as far as this edge knows: from the desired state in
//! its data directory, which a running edge keeps up to date.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Call = @import("../subcommand.zig");
const Findings = @import("../../doctor/findings.zig");
const control_plane = @import("../../doctor/control_plane.zig");
const Uuid = base.Uuid;

const DesiredState = core.uplink.desired_state.DesiredState;

/// The installer's; there the store may be on another disk.
const data_default = "/var/lib/bootfarm-edge";

pub const WriteOwner = @This();

own_id: Uuid,
state: DesiredState,

pub const Answer = union(enum) {
    own,
    /// The state does not know the device, or says that no edge keeps its writes.
    none,
    other: core.uplink.desired_state.WriteOwnerEdge,
};

/// Null: no enrolled edge has its data here, and nobody else decides. Fails if it has, and the
/// state cannot be read.
pub fn load(
    call: *const Call,
    arena: std.mem.Allocator,
    store_path: []const u8,
    data: ?[]const u8,
) Call.Error!?WriteOwner {
    const parent = std.fs.path.dirnamePosix(store_path) orelse ".";
    for ([_][]const u8{ data orelse parent, data orelse data_default }) |place| {
        var findings: Findings = .{ .arena = arena };
        const identity = try control_plane.readIdentity(&findings, place) orelse continue;
        const state = try control_plane.keptState(&findings, place, &identity) orelse
            return call.fail(
                "The desired state in {s} cannot be read, so it is unknown which edge keeps the device's writes. Start the edge once while the control plane is reachable.",
                .{place},
            );
        return .{ .own_id = identity.edgeId, .state = state };
    }
    if (data) |path|
        return call.fail("{s} is not the data directory of an enrolled edge.", .{path});
    return null;
}

pub fn of(owner: *const WriteOwner, device_id: Uuid) Answer {
    for (owner.state.devices) |*device| {
        if (!device.id.eql(device_id)) continue;
        const home = owner.state.homeEdges[device.home orelse return .none];
        return if (home.id.eql(owner.own_id)) .own else .{ .other = home };
    }
    return .none;
}
