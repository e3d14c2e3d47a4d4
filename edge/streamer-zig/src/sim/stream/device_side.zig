//! The stream's end in a device's program, for its proof: the real client.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const Invariants = @import("invariants.zig");
const link = @import("link.zig");
const Mutant = @import("mutants.zig").Mutant;
const StreamNonces = @import("nonces.zig");
const Endpoint = base.Endpoint;
const Client = core.stream.Client;

/// Where a bug keeps time-outs short: as on a link that never stalled.
const short_timeout_us = 20 * std.time.us_per_ms;

/// The stream's end in a device's program.
pub const DeviceSide = struct {
    client: Client,
    mutant: Mutant = .none,
    out: [wire.sealed_request_size_max]u8 = undefined,
    /// Of the read that ended last.
    request_id_before: u32 = 0,
    /// Of a planted bug.
    protection_before: @FieldType(Client, "protection") = .{},

    pub const Options = struct { reads_max: u16, writes_max: u16, packet_size_max: u16, outstanding_bytes_max: u32 };
    pub const Identity = struct { boot_id: base.Uuid, token: [16]u8, nonce_seed: [32]u8, edge: Endpoint };

    pub fn init(gpa: std.mem.Allocator, options: Options, mutant: Mutant) error{OutOfMemory}!DeviceSide {
        return .{ .mutant = mutant, .client = try .init(gpa, .{
            .reads_max = options.reads_max,
            .writes_max = options.writes_max,
            .packet_size_max = options.packet_size_max,
            .ciphers = link.ciphersFor(mutant),
            .outstanding_bytes_max = options.outstanding_bytes_max,
        }) };
    }

    pub fn deinit(side: *DeviceSide, gpa: std.mem.Allocator) void {
        side.client.deinit(gpa);
        side.* = undefined;
    }

    pub fn start(side: *DeviceSide, now_us: u64, identity: Identity) void {
        side.client.start(now_us, .{ .boot_id = identity.boot_id, .token = identity.token, .nonce_seed = identity.nonce_seed, .edge = identity.edge });
    }

    /// Another process of the device goes on with the boot: what was under way is submitted again. False: there is nothing to go on with.
    pub fn goOn(side: *DeviceSide, now_us: u64, identity: Identity) bool {
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

    /// Whom it is connected to: nothing from anywhere else comes to it.
    pub fn asked(side: *const DeviceSide) Endpoint {
        return side.client.failover.current;
    }

    /// Of its session, or of the one that it wants first.
    pub fn home(side: *const DeviceSide) Endpoint {
        return side.client.failover.own;
    }

    pub fn receive(side: *DeviceSide, now_us: u64, bytes: []const u8) void {
        const client = &side.client;
        client.receive(now_us, bytes);
        switch (side.mutant) {
            .size_never_lowered => client.path.onFullSize(),
            .shown_size_unseen => if (client.path.size > wire.packet_size_ethernet) {
                client.path.size = wire.packet_size_ethernet;
            },
            .bound_asks_others => client.failover.is_bound = false,
            else => {},
        }
    }

    /// The network says that nobody listens where packets go to.
    pub fn onUnreachable(side: *DeviceSide, now_us: u64) void {
        if (side.mutant != .refusal_unheard) side.client.onUnreachable(now_us);
    }

    pub fn transmit(side: *DeviceSide, now_us: u64) ?[]const u8 {
        const client = &side.client;
        switch (side.mutant) {
            .timeout_never_doubles => {
                for (client.reads) |*read| read.timeout_us = @min(client.rtt.rto_us, short_timeout_us);
                for (client.writes.pending) |*write| write.timeout_us = @min(client.writes.rtt.rto_us, short_timeout_us);
            },
            .narrow_path_unfound => client.writes.mtu_probe.cancel(),
            .never_leaves => client.failover.is_bound = true,
            .silent_edge_never_passed_over => if (side.isAskedSilent()) {
                client.failover.turn_ends_us = std.math.maxInt(u64);
            },
            .silent_edge_keeps_its_turn => if (side.isAskedSilent()) client.failover.onAlive(),
            .keys_go_along => if (client.state == .established) {
                side.protection_before = client.protection;
            },
            else => {},
        }
        return client.transmit(now_us, &side.out);
    }

    /// The packet that was made last was sealed.
    pub fn noteSealed(side: *const DeviceSide, invariants: *Invariants, nonces: *StreamNonces, packet: []const u8) void {
        const key = &side.client.protection.from_device;
        if (side.client.state != .established or key.cipher == .clear) return;
        nonces.note(invariants, &key.bytes, core.stream.seal.counterOf(packet));
    }

    /// Another edge is asked, and has neither said that it is there nor that it does not take the boot.
    fn isAskedSilent(side: *const DeviceSide) bool {
        const failover = &side.client.failover;
        return !failover.isAtOwn() and failover.turn_ends_us == failover.turn_began_us + failover.turn_us / 2;
    }

    /// The last packet that was its own, while it has a session or wants it again, and knows another edge to which it may go; null: it has
    /// none, or none knows a ticket that is still good.
    pub fn heard(side: *const DeviceSide, now_us: u64) ?struct { at_us: u64 } {
        const client = &side.client;
        if (client.session == null or client.state == .ended or client.state == .idle) return null;
        if (client.failover.known == null or side.isTicketOver(now_us)) return null;
        return .{ .at_us = client.last_packet_at_us };
    }

    /// An edge that has begun anew before it had heard anything of the boot takes none any more.
    pub fn isTicketOver(side: *const DeviceSide, now_us: u64) bool {
        const failover = &side.client.failover;
        const known = if (failover.known) |*known| known else return false;
        return now_us -| failover.known_at_us >= @as(u64, known.lifetime_s) * std.time.us_per_s;
    }

    /// What was to be said of the boot was said to the edge that it is at.
    pub fn isAllSaid(side: *const DeviceSide) bool {
        const client = &side.client;
        const ready = if (client.ready) |*ready| ready.acknowledged else true;
        return client.state == .established and ready and client.report_state.acknowledged and side.areStepsSaid();
    }

    /// On a narrow way a report leaves out steps, which the next one has.
    pub fn areStepsSaid(side: *const DeviceSide) bool {
        const report = &side.client.report_state;
        return report.steps_acknowledged or report.steps.count == 0;
    }

    pub fn nextEvent(side: *DeviceSide) ?Client.Event {
        const event = side.client.nextEvent() orelse return null;
        switch (event) {
            .established => |session| {
                if (session.moved) switch (side.mutant) {
                    .ready_not_said_again => if (side.client.ready) |*ready| {
                        ready.acknowledged = ready.is_known;
                    },
                    .report_not_said_again => {
                        side.client.report_state.acknowledged = true;
                        side.client.report_state.steps_acknowledged = true;
                    },
                    .keys_go_along => side.client.protection = side.protection_before,
                    else => {},
                };
                if (side.mutant == .outstanding_unbounded) {
                    side.client.session.?.outstanding_bytes_max = std.math.maxInt(u32);
                    side.client.window.cwnd_bytes = std.math.maxInt(u32);
                    side.client.window.options.bytes_max = std.math.maxInt(u32);
                }
                if (side.mutant == .resumption_forgets_writes and session.resumed)
                    for (side.client.writes.pending) |*write| if (write.state == .in_flight) {
                        side.client.writes.outstanding_bytes -= write.length;
                        write.state = .ended;
                        write.code = .done;
                    };
            },
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

    pub fn deadline(side: *const DeviceSide, now_us: u64) ?u64 {
        const at_us = side.client.deadline();
        if (side.mutant == .deadline_in_the_past and at_us != null and now_us % 1024 == 0) return now_us;
        return at_us;
    }

    pub fn hasEnded(side: *const DeviceSide) bool {
        return side.client.state == .ended;
    }

    pub fn isEstablished(side: *const DeviceSide) bool {
        return side.client.state == .established;
    }

    /// Bytes of reads that were asked for and have not come, and how many reads that is.
    pub fn outstanding(side: *const DeviceSide) struct { bytes: u64, reads: u32 } {
        var reads: u32 = 0;
        for (side.client.reads) |*read| reads += @intFromBool(read.state == .in_flight);
        return .{ .bytes = side.client.inFlightBytes(), .reads = reads };
    }

    pub fn ignoredCount(side: *const DeviceSide) u64 {
        return side.client.statistics.ignored;
    }

    pub const ReadKind = wire.ReadKind;

    pub fn submitRead(side: *DeviceSide, kind: ReadKind, tag: u64, offset: u64, buffer: []u8) error{Full}!void {
        try side.client.submitOf(kind, tag, offset, buffer);
        if (side.mutant != .request_number_used_again) return;
        for (side.client.reads) |*read| {
            if (read.state == .queued and read.tag == tag and side.request_id_before != 0) read.request_id = side.request_id_before;
        }
    }

    pub fn submitWrite(side: *DeviceSide, tag: u64, offset: u64, bytes: []const u8) error{Full}!void {
        try side.client.submitWrite(tag, offset, bytes);
        if (side.mutant != .overlapping_writes_together) return;
        if (side.client.session == null) return;
        for (side.client.writes.pending) |*write| {
            if (write.state != .queued or write.tag != tag) continue;
            write.state = .in_flight;
            write.fragment_size = @min(side.client.fragmentSize(), wire.fragment_size_ethernet);
            write.timeout_us = side.client.writes.rtt.rto_us;
            write.to_send.setRangeValue(.{ .start = 0, .end = wire.writes.fragmentCount(write.length, write.fragment_size) }, true);
            side.client.writes.outstanding_bytes += write.length;
        }
    }

    pub fn submitDiscard(side: *DeviceSide, tag: u64, offset: u64, length: u32) error{Full}!void {
        return side.client.submitDiscard(tag, offset, length);
    }

    pub fn submitFlush(side: *DeviceSide, tag: u64) error{Full}!void {
        try side.client.submitFlush(tag);
        if (side.mutant != .flush_ends_at_once) return;
        for (side.client.writes.pending) |*write| {
            if (write.state == .queued and write.kind == .flush) write.state = .ended;
        }
    }

    pub fn sayReady(side: *DeviceSide, now_us: u64, uptime_us: u64) void {
        side.client.reportReady(now_us, .ready, uptime_us, .{ .code = "sim" });
    }

    /// `number` comes to the edge as what is used of a write cache.
    pub fn sayReport(side: *DeviceSide, now_us: u64, number: u64, step_count: u8) void {
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

    /// What the system got of what was read ahead.
    pub fn sayUsed(side: *DeviceSide, offset: u64) void {
        side.client.used.add(.{ .index = @intCast(offset / wire.profile.unit_size), .blocks = 1 });
    }
};
