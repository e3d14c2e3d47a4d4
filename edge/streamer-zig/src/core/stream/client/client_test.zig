//! Tests of client.zig against the real edge's side, over a link that loses, duplicates, delays and
//! reorders packets.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamServer = @import("../server/server.zig");
const StreamClient = @import("client.zig");
const Link = @import("../test_link.zig").Link;
const TestDevice = @import("test_device.zig");
const testing = std.testing;
const assert = std.debug.assert;

const disk_size = 4 << 20;
pub const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const address: base.Endpoint = .{ .ip = .init(127, 77, 0, 10), .port = 40000 };

/// Computes the disk's content from the offset, so that no disk is stored.
pub const disk = struct {
    pub fn fill(offset: u64, buffer: []u8) void {
        for (buffer, offset..) |*byte, at| byte.* = @truncate((at *% 0x9e3779b97f4a7c15) >> 29);
    }
};

/// The same in two of four units; the others shrink to a half, and to nothing.
const packable = struct {
    pub fn fill(offset: u64, buffer: []u8) void {
        disk.fill(offset, buffer);
        for (buffer, offset..) |*byte, at| switch (at / wire.profile.unit_size % 4) {
            0 => byte.* &= 0x11,
            1 => byte.* = 0,
            else => {},
        };
    }
};

pub const StreamFixture = struct {
    server: StreamServer,
    client: StreamClient,
    link: Link,
    sides: Sides,
    now_us: u64 = 1_000_000,
    token_nonce: ?[16]u8 = null,
    version_id: base.Uuid = .{ .bytes = @splat(0xdd) },
    store_errors_left: u32 = 0,
    /// Answers that are packed, and of these those that do not unpack; content is `packable` then.
    packed_percent: u8 = 0,
    spoiled_percent: u8 = 0,
    key_serial: u8 = 1,
    opened_count: u32 = 0,
    resumed_count: u32 = 0,
    ready_count: u32 = 0,
    /// The order that waits for the device until the device confirms it.
    order: wire.ReportAck = .{},
    present_count: u32 = 0,
    account_parts: u32 = 0,
    lost_count: u32 = 0,
    reports: u32 = 0,
    reports_with_steps: u32 = 0,
    /// Steps of the newest report.
    step_count: u32 = 0,
    /// Longer packets are lost on the path to the edge.
    path_size: usize = wire.packet_size_ethernet,
    /// Number of reads whose times the newest report contains.
    reads_timed: u64 = 0,
    write_cache_used: u64 = 0,
    uptime_us: u64 = 0,
    /// The newest NETWORK, and what the link had lost until it arrived.
    network: ?StreamServer.DeviceNetwork = null,
    lost_to_device: u64 = 0,
    lost_to_edge: u64 = 0,

    pub fn init(link: Link) !StreamFixture {
        return initWith(link, .{});
    }

    pub fn initWith(link: Link, sides: Sides) !StreamFixture {
        var fixture: StreamFixture = .{
            .server = try newServer(1, sides),
            .client = try .init(
                testing.allocator,
                .{
                    .ciphers = sides.ciphers,
                    .packet_size_max = sides.packet_size_max,
                    .codecs = sides.device_codecs,
                },
            ),
            .link = link,
            .sides = sides,
        };
        fixture.client.start(fixture.now_us, .{
            .boot_id = boot_id,
            .token = @splat(0x70),
            .nonce_seed = @splat(0x11),
        });
        return fixture;
    }

    pub fn deinit(fixture: *StreamFixture) void {
        fixture.server.deinit(testing.allocator);
        fixture.client.deinit(testing.allocator);
        fixture.link.deinit();
    }

    /// Settings that device and edge share.
    pub const Sides = struct {
        ciphers: ?wire.Ciphers = null,
        packet_size_max: u16 = wire.packet_size_ethernet,
        device_codecs: u8 = 0,
        edge_codecs: u8 = 0,
    };

    pub fn newServer(serial: u8, sides: Sides) !StreamServer {
        return .init(testing.allocator, .{
            .sessions_max = 4,
            .keys = .{
                .cookie = @splat(serial),
                .session = @splat(serial ^ 0x80),
                .resumption = @splat(3),
            },
            .ciphers = sides.ciphers,
            .packet_size_max = @max(wire.packet_size_ethernet, sides.packet_size_max),
            .codecs = sides.edge_codecs,
        });
    }

    /// The edge loses its memory and keeps its resumption key.
    pub fn restartEdge(fixture: *StreamFixture) !void {
        fixture.server.deinit(testing.allocator);
        fixture.key_serial += 1;
        fixture.server = try newServer(fixture.key_serial, fixture.sides);
    }

    /// Runs until the client has an event or `limit_us` has passed.
    pub fn nextEvent(fixture: *StreamFixture, limit_us: u64) !?StreamClient.Event {
        const end_us = fixture.now_us + limit_us;
        while (true) {
            var out: [wire.sealed_request_size_max]u8 = undefined;
            while (fixture.client.transmit(fixture.now_us, &out)) |packet| {
                if (packet.len <= fixture.path_size)
                    try fixture.link.send(fixture.now_us, false, packet);
            }
            if (fixture.client.nextEvent()) |event| return event;
            const timer_us = fixture.client.deadline() orelse end_us;
            const flight = fixture.link.takeFirst();
            const at_us = @min(timer_us, if (flight) |packet| packet.at_us else end_us);
            if (at_us >= end_us) return null;
            fixture.now_us = @max(fixture.now_us, at_us);
            const packet = flight orelse continue;
            if (packet.at_us > at_us) {
                try fixture.link.flights.append(testing.allocator, packet);
                continue;
            }
            const bytes = packet.bytes[0..packet.size];
            if (packet.to_device)
                fixture.client.receive(fixture.now_us, bytes)
            else
                try fixture.serve(bytes);
        }
    }

    pub fn serve(fixture: *StreamFixture, packet: []const u8) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        switch (fixture.server.receive(fixture.now_us, address, packet, &reply)) {
            .ignored => {},
            .reply => |answer| try fixture.link.send(fixture.now_us, true, answer),
            .admit => |claim| {
                const admission = fixture.server.admit(fixture.now_us, claim, .{ .boot = .{
                    .token = @splat(0x70),
                    .token_nonce = fixture.token_nonce,
                    .version_id = fixture.version_id,
                    .disk_size = disk_size,
                } }, &reply);
                if (admission.outcome == .opened) {
                    fixture.token_nonce = claim.hello.client_nonce;
                    fixture.opened_count += 1;
                }
                if (admission.outcome == .resumed) fixture.resumed_count += 1;
                try fixture.link.answerHello(fixture.now_us, &fixture.server, &admission);
            },
            .read => |read| {
                if (fixture.store_errors_left > 0) {
                    fixture.store_errors_left -= 1;
                    return fixture.link.send(
                        fixture.now_us,
                        true,
                        fixture.server.readError(&read, .store_error, &reply).?,
                    );
                }
                try fixture.answerRead(&read);
            },
            .probe => |probe| try fixture.link.answerProbe(fixture.now_us, &fixture.server, probe),
            .write, .control, .taken, .used => return error.UnexpectedWrite,
            .fetched, .machine => {},
            .network => |said| fixture.noteNetwork(&said),
            .present => fixture.present_count += 1,
            .lost => |lost| {
                fixture.lost_count += 1;
                const answer = fixture.server.answerLost(&lost, fixture.order, &reply);
                if (std.mem.eql(u8, &lost.order_id, &fixture.order.order_id)) fixture.order = .{};
                try fixture.link.send(fixture.now_us, true, answer);
            },
            .account => |account| {
                fixture.account_parts += 1;
                try testing.expectEqualStrings("an account", account.part.bytes);
                try fixture.link.send(fixture.now_us, true, account.reply);
            },
            .ready => |ready| {
                if (!ready.repeated) fixture.ready_count += 1;
                try fixture.link.send(fixture.now_us, true, ready.reply);
            },
            .report => |said| {
                fixture.reports += 1;
                if (said.report.steps.count > 0) fixture.reports_with_steps += 1;
                fixture.step_count = said.report.steps.count;
                var times = said.report.read_times.iterate();
                while (times.next()) |entry| if (entry.kind == .fetch) {
                    fixture.reads_timed = entry.histogram.count();
                };
                fixture.write_cache_used = said.report.write_cache_used;
                fixture.uptime_us = said.report.uptime_us;
                if (std.mem.eql(u8, &said.report.order_id, &fixture.order.order_id))
                    fixture.order = .{};
                try fixture.link.send(
                    fixture.now_us,
                    true,
                    fixture.server.acknowledgeReport(&said, fixture.order, &reply).?,
                );
            },
        }
    }

    fn noteNetwork(fixture: *StreamFixture, said: *const StreamServer.DeviceNetwork) void {
        fixture.network = said.*;
        fixture.lost_to_device = fixture.link.lost_to_device;
        fixture.lost_to_edge = fixture.link.lost_to_edge;
    }

    fn answerRead(fixture: *StreamFixture, read: *const StreamServer.ReadRequest) !void {
        const link = &fixture.link;
        if (fixture.packed_percent == 0)
            return link.answerRead(fixture.now_us, &fixture.server, read, disk);
        if (!read.may_pack or !link.prng.chance(fixture.packed_percent, 100))
            return link.answerRead(fixture.now_us, &fixture.server, read, packable);
        const is_spoiled = link.prng.chance(fixture.spoiled_percent, 100);
        try link.answerPacked(fixture.now_us, &fixture.server, read, packable, is_spoiled);
    }

    pub fn expectEstablished(fixture: *StreamFixture) !void {
        const event = try fixture.nextEvent(30 * std.time.us_per_s);
        try testing.expect(event.? == .established);
    }

    /// Reads `count` pieces from all over the disk, `depth` at a time, and checks every byte.
    pub fn readMany(fixture: *StreamFixture, count: u32, depth: u32) !void {
        const buffers = try testing.allocator.alloc([StreamClient.read_size_max]u8, depth);
        defer testing.allocator.free(buffers);
        var offsets: [64]u64 = undefined;
        var submitted: u32 = 0;
        var done: u32 = 0;
        var free: u64 = (@as(u64, 1) << @intCast(depth)) - 1;
        while (done < count) {
            while (free != 0 and submitted < count) {
                const slot = @ctz(free);
                const sectors = fixture.link.prng.between(1, StreamClient.read_size_max / 512);
                offsets[slot] = 512 * fixture.link.prng.below(disk_size / 512 - sectors + 1);
                try fixture.client.submit(slot, offsets[slot], buffers[slot][0 .. sectors * 512]);
                free &= free - 1;
                submitted += 1;
            }
            const event = (try fixture.nextEvent(120 * std.time.us_per_s)) orelse
                return error.Stuck;
            switch (event) {
                .read_done => |read| {
                    var expected: [StreamClient.read_size_max]u8 = undefined;
                    if (fixture.packed_percent == 0)
                        disk.fill(offsets[read.tag], expected[0..read.buffer.len])
                    else
                        packable.fill(offsets[read.tag], expected[0..read.buffer.len]);
                    try testing.expectEqualSlices(u8, expected[0..read.buffer.len], read.buffer);
                    free |= @as(u64, 1) << @intCast(read.tag);
                    done += 1;
                },
                .established => {},
                else => return error.UnexpectedEvent,
            }
        }
        try testing.expectEqual(0, fixture.client.inFlightBytes());
    }
};

test "a boot's stream opens once, reads right and retransmits nothing on a good link" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(1) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.readMany(200, 8);
    try testing.expectEqual(1, fixture.opened_count);
    try testing.expectEqual(0, fixture.client.statistics.retransmits);
    try testing.expectEqual(0, fixture.client.statistics.unexpected_fragments);
    try testing.expectEqual(0, fixture.server.sessionOf(boot_id).?.statistics.retries);
}

test "every byte is right on a link that loses a third, duplicates and reorders" {
    for (0..6) |seed| {
        var fixture: StreamFixture = try .init(.{
            .prng = .init(seed),
            .loss_percent = 33,
            .duplicate_percent = 10,
            .jitter_us = 2000,
        });
        defer fixture.deinit();
        try fixture.expectEstablished();
        try fixture.readMany(60, 1 + @as(u32, @intCast(seed)) * 3);
        try testing.expectEqual(1, fixture.opened_count);
    }
}

test "a lost last fragment is retransmitted, and nothing else" {
    // Packets to the device: 0 COOKIE, 1 WELCOME, from 2 on the three fragments of 4096 bytes.
    var fixture: StreamFixture = try .init(.{ .prng = .init(1), .lose_to_device = &.{4} });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [4096]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    const begin_us = fixture.now_us;
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
    try testing.expectEqual(1, fixture.client.statistics.missing_fragments);
    try testing.expect(fixture.now_us - begin_us < 10_000);
}

test "a hole is retransmitted at once when three fragments beyond it have arrived" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(1), .lose_to_device = &.{ 4, 5, 21 } });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [131072]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    const begin_us = fixture.now_us;
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
    try testing.expectEqual(3, fixture.client.statistics.missing_fragments);
    // Two round trips of 200 us, and no timeout of at least 2 ms.
    try testing.expect(fixture.now_us - begin_us <= 500);
}

test "a lost request is retransmitted at once when three fragments of later ones have arrived" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(1), .lose_to_device = &.{3} });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffers: [4][512]u8 = undefined;
    for (&buffers, 0..) |*buffer, index| try fixture.client.submit(index, 512 * index, buffer);
    const begin_us = fixture.now_us;
    for (0..4) |_| try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
    try testing.expectEqual(1, fixture.client.statistics.retransmits);
    try testing.expect(fixture.now_us - begin_us <= 500);
}

test "a device continues after its edge restarted, without a new boot" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(2), .loss_percent = 5 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    for (0..5) |_| {
        try fixture.readMany(10, 4);
        try fixture.restartEdge();
    }
    try fixture.readMany(10, 4);
    try testing.expectEqual(1, fixture.opened_count);
    try testing.expect(fixture.resumed_count >= 5);
}

test "a new process of the device continues the session that the previous one opened" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(9), .loss_percent = 5 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.readMany(5, 4);
    const session = fixture.client.session.?;
    for (0..3) |serial| {
        var identity = fixture.client.identity;
        identity.nonce_seed = @splat(@intCast(0x40 + serial));
        identity.session = session;
        fixture.client.start(fixture.now_us, identity);
        try fixture.readMany(5, 4);
    }
    try testing.expectEqual(1, fixture.opened_count);
    try testing.expect(fixture.resumed_count >= 3);
}

test "a WELCOME lost together with the edge's memory still leads to one session" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(2), .lose_to_device = &.{2} });
    defer fixture.deinit();
    try testing.expectEqual(null, try fixture.nextEvent(1_000));
    try fixture.restartEdge();
    try fixture.expectEstablished();
    try fixture.readMany(3, 1);
}

test "retries to a silent edge slow down, HELLO follows after ten seconds, without end" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(3) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [4096]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    fixture.link.loss_percent = 100;
    try testing.expectEqual(null, try fixture.nextEvent(60 * std.time.us_per_s));
    try testing.expectEqual(.greeting, fixture.client.state);
    // Once a second, in both versions.
    try testing.expect(fixture.client.statistics.packets_out < 150);
    fixture.link.loss_percent = 0;
    try fixture.expectEstablished();
    try testing.expect((try fixture.nextEvent(2_000_000)).? == .read_done);
}

test "a read is retransmitted after a store error until the store answers" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(4) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    fixture.store_errors_left = 5;
    try fixture.readMany(4, 2);
    try testing.expectEqual(5, fixture.client.statistics.store_errors);
}

test "a read beyond the disk fails and leaves the others alone" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(5) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [512]u8 = undefined;
    try fixture.client.submit(7, disk_size, &buffer);
    const event = (try fixture.nextEvent(1_000_000)).?;
    try testing.expectEqual(wire.ReadErrorCode.beyond_the_end, event.read_failed.code);
    try fixture.readMany(2, 1);
}

test "a resumption into another version ends the boot" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(6) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.restartEdge();
    fixture.version_id = .{ .bytes = @splat(0xee) };
    var buffer: [512]u8 = undefined;
    try fixture.client.submit(7, 0, &buffer);
    try testing.expect((try fixture.nextEvent(5_000_000)).? == .version_changed);
    try testing.expectEqual(null, try fixture.nextEvent(5_000_000));
}

test "READY is retransmitted until it is acknowledged, even across a restart of the edge" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(7), .loss_percent = 50 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    try fixture.restartEdge();
    fixture.client.reportReady(fixture.now_us, .ready, 123, .{ .code = "sshd" });
    try testing.expect((try fixture.nextEvent(60_000_000)).? == .established);
    try testing.expect((try fixture.nextEvent(60_000_000)).? == .ready_acknowledged);
    try testing.expectEqual(null, try fixture.nextEvent(60_000_000));
    try testing.expectEqual(1, fixture.ready_count);
}

test "no more bytes are in flight than the edge allows" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(8), .delay_us = 5000 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const buffers = try testing.allocator.alloc([131072]u8, 16);
    defer testing.allocator.free(buffers);
    for (buffers, 0..) |*buffer, index| try fixture.client.submit(index, 0, buffer);
    for (0..16) |_| {
        try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
        try testing.expect(fixture.client.inFlightBytes() <= 1 << 20);
    }
}

test "a read larger than the window is requested in parts, and ends once, with every byte" {
    for ([_]u8{ 0, 5 }) |loss_percent| {
        var fixture: StreamFixture =
            try .init(.{ .prng = .init(21), .delay_us = 1000, .loss_percent = loss_percent });
        defer fixture.deinit();
        try fixture.expectEstablished();
        const buffers = try testing.allocator.alloc([StreamClient.read_size_max]u8, 3);
        defer testing.allocator.free(buffers);
        for (buffers, 0..) |*buffer, index| try fixture.client.submit(index, index * 4096, buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        while (fixture.client.transmit(fixture.now_us, &out)) |packet|
            try fixture.link.send(fixture.now_us, false, packet);
        try testing.expect(fixture.client.inFlightBytes() > 0);
        try testing.expect(fixture.client.inFlightBytes() <= fixture.client.window.cwnd_bytes);
        var ended: std.bit_set.Static(3) = .empty;
        const expected = try testing.allocator.create([StreamClient.read_size_max]u8);
        defer testing.allocator.destroy(expected);
        while (ended.count() < buffers.len) {
            const done = (try fixture.nextEvent(10_000_000)).?.read_done;
            const tag: usize = @intCast(done.tag);
            try testing.expectEqual(@as([]u8, &buffers[tag]), done.buffer);
            try testing.expect(!ended.isSet(tag));
            ended.set(tag);
            disk.fill(tag * 4096, expected);
            try testing.expectEqualSlices(u8, expected, &buffers[tag]);
        }
        try testing.expectEqual(null, try fixture.nextEvent(1_000_000));
        try testing.expectEqual(0, fixture.client.inFlightBytes());
        try testing.expectEqual(3, fixture.client.statistics.reads);
        if (loss_percent == 0) try testing.expectEqual(0, fixture.client.statistics.retransmits);
    }
}

test "a read with one unavailable part fails once, and its buffer is not written afterwards" {
    var fixture: StreamFixture =
        try .init(.{ .prng = .init(22), .delay_us = 1000, .jitter_us = 3000 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const buffer = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(buffer);
    // Its last half lies beyond the disk's end.
    try fixture.client.submit(7, disk_size - buffer.len / 2, buffer);
    const failed = (try fixture.nextEvent(1_000_000)).?.read_failed;
    try testing.expectEqual(7, failed.tag);
    try testing.expectEqual(.beyond_the_end, failed.code);
    try testing.expectEqual(0, fixture.client.inFlightBytes());
    @memset(buffer, 0xaa);
    try testing.expectEqual(null, try fixture.nextEvent(1_000_000));
    try testing.expect(std.mem.allEqual(u8, buffer, 0xaa));
}

test "the agreed number of reads is accepted, however many parts the others have" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(23), .delay_us = 2000 });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const buffer = try testing.allocator.create([StreamClient.read_size_max]u8);
    defer testing.allocator.destroy(buffer);
    const reads_max = fixture.client.options.reads_max;
    var in_flight_count: u16 = 0;
    var ended: u32 = 0;
    // All read the same range into the same buffer.
    while (ended < 3 * reads_max) {
        while (in_flight_count < reads_max) : (in_flight_count += 1) try fixture.client.submit(
            in_flight_count,
            0,
            buffer,
        );
        try testing.expectError(error.Full, fixture.client.submit(0, 0, buffer));
        try testing.expect((try fixture.nextEvent(10_000_000)).? == .read_done);
        in_flight_count -= 1;
        ended += 1;
    }
}

test "packets of another session, with wrong lengths or for no read change nothing" {
    // In clear text only this check protects the disk.
    var fixture: StreamFixture =
        try .initWith(.{ .prng = .init(9) }, .{ .ciphers = .{ .clear = true } });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [4096]u8 = @splat(0xaa);
    try fixture.client.submit(1, 0, &buffer);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    const request = try wire.parse(fixture.client.transmit(fixture.now_us, &out).?);
    var payload: [1440]u8 = @splat(0xbb);
    const hostile = [_]wire.Packet{
        .{ .session_id = request.session_id + 1, .request_id = request.request_id, .body = .{
            .data = .{ .index = 0, .payload = &payload },
        } },
        .{ .session_id = request.session_id, .request_id = request.request_id + 1, .body = .{
            .data = .{ .index = 0, .payload = &payload },
        } },
        .{ .session_id = request.session_id, .request_id = request.request_id, .body = .{
            .data = .{ .index = 3, .payload = &payload },
        } },
        .{ .session_id = request.session_id, .request_id = request.request_id, .body = .{
            .data = .{ .index = 2, .payload = &payload },
        } },
        .{ .session_id = request.session_id, .request_id = request.request_id, .body = .{
            .data = .{ .index = 0, .payload = payload[1..] },
        } },
        .{
            .session_id = request.session_id + 1,
            .request_id = request.request_id,
            .body = .no_session,
        },
    };
    for (hostile) |packet| {
        var bytes: [wire.packet_size_max]u8 = undefined;
        fixture.client.receive(fixture.now_us, wire.emit(packet, &bytes));
    }
    try testing.expect(std.mem.allEqual(u8, &buffer, 0xaa));
    try testing.expectEqual(.established, fixture.client.state);
    try testing.expectEqual(4096, fixture.client.inFlightBytes());
}

/// Sends what is due until the device greets an edge; returns when.
fn greetsAt(device: *TestDevice) !u64 {
    while (true) {
        while (device.client.state == .established)
            if (try device.next() == null) break;
        if (device.client.state == .greeting) return device.now_us;
        const at_us = device.client.deadline() orelse return error.WaitsForNothing;
        device.now_us = @max(device.now_us, at_us);
    }
}

test "an edge is silent ten seconds after its last packet, or after the first request since" {
    // Idle for a minute before, and a packet in the middle of the wait.
    for ([_]u64{ 0, 60 * std.time.us_per_s }) |idle_us| for ([_]bool{ false, true }) |hears| {
        var device: TestDevice = try .initOpen(.{});
        defer device.deinit();
        device.now_us += idle_us;
        var buffers: [2][512]u8 = undefined;
        try device.client.submit(1, 0, &buffers[0]);
        const asked = (try device.nextRead()).?;
        var heard_us = device.now_us;
        device.now_us += 3 * std.time.us_per_s;
        // A second request does not start the wait again.
        try device.client.submit(2, 512, &buffers[1]);
        while (try device.next()) |_| {}
        if (hears) {
            heard_us = device.now_us;
            try device.expectTaken(TestDevice.packetOf(
                asked.request_id,
                .{ .read_error = .{ .code = .store_error } },
            ));
        }
        const at_us = heard_us + StreamClient.silence_us_max;
        device.now_us = at_us - 1;
        while (try device.next()) |_| {}
        try testing.expectEqual(.established, device.client.state);
        device.now_us = at_us;
        try testing.expectEqual(.resumption, (try device.next()).?.body.hello.kind);
        try testing.expectEqual(.greeting, device.client.state);
    };
}

test "each kind of request alone makes a device wait for its edge, and idle it never does" {
    for (0..5) |kind| {
        var device: TestDevice = try .initOpen(.{ .writes_max = 1 });
        defer device.deinit();
        const client = &device.client;
        device.now_us += std.time.us_per_hour;
        try device.expectNothing();
        try testing.expectEqual(null, client.deadline());
        try testing.expect(!client.hasInFlight());
        var buffer: [512]u8 = undefined;
        switch (kind) {
            0 => try client.submit(1, 0, &buffer),
            1 => try client.submitWrite(1, 0, &buffer),
            2 => try client.submitFlush(1),
            3 => client.reportReady(device.now_us, .failed, 1, .{}),
            else => client.report(device.now_us, .{ .uptime_us = 1 }),
        }
        const began_us = device.now_us;
        _ = (try device.next()).?;
        try testing.expect(client.hasInFlight());
        // At the retransmission that is due then.
        const took_us = try greetsAt(&device) - began_us;
        try testing.expect(took_us >= StreamClient.silence_us_max);
        try testing.expect(took_us <= StreamClient.silence_us_max + std.time.us_per_s);
    }
}

test "a packet that is cut, of another version or type, or not an edge's is ignored and counted" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    const before = client.statistics;
    const heard_us = client.last_packet_at_us;
    device.now_us += 50;
    var bytes: [wire.packet_size_max]u8 = undefined;
    const good = wire.emit(TestDevice.packetOf(1, .{ .probe_ack = wire.packet_size_min }), &bytes);
    var size: u64 = 0;
    for ([_]usize{ 0, 1, 15 }) |length| {
        client.receive(device.now_us, good[0..length]);
        size += length;
    }
    for ([_]u8{ 0x10, 0x30, 0x00 }) |first| {
        var changed = bytes;
        changed[0] = first;
        client.receive(device.now_us, changed[0..good.len]);
        size += good.len;
    }
    for ([_]wire.Type{
        .hello, .read, .used, .ready, .report, .write, .control, .probe,
    }) |kind| {
        var changed = bytes;
        changed[1] = @backingInt(kind);
        client.receive(device.now_us, changed[0..good.len]);
        size += good.len;
    }
    bytes[1] = 18;
    client.receive(device.now_us, bytes[0..good.len]);
    size += good.len;
    var foreign = TestDevice.packetOf(1, .{ .probe_ack = wire.packet_size_min });
    foreign.session_id += 1;
    device.take(foreign);
    size += good.len;
    try testing.expectEqual(before.ignored + 16, client.statistics.ignored);
    try testing.expectEqual(before.packets_in + 16, client.statistics.packets_in);
    try testing.expectEqual(before.bytes_in + size, client.statistics.bytes_in);
    try testing.expectEqual(heard_us, client.last_packet_at_us);
    try device.expectTaken(TestDevice.packetOf(1, .{ .probe_ack = wire.packet_size_min }));
    try testing.expectEqual(device.now_us, client.last_packet_at_us);
}

test "packets of a session are ignored while the device greets" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const lost: wire.Packet = .{ .session_id = TestDevice.session_id, .body = .no_session };
    try device.expectTaken(lost);
    for ([_]wire.Packet{
        lost,
        TestDevice.packetOf(1, .{ .data = .{ .index = 0, .payload = "x" } }),
        TestDevice.packetOf(1, .{ .read_error = .{ .code = .store_error } }),
        TestDevice.packetOf(1, .ready_ack),
        TestDevice.packetOf(1, .{ .report_ack = .{} }),
        TestDevice.packetOf(1, .{ .write_ack = .{ .code = .done } }),
        TestDevice.packetOf(1, .{ .probe_ack = 600 }),
    }) |packet| try device.expectIgnored(packet);
    try testing.expectEqual(.greeting, device.client.state);
}

test "events of the session come first, then writes, reads and the rest, each once" {
    var device: TestDevice = try .initOpen(.{ .writes_max = 1 });
    defer device.deinit();
    const client = &device.client;
    var buffer: [512]u8 = undefined;
    client.reportReady(device.now_us, .ready, 1, .{});
    try device.expectTaken(TestDevice.packetOf((try device.next()).?.request_id, .ready_ack));
    try client.submit(2, 0, &buffer);
    const asked = (try device.nextRead()).?;
    try device.answerAll(&asked);
    try client.submitFlush(3);
    const flush = (try device.next()).?;
    const done: wire.Body = .{ .write_ack = .{ .code = .done } };
    try device.expectTaken(TestDevice.packetOf(flush.request_id, done));
    try device.expectTaken(.{ .session_id = TestDevice.session_id, .body = .no_session });
    try device.open(TestDevice.welcome_usual);
    try testing.expect(client.nextEvent().? == .established);
    try testing.expectEqual(3, client.nextEvent().?.write_ended.tag);
    try testing.expectEqual(2, client.nextEvent().?.read_done.tag);
    try testing.expect(client.nextEvent().? == .ready_acknowledged);
    try testing.expectEqual(null, client.nextEvent());
}

test "a new start forgets everything of the boot before" {
    var device: TestDevice = try .initOpen(.{ .writes_max = 2 });
    defer device.deinit();
    const client = &device.client;
    var buffer: [4096]u8 = undefined;
    try client.submit(1, 0, &buffer);
    try client.submitFlush(2);
    try client.submitWrite(3, 0, &buffer);
    client.report(device.now_us, .{ .uptime_us = 1 });
    client.reportReady(device.now_us, .ready, 1, .{});
    while (try device.next()) |_| {}
    device.now_us += 5;
    client.start(device.now_us, TestDevice.identity());
    var fresh: TestDevice = try .init(.{ .writes_max = 2 });
    defer fresh.deinit();
    fresh.now_us = device.now_us;
    fresh.client.start(fresh.now_us, TestDevice.identity());
    for (client.reads) |*read| try testing.expectEqual(.free, read.state);
    try testing.expectEqual(fresh.client.greeting.hello, client.greeting.hello);
    try testing.expectEqual(fresh.client.statistics, client.statistics);
    try testing.expectEqual(fresh.client.deadline(), client.deadline());
    try device.open(TestDevice.welcome_usual);
    try testing.expect(!client.nextEvent().?.established.resumed);
    try testing.expectEqual(null, client.nextEvent());
    try device.expectNothing();
    try testing.expectEqual(null, client.deadline());
    // All slots are there again.
    for (0..client.options.reads_max) |tag| try client.submit(tag, 0, buffer[0..512]);
    try testing.expectError(error.Full, client.submit(0, 0, buffer[0..512]));
    for (0..2) |tag| try client.submitFlush(tag);
    try testing.expectError(error.Full, client.submitFlush(0));
}

test "a device waits for the earliest of what it has to do" {
    const size_max = wire.packet_size_max;
    var device = try TestDevice.initWithOthers(.{ .packet_size_max = size_max, .writes_max = 1 });
    defer device.deinit();
    const client = &device.client;
    // The welcome's fragments are those of Ethernet: there is nothing to probe.
    try testing.expectEqual(null, client.deadline());
    const heard_us = client.last_packet_at_us;
    client.report(device.now_us, .{ .uptime_us = 1 });
    _ = try device.next();
    client.report_state.due_at_us = heard_us + 800_000;
    try testing.expectEqual(heard_us + 500_000, client.deadline());
    client.report_state.due_at_us = heard_us + 400_000;
    try testing.expectEqual(heard_us + 400_000, client.deadline());
    client.reportReady(device.now_us, .ready, 1, .{});
    client.ready.?.due_at_us = heard_us + 390_000;
    try testing.expectEqual(heard_us + 390_000, client.deadline());
    client.path.size_max = wire.packet_size_max;
    client.path.probe_at_us = heard_us + 380_000;
    try testing.expectEqual(heard_us + 380_000, client.deadline());
    try client.submitFlush(1);
    try testing.expectEqual(0, client.deadline());
    client.writes.pending[0].state = .in_flight;
    client.writes.pending[0].sent_at_us = heard_us + 300_000;
    client.writes.pending[0].timeout_us = 70_000;
    try testing.expectEqual(heard_us + 370_000, client.deadline());
    var buffer: [512]u8 = undefined;
    try client.submit(1, 0, &buffer);
    device.now_us = heard_us + 358_000;
    _ = (try device.nextRead()).?;
    try testing.expectEqual(heard_us + 360_000, client.deadline());
}

test "a client that gets no memory keeps none" {
    const Create = struct {
        fn create(gpa: std.mem.Allocator) !void {
            var client: StreamClient = try .init(gpa, .{ .writes_max = 3 });
            client.deinit(gpa);
        }
    };
    try testing.checkAllAllocationFailures(testing.allocator, Create.create, .{});
}

test "packets of a wrong size for their type are ignored in each state" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    var bytes: [wire.packet_size_max]u8 = @splat(0);
    const lost: wire.Packet = .{ .session_id = TestDevice.session_id, .body = .no_session };
    for ([_]wire.Packet{ lost, TestDevice.packetOf(1, .ready_ack) }) |packet| {
        const size = wire.emit(packet, &bytes).len;
        const before = client.statistics.ignored;
        client.receive(device.now_us, bytes[0 .. size + 1]);
        try testing.expectEqual(before + 1, client.statistics.ignored);
        try testing.expectEqual(.established, client.state);
    }
    try device.expectTaken(lost);
    const hello = (try device.next()).?.body.hello;
    for ([_]wire.Packet{
        TestDevice.cookieOf(&hello),
        TestDevice.refusalOf(&hello, .no_cipher),
    }) |packet| {
        const size = wire.emit(packet, &bytes).len;
        const before = client.statistics.ignored;
        client.receive(device.now_us, bytes[0 .. size + 1]);
        try testing.expectEqual(before + 1, client.statistics.ignored);
        try testing.expectEqual(.greeting, client.state);
    }
}

test "a doubted size is too large if a smaller packet arrives, sealed or not, and if none, not" {
    for ([_]bool{ false, true }) |is_small| {
        var fixture: StreamFixture = try .init(.{ .prng = .init(1) });
        defer fixture.deinit();
        try fixture.expectEstablished();
        var buffer: [2048]u8 = undefined;
        try fixture.client.submit(1, 0, &buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
        const whole = fixture.link.takeFirst().?;
        const short = fixture.link.takeFirst().?;
        fixture.client.path.doubted = true;
        const flight = if (is_small) &short else &whole;
        fixture.client.receive(fixture.now_us, flight.bytes[0..flight.size]);
        try testing.expectEqual(@as(u16, if (is_small) 1372 else 1472), fixture.client.path.size);
    }
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    for ([_]u16{ 1472, 1471 }) |size| {
        device.client.path.doubted = true;
        try device.expectTaken(TestDevice.packetOf(1, .{ .probe_ack = size }));
        try testing.expectEqual(size == 1472, device.client.path.doubted);
        const left: u16 = if (size == 1472) 1472 else 1372;
        try testing.expectEqual(left, device.client.path.size);
    }
}

test "a READ that continues under another id is counted if nothing of its answer had arrived" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    const client = &device.client;
    var buffers: [3][2048]u8 = undefined;
    try client.submit(1, 0, &buffers[0]);
    try client.submit(2, 4096, &buffers[1]);
    try client.submitOf(.profile, 3, 0, &buffers[2]);
    var asked: [3]TestDevice.Asked = undefined;
    for (&asked) |*each| each.* = (try device.nextRead()).?;
    try device.answer(&asked[0], 0);
    // In fragments of the same size it keeps its id.
    client.restart();
    try testing.expectEqual(0, client.statistics.renamed_requests);
    const missing = [_]u32{ 2048 - 1440, 2048, 2048 };
    try testing.expectEqual(missing[0] + missing[1] + missing[2], client.inFlightBytes());
    client.path.size = 1372;
    client.restart();
    try testing.expectEqual(1, client.statistics.renamed_requests);
    try testing.expectEqual(0, client.inFlightBytes());
}
