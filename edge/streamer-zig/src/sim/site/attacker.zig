//! An attacker on the site's network, who acts until the end of a run: replays what it saw, damaged
//! or whole, from its own address; puts packets out at the wrong port; sends noise; shows a token
//! that it overheard; requests files and reports failures by HTTP and TFTP. Invariant: none of it
//! ends a boot, opens a session or keeps a device from its disk.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const agent = @import("agent");
const stream = @import("wire").stream;
const DeviceNode = @import("device_node.zig");
const addresses = @import("addresses.zig");
const EdgeIo = @import("edge_io.zig");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const payload_size_max = @import("network.zig").payload_size_max;
const Direction = @import("../kit/network.zig").Direction;
const Packet = @import("../kit/network.zig").Packet;
const Invariants = @import("invariants.zig");
const device_keys = @import("device_keys.zig");
const Attack = @import("attack.zig").Attack;
const Endpoint = base.Endpoint;
const StreamClient = core.stream.Client;

pub const Attacker = @This();

pub const ip = addresses.attacker_ip;
const other_ip = addresses.attacker_other_ip;
const own: Endpoint = .{ .ip = ip, .port = 31337 };

fabric: *Fabric,
edges: []EdgeNode,
link: EventQueue.Link,
prng: base.Prng,
devices: []DeviceNode,
/// The product's client, with a token that belongs to a device.
thief: StreamClient,
/// The edge that the device has its session with.
thief_to: Endpoint = .{ .ip = .zero, .port = 0 },
/// The device that runs while the thief shows the token of a candidate; null: the token is one that
/// was used.
victim: ?*DeviceNode = null,
/// The device whose place the thief takes; null: he has none.
impersonated: ?*DeviceNode = null,
/// What he claims of its key.
claim: KeyClaim = .none,
was_healed: bool = false,
/// In a TPM of his own.
pair: device_keys.KeyPair,
/// A HELLO that waits for its cookie.
replayed: ?stream.Hello = null,
replayed_to: Endpoint = .{ .ip = .zero, .port = 0 },
period_us: u64,
/// Null: chance picks among all attacks.
only: ?Attack = null,
/// Packets and HTTP requests so far.
sent: u64 = 0,
response: [agent.response.text_size_max]u8 = undefined,

const KeyClaim = enum {
    none,
    /// The key of his own TPM.
    own,
    /// The device's key, signed by his own.
    forged,
    /// Key and signature of a HELLO of the device.
    replayed,
};

/// Runs one attack.
pub fn act(attacker: *Attacker) void {
    const attacks = std.enums.values(Attack);
    const attack = attacker.only orelse attacks[@intCast(attacker.prng.below(attacks.len))];
    switch (attack) {
        .replay => attacker.replay(),
        .replay_damaged => attacker.replayDamaged(),
        .replay_peer => attacker.replayPeer(),
        .misdeliver => attacker.misdeliver(),
        .noise => attacker.sendNoise(),
        .forge_source => attacker.forgeSource(),
        .replay_hello => attacker.replayHello(),
        .steal_token => attacker.stealToken(),
        .steal_candidate => attacker.stealCandidate(),
        .impersonate => attacker.impersonate(),
        .fetch_files => attacker.fetchFiles(),
        .request_tftp => attacker.requestTftp(),
        .report_outcome => attacker.reportOutcome(other_ip),
        .report_outcome_as_peer => {
            attacker.replay();
            attacker.reportOutcome(ip);
        },
        .discover_as_device => attacker.discover(Invariants.macOf(attacker.anyDevice().link)),
        .invent_devices => attacker.discover(
            addresses.inventedMac(attacker.prng.nextU32()),
        ),
        .fetch_script => attacker.get(
            "/m/{f}/boot.ipxe",
            .{Invariants.macOf(attacker.anyDevice().link)},
        ),
        .fetch_disk => attacker.get("{s}/disk", .{attacker.overheardPath() orelse return}),
        .report_outcome_of_boot => attacker.post(
            ip,
            "{s}/failed",
            .{attacker.overheardPath() orelse return},
        ),
    }
    attacker.transmit();
}

pub fn receive(attacker: *Attacker, to: Endpoint, bytes: []const u8) void {
    if (to.port != own.port) return;
    attacker.finishReplay(bytes);
    if (attacker.hasLeft()) return;
    attacker.thief.receive(attacker.fabric.now_us, bytes);
    while (attacker.thief.nextEvent()) |event| switch (event) {
        .established => attacker.checkEstablished(),
        .sign => |digest| attacker.thief.sign(
            attacker.fabric.now_us,
            if (attacker.claim == .replayed)
                attacker.impersonated.?.device.client.greeting.hello.signature
            else
                attacker.pair.sign(&digest),
        ),
        else => {},
    };
    attacker.transmit();
}

fn checkEstablished(attacker: *Attacker) void {
    const invariants = attacker.fabric.invariants;
    // What he may open is for the edges' own account (`private_for_its_key`).
    if (attacker.impersonated != null) return;
    const victim = attacker.victim orelse
        return invariants.violate(.token_bought_once, "an overheard token opened a session", .{});
    if (!invariants.healed) return;
    invariants.violate(
        .running_boot_kept,
        "device {d} runs, and a candidate's token opened a session",
        .{victim.link},
    );
}

/// On the healed network every device gets its own boot: who took its place before has left.
fn hasLeft(attacker: *const Attacker) bool {
    if (attacker.impersonated == null) return false;
    return attacker.fabric.invariants.healed and !attacker.was_healed;
}

fn isRunning(node: *const DeviceNode) bool {
    if (node.device.phase != .stage2 and node.device.phase != .ready) return false;
    return node.device.client.state == .established;
}

/// A thief who waits for his victim to be switched off gets the candidate's session: it is for the
/// edge to tell nobody but the device its script.
fn transmit(attacker: *Attacker) void {
    if (attacker.hasLeft()) return;
    if (attacker.victim) |victim| if (!isRunning(victim)) return;
    var out: [stream.sealed_request_size_max]u8 = undefined;
    while (attacker.thief.transmit(attacker.fabric.now_us, &out)) |packet| {
        if (attacker.impersonated) |node|
            attacker.fabric.invariants.noteImpersonated(node.link, attacker.fabric.now_us);
        attacker.sendTo(own, attacker.thief_to, packet);
    }
}

fn send(attacker: *Attacker, from: Endpoint, port: u16, bytes: []const u8) void {
    attacker.sendTo(from, addresses.endpoint(attacker.anyEdge().index, port), bytes);
}

fn sendTo(attacker: *Attacker, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    attacker.sent += 1;
    attacker.fabric.sendToEdge(attacker.link, from, to, bytes);
}

/// Puts a packet out that comes from another machine, or at another one's port.
fn deliver(attacker: *Attacker, packet: Packet, bytes: []const u8, at_us: u64) void {
    attacker.sent += 1;
    attacker.fabric.deliver(packet, bytes, at_us);
}

fn anyEdge(attacker: *Attacker) *EdgeNode {
    return &attacker.edges[@intCast(attacker.prng.below(attacker.edges.len))];
}

fn anyDevice(attacker: *Attacker) *DeviceNode {
    return &attacker.devices[@intCast(attacker.prng.below(attacker.devices.len))];
}

fn replay(attacker: *Attacker) void {
    const sniffed = attacker.fabric.sniffed[0].pick(&attacker.prng) orelse return;
    const packet = &sniffed.packet;
    // DHCP knows a device by what the packet says: this would be `discover_as_device`.
    if (packet.to.port == addresses.dhcp_port) return;
    // No device sent it: it would be the thief's HELLO, who stops while his victim is off.
    if (packet.from.eql(own)) return;
    var copy: [payload_size_max]u8 = undefined;
    @memcpy(copy[0..sniffed.size], sniffed.slice());
    attacker.send(own, packet.to.port, copy[0..sniffed.size]);
}

fn replayDamaged(attacker: *Attacker) void {
    const prng = &attacker.prng;
    const sniffed = attacker.fabric.sniffed[0].pick(prng) orelse return;
    const packet = &sniffed.packet;
    if (packet.to.port == addresses.dhcp_port or sniffed.size == 0) return;
    var copy: [payload_size_max]u8 = undefined;
    @memcpy(copy[0..sniffed.size], sniffed.slice());
    for (0..@intCast(prng.between(1, 8))) |_| {
        const bit: u3 = @intCast(prng.below(8));
        copy[@intCast(prng.below(sniffed.size))] ^= @as(u8, 1) << bit;
    }
    const size: usize = @intCast(if (prng.chance(1, 2)) sniffed.size else prng.below(sniffed.size));
    attacker.send(own, packet.to.port, copy[0..size]);
}

fn replayPeer(attacker: *Attacker) void {
    const sniffed = attacker.fabric.sniffed[0].pick(&attacker.prng) orelse return;
    const packet = &sniffed.packet;
    if (packet.to.port != addresses.peer_port) return;
    var copy: [payload_size_max]u8 = undefined;
    @memcpy(copy[0..sniffed.size], sniffed.slice());
    const from = if (attacker.prng.chance(1, 2)) packet.from else own;
    attacker.send(from, addresses.peer_port, copy[0..sniffed.size]);
}

fn forgeSource(attacker: *Attacker) void {
    const prng = &attacker.prng;
    const direction: Direction = if (prng.chance(1, 2)) .to_edge else .to_device;
    const sniffed = attacker.fabric.sniffed[@backingInt(direction)].pick(prng) orelse return;
    const packet = &sniffed.packet;
    const is_stream = packet.from.port == addresses.stream_port or
        packet.to.port == addresses.stream_port;
    if (!is_stream or sniffed.size < stream.header_size) return;
    var copy: [payload_size_max]u8 = undefined;
    @memcpy(copy[0..sniffed.size], sniffed.slice());
    // What has no session has a nonce, which an attacker off the path cannot know.
    if (std.mem.allEqual(u8, copy[8..16], 0)) return;
    prng.fill(copy[8..16]);
    attacker.deliver(.{
        .link = packet.link,
        .edge = packet.edge,
        .direction = direction,
        .from = packet.from,
        .to = packet.to,
    }, copy[0..sniffed.size], attacker.fabric.now_us + 20);
}

fn misdeliver(attacker: *Attacker) void {
    const sniffed = attacker.fabric.sniffed[1].pick(&attacker.prng) orelse return;
    const packet = &sniffed.packet;
    const node = attacker.anyDevice();
    const address = attacker.fabric.links[node.link].ip() orelse return;
    const port = node.stream_socket orelse return;
    if (packet.from.port != addresses.stream_port or packet.link == node.link) return;
    // A REFUSE that answers a recorded HELLO has the device's nonce: who hears that HELLO can forge
    // one (STREAM.md, "Security considerations"), and no switch brings it to the device by mistake.
    if (packet.link == attacker.link) return;
    var copy: [payload_size_max]u8 = undefined;
    @memcpy(copy[0..sniffed.size], sniffed.slice());
    attacker.deliver(.{
        .link = node.link,
        .edge = packet.edge,
        .direction = .to_device,
        .from = packet.from,
        .to = .{ .ip = address, .port = port },
    }, copy[0..sniffed.size], attacker.fabric.now_us + 50);
}

fn sendNoise(attacker: *Attacker) void {
    const prng = &attacker.prng;
    var noise: [200]u8 = undefined;
    prng.fill(&noise);
    // A version and type that exist get further.
    if (prng.chance(1, 2)) noise[0] = 0x10 | @as(u8, @intCast(prng.between(1, 10)));
    const ports = [_]u64{
        addresses.dhcp_port,
        addresses.tftp_port,
        addresses.stream_port,
        addresses.peer_port,
    };
    const port = prng.pick(u64, &ports);
    attacker.send(own, @intCast(port), noise[0..@intCast(prng.below(noise.len))]);
}

fn stealToken(attacker: *Attacker) void {
    const node = attacker.anyDevice();
    const plan = node.device.plan orelse return;
    if (node.device.phase != .stage2 and node.device.phase != .ready) return;
    if (node.device.client.state != .established) return;
    var seed: [32]u8 = undefined;
    attacker.prng.fill(&seed);
    attacker.thief_to = node.stream_to;
    attacker.victim = null;
    attacker.impersonated = null;
    attacker.thief.start(
        attacker.fabric.now_us,
        .{ .boot_id = plan.boot_id, .token = plan.token, .nonce_seed = seed },
    );
}

fn stealCandidate(attacker: *Attacker) void {
    const node = attacker.anyDevice();
    if (!isRunning(node)) return;
    const edge = addresses.edgeOf(node.stream_to.ip) orelse return;
    const mac = Invariants.macOf(node.link);
    attacker.discover(mac);
    const process = attacker.edges[edge].process orelse return;
    var boots = process.boots.table.iterateOf(mac);
    // As if he had overheard its script.
    const identity = while (boots.next()) |ref| {
        const boot = process.boots.table.get(ref).?;
        if (boot.isCandidate()) break boot.identity;
    } else return;
    const id = identity.id;
    const token = identity.token;
    // The device's own boot, after a restart of the edge.
    if (id.eql(node.device.plan.?.boot_id)) return;
    var seed: [32]u8 = undefined;
    attacker.prng.fill(&seed);
    attacker.thief_to = node.stream_to;
    attacker.victim = node;
    attacker.impersonated = null;
    attacker.claim = if (attacker.prng.chance(1, 2)) .own else .none;
    attacker.thief.start(attacker.fabric.now_us, .{
        .boot_id = id,
        .token = token,
        .nonce_seed = seed,
        .device_key = if (attacker.claim == .own) attacker.pair.public_key else null,
    });
}

/// He has the device's MAC address and UUID, and so its script. On the healed network he acts only
/// where the key decides: who has no key, or opens nothing private, is whoever has its address.
fn impersonate(attacker: *Attacker) void {
    const node = attacker.anyDevice();
    const edge = attacker.anyEdge();
    const invariants = attacker.fabric.invariants;
    if (isRunning(node)) return;
    if (invariants.healed and !isPrivate(edge, node)) return;
    const mac = Invariants.macOf(node.link);
    attacker.discover(mac);
    const process = edge.process orelse return;
    var boots = process.boots.table.iterateOf(mac);
    const identity = while (boots.next()) |ref| {
        const boot = process.boots.table.get(ref).?;
        if (boot.isCandidate()) break boot.identity;
    } else return;
    const id, const token = .{ identity.id, identity.token };
    if (invariants.find(id)) |account| account.was_impersonated = true;
    var seed: [32]u8 = undefined;
    attacker.prng.fill(&seed);
    const claims = std.enums.values(KeyClaim);
    const heard = node.device.client.greeting.hello.device_key;
    attacker.claim = claims[@intCast(attacker.prng.below(claims.len))];
    if (std.mem.allEqual(u8, &heard, 0)) attacker.claim = switch (attacker.claim) {
        .none, .own => attacker.claim,
        .forged, .replayed => .own,
    };
    attacker.thief_to = addresses.endpoint(edge.index, addresses.stream_port);
    attacker.victim = null;
    attacker.impersonated = node;
    attacker.was_healed = invariants.healed;
    attacker.thief.start(attacker.fabric.now_us, .{
        .boot_id = id,
        .token = token,
        .nonce_seed = seed,
        .device_key = switch (attacker.claim) {
            .none => null,
            .own => attacker.pair.public_key,
            .forged, .replayed => heard,
        },
    });
}

fn isPrivate(edge: *const EdgeNode, node: *const DeviceNode) bool {
    const box = edge.box orelse return false;
    return box.plan.writeOwnerOf(node.link) != null and box.plan.devices[node.link].key == .known;
}

fn replayHello(attacker: *Attacker) void {
    const sniffed = attacker.fabric.sniffed[0].pick(&attacker.prng) orelse return;
    if (sniffed.packet.to.port != addresses.stream_port) return;
    // Not the thief's: he has a token that nobody but the device is given, and he stops when his
    // victim is off (`transmit`).
    if (sniffed.packet.from.eql(own)) return;
    const parsed = stream.parse(sniffed.slice()) catch return;
    if (parsed.body != .hello) return;
    attacker.replayed = parsed.body.hello;
    attacker.replayed_to = sniffed.packet.to;
    attacker.replayed.?.cookie = @splat(0);
    attacker.sendHello();
}

fn finishReplay(attacker: *Attacker, bytes: []const u8) void {
    const hello = if (attacker.replayed) |*hello| hello else return;
    const parsed = stream.parse(bytes) catch return;
    if (parsed.body != .cookie) return;
    if (!std.mem.eql(u8, &parsed.body.cookie.client_nonce, &hello.client_nonce)) return;
    hello.cookie = parsed.body.cookie.cookie;
    attacker.sendHello();
    attacker.replayed = null;
}

fn sendHello(attacker: *Attacker) void {
    var buffer: [stream.request_size_max]u8 = undefined;
    const hello = attacker.replayed.?;
    const packet = stream.emit(.{ .version = hello.version, .body = .{ .hello = hello } }, &buffer);
    attacker.sendTo(own, attacker.replayed_to, packet);
}

fn fetchFiles(attacker: *Attacker) void {
    const prng = &attacker.prng;
    const names = [_][]const u8{
        "boot.ipxe", "kernel", "initrd", "disk", "undionly.kpxe", "x.cfg",
    };
    const name = names[@intCast(prng.below(names.len))];
    if (prng.chance(1, 2)) return attacker.get("/{s}", .{name});
    attacker.get("/b/{x:0>16}/{s}", .{ prng.nextU64(), name });
}

fn reportOutcome(attacker: *Attacker, from: base.Ip4) void {
    const prng = &attacker.prng;
    const word: []const u8 = if (prng.chance(1, 2)) "ready" else "failed";
    if (prng.chance(1, 2)) return attacker.post(from, "/{s}", .{word});
    attacker.post(from, "/b/{x:0>16}/{s}", .{ prng.nextU64(), word });
}

fn requestTftp(attacker: *Attacker) void {
    const name = EdgeIo.BootFiles.program_name;
    const packet = "\x00\x01" ++ name ++ "\x00octet\x00";
    const port: u16 = @intCast(attacker.prng.between(1024, std.math.maxInt(u16)));
    attacker.send(.{ .ip = ip, .port = port }, addresses.tftp_port, packet);
}

fn discover(attacker: *Attacker, mac: base.Mac) void {
    var exchange: core.device.DhcpExchange = .init(attacker.fabric.now_us, .{
        .mac = mac,
        .stage = .rom,
        .xid = attacker.prng.nextU32(),
        .has_address = false,
        .broadcast = true,
    });
    var buffer: [wire.dhcp.packet_size_max]u8 = undefined;
    const packet = exchange.transmit(attacker.fabric.now_us, &buffer) orelse return;
    attacker.send(.{ .ip = .zero, .port = 68 }, addresses.dhcp_port, packet);
}

/// Returns `/b/<handle>` of some device's boot.
fn overheardPath(attacker: *Attacker) ?[]const u8 {
    const node = attacker.anyDevice();
    switch (node.device.phase) {
        .off, .dhcp, .nbp, .ipxe_dhcp, .failed => return null,
        .loader, .breather, .stage2, .ready => {},
    }
    const path = node.device.script_url.path;
    return path[0 .. std.mem.findScalarLast(u8, path, '/') orelse return null];
}

fn get(attacker: *Attacker, comptime path: []const u8, arguments: anytype) void {
    attacker.request(ip, "GET " ++ path ++ " HTTP/1.1\r\nhost: edge\r\n\r\n", arguments);
}

fn post(
    attacker: *Attacker,
    from: base.Ip4,
    comptime path: []const u8,
    arguments: anytype,
) void {
    const body = "E00 forged";
    const head = " HTTP/1.1\r\nhost: edge\r\ncontent-length: {d}\r\n\r\n" ++ body;
    attacker.request(from, "POST " ++ path ++ head, arguments ++ .{body.len});
}

fn request(
    attacker: *Attacker,
    from: base.Ip4,
    comptime format: []const u8,
    arguments: anytype,
) void {
    var buffer: [256]u8 = undefined;
    const text = std.mem.print(&buffer, format, arguments) catch unreachable;
    const edge = attacker.anyEdge();
    attacker.sent += 1;
    const response = edge.respond(text, from, &attacker.response) orelse return;
    attacker.fabric.trace.note(response.status);
    if (response.body_size == 0) return;
    edge.progress(
        &response,
        .{ .size = response.body_size, .is_first = true, .is_last = true },
    );
}

test "an attack has one spelling on the command line" {
    try std.testing.expectEqual(.steal_token, Attack.parse("steal-token").?);
    try std.testing.expectEqual(null, Attack.parse("steal-tokens"));
    try std.testing.expectEqual(null, Attack.parse("steal+token"));
}
