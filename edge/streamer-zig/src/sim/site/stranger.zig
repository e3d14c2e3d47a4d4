//! Somebody on the same network who means no good: sends again what it saw, damaged or whole, from its own address; puts
//! packets out at the wrong port; sends noise; and shows a token that it overheard. None of it may change anything. DHCP
//! cannot tell a stranger's packet from a device's (a MAC address is a hint), so there it only sends noise.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const DeviceNode = @import("device_node.zig");
const addresses = @import("addresses.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("fabric.zig");
const PacketPool = @import("../kit/packet_pool.zig");
const Endpoint = base.Endpoint;
const StreamClient = core.stream.Client;

pub const Stranger = @This();

pub const ip: base.Ip4 = .init(10, 77, 0, 250);
const own: Endpoint = .{ .ip = ip, .port = 31337 };

fabric: *Fabric,
link: EventQueue.Link,
prng: base.Prng,
devices: []DeviceNode,
/// The real client with a token that is not its own.
thief: StreamClient,
thefts: u32 = 0,
period_us: u64,

/// One mischief.
pub fn act(stranger: *Stranger) void {
    switch (stranger.prng.below(6)) {
        0 => stranger.sendAgain(),
        1 => stranger.sendDamaged(),
        2 => stranger.misdeliver(),
        3 => stranger.sendNoise(),
        4 => stranger.forge(),
        else => stranger.steal(),
    }
    stranger.transmit();
}

pub fn receive(stranger: *Stranger, to: Endpoint, bytes: []const u8) void {
    if (to.port != own.port) return;
    stranger.thief.receive(stranger.fabric.now_us, bytes);
    while (stranger.thief.nextEvent()) |event| switch (event) {
        .established => stranger.fabric.ledger.violate(.token_bought_once, "an overheard token opened a session", .{}),
        else => {},
    };
    stranger.transmit();
}

fn transmit(stranger: *Stranger) void {
    var out: [stream.sealed_request_size_max]u8 = undefined;
    while (stranger.thief.transmit(stranger.fabric.now_us, &out)) |packet|
        stranger.fabric.sendToEdge(stranger.link, own, addresses.endpoint(addresses.stream_port), packet);
}

fn sendAgain(stranger: *Stranger) void {
    const packet = stranger.fabric.sniffed[0].pick(&stranger.prng) orelse return;
    if (packet.to.port == addresses.dhcp_port) return;
    var copy: [PacketPool.payload_size_max]u8 = undefined;
    @memcpy(copy[0..packet.size], packet.bytes[0..packet.size]);
    stranger.fabric.sendToEdge(stranger.link, own, packet.to, copy[0..packet.size]);
}

fn sendDamaged(stranger: *Stranger) void {
    const prng = &stranger.prng;
    const packet = stranger.fabric.sniffed[0].pick(prng) orelse return;
    if (packet.to.port == addresses.dhcp_port or packet.size == 0) return;
    var copy: [PacketPool.payload_size_max]u8 = undefined;
    @memcpy(copy[0..packet.size], packet.bytes[0..packet.size]);
    for (0..@intCast(prng.between(1, 8))) |_| {
        const bit: u3 = @intCast(prng.below(8));
        copy[@intCast(prng.below(packet.size))] ^= @as(u8, 1) << bit;
    }
    const size: usize = @intCast(if (prng.chance(1, 2)) packet.size else prng.below(packet.size));
    stranger.fabric.sendToEdge(stranger.link, own, packet.to, copy[0..size]);
}

/// With another's address as the source, and a session that it had to guess.
fn forge(stranger: *Stranger) void {
    const prng = &stranger.prng;
    const direction: EventQueue.Direction = if (prng.chance(1, 2)) .to_edge else .to_device;
    const packet = stranger.fabric.sniffed[@backingInt(direction)].pick(prng) orelse return;
    const is_stream = packet.from.port == addresses.stream_port or packet.to.port == addresses.stream_port;
    if (!is_stream or packet.size < stream.header_size) return;
    var copy: [PacketPool.payload_size_max]u8 = undefined;
    @memcpy(copy[0..packet.size], packet.bytes[0..packet.size]);
    // What has no session has a nonce, which somebody off the path cannot know.
    if (std.mem.allEqual(u8, copy[8..16], 0)) return;
    prng.fill(copy[8..16]);
    stranger.fabric.deliver(.{
        .slot = 0,
        .link = packet.link,
        .direction = direction,
        .from = packet.from,
        .to = packet.to,
    }, copy[0..packet.size], 20);
}

/// A switch that has forgotten where a device is: another one gets its packet, whole and with the edge's address on it.
fn misdeliver(stranger: *Stranger) void {
    const packet = stranger.fabric.sniffed[1].pick(&stranger.prng) orelse return;
    const node = &stranger.devices[@intCast(stranger.prng.below(stranger.devices.len))];
    const address = stranger.fabric.links[node.link].ip orelse return;
    const port = node.stream_socket orelse return;
    if (packet.from.port != addresses.stream_port or packet.link == node.link) return;
    var copy: [PacketPool.payload_size_max]u8 = undefined;
    @memcpy(copy[0..packet.size], packet.bytes[0..packet.size]);
    stranger.fabric.deliver(.{
        .slot = 0,
        .link = node.link,
        .direction = .to_device,
        .from = packet.from,
        .to = .{ .ip = address, .port = port },
    }, copy[0..packet.size], 50);
}

fn sendNoise(stranger: *Stranger) void {
    const prng = &stranger.prng;
    var noise: [200]u8 = undefined;
    prng.fill(&noise);
    // A version and type that exist get further.
    if (prng.chance(1, 2)) noise[0] = 0x10 | @as(u8, @intCast(prng.between(1, 10)));
    const port = prng.pick(u64, &.{ addresses.dhcp_port, addresses.tftp_port, addresses.stream_port });
    stranger.fabric.sendToEdge(stranger.link, own, addresses.endpoint(@intCast(port)), noise[0..@intCast(prng.below(noise.len))]);
}

/// Says hello with the token of a device that has its session already.
fn steal(stranger: *Stranger) void {
    const node = &stranger.devices[@intCast(stranger.prng.below(stranger.devices.len))];
    const plan = node.device.plan orelse return;
    if (node.device.phase != .stage2 and node.device.phase != .ready) return;
    if (node.device.client.state != .established) return;
    var seed: [32]u8 = undefined;
    stranger.prng.fill(&seed);
    stranger.thefts += 1;
    stranger.thief.start(stranger.fabric.now_us, .{ .boot_id = plan.boot_id, .token = plan.token, .nonce_seed = seed });
}
