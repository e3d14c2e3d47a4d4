//! Finds out which versions of the desired state this edge holds whole, for the other edges of the
//! site (packages/proto/PEERS.md, "Holdings"): versions that it has opened, and which of them were
//! found damaged. A version that could not be opened is one that it lacks; of one that no thread
//! has tried yet nothing is known. Runs when versions were opened and once a second.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const peer = @import("wire").peer;
const StoreErrors = @import("../store_errors.zig");
const assert = std.debug.assert;

const Holding = core.site.Holdings.Holding;
const Version = core.uplink.desired_state.Version;

pub const OwnHoldings = struct {
    /// What follows may have changed: the state, what is open, what is damaged.
    is_outdated: bool = true,
    /// Versions that could not be read for a device lately.
    unreadable: Unreadable = .empty,
    /// That of `Io` when it was last looked at.
    store_revision: u64 = 0,
    /// It could not be opened just now.
    failed: ?base.Uuid = null,
    known: [core.site.Holdings.versions_max]peer.Holding = undefined,

    const Unreadable = base.BoundedArray(base.Uuid, StoreErrors.places_max);

    /// Takes the places that could not be read.
    pub fn setUnreadable(own: *OwnHoldings, errors: *const StoreErrors) void {
        var found: Unreadable = .empty;
        for (errors.places.constSlice()) |*place|
            if (!contains(&found, place.version_id)) found.appendAssumeCapacity(place.version_id);
        const is_same = found.count == own.unreadable.count and
            for (found.constSlice()) |id| {
                if (!contains(&own.unreadable, id)) break false;
            } else true;
        if (is_same) return;
        own.unreadable = found;
        own.is_outdated = true;
    }

    pub fn isUnreadable(own: *const OwnHoldings, id: base.Uuid) bool {
        return contains(&own.unreadable, id);
    }

    fn contains(list: *const Unreadable, id: base.Uuid) bool {
        for (list.constSlice()) |known| if (known.eql(id)) return true;
        return false;
    }
};

/// A thread has opened a version, or could not: `is_lacking` then.
pub fn onOpened(boots: anytype, now_us: u64, id: base.Uuid, is_lacking: bool) void {
    boots.holdings.is_outdated = true;
    boots.holdings.failed = if (is_lacking) id else null;
    update(boots, now_us);
    boots.holdings.failed = null;
}

/// Tells the other edges what has changed. Does nothing on a site with one edge.
pub fn update(boots: anytype, now_us: u64) void {
    const own: *OwnHoldings = &boots.holdings;
    const state = switch (boots.policy.source) {
        .state => |state| state,
        .nothing, .standalone => return,
    };
    if (!boots.peers.hasOthers()) return;
    const revision = boots.io.storeRevision();
    if (revision != own.store_revision) {
        own.store_revision = revision;
        own.is_outdated = true;
        boots.openings.beginRound();
    }
    if (!own.is_outdated) return;
    own.is_outdated = false;
    var count: usize = 0;
    for (state.vdisks) |*vdisk| for (vdisk.versions) |*version| {
        if (count == own.known.len) break;
        const copy: peer.Copy = switch (holdingOf(boots, version)) {
            .held => .held,
            .damaged => .damaged,
            .lacking => .lacking,
            .unknown => continue,
        };
        own.known[count] = .{ .version = version.id, .copy = copy };
        count += 1;
    };
    const known = own.known[0..count];
    base.sort(peer.Holding, known, {}, isBefore);
    boots.peers.holdings.set(now_us, withoutRepeats(known));
    assert(!own.is_outdated);
}

fn isBefore(_: void, a: peer.Holding, b: peer.Holding) bool {
    return peer.isBefore(a.version, b.version);
}

fn withoutRepeats(sorted: []peer.Holding) []peer.Holding {
    var kept: usize = 0;
    for (sorted) |holding| {
        if (kept > 0 and sorted[kept - 1].version.eql(holding.version)) continue;
        sorted[kept] = holding;
        kept += 1;
    }
    return sorted[0..kept];
}

fn holdingOf(boots: anytype, version: *const Version) Holding {
    // Only its writer boots it, at the edge that keeps its writes.
    if (version.layerAboveVersionId != null) return .unknown;
    const own: *const OwnHoldings = &boots.holdings;
    const is_damaged = boots.io.isDamaged(version.id) or
        own.isUnreadable(version.id);
    if (boots.io.findVersion(version.id) != null) return if (is_damaged) .damaged else .held;
    if (own.failed) |failed| if (failed.eql(version.id)) return .lacking;
    // One that was open is closed while nobody boots it.
    return switch (boots.peers.holdings.ownOf(version.id)) {
        .held, .damaged => if (is_damaged) .damaged else .held,
        .unknown => .unknown,
        .lacking => .lacking,
    };
}
