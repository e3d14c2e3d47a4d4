//! Where the time of a boot's reads went (packages/proto/STREAM.md, "Where time went"), until the boot is over: what the edge measures
//! of each READ that comes for the first time, and what the device says of its own in REPORT. Of fixed size, for every boot.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;

const Histogram = base.DurationHistogram;

pub const BootReadTimes = @This();

/// From the READ to its bytes in hand: what was in memory, and what waited for a disk.
warm: Histogram = .{},
cold: Histogram = .{},
/// From there until the kernel had the last packet.
send: Histogram = .{},
/// The device's.
fetch: Histogram = .{},
wait: Histogram = .{},
turnaround: Histogram = .{},

/// Of one READ.
pub const Measured = struct {
    is_cold: bool,
    /// µs.
    storage_us: u64,
    send_us: u64,
};

pub fn note(times: *BootReadTimes, measured: Measured) void {
    const storage = if (measured.is_cold) &times.cold else &times.warm;
    storage.note(measured.storage_us);
    times.send.note(measured.send_us);
}

/// What the device says replaces what it said before. True: it says more than before.
pub fn take(times: *BootReadTimes, said: wire.ReadTimes) bool {
    var is_more = false;
    var entries = said.iterate();
    while (entries.next()) |entry| {
        const known = switch (entry.kind) {
            .fetch => &times.fetch,
            .wait => &times.wait,
            .turnaround => &times.turnaround,
        };
        is_more = is_more or entry.histogram.count() > known.count();
        known.* = entry.histogram;
    }
    return is_more;
}

pub fn isEmpty(times: *const BootReadTimes) bool {
    inline for (@typeInfo(BootReadTimes).@"struct".field_names) |name| {
        if (@field(times, name).used() != null) return false;
    }
    return true;
}

const testing = std.testing;

test "warm and cold are told apart, and the device's newest word counts" {
    var times: BootReadTimes = .{};
    try testing.expect(times.isEmpty());
    times.note(.{ .is_cold = false, .storage_us = 3, .send_us = 40 });
    times.note(.{ .is_cold = true, .storage_us = 3000, .send_us = 50 });
    try testing.expectEqual(1, times.warm.count());
    try testing.expectEqual(3000, times.cold.sum_us);
    try testing.expectEqual(90, times.send.sum_us);
    var said: Histogram = .{};
    said.note(700);
    var list: wire.ReadTimeList = .empty;
    list.append(.fetch, &said);
    try testing.expect(times.take(list.view()));
    try testing.expect(!times.take(list.view()));
    try testing.expectEqual(700, times.fetch.sum_us);
    try testing.expect(!times.take(.{}));
    try testing.expect(!times.isEmpty());
}
