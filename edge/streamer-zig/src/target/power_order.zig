//! An order that somebody gave for this machine: to be switched off, or started again. This file
//! decides when what is done; `system_end.zig` does it. First the edge is told that the order was
//! taken, so that it is not given again; then the running system is asked to end; when the machine
//! still runs after a grace, other disks get a moment and the kernel ends it at once.

const std = @import("std");
const Kind = @import("core").stream.Client.Order.Kind;

/// How long the edge's knowledge that the order was taken is waited for.
const acknowledgement_us_max = 2 * std.time.us_per_s;
/// How long the running system may take. systemd gives a service 90 s to end.
pub const grace_us = 120 * std.time.us_per_s;
/// How long other disks may take to write what they hold, before the kernel is asked.
const sync_us = 5 * std.time.us_per_s;

pub const Action = union(enum) {
    /// Ask the running system to end; `systemCannotEnd` when there is none.
    ask_system: Kind,
    /// Write what disks hold and end, without waiting for it.
    sync: Kind,
    /// End now.
    ask_kernel: Kind,
};

pub const PowerOrder = struct {
    state: State = .none,

    const State = union(enum) {
        none,
        /// The edge is told that it was taken.
        taken: Stage,
        /// The system was asked to end.
        asked: Stage,
        /// Disks write what they hold.
        syncing: Stage,
        /// Nothing more can be done.
        done,
    };

    const Stage = struct { kind: Kind, until_us: u64 };

    /// False for an order that comes while another is carried out: it changes nothing.
    pub fn take(order: *PowerOrder, kind: Kind, now_us: u64) bool {
        if (order.state != .none) return false;
        order.state = .{ .taken = .{ .kind = kind, .until_us = now_us + acknowledgement_us_max } };
        return true;
    }

    /// The edge knows that the order was taken.
    pub fn acknowledged(order: *PowerOrder) void {
        if (order.state == .taken) order.state.taken.until_us = 0;
    }

    /// When `next` has something to do; null: never.
    pub fn deadline(order: *const PowerOrder) ?u64 {
        return switch (order.state) {
            .none, .done => null,
            .taken, .asked, .syncing => |stage| stage.until_us,
        };
    }

    /// What is to be done now, once.
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
};

const testing = std.testing;

test "an order is told to the edge, then to the system, and after the grace to the kernel" {
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

test "an edge that does not acknowledge holds an order up for a moment only" {
    var order: PowerOrder = .{};
    try testing.expect(order.take(.power_off, 5));
    try testing.expectEqual(5 + acknowledgement_us_max, order.deadline());
    try testing.expectEqual(
        Action{ .ask_system = .power_off },
        order.next(5 + acknowledgement_us_max).?,
    );
}

test "a second order changes nothing, and without a system nothing is waited for" {
    var order: PowerOrder = .{};
    try testing.expect(order.take(.power_off, 5));
    try testing.expect(!order.take(.restart, 6));
    order.acknowledged();
    try testing.expectEqual(Action{ .ask_system = .power_off }, order.next(7).?);
    order.acknowledged();
    order.systemCannotEnd();
    try testing.expectEqual(Action{ .sync = .power_off }, order.next(8).?);
}
