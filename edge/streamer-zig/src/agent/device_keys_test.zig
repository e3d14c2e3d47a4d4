//! Tests of device_keys.zig: what a device's key opens, and what forged claims of one get.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const fixture = @import("agent_test.zig");
const device_keys = @import("device_keys.zig");
const write_caches = @import("write_caches.zig");
const testing = std.testing;
const Site = fixture.Site;
const Link = fixture.Link;
const KeyPair = base.ecdsa_p256.KeyPair;
const device_signature = core.stream.device_signature;

const attacker: base.Endpoint = .{ .ip = .init(10, 77, 0, 66), .port = 40000 };
const Policy = @typeInfo(@FieldType(@FieldType(Site, "state"), "keyPolicies")).pointer.child;

fn keyOf(seed: u8) KeyPair {
    return KeyPair.generateDeterministic(@splat(seed)) catch unreachable;
}

fn fingerprintOf(seed: u8) [32]u8 {
    return device_signature.fingerprintOf(&keyOf(seed).public_key);
}

/// What a HELLO says of the device's key, made when the cookie is known.
const Claim = union(enum) {
    none,
    /// The key of this seed signs.
    signed: u8,
    /// The first key is named, and the second one signs.
    signed_by: struct { named: u8, signer: u8 },
    /// Key and signature of another HELLO.
    replayed: struct { key: wire.DeviceKey, signature: wire.DeviceSignature },
};

const Greeting = struct {
    from: base.Endpoint = fixture.device,
    nonce: u32 = 5,
    claim: Claim,
};

/// Sends HELLO of version 3 with its cookie round trip; returns the answer, and keeps the HELLO.
fn greet(
    link: *Link,
    boot: *const core.boot.Boot,
    said: Greeting,
    kept: ?*wire.Hello,
) !wire.Packet {
    var hello: wire.Hello = .{
        .version = .v3,
        .client_nonce = @splat(0),
        .kind = .token,
        .ciphers = .{ .clear = true },
        .packet_size_max = wire.packet_size_ethernet,
        .boot_id = boot.identity.id.bytes,
        .client_public = @splat(9),
        .proof = @splat(0),
    };
    std.mem.writeInt(u32, hello.client_nonce[0..4], said.nonce, .big);
    hello.proof = core.stream.seal.helloProof(&boot.identity.token, &hello);
    link.send(said.from, .{ .version = .v3, .body = .{ .hello = hello } });
    hello.cookie = (try link.answer()).body.cookie.cookie;
    switch (said.claim) {
        .none => {},
        .signed => |seed| signAs(&hello, keyOf(seed).public_key, seed),
        .signed_by => |keys| signAs(&hello, keyOf(keys.named).public_key, keys.signer),
        .replayed => |copy| {
            hello.device_key = copy.key;
            hello.signature = copy.signature;
        },
    }
    hello.proof = core.stream.seal.helloProof(&boot.identity.token, &hello);
    if (kept) |place| place.* = hello;
    link.send(said.from, .{ .version = .v3, .body = .{ .hello = hello } });
    while (link.site.io.nextWork()) |work| link.port.endWork(work, link.site.io.now_us);
    return link.answer();
}

fn signAs(hello: *wire.Hello, named: wire.DeviceKey, signer: u8) void {
    hello.device_key = named;
    const transcript = device_signature.transcriptOf(hello);
    hello.signature = keyOf(signer).sign(&device_signature.digestOf(&transcript));
}

/// The machine is off for longer than a running one is silent.
fn turnOff(link: *Link, boot: *const core.boot.Boot) void {
    link.port.server.forget(boot.identity.id);
    link.site.io.now_us += 2 * write_caches.heard_us;
}

fn expectRefused(answer: wire.Packet) !void {
    try testing.expectEqual(.identity_refused, answer.body.refuse.code);
}

/// Device 1 has a write cache that outlives its boots, and its collection has this policy.
fn privateSite(policy: *const [1]Policy) !*Site {
    const site: *Site = try .withVersion();
    errdefer site.destroy();
    try site.addCaches("edge_persistent");
    site.state.keyPolicies = policy;
    site.devices[0].keyPolicy = 0;
    return site;
}

const accept_first = [1]Policy{.{ .learn = "accept_first", .without = "shared" }};
const approve = [1]Policy{.{ .learn = "approve", .without = "shared" }};
const lenient = [1]Policy{.{ .learn = "accept_first", .without = "everything" }};

test "the first key is the device's, in all its later boots, and no other opens what is private" {
    const site = try privateSite(&accept_first);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    const welcome = try greet(&link, first, .{ .claim = .{ .signed = 1 } }, null);
    try testing.expectEqual(.edge_persistent, welcome.body.welcome.write_cache);
    try testing.expectEqual(.key_known, first.device_key.?.label);
    try testing.expectEqual(fingerprintOf(1), first.device_key.?.key.?);
    try testing.expect(site.boots.caches.find(first.identity.id) != null);
    turnOff(&link, first);
    const second = site.boot(try site.begin(1));
    try testing.expectEqual(fingerprintOf(1), second.device_identity.state.known);
    // A HELLO from elsewhere explains nothing of the device's boot.
    const elsewhere: Greeting = .{ .from = attacker, .claim = .{ .signed = 2 } };
    try expectRefused(try greet(&link, second, elsewhere, null));
    try testing.expectEqual(null, second.suspicion);
    second.facts.ip = fixture.device.ip;
    second.facts.is_ip_confirmed = true;
    const Label = core.site.DeviceIdentity.Label;
    const labels = [_]Label{ .key_missing, .key_changed, .signature_invalid };
    const forged: Claim = .{ .signed_by = .{ .named = 1, .signer = 2 } };
    for ([_]Claim{ .none, .{ .signed = 2 }, forged }, labels, 6..) |claim, label, nonce| {
        const said: Greeting = .{ .nonce = @intCast(nonce), .claim = claim };
        try expectRefused(try greet(&link, second, said, null));
        try testing.expectEqual(label, second.device_key.?.label);
        try testing.expectEqual(null, site.boots.caches.find(second.identity.id));
        try testing.expectEqual(.identity_refused, second.suspicion.?.cause);
        try testing.expect(second.suspicion.?.text.size > 0);
    }
    const own = try greet(&link, second, .{ .nonce = 9, .claim = .{ .signed = 1 } }, null);
    try testing.expect(own.body == .welcome);
}

test "a key that nobody has approved opens nothing private until a person approves it" {
    const site = try privateSite(&approve);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    try expectRefused(try greet(&link, boot, .{ .claim = .{ .signed = 1 } }, null));
    try testing.expectEqual(.key_waits, boot.device_key.?.label);
    try testing.expectEqual(fingerprintOf(1), boot.device_key.?.key.?);
    const approved = core.uplink.key_text.write(fingerprintOf(1));
    site.devices[0].key = &approved;
    site.devices[0].keyRevision = 1;
    const welcome = try greet(&link, boot, .{ .nonce = 6, .claim = .{ .signed = 1 } }, null);
    try testing.expect(welcome.body == .welcome);
    try testing.expectEqual(.key_known, boot.device_key.?.label);
    try testing.expectEqual(1, boot.device_key.?.revision);
}

test "a device that the state no longer lists opens nothing private in the boot that it began" {
    for ([_]Claim{ .none, .{ .signed = 1 } }) |claim| {
        const site = try privateSite(&lenient);
        defer site.destroy();
        var link: Link = try .init(site);
        defer link.deinit();
        const boot = site.boot(try site.begin(1));
        site.state.devices = &.{};
        site.boots.policy = try .init(site.arena.allocator(), &site.state);
        try expectRefused(try greet(&link, boot, .{ .claim = claim }, null));
        try testing.expectEqual(null, site.boots.caches.find(boot.identity.id));
        const reason = device_keys.refusalOf(boot);
        try testing.expectEqualStrings("it is no longer registered", reason);
    }
}

test "a key counts for nothing while another boot of its device may run" {
    const site = try privateSite(&lenient);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const running = site.boot(try site.begin(1));
    try testing.expect((try greet(&link, running, .{ .claim = .none }, null)).body == .welcome);
    const candidate = site.boot(try site.begin(1));
    try testing.expect(candidate != running);
    const stranger: Greeting = .{ .from = attacker, .nonce = 6, .claim = .{ .signed = 2 } };
    // The edge asks the device whether it is there.
    _ = try greet(&link, candidate, stranger, null);
    try testing.expectEqual(null, link.port.server.sessionOf(candidate.identity.id));
    try testing.expectEqual(.unknown, candidate.device_identity.state);
    try testing.expectEqual(null, candidate.device_key);
    turnOff(&link, running);
    const own: Greeting = .{ .nonce = 7, .claim = .{ .signed = 1 } };
    try testing.expect((try greet(&link, candidate, own, null)).body == .welcome);
    try testing.expectEqual(fingerprintOf(1), candidate.device_identity.state.known);
}

test "a boot that began before the device's first key was accepted knows that key, too" {
    const site = try privateSite(&accept_first);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    const second = site.boot(try site.begin(1));
    try testing.expect(first != second);
    device_keys.record(&site.boots, first, &.{ .opens = true, .record = .{
        .identity = .{ .state = .{ .known = fingerprintOf(1) } },
        .judged = .{ .label = .key_known, .key = fingerprintOf(1), .revision = 0 },
        .is_alarm = false,
    } });
    try testing.expectEqual(fingerprintOf(1), second.device_identity.state.known);
    // The journal has it already.
    try testing.expect(!second.touched);
    try expectRefused(try greet(&link, second, .{ .claim = .{ .signed = 2 } }, null));
    const own: Greeting = .{ .claim = .{ .signed = 1 } };
    try testing.expect((try greet(&link, second, own, null)).body == .welcome);
}

/// Boots of as many other devices as the table has slots for, which fail at once: whatever may give
/// up its slot does.
fn crowd(site: *Site) !void {
    const refs = try site.arena.allocator().alloc(Site.Ref, site.boots.table.slots.len);
    for (refs, 100..) |*ref, number| {
        site.io.now_us += core.boot.Table.search_interval_us;
        ref.* = try site.begin(@intCast(number));
        const failed: core.boot.Boot.Event = .{ .failed = .{ .cause = .store_read_error } };
        site.boots.apply(ref.*, site.io.now_us, failed);
        try testing.expect(!site.boot(ref.*).changed);
    }
    for (refs) |ref| site.boots.table.remove(ref);
}

test "a full table keeps the only boot that knows a device's key until the state has the key" {
    const site = try privateSite(&accept_first);
    defer site.destroy();
    const Device = @typeInfo(@FieldType(@FieldType(Site, "state"), "devices")).pointer.child;
    const devices = try site.arena.allocator().alloc(Device, 1 + site.boots.table.slots.len);
    devices[0] = site.devices[0];
    for (devices[1..], 100..) |*known, number| {
        known.* = site.devices[0];
        known.id = fixture.uuid(@intCast(number));
        known.mac = fixture.macOf(@intCast(number));
    }
    site.state.devices = devices;
    try site.decide();
    var link: Link = try .init(site);
    defer link.deinit();
    const first = site.boot(try site.begin(1));
    const id = first.identity.id;
    _ = try greet(&link, first, .{ .claim = .{ .signed = 1 } }, null);
    // It is off for so long that nobody expects it to run, and another edge has it since.
    link.port.server.forget(id);
    site.io.now_us += core.boot.Table.runs_us_max;
    site.boots.supersede(site.io.now_us, site.boots.table.findById(id).?);
    try crowd(site);
    try testing.expect(site.boots.table.findById(id) != null);
    // A state that says nothing of the key changes nothing, and another key opens nothing.
    site.boots.onState();
    try crowd(site);
    const second = site.boot(try site.begin(1));
    try testing.expectEqual(fingerprintOf(1), second.device_identity.state.known);
    try expectRefused(try greet(&link, second, .{ .claim = .{ .signed = 2 } }, null));
    const failed: core.boot.Boot.Event = .{ .failed = .{ .cause = .store_read_error } };
    site.boots.apply(site.boots.table.findById(second.identity.id).?, site.io.now_us, failed);
    const known = core.uplink.key_text.write(fingerprintOf(1));
    devices[0].key = &known;
    site.boots.onState();
    try crowd(site);
    try testing.expectEqual(null, site.boots.table.findByMac(fixture.macOf(1)));
}

test "a device without a key gets what the policy says, and shared versions need none" {
    const site = try privateSite(&lenient);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    const boot = site.boot(try site.begin(1));
    try testing.expect((try greet(&link, boot, .{ .claim = .none }, null)).body == .welcome);
    try testing.expectEqual(.no_key, boot.device_key.?.label);
    const shared: *Site = try .withVersion();
    defer shared.destroy();
    shared.state.keyPolicies = &accept_first;
    shared.devices[0].keyPolicy = 0;
    var plain: Link = try .init(shared);
    defer plain.deinit();
    const other = shared.boot(try shared.begin(1));
    try testing.expect((try greet(&plain, other, .{ .claim = .none }, null)).body == .welcome);
}

// Proof (f): the attacker knows the device's MAC address and UUID, the token of its boot, and a
// HELLO that the device has signed; he has TPMs of his own, and one that was the device's before
// it was cleared.
test "ten thousand forged claims of a key get no private byte, and the device still boots" {
    const tries = 10_000;
    const site = try privateSite(&accept_first);
    defer site.destroy();
    var link: Link = try .init(site);
    defer link.deinit();
    var recorded: wire.Hello = undefined;
    const first = site.boot(try site.begin(1));
    _ = try greet(&link, first, .{ .claim = .{ .signed = 1 } }, &recorded);
    turnOff(&link, first);
    const boot = site.boot(try site.begin(1));
    for (0..tries) |number| {
        const claim: Claim = switch (number % 20) {
            // Verifying costs a Debug build much more than an edge: the other claims are rarer.
            else => .none,
            16 => .{ .replayed = .{ .key = recorded.device_key, .signature = recorded.signature } },
            17 => .{ .signed_by = .{ .named = 1, .signer = 2 } },
            18 => .{ .signed = 2 },
            19 => .{ .signed = 3 },
        };
        // From his own address, and from the device's.
        const from = if (number % 3 == 0) fixture.device else attacker;
        const nonce: u32 = @intCast(100 + number);
        const said: Greeting = .{ .from = from, .nonce = nonce, .claim = claim };
        try expectRefused(try greet(&link, boot, said, null));
        try testing.expectEqual(null, site.boots.caches.find(boot.identity.id));
        try testing.expectEqual(null, link.port.server.sessionOf(boot.identity.id));
        try testing.expectEqual(fingerprintOf(1), boot.device_identity.state.known);
    }
    const own = try greet(&link, boot, .{ .nonce = 1, .claim = .{ .signed = 1 } }, null);
    try testing.expectEqual(.edge_persistent, own.body.welcome.write_cache);
}
