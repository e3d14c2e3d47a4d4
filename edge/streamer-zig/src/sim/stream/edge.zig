//! A simulated edge of the stream's simulation: the agent of the product over a fake world
//! (`edge_io.zig`), a process that dies, hangs and restarts, and a record of everything that the
//! agent does, against which the invariants are checked.

const std = @import("std");
const agent = @import("agent");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const Addresses = @import("addresses.zig");
const DeviceSide = @import("device_side.zig").DeviceSide;
const EdgeIo = @import("edge_io.zig");
const Invariants = @import("invariants.zig");
const Journal = @import("journal.zig");
const Mutant = @import("mutants.zig").Mutant;
const SimFiles = @import("../kit/sim_files.zig");
const StreamBoot = @import("boot.zig");
const RecordedHellos = @import("recorded_hellos.zig");
const StreamSite = @import("site.zig");
const Written = @import("written.zig");
const edge_mutants = @import("edge_mutants.zig");
const link = @import("link.zig");
const network_module = @import("network.zig");
const assert = std.debug.assert;
const Agent = EdgeIo.Agent;
const Endpoint = base.Endpoint;
const LayerWork = agent.write_caches.LayerWork;
const Network = network_module.Network;
const Packet = network_module.Packet;
const Server = link.Server;

pub const StreamEdge = @This();

const boots_max = StreamSite.boots_max;
/// Boots that the agent keeps: for each device the newest, and some that are over.
const boots_kept_max = 4 * boots_max;
const layers_max = 2 * boots_max;
/// Packets that wait for a process that hangs; further ones are dropped, as by a socket.
const inbox_max = 256;
/// Answers that wait for a sync of the journal; further ones are lost.
const answers_max = 8;

index: u8,
site: *StreamSite,
gpa: std.mem.Allocator,
network: *Network,
invariants: *Invariants,
mutant: Mutant,
prng: base.Prng,
/// What the agent has heard of the boot of each device.
known: [boots_max]Known = @splat(.{}),
written: [boots_max]Written = @splat(.{}),
/// Null: the process is dead.
process: ?*Process = null,
is_stopped: bool = false,
inbox: base.BoundedArray(Packet, inbox_max) = .empty,
settings: Settings,
disk: Disk = .{},
files: SimFiles,
journal: Journal,
/// Number of processes so far.
serial: u32 = 0,
addresses: Addresses = .{},
works: base.BoundedArray(PlannedWork, 2 * layers_max) = .empty,
answers: base.BoundedArray(Answer, answers_max) = .empty,
/// The agent is carrying out a write.
is_writing: bool = false,
is_mutating: bool = false,
again: ?WriteAgain = null,
thief: ?Thief = null,
recorded: RecordedHellos = .{},
/// Of the stream: the edge may be of the release before until it restarts.
version_max: link.Version = .newest,
/// 0: it has no codec.
packed_percent: u8 = 0,
/// The datagram that is being handled.
from: Endpoint = .{ .ip = .zero, .port = 0 },
received_size: usize = 0,
answered_size: usize = 0,
statistics: Statistics = .{},

/// What a death of the process loses.
pub const Process = struct {
    io: EdgeIo,
    peers: core.site.PeerTable,
    boots: Agent.Boots,
    stream: Agent.Stream,
};

/// What this edge's agent has heard of a boot, over all its processes.
pub const Known = struct {
    /// 0: it has heard nothing.
    boot_number: u32 = 0,
    /// The device was told that its boot survives a power failure.
    is_promised: bool = false,
    /// Nonce of the HELLO of the latest session.
    nonce: ?[16]u8 = null,
    admitted_us: u64 = 0,
    has_read: bool = false,
    ready_heard: bool = false,
    report_heard_us: u64 = 0,
    steps_heard: u16 = 0,
    /// The fail-over in which an outcome was reported; null: none was.
    outcome_of: ?u16 = null,
};

pub const Settings = struct {
    sessions_max: u16 = 16,
    packet_size_max: u16 = link.packet_size_ethernet,
    outstanding_bytes_max: u32 = 1 << 20,
    session_idle_us: u64 = 300 * std.time.us_per_s,
    write_slots: u16 = 8,
};

/// Faults of the edge's disk.
pub const Disk = struct {
    latency_us: u64 = 50,
    /// Requests that take up to `stall_us`.
    stalls_per_mille: u32 = 0,
    stall_us: u64 = 0,
    read_errors_per_mille: u32 = 0,
    /// Reads of the version below a write that fail.
    write_errors_per_mille: u32 = 0,
    /// HELLOs for which the version is missing.
    missing_per_mille: u32 = 0,
};

pub const Statistics = struct {
    store_errors: u64 = 0,
    crashes: u64 = 0,
    stops: u64 = 0,
    ignored: base.IgnoredCounters = .{},
};

/// A packet that waits for a sync of the journal.
const Answer = struct {
    to: Endpoint,
    at_us: u64,
    size: u16,
    buffer: [link.packet_size_max]u8,
};

/// What a thread does for a write layer at that time.
pub const PlannedWork = struct { work: *LayerWork, at_us: u64, is_needed: bool };

/// For a mutant.
const WriteAgain = struct {
    ref: Server.WriteRef,
    at_us: u64,
    offset: u64,
    size: usize,
    bytes: [link.write_size_max]u8,
};

/// An attacker that knows a boot's token, listens, and wants a session.
const Thief = struct { address: Endpoint, side: *DeviceSide };

pub fn start(edge: *StreamEdge) error{OutOfMemory}!void {
    assert(edge.process == null);
    edge.serial += 1;
    const gpa = edge.gpa;
    const now_us = edge.network.now_us;
    const process = try gpa.create(Process);
    process.io = .{ .edge = edge, .versions = undefined };
    for (&process.io.versions, 0..) |*version, device| {
        const of = edge.site.versionOf(@intCast(device));
        version.* = .{ .id = of.id(), .disk = .{ .edge = edge, .of = of } };
    }
    process.peers = try .init(gpa, .{
        .epoch = edge.serial,
        .boots_max = boots_kept_max,
        .others_max = 1,
    });
    edge.site.introduce(edge.index, &process.peers);
    process.boots = .{
        .io = &process.io,
        .table = try .init(gpa, .{ .capacity = boots_kept_max }),
        .policy = try edge.site.policyOf(gpa, edge.index),
        .peers = &process.peers,
        // Every device is registered.
        .discovery = .{ .devices = .{ .devices = &.{}, .traces = &.{} } },
        .caches = Agent.WriteCaches.init(
            gpa,
            &process.io,
            edge.files.files(),
            layers_max,
            .{ .class = .edge_persistent },
        ) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            error.NotWritable => unreachable,
        },
        .profiles = try .init(
            gpa,
            &process.io,
            .{ .recordings = 1, .documents = StreamSite.boots_max },
        ),
        .ticket_lifetime_s = edge.site.ticket_lifetime_s,
    };
    edge.journal.load(&process.boots.table, now_us);
    for (edge.journal.orders.constSlice()) |bound| process.boots.orders.restore(bound);
    process.stream = try .init(gpa, try edge.makeServer(), &process.boots);
    edge.addresses.clear();
    edge.process = process;
    edge.takeOrders();
}

fn makeServer(edge: *StreamEdge) error{OutOfMemory}!Server {
    var keys: Server.Keys = .{
        .cookie = undefined,
        .session = undefined,
        .resumption = edge.journal.resumption_key,
    };
    edge.prng.fill(&keys.cookie);
    edge.prng.fill(&keys.session);
    return .init(edge.gpa, .{
        .keys = keys,
        .sessions_max = edge.settings.sessions_max,
        .packet_size_max = edge.settings.packet_size_max,
        .ciphers = link.ciphersFor(edge.mutant),
        .outstanding_bytes_max = edge.settings.outstanding_bytes_max,
        .session_idle_us = edge.settings.session_idle_us,
        .write_slots = edge.settings.write_slots,
        .hellos_max = 1 << 10,
        .version_max = edge.version_max,
        .codecs = if (edge.packed_percent > 0) link.codecs else 0,
    });
}

/// The machine dies: of what its disk has not synced, each sector is kept or lost.
pub fn crash(edge: *StreamEdge, keeps_keys: bool) void {
    const caches = &edge.process.?.boots.caches;
    for (caches.layers[0..caches.top]) |slot| {
        const layer = slot orelse continue;
        if (layer.binding.class.isDurable() or !layer.isOpen()) continue;
        if (edge.site.bootOf(layer.boot_id)) |boot| boot.ends.insert(.cache_lost);
    }
    edge.loseUnwritten();
    edge.journal.crash(&edge.prng, edge, onLostRecord);
    edge.end();
    edge.files.crash();
    edge.statistics.crashes += 1;
    if (!keeps_keys) {
        edge.prng.fill(&edge.journal.resumption_key);
        for (&edge.site.boots) |*boot| boot.ends.insert(.keys_lost);
    }
    for (&edge.known) |*known| known.nonce = null;
    for (&edge.written) |*written| written.* = .{};
}

/// A worker with too much to do has not taken the first record of these boots.
fn loseUnwritten(edge: *StreamEdge) void {
    var iterator = edge.process.?.boots.table.iterate();
    while (iterator.next()) |boot|
        if (edge.journal.find(boot.identity.id) == null) onLostRecord(edge, boot);
}

/// A record was not on the disk: the boot goes back to what is there, or is not known any more.
fn onLostRecord(edge: *StreamEdge, lost: *const core.boot.Boot) void {
    const boot = edge.site.bootOf(lost.identity.id) orelse return;
    const known = edge.knownOf(boot) orelse return boot.ends.insert(.keys_lost);
    if (!known.is_promised) boot.ends.insert(.keys_lost);
    // It reports its outcome again.
    known.outcome_of = null;
}

/// Frees what the process has.
pub fn end(edge: *StreamEdge) void {
    const process = edge.process.?;
    edge.statistics.ignored.merge(&process.stream.server.ignored);
    process.stream.deinit(edge.gpa);
    process.boots.deinit(edge.gpa);
    process.peers.deinit(edge.gpa);
    edge.gpa.destroy(process);
    edge.process = null;
    edge.recorded.count = 0;
    // The next process is of the newest release.
    edge.version_max = .newest;
    edge.is_stopped = false;
    for (edge.inbox.constSlice()) |packet| edge.network.pool.giveBack(packet.slot);
    edge.inbox.clear();
    edge.works.clear();
    edge.answers.clear();
    edge.again = null;
}

/// The process hangs: it answers nothing, and packets wait.
pub fn stop(edge: *StreamEdge) void {
    assert(edge.process != null);
    if (!edge.is_stopped) edge.statistics.stops += 1;
    edge.is_stopped = true;
}

pub fn unstop(edge: *StreamEdge) void {
    if (!edge.is_stopped) return;
    edge.is_stopped = false;
    for (edge.inbox.constSlice()) |packet| {
        edge.receive(packet.from, edge.network.pool.view(packet.slot));
        edge.network.pool.giveBack(packet.slot);
    }
    edge.inbox.clear();
    edge.wake();
}

/// Returns the process; null: it is dead, or hangs.
pub fn running(edge: *const StreamEdge) ?*Process {
    return if (edge.is_stopped) null else edge.process;
}

/// Begins a boot of a device; null: this edge does not answer now.
pub fn begin(edge: *StreamEdge, mac: base.Mac) ?@FieldType(core.boot.Boot, "identity") {
    const process = edge.running() orelse return null;
    const boots = &process.boots;
    const ref = (boots.begin(edge.network.now_us, mac) catch unreachable) orelse unreachable;
    boots.apply(ref, edge.network.now_us, .{ .dhcp_request = .{
        .message = .discover,
        .client = .rom,
        .xid = edge.prng.nextU32(),
        .size = 300,
    } });
    return boots.get(ref).?.identity;
}

/// The device has begun a boot: this edge, if it runs, ends the one before.
pub fn endEarlier(edge: *StreamEdge, mac: base.Mac, latest: base.Uuid) void {
    if (edge.process) |process| {
        const boots = &process.boots;
        var others = boots.table.iterateOf(mac);
        while (others.next()) |ref| {
            if (boots.get(ref).?.identity.id.eql(latest)) continue;
            boots.supersede(edge.network.now_us, ref);
            boots.table.remove(ref);
        }
    }
    edge.journal.forgetEarlier(mac, latest);
}

/// Takes the power orders of the desired state.
pub fn takeOrders(edge: *StreamEdge) void {
    const process = edge.process orelse return;
    const boots = &process.boots;
    boots.orders.update(edge.site.orders.constSlice(), &boots.table, edge, keepOrder);
}

fn keepOrder(edge: *StreamEdge, bound: core.site.PowerOrders.BoundOrder) void {
    edge.journal.writeOrder(bound);
}

/// Returns whether an order waits here for the device of this boot.
pub fn hasOrder(edge: *const StreamEdge, boot: *const StreamBoot) bool {
    const process = edge.process orelse return false;
    return process.boots.orders.waitingFor(boot.id).order != .none;
}

/// Returns what this edge has heard of the boot; null: nothing.
pub fn knownOf(edge: *StreamEdge, boot: *const StreamBoot) ?*Known {
    const known = &edge.known[edge.site.indexOf(boot)];
    return if (known.boot_number == boot.number) known else null;
}

/// Keeps a packet for a process that hangs. The slot of the pool belongs to the edge then.
pub fn keep(edge: *StreamEdge, packet: Packet) bool {
    if (!edge.is_stopped) return false;
    edge.inbox.append(packet) catch edge.network.pool.giveBack(packet.slot);
    return true;
}

pub fn receive(edge: *StreamEdge, from: Endpoint, bytes: []const u8) void {
    const process = edge.process orelse return;
    edge.from = from;
    edge.received_size = bytes.len;
    edge.answered_size = 0;
    edge.addresses.of(from).bytes_in += bytes.len;
    edge.handle(process, &.{ .from = from, .bytes = bytes, .at_us = edge.network.now_us });
    process.boots.caches.beginWorks();
    // What ends later does not answer this datagram.
    edge.received_size = 0;
}

fn handle(edge: *StreamEdge, process: *Process, datagram: *const agent.stream.Datagram) void {
    const now_us = edge.network.now_us;
    const stream = &process.stream;
    const server = &stream.server;
    const from, const bytes = .{ datagram.from, datagram.bytes };
    if (edge.mutant == .source_unchecked) edge_mutants.followSource(server, from, bytes);
    const ignored_before = server.ignored.total();
    const step = server.receive(now_us, from, bytes, &stream.reply);
    var is_repeated = false;
    switch (step) {
        .reply => |packet| {
            if (edge_mutants.answerHello(edge, from, bytes)) return;
            is_repeated = edge.mutant == .late_write_carried_out and edge_mutants.isNotYet(packet);
        },
        .ignored => |reason| {
            is_repeated = edge.mutant == .late_write_carried_out and reason == .stream_stale_write;
            if (edge.mutant == .drop_not_counted and reason == .stream_replayed)
                server.ignored.values[@backingInt(reason)] -= 1;
        },
        .admit => edge.noteClaim(from),
        .taken => if (edge.mutant == .whole_without_a_fragment) edge_mutants.completeWrite(server),
        .read, .probe, .used, .write, .control, .ready, .report => {},
        .present, .lost, .fetched, .account, .machine, .network => {},
    }
    stream.handle(&step, datagram, now_us);
    edge.checkDrops(&step, server.ignored.total() - ignored_before);
    switch (step) {
        .admit => |*claim| {
            edge.recorded.note(server, claim);
            edge.onAdmission(claim.boot_id);
        },
        .ready => |*ready| edge.noteHeard(ready.boot_id),
        .report => |*report| edge.noteHeard(report.boot_id),
        .ignored, .reply, .taken, .read, .probe, .used, .write, .control => {},
        .present, .lost, .fetched, .account, .machine, .network => {},
    }
    if (edge.mutant == .write_carried_out_again and step == .write) edge.planAgain(&step.write);
    if (!is_repeated or edge.is_mutating) return;
    edge.is_mutating = true;
    defer edge.is_mutating = false;
    if (edge_mutants.forgetWrites(server, bytes)) edge.handle(process, datagram);
}

fn checkDrops(edge: *StreamEdge, step: *const Server.Step, ignored: u64) void {
    switch (step.*) {
        .ignored => |reason| if (ignored != 1) edge.invariants.violate(
            .drops_are_counted,
            "a packet was ignored ({t}) and counted {d} times",
            .{ reason, ignored },
        ),
        // A HELLO that is answered may have shown a stale cookie, or be refused.
        .reply, .admit => {},
        else => |taken| if (ignored != 0) edge.invariants.violate(
            .drops_are_counted,
            "a packet that was accepted ({t}) counts as ignored",
            .{std.meta.activeTag(taken)},
        ),
    }
}

/// A thread carries out orders for a layer.
fn runWork(edge: *StreamEdge, work: *LayerWork) void {
    const layer = work.layer;
    edge.is_writing = work.kind == .write;
    defer edge.is_writing = false;
    work.run();
    if (work.kind == .open) addKeeper(layer);
    if (work.kind != .write) return;
    const ended_count = layer.writing_count - layer.left_count;
    var orders = layer.pool.iterate(&layer.orders, ended_count);
    while (orders.next()) |pending| edge.noteOrder(pending);
}

/// Every fourth layer hears of what changes as if somebody took a snapshot of it: discards are
/// carried out in parts.
fn addKeeper(layer: *agent.write_caches.Layer) void {
    layer.opening.result catch return;
    const inner = &layer.inner;
    if (inner.head.layer_id.bytes[0] % 4 > 0) return;
    inner.kept_part_size = store.WriteLayer.block_size;
    inner.keeper = .{ .context = inner, .keep = keepNothing };
}

fn keepNothing(_: *anyopaque, _: *const store.WriteLayer, _: u64, _: u64) void {}

/// An order of a device was carried out, or could not be.
fn noteOrder(edge: *StreamEdge, pending: *const agent.order_pool.Pending) void {
    const boot = edge.site.bootOf(pending.ref.boot_id) orelse return;
    pending.result catch |err| {
        if (err == error.Full or err == error.NoSpace) boot.is_full = true;
        return;
    };
    const id = pending.ref.request_id;
    const request: Written.Request = switch (pending.order) {
        .write => |write| Written.requestOf(edge.invariants, boot, id, write.offset, write.bytes),
        .discard => |range| .{
            .id = id,
            .first = @intCast(range.offset / link.sector_size),
            .count = range.length / link.sector_size,
            .kind = .discard,
        },
        .flush => return,
    };
    edge.written[edge.site.indexOf(boot)].note(edge.invariants, boot, &request);
}

/// READY or a report has been handled.
fn noteHeard(edge: *StreamEdge, boot_id: base.Uuid) void {
    const boots = &edge.process.?.boots;
    const boot = edge.site.bootOf(boot_id) orelse return;
    const known = edge.knownOf(boot) orelse return;
    const heard = boots.get(boots.table.findById(boot_id) orelse return).?;
    // READY of a boot that had failed before changes nothing.
    if (heard.outcome != null) known.ready_heard = true;
    const guest = if (heard.guest) |*guest| guest else return;
    known.report_heard_us = @max(known.report_heard_us, heard.started_us + guest.heard_us);
    known.steps_heard = @max(known.steps_heard, guest.steps.view().count);
}

/// The agent sends a packet of its stream.
pub fn send(edge: *StreamEdge, to: Endpoint, bytes: []const u8) void {
    const session = if (link.isOfSession(bytes)) edge.sessionAt(to) else null;
    edge.sendOf(session, to, bytes, 0);
}

/// Sends a packet of a session when the journal is on the disk.
pub fn sendAfterSync(edge: *StreamEdge, to: Endpoint, bytes: []const u8) void {
    if (edge.journal.unsynced.count == 0) return edge.sendPromise(to, bytes);
    if (edge.answers.isFull()) return;
    var answer: Answer = .{
        .to = to,
        .at_us = edge.network.now_us + edge.diskDelayUs(),
        .size = @intCast(bytes.len),
        .buffer = undefined,
    };
    @memcpy(answer.buffer[0..bytes.len], bytes);
    edge.answers.appendAssumeCapacity(answer);
    edge.network.plan(answer.at_us, .{ .edge_wake = edge.index });
}

/// Sends a WELCOME, from which on a device with durable writes must not lose its boot.
pub fn sendPromise(edge: *StreamEdge, to: Endpoint, bytes: []const u8) void {
    if (edge.sessionAt(to)) |session| if (edge.site.bootOf(session.boot_id)) |boot| {
        const layer = edge.process.?.boots.caches.find(boot.id);
        const is_durable = layer != null and layer.?.binding.class.isDurable();
        if (edge.knownOf(boot)) |known| known.is_promised = known.is_promised or is_durable;
    };
    edge.send(to, bytes);
}

/// One sync serves all that wait.
fn sendKeptAnswers(edge: *StreamEdge) void {
    const answers = edge.answers.constSlice();
    if (answers.len == 0 or answers[0].at_us > edge.network.now_us) return;
    edge.journal.sync();
    for (answers) |*answer| edge.sendPromise(answer.to, answer.buffer[0..answer.size]);
    edge.answers.clear();
}

fn sessionAt(edge: *StreamEdge, to: Endpoint) ?*Server.Session {
    const server = &edge.process.?.stream.server;
    return &server.sessions[server.index.get(to) orelse return null];
}

/// Sends a packet, of a session or of none.
pub fn sendOf(
    edge: *StreamEdge,
    session: ?*const Server.Session,
    to: Endpoint,
    bytes: []const u8,
    after_us: u64,
) void {
    const codec = if (session) |of| of.codec else 0;
    if (link.isPacked(bytes) and codec == 0) edge.invariants.violate(
        .packed_as_offered,
        "the device at {f} has offered no codec, and gets a packed answer",
        .{to},
    );
    const address = edge.addresses.of(to);
    address.bytes_out += bytes.len;
    edge.answered_size += bytes.len;
    const is_answer = to.eql(edge.from) and edge.answered_size <= edge.received_size;
    if (!address.is_proved and !is_answer) edge.invariants.violate(
        .no_amplification,
        "{d} bytes for {d} go to {f}, which has shown no cookie",
        .{ edge.answered_size, edge.received_size, to },
    );
    if (session) |of| edge.checkSession(of, to, bytes);
    if (edge.thief) |thief| if (thief.address.eql(to)) {
        address.was_reached = true;
        return thief.side.receive(edge.network.now_us, bytes);
    };
    edge.network.sendToDevice(network_module.edgeAddress(edge.index), to, bytes, after_us);
}

fn checkSession(
    edge: *StreamEdge,
    session: *const Server.Session,
    to: Endpoint,
    bytes: []const u8,
) void {
    if (session.cipher() != .clear) edge.site.nonces.note(
        edge.invariants,
        &session.from_edge.bytes,
        core.stream.seal.counterOf(bytes),
    );
    const boot = edge.site.bootOf(session.boot_id) orelse return;
    if (!boot.isAddress(to)) edge.invariants.violate(
        .right_address,
        "{d} bytes of boot {d} go to {f}, which its device never had",
        .{ bytes.len, boot.number, to },
    );
}

/// Tries to open a second session with the token of a boot that has opened one.
pub fn tryToken(
    edge: *StreamEdge,
    boot: *const StreamBoot,
    address: Endpoint,
) error{OutOfMemory}!void {
    const process = edge.running() orelse return;
    const ref = process.boots.table.findById(boot.id) orelse return;
    if (process.boots.get(ref).?.token_nonce == null) return;
    const now_us = edge.network.now_us;
    var side: DeviceSide = try .init(edge.gpa, .{
        .reads_max = 1,
        .writes_max = 1,
        .packet_size_max = link.packet_size_ethernet,
        .outstanding_bytes_max = link.read_size_max,
    }, .none);
    defer side.deinit(edge.gpa);
    edge.thief = .{ .address = address, .side = &side };
    defer edge.thief = null;
    var seed: [32]u8 = undefined;
    edge.prng.fill(&seed);
    side.start(now_us, .{
        .boot_id = boot.id,
        .token = boot.token,
        .nonce_seed = seed,
        .edge = network_module.edgeAddress(edge.index),
    });
    // HELLO, and HELLO with the cookie; each is answered before the next.
    for (0..3) |_| if (side.transmit(now_us)) |packet| edge.receive(address, packet);
    if (side.isEstablished()) edge.invariants.violate(
        .token_opens_once,
        "the token of boot {d} opens a session for an attacker",
        .{boot.number},
    );
}

/// A packet of this edge has arrived.
pub fn noteArrival(edge: *StreamEdge, at: Endpoint) void {
    edge.addresses.of(at).was_reached = true;
}

/// The server accepts the cookie of this address.
pub fn noteClaim(edge: *StreamEdge, from: Endpoint) void {
    if (!edge.addresses.of(from).was_reached) edge.invariants.violate(
        .cookie_is_checked,
        "the cookie of {f} is accepted, and no packet has reached it",
        .{from},
    );
}

/// The agent has admitted a HELLO, or the sessions have changed in another way.
pub fn noteSessions(edge: *StreamEdge, server: *Server) void {
    for (server.sessions) |*session| {
        if (session.id == 0) continue;
        edge.addresses.of(session.from).is_proved = true;
        const boot = edge.site.bootOf(session.boot_id) orelse continue;
        const device = edge.site.indexOf(boot);
        const known = &edge.known[device];
        if (known.boot_number != boot.number) known.* = .{ .boot_number = boot.number };
        if (known.nonce) |nonce| if (std.mem.eql(u8, &nonce, &session.client_nonce)) continue;
        known.nonce = session.client_nonce;
        known.admitted_us = edge.network.now_us;
        known.has_read = false;
        // The device retransmits only requests after which no other ended.
        if (!session.writes.has_newest) edge.written[device].forgetRequests();
        if (boot.class != .device_ram and boot.home != edge.index) edge.invariants.violate(
            .writes_stay_at_owner,
            "edge {d} keeps the writes of boot {d}, and edge {d} opens a session of it",
            .{ boot.home, boot.number, edge.index },
        );
    }
}

/// A HELLO with a valid cookie has been handled.
fn onAdmission(edge: *StreamEdge, boot_id: base.Uuid) void {
    const process = edge.process.?;
    const boots = &process.boots;
    const session = process.stream.server.sessionOf(boot_id) orelse return;
    if (session.kind != .ticket) return;
    const boot = edge.site.bootOf(boot_id) orelse return;
    const arrived = boots.get(boots.table.findById(boot_id) orelse return).?;
    const failover = arrived.failover orelse return;
    if (failover.is_confirmed) return;
    edge.site.reachability.checkReason(edge.site, edge.site.indexOf(boot), .{
        .left = StreamSite.edgeWith(failover.from_edge),
        .at = edge.index,
    });
    if (edge.mutant == .keys_go_along) edge_mutants.takeKeysAlong(edge, session);
}

/// The agent journals a boot.
pub fn noteBoot(edge: *StreamEdge, boot: *const core.boot.Boot) void {
    const kept = edge.journal.find(boot.identity.id) orelse return;
    const before = kept.token_nonce orelse return;
    const after = boot.token_nonce orelse return;
    if (!std.mem.eql(u8, &before, &after)) edge.invariants.violate(
        .token_opens_once,
        "the token of a boot of {f} opens a second session",
        .{boot.identity.mac},
    );
}

/// The agent reports a boot.
pub fn noteReport(edge: *StreamEdge, boot: *const core.boot.Boot) void {
    if (boot.guest) |*guest| if (guest.order_id) |id| edge.site.confirmOrder(id);
    if (!boot.live_changes.outcome) return;
    const of = edge.site.bootOf(boot.identity.id) orelse return;
    const known = edge.knownOf(of) orelse return;
    const number = if (boot.failover) |failover| failover.number else 0;
    if (known.outcome_of == number) edge.invariants.violate(
        .ready_once,
        "the outcome of boot {d} is reported twice as new",
        .{of.number},
    );
    known.outcome_of = number;
}

/// The first READ of a session: if nothing kept the larger WELCOME from the device, it asks for
/// packets of that size.
pub fn onRead(edge: *StreamEdge, request: *const Server.ReadRequest) void {
    const boot = edge.site.bootOf(request.boot_id) orelse return;
    const known = edge.knownOf(boot) orelse return;
    if (known.has_read) return;
    known.has_read = true;
    const session = edge.process.?.stream.server.findById(request.session_id) orelse return;
    const size_max = session.packet_size_max;
    const size = request.fragment_size + link.packet_overhead;
    if (size == size_max or size_max <= link.packet_size_ethernet) return;
    const own = &edge.network.links[edge.site.indexOf(boot)];
    if (!own.faults.isQuiet() or own.lost_at_us >= known.admitted_us) return;
    if (own.payload_max[1] < size_max) return;
    edge.invariants.violate(
        .jumbo_from_the_first,
        "boot {d} asks for packets of {d} bytes first, and {d} bytes had arrived",
        .{ boot.number, size, size_max },
    );
}

pub fn onUsed(edge: *StreamEdge, boot_id: base.Uuid, offset: u64) void {
    const boot = edge.site.bootOf(boot_id) orelse return;
    if (offset >= @as(u64, boot.version.sectors) * link.sector_size) edge.invariants.violate(
        .bytes_are_right,
        "boot {d} reports the use of bytes beyond its disk",
        .{boot.number},
    );
}

/// Runs once a second.
pub fn second(edge: *StreamEdge) void {
    const process = edge.running() orelse return;
    process.boots.tick(edge.network.now_us);
    process.stream.tick(edge.network.now_us);
    if (excess(&process.stream.server)) |what|
        edge.invariants.violate(.tables_bounded, "{s}", .{what});
}

/// Describes what a table holds beyond its limits.
fn excess(server: *const Server) ?[]const u8 {
    var count: u16 = 0;
    for (server.sessions) |*session| count += @intFromBool(session.id != 0);
    if (count != server.session_count) return "sessions are counted wrongly";
    for (server.sessions) |*session| {
        if (session.id == 0) continue;
        var slots: u16 = 0;
        for (server.collector.slots) |*slot| slots += @intFromBool(slot.session_id == session.id);
        if (slots > slots_of_session_max) return "a session has too many slots for writes";
    }
    for (server.collector.slots) |*slot| {
        if (slot.session_id == 0) continue;
        for (server.sessions) |*session| {
            if (session.id == slot.session_id) break;
        } else return "a slot for writes belongs to no session";
    }
    return null;
}

/// STREAM.md, Limits.
const slots_of_session_max = 8;

pub fn happens(edge: *StreamEdge, per_mille: u32) bool {
    return per_mille > 0 and edge.prng.below(1000) < per_mille;
}

pub fn diskDelayUs(edge: *StreamEdge) u64 {
    const disk = &edge.disk;
    const stall_us = if (edge.happens(disk.stalls_per_mille))
        edge.prng.below(disk.stall_us + 1)
    else
        0;
    return disk.latency_us + stall_us;
}

pub fn planWork(edge: *StreamEdge, planned: PlannedWork) void {
    edge.works.appendAssumeCapacity(planned);
    edge.network.plan(planned.at_us, .{ .edge_wake = edge.index });
}

/// Ends what the disk has finished.
pub fn wake(edge: *StreamEdge) void {
    const process = edge.running() orelse return;
    const now_us = edge.network.now_us;
    edge.sendKeptAnswers();
    var index: u32 = 0;
    while (index < edge.works.count) {
        if (edge.works.buffer[index].at_us > now_us) {
            index += 1;
            continue;
        }
        const planned = edge.works.swapRemove(index);
        if (planned.is_needed) edge.runWork(planned.work);
        // Who waits for a layer has shown a cookie.
        if (planned.work.layer.hello) |*hello|
            edge.addresses.of(hello.claim.from).is_proved = true;
        process.stream.endWork(planned.work, now_us);
    }
    if (edge.again) |*again| if (again.at_us <= now_us) {
        if (process.stream.layerOf(again.ref.boot_id)) |layer|
            _ = process.boots.caches.takeOrder(layer, again.ref, .{
                .write = .{ .offset = again.offset, .bytes = again.bytes[0..again.size] },
            });
        edge.again = null;
    };
    process.boots.caches.beginWorks();
}

/// `write_carried_out_again`.
fn planAgain(edge: *StreamEdge, write: *const Server.WriteRequest) void {
    if (edge.again != null) return;
    edge.again = .{
        .ref = write.ref,
        .at_us = edge.network.now_us + std.time.us_per_s / 2,
        .offset = write.offset,
        .size = write.bytes.len,
        .bytes = undefined,
    };
    @memcpy(edge.again.?.bytes[0..write.bytes.len], write.bytes);
    edge.network.plan(edge.again.?.at_us, .{ .edge_wake = edge.index });
}
