//! Helps tests of packet times: the kernel begins to stamp packets a moment after the first socket
//! requests it, and stops with the last one (net_enable_timestamp, net/core/dev.c).

const std = @import("std");
const base = @import("base");
const sockets = @import("sockets.zig");
const sys = @import("../sys.zig");
const UdpSocket = @import("udp_socket.zig");
const linux = std.os.linux;

pub const StampWitness = @This();

socket: UdpSocket,

const late_us = 2 * std.time.us_per_ms;
const patience_us = 10 * std.time.us_per_s;

/// Returns when a datagram that is read late has the time at which it was sent. Packets are
/// stamped until `deinit`.
pub fn init(gpa: std.mem.Allocator) !StampWitness {
    const loopback: base.Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };
    var socket: UdpSocket = try .init(gpa, try sockets.openUdp(.{ .address = loopback }), null);
    errdefer socket.deinit(gpa);
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(socket.fd, @ptrCast(&address), &size));
    const begun_us = sys.monotonicUs();
    while (sys.monotonicUs() - begun_us < patience_us) {
        socket.send(sockets.fromSockaddr(&address), "stamped?");
        const sent_us = sys.monotonicUs();
        while (sys.monotonicUs() - sent_us < late_us) {}
        for (0..socket.receive()) |index|
            if (socket.datagram(index).at_us <= sent_us) return .{ .socket = socket };
    }
    return error.NotStamped;
}

pub fn deinit(witness: *StampWitness, gpa: std.mem.Allocator) void {
    witness.socket.deinit(gpa);
}
