//! Fuzzes the edge's side of the stream, against a model of which HELLO used which boot token.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const core = @import("core");
const stream_seal = core.stream.seal;
const StreamServer = core.stream.Server;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const Endpoint = base.Endpoint;

const sessions_max = 3;
const device_count = 5;
const packets_per_case = 48;
const disk_size = 300 * 1024;
const profile_size = 8 * 1024;
const welcome_size_max = stream.welcome_size_unpadded_max + stream.tag_size;
const second = std.time.us_per_s;

/// One device, its boot, and what the server has told it.
const Device = struct {
    from: Endpoint,
    version: stream.Version,
    boot_id: base.Uuid,
    token: [16]u8,
    cookie: [32]u8 = @splat(0),
    session_id: u64 = 1,
    version_tag: u64 = 0,
    /// The HELLO that opened a session with the token.
    token_nonce: ?[16]u8 = null,
};

const Model = struct {
    devices: [device_count]Device,

    fn init(prng: *base.Prng) Model {
        var model: Model = .{ .devices = undefined };
        for (&model.devices, 0..) |*device, index| {
            device.* = .{
                .from = .{ .ip = .init(10, 0, 0, 1), .port = @intCast(1000 + index) },
                .version = prng.pick(stream.Version, &.{ .v2, .v3 }),
                .boot_id = .fromBytes(@splat(@intCast(index + 1))),
                .token = undefined,
            };
            prng.fill(&device.token);
        }
        return model;
    }

    /// The edge's record of a claim's boot: some boots do not exist.
    fn grantOf(model: *const Model, boot_id: base.Uuid) StreamServer.Grant {
        for (&model.devices) |*device| if (device.boot_id.eql(boot_id)) return .{ .boot = .{
            .token = device.token,
            .token_nonce = device.token_nonce,
            .version_id = boot_id,
            .disk_size = disk_size,
            .profile_size = profile_size,
            .write_cache = cacheOf(device),
            .failover = failoverOf(device),
        } };
        return .unknown;
    }
};

/// Some devices write to the edge, and some do not.
fn cacheOf(device: *const Device) StreamServer.WriteCache {
    if (device.from.port % 2 == 0) return .{};
    return .{ .class = .edge_persistent, .size = 1 << 30, .id = device.from.port };
}

/// Some devices have another edge for a fail-over.
fn failoverOf(device: *const Device) ?stream.ticket.Failover {
    if (device.from.port % 3 == 0) return null;
    var failover: stream.ticket.Failover =
        .{ .lifetime_s = 100, .edges = .empty, .ticket = @splat(5) };
    const count: u8 = if (device.from.port % 2 == 0) 1 else stream.ticket.edges_max;
    for (0..count) |index| failover.edges.appendAssumeCapacity(
        .{ .ip = .init(10, 0, 0, @intCast(index + 2)), .port = 6910 },
    );
    return failover;
}

pub fn server(case: *Case) Violation!bool {
    const prng = &case.prng;
    var machine = StreamServer.init(case.gpa, .{
        .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
        .sessions_max = sessions_max,
        .session_idle_us = 20 * second,
        .write_slots = 2,
        .hellos_max = 64,
        // Answers in clear text can be inspected; sealed ones are counted as accepted.
        .ciphers = .{ .clear = true, .chacha20_poly1305 = true },
        .packet_size_max = stream.packet_size_max,
        .codecs = 1,
    }) catch return fuzz_case.violated("a server of this size can be made");
    defer machine.deinit(case.gpa);
    var model: Model = .init(prng);
    var now_us: u64 = 100 * second;
    var has_read = false;
    for (0..packets_per_case) |_| {
        now_us += prng.below(if (prng.chance(1, 16)) 60 * second else second);
        const device = &model.devices[@intCast(prng.below(device_count))];
        var list: stream.RangeList = .{};
        var buffer: [2048]u8 = undefined;
        var packet = makePacket(case, device, &list);
        const other = &model.devices[@intCast(prng.below(device_count))];
        if (packet.session_id != 0 and prng.chance(1, 8)) {
            packet.session_id = other.session_id;
            switch (packet.body) {
                .read => |*read| read.version_tag = other.version_tag,
                .write => |*write| write.version_tag = other.version_tag,
                .control => |*control| control.version_tag = other.version_tag,
                else => {},
            }
        }
        if (prng.chance(1, 16)) {
            var reply: StreamServer.ReplyBuffer = undefined;
            if (machine.askPresence(device.boot_id, &reply)) |outgoing| try expect(
                outgoing.packet.len <= stream.header_size + stream.tag_size,
                "the question whether a device is there is short",
            );
        }
        const bytes = stream.emit(packet, &buffer);
        const datagram = if (prng.chance(1, 8)) case.mutate(&buffer, bytes.len) else bytes;
        has_read = try exchange(&machine, &model, device, now_us, datagram) or has_read;
        if (prng.chance(1, 8)) machine.expire(now_us);
        try expect(machine.session_count <= sessions_max, "the table of sessions is bounded");
    }
    return has_read;
}

fn makePacket(case: *Case, device: *const Device, list: *stream.RangeList) stream.Packet {
    const prng = &case.prng;
    const request_id = prng.nextU32();
    if (device.version == .v3 and prng.chance(1, 8)) return makeNewer(case, device, request_id);
    var packet = makeOlder(case, device, list, request_id);
    packet.version = device.version;
    return packet;
}

/// Packets that version 2 does not have. Nobody here knows a resume secret.
fn makeNewer(case: *Case, device: *const Device, request_id: u32) stream.Packet {
    if (case.prng.chance(1, 4)) return inSession(device, request_id, .keepalive_ack);
    if (case.prng.chance(1, 4)) return inSession(device, request_id, .{ .network = .{
        .is_settled = true,
        .expected = case.prng.nextU32(),
    } });
    if (case.prng.chance(1, 3)) return inSession(device, request_id, .{ .machine = .{
        .cpu_count = 4,
        .memory_mib = 8192,
        .driver = stream.Machine.paddedDriver("e1000e"),
        .model = stream.Machine.paddedModel("Maker Desk 7"),
    } });
    if (case.prng.chance(1, 3)) return inSession(device, request_id, .{ .fetch_times = .{
        .reads = .{ .bytes = "\x00\x00\x00\x07\x00\x00\x01\x00" },
    } });
    return .{ .version = .v3, .body = .{ .lost = .{
        .boot_id = device.boot_id.bytes,
        .nonce = @splat(case.byte()),
        .reason = .cache_lost,
        .proof = @splat(case.byte()),
    } } };
}

fn makeOlder(
    case: *Case,
    device: *const Device,
    list: *stream.RangeList,
    request_id: u32,
) stream.Packet {
    const prng = &case.prng;
    switch (prng.below(8)) {
        0, 1 => return .{ .body = .{ .hello = makeHello(case, device) } },
        2 => {
            if (prng.chance(1, 2)) makeRanges(prng, list);
            const read: stream.Read = .{
                .version_tag = device.version_tag,
                .kind = @fromBackingInt(@as(u4, @intCast(prng.below(3)))),
                .fragment_size = @intCast(prng.between(
                    stream.fragment_size_min,
                    stream.fragment_size_ethernet + 9,
                )),
                .offset = prng.below(disk_size / 512 + 8) * 512 %
                    (if (prng.chance(1, 4)) @as(u64, profile_size) else disk_size + 4096),
                .length = @intCast(prng.between(1, 200) * 512),
                .attempt = @intCast(prng.below(2)),
                .ranges = list.view(),
            };
            return inSession(device, request_id, .{ .read = read });
        },
        3 => return inSession(device, request_id, .{
            .report = .{ .uptime_us = prng.nextU64(), .write_cache_size = prng.nextU64() },
        }),
        4, 5 => {
            // Few ids and places, so that requests collide.
            const sizes = [_]u32{ 512, 4096, 8192, 200 * 512 };
            const length = prng.pick(u32, &sizes);
            const count = stream.writes.fragmentCount(length, stream.fragment_size_ethernet);
            const index: u16 = @intCast(prng.below(count));
            const size = stream.writes.fragmentLength(length, stream.fragment_size_ethernet, index);
            return inSession(device, request_id % 80, .{ .write = .{
                .version_tag = device.version_tag,
                .offset = prng.below(4) * 4096,
                .length = length,
                .fragment_size = stream.fragment_size_ethernet,
                .index = index,
                .payload = payload_of_writes[0..size],
            } });
        },
        6 => return inSession(device, request_id % 80, .{ .control = .{
            .version_tag = device.version_tag,
            .operation = .discard,
            .offset = prng.below(disk_size / 512 + 8) * 512,
            .length = 4096,
        } }),
        else => return inSession(device, request_id, .{
            .ready = .{ .outcome = .ready, .uptime_us = prng.nextU64() },
        }),
    }
}

fn inSession(device: *const Device, request_id: u32, body: stream.Body) stream.Packet {
    return .{
        .version = device.version,
        .session_id = device.session_id,
        .request_id = request_id,
        .body = body,
    };
}

fn makeHello(case: *Case, device: *const Device) stream.Hello {
    const prng = &case.prng;
    var hello: stream.Hello = .{
        .version = device.version,
        .client_nonce = @splat(@intCast(prng.below(2))),
        .cookie = device.cookie,
        .kind = prng.pick(stream.HelloKind, &.{
            .token, .token, .token, .token, .resumption, .ticket,
        }),
        .ciphers = .{ .clear = prng.chance(3, 4), .chacha20_poly1305 = true },
        .boot_id = device.boot_id.bytes,
        .client_public = @splat(@intCast(prng.below(3))),
        .proof = @splat(case.byte()),
        .packet_size_max = @intCast(prng.between(stream.packet_size_min, stream.packet_size_max)),
    };
    if (hello.version == .v3) hello.codecs = case.byte();
    if (hello.kind == .ticket)
        hello.shown = .{ .age_us = prng.nextU64(), .ticket = @splat(case.byte()) };
    if (prng.chance(3, 4)) hello.proof = stream_seal.helloProof(&device.token, &hello);
    return hello;
}

const payload_of_writes: [stream.fragment_size_ethernet]u8 = @splat(0x3c);

fn makeRanges(prng: *base.Prng, list: *stream.RangeList) void {
    var next: u64 = 0;
    for (0..@intCast(prng.between(1, 4))) |_| {
        const first = next + prng.below(10);
        const count = prng.between(1, 10);
        next = first + count + 1;
        list.append(.{ .first_fragment = @intCast(first), .fragment_count = @intCast(count) }) catch
            unreachable;
    }
}

fn checkNetwork(device: *const Device, said: *const StreamServer.DeviceNetwork) Violation!void {
    try expect(device.version == .v3, "a NETWORK is of version 3");
    try expect(said.passed.arrived <= said.passed.sent, "no more arrives than was sent");
}

/// Returns true if the datagram was a READ that is answered with bytes.
fn exchange(
    machine: *StreamServer,
    model: *Model,
    device: *Device,
    now_us: u64,
    datagram: []const u8,
) Violation!bool {
    var reply: StreamServer.ReplyBuffer = undefined;
    switch (machine.receive(now_us, device.from, datagram, &reply)) {
        .ignored => return false,
        .reply => |bytes| {
            const is_of_write = datagram.len > 1 and datagram[1] == @backingInt(stream.Type.write);
            if (!is_of_write)
                try expect(bytes.len <= datagram.len, "an answer is not longer than its request");
            const packet = stream.parse(bytes) catch
                return fuzz_case.violated("an answer can be parsed");
            if (packet.body == .cookie) device.cookie = packet.body.cookie.cookie;
        },
        .admit => |claim| {
            const grant = model.grantOf(claim.boot_id);
            const admission = machine.admit(now_us, claim, grant, &reply);
            var large: StreamServer.LargeBuffer = undefined;
            if (machine.showSize(&admission, &large)) |bytes| try expect(
                bytes.len <= claim.hello.packet_size_max,
                "a large WELCOME is as large as the device takes",
            );
            try checkAdmission(model, device, &claim, &admission, datagram.len);
        },
        .read => |read| {
            try checkRead(device, &read);
            return true;
        },
        .taken => {},
        .probe => |probe| {
            var large: StreamServer.LargeBuffer = undefined;
            const bytes = machine.answerProbe(probe, &large) orelse
                return fuzz_case.violated("who asks for a packet's size has a session");
            try expect(bytes.len == probe.size, "the packet is as large as was asked for");
        },
        .used => |used| try expect(used.units.count() > 0, "a USED has a unit"),
        .machine => try expect(device.version == .v3, "a MACHINE is of version 3"),
        .network => |*said| try checkNetwork(device, said),
        .fetched => |fetched| {
            try expect(fetched.reads.count() > 0, "a FETCH_TIMES has a read");
            try expect(device.version == .v3, "a FETCH_TIMES is of version 3");
        },
        .write => |write| {
            try expect(write.offset + write.bytes.len <= disk_size, "a write lies within the disk");
            try expect(cacheOf(device).class != .device_ram, "only who has a write cache writes");
            try finish(machine, device, write.ref);
        },
        .control => |control| {
            try expect(
                control.offset + control.length <= disk_size,
                "a discard lies within the disk",
            );
            try finish(machine, device, control.ref);
        },
        .ready => |ready| try expect(ready.reply.len <= datagram.len, "READY_ACK is short"),
        .account => |account| try expect(account.reply.len < datagram.len, "ACCOUNT_ACK is short"),
        .report => |*report| try checkReport(machine, report, datagram.len),
        .present => |boot_id| try expect(
            machine.sessionOf(boot_id) != null,
            "who is present has a session",
        ),
        .lost => return fuzz_case.violated("nobody here knows a resume secret"),
    }
    return false;
}

fn checkReport(
    machine: *StreamServer,
    report: *const StreamServer.DeviceReport,
    size: usize,
) Violation!void {
    var reply: StreamServer.ReplyBuffer = undefined;
    const ack: stream.ReportAck = .{ .order = .restart, .order_id = @splat(7) };
    const bytes = machine.acknowledgeReport(report, ack, &reply) orelse
        return fuzz_case.violated("who reports has a session");
    try expect(bytes.len <= size, "REPORT_ACK is shorter than any REPORT");
}

fn finish(
    machine: *StreamServer,
    device: *const Device,
    ref: StreamServer.WriteRef,
) Violation!void {
    var reply: StreamServer.ReplyBuffer = undefined;
    const outgoing = machine.finishWrite(ref, .done, &reply) orelse
        return fuzz_case.violated("who has just written has a session");
    try expect(outgoing.to.eql(device.from), "the end of a write is told to who wrote");
    const packet = stream.parse(outgoing.packet) catch
        return fuzz_case.violated("WRITE_ACK can be parsed");
    try expect(packet.body.write_ack.code == .done, "the end is the one that was given");
}

fn checkAdmission(
    model: *Model,
    device: *Device,
    claim: *const StreamServer.Claim,
    admission: *const StreamServer.Admission,
    request_size: usize,
) Violation!void {
    if (admission.reply) |bytes| {
        // Its address has shown a cookie: a WELCOME with a ticket for another edge may be longer
        // than HELLO.
        const size_max = if (ownerOf(model, claim.boot_id)) |owner|
            if (failoverOf(owner) != null)
                @max(request_size, welcome_size_max)
            else
                request_size
        else
            request_size;
        try expect(
            bytes.len <= size_max,
            "WELCOME is not longer than HELLO, or than one with a ticket",
        );
        const is_welcome = bytes[1] == @backingInt(stream.Type.welcome);
        const is_sealed = is_welcome and
            stream.welcomeKnown(bytes[0..stream.welcome_size]).?.cipher != .clear;
        if (!is_sealed) {
            const packet = stream.parse(bytes) catch
                return fuzz_case.violated("an admission can be parsed");
            if (packet.body == .welcome) {
                device.session_id = packet.session_id;
                device.version_tag = packet.body.welcome.version_tag;
            }
        }
    }
    switch (admission.outcome) {
        .opened => {
            const owner = ownerOf(model, claim.boot_id) orelse
                return fuzz_case.violated("only a known boot opens a session");
            try expect(claim.hello.kind == .token, "a session is opened by a token");
            const is_token = std.mem.eql(
                u8,
                &claim.hello.proof,
                &stream_seal.helloProof(&owner.token, &claim.hello),
            );
            try expect(is_token, "only the right token opens a session");
            const nonce = owner.token_nonce orelse claim.hello.client_nonce;
            const is_same = std.mem.eql(u8, &nonce, &claim.hello.client_nonce);
            try expect(is_same, "a token is bought by one hello");
            owner.token_nonce = claim.hello.client_nonce;
        },
        // Nobody here knows a resume secret, and this edge has accepted no ticket.
        .resumed => try expect(claim.hello.kind == .token, "nobody resumes without the secret"),
        .repeated, .token_refused, .version_missing, .no_cache, .no_cipher, .busy, .stale => {},
        .identity_refused, .waits => {},
    }
}

fn ownerOf(model: *Model, boot_id: base.Uuid) ?*Device {
    for (&model.devices) |*device| if (device.boot_id.eql(boot_id)) return device;
    return null;
}

fn checkRead(device: *const Device, read: *const StreamServer.ReadRequest) Violation!void {
    try expect(read.to.eql(device.from), "bytes go to the address that asked");
    const is_own = read.session_id == device.session_id;
    try expect(is_own, "a session is served to its own address only");
    const size: u64 = if (read.kind == .profile) profile_size else disk_size;
    try expect(read.offset + read.length <= size, "a read lies within the disk or the profile");
    var bytes: u64 = 0;
    var packets: u64 = 0;
    var fragments = read.fragments();
    while (fragments.next()) |fragment| {
        try expect(fragment.length > 0, "a fragment is not empty");
        try expect(fragment.length <= read.fragment_size, "a fragment fits its packet");
        try expect(fragment.offset >= read.offset, "a fragment begins within its read");
        const end = fragment.offset + fragment.length;
        try expect(end <= read.offset + read.length, "a fragment ends within its read");
        bytes += fragment.length;
        packets += 1;
    }
    try expect(bytes == read.bytes_out, "the bytes announced are the bytes sent");
    try expect(packets == read.packets_out, "the packets announced are the packets sent");
    if (read.may_pack) try checkPacked(read);
}

/// Answers it by half as many packets, then plainly again.
fn checkPacked(read: *const StreamServer.ReadRequest) Violation!void {
    try expect(read.version == .v3 and read.kind != .profile, "answers of version 3 are packed");
    const plain_count = stream.fragmentCount(read.length, read.fragment_size);
    if (plain_count < 2) return;
    var answered = read.*;
    const whole = (plain_count / 2) * @as(u32, read.fragment_size) - 7;
    const has_some = answered.answerBy(whole);
    var bytes: u64 = 0;
    var packets: u64 = 0;
    var fragments = answered.fragments();
    while (fragments.next()) |fragment| {
        const end = fragment.at + fragment.length;
        try expect(end <= answered.answerBytes(), "a fragment ends within its answer");
        bytes += fragment.length;
        packets += 1;
    }
    try expect(bytes == answered.bytes_out, "the bytes of an answer are the bytes sent");
    try expect(packets == answered.packets_out, "the packets of an answer are the packets sent");
    try expect(has_some == (answered.packed_bytes > 0), "an answer without fragments is plain");
    try expect(answered.answerBy(0), "every READ has a plain answer");
    try expect(answered.bytes_out == read.bytes_out, "a plain answer is the one before");
    try expect(answered.packets_out == read.packets_out, "a plain answer is the one before");
}
