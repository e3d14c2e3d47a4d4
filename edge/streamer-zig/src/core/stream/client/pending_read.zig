//! One read of a device that is under way: which fragments have come, which are missing, when to ask again. The client
//! decides about packets; this keeps the account of a single request.

const std = @import("std");
const wire = @import("wire").stream;
const RttEstimator = @import("../congestion/rtt.zig");
const PathMtu = @import("../congestion/path_mtu.zig");
const CongestionWindow = @import("../congestion/window.zig");
const assert = std.debug.assert;

const PendingRead = @This();

/// Fragments beyond a hole that must have come before the hole counts as lost.
pub const gap_threshold = 3;

state: State = .free,
tag: u64 = 0,
kind: wire.ReadKind = .demand,
/// Somebody waits for it: it goes before what nobody waits for.
is_waited_for: bool = true,
offset: u64 = 0,
buffer: []u8 = &.{},
request_id: u32 = 0,
/// What was submitted: this read is all of it or, where the window had no room for all at once, a part.
whole: []u8 = &.{},
/// The same for all parts of what was submitted.
whole_id: u32 = 0,
/// When the first of it was asked for; null: nothing was.
sent_first_at_us: ?u64 = null,
failure: wire.ReadErrorCode = .store_error,

fragment_size: u16 = 0,
fragment_count: u16 = 0,
received: std.bit_set.Static(wire.fragments_max) = .empty,
received_count: u16 = 0,
received_bytes: u32 = 0,
/// The highest indices that have come, highest first, each counted from 1; 0 while there are fewer.
highest: [gap_threshold]u16 = @splat(0),
/// Holes below this have been asked for again; only time or later requests tell that they were lost once more.
retransmitted_below: u16 = 0,

/// Of what was asked for last.
send_record: CongestionWindow.SendRecord = .{},
/// How often it was asked again.
attempt: u16 = 0,
/// Serial numbers of the first and the last READ that went out for it, among all of the client's READs.
first_serial: u64 = 0,
sent_serial: u64 = 0,
sent_at_us: u64 = 0,
/// When it was last sent or got something new.
progress_at_us: u64 = 0,
timeout_us: u64 = 0,
/// Fragments of requests sent later that have come since the last READ.
overtaken: u16 = 0,
/// A fragment of full size has come since it was sent last.
has_full_size: bool = false,
/// Asked again since time was over, and how long after the first READ the next new fragment came.
timed_out: bool = false,
stall_us: ?u64 = null,
/// A measurement that the client has not taken yet.
round_trip_us: ?u64 = null,
/// What is to be asked again: the missing fragments in [first, end).
retransmit: ?struct { first: u16, end: u16 } = null,

pub const State = enum { free, queued, in_flight, done, failed };

/// The first READ goes out.
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
    /// It had come before.
    duplicate,
    /// No fragment of this read has this index and length.
    mismatch,
};

pub fn accept(read: *PendingRead, now_us: u64, fragment: wire.Data) Acceptance {
    assert(read.state == .in_flight);
    if (fragment.index >= read.fragment_count) return .mismatch;
    const length = wire.fragmentLength(@intCast(read.buffer.len), read.fragment_size, fragment.index);
    if (fragment.payload.len != length) return .mismatch;
    if (read.has(fragment.index)) return .duplicate;
    // Karn's rule: an answer to a READ that was sent twice measures nothing.
    if (read.received_count == 0 and read.attempt == 0) read.round_trip_us = now_us -| read.sent_at_us;
    if (read.timed_out and read.stall_us == null) read.stall_us = now_us -| read.sent_at_us;
    const begin = @as(usize, fragment.index) * read.fragment_size;
    const slot = read.buffer[begin..][0..length];
    // It may lie there already.
    if (slot.ptr != fragment.payload.ptr) @memcpy(slot, fragment.payload);
    read.received.set(fragment.index);
    read.received_count += 1;
    read.received_bytes += length;
    if (length == read.fragment_size) read.has_full_size = true;
    read.progress_at_us = now_us;
    read.noteHighest(fragment.index);
    read.retransmitHoles();
    return .new;
}

/// Where the payload of such a fragment belongs, of which nothing has come yet; null: it has, or there is no such fragment.
pub fn slotFor(read: *const PendingRead, index: u16, length: usize) ?[]u8 {
    assert(read.state == .in_flight);
    if (index >= read.fragment_count or read.has(index)) return null;
    if (length != wire.fragmentLength(@intCast(read.buffer.len), read.fragment_size, index)) return null;
    return read.buffer[@as(usize, index) * read.fragment_size ..][0..length];
}

/// A set's own `isSet` takes all of it, 256 bytes, for each packet.
fn has(read: *const PendingRead, index: u16) bool {
    const Word = @TypeOf(read.received).MaskInt;
    return read.received.masks[index / @bitSizeOf(Word)] >> @intCast(index % @bitSizeOf(Word)) & 1 != 0;
}

pub fn isComplete(read: *const PendingRead) bool {
    assert(read.received_count <= read.fragment_count);
    return read.received_count == read.fragment_count;
}

/// What was asked for last, when nothing of full size of it has come, nor an error of the edge's store.
pub fn missing(read: *const PendingRead) PathMtu.MissingFragments {
    if (read.has_full_size or read.sent_serial == std.math.maxInt(u64)) return .{};
    const overhead = wire.header_size + wire.tag_size;
    const last = read.fragment_count - 1;
    const last_size = overhead + wire.fragmentLength(@intCast(read.buffer.len), read.fragment_size, last);
    const count = read.fragment_count - read.received_count;
    if (read.has(last)) return .{ .count = count, .size = overhead + read.fragment_size };
    if (last_size > wire.packet_size_min) return .{ .count = count, .size = @intCast(last_size) };
    return .{ .count = count - 1, .size = overhead + read.fragment_size };
}

pub fn missingBytes(read: *const PendingRead) u32 {
    return @as(u32, @intCast(read.buffer.len)) - read.received_bytes;
}

/// Of the fragments that `ranges` name.
pub fn bytesOf(read: *const PendingRead, ranges: wire.Ranges) u32 {
    const last = ranges.at(ranges.count() - 1);
    const end = last.first_fragment + last.fragment_count;
    const bytes = @as(u32, ranges.fragmentCount()) * read.fragment_size;
    return bytes - (@as(u32, end) * read.fragment_size -| @as(u32, @intCast(read.buffer.len)));
}

/// Everything that is missing is to be asked again.
pub fn retransmitMissing(read: *PendingRead) void {
    assert(!read.isComplete());
    read.retransmit = .{ .first = 0, .end = read.fragment_count };
    read.retransmitted_below = read.fragment_count;
}

/// After a resumption, or on a narrower way: whatever has not come is asked again. With fragments of another size the read begins anew when
/// its turn comes, under another `request_id`, since a late fragment of the old size may look like one of the new size.
pub fn restart(read: *PendingRead, fragment_size: u16, request_id: u32, timeout_us: u64) void {
    assert(read.state == .in_flight);
    if (fragment_size == read.fragment_size) {
        read.timeout_us = timeout_us;
        return read.retransmitMissing();
    }
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
    };
}

/// The first `bytes` of what waits, as a read of its own; this one is what is left of it, in the same slot in line.
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
    };
}

/// The edge could not read its store: it is asked again when the doubled time-out has passed, not before.
pub fn waitAfterStoreError(read: *PendingRead, now_us: u64) void {
    read.progress_at_us = now_us;
    read.timeout_us = @min(read.timeout_us * 2, RttEstimator.rto_us_max);
    read.retransmit = null;
    read.sent_serial = std.math.maxInt(u64);
}

/// Moves missing fragments from `repeat` into `ranges`, as many as fit; returns how many fragments.
pub fn takeMissing(read: *PendingRead, ranges: *wire.RangeList) u16 {
    const wanted = read.retransmit.?;
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

pub fn noteRepeat(read: *PendingRead, now_us: u64, serial: u64) void {
    read.attempt +|= 1;
    read.sent_serial = serial;
    read.progress_at_us = now_us;
    read.overtaken = 0;
    read.has_full_size = false;
}

/// While fragments of any read come in, the edge is at work in the order it was asked: nobody is late yet.
pub fn timeoutAt(read: *const PendingRead, last_fragment_at_us: u64) u64 {
    return @max(read.progress_at_us, last_fragment_at_us) + read.timeout_us;
}

/// Goes before `other`: somebody waits for it and not for the other, or it was submitted earlier; request ids are compared so that they
/// may wrap. For the boot profile all that is read ahead waits.
pub fn isBefore(read: *const PendingRead, other: ?*const PendingRead) bool {
    const rival = other orelse return true;
    if (read.is_waited_for != rival.is_waited_for) return read.is_waited_for;
    return @as(i32, @bitCast(read.request_id -% rival.request_id)) < 0;
}

fn noteHighest(read: *PendingRead, index: u16) void {
    var candidate = index + 1;
    for (&read.highest) |*kept| {
        const lower = @min(kept.*, candidate);
        kept.* = @max(kept.*, candidate);
        candidate = lower;
    }
}

/// A hole with `gap_threshold` fragments beyond it is lost.
fn retransmitHoles(read: *PendingRead) void {
    const highest = read.highest[gap_threshold - 1];
    if (highest == 0) return;
    const certain = highest - 1;
    if (certain <= read.retransmitted_below) return;
    var first = read.retransmitted_below;
    while (first < certain and read.has(first)) first += 1;
    read.retransmitted_below = certain;
    if (first == certain) return;
    const begin = if (read.retransmit) |pending| pending.first else first;
    read.retransmit = .{ .first = begin, .end = certain };
}
