//! Packets for the edge that are ready at the same time: passed to the kernel as one, which the
//! kernel or the network card segments (UDP_SEGMENT, udp(7)). A write of 64 KiB is 46 packets, and
//! a system call for each would cost more than everything else.

const std = @import("std");
const host = @import("host");
const linux = std.os.linux;
const assert = std.debug.assert;
const room_size = @import("wire").stream.sealed_request_size_max;

pub const PacketBurst = @This();

bytes: [bytes_max + room_size]u8 = undefined,
size: usize = 0,
count: usize = 0,
/// Size of all but the last, which may be shorter.
packet_size: usize = 0,
/// False once the kernel or the interface has refused to segment.
is_cut: bool = true,
/// The network reported that nobody listens there: the kernel tells the next call, and only
/// once. The caller that handles it clears it.
is_refused: bool = false,

/// The kernel's limit of segments, and the most bytes of a UDP packet.
const packets_max = 64;
const bytes_max = 65_507;

/// Where the next packet is written.
pub fn packetBuffer(burst: *PacketBurst) *[room_size]u8 {
    return burst.bytes[burst.size..][0..room_size];
}

/// `size` bytes have been written to `room`. They may stay here until `flush`.
pub fn add(burst: *PacketBurst, fd: i32, size: usize) void {
    assert(size > 0 and size <= room_size);
    if (burst.count > 0 and (size > burst.packet_size or burst.size + size > bytes_max)) {
        const begin = burst.size;
        burst.flush(fd);
        std.mem.copyForwards(u8, burst.bytes[0..size], burst.bytes[begin..][0..size]);
    }
    if (burst.count == 0) burst.packet_size = size;
    burst.count += 1;
    burst.size += size;
    if (size < burst.packet_size or burst.count == packets_max) burst.flush(fd);
}

/// A packet that the kernel refuses counts as lost: the stream retransmits it.
pub fn flush(burst: *PacketBurst, fd: i32) void {
    if (burst.count > 1 and burst.is_cut)
        burst.is_cut = burst.sendCut(fd, burst.bytes[0..burst.size], @intCast(burst.packet_size));
    if (burst.count == 1 or !burst.is_cut) {
        var rest: []const u8 = burst.bytes[0..burst.size];
        while (rest.len > 0) {
            const packet = rest[0..@min(rest.len, burst.packet_size)];
            if (linux.errno(
                linux.sendto(fd, packet.ptr, packet.len, flags, null, 0),
            ) == .CONNREFUSED) burst.is_refused = true;
            rest = rest[packet.len..];
        }
    }
    burst.size = 0;
    burst.count = 0;
}

const flags = linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL;

/// Returns false if nothing was sent, and segmentation will never work.
fn sendCut(burst: *PacketBurst, fd: i32, bytes: []const u8, packet_size: u16) bool {
    const header_size = @sizeOf(linux.cmsghdr);
    var control: [std.mem.alignForward(usize, header_size + 2, 8)]u8 align(8) = @splat(0);
    const header: linux.cmsghdr =
        .{ .len = header_size + 2, .level = linux.IPPROTO.UDP, .type = linux.UDP.SEGMENT };
    @memcpy(control[0..header_size], std.mem.asBytes(&header));
    @memcpy(control[header_size..][0..2], std.mem.asBytes(&packet_size));
    const vector: [1]std.posix.iovec_const = .{.{ .base = bytes.ptr, .len = bytes.len }};
    const message: linux.msghdr_const = .{
        .name = null,
        .namelen = 0,
        .iov = &vector,
        .iovlen = 1,
        .control = &control,
        .controllen = control.len,
        .flags = 0,
    };
    return switch (linux.errno(linux.sendmsg(fd, &message, flags))) {
        .IO, .INVAL, .OPNOTSUPP, .MSGSIZE => false,
        .CONNREFUSED => blk: {
            burst.is_refused = true;
            break :blk true;
        },
        else => true,
    };
}

const testing = std.testing;
const sys = host.sys;

/// Two loopback sockets, the first connected to the second.
fn testPair() ![2]i32 {
    const kind = linux.SOCK.DGRAM | linux.SOCK.CLOEXEC | linux.SOCK.NONBLOCK;
    const fds: [2]i32 = .{
        @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0))),
        @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0))),
    };
    var address: linux.sockaddr.in = .{ .port = 0, .addr = @bitCast([4]u8{ 127, 0, 0, 1 }) };
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.bind(fds[1], @ptrCast(&address), size));
    _ = try sys.check(linux.getsockname(fds[1], @ptrCast(&address), &size));
    _ = try sys.check(linux.connect(fds[0], &address, size));
    return fds;
}

fn expectArrival(burst: *PacketBurst, sizes: []const usize) !void {
    const fds = try testPair();
    defer for (fds) |fd| sys.close(fd);
    for (sizes, 0..) |size, index| {
        @memset(burst.packetBuffer()[0..size], @truncate(index));
        burst.add(fds[0], size);
    }
    burst.flush(fds[0]);
    for (sizes, 0..) |size, index| {
        var buffer: [room_size]u8 = undefined;
        const got = try sys.check(linux.recvfrom(fds[1], &buffer, buffer.len, 0, null, null));
        try testing.expectEqual(size, got);
        try testing.expect(std.mem.allEqual(u8, buffer[0..size], @truncate(index)));
    }
    var more: [1]u8 = undefined;
    try testing.expectEqual(
        .AGAIN,
        linux.errno(linux.recvfrom(fds[1], &more, more.len, 0, null, null)),
    );
}

test "packets arrive as they were added, whether the kernel segments or not" {
    var sizes: [90]usize = @splat(room_size);
    for ([_]usize{ 20, 21, 22, 23, 40 }) |index| sizes[index] = 40;
    sizes[30] = 700;
    sizes[31] = 701;
    sizes[89] = 1;
    for ([_]bool{ true, false }) |is_cut| {
        var burst: PacketBurst = .{ .is_cut = is_cut };
        try expectArrival(&burst, &sizes);
        try testing.expectEqual(is_cut, burst.is_cut);
        try expectArrival(&burst, &.{40});
        try expectArrival(&burst, sizes[32..40]);
    }
}

test "packets that an interface cannot segment are sent one by one, and none is lost by trying" {
    const fds = try testPair();
    defer for (fds) |fd| sys.close(fd);
    // Without checksums the kernel refuses to segment (udp_send_skb).
    const on: c_int = 1;
    const no_check = 11;
    _ = try sys.check(
        linux.setsockopt(fds[0], linux.SOL.SOCKET, no_check, std.mem.asBytes(&on), @sizeOf(c_int)),
    );
    var burst: PacketBurst = .{};
    for (0..3) |_| burst.add(fds[0], 100);
    burst.flush(fds[0]);
    try testing.expect(!burst.is_cut);
    for (0..3) |_| {
        var buffer: [room_size]u8 = undefined;
        try testing.expectEqual(
            100,
            try sys.check(linux.recvfrom(fds[1], &buffer, buffer.len, 0, null, null)),
        );
    }
}
