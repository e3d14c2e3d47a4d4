//! Devices that this edge refused to fail over, since another edge keeps their writes
//! (packages/proto/STREAM.md, "Fail-over"; report `waiting` of UPLINK.md). Remembers the reported
//! ones, so that repeated HELLOs, after a lost REFUSE or with an edge that comes and goes, cause
//! one report. Pure and of fixed size.

const std = @import("std");
const base = @import("base");

pub const WaitingDevices = @This();

told: [reported_max]ReportedBoot = @splat(.{}),
/// The next slot: that of the least recently reported device.
next: u16 = 0,

const ReportedBoot = struct { boot_id: base.Uuid = .zero, at_us: u64 = 0 };

const reported_max = 256;
/// A device that tries again after this has returned to its own edge, and lost it again.
const report_interval_us_min = 60 * std.time.us_per_s;

/// The contents of the report.
pub const Waiting = struct {
    boot_id: base.Uuid,
    mac: base.Mac,
    /// The edge that keeps the device's writes.
    edge: base.Uuid,
    started_unix_ms: u64,
    /// When it tried here, since the boot's start.
    at_us: u64,
};

/// Tells whether to report the boot now; it then counts as reported.
pub fn take(waiting: *WaitingDevices, now_us: u64, boot_id: base.Uuid) bool {
    for (&waiting.told) |*told| {
        if (!told.boot_id.eql(boot_id)) continue;
        if (now_us -| told.at_us < report_interval_us_min) return false;
        told.at_us = now_us;
        return true;
    }
    assert(waiting.next < reported_max);
    waiting.told[waiting.next] = .{ .boot_id = boot_id, .at_us = now_us };
    waiting.next = (waiting.next + 1) % reported_max;
    return true;
}

const testing = std.testing;
const assert = std.debug.assert;

fn testId(number: u16) base.Uuid {
    var bytes: [16]u8 = @splat(1);
    std.mem.writeInt(u16, bytes[0..2], number, .big);
    return .fromRandom(bytes);
}

test "a device that keeps trying is reported once a minute" {
    var waiting: WaitingDevices = .{};
    try testing.expect(waiting.take(0, testId(1)));
    try testing.expect(!waiting.take(100, testId(1)));
    try testing.expect(waiting.take(100, testId(2)));
    try testing.expect(!waiting.take(report_interval_us_min - 1, testId(1)));
    try testing.expect(waiting.take(report_interval_us_min, testId(1)));
    try testing.expect(!waiting.take(report_interval_us_min + 1, testId(1)));
}

test "any number of devices may come, and only the newest are remembered" {
    var waiting: WaitingDevices = .{};
    for (0..reported_max + 1) |number|
        try testing.expect(waiting.take(5, testId(@intCast(number))));
    try testing.expect(!waiting.take(5, testId(reported_max)));
    try testing.expect(waiting.take(5, testId(0)));
}
