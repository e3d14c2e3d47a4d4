//! How much a device asks for at once, and how fast: the receiver's congestion control of a stream. The device decides since it is
//! the device that asks: what it limits are the bytes asked for and not received. It has no clock and no socket; its caller says what
//! was asked, came, and was lost. All times are µs of one monotonic clock.
//!
//!     bytes = window.sendableBytes(now_us, wanted); if (bytes > 0) { read.send_record = window.onSend(now_us, bytes); send(...); }
//!     window.onAck(now_us, bytes, &read.send_record, .{ .is_first = ..., .is_last = ... });
//!     window.onLoss(bytes, &read.send_record, packets);
//!     sleep no longer than until window.opensAt()
//!
//! - Slow start as in RFC 5681, section 3.1, until something is lost or the wait for first packets grows while the window fills
//!   (RFC 9406, section 4.2).
//! - Then a fragment more for each round trip (RFC 5681), or an eighth of the window while nothing waits in the network: devices only
//!   have to become equal where they share what is full.
//! - Less, by 3/10 (RFC 9438, section 4.6), at most once for each window (RFC 9002, section 7.3.2), and only for losses that are
//!   congestion: three or more, and more than 1/32 of what was under way, or any while packets wait about as long as they did when
//!   that happened the last time. A cable with a bad contact loses 1 % without a queue, and must not slow its machine down.
//! - Less, by a quarter, when packets wait nearly as long as they did when the network had no room any more: so that it loses few. Until that is known only a queue of more than 0.75 ms is too long, and only for a large window: it may be the edge's storage
//!   that takes its time.
//! - Asking is paced by the delivery rate (RFC 9002, section 7.7): an edge answers as
//!   fast as its own card, and a burst of 1 MiB is more than a switch keeps for a slower port.

const std = @import("std");
const assert = std.debug.assert;
const CongestionWindow = @This();

pub const Options = struct {
    /// Bytes of one packet's data, at most.
    fragment_size: u32,
    /// Bytes; the window never grows beyond.
    bytes_max: u32,
};

/// Bytes that are asked for without knowing anything, and after a pause without pacing: what the smallest switches keep for a port.
pub const burst_bytes_min = 64 << 10;
/// A faster card needs no more than that at once.
const burst_bytes_max = 256 << 10;
/// The burst's length in time, where that is more than `burst_bytes_min`.
const burst_us = 256;
const fragments_min = 4;
/// The window is never smaller than a read that a system waits for, and a few fragments of others.
const cwnd_bytes_min = 32 << 10;
/// Losses of one window that are congestion, where they are also more than 1/32.
const lost_min = 3;
const lost_share = 32;
/// An extra wait of a quarter and that is no queue: machines have other things to do, too.
const noise_us = 100;
/// A queue that is too long before it is known how much the network has room for, and for windows larger than that.
const long_queue_us = 750;
const long_queue_bytes = 128 << 10;
/// Full rounds after which the highest delivery rate is forgotten, at most twice that many.
const rate_rounds = 8;
/// After that long the shortest round trip is measured anew: the path may be another one.
const round_trip_us_age = 30 * std.time.us_per_s;
/// Time-outs without anything received between them, after which the path is believed to be quite another one.
const timeouts_max = 2;
/// A request is asked for in parts of at least a quarter of the window; within these limits, in bytes.
pub const part_bytes_min = 4 << 10;
const part_bytes_max = 32 << 10;

options: Options,
/// Bytes that may be asked for and not received.
cwnd_bytes: u64,
/// Bytes that are.
in_flight_bytes: u64 = 0,
is_slow_start: bool = true,
/// Where slow start ends after a silence.
ssthresh_bytes: u64 = std.math.maxInt(u64),
/// The newest one of all.
last_wait_us: u64 = 0,
/// The wait at which the network had no room any more; 0: not known.
full_wait_us: u64 = 0,
/// What the round before made of the window shows in the next one.
is_settling: bool = false,

/// What it was before it was reduced last, until that is seen to have been right; null: it is, or is nobody's concern any more.
undo: ?Reduction = null,

/// Of the next ask.
serial: u64 = 0,
/// Losses of earlier asks have been answered.
reduced_at_serial: u64 = 0,
/// Bytes, of all asks.
delivered: u64 = 0,
delivered_at_us: u64 = 0,
silences: u8 = 0,
/// Time-outs of earlier asks have been counted.
timed_out_at_serial: u64 = 0,

round: Round = .{},
/// The newest round's shortest wait for a first packet, in µs; 0: none measured yet.
wait_us: u64 = 0,
/// µs; 0: none measured yet. The shorter one of two periods.
round_trip_us: [2]u64 = @splat(0),
round_trip_since_us: u64 = 0,
/// Bytes per second, the highest of two periods; 0: none measured yet.
rate: [2]u64 = @splat(0),
rate_age: u8 = 0,

/// Bytes that may go now by pacing; below 0 after an ask that was larger.
credit: i64 = burst_bytes_min,
credit_at_us: u64 = 0,

/// From one ask to the first answer to a later one.
const Round = struct {
    /// It ends with an answer to this ask.
    last_serial: u64 = 0,
    delivered: u64 = 0,
    /// Packets.
    lost: u32 = 0,
    has_wait: bool = false,
    /// The window, or its pacing, held something back; in the round before.
    was_full: bool = false,
    was_full_before: bool = false,
};

const Reduction = struct {
    cwnd_bytes: u64,
    is_slow_start: bool,
    full_wait_us: u64,
    /// Packets that were taken for lost, and how many of them came after all.
    lost: u32,
    late: u32 = 0,
};

/// What an ask takes along until its answer.
pub const SendRecord = struct {
    serial: u64 = 0,
    sent_at_us: u64 = 0,
    /// What had come before, in bytes.
    delivered: u64 = 0,
};

pub const Delivery = struct {
    /// The first packet of the answer to this ask, and of no earlier one (Karn's rule, RFC 6298, section 3).
    is_first: bool,
    /// Nothing of this ask is under way any more.
    is_last: bool,
};

pub fn init(options: Options) CongestionWindow {
    assert(options.fragment_size > 0);
    assert(options.bytes_max >= fragments_min * options.fragment_size);
    return .{ .options = options, .cwnd_bytes = @min(burst_bytes_min, options.bytes_max) };
}

/// How much of a request of `bytes` may be asked for now: all of it, a part that is worth a packet, or nothing. Something always is while
/// nothing is under way.
pub fn sendableBytes(window: *CongestionWindow, now_us: u64, bytes: u64) u64 {
    window.refill(now_us);
    const free = window.cwnd_bytes -| window.in_flight_bytes;
    const is_open = window.credit > 0 or window.in_flight_bytes == 0;
    if (is_open and bytes <= free) return bytes;
    window.round.was_full = true;
    const least = window.partBytes(bytes);
    if (window.in_flight_bytes == 0) return @max(free, least);
    return if (is_open and free >= least) free else 0;
}

/// How much of a request of `bytes` is worth a packet of its own: all of it, or at least so much. Without parts a large request would wait
/// until the window is empty; with parts of any size an edge would be asked for each fragment.
pub fn partBytes(window: *const CongestionWindow, bytes: u64) u64 {
    return @min(bytes, std.math.clamp(window.cwnd_bytes / 4, part_bytes_min, part_bytes_max));
}

/// When pacing lets something go, if the window does; null: only an answer opens it. `bytes` are those of the next request.
pub fn opensAt(window: *const CongestionWindow, bytes: u64) ?u64 {
    if (window.in_flight_bytes == 0) return window.credit_at_us;
    if (window.in_flight_bytes + window.partBytes(bytes) > window.cwnd_bytes) return null;
    if (window.credit > 0 or window.deliveryRate() == 0) return window.credit_at_us;
    const missing: u64 = @intCast(1 - window.credit);
    return window.credit_at_us + missing * std.time.us_per_s / window.pacingRate() + 1;
}

/// `bytes` are asked for, for the first time or again.
pub fn onSend(window: *CongestionWindow, now_us: u64, bytes: u64) SendRecord {
    window.refill(now_us);
    // After a pause the time until now is nobody's round.
    if (window.in_flight_bytes == 0) window.beginRound();
    window.in_flight_bytes += bytes;
    window.credit -= @intCast(bytes);
    defer window.serial += 1;
    return .{ .serial = window.serial, .sent_at_us = now_us, .delivered = window.delivered };
}

/// `bytes` of an ask have come, each counted once.
pub fn onAck(window: *CongestionWindow, now_us: u64, bytes: u64, record: *const SendRecord, delivery: Delivery) void {
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
        window.noteRoundTrip(now_us, took_us);
        // One look is enough: what is too early an end costs a few round trips.
        if (window.isLong(took_us)) window.is_slow_start = false;
    }
    if (delivery.is_last) window.onRate((window.delivered - record.delivered) * std.time.us_per_s / took_us);
    if (window.is_slow_start and (round.was_full or round.was_full_before)) window.grow(bytes);
    if (record.serial >= round.last_serial) window.endRound();
}

/// `bytes` of an ask will not come: `packets` were lost, 1 where the ask itself may have been. They are asked for anew with another
/// record, or never.
pub fn onLoss(window: *CongestionWindow, bytes: u64, record: *const SendRecord, packets: u32) void {
    assert(bytes <= window.in_flight_bytes);
    const under_way = (window.in_flight_bytes + window.round.delivered) / window.options.fragment_size;
    window.in_flight_bytes -= bytes;
    if (record.serial < window.reduced_at_serial) return;
    window.round.lost +|= packets;
    const lost = window.round.lost;
    const is_many = lost >= lost_min and @as(u64, lost) * lost_share > under_way;
    const is_full = window.full_wait_us > 0 and window.wait_us >= window.waitLimit();
    if (!is_many and !is_full) return;
    window.undo = .{ .cwnd_bytes = window.cwnd_bytes, .is_slow_start = window.is_slow_start, .full_wait_us = window.full_wait_us, .lost = lost };
    if (is_many and window.isLong(window.last_wait_us)) window.full_wait_us = window.last_wait_us;
    window.reduce();
}

/// A packet came that was taken for lost. When half of them do, they were only overtaken (RFC 4015, section 3.2; RFC 3708).
pub fn onSpuriousLoss(window: *CongestionWindow) void {
    const before = &(window.undo orelse return);
    before.late += 1;
    if (before.late * 2 < before.lost) return;
    window.cwnd_bytes = @max(window.cwnd_bytes, before.cwnd_bytes);
    window.is_slow_start = before.is_slow_start;
    window.full_wait_us = before.full_wait_us;
    window.undo = null;
}

/// `bytes` that an earlier window had under way: what becomes of them says nothing of this one.
pub fn onSentBefore(window: *CongestionWindow, bytes: u64) SendRecord {
    window.in_flight_bytes += bytes;
    window.serial = @max(window.serial, 1);
    window.reduced_at_serial = 1;
    return .{};
}

/// An ask's time is over, before `onLoss` of it. The second time in a row that nothing at all has come since, all begins anew
/// (RFC 9002, section 7.6.2).
pub fn onTimeout(window: *CongestionWindow, record: *const SendRecord) void {
    if (record.serial < window.timed_out_at_serial or window.delivered_at_us > record.sent_at_us) return;
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
    window.beginRound();
}

/// `bytes` that were asked for are not waited for any more, and were not lost.
pub fn onAbandoned(window: *CongestionWindow, bytes: u64) void {
    assert(bytes <= window.in_flight_bytes);
    window.in_flight_bytes -= bytes;
}

/// Bytes per second; 0: not known yet.
pub fn deliveryRate(window: *const CongestionWindow) u64 {
    return @max(window.rate[0], window.rate[1]);
}

/// µs from an ask to its first packet where nothing waits; 0: not known yet.
pub fn roundTrip(window: *const CongestionWindow) u64 {
    const now, const before = window.round_trip_us;
    if (now == 0 or before == 0) return @max(now, before);
    return @min(now, before);
}

fn noteRoundTrip(window: *CongestionWindow, now_us: u64, sample_us: u64) void {
    if (now_us -| window.round_trip_since_us >= round_trip_us_age) {
        window.round_trip_us = .{ 0, window.round_trip_us[0] };
        window.round_trip_since_us = now_us;
    }
    const shortest = &window.round_trip_us[0];
    shortest.* = if (shortest.* == 0) sample_us else @min(shortest.*, sample_us);
}

/// First packets wait for others that are in the network.
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
            window.rate = .{ 0, window.rate[0] };
        }
    }
    window.beginRound();
}

fn growForRound(window: *CongestionWindow) void {
    if (window.is_slow_start) {
        window.is_slow_start = window.cwnd_bytes < window.ssthresh_bytes;
        return;
    }
    if (!window.isQueued()) return window.grow(window.cwnd_bytes / 8);
    const is_known = window.full_wait_us > 0;
    // The network may have more room than it had.
    if (is_known) window.full_wait_us += window.full_wait_us / 256 + 1;
    const least = if (is_known) window.cwndMin() else long_queue_bytes;
    if (window.wait_us <= window.waitLimit() or window.cwnd_bytes <= least) return window.grow(window.options.fragment_size);
    window.is_settling = !window.is_settling;
    if (window.is_settling) window.cwnd_bytes = @max(window.cwnd_bytes - window.cwnd_bytes / 4, least);
}

/// The longest wait for a first packet, in µs, with which the window grows. Devices that have never seen the network without a queue
/// take a longer time for the shortest, so it only counts where most of the wait is the way.
fn waitLimit(window: *const CongestionWindow) u64 {
    const least = window.roundTrip();
    const full = window.full_wait_us;
    if (full == 0) return least + long_queue_us;
    return @max(full - full / 8, least + (full -| least) / 2);
}

fn beginRound(window: *CongestionWindow) void {
    window.round = .{ .last_serial = window.serial, .was_full_before = window.round.was_full };
}

/// One that the window did not limit says only that the path carries at least that much.
fn onRate(window: *CongestionWindow, sample: u64) void {
    const was_full = window.round.was_full or window.round.was_full_before;
    if (!was_full and sample < window.deliveryRate()) return;
    window.rate[0] = @max(window.rate[0], sample);
}

fn grow(window: *CongestionWindow, bytes: u64) void {
    window.cwnd_bytes = @min(window.cwnd_bytes + bytes, window.options.bytes_max);
}

fn reduce(window: *CongestionWindow) void {
    window.cwnd_bytes = @max(window.cwnd_bytes * 7 / 10, window.cwndMin());
    window.is_slow_start = false;
    window.reduced_at_serial = window.serial;
    window.beginRound();
}

fn cwndMin(window: *const CongestionWindow) u64 {
    return @min(cwnd_bytes_min + fragments_min * window.options.fragment_size, window.options.bytes_max);
}

/// Bytes per second at which is asked: faster than answers come, so that a faster path is noticed.
fn pacingRate(window: *const CongestionWindow) u64 {
    const rate = @max(1, window.deliveryRate());
    return if (window.is_slow_start) 2 * rate else rate + rate / 4;
}

fn refill(window: *CongestionWindow, now_us: u64) void {
    const passed_us = @min(now_us -| window.credit_at_us, std.time.us_per_s);
    const rate = window.deliveryRate();
    const most = std.math.clamp(rate * burst_us / std.time.us_per_s, burst_bytes_min, burst_bytes_max);
    if (rate == 0) {
        window.credit_at_us = now_us;
        window.credit = @intCast(most);
        return;
    }
    // What came of less than a byte is not lost: the time is taken when there is something.
    const earned = window.pacingRate() *| passed_us / std.time.us_per_s;
    if (earned == 0) return;
    window.credit_at_us = now_us;
    window.credit = @min(window.credit + @as(i64, @intCast(@min(earned, 2 * burst_bytes_max +| window.options.bytes_max))), @as(i64, @intCast(most)));
}

test {
    _ = @import("window_test.zig");
}
