//! Tests of failover.zig: a device that shows a ticket of another edge of the site.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const fixture = @import("agent_test.zig");
const testing = std.testing;
const Link = fixture.Link;
const Site = fixture.Site;
const uuid = fixture.uuid;
const macOf = fixture.macOf;
const device = fixture.device;

const boot_id = uuid(60);

/// What the other edge sealed 5 s after the device's boot began.
fn ticketOf(site: *const Site) wire.ticket.Ticket {
    return .{
        .boot_id = boot_id.bytes,
        .version_id = uuid(1).bytes,
        .vdisk_id = uuid(30).bytes,
        .device_id = uuid(11).bytes,
        .edge_id = uuid(23).bytes,
        .resume_secret = @splat(6),
        .mac = macOf(1),
        .write_cache = .device_ram,
        .flags = .{ .managed = true },
        .hand_overs = 0,
        .started_unix_ms = site.io.unix_ms,
        .elapsed_us = 5 * std.time.us_per_s,
        .expires_unix_ms = site.io.unix_ms + 1,
        .disk_size = 1 << 20,
    };
}

fn helloOf(ticket: *const wire.ticket.Ticket, nonce: u8) wire.Hello {
    var hello: wire.Hello = .{
        .client_nonce = @splat(nonce),
        .kind = .ticket,
        .ciphers = .{ .clear = true },
        .packet_size_max = wire.packet_size_ethernet,
        .boot_id = ticket.boot_id,
        .client_public = @splat(10),
        .proof = undefined,
        .shown = .{
            .age_us = std.time.us_per_s,
            .ticket = core.stream.ticket.seal(.v1, &fixture.site_key, @splat(11), ticket),
        },
    };
    hello.proof = core.stream.seal.helloProof(&ticket.resume_secret, &hello);
    return hello;
}

test "a good ticket continues the boot, which counts once the device has sent more than HELLO" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    const welcome = try link.sayHello(device, helloOf(&ticketOf(site), 5));
    try testing.expectEqual(1 << 20, welcome.body.welcome.disk_size);
    const ref = site.boots.table.findById(boot_id).?;
    const boot = site.boot(ref);
    try testing.expectEqual(6 * std.time.us_per_s, site.io.now_us - boot.started_us);
    try testing.expect(boot.identity.handle != 0);
    try testing.expect(!boot.failover.?.is_confirmed);
    try testing.expectEqual(0, site.io.reported);
    // It gets a ticket of this edge, for the other one.
    const given = welcome.body.welcome.failover.?;
    try testing.expect(given.edges.constSlice()[0].eql(fixture.other_edge));
    const own = core.stream.ticket.open(&.{fixture.site_key}, &given.ticket).?;
    try testing.expectEqual(uuid(20).bytes, own.edge_id);
    try testing.expectEqual(1, own.hand_overs);
    link.read(&welcome, 1);
    try testing.expect(boot.failover.?.is_confirmed);
    try testing.expect(boot.facts.ip.?.eql(device.ip));
    try testing.expect(site.io.reported > 0);
    try testing.expectEqual(1, site.io.reads);
    site.boots.get(ref).?.changed = false;
    // The same HELLO changes nothing of it.
    _ = try link.sayHello(device, helloOf(&ticketOf(site), 5));
    try testing.expect(site.boot(site.boots.table.findById(boot_id).?).failover.?.is_confirmed);
}

test "a boot that arrives by ticket keeps what is known here of its device's key" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    site.boot(try site.begin(1)).device_identity.state = .{ .known = @splat(7) };
    const welcome = try link.sayHello(device, helloOf(&ticketOf(site), 5));
    try testing.expect(welcome.body == .welcome);
    const boot = site.boot(site.boots.table.findById(boot_id).?);
    try testing.expectEqual(@as([32]u8, @splat(7)), boot.device_identity.state.known);
    const later = site.boot(try site.begin(1));
    try testing.expectEqual(@as([32]u8, @splat(7)), later.device_identity.state.known);
}

test "an unconfirmed boot is forgotten after its time, a confirmed one is not" {
    for ([_]bool{ false, true }) |is_confirmed| {
        const site: *Site = try .withVersion();
        defer site.destroy();
        _ = site.addEdge();
        var link: Link = try .init(site);
        defer link.deinit();
        const welcome = try link.sayHello(device, helloOf(&ticketOf(site), 5));
        if (is_confirmed) link.read(&welcome, 1);
        const limit_us = core.boot.failover.BootFailover.unconfirmed_us_max;
        link.port.tick(site.io.now_us + limit_us - 1);
        try testing.expect(site.boots.table.findById(boot_id) != null);
        link.port.tick(site.io.now_us + limit_us);
        try testing.expectEqual(is_confirmed, site.boots.table.findById(boot_id) != null);
    }
}

test "no boot is continued without site, version or disk of that size, nor before a newer one" {
    const site: *Site = try .create();
    defer site.destroy();
    const version = site.open(1);
    var link: Link = try .init(site);
    defer link.deinit();
    var ticket = ticketOf(site);
    const alone = try link.sayHello(device, helloOf(&ticket, 1));
    try testing.expectEqual(.token_refused, alone.body.refuse.code);
    _ = site.addEdge();
    ticket.expires_unix_ms = site.io.unix_ms;
    const late = try link.sayHello(device, helloOf(&ticket, 2));
    try testing.expectEqual(.token_refused, late.body.refuse.code);
    ticket.expires_unix_ms = site.io.unix_ms + 1;
    ticket.disk_size = 512;
    const other_size = try link.sayHello(device, helloOf(&ticket, 3));
    try testing.expectEqual(.version_missing, other_size.body.refuse.code);
    ticket.disk_size = 1 << 20;
    version.id = uuid(2);
    const missing = try link.sayHello(device, helloOf(&ticket, 4));
    try testing.expectEqual(.version_missing, missing.body.refuse.code);
    version.id = uuid(1);
    // The device has run in a later boot here. That somebody has begun one says nothing.
    site.io.unix_ms += 1;
    const later = try site.begin(1);
    ticket.expires_unix_ms += 1;
    const hinted = try link.sayHello(device, helloOf(&ticket, 6));
    try testing.expect(hinted.body == .welcome);
    site.boots.table.remove(site.boots.table.findById(boot_id).?);
    site.boot(later).stream_was_open = true;
    const newer = try link.sayHello(device, helloOf(&ticket, 5));
    try testing.expectEqual(.token_refused, newer.body.refuse.code);
    try testing.expectEqual(null, site.boots.table.findById(boot_id));
}

test "a ticket that gives a boot to another device is refused" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    var ticket = ticketOf(site);
    _ = try link.sayHello(device, helloOf(&ticket, 1));
    ticket.mac = macOf(2);
    const other = try link.sayHello(device, helloOf(&ticket, 2));
    try testing.expectEqual(.token_refused, other.body.refuse.code);
    const boot = site.boot(site.boots.table.findById(boot_id).?);
    try testing.expect(boot.identity.mac.eql(macOf(1)));
}

test "a device whose writes are elsewhere is sent back, and reported as waiting once" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    var ticket = ticketOf(site);
    ticket.write_cache = .edge;
    for (1..3) |nonce| {
        const refusal = try link.sayHello(device, helloOf(&ticket, @intCast(nonce)));
        try testing.expectEqual(.cache_elsewhere, refusal.body.refuse.code);
        try testing.expectEqual(1, site.io.waiting);
        // Since its boot began: the ticket's time and its age.
        try testing.expectEqual(6 * std.time.us_per_s, site.io.waited_at_us);
    }
    // The ticket does not know, but this edge does.
    ticket.write_cache = .device_ram;
    site.setCache("edge", .stop);
    const kept = try link.sayHello(device, helloOf(&ticket, 3));
    try testing.expectEqual(.cache_elsewhere, kept.body.refuse.code);
    site.setCache("of another year", .stop);
    const unknown = try link.sayHello(device, helloOf(&ticket, 4));
    try testing.expectEqual(.cache_failed, unknown.body.refuse.code);
    try testing.expectEqual(null, site.boots.table.findById(boot_id));
}

test "a boot that failed over further is not taken back by an older ticket" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    var ticket = ticketOf(site);
    ticket.hand_overs = 4;
    try testing.expect((try link.sayHello(device, helloOf(&ticket, 1))).body == .welcome);
    ticket.hand_overs = 3;
    const older = try link.sayHello(device, helloOf(&ticket, 2));
    try testing.expectEqual(.token_refused, older.body.refuse.code);
    ticket.hand_overs = 5;
    try testing.expect((try link.sayHello(device, helloOf(&ticket, 3))).body == .welcome);
    const boot = site.boot(site.boots.table.findById(boot_id).?);
    try testing.expectEqual(6, boot.failover.?.number);
}

test "a device without others to go to gets no ticket" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const alone = try link.open(site.boot(try site.begin(1)));
    try testing.expectEqual(null, alone.body.welcome.failover);
    const other = site.addEdge();
    site.forget(1);
    const next = try link.open(site.boot(try site.begin(1)));
    const given = next.body.welcome.failover.?;
    try testing.expectEqual(1, given.edges.count);
    const own = core.stream.ticket.open(&.{fixture.site_key}, &given.ticket).?;
    try testing.expectEqual(0, own.hand_overs);
    try testing.expectEqual(1 << 20, own.disk_size);
    site.peers.peers[other].is_known = false;
    site.forget(1);
    const later = try link.open(site.boot(try site.begin(1)));
    try testing.expectEqual(null, later.body.welcome.failover);
}

test "the device's next packet confirms the boot: a reconnect on a path that is not known yet" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    try site.publishProfile(4096);
    var link: Link = try .init(site);
    defer link.deinit();
    var hello = helloOf(&ticketOf(site), 5);
    hello.packet_size_max = wire.packet_size_max;
    hello.proof = core.stream.seal.helloProof(&ticketOf(site).resume_secret, &hello);
    const welcome = try link.sayHello(device, hello);
    const boot = site.boot(site.boots.table.findById(boot_id).?);
    try testing.expectEqual(null, boot.facts.cipher);
    try testing.expectEqual(0, site.io.reported);
    // It reads its profile, which begins no phase.
    link.ask(&welcome, 1, .{ .read = .{
        .kind = .profile,
        .version_tag = welcome.body.welcome.version_tag,
        .offset = 0,
        .length = 512,
        .fragment_size = 1024,
    } });
    try testing.expect(boot.failover.?.is_confirmed);
    try testing.expectEqual(1, site.io.reported);
    try testing.expectEqual(1, boot.reconnects);
    try testing.expectEqual(1500, boot.facts.mtu.?);
    try testing.expectEqual(.clear, boot.facts.cipher.?);
}

test "a boot that is not confirmed opens no session with its token" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    const welcome = try link.sayHello(device, helloOf(&ticketOf(site), 5));
    const boot = site.boot(site.boots.table.findById(boot_id).?);
    try testing.expectEqual(.token_refused, (try link.open(boot)).body.refuse.code);
    link.read(&welcome, 1);
    try testing.expect((try link.open(boot)).body == .welcome);
}

test "the same ticket is good again, also for a boot that began at the same time here" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    _ = try site.begin(1);
    for (1..3) |nonce| {
        const answer = try link.sayHello(device, helloOf(&ticketOf(site), @intCast(nonce)));
        try testing.expect(answer.body == .welcome);
        const found = site.boot(site.boots.table.findById(boot_id).?);
        try testing.expectEqual(1, found.failover.?.number);
    }
}

test "handles, tokens and tickets of boots that fail over are drawn, and no handle is even" {
    const site: *Site = try .withVersion();
    defer site.destroy();
    _ = site.addEdge();
    var link: Link = try .init(site);
    defer link.deinit();
    var tickets: [3]wire.ticket.Sealed = undefined;
    var tokens: [3][16]u8 = undefined;
    for (&tickets, &tokens, 61..) |*sealed, *token, number| {
        var ticket = ticketOf(site);
        ticket.boot_id = uuid(@intCast(number)).bytes;
        ticket.mac = macOf(@intCast(number));
        const welcome = try link.sayHello(device, helloOf(&ticket, @intCast(number)));
        sealed.* = welcome.body.welcome.failover.?.ticket;
        const found = site.boot(site.boots.table.findById(uuid(@intCast(number))).?);
        token.* = found.identity.token;
        try testing.expect(found.identity.handle % 2 == 1 and found.identity.handle > 1);
        try testing.expect(!std.mem.eql(u8, token, &@as([16]u8, @splat(0xaa))));
        // What stands first in a sealed ticket is its salt.
        try testing.expect(!std.mem.allEqual(u8, sealed[0..8], 0xaa));
    }
    try testing.expect(!std.mem.eql(u8, &tokens[0], &tokens[1]));
}
