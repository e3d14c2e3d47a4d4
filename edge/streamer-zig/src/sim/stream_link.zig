//! All that the stream's proof knows of the protocol: the real server and the real client with the packets that go between them and the
//! simulated world, and most of the bugs that are planted. Whoever changes the protocol changes this file.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const content = @import("stream_content.zig");
const StreamBoot = @import("stream_boot.zig");
const StreamEdge = @import("stream_edge.zig");
const Plant = @import("stream_plants.zig").Plant;
const Endpoint = base.Endpoint;
const assert = std.debug.assert;

pub const Server = core.StreamServer;
pub const Client = core.StreamClient;
pub const Class = wire.WriteCacheClass;
pub const WriteCode = wire.WriteCode;
pub const WriteRef = Server.WriteRef;
pub const Report = wire.Report;
pub const sector_size = wire.sector_size;
pub const read_size_max = Client.read_size_max;
pub const write_size_max = wire.writes.write_size_max;
pub const packet_size_min = wire.packet_size_min;
pub const packet_size_ethernet = wire.packet_size_ethernet;
pub const session_spare_us = Server.session_spare_us;
pub const packet_size_max = wire.packet_size_max;
/// Longest time between what ends and a device's next word about it.
pub const silence_us_max = Client.silence_us_max;

/// Bugs that sealed packets hide: where they are planted, all is in clear text.
fn ciphersFor(plant: Plant) ?wire.Ciphers {
    return switch (plant) {
        .source_unchecked, .late_write_carried_out => .{ .clear = true },
        else => null,
    };
}

/// Whether a flipped bit of this packet is found by the stream itself; else the receiver's UDP checksum finds it.
pub fn findsFlips(plant: Plant, packet: []const u8) bool {
    if (ciphersFor(plant) != null or packet.len < wire.header_size) return false;
    return switch (std.enums.fromInt(wire.Type, packet[1]) orelse return false) {
        // Of what a session begins and ends with.
        .hello, .cookie, .refuse, .welcome, .no_session => false,
        else => true,
    };
}

comptime {
    assert(sector_size == content.sector_size);
}

/// One process of the edge.
pub const EdgeSide = struct {
    server: Server,
    plant: Plant,
    reads_answered: u64 = 0,
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
        write_places: u16,
    };

    pub fn init(gpa: std.mem.Allocator, options: Options, plant: Plant) error{OutOfMemory}!EdgeSide {
        return .{ .plant = plant, .server = try .init(gpa, .{
            .keys = .{ .cookie = options.cookie_key, .session = options.session_key, .resumption = options.resumption_key },
            .sessions_max = options.sessions_max,
            .packet_size_max = options.packet_size_max,
            .ciphers = ciphersFor(plant),
            .outstanding_bytes_max = options.outstanding_bytes_max,
            .session_idle_us = options.session_idle_us,
            .write_places = options.write_places,
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
                if (side.plant == .drop_not_counted and reason == .stream_stale_write) ignored = 0;
                if (ignored != 1) host.checks.violate(.drops_are_counted, "a packet was ignored ({t}) and counted {d} times", .{ reason, ignored });
                side.plantAfterIgnored(host, from, bytes, reason);
            },
            .reply => |packet| if (!side.takePlantedHello(host, from, bytes)) host.send(from, packet, null, 0),
            .admit => |*claim| side.admit(host, claim),
            .read => |*read| side.answerRead(host, read),
            .used => |*used| for (0..used.units.count()) |index| host.noteUsed(used.boot_id, used.units.at(@intCast(index)).offset()),
            .write => |*write| host.carryOut(write.ref, .{ .write = .{ .offset = write.offset, .bytes = write.bytes } }),
            .control => |*control| host.carryOut(control.ref, switch (control.operation) {
                .flush => .flush,
                .discard => .{ .discard = .{ .offset = control.offset, .length = control.length } },
            }),
            .taken => side.plantWhole(),
            .probe => |probe| if (side.server.answerProbe(probe, &side.packet)) |packet| host.send(from, packet, null, 0),
            .ready => |*ready| {
                host.takeReady(ready.boot_id, ready.repeated and side.plant != .ready_counts_again);
                host.send(from, ready.reply, host.bootOf(ready.boot_id), 0);
            },
            .report => |*report| {
                const order = host.takeReport(report.boot_id, &report.report);
                const ack: wire.ReportAck = if (order) |id| .{ .order = .restart, .order_id = id } else .{};
                const packet = side.server.acknowledgeReport(report, ack, &side.reply) orelse unreachable;
                host.send(from, packet, host.bootOf(report.boot_id), 0);
            },
        }
        if (step != .ignored and step != .reply and step != .admit and ignored != 0)
            host.checks.violate(.drops_are_counted, "a packet that was taken ({t}) counts as ignored", .{std.meta.activeTag(step)});
    }

    fn admit(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim) void {
        host.noteClaim(claim.from);
        if (side.plant == .token_opens_twice and claim.hello.kind == .token) side.server.forget(claim.boot_id);
        const had_session = side.server.sessionOf(claim.boot_id) != null;
        const admission = side.server.admit(host.network.now_us, claim.*, side.grantOf(host, claim), &side.reply);
        switch (admission.outcome) {
            .opened, .resumed, .repeated => host.noteAdmission(claim.boot_id, claim.from, .{
                .opened_by = if (admission.outcome == .opened) claim.hello.client_nonce else null,
                .is_new = !had_session,
            }),
            .token_refused, .version_missing, .no_cache, .no_cipher, .busy, .stale => {},
        }
        if (side.server.showSize(&admission, &side.packet)) |packet| host.send(claim.from, packet, null, 0);
        if (admission.reply) |packet| host.send(claim.from, packet, null, 0);
    }

    fn grantOf(side: *EdgeSide, host: *StreamEdge, claim: *const Server.Claim) Server.Grant {
        const boot = host.bootOf(claim.boot_id) orelse return .unknown;
        if (host.misses(boot)) return .version_missing;
        var known: Server.Grant.Boot = .{
            .token = boot.token,
            .token_nonce = if (side.plant == .token_opens_twice) null else boot.opened_by,
            .version_id = boot.version.id(),
            .disk_size = @as(u64, boot.version.sectors) * sector_size,
            .profile_size = StreamBoot.profile_sectors * sector_size,
        };
        if (!side.server.proofHolds(claim, &known)) return .{ .boot = known };
        if (boot.class == .device_ram) return .{ .boot = known };
        const id = host.cacheOf(boot, claim.hello.kind == .token) orelse return .{ .no_cache = .cache_lost };
        known.write_cache = .{ .class = boot.class, .size = known.disk_size, .id = id };
        return .{ .boot = known };
    }

    fn answerRead(side: *EdgeSide, host: *StreamEdge, read: *const Server.ReadRequest) void {
        const boot = host.bootOf(read.boot_id) orelse return side.server.forget(read.boot_id);
        side.reads_answered += 1;
        const after_us = host.readDelayUs();
        if (read.kind == .profile) return side.sendFragments(host, boot, read, StreamBoot.Profile{}, after_us);
        const layer = host.sourceOf(boot, read.write_cache != .device_ram) catch |err| {
            const code: wire.ReadErrorCode = switch (err) {
                error.StoreError => .store_error,
                error.Lost => .cache_lost,
                error.Stopped => .stopped,
            };
            const packet = side.server.readError(read, code, &side.reply) orelse return;
            return host.send(read.to, packet, boot, after_us);
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
            host.send(read.to, sealer.seal(&fragment.header, payload, &side.packet), boot, after_us);
        }
    }

    /// The end of a request that was being carried out; null: it was not, and may come again.
    pub fn finish(side: *EdgeSide, host: *StreamEdge, ref: WriteRef, code: ?WriteCode) void {
        const outgoing = side.server.finishWrite(ref, code, &side.reply) orelse return;
        host.send(outgoing.to, outgoing.packet, host.bootOf(ref.boot_id), 0);
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
            for (server.collector.places) |*place| places += @intFromBool(place.session_id == session.id);
            if (places > core_places_max) return "a session has more places for writes than it may have";
        }
        for (server.collector.places) |*place| {
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
        if (side.plant != .late_write_carried_out or reason != .stream_stale_write) return;
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
        for (side.server.collector.places) |*place| {
            if (place.session_id == 0 or place.count + 2 != place.fragment_count) continue;
            for (0..place.fragment_count) |index| if (!place.came.isSet(index)) {
                place.came.set(index);
                place.count += 1;
                return;
            };
        }
    }
};

/// Where a bug keeps time-outs short: as on a link that never stalled.
const short_timeout_us = 20 * std.time.us_per_ms;

/// The stream's end in a device's program.
pub const DeviceSide = struct {
    client: Client,
    plant: Plant = .none,
    out: [wire.sealed_request_size_max]u8 = undefined,
    /// Of the read that ended last.
    request_id_before: u32 = 0,

    pub const Options = struct { reads_max: u16, writes_max: u16, packet_size_max: u16, outstanding_bytes_max: u32 };
    pub const Identity = struct { boot_id: base.Uuid, token: [16]u8, nonce_seed: [32]u8 };

    pub fn init(gpa: std.mem.Allocator, options: Options, plant: Plant) error{OutOfMemory}!DeviceSide {
        return .{ .plant = plant, .client = try .init(gpa, .{
            .reads_max = options.reads_max,
            .writes_max = options.writes_max,
            .packet_size_max = options.packet_size_max,
            .ciphers = ciphersFor(plant),
            .outstanding_bytes_max = options.outstanding_bytes_max,
        }) };
    }

    pub fn deinit(side: *DeviceSide, gpa: std.mem.Allocator) void {
        side.client.deinit(gpa);
        side.* = undefined;
    }

    pub fn start(side: *DeviceSide, now_us: u64, identity: Identity) void {
        side.client.start(now_us, .{ .boot_id = identity.boot_id, .token = identity.token, .nonce_seed = identity.nonce_seed });
    }

    /// Another process of the device goes on with the boot: what was under way is submitted again. False: there is nothing to go on with.
    pub fn goOn(side: *DeviceSide, now_us: u64, identity: Identity) bool {
        if (side.client.state != .established) return false;
        const last = side.client.writes.request_id_next -% 1;
        side.client.start(now_us, .{
            .boot_id = identity.boot_id,
            .token = identity.token,
            .nonce_seed = identity.nonce_seed,
            .session = side.client.session,
        });
        side.client.writes.goOnBehind(last);
        return true;
    }

    pub fn receive(side: *DeviceSide, now_us: u64, bytes: []const u8) void {
        side.client.receive(now_us, bytes);
    }

    pub fn transmit(side: *DeviceSide, now_us: u64) ?[]const u8 {
        if (side.plant == .timeout_never_doubles) {
            for (side.client.reads) |*read| read.timeout_us = @min(side.client.round_trip.timeout_us, short_timeout_us);
            for (side.client.writes.pending) |*write|
                write.timeout_us = @min(side.client.writes.round_trip.timeout_us, short_timeout_us);
        }
        return side.client.transmit(now_us, &side.out);
    }

    pub fn nextEvent(side: *DeviceSide) ?Client.Event {
        const event = side.client.nextEvent() orelse return null;
        switch (event) {
            .established => |session| {
                if (side.plant == .outstanding_unbounded) {
                    side.client.session.?.outstanding_bytes_max = std.math.maxInt(u32);
                    side.client.window.size = std.math.maxInt(u32);
                    side.client.window.options.bytes_max = std.math.maxInt(u32);
                }
                if (side.plant == .resumption_forgets_writes and session.resumed)
                    for (side.client.writes.pending) |*write| if (write.state == .asked) {
                        side.client.writes.outstanding_bytes -= write.length;
                        write.state = .ended;
                        write.code = .done;
                    };
            },
            .order => if (side.plant == .order_taken_again) {
                side.client.report_state.order_id = @splat(0);
            },
            .read_done => |done| if (side.plant == .request_number_used_again) {
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
        if (side.plant == .deadline_in_the_past and at_us != null and now_us % 1024 == 0) return now_us;
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
        for (side.client.reads) |*read| reads += @intFromBool(read.state == .asked);
        return .{ .bytes = side.client.outstandingBytes(), .reads = reads };
    }

    pub fn ignoredCount(side: *const DeviceSide) u64 {
        return side.client.statistics.ignored;
    }

    pub const ReadKind = wire.ReadKind;

    pub fn submitRead(side: *DeviceSide, kind: ReadKind, tag: u64, offset: u64, buffer: []u8) error{Full}!void {
        try side.client.submitOf(kind, tag, offset, buffer);
        if (side.plant != .request_number_used_again) return;
        for (side.client.reads) |*read| {
            if (read.state == .queued and read.tag == tag and side.request_id_before != 0) read.request_id = side.request_id_before;
        }
    }

    pub fn submitWrite(side: *DeviceSide, tag: u64, offset: u64, bytes: []const u8) error{Full}!void {
        try side.client.submitWrite(tag, offset, bytes);
        if (side.plant != .overlapping_writes_together) return;
        if (side.client.session == null) return;
        for (side.client.writes.pending) |*write| {
            if (write.state != .queued or write.tag != tag) continue;
            write.state = .asked;
            write.fragment_size = @min(side.client.fragmentSize(), wire.fragment_size_ethernet);
            write.timeout_us = side.client.writes.round_trip.timeout_us;
            write.to_send.setRangeValue(.{ .start = 0, .end = wire.writes.fragmentCount(write.length, write.fragment_size) }, true);
            side.client.writes.outstanding_bytes += write.length;
        }
    }

    pub fn submitDiscard(side: *DeviceSide, tag: u64, offset: u64, length: u32) error{Full}!void {
        return side.client.submitDiscard(tag, offset, length);
    }

    pub fn submitFlush(side: *DeviceSide, tag: u64) error{Full}!void {
        try side.client.submitFlush(tag);
        if (side.plant != .flush_ends_at_once) return;
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
