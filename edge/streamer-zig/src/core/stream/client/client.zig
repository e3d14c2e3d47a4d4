//! The device's side of the stream (packages/proto/STREAM.md): sends HELLO, keeps several reads in
//! flight, retransmits exactly the missing fragments, resumes when the edge has forgotten it, and
//! never gives up by itself. Producer: the packets of an edge; consumers: `bootfarm-target` and the
//! simulators. It has no clock and no socket, and allocates only in `init`; bytes go straight into
//! the caller's buffers.
//!
//! How a caller uses it, after anything that may have changed (a packet, a timer, a new read):
//!
//!     while (client.transmit(now_us, &out)) |packet| send(packet);
//!     while (client.nextEvent()) |event| ...;
//!     sleep until client.deadline(), then transmit again

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const hello_steps = @import("hello.zig");
const hello_versions = @import("hello_versions.zig");
const LostSession = @import("lost.zig");
const PathMtu = @import("../congestion/path_mtu.zig");
const reads_in_flight = @import("reads.zig");
const sends = @import("sends.zig");
const Failover = @import("failover.zig");
const FetchedReads = @import("fetched_reads.zig");
const StoreErrors = @import("store_errors.zig");
const RttEstimator = @import("../congestion/rtt.zig");
const PendingRead = @import("pending_read.zig");
const ReadTimes = @import("read_times.zig");
const CongestionWindow = @import("../congestion/window.zig");
const step = @import("step.zig");
const WriteQueue = @import("writes.zig");
const AccountPart = @import("account_part.zig");
const NetworkTally = @import("network_tally.zig");
const ReportState = @import("report.zig");
const assert = std.debug.assert;

pub const StreamClient = @This();

pub const hello_timeout_us_first = step.hello_timeout_us_first;
pub const silence_us_max = 10 * std.time.us_per_s;
/// For programs that report what the network does.
pub const rtt_probe_us_default = 250 * std.time.us_per_ms;
/// A read is at most as long as every edge promises to serve.
pub const read_size_max = wire.read_size_promised;
/// Reads that are split use this many extra slots for their parts, all together.
pub const read_parts_max = reads_in_flight.parts_max;

options: Options,
identity: Identity,
state: State = .idle,
/// More than `reads_max`: a read that is split takes one slot per part.
reads: []PendingRead,
/// The packed answer that is being unpacked; empty in a device without a codec.
packed_answer: []u8,
/// All slots from here on are free: with one read in flight, loops over all reads look at one slot.
slots_used: u16 = 0,
/// Reads submitted and not ended.
reads_count: u16 = 0,
/// Starts on the first write: submitted by `submitWrite`.
writes: WriteQueue,
rtt: RttEstimator = .{},
statistics: Statistics = .{},
/// Read times of the boot until it is over; the caller reports when its system demands and gets
/// data.
times: ReadTimes = .{},

greeting: step.Greeting = .{},
session: ?Session = null,
protection: step.Protection = .{},
path: PathMtu = .{},
/// `current` is the edge to exchange packets with; the caller checks it after each call.
failover: Failover = .{},
store_errors: StoreErrors = .{},
/// The packet that was opened last.
opened: [wire.packet_size_max]u8 = undefined,
ready: ?step.Ready = null,
/// Read-ahead that the system used and the edge does not know about.
used: step.UsedList = .{},
/// Reads that have ended and that the edge does not know about.
fetched: FetchedReads = .{},
/// Packets of this session that told the edge what the machine is.
machine_sent: u8 = 0,
report_state: ReportState = .{},
/// What was measured of the path from the edge.
network: NetworkTally = .{},
/// A part of the device's account that the edge has not acknowledged.
account: AccountPart = .{},
/// The edge's question "still there?" that is not answered yet.
keepalive_id: ?u32 = null,
/// Why the session is lost for good; null in a state other than `ended`, and without a session.
lost: ?LostSession = null,

request_id_next: u32 = 1,
send_serial: u64 = 0,
/// The last READ at the latest timeout: reads sent before it reveal nothing new.
timed_out_serial: u64 = 0,
/// Limits how much is in flight, and paces requests.
window: CongestionWindow = .init(
    .{ .fragment_size = wire.fragment_size_ethernet, .bytes_max = read_size_max },
),
last_packet_at_us: u64 = 0,
last_fragment_at_us: u64 = 0,
/// Start of the current uninterrupted wait.
waiting_since_us: u64 = 0,
pending_events: step.PendingEvents = .{},

/// Codecs of packed answers that this program has, as HELLO names them.
pub const codecs = step.codecs;
pub const State = step.State;
pub const Options = step.Options;
pub const Identity = step.Identity;
pub const Session = step.Session;
pub const Event = step.Event;
pub const Statistics = step.Statistics;
pub const Report = step.Report;
pub const Order = step.Order;

/// Allocates the table of reads, and nothing later.
pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!StreamClient {
    assert(options.reads_max > 0);
    assert(options.packet_size_max >= wire.packet_size_min);
    assert(options.packet_size_max <= wire.packet_size_max);
    assert(options.outstanding_bytes_max >= read_size_max);
    assert(options.codecs & ~step.codecs == 0);
    const reads = try gpa.alloc(PendingRead, options.reads_max + reads_in_flight.parts_max);
    errdefer gpa.free(reads);
    const packed_answer = try gpa.alloc(u8, if (options.codecs == 0) 0 else read_size_max);
    errdefer gpa.free(packed_answer);
    return .{
        .options = options,
        .identity = undefined,
        .reads = reads,
        .packed_answer = packed_answer,
        .writes = try .init(gpa, options.writes_max),
    };
}

pub fn deinit(client: *StreamClient, gpa: std.mem.Allocator) void {
    gpa.free(client.reads);
    gpa.free(client.packed_answer);
    client.writes.deinit(gpa);
    client.* = undefined;
}

/// Starts the stream of a boot; everything earlier is forgotten, and its buffers return to the
/// caller.
pub fn start(client: *StreamClient, now_us: u64, identity: Identity) void {
    const reads = client.reads;
    const packed_answer = client.packed_answer;
    const options = client.options;
    @memset(reads, .{});
    var queue = client.writes;
    queue.clear();
    client.* =
        .{
            .options = options,
            .identity = identity,
            .reads = reads,
            .packed_answer = packed_answer,
            .writes = queue,
            .session = identity.session,
        };
    client.last_packet_at_us = now_us;
    client.failover = .init(identity.edge);
    if (identity.session) |*session| {
        client.failover = .init(session.edge);
        client.failover.settle(session.welcomed_at_us, session.failover);
    }
    hello_steps.greetOwn(client, now_us, if (identity.session == null) .token else .resumption);
    assert(client.state == .greeting);
    assert(client.reads_count == 0);
}

/// Requests `buffer.len` bytes at `offset`, both multiples of 512, at most `read_size_max`.
/// `buffer` belongs to the client until the read's event, which carries `tag`. `Full`: `reads_max`
/// reads are in progress.
pub fn submit(client: *StreamClient, tag: u64, offset: u64, buffer: []u8) error{Full}!void {
    return client.submitOf(.demand, tag, offset, buffer);
}

/// The same for bytes that nobody waits for yet: they are requested after those that somebody waits
/// for.
pub fn submitOf(
    client: *StreamClient,
    kind: wire.ReadKind,
    tag: u64,
    offset: u64,
    buffer: []u8,
) error{Full}!void {
    assert(buffer.len > 0);
    assert(buffer.len <= read_size_max);
    assert(buffer.len % wire.sector_size == 0);
    assert(offset % wire.sector_size == 0);
    if (client.reads_count == client.options.reads_max) return error.Full;
    client.reads_count += 1;
    const request_id = client.takeRequestId();
    reads_in_flight.freeSlot(client).?.* = .{
        .state = .queued,
        .tag = tag,
        .kind = kind,
        .is_waited_for = kind != .ahead,
        .offset = offset,
        .buffer = buffer,
        .request_id = request_id,
        .whole = buffer,
        .whole_id = request_id,
    };
    assert(client.reads_count <= client.options.reads_max);
    assert(client.slots_used > 0);
}

/// Somebody now waits for the read-ahead with this tag.
pub fn onWaitedFor(client: *StreamClient, tag: u64) void {
    for (client.readsKept()) |*read| {
        if (read.tag == tag) read.is_waited_for = true;
    }
}

/// Writes `bytes` at `offset`, both multiples of 512, at most `wire.writes.write_size_max`; they
/// belong to the client until the event. Only in a session with a write cache at the edge. `Full`:
/// `writes_max` are in progress.
pub fn submitWrite(
    client: *StreamClient,
    tag: u64,
    offset: u64,
    bytes: []const u8,
) error{Full}!void {
    assert(bytes.len > 0 and bytes.len <= wire.writes.write_size_max);
    assert(bytes.len % wire.sector_size == 0 and offset % wire.sector_size == 0);
    return client.writes.submit(
        .{
            .kind = .write,
            .tag = tag,
            .offset = offset,
            .length = @intCast(bytes.len),
            .bytes = bytes,
        },
    );
}

/// Discards a range, which then reads as zeros; multiples of 512, at most
/// `wire.writes.discard_size_max`.
pub fn submitDiscard(client: *StreamClient, tag: u64, offset: u64, length: u32) error{Full}!void {
    assert(length > 0 and length <= wire.writes.discard_size_max);
    assert(length % wire.sector_size == 0 and offset % wire.sector_size == 0);
    return client.writes.submit(
        .{ .kind = .discard, .tag = tag, .offset = offset, .length = length },
    );
}

/// Ends when everything submitted before has ended and is as durable as the write cache's class
/// promises.
pub fn submitFlush(client: *StreamClient, tag: u64) error{Full}!void {
    assert(client.state != .idle);
    return client.writes.submit(.{ .kind = .flush, .tag = tag });
}

/// Reports the outcome of the boot, retransmitted until the edge acknowledges it. `uptime_us`
/// counts from the kernel's start. `code` is a code that the edge may know as a cause
/// (`boot/cause.zig`), or the name of the service that is ready; `sentence` describes what
/// happened. At most 12 and 64 bytes of printable ASCII: more is truncated, other bytes become `?`.
pub fn reportReady(
    client: *StreamClient,
    now_us: u64,
    outcome: wire.ReadyOutcome,
    uptime_us: u64,
    words: step.ReadyWords,
) void {
    assert(client.state != .idle);
    client.onWaiting(now_us);
    client.times.is_over = true;
    if (client.networkView()) |view| client.network.finish(view);
    client.ready = .{
        .outcome = outcome,
        .uptime_us = uptime_us,
        .code = words.paddedCode(),
        .sentence = .init(words.sentence),
        .request_id = client.takeRequestId(),
        .due_at_us = now_us,
        .timeout_us = client.rtt.rto_us,
    };
}

/// Reports the device's state; the newest report replaces one that is not acknowledged, and is
/// retransmitted until it is. Steps are sent until they are acknowledged once, and again only if
/// the caller changes them. The client has no report timer: its caller reports at least every 5 s,
/// since that is also how orders reach it (events `order`, `report_acknowledged`).
pub fn report(client: *StreamClient, now_us: u64, said: Report) void {
    assert(client.state != .idle);
    client.report_state.set(now_us, said, &client.times);
    client.network.onReport();
    client.sendReport(now_us);
}

fn sendReport(client: *StreamClient, now_us: u64) void {
    client.onWaiting(now_us);
    client.report_state.send(now_us, client.takeRequestId(), client.rtt.rto_us);
}

/// Sends a part of the device's account (event `account_acknowledged`), which replaces one that is
/// not acknowledged. Returns false in a session of a version that has none.
pub fn sendAccount(client: *StreamClient, now_us: u64, part: wire.Account) bool {
    assert(part.bytes.len > 0 and part.bytes.len <= wire.account_part_size_max);
    const session = client.session orelse return false;
    assert(session.id != 0);
    if (session.version == .v2) return false;
    client.account.set(now_us, client.takeRequestId(), part, client.rtt.rto_us);
    return true;
}

/// Takes the signature of the digest in the event `sign`; null: the key cannot sign, and the device
/// counts as one without a key.
pub fn sign(client: *StreamClient, now_us: u64, signature: ?wire.DeviceSignature) void {
    hello_versions.sign(client, now_us, signature);
}

/// The session is lost for good, and the device restarts at `restart_at_us`, or (null) waits: its
/// edge learns of it, and may answer with an order (events `order` and `report_acknowledged`, as
/// for a REPORT). Does nothing for a device that never had a session.
pub fn reportLost(client: *StreamClient, now_us: u64, restart_at_us: ?u64) void {
    LostSession.report(client, now_us, restart_at_us);
}

/// The boot cannot continue, for good.
pub fn end(client: *StreamClient, reason: wire.LostReason, refusal: ?wire.RefuseCode) void {
    assert((reason == .refused) == (refusal != null));
    client.transition(.ended);
    if (client.session == null) return;
    // The secret is that of the latest session's edge.
    client.failover.current = client.failover.own;
    client.lost = .{ .reason = reason, .refusal = refusal };
}

/// Returns bytes that nobody can guess, different for each use and number.
pub fn deriveBytes(client: *const StreamClient, use: []const u8, serial: u64) [32]u8 {
    var mac: base.HmacSha256 = .init(&client.identity.nonce_seed);
    mac.update(std.mem.asBytes(&serial));
    mac.update(use);
    var bytes: [32]u8 = undefined;
    mac.final(&bytes);
    return bytes;
}

/// Takes one datagram from the edge's address.
pub fn receive(client: *StreamClient, now_us: u64, packet: []const u8) void {
    client.statistics.packets_in += 1;
    client.statistics.bytes_in += packet.len;
    if (!client.take(now_us, packet)) {
        client.statistics.ignored += 1;
        return;
    }
    client.last_packet_at_us = now_us;
    client.failover.onReceive();
}

/// The network reports that nobody listens at the edge's address. An attacker may forge this: it
/// only hastens what silence would cause.
pub fn onUnreachable(client: *StreamClient, now_us: u64) void {
    if (!client.failover.hasOthers()) return;
    switch (client.state) {
        .idle, .ended => {},
        .greeting => client.failover.refuse(now_us, null),
        .established => if (client.hasInFlight()) hello_steps.failOver(client, now_us),
    }
}

/// Returns true if the packet belongs to this boot.
fn take(client: *StreamClient, now_us: u64, packet: []const u8) bool {
    if (packet.len < wire.header_size or wire.Version.of(packet) == null) return false;
    switch (std.enums.fromInt(wire.Type, packet[1]) orelse return false) {
        .cookie, .refuse, .lost_ack => {},
        .welcome => return hello_steps.receiveWelcome(client, now_us, packet),
        .no_session => return client.receiveNoSession(now_us, packet),
        .data,
        .read_error,
        .ready_ack,
        .report_ack,
        .write_ack,
        .probe_ack,
        .keepalive,
        .account_ack,
        => {
            if (client.state != .established) return false;
            if (reads_in_flight.slotFor(client, packet)) |slot| {
                if (!client.protection.openFragment(packet, slot.buffer)) return false;
                const taken = reads_in_flight.receiveFragment(client, now_us, slot.request_id, .{
                    .index = slot.index,
                    .payload = slot.buffer,
                });
                client.onPacketSize(now_us, packet);
                return taken;
            }
            const clear = client.protection.open(packet, wire.header_size, &client.opened) orelse
                return false;
            const taken = client.receiveParsed(now_us, wire.parse(clear) catch return false);
            client.onPacketSize(now_us, packet);
            return taken;
        },
        .hello, .read, .used, .ready, .report, .write, .control, .probe => return false,
        .keepalive_ack, .lost, .fetch_times, .account, .machine, .network => return false,
    }
    const parsed = wire.parse(packet) catch return false;
    return switch (parsed.body) {
        .cookie => |*cookie| hello_steps.receiveCookie(client, now_us, parsed.version, cookie),
        .lost_ack => |*ack| LostSession.receive(client, now_us, ack),
        .refuse => |refusal| hello_steps.receiveRefuse(client, now_us, refusal),
        else => unreachable,
    };
}

/// A packet smaller than reads request may have arrived.
fn onPacketSize(client: *StreamClient, now_us: u64, packet: []const u8) void {
    assert(client.state == .established);
    if (packet.len >= client.path.size or !client.path.onSmall(now_us)) return;
    client.network.excuse(&client.protection);
    client.restart();
}

/// The edge has lost the session; the answer names a packet of this device, which nobody else can
/// know.
fn receiveNoSession(client: *StreamClient, now_us: u64, packet: []const u8) bool {
    if (client.state != .established) return false;
    const parsed = wire.parse(packet) catch return false;
    if (!client.protection.hasSent(parsed.session_id)) return false;
    hello_steps.greetOwn(client, now_us, .resumption);
    assert(client.state == .greeting);
    return true;
}

/// Writes the next packet to `out` and returns it; null if there is nothing to send before
/// `deadline`.
pub fn transmit(
    client: *StreamClient,
    now_us: u64,
    out: *[wire.sealed_request_size_max]u8,
) ?[]const u8 {
    client.onTimer(now_us);
    const packet = switch (client.state) {
        .idle => return null,
        .ended => LostSession.transmit(client, now_us, out) orelse return null,
        .greeting => hello_steps.transmit(client, now_us, out) orelse return null,
        .established => blk: {
            const buffer = out[0..wire.request_size_max];
            const clear = reads_in_flight.transmit(client, now_us, buffer) orelse
                sends.transmitPresence(client, buffer) orelse
                sends.transmitWrite(client, now_us, buffer) orelse
                sends.transmitReady(client, now_us, buffer) orelse
                sends.transmitReport(client, now_us, buffer) orelse
                sends.transmitFetchTimes(client, buffer) orelse
                sends.transmitAccount(client, now_us, buffer) orelse
                sends.transmitProbe(client, now_us, buffer) orelse return null;
            break :blk client.protection.seal(out, clear.len);
        },
    };
    assert(packet.len > 0);
    assert(packet.len <= out.len);
    client.statistics.packets_out += 1;
    client.statistics.bytes_out += packet.len;
    return packet;
}

/// Returns when to call `transmit` again if no packet arrives until then; null: never.
pub fn deadline(client: *const StreamClient) ?u64 {
    switch (client.state) {
        .idle => return null,
        .ended => return if (client.lost) |*lost| lost.due_at_us else null,
        .greeting => return hello_steps.deadline(client),
        .established => {},
    }
    var earliest: ?u64 = if (client.keepalive_id != null) client.last_packet_at_us else null;
    if (client.store_errors.departsAt(client.othersForReads())) |at|
        earliest = @min(earliest orelse at, at);
    if (client.ready) |ready| if (!ready.acknowledged) {
        earliest = ready.due_at_us;
    };
    if (client.report_state.dueAt()) |at| earliest = @min(earliest orelse at, at);
    // An edge of version 2 takes none.
    const account_at = if (client.session.?.version == .v3) client.account.dueAt() else null;
    if (account_at) |at| earliest = @min(earliest orelse at, at);
    if (reads_in_flight.deadline(client)) |at| earliest = @min(earliest orelse at, at);
    if (client.path.probeAt()) |at| earliest = @min(earliest orelse at, at);
    if (client.network.probeAt(client.options.rtt_probe_us)) |at|
        earliest = @min(earliest orelse at, at);
    if (client.writes.deadline()) |at| earliest = @min(earliest orelse at, at);
    if (client.livenessProbeAt()) |at| earliest = @min(earliest orelse at, at);
    return earliest;
}

/// Returns what happened since the last call, one event at a time.
pub fn nextEvent(client: *StreamClient) ?Event {
    if (client.pending_events.ofSession()) |event| return event;
    if (client.writes.nextEnded()) |ended|
        return .{ .write_ended = .{ .tag = ended.tag, .code = ended.code } };
    for (client.readsKept()) |*read| switch (read.state) {
        .done => {
            assert(client.reads_count > 0);
            reads_in_flight.releaseSlot(client, read);
            client.reads_count -= 1;
            return .{ .read_done = .{ .tag = read.tag, .buffer = read.whole } };
        },
        .failed => {
            reads_in_flight.releaseSlot(client, read);
            client.reads_count -= 1;
            return .{ .read_failed = .{ .tag = read.tag, .code = read.failure } };
        },
        .free, .queued, .in_flight => {},
    };
    return client.pending_events.ofBoot();
}

/// Takes a packet of the session, opened.
fn receiveParsed(client: *StreamClient, now_us: u64, packet: wire.Packet) bool {
    assert(client.state == .established);
    if (client.session.?.id != packet.session_id) return false;
    if (client.session.?.version != packet.version) return false;
    switch (packet.body) {
        .data => |fragment| {
            // Only in a session that has one.
            if (fragment.packed_size != 0 and client.session.?.codec == 0) return false;
            return reads_in_flight.receiveFragment(client, now_us, packet.request_id, fragment);
        },
        .keepalive => client.keepalive_id = packet.request_id,
        .read_error => |read_error| return reads_in_flight.receiveReadError(
            client,
            now_us,
            packet.request_id,
            read_error.code,
        ),
        .write_ack => |ack| return client.writes.acknowledge(now_us, packet.request_id, ack),
        .probe_ack => |size| {
            client.path.onProven(size + client.protection.overhead());
            client.writes.onProbeAnswer(now_us, packet.request_id);
            client.network.onProbeAnswer(now_us, packet.request_id);
        },
        .ready_ack => {
            const ready = &(client.ready orelse return false);
            if (ready.request_id != packet.request_id) return false;
            if (!ready.is_known) client.pending_events.ready_acknowledged = true;
            ready.is_known = true;
            ready.acknowledged = true;
        },
        .account_ack => {
            if (!client.account.acknowledge(packet.request_id)) return false;
            client.pending_events.account_acknowledged = true;
        },
        .report_ack => |ack| switch (client.report_state.acknowledge(packet.request_id, ack)) {
            .late => return false,
            .known => client.pending_events.report_acknowledged = true,
            .order => |order| {
                client.pending_events.order = order;
                client.pending_events.report_acknowledged = false;
                client.sendReport(now_us);
            },
        },
        else => unreachable,
    }
    return true;
}

/// Requests everything missing again, in fragments of the current size and from a fresh window: the
/// path may be another one.
pub fn restart(client: *StreamClient) void {
    assert(client.state == .established);
    assert(client.session != null);
    const fragment_size = client.fragmentSize();
    client.window = .init(
        .{ .fragment_size = fragment_size, .bytes_max = client.session.?.outstanding_bytes_max },
    );
    for (client.readsKept()) |*read| {
        if (read.state != .in_flight) continue;
        const is_unanswered = read.received_count == 0;
        read.restart(fragment_size, client.takeRequestId(), client.rtt.rto_us);
        if (read.state == .queued and is_unanswered and read.kind != .profile)
            client.statistics.renamed_requests += 1;
        if (read.state == .in_flight)
            read.send_record = client.window.onSentBefore(read.missingBytes());
    }
    client.writes.restart(fragment_size);
}

/// Null: the caller has not said which card it has, and so measures nothing.
pub fn networkView(client: *const StreamClient) ?NetworkTally.View {
    return .{
        .card = client.identity.card orelse return null,
        .protection = &client.protection,
        .path = &client.path,
        .is_settled = client.inFlightBytes() == 0,
    };
}

/// Returns the slots that may hold a read.
pub fn readsKept(client: *const StreamClient) []PendingRead {
    return client.reads[0..client.slots_used];
}

/// Returns the largest payload of a DATA packet that passes the path.
pub fn fragmentSize(client: *const StreamClient) u16 {
    return client.path.size - wire.header_size - wire.tag_size;
}

/// Queues what timed out for `transmit`, which calls this, too; it goes to `failover.current`.
pub fn onTimer(client: *StreamClient, now_us: u64) void {
    if (client.state == .greeting) return hello_steps.checkTurn(client, now_us);
    if (client.state != .established) return;
    if (client.store_errors.takeDeparture(now_us, client.othersForReads())) {
        client.statistics.departures += 1;
        client.failover.markUnable();
        return hello_steps.failOver(client, now_us);
    }
    if (client.hasInFlight()) {
        if (client.failover.isGone(now_us)) return hello_steps.failOver(client, now_us);
        if (now_us -| client.heardAt() >= silence_us_max)
            return hello_steps.greetOwn(client, now_us, .resumption);
    } else if (client.failover.wantsTicket(now_us))
        return hello_steps.greetOwn(client, now_us, .resumption);
    client.writes.checkTimers(now_us);
    reads_in_flight.checkTimers(client, now_us);
}

/// Other edges cannot take a device whose writes are at this one.
pub fn mayLeave(client: *const StreamClient) bool {
    return client.failover.hasOthers() and client.session.?.write_cache == .device_ram;
}

fn othersForReads(client: *const StreamClient) StoreErrors.Others {
    if (!client.mayLeave()) return .none;
    return if (client.failover.hasAble()) .able else .unable;
}

pub fn transition(client: *StreamClient, next: State) void {
    const allowed = switch (client.state) {
        .idle => next == .greeting,
        .greeting => next != .idle,
        .established => next == .greeting,
        .ended => false,
    };
    assert(allowed);
    client.state = next;
}

pub fn takeRequestId(client: *StreamClient) u32 {
    defer client.request_id_next +%= 1;
    return client.request_id_next;
}

/// Bytes requested and not received.
pub fn inFlightBytes(client: *const StreamClient) u64 {
    return client.window.in_flight_bytes;
}

pub fn hasInFlight(client: *const StreamClient) bool {
    if (client.inFlightBytes() != 0 or client.report_state.dueAt() != null) return true;
    if (client.writes.hasInFlight()) return true;
    return if (client.ready) |ready| !ready.acknowledged else false;
}

fn livenessProbeAt(client: *const StreamClient) ?u64 {
    if (!client.hasInFlight()) return null;
    return client.failover.dueAt(client.heardAt(), client.rtt.rto_us);
}

pub fn heardAt(client: *const StreamClient) u64 {
    return @max(client.last_packet_at_us, client.waiting_since_us);
}

/// Called before a request: starts the wait unless one is running.
pub fn onWaiting(client: *StreamClient, now_us: u64) void {
    if (!client.hasInFlight()) client.waiting_since_us = now_us;
}

test {
    _ = @import("client_test.zig");
    _ = FetchedReads;
    _ = @import("network_tally_test.zig");
    _ = NetworkTally;
    _ = @import("packed_answers_test.zig");
    _ = @import("report_test.zig");
    _ = @import("hello_test.zig");
    _ = hello_versions;
    _ = @import("lost_test.zig");
    _ = @import("failover_test.zig");
    _ = @import("reads_test.zig");
    _ = StoreErrors;
    _ = @import("sends_test.zig");
    _ = @import("writes_test.zig");
}
