//! The data that the packet loop and the uplink's threads exchange: numbers for the heartbeat one
//! way, a new desired state the other way, and the signal that a report was written.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const StoreErrors = @import("agent").StoreErrors;
const assert = std.debug.assert;
const Io = std.Io;

/// A verified desired state and its memory.
pub const StateBox = struct {
    arena: std.heap.ArenaAllocator,
    state: core.uplink.desired_state.DesiredState,
    policy: core.boot.Policy,
    /// The keys that signed it, to be pinned.
    reached: core.uplink.desired_state.VerifiedKey,
    received: core.uplink.desired_state.Received,

    /// Verifies and parses an envelope. The box owns everything; `destroy` frees it.
    pub fn create(
        gpa: std.mem.Allocator,
        envelope: []const u8,
        expected: core.uplink.desired_state.TrustAnchor,
    ) core.uplink.desired_state.Refusal!*StateBox {
        const box = try gpa.create(StateBox);
        errdefer gpa.destroy(box);
        box.arena = .init(gpa);
        errdefer box.arena.deinit();
        const text = try box.arena.allocator().dupe(u8, envelope);
        var asked = expected;
        asked.reached = &box.reached;
        asked.received = &box.received;
        box.state = try core.uplink.desired_state.accept(box.arena.allocator(), text, asked);
        box.policy = try .init(box.arena.allocator(), &box.state);
        return box;
    }

    pub fn destroy(box: *StateBox, gpa: std.mem.Allocator) void {
        box.arena.deinit();
        gpa.destroy(box);
    }

    /// Returns the whole envelope of a state that came as a change of another one, for the disk.
    pub fn wholeEnvelope(box: *StateBox) error{OutOfMemory}![]const u8 {
        assert(box.received.is_delta);
        return std.json.Stringify.valueAlloc(box.arena.allocator(), box.received.envelope, .{});
    }
};

pub const UplinkLink = @This();

io: Io,
gpa: std.mem.Allocator,
started_us: u64,
wake_fd: i32,
mutex: Io.Mutex = .init,
ignored: base.IgnoredCounters = .{},
devices_booting: u64 = 0,
/// Null until the packet loop has counted.
load: ?core.uplink.message.Load = null,
peers: base.BoundedArray(core.site.PeerTable.PeerStatus, core.uplink.message.peers_max) = .empty,
store_errors: StoreErrors = .{},
/// When the numbers were set.
numbers_us: u64 = 0,
/// The pair of the state that was accepted last.
pair: core.uplink.desired_state.Pair = .{},
/// The pair of the state in force in the packet loop: sometimes older than `pair`.
in_force: core.uplink.desired_state.Pair = .{},
has_state: bool = false,
/// Why the last state was refused; null if it was accepted.
refusal: ?core.uplink.desired_state.Refusal = null,
next_state: ?*StateBox = null,
/// The control plane answered last time.
is_answered: std.atomic.Value(bool) = .init(false),
/// The same, and it took what the edge sent.
is_accepted: std.atomic.Value(bool) = .init(false),
/// People wait for what a heartbeat would say now: the sender takes it.
has_news: std.atomic.Value(bool) = .init(false),
/// Grows with each report and with news; the sender waits for it.
reports_written: std.atomic.Value(u32) = .init(0),

pub const Numbers = struct {
    ignored: base.IgnoredCounters,
    devices_booting: u64,
    load: ?core.uplink.message.Load,
    peers: base.BoundedArray(core.site.PeerTable.PeerStatus, core.uplink.message.peers_max),
    store_errors: StoreErrors,
    numbers_us: u64,
    /// The pair of the state in force.
    pair: core.uplink.desired_state.Pair,
    refusal: ?core.uplink.desired_state.Refusal,
};

/// Records the result of the last answer that contained a state, or reported that there is
/// none.
pub fn onRefusal(link: *UplinkLink, refusal: ?core.uplink.desired_state.Refusal) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.refusal = refusal;
}

pub fn noteReport(link: *UplinkLink) void {
    _ = link.reports_written.fetchAdd(1, .release);
    link.io.futexWake(u32, &link.reports_written.raw, 1);
}

pub fn noteNews(link: *UplinkLink) void {
    link.has_news.store(true, .release);
    link.noteReport();
}

pub fn setNumbers(link: *UplinkLink, ignored: base.IgnoredCounters, devices_booting: u64) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.ignored = ignored;
    link.devices_booting = devices_booting;
}

pub fn setLoad(link: *UplinkLink, load: core.uplink.message.Load) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.load = load;
}

pub fn setPeers(link: *UplinkLink, now_us: u64, table: *const core.site.PeerTable) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.peers.count = @intCast(table.listPeers(now_us, &link.peers.buffer).len);
    link.numbers_us = now_us;
}

pub fn setStoreErrors(link: *UplinkLink, store_errors: *const StoreErrors) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.store_errors = store_errors.*;
}

pub fn numbers(link: *UplinkLink) Numbers {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    return .{
        .ignored = link.ignored,
        .devices_booting = link.devices_booting,
        .load = link.load,
        .peers = link.peers,
        .store_errors = link.store_errors,
        .numbers_us = link.numbers_us,
        .pair = link.in_force,
        .refusal = link.refusal,
    };
}

/// Returns the pair that a new state must exceed; null while there is none.
pub fn above(link: *UplinkLink) ?core.uplink.desired_state.Pair {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    return if (link.has_state) link.pair else null;
}

/// For the state that was on disk at the start.
pub fn setPair(link: *UplinkLink, pair: core.uplink.desired_state.Pair) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.pair = pair;
    link.in_force = pair;
    link.has_state = true;
}

/// Called by the packet loop: this state is in force from now on.
pub fn onInForce(link: *UplinkLink, pair: core.uplink.desired_state.Pair) void {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    link.in_force = pair;
}

/// Passes a state to the packet loop, and replaces one that the loop has not taken yet.
pub fn offerState(link: *UplinkLink, box: *StateBox) void {
    {
        link.mutex.lockUncancelable(link.io);
        defer link.mutex.unlock(link.io);
        if (link.next_state) |earlier| earlier.destroy(link.gpa);
        link.next_state = box;
        link.pair = box.state.pair();
        link.has_state = true;
    }
    sys.wake(link.wake_fd);
}

pub fn takeState(link: *UplinkLink) ?*StateBox {
    link.mutex.lockUncancelable(link.io);
    defer link.mutex.unlock(link.io);
    defer link.next_state = null;
    return link.next_state;
}
