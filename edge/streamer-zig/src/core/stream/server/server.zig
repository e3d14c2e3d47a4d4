//! The edge's side of the stream (packages/proto/STREAM.md): cookies, sessions, and which bytes of
//! which version a READ requests. Producer of datagrams: the host's sockets; consumer of steps: the
//! host and the simulators. It never carries disk bytes, keeps nothing before a valid cookie, and
//! never answers an address that has not shown a cookie with more bytes than came from it. Invalid
//! packets are counted and ignored. Sessions are found by the address and port of their device;
//! each packet of a session is opened with its key before it is parsed.
//!
//! How the host uses it, for each datagram:
//!
//!     switch (server.receive(now_us, from, datagram, &reply_buffer)) {
//!         .ignored => |reason| {},                // counted in server.ignored already
//!         .reply => |packet| send(from, packet),
//!         .admit => |claim| {                     // a HELLO with a valid cookie
//!             const grant = grantOf(claim.boot_id);
//!             const admission = server.admit(now_us, claim, grant, &reply_buffer);
//!             // .opened: keep claim.client_nonce with the boot before sending
//!             if (server.showSize(&admission, &large_buffer)) |packet| send(from, packet);
//!             if (admission.reply) |packet| send(from, packet);
//!         },
//!         .read => |read| {                       // send each fragment, or readError(read, ...)
//!             var sealer = server.sealer(read.session_id) orelse return;
//!             var fragments = read.fragments();
//!             while (fragments.next()) |fragment|
//!                 send(read.to, sealer.seal(&fragment.header, bytes, out));
//!         },
//!         .probe => |probe| send(from, server.answerProbe(probe, &large_buffer)),
//!         .used => |used| {},                     // reports what was used of the read-ahead
//!         .fetched => |fetched| {},               // reports how long reads took
//!         .machine => |machine| {},               // reports what the device is
//!         .network => |network| {},               // reports what it measured of the network
//!         .write => |write| {},                   // execute it, then finishWrite(write.ref, ...)
//!         .control => |control| {},               // the same
//!         .taken => {},                           // a part of a write
//!         .ready => |ready| send(from, ready.reply),
//!         .report => |report| send(from, server.acknowledgeReport(&report, order, &reply_buffer)),
//!         .present => |boot_id| {},               // the device answers `askPresence`
//!         .lost => |lost| send(from, server.answerLost(&lost, order, &reply_buffer)),
//!     }
//!     // and about once a second: server.expire(now_us)

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const arrivals = @import("arrivals.zig");
const hello_steps = @import("hello.zig");
const HelloMemory = @import("hello_memory.zig");
const lost_steps = @import("lost_steps.zig");
const presence = @import("presence.zig");
const secrets = @import("../secrets.zig");
const stream_seal = @import("../seal.zig");
const device_signature = @import("../device_signature.zig");
const step = @import("step.zig");
const shard_sessions = @import("shards.zig");
const server_writes = @import("writes.zig");
const write_steps = @import("write_steps.zig");
const DuplicateFilter = @import("duplicate_filter.zig");
const Question = @import("question.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const Uuid = base.Uuid;

pub const session_idle_us_default = 300 * std.time.us_per_s;
/// A session that has been idle for this long yields its slot when the table is full; its device
/// resumes.
pub const session_spare_us = 10 * std.time.us_per_s;
pub const read_size_buckets = step.read_size_buckets;
/// Holds every answer except DATA.
pub const ReplyBuffer = [wire.welcome_size_unpadded_max + wire.tag_size]u8;
/// Holds packets that prove that a size passes the path.
pub const LargeBuffer = [wire.packet_size_max]u8;

comptime {
    assert(wire.welcome_size >= wire.cookie_size);
    assert(wire.welcome_size >= wire.refuse_size);
    assert(wire.welcome_size >= wire.report_ack_size);
    assert(wire.welcome_size >= wire.writes.write_ack_size_max);
}

pub const StreamServer = @This();

sessions: []Session,
options: Options,
ignored: base.IgnoredCounters = .{},
/// Makes the keys and the id of each session different from all earlier ones.
session_serial: u64 = 0,
session_count: u16 = 0,
/// Counter of the packets to the devices of each slot.
counters: []Counter,
/// Incremented whenever a session begins, ends or moves.
changes: u64 = 0,
/// The slots whose sessions have changed since the reader of `changes` cleared them.
changed_slots: base.SlotSet,
/// Maps an address to its session.
index: base.EndpointIndex,
by_boot: base.SlotIndex(u128),
free_slots: base.SlotSet,
/// When the last search for a session to give up found none.
searched_us: ?u64 = null,
collector: server_writes.Collector,
hello_memory: HelloMemory,
lost_budget: lost_steps.Budget = .{},
/// The packet that was opened last.
opened: [wire.request_size_max]u8 = undefined,

pub const Keys = struct {
    /// Random, new in each process.
    cookie: [32]u8,
    /// Random, new in each process.
    session: [32]u8,
    /// Random, kept in the data directory: devices resume with it after a restart of the edge.
    resumption: [32]u8,
};

/// Continues from session to session of a slot, so that a holder of an earlier session's keys never
/// makes two packets with one number. Each counter has its own cache line: shards do not wait for
/// each other.
pub const Counter = struct {
    /// Of the slot's last packet; that of the first one is 1.
    last: u64 align(std.atomic.cache_line) = 0,
    /// Packets of the slot's devices that were opened, by whichever thread.
    opened: u64 = 0,
    /// Numbers that were reserved for packets which were then not sent.
    skipped: u64 = 0,
};

pub const Options = struct {
    keys: Keys,
    sessions_max: u16 = 1024,
    /// Ciphers that this edge accepts; null: all that this program has. The best that the device
    /// also accepts is used.
    ciphers: ?wire.Ciphers = null,
    /// Upper bound of the UDP payload sent, in bytes; the path to a device may be narrower.
    packet_size_max: u16 = wire.packet_size_ethernet,
    read_size_max: u32 = wire.read_size_max,
    outstanding_bytes_max: u32 = 1 << 20,
    session_idle_us: u64 = session_idle_us_default,
    /// Writes of more than one fragment that can be assembled at a time; 128 KiB each.
    write_slots: u16 = 64,
    /// Codecs of packed answers that this edge has, as HELLO names a device's.
    codecs: u8 = 0,
    /// HELLOs that are remembered so that a recording of one opens no session; a power of 2.
    hellos_max: u32 = 1 << 16,
    /// Packets of newer versions are ignored: simulations have edges of the release before this
    /// one.
    version_max: wire.Version = .newest,
};

/// What a HELLO claims about its device, verified.
pub const DeviceClaim = @import("../../site/device_identity.zig").Claim;

/// A HELLO from an address that has shown a cookie. The caller looks up the boot and calls `admit`
/// with the answer.
pub const Claim = struct {
    from: Endpoint,
    hello: wire.Hello,
    boot_id: Uuid,
    /// Set by a caller that needs it before `admit` (`verifyDevice`), so that it costs one
    /// signature.
    device: ?DeviceClaim = null,
};

/// The caller's knowledge about the boot of a claim.
pub const Grant = union(enum) {
    /// No such boot, or it is over.
    unknown,
    /// The boot is known and its version is not in the store.
    version_missing,
    /// The device's write cache cannot be used: REFUSE with this code.
    no_cache: wire.RefuseCode,
    /// What the boot opens is for the device that is known by its key, and this is not it.
    identity_refused,
    /// Not decided yet: the device repeats its HELLO.
    waits,
    boot: Boot,

    pub const Boot = struct {
        token: [16]u8,
        /// `client_nonce` of this boot's `opened` admission, if there was one; kept across a
        /// restart of the edge.
        token_nonce: ?[16]u8,
        version_id: Uuid,
        /// Bytes; a multiple of 512, not 0.
        disk_size: u64,
        write_cache: step.WriteCache = .{},
        /// Size of the boot profile's document in bytes.
        profile_size: u32 = 0,
        /// Secret in the device's ticket, if that is good: its proof is verified with this.
        ticket_secret: ?[32]u8 = null,
        /// Null: there is no other edge to fail over to.
        failover: ?wire.ticket.Failover = null,
    };
};

pub const Admission = struct {
    outcome: Outcome,
    /// WELCOME or REFUSE; null when the HELLO is ignored. Points into the reply buffer.
    reply: ?[]const u8,
    /// The device's current session; 0: this HELLO gave it none.
    session_id: u64 = 0,

    pub const Outcome = union(enum) {
        /// The token opened the boot's first session. The caller keeps the claim's nonce with the
        /// boot.
        opened,
        /// A retransmission of the same HELLO; it got the same answer.
        repeated,
        /// A known device after NO_SESSION, a change of address, silence, or a restart of the edge.
        resumed,
        token_refused,
        /// Also for a signature that does not verify.
        identity_refused,
        version_missing,
        no_cache: wire.RefuseCode,
        no_cipher,
        busy,
        waits,
        /// A late copy of the HELLO that opened the boot's session before a resumption.
        stale,
    };
};

pub const Step = union(enum) {
    ignored: base.IgnoreReason,
    /// COOKIE, NO_SESSION or READ_ERROR; points into the reply buffer.
    reply: []const u8,
    admit: Claim,
    read: ReadRequest,
    /// Answered by `answerProbe`.
    probe: ProbeRequest,
    /// What the device's system used of the read-ahead.
    used: UsedUnits,
    /// How long reads took at the device.
    fetched: FetchedReads,
    /// What the device is.
    machine: DeviceMachine,
    /// What the device has measured of the network.
    network: DeviceNetwork,
    write: step.WriteRequest,
    control: step.ControlRequest,
    /// A part of a write.
    taken,
    ready: ReadyReport,
    /// Answered by `acknowledgeReport` once the caller knows which order waits for the device.
    report: DeviceReport,
    account: AccountReport,
    /// The device of this boot answers `askPresence`.
    present: Uuid,
    /// A device without a session; answered by `answerLost` once the caller knows which order waits
    /// for it.
    lost: LostReport,
};

pub const LostReport = lost_steps.LostReport;
pub const Sealer = @import("sealer.zig");
pub const WriteCache = step.WriteCache;
pub const WriteRef = step.WriteRef;
pub const WriteRequest = step.WriteRequest;
pub const ControlRequest = step.ControlRequest;
pub const ReadRequest = step.ReadRequest;
pub const ProbeRequest = step.ProbeRequest;
pub const UsedUnits = step.UsedUnits;
pub const FetchedReads = step.FetchedReads;
pub const DeviceMachine = step.DeviceMachine;
pub const DeviceNetwork = step.DeviceNetwork;
pub const Fragment = step.Fragment;
pub const FragmentIterator = step.FragmentIterator;
pub const ReadyReport = step.ReadyReport;
pub const DeviceReport = step.DeviceReport;
pub const AccountReport = step.AccountReport;
pub const Statistics = step.Statistics;

pub const Session = struct {
    /// 0: free.
    id: u64 = 0,
    version: wire.Version = .v2,
    boot_id: Uuid = .zero,
    from: Endpoint = .{ .ip = .zero, .port = 0 },
    client_nonce: [16]u8 = @splat(0),
    kind: wire.HelloKind = .token,
    version_id: Uuid = .zero,
    disk_size: u64 = 0,
    /// Of packed answers; 0: there are none.
    codec: u8 = 0,
    /// UDP payload, in bytes, that the device accepts and this edge sends.
    packet_size_max: u16 = 0,
    edge_public: [32]u8 = @splat(0),
    from_device: stream_seal.Key = .{},
    from_edge: stream_seal.Key = .{},
    /// Of the packets to the device, shared with the shards that serve this session.
    counter: *Counter = undefined,
    /// The first 16 bits of the last 8 header bytes of the device's packets, sealed or not.
    mark: u16 = 0,
    /// Number of the device's first packet; 0 in clear text.
    counter_first: u64 = 0,
    /// Those of `counter` when the session began.
    opened_before: u64 = 0,
    skipped_before: u64 = 0,
    taken: stream_seal.ReplayWindow(1024) = .{},
    last_packet_at_us: u64 = 0,
    /// When the latest HELLO of the session was answered.
    welcomed_at_us: u64 = 0,
    /// Time of the last packet that was no REPORT: a device that only reports keeps no other from
    /// booting.
    last_request_at_us: u64 = 0,
    ready: bool = false,
    requests: DuplicateFilter = .{},
    write_cache: step.WriteCache = .{},
    writes: server_writes.Window = .{},
    profile_size: u32 = 0,
    failover: ?wire.ticket.Failover = null,
    statistics: Statistics = .{},
    /// The newest counter of READs that a shard has served.
    shard_counter: u64 = 0,
    question: Question = .{},

    /// The largest payload of a DATA packet.
    pub fn fragmentSizeMax(session: *const Session) u16 {
        return session.packet_size_max - wire.header_size - wire.tag_size;
    }

    /// The device has sent a packet of this session, so it has had WELCOME.
    pub fn isHeard(session: *const Session) bool {
        return session.last_packet_at_us != session.welcomed_at_us or session.taken.is_used;
    }

    pub fn cipher(session: *const Session) wire.Cipher {
        return session.from_edge.cipher;
    }

    /// Writes a packet of this session, sealed if the session is; its first `known_size` bytes stay
    /// readable.
    pub fn emit(
        session: *Session,
        request_id: u32,
        body: wire.Body,
        known_size: usize,
        out: []u8,
    ) []const u8 {
        assert(session.id != 0);
        const packet = wire.emit(.{
            .version = session.version,
            .session_id = session.id,
            .request_id = request_id,
            .body = body,
        }, out);
        return stream_seal.seal(
            &session.from_edge,
            session.takeCounter(),
            out,
            packet.len,
            known_size,
        );
    }

    /// Returns the last 8 header bytes of the device's newest packet.
    pub fn newestCounter(session: *const Session) u64 {
        if (session.cipher() == .clear) return session.id;
        return @max(session.taken.newest, session.shard_counter);
    }

    fn takeCounter(session: *Session) u64 {
        return session.takeCounters(1);
    }

    /// Reserves `count` consecutive counters for this caller and returns the first.
    pub fn takeCounters(session: *Session, count: u64) u64 {
        assert(count > 0);
        return 1 + @atomicRmw(u64, &session.counter.last, .Add, count, .monotonic);
    }
};

/// Allocates the table of sessions, and nothing later.
pub fn init(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!StreamServer {
    assert(options.sessions_max > 0 and options.sessions_max < std.math.maxInt(u16));
    assert(options.packet_size_max >= wire.packet_size_ethernet);
    assert(options.packet_size_max <= wire.packet_size_max);
    assert(options.read_size_max >= wire.read_size_promised and
        options.read_size_max <= wire.read_size_max);
    const sessions = try base.allocZeroed(gpa, Session, .{ .id = 0 }, options.sessions_max);
    errdefer base.freeZeroed(gpa, Session, sessions);
    const seed = std.mem.readInt(u64, options.keys.session[0..8], .big);
    var index: base.EndpointIndex = try .init(gpa, options.sessions_max, seed);
    errdefer index.deinit(gpa);
    var by_boot: base.SlotIndex(u128) = try .init(gpa, options.sessions_max, seed);
    errdefer by_boot.deinit(gpa);
    var free_slots: base.SlotSet = try .initFull(gpa, options.sessions_max);
    errdefer free_slots.deinit(gpa);
    var changed_slots: base.SlotSet = try .initEmpty(gpa, options.sessions_max);
    errdefer changed_slots.deinit(gpa);
    const counters = try base.allocZeroed(gpa, Counter, Counter{}, options.sessions_max);
    errdefer base.freeZeroed(gpa, Counter, counters);
    var hello_memory: HelloMemory =
        try .init(gpa, options.hellos_max, options.keys.session[8..24].*);
    errdefer hello_memory.deinit(gpa);
    return .{
        .sessions = sessions,
        .options = options,
        .counters = counters,
        .index = index,
        .by_boot = by_boot,
        .free_slots = free_slots,
        .changed_slots = changed_slots,
        .hello_memory = hello_memory,
        .collector = try .init(gpa, options.write_slots),
    };
}

pub fn deinit(server: *StreamServer, gpa: std.mem.Allocator) void {
    base.freeZeroed(gpa, Session, server.sessions);
    server.index.deinit(gpa);
    server.by_boot.deinit(gpa);
    server.free_slots.deinit(gpa);
    server.changed_slots.deinit(gpa);
    base.freeZeroed(gpa, Counter, server.counters);
    server.collector.deinit(gpa);
    server.hello_memory.deinit(gpa);
    server.* = undefined;
}

/// Takes one datagram. `now_us` is of the host's monotonic clock; `packet` must live until the step
/// is handled.
pub fn receive(
    server: *StreamServer,
    now_us: u64,
    from: Endpoint,
    packet: []const u8,
    reply: *ReplyBuffer,
) Step {
    if (packet.len < wire.header_size or packet.len > wire.sealed_request_size_max)
        return server.ignore(.stream_wrong_size);
    if (!server.knows(packet[0] >> 4)) return server.ignore(.stream_wrong_version);
    const kind = std.enums.fromInt(wire.Type, packet[1]) orelse
        return server.ignore(.stream_bad_value);
    switch (kind) {
        .hello => {
            const hello = wire.parse(packet) catch |err| return server.ignore(reasonOf(err));
            return hello_steps.receiveHello(server, now_us, from, &hello.body.hello, reply);
        },
        .lost => {
            const lost = wire.parse(packet) catch |err| return server.ignore(reasonOf(err));
            return lost_steps.receiveLost(server, now_us, &lost.body.lost);
        },
        .read, .used, .ready, .report, .write, .control, .probe => {},
        .keepalive_ack, .fetch_times, .account, .machine, .network => {
            if (packet[0] == wire.Version.v2.byte()) return server.ignore(.stream_bad_value);
        },
        .cookie, .welcome, .refuse, .data, .read_error, .no_session => {
            return server.ignore(.stream_wrong_direction);
        },
        .ready_ack, .report_ack, .write_ack, .probe_ack => {
            return server.ignore(.stream_wrong_direction);
        },
        .keepalive, .lost_ack, .account_ack => {
            return server.ignore(.stream_wrong_direction);
        },
    }
    const session = server.sessionAt(from) orelse return server.answerUnknown(packet, reply);
    const clear = switch (server.open(session, packet)) {
        .clear => |clear| clear,
        .unknown => return server.answerUnknown(packet, reply),
        .refused => |reason| return server.ignore(reason),
    };
    const parsed = wire.parse(clear) catch |err| return server.ignore(reasonOf(err));
    assert(session.id != 0);
    arrivals.onPacket(session, now_us, packet.len, parsed.body);
    const id = parsed.request_id;
    return switch (parsed.body) {
        .read => |read| server.receiveRead(session, id, read, reply),
        .probe => |probe| server.receiveProbe(session, id, probe),
        .used => |used| .{ .used = .{ .boot_id = session.boot_id, .units = used.units } },
        .fetch_times => |times| .{
            .fetched = .{ .boot_id = session.boot_id, .reads = times.reads },
        },
        .machine => |*said| .{ .machine = .{ .boot_id = session.boot_id, .machine = said.* } },
        .network => |*said| .{ .network = arrivals.networkOf(session, said, packet) },
        .write => |*write| write_steps.receiveWrite(server, now_us, session, id, write, reply),
        .control => |*control| write_steps.receiveControl(server, session, id, control, reply),
        .ready => |ready| receiveReady(session, id, ready, reply),
        .report => |report| .{ .report = .{
            .boot_id = session.boot_id,
            .session_id = session.id,
            .request_id = id,
            .report = report,
        } },
        .keepalive_ack => .{ .present = session.boot_id },
        .account => |part| receiveAccount(session, id, part, reply),
        else => unreachable,
    };
}

/// Verifies the signature of a HELLO whose proof holds; it costs 0.2 ms.
pub fn verifyDevice(claim: *Claim) DeviceClaim {
    if (claim.device == null) claim.device = device_signature.claimOf(&claim.hello);
    return claim.device.?;
}

pub const askPresence = presence.askPresence;
pub const heardAt = presence.heardAt;
pub const answerLost = lost_steps.answerLost;
pub const admit = hello_steps.admit;
pub const isOutrun = hello_steps.isOutrun;
pub const showSize = hello_steps.showSize;
pub const proofHolds = hello_steps.proofHolds;
pub const resumeSecretOf = hello_steps.resumeSecretOf;
pub const copySession = shard_sessions.copySession;
pub const hasSessionAt = shard_sessions.hasSessionAt;
pub const onRead = shard_sessions.onRead;
pub const isPlainRead = shard_sessions.isPlainRead;

/// Returns the sealer of a session that still exists.
pub fn sealer(server: *StreamServer, session_id: u64) ?Sealer {
    return .{ .session = server.findById(session_id) orelse return null };
}

fn knows(server: *const StreamServer, version: u8) bool {
    return version >= @backingInt(wire.Version.v2) and
        version <= @backingInt(server.options.version_max);
}

const OpenResult = union(enum) { clear: []const u8, unknown, refused: base.IgnoreReason };

/// Opens a packet of this session's device; the result points into the packet, or is valid until
/// the next packet.
fn open(server: *StreamServer, session: *Session, packet: []const u8) OpenResult {
    assert(session.id != 0);
    const counter = stream_seal.counterOf(packet);
    if (session.cipher() == .clear)
        return if (counter == session.id and wire.Version.of(packet) == session.version)
            .{ .clear = packet }
        else
            .unknown;
    if (!session.taken.isNew(counter)) return .{ .refused = .stream_replayed };
    const clear =
        stream_seal.open(&session.from_device, packet, wire.header_size, &server.opened) orelse
        return .{ .refused = .stream_forged };
    session.taken.note(counter);
    arrivals.onOpen(session);
    return .{ .clear = clear };
}

/// Sends NO_SESSION, which names the packet that it answers and is never longer than that.
fn answerUnknown(server: *StreamServer, packet: []const u8, reply: *ReplyBuffer) Step {
    server.ignored.add(.stream_unknown_session);
    const id = stream_seal.counterOf(packet);
    if (id == 0) return .{ .ignored = .stream_unknown_session };
    const request_id = std.mem.readInt(u32, packet[4..8], .big);
    return .{ .reply = wire.emit(
        .{
            .version = wire.Version.of(packet).?,
            .session_id = id,
            .request_id = request_id,
            .body = .no_session,
        },
        reply,
    ) };
}

fn reasonOf(err: wire.ParseError) base.IgnoreReason {
    return switch (err) {
        error.WrongSize => .stream_wrong_size,
        error.WrongVersion => .stream_wrong_version,
        error.ReservedNotZero => .stream_reserved_not_zero,
        error.BadValue => .stream_bad_value,
    };
}

/// Answers a REPORT with NO_SESSION: its device sends a HELLO and gets a fresh WELCOME. The session
/// stays until then. Null if it is gone.
pub fn requestHello(
    server: *StreamServer,
    report: *const DeviceReport,
    packet: []const u8,
    reply: *ReplyBuffer,
) ?[]const u8 {
    const session = server.findById(report.session_id) orelse return null;
    assert(session.id == report.session_id);
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.header_size;
    return wire.emit(.{
        .version = session.version,
        .session_id = stream_seal.counterOf(packet),
        .request_id = report.request_id,
        .body = .no_session,
    }, reply);
}

pub const askWhetherThere = Question.ask;

/// Returns a PROBE_ACK of the requested size; null if the session is gone.
pub fn answerProbe(server: *StreamServer, probe: ProbeRequest, out: *LargeBuffer) ?[]const u8 {
    const session = server.findById(probe.session_id) orelse return null;
    const size = probe.size - session.from_edge.overhead();
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += probe.size;
    return session.emit(probe.request_id, .{ .probe_ack = size }, wire.header_size, out);
}

/// Returns READ_ERROR for a read whose bytes are unavailable: at `store_error` the device
/// retransmits. Null if its session is gone.
pub fn readError(
    server: *StreamServer,
    read: *const ReadRequest,
    code: wire.ReadErrorCode,
    reply: *ReplyBuffer,
) ?[]const u8 {
    const session = server.findById(read.session_id) orelse return null;
    return session.emit(read.request_id, .{
        .read_error = .{ .code = code },
    }, wire.header_size, reply);
}

/// Ends a write or control request (`write_steps.zig`).
pub const finishWrite = write_steps.finishWrite;

/// Returns REPORT_ACK with the order that waits for this device; shorter than any REPORT. Null if
/// the session is gone.
pub fn acknowledgeReport(
    server: *StreamServer,
    report: *const DeviceReport,
    ack: wire.ReportAck,
    reply: *ReplyBuffer,
) ?[]const u8 {
    const session = server.findById(report.session_id) orelse return null;
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.report_ack_size + session.from_edge.overhead();
    return session.emit(report.request_id, .{ .report_ack = ack }, wire.header_size, reply);
}

/// Forgets sessions that were silent for `session_idle_us`; their devices resume when they need to.
pub fn expire(server: *StreamServer, now_us: u64) void {
    assert(server.session_count <= server.sessions.len);
    for (server.sessions) |*session| {
        if (session.id == 0) continue;
        if (now_us -| session.last_packet_at_us < server.options.session_idle_us) continue;
        server.drop(session);
    }
}

/// Ends the session of a boot that is over, for example because its device started again.
pub fn forget(server: *StreamServer, boot_id: Uuid) void {
    if (server.sessionOf(boot_id)) |session| server.drop(session);
}

/// Returns the boot's session, for its statistics; the pointer is valid until the next call.
pub fn sessionOf(server: *const StreamServer, boot_id: Uuid) ?*Session {
    const slot = server.by_boot.first(bootKey(boot_id)) orelse return null;
    const session = &server.sessions[slot];
    assert(session.id != 0);
    assert(session.boot_id.eql(boot_id));
    return session;
}

pub fn noteChange(server: *StreamServer, session: *const Session) void {
    assert(session - server.sessions.ptr < server.sessions.len);
    server.changes += 1;
    server.changed_slots.set(@intCast(session - server.sessions.ptr));
}

fn bootKey(boot_id: Uuid) u128 {
    return std.mem.readInt(u128, &boot_id.bytes, .big);
}

/// A session is in a free slot, and is found by its boot and its address from now on.
pub fn enter(server: *StreamServer, session: *const Session) void {
    assert(server.session_count < server.sessions.len);
    const slot: u16 = @intCast(session - server.sessions.ptr);
    assert(server.free_slots.isSet(slot));
    server.free_slots.unset(slot);
    server.index.put(session.from, slot);
    server.by_boot.put(slot, bootKey(session.boot_id));
    server.session_count += 1;
}

/// Returns the size class of a read of `length` bytes: index i counts sizes in (2^(i+8), 2^(i+9)],
/// index 0 all up to 512.
pub fn readSizeIndex(length: u32) u4 {
    assert(length > 0);
    const sectors = std.math.divCeil(u32, length, wire.sector_size) catch unreachable;
    return @intCast(@min(std.math.log2_int_ceil(u32, sectors), read_size_buckets - 1));
}

/// Prefetches the session of the device at this address, whose packet is next. Returns the
/// session's slot.
pub fn prefetch(server: *const StreamServer, from: Endpoint) ?u16 {
    const slot = server.index.get(from) orelse return null;
    const session = &server.sessions[slot];
    inline for (.{
        "id",
        "taken",
        "last_packet_at_us",
        "requests",
        "statistics",
        "from",
        "version_id",
        "from_device",
        "from_edge",
    }) |name|
        base.prefetch(&@field(session, name));
    base.prefetch(&server.counters[slot]);
    return slot;
}

/// Returns the session of the device at this address.
fn sessionAt(server: *StreamServer, from: Endpoint) ?*Session {
    const slot = server.index.get(from) orelse return null;
    assert(server.sessions[slot].from.eql(from));
    return &server.sessions[slot];
}

fn receiveProbe(
    server: *StreamServer,
    session: *const Session,
    request_id: u32,
    probe: wire.Probe,
) Step {
    if (probe.size > session.packet_size_max) return server.ignore(.stream_bad_value);
    return .{
        .probe = .{ .session_id = session.id, .request_id = request_id, .size = probe.size },
    };
}

/// After so many retransmissions of a whole READ its answer is plain: the device may lack the codec
/// that it has named.
const packed_attempts_max = 6;

fn receiveRead(
    server: *StreamServer,
    session: *Session,
    request_id: u32,
    read: wire.Read,
    reply: *ReplyBuffer,
) Step {
    const mistake: ?wire.ReadErrorCode =
        if (read.version_tag != secrets.versionTag(session.version_id))
            .version_mismatch
        else if (read.length > server.options.read_size_max)
            .too_large
        else if (!step.isWithin(
            read,
            if (read.kind == .profile) session.profile_size else session.disk_size,
        ))
            .beyond_the_end
        else
            null;
    if (mistake) |code|
        return .{ .reply = session.emit(request_id, .{
            .read_error = .{ .code = code },
        }, wire.header_size, reply) };

    if (read.fragment_size > session.fragmentSizeMax()) return server.ignore(.stream_bad_range);
    const fragment_count = wire.fragmentCount(read.length, read.fragment_size);
    const range_count = read.ranges.count();
    if (range_count > 0) {
        const last = read.ranges.at(range_count - 1);
        const end = last.first_fragment + last.fragment_count;
        if (end > fragment_count) return server.ignore(.stream_bad_range);
    }
    const of = step.requested(read.ranges, read.length, read.fragment_size);
    assert(of.packets > 0 and of.packets <= fragment_count);
    assert(of.bytes <= read.length);
    const is_unheard = read.attempt >= packed_attempts_max and of.packets == fragment_count;
    const may_pack =
        session.codec != 0 and !read.is_plain and read.kind != .profile and !is_unheard;
    const is_seen = session.requests.note(request_id);
    const request: ReadRequest = .{
        .boot_id = session.boot_id,
        .version_id = session.version_id,
        .to = session.from,
        .session_id = session.id,
        .version = session.version,
        .counter = session.newestCounter(),
        .request_id = request_id,
        .kind = read.kind,
        .offset = read.offset,
        .length = read.length,
        .fragment_size = read.fragment_size,
        .overhead = wire.header_size + session.from_edge.overhead(),
        .write_cache = session.write_cache.class,
        .ranges = read.ranges,
        .may_pack = may_pack,
        .first = session.statistics.reads == 0 and session.statistics.retries == 0,
        .repeated = is_seen or of.packets < fragment_count,
        .bytes_out = of.bytes,
        .packets_out = of.packets,
    };
    countRead(&session.statistics, &request);
    return .{ .read = request };
}

fn countRead(statistics: *Statistics, request: *const ReadRequest) void {
    assert(request.packets_out > 0);
    statistics.packets_out += request.packets_out;
    statistics.bytes_out += request.wireBytes();
    if (request.repeated) {
        statistics.retries += 1;
        statistics.missing_fragments += request.packets_out;
    } else {
        statistics.reads += 1;
        statistics.read_bytes += request.length;
        statistics.read_sizes[readSizeIndex(request.length)] += 1;
    }
}

fn receiveAccount(
    session: *Session,
    request_id: u32,
    part: wire.Account,
    reply: *ReplyBuffer,
) Step {
    assert(session.id != 0);
    return .{ .account = .{
        .boot_id = session.boot_id,
        .part = part,
        .reply = session.emit(request_id, .account_ack, wire.header_size, reply),
    } };
}

fn receiveReady(session: *Session, request_id: u32, ready: wire.Ready, reply: *ReplyBuffer) Step {
    assert(session.id != 0);
    defer session.ready = true;
    session.statistics.packets_out += 1;
    session.statistics.bytes_out += wire.ready_ack_size + session.from_edge.overhead();
    return .{ .ready = .{
        .boot_id = session.boot_id,
        .outcome = ready.outcome,
        .uptime_us = ready.uptime_us,
        .code = .init(std.mem.trimEnd(u8, &ready.code, "\x00")),
        .sentence = .init(ready.sentence),
        .repeated = session.ready,
        .reply = session.emit(request_id, .ready_ack, wire.header_size, reply),
    } };
}

/// Returns the slot of a session that exists or existed.
pub fn slotOf(session_id: u64) u16 {
    return @as(u16, @truncate(session_id)) - 1;
}

pub fn findById(server: *StreamServer, id: u64) ?*Session {
    const slot: u16 = @truncate(id);
    if (slot == 0 or slot > server.sessions.len) return null;
    const session = &server.sessions[slot - 1];
    return if (session.id == id) session else null;
}

pub fn drop(server: *StreamServer, session: *Session) void {
    assert(session.id != 0);
    assert(server.session_count > 0);
    server.session_count -= 1;
    server.noteChange(session);
    server.collector.drop(session.id);
    server.index.remove(session.from);
    const slot: u16 = @intCast(session - server.sessions.ptr);
    server.by_boot.remove(slot);
    server.free_slots.set(slot);
    session.* = .{};
}

pub fn ignore(server: *StreamServer, reason: base.IgnoreReason) Step {
    server.ignored.add(reason);
    return .{ .ignored = reason };
}

test {
    _ = @import("hello_test.zig");
    _ = HelloMemory;
    _ = lost_steps;
    _ = presence;
    _ = @import("server_test.zig");
    _ = @import("writes_test.zig");
    _ = Question;
    _ = shard_sessions;
    _ = server_writes;
}
