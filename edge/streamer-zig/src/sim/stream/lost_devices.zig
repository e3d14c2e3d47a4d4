//! A device whose session is lost for good: it tells its edge, learns of a waiting order, and takes
//! none that a listener invents. Edge and device exchange these packets at once, beside the
//! network: nothing of them depends on time.

const std = @import("std");
const wire = @import("wire").stream;
const network_module = @import("network.zig");

/// LOST, LOST with the order that was taken, and one more.
const rounds = 3;

/// `device` is a `StreamDevice`.
pub fn tell(device: anytype) void {
    const side = &device.side;
    if (side.client.state != .ended) return;
    const now_us = device.network.now_us;
    side.client.reportLost(now_us, null);
    const edge = &device.site.edges[network_module.edgeOf(side.contacted())];
    const address = device.network.links[device.index].address;
    const is_lost = side.client.lost != null;
    for (0..rounds) |_| {
        const bytes = side.transmit(now_us) orelse break;
        var asked: [wire.lost_size]u8 = undefined;
        @memcpy(asked[0..bytes.len], bytes);
        invent(device, &asked);
        takeOrders(device);
        edge.thief = .{ .address = address, .side = side };
        defer edge.thief = null;
        if (edge.running() != null) edge.receive(address, &asked);
        takeOrders(device);
    }
    if (is_lost and side.client.lost.?.serial == 0) device.invariants.violate(
        .lost_is_told,
        "device {d} has lost its session, and tells nobody",
        .{device.index},
    );
}

/// A listener knows the nonce, and not the resume secret.
fn invent(device: anytype, asked: *const [wire.lost_size]u8) void {
    const packet = wire.parse(asked) catch unreachable;
    var ack: wire.LostAck = .{
        .nonce = packet.body.lost.nonce,
        .order = .power_off,
        .order_id = undefined,
        .proof = undefined,
    };
    device.prng.fill(&ack.order_id);
    device.prng.fill(&ack.proof);
    var buffer: [wire.lost_ack_size]u8 = undefined;
    const bytes = wire.emit(.{ .version = .v3, .body = .{ .lost_ack = ack } }, &buffer);
    device.side.receive(device.network.now_us, bytes);
}

fn takeOrders(device: anytype) void {
    while (device.side.nextEvent()) |event| switch (event) {
        .order => |order| device.takeOrder(order.id.bytes),
        else => {},
    };
}
