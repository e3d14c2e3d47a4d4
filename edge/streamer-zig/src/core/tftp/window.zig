//! The window of one TFTP transfer (RFC 7440): which blocks are in flight, what an acknowledgement
//! means for them, and when they are retransmitted. Pure arithmetic; it knows neither peers nor
//! files.

const std = @import("std");
const assert = std.debug.assert;
const us_per_ms = std.time.us_per_ms;

pub const TftpWindow = @This();

/// RTO before the first RTT sample.
const retry_timeout_first_us = 500 * us_per_ms;
/// Firmware that polls its network card by a timer of 10 or 55 ms is not slow, only late.
const retry_timeout_min_us = 100 * us_per_ms;
const retry_timeout_max_us = 4 * std.time.us_per_s;
/// A peer that acknowledges nothing new for this long is gone; with a timeout of its own (RFC
/// 2349), after six of those.
const silence_max_us = 20 * std.time.us_per_s;
const agreed_timeouts_max = 6;

file_size: u64,
blksize: u16,
windowsize: u16,
/// Set when the peer named a timeout (RFC 2349): neither measured nor doubled.
agreed_timeout_us: ?u64 = null,
/// The first unacknowledged block, and how many from it are in flight.
first_unacked: u64 = 1,
in_flight: u16 = 0,
sent_at_us: u64 = 0,
/// When something new was acknowledged, or the first window was sent.
progress_at_us: u64 = 0,
/// How often this window was retransmitted by timeout.
retry_count: u5 = 0,
/// It was retransmitted for any reason, so its acknowledgement is no sample (Karn's algorithm).
is_retransmitted: bool = false,
/// A duplicate acknowledgement has retransmitted this window; after that only the clock does.
is_duplicate_answered: bool = false,
/// Windows sent twice: each may cause a second acknowledgement of its end, which is stale. They are
/// forgotten after `echo_until_us`.
echoes: u8 = 0,
echo_until_us: u64 = 0,
rtt: RttEstimator = .{},
/// Blocks that were sent more than once.
retries: u64 = 0,

const RttEstimator = struct {
    is_known: bool = false,
    srtt_us: u64 = 0,
    rttvar_us: u64 = 0,
    shortest_us: u64 = 0,

    /// RFC 6298 section 2, with its gains of 1/8 and 1/4.
    fn sample(rtt: *RttEstimator, sample_us: u64) void {
        if (!rtt.is_known) {
            rtt.* = .{
                .is_known = true,
                .srtt_us = sample_us,
                .rttvar_us = sample_us / 2,
                .shortest_us = sample_us,
            };
            return;
        }
        const srtt_us = rtt.srtt_us;
        const distance_us = @max(srtt_us, sample_us) - @min(srtt_us, sample_us);
        rtt.rttvar_us = (3 * rtt.rttvar_us + distance_us) / 4;
        rtt.srtt_us = (7 * srtt_us + sample_us) / 8;
        rtt.shortest_us = @min(rtt.shortest_us, sample_us);
        assert(rtt.shortest_us <= sample_us);
    }
};

pub const AckMeaning = enum {
    /// Acknowledges nothing new, or something impossible.
    stale,
    /// The window from `first_unacked` is to be sent; `send` was called.
    send,
    /// The last block is acknowledged.
    finished,
};

/// The last block is shorter than the others, so a file whose size is a multiple of them ends with
/// an empty one.
pub fn lastBlock(window: *const TftpWindow) u64 {
    return window.file_size / window.blksize + 1;
}

pub fn bytesAcked(window: *const TftpWindow) u64 {
    return @min((window.first_unacked - 1) * window.blksize, window.file_size);
}

/// Takes the round-trip time of the first packet and its answer.
pub fn onSample(window: *TftpWindow, sample_us: u64) void {
    window.rtt.sample(sample_us);
}

/// Opens the first window.
pub fn start(window: *TftpWindow, now_us: u64) void {
    assert(window.in_flight == 0);
    window.progress_at_us = now_us;
    window.send(now_us);
}

pub fn acknowledge(window: *TftpWindow, now_us: u64, block: u16) AckMeaning {
    // Block numbers have 16 bits and wrap to 0; a window is far smaller than that, so the distance
    // from the last acknowledged block is unambiguous.
    const last_acked: u16 = @truncate(window.first_unacked - 1);
    const acked_count = block -% last_acked;
    if (acked_count > window.in_flight) return .stale;
    if (acked_count == 0) return window.onDuplicateAck(now_us);
    const is_whole = acked_count == window.in_flight;
    if (is_whole and !window.is_retransmitted) window.rtt.sample(now_us -| window.sent_at_us);
    window.retries += window.in_flight - acked_count;
    window.first_unacked += acked_count;
    window.in_flight = 0;
    window.retry_count = 0;
    window.is_retransmitted = false;
    window.is_duplicate_answered = false;
    window.progress_at_us = now_us;
    if (window.first_unacked > window.lastBlock()) return .finished;
    assert(window.first_unacked <= window.lastBlock());
    window.send(now_us);
    return .send;
}

/// With a window, a duplicate ACK means that the first block is missing (RFC 7440 section 4). In
/// lock-step, answering it would double every later packet (RFC 1123 section 4.2.3.1, the
/// Sorcerer's Apprentice Syndrome); with windows the same happens if a window that was sent twice
/// arrived twice, or if a peer acknowledges each block behind a hole.
fn onDuplicateAck(window: *TftpWindow, now_us: u64) AckMeaning {
    if (window.windowsize == 1) return .stale;
    if (window.is_duplicate_answered) return .stale;
    // Too early for an answer to the window in flight.
    if (now_us -| window.sent_at_us < window.rtt.shortest_us / 2) return .stale;
    if (window.echoes > 0 and now_us < window.echo_until_us) {
        window.echoes -= 1;
        return .stale;
    }
    window.is_duplicate_answered = true;
    window.retransmit(now_us);
    return .send;
}

pub fn deadlineUs(window: *const TftpWindow) u64 {
    return window.sent_at_us + window.retryTimeoutUs();
}

/// A timeout at `deadlineUs`. Returns false if the peer is gone.
pub fn expire(window: *TftpWindow, now_us: u64) bool {
    assert(window.in_flight > 0);
    const limit_us =
        @max(silence_max_us, agreed_timeouts_max * (window.agreed_timeout_us orelse 0));
    if (now_us -| window.progress_at_us >= limit_us) return false;
    window.retry_count +|= 1;
    window.retransmit(now_us);
    return true;
}

fn retryTimeoutUs(window: *const TftpWindow) u64 {
    if (window.agreed_timeout_us) |agreed_us| return agreed_us;
    const rtt = &window.rtt;
    const measured_us =
        if (rtt.is_known) rtt.srtt_us + 4 * rtt.rttvar_us else retry_timeout_first_us;
    // The type is wide on purpose: @min returns one that just holds its result.
    const first_us: u64 = @min(@max(measured_us, retry_timeout_min_us), retry_timeout_max_us);
    return @min(first_us << @min(window.retry_count, 6), retry_timeout_max_us);
}

fn retransmit(window: *TftpWindow, now_us: u64) void {
    assert(window.in_flight > 0);
    window.retries += window.in_flight;
    window.is_retransmitted = true;
    window.echoes +|= 1;
    window.send(now_us);
    window.echo_until_us = now_us + window.retryTimeoutUs();
}

fn send(window: *TftpWindow, now_us: u64) void {
    const left = window.lastBlock() - window.first_unacked + 1;
    assert(left > 0);
    window.in_flight = @intCast(@min(left, window.windowsize));
    window.sent_at_us = now_us;
    assert(window.in_flight <= window.windowsize);
}

const testing = std.testing;

fn testWindow(windowsize: u16) TftpWindow {
    var window: TftpWindow = .{ .file_size = 1_000_000, .blksize = 500, .windowsize = windowsize };
    window.onSample(2000);
    window.start(10_000);
    return window;
}

test "a window that was retransmitted in vain does not double those behind it" {
    var window = testWindow(4);
    const again_at_us = window.deadlineUs();
    try testing.expect(window.expire(again_at_us));
    // The peer was only slow: it acknowledges both copies.
    var now_us = again_at_us + 1500;
    try testing.expectEqual(.send, window.acknowledge(now_us, 4));
    try testing.expectEqual(.stale, window.acknowledge(now_us + 1500, 4));
    try testing.expectEqual(4, window.retries);
    // A loss is now noticed at once.
    now_us += 3000;
    try testing.expectEqual(.send, window.acknowledge(now_us, 8));
    now_us += 2000;
    try testing.expectEqual(.send, window.acknowledge(now_us, 8));
    try testing.expectEqual(8, window.retries);
}

test "a peer that acknowledges each block behind a hole gets one window" {
    var window = testWindow(16);
    try testing.expectEqual(.send, window.acknowledge(12_000, 5));
    for (0..10) |index| try testing.expectEqual(.stale, window.acknowledge(12_000 + 10 * index, 5));
    try testing.expectEqual(6, window.first_unacked);
    try testing.expectEqual(11, window.retries);
}

test "the RTO follows the RTT within its limits" {
    var window = testWindow(1);
    try testing.expectEqual(10_000 + retry_timeout_min_us, window.deadlineUs());
    var now_us: u64 = 10_000;
    for (1..40) |block| {
        now_us += 400 * us_per_ms;
        try testing.expectEqual(.send, window.acknowledge(now_us, @intCast(block)));
    }
    const timeout_us = window.deadlineUs() - now_us;
    try testing.expect(timeout_us > 400 * us_per_ms);
    try testing.expect(timeout_us < 600 * us_per_ms);
}

test "block numbers wrap from 65535 to 0" {
    var window: TftpWindow = .{ .file_size = 70_000 * 8, .blksize = 8, .windowsize = 64 };
    window.start(0);
    var now_us: u64 = 1;
    var passed: u32 = 0;
    while (true) : (passed += 1) {
        now_us += 10;
        const last: u16 = @truncate(window.first_unacked + window.in_flight - 1);
        switch (window.acknowledge(now_us, last)) {
            .stale => return error.TestUnexpectedResult,
            .send => {},
            .finished => break,
        }
    }
    try testing.expectEqual(70_001 / 64, passed);
    try testing.expectEqual(70_000 * 8, window.bytesAcked());
    try testing.expectEqual(0, window.retries);
}
