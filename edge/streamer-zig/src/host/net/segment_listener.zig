//! Listens on the edge's network segment (packet(7)) for offers of other DHCP servers to devices
//! that boot here, and for the packets of a boot's capture. It never answers and never slows the
//! packet loop down: it handles a bounded number of frames per turn and per second, and the kernel
//! drops and counts the rest. Needs CAP_NET_RAW.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const packet_filter = @import("packet_filter.zig");
const ReceiveBatch = @import("receive_batch.zig").ReceiveBatch;
const assert = std.debug.assert;
const linux = std.os.linux;

/// struct sock_fprog (linux/filter.h).
const FilterProgram =
    extern struct { count: u16, instructions: [*]const packet_filter.Instruction };
/// struct tpacket_stats (linux/if_packet.h).
const Statistics = extern struct { packets: u32, drops: u32 };

/// struct tpacket_auxdata: the frame's own size, and what the filter left of it.
const AuxiliaryData = extern struct {
    status: u32,
    size: u32,
    kept_size: u32,
    mac_offset: u16,
    net_offset: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
};

const packet_statistics = 6;
const packet_auxdata = 8;
const packet_outgoing = 4;
const packet_ignore_outgoing = 23;
const so_timestamp_ns = 35;
const loopback_type = 772;

pub const Frame = struct {
    bytes: []const u8,
    /// On the wire; what is longer than `bytes` was cut off.
    size: u32,
    /// In ns of the wall clock, stamped by the kernel.
    unix_ns: u64,
    is_outgoing: bool,
};

pub const OpenError = error{ NotPermitted, SystemCallFailed };

pub const SegmentListener = @This();

fd: i32,
/// Loopback shows each packet twice; the outgoing one is skipped.
is_loopback: bool,
dropped: u64 = 0,
batch: *Batch,

/// Frames of one turn.
pub const batch_max = 32;
const buffer_size = 256 * 1024;

const Batch = ReceiveBatch(linux.sockaddr.ll, .{
    .count = batch_max,
    .packet_size = packet_filter.snap_size_whole,
    .control_size = 128,
});

pub fn open(
    gpa: std.mem.Allocator,
    interface_index: u32,
    ports: packet_filter.Ports,
) (OpenError || error{OutOfMemory})!SegmentListener {
    // Protocol 0: nothing is received until the filter is attached and an interface is named.
    const rc =
        linux.socket(linux.AF.PACKET, linux.SOCK.RAW | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC, 0);
    switch (linux.errno(rc)) {
        .SUCCESS => {},
        .PERM, .ACCES => return error.NotPermitted,
        else => return error.SystemCallFailed,
    }
    const fd: i32 = @intCast(rc);
    errdefer sys.close(fd);
    const program: packet_filter.Program = .init(ports);
    const filter: FilterProgram = .{ .count = program.count, .instructions = program.slice().ptr };
    const attached = linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.ATTACH_FILTER,
        @ptrCast(&filter),
        @sizeOf(FilterProgram),
    );
    _ = sys.check(attached) catch return error.SystemCallFailed;
    sockets.setInt(fd, linux.SOL.SOCKET, linux.SO.RCVBUF, buffer_size) catch
        return error.SystemCallFailed;
    sockets.setInt(fd, linux.SOL.SOCKET, so_timestamp_ns, 1) catch return error.SystemCallFailed;
    sockets.setInt(fd, linux.SOL.PACKET, packet_auxdata, 1) catch return error.SystemCallFailed;
    const address: linux.sockaddr.ll = .{
        .protocol = std.mem.nativeToBig(u16, linux.ETH.P.ALL),
        .ifindex = @intCast(interface_index),
        .hatype = 0,
        .pkttype = 0,
        .halen = 0,
        .addr = @splat(0),
    };
    const bound = linux.bind(fd, @ptrCast(&address), @sizeOf(linux.sockaddr.ll));
    _ = sys.check(bound) catch return error.SystemCallFailed;
    return .{ .fd = fd, .is_loopback = isLoopback(fd), .batch = try .create(gpa) };
}

pub fn close(listener: *SegmentListener, gpa: std.mem.Allocator) void {
    sys.close(listener.fd);
    gpa.destroy(listener.batch);
    listener.* = undefined;
}

/// Sends a frame as it is; one that cannot be sent counts as lost.
pub fn send(listener: *const SegmentListener, interface_index: u32, bytes: []const u8) void {
    const address: linux.sockaddr.ll = .{
        .protocol = std.mem.nativeToBig(u16, linux.ETH.P.IP),
        .ifindex = @intCast(interface_index),
        .hatype = 0,
        .pkttype = 0,
        .halen = 6,
        .addr = bytes[0..6].* ++ [2]u8{ 0, 0 },
    };
    _ =
        linux.sendto(
            listener.fd,
            bytes.ptr,
            bytes.len,
            0,
            @ptrCast(&address),
            @sizeOf(linux.sockaddr.ll),
        );
}

/// Switches the capture of frames that this machine sends. Whatever the filter decides, the
/// kernel clones each such frame for its listeners: during a stream that takes a tenth of the
/// edge's processor time. Kernels before 4.20 have no other method.
pub fn hearOutgoing(listener: *const SegmentListener, on: bool) void {
    sockets.setInt(
        listener.fd,
        linux.SOL.PACKET,
        packet_ignore_outgoing,
        @intFromBool(!on),
    ) catch {};
}

/// Receives what waits, at most one batch; returns its size. `frame` returns each.
pub fn receive(listener: *SegmentListener) usize {
    return listener.batch.receive(listener.fd);
}

/// Returns null for a frame that has already been seen.
pub fn frameAt(listener: *const SegmentListener, index: usize) ?Frame {
    const is_outgoing = listener.batch.names[index].pkttype == packet_outgoing;
    if (is_outgoing and listener.is_loopback) return null;
    const bytes = listener.batch.bytes(index);
    const told = toldBy(listener.batch.control(index));
    return .{
        .bytes = bytes,
        .size = @max(told.size, @as(u32, @intCast(bytes.len))),
        .unix_ns = told.unix_ns,
        .is_outgoing = is_outgoing,
    };
}

/// Adds what the kernel has dropped since the last call.
pub fn countDrops(listener: *SegmentListener) u64 {
    var statistics: Statistics = .{ .packets = 0, .drops = 0 };
    var size: linux.socklen_t = @sizeOf(Statistics);
    const rc = linux.getsockopt(
        listener.fd,
        linux.SOL.PACKET,
        packet_statistics,
        @ptrCast(&statistics),
        &size,
    );
    _ = sys.check(rc) catch return 0;
    listener.dropped += statistics.drops;
    return statistics.drops;
}

fn isLoopback(fd: i32) bool {
    var address: linux.sockaddr.ll = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.ll);
    _ = sys.check(linux.getsockname(fd, @ptrCast(&address), &size)) catch return false;
    return address.hatype == loopback_type;
}

const FrameFacts = struct { unix_ns: u64 = 0, size: u32 = 0 };

/// Parses the control messages of one frame (cmsg(3)), as the kernel wrote them.
fn toldBy(messages: []const u8) FrameFacts {
    var told: FrameFacts = .{};
    const header_size = @sizeOf(linux.cmsghdr);
    var rest = messages;
    while (rest.len >= header_size) {
        const control = std.mem.bytesToValue(linux.cmsghdr, rest[0..header_size]);
        if (control.len < header_size or control.len > rest.len) break;
        const value = rest[header_size..control.len];
        if (control.level == linux.SOL.SOCKET and control.type == so_timestamp_ns) {
            if (value.len >= @sizeOf(linux.timespec))
                told.unix_ns = nsOf(value[0..@sizeOf(linux.timespec)]);
        } else if (control.level == linux.SOL.PACKET and control.type == packet_auxdata) {
            if (value.len >= @sizeOf(AuxiliaryData)) told.size =
                std.mem.bytesToValue(AuxiliaryData, value[0..@sizeOf(AuxiliaryData)]).size;
        }
        rest = rest[@min(std.mem.alignForward(usize, control.len, 8), rest.len)..];
    }
    return told;
}

fn nsOf(bytes: *const [@sizeOf(linux.timespec)]u8) u64 {
    const ts = std.mem.bytesToValue(linux.timespec, bytes);
    if (ts.sec < 0) return 0;
    return @as(u64, @intCast(ts.sec)) * std.time.ns_per_s + @as(u64, @intCast(ts.nsec));
}

const testing = std.testing;

test "a packet sent on loopback is heard once, cut to what the filter passes, with its time" {
    const loopback: base.Ip4 = .init(127, 0, 0, 1);
    const any: base.Endpoint = .{ .ip = loopback, .port = 0 };
    const interface = (try sockets.interfaceOf(loopback)).?;
    const to = try sockets.openUdp(.{ .address = any });
    defer sys.close(to);
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(to, @ptrCast(&address), &size));
    const port = sockets.fromSockaddr(&address).port;
    var listener = SegmentListener.open(testing.allocator, interface.index, .{
        .tftp = port,
        .http = 1,
    }) catch |err| switch (err) {
        error.NotPermitted => return error.SkipZigTest,
        else => return err,
    };
    defer listener.close(testing.allocator);
    const request = "\x00\x01" ++ @as([900]u8, @splat('x'));
    _ = try sys.check(linux.sendto(to, request, request.len, 0, @ptrCast(&address), size));
    // Loopback delivers within the call.
    const count = listener.receive();
    var heard: usize = 0;
    for (0..count) |index| {
        const frame = listener.frameAt(index) orelse continue;
        heard += 1;
        try testing.expectEqual(14 + 20 + 8 + request.len, frame.size);
        try testing.expectEqual(packet_filter.snap_size_head, frame.bytes.len);
        try testing.expect(frame.unix_ns > 1_600_000_000 * std.time.ns_per_s);
    }
    try testing.expectEqual(1, heard);
    try testing.expectEqual(0, listener.countDrops());
}
