//! Versions are opened by threads: that reads and checks their files. A request that needs a
//! version which is not open yet waits (`Opening.waits`): by HTTP it is answered once a version
//! has been opened, by TFTP and the stream its device repeats it. So that devices seldom wait,
//! versions of the desired state are opened before anybody asks for them.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const holdings = @import("versions/holdings.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const describedVersion = core.boot.assignment.describedVersion;

/// Why a version cannot be served.
pub const Problem = struct {
    /// The edge's store does not have it.
    is_gone: bool,
    /// The edge cannot serve it, however many versions it has open.
    is_lacking: bool,
    text: base.UntrustedText,

    /// `problem`: an `Io.Problem`.
    pub fn of(problem: anytype) Problem {
        var buffer: [base.UntrustedText.size_max]u8 = undefined;
        var writer: std.Io.Writer = .fixed(&buffer);
        // Text that is too long is cut.
        writer.print("{f}", .{problem}) catch {};
        return .{
            .is_gone = problem.isGone(),
            .is_lacking = !problem.isFull(),
            .text = .init(writer.buffered()),
        };
    }
};

pub const Opening = union(enum) {
    open,
    /// `onOpened` follows.
    waits,
    problem: Problem,
};

/// What threads have found out lately, and the next version to open ahead.
pub const Openings = struct {
    problems: base.BoundedArray(Found, problems_max) = .empty,
    next_vdisk: u32 = 0,
    next_version: u32 = 0,
    next_round_us: u64 = 0,
    /// A version could not be opened ahead in this round.
    has_failed: bool = false,
    /// It is being opened, and nobody has asked for it yet.
    ahead: ?base.Uuid = null,

    const Found = struct { id: base.Uuid, at_us: u64, problem: Problem };
    const problems_max = 64;
    /// Longer than devices take to ask again; a version that has come into the store since is seen
    /// after that.
    const problem_kept_us = 10 * std.time.us_per_s;
    /// Versions that could not be opened ahead are tried again,
    const round_us: u64 = 60 * std.time.us_per_s;
    /// and sooner while other edges answer their devices.
    const lacking_round_us: u64 = 10 * std.time.us_per_s;

    /// There is another desired state: everything may be different.
    pub fn onState(openings: *Openings) void {
        openings.* = .{};
    }

    /// The store has other versions: each that is not open is tried again.
    pub fn beginRound(openings: *Openings) void {
        openings.next_vdisk = 0;
        openings.next_version = 0;
        openings.next_round_us = 0;
        openings.problems = .empty;
    }

    fn isAhead(openings: *const Openings, id: base.Uuid) bool {
        return if (openings.ahead) |ahead| ahead.eql(id) else false;
    }

    fn problemOf(openings: *const Openings, id: base.Uuid, now_us: u64) ?Problem {
        for (openings.problems.constSlice()) |*found|
            if (found.id.eql(id) and now_us -| found.at_us < problem_kept_us) return found.problem;
        return null;
    }

    fn keep(openings: *Openings, fresh: Found) void {
        const problems = &openings.problems;
        for (problems.slice()) |*found| if (found.id.eql(fresh.id)) {
            found.* = fresh;
            return;
        };
        if (!problems.isFull()) return problems.appendAssumeCapacity(fresh);
        var oldest = &problems.slice()[0];
        for (problems.slice()) |*found| if (found.at_us < oldest.at_us) {
            oldest = found;
        };
        oldest.* = fresh;
    }

    /// A thread has opened it since.
    fn forget(openings: *Openings, id: base.Uuid) void {
        for (openings.problems.constSlice(), 0..) |*found, index| if (found.id.eql(id)) {
            _ = openings.problems.swapRemove(@intCast(index));
            return;
        };
    }
};

/// Returns whether a version is open; if not, it is being opened from now on, or cannot be.
pub fn stateOf(boots: anytype, id: base.Uuid) Opening {
    const io = boots.io;
    if (io.findVersion(id) != null) return .open;
    const missing: @TypeOf(io.*).Problem = .not_described;
    const not_described: Opening = .{ .problem = .of(missing) };
    const state = switch (boots.policy.source) {
        .state => |state| state,
        .nothing, .standalone => return not_described,
    };
    const described = describedVersion(state, id) orelse return not_described;
    if (boots.openings.problemOf(id, io.now())) |problem| return .{ .problem = problem };
    if (boots.openings.isAhead(id)) boots.openings.ahead = null;
    return start(boots, state, described, .asked);
}

fn start(
    boots: anytype,
    state: *const core.uplink.desired_state.DesiredState,
    described: *const core.uplink.desired_state.Version,
    why: enum { asked, ahead },
) Opening {
    const below_id = described.layerAboveVersionId;
    const below = if (below_id) |known| describedVersion(state, known) else null;
    switch (boots.io.openVersion(described, below)) {
        .open => {
            boots.holdings.is_outdated = true;
            return .open;
        },
        .waits => return .waits,
        .problem => |problem| {
            const is_lacking = Problem.of(problem).is_lacking;
            boots.openings.has_failed = boots.openings.has_failed or is_lacking;
            if (is_lacking) holdings.onOpened(boots, boots.io.now(), described.id, true);
            if (why == .asked) boots.io.onVersionProblem(problem);
            return .{ .problem = .of(problem) };
        },
    }
}

/// Returns whether a boot's request waits until its version is open.
pub fn awaits(boots: anytype, boot: *const core.boot.Boot) bool {
    return stateOf(boots, boot.assignment.version_id) == .waits;
}

/// A thread has opened a version, or could not. `problem`: an `Io.Problem`, or null.
pub fn onOpened(boots: anytype, now_us: u64, id: base.Uuid, problem: anytype) void {
    const openings: *Openings = &boots.openings;
    const is_ahead = openings.isAhead(id);
    if (is_ahead) openings.ahead = null;
    defer openAhead(boots, now_us);
    const is_lacking = if (problem) |found| Problem.of(found).is_lacking else false;
    openings.has_failed = openings.has_failed or is_lacking;
    holdings.onOpened(boots, now_us, id, is_lacking);
    const found = problem orelse return openings.forget(id);
    assert(boots.io.findVersion(id) == null);
    // Nobody has to know: it may be on its way into the store.
    if (is_ahead) return;
    boots.io.onVersionProblem(found);
    const known: Problem = .of(found);
    openings.keep(.{ .id = id, .at_us = now_us, .problem = known });
    var iterator = boots.table.iterate();
    while (iterator.next()) |boot| {
        if (!boot.assignment.version_id.eql(id) or !boot.isCandidate()) continue;
        // What was found since the boot began explains more.
        if (boot.isOver() or boot.hasOwnSuspicion()) continue;
        boots.suspectVersion(boots.table.findById(boot.identity.id).?, now_us, known);
    }
}

/// Opens the next version that no boot has asked for yet. One at a time, so that a boot's version
/// does not wait behind many. Runs once a second, and when a version has been opened.
pub fn openAhead(boots: anytype, now_us: u64) void {
    const io = boots.io;
    const openings: *Openings = &boots.openings;
    const state = switch (boots.policy.source) {
        .state => |state| state,
        .nothing, .standalone => return,
    };
    if (now_us < openings.next_round_us or !io.mayOpenAhead()) return;
    while (openings.next_vdisk < state.vdisks.len) {
        const versions = state.vdisks[openings.next_vdisk].versions;
        if (openings.next_version >= versions.len) {
            openings.next_vdisk += 1;
            openings.next_version = 0;
            continue;
        }
        const described = &versions[openings.next_version];
        openings.next_version += 1;
        if (io.findVersion(described.id) != null) continue;
        if (start(boots, state, described, .ahead) != .waits) continue;
        openings.ahead = described.id;
        return;
    }
    openings.next_vdisk = 0;
    openings.next_version = 0;
    const is_sooner = openings.has_failed and boots.peers.hasOthers();
    openings.next_round_us =
        now_us + if (is_sooner) Openings.lacking_round_us else Openings.round_us;
    openings.has_failed = false;
}
