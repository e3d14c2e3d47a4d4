//! A UDP socket of the packet loop: datagrams come in batches; large answers go out as one
//! super-packet that kernel or network card cuts (UDP_SEGMENT). Sending never waits longer than a
//! few ms: what does not go out is asked for again by the device.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const kernel_stamp = @import("kernel_stamp.zig");
const sys = @import("sys.zig");
const sockets = @import("sockets.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Endpoint = base.Endpoint;

pub const batch_max = 32;
/// Longer datagrams arrive cut, and every parser refuses what is longer than this less one.
pub const datagram_size_max = 2048;
/// A super-packet is one IP packet to the kernel; 64 segments work everywhere.
const super_packet_size_max = 65_000;
const segments_max = 64;
/// In parts, that many packets go out together, and before them that few.
const part_packets_max = 16;
const part_packets_first = 4;
/// How often, and for how long each time, a full send buffer is waited for.
const send_tries_max = 3;
const send_wait_ms = 2;

pub const Datagram = struct {
    from: Endpoint,
    bytes: []const u8,
    /// When it arrived, µs of the monotonic clock, however late it is read.
    at_us: u64,
};

/// One fragment of an answer: a header, and bytes behind it.
pub const Segment = struct { header: [16]u8, bytes: []const u8 };

pub const UdpSocket = struct {
    fd: i32,
    /// Packets to be sent carry this source address; for sockets bound to 0.0.0.0.
    source_ip: ?base.Ip4 = null,
    /// For sockets bound to 0.0.0.0 that several networks reach: packets to be sent carry this edge's
    /// address in the receiver's network, and what was sent to any other address of this machine is
    /// left alone.
    own: ?core.dhcp_network.Addresses = null,
    segmentation: bool = true,
    dropped: u64 = 0,
    batch: *Batch,

    const Batch = struct {
        buffers: [batch_max][datagram_size_max]u8,
        names: [batch_max]linux.sockaddr.in,
        vectors: [batch_max]std.posix.iovec,
        messages: [batch_max]linux.mmsghdr,
        controls: [batch_max][received_control_size]u8 align(8),
        /// When it was received.
        clocks: kernel_stamp.Clocks,
        /// How many of them the last receive has written to; at first all.
        used: usize,
        /// Which of them are for this edge.
        taken: [batch_max]u8,
    };

    /// A stamp and an IP_PKTINFO (12 bytes), padded.
    const received_control_size = kernel_stamp.control_size + @sizeOf(linux.cmsghdr) + 16;

    pub fn init(
        gpa: std.mem.Allocator,
        fd: i32,
        source_ip: ?base.Ip4,
    ) error{OutOfMemory}!UdpSocket {
        kernel_stamp.stampPackets(fd);
        const batch = try gpa.create(Batch);
        batch.used = batch_max;
        return .{ .fd = fd, .source_ip = source_ip, .batch = batch };
    }

    pub fn deinit(socket: *UdpSocket, gpa: std.mem.Allocator) void {
        sys.close(socket.fd);
        gpa.destroy(socket.batch);
        socket.* = undefined;
    }

    /// Receives what waits, at most one batch; returns its size. `datagram` gives each.
    pub fn receive(socket: *UdpSocket) usize {
        const batch = socket.batch;
        const used = batch.used;
        for (
            batch.messages[0..used],
            batch.vectors[0..used],
            batch.buffers[0..used],
            batch.names[0..used],
            batch.controls[0..used],
        ) |*message, *vector, *buffer, *name, *control| {
            vector.* = .{ .base = buffer, .len = buffer.len };
            message.* = .{ .len = 0, .hdr = .{
                .name = @ptrCast(name),
                .namelen = @sizeOf(linux.sockaddr.in),
                .iov = @ptrCast(vector),
                .iovlen = 1,
                .control = control,
                .controllen = control.len,
                .flags = 0,
            } };
        }
        // An ICMP error of an earlier answer comes back as an error here; the next call goes on.
        const count = sys.check(
            linux.recvmmsg(socket.fd, &batch.messages, batch_max, linux.MSG.DONTWAIT, null),
        ) catch 0;
        batch.used = count;
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
        return own.has(destinationIn(socket.controlOf(index)) orelse return false);
    }

    fn controlOf(socket: *const UdpSocket, index: usize) []const u8 {
        const size: usize = @intCast(socket.batch.messages[index].hdr.controllen);
        return socket.batch.controls[index][0..@min(size, received_control_size)];
    }

    /// Valid for the indexes below the last `receive`'s count.
    pub fn datagram(socket: *const UdpSocket, index: usize) Datagram {
        const batch = socket.batch;
        const at = batch.taken[index];
        const message = &batch.messages[at];
        return .{
            .from = sockets.fromSockaddr(&batch.names[at]),
            .bytes = batch.buffers[at][0..message.len],
            .at_us = if (kernel_stamp.find(socket.controlOf(at), kernel_stamp.each_packet)) |stamp_ns|
                batch.clocks.monotonicOf(stamp_ns)
            else
                batch.clocks.monotonic_us,
        };
    }

    pub fn send(socket: *UdpSocket, to: Endpoint, bytes: []const u8) void {
        const vector: [1]std.posix.iovec_const = .{.{ .base = bytes.ptr, .len = bytes.len }};
        socket.sendVectors(to, &vector, null) catch {};
    }

    /// All but the last segment are of the same size.
    pub fn sendSegments(socket: *UdpSocket, to: Endpoint, segments: []const Segment) void {
        if (segments.len == 0) return;
        const size = segments[0].header.len + segments[0].bytes.len;
        const together = @max(1, @min(segments_max, super_packet_size_max / size));
        var sent: usize = 0;
        while (sent < segments.len) {
            const count = @min(if (socket.segmentation) together else 1, segments.len - sent);
            const part = segments[sent..][0..count];
            socket.sendPart(to, part, size) catch |err| switch (err) {
                // This interface or kernel cannot cut: one by one from now on.
                error.Unsupported => {
                    socket.segmentation = false;
                    continue;
                },
                error.Dropped => return,
            };
            sent += count;
        }
    }

    pub const Cut = struct {
        pieces_each: usize,
        /// In bytes; the last one has at most that.
        packet_size: usize,
        /// For a receiver that waits: it takes the first packets in while the kernel cuts the rest, so
        /// that it does not fall asleep, or has woken by then. Costs a little more, for nothing where
        /// both are on the same processor.
        in_parts: bool = false,
    };

    /// `pieces` are those of all packets. What kernel and card cannot cut goes out in batches of single
    /// packets.
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
            if (count > 1 and !socket.segmentation) {
                socket.sendSingly(to, part, pieces_each);
                continue;
            }
            const size: ?u16 = if (count > 1) @intCast(cut.packet_size) else null;
            socket.sendVectors(to, part, size) catch |err| switch (err) {
                // This interface or kernel cannot cut: one by one from now on.
                error.Unsupported => {
                    socket.segmentation = false;
                    socket.sendSingly(to, part, pieces_each);
                },
                error.Dropped => return,
            };
        }
    }

    /// At most `segments_max` packets in one system call.
    fn sendSingly(
        socket: *UdpSocket,
        to: Endpoint,
        pieces: []const std.posix.iovec_const,
        pieces_each: usize,
    ) void {
        var name = sockets.toSockaddr(to);
        var control: Control = .{};
        if (socket.source_ip) |ip| control.addSource(ip);
        if (socket.own) |*own| control.addSource(own.facing(to.ip));
        var messages: [segments_max]linux.mmsghdr = undefined;
        const count = pieces.len / pieces_each;
        assert(count <= segments_max);
        for (messages[0..count], 0..) |*message, index| {
            // The kernel only reads what goes out.
            const own: []std.posix.iovec = @ptrCast(@constCast(
                pieces[index * pieces_each ..][0..pieces_each],
            ));
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
                .AGAIN, .NOBUFS => socket.waitWritable(),
                else => break,
            }
            tries += 1;
            if (tries == send_tries_max) break;
        }
        socket.dropped += count - sent;
    }

    fn sendPart(
        socket: *UdpSocket,
        to: Endpoint,
        part: []const Segment,
        size: usize,
    ) SendError!void {
        var vectors: [2 * segments_max]std.posix.iovec_const = undefined;
        for (part, 0..) |*segment, index| {
            vectors[2 * index] = .{ .base = &segment.header, .len = segment.header.len };
            vectors[2 * index + 1] = .{ .base = segment.bytes.ptr, .len = segment.bytes.len };
        }
        const cut: ?u16 = if (part.len > 1) @intCast(size) else null;
        try socket.sendVectors(to, vectors[0 .. 2 * part.len], cut);
    }

    const SendError = error{ Unsupported, Dropped };

    fn sendVectors(
        socket: *UdpSocket,
        to: Endpoint,
        vectors: []const std.posix.iovec_const,
        cut: ?u16,
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
                .AGAIN, .NOBUFS => socket.waitWritable(),
                .IO, .INVAL, .OPNOTSUPP => if (cut != null) return error.Unsupported else break,
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
};

/// The address that a datagram was sent to, out of its IP_PKTINFO (ip(7)): interface, the address that
/// took it, the one in its header.
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

/// Control messages of one sendmsg (cmsg(3)), each padded to 8 bytes.
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
        const header: linux.cmsghdr = .{
            .len = header_size + bytes.len,
            .level = level,
            .type = kind,
        };
        const place = control.bytes[control.size..];
        @memcpy(place[0..header_size], std.mem.asBytes(&header));
        @memcpy(place[header_size..][0..bytes.len], bytes);
        control.size += std.mem.alignForward(usize, header_size + bytes.len, 8);
        assert(control.size <= control.bytes.len);
    }
};

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

test "a cut super-packet arrives as the segments it was made of" {
    var sender = try testSocket();
    defer sender.deinit(testing.allocator);
    var receiver = try testSocket();
    defer receiver.deinit(testing.allocator);
    const disk: [100 * 1456]u8 = @splat(7);
    var segments: [100]Segment = undefined;
    for (&segments, 0..) |*segment, index| {
        const length: usize = if (index == 99) 10 else 1456;
        segment.* = .{
            .header = @splat(@intCast(index)),
            .bytes = disk[index * 1456 ..][0..length],
        };
    }
    sender.sendSegments(try endpointOf(&receiver), &segments);
    var received: usize = 0;
    while (received < segments.len) {
        const count = receiver.receive();
        try testing.expect(count > 0);
        for (0..count) |index| {
            const datagram = receiver.datagram(index);
            const last = received + index == 99;
            try testing.expectEqual(@as(usize, if (last) 26 else 1472), datagram.bytes.len);
            try testing.expectEqual(received + index, datagram.bytes[0]);
            try testing.expect(datagram.from.eql(try endpointOf(&sender)));
        }
        received += count;
    }
    try testing.expectEqual(0, sender.dropped);
}

test "a socket of several networks answers with its address there, and takes nothing for other addresses" {
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
    var open: UdpSocket = try .init(
        testing.allocator,
        try sockets.openUdp(.{ .address = any }),
        .init(127, 0, 0, 9),
    );
    defer open.deinit(testing.allocator);
    open.send(try endpointOf(&receiver), "hello");
    try testing.expectEqual(1, receiver.receive());
    try testing.expect(receiver.datagram(0).from.ip.eql(.init(127, 0, 0, 9)));
    try testing.expectEqualStrings("hello", receiver.datagram(0).bytes);
}

test "a datagram that is read late has the time at which it arrived" {
    var witness = try @import("stamp_witness.zig").StampWitness.init(testing.allocator);
    defer witness.deinit(testing.allocator);
    var sender = try testSocket();
    defer sender.deinit(testing.allocator);
    var receiver = try testSocket();
    defer receiver.deinit(testing.allocator);
    const before_us = sys.monotonicUs();
    sender.send(try endpointOf(&receiver), "first");
    const between_us = sys.monotonicUs();
    // On loopback it has arrived when the sender's call is over.
    while (sys.monotonicUs() < between_us + 20_000) {}
    try testing.expectEqual(1, receiver.receive());
    const at_us = receiver.datagram(0).at_us;
    try testing.expect(at_us >= before_us and at_us <= between_us);
}
