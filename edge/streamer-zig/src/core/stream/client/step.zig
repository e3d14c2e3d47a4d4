//! Inputs and results of the stream client besides packets.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const RttEstimator = @import("../congestion/rtt.zig");
const stream_seal = @import("../seal.zig");
const assert = std.debug.assert;

pub const hello_timeout_us_first = 200 * std.time.us_per_ms;

pub const State = enum {
    /// Before `start`.
    idle,
    /// Sending HELLO, for the first time or again.
    greeting,
    established,
    /// Refused for good, or the edge's version changed during the boot.
    ended,
};

pub const Options = struct {
    reads_max: u16 = 64,
    /// Writes, flushes and discards together; at most 64.
    writes_max: u16 = 0,
    /// UDP payload that the device's network card takes, in bytes.
    packet_size_max: u16 = wire.packet_size_ethernet,
    /// Ciphers that the device accepts; null: all that this program has. Clear text is among them
    /// only if it was requested.
    ciphers: ?wire.Ciphers = null,
    /// The device's own limit; the edge's WELCOME may lower it.
    outstanding_bytes_max: u32 = 1 << 20,
    /// Bytes that a READ requests at most, a multiple of 4096; longer reads are cut into parts.
    request_bytes_max: u32 = wire.read_size_promised,
    /// The newest version that the device offers.
    version_max: wire.Version = .newest,
    /// Interval of PROBEs for the round trip, while a boot lasts; 0: there are none.
    rtt_probe_us: u64 = 0,
    /// Codecs of packed answers that the device takes, as HELLO names them: some of `codecs`.
    codecs: u8 = 0,
};

/// Codecs of packed answers that this program unpacks, as HELLO names them.
pub const codecs: u8 = 1 << (wire.codec_lz4 - 1);

pub const Identity = struct {
    boot_id: base.Uuid,
    token: [16]u8,
    /// Unguessable; the nonces and keys of all HELLOs of this boot derive from it.
    nonce_seed: [32]u8,
    /// The edge of the boot's first session.
    edge: base.Endpoint = .{ .ip = .zero, .port = 0 },
    /// A session that another process of this device opened for this boot and leaves behind: it is
    /// resumed.
    session: ?Session = null,
    /// In the device's TPM: the HELLO of the boot token is signed with it (event `sign`).
    device_key: ?wire.DeviceKey = null,
    /// For the boot's report; null: nobody knows.
    machine: ?wire.Machine = null,
    /// Its newest figures are the caller's to set; null: nothing of the network is reported.
    card: ?wire.NetworkCard = null,
};

/// The contents of WELCOME.
pub const Session = struct {
    /// The edge's session id in clear text only; otherwise the device has one session and needs
    /// none.
    id: u64,
    version: wire.Version = .v2,
    cipher: wire.Cipher,
    /// Of packed answers; 0: there are none.
    codec: u8 = 0,
    version_tag: u64,
    version_id: base.Uuid,
    /// Bytes.
    disk_size: u64,
    fragment_size: u16,
    outstanding_bytes_max: u32,
    resume_secret: [32]u8,
    /// With `device_ram` the edge accepts no writes.
    write_cache: wire.WriteCacheClass = .device_ram,
    write_cache_size: u64 = 0,
    write_cache_id: u64 = 0,
    /// Size of the boot profile's document in bytes; 0: there is none.
    profile_size: u32 = 0,
    /// The session's edge, where else the boot may continue, and when that was received.
    edge: base.Endpoint = .{ .ip = .zero, .port = 0 },
    failover: ?wire.ticket.Failover = null,
    welcomed_at_us: u64 = 0,
};

/// Protection of the session's packets.
pub const Protection = struct {
    /// In clear text: the id that every packet carries.
    id: u64 = 0,
    from_device: stream_seal.Key = .{},
    from_edge: stream_seal.Key = .{},
    counter_first: u64 = 0,
    counter_next: u64 = 0,
    /// Replay window: answers to everything in flight may overtake each other.
    taken: stream_seal.ReplayWindow(4096) = .{},
    /// Packets of the edge with a later number that have arrived.
    counted_from: u64 = 0,
    arrived: u64 = 0,

    /// NO_SESSION is believed for this many recent packets.
    const recent = 4096;
    /// Stands for the session where it has no id of the edge.
    pub const own_id = 1;

    pub fn ofKeys(keys: *const stream_seal.SessionKeys) Protection {
        return .{
            .id = own_id,
            .from_device = keys.from_device,
            .from_edge = keys.from_edge,
            .counter_first = keys.device_counter_first,
            .counter_next = keys.device_counter_first,
        };
    }

    pub fn overhead(protection: *const Protection) u16 {
        return protection.from_edge.overhead();
    }

    /// Packets are counted from the newest one on.
    pub fn beginCount(protection: *Protection) void {
        protection.counted_from = protection.taken.newest;
        protection.arrived = 0;
    }

    /// Packets that the edge has numbered since, up to the newest that arrived; 0 in clear text.
    pub fn expected(protection: *const Protection) u64 {
        if (protection.from_edge.cipher == .clear) return 0;
        return protection.taken.newest -| protection.counted_from;
    }

    fn note(protection: *Protection, counter: u64) void {
        protection.taken.note(counter);
        if (counter > protection.counted_from) protection.arrived += 1;
        assert(protection.arrived <= protection.expected());
    }

    /// Seals the packet of `size` bytes at the front of `out`.
    pub fn seal(
        protection: *Protection,
        out: *[wire.sealed_request_size_max]u8,
        size: usize,
    ) []const u8 {
        assert(size <= wire.request_size_max);
        assert(protection.counter_next >= protection.counter_first);
        defer protection.counter_next += 1;
        return stream_seal.seal(
            &protection.from_device,
            protection.counter_next,
            out,
            size,
            wire.header_size,
        );
    }

    /// Returns null if it is not of this session, or has arrived before.
    pub fn open(
        protection: *Protection,
        packet: []const u8,
        known_size: usize,
        out: *[wire.packet_size_max]u8,
    ) ?[]const u8 {
        if (protection.from_edge.cipher == .clear) return packet;
        const counter = stream_seal.counterOf(packet);
        if (!protection.taken.isNew(counter)) return null;
        const clear = stream_seal.open(&protection.from_edge, packet, known_size, out) orelse
            return null;
        protection.note(counter);
        std.mem.writeInt(u64, clear[8..16], protection.id, .big);
        return clear;
    }

    /// Like `open`, for a DATA packet whose payload goes to its final buffer of exactly its size.
    /// Returns false if it is refused; the buffer then holds nothing of value.
    pub fn openFragment(protection: *Protection, packet: []const u8, out: []u8) bool {
        assert(protection.from_edge.cipher != .clear);
        const counter = stream_seal.counterOf(packet);
        if (!protection.taken.isNew(counter)) return false;
        if (!stream_seal.openFragment(&protection.from_edge, packet, out)) return false;
        protection.note(counter);
        return true;
    }

    /// Tells whether a recent packet carried this id.
    pub fn hasSent(protection: *const Protection, id: u64) bool {
        if (protection.from_device.cipher == .clear) return id == protection.id;
        if (id < protection.counter_first or id >= protection.counter_next) return false;
        return protection.counter_next - id <= recent;
    }
};

pub const ReadyWords = struct {
    code: []const u8 = "",
    sentence: []const u8 = "",

    pub fn paddedCode(words: ReadyWords) [wire.ready_code_size_max]u8 {
        var padded: [wire.ready_code_size_max]u8 = @splat(0);
        const size = @min(words.code.len, padded.len);
        for (padded[0..size], words.code[0..size]) |*kept, byte|
            kept.* = if (std.ascii.isPrint(byte)) byte else '?';
        return padded;
    }
};

/// The outcome of the boot, until the edge has acknowledged it.
pub const Ready = struct {
    outcome: wire.ReadyOutcome,
    uptime_us: u64,
    code: [wire.ready_code_size_max]u8,
    sentence: base.UntrustedText,
    request_id: u32,
    due_at_us: u64,
    timeout_us: u64,
    acknowledged: bool = false,
    /// The caller knows that some edge has acknowledged it.
    is_known: bool = false,

    /// Returns READY when it is due.
    pub fn transmit(
        ready: *Ready,
        now_us: u64,
        session: *const Session,
        out: []u8,
    ) ?[]const u8 {
        assert(ready.timeout_us > 0);
        if (ready.acknowledged or now_us < ready.due_at_us) return null;
        ready.due_at_us = now_us + ready.timeout_us;
        ready.timeout_us = @min(ready.timeout_us * 2, RttEstimator.rto_us_max);
        return wire.emit(.{
            .version = session.version,
            .session_id = session.id,
            .request_id = ready.request_id,
            .body = .{
                .ready = .{
                    .outcome = ready.outcome,
                    .uptime_us = ready.uptime_us,
                    .code = ready.code,
                    .sentence = ready.sentence.slice(),
                },
            },
        }, out);
    }
};

/// Units whose blocks the system has used, in the order of its demands.
pub const UsedList = struct {
    bytes: [units_max * entry_size]u8 = undefined,
    /// Units before this one have been taken.
    first: u16 = 0,
    end: u16 = 0,

    const entry_size = wire.profile.entry_size;
    const units_max = wire.profile.used_units_max;
    /// USED is never acknowledged, so its packet is never larger than every path takes.
    const packet_units_max = (wire.packet_size_min - wire.header_size - wire.tag_size) / entry_size;

    /// A whole packet can be filled.
    pub fn isFull(list: *const UsedList) bool {
        return list.end - list.first >= packet_units_max;
    }

    /// Units that do not fit are dropped: they count as unused.
    pub fn add(list: *UsedList, unit: wire.profile.Unit) void {
        assert(list.first <= list.end);
        assert(list.end <= units_max);
        if (list.end == units_max) list.moveDown();
        if (list.end == units_max) return;
        unit.encode(list.bytes[@as(usize, list.end) * entry_size ..][0..entry_size]);
        list.end += 1;
    }

    /// Returns the units of one packet; valid until the next `add`.
    pub fn take(list: *UsedList) ?wire.profile.Units {
        assert(list.first <= list.end);
        const count = @min(list.end - list.first, packet_units_max);
        if (count == 0) return null;
        defer list.first += count;
        return .{
            .bytes = list.bytes[@as(usize, list.first) * entry_size ..][0 .. @as(usize, count) *
                entry_size],
        };
    }

    fn moveDown(list: *UsedList) void {
        assert(list.first <= list.end);
        const left =
            list.bytes[@as(usize, list.first) * entry_size .. @as(usize, list.end) * entry_size];
        @memmove(list.bytes[0..left.len], left);
        list.end -= list.first;
        list.first = 0;
        assert(list.end <= units_max);
    }
};

pub const WriteCache = struct {
    /// Bytes; more than `size` counts as `size`.
    used: u64,
    /// Bytes, not 0.
    size: u64,
};

/// The device's report.
pub const Report = struct {
    /// Microseconds since the kernel's start, now (CLOCK_BOOTTIME); the client adds the time until
    /// each retransmission.
    uptime_us: u64,
    write_cache: ?WriteCache = null,
    /// All known steps in order of start, or none if nothing changed (`StepList.view`); they are
    /// copied.
    steps: wire.Steps = .{},
};

/// An order for this device.
pub const Order = struct {
    kind: Kind,
    id: base.Uuid,

    pub const Kind = enum { power_off, restart };
};

pub const RefusedElsewhere = struct { edge: base.Endpoint, code: wire.RefuseCode };

pub const Event = union(enum) {
    /// The session is open; `resumed` if it is not the boot's first, `moved` if it is at another
    /// edge than the previous one.
    established: struct { resumed: bool, moved: bool = false },
    /// Another edge refuses this boot; the remaining ones are tried.
    refused_elsewhere: RefusedElsewhere,
    /// The edge will not serve this boot.
    refused: wire.RefuseCode,
    /// A resumption offered another version or size: a boot never mixes two.
    version_changed,
    /// A resumption found another write cache than the one that was written, or none: nothing on
    /// this disk can be trusted any more.
    cache_lost,
    /// The write, flush or discard with this tag has ended; every code but `done` is a failure.
    write_ended: struct { tag: u64, code: wire.WriteCode },
    /// The buffer of the read with this tag is complete.
    read_done: struct { tag: u64, buffer: []u8 },
    read_failed: struct { tag: u64, code: wire.ReadErrorCode },
    ready_acknowledged,
    /// The edge has the part of the account that was sent last.
    account_acknowledged,
    /// Sent once per order; the client confirms it to the edge at once. The caller that executes it
    /// waits for the next `report_acknowledged`, for one or two seconds at most: then the edge
    /// knows and will not repeat the order.
    order: Order,
    /// The edge knows the newest report and the latest order.
    report_acknowledged,
    /// The device's key is to sign this digest: `sign` takes the signature. Until then the HELLO
    /// waits.
    sign: [32]u8,
};

pub const Greeting = struct {
    kind: wire.HelloKind = .token,
    nonce: [16]u8 = @splat(0),
    nonce_serial: u64 = 0,
    /// Set where keys are agreed on.
    pair: stream_seal.KeyPair = undefined,
    hello: wire.Hello = undefined,
    cookie: [32]u8 = @splat(0),
    /// When HELLO is sent next.
    due_at_us: u64 = 0,
    timeout_us: u64 = hello_timeout_us_first,
    sent_at_us: u64 = 0,
    /// HELLOs sent with this cookie.
    sent_count: u32 = 0,
    /// The edge's version is known, and `hello` has it.
    is_settled: bool = false,
    /// The same HELLO is due in version 2, too.
    is_older_due: bool = false,
    is_signing: bool = false,
};

/// Pending events other than those of reads.
pub const PendingEvents = struct {
    established: ?struct { resumed: bool, moved: bool } = null,
    refused_elsewhere: ?RefusedElsewhere = null,
    refused: ?wire.RefuseCode = null,
    version_changed: bool = false,
    cache_lost: bool = false,
    ready_acknowledged: bool = false,
    account_acknowledged: bool = false,
    order: ?Order = null,
    report_acknowledged: bool = false,
    sign: ?[32]u8 = null,

    /// Returns events of the session first.
    pub fn ofSession(pending_events: *PendingEvents) ?Event {
        if (pending_events.refused_elsewhere) |refusal| {
            pending_events.refused_elsewhere = null;
            return .{ .refused_elsewhere = refusal };
        }
        if (pending_events.sign) |digest| {
            pending_events.sign = null;
            return .{ .sign = digest };
        }
        if (pending_events.established) |opened| {
            pending_events.established = null;
            return .{ .established = .{ .resumed = opened.resumed, .moved = opened.moved } };
        }
        if (pending_events.refused) |code| {
            pending_events.refused = null;
            return .{ .refused = code };
        }
        if (pending_events.version_changed) {
            pending_events.version_changed = false;
            return .version_changed;
        }
        if (pending_events.cache_lost) {
            pending_events.cache_lost = false;
            return .cache_lost;
        }
        return null;
    }

    pub fn ofBoot(pending_events: *PendingEvents) ?Event {
        if (pending_events.ready_acknowledged) {
            pending_events.ready_acknowledged = false;
            return .ready_acknowledged;
        }
        if (pending_events.account_acknowledged) {
            pending_events.account_acknowledged = false;
            return .account_acknowledged;
        }
        if (pending_events.order) |order| {
            pending_events.order = null;
            return .{ .order = order };
        }
        if (pending_events.report_acknowledged) {
            pending_events.report_acknowledged = false;
            return .report_acknowledged;
        }
        return null;
    }
};

pub const Statistics = struct {
    reads: u64 = 0,
    /// READs sent for the first time, each of which the edge counts: more than reads where those
    /// were split.
    requests: u64 = 0,
    /// Of these, READs that continued under another id before anything of their answer arrived: the
    /// edge may have counted the earlier one or not.
    renamed_requests: u64 = 0,
    read_bytes: u64 = 0,
    packets_in: u64 = 0,
    bytes_in: u64 = 0,
    packets_out: u64 = 0,
    bytes_out: u64 = 0,
    /// Retransmitted READs and the fragments they named.
    retransmits: u64 = 0,
    missing_fragments: u64 = 0,
    /// Reads without progress for their timeout, so that everything missing was retransmitted.
    timeouts: u64 = 0,
    /// Fragments that had arrived before, or belonged to no read any more.
    unexpected_fragments: u64 = 0,
    /// Bytes that arrived packed, and what they were packed into.
    unpacked_bytes: u64 = 0,
    packed_bytes: u64 = 0,
    /// Reads that were requested again because two answers to them did not fit each other, or
    /// because an answer did not unpack.
    contradictions: u64 = 0,
    unpackable: u64 = 0,
    store_errors: u64 = 0,
    /// How often it left an edge that could not read its store.
    departures: u64 = 0,
    resumptions: u64 = 0,
    /// How often the boot failed over to another edge.
    failovers: u64 = 0,
    /// Packets that were malformed or not from this session.
    ignored: u64 = 0,
};

const testing = std.testing;

test "USED fits every path and keeps the order, and units beyond the list's capacity are dropped" {
    comptime assert(wire.header_size + UsedList.packet_units_max *
        wire.profile.entry_size + wire.tag_size <= wire.packet_size_min);
    var list: UsedList = .{};
    try testing.expectEqual(null, list.take());
    for (0..200) |index| list.add(.{ .index = @intCast(index), .blocks = 1 });
    try testing.expect(list.isFull());
    try testing.expectEqual(UsedList.packet_units_max, list.take().?.count());
    // There is capacity again.
    for (500..520) |index| list.add(.{ .index = @intCast(index), .blocks = 1 });
    var expected: u64 = UsedList.packet_units_max;
    while (list.take()) |units| for (0..units.count()) |at| {
        if (expected == wire.profile.used_units_max) expected = 500;
        try testing.expectEqual(expected, units.at(@intCast(at)).index);
        expected += 1;
    };
    try testing.expectEqual(520, expected);
    try testing.expect(!list.isFull());
}

test "USED holds as many units as one request, in order, taken or not, and fits 64 in a packet" {
    const capacity = wire.profile.used_units_max;
    for ([_]u16{ 0, 1, 63, 64, 65, 150, capacity - 1, capacity, capacity + 1 }) |first| {
        var list: UsedList = .{};
        var expected: std.ArrayList(u40) = .empty;
        defer expected.deinit(testing.allocator);
        for (0..first) |index| {
            try testing.expectEqual(index >= 64, list.isFull());
            list.add(.{ .index = @intCast(index), .blocks = 1 });
            if (index < capacity) try expected.append(testing.allocator, @intCast(index));
        }
        var taken: usize = 0;
        // Takes one packet, adds as many as fit again, and takes the rest.
        if (list.take()) |units| {
            try testing.expectEqual(@min(first, 64), units.count());
            for (0..units.count()) |at|
                try testing.expectEqual(expected.items[at], units.at(@intCast(at)).index);
            taken = units.count();
        }
        const free = capacity - (expected.items.len - taken);
        for (0..free + 1) |index| {
            list.add(.{ .index = @intCast(1000 + index), .blocks = 2 });
            if (index < free) try expected.append(testing.allocator, @intCast(1000 + index));
        }
        while (list.take()) |units| {
            try testing.expectEqual(@min(expected.items.len - taken, 64), units.count());
            for (0..units.count()) |at|
                try testing.expectEqual(expected.items[taken + at], units.at(@intCast(at)).index);
            taken += units.count();
        }
        try testing.expectEqual(expected.items.len, taken);
    }
}

test "a READY code is cut to its field, and what is not printable is replaced" {
    const words: ReadyWords = .{ .code = "a\tb" };
    const expected = "a?b".* ++ @as([wire.ready_code_size_max - 3]u8, @splat(0));
    try testing.expectEqual(expected, words.paddedCode());
    const long: ReadyWords = .{ .code = &@as([wire.ready_code_size_max + 1]u8, @splat('x')) };
    try testing.expectEqual(
        @as([wire.ready_code_size_max]u8, @splat('x')),
        long.paddedCode(),
    );
}

test "a READY code has the bytes that a terminal prints, and of any others a question mark" {
    for (0..256) |byte| {
        const words: ReadyWords = .{ .code = &.{@intCast(byte)} };
        const kept: u8 = if (byte >= 0x20 and byte < 0x7f) @intCast(byte) else '?';
        try testing.expectEqual(kept, words.paddedCode()[0]);
    }
}

test "NO_SESSION is believed for the 4096 newest packets of a device, in clear text by its id" {
    var protection: Protection = .{ .counter_first = 100, .counter_next = 100 };
    protection.from_device.cipher = .aegis_128l;
    try testing.expect(!protection.hasSent(99));
    try testing.expect(!protection.hasSent(100));
    protection.counter_next = 101;
    try testing.expect(protection.hasSent(100));
    try testing.expect(!protection.hasSent(99));
    try testing.expect(!protection.hasSent(101));
    protection.counter_next = 100 + 4096;
    try testing.expect(protection.hasSent(100));
    protection.counter_next += 1;
    try testing.expect(!protection.hasSent(100));
    try testing.expect(protection.hasSent(101));
    try testing.expect(protection.hasSent(100 + 4096));
    const clear: Protection = .{ .id = 7 };
    try testing.expect(clear.hasSent(7));
    try testing.expect(!clear.hasSent(0));
}

test "each packet is sealed under the next counter, and opened once" {
    const keys: stream_seal.SessionKeys = .{
        .from_device = .{ .cipher = .chacha20_poly1305, .bytes = @splat(1) },
        .from_edge = .{ .cipher = .chacha20_poly1305, .bytes = @splat(2) },
        .device_counter_first = 500,
    };
    var protection: Protection = .ofKeys(&keys);
    try testing.expectEqual(wire.tag_size, protection.overhead());
    try testing.expectEqual(Protection.own_id, protection.id);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    for (500..504) |counter| {
        const probe: wire.Packet = .{ .session_id = 1, .body = .{ .probe = .{ .size = 600 } } };
        const size = wire.emit(probe, &out).len;
        const sealed = protection.seal(&out, size);
        try testing.expectEqual(size + wire.tag_size, sealed.len);
        try testing.expectEqual(counter, stream_seal.counterOf(sealed));
        var clear: [wire.packet_size_max]u8 = undefined;
        const opened = stream_seal.open(&keys.from_device, sealed, wire.header_size, &clear).?;
        try testing.expectEqual(600, std.mem.readInt(u16, opened[wire.header_size..][0..2], .big));
    }
    // The edge's packets: a forged one takes no counter away.
    var packet: [wire.packet_size_max]u8 = undefined;
    const ack: wire.Packet = .{ .session_id = 1, .request_id = 3, .body = .ready_ack };
    const size = wire.emit(ack, &packet).len;
    const sealed = stream_seal.seal(&keys.from_edge, 9, &packet, size, wire.header_size);
    var clear: [wire.packet_size_max]u8 = undefined;
    packet[size] ^= 1;
    try testing.expectEqual(null, protection.open(sealed, wire.header_size, &clear));
    packet[size] ^= 1;
    const opened = protection.open(sealed, wire.header_size, &clear).?;
    const parsed = try wire.parse(opened);
    try testing.expectEqual(Protection.own_id, parsed.session_id);
    try testing.expectEqual(3, parsed.request_id);
    try testing.expectEqual(null, protection.open(sealed, wire.header_size, &clear));
    // The same for fragments, whose payload goes to its place.
    const header = wire.dataHeader(.v2, 1, 3, 0);
    var data: [wire.packet_size_max]u8 = undefined;
    data[0..wire.header_size].* = header;
    @memset(data[wire.header_size..][0..512], 0x5a);
    const size_data = wire.header_size + 512;
    const fragment = stream_seal.seal(&keys.from_edge, 10, &data, size_data, wire.header_size);
    var place: [512]u8 = undefined;
    data[size_data] ^= 1;
    try testing.expect(!protection.openFragment(fragment, &place));
    data[size_data] ^= 1;
    try testing.expect(protection.openFragment(fragment, &place));
    try testing.expect(std.mem.allEqual(u8, &place, 0x5a));
    try testing.expect(!protection.openFragment(fragment, &place));
    // In clear text a packet stays as it is, however often it arrives.
    var plain: Protection = .{ .id = 4 };
    try testing.expectEqual(0, plain.overhead());
    for (0..2) |_|
        try testing.expectEqual(sealed, plain.open(sealed, wire.header_size, &clear).?);
}

test "events that are pending together are told in this order, each once" {
    const Tag = std.meta.Tag(Event);
    var pending: PendingEvents = .{
        .established = .{ .resumed = true, .moved = true },
        .refused_elsewhere = .{ .edge = .{ .ip = .zero, .port = 1 }, .code = .busy },
        .refused = .no_cipher,
        .version_changed = true,
        .cache_lost = true,
        .ready_acknowledged = true,
        .order = .{ .kind = .restart, .id = .zero },
        .report_acknowledged = true,
    };
    const of_session =
        [_]Tag{ .refused_elsewhere, .established, .refused, .version_changed, .cache_lost };
    for (of_session) |tag| {
        const event = pending.ofSession().?;
        try testing.expectEqual(tag, std.meta.activeTag(event));
        switch (event) {
            .established => |opened| try testing.expect(opened.resumed and opened.moved),
            .refused_elsewhere => |refusal| try testing.expectEqual(1, refusal.edge.port),
            .refused => |code| try testing.expectEqual(.no_cipher, code),
            else => {},
        }
    }
    try testing.expectEqual(null, pending.ofSession());
    for ([_]Tag{ .ready_acknowledged, .order, .report_acknowledged }) |tag|
        try testing.expectEqual(tag, std.meta.activeTag(pending.ofBoot().?));
    try testing.expectEqual(null, pending.ofBoot());
    try testing.expectEqual(PendingEvents{}, pending);
}
