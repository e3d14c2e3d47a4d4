//! An order to power off or restart this machine: decides which step is due when; `system_end.zig`
//! carries it out. First the edge is told that the order was accepted, so that it does not repeat
//! it. Then the running system is asked to stop. If the machine still runs after a grace period,
//! disks get a moment to write, and the kernel stops the machine.

const std = @import("std");
const Kind = @import("core").stream.Client.Order.Kind;

/// Timeout of the edge's acknowledgement.
const acknowledgement_us_max = 2 * std.time.us_per_s;
/// Grace period of the running system. systemd gives a service 90 s to stop.
const grace_us = 120 * std.time.us_per_s;
/// Time for other disks to write their caches before the kernel is asked.
const sync_us = 5 * std.time.us_per_s;

pub const Action = union(enum) {
    /// Ask the running system to stop; call `systemCannotEnd` if there is none.
    ask_system: Kind,
    /// Start writing the disks' caches, without waiting.
    sync: Kind,
    /// Stop the machine now.
    ask_kernel: Kind,
};

pub const PowerOrder = @This();

state: State = .none,

const State = union(enum) {
    none,
    /// The edge is being told.
    taken: Stage,
    /// The system was asked to stop.
    asked: Stage,
    /// Disks write their caches.
    syncing: Stage,
    /// Nothing is left to do.
    done,
};

const Stage = struct { kind: Kind, until_us: u64 };

/// Returns false for a second order, which changes nothing.
pub fn take(order: *PowerOrder, kind: Kind, now_us: u64) bool {
    if (order.state != .none) return false;
    order.state = .{ .taken = .{ .kind = kind, .until_us = now_us + acknowledgement_us_max } };
    return true;
}

/// The edge acknowledged the order.
pub fn acknowledged(order: *PowerOrder) void {
    if (order.state == .taken) order.state.taken.until_us = 0;
}

/// When `next` is due; null for never.
pub fn deadline(order: *const PowerOrder) ?u64 {
    return switch (order.state) {
        .none, .done => null,
        .taken, .asked, .syncing => |stage| stage.until_us,
    };
}

/// Returns the step that is due, once.
pub fn next(order: *PowerOrder, now_us: u64) ?Action {
    if (now_us < order.deadline() orelse return null) return null;
    switch (order.state) {
        .none, .done => unreachable, // They have no deadline.
        .taken => |taken| {
            order.state = .{ .asked = .{ .kind = taken.kind, .until_us = now_us + grace_us } };
            return .{ .ask_system = taken.kind };
        },
        .asked => |asked| {
            order.state = .{ .syncing = .{ .kind = asked.kind, .until_us = now_us + sync_us } };
            return .{ .sync = asked.kind };
        },
        .syncing => |syncing| {
            order.state = .done;
            return .{ .ask_kernel = syncing.kind };
        },
    }
}

/// There is no system to wait for.
pub fn systemCannotEnd(order: *PowerOrder) void {
    order.state.asked.until_us = 0;
}

const testing = std.testing;

test "an order is reported to the edge, then to the system, and after the grace period to the kernel" {
    var order: PowerOrder = .{};
    try testing.expectEqual(null, order.next(0));
    try testing.expect(order.take(.restart, 100));
    try testing.expectEqual(null, order.next(101));
    order.acknowledged();
    try testing.expectEqual(Action{ .ask_system = .restart }, order.next(102).?);
    try testing.expectEqual(null, order.next(102 + grace_us - 1));
    try testing.expectEqual(Action{ .sync = .restart }, order.next(102 + grace_us).?);
    try testing.expectEqual(null, order.next(103 + grace_us));
    try testing.expectEqual(
        Action{ .ask_kernel = .restart },
        order.next(102 + grace_us + sync_us).?,
    );
    try testing.expectEqual(null, order.deadline());
}

test "an edge that does not acknowledge delays an order only for a moment" {
    var order: PowerOrder = .{};
    try testing.expect(order.take(.power_off, 5));
    try testing.expectEqual(5 + acknowledgement_us_max, order.deadline());
    try testing.expectEqual(
        Action{ .ask_system = .power_off },
        order.next(5 + acknowledgement_us_max).?,
    );
}

test "a second order changes nothing, and without a system there is no wait" {
    var order: PowerOrder = .{};
    try testing.expect(order.take(.power_off, 5));
    try testing.expect(!order.take(.restart, 6));
    order.acknowledged();
    try testing.expectEqual(Action{ .ask_system = .power_off }, order.next(7).?);
    order.acknowledged();
    order.systemCannotEnd();
    try testing.expectEqual(Action{ .sync = .power_off }, order.next(8).?);
}
