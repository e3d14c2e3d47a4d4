//! Devices that asked this edge to go on with their boots and were refused, since what they have written is at another edge
//! (packages/proto/STREAM.md, "Fail-over"; report `waiting` of UPLINK.md). Keeps whom it has told of, so that hellos that come again, with a
//! REFUSE that was lost or an edge that comes and goes, are one report. Pure and of fixed size.

const std = @import("std");
const base = @import("base");

pub const WaitingDevices = @This();

told: [told_max]Told = @splat(.{}),
/// Where the next one goes: over the one that was told of longest ago.
next: u16 = 0,

const Told = struct { boot_id: base.Uuid = .zero, at_us: u64 = 0 };

pub const told_max = 256;
/// A device that asks once more after this has gone back to its own edge, and lost it again.
pub const told_again_us_min = 60 * std.time.us_per_s;

/// What the report says.
pub const Waiting = struct {
    boot_id: base.Uuid,
    mac: base.Mac,
    /// Keeps what the device has written.
    edge: base.Uuid,
    started_unix_ms: u64,
    /// When it asked here, since the boot's begin.
    at_us: u64,
};

/// Whether the boot is to be reported now; it counts as told then.
pub fn take(waiting: *WaitingDevices, now_us: u64, boot_id: base.Uuid) bool {
    for (&waiting.told) |*told| {
        if (!told.boot_id.eql(boot_id)) continue;
        if (now_us -| told.at_us < told_again_us_min) return false;
        told.at_us = now_us;
        return true;
    }
    waiting.told[waiting.next] = .{ .boot_id = boot_id, .at_us = now_us };
    waiting.next = (waiting.next + 1) % told_max;
    return true;
}

const testing = std.testing;

fn testId(number: u16) base.Uuid {
    var bytes: [16]u8 = @splat(1);
    std.mem.writeInt(u16, bytes[0..2], number, .big);
    return .fromRandom(bytes);
}

test "a device that asks again and again is told of once a minute" {
    var waiting: WaitingDevices = .{};
    try testing.expect(waiting.take(0, testId(1)));
    try testing.expect(!waiting.take(100, testId(1)));
    try testing.expect(waiting.take(100, testId(2)));
    try testing.expect(!waiting.take(told_again_us_min - 1, testId(1)));
    try testing.expect(waiting.take(told_again_us_min, testId(1)));
    try testing.expect(!waiting.take(told_again_us_min + 1, testId(1)));
}

test "there is no end to the devices, and no room for more than the newest" {
    var waiting: WaitingDevices = .{};
    for (0..told_max + 1) |number| try testing.expect(waiting.take(5, testId(@intCast(number))));
    try testing.expect(!waiting.take(5, testId(told_max)));
    try testing.expect(waiting.take(5, testId(0)));
}
