//! Path MTU discovery from the edge to a device (packages/proto/STREAM.md, "Packet sizes"; RFC
//! 8899). Producer: packets that arrive at the stream client; consumer: the fragment size of its
//! reads. The size follows from what arrives, never from ICMP: routers may send none, or an
//! attacker may forge it. Sizes are UDP payload in bytes, times are microseconds.

const std = @import("std");
const wire = @import("wire").stream;
const assert = std.debug.assert;

const PathMtu = @This();

/// For IP packets of 9000, 4080, 1500, 1400 (tunnels), 1256 and 576 bytes.
const rungs =
    [_]u16{
        wire.packet_size_max,
        4052,
        wire.packet_size_ethernet,
        1372,
        1228,
        wire.packet_size_min,
    };
/// Consecutive lost packets after which the size is doubted; one read contributes at most this
/// many.
const missed_max = 8;
const missed_of_read_max = 4;
const probe_wait_us_min = 250 * std.time.us_per_ms;
const probe_wait_us_max = 600 * std.time.us_per_s;
/// Interval from the first liveness probe to the second; doubled each time.
const liveness_wait_us_first = 100 * std.time.us_per_ms;

/// The size that reads request.
size: u16 = wire.packet_size_ethernet,
/// The largest size that device and edge could use.
size_max: u16 = wire.packet_size_ethernet,
missed: u8 = 0,
/// The smallest lost packet. If one as large arrives, size was not the cause.
missed_size: u16 = std.math.maxInt(u16),
/// The size is doubted: if small packets arrive now, it is too large. If nothing arrives, the edge
/// or the path is down.
doubted: bool = false,
liveness_at_us: u64 = 0,
liveness_wait_us: u64 = liveness_wait_us_first,
probe_at_us: u64 = 0,
probe_wait_us: u64 = probe_wait_us_min,
/// A larger size than that in use, and how often it was sent without an answer; 0: none was.
tried_size: u16 = 0,
tries: u16 = 0,
/// PROBEs of larger sizes without an answer, in this session.
probes_lost: u32 = 0,

/// A size that does not pass, as far as the device knows: `count` packets of it are lost.
pub const LostSize = struct { size: u16, count: u16 };

/// Null: none was tried in vain. The answer to the latest PROBE may still be on its way.
pub fn lostSize(path: *const PathMtu) ?LostSize {
    if (path.tries < 2) return null;
    assert(path.tried_size > path.size and path.tried_size <= path.size_max);
    return .{ .size = path.tried_size, .count = path.tries - 1 };
}

/// The packets of a read that did not arrive.
pub const MissingFragments = struct {
    count: u16 = 0,
    /// Size of the smallest of them, as a packet.
    size: u16 = 0,
};

/// Starts a session. `shown` is the size of the WELCOME that arrived.
pub fn begin(path: *PathMtu, now_us: u64, size_max: u16, shown: u16) void {
    assert(size_max >= wire.packet_size_min);
    path.size_max = size_max;
    path.size = @min(size_max, path.size, wire.packet_size_ethernet);
    path.onFullSize();
    path.probe_wait_us = probe_wait_us_min;
    path.probe_at_us = now_us + probe_wait_us_min;
    path.tried_size, path.tries = .{ 0, 0 };
    // The padded WELCOME is one, too.
    path.probes_lost = @intFromBool(shown < size_max and size_max > wire.packet_size_ethernet);
    path.onProven(shown);
    assert(path.size <= path.size_max);
}

/// A packet of this size has arrived: the path takes it.
pub fn onProven(path: *PathMtu, size: u16) void {
    const usable = @min(size, path.size_max);
    if (usable <= path.size) return;
    path.probes_lost -|= 1;
    if (usable >= path.tried_size) {
        path.tried_size, path.tries = .{ 0, 0 };
    }
    path.size = usable;
    path.onFullSize();
    path.probe_wait_us = probe_wait_us_min;
    // Probes the next size at once.
    path.probe_at_us = 0;
    assert(path.size <= path.size_max);
}

/// A fragment has arrived in a packet of this size.
pub fn onReceived(path: *PathMtu, size: u16) void {
    if (size >= path.missed_size) path.onFullSize();
}

/// A packet as large as reads request has arrived.
pub fn onFullSize(path: *PathMtu) void {
    path.missed = 0;
    path.missed_size = std.math.maxInt(u16);
    path.doubted = false;
}

/// A read timed out before any of it arrived. Packets of the smallest size pass every path and
/// reveal nothing about it.
pub fn onTimeout(path: *PathMtu, now_us: u64, missed: MissingFragments) void {
    if (missed.count == 0 or missed.size <= wire.packet_size_min) return;
    path.missed +|= @intCast(@min(missed.count, missed_of_read_max));
    path.missed_size = @min(path.missed_size, missed.size);
    if (path.missed < missed_max or path.doubted or path.size <= wire.packet_size_min) return;
    path.doubted = true;
    path.liveness_at_us = now_us;
    path.liveness_wait_us = liveness_wait_us_first;
}

/// A packet smaller than reads request has arrived. Returns true if the requested size does not
/// pass the path: everything must be requested again, in smaller fragments.
pub fn onSmall(path: *PathMtu, now_us: u64) bool {
    if (!path.doubted) return false;
    path.onFullSize();
    path.tried_size, path.tries = .{ path.size, missed_max + 1 };
    path.size = for (rungs) |rung| {
        if (rung < path.size) break rung;
    } else unreachable;
    assert(path.size >= wire.packet_size_min);
    path.probe_at_us = now_us + path.probe_wait_us;
    return true;
}

/// Returns when a size is probed next; null: never.
pub fn probeAt(path: *const PathMtu) ?u64 {
    if (path.doubted) return path.liveness_at_us;
    return if (path.size < path.size_max) path.probe_at_us else null;
}

/// Returns the size to probe now; null if none is due.
pub fn takeProbe(path: *PathMtu, now_us: u64) ?u16 {
    if (path.doubted) {
        if (now_us < path.liveness_at_us) return null;
        path.liveness_at_us = now_us + path.liveness_wait_us;
        path.liveness_wait_us = @min(path.liveness_wait_us * 2, probe_wait_us_max);
        return wire.packet_size_min;
    }
    if (path.size >= path.size_max or now_us < path.probe_at_us) return null;
    path.probe_at_us = now_us + path.probe_wait_us;
    path.probe_wait_us = @min(path.probe_wait_us * 2, probe_wait_us_max);
    var larger = path.size_max;
    for (rungs) |rung| {
        if (rung > path.size) larger = @min(larger, rung);
    }
    assert(larger > path.size);
    assert(larger <= path.size_max);
    if (path.tried_size != larger) {
        path.tried_size, path.tries = .{ larger, 0 };
    }
    path.tries +|= 1;
    path.probes_lost +|= 1;
    return larger;
}

const testing = std.testing;

test "a large WELCOME that arrives makes all reads large; after one that does not, probes follow" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 8972);
    try testing.expectEqual(8972, path.size);
    try testing.expectEqual(null, path.probeAt());
    path.begin(0, 8972, 168);
    try testing.expectEqual(1472, path.size);
    try testing.expectEqual(null, path.takeProbe(probe_wait_us_min - 1));
    try testing.expectEqual(4052, path.takeProbe(probe_wait_us_min).?);
    path.onProven(4052);
    // The next probe follows at once.
    try testing.expectEqual(8972, path.takeProbe(probe_wait_us_min + 1).?);
    path.onProven(8972);
    try testing.expectEqual(8972, path.size);
}

test "a path that drops large packets gets a smaller size, and is probed ever more rarely" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 8972);
    path.onTimeout(1000, .{ .count = 20, .size = path.size });
    try testing.expect(!path.onSmall(1500));
    path.onTimeout(2000, .{ .count = 20, .size = path.size });
    // A small packet probes whether anything arrives.
    try testing.expectEqual(wire.packet_size_min, path.takeProbe(2000).?);
    try testing.expectEqual(null, path.takeProbe(2001));
    try testing.expect(path.onSmall(3000));
    try testing.expectEqual(4052, path.size);
    path.onTimeout(3500, .{ .count = 4, .size = path.size });
    path.onFullSize();
    path.onTimeout(4000, .{ .count = 4, .size = path.size });
    try testing.expect(!path.onSmall(4500));
    path.onTimeout(5000, .{ .count = 4, .size = path.size });
    try testing.expect(path.onSmall(5000));
    try testing.expectEqual(1472, path.size);
    var probes: u32 = 0;
    var now_us: u64 = 5000;
    while (now_us < 3600 * std.time.us_per_s) : (now_us = path.probeAt().?) {
        if (path.takeProbe(now_us) != null) probes += 1;
    }
    try testing.expect(probes > 10 and probes < 25);
}

test "while nothing arrives the size stays, and the first packet to arrive decides" {
    var path: PathMtu = .{};
    path.begin(0, 1472, 168);
    for (0..20) |at| path.onTimeout(at, .{ .count = 9, .size = path.size });
    try testing.expectEqual(1472, path.size);
    path.onFullSize();
    try testing.expect(!path.onSmall(30));
    try testing.expectEqual(null, path.probeAt());
}

test "sizes go down to the smallest and no further, and back up within a few answers" {
    var path: PathMtu = .{};
    path.begin(0, 1472, 168);
    for (0..20) |at| {
        path.onTimeout(at, .{ .count = 9, .size = path.size });
        path.onTimeout(at, .{ .count = 9, .size = path.size });
        // Small packets reveal nothing about large ones.
        path.onTimeout(at, .{ .count = 0, .size = path.size });
        _ = path.onSmall(at);
    }
    try testing.expectEqual(wire.packet_size_min, path.size);
    var now_us: u64 = 100;
    for (0..4) |_| {
        now_us = @max(now_us, path.probeAt() orelse break);
        path.onProven(path.takeProbe(now_us).?);
    }
    try testing.expectEqual(1472, path.size);
}

test "a lost short packet is doubted like a large one, unless one as large arrives" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 8972);
    // Reads of 4 KiB, each one short fragment, on a path that takes 1500 bytes.
    const short: MissingFragments = .{ .count = 1, .size = 4096 + 32 };
    for (0..7) |at| {
        path.onTimeout(at, short);
        path.onReceived(1056);
    }
    try testing.expect(!path.onSmall(8));
    path.onReceived(short.size);
    for (0..7) |at| path.onTimeout(at, short);
    try testing.expect(!path.onSmall(8));
    path.onTimeout(9, short);
    try testing.expect(path.onSmall(9));
    try testing.expectEqual(4052, path.size);
}

test "a proven size ends the doubt, and only one that is larger changes it" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 168);
    path.onTimeout(10, .{ .count = 4, .size = 1472 });
    path.onTimeout(10, .{ .count = 4, .size = 1472 });
    try testing.expectEqual(10, path.probeAt().?);
    path.onProven(1472);
    try testing.expect(path.doubted);
    path.onProven(4052);
    try testing.expect(!path.doubted);
    try testing.expectEqual(0, path.missed);
    try testing.expectEqual(4052, path.size);
    try testing.expectEqual(0, path.probeAt().?);
    path.onProven(60_000);
    try testing.expectEqual(8972, path.size);
}

test "a size is doubted after eight lost packets, of which one read counts four" {
    var path: PathMtu = .{};
    path.begin(0, 1472, 168);
    path.onTimeout(1, .{ .count = 100, .size = 1472 });
    path.onTimeout(2, .{ .count = 3, .size = 1472 });
    try testing.expect(!path.doubted);
    path.onTimeout(3, .{ .count = 1, .size = 1472 });
    try testing.expect(path.doubted);
    // Probes for life: at once, then after 100 ms, 200 ms, and so on.
    for ([_]u64{ 3, 100_003, 300_003, 700_003 }) |at_us| {
        try testing.expectEqual(at_us, path.probeAt().?);
        try testing.expectEqual(null, path.takeProbe(at_us - 1));
        try testing.expectEqual(wire.packet_size_min, path.takeProbe(at_us).?);
    }
    // A lost packet of the smallest size says nothing.
    path.onFullSize();
    for (0..4) |_| path.onTimeout(4, .{ .count = 4, .size = wire.packet_size_min });
    try testing.expect(!path.doubted);
}

test "a new session starts in Ethernet's size, or in the smaller one that was found before" {
    var path: PathMtu = .{ .size = 4052 };
    path.begin(7, 8972, 168);
    try testing.expectEqual(1472, path.size);
    try testing.expectEqual(7 + probe_wait_us_min, path.probeAt().?);
    path.size = 1372;
    path.begin(7, 8972, 168);
    try testing.expectEqual(1372, path.size);
    path.begin(7, 1228, 168);
    try testing.expectEqual(1228, path.size);
    try testing.expectEqual(null, path.probeAt());
}

test "a size is probed after twice the time each time, and another size or session begins anew" {
    var path: PathMtu = .{};
    path.begin(1000, 8972, 168);
    var at_us: u64 = 1000 + probe_wait_us_min;
    var wait_us: u64 = probe_wait_us_min;
    for (0..16) |_| {
        try testing.expectEqual(at_us, path.probeAt().?);
        try testing.expectEqual(null, path.takeProbe(at_us - 1));
        try testing.expectEqual(4052, path.takeProbe(at_us).?);
        at_us += wait_us;
        wait_us = @min(2 * wait_us, 600 * std.time.us_per_s);
    }
    // A smaller size is no reason to hurry.
    for (0..2) |_| path.onTimeout(5, .{ .count = 4, .size = 1472 });
    try testing.expect(path.onSmall(7));
    try testing.expectEqual(1372, path.size);
    try testing.expectEqual(7 + wait_us, path.probeAt().?);
    path.onProven(4052);
    try testing.expectEqual(8972, path.takeProbe(9).?);
    try testing.expectEqual(9 + probe_wait_us_min, path.probeAt().?);
    _ = path.takeProbe(path.probeAt().?);
    path.missed = 7;
    path.begin(1000, 8972, 168);
    _ = path.takeProbe(1000 + probe_wait_us_min);
    try testing.expectEqual(1000 + 2 * probe_wait_us_min, path.probeAt().?);
    // What was missed in the session before is forgotten.
    path.onTimeout(5, .{ .count = 1, .size = 1472 });
    try testing.expect(!path.doubted);
}

test "a size that was sent twice in vain is lost, until it or a larger one arrives" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 168);
    try testing.expectEqual(4052, path.takeProbe(probe_wait_us_min).?);
    try testing.expectEqual(null, path.lostSize());
    for (1..4) |count| {
        try testing.expectEqual(4052, path.takeProbe(path.probeAt().?).?);
        const lost: LostSize = .{ .size = 4052, .count = @intCast(count) };
        try testing.expectEqual(lost, path.lostSize());
    }
    try testing.expectEqual(1 + 4, path.probes_lost);
    path.onProven(1472);
    try testing.expectEqual(3, path.lostSize().?.count);
    path.onProven(4052);
    try testing.expectEqual(null, path.lostSize());
    try testing.expectEqual(1 + 3, path.probes_lost);
    try testing.expectEqual(8972, path.takeProbe(path.probeAt().?).?);
    try testing.expectEqual(null, path.lostSize());
    path.begin(0, 8972, 8972);
    try testing.expectEqual(0, path.probes_lost);
}

test "a size that reads had to give up is lost as often as packets were missed" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 8972);
    for (0..2) |_| path.onTimeout(1, .{ .count = 4, .size = 8972 });
    try testing.expectEqual(null, path.lostSize());
    try testing.expect(path.onSmall(2));
    try testing.expectEqual(LostSize{ .size = 8972, .count = missed_max }, path.lostSize());
    for (0..2) |_| path.onTimeout(3, .{ .count = 4, .size = 4052 });
    try testing.expect(path.onSmall(4));
    try testing.expectEqual(LostSize{ .size = 4052, .count = missed_max }, path.lostSize());
    path.onProven(8972);
    try testing.expectEqual(null, path.lostSize());
}

test "a path that takes no more than its limit is probed for that, and for each size below it" {
    var path: PathMtu = .{};
    path.begin(0, 3000, 168);
    try testing.expectEqual(3000, path.takeProbe(probe_wait_us_min).?);
    path.begin(0, 1372, 168);
    path.size = 576 - 28;
    path.probe_at_us = 0;
    for ([_]u16{ 1228, 1372 }) |size| {
        try testing.expectEqual(size, path.takeProbe(0).?);
        path.onProven(size);
    }
    try testing.expectEqual(null, path.takeProbe(0));
}

test "only a packet as large as the smallest lost one shows that its size passes" {
    var path: PathMtu = .{};
    path.begin(0, 8972, 8972);
    const short: MissingFragments = .{ .count = 1, .size = 4128 };
    for (0..8) |_| {
        path.onReceived(short.size - 1);
        try testing.expect(!path.doubted);
        path.onTimeout(1, short);
    }
    try testing.expect(path.doubted);
    path.onReceived(short.size);
    try testing.expect(!path.doubted);
    // From now on it says nothing about larger ones.
    for (0..2) |_| {
        try testing.expect(!path.doubted);
        path.onTimeout(1, .{ .count = 4, .size = 8972 });
        path.onReceived(short.size);
    }
    try testing.expect(path.doubted);
    // The next doubt probes for life from the first interval on.
    for ([_]u64{ 1, 100_001 }) |at_us| _ = path.takeProbe(at_us).?;
    path.onFullSize();
    for (0..2) |_| path.onTimeout(7, .{ .count = 4, .size = 8972 });
    for ([_]u64{ 7, 100_007 }) |at_us| {
        try testing.expectEqual(at_us, path.probeAt().?);
        _ = path.takeProbe(at_us).?;
    }
}

test "the smallest size is not doubted, whatever an earlier read loses" {
    var path: PathMtu = .{};
    path.begin(0, 1472, 168);
    path.size = wire.packet_size_min;
    for (0..4) |_| path.onTimeout(1, .{ .count = 4, .size = 1472 });
    try testing.expect(!path.onSmall(2));
    try testing.expectEqual(wire.packet_size_min, path.size);
}
