//! A device whose session is lost for good, as it reports itself (LOST of
//! packages/proto/STREAM.md): why, whether it restarts by itself, and whether it is still there.
//! A copied LOST can be sent again: it only says something about a boot that its device has left.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Guest = @import("guest.zig");
const assert = std.debug.assert;

pub const LostDevice = @This();

reason: stream.LostReason,
/// With reason `refused` only.
refusal: ?stream.RefuseCode = null,
/// When the edge first heard of it, µs since the boot's start.
at_us: u64,
/// Null: it waits for an order or a person.
restart_at_us: ?u64 = null,
/// The latest order that the device took after its session was lost.
order_id: ?base.Uuid = null,
/// Time of the latest LOST, µs since the boot's start.
heard_us: u64,
/// Nothing was heard for `silence_us`: it has restarted, or somebody switched it off.
is_silent: bool = false,

/// A device repeats LOST every 16 s: up to this long, packet loss is assumed.
pub const silence_us = Guest.silence_us;

/// The contents of a LOST.
pub const Report = struct {
    reason: stream.LostReason,
    refusal: ?stream.RefuseCode = null,
    /// 0: it waits.
    restart_in_s: u32 = 0,
    /// The order that it took, if it was given that one.
    order_id: ?base.Uuid = null,
};

/// Takes a LOST that arrived `at_us` µs after the boot's start; `lost` is null before the first.
/// Returns whether the control plane should learn of it.
pub fn onReport(lost: *?LostDevice, at_us: u64, report: *const Report) bool {
    const is_first = lost.* == null;
    if (is_first) lost.* = .{
        .reason = report.reason,
        .refusal = report.refusal,
        .at_us = at_us,
        .heard_us = at_us,
        .restart_at_us = restartAt(at_us, report.restart_in_s),
    };
    const known = &lost.*.?;
    const is_back = known.is_silent;
    known.is_silent = false;
    known.heard_us = @max(known.heard_us, at_us);
    // A machine that its kernel refused to restart waits from then on.
    const has_changed = (report.restart_in_s == 0) != (known.restart_at_us == null);
    if (has_changed) known.restart_at_us = restartAt(at_us, report.restart_in_s);
    const has_order = known.takeOrder(report.order_id);
    assert(known.heard_us >= known.at_us);
    return is_first or is_back or has_changed or has_order;
}

fn restartAt(at_us: u64, restart_in_s: u32) ?u64 {
    if (restart_in_s == 0) return null;
    return at_us +| @as(u64, restart_in_s) * std.time.us_per_s;
}

fn takeOrder(lost: *LostDevice, order_id: ?base.Uuid) bool {
    const id = order_id orelse return false;
    assert(!id.eql(.zero));
    if (lost.order_id) |known| if (known.eql(id)) return false;
    lost.order_id = id;
    return true;
}

/// Returns true when the device has just become silent, `at_us` µs after the boot's start.
pub fn checkSilence(lost: *LostDevice, at_us: u64) bool {
    if (lost.is_silent or at_us -| lost.heard_us < silence_us) return false;
    lost.is_silent = true;
    return true;
}

const testing = std.testing;

test "a device that waits is news once, and again when it was silent or takes an order" {
    const second = std.time.us_per_s;
    const waits: Report = .{ .reason = .refused, .refusal = .cache_lost };
    var lost: ?LostDevice = null;
    try testing.expect(onReport(&lost, 5 * second, &waits));
    try testing.expect(!onReport(&lost, 21 * second, &waits));
    try testing.expectEqual(5 * second, lost.?.at_us);
    try testing.expectEqual(null, lost.?.restart_at_us);
    try testing.expect(!lost.?.checkSilence(80 * second));
    try testing.expect(lost.?.checkSilence(81 * second));
    try testing.expect(!lost.?.checkSilence(82 * second));
    try testing.expect(onReport(&lost, 90 * second, &waits));
    try testing.expect(!lost.?.is_silent);
    var with_order = waits;
    with_order.order_id = .fromRandom(@splat(7));
    try testing.expect(onReport(&lost, 91 * second, &with_order));
    try testing.expect(!onReport(&lost, 92 * second, &with_order));
    try testing.expect(!onReport(&lost, 93 * second, &waits));
    try testing.expect(lost.?.order_id.?.eql(with_order.order_id.?));
}

test "the time of its restart is that of the first LOST, until it waits" {
    const second = std.time.us_per_s;
    var lost: ?LostDevice = null;
    try testing.expect(onReport(&lost, 0, &.{ .reason = .cache_lost, .restart_in_s = 60 }));
    try testing.expect(!onReport(&lost, second / 2, &.{
        .reason = .cache_lost,
        .restart_in_s = 60,
    }));
    try testing.expectEqual(60 * second, lost.?.restart_at_us.?);
    try testing.expect(onReport(&lost, 61 * second, &.{ .reason = .cache_lost }));
    try testing.expectEqual(null, lost.?.restart_at_us);
    // An earlier packet that arrives late moves no time back.
    try testing.expect(!onReport(&lost, 60 * second, &.{ .reason = .cache_lost }));
    try testing.expectEqual(61 * second, lost.?.heard_us);
}
