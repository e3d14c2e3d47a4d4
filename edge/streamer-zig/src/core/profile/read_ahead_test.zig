//! Tests of read_ahead.zig against the real edge's side over a link that loses, duplicates, delays
//! and reorders packets: every byte is right, whatever the profile says, and the edge learns what
//! the system used.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const profile = wire.profile;
const StreamServer = @import("../stream/server/server.zig");
const StreamClient = @import("../stream/client/client.zig");
const ReadAhead = @import("read_ahead.zig");
const Trace = @import("trace.zig");
const Link = @import("../stream/test_link.zig").Link;
const testing = std.testing;

const disk_size = (8 << 20) + 4096 + 512;
const boot_id: base.Uuid = .{ .bytes = @splat(0xb0) };
const address: base.Endpoint = .{ .ip = .init(127, 77, 0, 10), .port = 40000 };
const depth = 8;

const World = struct {
    server: StreamServer,
    client: StreamClient,
    ahead: ReadAhead,
    link: Link,
    trace: *Trace,
    now_us: u64 = 1_000_000,
    token_nonce: ?[16]u8 = null,
    document: [profile.document_size_max]u8 = @splat(0),
    document_size: u32 = 0,
    /// How often each block was written.
    generations: [disk_size / 4096 + 1]u8 = @splat(0),
    demand_bytes: u64 = 0,

    fn init(world: *World, link: Link, cache_size: usize) !void {
        const gpa = testing.allocator;
        world.* = .{
            .server = try .init(gpa, .{
                .sessions_max = 4,
                .keys = .{ .cookie = @splat(1), .session = @splat(2), .resumption = @splat(3) },
            }),
            .client = try .init(gpa, .{ .reads_max = depth + ReadAhead.client_places }),
            .ahead = .init(try gpa.create(ReadAhead.Tables), try gpa.alloc(u8, cache_size)),
            .link = link,
            .trace = try gpa.create(Trace),
        };
        world.trace.* = .{};
    }

    fn deinit(world: *World) void {
        const gpa = testing.allocator;
        world.server.deinit(gpa);
        world.client.deinit(gpa);
        gpa.destroy(world.ahead.tables);
        gpa.free(world.ahead.cache);
        gpa.destroy(world.trace);
        world.link.deinit();
    }

    fn setProfile(world: *World, units: []const profile.Unit) void {
        world.document = @splat(0);
        for (units, 0..) |unit, index|
            unit.encode(world.document[profile.head_size +
                index * profile.entry_size ..][0..profile.entry_size]);
        world.document_size = profile.documentSize(units.len);
        profile.seal(world.document[0..world.document_size], @intCast(units.len));
    }

    fn open(world: *World) !void {
        world.client.start(
            world.now_us,
            .{ .boot_id = boot_id, .token = @splat(0x70), .nonce_seed = @splat(0x11) },
        );
        while (try world.next(60_000_000)) |event| if (event == .established) break;
        world.ahead.start(&world.client);
    }

    /// Computes the disk's current content at an offset.
    fn fill(world: *const World, offset: u64, buffer: []u8) void {
        for (buffer, offset..) |*byte, at| {
            const hash: u8 = @truncate((at *% 0x9e3779b97f4a7c15) >> 29);
            byte.* = hash +% world.generations[@intCast(at / 4096)];
        }
    }

    const Done = union(enum) { established, read: u64 };

    /// Runs until a read of the system has ended or `limit_us` has passed.
    fn next(world: *World, limit_us: u64) !?Done {
        const end_us = world.now_us + limit_us;
        while (true) {
            while (world.client.nextEvent()) |event| {
                if (world.ahead.take(&world.client, &event)) continue;
                switch (event) {
                    .read_done => |done| return .{ .read = done.tag },
                    .established => return .established,
                    else => return error.UnexpectedEvent,
                }
            }
            if (world.ahead.nextDone()) |tag| return .{ .read = tag };
            world.ahead.pump(&world.client);
            var out: [wire.sealed_request_size_max]u8 = undefined;
            while (world.client.transmit(world.now_us, &out)) |packet|
                try world.link.send(world.now_us, false, packet);
            const timer_us = world.client.deadline() orelse end_us;
            const flight = world.link.takeFirst();
            const at_us = @min(timer_us, if (flight) |packet| packet.at_us else end_us);
            if (at_us >= end_us) return null;
            world.now_us = @max(world.now_us, at_us);
            const packet = flight orelse continue;
            if (packet.at_us > at_us) {
                try world.link.flights.append(testing.allocator, packet);
                continue;
            }
            const bytes = packet.bytes[0..packet.size];
            if (packet.to_device)
                world.client.receive(world.now_us, bytes)
            else
                try world.serve(bytes);
        }
    }

    fn serve(world: *World, packet: []const u8) !void {
        var reply: StreamServer.ReplyBuffer = undefined;
        switch (world.server.receive(world.now_us, address, packet, &reply)) {
            .reply => |answer| try world.link.send(world.now_us, true, answer),
            .admit => |claim| {
                const admission = world.server.admit(world.now_us, claim, .{ .boot = .{
                    .token = @splat(0x70),
                    .token_nonce = world.token_nonce,
                    .version_id = .{ .bytes = @splat(0xdd) },
                    .disk_size = disk_size,
                    .profile_size = world.document_size,
                } }, &reply);
                if (admission.outcome == .opened) world.token_nonce = claim.hello.client_nonce;
                try world.link.answerHello(world.now_us, &world.server, &admission);
            },
            .read => |read| {
                if (read.kind == .demand and !read.repeated) {
                    world.trace.demand(read.offset, read.length);
                    world.demand_bytes += read.length;
                }
                try world.link.answerRead(world.now_us, &world.server, &read, Source{
                    .world = world,
                    .kind = read.kind,
                });
            },
            .used => |used| for (0..used.units.count()) |index|
                world.trace.used(used.units.at(@intCast(index))),
            .probe => |probe| try world.link.answerProbe(world.now_us, &world.server, probe),
            // A second copy.
            .ignored => {},
            .fetched => {},
            else => return error.UnexpectedStep,
        }
    }

    /// The source of a READ of this kind.
    const Source = struct {
        world: *const World,
        kind: wire.ReadKind,

        pub fn fill(source: Source, offset: u64, buffer: []u8) void {
            if (source.kind != .profile) return source.world.fill(offset, buffer);
            @memcpy(buffer, source.world.document[@intCast(offset)..][0..buffer.len]);
        }
    };

    const Read = struct { offset: u64, length: u32 };

    /// The system reads, `depth` at a time, and every byte is checked.
    fn readAll(world: *World, reads: []const Read) !void {
        const buffers = try testing.allocator.alloc([StreamClient.read_size_max]u8, depth);
        defer testing.allocator.free(buffers);
        const expected = try testing.allocator.create([StreamClient.read_size_max]u8);
        defer testing.allocator.destroy(expected);
        var asked: [depth]Read = undefined;
        var free: std.bit_set.Static(depth) = .full;
        var submitted: usize = 0;
        var done: usize = 0;
        while (done < reads.len) {
            while (submitted < reads.len) {
                const slot = free.findFirstSet() orelse break;
                asked[slot] = reads[submitted];
                @memset(&buffers[slot], 0xee);
                try world.ahead.read(
                    &world.client,
                    slot,
                    asked[slot].offset,
                    buffers[slot][0..asked[slot].length],
                );
                free.unset(slot);
                submitted += 1;
            }
            const event = (try world.next(120_000_000)) orelse return error.Stuck;
            if (event == .established) continue;
            const slot: usize = @intCast(event.read);
            try testing.expect(!free.isSet(slot));
            const read = asked[slot];
            world.fill(read.offset, expected[0..read.length]);
            try testing.expectEqualSlices(
                u8,
                expected[0..read.length],
                buffers[slot][0..read.length],
            );
            free.set(slot);
            done += 1;
        }
    }

    fn settle(world: *World) !void {
        if (try world.next(120_000_000) != null) return error.UnexpectedEvent;
    }
};

fn makeReads(prng: *base.Prng, reads: []World.Read) void {
    for (reads) |*read| {
        const sectors = prng.between(1, if (prng.chance(1, 4)) 256 else 64);
        read.* = .{
            .offset = 512 * prng.below(disk_size / 512 - sectors + 1),
            .length = @intCast(sectors * 512),
        };
    }
}

fn traceOf(reads: []const World.Read, trace: *Trace) void {
    trace.clear();
    for (reads) |read| trace.demand(read.offset, read.length);
}

test "the second boot finds what the first one read, and the edge learns the same from both" {
    var world: World = undefined;
    try world.init(.{ .prng = .init(1) }, 16 << 20);
    defer world.deinit();
    var reads: [60]World.Read = undefined;
    // Not in the order of the disk, and nothing twice.
    for (&reads, 0..) |*read, index| read.* = .{
        .offset = (index * 37 % reads.len) * 33 * 4096,
        .length = @intCast((index % 32 + 1) * 4096),
    };
    const trace = try testing.allocator.create(Trace);
    defer testing.allocator.destroy(trace);
    traceOf(&reads, trace);
    world.setProfile(trace.slice());
    try world.open();
    try world.settle();
    try world.readAll(&reads);
    try testing.expectEqual(0, world.demand_bytes);
    try testing.expectEqual(reads.len, world.ahead.statistics.hits);
    // READY flushes the remaining reports.
    world.client.reportReady(world.now_us, .ready, 1, .{});
    try testing.expectError(error.UnexpectedStep, world.settle());
    const blocks = struct {
        fn of(units: []const profile.Unit) u64 {
            var sum: u64 = 0;
            for (units) |unit| sum += @popCount(unit.blocks);
            return sum;
        }
    };
    try testing.expectEqual(blocks.of(trace.slice()), blocks.of(world.trace.slice()));
    try testing.expectEqual(blocks.of(trace.slice()) * 4096, world.trace.used_bytes);
    for (trace.slice(), 0..) |unit, index|
        if (index < 20) try testing.expectEqual(unit.index, world.trace.slice()[index].index);
}

test "every byte is right with any profile, link and small cache, and no read waits in vain" {
    for (0..12) |seed| {
        var prng: base.Prng = .init(seed);
        var world: World = undefined;
        try world.init(.{
            .prng = .init(seed ^ 77),
            .loss_percent = @intCast(prng.below(20)),
            .duplicate_percent = @intCast(prng.below(20)),
            .jitter_us = prng.below(3000),
        }, ReadAhead.cache_size_min + prng.below(8) * (1 << 20));
        defer world.deinit();
        var reads: [120]World.Read = undefined;
        makeReads(&prng, &reads);
        const trace = try testing.allocator.create(Trace);
        defer testing.allocator.destroy(trace);
        traceOf(&reads, trace);
        // Some of it is missing, some never demanded, some beyond the end of the disk, some listed
        // twice.
        var units: [600]profile.Unit = undefined;
        var count: usize = 0;
        for (trace.slice()) |unit| if (prng.chance(3, 4) and count < 400) {
            units[count] = unit;
            count += 1;
        };
        for (0..100) |_| {
            units[count] =
                .{ .index = @intCast(prng.below(400)), .blocks = @intCast(prng.between(1, 255)) };
            count += 1;
        }
        world.setProfile(units[0..count]);
        try world.open();
        try world.readAll(reads[0..60]);
        if (seed % 3 == 0) world.ahead.stop(&world.client);
        try world.readAll(reads[60..]);
        try testing.expect(world.ahead.statistics.hits + world.ahead.statistics.waits > 0);
        world.ahead.stop(&world.client);
        try world.settle();
        try testing.expect(world.ahead.isIdle());
        try testing.expectEqual(0, world.ahead.slots_used);
        try testing.expectEqual(0, world.client.inFlightBytes());
    }
}

test "data that the system has written is never replaced by what was read ahead" {
    for (0..6) |seed| {
        var prng: base.Prng = .init(seed);
        var world: World = undefined;
        try world.init(.{ .prng = .init(seed), .jitter_us = 2000, .loss_percent = 5 }, 8 << 20);
        defer world.deinit();
        var units: [200]profile.Unit = undefined;
        for (&units, 0..) |*unit, index| unit.* = .{ .index = @intCast(index), .blocks = 0xff };
        world.setProfile(&units);
        try world.open();
        for (0..40) |_| {
            var reads: [4]World.Read = undefined;
            makeReads(&prng, &reads);
            try world.readAll(&reads);
            const first = prng.below(disk_size / 4096 - 40);
            const count = prng.between(1, 40);
            world.ahead.onWrite(first * 4096, count * 4096);
            for (world.generations[@intCast(first)..][0..@intCast(count)]) |*generation|
                generation.* +%= 1;
            try world.readAll(&.{
                .{ .offset = first * 4096, .length = @intCast(4096 * @as(u64, @min(count, 32))) },
            });
        }
        world.ahead.onWrite(0, disk_size);
        try testing.expectEqual(0, world.ahead.slots_used - world.ahead.asked);
    }
}

test "without a profile, or with an invalid one, everything is read on demand" {
    for (0..2) |round| {
        var world: World = undefined;
        try world.init(.{ .prng = .init(3) }, ReadAhead.cache_size_min);
        defer world.deinit();
        if (round == 1) {
            world.document_size = 4096;
            @memset(world.document[0..4096], 0x5a);
        }
        try world.open();
        try world.settle();
        var prng: base.Prng = .init(8);
        var reads: [40]World.Read = undefined;
        makeReads(&prng, &reads);
        try world.readAll(&reads);
        try testing.expectEqual(0, world.ahead.statistics.reads);
        try testing.expectEqual(reads.len, world.ahead.statistics.misses);
        try testing.expect(world.ahead.isIdle());
    }
}
