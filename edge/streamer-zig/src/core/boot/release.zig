//! What a release to come changes by time alone (packages/proto/UPLINK.md, "vDisk versions"): from its instant on, what follows the
//! vDisk's default gets the new version, with or without the control plane, also after a cold start. Pure; the clock's time comes in.
//! Boots that have begun keep their version: they never ask here again.

const std = @import("std");
const base = @import("base");
const desired_state = @import("../uplink/desired_state.zig");

const DesiredState = desired_state.DesiredState;

/// What is booted at `unix_ms` by whom the state gives `version_id` since it is the vDisk's default. An override stands until it is
/// taken back; what is none's default is booted as it is.
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
