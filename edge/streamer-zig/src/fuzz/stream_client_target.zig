//! Fuzzes the device's side of the stream, in clear text, where nothing filters damaged packets: an
//! edge that sends anything, in any order.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const core = @import("core");
const stream_target = @import("stream_target.zig");
const fuzz_case = @import("case.zig");
const packed_answers = core.stream.packed_answers;
const StreamClient = core.stream.Client;
const StreamServer = core.stream.Server;
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const steps_per_case = 48;
const reads_max = 4;
const writes_max = 4;
const read_size_max = 48 << 10;
const disk_size = 1 << 20;
const boot_id: base.Uuid = .fromBytes(@splat(1));
const token: [16]u8 = @splat(2);
const home: base.Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 6910 };
const device: base.Endpoint = .{ .ip = .init(10, 0, 0, 9), .port = 4000 };
/// No point of the curve: its signature never verifies.
const device_key: stream.DeviceKey = .{4} ++ @as([64]u8, @splat(1));
const clear_text: stream.Ciphers = .{ .clear = true };

const LossyLink = struct {
    case: *Case,
    client: StreamClient,
    server: StreamServer,
    now_us: u64 = std.time.us_per_s,
    tags: u64 = 0,
    has_read: bool = false,
    buffers: [reads_max][read_size_max]u8 = undefined,
    /// Owner of each buffer; 0: free.
    readers: [reads_max]u64 = @splat(0),

    /// Passes packets to the edge and its answers back; each answer may be lost, doubled or
    /// damaged.
    fn talk(link: *LossyLink) Violation!void {
        var out: [stream.sealed_request_size_max]u8 = undefined;
        var sent: u32 = 0;
        while (link.client.transmit(link.now_us, &out)) |packet| {
            sent += 1;
            try expect(sent <= 200, "what there is to send comes to an end");
            // Other edges never answer here.
            if (link.client.failover.current.eql(home)) try link.serve(packet);
        }
        while (link.client.nextEvent()) |event| switch (event) {
            .read_done => |done| {
                link.has_read = true;
                const index = try link.endOf(done.tag);
                try expect(
                    done.buffer.ptr == &link.buffers[index],
                    "a read has the buffer that was given",
                );
            },
            .read_failed => |failed| _ = try link.endOf(failed.tag),
            .sign => {
                const is_able = link.case.prng.chance(1, 2);
                link.client.sign(link.now_us, if (is_able) @splat(3) else null);
                return link.talk();
            },
            .refused, .version_changed, .cache_lost => {
                link.client.reportLost(link.now_us, link.now_us + std.time.us_per_s);
                return link.talk();
            },
            else => {},
        };
        if (link.client.deadline()) |at_us|
            try expect(at_us > link.now_us, "what is due now was sent now");
        try expect(
            link.client.inFlightBytes() <= reads_max * read_size_max,
            "no more is outstanding than was asked for",
        );
    }

    fn endOf(link: *LossyLink, tag: u64) Violation!usize {
        const index = std.mem.findScalar(u64, &link.readers, tag);
        try expect(index != null, "what was submitted ends once");
        link.readers[index.?] = 0;
        return index.?;
    }

    fn serve(link: *LossyLink, packet: []const u8) Violation!void {
        var reply: StreamServer.ReplyBuffer = undefined;
        var large: StreamServer.LargeBuffer = undefined;
        switch (link.server.receive(link.now_us, device, packet, &reply)) {
            .reply => |bytes| link.deliver(bytes),
            .admit => |claim| {
                const admission = link.server.admit(link.now_us, claim, link.grant(), &reply);
                if (link.server.showSize(&admission, &large)) |bytes| link.deliver(bytes);
                if (admission.reply) |bytes| link.deliver(bytes);
            },
            .probe => |probe| if (link.server.answerProbe(probe, &large)) |bytes|
                link.deliver(bytes),
            .read => |*read| link.answer(read),
            .write => |*write| if (link.server.finishWrite(write.ref, .done, &reply)) |outgoing|
                link.deliver(outgoing.packet),
            .control => |*control| if (link.server.finishWrite(
                control.ref,
                .done,
                &reply,
            )) |outgoing| link.deliver(outgoing.packet),
            .ready => |ready| link.deliver(ready.reply),
            .account => |account| link.deliver(account.reply),
            .report => |*report| {
                const ack: stream.ReportAck =
                    .{ .order = .restart, .order_id = @splat(@intCast(1 + link.tags % 200)) };
                if (link.server.acknowledgeReport(report, ack, &reply)) |bytes| link.deliver(bytes);
            },
            .lost => |*lost| link.deliver(link.server.answerLost(
                lost,
                .{ .order = .restart, .order_id = @splat(9) },
                &reply,
            )),
            .ignored, .used, .fetched, .machine, .network, .taken, .present => {},
        }
    }

    /// Plain, or packed where the device takes that: sometimes as zeros, mostly as what unpacks to
    /// nothing.
    fn answer(link: *LossyLink, read: *const StreamServer.ReadRequest) void {
        const prng = &link.case.prng;
        var large: StreamServer.LargeBuffer = undefined;
        var sealer = link.server.sealer(read.session_id) orelse return;
        var payload: [stream.fragment_size_max]u8 = @splat(7);
        var answered = read.*;
        const plain_count = stream.fragmentCount(read.length, read.fragment_size);
        if (read.may_pack and plain_count > 1 and prng.chance(1, 2)) {
            const unit = packed_answers.unit_size;
            const pieces = (read.offset + read.length + unit - 1) / unit - read.offset / unit;
            const is_zeros = prng.chance(1, 2);
            const most = (plain_count - 1) * @as(u64, read.fragment_size) - 4 * plain_count;
            const size: u32 = @intCast(if (is_zeros) 2 * pieces else prng.between(1, most));
            if (is_zeros) payload = @splat(0);
            std.mem.writeInt(u32, payload[0..4], size, .big);
            const whole = packed_answers.AnswerWriter.sizeOf(size, read.fragment_size);
            _ = answered.answerBy(whole);
        }
        var fragments = answered.fragments();
        while (fragments.next()) |fragment| link.deliver(
            sealer.seal(&fragment.header, payload[0..fragment.length], &large),
        );
    }

    fn grant(link: *LossyLink) StreamServer.Grant {
        const prng = &link.case.prng;
        var boot: StreamServer.Grant.Boot = .{
            .token = token,
            .token_nonce = null,
            .version_id = boot_id,
            .disk_size = disk_size,
            .profile_size = 4096,
            .write_cache = .{ .class = .edge, .size = 1 << 20, .id = 7 },
        };
        if (prng.chance(3, 4)) boot.failover = stream_target.makeFailover(prng);
        if (prng.chance(1, 16)) return .{ .no_cache = .cache_elsewhere };
        return .{ .boot = boot };
    }

    fn deliver(link: *LossyLink, packet: []const u8) void {
        const prng = &link.case.prng;
        if (prng.chance(1, 16)) return;
        var copy: [stream.packet_size_max + 64]u8 = undefined;
        @memcpy(copy[0..packet.len], packet);
        if (prng.chance(1, 12))
            link.client.receive(link.now_us, link.case.mutate(&copy, packet.len));
        if (prng.chance(15, 16)) link.client.receive(link.now_us, packet);
        if (prng.chance(1, 16)) link.client.receive(link.now_us, packet);
    }

    /// Any packet, of this session or another, about a request that exists or not.
    fn makeUp(link: *LossyLink) void {
        const prng = &link.case.prng;
        var room: stream_target.PacketMemory = .{};
        var buffer: [stream.packet_size_max]u8 = undefined;
        var packet = stream_target.makePacket(link.case, &room);
        if (packet.session_id != 0 and prng.chance(7, 8))
            packet.session_id = if (link.client.session) |*session| session.id else 1;
        if (packet.request_id != 0)
            packet.request_id = 1 +% packet.request_id % (link.client.request_id_next + 1);
        switch (packet.body) {
            .hello => |*hello| hello.client_nonce = link.client.greeting.nonce,
            .cookie => |*cookie| cookie.client_nonce = link.client.greeting.nonce,
            .refuse => |*refusal| refusal.client_nonce = link.client.greeting.nonce,
            .welcome => |*welcome| {
                welcome.client_nonce = link.client.greeting.nonce;
                welcome.cipher = .clear;
                welcome.edge_public = @splat(0);
            },
            else => {},
        }
        const is_newer = if (link.client.session) |*session| session.version == .v3 else false;
        if (is_newer and packet.body != .hello) packet.version = .v3;
        const bytes = stream.emit(packet, &buffer);
        link.client.receive(
            link.now_us,
            if (prng.chance(1, 4)) link.case.mutate(&buffer, bytes.len) else bytes,
        );
    }

    fn want(link: *LossyLink) void {
        const prng = &link.case.prng;
        link.tags += 1;
        const offset = prng.below(200) * 4096;
        const length = prng.between(1, read_size_max / stream.sector_size) * stream.sector_size;
        switch (prng.below(8)) {
            0 => link.client.submitWrite(link.tags, offset, link.buffers[0][0..4096]) catch {},
            1 => link.client.submitFlush(link.tags) catch {},
            2 => link.client.submitDiscard(link.tags, offset, 4096) catch {},
            3 => link.client.reportReady(link.now_us, .ready, link.now_us, .{ .code = "fuzz" }),
            4 => link.client.report(link.now_us, .{ .uptime_us = link.now_us }),
            5 => link.client.onUnreachable(link.now_us),
            else => {
                // Each has its own buffer while it is in flight.
                const index = std.mem.findScalar(u64, &link.readers, 0) orelse return;
                link.client.submit(link.tags, offset, link.buffers[index][0..length]) catch return;
                link.readers[index] = link.tags;
            },
        }
    }
};

pub fn client(case: *Case) Violation!bool {
    const prng = &case.prng;
    var link: LossyLink = .{
        .case = case,
        .client = StreamClient.init(case.gpa, .{
            .reads_max = reads_max,
            .writes_max = writes_max,
            .packet_size_max = prng.pick(u16, &.{
                stream.packet_size_ethernet, stream.packet_size_max,
            }),
            .ciphers = clear_text,
            .version_max = prng.pick(stream.Version, &.{ .v2, .v3, .v3 }),
            .codecs = if (prng.chance(3, 4)) StreamClient.codecs else 0,
        }) catch return fuzz_case.violated("a client of this size can be made"),
        .server = StreamServer.init(case.gpa, .{
            .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            .sessions_max = 2,
            .write_slots = 2,
            .hellos_max = 64,
            .ciphers = clear_text,
            .version_max = prng.pick(stream.Version, &.{ .v2, .v3, .v3 }),
            .packet_size_max = stream.packet_size_max,
            .codecs = if (prng.chance(3, 4)) StreamClient.codecs else 0,
        }) catch return fuzz_case.violated("a server of this size can be made"),
    };
    defer link.client.deinit(case.gpa);
    defer link.server.deinit(case.gpa);
    var seed: [32]u8 = undefined;
    prng.fill(&seed);
    link.client.start(link.now_us, .{
        .boot_id = boot_id,
        .token = token,
        .nonce_seed = seed,
        .edge = home,
        .device_key = if (prng.chance(1, 8)) device_key else null,
    });
    for (0..steps_per_case) |_| {
        if (prng.chance(3, 4)) link.want();
        if (prng.chance(1, 3)) link.makeUp();
        try link.talk();
        const due_us = link.client.deadline() orelse link.now_us;
        link.now_us = if (prng.chance(1, 2)) @max(due_us, link.now_us + 1) else link.now_us +
            prng.between(1, std.time.us_per_s);
    }
    return link.has_read;
}
