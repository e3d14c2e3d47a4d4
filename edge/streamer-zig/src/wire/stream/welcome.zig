//! WELCOME of the stream (packages/proto/STREAM.md): the parameters of a session.

const std = @import("std");
const stream = @import("stream.zig");
const ticket_packet = @import("ticket.zig");
const assert = std.debug.assert;
const ParseError = stream.ParseError;

pub const welcome_size = welcome_size_known + 96;
/// With another edge to fail over to, in version 2, and without padding.
pub const welcome_size_failover = welcome_size + ticket_packet.failover_size;
/// Without padding it passes every path on which the stream works.
pub const welcome_size_unpadded_max = stream.packet_size_min - stream.tag_size;
/// In version 3 a WELCOME without padding names at most this many edges.
pub const edges_unpadded_max_v3 =
    (welcome_size_unpadded_max - welcome_size - ticket_packet.failover_size_v3_fixed) /
    ticket_packet.endpoint_size_v3;
/// The leading part that stays readable when the packet is sealed.
pub const welcome_size_known = stream.header_size + 56;

pub const Welcome = struct {
    client_nonce: [16]u8,
    /// X25519, new in each session; zeros in clear text.
    edge_public: [32]u8 = @splat(0),
    cipher: stream.Cipher,
    version_tag: u64,
    /// Bytes; a multiple of 512, not 0.
    disk_size: u64,
    /// The largest that the edge sends.
    fragment_size: u16,
    read_size_max: u32,
    outstanding_bytes_max: u32,
    resume_secret: [32]u8,
    version_id: [16]u8,
    /// Size of the boot profile's document, a multiple of 512; 0: there is none for this device.
    profile_size: u32 = 0,
    write_cache: WriteCacheClass = .device_ram,
    /// Number of the codec of packed answers; 0: no answer is packed. Version 3, and one that the
    /// device offered.
    codec: u8 = 0,
    /// Bytes that the device's writes may occupy, and the write cache's id; both 0 with
    /// `device_ram`, otherwise not 0.
    write_cache_size: u64 = 0,
    write_cache_id: u64 = 0,
    /// Null: there is no other edge to fail over to.
    failover: ?ticket_packet.Failover = null,
    /// Trailing zeros, so that its arrival proves the size of packet.
    padding: u16 = 0,
};

/// Where the device's writes are kept.
pub const WriteCacheClass = enum(u8) {
    device_ram = 0,
    /// At the edge, and gone when its process ends.
    edge = 1,
    /// On the edge's disk before it is acknowledged.
    edge_persistent = 2,
    /// In the device's memory; the part that does not fit at the edge, like `edge`.
    device_ram_overflow = 3,
};

const WelcomeLayout = extern struct {
    header: [stream.header_size]u8,
    client_nonce: [16]u8,
    edge_public: [32]u8,
    cipher: u8,
    reserved_after_cipher: [7]u8,
    version_tag: [8]u8,
    disk_size: [8]u8,
    fragment_size: [2]u8,
    write_cache: u8,
    /// Reserved in version 2.
    codec: u8,
    read_size_max: [4]u8,
    outstanding_bytes_max: [4]u8,
    profile_size: [4]u8,
    resume_secret: [32]u8,
    version_id: [16]u8,
    write_cache_size: [8]u8,
    write_cache_id: [8]u8,
};

comptime {
    assert(@sizeOf(WelcomeLayout) == welcome_size);
    assert(@offsetOf(WelcomeLayout, "version_tag") == welcome_size_known);
    assert(edges_unpadded_max_v3 == 3);
}

/// Returns the size of a WELCOME without padding.
pub fn sizeOf(version: stream.Version, failover: ?*const ticket_packet.Failover) u16 {
    const list = failover orelse return welcome_size;
    return welcome_size + ticket_packet.failoverSizeOf(version, list);
}

/// The readable part of a sealed packet.
pub const Known = struct {
    client_nonce: [16]u8,
    edge_public: [32]u8,
    cipher: stream.Cipher,
};

/// Null: there is no such cipher.
pub fn parseKnown(bytes: *const [welcome_size]u8) ?Known {
    const layout: *const WelcomeLayout = @ptrCast(bytes);
    return .{
        .client_nonce = layout.client_nonce,
        .edge_public = layout.edge_public,
        .cipher = std.enums.fromInt(stream.Cipher, layout.cipher) orelse return null,
    };
}

pub fn parse(version: stream.Version, bytes: []const u8) ParseError!Welcome {
    if (bytes.len < welcome_size or bytes.len > stream.packet_size_max) return error.WrongSize;
    const layout: *const WelcomeLayout = @ptrCast(bytes[0..welcome_size]);
    if (version == .v2 and layout.codec != 0) return error.ReservedNotZero;
    if (layout.codec > stream.codecs_max) return error.BadValue;
    try stream.expectZero(&layout.reserved_after_cipher);
    const list = try ticket_packet.parseFailover(version, bytes[welcome_size..]);
    const welcome: Welcome = .{
        .client_nonce = layout.client_nonce,
        .edge_public = layout.edge_public,
        .cipher = std.enums.fromInt(stream.Cipher, layout.cipher) orelse return error.BadValue,
        .padding = @intCast(bytes.len - welcome_size - list.size),
        .failover = list.failover,
        .version_tag = stream.int(u64, &layout.version_tag),
        .disk_size = stream.int(u64, &layout.disk_size),
        .fragment_size = stream.int(u16, &layout.fragment_size),
        .read_size_max = stream.int(u32, &layout.read_size_max),
        .outstanding_bytes_max = stream.int(u32, &layout.outstanding_bytes_max),
        .resume_secret = layout.resume_secret,
        .version_id = layout.version_id,
        .profile_size = stream.int(u32, &layout.profile_size),
        .write_cache = std.enums.fromInt(WriteCacheClass, layout.write_cache) orelse
            return error.BadValue,
        .codec = layout.codec,
        .write_cache_size = stream.int(u64, &layout.write_cache_size),
        .write_cache_id = stream.int(u64, &layout.write_cache_id),
    };
    const has_cache = welcome.write_cache != .device_ram;
    if ((welcome.write_cache_size > 0) != has_cache) return error.BadValue;
    if ((welcome.write_cache_id > 0) != has_cache) return error.BadValue;
    if ((welcome.cipher == .clear) != std.mem.allEqual(u8, &welcome.edge_public, 0))
        return error.BadValue;
    if (welcome.disk_size == 0 or welcome.disk_size % stream.sector_size != 0)
        return error.BadValue;
    if (welcome.profile_size % stream.sector_size != 0 or
        welcome.profile_size > stream.profile.document_size_max) return error.BadValue;
    if (welcome.fragment_size < stream.fragment_size_min) return error.BadValue;
    if (welcome.fragment_size > stream.fragment_size_max) return error.BadValue;
    if (welcome.read_size_max < stream.read_size_promised) return error.BadValue;
    if (welcome.read_size_max > stream.read_size_max) return error.BadValue;
    if (welcome.outstanding_bytes_max < stream.read_size_promised) return error.BadValue;
    return welcome;
}

/// The header is written already.
pub fn emit(version: stream.Version, welcome: *const Welcome, out: []u8) []u8 {
    assert(version == .v3 or welcome.codec == 0);
    const layout: *WelcomeLayout = @ptrCast(out[0..welcome_size]);
    layout.client_nonce = welcome.client_nonce;
    layout.edge_public = welcome.edge_public;
    layout.cipher = @backingInt(welcome.cipher);
    layout.reserved_after_cipher = @splat(0);
    std.mem.writeInt(u64, &layout.version_tag, welcome.version_tag, .big);
    std.mem.writeInt(u64, &layout.disk_size, welcome.disk_size, .big);
    std.mem.writeInt(u16, &layout.fragment_size, welcome.fragment_size, .big);
    layout.write_cache = @backingInt(welcome.write_cache);
    layout.codec = welcome.codec;
    std.mem.writeInt(u32, &layout.read_size_max, welcome.read_size_max, .big);
    std.mem.writeInt(u32, &layout.outstanding_bytes_max, welcome.outstanding_bytes_max, .big);
    std.mem.writeInt(u32, &layout.profile_size, welcome.profile_size, .big);
    layout.resume_secret = welcome.resume_secret;
    layout.version_id = welcome.version_id;
    std.mem.writeInt(u64, &layout.write_cache_size, welcome.write_cache_size, .big);
    std.mem.writeInt(u64, &layout.write_cache_id, welcome.write_cache_id, .big);
    var size: usize = welcome_size;
    if (welcome.failover) |*failover|
        size += ticket_packet.emitFailover(version, failover, out[welcome_size..]).len;
    @memset(out[size..][0..welcome.padding], 0);
    return out[0 .. size + welcome.padding];
}
