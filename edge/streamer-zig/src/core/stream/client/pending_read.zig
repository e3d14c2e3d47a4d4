//! One read of a device in flight: which fragments have arrived, which are missing, when to
//! retransmit. The client decides about packets; this keeps the state of a single request.

const std = @import("std");
const wire = @import("wire").stream;
const RttEstimator = @import("../congestion/rtt.zig");
const PathMtu = @import("../congestion/path_mtu.zig");
const CongestionWindow = @import("../congestion/window.zig");
const StoreErrors = @import("store_errors.zig");
const assert = std.debug.assert;

const PendingRead = @This();

/// A hole counts as lost when this many fragments beyond it have arrived.
const gap_threshold = 3;

state: State = .free,
tag: u64 = 0,
kind: wire.ReadKind = .demand,
/// Somebody waits for it: it goes before reads that nobody waits for.
is_waited_for: bool = true,
offset: u64 = 0,
buffer: []u8 = &.{},
request_id: u32 = 0,
/// The submitted buffer: this read is all of it or, where the window was too small, a part.
whole: []u8 = &.{},
/// The same for all parts of one submitted read.
whole_id: u32 = 0,
/// When its first request was sent; null: none was.
sent_first_at_us: ?u64 = null,
failure: wire.ReadErrorCode = .store_error,
/// The edge has answered the latest request, with an error: nothing was lost.
is_refused: bool = false,
/// Those of the edge that the device is at.
store_errors: StoreErrors.OfRead = .{},
/// Some edge could not read it.
had_store_error: bool = false,

fragment_size: u16 = 0,
/// Of the plain answer until its first fragment has arrived.
fragment_count: u16 = 0,
/// How the edge answers this request: known with the first fragment that arrives.
form: enum { unknown, plain, packed_up } = .unknown,
/// Bytes of a packed answer. They are at the front of `buffer` until all have arrived.
packed_size: u32 = 0,
/// The edge has answered it in two ways, or with what does not unpack: it must not be packed.
must_be_plain: bool = false,
received: std.bit_set.Static(wire.fragments_max) = .empty,
received_count: u16 = 0,
/// Of the answer, without prefixes.
received_bytes: u32 = 0,
/// The highest fragment indices received, highest first, each counted from 1; 0 while there are
/// fewer.
highest: [gap_threshold]u16 = @splat(0),
/// Holes below this have been retransmitted; only time or later requests reveal that they were lost
/// again.
retransmitted_below: u16 = 0,

/// Record of the latest request.
send_record: CongestionWindow.SendRecord = .{},
/// How often it was retransmitted.
attempt: u16 = 0,
/// Serial numbers of its first and last READ, among all READs of the client.
first_serial: u64 = 0,
sent_serial: u64 = 0,
sent_at_us: u64 = 0,
/// When it was last sent or made progress.
progress_at_us: u64 = 0,
timeout_us: u64 = 0,
/// Fragments of later requests that have arrived since its last READ.
overtaken: u16 = 0,
/// A fragment of full size has arrived since its last request.
has_full_size: bool = false,
/// Retransmitted after a timeout, and the time from its first READ to the next new fragment.
timed_out: bool = false,
stall_us: ?u64 = null,
/// An RTT sample that the client has not taken yet.
round_trip_us: ?u64 = null,
/// What to retransmit: the missing fragments in [first, end).
retransmit: ?struct { first: u16, end: u16 } = null,

pub const State = enum { free, queued, in_flight, done, failed };

/// The first READ is sent.
pub fn ask(read: *PendingRead, now_us: u64, fragment_size: u16, serial: u64, timeout_us: u64) void {
    assert(read.state == .queued);
    read.state = .in_flight;
    read.sent_first_at_us = read.sent_first_at_us orelse now_us;
    read.fragment_size = fragment_size;
    read.fragment_count = wire.fragmentCount(@intCast(read.buffer.len), fragment_size);
    read.first_serial = serial;
    read.sent_serial = serial;
    read.sent_at_us = now_us;
    read.progress_at_us = now_us;
    read.timeout_us = timeout_us;
}

pub const Acceptance = enum {
    new,
    /// It had arrived before.
    duplicate,
    /// No fragment of this read has this index and length.
    mismatch,
    /// A fragment of another answer to the same request than the one that has begun to arrive.
    contradiction,
};

pub fn accept(read: *PendingRead, now_us: u64, fragment: wire.Data) Acceptance {
    assert(read.state == .in_flight);
    if (read.form == .unknown) {
        if (!read.begin(&fragment)) return .mismatch;
    } else if ((fragment.packed_size > 0) != (read.form == .packed_up) or
        fragment.packed_size != read.packed_size) return .contradiction;
    if (!read.fits(&fragment)) return .mismatch;
    if (read.has(fragment.index)) return .duplicate;
    // Karn's algorithm: the answer to a READ that was sent twice is no sample.
    if (read.received_count == 0 and read.attempt == 0)
        read.round_trip_us = now_us -| read.sent_at_us;
    if (read.timed_out and read.stall_us == null) read.stall_us = now_us -| read.sent_at_us;
    const at = @as(usize, fragment.index) * read.contentSize();
    const slot = read.buffer[at..][0..fragment.payload.len];
    // It may be there already.
    if (slot.ptr != fragment.payload.ptr) @memcpy(slot, fragment.payload);
    read.received.set(fragment.index);
    read.received_count += 1;
    read.received_bytes += @intCast(fragment.payload.len);
    assert(read.received_count <= read.fragment_count);
    if (fragment.payload.len == read.contentSize()) read.has_full_size = true;
    read.progress_at_us = now_us;
    read.recordHighest(fragment.index);
    read.retransmitHoles();
    return .new;
}

/// The first fragment says how the read is answered. Returns false if it may not be answered so.
fn begin(read: *PendingRead, fragment: *const wire.Data) bool {
    assert(read.received_count == 0);
    if (fragment.packed_size > 0) {
        if (read.must_be_plain or read.kind == .profile) return false;
        if (fragment.packed_size >= read.buffer.len) return false;
    }
    assert(read.packed_size == 0);
    const before = .{ read.packed_size, read.fragment_count };
    read.packed_size = fragment.packed_size;
    read.form = if (fragment.packed_size > 0) .packed_up else .plain;
    read.fragment_count = @intCast(std.math.divCeil(
        u32,
        read.answerSize(),
        read.contentSize(),
    ) catch unreachable);
    if (!read.fits(fragment)) {
        read.form = .unknown;
        read.packed_size, read.fragment_count = before;
        return false;
    }
    read.retransmitted_below = @min(read.retransmitted_below, read.fragment_count);
    if (read.retransmit) |*pending| {
        pending.end = @min(pending.end, read.fragment_count);
        if (pending.first >= pending.end) read.retransmit = null;
    }
    return true;
}

/// The fragment has an index and a length of this answer.
fn fits(read: *const PendingRead, fragment: *const wire.Data) bool {
    return fragment.index < read.fragment_count and
        fragment.payload.len == read.contentLength(fragment.index);
}

/// Bytes of the answer in a fragment of full size.
fn contentSize(read: *const PendingRead) u16 {
    return read.fragment_size - read.prefixSize();
}

/// What each fragment has in front of its bytes of the answer.
pub fn prefixSize(read: *const PendingRead) u16 {
    return if (read.form == .packed_up) wire.packed_prefix_size else 0;
}

fn answerSize(read: *const PendingRead) u32 {
    return if (read.form == .packed_up) read.packed_size else @intCast(read.buffer.len);
}

fn contentLength(read: *const PendingRead, index: u16) u32 {
    const content = read.contentSize();
    return @min(content, read.answerSize() - @as(u32, index) * content);
}

/// Returns where the payload of this fragment of a plain answer belongs; null if it has arrived or
/// there is no such fragment.
pub fn slotFor(read: *const PendingRead, index: u16, length: usize) ?[]u8 {
    assert(read.state == .in_flight);
    if (read.form == .packed_up) return null;
    if (index >= read.fragment_count or read.has(index)) return null;
    if (length != wire.fragmentLength(@intCast(read.buffer.len), read.fragment_size, index))
        return null;
    return read.buffer[@as(usize, index) * read.fragment_size ..][0..length];
}

/// The set's own `isSet` copies all of it, 256 bytes, for each packet.
fn has(read: *const PendingRead, index: u16) bool {
    const Word = @TypeOf(read.received).MaskInt;
    return read.received.masks[index / @bitSizeOf(Word)] >> @intCast(
        index % @bitSizeOf(Word),
    ) & 1 != 0;
}

pub fn isComplete(read: *const PendingRead) bool {
    assert(read.received_count <= read.fragment_count);
    return read.received_count == read.fragment_count;
}

/// Returns what the last request misses, unless anything of full size or a store error has arrived.
pub fn missing(read: *const PendingRead) PathMtu.MissingFragments {
    if (read.has_full_size or read.sent_serial == std.math.maxInt(u64)) return .{};
    const overhead = wire.header_size + wire.tag_size;
    const last = read.fragment_count - 1;
    const last_size = overhead + read.prefixSize() + read.contentLength(last);
    const count = read.fragment_count - read.received_count;
    if (read.has(last)) return .{ .count = count, .size = overhead + read.fragment_size };
    if (last_size > wire.packet_size_min) return .{ .count = count, .size = @intCast(last_size) };
    return .{ .count = count - 1, .size = overhead + read.fragment_size };
}

/// Bytes of the read that have arrived: a fragment of a packed answer counts for its share.
pub fn arrivedBytes(read: *const PendingRead) u32 {
    return read.share(read.received_bytes);
}

pub fn missingBytes(read: *const PendingRead) u32 {
    return @as(u32, @intCast(read.buffer.len)) - read.arrivedBytes();
}

/// Bytes of the read that `bytes` of its answer stand for.
fn share(read: *const PendingRead, bytes: u32) u32 {
    if (read.form != .packed_up) return bytes;
    return @intCast(@as(u64, bytes) * read.buffer.len / read.packed_size);
}

/// Bytes of the read that the fragments of `ranges` stand for.
pub fn bytesOf(read: *const PendingRead, ranges: wire.Ranges) u32 {
    const last = ranges.at(ranges.count() - 1);
    const end = last.first_fragment + last.fragment_count;
    const content = read.contentSize();
    const bytes = @as(u32, ranges.fragmentCount()) * content;
    return read.share(bytes - (@as(u32, end) * content -| read.answerSize()));
}

/// Queues everything missing for retransmission.
pub fn retransmitMissing(read: *PendingRead) void {
    assert(!read.isComplete());
    read.retransmit = .{ .first = 0, .end = read.fragment_count };
    read.retransmitted_below = read.fragment_count;
}

/// After a resumption, or on a narrower path: requests everything missing again. With fragments of
/// another size the read starts over when its turn comes, under another `request_id`, since a late
/// fragment of the old size may look like one of the new size.
pub fn restart(read: *PendingRead, fragment_size: u16, request_id: u32, timeout_us: u64) void {
    assert(read.state == .in_flight);
    // They may have been another edge's.
    read.store_errors = .{};
    read.is_refused = false;
    if (fragment_size == read.fragment_size) {
        read.timeout_us = timeout_us;
        return read.retransmitMissing();
    }
    assert(request_id != read.request_id);
    read.startOver(request_id);
}

/// What the edge has sent contradicts itself, or does not unpack: requests the read again, plainly.
pub fn renew(read: *PendingRead, request_id: u32) void {
    assert(read.state == .in_flight);
    assert(request_id != read.request_id);
    read.startOver(request_id);
    read.must_be_plain = true;
}

fn startOver(read: *PendingRead, request_id: u32) void {
    assert(read.buffer.len > 0);
    read.* = .{
        .state = .queued,
        .tag = read.tag,
        .kind = read.kind,
        .is_waited_for = read.is_waited_for,
        .offset = read.offset,
        .buffer = read.buffer,
        .request_id = request_id,
        .whole = read.whole,
        .whole_id = read.whole_id,
        .sent_first_at_us = read.sent_first_at_us,
        .had_store_error = read.had_store_error,
        .must_be_plain = read.must_be_plain,
    };
}

/// Splits off the first `bytes` of a waiting read as a read of its own; this one keeps the rest and
/// its position in the queue.
pub fn cut(read: *PendingRead, now_us: u64, bytes: u32, request_id: u32) PendingRead {
    assert(read.state == .queued);
    assert(bytes > 0 and bytes < read.buffer.len);
    read.sent_first_at_us = read.sent_first_at_us orelse now_us;
    defer {
        read.offset += bytes;
        read.buffer = read.buffer[bytes..];
    }
    return .{
        .state = .queued,
        .tag = read.tag,
        .kind = read.kind,
        .is_waited_for = read.is_waited_for,
        .offset = read.offset,
        .buffer = read.buffer[0..bytes],
        .request_id = request_id,
        .whole = read.whole,
        .whole_id = read.whole_id,
        .sent_first_at_us = read.sent_first_at_us,
        .must_be_plain = read.must_be_plain,
    };
}

/// The edge could not read its store: the read is retransmitted after twice the timeout, not
/// earlier.
pub fn waitAfterStoreError(read: *PendingRead, now_us: u64) void {
    assert(read.state == .in_flight);
    read.progress_at_us = now_us;
    read.timeout_us = @min(read.timeout_us * 2, RttEstimator.rto_us_max);
    read.retransmit = null;
    read.sent_serial = std.math.maxInt(u64);
    read.is_refused = true;
}

/// Moves missing fragments from `retransmit` into `ranges`, as many as fit; returns their number.
pub fn takeMissing(read: *PendingRead, ranges: *wire.RangeList) u16 {
    const wanted = read.retransmit.?;
    assert(wanted.first < wanted.end);
    read.retransmit = null;
    var count: u16 = 0;
    var index = wanted.first;
    while (index < wanted.end) {
        if (read.has(index)) {
            index += 1;
            continue;
        }
        const first = index;
        while (index < wanted.end and !read.has(index)) index += 1;
        ranges.append(.{ .first_fragment = first, .fragment_count = index - first }) catch {
            read.retransmit = .{ .first = first, .end = wanted.end };
            break;
        };
        count += index - first;
    }
    return count;
}

pub fn onRetransmit(read: *PendingRead, now_us: u64, serial: u64) void {
    assert(read.state == .in_flight);
    read.attempt +|= 1;
    read.sent_serial = serial;
    read.progress_at_us = now_us;
    read.overtaken = 0;
    read.has_full_size = false;
}

/// While fragments of any read arrive, the edge is working through its requests in order: none is
/// late yet. A refused one waits for nothing of the edge.
pub fn timeoutAt(read: *const PendingRead, last_fragment_at_us: u64) u64 {
    if (read.is_refused) return read.progress_at_us + read.timeout_us;
    return @max(read.progress_at_us, last_fragment_at_us) + read.timeout_us;
}

/// Tells whether it precedes `other`: somebody waits for it and not for the other, or it was
/// submitted earlier; request ids are compared so that they may wrap. The boot profile precedes all
/// read-ahead.
pub fn isBefore(read: *const PendingRead, other: ?*const PendingRead) bool {
    const rival = other orelse return true;
    if (read.is_waited_for != rival.is_waited_for) return read.is_waited_for;
    return @as(i32, @bitCast(read.request_id -% rival.request_id)) < 0;
}

fn recordHighest(read: *PendingRead, index: u16) void {
    var candidate = index + 1;
    for (&read.highest) |*kept| {
        const lower = @min(kept.*, candidate);
        kept.* = @max(kept.*, candidate);
        candidate = lower;
    }
    assert(read.highest[0] > 0);
}

/// A hole with `gap_threshold` fragments beyond it is lost.
fn retransmitHoles(read: *PendingRead) void {
    const highest = read.highest[gap_threshold - 1];
    if (highest == 0) return;
    const certain = highest - 1;
    var first = read.retransmitted_below;
    while (first < certain and read.has(first)) first += 1;
    read.retransmitted_below = @max(read.retransmitted_below, certain);
    if (first >= certain) return;
    const from = if (read.retransmit) |pending| pending.first else first;
    assert(from < certain);
    read.retransmit = .{ .first = from, .end = certain };
}

test {
    _ = @import("pending_read_test.zig");
}
