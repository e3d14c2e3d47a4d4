//! Fuzzes the stream's parsers alone: packets, and the tickets that some of them carry.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [stream.packet_size_max]u8 = undefined;
    const payload = makePayload(case, &buffer);
    const packet = stream.parse(payload) catch return false;
    switch (packet.body) {
        .read => |read| {
            try expect(read.ranges.count() <= stream.ranges_max, "a READ has at most 64 ranges");
            _ = read.ranges.fragmentCount();
        },
        .report => |report| {
            try expect(report.steps.count <= stream.steps_max, "a REPORT has at most 24 steps");
            try fuzz_case.expectWithin(report.steps.bytes, payload);
            var list: stream.StepList = .empty;
            var steps = report.steps.iterate();
            while (steps.next()) |step| list.append(step) catch
                return fuzz_case.violated("what was received can be sent");
            try expect(list.view().eql(report.steps), "steps are kept byte for byte");
            var kept: stream.ReadTimeList = .empty;
            var times = report.read_times.iterate();
            while (times.next()) |entry| kept.append(entry.phase, entry.kind, &entry.histogram);
            try expect(
                std.mem.eql(u8, kept.view().bytes, report.read_times.bytes),
                "read times are kept byte for byte",
            );
        },
        .ready => |ready| try fuzz_case.expectWithin(ready.sentence, payload),
        .data => |data| {
            try fuzz_case.expectWithin(data.payload, payload);
            try expect(
                data.packed_size == 0 or packet.version == .v3 and
                    data.payload.len <= data.packed_size,
                "a packed answer is as long as its fragment, and of version 3",
            );
        },
        .write => |write| {
            try fuzz_case.expectWithin(write.payload, payload);
            try expect(write.length <= stream.writes.write_size_max, "a WRITE has at most 128 KiB");
        },
        .used => |used| {
            try expect(used.units.count() > 0, "a USED has a unit");
            try fuzz_case.expectWithin(used.units.bytes, payload);
            for (0..used.units.count()) |index|
                try expect(used.units.at(@intCast(index)).blocks != 0, "a unit has blocks");
        },
        .write_ack => |ack| try fuzz_case.expectWithin(ack.missing, payload),
        .fetch_times => |times| try checkFetchTimes(times.reads, payload),
        .account => |account| {
            try fuzz_case.expectWithin(account.bytes, payload);
            try expect(account.bytes.len > 0, "an ACCOUNT has bytes");
        },
        .hello => |hello| try expect(
            (hello.kind == .ticket) == (hello.shown != null),
            "a ticket is shown by a hello of its kind alone",
        ),
        .welcome => |welcome| if (welcome.failover) |*failover| try checkFailover(failover),
        .lost => |lost| try expect(
            (lost.reason == .refused) == (lost.refusal != null),
            "a LOST has the code of its refusal",
        ),
        .cookie, .refuse, .read_error, .no_session, .keepalive, .keepalive_ack => {},
        .ready_ack, .report_ack, .control, .probe, .probe_ack, .lost_ack, .account_ack => {},
        .machine => |machine| try checkMachine(&machine),
        .network => |network| try expect(network.isValid(), "figures of a NETWORK are valid"),
    }
    var out: [stream.packet_size_max]u8 = undefined;
    const again = stream.emit(packet, &out);
    if (!skipsEdges(packet, payload))
        try expect(std.mem.eql(u8, payload, again), "emit(parse(bytes)) == bytes");
    return true;
}

fn checkMachine(machine: *const stream.Machine) Violation!void {
    try expect(machine.cpu_count > 0 and machine.memory_mib > 0, "a machine has a processor");
    for (machine.driverName()) |byte|
        try expect(std.ascii.isPrint(byte), "a driver's name is printable");
    for (machine.modelName()) |byte|
        try expect(std.ascii.isPrint(byte), "a model is printable");
}

fn checkFetchTimes(reads: stream.FetchTimes.Reads, payload: []const u8) Violation!void {
    try fuzz_case.expectWithin(reads.bytes, payload);
    try expect(
        reads.count() > 0 and reads.count() <= stream.fetch_times_max,
        "a FETCH_TIMES has 1 to 64 reads",
    );
    for (0..reads.count()) |index| _ = reads.at(@intCast(index));
}

fn checkFailover(failover: *const stream.ticket.Failover) Violation!void {
    try expect(
        failover.edges.count > 0 and failover.edges.count <= stream.ticket.edges_max,
        "a list of edges has one to eight",
    );
    try expect(failover.lifetime_s > 0, "a ticket is good for some time");
    for (failover.edges.constSlice()) |edge| try expect(
        edge.port != 0 and !edge.ip.eql(.zero),
        "an edge of the list can be asked",
    );
}

/// A WELCOME of version 3 may name edges by addresses that are skipped.
fn skipsEdges(packet: stream.Packet, payload: []const u8) bool {
    if (packet.version != .v3 or packet.body != .welcome) return false;
    const count_at = stream.welcome_size + 4;
    const named = if (payload.len > count_at) payload[count_at] else 0;
    const kept = if (packet.body.welcome.failover) |failover| failover.edges.count else 0;
    return kept != named;
}

/// Memory that the slices of a packet point into.
pub const PacketMemory = struct {
    list: stream.RangeList = .{},
    steps: stream.StepList = .empty,
    times: stream.ReadTimeList = .empty,
    content: [608]u8 = undefined,
};

fn makePayload(case: *Case, buffer: []u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer[0..300]);
    var room: PacketMemory = .{};
    const packet = makePacket(case, &room);
    const bytes = stream.emit(packet, buffer);
    return if (case.prng.chance(1, 4)) bytes else case.mutate(buffer[0..1600], bytes.len);
}

/// Checks an opened ticket: of another edge of the site, which may run an older or a newer program.
pub fn ticketBody(case: *Case) Violation!bool {
    const prng = &case.prng;
    const format = prng.pick(stream.ticket.Format, &.{ .v1, .v2 });
    const size = format.bodySize();
    var bytes: [stream.ticket.body_size_max + 64]u8 = undefined;
    if (prng.chance(1, 8)) {
        prng.fill(&bytes);
    } else {
        stream.ticket.emitBody(format, &makeTicket(prng), bytes[0..size]);
        if (prng.chance(3, 4)) _ = case.mutate(&bytes, size);
    }
    const ticket = stream.ticket.parseBody(format, bytes[0..size]) catch return false;
    try expect(
        ticket.disk_size > 0 and ticket.disk_size % stream.sector_size == 0,
        "a ticket is of a whole disk",
    );
    for (ticket.phases) |phase| if (phase) |known| if (known.end_us) |end_us|
        try expect(known.start_us <= end_us, "a phase begins before it ends");
    var buffer: [stream.ticket.body_size_max]u8 = undefined;
    const again = buffer[0..size];
    stream.ticket.emitBody(format, &ticket, again);
    // A phase that never began has no end, whatever the field holds.
    try fuzz_case.expectEqual(ticket, stream.ticket.parseBody(format, again) catch
        return fuzz_case.violated(
            "what was parsed can be parsed again",
        ), "parse(emit(ticket)) == ticket");
    return true;
}

fn makeTicket(prng: *base.Prng) stream.ticket.Ticket {
    var ticket: stream.ticket.Ticket = .{
        .boot_id = undefined,
        .version_id = undefined,
        .vdisk_id = undefined,
        .device_id = undefined,
        .edge_id = undefined,
        .resume_secret = undefined,
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, @truncate(prng.nextU32()) } },
        .write_cache = prng.pick(stream.WriteCacheClass, &.{
            .device_ram, .edge, .edge_persistent, .device_ram_overflow,
        }),
        .flags = .{
            .managed = prng.chance(1, 2),
            .simulated = prng.chance(1, 2),
            .local_disk = prng.chance(1, 2),
            .signed = prng.chance(1, 2),
        },
        .hand_overs = @truncate(prng.nextU32()),
        .started_unix_ms = prng.nextU64(),
        .elapsed_us = prng.nextU64(),
        .expires_unix_ms = prng.nextU64(),
        .disk_size = prng.between(1, 1 << 40) * stream.sector_size,
    };
    inline for (.{
        "boot_id",
        "version_id",
        "vdisk_id",
        "device_id",
        "edge_id",
        "resume_secret",
    }) |name| prng.fill(&@field(ticket, name));
    for (&ticket.phases) |*phase| if (prng.chance(1, 2)) {
        const start_us: u48 = @intCast(prng.below(1 << 40));
        phase.* = .{
            .start_us = start_us,
            .end_us = if (prng.chance(1, 2)) start_us +
                @as(u48, @intCast(prng.below(1 << 40))) else null,
        };
    };
    return ticket;
}

/// Unreadable bytes in place of a ticket.
pub fn makeFailover(prng: *base.Prng) stream.ticket.Failover {
    var failover: stream.ticket.Failover =
        .{ .lifetime_s = prng.nextU32() | 1, .edges = .empty, .ticket = undefined };
    prng.fill(&failover.ticket);
    for (0..@intCast(prng.between(
        1,
        stream.ticket.edges_max,
    ))) |index| failover.edges.appendAssumeCapacity(.{
        .ip = .init(10, 0, 0, @intCast(index + 1)),
        .port = @intCast(prng.between(1, 65535)),
    });
    return failover;
}

/// Any type, with any values.
pub fn makePacket(case: *Case, room: *PacketMemory) stream.Packet {
    var draw: Draw = .{ .session_id = undefined, .request_id = undefined, .size = undefined };
    case.prng.fill(&draw.bytes);
    draw.session_id = case.prng.nextU64() | 1;
    draw.request_id = case.prng.nextU32();
    draw.size = @intCast(case.prng.between(1, 600));
    const version = case.prng.pick(stream.Version, &.{ .v2, .v3 });
    const type_max: u8 = if (version == .v2) 17 else 21;
    const packet_type: stream.Type =
        @fromBackingInt(@as(u8, @intCast(case.prng.between(0, type_max))));
    var packet = makeBody(case, packet_type, &draw, room);
    packet.version = version;
    switch (packet.body) {
        .hello => |*hello| {
            hello.version = version;
            if (version == .v3) makeIdentity(&case.prng, hello);
        },
        .welcome => |*welcome| if (version == .v3) {
            welcome.codec = @intCast(case.prng.below(stream.codecs_max + 1));
        },
        .data => |*data| if (version == .v3 and case.prng.chance(1, 2)) {
            data.packed_size =
                @intCast(case.prng.between(data.payload.len, stream.read_size_max - 1));
        },
        .read => |*read| if (version == .v3 and read.kind != .profile) {
            read.is_plain = case.prng.chance(1, 4);
        },
        .refuse => |*refuse| if (version == .v3 and case.prng.chance(1, 4)) {
            refuse.code = .identity_refused;
        },
        else => {},
    }
    return packet;
}

fn makeIdentity(prng: *base.Prng, hello: *stream.Hello) void {
    hello.codecs = @truncate(prng.nextU32());
    if (hello.kind != .token or prng.chance(1, 3)) return;
    prng.fill(&hello.device_key);
    hello.device_key[0] = 4;
    if (prng.chance(3, 4)) prng.fill(&hello.signature);
}

fn makeBody(
    case: *Case,
    packet_type: stream.Type,
    draw: *const Draw,
    room: *PacketMemory,
) stream.Packet {
    return switch (packet_type) {
        .hello, .cookie, .welcome, .refuse => makeHandshake(case, packet_type, draw),
        .lost, .lost_ack => makeLost(&case.prng, packet_type, &draw.bytes),
        .machine => in(draw.session_id, draw.request_id, .{
            .machine = makeMachine(&case.prng, draw.bytes[0 .. draw.size % 70]),
        }),
        .network => in(draw.session_id, draw.request_id, .{ .network = makeNetwork(&case.prng) }),
        .read,
        .data,
        .read_error,
        .used,
        .probe,
        .probe_ack,
        .no_session,
        .keepalive,
        .keepalive_ack,
        .fetch_times,
        => makeRead(case, packet_type, draw, room),
        .ready,
        .ready_ack,
        .report,
        .report_ack,
        .write,
        .control,
        .write_ack,
        .account,
        .account_ack,
        => makeReportOrWrite(case, packet_type, draw, room),
    };
}

fn makeNetwork(prng: *base.Prng) stream.Network {
    const size: u16 = @intCast(prng.between(stream.packet_size_min, 4052));
    const lost_size = prng.chance(1, 2);
    const expected = prng.nextU32();
    const ordered = prng.nextU32();
    const reordered = prng.below(@as(u64, ordered) + 1);
    return .{
        .card = .{ .duplex = .half, .mtu = @truncate(prng.nextU32()), .link_mbit = 10 },
        .is_settled = prng.chance(1, 2),
        .is_final = prng.chance(1, 2),
        .size_max = stream.packet_size_max,
        .size = size,
        .size_lost = if (lost_size) size + 1 else 0,
        .size_lost_count = if (lost_size) 3 else 0,
        .expected = expected,
        .lost = @intCast(prng.below(@as(u64, expected) + 1)),
        .ordered = ordered,
        .reordered = @intCast(reordered),
        .reorder_max = if (reordered > 0) @truncate(prng.nextU32()) else 0,
    };
}

/// Random values that every type of packet starts from.
const Draw = struct {
    bytes: [64]u8 = undefined,
    session_id: u64,
    request_id: u32,
    size: usize,
};

/// HELLO and its answers.
fn makeHandshake(case: *Case, packet_type: stream.Type, draw: *const Draw) stream.Packet {
    const prng = &case.prng;
    const bytes = draw.bytes;
    const nonce = bytes[0..16].*;
    const session_id = draw.session_id;
    switch (packet_type) {
        .hello => {
            const kind = prng.pick(stream.HelloKind, &.{ .token, .resumption, .ticket });
            return .{ .body = .{ .hello = .{
                .client_nonce = nonce,
                .kind = kind,
                .boot_id = bytes[16..32].*,
                .client_public = bytes[0..32].*,
                .proof = bytes[32..64].*,
                .ciphers = .{ .clear = prng.chance(1, 2), .aegis_128l = true },
                .packet_size_max = @intCast(prng.between(
                    stream.packet_size_min,
                    stream.packet_size_max,
                )),
                .shown = if (kind == .ticket) .{
                    .age_us = prng.nextU64(),
                    .ticket = makeFailover(prng).ticket,
                } else null,
            } } };
        },
        .cookie => return .{ .body = .{ .cookie = .{
            .client_nonce = nonce,
            .cookie = bytes[16..48].*,
        } } },
        .welcome => return .{ .session_id = session_id, .body = .{ .welcome = .{
            .client_nonce = nonce,
            .edge_public = @splat(7),
            .cipher = .chacha20_poly1305,
            .padding = @intCast(prng.below(3) * 400),
            .version_tag = prng.nextU64(),
            .disk_size = prng.between(1, 1 << 40) * stream.sector_size,
            .fragment_size = stream.fragment_size_ethernet,
            .read_size_max = stream.read_size_max,
            .outstanding_bytes_max = stream.read_size_max,
            .resume_secret = bytes[16..48].*,
            .version_id = bytes[48..64].*,
            .profile_size = @intCast(prng.below(129) * stream.sector_size),
            .write_cache = .edge,
            .write_cache_size = prng.nextU64() | 1,
            .write_cache_id = prng.nextU64() | 1,
            .failover = if (prng.chance(1, 2)) makeFailover(prng) else null,
        } } },
        .refuse => return .{ .body = .{ .refuse = .{
            .client_nonce = nonce,
            .code = @fromBackingInt(@as(u16, @intCast(prng.between(1, 8)))),
        } } },
        else => unreachable,
    }
}

fn makeLost(prng: *base.Prng, packet_type: stream.Type, bytes: *const [64]u8) stream.Packet {
    const nonce = bytes[0..16].*;
    const order: stream.Order = @fromBackingInt(@as(u8, @intCast(prng.below(3))));
    if (packet_type == .lost_ack) return .{ .body = .{ .lost_ack = .{
        .nonce = nonce,
        .order = order,
        .order_id = if (order == .none) @splat(0) else @splat(7),
        .proof = bytes[32..64].*,
    } } };
    const reason: stream.LostReason = @fromBackingInt(@as(u8, @intCast(prng.between(1, 3))));
    return .{ .body = .{ .lost = .{
        .boot_id = bytes[16..32].*,
        .nonce = nonce,
        .reason = reason,
        .refusal = if (reason == .refused) .token_refused else null,
        .restart_in_s = prng.nextU32(),
        .order_id = bytes[32..48].*,
        .proof = bytes[32..64].*,
    } } };
}

/// Packets of reads, of the profile and of MTU probes.
fn makeRead(
    case: *Case,
    packet_type: stream.Type,
    draw: *const Draw,
    room: *PacketMemory,
) stream.Packet {
    const prng = &case.prng;
    const content = &room.content;
    const session_id = draw.session_id;
    const request_id = draw.request_id;
    const size = draw.size;
    switch (packet_type) {
        .read => {
            var next: u64 = 0;
            for (0..@intCast(prng.below(8))) |_| {
                const first = next + prng.below(16);
                const count = prng.between(1, 16);
                next = first + count;
                room.list.append(.{
                    .first_fragment = @intCast(first),
                    .fragment_count = @intCast(count),
                }) catch unreachable;
            }
            return .{ .session_id = session_id, .request_id = request_id, .body = .{ .read = .{
                .kind = @fromBackingInt(@as(u4, @intCast(prng.below(3)))),
                .fragment_size = @intCast(prng.between(
                    stream.fragment_size_min,
                    stream.fragment_size_max,
                )),
                .version_tag = prng.nextU64(),
                .offset = prng.below(1 << 40) * stream.sector_size,
                .length = stream.read_size_max,
                .ranges = room.list.view(),
            } } };
        },
        .data => return .{ .session_id = session_id, .request_id = request_id, .body = .{ .data = .{
            .index = @intCast(prng.below(stream.fragments_max)),
            .payload = content[0..size],
        } } },
        .read_error => return .{ .session_id = session_id, .request_id = request_id, .body = .{
            .read_error = .{ .code = @fromBackingInt(@as(u16, @intCast(prng.between(1, 6)))) },
        } },
        .used => {
            const count = size / stream.profile.entry_size + 1;
            for (0..count) |index| stream.profile.Unit.encode(
                .{ .index = @truncate(prng.nextU64()), .blocks = @intCast(prng.between(1, 255)) },
                content[index * stream.profile.entry_size ..][0..stream.profile.entry_size],
            );
            return in(session_id, request_id, .{ .used = .{
                .units = .{ .bytes = content[0 .. count * stream.profile.entry_size] },
            } });
        },
        .probe => return in(session_id, request_id, .{ .probe = .{
            .size = @intCast(prng.between(stream.packet_size_min, stream.packet_size_max)),
        } }),
        .probe_ack => return in(
            session_id,
            request_id,
            .{ .probe_ack = @intCast(prng.between(stream.packet_size_min, 1400)) },
        ),
        .no_session => return in(session_id, request_id, .no_session),
        .keepalive => return in(session_id, request_id, .keepalive),
        .keepalive_ack => return in(session_id, request_id, .keepalive_ack),
        .fetch_times => return in(session_id, request_id, .{ .fetch_times = .{
            .reads = .{ .bytes = content[0 .. (size % stream.fetch_times_max + 1) * 8] },
        } }),
        else => unreachable,
    }
}

fn makeMachine(prng: *base.Prng, text: []const u8) stream.Machine {
    return .{
        .cpu_count = @truncate(prng.nextU32() | 1),
        .card_vendor = @truncate(prng.nextU32()),
        .card_device = @truncate(prng.nextU32()),
        .memory_mib = prng.nextU32() | 1,
        .link_mbit = prng.nextU32(),
        .driver = stream.Machine.paddedDriver(text),
        .model = stream.Machine.paddedModel(text),
    };
}

/// Packets of reports and writes.
fn makeReportOrWrite(
    case: *Case,
    packet_type: stream.Type,
    draw: *const Draw,
    room: *PacketMemory,
) stream.Packet {
    const prng = &case.prng;
    const content = &room.content;
    const session_id = draw.session_id;
    const request_id = draw.request_id;
    const size = draw.size;
    switch (packet_type) {
        .ready => return in(session_id, request_id, .{ .ready = .{
            .outcome = .ready,
            .uptime_us = prng.nextU64(),
            .code = "hello\x00\x00\x00\x00\x00\x00\x00".*,
            .sentence = sentence[0..@intCast(prng.below(sentence.len + 1))],
        } }),
        .ready_ack => return in(session_id, request_id, .ready_ack),
        .account => return in(session_id, request_id, .{ .account = .{
            .kind = prng.pick(stream.AccountKind, &.{ .block_trace, .units }),
            .part = @truncate(prng.nextU64()),
            .is_last = prng.chance(1, 2),
            .bytes = content[0..@intCast(prng.between(1, stream.account_part_size_max))],
        } }),
        .account_ack => return in(session_id, request_id, .account_ack),
        .report => return in(session_id, request_id, .{ .report = makeReport(prng, room) }),
        .report_ack => {
            const order: stream.Order = @fromBackingInt(@as(u8, @intCast(prng.below(3))));
            const id: [16]u8 = if (order == .none) @splat(0) else @splat(7);
            return in(
                session_id,
                request_id,
                .{ .report_ack = .{ .order = order, .order_id = id } },
            );
        },
        .write => return in(session_id, request_id, .{ .write = .{
            .version_tag = prng.nextU64(),
            .offset = prng.below(1 << 40) * stream.sector_size,
            .length = @intCast(prng.between(1, 256) * stream.sector_size),
            .attempt = @truncate(prng.nextU32()),
            .fragment_size = @intCast(prng.between(
                stream.fragment_size_min,
                stream.fragment_size_ethernet,
            )),
            .index = @intCast(prng.below(stream.writes.fragments_max)),
            .payload = content[0..size],
        } }),
        .control => return in(session_id, request_id, .{ .control = if (prng.chance(1, 2)) .{
            .version_tag = prng.nextU64(),
            .operation = .flush,
        } else .{
            .version_tag = prng.nextU64(),
            .operation = .discard,
            .offset = prng.below(1 << 40) * stream.sector_size,
            .length = @intCast(prng.between(1, 1 << 17) * stream.sector_size),
        } }),
        .write_ack => {
            @memset(content, 0x81);
            const missing = content[0..@intCast(prng.below(stream.writes.missing_size_max + 1))];
            return in(session_id, request_id, .{ .write_ack = .{
                .code = if (missing.len > 0) .missing else .done,
                .missing = missing,
            } });
        },
        else => unreachable,
    }
}

/// Never shorter than its longest sentence.
const sentence = "the initramfs was made for 6.1.0-39 and the kernel is 6.1.0-40..";

comptime {
    std.debug.assert(sentence.len == stream.ready_sentence_size_max);
}

fn makeReport(prng: *base.Prng, room: *PacketMemory) stream.Report {
    const has_times = prng.chance(1, 2);
    const phases: []const stream.ReadPhase =
        if (prng.chance(1, 3)) &.{.whole} else &.{ .initramfs, .system };
    // Steps are dropped if they leave no space for them.
    if (has_times) for (phases) |phase| for (std.enums.values(stream.ReadTimeKind)) |kind| {
        var histogram: base.DurationHistogram = .{};
        for (0..@intCast(prng.below(20))) |_|
            histogram.note(prng.nextU64() >> @intCast(prng.below(64)));
        room.times.append(phase, kind, &histogram);
    };
    const steps_most =
        if (has_times) (stream.steps_size_max - room.times.size) / 50 else stream.steps_max;
    for (0..@intCast(prng.below(steps_most + 1))) |_| room.steps.append(.{
        .group = @fromBackingInt(@as(u8, @intCast(prng.below(5)))),
        .name = sentence[0..@intCast(prng.between(1, 32))],
        .start_us = @bitCast(prng.nextU64()),
        .duration_us = prng.nextU64(),
    }) catch break;
    return .{
        .uptime_us = prng.nextU64(),
        .order_id = @splat(@intCast(prng.below(256))),
        .write_cache_used = prng.below(1 << 30),
        .write_cache_size = 1 << 30,
        .steps = room.steps.view(),
        .read_times = room.times.view(),
    };
}

fn in(session_id: u64, request_id: u32, body: stream.Body) stream.Packet {
    return .{ .session_id = session_id, .request_id = request_id, .body = body };
}
