//! Applies scheduled releases (packages/proto/UPLINK.md, "vDisk versions"): from its instant,
//! devices that follow the vDisk's default get the new version, with or without the control plane,
//! even after a cold start. Pure; the caller passes the time. A boot in progress keeps its version:
//! it never asks here again.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");

const DesiredState = desired_state.DesiredState;

/// Returns the version to boot at `unix_ms` for a device that the state assigns `version_id` as the
/// vDisk's default. An override stands until it is revoked; a version that is no default is booted
/// as it is.
pub fn versionAt(state: *const DesiredState, version_id: base.Uuid, unix_ms: u64) base.Uuid {
    for (state.vdisks) |*vdisk| {
        const default_id = vdisk.defaultVersionId orelse continue;
        if (!default_id.eql(version_id)) continue;
        const pending = vdisk.pending orelse return version_id;
        if (vdisk.overrideVersionId != null or unix_ms < pending.atUnixMs) return version_id;
        return pending.versionId;
    }
    return version_id;
}

test {
    _ = @import("release_test.zig");
}
