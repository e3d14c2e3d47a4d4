//! The sockets that an edge listens at, opened together so that a start either has all of them or
//! says which one it cannot have.

const std = @import("std");
const base = @import("base");
const sys = @import("sys.zig");
const sockets = @import("sockets.zig");
const UdpSocket = @import("udp_socket.zig").UdpSocket;

pub const EdgeSockets = struct {
    /// Null where DHCP is off.
    dhcp: ?UdpSocket,
    pxe: ?UdpSocket,
    tftp: UdpSocket,
    stream: UdpSocket,
    wol: UdpSocket,
    listener: i32,

    pub const Ports = struct {
        dhcp: u16 = 67,
        pxe: u16 = 4011,
        tftp: u16 = 69,
        http: u16 = 6980,
        stream: u16 = 6910,
    };

    pub const What = enum { dhcp, pxe, tftp, http, stream, wol };

    /// Which one cannot be had, and why.
    pub const Problem = struct { what: What, port: u16, why: sockets.OpenError };

    pub const OpenError = error{ Problem, OutOfMemory };

    /// `interface`: the one that has the address; null on loopback, where there are no broadcasts.
    pub fn open(
        gpa: std.mem.Allocator,
        listen: base.Ip4,
        ports: Ports,
        with_dhcp: bool,
        interface: ?*const sockets.Interface,
        problem: *Problem,
    ) OpenError!EdgeSockets {
        var result: EdgeSockets = undefined;
        result.dhcp = null;
        result.pxe = null;
        if (with_dhcp) {
            // Broadcasts arrive only at a socket of no address; the interface keeps others' packets
            // out.
            const dhcp_ip: base.Ip4 = if (interface == null) listen else .zero;
            const fd = try one(.dhcp, problem, .{
                .address = .{ .ip = dhcp_ip, .port = ports.dhcp },
                .interface = interface,
                .broadcast = true,
            });
            result.dhcp = try .init(gpa, fd, if (interface == null) null else listen);
            result.pxe = try .init(gpa, try one(.pxe, problem, .{
                .address = .{ .ip = listen, .port = ports.pxe },
            }), null);
        }
        result.tftp = try .init(gpa, try one(.tftp, problem, .{
            .address = .{ .ip = listen, .port = ports.tftp },
        }), null);
        result.stream = try .init(gpa, try one(.stream, problem, .{
            .address = .{ .ip = listen, .port = ports.stream },
            .buffer_size = 8 << 20,
        }), null);
        result.wol = try .init(gpa, try one(.wol, problem, .{
            .address = .{ .ip = listen, .port = 0 },
            .interface = interface,
            .broadcast = true,
        }), null);
        const address: base.Endpoint = .{ .ip = listen, .port = ports.http };
        result.listener = sockets.openListener(address) catch |err| {
            problem.* = .{ .what = .http, .port = ports.http, .why = err };
            return error.Problem;
        };
        return result;
    }

    fn one(what: What, problem: *Problem, options: sockets.UdpOptions) error{Problem}!i32 {
        return sockets.openUdp(options) catch |err| {
            problem.* = .{ .what = what, .port = options.address.port, .why = err };
            return error.Problem;
        };
    }
};
