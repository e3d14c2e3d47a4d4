//! What both sides of the stream guarantee about writes, over a link that loses, doubles, delays and reorders packets, and an edge that
//! ends at any moment: each write is there when it has ended, and no late packet ever undoes a later one.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const StreamServer = @import("../server/server.zig");
const StreamClient = @import("client.zig");
const Link = @import("../test_link.zig").Link;
const testing = std.testing;

const sector_size = wire.sector_size;
const sectors = 512;
const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const address: base.Endpoint = .{ .ip = .init(127, 77, 0, 10), .port = 40000 };
const writes_max = 24;
const size_max = 48;

const Pending = struct { ref: StreamServer.WriteRef, at_us: u64, first: u64, count: u64 };

const World = struct {
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
    /// A stamp for each sector: what is read, and what a crash leaves.
    disk: [sectors]u64 = @splat(0),
    durable: [sectors]u64 = @splat(0),
    full_above: u64 = sectors,
    /// A device whose write cache is full is stopped.
    stops: bool = false,
    is_stopped: bool = false,
    pending: std.ArrayList(Pending) = .empty,
    carried_out: u64 = 0,
    late_percent: u8 = 0,
    /// Longer packets vanish on their way to the edge.
    way_size: usize = wire.packet_size_ethernet,
    sync_us_max: u64 = 20_000,
    /// The edge's disk takes nothing before.
    takes_from_us: u64 = 0,
    /// Of the device.
    expected: [sectors]u64 = @splat(0),
    stamp_next: u64 = 1,
    buffers: [writes_max][size_max * sector_size]u8 = undefined,
    in_use: [writes_max]bool = @splat(false),
    ended: u64 = 0,

    fn init(link: Link) !*World {
        const world = try testing.allocator.create(World);
        world.* = .{
            .server = try newServer(1),
            .client = try .init(testing.allocator, .{ .reads_max = 1, .writes_max = writes_max }),
            .link = link,
            .prng = .init(link.prng.state.s[0]),
        };
        world.client.start(world.now_us, .{ .boot_id = boot_id, .token = @splat(0x70), .nonce_seed = @splat(0x11) });
        return world;
    }

    fn deinit(world: *World) void {
        world.server.deinit(testing.allocator);
        world.client.deinit(testing.allocator);
        world.link.deinit();
        world.pending.deinit(testing.allocator);
        testing.allocator.destroy(world);
    }

    fn newServer(serial: u8) !StreamServer {
        return .init(testing.allocator, .{ .sessions_max = 4, .write_places = 16, .keys = .{
            .cookie = @splat(serial),
            .session = @splat(serial ^ 0x80),
            .resumption = @splat(3),
        } });
    }

    /// The edge is killed: what it had not synced is there or not, sector by sector, and it knows of nobody.
    fn killEdge(world: *World) !void {
        world.server.deinit(testing.allocator);
        world.key_serial += 1;
        world.server = try newServer(world.key_serial);
        world.pending.clearRetainingCapacity();
        for (&world.disk, &world.durable) |*now, *kept| {
            if (world.prng.chance(1, 2)) now.* = kept.*;
            kept.* = now.*;
        }
    }

    fn nextEvent(world: *World, limit_us: u64) !?StreamClient.Event {
        const end_us = world.now_us + limit_us;
        while (true) {
            try world.acknowledge();
            var out: [wire.sealed_request_size_max]u8 = undefined;
            while (world.client.transmit(world.now_us, &out)) |packet| {
                if (packet.len > world.way_size) continue;
                try world.link.send(world.now_us, false, packet);
                if (!world.prng.chance(world.late_percent, 100)) continue;
                // A copy that comes when everybody has long gone on.
                const late_us = world.prng.below(std.time.us_per_s);
                try world.link.send(world.now_us + late_us, false, packet);
            }
            if (world.client.nextEvent()) |event| return event;
            var at_us = @min(end_us, world.client.deadline() orelse end_us);
            for (world.pending.items) |pending| at_us = @min(at_us, pending.at_us);
            const flight = world.link.takeFirst();
            if (flight) |packet| at_us = @min(at_us, packet.at_us);
            if (at_us >= end_us) {
                world.now_us = end_us;
                if (flight) |packet| try world.link.flights.append(testing.allocator, packet);
                return null;
            }
            world.now_us = @max(world.now_us, at_us);
            const packet = flight orelse continue;
            if (packet.at_us > at_us) {
                try world.link.flights.append(testing.allocator, packet);
                continue;
            }
            const bytes = packet.bytes[0..packet.size];
            if (packet.to_device) world.client.receive(world.now_us, bytes) else try world.serve(bytes);
        }
    }

    /// A sync has ended.
    fn acknowledge(world: *World) !void {
        var index: usize = 0;
        while (index < world.pending.items.len) {
            const pending = world.pending.items[index];
            if (pending.at_us > world.now_us) {
                index += 1;
                continue;
            }
            _ = world.pending.orderedRemove(index);
            const first: usize = @intCast(pending.first);
            const count: usize = @intCast(pending.count);
            @memcpy(world.durable[first..][0..count], world.disk[first..][0..count]);
            try world.finish(pending.ref, .done);
        }
    }

    fn finish(world: *World, ref: StreamServer.WriteRef, code: ?wire.WriteCode) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        const outgoing = world.server.finishWrite(ref, code, &reply) orelse return;
        try world.link.send(world.now_us, true, outgoing.packet);
    }

    fn serve(world: *World, packet: []const u8) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        switch (world.server.receive(world.now_us, address, packet, &reply)) {
            .ignored, .taken, .used => {},
            .reply => |answer| try world.link.send(world.now_us, true, answer),
            .admit => |claim| {
                const grant: StreamServer.Grant = if (world.no_cache) |code| .{ .no_cache = code } else .{ .boot = .{
                    .token = @splat(0x70),
                    .token_nonce = world.token_nonce,
                    .version_id = .{ .bytes = @splat(0xdd) },
                    .disk_size = sectors * sector_size,
                    .write_cache = if (world.class == .device_ram) .{} else .{
                        .class = world.class,
                        .size = 1 << 30,
                        .id = world.cache_id,
                    },
                } };
                const admission = world.server.admit(world.now_us, claim, grant, &reply);
                if (admission.outcome == .opened) world.token_nonce = claim.hello.client_nonce;
                try world.link.answerHello(world.now_us, &world.server, &admission);
            },
            .write => |write| {
                if (world.now_us < world.takes_from_us) return world.finish(write.ref, null);
                world.carried_out += 1;
                const first = write.offset / sector_size;
                const count = write.bytes.len / sector_size;
                if (world.is_stopped) return world.finish(write.ref, .stopped);
                if (first + count > world.full_above) {
                    world.is_stopped = world.stops;
                    return world.finish(write.ref, if (world.stops) .stopped else .cache_full);
                }
                for (0..count) |index| {
                    const words = std.mem.bytesAsSlice(u64, write.bytes[index * sector_size ..][0..sector_size]);
                    for (words) |word| try testing.expectEqual(words[0], word);
                    const kept = &world.disk[@intCast(first + index)];
                    // Whoever overlaps was submitted later and begins later.
                    try testing.expect(words[0] >= kept.*);
                    kept.* = words[0];
                }
                try world.wait(write.ref, first, count);
            },
            .control => |control| {
                world.carried_out += 1;
                const first, const count = .{ control.offset / sector_size, control.length / sector_size };
                if (control.operation == .discard) @memset(world.disk[@intCast(first)..][0..@intCast(count)], 0);
                try world.wait(control.ref, first, count);
            },
            .read => |read| {
                try testing.expect(world.is_stopped);
                try world.link.send(world.now_us, true, world.server.readError(&read, .stopped, &reply).?);
            },
            .probe => |probe| try world.link.answerProbe(world.now_us, &world.server, probe),
            .ready, .report => return error.NotAsked,
        }
    }

    fn wait(world: *World, ref: StreamServer.WriteRef, first: u64, count: u64) !void {
        const delay_us = if (world.class == .edge) 0 else world.prng.below(world.sync_us_max);
        try world.pending.append(testing.allocator, .{
            .ref = ref,
            .at_us = world.now_us + delay_us,
            .first = first,
            .count = count,
        });
    }

    /// One random request, if the device has room for it.
    fn submit(world: *World) !void {
        const tag = for (world.in_use, 0..) |used, index| {
            if (!used) break index;
        } else return;
        const first = world.prng.below(sectors);
        const count = world.prng.between(1, @min(size_max, sectors - first));
        switch (world.prng.below(10)) {
            0 => try world.client.submitFlush(tag),
            1 => {
                try world.client.submitDiscard(tag, first * sector_size, @intCast(count * sector_size));
                @memset(world.expected[@intCast(first)..][0..@intCast(count)], 0);
            },
            else => {
                const bytes = world.buffers[tag][0..@intCast(count * sector_size)];
                @memset(std.mem.bytesAsSlice(u64, bytes), world.stamp_next);
                @memset(world.expected[@intCast(first)..][0..@intCast(count)], world.stamp_next);
                world.stamp_next += 1;
                try world.client.submitWrite(tag, first * sector_size, bytes);
            },
        }
        world.in_use[tag] = true;
    }

    fn run(world: *World, count: u64, kills: u64) !void {
        var submitted: u64 = 0;
        const first_ended = world.ended;
        while (world.ended - first_ended < count) {
            while (submitted < count and world.prng.chance(3, 4)) : (submitted += 1) {
                if (world.full()) break;
                try world.submit();
            }
            if (kills > 0 and world.prng.chance(kills, count)) try world.killEdge();
            const event = try world.nextEvent(if (submitted < count) 2_000 else 60 * std.time.us_per_s) orelse {
                if (submitted == count) return error.StandsStill;
                continue;
            };
            switch (event) {
                .established => {},
                .write_ended => |ended| {
                    try testing.expectEqual(wire.WriteCode.done, ended.code);
                    world.in_use[@intCast(ended.tag)] = false;
                    world.ended += 1;
                },
                else => return error.UnexpectedEvent,
            }
        }
        try testing.expectEqualSlices(u64, &world.expected, &world.disk);
        try testing.expectEqualSlices(u64, &world.expected, &world.durable);
    }

    fn full(world: *const World) bool {
        return std.mem.allEqual(bool, &world.in_use, true);
    }
};

test "writes, discards and flushes end as they were submitted, whatever the link does" {
    for ([_]Link{
        .{ .prng = .init(1) },
        .{ .prng = .init(2), .loss_percent = 20 },
        .{ .prng = .init(3), .duplicate_percent = 50, .jitter_us = 30_000 },
        .{ .prng = .init(4), .loss_percent = 10, .duplicate_percent = 30, .jitter_us = 3_000 },
    }) |link| {
        const world = try World.init(link);
        defer world.deinit();
        try world.run(600, 0);
    }
}

test "copies that come seconds late undo nothing" {
    const world = try World.init(.{ .prng = .init(9) });
    defer world.deinit();
    world.late_percent = 10;
    try world.run(700, 0);
    try world.run(500, 5);
}

test "a way to the edge that swallows large packets, from the begin or later, is found, and left again" {
    for ([_]usize{ 1400, 1300, 548 }, [_]u16{ 1340, 1196, 516 }) |way_size, fragment_size| {
        const world = try World.init(.{ .prng = .init(20 + way_size) });
        defer world.deinit();
        try world.run(100, 0);
        try testing.expectEqual(1440, world.client.writes.fragment_size_max);
        world.way_size = way_size;
        try world.run(100, 0);
        try testing.expectEqual(fragment_size, world.client.writes.fragment_size_max);
        try world.run(100, 2);
        world.way_size = wire.packet_size_ethernet;
        world.now_us += 10 * std.time.us_per_min;
        try world.run(100, 0);
        try testing.expectEqual(1440, world.client.writes.fragment_size_max);
    }
}

test "a device that only writes finds a narrow way within three seconds, without saying hello again" {
    // Of a single fragment that nothing is said of, and of many, whose last one comes or does not.
    for ([_]usize{ 1024, 16384, 16384 + 512, 128 << 10 }, 32..) |size, seed| for ([_]bool{ false, true }) |is_first| {
        const world = try World.init(.{ .prng = .init(seed) });
        defer world.deinit();
        if (is_first) try testing.expect((try world.nextEvent(std.time.us_per_s)).? == .established) else try world.run(20, 0);
        world.way_size = 1000;
        const bytes = try testing.allocator.alignedAlloc(u8, .of(u64), size);
        defer testing.allocator.free(bytes);
        @memset(std.mem.bytesAsSlice(u64, bytes), world.stamp_next);
        try world.client.submitWrite(0, 0, bytes);
        const ended = (try world.nextEvent(3 * std.time.us_per_s) orelse return error.StandsStill).write_ended;
        try testing.expectEqual(wire.WriteCode.done, ended.code);
        try testing.expectEqual(516, world.client.writes.fragment_size_max);
        try testing.expectEqual(0, world.client.statistics.resumptions);
    };
}

test "a disk that takes its time, or takes nothing for a while, is no narrow way" {
    for ([_]bool{ false, true }) |is_refused| {
        const world = try World.init(.{ .prng = .init(30) });
        defer world.deinit();
        try world.run(50, 0);
        if (is_refused) world.takes_from_us = world.now_us + 8 * std.time.us_per_s else world.sync_us_max = 8 * std.time.us_per_s;
        for (0..4) |_| try world.submit();
        while (!std.mem.allEqual(bool, &world.in_use, false)) {
            const event = try world.nextEvent(20 * std.time.us_per_s) orelse return error.StandsStill;
            world.in_use[@intCast(event.write_ended.tag)] = false;
        }
        try testing.expectEqual(1440, world.client.writes.fragment_size_max);
        try testing.expectEqual(0, world.client.statistics.resumptions);
    }
}

test "an edge that says nothing for a while is no narrow way" {
    const world = try World.init(.{ .prng = .init(31) });
    defer world.deinit();
    try world.run(50, 0);
    world.way_size = 0;
    try world.submit();
    try testing.expectEqual(null, try world.nextEvent(5 * std.time.us_per_s));
    world.way_size = wire.packet_size_ethernet;
    while (try world.nextEvent(10 * std.time.us_per_s)) |event| switch (event) {
        .write_ended => |ended| {
            world.in_use[@intCast(ended.tag)] = false;
            break;
        },
        else => {},
    };
    try testing.expectEqual(1440, world.client.writes.fragment_size_max);
    try world.run(50, 0);
}

test "an edge that is killed again and again loses nothing that it has acknowledged" {
    for (0..6) |seed| {
        const world = try World.init(.{ .prng = .init(10 + seed), .loss_percent = 5, .duplicate_percent = 20, .jitter_us = 2_000 });
        defer world.deinit();
        try world.run(250, 8);
    }
}

test "on a clean link each request is carried out once" {
    const world = try World.init(.{ .prng = .init(5) });
    defer world.deinit();
    world.class = .edge;
    try world.run(500, 0);
    try testing.expectEqual(500, world.carried_out);
}

test "a device whose write cache at the edge is gone is told so, and asks for nothing any more" {
    for ([_]?wire.RefuseCode{ null, .cache_lost }) |refusal| {
        const world = try World.init(.{ .prng = .init(6) });
        defer world.deinit();
        world.class = .edge;
        try testing.expect((try world.nextEvent(std.time.us_per_s)).? == .established);
        try world.submit();
        try testing.expect((try world.nextEvent(std.time.us_per_s)).? == .write_ended);
        try world.killEdge();
        // An edge that has made a new one, and an edge that knows that there was one.
        world.cache_id += 1;
        world.no_cache = refusal;
        try world.submit();
        const event = (try world.nextEvent(30 * std.time.us_per_s)).?;
        if (refusal) |code| try testing.expectEqual(code, event.refused) else try testing.expect(event == .cache_lost);
        try testing.expectEqual(null, try world.nextEvent(60 * std.time.us_per_s));
        try testing.expectEqual(null, world.client.deadline());
    }
}

test "a full write cache is an error of the write, and the next one may succeed" {
    const world = try World.init(.{ .prng = .init(7), .loss_percent = 10 });
    defer world.deinit();
    world.full_above = 100;
    const bytes: [8192]u8 = @splat(1);
    try world.client.submitWrite(1, 200 * sector_size, &bytes);
    try world.client.submitWrite(2, 0, &bytes);
    var codes: [3]?wire.WriteCode = @splat(null);
    while (codes[1] == null or codes[2] == null) switch ((try world.nextEvent(10 * std.time.us_per_s)).?) {
        .established => {},
        .write_ended => |ended| codes[@intCast(ended.tag)] = ended.code,
        else => return error.UnexpectedEvent,
    };
    try testing.expectEqual(.cache_full, codes[1]);
    try testing.expectEqual(.done, codes[2]);
}

test "a device that is stopped hears it of what it wrote and of what it reads, whatever is lost, and keeps its session" {
    for (0..20) |seed| {
        const world = try World.init(.{ .prng = .init(40 + seed), .loss_percent = 25, .duplicate_percent = 20, .jitter_us = 3_000 });
        defer world.deinit();
        world.stops = true;
        world.full_above = 100;
        const bytes: [8192]u8 = @splat(1);
        // Before it was full: acknowledged, and it stays so.
        try world.client.submitWrite(1, 0, &bytes);
        while (true) switch ((try world.nextEvent(60 * std.time.us_per_s)).?) {
            .established => {},
            .write_ended => |ended| break try testing.expectEqual(wire.WriteCode.done, ended.code),
            else => return error.UnexpectedEvent,
        };
        try world.client.submitWrite(2, 200 * sector_size, &bytes);
        try world.client.submitWrite(3, 0, &bytes);
        var buffer: [4096]u8 = undefined;
        var codes: [4]?wire.WriteCode = @splat(null);
        var is_read_refused = false;
        while (codes[2] == null or codes[3] == null or !is_read_refused) {
            switch ((try world.nextEvent(60 * std.time.us_per_s)).?) {
                .established => {},
                .write_ended => |ended| {
                    codes[@intCast(ended.tag)] = ended.code;
                    if (ended.tag == 2) try world.client.submit(4, 0, &buffer);
                },
                .read_failed => |failed| {
                    try testing.expectEqual(wire.ReadErrorCode.stopped, failed.code);
                    is_read_refused = true;
                },
                else => return error.UnexpectedEvent,
            }
        }
        try testing.expectEqual(.stopped, codes[2]);
        // It may have been carried out before.
        try testing.expect(codes[3] == .stopped or codes[3] == .done);
        try testing.expectEqual(StreamClient.State.established, world.client.state);
    }
}

test "where the edge keeps no writes it says so" {
    const world = try World.init(.{ .prng = .init(8) });
    defer world.deinit();
    world.class = .device_ram;
    try testing.expect((try world.nextEvent(std.time.us_per_s)).? == .established);
    try world.client.submitFlush(3);
    try testing.expectEqual(wire.WriteCode.no_cache, (try world.nextEvent(std.time.us_per_s)).?.write_ended.code);
}

test "what goes beyond the disk is an error of that write, changes nothing, and the next one succeeds" {
    const world = try World.init(.{ .prng = .init(9) });
    defer world.deinit();
    const before = world.disk;
    const bytes: [1024]u8 = @splat(1);
    const size = sectors * sector_size;
    for ([_]u64{ size - sector_size, size, 1 << 40, std.mem.alignBackward(u64, std.math.maxInt(u64), sector_size) - 1024 }, 1..) |offset, tag| {
        try world.client.submitWrite(tag, offset, &bytes);
        while (true) switch ((try world.nextEvent(10 * std.time.us_per_s)).?) {
            .established => {},
            .write_ended => |ended| break try testing.expectEqual(wire.WriteCode.beyond_the_end, ended.code),
            else => return error.UnexpectedEvent,
        };
    }
    try testing.expectEqual(before, world.disk);
    try testing.expectEqual(0, world.carried_out);
    try world.client.submitWrite(9, size - 1024, &bytes);
    try testing.expectEqual(wire.WriteCode.done, (try world.nextEvent(10 * std.time.us_per_s)).?.write_ended.code);
}
