//! The candidates of a device: boots that a request which anybody can send has begun, and in which
//! the device has not proved itself (docs/decisions/0027-candidate-boots.md). Which of a device's
//! boots a request belongs to, which one a hint joins, and what is reported of it. Called by
//! `boots.zig`, whose table has them. Invariant: no hint ends a boot, or takes more than one slot
//! beside the boot that its device is in.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const mutants = @import("mutants.zig");
const write_caches = @import("write_caches.zig");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const Ref = core.boot.Table.Ref;

/// Another edge answers the device's new boot: what is in progress here keeps it from
/// nothing, and goes on.
pub fn releaseClaims(boots: anytype, mac: base.Mac) void {
    assert(mac.isDevice());
    var own = boots.table.iterateOf(mac);
    while (own.next()) |ref| {
        const boot = boots.table.get(ref).?;
        assert(boot.identity.mac.eql(mac));
        if (!boot.isOver()) boots.peers.dropBoot(boot);
    }
}

/// The device has proved itself in this boot: its other boots are over. One that was never
/// reported was none.
pub fn endOthers(boots: anytype, now_us: u64, ref: Ref) void {
    const mac = boots.table.get(ref).?.identity.mac;
    var others = boots.table.iterateOf(mac);
    while (others.next()) |other_ref| {
        if (other_ref.index == ref.index) continue;
        const other = boots.table.get(other_ref).?;
        if (other.is_unreported)
            drop(boots, other_ref)
        else
            boots.supersede(now_us, other_ref);
    }
    assert(boots.table.get(ref) != null);
}

/// Nobody was told of this boot, and its device never proved itself in it.
fn drop(boots: anytype, ref: Ref) void {
    const boot = boots.table.get(ref).?;
    assert(boot.is_unreported);
    boots.peers.dropBoot(boot);
    boots.io.journalFailover(boot);
    boots.table.remove(ref);
    assert(boots.table.get(ref) == null);
}

/// Returns the device's latest boot that is not beyond its loader.
pub fn inLoader(boots: anytype, mac: base.Mac) ?Ref {
    var latest: ?Ref = null;
    var candidates = boots.table.iterateOf(mac);
    while (candidates.next()) |ref| {
        const boot = boots.table.get(ref).?;
        const phase = boot.current() orelse .dhcp;
        if (!boot.isCandidate() or
            @backingInt(phase) > @backingInt(core.boot.phase.Phase.loader)) continue;
        if (latest == null or boots.table.isEarlier(latest.?, ref)) latest = ref;
    }
    return latest;
}

/// Returns a boot that has failed because of what hinders it still: one for each request
/// would only repeat that.
pub fn refused(boots: anytype, now_us: u64, mac: base.Mac) ?Ref {
    const ref = boots.table.findByMac(mac) orelse return null;
    const boot = boots.table.get(ref).?;
    const outcome = boot.outcome orelse return null;
    if (outcome != .failed or boot.stream_was_open) return null;
    if (now_us -| (boot.started_us + boot.last_us) >= hint_kept_us) return null;
    // What hinders it still is known when its version is open, or cannot be.
    if (boots.awaitsVersion(boot)) return ref;
    const blocker = boots.blockerOf(boot) orelse return null;
    return if (blocker.cause == outcome.failed.cause) ref else null;
}

/// A boot in which nothing was loaded follows the policy with each DISCOVER: whoever sends
/// some in a device's name must not keep it from a new version, or let it boot when it is
/// disabled. One that is loading keeps its version; but a DISCOVER that may be that of a machine
/// which has started again is not answered if its device may not boot.
pub fn mayStillBoot(boots: anytype, boot: *Boot, request: core.boot.DhcpRequest) bool {
    const is_loading = boot.downloadedAt() > 0;
    if (!boot.isCandidate() or (is_loading and !boot.isOfFirstProgram(request))) return true;
    const mac = boot.identity.mac;
    switch (boots.policy.decide(mac, boots.io.unixMs())) {
        .ignored_device, .unknown_device, .disabled, .version_missing => return false,
        .target => |target| if (!is_loading) {
            boot.assignment = boots.completed(target.assignment, mac);
        },
    }
    assert(boot.isCandidate());
    return true;
}

/// Returns the boot that a request continues; null: it would begin one. Of two, it is that
/// whose transaction it is, or else the one whose device loaded something last.
pub fn continued(
    boots: anytype,
    at_us: u64,
    mac: base.Mac,
    request: core.boot.DhcpRequest,
) ?Ref {
    var best: ?Ref = null;
    var best_rank: u64 = 0;
    var others = boots.table.iterateOf(mac);
    while (others.next()) |ref| {
        const boot = boots.table.get(ref).?;
        assert(boot.identity.mac.eql(mac));
        if (mutants.has(.transaction_outlives_session) and boot.stream_was_open) {
            if (boot.knowsTransaction(request.xid)) return ref;
        }
        if (boot.dhcpMeaning(at_us, request) == .new_boot) continue;
        if (request.message == .discover and isOnlyOffered(boot) and
            !boot.knowsTransaction(request.xid)) continue;
        const rank = if (boot.knowsTransaction(request.xid))
            std.math.maxInt(u64)
        else
            boot.downloadedAt();
        if (best != null and rank < best_rank) continue;
        if (best != null and rank == best_rank and !boots.table.isEarlier(best.?, ref))
            continue;
        best, best_rank = .{ ref, rank };
    }
    return best;
}

/// A device has at most so many boots that are in progress or may run.
const boots_of_device_max = 2;

/// Returns the candidate that a device's next hint joins; null: it begins one.
pub fn joined(boots: anytype, mac: base.Mac) ?Ref {
    var latest: ?Ref = null;
    var count: u32 = 0;
    var others = boots.table.iterateOf(mac);
    while (others.next()) |ref| {
        const boot = boots.table.get(ref).?;
        if (!boot.isCandidate() and !boot.isRunning()) continue;
        count += 1;
        if (boot.isRunning()) continue;
        if (latest == null or boots.table.isEarlier(latest.?, ref)) latest = ref;
    }
    if (mutants.has(.hints_pile_up)) return null;
    return if (count < boots_of_device_max) null else latest;
}

/// A candidate that was offered and nothing else begins again with each DISCOVER, so that
/// its version and its times are those of the device, however long others have sent some.
fn isOnlyOffered(boot: *const Boot) bool {
    return boot.is_unreported and boot.isCandidate() and boot.downloadedAt() == 0;
}

/// Joins a device's candidate; false: it is too old to be loading still, and another one
/// takes its place.
pub fn join(
    boots: anytype,
    now_us: u64,
    ref: Ref,
    assignment: *const core.boot.Assignment,
) bool {
    const boot = boots.table.get(ref).?;
    assert(boot.isCandidate());
    if (isOnlyOffered(boot)) {
        const offered = boot.*;
        boot.* = .init(offered.identity, assignment.*, now_us, boots.io.unixMs());
        boot.facts = offered.facts;
        boot.device_identity = offered.device_identity;
        boot.is_unregistered = offered.is_unregistered;
        boot.is_unreported = true;
        assert(boot.isCandidate());
        return true;
    }
    assert(boot.downloadedAt() > 0 or !boot.is_unreported);
    if (!boot.is_unreported or now_us -| boot.started_us < joined_us_max) return true;
    drop(boots, ref);
    return false;
}

/// From its first DISCOVER to its HELLO a device takes minutes at most.
const joined_us_max = 15 * 60 * std.time.us_per_s;

/// The device seems to have started again. A candidate that is over and was never reported
/// makes place.
pub fn leaveOthers(boots: anytype, mac: base.Mac) void {
    assert(mac.isDevice());
    var others = boots.table.iterateOf(mac);
    while (others.next()) |ref| {
        const boot = boots.table.get(ref).?;
        if (mutants.has(.hint_ends_boots)) boots.endByHint(ref);
        if (boot.isCandidate()) boot.is_left = true;
        if (boot.is_unreported and boot.isOver()) drop(boots, ref);
    }
}

/// Anybody can begin a candidate: one beside another boot of its device is not reported
/// before that boot is over or, once it has had a session, silent.
pub fn isOnlyHinted(boots: anytype, boot: *const Boot, now_us: u64) bool {
    if (boot.revision > 0 or boot.stream_was_open or mutants.has(.report_hints)) return false;
    // It has proved itself, but so has a machine that runs.
    if (boot.suspicion) |failure| if (failure.cause == .mac_in_use) return false;
    const own = boots.table.findById(boot.identity.id) orelse return false;
    var others = boots.table.iterateOf(boot.identity.mac);
    while (others.next()) |ref| {
        if (ref.index == own.index) continue;
        const other = boots.table.get(ref).?;
        if (isHeard(other, now_us)) return true;
        if (other.isCandidate() and boots.table.isEarlier(ref, own)) return true;
    }
    return false;
}

/// A candidate that failed is known for so long.
const hint_kept_us = 60 * std.time.us_per_s;

/// A device in a session sends a REPORT every 5 s.
pub fn isHeard(boot: *const Boot, now_us: u64) bool {
    return boot.isRunning() and now_us -| boot.heardAt() < write_caches.heard_us;
}

/// A candidate that is over beside a running device was none; one whose device's other boot
/// has ended or fallen silent is reported.
/// Returns whether it is still there.
pub fn judgeHinted(boots: anytype, boot: *Boot, now_us: u64) bool {
    if (!boot.is_unreported) return true;
    assert(boot.revision == 0);
    if (!isOnlyHinted(boots, boot, now_us)) {
        boot.changed = true;
        return true;
    }
    // Its device may still say HELLO, and learns then why its boot failed.
    const since_us = now_us -| (boot.started_us + boot.last_us);
    if (!boot.isOver() or since_us < hint_kept_us) return true;
    var others = boots.table.iterateOf(boot.identity.mac);
    while (others.next()) |ref| if (isHeard(boots.table.get(ref).?, now_us)) {
        drop(boots, boots.table.findById(boot.identity.id).?);
        return false;
    };
    return true;
}
