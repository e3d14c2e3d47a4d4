//! The last packets of a simulated network as a capture for tcpdump and Wireshark: Ethernet, IPv4,
//! UDP. The clock starts at 0. A packet is recorded when it is sent; a time to live of 1 marks one
//! that the network lost.

const std = @import("std");
const base = @import("base");
const Endpoint = base.Endpoint;

pub const Pcap = @This();

const packets_max = 20_000;
const headers_size = 14 + 20 + 8;

packets: []Packet,
count: u64 = 0,

const Packet = struct {
    at_us: u64,
    from: Endpoint,
    to: Endpoint,
    is_lost: bool,
    size: u16,
    bytes: [payload_size_max]u8,
};
const payload_size_max = 8972;

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!Pcap {
    return .{ .packets = try gpa.alloc(Packet, packets_max) };
}

pub fn deinit(pcap: *Pcap, gpa: std.mem.Allocator) void {
    gpa.free(pcap.packets);
    pcap.* = undefined;
}

pub fn note(
    pcap: *Pcap,
    at_us: u64,
    from: Endpoint,
    to: Endpoint,
    bytes: []const u8,
    is_lost: bool,
) void {
    const packet = &pcap.packets[@intCast(pcap.count % pcap.packets.len)];
    pcap.count += 1;
    packet.* = .{
        .at_us = at_us,
        .from = from,
        .to = to,
        .is_lost = is_lost,
        .size = @intCast(bytes.len),
        .bytes = undefined,
    };
    @memcpy(packet.bytes[0..bytes.len], bytes);
}

pub fn write(pcap: *const Pcap, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    // Microseconds, version 2.4, no zone, whole packets, Ethernet.
    try writer.writeInt(u32, 0xa1b2c3d4, .little);
    try writer.writeInt(u16, 2, .little);
    try writer.writeInt(u16, 4, .little);
    try writer.writeInt(u64, 0, .little);
    try writer.writeInt(u32, 65535, .little);
    try writer.writeInt(u32, 1, .little);
    const kept = @min(pcap.count, pcap.packets.len);
    for (pcap.count - kept..pcap.count) |number| {
        const packet = &pcap.packets[@intCast(number % pcap.packets.len)];
        const size: u32 = @as(u32, headers_size) + packet.size;
        try writer.writeInt(u32, @intCast(packet.at_us / std.time.us_per_s), .little);
        try writer.writeInt(u32, @intCast(packet.at_us % std.time.us_per_s), .little);
        try writer.writeInt(u32, size, .little);
        try writer.writeInt(u32, size, .little);
        try writer.writeAll(&headersOf(packet));
        try writer.writeAll(packet.bytes[0..packet.size]);
    }
}

fn headersOf(packet: *const Packet) [headers_size]u8 {
    var bytes: [headers_size]u8 = @splat(0);
    // Locally administered addresses that end with the IP addresses.
    bytes[0..2].* = .{ 0x02, 0xbf };
    bytes[2..6].* = packet.to.ip.bytes;
    bytes[6..8].* = .{ 0x02, 0xbf };
    bytes[8..12].* = packet.from.ip.bytes;
    bytes[12..14].* = .{ 0x08, 0x00 };
    const ip = bytes[14..34];
    ip[0] = 0x45;
    std.mem.writeInt(u16, ip[2..4], 20 + 8 + packet.size, .big);
    // Don't fragment.
    ip[6] = 0x40;
    ip[8] = if (packet.is_lost) 1 else 64;
    ip[9] = 17;
    ip[12..16].* = packet.from.ip.bytes;
    ip[16..20].* = packet.to.ip.bytes;
    var sum: u32 = 0;
    for (0..10) |index| sum += std.mem.readInt(u16, ip[index * 2 ..][0..2], .big);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    std.mem.writeInt(u16, ip[10..12], ~@as(u16, @intCast(sum)), .big);
    // The UDP checksum is optional.
    const udp = bytes[34..42];
    std.mem.writeInt(u16, udp[0..2], packet.from.port, .big);
    std.mem.writeInt(u16, udp[2..4], packet.to.port, .big);
    std.mem.writeInt(u16, udp[4..6], 8 + packet.size, .big);
    return bytes;
}

test "a capture has a header, and frames with valid IP checksums" {
    var pcap: Pcap = try .init(std.testing.allocator);
    defer pcap.deinit(std.testing.allocator);
    const from: Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 6910 };
    const to: Endpoint = .{ .ip = .init(10, 0, 0, 2), .port = 5 };
    pcap.note(2_000_003, from, to, "stream", false);
    var buffer: [256]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    try pcap.write(&writer);
    const bytes = writer.buffered();
    try std.testing.expectEqual(24 + 16 + headers_size + 6, bytes.len);
    var sum: u32 = 0;
    for (0..10) |index|
        sum += std.mem.readInt(u16, bytes[24 + 16 + 14 + index * 2 ..][0..2], .big);
    try std.testing.expectEqual(0xffff, (sum & 0xffff) + (sum >> 16));
    try std.testing.expectEqualStrings("stream", bytes[bytes.len - 6 ..]);
}
