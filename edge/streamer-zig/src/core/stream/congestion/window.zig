//! Congestion control of a stream at its receiver: cwnd, ssthresh, loss detection and pacing. The
//! device controls the rate because it sends the requests: the window limits the bytes requested
//! and not yet received. It has no clock and no socket; its caller reports what was sent, arrived
//! or was lost. All times are µs of one monotonic clock.
//!
//!     bytes = window.sendableBytes(now_us, wanted);
//!     if (bytes > 0) { read.send_record = window.onSend(now_us, bytes); send(...); }
//!     window.onAck(now_us, bytes, &read.send_record, .{ .is_first = ..., .is_last = ... });
//!     window.onLoss(bytes, &read.send_record, packets);
//!     sleep no longer than until window.opensAt()
//!
//! - Slow start (RFC 5681, section 3.1) until a loss, or until the wait for first packets grows
//!   while the window fills (RFC 9406, section 4.2).
//! - Congestion avoidance: one fragment more per round trip (RFC 5681), or an eighth of the window
//!   while nothing queues in the network: devices need to converge only where they share a
//!   bottleneck.
//! - Reduction by 3/10 (RFC 9438, section 4.6), at most once per window (RFC 9002, section 7.3.2),
//!   and only for losses that mean congestion: three or more, and more than 1/32 of the bytes in
//!   flight; or any loss while packets wait about as long as they did at the previous congestion. A
//!   cable with a bad contact loses 1 % without a queue and must not slow its machine down.
//! - Reduction by a quarter when packets wait nearly as long as they did when the network was full,
//!   so that it drops few. Until that wait is known, only a queue of more than 0.75 ms is too long,
//!   and only for a large window: the cause may be slow storage at the edge.
//! - Requests are paced by the delivery rate (RFC 9002, section 7.7): an edge answers at the speed
//!   of its own network card, and a burst of 1 MiB exceeds the buffer of a switch in front of a
//!   slower port.

const std = @import("std");
const assert = std.debug.assert;
const CongestionWindow = @This();

pub const Options = struct {
    /// Upper bound of the data in one packet, in bytes.
    fragment_size: u32,
    /// Upper bound of the window, in bytes.
    bytes_max: u32,
};

/// Bytes requested before anything is known, and after a pause without pacing: the buffer that the
/// smallest switches have per port.
const burst_bytes_min = 64 << 10;
/// Faster network cards need no larger burst.
const burst_bytes_max = 256 << 10;
/// Duration of a burst, where that is more than `burst_bytes_min`.
const burst_us = 256;
const fragments_min = 4;
/// Lower bound of the window: one read that a system waits for, and a few fragments of others.
const cwnd_bytes_min = 32 << 10;
/// Losses within one window that mean congestion if they also exceed 1/32 of it.
const lost_min = 3;
const lost_share = 32;
/// An extra wait of a quarter plus this is no queue: machines have other work, too.
const noise_us = 100;
/// A longer queue is too long before the network's capacity is known, for windows larger than that.
const long_queue_us = 750;
const long_queue_bytes = 128 << 10;
/// After this many full rounds, at most twice as many, the highest delivery rate expires.
const rate_rounds = 8;
/// After this long the shortest round trip is measured again: the path may have changed.
const round_trip_us_age = 30 * std.time.us_per_s;
/// Timeouts without anything received in between, after which the path is treated as a new one.
const timeouts_max = 2;
/// A request is split into parts of at least a quarter of the window, within these limits, in
/// bytes.
pub const part_bytes_min = 4 << 10;
const part_bytes_max = 32 << 10;

options: Options,
/// Upper bound of `in_flight_bytes`.
cwnd_bytes: u64,
/// Bytes requested and not yet received.
in_flight_bytes: u64 = 0,
is_slow_start: bool = true,
/// Where slow start ends after a timeout.
ssthresh_bytes: u64 = std.math.maxInt(u64),
/// The newest sample.
last_wait_us: u64 = 0,
/// The wait at which the network was full; 0: unknown.
full_wait_us: u64 = 0,
/// The effect of the previous round's change of the window becomes visible in this round.
is_settling: bool = false,

/// The state before the last reduction, until that is known to be justified; null: it is, or
/// nothing depends on it any more.
undo: ?Reduction = null,

/// Serial of the next request.
serial: u64 = 0,
/// Losses of earlier requests have been answered by a reduction.
reduced_at_serial: u64 = 0,
/// Bytes of all requests.
delivered: u64 = 0,
delivered_at_us: u64 = 0,
silences: u8 = 0,
/// Timeouts of earlier requests have been counted.
timed_out_at_serial: u64 = 0,

round: Round = .{},
/// Shortest wait for a first packet in the newest round, in µs; 0: not measured yet.
wait_us: u64 = 0,
/// µs; 0: not measured yet. The minimum of two periods counts.
round_trip_us: [2]u64 = @splat(0),
round_trip_since_us: u64 = 0,
/// Bytes per second, the maximum of two periods; 0: not measured yet.
rate: [2]u64 = @splat(0),
rate_age: u8 = 0,

/// Bytes that pacing lets go now; below 0 after a request that was larger.
credit: i64 = burst_bytes_min,
credit_at_us: u64 = 0,

/// A round lasts from one request to the first answer to a later one.
const Round = struct {
    /// An answer to this request ends the round.
    last_serial: u64 = 0,
    delivered: u64 = 0,
    /// Packets.
    lost: u32 = 0,
    has_wait: bool = false,
    /// The window or its pacing held something back, in this and the previous round.
    was_full: bool = false,
    was_full_before: bool = false,
};

const Reduction = struct {
    cwnd_bytes: u64,
    is_slow_start: bool,
    full_wait_us: u64,
    /// Packets considered lost, and how many of them arrived after all.
    lost: u32,
    late: u32 = 0,
};

/// Kept with a request until its answer.
pub const SendRecord = struct {
    serial: u64 = 0,
    sent_at_us: u64 = 0,
    /// Bytes delivered before it was sent.
    delivered: u64 = 0,
};

pub const Delivery = struct {
    /// The first packet of the answer to this request and to no earlier one (Karn's algorithm, RFC
    /// 6298, section 3).
    is_first: bool,
    /// Nothing of this request is in flight any more.
    is_last: bool,
};

pub fn init(options: Options) CongestionWindow {
    assert(options.fragment_size > 0);
    assert(options.bytes_max >= fragments_min * options.fragment_size);
    return .{ .options = options, .cwnd_bytes = @min(burst_bytes_min, options.bytes_max) };
}

/// Returns how much of a request of `bytes` may be sent now: all of it, a part that is worth a
/// packet, or nothing. Something always is while nothing is in flight.
pub fn sendableBytes(window: *CongestionWindow, now_us: u64, bytes: u64) u64 {
    assert(bytes > 0);
    window.refill(now_us);
    const free = window.cwnd_bytes -| window.in_flight_bytes;
    const is_open = window.credit > 0 or window.in_flight_bytes == 0;
    if (is_open and bytes <= free) return bytes;
    window.round.was_full = true;
    const least = window.partBytes(bytes);
    if (window.in_flight_bytes == 0) return @max(free, least);
    return if (is_open and free >= least) free else 0;
}

/// Returns how much of a request of `bytes` the window, without its pacing, holds now.
pub fn freeBytes(window: *const CongestionWindow, bytes: u64) u64 {
    return @min(bytes, window.cwnd_bytes -| window.in_flight_bytes);
}

/// Returns the smallest part of a request of `bytes` that is worth a packet of its own. Without
/// parts a large request would wait until the window is empty; with parts of any size an edge would
/// get one request per fragment.
pub fn partBytes(window: *const CongestionWindow, bytes: u64) u64 {
    return @min(bytes, std.math.clamp(window.cwnd_bytes / 4, part_bytes_min, part_bytes_max));
}

/// Returns when pacing allows a request of `bytes`, if the window does; null: only an answer opens
/// it.
pub fn opensAt(window: *const CongestionWindow, bytes: u64) ?u64 {
    if (window.in_flight_bytes == 0) return window.credit_at_us;
    if (window.in_flight_bytes + window.partBytes(bytes) > window.cwnd_bytes) return null;
    if (window.credit > 0 or window.deliveryRate() == 0) return window.credit_at_us;
    const missing: u64 = @intCast(1 - window.credit);
    return window.credit_at_us + missing * std.time.us_per_s / window.pacingRate() + 1;
}

/// `bytes` are requested, for the first time or again.
pub fn onSend(window: *CongestionWindow, now_us: u64, bytes: u64) SendRecord {
    assert(bytes > 0);
    window.refill(now_us);
    // After a pause, the time until now belongs to no round.
    if (window.in_flight_bytes == 0) window.beginRound();
    window.in_flight_bytes += bytes;
    window.credit -= @intCast(bytes);
    defer window.serial += 1;
    return .{ .serial = window.serial, .sent_at_us = now_us, .delivered = window.delivered };
}

/// `bytes` of a request have arrived, each counted once.
pub fn onAck(
    window: *CongestionWindow,
    now_us: u64,
    bytes: u64,
    record: *const SendRecord,
    delivery: Delivery,
) void {
    assert(bytes <= window.in_flight_bytes);
    window.in_flight_bytes -= bytes;
    window.silences = 0;
    window.delivered += bytes;
    window.delivered_at_us = now_us;
    const round = &window.round;
    round.delivered += bytes;
    const took_us = @max(1, now_us -| record.sent_at_us);
    if (delivery.is_first) {
        window.wait_us = if (round.has_wait) @min(window.wait_us, took_us) else took_us;
        round.has_wait = true;
        window.last_wait_us = took_us;
        window.onRoundTrip(now_us, took_us);
        // One sample is enough: an end that comes too early costs a few round trips.
        if (window.isLong(took_us)) window.is_slow_start = false;
    }
    if (delivery.is_last)
        window.onRate((window.delivered - record.delivered) * std.time.us_per_s / took_us);
    if (window.is_slow_start and (round.was_full or round.was_full_before)) window.grow(bytes);
    if (record.serial >= round.last_serial) window.endRound();
}

/// `bytes` of a request will not arrive: `packets` were lost, 1 if it may be the request itself.
/// They are requested again under another record, or never.
pub fn onLoss(window: *CongestionWindow, bytes: u64, record: *const SendRecord, packets: u32) void {
    assert(bytes <= window.in_flight_bytes);
    const in_flight_fragments =
        (window.in_flight_bytes + window.round.delivered) / window.options.fragment_size;
    window.in_flight_bytes -= bytes;
    if (record.serial < window.reduced_at_serial) return;
    window.round.lost +|= packets;
    const lost = window.round.lost;
    const is_many = lost >= lost_min and @as(u64, lost) * lost_share > in_flight_fragments;
    const is_full = window.full_wait_us != 0 and window.wait_us >= window.waitLimit();
    if (!is_many and !is_full) return;
    window.undo = .{
        .cwnd_bytes = window.cwnd_bytes,
        .is_slow_start = window.is_slow_start,
        .full_wait_us = window.full_wait_us,
        .lost = lost,
    };
    if (is_many and window.isLong(window.last_wait_us)) window.full_wait_us = window.last_wait_us;
    window.reduce();
}

/// A packet considered lost has arrived. If half of them do, they were only reordered (RFC 4015,
/// section 3.2; RFC 3708).
pub fn onSpuriousLoss(window: *CongestionWindow) void {
    const before = &(window.undo orelse return);
    before.late += 1;
    if (before.late * 2 < before.lost) return;
    window.cwnd_bytes = @max(window.cwnd_bytes, before.cwnd_bytes);
    window.is_slow_start = before.is_slow_start;
    window.full_wait_us = before.full_wait_us;
    window.undo = null;
    assert(window.cwnd_bytes <= window.options.bytes_max);
}

/// Counts `bytes` that an earlier window had in flight: their fate says nothing about this one.
pub fn onSentBefore(window: *CongestionWindow, bytes: u64) SendRecord {
    window.in_flight_bytes += bytes;
    window.serial = @max(window.serial, 1);
    window.reduced_at_serial = 1;
    return .{};
}

/// A request timed out, before `onLoss` for it. The second time in a row that nothing has arrived
/// since, everything starts over (RFC 9002, section 7.6.2).
pub fn onTimeout(window: *CongestionWindow, record: *const SendRecord) void {
    assert(record.serial <= window.serial);
    if (record.serial < window.timed_out_at_serial or window.delivered_at_us > record.sent_at_us)
        return;
    window.timed_out_at_serial = window.serial;
    window.silences += 1;
    if (window.silences < timeouts_max) return;
    window.ssthresh_bytes = @max(window.cwnd_bytes / 2, window.cwndMin());
    window.cwnd_bytes = window.cwndMin();
    window.is_slow_start = true;
    window.rate = @splat(0);
    window.round_trip_us = @splat(0);
    window.credit = @min(window.credit, burst_bytes_min);
    window.wait_us = 0;
    window.silences = 0;
    assert(window.cwnd_bytes <= window.ssthresh_bytes);
    window.beginRound();
}

/// `bytes` of a request are no longer awaited, and were not lost.
pub fn onAbandoned(window: *CongestionWindow, bytes: u64) void {
    assert(bytes <= window.in_flight_bytes);
    window.in_flight_bytes -= bytes;
}

/// Bytes per second; 0: unknown.
fn deliveryRate(window: *const CongestionWindow) u64 {
    return @max(window.rate[0], window.rate[1]);
}

/// Time from a request to its first packet without queueing, in µs; 0: unknown.
pub fn roundTrip(window: *const CongestionWindow) u64 {
    const now, const before = window.round_trip_us;
    return if (before == 0) now else @min(now, before);
}

fn onRoundTrip(window: *CongestionWindow, now_us: u64, sample_us: u64) void {
    assert(sample_us > 0);
    if (now_us -| window.round_trip_since_us >= round_trip_us_age) {
        window.round_trip_us[1] = window.round_trip_us[0];
        window.round_trip_us[0] = 0;
        window.round_trip_since_us = now_us;
    }
    const shortest = &window.round_trip_us[0];
    shortest.* = if (shortest.* == 0) sample_us else @min(shortest.*, sample_us);
    assert(shortest.* <= sample_us);
}

/// Tells whether first packets wait behind others in the network.
fn isQueued(window: *const CongestionWindow) bool {
    return window.isLong(window.wait_us);
}

fn isLong(window: *const CongestionWindow, wait_us: u64) bool {
    const least = window.roundTrip();
    return wait_us > least + least / 4 + noise_us;
}

fn endRound(window: *CongestionWindow) void {
    if (window.round.was_full) {
        window.growForRound();
        window.rate_age += 1;
        if (window.rate_age == rate_rounds) {
            window.rate_age = 0;
            window.rate[1] = window.rate[0];
            window.rate[0] = 0;
        }
    }
    window.beginRound();
    assert(window.rate_age < rate_rounds);
}

fn growForRound(window: *CongestionWindow) void {
    if (window.is_slow_start) {
        window.is_slow_start = window.cwnd_bytes < window.ssthresh_bytes;
        return;
    }
    if (!window.isQueued()) return window.grow(window.cwnd_bytes / 8);
    const is_known = window.full_wait_us != 0;
    // The network may have gained capacity.
    if (is_known) window.full_wait_us += window.full_wait_us / 256 + 1;
    const least = if (is_known) window.cwndMin() else long_queue_bytes;
    if (window.wait_us <= window.waitLimit() or window.cwnd_bytes <= least)
        return window.grow(window.options.fragment_size);
    window.is_settling = !window.is_settling;
    if (window.is_settling)
        window.cwnd_bytes = @max(window.cwnd_bytes - window.cwnd_bytes / 4, least);
    assert(window.cwnd_bytes >= window.cwndMin());
}

/// The longest wait for a first packet, in µs, at which the window may grow. Devices that have
/// never seen an empty network overestimate the shortest wait, so it only counts where most of the
/// wait is the path.
fn waitLimit(window: *const CongestionWindow) u64 {
    const least = window.roundTrip();
    const full = window.full_wait_us;
    if (full == 0) return least + long_queue_us;
    return @max(full - full / 8, least + (full -| least) / 2);
}

fn beginRound(window: *CongestionWindow) void {
    const was_full = window.round.was_full;
    window.round = .{ .last_serial = window.serial, .was_full_before = was_full };
}

/// A sample that the window did not limit is only a lower bound of the path's capacity.
fn onRate(window: *CongestionWindow, sample: u64) void {
    const was_full = window.round.was_full or window.round.was_full_before;
    if (!was_full and sample < window.deliveryRate()) return;
    window.rate[0] = @max(window.rate[0], sample);
}

fn grow(window: *CongestionWindow, bytes: u64) void {
    window.cwnd_bytes = @min(window.cwnd_bytes + bytes, window.options.bytes_max);
    assert(window.cwnd_bytes <= window.options.bytes_max);
}

fn reduce(window: *CongestionWindow) void {
    window.cwnd_bytes = @max(window.cwnd_bytes * 7 / 10, window.cwndMin());
    window.is_slow_start = false;
    window.reduced_at_serial = window.serial;
    window.beginRound();
    assert(window.cwnd_bytes >= window.cwndMin());
    assert(window.cwnd_bytes <= window.options.bytes_max);
}

fn cwndMin(window: *const CongestionWindow) u64 {
    return @min(
        cwnd_bytes_min + fragments_min * window.options.fragment_size,
        window.options.bytes_max,
    );
}

/// The rate of requests in bytes per second: above the delivery rate, so that a faster path is
/// noticed.
fn pacingRate(window: *const CongestionWindow) u64 {
    const rate = window.deliveryRate();
    assert(rate > 0);
    return if (window.is_slow_start) 2 * rate else rate + rate / 4;
}

fn refill(window: *CongestionWindow, now_us: u64) void {
    const passed_us = @min(now_us -| window.credit_at_us, std.time.us_per_s);
    const rate = window.deliveryRate();
    const most =
        std.math.clamp(rate * burst_us / std.time.us_per_s, burst_bytes_min, burst_bytes_max);
    if (rate == 0) {
        assert(most <= burst_bytes_max);
        window.credit_at_us = now_us;
        window.credit = @intCast(most);
        return;
    }
    // A fraction of a byte is not lost: the time is taken only with at least one byte.
    const earned = window.pacingRate() *| passed_us / std.time.us_per_s;
    if (earned == 0) return;
    window.credit_at_us = now_us;
    window.credit = @min(window.credit + @as(i64, @intCast(earned)), @as(i64, @intCast(most)));
    assert(window.credit <= burst_bytes_max);
}

test {
    _ = @import("window_test.zig");
}
