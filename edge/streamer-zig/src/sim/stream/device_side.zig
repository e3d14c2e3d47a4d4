//! The stream's end in a simulated device: the real client, and the mutants that change its state.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const Invariants = @import("invariants.zig");
const link = @import("link.zig");
const Mutant = @import("mutants.zig").Mutant;
const Nonces = @import("nonces.zig");
const Endpoint = base.Endpoint;
const Client = core.stream.Client;

/// For a mutant: as short as the timeout on a link that never stalls.
const short_timeout_us = 20 * std.time.us_per_ms;

pub const DeviceSide = struct {
    client: Client,
    mutant: Mutant = .none,
    out: [wire.sealed_request_size_max]u8 = undefined,
    /// For a mutant: id of the read that ended last.
    request_id_before: u32 = 0,
    /// For a mutant.
    protection_before: @FieldType(Client, "protection") = .{},

    pub const Options = struct {
        reads_max: u16,
        writes_max: u16,
        packet_size_max: u16,
        version_max: wire.Version = .newest,
        codecs: u8 = 0,
        outstanding_bytes_max: u32,
    };

    pub const Identity = struct {
        boot_id: base.Uuid,
        token: [16]u8,
        nonce_seed: [32]u8,
        edge: Endpoint,
    };

    pub fn init(
        gpa: std.mem.Allocator,
        options: Options,
        mutant: Mutant,
    ) error{OutOfMemory}!DeviceSide {
        return .{ .mutant = mutant, .client = try .init(gpa, .{
            .reads_max = options.reads_max,
            .writes_max = options.writes_max,
            .packet_size_max = options.packet_size_max,
            .version_max = options.version_max,
            .codecs = options.codecs,
            .ciphers = link.ciphersFor(mutant),
            .outstanding_bytes_max = options.outstanding_bytes_max,
            .rtt_probe_us = Client.rtt_probe_us_default,
        }) };
    }

    pub fn deinit(side: *DeviceSide, gpa: std.mem.Allocator) void {
        side.client.deinit(gpa);
        side.* = undefined;
    }

    pub fn start(side: *DeviceSide, now_us: u64, identity: Identity) void {
        side.client.start(now_us, .{
            .boot_id = identity.boot_id,
            .token = identity.token,
            .nonce_seed = identity.nonce_seed,
            .edge = identity.edge,
            .card = .{},
        });
    }

    /// Another process of the device continues the boot; its requests are submitted again. Returns
    /// false if no session is open.
    pub fn continueBoot(side: *DeviceSide, now_us: u64, identity: Identity) bool {
        if (side.client.state != .established) return false;
        const last = side.client.writes.request_id_next -% 1;
        side.client.start(now_us, .{
            .boot_id = identity.boot_id,
            .token = identity.token,
            .nonce_seed = identity.nonce_seed,
            .edge = identity.edge,
            .session = side.client.session,
        });
        side.client.writes.continueAfter(last);
        return true;
    }

    /// Returns the edge to which the socket is connected.
    pub fn contacted(side: *const DeviceSide) Endpoint {
        return side.client.failover.current;
    }

    /// Returns the edge of the session, or the one that it contacts first.
    pub fn home(side: *const DeviceSide) Endpoint {
        return side.client.failover.own;
    }

    pub fn receive(side: *DeviceSide, now_us: u64, bytes: []const u8) void {
        const client = &side.client;
        var proven: [wire.lost_ack_size]u8 = undefined;
        client.receive(now_us, if (side.mutant == .lost_order_unproven)
            side.prove(bytes, &proven)
        else
            bytes);
        switch (side.mutant) {
            .size_never_lowered => client.path.onFullSize(),
            .shown_size_unseen => if (client.path.size > wire.packet_size_ethernet) {
                client.path.size = wire.packet_size_ethernet;
            },
            .bound_asks_others => client.failover.is_bound = false,
            else => {},
        }
    }

    /// For a mutant: returns an answer to LOST with the proof that it lacks.
    fn prove(side: *const DeviceSide, bytes: []const u8, out: *[wire.lost_ack_size]u8) []const u8 {
        var packet = wire.parse(bytes) catch return bytes;
        if (packet.body != .lost_ack or side.client.session == null) return bytes;
        const ack = &packet.body.lost_ack;
        ack.proof = core.stream.seal.lostAckProof(&side.client.session.?.resume_secret, ack);
        return wire.emit(packet, out);
    }

    /// The network reports that nobody listens at the edge.
    pub fn onUnreachable(side: *DeviceSide, now_us: u64) void {
        if (side.mutant != .refusal_unheard) side.client.onUnreachable(now_us);
    }

    pub fn transmit(side: *DeviceSide, now_us: u64) ?[]const u8 {
        const client = &side.client;
        switch (side.mutant) {
            .timeout_never_doubles => {
                for (client.reads) |*read|
                    read.timeout_us = @min(client.rtt.rto_us, short_timeout_us);
                for (client.writes.pending) |*write|
                    write.timeout_us = @min(client.writes.rtt.rto_us, short_timeout_us);
            },
            .narrow_path_unfound => client.writes.mtu_probe.cancel(),
            .never_leaves => client.failover.is_bound = true,
            .silent_edge_never_passed_over => if (side.isContactSilent()) {
                client.failover.turn_ends_us = std.math.maxInt(u64);
            },
            .silent_edge_keeps_its_turn => if (side.isContactSilent()) client.failover.onAlive(),
            .keys_go_along => if (client.state == .established) {
                side.protection_before = client.protection;
            },
            else => {},
        }
        return client.transmit(now_us, &side.out);
    }

    /// Checks the nonce of the packet that was made last.
    pub fn noteSealed(
        side: *const DeviceSide,
        invariants: *Invariants,
        nonces: *Nonces,
        packet: []const u8,
    ) void {
        const key = &side.client.protection.from_device;
        if (side.client.state != .established or key.cipher == .clear) return;
        nonces.note(invariants, &key.bytes, core.stream.seal.counterOf(packet));
    }

    /// Returns whether it contacts another edge that has neither answered nor refused the boot.
    fn isContactSilent(side: *const DeviceSide) bool {
        const failover = &side.client.failover;
        const half_us = failover.turn_us / 2;
        return !failover.isAtOwn() and failover.turn_ends_us == failover.turn_began_us + half_us;
    }

    /// Returns when the last packet of its session arrived, while it has a session or wants it
    /// again and may fail over; null otherwise.
    pub fn heardUs(side: *const DeviceSide, now_us: u64) ?u64 {
        const client = &side.client;
        if (client.session == null or client.state == .ended or client.state == .idle) return null;
        if (client.failover.known == null or side.isTicketOver(now_us)) return null;
        return client.last_packet_at_us;
    }

    /// An edge that restarted before it had heard the boot no longer accepts it.
    pub fn isTicketOver(side: *const DeviceSide, now_us: u64) bool {
        const failover = &side.client.failover;
        const known = if (failover.known) |*known| known else return false;
        const lifetime_us = @as(u64, known.lifetime_s) * std.time.us_per_s;
        return now_us -| failover.known_at_us >= lifetime_us;
    }

    /// Returns whether its edge has acknowledged everything that the device has to report.
    pub fn hasReportedAll(side: *const DeviceSide) bool {
        const client = &side.client;
        const is_ready_heard = if (client.ready) |*ready| ready.acknowledged else true;
        const is_report_heard = client.report_state.acknowledged and side.hasSentSteps();
        return client.state == .established and is_ready_heard and is_report_heard;
    }

    /// On a narrow path a report omits steps, which the next one has.
    pub fn hasSentSteps(side: *const DeviceSide) bool {
        const state = &side.client.report_state;
        return state.steps_acknowledged or state.steps.count == 0;
    }

    pub fn nextEvent(side: *DeviceSide) ?Client.Event {
        const event = side.client.nextEvent() orelse return null;
        switch (event) {
            .established => |session| side.mutateSession(session.moved, session.resumed),
            .order => if (side.mutant == .order_taken_again) {
                side.client.report_state.order_id = @splat(0);
            },
            .read_done => |done| if (side.mutant == .request_number_used_again) {
                for (side.client.reads) |*read| if (read.state == .free and read.tag == done.tag) {
                    side.request_id_before = read.request_id;
                };
            },
            else => {},
        }
        return event;
    }

    fn mutateSession(side: *DeviceSide, is_moved: bool, is_resumed: bool) void {
        const client = &side.client;
        switch (side.mutant) {
            .ready_not_said_again => if (is_moved) if (client.ready) |*ready| {
                ready.acknowledged = ready.is_known;
            },
            .report_not_said_again => if (is_moved) {
                client.report_state.acknowledged = true;
                client.report_state.steps_acknowledged = true;
            },
            .keys_go_along => if (is_moved) {
                client.protection = side.protection_before;
            },
            .outstanding_unbounded => {
                client.session.?.outstanding_bytes_max = std.math.maxInt(u32);
                client.window.cwnd_bytes = std.math.maxInt(u32);
                client.window.options.bytes_max = std.math.maxInt(u32);
            },
            .resumption_forgets_writes => if (is_resumed) {
                for (client.writes.pending) |*write| if (write.state == .in_flight) {
                    client.writes.outstanding_bytes -= write.length;
                    write.state = .ended;
                    write.code = .done;
                };
            },
            else => {},
        }
    }

    pub fn deadline(side: *const DeviceSide, now_us: u64) ?u64 {
        const at_us = side.client.deadline();
        const is_late = side.mutant == .deadline_in_the_past and now_us % 1024 == 0;
        return if (is_late and at_us != null) now_us else at_us;
    }

    pub fn isEstablished(side: *const DeviceSide) bool {
        return side.client.state == .established;
    }

    /// Returns the bytes of reads in flight, and how many reads these are.
    pub fn outstanding(side: *const DeviceSide) struct { bytes: u64, reads: u32 } {
        var reads: u32 = 0;
        for (side.client.reads) |*read| reads += @intFromBool(read.state == .in_flight);
        return .{ .bytes = side.client.inFlightBytes(), .reads = reads };
    }

    pub const ReadKind = wire.ReadKind;

    pub fn submitRead(
        side: *DeviceSide,
        kind: ReadKind,
        tag: u64,
        offset: u64,
        buffer: []u8,
    ) error{Full}!void {
        try side.client.submitOf(kind, tag, offset, buffer);
        if (side.mutant != .request_number_used_again or side.request_id_before == 0) return;
        for (side.client.reads) |*read| {
            if (read.state == .queued and read.tag == tag) read.request_id = side.request_id_before;
        }
    }

    pub fn submitWrite(
        side: *DeviceSide,
        tag: u64,
        offset: u64,
        bytes: []const u8,
    ) error{Full}!void {
        const client = &side.client;
        try client.submitWrite(tag, offset, bytes);
        if (side.mutant != .overlapping_writes_together or client.session == null) return;
        for (client.writes.pending) |*write| {
            if (write.state != .queued or write.tag != tag) continue;
            write.state = .in_flight;
            write.fragment_size = @min(client.fragmentSize(), wire.fragment_size_ethernet);
            write.timeout_us = client.writes.rtt.rto_us;
            const count = wire.writes.fragmentCount(write.length, write.fragment_size);
            write.to_send.setRangeValue(.{ .start = 0, .end = count }, true);
            client.writes.outstanding_bytes += write.length;
        }
    }

    pub fn submitDiscard(
        side: *DeviceSide,
        tag: u64,
        offset: u64,
        length: u32,
    ) error{Full}!void {
        return side.client.submitDiscard(tag, offset, length);
    }

    pub fn submitFlush(side: *DeviceSide, tag: u64) error{Full}!void {
        try side.client.submitFlush(tag);
        if (side.mutant != .flush_ends_at_once) return;
        for (side.client.writes.pending) |*write| {
            if (write.state == .queued and write.kind == .flush) write.state = .ended;
        }
    }

    pub fn reportReady(side: *DeviceSide, now_us: u64, uptime_us: u64) void {
        side.client.reportReady(now_us, .ready, uptime_us, .{ .code = "sim" });
    }

    /// Reports `number` as the used bytes of a write cache.
    pub fn report(side: *DeviceSide, now_us: u64, number: u64, step_count: u8) void {
        var steps: wire.StepList = .empty;
        for (0..step_count) |index| steps.append(.{
            .group = .unit,
            .name = "unit",
            .start_us = @intCast(index),
            .duration_us = 1,
        }) catch break;
        side.client.report(now_us, .{
            .uptime_us = now_us,
            .write_cache = .{ .used = number, .size = std.math.maxInt(u32) },
            .steps = steps.view(),
        });
    }

    /// Reports that the system has read bytes that were read ahead.
    pub fn reportUsed(side: *DeviceSide, offset: u64) void {
        const index: u32 = @intCast(offset / wire.profile.unit_size);
        side.client.used.add(.{ .index = @intCast(index), .blocks = 1 });
    }
};
