//! Asks one segment who has an address, before that address is leased (packet(7), protocol ARP).
//! The socket gets ARP replies alone, so it costs the stream nothing. Needs CAP_NET_RAW.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const packet_filter = @import("packet_filter.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const OpenError = error{ NotPermitted, NotEthernet, SystemCallFailed };

pub const AddressProber = @This();

fd: i32,
interface_index: u32,
mac: base.Mac,
/// Probes that may still be sent in this second.
budget: u32 = probes_per_second_max,

/// More than the machines that are switched on together need: each offer is one broadcast more.
const probes_per_second_max = 512;
const batch_max = 16;
const operation_offset = 6;
const operation_reply = 2;
const arphrd_ether = 1;

/// struct sock_fprog (linux/filter.h).
const FilterProgram =
    extern struct { count: u16, instructions: [*]const packet_filter.Instruction };

/// socket(7): BPF_LD+BPF_H+BPF_ABS, BPF_JMP+BPF_JEQ+BPF_K, BPF_RET+BPF_K.
const filter = [_]packet_filter.Instruction{
    .{ .code = 0x28, .jump_true = 0, .jump_false = 0, .k = operation_offset },
    .{ .code = 0x15, .jump_true = 0, .jump_false = 1, .k = operation_reply },
    .{ .code = 0x06, .jump_true = 0, .jump_false = 0, .k = wire.arp.packet_size },
    .{ .code = 0x06, .jump_true = 0, .jump_false = 0, .k = 0 },
};

pub fn open(interface_index: u32) OpenError!AddressProber {
    // Protocol 0: nothing is received until the filter is attached and an interface is named.
    const flags = linux.SOCK.DGRAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    const rc = linux.socket(linux.AF.PACKET, flags, 0);
    const fd: i32 = switch (linux.errno(rc)) {
        .SUCCESS => @intCast(rc),
        .PERM, .ACCES => return error.NotPermitted,
        else => return error.SystemCallFailed,
    };
    errdefer sys.close(fd);
    const program: FilterProgram = .{ .count = filter.len, .instructions = &filter };
    _ = sys.check(linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.ATTACH_FILTER,
        @ptrCast(&program),
        @sizeOf(FilterProgram),
    )) catch return error.SystemCallFailed;
    const address = addressOf(interface_index, @splat(0));
    _ = sys.check(linux.bind(fd, @ptrCast(&address), @sizeOf(linux.sockaddr.ll))) catch
        return error.SystemCallFailed;
    var bound: linux.sockaddr.ll = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.ll);
    _ = sys.check(linux.getsockname(fd, @ptrCast(&bound), &size)) catch
        return error.SystemCallFailed;
    if (bound.hatype != arphrd_ether or bound.halen != 6) return error.NotEthernet;
    return .{
        .fd = fd,
        .interface_index = interface_index,
        .mac = .{ .bytes = bound.addr[0..6].* },
    };
}

pub fn close(prober: *AddressProber) void {
    sys.close(prober.fd);
    prober.* = undefined;
}

/// A probe that cannot be sent is one that nobody answers.
pub fn ask(prober: *AddressProber, ip: base.Ip4) void {
    if (prober.budget == 0) return;
    prober.budget -= 1;
    const packet = wire.arp.probe(prober.mac, ip);
    const to = addressOf(prober.interface_index, base.Mac.broadcast.bytes ++ [2]u8{ 0, 0 });
    _ = linux.sendto(
        prober.fd,
        &packet,
        packet.len,
        linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
        @ptrCast(&to),
        @sizeOf(linux.sockaddr.ll),
    );
}

/// Runs once a second.
pub fn tick(prober: *AddressProber) void {
    prober.budget = probes_per_second_max;
}

pub const Holders = base.BoundedArray(wire.arp.Holder, batch_max);

/// Takes the replies that wait, at most one batch.
pub fn receive(prober: *AddressProber) Holders {
    var holders: Holders = .empty;
    for (0..batch_max) |_| {
        var packet: [wire.arp.packet_size]u8 = undefined;
        const flags = linux.MSG.DONTWAIT;
        const rc = linux.recvfrom(prober.fd, &packet, packet.len, flags, null, null);
        const size = sys.check(rc) catch return holders;
        const holder = wire.arp.parse(packet[0..size]) catch continue;
        holders.appendAssumeCapacity(holder);
    }
    return holders;
}

fn addressOf(interface_index: u32, mac: [8]u8) linux.sockaddr.ll {
    return .{
        .protocol = std.mem.nativeToBig(u16, linux.ETH.P.ARP),
        .ifindex = @intCast(interface_index),
        .hatype = 0,
        .pkttype = 0,
        .halen = 6,
        .addr = mac,
    };
}

test "loopback has no machines to ask" {
    const index = (try @import("sockets.zig").interfaceOf(.init(127, 0, 0, 1))).?.index;
    var prober = AddressProber.open(index) catch |err| switch (err) {
        error.NotPermitted => return error.SkipZigTest,
        error.NotEthernet => return,
        error.SystemCallFailed => return err,
    };
    defer prober.close();
    return error.TestUnexpectedResult;
}
