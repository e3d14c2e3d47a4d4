//! The stream's end in an edge's process, for its proof: the real server, and what it is told of boots, tickets and disks.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const content = @import("content.zig");
const link = @import("link.zig");
const StreamBoot = @import("boot.zig");
const StreamEdge = @import("edge.zig");
const StreamNetwork = @import("network.zig");
const storage = @import("storage.zig");
const Plant = @import("plants.zig").Plant;
const Endpoint = base.Endpoint;
const Server = core.stream.Server;
const WriteCode = link.WriteCode;
const WriteRef = link.WriteRef;
const sector_size = wire.sector_size;

/// One process of the edge.
pub const EdgeSide = struct {
    server: Server,
    plant: Plant,
    reads_answered: u64 = 0,
    is_planting: bool = false,
    reply: Server.ReplyBuffer = undefined,
    packet: [wire.packet_size_max]u8 = undefined,
    bytes: [wire.fragment_size_max]u8 = undefined,

    pub const Options = struct {
        cookie_key: [32]u8,
        session_key: [32]u8,
        resumption_key: [32]u8,
        sessions_max: u16,
        packet_size_max: u16,
        outstanding_bytes_max: u32,
        session_idle_us: u64,
        write_slots: u16,
    };

    pub fn init(gpa: std.mem.Allocator, options: Options, plant: Plant) error{OutOfMemory}!EdgeSide {
        return .{ .plant = plant, .server = try .init(gpa, .{
            .keys = .{ .cookie = options.cookie_key, .session = options.session_key, .resumption = options.resumption_key },
            .sessions_max = options.sessions_max,
            .packet_size_max = options.packet_size_max,
            .ciphers = link.ciphersFor(plant),
            .outstanding_bytes_max = options.outstanding_bytes_max,
            .session_idle_us = options.session_idle_us,
            .write_slots = options.write_slots,
        }) };
    }

    pub fn deinit(side: *EdgeSide, gpa: std.mem.Allocator) void {
        side.server.deinit(gpa);
        side.* = undefined;
    }

    /// One datagram and all that follows from it at once.
    pub fn receive(side: *EdgeSide, host: *StreamEdge, from: Endpoint, bytes: []const u8) void {
        const now_us = host.network.now_us;
        if (side.plant == .source_unchecked) side.followSource(from, bytes);
        const ignored_before = side.server.ignored.total();
        const step = side.server.receive(now_us, from, bytes, &side.reply);
        var ignored = side.server.ignored.total() - ignored_before;
        switch (step) {
            .ignored => |reason| {
                if (side.plant == .drop_not_counted and reason == .stream_replayed) ignored = 0;
                if (ignored != 1) host.checks.violate(.drops_are_counted, "a packet was ignored ({t}) and counted {d} times", .{ reason, ignored });
                side.plantAfterIgnored(host, from, bytes, reason);
            },
            .reply => |packet| {
                if (side.takePlantedHello(host, from, bytes)) return;
                const is_late = side.plant == .late_write_carried_out and isNotYet(packet);
                host.send(from, packet, null, 0);
                if (is_late) side.plantLateWrite(host, from, bytes);
            },
            .admit => |*claim| side.admit(host, claim),
            .read => |*read| side.answerRead(host, read),
            .used => |*used| for (0..used.units.count()) |index| host.noteUsed(used.boot_id, used.units.at(@intCast(index)).offset()),
            .write => |*write| storage.carryOut(host, write.ref, .{ .write = .{ .offset = write.offset, .bytes = write.bytes } }),
            .control => |*control| storage.carryOut(host, control.ref, switch (control.operation) {
                .flush => .flush,
                .discard => .{ .discard = .{ .offset = control.offset, .length = control.length } },
            }),
            .taken => side.plantWhole(),
            .probe => |probe| if (side.plant != .probe_behind_disk) {
                if (side.server.answerProbe(probe, &side.packet)) |packet| side.sendSealed(host, from, packet, probe.session_id, 0);
            },
            .ready => |*ready| {
                host.takeReady(ready.boot_id, ready.repeated and side.plant != .ready_counts_again);
                side.sendOf(host, from, ready.reply, ready.boot_id, 0);
            },
            .report => |*report| {
                const order = host.takeReport(report.boot_id, &report.report);
                const ack: wire.ReportAck = if (order) |id| .{ .order = .restart, .order_id = id } else .{};
                const packet = side.server.acknowledgeReport(report, ack, &side.reply) orelse unreachable;
                side.sendSealed(host, from, packet, report.session_id, 0);
            },
        }
        if (step != .ignored and step != .reply and step != .admit and ignored != 0)
            host.checks.violate(.drops_are_counted, "a packet that was taken ({t}) counts as ignored", .{std.meta.activeTag(step)});
    }

    fn admit(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim) void {
        host.noteClaim(claim.from);
        const kind = claim.hello.kind;
        if (side.plant == .token_opens_twice and kind == .token) side.server.forget(claim.boot_id);
        const had_session = side.server.sessionOf(claim.boot_id) != null;
        const boot = host.site.bootOf(claim.boot_id);
        const grant = if (kind == .ticket) side.grantOfTicket(host, claim) else side.grantOf(host, claim);
        const admission = side.server.admit(host.network.now_us, claim.*, grant, &side.reply);
        switch (admission.outcome) {
            .opened, .resumed, .repeated => if (boot) |known| host.noteAdmission(known, claim.from, .{
                .kind = kind,
                .nonce = claim.hello.client_nonce,
                .outcome = switch (admission.outcome) {
                    .opened => .opened,
                    .resumed => .resumed,
                    else => .repeated,
                },
                .had_session = had_session,
            }),
            .token_refused, .version_missing, .no_cache, .no_cipher, .busy, .stale => {},
        }
        if (side.plant != .large_welcome_left_out) if (side.server.showSize(&admission, &side.packet)) |packet|
            side.sendWelcome(host, claim, packet);
        if (admission.reply) |packet| side.sendWelcome(host, claim, packet);
        const session = side.server.sessionOf(claim.boot_id) orelse return;
        if (side.plant == .counter_begins_anew and admission.outcome == .repeated) session.counter.* = 1;
        if (side.plant == .keys_go_along and admission.outcome == .resumed and kind == .ticket) side.takeKeysAlong(host, session);
    }

    /// WELCOME of a session, or REFUSE of none.
    fn sendWelcome(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim, packet: []const u8) void {
        if (packet[1] == @backingInt(wire.Type.welcome)) if (side.server.sessionOf(claim.boot_id)) |session| noteSealed(host, session, packet);
        host.send(claim.from, packet, null, 0);
    }

    /// A packet of a session that is still there, or none that has one.
    fn sendSealed(side: *EdgeSide, host: *StreamEdge, to: Endpoint, packet: []const u8, session_id: u64, after_us: u64) void {
        const session = side.server.findById(session_id) orelse return host.send(to, packet, null, after_us);
        noteSealed(host, session, packet);
        host.send(to, packet, host.site.bootOf(session.boot_id), after_us);
    }

    fn sendOf(side: *EdgeSide, host: *StreamEdge, to: Endpoint, packet: []const u8, boot_id: base.Uuid, after_us: u64) void {
        if (side.server.sessionOf(boot_id)) |session| noteSealed(host, session, packet);
        host.send(to, packet, host.site.bootOf(boot_id), after_us);
    }

    fn noteSealed(host: *StreamEdge, session: *const Server.Session, packet: []const u8) void {
        if (session.cipher() == .clear) return;
        host.site.nonces.note(host.checks, &session.from_edge.bytes, core.stream.seal.counterOf(packet));
    }

    fn takeKeysAlong(side: *EdgeSide, host: *StreamEdge, session: *Server.Session) void {
        for (host.site.edgesOf()) |*other| {
            if (&other.side == side or !other.is_up) continue;
            const before = other.side.server.sessionOf(session.boot_id) orelse continue;
            session.from_device = before.from_device;
            session.from_edge = before.from_edge;
            session.counter.* = 1;
        }
    }

    fn grantOf(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim) Server.Grant {
        const boot = host.site.bootOf(claim.boot_id) orelse return .unknown;
        const known = host.knownOf(boot) orelse return .unknown;
        // Until it has said anything here, its device may be at another edge.
        if (!known.is_confirmed) return .unknown;
        if (host.misses(boot)) return .version_missing;
        var granted: Server.Grant.Boot = .{
            // No other edge than its first has been told.
            .token = if (known.hand_overs == 0) boot.token else @splat(0xee),
            .token_nonce = if (side.plant == .token_opens_twice) null else known.opened_by,
            .version_id = boot.version.id(),
            .disk_size = @as(u64, boot.version.sectors) * sector_size,
            .profile_size = StreamBoot.profile_sectors * sector_size,
        };
        if (!side.server.proofHolds(claim, &granted)) return .{ .boot = granted };
        if (boot.class != .device_ram) {
            const id = storage.cacheOf(host, boot, claim.hello.kind == .token) orelse return .{ .no_cache = .cache_lost };
            granted.write_cache = .{ .class = boot.class, .size = granted.disk_size, .id = id };
        }
        granted.failover = side.failoverOf(host, boot, &granted, known.hand_overs);
        return .{ .boot = granted };
    }

    /// As `host/stream/failover.zig` has it.
    fn grantOfTicket(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim) Server.Grant {
        var keys = [_][32]u8{host.site.ticket_key};
        const boot = host.site.bootOf(claim.boot_id) orelse return .unknown;
        const ticket = switch (core.stream.ticket.judge(&keys, &claim.hello, host.site.unixMs())) {
            .good => |ticket| ticket,
            .elsewhere => |ticket| if (side.plant == .ticket_of_writes_taken) ticket else return .{ .no_cache = .cache_elsewhere },
            .refused => return .unknown,
        };
        // As `failoverOf` has it.
        if (!host.takeTicket(boot, ticket.hand_overs, ticket.edge_id[0] - 1)) return .unknown;
        if (host.misses(boot)) return .version_missing;
        var granted: Server.Grant.Boot = .{
            .token = @splat(0xee),
            .token_nonce = null,
            .version_id = boot.version.id(),
            .disk_size = ticket.disk_size,
            .profile_size = StreamBoot.profile_sectors * sector_size,
            .ticket_secret = ticket.resume_secret,
        };
        if (boot.class != .device_ram) granted.write_cache = .{ .class = boot.class, .size = granted.disk_size, .id = boot.cache_id };
        granted.failover = side.failoverOf(host, boot, &granted, ticket.hand_overs + 1);
        return .{ .boot = granted };
    }

    /// Where the device may go on, and its ticket; null: there is no other edge.
    fn failoverOf(side: *EdgeSide, host: *StreamEdge, boot: *const StreamBoot, granted: *const Server.Grant.Boot, hand_overs: u16) ?wire.ticket.Failover {
        const site = host.site;
        if (site.edge_count == 1) return null;
        var failover: wire.ticket.Failover = .{ .lifetime_s = site.ticket_lifetime_s, .edges = .empty, .ticket = undefined };
        for (1..site.edge_count) |step|
            failover.edges.appendAssumeCapacity(StreamNetwork.edgeAddress(@intCast((host.index + step) % site.edge_count)));
        var salt: core.stream.ticket.Salt = undefined;
        host.prng.fill(&salt);
        const now_unix_ms = site.unixMs();
        failover.ticket = core.stream.ticket.seal(&site.ticket_key, salt, &.{
            .boot_id = boot.id.bytes,
            .version_id = boot.version.id().bytes,
            .vdisk_id = @splat(0),
            .device_id = @splat(0),
            .edge_id = @splat(host.index + 1),
            .resume_secret = side.server.resumeSecretOf(boot.id),
            .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, site.indexOf(boot) } },
            .write_cache = boot.class,
            .flags = .{},
            .hand_overs = hand_overs,
            .started_unix_ms = now_unix_ms,
            .elapsed_us = 0,
            .expires_unix_ms = now_unix_ms + @as(u64, site.ticket_lifetime_s) * std.time.ms_per_s,
            .disk_size = granted.disk_size,
        });
        return failover;
    }

    fn answerRead(side: *EdgeSide, host: *StreamEdge, read: *const Server.ReadRequest) void {
        const boot = host.site.bootOf(read.boot_id) orelse return side.server.forget(read.boot_id);
        const known = host.knownOf(boot) orelse return side.server.forget(read.boot_id);
        known.is_confirmed = true;
        side.reads_answered += 1;
        if (side.server.findById(read.session_id)) |session| host.noteRead(boot, .{
            .packet_size = read.fragment_size + wire.header_size + wire.tag_size,
            .packet_size_max = session.packet_size_max,
        });
        const after_us = storage.readDelayUs(host);
        if (read.kind == .profile) return side.sendFragments(host, boot, read, StreamBoot.Profile{}, after_us);
        const layer = storage.sourceOf(host, boot, read.write_cache != .device_ram) catch |err| {
            const code: wire.ReadErrorCode = switch (err) {
                error.StoreError => .store_error,
                error.Lost => .cache_lost,
                error.Stopped => .stopped,
            };
            const packet = side.server.readError(read, code, &side.reply) orelse return;
            return side.sendSealed(host, read.to, packet, read.session_id, after_us);
        };
        if (side.plant == .another_version_read and side.reads_answered % 100 == 99) {
            const other: StreamBoot.Version = .{ .number = boot.version.number + 1, .sectors = boot.version.sectors };
            return side.sendFragments(host, boot, read, other, after_us);
        }
        side.sendFragments(host, boot, read, layer, after_us);
    }

    fn sendFragments(side: *EdgeSide, host: *StreamEdge, boot: *const StreamBoot, read: *const Server.ReadRequest, source: anytype, after_us: u64) void {
        var sealer = side.server.sealer(read.session_id) orelse return;
        const count = wire.fragmentCount(read.length, read.fragment_size);
        var fragments = read.fragments();
        while (fragments.next()) |named| {
            var fragment = named;
            var offset = fragment.offset;
            switch (side.plant) {
                .last_fragment_left_out => if (fragment.index == count - 1) continue,
                .fragment_at_wrong_index => if (fragment.index == 2) {
                    offset -= read.fragment_size;
                },
                .repeat_of_wrong_range => if (read.repeated and fragment.index > 0) {
                    fragment.index -= 1;
                    offset -= read.fragment_size;
                    fragment.header = wire.dataHeader(read.session_id, read.request_id, fragment.index);
                    fragment.length = read.fragment_size;
                },
                else => {},
            }
            const payload = side.bytes[0..fragment.length];
            content.fill(source, offset, payload);
            const packet = sealer.seal(&fragment.header, payload, &side.packet);
            noteSealed(host, sealer.session, packet);
            host.send(read.to, packet, boot, after_us);
        }
    }

    /// The end of a request that was being carried out; null: it was not, and may come again.
    pub fn finish(side: *EdgeSide, host: *StreamEdge, ref: WriteRef, code: ?WriteCode) void {
        const outgoing = side.server.finishWrite(ref, code, &side.reply) orelse return;
        side.sendOf(host, outgoing.to, outgoing.packet, ref.boot_id, 0);
    }

    pub fn expire(side: *EdgeSide, now_us: u64) void {
        side.server.expire(now_us);
    }

    pub fn forget(side: *EdgeSide, boot_id: base.Uuid) void {
        side.server.forget(boot_id);
    }

    /// What a table holds beyond its limits, in words.
    pub fn excess(side: *const EdgeSide) ?[]const u8 {
        const server = &side.server;
        var count: u16 = 0;
        for (server.sessions) |*session| count += @intFromBool(session.id != 0);
        if (count != server.session_count) return "sessions are counted wrongly";
        for (server.sessions) |*session| {
            if (session.id == 0) continue;
            var places: u16 = 0;
            for (server.collector.slots) |*place| places += @intFromBool(place.session_id == session.id);
            if (places > core_places_max) return "a session has more places for writes than it may have";
        }
        for (server.collector.slots) |*place| {
            if (place.session_id == 0) continue;
            for (server.sessions) |*session| {
                if (session.id == place.session_id) break;
            } else return "a place for a write is of no session";
        }
        return null;
    }

    /// STREAM.md, Limits.
    const core_places_max = 8;

    fn plantAfterIgnored(side: *EdgeSide, host: *StreamEdge, from: Endpoint, bytes: []const u8, reason: base.IgnoreReason) void {
        if (side.plant == .late_write_carried_out and reason == .stream_stale_write) side.plantLateWrite(host, from, bytes);
    }

    fn isNotYet(packet: []const u8) bool {
        const parsed = wire.parse(packet) catch return false;
        return parsed.body == .write_ack and parsed.body.write_ack.code == .not_yet;
    }

    /// A planted bug: what was asked for before is forgotten.
    fn plantLateWrite(side: *EdgeSide, host: *StreamEdge, from: Endpoint, bytes: []const u8) void {
        if (side.is_planting) return;
        side.is_planting = true;
        defer side.is_planting = false;
        const parsed = wire.parse(bytes) catch return;
        const session = side.server.findById(parsed.session_id) orelse return;
        session.writes = .{};
        side.receive(host, from, bytes);
    }

    /// A planted bug: whoever names a session has it.
    fn followSource(side: *EdgeSide, from: Endpoint, bytes: []const u8) void {
        const server = &side.server;
        const parsed = wire.parse(bytes) catch return;
        const session = server.findById(parsed.session_id) orelse return;
        if (session.from.eql(from) or server.index.get(from) != null) return;
        server.index.remove(session.from);
        session.from = from;
        server.index.put(from, @intCast(session - server.sessions.ptr));
    }

    /// True when a planted bug answered instead of the server.
    fn takePlantedHello(side: *EdgeSide, host: *StreamEdge, from: Endpoint, bytes: []const u8) bool {
        if (side.plant != .cookie_unchecked and side.plant != .answer_too_long) return false;
        const parsed = wire.parse(bytes) catch return false;
        if (parsed.body != .hello) return false;
        const hello = parsed.body.hello;
        if (side.plant == .answer_too_long) {
            const padding: [wire.hello_size + 1]u8 = @splat(0);
            host.send(from, &padding, null, 0);
            return true;
        }
        side.admit(host, &.{
            .from = from,
            .hello = hello,
            .boot_id = .fromBytes(hello.boot_id),
        });
        return true;
    }

    fn plantWhole(side: *EdgeSide) void {
        if (side.plant != .whole_without_a_fragment) return;
        for (side.server.collector.slots) |*place| {
            if (place.session_id == 0 or place.count + 2 != place.fragment_count) continue;
            for (0..place.fragment_count) |index| if (!place.came.isSet(index)) {
                place.came.set(index);
                place.count += 1;
                return;
            };
        }
    }
};
