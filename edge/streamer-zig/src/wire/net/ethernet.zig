//! Ethernet frames with an IPv4 packet inside, as a listener on a segment receives them: IEEE
//! 802.3, 802.1Q (one or two tags), RFC 791, RFC 768, RFC 9293, RFC 792. The listener may truncate
//! frames, but not their headers. Checksums are not verified: the network card does that.

const std = @import("std");
const base = @import("base");

pub const header_size = 14;
/// 1500 and the header with two tags.
pub const frame_size_max = 1522;
const type_ip4: u16 = 0x0800;
const type_vlan: u16 = 0x8100;
const type_provider_vlan: u16 = 0x88a8;
const tags_max = 2;
const ip4_header_size_min = 20;
const udp_header_size = 8;
const tcp_header_size_min = 20;
const icmp_header_size = 8;

pub const Transport = enum { udp, tcp, icmp };

/// Slices point into the frame.
pub const Packet = struct {
    source_mac: base.Mac,
    destination_mac: base.Mac,
    transport: Transport,
    /// Port 0 for ICMP.
    source: base.Endpoint,
    destination: base.Endpoint,
    /// The part that is in the frame, without Ethernet's padding.
    payload: []const u8,
    /// Size of the sender's payload behind the transport header.
    payload_size: u16,

    pub fn isWhole(packet: *const Packet) bool {
        return packet.payload.len == packet.payload_size;
    }
};

pub const ParseError = error{ Truncated, NotIp4, BadHeader, Fragment, OtherTransport };

pub fn parse(frame: []const u8) ParseError!Packet {
    var cursor: base.Cursor = .init(frame);
    const destination_mac: base.Mac = .{ .bytes = (try cursor.array(6)).* };
    const source_mac: base.Mac = .{ .bytes = (try cursor.array(6)).* };
    var ether_type = try cursor.int(u16);
    for (0..tags_max) |_| {
        if (ether_type != type_vlan and ether_type != type_provider_vlan) break;
        _ = try cursor.int(u16);
        ether_type = try cursor.int(u16);
    }
    if (ether_type != type_ip4) return error.NotIp4;
    var packet = try parseIp4(cursor.rest());
    packet.source_mac = source_mac;
    packet.destination_mac = destination_mac;
    return packet;
}

fn parseIp4(bytes: []const u8) ParseError!Packet {
    if (bytes.len < ip4_header_size_min) return error.Truncated;
    if (bytes[0] >> 4 != 4) return error.NotIp4;
    const ip_header_size = @as(usize, bytes[0] & 0xf) * 4;
    const total_size = std.mem.readInt(u16, bytes[2..4], .big);
    if (ip_header_size < ip4_header_size_min or total_size < ip_header_size) return error.BadHeader;
    if (bytes.len < ip_header_size) return error.Truncated;
    // Only the first fragment has ports, and "more fragments" means that its payload is incomplete.
    const fragment_bits = std.mem.readInt(u16, bytes[6..8], .big);
    if (fragment_bits & 0x1fff != 0) return error.Fragment;
    const more_fragments = fragment_bits & 0x2000 != 0;
    const transport: Transport = switch (bytes[9]) {
        1 => .icmp,
        6 => .tcp,
        17 => .udp,
        else => return error.OtherTransport,
    };
    const rest = bytes[ip_header_size..@min(bytes.len, total_size)];
    const transport_size = try transportHeaderSize(transport, rest);
    const whole_size = total_size - ip_header_size;
    if (whole_size < transport_size) return error.BadHeader;
    if (rest.len < transport_size) return error.Truncated;
    const has_ports = transport != .icmp;
    var payload_size: usize = whole_size - transport_size;
    if (transport == .udp) {
        const udp_size = std.mem.readInt(u16, rest[4..6], .big);
        if (udp_size < udp_header_size) return error.BadHeader;
        // A fragmented datagram is longer than its first fragment.
        if (udp_size > whole_size and !more_fragments) return error.BadHeader;
        payload_size = udp_size - udp_header_size;
    }
    const captured = rest[transport_size..];
    return .{
        .source_mac = .zero,
        .destination_mac = .zero,
        .transport = transport,
        .source = .{
            .ip = .{ .bytes = bytes[12..16].* },
            .port = if (has_ports) std.mem.readInt(u16, rest[0..2], .big) else 0,
        },
        .destination = .{
            .ip = .{ .bytes = bytes[16..20].* },
            .port = if (has_ports) std.mem.readInt(u16, rest[2..4], .big) else 0,
        },
        .payload = captured[0..@min(captured.len, payload_size)],
        .payload_size = @intCast(payload_size),
    };
}

fn transportHeaderSize(transport: Transport, bytes: []const u8) ParseError!usize {
    return switch (transport) {
        .udp => udp_header_size,
        .icmp => icmp_header_size,
        .tcp => size: {
            if (bytes.len < tcp_header_size_min) return error.Truncated;
            const size = @as(usize, bytes[12] >> 4) * 4;
            break :size if (size < tcp_header_size_min) error.BadHeader else size;
        },
    };
}

/// Writes a UDP datagram in its own frame, for packets sent before there is an address. At most
/// `frame_size_max` bytes in all.
pub fn emitUdp(
    buffer: []u8,
    macs: struct { source: base.Mac, destination: base.Mac },
    source: base.Endpoint,
    destination: base.Endpoint,
    payload: []const u8,
) base.ByteWriter.Error![]u8 {
    var writer: base.ByteWriter = .init(buffer);
    try writer.bytes(&macs.destination.bytes);
    try writer.bytes(&macs.source.bytes);
    try writer.int(u16, type_ip4);
    const udp_size: u16 = @intCast(udp_header_size + payload.len);
    var ip: [ip4_header_size_min]u8 = @splat(0);
    ip[0] = 0x45;
    std.mem.writeInt(u16, ip[2..4], ip4_header_size_min + udp_size, .big);
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].* = source.ip.bytes;
    ip[16..20].* = destination.ip.bytes;
    std.mem.writeInt(u16, ip[10..12], checksum(&ip), .big);
    try writer.bytes(&ip);
    try writer.int(u16, source.port);
    try writer.int(u16, destination.port);
    try writer.int(u16, udp_size);
    // 0: no checksum (RFC 768).
    try writer.int(u16, 0);
    try writer.bytes(payload);
    return writer.written();
}

/// RFC 1071.
fn checksum(bytes: *const [ip4_header_size_min]u8) u16 {
    var sum: u32 = 0;
    for (0..ip4_header_size_min / 2) |index|
        sum += std.mem.readInt(u16, bytes[index * 2 ..][0..2], .big);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return ~@as(u16, @truncate(sum));
}

const testing = std.testing;

fn testFrame(buffer: []u8) ![]u8 {
    return emitUdp(
        buffer,
        .{ .source = .{ .bytes = .{ 2, 0, 0, 0, 0, 1 } }, .destination = .broadcast },
        .{ .ip = .init(10, 0, 0, 9), .port = 68 },
        .{ .ip = .broadcast, .port = 67 },
        "hello",
    );
}

test "an emitted datagram is parsed, also within two tags, cut short, and with padding" {
    var buffer: [128]u8 = undefined;
    const frame = try testFrame(&buffer);
    const packet = try parse(frame);
    try testing.expectEqualStrings("hello", packet.payload);
    try testing.expect(packet.isWhole());
    try testing.expectEqual(68, packet.source.port);
    try testing.expect(packet.destination.ip.eql(.broadcast));
    try testing.expectEqual(1, packet.source_mac.bytes[5]);
    const cut = try parse(frame[0 .. frame.len - 2]);
    try testing.expectEqualStrings("hel", cut.payload);
    try testing.expectEqual(5, cut.payload_size);
    try testing.expect(!cut.isWhole());
    var padded: [128]u8 = @splat(0);
    @memcpy(padded[0..frame.len], frame);
    try testing.expectEqualStrings("hello", (try parse(padded[0..60])).payload);
    var tagged: [136]u8 = undefined;
    @memcpy(tagged[0..12], frame[0..12]);
    tagged[12..20].* = .{ 0x88, 0xa8, 0, 5, 0x81, 0, 0, 7 };
    @memcpy(tagged[20..][0 .. frame.len - 12], frame[12..]);
    try testing.expectEqualStrings("hello", (try parse(tagged[0 .. frame.len + 8])).payload);
}

test "the checksum of an emitted header is right" {
    var buffer: [128]u8 = undefined;
    const frame = try testFrame(&buffer);
    try testing.expectEqual(0, checksum(frame[14..34]));
}

test "a frame without whole headers is refused" {
    var buffer: [128]u8 = undefined;
    const frame = try testFrame(&buffer);
    for (0..42) |size| try testing.expectError(error.Truncated, parse(frame[0..size]));
    frame[14] = 0x44;
    try testing.expectError(error.BadHeader, parse(frame));
    frame[14] = 0x45;
    frame[21] = 1;
    try testing.expectError(error.Fragment, parse(frame));
    frame[21] = 0;
    frame[23] = 50;
    try testing.expectError(error.OtherTransport, parse(frame));
    frame[12] = 0x86;
    try testing.expectError(error.NotIp4, parse(frame));
}
