//! Tests of hello.zig: protection of a session and path MTU discovery, against the real edge's side
//! as in client_test.zig, and each packet of a HELLO and its time, with the device alone.

const std = @import("std");
const wire = @import("wire").stream;
const client_test = @import("client_test.zig");
const stream_seal = @import("../seal.zig");
const RttEstimator = @import("../congestion/rtt.zig");
const StreamClient = @import("client.zig");
const TestDevice = @import("test_device.zig");
const StreamFixture = client_test.StreamFixture;
const disk = client_test.disk;
const testing = std.testing;

test "eavesdroppers learn nothing, and altered, replayed or forged packets are dropped" {
    for ([_]wire.Ciphers{ .{ .aegis_128l = true }, .{ .chacha20_poly1305 = true } }) |ciphers| {
        var fixture: StreamFixture = try .initWith(.{ .prng = .init(14) }, .{ .ciphers = ciphers });
        defer fixture.deinit();
        try fixture.expectEstablished();
        var buffer: [4096]u8 = @splat(0xaa);
        try fixture.client.submit(1, 0, &buffer);
        var out: [wire.sealed_request_size_max]u8 = undefined;
        const request = fixture.client.transmit(fixture.now_us, &out).?;
        try fixture.serve(request);
        // The same request once more is not answered again.
        const sent = fixture.link.flights.items.len;
        try testing.expectEqual(3, sent);
        try fixture.serve(request);
        try testing.expectEqual(1, fixture.server.ignored.get(.stream_replayed));
        var changed: [wire.sealed_request_size_max]u8 = out;
        changed[request.len - 20] ^= 1;
        std.mem.writeInt(u64, changed[8..16], std.mem.readInt(u64, out[8..16], .big) + 5, .big);
        try fixture.serve(changed[0..request.len]);
        try testing.expectEqual(1, fixture.server.ignored.get(.stream_forged));
        try testing.expectEqual(sent, fixture.link.flights.items.len);
        var plain: [1440]u8 = undefined;
        disk.fill(0, &plain);
        var altered: u64 = fixture.client.statistics.ignored;
        for (fixture.link.flights.items) |*flight| {
            const bytes = flight.bytes[0..flight.size];
            try testing.expect(std.mem.find(u8, bytes, plain[0..16]) == null);
            altered += bytes.len;
            for (0..bytes.len) |at| {
                bytes[at] ^= 0x10;
                fixture.client.receive(fixture.now_us, bytes);
                bytes[at] ^= 0x10;
            }
        }
        try testing.expectEqual(altered, fixture.client.statistics.ignored);
        for (fixture.client.readsKept()) |*read| try testing.expectEqual(0, read.received_count);
        // A NO_SESSION of an attacker who does not know the request.
        var forged: [wire.no_session_size]u8 = undefined;
        for ([_]u64{
            1,
            fixture.client.protection.counter_first - 1,
            fixture.client.protection.counter_next,
        }) |id|
            fixture.client.receive(
                fixture.now_us,
                wire.emit(.{ .session_id = id, .body = .no_session }, &forged),
            );
        try testing.expectEqual(.established, fixture.client.state);
        try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
        try testing.expectEqual(0, fixture.client.statistics.retransmits);
        var expected: [buffer.len]u8 = undefined;
        disk.fill(0, &expected);
        try testing.expectEqualSlices(u8, &expected, &buffer);
        // Nothing that has arrived is written again.
        try fixture.client.submit(2, 0, &buffer);
        try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
        const first = fixture.link.flights.items[0];
        fixture.client.receive(fixture.now_us, first.bytes[0..first.size]);
        try testing.expectEqual(1, fixture.client.reads[0].received_count);
        for (0..first.size) |at| {
            var made_up = first;
            made_up.bytes[at] ^= 1;
            fixture.client.receive(fixture.now_us, made_up.bytes[0..first.size]);
        }
        try testing.expectEqualSlices(
            u8,
            expected[0 .. first.size - wire.header_size - wire.tag_size],
            buffer[0 .. first.size - wire.header_size - wire.tag_size],
        );
    }
}

test "a packet longer than any of a device has the wrong size, whoever sealed it" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(16) });
    defer fixture.deinit();
    try fixture.expectEstablished();
    var long: [wire.sealed_request_size_max + 1]u8 = @splat(0);
    long[0..wire.header_size].* = wire.dataHeader(.v2, 1, 1, 0);
    long[1] = @backingInt(wire.Type.write);
    try fixture.serve(&long);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_wrong_size));
    try fixture.serve(long[0..wire.sealed_request_size_max]);
    try testing.expectEqual(1, fixture.server.ignored.get(.stream_forged));
}

test "no two sessions of a boot share keys, even at a restarted edge with the same keys" {
    var fixture: StreamFixture = try .init(.{ .prng = .init(15) });
    defer fixture.deinit();
    var seen: [6][32]u8 = undefined;
    for (&seen, 0..) |*keys, index| {
        if (index % 2 == 1) {
            // Like a clone of a machine: nothing in it is new.
            fixture.server.deinit(testing.allocator);
            fixture.server = try StreamFixture.newServer(1, fixture.sides);
        }
        var buffer: [512]u8 = undefined;
        try fixture.client.submit(1, 0, &buffer);
        while (true) if ((try fixture.nextEvent(30_000_000)).? == .read_done) break;
        keys.* = fixture.client.protection.from_edge.bytes;
        for (seen[0..index]) |*before| try testing.expect(!std.mem.eql(u8, before, keys));
        fixture.client.start(fixture.now_us, blk: {
            var identity = fixture.client.identity;
            identity.session = fixture.client.session;
            identity.nonce_seed[0] +%= 1;
            break :blk identity;
        });
    }
}

test "large packets serve the whole stream, from the first read, where they pass" {
    var fixture: StreamFixture =
        try .initWith(.{ .prng = .init(16) }, .{ .packet_size_max = wire.packet_size_max });
    defer fixture.deinit();
    try fixture.expectEstablished();
    const before = fixture.link.sent_to_device;
    var buffer: [131072]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    try testing.expect((try fixture.nextEvent(1_000_000)).? == .read_done);
    // In two parts, since the window starts at half of that.
    try testing.expectEqual(16, fixture.link.sent_to_device - before);
    try testing.expectEqual(0, fixture.client.statistics.retransmits);
}

test "where large packets vanish the stream uses smaller ones, until large ones pass again" {
    for ([_]u16{ 1472, 1372, 700 }) |narrow| {
        var fixture: StreamFixture =
            try .initWith(.{ .prng = .init(17) }, .{ .packet_size_max = wire.packet_size_max });
        defer fixture.deinit();
        // From the start.
        fixture.link.packet_size_max = @max(narrow, wire.packet_size_ethernet);
        try fixture.expectEstablished();
        try fixture.readMany(20, 4);
        // In the middle.
        fixture.link.packet_size_max = wire.packet_size_max;
        for (0..40) |_| {
            if (fixture.client.path.size == wire.packet_size_max) break;
            try testing.expectEqual(null, try fixture.nextEvent(30_000_000));
        } else return error.StaysNarrow;
        fixture.link.packet_size_max = narrow;
        const begin_us = fixture.now_us;
        try fixture.readMany(20, 4);
        try testing.expect(fixture.client.path.size <= narrow);
        try testing.expect(fixture.now_us - begin_us < 5_000_000);
    }
}

test "a late fragment of the previous size is never accepted as one of the current size" {
    // 37,376 bytes are 27 fragments of 1340 and one of 1196, or 31 of 1196 and a rest: the last
    // fragment of the former looks like one of the latter.
    var fixture: StreamFixture = try .initWith(
        .{ .prng = .init(18) },
        .{ .ciphers = .{ .clear = true }, .packet_size_max = 1372 },
    );
    defer fixture.deinit();
    try fixture.expectEstablished();
    var buffer: [37376]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    const late = fixture.link.flights.items[27];
    try testing.expectEqual(wire.header_size + 1196, late.size);
    fixture.link.flights.clearRetainingCapacity();
    while (fixture.client.path.size == 1372) : (fixture.now_us += 500) {
        // From here on only small packets pass.
        while (fixture.client.transmit(fixture.now_us, &out)) |packet| try fixture.serve(packet);
        for (fixture.link.flights.items) |*flight| {
            if (flight.size <= wire.packet_size_min)
                fixture.client.receive(fixture.now_us, flight.bytes[0..flight.size]);
        }
        fixture.link.flights.clearRetainingCapacity();
    }
    try testing.expectEqual(1228, fixture.client.path.size);
    fixture.link.packet_size_max = 1228;
    fixture.client.receive(fixture.now_us, late.bytes[0..late.size]);
    try testing.expect((try fixture.nextEvent(10_000_000)).? == .read_done);
    var expected: [buffer.len]u8 = undefined;
    disk.fill(0, &expected);
    try testing.expectEqualSlices(u8, &expected, &buffer);
}

test "a read requested on a wide path is requested in smaller packets when the path narrows" {
    var fixture: StreamFixture = try .initWith(
        .{ .prng = .init(12), .packet_size_max = wire.packet_size_ethernet },
        .{ .packet_size_max = wire.packet_size_max },
    );
    defer fixture.deinit();
    try fixture.expectEstablished();
    try testing.expectEqual(wire.packet_size_ethernet, fixture.client.path.size);
    fixture.link.packet_size_max = 700;
    var buffer: [32 << 10]u8 = undefined;
    try fixture.client.submit(1, 0, &buffer);
    try testing.expectEqual(null, try fixture.nextEvent(1_000));
    // The answer to an earlier probe, arriving late.
    fixture.client.path.onProven(wire.packet_size_max);
    try testing.expect((try fixture.nextEvent(60 * std.time.us_per_s)).? == .read_done);
    try testing.expectEqual(wire.packet_size_min, fixture.client.path.size);
}

test "HELLO is sent at once and then ever more rarely, and names the boot and what it accepts" {
    var device: TestDevice = try .init(.{ .packet_size_max = 8000 });
    defer device.deinit();
    try testing.expectEqual(device.now_us, device.client.deadline());
    const first = (try device.next()).?;
    try testing.expectEqual(0, first.session_id);
    const hello = first.body.hello;
    try testing.expectEqual(.token, hello.kind);
    try testing.expectEqual(8000, hello.packet_size_max);
    try testing.expectEqual(TestDevice.boot_id.bytes, hello.boot_id);
    try testing.expectEqual(wire.Ciphers{ .clear = true }, hello.ciphers);
    const token = TestDevice.identity().token;
    try testing.expectEqual(stream_seal.helloProof(&token, &hello), hello.proof);
    try testing.expectEqual(@as([32]u8, @splat(0)), hello.cookie);
    for ([_]u64{ 200, 400, 800, 1000, 1000 }) |wait_ms| {
        try device.expectNothingUntil(device.now_us + wait_ms * std.time.us_per_ms);
        try testing.expectEqual(hello, (try device.next()).?.body.hello);
    }
    try testing.expectEqual(6, device.client.statistics.packets_out);
    try testing.expectEqual(6 * wire.hello_size, device.client.statistics.bytes_out);
}

test "without a choice of its own a device offers all ciphers of this program and no clear text" {
    var client: StreamClient = try .init(testing.allocator, .{});
    defer client.deinit(testing.allocator);
    client.start(1, TestDevice.identity());
    var out: [wire.sealed_request_size_max]u8 = undefined;
    const hello = (try wire.parse(client.transmit(1, &out).?)).body.hello;
    try testing.expectEqual(stream_seal.ownCiphers(), hello.ciphers);
    try testing.expect(!hello.ciphers.clear);
}

test "a cookie is shown at once, by one HELLO, and gives a sample if it answers one HELLO" {
    for ([_]u32{ 1, 2 }) |hellos| {
        var device: TestDevice = try .init(.{});
        defer device.deinit();
        var hello = (try device.next()).?.body.hello;
        if (hellos == 2) {
            device.now_us += 200_000;
            hello = (try device.next()).?.body.hello;
        }
        device.now_us += 3000;
        var foreign = hello;
        foreign.client_nonce[0] ^= 1;
        try device.expectIgnored(TestDevice.cookieOf(&foreign));
        try device.expectNothing();
        try testing.expect(!device.client.rtt.sampled);
        try device.expectTaken(TestDevice.cookieOf(&hello));
        try testing.expectEqual(hellos == 1, device.client.rtt.sampled);
        if (hellos == 1) try testing.expectEqual(3000, device.client.rtt.srtt_us);
        const shown = (try device.next()).?.body.hello;
        try testing.expectEqual(@as([32]u8, @splat(0xc0)), shown.cookie);
        try testing.expectEqual(hello.client_nonce, shown.client_nonce);
        try testing.expectEqual(hello.proof, shown.proof);
        device.now_us += 1000;
        try device.expectTaken(TestDevice.cookieOf(&hello));
        // The HELLO with the cookie is the second or third: its timeout has doubled as often.
        const wait_ms: u64 = if (hellos == 1) 400 else 800;
        try device.expectNothingUntil(device.now_us - 1000 + wait_ms * std.time.us_per_ms);
        try testing.expectEqual(shown, (try device.next()).?.body.hello);
        // Which of the two is answered is unknown.
        device.now_us += 5000;
        const srtt_us = device.client.rtt.srtt_us;
        try device.expectTaken(TestDevice.welcomeOf(&shown, TestDevice.welcome_usual));
        try testing.expectEqual(srtt_us, device.client.rtt.srtt_us);
        try testing.expectEqual(.established, device.client.state);
        try device.expectIgnored(TestDevice.cookieOf(&hello));
    }
}

test "a busy edge is asked again after a second, and any other refusal ends the boot" {
    for (std.enums.values(wire.RefuseCode)) |code| {
        // Version 2 does not have it.
        if (code == .identity_refused) continue;
        var device: TestDevice = try .init(.{});
        defer device.deinit();
        const hello = (try device.next()).?.body.hello;
        device.now_us += 100;
        var foreign = hello;
        foreign.client_nonce[15] ^= 1;
        try device.expectIgnored(TestDevice.refusalOf(&foreign, code));
        try device.expectTaken(TestDevice.refusalOf(&hello, code));
        if (code == .busy) {
            try testing.expectEqual(null, device.client.nextEvent());
            try device.expectNothingUntil(device.now_us + RttEstimator.rto_us_max);
            try testing.expectEqual(hello, (try device.next()).?.body.hello);
            continue;
        }
        try testing.expectEqual(code, device.client.nextEvent().?.refused);
        try testing.expectEqual(null, device.client.nextEvent());
        try testing.expectEqual(.ended, device.client.state);
        try testing.expectEqual(null, device.client.deadline());
        device.now_us += std.time.us_per_hour;
        try device.expectNothing();
        try device.expectIgnored(TestDevice.refusalOf(&hello, code));
        try device.expectIgnored(TestDevice.welcomeOf(&hello, TestDevice.welcome_usual));
        try testing.expectEqual(.ended, device.client.state);
        device.client.onUnreachable(device.now_us);
        try device.expectNothing();
    }
}

test "a session has what WELCOME says, within the device's own limits" {
    var device: TestDevice = try .init(.{ .outstanding_bytes_max = 512 << 10 });
    defer device.deinit();
    var welcome = TestDevice.welcome_usual;
    welcome.profile_size = 4096;
    welcome.write_cache = .edge;
    welcome.write_cache_size = 1 << 30;
    welcome.write_cache_id = 77;
    welcome.fragment_size = 1000;
    try device.open(welcome);
    try testing.expectEqual(StreamClient.Session{
        .id = TestDevice.session_id,
        .cipher = .clear,
        .version_tag = TestDevice.version_tag,
        .version_id = .{ .bytes = @splat(0xdd) },
        .disk_size = 4 << 20,
        .fragment_size = 1000,
        .outstanding_bytes_max = 512 << 10,
        .resume_secret = @splat(0x5e),
        .write_cache = .edge,
        .write_cache_size = 1 << 30,
        .write_cache_id = 77,
        .profile_size = 4096,
        .edge = TestDevice.edge,
        .failover = null,
        .welcomed_at_us = device.now_us,
    }, device.client.session.?);
    try testing.expectEqual(1000, device.client.fragmentSize());
    const opened = device.client.nextEvent().?.established;
    try testing.expect(!opened.resumed and !opened.moved);
    try testing.expectEqual(null, device.client.nextEvent());
    try testing.expectEqual(0, device.client.statistics.resumptions);
    try testing.expectEqual(TestDevice.round_trip_us, device.client.rtt.srtt_us);
    // The edge's limit counts where it is lower.
    var second: TestDevice = try .init(.{});
    defer second.deinit();
    welcome.outstanding_bytes_max = 256 << 10;
    try second.open(welcome);
    try testing.expectEqual(256 << 10, second.client.session.?.outstanding_bytes_max);
}

test "a WELCOME that is cut, foreign, not offered or too large for the device opens nothing" {
    var device: TestDevice = try .init(.{ .packet_size_max = 1000 });
    defer device.deinit();
    const first = (try device.next()).?.body.hello;
    try device.expectTaken(TestDevice.cookieOf(&first));
    const hello = (try device.next()).?.body.hello;
    var welcome = TestDevice.welcome_usual;
    welcome.fragment_size = 1000 - wire.header_size - wire.tag_size;
    var bytes: [wire.packet_size_max]u8 = undefined;
    const whole = wire.emit(TestDevice.welcomeOf(&hello, welcome), &bytes);
    for ([_]usize{ wire.header_size, wire.welcome_size_known, wire.welcome_size - 1 }) |size|
        device.client.receive(device.now_us, whole[0..size]);
    try testing.expectEqual(3, device.client.statistics.ignored);
    // An unknown cipher, a key that gives every edge the same secret, and no disk.
    const cipher_at = wire.header_size + 16 + 32;
    const disk_size_at = wire.welcome_size_known + 8;
    for ([_]struct { usize, u8 }{
        .{ cipher_at, 0xff },
        .{ cipher_at, @backingInt(wire.Cipher.chacha20_poly1305) },
        .{ disk_size_at + 5, 0 },
    }) |change| {
        var changed = bytes;
        changed[change[0]] = change[1];
        device.client.receive(device.now_us, changed[0..whole.len]);
    }
    try testing.expectEqual(6, device.client.statistics.ignored);
    var foreign = hello;
    foreign.client_nonce[7] ^= 1;
    try device.expectIgnored(TestDevice.welcomeOf(&foreign, welcome));
    welcome.fragment_size += 1;
    try device.expectIgnored(TestDevice.welcomeOf(&hello, welcome));
    welcome.fragment_size -= 1;
    device.client.greeting.hello.ciphers = .{ .aegis_128l = true, .chacha20_poly1305 = true };
    try device.expectIgnored(TestDevice.welcomeOf(&hello, welcome));
    device.client.greeting.hello.ciphers = .{ .clear = true };
    try testing.expectEqual(.greeting, device.client.state);
    try testing.expectEqual(null, device.client.nextEvent());
    try device.expectTaken(TestDevice.welcomeOf(&hello, welcome));
    try testing.expect(device.client.nextEvent().? == .established);
    // A second copy is of this boot and changes nothing.
    const opened = device.client.session.?;
    welcome.disk_size *= 2;
    try device.expectTaken(TestDevice.welcomeOf(&hello, welcome));
    try testing.expectEqual(opened, device.client.session.?);
    try testing.expectEqual(null, device.client.nextEvent());
}

test "each cipher that a device offers opens a session, and no other does" {
    const all = [_]wire.Ciphers{ .{ .aegis_128l = true }, .{ .chacha20_poly1305 = true } };
    for (all) |chosen| for (all) |offered| {
        var fixture: StreamFixture = try .initWith(.{ .prng = .init(3) }, .{ .ciphers = chosen });
        defer fixture.deinit();
        fixture.client.options.ciphers = offered;
        fixture.client.start(fixture.now_us, fixture.client.identity);
        const event = (try fixture.nextEvent(1_000_000)).?;
        if (std.meta.eql(chosen, offered))
            try testing.expect(event == .established)
        else
            try testing.expectEqual(.no_cipher, event.refused);
    };
    // An edge that takes a cipher which was not offered is not believed.
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(3) }, .{ .ciphers = all[1] });
    defer fixture.deinit();
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    const cookie = fixture.link.takeFirst().?;
    fixture.client.receive(fixture.now_us, cookie.bytes[0..cookie.size]);
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    const welcome = fixture.link.takeFirst().?;
    const offered = fixture.client.greeting.hello.ciphers;
    for ([_]wire.Ciphers{ .{ .clear = true }, .{ .aegis_128l = true } }) |others| {
        fixture.client.greeting.hello.ciphers = others;
        fixture.client.receive(fixture.now_us, welcome.bytes[0..welcome.size]);
        try testing.expectEqual(.greeting, fixture.client.state);
    }
    fixture.client.greeting.hello.ciphers = offered;
    var forged = welcome;
    forged.bytes[forged.size - 1] ^= 1;
    const ignored = fixture.client.statistics.ignored;
    fixture.client.receive(fixture.now_us, forged.bytes[0..forged.size]);
    try testing.expectEqual(ignored + 1, fixture.client.statistics.ignored);
    try testing.expectEqual(.greeting, fixture.client.state);
    fixture.client.receive(fixture.now_us, welcome.bytes[0..welcome.size]);
    try testing.expectEqual(.established, fixture.client.state);
}

test "a resumption into another version, disk or lost write cache ends the boot, and no other" {
    const End = enum { no, version, lost };
    const Case = struct { welcome: wire.Welcome, wrote: bool = false, ends: End };
    const overflow = withCache(.device_ram_overflow, 5);
    const befores = [_]wire.Welcome{ TestDevice.welcome_usual, withCache(.edge, 5), overflow };
    const other_tag = TestDevice.version_tag + 1;
    const other_id: [16]u8 = @splat(1);
    const cases = [befores.len][]const Case{
        &.{
            .{ .welcome = befores[0], .ends = .no },
            .{ .welcome = with(befores[0], "version_tag", other_tag), .ends = .version },
            .{ .welcome = with(befores[0], "version_id", other_id), .ends = .version },
            .{ .welcome = with(befores[0], "disk_size", 8 << 20), .ends = .version },
            .{ .welcome = withCache(.edge, 5), .ends = .lost },
        },
        &.{
            .{ .welcome = withCache(.edge, 5), .wrote = true, .ends = .no },
            .{ .welcome = withCache(.edge, 6), .ends = .lost },
            .{ .welcome = withCache(.edge_persistent, 5), .ends = .lost },
            .{ .welcome = overflow, .ends = .lost },
            .{ .welcome = TestDevice.welcome_usual, .ends = .lost },
        },
        &.{
            .{ .welcome = overflow, .wrote = true, .ends = .no },
            .{ .welcome = withCache(.device_ram_overflow, 6), .ends = .no },
            .{ .welcome = withCache(.device_ram_overflow, 6), .wrote = true, .ends = .lost },
            .{ .welcome = withCache(.edge, 5), .ends = .lost },
            .{ .welcome = withCache(.edge, 6), .ends = .lost },
        },
    };
    for (befores, cases) |before, some| for (some) |case| {
        var device: TestDevice = try .init(.{ .writes_max = 1 });
        defer device.deinit();
        try device.open(before);
        _ = device.client.nextEvent();
        if (case.wrote) try device.client.submitFlush(1);
        const session = device.client.session;
        device.client.start(device.now_us, blk: {
            var identity = TestDevice.identity();
            identity.session = session;
            break :blk identity;
        });
        if (case.wrote) try device.client.submitFlush(1);
        const greeting = device.client.greeting;
        try testing.expectEqual(.resumption, greeting.kind);
        try testing.expectEqual(
            stream_seal.helloProof(&device.client.session.?.resume_secret, &greeting.hello),
            greeting.hello.proof,
        );
        try device.open(case.welcome);
        const event = device.client.nextEvent().?;
        const resumptions = device.client.statistics.resumptions;
        switch (case.ends) {
            .no => try testing.expect(event.established.resumed and !event.established.moved),
            .version => try testing.expect(event == .version_changed),
            .lost => try testing.expect(event == .cache_lost),
        }
        try testing.expectEqual(@intFromBool(case.ends == .no), resumptions);
        try testing.expectEqual(0, device.client.statistics.failovers);
        try testing.expectEqual(null, device.client.nextEvent());
        const state: StreamClient.State = if (case.ends == .no) .established else .ended;
        try testing.expectEqual(state, device.client.state);
    };
}

fn with(welcome: wire.Welcome, comptime field: []const u8, value: anytype) wire.Welcome {
    var changed = welcome;
    @field(changed, field) = value;
    return changed;
}

fn withCache(class: wire.WriteCacheClass, id: u64) wire.Welcome {
    var welcome = TestDevice.welcome_usual;
    welcome.write_cache = class;
    welcome.write_cache_id = id;
    welcome.write_cache_size = 1 << 20;
    return welcome;
}

test "a proof of a large size that arrives after the session is open makes the reads large" {
    const sides: @FieldType(StreamFixture, "sides") = .{ .packet_size_max = wire.packet_size_max };
    var fixture: StreamFixture = try .initWith(.{ .prng = .init(16) }, sides);
    defer fixture.deinit();
    var out: [wire.sealed_request_size_max]u8 = undefined;
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    const cookie = fixture.link.takeFirst().?;
    fixture.client.receive(fixture.now_us, cookie.bytes[0..cookie.size]);
    try fixture.serve(fixture.client.transmit(fixture.now_us, &out).?);
    var proof = fixture.link.takeFirst().?;
    const welcome = fixture.link.takeFirst().?;
    try testing.expectEqual(wire.packet_size_max, proof.size);
    fixture.client.receive(fixture.now_us, welcome.bytes[0..welcome.size]);
    try testing.expectEqual(wire.packet_size_ethernet, fixture.client.path.size);
    // A forged one proves nothing.
    proof.bytes[proof.size - 1] ^= 1;
    fixture.client.receive(fixture.now_us, proof.bytes[0..proof.size]);
    try testing.expectEqual(1, fixture.client.statistics.ignored);
    try testing.expectEqual(wire.packet_size_ethernet, fixture.client.path.size);
    proof.bytes[proof.size - 1] ^= 1;
    fixture.client.receive(fixture.now_us, proof.bytes[0..proof.size]);
    try testing.expectEqual(1, fixture.client.statistics.ignored);
    try testing.expectEqual(wire.packet_size_max, fixture.client.path.size);
    try testing.expect(fixture.client.nextEvent().? == .established);
    try testing.expectEqual(null, fixture.client.nextEvent());
}

test "in a new session everything that waits is sent at once: the read, READY and the report" {
    var device: TestDevice = try .initOpen(.{});
    defer device.deinit();
    var buffer: [512]u8 = undefined;
    try device.client.submit(1, 0, &buffer);
    const asked = (try device.nextRead()).?;
    device.client.reportReady(device.now_us, .ready, 5, .{});
    device.client.report(device.now_us, .{ .uptime_us = 6 });
    const ready = (try device.next()).?;
    try testing.expectEqual(5, ready.body.ready.uptime_us);
    const report = (try device.next()).?;
    try testing.expectEqual(6, report.body.report.uptime_us);
    try device.expectNothing();
    device.now_us += 10;
    // The edge has restarted.
    try device.expectIgnored(.{ .session_id = TestDevice.session_id + 1, .body = .no_session });
    try device.expectTaken(.{ .session_id = TestDevice.session_id, .body = .no_session });
    try testing.expectEqual(.greeting, device.client.state);
    try device.open(TestDevice.welcome_usual);
    try testing.expect(device.client.nextEvent().?.established.resumed);
    try testing.expectEqual(device.now_us, device.client.waiting_since_us);
    const again = (try device.nextRead()).?;
    try testing.expectEqual(asked.request_id, again.request_id);
    try testing.expectEqual(1, again.attempt);
    try testing.expectEqual(ready.request_id, (try device.next()).?.request_id);
    try testing.expectEqual(report.request_id, (try device.next()).?.request_id);
    // And all of them again after the timeout of the new session's samples.
    try device.expectNothingUntil(device.now_us + TestDevice.timeout_us);
    try testing.expectEqual(asked.request_id, (try device.nextRead()).?.request_id);
    try testing.expectEqual(ready.request_id, (try device.next()).?.request_id);
    // The report's own timeout has doubled.
    const now_us = device.now_us;
    device.now_us = now_us + TestDevice.timeout_us - 1;
    try device.expectNothing();
    device.now_us += 1;
    try testing.expectEqual(report.request_id, (try device.next()).?.request_id);
}

test "no two HELLOs share a nonce or a key, and no nonce says anything about a key" {
    var device: TestDevice = try .init(.{});
    defer device.deinit();
    const client = &device.client;
    var seen: [8][32]u8 = undefined;
    for (0..4) |round| {
        if (round == 2) {
            // Another boot.
            var identity = TestDevice.identity();
            identity.nonce_seed[31] ^= 1;
            client.start(device.now_us, identity);
        }
        const greeting = &client.greeting;
        seen[2 * round] = greeting.pair.secret;
        seen[2 * round + 1] = greeting.pair.public;
        try testing.expectEqual(greeting.nonce, greeting.hello.client_nonce);
        try testing.expectEqual(greeting.pair.public, greeting.hello.client_public);
        try testing.expect(!std.mem.eql(u8, &greeting.nonce, greeting.pair.secret[0..16]));
        for (seen[0 .. 2 * round]) |*before| {
            for (seen[2 * round ..][0..2]) |*now| try testing.expect(!std.mem.eql(u8, before, now));
        }
        try device.open(TestDevice.welcome_usual);
        try device.expectTaken(.{ .session_id = TestDevice.session_id, .body = .no_session });
    }
}

test "a device whose edge has forgotten it asks that edge first, for half a second" {
    var device = try TestDevice.initWithOthers(.{});
    defer device.deinit();
    const client = &device.client;
    // Long after the last turn of any edge.
    device.now_us += 20 * std.time.us_per_s;
    try device.expectTaken(.{ .session_id = TestDevice.session_id, .body = .no_session });
    const began_us = device.now_us;
    try testing.expectEqual(.resumption, (try device.next()).?.body.hello.kind);
    try device.expectNothingUntil(began_us + 200_000);
    _ = (try device.next()).?;
    try device.expectNothingUntil(began_us + 500_000);
    const hello = (try device.next()).?.body.hello;
    try testing.expectEqual(.ticket, hello.kind);
    try testing.expect(client.failover.current.eql(TestDevice.others[0]));
}

test "both answers of a HELLO are samples of the round trip if each was sent once" {
    var device: TestDevice = try .init(.{});
    defer device.deinit();
    const first = (try device.next()).?.body.hello;
    device.now_us += 200;
    try device.expectTaken(TestDevice.cookieOf(&first));
    const second = (try device.next()).?.body.hello;
    device.now_us += 1000;
    try device.expectTaken(TestDevice.welcomeOf(&second, TestDevice.welcome_usual));
    try testing.expectEqual((7 * 200 + 1000) / 8, device.client.rtt.srtt_us);
}

test "only a resumption that its own edge refuses by its token is followed by a ticket" {
    const codes = [_]wire.RefuseCode{ .token_refused, .version_missing };
    const both = [_]bool{ false, true };
    for (codes) |code| for (both) |has_others| for (both) |writes| {
        var device: TestDevice =
            if (has_others) try .initWithOthers(.{}) else try .initOpen(.{});
        defer device.deinit();
        const client = &device.client;
        if (writes) client.session.?.write_cache = .edge;
        try device.expectTaken(.{ .session_id = TestDevice.session_id, .body = .no_session });
        const hello = (try device.next()).?.body.hello;
        try testing.expectEqual(.resumption, hello.kind);
        try device.expectTaken(TestDevice.refusalOf(&hello, code));
        if (code != .token_refused or !has_others or writes) {
            try testing.expectEqual(code, client.nextEvent().?.refused);
            continue;
        }
        const shown = (try device.next()).?.body.hello;
        try testing.expectEqual(.ticket, shown.kind);
        try testing.expect(client.failover.current.eql(TestDevice.edge));
        // And only once.
        try device.expectTaken(TestDevice.refusalOf(&shown, code));
        try testing.expectEqual(code, client.nextEvent().?.refused);
    };
}
