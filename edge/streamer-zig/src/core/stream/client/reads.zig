//! A device's reads in flight (packages/proto/STREAM.md, "Recovery"): which one is sent next, how
//! each progresses, and what is retransmitted.

const std = @import("std");
const wire = @import("wire").stream;
const PendingRead = @import("pending_read.zig");
const RttEstimator = @import("../congestion/rtt.zig");
const sends = @import("sends.zig");
const packed_answers = @import("packed_answers.zig");
const StreamClient = @import("client.zig");
const CongestionWindow = @import("../congestion/window.zig");
const assert = std.debug.assert;

/// A read is retransmitted at once when this many fragments of later requests have arrived.
const overtaken_threshold = 3;

/// Extra slots for the parts of split reads, all together.
pub const parts_max = 16;
/// A part is a multiple of this, in bytes, like disks and profiles.
const part_size_unit = CongestionWindow.part_bytes_min;

/// The fragment of a sealed DATA packet that is not authenticated yet, and where its payload
/// belongs.
pub const FragmentSlot = struct { request_id: u32, index: u16, buffer: []u8 };

/// Returns null if it is no such packet, or nobody waits for it.
pub fn slotFor(client: *StreamClient, packet: []const u8) ?FragmentSlot {
    if (client.protection.from_edge.cipher == .clear) return null;
    const header = wire.fragmentOf(client.session.?.version, packet) orelse return null;
    const read = findAsked(client, header.request_id) orelse return null;
    const payload_buffer = read.slotFor(
        header.index,
        packet.len - wire.header_size - wire.tag_size,
    ) orelse return null;
    return .{ .request_id = header.request_id, .index = header.index, .buffer = payload_buffer };
}

pub fn receiveFragment(
    client: *StreamClient,
    now_us: u64,
    request_id: u32,
    fragment: wire.Data,
) bool {
    client.last_fragment_at_us = now_us;
    const read = findAsked(client, request_id) orelse {
        onUnexpected(client, request_id);
        return true;
    };
    const before = read.arrivedBytes();
    const beyond = read.highest[0];
    switch (read.accept(now_us, fragment)) {
        .mismatch => return false,
        .duplicate => {
            onUnexpected(client, request_id);
            return true;
        },
        .contradiction => {
            client.statistics.contradictions += 1;
            client.window.onAbandoned(read.missingBytes());
            read.renew(client.takeRequestId());
            return true;
        },
        .new => {},
    }
    client.window.onAck(now_us, read.arrivedBytes() - before, &read.send_record, .{
        .is_first = read.round_trip_us != null,
        .is_last = read.attempt == 0 and read.isComplete(),
    });
    assert(read.received_count > 0);
    if (read.attempt == 0) client.network.onFragment(fragment.index, beyond);
    client.path.onReceived(@intCast(
        wire.header_size + read.prefixSize() + fragment.payload.len + wire.tag_size,
    ));
    if (read.round_trip_us) |sample| {
        client.rtt.sample(sample);
        read.round_trip_us = null;
    }
    read.timeout_us = client.rtt.rto_us;
    // Packets arrive in the order sent, except for slight reordering: a read that was overtaken has
    // lost something.
    for (client.readsKept()) |*other| {
        if (other.state != .in_flight or other.retransmit != null) continue;
        if (other.sent_serial >= read.first_serial) continue;
        other.overtaken += 1;
        if (other.overtaken >= overtaken_threshold) other.retransmitMissing();
    }
    if (read.isComplete()) finish(client, now_us, read);
    return true;
}

/// Everything has arrived: the submitted read, or one part of it, is complete.
fn finish(client: *StreamClient, now_us: u64, read: *PendingRead) void {
    assert(read.state == .in_flight);
    assert(read.isComplete());
    if (read.form == .packed_up and !packed_answers.unpack(client, read)) {
        client.statistics.unpackable += 1;
        return read.renew(client.takeRequestId());
    }
    client.statistics.read_bytes += read.buffer.len;
    if (read.kind != .profile and !client.times.is_over)
        client.fetched.add(read.request_id, now_us -| read.sent_at_us);
    if (read.had_store_error) {
        client.store_errors.onRead();
        client.failover.unable.clear();
    }
    for (client.readsKept()) |*other| if (other != read and isPendingPartOf(other, read.whole_id)) {
        releaseSlot(client, read);
        return;
    };
    read.state = .done;
    if (read.kind != .profile) client.times.onFetch(now_us -| read.sent_first_at_us.?);
    client.statistics.reads += 1;
}

fn isPendingPartOf(read: *const PendingRead, whole_id: u32) bool {
    return read.whole_id == whole_id and switch (read.state) {
        .queued, .in_flight => true,
        .free, .done, .failed => false,
    };
}

/// A fragment that arrived before, possibly of a finished read: was a stall mistaken for a loss?
fn onUnexpected(client: *StreamClient, request_id: u32) void {
    client.statistics.unexpected_fragments += 1;
    client.window.onSpuriousLoss();
    // Finished reads are known by the contents of their slots.
    for (client.reads) |*read| {
        if (read.request_id != request_id) continue;
        const stall_us = read.stall_us orelse return;
        client.rtt.onSpuriousTimeout(stall_us);
        read.stall_us = null;
        read.timed_out = false;
        return;
    }
}

pub fn receiveReadError(
    client: *StreamClient,
    now_us: u64,
    request_id: u32,
    code: wire.ReadErrorCode,
) bool {
    const read = findAsked(client, request_id) orelse return true;
    assert(read.state == .in_flight);
    if (code == .store_error) {
        client.statistics.store_errors += 1;
        read.had_store_error = true;
        client.store_errors.onError(now_us, &read.store_errors, read.attempt);
        read.waitAfterStoreError(now_us);
        return true;
    }
    // Its buffer is not written any more.
    for (client.readsKept()) |*part| if (isPendingPartOf(part, read.whole_id)) {
        if (part.state == .in_flight) client.window.onAbandoned(part.missingBytes());
        if (part != read) releaseSlot(client, part);
    };
    assert(client.reads_count > 0);
    read.state = .failed;
    read.failure = code;
    return true;
}

/// Retransmits what timed out.
pub fn checkTimers(client: *StreamClient, now_us: u64) void {
    for (client.readsKept()) |*read| {
        if (read.state != .in_flight or read.retransmit != null) continue;
        if (now_us < read.timeoutAt(client.last_fragment_at_us)) continue;
        if (read.is_refused) {
            read.retransmitMissing();
            continue;
        }
        read.timeout_us = @min(read.timeout_us * 2, RttEstimator.rto_us_max);
        assert(read.timeout_us <= RttEstimator.rto_us_max);
        read.timed_out = true;
        client.statistics.timeouts += 1;
        if (read.sent_serial > client.timed_out_serial) {
            client.timed_out_serial = client.send_serial;
            client.rtt.onTimeout();
        }
        client.window.onTimeout(&read.send_record);
        // Includes reads requested before the path was found to be wider: if they are lost, larger
        // ones are, too.
        if (read.fragment_size <= client.fragmentSize())
            client.path.onTimeout(now_us, read.missing());
        read.retransmitMissing();
    }
}

/// Returns when the next read is due.
pub fn deadline(client: *const StreamClient) ?u64 {
    var earliest: ?u64 = null;
    for (client.readsKept()) |*read| {
        const at = switch (read.state) {
            .in_flight => if (read.retransmit != null) 0 else read.timeoutAt(
                client.last_fragment_at_us,
            ),
            .free, .queued, .done, .failed => continue,
        };
        earliest = @min(earliest orelse at, at);
    }
    if (firstQueued(client)) |read|
        if (inParts(client, read, client.window.freeBytes(read.buffer.len)) != null) {
            if (client.window.opensAt(read.buffer.len)) |at|
                earliest = @min(earliest orelse at, at);
        };
    if (starved(client) != null) return 0;
    return earliest;
}

/// Sends retransmissions before new reads, each in the order of submission.
pub fn transmit(client: *StreamClient, now_us: u64, out: *[wire.request_size_max]u8) ?[]const u8 {
    while (firstToRetransmit(client)) |read| {
        var ranges: wire.RangeList = .{};
        const missing = read.takeMissing(&ranges);
        // The missing fragments may have arrived since.
        if (missing == 0) continue;
        const bytes = read.bytesOf(ranges.view());
        if (read.received_count > 0) client.network.onHoles(ranges.view());
        assert(missing <= read.fragment_count);
        assert(bytes <= read.buffer.len);
        if (read.is_refused)
            client.window.onAbandoned(bytes)
        else
            client.window.onLoss(
                bytes,
                &read.send_record,
                if (read.received_count == 0) 1 else missing,
            );
        read.is_refused = false;
        read.send_record = client.window.onSend(now_us, bytes);
        read.onRetransmit(now_us, takeSerial(client));
        client.statistics.retransmits += 1;
        client.statistics.missing_fragments += missing;
        return emit(client, read, ranges.view(), out);
    }
    if (client.used.isFull()) return sends.transmitUsed(client, out);
    const wanted = allowed(client, now_us) orelse starved(client) orelse return null;
    // USED goes first, so that the edge learns the order of the system's demands.
    if (wanted.read.kind == .demand) if (sends.transmitUsed(client, out)) |packet| return packet;
    const read =
        if (wanted.bytes < wanted.read.buffer.len) cut(client, now_us, wanted) else wanted.read;
    assert(read.state == .queued);
    client.onWaiting(now_us);
    client.statistics.requests += @intFromBool(read.attempt == 0 and read.kind != .profile);
    read.ask(now_us, client.fragmentSize(), takeSerial(client), client.rtt.rto_us);
    read.send_record = client.window.onSend(now_us, read.buffer.len);
    return emit(client, read, .{}, out);
}

/// Returns the serial number of a READ: later ones have larger numbers.
fn takeSerial(client: *StreamClient) u64 {
    assert(client.send_serial >= client.timed_out_serial);
    client.send_serial += 1;
    return client.send_serial;
}

/// What to request now of a waiting read: all of it, or its beginning.
const NextRead = struct { read: *PendingRead, bytes: u64 };

/// Reads are requested in order: a small one never overtakes a large one that has to wait.
fn firstQueued(client: *const StreamClient) ?*PendingRead {
    var first: ?*PendingRead = null;
    for (client.readsKept()) |*read| {
        if (read.state == .queued and read.isBefore(first)) first = read;
    }
    return first;
}

fn allowed(client: *StreamClient, now_us: u64) ?NextRead {
    const read = firstQueued(client) orelse return null;
    const whole = read.buffer.len;
    const bytes = client.window.sendableBytes(now_us, whole);
    assert(bytes <= whole);
    return inParts(client, read, bytes);
}

/// One read-ahead may always be in flight, even if the system's own reads fill the window:
/// otherwise none would ever arrive while it demands more than that.
fn starved(client: *const StreamClient) ?NextRead {
    var first: ?*PendingRead = null;
    for (client.readsKept()) |*read| {
        if (read.is_waited_for) continue;
        if (read.state == .in_flight) return null;
        if (read.state == .queued and read.isBefore(first)) first = read;
    }
    const read = first orelse return null;
    return inParts(client, read, partBytes(client, read));
}

/// Returns the smallest part that is requested by itself, beside the window.
fn partBytes(client: *const StreamClient, read: *const PendingRead) u64 {
    const least = client.window.partBytes(read.buffer.len);
    return if (client.session.?.codec == 0) least else @max(least, toUnitEnd(read, least));
}

/// Bytes from the read's start to the end of the unit in which a part of `bytes` ends.
fn toUnitEnd(read: *const PendingRead, bytes: u64) u64 {
    const unit = packed_answers.unit_size;
    const end = (read.offset + bytes + unit - 1) / unit * unit;
    return @min(read.buffer.len, end - read.offset);
}

/// Lets `bytes` of this read be requested. A part consists of whole blocks, or ends with a unit
/// where answers are packed, and needs a free slot; otherwise the read waits until all of it fits,
/// or nothing else is in flight.
fn inParts(client: *const StreamClient, read: *PendingRead, bytes: u64) ?NextRead {
    const whole: u64 = read.buffer.len;
    const outstanding = client.inFlightBytes();
    const limit = if (read.kind == .profile) whole else client.options.request_bytes_max;
    const most = @min(bytes, client.session.?.outstanding_bytes_max -| outstanding);
    if (most >= whole and whole <= limit) return .{ .read = read, .bytes = whole };
    const part = if (most >= limit) limit else partOf(client, read, most);
    if (part != 0 and mayCut(client, read)) return .{ .read = read, .bytes = part };
    return if (outstanding == 0) .{ .read = read, .bytes = whole } else null;
}

fn partOf(client: *const StreamClient, read: *const PendingRead, bytes: u64) u64 {
    if (client.session.?.codec == 0) return bytes - bytes % part_size_unit;
    const end = read.offset + bytes;
    return end - end % packed_answers.unit_size -| read.offset;
}

/// A profile document that is replaced meanwhile would be two halves.
fn mayCut(client: *const StreamClient, read: *const PendingRead) bool {
    if (read.kind == .profile) return false;
    var slots = client.reads.len - client.slots_used;
    for (client.readsKept()) |*other| slots += @intFromBool(other.state == .free);
    // Submitted reads have their own slots.
    return slots > client.options.reads_max - client.reads_count;
}

/// The part becomes a read of its own; the rest waits at the same position.
fn cut(client: *StreamClient, now_us: u64, wanted: NextRead) *PendingRead {
    assert(wanted.read.kind != .profile);
    const part = freeSlot(client).?;
    part.* = wanted.read.cut(now_us, @intCast(wanted.bytes), client.takeRequestId());
    return part;
}

/// Returns a free slot, counted as used.
pub fn freeSlot(client: *StreamClient) ?*PendingRead {
    assert(client.slots_used <= client.reads.len);
    for (client.readsKept()) |*read| {
        if (read.state == .free) return read;
    }
    if (client.slots_used == client.reads.len) return null;
    client.slots_used += 1;
    return &client.reads[client.slots_used - 1];
}

pub fn releaseSlot(client: *StreamClient, read: *PendingRead) void {
    assert(read.state != .free);
    read.state = .free;
    while (client.slots_used > 0 and client.reads[client.slots_used - 1].state == .free)
        client.slots_used -= 1;
}

fn firstToRetransmit(client: *StreamClient) ?*PendingRead {
    assert(client.slots_used <= client.reads.len);
    var first: ?*PendingRead = null;
    for (client.readsKept()) |*read| {
        if (read.state == .in_flight and read.retransmit != null and read.isBefore(first))
            first = read;
    }
    return first;
}

fn emit(
    client: *const StreamClient,
    read: *const PendingRead,
    ranges: wire.Ranges,
    out: *[wire.request_size_max]u8,
) []const u8 {
    const session = &client.session.?;
    return wire.emit(.{
        .version = session.version,
        .session_id = session.id,
        .request_id = read.request_id,
        .body = .{
            .read = .{
                .kind = read.kind,
                .fragment_size = read.fragment_size,
                .version_tag = session.version_tag,
                .offset = read.offset,
                .length = @intCast(read.buffer.len),
                .attempt = read.attempt,
                .is_plain = session.codec != 0 and read.kind != .profile and
                    (read.must_be_plain or read.form == .plain),
                .ranges = ranges,
            },
        },
    }, out);
}

fn findAsked(client: *StreamClient, request_id: u32) ?*PendingRead {
    for (client.readsKept()) |*read| {
        if (read.state == .in_flight and read.request_id == request_id) return read;
    }
    return null;
}
