//! Whether the control plane offers a version to devices of this edge's site, as far as the edge
//! knows: from the desired state in its data directory, which a running edge keeps up to date.
//! Deleting such a version by hand makes boots fail.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const Call = @import("subcommand.zig");
const Findings = @import("../doctor/findings.zig");
const control_plane = @import("../doctor/control_plane.zig");
const Uuid = base.Uuid;

const DesiredState = core.uplink.desired_state.DesiredState;
const Vdisk = core.uplink.desired_state.Vdisk;
const Version = core.uplink.desired_state.Version;

/// The installer's; there the store may be on another disk.
const data_default = "/var/lib/bootfarm-edge";

/// What makes devices boot a version.
const Offer = struct {
    number: u64,
    vdisk: base.UntrustedText,
    role: union(enum) {
        override,
        default,
        pending,
        written,
        /// The name of one of them.
        device: base.UntrustedText,
        menu,
    },

    pub fn format(offer: Offer, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        try writer.print("Version {d} of {f} is ", .{ offer.number, offer.vdisk });
        switch (offer.role) {
            .override => try writer.writeAll("the override, which production devices boot"),
            .default => try writer.writeAll("the default, which production devices boot"),
            .pending => try writer.writeAll("pending: production devices boot it soon"),
            .written => try writer.writeAll("in maintenance: a device writes it"),
            .device => |name| try writer.print("what the device {f} boots", .{name}),
            .menu => try writer.writeAll("in a boot menu"),
        }
    }
};

/// Fails if the version is offered; with `is_forced`, only names what breaks.
pub fn check(call: *const Call, id: Uuid, data: ?[]const u8, is_forced: bool) Call.Error!void {
    var arena: std.heap.ArenaAllocator = .init(call.gpa);
    defer arena.deinit();
    const parent = std.fs.path.dirnamePosix(call.path()) orelse ".";
    const places = [_][]const u8{ data orelse parent, data orelse data_default };
    for (places) |place| {
        var findings: Findings = .{ .arena = arena.allocator() };
        const identity = try control_plane.readIdentity(&findings, place) orelse continue;
        const state = try control_plane.keptState(&findings, place, &identity) orelse {
            // Only a state that is there and refused is a problem.
            if (findings.count(.problem) == 0 or is_forced) continue;
            return call.fail(
                "The desired state in {s} cannot be read, so it is unknown whether devices boot the version {f}. Add --force to delete it all the same.",
                .{ place, id },
            );
        };
        const offer = find(&state, id) orelse continue;
        if (!is_forced) return call.fail(
            "{f}. Let devices boot another version first, or add --force: boots of this one then fail with version_missing until this edge has it again.",
            .{offer},
        );
        host.log.info(
            "{f}. Boots of it fail with version_missing until this edge has it again.",
            .{offer},
        );
        return;
    }
    if (data) |path| if (!is_forced) {
        var findings: Findings = .{ .arena = arena.allocator() };
        if (try control_plane.readIdentity(&findings, path) == null)
            return call.fail("{s} is not the data directory of an enrolled edge.", .{path});
    };
}

fn find(state: *const DesiredState, id: Uuid) ?Offer {
    for (state.vdisks) |*vdisk| for (vdisk.versions) |*version| {
        if (!version.id.eql(id)) continue;
        return roleOf(state, vdisk, version, .{
            .number = version.number,
            .vdisk = .init(vdisk.name),
            .role = .menu,
        });
    };
    return null;
}

/// Older versions are in the state, too, and nobody boots them: null.
fn roleOf(
    state: *const DesiredState,
    vdisk: *const Vdisk,
    version: *const Version,
    unknown: Offer,
) ?Offer {
    var offer = unknown;
    const id = version.id;
    if (isOf(vdisk.overrideVersionId, id)) offer.role = .override //
    else if (isOf(vdisk.defaultVersionId, id)) offer.role = .default //
    else if (isOf(if (vdisk.pending) |pending| pending.versionId else null, id))
        offer.role = .pending
    else if (version.layerAboveVersionId != null) offer.role = .written //
    else if (deviceOf(state, id)) |device| offer.role = .{ .device = .init(device.name) } //
    else if (!isInMenu(state, id)) return null;
    return offer;
}

fn isOf(given: ?Uuid, id: Uuid) bool {
    return if (given) |known| known.eql(id) else false;
}

fn deviceOf(state: *const DesiredState, id: Uuid) ?*const core.uplink.desired_state.Device {
    for (state.devices) |*device| if (device.versionId.eql(id)) return device;
    return null;
}

fn isInMenu(state: *const DesiredState, id: Uuid) bool {
    for (state.menus) |*menu| for (menu.entries) |*entry|
        if (isOf(entry.versionId, id)) return true;
    return false;
}
