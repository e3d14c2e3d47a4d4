//! Counts the read-ahead of one boot as its edge sees it (docs/reference/boot-profile.md), until
//! the boot is over: from READs that arrive for the first time, and from the device's USED reports.

const std = @import("std");
const wire = @import("wire").stream;

pub const BootReadAhead = @This();

/// A profile existed for the device when its stream opened.
had_profile: bool = false,
/// Bytes requested ahead of demand.
asked_bytes: u64 = 0,
/// Bytes of those that the device's system consumed, by its own report.
used_bytes: u64 = 0,
/// READs that the device's system waited for.
waited_reads: u64 = 0,

pub fn onRead(of: *BootReadAhead, kind: wire.ReadKind, length: u32) void {
    switch (kind) {
        .demand => of.waited_reads += 1,
        .ahead => of.asked_bytes += length,
        .profile => {},
    }
}

/// Never exceeds the bytes requested, whatever the device reports.
pub fn onUsed(of: *BootReadAhead, units: wire.profile.Units) void {
    for (0..units.count()) |index| {
        const blocks = units.at(@intCast(index)).blocks;
        of.used_bytes += @as(u64, @popCount(blocks)) * wire.profile.block_size;
    }
    of.used_bytes = @min(of.used_bytes, of.asked_bytes);
    assert(of.used_bytes <= of.asked_bytes);
}

const testing = std.testing;
const assert = std.debug.assert;

test "a device never used more than it requested, whatever it reports" {
    var of: BootReadAhead = .{};
    of.onRead(.ahead, 8192);
    of.onRead(.demand, 512);
    of.onRead(.profile, 512);
    var bytes: [16]u8 = undefined;
    (wire.profile.Unit{ .index = 0, .blocks = 1 }).encode(bytes[0..8]);
    (wire.profile.Unit{ .index = 9, .blocks = 0xff }).encode(bytes[8..]);
    of.onUsed(.{ .bytes = bytes[0..8] });
    try testing.expectEqual(
        BootReadAhead{ .asked_bytes = 8192, .used_bytes = 4096, .waited_reads = 1 },
        of,
    );
    of.onUsed(.{ .bytes = &bytes });
    try testing.expectEqual(8192, of.used_bytes);
}
