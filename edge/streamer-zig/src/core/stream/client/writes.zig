//! A device's writes over the stream (packages/proto/STREAM.md, "Writes"): writes, discards and
//! flushes in progress, retransmitted until the edge has reported how each ended. Two that overlap
//! are never in flight together, and a flush is sent when everything submitted before it has ended:
//! so the order in which packets arrive does not matter.

const std = @import("std");
const wire = @import("wire").stream;
const writes = wire.writes;
const RttEstimator = @import("../congestion/rtt.zig");
const step = @import("step.zig");
const MtuProbe = @import("mtu_probe.zig");
const assert = std.debug.assert;

pub const WriteQueue = @This();

/// Bytes of writes sent and not acknowledged; a loss shrinks the window, each acknowledgement grows
/// it.
const window_bytes_first = 128 << 10;
const window_bytes_min = 32 << 10;
const window_bytes_max = 1 << 20;
const window_growth = 16 << 10;
/// A silent write of more fragments than this is probed by its last fragment alone.
const whole_retransmit_max = 3;
/// Before the first sample, as for HELLO: an edge with a slow disk reports that it is working.
const timeout_us_first = RttEstimator.rto_us_max / 5;
/// After this many futile rounds (the edge was alive and got nothing more of a retransmitted write)
/// its fragments exceed the path MTU.
const futile_max = 4;
/// For IP packets of 1500, 1400 (tunnels), 1256 and 576 bytes, as in `PathMtu`.
const fragment_sizes = [_]u16{
    wire.fragment_size_ethernet,
    1372 - wire.header_size - wire.tag_size,
    1228 - wire.header_size - wire.tag_size,
    wire.packet_size_min - wire.header_size - wire.tag_size,
};
/// After this long a larger size is tried again.
const narrow_us = 10 * std.time.us_per_min;

pending: []PendingWrite,
request_id_next: u32 = 1,
/// A request was sent to the edge.
is_started: bool = false,
rtt: RttEstimator = .{},
/// The largest fragments that reach the edge, and since when that is not the maximum: the path
/// there may be narrower than the path back.
fragment_size_max: u16 = fragment_sizes[0],
narrow_since_us: u64 = 0,
window_bytes: u32 = window_bytes_first,
outstanding_bytes: u32 = 0,
/// Probes whether an edge that does not answer a write is alive.
mtu_probe: MtuProbe = .{},

pub const Kind = enum { write, flush, discard };

pub const PendingWrite = struct {
    state: enum { free, queued, in_flight, ended } = .free,
    kind: Kind = .flush,
    tag: u64 = 0,
    offset: u64 = 0,
    length: u32 = 0,
    bytes: []const u8 = &.{},
    request_id: u32 = 0,
    code: wire.WriteCode = .done,
    fragment_size: u16 = 0,
    /// Fragments to send next; of a flush or discard, the only one is the request.
    to_send: std.bit_set.Static(writes.fragments_max) = .empty,
    attempt: u16 = 0,
    /// Fragments that the edge lacks, by its latest answer.
    missing: u16 = 0,
    futile: u8 = 0,
    /// When the missing fragments were last sent.
    round_at_us: u64 = 0,
    /// If a live edge has not answered by then, it did not receive the write; null: whether the
    /// edge is alive is unknown.
    round_ends_us: ?u64 = null,
    /// The edge has answered since the last transmission.
    is_answered: bool = false,
    /// The edge has reported that it is executing the write.
    is_executing: bool = false,
    first_sent_at_us: u64 = 0,
    sent_at_us: u64 = 0,
    timeout_us: u64 = 0,

    fn fragmentCount(write: *const PendingWrite) u16 {
        return if (write.kind == .write) writes.fragmentCount(
            write.length,
            write.fragment_size,
        ) else 1;
    }

    fn sendAll(write: *PendingWrite) void {
        assert(write.fragmentCount() > 0);
        assert(write.fragmentCount() <= writes.fragments_max);
        write.to_send = .empty;
        write.to_send.setRangeValue(.{ .start = 0, .end = write.fragmentCount() }, true);
    }

    fn begin(write: *PendingWrite, fragment_size: u16, timeout_us: u64) void {
        assert(write.state == .in_flight);
        write.fragment_size = fragment_size;
        write.timeout_us = timeout_us;
        write.sendAll();
        write.missing = write.fragmentCount();
        write.futile = 0;
        write.round_ends_us = null;
        write.is_executing = false;
    }

    /// Its packets reach the edge.
    fn onAnswer(write: *PendingWrite) void {
        assert(write.state == .in_flight);
        write.is_answered = true;
        write.futile = 0;
        write.round_ends_us = null;
    }

    /// It was retransmitted, and the edge, if it is alive, has not answered.
    fn mayBeTooLarge(write: *const PendingWrite) bool {
        if (write.state != .in_flight or write.attempt == 0 or write.is_answered or
            write.round_ends_us != null) return false;
        return write.to_send.findFirstSet() == null and write.smallerSize() != null;
    }

    fn dueAt(write: *const PendingWrite) u64 {
        return @min(write.sent_at_us + write.timeout_us, write.round_ends_us orelse
            std.math.maxInt(u64));
    }

    /// Returns the next smaller fragment size that splits it further; null: there is none.
    fn smallerSize(write: *const PendingWrite) ?u16 {
        if (write.kind != .write) return null;
        const longest = @min(write.length, writes.payloadSize(write.fragment_size));
        return for (fragment_sizes) |size| {
            if (writes.payloadSize(size) < longest) break size;
        } else null;
    }

    fn isBefore(write: *const PendingWrite, other: ?*const PendingWrite) bool {
        const rival = other orelse return true;
        return @as(i32, @bitCast(write.request_id -% rival.request_id)) < 0;
    }

    fn overlaps(write: *const PendingWrite, other: *const PendingWrite) bool {
        return write.offset < other.offset + other.length and
            other.offset < write.offset + write.length;
    }
};

pub const WriteEnd = struct { tag: u64, code: wire.WriteCode };

pub fn init(gpa: std.mem.Allocator, writes_max: u16) error{OutOfMemory}!WriteQueue {
    assert(writes_max <= writes.window);
    const pending = try gpa.alloc(PendingWrite, writes_max);
    @memset(pending, .{});
    return .{ .pending = pending };
}

pub fn deinit(queue: *WriteQueue, gpa: std.mem.Allocator) void {
    gpa.free(queue.pending);
    queue.* = undefined;
}

pub fn clear(queue: *WriteQueue) void {
    @memset(queue.pending, .{});
    queue.* = .{ .pending = queue.pending };
    assert(!queue.hasInFlight());
    assert(queue.outstanding_bytes == 0);
}

/// Another process used ids up to `last`, and requests whose end it does not know are sent again
/// with new ones: the edge mistakes none of them for an earlier one.
pub fn continueAfter(queue: *WriteQueue, last: u32) void {
    queue.is_started = true;
    queue.request_id_next = last +% writes.window +% 1;
}

pub fn submit(queue: *WriteQueue, wanted: PendingWrite) error{Full}!void {
    assert(wanted.state == .free);
    for (queue.pending) |*write| {
        if (write.state != .free) continue;
        write.* = wanted;
        write.state = .queued;
        write.request_id = queue.request_id_next;
        queue.is_started = true;
        queue.request_id_next +%= 1;
        return;
    }
    return error.Full;
}

/// Returns the next packet, or null when nothing is to be sent before `deadline`.
pub fn transmit(
    queue: *WriteQueue,
    now_us: u64,
    session: *const step.Session,
    fragment_size: u16,
    out: []u8,
) ?[]const u8 {
    const write = queue.firstToSend() orelse blk: {
        const first = queue.firstAllowed() orelse return null;
        first.state = .in_flight;
        if (now_us -| queue.narrow_since_us >= narrow_us)
            queue.fragment_size_max = fragment_sizes[0];
        first.begin(@min(fragment_size, queue.fragment_size_max), queue.timeoutUs());
        first.first_sent_at_us = now_us;
        first.round_at_us = now_us;
        queue.outstanding_bytes += first.length;
        break :blk first;
    };
    const index: u16 = @intCast(write.to_send.findFirstSet().?);
    assert(write.state == .in_flight);
    assert(index < write.fragmentCount());
    write.to_send.unset(index);
    write.sent_at_us = now_us;
    write.is_answered = false;
    const body: wire.Body = switch (write.kind) {
        .write => blk: {
            const at = @as(usize, index) * writes.payloadSize(write.fragment_size);
            const size = writes.fragmentLength(write.length, write.fragment_size, index);
            break :blk .{ .write = .{
                .version_tag = session.version_tag,
                .offset = write.offset,
                .length = write.length,
                .attempt = write.attempt,
                .fragment_size = write.fragment_size,
                .index = index,
                .payload = write.bytes[at..][0..size],
            } };
        },
        .flush => .{ .control = .{
            .version_tag = session.version_tag,
            .operation = .flush,
            .attempt = write.attempt,
        } },
        .discard => .{ .control = .{
            .version_tag = session.version_tag,
            .operation = .discard,
            .offset = write.offset,
            .length = write.length,
            .attempt = write.attempt,
        } },
    };
    return wire.emit(
        .{
            .version = session.version,
            .session_id = session.id,
            .request_id = write.request_id,
            .body = body,
        },
        out,
    );
}

pub fn deadline(queue: *const WriteQueue) ?u64 {
    var earliest: ?u64 = null;
    for (queue.pending) |*write| {
        if (write.state != .in_flight) continue;
        if (write.to_send.findFirstSet() != null) return 0;
        earliest = @min(earliest orelse write.dueAt(), write.dueAt());
    }
    if (queue.mtu_probe.due_at_us) |at_us| earliest = @min(earliest orelse at_us, at_us);
    return if (queue.firstAllowed() != null) 0 else earliest;
}

/// Retransmits what timed out.
pub fn checkTimers(queue: *WriteQueue, now_us: u64) void {
    for (queue.pending) |*write| {
        if (write.state != .in_flight or write.to_send.findFirstSet() != null) continue;
        if (now_us < write.dueAt()) continue;
        if (now_us >= write.sent_at_us + write.timeout_us)
            write.timeout_us = @min(write.timeout_us * 2, RttEstimator.rto_us_max);
        write.attempt +|= 1;
        if (write.round_ends_us) |ends_us| if (now_us >= ends_us) {
            write.round_ends_us = null;
            if (queue.isFutile(now_us, write)) continue;
        };
        const count = write.fragmentCount();
        if (count <= whole_retransmit_max) write.sendAll() else write.to_send.set(count - 1);
        // While the edge sends nothing at all, size may not be the cause.
        if (write.round_ends_us == null and write.smallerSize() != null)
            queue.mtu_probe.schedule(now_us);
    }
}

/// Tells whether to probe the edge now; the probe follows all requests.
pub fn takeProbe(queue: *WriteQueue, now_us: u64, request_id: u32) bool {
    if (!queue.mtu_probe.isDue(now_us)) return false;
    for (queue.pending) |*write| {
        if (write.mayBeTooLarge()) break;
    } else {
        queue.mtu_probe.cancel();
        return false;
    }
    queue.mtu_probe.onSend(now_us, request_id);
    assert(queue.mtu_probe.due_at_us == null);
    return true;
}

/// The edge is alive: anything sent before the probe and unanswered did not arrive.
pub fn onProbeAnswer(queue: *WriteQueue, now_us: u64, request_id: u32) void {
    const answered = queue.mtu_probe.answer(now_us, request_id) orelse return;
    assert(queue.mtu_probe.request_id == null);
    for (queue.pending) |*write| {
        if (!write.mayBeTooLarge() or write.sent_at_us > answered.sent_at_us) continue;
        write.round_ends_us =
            answered.sent_at_us + @max(2 * answered.took_us, MtuProbe.roundUs(write.futile));
    }
}

/// Returns false if no request in flight has this id.
pub fn acknowledge(queue: *WriteQueue, now_us: u64, request_id: u32, ack: wire.WriteAck) bool {
    const write = queue.findAsked(request_id) orelse return false;
    if (ack.code == .missing) {
        if (write.kind != .write) return false;
        write.is_answered = true;
        write.round_ends_us = null;
        // The rest of the missing fragments is in flight.
        if (write.to_send.findFirstSet() != null) return true;
        var missing: u16 = 0;
        for (0..write.fragmentCount()) |index|
            missing += @intFromBool(ack.isMissing(@intCast(index)));
        if (missing >= write.missing) {
            // Nothing more has arrived since. It may be in flight or never arrive: sending at once
            // would get the same answer at once.
            if (now_us < write.round_at_us +
                @max(queue.timeoutUs(), MtuProbe.roundUs(write.futile))) return true;
            if (queue.isFutile(now_us, write)) return true;
        } else write.onAnswer();
        assert(missing <= write.fragmentCount());
        write.timeout_us = queue.timeoutUs();
        write.missing = missing;
        write.round_at_us = now_us;
        for (0..write.fragmentCount()) |index|
            if (ack.isMissing(@intCast(index))) write.to_send.set(index);
        write.attempt +|= 1;
        queue.window_bytes = @max(window_bytes_min, queue.window_bytes - queue.window_bytes / 8);
        return true;
    }
    if (ack.code == .not_yet) {
        write.onAnswer();
        // A request that could not be executed may have to be sent again completely.
        write.missing = write.fragmentCount();
        write.is_executing = true;
        return true;
    }
    // If the edge was executing it when it was retransmitted, its first transmission had arrived
    // (Karn's algorithm).
    if (write.attempt == 0 or write.is_executing)
        queue.rtt.sample(now_us -| write.first_sent_at_us);
    if (ack.code == .done)
        queue.window_bytes = @min(window_bytes_max, queue.window_bytes + window_growth);
    assert(queue.window_bytes >= window_bytes_min);
    assert(queue.window_bytes <= window_bytes_max);
    assert(queue.outstanding_bytes >= write.length);
    queue.outstanding_bytes -= write.length;
    write.state = .ended;
    write.code = ack.code;
    return true;
}

/// One more round in which nothing of it arrived. Returns true when everything in flight is sent
/// again, in smaller fragments.
fn isFutile(queue: *WriteQueue, now_us: u64, write: *PendingWrite) bool {
    write.futile +|= 1;
    if (write.futile < futile_max) return false;
    const smaller = write.smallerSize() orelse return false;
    assert(write.state == .in_flight);
    assert(smaller < write.fragment_size);
    queue.fragment_size_max = smaller;
    queue.narrow_since_us = now_us;
    for (queue.pending) |*other| {
        if (other.state != .in_flight or other.kind != .write or other.fragment_size <= smaller)
            continue;
        other.begin(smaller, queue.timeoutUs());
        if (other != write) other.attempt +|= 1;
    }
    return true;
}

/// After a resumption: the edge may have lost everything that it was sent.
pub fn restart(queue: *WriteQueue, fragment_size: u16) void {
    assert(queue.window_bytes >= window_bytes_min);
    queue.mtu_probe = .{};
    for (queue.pending) |*write| {
        if (write.state != .in_flight) continue;
        write.attempt +|= 1;
        write.begin(@min(fragment_size, queue.fragment_size_max), queue.timeoutUs());
    }
}

pub fn nextEnded(queue: *WriteQueue) ?WriteEnd {
    for (queue.pending) |*write| {
        if (write.state != .ended) continue;
        write.state = .free;
        return .{ .tag = write.tag, .code = write.code };
    }
    return null;
}

pub fn hasInFlight(queue: *const WriteQueue) bool {
    for (queue.pending) |*write| if (write.state == .in_flight) return true;
    return false;
}

fn timeoutUs(queue: *const WriteQueue) u64 {
    return if (queue.rtt.sampled) queue.rtt.rto_us else timeout_us_first;
}

fn firstToSend(queue: *WriteQueue) ?*PendingWrite {
    var first: ?*PendingWrite = null;
    for (queue.pending) |*write| {
        if (write.state == .in_flight and write.to_send.findFirstSet() != null and
            write.isBefore(first)) first = write;
    }
    return first;
}

/// Returns the oldest request that may be sent now. Ids in flight lie within the edge's window of
/// them.
fn firstAllowed(queue: *const WriteQueue) ?*PendingWrite {
    var oldest: ?*const PendingWrite = null;
    var first: ?*PendingWrite = null;
    for (queue.pending) |*write| {
        if (write.state != .queued and write.state != .in_flight) continue;
        if (write.isBefore(oldest)) oldest = write;
    }
    for (queue.pending) |*write| {
        if (write.state != .queued or !write.isBefore(first)) continue;
        if (write.request_id -% oldest.?.request_id >= writes.window) continue;
        if (queue.hasToWait(write)) continue;
        first = write;
    }
    return first;
}

fn hasToWait(queue: *const WriteQueue, write: *const PendingWrite) bool {
    if (write.kind == .write and queue.outstanding_bytes != 0 and
        queue.outstanding_bytes + write.length > queue.window_bytes) return true;
    for (queue.pending) |*other| {
        if (other.state != .queued and other.state != .in_flight) continue;
        if (!other.isBefore(write)) continue;
        if (write.kind == .flush or write.overlaps(other)) return true;
    }
    return false;
}

fn findAsked(queue: *WriteQueue, request_id: u32) ?*PendingWrite {
    for (queue.pending) |*write| {
        if (write.state == .in_flight and write.request_id == request_id) return write;
    }
    return null;
}
