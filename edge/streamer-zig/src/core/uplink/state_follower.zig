//! Which state an edge names when it polls for the next one, and what follows from an answer
//! (packages/proto/UPLINK.md, "Deltas"): a state that comes as a change of that one is made of it,
//! and what leads to no acceptable state is requested whole. Pure: the caller polls, verifies
//! (`desired_state.accept`) and writes to the disk. Invariant: a poll names the payload that the
//! edge has on its disk, or none.

const std = @import("std");
const desired_state = @import("desired_state.zig");
const state_delta = @import("state_delta.zig");
const Poller = @import("sender.zig").Poller;
const assert = std.debug.assert;

pub const StateFollower = @This();

gpa: std.mem.Allocator,
poller: Poller = .{},
/// The payload of the state that was kept last; null: there is none, or no memory for it.
former: ?state_delta.Base = null,

pub fn deinit(follower: *StateFollower) void {
    follower.forget();
    follower.* = undefined;
}

/// Returns the payload that a poll names, of which its answer may be a change; null: only a whole
/// state is accepted. Valid until `onKept`.
pub fn baseOf(
    follower: *const StateFollower,
    request: *const Poller.Request,
) ?*const state_delta.Base {
    if (!request.names_base) return null;
    return if (follower.former) |*former| former else null;
}

/// An accepted state is on the disk. Without memory for its payload the next one comes whole.
pub fn onKept(follower: *StateFollower, payload: []const u8) void {
    follower.forget();
    const copy = follower.gpa.dupe(u8, payload) catch return;
    follower.former = .of(copy);
    assert(std.mem.eql(u8, follower.former.?.payload, payload));
}

/// The state of an answer is refused: the edge keeps the one that it has. Returns whether it polls
/// again at once, for the whole state.
pub fn onRefused(follower: *StateFollower, now_ms: u64, refusal: desired_state.Refusal) bool {
    if (refusal != error.DeltaUnfit) return false;
    const is_named = follower.poller.onUnfitDelta(now_ms);
    assert(!follower.poller.plan(now_ms, 0, 0).names_base);
    return is_named;
}

fn forget(follower: *StateFollower) void {
    if (follower.former) |*former| follower.gpa.free(former.payload);
    follower.former = null;
}

test {
    _ = @import("state_follower_test.zig");
}
