//! A UDP socket of the packet loop. Datagrams are received in batches; large answers are sent as
//! one super-packet that the kernel or the network card segments (UDP_SEGMENT). Sending waits at
//! most a few ms for a full buffer, and `sendPackets` not at all: the device retransmits its
//! request for what was not sent.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const kernel_stamp = @import("kernel_stamp.zig");
const ReceiveBatch = @import("receive_batch.zig").ReceiveBatch;
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Endpoint = base.Endpoint;

pub const batch_max = 32;
/// Longer datagrams arrive truncated, and every parser refuses what is longer than this less one.
pub const datagram_size_max = 2048;
/// A super-packet is one IP packet for the kernel; 64 segments work everywhere.
const super_packet_size_max = 65_000;
const segments_max = 64;
/// In parts: this many packets are sent together, and before them this few.
const part_packets_max = 16;
const part_packets_first = 4;
/// How often, and how long each time, sending waits for a full send buffer.
const send_tries_max = 3;
const send_wait_ms = 2;

pub const Datagram = struct {
    from: Endpoint,
    bytes: []const u8,
    /// When it arrived, in µs of the monotonic clock, however late it is read.
    at_us: u64,
};

/// A socket with fixed buffers for one batch.
pub const UdpSocket = @This();

fd: i32,
/// The source address of sent packets; for sockets bound to 0.0.0.0.
source_ip: ?base.Ip4 = null,
/// For sockets bound to 0.0.0.0 that several networks reach: sent packets carry this edge's
/// address in the receiver's network, and packets to any other address of this machine are
/// ignored.
own: ?core.dhcp.network.Addresses = null,
/// Interfaces (bits, as in `own`) that cannot segment super-packets.
uncut_links: u32 = 0,
/// Packets and super-packets that were not sent.
dropped: u64 = 0,
batch: *Batch,

const Batch = struct {
    packets: *Packets,
    /// When the batch was received.
    clocks: kernel_stamp.Clocks,
    /// The indexes of the packets that are for this edge.
    taken: [batch_max]u8,

    const Packets = ReceiveBatch(linux.sockaddr.in, .{
        .count = batch_max,
        .packet_size = datagram_size_max,
        .control_size = received_control_size,
    });
};

/// A stamp and an IP_PKTINFO (12 bytes), padded.
const received_control_size = kernel_stamp.control_size + @sizeOf(linux.cmsghdr) + 16;

pub fn init(gpa: std.mem.Allocator, fd: i32, source_ip: ?base.Ip4) error{OutOfMemory}!UdpSocket {
    kernel_stamp.stampPackets(fd);
    const batch = try gpa.create(Batch);
    errdefer gpa.destroy(batch);
    batch.packets = try .create(gpa);
    return .{ .fd = fd, .source_ip = source_ip, .batch = batch };
}

pub fn deinit(socket: *UdpSocket, gpa: std.mem.Allocator) void {
    sys.close(socket.fd);
    gpa.destroy(socket.batch.packets);
    gpa.destroy(socket.batch);
    socket.* = undefined;
}

/// Receives what waits, at most one batch; returns its size. `datagram` returns each.
pub fn receive(socket: *UdpSocket) usize {
    const batch = socket.batch;
    const count = batch.packets.receive(socket.fd);
    if (count > 0) batch.clocks = .now();
    var taken: usize = 0;
    for (0..count) |index| {
        if (!socket.isOurs(index)) continue;
        batch.taken[taken] = @intCast(index);
        taken += 1;
    }
    return taken;
}

fn isOurs(socket: *const UdpSocket, index: usize) bool {
    const own = if (socket.own) |*own| own else return true;
    return own.has(destinationIn(socket.batch.packets.control(index)) orelse return false);
}

/// Valid for indexes below the count of the last `receive`.
pub fn datagram(socket: *const UdpSocket, index: usize) Datagram {
    const batch = socket.batch;
    const at = batch.taken[index];
    return .{
        .from = sockets.fromSockaddr(&batch.packets.names[at]),
        .bytes = batch.packets.bytes(at),
        .at_us = if (kernel_stamp.find(
            batch.packets.control(at),
            kernel_stamp.each_packet,
        )) |stamp_ns|
            batch.clocks.monotonicOf(stamp_ns)
        else
            batch.clocks.monotonic_us,
    };
}

/// The sender of such a datagram.
pub fn sender(socket: *const UdpSocket, index: usize) Endpoint {
    return sockets.fromSockaddr(&socket.batch.packets.names[socket.batch.taken[index]]);
}

pub fn send(socket: *UdpSocket, to: Endpoint, bytes: []const u8) void {
    const vector: [1]std.posix.iovec_const = .{.{ .base = bytes.ptr, .len = bytes.len }};
    socket.sendVectors(to, &vector, null, .waits) catch {};
}

/// Sends packets of `packet_size` bytes, one behind the other, at most `packetsTogether` of
/// them; the last one may be shorter. Never waits: returns how many were sent, fewer than all
/// if the send buffer is full. What is lost for another reason counts as sent.
pub fn sendPackets(
    socket: *UdpSocket,
    to: Endpoint,
    packets: []const u8,
    packet_size: usize,
) usize {
    const count = std.math.divCeil(usize, packets.len, packet_size) catch unreachable;
    const link = socket.linkTo(to);
    if (count > 1 and socket.isCutting(link)) {
        const whole: [1]std.posix.iovec_const = .{.{ .base = packets.ptr, .len = packets.len }};
        if (socket.sendVectors(to, &whole, @intCast(packet_size), .at_once))
            return count
        else |err| switch (err) {
            error.Full => return 0,
            error.Dropped => return count,
            error.Unsupported => socket.onUncut(link),
            // For this receiver only: the packets are larger than its path takes as one.
            error.TooLarge => {},
        }
    }
    var vectors: [segments_max]std.posix.iovec_const = undefined;
    for (vectors[0..count], 0..) |*vector, index| {
        const packet = packets[index * packet_size ..];
        vector.* = .{ .base = packet.ptr, .len = @min(packet_size, packet.len) };
    }
    return socket.sendSingly(to, vectors[0..count], 1, .at_once);
}

/// Returns how many packets of this size the kernel takes as one.
pub fn packetsTogether(packet_size: usize) usize {
    return @max(1, @min(segments_max, super_packet_size_max / packet_size));
}

pub const Cut = struct {
    pieces_each: usize,
    /// In bytes; the last one has at most this size.
    packet_size: usize,
    /// For a receiver that waits: it handles the first packets while the kernel segments the
    /// rest, so that it does not fall asleep, or has woken by then. Costs a little more, in
    /// vain if both are on the same processor.
    in_parts: bool = false,
};

/// `pieces` are those of all packets. What neither kernel nor card can segment is sent in
/// batches of single packets.
pub fn sendCut(
    socket: *UdpSocket,
    to: Endpoint,
    pieces: []const std.posix.iovec_const,
    cut: Cut,
) void {
    const pieces_each = cut.pieces_each;
    assert(pieces.len % pieces_each == 0);
    const packets = pieces.len / pieces_each;
    const packets_max: usize = if (cut.in_parts) part_packets_max else segments_max;
    const together = @max(1, @min(packets_max, super_packet_size_max / cut.packet_size));
    var sent: usize = 0;
    while (sent < packets) {
        const is_first = cut.in_parts and sent == 0;
        const most = if (is_first) @min(together, part_packets_first) else together;
        const count = @min(most, packets - sent);
        const part = pieces[sent * pieces_each ..][0 .. count * pieces_each];
        sent += count;
        const link = socket.linkTo(to);
        if (count > 1 and !socket.isCutting(link)) {
            _ = socket.sendSingly(to, part, pieces_each, .waits);
            continue;
        }
        const size: ?u16 = if (count > 1) @intCast(cut.packet_size) else null;
        socket.sendVectors(to, part, size, .waits) catch |err| switch (err) {
            error.Unsupported, error.TooLarge => {
                if (err == error.Unsupported) socket.onUncut(link);
                _ = socket.sendSingly(to, part, pieces_each, .waits);
            },
            error.Full, error.Dropped => return,
        };
    }
}

const WhenFull = enum { waits, at_once };

/// Returns the interface that leads to a receiver, as far as this socket distinguishes them.
fn linkTo(socket: *const UdpSocket, to: Endpoint) u5 {
    const own = if (socket.own) |*own| own else return 0;
    const facing = own.facing(to.ip);
    for (own.links, 0..) |*link, index| if (link.ip.eql(facing)) return @intCast(index);
    return 0;
}

fn isCutting(socket: *const UdpSocket, link: u5) bool {
    return socket.uncut_links & @as(u32, 1) << link == 0;
}

/// This interface or kernel cannot segment: sends one by one from now on.
fn onUncut(socket: *UdpSocket, link: u5) void {
    socket.uncut_links |= @as(u32, 1) << link;
}

/// Sends at most `segments_max` packets in one system call. Returns how many were sent or lost:
/// fewer than all only if `when_full` does not wait.
fn sendSingly(
    socket: *UdpSocket,
    to: Endpoint,
    pieces: []const std.posix.iovec_const,
    pieces_each: usize,
    when_full: WhenFull,
) usize {
    var name = sockets.toSockaddr(to);
    var control: Control = .{};
    if (socket.source_ip) |ip| control.addSource(ip);
    if (socket.own) |*own| control.addSource(own.facing(to.ip));
    var messages: [segments_max]linux.mmsghdr = undefined;
    const count = pieces.len / pieces_each;
    assert(count <= segments_max);
    for (messages[0..count], 0..) |*message, index| {
        // The kernel only reads what is sent.
        const own: []std.posix.iovec =
            @ptrCast(@constCast(pieces[index * pieces_each ..][0..pieces_each]));
        message.* = .{ .len = 0, .hdr = .{
            .name = @ptrCast(&name),
            .namelen = @sizeOf(linux.sockaddr.in),
            .iov = own.ptr,
            .iovlen = @intCast(own.len),
            .control = if (control.size > 0) &control.bytes else null,
            .controllen = @intCast(control.size),
            .flags = 0,
        } };
    }
    var sent: usize = 0;
    var tries: u32 = 0;
    while (sent < count) {
        const rest = messages[sent..count];
        const rc = linux.sendmmsg(socket.fd, rest.ptr, @intCast(rest.len), linux.MSG.NOSIGNAL);
        switch (linux.errno(rc)) {
            .SUCCESS => {
                sent += rc;
                continue;
            },
            .INTR => {},
            .AGAIN => if (when_full == .at_once) return sent else socket.waitWritable(),
            .NOBUFS => if (when_full == .at_once) break else socket.waitWritable(),
            else => break,
        }
        tries += 1;
        if (tries == send_tries_max) break;
    }
    socket.dropped += count - sent;
    return count;
}

/// `Unsupported`: the interface or the kernel cannot segment. `TooLarge`: nothing of this size
/// can be segmented on the path to this receiver, or the kernel does not support it. `Full`:
/// the send buffer.
const SendError = error{ Unsupported, TooLarge, Full, Dropped };

fn sendVectors(
    socket: *UdpSocket,
    to: Endpoint,
    vectors: []const std.posix.iovec_const,
    cut: ?u16,
    when_full: WhenFull,
) SendError!void {
    const name = sockets.toSockaddr(to);
    var control: Control = .{};
    if (socket.source_ip) |ip| control.addSource(ip);
    if (socket.own) |*own| control.addSource(own.facing(to.ip));
    if (cut) |size| control.addSegmentSize(size);
    const message: linux.msghdr_const = .{
        .name = @ptrCast(&name),
        .namelen = @sizeOf(linux.sockaddr.in),
        .iov = vectors.ptr,
        .iovlen = @intCast(vectors.len),
        .control = if (control.size > 0) &control.bytes else null,
        .controllen = @intCast(control.size),
        .flags = 0,
    };
    for (0..send_tries_max) |_| {
        switch (linux.errno(linux.sendmsg(socket.fd, &message, linux.MSG.NOSIGNAL))) {
            .SUCCESS => return,
            .INTR => {},
            .AGAIN => if (when_full == .at_once) return error.Full else socket.waitWritable(),
            .NOBUFS => if (when_full == .at_once) break else socket.waitWritable(),
            .IO, .OPNOTSUPP => if (cut != null) return error.Unsupported else break,
            .INVAL, .MSGSIZE => if (cut != null) return error.TooLarge else break,
            else => break,
        }
    }
    socket.dropped += 1;
    return error.Dropped;
}

fn waitWritable(socket: *const UdpSocket) void {
    var polled = [1]linux.pollfd{.{ .fd = socket.fd, .events = linux.POLL.OUT, .revents = 0 }};
    _ = linux.poll(&polled, polled.len, send_wait_ms);
}

/// Returns the destination address of a datagram from its IP_PKTINFO (ip(7)): interface, the
/// address that accepted it, the one in its header.
fn destinationIn(control: []const u8) ?base.Ip4 {
    const head_size = @sizeOf(linux.cmsghdr);
    var rest = control;
    while (rest.len >= head_size) {
        const head = std.mem.bytesToValue(linux.cmsghdr, rest[0..head_size]);
        if (head.len < head_size or head.len > rest.len) return null;
        const content = rest[head_size..head.len];
        if (head.level == linux.SOL.IP and head.type == linux.IP.PKTINFO and content.len >= 12)
            return .{ .bytes = content[8..12].* };
        rest = rest[@min(std.mem.alignForward(usize, head.len, 8), rest.len)..];
    }
    return null;
}

/// The control messages of one sendmsg (cmsg(3)), each padded to 8 bytes.
const Control = struct {
    bytes: [64]u8 align(8) = @splat(0),
    size: usize = 0,

    const header_size = @sizeOf(linux.cmsghdr);

    fn addSource(control: *Control, ip: base.Ip4) void {
        // struct in_pktinfo: interface 0 (any), source address, unused.
        var info: [12]u8 = @splat(0);
        info[4..8].* = ip.bytes;
        control.add(linux.SOL.IP, linux.IP.PKTINFO, &info);
    }

    fn addSegmentSize(control: *Control, size: u16) void {
        control.add(linux.IPPROTO.UDP, linux.UDP.SEGMENT, std.mem.asBytes(&size));
    }

    fn add(control: *Control, level: i32, kind: i32, bytes: []const u8) void {
        const header: linux.cmsghdr =
            .{ .len = header_size + bytes.len, .level = level, .type = kind };
        const place = control.bytes[control.size..];
        @memcpy(place[0..header_size], std.mem.asBytes(&header));
        @memcpy(place[header_size..][0..bytes.len], bytes);
        control.size += std.mem.alignForward(usize, header_size + bytes.len, 8);
        assert(control.size <= control.bytes.len);
    }
};
