//! Tests udp_socket.zig over real sockets on loopback.

const std = @import("std");
const base = @import("base");
const sockets = @import("sockets.zig");
const sys = @import("../sys.zig");
const StampWitness = @import("stamp_witness.zig");
const UdpSocket = @import("udp_socket.zig");
const Endpoint = base.Endpoint;
const linux = std.os.linux;
const testing = std.testing;

fn testSocket() !UdpSocket {
    const any: Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };
    return .init(
        testing.allocator,
        try sockets.openUdp(.{ .address = any, .buffer_size = 4 << 20 }),
        null,
    );
}

fn endpointOf(socket: *const UdpSocket) !Endpoint {
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(socket.fd, @ptrCast(&address), &size));
    return sockets.fromSockaddr(&address);
}

test "a segmented super-packet arrives as the segments that it was made of" {
    var sender = try testSocket();
    defer sender.deinit(testing.allocator);
    var receiver = try testSocket();
    defer receiver.deinit(testing.allocator);
    const together = comptime UdpSocket.packetsTogether(1472);
    var packets: [(together - 1) * 1472 + 26]u8 = @splat(7);
    for (0..together) |index| packets[index * 1472] = @intCast(index);
    try testing.expectEqual(
        together,
        sender.sendPackets(try endpointOf(&receiver), &packets, 1472),
    );
    var received: usize = 0;
    while (received < together) {
        const count = receiver.receive();
        try testing.expect(count > 0);
        for (0..count) |index| {
            const datagram = receiver.datagram(index);
            const last = received + index == together - 1;
            try testing.expectEqual(@as(usize, if (last) 26 else 1472), datagram.bytes.len);
            try testing.expectEqual(received + index, datagram.bytes[0]);
            try testing.expect(datagram.from.eql(try endpointOf(&sender)));
        }
        received += count;
    }
    try testing.expectEqual(0, sender.dropped);
}

test "a socket of several networks answers with its address there, and ignores packets to other addresses" {
    const any: Endpoint = .{ .ip = .zero, .port = 0 };
    var open: UdpSocket = try .init(
        testing.allocator,
        try sockets.openUdp(.{ .address = any, .with_destination = true }),
        null,
    );
    defer open.deinit(testing.allocator);
    open.own = .{
        .links = &.{ .{ .ip = .init(127, 1, 0, 1) }, .{ .ip = .init(127, 2, 0, 1) } },
        .networks = &.{
            .{ .subnet = .of(.init(127, 1, 0, 0), 16), .mode = .proxy, .link = 0 },
            .{ .subnet = .of(.init(127, 2, 0, 0), 16), .mode = .proxy, .link = 1 },
        },
        .http_port = 80,
        .stream_port = 81,
    };
    const port = (try endpointOf(&open)).port;
    var device: UdpSocket = try .init(
        testing.allocator,
        try sockets.openUdp(.{ .address = .{ .ip = .init(127, 2, 0, 9), .port = 0 } }),
        null,
    );
    defer device.deinit(testing.allocator);
    device.send(.{ .ip = .init(127, 3, 0, 1), .port = port }, "for another address");
    device.send(.{ .ip = .init(127, 2, 0, 1), .port = port }, "for this edge");
    try testing.expectEqual(1, open.receive());
    const asked = open.datagram(0);
    try testing.expectEqualStrings("for this edge", asked.bytes);
    open.send(asked.from, "answer");
    try testing.expectEqual(1, device.receive());
    try testing.expect(device.datagram(0).from.ip.eql(.init(127, 2, 0, 1)));
}

test "a datagram may carry another source address of this machine" {
    var sender = try testSocket();
    defer sender.deinit(testing.allocator);
    var receiver = try testSocket();
    defer receiver.deinit(testing.allocator);
    const any: Endpoint = .{ .ip = .zero, .port = 0 };
    var open: UdpSocket =
        try .init(testing.allocator, try sockets.openUdp(.{ .address = any }), .init(127, 0, 0, 9));
    defer open.deinit(testing.allocator);
    open.send(try endpointOf(&receiver), "hello");
    try testing.expectEqual(1, receiver.receive());
    try testing.expect(receiver.datagram(0).from.ip.eql(.init(127, 0, 0, 9)));
    try testing.expectEqualStrings("hello", receiver.datagram(0).bytes);
}

test "a datagram that is read late has the time at which it arrived" {
    var witness = try StampWitness.init(testing.allocator);
    defer witness.deinit(testing.allocator);
    var sender = try testSocket();
    defer sender.deinit(testing.allocator);
    var receiver = try testSocket();
    defer receiver.deinit(testing.allocator);
    const before_us = sys.monotonicUs();
    sender.send(try endpointOf(&receiver), "first");
    const between_us = sys.monotonicUs();
    // On loopback it has arrived when the sender's call returns.
    while (sys.monotonicUs() < between_us + 20_000) {}
    try testing.expectEqual(1, receiver.receive());
    const at_us = receiver.datagram(0).at_us;
    try testing.expect(at_us >= before_us and at_us <= between_us);
}
