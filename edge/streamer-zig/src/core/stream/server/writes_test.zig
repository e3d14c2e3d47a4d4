//! Tests of writes.zig and of the device's side: guarantees of both about writes, over a link that
//! loses, duplicates, delays and reorders packets, and with an edge that crashes at any moment: a
//! write that has ended is there, and no late packet ever undoes a later one.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamServer = @import("server.zig");
const StreamClient = @import("../client/client.zig");
const Link = @import("../test_link.zig").Link;
const testing = std.testing;

const sector_size = wire.sector_size;
const sectors = 512;
const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const address: base.Endpoint = .{ .ip = .init(127, 77, 0, 10), .port = 40000 };
const writes_max = 24;
const size_max = 48;

const Pending = struct { ref: StreamServer.WriteRef, at_us: u64, first: u64, count: u64 };

const CrashFixture = struct {
    server: StreamServer,
    client: StreamClient,
    link: Link,
    prng: base.Prng,
    now_us: u64 = 1_000_000,
    token_nonce: ?[16]u8 = null,
    key_serial: u8 = 1,
    cache_id: u64 = 77,
    class: wire.WriteCacheClass = .edge_persistent,
    no_cache: ?wire.RefuseCode = null,
    /// A stamp for each sector: the content read, and the content that survives a crash.
    disk: [sectors]u64 = @splat(0),
    durable: [sectors]u64 = @splat(0),
    full_above: u64 = sectors,
    /// A device whose write cache is full is stopped.
    stops: bool = false,
    is_stopped: bool = false,
    pending: std.ArrayList(Pending) = .empty,
    carried_out: u64 = 0,
    late_percent: u8 = 0,
    /// Longer packets are lost on the path to the edge.
    path_size: usize = wire.packet_size_ethernet,
    sync_us_max: u64 = 20_000,
    /// The edge's disk accepts nothing before this time.
    takes_from_us: u64 = 0,
    /// What the device expects to read.
    expected: [sectors]u64 = @splat(0),
    stamp_next: u64 = 1,
    buffers: [writes_max][size_max * sector_size]u8 = undefined,
    in_use: [writes_max]bool = @splat(false),
    ended: u64 = 0,

    fn init(link: Link) !*CrashFixture {
        const fixture = try testing.allocator.create(CrashFixture);
        fixture.* = .{
            .server = try newServer(1),
            .client = try .init(testing.allocator, .{ .reads_max = 1, .writes_max = writes_max }),
            .link = link,
            .prng = .init(link.prng.state.s[0]),
        };
        fixture.client.start(
            fixture.now_us,
            .{ .boot_id = boot_id, .token = @splat(0x70), .nonce_seed = @splat(0x11) },
        );
        return fixture;
    }

    fn deinit(fixture: *CrashFixture) void {
        fixture.server.deinit(testing.allocator);
        fixture.client.deinit(testing.allocator);
        fixture.link.deinit();
        fixture.pending.deinit(testing.allocator);
        testing.allocator.destroy(fixture);
    }

    fn newServer(serial: u8) !StreamServer {
        return .init(testing.allocator, .{ .sessions_max = 4, .write_slots = 16, .keys = .{
            .cookie = @splat(serial),
            .session = @splat(serial ^ 0x80),
            .resumption = @splat(3),
        } });
    }

    /// The edge crashes: each sector that it had not synced may be there or not, and it knows no
    /// device.
    fn crashEdge(fixture: *CrashFixture) !void {
        fixture.server.deinit(testing.allocator);
        fixture.key_serial += 1;
        fixture.server = try newServer(fixture.key_serial);
        fixture.pending.clearRetainingCapacity();
        for (&fixture.disk, &fixture.durable) |*now, *kept| {
            if (fixture.prng.chance(1, 2)) now.* = kept.*;
            kept.* = now.*;
        }
    }

    fn nextEvent(fixture: *CrashFixture, limit_us: u64) !?StreamClient.Event {
        const end_us = fixture.now_us + limit_us;
        while (true) {
            try fixture.acknowledge();
            var out: [wire.sealed_request_size_max]u8 = undefined;
            while (fixture.client.transmit(fixture.now_us, &out)) |packet| {
                if (packet.len > fixture.path_size) continue;
                try fixture.link.send(fixture.now_us, false, packet);
                if (!fixture.prng.chance(fixture.late_percent, 100)) continue;
                // A copy that arrives long after everything has moved on.
                const late_us = fixture.prng.below(std.time.us_per_s);
                try fixture.link.send(fixture.now_us + late_us, false, packet);
            }
            if (fixture.client.nextEvent()) |event| return event;
            var at_us = @min(end_us, fixture.client.deadline() orelse end_us);
            for (fixture.pending.items) |pending| at_us = @min(at_us, pending.at_us);
            const flight = fixture.link.takeFirst();
            if (flight) |packet| at_us = @min(at_us, packet.at_us);
            if (at_us >= end_us) {
                fixture.now_us = end_us;
                if (flight) |packet| try fixture.link.flights.append(testing.allocator, packet);
                return null;
            }
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

    /// A sync has ended.
    fn acknowledge(fixture: *CrashFixture) !void {
        var index: usize = 0;
        while (index < fixture.pending.items.len) {
            const pending = fixture.pending.items[index];
            if (pending.at_us > fixture.now_us) {
                index += 1;
                continue;
            }
            _ = fixture.pending.orderedRemove(index);
            const first: usize = @intCast(pending.first);
            const count: usize = @intCast(pending.count);
            @memcpy(fixture.durable[first..][0..count], fixture.disk[first..][0..count]);
            try fixture.finish(pending.ref, .done);
        }
    }

    fn finish(fixture: *CrashFixture, ref: StreamServer.WriteRef, code: ?wire.WriteCode) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        const outgoing = fixture.server.finishWrite(ref, code, &reply) orelse return;
        try fixture.link.send(fixture.now_us, true, outgoing.packet);
    }

    fn serve(fixture: *CrashFixture, packet: []const u8) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        switch (fixture.server.receive(fixture.now_us, address, packet, &reply)) {
            .ignored, .taken, .used, .fetched, .machine, .network => {},
            .reply => |answer| try fixture.link.send(fixture.now_us, true, answer),
            .admit => |claim| {
                const grant: StreamServer.Grant = if (fixture.no_cache) |code| .{
                    .no_cache = code,
                } else .{ .boot = .{
                    .token = @splat(0x70),
                    .token_nonce = fixture.token_nonce,
                    .version_id = .{ .bytes = @splat(0xdd) },
                    .disk_size = sectors * sector_size,
                    .write_cache = if (fixture.class == .device_ram) .{} else .{
                        .class = fixture.class,
                        .size = 1 << 30,
                        .id = fixture.cache_id,
                    },
                } };
                const admission = fixture.server.admit(fixture.now_us, claim, grant, &reply);
                if (admission.outcome == .opened) fixture.token_nonce = claim.hello.client_nonce;
                try fixture.link.answerHello(fixture.now_us, &fixture.server, &admission);
            },
            .write => |write| {
                if (fixture.now_us < fixture.takes_from_us) return fixture.finish(write.ref, null);
                fixture.carried_out += 1;
                const first = write.offset / sector_size;
                const count = write.bytes.len / sector_size;
                if (fixture.is_stopped) return fixture.finish(write.ref, .stopped);
                if (first + count > fixture.full_above) {
                    fixture.is_stopped = fixture.stops;
                    return fixture.finish(write.ref, if (fixture.stops) .stopped else .cache_full);
                }
                for (0..count) |index| {
                    const words = std.mem.bytesAsSlice(
                        u64,
                        write.bytes[index * sector_size ..][0..sector_size],
                    );
                    for (words) |word| try testing.expectEqual(words[0], word);
                    const kept = &fixture.disk[@intCast(first + index)];
                    // An overlapping request was submitted later and starts later.
                    try testing.expect(words[0] >= kept.*);
                    kept.* = words[0];
                }
                try fixture.wait(write.ref, first, count);
            },
            .control => |control| {
                fixture.carried_out += 1;
                const first, const count =
                    .{ control.offset / sector_size, control.length / sector_size };
                if (control.operation == .discard)
                    @memset(fixture.disk[@intCast(first)..][0..@intCast(count)], 0);
                try fixture.wait(control.ref, first, count);
            },
            .read => |read| {
                try testing.expect(fixture.is_stopped);
                try fixture.link.send(
                    fixture.now_us,
                    true,
                    fixture.server.readError(&read, .stopped, &reply).?,
                );
            },
            .probe => |probe| try fixture.link.answerProbe(fixture.now_us, &fixture.server, probe),
            .ready, .report, .present, .lost, .account => return error.NotAsked,
        }
    }

    fn wait(fixture: *CrashFixture, ref: StreamServer.WriteRef, first: u64, count: u64) !void {
        const delay_us = if (fixture.class == .edge) 0 else fixture.prng.below(fixture.sync_us_max);
        try fixture.pending.append(testing.allocator, .{
            .ref = ref,
            .at_us = fixture.now_us + delay_us,
            .first = first,
            .count = count,
        });
    }

    /// Submits one random request, if a slot is free.
    fn submit(fixture: *CrashFixture) !void {
        const tag = for (fixture.in_use, 0..) |used, index| {
            if (!used) break index;
        } else return;
        const first = fixture.prng.below(sectors);
        const count = fixture.prng.between(1, @min(size_max, sectors - first));
        switch (fixture.prng.below(10)) {
            0 => try fixture.client.submitFlush(tag),
            1 => {
                try fixture.client.submitDiscard(
                    tag,
                    first * sector_size,
                    @intCast(count * sector_size),
                );
                @memset(fixture.expected[@intCast(first)..][0..@intCast(count)], 0);
            },
            else => {
                const bytes = fixture.buffers[tag][0..@intCast(count * sector_size)];
                @memset(std.mem.bytesAsSlice(u64, bytes), fixture.stamp_next);
                @memset(
                    fixture.expected[@intCast(first)..][0..@intCast(count)],
                    fixture.stamp_next,
                );
                fixture.stamp_next += 1;
                try fixture.client.submitWrite(tag, first * sector_size, bytes);
            },
        }
        fixture.in_use[tag] = true;
    }

    fn run(fixture: *CrashFixture, count: u64, kills: u64) !void {
        var submitted: u64 = 0;
        const first_ended = fixture.ended;
        while (fixture.ended - first_ended < count) {
            while (submitted < count and fixture.prng.chance(3, 4)) : (submitted += 1) {
                if (fixture.full()) break;
                try fixture.submit();
            }
            if (kills > 0 and fixture.prng.chance(kills, count)) try fixture.crashEdge();
            const event = try fixture.nextEvent(
                if (submitted < count) 2_000 else 60 * std.time.us_per_s,
            ) orelse {
                if (submitted == count) return error.StandsStill;
                continue;
            };
            switch (event) {
                .established => {},
                .write_ended => |ended| {
                    try testing.expectEqual(wire.WriteCode.done, ended.code);
                    fixture.in_use[@intCast(ended.tag)] = false;
                    fixture.ended += 1;
                },
                else => return error.UnexpectedEvent,
            }
        }
        try testing.expectEqualSlices(u64, &fixture.expected, &fixture.disk);
        try testing.expectEqualSlices(u64, &fixture.expected, &fixture.durable);
    }

    fn full(fixture: *const CrashFixture) bool {
        return std.mem.allEqual(bool, &fixture.in_use, true);
    }
};

test "writes, discards and flushes end as submitted, whatever the link does" {
    for ([_]Link{
        .{ .prng = .init(1) },
        .{ .prng = .init(2), .loss_percent = 20 },
        .{ .prng = .init(3), .duplicate_percent = 50, .jitter_us = 30_000 },
        .{ .prng = .init(4), .loss_percent = 10, .duplicate_percent = 30, .jitter_us = 3_000 },
    }) |link| {
        const fixture = try CrashFixture.init(link);
        defer fixture.deinit();
        try fixture.run(600, 0);
    }
}

test "copies that arrive seconds late undo nothing" {
    const fixture = try CrashFixture.init(.{ .prng = .init(9) });
    defer fixture.deinit();
    fixture.late_percent = 10;
    try fixture.run(700, 0);
    try fixture.run(500, 5);
}

test "a path to the edge that drops large packets is found, at the start or later, and left" {
    for ([_]usize{ 1400, 1300, 548 }, [_]u16{ 1340, 1196, 516 }) |path_size, fragment_size| {
        const fixture = try CrashFixture.init(.{ .prng = .init(20 + path_size) });
        defer fixture.deinit();
        try fixture.run(100, 0);
        try testing.expectEqual(1440, fixture.client.writes.fragment_size_max);
        fixture.path_size = path_size;
        try fixture.run(100, 0);
        try testing.expectEqual(fragment_size, fixture.client.writes.fragment_size_max);
        try fixture.run(100, 2);
        fixture.path_size = wire.packet_size_ethernet;
        fixture.now_us += 10 * std.time.us_per_min;
        try fixture.run(100, 0);
        try testing.expectEqual(1440, fixture.client.writes.fragment_size_max);
    }
}

test "a device that only writes finds a narrow path within three seconds, without a new HELLO" {
    // One write of a single fragment that is never answered, and several of many, whose last
    // fragment arrives or not.
    for ([_]usize{ 1024, 16384, 16384 + 512, 128 << 10 }, 32..) |size, seed|
        for ([_]bool{ false, true }) |is_first| {
            const fixture = try CrashFixture.init(.{ .prng = .init(seed) });
            defer fixture.deinit();
            if (is_first) try testing.expect(
                (try fixture.nextEvent(std.time.us_per_s)).? == .established,
            ) else try fixture.run(20, 0);
            fixture.path_size = 1000;
            const bytes = try testing.allocator.alignedAlloc(u8, .of(u64), size);
            defer testing.allocator.free(bytes);
            @memset(std.mem.bytesAsSlice(u64, bytes), fixture.stamp_next);
            try fixture.client.submitWrite(0, 0, bytes);
            const ended = (try fixture.nextEvent(3 * std.time.us_per_s) orelse
                return error.StandsStill).write_ended;
            try testing.expectEqual(wire.WriteCode.done, ended.code);
            try testing.expectEqual(516, fixture.client.writes.fragment_size_max);
            try testing.expectEqual(0, fixture.client.statistics.resumptions);
        };
}

test "a disk that is slow, or accepts nothing for a while, is no narrow path" {
    for ([_]bool{ false, true }) |is_refused| {
        const fixture = try CrashFixture.init(.{ .prng = .init(30) });
        defer fixture.deinit();
        try fixture.run(50, 0);
        if (is_refused) fixture.takes_from_us = fixture.now_us +
            8 * std.time.us_per_s else fixture.sync_us_max = 8 * std.time.us_per_s;
        for (0..4) |_| try fixture.submit();
        while (!std.mem.allEqual(bool, &fixture.in_use, false)) {
            const event = try fixture.nextEvent(20 * std.time.us_per_s) orelse
                return error.StandsStill;
            fixture.in_use[@intCast(event.write_ended.tag)] = false;
        }
        try testing.expectEqual(1440, fixture.client.writes.fragment_size_max);
        try testing.expectEqual(0, fixture.client.statistics.resumptions);
    }
}

test "an edge that is silent for a while is no narrow path" {
    const fixture = try CrashFixture.init(.{ .prng = .init(31) });
    defer fixture.deinit();
    try fixture.run(50, 0);
    fixture.path_size = 0;
    try fixture.submit();
    try testing.expectEqual(null, try fixture.nextEvent(5 * std.time.us_per_s));
    fixture.path_size = wire.packet_size_ethernet;
    while (try fixture.nextEvent(10 * std.time.us_per_s)) |event| switch (event) {
        .write_ended => |ended| {
            fixture.in_use[@intCast(ended.tag)] = false;
            break;
        },
        else => {},
    };
    try testing.expectEqual(1440, fixture.client.writes.fragment_size_max);
    try fixture.run(50, 0);
}

test "an edge that crashes repeatedly loses nothing that it has acknowledged" {
    for (0..6) |seed| {
        const fixture = try CrashFixture.init(.{
            .prng = .init(10 + seed),
            .loss_percent = 5,
            .duplicate_percent = 20,
            .jitter_us = 2_000,
        });
        defer fixture.deinit();
        try fixture.run(250, 8);
    }
}

test "on a clean link each request is executed once" {
    const fixture = try CrashFixture.init(.{ .prng = .init(5) });
    defer fixture.deinit();
    fixture.class = .edge;
    try fixture.run(500, 0);
    try testing.expectEqual(500, fixture.carried_out);
}

test "a device whose write cache at the edge is gone learns it, and sends no more requests" {
    for ([_]?wire.RefuseCode{ null, .cache_lost }) |refusal| {
        const fixture = try CrashFixture.init(.{ .prng = .init(6) });
        defer fixture.deinit();
        fixture.class = .edge;
        try testing.expect((try fixture.nextEvent(std.time.us_per_s)).? == .established);
        try fixture.submit();
        try testing.expect((try fixture.nextEvent(std.time.us_per_s)).? == .write_ended);
        try fixture.crashEdge();
        // An edge that has created a new one, and an edge that knows that there was one.
        fixture.cache_id += 1;
        fixture.no_cache = refusal;
        try fixture.submit();
        const event = (try fixture.nextEvent(30 * std.time.us_per_s)).?;
        if (refusal) |code| try testing.expectEqual(code, event.refused) else try testing.expect(
            event == .cache_lost,
        );
        try testing.expectEqual(null, try fixture.nextEvent(60 * std.time.us_per_s));
        try testing.expectEqual(null, fixture.client.deadline());
    }
}

test "a full write cache is an error of the write, and the next one may succeed" {
    const fixture = try CrashFixture.init(.{ .prng = .init(7), .loss_percent = 10 });
    defer fixture.deinit();
    fixture.full_above = 100;
    const bytes: [8192]u8 = @splat(1);
    try fixture.client.submitWrite(1, 200 * sector_size, &bytes);
    try fixture.client.submitWrite(2, 0, &bytes);
    var codes: [3]?wire.WriteCode = @splat(null);
    while (codes[1] == null or
        codes[2] == null) switch ((try fixture.nextEvent(10 * std.time.us_per_s)).?) {
        .established => {},
        .write_ended => |ended| codes[@intCast(ended.tag)] = ended.code,
        else => return error.UnexpectedEvent,
    };
    try testing.expectEqual(.cache_full, codes[1]);
    try testing.expectEqual(.done, codes[2]);
}

test "a stopped device learns it from its writes and reads, under any loss, and keeps its session" {
    for (0..20) |seed| {
        const fixture = try CrashFixture.init(.{
            .prng = .init(40 + seed),
            .loss_percent = 25,
            .duplicate_percent = 20,
            .jitter_us = 3_000,
        });
        defer fixture.deinit();
        fixture.stops = true;
        fixture.full_above = 100;
        const bytes: [8192]u8 = @splat(1);
        // Acknowledged before it was full, and it stays so.
        try fixture.client.submitWrite(1, 0, &bytes);
        while (true) switch ((try fixture.nextEvent(60 * std.time.us_per_s)).?) {
            .established => {},
            .write_ended => |ended| break try testing.expectEqual(wire.WriteCode.done, ended.code),
            else => return error.UnexpectedEvent,
        };
        try fixture.client.submitWrite(2, 200 * sector_size, &bytes);
        try fixture.client.submitWrite(3, 0, &bytes);
        var buffer: [4096]u8 = undefined;
        var codes: [4]?wire.WriteCode = @splat(null);
        var is_read_refused = false;
        while (codes[2] == null or codes[3] == null or !is_read_refused) {
            switch ((try fixture.nextEvent(60 * std.time.us_per_s)).?) {
                .established => {},
                .write_ended => |ended| {
                    codes[@intCast(ended.tag)] = ended.code;
                    if (ended.tag == 2) try fixture.client.submit(4, 0, &buffer);
                },
                .read_failed => |failed| {
                    try testing.expectEqual(wire.ReadErrorCode.stopped, failed.code);
                    is_read_refused = true;
                },
                else => return error.UnexpectedEvent,
            }
        }
        try testing.expectEqual(.stopped, codes[2]);
        // It may have been executed before.
        try testing.expect(codes[3] == .stopped or codes[3] == .done);
        try testing.expectEqual(StreamClient.State.established, fixture.client.state);
    }
}

test "an edge that keeps no writes refuses them" {
    const fixture = try CrashFixture.init(.{ .prng = .init(8) });
    defer fixture.deinit();
    fixture.class = .device_ram;
    try testing.expect((try fixture.nextEvent(std.time.us_per_s)).? == .established);
    try fixture.client.submitFlush(3);
    try testing.expectEqual(
        wire.WriteCode.no_cache,
        (try fixture.nextEvent(std.time.us_per_s)).?.write_ended.code,
    );
}

test "a write beyond the disk fails alone and changes nothing, and the next one succeeds" {
    const fixture = try CrashFixture.init(.{ .prng = .init(9) });
    defer fixture.deinit();
    const before = fixture.disk;
    const bytes: [1024]u8 = @splat(1);
    const size = sectors * sector_size;
    for ([_]u64{ size - sector_size, size, 1 << 40, std.mem.alignBackward(
        u64,
        std.math.maxInt(u64),
        sector_size,
    ) - 1024 }, 1..) |offset, tag| {
        try fixture.client.submitWrite(tag, offset, &bytes);
        while (true) switch ((try fixture.nextEvent(10 * std.time.us_per_s)).?) {
            .established => {},
            .write_ended => |ended| break try testing.expectEqual(
                wire.WriteCode.beyond_the_end,
                ended.code,
            ),
            else => return error.UnexpectedEvent,
        };
    }
    try testing.expectEqual(before, fixture.disk);
    try testing.expectEqual(0, fixture.carried_out);
    try fixture.client.submitWrite(9, size - 1024, &bytes);
    try testing.expectEqual(
        wire.WriteCode.done,
        (try fixture.nextEvent(10 * std.time.us_per_s)).?.write_ended.code,
    );
}
